"""Submission of one memory's operations to the ingest worker, from a thread or an event loop."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from ..errors import LoopRequiredError
from ..model import Backlog, WriteResult
from ..ports.stores import Operation
from .planning import Models, RunInThread
from .worker import IngestWorker, OperationResult


class Submission:
    """Submits operations to the worker and waits for their results.

    Args:
        models: plan what is submitted here.
        run: runs blocking calls on the threads of reads.
        run_write: the same on threads that no read needs; a call may wait for an embedder.
    """

    def __init__(
        self, worker: IngestWorker, models: Models, run: RunInThread, run_write: RunInThread
    ) -> None:
        self._worker = worker
        self._models = models
        self._run = run
        self._run_write = run_write
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, operations: Sequence[Operation], *, wait: bool) -> list[Any]:
        """Accept operations, all or none; return a result each, without `wait` a pending one."""
        if wait and any(map(self._models.need_loop, operations)):
            raise LoopRequiredError(call=operations[0].kind, model=self._models.embedder.id)
        accepted = self._worker.accept(operations, self._models, claimed=False, urgent=wait)
        if not wait:
            return [WriteResult(operation=one.id, pending=True) for one in operations]
        return [future.result() for _, future in accepted]

    async def asubmit(self, operations: Sequence[Operation], *, wait: bool) -> list[Any]:
        """Accept operations as `submit`; asynchronous models are awaited on the running loop."""
        # Once the journal has accepted, a cancelled caller must not leave a write half claimed.
        return await asyncio.shield(asyncio.ensure_future(self._accept(operations, wait=wait)))

    def adopt_orphans(self) -> None:
        """Plan on the running loop the operations that dead loops orphaned."""
        if self._worker.async_models.has_orphans:
            self._spawn(self._worker.async_models.plan_orphans(self._run))

    async def aflush(self, timeout: float) -> Backlog:
        """Wait until every accepted write is applied or `timeout` seconds are over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        self.adopt_orphans()
        while own := [task for task in self._tasks if task.get_loop() is loop]:
            if until <= loop.time():
                break
            await asyncio.wait(own, timeout=until - loop.time())
        left: Backlog = await self._run(self._worker.flush, max(0.0, until - loop.time()))
        return left

    async def _accept(
        self, operations: Sequence[Operation], *, wait: bool
    ) -> list[OperationResult]:
        run = self._run_write if wait else self._run
        accepted = await run(
            self._worker.accept, operations, self._models, claimed=True, urgent=wait
        )
        for operation, _ in accepted:
            if self._models.need_loop(operation):
                self._spawn(self._worker.async_models.plan_here(operation, self._run))
        self.adopt_orphans()
        if not wait:
            return [WriteResult(operation=one.id, pending=True) for one in operations]
        futures = [asyncio.wrap_future(future) for _, future in accepted]
        results = await asyncio.gather(*futures, return_exceptions=True)
        for one in results:
            if isinstance(one, BaseException):
                raise one
        return list(results)  # type: ignore[arg-type]  # no exception is left

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
