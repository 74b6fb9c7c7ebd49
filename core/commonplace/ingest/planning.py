"""Planning: what was accepted becomes changes with vectors; models are asked once.

A plan is a generator that yields requests to a model and is sent the answers, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ..concurrency import call_within
from ..errors import (
    CommonplaceError,
    MemoryTimeoutError,
    ModelFailedError,
    StoreRefusedError,
)
from ..ports.models import ChatModel, Embedder
from ..ports.stores import (
    AskChat,
    AskKnown,
    AskVectors,
    KeepPlan,
    KnownFacts,
    Operation,
    Put,
    Remove,
)
from ..settings import Settings
from ..types import Extraction, Scope, TokenEmbedding, now
from .changes import IsSingle, ending, fact_put, speaker_origin, told_again
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
from .extraction import extract, lookup_text, told_at
from .model_errors import model_error

Purpose = Literal["query", "document"]

RunInThread = Callable[..., Awaitable[Any]]
"""Awaits a blocking call, given with its arguments, on a thread."""
KeepPlanOf = Callable[[Operation, bytes], None]
"""Stores the plan of an operation in the journal."""
FindKnown = Callable[[AskKnown, Sequence[float]], KnownFacts]
"""Finds the known facts that are nearest to a text, given with its vector."""
Ask = AskVectors | AskChat | AskKnown | KeepPlan
PlannedChange = tuple[Put | Remove, TokenEmbedding | None]
"""A change and the vectors of its text, which are None where the index has them already."""
PlannedChanges = list[PlannedChange]
PlanSteps = Generator[Ask, Any, PlannedChanges]

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
        return self.chat is not None and is_async(self.chat.complete) and self.extracts(op)

    def extracts(self, op: Operation) -> bool:
        """Tell whether planning this operation asks the chat model."""
        if op.kind != "add" or op.plan is not None or self.chat is None:
            return False
        return has_messages(op)

    def need_loop_for(self, write: Write) -> bool:
        """Tell the same of a write that is not encoded yet."""
        if not isinstance(write.body, WriteBody):
            return False
        is_chat_async = self.chat is not None and is_async(self.chat.complete)
        return self.embeds_on_loop or (is_chat_async and not write.only_embeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What performs the requests of plans, beside the models of each operation.

    Attributes:
        measure: is given an embedder, a number of texts and the seconds that they took.
    """

    settings: Settings
    keep: KeepPlanOf
    find_known: FindKnown
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
    plans: dict[str, PlanSteps] = {}
    requests: dict[int, list[tuple[Operation, AskVectors]]] = {}
    embedders: dict[int, Embedder] = {}
    for op, models in work:
        try:
            if op.kind == "delete":
                yield op, plan_deletion(op.scope, decode_delete(op))
                continue
            plans[op.id] = plan = plan_steps(
                op, context.settings.is_single_valued, _name(models.chat)
            )
            ask = next(plan)
            while not isinstance(ask, AskVectors):
                ask = plan.send(_perform(op, ask, models, context))
        except StoreRefusedError:
            raise
        except CommonplaceError as error:
            yield op, error
            continue
        requests.setdefault(id(models.embedder), []).append((op, ask))
        embedders[id(models.embedder)] = models.embedder
    for which, group in requests.items():
        for op, vectors in _embed_group(embedders[which], group, context):
            if isinstance(vectors, CommonplaceError):
                yield op, vectors
            else:
                changes = _advance(plans[op.id], vectors)
                assert isinstance(changes, list)  # noqa: S101 -- a plan ends with its vectors
                yield op, changes


def _perform(
    op: Operation, ask: AskChat | AskKnown | KeepPlan, models: Models, context: PlanContext
) -> Any:
    """Perform a request of a plan with synchronous models; return the reply."""
    if isinstance(ask, KeepPlan):
        return context.keep(op, ask.plan)
    if isinstance(ask, AskChat):
        return _complete(models.chat, ask, context.settings.model_timeout)
    if models.chat is None:
        return KnownFacts()
    vectors = embed_texts(models.embedder, [ask.text], context.settings, purpose="query")
    return context.find_known(ask, vectors[0].vector)


async def plan_async(
    op: Operation, models: Models, context: PlanContext, run: RunInThread
) -> PlannedChanges:
    """Plan an operation, awaiting its asynchronous models on the running loop.

    Raises:
        CommonplaceError: the embedder or a store failed, or took too long.
    """
    settings = context.settings
    plan = plan_steps(op, settings.is_single_valued, _name(models.chat))
    answer: Any = None
    while True:
        ask = await run(_advance, plan, answer)  # to read and write plans takes time
        if isinstance(ask, list):
            return ask
        if isinstance(ask, AskChat):
            answer = await _acomplete(models.chat, ask, settings.model_timeout, run)
        elif isinstance(ask, AskVectors):
            answer = await _aembed(models.embedder, ask.texts, settings, run)
        elif isinstance(ask, AskKnown) and models.chat and models.embeds_on_loop:
            vectors = await _aembed(models.embedder, [ask.text], settings, run, purpose="query")
            answer = await run(context.find_known, ask, vectors[0].vector)
        else:
            answer = await run(_perform, op, ask, models, context)


def _advance(plan: PlanSteps, answer: Any) -> Ask | PlannedChanges:
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


def plan_steps(op: Operation, is_single: IsSingle, model: str) -> PlanSteps:
    """Plan an accepted add or update.

    Args:
        is_single: returns whether a relation is single-valued.
        model: id of the chat model, for errors.

    Raises:
        ModelFailedError, ModelRefusedError, ModelUnreadableError: nothing was extracted and the
            messages are not kept.
        InvalidRecordError: the operation cannot be read.
    """
    if op.plan is not None:
        puts = decode_plan(op.plan)
    else:
        body = decode_write(op)
        puts = [*body.puts]
        if body.messages:
            puts += yield from _extracted(op.scope, body, is_single, model)
            yield KeepPlan(plan=encode_plan(puts))
    return (yield from embed_steps(puts))


