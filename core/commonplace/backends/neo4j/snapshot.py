"""Snapshot of a Neo4j graph store: dump in the order that all engines share, and load."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from ...model import Entity, Record, Relation, Scope, Version, fold
from ...ports.snapshot import EntityRow, FenceRow, RecordRow, RelationRow, SessionRow, SnapshotRow
from ..shared import rows
from . import overlay, queries
from .driver import Ask

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
WHERE n.partition = $partition AND n.live = $live AND n.created_at >= $created_at AND n.id IS NOT NULL
AND CASE WHEN n.created_at = $created_at THEN n.id > $id ELSE true END
WITH n ORDER BY n.partition, n.live, n.created_at, n.id LIMIT $limit
RETURN n{.*} AS node,
  COLLECT { MATCH (n)-[:BECAME]->(v:Version) RETURN v{.*} ORDER BY v.version } AS versions,
  COLLECT { MATCH (n)-[s:STATES]->(q:Relation)
    MATCH (a:Entity)<-[:SUBJECT]-(q)-[:OBJECT]->(b:Entity)
    RETURN s{.*, seq: q.seq, subject: a.name, predicate: q.predicate, object: b.name,
      valid_from: q.valid_from} ORDER BY q.seq } AS states
ORDER BY n.created_at, n.id
"""
# Taking over: the partitions are locked first, and what is here already is looked at.
_FENCE = """
UNWIND $rows AS row MERGE (f:Erasure {id: row.id})
SET f.version = CASE WHEN f.version > row.version THEN f.version ELSE row.version END
"""
_HELD = (
    queries.LOCK
    + """
RETURN partitions,
  COLLECT { UNWIND $ids AS id MATCH (r:Record {id: id})
    RETURN r{.id, .version, .user_id, .agent_id, .session_id} } AS records,
  COLLECT { UNWIND $fences AS id MATCH (f:Erasure {id: id}) RETURN f{.*} } AS fences
"""
)
_WRITE = {
    "sessions": "MERGE (s:Session {id: row.id}) ON CREATE SET s = row"
    " ON MATCH SET s.next = CASE WHEN s.next > row.next THEN s.next ELSE row.next END",
    "entities": queries.SAVE_CLAIMS["entities"],
    "pairs": queries.SAVE_CLAIMS["pairs"],
    "relations": "MATCH (a:Entity {id: row.subject}) MATCH (b:Entity {id: row.object})"
    " MERGE (q:Relation {id: row.own.id}) ON CREATE SET q = row.own ON MATCH SET q += row.settled"
    " MERGE (a)<-[:SUBJECT]-(q) MERGE (q)-[:OBJECT]->(b)",
    "records": "MERGE (r:Record {id: row.id}) SET r = row",
    "versions": "MATCH (r:Record {id: row.record})"
    " MERGE (v:Version {record: row.record, version: row.version}) SET v = row"
    " MERGE (r)-[:BECAME]->(v)",
    "supports": queries.SAVE_CLAIMS["supports"],
    "partitions": queries.SAVE_CLAIMS["partitions"],
}
# What a record stated when it was taken over before, and does not now.
_UNSAID = """
UNWIND $rows AS row
MATCH (:Record {id: row.id})-[s:STATES]->(q:Relation) WHERE NOT q.id IN row.states
DELETE s
WITH DISTINCT q WHERE NOT EXISTS { (:Record)-[:STATES]->(q) }
MATCH (q)-[:SUBJECT|OBJECT]->(e:Entity)
WITH collect(DISTINCT q) AS gone, collect(DISTINCT e.id) AS entities
FOREACH (q IN gone | DETACH DELETE q)
RETURN entities
"""
_VERSIONS = (
    "MATCH (n:Record) WHERE n.id > $after AND n.live AND n.indexed"
    " RETURN n{.id, .version} AS node ORDER BY n.id LIMIT $limit"
)
Read = Callable[[Callable[[Ask], list[dict[str, Any]]]], list[dict[str, Any]]]


