"""mem0's filter language, compiled to the core's: one meaning for search and get_all alike.

- `{"k": v}` equals, `{"k": [..]}` is one of, several operators on a key are AND-ed.
- `ne` and `nin` also match what lacks the key, exactly as `NOT` does.
- `{"k": "*"}` has the key, `{"k": None}` lacks it or has null.
- `contains` is a part of the text, `icontains` whatever the case.
- `user_id`, `agent_id` and `run_id` inside the tree can only narrow the scope.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace import Scope

from .exceptions import ValidationError
from .metadata import PROMOTED, key_of, own, plain, to_moment
from .scopes import IDS, clean_id, to_ids

Compiled = Mapping[str, Any] | bool
RANGES = ("gt", "gte", "lt", "lte")
OPERATORS = ("eq", "ne", "in", "nin", *RANGES, "contains", "icontains")
_COMBINE = ("AND", "OR", "NOT")
_TIMES = ("created_at", "updated_at")
_NOBODY = "\ufdd0 no such value"


def compile_filter(given: Mapping[str, Any] | None, scope: Scope) -> Compiled:
    """Compile a filter for records of a scope; True lets everything through, False nothing.

    Raises:
        ValidationError: an unknown operator, a combination without parts, a value of a wrong type.
    """
    if given is None:
        return True
    if not isinstance(given, Mapping):
        raise ValidationError(f"filters={given!r} is no mapping. Give {{'key': value}}.")
    return _all([_entry(key, value, to_ids(scope)) for key, value in given.items()])


def _entry(key: Any, value: Any, ids: Mapping[str, str]) -> Compiled:
    if not isinstance(key, str):
        raise ValidationError(f"The filter key {key!r} is no string. Use strings as keys.")
    if key in _COMBINE:
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            raise ValidationError(f"{key}={value!r} needs a list of at least one filter.")
        parts = []
        for part in value:
            if not isinstance(part, Mapping) or not part:
                raise ValidationError(f"{key} holds {part!r}, which is no filter with a key.")
            parts.append(_all([_entry(name, one, ids) for name, one in part.items()]))
        return {"AND": _all, "OR": _any, "NOT": _none}[key](parts)
    if isinstance(value, Mapping):
        if not value:
            raise ValidationError(f"The filter on {key!r} has no operator.")
        return _all([_condition(key, name, one, ids) for name, one in value.items()])
    if value == "*":
        return _has(key, ids)
    many = isinstance(value, list | tuple | set | frozenset)
    return _condition(key, "in" if many else "eq", value, ids)


def _condition(key: str, operator: Any, value: Any, ids: Mapping[str, str]) -> Compiled:
    if operator not in OPERATORS:
        known = ", ".join(OPERATORS)
        raise ValidationError(f"Unsupported filter operator: {operator!r} on {key!r}. Use {known}.")
    if operator in ("ne", "nin"):
        return _none([_condition(key, "eq" if operator == "ne" else "in", value, ids)])
    if operator == "in":
        if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
            raise ValidationError(f"'in' on {key!r} needs a list of values, not {value!r}.")
        return _any([_condition(key, "eq", one, ids) for one in value])
    if value is None:
        if operator != "eq":
            raise ValidationError(f"{operator!r} on {key!r} cannot compare with None.")
        return _none([_has(key, ids)])
    if key in IDS:
        return _of_owner(key, operator, value, ids)
    if isinstance(value, Mapping | list | tuple):
        raise ValidationError(f"{operator!r} on {key!r} cannot compare with {value!r}.")
    if key in _TIMES:
        return _at(key, operator, value)
    return {_field(key): {operator: plain(value)}}


def _of_owner(key: str, operator: str, value: Any, ids: Mapping[str, str]) -> Compiled:
    if operator != "eq":
        raise ValidationError(f"{key!r} is compared whole. Use 'eq', 'ne', 'in' or 'nin'.")
    wanted = clean_id(key, value)
    # Every record of a scope has the scope's ids; a user's records are never of another user.
    if key in ids or key == "user_id":
        return ids.get(key) == wanted
    return {own(key): {"eq": wanted}}


def _at(key: str, operator: str, value: Any) -> Compiled:
    moment = to_moment(value).isoformat()
    told = {key: {operator: moment}}
    if key != "created_at":
        return told
    # What the caller said of a memory's age stands before when it was written.
    said = {own(key): {operator: moment}}
    return _any([said, _all([told, _none([{own(key): {"ne": _NOBODY}}])])])


def _has(key: str, ids: Mapping[str, str]) -> Compiled:
    if key in _TIMES or key in ids:
        return True
    if key == "user_id":
        return False
    return {(own(key) if key in IDS else _field(key)): {"ne": _NOBODY}}


def _field(key: str) -> str:
    return own(key) if key in PROMOTED else key_of(key)


def _all(parts: Sequence[Compiled]) -> Compiled:
    left = [one for one in parts if one is not True]
    if any(one is False for one in left):
        return False
    return _grouped("AND", left) if left else True


def _any(parts: Sequence[Compiled]) -> Compiled:
    left = [one for one in parts if one is not False]
    if any(one is True for one in left):
        return True
    return _grouped("OR", left) if left else False


def _none(parts: Sequence[Compiled]) -> Compiled:
    found = _any(parts)
    return (not found) if isinstance(found, bool) else {"NOT": [found]}


def _grouped(combine: str, parts: Sequence[Compiled]) -> Compiled:
    return parts[0] if len(parts) == 1 else {combine: list(parts)}
