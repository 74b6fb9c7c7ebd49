"""Submission of writes: carried out at once where that is quick, else handed to the worker.

A write goes on when its caller stops waiting, and when the caller's event loop ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from functools import partial
from itertools import chain
from typing import Any

from ..concurrency import call_within, retrieve_error, run_on
from ..errors import CommonplaceError, InvalidRecordError, LoopRequiredError, MemoryTimeoutError
from ..model_calls import embed
from ..ports.engines import Transactional
from ..ports.stores import Engines, Operation, crash_point
from ..telemetry import carried
from ..types import Backlog, Wait, WriteResult
from .applying import apply_to, described
from .changes import DeleteBody, Write, WriteBody, WritePlan
from .planning import Models, PlannedChanges, plan_deletion, texts_to_embed, with_vectors
from .worker import IngestWorker, OperationResult

_QUICK_SECONDS = 0.05  # that an embedder may take before a write is accepted
_MAX_SECONDS = 1e9  # no clock can wait much longer
MakeWrites = Callable[[], Sequence[Write]]


class Submission:
    """Submits the writes of one open memory.

    Args:
        models: plan what is submitted here.
        threads: for writes alone, so that no read can hold one up.
    """

    def __init__(self, worker: IngestWorker, models: Models, threads: Executor) -> None:
        self._worker = worker
        self._engines = worker.engines if isinstance(worker.engines, Transactional) else None
        self._limit = worker.settings.max_embed_chars
        self._executor = worker.executor
        self._models = models
        self._threads = threads
        self._tasks: set[asyncio.Task[Any]] = set()

    def submit(self, make: MakeWrites, *, wait: Wait) -> list[Any]:
        """Validate and accept writes, all or none; return a result each, in their order."""
        seconds = _check_wait(wait)
        self._executor.enter()
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
        self._executor.enter()
        try:
            entering = self._threads.submit(carried(self._enter), make, wait, on_loop=True)
        except BaseException:
            self._executor.leave()
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
                done = self._write_now(writes)
                if done is not None:
                    return done, []
            urgent = wait is not False
            return None, self._worker.accept(writes, self._models, urgent=urgent)
        finally:
            self._executor.leave()

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

    # -- on the caller's thread ----------------------------------------------------------------

    def _write_now(self, writes: Sequence[Write]) -> list[WriteResult] | None:
        """Carry writes out in one transaction, all or none, and keep no operation.

        Returns:
            A result each; None, with nothing changed, where that cannot be: the engines are not in
            one file, a model is slow, or earlier writes of a partition wait.

        Raises:
            StoreUnavailableError: nothing was stored.
        """
        engines = self._engines
        if engines is None:
            return None
        crash_point("before_journal")
        planned = self._plan_quickly(writes)
        if planned is None:
            return None
        describe = described(planned, self._worker.describe)
        partitions = {one.operation.scope.partition for one in writes}

        def work(bound: Engines) -> list[WriteResult] | None:
            if any(bound.journal.pending(one, limit=1) for one in partitions):
                return None
            ops = bound.journal.stamp([write.operation for write in writes])
            return apply_to(bound, list(zip(ops, planned, strict=True)), describe)

        return engines.transact(work)

    def _plan_quickly(self, writes: Sequence[Write]) -> list[PlannedChanges] | None:
        """Plan writes that need an embedder alone, if it is quick; None if not."""
        bodies = [write.body for write in writes]
        if any(body is None or getattr(body, "messages", ()) for body in bodies):
            return None  # an erasure, or for a chat model
        puts = [body.puts if isinstance(body, WriteBody) else () for body in bodies]
        embedded = self._embed_quickly(texts_to_embed(list(chain.from_iterable(puts)), self._limit))
        if embedded is None:
            return None
        vectors = iter(embedded)
        return [
            plan_deletion(write.operation.scope, write.body)
            if isinstance(write.body, DeleteBody)
            else with_vectors(WritePlan(puts=own), vectors, self._limit)
            for write, own in zip(writes, puts, strict=True)
        ]

    def _embed_quickly(self, texts: Sequence[str]) -> Any:
        """Embed texts if that takes but a moment; None if it takes longer, or fails."""
        if not texts:
            return []
        embedder, pace = self._models.embedder, self._worker.pace
        if pace.expect(embedder, len(texts)) > _QUICK_SECONDS:
            return None  # it is slow, or was never measured, as no asynchronous one is
        call = partial(embed, embedder, texts, purpose="document", limit=self._limit)
        try:
            return call_within(_QUICK_SECONDS, "embed", call)
        except MemoryTimeoutError:
            pace.forget(embedder)
        except (CommonplaceError, SystemExit):  # once it is accepted, it is tried again
            pass
        return None


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
    """Return the result of an accepted operation, pending if there is none yet."""
    if future.done():
        return future.result()
    return WriteResult(operation=operation.id, pending=True)
