"""Planning: what was accepted becomes changes with vectors; models are asked once.

What asks a chat model is a plan, which a thread runs with synchronous models and an event loop with
asynchronous ones. Work that a closed loop left behind goes to the next one.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ..concurrency import KeyedExecutor
from ..errors import CommonplaceError, StoreRefusedError, StoreUnavailableError
from ..filters import METADATA, Filter, Group, Predicate, Where
from ..model_calls import (
    RunInThread,
    acomplete,
    aembed_texts,
    complete,
    embed_texts,
    embedded_passages,
    is_async,
    join_passages,
    model_name,
)
from ..ports.models import ChatModel, Embedder
from ..ports.stores import (
    AskChat,
    AskKnown,
    Engines,
    Hit,
    KeepPlan,
    KnownFacts,
    Operation,
    Put,
    Query,
    Remove,
    Terms,
    identity_of,
)
from ..sans_io import Plan, arun_plan, run_plan
from ..settings import Settings
from ..types import FACT_KINDS, Extraction, Fact, Kind, Record, Scope, TokenEmbedding, now
from .changes import (
    DeleteBody,
    IsSingle,
    Write,
    WriteBody,
    WritePlan,
    decode_delete,
    decode_plan,
    decode_write,
    encode_plan,
    ending,
    fact_put,
    has_messages,
    speaker_origin,
    told_again,
)
from .extraction import (
    REPEATED,
    ExtractedFact,
    comparable,
    extract,
    lookup_text,
    told_at,
)

KeepPlanOf = Callable[[Operation, bytes], None]
"""Stores the plan of an operation in the journal."""
PlannedChange = tuple[Put | Remove, TokenEmbedding | None]
"""A change and the vectors of its text, which are None where the index has them already."""

MAX_KNOWN = 16
_CANDIDATES = 50
_CONDITIONS = 8
_log = logging.getLogger("commonplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """All that an operation changes.

    Attributes:
        skipped, failure: as in a `WritePlan`.
    """

    changes: Sequence[PlannedChange]
    skipped: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAlike:
    """Request for the known facts that say what extracted ones say, as `comparable` compares.

    The reply is a record for each, or None.
    """

    facts: tuple[Fact, ...]
    within: AskKnown


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that plan an operation: those of the memory that accepted it."""

    embedder: Embedder
    chat: ChatModel | None = None

    @property
    def embeds_on_loop(self) -> bool:
        """The embedder is asynchronous."""
        return is_async(self.embedder.embed)

    def need_loop(self, op: Operation) -> bool:
        """Tell whether planning this operation awaits an asynchronous model."""
        if op.kind in ("delete", "forget"):
            return False
        if self.embeds_on_loop:
            return True
        return self.chat is not None and is_async(self.chat.complete) and self.extracts(op)

    def extracts(self, op: Operation) -> bool:
        """Tell whether planning this operation asks the chat model."""
        if op.kind not in ("add", "extract") or op.plan is not None or self.chat is None:
            return False
        return has_messages(op)

    def need_loop_for(self, write: Write) -> bool:
        """Tell the same of a write that is not encoded yet."""
        if not isinstance(write.body, WriteBody):
            return False
        is_chat_async = self.chat is not None and is_async(self.chat.complete)
        return self.embeds_on_loop or (is_chat_async and bool(write.body.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What performs the requests of plans, beside the models of each operation.

    Attributes:
        measure: is given an embedder, a number of texts and the seconds that they took.
    """

    settings: Settings
    keep: KeepPlanOf
    known: "KnownFactsLookup"
    measure: Callable[[Embedder, int, float], None]


def plan_batch(
    work: Sequence[tuple[Operation, Models]], context: PlanContext
) -> Iterator[tuple[Operation, PlannedChanges | CommonplaceError]]:
    """Plan operations with synchronous models, embedding all texts in as few calls as possible.

    Yields:
        Each operation once, with its changes or with the error that stopped it, in no order.

    Raises:
        StoreRefusedError: a store needs an operator; nothing is to be tried again by itself.
    """
    groups: dict[int, list[tuple[Operation, WritePlan]]] = {}
    embedders: dict[int, Embedder] = {}
    for op, models in work:
        try:
            if op.kind == "delete":
                yield op, plan_deletion(op.scope, decode_delete(op))
                continue
            plan = _read_plan(op, models, context)
        except StoreRefusedError:
            raise
        except CommonplaceError as error:
            yield op, error
            continue
        groups.setdefault(id(models.embedder), []).append((op, plan))
        embedders[id(models.embedder)] = models.embedder
    for which, group in groups.items():
        yield from _embed_group(embedders[which], group, context)


async def plan_async(
    op: Operation, models: Models, context: PlanContext, run: RunInThread
) -> PlannedChanges:
    """Plan an operation, awaiting its asynchronous models on the running loop."""
    settings = context.settings

    async def perform(ask: AskChat | AskKnown | AskAlike | KeepPlan) -> Any:
        if isinstance(ask, AskChat):
            return await acomplete(models.chat, ask, settings.model_timeout, run)
        if isinstance(ask, AskKnown) and models.chat and models.embeds_on_loop:
            query = await aembed_texts(models.embedder, [ask.text], settings, run, purpose="query")
            return await run(context.known.find, ask, query[0].vector)
        return await run(_perform, op, ask, models, context)

    if models.extracts(op):
        body = await run(decode_write, op)  # to read many messages takes time
        plan = await arun_plan(_extraction_plan(op, body, models, settings), perform)
    else:
        plan = await run(_read_plan, op, models, context)
    limit = settings.max_embed_chars
    texts = texts_to_embed(plan.puts, limit)
    vectors = await aembed_texts(models.embedder, texts, settings, run)
    return with_vectors(plan, iter(vectors), limit)


def _read_plan(op: Operation, models: Models, context: PlanContext) -> WritePlan:
    """Read the changes of an add or update, asking synchronous models where its plan is not kept.

    Raises:
        ModelFailedError, ModelRefusedError, ModelUnreadableError: nothing was extracted and the
            messages are not kept.
        InvalidRecordError: the operation cannot be read.
    """
    if op.plan is not None:
        return decode_plan(op.plan)
    body = decode_write(op)
    if not body.messages:
        return WritePlan(puts=body.puts)
    plan = _extraction_plan(op, body, models, context.settings)
    return run_plan(plan, lambda ask: _perform(op, ask, models, context))


def _extraction_plan(
    op: Operation, body: WriteBody, models: Models, settings: Settings
) -> Plan[WritePlan]:
    """Plan the changes of a write with messages: those given, and those extracted."""
    model = model_name(models.chat)
    extracted = yield from _extracted(op.scope, body, settings.is_single_valued, model)
    plan = replace(extracted, puts=[*body.puts, *extracted.puts])
    yield KeepPlan(plan=encode_plan(plan))
    return plan


def _perform(
    op: Operation,
    ask: AskChat | AskKnown | AskAlike | KeepPlan,
    models: Models,
    context: PlanContext,
) -> Any:
    """Perform a request of a plan with synchronous models; return the reply."""
    if isinstance(ask, KeepPlan):
        return context.keep(op, ask.plan)
    if isinstance(ask, AskChat):
        return complete(models.chat, ask, context.settings.model_timeout)
    if isinstance(ask, AskAlike):
        return context.known.find_alike(ask, models.embedder.dimensions)
    if models.chat is None:
        return KnownFacts()
    vectors = embed_texts(models.embedder, [ask.text], context.settings, purpose="query")
    return context.known.find(ask, vectors[0].vector)


def plan_deletion(scope: Scope, body: DeleteBody) -> PlannedChanges:
    """Plan a deletion, which needs no model."""
    removal = Remove(id=body.id, scope=scope, version=0, at=body.at, spare_pinned=body.spare_pinned)
    return PlannedChanges(changes=[(removal, None)])


def texts_to_embed(puts: Sequence[Put], limit: int) -> list[str]:
    """List the passages of changes that need vectors, in the order of the changes."""
    embedded = (put.record for put in puts if put.needs_embedding)
    return [part for record in embedded for part in embedded_passages(record, limit)]


def with_vectors(plan: WritePlan, vectors: Iterator[TokenEmbedding], limit: int) -> PlannedChanges:
    """Give each change the vectors of its text, the next ones of those of `texts_to_embed`."""
    changes = [
        (put, join_passages(put.record, vectors, limit) if put.needs_embedding else None)
        for put in plan.puts
    ]
    return PlannedChanges(changes=changes, skipped=plan.skipped, failure=plan.failure)


def _extracted(scope: Scope, body: WriteBody, is_single: IsSingle, model: str) -> Plan[WritePlan]:
    """Plan what is extracted from the messages of a write; nothing of it, with a failure, if none.

    Raises:
        ModelFailedError: nothing could be extracted, and the messages are not kept.
    """
    how = body.extraction or Extraction()
    home = scope if how.in_session else scope.owner
    ask = AskKnown(
        text=lookup_text(body.messages),
        scope=home,
        at=now(),
        metadata=how.metadata,
        identity=body.identity,
    )
    known = yield ask
    found = yield from extract(body.messages, body.at, known, how.instructions, model)
    if found.error is not None:
        if not how.keep_messages:
            raise found.error
        _log.warning("Extraction failed, the messages are kept: %s", found.error)
        failure = f"{type(found.error).__name__}: {found.error}"
        return WritePlan(puts=(), skipped=found.skipped, failure=failure)
    when = told_at(body.messages, body.at)
    facts = yield from _tied_to_stored(found.facts, ask, when)
    puts: list[Put] = []
    skipped = Counter(found.skipped)
    given = [put.record for put in body.puts]
    ids = {one.id for one in given}
    texts = {comparable(one.text) for one in given if one.kind != "episode"}
    sources = tuple(one.id for one in given if one.kind == "episode")
    origin = speaker_origin(body.messages, body.origin)
    for one in facts:
        fact = replace(one.fact, metadata=how.metadata, expires_at=how.expires_at)
        put = fact_put(
            fact, home, at=body.at, origin=origin, is_single=is_single, identity=body.identity,
            sources=sources,
        )  # fmt: skip
        end = one.replaces and ending(one.replaces, put.record, at=body.at, told=when)
        if one.same_as is not None:
            put = told_again(one.same_as, put)
        if put.record.id not in ids and comparable(fact.text) not in texts:
            ids.add(put.record.id)
            puts.append(put)
        else:
            skipped[REPEATED] += 1
        puts += [end] if end else []
    return WritePlan(puts=puts, skipped=dict(skipped))


def _tied_to_stored(
    facts: Sequence[ExtractedFact], within: AskKnown, when: datetime
) -> Plan[list[ExtractedFact]]:
    """Tie facts to stored ones that the model was not shown and that say the same."""
    unknown = [n for n, one in enumerate(facts) if one.same_as is None]
    ask = AskAlike(facts=tuple(facts[n].fact for n in unknown), within=within)
    try:
        records: Sequence[Record | None] = (yield ask) if unknown else ()
    except StoreUnavailableError:  # what the model said is worth more than a repetition
        return [*facts]
    named = {one.id for fact in facts for one in (fact.same_as, fact.replaces) if one}
    tied = [*facts]
    for n, record in zip(unknown, records, strict=True):
        is_later = record is not None and (facts[n].fact.at or when) >= record.occurred_at
        if record is not None and is_later and record.id not in named:
            tied[n] = replace(facts[n], same_as=record)
    return tied


def _embed_group(
    embedder: Embedder, group: Sequence[tuple[Operation, WritePlan]], context: PlanContext
) -> Iterator[tuple[Operation, PlannedChanges | CommonplaceError]]:
    """Embed the texts of operations in one call, or one by one to find the text to blame."""
    limit = context.settings.max_embed_chars
    texts = [text for _, plan in group for text in texts_to_embed(plan.puts, limit)]
    began = time.perf_counter()
    try:
        vectors = iter(embed_texts(embedder, texts, context.settings))
    except CommonplaceError as error:
        if len(group) == 1:
            yield group[0][0], error
            return
        for op_and_plan in group:
            yield from _embed_group(embedder, [op_and_plan], context)
        return
    if texts:
        context.measure(embedder, len(texts), time.perf_counter() - began)
    for op, plan in group:
        yield op, with_vectors(plan, vectors, limit)


# -- known facts -----------------------------------------------------------------------------------


class KnownFactsLookup:
    """Finds known facts in the engines of one location."""

    def __init__(self, engines: Engines, describe: Callable[[str], tuple[Terms, int]]) -> None:
        self._engines = engines
        self._describe = describe

    def find(self, ask: AskKnown, vector: Sequence[float]) -> KnownFacts:
        """Find the facts nearest to a text, at most 16, and the relations that they assert."""
        hits = self._search(ask, ask.text, vector, FACT_KINDS, _CANDIDATES)
        records = [hit.record for hit in _nearest_first(hits)[:MAX_KNOWN]]
        if not records:
            return KnownFacts()
        ranks = {one.id: rank for rank, one in enumerate(records)}
        relations = self._engines.graph.relations(ask.scope, records=list(ranks))
        relations.sort(
            key=lambda relation: min(ranks.get(id_, MAX_KNOWN) for id_ in relation.supports)
        )
        return KnownFacts(records=tuple(records), relations=tuple(relations))

    def find_alike(self, ask: AskAlike, dimensions: int) -> list[Record | None]:
        """Find a fact of the same kind for each of some facts, by their words alone."""
        anywhere = [1.0, *[0.0] * (dimensions - 1)]  # no text is embedded for this
        found: list[Record | None] = []
        for fact in ask.facts:
            text = comparable(fact.text)
            hits = self._search(ask.within, fact.text, anywhere, (fact.kind,), MAX_KNOWN)
            alike = (hit.record for hit in hits if comparable(hit.record.text) == text)
            found.append(next(alike, None))
        return found

    def _search(
        self, ask: AskKnown, text: str, vector: Sequence[float], kinds: tuple[Kind, ...], limit: int
    ) -> list[Hit]:
        terms, _ = self._describe(text)
        query = Query(
            scope=ask.scope, vector=vector, terms=terms, at=ask.at, kinds=kinds,
            where=_known_to(ask),
        )  # fmt: skip
        return self._engines.index.search(query, limit)


def _known_to(ask: AskKnown) -> Filter | None:
    """Make the filter for the records of the owner, and of the identity, of what is extracted."""
    owner, identity = ask.scope.owner, ask.identity
    wanted = identity_of(ask.metadata, identity)
    if not identity:
        # A scope without an agent covers those of all agents, and they are other owners.
        return None if ask.scope.agent_id else Predicate(lambda one: one.scope.owner == owner)
    same = Predicate(
        lambda one: one.scope.owner == owner and identity_of(one.metadata, identity) == wanted
    )
    # What an index can find needs not be read row by row.
    held = ((one, ask.metadata.get(one)) for one in identity)
    equal = [Where(METADATA + one, "eq", (value,)) for one, value in held if type(value) is str]
    return Group("AND", (*equal[:_CONDITIONS], same))


def _nearest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Sort by the cosine plus the share of the best lexical score; ties by id."""
    best = max((hit.lexical for hit in hits), default=0.0) or 1.0
    return sorted(hits, key=lambda hit: (-hit.dense - hit.lexical / best, hit.record.id))


# -- event loops -----------------------------------------------------------------------------------


class AsyncModelRunner:
    """Plans operations on their callers' event loops; work left by a closed loop goes to the next.

    Args:
        plan: plans one operation on the running loop until it succeeds; None if it never will. It
            may raise `StoreRefusedError`: the operation waits until orphans are adopted again.
        done: takes what was planned.
    """

    def __init__(
        self,
        executor: KeyedExecutor,
        plan: Callable[[Operation, RunInThread], Awaitable[PlannedChanges | None]],
        done: Callable[[Operation, PlannedChanges], None],
    ) -> None:
        self._executor = executor
        self._plan = plan
        self._done = done
        self._orphans: dict[str, Operation] = {}
        self._planning: dict[str, tuple[Operation, asyncio.AbstractEventLoop]] = {}

    def add_orphan(self, op: Operation) -> None:
        """Leave an operation to the next loop, unless one is planning it."""
        if op.id not in self._planning:
            self._orphans[op.id] = op

    def is_orphaned(self, op: Operation) -> bool:
        """Tell whether an operation waits for a loop."""
        return op.id in self._orphans

    def is_on(self, loop: asyncio.AbstractEventLoop, op: Operation) -> bool:
        """Tell whether an operation is being planned on a loop."""
        return op.id in self._planning and self._planning[op.id][1] is loop

    def orphans(self) -> list[Operation]:
        """List the operations that wait for a loop, those of closed loops among them."""
        for key, (op, loop) in list(self._planning.items()):
            if loop.is_closed() and self._planning.pop(key, None) is not None:
                self._executor.count_external(-1)
                self._orphans[key] = op
        return list(self._orphans.values())

    async def plan_here(self, op: Operation, run: RunInThread) -> None:
        """Plan an orphaned operation on the running loop; cancelled, it is orphaned again."""
        if self._orphans.pop(op.id, None) is None:  # another loop was quicker
            return
        self._planning[op.id] = op, asyncio.get_running_loop()
        self._executor.count_external(+1)
        try:
            changes = await self._plan(op, run)
            if changes is not None:
                self._done(op, changes)
        except StoreRefusedError:  # logged; to ask again may lock the user out
            self._orphans[op.id] = op
        except BaseException:
            self._orphans[op.id] = op
            raise
        finally:
            if self._planning.pop(op.id, None) is not None:
                self._executor.count_external(-1)


def is_on_loop() -> bool:
    """Tell whether waiting here would stop an event loop, and with it what is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