def dump(read: Read, since: str) -> Iterator[SnapshotRow]:
    """Read everything: fences, then partition by partition from `since` on; a read is a page."""
    for node in _pages(read, _FENCES, "id", ""):
        yield FenceRow(key=node["id"], version=node["version"])
    for partition in _pages(read, _PARTITIONS, "id", ""):
        if partition["id"] >= since:
            yield from _partition(read, partition["id"])


def versions(read: Read) -> Iterator[tuple[str, int]]:
    """Walk over the (id, version) of what the index should have of all owners."""
    return ((node["id"], node["version"]) for node in _pages(read, _VERSIONS, "id", ""))


def _partition(read: Read, partition: str) -> Iterator[SnapshotRow]:
    for row in read(lambda ask: ask(_SESSIONS, partition=partition)):
        yield SessionRow(scope=overlay.owner(row["node"]), next=row["node"]["next"])
    for node in _pages(read, _ENTITIES, "seq", 0, partition=partition):
        entity = Entity(name=node["name"], type=node["type"])
        yield EntityRow(owner=overlay.owner(node), entity=entity)
    for node in _pages(read, _RELATIONS, "seq", 0, partition=partition):
        yield RelationRow(owner=overlay.owner(node), relation=_relation(node))
    for live in (False, True):
        yield from _records(read, partition, live=live)


def _records(read: Read, partition: str, *, live: bool) -> Iterator[SnapshotRow]:
    place = {"created_at": -(2**63), "id": ""}
    while True:
        given = {"partition": partition, "live": live, "limit": _PAGE, **place}
        found = read(partial(_run, _RECORDS, given))
        for row in found:
            node = row["node"]
            yield RecordRow(
                record=overlay.to_record(node),
                live=live,
                versions=tuple(map(overlay.to_version, row["versions"])),
                states=tuple(map(_relation, row["states"])),
                recalls=tuple(map(rows.at_micros, node.get("recalls") or ())),
            )
        if len(found) < _PAGE:
            return
        place = {name: found[-1]["node"][name] for name in place}


def _pages(
    read: Read, text: str, key: str, after: Any, **given: Any
) -> Iterator[Mapping[str, Any]]:
    while True:
        found = read(partial(_run, text, {"after": after, "limit": _PAGE, **given}))
        yield from (row["node"] for row in found)
        if len(found) < _PAGE:
            return
        after = found[-1]["node"][key]


def _run(text: str, given: Mapping[str, Any], ask: Ask) -> list[dict[str, Any]]:
    return ask(text, **given)


def _relation(node: Mapping[str, Any]) -> Relation:
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
    )


# -- taking over -----------------------------------------------------------------------------------


def load(ask: Ask, kept: Sequence[SnapshotRow]) -> None:
    """Take over what another store kept; what is newer here stays."""
    fences = [{"id": one.key, "version": one.version} for one in kept if isinstance(one, FenceRow)]
    if fences:
        ask(_FENCE, rows=fences)
    records = [one for one in kept if isinstance(one, RecordRow)]
    [found] = ask(
        _HELD,
        partitions=sorted({one.partition for one in kept if one.partition}),
        ids=[one.record.id for one in records],
        fences=overlay.fences({one.record.scope for one in records}),
    )
    held = {one["id"]: one for one in found["records"]}
    erased = {one["id"]: one["version"] for one in found["fences"]}
    wanted = [one for one in records if _is_wanted(one, held.get(one.record.id), erased)]
    parts = _parts(kept, wanted, found["partitions"])
    before = [one for one in wanted if one.record.id in held]
    for part, text in _WRITE.items():
        if part == "supports" and before:
            _unsay(ask, before)
        if parts[part]:
            ask(f"UNWIND $rows AS row {text}", rows=parts[part])


