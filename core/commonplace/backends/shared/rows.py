"""Records, scopes, times, vectors, pages and indexed metadata as engines store them."""

import base64
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidRecordError, InvalidScopeError, InvalidVectorError
from ...filters import FIELDS, Filter, Scalar
from ...ports.stores import made
from ...types import (
    Excerpt,
    Kind,
    Origin,
    Page,
    Record,
    Relation,
    Role,
    Scope,
    SessionInfo,
    SessionPage,
    TokenEmbedding,
    Version,
    now,
    split_key,
)
from ...validation import check_integer

Tokens = NDArray[np.int8]

VERSION = ("record", "version", "event", "text", "previous", "metadata", "at")
"""The columns of a version."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.json.Encoder().encode  # of long texts, ten times faster than the other
_decode = msgspec.json.Decoder().decode
_decode_relations = msgspec.json.Decoder(tuple[Relation, ...]).decode
_encode_any = json.JSONEncoder(ensure_ascii=False).encode
_MICROSECOND = timedelta(microseconds=1)
# NULLs never equal each other in a UNIQUE constraint, so an unknown beginning is a number too.
_UNKNOWN = -(2**62)
POSITION = "coalesce(r.position, -1)"
"""Orders the records `r` of one moment: turns by their place, what has none before them."""


class UnreadableRowError(ValueError):
    """A row is not as this library writes it: the file is damaged where its engine cannot see."""


class RecordColumns(NamedTuple):
    """A record, or the tombstone of one, as the columns of a row.

    Attributes:
        live: 0 for a tombstone, whose text and metadata are only in its history.
        retracted: of a tombstone, the relations that it asserted, as `to_retracted` writes them.
    """

    id: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    text: str
    kind: Kind
    role: Role | None
    name: str | None
    metadata: str
    namespace: str
    origin: Origin
    trust: float
    position: int | None
    created_at: int
    updated_at: int
    occurred_at: int
    valid_to: int | None
    expires_at: int | None
    version: int
    conflicts: str
    importance: float
    pinned: int
    situation: str | None
    outcome: str | None
    votes: int
    indexed: int
    times_told: int
    last_told_at: int | None
    live: int
    sources: str | None = None
    retracted: str | None = None


def to_row(record: Record, *, live: bool = True) -> RecordColumns:
    """Convert a record to a row."""
    # By place, as names for every field would take three times as long.
    scope, created = record.scope, to_micros(record.created_at)
    return RecordColumns(
        record.id, scope.user_id, scope.agent_id, scope.session_id, record.text, record.kind,
        record.role, record.name, to_json(record.metadata),
        to_json(record.namespace) if record.namespace else "[]",
        record.origin, record.trust, record.position, created,
        created if record.updated_at is record.created_at else to_micros(record.updated_at),
        created if record.occurred_at is record.created_at else to_micros(record.occurred_at),
        to_micros(record.valid_to), to_micros(record.expires_at), record.version,
        to_json(record.conflicts) if record.conflicts else "[]",
        record.importance, record.pinned, record.situation, record.outcome, record.votes,
        record.indexed, record.times_told, to_micros(record.last_told_at), live,
        to_json(record.sources) if record.sources else None,
    )  # fmt: skip


def to_record(row: Sequence[Any]) -> Record:
    """Convert the values of `RecordColumns`, or these themselves, to a record."""
    # Unpacked, as a named tuple for every row of a page would take 5 % of the page's time.
    # fmt: off
    (
        id_, user_id, agent_id, session_id, text, kind, role, name, metadata, namespace, origin,
        trust, position, created_at, updated_at, occurred_at, valid_to, expires_at, version,
        conflicts, importance, pinned, situation, outcome, votes, indexed, times_told,
        last_told_at, _live, sources, _retracted,
    ) = row
    # fmt: on
    try:
        created = _EPOCH + created_at * _MICROSECOND
        # By place, as names for every field would take twice as long.
        values = (
            id_, text, to_scope(user_id, agent_id, session_id), kind, role, name,
            from_json(metadata), _to_namespace(namespace), origin, trust, position, created,
            created if updated_at == created_at else _EPOCH + updated_at * _MICROSECOND,
            created if occurred_at == created_at else _EPOCH + occurred_at * _MICROSECOND,
            from_micros(valid_to), from_micros(expires_at), version,
            () if conflicts == "[]" else tuple(from_json(conflicts)),
            importance, bool(pinned), situation, outcome, votes, bool(indexed), times_told,
            from_micros(last_told_at), () if sources is None else tuple(from_json(sources)),
        )  # fmt: skip
        return made(Record, values)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnreadableRowError(error) from error


def to_excerpt(row: Sequence[Any]) -> Excerpt:
    """Convert the values of an excerpt as they are stored."""
    (
        id_, user_id, agent_id, session_id, namespace, text, kind, metadata, created_at,
        updated_at, expires_at,
    ) = row  # fmt: skip
    try:
        created = _EPOCH + created_at * _MICROSECOND
        return Excerpt(
            id_,
            to_scope(user_id, agent_id, session_id),
            _to_namespace(namespace),
            text,
            kind,
            from_json(metadata),
            created,
            created if updated_at == created_at else _EPOCH + updated_at * _MICROSECOND,
            from_micros(expires_at),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise UnreadableRowError(error) from error


@lru_cache(4096)
def _to_namespace(text: str) -> tuple[str, ...]:
    return tuple(from_json(text))


def scope_of(row: RecordColumns) -> Scope:
    """Read the scope of the record in a row."""
    return to_scope(row.user_id, row.agent_id, row.session_id)


@lru_cache(maxsize=4096)
def to_scope(user_id: str | None, agent_id: str | None, session_id: str | None) -> Scope:
    """Make a scope; cached, because validating the ids costs more than reading the row."""
    try:
        return Scope(user_id=user_id, agent_id=agent_id, session_id=session_id)
    except InvalidScopeError as error:
        raise UnreadableRowError(error) from error


def covered(scope: Scope, table: str = "", *, by_partition: bool = False) -> tuple[str, list[Any]]:
    """Build the SQL condition that a row of `table` belongs to the scope, with its parameters.

    Args:
        by_partition: the table has the partition of its rows' owners, by which it is indexed.
    """
    prefix = f"{table}." if table else ""
    conditions = [f"{prefix}partition = ?" if by_partition else f"{prefix}user_id IS ?"]
    values: list[Any] = [scope.partition if by_partition else scope.user_id]
    for field in ("agent_id", "session_id"):
        value = getattr(scope, field)
        if value is not None:
            conditions.append(f"{prefix}{field} = ?")
            values.append(value)
    return " AND ".join(conditions), values


def index(scope: Scope, table: str) -> str:
    """Name the index of `table` that reads the fewest rows of other owners for this scope."""
    if scope.session_id is not None:
        return f"INDEXED BY {table}_by_session"
    return f"INDEXED BY {table}_by_{'user' if scope.agent_id is None else 'agent'}"


@overload
def to_micros(at: datetime) -> int: ...
@overload
def to_micros(at: None) -> None: ...
def to_micros(at: datetime | None) -> int | None:
    """Convert a time to whole microseconds since 1970; None stays None."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


