"""Snapshot of a Neo4j graph store: dump in the order that all engines share, and load."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from ...ports.snapshot_rows import (
    EntityRow,
    FenceRow,
    RecordRow,
    RelationRow,
    SessionRow,
    SnapshotRow,
)
from ...types import Entity, Record, Relation, Scope, fold
from ..shared import rows
from . import overlay, queries
from .driver import RunQuery

_PAGE = 1000
_FENCES = "MATCH (n:Erasure) WHERE n.id > $id RETURN n{.*} AS node ORDER BY n.id LIMIT $limit"
_PARTITIONS = "MATCH (n:Partition) WHERE n.id > $id RETURN n{.*} AS node ORDER BY n.id LIMIT $limit"
_SESSIONS = "MATCH (n:Session) WHERE n.partition = $partition RETURN n{.*} AS node ORDER BY n.id"
_ENTITIES = (
    "MATCH (n:Entity) WHERE n.partition = $partition AND n.word IS NOT NULL AND n.seq > $seq"
    " RETURN n{.*} AS node ORDER BY n.seq LIMIT $limit"
)
_RELATIONS = """
MATCH (n:Relation) WHERE n.partition = $partition AND n.seq > $seq
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
    " ON MATCH SET s.next = CASE WHEN s.next > row.next THEN s.next ELSE row.next END,"
    " s.first_at = CASE WHEN s.first_at < row.first_at THEN s.first_at"
    " ELSE coalesce(row.first_at, s.first_at) END,"
    " s.last_at = CASE WHEN s.last_at > row.last_at THEN s.last_at"
    " ELSE coalesce(row.last_at, s.last_at) END",
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
    "MATCH (n:Record) WHERE n.id > $id AND n.live AND n.indexed"
    " RETURN n{.id, .version} AS node ORDER BY n.id LIMIT $limit"
)
ReadTransaction = Callable[[Callable[[RunQuery], list[dict[str, Any]]]], list[dict[str, Any]]]


def dump(read: ReadTransaction, since: str) -> Iterator[SnapshotRow]:
    """Read everything: fences, then partition by partition from `since` on, page by page."""
    for row in _pages(read, _FENCES, {"id": ""}):
        yield FenceRow(key=row["node"]["id"], version=row["node"]["version"])
    for row in _pages(read, _PARTITIONS, {"id": ""}):
        if row["node"]["id"] >= since:
            yield from _partition(read, row["node"]["id"])


def versions(read: ReadTransaction) -> Iterator[tuple[str, int]]:
    """Iterate over (id, version) of what the index should have of all owners."""
    nodes = (row["node"] for row in _pages(read, _VERSIONS, {"id": ""}))
    return ((node["id"], node["version"]) for node in nodes)


def _partition(read: ReadTransaction, partition: str) -> Iterator[SnapshotRow]:
    for row in read(lambda run: run(_SESSIONS, partition=partition)):
        node = row["node"]
        first_at, last_at = (rows.from_micros(node.get(name)) for name in ("first_at", "last_at"))
        scope = overlay.scope_of(node)
        yield SessionRow(scope=scope, next=node["next"], first_at=first_at, last_at=last_at)
    for row in _pages(read, _ENTITIES, {"seq": 0}, partition=partition):
        entity = Entity(name=row["node"]["name"], type=row["node"]["type"])
        yield EntityRow(owner=overlay.scope_of(row["node"]), entity=entity)
    for row in _pages(read, _RELATIONS, {"seq": 0}, partition=partition):
        relation = rows.to_relation(row["node"])
        yield RelationRow(owner=overlay.scope_of(row["node"]), relation=relation)
    for live in (False, True):
        first = {"created_at": -(2**63), "id": ""}
        for row in _pages(read, _RECORDS, first, partition=partition, live=live):
            yield RecordRow(
                record=overlay.to_record(row["node"]),
                live=live,
                versions=tuple(map(overlay.to_version, row["versions"])),
                states=tuple(map(rows.to_relation, row["assertions"]))
                or rows.from_retracted(row["node"].get("retracted")),
                recalls=tuple(map(rows.from_micros, row["node"].get("recalls") or ())),
            )


def _pages(
    read: ReadTransaction, text: str, after: Mapping[str, Any], **parameters: Any
) -> Iterator[dict[str, Any]]:
    """Read rows page by page.

    Args:
        after: properties of the node that the last page ended with, by which they are ordered.
    """
    while True:
        found = read(partial(_run, text, {**parameters, **after, "limit": _PAGE}))
        yield from found
        if len(found) < _PAGE:
            return
        after = {name: found[-1]["node"][name] for name in after}


def _run(text: str, parameters: Mapping[str, Any], run: RunQuery) -> list[dict[str, Any]]:
    return run(text, **parameters)


# -- load ------------------------------------------------------------------------------------------


