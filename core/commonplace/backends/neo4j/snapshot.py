"""Snapshot of a Neo4j graph store: dump in the order that all engines share, and load."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from ...dedup_key import split_key
from ...ports.snapshot import EntityRow, FenceRow, RecordRow, RelationRow, SessionRow, SnapshotRow
from ...types import Entity, Record, Relation, Scope, Version, fold
from ..shared import rows
from . import overlay, queries
from .driver import RunQuery

_PAGE = 1000
_FENCES = "MATCH (n:Erasure) WHERE n.id > $after RETURN n{.*} AS node ORDER BY n.id LIMIT $limit"
_PARTITIONS = (
    "MATCH (n:Partition) WHERE n.id > $after RETURN n{.*} AS node ORDER BY n.id LIMIT $limit"
)
_SESSIONS = "MATCH (n:Session) WHERE n.partition = $partition RETURN n{.*} AS node ORDER BY n.id"
_ENTITIES = (
    "MATCH (n:Entity) WHERE n.partition = $partition AND n.word IS NOT NULL AND n.seq > $after"
    " RETURN n{.*} AS node ORDER BY n.seq LIMIT $limit"
)
_RELATIONS = """
MATCH (n:Relation) WHERE n.partition = $partition AND n.seq > $after
MATCH (a:Entity)<-[:SUBJECT]-(n)-[:OBJECT]->(b:Entity)
RETURN n{.*, subject: a.name, object: b.name} AS node ORDER BY n.seq LIMIT $limit
"""
_RECORDS = """
MATCH (n:Record) USING INDEX SEEK n:Record(partition, live, created_at, id)
WHERE n.partition = $partition AND n.live = $live AND n.created_at >= $created_at
AND n.id IS NOT NULL AND CASE WHEN n.created_at = $created_at THEN n.id > $id ELSE true END
WITH n ORDER BY n.partition, n.live, n.created_at, n.id LIMIT $limit
RETURN n{.*} AS node,
  COLLECT { MATCH (n)-[:BECAME]->(v:Version) RETURN v{.*} ORDER BY v.version } AS versions,
  COLLECT { MATCH (n)-[s:STATES]->(q:Relation)
    MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
    RETURN s{.*, seq: q.seq, subject: a.name, predicate: q.predicate, object: b.name,
      key: q.key, valid_from: q.valid_from} ORDER BY q.seq } AS assertions
ORDER BY n.created_at, n.id
"""
# Loading: the partitions are locked first, and what is stored already is read.
_FENCE = """
UNWIND $rows AS row MERGE (f:Erasure {id: row.id})
SET f.version = CASE WHEN f.version > row.version THEN f.version ELSE row.version END
"""
_STORED = (
    queries.LOCK
    + """
RETURN partitions,
  COLLECT { UNWIND $ids AS id MATCH (r:Record {id: id})
    RETURN r{.id, .version, .times_told, .user_id, .agent_id, .session_id} } AS records,
  COLLECT { UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f{.*} } AS fences
