"""Whose memory a turn is about: what its caller says, never what a model says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commonplace import InvalidScopeError, Scope
from commonplace.agents.messages import in_session

NOBODY = (
    "is unknown: pass invocation_state={'user_id': ...} to the agent, or user_id= to the plugin"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """Whose memory it is when the invocation does not say; both may be missing.

    Raises:
        InvalidScopeError: an id cannot be used.
    """

    user_id: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        if self.user_id is not None or self.agent_id is not None:
            Scope(user_id=self.user_id, agent_id=self.agent_id)


def scope_of(state: Mapping[str, Any], default: Default, conversation: str | None) -> Scope:
    """Tell whose memory an invocation is about.

    What the invocation says counts, also when it says `None`: then it is nobody's.

    Args:
        state: the `invocation_state`; only `user_id`, `agent_id` and `session_id` are read.
        conversation: the session when the invocation names none.

    Raises:
        InvalidScopeError: nobody is named, or an id cannot be used.
    """
    given = _told(state)
    agent_id = given.get("agent_id", default.agent_id)
    if "user_id" in given:
        user_id = given["user_id"]
        if type(user_id) is not str:
            raise InvalidScopeError(field="user_id", value=user_id, reason=NOBODY)
    else:
        user_id = default.user_id
    if user_id is None and "agent_id" not in given:
        raise InvalidScopeError(field="user_id", value=None, reason=NOBODY)
    owner = Scope(user_id=user_id, agent_id=agent_id)
    return in_session(owner, given.get("session_id", conversation))


def _told(state: Mapping[str, Any]) -> Mapping[str, Any]:
    # A caller who mixes keyword arguments with `invocation_state` has the latter nested in itself.
    inner = state.get("invocation_state")
    if isinstance(inner, Mapping) and not {"user_id", "agent_id"} & state.keys():
        return inner
    return state
