"""Embedded graph store: records, versions and relations in one SQLite file.

Every read names its index, because the choice of SQLite's planner changes with the data.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from ...filters import Filter
from ...ports.snapshot import SnapshotRow
from ...ports.stores import Erased, Expansion, Outcome, Put, Remove
from ...types import Entity, Kind, Page, Record, Relation, Scope, Version, now
from ..shared import rows
from . import assertions, namespaces, records, relations, snapshot
from .connection import ConnectionHandle, SqliteConnection, create_tables
from .filters import Condition, compile_filter

SCHEMA = (
    records.SCHEMA
    + """
CREATE TABLE IF NOT EXISTS recall (
  record TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (record, at)
) STRICT, WITHOUT ROWID;
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
    + assertions.SCHEMA
    + ";"
    + namespaces.SCHEMA
)
_BATCH = 1000
_SCOPES = "SELECT DISTINCT user_id, agent_id, session_id FROM record"
_COLUMNS = ", ".join(f"r.{one}" for one in rows.RecordColumns._fields)
_KEEP_LAST_20 = (
    "DELETE FROM recall WHERE record = ? AND at <="
    " (SELECT at FROM recall WHERE record = ? ORDER BY at DESC LIMIT 1 OFFSET 20)"
)


class SqliteGraph:
    """A `GraphStore` on a connection that engines share; closing it releases only its part."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._handle = ConnectionHandle(connection)
        self._handle.write(lambda c: create_tables(c, SCHEMA))

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each."""
        if not changes:
            return []
        return self._handle.write(lambda c: [records.apply(c, one) for one in changes])

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others."""
        with self._handle.read() as connection:
            found = records.read_many(connection, ids)
            live = (rows.to_record(row) for row in found if row.live)
            return list(rows.visible(scope, live, include_expired=include_expired))

    def page(
        self,
        scope: Scope,
        *,
        where: Filter | None = None,
        limit: int = 100,
        cursor: str | None = None,
        kinds: Collection[Kind] = (),
        include_superseded: bool = True,
        as_of: datetime | None = None,
        include_expired: bool = False,
    ) -> Page:
        """Read live records, newest first (creation, then id); parses only what may match."""
        rows.check_limit(limit)
        after = None if cursor is None else rows.from_cursor(cursor)
        source, values = _source(scope, namespaces.folder_wanted(where), kinds, after)
        held, moments = _holding(include_superseded, include_expired, as_of)
        matching, operands = ("1", []) if where is None else compile_filter(where, "r")
        sql = source.format(columns=_COLUMNS, condition=f"{held} AND ({matching})")
        with self._handle.read() as connection:
            found = connection.execute(sql, (*values, *moments, *operands))
            visible = rows.visible(
                scope,
                map(rows.to_record, found),
                include_superseded=include_superseded,
                as_of=as_of,
                include_expired=include_expired,
            )
            page = rows.to_page(visible, where, limit)
            found.close()
        return page

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""
        with self._handle.read() as connection:
            row = records.read(connection, record_id)
            if row is None or not scope.covers(rows.scope_of(row)):
                return []
            return snapshot.versions(connection, record_id)

    def scope_of(self, record_id: str) -> Scope | None:
        """Read the scope of a record, live or deleted; None if there never was one."""
        with self._handle.read() as connection:
            row = records.read(connection, record_id)
            return None if row is None else rows.scope_of(row)

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""
        with self._handle.read() as connection:
            return [rows.to_scope(*ids) for ids in connection.execute(_SCOPES)]

    def relations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> list[Relation]:
        """Read relations of records that the scope covers, or of some of them, by age."""
        current = relations.holding(include_superseded=include_superseded, as_of=as_of)
        with self._handle.read() as connection:
            if records is not None:
                return relations.read_asserted(connection, scope, records, current)
            return relations.read(connection, scope, entity, hops, current)

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations."""
        with self._handle.read() as connection:
            return relations.expand(connection, scope, names, at)

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""
        with self._handle.read() as connection:
            return relations.entities(connection, scope)

    def folders(self, scope: Scope) -> list[str]:
        """List the folders that live records are in, each once, in no order."""
        with self._handle.read() as connection:
            return namespaces.names(connection, scope, now())

    def list_folders(
        self, starts: str = "", *, after: str = "", limit: int = 1000
    ) -> dict[str, list[Scope]]:
        """List folders in their order, each with the scopes of the live records in it."""
        rows.check_limit(limit)
        with self._handle.read() as connection:
            return namespaces.scopes_by_name(connection, starts, after, limit, now())

    def list_users(self, folder: str) -> list[str]:
        """List the users who have live records in a folder; in any for an empty name."""
        with self._handle.read() as connection:
            return namespaces.users(connection, folder)

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Log an access to live records that the scope covers; the last 20 of each are kept."""
        moment = rows.to_micros(at)

        def write(connection: Connection) -> None:
            for one in ids:
                row = records.read(connection, one)
                if row and row.live and scope.covers(rows.scope_of(row)):
                    connection.execute("INSERT OR IGNORE INTO recall VALUES (?, ?)", (one, moment))
                    connection.execute(_KEEP_LAST_20, (one, one))

        self._handle.write(write)

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were accessed, newest first."""
        clause, values = rows.covered(scope, "x")
        sql = (
            "SELECT c.record, c.at FROM recall c WHERE c.record IN (SELECT value FROM json_each(?))"
            f" AND EXISTS (SELECT 1 FROM record x WHERE x.id = c.record AND {clause})"
            " ORDER BY c.record, c.at DESC"
        )
        found: dict[str, list[datetime]] = {}
        with self._handle.read() as connection:
            for one, at in connection.execute(sql, (json.dumps(list(ids)), *values)):
                found.setdefault(one, []).append(rows.from_micros(at))
        return found

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history too."""
        erased = self._handle.write(lambda c: records.erase(c, scope, version))
        if any(erased.removed.values()):
            self._handle.truncate_log()
        return erased

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""
        clause, values = rows.covered(scope)
        source = f"record {rows.index(scope, 'record')} WHERE {clause}"
        with self._handle.read() as connection:
            return {
                "records": _number(connection, f"SELECT count(*) FROM {source}", values),
                "versions": _number(
                    connection,
                    f"SELECT count(*) FROM version WHERE record IN (SELECT id FROM {source})",
                    values,
                ),
                **relations.count(connection, scope),
            }

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of what the index should have of the scope, in no order."""
        if scope is None:
            with self._handle.read() as connection:
                yield from connection.execute(
                    "SELECT id, version FROM record WHERE live = 1 AND indexed = 1"
                )
            return
        clause, values = rows.covered(scope)
        sql = (
            "SELECT id, version, created_at FROM record"
            f" {rows.index(scope, 'record')} WHERE {clause} AND live = 1"
            " AND indexed = 1 AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
        )
        last: tuple[int, str] = (-(2**63), "")
        while True:
            with self._handle.read() as connection:
                found = connection.execute(sql, (*values, *last, _BATCH)).fetchall()
            yield from ((id_, version) for id_, version, _ in found)
            if len(found) < _BATCH:
                return
            id_, _, created_at = found[-1]
            last = (created_at, id_)

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything as it is now: fences, then partition by partition from `since` on."""
        with self._handle.read() as connection:
            yield from snapshot.dump(connection, since)

    def load(self, rows: Sequence[SnapshotRow]) -> None:
        """Load the snapshot of another store in one transaction; what is newer here stays."""
        self._handle.write(lambda c: snapshot.load(c, rows))

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None when it was never set."""
        return self._handle.get_meta(key)

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        self._handle.set_meta(key, value)

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        self._handle.close()