@overload
def from_micros(value: int) -> datetime: ...
@overload
def from_micros(value: None) -> None: ...
def from_micros(value: int | None) -> datetime | None:
    """Convert microseconds since 1970 to a time in UTC; None stays None."""
    return None if value is None else _EPOCH + value * _MICROSECOND


def to_beginning(at: datetime | None) -> int:
    """Convert the beginning of a relation, None if unknown, to a number."""
    return _UNKNOWN if at is None else to_micros(at)


def from_beginning(value: int) -> datetime | None:
    """Convert such a number to a time in UTC; None for an unknown beginning."""
    return None if value == _UNKNOWN else from_micros(value)


def from_json(text: str) -> Any:
    """Read a stored value of `to_json`."""
    try:
        return _decode(text)
    except msgspec.MsgspecError:  # `json` reads more, such as half of a pair of surrogates
        try:
            return json.loads(text)
        except ValueError as error:
            raise UnreadableRowError(error) from error
    except TypeError as error:
        raise UnreadableRowError(error) from error


def to_json(value: Any) -> str:
    """Encode metadata, a namespace or a list of ids as JSON."""
    try:
        return _encode(value).decode()
    except (TypeError, OverflowError):  # a subclass of a plain type, or a version above 64 bits
        return _encode_any(dict(value) if isinstance(value, Mapping) else list(value))


def to_relation(values: Mapping[str, Any], **others: Any) -> Relation:
    """Convert the stored values of a relation, by name; those that may be empty may be missing."""
    return Relation(
        subject=values["subject"],
        predicate=values["predicate"],
        object=values["object"],
        valid_from=from_beginning(values["valid_from"]),
        valid_to=from_micros(values.get("valid_to")),
        single_valued=bool(values.get("single")),
        created_at=from_micros(values.get("created_at")),
        expired_at=from_micros(values.get("expired_at")),
        conflict=bool(values.get("conflict")),
        identity=split_key(values["key"])[1],
        **others,
    )


