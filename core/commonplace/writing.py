"""The writing half of `Memory`: add, change, delete and forget."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Unpack, cast

from .errors import LoopRequiredError, RecordNotFoundError
from .ingest.operations import (
    Command,
    Content,
    addition,
    check_kinds,
    check_scope,
    deletion,
    operation,
    revision,
    to_op,
)
from .ingest.pending import check_keys, find_known
from .model import EraseReceipt, Record, Scope, WriteResult, now
from .options import AddOptions, Extraction, PruneOptions, UpdateOptions
from .ports.stores import Operation
from .reading import Reader
from .retrieval.decay import Limits
from .validation import check_choice

_PRUNE_SECONDS = 30.0


class Editor(Reader):
    """Changes what an open store remembers; every method takes whose memory it is about."""

    def add(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        **options: Unpack[AddOptions],
    ) -> WriteResult:
        """Remember a text, a `Fact`, a `Message` (verbatim, as an episode), or a list of them.

        Returns:
            One change per record in the order given, `NONE` for what was known; extracted facts
            follow. Without `wait` the changes are empty and `pending` is true.

        Raises:
            InvalidRecordError: something cannot be stored; nothing was accepted.
            IdempotencyConflictError: the key was used for another text.
            BackpressureError: too many writes wait; nothing was accepted.
            LoopRequiredError: a model is asynchronous and `wait` is true.
            ModelFailedError, StoreUnavailableError: accepted, failed several times, and is retried on.
            StoreRefusedError: accepted, and tried again by the next write, `drain` or open.
        """
        op, wait = self._addition(content, scope, options)
        return cast("WriteResult", self._write(op, wait=wait))

    async def aadd(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        **options: Unpack[AddOptions],
    ) -> WriteResult:
        """Remember something, as `add`."""
        op, wait = await self._run(self._addition, content, scope, options)
        return cast("WriteResult", await self._awrite(op, wait))

    def update(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        **options: Unpack[UpdateOptions],
    ) -> WriteResult:
        """Give a record another text, or none to keep it; its history keeps the former.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
            InvalidRecordError: something cannot be stored.
        """
        op, wait = self._revision(record_id, text, scope, options)
        return cast("WriteResult", self._write(op, wait))

    async def aupdate(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        **options: Unpack[UpdateOptions],
    ) -> WriteResult:
        """Give a record another text, as `update`."""
        op, wait = await self._run(self._revision, record_id, text, scope, options)
        return cast("WriteResult", await self._awrite(op, wait))

    def vote(self, record_id: str, scope: Scope, *, helped: bool) -> WriteResult:
        """Say whether a record helped, most often a procedure that was followed.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        return cast("WriteResult", self._write(self._ballot(record_id, scope, helped=helped)))

    async def avote(self, record_id: str, scope: Scope, *, helped: bool) -> WriteResult:
        """Say whether a record helped, as `vote`."""
        op = await self._run(self._ballot, record_id, scope, helped=helped)
        return cast("WriteResult", await self._awrite(op))

    def prune(self, scope: Scope, **options: Unpack[PruneOptions]) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, or say what that would be.

        Returns:
            The records that go, weakest first; `dry_run`, the default, deletes none of them.

        Raises:
            InvalidRecordError: there is no limit, or one is below zero.
        """
        given: dict[str, Any] = {**options}
        kinds, dry_run = given.pop("kinds", ()), given.pop("dry_run", True)
        check_kinds(kinds)
        found = self._excess(scope, Limits(**given), kinds)
        for one in () if dry_run else found:
            with contextlib.suppress(RecordNotFoundError):  # somebody else was quicker
                self._write(self._deletion(one.id, scope, spare_pinned=True), wait=False)
        if found and not dry_run:
            self._store.writer.drain(_PRUNE_SECONDS)
        return found

    async def aprune(self, scope: Scope, **options: Unpack[PruneOptions]) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, as `prune`."""
        return await self._run(self.prune, scope, **options)

    def delete(self, record_id: str, scope: Scope, *, wait: bool = True) -> WriteResult:
        """Delete a record; its history stays until its scope is forgotten.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        return cast("WriteResult", self._write(self._deletion(record_id, scope), wait))

    async def adelete(self, record_id: str, scope: Scope, *, wait: bool = True) -> WriteResult:
        """Delete a record, as `delete`."""
        op = await self._run(self._deletion, record_id, scope)
        return cast("WriteResult", await self._awrite(op, wait))

    def write(self, commands: Sequence[Command], *, wait: bool = True) -> Sequence[WriteResult]:
        """Do several writes, of any scopes, accepted together: all of them or none.

        Returns:
            One answer each, in their order; changes and `wait` are as of `add`.

        Raises:
            InvalidRecordError, IdempotencyConflictError, BackpressureError: nothing was accepted.
            LoopRequiredError, ModelFailedError, StoreUnavailableError: as of `add`.
        """
        self._check_open()
        ops = self._ops(commands)
        return cast("list[WriteResult]", self._write_all(ops, wait) if ops else [])

    async def awrite(
        self, commands: Sequence[Command], *, wait: bool = True
    ) -> Sequence[WriteResult]:
        """Do several writes, as `write`."""
        ops = await self._run(self._ops, commands)
        return cast("list[WriteResult]", await self._awrite_all(ops, wait) if ops else [])

    def forget(self, scope: Scope) -> EraseReceipt:
        """Erase all that the scope covers from every store, pending writes and history included.

        A write accepted before does not come back; one accepted afterwards is kept.
        """
        check_scope(scope)
        return cast("EraseReceipt", self._write(operation("forget", scope, "{}")))

    async def aforget(self, scope: Scope) -> EraseReceipt:
        """Erase all that the scope covers, as `forget`."""
        check_scope(scope)
        return cast("EraseReceipt", await self._awrite(operation("forget", scope, "{}")))

    # -- wiring --------------------------------------------------------------------------------

    def _addition(
        self, content: Content | Sequence[Content], scope: Scope, options: AddOptions
    ) -> tuple[Operation, bool]:
        given = {**options}
        wait = cast("bool", given.pop("wait", True))
        infer = given.pop("infer", None)
        if not isinstance(infer, Extraction):
            infer = self._models.chat is not None if infer is None else bool(infer)
        op, keyed = addition(
            content,
            scope,
            at=now(),
            infer=infer,
            is_single=self._settings.is_single_valued,
            **given,  # type: ignore[arg-type]  # AddOptions
        )
        check_keys(self._store.engines, keyed, upsert=bool(options.get("upsert")))
        return op, wait

    def _revision(
        self, record_id: str, text: str | None, scope: Scope, options: UpdateOptions, votes: int = 0
    ) -> tuple[Operation, bool]:
        self._check_open(scope)
        given: dict[str, Any] = {**options}
        wait = given.pop("wait", True)
        # What has expired may be given a later end.
        record = find_known(self._store.engines, record_id, scope, expired="expires_at" in given)
        is_single = self._settings.is_single_valued
        return revision(record, text, votes=votes, at=now(), is_single=is_single, **given), wait

    def _ballot(self, record_id: str, scope: Scope, *, helped: bool) -> Operation:
        check_choice("helped", helped, (True, False))
        return self._revision(record_id, None, scope, {}, votes=1 if helped else -1)[0]

    def _deletion(self, record_id: str, scope: Scope, *, spare_pinned: bool = False) -> Operation:
        self._check_open(scope)
        found = find_known(self._store.engines, record_id, scope, expired=True)
        return deletion(
            record_id, found.scope, at=now(), spare_pinned=spare_pinned, after=found.version
        )

    def _ops(self, commands: Sequence[Command]) -> list[Operation]:
        at, is_single = now(), self._settings.is_single_valued
        return [to_op(one, at=at, is_single=is_single) for one in commands]

    def _write(self, op: Operation, wait: bool = True) -> WriteResult | EraseReceipt:  # noqa: FBT001, FBT002 -- private
        return self._write_all([op], wait)[0]

    async def _awrite(self, op: Operation, wait: bool = True) -> WriteResult | EraseReceipt:  # noqa: FBT001, FBT002 -- private
        return (await self._awrite_all([op], wait))[0]

    def _write_all(self, ops: Sequence[Operation], wait: bool) -> list[WriteResult | EraseReceipt]:  # noqa: FBT001 -- private
        self._check_open()
        if wait and any(map(self._models.need_loop, ops)):
            raise LoopRequiredError(call=ops[0].kind, model=self._models.embedder.id)
        accepted = self._store.writer.accept(ops, self._models, claimed=False, urgent=wait)
        if not wait:
            return [WriteResult(operation=op.id, pending=True) for op in ops]
        return [future.result() for _, future in accepted]

    async def _awrite_all(
        self, ops: Sequence[Operation], wait: bool
    ) -> list[WriteResult | EraseReceipt]:  # noqa: FBT001 -- private
        self._check_open()
        # Once the journal has been asked, a cancelled caller must not leave a write half claimed.
        return await asyncio.shield(asyncio.ensure_future(self._accept(ops, wait=wait)))

    async def _accept(
        self, ops: Sequence[Operation], *, wait: bool
    ) -> list[WriteResult | EraseReceipt]:
        writer = self._store.writer
        run = self._store.run_writes if wait else self._store.run
        accepted = await run(writer.accept, ops, self._models, claimed=True, urgent=wait)
        for op, _ in accepted:
            if self._models.need_loop(op):
                self._spawn(writer.loops.plan_here(op, self._store.run))
        self._adopt()
        if not wait:
            return [WriteResult(operation=op.id, pending=True) for op in ops]
        futures = [asyncio.wrap_future(future) for _, future in accepted]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for one in answers:
            if isinstance(one, BaseException):
                raise one
        return cast("list[WriteResult | EraseReceipt]", answers)
