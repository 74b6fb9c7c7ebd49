"""Turns in memory: open ones, of which the user's words are accepted, writes, and what waits.

What the user says is accepted before a model is called, and the end of the turn adds the answer. A
process that dies while a model thinks has lost nothing that the user said. What is known here only
saves work: a turn that ends in another process is written whole, and stays the same records.

A turn that no journal accepts waits, for a disk may be full for a while, or a store locked. It is
tried again, in the order of the turns, and lost when the process ends.
"""

import atexit
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakSet

from ..concurrency import LRUCache, Timer, call_later, call_within, start_call
from ..errors import (
    BackpressureError,
    MemoryClosedError,
    MemoryTimeoutError,
    StoreLockedError,
    StoreUnavailableError,
)
from ..events import EventName
from ..ports.stores import with_identity
from ..sans_io import Call, Plan, call
from ..types import Extraction, Fact, Message, Record, Scope, WriteResult, now
from .policy import Policy
from .standing_instructions import (
    instruction_facts,
    list_instructions,
    may_end_instructions,
    recent_words,
    without_replaced,
)

if TYPE_CHECKING:
    from .agent_memory import AgentMemory

MAX_MESSAGES = 10_000
Outcome: TypeAlias = Literal["written", "forgotten", "lost"]
InTime: TypeAlias = Literal["written", "accepted"]
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_EXIT_SECONDS = 5.0


class Accepted(Future[WriteResult | Exception]):
    """The acceptance of messages, with its result or the error, which only `teller` tells of."""

    def __init__(self, teller: int) -> None:
        super().__init__()
        self.teller = teller


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """What the end of a turn writes.

    Attributes:
        messages: to be stored; all of the turn where nothing is left without those accepted.
        before: accepted when the turn began, for a chat model to read.
        untold: messages whose standing instructions are not stored yet, by the ids of their records
            where a message has an id.
        accepted: results of the writes that accepted `before`.
        error: why what should have been accepted when the turn began was not, if that was told by
            who ends it.
    """

    messages: Sequence[Message]
    before: tuple[Message, ...] = ()
    untold: Mapping[str, Message] = field(default_factory=dict)
    accepted: Sequence[WriteResult] = ()
    error: Exception | None = None


class OpenTurns:
    """The last 10,000 messages accepted of turns that are not over, on one memory; thread-safe."""

    def __init__(self) -> None:
        self._accepted: LRUCache[str, Accepted] = LRUCache(MAX_MESSAGES)

    def begin(
        self, messages: Sequence[Message], ids: Sequence[str], done: Accepted
    ) -> dict[str, Message]:
        """Take what is to be accepted, by its records' ids, without what was accepted before."""
        new: dict[str, Message] = {}
        with self._accepted.lock:
            for record_id, message in zip(ids, messages, strict=True):
                earlier = self._accepted.get(record_id)
                if earlier is None or isinstance(_result(earlier), Exception):
                    self._accepted[record_id] = done
                    new[record_id] = message
        return new

    def pending(self, ids: Iterable[str]) -> set[Accepted]:
        """List what is still being accepted, by the ids of the records."""
        found = map(self._accepted.get, ids)
        return {done for done in found if done is not None and not done.done()}

    def end(self, messages: Sequence[Message], ids: Sequence[str], teller: int = 0) -> TurnEnd:
        """End a turn: tell what is left to be stored of its messages."""
        before: list[Message] = []
        left: list[Message] = []
        untold: dict[str, Message] = {}
        accepted: dict[str, WriteResult] = {}
        error: Exception | None = None
        for record_id, message in zip(ids, messages, strict=True):
            done = self._accepted.pop(record_id)
            result = None if done is None else _result(done)
            if isinstance(result, WriteResult):
                before.append(message)
                accepted[result.operation] = result
                continue
            left.append(message)
            if done is not None and done.teller == teller:
                error = result
            if done is None or result is not None:
                untold[record_id] = message
        if not left:  # a turn without an answer
            left, before = before, []
        return TurnEnd(
            messages=left,
            before=tuple(before),
            untold=untold,
            accepted=list(accepted.values()),
            error=error,
        )


