"""Write-ahead journal of accepted operations, in SQLite."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any

from ...errors import BackpressureError, StoreUnavailableError
from ...model import Backlog, DeadLetter, Scope, now
from ...ports.stores import Clock, Operation
from ..shared import rows
from .connection import ConnectionHandle, SqliteConnection

# States: 1 is applied and waits for the index to be power-safe.
_PENDING, _DEAD = 0, 2
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 11
_LIMIT = 2**53
_RETRY_AFTER = 1.0
# Triggers keep the tally, so that asking how many wait costs the same however many there are.
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
_OP = "id, kind, user_id, agent_id, session_id, body, seq, version, plan, attempts"
_INSERT = (
    "INSERT INTO op (id, kind, user_id, agent_id, session_id, partition, body, version, plan, attempts,"
    " state, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?) RETURNING seq"
)


class SqliteJournal:
    """A `Journal` in an open file; closing it leaves the file to its other users."""

    def __init__(self, file: SqliteConnection, *, clock: Clock = now) -> None:
        self._file = ConnectionHandle(file)
        self._clock = clock
        self._file.write(lambda c: [c.execute(statement).rowcount for statement in _SCHEMA])

    def append(self, ops: Sequence[Operation], *, max_pending: int) -> list[Operation]:
        """Accept changes in one transaction, durably, giving each its `seq` and `version`.

        One whose id is here already and not dead is answered with the row that is there; one that
        is dead makes room for the new one.

        Raises:
            BackpressureError: more than `max_pending` would wait; nothing was accepted.
            StoreUnavailableError: the disk fails, or the clock is past the last version; nothing was
                accepted.
        """
        if not ops:
            return []
        return self._file.write(lambda c: self._append(c, ops, max_pending))

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Freeze plans by `seq`, durably; one that is frozen already stays."""
        if plans:
            sql = "UPDATE op SET plan = ? WHERE seq = ? AND plan IS NULL"
            values = [(plan, seq) for seq, plan in plans.items()]
            self._file.write(lambda c: c.executemany(sql, values).rowcount)

    def pending(self, partition: str | None = None, *, limit: int = 1000) -> list[Operation]:
        """Read changes not yet applied nor dead, of one partition or all, in order of `seq`."""
        if partition is None:
            return self._read("INDEXED BY op_by_state WHERE state = 0", "seq LIMIT ?", (limit,))
        source = "INDEXED BY op_by_partition WHERE state = 0 AND partition = ?"
        return self._read(source, "seq LIMIT ?", (partition, limit))

    def unflushed(self) -> list[Operation]:
        """Read applied changes that are not yet pruned, in order of `seq`."""
        return self._read("INDEXED BY op_by_state WHERE state = 1", "seq", ())

    def done(self, seqs: Collection[int]) -> None:
        """Mark changes as applied to every store; one that is not pending stays as it is."""
        if seqs:
            sql = "UPDATE op SET state = 1 WHERE seq = ? AND state = 0"
            values = [(seq,) for seq in seqs]
            self._file.write(lambda c: c.executemany(sql, values).rowcount)

    def prune(self, seqs: Collection[int]) -> int:
        """Drop those of these changes that are marked as applied; answer how many."""
        sql = "DELETE FROM op WHERE seq = ? AND state = 1"
        values = [(seq,) for seq in seqs]
        return self._file.write(lambda c: c.executemany(sql, values).rowcount) if values else 0

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; answer how many there are, 0 for an unknown change."""
        sql = "UPDATE op SET attempts = attempts + 1 WHERE seq = ? AND state = 0 RETURNING attempts"
        row = self._file.write(lambda c: c.execute(sql, (seq,)).fetchall())
        return int(row[0][0]) if row else 0

    def dead_letter(self, seq: int, reason: str) -> None:
        """Move a change that is pending to the dead letters."""
        sql = "UPDATE op SET state = 2, reason = ?, at = ? WHERE seq = ? AND state = 0"
        values = (reason.encode("utf-8", "replace").decode(), rows.to_micros(self._clock()), seq)
        self._file.write(lambda c: c.execute(sql, values).rowcount)

    def dead(self, scope: Scope | None = None) -> list[DeadLetter]:
        """Read dead letters, oldest first, that the scope covers; None for an operator's look."""
        where, values = "INDEXED BY op_by_state WHERE state = 2", list[Any]()
        if scope is not None:
            clause, values = rows.covered(scope)
            where += f" AND {clause}"
        sql = f"SELECT {_OP}, reason, at FROM op {where} ORDER BY at, seq"  # noqa: S608 -- parts are ours
        with self._file.read() as connection:
            found = connection.execute(sql, values).fetchall()
        return [
            DeadLetter(
                operation=row[0],
                kind=row[1],
                scope=_scope(row),
                reason=row[10],
                attempts=row[9],
                at=rows.at_micros(row[11]),
            )
            for row in found
            if scope is None or scope.covers(_scope(row))
        ]

    def retry(self, operations: Collection[str]) -> int:
        """Accept dead letters anew, as the newest changes; answer how many."""
        return self._file.write(lambda c: self._revive(c, operations)) if operations else 0

    def erase(self, scope: Scope, before: int) -> int:
        """Drop rows of any state that the scope covers with `seq` below `before`."""
        clause, values = rows.covered(scope)
        sql = f"DELETE FROM op {rows.index(scope, 'op')} WHERE {clause} AND seq < ?"  # noqa: S608 -- parts are ours
        removed = self._file.write(lambda c: c.execute(sql, (*values, before)).rowcount)
        if removed:
            self._file.scrub()
        return removed

    def count(self, scope: Scope | None = None) -> Backlog:
        """Count what waits and what is dead, of a scope or of all."""
        if scope is None:
            sql, values = "SELECT state, number FROM tally", list[Any]()
        else:
            clause, values = rows.covered(scope)
            source = f"op {rows.index(scope, 'op')} WHERE {clause}"
            sql = f"SELECT state, count(*) FROM {source} GROUP BY state"  # noqa: S608 -- parts are ours
        with self._file.read() as connection:
            found = dict(connection.execute(sql, values).fetchall())
        return Backlog(pending=found.get(_PENDING, 0), dead=found.get(_DEAD, 0))

    def rows(self, scope: Scope, *, before: int | None = None) -> int:
        """Count rows of any state that the scope covers, with `seq` below `before` if given."""
        clause, values = rows.covered(scope)
        sql = f"SELECT count(*) FROM op {rows.index(scope, 'op')} WHERE {clause} AND seq < ?"  # noqa: S608 -- parts are ours
        with self._file.read() as connection:
            seq = _LIMIT if before is None else before
            return int(connection.execute(sql, (*values, seq)).fetchone()[0])

    def close(self) -> None:
        """Leave the file; repeating it does nothing."""
        self._file.close()

    def _read(self, source: str, order: str, values: Sequence[object]) -> list[Operation]:
        sql = f"SELECT {_OP} FROM op {source} ORDER BY {order}"  # noqa: S608 -- parts are ours
        with self._file.read() as connection:
            return [_op(row) for row in connection.execute(sql, values)]

    def _append(
        self, connection: Connection, ops: Sequence[Operation], max_pending: int
    ) -> list[Operation]:
        last = self._next(connection)
        accepted: list[Operation] = []
        version = last
        for op in ops:
            known = connection.execute(f"SELECT {_OP}, state FROM op WHERE id = ?", (op.id,))  # noqa: S608 -- a constant
            with closing(known):
                row = known.fetchone()
            if row is not None and row[10] != _DEAD:
                accepted.append(_op(row))
                continue
            if row is not None:
                connection.execute("DELETE FROM op WHERE seq = ?", (row[6],))
            version = max(version, op.version + 1)
            accepted.append(self._insert(connection, op, version))
            version += 1
        if version > last:
            waiting = connection.execute("SELECT number FROM tally WHERE state = 0").fetchone()[0]
            if waiting > max_pending:
                raise BackpressureError(
                    pending=waiting - (version - last), limit=max_pending, retry_after=_RETRY_AFTER
                )
            if version > _LIMIT:
                raise StoreUnavailableError(
                    store="journal", reason="the clock is past the year 2159"
                )
            connection.execute("UPDATE fence SET last = ?", (version - 1,))
        return accepted

    def _revive(self, connection: Connection, operations: Collection[str]) -> int:
        sql = f"DELETE FROM op WHERE id = ? AND state = 2 RETURNING {_OP}"  # noqa: S608 -- a constant
        found = [row for one in operations for row in connection.execute(sql, (one,)).fetchall()]
        first = self._next(connection)
        for number, row in enumerate(sorted(found, key=lambda row: row[6])):
            self._insert(connection, replace(_op(row), attempts=0), first + number)
        if found:
            connection.execute("UPDATE fence SET last = ?", (first + len(found) - 1,))
        return len(found)

    def _next(self, connection: Connection) -> int:
        elapsed = self._clock() - _YEAR_2020
        milliseconds = (elapsed.days * 86_400 + elapsed.seconds) * 1000
        milliseconds += elapsed.microseconds // 1000
        last = int(connection.execute("SELECT last FROM fence").fetchone()[0])
        return max(last + 1, milliseconds << _COUNTER_BITS)

    def _insert(self, connection: Connection, op: Operation, version: int) -> Operation:
        scope = op.scope
        values = (
            op.id,
            op.kind,
            scope.user_id,
            scope.agent_id,
            scope.session_id,
            scope.partition,
            op.body,
            version,
            op.plan,
            op.attempts,
            rows.to_micros(self._clock()),
        )
        seq = connection.execute(_INSERT, values).fetchone()[0]
        return replace(op, seq=seq, version=version)


def _scope(row: Sequence[Any]) -> Scope:
    return rows.to_scope(row[2], row[3], row[4])


def _op(row: Sequence[Any]) -> Operation:
    return Operation(
        id=row[0],
        kind=row[1],
        scope=_scope(row),
        body=row[5],
        seq=row[6],
        version=row[7],
        plan=row[8],
        attempts=row[9],
    )
