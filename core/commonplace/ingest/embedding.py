"""Ask an embedder and believe nothing: count, length and numbers are checked, length made one."""

import inspect
from asyncio import CancelledError
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidVectorError, LoopRequiredError, ModelFailedError
from ..ports.models import Embedder

Vectors = NDArray[np.float32]


def embed(
    embedder: Embedder, texts: Sequence[str], *, purpose: Literal["query", "document"], limit: int
) -> Vectors:
    """Embed texts with a synchronous embedder: one row of unit length each.

    Args:
        limit: characters of each text that are embedded.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError: it raised.
        InvalidVectorError: it answered something else than one finite, non-zero vector per text.
    """
    if is_async(embedder.embed):
        raise LoopRequiredError(call="embed", model=embedder.id)
    try:
        answer = embedder.embed([text[:limit] for text in texts], purpose=purpose)
    except (Exception, CancelledError) as error:  # the user's model may raise anything
        raise ModelFailedError(model=embedder.id, reason=repr(error)) from error
    return check(embedder, len(texts), answer)


async def aembed(
    embedder: Embedder, texts: Sequence[str], *, purpose: Literal["query", "document"], limit: int
) -> Vectors:
    """Embed texts with an asynchronous embedder, on the running loop; else as `embed`."""
    try:
        answer = embedder.embed([text[:limit] for text in texts], purpose=purpose)
        answer = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # the user's model may raise anything
        raise ModelFailedError(model=embedder.id, reason=repr(error)) from error
    return check(embedder, len(texts), answer)


def is_async(method: object) -> bool:
    """Tell whether a model's method is written `async def`."""
    return inspect.iscoroutinefunction(inspect.unwrap(method))  # type: ignore[arg-type]  # callable


def check(embedder: Embedder, expected: int, answer: object) -> Vectors:
    """Turn an answer into rows of unit length, or refuse it."""
    size = embedder.dimensions
    try:
        rows = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError):
        raise InvalidVectorError(reason="is no list of numbers", expected=size, got=0) from None
    if rows.ndim != 2 or len(rows) != expected or rows.shape[1] != size:
        got = rows.shape[1] if rows.ndim == 2 else 0
        reason = f"is not one of {expected} vectors of the right length"
        raise InvalidVectorError(reason=reason, expected=size, got=got)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise InvalidVectorError(reason="is zero or not finite", expected=size, got=size)
    unit: Vectors = rows / lengths
    return unit
