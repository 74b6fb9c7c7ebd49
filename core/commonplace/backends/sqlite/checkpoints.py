"""Embedded checkpoint store, in the file of the embedded graph store.

Channel values are stored once per version, so that a step costs only what it changed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...ports.checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ...types import Scope
from ..shared import checkpoint_retention, rows
from .connection import ConnectionHandle, SqliteConnection, create_tables

_SCHEMA = """
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
_AT = "thread = ? AND namespace = ? AND id = ?"
_TABLES = {
    "threads": "thread",
    "checkpoints": "checkpoint",
    "values": "channel_value",
    "writes": "task_write",
}


class CheckpointColumns(NamedTuple):
    """A checkpoint as a row of the table `checkpoint`."""

    thread: str
    namespace: str
    id: str
    parent: str | None
    run: str | None
    within: str | None
    deltas: str
    versions: str
    body_type: str
    body: bytes
    metadata_type: str
    metadata: bytes


class WriteColumns(NamedTuple):
    """What a task wrote as a row of the table `task_write`."""

    thread: str
    namespace: str
    checkpoint: str
    task: str
    number: int
    path: str
    channel: str
    type: str
    data: bytes


_CHECKPOINT = ", ".join(CheckpointColumns._fields)
_WRITE = ", ".join(WriteColumns._fields)
_PUT = f"INSERT OR REPLACE INTO checkpoint ({_CHECKPOINT}) VALUES ({'?, ' * 11}?)"
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
    ) -> None:
        """Write or replace a checkpoint, with the values that its channels got in its step."""
        row = _to_row(checkpoint)
        at = (row.thread, row.namespace)
        filled = [(*at, *key, one.type, one.data) for key, one in values.items() if one]
        emptied = [(*at, *key) for key, one in values.items() if one is None]

        def change(connection: Connection) -> None:
            _check_owner(connection, checkpoint.address.thread, owner)
            connection.execute(_PUT, row)
            connection.executemany(_PUT_VALUE, filled)
            connection.executemany(_DELETE_VALUE, emptied)

        self._handle.write(change)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Store what a task wrote beside a checkpoint, which itself may be stored later."""
        written = [_to_write_row(address, one) for one in writes]

        def change(connection: Connection) -> None:
            _check_owner(connection, address.thread, owner)
            for row in written:
                connection.execute(_PUT_WRITE if row.number >= 0 else _REPLACE_WRITE, row)

        if written:
            self._handle.write(change)

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        with self._handle.read() as connection:
            return _state(connection, thread, namespace, id)

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
        rows.check_limit(limit)
        rows.check_offset(offset)
        comparison, order = (">", "ASC") if is_ascending else ("<", "DESC")
        conditions, values = ["1"], []
        for column in ("thread", "namespace", "id"):
            if (value := getattr(selection, column)) is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        if selection.before is not None:
            conditions.append("id < ?")
            values.append(selection.before)
        if after is not None:
            conditions.append(f"(id, thread, namespace) {comparison} (?, ?, ?)")
            values += [after.id, after.thread, after.namespace]
        sql = (
            f"SELECT {_CHECKPOINT} FROM checkpoint {_index(selection)}"
            f" WHERE {' AND '.join(conditions)}"
            f" ORDER BY id {order}, thread {order}, namespace {order} LIMIT ? OFFSET ?"
        )
        with self._handle.read() as connection:
            found = connection.execute(sql, (*values, limit, offset))
            return [_to_checkpoint(CheckpointColumns(*row)) for row in found]

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out missing ones."""
        with self._handle.read() as connection:
            found = [_state(connection, at.thread, at.namespace, at.id) for at in addresses]
        return [one for one in found if one is not None]

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
                of_channels = tuple(one for one in writes if one.channel in missing)
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
                headers, values = _load(connection, thread)
                kept = checkpoint_retention.without_runs(headers, values, runs)
                _keep(connection, thread, headers, values, kept)

        if runs:
            self._handle.write(change)

    def copy(self, source: str, target: str) -> None:
        """Copy a whole thread to another, with its owner."""

        def change(connection: Connection) -> None:
            if not _exists(connection, source) or source == target:
                return
            _check_owner(connection, target, _owner_of(connection, source))
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
                headers, values = _load(connection, thread)
                kept = checkpoint_retention.latest(headers, values)
                _keep(connection, thread, headers, values, kept)

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
                name: int(connection.execute(
                    f"SELECT count(*) FROM {table} WHERE {_key(table)} IN ({chosen})",
                    values,
                ).fetchone()[0])
                for name, table in _TABLES.items()
            }  # fmt: skip

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        self._handle.close()


def _key(table: str) -> str:
    return "id" if table == "thread" else "thread"


def _index(selection: Selection) -> str:
    if selection.thread is None:
        return "INDEXED BY checkpoint_by_id"
    return "" if selection.namespace is not None else "INDEXED BY checkpoint_by_thread"


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


def _exists(connection: Connection, thread: str) -> bool:
    return connection.execute("SELECT 1 FROM thread WHERE id = ?", (thread,)).fetchone() is not None


def _check_owner(connection: Connection, thread: str, owner: Scope | None) -> None:
    """Check that a thread belongs to `owner`; make it, or give it that owner, if it has none."""
    stored = _owner_of(connection, thread)
    resolved = checkpoint_retention.resolve_owner(thread, stored, owner)
    ids = (resolved.user_id, resolved.agent_id, resolved.session_id) if resolved else (None,) * 3
    if resolved != stored or not _exists(connection, thread):
        connection.execute("INSERT OR REPLACE INTO thread VALUES (?, ?, ?, ?)", (thread, *ids))


