"""Embedded vector index: Qdrant's engine inside this process, in a folder.

The engine holds the interpreter's lock during every call, so calls are small (64 points) and a
plain lock around them costs nothing. Filters that the engine cannot evaluate exactly are widened;
every row is checked again here, by the code that all engines share, before it is returned.
"""

import json
import os
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from ...errors import (
    MemoryClosedError,
    SchemaMismatchError,
    StoreLockedError,
    StoreUnavailableError,
)
from ...model import Record, Scope
from ...ports.stores import Hit, Point, Query
from ..shared.payload import checked, payload_of, to_hits, uuids
from ..shared.payload import read as read_row
from .query import Ask, Rows, ask_row, best, covered, equals, scores, visible

_CALL = 64
_PAGE = 256
_LOOK = 2048


_INDEXES: Mapping[str, Any] = {
    "user_id": partial(qe.KeywordIndexParams, is_tenant=True),
    "scopes": qe.KeywordIndexParams,  # of every record
    "live": qe.KeywordIndexParams,  # while it is true and never expires
    "passing": qe.KeywordIndexParams,  # while it is true, where an end is known
    "turn": qe.KeywordIndexParams,
    "tags": qe.KeywordIndexParams,  # its fields and metadata, one by one
}


class EdgeIndex:
    """A `VectorIndex` in a folder that one process owns.

    Args:
        path: the folder; made for its owner alone when missing.
        meta: what the vectors depend on (schema version, embedder); remembered at the first
            opening and compared at every later one, together with `dimensions`.

    Raises:
        SchemaMismatchError: the folder was made with other `meta`; nothing was touched.
        StoreLockedError: it is open elsewhere.
        StoreUnavailableError: its files cannot be read.
    """

    def __init__(self, path: str, *, dimensions: int, meta: Mapping[str, str]) -> None:
        self._dimensions = dimensions
        self._folder = Path(path)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        shard = self._folder / "shard"
        exists = (shard / "segments").is_dir()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        agree(self._folder / "index.json", {**meta, "dimensions": str(dimensions)}, exists=exists)
        shard.mkdir(mode=0o700, exist_ok=True)
        with self._engine():
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
            # Where nothing expires, a question is one condition, which is several times faster.
            some = qe.Filter(must_not=[qe.IsEmptyCondition("passing")])
            self._expiring = self._shard.count(qe.CountRequest(filter=some)) > 0

    def search(self, probe: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        dense, sparse = self._questions(probe)
        if limit < 1:
            return []
        read: Rows = {}
        with self._engine() as shard:
            seen = visible(probe, expiring=self._expiring)
            cosine = best(shard, dense, seen, limit, probe, read)
            lexical = best(shard, sparse, seen, limit, probe, read) if sparse else {}
            cosine |= scores(shard, dense, lexical.keys() - cosine.keys())
            lexical |= scores(shard, sparse, cosine.keys() - lexical.keys())
        return to_hits(read, cosine, lexical)

    def score(self, probe: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records at these places, or with these ids, both ways; best dense first."""
        dense, sparse = self._questions(probe)
        known: set[Any] = set(uuids(ids))
        asked: list[Any] = [equals("turn", *turns)] if turns else []
        asked += [qe.HasIdCondition(known)] if known else []
        if not asked:
            return []
        here = [qe.Filter(should=asked), equals("scopes", probe.scope.key)]
        read: Rows = {}
        with self._engine() as shard:
            cosine = best(shard, dense, here, 2 * len(turns) + len(known), probe, read)
            lexical = scores(shard, sparse, cosine.keys())
        return to_hits(read, cosine, lexical)

    def _questions(self, probe: Query) -> "tuple[Ask, Ask | None]":
        vector = checked([probe.vector], self._dimensions)[0]
        dense = partial(ask_row, qe.Query.Nearest(vector, using="dense"), None)
        if not probe.terms.indices:
            return dense, None
        terms = qe.SparseVector(list(probe.terms.indices), list(probe.terms.weights))
        rarity = qe.SearchParams(idf=qe.IdfParams(corpus=covered(probe.scope)))
        return dense, partial(ask_row, qe.Query.Nearest(terms, using="terms"), rarity)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, 64 at a time; a version that is not greater than the held is ignored."""
        vectors = checked([point.vector for point in points], self._dimensions)
        self._expiring = self._expiring or any(
            p.record.expires_at or p.record.valid_to for p in points
        )
        made = [_point(point, vector) for point, vector in zip(points, vectors, strict=True)]
        for start in range(0, len(points), _CALL):
            part = range(start, min(start + _CALL, len(points)))
            # One process owns the shard, so looking first under the lock is an exact fence.
            with self._engine() as shard:
                held = {
                    str(row.id): (row.payload or {})["version"]
                    for row in shard.retrieve(
                        list({points[n].record.id for n in part}), ["version"], with_vector=False
                    )
                }
                newer: dict[str, qe.Point] = {}
                for n in part:
                    key, version = str(uuid.UUID(points[n].record.id)), points[n].record.version
                    if version > held.get(key, -1):
                        held[key], newer[key] = version, made[n]
                if newer:
                    shard.update(qe.UpdateOperation.upsert_points(list(newer.values())))

    def amend(self, records: Sequence[Record]) -> None:
        """Replace the payload of records that are there and not newer."""
        self._expiring = self._expiring or any(one.expires_at or one.valid_to for one in records)
        with self._engine() as shard:
            for start in range(0, len(records), _CALL):
                part = {str(uuid.UUID(one.id)): one for one in records[start : start + _CALL]}
                for row in shard.retrieve(list(part), ["row"], with_vector=False):
                    record = part[str(row.id)]
                    held, words = read_row((row.payload or {})["row"])
                    if held.version <= record.version:
                        payload = payload_of(record, words)
                        shard.update(qe.UpdateOperation.overwrite_payload([row.id], payload))

    def vectors(self, records: Sequence[Record]) -> dict[str, Sequence[float]]:
        """Read the vectors of these records, where they are held with the same text."""
        found: dict[str, Sequence[float]] = {}
        for start in range(0, len(records), _CALL):
            part = {str(uuid.UUID(one.id)): one for one in records[start : start + _CALL]}
            with self._engine() as shard:
                rows: list[Any] = shard.retrieve(list(part), ["row"], with_vector=["dense"])
            for row in rows:
                record = part[str(row.id)]
                if read_row(row.payload["row"])[0].indexed_text == record.indexed_text:
                    found[record.id] = row.vector["dense"]
        return found

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, those that are newer excepted."""
        known = uuids(ids)
        of = [covered(scope, version)] if scope else []
        for start in range(0, len(known), _CALL):
            here = qe.HasIdCondition(set(known[start : start + _CALL]))
            chosen = qe.Filter(must=[here, *of])
            with self._engine() as shard:
                shard.update(qe.UpdateOperation.delete_points_by_filter(chosen))

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove every record that the scope covers, newer ones excepted; count them."""
        # One deletion by filter would hold the interpreter for half a second at 20,000 records.
        # Each look costs as much as the scope is large, so one look serves many deletions.
        chosen = covered(scope, version)
        request = qe.ScrollRequest(limit=_LOOK, filter=chosen, with_payload=False)
        erased = 0
        while True:
            with self._engine() as shard:
                ids = [row.id for row in shard.scroll(request)[0]]
                for start in range(0, len(ids), _CALL):
                    shard.update(qe.UpdateOperation.delete_points(ids[start : start + _CALL]))
            if not ids:
                return erased
            erased += len(ids)

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, hidden ones included."""
        with self._engine() as shard:
            return shard.count(qe.CountRequest(filter=covered(scope)))

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of every record that the scope covers, in no order."""
        within, after = covered(scope) if scope else None, None
        while True:
            request = qe.ScrollRequest(
                offset=after, limit=_PAGE, filter=within, with_payload=["scopes", "version"]
            )
            with self._engine() as shard:
                found, after = shard.scroll(request)
            for row in found:
                held = row.payload or {}
                if scope is None or scope.key in held["scopes"]:
                    yield str(row.id), held["version"]
            if after is None:
                return

    def flush(self) -> None:
        """Return when everything written before survives a power loss."""
        with self._engine() as shard:
            shard.flush()

    def close(self) -> None:
        """Flush and let go of the folder; repeating it does nothing."""
        with self._lock:
            if self._shard is not None:
                with self._engine() as shard:
                    shard.flush()
                    self._shard = None
                    shard.close()

    @contextmanager
    def _engine(self) -> "Iterator[qe.EdgeShard]":
        if os.getpid() != self._pid:  # before the lock, which a fork may have left held
            raise MemoryClosedError
        with self._lock:
            shard = getattr(self, "_shard", None)
            if shard is None and hasattr(self, "_shard"):
                raise MemoryClosedError
            try:
                yield shard  # type: ignore[misc]  # nothing to hand out only while opening
            except Exception as error:
                # The engine raises nothing but bare exceptions, so their type is the only mark.
                if type(error) is not Exception:
                    raise
                if "WouldBlock" in str(error):
                    raise StoreLockedError(
                        path=str(self._folder), holder=holder(self._folder)
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


def _point(point: Point, vector: list[float]) -> qe.Point:
    # Empty ones too: the engine counts only points with terms as the corpus of rarity.
    terms = qe.SparseVector(list(point.terms.indices), list(point.terms.weights))
    return qe.Point(
        point.record.id, {"dense": vector, "terms": terms}, payload_of(point.record, point.words)
    )


def agree(file: Path, wanted: Mapping[str, str], *, exists: bool) -> None:
    """Note what the vectors depend on, or compare it with what is noted.

    Raises:
        SchemaMismatchError: it was made with something else.
        StoreUnavailableError: the note cannot be read.
    """
    if not exists and not file.exists():
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(wanted))
        draft.replace(file)
        return
    try:
        stored = json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise StoreUnavailableError(store=str(file), reason=f"is damaged: {error}") from error
    for what in sorted({*stored, *wanted}):
        if stored.get(what) != wanted.get(what):
            raise SchemaMismatchError(what=what, stored=stored.get(what), wanted=wanted.get(what))


def holder(folder: Path) -> str:
    """Say who holds the folder."""
    try:
        held_by = int((folder / "holder").read_text())
    except (OSError, ValueError):
        return "another process"
    return "this process already" if held_by == os.getpid() else f"process {held_by}"
