"""Namespaces of records as a narrow table, for listings that parse no record.

Each live record has a row for its namespace and for each one above it, written with the record in
one transaction. The rows of a namespace are in the order of a page.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from sqlite3 import Connection
from typing import Any

from ...types import Namespace, Record, Scope
from ..shared import rows

# Where a record is, as one text: path, partition and ids, so that places sort by their namespace.
_PLACE = " || char(0) || ".join(
    ("path", "partition", "coalesce(agent_id, '')", "coalesce(session_id, '')")
)
_LAST = "\x00\x7f"  # with a path before it, sorts after every place of that path
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS namespace (
  partition TEXT NOT NULL, path TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL,
  seq INTEGER NOT NULL, agent_id TEXT, session_id TEXT, until INTEGER, innermost INTEGER NOT NULL,
  PRIMARY KEY (partition, path, created_at, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS namespace_by_place ON namespace ({_PLACE}, until, innermost)
  WHERE innermost
"""
_INSERT = (
    "INSERT OR REPLACE INTO namespace SELECT ?, ?, ?, id, seq, agent_id, session_id, expires_at, ?"
    " FROM record WHERE id = ?"
)
_INSERT_NEW = "INSERT INTO namespace VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_USER = "SELECT user_id FROM record WHERE seq = (SELECT seq FROM namespace WHERE partition = ?)"
_DELETE = "DELETE FROM namespace WHERE partition = ? AND path = ? AND created_at = ? AND record = ?"
_COLUMNS = ", ".join(rows.RecordColumns._fields)


def to_path(namespace: Namespace) -> str:
    """Write a namespace as a text: paths sort as namespaces, and begin with those above them."""
    return "".join(f"{label}\x00" for label in namespace)


@lru_cache(4096)
def _paths(namespace: Namespace) -> tuple[tuple[str, bool], ...]:
    """Write a record's namespace and those above it, and tell which of them is its own."""
    size = len(namespace)
    return tuple((to_path(namespace[:end]), end == size) for end in range(1, size + 1))


def _to_namespace(path: str) -> Namespace:
    return tuple(path[:-1].split("\x00"))


def update(connection: Connection, before: Record | None, after: Record | None) -> None:
    """Replace the rows of a record.

    Args:
        before: the live record as it was stored; None if there was none.
        after: the live record as it is stored now; None if it was deleted.
    """
    if before and after:
        unchanged = ("namespace", "scope", "created_at", "expires_at")
        if all(getattr(before, name) == getattr(after, name) for name in unchanged):
            return
    if before:
        connection.executemany(
            _DELETE, [(*_key(before, path), before.id) for path, _ in _paths(before.namespace)]
        )
    if after:
        values = [(*_key(after, path), own, after.id) for path, own in _paths(after.namespace)]
        connection.executemany(_INSERT, values)


def insert(connection: Connection, records: Mapping[int, Record]) -> None:
    """Write the rows of live records that have none, given by the number of their row."""
    values: list[tuple[Any, ...]] = []
    for seq, record in records.items():
        scope, until = record.scope, rows.to_micros(record.expires_at)
        partition, at = scope.partition, rows.to_micros(record.created_at)
        ids = record.id, seq, scope.agent_id, scope.session_id
        paths = _paths(record.namespace)
        values += [(partition, path, at, *ids, until, own) for path, own in paths]
    connection.executemany(_INSERT_NEW, values)


def _key(record: Record, path: str) -> tuple[str, str, int]:
    return record.scope.partition, path, rows.to_micros(record.created_at)


def erase(connection: Connection, erased: str, values: Sequence[Any]) -> None:
    """Remove the rows of the records that the query `erased` selects, by id."""
    sql = f"SELECT {_COLUMNS} FROM record WHERE id IN ({erased}) AND namespace <> '[]'"
    for row in connection.execute(sql, values):
        update(connection, rows.to_record(row), None)


