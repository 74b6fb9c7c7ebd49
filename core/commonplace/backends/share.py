"""One engine's part in a file that it shares; apart from the file, which knows no engine."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from sqlite3 import Connection
from typing import TypeVar

from ..errors import MemoryClosed
from .file import SqliteFile

T = TypeVar("T")


class Share:
    """One engine's part in a file."""

    def __init__(self, file: SqliteFile) -> None:
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

    def _live(self) -> SqliteFile:
        if self._closed:
            raise MemoryClosed
        return self._file
