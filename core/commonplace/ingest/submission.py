"""Submission of writes: from a caller's thread or event loop to the worker, and its result back.

A write goes on when its caller stops waiting, and when the caller's event loop ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from typing import Any

from ..concurrency import retrieve_error, run_on
from ..errors import InvalidRecordError, LoopRequiredError
from ..ports.stores import Operation
from ..types import Backlog, Wait, WriteResult
from .codec import Write
from .direct import DirectWriter
from .planning import Models
from .worker import IngestWorker, OperationResult

_MAX_SECONDS = 1e9  # no clock can wait much longer
MakeWrites = Callable[[], Sequence[Write]]


class Submission:
    """Submits the writes of one open memory.

    Args:
        models: plan what is submitted here.
        threads: for writes alone, so that no read can hold one up.
    """

    def __init__(
        self,
        direct: DirectWriter,
        worker: IngestWorker,
        models: Models,
        threads: Executor,
    ) -> None:
        self._direct = direct
        self._worker = worker
        self._models = models
        self._threads = threads
        self._tasks: set[asyncio.Task[Any]] = set()

    def submit(self, make: MakeWrites, *, wait: Wait) -> list[Any]:
        """Validate and accept writes, all or none; return a result each, in their order.

        Args:
            make: validates and makes the writes.
        """
        seconds = _check_wait(wait)
        self._worker.enter()
        done, accepted = self._enter(make, wait, on_loop=False)
        if done is not None:
            return done
        if seconds != 0 and not any(self._models.need_loop(one) for one, _ in accepted):
            wait_for([future for _, future in accepted], timeout=seconds)
        return [_result(*one) for one in accepted]

    async def asubmit(self, make: MakeWrites, *, wait: Wait) -> list[Any]:
        """Submit writes as `submit`; asynchronous models are awaited on the running loop.

        It is under way before the first pause, and goes on when the caller is cancelled.
        """
        seconds = _check_wait(wait)
        self._worker.enter()
        try:
            entering = self._threads.submit(self._enter, make, wait, on_loop=True)
        except BaseException:
            self._worker.leave()
            raise
        return await asyncio.shield(self._spawn(self._finish(entering, seconds)))

    def adopt_orphans(self) -> None:
        """Plan on the running loop the operations that dead loops orphaned."""
        runner = self._worker.async_models
        for one in runner.orphans():
            self._spawn(runner.plan_here(one, self._run))

    async def aflush(self, timeout: float) -> Backlog:
        """Wait until every write is applied or `timeout` seconds are over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        self.adopt_orphans()
        while own := [task for task in self._tasks if task.get_loop() is loop]:
            if until <= loop.time():
                break
            await asyncio.wait(own, timeout=until - loop.time())
        return await run_on(None, self._worker.flush, max(0.0, until - loop.time()))

    def _enter(
        self, make: MakeWrites, wait: Wait, *, on_loop: bool
    ) -> "tuple[list[Any] | None, list[tuple[Operation, Future[OperationResult]]]]":
        """Carry writes out now, or accept them; return their results, or what was accepted."""
        try:
            writes = make()
            if not writes:
                return [], []
            if wait is True:
                if not on_loop and (needs := [w for w in writes if self._models.need_loop_for(w)]):
                    kind, model = needs[0].operation.kind, self._models.embedder.id
                    raise LoopRequiredError(call=kind, model=model)
                done = self._direct.write(writes, self._models)
                if done is not None:
                    return done, []
            urgent = wait is not False
            return None, self._worker.accept(writes, self._models, urgent=urgent)
        finally:
            self._worker.leave()

    async def _finish(
        self,
        entering: "Future[tuple[list[Any] | None, list[tuple[Operation, Future[Any]]]]]",
        seconds: float | None,
    ) -> list[Any]:
        done, accepted = await asyncio.shield(asyncio.wrap_future(entering))
        if done is not None:
            return done
        self.adopt_orphans()
        if seconds != 0:
            futures = [asyncio.wrap_future(future) for _, future in accepted]
            for one in futures:  # `_result` raises the error, of what is done in time
                one.add_done_callback(retrieve_error)
            await asyncio.wait(futures, timeout=seconds)
        return [_result(*one) for one in accepted]

    async def _run(self, call: Callable[..., Any], *args: Any) -> Any:
        return await run_on(self._threads, call, *args)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _check_wait(given: object) -> float | None:
    """Return the seconds to wait, None for ever."""
    if given is True:
        return None
    if given is False:
        return 0.0
    if isinstance(given, int | float) and 0 < given <= _MAX_SECONDS:
        return float(given)
    raise InvalidRecordError(
        field="wait",
        value=given,
        reason="must be True, False or a number of seconds above zero, a billion at most",
    )


def _result(operation: Operation, future: "Future[OperationResult]") -> OperationResult:
    """Return the result of an accepted operation, pending if there is none yet.

    Raises:
        CommonplaceError: it failed.
    """
    if future.done():
        return future.result()
    return WriteResult(operation=operation.id, pending=True)
