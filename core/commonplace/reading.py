"""The reading half of `Memory`: search, look up, and the relationship graph."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, ParamSpec, TypeVar, Unpack

from .errors import InvalidRecordError, LoopRequiredError, MemoryClosedError
from .filters import parse_filter
from .ingest.codec import copied
from .ingest.embedding import Vectors, aembed, embed, is_async
from .ingest.operations import Question, check_kinds, check_scope, question
from .ingest.planning import Models
from .model import Entity, Kind, Match, Page, Record, Relation, Scope, Version, now
from .options import ListOptions, RelationOptions, SearchOptions
from .ports.checkpoints import Checkpoints
from .ports.models import Embedder
from .ports.stores import Query
from .retrieval.decay import Limits, excess, faded
from .retrieval.diagram import as_mermaid, as_text
from .retrieval.lexical import names_in, query_terms
from .retrieval.ranking import neighbour_turns, rank
from .runtime import Store
from .settings import Settings
from .validation import check_choice, check_ids, check_name, check_time

P = ParamSpec("P")
T = TypeVar("T")
MAX_HOPS = 3
_CANDIDATES = 50
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # nothing has expired by then


class Reader:
    """Reads an open store; every method takes whose memory it is about."""

    def __init__(self, store: Store, models: Models, settings: Settings) -> None:
        self._store = store
        self._models = models
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def place(self) -> str:
        """Name the stores, without passwords; equal for all memories that share them."""
        return str(self._store.place)

    def search(self, text: str, scope: Scope, **options: Unpack[SearchOptions]) -> Sequence[Match]:
        """Find the records that answer a text, best first; ties by id.

        Returns:
            An empty list if nothing matches. `Match.parts` says what the score is made of.

        Raises:
            InvalidRecordError: an option is out of its range, or the text is empty.
            InvalidFilterError: the filter is not in the language.
            LoopRequiredError: the embedder is asynchronous.
        """
        self._check_open()
        asked = question(text, scope, **options)
        embedder = self._models.embedder
        if is_async(embedder.embed):
            raise LoopRequiredError(call="search", model=embedder.id)
        return self._find(asked, embed(embedder, [text], **self._asking))

    async def asearch(
        self, text: str, scope: Scope, **options: Unpack[SearchOptions]
    ) -> Sequence[Match]:
        """Find the records that answer a text, as `search`."""
        self._adopt()
        if not is_async(self._models.embedder.embed):
            return await self._run(self.search, text, scope, **options)
        self._check_open()
        asked = question(text, scope, **options)
        vector = await aembed(self._models.embedder, [text], **self._asking)
        return await self._run(self._find, asked, vector)

    def get(self, record_id: str, scope: Scope, *, hidden: bool = False) -> Record | None:
        """Read a live record, superseded or not; None if this scope has none with this id.

        Args:
            hidden: also one that has expired.
        """
        self._check_open(scope)
        check_name("record_id", record_id)
        more: Any = {"expired": True} if hidden else {}
        return next(iter(self._store.engines.graph.get(scope, [record_id], **more)), None)

    def get_all(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Record]:
        """Read live records in the order of the ids, leaving out those that this scope lacks."""
        self._check_open(scope)
        check_ids("record_ids", record_ids)
        return self._store.engines.graph.get(scope, record_ids) if record_ids else []

    async def aget_all(self, record_ids: Sequence[str], scope: Scope) -> Sequence[Record]:
        """Read live records, as `get_all`."""
        return await self._run(self.get_all, record_ids, scope)

    def owner(self, record_id: str) -> Scope | None:
        """Tell whose record an id is, live or deleted; None if there never was one.

        For programs that were handed nothing but an id. Never for an agent's tool: what it names
        must be looked up in the scope of whom it serves.
        """
        self._check_open()
        check_name("record_id", record_id)
        return self._store.engines.graph.owner(record_id)

    async def aowner(self, record_id: str) -> Scope | None:
        """Tell whose record an id is, as `owner`."""
        return await self._run(self.owner, record_id)

    def scopes(self) -> Sequence[Scope]:
        """List every scope that has records, live or deleted, in no order; for an operator."""
        self._check_open()
        return self._store.engines.graph.scopes()

    async def ascopes(self) -> Sequence[Scope]:
        """List every scope, as `scopes`."""
        return await self._run(self.scopes)

    async def aget(self, record_id: str, scope: Scope, *, hidden: bool = False) -> Record | None:
        """Read a live record, as `get`."""
        return await self._run(self.get, record_id, scope, hidden=hidden)

    def list(self, scope: Scope, **options: Unpack[ListOptions]) -> Page:
        """Read live records, newest first.

        Raises:
            InvalidRecordError: an option is out of its range, or the cursor is none of ours.
            InvalidFilterError: the filter is not in the language.
        """
        self._check_open(scope)
        check_time("as_of", options.get("as_of"))
        check_kinds(options.get("kinds", ()))
        given: Any = {"latest_only": True, **options}
        given["where"] = parse_filter(given.pop("where", None), given.pop("judge", None))
        if given.pop("hidden", False):
            given |= {"latest_only": False, "expired": True}
        return self._store.engines.graph.page(scope, **given)

    async def alist(self, scope: Scope, **options: Unpack[ListOptions]) -> Page:
        """Read live records, as `list`."""
        return await self._run(self.list, scope, **options)

    def history(self, record_id: str, scope: Scope) -> Sequence[Version]:
        """Read every version of a record, oldest first; empty list if this scope has none."""
        self._check_open(scope)
        check_name("record_id", record_id)
        return self._store.engines.graph.history(scope, record_id)

    async def ahistory(self, record_id: str, scope: Scope) -> Sequence[Version]:
        """Read every version of a record, as `history`."""
        return await self._run(self.history, record_id, scope)

    def relations(
        self, scope: Scope, entity: str | None = None, **options: Unpack[RelationOptions]
    ) -> Sequence[Relation]:
        """Read relations, oldest first: those around one entity, of some records, or all.

        Raises:
            InvalidRecordError: the entity is no name, or an option is out of its range; or both an
                entity and records are given.
        """
        self._check_open(scope)
        if entity is not None:
            check_name("entity", entity)
        if (records := options.get("records")) is not None:
            check_ids("records", records)
            if entity is not None:
                raise InvalidRecordError(
                    field="entity", value=entity, reason="is given beside records"
                )
        check_time("as_of", options.get("as_of"))
        hops = options.get("hops", 1)
        if type(hops) is not int or not 1 <= hops <= MAX_HOPS:
            raise InvalidRecordError(field="hops", value=hops, reason=f"is not in 1..{MAX_HOPS}")
        return self._store.engines.graph.relations(scope, entity, **options)

    async def arelations(
        self, scope: Scope, entity: str | None = None, **options: Unpack[RelationOptions]
    ) -> Sequence[Relation]:
        """Read relations, as `relations`."""
        return await self._run(self.relations, scope, entity, **options)

    def entities(self, scope: Scope) -> Sequence[Entity]:
        """Read the entities that the scope's relations name, by name."""
        self._check_open(scope)
        return self._store.engines.graph.entities(scope)

    async def aentities(self, scope: Scope) -> Sequence[Entity]:
        """Read the entities, as `entities`."""
        return await self._run(self.entities, scope)

    def draw(
        self,
        scope: Scope,
        entity: str | None = None,
        form: Literal["text", "mermaid"] = "text",
        **options: Unpack[RelationOptions],
    ) -> str:
        """Write the relations that `relations` reads, as lines of text or a Mermaid flowchart."""
        check_choice("form", form, ("text", "mermaid"))
        found = self.relations(scope, entity, **options)
        return as_text(found) if form == "text" else as_mermaid(found)

    async def adraw(
        self,
        scope: Scope,
        entity: str | None = None,
        form: Literal["text", "mermaid"] = "text",
        **options: Unpack[RelationOptions],
    ) -> str:
        """Write the relations, as `draw`."""
        return await self._run(self.draw, scope, entity, form, **options)

    @property
    def embedder(self) -> Embedder:
        """The model that turns texts into vectors."""
        return self._models.embedder

    @property
    def checkpoints(self) -> Checkpoints:
        """The states of runs, which frameworks keep beside what is remembered."""
        self._check_open()
        return self._store.engines.checkpoints

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await a call that uses this memory and would block the loop, on a thread of ours.

        The call sees the context variables of whoever awaits it.
        """
        context = copy_context()
        return await self._run(lambda: context.run(call, *args, **kwargs))

    # -- wiring --------------------------------------------------------------------------------

    @property
    def _asking(self) -> Any:
        return {"purpose": "query", "limit": self._settings.max_embed_chars}

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run storage code on a thread of the store and await it."""
        self._check_open()
        return await self._store.run(call, *args, **kwargs)

    def _check_open(self, scope: Scope | None = None) -> None:
        if self._closed or os.getpid() != self._store.pid:
            raise MemoryClosedError
        if scope is not None:
            check_scope(scope)

    def _adopt(self) -> None:
        """Let the running loop plan what dead loops left behind."""
        if self._store.writer.loops.has_orphans:
            self._spawn(self._store.writer.loops.plan_orphans(self._store.run))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _find(self, asked: Question, vector: Vectors) -> Sequence[Match]:
        index, graph = self._store.engines.index, self._store.engines.graph
        at = now() if not asked.hidden else _EARLIEST
        probe = Query(
            scope=asked.scope,
            vector=vector[0],
            terms=query_terms(asked.text),
            at=at,
            where=asked.where,
            kinds=asked.kinds,
            latest_only=asked.latest_only,
            as_of=asked.as_of,
        )
        decays = self._settings.decay if asked.decay is None else asked.decay
        hits = index.search(probe, max((3 if decays else 2) * asked.top_k, _CANDIDATES))
        names = names_in(asked.text)
        reached = graph.expand(asked.scope, names, asked.as_of or at) if names else []
        turns = neighbour_turns(hits)
        held = {hit.record.id for hit in hits}
        others = [one.id for one in reached if one.id not in held]
        more = index.score(probe, turns, others) if turns or others else []
        limit = max(3 * asked.top_k, _CANDIDATES) if decays else asked.top_k
        matches = rank(asked.text, hits, more, reached, now=at, limit=limit)
        matches = [one for one in matches if one.score >= asked.threshold]
        if decays:
            recalls = self._store.recalls.of(asked.scope, [one.record.id for one in matches])
            matches = faded(matches, recalls, now(), self._settings.half_life)[: asked.top_k]
            self._store.recalls.note(asked.scope, [one.record.id for one in matches], now())
        return [_own(one) for one in matches]

    def _excess(self, scope: Scope, limits: Limits, kinds: Sequence[Kind]) -> Sequence[Record]:
        """Read the records beyond the limits, weakest first."""
        self._check_open(scope)
        records: list[Record] = []
        recalls: dict[str, list[datetime]] = {}
        cursor: str | None = None
        while True:
            page = self._store.engines.graph.page(
                scope, kinds=kinds, limit=1000, cursor=cursor, expired=True
            )
            records += page.records
            recalls |= self._store.recalls.of(scope, [one.id for one in page.records])
            cursor = page.cursor
            if cursor is None:
                return excess(records, recalls, limits, now(), self._settings.half_life)


def _own(match: Match) -> Match:
    """Give the caller metadata that he may change without changing what others are given."""
    if not match.record.metadata:
        return match
    metadata = copied(match.record.metadata)
    return replace(match, record=replace(match.record, metadata=metadata))
