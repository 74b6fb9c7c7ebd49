"""Scope of each running reply, and its isolation from replies to other users.

The memory that a tool call may use is decided by the reply that makes the call, in its own context
variable: not by the agent, whose state two users may share, and not by the latest reply.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary

from agentscope.event import ModelCallStartEvent
from agentscope.message import Msg
from agentscope.state import AgentState

from commonplace import InvalidScopeError, Scope
from commonplace.agents import WarnOnce, in_session

from .convert import without_notes

if TYPE_CHECKING:
    from agentscope.agent import Agent


def to_scope(user_id: object, agent_id: str | None) -> Scope:
    """Make a user's scope, in no session.

    Raises:
        InvalidScopeError: the user id is no plain string, or an id cannot be used.
    """
    if type(user_id) is not str:
        raise InvalidScopeError(field="user_id", value=user_id, reason="must be a string")
    return Scope(user_id=user_id, agent_id=agent_id)


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class ActiveReply:
    """One reply of an agent, or the part of one that goes on after a pause.

    Attributes:
        scope: of the user it answers; None if that is unknown.
        peers: all replies that worked in this conversation and may go on, itself included.
        is_stepping: the agent works on it; otherwise the consumer of its events has control.
        is_shared: another reply to the same user works in the same conversation.
        is_isolated: one to another user does, so it has no memory from here on.
        is_followed: one to another user came after its end; isolated if it goes on.
        is_interrupted: it was cancelled while it waited for its memories.
    """

    state: AgentState
    scope: Scope | None
    peers: "WeakSet[ActiveReply]"
    is_stepping: bool = False
    is_shared: bool = False
    is_isolated: bool = False
    is_followed: bool = False
    is_interrupted: bool = False

    @property
    def owner(self) -> Scope | None:
        """The scope that it may read and write now; None for no memory at all."""
        return None if self.is_isolated else self.scope

    def overlap(self, other: "ActiveReply") -> None:
        """Record that another reply works in the same conversation."""
        if self.scope == other.scope:
            self.is_shared = True
        else:
            self.is_isolated = True


_current: ContextVar[tuple[tuple["ReplyTracker", ActiveReply], ...]] = ContextVar(
    "replies", default=()
)


class ReplyTracker:
    """The running replies of one middleware, by conversation."""

    def __init__(self, user_id: "str | Callable[[Agent], str]", agent_id: str | None) -> None:
        self._user_id = user_id
        self._agent_id = agent_id
        self._running: dict[int, list[ActiveReply]] = {}
        # A state stays alive while a reply on it does, so its id is its own; likewise above.
        self._peers: WeakValueDictionary[int, WeakSet[ActiveReply]] = WeakValueDictionary()

    def begin(self, agent: "Agent", warn: WarnOnce) -> ActiveReply:
        """Make a reply in the agent's session; without a scope if its user is unknown."""
        scope = None
        try:
            user_id = self._user_id(agent) if callable(self._user_id) else self._user_id
            scope = in_session(to_scope(user_id, self._agent_id), agent.state.session_id)
        except Exception as error:  # no memory is better than a lost reply
            warn("scope", error)
        peers = self._peers.setdefault(id(agent.state), WeakSet())
        return ActiveReply(state=agent.state, scope=scope, peers=peers)

    def current(self, state: AgentState | None) -> ActiveReply | None:
        """Find the reply that makes this call; None outside one."""
        for tracker, reply in reversed(_current.get()):
            if tracker is self and reply.state is state:
                return reply
        return None

    def require_scope(self, state: AgentState | None) -> Scope:
        """Return the scope that a call may use; outside a reply that of the one fixed user.

        Raises:
            InvalidScopeError: the user of the reply is unknown, or the reply is isolated.
        """
        reply = self.current(state)
        if reply is None and not callable(self._user_id):
            return to_scope(self._user_id, self._agent_id)
        if reply is not None and reply.owner is not None:
            return reply.owner
        reason = "must be known, and is not outside a reply of this agent"
        if reply is not None:
            reason = "must be known, and is not for this reply"
            if reply.is_isolated:
                reason = "must be the only one whom this agent answers"
        raise InvalidScopeError(field="user_id", value=None, reason=reason)

    def drop_foreign_notes(self, state: AgentState, memory: str, messages: list[Msg]) -> list[Msg]:
        """Leave out one memory's notes for other users; isolate the reply that would see one.

        The readers are the owners of all replies that make this call: an agent may have several
        memories, and its state may be replaced meanwhile. Outside a reply all notes stay.
        """
        replies = [reply for _, reply in _current.get()]
        if not replies:
            return messages
        here = [reply for reply in replies if reply.state is state] or replies
        readers = {one.owner.partition for one in here if one.owner is not None}
        kept = without_notes(messages, memory, lambda _reply_id, owner: owner not in readers)
        reply = self.current(state)
        if reply is not None and len(kept) < len(messages):
            reply.is_isolated = True
        return kept

    async def track(
        self, reply: ActiveReply, inner: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """Yield what the agent does for a reply; within each step `current` finds the reply."""
        self.join(reply)
        while True:
            if reply.is_isolated or reply.is_shared:
                # A forgotten reply goes on: the one that took its place is no longer alone.
                self._overlap_others(reply)
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
                self.join(reply)
            yield item

    def resume(self, state: AgentState) -> None:
        """List the reply that begins a round on a state, also one that had ended.

        Raises:
            CancelledError: it was cancelled while it waited for its memories.
        """
        reply = self.current(state)
        if reply is not None and reply.is_interrupted:
            reply.is_interrupted = False
            raise asyncio.CancelledError
        if reply is not None:
            self.join(reply)

    def join(self, reply: ActiveReply) -> None:
        """List a reply that works, for the first time or again after its end."""
        running = self._running.setdefault(id(reply.state), [])
        if reply in running:
            return
        reply.is_isolated = reply.is_isolated or reply.is_followed
        for other in reply.peers:
            if other not in running and other.scope != reply.scope:
                other.is_followed = True
        for other in running:
            # One without a consumer may be dead for good; only one at work affects others.
            other.overlap(reply)
            if other.is_stepping:
                reply.overlap(other)
        running.append(reply)
        reply.peers.add(reply)

    def leave(self, reply: ActiveReply) -> None:
        """Remove a reply from the list: it is finished, or no longer consumed."""
        running = self._running.get(id(reply.state), [])
        if reply in running:
            running.remove(reply)
        if not running:
            self._running.pop(id(reply.state), None)

    def _overlap_others(self, reply: ActiveReply) -> None:
        running = self._running.get(id(reply.state), [])
        for other in running if reply in running else ():
            if other is not reply:
                other.overlap(reply)
