"""Runner of asynchronous models: plans operations on the event loops of their callers."""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from ..concurrency import KeyedExecutor
from ..errors import StoreRefusedError
from ..ports.stores import Operation
from .planning import PlannedChanges, RunInThread


class AsyncModelRunner:
    """Plans operations on their callers' event loops; work left by a closed loop goes to the next.

    Args:
        plan: plans one operation on the running loop until it succeeds; None if it never will. It
            may raise `StoreRefusedError`: the operation waits until orphans are adopted again.
        done: takes what was planned.
    """

    def __init__(
        self,
        executor: KeyedExecutor,
        plan: Callable[[Operation, RunInThread], Awaitable[PlannedChanges | None]],
        done: Callable[[Operation, PlannedChanges], None],
    ) -> None:
        self._executor = executor
        self._plan = plan
        self._done = done
        self._orphans: dict[str, Operation] = {}
        self._planning: dict[str, tuple[Operation, asyncio.AbstractEventLoop]] = {}

    def add_orphan(self, op: Operation) -> None:
        """Leave an operation to the next loop, unless one is planning it."""
        if op.id not in self._planning:
            self._orphans[op.id] = op

    def is_orphaned(self, op: Operation) -> bool:
        """Tell whether an operation waits for a loop."""
        return op.id in self._orphans

    def is_on(self, loop: asyncio.AbstractEventLoop, op: Operation) -> bool:
        """Tell whether an operation is being planned on a loop."""
        return op.id in self._planning and self._planning[op.id][1] is loop

    def orphans(self) -> list[Operation]:
        """List the operations that wait for a loop, those of closed loops among them."""
        for key, (op, loop) in list(self._planning.items()):
            if loop.is_closed() and self._planning.pop(key, None) is not None:
                self._executor.count_external(-1)
                self._orphans[key] = op
        return list(self._orphans.values())

    async def plan_here(self, op: Operation, run: RunInThread) -> None:
        """Plan an orphaned operation on the running loop; cancelled, it is orphaned again."""
        if self._orphans.pop(op.id, None) is None:  # another loop was quicker
            return
        self._planning[op.id] = op, asyncio.get_running_loop()
        self._executor.count_external(+1)
        try:
            changes = await self._plan(op, run)
            if changes is not None:
                self._done(op, changes)
        except StoreRefusedError:  # logged; to ask again may lock the user out
            self._orphans[op.id] = op
        except BaseException:
            self._orphans[op.id] = op
            raise
        finally:
            if self._planning.pop(op.id, None) is not None:
                self._executor.count_external(-1)


class LoopTurns:
    """Locks by which operations of one owner that ask a chat model are planned in turn.

    Those of one event loop, in the order in which they come; other loops have other locks.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    def of(self, op: Operation) -> asyncio.Lock:
        """Return the lock of an operation on the running loop."""
        return self._locks.setdefault(
            (asyncio.get_running_loop(), op.scope.owner.key), asyncio.Lock()
        )


def is_on_loop() -> bool:
    """Tell whether waiting here would stop an event loop, and with it what is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
