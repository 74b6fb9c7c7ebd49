"""Folders of records (`filters.FOLDERS`) as a narrow table, for listings that parse no record.

Each live record has a row for each of its folders, written with it in one transaction. The rows of
a folder are in the order of a page.
"""

from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from ...filters import FOLDERS, Filter, Group, Where, folder_order, folders_of
from ...types import Record, Scope
from ..shared import rows

# Where a record is, as one text: the order and the name of its folder, its partition and its ids.
_PLACE = " || char(0) || ".join(
    ("rtrim(name, ']')", "name", "partition", "coalesce(agent_id, '')", "coalesce(session_id, '')")
)
_LAST = "\x7f"  # sorts after every partition
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS folder (
  partition TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL,
  seq INTEGER NOT NULL, agent_id TEXT, session_id TEXT, until INTEGER, innermost INTEGER NOT NULL,
  PRIMARY KEY (partition, name, created_at, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS folder_by_place ON folder ({_PLACE}, until, innermost)
  WHERE innermost
"""
_INSERT = (
    "INSERT OR REPLACE INTO folder SELECT ?, ?, ?, id, seq, agent_id, session_id, expires_at, ?"
    " FROM record WHERE id = ?"
)
_USER = "SELECT user_id FROM record WHERE seq = (SELECT seq FROM folder WHERE partition = ?)"
_DELETE = "DELETE FROM folder WHERE partition = ? AND name = ? AND created_at = ? AND record = ?"


def update(connection: Connection, before: Record | None, after: Record | None) -> None:
    """Replace the rows of a record.

    Args:
        before: the live record as it was stored; None if there was none.
        after: the live record as it is stored now; None if it was deleted.
    """
    old = () if before is None else folders_of(before)
    new = () if after is None else folders_of(after)
    if before and after and old == new:
        unchanged = ("scope", "created_at", "expires_at")
        if not old or all(getattr(before, one) == getattr(after, one) for one in unchanged):
            return
    if before and old:
        connection.executemany(_DELETE, [(*_key(before, name), before.id) for name in {*old}])
    if after and new:
        connection.executemany(
            _INSERT, [(*_key(after, name), name == new[-1], after.id) for name in {*new}]
        )


def _key(record: Record, name: str) -> tuple[str, str, int]:
    return record.scope.partition, name, rows.to_micros(record.created_at)


def erase(connection: Connection, scope: Scope, erased: str, values: Sequence[Any]) -> None:
    """Remove the rows of the records of a scope that the query `erased` selects, by id."""
    connection.execute(
        "DELETE FROM folder WHERE partition = ? AND (name, created_at, record) IN"
        " (SELECT f.value, r.created_at, r.id FROM record r, json_each(r.metadata, ?) f"
        f" WHERE r.id IN ({erased}) AND f.type = 'text')",
        (scope.partition, f"$.{FOLDERS}", *values),
    )


def rebuild(connection: Connection) -> None:
    """Write the rows of all live records anew."""
    connection.execute("DELETE FROM folder")
    columns = ", ".join(rows.RecordColumns._fields)
    sql = f"SELECT {columns} FROM record WHERE live = 1 AND instr(metadata, ?)"
    for row in connection.execute(sql, (f'"{FOLDERS}"',)):
        update(connection, None, rows.to_record(row))


def names(connection: Connection, scope: Scope, at: datetime) -> list[str]:
    """List the innermost folders of live records that the scope covers, in no order."""
    clause, values = rows.covered(scope, "folder", by_partition=True)
    sql = (
        f"SELECT DISTINCT name FROM folder WHERE {clause} AND innermost"
        " AND (until IS NULL OR until > ?)"
    )
    return [name for (name,) in connection.execute(sql, (*values, rows.to_micros(at)))]


# A step for each place, as SQLite's own DISTINCT would read every row.
_PLACES = f"""
WITH RECURSIVE each (place) AS (
  SELECT ? UNION ALL
  SELECT (SELECT {_PLACE} FROM folder INDEXED BY folder_by_place
    WHERE innermost AND {_PLACE} > e.place ORDER BY {_PLACE} LIMIT 1)
  FROM each e WHERE e.place IS NOT NULL
)
SELECT e.place FROM each e WHERE EXISTS (
  SELECT 1 FROM folder INDEXED BY folder_by_place
  WHERE innermost AND {_PLACE} = e.place AND (until IS NULL OR until > ?)
)
"""


def scopes_by_name(
    connection: Connection, starts: str, after: str, limit: int, at: datetime
) -> dict[str, list[Scope]]:
    """List the innermost folders of live records in their order, with the scopes of those."""
    first = folder_order(starts)[0]
    behind = "\x00".join((*folder_order(after), _LAST))
    found: dict[str, list[Scope]] = {}
    scopes: dict[str, Scope] = {}
    cursor = connection.execute(_PLACES, (max(first, behind), rows.to_micros(at)))
    for (place,) in cursor:
        _, name, owner = place.split("\x00", 2)
        if name not in found:
            if len(found) == limit or not name.startswith(first):
                break
            if not name.startswith(starts):
                continue
            found[name] = []
        if owner not in scopes:
            partition, agent_id, session_id = owner.split("\x00")
            [user_id] = connection.execute(_USER, (partition,)).fetchone()
            scopes[owner] = rows.to_scope(user_id, agent_id or None, session_id or None)
        found[name].append(scopes[owner])
    cursor.close()
    return found


def users(connection: Connection, name: str) -> list[str]:
    """List the users who have live records in a folder; in any for an empty name."""
    return [one for one in _partitions(connection, name).values() if one is not None]


# A step for each partition, as SQLite's own DISTINCT would read every row.
_PARTITIONS = """
WITH RECURSIVE each (partition) AS (
  SELECT min(partition) FROM folder UNION ALL
  SELECT (SELECT min(f.partition) FROM folder f WHERE f.partition > e.partition)
  FROM each e WHERE e.partition IS NOT NULL
)
SELECT e.partition, r.user_id FROM each e JOIN record r ON r.seq =
  (SELECT f.seq FROM folder f WHERE f.partition = e.partition {condition} LIMIT 1)
"""


def _partitions(connection: Connection, name: str) -> dict[str, str | None]:
    """Map the partitions that have a folder of this name, or any for none, to their users."""
    sql = _PARTITIONS.format(condition="AND f.name = ?" if name else "")
    return dict(connection.execute(sql, (name,) if name else ()).fetchall())


def records_in(connection: Connection, scope: Scope, name: str, most: int) -> list[str] | None:
    """List the ids of the live records of a scope in a folder; None for more than `most`."""
    clause, values = rows.covered(scope, "folder", by_partition=True)
    sql = f"SELECT record FROM folder WHERE {clause} AND name = ? LIMIT ?"
    found = connection.execute(sql, (*values, name, most + 1)).fetchall()
    return None if len(found) > most else [one for (one,) in found]


def folder_wanted(where: Filter | None) -> str | None:
    """Find a folder in which everything is that matches a filter; None if it names none."""
    if isinstance(where, Group) and where.combine == "AND":
        return next((one for one in map(folder_wanted, where.parts) if one is not None), None)
    if isinstance(where, Where) and where.field == FOLDERS and where.operator == "eq":
        (name,) = where.values
        return name if isinstance(name, str) else None
    return None
