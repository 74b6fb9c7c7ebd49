"""Records and their sessions in SQLite: the rules of a change, fences, repetition, history."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from ...ports.stores import Erased, Outcome, Put, Remove
from ...types import Change, Event, Excerpt, Record, Scope, now
from ..shared import rows
from ..shared.rows import RecordColumns, SessionColumns
from . import assertions, namespaces
from .connection import create_tables, insert_many, one_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS record (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user_id TEXT, agent_id TEXT, session_id TEXT,
  tags TEXT, text TEXT NOT NULL,
  kind TEXT NOT NULL, role TEXT, name TEXT, metadata TEXT NOT NULL, namespace TEXT NOT NULL,
  origin TEXT NOT NULL, trust REAL NOT NULL, position INTEGER, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, occurred_at INTEGER NOT NULL, valid_to INTEGER, expires_at INTEGER,
  version INTEGER NOT NULL, conflicts TEXT NOT NULL, importance REAL NOT NULL,
  pinned INTEGER NOT NULL, situation TEXT, outcome TEXT, votes INTEGER NOT NULL,
  indexed INTEGER NOT NULL, times_told INTEGER NOT NULL, last_told_at INTEGER,
  live INTEGER NOT NULL, sources TEXT, retracted TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS record_by_user ON record (user_id, live, created_at, id);
CREATE INDEX IF NOT EXISTS record_by_agent ON record (user_id, agent_id, live, created_at, id)
  WHERE agent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS record_by_session ON record (user_id, session_id, live, created_at, id)
  WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS record_by_kind ON record (user_id, kind, live, created_at, id);
CREATE TABLE IF NOT EXISTS source (
  turn TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (turn, record)
) STRICT, WITHOUT ROWID;
"""
# Columns that a former pre-release did not make.
_ADDED = ("sources", "retracted")
# Who inserts a record adds its sources by turn, as a trigger would run for every record.
_TRIGGERS = (
    "DROP TRIGGER IF EXISTS source_comes",  # of a former pre-release
    """CREATE TRIGGER IF NOT EXISTS source_moves AFTER UPDATE OF sources ON record
    WHEN NEW.sources IS NOT OLD.sources BEGIN
      DELETE FROM source WHERE record = OLD.id
        AND turn IN (SELECT value FROM json_each(coalesce(OLD.sources, '[]')));
      INSERT OR IGNORE INTO source
        SELECT value, NEW.id FROM json_each(coalesce(NEW.sources, '[]')); END""",
    """CREATE TRIGGER IF NOT EXISTS source_goes AFTER DELETE ON record
    WHEN OLD.sources IS NOT NULL BEGIN
      DELETE FROM source WHERE record = OLD.id
        AND turn IN (SELECT value FROM json_each(OLD.sources)); END""",
)
FILL_SOURCES = "INSERT OR IGNORE INTO source SELECT value, r.id FROM record r, json_each(sources)"
_SOURCE = "INSERT OR IGNORE INTO source VALUES (?, ?)"
COLUMNS = ", ".join(RecordColumns._fields)
_MARKS = ", ".join("?" * (len(RecordColumns._fields) + 1))
_INSERTED = ("seq", *RecordColumns._fields, "tags")
_PUT = (
    f"INSERT INTO record ({COLUMNS}, tags) VALUES ({_MARKS}) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in (*RecordColumns._fields[1:], "tags"))
)
_GET = f"SELECT {COLUMNS} FROM record WHERE id = ?"
_EXCERPTS = (
    "SELECT id, user_id, agent_id, session_id, namespace, text, kind, metadata, created_at,"
    " updated_at, expires_at FROM record"
    " WHERE live AND (expires_at IS NULL OR expires_at > ?) AND "
)
_PUT_VERSION = "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?)"
_DELETE = (
    "UPDATE record SET live = 0, text = '', metadata = '{}', tags = NULL, conflicts = '[]',"
    " retracted = ?, version = ?, updated_at = ? WHERE id = ?"
)
# In the braces: the next position of a session that is stored.
PUT_SESSION = (
    "INSERT INTO session (key, user_id, agent_id, session_id, next, first_at, last_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET next = {},"
    " first_at = coalesce(min(first_at, excluded.first_at), first_at, excluded.first_at),"
    " last_at = coalesce(max(last_at, excluded.last_at), last_at, excluded.last_at)"
)
_LAST_TEXT = (
    "SELECT text, metadata FROM version WHERE record = ? AND text IS NOT NULL"
    " ORDER BY version DESC LIMIT 1"
)


