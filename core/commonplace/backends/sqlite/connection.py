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
from typing import Any, TypeVar

from ...errors import (
    CommonplaceError,
    MemoryClosedError,
    SchemaMismatchError,
    StoreLockedError,
    StoreUnavailableError,
)

T = TypeVar("T")
_Job = tuple[Callable[[Connection], Any], "Future[Any]", bool]

SCHEMA = "2"
_GROUP = 128
_IDLE_READERS = 8
_META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"


class SqliteConnection:
    """An open file; its folder is made when missing and readable by the owner alone.

    Raises:
        StoreLockedError: another process, or another object of this one, holds the file.
        SchemaMismatchError: the file was made by a schema that this version does not know.
        StoreUnavailableError: the file cannot be opened or is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = str(path)
        self._pid = os.getpid()
        self._gate = threading.Lock()
        self._turn = threading.Lock()  # to use the writer
        self._queued = 0
        self._closed = False
        self._users = 0
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle: deque[Connection] = deque()
        with _translate(self.path):
            Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = Lock(f"{self.path}.lock")
        try:
            self._writer = self._open()
        except BaseException:
            self._lock.release()
            raise
        self._thread = threading.Thread(target=self._serve, name="commonplace-writer", daemon=True)
        self._thread.start()

    def write(self, change: Callable[[Connection], T]) -> T:
        """Run `change` in a transaction of the writer; return when it is on the disk.

        What it raises undoes what it did and nothing else. It must not answer with a cursor, whose
        end in the caller's thread would reset a statement that the writer uses.

        Raises:
            StoreUnavailableError: the disk is full or fails, or the file is damaged; nothing is written.
            MemoryClosedError: the file was closed, or the process is a fork of the one that opened it.
        """
        # To wake a thread takes longer than the write when the machine is busy.
        if self._queued or not self._turn.acquire(blocking=False):
            return self.submit(change).result()
        try:
            self._check()
            future: Future[T] = Future()
            self._commit([(change, future, True)])
        finally:
            self._turn.release()
        return future.result()

    def submit(self, change: Callable[[Connection], T]) -> "Future[T]":
        """Queue `change` as `write` does and return at once."""
        return self._enqueue(change, grouped=True)

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Lend a connection that reads one unchanging state of the file and cannot write."""
        self._check()
        with _translate(self.path):
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._give_back(connection)

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None when it was never set."""
        with self.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        self.write(lambda c: c.execute(sql, (key, value)).rowcount)

    def scrub(self) -> bool:
        """Move the log into the file and empty it, so that erased text is in neither.

        False when a reader still needed the log; a later call or `close` does it then.
        """
        pragma = "PRAGMA wal_checkpoint(TRUNCATE)"
        busy = self._enqueue(lambda c: c.execute(pragma).fetchone()[0], grouped=False).result()
        return not busy

    def join(self) -> None:
        """Take part; the file closes when as many have left."""
        with self._gate:
            self._check()
            self._users += 1

    def leave(self) -> None:
        """Take part no longer; the last one out closes the file."""
        with self._gate:
            self._users -= 1
            last = self._users == 0
        if last:
            self.close()

    def close(self) -> None:
        """Finish what is queued and let go of the file; repeating it does nothing."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._pid:
                return
            self._queue.put(None)
        self._thread.join()
        while self._idle:
            self._idle.pop().close()
        with self._turn, contextlib.suppress(sqlite3.Error):
            self._writer.close()
        self._lock.release()

    def _check(self) -> None:
        if self._closed or os.getpid() != self._pid:
            raise MemoryClosedError

    def _enqueue(self, change: Callable[[Connection], T], *, grouped: bool) -> "Future[T]":
        future: Future[T] = Future()
        with self._gate:
            self._check()
            self._queued += 1
            self._queue.put((change, future, grouped))
        return future

    def _open(self) -> Connection:
        with _translate(self.path):
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

    def _borrow(self) -> Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _give_back(self, connection: Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._gate:
            if not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def _serve(self) -> None:
        open_for_more = True
        while open_for_more:
            first = self._queue.get()
            group: list[_Job] = []
            while first is not None:
                group.append(first)
                if len(group) == _GROUP or not first[2]:
                    break
                try:
                    first = self._queue.get_nowait()
                except Empty:
                    break
            open_for_more = first is not None
            with self._turn:
                self._commit([job for job in group if job[2]])
                for change, future, grouped in group:
                    if not grouped:
                        self._alone(change, future)
            with self._gate:
                self._queued -= len(group)

    def _commit(self, group: list[_Job]) -> None:
        waiting = [job for job in group if job[1].set_running_or_notify_cancel()]
        if not waiting:
            return
        settled: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with _translate(self.path):
                self._writer.execute("BEGIN IMMEDIATE")
                if len(waiting) == 1:  # alone, it needs no savepoint of its own
                    settled.append((waiting[0][1], waiting[0][0](self._writer), None))
                else:
                    settled = [(future, *self._attempt(change)) for change, future, _ in waiting]
                self._writer.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 -- every caller waits for an answer
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            settled = [(future, None, error) for _, future, _ in waiting]
        for future, result, failure in settled:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _attempt(self, change: Callable[[Connection], T]) -> tuple[T | None, BaseException | None]:
        self._writer.execute("SAVEPOINT one")
        try:
            with _translate(self.path):
                result = change(self._writer)
        except BaseException as error:
            if not self._writer.in_transaction:
                raise  # SQLite undid the whole group, as it does when the disk is full
            self._writer.execute("ROLLBACK TO one")
            self._writer.execute("RELEASE one")
            return None, error
        self._writer.execute("RELEASE one")
        return result, None

    def _alone(self, change: Callable[[Connection], Any], future: "Future[Any]") -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            with _translate(self.path):
                future.set_result(change(self._writer))
        except BaseException as error:  # noqa: BLE001 -- the caller waits for an answer
            future.set_exception(error)


@contextlib.contextmanager
def _translate(path: str) -> Iterator[None]:
    try:
        yield
    except CommonplaceError:
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE):
            raise  # a mistake of ours, which trying again would not mend
        raise StoreUnavailableError(store=path, reason=str(error)) from error
    except OSError as error:
        raise StoreUnavailableError(store=path, reason=str(error)) from error


