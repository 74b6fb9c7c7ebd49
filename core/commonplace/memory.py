"""`Memory`: what a user opens and talks to. It wires the stages and holds no logic of its own."""

import asyncio
import contextlib
import json
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any, Self, Unpack, cast

from .answers import DeadLetter, Drained, Receipt, Written
from .checks import check_choice, check_name
from .errors import InvalidRecord, LoopRequired, RecordNotFound
from .exchange import Op
from .known import check_keys, find_known
from .model import Record, Scope, now
from .options import AddOptions, PruneOptions, UpdateOptions
from .pipeline.fade import Limits
from .planner import Models
from .ports import ChatModel, Embedder
from .reading import Reader
from .request import Content, addition, check_kinds, check_scope, operation, revision
from .settings import Settings
from .store import Store


class Memory(Reader):
    """One long-term memory; every method that touches it takes whose memory it is about.

    Safe in any thread and on any event loop. Each method has an awaitable twin whose name begins
    with `a`; only the twin can use asynchronous models, which it awaits on the running loop. All
    raise `MemoryClosed` after `close`, `InvalidRecord` for what is no `Scope`.
    """

    @classmethod
    def open(
        cls,
        path: str | None = None,
        *,
        embedder: Embedder | None = None,
        chat: ChatModel | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """Open the memory in a folder, which is made when it is not there.

        Opening a folder again in one process shares its engines; close each memory you open.

        Args:
            path: `settings.path` when missing.
            embedder: the multilingual sentence encoder that ships with the library when missing,
                loaded on first use. A store takes only the embedder it was made with.
            chat: extracts facts from messages; without it messages are kept verbatim only.
            settings: read from the environment when missing.

        Raises:
            SchemaMismatch: the store was made with another embedder.
            StoreLocked: another process holds the folder.
        """
        settings = settings or Settings.from_env()
        if embedder is None:
            from .models.sentence_encoder import SentenceEncoder  # noqa: PLC0415 -- on first use

            embedder = SentenceEncoder()
        if not isinstance(embedder, Embedder):
            raise InvalidRecord(
                field="embedder", value=embedder, reason="has no id, dimensions and embed"
            )
        models = Models(embedder=embedder, chat=chat)
        return cls(Store.open(path or settings.path, settings, models), models, settings)

    @classmethod
    def from_env(cls) -> Self:
        """Open what `COMMONPLACE_PATH` and its kin say."""
        return cls.open(settings=Settings.from_env())

    # -- writing -------------------------------------------------------------------------------

    def add(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        **options: Unpack[AddOptions],
    ) -> Written:
        """Remember a text, a `Fact`, a `Message` (verbatim, as an episode), or a list of them.

        Returns:
            One change per record in the order given, `NONE` for what was known; extracted facts
            follow. Without `wait` the changes are empty and `pending` is true.

        Raises:
            InvalidRecord: something cannot be stored; nothing was accepted.
            IdempotencyConflict: the key was used for another text.
            Backpressure: too many writes wait; nothing was accepted.
            LoopRequired: a model is asynchronous and `wait` is true.
            ModelFailed, StoreUnavailable: accepted, failed several times, and is retried on.
        """
        op, wait = self._addition(content, scope, options)
        return cast("Written", self._write(op, wait=wait))

    async def aadd(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        **options: Unpack[AddOptions],
    ) -> Written:
        """Remember something, as `add`."""
        op, wait = await self._run(self._addition, content, scope, options)
        return cast("Written", await self._awrite(op, wait=wait))

    def update(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        **options: Unpack[UpdateOptions],
    ) -> Written:
        """Give a record another text, or none to keep it; its history keeps the former.

        Raises:
            RecordNotFound: no live record has this id in this scope.
            InvalidRecord: something cannot be stored.
        """
        op, wait = self._revision(record_id, text, scope, options)
        return cast("Written", self._write(op, wait))

    async def aupdate(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        **options: Unpack[UpdateOptions],
    ) -> Written:
        """Give a record another text, as `update`."""
        op, wait = await self._run(self._revision, record_id, text, scope, options)
        return cast("Written", await self._awrite(op, wait))

    def vote(self, record_id: str, scope: Scope, *, helped: bool) -> Written:
        """Say whether a record helped, most often a procedure that was followed.

        Raises:
            RecordNotFound: no live record has this id in this scope.
        """
        return cast("Written", self._write(self._ballot(record_id, scope, helped=helped)))

    async def avote(self, record_id: str, scope: Scope, *, helped: bool) -> Written:
        """Say whether a record helped, as `vote`."""
        op = await self._run(self._ballot, record_id, scope, helped=helped)
        return cast("Written", await self._awrite(op))

    def prune(self, scope: Scope, **options: Unpack[PruneOptions]) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, or say what that would be.

        Returns:
            The records that go, weakest first; `dry_run`, the default, deletes none of them.

        Raises:
            InvalidRecord: there is no limit, or one is below zero.
        """
        given: dict[str, Any] = {**options}
        kinds, dry_run = given.pop("kinds", ()), given.pop("dry_run", True)
        check_kinds(kinds)
        found = self._excess(scope, Limits(**given), kinds)
        for one in () if dry_run else found:
            with contextlib.suppress(RecordNotFound):  # somebody else was quicker
                self._write(self._deletion(one.id, scope, spare_pinned=True), wait=False)
        if found and not dry_run:
            self.drain()
        return found

    async def aprune(self, scope: Scope, **options: Unpack[PruneOptions]) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, as `prune`."""
        return await self._run(self.prune, scope, **options)

    def delete(self, record_id: str, scope: Scope, *, wait: bool = True) -> Written:
        """Delete a record; its history stays until its scope is forgotten.

        Raises:
            RecordNotFound: no live record has this id in this scope.
        """
        return cast("Written", self._write(self._deletion(record_id, scope), wait))

    async def adelete(self, record_id: str, scope: Scope, *, wait: bool = True) -> Written:
        """Delete a record, as `delete`."""
        op = await self._run(self._deletion, record_id, scope)
        return cast("Written", await self._awrite(op, wait))

    def forget(self, scope: Scope) -> Receipt:
        """Erase all that the scope covers from every store, pending writes and history included.

        A write accepted before does not come back; one accepted afterwards is kept.
        """
        check_scope(scope)
        return cast("Receipt", self._write(operation("forget", scope, "{}")))

    async def aforget(self, scope: Scope) -> Receipt:
        """Erase all that the scope covers, as `forget`."""
        check_scope(scope)
        return cast("Receipt", await self._awrite(operation("forget", scope, "{}")))

    # -- what is on its way --------------------------------------------------------------------

    def drain(self, timeout: float = 30.0) -> Drained:
        """Wait until every accepted write is applied or `timeout` seconds are over."""
        self._check_open()
        return self._store.writer.drain(timeout)

    async def adrain(self, timeout: float = 30.0) -> Drained:
        """Wait as `drain`; writes that a dead loop left behind are planned on this one."""
        self._check_open()
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        self._adopt()
        while own := [task for task in self._tasks if task.get_loop() is loop]:
            if until <= loop.time():
                break
            await asyncio.wait(own, timeout=until - loop.time())
        return await self._run(self.drain, max(0.0, until - loop.time()))

    def dead_letters(self, scope: Scope | None = None) -> Sequence[DeadLetter]:
        """Read the accepted writes that cannot be applied, oldest first; None for everybody's."""
        self._check_open(scope)
        return self._store.engines.journal.dead(scope)

    def retry(self, operations: Collection[str]) -> int:
        """Put dead letters back in line, by operation; answer how many."""
        self._check_open()
        for one in operations:
            check_name("operations", one)
        count = self._store.engines.journal.revive(operations)
        self._store.writer.resume()
        return count

    def close(self, timeout: float = 10.0) -> None:
        """Finish what is on its way, for `timeout` seconds, and let go; repeating does nothing.

        What is not finished stays in the journal and goes on at the next open.
        """
        if not self._closed:
            self._closed = True
            self._store.release(timeout)

    async def aclose(self, timeout: float = 10.0) -> None:
        """Close, as `close`; this loop's own writes are finished first."""
        if self._closed:
            return
        await self.adrain(timeout)
        await asyncio.get_running_loop().run_in_executor(None, self.close, timeout)

    def __enter__(self) -> Self:
        """Take part."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Take part."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        await self.aclose()

    # -- wiring --------------------------------------------------------------------------------

    def _addition(
        self, content: Content | Sequence[Content], scope: Scope, options: AddOptions
    ) -> tuple[Op, bool]:
        given = {**options}
        wait = cast("bool", given.pop("wait", True))
        infer = given.pop("infer", None)
        infer = self._models.chat is not None if infer is None else bool(infer)
        op, keyed = addition(
            content,
            scope,
            at=now(),
            infer=infer,
            is_single=self._settings.is_single_valued,
            **given,  # type: ignore[arg-type]  # AddOptions
        )
        check_keys(self._store.engines, keyed)
        return op, wait

    def _revision(
        self, record_id: str, text: str | None, scope: Scope, options: UpdateOptions, votes: int = 0
    ) -> tuple[Op, bool]:
        self._check_open(scope)
        given: dict[str, Any] = {**options}
        wait = given.pop("wait", True)
        record = find_known(self._store.engines, record_id, scope)
        is_single = self._settings.is_single_valued
        return revision(record, text, votes=votes, at=now(), is_single=is_single, **given), wait

    def _ballot(self, record_id: str, scope: Scope, *, helped: bool) -> Op:
        check_choice("helped", helped, (True, False))
        return self._revision(record_id, None, scope, {}, votes=1 if helped else -1)[0]

    def _deletion(self, record_id: str, scope: Scope, *, spare_pinned: bool = False) -> Op:
        self._check_open(scope)
        owner = find_known(self._store.engines, record_id, scope, expired=True).scope
        given = {"id": record_id, "at": now().isoformat(), "spare_pinned": spare_pinned}
        return operation("delete", owner, json.dumps(given))

    def _write(self, op: Op, wait: bool = True) -> Written | Receipt:  # noqa: FBT001, FBT002 -- private
        self._check_open()
        if wait and self._models.need_loop(op):
            raise LoopRequired(call=op.kind, model=self._models.embedder.id)
        op, future = self._store.writer.accept(op, self._models, claimed=False, urgent=wait)
        return future.result() if wait else Written(operation=op.id, pending=True)

    async def _awrite(self, op: Op, wait: bool = True) -> Written | Receipt:  # noqa: FBT001, FBT002 -- private
        self._check_open()
        # Once the journal has been asked, a cancelled caller must not leave a write half claimed.
        return await asyncio.shield(asyncio.ensure_future(self._accept(op, wait=wait)))

    async def _accept(self, op: Op, *, wait: bool) -> Written | Receipt:
        writer = self._store.writer
        op, future = await self._run(writer.accept, op, self._models, claimed=True, urgent=wait)
        if self._models.need_loop(op):
            self._spawn(writer.plan_here(op, self._store.run))
        self._adopt()
        if not wait:
            return Written(operation=op.id, pending=True)
        return await asyncio.wrap_future(future)
