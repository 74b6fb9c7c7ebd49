"""Filter compiler and search requests of the Qdrant index.

Conditions are at least as wide as the query; every row is checked once more. Both scores of every
candidate come back in one request: two queries over the same two lists of candidates, one that
scores their union by vector, one that scores it by terms.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ...filters import TIMES
from ...model import Record, Scope
from ...ports.stores import Hit, Query
from ..shared.payload import Dialect, focus, tags_of, to_hits
from ..shared.payload import read as read_row
from .client import models as m

Row = tuple[Record, int]


def ways(probe: Query, vector: list[float], look: m.SearchParams | None) -> list[dict[str, Any]]:
    """Say how to score by vector and, when the probe has terms, by terms.

    Args:
        look: how to look at vectors.
    """
    found: list[dict[str, Any]] = [
        {"query": m.NearestQuery(nearest=vector), "using": "dense", "params": look}
    ]
    if probe.terms.indices:
        terms = m.SparseVector(indices=list(probe.terms.indices), values=list(probe.terms.weights))
        rarity = m.SearchParams(idf=m.IdfCorpusParams(corpus=covered(probe.scope)))
        found.append({"query": m.NearestQuery(nearest=terms), "using": "terms", "params": rarity})
    return found


def united(
    candidates: Sequence[dict[str, Any]],
    scorers: Sequence[dict[str, Any]],
    seen_by: m.Filter,
    limit: int,
    parts: int,
    bucket: str | None,
) -> list[m.QueryRequest]:
    """Ask for the `limit` best of each way, and for both scores of every one of them.

    Args:
        parts: shards that the scope is spread over; each answers with its own best.
    """
    lists = [m.Prefetch(**way, filter=seen_by, limit=limit) for way in candidates]
    asked = {"prefetch": lists, "limit": len(lists) * limit * parts, "shard_key": bucket}
    return _requests(scorers, asked)


def alone(
    scorers: Sequence[dict[str, Any]], here: m.Filter, limit: int, bucket: str | None
) -> list[m.QueryRequest]:
    """Ask for both scores of the records that a filter chooses, at most `limit`."""
    return _requests(scorers, {"filter": here, "limit": limit, "shard_key": bucket})


def _requests(scorers: Sequence[dict[str, Any]], asked: dict[str, Any]) -> list[m.QueryRequest]:
    rows: list[Any] = [["row"], *[False] * len(scorers)]
    return [
        m.QueryRequest(**way, **asked, with_payload=row)
        for way, row in zip(scorers, rows, strict=False)
    ]


def best(answers: Sequence[Any], probe: Query, wanted: int, limit: int) -> list[Hit] | None:
    """Unite the `limit` best of each list that the probe may see; best dense first, ties by id.

    Args:
        answers: to `united`, where `wanted` were asked for.

    Returns:
        None when there may be more to see than was asked for.
    """
    shown = _shown(answers[0], probe)
    keep: set[str] = set()
    for answer in answers:
        listed = [str(point.id) for point in answer.points[:wanted]]
        seen = [one for one in listed if one in shown][:limit]
        if len(seen) < limit and len(listed) == wanted:
            return None
        keep.update(seen)
    return hits(answers, {key: row for key, row in shown.items() if key in keep})


def seen(answers: Sequence[Any], probe: Query) -> list[Hit]:
    """Turn the answers to `alone` into hits, leaving out what the probe may not see."""
    return hits(answers, _shown(answers[0], probe))


def hits(answers: Sequence[Any], rows: dict[str, Row]) -> list[Hit]:
    """Join both scores of these rows; one that shares no term with the question has 0 there."""
    dense, lexical = (
        {str(point.id): point.score for answer in some for point in answer.points}
        for some in (answers[:1], answers[1:])
    )
    return to_hits(rows, dense, lexical)


def _shown(answer: Any, probe: Query) -> dict[str, Row]:
    rows = {str(point.id): read_row(point.payload["row"]) for point in answer.points}
    return {key: row for key, row in rows.items() if probe.shows(row[0])}


def equals(field: str, *values: str) -> m.FieldCondition:
    """Ask for one of these values."""
    if len(values) == 1:
        return m.FieldCondition(key=field, match=m.MatchValue(value=values[0]))
    return m.FieldCondition(key=field, match=m.MatchAny(any=list(values)))


def within(field: str, **bounds: float | None) -> m.FieldCondition:
    """Ask for a number inside bounds."""
    return m.FieldCondition(key=field, range=m.Range(**bounds))


def has_id(ids: Iterable[str]) -> m.HasIdCondition:
    """Ask for these ids."""
    return m.HasIdCondition(has_id=list(ids))


def covered(scope: Scope, version: int | None = None) -> m.Filter:
    """Ask for what a scope covers, up to a version if one is given."""
    newest = [] if version is None else [within("version", lte=version)]
    return m.Filter(must=[equals("scopes", scope.key), *newest])


def older(records: Iterable[Record]) -> m.Filter:
    """Ask for those of these records that are held with a lesser version."""
    by_version: dict[int, list[str]] = {}
    for record in records:
        by_version.setdefault(record.version, []).append(record.id)
    return m.Filter(
        should=[
            m.Filter(must=[has_id(ids), within("version", lt=version)])
            for version, ids in by_version.items()
        ]
    )


def visible(probe: Query, *, ranges: bool) -> m.Filter:
    """Ask for what a probe may see.

    Args:
        ranges: whether numbers without an index of their own may be asked for.
    """
    key, rest = focus(probe.scope, probe.where)
    if probe.as_of is not None or (probe.include_superseded or probe.include_expired):
        rest = probe.where
        conditions: list[Any] = [equals("scopes", probe.scope.key)]
    else:
        # A thousandth of a second wider than asked: the row's own time decides.
        ahead = within("until", gte=probe.at.timestamp() - 0.001)
        later = m.Filter(must=[equals("passing", key), ahead])
        conditions = [m.Filter(should=[equals("live", key), later])]
    if probe.kinds:
        conditions.append(equals("tags", *tags_of("kind", probe.kinds)))
    dialect = Dialect(m.Filter, equals, _between if ranges else _between_times)
    where = dialect.translate(rest) if rest else None
    return m.Filter(must=[*conditions, where] if where else conditions)


def _between(field: str, low: float | None, high: float | None) -> Any:
    path = f"numbers.{field}" if field in TIMES else f'numbers."{field}"'
    return within(path, gte=low, lte=high)


def _between_times(field: str, low: float | None, high: float | None) -> Any:
    return _between(field, low, high) if field in TIMES else None