def _number(connection: Connection, sql: str, values: Sequence[Any]) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def _source(
    scope: Scope, folder: str | None, kinds: Collection[Kind], after: tuple[int, str] | None
) -> Condition:
    """Build the statement that reads records `r` in the order of a page, and its first parameters.

    Args:
        folder: only records in this folder; None for all.
        kinds: only these; empty for all.
        after: creation and id of the last record of the page before; None for the first page.
    """
    of_kinds = f" AND r.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    if folder is None:
        order = ("r.created_at", "r.id")
        clause, values = rows.covered(scope, "r")
        index = rows.index(scope, "record")
        index = "INDEXED BY record_by_kind" if len(kinds) == 1 else index
        source = f"record r {index} WHERE {clause} AND r.live = 1"
    else:
        order = ("f.created_at", "f.record")
        clause, values = rows.covered(scope, "f", by_partition=True)
        values.append(folder)
        source = (
            "folder f CROSS JOIN record r ON r.seq = f.seq"
            f" WHERE {clause} AND f.name = ? AND r.live = 1"
        )
    if after is not None:
        source += f" AND ({', '.join(order)}) < (?, ?)"
        values = [*values, *after]
    return (
        f"SELECT {{columns}} FROM {source}{of_kinds} AND {{condition}}"
        f" ORDER BY {order[0]} DESC, {order[1]} DESC"
    ), [*values, *kinds]


def _holding(include_superseded: bool, include_expired: bool, as_of: datetime | None) -> Condition:
    """Build the condition that a record `r` is visible now, as `Record.holds`."""
    at = rows.to_micros(now())
    parts: list[str] = []
    values: list[Any] = []
    if not include_expired:
        parts.append("(r.expires_at IS NULL OR r.expires_at > ?)")
        values.append(at)
    if as_of is not None:
        moment = rows.to_micros(as_of)
        parts.append("r.occurred_at <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)")
        values += [moment, moment]
    elif not include_superseded:
        parts.append("(r.valid_to IS NULL OR r.valid_to > ?)")
        values.append(at)
    return " AND ".join(parts) or "1", values
