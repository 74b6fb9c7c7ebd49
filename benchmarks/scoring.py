"""What the retrieval benchmarks share: metrics, a cache of vectors, figures of time."""

import math
import pickle
import re
import statistics
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from commonplace.models.minilm import MiniLMTokens
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.ports import Embedder, TokenEmbedder, TokenEmbedding
from commonplace.testing.fakes import HashEmbedder

UNFOUND = 1_000_000
_Asked = tuple[str, str]  # the purpose and the text


class Cached:
    """Embeds a text once, so that a timed search does not time the model."""

    def __init__(self, inner: Embedder) -> None:
        self.id = inner.id
        self.dimensions = inner.dimensions
        self._inner = inner
        self._known: dict[_Asked, Sequence[float]] = {}

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[Sequence[float]]:
        """Embed what is new, remember it, and answer in the order of the texts."""
        new = [text for text in dict.fromkeys(texts) if (purpose, text) not in self._known]
        if new:
            vectors = self._inner.embed(new, purpose=purpose)
            for text, vector in zip(new, vectors, strict=True):  # type: ignore[arg-type]  # sync
                self._known[purpose, text] = vector
        return [self._known[purpose, text] for text in texts]

    def load(self, folder: Path) -> None:
        """Read what `save` wrote for the same embedder, if anything."""
        self._known |= _pickled(self._file(folder, "vectors"))

    def save(self, folder: Path) -> None:
        """Write what is known of documents, for later runs: how questions are read may change."""
        self._file(folder, "vectors").write_bytes(pickle.dumps(_of_documents(self._known)))

    def _file(self, folder: Path, name: str) -> Path:
        return folder / f"{re.sub(r'[^A-Za-z0-9.]+', '-', self.id)}.{name}"


class CachedTokens(Cached):
    """The same of an embedder that gives tokens."""

    def __init__(self, inner: TokenEmbedder) -> None:
        super().__init__(inner)
        self.token_space = inner.token_space
        self.token_dimensions = inner.token_dimensions
        self._encoder = inner
        self._tokens: dict[_Asked, TokenEmbedding] = {}

    def embed_tokens(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[TokenEmbedding]:
        """Embed what is new, remember it, and answer in the order of the texts."""
        new = [text for text in dict.fromkeys(texts) if (purpose, text) not in self._tokens]
        if new:
            made = self._encoder.embed_tokens(new, purpose=purpose)
            for text, found in zip(new, made, strict=True):  # type: ignore[arg-type]  # sync
                self._tokens[purpose, text] = found
        return [self._tokens[purpose, text] for text in texts]

    def load(self, folder: Path) -> None:
        """Read what `save` wrote for the same embedder, if anything."""
        super().load(folder)
        self._tokens |= _pickled(self._file(folder, "tokens"))

    def save(self, folder: Path) -> None:
        """Write what is known of documents, for later runs."""
        super().save(folder)
        self._file(folder, "tokens").write_bytes(pickle.dumps(_of_documents(self._tokens)))


def _of_documents(known: dict[_Asked, Any]) -> dict[_Asked, Any]:
    return {key: found for key, found in known.items() if key[0] == "document"}


def _pickled(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = pickle.loads(file.read_bytes()) if file.exists() else {}
    return found


def cached(inner: Embedder) -> Cached:
    """Cache what an embedder gives, tokens too if it gives any."""
    return CachedTokens(inner) if isinstance(inner, TokenEmbedder) else Cached(inner)


def vectors(
    model: Cached, texts: Sequence[str], purpose: Literal["query", "document"]
) -> NDArray[np.float64]:
    """Read the vectors that a memory with this model compares, a row for each text."""
    if isinstance(model, CachedTokens):
        return np.array([one.vector for one in model.embed_tokens(texts, purpose=purpose)], float)
    return np.array(model.embed(texts, purpose=purpose), float)


def embedder(name: str) -> Embedder:
    """Make the embedder that the command line names: `default`, `minilm-tokens` or `hash`."""
    made = {"default": SentenceEncoder, "minilm-tokens": MiniLMTokens, "hash": _hash_embedder}
    return made[name]()


def _hash_embedder() -> HashEmbedder:
    return HashEmbedder(256)


def ranks(found: Sequence[str], gold: Collection[str]) -> list[int]:
    """Find the ranks of the gold records from 1, ascending; `UNFOUND` for those not found."""
    at = {one: place for place, one in enumerate(found, 1)}
    return sorted(at.get(one, UNFOUND) for one in gold)


def recall(places: Sequence[int], k: int) -> float:
    """Share of the gold records among the first k."""
    return sum(place <= k for place in places) / len(places)


def gain(places: Sequence[int], k: int) -> float:
    """Normalised discounted cumulative gain of the first k, in 0..1."""
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(places), k) + 1))
    return sum(1 / math.log2(place + 1) for place in places if place <= k) / ideal


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Read p50 and p95, in milliseconds."""
    if len(seconds) < 2:
        return seconds[0] * 1e3, seconds[0] * 1e3
    cuts = statistics.quantiles(seconds, n=20)
    return statistics.median(seconds) * 1e3, cuts[18] * 1e3
