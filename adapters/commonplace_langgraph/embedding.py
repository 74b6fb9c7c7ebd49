"""The embedding model of a store's `index` as a memory's embedder."""

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings

from commonplace import InvalidRecordError, Memory
from commonplace.ports.models import Embedder

from .models import AsyncLangChainEmbedder, LangChainEmbedder, name_of


def embedder_of(index: IndexConfig | None) -> Embedder | None:
    """Make an embedder of an index configuration; None if it names no model.

    A function that is asynchronous is awaited on the caller's event loop.

    Raises:
        InvalidRecordError: it names a model and not the length of its vectors.
    """
    if not index or index.get("embed") is None:
        return None
    dims = index.get("dims")
    if type(dims) is not int or dims < 1:
        raise InvalidRecordError(
            field="index['dims']", value=dims, reason="is no length of a vector",
            hint="Give index={'dims': 384, 'embed': ...}.",
        )  # fmt: skip
    model = ensure_embeddings(index["embed"])
    is_async = hasattr(model, "afunc") and not hasattr(model, "func")
    known_as = None if name_of(model) else f"langchain/{_kind_of(model)}/{dims}"
    embedder = AsyncLangChainEmbedder if is_async else LangChainEmbedder
    return embedder(model, dimensions=dims, id=known_as)


def _kind_of(model: Embeddings) -> str:
    """Name a model that has no name of its own: a function by its own, else by its class."""
    function = getattr(model, "func", None) or getattr(model, "afunc", None)
    named: str | None = getattr(function, "__qualname__", None)
    return named or type(function or model).__qualname__


def check_same(index: IndexConfig | None, memory: Memory) -> None:
    """Refuse an index configuration that is not the given memory's.

    Raises:
        InvalidRecordError: it is another model, or of another length.
    """
    if not index:
        return
    held, given = memory.embedder, embedder_of(index)
    dims = index.get("dims", held.dimensions)
    if dims != held.dimensions or (given is not None and given.id != held.id):
        raise InvalidRecordError(
            field="index",
            value=given.id if given else dims,
            reason=f"is not the memory's own embedder {held.id!r} of {held.dimensions} dimensions",
            hint="Leave 'embed' and 'dims' out to use the memory's, or give the store a path "
            "instead of a memory and let it open one with this model.",
        )
