"""LangChain's chat and embedding models as the models of a memory.

Each comes twice. The plain ones call the model where the memory's work is done, in any thread, and
serve sync and async callers alike. Those with `Async` in front await it on the caller's event loop
only, for models that have no other way.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from commonplace import InvalidRecordError

NO_MODEL = "model={!r} is no {} of LangChain. Pass one."
_NAMES = ("model", "model_name", "model_id", "azure_deployment", "deployment_name", "repo_id")
_REFUSED = (400, 422)

Vectors = list[list[float]]


class _Chat:
    def __init__(self, model: BaseChatModel, *, id: str | None = None) -> None:  # noqa: A002 -- the port's name
        if not isinstance(model, BaseChatModel):
            raise TypeError(NO_MODEL.format(model, "BaseChatModel"))
        self.model = model
        self.id = id or f"langchain/{type(model).__name__}/{name_of(model) or '?'}"
        self._knows_schemas = True

    def _shaped(self, schema: Mapping[str, Any]) -> Runnable[Any, Any] | None:
        """Bind the schema, where the model can be made to keep to one."""
        if not self._knows_schemas:
            return None
        named = {"title": "answer", "description": "The answer.", **schema}
        try:
            return self.model.with_structured_output(named, include_raw=True)
        except Exception:  # noqa: BLE001 -- what a model without schemas raises differs
            self._knows_schemas = False
            return None

    def _is_refusal(self, error: Exception) -> bool:
        return getattr(error, "status_code", None) in _REFUSED


class LangChainChat(_Chat):
    """Extracts with a LangChain chat model.

    A model that takes JSON schemas is given one; another, or one that refuses it, reads the schema
    in its prompt.

    Raises:
        TypeError: that is no chat model.
    """

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        shaped = self._shaped(schema)
        if shaped is not None:
            try:
                return _json_of(shaped.invoke(_prompt(system, user)))
            except Exception as error:
                if not self._is_refusal(error):
                    raise
        answer = self.model.invoke(_prompt(_with_schema(system, schema), user))
        self._knows_schemas = False
        return str(answer.text)


class AsyncLangChainChat(_Chat):
    """Extracts with a LangChain chat model, as `LangChainChat`, on the caller's event loop."""

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        shaped = self._shaped(schema)
        if shaped is not None:
            try:
                return _json_of(await shaped.ainvoke(_prompt(system, user)))
            except Exception as error:
                if not self._is_refusal(error):
                    raise
        answer = await self.model.ainvoke(_prompt(_with_schema(system, schema), user))
        self._knows_schemas = False
        return str(answer.text)


class _Embedder:
    def __init__(
        self,
        model: Embeddings,
        *,
        dimensions: int | None = None,
        id: str | None = None,  # noqa: A002 -- the port's name
    ) -> None:
        if not isinstance(model, Embeddings):
            raise TypeError(NO_MODEL.format(model, "Embeddings"))
        found = getattr(model, "dimensions", None) if dimensions is None else dimensions
        if type(found) is not int or found <= 0:
            raise InvalidRecordError(
                field="dimensions",
                value=found,
                reason="is not above zero",
                hint="Pass dimensions=, the length of the model's vectors.",
            )
        name = name_of(model)
        if not id and not name:
            raise InvalidRecordError(
                field="id",
                value=id,
                reason="is missing and the model does not tell its name",
                hint="Pass id=: a name for the model and its revision, always the same.",
            )
        self.model = model
        self.dimensions = found
        self.id = id or f"langchain/{type(model).__name__}/{name}/{found}"


class LangChainEmbedder(_Embedder):
    """Embeds with a LangChain embedding model.

    Attributes:
        dimensions: the length of every vector; the model's own unless given.
        id: names the model and the dimensions, the same in every process, unless given.

    Raises:
        TypeError: that is no embedding model.
        InvalidRecordError: the model tells its dimensions or name as little as the caller does.
    """

    def embed(self, texts: Sequence[str], *, purpose: Literal["query", "document"]) -> Vectors:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [self.model.embed_query(text) for text in texts]
        return self.model.embed_documents(list(texts))


class AsyncLangChainEmbedder(_Embedder):
    """Embeds with a LangChain embedding model, as `LangChainEmbedder`, on the caller's loop."""

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> Vectors:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [await self.model.aembed_query(text) for text in texts]
        return await self.model.aembed_documents(list(texts))


def name_of(model: object) -> str | None:
    """Read the name that a model goes by, whatever its library calls it; None if it has none."""
    found = (getattr(model, name, None) for name in _NAMES)
    return next((one for one in found if type(one) is str and one), None)


def _prompt(system: str, user: str) -> list[BaseMessage]:
    return [SystemMessage(system), HumanMessage(user)]


def _with_schema(system: str, schema: Mapping[str, Any]) -> str:
    return f"{system}\n\nJSON schema of the answer:\n{json.dumps(dict(schema))}"


def _json_of(answer: Mapping[str, Any]) -> str:
    """Write what was understood as JSON; else give back what the model said, to be repaired."""
    if answer.get("parsed") is not None:
        return json.dumps(answer["parsed"], ensure_ascii=False)
    raw = answer.get("raw")
    return str(raw.text) if isinstance(raw, AIMessage) else ""
