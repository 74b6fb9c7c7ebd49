"""Sessions and their turns in the embedded graph store."""

from sqlite3 import Connection
from typing import Any

from ...types import Record, Scope, now
from ..shared import rows
from ..shared.rows import SessionColumns
from . import record_changes

_INDEXES = (
    "CREATE INDEX IF NOT EXISTS session_by_last ON session (user_id, last_at, key)",
    "CREATE INDEX IF NOT EXISTS session_by_agent ON session (user_id, agent_id, last_at, key)",
)
_ADDED = ("first_at", "last_at")  # which a former pre-release did not have
_OF_SESSION = (
    "SELECT {} FROM record INDEXED BY record_by_session WHERE record.user_id IS session.user_id"
    " AND record.session_id = session.session_id AND record.agent_id IS session.agent_id"
    " AND position IS NOT NULL"
)
_FILL = (
    f"UPDATE session SET first_at = ({_OF_SESSION.format('min(occurred_at)')}),"
    f" last_at = ({_OF_SESSION.format('max(occurred_at)')})"
)
_PAGE = (
    f"SELECT {', '.join(SessionColumns._fields)} FROM session INDEXED BY {{index}}"
    " WHERE {covered} AND (last_at, key) < (?, ?) ORDER BY last_at DESC, key DESC LIMIT ?"
)
_TURNS = (
    f"SELECT {record_changes.COLUMNS} FROM record {{index}} WHERE {{covered}} AND live = 1"
    " AND position IS NOT NULL AND (expires_at IS NULL OR expires_at > ?){before}"
    " ORDER BY created_at DESC, position DESC, id DESC LIMIT ?"
)
_BEFORE = (
    " AND (created_at, position, id) <"
    " (SELECT created_at, position, id FROM record WHERE id = ? AND {covered})"
)
_END = (2**63 - 1, "")


def create(connection: Connection) -> None:
    """Create what is missing of the table of sessions."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
    if not known.issuperset(_ADDED):
        for column in _ADDED:
            connection.execute(f"ALTER TABLE session ADD COLUMN {column} INTEGER")
        connection.execute(_FILL)
    for statement in _INDEXES:
        connection.execute(statement)


def page(
    connection: Connection, scope: Scope, limit: int, after: tuple[int, str] | None
) -> list[SessionColumns]:
    """Read the sessions of a page and one more, newest first."""
    covered, values = rows.covered(scope)
    index = "session_by_last" if scope.agent_id is None else "session_by_agent"
    index = "session_by_user" if scope.session_id is not None else index
    sql = _PAGE.format(index=index, covered=covered)
    found = connection.execute(sql, (*values, *(after or _END), limit + 1))
    return list(map(SessionColumns._make, found))


def turns(connection: Connection, scope: Scope, limit: int, before: str | None) -> list[Record]:
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
