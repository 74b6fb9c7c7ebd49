"""The embedded vector index: Qdrant's engine inside this process, in a folder.

The engine keeps the interpreter's lock during every call, so calls are small (64 points) and a
plain lock around them costs nothing. What it cannot filter exactly it filters generously; every
row is judged again here, by the same code for all engines, before it leaves.
"""

import hashlib
import json
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as qe

from ..errors import InvalidVector, MemoryClosed, SchemaMismatch, StoreLocked, StoreUnavailable
from ..filters import FIELDS, Filter, Where, field_value
from ..model import Record, Scope
from ..ports import Hit, Point, Probe

__all__ = ["EdgeIndex"]

_Rows = dict[str, tuple[Record, int]]
_Ask = Callable[..., qe.QueryRequest]

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_CALL = 64
_PAGE = 256
_LOOK = 2048
_IDS = ("user_id", "agent_id", "session_id")
_PLAIN = ("id", "text", "kind", "role", "name", "origin", "trust", "position", "version")
_DATES = ("created_at", "updated_at", "occurred_at", "valid_to", "expires_at")
# One condition per question is several times faster than three, so every record carries the keys
# of all scopes that cover it, once for each state in which it may be asked for.
_INDEXES: Mapping[str, Any] = {
    "user_id": partial(qe.KeywordIndexParams, is_tenant=True),
    "scopes": qe.KeywordIndexParams,  # of every record
    "live": qe.KeywordIndexParams,  # while it is true and never expires
    "passing": qe.KeywordIndexParams,  # while it is true and expires
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
        SchemaMismatch: the folder was made with other `meta`; nothing was touched.
        StoreLocked: it is open elsewhere.
        StoreUnavailable: its files cannot be read.
    """

    def __init__(self, path: str, *, dimensions: int, meta: Mapping[str, str]) -> None:
        self._dimensions = dimensions
        self._folder = Path(path)
        self._lock = threading.RLock()
        shard = self._folder / "shard"
        exists = (shard / "segments").is_dir()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _agree(self._folder / "index.json", {**meta, "dimensions": str(dimensions)}, exists)
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

    def search(self, probe: Probe, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        dense, sparse = self._questions(probe)
        if limit < 1:
            return []
        rows: _Rows = {}
        with self._engine() as shard:
            visible = _visible(probe, expiring=self._expiring)
            cosine = _best(shard, dense, visible, limit, probe, rows)
            lexical = _best(shard, sparse, visible, limit, probe, rows) if sparse else {}
            cosine |= _scores(shard, dense, lexical.keys() - cosine.keys())
            lexical |= _scores(shard, sparse, cosine.keys() - lexical.keys())
        return _hits(rows, cosine, lexical)

    def score(self, probe: Probe, turns: Collection[str]) -> list[Hit]:
        """Score the records at these places of their sessions, both ways; best dense first."""
        dense, sparse = self._questions(probe)
        if not turns:
            return []
        here = [_is("turn", *turns), _is("scopes", probe.scope.key)]
        rows: _Rows = {}
        with self._engine() as shard:
            cosine = _best(shard, dense, here, 2 * len(turns), probe, rows)
            lexical = _scores(shard, sparse, cosine.keys())
        return _hits(rows, cosine, lexical)

    def _questions(self, probe: Probe) -> "tuple[_Ask, _Ask | None]":
        vector = self._checked([probe.vector])[0]
        dense = partial(_ask, qe.Query.Nearest(vector, using="dense"), None)
        if not probe.terms.indices:
            return dense, None
        terms = qe.SparseVector(list(probe.terms.indices), list(probe.terms.weights))
        rarity = qe.SearchParams(idf=qe.IdfParams(corpus=_covered(probe.scope)))
        return dense, partial(_ask, qe.Query.Nearest(terms, using="terms"), rarity)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, 64 at a time; a version that is not greater than the held is ignored."""
        vectors = self._checked([point.vector for point in points])
        self._expiring = self._expiring or any(p.record.expires_at for p in points)
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

    def delete(self, scope: Scope, ids: Collection[str]) -> None:
        """Remove these records where the scope covers them; unknown ids are ignored."""
        known = [one for one in ids if _is_uuid(one)]
        for start in range(0, len(known), _CALL):
            here = qe.HasIdCondition(set(known[start : start + _CALL]))
            chosen = qe.Filter(must=[here, _is("scopes", scope.key)])
            with self._engine() as shard:
                shard.update(qe.UpdateOperation.delete_points_by_filter(chosen))

    def erase(self, scope: Scope) -> int:
        """Remove every record that the scope covers; answer how many there were."""
        # One deletion by filter would hold the interpreter for half a second at 20,000 records.
        # Each look costs as much as the scope is large, so one look serves many deletions.
        request = qe.ScrollRequest(limit=_LOOK, filter=_covered(scope), with_payload=False)
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
            return shard.count(qe.CountRequest(filter=_covered(scope)))

    def versions(self, scope: Scope) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of every record that the scope covers, in no order."""
        covered, after = _covered(scope), None
        while True:
            request = qe.ScrollRequest(
                offset=after, limit=_PAGE, filter=covered, with_payload=[*_IDS, "version"]
            )
            with self._engine() as shard:
                rows, after = shard.scroll(request)
            for row in rows:
                held = row.payload or {}
                if scope.covers(_scope(*(held.get(name) for name in _IDS))):
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

    def _checked(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        for vector in vectors:
            if len(vector) != self._dimensions:
                raise InvalidVector(
                    reason="has the wrong length", expected=self._dimensions, got=len(vector)
                )
        with np.errstate(over="ignore"):
            table = np.asarray(vectors, np.float32).reshape(-1, self._dimensions)
        sizes = np.linalg.norm(table.astype(np.float64), axis=1)
        for bad, reason in ((~np.isfinite(sizes), "is not finite"), (sizes < 1e-6, "is zero")):
            if bad.any():
                raise InvalidVector(reason=reason, expected=self._dimensions, got=self._dimensions)
        return table.tolist()

    @contextmanager
    def _engine(self) -> "Iterator[qe.EdgeShard]":
        with self._lock:
            shard = getattr(self, "_shard", None)
            if shard is None and hasattr(self, "_shard"):
                raise MemoryClosed
            try:
                yield shard  # type: ignore[misc]  # nothing to hand out only while opening
            except Exception as error:
                # The engine raises nothing but bare exceptions, so their type is the only mark.
                if type(error) is not Exception:
                    raise
                if "WouldBlock" in str(error):
                    raise StoreLocked(
                        path=str(self._folder), holder=_holder(self._folder)
                    ) from error
                raise StoreUnavailable(store=str(self._folder), reason=str(error)) from error


def _config(dimensions: int) -> qe.EdgeConfig:
    # Scoped searches are exact and fast without a graph over the vectors, which filters defeat.
    return qe.EdgeConfig(
        vectors={"dense": qe.EdgeVectorParams(size=dimensions, distance=qe.Distance.Cosine)},
        sparse_vectors={"terms": qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        hnsw_config=qe.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000),
    )


def _agree(file: Path, wanted: Mapping[str, str], exists: bool) -> None:  # noqa: FBT001 -- private
    if not exists and not file.exists():
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(wanted))
        draft.replace(file)
        return
    stored = json.loads(file.read_text()) if file.exists() else {}
    for what in sorted({*stored, *wanted}):
        if stored.get(what) != wanted.get(what):
            raise SchemaMismatch(what=what, stored=stored.get(what), wanted=wanted.get(what))


def _holder(folder: Path) -> str:
    try:
        holder = int((folder / "holder").read_text())
    except (OSError, ValueError):
        return "another process"
    return "this process already" if holder == os.getpid() else f"process {holder}"


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def _scope(user_id: str | None, agent_id: str | None, session_id: str | None) -> Scope:
    return Scope(user_id=user_id, agent_id=agent_id, session_id=session_id)


@lru_cache(4096)
def _keys(scope: Scope) -> list[str]:
    return [one.key for one in scope.covering()]


def _point(point: Point, vector: list[float]) -> qe.Point:
    record, scope = point.record, point.record.scope
    keys = _keys(scope)
    state = "passing" if record.expires_at else "live"
    payload: dict[str, Any] = {"scopes": keys, "version": record.version}
    payload |= {state: keys} if record.valid_to is None else {}
    payload |= {name: getattr(scope, name) for name in _IDS if getattr(scope, name)}
    payload |= {"turn": record.turn} if record.turn else {}
    if record.expires_at:
        payload["expires_at"] = record.expires_at.timestamp()
    fields = {name: field_value(record, name) for name in {*record.metadata, *FIELDS}}
    lists = {name: one if isinstance(one, list | tuple) else [one] for name, one in fields.items()}
    payload["tags"] = sorted({tag for key, held in lists.items() for tag in _tags(key, held)})
    payload["numbers"] = {
        key: numbers
        for key, held in lists.items()
        if (numbers := [one for one in held if type(one) in (int, float)])
    }
    # The engine may round a number; what is given back is read from a text of our own.
    row = {name: getattr(record, name) for name in _PLAIN}
    row |= {name: at and at.isoformat() for name in _DATES for at in (getattr(record, name),)}
    row |= {"scope": [getattr(scope, name) for name in _IDS], "words": point.words}
    payload["row"] = _ENCODE({**row, "metadata": dict(record.metadata)})
    # Empty ones too: the engine counts only points with terms as the corpus of rarity.
    terms = qe.SparseVector(list(point.terms.indices), list(point.terms.weights))
    return qe.Point(record.id, {"dense": vector, "terms": terms}, payload)


def _tags(field: str, values: Collection[Any]) -> list[str]:
    """Name each scalar of a field so that equal ones, and only they, have the same name."""
    named = []
    for value in values:
        if isinstance(value, bool):
            named.append(f"{field}=b{value}")
        elif isinstance(value, int | float) and abs(value) <= 2**53:
            named.append(f"{field}=n{float(value) + 0.0!r}")
        elif isinstance(value, str):
            digest = hashlib.sha256(value.encode()).hexdigest() if len(value) > 64 else value
            named.append(f"{field}=s{len(value)}:{digest}")
    return named


@lru_cache(4096)
def _read(row: str) -> tuple[Record, int]:
    held = json.loads(row)
    words: int = held.pop("words")
    for name in _DATES:
        held[name] = held[name] and datetime.fromisoformat(held[name])
    return Record(**{**held, "scope": _scope(*held["scope"])}), words


def _ask(
    query: qe.Query, params: qe.SearchParams | None, conditions: list[Any], limit: int, *, row: bool
) -> qe.QueryRequest:
    return qe.QueryRequest(
        limit=limit,
        query=query,
        params=params,
        filter=qe.Filter(must=conditions),
        with_payload=["row"] if row else False,
    )


def _best(
    shard: qe.EdgeShard, ask: _Ask, conditions: list[Any], limit: int, probe: Probe, rows: _Rows
) -> dict[str, float]:
    """Read the `limit` best that the probe may see; their records go to `rows`."""
    wanted = limit
    while True:
        answers = shard.query(ask(conditions, wanted, row=True))
        kept: dict[str, float] = {}
        for answer in answers:
            key = str(answer.id)
            read = rows.get(key) or _read((answer.payload or {})["row"])
            if len(kept) < limit and _may_see(probe, read[0]):
                rows[key], kept[key] = read, answer.score
        if len(kept) == limit or len(answers) < wanted:
            return kept
        wanted *= 4


def _scores(shard: qe.EdgeShard, ask: _Ask | None, ids: Collection[str]) -> dict[str, float]:
    if not ids or not ask:
        return {}
    request = ask([qe.HasIdCondition(set(ids))], len(ids), row=False)
    return {str(answer.id): answer.score for answer in shard.query(request)}


def _hits(rows: _Rows, cosine: Mapping[str, float], lexical: Mapping[str, float]) -> list[Hit]:
    found = [
        Hit(record=record, dense=cosine[key], lexical=lexical.get(key, 0.0), words=words)
        for key, (record, words) in rows.items()
    ]
    return sorted(found, key=lambda hit: (-hit.dense, hit.record.id))


def _may_see(probe: Probe, record: Record) -> bool:
    return (
        probe.scope.covers(record.scope)
        and (probe.superseded or record.valid_to is None)
        and (record.expires_at is None or record.expires_at > probe.at)
        and (not probe.kinds or record.kind in probe.kinds)
        and (probe.where is None or probe.where.matches(record))
    )


def _is(field: str, *values: str) -> Any:
    match = qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values))
    return qe.FieldCondition(field, match=match)


def _covered(scope: Scope) -> qe.Filter:
    return qe.Filter(must=[_is("scopes", scope.key)])


def _visible(probe: Probe, *, expiring: bool) -> list[Any]:
    key = probe.scope.key
    conditions = [_is("scopes" if probe.superseded else "live", key)]
    if expiring and not probe.superseded:
        # A thousandth of a second wider than asked: the row's own time decides.
        ahead = qe.RangeFloat(gte=probe.at.timestamp() - 0.001)
        later = qe.Filter(must=[_is("passing", key), qe.FieldCondition("expires_at", range=ahead)])
        conditions = [qe.Filter(should=[*conditions, later])]
    if probe.kinds:
        conditions.append(_is("tags", *_tags("kind", probe.kinds)))
    where, _ = _translate(probe.where) if probe.where else (None, True)
    return [*conditions, where] if where else conditions


def _translate(part: Filter) -> tuple[Any, bool]:
    """Say a filter to the engine: a condition at least as wide (None: all), and if it is exact."""
    if isinstance(part, Where):
        return _translate_one(part)
    said = [_translate(one) for one in part.parts]
    exact = all(one for _, one in said)
    if part.combine == "NOT":
        sure = [condition for condition, one in said if one]
        return (qe.Filter(must_not=sure) if sure else None), exact
    known = [condition for condition, _ in said if condition is not None]
    if part.combine == "AND":
        return (qe.Filter(must=known) if known else None), exact
    return (qe.Filter(should=known) if len(known) == len(said) else None), exact


def _translate_one(part: Where) -> tuple[Any, bool]:
    tags = _tags(part.field, part.values)
    if part.operator in ("eq", "in", "ne", "nin"):
        if len(tags) < len(part.values):
            return None, False
        same = _is("tags", *tags)
        if part.operator in ("eq", "in"):
            return same, True
        return qe.Filter(must_not=[same]), False
    value = part.values[0]
    if isinstance(value, str) or not abs(value) <= 2**53:
        return None, False
    # The engine's numbers may differ in the last digit.
    slack = 0.001 + abs(value) * 1e-12
    low = value - slack if part.operator in ("gt", "gte") else None
    high = value + slack if part.operator in ("lt", "lte") else None
    ahead = qe.RangeFloat(gte=low, lte=high)
    return qe.FieldCondition(f'numbers."{part.field}"', range=ahead), False
