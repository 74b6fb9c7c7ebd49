"""Loads a memory's embedder before it is needed, in a thread and once for all who use it."""

import asyncio
import threading
from concurrent.futures import Future
from weakref import WeakKeyDictionary

from commonplace import Memory, Scope
from commonplace.agents.handlers import within
from commonplace.agents.policy import WRITE_PATIENCE

_warmed: "WeakKeyDictionary[Memory, Future[None]]" = WeakKeyDictionary()
_lock = threading.Lock()


def warm(memory: Memory) -> None:
    """Load a memory's embedder in a thread, once: now is time for it, inside a recall is not."""
    with _lock:
        if memory in _warmed:
            return
        done = _warmed[memory] = Future()
        done.set_running_or_notify_cancel()  # no impatient turn cancels it
    threading.Thread(target=_load, args=(memory, done), daemon=True).start()


async def ready(memory: Memory) -> None:
    """Wait until the embedder is loaded, if that is under way; once, and for 10 seconds at most.

    Raises:
        MemoryTimeoutError: it takes longer; nobody waits for it again.
    """
    loading = _warmed.get(memory)
    if loading is None or loading.done():
        return
    try:
        await within(WRITE_PATIENCE, "loading the embedder", _loaded(loading))
    except TimeoutError:
        over: Future[None] = Future()
        over.set_result(None)
        _warmed[memory] = over
        raise


async def _loaded(loading: "Future[None]") -> None:
    await asyncio.wrap_future(loading)


def _load(memory: Memory, done: "Future[None]") -> None:
    try:
        memory.search("warm", Scope(user_id="nobody"), top_k=1)
    except Exception:  # noqa: BLE001, S110 -- whoever recalls is told
        pass
    finally:
        done.set_result(None)