def embed_steps(puts: Sequence[Put]) -> PlanSteps:
    """Plan changes that need an embedder alone."""
    texts = tuple(put.record.indexed_text for put in puts if put.needs_embedding)
    vectors = iter((yield AskVectors(texts=texts)))
    return [(put, next(vectors) if put.needs_embedding else None) for put in puts]


def _extracted(
    scope: Scope, body: WriteBody, is_single: IsSingle, model: str
) -> Generator[AskKnown | AskChat, Any, list[Put]]:
    how = body.extraction or Extraction()
    home = scope if how.in_session else scope.owner
    known = yield AskKnown(
        text=lookup_text(body.messages),
        scope=home,
        at=now(),
        metadata=how.metadata,
        identity=body.identity,
    )
    facts = yield from extract(body.messages, body.at, known, how.instructions, model)
    if isinstance(facts, ModelFailedError):
        if not how.keep_messages:
            raise facts
        _log.warning("Extraction failed, the messages are kept: %s", facts)
        return []
    puts: list[Put] = []
    given = [put.record for put in body.puts]
    ids = {one.id for one in given}
    texts = {one.text.strip() for one in given if one.kind != "episode"}
    when = told_at(body.messages, body.at)
    origin = speaker_origin(body.messages, body.origin)
    for one in facts:
        fact = replace(one.fact, metadata=how.metadata, expires_at=how.expires_at)
        put = fact_put(
            fact, home, at=body.at, origin=origin, is_single=is_single, identity=body.identity
        )
        end = one.replaces and ending(one.replaces, put.record, at=body.at, told=when)
        if one.same_as is not None:
            put = told_again(one.same_as, put)
        if put.record.id not in ids and fact.text.strip() not in texts:
            ids.add(put.record.id)
            puts.append(put)
        puts += [end] if end else []
    return puts


def _embed_group(
    embedder: Embedder,
    group: Sequence[tuple[Operation, AskVectors]],
    context: PlanContext,
) -> Iterator[tuple[Operation, Any]]:
    texts = [text for _, ask in group for text in ask.texts]
    began = time.perf_counter()
    try:
        rows = embed_texts(embedder, texts, context.settings)
    except CommonplaceError as error:
        if len(group) == 1:
            yield group[0][0], error
            return
        for one in group:  # find the text that is to blame
            yield from _embed_group(embedder, [one], context)
        return
    if texts:
        context.measure(embedder, len(texts), time.perf_counter() - began)
    start = 0
    for op, ask in group:
        yield op, rows[start : start + len(ask.texts)]
        start += len(ask.texts)


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    settings: Settings,
    *,
    purpose: Purpose = "document",
) -> Any:
    """Embed texts within the time that a model may take: one vector each, in their order.

    Raises:
        ModelFailedError: the embedder failed or took too long.
    """
    if not texts:
        return []
    call = partial(embed, embedder, texts, purpose=purpose, limit=settings.max_embed_chars)
    try:
        return call_within(settings.model_timeout, "embed", call)
    except MemoryTimeoutError as error:
        reason = f"no answer in {settings.model_timeout:g} seconds"
        raise ModelFailedError(model=embedder.id, reason=reason) from error


async def _aembed(
    embedder: Embedder,
    texts: Sequence[str],
    settings: Settings,
    run: RunInThread,
    *,
    purpose: Purpose = "document",
) -> Any:
    if not texts or not is_async(embedder.embed):
        return await run(partial(embed_texts, embedder, texts, settings, purpose=purpose))
    limit, seconds = settings.max_embed_chars, settings.model_timeout
    try:
        async with asyncio.timeout(seconds):
            return await aembed(embedder, texts, purpose=purpose, limit=limit)
    except TimeoutError as error:
        reason = f"no answer in {seconds:g} seconds"
        raise ModelFailedError(model=embedder.id, reason=reason) from error


def _complete(chat: ChatModel | None, ask: AskChat, seconds: float) -> str | ModelFailedError:
    if chat is None:
        reason = "there is none; open the memory with Memory.open(chat=...), or leave infer out"
        return ModelFailedError(model="chat", reason=reason)
    call = partial(chat.complete, ask.system, ask.user, schema=ask.schema)
    try:
        answer = call_within(seconds, "complete", call)
    except (Exception, asyncio.CancelledError) as error:  # the user's model may raise anything
        return model_error(_name(chat), error)
    return answer if isinstance(answer, str) else _no_text(_name(chat), answer)


def _name(chat: ChatModel | None) -> str:
    return str(getattr(chat, "id", "chat"))


def _no_text(model: str, answer: object) -> ModelFailedError:
    return ModelFailedError(model=model, reason=f"it gave {type(answer).__name__} and not a text")


async def _acomplete(
    chat: ChatModel | None, ask: AskChat, seconds: float, run: RunInThread
) -> str | ModelFailedError:
    if chat is None or not is_async(chat.complete):
        answer: str | ModelFailedError = await run(_complete, chat, ask, seconds)
        return answer
    try:
        async with asyncio.timeout(seconds):
            text: object = await chat.complete(ask.system, ask.user, schema=ask.schema)  # type: ignore[misc]  # it is async
            return text if isinstance(text, str) else _no_text(_name(chat), text)
    except Exception as error:  # the user's model may raise anything
        return model_error(_name(chat), error)
