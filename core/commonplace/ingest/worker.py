"""Ingest worker: accepts operations into the journal, plans them and applies them to every store.

They are accepted before any model is asked. The operations of one partition are applied in the
order of acceptance; one that waits for an event loop or another process may be passed by others,
but not by those that name the same record.
"""

import asyncio
import contextlib
import logging
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from ..concurrency import KeyedExecutor, LRUCache, Timer, call_later, start_call
from ..errors import (
    CommonplaceError,
    InvalidRecordError,
    MemoryClosedError,
    ModelFailedError,
    ModelRefusedError,
    ModelUnreadableError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from ..model_calls import EmbedderPace, RunInThread
from ..ports.engines import Transactional
from ..ports.stores import Engines, Operation, crash_point
from ..settings import Settings
from ..telemetry import applying, current
from ..types import Backlog, EraseReceipt, Scope, WriteResult
from .applying import Describe, Planned, apply_to, count_rows, described, erase
from .changes import Write, left_to_extract, record_ids
from .planning import (
    AsyncModelRunner,
    KnownFactsLookup,
    Models,
    PlanContext,
    PlannedChanges,
    is_on_loop,
    plan_async,
    plan_batch,
)

OperationResult = WriteResult | EraseReceipt

_BATCH = 64
_ATTEMPTS_BEFORE_NOTICE = 3  # after which a waiting caller gets the error; retries go on
_GATHER_SECONDS = 0.02
_POLL_SECONDS = 0.2  # between looks at an operation that another process works on
_SHORTEST_PAUSE = 0.005  # the first between looks at an operation of this one
_MAINTENANCE_SECONDS = 2.0
_MOST_FAILED = 256  # failed writes whose errors are kept for `follow`
_CLOSING_SECONDS = 0.5  # for a step that is nearly done
_PERMANENT = (InvalidRecordError, ModelRefusedError, ModelUnreadableError, SchemaMismatchError)
_log = logging.getLogger("commonplace")


class _OvertakenError(Exception):
    """An operation is no longer in the journal: an erasure dropped it."""


@dataclass(slots=True)
class _Waiter:
    """A caller's future, and whether the journal has accepted the operation that it is for.

    Attributes:
        erases: the scope that the operation erases, if it is an erasure.
        submitter: what the work on it is a part of (`telemetry.current`).
    """

    future: "Future[OperationResult]"
    partition: str
    erases: Scope | None
    submitter: Any
    is_accepted: bool = False


class IngestWorker:
    """Accepts operations and applies them to every store, on threads of its own.

    Args:
        models: plan what earlier processes left in the journal.
        describe: gives a text's terms and its length in words.

    Attributes:
        engines, settings, describe: what it was given.
        executor: of partitions; who writes enters it first, so that `flush` and `close` wait.
        pace: of the embedders.
    """

    def __init__(
        self, engines: Engines, settings: Settings, models: Models, describe: Describe
    ) -> None:
        self.engines: Engines = engines
        self.settings: Settings = settings
        self._default_models = models
        self.describe: Describe = describe
        self.executor: KeyedExecutor = KeyedExecutor(self._step)
        self.async_models: AsyncModelRunner = AsyncModelRunner(
            self.executor, self._plan_until_done, self._take_plan
        )
        self._waiting: dict[str, _Waiter] = {}
        self._failed: LRUCache[str, Exception] = LRUCache(_MOST_FAILED)
        self._models: dict[str, Models] = {}
        self._planned: dict[str, PlannedChanges] = {}  # on event loops
        # Of owners on event loops: what asks a chat model is planned in turn, in order.
        self._turns: WeakValueDictionary[tuple[AbstractEventLoop, str], asyncio.Lock] = (
            WeakValueDictionary()
        )
        self._backing_off: set[str] = set()  # operations that wait for their next attempt
        self._failures: dict[str, int] = {}  # in a row, of partitions whose journal fails
        self.pace: EmbedderPace = EmbedderPace()
        self._context = PlanContext(
            settings=settings,
            keep=self._keep_plan,
            known=KnownFactsLookup(engines, describe),
            measure=self.pace.measure,
        )
        self._closing = threading.Event()
        self._maintenance: Timer | None = None

    # -- opening and closing -------------------------------------------------------------------

    def start(self) -> None:
        """Take over what dead processes left, now and from time to time."""
        self._schedule(self.engines.journal.take_over())
        self._maintain_later(self.executor.entered)

    def retry(self, operations: Collection[str], models: Models) -> int:
        """Queue dead letters again; return how many.

        Those of this process had the models of their writer, which may be why they failed: they get
        these, unless these have no chat model.
        """
        journal, named = self.engines.journal, set(operations)
        for one in journal.dead() if models.chat is not None else ():
            if one.operation in named:
                self._models[one.operation] = models
        count = journal.retry(operations)
        pending = journal.pending(limit=self.settings.max_pending)
        self._schedule([op for op in pending if not op.elsewhere])
        return count

    def flush(self, timeout: float, *, elsewhere: bool = True) -> Backlog:
        """Wait until nothing is running or scheduled, `timeout` seconds at most; count the rest.

        Writes that are not accepted yet are waited for, too.

        Args:
            elsewhere: wait for what other processes work on.
        """
        until = time.monotonic() + timeout
        self.executor.wait_for_entering(timeout)
        journal = self.engines.journal
        for partition in {op.scope.partition for op in journal.pending() if not op.elsewhere}:
            self.executor.schedule(partition)
        self.executor.wait(max(0.0, until - time.monotonic()), external=not is_on_loop())
        while (
            elsewhere and time.monotonic() < until and any(op.elsewhere for op in journal.pending())
        ):
            time.sleep(min(_POLL_SECONDS, max(0.0, until - time.monotonic())))
        left = journal.count()
        return Backlog(pending=left.pending + self.executor.entering, dead=left.dead)

    def close(self, timeout: float) -> Backlog:
        """Finish what can be finished in `timeout` seconds; the rest stays in the journal."""
        until = time.monotonic() + timeout
        try:
            left = self.flush(timeout, elsewhere=False)
        finally:
            self._closing.set()
            if self._maintenance is not None:
                self._maintenance.cancel()
            self.executor.close(max(_CLOSING_SECONDS, until - time.monotonic()))
        with contextlib.suppress(CommonplaceError):  # who opens it next will do it
            if isinstance(self.engines, Transactional):
                self.engines.finish_erasures(is_idle=True)
        for waiter in list(self._waiting.values()):
            if not waiter.future.done():
                waiter.future.set_exception(MemoryClosedError())
        return left

    def _schedule(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if self._models_of(op).need_loop(op):
                self.async_models.add_orphan(op)
            else:
                self.executor.schedule(op.scope.partition)

    def _maintain_later(self, writes: int) -> None:
        """Maintain the stores some seconds from now."""
        maintain = partial(start_call, "maintenance", partial(self._maintain, writes))
        self._maintenance = call_later(_MAINTENANCE_SECONDS, maintain)
        if self._closing.is_set():
            self._maintenance.cancel()

    def _maintain(self, writes: int) -> None:
        """Take over what dead processes left, finish erasures, and give space back when idle."""
        is_idle = writes == self.executor.entered
        writes = self.executor.entered
        try:
            self._schedule(self.engines.journal.take_over())
            if isinstance(self.engines, Transactional):
                self.engines.finish_erasures(is_idle=is_idle)
                while is_idle and writes == self.executor.entered and self.engines.reclaim():
                    pass
        except CommonplaceError:
            pass  # the next round may succeed
        except Exception:
            if not self._closing.is_set():
                _log.exception("The maintenance stopped and will be retried")
        self._maintain_later(writes)

    # -- writing -------------------------------------------------------------------------------

    def accept(
        self, writes: Sequence[Write], models: Models, *, urgent: bool
    ) -> "list[tuple[Operation, Future[OperationResult]]]":
        """Journal operations, durably, all or none; return each with the future of its result.

        Those whose models need an event loop are left to `AsyncModelRunner.plan_here`.

        Args:
            urgent: the caller waits; else operations gather for a moment into one batch.

        Raises:
            BackpressureError: too many operations are pending; nothing was accepted.
        """
        ops, submitter = [write.encoded() for write in writes], current()
        for op in ops:
            erases = op.scope if op.kind == "forget" else None
            self._waiting[op.id] = _Waiter(Future(), op.scope.partition, erases, submitter)
            self._models[op.id] = models
        futures = [self._waiting[op.id].future for op in ops]
        crash_point("before_journal")
        try:
            accepted = self.engines.journal.append(ops, max_pending=self.settings.max_pending)
        except BaseException:
            for op in ops:
                self._waiting.pop(op.id, None)
                self._models.pop(op.id, None)
            raise
        crash_point("after_journal")
        partitions: dict[str, None] = {}
        for op in accepted:
            if (waiter := self._waiting.get(op.id)) is not None:
                waiter.is_accepted = True
            if models.need_loop(op):
                self.async_models.add_orphan(op)
            else:
                partitions[op.scope.partition] = None
        for partition in partitions:
            self.executor.schedule(partition, after=0.0 if urgent else _GATHER_SECONDS)
        return list(zip(accepted, futures, strict=True))

    def follow(self, operation: str, on_failed: Callable[[Exception], None]) -> None:
        """Call `on_failed` with its error if an accepted write fails; see `MemoryAdmin.follow`."""

        def report(done: "Future[OperationResult]") -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, Exception) and not isinstance(error, MemoryClosedError):
                on_failed(error)

        if (waiter := self._waiting.get(operation)) is not None:
            waiter.future.add_done_callback(report)
        elif (failed := self._failed.get(operation)) is not None:
            on_failed(failed)

    # -- one partition, on a thread of the executor --------------------------------------------

    def _step(self, partition: str) -> float | None:
        try:
            pause = self._work(partition)
        except StoreUnavailableError as error:
            return self._wait_for_journal(partition, error)
        except BaseException:  # even a model's exit must not end the work
            if self._closing.is_set():  # a model took longer than `close`
                return None
            _log.exception("The work on a partition stopped and will be retried")
            attempts = self._failures[partition] = self._failures.get(partition, 0) + 1
            return self._delay(attempts)
        self._failures.pop(partition, None)
        return pause

    def _work(self, partition: str) -> float | None:
        batch, is_blocked = self._next_batch(partition)
        if not batch:
            self._resolve_overtaken(partition)
            return _POLL_SECONDS if is_blocked else None
        waiters = (self._waiting.get(op.id) for op in batch)
        try:
            with applying([waiter and waiter.submitter for waiter in waiters]):
                return self._process(batch)
        except StoreRefusedError as error:
            # To ask again may lock the user out: this waits for the next `schedule`.
            _log.error("Writes wait in the journal: %s", error)
            self._notify(partition, error)
            return None

    def _wait_for_journal(self, partition: str, error: StoreUnavailableError) -> float:
        """Count a failure that the journal cannot count; return the seconds until the next try."""
        attempts = self._failures[partition] = self._failures.get(partition, 0) + 1
        if attempts == _ATTEMPTS_BEFORE_NOTICE:
            _log.error("Writes wait for the journal: %s", error)
        if attempts >= _ATTEMPTS_BEFORE_NOTICE:
            for name in self._accepted(partition):
                self._resolve(name, _retried(error))
        return self._delay(attempts)

    def _next_batch(self, partition: str) -> tuple[list[Operation], bool]:
        """Read the next operations to process: an erasure alone, others up to a batch.

        One that asks a chat model is the first of its batch: the model is shown what is known, and
        that is what the operations before it have written.

        Returns:
            Them, and whether there are others that must wait for another process.
        """
        for limit in (_BATCH, self.settings.max_pending):
            pending = self.engines.journal.pending(partition, limit=limit)
            ready, is_blocked = self._ready(pending)
            if ready or len(pending) < limit:
                break
        ready = ready[:_BATCH]
        if ready and ready[0].kind == "forget":
            return ready[:1], is_blocked
        until = next((i for i, op in enumerate(ready) if i and self._begins_batch(op)), len(ready))
        return ready[:until], is_blocked

    def _begins_batch(self, op: Operation) -> bool:
        if op.kind == "forget":
            return True
        return op.id not in self._planned and self._models_of(op).extracts(op)

    def _ready(self, pending: Sequence[Operation]) -> tuple[list[Operation], bool]:
        """Leave out what backs off, needs a loop or another process, and what is about its records.

        Returns:
            The rest, and whether something waits for another process's operation.
        """
        ready: list[Operation] = []
        blocked: set[str] = set()  # the records of those that are left out
        elsewhere: set[str] = set()  # those among them whose operation another process works on
        is_blocked = False
        for op in pending:
            waits = op.elsewhere or op.id in self._backing_off or self._waits_for_loop(op)
            ids = record_ids(op) if waits or blocked else set()
            if waits or not blocked.isdisjoint(ids):
                is_blocked |= not op.elsewhere and not elsewhere.isdisjoint(ids)
                blocked |= ids
                elsewhere |= ids if op.elsewhere else set()
            else:
                ready.append(op)
        return ready, is_blocked

    def _waits_for_loop(self, op: Operation) -> bool:
        return op.id not in self._planned and self._models_of(op).need_loop(op)

    def _process(self, batch: Sequence[Operation]) -> float:
        if batch[0].kind == "forget":
            return self._erase(batch[0])
        crash_point("before_plan")
        planned: dict[str, PlannedChanges] = {}
        work: list[tuple[Operation, Models]] = []
        for op in batch:
            if op.id in self._planned:
                planned[op.id] = self._planned[op.id]
            else:
                work.append((op, self._models_of(op)))
        for op, changes in plan_batch(work, self._context):
            if isinstance(changes, CommonplaceError):
                self._back_off(op, changes)
            else:
                planned[op.id] = changes
        crash_point("after_plan")
        return self._apply([(op, planned[op.id]) for op in batch if op.id in planned])

    def _keep_plan(self, op: Operation, plan: bytes) -> None:
        self.engines.journal.plan({op.seq: plan})

    def _apply(self, planned: Planned) -> float:
        if not planned:
            return 0.0
        try:
            results = self._apply_to_stores(planned)
        except StoreRefusedError:
            raise
        except Exception as error:  # a faulty operation must not stop the others
            if len(planned) > 1 and not isinstance(error, StoreUnavailableError):
                return max(self._apply([one]) for one in planned)
            if isinstance(error, _OvertakenError):
                self._resolve_as_overtaken(planned[0][0].id)
                return 0.0
            return self._retry_or_give_up([op for op, _ in planned], error)
        crash_point("after_remove")
        for result in results:
            self._resolve(result.operation, result)
        return 0.0

    def _apply_to_stores(self, planned: Planned) -> list[WriteResult]:
        """Apply operations to every store, and then remove them from the journal.

        Raises:
            _OvertakenError: one is not in the journal; nothing was changed.
        """
        engines = self.engines
        seqs = [op.seq for op, plan in planned if plan.failure is None]
        if not isinstance(engines, Transactional):
            results = apply_to(engines, planned, self.describe)
            engines.index.flush()
            crash_point("before_remove")
            engines.journal.remove(seqs)
            _keep_unextracted(engines, planned)
            return results
        describe = described([changes for _, changes in planned], self.describe)

        def work(bound: Engines) -> list[WriteResult]:
            if bound.journal.remove(seqs) < len(seqs):
                raise _OvertakenError
            if not _keep_unextracted(bound, planned):
                raise _OvertakenError
            results = apply_to(bound, planned, describe)
            crash_point("before_remove")
            return results

        return engines.transact(work)

    def _erase(self, op: Operation) -> float:
        """Carry out an erasure; resolve it, and the writes that it overtook."""
        limit = self.settings.max_pending
        pending = self.engines.journal.pending(op.scope.partition, limit=limit)
        engines, at = self.engines, datetime.now(UTC)
        try:
            if isinstance(engines, Transactional):
                receipt = engines.transact(lambda bound: erase(op, bound, at))
            else:
                receipt = erase(op, engines, at)
        except StoreRefusedError:
            raise
        except Exception as error:  # whatever it was, the caller gets it
            return self._retry_or_give_up([op], error)
        crash_point("after_remove")
        self._resolve(op.id, receipt)
        for one in pending:
            if one.seq < op.seq and op.scope.covers(one.scope):
                self._resolve_as_overtaken(one.id)
        return 0.0

    # -- failures and results ------------------------------------------------------------------

    def _retry_or_give_up(self, ops: Sequence[Operation], error: Exception) -> float:
        """Count a failed attempt; return the seconds until the next, 0.0 if there is none."""
        attempts = [self.engines.journal.failed(op.seq) for op in ops]
        given_up = [self._gives_up(*one, error) for one in zip(ops, attempts, strict=True)]
        if max(attempts) >= _ATTEMPTS_BEFORE_NOTICE and isinstance(error, StoreUnavailableError):
            self._notify(ops[0].scope.partition, error)
        return 0.0 if all(given_up) else self._delay(max(attempts))

    def _back_off(self, op: Operation, error: CommonplaceError) -> None:
        attempts = self.engines.journal.failed(op.seq)
        if not self._gives_up(op, attempts, error):
            self._backing_off.add(op.id)
            wake = partial(self._backing_off.discard, op.id)
            self.executor.schedule_later(op.scope.partition, self._delay(attempts), wake)

    def _gives_up(self, op: Operation, attempts: int, error: Exception) -> bool:
        """Dead-letter an operation that will not succeed; notify its caller when it takes long."""
        is_hopeless = isinstance(error, _PERMANENT) or (
            attempts >= self.settings.max_attempts and not isinstance(error, StoreUnavailableError)
        )
        if is_hopeless:
            _log.error("A write is now a dead letter: %s", error)
            self.engines.journal.dead_letter(op.seq, f"{type(error).__name__}: {error}")
        if is_hopeless or attempts >= _ATTEMPTS_BEFORE_NOTICE:
            self._resolve(op.id, error if is_hopeless else _retried(error))
        return is_hopeless

    def _notify(self, partition: str, error: CommonplaceError) -> None:
        """Resolve with an error all that is pending in a partition, also behind what failed."""
        for op in self.engines.journal.pending(partition, limit=self.settings.max_pending):
            self._resolve(op.id, _retried(error))

    def _resolve(self, operation: str, result: OperationResult | Exception) -> None:
        if isinstance(result, Exception):  # first, so that `follow` finds the one or the other
            self._failed[operation] = result
        waiter = self._waiting.pop(operation, None)
        is_waiting = waiter is not None and not waiter.future.done()
        if isinstance(result, Exception):
            if waiter is not None and is_waiting:
                waiter.future.set_exception(result)
            return
        self._failed.pop(operation)
        self._models.pop(operation, None)
        self._planned.pop(operation, None)
        if waiter is not None and is_waiting:
            waiter.future.set_result(result)

    def _resolve_as_overtaken(self, operation: str) -> None:
        waiter = self._waiting.get(operation)
        scope = None if waiter is None else waiter.erases
        if scope is None:
            self._resolve(operation, WriteResult(operation=operation))
            return
        left = count_rows(self.engines, scope)
        receipt = EraseReceipt(scope=scope, removed={}, left=left, at=datetime.now(UTC))
        self._resolve(operation, receipt)

    def _resolve_overtaken(self, partition: str) -> None:
        """Resolve writes of a partition that an erasure of another process has overtaken."""
        if waiting := self._accepted(partition):
            limit = self.settings.max_pending
            pending = {op.id for op in self.engines.journal.pending(partition, limit=limit)}
            dead = {one.operation for one in self.engines.journal.dead()}
            for name in waiting:
                if name not in pending and name not in dead:
                    self._resolve_as_overtaken(name)

    def _accepted(self, partition: str) -> list[str]:
        """List the accepted operations of a partition that somebody waits for."""
        waiting = list(self._waiting.items())
        return [name for name, one in waiting if one.is_accepted and one.partition == partition]

    def _delay(self, attempts: int) -> float:
        return float(min(60.0, self.settings.retry_after * 2 ** min(attempts - 1, 16)))

    def _models_of(self, op: Operation) -> Models:
        return self._models.get(op.id, self._default_models)

    async def _plan_until_done(self, op: Operation, run: RunInThread) -> PlannedChanges | None:
        plans: list[bytes] = []

        def keep(one: Operation, plan: bytes) -> None:
            self._keep_plan(one, plan)
            plans.append(plan)

        context = replace(self._context, keep=keep)
        while True:
            try:
                return await self._plan_in_turn(op, context, run)
            except StoreRefusedError as error:
                _log.error("A write waits in the journal: %s", error)
                self._resolve(op.id, error)
                raise
            except Exception as error:  # whatever it was, the caller gets it
                attempts = await run(self.engines.journal.failed, op.seq)
                if not attempts or await run(self._gives_up, op, attempts, error):
                    return None
            await asyncio.sleep(self._delay(attempts))
            op = replace(op, plan=plans[0]) if plans else op  # no model is asked again

    async def _plan_in_turn(
        self, op: Operation, context: PlanContext, run: RunInThread
    ) -> PlannedChanges:
        """Plan on the running loop; one that asks a chat model, after its owner's earlier ones."""
        models = self._models_of(op)
        if not models.extracts(op):
            return await plan_async(op, models, context, run)
        loop = asyncio.get_running_loop()
        async with self._turns.setdefault((loop, op.scope.owner.key), asyncio.Lock()):
            await self._wait_for_earlier(op, run)
            return await plan_async(op, models, context, run)

    async def _wait_for_earlier(self, op: Operation, run: RunInThread) -> None:
        """Wait until what its owner wrote before is applied, as long as a model may take at most.

        What failed before, or waits for another loop or process, is not waited for.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.settings.model_timeout
        pause = _SHORTEST_PAUSE
        while await run(self._follows_another, op, loop) and loop.time() < until:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _POLL_SECONDS)

    def _follows_another(self, op: Operation, loop: AbstractEventLoop) -> bool:
        runner, owner = self.async_models, op.scope.owner

        def is_awaited(one: Operation) -> bool:
            if not (one.seq < op.seq and (one.scope.owner == owner or one.scope.covers(owner))):
                return False
            if one.elsewhere or one.attempts or runner.is_orphaned(one):
                return False
            # One that is being planned here and extracts waits for this one's turn to be over.
            return not (runner.is_on(loop, one) and self._models_of(one).extracts(one))

        pending = self.engines.journal.pending(op.scope.partition, limit=_BATCH)
        return any(map(is_awaited, pending))

    def _take_plan(self, op: Operation, changes: PlannedChanges) -> None:
        self._planned[op.id] = changes
        self.executor.schedule(op.scope.partition)


def _keep_unextracted(engines: Engines, planned: Planned) -> bool:
    """Make dead letters of additions from which nothing could be extracted; False if one is gone.

    What is left of them is that. Their messages are stored.
    """
    failed = [(op, plan.failure) for op, plan in planned if plan.failure is not None]
    for op, reason in failed:
        if not engines.journal.failed(op.seq):
            return False
        engines.journal.dead_letter(op.seq, reason, left_to_extract(op))
    return True


def _retried(error: Exception) -> Exception:
    """Return an error for a caller whose accepted write is tried again."""
    if not isinstance(error, StoreUnavailableError | ModelFailedError):
        return error
    told = error.as_retried()
    told.__cause__ = error.__cause__
    return told
