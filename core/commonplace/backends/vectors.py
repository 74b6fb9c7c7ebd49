"""Vectors as every index takes them: checked before an engine sees them, which is too late."""

from collections.abc import Sequence

import numpy as np

from ..errors import InvalidVector


def checked(vectors: Sequence[Sequence[float]], dimensions: int) -> list[list[float]]:
    """Bring vectors to single precision, all or none.

    Raises:
        InvalidVector: one is not finite, is zero or has not `dimensions` numbers.
    """
    for vector in vectors:
        if len(vector) != dimensions:
            raise InvalidVector(reason="has the wrong length", expected=dimensions, got=len(vector))
    with np.errstate(over="ignore"):
        table = np.asarray(vectors, np.float32).reshape(-1, dimensions)
    sizes = np.linalg.norm(table.astype(np.float64), axis=1)
    for bad, reason in ((~np.isfinite(sizes), "is not finite"), (sizes < 1e-6, "is zero")):
        if bad.any():
            raise InvalidVector(reason=reason, expected=dimensions, got=dimensions)
    return table.tolist()
