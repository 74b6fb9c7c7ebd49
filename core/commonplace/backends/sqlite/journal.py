"""Write-ahead journal of accepted operations, in SQLite."""

import contextlib
import threading
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...errors import (
    BackpressureError,
    MemoryClosedError,
    StoreLockedError,
    StoreUnavailableError,
)
from ...ports.stores import Clock, Operation, OperationKind, altered, version_at
from ...types import Backlog, DeadLetter, Scope, now
from ..shared import rows
from .connection import ConnectionHandle, SqliteConnection, translated
from .file_lock import ProcessLock

_PENDING, _DEAD = 0, 2  # states
_LIMIT = 2**53
_RETRY_AFTER = 1.0
# Triggers keep the tally, so that a count costs the same however many operations there are.
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS op (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
      user_id TEXT, agent_id TEXT, session_id TEXT, partition TEXT NOT NULL, body TEXT NOT NULL,
      version INTEGER NOT NULL, plan BLOB, attempts INTEGER NOT NULL, state INTEGER NOT NULL,
      reason TEXT, at INTEGER NOT NULL, holder TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX IF NOT EXISTS op_by_partition ON op (state, partition, seq)",
    "CREATE INDEX IF NOT EXISTS op_by_state ON op (state, seq)",
    "CREATE INDEX IF NOT EXISTS op_by_holder ON op (state, holder)",
    "CREATE INDEX IF NOT EXISTS op_by_user ON op (user_id)",
    "CREATE INDEX IF NOT EXISTS op_by_agent ON op (user_id, agent_id)",
    "CREATE INDEX IF NOT EXISTS op_by_session ON op (user_id, session_id)",
    "CREATE TABLE IF NOT EXISTS tally (state INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT",
    "INSERT OR IGNORE INTO tally VALUES (0, 0), (2, 0)",
    """CREATE TRIGGER IF NOT EXISTS op_comes AFTER INSERT ON op BEGIN
      UPDATE tally SET number = number + 1 WHERE state = NEW.state; END""",
    """CREATE TRIGGER IF NOT EXISTS op_goes AFTER DELETE ON op BEGIN
      UPDATE tally SET number = number - 1 WHERE state = OLD.state; END""",
    """CREATE TRIGGER IF NOT EXISTS op_moves AFTER UPDATE OF state ON op BEGIN
      UPDATE tally SET number = number - 1 WHERE state = OLD.state;
      UPDATE tally SET number = number + 1 WHERE state = NEW.state; END""",
    "CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT",
    "INSERT OR IGNORE INTO fence VALUES (1, 0)",
)
_INSERT = (
    "INSERT INTO op (id, kind, user_id, agent_id, session_id, partition, body, version, plan,"
    " attempts, state, at, holder) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?) RETURNING seq"
)


class OperationColumns(NamedTuple):
    """An operation as a row of the table `op`."""

    id: str
    kind: OperationKind
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    body: str
    seq: int
    version: int
    plan: bytes | None
    attempts: int
    state: int
    reason: str | None
    at: int
    holder: str

    @property
    def scope(self) -> Scope:
        """The scope that it belongs to."""
        return rows.to_scope(self.user_id, self.agent_id, self.session_id)


_COLUMNS = ", ".join(OperationColumns._fields)


