"""Relations of mem0 1.x, which it kept without saying which memory states them."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from commonplace import Record, Relation, Scope
from commonplace.admin import Told

from .metadata import to_moment, to_stored
from .scopes import to_scope

_NAMESPACE = uuid.UUID("0f6f3b0e-3f53-5c0f-8f0b-7a4b0b6d9a35")


class Edges:
    """Gives relations to the memories that name them; each text is read once for all of them."""

    def __init__(self, told: list[Told]) -> None:
        self._told = told
        self._texts: dict[Scope, list[tuple[int, str]]] = {}
        for place, one in enumerate(told):
            self._note(place, one.record)

    def attach(self, edge: Mapping[str, Any]) -> None:
        """Give a relation to a memory of its owner that names both ends, else to a new fact."""
        scope = to_scope(edge)
        relation = _relation(edge)
        ends = [relation.subject.casefold(), relation.object.casefold()]
        for place, text in self._texts.get(scope.owner, ()):
            if all(end in text for end in ends):
                one = self._told[place]
                self._told[place] = replace(one, relations=(*one.relations, relation))
                return
        words = _words(edge["relationship"]).lower()
        record = _fact(scope, f"{relation.subject} {words} {relation.object}", edge)
        self._told.append(Told(record=record, relations=(relation,)))
        self._note(len(self._told) - 1, record)

    def _note(self, place: int, record: Record) -> None:
        self._texts.setdefault(record.scope.owner, []).append((place, record.text.casefold()))


def to_time(value: object) -> datetime | None:
    """Read a time, in UTC; None for none."""
    return None if not value else to_moment(value)


def _relation(edge: Mapping[str, Any]) -> Relation:
    since = to_time(edge.get("created_at"))
    until = (
        None
        if edge.get("valid", True)
        else to_time(edge.get("invalidated_at")) or datetime.now(UTC)
    )
    return Relation(
        subject=_words(edge["source"]),
        predicate=str(edge["relationship"]).lower(),
        object=_words(edge["target"]),
        valid_from=since if until is None or since is None or since < until else None,
        valid_to=until,
    )


def _fact(scope: Scope, text: str, edge: Mapping[str, Any]) -> Record:
    key = f"{scope.key}\x1f{text}"
    at = to_time(edge.get("created_at")) or datetime.now(UTC)
    return Record(
        id=str(uuid.uuid5(_NAMESPACE, key)),
        text=text,
        scope=scope,
        metadata=to_stored(None, scope=scope),
        origin="import",
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )


def _words(name: object) -> str:
    return str(name).replace("_", " ").strip()
