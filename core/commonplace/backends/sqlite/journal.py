"""Write-ahead journal of accepted operations, in SQLite."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...errors import BackpressureError, StoreUnavailableError
from ...model import Backlog, DeadLetter, Scope, now
from ...ports.stores import Clock, Operation, OperationKind
from ..shared import rows
from .connection import ConnectionHandle, SqliteConnection

_PENDING, _DEAD = 0, 2  # states; 1 is applied and waits until the index is safe from power loss
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 11
_LIMIT = 2**53
_RETRY_AFTER = 1.0
# Triggers keep the tally, so that a count costs the same however many operations there are.
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS op (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
      user_id TEXT, agent_id TEXT, session_id TEXT, partition TEXT NOT NULL, body TEXT NOT NULL,
      version INTEGER NOT NULL, plan BLOB, attempts INTEGER NOT NULL, state INTEGER NOT NULL,
      reason TEXT, at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX IF NOT EXISTS op_by_partition ON op (state, partition, seq)",
    "CREATE INDEX IF NOT EXISTS op_by_state ON op (state, seq)",
    "CREATE INDEX IF NOT EXISTS op_by_user ON op (user_id)",
    "CREATE INDEX IF NOT EXISTS op_by_agent ON op (user_id, agent_id)",
    "CREATE INDEX IF NOT EXISTS op_by_session ON op (user_id, session_id)",
    "CREATE TABLE IF NOT EXISTS tally (state INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT",
    "INSERT OR IGNORE INTO tally VALUES (0, 0), (1, 0), (2, 0)",
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
    " attempts, state, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?) RETURNING seq"
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

    @property
    def scope(self) -> Scope:
        """Belongs to this scope."""
        return rows.to_scope(self.user_id, self.agent_id, self.session_id)


_COLUMNS = ", ".join(OperationColumns._fields)


class SqliteJournal:
    """A `Journal` on a connection that engines share; closing it releases only its part."""

    def __init__(self, connection: SqliteConnection, *, clock: Clock = now) -> None:
        self._handle = ConnectionHandle(connection)
        self._clock = clock
        self._handle.write(lambda c: [c.execute(statement).rowcount for statement in _SCHEMA])

    def append(self, operations: Sequence[Operation], *, max_pending: int) -> list[Operation]:
        """Accept operations in one transaction, durably, and give each its `seq` and `version`.

        For an id that is here already and not dead the stored operation is returned; a dead one is
        replaced.

        Raises:
            BackpressureError: more than `max_pending` would be pending; nothing was accepted.
            StoreUnavailableError: the disk fails, or the clock is past the last version; nothing
                was accepted.
        """
        if not operations:
            return []
        return self._handle.write(lambda c: self._append(c, operations, max_pending))

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Store plans by `seq`, durably; a stored plan stays."""
        if plans:
            sql = "UPDATE op SET plan = ? WHERE seq = ? AND plan IS NULL"
            values = [(plan, seq) for seq, plan in plans.items()]
            self._handle.write(lambda c: c.executemany(sql, values).rowcount)

    def pending(self, partition: str | None = None, *, limit: int = 1000) -> list[Operation]:
        """Read operations neither applied nor dead, of one partition or all, in order of `seq`."""
        if partition is None:
            return self._read("INDEXED BY op_by_state WHERE state = 0", "seq LIMIT ?", (limit,))
        source = "INDEXED BY op_by_partition WHERE state = 0 AND partition = ?"
        return self._read(source, "seq LIMIT ?", (partition, limit))

    def unflushed(self) -> list[Operation]:
        """Read applied operations that are not yet pruned, in order of `seq`."""
        return self._read("INDEXED BY op_by_state WHERE state = 1", "seq", ())

    def done(self, seqs: Collection[int]) -> None:
        """Mark pending operations as applied to every store."""
        if seqs:
            sql = "UPDATE op SET state = 1 WHERE seq = ? AND state = 0"
            values = [(seq,) for seq in seqs]
            self._handle.write(lambda c: c.executemany(sql, values).rowcount)

    def prune(self, seqs: Collection[int]) -> int:
        """Drop those of these operations that are marked as applied; return how many."""
        sql = "DELETE FROM op WHERE seq = ? AND state = 1"
        values = [(seq,) for seq in seqs]
        return self._handle.write(lambda c: c.executemany(sql, values).rowcount) if values else 0

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; return how many there are, 0 if it is not pending."""
        sql = "UPDATE op SET attempts = attempts + 1 WHERE seq = ? AND state = 0 RETURNING attempts"
        row = self._handle.write(lambda c: c.execute(sql, (seq,)).fetchall())
        return int(row[0][0]) if row else 0

    def dead_letter(self, seq: int, reason: str) -> None:
        """Move a pending operation to the dead letters."""
        sql = "UPDATE op SET state = 2, reason = ?, at = ? WHERE seq = ? AND state = 0"
        values = (reason.encode("utf-8", "replace").decode(), rows.to_micros(self._clock()), seq)
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
        return [_to_dead_letter(one) for one in found if scope is None or scope.covers(one.scope)]

    def retry(self, operations: Collection[str]) -> int:
        """Accept dead letters again, as the newest operations; return how many."""
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
        self._handle.close()

    def _read(self, source: str, order: str, values: Sequence[object]) -> list[Operation]:
        sql = f"SELECT {_COLUMNS} FROM op {source} ORDER BY {order}"
        with self._handle.read() as connection:
            found = connection.execute(sql, values)
            return [_to_operation(OperationColumns(*row)) for row in found]

    def _append(
        self, connection: Connection, operations: Sequence[Operation], max_pending: int
    ) -> list[Operation]:
        first = self._next_version(connection)
        accepted: list[Operation] = []
        version = first
        for operation in operations:
            stored = _find(connection, operation.id)
            if stored is not None and stored.state != _DEAD:
                accepted.append(_to_operation(stored))
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
            if version > _LIMIT:
                raise StoreUnavailableError(
                    store="journal", reason="the clock is past the year 2159"
                )
            connection.execute("UPDATE fence SET last = ?", (version - 1,))
        return accepted

    def _retry(self, connection: Connection, operations: Collection[str]) -> int:
        sql = f"DELETE FROM op WHERE id = ? AND state = 2 RETURNING {_COLUMNS}"
        found = [
            OperationColumns(*row)
            for one in operations
            for row in connection.execute(sql, (one,)).fetchall()
        ]
        first = self._next_version(connection)
        for number, row in enumerate(sorted(found, key=lambda row: row.seq)):
            self._insert(connection, replace(_to_operation(row), attempts=0), first + number)
        if found:
            connection.execute("UPDATE fence SET last = ?", (first + len(found) - 1,))
        return len(found)

    def _next_version(self, connection: Connection) -> int:
        elapsed = self._clock() - _YEAR_2020
        milliseconds = (elapsed.days * 86_400 + elapsed.seconds) * 1000
        milliseconds += elapsed.microseconds // 1000
        last = int(connection.execute("SELECT last FROM fence").fetchone()[0])
        return max(last + 1, milliseconds << _COUNTER_BITS)

    def _insert(self, connection: Connection, operation: Operation, version: int) -> Operation:
        scope = operation.scope
        values = (
            operation.id,
            operation.kind,
            scope.user_id,
            scope.agent_id,
            scope.session_id,
            scope.partition,
            operation.body,
            version,
            operation.plan,
            operation.attempts,
            rows.to_micros(self._clock()),
        )
        seq = connection.execute(_INSERT, values).fetchone()[0]
        return replace(operation, seq=seq, version=version)


def _find(connection: Connection, operation: str) -> OperationColumns | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM op WHERE id = ?", (operation,)).fetchall()
    return OperationColumns(*found[0]) if found else None


def _to_operation(row: OperationColumns) -> Operation:
    return Operation(
        id=row.id,
        kind=row.kind,
        scope=row.scope,
        body=row.body,
        seq=row.seq,
        version=row.version,
        plan=row.plan,
        attempts=row.attempts,
    )


def _to_dead_letter(row: OperationColumns) -> DeadLetter:
    return DeadLetter(
        operation=row.id,
        kind=row.kind,
        scope=row.scope,
        reason=row.reason or "",
        attempts=row.attempts,
        at=rows.from_micros(row.at),
    )
