"""Memory of one turn: recall for the reply, show a note, write when it is answered.

What must survive a restart in the middle of a reply, such as a wait for a confirmation, is saved
in the agent's own state. None of it raises.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentscope.event import (
    HintBlockEvent,
    ModelCallStartEvent,
    ReplyEndEvent,
    TextBlockDeltaEvent,
    TextBlockEndEvent,
    ToolResultStartEvent,
)
from agentscope.state import AgentState
from agentscope.types import ReplyFinishedReason

from commonplace import InvalidScopeError, Match, Message, Scope
from commonplace.agents import AgentMemory

from .convert import drop_notes, final_text, noted_ids, to_event, to_note, to_pending, to_turn
from .scope import ActiveReply

_ANSWERED = (ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS)
_MESSAGE_FIELDS = ("name", "text", "at")


class StreamedText:
    """The text of a reply's events since the last model call or tool result."""

    def __init__(self) -> None:
        self._blocks: dict[str, str] = {}

    def __str__(self) -> str:
        """Join the blocks by line breaks."""
        return "\n".join(self._blocks.values())

    def collect(self, event: object) -> None:
        """Take the text of an event, or of whatever else a reply yields."""
        if isinstance(event, ModelCallStartEvent | ToolResultStartEvent):
            self._blocks.clear()
        elif isinstance(event, TextBlockDeltaEvent):
            self._blocks[event.block_id] = self._blocks.get(event.block_id, "") + event.delta
        elif isinstance(event, TextBlockEndEvent) and event.text is not None:
            self._blocks[event.block_id] = event.text


@dataclass(slots=True, kw_only=True)
class AgentScopeTurn:
    """A reply from its first to its last event, or the part of one that goes on after a pause.

    Attributes:
        reply: its state, and its scope.
        name: the agent's.
        key: the middleware's, which marks its notes and its entry in the state.
        raises_cancellation: the agent is configured to raise it in a cancelled caller.
        streamed: the agent's text so far.
    """

    reply: ActiveReply
    name: str
    key: str
    memory: AgentMemory
    raises_cancellation: bool = False
    streamed: StreamedText = field(default_factory=StreamedText)
    _id: str | None = None
    _pending: list[dict[str, str]] = field(default_factory=list)
    _answers: int = 0

    @property
    def owner(self) -> Scope | None:
        """The scope to recall from and write to; None for no memory."""
        return self.reply.owner if self.memory.policy.is_static else None

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        return self.reply.state

    def begin(self, inputs: object) -> None:
        """Take the user's messages: of the input, or of the reply that goes on after a pause."""
        try:
            self._pending = to_pending(inputs)
            if not self.state.has_awaiting_tool_calls(self.name):
                return
            self._id = self.state.reply_id
            owners = _pending_owners(self.state, self.key)
            scope = self.reply.scope
            if owners and (scope is None or scope.key not in owners):
                # Another user confirms; the call that waits is still of those who asked for it.
                self.reply.is_isolated = True
            elif scope is not None:
                self._pending = _load_pending(self.state, self.key, scope)
        except Exception as error:
            self.memory.warn("input", error)

    async def recall(self, reply_id: str) -> HintBlockEvent | None:
        """Save the pending messages, recall, and put the note into the conversation.

        The only moment when that may grow: the input is in it and no tool call waits.
        """
        self._id = reply_id
        try:
            self._drop_old_notes()
            _save_pending(self.state, self.key, self.reply.owner, self._pending)
            if self.owner is None or not self._pending:
                return None
            query = "\n".join(one["text"] for one in self._pending)
            return self._show(await self.memory.arecall(self.owner, query))
        except asyncio.CancelledError:
            self.reply.is_interrupted = True
            return None
        except Exception as error:
            self.memory.warn("recall", error)
            return None

    def drop_notes_if_isolated(self) -> None:
        """Drop all notes if two users share the conversation, so that none sees the other's."""
        if not self.reply.is_isolated:
            return
        reason = "must be the only one whom the agent answers in this conversation"
        self.memory.warn(
            "separation", InvalidScopeError(field="user_id", value=None, reason=reason)
        )
        drop_notes(self.state, self.key, lambda _reply_id, _owner: True)

    async def write(self, event: ReplyEndEvent) -> None:
        """Write the user's messages and the answer; nothing for a reply that broke off.

        Returns in time even if the memory hangs; the write goes on, also when the caller is
        cancelled.
        """
        try:
            self.drop_notes_if_isolated()
            owner, messages = self.owner, self._messages(event)
            if owner is not None:
                await self.memory.awrite(messages, owner)
        except asyncio.CancelledError:
            # The answer is there, so there is nothing left to interrupt.
            if self.raises_cancellation:
                raise
        except Exception as error:
            self.memory.warn("write", error)

    def end(self) -> None:
        """Drop a transient note and the pending messages, unless the reply pauses."""
        try:
            is_parked = self.state.has_awaiting_tool_calls(self.name)
            if self._id is None or (is_parked and self._id == self.state.reply_id):
                return
            if self.memory.policy.inject == "transient":
                drop_notes(self.state, self.key, lambda reply_id, _: reply_id == self._id)
            if self.reply.scope is not None:
                _drop_pending(self.state, self.key, self.reply.scope, self._id)
        except Exception as error:
            self.memory.warn("state", error)

    def _show(self, matches: Sequence[Match]) -> HintBlockEvent | None:
        # Another reply may have taken over the conversation while this one waited.
        if self.owner is None or self._id is None or self._id != self.state.reply_id:
            return None
        policy = self.memory.policy
        if policy.inject == "persist":
            known = noted_ids(self.state, self.key)
            matches = [one for one in matches if one.record.id not in known]
        note = to_note(matches, policy, self._id, self.key, self.owner.partition)
        if note is None:
            return None
        self.state.context.append(note)
        return to_event(note, self._id)

    def _messages(self, event: ReplyEndEvent) -> list[Message]:
        reply_id = self._id or event.reply_id
        if self.reply.scope is not None:
            _drop_pending(self.state, self.key, self.reply.scope, reply_id)
        answer = str(self.streamed)
        if not self.reply.is_shared and not self._answers:
            answer = final_text(self.state, reply_id, answer)
        if event.finished_reason not in _ANSWERED or not self._pending or not answer.strip():
            return []
        # A middleware further out may have sent the reply into another round.
        self._answers += 1
        return to_turn(self._pending, answer, reply_id, self.name, self._answers)

    def _drop_old_notes(self) -> None:
        """Drop notes of earlier replies that must not stay, and every note for another user."""
        keeps = self.memory.policy.inject == "persist"
        partition = self.owner.partition if self.owner is not None else ""
        drop_notes(
            self.state,
            self.key,
            lambda reply_id, owner: reply_id != self._id and not (keeps and owner == partition),
        )


