"""Run the planning of changes with the models at hand: on a thread, or on an event loop.

MERGED FROM commonplace.pipeline.plan: Turn what was accepted into changes with vectors, asking the models once; then it is frozen.

A plan is a generator: it yields what it wants of a model and is sent the answer, so that the same
steps serve a thread with synchronous models and an event loop with asynchronous ones.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from ..errors import CommonplaceError, ModelFailedError, ModelUnreadableError
from ..model import Extraction, Fact, Message
from ..ports.models import ChatModel, Embedder
from ..ports.stores import AskChat, AskVectors, Operation
from ..settings import Settings
from .changes import IsSingle, fact_put
from .codec import decode_write, encode_plan, has_messages
from .embedding import aembed, embed, is_async
from .extraction import extract

_log = logging.getLogger("commonplace")
Run = Callable[..., Awaitable[Any]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that plan a change: those of the memory that accepted it."""

    embedder: Embedder
    chat: ChatModel | None = None

    def need_loop(self, op: Operation) -> bool:
        """Tell whether planning this change awaits something."""
        if op.plan is not None or op.kind in ("delete", "forget"):
            return False
        if is_async(self.embedder.embed):
            return True
        if self.chat is None or not is_async(self.chat.complete):
            return False
        return has_messages(op)

    def are_quick(self, op: Operation) -> bool:
        """Tell whether a synchronous embedder is all that planning this change asks."""
        if op.kind not in ("add", "update") or self.need_loop(op):
            return False
        return self.chat is None or not has_messages(op)


def plan_batch(
    work: Sequence[tuple[Operation, Models]], settings: Settings
) -> Iterator[tuple[Operation, bytes | CommonplaceError]]:
    """Plan changes with synchronous models, embedding all their texts in as few calls as possible.

    Yields:
        Each change once, with its plan or with the error that stopped it, in no order.
    """
    steps: dict[str, Any] = {}
    asked: dict[int, list[tuple[Operation, AskVectors]]] = {}
    embedders: dict[int, Embedder] = {}
    for op, models in work:
        steps[op.id] = step = plan(op, extract, settings.is_single_valued)
        try:
            ask = next(step)
            while isinstance(ask, AskChat):
                ask = step.send(_chat(models.chat, ask, settings.model_timeout))
        except CommonplaceError as error:
            yield op, error
            continue
        asked.setdefault(id(models.embedder), []).append((op, ask))
        embedders[id(models.embedder)] = models.embedder
    for which, group in asked.items():
        for op, vectors in _embed(embedders[which], group, settings):
            if isinstance(vectors, CommonplaceError):
                yield op, vectors
            else:
                yield op, _finish(steps[op.id], vectors)


async def plan_alone(op: Operation, models: Models, settings: Settings, run: Run) -> bytes:
    """Plan a change, awaiting its asynchronous models on the running loop.

    Args:
        run: awaits a blocking call, given with its arguments, on a thread.

    Raises:
        CommonplaceError, TimeoutError: the embedder failed or took too long.
    """
    step = plan(op, extract, settings.is_single_valued)
    answer: Any = None
    while True:
        ask = await run(_next, step, answer)  # to read and write plans takes time
        if isinstance(ask, bytes):
            return ask
        if isinstance(ask, AskChat):
            answer = await _achat(models.chat, ask, settings.model_timeout, run)
            continue
        async with asyncio.timeout(settings.model_timeout):
            answer = await _avectors(models.embedder, ask, settings, run)


def _next(step: Any, answer: Any) -> AskVectors | AskChat | bytes:
    """Take a plan to its next question, or to its end."""
    try:
        ask: AskVectors | AskChat = step.send(answer)
    except StopIteration as planned:
        return bytes(planned.value)
    return ask


def _embed(
    embedder: Embedder, group: Sequence[tuple[Operation, AskVectors]], settings: Settings
) -> Iterator[tuple[Operation, Any]]:
    texts = [text for _, ask in group for text in ask.texts]
    try:
        rows = _rows(embedder, texts, settings)
    except CommonplaceError as error:
        if len(group) == 1:
            yield group[0][0], error
            return
        for one in group:  # find the text that is to blame
            yield from _embed(embedder, [one], settings)
        return
    start = 0
    for op, ask in group:
        yield op, rows[start : start + len(ask.texts)]
        start += len(ask.texts)


