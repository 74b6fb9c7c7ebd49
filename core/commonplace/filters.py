"""Filter language: its parser for mappings from outside, and the typed tree that engines compile.

`{"city": "Lyon"}` equals, `{"city": ["Lyon", "Nice"]}` is one of, `{"year": {"gte": 2020}}`
compares, `{"AND" | "OR" | "NOT": [ {...}, ... ]}` combines; keys of one mapping are AND-ed.
A key is one of `FIELDS`, or any metadata key. Where a record has no such key, dots lead to nested
values: `{"a.b": 1}` finds `{"a": {"b": 1}}`. The prefix `metadata.` makes sure that the rest names
metadata, also what is called as a field, an id or an operator: `{"metadata.kind": "x"}`. Scope is
never part of a filter.

`{"namespace": ["memories", "alice"]}` finds what is in this namespace or below it, and
`{"namespace": []}` what is in any. At the top level or under `AND` it costs no more than a search
of the whole scope.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import contains, ge, gt, le, lt
from typing import Any, Literal, cast, get_args

from .errors import InvalidFilterError, InvalidRecordError
from .types import Record
from .validation import SCOPE_FIELDS, check_namespace, is_sound

Operator = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains"]
Scalar = str | int | float | bool

FIELDS = ("kind", "role", "name", "origin", "created_at", "updated_at", "occurred_at", "namespace")
TIMES = ("created_at", "updated_at", "occurred_at")
_RANGES = ("gt", "gte", "lt", "lte")
METADATA = "metadata."  # before a key of metadata
_NUMBERS = (int, float)
_MAX_CONDITIONS = 64
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on one field; `values` has one element except for `in` and `nin`.

    `field` is one of `FIELDS` but `namespace`, or a key of metadata, which may have the prefix
    `metadata.`.
    `ne` and `nin` do not match a record that lacks the field; times are seconds since 1970.
    Strings compare by code point, numbers by size; another type never matches.
    """

    field: str
    operator: Operator
    values: tuple[Scalar, ...]

    def matches(self, record: Record) -> bool:
        """Tell whether the record satisfies the condition."""
        stored = field_value(record, self.field)
        if stored is None:
            return False
        name = self.operator
        if name in _RANGES and not isinstance(stored, list | tuple):
            return _compares(name, stored, self.values[0])
        options = stored if isinstance(stored, list | tuple) else (stored,)
        if name == "eq" and type(self.values[0]) is str:
            return self.values[0] in options
        if name in ("ne", "nin"):
            return not any(_same(held, value) for held in options for value in self.values)
        return any(_compares(name, held, value) for held in options for value in self.values)


@dataclass(frozen=True, slots=True)
class Within:
    """A condition on the namespace: it is this one or below it; an empty one means any."""

    namespace: tuple[str, ...]

    def matches(self, record: Record) -> bool:
        """Tell whether the record satisfies the condition."""
        path = record.namespace
        return bool(path) and path[: len(self.namespace)] == self.namespace


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions combined: `AND` all, `OR` at least one, `NOT` none of them holds."""

    combine: Literal["AND", "OR", "NOT"]
    parts: "tuple[Filter, ...]"

    def matches(self, record: Record) -> bool:
        """Tell whether the record satisfies the combination."""
        if self.combine == "AND":
            return all(part.matches(record) for part in self.parts)
        is_any = any(part.matches(record) for part in self.parts)
        return is_any if self.combine == "OR" else not is_any


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition in the caller's code; an engine calls it with every candidate."""

    predicate: Callable[[Record], bool]

    def matches(self, record: Record) -> bool:
        """Tell whether the caller wants the record."""
        return bool(self.predicate(record))


Filter = Where | Within | Group | Predicate


def field_value(record: Record, field: str) -> Any:
    """Read what a filter key names; None when the record has no such value."""
    if field not in FIELDS:
        return metadata_value(record.metadata, metadata_key(field))
    value = getattr(record, field)
    return value.timestamp() if isinstance(value, datetime) else value


def metadata_key(field: str) -> str:
    """Remove the prefix that marks a key of metadata."""
    return field.removeprefix(METADATA)


def metadata_value(metadata: Mapping[str, Any], key: str) -> Any:
    """Read the value of a key, else that to which its dots lead; None if there is neither."""
    if key in metadata or "." not in key:
        return metadata.get(key)
    held: Any = metadata
    for part in key.split("."):
        if not isinstance(held, Mapping):
            return None
        held = held.get(part)
    return held


def required_namespace(where: Filter | None) -> tuple[str, ...] | None:
    """Find a namespace that everything which matches a filter is in; None if it names none."""
    if isinstance(where, Group) and where.combine == "AND":
        found = map(required_namespace, where.parts)
        return next((namespace for namespace in found if namespace), None)
    return (where.namespace or None) if isinstance(where, Within) else None


def _same(stored: object, value: Scalar) -> bool:
    return stored == value and isinstance(stored, bool) == isinstance(value, bool)


def _contains_folded(stored: str, value: str) -> bool:
    return value.casefold() in stored.casefold()


_COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "gt": gt, "gte": ge, "lt": lt, "lte": le, "contains": contains, "icontains": _contains_folded,
}  # fmt: skip


