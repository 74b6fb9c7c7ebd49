"""Embedded checkpoint store, in the file of the embedded graph store.

Channel values are stored once per version, so that a step costs only what it changed.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from ...model import Scope
from ...ports.checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ..shared import retention, rows
from .connection import ConnectionHandle, SqliteConnection

HEAD = "thread, namespace, id, parent, run, within, deltas, versions"
ROW = f"{HEAD}, body_type, body, metadata_type, metadata"
WRITE = "thread, namespace, checkpoint, task, number, path, channel, type, data"

_TABLES = {
    "threads": "thread",
    "checkpoints": "checkpoint",
    "values": "channel_value",
    "writes": "task_write",
}
_PUT = f"INSERT OR REPLACE INTO checkpoint ({ROW}) VALUES ({'?, ' * 11}?)"  # noqa: S608 -- constants
_PUT_VALUE = "INSERT OR REPLACE INTO channel_value VALUES (?, ?, ?, ?, ?, ?)"
_PUT_WRITE = f"INSERT OR IGNORE INTO task_write ({WRITE}) VALUES ({'?, ' * 8}?)"  # noqa: S608 -- constants
_PUT_SLOT = _PUT_WRITE.replace("IGNORE", "REPLACE")


class SqliteCheckpoints:
    """A `Checkpoints` in an open file; closing it leaves the file to its other users."""

    def __init__(self, file: SqliteConnection) -> None:
        self._file = ConnectionHandle(file)
        self._file.write(_create)

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
    ) -> None:
        """Write a checkpoint, or write it anew, with the values that its channels have since."""
        row = to_row(checkpoint)
        line = row[:2]
        kept = [(*line, *key, one.type, one.data) for key, one in values.items() if one]
        gone = [(*line, *key) for key, one in values.items() if one is None]

        def change(connection: Connection) -> None:
            _own(connection, checkpoint.address.thread, owner)
            connection.execute(_PUT, row)
            connection.executemany(_PUT_VALUE, kept)
            connection.executemany(
                "DELETE FROM channel_value"
                " WHERE thread = ? AND namespace = ? AND channel = ? AND version = ?",
                gone,
            )

        self._file.write(change)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Keep what a task wrote beside a checkpoint, which itself may come later."""
        at = (address.thread, address.namespace, address.id)
        given = [
            (*at, w.task, w.index, w.path, w.channel, w.value.type, w.value.data) for w in writes
        ]

        def change(connection: Connection) -> None:
            _own(connection, address.thread, owner)
            for row in given:
                connection.execute(_PUT_WRITE if row[4] >= 0 else _PUT_SLOT, row)

        if given:
            self._file.write(change)

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        with self._file.read() as connection:
            return state(connection, thread, namespace, id)

    def page(
        self, asked: Selection, *, limit: int, after: Address | None = None
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace."""
        rows.check_limit(limit)
        parts, values = ["1"], []
        for column in ("thread", "namespace", "id"):
            if (value := getattr(asked, column)) is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        if asked.before is not None:
            parts.append("id < ?")
            values.append(asked.before)
        if after is not None:
            parts.append("(id, thread, namespace) < (?, ?, ?)")
            values += [after.id, after.thread, after.namespace]
        sql = (
            f"SELECT {ROW} FROM checkpoint {_index(asked)} WHERE {' AND '.join(parts)}"  # noqa: S608 -- parts are ours
            " ORDER BY id DESC, thread DESC, namespace DESC LIMIT ?"
        )
        with self._file.read() as connection:
            return [from_row(one) for one in connection.execute(sql, (*values, limit))]

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out what is not there."""
        with self._file.read() as connection:
            found = [state(connection, at.thread, at.namespace, at.id) for at in addresses]
        return [one for one in found if one is not None]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Walk from a checkpoint's parent back to where each channel has a value."""
        found: list[Step] = []
        lacking = set(channels)
        sql = f"SELECT parent, versions FROM checkpoint WHERE {AT}"  # noqa: S608 -- constants
        with self._file.read() as connection:
            line = (address.thread, address.namespace)
            row = connection.execute(sql, (*line, address.id)).fetchone()
            seen = {address.id}
            while lacking and row and row[0] is not None and row[0] not in seen:
                at = row[0]
                seen.add(at)
                row = connection.execute(sql, (*line, at)).fetchone()
                if row is None:
                    break
                versions = {c: v for c, v in json.loads(row[1]).items() if c in lacking}
                values = values_at(connection, line, versions)
                writes = [
                    one for one in writes_at(connection, (*line, at)) if one.channel in lacking
                ]
                found.append(Step(values=values, writes=tuple(writes)))
                lacking -= set(values)
        return found

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""
        if threads:
            chosen = "SELECT value FROM json_each(?)"
            self._file.write(lambda c: _remove(c, chosen, [rows.to_json(list(threads))]))

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints that these runs made, and what only they need."""

        def change(connection: Connection) -> None:
            sql = (
                "SELECT DISTINCT thread FROM checkpoint INDEXED BY checkpoint_by_run"
                " WHERE run IN (SELECT value FROM json_each(?))"
            )
            found = connection.execute(sql, (rows.to_json(list(runs)),)).fetchall()
            for (thread,) in found:
                heads, values = load(connection, thread)
                _keep(connection, thread, heads, values, retention.without(heads, values, runs))

        if runs:
            self._file.write(change)

    def copy(self, source: str, target: str) -> None:
        """Copy all of a thread into another, with its owner."""

        def change(connection: Connection) -> None:
            if not _has(connection, source) or source == target:
                return
            _own(connection, target, owner_of(connection, source))
            for table, columns in (
                ("checkpoint", ROW),
                ("channel_value", "thread, namespace, channel, version, type, data"),
                ("task_write", WRITE),
            ):
                rest = columns.partition(", ")[2]
                connection.execute(
                    f"INSERT OR REPLACE INTO {table} ({columns})"  # noqa: S608 -- constants
                    f" SELECT ?, {rest} FROM {table} WHERE thread = ?",
                    (target, source),
                )

        self._file.write(change)

    def prune(self, threads: Collection[str]) -> None:
        """Keep of each namespace the latest checkpoint, and those that it takes channels from."""

        def change(connection: Connection) -> None:
            for thread in threads:
                heads, values = load(connection, thread)
                _keep(connection, thread, heads, values, retention.latest(heads, values))

        if threads:
            self._file.write(change)

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; answer the rows removed, by table."""
        chosen, values = _owned(scope)
        removed = self._file.write(lambda c: _remove(c, chosen, values))
        if any(removed.values()):
            self._file.scrub()
        return removed

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""
        chosen, values = _owned(scope)
        with self._file.read() as connection:
            return {
                name: int(connection.execute(
                    f"SELECT count(*) FROM {table} WHERE {_key(table)} IN ({chosen})",  # noqa: S608 -- parts are ours
                    values,
                ).fetchone()[0])
                for name, table in _TABLES.items()
            }  # fmt: skip

    def close(self) -> None:
        """Leave the file; repeating it does nothing."""
        self._file.close()


def _create(connection: Connection) -> None:
    for statement in SCHEMA.split(";"):
        connection.execute(statement)


def _key(table: str) -> str:
    return "id" if table == "thread" else "thread"


def _index(asked: Selection) -> str:
    if asked.thread is None:
        return "INDEXED BY checkpoint_by_id"
    return "" if asked.namespace is not None else "INDEXED BY checkpoint_by_thread"


def _owned(scope: Scope) -> tuple[str, list[str | None]]:
    clause, values = rows.covered(scope)
    return f"SELECT id FROM thread {rows.index(scope, 'thread')} WHERE {clause}", values  # noqa: S608 -- parts are ours


def _has(connection: Connection, thread: str) -> bool:
    return connection.execute("SELECT 1 FROM thread WHERE id = ?", (thread,)).fetchone() is not None


def _own(connection: Connection, thread: str, owner: Scope | None) -> None:
    """Make the thread if it is new, and settle whose it is."""
    stored = owner_of(connection, thread)
    settled = retention.settle_owner(thread, stored, owner)
    ids = (settled.user_id, settled.agent_id, settled.session_id) if settled else (None,) * 3
    if settled != stored or not _has(connection, thread):
        connection.execute("INSERT OR REPLACE INTO thread VALUES (?, ?, ?, ?)", (thread, *ids))


def _keep(
    connection: Connection,
    thread: str,
    heads: Iterable[retention.Head],
    values: Collection[retention.Kept],
    kept: Collection[retention.Key],
) -> None:
    """Remove what is not kept, and a thread that has nothing left."""
    gone = [(thread, *one.key) for one in heads if one.key not in kept]
    unused = set(values) - retention.referenced(heads, kept)
    connection.executemany(f"DELETE FROM checkpoint WHERE {AT}", gone)  # noqa: S608 -- constants
    connection.executemany(
        "DELETE FROM task_write WHERE thread = ? AND namespace = ? AND checkpoint = ?", gone
    )
    connection.executemany(
        "DELETE FROM channel_value"
        " WHERE thread = ? AND namespace = ? AND channel = ? AND version = ?",
        [(thread, *one) for one in unused],
    )
    connection.execute(
        "DELETE FROM thread WHERE id = ?"
        " AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE thread = thread.id)"
        " AND NOT EXISTS (SELECT 1 FROM task_write WHERE thread = thread.id)",
        (thread,),
    )


def _remove(connection: Connection, chosen: str, values: Sequence[Any]) -> dict[str, int]:
    return {
        name: connection.execute(
            f"DELETE FROM {table} WHERE {_key(table)} IN ({chosen})",  # noqa: S608 -- parts are ours
            values,
        ).rowcount
        for name, table in reversed(_TABLES.items())  # the threads last: they say whose it all is
    }


SCHEMA = """
CREATE TABLE IF NOT EXISTS thread (
  id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS thread_by_user ON thread (user_id);
CREATE INDEX IF NOT EXISTS thread_by_agent ON thread (user_id, agent_id);
CREATE INDEX IF NOT EXISTS thread_by_session ON thread (user_id, session_id);
CREATE TABLE IF NOT EXISTS checkpoint (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT,
  within TEXT, deltas TEXT NOT NULL, versions TEXT NOT NULL, body_type TEXT NOT NULL,
  body BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (thread, namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS checkpoint_by_thread ON checkpoint (thread, id, namespace);
CREATE INDEX IF NOT EXISTS checkpoint_by_id ON checkpoint (id, thread, namespace);
CREATE INDEX IF NOT EXISTS checkpoint_by_run ON checkpoint (run, thread) WHERE run IS NOT NULL;
CREATE TABLE IF NOT EXISTS channel_value (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL,
  type TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (thread, namespace, channel, version)
) STRICT;
CREATE TABLE IF NOT EXISTS task_write (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, checkpoint TEXT NOT NULL, task TEXT NOT NULL,
  number INTEGER NOT NULL, path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY (thread, namespace, checkpoint, task, number)
) STRICT, WITHOUT ROWID;
"""
AT = "thread = ? AND namespace = ? AND id = ?"


def to_row(one: Checkpoint) -> tuple[Any, ...]:
    """Turn a checkpoint into values in the order of `ROW`."""
    return (
        one.address.thread,
        one.address.namespace,
        one.address.id,
        one.parent,
        one.run,
        rows.to_json(one.within) if one.within else None,
        rows.to_json(one.deltas),
        rows.to_json(dict(one.versions)),
        one.body.type,
        one.body.data,
        one.metadata.type,
        one.metadata.data,
    )


def from_row(row: Sequence[Any]) -> Checkpoint:
    """Turn a row of `ROW` into a checkpoint."""
    return Checkpoint(
        address=Address(thread=row[0], namespace=row[1], id=row[2]),
        parent=row[3],
        run=row[4],
        within=tuple(json.loads(row[5])) if row[5] else None,
        deltas=tuple(json.loads(row[6])),
        versions=json.loads(row[7]),
        body=Blob(type=row[8], data=row[9]),
        metadata=Blob(type=row[10], data=row[11]),
    )


def state(connection: Connection, thread: str, namespace: str, id: str | None) -> State | None:  # noqa: A002 -- as the port
    """Read one state, the latest when `id` is missing; None if there is none."""
    where, given = (AT, (id,)) if id is not None else (AT.replace(" AND id = ?", ""), ())
    sql = f"SELECT {ROW} FROM checkpoint WHERE {where} ORDER BY id DESC LIMIT 1"  # noqa: S608 -- constants
    row = connection.execute(sql, (thread, namespace, *given)).fetchone()
    if row is None:
        return None
    one = from_row(row)
    return State(
        checkpoint=one,
        values=values_at(connection, (thread, namespace), one.versions),
        writes=tuple(writes_at(connection, (thread, namespace, one.address.id))),
        owner=owner_of(connection, thread),
    )


def values_at(
    connection: Connection, line: tuple[str, str], versions: Mapping[str, str]
) -> dict[str, Blob]:
    """Read the values of channels at these versions; one that has none is missing."""
    if not versions:
        return {}
    sql = (
        f"WITH asked (channel, version) AS (VALUES {', '.join(['(?, ?)'] * len(versions))})"  # noqa: S608 -- marks
        " SELECT v.channel, v.type, v.data FROM asked CROSS JOIN channel_value v"
        " ON v.thread = ? AND v.namespace = ? AND v.channel = asked.channel"
        " AND v.version = asked.version"
    )
    given = [one for pair in versions.items() for one in pair]
    found = connection.execute(sql, (*given, *line))
    return {channel: Blob(type=kind, data=data) for channel, kind, data in found}


def writes_at(connection: Connection, at: tuple[str, str, str]) -> list[TaskWrite]:
    """Read what tasks wrote beside a checkpoint, in order."""
    sql = (
        "SELECT task, path, number, channel, type, data FROM task_write"
        " WHERE thread = ? AND namespace = ? AND checkpoint = ?"
    )
    found = [
        TaskWrite(
            task=one[0],
            path=one[1],
            index=one[2],
            channel=one[3],
            value=Blob(type=one[4], data=one[5]),
        )
        for one in connection.execute(sql, at)
    ]
    return sorted(found, key=lambda one: one.order)


def load(connection: Connection, thread: str) -> tuple[list[retention.Head], set[retention.Kept]]:
    """Read a thread's checkpoints without their bytes, and which versions have a value."""
    heads = [
        retention.Head(
            namespace=one[1],
            id=one[2],
            parent=one[3],
            run=one[4],
            within=tuple(json.loads(one[5])) if one[5] else None,
            deltas=json.loads(one[6]),
            versions=json.loads(one[7]),
        )
        for one in connection.execute(
            f"SELECT {HEAD} FROM checkpoint WHERE thread = ?",  # noqa: S608 -- constants
            (thread,),
        )
    ]
    sql = "SELECT namespace, channel, version FROM channel_value WHERE thread = ?"
    return heads, set(connection.execute(sql, (thread,)))


def owner_of(connection: Connection, thread: str) -> Scope | None:
    """Read whose a thread is; None when it is nobody's or not there."""
    sql = "SELECT user_id, agent_id, session_id FROM thread WHERE id = ?"
    row = connection.execute(sql, (thread,)).fetchone()
    return rows.to_scope(*row) if row and any(row) else None
