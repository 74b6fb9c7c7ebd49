"""Checked calls of models: vectors of unit length or a text, else one of our errors.

An embedder that gives tokens too is asked for both at once. What a provider raised is told apart by
whether a new attempt may help.
"""

import asyncio
import contextlib
import inspect
import math
import re
import struct
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, islice
from typing import Any, Literal, TypeGuard

import numpy as np

from .concurrency import call_within
from .errors import (
    InvalidVectorError,
    LoopRequiredError,
    MemoryTimeoutError,
    ModelFailedError,
    ModelRefusedError,
)
from .ports.models import ChatModel, Embedder, TokenEmbedder
from .ports.stores import AskChat
from .settings import Settings
from .telemetry import model_call
from .types import Record, TokenEmbedding

Purpose = Literal["query", "document"]
RunInThread = Callable[..., Awaitable[Any]]
"""Awaits a blocking call, given with its arguments, on a thread."""


class EmbedderPace:
    """Seconds that embedders take for a text, as measured last."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def measure(self, embedder: Embedder, texts: int, seconds: float) -> None:
        """Note how long some texts took."""
        self._seconds[embedder.id] = seconds / texts

    def expect(self, embedder: Embedder, texts: int) -> float:
        """Estimate the seconds for some texts; infinite for an embedder that was not measured."""
        return self._seconds.get(embedder.id, math.inf) * texts

    def forget(self, embedder: Embedder) -> None:
        """Forget what was measured: it takes longer now."""
        self._seconds.pop(embedder.id, None)


def embed(
    embedder: Embedder, texts: Sequence[str], *, purpose: Purpose, limit: int
) -> list[TokenEmbedding]:
    """Embed texts, each up to `limit` characters, synchronously: unit vectors in their order.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError, ModelRefusedError: it raised; its own error is the cause.
        InvalidVectorError: it returned something else than one finite, non-zero vector per text.
    """
    if is_async(embedder.embed):
        raise LoopRequiredError(call="embed", model=embedder.id)
    try:
        with model_call("embeddings", embedder.id):
            answer = _call(embedder, texts, purpose, limit)
    except (Exception, CancelledError) as error:  # the user's model may raise anything
        raise model_error(embedder.id, error) from error
    return _checked(embedder, len(texts), answer)


async def aembed(
    embedder: Embedder, texts: Sequence[str], *, purpose: Purpose, limit: int
) -> list[TokenEmbedding]:
    """Embed texts with an asynchronous embedder, on the running loop; else as `embed`."""
    try:
        with model_call("embeddings", embedder.id):
            answer = _call(embedder, texts, purpose, limit)
            answer = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # the user's model may raise anything
        raise model_error(embedder.id, error) from error
    return _checked(embedder, len(texts), answer)


def _embeds_tokens(embedder: Embedder) -> TypeGuard[TokenEmbedder]:
    return hasattr(embedder, "embed_tokens")  # `isinstance` takes far longer


def _call(embedder: Embedder, texts: Sequence[str], purpose: Purpose, limit: int) -> Any:
    given = [text[:limit] for text in texts]
    if _embeds_tokens(embedder):
        return embedder.embed_tokens(given, purpose=purpose)
    return embedder.embed(given, purpose=purpose)


def embedded_passages(record: Record, limit: int) -> list[str]:
    """List the passages of a record that are embedded: the first, and all that end in the limit."""
    parts = record.indexed_passages
    if len(parts) == 1:
        return [*parts]
    ends = accumulate(map(len, parts))
    return [part for part, end in zip(parts, ends, strict=True) if end <= limit] or [parts[0]]


def join_passages(record: Record, vectors: Iterator[TokenEmbedding], limit: int) -> TokenEmbedding:
    """Join the vectors of a record's passages, the next ones of those of `embedded_passages`."""
    first, *following = islice(vectors, len(embedded_passages(record, limit)))
    return replace(first, following=tuple(following)) if following else first


def is_async(method: Callable[..., Any]) -> bool:
    """Tell whether a model's method is written `async def`."""
    return inspect.iscoroutinefunction(inspect.unwrap(method))


def _checked(embedder: Embedder, expected: int, answer: Any) -> list[TokenEmbedding]:
    if not _embeds_tokens(embedder):
        rows = _normalize(embedder, expected, answer)
        return [TokenEmbedding(vector=row) for row in rows]
    size = embedder.token_dimensions
    try:
        rows = _normalize(embedder, expected, [one.vector for one in answer])
        tokens = [bytes(one.tokens) for one in answer]
    except (TypeError, AttributeError):
        reason = "must come as a list of TokenEmbedding"
        raise InvalidVectorError(reason=reason, expected=embedder.dimensions, got=0) from None
    for token in tokens:
        if len(token) % size:
            reason = f"must have tokens of {size} bytes each"
            raise InvalidVectorError(
                reason=reason, expected=embedder.dimensions, got=len(token) % size
            )
    return [TokenEmbedding(vector=row, tokens=some) for row, some in zip(rows, tokens, strict=True)]


def _normalize(embedder: Embedder, expected: int, vectors: object) -> Any:
    size = embedder.dimensions
    try:
        given = _packed(vectors, size)
    except Exception:  # what the user's model gave may raise anything, as a tensor of a GPU does
        given = np.asarray(None)
    if given.dtype.kind not in "fiu":  # texts of numbers too: they are no vector
        raise InvalidVectorError(reason="must be a list of numbers", expected=size, got=0) from None
    if given.ndim != 2 or len(given) != expected:
        found = (
            f"{len(given)} vectors" if given.ndim == 2 else f"{given.ndim} dimensions of numbers"
        )
        reason = f"must come for each of {expected} texts, not {found}"
        raise InvalidVectorError(reason=reason, expected=size, got=len(given) if given.ndim else 0)
    if given.shape[1] != size:
        got = given.shape[1]
        raise InvalidVectorError(reason=f"has {got} numbers", expected=size, got=got)
    if given.dtype != np.float32:
        with np.errstate(over="ignore"):  # infinite then, and refused
            given = given.astype(np.float32)
    rows = given
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    if not ((lengths > 0) & (lengths < math.inf)).all():
        raise InvalidVectorError(reason="must be finite and not zero", expected=size, got=size)
    return rows / lengths


