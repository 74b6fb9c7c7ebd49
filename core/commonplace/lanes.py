"""The writing side: accept into the journal, then plan and apply, one lane per owner, in order.

Lanes run on threads of ours. A change whose models are asynchronous is planned on the event loop
that wrote it (`plan_here`); until then later changes of its lane may pass it.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from .codec import thaw
from .errors import (
    CommonplaceError,
    InvalidRecord,
    MemoryClosed,
    ModelFailed,
    SchemaMismatch,
    StoreUnavailable,
)
from .faults import crash_point
from .model import Change, Drained, Receipt, Written
from .pipeline.apply import Planned, apply, removal
from .pipeline.embed import Vectors, aembed, embed, is_async
from .pipeline.extract import extract
from .pipeline.plan import plan
from .ports import AskChat, ChatModel, Embedder, Engines, Op, Remove, Terms
from .settings import Settings

_BATCH = 64
_PATIENCE = 3  # failed attempts after which a waiting caller is told; the change is retried on
_PERMANENT = (InvalidRecord, SchemaMismatch)
_log = logging.getLogger("commonplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that plan a change: those of the memory that accepted it."""

    embedder: Embedder
    chat: ChatModel | None = None

    def need_loop(self, op: Op) -> bool:
        """Tell whether planning this change awaits something."""
        if op.plan is not None or op.kind in ("delete", "forget"):
            return False
        if is_async(self.embedder.embed):
            return True
        chats = self.chat is not None and bool(json.loads(op.body)["extract"])
        return chats and is_async(self.chat.complete)  # type: ignore[union-attr]  # not None here


