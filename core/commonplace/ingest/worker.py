"""The writing side: accept into the journal, then plan and apply, one partition per owner, in order.

A change whose models are asynchronous is planned on the event loop that wrote it (`loops`); until
then later changes of its partition may pass it.


MERGED FROM commonplace.loops: Planning on the event loops of callers, where their asynchronous models can be awaited."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime

from ..errors import (
    CommonplaceError,
    InvalidRecordError,
    MemoryClosedError,
    ModelUnreadableError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ..model import Backlog, EraseReceipt, WriteResult
from ..ports.stores import Engines, Journal, Operation, Terms
from ..settings import Settings
from .applying import apply, planned
from .codec import record_ids
from .crash_points import crash_point
from .erasure import erase
from .executor import KeyedExecutor
from .planning import Models, Run, plan_alone, plan_batch

Result = WriteResult | EraseReceipt
_BATCH = 64
_ATTEMPTS_BEFORE_NOTICE = (
    3  # failed attempts after which a waiting caller is told; the change is retried on
)
_GATHER_SECONDS = 0.02
_PERMANENT = (InvalidRecordError, ModelUnreadableError, SchemaMismatchError)
_OF_STORE = (StoreRefusedError, StoreUnavailableError)  # whatever the change is
_log = logging.getLogger("commonplace")


class IngestWorker:
    """Accepts changes and brings them into every store.

    Args:
        models: plan what earlier processes left behind.
        describe: gives a text's terms and its length in words.
    """

    def __init__(
        self,
        engines: Engines,
        settings: Settings,
        models: Models,
        describe: Callable[[str], tuple[Terms, int]],
    ) -> None:
        self._engines = engines
        self._settings = settings
        self._default = models
        self._describe = describe
        self._executor = KeyedExecutor(self._step, self._tidy)
        self.async_models = AsyncModelRunner(engines.journal, self._executor, self._plan_until_done)
        self._flushing = threading.Lock()
        self._waiting: dict[str, Future[Result]] = {}
        self._models: dict[str, Models] = {}
        self._backing_off: set[str] = set()  # operations that wait for their next attempt
        self._applied: set[int] = set()

    def recover(self) -> None:
        """Bring what an earlier process left behind on its way."""
        left = self._engines.journal.unflushed()
        changes = [op for op in left if op.kind != "forget"]
        for start in range(0, len(changes), _BATCH):
            self._reapply(changes[start : start + _BATCH])
        self._applied.update(op.seq for op in left)
        self.resume()

    def _reapply(self, ops: Sequence[Operation]) -> None:
        try:
            self._apply_planned(ops)
        except _OF_STORE:
            raise
        except Exception:  # noqa: BLE001 -- as in _apply
            if len(ops) > 1:
                for op in ops:
                    self._reapply([op])
            else:  # one change that was applied once must not keep the others from being read
                _log.exception("A change cannot be repeated; the index may lack it")

    def resume(self) -> None:
        """Look again at everything that waits."""
        for op in self._engines.journal.pending(limit=self._settings.max_pending):
            if self._models_of(op).need_loop(op):
                self.async_models.add_orphan(op)
            else:
                self._executor.schedule(op.scope.partition)

    def accept(
        self, ops: Sequence[Operation], models: Models, *, claimed: bool, urgent: bool
    ) -> "list[tuple[Operation, Future[Result]]]":
        """Journal changes, durably, all or none; answer each with the future of its result.

        Args:
            claimed: the caller will run `AsyncModelRunner.plan_here` if the models need a loop.
            urgent: somebody waits; else changes are let gather a moment, and go as one batch.

        Raises:
            BackpressureError: too many changes wait; nothing was accepted.
        """
        if self._executor.closed:
            raise MemoryClosedError
        futures: list[Future[Result]] = [Future() for _ in ops]
        for op, future in zip(ops, futures, strict=True):
            self._waiting[op.id], self._models[op.id] = future, models
        crash_point("before_journal")
        try:
            plans = self._plan_first(ops, models) if urgent else {}
            frozen = {key: plan for key, plan in plans.items() if isinstance(plan, bytes)}
            ready = [replace(op, plan=frozen.get(op.id, op.plan)) for op in ops]
            kept = self._engines.journal.append(ready, max_pending=self._settings.max_pending)
        except BaseException:
            for op in ops:
                self._waiting.pop(op.id, None)
                self._models.pop(op.id, None)
            raise
        crash_point("after_journal")
        for op in kept:
            if models.need_loop(op) and not claimed:
                self.async_models.add_orphan(op)
            elif isinstance(error := plans.get(op.id), CommonplaceError):
                self._back_off(op, error)
        for partition in dict.fromkeys(
            op.scope.partition for op in kept if not models.need_loop(op)
        ):
            self._executor.schedule(partition, after=0.0 if urgent else _GATHER_SECONDS)
        return list(zip(kept, futures, strict=True))

    def _plan_first(
        self, ops: Sequence[Operation], models: Models
    ) -> "dict[str, bytes | CommonplaceError]":
        """Plan before the journal what somebody waits for: that saves it a second write.

        What extracts, or has no embedder that answers now, is planned when it is safe.
        """
        work = [(op, models) for op in ops if models.are_quick(op)]
        try:
            return {op.id: frozen for op, frozen in plan_batch(work, self._settings)}
        except SystemExit:  # a model meant to end its thread, not the caller's
            return {}

    async def _plan_until_done(self, op: Operation, run: Run) -> bytes | None:
        attempts = op.attempts
        while True:
            try:
                return await plan_alone(op, self._models_of(op), self._settings, run)
            except Exception as error:  # noqa: BLE001 -- whatever it was, the caller gets an answer
                attempts += 1
                if await run(self._has_failed_for_good, op, attempts, error):
                    return None
            await asyncio.sleep(self._delay(attempts))

    # -- what is left --------------------------------------------------------------------------

    def flush(self, timeout: float) -> Backlog:
        """Wait until nothing moves any more or the time is over; answer what is left."""
        for partition in {op.scope.partition for op in self._engines.journal.pending()}:
            self._executor.schedule(partition)
        self._executor.wait(timeout, own=on_a_loop())
        left = self._engines.journal.count()
        return Backlog(pending=left.pending, dead=left.dead)

    def sync_index(self) -> None:
        """Make the index safe against power loss and drop what the journal need not keep."""
        with self._flushing:
            done = set(self._applied)
            if not done:
                return
            crash_point("before_flush")
            self._engines.index.flush()
            crash_point("after_flush")
            self._engines.journal.prune(done)
            crash_point("after_prune")
            self._applied -= done

    def close(self, timeout: float) -> Backlog:
        """Finish what can be finished in `timeout` seconds; the rest stays in the journal."""
        left = self.flush(timeout)
        self._executor.close()
        self.sync_index()
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(MemoryClosedError())
        return left

    # -- one partition, on a thread of ours ---------------------------------------------------------

    def _step(self, partition: str) -> float | None:
        try:
            batch = self._next(partition)
            try:
                return self._work(batch) if batch else None
            except StoreRefusedError as error:
                # Asking on may lock the user out; whoever kicks the partition tries again.
                _log.error("Writes wait in the journal: %s", error)
                self._notify(partition, error)
                return None
        except BaseException:  # noqa: BLE001 -- whatever it was, even a model's exit: it must come back
            _log.exception("The work on a partition stopped and will be tried again")
            return self._settings.retry_after

    def _tidy(self) -> None:
        if len(self._applied) >= self._settings.flush_every:
            self.sync_index()

    def _next(self, partition: str) -> list[Operation]:
        """Read the next changes that can be worked on: an erasure alone, others up to a batch."""
        for limit in (_BATCH, self._settings.max_pending):
            waiting = self._engines.journal.pending(partition, limit=limit)
            ready = self._ready(waiting)[:_BATCH]
            if ready or len(waiting) < limit:
                break
        until = next((i for i, op in enumerate(ready) if op.kind == "forget"), len(ready))
        return ready[: until or 1]

    def _ready(self, waiting: Sequence[Operation]) -> list[Operation]:
        """Leave out what rests or needs a loop, and what is about a record of such a one."""
        ready: list[Operation] = []
        passed: list[Operation] = []
        named: set[str] = set()  # the records of those that are passed
        for op in waiting:
            rests = op.id in self._backing_off or self._models_of(op).need_loop(op)
            ids = record_ids(op) if rests or passed else set()
            if rests or (passed and not named.isdisjoint(ids)):
                passed.append(op)
                named.update(ids)
            else:
                ready.append(op)
        return ready

    def _work(self, batch: Sequence[Operation]) -> float:
        if batch[0].kind == "forget":
            return self._erase(batch[0])
        crash_point("before_plan")
        fresh = [op for op in batch if op.plan is None and op.kind != "delete"]
        plans: dict[int, bytes] = {}
        for op, frozen in plan_batch([(op, self._models_of(op)) for op in fresh], self._settings):
            if isinstance(frozen, bytes):
                plans[op.seq] = frozen
            else:
                self._back_off(op, frozen)
        if plans:
            self._engines.journal.plan(plans)
        crash_point("after_plan")
        ready = [replace(op, plan=plans.get(op.seq, op.plan)) for op in batch]
        return self._apply([op for op in ready if op.plan is not None or op.kind == "delete"])

    def _apply(self, ops: Sequence[Operation]) -> float:
        if not ops:
            return 0.0
        try:
            results = self._apply_planned(ops)
        except StoreRefusedError:
            raise
        except Exception as error:  # noqa: BLE001 -- a poisoned change must not stop the others
            if len(ops) > 1 and not isinstance(error, StoreUnavailableError):
                return max(self._apply([op]) for op in ops)
            attempts = [self._engines.journal.failed(op.seq) for op in ops]
            hopeless = [
                self._has_failed_for_good(*one, error) for one in zip(ops, attempts, strict=True)
            ]
            if max(attempts) >= _ATTEMPTS_BEFORE_NOTICE and isinstance(
                error, StoreUnavailableError
            ):
                self._notify(ops[0].scope.partition, error)
            return 0.0 if all(hopeless) else self._delay(max(attempts))
        for result in results:  # before the mark: losing that costs a replay that changes nothing
            self._resolve(result.operation, result)
        self._engines.journal.done([op.seq for op in ops])
        crash_point("after_done")
        self._applied.update(op.seq for op in ops)
        return 0.0

    def _apply_planned(self, ops: Sequence[Operation]) -> list[WriteResult]:
        """Apply planned changes; repeating it changes nothing."""
        engines = self._engines
        changes = apply(
            [(op, planned(op)) for op in ops],
            graph=engines.graph,
            index=engines.index,
            describe=self._describe,
            shared=engines.shared,
        )
        pairs = zip(ops, changes, strict=True)
        return [WriteResult(operation=op.id, changes=some) for op, some in pairs]

    def _erase(self, op: Operation) -> float:
        """Carry out an erasure; answer it, and the writes that it overtook."""
        limit = self._settings.max_pending
        waiting = self._engines.journal.pending(op.scope.partition, limit=limit)
        try:
            receipt = erase(op, self._engines, datetime.now(UTC))
        except StoreRefusedError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it was, the caller gets an answer
            attempts = self._engines.journal.failed(op.seq)
            if attempts >= _ATTEMPTS_BEFORE_NOTICE and isinstance(error, StoreUnavailableError):
                self._notify(op.scope.partition, error)
            return 0.0 if self._has_failed_for_good(op, attempts, error) else self._delay(attempts)
        for one in waiting:
            if one.seq < op.seq and op.scope.covers(one.scope):
                self._resolve(one.id, WriteResult(operation=one.id))
        self._resolve(op.id, receipt)
        return 0.0

    # -- failures and results ------------------------------------------------------------------

    def _back_off(self, op: Operation, error: CommonplaceError) -> None:
        attempts = self._engines.journal.failed(op.seq)
        if not self._has_failed_for_good(op, attempts, error):
            self._backing_off.add(op.id)
            wake = lambda: self._backing_off.discard(op.id)  # noqa: E731 -- one use
            self._executor.schedule_later(op.scope.partition, self._delay(attempts), wake)

    def _has_failed_for_good(self, op: Operation, attempts: int, error: Exception) -> bool:
        """Bury a change that will not succeed; tell who waits when it takes long."""
        hopeless = isinstance(error, _PERMANENT) or (
            attempts >= self._settings.max_attempts and not isinstance(error, StoreUnavailableError)
        )
        if hopeless:
            _log.error("A write is now a dead letter: %s", error)
            self._engines.journal.dead_letter(op.seq, f"{type(error).__name__}: {error}")
        if hopeless or attempts >= _ATTEMPTS_BEFORE_NOTICE:
            self._resolve(op.id, error)
        return hopeless

    def _notify(self, partition: str, error: CommonplaceError) -> None:
        """Answer everybody whose change waits in a partition, also behind the one that failed."""
        for op in self._engines.journal.pending(partition, limit=self._settings.max_pending):
            self._resolve(op.id, error)

    def _resolve(self, operation: str, result: Result | Exception) -> None:
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
        return self._models.get(op.id, self._default)


class AsyncModelRunner:
    """Plans changes on whichever loop comes by; a loop that dies leaves them to the next.

    Args:
        plan: plans one change on the running loop until it works; None if it never will.
    """

    def __init__(
        self,
        journal: Journal,
        executor: KeyedExecutor,
        plan: Callable[[Operation, Run], Awaitable[bytes | None]],
    ) -> None:
        self._journal = journal
        self._executor = executor
        self._plan = plan
        self._orphans: dict[str, Operation] = {}
        self._planning: dict[str, tuple[Operation, asyncio.AbstractEventLoop]] = {}

    def add_orphan(self, op: Operation) -> None:
        """Leave a change to the next loop, unless one is at it."""
        if op.id not in self._planning:
            self._orphans[op.id] = op

    @property
    def has_orphans(self) -> bool:
        """Changes wait for a loop; also those of one that was closed."""
        for key, (op, loop) in list(self._planning.items()):
            if loop.is_closed() and self._planning.pop(key, None) is not None:
                self._executor.elsewhere(-1)
                self._orphans[key] = op
        return bool(self._orphans)

    async def plan_here(self, op: Operation, run: Run) -> None:
        """Plan a change on the running loop.

        Cancelled, it is left to `plan_orphans`; it stays in the journal.
        """
        if op.id in self._planning:
            return
        self._planning[op.id] = op, asyncio.get_running_loop()
        self._executor.elsewhere(+1)
        try:
            frozen = await self._plan(op, run)
            if frozen is not None:
                await run(self._journal.plan, {op.seq: frozen})
                self._executor.schedule(op.scope.partition)
        except BaseException:
            self._orphans[op.id] = op
            raise
        finally:
            if self._planning.pop(op.id, None) is not None:
                self._executor.elsewhere(-1)

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