@lru_cache(maxsize=16)
def _struct(size: int) -> struct.Struct:
    return struct.Struct(f"{size}f")


def _packed(vectors: Any, size: int) -> Any:
    """Make an array of vectors; lists of floats in single precision, as it takes far less."""
    with contextlib.suppress(struct.error, TypeError, IndexError, OverflowError):
        if type(vectors) is list and type(vectors[0]) is list and type(vectors[0][0]) is float:
            pack = _struct(size).pack
            packed = b"".join([pack(*one) for one in vectors])
            return np.frombuffer(packed, np.float32).reshape(-1, size)
    return np.asarray(vectors)


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    settings: Settings,
    *,
    purpose: Purpose = "document",
) -> Any:
    """Embed texts within the time that a model may take: one vector each, in their order."""
    if not texts:
        return []
    call = partial(embed, embedder, texts, purpose=purpose, limit=settings.max_embed_chars)
    try:
        return call_within(settings.model_timeout, "embed", call)
    except MemoryTimeoutError as error:
        reason = f"no answer in {settings.model_timeout:g} seconds"
        raise ModelFailedError(model=embedder.id, reason=reason) from error


async def aembed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    settings: Settings,
    run: RunInThread,
    *,
    purpose: Purpose = "document",
) -> Any:
    """Embed texts as `embed_texts`, awaiting an asynchronous embedder on the running loop."""
    if not texts or not is_async(embedder.embed):
        return await run(partial(embed_texts, embedder, texts, settings, purpose=purpose))
    limit, seconds = settings.max_embed_chars, settings.model_timeout
    try:
        async with asyncio.timeout(seconds):
            return await aembed(embedder, texts, purpose=purpose, limit=limit)
    except TimeoutError as error:
        reason = f"no answer in {seconds:g} seconds"
        raise ModelFailedError(model=embedder.id, reason=reason) from error


def complete(chat: ChatModel | None, ask: AskChat, seconds: float) -> str | ModelFailedError:
    """Ask a synchronous chat model; return its text, or the error if it failed or took too long."""
    if chat is None:
        reason = "there is none; open the memory with Memory.open(chat=...), or leave infer out"
        return ModelFailedError(model="chat", reason=reason)
    call = partial(chat.complete, ask.system, ask.user, schema=ask.schema)
    try:
        with model_call("chat", model_name(chat)):
            answer = call_within(seconds, "complete", call)
    except (Exception, asyncio.CancelledError) as error:  # the user's model may raise anything
        return model_error(model_name(chat), error)
    return answer if isinstance(answer, str) else _no_text(model_name(chat), answer)


def model_name(chat: ChatModel | None) -> str:
    """Return the id of a chat model, for errors."""
    return str(getattr(chat, "id", "chat"))


def _no_text(model: str, answer: object) -> ModelFailedError:
    return ModelFailedError(model=model, reason=f"it gave {type(answer).__name__} and not a text")


async def acomplete(
    chat: ChatModel | None, ask: AskChat, seconds: float, run: RunInThread
) -> str | ModelFailedError:
    """Ask a chat model as `complete`, awaiting an asynchronous one on the running loop."""
    if chat is None or not is_async(chat.complete):
        answer: str | ModelFailedError = await run(complete, chat, ask, seconds)
        return answer
    try:
        with model_call("chat", model_name(chat)):
            async with asyncio.timeout(seconds):
                text: object = await chat.complete(ask.system, ask.user, schema=ask.schema)  # type: ignore[misc]  # it is async
            return text if isinstance(text, str) else _no_text(model_name(chat), text)
    except Exception as error:  # the user's model may raise anything
        return model_error(model_name(chat), error)


# -- errors ----------------------------------------------------------------------------------------

# HTTP: the request is wrong, and the same request will be. Not 408, 409, 425 and 429.
_REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 410, 413, 415, 422})
_REFUSED = re.compile(
    r"(unknown|invalid) model|model\b.{0,60}\b(not found|does not exist)"
    r"|(invalid|incorrect) api key",
    re.IGNORECASE | re.DOTALL,
)
_CAUSES = 8  # of an error that are looked at


def model_error(model: str, error: BaseException) -> ModelFailedError:
    """Make the error for what a model raised, with that as its `__cause__`."""
    kind = ModelRefusedError if is_refusal(error) else ModelFailedError
    reason = error.reason if isinstance(error, ModelFailedError) else repr(error)
    made = kind(model=model, reason=reason)
    made.__cause__ = error
    return made


def is_refusal(error: BaseException) -> bool:
    """Tell whether the same call would fail again: by its HTTP status, or as it cannot be made."""
    is_call = isinstance(error, TypeError) and "argument" in str(error)
    if is_call or isinstance(error, ModelRefusedError):
        return True
    return any(
        _status(one) in _REFUSALS or (_status(one) is None and _REFUSED.search(str(one)))
        for one in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _status(error: BaseException) -> int | None:
    """Read the HTTP status of a provider's error, wherever its package keeps it."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):  # of botocore
        held = response.get("ResponseMetadata")
        found = held.get("HTTPStatusCode") if isinstance(held, dict) else None
        return found if isinstance(found, int) else None
    for holder in (error, response):
        for name in ("status_code", "http_status", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and 100 <= found < 600:
                return int(found)
    return None
