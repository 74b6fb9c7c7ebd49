"""Memory wrapper with timeouts that never fails a turn, and tells what happened.

An agent must survive a broken memory. Recalls and writes of a turn are counted and logged as
`health` says, and the turn continues; tool calls raise, so that the model sees the error.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from ..concurrency import LRUCache, await_within, call_within, start_call
from ..errors import InvalidRecordError, InvalidScopeError, RecordNotFoundError
from ..events import EventName, MemoryEvent, OnEvent
from ..retrieval.forget_requests import ForgetSplit, split_forget_requests
from ..sans_io import Call, Plan, aon, arun_plan, call, on, run_plan
from ..types import Match, Message, Record, Scope, WriteResult, now
from ..validation import check_function
from .framework_values import is_visible
from .health import MISCONFIGURED, MemoryCounters, MemoryHealth, WarnOnce
from .lazy_memory import LazyMemory, MemorySource, acquire_memory
from .note import ShownRecords
from .note_log import NoteLog
from .policy import WRITE_PATIENCE, Policy, check_policy
from .recall import Conversation, Rule, covered_turns, recall, shorten
from .retraction import is_known, retract
from .tool_calls import ToolAnswer, run_tool
from .turns import (
    Accepted,
    InTime,
    TurnWrite,
    accept_turn,
    end_turn,
    let_wait,
    may_be_tried_again,
    turn_record_ids,
)

T = TypeVar("T")
ACCEPT_PATIENCE = 2.0
_ACCEPT_SECONDS = 0.25  # for what comes before a write waits
_SUMMARY = 8_000  # characters
_TURNS = 200  # among which are those that a summary stands for
_HANDLED = 1_000  # requests to forget that are not carried out twice
_REPLAYED = timedelta(hours=1)  # a turn said earlier is history that is written again
_MISTAKES = (InvalidRecordError, InvalidScopeError, RecordNotFoundError)  # of a model's call


class _TimedCalls(NamedTuple):
    """Calls of the memory, or of one of its sessions, with a time limit for all of them."""

    seconds: float
    name: str
    plan: Plan[Any]
    session: Scope | None = None


def _only(step: Call) -> Plan[Any]:
    return (yield step)


@dataclass(slots=True, kw_only=True)
class CallOutcome:
    """What came of a call: how many memories were found or written, and the event if another."""

    count: int
    name: EventName | None = None


class AgentMemory:
    """A memory as an agent uses it; serves any number of turns at once, in threads and on loops.

    Args:
        memory: an open memory, the path of its folder, or None for the environment's location; or
            one that is opened on first use, whose users then count together.
        policy: how the agent uses it; `Policy()` when None.
        log: the name of the log, which is the adapter's package.
        keeps_notes: False refuses a policy with notes that stay, for which a framework has no
            place.
        first_recall_timeout: seconds that recalls and searches may take until one is done, as the
            first may load a model; `policy.recall_timeout` when None.
        on_event: is called with each event.

    Raises:
        WrongTypeError, MemoryClosedError: the memory is something else, or closed.
        InvalidRecordError: the policy or the function is none.

    Attributes:
        warn: logs a condition once, such as a turn that names no user.
    """

    def __init__(
        self,
        memory: "MemorySource | LazyMemory",
        policy: Policy | None,
        *,
        log: str,
        keeps_notes: bool = True,
        first_recall_timeout: float | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self.lazy: LazyMemory
        if isinstance(memory, LazyMemory):
            self.lazy, self._health = memory, memory.health
        else:
            self.lazy, self._health = acquire_memory(self, memory), MemoryHealth()
        self.policy: Policy = Policy() if policy is None else policy
        check_policy(self.policy, keeps_notes=keeps_notes)
        if on_event is not None:
            check_function("on_event", on_event)
        self.warn: WarnOnce = WarnOnce(log, self._health.warned)
        self._log = logging.getLogger(log)
        self._on_event = on_event
        is_logged = self.policy.note_log != "off"
        self._note_log = NoteLog(self.lazy, self.policy, self.warn) if is_logged else None
        self._first_recall_timeout = first_recall_timeout
        self._is_slow = False
        self._forgot: set[str] = set()  # keys of scopes whose turn asks to, and is not answered
        self._summaries = LRUCache[str, str](_HANDLED)  # the last by the key of its scope
        self._handled = LRUCache[tuple[str | None, ...], datetime](_HANDLED)
        self._known = LRUCache[tuple[str, str], bool](_HANDLED)  # by the scope's key and the text

    def with_policy(self, policy: Policy) -> Self:
        """Return one that differs by its policy, and counts and logs together with this one."""
        check_policy(policy)
        other = copy(self)
        other.policy = policy
        return other

    def counters(self) -> MemoryCounters:
        """Read how often each event happened, to all who were given the same `LazyMemory`."""
        return self._health.counters(waiting=len(self.lazy.waiting))

    def raise_misconfiguration(self) -> None:
        """Raise what made opening the memory fail, if an operator must mend it.

        Raises:
            InvalidRecordError, SchemaMismatchError, StoreRefusedError, MissingExtraError: as
                `Memory.open`.
        """
        error = self.lazy.opening_error
        if isinstance(error, MISCONFIGURED):
            raise error

    async def reopen_misconfigured(self) -> None:
        """Open the memory again if it could not be opened as configured: it may be mended now.

        Raises:
            InvalidRecordError, SchemaMismatchError, StoreRefusedError, MissingExtraError: it is
                not.
        """
        if isinstance(self.lazy.opening_error, MISCONFIGURED):
            opening = self.lazy.aget()
            with contextlib.suppress(Exception):
                await await_within(self.policy.recall_timeout, "opening the memory", opening)
            self.raise_misconfiguration()

    async def aclose(self, holder: object, timeout: float) -> None:
        """Wait for writes that still run, then close the memory if nobody else uses it.

        Turns that wait in memory are tried once more then, and lost if that fails. A memory that
        was given open stays open, and they wait on.

        Args:
            holder: the adapter's object that uses it no more.
            timeout: seconds that the writes are waited for.
        """
        await self.wait_for_writes(timeout)
        self.lazy.holders.discard(holder)
        if not self.lazy.holders:
            await self.lazy.aclose()

    # -- what a turn does by itself: never raises ----------------------------------------------

    def recall(self, scope: Scope, query: str, held: Conversation | None = None) -> list[Match]:
        """Recall for a turn, best first after the profile; empty if the memory fails.

        Args:
            held: the running conversation, which is not repeated.
        """
        return run_plan(self._recalling(scope, query, held), self._perform)

    async def arecall(
        self, scope: Scope, query: str, held: Conversation | None = None
    ) -> list[Match]:
        """Recall for a turn, as `recall`."""
        return await arun_plan(self._recalling(scope, query, held), self._aperform)

    def _recalling(self, scope: Scope, query: str, held: Conversation | None) -> Plan[list[Match]]:
        at = now()
        found: list[Match] = []
        left_out: list[tuple[Match, Rule]] | None = None if self._note_log is None else []
        plan = recall(scope, query, self.policy, held, left_out)
        try:
            with self.reporting("recall", scope, late="timed_out", mistakes=()) as outcome:
                found = yield _TimedCalls(self._recall_seconds(), "recall", plan)
                outcome.count = len(found)
        except Exception:
            return []
        if self._note_log is not None:
            self._note_log.add(at, scope, query, left_out or (), found)
        return found

    def accept(
        self, messages: Sequence[Message], scope: Scope, shown: ShownRecords | None = None
    ) -> None:
        """Accept what the user said, before a model is called: no crash loses it from then on.

        Waits a quarter of a second at most. Nothing is extracted from it before the end of the
        turn, which writes all messages of the turn again, under the same ids. A request to forget
        is left to the end, and so is a message without an id.

        Args:
            shown: of the turn; its searches do not find what is accepted here.
        """
        done = self._accept(messages, scope, shown)
        if done is not None and self.lazy.opened is not None:
            wait([done], _ACCEPT_SECONDS)

    async def aaccept(
        self, messages: Sequence[Message], scope: Scope, shown: ShownRecords | None = None
    ) -> None:
        """Accept what the user said, as `accept`; it goes on, too, when the caller is cancelled."""
        done = self._accept(messages, scope, shown)
        if done is not None and self.lazy.opened is not None:
            await asyncio.wait({asyncio.wrap_future(done)}, timeout=_ACCEPT_SECONDS)

    def withdraw(self, messages: Sequence[Message], scope: Scope) -> list[str]:
        """Delete what was accepted, in a thread, because another turn has it or replaces it.

        Returns:
            The ids of the records, which are found until that is done.
        """
        ids = self._ids(messages, scope)

        def delete() -> None:
            wait(self.lazy.turns.pending(ids), WRITE_PATIENCE)
            self.lazy.turns.end(messages, ids)
            for record_id in ids:
                with contextlib.suppress(Exception):  # it was not accepted
                    self.lazy.get().delete(record_id, scope, wait=False)

        self.lazy.keep(start_call("write", delete))
        return ids

    def write(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said: accept it, then wait as the policy says.

        What takes longer goes on; an accepted write is lost by nothing. One that cannot be accepted
        now waits in memory and is tried again, in the order of the turns.
        """
        write = self._new_write(messages, scope)
        if write is not None:
            add = partial(self._add, write, self._wait(write.seconds))
            done = start_call("write", partial(write.run, add))
            try:
                done.result(write.seconds + _ACCEPT_SECONDS)
            except TimeoutError:
                write.expire()

    async def awrite(self, messages: Sequence[Message], scope: Scope) -> InTime | None:
        """Remember what was said, as `write`; it goes on, too, when the caller is cancelled.

        Returns:
            What it is in time: "written", or "accepted" and tried again by itself. After None it
            may still be, and writing it again does no harm.
        """
        write = self._new_write(messages, scope)
        if write is None:
            return "written"
        wait_for = self._wait(write.seconds)
        if self.lazy.opened is None or self.lazy.waiting:
            work = self._write_on_thread(write, partial(self._add, write, wait_for))
        else:
            work = write.arun(self._aadd(write, wait_for))
        task = asyncio.create_task(work)
        task.add_done_callback(self.lazy.writes.discard)
        self.lazy.writes.add(task)  # a loop keeps no task alive
        # `wait` leaves the task running, whatever happens to its caller.
        _, late = await asyncio.wait({task}, timeout=write.seconds + _ACCEPT_SECONDS)
        if late:
            write.expire()
        return write.done

    def write_later(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said, for a turn that is cancelled or torn down.

        Waits a quarter of a second at most, so that it is accepted before the caller goes on and
        perhaps closes the memory.
        """
        write = self._new_write(messages, scope)
        if write is not None:
            add = partial(self._add, write, False)
            done = self.lazy.keep(start_call("write", partial(write.run, add)))
            if self.lazy.opened is not None:
                wait([done], _ACCEPT_SECONDS)

    def summarize(self, text: str, scope: Scope, held: Conversation | None = None) -> None:
        """Keep what a framework wrote as the summary of its session; never raises.

        It stands for the turns before those at the end of the session that are still held. Nothing
        is kept of a text that is the last one, in no session, or where the agent's tools alone
        write.

        Args:
            held: the conversation beside the summary; None for nothing.
        """
        run_plan(self._summarizing(text, scope, held), self._perform)

    async def asummarize(self, text: str, scope: Scope, held: Conversation | None = None) -> None:
        """Keep what a framework wrote as the summary of its session, as `summarize`."""
        await arun_plan(self._summarizing(text, scope, held), self._aperform)

    def _summarizing(self, text: str, scope: Scope, held: Conversation | None) -> Plan[None]:
        if scope.session_id is None or not self.policy.is_static or not is_visible(text):
            return
        last = self._summaries.setdefault(scope.key, "")
        self._summaries[scope.key] = text
        if text == last:
            return
        seconds, read = self._write_seconds(), _only(call("messages", limit=_TURNS))
        try:
            with self.reporting("summary", scope, 1, late="failed", mistakes=()):
                turns = yield _TimedCalls(seconds, "summary", read, scope)
                keep = call("summarize", shorten(text, _SUMMARY), covered_turns(turns, held))
                yield _TimedCalls(seconds, "summary", _only(keep), scope)
        except Exception:
            self._summaries[scope.key] = ""  # the next turn tries again

    async def wait_for_writes(self, timeout: float) -> None:
        """Wait for the writes of the running loop and those of `write_later` until accepted.

        Args:
            timeout: seconds at most.
        """
        loop = asyncio.get_running_loop()
        running: set[asyncio.Future[None]] = {
            task for task in list(self.lazy.writes) if task.get_loop() is loop
        }
        running |= {asyncio.wrap_future(one) for one in list(self.lazy.accepting)}
        if running:
            await asyncio.wait(running, timeout=timeout)

    def add(self, messages: Sequence[Message], scope: Scope, wait: float | bool) -> WriteResult:
        """Remember messages as the policy says, with the standing instructions in them.

        What a user asks to forget is left out of his message, and so is the assistant's answer to
        it. Raises and returns as `Memory.add`, and reports no event; nothing is written, and the
        result is empty, if nothing else was said.
        """
        write = TurnWrite(self, messages, scope, len(messages), (), self._write_seconds())
        return self._add(write, wait)

    # -- what a model asks for: raises ---------------------------------------------------------

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        scope: Scope,
        shown: ShownRecords | None = None,
    ) -> str:
        """Carry out a tool that a model calls, and return the text that it reads.

        A write goes on once it is accepted.

        Args:
            name: without a prefix.
            arguments: as the model gave them.
            shown: what the model was shown in this turn, to which a search adds.

        Raises:
            InvalidRecordError: an argument is outside what the tool's schema allows, or unknown.
            RecordNotFoundError: the memory was deleted meanwhile.
            LoopRequiredError: the embedder is asynchronous.
            MemoryTimeoutError: a search takes longer than `policy.recall_timeout`, or a change is
                not done in 10 seconds.
        """
        return run_plan(self._calling_tool(name, arguments, scope, shown), self._perform)

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        scope: Scope,
        shown: ShownRecords | None = None,
    ) -> str:
        """Carry out a tool that a model calls, as `call_tool`."""
        plan = self._calling_tool(name, arguments, scope, shown)
        return await arun_plan(plan, self._aperform)

    def _calling_tool(
        self, name: str, arguments: Mapping[str, Any], scope: Scope, shown: ShownRecords | None
    ) -> Plan[str]:
        shown = ShownRecords() if shown is None else shown
        plan = run_tool(name, arguments, scope, self.policy, shown)
        late: EventName = "timed_out" if name == "search_memory" else "late"
        with self.reporting(name, scope, int(late == "late"), late=late) as outcome:
            answer: ToolAnswer = yield _TimedCalls(self._tool_seconds(name), name, plan)
            outcome.count = answer.count
        return answer.text

    # -- what an adapter asks for: raises ------------------------------------------------------

    async def acall(self, step: Call, seconds: float = WRITE_PATIENCE) -> Any:
        """Await a call of the memory, opening it included; reports no event.

        Raises:
            MemoryTimeoutError: it takes longer than so many seconds.
            Exception: what the call raises.
        """
        return await self._aperform(_TimedCalls(seconds, step.name, _only(step)))

    # -- wiring --------------------------------------------------------------------------------

    def _run(self, plan: Plan[T]) -> T:
        return run_plan(plan, on(self.lazy.get()))

    async def _arun(self, plan: Plan[T]) -> T:
        return await arun_plan(plan, aon(await self.lazy.aget()))

    def _perform(self, step: _TimedCalls) -> Any:
        def perform() -> Any:
            memory = self.lazy.get()
            where = memory if step.session is None else memory.session(step.session)
            return run_plan(step.plan, on(where))

        return call_within(step.seconds, step.name, perform)

    async def _aperform(self, step: _TimedCalls) -> Any:
        async def perform() -> Any:
            memory = await self.lazy.aget()
            where = memory if step.session is None else memory.session(step.session)
            return await arun_plan(step.plan, aon(where))

        return await await_within(step.seconds, step.name, perform())

    def _new_write(self, messages: Sequence[Message], scope: Scope) -> TurnWrite | None:
        count, named = len(self._stated(messages, scope)), self._requests(messages, scope)
        if not count and not named:
            self._stated(messages, scope, ends=True)
            return None
        return TurnWrite(self, messages, scope, count, named, self._write_seconds())

    def _confirm_write(self, write: TurnWrite) -> Plan[None]:
        yield from self._confirm(write.messages, write.scope)
        asked = [*write.named, *self._requests(write.messages, write.scope)]
        write.named = list(dict.fromkeys(asked))
        write.count = len(self._stated(write.messages, write.scope))

    def _confirm(self, messages: Sequence[Message], scope: Scope) -> Plan[None]:
        """Ask the memory whether it has what messages may ask to forget."""
        for text, named in self._doubtful(messages, scope).items():
            with contextlib.suppress(Exception):  # stored whole, as what asks nothing
                if (yield from is_known(scope, named, self.policy, self._ids(messages, scope))):
                    self._known[(scope.key, text)] = True

    def _doubtful(self, messages: Sequence[Message], scope: Scope) -> dict[str, list[str]]:
        """Read by text what is to be forgotten only if the memory has it, where it may not."""
        found: dict[str, list[str]] = {}
        for one in messages:
            sure = self._split(one, scope).asked
            asked = self._split(one, scope, is_known=True).asked
            if asked != sure:
                found[one.text] = [named for named in asked if named not in sure]
        return found

    def _split(self, one: Message, scope: Scope, *, is_known: bool = False) -> ForgetSplit:
        if one.role != "user":
            return ForgetSplit(one.text)
        is_known = is_known or self._known.get((scope.key, one.text)) is not None
        return split_forget_requests(one.text, is_known=is_known)

    def _ids(self, messages: Sequence[Message], scope: Scope) -> list[str]:
        return turn_record_ids(messages, scope, self.policy)

    def _accept(
        self, messages: Sequence[Message], scope: Scope, shown: ShownRecords | None
    ) -> "Accepted | None":
        """Begin to accept what is not accepted yet, on a thread; None if that is nothing."""
        if isinstance(self.lazy.opening_error, MISCONFIGURED):  # there is nowhere to write it
            return None
        messages = [one for one in messages if one.id is not None]
        messages = [one for one in messages if self._stated([one], scope)]
        ids, done = self._ids(messages, scope), Accepted(id(self))
        if shown is not None:
            shown.own_ids.update(ids)
        new = self.lazy.turns.begin(messages, ids, done)
        if not new:
            return None
        self.lazy.keep(done)
        start_call("write", partial(self._accept_now, new, scope, done))
        return done

    def _accept_now(self, messages: Mapping[str, Message], scope: Scope, done: "Accepted") -> None:
        start, at = time.monotonic(), now()
        try:
            done.set_result(self._run(self._accepting(messages, scope)))
        except Exception as error:
            name: EventName | None = "failed"
            if may_be_tried_again(error):
                name = let_wait(self, [*messages.values()], scope, at, self._accept_again)
            if name is not None:
                self.report(name, "write", scope, start, len(messages), error)
            done.set_result(error)

    def _accepting(self, messages: Mapping[str, Message], scope: Scope) -> Plan[WriteResult]:
        yield from self._confirm([*messages.values()], scope)
        stated = {id_: said for id_, one in messages.items() for said in self._stated([one], scope)}
        return (yield from accept_turn(stated, scope, self.policy))

    def _accept_again(self, messages: Sequence[Message], scope: Scope) -> None:
        ids, done = self._ids(messages, scope), Accepted(id(self))
        held = dict(zip(ids, messages, strict=True))
        done.set_result(self._run(self._accepting(held, scope)))
        self.lazy.turns.begin(messages, ids, done)  # in the place of what failed

    def _stated(
        self, messages: Sequence[Message], scope: Scope, *, ends: bool = False
    ) -> list[Message]:
        """Leave out what asks to forget something, and the answer, which may say it again.

        Args:
            ends: of the turn an answer is the end; the next one has another.
        """
        said = [(one, self._split(one, scope)) for one in messages if one.role == "user"]
        asks = any(split.asked for _, split in said)
        if len(said) < len(messages) and not asks and scope.key not in self._forgot:
            return list(messages)
        if ends and asks and len(said) == len(messages):
            self._forgot.add(scope.key)  # the answer comes later
        elif ends:
            self._forgot.discard(scope.key)
        return [
            one if split.stated == one.text else replace(one, text=split.stated)
            for one, split in said
            if split.stated
        ]

    def _requests(self, messages: Sequence[Message], scope: Scope) -> list[str]:
        """Read what is to be forgotten, each request once, unless the agent has a tool for it."""
        if self.policy.has_tools and "forget_memory" in self.policy.tools:
            return []
        named: list[str] = []
        for one in messages:
            asked = self._split(one, scope).asked
            moment = now()
            if not asked or (one.at is not None and moment - one.at > _REPLAYED):
                continue
            key = (scope.key, one.id, one.text, *asked)
            known = self._handled.setdefault(key, moment)
            if known is moment or (one.id is None and moment - known > _REPLAYED):
                self._handled[key] = moment
                named += asked
        return named

    def retract(
        self, named: Sequence[str], messages: Sequence[Message], scope: Scope, before: datetime
    ) -> None:
        """Delete the memories that requests to forget clearly mean, and report it; never raises.

        Args:
            named: what is to be forgotten, such as "my old number".
            messages: of the turn, which are not meant.
            before: only what was stored earlier is meant.
        """
        run_plan(self._retracting(named, messages, scope, before), self._perform)

    async def aretract(
        self, named: Sequence[str], messages: Sequence[Message], scope: Scope, before: datetime
    ) -> None:
        """Delete the memories that requests to forget clearly mean, as `retract`."""
        await arun_plan(self._retracting(named, messages, scope, before), self._aperform)

    def _retracting(
        self, named: Sequence[str], messages: Sequence[Message], scope: Scope, before: datetime
    ) -> Plan[None]:
        seconds = self._tool_seconds("forget_memory")
        plan = retract(scope, named, self.policy, before, self._ids(messages, scope))
        reporting = self.reporting("forget", scope, late="timed_out", mistakes=())
        with contextlib.suppress(Exception), reporting as outcome:
            gone: list[Record] = yield _TimedCalls(seconds, "forget", plan)
            outcome.name, outcome.count = "retracted" if gone else "not_retracted", len(gone)

    async def _write_on_thread(self, write: TurnWrite, add: Callable[[], WriteResult]) -> None:
        """Write once the memory is open, and behind what waits, also if this loop ends before."""
        await asyncio.shield(asyncio.wrap_future(start_call("write", partial(write.run, add))))
        if (memory := self.lazy.opened) is not None:
            with contextlib.suppress(Exception):  # the write has told its own
                await memory.aflush(0.0)  # an asynchronous model needs this loop

    def _add(self, write: TurnWrite, wait_for: float | bool) -> WriteResult:
        self._run(self._confirm_write(write))
        messages = self._stated(write.messages, write.scope, ends=True)
        if not messages:
            return WriteResult(operation="")
        ids, turns = self._ids(messages, write.scope), self.lazy.turns
        with contextlib.suppress(Exception):  # told by the write below
            self.lazy.get()  # until it is open nothing is accepted, and the answer comes second
        wait(turns.pending(ids), write.seconds)
        write.end = turns.end(messages, ids, id(self))
        return self._run(end_turn(write.end, write.scope, self.policy, wait_for))

    async def _aadd(self, write: TurnWrite, wait_for: float | bool) -> WriteResult:
        await self._arun(self._confirm_write(write))
        messages = self._stated(write.messages, write.scope, ends=True)
        if not messages:
            return WriteResult(operation="")
        ids, turns = self._ids(messages, write.scope), self.lazy.turns
        if pending := turns.pending(ids):
            await asyncio.wait(map(asyncio.wrap_future, pending), timeout=write.seconds)
        write.end = turns.end(messages, ids, id(self))
        return await self._arun(end_turn(write.end, write.scope, self.policy, wait_for))

    def _wait(self, seconds: float) -> float | bool:
        return seconds if self.policy.await_write else False

    def _recall_seconds(self) -> float:
        seconds, first = self.policy.recall_timeout, self._first_recall_timeout
        return seconds if first is None else max(seconds, first)

    def _write_seconds(self) -> float:
        """Wait less for a memory that was slow: a late memory must not slow every turn."""
        seconds = WRITE_PATIENCE if self.policy.await_write else ACCEPT_PATIENCE
        is_slow = self._is_slow or self.lazy.is_late
        return min(seconds, self.policy.recall_timeout) if is_slow else seconds

    def _tool_seconds(self, name: str) -> float:
        is_search = name == "search_memory"
        return self._recall_seconds() if is_search else WRITE_PATIENCE + _ACCEPT_SECONDS

    # -- events --------------------------------------------------------------------------------

    @contextmanager
    def reporting(
        self,
        operation: str,
        scope: Scope,
        count: int = 0,
        *,
        late: EventName,
        mistakes: tuple[type[Exception], ...] = _MISTAKES,
    ) -> Iterator[CallOutcome]:
        """Report what comes of the block: what it raises, or the outcome that it fills in.

        Args:
            count: memories that it is about; of nothing that is written there is no event.
            late: the event of an error of time, `timed_out` for what reads.
            mistakes: errors that its caller has to correct, which are no event.
        """
        start, reads, outcome = time.monotonic(), late == "timed_out", CallOutcome(count=count)
        try:
            yield outcome
        except mistakes:
            raise
        except Exception as error:
            is_late = isinstance(error, TimeoutError)
            if reads:
                self._first_recall_timeout, self._is_slow = None, is_late
            self.report(late if is_late else "failed", operation, scope, start, count, error)
            raise
        found = outcome.count
        if reads:
            self._first_recall_timeout, self._is_slow = None, False
        name: EventName = ("recalled" if found else "empty") if reads else "written"
        if found or reads or outcome.name:
            self.report(outcome.name or name, operation, scope, start, found)

    def report(
        self,
        name: EventName,
        operation: str,
        scope: Scope,
        start: float,
        count: int = 0,
        error: Exception | None = None,
    ) -> None:
        """Count an event, log it if that is due, and call the hook.

        Args:
            start: `time.monotonic()` when the agent began to wait.
        """
        seconds = time.monotonic() - start
        event = MemoryEvent(
            name=name, operation=operation, scope=scope, count=count, seconds=seconds, error=error
        )
        self._health.record(event, self._log)
        if self._on_event is not None:
            with self.warn.catch("on_event"):  # it is the user's, and must not fail a turn
                self._on_event(event)