def create(connection: Connection) -> None:
    """Create what is missing of the table of records, and of that of their sources."""
    create_tables(connection, SCHEMA)
    known = {row[1] for row in connection.execute("PRAGMA table_info(record)")}
    for column in _ADDED:
        if column not in known:
            connection.execute(f"ALTER TABLE record ADD COLUMN {column} TEXT")
    for statement in _TRIGGERS:
        connection.execute(statement)


def read(connection: Connection, record_id: object) -> RecordColumns | None:
    """Read the row of a record or of its tombstone; None if there is neither."""
    try:
        row = connection.execute(_GET, (record_id,)).fetchone()
    except UnicodeEncodeError:
        return None  # a lone surrogate is in no id
    return RecordColumns._make(row) if row else None


def read_many(connection: Connection, ids: Sequence[str]) -> list[RecordColumns]:
    """Read the rows of records or tombstones, in the order of the ids, leaving out others."""
    condition, asked = one_of("id", ids)
    found = connection.execute(f"SELECT {COLUMNS} FROM record WHERE {condition}", (asked,))
    by_id = {row.id: row for row in map(RecordColumns._make, found)}
    return [by_id[id_] for id_ in ids if id_ in by_id]


def read_excerpts(connection: Connection, ids: Sequence[str], at: datetime) -> list[Excerpt]:
    """Read of live records that have not expired what `Excerpt` holds, in the order of the ids."""
    condition, asked = one_of("id", ids)
    found = connection.execute(_EXCERPTS + condition, (rows.to_micros(at), asked))
    if len(ids) == 1:
        return [rows.to_excerpt(row) for row in found.fetchall()]
    by_id = {row[0]: rows.to_excerpt(row) for row in found}  # all rows at once take far longer
    return [by_id[id_] for id_ in ids if id_ in by_id]


def read_deleted(connection: Connection, row: RecordColumns) -> Record | None:
    """Read the record of a tombstone as it was last live; None if its history is erased."""
    found = connection.execute(_LAST_TEXT, (row.id,)).fetchone()
    if row.live or found is None:
        return None
    text, metadata = found
    return rows.to_record(row._replace(text=text, metadata=metadata))


def write(connection: Connection, record: Record, *, live: bool = True) -> RecordColumns:
    """Write the row of a record or a tombstone, in place of an earlier one; return it."""
    row = rows.to_row(record, live=live)
    connection.execute(_PUT, (*row, rows.tags_of(record.metadata) if live else None))
    connection.executemany(_SOURCE, [(turn, record.id) for turn in record.sources])
    return row


def put(
    connection: Connection, before: Record | None, record: Record, *, live: bool
) -> RecordColumns:
    """Write a record or a tombstone with its namespaces; return its row.

    Args:
        before: the live record in the row of this id; None if there is none.
    """
    row = write(connection, record, live=live)
    if record.namespace or (before is not None and before.namespace):
        namespaces.update(connection, before, record if live else None)
    return row


def apply(connection: Connection, changes: Sequence[Put | Remove]) -> list[Outcome]:
    """Apply changes in order; one outcome each."""
    added = _insert(connection, new) if (new := _new_facts(connection, changes)) else {}
    return [added.get(_id_of(change)) or _apply(connection, change) for change in changes]


def _id_of(change: Put | Remove) -> str:
    return change.id if isinstance(change, Remove) else change.record.id


