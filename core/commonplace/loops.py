"""Planning on the event loops of callers, where their asynchronous models can be awaited."""

import asyncio
from collections.abc import Awaitable, Callable

from .exchange import Op
from .lanes import Lanes
from .planner import Run
from .ports import Journal


class Loops:
    """Plans changes on whichever loop comes by; a loop that dies leaves them to the next.

    Args:
        plan: plans one change on the running loop until it works; None if it never will.
    """

    def __init__(
        self, journal: Journal, lanes: Lanes, plan: Callable[[Op, Run], Awaitable[bytes | None]]
    ) -> None:
        self._journal = journal
        self._lanes = lanes
        self._plan = plan
        self._orphans: dict[str, Op] = {}
        self._planning: dict[str, tuple[Op, asyncio.AbstractEventLoop]] = {}

    def leave(self, op: Op) -> None:
        """Leave a change to the next loop, unless one is at it."""
        if op.id not in self._planning:
            self._orphans[op.id] = op

    @property
    def has_orphans(self) -> bool:
        """Changes wait for a loop; also those of one that was closed."""
        for key, (op, loop) in list(self._planning.items()):
            if loop.is_closed() and self._planning.pop(key, None) is not None:
                self._lanes.elsewhere(-1)
                self._orphans[key] = op
        return bool(self._orphans)

    async def plan_here(self, op: Op, run: Run) -> None:
        """Plan a change on the running loop.

        Cancelled, it is left to `plan_orphans`; it stays in the journal.
        """
        if op.id in self._planning:
            return
        self._planning[op.id] = op, asyncio.get_running_loop()
        self._lanes.elsewhere(+1)
        try:
            frozen = await self._plan(op, run)
            if frozen is not None:
                await run(self._journal.plan, {op.seq: frozen})
                self._lanes.kick(op.scope.lane)
        except BaseException:
            self._orphans[op.id] = op
            raise
        finally:
            if self._planning.pop(op.id, None) is not None:
                self._lanes.elsewhere(-1)

    async def plan_orphans(self, run: Run) -> None:
        """Plan what dead loops left behind, on the running loop."""
        while self._orphans:
            try:
                _, op = self._orphans.popitem()
            except KeyError:  # another loop took the last one
                return
            await self.plan_here(op, run)


def on_a_loop() -> bool:
    """Tell whether waiting here would stop an event loop, and so what it is waiting for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
