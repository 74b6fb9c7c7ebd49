"""Snapshot of an embedded graph store: dump in the order that all engines share, and load."""

import json
from collections.abc import Iterator, Sequence
from sqlite3 import Connection

from ...model import Entity, Relation, Scope, Version
from ...ports.snapshot import EntityRow, FenceRow, RecordRow, RelationRow, SessionRow, SnapshotRow
from ..shared import rows
from . import records, relations

_USERS = "SELECT DISTINCT user_id FROM record UNION SELECT DISTINCT user_id FROM session"
_SESSIONS = (
    "SELECT user_id, agent_id, session_id, next FROM session INDEXED BY session_by_user"
    " WHERE user_id IS ? ORDER BY key"
)
_ENTITIES = (
    "SELECT user_id, agent_id, session_id, name, type FROM entity INDEXED BY entity_by_user"
    " WHERE user_id IS ? ORDER BY id"
)
_NAMED = "s.name, r.predicate, o.name, r.valid_from"
_ENDS = " CROSS JOIN entity s ON s.id = r.subject CROSS JOIN entity o ON o.id = r.object"
_RELATIONS = (
    f"SELECT {_NAMED}, r.single, r.valid_to, r.expired_at, r.created_at, r.conflict, r.user_id,"  # noqa: S608 -- constants
    f" r.agent_id, r.session_id FROM relation r INDEXED BY relation_by_user {_ENDS}"
    " WHERE r.user_id IS ? ORDER BY r.id"
)
_RECORDS = (
    f"SELECT {rows.RECORD}, live FROM record INDEXED BY record_by_user WHERE user_id IS ?"  # noqa: S608 -- a constant
    " ORDER BY live, created_at, id"
)
_VERSIONS = (
    "SELECT record, version, event, text, previous, metadata, at FROM version"
    " WHERE record = ? ORDER BY version"
)
_STATES = (
    f"SELECT {_NAMED}, t.single, t.valid_to, t.expired_at FROM support t"  # noqa: S608 -- constants
    f" CROSS JOIN relation r ON r.id = t.relation {_ENDS} WHERE t.record = ? ORDER BY r.id"
)
_RECALLS = "SELECT at FROM recall WHERE record = ? ORDER BY at DESC"
_PUT = f"INSERT OR REPLACE INTO record ({rows.RECORD}, live) VALUES ({'?, ' * 25}?)"  # noqa: S608 -- a constant


def dump(connection: Connection, since: str) -> Iterator[SnapshotRow]:
    """Read everything: fences, then partition by partition from `since` on."""
    for key, version in connection.execute("SELECT key, version FROM erasure ORDER BY key"):
        yield FenceRow(key=key, version=version)
    users = [row[0] for row in connection.execute(_USERS)]
    partitions = sorted((Scope(user_id=user).partition if user else "-", user) for user in users)
    for partition, user in partitions:
        if partition >= since:
            yield from _partition(connection, user)


def _partition(connection: Connection, user: str | None) -> Iterator[SnapshotRow]:
    for row in connection.execute(_SESSIONS, (user,)):
        yield SessionRow(scope=rows.to_scope(*row[:3]), next=row[3])
    for row in connection.execute(_ENTITIES, (user,)):
        yield EntityRow(owner=rows.to_scope(*row[:3]), entity=Entity(name=row[3], type=row[4]))
    for row in connection.execute(_RELATIONS, (user,)):
        yield RelationRow(owner=rows.to_scope(*row[9:]), relation=_relation(*row[:9]))
    for row in connection.execute(_RECORDS, (user,)):
        yield RecordRow(
            record=rows.from_row(row),
            live=bool(row[records.LIVE]),
            versions=tuple(versions(connection, row[0])),
            states=tuple(_relation(*said) for said in connection.execute(_STATES, (row[0],))),
            recalls=tuple(rows.at_micros(at) for (at,) in connection.execute(_RECALLS, (row[0],))),
        )


def versions(connection: Connection, record: str) -> list[Version]:
    """Read every version of a record, oldest first."""
    return [
        Version(
            record_id=row[0],
            version=row[1],
            event=row[2],
            text=row[3],
            previous=row[4],
            metadata=json.loads(row[5]),
            at=rows.at_micros(row[6]),
        )
        for row in connection.execute(_VERSIONS, (record,))
    ]


def _relation(
    subject: str,
    predicate: str,
    object_: str,
    begins: int,
    single: int,
    ends: int | None,
    expired: int | None,
    created: int | None = None,
    conflict: int = 0,
) -> Relation:
    return Relation(
        subject=subject,
        predicate=predicate,
        object=object_,
        valid_from=rows.from_beginning(begins),
        valid_to=rows.from_micros(ends),
        single_valued=bool(single),
        expired_at=rows.from_micros(expired),
        created_at=rows.from_micros(created),
        conflict=bool(conflict),
    )


# -- taking over -----------------------------------------------------------------------------------


def load(connection: Connection, kept: Sequence[SnapshotRow]) -> None:
    """Take over what another store kept; what is newer here stays."""
    for one in kept:
        match one:
            case FenceRow():
                sql = (
                    "INSERT INTO erasure VALUES (?, ?) ON CONFLICT (key) DO UPDATE"
                    " SET version = max(version, excluded.version)"
                )
                connection.execute(sql, (one.key, one.version))
            case SessionRow():
                sql = (
                    "INSERT INTO session VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE"
                    " SET next = max(next, excluded.next)"
                )
                ids = (one.scope.user_id, one.scope.agent_id, one.scope.session_id)
                connection.execute(sql, (one.scope.key, *ids, one.next))
            case EntityRow():
                relations.entity(connection, one.owner, one.entity.name, one.entity.type)
            case RelationRow():
                _load_relation(connection, one.owner, one.relation)
            case RecordRow():
                _load_record(connection, one)


def _load_relation(connection: Connection, owner: Scope, one: Relation) -> None:
    created = rows.to_micros(one.created_at) or 0
    connection.execute(
        "UPDATE relation SET valid_to = ?, single = ?, conflict = ?, created_at = ?, expired_at = ?"
        " WHERE id = ?",
        (
            rows.to_micros(one.valid_to),
            bool(one.single_valued),
            one.conflict,
            created,
            rows.to_micros(one.expired_at),
            relations.relate(connection, owner, one, created),
        ),
    )


def _load_record(connection: Connection, one: RecordRow) -> None:
    record = one.record
    held = records.read(connection, record.id)
    if held is not None and record.scope != rows.owner(held):
        return
    if held is not None and held[records.VERSION] > record.version:
        return
    if records.is_erased(connection, record.scope, record.version):
        return
    connection.execute(_PUT, (*rows.to_row(record), one.live))
    connection.executemany(
        "INSERT OR IGNORE INTO version VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(v.record_id, v.version, v.event, v.text, v.previous),
                *(rows.to_json(v.metadata), rows.to_micros(v.at)),
            )
            for v in one.versions
        ],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO recall VALUES (?, ?)",
        [(record.id, rows.to_micros(at)) for at in one.recalls],
    )
    before = relations.relation_ids_of(connection, record.id)
    connection.execute("DELETE FROM support WHERE record = ?", (record.id,))
    stated = {
        relations.relate(connection, record.scope.owner, said, 0): said for said in one.states
    }
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, ?)",
        [
            (
                *(key, record.id, bool(said.single_valued)),
                *(rows.to_micros(said.valid_to), rows.to_micros(said.expired_at)),
            )
            for key, said in stated.items()
        ],
    )
    relations.drop(connection, before - stated.keys())
