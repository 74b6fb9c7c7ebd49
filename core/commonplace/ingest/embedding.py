"""Checked calls of an embedder: one vector of unit length for each text, or an error.

An embedder that gives tokens too is asked for both at once.
"""

import inspect
import math
from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..errors import InvalidVectorError, LoopRequiredError
from ..ports.models import Embedder, TokenEmbedder
from ..types import TokenEmbedding
from .model_errors import model_error

Purpose = Literal["query", "document"]


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
    """Embed texts with a synchronous embedder: a vector of unit length each, in their order.

    Args:
        limit: characters of each text that are embedded.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError, ModelRefusedError: it raised; its own error is the cause.
        InvalidVectorError: it returned something else than one finite, non-zero vector per text.
    """
    if is_async(embedder.embed):
        raise LoopRequiredError(call="embed", model=embedder.id)
    try:
        answer = _call(embedder, texts, purpose, limit)
    except (Exception, CancelledError) as error:  # the user's model may raise anything
        raise model_error(embedder.id, error) from error
    return _checked(embedder, len(texts), answer)


async def aembed(
    embedder: Embedder, texts: Sequence[str], *, purpose: Purpose, limit: int
) -> list[TokenEmbedding]:
    """Embed texts with an asynchronous embedder, on the running loop; else as `embed`."""
    try:
        answer = _call(embedder, texts, purpose, limit)
        answer = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # the user's model may raise anything
        raise model_error(embedder.id, error) from error
    return _checked(embedder, len(texts), answer)


def _call(embedder: Embedder, texts: Sequence[str], purpose: Purpose, limit: int) -> Any:
    given = [text[:limit] for text in texts]
    if isinstance(embedder, TokenEmbedder):
        return embedder.embed_tokens(given, purpose=purpose)
    return embedder.embed(given, purpose=purpose)


def is_async(method: object) -> bool:
    """Tell whether a model's method is written `async def`."""
    return inspect.iscoroutinefunction(inspect.unwrap(method))  # type: ignore[arg-type]  # callable


def _checked(embedder: Embedder, expected: int, answer: Any) -> list[TokenEmbedding]:
    if not isinstance(embedder, TokenEmbedder):
        rows = _normalize(embedder, expected, answer)
        return [TokenEmbedding(vector=row) for row in rows]
    size = embedder.token_dimensions
    try:
        rows = _normalize(embedder, expected, [one.vector for one in answer])
        tokens = [bytes(one.tokens) for one in answer]
    except (TypeError, AttributeError):
        reason = "must come as a list of TokenEmbedding"
        raise InvalidVectorError(reason=reason, expected=embedder.dimensions, got=0) from None
    for one in tokens:
        if len(one) % size:
            reason = f"must have tokens of {size} bytes each"
            raise InvalidVectorError(
                reason=reason, expected=embedder.dimensions, got=len(one) % size
            )
    return [TokenEmbedding(vector=row, tokens=some) for row, some in zip(rows, tokens, strict=True)]


def _normalize(embedder: Embedder, expected: int, vectors: object) -> Any:
    size = embedder.dimensions
    try:
        given = np.asarray(vectors)
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
    with np.errstate(over="ignore"):  # infinite then, and refused
        rows = given.astype(np.float32, copy=False)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise InvalidVectorError(reason="must be finite and not zero", expected=size, got=size)
    return rows / lengths
