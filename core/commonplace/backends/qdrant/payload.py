"""Records as payloads of a collection.

The payload has the fields that a record is found by, beside a text that gives it back exactly. It
carries the keys of all scopes that cover the record, once for each state in which it may be
searched: one condition per query is several times faster than three.
"""

import hashlib
import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...filters import FIELDS, TIMES, Filter, Group, Within, required_namespace
from ...types import Record, Scope
from ..shared import rows

# A record as a list in its payload; times in microseconds since 1970.
_ROW = (
    "id", "text", "kind", "role", "name", "origin", "trust", "position", "version", "created_at",
    "updated_at", "occurred_at", "valid_to", "expires_at", "user_id", "agent_id", "session_id",
    "metadata", "namespace", "words", "conflicts", "importance", "pinned", "situation", "outcome",
    "votes", "times_told", "last_told_at", "sources",
)  # fmt: skip
_IDS = ("user_id", "agent_id", "session_id")
_MICROS = ("created_at", "updated_at", "occurred_at", "valid_to", "expires_at", "last_told_at")
_TUPLES = ("namespace", "conflicts", "sources")
TOKENS = "tokens"  # the field of the token vectors
_MOST_CACHED = 64 * 1024  # characters of a row that is kept in memory
MOST_NUMBER = 2.0**64  # above every whole number of metadata
encode = json.JSONEncoder(ensure_ascii=False).encode


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
    fields = {**dict(rows.indexed_values(record.metadata))}
    fields |= {name: getattr(record, name) for name in FIELDS}
    fields["namespace"] = [encode(path) for path in ((), *paths)] if paths else []
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
    payload["row"] = encode(_to_row(record, words))
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


def tags_of(field: str, values: Collection[Any]) -> list[str]:
    """Convert each scalar of a field to a tag; equal scalars, and only they, have equal tags."""
    tags = []
    for value in values:
        if isinstance(value, bool):
            tags.append(f"{field}=b{value}")
        elif isinstance(value, int | float) and abs(value) <= 2**53:
            tags.append(f"{field}=n{float(value) + 0.0!r}")
        elif isinstance(value, int | float) and abs(value) <= MOST_NUMBER:
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
    held = dict(zip(_ROW, json.loads(text), strict=False))  # a former pre-release had no sources
    words = held.pop("words")
    scope = rows.to_scope(*(held.pop(name) for name in _IDS))
    held |= {name: rows.from_micros(held[name]) for name in _MICROS}
    held |= {name: tuple(held.get(name, ())) for name in _TUPLES}
    return Record(**held, scope=scope), words


def _to_row(record: Record, words: int) -> list[Any]:
    held = {"words": words, "metadata": dict(record.metadata)}
    held |= {name: getattr(record.scope, name) for name in _IDS}
    held |= {name: rows.to_micros(getattr(record, name)) for name in _MICROS}
    return [held[name] if name in held else getattr(record, name) for name in _ROW]


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
    return hashlib.sha256(encode((key, *path)).encode()).hexdigest()[:32]


@lru_cache(4096)
def _scope_keys(scope: Scope) -> list[str]:
    return [covering.key for covering in scope.covering()]


def tokens_of(passages: Sequence[bytes], dimensions: int) -> dict[str, Any]:
    """Convert the token vectors of each passage to a field of a payload; none if there are none.

    Raises:
        InvalidVectorError: the last one of a passage is shorter.
    """
    if not dimensions or not any(passages):
        return {}
    texts = [b64encode(rows.to_tokens(raw, dimensions).tobytes()).decode() for raw in passages]
    return {TOKENS: texts if len(texts) > 1 else texts[0]}


def read_tokens(payload: Mapping[str, Any] | None) -> list[bytes]:
    """Read the token vectors of each passage in a payload; empty ones if there are none."""
    held = (payload or {}).get(TOKENS, "")
    return [b64decode(text) for text in ([held] if isinstance(held, str) else held)]
