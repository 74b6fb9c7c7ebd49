"""How checkpoints look in SQLite: the tables, and the way from rows to what crosses the port."""

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from ..checkpoints import Address, Blob, Checkpoint, State, TaskWrite
from ..model import Scope
from . import lineage, rows

SCHEMA = """
CREATE TABLE IF NOT EXISTS thread (
  id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS thread_by_user ON thread (user_id);
CREATE INDEX IF NOT EXISTS thread_by_agent ON thread (user_id, agent_id);
CREATE INDEX IF NOT EXISTS thread_by_session ON thread (user_id, session_id);
CREATE TABLE IF NOT EXISTS checkpoint (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT,
  within TEXT, deltas TEXT NOT NULL, versions TEXT NOT NULL, body_type TEXT NOT NULL,
  body BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (thread, namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS checkpoint_by_thread ON checkpoint (thread, id, namespace);
CREATE INDEX IF NOT EXISTS checkpoint_by_id ON checkpoint (id, thread, namespace);
CREATE INDEX IF NOT EXISTS checkpoint_by_run ON checkpoint (run, thread) WHERE run IS NOT NULL;
CREATE TABLE IF NOT EXISTS channel_value (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL,
  type TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (thread, namespace, channel, version)
) STRICT;
CREATE TABLE IF NOT EXISTS task_write (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, checkpoint TEXT NOT NULL, task TEXT NOT NULL,
  number INTEGER NOT NULL, path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY (thread, namespace, checkpoint, task, number)
) STRICT, WITHOUT ROWID;
"""
HEAD = "thread, namespace, id, parent, run, within, deltas, versions"
ROW = f"{HEAD}, body_type, body, metadata_type, metadata"
WRITE = "thread, namespace, checkpoint, task, number, path, channel, type, data"
AT = "thread = ? AND namespace = ? AND id = ?"


def to_row(one: Checkpoint) -> tuple[Any, ...]:
    """Turn a checkpoint into values in the order of `ROW`."""
    return (
        one.address.thread,
        one.address.namespace,
        one.address.id,
        one.parent,
        one.run,
        rows.to_json(one.within) if one.within else None,
        rows.to_json(one.deltas),
        rows.to_json(dict(one.versions)),
        one.body.type,
        one.body.data,
        one.metadata.type,
        one.metadata.data,
    )


def from_row(row: Sequence[Any]) -> Checkpoint:
    """Turn a row of `ROW` into a checkpoint."""
    return Checkpoint(
        address=Address(thread=row[0], namespace=row[1], id=row[2]),
        parent=row[3],
        run=row[4],
        within=tuple(json.loads(row[5])) if row[5] else None,
        deltas=tuple(json.loads(row[6])),
        versions=json.loads(row[7]),
        body=Blob(type=row[8], data=row[9]),
        metadata=Blob(type=row[10], data=row[11]),
    )


def state(connection: Connection, thread: str, namespace: str, id: str | None) -> State | None:  # noqa: A002 -- as the port
    """Read one state, the latest when `id` is missing; None if there is none."""
    where, given = (AT, (id,)) if id is not None else (AT.replace(" AND id = ?", ""), ())
    sql = f"SELECT {ROW} FROM checkpoint WHERE {where} ORDER BY id DESC LIMIT 1"  # noqa: S608 -- constants
    row = connection.execute(sql, (thread, namespace, *given)).fetchone()
    if row is None:
        return None
    one = from_row(row)
    return State(
        checkpoint=one,
        values=values_at(connection, (thread, namespace), one.versions),
        writes=tuple(writes_at(connection, (thread, namespace, one.address.id))),
        owner=owner_of(connection, thread),
    )


def values_at(
    connection: Connection, line: tuple[str, str], versions: Mapping[str, str]
) -> dict[str, Blob]:
    """Read the values of channels at these versions; one that has none is missing."""
    if not versions:
        return {}
    sql = (
        f"WITH asked (channel, version) AS (VALUES {', '.join(['(?, ?)'] * len(versions))})"  # noqa: S608 -- marks
        " SELECT v.channel, v.type, v.data FROM asked CROSS JOIN channel_value v"
        " ON v.thread = ? AND v.namespace = ? AND v.channel = asked.channel"
        " AND v.version = asked.version"
    )
    given = [one for pair in versions.items() for one in pair]
    found = connection.execute(sql, (*given, *line))
    return {channel: Blob(type=kind, data=data) for channel, kind, data in found}


def writes_at(connection: Connection, at: tuple[str, str, str]) -> list[TaskWrite]:
    """Read what tasks wrote beside a checkpoint, in order."""
    sql = (
        "SELECT task, path, number, channel, type, data FROM task_write"
        " WHERE thread = ? AND namespace = ? AND checkpoint = ?"
    )
    found = [
        TaskWrite(
            task=one[0],
            path=one[1],
            index=one[2],
            channel=one[3],
            value=Blob(type=one[4], data=one[5]),
        )
        for one in connection.execute(sql, at)
    ]
    return sorted(found, key=lambda one: one.order)


def load(connection: Connection, thread: str) -> tuple[list[lineage.Head], set[lineage.Kept]]:
    """Read a thread's checkpoints without their bytes, and which versions have a value."""
    heads = [
        lineage.Head(
            namespace=one[1],
            id=one[2],
            parent=one[3],
            run=one[4],
            within=tuple(json.loads(one[5])) if one[5] else None,
            deltas=json.loads(one[6]),
            versions=json.loads(one[7]),
        )
        for one in connection.execute(
            f"SELECT {HEAD} FROM checkpoint WHERE thread = ?",  # noqa: S608 -- constants
            (thread,),
        )
    ]
    sql = "SELECT namespace, channel, version FROM channel_value WHERE thread = ?"
    return heads, set(connection.execute(sql, (thread,)))


def owner_of(connection: Connection, thread: str) -> Scope | None:
    """Read whose a thread is; None when it is nobody's or not there."""
    sql = "SELECT user_id, agent_id, session_id FROM thread WHERE id = ?"
    row = connection.execute(sql, (thread,)).fetchone()
    return rows.to_scope(*row) if row and any(row) else None
