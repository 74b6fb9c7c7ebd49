"""One reply's life with its memory: recalled for, shown a note, written when it was answered.

What must survive a restart in the middle of a reply, such as a wait for a confirmation, is kept in
the agent's own state. None of it raises.
"""

import asyncio
from dataclasses import dataclass, field

from agentscope.event import HintBlockEvent, ReplyEndEvent
from agentscope.state import AgentState
from agentscope.types import ReplyFinishedReason

from commonplace import InvalidScopeError, Match, Message, Scope
from commonplace.agents.handlers import recall, within
from commonplace.agents.policy import WRITE_PATIENCE, Policy

from .convert import final_text, to_event, to_exchange, to_note, to_pending
from .heard import Heard
from .marks import asked_by, drop_notes, drop_question, keep_question, kept_question, noted
from .opening import Opening
from .replies import Reply

ACCEPT_PATIENCE = 2.0
_ANSWERED = (ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS)


@dataclass(slots=True, kw_only=True)
class Turn:
    """A reply from its first to its last event, also a part of one that waited in between.

    Attributes:
        reply: whose memory it is about.
        name: the agent's.
        key: tells the middleware's marks in the state from those of others.
        opening: reaches the memory.
        heard: what the agent said so far.
        raises: a cancelled caller wants to be told of it.
    """

    reply: Reply
    name: str
    key: str
    policy: Policy
    opening: Opening
    raises: bool = False
    heard: Heard = field(default_factory=Heard)
    _id: str | None = None
    _said: list[dict[str, str]] = field(default_factory=list)
    _answers: int = 0
    _is_slow: bool = False

    @property
    def owner(self) -> Scope | None:
        """Who is recalled for and written about; None for nobody."""
        return self.reply.owner if self.policy.is_static else None

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        return self.reply.state

    def begin(self, inputs: object) -> None:
        """Take what the user says, or what he said before the reply had to wait."""
        try:
            self._said = to_pending(inputs)
            if not self.state.has_awaiting_tool_calls(self.name):
                return
            self._id = self.state.reply_id
            asked = asked_by(self.state, self.key)
            scope = self.reply.scope
            if asked and (scope is None or scope.key not in asked):
                # Somebody else confirms; what waits to be done is still of those who asked.
                self.reply.is_cut = True
            elif scope is not None:
                self._said = kept_question(self.state, self.key, scope)
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.opening.warn("input", error)

    async def start(self, reply_id: str) -> HintBlockEvent | None:
        """Keep what was said until the answer is there, recall, and put the note in its place.

        The one moment when the context may grow: the input is in it and no tool call waits.
        """
        self._id = reply_id
        try:
            self._sweep()
            keep_question(self.state, self.key, self.reply.owner, self._said)
            if self.owner is None or not self._said:
                return None
            limit = self.policy.recall_timeout
            return self._show(await within(limit, "recall", self._recall(self.owner)))
        except asyncio.CancelledError:
            self.reply.is_interrupted = True
            return None
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self._is_slow = isinstance(error, TimeoutError)
            self.opening.warn("recall", error)
            return None

    def expel(self) -> None:
        """Drop all notes if two users share the conversation, lest one sees the other's."""
        if not self.reply.is_cut:
            return
        reason = "is not the only one whom the agent answers in this conversation"
        self.opening.warn(
            "separation", InvalidScopeError(field="user_id", value=None, reason=reason)
        )
        drop_notes(self.state, self.key, lambda _turn, _owner: True)

    async def finish(self, event: ReplyEndEvent) -> None:
        """Write what was said and answered; nothing for a reply that was cut off.

        Returns in time even if the memory hangs; the write goes on, also when the caller leaves.
        """
        try:
            self.expel()
            owner, messages = self.owner, self._exchange(event)
            if owner is not None and messages:
                await self.opening.writes.see_off(self._write(messages, owner), self._patience())
        except asyncio.CancelledError:
            # The answer is there, so there is nothing left to interrupt.
            if self.raises:
                raise
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.opening.warn("write", error)

    def leave(self) -> None:
        """Take a transient note and the question away, unless the reply waits and goes on later."""
        try:
            is_parked = self.state.has_awaiting_tool_calls(self.name)
            if self._id is None or (is_parked and self._id == self.state.reply_id):
                return
            if self.policy.inject == "transient":
                drop_notes(self.state, self.key, lambda turn, _: turn == self._id)
            if self.reply.scope is not None:
                drop_question(self.state, self.key, self.reply.scope, self._id)
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.opening.warn("state", error)

    async def _recall(self, owner: Scope) -> list[Match]:
        memory = await self.opening.reach()
        query = "\n".join(one["text"] for one in self._said)
        matches = await recall(memory, owner, query, self.policy)
        if self.policy.inject != "persist":
            return list(matches)
        known = noted(self.state, self.key)
        return [one for one in matches if one.record.id not in known]

    def _show(self, matches: list[Match]) -> HintBlockEvent | None:
        # Another reply may have taken the conversation over while this one waited.
        if self.owner is None or self._id is None or self._id != self.state.reply_id:
            return None
        note = to_note(matches, self.policy, self._id, self.key, self.owner.partition)
        if note is None:
            return None
        self.state.context.append(note)
        return to_event(note, self._id)

    def _exchange(self, event: ReplyEndEvent) -> list[Message]:
        reply_id = self._id or event.reply_id
        if self.reply.scope is not None:
            drop_question(self.state, self.key, self.reply.scope, reply_id)
        answer = self.heard.text
        if not self.reply.is_shared and not self._answers:
            answer = final_text(self.state, reply_id, answer)
        if event.finished_reason not in _ANSWERED or not self._said or not answer.strip():
            return []
        # A middleware further out may have sent the reply into another round.
        self._answers += 1
        return to_exchange(self._said, answer, reply_id, self.name, self._answers)

    async def _write(self, messages: list[Message], owner: Scope) -> None:
        try:
            memory = await self.opening.reach()
            await memory.aadd(messages, owner, wait=self.policy.await_write)
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.opening.warn("write", error)

    def _patience(self) -> float:
        patience = WRITE_PATIENCE if self.policy.await_write else ACCEPT_PATIENCE
        is_failing = self._is_slow or self.opening.writes.is_late
        return min(patience, self.policy.recall_timeout) if is_failing else patience

    def _sweep(self) -> None:
        """Drop notes of earlier replies that should be gone, and every note for somebody else."""
        keeps = self.policy.inject == "persist"
        partition = self.owner.partition if self.owner is not None else ""
        drop_notes(
            self.state,
            self.key,
            lambda turn, owner: turn != self._id and not (keeps and owner == partition),
        )
