"""Threads: calls with a time limit, shared threads, timers, a keyed executor, and a cache for all.

Every layer uses this module, and it depends on none of them. All blocking calls run on threads that
the whole process shares: executors limit how many calls run at once and own no thread, and an idle
thread waits a few seconds for work from any of them.
"""

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from .errors import MemoryClosedError, MemoryTimeoutError
from .telemetry import carried

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
MAX_THREADS = 64

_MAX_IDLE = 4
_IDLE_SECONDS = 10.0
_ENDING_SECONDS = 0.1
_log = logging.getLogger("commonplace")

_slots = threading.BoundedSemaphore(MAX_THREADS)
_idle: "deque[SimpleQueue[_BoundedCall | None]]" = deque()  # of the threads that wait for a call
_threads: set[threading.Thread] = set()  # that were started, dead ones until the next is


def call_within(seconds: float, name: str, call: Callable[[], T]) -> T:
    """Make a blocking call on another thread and wait for it, `seconds` at most.

    A call that takes longer keeps running; its result is discarded. It sees the context variables
    of the caller.

    Raises:
        MemoryTimeoutError: it is not done in time, or 64 abandoned calls are still running.
    """
    slots = _slots
    if not slots.acquire(timeout=seconds):
        raise MemoryTimeoutError(call=name, seconds=seconds)
    done = start_call(name, call)
    done.add_done_callback(lambda _: slots.release())
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            return done.result()  # in the last moment, or a timeout of the call's own
        raise MemoryTimeoutError(call=name, seconds=seconds) from None


def start_call(name: str, call: Callable[[], T]) -> "Future[T]":
    """Start a blocking call on another thread, with the context variables of the caller.

    The thread is used again, as starting one costs more than most calls.
    When the interpreter is shutting down and no thread can be started, the call is made here.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # nobody can keep it from running
    job = _BoundedCall(f"commonplace-{name}", contextvars.copy_context(), call, done)
    try:
        _hand_over(job)
    except RuntimeError as error:
        if not _is_ending(error):
            raise
        _make(job)()
    return done


def end_idle_threads() -> None:
    """End the idle threads, and wait a moment for those that are about to be idle."""
    until = time.monotonic() + _ENDING_SECONDS
    own = threading.current_thread()
    while others := [
        thread for thread in list(_threads) if thread is not own and thread.is_alive()
    ]:
        with contextlib.suppress(IndexError):
            while True:
                _idle.pop().put(None)
        if time.monotonic() > until:
            return
        others[0].join(_ENDING_SECONDS / 10)


def _is_ending(error: RuntimeError) -> bool:
    """Tell whether no thread can be started because the interpreter is shutting down.

    Python 3.12 starts none while accepted writes are finished at exit.
    """
    return "new thread at interpreter shutdown" in str(error)


class _BoundedCall(NamedTuple):
    name: str
    context: contextvars.Context
    call: Callable[[], Any]
    done: "Future[Any]"


def _hand_over(job: _BoundedCall) -> None:
    """Give a call to an idle thread, or to a new one."""
    try:
        _idle.pop().put(job)
    except IndexError:
        jobs: SimpleQueue[_BoundedCall | None] = SimpleQueue()
        jobs.put(job)
        thread = threading.Thread(target=_work, args=(jobs,), name=job.name, daemon=True)
        thread.start()
        _threads.difference_update([one for one in list(_threads) if not one.is_alive()])
        _threads.add(thread)


def _make(job: _BoundedCall) -> Callable[[], None]:
    """Make a call; return what passes its outcome to whoever waits for it."""
    try:
        answer = job.context.run(job.call)
    except BaseException as error:  # noqa: BLE001 -- passed to the waiting caller
        return partial(job.done.set_exception, error)
    return partial(job.done.set_result, answer)


def _work(jobs: "SimpleQueue[_BoundedCall | None]") -> None:
    """Run calls, until none comes for a while or enough other threads wait for some."""
    thread = threading.current_thread()
    while True:
        try:
            job = jobs.get(timeout=_IDLE_SECONDS)
        except Empty:
            try:
                _idle.remove(jobs)
            except ValueError:  # a call is on its way
                continue
            return
        if job is None:
            return
        thread.name = job.name
        tell = _make(job)
        is_needed = len(_idle) < _MAX_IDLE
        if is_needed:
            _idle.append(jobs)  # first, so that who waits for this finds the thread free
        tell()
        del job, tell  # a waiting thread keeps nothing alive
        if not is_needed:
            return


class LRUCache(Generic[K, T]):
    """Mapping of the `limit` keys used last; safe in any thread.

    Attributes:
        lock: that each method takes; hold it around several that belong together.
    """

    def __init__(self, limit: int) -> None:
        self.lock = threading.RLock()
        self._limit = limit
        self._values: dict[K, T] = {}  # the one used last at the end

    def get(self, key: K) -> T | None:
        """Return the value of a key; None if there is none."""
        with self.lock:
            return self.setdefault(key, self._values[key]) if key in self._values else None

    def setdefault(self, key: K, default: T) -> T:
        """Return the value of a key, which is `default` from now on if there was none."""
        with self.lock:
            value = self._values[key] = self._values.pop(key, default)
            if len(self._values) > self._limit:
                del self._values[next(iter(self._values))]
            return value

    def __setitem__(self, key: K, value: T) -> None:
        """Set the value of a key."""
        with self.lock:
            self._values.pop(key, None)
            self.setdefault(key, value)

    def pop(self, key: K) -> T | None:
        """Remove a key, and return its value; None if there was none."""
        with self.lock:
            return self._values.pop(key, None)


async def await_within(seconds: float, name: str, work: Coroutine[Any, Any, T]) -> T:
    """Await work, `seconds` at most even if it ignores its cancellation.

    Raises:
        MemoryTimeoutError: it is not done in time, or something other than the caller cancelled it.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_error)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        is_done = task.done()
        task.cancel()
    if is_done and not task.cancelled():
        return task.result()
    raise MemoryTimeoutError(call=name, seconds=seconds)


