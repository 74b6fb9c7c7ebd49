"""Scope of a run, from the context that its application gives to it, never from a model."""

from collections.abc import Callable
from enum import Enum
from typing import Any

from commonplace import InvalidScopeError, Scope
from commonplace.agents import field_of, in_session, to_scope

Id = str | int | Enum
IdSource = Id | Callable[[Any], Id | None]
"""An id, or a function that reads it from a run's context and returns None if that has none."""


class NoUserError(InvalidScopeError):
    """A run that names nobody has no memory."""


def scope_of(context: object, user_id: IdSource | None, agent_id: IdSource | None) -> Scope:
    """Make the scope of a run, in the session that its context names."""
    user_id = field_of(context, "user_id") if user_id is None else user_id
    try:
        user, agent = (one(context) if callable(one) else one for one in (user_id, agent_id))
    except Exception as error:
        raise NoUserError(
            field="user_id", value=None, reason=f"cannot be read ({error})"
        ) from error
    if user is None:
        reason = "is unknown: give the run context={'user_id': ...}"
        raise NoUserError(field="user_id", value=None, reason=reason)
    return in_session(to_scope(user, agent), field_of(context, "session_id"))
