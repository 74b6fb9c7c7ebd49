"""Scope of an agent's turn, and the owner tags that carry it in messages.

The scope comes from the caller of the agent, never from a model. A memory store gets messages
without a word about the turn they come from, and the framework collects them across turns. So each
message carries its owner and an id of its own, in the metadata that models never see.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from strands.types.content import Message as StrandsMessage

from commonplace import InvalidScopeError, Scope
from commonplace.agents import LazyMemory, in_session, to_id, to_scope

from .convert import custom_metadata

NO_OWNER = (
    "is unknown: pass invocation_state={'user_id': ...} to the agent, or user_id= to the plugin"
)
TAG_KEY = "commonplace.turn"
AGENTS_KEY = "commonplace.of_agents"

Id = str | int | Enum
"""An id as a framework gives it; `to_scope` makes it text."""

IdSource = Id | Callable[[Mapping[str, Any]], Id | None]
"""An id, or a function that reads it from an `invocation_state`."""

_process_keys: WeakKeyDictionary[LazyMemory, str] = WeakKeyDictionary()


def owner_scope(user_id: object, agent_id: object, session_id: object = None) -> Scope | None:
    """Return the scope of a user, or of an agent alone; None if both ids are missing."""
    if user_id is not None:
        owner = to_scope(user_id, agent_id)
    elif agent_id is not None:
        # An agent's id becomes text by the same rule; the user here is nobody.
        owner = replace(to_scope("-", agent_id), user_id=None)
    else:
        return None
    if session_id is None:
        return owner
    return replace(owner, session_id=to_id("session_id", session_id))


def required_scope(user_id: object, agent_id: object, session_id: object = None) -> Scope:
    """Return the scope of what belongs to one owner, whoever calls."""
    scope = owner_scope(user_id, agent_id, session_id)
    if scope is None:
        raise InvalidScopeError(
            field="user_id", value=None, reason="is missing: give user_id= or agent_id="
        )
    return scope


def resolve_scope(
    state: Mapping[str, Any],
    *,
    user_id: IdSource | None = None,
    agent_id: IdSource | None = None,
    session_id: str | None = None,
) -> Scope | None:
    """Return the scope of an invocation; None if nobody owns it.

    Ids in the invocation's state win, even a `user_id` of `None`: that turn has no owner. Ids
    become text, or are refused, by the rule of `to_scope`.

    Args:
        state: the `invocation_state`; only `user_id`, `agent_id` and `session_id` are read.
        user_id: when the state has none.
        agent_id: when the state has none.
        session_id: when the state has none.
    """
    given = _unnest(state)
    if callable(user_id) and "user_id" not in given:
        user_id = user_id(given)
    if callable(agent_id) and "agent_id" not in given:
        agent_id = agent_id(given)
    user_id = given.get("user_id", user_id)
    is_nobody = user_id is None and ("user_id" in given or "agent_id" not in given)
    owner = None if is_nobody else owner_scope(user_id, given.get("agent_id", agent_id))
    session = given.get("session_id")
    if session is None:
        session = session_id
    elif not isinstance(session, str) or not session:
        session = to_id("session_id", session)
    return None if owner is None else in_session(owner, session)


def _unnest(state: Mapping[str, Any]) -> Mapping[str, Any]:
    # The framework nests `invocation_state` in itself if a caller also passes keyword arguments.
    inner = state.get("invocation_state")
    if isinstance(inner, Mapping) and not {"user_id", "agent_id"} & state.keys():
        return inner
    return state


# -- owner tags ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerTag:
    """The owner of a message; equal ids are the same message."""

    message_id: str
    scope: Scope


def tag_message(
    message: StrandsMessage, memory: LazyMemory, scope: Scope | None, message_id: str
) -> None:
    """Tag a message for one memory, in place of any tag that its caller made up."""
    custom = custom_metadata(message)
    before = custom.get(TAG_KEY)
    tags = dict(before) if isinstance(before, Mapping) else {}
    tags.pop(_process_key(memory), None)
    if scope is not None:
        tags[_process_key(memory)] = {
            "id": message_id,
            "user_id": scope.user_id,
            "agent_id": scope.agent_id,
            "session_id": scope.session_id,
        }
    if not tags and before is None:
        return
    metadata: Any = {**message.get("metadata", {}), "custom": {**custom, TAG_KEY: tags}}
    message["metadata"] = metadata


def mark_as_agents(message: StrandsMessage) -> None:
    """Mark a message that one agent wrote to another: it is nobody's to remember."""
    custom = {**custom_metadata(message), AGENTS_KEY: True}
    metadata: Any = {**message.get("metadata", {}), "custom": custom}
    message["metadata"] = metadata


def is_agents(message: StrandsMessage) -> bool:
    """Return whether `mark_as_agents` marked a message."""
    return AGENTS_KEY in custom_metadata(message)


def read_tag(message: StrandsMessage, memory: LazyMemory) -> OwnerTag | None:
    """Read a message's tag for one memory; None without a valid one."""
    tags = custom_metadata(message).get(TAG_KEY)
    tag = tags.get(_process_key(memory)) if isinstance(tags, Mapping) else None
    if not isinstance(tag, Mapping):
        return None
    ids = {**tag}
    try:
        return OwnerTag(message_id=str(ids.pop("id")), scope=Scope(**ids))
    except (InvalidScopeError, KeyError, TypeError):
        return None


def _process_key(memory: LazyMemory) -> str:
    # Random, so that no caller can guess it, and tags of a restored session are ignored.
    return _process_keys.setdefault(memory, uuid.uuid4().hex[:16])
