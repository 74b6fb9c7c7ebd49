"""Embedder and chat model of OpenAI or a compatible server; the extra is `openai`.

The clients are synchronous, so that background writes need no event loop.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from openai import OpenAI


_MOST_TEXTS = 256  # in a request; a provider takes so many


class OpenAIEmbedder:
    """Embeds with an `/embeddings` endpoint.

    Raises:
        MissingExtraError: openai is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None,
        base_url: str | None = None,
        api_key: str | None = None,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Configure the model; nothing is sent yet.

        Args:
            dimensions: length of the model's vectors, or one that it can shorten them to; None
                for the model's own, which its first vector shows.
            base_url: of a compatible server; OpenAI's when None.
            api_key: found by the openai package when None.
            client_options: further ones of `openai.OpenAI`, such as `default_headers`.
        """
        self._dimensions = dimensions
        self._model = model
        self._client = _client(base_url, api_key, client_options)
        self._takes_dimensions = dimensions is not None

    @property
    def id(self) -> str:
        """Name of the model, with the length of its vectors."""
        return f"openai/{self._model}/{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """Length of every vector; asks the model for one vector if it was not given."""
        if self._dimensions is None:
            self._dimensions = len(self._request(["dimensions"], {})[0])
        return self._dimensions

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one vector each, in their order; the purpose makes no difference."""
        from openai import BadRequestError

        options = {"dimensions": self.dimensions} if self._takes_dimensions else {}
        try:
            return self._request(texts, options)
        except BadRequestError:
            if not options:
                raise
            # Models of one fixed length refuse the parameter.
            vectors = self._request(texts, {})
            self._takes_dimensions = False
            return vectors

    def _request(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _MOST_TEXTS):
            answer = self._client.embeddings.create(
                model=self._model,
                input=list(texts[start : start + _MOST_TEXTS]),
                encoding_format="float",
                **options,
            )
            found = sorted(answer.data, key=lambda one: one.index)
            vectors += [one.embedding for one in found]
        return vectors


class OpenAIChat:
    """Answers with a `/chat/completions` endpoint, as JSON.

    Raises:
        MissingExtraError: openai is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client_options: Mapping[str, Any] | None = None,
        request_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Configure the model; nothing is sent yet. The other arguments are as for the embedder.

        Args:
            request_options: sent with every request, such as `{"temperature": 0}`.
        """
        self.id: str = f"openai/{model}"
        self._model = model
        self._request_options: dict[str, Any] = dict(request_options or {})
        self._client = _client(base_url, api_key, client_options)
        self._takes_schemas = True

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; empty when the model refuses.

        From a server without support for schemas it requests any JSON object from then on.
        """
        from openai import BadRequestError, UnprocessableEntityError

        schema_format = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(schema), "strict": False},
        }
        if self._takes_schemas:
            try:
                return self._request(system, user, schema_format)
            except (BadRequestError, UnprocessableEntityError):
                answer = self._request(system, user, {"type": "json_object"})
                self._takes_schemas = False
                return answer
        return self._request(system, user, {"type": "json_object"})

    def _request(self, system: str, user: str, answer_format: Mapping[str, Any]) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        options = {"messages": messages, "response_format": answer_format, **self._request_options}
        answer = self._client.chat.completions.create(model=self._model, **options)
        return answer.choices[0].message.content or "" if answer.choices else ""


def _client(
    base_url: str | None, api_key: str | None, options: Mapping[str, Any] | None
) -> "OpenAI":
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError(package="openai", extra="openai") from error
    return openai.OpenAI(base_url=base_url, api_key=api_key, **(options or {}))
