"""Filter compiler and search requests of the Qdrant index.

Conditions are at least as wide as the query; every row is checked once more. Both scores of every
candidate come back in one request: two queries over the same two lists of candidates, one that
scores their union by vector, one that scores it by terms.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...filters import FIELDS, TIMES, Filter, Predicate, Where, Within, metadata_key
from ...ports.stores import Hit, Query
from ...types import Record, Scope
from ..shared.late_interaction import best_of_each
from ..shared.rows import Tokens, tag_key
from .client import models as m
from .payload import MOST_NUMBER, encode, focus, read_row, read_tokens, tags_of

StoredRecord = tuple[Record, int]  # with its length in words


def scorers(query: Query, nearest: Any, params: m.SearchParams | None) -> list[dict[str, Any]]:
    """Build the scoring by vector and, if the query has terms, by terms."""
    found: list[dict[str, Any]] = [
        {"query": m.NearestQuery(nearest=nearest), "using": "dense", "params": params}
    ]
    if query.terms.indices:
        terms = m.SparseVector(indices=list(query.terms.indices), values=list(query.terms.weights))
        rarity = m.SearchParams(idf=m.IdfCorpusParams(corpus=covered(query.scope)))
        found.append({"query": m.NearestQuery(nearest=terms), "using": "terms", "params": rarity})
    return found


def union_requests(
    candidate_scorers: Sequence[dict[str, Any]],
    final_scorers: Sequence[dict[str, Any]],
    conditions: m.Filter,
    limit: int,
    shards: int,
    bucket: str | None,
    fields: list[str],
) -> list[m.QueryRequest]:
    """Request the `limit` best of each candidate scorer, and both scores of all of them.

    Args:
        shards: over which the scope is spread; each returns its own best.
        fields: of the payload.
    """
    lists = [m.Prefetch(**scorer, filter=conditions, limit=limit) for scorer in candidate_scorers]
    chosen = {"prefetch": lists, "limit": len(lists) * limit * shards, "shard_key": bucket}
    return _requests(final_scorers, chosen, fields)


def filter_requests(
    final_scorers: Sequence[dict[str, Any]],
    conditions: m.Filter,
    limit: int,
    bucket: str | None,
    fields: list[str],
) -> list[m.QueryRequest]:
    """Request both scores of the records that a filter chooses, at most `limit`."""
    chosen = {"filter": conditions, "limit": limit, "shard_key": bucket}
    return _requests(final_scorers, chosen, fields)


def _requests(
    final_scorers: Sequence[dict[str, Any]], chosen: dict[str, Any], fields: list[str]
) -> list[m.QueryRequest]:
    payloads: list[Any] = [fields, *[False] * len(final_scorers)]
    # They come with the records, as ranking compares records with each other.
    vectors: list[Any] = [["dense", "terms"] if len(final_scorers) > 1 else ["dense"], False]
    return [
        m.QueryRequest(**scorer, **chosen, with_payload=payload, with_vector=vector)
        for scorer, payload, vector in zip(final_scorers, payloads, vectors, strict=False)
    ]


def best_hits(
    responses: Sequence[Any], query: Query, asked: Tokens | None, wanted: int, limit: int
) -> list[Hit] | None:
    """Unite the `limit` best of each list that match the query; best dense first, ties by id.

    Args:
        responses: to `union_requests` with the limit `wanted`.
        asked: tokens of the query, if those of the records were read.
    """
    matching = _matching(responses[0], query)
    kept: set[str] = set()
    for response in responses:
        listed = [str(point.id) for point in response.points[:wanted]]
        best = [key for key in listed if key in matching][:limit]
        if len(best) < limit and len(listed) == wanted:
            return None
        kept.update(best)
    found = {key: stored for key, stored in matching.items() if key in kept}
    return _to_hits(responses, found, query, asked)


def matching_hits(responses: Sequence[Any], query: Query, asked: Tokens | None) -> list[Hit]:
    """Convert the responses to `filter_requests` to hits, leaving out what does not match."""
    return _to_hits(responses, _matching(responses[0], query), query, asked)


def _to_hits(
    responses: Sequence[Any],
    records: dict[str, StoredRecord],
    query: Query,
    asked: Tokens | None,
) -> list[Hit]:
    """Join the scores of these records; one that shares no term with the query has 0."""
    points = {str(point.id): point for point in responses[0].points if str(point.id) in records}
    lexical = {str(point.id): point.score for some in responses[1:] for point in some.points}
    late: list[tuple[float, ...]] = [()] * len(points)
    if asked is not None:
        late = best_of_each(asked, [read_tokens(point.payload) for point in points.values()])
    hits = []
    for (key, point), best in zip(points.items(), late, strict=True):
        vector, passages = _best_passage(point.vector["dense"], query.vector)
        record, words = records[key]
        hits.append(
            Hit(
                record=record,
                dense=point.score,
                lexical=lexical.get(key, 0.0),
                words=words,
                late=best,
                terms=_weights(point, query.terms.indices),
                vector=vector,
                passages=passages,
            )
        )
    return sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))


def _best_passage(
    held: Sequence[Any], asked: Sequence[float]
) -> tuple[Sequence[float], tuple[float, ...]]:
    """Choose the passage that is nearest to a query; with the cosines of all if there are more."""
    vectors = to_vectors(held)
    if len(vectors) == 1:
        return vectors[0], ()
    cosines = (np.asarray(vectors) @ np.asarray(asked)).round(6).tolist()
    number = max(range(len(cosines)), key=lambda n: (cosines[n], -n))
    return vectors[number], tuple(cosines)


def to_vectors(held: Sequence[Any]) -> Sequence[Sequence[float]]:
    """Read the vectors of a record's passages, in a collection of either kind."""
    return [held] if isinstance(held[0], float) else held


