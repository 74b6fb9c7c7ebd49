"""What fills the texts of `cypher`: labels, and the conditions of a scope, a time and an order."""

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from ..model import Scope, now
from . import checkpoint_cypher, cypher
from .rows import to_micros

_KEYS = (*cypher.KEYS, *checkpoint_cypher.KEYS)
_INDEXES = cypher.INDEXES | checkpoint_cypher.INDEXES
_LABEL = re.compile(r":(?=[A-Z][a-z])")


def schema(prefix: str) -> dict[str, str]:
    """Give the statement that makes it, by the name of each constraint and index.

    The index behind a constraint has the constraint's name.
    """
    unique = {f"{one.lower()}_id": (one, "n.id") for one in _KEYS}
    unique["version_key"] = ("Version", "(n.record, n.version)")
    makes = "CREATE {} {}_{} IF NOT EXISTS FOR (n:{}) {}"
    texts = {
        name: makes.format("CONSTRAINT", prefix, name, label, f"REQUIRE {key} IS UNIQUE")
        for name, (label, key) in unique.items()
    } | {
        name: makes.format("INDEX", prefix, name, label, f"ON (n.{key})")
        for name, (label, key) in _INDEXES.items()
    }
    return {f"{prefix}_{name}": text for name, text in texts.items()}


@cache
def labelled(text: str, prefix: str) -> str:
    """Put the prefix in front of every label of a text."""
    return _LABEL.sub(f":{prefix}", text)


def fill(text: str, **parts: str) -> str:
    """Put conditions and other parts, which are constants too, where a text names them."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def covered(scope: Scope, name: str) -> str:
    """Write the condition that a node belongs to the scope; its parameters are `owner(scope)`."""
    parts = [f"{name}.lane = $lane"]
    parts += [
        f"{name}.{field} = ${field}"
        for field in ("agent_id", "session_id")
        if getattr(scope, field) is not None
    ]
    return " AND ".join(parts)


def owner(scope: Scope) -> dict[str, Any]:
    """Give the parameters of `covered`."""
    return {"lane": scope.lane, "agent_id": scope.agent_id, "session_id": scope.session_id}


def owned(scope: Scope, name: str) -> str:
    """Write the condition that a node is of an owner whose records the scope may cover."""
    return covered(replace(scope, session_id=None) if scope.owner != scope else scope, name)


def moment(
    *, latest_only: bool = True, as_of: datetime | None = None, at: datetime | None = None
) -> dict[str, Any]:
    """Give the parameters that ask for what holds: at `as_of`, or at `at`, or in any case."""
    is_timeless = as_of is None and not latest_only
    return {
        "at": None if is_timeless else to_micros(as_of or at or now()),
        "as_of": to_micros(as_of),
    }


def page(scope: Scope, kinds: Collection[str]) -> str:
    """Write the text that reads a page."""
    kind = {0: "", 1: "r.kind = $kinds[0] AND"}.get(len(kinds), "r.kind IN $kinds AND")
    columns = _columns(scope, "kind" if len(kinds) == 1 else None)
    # An index gives its order away only if the sort names all its columns, the constant too.
    order = " DESC, ".join(f"r.{one}" for one in columns)
    covers = covered(scope, "r")
    return fill(cypher.PAGE, covered=covers, kinds=kind, columns=", ".join(columns), order=order)


def walk(scope: Scope) -> str:
    """Write the text that reads the versions of records batch by batch."""
    columns = _columns(scope)
    order = ", ".join(f"r.{one}" for one in columns)
    return fill(cypher.WALK, covered=covered(scope, "r"), columns=", ".join(columns), order=order)


def _columns(scope: Scope, narrow: str | None = None) -> list[str]:
    """List the columns that come first in the index that reads least of others' records."""
    for field in ("session_id", "agent_id"):
        if narrow is None and getattr(scope, field) is not None:
            narrow = field
    return [one for one in ("lane", narrow, "live") if one is not None]


def relations(scope: Scope, answer: str, source: str) -> str:
    """Write the text that reads relations by age: those that one of `cypher.OF_*` finds."""
    return fill(
        cypher.RELATIONS,
        source=source,
        answer=answer,
        owned=owned(scope, "q"),
        covered_x=covered(scope, "x"),
        covered=covered(scope, "r"),
    )


@cache
def save(parts: tuple[str, ...]) -> str:
    """Write the text that saves these parts, one subquery each."""
    texts = cypher.SAVE_GONE | cypher.SAVE | cypher.SAVE_CLAIMS
    return "\n".join(f"CALL () {{ UNWIND ${part} AS row {texts[part]} }}" for part in parts)
