"""One reply's life with its memory: recalled for, shown a note, written when it was answered.

What must survive a restart in the middle of a reply, such as a wait for a confirmation, is kept in
the agent's own state. None of it raises.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
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
from agentscope.message import HintBlock
from agentscope.state import AgentState
from agentscope.types import ReplyFinishedReason

from commonplace.handlers import recall
from commonplace.memory import Memory
from commonplace.model import Match, Message, Scope
from commonplace.policy import Policy

from .convert import final_text, holds_note, note_turn, noted, to_exchange, to_note

logger = logging.getLogger("commonplace_agentscope")

WRITE_PATIENCE = 30.0
_ANSWERED = (ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS)


class Warn:
    """Tells the log of a failure, each kind once: a memory that is down is down every turn."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, what: str, error: Exception) -> None:
        """Log that `what` failed, unless it failed in the same way before."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._seen:
            self._seen.add(kind)
            logger.warning("memory %s failed, the agent goes on without it: %s", what, error)


@dataclass(slots=True, kw_only=True)
class Turn:
    """A reply from its first to its last event, also a part of one that waited in between.

    Attributes:
        key: the middleware's place in the state.
        scope: None for no recalling and no writing.
        said: what the user said, as `convert.to_pending` describes it; empty on a resumption.
        reach: opens the memory.
        writes: holds running writes, so that a cancelled reply does not cancel them.
        warn: tells the log what failed.
    """

    state: AgentState
    name: str
    key: str
    scope: Scope | None
    said: list[dict[str, str]]
    policy: Policy
    reach: Callable[[], Awaitable[Memory]]
    writes: set[asyncio.Task[None]]
    warn: Warn
    _heard: dict[str, str] = field(default_factory=dict)
    _held: list[dict[str, str]] = field(default_factory=list)
    _answers: int = 0
    _is_slow: bool = False

    def hear(self, event: object) -> None:
        """Collect the text since the last model call or tool result."""
        if isinstance(event, ModelCallStartEvent | ToolResultStartEvent):
            self._heard.clear()
        elif isinstance(event, TextBlockDeltaEvent):
            self._heard[event.block_id] = self._heard.get(event.block_id, "") + event.delta
        elif isinstance(event, TextBlockEndEvent) and event.text is not None:
            self._heard[event.block_id] = event.text

    async def start(self) -> HintBlockEvent | None:
        """Keep what was said until the answer is there, recall, and put the note in its place.

        The one moment when the context may grow: the input is in it and no tool call waits.
        """
        if self.policy.inject == "replace":
            self._drop(lambda turn: turn != self.state.reply_id)
        if self.scope is None:
            return None
        held = self.state.middle_context.setdefault(self.key, {})
        held.pop(self.scope.key, None)
        if not self.said:
            return None
        held[self.scope.key] = {"reply_id": self.state.reply_id, "said": self.said}
        try:
            return self._show(await self._recall(self.scope))
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self._is_slow = isinstance(error, TimeoutError)
            self.warn("recall", error)
            return None

    async def finish(self, event: ReplyEndEvent) -> None:
        """Write what was said and answered; nothing for a reply that was cut off."""
        try:
            messages = self._exchange(event)
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.warn("write", error)
            return
        if not messages or self.scope is None:
            return
        task = asyncio.create_task(self._write(messages, self.scope))
        self.writes.add(task)
        task.add_done_callback(self.writes.discard)
        patience = self.policy.recall_timeout if self._is_slow else WRITE_PATIENCE
        # `wait` leaves the task running when the reply is cancelled or the patience is over.
        _, late = await asyncio.wait({task}, timeout=patience)
        if late:
            self.warn("write", TimeoutError(f"still running after {patience:g} s"))

    def leave(self) -> None:
        """Take a transient note away, unless the reply waits and goes on later."""
        if self.policy.inject == "transient" and not self.state.has_awaiting_tool_calls(self.name):
            self._drop(lambda turn: turn == self.state.reply_id)

    async def _recall(self, scope: Scope) -> list[Match]:
        memory = await self.reach()
        query = "\n".join(one["text"] for one in self.said)
        matches = await recall(memory, scope, query, self.policy)
        if self.policy.inject != "persist":
            return list(matches)
        known = noted(self.state.context)
        return [one for one in matches if one.record.id not in known]

    def _show(self, matches: list[Match]) -> HintBlockEvent | None:
        note = to_note(matches, self.policy, self.state.reply_id)
        if note is None:
            return None
        self.state.context.append(note)
        hint = note.content[0]
        assert isinstance(hint, HintBlock)  # noqa: S101 -- for the type checker; to_note made it
        return HintBlockEvent(
            reply_id=self.state.reply_id, block_id=hint.id, source=hint.source, hint=hint.hint
        )

    def _exchange(self, event: ReplyEndEvent) -> list[Message]:
        if self.scope is None:
            return []
        held: dict[str, Any] = self.state.middle_context.get(self.key, {})
        kept = held.pop(self.scope.key, None)
        if kept and kept["reply_id"] == event.reply_id:
            self._held = kept["said"]
        answer = final_text(self.state, "\n".join(self._heard.values()))
        if event.finished_reason not in _ANSWERED or not self._held or not answer.strip():
            return []
        # A middleware further out may have sent the reply into another round.
        self._answers += 1
        suffix = f":{self._answers}" if self._answers > 1 else ""
        return to_exchange(self._held, answer, f"{event.reply_id}{suffix}", self.name)

    async def _write(self, messages: list[Message], scope: Scope) -> None:
        try:
            memory = await self.reach()
            await memory.aadd(messages, scope, wait=self.policy.await_write)
        except Exception as error:  # noqa: BLE001 -- a reply outlives its memory
            self.warn("write", error)

    def _drop(self, is_meant: Callable[[str | None], bool]) -> None:
        self.state.context[:] = [
            one for one in self.state.context if not (holds_note(one) and is_meant(note_turn(one)))
        ]
