"""`Memory`, the object a user opens and talks to."""

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from types import EllipsisType, TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from .call_hints import hinting_call
from .errors import (
    InvalidRecordError,
    LoopRequiredError,
    MemoryClosedError,
    ModelFailedError,
)
from .filters import parse_filter
from .ingest.codec import Write
from .ingest.embedding import aembed, embed, is_async
from .ingest.operations import Operations
from .ingest.planning import Models
from .ingest.redaction import Redaction, check_redact
from .ingest.submission import Submission
from .ports.checkpoints import Checkpoints
from .ports.models import ChatModel, Embedder, check_models
from .ports.stores import GraphStore, VectorIndex
from .retrieval.diagram import as_mermaid, as_text
from .retrieval.pruning import RetentionLimits, records_over_limits
from .retrieval.search import SearchRequest, search, search_request
from .runtime import Runtime
from .settings import Location, Settings
from .types import (
    Backlog,
    Command,
    Content,
    DeadLetter,
    Entity,
    EraseReceipt,
    Extraction,
    Kind,
    Match,
    Namespace,
    Origin,
    Page,
    Ranking,
    Record,
    Relation,
    Scope,
    TokenEmbedding,
    Version,
    Wait,
    WriteResult,
    check_kinds,
    check_scope,
)
from .validation import (
    check_callable,
    check_choice,
    check_flag,
    check_ids,
    check_name,
    check_namespace,
    check_seconds,
    check_time,
)

P = ParamSpec("P")
T = TypeVar("T")
MAX_HOPS = 3
_PRUNE_SECONDS = 30.0
_reopening = threading.Lock()


def _public(memory: type[T]) -> type[T]:
    """Finish the public methods: describe the async ones, and hint at a wrong keyword's meaning.

    The description of an async method is that of the method of the same name without `a`.
    """
    for name, member in list(vars(memory).items()):
        method = member.__func__ if isinstance(member, classmethod) else member
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        blocking = vars(memory).get(name.removeprefix("a"))
        if inspect.iscoroutinefunction(method) and name.startswith("a") and blocking is not None:
            described = inspect.getdoc(getattr(blocking, "__func__", blocking))
            method.__doc__ = (
                f"Async version of `{name.removeprefix('a')}`; await it.\n\n{described}"
            )
        hinting = hinting_call(method)
        setattr(memory, name, classmethod(hinting) if method is not member else hinting)
    return memory


