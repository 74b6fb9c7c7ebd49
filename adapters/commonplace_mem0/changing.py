"""Update, delete, erase, reset: found by id, done in the scope of whose memory it is."""

from collections.abc import Mapping
from typing import Any

from commonplace import RecordNotFoundError, Scope

from .calls import UNSET, Unset
from .exceptions import MemoryNotFoundError, ValidationError, VectorStoreError
from .metadata import own, to_day, to_end, to_stored
from .reading import owner_of
from .steps import Step, core

UPDATED = {"message": "Memory updated successfully!"}
DELETED = {"message": "Memory deleted successfully!"}
ERASED = {"message": "Memories deleted successfully!"}
PATIENCE = 30.0  # seconds


def update(
    memory_id: object,
    text: str | None,
    metadata: Mapping[str, Any] | None,
    expiration_date: Any,
) -> Step[dict[str, str]]:
    """Change a memory; metadata is added to what it has, and never moves it to somebody else."""
    if text is None and metadata is None and expiration_date is UNSET:
        raise ValidationError(
            "At least one of text, metadata, or expiration_date must be provided."
        )
    given: dict[str, Any] = {}
    stored = to_stored(metadata)
    if not isinstance(expiration_date, Unset):
        stored[own("expiration_date")] = to_day(expiration_date)
    if own("expiration_date") in stored:
        given["expires_at"] = to_end(stored[own("expiration_date")])
    if stored:
        given |= {"metadata": stored, "merge": True}
    try:
        scope = yield from owner_of(memory_id)
        if text is not None or given:
            yield core("update", str(memory_id), text, scope, **given)
    except RecordNotFoundError as error:
        raise MemoryNotFoundError(
            f"Memory with id {memory_id} not found. Please provide a valid 'memory_id'"
        ) from error
    return dict(UPDATED)


def delete(memory_id: object) -> Step[dict[str, str]]:
    """Delete a memory; its history tells so."""
    try:
        scope = yield from owner_of(memory_id)
        yield core("delete", str(memory_id), scope)
    except RecordNotFoundError as error:
        raise MemoryNotFoundError(f"Memory with id {memory_id} not found") from error
    return dict(DELETED)


def delete_all(scope: Scope) -> Step[dict[str, str]]:
    """Erase all that a scope covers, with its history and relations."""
    yield core("forget", scope)
    return dict(ERASED)


def reset() -> Step[None]:
    """Erase every scope of this store, and nothing else in its database.

    Raises:
        VectorStoreError: what was added without waiting is not finished, and will still come.
    """
    left = yield core("flush", PATIENCE)  # whose they are is known when they are written
    letters = yield core("dead_letters")
    scopes = {*(yield core("list_scopes")), *(one.scope for one in letters)}
    users = {one.user_id for one in scopes if one.user_id is not None}
    whole = [Scope(user_id=user) for user in sorted(users)]
    for scope in [*whole, *(one for one in scopes if one.user_id is None)]:
        yield core("forget", scope)
    if left.pending:
        raise VectorStoreError(
            f"{left.pending} additions are still on their way. See flush() for what they wait for, "
            "and call reset() again."
        )


def flush(timeout: float) -> Step[dict[str, Any]]:
    """Wait for what is on its way, and tell what is left."""
    left = yield core("flush", timeout)
    failed = []
    if left.dead:
        letters = yield core("dead_letters")
        failed = [{"ticket": one.operation, "reason": one.reason} for one in letters]
    return {"pending": left.pending, "failed": failed}
