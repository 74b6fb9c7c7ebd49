"""Connection to an SQLite file that several engines share: one writer, many readers, one process.

SQLite allows one writer at a time, so one connection writes. A caller that finds it idle uses it
directly; otherwise a background thread commits the changes of several callers with a single sync.
An engine holds the connection through a `ConnectionHandle`; the last one to close closes the file.
"""

import contextlib
import os
import sqlite3
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

from ...errors import (
    CommonplaceError,
    MemoryClosedError,
    SchemaMismatchError,
    StoreLockedError,
    StoreUnavailableError,
)

T = TypeVar("T")

SCHEMA = "2"
_GROUP = 128
_IDLE_READERS = 8
_META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"


class _Job(NamedTuple):
    """A queued change and its result; a change that is not grouped runs outside a transaction."""

    change: Callable[[Connection], Any]
    future: "Future[Any]"
    grouped: bool


class SqliteConnection:
    """An open SQLite file; its folder is made if missing, and readable by the owner alone.

    Raises:
        StoreLockedError: another process, or another object of this one, holds the file.
        SchemaMismatchError: the file was made by a schema that this version does not know.
        StoreUnavailableError: the file cannot be opened or is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = str(path)
        self._pid = os.getpid()
        self._state_lock = threading.Lock()
        self._writer_lock = threading.Lock()
        self._queued = 0
        self._closed = False
        self._handles = 0
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle: deque[Connection] = deque()
        with _translated(self.path):
            Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._process_lock = ProcessLock(f"{self.path}.lock")
        try:
            self._writer = self._open()
        except BaseException:
            self._process_lock.release()
            raise
        self._thread = threading.Thread(
            target=self._run_writer, name="commonplace-writer", daemon=True
        )
        self._thread.start()

    def write(self, change: Callable[[Connection], T]) -> T:
        """Run `change` in a transaction of the writer; return its result when that is on the disk.

        An exception of `change` undoes that change and no other. It must not return a cursor, whose
        end in the caller's thread would reset a statement that the writer uses.

        Raises:
            StoreUnavailableError: the disk is full or fails, or the file is damaged; nothing is
                written.
            MemoryClosedError: the file is closed, or this process is a fork of the one that opened
                it.
        """
        # Waking a thread takes longer than the write when the machine is busy.
        if self._queued or not self._writer_lock.acquire(blocking=False):
            return self.submit(change).result()
        try:
            self._check()
            future: Future[T] = Future()
            self._commit([_Job(change, future, grouped=True)])
        finally:
            self._writer_lock.release()
        return future.result()

    def submit(self, change: Callable[[Connection], T]) -> "Future[T]":
        """Queue `change` as `write` does and return at once."""
        return self._enqueue(change, grouped=True)

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Provide a connection that reads one unchanging state of the file and cannot write."""
        self._check()
        with _translated(self.path):
            connection = self._take_reader()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._return_reader(connection)

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None when it was never set."""
        with self.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        self.write(lambda c: c.execute(sql, (key, value)).rowcount)

    def truncate_log(self) -> bool:
        """Move the write-ahead log into the file and empty it, so that erased text is in neither.

        Returns:
            False if a reader still needs the log; a later call or `close` empties it then.
        """
        pragma = "PRAGMA wal_checkpoint(TRUNCATE)"
        busy = self._enqueue(lambda c: c.execute(pragma).fetchone()[0], grouped=False).result()
        return not busy

    def acquire(self) -> None:
        """Count one more handle; the file closes when all of them are released."""
        with self._state_lock:
            self._check()
            self._handles += 1

    def release(self) -> None:
        """Count one handle less; without any the file is closed."""
        with self._state_lock:
            self._handles -= 1
            last = self._handles == 0
        if last:
            self.close()

    def close(self) -> None:
        """Finish queued changes and close the file; repeating it does nothing."""
        with self._state_lock:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._pid:
                return
            self._queue.put(None)
        self._thread.join()
        while self._idle:
            self._idle.pop().close()
        with self._writer_lock, contextlib.suppress(sqlite3.Error):
            self._writer.close()
        self._process_lock.release()

    def _check(self) -> None:
        if self._closed or os.getpid() != self._pid:
            raise MemoryClosedError

    def _enqueue(self, change: Callable[[Connection], T], *, grouped: bool) -> "Future[T]":
        future: Future[T] = Future()
        with self._state_lock:
            self._check()
            self._queued += 1
            self._queue.put(_Job(change, future, grouped))
        return future

    def _open(self) -> Connection:
        with _translated(self.path):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = self._connect()
            try:
                for pragma in (
                    "journal_mode = WAL",
                    "synchronous = FULL",
                    "fullfsync = 1",
                    "secure_delete = ON",
                ):
                    connection.execute(f"PRAGMA {pragma}")
                self._check_schema(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _check_schema(self, connection: Connection) -> None:
        count = "SELECT count(*) FROM sqlite_master"
        fresh = connection.execute(count).fetchone()[0] == 0
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_META)
        if fresh:
            connection.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        stored = row[0] if row else None
        connection.execute("COMMIT" if stored == SCHEMA else "ROLLBACK")
        if stored != SCHEMA:
            raise SchemaMismatchError(what="schema version", stored=stored, wanted=SCHEMA)

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=1.0,
        )
        connection.execute("PRAGMA foreign_keys = OFF")
        return connection

    def _take_reader(self) -> Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _return_reader(self, connection: Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._state_lock:
            if not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def _run_writer(self) -> None:
        open_for_more = True
        while open_for_more:
            first = self._queue.get()
            group: list[_Job] = []
            while first is not None:
                group.append(first)
                if len(group) == _GROUP or not first.grouped:
                    break
                try:
                    first = self._queue.get_nowait()
                except Empty:
                    break
            open_for_more = first is not None
            with self._writer_lock:
                self._commit([job for job in group if job.grouped])
                for job in group:
                    if not job.grouped:
                        self._run_alone(job)
            with self._state_lock:
                self._queued -= len(group)

    def _commit(self, group: list[_Job]) -> None:
        waiting = [job for job in group if job.future.set_running_or_notify_cancel()]
        if not waiting:
            return
        results: list[tuple[Any, BaseException | None]] = []
        try:
            with _translated(self.path):
                self._writer.execute("BEGIN IMMEDIATE")
                if len(waiting) == 1:  # a single change needs no savepoint
                    results = [(waiting[0].change(self._writer), None)]
                else:
                    results = [self._attempt(job.change) for job in waiting]
                self._writer.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 -- every caller waits for a result
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            results = [(None, error)] * len(waiting)
        for job, (result, failure) in zip(waiting, results, strict=True):
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)

    def _attempt(self, change: Callable[[Connection], T]) -> tuple[T | None, BaseException | None]:
        self._writer.execute("SAVEPOINT one")
        try:
            with _translated(self.path):
                result = change(self._writer)
        except BaseException as error:
            if not self._writer.in_transaction:
                raise  # SQLite undid the whole group, as it does when the disk is full
            self._writer.execute("ROLLBACK TO one")
            self._writer.execute("RELEASE one")
            return None, error
        self._writer.execute("RELEASE one")
        return result, None

    def _run_alone(self, job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        try:
            with _translated(self.path):
                job.future.set_result(job.change(self._writer))
        except BaseException as error:  # noqa: BLE001 -- the caller waits for a result
            job.future.set_exception(error)


class ConnectionHandle:
    """One engine's use of a shared connection, from its creation to `close`.

    After `close` every other method raises `MemoryClosedError`.
    """

    def __init__(self, connection: SqliteConnection) -> None:
        connection.acquire()
        self._connection = connection
        self._closed = False

    def write(self, change: Callable[[Connection], T]) -> T:
        """Write as `SqliteConnection.write`."""
        return self._open().write(change)

    def read(self) -> AbstractContextManager[Connection]:
        """Read as `SqliteConnection.read`."""
        return self._open().read()

    def truncate_log(self) -> bool:
        """Empty the log as `SqliteConnection.truncate_log`."""
        return self._open().truncate_log()

    def get_meta(self, key: str) -> str | None:
        """Read a value as `SqliteConnection.get_meta`."""
        return self._open().get_meta(key)

    def set_meta(self, key: str, value: str) -> None:
        """Write a value as `SqliteConnection.set_meta`."""
        self._open().set_meta(key, value)

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            self._connection.release()

    def _open(self) -> SqliteConnection:
        if self._closed:
            raise MemoryClosedError
        return self._connection


def create_tables(connection: Connection, schema: str) -> None:
    """Run the statements of a schema, which `;` separates, in the transaction at hand."""
    for statement in schema.split(";"):
        connection.execute(statement)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except CommonplaceError:
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE):
            raise  # a bug in our statements, which a retry would not fix
        raise StoreUnavailableError(store=path, reason=str(error)) from error
    except OSError as error:
        raise StoreUnavailableError(store=path, reason=str(error)) from error


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class ProcessLock:
    """Exclusive lock on `path` until `release` or the end of the process.

    The file stays, which is harmless: the lock is the operating system's, not the file's.

    Raises:
        StoreLockedError: another holder has it; the message names the process. Close it there.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0) if hasattr(os, "pread") else b""
            os.close(self._descriptor)
            pid = holder.decode("ascii", "replace").strip() or "unknown"
            raise StoreLockedError(path=path, holder=f"process {pid}") from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())
        _held.add(self)

    def release(self) -> None:
        """Release the lock; repeating it does nothing."""
        if self._descriptor >= 0:
            _held.discard(self)
            os.close(self._descriptor)
            self._descriptor = -1


_held: "weakref.WeakSet[ProcessLock]" = weakref.WeakSet()


def _drop_inherited() -> None:
    # A forked child shares the lock; without this it would keep the store locked after the parent.
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited)
