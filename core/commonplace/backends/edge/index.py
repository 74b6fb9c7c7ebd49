"""Embedded vector index: Qdrant's engine inside this process, in a folder.

The engine holds the interpreter's lock during every call, so calls are small (64 points) and a
plain lock around them costs nothing. Filters that the engine cannot evaluate exactly are widened;
every row is checked again here, by the code that all engines share, before it is returned.
"""

import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from ...errors import (
    MemoryClosedError,
    StoreLockedError,
    StoreUnavailableError,
)
from ...ports.stores import Hit, Point, Query, crash_point
from ...types import Record, Scope, TokenEmbedding
from ..shared.late_interaction import FIELD, asked_tokens, best_of_each, from_field, to_field
from ..shared.payload import (
    FilterCompiler,
    check_meta,
    checked,
    focus,
    has_tokens,
    payload_of,
    read_row,
    tags_of,
    to_hits,
    uuids,
)

_BATCH = 64  # points in one call
_PAGE = 256
_ERASE_PAGE = 2048
_RESERVE = 256 << 20  # bytes of the disk: the engine maps files before it has their space


_INDEXES: Mapping[str, Any] = {
    "user_id": partial(qe.KeywordIndexParams, is_tenant=True),
    "scopes": qe.KeywordIndexParams,  # scope keys of every record
    "live": qe.KeywordIndexParams,  # scope keys of a record that never ends or expires
    "passing": qe.KeywordIndexParams,  # scope keys of one that ends or expires at `until`
    "turn": qe.KeywordIndexParams,
    "tags": qe.KeywordIndexParams,  # fields and metadata, one tag for each value
}