def rebuild(connection: Connection) -> None:
    """Rewrite the rows of all live records."""
    connection.execute("DELETE FROM namespace")
    sql = f"SELECT {_COLUMNS} FROM record WHERE live AND namespace <> '[]'"
    for row in connection.execute(sql):
        update(connection, None, rows.to_record(row))


def of_scope(connection: Connection, scope: Scope, at: datetime) -> list[Namespace]:
    """List the namespaces of live records that the scope covers, in no order."""
    clause, values = rows.covered(scope, "namespace", by_partition=True)
    sql = (
        f"SELECT DISTINCT path FROM namespace WHERE {clause} AND innermost"
        " AND (until IS NULL OR until > ?)"
    )
    found = connection.execute(sql, (*values, rows.to_micros(at)))
    return [_to_namespace(path) for (path,) in found]


# A step for each place, as SQLite's own DISTINCT would read every row.
_PLACES = f"""
WITH RECURSIVE each (place) AS (
  SELECT ? UNION ALL
  SELECT (SELECT {_PLACE} FROM namespace INDEXED BY namespace_by_place
    WHERE innermost AND {_PLACE} > e.place AND (until IS NULL OR until > ?)
    ORDER BY {_PLACE} LIMIT 1)
  FROM each e WHERE e.place IS NOT NULL
)
SELECT place FROM each LIMIT -1 OFFSET 1
"""


def with_scopes(
    connection: Connection, prefix: Namespace, after: Namespace, limit: int, at: datetime
) -> dict[Namespace, list[Scope]]:
    """List the namespaces of live records in their order, with the scopes of those."""
    first = to_path(prefix)
    found: dict[str, list[Scope]] = {}
    scopes: dict[str, Scope] = {}
    begin = max(first, to_path(after) + _LAST)
    cursor = connection.execute(_PLACES, (begin, rows.to_micros(at)))
    for (place,) in cursor:
        if place is None or not place.startswith(first):
            break
        path, _, owner = place.partition("\x00\x00")  # no label is empty
        if owner not in scopes:
            partition, agent_id, session_id = owner.split("\x00")
            [user_id] = connection.execute(_USER, (partition,)).fetchone()
            scopes[owner] = rows.to_scope(user_id, agent_id or None, session_id or None)
        if path in found:
            found[path].append(scopes[owner])
        elif len(found) == limit:
            break
        else:
            found[path] = [scopes[owner]]
    cursor.close()
    return {tuple(path.split("\x00")): owners for path, owners in found.items()}


# A step for each partition, as SQLite's own DISTINCT would read every row.
_USERS = """
WITH RECURSIVE each (partition) AS (
  SELECT min(partition) FROM namespace UNION ALL
  SELECT (SELECT min(n.partition) FROM namespace n WHERE n.partition > e.partition)
  FROM each e WHERE e.partition IS NOT NULL
)
SELECT r.user_id FROM each e JOIN record r ON r.seq =
  (SELECT n.seq FROM namespace n WHERE n.partition = e.partition {condition} LIMIT 1)
WHERE r.user_id IS NOT NULL
"""


def users(connection: Connection, namespace: Namespace) -> list[str]:
    """List the users who have live records in or below a namespace; in any if it is empty."""
    sql = _USERS.format(condition="AND n.path = ?" if namespace else "")
    found = connection.execute(sql, (to_path(namespace),) if namespace else ())
    return [user for (user,) in found]


def records_in(
    connection: Connection, scope: Scope, namespace: Namespace, most: int
) -> list[str] | None:
    """List the ids of live records in or below a namespace; None if there are more than `most`."""
    clause, values = rows.covered(scope, "namespace", by_partition=True)
    sql = f"SELECT record FROM namespace WHERE {clause} AND path = ? LIMIT ?"
    found = connection.execute(sql, (*values, to_path(namespace), most + 1)).fetchall()
    return None if len(found) > most else [record for (record,) in found]