def to_version(row: Sequence[Any]) -> Version:
    """Convert the values of `VERSION` to a version."""
    record_id, version, event, text, previous, metadata, at = row
    return Version(
        record_id=record_id,
        version=version,
        event=event,
        text=text,
        previous=previous,
        metadata=from_json(metadata),
        at=from_micros(at),
    )


def from_version(one: Version) -> tuple[Any, ...]:
    """Convert a version to the values of `VERSION`."""
    of_change = (one.record_id, one.version, one.event, one.text, one.previous)
    return (*of_change, to_json(one.metadata), to_micros(one.at))


def latest_ends(found: Iterable[tuple[str, int | None]]) -> dict[str, datetime]:
    """Find the turns of which no fact holds any more, each with the latest end of its facts.

    Args:
        found: each turn with the end of one of its facts; None for one that holds.
    """
    ends: dict[str, list[int | None]] = {}
    for turn, end in found:
        ends.setdefault(turn, []).append(end)
    return {
        turn: from_micros(max(end for end in some if end is not None))
        for turn, some in ends.items()
        if None not in some
    }


def to_retracted(relations: Sequence[Relation]) -> str | None:
    """Write the relations that a record asserted when it was deleted; None for none."""
    return _encode(relations).decode() if relations else None


def from_retracted(text: str | None) -> tuple[Relation, ...]:
    """Read what `to_retracted` wrote."""
    try:
        return _decode_relations(text) if text else ()
    except msgspec.MsgspecError as error:
        raise UnreadableRowError(error) from error


def visible(
    scope: Scope,
    records: Iterable[Record],
    *,
    include_superseded: bool = True,
    as_of: datetime | None = None,
    include_expired: bool = False,
) -> Iterator[Record]:
    """Yield the records that the scope may see, whatever an engine has filtered already."""
    at = now()
    return (
        record
        for record in records
        if scope.covers(record.scope)
        and record.holds(
            at,
            as_of=as_of,
            include_superseded=include_superseded,
            include_expired=include_expired,
        )
    )


class SessionColumns(NamedTuple):
    """A session as a row; its times in microseconds."""

    key: str
    user_id: str | None
    agent_id: str | None
    session_id: str
    next: int
    first_at: int
    last_at: int


def to_session_page(found: Sequence[SessionColumns], limit: int) -> SessionPage:
    """Make a page of the first `limit` sessions, with a cursor if there are more."""
    sessions = tuple(
        SessionInfo(
            scope=to_scope(row.user_id, row.agent_id, row.session_id),
            turns=row.next,
            first_at=from_micros(row.first_at),
            last_at=from_micros(row.last_at),
        )
        for row in found[:limit]
    )
    last = found[limit - 1] if len(found) > limit else None
    return SessionPage(sessions=sessions, cursor=last and _to_cursor(last.last_at, last.key))


def to_page(records: Iterable[Record], where: Filter | None, limit: int) -> Page:
    """Take the first `limit` records that match a filter, with a cursor if there are more."""
    matching = (record for record in records if where is None or where.matches(record))
    page = tuple(itertools.islice(matching, limit + 1))
    if len(page) <= limit:
        return Page(records=page, cursor=None)
    last = page[limit - 1]
    position = -1 if last.position is None else last.position
    cursor = _to_cursor(to_micros(last.created_at), last.id, position)
    return Page(records=page[:limit], cursor=cursor)


def _to_cursor(at: int, key: str, position: int = -1) -> str:
    return base64.urlsafe_b64encode(json.dumps([at, position, key]).encode()).decode()


def from_cursor(cursor: str) -> tuple[int, int, str]:
    """Read the time, `POSITION` and the id or key of the last row of a page from its cursor."""
    try:
        at, position, key = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        last = int(at), int(position), key
        _ = key.encode(), from_micros(at), from_micros(position)  # what a column can hold
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise InvalidRecordError(
            field="cursor",
            value=cursor,
            reason="must be the cursor of a page",
            hint="Give back Page.cursor as it came, or None for the first page.",
        ) from None
    return last


def check_page(limit: object, offset: object = 0) -> None:
    """Refuse a page size that is not in 1..1000, and a number of rows to pass over below 0."""
    check_integer("limit", limit, 1, 1000)
    check_integer("offset", offset, 0, 2**63 - 1)


# -- vectors ------------------------------------------------------------------------------------


