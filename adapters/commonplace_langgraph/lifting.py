"""Which fields of a value are metadata too, so that a filter can be narrowed inside the engine."""

import math
import re
from collections.abc import Mapping
from typing import Any

from commonplace.filters import FIELDS, FOLDERS
from commonplace.validation import SCOPE_FIELDS

_TAKEN = {*FIELDS, *SCOPE_FIELDS, FOLDERS, "content", "langgraph", "spill"}
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST = 24


def lifted(value: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the fields of a value that a filter of the memory can ask for: all that fit, or none.

    `{"spill": True}` says that there were too many.
    """
    found = {key: one for key, one in value.items() if _is_lifted(key, one)}
    return found if len(found) <= _MOST else {"spill": True}


def _is_lifted(key: str, value: object) -> bool:
    if key in _TAKEN or not _KEY.fullmatch(key):
        return False
    if type(value) is str:
        return len(value) <= 128 and value.isprintable()
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is bool or (type(value) is int and abs(value) < 2**53)


def narrowed(key: str, given: object) -> Any:
    """Say what a filter wants of a lifted field, to the memory; None when it cannot."""
    if isinstance(given, Mapping):
        if len(given) != 1:
            return None
        ((operator, given),) = given.items()
        if operator == "$in" and isinstance(given, list | tuple) and 0 < len(given) <= 16:
            return list(given) if all(_is_lifted(key, one) for one in given) else None
        if operator != "$eq":
            return None
    return given if _is_lifted(key, given) else None
