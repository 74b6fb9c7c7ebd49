"""Metadata of a memory as a record stores it, and back.

mem0 takes any key; a record takes identifiers and reserves some of them. What fits is stored as it
is, so that other frameworks' filters find it; any other key is stored by its hash, next to its
name. What mem0 promotes to the top of a memory is stored under `mem0_` names:

- `mem0_role`, `mem0_actor_id`: the speaker of a message that was stored verbatim.
- `mem0_attributed_to`: as 2.x has it.
- `mem0_created_at`: when it was created, if the caller gave that.
- `mem0_expiration_date`: its last day, as it was given.
- `mem0_agent_id`, `mem0_run_id`: the ids of its scope, for conditions inside a filter.

`user_id`, `agent_id`, `run_id` and `actor_id` in metadata are dropped with a warning: metadata
never decides who owns a memory.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from commonplace import Scope
from commonplace.filters import FIELDS

from .exceptions import ValidationError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
PROMOTED = ("role", "actor_id", "attributed_to", "created_at", "expiration_date")
_IDENTITY = ("user_id", "agent_id", "run_id", "actor_id")
_PREFIX = "mem0_"
_VALUE, _NAME = f"{_PREFIX}v_", f"{_PREFIX}n_"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_RESERVED = {*FIELDS, "session_id", *PROMOTED}


def promoted_key(name: str) -> str:
    """Name the key under which a record stores what mem0 promotes."""
    return _PREFIX + name


def stored_key(name: str) -> str:
    """Name the key under which a record stores this key of the caller."""
    return name if _fits(name) else _VALUE + _hash(name)


def to_stored(given: Mapping[str, Any] | None, *, scope: Scope | None = None) -> dict[str, Any]:
    """Write the caller's metadata as a record stores it; the caller's object is not changed.

    Raises:
        ValidationError: it is not a mapping, or a key is not a string.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ValidationError(f"metadata={given!r} must be a mapping. Give a dict of JSON values.")
    stored: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if not isinstance(name, str):
            raise ValidationError(f"The metadata key {name!r} must be a string.")
        if name in _IDENTITY:
            logger.warning(
                "metadata[%r] is ignored: metadata never decides who owns a memory", name
            )
        elif name == "created_at":
            stored[promoted_key(name)] = parse_time(value).isoformat()
        elif name == "expiration_date":
            stored[promoted_key(name)] = parse_date(value)
        elif name == "role":
            stored[promoted_key(name)] = to_json(value)
        elif _fits(name):
            stored[name] = to_json(value)
        else:
            stored |= {stored_key(name): to_json(value), _NAME + _hash(name): name}
    if scope is not None:
        ids = {promoted_key("agent_id"): scope.agent_id, promoted_key("run_id"): scope.session_id}
        stored |= {name: value for name, value in ids.items() if value is not None}
    return stored


def from_stored(stored: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Read what `to_stored` wrote: the caller's metadata, or None, and what is promoted."""
    given: dict[str, Any] = {}
    promoted: dict[str, Any] = {}
    for key, value in stored.items():
        if key.startswith(_NAME):
            given[value] = stored.get(_VALUE + key.removeprefix(_NAME))
        elif not key.startswith(_PREFIX):
            given[key] = value
        elif key.removeprefix(_PREFIX) in PROMOTED and value is not None:
            promoted[key.removeprefix(_PREFIX)] = value
    return given or None, promoted


def to_json(value: Any) -> Any:
    """Turn times, UUIDs and sets inside a value into what JSON has."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(to_json, value), key=repr)
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    return value


def parse_time(value: Any) -> datetime:
    """Read a time: a datetime, an ISO text or seconds since 1970; without a zone it is in UTC.

    Raises:
        ValidationError: it is none of them.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (OSError, OverflowError, TypeError, ValueError):
        raise ValidationError(f"{value!r} must be a time. Give an ISO 8601 text.") from None


def parse_date(value: Any) -> str | None:
    """Read an expiration date as `YYYY-MM-DD`; None stays None.

    Raises:
        ValidationError: it is not a date.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    try:
        return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
    except (TypeError, ValueError):
        raise ValidationError(
            "expiration_date must be a valid date in YYYY-MM-DD format."
        ) from None


def expiry_of(day: str | None) -> datetime | None:
    """Return when a memory with this last day expires: when the day is over in UTC.

    None for never, which is also what the last day of the calendar stands for.
    """
    if day is None or date.fromisoformat(day) == date.max:
        return None
    return datetime.combine(date.fromisoformat(day), time(), UTC) + timedelta(days=1)


def _fits(name: str) -> bool:
    is_identifier = _IDENTIFIER.fullmatch(name) is not None
    return is_identifier and not name.startswith(_PREFIX) and name not in _RESERVED


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]
