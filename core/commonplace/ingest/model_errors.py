"""Errors of models: what a provider raised, told apart by whether a new attempt may help."""

import re
from collections.abc import Iterator
from typing import Any

from ..errors import ModelFailedError, ModelRefusedError

# HTTP: the request is wrong, and the same request will be. Not 408, 409, 425 and 429.
_REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 410, 413, 415, 422})
_REFUSED = re.compile(
    r"(unknown|invalid) model|model\b.{0,60}\b(not found|does not exist)"
    r"|(invalid|incorrect) api key",
    re.IGNORECASE | re.DOTALL,
)
_CAUSES = 8  # of an error that are looked at


def model_error(model: str, error: BaseException) -> ModelFailedError:
    """Make the error for what a model raised, with that as its `__cause__`.

    Args:
        model: its id.
    """
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
