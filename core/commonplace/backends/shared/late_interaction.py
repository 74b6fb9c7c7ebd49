"""The best cosines of a query's tokens among those of records (MaxSim)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ports.stores import Query
from .rows import Tokens, to_tokens

_RECORDS = 512  # compared at once
# Multiplications in one product up to which OpenBLAS uses one thread. With more it spreads over all
# cores, and searches at once wait for each other.
_ONE_THREAD = 2**18
_UNIT = 127.0 * 127.0


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
    found = np.empty((len(starts), len(asked)), np.float32)
    there = np.flatnonzero(counts)
    if len(there) < len(starts):
        found.fill(np.nan)
        found[there] = best_cosines(asked, tokens, starts[there], counts[there])
        return found
    query = asked.astype(np.float32).T
    for first in range(0, len(starts), _RECORDS):
        some = slice(first, first + _RECORDS)
        rows, places = _gather(tokens, starts[some], counts[some])
        np.maximum.reduceat(_multiply(rows, query), places, axis=0, out=found[some])
    found /= np.float32(_UNIT)
    return found


def _gather(
    tokens: Tokens, starts: NDArray[Any], counts: NDArray[Any]
) -> tuple[Tokens, NDArray[np.int64]]:
    """Gather the tokens of some records, and where each begins among them."""
    ends = np.cumsum(counts, dtype=np.int64)
    places = ends - counts
    moved = starts - places
    first, number = moved[0], ends[-1]
    if (moved == first).all():  # side by side, as where nothing was removed or left out
        return tokens[first : first + number], places
    return tokens.take(np.repeat(moved, counts) + np.arange(number), axis=0), places


def _multiply(tokens: Tokens, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Multiply tokens, one a row, by those of a query, one a column.

    Exact, as sums of so many products of bytes are whole numbers below 2**24.
    """
    products = np.empty((len(tokens), query.shape[1]), np.float32)
    block = max(1, _ONE_THREAD // query.size)  # its floats stay in the cache of a core, too
    for first in range(0, len(tokens), block):
        some = slice(first, first + block)
        np.matmul(tokens[some].astype(np.float32), query, out=products[some])
    return products


def best_of_each(asked: Tokens, records: Sequence[Sequence[bytes]]) -> list[tuple[float, ...]]:
    """Find the same for records, given with the tokens of each passage; empty for one without."""
    size = asked.shape[1]
    passages = [raw for record in records for raw in record]
    counts = np.array([len(raw) // size for raw in passages], np.intp)
    tokens = np.frombuffer(b"".join(passages), np.int8).reshape(-1, size)
    cosines = best_cosines(asked, tokens, np.cumsum(counts) - counts, counts)
    if len(passages) > len(records):
        owners = np.repeat(np.arange(len(records)), [len(record) for record in records])
        cosines = best_passages(cosines, owners)
    return to_late(cosines)


def best_passages(cosines: NDArray[np.float32], owners: NDArray[np.intp]) -> NDArray[np.float32]:
    """Choose of each record the passage with the greatest mean cosine, the earlier one of equals.

    Args:
        cosines: a row for each passage. owners: number of its record, from 0, each at least once.
    """
    means = cosines.mean(axis=1, dtype=np.float64)
    means[np.isnan(means)] = -np.inf
    order = np.lexsort((-means, owners))
    _, firsts = np.unique(owners[order], return_index=True)
    return cosines[order[firsts]]


def to_late(rows: NDArray[np.float32]) -> list[tuple[float, ...]]:
    """Convert rows to what a hit has; empty for a row that is not numbers."""
    if not rows.size:
        return [()] * len(rows)
    return [tuple(row) if row[0] == row[0] else () for row in rows.tolist()]


def asked_tokens(query: Query, dimensions: int) -> Tokens | None:
    """Read the tokens of a query; None if it or the index has none."""
    return to_tokens(query.tokens, dimensions) if dimensions and query.tokens else None
