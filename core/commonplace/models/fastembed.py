"""Embedder of fastembed's models, on this machine; the extra is `local`."""

import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

from ..errors import MissingExtraError

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


class FastEmbed:
    """Embeds with a model of fastembed, which is downloaded once; later uses are offline.

    Raises:
        MissingExtraError: fastembed is not installed.
        ValueError: the model is unknown to fastembed.
    """

    def __init__(self, model: str = MULTILINGUAL, *, folder: str | None = None) -> None:
        """Look the model up, without loading it.

        Args:
            folder: of model files; fastembed's default when None.
        """
        try:
            import fastembed
        except ImportError as error:
            raise MissingExtraError(package="fastembed", extra="local") from error
        self.dimensions: int = fastembed.TextEmbedding.get_embedding_size(model)
        self.id: str = f"fastembed/{model}/{'.'.join(version('fastembed').split('.')[:2])}"
        self._name = model
        self._folder = folder
        self._lock = threading.Lock()
        self._model: Any = None

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts, one vector each, in their order; some models distinguish the purposes."""
        model = self._load()
        run = model.query_embed if purpose == "query" else model.passage_embed
        return [vector.tolist() for vector in run(list(texts))]

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                from fastembed import TextEmbedding

                try:
                    # A request to the network makes an offline machine wait for half a minute.
                    self._model = TextEmbedding(
                        self._name, cache_dir=self._folder, local_files_only=True
                    )
                except Exception:  # noqa: BLE001 -- its error for a missing file differs by version
                    self._model = TextEmbedding(self._name, cache_dir=self._folder)
            return self._model
