"""Ingest worker: accepts operations into the journal, plans them and applies them to every store.

The operations of one partition are applied in the order of acceptance. One whose models are
asynchronous is planned on the event loop that wrote it; until then later ones may pass it.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..concurrency import KeyedExecutor
from ..errors import (
    CommonplaceError,
    InvalidRecordError,
    LoopRequiredError,
    MemoryClosedError,
    ModelUnreadableError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ..model import Backlog, EraseReceipt, WriteResult
from ..ports.stores import Engines, Journal, Operation, crash_point
from ..settings import Settings
from .applying import Describe, apply
from .codec import record_ids
from .erasure import erase
from .planning import Models, RunInThread, plan_async, plan_batch

OperationResult = WriteResult | EraseReceipt

_BATCH = 64
_ATTEMPTS_BEFORE_NOTICE = 3  # after which a waiting caller gets the error; retries go on
_GATHER_SECONDS = 0.02
_PERMANENT = (InvalidRecordError, ModelUnreadableError, SchemaMismatchError)
_OF_STORE = (StoreRefusedError, StoreUnavailableError)  # whatever the operation is
_log = logging.getLogger("commonplace")


class IngestWorker:
    """Accepts operations and applies them to every store, on threads of its own.

    Args:
        models: plan what earlier processes left in the journal.
        describe: gives a text's terms and its length in words.
    """

    def __init__(
        self, engines: Engines, settings: Settings, models: Models, describe: Describe
    ) -> None:
        self._engines = engines
        self._settings = settings
        self._default_models = models
        self._describe = describe
        self._executor = KeyedExecutor(self._step, self._sync_if_due)
        self.async_models: AsyncModelRunner = AsyncModelRunner(
            engines.journal, self._executor, self._plan_until_done
        )
        self._syncing = threading.Lock()
        self._waiting: dict[str, Future[OperationResult]] = {}
        self._models: dict[str, Models] = {}
        self._backing_off: set[str] = set()  # operations that wait for their next attempt
        self._applied: set[int] = set()

    # -- opening, accepting, closing -----------------------------------------------------------

    def recover(self) -> None:
        """Apply again what the index may have lost, and schedule what an earlier process left."""
        applied = self._engines.journal.unflushed()
        changes = [op for op in applied if op.kind != "forget"]
        for start in range(0, len(changes), _BATCH):
            self._reapply(changes[start : start + _BATCH])
        self._applied.update(op.seq for op in applied)
        self.resume()

    def _reapply(self, ops: Sequence[Operation]) -> None:
        try:
            self._apply_to_stores(ops)
        except _OF_STORE:
            raise
        except Exception:  # as in _apply
            if len(ops) > 1:
                for op in ops:
                    self._reapply([op])
            else:  # it was applied once: it must not keep the others from being read
                _log.exception("An operation cannot be applied again; the index may lack it")

    def resume(self) -> None:
        """Schedule every pending operation."""
        for op in self._engines.journal.pending(limit=self._settings.max_pending):
            if self._models_of(op).need_loop(op):
                self.async_models.add_orphan(op)
            else:
                self._executor.schedule(op.scope.partition)

    def accept(
        self, ops: Sequence[Operation], models: Models, *, claimed: bool, urgent: bool
    ) -> "list[tuple[Operation, Future[OperationResult]]]":
        """Journal operations, durably, all or none; return each with the future of its result.

        Args:
            claimed: the caller will run `AsyncModelRunner.plan_here` if the models need a loop.
            urgent: the caller waits; else operations gather for a moment into one batch.

        Raises:
            BackpressureError: too many operations are pending; nothing was accepted.
        """
        if self._executor.closed:
            raise MemoryClosedError
        futures: list[Future[OperationResult]] = [Future() for _ in ops]
        for op, future in zip(ops, futures, strict=True):
            self._waiting[op.id], self._models[op.id] = future, models
        crash_point("before_journal")
        try:
            plans = self._plan_before_journal(ops, models) if urgent else {}
            frozen = {key: plan for key, plan in plans.items() if isinstance(plan, bytes)}
            planned = [replace(op, plan=frozen.get(op.id, op.plan)) for op in ops]
            accepted = self._engines.journal.append(planned, max_pending=self._settings.max_pending)
        except BaseException:
            for op in ops:
                self._waiting.pop(op.id, None)
                self._models.pop(op.id, None)
            raise
        crash_point("after_journal")
        partitions: dict[str, None] = {}
        for op in accepted:
            if not models.need_loop(op):
                partitions[op.scope.partition] = None
                if isinstance(error := plans.get(op.id), CommonplaceError):
                    self._back_off(op, error)
            elif not claimed:
                self.async_models.add_orphan(op)
        for partition in partitions:
            self._executor.schedule(partition, after=0.0 if urgent else _GATHER_SECONDS)
        return list(zip(accepted, futures, strict=True))

    def _plan_before_journal(
        self, ops: Sequence[Operation], models: Models
    ) -> "dict[str, bytes | CommonplaceError]":
        """Plan now what needs a synchronous embedder only: that saves a second journal write.

        What is extracted, or needs an event loop, is planned once it is in the journal.
        """
        work = [(op, models) for op in ops if models.only_embed(op)]
        try:
            return {op.id: plan for op, plan in plan_batch(work, self._settings)}
        except SystemExit:  # a model meant to end its thread, not the caller's
            return {}

    def flush(self, timeout: float) -> Backlog:
        """Wait until nothing is running or scheduled, `timeout` seconds at most; count the rest."""
        for partition in {op.scope.partition for op in self._engines.journal.pending()}:
            self._executor.schedule(partition)
        self._executor.wait(timeout, external=not is_on_loop())
        left = self._engines.journal.count()
        return Backlog(pending=left.pending, dead=left.dead)

    def sync_index(self) -> None:
        """Make the index safe against power loss and prune the journal accordingly."""
        with self._syncing:
            done = set(self._applied)
            if not done:
                return
            crash_point("before_flush")
            self._engines.index.flush()
            crash_point("after_flush")
            self._engines.journal.prune(done)
            crash_point("after_prune")
            self._applied -= done

    def _sync_if_due(self) -> None:
        if len(self._applied) >= self._settings.flush_every:
            self.sync_index()

    def close(self, timeout: float) -> Backlog:
        """Finish what can be finished in `timeout` seconds; the rest stays in the journal."""
        left = self.flush(timeout)
        self._executor.close()
        self.sync_index()
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(MemoryClosedError())
        return left

    # -- one partition, on a thread of the executor --------------------------------------------

    def _step(self, partition: str) -> float | None:
        try:
            batch = self._next_batch(partition)
            try:
                return self._process(batch) if batch else None
            except StoreRefusedError as error:
                # To ask again may lock the user out: this waits for the next `schedule`.
                _log.error("Writes wait in the journal: %s", error)
                self._notify(partition, error)
                return None
        except BaseException:  # even a model's exit must not end the work
            _log.exception("The work on a partition stopped and will be retried")
            return self._settings.retry_after

    def _next_batch(self, partition: str) -> list[Operation]:
        """Read the next operations to process: an erasure alone, others up to a batch."""
        for limit in (_BATCH, self._settings.max_pending):
            pending = self._engines.journal.pending(partition, limit=limit)
            ready = self._ready(pending)[:_BATCH]
            if ready or len(pending) < limit:
                break
        until = next((i for i, op in enumerate(ready) if op.kind == "forget"), len(ready))
        return ready[: until or 1]

    def _ready(self, pending: Sequence[Operation]) -> list[Operation]:
        """Leave out what backs off or needs a loop, and what is about a record of such a one."""
        ready: list[Operation] = []
        blocked: set[str] = set()  # the records of those that are left out
        for op in pending:
            waits = op.id in self._backing_off or self._models_of(op).need_loop(op)
            ids = record_ids(op) if waits or blocked else set()
            if waits or not blocked.isdisjoint(ids):
                blocked |= ids
            else:
                ready.append(op)
        return ready

    def _process(self, batch: Sequence[Operation]) -> float:
        if batch[0].kind == "forget":
            return self._erase(batch[0])
        crash_point("before_plan")
        unplanned = [op for op in batch if op.plan is None and op.kind != "delete"]
        plans: dict[int, bytes] = {}
        for op, plan in plan_batch([(op, self._models_of(op)) for op in unplanned], self._settings):
            if isinstance(plan, bytes):
                plans[op.seq] = plan
            else:
                self._back_off(op, plan)
        if plans:
            self._engines.journal.plan(plans)
        crash_point("after_plan")
        planned = [replace(op, plan=plans.get(op.seq, op.plan)) for op in batch]
        return self._apply([op for op in planned if op.plan is not None or op.kind == "delete"])

    def _apply(self, ops: Sequence[Operation]) -> float:
        if not ops:
            return 0.0
        try:
            results = self._apply_to_stores(ops)
        except StoreRefusedError:
            raise
        except Exception as error:  # a faulty operation must not stop the others
            if len(ops) > 1 and not isinstance(error, StoreUnavailableError):
                return max(self._apply([op]) for op in ops)
            return self._retry_or_give_up(ops, error)
        for result in results:  # before the mark: a crash costs a replay that changes nothing
            self._resolve(result.operation, result)
        self._engines.journal.done([op.seq for op in ops])
        crash_point("after_done")
        self._applied.update(op.seq for op in ops)
        return 0.0

    def _apply_to_stores(self, ops: Sequence[Operation]) -> list[WriteResult]:
        engines = self._engines
        changes = apply(
            ops,
            graph=engines.graph,
            index=engines.index,
            describe=self._describe,
            shared=engines.shared,
        )
        pairs = zip(ops, changes, strict=True)
        return [WriteResult(operation=op.id, changes=some) for op, some in pairs]

    def _erase(self, op: Operation) -> float:
        """Carry out an erasure; resolve it, and the writes that it overtook."""
        limit = self._settings.max_pending
        pending = self._engines.journal.pending(op.scope.partition, limit=limit)
        try:
            receipt = erase(op, self._engines, datetime.now(UTC))
        except StoreRefusedError:
            raise
        except Exception as error:  # whatever it was, the caller gets it
            return self._retry_or_give_up([op], error)
        for one in pending:
            if one.seq < op.seq and op.scope.covers(one.scope):
                self._resolve(one.id, WriteResult(operation=one.id))
        self._resolve(op.id, receipt)
        return 0.0

    # -- failures and results ------------------------------------------------------------------

    def _retry_or_give_up(self, ops: Sequence[Operation], error: Exception) -> float:
        """Count a failed attempt; return the seconds until the next, 0.0 if there is none."""
        attempts = [self._engines.journal.failed(op.seq) for op in ops]
        given_up = [self._gives_up(*one, error) for one in zip(ops, attempts, strict=True)]
        if max(attempts) >= _ATTEMPTS_BEFORE_NOTICE and isinstance(error, StoreUnavailableError):
            self._notify(ops[0].scope.partition, error)
        return 0.0 if all(given_up) else self._delay(max(attempts))

    def _back_off(self, op: Operation, error: CommonplaceError) -> None:
        attempts = self._engines.journal.failed(op.seq)
        if not self._gives_up(op, attempts, error):
            self._backing_off.add(op.id)
            wake = lambda: self._backing_off.discard(op.id)  # noqa: E731 -- one use
            self._executor.schedule_later(op.scope.partition, self._delay(attempts), wake)

    def _gives_up(self, op: Operation, attempts: int, error: Exception) -> bool:
        """Dead-letter an operation that will not succeed; notify its caller when it takes long."""
        is_hopeless = isinstance(error, _PERMANENT) or (
            attempts >= self._settings.max_attempts and not isinstance(error, StoreUnavailableError)
        )
        if is_hopeless:
            _log.error("A write is now a dead letter: %s", error)
            self._engines.journal.dead_letter(op.seq, f"{type(error).__name__}: {error}")
        if is_hopeless or attempts >= _ATTEMPTS_BEFORE_NOTICE:
            self._resolve(op.id, error)
        return is_hopeless

    def _notify(self, partition: str, error: CommonplaceError) -> None:
        """Resolve with an error all that is pending in a partition, also behind what failed."""
        for op in self._engines.journal.pending(partition, limit=self._settings.max_pending):
            self._resolve(op.id, error)

    def _resolve(self, operation: str, result: OperationResult | Exception) -> None:
        future = self._waiting.pop(operation, None)
        if isinstance(result, Exception):
            if future is not None and not future.done():
                future.set_exception(result)
            return
        self._models.pop(operation, None)
        if future is not None and not future.done():
            future.set_result(result)

    def _delay(self, attempts: int) -> float:
        return float(min(60.0, self._settings.retry_after * 2 ** min(attempts - 1, 16)))

    def _models_of(self, op: Operation) -> Models:
        return self._models.get(op.id, self._default_models)

    async def _plan_until_done(self, op: Operation, run: RunInThread) -> bytes | None:
        attempts = op.attempts
        while True:
            try:
                return await plan_async(op, self._models_of(op), self._settings, run)
            except Exception as error:  # whatever it was, the caller gets it
                attempts += 1
                if await run(self._gives_up, op, attempts, error):
                    return None
            await asyncio.sleep(self._delay(attempts))


class AsyncModelRunner:
    """Plans operations on their callers' event loops; work left by a closed loop goes to the next.

    Args:
        plan: plans one operation on the running loop until it succeeds; None if it never will.
    """

    def __init__(
        self,
        journal: Journal,
        executor: KeyedExecutor,
        plan: Callable[[Operation, RunInThread], Awaitable[bytes | None]],
    ) -> None:
        self._journal = journal
        self._executor = executor
        self._plan = plan
        self._orphans: dict[str, Operation] = {}
        self._planning: dict[str, tuple[Operation, asyncio.AbstractEventLoop]] = {}

    def add_orphan(self, op: Operation) -> None:
        """Leave an operation to the next loop, unless one is planning it."""
        if op.id not in self._planning:
            self._orphans[op.id] = op

    @property
    def has_orphans(self) -> bool:
        """Operations wait for a loop; those of a loop that was closed are among them."""
        for key, (op, loop) in list(self._planning.items()):
            if loop.is_closed() and self._planning.pop(key, None) is not None:
                self._executor.count_external(-1)
                self._orphans[key] = op
        return bool(self._orphans)

    async def plan_here(self, op: Operation, run: RunInThread) -> None:
        """Plan an operation on the running loop; cancelled, it is left to `plan_orphans`."""
        if op.id in self._planning:
            return
        self._planning[op.id] = op, asyncio.get_running_loop()
        self._executor.count_external(+1)
        try:
            plan = await self._plan(op, run)
            if plan is not None:
                await run(self._journal.plan, {op.seq: plan})
                self._executor.schedule(op.scope.partition)
        except BaseException:
            self._orphans[op.id] = op
            raise
        finally:
            if self._planning.pop(op.id, None) is not None:
                self._executor.count_external(-1)

    async def plan_orphans(self, run: RunInThread) -> None:
        """Plan on the running loop what dead loops orphaned."""
        while self._orphans:
            try:
                _, op = self._orphans.popitem()
            except KeyError:  # another loop took the last one
                return
            await self.plan_here(op, run)


def is_on_loop() -> bool:
    """Tell whether waiting here would stop an event loop, and with it what is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
