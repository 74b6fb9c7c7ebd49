"""Vectors in a quarter of their space, and cosines that are exact wherever they are read.

A number takes one byte, with one scale for each vector. How far a cosine may then be from the exact
one is known, so that a search reads exact vectors only of those that may be among the best.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
_INEXACT = 1e-5  # of sums in single precision, and of a rounded score


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
    """Cosines of candidates, which are computed exactly when they are read.

    Args:
        near: of each candidate. error: by how much one of them may be wrong.
        compute: computes the exact ones of some candidates.
    """

    def __init__(
        self, near: Scores, error: float, compute: Callable[[NDArray[np.intp]], Scores]
    ) -> None:
        self._near, self._error, self._compute = near, error, compute
        self._exact: Scores = np.full(len(near), np.nan)

    def __getitem__(self, chosen: Sequence[int] | NDArray[np.intp]) -> Scores:
        """Read those of some candidates."""
        at = np.asarray(chosen, np.intp)
        missing = at[np.isnan(self._exact[at])]
        if len(missing):
            self._exact[missing] = self._compute(missing)
        return self._exact[at]

    def best(self, number: int) -> tuple[float, NDArray[np.intp], Scores]:
        """Find candidates among which are all whose score is not below a limit.

        Args:
            number: of candidates to read.

        Returns:
            The limit, those candidates, and their scores.
        """
        least = len(self._near) - number
        lowest = np.partition(self._near, least)[least] if least > 0 else -np.inf
        at = np.flatnonzero(self._near >= lowest)
        return lowest + self._error, at, self[at]
