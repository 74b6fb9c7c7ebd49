"""The filter language: what `parsing` makes of a mapping from outside, a small typed tree.

`{"city": "Lyon"}` equals, `{"city": ["Lyon", "Nice"]}` is one of, `{"year": {"gte": 2020}}`
compares, `{"AND" | "OR" | "NOT": [ {...}, ... ]}` combines; keys of one mapping are AND-ed.
Keys are metadata keys, or one of `FIELDS`. Scope is never part of a filter. Metadata under the key
`under`, a string or a list of them, says in which folders a record is; to ask for one with equals
costs no more than to ask for the whole scope.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .model import Record

Operator = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains"]
Scalar = str | int | float | bool

FIELDS = ("kind", "role", "name", "origin", "created_at", "updated_at", "occurred_at")
FOLDERS = "under"  # a metadata key: as quick to ask for as the scope, also where most records fit
TIMES = ("created_at", "updated_at", "occurred_at")


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on one field; `values` has one element except for `in` and `nin`.

    `ne` and `nin` do not match a record that lacks the field; times are seconds since 1970.
    Strings compare by code point, numbers by size; another type never matches.
    """

    field: str
    operator: Operator
    values: tuple[Scalar, ...]

    def matches(self, record: Record) -> bool:
        """Tell whether the record satisfies the condition."""
        held = field_value(record, self.field)
        if held is None:
            return False
        options = held if isinstance(held, list | tuple) else (held,)
        if self.operator == "eq" and type(self.values[0]) is str:
            return self.values[0] in options
        if self.operator in ("ne", "nin"):
            return not any(_same(one, value) for one in options for value in self.values)
        return any(_holds(self.operator, one, value) for one in options for value in self.values)


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions combined: `AND` all, `OR` at least one, `NOT` none of them holds."""

    combine: Literal["AND", "OR", "NOT"]
    parts: "tuple[Filter, ...]"

    def matches(self, record: Record) -> bool:
        """Tell whether the record satisfies the combination."""
        if self.combine == "AND":
            return all(part.matches(record) for part in self.parts)
        held = any(part.matches(record) for part in self.parts)
        return held if self.combine == "OR" else not held


@dataclass(frozen=True, slots=True)
class Test:
    """A condition that only the caller can judge; an engine asks it about every candidate."""

    judge: Callable[[Record], bool]

    def matches(self, record: Record) -> bool:
        """Tell whether the caller wants the record."""
        return bool(self.judge(record))


Filter = Where | Group | Test


def field_value(record: Record, field: str) -> Any:
    """Read what a filter key names; None when the record has no such value."""
    if field not in FIELDS:
        return record.metadata.get(field)
    value = getattr(record, field)
    return value.timestamp() if isinstance(value, datetime) else value


def _same(held: object, value: Scalar) -> bool:
    return held == value and isinstance(held, bool) == isinstance(value, bool)


def _holds(operator: Operator, held: object, value: Scalar) -> bool:
    if operator in ("eq", "in"):
        return _same(held, value)
    if isinstance(value, str):
        if not isinstance(held, str):
            return False
        if operator == "contains":
            return value in held
        if operator == "icontains":
            return value.casefold() in held.casefold()
    elif not isinstance(held, int | float) or isinstance(held, bool):
        return False
    return {
        "gt": held > value,  # type: ignore[operator]  # both strings or both numbers
        "gte": held >= value,  # type: ignore[operator]  # both strings or both numbers
        "lt": held < value,  # type: ignore[operator]  # both strings or both numbers
        "lte": held <= value,  # type: ignore[operator]  # both strings or both numbers
    }[operator]
