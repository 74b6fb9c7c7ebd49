"""Memory wrapper with timeouts that never raises, and warn-once logging.

An agent must survive a broken memory. Recalls and writes of a turn log each kind of failure once
and continue; tool calls raise, so that the model sees the error.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..concurrency import await_within, call_within, start_call
from ..errors import MemoryTimeoutError
from ..model import Match, Message, Scope, WriteResult
from .lazy import LazyMemory
from .operations import SearchAnswer, add_memory, recall, search_memory
from .policy import WRITE_PATIENCE, Policy
from .sansio import Plan, aon, arun_plan, on, run_plan

if TYPE_CHECKING:  # it loads the engines
    from ..memory import Memory

T = TypeVar("T")
ACCEPT_PATIENCE = 2.0
_ACCEPT_SECONDS = 0.25  # for what comes before a write waits


class WarnOnce:
    """Logs each kind of memory failure once: a memory that is down is down every turn.

    Args:
        log: the name of the log, which is the adapter's package.
        seen: the kinds that were logged, for several that share them.
    """

    def __init__(self, log: str, seen: set[str] | None = None) -> None:
        self._log = logging.getLogger(log)
        self._seen = set[str]() if seen is None else seen

    def __call__(self, what: str, error: Exception) -> None:
        """Log that `what` failed, unless it failed in the same way before."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._seen:
            self._seen.add(kind)
            self._log.warning("memory %s failed; the agent continues without it: %s", what, error)


