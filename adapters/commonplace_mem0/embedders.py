"""Embedding models as mem0's users configure them, as the core's `Embedder`.

How long the vectors are is never taken on trust: the configured number is compared with what the
model gives, and a difference is an error that names both.
"""

import inspect
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from commonplace.ports.models import Embedder

from .compatible import CompatibleEmbedder
from .config import Section, Unknown
from .exceptions import ConfigurationError, DependencyError
from .foreign import foreign

NATIVE = ("commonplace", "openai", "ollama", "huggingface", "langchain")
_DEFAULTS = {
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
    "huggingface": "multi-qa-MiniLM-L6-cos-v1",
}
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "openai": ("model", "api_key", "openai_base_url", "embedding_dims", "http_client_proxies"),
    "ollama": ("model", "ollama_base_url", "embedding_dims"),
    "huggingface": ("model", "model_kwargs", "huggingface_base_url", "api_key", "embedding_dims"),
    "langchain": ("model", "embedding_dims"),
    "commonplace": ("model",),
}
Purpose = Literal["query", "document"]


class Measured:
    """An embedder whose dimensions are measured with its first vector."""

    def __init__(self, name: str, wanted: int | None) -> None:
        self.id = name
        self._wanted = wanted
        self._size: int | None = None
        self._measuring = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector.

        Raises:
            ConfigurationError: it is another one than was configured.
        """
        with self._measuring:
            if self._size is None:
                self._size = len(self.embed(["dimensions"], purpose="document")[0])
        if self._wanted is not None and self._wanted != self._size:
            raise ConfigurationError(
                f"embedding_dims={self._wanted}, but {self.id!r} gives vectors of {self._size}. "
                f"Leave it out, or write {self._size}."
            )
        return self._size

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        raise NotImplementedError


class SentenceTransformers(Measured):
    """A model of sentence-transformers on this machine, loaded on first use."""

    def __init__(self, name: str, options: Mapping[str, Any], wanted: int | None) -> None:
        super().__init__(f"huggingface/{name}", wanted)
        self._name, self._options = name, options
        self._loading = threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        with self._loading:
            if self._model is None:
                try:
                    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 -- on first use
                except ImportError as error:
                    raise DependencyError(
                        "embedder 'huggingface' needs sentence-transformers. "
                        "pip install sentence-transformers, or give huggingface_base_url."
                    ) from error
                self._model = SentenceTransformer(self._name, **self._options)
        found: list[list[float]] = self._model.encode(list(texts)).tolist()
        return found


class OfLangChain(Measured):
    """LangChain's `Embeddings`, told documents from questions."""

    def __init__(self, model: Any, wanted: int | None) -> None:
        name = getattr(model, "model", None) or getattr(model, "model_name", "")
        super().__init__(f"langchain/{type(model).__name__}/{name}", wanted)
        self._model = model

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        if purpose == "query":
            return [self._model.embed_query(text) for text in texts]
        found: list[list[float]] = self._model.embed_documents(list(texts))
        return found


class OfMem0(Measured):
    """An embedder with mem0's interface, `embed(text, memory_action)`."""

    def __init__(self, model: Any, name: str) -> None:
        config = getattr(model, "config", None)
        super().__init__(f"mem0/{name}/{getattr(config, 'model', None) or ''}", None)
        self._model = model

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Embed texts, one vector each, in their order."""
        action = "search" if purpose == "query" else "add"
        if hasattr(self._model, "embed_batch"):
            found = self._model.embed_batch(list(texts), action)
            return [list(map(float, one)) for one in found]
        return [list(map(float, self._model.embed(text, action))) for text in texts]


def to_embedder(given: Section | None, unknown: Unknown) -> Embedder | None:
    """Make the configured embedder; None for the one that ships with the core.

    Raises:
        ConfigurationError: nobody knows the provider, or its model is none.
    """
    if given is None:
        return None
    if given.itself is not None:
        return _of_object(given.itself, None)
    if given.provider not in NATIVE:
        return OfMem0(foreign("embedder", given, NATIVE, {}), given.provider)
    known = _KNOWN[given.provider]
    unknown.note("embedder.config", [name for name in given.values if name not in known])
    return None if given.provider == "commonplace" else _of_provider(given)


def _of_provider(given: Section) -> Embedder:
    values = given.values
    if given.provider == "langchain":
        return _of_object(values.get("model"), values.get("embedding_dims"))
    name = str(values.get("model") or _DEFAULTS[given.provider])
    if given.provider == "huggingface" and "huggingface_base_url" not in values:
        options = values.get("model_kwargs") or {}
        return SentenceTransformers(name, options, values.get("embedding_dims"))
    if given.provider == "huggingface":
        name = str(values.get("model") or "tei")
    return CompatibleEmbedder(given.provider, name, values)


def _of_object(given: Any, wanted: int | None) -> Embedder:
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed_documents"):
        return OfLangChain(given, wanted)
    if hasattr(given, "embed") and not inspect.iscoroutinefunction(given.embed):
        return OfMem0(given, type(given).__name__)
    raise ConfigurationError(
        f"embedder={given!r} is no embedder. Give a provider, LangChain's Embeddings, or an object "
        "with id, dimensions and embed(texts, purpose=...)."
    )