"""
)
_WRITE = {
    "sessions": "MERGE (s:Session {id: row.id}) ON CREATE SET s = row"
    " ON MATCH SET s.next = CASE WHEN s.next > row.next THEN s.next ELSE row.next END",
    "entities": queries.SAVE_RELATIONS["entities"],
    "pairs": queries.SAVE_RELATIONS["pairs"],
    "relations": "MATCH (a:Entity {id: row.subject}) MATCH (b:Entity {id: row.object})"
    " MERGE (q:Relation {id: row.own.id}) ON CREATE SET q = row.own ON MATCH SET q += row.resolved"
    " MERGE (a)<-[:SUBJECT]-(q) MERGE (q)-[:OBJECT]->(b)",
    "records": "MERGE (r:Record {id: row.id}) SET r = row",
    "versions": "MATCH (r:Record {id: row.record})"
    " MERGE (v:Version {record: row.record, version: row.version}) SET v = row"
    " MERGE (r)-[:BECAME]->(v)",
    "supports": queries.SAVE_RELATIONS["supports"],
    "partitions": queries.SAVE_RELATIONS["partitions"],
}
# What a record asserted when it was loaded before, and does not assert now.
_RETRACT = """
UNWIND $rows AS row
MATCH (:Record {id: row.id})-[s:STATES]->(q:Relation) WHERE NOT q.id IN row.assertions
DELETE s
WITH DISTINCT q WHERE NOT EXISTS { (:Record)-[:STATES]->(q) }
MATCH (q)-[:SUBJECT|OBJECT]->(e:Entity)
WITH collect(DISTINCT q) AS dropped, collect(DISTINCT e.id) AS entities
FOREACH (q IN dropped | DETACH DELETE q)
RETURN entities
"""
_VERSIONS = (
    "MATCH (n:Record) WHERE n.id > $after AND n.live AND n.indexed"
    " RETURN n{.id, .version} AS node ORDER BY n.id LIMIT $limit"
)
ReadTransaction = Callable[[Callable[[RunQuery], list[dict[str, Any]]]], list[dict[str, Any]]]


def dump(read: ReadTransaction, since: str) -> Iterator[SnapshotRow]:
    """Read everything: fences, then partition by partition from `since` on, page by page."""
    for node in _pages(read, _FENCES, "id", ""):
        yield FenceRow(key=node["id"], version=node["version"])
    for partition in _pages(read, _PARTITIONS, "id", ""):
        if partition["id"] >= since:
            yield from _partition(read, partition["id"])


def versions(read: ReadTransaction) -> Iterator[tuple[str, int]]:
    """Iterate over (id, version) of what the index should have of all owners."""
    return ((node["id"], node["version"]) for node in _pages(read, _VERSIONS, "id", ""))


def _partition(read: ReadTransaction, partition: str) -> Iterator[SnapshotRow]:
    for row in read(lambda run: run(_SESSIONS, partition=partition)):
        yield SessionRow(scope=overlay.scope_of(row["node"]), next=row["node"]["next"])
    for node in _pages(read, _ENTITIES, "seq", 0, partition=partition):
        entity = Entity(name=node["name"], type=node["type"])
        yield EntityRow(owner=overlay.scope_of(node), entity=entity)
    for node in _pages(read, _RELATIONS, "seq", 0, partition=partition):
        yield RelationRow(owner=overlay.scope_of(node), relation=_to_relation(node))
    for live in (False, True):
        yield from _records(read, partition, live=live)


def _records(read: ReadTransaction, partition: str, *, live: bool) -> Iterator[SnapshotRow]:
    after: dict[str, Any] = {"created_at": -(2**63), "id": ""}
    while True:
        parameters = {"partition": partition, "live": live, "limit": _PAGE, **after}
        found = read(partial(_run, _RECORDS, parameters))
        for row in found:
            node = row["node"]
            yield RecordRow(
                record=overlay.to_record(node),
                live=live,
                versions=tuple(map(overlay.to_version, row["versions"])),
                states=tuple(map(_to_relation, row["assertions"])),
                recalls=tuple(map(rows.from_micros, node.get("recalls") or ())),
            )
        if len(found) < _PAGE:
            return
        after = {name: found[-1]["node"][name] for name in after}


def _pages(
    read: ReadTransaction, text: str, key: str, after: Any, **parameters: Any
) -> Iterator[Mapping[str, Any]]:
    while True:
        found = read(partial(_run, text, {"after": after, "limit": _PAGE, **parameters}))
        yield from (row["node"] for row in found)
        if len(found) < _PAGE:
            return
        after = found[-1]["node"][key]


def _run(text: str, parameters: Mapping[str, Any], run: RunQuery) -> list[dict[str, Any]]:
    return run(text, **parameters)


def _to_relation(node: Mapping[str, Any]) -> Relation:
    return Relation(
        subject=node["subject"],
        predicate=node["predicate"],
        object=node["object"],
        valid_from=rows.from_beginning(node["valid_from"]),
        valid_to=rows.from_micros(node.get("valid_to")),
        single_valued=bool(node.get("single")),
        expired_at=rows.from_micros(node.get("expired_at")),
        created_at=rows.from_micros(node.get("created_at")),
        conflict=bool(node.get("conflict")),
        identity=split_key(node["key"])[1],
    )


# -- load ------------------------------------------------------------------------------------------


def load(run: RunQuery, snapshot: Sequence[SnapshotRow]) -> None:
    """Load the snapshot of another store; what is newer here stays."""
    fences = [
        {"id": one.key, "version": one.version} for one in snapshot if isinstance(one, FenceRow)
    ]
    if fences:
        run(_FENCE, rows=fences)
    records = [one for one in snapshot if isinstance(one, RecordRow)]
    [found] = run(
        _STORED,
        partitions=sorted({one.partition for one in snapshot if one.partition}),
        ids=[one.record.id for one in records],
        fences=overlay.fence_keys({one.record.scope for one in records}),
    )
    stored = {one["id"]: one for one in found["records"]}
    erased = {one["id"]: one["version"] for one in found["fences"]}
    wanted = [one for one in records if _is_wanted(one, stored.get(one.record.id), erased)]
    parts = _parts(snapshot, wanted, found["partitions"])
    reloaded = [one for one in wanted if one.record.id in stored]
    for part, text in _WRITE.items():
        if part == "supports" and reloaded:
            _retract(run, reloaded)
        if parts[part]:
            run(f"UNWIND $rows AS row {text}", rows=parts[part])


def _is_wanted(one: RecordRow, stored: Mapping[str, Any] | None, erased: Mapping[str, int]) -> bool:
    scope, version = one.record.scope, one.record.version
    if stored is not None and overlay.scope_of(stored) != scope:
        return False
    age = version, one.record.times_told
    if stored is not None and (stored["version"], stored["times_told"]) > age:
        return False
    return not any(version <= erased.get(cover.key, -1) for cover in scope.covering())


def _retract(run: RunQuery, records: Sequence[RecordRow]) -> None:
    """Retract what records assert in the store and not in the snapshot."""
    parameters = [
        {
            "id": one.record.id,
            "assertions": [_relation_id(one.record.scope.owner, each) for each in one.states],
        }
        for one in records
    ]
    for row in run(_RETRACT, rows=parameters):
        if row["entities"]:
            run(queries.DROP_UNUSED_ENTITIES, entities=row["entities"])


def _parts(
    snapshot: Sequence[SnapshotRow],
    records: Sequence[RecordRow],
    partitions: Sequence[Mapping[str, Any]],
) -> dict[str, list[dict[str, Any]]]:
    parts: dict[str, list[dict[str, Any]]] = {part: [] for part in _WRITE}
    numbers = {one["id"]: count(one["next"]) for one in partitions}
    for one in snapshot:
        match one:
            case SessionRow():
                own = {"id": one.scope.key, "next": one.next}
                parts["sessions"].append(overlay.to_node(asdict(one.scope), **own))
            case EntityRow():
                entity = _entity(one)
                parts["entities"].append({**entity, "seq": next(numbers[one.partition])})
                pairs = overlay.pair_ids(one.partition, entity["key"])
                parts["pairs"].append({"entity": entity["id"], "pairs": pairs})
            case RelationRow():
                resolved = _resolved(one.owner, one.relation)
                own = {**resolved["own"], "seq": next(numbers[one.partition])}
                parts["relations"].append({**resolved, "resolved": resolved["own"], "own": own})
    for one in records:
        parts["records"].append(_node(one))
        parts["versions"] += [_version(version) for version in one.versions]
        parts["supports"] += [_support(one.record, each) for each in one.states]
    parts["partitions"] = [
        {"id": partition, "next": next(number)} for partition, number in numbers.items()
    ]
    return parts


def _entity(one: EntityRow) -> dict[str, Any]:
    key = fold(one.entity.name)
    return overlay.to_node(
        asdict(one.owner),
        id=overlay.entity_id(one.owner.key, key),
        scope=one.owner.key,
        key=key,
        word=overlay.digest(key),
        name=one.entity.name,
        type=one.entity.type,
    )


def _resolved(owner: Scope, one: Relation) -> dict[str, Any]:
    id_, subject, object_ = overlay.relation_ids(owner.key, one)
    own = overlay.to_node(
        asdict(owner),
        id=id_,
        slot=overlay.slot_id(subject, one.key),
        key=one.key,
        predicate=one.predicate,
        valid_from=rows.to_beginning(one.valid_from),
        valid_to=rows.to_micros(one.valid_to),
        single=bool(one.single_valued),
        conflict=one.conflict,
        created_at=rows.to_micros(one.created_at),
        expired_at=rows.to_micros(one.expired_at),
    )
    return {"own": own, "subject": subject, "object": object_}


def _relation_id(owner: Scope, one: Relation) -> str:
    id_, _, _ = overlay.relation_ids(owner.key, one)
    return id_


def _node(one: RecordRow) -> dict[str, Any]:
    row = rows.to_row(one.record, live=one.live)._asdict()
    accesses = [rows.to_micros(at) for at in one.recalls] or None
    return overlay.to_node(row, recalls=accesses)


def _version(one: Version) -> dict[str, Any]:
    return {
        "record": one.record_id,
        "version": one.version,
        "event": one.event,
        "text": one.text,
        "previous": one.previous,
        "metadata": rows.to_json(one.metadata),
        "at": rows.to_micros(one.at),
    }


def _support(record: Record, one: Relation) -> dict[str, Any]:
    return {
        "record": record.id,
        "relation": _relation_id(record.scope.owner, one),
        "single": bool(one.single_valued),
        "valid_to": rows.to_micros(one.valid_to),
        "expired_at": rows.to_micros(one.expired_at),
    }
