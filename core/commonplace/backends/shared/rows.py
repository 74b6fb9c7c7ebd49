"""Records, scopes, times and pages as rows of a graph store; shared by the engines."""

import base64
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from ...errors import InvalidRecordError
from ...filters import Filter
from ...model import Page, Record, Scope, now

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# NULLs never equal each other in a UNIQUE constraint, so an unknown beginning is a number too.
_UNKNOWN = -(2**62)
RECORD = (
    "id, user_id, agent_id, session_id, text, kind, role, name, metadata, origin, trust, position,"
    " created_at, updated_at, occurred_at, valid_to, expires_at, version, conflicts,"
    " importance, pinned, situation, outcome, votes, indexed"
)


def covered(scope: Scope, table: str = "") -> tuple[str, list[str | None]]:
    """Write the condition that a row of `table` belongs to the scope, with its parameters."""
    dot = f"{table}." if table else ""
    parts, values = [f"{dot}user_id IS ?"], [scope.user_id]
    for field in ("agent_id", "session_id"):
        value = getattr(scope, field)
        if value is not None:
            parts.append(f"{dot}{field} = ?")
            values.append(value)
    return " AND ".join(parts), values


def index(scope: Scope, table: str) -> str:
    """Name the index of `table` that reads least of others' rows for this scope."""
    if scope.session_id is not None:
        return f"INDEXED BY {table}_by_session"
    return f"INDEXED BY {table}_by_{'user' if scope.agent_id is None else 'agent'}"


def to_micros(at: datetime | None) -> int | None:
    """Turn a time into whole microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def from_micros(value: int | None) -> datetime | None:
    """Turn microseconds since 1970 into a time in UTC."""
    return None if value is None else at_micros(value)


def at_micros(value: int) -> datetime:
    """Turn microseconds since 1970 into a time in UTC."""
    return _EPOCH + value * _MICROSECOND


def to_beginning(at: datetime | None) -> int:
    """Turn the time from which a relation holds, which may be unknown, into a number."""
    return _UNKNOWN if at is None else (at - _EPOCH) // _MICROSECOND


def from_beginning(value: int) -> datetime | None:
    """Turn such a number into a time in UTC; None for one that is unknown."""
    return None if value == _UNKNOWN else at_micros(value)


def to_row(record: Record) -> tuple[Any, ...]:
    """Turn a record into values in the order of `RECORD`."""
    scope = record.scope
    return (
        record.id,
        scope.user_id,
        scope.agent_id,
        scope.session_id,
        record.text,
        record.kind,
        record.role,
        record.name,
        to_json(record.metadata),
        record.origin,
        record.trust,
        record.position,
        to_micros(record.created_at),
        to_micros(record.updated_at),
        to_micros(record.occurred_at),
        to_micros(record.valid_to),
        to_micros(record.expires_at),
        record.version,
        to_json(record.conflicts),
        record.importance,
        record.pinned,
        record.situation,
        record.outcome,
        record.votes,
        record.indexed,
    )


def from_row(row: Sequence[Any]) -> Record:
    """Turn values in the order of `RECORD` into a record."""
    return Record(
        id=row[0],
        scope=owner(row),
        text=row[4],
        kind=row[5],
        role=row[6],
        name=row[7],
        metadata=json.loads(row[8]),
        origin=row[9],
        trust=row[10],
        position=row[11],
        created_at=at_micros(row[12]),
        updated_at=at_micros(row[13]),
        occurred_at=at_micros(row[14]),
        valid_to=from_micros(row[15]),
        expires_at=from_micros(row[16]),
        version=row[17],
        conflicts=tuple(json.loads(row[18])),
        importance=row[19],
        pinned=bool(row[20]),
        situation=row[21],
        outcome=row[22],
        votes=row[23],
        indexed=bool(row[24]),
    )


def owner(row: Sequence[Any]) -> Scope:
    """Read whose record a row in the order of `RECORD` is."""
    return to_scope(row[1], row[2], row[3])


@lru_cache(maxsize=4096)
def to_scope(user_id: str | None, agent_id: str | None, session_id: str | None) -> Scope:
    """Make a scope; remembered, because checking the ids costs more than reading the row."""
    return Scope(user_id=user_id, agent_id=agent_id, session_id=session_id)


def to_json(value: Any) -> str:
    """Write metadata or a list of ids as JSON."""
    plain = dict(value) if isinstance(value, Mapping) else list(value)
    return json.dumps(plain, ensure_ascii=False)


def visible(
    scope: Scope,
    found: Iterable[Record],
    *,
    include_superseded: bool = True,
    as_of: datetime | None = None,
    include_expired: bool = False,
) -> Iterator[Record]:
    """Leave out what the scope must not see, though an engine has asked for it already."""
    at = now()
    return (
        one
        for one in found
        if scope.covers(one.scope)
        and one.holds(
            at,
            as_of=as_of,
            include_superseded=include_superseded,
            include_expired=include_expired,
        )
    )


def to_page(found: Iterable[Record], where: Filter | None, limit: int) -> Page:
    """Take the first `limit` records that a filter lets through; the cursor tells of more."""
    matching = (one for one in found if where is None or where.matches(one))
    page = tuple(itertools.islice(matching, limit + 1))
    if len(page) <= limit:
        return Page(records=page, cursor=None)
    return Page(records=page[:limit], cursor=_to_cursor(page[limit - 1]))


def _to_cursor(last: Record) -> str:
    place = [to_micros(last.created_at), last.id]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def from_cursor(cursor: str) -> tuple[int, str]:
    """Read the place of the last record from the cursor of a page.

    Raises:
        InvalidRecordError: it is not one of ours.
    """
    try:
        created_at, record_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        at_micros(created_at)
        record_id.encode()
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise InvalidRecordError(
            field="cursor",
            value=cursor,
            reason="is no cursor of a page",
            hint="Give back Page.cursor as it came, or None for the first page.",
        ) from None
    return int(created_at), record_id


def check_limit(limit: object) -> None:
    """Refuse a page size that is no whole number of 1 to 1000."""
    if type(limit) is not int or not 1 <= limit <= 1000:
        raise InvalidRecordError(field="limit", value=limit, reason="is no number of 1 to 1000")