def _apply(connection: Connection, change: Put | Remove) -> Outcome:
    return _put(connection, change) if isinstance(change, Put) else _remove(connection, change)


def _new_facts(connection: Connection, changes: Sequence[Put | Remove]) -> list[Record]:
    """Choose the records that can be written together, before the other changes.

    Nothing is stored of them, no other change is of them, and they neither state relations nor take
    a position in a session.
    """
    puts = [
        one
        for one in changes
        if isinstance(one, Put)
        and (one.upsert or not one.replace)
        and not (one.relations or one.in_session or one.restores)
        and one.record.position is None
    ]
    if not puts:
        return []
    number = Counter(map(_id_of, changes))
    condition, asked = one_of("id", [one.record.id for one in puts])
    stored = connection.execute(f"SELECT id FROM record WHERE {condition}", (asked,))
    number.update(id_ for (id_,) in stored)
    puts = [one for one in puts if number[one.record.id] == 1]
    fences = {scope: _fence(connection, scope) for scope in {one.record.scope for one in puts}}
    return [one.record for one in puts if one.record.version > fences[one.record.scope]]


def _insert(connection: Connection, records: Sequence[Record]) -> dict[str, Outcome]:
    """Write records of which nothing is stored, each with its first version; outcomes by id."""
    [last] = connection.execute("SELECT coalesce(max(seq), 0) FROM record").fetchone()
    numbered = dict(enumerate(records, start=last + 1))
    table: list[tuple[Any, ...]] = []
    versions: list[tuple[Any, ...]] = []
    outcomes: dict[str, Outcome] = {}
    for seq, record in numbered.items():
        row = rows.to_row(record)
        added = Change(id=record.id, text=record.text, event="ADD")
        table.append((seq, *row, rows.tags_of(record.metadata)))
        versions.append((row.id, row.version, "ADD", row.text, None, row.metadata, row.updated_at))
        outcomes[record.id] = Outcome(change=added, record=record)
    insert_many(connection, "record", _INSERTED, table)
    connection.executemany(_SOURCE, [(turn, one.id) for one in records for turn in one.sources])
    connection.executemany(_PUT_VERSION, versions)
    if placed := {seq: record for seq, record in numbered.items() if record.namespace}:
        namespaces.insert(connection, placed)
    return outcomes


def _put(connection: Connection, change: Put) -> Outcome:
    """Add or update a record, unless the change is late, repeated or has nothing to update."""
    record = change.record
    row = read(connection, record.id)
    if row is not None and not record.scope.covers(rows.scope_of(row)):
        return _ignored(record.id, None)
    before = stored = rows.to_record(row) if row and row.live else None
    if row is not None and row.version >= record.version:
        return _late(connection, row, record.version, stored)
    if change.restores:
        return _restore(connection, change, row, stored)
    if stored is not None and (change.upsert or not change.replace):
        stored = stored if stored.holds(record.created_at, include_superseded=True) else None
    told_again = stored is not None and not change.replace and _states_again(stored, change)
    is_wanted = change.upsert or told_again or change.replace == (stored is not None)
    fence_scope = record.scope if stored is None else stored.scope
    if not is_wanted or is_erased(connection, fence_scope, record.version):
        return _ignored(record.id, stored)
    if told_again and row is not None and stored is not None:
        return _tell_again(connection, change, row, stored)
    if stored is None:
        position = _next_position(connection, record) if change.in_session else None
        if record.position != position:
            record = replace(record, position=position)
    else:
        record = _updated(stored, change)
    return _write(connection, change, record, stored, before, has_row=row is not None)


def _restore(
    connection: Connection, change: Put, row: RecordColumns | None, stored: Record | None
) -> Outcome:
    """Bring a deleted record back, with the relations that it asserted when it was deleted."""
    former = None if row is None else read_deleted(connection, row)
    if row is None or former is None or is_erased(connection, former.scope, change.record.version):
        return _ignored(change.record.id, stored)
    taken = ("text", "situation", "updated_at", "version")
    record = replace(former, **{name: getattr(change.record, name) for name in taken})
    change = replace(change, relations=rows.from_retracted(row.retracted))
    return _write(connection, change, record, None, None, has_row=True)