class SqliteJournal:
    """A `Journal` on a connection that engines share; closing it releases only its part.

    Each journal that has accepted something holds a lock on a file named by its id. The operating
    system releases it when the process ends, however it ends; then others take over its operations.
    """

    def __init__(self, connection: SqliteConnection, *, clock: Clock = now) -> None:
        self._handle = ConnectionHandle(connection)
        self._clock = clock
        self._holder = _Holder(connection.path)
        self._has_swept = False
        self._handle.write(lambda c: [c.execute(statement).rowcount for statement in _SCHEMA])

    def append(self, operations: Sequence[Operation], *, max_pending: int) -> list[Operation]:
        """Accept operations in one transaction, durably, and give each its `seq` and `version`."""
        if not operations:
            return []
        self._holder.hold()
        return self._handle.write(lambda c: self._append(c, operations, max_pending))

    def stamp(self, operations: Sequence[Operation]) -> list[Operation]:
        """Give operations a version without storing them."""

        def change(connection: Connection) -> list[Operation]:
            version = self._next_version(connection)
            stamped = []
            for operation in operations:
                version = max(version, operation.version + 1)
                stamped.append(altered(operation, version=version))
                version += 1
            _set_last_version(connection, version - 1)
            return stamped

        return self._handle.write(change)

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Store plans by `seq`, durably; a stored plan stays."""
        if plans:
            sql = "UPDATE op SET plan = ? WHERE seq = ? AND plan IS NULL"
            values = [(plan, seq) for seq, plan in plans.items()]
            self._handle.write(lambda c: c.executemany(sql, values).rowcount)

    def pending(self, partition: str | None = None, *, limit: int = 1000) -> list[Operation]:
        """Read operations neither applied nor dead, of one partition or all, in order of `seq`."""
        source, values = "INDEXED BY op_by_state WHERE state = 0", list[object]([limit])
        if partition is not None:
            source = "INDEXED BY op_by_partition WHERE state = 0 AND partition = ?"
            values = [partition, limit]
        sql = f"SELECT {_COLUMNS} FROM op {source} ORDER BY seq LIMIT ?"
        with self._handle.read() as connection:
            found = connection.execute(sql, values)
            return [self._to_operation(OperationColumns(*row)) for row in found]

    def take_over(self) -> list[Operation]:
        """Take over the pending operations of processes that are no longer alive; return them."""
        sql = "SELECT DISTINCT holder FROM op INDEXED BY op_by_holder WHERE state = 0"
        with self._handle.read() as connection:
            holders = {holder for (holder,) in connection.execute(sql)} - {self._holder.id}
        if not self._has_swept:
            self._has_swept = True
            self._holder.remove_dead_locks(keep=holders)
        return [op for holder in sorted(holders) for op in self._take_over(holder)]

    def _take_over(self, holder: str) -> list[Operation]:
        lock = self._holder.lock_of_dead(holder)
        if lock is None:
            return []
        sql = f"UPDATE op SET holder = ? WHERE state = 0 AND holder = ? RETURNING {_COLUMNS}"
        try:
            mine = self._holder.hold()
            taken = self._handle.write(lambda c: c.execute(sql, (mine, holder)).fetchall())
        finally:
            lock.remove()
        found = [self._to_operation(OperationColumns(*row)) for row in taken]
        return sorted(found, key=lambda op: op.seq)

    def remove(self, seqs: Collection[int]) -> int:
        """Drop pending operations of this process that every store has; return how many."""
        sql = "DELETE FROM op WHERE seq = ? AND state = 0 AND holder = ?"
        values = [(seq, self._holder.id) for seq in seqs]
        return self._handle.write(lambda c: c.executemany(sql, values).rowcount) if values else 0

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; return how many there are, 0 if it is not pending."""
        sql = "UPDATE op SET attempts = attempts + 1 WHERE seq = ? AND state = 0 RETURNING attempts"
        row = self._handle.write(lambda c: c.execute(sql, (seq,)).fetchall())
        return int(row[0][0]) if row else 0

    def dead_letter(self, seq: int, reason: str, left: Operation | None = None) -> None:
        """Move a pending operation, or what is `left` of it, to the dead letters."""
        sql = "UPDATE op SET state = 2, reason = ?, at = ? WHERE seq = ? AND state = 0"
        values: tuple[Any, ...] = (
            reason.encode("utf-8", "replace").decode(), rows.to_micros(self._clock()), seq,
        )  # fmt: skip
        if left is not None:
            sql = sql.replace(" WHERE", ", kind = ?, body = ?, plan = NULL WHERE")
            values = (*values[:2], left.kind, left.body, seq)
        self._handle.write(lambda c: c.execute(sql, values).rowcount)

    def dead(self, scope: Scope | None = None) -> list[DeadLetter]:
        """Read dead letters that the scope covers, oldest first; None reads all."""
        where, values = "INDEXED BY op_by_state WHERE state = 2", list[Any]()
        if scope is not None:
            clause, values = rows.covered(scope)
            where += f" AND {clause}"
        sql = f"SELECT {_COLUMNS} FROM op {where} ORDER BY at, seq"
        with self._handle.read() as connection:
            found = [OperationColumns(*row) for row in connection.execute(sql, values)]
        return [
            DeadLetter(
                operation=row.id,
                kind=row.kind,
                scope=row.scope,
                reason=row.reason or "",
                attempts=row.attempts,
                at=rows.from_micros(row.at),
            )
            for row in found
            if scope is None or scope.covers(row.scope)
        ]

    def retry(self, operations: Collection[str]) -> int:
        """Accept dead letters again, as the newest operations; return how many."""
        self._holder.hold()
        return self._handle.write(lambda c: self._retry(c, operations)) if operations else 0

    def erase(self, scope: Scope, before: int) -> int:
        """Drop operations of any state that the scope covers, with `seq` below `before`."""
        clause, values = rows.covered(scope)
        sql = f"DELETE FROM op {rows.index(scope, 'op')} WHERE {clause} AND seq < ?"
        removed = self._handle.write(lambda c: c.execute(sql, (*values, before)).rowcount)
        if removed:
            self._handle.truncate_log()
        return removed

    def count(self, scope: Scope | None = None) -> Backlog:
        """Count pending and dead operations, of a scope or of all."""
        if scope is None:
            sql, values = "SELECT state, number FROM tally", list[Any]()
        else:
            clause, values = rows.covered(scope)
            source = f"op {rows.index(scope, 'op')} WHERE {clause}"
            sql = f"SELECT state, count(*) FROM {source} GROUP BY state"
        with self._handle.read() as connection:
            found = dict(connection.execute(sql, values).fetchall())
        return Backlog(pending=found.get(_PENDING, 0), dead=found.get(_DEAD, 0))

    def rows(self, scope: Scope, *, before: int | None = None) -> int:
        """Count operations of any state that the scope covers, with `seq` below `before`."""
        clause, values = rows.covered(scope)
        sql = f"SELECT count(*) FROM op {rows.index(scope, 'op')} WHERE {clause} AND seq < ?"
        with self._handle.read() as connection:
            seq = _LIMIT if before is None else before
            return int(connection.execute(sql, (*values, seq)).fetchone()[0])

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        self._holder.release()
        self._handle.close()

    def _append(
        self, connection: Connection, operations: Sequence[Operation], max_pending: int
    ) -> list[Operation]:
        first = self._next_version(connection)
        accepted: list[Operation] = []
        version = first
        for operation in operations:
            stored = _find(connection, operation.id)
            if stored is not None and stored.state != _DEAD:
                accepted.append(self._to_operation(stored))
                continue
            if stored is not None:
                connection.execute("DELETE FROM op WHERE seq = ?", (stored.seq,))
            version = max(version, operation.version + 1)
            accepted.append(self._insert(connection, operation, version))
            version += 1
        if version > first:
            pending = connection.execute("SELECT number FROM tally WHERE state = 0").fetchone()[0]
            if pending > max_pending:
                raise BackpressureError(
                    pending=pending - (version - first), limit=max_pending, retry_after=_RETRY_AFTER
                )
            _set_last_version(connection, version - 1)
        return accepted

    def _retry(self, connection: Connection, operations: Collection[str]) -> int:
        sql = f"DELETE FROM op WHERE id = ? AND state = 2 RETURNING {_COLUMNS}"
        found = [
            OperationColumns(*row)
            for operation in operations
            for row in connection.execute(sql, (operation,)).fetchall()
        ]
        first = self._next_version(connection)
        for number, row in enumerate(sorted(found, key=lambda row: row.seq)):
            self._insert(connection, replace(self._to_operation(row), attempts=0), first + number)
        if found:
            _set_last_version(connection, first + len(found) - 1)
        return len(found)

    def _next_version(self, connection: Connection) -> int:
        last = int(connection.execute("SELECT last FROM fence").fetchone()[0])
        return max(last + 1, version_at(self._clock()))

    def _insert(self, connection: Connection, operation: Operation, version: int) -> Operation:
        scope = operation.scope
        values = (
            *(operation.id, operation.kind, scope.user_id, scope.agent_id, scope.session_id),
            *(scope.partition, operation.body, version, operation.plan, operation.attempts),
            *(rows.to_micros(self._clock()), self._holder.id),
        )
        seq = connection.execute(_INSERT, values).fetchone()[0]
        return altered(operation, seq=seq, version=version)

    def _to_operation(self, row: OperationColumns) -> Operation:
        return Operation(
            id=row.id,
            kind=row.kind,
            scope=row.scope,
            body=row.body,
            seq=row.seq,
            version=row.version,
            plan=row.plan,
            attempts=row.attempts,
            elsewhere=row.holder != self._holder.id,
        )


