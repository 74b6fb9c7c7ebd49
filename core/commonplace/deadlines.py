"""Calls with a deadline, on a thread or on an event loop; apart because every layer waits."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from .errors import MemoryTimeoutError

T = TypeVar("T")
MAX_THREADS = 64

_slots = threading.BoundedSemaphore(MAX_THREADS)


def call_within(seconds: float, name: str, call: Callable[[], T]) -> T:
    """Make a blocking call in a thread of its own and wait for it, `seconds` at most.

    A call that takes longer goes on; its result is dropped. It sees the caller's context variables.

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
        except BaseException as error:  # noqa: BLE001 -- whoever waits for it gets it
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
