"""Memory of one turn: recall for the reply, show a note, accept what was said, add the answer.

What must survive a restart in the middle of a reply, such as a wait for a confirmation, is saved
in the agent's own state. None of it raises.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentscope.event import (
    HintBlockEvent,
    ModelCallStartEvent,
    ReplyEndEvent,
    ReplyStartEvent,
    RequireExternalExecutionEvent,
    RequireUserConfirmEvent,
    TextBlockDeltaEvent,
    TextBlockEndEvent,
    ToolResultStartEvent,
)
from agentscope.message import Msg
from agentscope.state import AgentState
from agentscope.types import ReplyFinishedReason

from commonplace import Match, Message, Scope
from commonplace.agents import AgentMemory, call, search_scope, shown

from .convert import (
    drop_notes,
    final_text,
    input_messages,
    noted_ids,
    to_conversation,
    to_event,
    to_input_turn,
    to_note,
    to_pending,
    to_text,
    to_turn,
    unanswered,
)
from .turn_owner import ActiveReply

_ANSWERED = (ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS)
_MESSAGE_FIELDS = ("name", "text", "at")
_ASKERS = ":askers"
_NOBODY = ""  # the asker where a reply's user is not known


@dataclass(slots=True, kw_only=True)
class AgentScopeTurn:
    """A reply from its first to its last event, or the part of one that goes on after a pause.

    Attributes:
        reply: its agent's state and name, and its scope.
        key: the middleware's, which marks its notes and its entry in the state.
        raises_cancellation: the agent is configured to raise it in a cancelled caller.
    """

    reply: ActiveReply
    key: str
    memory: AgentMemory
    raises_cancellation: bool = False
    _id: str | None = None
    _query: str = ""
    _asked: list[str] = field(default_factory=list)
    _pending: list[dict[str, str]] = field(default_factory=list)
    _answers: int = 0
    _streamed: dict[str, str] = field(default_factory=dict)  # texts since the last call, by block
    _is_accepted: bool = False

    @property
    def owner(self) -> Scope | None:
        """The scope to recall from and write to; None for no memory."""
        return self.reply.owner if self.memory.policy.is_static else None

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        return self.reply.state

    @property
    def is_parked(self) -> bool:
        """The reply waits for somebody outside, and goes on later."""
        is_waiting = self.state.has_awaiting_tool_calls(self.reply.name)
        return is_waiting and self._id == self.state.reply_id

    async def begin(self, inputs: object) -> None:
        """Take the messages to answer: of the input, or of the reply that goes on after a pause."""
        with self.memory.warn.catch("input"):
            # Without an input the agent goes on with what nobody answered: observed, or failed.
            observed = self._own_unanswered() if inputs is None else inputs
            self._take(input_messages(observed))
            is_message = isinstance(inputs, Msg | list)  # refused while a reply is parked
            if is_message or not self.state.has_awaiting_tool_calls(self.reply.name):
                return
            self._id = self.state.reply_id
            owners = self._answered_now()
            scope = self.reply.scope
            if owners and (scope is None or scope.key not in owners):
                # Another user confirms; the call that waits is still of those who asked for it.
                self.reply.is_isolated = True
            elif scope is not None:
                self._pending = self._load_pending(scope)
                await self._show_again(scope)
                await self.accept()

    def follow(self, item: object) -> None:
        """Follow the reply by what it yields; save in the state what must outlive this process."""
        with self.memory.warn.catch("state"):
            if isinstance(item, ModelCallStartEvent | ToolResultStartEvent):
                self._streamed.clear()
            elif isinstance(item, TextBlockDeltaEvent):
                self._streamed[item.block_id] = self._streamed.get(item.block_id, "") + item.delta
            elif isinstance(item, TextBlockEndEvent) and item.text is not None:
                self._streamed[item.block_id] = item.text
            elif isinstance(item, ReplyStartEvent):
                self._id = item.reply_id
                self._drop_old_notes()
                self._save_pending()
            elif isinstance(item, RequireUserConfirmEvent | RequireExternalExecutionEvent):
                self._save_shown()

    async def recall(self) -> HintBlockEvent | None:
        """Recall, and put the note into the conversation.

        The only moment when that may grow: the input is in it and no tool call waits.
        """
        try:
            if self.owner is None or not self._query:
                return None
            held = to_conversation(self.state, self.key, self.reply.shown)
            return self._show(await self.memory.arecall(self.owner, self._query, held))
        except asyncio.CancelledError:
            self.reply.is_interrupted = True
            return None
        except Exception as error:
            self.memory.warn("recall", error)
            return None

    async def accept(self) -> None:
        """Accept what was said to the agent, before its model is called."""
        self._is_accepted = True
        try:
            if self.owner is not None:
                said = to_input_turn(self._pending, self._id or "")
                await self.memory.aaccept(said, self.owner, self.reply.shown)
        except asyncio.CancelledError:
            self.reply.is_interrupted = True
        except Exception as error:
            self.memory.warn("write", error)

    def drop_notes_if_isolated(self) -> None:
        """Drop all notes if two users share the conversation, so that none sees the other's."""
        if not self.reply.is_isolated:
            return
        self.memory.warn("separation", self.reply.isolation_error())
        drop_notes(self.state, self.key, lambda _reply_id, _owner: True)

    async def write(self, event: ReplyEndEvent) -> None:
        """Write the answer with what was said to the agent; that alone if the reply broke off.

        Returns in time even if the memory hangs; the write goes on, also when the caller is
        cancelled.
        """
        try:
            self.drop_notes_if_isolated()
            owner, messages = self.owner, self._messages(event)
            if owner is None or not messages:
                return
            if event.finished_reason == ReplyFinishedReason.INTERRUPTED:
                self.memory.write_later(messages, owner)  # its caller is being cancelled
            else:
                await self.memory.awrite(messages, owner)
        except asyncio.CancelledError:
            # The answer is there, so there is nothing left to interrupt.
            if self.raises_cancellation:
                raise
        except Exception as error:
            self.memory.warn("write", error)

    def leave(self) -> None:
        """Write what was said to the agent, for a reply that broke off before its first event."""
        with self.memory.warn.catch("write"):
            if self.owner is not None and not self._is_accepted and not self.is_parked:
                self.memory.write_later(to_input_turn(self._pending, ""), self.owner)

    def end(self) -> None:
        """Drop a transient note and the pending messages, unless the reply pauses."""
        self.reply.is_over = True
        with self.memory.warn.catch("state"):
            if self._id is None or self.is_parked:
                return
            if self.memory.policy.inject == "transient":
                drop_notes(self.state, self.key, lambda reply_id, _: reply_id == self._id)
            self._save_askers()
            self._drop_pending(self._id)

    @property
    def _asker(self) -> str:
        return _NOBODY if self.reply.scope is None else self.reply.scope.key

    def _own_unanswered(self) -> list[Msg]:
        """List what nobody answered, without what is known to be asked by another user."""
        askers = self._load_askers()
        return [
            message
            for message in unanswered(self.state.context, self.reply.name)
            if askers.get(message.id, self._asker) == self._asker
        ]

    def _save_askers(self) -> None:
        """Save who asked what is still unanswered, as after a reply that failed."""
        askers = dict.fromkeys(self._asked, self._asker) | self._load_askers()
        left = {message.id for message in unanswered(self.state.context, self.reply.name)}
        kept = {message_id: asker for message_id, asker in askers.items() if message_id in left}
        self._put(f"{self.key}{_ASKERS}", kept)

    def _take(self, messages: Sequence[Msg]) -> None:
        self._asked = [message.id for message in messages]
        self._query = "\n".join(to_text(message) for message in messages)
        kept = [message for message in messages if self._is_kept(message)]
        self._pending = to_pending(kept, self.state.context, self.reply.name)

    def _is_kept(self, message: Msg) -> bool:
        """Return whether a message is stored: of another agent only under that agent's name."""
        if message.role == "assistant":
            return not self.reply.is_inner
        return not self.reply.is_from_agent(message.name, to_text(message))

    def _show(self, matches: Sequence[Match]) -> HintBlockEvent | None:
        # Another reply may have taken over the conversation while this one waited.
        if self.owner is None or self._id is None or self._id != self.state.reply_id:
            return None
        policy = self.memory.policy
        if policy.inject == "persist":
            known = noted_ids(self.state, self.key)
            matches = [match for match in matches if match.record.id not in known]
        note = to_note(matches, policy, self._id, self.key, self.owner.partition)
        if note is None:
            return None
        self.reply.shown.add(shown(matches, policy))
        self.state.context.append(note)
        return to_event(note, self._id)

    async def _show_again(self, scope: Scope) -> None:
        """Let the tools change what the part of the reply before the pause has shown."""
        policy = self.memory.policy
        saved = _list(self._entries().get(scope.key), "shown") if policy.shows_ids else []
        if ids := [one for one in saved if type(one) is str]:
            read = call("get_many", ids, search_scope(scope, policy))
            self.reply.shown.add_records(await self.memory.acall(read, policy.recall_timeout))

    def _save_shown(self) -> None:
        owner = self.reply.owner
        if owner is None or not self.memory.policy.shows_ids:
            return
        entry = self._entries().get(owner.key)
        if entry is not None:
            entry["shown"] = self.reply.shown.ids

    def _messages(self, event: ReplyEndEvent) -> list[Message]:
        reply_id = self._id or event.reply_id
        self._drop_pending(reply_id)
        answer = "\n".join(self._streamed.values())
        if not self.reply.is_shared and not self._answers:
            answer = final_text(self.state, reply_id, answer)
        if event.finished_reason not in _ANSWERED or not answer.strip():
            return [] if self._answers else to_input_turn(self._pending, reply_id)
        self.reply.remember_answer(answer)
        if not self._pending:
            return []
        # A middleware further out may have sent the reply into another round.
        self._answers += 1
        return to_turn(self._pending, answer, reply_id, self.reply.name, self._answers)

    def _drop_old_notes(self) -> None:
        """Drop notes of earlier replies that must not stay, and every note for another user."""
        keeps = self.memory.policy.inject == "persist"
        partition = self.owner.partition if self.owner is not None else ""
        drop_notes(
            self.state,
            self.key,
            lambda reply_id, owner: reply_id != self._id and not (keeps and owner == partition),
        )

    # -- pending messages in the agent's state -------------------------------------------------
    #
    # `state.middle_context[key] = {scope key: {"reply_id": ..., "said": [{name, text, at, id,
    # role}, ...], "shown": [record id, ...]}}`, the latter only of a reply that is parked.
    # `state.middle_context[key + ":askers"] = {message id: scope key}`, of what a failed reply left
    # unanswered; the scope key is empty where its user was not known.
    # States are saved, loaded and edited by others: a damaged entry is ignored.

    def _save_pending(self) -> None:
        """Save the messages until the state's reply is answered; drop those of other replies."""
        kept = self._answered_now()
        if self.reply.owner is not None:
            kept[self.reply.owner.key] = {"reply_id": self.state.reply_id, "said": self._pending}
        self._put(self.key, kept)

    def _load_pending(self, scope: Scope) -> list[dict[str, str]]:
        """Read a user's messages that the state's reply answers; empty list if unknown."""
        return [
            message
            for message in _list(self._answered_now().get(scope.key), "said")
            if isinstance(message, dict)
            and all(type(message.get(name)) is str for name in _MESSAGE_FIELDS)
        ]

    def _load_askers(self) -> dict[str, str]:
        """Read who asked what of the messages that nobody answered, as far as it is known."""
        saved = self._saved(f"{self.key}{_ASKERS}")
        found = {message_id: asker for message_id, asker in saved.items() if type(asker) is str}
        for asker, entry in self._entries().items():
            for message in _list(entry, "said"):
                if isinstance(message, dict) and type(message.get("id")) is str:
                    found.setdefault(message["id"], asker)
        return found

    def _drop_pending(self, reply_id: str) -> None:
        """Drop the user's messages of a reply that is over."""
        entries = self._entries()
        if entries.get(self._asker, {}).get("reply_id") == reply_id:
            del entries[self._asker]
            self._put(self.key, entries)

    def _answered_now(self) -> dict[str, dict[str, Any]]:
        """Read the entries of the users whose messages the state's reply answers, by scope keys."""
        reply_id, entries = self.state.reply_id, self._entries()
        return {owner: one for owner, one in entries.items() if one.get("reply_id") == reply_id}

    def _entries(self) -> dict[str, dict[str, Any]]:
        saved = self._saved(self.key)
        return {owner: entry for owner, entry in saved.items() if isinstance(entry, dict)}

    def _saved(self, key: str) -> dict[str, Any]:
        saved = self.state.middle_context.get(key)
        return saved if isinstance(saved, dict) else {}

    def _put(self, key: str, entries: dict[str, Any]) -> None:
        if entries:
            self.state.middle_context[key] = entries
        else:
            self.state.middle_context.pop(key, None)


def _list(entry: Mapping[str, Any] | None, name: str) -> list[Any]:
    found = None if entry is None else entry.get(name)
    return found if isinstance(found, list) else []
