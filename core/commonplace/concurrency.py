"""Threads and deadlines: calls with a time limit, and a keyed executor.

A module of its own because every layer uses it; it depends on none of them.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .errors import MemoryTimeoutError

T = TypeVar("T")
MAX_THREADS = 64

_slots = threading.BoundedSemaphore(MAX_THREADS)


def call_within(seconds: float, name: str, call: Callable[[], T]) -> T:
    """Make a blocking call in a thread of its own and wait for it, `seconds` at most.

    A call that takes longer keeps running; its result is discarded. It sees the context variables
    of the caller.

    Args:
        name: of the call, for the error and the thread.

    Raises:
        MemoryTimeoutError: it is not done in time, or 64 abandoned calls are still running.
    """
    if not _slots.acquire(timeout=seconds):
        raise MemoryTimeoutError(call=name, seconds=seconds)
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 -- passed to the waiting caller
            done.set_exception(error)
        finally:
            _slots.release()

    threading.Thread(target=run, name=f"commonplace-{name}", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            return done.result()  # in the last moment, or a timeout of the call's own
        raise MemoryTimeoutError(call=name, seconds=seconds) from None


async def await_within(seconds: float, name: str, work: Coroutine[Any, Any, T]) -> T:
    """Await work, `seconds` at most even if it ignores its cancellation.

    Args:
        name: of the call, for the error.

    Raises:
        MemoryTimeoutError: it is not done in time, or somebody else than the caller cancelled it.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(_retrieve_error)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        is_done = task.done()
        task.cancel()
    if is_done and not task.cancelled():
        return task.result()
    raise MemoryTimeoutError(call=name, seconds=seconds)


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # nobody may be left to ask for it


_THREADS = 8


class KeyedExecutor:
    """Calls `step` for a key until it has nothing left to do.

    Args:
        step: does some of a key's work; returns None when there is none, 0.0 when there may be
            more, or the seconds to wait before the next step. Never two at once for one key.
        on_idle: called when no key runs.
    """

    def __init__(self, step: Callable[[str], float | None], on_idle: Callable[[], None]) -> None:
        self._step = step
        self._on_idle = on_idle
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="commonplace-ingest")
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._delayed: set[str] = set()
        self._timers: set[threading.Timer] = set()
        self._external = 0
        self.closed: bool = False

    def schedule(self, key: str, *, after: float = 0.0) -> None:
        """Run a key in `after` seconds; if it is running, it takes at least one more step."""
        if after:
            with self._changed:
                if key in self._delayed or key in self._running:
                    self._again.add(key)
                    return
                self._delayed.add(key)
            self.schedule_later(key, after, lambda: self._delayed.discard(key))
            return
        with self._changed:
            if self.closed:
                return
            self._again.add(key)
            if key in self._running:
                return
            self._running.add(key)
        try:
            self._pool.submit(self._run, key)
        except RuntimeError:  # the interpreter is shutting down; the journal has everything
            with self._changed:
                self._running.discard(key)

    def schedule_later(self, key: str, seconds: float, before: Callable[[], None]) -> None:
        """Call `before` and run a key, `seconds` from now."""

        def wake() -> None:
            before()
            self.schedule(key)
            with self._changed:
                self._timers.discard(timer)
                self._changed.notify_all()

        timer = threading.Timer(seconds, wake)
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

    def wait(self, timeout: float, *, external: bool) -> bool:
        """Wait until no key runs or is scheduled; False if `timeout` seconds pass before.

        Args:
            external: wait for work elsewhere too.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._running or self._timers or (self._external and external)),
                timeout,
            )

    def close(self) -> None:
        """Finish the running steps and start no more."""
        with self._changed:
            self.closed = True
            for timer in self._timers:
                timer.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, key: str) -> None:
        pause: float | None = 0.0
        while pause == 0.0 and not self.closed:
            with self._changed:
                self._again.discard(key)
            pause = self._step(key)
            with self._changed:
                if pause is None and key in self._again:
                    pause = 0.0
                if pause != 0.0 or self.closed:
                    # Inside the lock: a later `schedule` starts the key again.
                    self._running.discard(key)
                    is_idle = not self._running
        if pause:
            self.schedule_later(key, pause, lambda: None)
        if is_idle:
            self._on_idle()
        with self._changed:
            self._changed.notify_all()
