"""Scope of each running reply, its isolation from replies to other users, and who calls for it.

The memory that a tool call may use is decided by the reply that makes the call, in its own context
variable: not by the agent, whose state two users may share, and not by the latest reply.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from agentscope.agent import Agent
from agentscope.event import ModelCallStartEvent
from agentscope.message import Msg
from agentscope.state import AgentState

from commonplace import InvalidScopeError, Scope
from commonplace.agents import (
    LRUCache,
    ShownRecords,
    StackFrame,
    StackRule,
    UnknownCallerError,
    WarnOnce,
    find_scope,
    read_stack,
    to_scope,
)

from .convert import without_notes

_Id = str | int | None
UserId = str | int | Callable[[Agent], _Id | Awaitable[_Id]]

_CALLERS = StackRule(
    checked_with="agentscope 2.0.10 to 2.0.11",
    modules=("agentscope.pipeline", "agentscope.sop"),
    caller="agentscope.agent.",
    package="agentscope.",
)
_PIPELINES = ("agentscope.pipeline.", "agentscope.sop.")
# To which of its agents a pipeline gives the user's task; the others get what it writes around it.
_FIRST = {"TeamPipeline": "leader", "GoalPipeline": "executor", "SOPStep": "executor"}
_WITHOUT_AGENTS = "SOPEngine"


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class ActiveReply:
    """One reply of an agent, or the part of one that goes on after a pause.

    Attributes:
        state, name: the agent's.
        scope: of the user it answers; None if that is unknown.
        peers: all replies that worked in this conversation and may go on, itself included.
        is_running: it is begun, and neither finished nor left by its consumer.
        is_stepping: the agent works on it; otherwise the consumer of its events has control.
        is_shared: another reply to the same user works in the same conversation.
        is_isolated: one to another user does, so it has no memory from here on.
        is_followed: one to another user came after its end; isolated if it goes on.
        is_interrupted: it was cancelled while it waited for its memories.
        is_inner: another agent calls for it, so what it is told are no words of the user.
        is_over: nobody consumes it any more.
        shown: what its model was shown of the memory.
    """

    state: AgentState
    name: str
    scope: Scope | None
    peers: "WeakSet[ActiveReply]"
    is_inner: bool = False
    is_over: bool = False
    shown: ShownRecords = field(default_factory=ShownRecords)
    is_running: bool = False
    is_stepping: bool = False
    is_shared: bool = False
    is_isolated: bool = False
    is_followed: bool = False
    is_interrupted: bool = False

    @property
    def owner(self) -> Scope | None:
        """The scope that it may read and write now; None for no memory at all."""
        return None if self.is_isolated else self.scope

    def isolation_error(self) -> InvalidScopeError:
        """Make the error for a reply that has no memory because of another user's."""
        return InvalidScopeError(
            field="user_id",
            value=None if self.scope is None else self.scope.user_id,
            reason="has no memory here: the agent answers another user in this conversation",
            hint="Give each user an agent and a state of their own, or answer them in turn.",
        )

    def is_from_agent(self, name: str, text: str) -> bool:
        """Return whether another agent wrote a message, whatever its role says."""
        if self.is_inner:
            return True
        author = _authors.get(self._key(text))
        # A character of Chinese tells as much as three letters.
        is_telling = len(text.encode()) >= _TELLING or name == author
        return author not in (None, self.name) and is_telling

    def remember_answer(self, text: str) -> None:
        """Remember what the agent answered: it may be handed to another one as the user's words."""
        _authors[self._key(text)] = self.name

    def _key(self, text: str) -> tuple[str | None, bytes]:
        user_id = None if self.scope is None else self.scope.user_id
        digest = hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()
        return user_id, digest

    def overlap(self, other: "ActiveReply") -> None:
        """Record that another reply works in the same conversation."""
        if self.scope == other.scope:
            self.is_shared = True
        else:
            self.is_isolated = True


_current: ContextVar[tuple[tuple["ReplyTracker", ActiveReply], ...]] = ContextVar(
    "replies", default=()
)
# Who wrote an answer: of a user, by the answer's hash.
_authors: LRUCache[tuple[str | None, bytes], str] = LRUCache(4_096)
_TELLING = 40  # bytes of a text that nobody else writes by chance


