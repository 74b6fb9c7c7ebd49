"""Models behind OpenAI's HTTP interface, by mem0's keys: OpenAI, OpenRouter, Ollama, any other.

The client is made with the first use: until then no key is needed and nothing is sent.
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from commonplace import MissingExtraError

from .config import Unknown
from .exceptions import ConfigurationError

logger = logging.getLogger("commonplace_mem0")
_ROUTER = "https://openrouter.ai/api/v1"
_OLLAMA = "http://localhost:11434"
_PASSED = ("temperature", "top_p", "max_tokens", "reasoning_effort", "store")
_KNOWN = (
    *_PASSED, "model", "api_key", "openai_base_url", "ollama_base_url", "openrouter_base_url",
    "models", "route", "site_url", "app_name", "http_client_proxies", "base_url",
)  # fmt: skip
_DEFAULTS = {"openai": "gpt-5-mini", "ollama": "llama3.1:70b"}
_SIZES = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_BATCH = 100


class Client:
    """Where a compatible server is; connects on first use.

    Attributes:
        client: the openai client.
    """

    def __init__(self, provider: str, values: Mapping[str, Any]) -> None:
        self._provider = provider
        self._values = values
        self._lock = threading.Lock()
        self._client: Any = None

    def connect(self) -> Any:
        """Give the client, made once.

        Raises:
            MissingExtraError: openai is not installed.
        """
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        try:
            import openai  # noqa: PLC0415 -- on first use
        except ImportError as error:
            raise MissingExtraError(package="openai", extra="openai") from error
        given: dict[str, Any] = {"api_key": self._values.get("api_key"), **self._place()}
        proxies = self._values.get("http_client_proxies")
        if proxies:
            given["http_client"] = openai.DefaultHttpxClient(proxy=proxies)
        return openai.OpenAI(**given)

    def _place(self) -> dict[str, Any]:
        values = self._values
        if self._provider == "ollama":
            base = values.get("ollama_base_url") or values.get("base_url") or _OLLAMA
            return {"base_url": f"{base.rstrip('/')}/v1", "api_key": "ollama"}
        if self._provider == "huggingface":
            key = values.get("api_key") or os.environ.get("HUGGINGFACE_API_KEY", "hf")
            return {"base_url": values["huggingface_base_url"], "api_key": key}
        if "openrouter_base_url" in values or "models" in values:
            heads = {"HTTP-Referer": values.get("site_url"), "X-Title": values.get("app_name")}
            return {
                "base_url": values.get("openrouter_base_url") or _ROUTER,
                "api_key": values.get("api_key") or os.environ.get("OPENROUTER_API_KEY"),
                "default_headers": {name: value for name, value in heads.items() if value},
            }
        return {"base_url": values.get("openai_base_url") or values.get("base_url")}


class CompatibleModel:
    """A chat model; of the sampling options only those that were given are sent."""

    def __init__(self, provider: str, values: Mapping[str, Any], unknown: Unknown) -> None:
        unknown.note("llm.config", [name for name in values if name not in _KNOWN])
        self._client = Client(provider, values)
        self._model = values.get("model")
        if self._model is None and not values.get("models"):
            self._model = _DEFAULTS[provider]
            logger.warning("llm.config names no model, so %r is used. Name one.", self._model)
        self._options = {name: values[name] for name in _PASSED if name in values}
        routed = {name: values[name] for name in ("models", "route") if name in values}
        if routed:
            self._options["extra_body"] = routed
        self._knows_schemas = True

    def __call__(self, messages: Any, schema: Mapping[str, Any] | None = None) -> str:
        """Answer with text; with JSON when there is a schema.

        A server without schemas is asked for any JSON object from then on.
        """
        if schema is None:
            return self._ask(messages, {})
        from openai import BadRequestError, UnprocessableEntityError  # noqa: PLC0415 -- on first use

        body = {"name": "answer", "schema": dict(schema), "strict": False}
        if self._knows_schemas:
            shape = {"response_format": {"type": "json_schema", "json_schema": body}}
            try:
                return self._ask(messages, shape)
            except (BadRequestError, UnprocessableEntityError):
                self._knows_schemas = False
        return self._ask(messages, {"response_format": {"type": "json_object"}})

    def _ask(self, messages: Any, shape: Mapping[str, Any]) -> str:
        completions = self._client.connect().chat.completions
        # OpenRouter chooses among `models` itself.
        model = self._model or ""
        answer = completions.create(model=model, messages=messages, **self._options, **shape)
        return answer.choices[0].message.content or "" if answer.choices else ""


class CompatibleEmbedder:
    """An embedding model; its dimensions are looked up, or measured with the first use."""

    def __init__(self, provider: str, model: str, values: Mapping[str, Any]) -> None:
        self.id = f"{provider}/{model}"
        self._client = Client(provider, values)
        self._model = model
        self._wanted = values.get("embedding_dims")
        self._size: int | None = _SIZES.get(model) if provider == "openai" else None

    @property
    def dimensions(self) -> int:
        """The length of every vector.

        Raises:
            ConfigurationError: the model gives vectors of another length than was configured.
        """
        if self._wanted is not None and self._size is not None and self._sends:
            return int(self._wanted)
        if self._size is None:
            self._size = len(self._ask(["dimensions"])[0])
        if self._wanted is not None and self._wanted != self._size:
            raise ConfigurationError(
                f"embedding_dims={self._wanted}, but {self._model!r} gives vectors of "
                f"{self._size}. Leave it out, or write {self._size}."
            )
        return self._size

    @property
    def _sends(self) -> bool:
        return self._model.startswith("text-embedding-3")

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one vector each, in their order, a hundred a call."""
        rows = [one.replace("\n", " ") for one in texts]
        starts = range(0, len(rows), _BATCH)
        return [row for start in starts for row in self._ask(rows[start : start + _BATCH])]

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        options = {"dimensions": self._wanted} if self._wanted and self._sends else {}
        answer = self._client.connect().embeddings.create(
            model=self._model, input=list(texts), encoding_format="float", **options
        )
        return [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]