# -- pending messages in the agent's state -------------------------------------------------------
#
# `state.middle_context[key] = {scope key: {"reply_id": ..., "said": [{name, text, at}, ...]}}`.
# States are saved, loaded and edited by others: a damaged entry is ignored.


def _save_pending(
    state: AgentState, key: str, owner: Scope | None, pending: list[dict[str, str]]
) -> None:
    """Save a user's messages until the state's reply is answered; drop those of other replies."""
    kept = {one: _entries(state, key)[one] for one in _pending_owners(state, key)}
    if owner is not None:
        kept[owner.key] = {"reply_id": state.reply_id, "said": pending}
    _put_entries(state, key, kept)


def _pending_owners(state: AgentState, key: str) -> list[str]:
    """List the scope keys of the users whose messages the state's reply answers."""
    return [
        owner
        for owner, entry in _entries(state, key).items()
        if isinstance(entry, dict) and entry.get("reply_id") == state.reply_id
    ]


def _load_pending(state: AgentState, key: str, owner: Scope) -> list[dict[str, str]]:
    """Read a user's messages that the state's reply answers; empty list if unknown."""
    if owner.key not in _pending_owners(state, key):
        return []
    pending = _entries(state, key)[owner.key].get("said")
    return [
        one
        for one in (pending if isinstance(pending, list) else [])
        if isinstance(one, dict) and all(type(one.get(name)) is str for name in _MESSAGE_FIELDS)
    ]


def _drop_pending(state: AgentState, key: str, owner: Scope, reply_id: str) -> None:
    """Drop a user's messages of a reply that is over."""
    entries = _entries(state, key)
    entry = entries.get(owner.key)
    if not isinstance(entry, dict) or entry.get("reply_id") == reply_id:
        _put_entries(state, key, {one: entries[one] for one in entries if one != owner.key})


def _entries(state: AgentState, key: str) -> dict[str, Any]:
    entries = state.middle_context.get(key)
    return entries if isinstance(entries, dict) else {}


def _put_entries(state: AgentState, key: str, entries: dict[str, Any]) -> None:
    if entries:
        state.middle_context[key] = entries
    else:
        state.middle_context.pop(key, None)
