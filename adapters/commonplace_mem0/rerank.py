"""Rerankers: mem0's interface, one of our own for sentence-transformers, and what uses them."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .config import Section
from .exceptions import DependencyError
from .foreign import foreign

logger = logging.getLogger("commonplace_mem0")
NATIVE = ("sentence_transformer",)
_DEFAULT = "cross-encoder/ms-marco-MiniLM-L-6-v2"
Items = list[dict[str, Any]]


class CrossEncoderReranker:
    """Reads question and memory together; loads on first use."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._name = str(values.get("model") or _DEFAULT)
        self._most: int | None = values.get("top_k")
        self._options = {"device": values["device"]} if "device" in values else {}
        self._loading = threading.Lock()
        self._model: Any = None

    def rerank(self, query: str, documents: Sequence[dict[str, Any]], top_k: int | None) -> Items:
        """Order memories by a `rerank_score`, best first."""
        with self._loading:
            if self._model is None:
                try:
                    from sentence_transformers import CrossEncoder  # noqa: PLC0415 -- on first use
                except ImportError as error:
                    raise DependencyError(
                        "reranker 'sentence_transformer' needs sentence-transformers. "
                        "pip install sentence-transformers"
                    ) from error
                self._model = CrossEncoder(self._name, **self._options)
        scores = self._model.predict([(query, one["memory"]) for one in documents])
        scored = [
            {**one, "rerank_score": float(score)}
            for one, score in zip(documents, scores, strict=True)
        ]
        scored.sort(key=lambda one: -one["rerank_score"])
        return scored[: top_k or self._most]


def to_reranker(given: Section | None) -> Any:
    """Make the configured reranker; None for none."""
    if given is None:
        return None
    if given.itself is not None:
        return given.itself
    if given.provider == "sentence_transformer":
        return CrossEncoderReranker(given.values)
    return foreign("reranker", given, NATIVE)


def reranked(reranker: Any, query: str, items: Items, limit: int) -> Items:
    """Order memories with a reranker; a failing one is told to the log and leaves their order."""
    try:
        return list(reranker.rerank(query, [dict(one) for one in items], limit))
    except DependencyError:
        raise
    except Exception as error:  # noqa: BLE001 -- somebody else's model may raise anything
        logger.warning("Reranking failed, the order is that of the search: %r", error)
        return items
