"""Writes that run in the background: waited for while there is patience, never cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from commonplace.agents.session import WarnOnce

MOST_LATE = 100


class Writes:
    """The running writes of one memory; kept here, for a loop keeps no task alive."""

    def __init__(self, warn: WarnOnce) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._warn = warn

    @property
    def is_late(self) -> bool:
        """A write that was waited for in vain still runs."""
        return any(not task.get_loop().is_closed() for task in self._late)

    @property
    def is_idle(self) -> bool:
        """No write runs on a loop that is open."""
        return all(task.get_loop().is_closed() for task in self._running)

    async def see_off(self, work: Coroutine[Any, Any, None], patience: float) -> None:
        """Start a write and wait for it; it goes on when the patience is over or the caller goes.

        `patience` is in seconds. With 100 late writes before it a write is given up, lest they pile
        up for as long as a memory hangs.
        """
        if len(self._late) >= MOST_LATE:
            work.close()
            self._warn("write", BlockingIOError(f"{MOST_LATE} writes before it are late"))
            return
        task = asyncio.create_task(work)
        for tasks in (self._running, self._late):
            task.add_done_callback(tasks.discard)
        self._running.add(task)
        # `wait` leaves the task running, whatever happens to its caller.
        _, late = await asyncio.wait({task}, timeout=patience)
        if late:
            self._late.add(task)
            self._warn("write", TimeoutError(f"still running after {patience:g} s"))

    async def wait(self, timeout: float) -> None:
        """Wait for the writes of the running loop, for `timeout` seconds at most."""
        loop = asyncio.get_running_loop()
        running = {task for task in self._running if task.get_loop() is loop}
        if running:
            await asyncio.wait(running, timeout=timeout)