class ConnectionHandle:
    """One engine's part in a file."""

    def __init__(self, file: SqliteConnection) -> None:
        file.join()
        self._file = file
        self._closed = False

    def write(self, change: Callable[[Connection], T]) -> T:
        """Write as the file does."""
        return self._live().write(change)

    def read(self) -> AbstractContextManager[Connection]:
        """Read as the file does."""
        return self._live().read()

    def scrub(self) -> bool:
        """Empty the log as the file does."""
        return self._live().scrub()

    def get_meta(self, key: str) -> str | None:
        """Read a value as the file does."""
        return self._live().get_meta(key)

    def set_meta(self, key: str, value: str) -> None:
        """Write a value as the file does."""
        self._live().set_meta(key, value)

    def close(self) -> None:
        """Leave the file; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            self._file.leave()

    def _live(self) -> SqliteConnection:
        if self._closed:
            raise MemoryClosedError
        return self._file


if sys.platform == "win32":
    import msvcrt

    def _seize(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """An exclusive hold on `path` that ends with `release` or with the process.

    The file stays behind, which is harmless: the hold is the system's, not the file's.

    Raises:
        StoreLockedError: somebody holds it; the message names the process. Close it there.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _seize(self._descriptor)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0) if hasattr(os, "pread") else b""
            os.close(self._descriptor)
            pid = holder.decode("ascii", "replace").strip() or "unknown"
            raise StoreLockedError(path=path, holder=f"process {pid}") from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())
        _held.add(self)

    def release(self) -> None:
        """Let go; repeating it does nothing."""
        if self._descriptor >= 0:
            _held.discard(self)
            os.close(self._descriptor)
            self._descriptor = -1


_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def _drop_inherited() -> None:
    # A forked child shares the hold; without this it would keep the store locked after the parent.
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited)