def _is_wanted(one: RecordRow, held: Mapping[str, Any] | None, erased: Mapping[str, int]) -> bool:
    scope, version = one.record.scope, one.record.version
    if held is not None and (overlay.owner(held) != scope or held["version"] > version):
        return False
    return not any(version <= erased.get(cover.key, -1) for cover in scope.covering())


def _unsay(ask: Ask, records: Sequence[RecordRow]) -> None:
    given = [
        {
            "id": one.record.id,
            "states": [_named(one.record.scope.owner, said)[0] for said in one.states],
        }
        for one in records
    ]
    for row in ask(_UNSAID, rows=given):
        if row["entities"]:
            ask(queries.FORGET_ENTITIES, entities=row["entities"])


def _parts(
    kept: Sequence[SnapshotRow],
    records: Sequence[RecordRow],
    partitions: Sequence[Mapping[str, Any]],
) -> dict[str, list[dict[str, Any]]]:
    parts: dict[str, list[dict[str, Any]]] = {part: [] for part in _WRITE}
    numbers = {one["id"]: count(one["next"]) for one in partitions}
    for one in kept:
        match one:
            case SessionRow():
                own = {"id": one.scope.key, "next": one.next}
                parts["sessions"].append(overlay.owned(asdict(one.scope), **own))
            case EntityRow():
                made = _entity(one)
                parts["entities"].append({**made, "seq": next(numbers[one.partition])})
                pairs = overlay.pair_ids(one.partition, made["key"])
                parts["pairs"].append({"entity": made["id"], "pairs": pairs})
            case RelationRow():
                settled = _settled(one.owner, one.relation)
                own = {**settled["own"], "seq": next(numbers[one.partition])}
                parts["relations"].append({**settled, "settled": settled["own"], "own": own})
    for one in records:
        parts["records"].append(_node(one))
        parts["versions"] += [_version(version) for version in one.versions]
        parts["supports"] += [_support(one.record, said) for said in one.states]
    parts["partitions"] = [
        {"id": partition, "next": next(number)} for partition, number in numbers.items()
    ]
    return parts


def _entity(one: EntityRow) -> dict[str, Any]:
    key = fold(one.entity.name)
    return overlay.owned(
        asdict(one.owner),
        id=overlay.entity_id(one.owner.key, key),
        scope=one.owner.key,
        key=key,
        word=overlay.digest(key),
        name=one.entity.name,
        type=one.entity.type,
    )


def _settled(owner: Scope, one: Relation) -> dict[str, Any]:
    name, subject, object_ = _named(owner, one)
    key = fold(one.predicate)
    own = overlay.owned(
        asdict(owner),
        id=name,
        slot=overlay.slot_id(subject, key),
        key=key,
        predicate=one.predicate,
        valid_from=rows.to_beginning(one.valid_from),
        valid_to=rows.to_micros(one.valid_to),
        single=bool(one.single_valued),
        conflict=one.conflict,
        created_at=rows.to_micros(one.created_at),
        expired_at=rows.to_micros(one.expired_at),
    )
    return {"own": own, "subject": subject, "object": object_}


def _named(owner: Scope, one: Relation) -> tuple[str, str, str]:
    """Name a relation, its subject and its object."""
    subject, object_ = (
        overlay.entity_id(owner.key, fold(name)) for name in (one.subject, one.object)
    )
    begins = rows.to_beginning(one.valid_from)
    return overlay.relation_id(subject, fold(one.predicate), object_, begins), subject, object_


def _node(one: RecordRow) -> dict[str, Any]:
    row = dict(zip(rows.RECORD.split(", "), rows.to_row(one.record), strict=True))
    recalls = [rows.to_micros(at) for at in one.recalls] or None
    return overlay.owned(row, live=one.live, recalls=recalls)


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


def _support(record: Record, said: Relation) -> dict[str, Any]:
    return {
        "record": record.id,
        "relation": _named(record.scope.owner, said)[0],
        "single": bool(said.single_valued),
        "valid_to": rows.to_micros(said.valid_to),
        "expired_at": rows.to_micros(said.expired_at),
    }
