"""Relations of mem0 1.x, which it kept without saying which memory states them."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from commonplace.model import Record, Relation, now
from commonplace.moving import Told

from .metadata import to_moment, to_stored
from .scopes import to_scope

_NAMESPACE = uuid.UUID("0f6f3b0e-3f53-5c0f-8f0b-7a4b0b6d9a35")


def attach(told: list[Told], edge: Mapping[str, Any]) -> None:
    """Give a relation to the first memory of its owner that names both ends."""
    scope = to_scope(edge)
    ends = [_words(edge[name]) for name in ("source", "target")]
    since = to_time(edge.get("created_at"))
    until = None if edge.get("valid", True) else to_time(edge.get("invalidated_at")) or now()
    relation = Relation(
        subject=ends[0],
        predicate=str(edge["relationship"]).lower(),
        object=ends[1],
        valid_from=since if until is None or since is None or since < until else None,
        valid_to=until,
    )
    for place, one in enumerate(told):
        text = one.record.text.casefold()
        if one.record.scope.owner == scope.owner and all(end.casefold() in text for end in ends):
            told[place] = replace(one, relations=(*one.relations, relation))
            return
    text = f"{ends[0]} {_words(edge['relationship']).lower()} {ends[1]}"
    key = f"{scope.key}\x1f{text}"
    at = since or now()
    record = Record(
        id=str(uuid.uuid5(_NAMESPACE, key)),
        text=text,
        scope=scope,
        metadata=to_stored(None, scope=scope),
        origin="import",
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )
    told.append(Told(record=record, relations=(relation,)))


def to_time(value: object) -> datetime | None:
    """Read a time, in UTC; None for none."""
    return None if not value else to_moment(value)


def _words(name: object) -> str:
    return str(name).replace("_", " ").strip()