def _rows(embedder: Embedder, texts: Sequence[str], settings: Settings) -> Any:
    if not texts:
        return []
    given = partial(embed, embedder, texts, purpose="document", limit=settings.max_embed_chars)
    try:
        return _patiently(given, settings.model_timeout)
    except TimeoutError as error:
        raise ModelFailedError(model=embedder.id, reason=str(error)) from error


def _patiently(call: Callable[[], T], seconds: float) -> T:
    """Call a model on a thread of its own, which is left alone if it takes too long."""
    done: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            done.put((None, error))

    threading.Thread(target=run, name="commonplace-model", daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except Empty:
        reason = f"no answer in {seconds:g} seconds"
        raise TimeoutError(reason) from None
    if error is not None:
        raise error
    return cast("T", result)


async def _avectors(embedder: Embedder, ask: AskVectors, settings: Settings, run: Run) -> Any:
    if not ask.texts or not is_async(embedder.embed):
        return await run(_rows, embedder, ask.texts, settings)
    limit = settings.max_embed_chars
    return await aembed(embedder, ask.texts, purpose="document", limit=limit)


def _chat(chat: ChatModel | None, ask: AskChat, seconds: float) -> str | None:
    if chat is None:
        return None
    complete = partial(chat.complete, ask.system, ask.user, schema=ask.schema)
    try:
        answer = _patiently(complete, seconds)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- the user's model may raise anything
        _tell(error)
        return None
    return answer if isinstance(answer, str) else None


async def _achat(chat: ChatModel | None, ask: AskChat, seconds: float, run: Run) -> str | None:
    if chat is None or not is_async(chat.complete):
        answer: str | None = await run(_chat, chat, ask, seconds)
        return answer
    try:
        async with asyncio.timeout(seconds):
            said: object = await chat.complete(ask.system, ask.user, schema=ask.schema)  # type: ignore[misc]  # it is async
            return said if isinstance(said, str) else None
    except Exception as error:  # noqa: BLE001 -- the user's model may raise anything
        _tell(error)
        return None


def _tell(error: BaseException) -> None:
    _log.warning("Extraction failed: %r", error)


def _finish(step: Any, answer: Any) -> bytes:
    frozen = _next(step, answer)
    assert isinstance(frozen, bytes)  # noqa: S101 -- a plan ends with its vectors
    return frozen


Found = list[Fact] | str | None
Extract = Callable[[Sequence[Message], datetime, str | None], Generator[AskChat, str | None, Found]]


def plan(
    op: Operation, extract: Extract, is_single: IsSingle
) -> Generator[AskVectors | AskChat, Any, bytes]:
    """Plan an accepted add or update: yields questions, is sent answers, returns the plan.

    Args:
        is_single: tells whether a relation has one value at a time.

    Raises:
        ModelFailedError, ModelUnreadableError: nothing was extracted and the messages are not kept.
    """
    body = decode_write(op)
    puts = [*body.puts]
    if body.messages:
        how = body.extraction or Extraction()
        facts = yield from extract(body.messages, body.at, how.instructions)
        if not isinstance(facts, list) and not how.keep_messages:
            raise _failure(facts)
        known = {put.record.id for put in puts}
        for fact in facts if isinstance(facts, list) else ():
            said = replace(fact, metadata=how.metadata, expires_at=how.expires_at)
            put = fact_put(said, op.scope, at=body.at, origin=body.origin, is_single=is_single)
            if put.record.id not in known:
                known.add(put.record.id)
                puts.append(put)
    told = [put.record.indexed_text for put in puts if put.is_told]
    vectors = iter((yield AskVectors(texts=tuple(told))))
    return encode_plan(puts, [next(vectors) if put.is_told else None for put in puts])


def _failure(fault: str | None) -> ModelFailedError:
    if fault is None:
        return ModelFailedError(model="chat", reason="it gave no answer, and its log says why")
    return ModelUnreadableError(model="chat", reason=fault)
