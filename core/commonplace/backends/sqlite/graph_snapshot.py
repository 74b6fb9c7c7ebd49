"""Snapshot of an embedded graph store: dump in the order that all engines share, and load."""

from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ...ports.snapshot_rows import (
    EntityRow,
    FenceRow,
    RecordRow,
    RelationRow,
    SessionRow,
    SnapshotRow,
)
from ...types import Entity, Relation, Scope, Version
from ..shared import rows
from . import assertions, record_tables

_USERS = "SELECT DISTINCT user_id FROM record UNION SELECT DISTINCT user_id FROM session"
_SESSIONS = (
    "SELECT user_id, agent_id, session_id, next, first_at, last_at"
    " FROM session INDEXED BY session_by_user WHERE user_id IS ? ORDER BY key"
)
_ENTITIES = (
    "SELECT user_id, agent_id, session_id, name, type FROM entity INDEXED BY entity_by_user"
    " WHERE user_id IS ? ORDER BY id"
)
_ENDS = "CROSS JOIN entity s ON s.id = r.subject CROSS JOIN entity o ON o.id = r.object"
_RELATIONS = (
    "SELECT r.user_id, r.agent_id, r.session_id, s.name, r.predicate, o.name, r.key, r.valid_from,"
    " r.single, r.valid_to, r.expired_at, r.created_at, r.conflict"
    f" FROM relation r INDEXED BY relation_by_user {_ENDS} WHERE r.user_id IS ? ORDER BY r.id"
)
_RECORDS = (
    f"SELECT {record_tables.COLUMNS} FROM record INDEXED BY record_by_user WHERE user_id IS ?"
    " ORDER BY live, created_at, id"
)
_VERSIONS = f"SELECT {', '.join(rows.VERSION)} FROM version WHERE record = ? ORDER BY version"
_ASSERTIONS = (
    "SELECT s.name, r.predicate, o.name, r.key, r.valid_from, t.single, t.valid_to, t.expired_at"
    f" FROM support t CROSS JOIN relation r ON r.id = t.relation {_ENDS}"
    " WHERE t.record = ? ORDER BY r.id"
)
# Names of the columns after the owner's; the last two are a relation's own.
_NAMES = (
    "subject", "predicate", "object", "key", "valid_from", "single", "valid_to", "expired_at",
    "created_at", "conflict",
)  # fmt: skip
_ACCESSES = "SELECT at FROM recall WHERE record = ? ORDER BY at DESC"


# -- dump ------------------------------------------------------------------------------------------


def dump(connection: Connection, since: str) -> Iterator[SnapshotRow]:
    """Read everything: fences, then partition by partition from `since` on."""
    for key, version in connection.execute("SELECT key, version FROM erasure ORDER BY key"):
        yield FenceRow(key=key, version=version)
    users = [user for (user,) in connection.execute(_USERS)]
    partitions = sorted((Scope(user_id=user).partition if user else "-", user) for user in users)
    for partition, user in partitions:
        if partition >= since:
            yield from _partition(connection, user)


def versions(connection: Connection, record: str) -> list[Version]:
    """Read every version of a record, oldest first."""
    return [rows.to_version(row) for row in connection.execute(_VERSIONS, (record,))]


def _partition(connection: Connection, user: str | None) -> Iterator[SnapshotRow]:
    for *ids, next_position, first_at, last_at in connection.execute(_SESSIONS, (user,)):
        yield SessionRow(
            scope=rows.to_scope(*ids),
            next=next_position,
            first_at=rows.from_micros(first_at),
            last_at=rows.from_micros(last_at),
        )
    for *ids, name, kind in connection.execute(_ENTITIES, (user,)):
        yield EntityRow(owner=rows.to_scope(*ids), entity=Entity(name=name, type=kind))
    for user_id, agent_id, session_id, *row in connection.execute(_RELATIONS, (user,)):
        owner = rows.to_scope(user_id, agent_id, session_id)
        yield RelationRow(owner=owner, relation=_to_relation(row))
    for record in map(rows.RecordColumns._make, connection.execute(_RECORDS, (user,))):
        asserted = map(_to_relation, connection.execute(_ASSERTIONS, (record.id,)))
        accesses = connection.execute(_ACCESSES, (record.id,))
        yield RecordRow(
            record=rows.to_record(record),
            live=bool(record.live),
            versions=tuple(versions(connection, record.id)),
            states=tuple(asserted) if record.live else rows.from_retracted(record.retracted),
            recalls=tuple(rows.from_micros(at) for (at,) in accesses),
        )


