"""Which replies run, for whom, and whether they share a conversation they should not share.

Whose memory a tool call reaches hangs on the reply that makes the call, in its own context: not on
the agent, whose state two users may share, and not on who came last.
"""

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentscope.event import ModelCallStartEvent
from agentscope.state import AgentState

from commonplace.errors import InvalidScope
from commonplace.model import Scope

from .log import Warn

if TYPE_CHECKING:
    from agentscope.agent import Agent


@dataclass(slots=True, kw_only=True, eq=False)
class Reply:
    """One reply of an agent, or a part of one that waited in between.

    Attributes:
        scope: whose memory it is about; None if nobody said so.
        is_stepping: the agent works on it; otherwise whoever listens has the word.
        is_shared: another reply to the same user works in the same conversation.
        is_cut: so does one to another user, so it has no memory from here on.
        is_interrupted: it was cancelled while it waited for its memories.
    """

    state: AgentState
    scope: Scope | None
    is_stepping: bool = False
    is_shared: bool = False
    is_cut: bool = False
    is_interrupted: bool = False

    @property
    def owner(self) -> Scope | None:
        """Whose memory it may touch now; None for nobody's."""
        return None if self.is_cut else self.scope

    def meet(self, other: "Reply") -> None:
        """Take note of another reply that works in the same conversation."""
        if self.scope == other.scope:
            self.is_shared = True
        else:
            self.is_cut = True


_current: ContextVar[tuple[tuple["Replies", Reply], ...]] = ContextVar("replies", default=())


class Replies:
    """The replies that run through one middleware."""

    def __init__(self, user_id: "str | Callable[[Agent], str]", agent_id: str | None) -> None:
        self._user_id = user_id
        self._agent_id = agent_id
        self._running: dict[int, list[Reply]] = {}

    def begin(self, agent: "Agent", warn: Warn) -> Reply:
        """Take a reply up, for nobody if it cannot be told for whom."""
        scope = None
        try:
            scope = _scope_of(self._user_id, self._agent_id, agent)
        except Exception as error:  # noqa: BLE001 -- nobody's memory is better than a lost reply
            warn("scope", error)
        return Reply(state=agent.state, scope=scope)

    def current(self, state: AgentState | None) -> Reply | None:
        """Find the reply in whose course this is called; None outside one."""
        for replies, reply in reversed(_current.get()):
            if replies is self and reply.state is state:
                return reply
        return None

    def owner(self, state: AgentState | None) -> Scope:
        """Tell whose memory a call may touch; outside a reply that is the one fixed user's.

        Raises:
            InvalidScope: the reply has no owner, or none of its own any more.
        """
        reply = self.current(state)
        if reply is None and not callable(self._user_id):
            return to_scope(self._user_id, self._agent_id)
        if reply is not None and reply.owner is not None:
            return reply.owner
        reason = "is unknown outside a reply of this agent"
        if reply is not None:
            reason = "is not the only one of this agent" if reply.is_cut else "is unknown"
        raise InvalidScope(field="user_id", value=None, reason=reason)

    async def steps(
        self, reply: Reply, inner: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """Pass on what the agent does for a reply, in a context that tells whose reply it is."""
        self._join(reply)
        while True:
            if reply.is_cut:
                # A forgotten reply goes on: the one that took its place is no longer alone.
                self._disturb(reply)
            # Set anew for each step: the next one may be taken by another task.
            token = _current.set((*_current.get(), (self, reply)))
            reply.is_stepping = True
            try:
                item = await anext(inner)
            except StopAsyncIteration:
                return
            finally:
                reply.is_stepping = False
                with contextlib.suppress(ValueError):  # a loop that is torn down has no context
                    _current.reset(token)
            if isinstance(item, ModelCallStartEvent):
                # A middleware further out may send a finished reply into another round.
                self._join(reply)
            yield item

    def leave(self, reply: Reply) -> None:
        """Let a reply go: it is finished, or nobody listens any more."""
        running = self._running.get(id(reply.state), [])
        if reply in running:
            running.remove(reply)
        if not running:
            self._running.pop(id(reply.state), None)

    def _join(self, reply: Reply) -> None:
        # A state stays alive while a reply on it is listed, so its id is its own.
        running = self._running.setdefault(id(reply.state), [])
        if reply in running:
            return
        for other in running:
            # One that nobody listens to may be dead for good; only one at work disturbs others.
            other.meet(reply)
            if other.is_stepping:
                reply.meet(other)
        running.append(reply)

    def _disturb(self, reply: Reply) -> None:
        running = self._running.get(id(reply.state), [])
        for other in running if reply in running else ():
            if other is not reply:
                other.meet(reply)


def _scope_of(
    user_id: "str | Callable[[Agent], str]", agent_id: str | None, agent: "Agent"
) -> Scope:
    """Tell whose memory a reply is about, in the agent's session.

    A session id that no scope can hold is replaced by its hash; an empty one is no session.

    Raises:
        InvalidScope: the user id is none.
    """
    owner = to_scope(user_id(agent) if callable(user_id) else user_id, agent_id)
    session: object = agent.state.session_id
    if type(session) is not str or not session:
        return owner
    with contextlib.suppress(InvalidScope):
        return Scope(user_id=owner.user_id, agent_id=agent_id, session_id=session)
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Scope(user_id=owner.user_id, agent_id=agent_id, session_id=digest)


def to_scope(user_id: object, agent_id: str | None) -> Scope:
    """Make a user's scope, in no session.

    Raises:
        InvalidScope: the user id is no plain string, or an id cannot be used.
    """
    if type(user_id) is not str:
        raise InvalidScope(field="user_id", value=user_id, reason="is not a string")
    return Scope(user_id=user_id, agent_id=agent_id)
