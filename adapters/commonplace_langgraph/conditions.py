"""The store's filters: a mapping from outside becomes a function of an item's value, or an error.

Keys are AND-ed and literal. `{"a": 1}` equals, `{"a": {"b": 1}}` is part of, `{"a": {"$gt": 1}}`
compares; besides the framework's `$eq $ne $gt $gte $lt $lte` there are `$in`, `$nin` and `$exists`,
and at the top `$or` with a list of filters and `$threshold` for the least score of a query.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from commonplace import InvalidFilterError

from .lifting import narrowed

Judge = Callable[[Any], bool]

_DEPTH = 32
_MOST = 12
_MISSING = object()


class _Refused(InvalidFilterError):
    """A filter that this language does not have; also a ValueError, as in every other store."""

    def __init__(self, part: object, reason: str) -> None:
        self.part = part
        ValueError.__init__(
            self,
            f"The filter part {part!r:.80} {reason}. There are {{'field': value}}, $eq $ne $gt "
            "$gte $lt $lte $in $nin $exists under a field, and $or and $threshold beside fields.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A checked filter.

    Attributes:
        matches: judges a value; None lets all through.
        threshold: the least score of a query; None for the store's own.
        where: a filter of the memory, at least as wide.
    """

    matches: Judge | None = None
    threshold: float | None = None
    where: Mapping[str, Any] | None = None


def wanted(given: Mapping[str, Any] | None) -> Wanted:
    """Check a filter.

    Raises:
        InvalidFilterError: it has an unknown operator, or a value that no JSON has.
    """
    if not given:
        return Wanted()
    if not isinstance(given, Mapping):
        raise _Refused(given, "is no mapping")
    plain = {key: one for key, one in given.items() if key != "$threshold"}
    threshold = given.get("$threshold")
    if threshold is not None and not (_is_number(threshold) and 0 <= threshold <= 1):
        raise _Refused({"$threshold": threshold}, "is not in 0..1")
    narrow = [(key, narrowed(key, one)) for key, one in plain.items()]
    where = {key: one for key, one in narrow if one is not None}
    return Wanted(
        matches=_all(plain, 0) if plain else None,
        threshold=threshold,
        where={"OR": [dict([*where.items()][:_MOST]), {"spill": True}]} if where else None,
    )


def _all(given: Mapping[str, Any], depth: int) -> Judge:
    judges = [_entry(key, one, depth) for key, one in given.items()]
    return lambda value: isinstance(value, Mapping) and all(judge(value) for judge in judges)


def _entry(key: object, given: Any, depth: int) -> Judge:
    if key == "$or":
        is_list = isinstance(given, list | tuple) and bool(given) and depth <= _DEPTH
        if not is_list or not all(isinstance(one, Mapping) for one in given):
            raise _Refused({"$or": given}, "is no list of filters")
        judges = [_all(one, depth + 1) for one in given]
        return lambda value: any(judge(value) for judge in judges)
    if not isinstance(key, str) or key.startswith("$"):
        raise _Refused(key, "is an operator where a field should stand")
    judge = _judge(given, depth)
    return lambda value: judge(value.get(key, _MISSING))


def _judge(given: Any, depth: int) -> Judge:
    if depth > _DEPTH:
        raise _Refused("…", f"is nested deeper than {_DEPTH}")
    if isinstance(given, Mapping):
        if any(isinstance(key, str) and key.startswith("$") for key in given):
            judges = [_operator(key, one, depth) for key, one in given.items()]
            return lambda held: all(judge(held) for judge in judges)
        return _all(given, depth + 1)
    if isinstance(given, list | tuple):
        each = [_judge(one, depth + 1) for one in given]
        return lambda held: (
            isinstance(held, list)
            and len(held) == len(each)
            and all(judge(one) for judge, one in zip(each, held, strict=True))
        )
    given = _plain(given)
    if given is None:
        return lambda held: held is None or held is _MISSING
    return lambda held: held == given and isinstance(held, bool) == isinstance(given, bool)


def _operator(name: object, given: Any, depth: int) -> Judge:
    if name in ("$eq", "$ne"):
        same = _judge(given, depth + 1)
        return same if name == "$eq" else lambda held: not same(held)
    if name in ("$in", "$nin"):
        if not isinstance(given, list | tuple | set | frozenset):
            raise _Refused({name: given}, "is no list")
        judges = [_judge(one, depth + 1) for one in given]
        return lambda held: any(judge(held) for judge in judges) == (name == "$in")
    if name == "$exists":
        return lambda held: (held is not _MISSING) == bool(given)
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise _Refused({name: given}, "has an unknown operator")
    limit = _plain(given)
    return lambda held: _compares(str(name), held, limit)


def _compares(name: str, held: Any, limit: Any) -> bool:
    if isinstance(held, bool) or isinstance(limit, bool):
        return False
    if isinstance(held, str) and isinstance(limit, str):
        held, limit = _ordered(held, limit)
    else:  # a number that came as text is one beside a number
        held, limit = _number(held), _number(limit)
        if held is None or limit is None:
            return False
    if name in ("$gt", "$gte"):
        return bool(held > limit or (name == "$gte" and held == limit))
    return bool(held < limit or (name == "$lte" and held == limit))


def _ordered(held: str, limit: str) -> tuple[Any, Any]:
    try:
        moments = [datetime.fromisoformat(one) for one in (held, limit)]
    except ValueError:
        return held, limit
    first, second = (one if one.tzinfo else one.replace(tzinfo=UTC) for one in moments)
    return first, second


def _number(value: object) -> float | int | None:
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _Refused(value, "is no JSON value")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