def _result(done: Accepted) -> WriteResult | Exception | None:
    """Return what came of an acceptance; None while it goes on."""
    return done.result() if done.done() else None


def turn_record_ids(messages: Sequence[Message], scope: Scope, policy: Policy) -> list[str]:
    """Derive the ids of the records of messages; of one without an id, that of no record."""
    ids = []
    for place, message in enumerate(messages):
        key = f"\x00{place}" if message.id is None else message.id
        key = with_identity(key, policy.metadata, policy.identity)
        ids.append(scope.record_id("episode", key))
    return ids


# -- plans ---------------------------------------------------------------------------------------


def accept_turn(messages: Mapping[str, Message], scope: Scope, policy: Policy) -> Plan[WriteResult]:
    """Store what the user said, by the ids of the records, and the standing instructions in it."""
    facts = yield from _instructions(messages, scope, policy)  # before the messages are known
    result: WriteResult = yield _add(list(messages.values()), scope, policy, False, wait=False)
    if facts:
        yield _add(facts, scope.owner, policy, False, wait=False)
    return result


def end_turn(end: TurnEnd, scope: Scope, policy: Policy, wait: float | bool) -> Plan[WriteResult]:
    """Store what is left of a turn, with the standing instructions in it, and extract facts."""
    facts = yield from _instructions(end.untold, scope, policy)
    if facts:
        yield _add(facts, scope.owner, policy, False, wait=False)
    is_plain = not policy.metadata and not end.before
    how = None if is_plain else Extraction(metadata=policy.metadata, before=end.before)
    result: WriteResult = yield _add(list(end.messages), scope, policy, how, wait=wait)
    return result


def _add(
    content: Sequence[Message | Fact],
    scope: Scope,
    policy: Policy,
    infer: Extraction | bool | None,
    *,
    wait: float | bool,
) -> Call:
    return call(
        "add", content, scope, infer=infer, metadata=policy.metadata, identity=policy.identity,
        wait=wait,
    )  # fmt: skip


def _instructions(
    messages: Mapping[str, Message], scope: Scope, policy: Policy
) -> Plan[list[Fact]]:
    """Find the standing instructions in messages, given by the ids of their records.

    Those of a message that is stored were told when its turn began, perhaps elsewhere.
    """
    said = list(messages.values())
    held: list[str] = []
    if not policy.instructions:
        return []
    if any(may_end_instructions(one.text) for one in said if one.role == "user"):
        records = yield from list_instructions(scope.owner, policy)
        held = [record.text for record in without_replaced(records)]
    if not instruction_facts(said, held):
        return []
    known: Sequence[Record] = yield call("get_many", list(messages), scope)
    ids = {record.id for record in known}
    before = yield from recent_words(scope)
    new = [one for key, one in messages.items() if key not in ids]
    facts = instruction_facts(new, held, before)
    return [replace(fact, metadata={**policy.metadata, **fact.metadata}) for fact in facts]


# -- what waits ----------------------------------------------------------------------------------


def may_be_tried_again(error: Exception) -> bool:
    """Tell whether a write that raised this was not accepted, and may be later."""
    if isinstance(error, StoreUnavailableError):
        return not error.retried  # else the journal has it
    return isinstance(error, StoreLockedError | BackpressureError)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWrite:
    """A turn that waits.

    Attributes:
        write: accepts it; returns False, and writes nothing, if it is to be forgotten.
        end: is told what became of it, with the error of one that is lost.
    """

    messages: Sequence[Message]
    scope: Scope
    write: Callable[["WaitingWrite"], bool]
    end: Callable[[Outcome, Exception | None], None]