def _to_relation(row: Sequence[Any]) -> Relation:
    return rows.to_relation(dict(zip(_NAMES, row, strict=False)))


# -- load ------------------------------------------------------------------------------------------


def load(connection: Connection, snapshot: Sequence[SnapshotRow]) -> None:
    """Load the snapshot of another store; what is newer here stays."""
    for row in snapshot:
        match row:
            case FenceRow(key=key, version=version):
                record_tables.fence(connection, key, version)
            case SessionRow(scope=scope):
                ids = (scope.key, scope.user_id, scope.agent_id, scope.session_id)
                moments = (rows.to_micros(row.first_at), rows.to_micros(row.last_at))
                sql = record_tables.PUT_SESSION.format("max(next, excluded.next)")
                connection.execute(sql, (*ids, row.next, *moments))
            case EntityRow(entity=entity):
                assertions.put_entity(connection, row.owner, entity.name, entity.type)
            case RelationRow():
                _load_relation(connection, row.owner, row.relation)
            case RecordRow():
                _load_record(connection, row)


def _load_relation(connection: Connection, owner: Scope, relation: Relation) -> None:
    created = rows.to_micros(relation.created_at) or 0
    connection.execute(
        "UPDATE relation SET valid_to = ?, single = ?, conflict = ?, created_at = ?, expired_at = ?"
        " WHERE id = ?",
        (
            rows.to_micros(relation.valid_to),
            bool(relation.single_valued),
            relation.conflict,
            created,
            rows.to_micros(relation.expired_at),
            assertions.put_relation(connection, owner, relation, created),
        ),
    )


def _load_record(connection: Connection, row: RecordRow) -> None:
    record = row.record
    held = record_tables.read(connection, record.id)
    if held and record.scope != rows.scope_of(held):
        return
    if held and (held.version, held.times_told) > (record.version, record.times_told):
        return
    if record_tables.is_erased(connection, record.scope, record.version):
        return
    before = rows.to_record(held) if held and held.live else None
    record_tables.put(connection, before, record, live=row.live)
    if not row.live:
        sql = "UPDATE record SET retracted = ? WHERE id = ?"
        connection.execute(sql, (rows.to_retracted(row.states), record.id))
    connection.executemany(
        "INSERT OR IGNORE INTO version VALUES (?, ?, ?, ?, ?, ?, ?)",
        map(rows.from_version, row.versions),
    )
    connection.execute("DELETE FROM recall WHERE record = ?", (record.id,))
    connection.executemany(
        "INSERT OR IGNORE INTO recall VALUES (?, ?)",
        [(record.id, rows.to_micros(at)) for at in row.recalls],
    )
    former = assertions.relation_ids_of(connection, record.id)
    connection.execute("DELETE FROM support WHERE record = ?", (record.id,))
    owner = record.scope.owner
    asserted = {
        assertions.put_relation(connection, owner, relation, 0): relation
        for relation in row.asserted
    }
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, ?)",
        [
            (
                *(id_, record.id, bool(relation.single_valued)),
                *(rows.to_micros(relation.valid_to), rows.to_micros(relation.expired_at)),
            )
            for id_, relation in asserted.items()
        ],
    )
    assertions.drop_unsupported(connection, former - asserted.keys())
