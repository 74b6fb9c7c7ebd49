"""Planning: what was accepted becomes changes with vectors; models are asked once.

A plan is a generator that yields requests to a model and is sent the answers, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ..concurrency import call_within
from ..errors import CommonplaceError, MemoryTimeoutError, ModelFailedError, ModelUnreadableError
from ..model import Extraction, Fact, Message, Origin, Record, Relation, Scope
from ..ports.models import ChatModel, Embedder
from ..ports.stores import AskChat, AskVectors, KeepPlan, Operation, Put, Remove
from ..settings import Settings
from .codec import (
    DeleteBody,
    Write,
    WriteBody,
    decode_delete,
    decode_plan,
    decode_write,
    encode_plan,
    has_messages,
)
from .embedding import aembed, embed, is_async
from .extraction import extract

IsSingle = Callable[[Relation], bool]

RunInThread = Callable[..., Awaitable[Any]]
"""Awaits a blocking call, given with its arguments, on a thread."""
KeepPlanOf = Callable[[Operation, bytes], None]
"""Stores the plan of an operation in the journal."""
PlannedChange = tuple[Put | Remove, Sequence[float] | None]
"""A change and the vector of its text, which is None where the index has it already."""
PlannedChanges = list[PlannedChange]
PlanSteps = Generator[AskVectors | AskChat | KeepPlan, Any, PlannedChanges]

_log = logging.getLogger("commonplace")


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
        if op.plan is not None or self.chat is None or not is_async(self.chat.complete):
            return False
        return has_messages(op)

    def need_loop_for(self, write: Write) -> bool:
        """Tell the same of a write that is not encoded yet."""
        if not isinstance(write.body, WriteBody):
            return False
        is_chat_async = self.chat is not None and is_async(self.chat.complete)
        return self.embeds_on_loop or (is_chat_async and not write.only_embeds)


def plan_batch(
    work: Sequence[tuple[Operation, Models]],
    settings: Settings,
    keep: KeepPlanOf,
    measure: Callable[[Embedder, int, float], None],
) -> Iterator[tuple[Operation, PlannedChanges | CommonplaceError]]:
    """Plan operations with synchronous models, embedding all texts in as few calls as possible.

    Args:
        measure: is given an embedder, a number of texts and the seconds that they took.

    Yields:
        Each operation once, with its changes or with the error that stopped it, in no order.
    """
    plans: dict[str, PlanSteps] = {}
    requests: dict[int, list[tuple[Operation, AskVectors]]] = {}
    embedders: dict[int, Embedder] = {}
    for op, models in work:
        try:
            if op.kind == "delete":
                yield op, plan_deletion(op.scope, decode_delete(op))
                continue
            plans[op.id] = plan = plan_steps(op, settings.is_single_valued)
            ask = next(plan)
            while not isinstance(ask, AskVectors):
                if isinstance(ask, KeepPlan):
                    keep(op, ask.plan)
                    ask = next(plan)
                else:
                    ask = plan.send(_complete(models.chat, ask, settings.model_timeout))
        except CommonplaceError as error:
            yield op, error
            continue
        requests.setdefault(id(models.embedder), []).append((op, ask))
        embedders[id(models.embedder)] = models.embedder
    for which, group in requests.items():
        for op, vectors in _embed_group(embedders[which], group, settings, measure):
            if isinstance(vectors, CommonplaceError):
                yield op, vectors
            else:
                changes = _advance(plans[op.id], vectors)
                assert isinstance(changes, list)  # noqa: S101 -- a plan ends with its vectors
                yield op, changes


async def plan_async(
    op: Operation, models: Models, settings: Settings, run: RunInThread, keep: KeepPlanOf
) -> PlannedChanges:
    """Plan an operation, awaiting its asynchronous models on the running loop.

    Raises:
        CommonplaceError, TimeoutError: the embedder failed or took too long.
    """
    plan = plan_steps(op, settings.is_single_valued)
    answer: Any = None
    while True:
        ask = await run(_advance, plan, answer)  # to read and write plans takes time
        if isinstance(ask, list):
            return ask
        if isinstance(ask, KeepPlan):
            answer = await run(keep, op, ask.plan)
        elif isinstance(ask, AskChat):
            answer = await _acomplete(models.chat, ask, settings.model_timeout, run)
        else:
            async with asyncio.timeout(settings.model_timeout):
                answer = await _aembed(models.embedder, ask, settings, run)


def _advance(plan: PlanSteps, answer: Any) -> AskVectors | AskChat | KeepPlan | PlannedChanges:
    """Take a plan to its next request, or to its end."""
    try:
        return plan.send(answer)
    except StopIteration as end:
        changes: PlannedChanges = end.value
        return changes


def plan_deletion(scope: Scope, body: DeleteBody) -> PlannedChanges:
    """Plan a deletion, which needs no model."""
    removal = Remove(id=body.id, scope=scope, version=0, at=body.at, spare_pinned=body.spare_pinned)
    return [(removal, None)]


def plan_steps(op: Operation, is_single: IsSingle) -> PlanSteps:
    """Plan an accepted add or update.

    Args:
        is_single: returns whether a relation is single-valued.

    Raises:
        ModelFailedError, ModelUnreadableError: nothing was extracted and the messages are not kept.
        InvalidRecordError: the operation cannot be read.
    """
    if op.plan is not None:
        puts = decode_plan(op.plan)
    else:
        body = decode_write(op)
        puts = [*body.puts]
        if body.messages:
            puts += yield from _extracted(op.scope, body, is_single)
            yield KeepPlan(plan=encode_plan(puts))
    return (yield from embed_steps(puts))


def embed_steps(puts: Sequence[Put]) -> PlanSteps:
    """Plan changes that need an embedder alone."""
    texts = tuple(put.record.indexed_text for put in puts if put.needs_embedding)
    vectors = iter((yield AskVectors(texts=texts)))
    return [(put, next(vectors) if put.needs_embedding else None) for put in puts]


def _extracted(
    scope: Scope, body: WriteBody, is_single: IsSingle
) -> Generator[AskChat, Any, list[Put]]:
    how = body.extraction or Extraction()
    facts = yield from extract(body.messages, body.at, how.instructions)
    if not isinstance(facts, list):
        if not how.keep_messages:
            raise _extraction_error(facts)
        return []
    found: list[Put] = []
    ids = {put.record.id for put in body.puts}
    for fact in facts:
        added = replace(fact, metadata=how.metadata, expires_at=how.expires_at)
        put = fact_put(added, scope, at=body.at, origin=body.origin, is_single=is_single)
        if put.record.id not in ids:
            ids.add(put.record.id)
            found.append(put)
    return found


def _extraction_error(fault: str | None) -> ModelFailedError:
    if fault is None:
        return ModelFailedError(model="chat", reason="it gave no answer, and its log says why")
    return ModelUnreadableError(model="chat", reason=fault)


def _embed_group(
    embedder: Embedder,
    group: Sequence[tuple[Operation, AskVectors]],
    settings: Settings,
    measure: Callable[[Embedder, int, float], None],
) -> Iterator[tuple[Operation, Any]]:
    texts = [text for _, ask in group for text in ask.texts]
    began = time.perf_counter()
    try:
        rows = embed_texts(embedder, texts, settings)
    except CommonplaceError as error:
        if len(group) == 1:
            yield group[0][0], error
            return
        for one in group:  # find the text that is to blame
            yield from _embed_group(embedder, [one], settings, measure)
        return
    if texts:
        measure(embedder, len(texts), time.perf_counter() - began)
    start = 0
    for op, ask in group:
        yield op, rows[start : start + len(ask.texts)]
        start += len(ask.texts)


def embed_texts(embedder: Embedder, texts: Sequence[str], settings: Settings) -> Any:
    """Embed texts within the time that a model may take: one vector each, in their order.

    Raises:
        ModelFailedError: the embedder failed or took too long.
    """
    if not texts:
        return []
    call = partial(embed, embedder, texts, purpose="document", limit=settings.max_embed_chars)
    try:
        return call_within(settings.model_timeout, "embed", call)
    except MemoryTimeoutError as error:
        reason = f"no answer in {settings.model_timeout:g} seconds"
        raise ModelFailedError(model=embedder.id, reason=reason) from error


async def _aembed(embedder: Embedder, ask: AskVectors, settings: Settings, run: RunInThread) -> Any:
    if not ask.texts or not is_async(embedder.embed):
        return await run(embed_texts, embedder, ask.texts, settings)
    limit = settings.max_embed_chars
    return await aembed(embedder, ask.texts, purpose="document", limit=limit)


def _complete(chat: ChatModel | None, ask: AskChat, seconds: float) -> str | None:
    if chat is None:
        return None
    call = partial(chat.complete, ask.system, ask.user, schema=ask.schema)
    try:
        answer = call_within(seconds, "complete", call)
    except (Exception, asyncio.CancelledError) as error:  # the user's model may raise anything
        _log.warning("Extraction failed: %r", error)
        return None
    return answer if isinstance(answer, str) else None


async def _acomplete(
    chat: ChatModel | None, ask: AskChat, seconds: float, run: RunInThread
) -> str | None:
    if chat is None or not is_async(chat.complete):
        answer: str | None = await run(_complete, chat, ask, seconds)
        return answer
    try:
        async with asyncio.timeout(seconds):
            text: object = await chat.complete(ask.system, ask.user, schema=ask.schema)  # type: ignore[misc]  # it is async
            return text if isinstance(text, str) else None
    except Exception as error:  # the user's model may raise anything
        _log.warning("Extraction failed: %r", error)
        return None


# Anybody may have written the text of tools and documents.
_TRUST = {"tool": 0.3, "document": 0.3}


def fact_put(fact: Fact, scope: Scope, *, at: datetime, origin: Origin, is_single: IsSingle) -> Put:
    """Make the change that adds a fact."""
    relations = dated_relations(fact, at, is_single)
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(one.single_valued for one in relations):
        # The same value again at a later time is news: it may have changed in between.
        key = json.dumps([key, begins.astimezone(UTC).isoformat()])
    record = Record(
        id=scope.record_id(fact.kind, fact.key or key),
        text=fact.text,
        scope=scope,
        kind=fact.kind,
        metadata=dict(fact.metadata),
        origin=origin,
        trust=_TRUST.get(origin, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=begins or at,
        expires_at=fact.expires_at,
        importance=float(fact.importance),
        pinned=fact.pinned,
        situation=fact.situation,
        outcome=fact.outcome,
        indexed=fact.indexed,
    )
    return Put(record=record, relations=relations)


def dated_relations(fact: Fact, at: datetime, is_single: IsSingle) -> tuple[Relation, ...]:
    """Give each single-valued relation of a fact the moment from which it holds, to order them."""
    since = _begins(fact) or at
    dated = []
    for one in fact.relations:
        single = is_single(one)
        begins, ends = one.valid_from, one.valid_to
        if fact.expires_at and (ends is None or ends > fact.expires_at):
            ends = fact.expires_at  # a relation must not hold longer than its record is shown
        if single and begins is None and (ends is None or ends > since):
            begins = since
        dated.append(replace(one, single_valued=single, valid_from=begins, valid_to=ends))
    return tuple(dated)


def _begins(fact: Fact) -> datetime | None:
    return fact.at or min(
        (one.valid_from for one in fact.relations if one.valid_from), default=None
    )


def message_put(message: Message, scope: Scope, *, at: datetime, origin: Origin) -> Put:
    """Make the change that adds a turn of a conversation, verbatim."""
    speaker: Origin = "tool" if message.role == "tool" else origin
    if origin == "user" and message.role in ("assistant", "system"):
        speaker = "assistant" if message.role == "assistant" else "system"
    key = message.id or json.dumps([message.role, message.name, message.text.strip()])
    record = Record(
        id=scope.record_id("episode", key),
        text=message.text,
        scope=scope,
        kind="episode",
        role=message.role,
        name=message.name,
        origin=speaker,
        trust=_TRUST.get(speaker, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=message.at or at,
    )
    return Put(record=record, in_session=scope.session_id is not None)
