"""Filter compiler and searches of the embedded index.

Conditions are at least as wide as the query; every row is checked once more.
"""

from collections.abc import Callable, Collection
from typing import Any

import qdrant_edge as qe

from ...model import Record, Scope
from ...ports.stores import Query
from ..shared.payload import FilterCompiler, focus, read_row, tags_of

ReadRecords = dict[str, tuple[Record, int]]  # by id, with the length in words
MakeRequest = Callable[..., qe.QueryRequest]


def make_request(
    query: qe.Query, params: qe.SearchParams | None, conditions: list[Any], limit: int, *, row: bool
) -> qe.QueryRequest:
    """Make a request for the `limit` best points, with or without the text of their rows."""
    return qe.QueryRequest(
        limit=limit,
        query=query,
        params=params,
        filter=qe.Filter(must=conditions),
        with_payload=["row"] if row else False,
    )


def best(
    shard: qe.EdgeShard,
    request: MakeRequest,
    conditions: list[Any],
    limit: int,
    query: Query,
    read: ReadRecords,
) -> dict[str, float]:
    """Read the scores of the `limit` best records that match the query, and add those to `read`."""
    wanted = limit
    while True:
        points = shard.query(request(conditions, wanted, row=True))
        kept: dict[str, float] = {}
        for point in points:
            record, words = read_row((point.payload or {})["row"])
            if len(kept) < limit and (record.id in read or query.matches(record)):
                read[record.id], kept[record.id] = (record, words), point.score
        if len(kept) == limit or len(points) < wanted:
            return kept
        wanted *= 4


def scores(
    shard: qe.EdgeShard, request: MakeRequest | None, ids: Collection[str]
) -> dict[str, float]:
    """Score these records; one that shares no term with the query is left out."""
    if not ids or not request:
        return {}
    points = shard.query(request([qe.HasIdCondition(set(ids))], len(ids), row=False))
    return {str(point.id): point.score for point in points}


def equals(field: str, *values: str) -> Any:
    """Condition that a field has one of these values."""
    match = qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values))
    return qe.FieldCondition(field, match=match)


def covered(scope: Scope, version: int | None = None) -> qe.Filter:
    """Filter for what a scope covers, up to a version if one is given."""
    conditions = [equals("scopes", scope.key)]
    if version is not None:
        conditions.append(qe.FieldCondition("version", range=qe.RangeFloat(lte=version)))
    return qe.Filter(must=conditions)


def visible(query: Query, *, expiring: bool) -> list[Any]:
    """Compile the conditions of a query; `expiring` if some record of the store has an end."""
    every = query.as_of is not None or (query.include_superseded or query.include_expired)
    key, rest = (query.scope.key, query.where) if every else focus(query.scope, query.where)
    conditions = [equals("scopes" if every else "live", key)]
    if expiring and not every:
        # A millisecond wider than the query: the time in the row decides.
        ahead = qe.RangeFloat(gte=query.at.timestamp() - 0.001)
        later = qe.Filter(must=[equals("passing", key), qe.FieldCondition("until", range=ahead)])
        conditions = [qe.Filter(should=[*conditions, later])]
    if query.kinds:
        conditions.append(equals("tags", *tags_of("kind", query.kinds)))
    where = _COMPILER.compile(rest) if rest else None
    return [*conditions, where] if where else conditions


def _between(field: str, low: float | None, high: float | None) -> Any:
    return qe.FieldCondition(f'numbers."{field}"', range=qe.RangeFloat(gte=low, lte=high))


_COMPILER = FilterCompiler(qe.Filter, equals, _between)