def _is_called_by_agent(agent: Agent, warn: WarnOnce) -> bool:
    """Return whether this reply of an agent is part of what another agent does.

    Of an agent with a memory the context variable knows, in its tasks and threads too. AgentScope
    leaves no other trace of an agent that has none than the call stack. True where that does not
    tell, because AgentScope has changed.
    """
    if any(not reply.is_over and reply.state is not agent.state for _, reply in _current.get()):
        return True
    try:
        return any(_is_other(agent, frame) for frame in read_stack(_CALLERS))
    except UnknownCallerError as error:
        warn("caller", error)
        return True


def _is_other(agent: Agent, frame: StackFrame) -> bool:
    """Return whether a function is another agent's, or a pipeline's for one that it tells."""
    caller = frame.variables.get("self")
    if caller is not None and frame.module.startswith(_PIPELINES):
        names = [kind.__name__ for kind in type(caller).__mro__]
        if _WITHOUT_AGENTS in names:
            return False
        found = [getattr(caller, _FIRST[name], None) for name in names if name in _FIRST]
        if not found or found[0] is None:
            missing = f"{type(caller).__name__} is no pipeline that is known"
            raise UnknownCallerError(rule=_CALLERS, missing=missing)
        caller = found[0]
    return isinstance(caller, Agent) and caller is not agent


class ReplyTracker:
    """The running replies of one middleware, by conversation."""

    def __init__(self, user_id: UserId, agent_id: str | int | None) -> None:
        self._user_id = user_id
        self._agent_id = agent_id
        # A state stays alive while a reply on it does, so its id is its own.
        self._peers: WeakValueDictionary[int, WeakSet[ActiveReply]] = WeakValueDictionary()

    async def begin(self, agent: Agent, warn: WarnOnce) -> ActiveReply:
        """Make a reply in the agent's session; without a scope if its user is not named."""
        is_inner = _is_called_by_agent(agent, warn)
        session_id = agent.state.session_id
        scope = await find_scope(self._user_id, self._agent_id, session_id, warn, agent)
        return ActiveReply(
            state=agent.state,
            name=agent.name,
            scope=scope,
            peers=self._peers.setdefault(id(agent.state), WeakSet()),
            is_inner=is_inner,
        )

    def current(self, state: AgentState | None) -> ActiveReply | None:
        """Find the reply that makes this call; None outside one."""
        for tracker, reply in reversed(_current.get()):
            if tracker is self and reply.state is state:
                return reply
        return None

    def find(self, state: AgentState | None) -> tuple[Scope, ShownRecords]:
        """Find the scope that a call may use, and what its model was shown in this reply.

        Outside a reply it is the scope of the one fixed user, who was shown nothing.

        Raises:
            InvalidScopeError: the user of the reply is unknown, or the reply is isolated.
        """
        reply = self.current(state)
        if reply is None and not callable(self._user_id):
            return to_scope(self._user_id, self._agent_id), ShownRecords()
        if reply is not None and reply.owner is not None:
            return reply.owner, reply.shown
        if reply is not None and reply.is_isolated:
            raise reply.isolation_error()
        where = "for this reply" if reply is not None else "outside a reply of this agent"
        reason = f"must be known, and is not {where}"
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
        readers = {reply.owner.partition for reply in here if reply.owner is not None}
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
            if reply.is_running and (reply.is_isolated or reply.is_shared):
                # A forgotten reply goes on: the one that took its place is no longer alone.
                for other in reply.peers:
                    if other.is_running and other is not reply:
                        other.overlap(reply)
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
        if reply.is_running:
            return
        reply.is_isolated = reply.is_isolated or reply.is_followed
        for other in reply.peers:
            if other.is_running:
                other.overlap(reply)
                # One without a consumer may be dead for good; only one at work affects others.
                if other.is_stepping:
                    reply.overlap(other)
            elif other.scope != reply.scope:
                other.is_followed = True
        reply.is_running = True
        reply.peers.add(reply)

    def leave(self, reply: ActiveReply) -> None:
        """Remove a reply from the list: it is finished, or no longer consumed."""
        reply.is_running = False