class _Holder:
    """Identity of a journal among the processes that use one file, alive while its lock is held."""

    def __init__(self, path: str) -> None:
        self.id: str = uuid.uuid4().hex
        self._path = path
        self._changing = threading.Lock()
        self._lock: ProcessLock | None = None
        self._is_closed = False

    def hold(self) -> str:
        """Take the lock, unless it is held; return the id."""
        with self._changing:
            if self._is_closed:
                raise MemoryClosedError
            while self._lock is None:
                # Another process may look whose file it is, or remove it, in the moment before it
                # is locked.
                lock = self.lock_of_dead(self.id)
                self._lock = lock if lock is not None and lock.is_there else None
        return self.id

    def lock_of_dead(self, holder: str) -> ProcessLock | None:
        """Take the lock of another holder; None while that is alive."""
        with contextlib.suppress(StoreLockedError), translated(self._path):
            return ProcessLock(f"{self._path}.{holder}.lock")
        return None

    def remove_dead_locks(self, keep: Collection[str]) -> None:
        """Remove the lock files of dead processes, except of these holders."""
        path = Path(self._path)
        for file in path.parent.glob(f"{path.name}.{'[0-9a-f]' * 32}.lock"):
            holder = file.name.removeprefix(f"{path.name}.").removesuffix(".lock")
            is_other = holder != self.id and holder not in keep
            if is_other and (lock := self.lock_of_dead(holder)) is not None:
                lock.remove()

    def release(self) -> None:
        """Release the lock; repeating it does nothing."""
        with self._changing:
            self._is_closed = True
            if self._lock is not None:
                self._lock.remove()
                self._lock = None


def _set_last_version(connection: Connection, version: int) -> None:
    if version >= _LIMIT:
        raise StoreUnavailableError(store="journal", reason="the clock is past the year 2159")
    connection.execute("UPDATE fence SET last = ?", (version,))


def _find(connection: Connection, operation: str) -> OperationColumns | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM op WHERE id = ?", (operation,)).fetchall()
    return OperationColumns(*found[0]) if found else None