class WaitingWrites:
    """The turns that wait to be written to one memory, oldest first; safe in any thread.

    They are tried by `write`, and on threads of the library after a pause that doubles from a
    second to a minute. That keeps no process alive; at its end they are tried once more.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._writing = threading.Lock()  # keeps the order
        self._queue: deque[WaitingWrite] = deque()
        self._timer: Timer | None = None
        self._pause = _FIRST_PAUSE
        _all.add(self)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    def put(self, write: WaitingWrite, limit: int) -> Literal["waiting", "lost"] | None:
        """Let a turn wait behind the others; it is lost if `limit` turns wait already.

        The whole of a turn whose beginning waits takes the place of that, which was told; other
        messages with an id that wait already are left out. None for what waits already.
        """
        with self._changing:
            told = _ids(write)
            same = [one for one in self._queue if one.scope == write.scope and _ids(one)]
            for begun in same:
                if _ids(begun) <= told:
                    self._queue[self._queue.index(begun)] = write
                    return None
            held = set().union(*map(_ids, same))
            messages = [one for one in write.messages if one.id not in held]
            if not messages:
                return None
            if len(self._queue) >= limit:
                return "lost"
            self._queue.append(replace(write, messages=messages))
            self._start_timer()
            return "waiting"

    def write(self) -> None:
        """Write what waits, in its order.

        Raises:
            Exception: what keeps the first one that is left from being written.
        """
        if self._queue:
            with self._writing:
                self._write_all()

    def close(self) -> None:
        """Write what waits once more; what is left is lost, and told to be."""
        with self._writing:
            try:
                self._write_all()
            except Exception as error:
                with self._changing:
                    left = list(self._queue)
                    self._queue.clear()
                    self._stop_timer()
                for one in left:
                    one.end("lost", error)

    def _write_all(self) -> None:
        while self._queue:
            first, failure = self._queue[0], None
            outcome: Outcome
            try:
                outcome = "written" if first.write(first) else "forgotten"
            except Exception as error:
                if may_be_tried_again(error):
                    raise
                outcome, failure = "lost", error
            with self._changing:
                is_whole = self._queue[0] is first  # else more of the turn came meanwhile
                if is_whole:
                    self._queue.popleft()
                if not self._queue:
                    self._stop_timer()
            if is_whole:
                first.end(outcome, failure)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = call_later(self._pause, self._wake)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._pause = None, _FIRST_PAUSE

    def _wake(self) -> None:
        with self._changing:
            self._timer = None
        with contextlib.suppress(RuntimeError):  # no thread can be started at the end
            start_call("write", self._write_later)

    def _write_later(self) -> None:
        try:
            self.write()
        except Exception:
            with self._changing:
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        with self._changing:
            if self._queue:
                self._start_timer()


def _ids(write: WaitingWrite) -> set[str]:
    return {one.id for one in write.messages if one.id is not None}


_all: "WeakSet[WaitingWrites]" = WeakSet()


def _forget_parent() -> None:
    """Leave what waits to the parent of a forked child, or it would be written twice."""
    for one in list(_all):
        one.__init__()  # type: ignore[misc]  # with locks of its own


def _close_all() -> None:
    for one in list(_all):
        with contextlib.suppress(MemoryTimeoutError):
            if one:
                call_within(_EXIT_SECONDS, "write", one.close)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)

# As in `runtime`: when `atexit` runs, no thread can be started any more.
getattr(threading, "_register_atexit", atexit.register)(_close_all)


# -- the write of a turn ---------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class TurnWrite:
    """One write of a turn: reports once what became of it in its time, and a later failure.

    Then it retracts what the turn asks to forget.

    Attributes:
        messages, scope: what is written, and where.
        count: of the messages that state something.
        named: what is to be forgotten.
        seconds: that its caller waits.
        end: what of it was not accepted before.
        done: what it was in time; None if it may be neither.
    """

    agent: "AgentMemory"
    messages: Sequence[Message]
    scope: Scope
    count: int
    named: Sequence[str]
    seconds: float
    end: TurnEnd = TurnEnd(messages=())
    done: InTime | None = None
    _at: datetime = field(default_factory=now)
    _start: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_reported: bool = False
    _has_failed: bool = False

    def run(self, add: Callable[[], WriteResult]) -> None:
        """Write what waits, then this by calling `add`; never raises."""
        try:
            self.agent.lazy.waiting.write()
            self._finish(add())
        except Exception as error:
            self._wait_or_fail(error)
        if self.named:
            self.agent.retract(self.named, self.messages, self.scope, self._at)

    async def arun(self, add: Awaitable[WriteResult]) -> None:
        """Write this by awaiting `add`, where nothing waits; never raises."""
        try:
            self._finish(await add)
        except Exception as error:
            self._wait_or_fail(error)
        if self.named:
            await self.agent.aretract(self.named, self.messages, self.scope, self._at)

    def expire(self) -> None:
        """Report that it is not done in time, unless it is."""
        if self.done != "written":
            self.agent.lazy.is_late = True
            self._report("late", MemoryTimeoutError(call="write", seconds=self.seconds))

    def _finish(self, result: WriteResult) -> None:
        self.done = "accepted"
        self._follow(*self.end.accepted, result)
        if self._has_failed:
            return
        # Pending at once is what only waits for a loop with an asynchronous model.
        is_over = result.pending and time.monotonic() - self._start >= self.seconds
        if is_over and self.agent.policy.await_write:
            self.expire()
            return
        self.agent.lazy.is_late = False
        self.done = "written"
        if self.count:
            self._report("written", None)

    def _follow(self, *results: WriteResult) -> None:
        if (memory := self.agent.lazy.opened) is not None:
            with contextlib.suppress(MemoryClosedError):  # the journal has it
                for one in results:
                    if one.pending:
                        memory.admin.follow(one, self._fail)

    def _wait_or_fail(self, error: Exception) -> None:
        """Keep what was not accepted in memory, to be tried again; report a failure else."""
        if not may_be_tried_again(error):
            self.done = "accepted" if getattr(error, "retried", False) else None
            self._fail(error)
            return
        if self.end.before:  # it was accepted when the turn began, and still is
            ids = turn_record_ids(self.end.before, self.scope, self.agent.policy)
            done = Accepted(id(self.agent))
            done.set_result(self.end.accepted[0])
            self.agent.lazy.turns.begin(self.end.before, ids, done)
        name = let_wait(self.agent, self.messages, self.scope, self._at, self._write_again)
        if name is not None:
            self._is_reported = False  # that it was late is not all
            self._report(name, error)

    def _write_again(self, messages: Sequence[Message], scope: Scope) -> None:
        self._follow(self.agent.add(messages, scope, wait=False))

    def _fail(self, error: Exception) -> None:
        self.agent.lazy.is_late = isinstance(error, TimeoutError)
        with self._lock:
            if self._has_failed or type(error) is type(self.end.error):
                return  # told already
            self._has_failed = True
        self._is_reported = False  # that it was late is not all
        self._report("failed", error)

    def _report(self, name: EventName, error: Exception | None) -> None:
        with self._lock:
            if self._is_reported:
                return
            self._is_reported = True
        self.agent.report(name, "write", self.scope, self._start, self.count, error)


def let_wait(
    agent: "AgentMemory",
    messages: Sequence[Message],
    scope: Scope,
    at: datetime,
    write: Callable[[Sequence[Message], Scope], object],
) -> Literal["waiting", "lost"] | None:
    """Keep what was not accepted in memory, to be tried again; return the event to report."""

    def write_again(waiting: WaitingWrite) -> bool:
        if agent.lazy.get().admin.was_forgotten(scope, since=at):
            return False
        write(waiting.messages, scope)
        return True

    def end(outcome: Outcome, error: Exception | None) -> None:
        if outcome != "forgotten":
            start = time.monotonic()  # no agent waited
            agent.report(outcome, "write", scope, start, len(messages), error)

    dated = [one if one.at else replace(one, at=at) for one in messages]
    waiting = WaitingWrite(messages=dated, scope=scope, write=write_again, end=end)
    event = agent.lazy.waiting.put(waiting, agent.policy.max_waiting)
    if (memory := agent.lazy.opened) is not None:
        with contextlib.suppress(MemoryClosedError):
            memory.admin.before_close(agent.lazy.waiting.close)
    return event
