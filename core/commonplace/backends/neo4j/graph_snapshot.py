"""Snapshot of a Neo4j graph store: dump in the order that all engines share, and load."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from ...ports.snapshot_rows import (
    EntityRow,
    FenceRow,
    RecordRow,
    RelationRow,
    SessionRow,
    SnapshotRow,
)
from ...types import Entity, fold
from ..shared import rows
from ..sqlite.graph_snapshot import load as load_embedded
from . import graph_writes, overlay, queries
from .driver import RunQuery
from .overlay import Overlay

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
_FENCE = """
UNWIND $rows AS row MERGE (f:Erasure {id: row.id})
SET f.version = CASE WHEN f.version > row.version THEN f.version ELSE row.version END
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
    """Load the snapshot of another store as the embedded store does; what is newer here stays."""
    fences = [
        {"id": row.key, "version": row.version} for row in snapshot if isinstance(row, FenceRow)
    ]
    if fences:
        run(_FENCE, rows=fences)
    records = [row for row in snapshot if isinstance(row, RecordRow)]
    ids = [row.record.id for row in records]
    [found] = run(
        queries.LOAD,
        partitions=sorted({row.partition for row in snapshot if row.partition}),
        ids=ids,
        restored=ids,
        fences=overlay.fence_keys({row.record.scope for row in records}),
        sessions=[row.scope.key for row in snapshot if isinstance(row, SessionRow)],
    )
    stated = [(row.record.scope.owner, one) for row in records for one in row.asserted]
    stated += [(row.owner, row.relation) for row in snapshot if isinstance(row, RelationRow)]
    named = {overlay.relation_ids(owner.key, relation) for owner, relation in stated}
    entities = {end for _, *ends in named for end in ends}
    entities |= {
        overlay.entity_id(row.owner.key, fold(row.entity.name))
        for row in snapshot
        if isinstance(row, EntityRow)
    }
    [assertions] = run(
        queries.STATED,
        ids=ids,
        relations=sorted(id_ for id_, _, _ in named),
        entities=sorted(entities),
    )
    with closing(Overlay()) as copy:
        overlay.load_records(copy, found)
        overlay.load_assertions(copy, assertions)
        load_embedded(copy.connection, snapshot)
        graph_writes.save(run, overlay.save_parameters(copy, found["partitions"]))