def _remove(connection: Connection, change: Remove) -> Outcome:
    """Turn a record into a tombstone, unless the change is late or there is no such record."""
    row = read(connection, change.id)
    if row is None or not change.scope.covers(rows.scope_of(row)):
        return _ignored(change.id, None)
    if not row.live:
        if row.version != change.version:
            return _ignored(change.id, None)
        touched = tuple(assertions.asserting_records(connection, rows.scope_of(row).owner))
        return replace(_repeated(connection, row, None), touched=touched)
    stored = rows.to_record(row)
    if row.version >= change.version or (change.spare_pinned and stored.pinned):
        return _ignored(change.id, stored)
    namespaces.update(connection, stored, None)
    retracted = rows.to_retracted(assertions.asserted_by(connection, change.id))
    at = rows.to_micros(change.at)
    connection.execute(_DELETE, (retracted, change.version, at, change.id))
    connection.execute("DELETE FROM recall WHERE record = ?", (change.id,))
    reopened = assertions.retract_all(connection, change.id)
    done = Change(id=change.id, text=None, event="DELETE", previous=row.text)
    _add_version(connection, done, change.version, "{}", change.at)
    return Outcome(change=done, record=None, touched=tuple(reopened))


def erase(connection: Connection, scope: Scope, version: int) -> Erased:
    """Remove all that the scope covers up to `version`, and refuse such changes from now on."""
    clause, values = rows.covered(scope)
    source = f"record {rows.index(scope, 'record')} WHERE {clause}"
    erased = f"SELECT id FROM {source} AND version <= ?"

    versions = connection.execute(
        f"DELETE FROM version WHERE version <= ? AND record IN (SELECT id FROM {source})",
        (version, *values),
    ).rowcount
    connection.execute(f"DELETE FROM recall WHERE record IN ({erased})", (*values, version))
    namespaces.erase(connection, erased, [*values, version])
    removed, reopened = assertions.erase(connection, erased, [*values, version])
    records = connection.execute(
        f"DELETE FROM {source} AND version <= ?",
        (*values, version),
    ).rowcount
    connection.execute(
        f"DELETE FROM session WHERE {clause} AND NOT EXISTS (SELECT 1 FROM record"
        " INDEXED BY record_by_session WHERE record.user_id IS session.user_id"
        " AND record.agent_id IS session.agent_id AND record.session_id = session.session_id)",
        values,
    )
    fence(connection, scope.key, version)
    return Erased(
        removed={"records": records, "versions": versions, **removed},
        # A repeated erasure reopens nothing, but the index may not have what the first reopened.
        touched=tuple(reopened if records else assertions.asserting_records(connection, scope)),
    )


def fence(connection: Connection, key: str, version: int) -> None:
    """Refuse changes up to `version` in the scope with this key; a later fence stays."""
    connection.execute(
        "INSERT INTO erasure VALUES (?, ?) ON CONFLICT (key) DO UPDATE"
        " SET version = max(version, excluded.version)",
        (key, version),
    )


def is_erased(connection: Connection, scope: Scope, version: int) -> bool:
    """Check whether an erasure refuses a change of this version."""
    return version <= _fence(connection, scope)


def _fence(connection: Connection, scope: Scope) -> int:
    """Read up to which version erasures refuse changes in a scope; -1 if there were none."""
    keys = [covering.key for covering in scope.covering()]
    marks = ", ".join("?" * len(keys))
    sql = f"SELECT coalesce(max(version), -1) FROM erasure WHERE key IN ({marks})"
    return int(connection.execute(sql, keys).fetchone()[0])


def _ignored(record_id: str, stored: Record | None) -> Outcome:
    text = stored.text if stored else None
    return Outcome(change=Change(id=record_id, text=text, event="NONE"), record=stored)


