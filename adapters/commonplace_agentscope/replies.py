"""Which replies run, for whom, and whether they share a conversation they should not share.

Whose memory a tool call reaches hangs on the reply that makes the call, in its own context: not on
the agent, whose state two users may share, and not on who came last.
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
from commonplace.agents.session import WarnOnce

from .marks import without_notes
from .scopes import scope_of, to_scope

if TYPE_CHECKING:
    from agentscope.agent import Agent


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Reply:
    """One reply of an agent, or a part of one that waited in between.

    Attributes:
        scope: whose memory it is about; None if nobody said so.
        peers: all that worked in this conversation and may go on, itself among them.
        is_stepping: the agent works on it; otherwise whoever listens has the word.
        is_shared: another reply to the same user works in the same conversation.
        is_cut: so does one to another user, so it has no memory from here on.
        is_followed: one to another user came after it had ended; should it go on, it is cut.
        is_interrupted: it was cancelled while it waited for its memories.
    """

    state: AgentState
    scope: Scope | None
    peers: "WeakSet[Reply]"
    is_stepping: bool = False
    is_shared: bool = False
    is_cut: bool = False
    is_followed: bool = False
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
        # A state stays alive while a reply on it does, so its id is its own; likewise above.
        self._peers: WeakValueDictionary[int, WeakSet[Reply]] = WeakValueDictionary()

    def begin(self, agent: "Agent", warn: WarnOnce) -> Reply:
        """Take a reply up, for nobody if it cannot be told for whom."""
        scope = None
        try:
            scope = scope_of(self._user_id, self._agent_id, agent)
        except Exception as error:  # noqa: BLE001 -- nobody's memory is better than a lost reply
            warn("scope", error)
        peers = self._peers.setdefault(id(agent.state), WeakSet())
        return Reply(state=agent.state, scope=scope, peers=peers)

    def current(self, state: AgentState | None) -> Reply | None:
        """Find the reply in whose course this is called; None outside one."""
        for replies, reply in reversed(_current.get()):
            if replies is self and reply.state is state:
                return reply
        return None

    def own(self, state: AgentState, memory: str, messages: list[Msg]) -> list[Msg]:
        """Leave a memory's notes for others out of what a model is to read; cut who was shown one.

        Its readers are the owners of all replies in whose course this is called: an agent may have
        several memories, and its state may be replaced meanwhile. Outside a reply all stays.
        """
        replies = [reply for _, reply in _current.get()]
        if not replies:
            return messages
        here = [reply for reply in replies if reply.state is state] or replies
        readers = {one.owner.partition for one in here if one.owner is not None}
        kept = without_notes(messages, memory, lambda _turn, owner: owner not in readers)
        reply = self.current(state)
        if reply is not None and len(kept) < len(messages):
            reply.is_cut = True
        return kept

    def owner(self, state: AgentState | None) -> Scope:
        """Tell whose memory a call may touch; outside a reply that is the one fixed user's.

        Raises:
            InvalidScopeError: the reply has no owner, or none of its own any more.
        """
        reply = self.current(state)
        if reply is None and not callable(self._user_id):
            return to_scope(self._user_id, self._agent_id)
        if reply is not None and reply.owner is not None:
            return reply.owner
        reason = "is unknown outside a reply of this agent"
        if reply is not None:
            reason = "is not the only one of this agent" if reply.is_cut else "is unknown"
        raise InvalidScopeError(field="user_id", value=None, reason=reason)

    async def steps(
        self, reply: Reply, inner: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """Pass on what the agent does for a reply, in a context that tells whose reply it is."""
        self.join(reply)
        while True:
            if reply.is_cut or reply.is_shared:
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
                self.join(reply)
            yield item

    def go_on(self, state: AgentState) -> None:
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

    def join(self, reply: Reply) -> None:
        """List a reply that works, for the first time or again after its end."""
        running = self._running.setdefault(id(reply.state), [])
        if reply in running:
            return
        reply.is_cut = reply.is_cut or reply.is_followed
        for other in reply.peers:
            if other not in running and other.scope != reply.scope:
                other.is_followed = True
        for other in running:
            # One that nobody listens to may be dead for good; only one at work disturbs others.
            other.meet(reply)
            if other.is_stepping:
                reply.meet(other)
        running.append(reply)
        reply.peers.add(reply)

    def leave(self, reply: Reply) -> None:
        """Let a reply go: it is finished, or nobody listens any more."""
        running = self._running.get(id(reply.state), [])
        if reply in running:
            running.remove(reply)
        if not running:
            self._running.pop(id(reply.state), None)

    def _disturb(self, reply: Reply) -> None:
        running = self._running.get(id(reply.state), [])
        for other in running if reply in running else ():
            if other is not reply:
                other.meet(reply)
