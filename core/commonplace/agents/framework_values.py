"""A framework's ids, texts and answers as ones that a memory takes, by one rule for all adapters.

A framework lets any id and text pass and a store does not. An id that no scope can hold is refused;
no message is lost over a character or a length.
"""

import contextlib
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum
from typing import Any

from ..errors import InvalidScopeError
from ..types import Message, Role, Scope
from ..validation import MAX_TEXT_BYTES, check_id
from .health import WarnOnce

_BYTES_PER_CHARACTER = 4
_MAX_NAME = 256


def to_scope(user_id: object, agent_id: object = None) -> Scope:
    """Make the scope of a user, in no session.

    Integers and members of an enumeration of texts or integers become text: 42 and "42" are one
    user. What no scope can hold is refused, never changed and never stored as nobody's.

    Args:
        user_id: as a framework gives it.
        agent_id: likewise; None for memories of no agent in particular.

    Raises:
        InvalidScopeError: an id is of another type, or cannot be used (see `Scope`).
    """
    agent = None if agent_id is None else to_id("agent_id", agent_id)
    return Scope(user_id=to_id("user_id", user_id), agent_id=agent)


def to_id(field: str, given: object) -> str:
    """Write one id as text, by the rule of `to_scope`.

    Args:
        field: of `Scope`, for the error.

    Raises:
        InvalidScopeError: it is of another type, or no scope can hold it.
    """
    value = given.value if isinstance(given, Enum) else given
    if isinstance(value, str):
        text = str.__str__(value)  # of a subclass too
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10**256:  # Python would refuse to write longer ones
            raise InvalidScopeError(field=field, value="…", reason="must have 1 to 256 characters")
        text = int.__repr__(value)
    else:
        raise InvalidScopeError(field=field, value=given, reason="must be a string or an integer")
    check_id(field, text)
    return text


async def find_scope(
    user_id: object, agent_id: object, session_id: object, warn: WarnOnce, *told: object
) -> Scope | None:
    """Make the scope of a turn, whose ids a framework's functions may tell; None for nobody.

    A user who cannot be told is logged: no memory is better than a lost turn.

    Args:
        user_id, session_id: the ids, or functions of `told`, awaited if they are async.

    Raises:
        InvalidScopeError: an id cannot be used.
    """
    try:
        ids = [one(*told) if callable(one) else one for one in (user_id, session_id)]
        user, session = [await one if inspect.isawaitable(one) else one for one in ids]
    except InvalidScopeError:
        raise
    except Exception as error:
        warn("scope", error)
        return None
    if user is None:
        reason = "is missing, so this reply has no memory"
        warn("scope", InvalidScopeError(field="user_id", value=None, reason=reason))
        return None
    return in_session(to_scope(user, agent_id), session)


def field_of(context: object, name: str) -> Any:
    """Return a field of a run's context, which may have any type; None if it is missing."""
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)


def in_session(owner: Scope, session: object) -> Scope:
    """Narrow an owner's scope to a session; a session that is not a non-empty string is ignored.

    A framework makes these ids. One that no scope can hold is replaced by its hash: it is still a
    session of its own.
    """
    if type(session) is not str or not session:
        return owner
    with contextlib.suppress(InvalidScopeError):
        return replace(owner, session_id=session)
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return replace(owner, session_id=digest)


def clean(text: str) -> str:
    """Leave out what no stored text may hold, NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def is_visible(text: str) -> bool:
    """Return whether a text has any visible character."""
    return any(char.isprintable() and not char.isspace() for char in text)


def hash_id(message_id: object, text: str) -> str:
    """Make a message's id from a framework's and its text, as callers give several one id."""
    given = f"{message_id}\n{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(given).hexdigest()[:32]


def to_time(text: object) -> datetime | None:
    """Read a framework's time, as local time when it has no zone; None if it is none."""
    try:
        return datetime.fromisoformat(str(text)).astimezone()
    except (OverflowError, ValueError):
        return None


def to_messages(
    text: str, role: Role, name: str, message_id: str, at: datetime | None = None
) -> list[Message]:
    """Make messages of one turn: several of a text that one record cannot hold.

    Args:
        text: may hold anything; an empty list if there is nothing to read in it.
        name: the speaker's; what no name may hold is left out, perhaps all of it.
        message_id: of the first message; the others get a number behind it.
    """
    text = clean(text)
    size = len(text)
    if len(text.encode()) > MAX_TEXT_BYTES:
        size = MAX_TEXT_BYTES // _BYTES_PER_CHARACTER
    parts = [text[place : place + size] for place in range(0, len(text), size)] if size else []
    name = " ".join(clean(name).split())[:_MAX_NAME].strip()
    return [
        Message(
            text=part,
            role=role,
            name=name if is_visible(name) else None,
            at=at,
            id=message_id if not number else f"{message_id}#{number}",
        )
        for number, part in enumerate(parts)
        if is_visible(part)
    ]


def with_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """Add the schema of the answer to a prompt, where every model can read it."""
    return f"{prompt}\n\nJSON schema of the answer:\n{json.dumps(dict(schema))}"


def without_fence(text: str) -> str:
    """Read an answer without the fence of a code block."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    return text.strip()
