"""Writing: the commands that put, delete and refresh items."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from commonplace import Command, Delete, Fact, Record, Revise, Scope, Upsert

from .calls import Ask, Plan
from .items import Kept, Put, item_id, kept, telling
from .namespaces import Namespace, Template
from .values import visible

_CALL = 1000
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SLACK = 0.01  # of its minutes that an item may end too early, so that not every read is a write


class Place(Protocol):
    """Where an item is or will be."""

    @property
    def namespace(self) -> Namespace:
        """Its labels."""

    @property
    def key(self) -> str:
        """Its key."""

    @property
    def id(self) -> str:
        """The record that is made for it."""


def ids_of(own: str, key: str) -> list[str]:
    """Name the records that may hold an item: its own, and one that others wrote."""
    return [own, key] if _ID.fullmatch(key) else [own]


def find(records: Mapping[str, Record], place: Place, template: Template) -> Kept | None:
    """Choose the record that holds an item of this very namespace; None if there is none."""
    for one in ids_of(place.id, place.key):
        record = records.get(one)
        if record is not None:
            held = kept(record, template)
            if (held.namespace, held.key, held.part) == (place.namespace, place.key, 0):
                return held
    return None


def write(puts: Sequence[tuple[Put, Kept | None]]) -> list[Command]:
    """Make the commands that bring these items about; `Kept` is what each replaces.

    A put to a record that others wrote changes that record, so that they see the correction.
    """
    commands: list[Command] = []
    upserts: dict[Scope, list[Fact]] = {}
    for put, before in puts:
        said = list(put.facts)
        if before is not None:
            commands += _surplus(before, put.scope, max(1, len(said)))
            if not said:
                commands.append(Delete(record_id=before.record.id, scope=before.record.scope))
            elif before.record.id != put.id:
                said = [_of(one, before.record.id) for one in said]
                commands.append(_in_place(before.record, said.pop(0)))
        upserts.setdefault(put.scope, []).extend(said)
    for scope, several in upserts.items():
        for start in range(0, len(several), _CALL):
            commands.append(Upsert(facts=several[start : start + _CALL], scope=scope))
    return commands


def overtaken(puts: Iterable[Put], template: Template) -> Plan[list[Command]]:
    """Make the commands that delete the texts of writes which these overtook.

    Another thread may have put more texts under a key after it was read here; the item finds them
    no more, but other agents would.
    """
    commands: list[Command] = []
    next_of: dict[Scope, dict[str, Put]] = {}
    for put in puts:
        after = item_id(put.scope, put.namespace, put.key, max(1, len(put.facts)))
        next_of.setdefault(put.scope, {})[after] = put
    for scope, puts_of in next_of.items():
        records = yield Ask("get_many", list(puts_of), scope)
        parts = [(puts_of[one.id], kept(one, template)) for one in records]
        if not parts:
            continue
        records = yield Ask("get_many", list({part.of for _, part in parts}), scope)
        items = {one.id: kept(one, template) for one in records}
        for put, part in parts:
            item = items.get(part.of)
            if item is None or item.round != part.round:
                commands += _texts(put, scope, range(part.part, part.parts))
    return commands


def refresh(read: Iterable[Kept], template: Template, at: datetime) -> Plan[list[Command]]:
    """Make the commands that let items that were read live on, with all their texts."""
    commands: list[Command] = []
    parts: dict[Scope, dict[str, datetime]] = {}
    for one in {item.record.id: item for item in read}.values():
        ends = one.record.expires_at
        if one.ttl is None or ends is None:
            continue
        later = at + timedelta(minutes=one.ttl)
        if later - ends <= timedelta(minutes=one.ttl) * _SLACK:
            continue
        commands.append(Revise(record=one.record, expires_at=later))
        scope = template.scope_of(one.namespace)
        for part in range(1, one.parts):
            name = item_id(scope, one.namespace, one.key, part)
            parts.setdefault(scope, {})[name] = later
    for scope, ends_of in parts.items():
        records = yield Ask("get_many", list(ends_of), scope)
        commands += [Revise(record=one, expires_at=ends_of[one.id]) for one in records]
    return commands


def _surplus(before: Kept, scope: Scope, keep: int) -> list[Command]:
    """Delete the texts that an item no longer has."""
    return _texts(before, scope, range(keep, before.parts))


def _texts(item: Kept | Put, scope: Scope, parts: Iterable[int]) -> list[Command]:
    return [
        Delete(record_id=item_id(scope, item.namespace, item.key, part), scope=scope)
        for part in parts
    ]


def _in_place(record: Record, fact: Fact) -> Revise:
    # Who wrote the record reads its text, which the store shows as `content`.
    content = json.loads(fact.metadata["langgraph"]["value"]).get("content")
    text = (visible(content) if isinstance(content, str) else "") or fact.text
    return Revise(
        record=record,
        text=text,
        metadata=telling(text, fact.metadata),
        expires_at=fact.expires_at,
    )


def _of(fact: Fact, record_id: str) -> Fact:
    said = fact.metadata["langgraph"]
    if "of" not in said:
        return fact
    said = {**said, "of": record_id}
    return replace(fact, metadata={**fact.metadata, "langgraph": said})
