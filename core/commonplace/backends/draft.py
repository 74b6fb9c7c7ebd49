"""The part of a remote graph that a change may touch, in memory, for the rules to decide on.

The rules of changes and claims are written for SQLite. A server engine locks, loads what they may
look at into a draft, lets them run, and writes back the rows in which the draft now differs; so
every graph store decides alike.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Self

from . import rows
from .sqlite import SCHEMA

Row = dict[str, Any]
Key = tuple[Any, ...]

_SCOPE = ("user_id", "agent_id", "session_id")
_TABLES: dict[str, tuple[int, tuple[str, ...]]] = {  # how many columns are the key, and all of them
    "record": (1, (*rows.RECORD.split(", "), "live")),
    "version": (2, ("record", "version", "event", "text", "previous", "metadata", "at")),
    "session": (1, ("key", *_SCOPE, "next")),
    "erasure": (1, ("key", "version")),
    # An id that became free is given out again, so it does not tell one entity from another.
    "entity": (3, ("id", "scope", "key", *_SCOPE, "name", "type")),
    "relation": (
        1,
        (
            *("id", *_SCOPE, "subject", "key", "object", "predicate", "valid_from", "valid_to"),
            *("single", "conflict", "created_at", "expired_at"),
        ),
    ),
    "support": (2, ("relation", "record", "single", "valid_to", "expired_at")),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a table since it was loaded, in the order of its keys."""

    created: list[Row]
    changed: list[Row]
    removed: list[Row]


class Draft:
    """Tables as the embedded graph store has them, empty at first."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_empty())
        self._loaded: dict[str, dict[Key, Row]] = {table: {} for table in _TABLES}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    def load(self, table: str, given: Iterable[Mapping[str, Any]]) -> None:
        """Copy rows that the store has; a missing column is NULL, a row that is there stays."""
        _, columns = _TABLES[table]
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 -- a table of ours
            " ON CONFLICT DO NOTHING",
            [tuple(row.get(name) for name in columns) for row in given],
        )
        self._loaded[table] = self._read(table)

    def loaded(self, table: str) -> list[Row]:
        """Read the rows as they were loaded."""
        return list(self._loaded[table].values())

    def difference(self, table: str) -> Difference:
        """Compare a table with what was loaded."""
        before, after = self._loaded[table], self._read(table)
        return Difference(
            created=[row for key, row in after.items() if key not in before],
            changed=[row for key, row in after.items() if key in before and row != before[key]],
            removed=[row for key, row in before.items() if key not in after],
        )

    def _read(self, table: str) -> dict[Key, Row]:
        size, columns = _TABLES[table]
        order = ", ".join(columns[:size])
        found = self.connection.execute(
            f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"  # noqa: S608 -- a table of ours
        )
        return {row[:size]: dict(zip(columns, row, strict=True)) for row in found}


@cache
def _empty() -> bytes:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        return connection.serialize()
    finally:
        connection.close()
