"""Removal of the bytes that erased rows leave in an SQLite file: in its log, and in its pages.

Where a page was split, its unused part may still have a row that was moved to another page and
erased there, which `secure_delete` does not overwrite. Marks in the table `meta` note what is left
to do, for the next process, too.
"""

import uuid
from sqlite3 import Connection

from .file_lock import BUSY_SECONDS

LOG = "erased log"  # key of the mark while the log may have erased text
PAGES = "erased pages"  # the same for the unused parts of pages
_EMPTYING_SECONDS = 0.5  # to wait for readers, while nobody else can write
_PAGES_IN_MEMORY = 2**14  # at most, of a file that is rewritten


def mark_erased(connection: Connection) -> None:
    """Note in the current transaction that the log and unused parts of pages have erased text."""
    set_mark(connection, LOG)
    set_mark(connection, PAGES)


def set_mark(connection: Connection, key: str) -> None:
    """Set a mark, with a unique value."""
    sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
    connection.execute(sql, (key, uuid.uuid4().hex))


def remove_mark(connection: Connection, key: str, value: str) -> None:
    """Remove a mark if it still has this value: another erasure may have set it again."""
    connection.execute("DELETE FROM meta WHERE key = ? AND value = ?", (key, value))


def rewrite(connection: Connection) -> None:
    """Rewrite the file, outside of a transaction; the log has the new pages then."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if pages > _PAGES_IN_MEMORY:
        connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def finish_rewriting(connection: Connection, value: str) -> None:
    """Note that the file was rewritten, for the mark that had this value."""
    set_mark(connection, LOG)
    remove_mark(connection, PAGES, value)


def empty_log(connection: Connection) -> bool:
    """Move the log into the file and empty it; False if a reader still needs it."""
    connection.execute(f"PRAGMA busy_timeout = {_EMPTYING_SECONDS * 1000:.0f}")
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
