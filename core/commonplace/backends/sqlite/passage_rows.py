"""Passages of long texts in memory: the vectors of those after the first, and their scores.

The first passage of a text is a row of `point_cache.Points`, as the only one of a short text is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...types import TokenEmbedding

Numbers = NDArray[np.intp]
Floats = NDArray[np.float32]
Scores = NDArray[np.float64]

_DECIMALS = 6  # of a cosine, as of those of first passages
_KINDS = {"row": "i8", "token": "i8", "tokens": "i4"}


def pack(vectors: Sequence[Floats], tokens: Sequence[bytes]) -> bytes:
    """Encode the passages after the first one; empty if there are none."""
    if not len(vectors):
        return b""
    pairs = zip(vectors, tokens, strict=True)
    return msgspec.msgpack.encode([(one.astype("<f4").tobytes(), some) for one, some in pairs])


def unpack(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Decode passages to the bytes of the vector and of the tokens of each.

    Raises:
        ValueError: they are damaged.
    """
    return msgspec.msgpack.decode(raw, type=list[tuple[bytes, bytes]]) if raw else []


def to_embeddings(raw: bytes, *, has_tokens: bool) -> tuple[TokenEmbedding, ...]:
    """Decode passages to what `TokenEmbedding.following` has."""
    return tuple(
        TokenEmbedding(
            vector=np.frombuffer(vector, "<f4").tolist(), tokens=tokens if has_tokens else b""
        )
        for vector, tokens in unpack(raw)
    )


class PassageRows:
    """The passages after the first of the points of a partition, in the order of their rows."""

    def __init__(self, dimensions: int) -> None:
        self.size = 0
        self._vectors: Floats = np.empty((0, dimensions), "f4")
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in _KINDS.items()
        }

    @property
    def bytes(self) -> int:
        """Their size in memory, roughly."""
        return self._vectors.nbytes

    @property
    def vectors(self) -> Floats:
        """The vector of each."""
        return self._vectors[: self.size]

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """By name, of each: the `row` of its point, where its tokens begin, and how many."""
        return {name: column[: self.size] for name, column in self._columns.items()}

    def add(self, vectors: Floats, columns: Mapping[str, Any]) -> None:
        """Add passages of points that come after those of the passages that are here."""
        start, end = self.size, self.size + len(vectors)
        if end > len(self._vectors):
            more = len(vectors) + start // 4
            grown = np.empty((start + more, self._vectors.shape[1]), "f4")
            grown[:start] = self.vectors
            self._vectors = grown
            for name, column in self.columns.items():
                self._columns[name] = np.concatenate([column, np.zeros(more, _KINDS[name])])
        self._vectors[start:end] = vectors
        for name, values in columns.items():
            self._columns[name][start:end] = values
        self.size = end

    def moved(self, rows: Numbers) -> "PassageRows":
        """Copy those whose points have a new row; a negative one leaves out."""
        new = rows[self.columns["row"]]
        kept = np.flatnonzero(new >= 0)
        made = PassageRows(self._vectors.shape[1])
        columns = {name: column[kept] for name, column in self.columns.items()}
        made.add(self.vectors[kept], columns | {"row": new[kept]})
        return made

    def place_tokens(self, starts: NDArray[np.int64]) -> None:
        """Say anew where the tokens of each begin."""
        self._columns["token"][: self.size] = starts

    def snapshot(self) -> "PassageRows":
        """Copy what is here now, without copying vectors, to be read while others are added."""
        made = PassageRows(0)
        made.size, made._vectors, made._columns = self.size, self._vectors, {**self._columns}
        return made


@dataclass(frozen=True)
class PassageScores:
    """Cosines of all passages of the candidates that have several.

    Attributes:
        candidates: those candidates, ascending. first: the cosine of the first passage of each.
        starts, counts: where each has its further passages in `scores`.
        scores: cosines of the further passages. places: their places in `PassageRows`.
        best: the number of the best passage of each of `candidates`, from 0.
    """

    candidates: Numbers
    first: Scores
    starts: Numbers
    counts: Numbers
    scores: Scores
    places: Numbers
    best: Numbers

    def cosines(self, candidate: int) -> tuple[float, ...]:
        """List the cosines of a candidate's passages; empty for one that has a single one."""
        if (n := self._found.get(candidate)) is None:
            return ()
        start = int(self.starts[n])
        further = self.scores[start : start + int(self.counts[n])].tolist()
        return (float(self.first[n]), *further)

    def number(self, candidate: int) -> int:
        """Return the number of a candidate's best passage, from 0."""
        n = self._found.get(candidate)
        return 0 if n is None else int(self.best[n])

    def refine(self, candidates: Numbers, scores: Scores) -> None:
        """Take exact cosines of first passages, and replace each by that of the best passage."""
        for place, candidate in enumerate(candidates.tolist()):
            if (n := self._found.get(candidate)) is not None:
                start = int(self.starts[n])
                further = self.scores[start : start + int(self.counts[n])]
                top = int(further.argmax())
                self.first[n] = scores[place]
                self.best[n] = top + 1 if further[top] > scores[place] else 0
                scores[place] = max(scores[place], further[top])

    def further_places(self, candidate: int) -> Numbers:
        """List the places in `PassageRows` of a candidate's passages after the first."""
        if (n := self._found.get(candidate)) is None:
            return self.places[:0]
        start = int(self.starts[n])
        return self.places[start : start + int(self.counts[n])]

    @cached_property
    def _found(self) -> dict[int, int]:
        return {candidate: n for n, candidate in enumerate(self.candidates.tolist())}


def score_passages(
    passages: PassageRows, rows: Numbers, size: int, vector: Floats, dense: Scores
) -> PassageScores | None:
    """Score the passages of candidates; None if each has a single one.

    Args:
        rows: of the candidates, ascending. size: number of all rows.
        dense: the cosine of each candidate's first passage; that of the best one afterwards.
    """
    numbers = np.full(size, -1, np.intp)
    numbers[rows] = np.arange(len(rows))
    owners = numbers[passages.columns["row"]]
    places = np.flatnonzero(owners >= 0)
    if not len(places):
        return None
    products = np.matmul(passages.vectors[places][:, None, :], vector[:, None])[:, 0, 0]
    scores = np.round(products.astype(np.float64), _DECIMALS)
    candidates, starts, counts = np.unique(owners[places], return_index=True, return_counts=True)
    first, maxima = dense[candidates], np.maximum.reduceat(scores, starts)
    at = np.flatnonzero(scores == np.repeat(maxima, counts))
    _, firsts = np.unique(np.searchsorted(starts, at, side="right"), return_index=True)
    best = np.where(maxima > first, at[firsts] - starts + 1, 0)
    dense[candidates] = np.maximum(first, maxima)
    return PassageScores(candidates, first, starts, counts, scores, places, best)


def join_scores(parts: Sequence[PassageScores | None], shifts: Sequence[int]) -> PassageScores:
    """Join the scores of several blocks of points, whose candidates get other numbers.

    Args:
        shifts: what to add to the numbers of each block's candidates.
    """
    found = [(part, shift) for part, shift in zip(parts, shifts, strict=True) if part is not None]
    ends = np.cumsum([0, *(len(part.scores) for part, _ in found)])
    moved = [
        replace(part, candidates=part.candidates + shift, starts=part.starts + start)
        for (part, shift), start in zip(found, ends[:-1], strict=True)
    ]
    columns = [[getattr(part, field.name) for part in moved] for field in fields(PassageScores)]
    return PassageScores(*map(np.concatenate, columns))