def retrieve_error(done: asyncio.Future[Any]) -> None:
    """Keep the event loop from logging an error that nobody may be waiting for."""
    if not done.cancelled():
        done.exception()


async def run_on(
    threads: Executor | None, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a blocking call on a thread and await it.

    Args:
        threads: None for those of the running loop.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, partial(carried(call), *args, **kwargs))


class BoundedExecutor(Executor):
    """Executor that runs at most `limit` calls at once, in their order, on the shared threads.

    The calls do not see the context variables of their submitters.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._changed = threading.Condition()
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = 0  # threads
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a call on a thread, as soon as fewer than the limit are running."""
        future: Future[T] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queue.append((future, partial(fn, *args, **kwargs)))
            if self._running == self._limit:
                return future
            self._running += 1
        try:
            contextvars.Context().run(start_call, self._name, self._run)
        except RuntimeError:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
            if future.cancel():  # else another thread of it is running the call
                raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse further calls; those that are queued still run, unless they are cancelled."""
        with self._changed:
            self._closed = True
            cancelled = [future for future, _ in self._queue] if cancel_futures else []
        for future in cancelled:
            future.cancel()
        if wait:
            with self._changed:
                self._changed.wait_for(lambda: not self._running)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._running -= 1
                    self._changed.notify_all()
                    return
                future, work = self._queue.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 -- passed to the waiting caller
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            del future, work


class Timer:
    """A call that is made later, by `call_later`, unless it is cancelled before."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Make sure that the call is not made, unless it has begun."""
        self._call = None
        with _timers_changed:
            _timers_changed.notify_all()

    @property
    def is_cancelled(self) -> bool:
        """It will not be made, or was made already."""
        return self._call is None

    def run(self) -> None:
        """Make the call, unless it was made or cancelled."""
        due, self._call = self._call, None
        if due is not None:
            due()


_timers: list[tuple[float, int, Timer]] = []  # a heap: when each is due, and in which order
_timers_changed = threading.Condition()
_timer_numbers = itertools.count()
_is_timing = False  # a thread waits for the timers


def call_later(seconds: float, call: Callable[[], object]) -> Timer:
    """Make a call `seconds` from now, on a thread that all timers share: it must not block."""
    global _is_timing  # noqa: PLW0603 -- of the process
    timer = Timer(call)
    with _timers_changed:
        heapq.heappush(_timers, (time.monotonic() + seconds, next(_timer_numbers), timer))
        if _is_timing:
            _timers_changed.notify_all()
            return timer
        _is_timing = True
    try:
        job = _BoundedCall("commonplace-timer", contextvars.Context(), _run_timers, Future())
        _hand_over(job)
    except RuntimeError as error:
        _is_timing = False
        if not _is_ending(error):  # at the end nothing is due any more
            raise
    return timer


def _run_timers() -> None:
    """Make the calls that become due, until there is none left."""
    global _is_timing  # noqa: PLW0603 -- of the process
    while True:
        with _timers_changed:
            while _timers and _timers[0][2].is_cancelled:
                heapq.heappop(_timers)
            if not _timers:
                _is_timing = False
                return
            left = _timers[0][0] - time.monotonic()
            if left > 0:
                _timers_changed.wait(left)
                continue
            timer = heapq.heappop(_timers)[2]
        try:
            timer.run()
        except Exception:  # noqa: BLE001 -- the other timers must go on
            _log.exception("A timer failed")


def _forget_parent() -> None:
    """Start over in a forked child, which has none of its parent's threads."""
    global _slots, _timers_changed, _is_timing  # noqa: PLW0603 -- the parent's may be held
    _slots = threading.BoundedSemaphore(MAX_THREADS)
    _idle.clear()
    _threads.clear()
    _timers.clear()
    _timers_changed = threading.Condition()
    _is_timing = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


