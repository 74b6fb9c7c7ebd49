"""Stamps in messages: whose they are, for whoever reads them when their turn is long over.

A memory store is handed messages without a word about the turn they come from, and the framework
collects them across turns. So each carries its owner and an id of its own, in the metadata that
models never see. The stamp is written over whatever a caller put there.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from strands.types.content import Message as StrandsMessage

from commonplace import InvalidScopeError, Memory, Scope

from .convert import custom

STAMP = "commonplace.turn"

_names: WeakKeyDictionary[Memory, str] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Whose message it is; equal ids are the same message."""

    id: str
    scope: Scope


def stamp(message: StrandsMessage, memory: Memory, scope: Scope | None, message_id: str) -> None:
    """Stamp a message for one memory; without a scope only an older stamp is taken away."""
    held = custom(message)
    before = held.get(STAMP)
    stamps = dict(before) if isinstance(before, Mapping) else {}
    stamps.pop(_name(memory), None)
    if scope is not None:
        stamps[_name(memory)] = {
            "id": message_id,
            "user_id": scope.user_id,
            "agent_id": scope.agent_id,
            "session_id": scope.session_id,
        }
    if not stamps and before is None:
        return
    metadata: Any = {**message.get("metadata", {}), "custom": {**held, STAMP: stamps}}
    message["metadata"] = metadata


def stamp_of(message: StrandsMessage, memory: Memory) -> Stamp | None:
    """Read a message's stamp for one memory; None if it has none that can be read."""
    stamps = custom(message).get(STAMP)
    held = stamps.get(_name(memory)) if isinstance(stamps, Mapping) else None
    if not isinstance(held, Mapping):
        return None
    given = {**held}
    try:
        return Stamp(id=str(given.pop("id")), scope=Scope(**given))
    except (InvalidScopeError, KeyError, TypeError):
        return None


def _name(memory: Memory) -> str:
    # Of this process only: what a restored session says about another process is not looked at.
    return _names.setdefault(memory, uuid.uuid4().hex[:16])