class AgentMemory:
    """A memory as an agent uses it; serves any number of turns at once, in threads and on loops.

    Args:
        memory: open, or opened on first use.
        policy: how the agent uses it.
        log: the name of the log, which is the adapter's package.
        first_recall_timeout: seconds that recalls and searches may take until one is done, as the
            first may load a model; `policy.recall_timeout` when None.

    Attributes:
        warn: logs a failure once.
    """

    def __init__(
        self,
        memory: "Memory | LazyMemory",
        policy: Policy,
        *,
        log: str,
        first_recall_timeout: float | None = None,
    ) -> None:
        self.lazy: LazyMemory = memory if isinstance(memory, LazyMemory) else LazyMemory(memory)
        self.policy = policy
        self.warn: WarnOnce = WarnOnce(log, self.lazy.failures)
        self._first_recall_timeout = first_recall_timeout
        self._is_slow = False

    # -- what a turn does by itself: never raises ----------------------------------------------

    def recall(self, scope: Scope, query: str) -> list[Match]:
        """Recall for a turn, best first after the profile; empty if the memory fails."""
        try:
            seconds = self._recall_seconds()
            found = call_within(seconds, "recall", lambda: self._run(self._plan(scope, query)))
        except Exception as error:
            self._failed("recall", error)
            return []
        finally:
            self._first_recall_timeout = None
        self._is_slow = False
        return found

    async def arecall(self, scope: Scope, query: str) -> list[Match]:
        """Recall for a turn, as `recall`."""
        try:
            seconds = self._recall_seconds()
            found = await await_within(seconds, "recall", self._arun(self._plan(scope, query)))
        except Exception as error:
            self._failed("recall", error)
            return []
        finally:
            self._first_recall_timeout = None
        self._is_slow = False
        return found

    def write(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said: accept it, then wait as the policy says.

        What takes longer goes on; an accepted write is lost by nothing.
        """
        if not messages:
            return
        seconds, start = self._write_seconds(), time.monotonic()
        add = partial(self._add, list(messages), scope, self._wait(seconds))
        try:
            done = start_call("write", add)
            self._check_done(done.result(seconds + _ACCEPT_SECONDS), start, seconds)
        except TimeoutError:
            self._failed("write", MemoryTimeoutError(call="write", seconds=seconds))
        except Exception as error:
            self._failed("write", error)

    async def awrite(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said, as `write`; it goes on, too, when the caller is cancelled."""
        if messages:
            seconds = self._write_seconds()
            work = self._aadd(list(messages), scope, self._wait(seconds))
            await self.awrite_with(work, seconds)

    async def awrite_with(
        self, work: Coroutine[Any, Any, WriteResult], seconds: float | None = None
    ) -> None:
        """Await a write of the caller's own, as `awrite`."""
        seconds = self._write_seconds() if seconds is None else seconds
        task = asyncio.create_task(self._guarded(work, seconds))
        task.add_done_callback(self.lazy.writes.discard)
        self.lazy.writes.add(task)  # a loop keeps no task alive
        # `wait` leaves the task running, whatever happens to its caller.
        _, late = await asyncio.wait({task}, timeout=seconds + _ACCEPT_SECONDS)
        if late:
            self._failed("write", MemoryTimeoutError(call="write", seconds=seconds))

    async def wait_for_writes(self, timeout: float) -> None:
        """Wait for the writes of the running loop, `timeout` seconds at most."""
        loop = asyncio.get_running_loop()
        running = {task for task in list(self.lazy.writes) if task.get_loop() is loop}
        if running:
            await asyncio.wait(running, timeout=timeout)

    # -- what a model asks for: raises ---------------------------------------------------------

    def search_memory(
        self, scope: Scope, keywords: Sequence[str], limit: int | None = None
    ) -> SearchAnswer:
        """Carry out the search tool.

        Raises:
            InvalidRecordError: an argument is outside what the tool's schema allows.
            LoopRequiredError: the embedder is asynchronous.
            MemoryTimeoutError: it took longer than `policy.recall_timeout`.
        """
        plan = search_memory(scope, self.policy, keywords, limit)
        try:
            return call_within(self._recall_seconds(), "search_memory", lambda: self._run(plan))
        finally:
            self._first_recall_timeout = None

    async def asearch_memory(
        self, scope: Scope, keywords: Sequence[str], limit: int | None = None
    ) -> SearchAnswer:
        """Carry out the search tool, as `search_memory`."""
        plan = search_memory(scope, self.policy, keywords, limit)
        try:
            return await await_within(self._recall_seconds(), "search_memory", self._arun(plan))
        finally:
            self._first_recall_timeout = None

    def add_memory(self, scope: Scope, thinking: str, content: Sequence[str]) -> str:
        """Carry out the add tool; once accepted a write goes on.

        Raises:
            InvalidRecordError: an argument is outside what the tool's schema allows.
            MemoryTimeoutError: the memory does not open, or accept it, in 10 seconds.
        """
        plan = add_memory(scope, self.policy, thinking, content)
        seconds = WRITE_PATIENCE + _ACCEPT_SECONDS
        return call_within(seconds, "add_memory", lambda: self._run(plan))

    async def aadd_memory(self, scope: Scope, thinking: str, content: Sequence[str]) -> str:
        """Carry out the add tool, as `add_memory`."""
        plan = add_memory(scope, self.policy, thinking, content)
        seconds = WRITE_PATIENCE + _ACCEPT_SECONDS
        return await await_within(seconds, "add_memory", self._arun(plan))

    # -- wiring --------------------------------------------------------------------------------

    def _plan(self, scope: Scope, query: str) -> Plan[list[Match]]:
        return recall(scope, query, self.policy)

    def _run(self, plan: Plan[T]) -> T:
        return run_plan(plan, on(self.lazy.get()))

    async def _arun(self, plan: Plan[T]) -> T:
        return await arun_plan(plan, aon(await self.lazy.aget()))

    def _add(self, messages: Sequence[Message], scope: Scope, wait: float | bool) -> WriteResult:
        return self.lazy.get().add(messages, scope, wait=wait)

    async def _aadd(
        self, messages: Sequence[Message], scope: Scope, wait: float | bool
    ) -> WriteResult:
        memory = self.lazy.opened
        if memory is None:
            # A thread accepts it as soon as the memory is open, also if this loop ends before.
            opening = start_call("write", partial(self._add, messages, scope, wait))
            result = await asyncio.shield(asyncio.wrap_future(opening))
            await (await self.lazy.aget()).aflush(0.0)  # an asynchronous model needs this loop
            return result
        return await memory.aadd(messages, scope, wait=wait)

    async def _guarded(self, work: Coroutine[Any, Any, WriteResult], seconds: float) -> None:
        start = time.monotonic()
        try:
            self._check_done(await work, start, seconds)
        except Exception as error:
            self._failed("write", error)

    def _check_done(self, result: WriteResult, start: float, seconds: float) -> None:
        # Pending at once is what only waits for a loop with an asynchronous model.
        is_over = result.pending and time.monotonic() - start >= seconds
        self.lazy.is_late = is_over and self.policy.await_write
        if self.lazy.is_late:
            self._failed("write", MemoryTimeoutError(call="write", seconds=seconds))

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

    def _failed(self, what: str, error: Exception) -> None:
        # Apart, for a model that only writes need may be slow while recalls are fast.
        if what == "write":
            self.lazy.is_late = isinstance(error, TimeoutError)
        else:
            self._is_slow = isinstance(error, TimeoutError)
        self.warn(what, error)