_MAX_KEYS = 8  # at once
_LONGEST_DELAY = 1.0


class KeyedExecutor:
    """Calls `step` for a key until it has nothing left to do.

    Args:
        step: does some of a key's work; returns None when there is none, 0.0 when there may be
            more, or the seconds to wait before the next step. Never two at once for one key.

    Attributes:
        entered, entering: how often work entered so far, and how much has not left.
        closed: no more steps are started.
    """

    def __init__(self, step: Callable[[str], float | None]) -> None:
        self._step = step
        self._threads = BoundedExecutor("ingest", _MAX_KEYS)
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._delayed: dict[str, tuple[float, float]] = {}  # since when, and scheduled last
        self._timers: set[Timer] = set()
        self._external = 0
        self.entered: int = 0
        self.entering: int = 0
        self._stepping = 0
        self.closed: bool = False

    def schedule(self, key: str, *, after: float = 0.0) -> None:
        """Run a key; if it is running, it takes at least one more step.

        Args:
            after: seconds to wait, starting over each time that it is scheduled again, so that
                what comes in quick succession is one batch; one second at most.
        """
        if after:
            with self._changed:
                if key in self._running:
                    self._again.add(key)
                    return
                now = time.monotonic()
                is_delayed = key in self._delayed
                first, _ = self._delayed.get(key, (now, now))
                self._delayed[key] = first, now
            if not is_delayed:
                self._wake_later(key, after)
            return
        with self._changed:
            if self.closed:
                return
            self._again.add(key)
            if key in self._running:
                return
            self._running.add(key)
        try:
            self._threads.submit(self._run, key)
        except RuntimeError:  # closed in this moment; the journal has everything
            with self._changed:
                self._running.discard(key)

    def _wake_later(self, key: str, after: float) -> None:
        """Run a delayed key when it has not been scheduled again for `after` seconds."""

        def wake() -> None:
            with self._changed:
                first, last = self._delayed[key]
                left = min(last + after, first + _LONGEST_DELAY) - time.monotonic()
                if left <= 0:
                    del self._delayed[key]
            if left > 0:
                self._start_timer(left, wake)
            else:
                self.schedule(key)

        self._start_timer(after, wake)

    def schedule_later(self, key: str, seconds: float, before: Callable[[], None]) -> None:
        """Call `before` and run a key, `seconds` from now."""

        def wake() -> None:
            before()
            self.schedule(key)

        self._start_timer(seconds, wake)

    def _start_timer(self, seconds: float, wake: Callable[[], None]) -> None:
        def run() -> None:
            try:
                wake()
            finally:
                with self._changed:
                    self._timers.discard(timer)
                    self._changed.notify_all()

        with self._changed:
            if not self.closed:
                timer = call_later(seconds, run)
                self._timers.add(timer)

    def count_external(self, change: int) -> None:
        """Count work elsewhere that ends with `schedule`: +1 at its start, -1 at its end."""
        with self._changed:
            self._external += change
            self._changed.notify_all()

    def enter(self) -> None:
        """Count work that may schedule a key soon, until it leaves."""
        with self._changed:
            if self.closed:
                raise MemoryClosedError
            self.entered += 1
            self.entering += 1

    def leave(self) -> None:
        """Count the end of such work, whatever became of it."""
        with self._changed:
            self.entering -= 1
            self._changed.notify_all()

    def wait_for_entering(self, timeout: float) -> bool:
        """Wait until no such work is left; False if it takes longer than `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.entering, timeout)

    def wait(self, timeout: float, *, external: bool) -> bool:
        """Wait until no key runs, is scheduled or soon will be; False after `timeout` seconds.

        Args:
            external: wait for work elsewhere too.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: (
                    not (
                        self._running
                        or self._timers
                        or self.entering
                        or (self._external and external)
                    )
                ),
                timeout,
            )

    def close(self, timeout: float) -> None:
        """Start no more steps, and wait for the running ones, `timeout` seconds at most."""
        with self._changed:
            self.closed = True
            for timer in self._timers:
                timer.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._changed:
            self._changed.wait_for(lambda: not self._stepping, timeout)

    def _run(self, key: str) -> None:
        pause: float | None = 0.0
        while pause == 0.0 and not self.closed:
            with self._changed:
                self._again.discard(key)
                self._stepping += 1
            pause = self._step(key)
            with self._changed:
                self._stepping -= 1
                self._changed.notify_all()
                if pause is None and key in self._again:
                    pause = 0.0
                if pause != 0.0 or self.closed:
                    # Inside the lock: a later `schedule` starts the key again, and `wait` sees
                    # the key running or the timer.
                    if pause:
                        self.schedule_later(key, pause, lambda: None)
                    self._running.discard(key)
        with self._changed:
            self._changed.notify_all()
