"""Connection to an SQLite file that several engines share: one writer and many readers.

SQLite allows one writer at a time, so one connection of a process writes. A caller that finds it
idle uses it directly; otherwise a background thread commits the changes of several callers with a
single sync. Writers of other processes are waited for. An engine holds the connection through a
`ConnectionHandle`; the last one to close closes the file.
"""

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

from ...concurrency import start_call
from ...errors import (
    CommonplaceError,
    MemoryClosedError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ...ports.stores import Engines, crash_point
from ..shared.rows import UnreadableRowError
from .file_lock import BUSY_SECONDS, LITTLE_SPACE, ProcessLock, check_space, make_file

T = TypeVar("T")
_Outcome = tuple[T, None] | tuple[None, BaseException]  # what a change returned or raised

SCHEMA = "5"
_GROUP = 128
_IDLE_READERS = 8
_FORK_SECONDS = 2.0  # that a fork waits for the reads and writes of other threads
_LOG_PAGES = 4000  # after which the log is moved into the file; of 4 kB each
_FREE_PAGES = 256  # that are given back at a time
_REWRITE_SECONDS = 60.0  # until the next try to rewrite the file after a failed one
_SMALL_FILE = 8 * 2**20  # bytes; up to this a file is rewritten at once, in up to 0.1 s
_LARGE_FILE = 512 * 2**20  # bytes; above it never: writers would wait for more than 5 s
# Keys of the marks, in the table `meta`, of what is left to do, for the next process, too.
_ERASED_LOG = "erased log"  # the log may have erased text
_ERASED_PAGES = "erased pages"  # and unused parts of pages, too
_EMPTYING_SECONDS = 0.5  # to wait for readers, while nobody else can write
_PAGES_IN_MEMORY = 2**14  # at most, of a file that is rewritten
_META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"


class _Job(NamedTuple):
    """A queued change and its result; a change that is not grouped runs outside a transaction."""

    change: Callable[[Connection], Any]
    future: "Future[Any]"
    grouped: bool


class SqliteConnection:
    """An open SQLite file; its folder is made if missing, and readable by the owner alone.

    Args:
        create: make the file if it is missing.
        exclusive: keep everybody else from opening the file, for work on the whole of it.

    Raises:
        StoreLockedError: another process works on the whole file or, with `exclusive`, has it open.
        SchemaMismatchError: the file was made by a schema that this version does not know.
        StoreUnavailableError: the file is missing, damaged, or cannot be opened; or this process is
            a fork of one that was in the middle of a read or write of it.
    """

    def __init__(self, path: str, *, create: bool = True, exclusive: bool = False) -> None:
        self.path: str = str(path)
        self._location = Path(self.path)
        self._has_small_blocks = False  # a full disk could end the process
        self._pid = os.getpid()
        self._state = threading.Condition()
        self._writer_lock = threading.Lock()
        self._closed = False
        self._is_writer_closed = False  # it could not be opened again after a fork
        self._handles = 0
        self._rewrite_after = 0.0
        self._queue: deque[_Job] = deque()
        self._is_committing = False  # a thread is at the queue
        self._idle: deque[Connection] = deque()
        self._readers = 0
        self._paused = False
        self._reading = threading.Condition()
        _check_not_inherited(self.path)
        with translated(self.path):
            make_file(self._location, _fill, create=create)
            self._process_lock = ProcessLock(f"{self.path}.lock", shared=not exclusive)
        try:
            self._writer = self._open()
            self._file = _identity(self.path)
        except BaseException:
            self._process_lock.release()
            raise
        _open_files.add(self)

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
        if self._is_committing or not self._writer_lock.acquire(blocking=False):
            return self.submit(change).result()
        try:
            self._check()
            [outcome] = self._transact([change])
        finally:
            self._writer_lock.release()
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]

    def submit(self, change: Callable[[Connection], T]) -> "Future[T]":
        """Queue `change` as `write` does and return at once."""
        return self._enqueue(change, grouped=True)

    @contextlib.contextmanager
    def read(self, *, begin: bool = True) -> Iterator[Connection]:
        """Provide a connection that reads one unchanging state of the file and cannot write.

        Args:
            begin: False for a single statement of which all rows are fetched at once.
        """
        self._check()
        with self._reading:
            while self._paused:
                self._reading.wait()
            self._readers += 1
        try:
            self._check_file()
            connection = self._take_reader()
            try:
                if begin:
                    connection.execute("BEGIN")
                yield connection
            finally:
                self._return_reader(connection)
        except Exception:
            with translated(self.path):
                raise
        finally:
            with self._reading:
                self._readers -= 1
                if not self._readers:
                    self._reading.notify_all()

    def pause(self) -> None:
        """Close every connection to the file until `resume`, when nobody reads or writes.

        Reads and writes wait until then. If one that is running does not end soon, nothing is
        closed.
        """
        if not self._writer_lock.acquire(timeout=_FORK_SECONDS):
            return
        with self._reading:
            self._paused = True
            self._reading.wait_for(lambda: not self._readers, _FORK_SECONDS)
            if self._readers or self._closed:
                self._paused = False
                self._reading.notify_all()
                self._writer_lock.release()
                return
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()
        self._writer.close()

    def resume(self) -> None:
        """Open the file again after `pause`."""
        if self._paused:
            self._is_writer_closed = True
            try:
                self._reopen_writer()
            finally:
                with self._reading:
                    self._paused = False
                    self._reading.notify_all()
                self._writer_lock.release()

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None when it was never set."""
        with self.read() as connection:
            return read_meta(connection, key)

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        self.write(lambda c: write_meta(c, key, value))

    def truncate_log(self) -> bool:
        """Move the write-ahead log into the file and empty it, so that erased text is in neither.

        Returns:
            False if a reader still needs the log, or the disk is full: `finish_erasures` or `close`
            empties it later.
        """
        mark = self.get_meta(_ERASED_LOG)
        try:
            is_done = self._enqueue(_empty_log, grouped=False).result()
        except StoreUnavailableError:
            is_done = False
        with contextlib.suppress(StoreUnavailableError):
            if is_done and mark is not None:
                self.write(lambda c: _remove_mark(c, _ERASED_LOG, mark))
            elif not is_done and mark is None:
                self.write(lambda c: _set_mark(c, _ERASED_LOG))
        return is_done

    def finish_erasures(self, *, is_idle: bool) -> None:
        """Remove the bytes of erased rows that SQLite has left; without any it does nothing.

        Where a page was split, its unused part may still have a row that was moved to another page
        and erased there. So the file is rewritten, which takes about 10 ms for a MB and as much
        space again, and keeps other writers waiting; a file above 512 MB is not rewritten.

        Args:
            is_idle: there is time for that; otherwise only a small file is rewritten.

        Raises:
            StoreUnavailableError: there is no space; the next try is after a minute.
        """

        def finish(connection: Connection) -> None:
            # The log has the new pages, and the file still the old ones.
            _set_mark(connection, _ERASED_LOG)
            _remove_mark(connection, _ERASED_PAGES, mark)

        mark = self.get_meta(_ERASED_PAGES)
        most = _LARGE_FILE if is_idle else _SMALL_FILE
        is_due = time.monotonic() >= self._rewrite_after
        size = self._location.stat().st_size
        if mark is not None and is_due and size <= most:
            self._rewrite_after = time.monotonic() + _REWRITE_SECONDS
            check_space(self._location, LITTLE_SPACE + size)
            self._enqueue(_rewrite, grouped=False).result()
            self.write(finish)
            self._rewrite_after = 0.0
        if self.get_meta(_ERASED_LOG) is not None:
            self.truncate_log()

    def reclaim(self) -> bool:
        """Give some free pages back to the file system; False if there are none."""
        with self.read() as connection:
            if connection.execute("PRAGMA freelist_count").fetchone()[0] < _FREE_PAGES:
                return False
        pragma = f"PRAGMA incremental_vacuum({_FREE_PAGES})"
        self._enqueue(lambda c: c.execute(pragma).fetchall(), grouped=False).result()
        return True

    def acquire(self) -> None:
        """Count one more handle; the file is closed when all of them are released."""
        with self._state:
            self._check()
            self._handles += 1

    def release(self) -> None:
        """Count one handle less; the last one closes the file."""
        with self._state:
            self._handles -= 1
            last = self._handles == 0
        if last:
            self.close()

    def close(self) -> None:
        """Finish queued changes and close the file; repeating it does nothing."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._pid:
                return
            self._state.wait_for(lambda: not self._is_committing)
        while self._idle:
            self._idle.pop().close()
        with self._writer_lock, contextlib.suppress(sqlite3.Error):
            self._writer.close()
        self._process_lock.release()
        _open_files.discard(self)

    def _check(self) -> None:
        if self._closed or os.getpid() != self._pid:
            raise MemoryClosedError

    def _check_file(self) -> None:
        """Refuse to use a file that was deleted: what is written to it would be lost."""
        if _identity(self.path) != self._file:
            reason = "somebody deleted or replaced it. Close the memory and open it again"
            raise StoreUnavailableError(store=self.path, reason=reason)

    def _enqueue(self, change: Callable[[Connection], T], *, grouped: bool) -> "Future[T]":
        future: Future[T] = Future()
        with self._state:
            self._check()
            self._queue.append(_Job(change, future, grouped))
            is_first, self._is_committing = not self._is_committing, True
        if is_first:
            try:
                start_call("commit", self._commit_queued)
            except RuntimeError:  # no thread can be started
                self._commit_queued()
        return future

    def _reopen_writer(self) -> None:
        if self._is_writer_closed:
            self._writer = self._open()
            self._is_writer_closed = False

    def _open(self) -> Connection:
        with translated(self.path):
            self._has_small_blocks = check_space(self._location)
            connection = self._connect()
            try:
                _check_schema(connection)
                for pragma in (
                    "synchronous = FULL",
                    "fullfsync = 1",
                    "secure_delete = ON",
                    f"wal_autocheckpoint = {_LOG_PAGES}",
                ):
                    connection.execute(f"PRAGMA {pragma}")
                if self._has_small_blocks:
                    _fill_shared_memory(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self._location.resolve().as_uri() + "?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=BUSY_SECONDS,
        )
        # A mapped page that the disk cannot provide would end the process.
        connection.execute("PRAGMA mmap_size = 0")
        connection.execute("PRAGMA temp_store = MEMORY")  # what is erased was in no other file
        return connection

    def _take_reader(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _return_reader(self, connection: Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._state:
            if not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def _commit_queued(self) -> None:
        while group := self._next_group():
            with self._writer_lock:
                if group[0].grouped:
                    self._commit(group)
                else:
                    self._run_alone(group[0])

    def _next_group(self) -> list[_Job]:
        """Take the queued changes that are committed together; empty list if none is queued."""
        with self._state:
            group: list[_Job] = []
            while self._queue and len(group) < _GROUP:
                if group and not (group[0].grouped and self._queue[0].grouped):
                    break
                group.append(self._queue.popleft())
            if not group:
                self._is_committing = False
                self._state.notify_all()
            return group

    def _commit(self, group: list[_Job]) -> None:
        waiting = [job for job in group if job.future.set_running_or_notify_cancel()]
        outcomes = self._transact([job.change for job in waiting]) if waiting else []
        for job, (result, failure) in zip(waiting, outcomes, strict=True):
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)

    def _transact(self, changes: list[Callable[[Connection], T]]) -> list[_Outcome[T]]:
        """Run changes in one transaction; return what each returned or raised."""
        outcomes: list[_Outcome[T]]
        try:
            with translated(self.path):
                self._check_file()
                self._reopen_writer()
                if self._has_small_blocks:
                    check_space(self._location)
                self._writer.execute("BEGIN IMMEDIATE")
                if len(changes) == 1:  # a single change needs no savepoint
                    outcomes = [(changes[0](self._writer), None)]
                else:
                    outcomes = [self._attempt(change) for change in changes]
                crash_point("before_commit")
                self._writer.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 -- every caller waits for a result
            if not self._is_writer_closed and self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            return [(None, error)] * len(changes)
        crash_point("after_commit")
        return outcomes

    def _attempt(self, change: Callable[[Connection], T]) -> _Outcome[T]:
        self._writer.execute("SAVEPOINT one")
        try:
            with translated(self.path):
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
            self._reopen_writer()
            with translated(self.path):
                check_space(self._location)
                crash_point("before_commit")
                job.future.set_result(job.change(self._writer))
                crash_point("after_commit")
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

    def read(self, *, begin: bool = True) -> AbstractContextManager[Connection]:
        """Read as `SqliteConnection.read`."""
        return self._open().read(begin=begin)

    def truncate_log(self) -> bool:
        """Empty the log as `SqliteConnection.truncate_log`."""
        return self._open().truncate_log()

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        if not self._closed:
            self._closed = True
            self._connection.release()

    def _open(self) -> SqliteConnection:
        if self._closed:
            raise MemoryClosedError
        return self._connection


class TransactionHandle:
    """Replacement of the `ConnectionHandle` of an engine that takes part in a transaction.

    Attributes:
        truncates: an engine has asked to empty the log, which must wait for the commit. The file
            notes it, too, in case this process ends before.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.truncates = False

    def write(self, change: Callable[[Connection], T]) -> T:
        """Run `change` in the current transaction."""
        return change(self._connection)

    def read(self, *, begin: bool = True) -> AbstractContextManager[Connection]:
        """Provide the connection of the transaction."""
        return contextlib.nullcontext(self._connection)

    def truncate_log(self) -> bool:
        """Empty the log after the commit."""
        if not self.truncates:
            _set_mark(self._connection, _ERASED_LOG)
            _set_mark(self._connection, _ERASED_PAGES)
            self.truncates = True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteEngines(Engines):
    """Engines that share a connection; `Transactional`."""

    connection: SqliteConnection

    def transact(self, work: Callable[[Engines], T]) -> T:
        """Run `work` in one write transaction; return its result when that is on the disk."""
        handles: list[TransactionHandle] = []

        def change(connection: Connection) -> T:
            handles.append(handle := TransactionHandle(connection))
            return work(self._bound_to(handle))

        done = self.connection.write(change)
        if handles[-1].truncates:
            self.connection.truncate_log()
            with contextlib.suppress(StoreUnavailableError):  # it is tried again
                self.connection.finish_erasures(is_idle=False)
        return done

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Engines]:
        """Provide engines that read one unchanging state while others write."""
        with self.connection.read() as connection:
            yield self._bound_to(TransactionHandle(connection))

    def finish_erasures(self, *, is_idle: bool) -> None:
        """Remove the bytes of erased text that are left."""
        self.connection.finish_erasures(is_idle=is_idle)

    def reclaim(self) -> bool:
        """Give some free space back to the file system; False if there is little of it."""
        return self.connection.reclaim()

    def _bound_to(self, handle: TransactionHandle) -> Engines:
        return SqliteEngines(
            index=_bound(self.index, handle),
            graph=_bound(self.graph, handle),
            journal=_bound(self.journal, handle),
            checkpoints=_bound(self.checkpoints, handle),
            connection=self.connection,
        )


def _bound(engine: Any, handle: TransactionHandle) -> Any:
    """Copy an engine of the connection, to work in the transaction of the handle."""
    bound = object.__new__(type(engine))  # as `copy.copy`, several times quicker
    bound.__dict__ |= engine.__dict__ | {"_handle": handle}
    return bound


def read_meta(connection: Connection, key: str) -> str | None:
    """Read a value of the table `meta` in the current transaction; None if there is none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def write_meta(connection: Connection, key: str, value: str) -> None:
    """Write a value of the table `meta` in the current transaction, in place of an earlier one."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def create_tables(connection: Connection, schema: str) -> None:
    """Run the statements of a schema, which `;` separates, in the current transaction."""
    for statement in schema.split(";"):
        connection.execute(statement)


def insert_many(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Any], rest: str = ""
) -> None:
    """Insert rows; a column that is NULL in all is not named, as NULL takes longest to pass on.

    Args:
        rest: of the statement.
    """
    if rows:
        by_column = enumerate(zip(*rows, strict=True))
        used = [place for place, held in by_column if held.count(None) < len(rows)]
        names, marks = ", ".join([columns[place] for place in used]), ", ".join("?" * len(used))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks}){rest}"
        connection.executemany(sql, map(itemgetter(*used), rows))


def one_of(column: str, ids: Sequence[str]) -> tuple[str, str]:
    """Build the condition that a column has one of some ids, with its parameter."""
    if len(ids) == 1 and ids[0].isascii():  # a table of JSON takes longer than the row
        return f"{column} = ?", ids[0]
    # A lone surrogate is in no id, and ASCII is what JSON makes of one.
    return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(ids))


def _set_mark(connection: Connection, key: str) -> None:
    write_meta(connection, key, uuid.uuid4().hex)


def _remove_mark(connection: Connection, key: str, value: str | None) -> None:
    """Remove a mark if it still has this value: another erasure may have set it again."""
    connection.execute("DELETE FROM meta WHERE key = ? AND value = ?", (key, value))


def _rewrite(connection: Connection) -> None:
    """Rewrite the file, outside of a transaction; the log has the new pages then."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if pages > _PAGES_IN_MEMORY:
        connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def _empty_log(connection: Connection) -> bool:
    """Move the log into the file and empty it; False if a reader still needs it."""
    connection.execute(f"PRAGMA busy_timeout = {_EMPTYING_SECONDS * 1000:.0f}")
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")


def _fill(connection: Connection) -> None:
    connection.execute(_META)
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))


