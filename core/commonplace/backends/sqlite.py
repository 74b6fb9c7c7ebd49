"""The embedded graph store: records, versions and relations in one SQLite file.

Every read names its index, because the planner's own choice turns with the data.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

from ..filters import Filter
from ..model import Change, Entity, Event, Page, Record, Relation, Scope, Version
from ..ports import Outcome, Put, Remove
from . import relations, rows
from .file import SqliteFile

_SCHEMA = """
CREATE TABLE IF NOT EXISTS record (
  id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT, text TEXT NOT NULL,
  kind TEXT NOT NULL, role TEXT, name TEXT, metadata TEXT NOT NULL, origin TEXT NOT NULL,
  trust REAL NOT NULL, position INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL, valid_to INTEGER, expires_at INTEGER, version INTEGER NOT NULL,
  live INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS record_by_user ON record (user_id, live, created_at, id);
CREATE INDEX IF NOT EXISTS record_by_agent ON record (user_id, agent_id, live, created_at, id);
CREATE INDEX IF NOT EXISTS record_by_session ON record (user_id, session_id, live, created_at, id);
CREATE TABLE IF NOT EXISTS version (
  record TEXT NOT NULL, version INTEGER NOT NULL, event TEXT NOT NULL, text TEXT, previous TEXT,
  metadata TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (record, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
  key TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT NOT NULL, next INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS session_by_user ON session (user_id, session_id);
CREATE TABLE IF NOT EXISTS erasure (key TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
"""
_PUT = f"INSERT OR REPLACE INTO record ({rows.RECORD}, live) VALUES ({'?, ' * 18}1)"  # noqa: S608 -- a constant
_GET = f"SELECT {rows.RECORD}, live FROM record WHERE id = ?"  # noqa: S608 -- a constant
_WIPE = (
    "UPDATE record SET live = 0, text = '', metadata = '{}', role = NULL, name = NULL,"
    " position = NULL, valid_to = NULL, expires_at = NULL, version = ?, updated_at = ?"
    " WHERE id = ?"
)
_LIVE = 18
_VERSION = 17
_TEXT = 4
_BATCH = 1000


class SqliteGraph:
    """A `GraphStore` in an open file; closing it leaves the file to its other users."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file.share()
        self._file.write(lambda c: _create(c, _SCHEMA + relations.SCHEMA))

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each."""
        if not changes:
            return []
        return self._file.write(
            lambda c: [_put(c, one) if isinstance(one, Put) else _remove(c, one) for one in changes]
        )

    def get(self, scope: Scope, ids: Sequence[str]) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others."""
        with self._file.read() as connection:
            found = [_row(connection, one) for one in ids]
        return list(_visible(scope, (row for row in found if row and row[_LIVE])))

    def page(
        self, scope: Scope, *, where: Filter | None = None, limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Read live records, newest first (creation, then id); the filter is judged row by row."""
        rows.check_limit(limit)
        clause, values = rows.covered(scope)
        after: tuple[Any, ...] = ()
        if cursor is not None:
            clause, after = f"{clause} AND (created_at, id) < (?, ?)", rows.from_cursor(cursor)
        sql = (
            f"SELECT {rows.RECORD} FROM record {rows.index(scope, 'record')}"  # noqa: S608 -- parts are ours
            f" WHERE {clause} AND live = 1 ORDER BY created_at DESC, id DESC"
        )
        with self._file.read() as connection:
            answer = connection.execute(sql, (*values, *after))
            matching = (
                one for one in _visible(scope, answer) if where is None or where.matches(one)
            )
            found = list(itertools.islice(matching, limit + 1))
            answer.close()
        if len(found) <= limit:
            return Page(records=tuple(found), cursor=None)
        last = found[limit - 1]
        created_at = rows.to_micros(last.created_at) or 0
        return Page(records=tuple(found[:limit]), cursor=rows.to_cursor(created_at, last.id))

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""
        sql = (
            "SELECT record, version, event, text, previous, metadata, at FROM version"
            " WHERE record = ? ORDER BY version"
        )
        with self._file.read() as connection:
            row = _row(connection, record_id)
            if row is None or not scope.covers(_owner(row)):
                return []
            found = connection.execute(sql, (record_id,)).fetchall()
        return [
            Version(
                record_id=one[0], version=one[1], event=one[2], text=one[3], previous=one[4],
                metadata=json.loads(one[5]), at=rows.at_micros(one[6]),
            )
            for one in found
        ]

    def relations(self, scope: Scope, entity: str | None = None) -> list[Relation]:
        """Read relations of records that the scope covers, of one entity or of all, by age."""
        with self._file.read() as connection:
            return relations.read(connection, scope, entity)

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""
        with self._file.read() as connection:
            return relations.entities(connection, scope)

    def erase(self, scope: Scope, version: int) -> dict[str, int]:
        """Remove all that the scope covers up to `version`, tombstones and history too."""
        removed = self._file.write(lambda c: _erase(c, scope, version))
        if any(removed.values()):
            self._file.scrub()
        return removed

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""
        clause, values = rows.covered(scope)
        source = f"record {rows.index(scope, 'record')} WHERE {clause}"
        with self._file.read() as connection:
            return {
                "records": _number(connection, f"SELECT count(*) FROM {source}", values),  # noqa: S608 -- parts are ours
                "versions": _number(
                    connection,
                    "SELECT count(*) FROM version WHERE record IN"  # noqa: S608 -- parts are ours
                    f" (SELECT id FROM {source})",
                    values,
                ),
                **relations.count(connection, scope),
            }

    def versions(self, scope: Scope) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of every live record that the scope covers, in no order."""
        clause, values = rows.covered(scope)
        sql = (
            "SELECT id, version, created_at FROM record"  # noqa: S608 -- parts are ours
            f" {rows.index(scope, 'record')} WHERE {clause} AND live = 1"
            " AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
        )
        last: tuple[int, str] = (-(2**63), "")
        while True:
            with self._file.read() as connection:
                found = connection.execute(sql, (*values, *last, _BATCH)).fetchall()
            yield from ((row[0], row[1]) for row in found)
            if len(found) < _BATCH:
                return
            last = (found[-1][2], found[-1][0])

    def close(self) -> None:
        """Leave the file; repeating it does nothing."""
        self._file.close()


def _create(connection: Connection, schema: str) -> None:
    for statement in schema.split(";"):
        connection.execute(statement)


def _row(connection: Connection, record_id: object) -> tuple[Any, ...] | None:
    try:
        found: tuple[Any, ...] | None = connection.execute(_GET, (record_id,)).fetchone()
    except UnicodeEncodeError:
        return None  # a lone surrogate names no record
    return found


def _number(connection: Connection, sql: str, values: Sequence[Any]) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def _owner(row: Sequence[Any]) -> Scope:
    return Scope(user_id=row[1], agent_id=row[2], session_id=row[3])


def _visible(scope: Scope, found: Iterable[Sequence[Any]]) -> Iterator[Record]:
    # The query has asked for the scope already; this look does not depend on it being right.
    return (one for one in map(rows.from_row, found) if scope.covers(one.scope))


def _is_erased(connection: Connection, scope: Scope, version: int) -> bool:
    sql = "SELECT version FROM erasure WHERE key = ?"
    fences = (connection.execute(sql, (one.key,)).fetchone() for one in scope.covering())
    return any(fence is not None and version <= fence[0] for fence in fences)


def _ignored(record_id: str, stored: Record | None) -> Outcome:
    text = stored.text if stored else None
    return Outcome(change=Change(id=record_id, text=text, event="NONE"), record=stored)


def _repeated(connection: Connection, row: Sequence[Any], stored: Record | None) -> Outcome:
    sql = "SELECT text, event, previous FROM version WHERE record = ? AND version = ?"
    done = connection.execute(sql, (row[0], row[_VERSION])).fetchone()
    change = Change(id=row[0], text=done[0], event=done[1], previous=done[2])
    return Outcome(change=change, record=stored)


def _put(connection: Connection, put: Put) -> Outcome:
    record = put.record
    row = _row(connection, record.id)
    if row is not None and not record.scope.covers(_owner(row)):
        return _ignored(record.id, None)
    stored = rows.from_row(row) if row and row[_LIVE] else None
    if row is not None and row[_VERSION] >= record.version:
        if row[_VERSION] == record.version and stored is not None:
            return _repeated(connection, row, stored)
        return _ignored(record.id, stored)
    if put.replace != (stored is not None) or _is_erased(
        connection, record.scope if stored is None else stored.scope, record.version
    ):
        return _ignored(record.id, stored)
    if stored is not None:
        record = replace(
            record, created_at=stored.created_at, position=stored.position, scope=stored.scope
        )
    else:
        position = _next_position(connection, record.scope) if put.in_session else None
        record = replace(record, position=position)
    connection.execute(_PUT, rows.to_row(record))
    relations.support(connection, record.scope, record.id, put.relations)
    event: Event = "ADD" if stored is None else "UPDATE"
    change = Change(
        id=record.id, text=record.text, event=event, previous=stored.text if stored else None
    )
    _remember(connection, change, record.version, rows.to_json(record.metadata), record.updated_at)
    return Outcome(change=change, record=record)


def _remove(connection: Connection, remove: Remove) -> Outcome:
    row = _row(connection, remove.id)
    if row is None or not remove.scope.covers(_owner(row)):
        return _ignored(remove.id, None)
    if not row[_LIVE]:
        if row[_VERSION] == remove.version:
            return _repeated(connection, row, None)
        return _ignored(remove.id, None)
    if row[_VERSION] >= remove.version:
        return _ignored(remove.id, rows.from_row(row))
    connection.execute(_WIPE, (remove.version, rows.to_micros(remove.at), remove.id))
    relations.support(connection, _owner(row), remove.id, ())
    change = Change(id=remove.id, text=None, event="DELETE", previous=row[_TEXT])
    _remember(connection, change, remove.version, "{}", remove.at)
    return Outcome(change=change, record=None)


def _remember(
    connection: Connection, change: Change, version: int, metadata: str, at: Any
) -> None:
    connection.execute(
        "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?)",
        (change.id, version, change.event, change.text, change.previous, metadata,
         rows.to_micros(at)),
    )


def _next_position(connection: Connection, scope: Scope) -> int | None:
    if scope.session_id is None:
        return None
    sql = (
        "INSERT INTO session VALUES (?, ?, ?, ?, 1)"
        " ON CONFLICT (key) DO UPDATE SET next = next + 1 RETURNING next - 1"
    )
    values = (scope.key, scope.user_id, scope.agent_id, scope.session_id)
    return _number(connection, sql, values)


def _erase(connection: Connection, scope: Scope, version: int) -> dict[str, int]:
    clause, values = rows.covered(scope)
    source = f"record {rows.index(scope, 'record')} WHERE {clause}"
    doomed = f"SELECT id FROM {source} AND version <= ?"  # noqa: S608 -- parts are ours

    versions = connection.execute(
        f"DELETE FROM version WHERE version <= ? AND record IN (SELECT id FROM {source})",  # noqa: S608 -- parts are ours
        (version, *values),
    ).rowcount
    gone = relations.erase(connection, scope, doomed, [*values, version])
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
    return {"records": removed, "versions": versions, **gone}
