"""mem0's filter language, compiled to the core's, with one meaning for `search` and `get_all`.

- `{"k": v}` equals, `{"k": [..]}` is one of, several operators on a key are AND-ed.
- `ne` and `nin` also match what lacks the key, as `NOT` does.
- `{"k": "*"}` has the key, `{"k": None}` lacks it or has null.
- `contains` finds a part of the text, `icontains` ignores case.
- `user_id`, `agent_id` and `run_id` inside the tree can only narrow the scope.
- `$and`, `$or` and `$not` are `AND`, `OR` and `NOT`; any of them with an empty list lets everything
  through.
- any other key is one of metadata, or a path to a nested one, `a.b`.

What is not in the language raises a `ValidationError`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace import Scope
from commonplace.agents import short_repr

from .convert import parse_time, promoted_key, stored_key, to_json
from .exceptions import ValidationError
from .scope_ids import IDS, clean_id, to_ids

CompiledFilter = Mapping[str, Any] | bool
RANGES = ("gt", "gte", "lt", "lte")
OPERATORS = ("eq", "ne", "in", "nin", *RANGES, "contains", "icontains")
_COMBINE = {"$and": "AND", "$or": "OR", "$not": "NOT", "AND": "AND", "OR": "OR", "NOT": "NOT"}
_TIMES = ("created_at", "updated_at")
_IMPOSSIBLE = "\ufdd0 no such value"


def compile_filter(given: Mapping[str, Any] | None, scope: Scope) -> CompiledFilter:
    """Compile a filter for records of a scope; True lets everything through, False nothing."""
    if given is None:
        return True
    if not isinstance(given, Mapping):
        raise ValidationError.of("filters", given, "must be a mapping. Give {'key': value}.")
    try:
        return _all([_entry(key, value, to_ids(scope)) for key, value in given.items()])
    except RecursionError:
        reason = "is nested too deep. Put several keys in one filter."
        raise ValidationError.of("filters", given, reason) from None


def _entry(key: Any, value: Any, ids: Mapping[str, str]) -> CompiledFilter:
    if not isinstance(key, str):
        raise ValidationError(f"The filter key {short_repr(key)} must be a string.")
    if key in _COMBINE:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ValidationError.of(key, value, "must be a list of filters.")
        if not value:
            return True
        parts = []
        for part in value:
            if not isinstance(part, Mapping) or not part:
                raise ValidationError(f"{short_repr(part)} in {key} must be a filter with a key.")
            parts.append(_all([_entry(name, given, ids) for name, given in part.items()]))
        return {"AND": _all, "OR": _any, "NOT": _none}[_COMBINE[key]](parts)
    if isinstance(value, Mapping):
        if not value:
            raise ValidationError(f"The filter on {short_repr(key)} has no operator.")
        return _all([_condition(key, name, given, ids) for name, given in value.items()])
    if value == "*":
        return _exists(key, ids)
    many = isinstance(value, list | tuple | set | frozenset)
    return _condition(key, "in" if many else "eq", value, ids)


def _condition(key: str, operator: Any, value: Any, ids: Mapping[str, str]) -> CompiledFilter:
    if operator not in OPERATORS:
        known = ", ".join(OPERATORS)
        raise ValidationError(
            f"Unsupported filter operator: {short_repr(operator)} on {short_repr(key)}. "
            f"Use {known}."
        )
    if operator in ("ne", "nin"):
        return _none([_condition(key, "eq" if operator == "ne" else "in", value, ids)])
    if operator == "in":
        if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
            raise ValidationError(
                f"'in' on {short_repr(key)} needs a list of values, not {short_repr(value)}."
            )
        return _any([_condition(key, "eq", item, ids) for item in value])
    if value is None:
        if operator != "eq":
            raise ValidationError(f"{operator!r} on {short_repr(key)} cannot compare with None.")
        return _none([_exists(key, ids)])
    if key in IDS:
        return _id_condition(key, operator, value, ids)
    if isinstance(value, Mapping | list | tuple):
        raise ValidationError(
            f"{operator!r} on {short_repr(key)} cannot compare with {short_repr(value)}."
        )
    if key in _TIMES:
        return _time_condition(key, operator, value)
    return {_field(key): {operator: to_json(value)}}


def _id_condition(key: str, operator: str, value: Any, ids: Mapping[str, str]) -> CompiledFilter:
    if operator != "eq":
        raise ValidationError(f"{key!r} is compared whole. Use 'eq', 'ne', 'in' or 'nin'.")
    wanted = clean_id(key, value)
    # Every record of a scope has the scope's ids; a user's records are never of another user.
    if key in ids or key == "user_id":
        return ids.get(key) == wanted
    return {promoted_key(key): {"eq": wanted}}


def _time_condition(key: str, operator: str, value: Any) -> CompiledFilter:
    time = parse_time(value).isoformat()
    written = {key: {operator: time}}
    if key != "created_at":
        return written
    # A time that the caller gave a memory counts instead of the time it was written.
    given = promoted_key(key)
    return _any([{given: {operator: time}}, _all([written, _none([_has(given)])])])


def _exists(key: str, ids: Mapping[str, str]) -> CompiledFilter:
    if key in _TIMES or key in ids:
        return True
    if key == "user_id":
        return False
    return _has(promoted_key(key) if key in IDS else _field(key))


def _has(field: str) -> CompiledFilter:
    return {field: {"ne": _IMPOSSIBLE}}


def _field(key: str) -> str:
    return f"metadata.{stored_key(key)}"


def _all(parts: Sequence[CompiledFilter]) -> CompiledFilter:
    return _combined("AND", parts, decisive=False)


def _any(parts: Sequence[CompiledFilter]) -> CompiledFilter:
    return _combined("OR", parts, decisive=True)


def _none(parts: Sequence[CompiledFilter]) -> CompiledFilter:
    found = _any(parts)
    return (not found) if isinstance(found, bool) else {"NOT": [found]}


def _combined(combine: str, parts: Sequence[CompiledFilter], *, decisive: bool) -> CompiledFilter:
    if any(part is decisive for part in parts):
        return decisive
    rest = [part for part in parts if not isinstance(part, bool)]
    if not rest:
        return not decisive
    return rest[0] if len(rest) == 1 else {combine: rest}
