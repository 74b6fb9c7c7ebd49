"""Checked vectors and their bytes, and the best cosines of a query's tokens (MaxSim)."""

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidVectorError
from ...ports.stores import Query
from ...types import TokenEmbedding

Tokens = NDArray[np.int8]

FIELD = "tokens"  # of a payload
_RECORDS = 512  # compared at once
# Multiplications in one product up to which OpenBLAS uses one thread. With more it spreads over all
# cores, and searches at once wait for each other.
_ONE_THREAD = 2**18
_UNIT = 127.0 * 127.0


def checked(vectors: Sequence[Sequence[float]], dimensions: int) -> list[list[float]]:
    """Check vectors as `to_table` does, and return them as lists."""
    table: list[list[float]] = to_table(vectors, dimensions).tolist()
    return table


def to_row(vector: Any, dimensions: int) -> NDArray[np.float32]:
    """Check a single vector and convert it, as `to_table`."""
    if isinstance(vector, np.ndarray) and vector.dtype == np.float32 and len(vector) == dimensions:
        square = float(vector @ vector)
        if 1e-12 <= square < math.inf:  # as of every vector of unit length
            return vector
    row: NDArray[np.float32] = to_table([vector], dimensions)[0]
    return row


def to_table(vectors: Sequence[Sequence[float]], dimensions: int) -> NDArray[np.float32]:
    """Check vectors and convert them to rows in single precision, all or none.

    Raises:
        InvalidVectorError: one is not finite, is zero or has not `dimensions` numbers.
    """
    for vector in vectors:
        if len(vector) != dimensions:
            raise InvalidVectorError(
                reason="has the wrong length", expected=dimensions, got=len(vector)
            )
    with np.errstate(over="ignore"):
        table = np.asarray(vectors, np.float32).reshape(-1, dimensions)
    squares = np.einsum("ij,ij->i", table, table, dtype=np.float64)
    if not np.isfinite(squares).all():
        raise InvalidVectorError(reason="is not finite", expected=dimensions, got=dimensions)
    if (squares < 1e-12).any():
        raise InvalidVectorError(reason="is zero", expected=dimensions, got=dimensions)
    return table


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


def to_field(passages: Sequence[bytes], dimensions: int) -> dict[str, Any]:
    """Convert the token vectors of each passage to a field of a payload; none if there are none.

    Raises:
        InvalidVectorError: the last one of a passage is shorter.
    """
    if not dimensions or not any(passages):
        return {}
    texts = [b64encode(to_tokens(raw, dimensions).tobytes()).decode() for raw in passages]
    return {FIELD: texts if len(texts) > 1 else texts[0]}


def from_field(payload: Mapping[str, Any] | None) -> list[bytes]:
    """Read the token vectors of each passage in a payload; empty ones if there are none."""
    held = (payload or {}).get(FIELD, "")
    return [b64decode(text) for text in ([held] if isinstance(held, str) else held)]


def asked_tokens(query: Query, dimensions: int) -> Tokens | None:
    """Read the tokens of a query; None if it or the index has none."""
    return to_tokens(query.tokens, dimensions) if dimensions and query.tokens else None


def pack_passages(vectors: Sequence[NDArray[np.float32]], tokens: Sequence[bytes]) -> bytes:
    """Encode the passages after the first one; empty if there are none."""
    if not len(vectors):
        return b""
    pairs = zip(vectors, tokens, strict=True)
    return msgspec.msgpack.encode([(one.astype("<f4").tobytes(), some) for one, some in pairs])


def unpack_passages(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Decode passages to the bytes of the vector and of the tokens of each."""
    return msgspec.msgpack.decode(raw, type=list[tuple[bytes, bytes]]) if raw else []


def to_embeddings(raw: bytes, *, has_tokens: bool) -> tuple[TokenEmbedding, ...]:
    """Decode passages to what `TokenEmbedding.following` has."""
    return tuple(
        TokenEmbedding(
            vector=np.frombuffer(vector, "<f4").tolist(), tokens=tokens if has_tokens else b""
        )
        for vector, tokens in unpack_passages(raw)
    )