def _fill_shared_memory(connection: Connection) -> None:
    """Write a page to the log, for which SQLite fills 32 KiB of its shared memory with zeros.

    A larger first write could take the room that is left for these.
    """
    connection.execute("BEGIN")
    write_meta(connection, "filled", "")
    connection.execute("DELETE FROM meta WHERE key = 'filled'")
    connection.execute("COMMIT")


def _check_schema(connection: Connection) -> None:
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        row = None  # another program's database
    if row is None:
        raise UnreadableRowError("it is another program's, or its schema version is lost")
    if row[0] != SCHEMA:
        hint = (
            "Only the pre-release of commonplace-memory 0.1.0 that made it reads it."
            if str(row[0]).isdigit() and int(row[0]) < int(SCHEMA)
            else "Open it with the version of commonplace-memory that made it."
        )
        raise SchemaMismatchError(what="schema version", stored=row[0], wanted=SCHEMA, hint=hint)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_PERMIT = "let this process read and write that folder, or give another"
_NOT_ALLOWED = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR,
)  # fmt: skip
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: f"another process has been writing for {BUSY_SECONDS:g} seconds",
    **dict.fromkeys(
        _DAMAGED,
        "the file is damaged. `commonplace doctor` says more, and `commonplace salvage` brings "
        "what can be read into a new folder",
    ),
}


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Translate errors of SQLite and the operating system into those of the library."""
    try:
        yield
    except CommonplaceError:
        raise
    except (UnreadableRowError, UnicodeDecodeError) as error:  # Unicode: of a damaged schema
        reason = f"{_REASONS[sqlite3.SQLITE_CORRUPT]} ({error})"
        raise StoreUnavailableError(store=path, reason=reason) from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # Python gives no code for a text that is not UTF-8; without a table the schema is damaged.
        if str(error).startswith(("Could not decode to UTF-8", "no such ")):
            code = sqlite3.SQLITE_CORRUPT
        if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE):
            raise  # a bug in our statements, which a retry would not fix
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path):
            code = sqlite3.SQLITE_FULL  # a file beside the database could not grow
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise StoreRefusedError(store=path, reason=str(error), hint=_PERMIT) from error
        known = _REASONS.get(code)
        reason = f"{known} ({error})" if known else str(error)
        raise StoreUnavailableError(store=path, reason=reason) from error
    except OSError as error:
        if error.errno in _NOT_ALLOWED:
            raise StoreRefusedError(store=path, reason=str(error), hint=_PERMIT) from error
        known = _REASONS[sqlite3.SQLITE_FULL] if error.errno in _NO_SPACE else None
        reason = f"{known} ({error})" if known else str(error)
        raise StoreUnavailableError(store=path, reason=reason) from error


def _identity(path: str) -> tuple[int, int] | None:
    """Identify a file, whatever its name; None if there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _is_full(path: str) -> bool:
    try:
        return shutil.disk_usage(Path(path).parent).free < LITTLE_SPACE
    except OSError:
        return False


