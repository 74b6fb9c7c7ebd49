"""Records as payloads of a vector index, and filters over them.

The payload has the fields that a record is found by, beside a text that gives it back exactly. It
carries the keys of all scopes that cover the record, once for each state in which it may be
searched: one condition per query is several times faster than three.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ...filters import (
    FIELDS,
    TIMES,
    Filter,
    Group,
    Predicate,
    Where,
    Within,
    metadata_key,
    required_namespace,
)
from ...ports.stores import Hit
from ...types import Kind, Origin, Record, Role, Scope
from . import rows
from .rows import indexed_values, tag_key

_MOST_CACHED = 64 * 1024  # characters of a row that is kept in memory
_MOST = 2.0**64  # above every whole number of metadata
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class PayloadRow(NamedTuple):
    """A record as the values of a JSON list in its payload; times in microseconds since 1970."""

    id: str
    text: str
    kind: Kind
    role: Role | None
    name: str | None
    origin: Origin
    trust: float
    position: int | None
    version: int
    created_at: int
    updated_at: int
    occurred_at: int
    valid_to: int | None
    expires_at: int | None
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    metadata: dict[str, Any]
    namespace: Sequence[str]
    words: int
    conflicts: Sequence[str]
    importance: float
    pinned: bool
    situation: str | None
    outcome: str | None
    votes: int
    times_told: int
    last_told_at: int | None
    sources: Sequence[str] = ()


def payload_of(record: Record, words: int) -> dict[str, Any]:
    """Convert a record, `words` long, to a payload with the fields that it is found by."""
    scope = record.scope
    keys = _scope_keys(scope)
    paths = [record.namespace[:end] for end in range(1, len(record.namespace) + 1)]
    inner_keys = [_namespace_key(key, path) for key in keys for path in paths]
    until = min(filter(None, (record.expires_at, record.valid_to)), default=None)
    payload: dict[str, Any] = {"scopes": keys, "version": record.version}
    payload |= {"live" if until is None else "passing": [*keys, *inner_keys]}
    payload |= {"user_id": scope.user_id} if scope.user_id else {}
    payload |= {"turn": record.turn} if record.turn else {}
    if until:
        payload["until"] = until.timestamp()
    fields = {**dict(indexed_values(record.metadata))}
    fields |= {name: getattr(record, name) for name in FIELDS}
    fields["namespace"] = [_ENCODE(path) for path in ((), *paths)] if paths else []
    fields |= {name: at and at.timestamp() for name in TIMES if (at := fields[name]) is not None}
    lists = {
        name: held if isinstance(held, list | tuple) else [held] for name, held in fields.items()
    }
    payload["tags"] = [
        tag for key, held in lists.items() if key not in TIMES for tag in tags_of(key, held)
    ]
    payload["numbers"] = {
        key: numbers
        for key, held in lists.items()
        if (numbers := [number for number in held if type(number) in (int, float)])
    }
    # The engine may round a number, so a record is read back from this text.
    payload["row"] = _ENCODE(_to_row(record, words))
    return payload


def focus(scope: Scope, where: Filter | None) -> tuple[str, Filter | None]:
    """Choose the key of a query for `live` and `passing`, and return the rest of its filter.

    A namespace within a scope has a key of its own: two conditions that each fit most records take
    twice as long as one.
    """
    path = required_namespace(where)
    if path is None:
        return scope.key, where
    parts = where.parts if isinstance(where, Group) else (where,)
    rest = tuple(part for part in parts if part is not None and part != Within(path))
    return _namespace_key(scope.key, path), Group("AND", rest) if rest else None


def field_name(field: str) -> str:
    """Name a field of a filter as it is in a payload."""
    return field if field in FIELDS else tag_key(metadata_key(field))


def tags_of(field: str, values: Collection[Any]) -> list[str]:
    """Convert each scalar of a field to a tag; equal scalars, and only they, have equal tags."""
    tags = []
    for value in values:
        if isinstance(value, bool):
            tags.append(f"{field}=b{value}")
        elif isinstance(value, int | float) and abs(value) <= 2**53:
            tags.append(f"{field}=n{float(value) + 0.0!r}")
        elif isinstance(value, int | float) and abs(value) <= _MOST:
            tags.append(f"{field}=i{int(value)}")  # a float that large is whole
        elif isinstance(value, str):
            digest = hashlib.sha256(value.encode()).hexdigest() if len(value) > 64 else value
            tags.append(f"{field}=s{len(value)}:{digest}")
    return tags


def read_row(text: str) -> tuple[Record, int]:
    """Read a record and its length in words from the text in its payload."""
    return _read_row(text) if len(text) > _MOST_CACHED else _read_row_once(text)


@lru_cache(4096)
def _read_row_once(text: str) -> tuple[Record, int]:
    return _read_row(text)


def _read_row(text: str) -> tuple[Record, int]:
    row = PayloadRow(*json.loads(text))
    plain: dict[str, Any] = {name: getattr(row, name) for name in rows.PLAIN}
    times: dict[str, Any] = {name: rows.from_micros(getattr(row, name)) for name in rows.TIMES}
    record = Record(
        **plain,
        **times,
        scope=rows.to_scope(row.user_id, row.agent_id, row.session_id),
        metadata=row.metadata,
        namespace=tuple(row.namespace),
        conflicts=tuple(row.conflicts),
        sources=tuple(row.sources),
    )
    return record, row.words


def _to_row(record: Record, words: int) -> PayloadRow:
    return PayloadRow(
        **rows.plain_fields(record),
        metadata=dict(record.metadata),
        namespace=record.namespace,
        words=words,
        conflicts=record.conflicts,
        sources=record.sources,
    )


def to_hits(
    found: Mapping[str, tuple[Record, int]],
    dense: Mapping[str, float],
    lexical: Mapping[str, float],
    late: Mapping[str, tuple[float, ...]],
    terms: Mapping[str, tuple[float, ...]],
    vectors: Mapping[str, Sequence[float]],
    passages: Mapping[str, tuple[float, ...]],
) -> list[Hit]:
    """Join the scores of every record that was read; best dense first, ties by id.

    One that shares no term with the query has the lexical score 0.
    """
    hits = [
        Hit(
            record=record,
            dense=dense[key],
            lexical=lexical.get(key, 0.0),
            words=words,
            late=late.get(key, ()),
            terms=terms.get(key, ()),
            vector=vectors[key],
            passages=passages.get(key, ()),
        )
        for key, (record, words) in found.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))


def uuids(ids: Collection[str]) -> list[str]:
    """Choose the valid record ids: for an invalid one an engine would refuse the request."""
    return [record_id for record_id in dict.fromkeys(ids) if _is_uuid(record_id)]


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def _namespace_key(key: str, path: tuple[str, ...]) -> str:
    return hashlib.sha256(_ENCODE((key, *path)).encode()).hexdigest()[:32]


@lru_cache(4096)
def _scope_keys(scope: Scope) -> list[str]:
    return [covering.key for covering in scope.covering()]


@dataclass(frozen=True, slots=True)
class FilterCompiler:
    """Compiler of filters to the conditions of an engine, over the fields of `payload_of`.

    Attributes:
        filter: combines lists of conditions: `must`, `should`, `must_not`.
        equals: condition that a field is one of some texts.
        between: condition that a number of this field is in a range, `gte` to `lte`; None if the
            engine has none.
    """

    filter: Callable[..., Any]
    equals: Callable[..., Any]
    between: Callable[[str, float | None, float | None], Any]

    def compile(self, part: Filter) -> Any:
        """Compile a filter to a condition that is at least as wide; None for no condition."""
        return self._compile(part)[0]

    def _compile(self, part: Filter) -> tuple[Any, bool]:
        """Compile a part, and return whether the condition is exact."""
        if isinstance(part, Where):
            return self._compile_where(part)
        if isinstance(part, Within):
            return self.equals("tags", *tags_of("namespace", [_ENCODE(part.namespace)])), True
        if isinstance(part, Predicate):
            return None, False
        compiled = [self._compile(inner) for inner in part.parts]
        exact = all(is_exact for _, is_exact in compiled)
        if part.combine == "NOT":
            sure = [condition for condition, is_exact in compiled if is_exact]
            return (self.filter(must_not=sure) if sure else None), exact
        known = [condition for condition, _ in compiled if condition is not None]
        if part.combine == "AND":
            return (self.filter(must=known) if known else None), exact
        return (self.filter(should=known) if len(known) == len(compiled) else None), exact

    def _compile_where(self, part: Where) -> tuple[Any, bool]:
        field = field_name(part.field)
        tags = [] if field in TIMES else tags_of(field, part.values)
        if part.operator in ("eq", "in", "ne", "nin"):
            if len(tags) < len(part.values):
                return None, False
            same = self.equals("tags", *tags)
            if part.operator in ("eq", "in"):
                return same, True
            return self.filter(must_not=[same]), False
        value = part.values[0]
        if isinstance(value, str) or not abs(value) <= _MOST:
            return None, False
        # The numbers of an engine may differ in the last digit.
        slack = 0.001 + abs(value) * 1e-12
        low = value - slack if part.operator in ("gt", "gte") else None
        high = value + slack if part.operator in ("lt", "lte") else None
        return self.between(field, low, high), False
