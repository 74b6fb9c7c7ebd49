"""Adapters that let a memory use LangChain's chat and embedding models, or a store's `index`.

Each has two versions. The plain one calls the model on the memory's threads, for sync and async
callers alike. The one named `Async...` awaits the model on the caller's event loop, for models
without blocking methods.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langgraph.store.base import IndexConfig, ensure_embeddings

from commonplace import Embedder, InvalidRecordError, Memory, WrongTypeError
from commonplace.agents import Plan, arun_plan, check_name, hinting_init, run_plan, with_schema

_NAMES = ("model", "model_name", "model_id", "azure_deployment", "deployment_name", "repo_id")
_REFUSED = (400, 422)


@hinting_init
class _ChatAdapter:
    def __init__(self, model: BaseChatModel, *, id: str | None = None) -> None:
        if not isinstance(model, BaseChatModel):
            raise _wrong_type(model, "BaseChatModel")
        if id is not None:
            check_name("id", id)
        self.model = model
        self.id: str = id or f"langchain/{type(model).__name__}/{name_of(model) or '?'}"
        self._takes_schemas = True

    def _structured_model(self, schema: Mapping[str, Any]) -> Runnable[Any, Any] | None:
        """Bind the schema; None where the model takes none."""
        if not self._takes_schemas:
            return None
        titled = {"title": "answer", "description": "The answer.", **schema}
        try:
            return self.model.with_structured_output(titled, include_raw=True)
        except Exception:  # models without schemas raise different errors
            self._takes_schemas = False
            return None

    def _complete(self, system: str, user: str, schema: Mapping[str, Any]) -> Plan[str]:
        """Yield each model to call with its prompt, and return JSON text."""
        structured = self._structured_model(schema)
        if structured is not None:
            try:
                return _json_of((yield structured, _prompt(system, user)))
            except Exception as error:
                if getattr(error, "status_code", None) not in _REFUSED:
                    raise
        answer = yield self.model, _prompt(with_schema(system, schema), user)
        self._takes_schemas = False
        return str(answer.text)


class LangChainChat(_ChatAdapter):
    """Extracts with a LangChain chat model.

    A model that takes JSON schemas is given one; any other, or one that refuses it, gets the schema
    in its prompt.

    Raises:
        WrongTypeError: `model` is not a chat model.
    """

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        plan = self._complete(system, user, schema)
        return run_plan(plan, lambda step: step[0].invoke(step[1]))


class AsyncLangChainChat(_ChatAdapter):
    """Extracts with a LangChain chat model, see `LangChainChat`, on the caller's event loop."""

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text."""
        plan = self._complete(system, user, schema)
        return await arun_plan(plan, lambda step: step[0].ainvoke(step[1]))


@hinting_init
class _EmbedderAdapter:
    def __init__(
        self, model: Embeddings, *, dimensions: int | None = None, id: str | None = None
    ) -> None:
        if not isinstance(model, Embeddings):
            raise _wrong_type(model, "Embeddings")
        found = getattr(model, "dimensions", None) if dimensions is None else dimensions
        if type(found) is not int or found <= 0:
            raise InvalidRecordError(
                field="dimensions",
                value=found,
                reason="must be above zero",
                hint="Pass dimensions=, the length of the model's vectors.",
            )
        name = name_of(model)
        if not id and not name:
            raise InvalidRecordError(
                field="id",
                value=id,
                reason="must be given, as the model has no name",
                hint="Pass id=: a name for the model and its revision, always the same.",
            )
        if id is not None:
            check_name("id", id)
        self.model = model
        self.dimensions = found
        self.id: str = id or f"langchain/{type(model).__name__}/{name}/{found}"


class LangChainEmbedder(_EmbedderAdapter):
    """Embeds with a LangChain embedding model.

    Attributes:
        dimensions: the length of every vector; by default the model's own.
        id: by default made of the model's name and the dimensions, the same in every process.

    Raises:
        WrongTypeError: `model` is not an embedding model.
        InvalidRecordError: neither the model nor the caller gives its dimensions or its name.
    """

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [self.model.embed_query(text) for text in texts]
        return self.model.embed_documents(list(texts))


class AsyncLangChainEmbedder(_EmbedderAdapter):
    """Embeds with a LangChain embedding model, see `LangChainEmbedder`, on the caller's loop."""

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [await self.model.aembed_query(text) for text in texts]
        return await self.model.aembed_documents(list(texts))


def name_of(model: object) -> str | None:
    """Return a model's name, whichever attribute its library keeps it in; None if it has none."""
    names = (getattr(model, name, None) for name in _NAMES)
    return next((name for name in names if type(name) is str and name), None)


def to_embedder(index: IndexConfig | None) -> Embedder | None:
    """Make an embedder from a store's index configuration; None if it names no model.

    An async function is awaited on the caller's event loop.

    Raises:
        InvalidRecordError: it names a model but not the length of its vectors.
    """
    if not index or index.get("embed") is None:
        return None
    dims = index.get("dims")
    if type(dims) is not int or dims < 1:
        raise InvalidRecordError(
            field="index['dims']",
            value=dims,
            reason="must be the length of a vector",
            hint="Give index={'dims': 384, 'embed': ...}.",
        )
    model = ensure_embeddings(index["embed"])
    is_async = hasattr(model, "afunc") and not hasattr(model, "func")
    model_id = None if name_of(model) else f"langchain/{_qualified_name(model)}/{dims}"
    embedder = AsyncLangChainEmbedder if is_async else LangChainEmbedder
    return embedder(model, dimensions=dims, id=model_id)


def check_index(index: IndexConfig | None, memory: Memory) -> None:
    """Check that an index configuration fits the memory's own embedder."""
    if not index:
        return
    held, given = memory.embedder, to_embedder(index)
    dims = index.get("dims", held.dimensions)
    if dims != held.dimensions or (given is not None and given.id != held.id):
        raise InvalidRecordError(
            field="index",
            value=given.id if given else dims,
            reason=f"must be the memory's own {held.id!r} of {held.dimensions} dimensions",
            hint="Leave 'embed' and 'dims' out to use the memory's, or give the store a path "
            "instead of a memory and let it open one with this model.",
        )


def _qualified_name(model: Embeddings) -> str:
    """Name a model that has no name: after its function, else after its class."""
    function = getattr(model, "func", None) or getattr(model, "afunc", None)
    named: str | None = getattr(function, "__qualname__", None)
    return named or type(function or model).__qualname__


def _wrong_type(model: object, wanted: str) -> WrongTypeError:
    return WrongTypeError(
        field="model",
        value=model,
        takes=f"a LangChain {wanted}",
        hint="Pass an instance, such as one of langchain_openai.",
    )


def _prompt(system: str, user: str) -> list[BaseMessage]:
    return [SystemMessage(system), HumanMessage(user)]


def _json_of(answer: Mapping[str, Any]) -> str:
    """Return the parsed answer as JSON; else the model's own text, for the caller to repair."""
    if answer.get("parsed") is not None:
        return json.dumps(answer["parsed"], ensure_ascii=False)
    raw = answer.get("raw")
    return str(raw.text) if isinstance(raw, AIMessage) else ""
