"""Filter compiler: an SQL condition that no record which matches a filter fails.

SQL cannot say all that a filter can, such as case folding or a caller's predicate, and its JSON
reader may round the last digit of a float. So each part is compiled in one of two ways: to hold at
least for what matches, or, under `NOT`, to hold at most for it. What remains is for
`Filter.matches`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...filters import FIELDS, TIMES, Filter, Group, Predicate, Scalar, Where, Within, metadata_key
from ...validation import is_sound
from ..shared import rows
from ..shared.rows import tag_key, tag_of

Condition = tuple[str, list[Any]]  # SQL, never NULL, and its parameters

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SPECIAL = re.compile(r"[*?\[]")  # in a pattern of GLOB, which takes a third of the time of `instr`
_RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_MAX_EXACT = 2**53  # up to which integers and floats convert without loss
_MAX_SECONDS = 10**12  # farther from 1970 than any time
# Of what is compared: far more than rounding loses, far less than anybody filters by.
_RELATIVE_ERROR, _LEAST_ERROR = 1e-12, 1e-300


def compile_filter(where: Filter, table: str = "") -> Condition:
    """Compile a filter to a condition on the columns of `record`, with its parameters.

    The condition is at least as wide as the filter and never NULL: ("1", []) for what SQL cannot
    narrow. It relies on metadata that `check_metadata` accepts.

    Args:
        table: the name that stands for `record` in the statement; empty for none.
    """
    return _compile(where, f"{table}." if table else "", wide=True)


def _compile(where: Filter, prefix: str, *, wide: bool) -> Condition:
    """Compile a filter to hold at least for what matches, or, if not `wide`, at most for it."""
    unknown: Condition = ("1" if wide else "0", [])
    if isinstance(where, Predicate):
        return unknown
    if isinstance(where, Within):
        if not where.namespace:
            return f"{prefix}namespace <> '[]'", []
        # A label's JSON ends with a quote, so what begins with it goes on with another label.
        return f"instr({prefix}namespace, ?) = 1", [rows.to_json(where.namespace)[:-1]]
    if isinstance(where, Group):
        negates = where.combine == "NOT"
        parts = [_compile(part, prefix, wide=wide != negates) for part in where.parts]
        sql, values = _combined(parts, is_and=where.combine == "AND")
        if negates:
            sql = {"0": "1", "1": "0"}.get(sql, f"NOT ({sql})")
        return sql, values
    compiled = _where(where, prefix, wide=wide)
    return unknown if compiled is None else compiled


def _combined(parts: Sequence[Condition], *, is_and: bool) -> Condition:
    neutral, decisive = ("1", "0") if is_and else ("0", "1")
    if any(sql == decisive for sql, _ in parts):
        return decisive, []
    kept = [part for part in parts if part[0] != neutral]
    if not kept:
        return neutral, []
    sql = (" AND " if is_and else " OR ").join(f"({part})" for part, _ in kept)
    return sql, [value for _, values in kept for value in values]


def _where(where: Where, prefix: str, *, wide: bool) -> Condition | None:
    """Compile one condition; None if SQL can say nothing of it."""
    if where.field in TIMES:
        moment = f"{prefix}{where.field}"
        held, compare = "1", lambda op, value: _time(moment, op, value, wide=wide)
    elif where.field in FIELDS:
        column = f"{prefix}{where.field}"
        held, compare = f"{column} IS NOT NULL", lambda op, value: _text(column, op, value)
    else:
        return _metadata(where, prefix, wide=wide)
    if where.operator in ("ne", "nin"):
        negated = Where(where.field, "in", where.values)
        inner = _where(negated, prefix, wide=not wide)
        return None if inner is None else (f"{held} AND NOT ({inner[0]})", inner[1])
    found = _any(where, compare)
    return None if found is None else (f"{held} AND ({found[0]})", found[1])


def _metadata(where: Where, prefix: str, *, wide: bool) -> Condition | None:
    """Compile a condition on a metadata key; of a list each element is asked."""
    key, operator = metadata_key(where.field), where.operator
    name = tag_key(key)

    def has(tag: str) -> Condition:
        pattern = _SPECIAL.sub(r"[\g<0>]", tag)
        return f"coalesce({prefix}tags GLOB ?, {int(wide)})", [f"*{pattern}*"]

    if operator in ("eq", "in"):
        return _any(where, lambda _, value: has(f"\n{tag_of(name, value)}\n"))
    held = has(f"\n{name}=")
    if operator in ("ne", "nin"):
        inner = _metadata(Where(where.field, "in", where.values), prefix, wide=not wide)
        return inner and (f"{held[0]} AND NOT ({inner[0]})", [*held[1], *inner[1]])
    found = _any(where, lambda op, value: _element(op, value, wide=wide))
    if found is None or not _KEY.fullmatch(key):  # others cannot be quoted in a path
        return held if wide else None
    column, path = f"{prefix}metadata", f'$."{key}"'
    sql = f"{held[0]} AND EXISTS (SELECT 1 FROM json_each({column}, ?) WHERE {found[0]})"
    values = [*held[1], path, *found[1]]
    if wide:
        return sql, values
    # The elements that `json_each` reads of an object are no values of the key.
    return f"{sql} AND json_type({column}, ?) <> 'object'", [*values, path]


def _any(where: Where, compare: Callable[[str, Scalar], Condition | None]) -> Condition | None:
    operator = "eq" if where.operator == "in" else where.operator
    parts = [compare(operator, value) for value in where.values]
    known = [condition for condition in parts if condition is not None]
    if not known or len(known) < len(parts):
        return None
    sql = " OR ".join(f"({condition})" for condition, _ in known)
    return sql, [value for _, values in known for value in values]


def _element(operator: str, value: Scalar, *, wide: bool) -> Condition | None:
    """Compile the comparison of an element of `json_each`."""
    if isinstance(value, str):
        if operator == "icontains":
            return ("type = 'text'", []) if wide else None
        compared = _text("value", operator, value)
        return compared and (f"type = 'text' AND {compared[0]}", compared[1])
    sign = _RANGES.get(operator)
    if sign is None or isinstance(value, bool):
        return None
    if abs(value) > _MAX_EXACT:
        return ("type IN ('integer', 'real')", []) if wide else None
    error = abs(value) * _RELATIVE_ERROR + _LEAST_ERROR
    limit = value - error if (operator in ("gt", "gte")) == wide else value + error
    sql = f"type = 'integer' AND value {sign} ? OR type = 'real' AND value {sign} ?"
    return sql, [value, limit]


def _text(column: str, operator: str, value: Scalar) -> Condition | None:
    """Compile the comparison of a text, which SQLite too compares by code point."""
    if not isinstance(value, str) or not is_sound(value):
        return None
    if operator == "eq":
        return f"{column} = ?", [value]
    if operator == "contains":
        return f"instr({column}, ?) > 0", [value]
    if operator in _RANGES:
        return f"{column} {_RANGES[operator]} ?", [value]
    return None


def _time(column: str, operator: str, value: Scalar, *, wide: bool) -> Condition | None:
    """Compile the comparison of a time, in microseconds, with seconds."""
    if isinstance(value, bool | str) or abs(value) > _MAX_SECONDS:
        return None
    # Of the value; the seconds of the time have been rounded as well.
    error = 2 + round(abs(value) * 1e-9)
    micros = round(value * 1e6)
    if operator == "eq":
        if not wide:
            return None
        return f"{column} BETWEEN ? AND ?", [micros - error, micros + error]
    if operator not in _RANGES:
        return None
    limit = micros - error if (operator in ("gt", "gte")) == wide else micros + error
    return f"{column} {_RANGES[operator]} ?", [limit]