def _repeated(connection: Connection, row: RecordColumns, stored: Record | None) -> Outcome:
    sql = "SELECT text, event, previous FROM version WHERE record = ? AND version = ?"
    text, event, previous = connection.execute(sql, (row.id, row.version)).fetchone()
    change = Change(id=row.id, text=text, event=event, previous=previous)
    return Outcome(change=change, record=stored)


def _late(
    connection: Connection, row: RecordColumns, version: int, stored: Record | None
) -> Outcome:
    # It may have been applied before, and the index may not have what it touched.
    touched = tuple(assertions.competing_records(connection, row.id)) if stored else ()
    is_same = stored is not None and row.version == version
    outcome = _repeated(connection, row, stored) if is_same else _ignored(row.id, stored)
    return replace(outcome, touched=touched)


def _updated(stored: Record, change: Put) -> Record:
    """Build the record that an update makes of the stored one."""
    record = change.record
    fields = {name: getattr(record, name) for name in change.fields}
    if "votes" in fields:
        fields["votes"] += stored.votes
    if change.merge and "metadata" in fields:
        fields["metadata"] = {**stored.metadata, **fields["metadata"]}
    if change.relations is not None:
        fields |= {"valid_to": None, "conflicts": ()}
    fields |= {"updated_at": record.updated_at, "version": record.version}
    return replace(stored, **fields)


def _states_again(stored: Record, change: Put) -> bool:
    """Tell whether an added fact repeats the stored one, which is still true; a turn never does."""
    added = change.record
    return (
        stored.kind != "episode"
        and change.is_of(stored)
        and stored.text.strip() == added.text.strip()
        and (stored.valid_to is None or stored.valid_to > added.occurred_at)
    )


def _tell_again(connection: Connection, change: Put, row: RecordColumns, stored: Record) -> Outcome:
    """Count a repeated fact, and merge in what is new, which gives it the version of the change.

    Applying the same change again finds nothing new and counts nothing: only a later one counts.
    """
    added = change.record
    record = stored.merged(added)
    stated = tuple(assertions.unstated(connection, record, change.relations or ()))
    # As the count, sources alone make no version.
    is_new = bool(stated) or rows.to_row(record)._replace(sources=row.sources) != row
    if added.created_at > (stored.last_told_at or stored.created_at):
        times = stored.times_told + 1
        record = replace(record, times_told=times, last_told_at=added.created_at)
    elif not is_new:
        return _ignored(record.id, stored)
    if not is_new:
        put(connection, stored, record, live=True)
        return _ignored(record.id, record)
    record = replace(record, updated_at=added.updated_at, version=added.version)
    if stated:
        record = replace(record, valid_to=None)  # until its relations are resolved
    change = replace(change, relations=stated or None)
    return _write(connection, change, record, stored, stored, has_row=True)


def _write(
    connection: Connection,
    change: Put,
    record: Record,
    stored: Record | None,
    before: Record | None,
    *,
    has_row: bool,
) -> Outcome:
    """Write a record with its relations and a version.

    Args:
        stored: the record that it updates; None if it is new.
        before: the live record in the row that it takes.
        has_row: there was a row of this id, live or not.
    """
    row = put(connection, before, record, live=True)
    touched: list[Record] = []
    # What had no row asserts nothing yet.
    if change.relations or (has_row and change.relations is not None):
        is_told_again = stored is not None and not change.replace
        touched = assertions.assert_all(
            connection, record, change.relations, keeps_others=is_told_again
        )
    elif stored is not None and change.ends:
        touched = assertions.end_all(connection, record)
    if (change.relations or change.ends) and (found := read(connection, record.id)):
        record = rows.to_record(found)
    event: Event = "UPDATE" if stored else "RESTORE" if change.restores else "ADD"
    previous = stored.text if stored else None
    done = Change(id=record.id, text=record.text, event=event, previous=previous)
    _add_version(connection, done, record.version, row.metadata, record.updated_at)
    return Outcome(change=done, record=record, touched=tuple(touched))


