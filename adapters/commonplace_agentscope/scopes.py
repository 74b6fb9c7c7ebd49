"""Whose memory a reply is about, as a scope."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace import InvalidScopeError, Scope
from commonplace.agents.messages import in_session

if TYPE_CHECKING:
    from agentscope.agent import Agent


def scope_of(
    user_id: "str | Callable[[Agent], str]", agent_id: str | None, agent: "Agent"
) -> Scope:
    """Tell whose memory a reply is about, in the agent's session.

    Raises:
        InvalidScopeError: the user id is none.
    """
    owner = to_scope(user_id(agent) if callable(user_id) else user_id, agent_id)
    return in_session(owner, agent.state.session_id)


def to_scope(user_id: object, agent_id: str | None) -> Scope:
    """Make a user's scope, in no session.

    Raises:
        InvalidScopeError: the user id is no plain string, or an id cannot be used.
    """
    if type(user_id) is not str:
        raise InvalidScopeError(field="user_id", value=user_id, reason="is not a string")
    return Scope(user_id=user_id, agent_id=agent_id)
