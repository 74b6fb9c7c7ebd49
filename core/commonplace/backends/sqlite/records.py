"""Rules for applying a change to a stored record: fences, tombstones, repetition and history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from ...model import Change, Event, Record, Scope
from ...ports.stores import Erased, Outcome, Put, Remove
from ..shared import rows
from . import relations

_PUT = f"INSERT OR REPLACE INTO record ({rows.RECORD}, live) VALUES ({'?, ' * 25}1)"  # noqa: S608 -- a constant
_GET = f"SELECT {rows.RECORD}, live FROM record WHERE id = ?"  # noqa: S608 -- a constant
_WIPE = (
    "UPDATE record SET live = 0, text = '', metadata = '{}', role = NULL, name = NULL,"
    " position = NULL, valid_to = NULL, expires_at = NULL, conflicts = '[]', situation = NULL,"
    " outcome = NULL, version = ?,"
    " updated_at = ?"
    " WHERE id = ?"
)
LIVE = 25
VERSION = 17
_TEXT = 4


def read(connection: Connection, record_id: object) -> tuple[Any, ...] | None:
    """Read the row of a record or of its tombstone, in the order of `RECORD` and then `LIVE`."""
    try:
        found: tuple[Any, ...] | None = connection.execute(_GET, (record_id,)).fetchone()
    except UnicodeEncodeError:
        return None  # a lone surrogate names no record
    return found


def is_erased(connection: Connection, scope: Scope, version: int) -> bool:
    """Tell whether an erasure refuses a change of this version."""
    sql = "SELECT version FROM erasure WHERE key = ?"
    fences = (connection.execute(sql, (one.key,)).fetchone() for one in scope.covering())
    return any(fence is not None and version <= fence[0] for fence in fences)


def _ignored(record_id: str, stored: Record | None) -> Outcome:
    text = stored.text if stored else None
    return Outcome(change=Change(id=record_id, text=text, event="NONE"), record=stored)


def _repeated(connection: Connection, row: Sequence[Any], stored: Record | None) -> Outcome:
    sql = "SELECT text, event, previous FROM version WHERE record = ? AND version = ?"
    done = connection.execute(sql, (row[0], row[VERSION])).fetchone()
    change = Change(id=row[0], text=done[0], event=done[1], previous=done[2])
    return Outcome(change=change, record=stored)


def _late(connection: Connection, record_id: str, stored: Record | None) -> Outcome:
    # It may have been applied before, and what it touched may not be in the index yet.
    touched = tuple(relations.mates(connection, record_id)) if stored else ()
    return replace(_ignored(record_id, stored), touched=touched)


def put(connection: Connection, change: Put) -> Outcome:
    """Add or update a record, unless the change is late, known already or finds nothing."""
    record = change.record
    row = read(connection, record.id)
    if row is not None and not record.scope.covers(rows.owner(row)):
        return _ignored(record.id, None)
    stored = rows.from_row(row) if row and row[LIVE] else None
    if row is not None and row[VERSION] >= record.version:
        if row[VERSION] > record.version or stored is None:
            return _late(connection, record.id, stored)
        mates = tuple(relations.mates(connection, record.id))
        return replace(_repeated(connection, row, stored), touched=mates)
    if stored is not None and (change.upsert or not change.replace):
        stored = stored if stored.holds(record.created_at, include_superseded=True) else None
    wanted = stored is not None if change.replace else stored is None
    if not (wanted or change.upsert) or is_erased(
        connection, record.scope if stored is None else stored.scope, record.version
    ):
        return _ignored(record.id, stored)
    if stored is not None:
        given = {name: getattr(record, name) for name in change.fields}
        if "votes" in given:
            given["votes"] += stored.votes
        if change.merge and "metadata" in given:
            given["metadata"] = {**stored.metadata, **given["metadata"]}
        if change.relations is not None:
            given |= {"valid_to": None, "conflicts": ()}
        given |= {"updated_at": record.updated_at, "version": record.version}
        record = replace(stored, **given)
    else:
        position = _next_position(connection, record.scope) if change.in_session else None
        record = replace(record, position=position)
    connection.execute(_PUT, rows.to_row(record))
    touched: list[Record] = []
    if change.relations is not None:
        touched = relations.state(connection, record, change.relations)
        if change.relations:
            record = rows.from_row(read(connection, record.id) or ())
    event: Event = "ADD" if stored is None else "UPDATE"
    done = Change(
        id=record.id, text=record.text, event=event, previous=stored.text if stored else None
    )
    _remember(connection, done, record.version, rows.to_json(record.metadata), record.updated_at)
    return Outcome(change=done, record=record, touched=tuple(touched))


def remove(connection: Connection, change: Remove) -> Outcome:
    """Turn a record into a tombstone, unless the change is late or finds nothing."""
    row = read(connection, change.id)
    if row is None or not change.scope.covers(rows.owner(row)):
        return _ignored(change.id, None)
    if not row[LIVE]:
        if row[VERSION] != change.version:
            return _ignored(change.id, None)
        mates = tuple(relations.claimants(connection, rows.owner(row).owner))
        return replace(_repeated(connection, row, None), touched=mates)
    stored = rows.from_row(row)
    if row[VERSION] >= change.version or (change.spare_pinned and stored.pinned):
        return _ignored(change.id, stored)
    connection.execute(_WIPE, (change.version, rows.to_micros(change.at), change.id))
    connection.execute("DELETE FROM recall WHERE record = ?", (change.id,))
    touched = relations.withdraw(connection, change.id)
    done = Change(id=change.id, text=None, event="DELETE", previous=row[_TEXT])
    _remember(connection, done, change.version, "{}", change.at)
    return Outcome(change=done, record=None, touched=tuple(touched))


def erase(connection: Connection, scope: Scope, version: int) -> Erased:
    """Remove all that the scope covers up to `version`, and refuse it from now on."""
    clause, values = rows.covered(scope)
    source = f"record {rows.index(scope, 'record')} WHERE {clause}"
    doomed = f"SELECT id FROM {source} AND version <= ?"  # noqa: S608 -- parts are ours

    versions = connection.execute(
        f"DELETE FROM version WHERE version <= ? AND record IN (SELECT id FROM {source})",  # noqa: S608 -- parts are ours
        (version, *values),
    ).rowcount
    connection.execute(f"DELETE FROM recall WHERE record IN ({doomed})", (*values, version))  # noqa: S608 -- parts are ours
    gone, touched = relations.erase(connection, doomed, [*values, version])
    removed = connection.execute(
        f"DELETE FROM {source} AND version <= ?",  # noqa: S608 -- parts are ours
        (*values, version),
    ).rowcount
    connection.execute(
        f"DELETE FROM session WHERE {clause} AND NOT EXISTS (SELECT 1 FROM record"  # noqa: S608 -- parts are ours
        " INDEXED BY record_by_session WHERE record.user_id IS session.user_id"
        " AND record.agent_id IS session.agent_id AND record.session_id = session.session_id)",
        values,
    )
    connection.execute(
        "INSERT INTO erasure VALUES (?, ?) ON CONFLICT (key) DO UPDATE"
        " SET version = max(version, excluded.version)",
        (scope.key, version),
    )
    return Erased(
        removed={"records": removed, "versions": versions, **gone},
        # Repeated, it opens nothing, but what it opened may not be in the index yet.
        touched=tuple(touched if removed else relations.claimants(connection, scope)),
    )


def _remember(
    connection: Connection, change: Change, version: int, metadata: str, at: datetime
) -> None:
    connection.execute(
        "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            change.id,
            version,
            change.event,
            change.text,
            change.previous,
            metadata,
            rows.to_micros(at),
        ),
    )


def _next_position(connection: Connection, scope: Scope) -> int | None:
    if scope.session_id is None:
        return None
    sql = (
        "INSERT INTO session VALUES (?, ?, ?, ?, 1)"
        " ON CONFLICT (key) DO UPDATE SET next = next + 1 RETURNING next - 1"
    )
    values = (scope.key, scope.user_id, scope.agent_id, scope.session_id)
    return int(connection.execute(sql, values).fetchone()[0])