def _weights(point: Any, indices: Sequence[int]) -> tuple[float, ...]:
    """Read the weight of each term of a query in a record."""
    vector = (point.vector or {}).get("terms") if indices else None
    held = dict(zip(vector.indices, vector.values, strict=True)) if vector else {}
    return tuple(held.get(index, 0.0) for index in indices)


def _matching(response: Any, query: Query) -> dict[str, StoredRecord]:
    rows = {str(point.id): read_row(point.payload["row"]) for point in response.points}
    return {key: row for key, row in rows.items() if query.matches(row[0])}


def equals(field: str, *values: str) -> m.FieldCondition:
    """Condition that a field has one of these values."""
    if len(values) == 1:
        return m.FieldCondition(key=field, match=m.MatchValue(value=values[0]))
    return m.FieldCondition(key=field, match=m.MatchAny(any=list(values)))


def within(field: str, **bounds: float | None) -> m.FieldCondition:
    """Condition that a number is within bounds."""
    return m.FieldCondition(key=field, range=m.Range(**bounds))


def has_id(ids: Iterable[str]) -> m.HasIdCondition:
    """Condition that the id is one of these."""
    return m.HasIdCondition(has_id=list(ids))


def covered(scope: Scope, version: int | None = None) -> m.Filter:
    """Filter for what a scope covers, up to a version if one is given."""
    newest = [] if version is None else [within("version", lte=version)]
    return m.Filter(must=[equals("scopes", scope.key), *newest])


def older(records: Iterable[Record]) -> m.Filter:
    """Filter for those of these records that are stored with a lower version."""
    by_version: dict[int, list[str]] = {}
    for record in records:
        by_version.setdefault(record.version, []).append(record.id)
    return m.Filter(
        should=[
            m.Filter(must=[has_id(ids), within("version", lt=version)])
            for version, ids in by_version.items()
        ]
    )


def visible(query: Query, *, ranges: bool) -> m.Filter:
    """Compile the conditions of a query.

    Args:
        ranges: whether conditions on numbers without an index are allowed.
    """
    key, rest = focus(query.scope, query.where)
    if query.as_of is not None or (query.include_superseded or query.include_expired):
        rest = query.where
        conditions: list[Any] = [equals("scopes", query.scope.key)]
    else:
        # A millisecond wider than the query: the time in the row decides.
        ahead = within("until", gte=query.at.timestamp() - 0.001)
        later = m.Filter(must=[equals("passing", key), ahead])
        conditions = [m.Filter(should=[equals("live", key), later])]
    if query.kinds:
        conditions.append(equals("tags", *tags_of("kind", query.kinds)))
    where, _ = _compile(rest, ranges=ranges) if rest else (None, True)
    return m.Filter(must=[*conditions, where] if where else conditions)


def _compile(part: Filter, *, ranges: bool) -> tuple[Any, bool]:
    """Compile a filter to a condition that is at least as wide, and tell whether it is exact.

    The condition is None where there is none.
    """
    if isinstance(part, Where):
        return _compile_where(part, ranges=ranges)
    if isinstance(part, Within):
        return equals("tags", *tags_of("namespace", [encode(part.namespace)])), True
    if isinstance(part, Predicate):
        return None, False
    compiled = [_compile(inner, ranges=ranges) for inner in part.parts]
    exact = all(is_exact for _, is_exact in compiled)
    if part.combine == "NOT":
        sure = [condition for condition, is_exact in compiled if is_exact]
        return (m.Filter(must_not=sure) if sure else None), exact
    known = [condition for condition, _ in compiled if condition is not None]
    if part.combine == "AND":
        return (m.Filter(must=known) if known else None), exact
    return (m.Filter(should=known) if len(known) == len(compiled) else None), exact


def _compile_where(part: Where, *, ranges: bool) -> tuple[Any, bool]:
    field = part.field if part.field in FIELDS else tag_key(metadata_key(part.field))
    if part.operator in ("eq", "in", "ne", "nin"):
        tags = [] if field in TIMES else tags_of(field, part.values)
        if len(tags) < len(part.values):
            return None, False
        same = equals("tags", *tags)
        if part.operator in ("eq", "in"):
            return same, True
        return m.Filter(must_not=[same]), False
    value = part.values[0]
    if isinstance(value, str) or not abs(value) <= MOST_NUMBER:
        return None, False
    if field not in TIMES and not ranges:
        return None, False
    # The numbers of the engine may differ in the last digit.
    slack = 0.001 + abs(value) * 1e-12
    low = value - slack if part.operator in ("gt", "gte") else None
    high = value + slack if part.operator in ("lt", "lte") else None
    path = f"numbers.{field}" if field in TIMES else f'numbers."{field}"'
    return within(path, gte=low, lte=high), False
