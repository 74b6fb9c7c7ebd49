"""The embedded store of checkpoints, in the file of the embedded graph.

Values of channels are stored once for each version, so that a step costs what it changed.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from ..checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ..model import Scope
from . import checkpoint_rows as cells
from . import lineage, rows
from .file import SqliteFile
from .share import Share

_TABLES = {
    "threads": "thread",
    "checkpoints": "checkpoint",
    "values": "channel_value",
    "writes": "task_write",
}
_PUT = f"INSERT OR REPLACE INTO checkpoint ({cells.ROW}) VALUES ({'?, ' * 11}?)"  # noqa: S608 -- constants
_PUT_VALUE = "INSERT OR REPLACE INTO channel_value VALUES (?, ?, ?, ?, ?, ?)"
_PUT_WRITE = f"INSERT OR IGNORE INTO task_write ({cells.WRITE}) VALUES ({'?, ' * 8}?)"  # noqa: S608 -- constants
_PUT_SLOT = _PUT_WRITE.replace("IGNORE", "REPLACE")


class SqliteCheckpoints:
    """A `Checkpoints` in an open file; closing it leaves the file to its other users."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = Share(file)
        self._file.write(_create)

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
    ) -> None:
        """Write a checkpoint, or write it anew, with the values that its channels have since."""
        row = cells.to_row(checkpoint)
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
            return cells.state(connection, thread, namespace, id)

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
            f"SELECT {cells.ROW} FROM checkpoint {_index(asked)} WHERE {' AND '.join(parts)}"  # noqa: S608 -- parts are ours
            " ORDER BY id DESC, thread DESC, namespace DESC LIMIT ?"
        )
        with self._file.read() as connection:
            return [cells.from_row(one) for one in connection.execute(sql, (*values, limit))]

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out what is not there."""
        with self._file.read() as connection:
            found = [cells.state(connection, at.thread, at.namespace, at.id) for at in addresses]
        return [one for one in found if one is not None]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Walk from a checkpoint's parent back to where each channel has a value."""
        found: list[Step] = []
        lacking = set(channels)
        sql = f"SELECT parent, versions FROM checkpoint WHERE {cells.AT}"  # noqa: S608 -- constants
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
                values = cells.values_at(connection, line, versions)
                writes = [
                    one
                    for one in cells.writes_at(connection, (*line, at))
                    if one.channel in lacking
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
                heads, values = cells.load(connection, thread)
                _keep(connection, thread, heads, values, lineage.without(heads, values, runs))

        if runs:
            self._file.write(change)

    def copy(self, source: str, target: str) -> None:
        """Copy all of a thread into another, with its owner."""

        def change(connection: Connection) -> None:
            if not _has(connection, source) or source == target:
                return
            _own(connection, target, cells.owner_of(connection, source))
            for table, columns in (
                ("checkpoint", cells.ROW),
                ("channel_value", "thread, namespace, channel, version, type, data"),
                ("task_write", cells.WRITE),
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
                heads, values = cells.load(connection, thread)
                _keep(connection, thread, heads, values, lineage.latest(heads, values))

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
    for statement in cells.SCHEMA.split(";"):
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
    stored = cells.owner_of(connection, thread)
    settled = lineage.settle_owner(thread, stored, owner)
    ids = (settled.user_id, settled.agent_id, settled.session_id) if settled else (None,) * 3
    if settled != stored or not _has(connection, thread):
        connection.execute("INSERT OR REPLACE INTO thread VALUES (?, ?, ?, ?)", (thread, *ids))


def _keep(
    connection: Connection,
    thread: str,
    heads: Iterable[lineage.Head],
    values: Collection[lineage.Kept],
    kept: Collection[lineage.Key],
) -> None:
    """Remove what is not kept, and a thread that has nothing left."""
    gone = [(thread, *one.key) for one in heads if one.key not in kept]
    unused = set(values) - lineage.referenced(heads, kept)
    connection.executemany(f"DELETE FROM checkpoint WHERE {cells.AT}", gone)  # noqa: S608 -- constants
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