def to_vector(vector: Any, dimensions: int) -> NDArray[np.float32]:
    """Check a vector and convert it to single precision.

    Raises:
        InvalidVectorError: it is not finite, is zero or has not `dimensions` numbers.
    """
    if len(vector) != dimensions:
        raise InvalidVectorError(
            reason="has the wrong length", expected=dimensions, got=len(vector)
        )
    with np.errstate(over="ignore", invalid="ignore"):
        row: NDArray[np.float32] = np.asarray(vector, np.float32)
        square = float(row @ row)
    if square == math.inf:  # perhaps only in single precision
        square = float(np.square(row, dtype=np.float64).sum())
    if not math.isfinite(square):
        raise InvalidVectorError(reason="is not finite", expected=dimensions, got=dimensions)
    if square < 1e-12:
        raise InvalidVectorError(reason="is zero", expected=dimensions, got=dimensions)
    return row


def to_tokens(raw: bytes, dimensions: int) -> Tokens:
    """Read token vectors, one a row.

    Raises:
        InvalidVectorError: the last one is shorter.
    """
    if len(raw) % dimensions:
        reason = "has tokens of the wrong length"
        raise InvalidVectorError(reason=reason, expected=dimensions, got=len(raw) % dimensions)
    return np.frombuffer(raw, np.int8).reshape(-1, dimensions)


def pack_passages(vectors: Sequence[NDArray[np.float32]], tokens: Sequence[bytes]) -> bytes:
    """Encode the passages after the first one; empty if there are none."""
    if not len(vectors):
        return b""
    pairs = zip(vectors, tokens, strict=True)
    return msgspec.msgpack.encode([(one.astype("<f4").tobytes(), some) for one, some in pairs])


def unpack_passages(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Decode passages to the bytes of the vector and of the tokens of each."""
    return msgspec.msgpack.decode(raw, type=list[tuple[bytes, bytes]]) if raw else []


def to_embeddings(raw: bytes, *, has_tokens: bool) -> tuple[TokenEmbedding, ...]:
    """Decode passages to what `TokenEmbedding.following` has."""
    return tuple(
        TokenEmbedding(
            vector=np.frombuffer(vector, "<f4").tolist(), tokens=tokens if has_tokens else b""
        )
        for vector, tokens in unpack_passages(raw)
    )


# -- metadata as it is indexed ------------------------------------------------------------------

_FLAT = frozenset((str, int, float, bool, list, type(None)))  # which are no mappings
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SCALARS = (str, int, float)  # in a loop far quicker than `Scalar`
_MAX_TAGS = 256
_MAX_TAG = 64  # characters of a text that is in its tag
_encode_text = json.encoder.encode_basestring_ascii


@lru_cache(4096)
def tag_key(key: str) -> str:
    """Name a metadata key, or a path to a nested value; other keys have other names.

    A plain key that is no field of a record is its own name. Any other has a hash, which begins
    with a digit, as no plain key does.
    """
    if _PLAIN.fullmatch(key) and key not in FIELDS:
        return key
    return "0" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def indexed_values(metadata: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List (`tag_key`, value) of all that `filters.metadata_value` reads from metadata."""
    found = [(tag_key(key), held) for key, held in metadata.items()]
    for key, held in metadata.items():
        if type(held) not in _FLAT and isinstance(held, Mapping) and "." not in key:
            _add_nested(found, key, held, metadata)
    return found


def _add_nested(
    found: list[tuple[str, Any]], path: str, held: Mapping[str, Any], metadata: Mapping[str, Any]
) -> None:
    for key, value in held.items():
        if "." in key:
            continue  # no path leads to it
        inner = f"{path}.{key}"
        if inner not in metadata:
            found.append((tag_key(inner), value))
        if type(value) not in _FLAT and isinstance(value, Mapping):
            _add_nested(found, inner, value, metadata)


def tags_of(metadata: Mapping[str, Any]) -> str | None:
    """Write the scalars of metadata as one text, a line each; equal scalars have equal tags.

    So a filter by equality parses no JSON. None if there are more than 256.
    """
    tags: list[str] = []
    for key, value in indexed_values(metadata):
        if type(value) is str or type(value) is int:
            tags.append(f"{key}={value:x}" if type(value) is int else tag_of(key, value))
            continue
        if value is None:
            continue
        values = value if isinstance(value, list | tuple) else (value,)
        tags += [tag_of(key, one) for one in values if isinstance(one, _SCALARS)] or [f"{key}="]
        if len(tags) > _MAX_TAGS:
            return None
    return "\n".join(("", *tags, "")) if tags else ""


def tag_of(key: str, value: Scalar) -> str:
    """Write a value as a tag; a long text as its hash.

    Args:
        key: as `tag_key` names it.
    """
    if isinstance(value, str):
        if len(value) <= _MAX_TAG:
            return f"{key}={_encode_text(value)}"
        return f"{key}={hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    if isinstance(value, bool):
        return f"{key}={'true' if value else 'false'}"
    if isinstance(value, int) or value.is_integer():
        return f"{key}={int(value):x}"
    return f"{key}={value!r}"
