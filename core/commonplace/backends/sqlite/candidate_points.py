"""Candidates of a search among loaded points, their passages, their terms, and their scores.

The first passage of a text is a row of `point_cache.Points`, as the only one of a short text is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ports.stores import Terms
from ..shared.late_interaction import best_cosines
from ..shared.rows import Tokens

Numbers = NDArray[np.intp]
Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

_BLOCK = 512  # vectors that are converted at once, so that they stay in the processor's cache
DECIMALS = 6  # of a score: equal vectors must not differ by the order of additions

_INEXACT = 1e-5  # of sums in single precision, and of a rounded score
_KINDS = {"row": "i8", "token": "i8", "tokens": "i4"}  # of the columns of passages


class TokenRows(NamedTuple):
    """Token vectors, and where each row of points, or each passage, has its own."""

    tokens: Tokens
    starts: NDArray[np.int64]
    counts: NDArray[np.int32]

    def among(self, rows: Numbers) -> "TokenRows":
        """Choose some rows."""
        return self._replace(starts=self.starts[rows], counts=self.counts[rows])

    def best(self, asked: Tokens) -> Floats:
        """Find the best cosine of each asked token in each row."""
        return best_cosines(asked, self.tokens, self.starts, self.counts)


class Occurrences(NamedTuple):
    """Occurrences of terms: number of the term, row or candidate that has it, and its weight."""

    terms: Numbers
    places: Numbers
    weights: Floats

    def among(self, chosen: Mask | Numbers) -> "Occurrences":
        """Choose some of them, by a mask or in an order."""
        return Occurrences(self.terms[chosen], self.places[chosen], self.weights[chosen])


NONE_FOUND = Occurrences(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.float32))
_NOTHING = Occurrences(np.zeros(0, np.uint32), np.zeros(0, np.intp), np.zeros(0, np.float32))


# -- vectors in a quarter of their space -----------------------------------------------------------
# A number takes one byte, with one scale for each vector. How far a cosine may then be from the
# exact one is known, so that a search reads exact vectors only of those that may be among the best.


def shrink(vectors: Floats) -> tuple[NDArray[np.int8], Floats, float]:
    """Shrink vectors of unit length.

    Returns:
        The numbers of each, its scale, and by how much a cosine with one of them may be wrong.
    """
    scales: Floats = np.abs(vectors).max(axis=1) / np.float32(127)
    small = np.rint(vectors / scales[:, None]).astype(np.int8)
    errors = np.linalg.norm(vectors - small * scales[:, None], axis=1)
    return small, scales, float(errors.max()) + _INEXACT


class RefinedScores:
    """Scores of candidates, which are computed exactly when they are read.

    Args:
        near: of each candidate. error: by how much one of them may be wrong.
        compute: computes the exact ones of some candidates; None if they are exact.
    """

    def __init__(
        self, near: Scores, error: float = 0.0, compute: Callable[[Numbers], Scores] | None = None
    ) -> None:
        self._near, self._error, self._compute = near, error, compute
        self._exact: Scores = near if compute is None else np.full(len(near), np.nan)

    def __getitem__(self, at: Numbers) -> Scores:
        """Read those of some candidates."""
        if self._compute is not None:
            missing = at[np.isnan(self._exact[at])]
            if len(missing):
                self._exact[missing] = self._compute(missing)
        return self._exact[at]

    def best(self, number: int) -> tuple[float, Numbers, Scores]:
        """Find a limit, the candidates whose score may not be below it, and their scores."""
        least = len(self._near) - number
        lowest = np.partition(self._near, least)[least] if least > 0 else -np.inf
        at = np.flatnonzero(self._near >= lowest)
        return lowest + self._error, at, self[at]


# -- passages --------------------------------------------------------------------------------------


def with_room(array: NDArray[Any], size: int, wanted: int) -> NDArray[Any]:
    """Return an array with room for `wanted` rows: itself, or a copy of the first `size` rows.

    A copy that is not the first has some room more, so that not every addition makes one.
    """
    if wanted <= len(array):
        return array
    more = size // 4 + 16 if size else 0
    grown = np.empty((wanted + more, *array.shape[1:]), array.dtype)
    grown[:size] = array[:size]
    return grown


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
        self._vectors = with_room(self._vectors, start, end)
        self._vectors[start:end] = vectors
        for name, values in columns.items():
            self._columns[name] = with_room(self._columns[name], start, end)
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
        made = object.__new__(PassageRows)
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
    scores = np.round(products.astype(np.float64), DECIMALS)
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
    columns = [[getattr(part, one.name) for part in moved] for one in fields(PassageScores)]
    return PassageScores(*map(np.concatenate, columns))


# -- candidates ------------------------------------------------------------------------------------


@dataclass(slots=True)
class CandidatePoints:
    """Points that a query may show, in no order, and what is needed to score them.

    Attributes:
        ids: of the records, by row. rows: of each candidate.
        words: of each candidate.
        number: of points that the scope covers, if terms are asked for.
        frequencies: how many of them have each term.
        occurrences: of the terms in candidates, by candidate.
        tokens, vectors: of the points, by row, of each the first passage; None if they are not
            loaded.
        scales: of the vectors, if they are small.
        further: the passages after the first; None if they are not loaded.
        cosines: of each candidate with the query, and `refined` the exact ones if these are only
            near.
        passages: cosines of the candidates with several; None if there are none.
    """

    ids: Sequence[str]
    rows: Numbers
    words: NDArray[np.int32]
    number: int
    frequencies: Numbers
    occurrences: Occurrences
    tokens: TokenRows | None = None
    vectors: NDArray[Any] | None = None
    scales: Floats | None = None
    further: PassageRows | None = None
    cosines: Scores = field(default_factory=lambda: np.zeros(0))
    passages: PassageScores | None = None
    refined: RefinedScores | None = None

    @property
    def dense(self) -> Scores | RefinedScores:
        """Exact cosine of each candidate with the query."""
        return self.cosines if self.refined is None else self.refined

    def score(self, vector: Floats) -> None:
        """Compute the cosine of each candidate with a vector of unit length; needs no lock."""
        if self.vectors is None or self.further is None:
            raise ValueError("no vectors are loaded")
        rows, size = self.rows, len(self.vectors)
        is_most = 2 * len(rows) >= size
        products = multiply(self.vectors if is_most else self.vectors[rows], vector)
        scores = (products[rows] if is_most else products).astype(np.float64)
        if self.scales is not None:
            scores *= self.scales[rows]
        self.cosines = np.round(scores, DECIMALS)
        if self.further.size:
            self.passages = score_passages(self.further, rows, size, vector, self.cosines)

    def tokens_of(self, chosen: Numbers) -> tuple[TokenRows, Numbers]:
        """Gather the tokens of all passages of some candidates, and which of them each is of."""
        if self.tokens is None or self.passages is None or self.further is None:
            raise ValueError("no passages are loaded")
        first, columns = self.tokens.among(self.rows[chosen]), self.further.columns
        places = [self.passages.further_places(one) for one in chosen.tolist()]
        every = np.concatenate(places)
        numbers = np.arange(len(chosen))
        owners = np.concatenate([numbers, np.repeat(numbers, list(map(len, places)))])
        starts = np.concatenate([first.starts, columns["token"][every]])
        counts = np.concatenate([first.counts, columns["tokens"][every]])
        return TokenRows(self.tokens.tokens, starts, counts), owners

    def lexical(self, terms: Terms) -> Scores:
        """Compute the weighted term product of each candidate."""
        if not len(self.frequencies):
            return np.zeros(len(self.rows))
        n = self.frequencies
        weights = np.log(1 + (self.number - n + 0.5) / (n + 0.5)) * np.asarray(terms.weights)
        which, places, weight = self.occurrences
        products = weights[which] * weight
        scores = np.bincount(places, weights=products, minlength=len(self.rows))
        return np.round(scores, DECIMALS)

    def weights(self, chosen: Numbers) -> list[tuple[float, ...]]:
        """List the weight of each term in some candidates, 0 where one does not have it."""
        if not len(self.frequencies):
            return [()] * len(chosen)
        numbers = np.full(len(self.rows), -1, np.intp)
        numbers[chosen] = np.arange(len(chosen))
        number = numbers[self.occurrences.places]
        shown = number >= 0
        table = np.zeros((len(chosen), len(self.frequencies)), np.float32)
        table[number[shown], self.occurrences.terms[shown]] = self.occurrences.weights[shown]
        return list(map(tuple, table.tolist()))

    def best_first(self, chosen: Numbers) -> list[int]:
        """Sort some candidates by descending cosine, ties by id."""
        return self._sorted(chosen, self.dense[chosen])

    def best(
        self, scores: Scores | RefinedScores, number: int, *, above: float = -np.inf
    ) -> Iterator[int]:
        """Yield candidates by descending score, ties by id.

        Args:
            number: that is likely to be read; more are sorted when they are read.
            above: leave out those that do not score more than this; for exact scores.
        """
        below, block, places = np.inf, max(number, 16), None
        if isinstance(scores, RefinedScores):
            ranked, block = scores, 4 * block  # the best are likely to be among these
        else:
            places = None if above == -np.inf else np.flatnonzero(scores > above)
            ranked = RefinedScores(scores if places is None else scores[places])
        while below > -np.inf:
            lowest, at, exact = ranked.best(block)
            chosen = (exact >= lowest) & (exact < below)
            found = at[chosen] if places is None else places[at[chosen]]
            yield from self._sorted(found, exact[chosen])
            below, block = lowest, 4 * block

    def _sorted(self, candidates: Numbers, scores: Scores) -> list[int]:
        ids = [self.ids[row] for row in self.rows[candidates].tolist()]
        ordered = sorted(zip((-scores).tolist(), ids, candidates.tolist(), strict=True))
        return [candidate for _, _, candidate in ordered]


def multiply(vectors: Floats | NDArray[np.int8], vector: Floats) -> Floats:
    """Multiply each vector with another one."""
    if vectors.dtype == np.float32:
        # As one product per row: BLAS spreads a matrix-vector product over all cores, and searches
        # at once then wait for each other.
        products: Floats = np.matmul(vectors[:, None, :], vector[:, None])[:, 0, 0]
        return products
    found = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), _BLOCK):
        some = slice(start, start + _BLOCK)
        found[some] = multiply(vectors[some].astype(np.float32), vector)
    return found


def join(parts: Sequence[CandidatePoints], terms: Terms) -> CandidatePoints:
    """Join candidates of several blocks of points; their rows get new numbers."""
    starts = np.cumsum([0, *(len(part.rows) for part in parts)])
    found = [
        part.occurrences._replace(places=part.occurrences.places + start)
        for part, start in zip(parts, starts, strict=False)
    ]
    return CandidatePoints(
        ids=[part.ids[row] for part in parts for row in part.rows.tolist()],
        rows=np.arange(starts[-1]),
        words=_joined([part.words for part in parts], "i4"),
        cosines=_joined([part.cosines for part in parts], "f8"),
        number=sum(part.number for part in parts),
        frequencies=sum((p.frequencies for p in parts), np.zeros(len(terms.indices), np.intp)),
        occurrences=concatenated(NONE_FOUND, *found),
        passages=join_scores([part.passages for part in parts], starts[:-1].tolist())
        if any(part.passages for part in parts)
        else None,
    )


def _joined(arrays: Sequence[NDArray[Any]], kind: str) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *arrays])


# -- postings ----------------------------------------------------------------------------------


class Postings:
    """Occurrences of terms by row, sorted by term: most of them, and those added since."""

    def __init__(self) -> None:
        self._sorted = _by_term(_NOTHING)
        self._added = self._sorted

    def add(self, start: int, terms: Sequence[bytes], weights: Sequence[bytes]) -> None:
        """Add the terms of successive rows from `start` on."""
        lengths = [len(raw) // 4 for raw in terms]
        new = Occurrences(
            np.frombuffer(b"".join(terms), "<u4"),
            np.repeat(np.arange(start, start + len(terms)), lengths),
            np.frombuffer(b"".join(weights), "<f4"),
        )
        self._added = _by_term(self._added, new)
        if len(self._added.terms) > len(self._sorted.terms) // 16 + 4096:
            self._sorted, self._added = _by_term(self._sorted, self._added), _by_term(_NOTHING)

    def find(self, indices: Sequence[int]) -> tuple[Occurrences, Numbers]:
        """Find the rows that have these terms, dead ones too, and how many rows have each.

        In the result `terms` are places in `indices`.
        """
        if not len(indices):
            return NONE_FOUND, np.zeros(0, np.intp)
        asked = np.array(indices, np.uint32)
        if not len(self._added.terms):
            return _find(self._sorted, asked)
        added, numbers = _find(self._added, asked)
        if not len(self._sorted.terms):
            return added, numbers
        found, others = _find(self._sorted, asked)
        return concatenated(found, added), numbers + others

    def renumbered(self, moved: Numbers) -> "Postings":
        """Return postings with new row numbers; rows with a negative one are left out."""
        every = _by_term(self._sorted, self._added)
        every = every._replace(places=moved[every.places])
        made = Postings()
        made._sorted = every.among(every.places >= 0)
        return made


def concatenated(*parts: Occurrences) -> Occurrences:
    """Join occurrences, one part after the other."""
    return Occurrences(
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def _by_term(*parts: Occurrences) -> Occurrences:
    every = concatenated(*parts)
    order = np.argsort(every.terms, kind="stable")
    return every.among(order)


def _find(postings: Occurrences, asked: NDArray[np.uint32]) -> tuple[Occurrences, Numbers]:
    """Find the occurrences of terms, of at least one."""
    starts = postings.terms.searchsorted(asked, side="left")
    ends = postings.terms.searchsorted(asked, side="right")
    slices = [slice(*ends_) for ends_ in zip(starts.tolist(), ends.tolist(), strict=True)]
    found = Occurrences(
        np.repeat(np.arange(len(asked)), ends - starts),
        np.concatenate([postings.places[part] for part in slices]),
        np.concatenate([postings.weights[part] for part in slices]),
    )
    return found, ends - starts
