"""Records as payloads of a vector index, filters over them, and checked vectors.

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
from typing import Any

import numpy as np

from ...errors import InvalidVectorError
from ...filters import FIELDS, FOLDERS, TIMES, Filter, Group, Predicate, Where, field_value
from ...model import Record, Scope
from ...ports.stores import Hit
from . import rows

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_IDS = ("user_id", "agent_id", "session_id")
_PLAIN = ("id", "text", "kind", "role", "name", "origin", "trust", "position", "version")
_TRAITS = ("importance", "pinned", "situation", "outcome", "votes")
_DATES = ("created_at", "updated_at", "occurred_at", "valid_to", "expires_at")


def payload_of(record: Record, words: int) -> dict[str, Any]:
    """Write a record of so many words, and what it is found by, as a payload."""
    scope = record.scope
    keys = _keys(scope)
    under = record.metadata.get(FOLDERS) or ()
    folders = [under] if isinstance(under, str) else under
    within = [_inside(key, one) for key in keys for one in folders if isinstance(one, str)]
    until = min((one for one in (record.expires_at, record.valid_to) if one), default=None)
    payload: dict[str, Any] = {"scopes": keys, "version": record.version}
    payload |= {"live" if until is None else "passing": [*keys, *within]}
    payload |= {"user_id": scope.user_id} if scope.user_id else {}
    payload |= {"turn": record.turn} if record.turn else {}
    if until:
        payload["until"] = until.timestamp()
    fields = {name: field_value(record, name) for name in {*record.metadata, *FIELDS}}
    lists = {name: one if isinstance(one, list | tuple) else [one] for name, one in fields.items()}
    payload["tags"] = [
        tag for key, held in lists.items() if key not in TIMES for tag in tags_of(key, held)
    ]
    payload["numbers"] = {
        key: numbers
        for key, held in lists.items()
        if (numbers := [one for one in held if type(one) in (int, float)])
    }
    # The engine may round a number; what is given back is read from a text of our own.
    payload["row"] = _ENCODE(
        [getattr(record, name) for name in _PLAIN]
        + [rows.to_micros(getattr(record, name)) for name in _DATES]
        + [getattr(scope, name) for name in _IDS]
        + [dict(record.metadata), words, list(record.conflicts)]
        + [getattr(record, name) for name in _TRAITS]
    )
    return payload


def focus(scope: Scope, where: Filter | None) -> tuple[str, Filter | None]:
    """Name what `live` and `passing` hold for a question, and what is left of its filter.

    A folder and the scope around it have a name of their own: two conditions that each fit most
    records take twice as long as one.
    """
    parts = where.parts if isinstance(where, Group) and where.combine == "AND" else (where,)
    for one in parts:
        if isinstance(one, Where) and one.field == FOLDERS and one.operator == "eq":
            (folder,) = one.values
            rest = tuple(other for other in parts if other is not one and other is not None)
            if isinstance(folder, str):
                return _inside(scope.key, folder), Group("AND", rest) if rest else None
    return scope.key, where


def tags_of(field: str, values: Collection[Any]) -> list[str]:
    """Name each scalar of a field so that equal ones, and only they, have the same name."""
    named = []
    for value in values:
        if isinstance(value, bool):
            named.append(f"{field}=b{value}")
        elif isinstance(value, int | float) and abs(value) <= 2**53:
            named.append(f"{field}=n{float(value) + 0.0!r}")
        elif isinstance(value, str):
            digest = hashlib.sha256(value.encode()).hexdigest() if len(value) > 64 else value
            named.append(f"{field}=s{len(value)}:{digest}")
    return named


@lru_cache(4096)
def read(row: str) -> tuple[Record, int]:
    """Read a record and its length in words from the text in its payload."""
    held = json.loads(row)
    plain = dict(zip(_PLAIN, held, strict=False))
    record = Record(
        **plain,
        created_at=rows.at_micros(held[9]),
        updated_at=rows.at_micros(held[10]),
        occurred_at=rows.at_micros(held[11]),
        valid_to=rows.from_micros(held[12]),
        expires_at=rows.from_micros(held[13]),
        scope=rows.to_scope(*held[14:17]),
        metadata=held[17],
        conflicts=tuple(held[19]),
        **dict(zip(_TRAITS, held[20:], strict=True)),
    )
    return record, held[18]


def to_hits(
    found: Mapping[str, tuple[Record, int]],
    cosine: Mapping[str, float],
    lexical: Mapping[str, float],
) -> list[Hit]:
    """Join both scores of every record that was read; best dense first, ties by id.

    One that shares no term with the question has no lexical score: 0.
    """
    hits = [
        Hit(record=record, dense=cosine[key], lexical=lexical.get(key, 0.0), words=words)
        for key, (record, words) in found.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))


def uuids(ids: Collection[str]) -> list[str]:
    """Leave out what is no id of a record: an engine would refuse the whole request."""
    return [one for one in dict.fromkeys(ids) if _is_uuid(one)]


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def _inside(key: str, folder: str) -> str:
    name = f"{key}:{folder}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(name).hexdigest()[:32]


@lru_cache(4096)
def _keys(scope: Scope) -> list[str]:
    return [one.key for one in scope.covering()]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine says what `payload_of` makes findable.

    Attributes:
        filter: makes a condition of lists of others: `must`, `should`, `must_not`.
        equals: asks that a field is one of some texts.
        between: asks that a number of this field is in a range, `gte` to `lte`; None if it cannot.
    """

    filter: Callable[..., Any]
    equals: Callable[..., Any]
    between: Callable[[str, float | None, float | None], Any]

    def translate(self, part: Filter) -> Any:
        """Say a filter: a condition at least as wide, None for all."""
        return self._say(part)[0]

    def _say(self, part: Filter) -> tuple[Any, bool]:
        """Say a part, and whether that is exact."""
        if isinstance(part, Where):
            return self._say_one(part)
        if isinstance(part, Predicate):
            return None, False
        said = [self._say(one) for one in part.parts]
        exact = all(one for _, one in said)
        if part.combine == "NOT":
            sure = [condition for condition, one in said if one]
            return (self.filter(must_not=sure) if sure else None), exact
        known = [condition for condition, _ in said if condition is not None]
        if part.combine == "AND":
            return (self.filter(must=known) if known else None), exact
        return (self.filter(should=known) if len(known) == len(said) else None), exact

    def _say_one(self, part: Where) -> tuple[Any, bool]:
        tags = [] if part.field in TIMES else tags_of(part.field, part.values)
        if part.operator in ("eq", "in", "ne", "nin"):
            if len(tags) < len(part.values):
                return None, False
            same = self.equals("tags", *tags)
            if part.operator in ("eq", "in"):
                return same, True
            return self.filter(must_not=[same]), False
        value = part.values[0]
        if isinstance(value, str) or not abs(value) <= 2**53:
            return None, False
        # An engine's numbers may differ in the last digit.
        slack = 0.001 + abs(value) * 1e-12
        low = value - slack if part.operator in ("gt", "gte") else None
        high = value + slack if part.operator in ("lt", "lte") else None
        return self.between(part.field, low, high), False


def checked(vectors: Sequence[Sequence[float]], dimensions: int) -> list[list[float]]:
    """Bring vectors to single precision, all or none.

    Raises:
        InvalidVectorError: one is not finite, is zero or has not `dimensions` numbers.
    """
    for vector in vectors:
        if len(vector) != dimensions:
            raise InvalidVectorError(
                reason="has the wrong length", expected=dimensions, got=len(vector)
            )
    with np.errstate(over="ignore"):
        table = np.asarray(vectors, np.float32).reshape(-1, dimensions)
    sizes = np.linalg.norm(table.astype(np.float64), axis=1)
    for bad, reason in ((~np.isfinite(sizes), "is not finite"), (sizes < 1e-6, "is zero")):
        if bad.any():
            raise InvalidVectorError(reason=reason, expected=dimensions, got=dimensions)
    return table.tolist()
