"""Filter compiler and searches of the embedded index.

Conditions are at least as wide as the query; every row is checked once more.
"""

from collections.abc import Callable, Collection
from typing import Any

import qdrant_edge as qe

from ...model import Record, Scope
from ...ports.stores import Query
from ..shared.payload import Dialect, focus, tags_of
from ..shared.payload import read as read_row

Rows = dict[str, tuple[Record, int]]
Ask = Callable[..., qe.QueryRequest]


def ask_row(
    query: qe.Query, params: qe.SearchParams | None, conditions: list[Any], limit: int, *, row: bool
) -> qe.QueryRequest:
    """Make a request for the `limit` best, with the text of their rows or without."""
    return qe.QueryRequest(
        limit=limit,
        query=query,
        params=params,
        filter=qe.Filter(must=conditions),
        with_payload=["row"] if row else False,
    )


def best(
    shard: qe.EdgeShard, ask: Ask, conditions: list[Any], limit: int, probe: Query, read: Rows
) -> dict[str, float]:
    """Read the `limit` best that the probe may see; their records go to `read`."""
    wanted = limit
    while True:
        answers = shard.query(ask(conditions, wanted, row=True))
        kept: dict[str, float] = {}
        for answer in answers:
            held = read_row((answer.payload or {})["row"])
            one = held[0]
            if len(kept) < limit and (one.id in read or probe.shows(one)):
                read[one.id], kept[one.id] = held, answer.score
        if len(kept) == limit or len(answers) < wanted:
            return kept
        wanted *= 4


def scores(shard: qe.EdgeShard, ask: Ask | None, ids: Collection[str]) -> dict[str, float]:
    """Score these records; one that shares no term with the question is left out."""
    if not ids or not ask:
        return {}
    request = ask([qe.HasIdCondition(set(ids))], len(ids), row=False)
    return {str(answer.id): answer.score for answer in shard.query(request)}


def equals(field: str, *values: str) -> Any:
    """Ask for one of these values."""
    match = qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values))
    return qe.FieldCondition(field, match=match)


def covered(scope: Scope, version: int | None = None) -> qe.Filter:
    """Ask for what a scope covers, up to a version if one is given."""
    conditions = [equals("scopes", scope.key)]
    if version is not None:
        conditions.append(qe.FieldCondition("version", range=qe.RangeFloat(lte=version)))
    return qe.Filter(must=conditions)


def visible(probe: Query, *, expiring: bool) -> list[Any]:
    """Ask for what a probe may see; `expiring` when some record of the store has an end."""
    every = probe.as_of is not None or (probe.include_superseded or probe.include_expired)
    key, rest = (probe.scope.key, probe.where) if every else focus(probe.scope, probe.where)
    conditions = [equals("scopes" if every else "live", key)]
    if expiring and not every:
        # A thousandth of a second wider than asked: the row's own time decides.
        ahead = qe.RangeFloat(gte=probe.at.timestamp() - 0.001)
        later = qe.Filter(must=[equals("passing", key), qe.FieldCondition("until", range=ahead)])
        conditions = [qe.Filter(should=[*conditions, later])]
    if probe.kinds:
        conditions.append(equals("tags", *tags_of("kind", probe.kinds)))
    where = _DIALECT.translate(rest) if rest else None
    return [*conditions, where] if where else conditions


def _between(field: str, low: float | None, high: float | None) -> Any:
    return qe.FieldCondition(f'numbers."{field}"', range=qe.RangeFloat(gte=low, lte=high))


_DIALECT = Dialect(qe.Filter, equals, _between)
