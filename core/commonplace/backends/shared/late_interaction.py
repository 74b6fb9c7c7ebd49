"""Best match of each token of a query among the tokens of a record (MaxSim), in numpy."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidVectorError
from ...models.sentence_encoder import one_blas_thread
from ...ports.stores import Query

Tokens = NDArray[np.int8]

FIELD = "tokens"  # of a payload
_MOST_TOKENS = 8192  # compared at once
_UNIT = 127.0 * 127.0


def to_tokens(raw: bytes, dimensions: int) -> Tokens:
    """Read token vectors, one a row.

    Raises:
        InvalidVectorError: the last one is shorter.
    """
    if len(raw) % dimensions:
        reason = "has tokens of the wrong length"
        raise InvalidVectorError(reason=reason, expected=dimensions, got=len(raw) % dimensions)
    return np.frombuffer(raw, np.int8).reshape(-1, dimensions)


def best_cosines(
    asked: Tokens, tokens: Tokens, starts: NDArray[Any], counts: NDArray[Any]
) -> NDArray[np.float32]:
    """Find the best cosine of each asked token among the tokens of each record.

    Args:
        asked: of the query. tokens: of all records.
        starts, counts: where in `tokens` each record has its own.

    Returns:
        A row for each record, a column for each asked token; those of a record without tokens are
        not numbers.
    """
    found = np.full((len(asked), len(starts)), np.nan, np.float32)
    query = asked.astype(np.float32)
    there = np.flatnonzero(counts)
    starts, counts = starts[there], counts[there]
    ends = np.cumsum(counts)
    first = 0
    while first < len(there):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _MOST_TOKENS, side="right")))
        some = starts[first:last]
        places = ends[first:last] - counts[first:last] - before
        rows = np.repeat(some - places, counts[first:last]) + np.arange(ends[last - 1] - before)
        several = tokens.take(rows, axis=0).astype(np.float32)
        with one_blas_thread():  # or it spreads over all cores, and searches at once wait
            # Exact, as sums of so many products of bytes are whole numbers below 2**24.
            products = query @ several.T
        found[:, there[first:last]] = np.maximum.reduceat(products, places, axis=1)
        first = last
    return found.T / np.float32(_UNIT)


def best_of_each(asked: Tokens, records: Sequence[bytes]) -> list[tuple[float, ...]]:
    """Find the same for records with their own tokens; empty for one without."""
    size = asked.shape[1]
    counts = np.array([len(one) // size for one in records], np.intp)
    tokens = np.frombuffer(b"".join(records), np.int8).reshape(-1, size)
    return to_late(best_cosines(asked, tokens, np.cumsum(counts) - counts, counts))


def to_late(rows: NDArray[np.float32]) -> list[tuple[float, ...]]:
    """Convert rows to what a hit has; empty for a row that is not numbers."""
    if not rows.size:
        return [()] * len(rows)
    return [tuple(row) if row[0] == row[0] else () for row in rows.tolist()]


def to_field(raw: bytes, dimensions: int) -> dict[str, str]:
    """Convert token vectors to a field of a payload; no field if there are none.

    Raises:
        InvalidVectorError: the last one is shorter.
    """
    if not dimensions or not raw:
        return {}
    return {FIELD: b64encode(to_tokens(raw, dimensions).tobytes()).decode()}


def from_field(payload: Mapping[str, Any] | None) -> bytes:
    """Read the token vectors in a payload; empty if there are none."""
    return b64decode((payload or {}).get(FIELD, ""))


def asked_tokens(query: Query, dimensions: int) -> Tokens | None:
    """Read the tokens of a query; None if it or the index has none."""
    return to_tokens(query.tokens, dimensions) if dimensions and query.tokens else None
