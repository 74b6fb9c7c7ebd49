"""Writes handed over on a thread: once begun they are finished, whatever happens to the loop.

A synchronous agent runs each call on a loop of its own that ends with the call, and a write in the
background would end with it. What is handed over here no longer needs that loop.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
GRACE = 2.0
THREADS = 4


async def hand_over(call: Callable[[], T], *, waits: bool = False) -> T:
    """Run a write on a thread and await it; begun before the first pause, and never cancelled.

    A caller who is cancelled meanwhile is told so only if the write takes 2 more seconds: until
    then there is still an answer to give.

    Args:
        waits: for models and stores; those that only are accepted must not stand behind it.
    """
    done = asyncio.wrap_future(_hands(os.getpid(), waits).submit(call))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait({done}, timeout=GRACE)
        if done.done():
            return done.result()
        raise


@cache
def _hands(_process: int, _waits: bool) -> ThreadPoolExecutor:  # noqa: FBT001 -- a key
    # A forked child has none of its parent's threads.
    return ThreadPoolExecutor(THREADS, thread_name_prefix="commonplace-strands")