def _keep(
    connection: Connection,
    thread: str,
    headers: Iterable[checkpoint_retention.CheckpointHeader],
    values: Collection[checkpoint_retention.ChannelVersion],
    kept: Collection[checkpoint_retention.CheckpointKey],
) -> None:
    """Remove what is not in `kept`, and the thread if nothing is left of it."""
    removed = [(thread, *one.key) for one in headers if one.key not in kept]
    unused = set(values) - checkpoint_retention.referenced(headers, kept)
    connection.executemany(f"DELETE FROM checkpoint WHERE {_AT}", removed)
    connection.executemany(
        "DELETE FROM task_write WHERE thread = ? AND namespace = ? AND checkpoint = ?", removed
    )
    connection.executemany(_DELETE_VALUE, [(thread, *one) for one in unused])
    connection.execute(
        "DELETE FROM thread WHERE id = ?"
        " AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE thread = thread.id)"
        " AND NOT EXISTS (SELECT 1 FROM task_write WHERE thread = thread.id)",
        (thread,),
    )


def _remove(connection: Connection, chosen: str, values: Sequence[Any]) -> dict[str, int]:
    return {
        name: connection.execute(
            f"DELETE FROM {table} WHERE {_key(table)} IN ({chosen})",
            values,
        ).rowcount
        for name, table in reversed(_TABLES.items())  # the threads last: they have the owners
    }


def _to_row(one: Checkpoint) -> CheckpointColumns:
    return CheckpointColumns(
        thread=one.address.thread,
        namespace=one.address.namespace,
        id=one.address.id,
        parent=one.parent,
        run=one.run,
        within=rows.to_json(one.within) if one.within else None,
        deltas=rows.to_json(one.deltas),
        versions=rows.to_json(one.versions),
        body_type=one.body.type,
        body=one.body.data,
        metadata_type=one.metadata.type,
        metadata=one.metadata.data,
    )


def _to_checkpoint(row: CheckpointColumns) -> Checkpoint:
    return Checkpoint(
        address=Address(thread=row.thread, namespace=row.namespace, id=row.id),
        parent=row.parent,
        run=row.run,
        within=tuple(rows.from_json(row.within)) if row.within else None,
        deltas=tuple(rows.from_json(row.deltas)),
        versions=rows.from_json(row.versions),
        body=Blob(type=row.body_type, data=row.body),
        metadata=Blob(type=row.metadata_type, data=row.metadata),
    )


def _to_write_row(address: Address, one: TaskWrite) -> WriteColumns:
    return WriteColumns(
        thread=address.thread,
        namespace=address.namespace,
        checkpoint=address.id,
        task=one.task,
        number=one.index,
        path=one.path,
        channel=one.channel,
        type=one.value.type,
        data=one.value.data,
    )


def _to_write(row: WriteColumns) -> TaskWrite:
    return TaskWrite(
        task=row.task,
        path=row.path,
        index=row.number,
        channel=row.channel,
        value=Blob(type=row.type, data=row.data),
    )


def _state(connection: Connection, thread: str, namespace: str, id_: str | None) -> State | None:
    """Read one state, the latest when `id_` is missing; None if there is none."""
    where, values = (_AT, (id_,)) if id_ is not None else (_AT.replace(" AND id = ?", ""), ())
    sql = f"SELECT {_CHECKPOINT} FROM checkpoint WHERE {where} ORDER BY id DESC LIMIT 1"
    row = connection.execute(sql, (thread, namespace, *values)).fetchone()
    if row is None:
        return None
    one = _to_checkpoint(CheckpointColumns(*row))
    return State(
        checkpoint=one,
        values=_values(connection, (thread, namespace), one.versions),
        writes=_writes(connection, (thread, namespace, one.address.id)),
        owner=_owner_of(connection, thread),
    )


def _values(
    connection: Connection, at: tuple[str, str], versions: Mapping[str, str]
) -> dict[str, Blob]:
    """Read the values of channels at these versions; a channel without one is missing."""
    if not versions:
        return {}
    sql = (
        f"WITH asked (channel, version) AS (VALUES {', '.join(['(?, ?)'] * len(versions))})"
        " SELECT v.channel, v.type, v.data FROM asked CROSS JOIN channel_value v"
        " ON v.thread = ? AND v.namespace = ? AND v.channel = asked.channel"
        " AND v.version = asked.version"
    )
    pairs = [one for pair in versions.items() for one in pair]
    found = connection.execute(sql, (*pairs, *at))
    return {channel: Blob(type=kind, data=data) for channel, kind, data in found}


def _writes(connection: Connection, at: tuple[str, str, str]) -> tuple[TaskWrite, ...]:
    """Read what tasks wrote beside a checkpoint, in order."""
    sql = f"SELECT {_WRITE} FROM task_write WHERE thread = ? AND namespace = ? AND checkpoint = ?"
    found = (_to_write(WriteColumns(*row)) for row in connection.execute(sql, at))
    return tuple(sorted(found, key=lambda one: one.order))


def _load(
    connection: Connection, thread: str
) -> tuple[list[checkpoint_retention.CheckpointHeader], set[checkpoint_retention.ChannelVersion]]:
    """Read the headers of a thread's checkpoints, and the versions that have a value."""
    found = connection.execute(
        "SELECT namespace, id, parent, run, within, deltas, versions"
        " FROM checkpoint WHERE thread = ?",
        (thread,),
    )
    headers = [
        checkpoint_retention.CheckpointHeader(
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
    return headers, set(connection.execute(sql, (thread,)))


def _owner_of(connection: Connection, thread: str) -> Scope | None:
    """Read the owner of a thread; None if it has none or is not there."""
    sql = "SELECT user_id, agent_id, session_id FROM thread WHERE id = ?"
    row = connection.execute(sql, (thread,)).fetchone()
    return rows.to_scope(*row) if row and any(row) else None