class Lanes:
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
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="commonplace-lane")
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._timers: set[threading.Timer] = set()
        self._resting: set[str] = set()  # operations that wait for their next attempt
        self._waiting: dict[str, Future[Written | Receipt]] = {}
        self._models: dict[str, Models] = {}
        self._orphans: dict[str, Op] = {}  # planned by whichever loop comes by next
        self._applied: set[int] = set()
        self._closed = False

    def recover(self) -> None:
        """Bring what an earlier process left behind on its way."""
        journal = self._engines.journal
        left = journal.unflushed()
        for start in range(0, len(left), _BATCH):
            work = [
                (op, self._thaw(op)) for op in left[start : start + _BATCH] if op.kind != "forget"
            ]
            apply(work, graph=self._engines.graph, index=self._engines.index,
                  describe=self._describe)  # fmt: skip
        self._applied.update(op.seq for op in left)
        for op in journal.pending(limit=self._settings.max_pending):
            if self._models_of(op).need_loop(op):
                self._orphans[op.id] = op
            else:
                self.kick(op.scope.lane)

    def accept(
        self, op: Op, models: Models, *, claimed: bool
    ) -> tuple[Op, "Future[Written | Receipt]"]:
        """Journal a change, durably; answer it with the future of its result.

        Args:
            claimed: the caller will run `plan_here` if the models need a loop.

        Raises:
            Backpressure: too many changes wait; nothing was accepted.
        """
        if self._closed:
            raise MemoryClosed
        future: Future[Written | Receipt] = Future()
        self._waiting[op.id] = future
        self._models[op.id] = models
        crash_point("before_journal")
        try:
            [op] = self._engines.journal.append([op], max_pending=self._settings.max_pending)
        except BaseException:
            self._forget_waiter(op.id)
            raise
        crash_point("after_journal")
        if not models.need_loop(op):
            self.kick(op.scope.lane)
        elif not claimed:
            self._orphans[op.id] = op
        return op, future

    def kick(self, lane: str) -> None:
        """Run a lane, unless it runs already: then it looks once more before it stops."""
        with self._changed:
            if self._closed:
                return
            self._again.add(lane)
            if lane in self._running:
                return
            self._running.add(lane)
        try:
            self._pool.submit(self._run, lane)
        except RuntimeError:  # the interpreter is shutting down; the journal has everything
            with self._changed:
                self._running.discard(lane)

    async def plan_here(self, op: Op) -> None:
        """Plan a change whose models are asynchronous, on the running loop, until it works.

        Cancelled, or failed, it is left to `plan_orphans`; it stays in the journal.
        """
        loop = asyncio.get_running_loop()
        attempts = op.attempts
        try:
            while True:
                try:
                    frozen = await self._aplan(op)
                    break
                except (CommonplaceError, TimeoutError) as error:
                    attempts += 1
                    if self._give_up(op, attempts, error):
                        await loop.run_in_executor(self._pool, self._bury, op, error)
                        return
                    await asyncio.sleep(self._delay(attempts))
            await loop.run_in_executor(self._pool, self._freeze, {op.seq: frozen})
            self.kick(op.scope.lane)
        except BaseException:
            self._orphans[op.id] = op
            raise

    async def plan_orphans(self) -> None:
        """Plan what dead loops left behind, on the running loop."""
        while self._orphans:
            try:
                _, op = self._orphans.popitem()
            except KeyError:  # another loop took the last one
                return
            await self.plan_here(op)

    @property
    def has_orphans(self) -> bool:
        """Changes wait for an event loop to plan them."""
        return bool(self._orphans)

    def revive(self) -> None:
        """Look again at what waits, after dead letters were put back in line."""
        for op in self._engines.journal.pending(limit=self._settings.max_pending):
            if op.id not in self._models and self._default.need_loop(op):
                self._orphans[op.id] = op
            self.kick(op.scope.lane)

    def drain(self, timeout: float) -> Drained:
        """Wait until nothing moves any more or the time is over; answer what is left."""
        for op in self._engines.journal.pending(limit=self._settings.max_pending):
            self.kick(op.scope.lane)
        with self._changed:
            self._changed.wait_for(lambda: not self._running and not self._timers, timeout)
        left = self._engines.journal.count()
        return Drained(pending=left.pending, dead=left.dead)

    def flush(self) -> None:
        """Make the index safe against power loss and drop what the journal need not keep."""
        done = set(self._applied)
        if not done:
            return
        crash_point("before_flush")
        self._engines.index.flush()
        crash_point("after_flush")
        self._engines.journal.prune(done)
        crash_point("after_prune")
        self._applied -= done

    def close(self, timeout: float) -> Drained:
        """Finish what can be finished in `timeout` seconds; the rest stays in the journal."""
        left = self.drain(timeout)
        with self._changed:
            self._closed = True
            for timer in self._timers:
                timer.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.flush()
        for future in list(self._waiting.values()):
            future.cancel()
        return left

    # -- one lane, on a thread of ours ---------------------------------------------------------

    def _run(self, lane: str) -> None:
        pause = 0.0
        try:
            while not pause:
                with self._changed:
                    self._again.discard(lane)
                batch = self._next(lane)
                if batch:
                    pause = self._work(batch)
                    continue
                with self._changed:
                    if lane not in self._again or self._closed:
                        break
        except CommonplaceError as error:
            _log.warning("A lane stopped and will be tried again: %s", error)
            pause = self._settings.retry_after
        finally:
            self._stop(lane, pause)

    def _stop(self, lane: str, pause: float) -> None:
        with self._changed:
            self._running.discard(lane)
            again = lane in self._again
            idle = not self._running
        if idle and len(self._applied) >= self._settings.flush_every:
            self.flush()
        if pause:
            self._later(pause, lane)
        elif again:
            self.kick(lane)
        with self._changed:
            self._changed.notify_all()

    def _next(self, lane: str) -> list[Op]:
        """Read the next changes that can be worked on: an erasure alone, others up to a batch."""
        for limit in (_BATCH, self._settings.max_pending):
            waiting = self._engines.journal.pending(lane, limit=limit)
            ready = [op for op in waiting if self._ready(op)][:_BATCH]
            if ready or len(waiting) < limit:
                break
        until = next((i for i, op in enumerate(ready) if op.kind == "forget"), len(ready))
        return ready[: until or 1]

    def _ready(self, op: Op) -> bool:
        return op.id not in self._resting and not self._models_of(op).need_loop(op)

    def _work(self, batch: Sequence[Op]) -> float:
        """Plan and apply a batch; answer the seconds to wait before more, 0 for none."""
        if batch[0].kind == "forget":
            self._erase(batch[0])
            return 0.0
        crash_point("before_plan")
        fresh = [op for op in batch if op.plan is None and op.kind != "delete"]
        plans = self._plan(fresh)
        self._freeze(plans)
        crash_point("after_plan")
        ready = [replace(op, plan=plans.get(op.seq, op.plan)) for op in batch]
        return self._apply([op for op in ready if op.plan is not None or op.kind == "delete"])

    def _apply(self, ops: Sequence[Op]) -> float:
        if not ops:
            return 0.0
        try:
            done = apply(
                [(op, self._thaw(op)) for op in ops],
                graph=self._engines.graph,
                index=self._engines.index,
                describe=self._describe,
            )
        except StoreUnavailable as error:
            attempts = [self._engines.journal.failed(op.seq) for op in ops]
            for op, count in zip(ops, attempts, strict=True):
                if count >= _PATIENCE:
                    self._resolve(op.id, error=error)
            return self._delay(max(attempts))
        except Exception as error:  # one poisoned change must not take the others with it
            if len(ops) > 1:
                return max(self._apply([op]) for op in ops)
            attempts = [self._engines.journal.failed(ops[0].seq)]
            if not self._give_up(ops[0], attempts[0], error):
                return self._delay(attempts[0])
            self._bury(ops[0], error)
            return 0.0
        self._engines.journal.done([op.seq for op in ops])
        crash_point("after_done")
        self._applied.update(op.seq for op in ops)
        for op, changes in zip(ops, done, strict=True):
            self._resolve(op.id, changes=changes)
        return 0.0

    def _erase(self, op: Op) -> None:
        """Remove a scope from every store, look again, and answer with the receipt."""
        engines = self._engines
        late = [one for one in engines.journal.pending(op.scope.lane, limit=op.seq)
                if one.seq < op.seq and op.scope.covers(one.scope)]  # fmt: skip
        crash_point("before_graph")
        removed = {f"graph.{k}": n for k, n in engines.graph.erase(op.scope, op.version).items()}
        crash_point("after_graph")
        removed["index.points"] = engines.index.erase(op.scope)
        crash_point("after_index")
        removed["journal.rows"] = engines.journal.erase(op.scope, op.seq)
        self.flush()
        engines.index.flush()
        left = {f"graph.{k}": n for k, n in engines.graph.count(op.scope).items()}
        left["index.points"] = engines.index.count(op.scope)
        engines.journal.erase(op.scope, op.seq + 1)
        crash_point("after_done")
        for one in late:
            self._resolve(one.id, changes=())
        receipt = Receipt(scope=op.scope, removed=removed, left=left, at=datetime.now(UTC))
        self._resolve(op.id, result=receipt)

    # -- planning ------------------------------------------------------------------------------

    def _plan(self, ops: Sequence[Op]) -> dict[int, bytes]:
        """Plan with synchronous models, embedding all texts of a batch in one call."""
        steps: dict[int, Any] = {}
        asked: list[tuple[Op, tuple[str, ...]]] = []
        for op in ops:
            steps[op.seq] = step = plan(op, extract)
            ask = next(step)
            while isinstance(ask, AskChat):
                ask = step.send(self._chat(self._models_of(op).chat, ask))
            asked.append((op, ask.texts))
        plans: dict[int, bytes] = {}
        for op, vectors in self._embed(asked):
            try:
                steps[op.seq].send(vectors)
            except StopIteration as planned:
                plans[op.seq] = planned.value
        return plans

    def _embed(self, asked: Sequence[tuple[Op, tuple[str, ...]]]) -> list[tuple[Op, Vectors]]:
        if not asked:
            return []
        embedder = self._models_of(asked[0][0]).embedder
        texts = [text for _, some in asked for text in some]
        try:
            same = all(self._models_of(op).embedder is embedder for op, _ in asked)
            if not same and len(asked) > 1:
                return [pair for one in asked for pair in self._embed([one])]
            rows = embed(
                embedder, texts, purpose="document", limit=self._settings.max_embed_chars
            ) if texts else []  # fmt: skip
        except CommonplaceError as error:
            if len(asked) > 1:  # find the text that is to blame
                return [pair for one in asked for pair in self._embed([one])]
            self._rest(asked[0][0], error)
            return []
        out, start = [], 0
        for op, some in asked:
            out.append((op, rows[start : start + len(some)]))
            start += len(some)
        return out

    def _chat(self, chat: ChatModel | None, ask: AskChat) -> str | None:
        if chat is None:
            return None
        try:
            answer = chat.complete(ask.system, ask.user, schema=ask.schema)
        except Exception as error:  # the user's model may raise anything; the turns are kept
            _log.warning("Extraction failed, the messages are kept verbatim: %r", error)
            return None
        return answer if isinstance(answer, str) else None

    async def _aplan(self, op: Op) -> bytes:
        models, seconds = self._models_of(op), self._settings.model_timeout
        step = plan(op, extract)
        answer: Any = None
        while True:
            try:
                ask = step.send(answer)
            except StopIteration as planned:
                return bytes(planned.value)
            async with asyncio.timeout(seconds):
                answer = await self._answer(models, ask)

    async def _answer(self, models: Models, ask: Any) -> Any:  # noqa: ANN401 -- by kind of ask
        loop = asyncio.get_running_loop()
        limit = self._settings.max_embed_chars
        if isinstance(ask, AskChat):
            if models.chat is None or not is_async(models.chat.complete):
                return await loop.run_in_executor(self._pool, self._chat, models.chat, ask)
            try:
                return await models.chat.complete(ask.system, ask.user, schema=ask.schema)  # type: ignore[misc]  # it is async
            except Exception as error:  # noqa: BLE001 -- the user's model; the turns are kept
                _log.warning("Extraction failed, the messages are kept verbatim: %r", error)
                return None
        if not ask.texts:
            return []
        if is_async(models.embedder.embed):
            return await aembed(models.embedder, ask.texts, purpose="document", limit=limit)
        return await loop.run_in_executor(
            self._pool,
            lambda: embed(models.embedder, ask.texts, purpose="document", limit=limit),
        )

    # -- what happens to failures and results --------------------------------------------------

    def _rest(self, op: Op, error: Exception) -> None:
        attempts = self._engines.journal.failed(op.seq)
        if self._give_up(op, attempts, error):
            self._bury(op, error)
            return
        self._resting.add(op.id)
        self._later(self._delay(attempts), op.scope.lane, op.id)

    def _give_up(self, op: Op, attempts: int, error: Exception) -> bool:
        if attempts >= _PATIENCE:
            self._resolve(op.id, error=error)
        if isinstance(error, ModelFailed | StoreUnavailable | TimeoutError):
            return attempts >= self._settings.max_attempts and isinstance(error, ModelFailed)
        return isinstance(error, _PERMANENT) or attempts >= self._settings.max_attempts

    def _bury(self, op: Op, error: Exception) -> None:
        _log.error("A write is now a dead letter: %s", error)
        self._engines.journal.bury(op.seq, f"{type(error).__name__}: {error}")
        self._resolve(op.id, error=error)

    def _freeze(self, plans: dict[int, bytes]) -> None:
        if plans:
            self._engines.journal.plan(plans)

    def _thaw(self, op: Op) -> Planned | Remove:
        if op.kind == "delete":
            given = json.loads(op.body)
            return removal(op, given["id"], datetime.fromisoformat(given["at"]))
        return thaw(op.plan or b"[]")

    def _delay(self, attempts: int) -> float:
        return float(min(60.0, self._settings.retry_after * 2 ** min(attempts - 1, 16)))

    def _later(self, delay: float, lane: str, rested: str | None = None) -> None:
        def wake() -> None:
            self._resting.discard(rested or "")
            self.kick(lane)
            with self._changed:
                self._timers.discard(timer)
                self._changed.notify_all()

        timer = threading.Timer(delay, wake)
        timer.daemon = True
        with self._changed:
            if not self._closed:
                self._timers.add(timer)
                timer.start()

    def _models_of(self, op: Op) -> Models:
        return self._models.get(op.id, self._default)

    def _forget_waiter(self, operation: str) -> "Future[Written | Receipt] | None":
        self._models.pop(operation, None)
        return self._waiting.pop(operation, None)

    def _resolve(
        self,
        operation: str,
        *,
        changes: tuple[Change, ...] = (),
        result: Receipt | None = None,
        error: Exception | None = None,
    ) -> None:
        future = self._waiting.pop(operation, None)
        if error is None:
            self._models.pop(operation, None)
        if future is None or future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result or Written(operation=operation, changes=changes))


