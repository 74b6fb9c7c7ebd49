"""Postings of terms: which loaded rows have a term, and with what weight."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.intp]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


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
    starts = np.searchsorted(postings.terms, asked, side="left")
    ends = np.searchsorted(postings.terms, asked, side="right")
    slices = [slice(*ends_) for ends_ in zip(starts.tolist(), ends.tolist(), strict=True)]
    found = Occurrences(
        np.repeat(np.arange(len(asked)), ends - starts),
        np.concatenate([NONE_FOUND.places, *(postings.places[part] for part in slices)]),
        np.concatenate([NONE_FOUND.weights, *(postings.weights[part] for part in slices)]),
    )
    return found, ends - starts