class EdgeIndex:
    """A `VectorIndex` in a folder that one process owns.

    Args:
        path: the folder; made if missing, readable by its owner alone.
        meta: what the vectors depend on (schema version, embedder); stored at the first opening
            and compared at every later one, together with `dimensions`. Of other tokens than the
            stored ones none are used.
        token_dimensions: of every token vector; 0 if there are none. Only those of hits are
            compared.

    Raises:
        SchemaMismatchError: the folder was made with other `meta`; nothing was touched.
        StoreLockedError: it is open elsewhere.
        StoreUnavailableError: its files cannot be read.
    """

    def __init__(
        self, path: str, *, dimensions: int, meta: Mapping[str, str], token_dimensions: int = 0
    ) -> None:
        self._dimensions = dimensions
        self._folder = Path(path)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        shard = self._folder / "shard"
        exists = (shard / "segments").is_dir()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {**meta, "dimensions": str(dimensions)}
        stored = _check_meta(self._folder / "index.json", wanted, exists=exists)
        self._token_dimensions = token_dimensions if has_tokens(stored, wanted) else 0
        shard.mkdir(mode=0o700, exist_ok=True)
        with self._writing():
            self._shard: qe.EdgeShard | None = (
                qe.EdgeShard.load(str(shard))
                if exists
                else qe.EdgeShard.create(str(shard), _config(dimensions))
            )
            (self._folder / "holder").write_text(str(os.getpid()))
            known = self._shard.info().payload_schema
            for field, params in _INDEXES.items():
                if field not in known:
                    self._shard.update(qe.UpdateOperation.create_field_index(field, params()))
            # Where nothing expires, a query is one condition, which is several times faster.
            some = qe.Filter(must_not=[qe.IsEmptyCondition("passing")])
            self._expiring = self._shard.count(qe.CountRequest(filter=some)) > 0

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        by_vector, by_terms = self._requests(query)
        if limit < 1:
            return []
        read: ReadRecords = {}
        with self._engine() as shard:
            conditions = visible(query, expiring=self._expiring)
            dense = best(shard, by_vector, conditions, limit, query, read)
            lexical = best(shard, by_terms, conditions, limit, query, read) if by_terms else {}
            dense |= scores(shard, by_vector, lexical.keys() - dense.keys())
            lexical |= scores(shard, by_terms, dense.keys() - lexical.keys())
            return to_hits(read, dense, lexical, self._late(shard, query, list(read)))

    def score(self, query: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records of these turns, or with these ids, both ways; best dense first."""
        by_vector, by_terms = self._requests(query)
        known: set[Any] = set(uuids(ids))
        chosen: list[Any] = [equals("turn", *turns)] if turns else []
        chosen += [qe.HasIdCondition(known)] if known else []
        if not chosen:
            return []
        conditions = [qe.Filter(should=chosen), equals("scopes", query.scope.key)]
        read: ReadRecords = {}
        with self._engine() as shard:
            limit = 2 * len(turns) + len(known)
            dense = best(shard, by_vector, conditions, limit, query, read)
            lexical = scores(shard, by_terms, dense.keys())
            return to_hits(read, dense, lexical, self._late(shard, query, list(read)))

    def _late(
        self, shard: "qe.EdgeShard", query: Query, ids: list[Any]
    ) -> dict[str, tuple[float, ...]]:
        """Compare the query's tokens with those of records."""
        asked = asked_tokens(query, self._token_dimensions)
        if asked is None or not ids:
            return {}
        rows = shard.retrieve(ids, [FIELD], with_vector=False)
        late = best_of_each(asked, [from_field(row.payload) for row in rows])
        return {str(row.id): one for row, one in zip(rows, late, strict=True)}

    def _requests(self, query: Query) -> "tuple[MakeRequest, MakeRequest | None]":
        vector = checked([query.vector], self._dimensions)[0]
        by_vector = partial(make_request, qe.Query.Nearest(vector, using="dense"), None)
        if not query.terms.indices:
            return by_vector, None
        terms = qe.SparseVector(list(query.terms.indices), list(query.terms.weights))
        rarity = qe.SearchParams(idf=qe.IdfParams(corpus=covered(query.scope)))
        return by_vector, partial(make_request, qe.Query.Nearest(terms, using="terms"), rarity)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, 64 at a time; a version that is not greater than the stored is ignored."""
        vectors = checked([point.vector for point in points], self._dimensions)
        self._expiring = self._expiring or any(
            p.record.expires_at or p.record.valid_to for p in points
        )
        made = [
            _point(point, vector, to_field(point.tokens, self._token_dimensions))
            for point, vector in zip(points, vectors, strict=True)
        ]
        for start in range(0, len(points), _BATCH):
            part = range(start, min(start + _BATCH, len(points)))
            # One process owns the shard, so a read under the lock is an exact fence.
            with self._writing() as shard:
                versions = {
                    str(row.id): (row.payload or {})["version"]
                    for row in shard.retrieve(
                        list({points[n].record.id for n in part}), ["version"], with_vector=False
                    )
                }
                newer: dict[str, qe.Point] = {}
                for n in part:
                    key, version = str(uuid.UUID(points[n].record.id)), points[n].record.version
                    if version > versions.get(key, -1):
                        versions[key], newer[key] = version, made[n]
                if newer:
                    shard.update(qe.UpdateOperation.upsert_points(list(newer.values())))

    def amend(self, records: Sequence[Record]) -> None:
        """Replace the payload of records that are stored and not newer."""
        self._expiring = self._expiring or any(one.expires_at or one.valid_to for one in records)
        with self._writing() as shard:
            for start in range(0, len(records), _BATCH):
                part = {str(uuid.UUID(one.id)): one for one in records[start : start + _BATCH]}
                for row in shard.retrieve(list(part), ["row", FIELD], with_vector=False):
                    record = part[str(row.id)]
                    stored, words = read_row((row.payload or {})["row"])
                    if stored.version <= record.version:
                        kept = {
                            key: one for key, one in (row.payload or {}).items() if key == FIELD
                        }
                        payload = payload_of(record, words) | kept
                        shard.update(qe.UpdateOperation.overwrite_payload([row.id], payload))

    def vectors(self, records: Sequence[Record]) -> dict[str, TokenEmbedding]:
        """Read the vectors of these records, where they are stored with the same text."""
        found: dict[str, TokenEmbedding] = {}
        for start in range(0, len(records), _BATCH):
            part = {str(uuid.UUID(one.id)): one for one in records[start : start + _BATCH]}
            with self._engine() as shard:
                rows: list[Any] = shard.retrieve(list(part), ["row", FIELD], with_vector=["dense"])
            for row in rows:
                record = part[str(row.id)]
                if read_row(row.payload["row"])[0].indexed_text == record.indexed_text:
                    found[record.id] = TokenEmbedding(
                        vector=row.vector["dense"], tokens=from_field(row.payload)
                    )
        return found

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, except newer ones."""
        known = uuids(ids)
        conditions = [covered(scope, version)] if scope else []
        for start in range(0, len(known), _BATCH):
            has_id = qe.HasIdCondition(set(known[start : start + _BATCH]))
            chosen = qe.Filter(must=[has_id, *conditions])
            with self._writing() as shard:
                shard.update(qe.UpdateOperation.delete_points_by_filter(chosen))

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove every record that the scope covers, except newer ones; return how many."""
        # One deletion by filter would hold the interpreter for half a second at 20,000 records.
        # A read costs as much as the scope is large, so one serves many deletions.
        chosen = covered(scope, version)
        request = qe.ScrollRequest(limit=_ERASE_PAGE, filter=chosen, with_payload=False)
        erased = 0
        while True:
            with self._writing() as shard:
                ids = [row.id for row in shard.scroll(request)[0]]
                for start in range(0, len(ids), _BATCH):
                    shard.update(qe.UpdateOperation.delete_points(ids[start : start + _BATCH]))
            if not ids:
                return erased
            erased += len(ids)

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, superseded and expired ones included."""
        with self._engine() as shard:
            return shard.count(qe.CountRequest(filter=covered(scope)))

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of every record that the scope covers, in no order."""
        within, after = covered(scope) if scope else None, None
        while True:
            request = qe.ScrollRequest(
                offset=after, limit=_PAGE, filter=within, with_payload=["scopes", "version"]
            )
            with self._engine() as shard:
                found, after = shard.scroll(request)
            for row in found:
                payload = row.payload or {}
                if scope is None or scope.key in payload["scopes"]:
                    yield str(row.id), payload["version"]
            if after is None:
                return

    def flush(self) -> None:
        """Return when all earlier writes are safe from power loss."""
        with self._writing() as shard:
            shard.flush()

    def close(self) -> None:
        """Flush and release the folder; repeating it does nothing."""
        with self._lock:
            if self._shard is not None:
                with self._engine() as shard:
                    shard.flush()
                    self._shard = None
                    shard.close()

    @contextmanager
    def _writing(self) -> "Iterator[qe.EdgeShard]":
        """Use the engine for what may take space: on a full disk it would end the process."""
        if (free := shutil.disk_usage(self._folder).free) < _RESERVE:
            reason = f"only {free >> 20} MB of the disk are free, and {_RESERVE >> 20} are needed"
            raise StoreUnavailableError(store=str(self._folder), reason=reason)
        with self._engine() as shard:
            crash_point("before_commit")
            yield shard
            crash_point("after_commit")

    @contextmanager
    def _engine(self) -> "Iterator[qe.EdgeShard]":
        if os.getpid() != self._pid:  # before the lock, which a fork may have left locked
            raise MemoryClosedError
        with self._lock:
            shard = getattr(self, "_shard", None)
            if shard is None and hasattr(self, "_shard"):
                raise MemoryClosedError
            try:
                yield shard  # type: ignore[misc]  # None only while opening
            except Exception as error:
                # The engine raises only bare exceptions, so their type is all there is to check.
                if type(error) is not Exception:
                    raise
                if "WouldBlock" in str(error):
                    raise StoreLockedError(
                        path=str(self._folder), holder=_holder(self._folder)
                    ) from error
                raise StoreUnavailableError(store=str(self._folder), reason=str(error)) from error


def _config(dimensions: int) -> qe.EdgeConfig:
    # Scoped searches are exact and fast without a graph over the vectors, which filters defeat.
    return qe.EdgeConfig(
        vectors={"dense": qe.EdgeVectorParams(size=dimensions, distance=qe.Distance.Cosine)},
        sparse_vectors={"terms": qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        hnsw_config=qe.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000),
        payload_memory=qe.Memory.Cached,
    )


def _point(point: Point, vector: list[float], tokens: dict[str, str]) -> qe.Point:
    # Empty ones too: the engine counts only points with terms as the corpus of rarity.
    terms = qe.SparseVector(list(point.terms.indices), list(point.terms.weights))
    payload = payload_of(point.record, point.words) | tokens
    return qe.Point(point.record.id, {"dense": vector, "terms": terms}, payload)


def _check_meta(file: Path, wanted: Mapping[str, str], *, exists: bool) -> Mapping[str, Any]:
    """Store what the vectors depend on, or compare it with what is stored; return that.

    Raises:
        SchemaMismatchError: the index was made with something else.
        StoreUnavailableError: the file cannot be read.
    """
    if not exists and not file.exists():
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(wanted))
        temporary.replace(file)
        return wanted
    try:
        stored = json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise StoreUnavailableError(store=str(file), reason=f"is damaged: {error}") from error
    check_meta(stored, wanted)
    return dict(stored)


def _holder(folder: Path) -> str:
    """Describe the process that holds the folder."""
    try:
        held_by = int((folder / "holder").read_text())
    except (OSError, ValueError):
        return "another process"
    return "this process already" if held_by == os.getpid() else f"process {held_by}"


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
        found: ReadRecords = {}
        for point in points:
            record, words = read_row((point.payload or {})["row"])
            if len(kept) < limit and (record.id in read or query.matches(record)):
                found[record.id], kept[record.id] = (record, words), point.score
        if len(kept) == limit or len(points) < wanted:
            # Not what the rounds before have found: of equal scores, each may find others.
            read |= found
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
