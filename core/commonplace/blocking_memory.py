"""The blocking methods of `Memory`, the object a user opens and talks to.

`memory.py` adds their async versions; it is generated from this module.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import EllipsisType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from .blocking_session import MemoryParts
from .concurrency import run_on, start_call
from .errors import InvalidRecordError, MemoryClosedError
from .events import OnEvent, report_calls, unreported
from .filters import parse_filter
from .ingest.changes import Write
from .ingest.operations import Operations
from .ingest.planning import Models
from .ingest.redaction import Redaction, check_redact
from .ingest.submission import Submission
from .memory_admin import MemoryAdmin
from .ports.engines import GraphStore, Transactional, VectorIndex
from .ports.models import ChatModel, Embedder, check_models
from .retrieval.diagram import as_mermaid, as_text
from .retrieval.search import Search, SearchRequest, search_request
from .runtime import Runtime
from .session import Session
from .settings import Location, Settings
from .telemetry import traced_methods
from .types import (
    Backlog,
    Command,
    Content,
    Entity,
    EraseReceipt,
    Excerpt,
    Extraction,
    Kind,
    Match,
    Origin,
    Page,
    Ranking,
    Record,
    Relation,
    Scope,
    SessionPage,
    Version,
    Wait,
    WriteResult,
    check_kinds,
    check_scope,
)
from .validation import (
    check_choice,
    check_flag,
    check_function,
    check_ids,
    check_integer,
    check_name,
    check_seconds,
    check_time,
    hinting_methods,
)

P = ParamSpec("P")
T = TypeVar("T")
MAX_HOPS = 3
_reopening = threading.Lock()


async def _open_on_thread(call: Callable[[], T]) -> T:
    """Open a memory on a thread; close it once it is open if its caller was cancelled."""
    opening = start_call("open", call)
    try:
        return await asyncio.shield(asyncio.wrap_future(opening))
    except asyncio.CancelledError:
        opening.add_done_callback(_close_opened)
        raise


def _close_opened(opening: "Future[Any]") -> None:
    if not opening.exception():
        opening.result().close()


class Opening(Coroutine[Any, Any, T]):
    """The opening of a memory: await it, or enter it with `async with`, which closes the memory."""

    def __init__(self, opening: Coroutine[Any, Any, T]) -> None:
        self._opening = opening

    def __await__(self) -> Generator[Any, Any, T]:
        """Open the memory."""
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        """Run the opening on, as a task does."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error where the opening waits, as a task does."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """Give up an opening that was not awaited."""
        self._opening.close()

    async def __aenter__(self) -> T:
        self._memory = await self._opening
        return self._memory

    async def __aexit__(self, *error: Any) -> None:
        memory: Any = self._memory
        await memory.__aexit__(*error)