# SQLite records the locks that a process holds on a file, for all its connections. A forked child
# inherits the record without the locks: it would not be locked against other processes, and its
# parent's `close` would remove the log that it writes to. So nothing is open while a process forks.

_open_files: "weakref.WeakSet[SqliteConnection]" = weakref.WeakSet()
_inherited: list[object] = []
_inherited_paths: set[str] = set()


def _check_not_inherited(path: str) -> None:
    if os.path.realpath(path) in _inherited_paths:
        reason = (
            "this process was forked while another thread was in the middle of using the file. "
            "Fork when nothing is read or written, or start processes by `spawn`"
        )
        raise StoreUnavailableError(store=path, reason=reason)


def _before_fork() -> None:
    for file in list(_open_files):
        file.pause()


def _after_fork_in_parent() -> None:
    for file in list(_open_files):
        with contextlib.suppress(CommonplaceError):  # its next write tries again
            file.resume()


def _after_fork_in_child() -> None:
    for file in list(_open_files):
        file._writer_lock, file._state = threading.Lock(), threading.Condition()  # noqa: SLF001
        if not file._paused:  # noqa: SLF001 -- this module's own
            # To close a connection here could move its parent's log into the file.
            _inherited.append((file._writer, file._idle))  # noqa: SLF001
            _inherited_paths.add(os.path.realpath(file.path))
    _open_files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