def load(run: RunQuery, snapshot: Sequence[SnapshotRow]) -> None:
    """Load the snapshot of another store; what is newer here stays."""
    fences = [
        {"id": row.key, "version": row.version} for row in snapshot if isinstance(row, FenceRow)
    ]
    if fences:
        run(_FENCE, rows=fences)
    records = [row for row in snapshot if isinstance(row, RecordRow)]
    [found] = run(
        _STORED,
        partitions=sorted({row.partition for row in snapshot if row.partition}),
        ids=[row.record.id for row in records],
        fences=overlay.fence_keys({row.record.scope for row in records}),
    )
    stored = {node["id"]: node for node in found["records"]}
    erased = {node["id"]: node["version"] for node in found["fences"]}
    wanted = [row for row in records if _is_wanted(row, stored.get(row.record.id), erased)]
    parts = _parts(snapshot, wanted, found["partitions"])
    reloaded = [row for row in wanted if row.record.id in stored]
    for part, text in _WRITE.items():
        if part == "supports" and reloaded:
            _retract(run, reloaded)
        if parts[part]:
            run(f"UNWIND $rows AS row {text}", rows=parts[part])


def _is_wanted(row: RecordRow, stored: Mapping[str, Any] | None, erased: Mapping[str, int]) -> bool:
    scope, version = row.record.scope, row.record.version
    if stored is not None and overlay.scope_of(stored) != scope:
        return False
    age = version, row.record.times_told
    if stored is not None and (stored["version"], stored["times_told"]) > age:
        return False
    return not any(version <= erased.get(cover.key, -1) for cover in scope.covering())


def _retract(run: RunQuery, records: Sequence[RecordRow]) -> None:
    """Retract what records assert in the store and not in the snapshot."""
    parameters = [
        {
            "id": row.record.id,
            "assertions": [_relation_id(row.record.scope.owner, each) for each in row.asserted],
        }
        for row in records
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
    numbers = {partition["id"]: count(partition["next"]) for partition in partitions}
    for row in snapshot:
        match row:
            case SessionRow():
                moments = {"first_at": row.first_at, "last_at": row.last_at}
                own = {"id": row.scope.key, "next": row.next}
                own |= {name: rows.to_micros(at) for name, at in moments.items()}
                parts["sessions"].append(overlay.to_node(asdict(row.scope), **own))
            case EntityRow():
                entity = _entity(row)
                parts["entities"].append({**entity, "seq": next(numbers[row.partition])})
                pairs = overlay.pair_ids(row.partition, entity["key"])
                parts["pairs"].append({"entity": entity["id"], "pairs": pairs})
            case RelationRow():
                resolved = _resolved(row.owner, row.relation)
                own = {**resolved["own"], "seq": next(numbers[row.partition])}
                parts["relations"].append({**resolved, "resolved": resolved["own"], "own": own})
    for row in records:
        parts["records"].append(_node(row))
        parts["versions"] += [
            dict(zip(rows.VERSION, rows.from_version(one), strict=True)) for one in row.versions
        ]
        parts["supports"] += [_support(row.record, each) for each in row.asserted]
    parts["partitions"] = [
        {"id": partition, "next": next(number)} for partition, number in numbers.items()
    ]
    return parts


def _entity(row: EntityRow) -> dict[str, Any]:
    key = fold(row.entity.name)
    return overlay.to_node(
        asdict(row.owner),
        id=overlay.entity_id(row.owner.key, key),
        scope=row.owner.key,
        key=key,
        word=overlay.digest(key),
        name=row.entity.name,
        type=row.entity.type,
    )


def _resolved(owner: Scope, relation: Relation) -> dict[str, Any]:
    id_, subject, object_ = overlay.relation_ids(owner.key, relation)
    own = overlay.to_node(
        asdict(owner),
        id=id_,
        slot=overlay.slot_id(subject, relation.key),
        key=relation.key,
        predicate=relation.predicate,
        valid_from=rows.to_beginning(relation.valid_from),
        valid_to=rows.to_micros(relation.valid_to),
        single=bool(relation.single_valued),
        conflict=relation.conflict,
        created_at=rows.to_micros(relation.created_at),
        expired_at=rows.to_micros(relation.expired_at),
    )
    return {"own": own, "subject": subject, "object": object_}


def _relation_id(owner: Scope, relation: Relation) -> str:
    id_, _, _ = overlay.relation_ids(owner.key, relation)
    return id_


def _node(row: RecordRow) -> dict[str, Any]:
    accesses = [rows.to_micros(at) for at in row.recalls] or None
    retracted = None if row.live else rows.to_retracted(row.states)
    columns = rows.to_row(row.record, live=row.live)._replace(retracted=retracted)
    return overlay.to_node(columns._asdict(), recalls=accesses)


def _support(record: Record, relation: Relation) -> dict[str, Any]:
    return {
        "record": record.id,
        "relation": _relation_id(record.scope.owner, relation),
        "single": bool(relation.single_valued),
        "valid_to": rows.to_micros(relation.valid_to),
        "expired_at": rows.to_micros(relation.expired_at),
    }