@traced_methods
@hinting_methods
class BlockingMemory:
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
    _location: str
    _models: Models
    _settings: Settings
    _redaction: Redaction | None
    _operations: Operations
    _submission: Submission
    _search: Search
    _parts: MemoryParts
    _admin: MemoryAdmin
    _closed: bool
    _is_reported: bool

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
        on_event: OnEvent | None = None,
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
                names, relations and the texts in metadata, but no ids, keys, namespaces or
                checkpoints. It must be quick and may be called on any thread. If it fails, the call
                does.
            on_event: a function that is called with a `MemoryEvent` after each call that reads or
                writes memories. It must be quick and may be called on any thread. What it raises is
                logged once, and the call does not fail.

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
        if on_event is not None:
            check_function("on_event", on_event)
        models = Models(embedder=embedder, chat=chat)
        self = cls.__new__(cls)
        self._models = models
        self._settings = settings
        self._redaction = None if redact is None else Redaction(redact)
        self._connect(Runtime.open(location, settings, models))
        self._closed = False
        self._is_reported = on_event is not None
        if on_event is not None:
            report_calls(self, on_event)
        return self

    @classmethod
    def aopen(
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
        on_event: OnEvent | None = None,
    ) -> "Opening[Self]":
        """Open a memory as `open`, on a thread: the arguments and errors are the same.

        Await it, or use it as `async with Memory.aopen(...) as memory:`.
        """
        return Opening(_open_on_thread(partial(
            cls.open, path, vectors=vectors, graph=graph, journal=journal, embedder=embedder,
            chat=chat, settings=settings, redact=redact, on_event=on_event,
        )))  # fmt: skip

    @classmethod
    def from_env(cls, *, on_event: OnEvent | None = None) -> Self:
        """Open the memory that `COMMONPLACE_PATH`, `COMMONPLACE_VECTORS` and the others name.

        `Settings` lists them. `on_event` and the errors are those of `open`.
        """
        return cls.open(settings=Settings.from_env(), on_event=on_event)

    @classmethod
    def afrom_env(cls, *, on_event: OnEvent | None = None) -> "Opening[Self]":
        """Open a memory as `from_env`, on a thread; await it, or use it with `async with`."""
        return Opening(_open_on_thread(partial(cls.from_env, on_event=on_event)))

    def close(self, timeout: float = 10.0) -> None:
        """Wait for accepted writes to be applied, then close; closing again does nothing.

        Args:
            timeout: seconds to wait for writes. What is not finished by then stays in the journal
                and goes on at the next open.
        """
        check_seconds("timeout", timeout)
        if not self._closed:
            self._admin._prepare_to_close()  # noqa: SLF001 -- a part of this
            self._closed = True
            self._runtime.release(timeout)

    async def aclose(self, timeout: float = 10.0) -> None:
        """Wait for accepted writes to be applied, then close, as `close`."""
        if self._closed:
            return
        try:
            await self._submission.aflush(timeout)
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
            key: idempotency key of a single text; a second write with it counts as a repetition.
            upsert: let a text or `Fact` with a key replace that key's record, whose former text
                stays in its history.
            origin: who said it; text from tools and documents is trusted less.
            identity: metadata keys that take part in recognising a repetition: with other values
                under them, the same fact, message or key is a separate record, which neither
                counts as a repetition nor is replaced. A missing key is a value of its own. By
                default metadata are ignored, and a repeated fact takes the newest.
            wait: True returns when every store has it; False as soon as it cannot be lost; a number
                waits at most that many seconds after it was accepted.

        Returns:
            One change per record in the order given; extracted facts follow. A fact that is known
            and still true, with the same text ignoring leading and trailing spaces, is a
            repetition: new metadata, expiry, importance, pin or relations are merged into the
            record and the event is `UPDATE`, else it is `NONE`; `Record.times_told` counts both. A
            known message is `NONE` and is not counted. A write that was not waited for, or not
            long enough, has no changes and is `pending`.

        Raises:
            InvalidRecordError: something cannot be stored; nothing was accepted.
            IdempotencyConflictError: the key was used for another text.
            BackpressureError: too many writes wait; nothing was accepted.
            LoopRequiredError: a model is asynchronous and `wait` is true.
            ModelFailedError: the write was accepted, failed several times and is being retried.
            ModelRefusedError: the write was accepted and is a dead letter; retrying cannot help.
            StoreUnavailableError: nothing was accepted, unless the message says that it was.
            StoreRefusedError: the write was accepted; the next write, `flush` or open retries it.
        """
        self._check_open(scope)
        return self._write(
            self._operations.add, content, scope, infer=infer, kind=kind, metadata=metadata,
            key=key, upsert=upsert, origin=origin, identity=identity, wait=wait,
        )  # fmt: skip

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
        """Change a record; what is not given stays, and its history keeps the former version.

        Args:
            record_id: of a live record.
            text: the new text; None keeps the present one.
            scope: whose memory.
            metadata: the new metadata; None keeps the present ones.
            merge: merge `metadata` into the present ones, key by key, instead of replacing them.
            relations: stated by the text; the record's earlier ones end. By default they are kept
                if the text stays the same, and end if it changes.
            importance: 0..1; more important records decay more slowly.
            pinned: does not decay and is never pruned.
            expires_at: hidden from reads from then on; None for never; `...`, the default, keeps
                the present value. Relations end with it only when they are given too.
            wait: see `add`.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
            InvalidRecordError: something cannot be stored.
        """
        self._check_open(scope)
        return self._write(
            self._operations.update, record_id, text, scope, metadata=metadata, merge=merge,
            relations=relations, importance=importance, pinned=pinned, expires_at=expires_at,
            wait=wait,
        )  # fmt: skip

    def delete(self, record_id: str, scope: Scope, *, wait: Wait = True) -> WriteResult:
        """Delete a record; its history stays until its scope is forgotten.

        `restore` undoes it.

        Args:
            record_id: of a live record.
            scope: whose memory.
            wait: see `add`.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        self._check_open(scope)
        return self._write(self._operations.delete, record_id, scope, wait=wait)

    def restore(self, record_id: str, scope: Scope, *, wait: Wait = True) -> WriteResult:
        """Bring back a deleted record, as it was last live; deleting it again undoes that.

        For example:

            memory.delete(record_id, scope)
            memory.restore(record_id, scope)

        Its history goes on: the event of the new version is `RESTORE`. All that the record had
        comes back, its times and its place in its session included, with the relations that it
        stated; a newer value of a single-valued relation supersedes it as any older one. What does
        not: relations that an update had dropped before, when it was recalled (which decay reads),
        and an expiry that is over stays over.

        Args:
            record_id: of a deleted record, also one that was pruned.
            scope: whose memory.
            wait: see `add`.

        Raises:
            InvalidRecordError: the record is not deleted. `update` with a text of its `history`
                undoes an update.
            RecordNotFoundError: this scope never had a record with this id, or it was forgotten.
        """
        self._check_open(scope)
        return self._write(self._operations.restore, record_id, scope, wait=wait)

    def feedback(self, record_id: str, scope: Scope, *, helped: bool) -> WriteResult:
        """Record whether a record helped, such as a procedure that was followed.

        Args:
            record_id: of a live record.
            scope: whose memory.
            helped: True adds 1 to `Record.votes`, False subtracts 1.

        Raises:
            RecordNotFoundError: no live record has this id in this scope.
        """
        self._check_open(scope)
        check_flag("helped", helped)
        votes = 1 if helped else -1
        return self._write(self._operations.update, record_id, None, scope, votes=votes, wait=True)

    def batch(self, commands: Sequence[Command], *, wait: Wait = True) -> Sequence[WriteResult]:
        """Make several writes, in any scopes, accepted together: all of them or none.

        Args:
            commands: each an `Upsert`, a `Delete` or a `Revise`; an empty list does nothing.
            wait: see `add`.

        Returns:
            One result each, in their order; the changes are see `add`.

        Raises:
            InvalidRecordError, IdempotencyConflictError, BackpressureError: nothing was accepted.
            LoopRequiredError, ModelFailedError, StoreUnavailableError: see `add`.
        """
        self._check_open()
        return self._submission.submit(partial(self._operations.commands, commands), wait=wait)

    def forget(self, scope: Scope) -> EraseReceipt:
        """Erase all that the scope covers from every store, pending writes and history included.

        Writes accepted before do not come back; writes accepted afterwards are kept. For example:

            receipt = memory.forget(Scope(user_id="bob"))
            assert receipt.complete

        Args:
            scope: whose memory; a user's scope covers all agents and sessions of that user.

        Returns:
            What was removed, store by store, and what a verifying read still found there.
        """
        self._check_open(scope)
        receipt: Any = self._write(self._operations.forget, scope, wait=True)
        erased: EraseReceipt = receipt
        return erased

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
        asked_at: datetime | None = None,
        decay: bool | None = None,
        ranking: Ranking = "calibrated",
    ) -> Sequence[Match]:
        """Find the records that answer a text, best first; ties by id.

        For example:

            for match in memory.search("Where does Bob live?", Scope(user_id="bob"), top_k=3):
                print(f"{match.score:.2f} {match.record.text}")

        Args:
            text: a question or a topic; not empty, at most 8 KiB.
            scope: whose memory; the records of several scopes are ranked together.
            top_k: maximum number of matches, 1..10,000; applied after the threshold. Equal turns of
                one speaker are one match, the newest or the one of the day that is asked for.
            threshold: leave out matches with a lower score, 0..1; None for no limit.
            where: a filter (`commonplace.filters`), AND-ed with the scope.
            predicate: asked about each `Record` that the filter lets through; False leaves it
                out. It may be called on any thread and must not change the record.
            kinds: only these; empty for all.
            include_superseded: also records that are no longer true.
            include_expired: also records that have expired.
            as_of: instead, what was true at this time, which needs a time zone.
            asked_at: the moment of the question, for replays, which needs a time zone; it is what
                "yesterday" is told from. Now if None.
            decay: multiply the odds of scores by 0.3..1.5, more for what is fresh or was recalled
                often; after the threshold. `Settings.decay` when None.
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
        text = text if self._redaction is None else self._redaction.text(text)
        return self._search.run(search_request(
            text, scope, top_k=top_k, threshold=threshold, where=where,
            predicate=predicate, kinds=kinds, include_superseded=include_superseded,
            include_expired=include_expired, as_of=as_of, asked_at=asked_at, decay=decay,
            ranking=ranking,
        ))  # fmt: skip

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

    def get_many(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Record]:
        """Read live records in the order of the ids, without those that are not in this scope.

        Args:
            record_ids: any number of ids.
            scope: whose memory.
        """
        self._check_open(scope)
        check_ids("record_ids", record_ids)
        return self._runtime.engines.graph.get(scope, record_ids) if record_ids else []

    def get_excerpts(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Excerpt]:
        """Read of live records what a store of items needs, otherwise as `get_many`."""
        self._check_open(scope)
        check_ids("record_ids", record_ids)
        return self._runtime.engines.graph.excerpts(scope, record_ids) if record_ids else []

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
            predicate: see `search`.
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

    def session(self, scope: Scope) -> Session:
        """Make the object for one conversation: its turns, state and summary; reads nothing.

        Args:
            scope: with a `session_id`.

        Raises:
            InvalidScopeError: the scope has no `session_id`.
        """
        self._check_open(scope)
        return Session(scope, self._open_parts)

    def sessions(self, scope: Scope, *, limit: int = 20, cursor: str | None = None) -> SessionPage:
        """Read the conversations of which turns were stored, the one of the last turn first.

        Args:
            scope: whose memory.
            limit: sessions a page, 1..1000.
            cursor: `SessionPage.cursor` of the page before; None for the first.

        Raises:
            InvalidRecordError: the limit is out of its range, or `sessions` did not return the
                cursor.
        """
        self._check_open(scope)
        graph = self._runtime.engines.graph
        page = graph.sessions(scope, limit=limit, cursor=cursor)
        ids = [one.scope.summary_id for one in page]
        found = {one.scope: one for one in graph.get(scope, ids)} if ids else {}
        sessions = tuple(replace(one, summary=found.get(one.scope)) for one in page)
        return replace(page, sessions=sessions)

    def history(self, record_id: str, scope: Scope) -> Sequence[Version]:
        """Read every version of a record, oldest first; empty list if this scope has none.

        Args:
            record_id: of a record, live or deleted.
            scope: whose memory.
        """
        self._check_open(scope)
        check_name("record_id", record_id)
        return self._runtime.engines.graph.history(scope, record_id)

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
            include_superseded: also relations that ended, and those of former versions of a record.
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
        check_integer("hops", hops, 1, MAX_HOPS)
        return self._runtime.engines.graph.relations(
            scope,
            entity,
            hops=hops,
            records=records,
            include_superseded=include_superseded,
            as_of=as_of,
        )

    def entities(self, scope: Scope) -> Sequence[Entity]:
        """Read the entities that the scope's relations name, by name.

        Args:
            scope: whose memory.
        """
        self._check_open(scope)
        return self._runtime.engines.graph.entities(scope)

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
            entity: see `relations`.
            form: `text`, a line for each relation, or `mermaid`.
            hops: see `relations`.
            records: see `relations`.
            include_superseded: see `relations`; a flowchart draws ended relations dotted.
            as_of: see `relations`.

        Raises:
            InvalidRecordError: see `relations`.
        """
        check_choice("form", form, ("text", "mermaid"))
        found = self.relations(
            scope, entity, hops=hops, records=records, include_superseded=include_superseded,
            as_of=as_of,
        )  # fmt: skip
        return as_text(found) if form == "text" else as_mermaid(found)

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

    @property
    def location(self) -> str:
        """The stores, without passwords; equal for all memories that share them."""
        return self._location

    @property
    def admin(self) -> MemoryAdmin:
        """What operators and adapters need: dead letters, scopes, namespaces, checkpoints."""
        self._check_open()
        return self._admin

    @property
    def embedder(self) -> Embedder:
        """The model that turns texts into vectors."""
        return self._models.embedder

    # -- wiring --------------------------------------------------------------------------------

    def _write(
        self, make: Callable[..., Write], *args: Any, wait: Wait, **options: Any
    ) -> WriteResult:
        result: WriteResult
        [result] = self._submission.submit(lambda: [make(*args, **options)], wait=wait)
        return result

    async def _awrite(
        self, make: Callable[..., Write], *args: Any, wait: Wait, **options: Any
    ) -> WriteResult:
        result: WriteResult
        [result] = await self._submission.asubmit(lambda: [make(*args, **options)], wait=wait)
        return result

    async def _arun_search(self, request: SearchRequest) -> Sequence[Match]:
        self._submission.adopt_orphans()
        if self._search.embeds_on_loop:
            return await self._search.arun(request, self._run)
        return await run_on(self._runtime.searchers, self._search.run, request)

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run storage code on a thread of the runtime and await it."""
        self._check_open()
        if self._is_reported:
            call = unreported(call)
        return await run_on(self._runtime.readers, call, *args, **kwargs)

    def _check_open(self, *scopes: Scope) -> None:
        if self._closed:
            raise MemoryClosedError
        if os.getpid() != self._runtime.pid:
            self._reopen()
        for scope in scopes:
            check_scope(scope)

    def _open_parts(self, *scopes: Scope) -> MemoryParts:
        self._check_open(*scopes)
        return self._parts

    def _connect(self, runtime: Runtime) -> None:
        engines, settings, models = runtime.engines, self._settings, self._models
        has_chat = models.chat is not None
        self._operations = Operations(engines, settings, self._redaction, has_chat=has_chat)
        self._submission = Submission(runtime.worker, models, runtime.writers)
        beside = None if isinstance(engines, Transactional) else runtime.readers
        self._search = Search(
            engines, models.embedder, settings, runtime.access_log, runtime.calibration, beside
        )
        self._parts = MemoryParts(
            runtime=runtime, settings=settings, models=models, operations=self._operations,
            submission=self._submission, redaction=self._redaction,
        )  # fmt: skip
        self._admin = MemoryAdmin(self._open_parts)
        self._runtime, self._location = runtime, str(runtime.location)

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

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return self."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close."""
        await self.aclose()