@_public
class Memory:
    """One long-term memory; every method that touches it takes whose memory it is about.

    Open one with `Memory.open("./memory")` and close it, or use it in a `with` block:

        with Memory.open("./memory") as memory:
            alice = Scope(user_id="alice")
            memory.add("Alice is allergic to peanuts.", alice)
            [match] = memory.search("What must Alice not eat?", alice, top_k=1)

    Safe in any thread and on any event loop. Each blocking method has an async version with the
    prefix `a`; only async methods can use asynchronous models, awaited on the running loop.

    A scope with only a `user_id` covers all agents and sessions of that user.

    Every method that reads or writes raises `MemoryClosedError` after `close`, and
    `InvalidRecordError` when `scope` is not a `Scope`.
    """

    _runtime: Runtime
    _models: Models
    _settings: Settings
    _redaction: Redaction
    _operations: Operations
    _submission: Submission
    _closed: bool

    def __init__(self, *_args: object, **_options: object) -> None:
        """Refuse: use `Memory.open` or `Memory.from_env`."""
        raise TypeError("Memory() opens nothing. Use Memory.open('./memory') or Memory.from_env().")

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str | None = None,
        *,
        vectors: str | VectorIndex | None = None,
        graph: str | GraphStore | None = None,
        journal: str | None = None,
        embedder: Embedder | None = None,
        chat: ChatModel | None = None,
        settings: Settings | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> Self:
        """Open the memory in a folder, created if missing, or on servers.

        Opening a location again in one process shares its engines; close each memory you open.
        Any number of processes of a host may open one folder; what one has written, the others
        find. A forked process may use its parent's memories.

        Args:
            path: the folder of all engines that have no location of their own; `settings.path`
                when missing. A path alone is a folder, whatever the environment says.
            vectors: such as `qdrant://host:6333` (`https://` with TLS), with `/collection` and
                options of `QdrantIndex` after a `?`; the key may stand before an `@`.
            graph: such as `neo4j://user:password@host:7687` (`neo4j+s://` with TLS), with
                `/database` and `?prefix=` of the labels. Other URL schemes come from packages that
                add engines. Each of the two may be an open `VectorIndex` or `GraphStore` instead,
                which stays open when the memory is closed.
            journal: a folder on this host, for what was accepted.
            embedder: the multilingual sentence encoder that ships with the library when missing,
                loaded on first use. A store takes only the embedder it was made with.
            chat: extracts facts from messages; without it messages are kept verbatim only.
            settings: read from the environment when missing.
            redact: a function that is given each text of a write or a search and returns what may
                be stored and shown to models, such as `commonplace.secret_patterns.secrets`: texts,
                names, relations and the texts in metadata, but no ids, keys or checkpoints. It
                must be quick and may be called on any thread. If it fails, the call does.

        Raises:
            InvalidRecordError: an argument or a setting cannot be used, such as the path of a file.
            SchemaMismatchError: the store was made with another embedder.
            StoreLockedError: another process works on the whole of the folder.
            StoreUnavailableError: a server does not answer.
            MissingExtraError: the driver of a server is not installed.
        """
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidRecordError(field="settings", value=settings, reason="must be a Settings")
        placed = settings or (Settings.from_env() if path is None else Settings())
        location = Location.find(path, placed, vectors=vectors, graph=graph, journal=journal)
        settings = settings or Settings.from_env()
        if embedder is None:
            from .models.sentence_encoder import SentenceEncoder

            embedder = SentenceEncoder()
        check_models(embedder, chat)
        check_redact(redact)
        models = Models(embedder=embedder, chat=chat)
        self = cls.__new__(cls)
        self._models = models
        self._settings = settings
        self._redaction = Redaction(redact)
        self._connect(Runtime.open(location, settings, models))
        self._closed = False
        return self

    @classmethod
    async def aopen(
        cls,
        path: str | None = None,
        *,
        vectors: str | VectorIndex | None = None,
        graph: str | GraphStore | None = None,
        journal: str | None = None,
        embedder: Embedder | None = None,
        chat: ChatModel | None = None,
        settings: Settings | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> Self:
        """Open a memory as `open`, on a thread: the arguments and errors are the same."""
        return await asyncio.to_thread(
            cls.open, path, vectors=vectors, graph=graph, journal=journal, embedder=embedder,
            chat=chat, settings=settings, redact=redact,
        )  # fmt: skip

    @classmethod
    def from_env(cls) -> Self:
        """Open the memory that `COMMONPLACE_PATH`, `COMMONPLACE_VECTORS` and the others name.

        `Settings` lists them. Raises as `open`.
        """
        return cls.open(settings=Settings.from_env())

    @classmethod
    async def afrom_env(cls) -> Self:
        """Open a memory as `from_env`, on a thread."""
        return await cls.aopen(settings=Settings.from_env())

    def close(self, timeout: float = 10.0) -> None:
        """Wait for accepted writes to be applied, then close; closing again does nothing.

        Args:
            timeout: seconds to wait for writes. What is not finished by then stays in the journal
                and goes on at the next open.
        """
        check_seconds("timeout", timeout)
        if not self._closed:
            self._closed = True
            self._runtime.release(timeout)

    async def aclose(self, timeout: float = 10.0) -> None:
        """Wait for accepted writes to be applied, then close, as `close`."""
        if self._closed:
            return
        try:
            await self.aflush(timeout)
        finally:  # also where the stores cannot be read any more
            await asyncio.get_running_loop().run_in_executor(None, self.close, timeout)

    # -- writing -------------------------------------------------------------------------------

    def add(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        *,
        infer: bool | Extraction | None = None,
        kind: Kind = "fact",
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        upsert: bool = False,
        origin: Origin = "user",
        identity: Sequence[str] = (),
        wait: Wait = True,
    ) -> WriteResult:
        """Remember a text, a `Fact`, a `Message` (verbatim, as an episode), or a list of them.

        For example:

            result = memory.add("Bob moved to Lyon.", Scope(user_id="bob"))
            memory.get(result.changes[0].id, Scope(user_id="bob"))

        Args:
            content: 1 to 1,000 things to remember.
            scope: whose memory.
            infer: also extract facts from messages with the chat model; None does so when there
                is one. Ignored for texts and facts, and without a chat model. The messages are kept
                verbatim as well, unless an `Extraction` says otherwise, which needs a chat model.
            kind: of each text; a `Fact` has its own, a `Message` is an `episode`.
            metadata: for texts and messages, and for facts that have none.
            key: idempotency key of a single text; a second write with it tells the text again.
            upsert: write a text or `Fact` that has a key in place of what the key named before,
                which stays in its history; a key may then name another text.
            origin: who said it; text from tools and documents is trusted less.
            identity: keys of the metadata whose values belong to what makes two tellings the same:
                told under other values, a fact, a message, an extracted fact or a key is another
                record, and what is known under other values is neither told again nor replaced. A
                record without such a key counts as one of its own. By default the metadata do not
                matter: told again, a fact has the newest.
            wait: True returns when every store has it; False as soon as it cannot be lost; a number
                of seconds accepts it first, and then waits so long at most.

        Returns:
            One change per record in the order given; extracted facts follow. A fact that is known
            and still true, with the same text apart from outer spaces, is told again: the event is
            `UPDATE` if metadata, expiry, importance, pin or relations are new, which are merged
            into the record, else `NONE`; `Record.times_told` counts both. A message that is known
            is `NONE` and counts nothing. What is not waited for, or not long enough, has no changes
            and is `pending`.

        Raises:
            InvalidRecordError: something cannot be stored; nothing was accepted.
            IdempotencyConflictError: the key was used for another text.
            BackpressureError: too many writes wait; nothing was accepted.
            LoopRequiredError: a model is asynchronous and `wait` is true.
            ModelFailedError: accepted, failed several times, is retried.
            ModelRefusedError: accepted, and a dead letter now, as no new attempt would help.
            StoreUnavailableError: the same where it says so; else nothing was accepted.
            StoreRefusedError: accepted, and tried again by the next write, `flush` or open.
        """
        self._check_open(scope)
        return self._write(partial(
            self._operations.add, content, scope, infer=self._infers(infer), kind=kind,
            metadata=metadata, key=key, upsert=upsert, origin=origin, identity=identity,
        ), wait=wait)  # fmt: skip

    async def aadd(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        *,
        infer: bool | Extraction | None = None,
        kind: Kind = "fact",
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        upsert: bool = False,
        origin: Origin = "user",
        identity: Sequence[str] = (),
        wait: Wait = True,
    ) -> WriteResult:
        """Remember something, as `add`."""
        self._check_open(scope)
        return await self._awrite(partial(
            self._operations.add, content, scope, infer=self._infers(infer), kind=kind,
            metadata=metadata, key=key, upsert=upsert, origin=origin, identity=identity,
        ), wait=wait)  # fmt: skip

    def update(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        *,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = False,
        relations: Sequence[Relation] | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        expires_at: datetime | EllipsisType | None = ...,
        wait: Wait = True,
    ) -> WriteResult:
        """Change a record; what is not given stays as it is, and its history keeps the former.

        Args:
            record_id: of a live record.
            text: in place of the former; None to keep it.
            scope: whose memory.
            metadata: in place of the former.
            merge: add to the former metadata instead, in place of what has the same key.
            relations: stated by the text; earlier ones end. When missing, they are kept for the
                same text and end with another one.
            importance: 0..1; more important records decay more slowly.
            pinned: does not decay and is never pruned.
            expires_at: hidden from reads from then on; None for never; `...`, the default, keeps
                the present value. Relations end with it only when they are given too.
            wait: as of `add`.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
            InvalidRecordError: something cannot be stored.
        """
        self._check_open(scope)
        return self._write(partial(
            self._operations.update, record_id, text, scope, metadata=metadata, merge=merge,
            relations=relations, importance=importance, pinned=pinned, expires_at=expires_at,
        ), wait=wait)  # fmt: skip

    async def aupdate(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        *,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = False,
        relations: Sequence[Relation] | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        expires_at: datetime | EllipsisType | None = ...,
        wait: Wait = True,
    ) -> WriteResult:
        """Change a record, as `update`."""
        self._check_open(scope)
        return await self._awrite(partial(
            self._operations.update, record_id, text, scope, metadata=metadata, merge=merge,
            relations=relations, importance=importance, pinned=pinned, expires_at=expires_at,
        ), wait=wait)  # fmt: skip

    def delete(self, record_id: str, scope: Scope, *, wait: Wait = True) -> WriteResult:
        """Delete a record; its history stays until its scope is forgotten.

        Args:
            record_id: of a live record.
            scope: whose memory.
            wait: as of `add`.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        self._check_open(scope)
        return self._write(partial(self._operations.delete, record_id, scope), wait=wait)

    async def adelete(self, record_id: str, scope: Scope, *, wait: Wait = True) -> WriteResult:
        """Delete a record, as `delete`."""
        self._check_open(scope)
        return await self._awrite(partial(self._operations.delete, record_id, scope), wait=wait)

    def feedback(self, record_id: str, scope: Scope, *, helped: bool) -> WriteResult:
        """Count whether a record helped, most often a procedure that was followed.

        Args:
            record_id: of a live record.
            scope: whose memory.
            helped: adds 1 to `Record.votes` when true, takes 1 away when false.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        self._check_open(scope)
        check_flag("helped", helped)
        votes = 1 if helped else -1
        return self._write(partial(self._operations.update, record_id, None, scope, votes=votes))

    async def afeedback(self, record_id: str, scope: Scope, *, helped: bool) -> WriteResult:
        """Count whether a record helped, as `feedback`."""
        self._check_open(scope)
        check_flag("helped", helped)
        votes = 1 if helped else -1
        update = partial(self._operations.update, record_id, None, scope, votes=votes)
        return await self._awrite(update)

    def batch(self, commands: Sequence[Command], *, wait: Wait = True) -> Sequence[WriteResult]:
        """Do several writes, of any scopes, accepted together: all of them or none.

        Args:
            commands: each an `Upsert`, a `Delete` or a `Revise`; none for an empty answer.
            wait: as of `add`.

        Returns:
            One result each, in their order; the changes are as of `add`.

        Raises:
            InvalidRecordError, IdempotencyConflictError, BackpressureError: nothing was accepted.
            LoopRequiredError, ModelFailedError, StoreUnavailableError: as of `add`.
        """
        self._check_open()
        make = partial(self._operations.commands, commands)
        return self._submission.submit(make, wait=wait)

    async def abatch(
        self, commands: Sequence[Command], *, wait: Wait = True
    ) -> Sequence[WriteResult]:
        """Do several writes, as `batch`."""
        self._check_open()
        make = partial(self._operations.commands, commands)
        return await self._submission.asubmit(make, wait=wait)

    def prune(
        self,
        scope: Scope,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        unused_for: timedelta | None = None,
        kinds: Sequence[Kind] = (),
        dry_run: bool = True,
    ) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, or say what that would be.

        Args:
            scope: whose memory.
            keep: number of records to keep, strongest first (`Settings.half_life`).
            older_than: limit on the time since the last change.
            unused_for: limit on the time since the last recall; where both are given a record
                goes when it exceeds both.
            kinds: look at these only; empty for all.
            dry_run: True deletes nothing.

        Returns:
            The records that go, weakest first. Pinned ones stay until they expire.

        Raises:
            InvalidRecordError: there is no limit, or one is below zero.
        """
        self._check_open(scope)
        check_kinds(kinds)
        check_flag("dry_run", dry_run)
        limits = RetentionLimits(keep=keep, older_than=older_than, unused_for=unused_for)
        engines, log = self._runtime.engines, self._runtime.access_log
        found = records_over_limits(
            limits, scope, kinds, engines.graph, log, self._settings.half_life
        )
        if not dry_run:
            make = partial(self._operations.deletions, found, scope)
            self._submission.submit(make, wait=_PRUNE_SECONDS)
        return found

    async def aprune(
        self,
        scope: Scope,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        unused_for: timedelta | None = None,
        kinds: Sequence[Kind] = (),
        dry_run: bool = True,
    ) -> Sequence[Record]:
        """Delete what a scope keeps beyond limits, as `prune`."""
        return await self._run(
            self.prune, scope, keep=keep, older_than=older_than, unused_for=unused_for,
            kinds=kinds, dry_run=dry_run,
        )  # fmt: skip

    def forget(self, scope: Scope) -> EraseReceipt:
        """Erase all that the scope covers from every store, pending writes and history included.

        A write accepted before does not come back; one accepted afterwards is kept. For example:

            receipt = memory.forget(Scope(user_id="bob"))
            assert receipt.complete

        Args:
            scope: whose memory; a user's scope covers all agents and sessions of that user.

        Returns:
            What was removed, store by store, and what a verifying read still found.
        """
        self._check_open(scope)
        receipt: EraseReceipt
        make = partial(self._operations.forget, scope)
        [receipt] = self._submission.submit(lambda: [make()], wait=True)
        return receipt

    async def aforget(self, scope: Scope) -> EraseReceipt:
        """Erase all that the scope covers, as `forget`."""
        self._check_open(scope)
        receipt: EraseReceipt
        make = partial(self._operations.forget, scope)
        [receipt] = await self._submission.asubmit(lambda: [make()], wait=True)
        return receipt

    # -- reading -------------------------------------------------------------------------------

    def search(
        self,
        text: str,
        scope: Scope | Sequence[Scope],
        *,
        top_k: int = 10,
        threshold: float | None = None,
        where: Mapping[str, Any] | None = None,
        predicate: Callable[[Record], bool] | None = None,
        kinds: Sequence[Kind] = (),
        include_superseded: bool = False,
        include_expired: bool = False,
        as_of: datetime | None = None,
        decay: bool | None = None,
        ranking: Ranking = "calibrated",
    ) -> Sequence[Match]:
        """Find the records that answer a text, best first; ties by id.

        For example:

            for match in memory.search("Where does Bob live?", Scope(user_id="bob"), top_k=3):
                print(f"{match.score:.2f} {match.record.text}")

        Args:
            text: a question or a topic; not empty, at most 8 KiB.
            scope: whose memory; of several, what each covers is ranked together.
            top_k: maximum number of matches, 1..10,000; applied after the threshold. Equal turns of
                one speaker are one match, the newest or the one of the day that is asked for.
            threshold: leave out matches with a lower `relevance`, 0..1; None for no limit.
            where: a filter (`commonplace.filters`), AND-ed with the scope.
            predicate: asked about each `Record` that the filter lets through; False leaves it
                out. It may be called on any thread and must not change the record.
            kinds: only these; empty for all.
            include_superseded: also records that are no longer true.
            include_expired: also records that have expired.
            as_of: instead, what was true at this time, which needs a time zone.
            decay: multiply scores by 0.3..1.5, more for what is fresh or was recalled often; after
                the threshold. `Settings.decay` when None.
            ranking: `calibrated`, or `similarity` for order and score by the cosine alone, -1..1,
                without decay; nothing but the threshold is left out then.

        Returns:
            An empty list if nothing matches. `Match.score_details` says what the score is made of.

        Raises:
            InvalidRecordError: an argument is out of its range, or the text is empty.
            InvalidFilterError: the filter is not in the language.
            LoopRequiredError: the embedder is asynchronous.
        """
        self._check_open()
        text = self._redaction.text(text)
        request = search_request(
            text, scope, top_k=top_k, threshold=threshold, where=where, predicate=predicate,
            kinds=kinds, include_superseded=include_superseded, include_expired=include_expired,
            as_of=as_of, decay=decay, ranking=ranking,
        )  # fmt: skip
        return self._search(request)

    async def asearch(
        self,
        text: str,
        scope: Scope | Sequence[Scope],
        *,
        top_k: int = 10,
        threshold: float | None = None,
        where: Mapping[str, Any] | None = None,
        predicate: Callable[[Record], bool] | None = None,
        kinds: Sequence[Kind] = (),
        include_superseded: bool = False,
        include_expired: bool = False,
        as_of: datetime | None = None,
        decay: bool | None = None,
        ranking: Ranking = "calibrated",
    ) -> Sequence[Match]:
        """Find the records that answer a text, as `search`."""
        self._check_open()
        self._submission.adopt_orphans()
        text = self._redaction.text(text)
        request = search_request(
            text, scope, top_k=top_k, threshold=threshold, where=where, predicate=predicate,
            kinds=kinds, include_superseded=include_superseded, include_expired=include_expired,
            as_of=as_of, decay=decay, ranking=ranking,
        )  # fmt: skip
        embedder = self._models.embedder
        if not is_async(embedder.embed):
            return await self._runtime.run_search(self._search, request)
        limit = self._settings.max_embed_chars
        [embedding] = await aembed(embedder, [text], purpose="query", limit=limit)
        calibration = self._runtime.calibration
        if probes := calibration.probes(text):
            try:
                measured = await aembed(embedder, probes, purpose="document", limit=limit)
                calibration.learn(text, [one.vector for one in measured])
            except ModelFailedError as error:
                calibration.miss(error)
        return await self._run(self._find, request, embedding)

    def get(self, record_id: str, scope: Scope, *, include_expired: bool = False) -> Record | None:
        """Read a live record, superseded or not; None if this scope has none with this id.

        Args:
            record_id: of one record.
            scope: whose memory.
            include_expired: also when it has expired.
        """
        self._check_open(scope)
        check_name("record_id", record_id)
        check_flag("include_expired", include_expired)
        graph = self._runtime.engines.graph
        return next(iter(graph.get(scope, [record_id], include_expired=include_expired)), None)

    async def aget(
        self, record_id: str, scope: Scope, *, include_expired: bool = False
    ) -> Record | None:
        """Read a live record, as `get`."""
        return await self._run(self.get, record_id, scope, include_expired=include_expired)

    def get_many(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Record]:
        """Read live records in the order of the ids, leaving out those that this scope lacks.

        Args:
            record_ids: any number of ids.
            scope: whose memory.
        """
        self._check_open(scope)
        check_ids("record_ids", record_ids)
        return self._runtime.engines.graph.get(scope, record_ids) if record_ids else []

    async def aget_many(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Record]:
        """Read live records, as `get_many`."""
        return await self._run(self.get_many, record_ids, scope)

    def list(
        self,
        scope: Scope,
        *,
        where: Mapping[str, Any] | None = None,
        predicate: Callable[[Record], bool] | None = None,
        kinds: Sequence[Kind] = (),
        limit: int = 100,
        cursor: str | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
        as_of: datetime | None = None,
    ) -> Page:
        """Read live records, newest first.

        Args:
            scope: whose memory.
            where: a filter (`commonplace.filters`), AND-ed with the scope.
            predicate: as of `search`.
            kinds: only these; empty for all.
            limit: records a page, 1..1000.
            cursor: `Page.cursor` of the page before; None for the first.
            include_superseded: also records that are no longer true.
            include_expired: also records that have expired.
            as_of: instead, what was true at this time, which needs a time zone.

        Raises:
            InvalidRecordError: an argument is out of its range, or `list` did not return the
                cursor.
            InvalidFilterError: the filter is not in the language.
        """
        self._check_open(scope)
        check_time("as_of", as_of)
        check_kinds(kinds)
        check_flag("include_superseded", include_superseded)
        check_flag("include_expired", include_expired)
        return self._runtime.engines.graph.page(
            scope,
            where=parse_filter(where, predicate),
            kinds=kinds,
            limit=limit,
            cursor=cursor,
            include_superseded=include_superseded,
            include_expired=include_expired,
            as_of=as_of,
        )

    async def alist(
        self,
        scope: Scope,
        *,
        where: Mapping[str, Any] | None = None,
        predicate: Callable[[Record], bool] | None = None,
        kinds: Sequence[Kind] = (),
        limit: int = 100,
        cursor: str | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
        as_of: datetime | None = None,
    ) -> Page:
        """Read live records, as `list`."""
        return await self._run(
            self.list, scope, where=where, predicate=predicate, kinds=kinds, limit=limit,
            cursor=cursor, include_superseded=include_superseded, include_expired=include_expired,
            as_of=as_of,
        )  # fmt: skip

    def history(self, record_id: str, scope: Scope) -> Sequence[Version]:
        """Read every version of a record, oldest first; empty list if this scope has none.

        Args:
            record_id: of a record, live or deleted.
            scope: whose memory.
        """
        self._check_open(scope)
        check_name("record_id", record_id)
        return self._runtime.engines.graph.history(scope, record_id)

    async def ahistory(self, record_id: str, scope: Scope) -> Sequence[Version]:
        """Read every version of a record, as `history`."""
        return await self._run(self.history, record_id, scope)

    def relations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[Relation]:
        """Read relations, oldest first: those around one entity, of some records, or all.

        Args:
            scope: whose memory.
            entity: a name, in any spelling; None for all.
            hops: how many relations away from the entity, 1..3.
            records: instead of an entity's, those that the records with these ids state.
            include_superseded: also what ended, and what a changed record said before.
            as_of: instead, what held at this moment of world time.

        Raises:
            InvalidRecordError: the entity is not a name, an argument is out of its range, or both
                an entity and records are given.
        """
        self._check_open(scope)
        if entity is not None:
            check_name("entity", entity)
        if records is not None:
            check_ids("records", records)
            if entity is not None:
                raise InvalidRecordError(
                    field="entity", value=entity, reason="must not be given beside records"
                )
        check_time("as_of", as_of)
        check_flag("include_superseded", include_superseded)
        if type(hops) is not int or not 1 <= hops <= MAX_HOPS:
            raise InvalidRecordError(
                field="hops", value=hops, reason=f"must be an integer in 1..{MAX_HOPS}"
            )
        return self._runtime.engines.graph.relations(
            scope,
            entity,
            hops=hops,
            records=records,
            include_superseded=include_superseded,
            as_of=as_of,
        )

    async def arelations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[Relation]:
        """Read relations, as `relations`."""
        return await self._run(
            self.relations, scope, entity, hops=hops, records=records,
            include_superseded=include_superseded, as_of=as_of,
        )  # fmt: skip

    def entities(self, scope: Scope) -> Sequence[Entity]:
        """Read the entities that the scope's relations name, by name.

        Args:
            scope: whose memory.
        """
        self._check_open(scope)
        return self._runtime.engines.graph.entities(scope)

    async def aentities(self, scope: Scope) -> Sequence[Entity]:
        """Read the entities, as `entities`."""
        return await self._run(self.entities, scope)

    def namespaces(self, scope: Scope) -> Sequence[Namespace]:
        """List the namespaces of the scope's records, each once, in no order.

        Superseded records count, expired ones do not.

        Args:
            scope: whose memory.
        """
        self._check_open(scope)
        return self._runtime.engines.graph.namespaces(scope)

    async def anamespaces(self, scope: Scope) -> Sequence[Namespace]:
        """List the namespaces, as `namespaces`."""
        return await self._run(self.namespaces, scope)

    def list_namespaces(
        self, prefix: Sequence[str] = (), *, after: Sequence[str] = (), limit: int = 1000
    ) -> Mapping[Namespace, Sequence[Scope]]:
        """List the namespaces of all scopes, each once, as `namespaces`; for operators.

        Args:
            prefix: only this namespace and those below it; empty for all.
            after: the last namespace of the page before; empty for the first page.
            limit: of namespaces, 1..1000.

        Returns:
            The scopes of the records in each namespace. Namespaces are in the order of tuples of
            strings.

        Raises:
            InvalidRecordError: the limit is out of its range, or a namespace is no list of labels.
        """
        self._check_open()
        prefix, after = check_namespace("prefix", prefix), check_namespace("after", after)
        return self._runtime.engines.graph.list_namespaces(prefix, after=after, limit=limit)

    async def alist_namespaces(
        self, prefix: Sequence[str] = (), *, after: Sequence[str] = (), limit: int = 1000
    ) -> Mapping[Namespace, Sequence[Scope]]:
        """List the namespaces of all scopes, as `list_namespaces`."""
        return await self._run(self.list_namespaces, prefix, after=after, limit=limit)

    def list_users(self, namespace: Sequence[str] = ()) -> Sequence[str]:
        """List the ids of the users who have live records in a namespace, in no order.

        For operators.

        Args:
            namespace: or below it; empty for any namespace.
        """
        self._check_open()
        namespace = check_namespace("namespace", namespace)
        return self._runtime.engines.graph.list_users(namespace)

    async def alist_users(self, namespace: Sequence[str] = ()) -> Sequence[str]:
        """List the users of a namespace, as `list_users`."""
        return await self._run(self.list_users, namespace)

    def diagram(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        form: Literal["text", "mermaid"] = "text",
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> str:
        """Write relations as lines of text or as a Mermaid flowchart; empty text for none.

        Args:
            scope: whose memory.
            entity: as of `relations`.
            form: `text`, a line for each relation, or `mermaid`.
            hops: as of `relations`.
            records: as of `relations`.
            include_superseded: as of `relations`; a flowchart draws ended relations dotted.
            as_of: as of `relations`.

        Raises:
            InvalidRecordError: as of `relations`.
        """
        check_choice("form", form, ("text", "mermaid"))
        found = self.relations(
            scope, entity, hops=hops, records=records, include_superseded=include_superseded,
            as_of=as_of,
        )  # fmt: skip
        return as_text(found) if form == "text" else as_mermaid(found)

    async def adiagram(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        form: Literal["text", "mermaid"] = "text",
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> str:
        """Write relations, as `diagram`."""
        return await self._run(
            self.diagram, scope, entity, form=form, hops=hops, records=records,
            include_superseded=include_superseded, as_of=as_of,
        )  # fmt: skip

    # -- operating -----------------------------------------------------------------------------

    def flush(self, timeout: float = 30.0) -> Backlog:
        """Wait until every accepted write is applied.

        Args:
            timeout: seconds to wait at most.

        Returns:
            What is left: both numbers are zero when everything is in every store.
        """
        self._check_open()
        check_seconds("timeout", timeout)
        return self._runtime.worker.flush(timeout)

    async def aflush(self, timeout: float = 30.0) -> Backlog:
        """Wait as `flush`; writes whose event loop is gone are planned on this one."""
        self._check_open()
        check_seconds("timeout", timeout)
        return await self._submission.aflush(timeout)

    def follow(self, write: WriteResult, on_failed: Callable[[Exception], None]) -> None:
        """Have a function called if a pending write fails; does not block.

        Args:
            write: what `add` or another write returned; one that is done is ignored.
            on_failed: called once with the error, on any thread: when the write has become a dead
                letter, or is tried again after it failed several times, as the error says. It must
                return at once.
        """
        self._check_open()
        if not isinstance(write, WriteResult):
            raise InvalidRecordError(
                field="write", value=write, reason="must be the WriteResult of a write"
            )
        check_callable("on_failed", on_failed)
        if write.pending:
            self._runtime.worker.follow(write.operation, on_failed)

    def dead_letters(self, scope: Scope | None = None) -> Sequence[DeadLetter]:
        """Read the accepted writes that cannot be applied, oldest first.

        Args:
            scope: whose; None, for an operator, for everybody's.
        """
        self._check_open(*(() if scope is None else (scope,)))
        return self._runtime.engines.journal.dead(scope)

    async def adead_letters(self, scope: Scope | None = None) -> Sequence[DeadLetter]:
        """Read the accepted writes that cannot be applied, as `dead_letters`."""
        return await self._run(self.dead_letters, scope)

    def retry(self, operations: Collection[str]) -> int:
        """Queue dead letters again; return how many were queued.

        What asks a chat model asks that of this memory, if it has one.

        Args:
            operations: their ids, `DeadLetter.operation`; an unknown one is ignored.
        """
        self._check_open()
        check_ids("operations", operations)
        return self._runtime.worker.retry(operations, self._models)

    async def aretry(self, operations: Collection[str]) -> int:
        """Queue dead letters again, as `retry`."""
        count = await self._run(self.retry, operations)
        self._submission.adopt_orphans()
        return count

    def scope_of(self, record_id: str) -> Scope | None:
        """Return the scope of a record, live or deleted; None if there never was one.

        For programs that have only an id. Do not use it in an agent's tool, where the model could
        name any id: look ids up in the user's scope.

        Args:
            record_id: of one record.
        """
        self._check_open()
        check_name("record_id", record_id)
        return self._runtime.engines.graph.scope_of(record_id)

    async def ascope_of(self, record_id: str) -> Scope | None:
        """Return the scope of a record id, as `scope_of`."""
        return await self._run(self.scope_of, record_id)

    def list_scopes(self) -> Sequence[Scope]:
        """List every scope that has records, live or deleted, in no order; for operators."""
        self._check_open()
        return self._runtime.engines.graph.list_scopes()

    async def alist_scopes(self) -> Sequence[Scope]:
        """List every scope, as `list_scopes`."""
        return await self._run(self.list_scopes)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call that uses this memory on one of its threads, and await it.

        There is no blocking version: call the function directly. The call sees the context
        variables of the task that awaits it.

        Args:
            call: a function; its arguments follow.
        """
        check_callable("call", call)
        context = copy_context()
        return await self._run(lambda: context.run(call, *args, **kwargs))

    def redacted(self, value: T) -> T:
        """Return JSON values with their texts redacted, as they would be stored; keys stay.

        For adapters that keep a value in another form. Without `redact` it is returned unchanged.

        Args:
            value: a text, or a list or dict of JSON values.

        Raises:
            InvalidRecordError: the function that redacts failed.
        """
        self._check_open()
        redacted: T = self._redaction.values(value)
        return redacted

    @property
    def location(self) -> str:
        """The stores, without passwords; equal for all memories that share them."""
        return str(self._runtime.location)

    @property
    def embedder(self) -> Embedder:
        """The model that turns texts into vectors."""
        return self._models.embedder

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints of agent runs, stored next to the memories."""
        self._check_open()
        return self._runtime.engines.checkpoints

    # -- wiring --------------------------------------------------------------------------------

    def _infers(self, infer: bool | Extraction | None) -> bool | Extraction:
        has_chat = self._models.chat is not None
        if isinstance(infer, Extraction):
            if not has_chat and not infer.keep_messages:
                raise InvalidRecordError(
                    field="infer",
                    value=infer,
                    reason="keeps no messages, and there is no chat model to extract facts from",
                    hint="Open the memory with Memory.open(chat=...), or keep the messages.",
                )
            return infer if has_chat else False
        if infer is not None and type(infer) is not bool:
            raise InvalidRecordError(
                field="infer", value=infer, reason="must be True, False, None or an Extraction"
            )
        return has_chat if infer is None else infer

    def _search(self, request: SearchRequest) -> Sequence[Match]:
        embedder = self._models.embedder
        if is_async(embedder.embed):
            raise LoopRequiredError(call="search", model=embedder.id)
        limit = self._settings.max_embed_chars
        [embedding] = embed(embedder, [request.text], purpose="query", limit=limit)
        calibration = self._runtime.calibration
        if probes := calibration.probes(request.text):
            try:
                measured = embed(embedder, probes, purpose="document", limit=limit)
                calibration.learn(request.text, [one.vector for one in measured])
            except ModelFailedError as error:
                calibration.miss(error)
        return self._find(request, embedding)

    def _find(self, request: SearchRequest, embedding: TokenEmbedding) -> Sequence[Match]:
        runtime = self._runtime
        engines = runtime.engines
        return search(
            request,
            embedding,
            engines.index,
            engines.graph,
            runtime.access_log,
            runtime.calibration,
            self._settings,
            beside=runtime.readers if engines.shared else None,
        )

    def _write(self, make: Callable[[], Write], *, wait: Wait = True) -> WriteResult:
        result: WriteResult
        [result] = self._submission.submit(lambda: [make()], wait=wait)
        return result

    async def _awrite(self, make: Callable[[], Write], *, wait: Wait = True) -> WriteResult:
        result: WriteResult
        [result] = await self._submission.asubmit(lambda: [make()], wait=wait)
        return result

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run storage code on a thread of the runtime and await it."""
        self._check_open()
        return await self._runtime.run(call, *args, **kwargs)

    def _check_open(self, *scopes: Scope) -> None:
        if self._closed:
            raise MemoryClosedError
        if os.getpid() != self._runtime.pid:
            self._reopen()
        for scope in scopes:
            check_scope(scope)

    def _connect(self, runtime: Runtime) -> None:
        self._operations = Operations(runtime.engines, self._settings, self._redaction)
        self._submission = Submission(runtime.direct, runtime.worker, self._models, runtime.writers)
        self._runtime = runtime

    def _reopen(self) -> None:
        """Open engines of its own in a forked child: it has none of its parent's threads."""
        with _reopening:
            parent = self._runtime
            if os.getpid() != parent.pid:
                self._connect(Runtime.open(parent.location, self._settings, self._models))

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise TypeError("A Memory cannot be pickled or copied. Open it again in each process.")

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return self."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        await self.aclose()
