"""Threads and deadlines: calls with a time limit, and a keyed executor.

A module of its own because every layer uses it; it depends on none of them.
"""

import asyncio
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .errors import MemoryTimeoutError

P = ParamSpec("P")
T = TypeVar("T")
MAX_THREADS = 64

_MAX_IDLE = 8
_IDLE_SECONDS = 10.0

_slots = threading.BoundedSemaphore(MAX_THREADS)
_idle: "deque[SimpleQueue[_BoundedCall]]" = deque()  # of the threads that wait for their next call


def _forget_parent() -> None:
    """Begin anew in a forked child, which has none of its parent's threads."""
    global _slots  # noqa: PLW0603 -- the parent's may be held
    _slots = threading.BoundedSemaphore(MAX_THREADS)
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


def call_within(seconds: float, name: str, call: Callable[[], T]) -> T:
    """Make a blocking call in a thread of its own and wait for it, `seconds` at most.

    A call that takes longer keeps running; its result is discarded. It sees the context variables
    of the caller.

    Args:
        name: of the call, for the error and the thread.

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
    """Start a blocking call in a thread of its own, with the context variables of the caller.

    The thread takes another call afterwards, as a new one for each costs more than most calls.

    Args:
        name: of the call, for the thread.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # nobody can keep it from running
    job = _BoundedCall(f"commonplace-{name}", contextvars.copy_context(), call, done)
    try:
        _idle.pop().put(job)
    except IndexError:
        jobs: SimpleQueue[_BoundedCall] = SimpleQueue()
        jobs.put(job)
        thread = threading.Thread(target=_work, args=(jobs,), name=job.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not _is_ending(error):
                raise
            _make(job)()
    return done


def _is_ending(error: RuntimeError) -> bool:
    """Tell whether no thread can be started because the interpreter ends.

    Python 3.12 starts none while what was accepted is finished; the caller's must do.
    """
    return "new thread at interpreter shutdown" in str(error)


class _BoundedCall(NamedTuple):
    name: str
    context: contextvars.Context
    call: Callable[[], Any]
    done: "Future[Any]"


def _make(job: _BoundedCall) -> Callable[[], None]:
    """Make a call; return what tells its outcome to who waits for it."""
    try:
        answer = job.context.run(job.call)
    except BaseException as error:  # noqa: BLE001 -- passed to the waiting caller
        return partial(job.done.set_exception, error)
    return partial(job.done.set_result, answer)


def _work(jobs: "SimpleQueue[_BoundedCall]") -> None:
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
        thread.name = job.name
        tell = _make(job)
        is_needed = len(_idle) < _MAX_IDLE
        if is_needed:
            _idle.append(jobs)  # first, so that who waits for this finds the thread free
        tell()
        del job, tell  # a waiting thread keeps nothing alive
        if not is_needed:
            return


async def await_within(seconds: float, name: str, work: Coroutine[Any, Any, T]) -> T:
    """Await work, `seconds` at most even if it ignores its cancellation.

    Args:
        name: of the call, for the error.

    Raises:
        MemoryTimeoutError: it is not done in time, or somebody else than the caller cancelled it.
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
    """Keep the event loop from logging an error for which nobody may be left to ask."""
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
    return await loop.run_in_executor(threads, partial(call, *args, **kwargs))


_THREADS = 8
_LONGEST_DELAY = 1.0


class KeyedExecutor:
    """Calls `step` for a key until it has nothing left to do.

    Args:
        step: does some of a key's work; returns None when there is none, 0.0 when there may be
            more, or the seconds to wait before the next step. Never two at once for one key.
    """

    def __init__(self, step: Callable[[str], float | None]) -> None:
        self._step = step
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="commonplace-ingest")
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._queued: set[str] = set()  # of the running ones, those that no thread has begun
        self._again: set[str] = set()
        self._delayed: dict[str, tuple[float, float]] = {}  # since when, and scheduled last
        self._timers: set[threading.Timer] = set()
        self._external = 0
        self._entering = 0
        self._stepping = 0
        self.closed: bool = False

    def schedule(self, key: str, *, after: float = 0.0) -> None:
        """Run a key; if it is running, it takes at least one more step.

        Args:
            after: seconds to wait, as long as it is not scheduled again meanwhile: what comes in a
                quick succession is one batch. It waits for a second at most.
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
            self._queued.add(key)
        try:
            self._pool.submit(self._run, key)
        except RuntimeError as error:
            if _is_ending(error):
                self._run(key)
                return
            with self._changed:  # the pool is closed; the journal has everything
                self._running.discard(key)
                self._queued.discard(key)

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
            wake()
            with self._changed:
                self._timers.discard(timer)
                self._changed.notify_all()

        timer = threading.Timer(seconds, run)
        timer.daemon = True
        with self._changed:
            if not self.closed:
                self._timers.add(timer)
                timer.start()

    def count_external(self, change: int) -> None:
        """Count work elsewhere that ends with `schedule`: +1 at its start, -1 at its end."""
        with self._changed:
            self._external += change
            self._changed.notify_all()

    def count_entering(self, change: int) -> None:
        """Count what will schedule a key soon: +1 at its start, -1 at its end."""
        with self._changed:
            self._entering += change
            self._changed.notify_all()

    @property
    def entering(self) -> int:
        """How much will schedule a key soon."""
        return self._entering

    def wait_for_entering(self, timeout: float) -> bool:
        """Wait until nothing will schedule a key soon; False if it takes `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._entering, timeout)

    def wait(self, timeout: float, *, external: bool) -> bool:
        """Wait until no key runs, is scheduled or soon will be; False if `timeout` seconds pass.

        Args:
            external: wait for work elsewhere too.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: (
                    not (
                        self._running
                        or self._timers
                        or self._entering
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
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._changed:
            self._changed.wait_for(lambda: not self._stepping, timeout)

    def _run(self, key: str) -> None:
        with self._changed:
            if key not in self._queued:
                return
            self._queued.discard(key)
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