def _add_version(
    connection: Connection, change: Change, version: int, metadata: str, at: datetime
) -> None:
    of_change = (change.id, version, change.event, change.text, change.previous)
    connection.execute(_PUT_VERSION, (*of_change, metadata, rows.to_micros(at)))


def _next_position(connection: Connection, turn: Record) -> int | None:
    scope = turn.scope
    if scope.session_id is None:
        return None
    at = rows.to_micros(turn.occurred_at)
    values = (scope.key, scope.user_id, scope.agent_id, scope.session_id, 1, at, at)
    sql = PUT_SESSION.format("next + 1") + " RETURNING next - 1"
    return int(connection.execute(sql, values).fetchone()[0])


# -- sessions --------------------------------------------------------------------------------------

_SESSION_INDEXES = (
    "CREATE INDEX IF NOT EXISTS session_by_last ON session (user_id, last_at, key)",
    "CREATE INDEX IF NOT EXISTS session_by_agent ON session (user_id, agent_id, last_at, key)",
)
_ADDED_TO_SESSIONS = ("first_at", "last_at")  # which a former pre-release did not have
_OF_SESSION = (
    "SELECT {} FROM record INDEXED BY record_by_session WHERE record.user_id IS session.user_id"
    " AND record.session_id = session.session_id AND record.agent_id IS session.agent_id"
    " AND position IS NOT NULL"
)
_FILL_SESSIONS = (
    f"UPDATE session SET first_at = ({_OF_SESSION.format('min(occurred_at)')}),"
    f" last_at = ({_OF_SESSION.format('max(occurred_at)')})"
)
_SESSION_PAGE = (
    f"SELECT {', '.join(SessionColumns._fields)} FROM session INDEXED BY {{index}}"
    " WHERE {covered} AND (last_at, key) < (?, ?) ORDER BY last_at DESC, key DESC LIMIT ?"
)
_TURNS = (
    f"SELECT {COLUMNS} FROM record {{index}} WHERE {{covered}} AND live = 1"
    " AND position IS NOT NULL AND (expires_at IS NULL OR expires_at > ?){before}"
    " ORDER BY created_at DESC, position DESC, id DESC LIMIT ?"
)
_BEFORE = (
    " AND (created_at, position, id) <"
    " (SELECT created_at, position, id FROM record WHERE id = ? AND {covered})"
)
_END = (2**63 - 1, "")


def create_sessions(connection: Connection) -> None:
    """Create what is missing of the table of sessions."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
    if not known.issuperset(_ADDED_TO_SESSIONS):
        for column in _ADDED_TO_SESSIONS:
            connection.execute(f"ALTER TABLE session ADD COLUMN {column} INTEGER")
        connection.execute(_FILL_SESSIONS)
    for statement in _SESSION_INDEXES:
        connection.execute(statement)


def session_page(
    connection: Connection, scope: Scope, limit: int, after: tuple[int, str] | None
) -> list[SessionColumns]:
    """Read the sessions of a page and one more, newest first."""
    covered, values = rows.covered(scope)
    index = "session_by_last" if scope.agent_id is None else "session_by_agent"
    index = "session_by_user" if scope.session_id is not None else index
    sql = _SESSION_PAGE.format(index=index, covered=covered)
    found = connection.execute(sql, (*values, *(after or _END), limit + 1))
    return list(map(SessionColumns._make, found))


def session_turns(
    connection: Connection, scope: Scope, limit: int, before: str | None
) -> list[Record]:
    """Read the last turns that hold, in the order in which they were stored."""
    covered, values = rows.covered(scope)
    parameters: list[Any] = [*values, rows.to_micros(now())]
    if before is not None:
        parameters += [before, *values]
    sql = _TURNS.format(
        index=rows.index(scope, "record"),
        covered=covered,
        before="" if before is None else _BEFORE.format(covered=covered),
    )
    found = connection.execute(sql, (*parameters, limit))
    return list(rows.visible(scope, map(rows.to_record, found)))[::-1]
