"""Embedded checkpoint store, in the file of the embedded graph store.

Channel values are stored once per version, so that a step costs only what it changed.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from sqlite3 import Connection
from typing import Any

from ...ports.checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ...types import Scope
from ..shared import rows
from ..shared.checkpoint_retention import (
    ChannelVersion,
    CheckpointHeader,
    Choose,
    latest,
    referenced,
    resolve_owner,
    without_runs,
)
from .connection import ConnectionHandle, SqliteConnection, create_tables

_SCHEMA = """
CREATE TABLE IF NOT EXISTS thread (
  id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS thread_by_user ON thread (user_id);
CREATE INDEX IF NOT EXISTS thread_by_agent ON thread (user_id, agent_id)
  WHERE agent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS thread_by_session ON thread (user_id, session_id)
  WHERE session_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS checkpoint (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT,
  within TEXT, deltas TEXT NOT NULL, versions TEXT NOT NULL, body_type TEXT NOT NULL,
  body BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (thread, namespace, id)
) STRICT;
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
_AT = "thread = ? AND namespace = ? AND id = ?"
_CHECKPOINT = (
    "thread, namespace, id, parent, run, within, deltas, versions, body_type, body, metadata_type,"
    " metadata"
)
_OWNER = "user_id, agent_id, session_id"
_COLUMNS = f"c.{_CHECKPOINT.replace(', ', ', c.')}"
_WITH_OWNER = "LEFT JOIN thread t ON t.id = c.thread"
_STATE = (
    f"SELECT {_COLUMNS}, {_OWNER} FROM checkpoint c {_WITH_OWNER}"
    " WHERE c.thread = ? AND c.namespace = ?"
)
_WRITE = "thread, namespace, checkpoint, task, number, path, channel, type, data"
_PUT = f"INSERT OR REPLACE INTO checkpoint ({_CHECKPOINT}) VALUES ({'?, ' * 11}?)"
_PUT_NEW = _PUT.replace("REPLACE", "IGNORE")
_PUT_VALUE = "INSERT OR REPLACE INTO channel_value VALUES (?, ?, ?, ?, ?, ?)"
_PUT_WRITE = f"INSERT OR IGNORE INTO task_write ({_WRITE}) VALUES ({'?, ' * 8}?)"
_REPLACE_WRITE = _PUT_WRITE.replace("IGNORE", "REPLACE")
_DELETE_VALUE = (
    "DELETE FROM channel_value WHERE thread = ? AND namespace = ? AND channel = ? AND version = ?"
)


class SqliteCheckpoints:
    """A `Checkpoints` on a connection that engines share; closing it releases only its part."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._handle = ConnectionHandle(connection)
        self._handle.write(lambda c: create_tables(c, _SCHEMA))

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
        *,
        replace: bool = True,
    ) -> bool:
        """Write or replace a checkpoint, with the values that its channels got in its step."""
        address = checkpoint.address
        at = (address.thread, address.namespace)
        filled = [(*at, *key, blob.type, blob.data) for key, blob in values.items() if blob]
        emptied = [(*at, *key) for key, blob in values.items() if blob is None]

        def change(connection: Connection) -> bool:
            _check_owner(connection, address.thread, owner)
            if not connection.execute(_PUT if replace else _PUT_NEW, _to_row(checkpoint)).rowcount:
                return False
            for sql, changed in ((_PUT_VALUE, filled), (_DELETE_VALUE, emptied)):
                if changed:
                    connection.executemany(sql, changed)
            return True

        return self._handle.write(change)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Store what a task wrote beside a checkpoint, which itself may be stored later."""
        at = (address.thread, address.namespace, address.id)

        def change(connection: Connection) -> None:
            _check_owner(connection, address.thread, owner)
            for write in writes:
                key = (*at, write.task, write.index)
                row = (*key, write.path, write.channel, write.value.type, write.value.data)
                connection.execute(_PUT_WRITE if write.index >= 0 else _REPLACE_WRITE, row)

        if writes:
            self._handle.write(change)

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        which, key = ("ORDER BY c.id DESC LIMIT 1", ()) if id is None else ("AND c.id = ?", (id,))
        with self._handle.read() as connection:
            row = connection.execute(f"{_STATE} {which}", (thread, namespace, *key)).fetchone()
            return None if row is None else _state(connection, row)

    def page(
        self,
        selection: Selection,
        *,
        limit: int,
        after: Address | None = None,
        offset: int = 0,
        is_ascending: bool = False,
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace."""
        rows.check_page(limit, offset)
        sql, values = _page(selection, after, is_ascending=is_ascending)
        with self._handle.read() as connection:
            found = connection.execute(f"SELECT {_COLUMNS} {sql}", (*values, limit, offset))
            return [_to_checkpoint(row) for row in found]

    def states(
        self, selection: Selection, *, limit: int, after: Address | None = None
    ) -> list[State]:
        """Read the states of the checkpoints that `page` would read."""
        rows.check_page(limit)
        sql, values = _page(selection, after)
        with self._handle.read() as connection:
            found = connection.execute(f"SELECT {_COLUMNS}, {_OWNER} {sql}", (*values, limit, 0))
            return [_state(connection, row) for row in found]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Read back from a checkpoint's parent to where each channel has a value."""
        found: list[Step] = []
        missing = set(channels)
        sql = f"SELECT parent, versions FROM checkpoint WHERE {_AT}"
        with self._handle.read() as connection:
            at = (address.thread, address.namespace)
            row = connection.execute(sql, (*at, address.id)).fetchone()
            parent = row[0] if row else None
            seen = {address.id}  # parents are user data: they might form a cycle
            while missing and parent is not None and parent not in seen:
                seen.add(parent)
                row = connection.execute(sql, (*at, parent)).fetchone()
                if row is None:
                    break
                versions = {c: v for c, v in rows.from_json(row[1]).items() if c in missing}
                values = _values(connection, at, versions)
                writes = _writes(connection, (*at, parent))
                of_channels = tuple(write for write in writes if write.channel in missing)
                found.append(Step(values=values, writes=of_channels))
                missing -= set(values)
                parent = row[0]
        return found

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""
        if threads:
            chosen = "SELECT value FROM json_each(?)"
            self._handle.write(lambda c: _remove(c, chosen, [rows.to_json(list(threads))]))

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints of these runs, and what only those need."""

        def change(connection: Connection) -> None:
            sql = (
                "SELECT DISTINCT thread FROM checkpoint INDEXED BY checkpoint_by_run"
                " WHERE run IN (SELECT value FROM json_each(?))"
            )
            found = connection.execute(sql, (rows.to_json(list(runs)),)).fetchall()
            for (thread,) in found:
                _keep(connection, thread, partial(without_runs, runs=runs))

        if runs:
            self._handle.write(change)

    def copy(self, source: str, target: str) -> None:
        """Copy a whole thread to another, with its owner."""

        def change(connection: Connection) -> None:
            owner, is_there = _owner_of(connection, source)
            if not is_there or source == target:
                return
            _check_owner(connection, target, owner)
            for table, columns in (
                ("checkpoint", _CHECKPOINT),
                ("channel_value", "thread, namespace, channel, version, type, data"),
                ("task_write", _WRITE),
            ):
                rest = columns.partition(", ")[2]
                connection.execute(
                    f"INSERT OR REPLACE INTO {table} ({columns})"
                    f" SELECT ?, {rest} FROM {table} WHERE thread = ?",
                    (target, source),
                )

        self._handle.write(change)

    def prune(self, threads: Collection[str]) -> None:
        """Keep the latest checkpoint of each namespace, and those that it takes channels from."""

        def change(connection: Connection) -> None:
            for thread in threads:
                _keep(connection, thread, latest)

        if threads:
            self._handle.write(change)

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; return the rows removed, by table."""
        chosen, values = _threads_of(scope)
        removed = self._handle.write(lambda c: _remove(c, chosen, values))
        if any(removed.values()):
            self._handle.truncate_log()
        return removed

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""
        chosen, values = _threads_of(scope)
        with self._handle.read() as connection:
            return {
                name: connection.execute(f"SELECT count(*) FROM {covered}", values).fetchone()[0]
                for name, covered in _covered_tables(chosen).items()
            }

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        self._handle.close()


def _covered_tables(chosen: str) -> dict[str, str]:
    """Select the rows of the threads that a query chooses, in each table."""
    tables = {"checkpoints": "checkpoint", "values": "channel_value", "writes": "task_write"}
    covered = {name: f"{table} WHERE thread IN ({chosen})" for name, table in tables.items()}
    return {**covered, "threads": f"thread WHERE id IN ({chosen})"}  # last, as it has the owners


def _page(
    selection: Selection, after: Address | None, *, is_ascending: bool = False
) -> tuple[str, list[Any]]:
    """Write the end of a statement that reads a page, with the values before limit and offset."""
    comparison, order = (">", "ASC") if is_ascending else ("<", "DESC")
    conditions, values = ["1"], []
    for column in ("thread", "namespace", "id"):
        if (value := getattr(selection, column)) is not None:
            conditions.append(f"c.{column} = ?")
            values.append(value)
    if selection.before is not None:
        conditions.append("c.id < ?")
        values.append(selection.before)
    if after is not None:
        conditions.append(f"(c.id, c.thread, c.namespace) {comparison} (?, ?, ?)")
        values += [after.id, after.thread, after.namespace]
    index = "" if selection.namespace is not None else "INDEXED BY checkpoint_by_thread"
    if selection.thread is None:
        index = "INDEXED BY checkpoint_by_id"
    sql = (
        f"FROM checkpoint c {index} {_WITH_OWNER} WHERE {' AND '.join(conditions)}"
        f" ORDER BY c.id {order}, c.thread {order}, c.namespace {order} LIMIT ? OFFSET ?"
    )
    return sql, values


def _threads_of(scope: Scope) -> tuple[str, list[str | None]]:
    clause, values = rows.covered(scope)
    chosen = f"SELECT id FROM thread {rows.index(scope, 'thread')} WHERE {clause}"
    if scope.owner != scope:
        # A thread whose owner is in no session is the session that its id names.
        clause, of_owner = rows.covered(scope.owner)
        where = f"id = ? AND session_id IS NULL AND {clause}"
        chosen += f" UNION ALL SELECT id FROM thread WHERE {where}"
        values = [*values, scope.session_id, *of_owner]
    return chosen, values


def _check_owner(connection: Connection, thread: str, owner: Scope | None) -> None:
    """Check that a thread belongs to `owner`; make it, or give it that owner, if it has none."""
    stored, is_there = _owner_of(connection, thread)
    resolved = resolve_owner(thread, stored, owner)
    if resolved != stored or not is_there:
        ids = (
            (resolved.user_id, resolved.agent_id, resolved.session_id) if resolved else (None,) * 3
        )
        connection.execute("INSERT OR REPLACE INTO thread VALUES (?, ?, ?, ?)", (thread, *ids))


def _keep(connection: Connection, thread: str, choose: Choose) -> None:
    """Remove the checkpoints that are not chosen, and the thread if nothing is left of it."""
    found = connection.execute(
        "SELECT namespace, id, parent, run, within, deltas, versions"
        " FROM checkpoint WHERE thread = ?",
        (thread,),
    )
    headers = [
        CheckpointHeader(
            namespace=namespace,
            id=id_,
            parent=parent,
            run=run,
            within=tuple(rows.from_json(within)) if within else None,
            deltas=rows.from_json(deltas),
            versions=rows.from_json(versions),
        )
        for namespace, id_, parent, run, within, deltas, versions in found
    ]
    sql = "SELECT namespace, channel, version FROM channel_value WHERE thread = ?"
    values: set[ChannelVersion] = set(connection.execute(sql, (thread,)))
    kept = choose(headers, values)
    removed = [(thread, *header.key) for header in headers if header.key not in kept]
    unused = values - referenced(headers, kept)
    connection.executemany(f"DELETE FROM checkpoint WHERE {_AT}", removed)
    connection.executemany(
        "DELETE FROM task_write WHERE thread = ? AND namespace = ? AND checkpoint = ?", removed
    )
    connection.executemany(_DELETE_VALUE, [(thread, *version) for version in unused])
    connection.execute(
        "DELETE FROM thread WHERE id = ?"
        " AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE thread = thread.id)"
        " AND NOT EXISTS (SELECT 1 FROM task_write WHERE thread = thread.id)",
        (thread,),
    )


def _remove(connection: Connection, chosen: str, values: Sequence[Any]) -> dict[str, int]:
    return {
        name: connection.execute(f"DELETE FROM {covered}", values).rowcount
        for name, covered in _covered_tables(chosen).items()
    }


def _to_row(checkpoint: Checkpoint) -> tuple[Any, ...]:
    """Write a checkpoint as the columns of `_CHECKPOINT`."""
    at, body, metadata = checkpoint.address, checkpoint.body, checkpoint.metadata
    return (
        *(at.thread, at.namespace, at.id, checkpoint.parent, checkpoint.run),
        rows.to_json(checkpoint.within) if checkpoint.within else None,
        *(rows.to_json(checkpoint.deltas), rows.to_json(checkpoint.versions)),
        *(body.type, body.data, metadata.type, metadata.data),
    )


def _to_checkpoint(row: Sequence[Any]) -> Checkpoint:
    """Read a checkpoint from the columns of `_CHECKPOINT`."""
    thread, namespace, id_, parent, run, within, deltas, versions, *blobs = row
    body_type, body, metadata_type, metadata = blobs
    return Checkpoint(
        address=Address(thread=thread, namespace=namespace, id=id_),
        parent=parent,
        run=run,
        within=tuple(rows.from_json(within)) if within else None,
        deltas=tuple(rows.from_json(deltas)),
        versions=rows.from_json(versions),
        body=Blob(type=body_type, data=body),
        metadata=Blob(type=metadata_type, data=metadata),
    )


def _state(connection: Connection, row: Sequence[Any]) -> State:
    """Complete a checkpoint, of whose row the last columns are those of `_OWNER`."""
    checkpoint = _to_checkpoint(row[:-3])
    at = checkpoint.address
    return State(
        checkpoint=checkpoint,
        values=_values(connection, (at.thread, at.namespace), checkpoint.versions),
        writes=_writes(connection, (at.thread, at.namespace, at.id)),
        owner=_to_owner(row[-3:]),
    )


def _values(
    connection: Connection, at: tuple[str, str], versions: Mapping[str, str]
) -> dict[str, Blob]:
    """Read the values of channels at these versions; a channel without one is missing."""
    if not versions:
        return {}
    sql = _values_query(len(versions))
    found = connection.execute(sql, (*chain.from_iterable(versions.items()), *at))
    return {channel: Blob(type=kind, data=data) for channel, kind, data in found}


@cache
def _values_query(number: int) -> str:
    return (
        f"WITH asked (channel, version) AS (VALUES {', '.join(['(?, ?)'] * number)})"
        " SELECT v.channel, v.type, v.data FROM asked CROSS JOIN channel_value v"
        " ON v.thread = ? AND v.namespace = ? AND v.channel = asked.channel"
        " AND v.version = asked.version"
    )


def _writes(connection: Connection, at: tuple[str, str, str]) -> tuple[TaskWrite, ...]:
    """Read what tasks wrote beside a checkpoint, in order."""
    sql = (
        "SELECT task, path, number, channel, type, data FROM task_write"
        " WHERE thread = ? AND namespace = ? AND checkpoint = ?"
    )
    found = [
        TaskWrite(task=t, path=path, index=n, channel=c, value=Blob(type=kind, data=data))
        for t, path, n, c, kind, data in connection.execute(sql, at)
    ]
    if len(found) > 1:
        found.sort(key=lambda write: write.order)
    return tuple(found)


def _owner_of(connection: Connection, thread: str) -> tuple[Scope | None, bool]:
    """Read the owner of a thread, None if it has none, and whether the thread is there."""
    row = connection.execute(f"SELECT {_OWNER} FROM thread WHERE id = ?", (thread,)).fetchone()
    return _to_owner(row or ()), row is not None


def _to_owner(ids: Sequence[str | None]) -> Scope | None:
    return rows.to_scope(*ids) if any(ids) else None
