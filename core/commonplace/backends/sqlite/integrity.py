"""Check and backup of a whole SQLite file, while others may write to it.

The file that is read is never made or changed.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import Connection

from ...errors import CannotMoveError

_OF_THE_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_BACKUP_PAGES = 4096  # in one step, 16 MiB; between two of them it can be interrupted
_BUSY_SECONDS = 10.0  # to wait for the writers of other processes


@contextlib.contextmanager
def opened_unchanged(path: Path) -> Iterator[Connection]:
    """Open a file to read one state of it; no file is made beside one that no process has open."""
    # Without a log no process has the file open; opening it as usual would leave a log behind.
    is_open = path.with_name(f"{path.name}-wal").exists()
    connection = _connect(path, "mode=ro" if is_open else "mode=ro&immutable=1")
    try:
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:  # the log cannot be read where nothing can be written
            connection.close()
            connection = _connect(path, "mode=ro&immutable=1")
        yield connection
    finally:
        connection.close()


def check(path: Path) -> list[str]:
    """List what SQLite finds wrong with a file, as it words it; empty list if it is sound."""
    found = _check(path)
    # A process that opened the file just now may have changed pages while they were read.
    return _check(path) if found else found


def backup(path: Path, file: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Write one state of a database to the new file `file`, and check that.

    Args:
        progress: called with the number of bytes written so far, and of all.

    Raises:
        CannotMoveError: the file is damaged.
        OSError: the disk is full or fails.
    """
    try:
        with opened_to_copy(path) as source, contextlib.closing(sqlite3.connect(file)) as target:
            # One read to the end, or a writer would start it over between two steps.
            source.execute("BEGIN")
            [size] = source.execute("PRAGMA page_size").fetchone()
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()

            def tell(_status: int, left: int, pages: int) -> None:
                if progress:
                    progress((pages - left) * size, pages * size)

            source.backup(target, pages=_BACKUP_PAGES, progress=tell)
            source.execute("COMMIT")
        found = _messages(_connect(file, "mode=ro&immutable=1"), "quick_check")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
            raise OSError(f"{file}: {error}") from error
        found = [str(error)]
    if found:
        raise CannotMoveError(
            store=str(path),
            reason=f"is damaged ({found[0]})",
            hint="Run `commonplace salvage` on it: it brings what can be read into a new folder.",
        )


@contextlib.contextmanager
def opened_to_copy(path: Path) -> Iterator[Connection]:
    """Open a file to read it while others write, or unchanged where nothing can be written."""
    connection = _connect(path, "mode=rw")
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise
        with opened_unchanged(path) as unchanged:
            unchanged.execute("COMMIT")
            yield unchanged
        return
    except BaseException:
        connection.close()
        raise
    with contextlib.closing(connection):
        yield connection


def _check(path: Path) -> list[str]:
    try:
        with opened_unchanged(path) as connection:
            return _messages(connection, "integrity_check")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # Unicode: of a damaged schema
        return [str(error)]


def _messages(connection: Connection, pragma: str) -> list[str]:
    with contextlib.closing(connection):
        found = [str(row[0]) for row in connection.execute(f"PRAGMA {pragma}")]
    return [] if found == ["ok"] else [line for message in found for line in message.splitlines()]


def _connect(path: Path, options: str) -> Connection:
    uri = f"{path.resolve().as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