def _compares(name: Operator, stored: object, value: Scalar) -> bool:
    if name in ("eq", "in"):
        return _same(stored, value)
    kind = str if isinstance(value, str) else _NUMBERS
    if not isinstance(stored, kind) or isinstance(stored, bool):
        return False
    return _COMPARISONS[name](stored, value)


def parse_filter(
    given: Mapping[str, Any] | None, predicate: Callable[[Record], bool] | None = None
) -> Filter | None:
    """Parse a filter from outside; None when there is nothing to filter.

    Args:
        predicate: a further condition, in code; see `Predicate`.

    Raises:
        InvalidFilterError: an unknown operator, a key that is empty, a value of a wrong type, an
            empty list, more than 64 conditions, or nesting deeper than 8.
    """
    is_empty = given is None or given == {}
    parsed = None if is_empty else _group("AND", [given], [_MAX_CONDITIONS], 0)
    if predicate is None:
        return parsed
    if not callable(predicate):
        raise InvalidFilterError(part=predicate, reason="must be a function of a record")
    if parsed is None:
        return Predicate(predicate)
    parts = parsed.parts if isinstance(parsed, Group) and parsed.combine == "AND" else (parsed,)
    return Group("AND", (*parts, Predicate(predicate)))


def _mapping(given: object, budget: list[int], depth: int) -> Filter:
    if not isinstance(given, Mapping) or not given:
        raise InvalidFilterError(part=given, reason="must be a mapping with at least one key")
    parts = [_entry(key, value, budget, depth) for key, value in given.items()]
    return parts[0] if len(parts) == 1 else Group("AND", tuple(parts))


def _group(
    combine: Literal["AND", "OR", "NOT"], given: object, budget: list[int], depth: int
) -> Filter:
    if depth > _MAX_DEPTH:
        raise InvalidFilterError(
            part=combine, reason=f"must not be nested deeper than {_MAX_DEPTH}"
        )
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidFilterError(
            part={combine: given}, reason="must have a list of at least one filter"
        )
    parts = tuple(_mapping(part, budget, depth + 1) for part in given)
    return parts[0] if combine == "AND" and len(parts) == 1 else Group(combine, parts)


def _entry(key: object, value: object, budget: list[int], depth: int) -> Filter:
    if key in ("AND", "OR", "NOT"):
        return _group(key, value, budget, depth)
    if type(key) is not str or not metadata_key(key) or not is_sound(key):
        raise InvalidFilterError(part=key, reason="must be a key of metadata or of a record")
    if key in SCOPE_FIELDS:
        raise InvalidFilterError(
            part=key,
            reason="must be in the scope, not in the filter",
            hint=f"Write {METADATA + key!r} for metadata of this name.",
        )
    if key == "namespace":
        return _within(value, budget)
    if isinstance(value, Mapping):
        if not value:
            raise InvalidFilterError(part={key: value}, reason="must have an operator")
        parts = tuple(_where(key, op, operand, budget) for op, operand in value.items())
        return parts[0] if len(parts) == 1 else Group("AND", parts)
    operator = "in" if isinstance(value, list | tuple | set | frozenset) else "eq"
    return _where(key, operator, value, budget)


def _within(value: object, budget: list[int]) -> Within:
    _spend(budget, 1, "namespace")
    try:
        return Within(check_namespace("namespace", value))
    except InvalidRecordError:
        raise InvalidFilterError(
            part={"namespace": value},
            reason="must have a list of labels, outermost first",
            hint=f"Write {METADATA + 'namespace'!r} for metadata of this name.",
        ) from None


def _spend(budget: list[int], conditions: int, key: str) -> None:
    budget[0] -= conditions
    if budget[0] < 0:
        raise InvalidFilterError(part=key, reason=f"must have at most {_MAX_CONDITIONS} conditions")


def _where(key: str, operator: object, value: object, budget: list[int]) -> Where:
    if operator not in get_args(Operator):
        raise InvalidFilterError(part={key: {operator: value}}, reason="must have a known operator")
    many = operator in ("in", "nin")
    if many and (not isinstance(value, list | tuple | set | frozenset) or not value):
        raise InvalidFilterError(part={key: {operator: value}}, reason="must have a list of values")
    values = tuple(cast("Sequence[object]", value)) if many else (value,)
    _spend(budget, len(values), key)
    return Where(key, operator, tuple(_scalar(key, operator, given) for given in values))  # type: ignore[arg-type]  # it is known


def _scalar(key: str, operator: object, value: object) -> Scalar:
    part = {key: {operator: value}}
    if key in TIMES:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise InvalidFilterError(part=part, reason="must be an ISO date") from None
        if isinstance(value, datetime):
            if value.tzinfo is None:
                raise InvalidFilterError(part=part, reason="must be a time with a zone")
            value = value.timestamp()
    if type(value) not in (str, int, float, bool) or value != value:  # noqa: PLR0124 -- NaN
        raise InvalidFilterError(part=part, reason="must be a string, number or boolean")
    if type(value) is str and not is_sound(value):
        raise InvalidFilterError(part=part, reason="must not have a lone surrogate")
    if operator in ("contains", "icontains") and type(value) is not str:
        raise InvalidFilterError(part=part, reason="must have a string")
    if operator in _RANGES and type(value) is bool:
        raise InvalidFilterError(part=part, reason="must not compare booleans")
    return value  # type: ignore[return-value]  # a scalar by now
