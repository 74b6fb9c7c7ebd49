"""Records, changes and relations in mem0's shapes, and metadata as records store it.

    id, memory, hash, metadata, score, created_at, updated_at,
    user_id, agent_id, run_id, actor_id, role, attributed_to, expiration_date (where known),
    superseded_at (where no longer true), score_details

Times are ISO 8601 in UTC; `hash` is the MD5 of the text. Names in relations are lower case with
underscores, as in 1.x. There `search` answers `destination` where `add` and `get_all` answer
`target`; here every triple has both.

Metadata keeps its own keys, so that other frameworks' filters find it. What mem0 promotes to the
top of a memory is stored with the prefix `mem0_`, and so is any key that begins with the prefix:

- `mem0_role`, `mem0_actor_id`: the speaker of a message that is stored verbatim.
- `mem0_attributed_to`: as in 2.x.
- `mem0_created_at`: when it was created, if the caller gave that.
- `mem0_expiration_date`: its last day, as given.
- `mem0_agent_id`, `mem0_run_id`: the ids of its scope, for conditions inside a filter.

`user_id`, `agent_id`, `run_id` and `actor_id` in metadata are dropped with a warning: metadata
never decides who owns a memory. What cannot be used raises a `ValidationError`.
"""

import hashlib
import logging
import math
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from commonplace import Change, InvalidRecordError, Match, Record, Relation, Scope, Version
from commonplace.agents import UNSET, Unset, check_metadata, short_repr

from .exceptions import ValidationError
from .scope_ids import to_ids

logger: logging.Logger = logging.getLogger("commonplace_mem0")
Triple = dict[str, str]
PROMOTED = ("actor_id", "role", "attributed_to", "expiration_date", "created_at")
_IDENTITY = ("user_id", "agent_id", "run_id", "actor_id")
_PREFIX = "mem0_"
_DEEPEST = 100  # far beyond what the core takes


# -- metadata -----------------------------------------------------------------------------------


def promoted_key(name: str) -> str:
    """Name the key under which a record stores what mem0 promotes."""
    return _PREFIX + name


def stored_key(name: str) -> str:
    """Name the key under which a record stores this key of the caller."""
    return _PREFIX + name if name in PROMOTED or name.startswith(_PREFIX) else name


def to_stored(given: Any, *, scope: Scope | None = None) -> dict[str, Any]:
    """Convert the caller's metadata to that of a record; the caller's object is not changed."""
    if given is not None and not isinstance(given, Mapping):
        reason = "must be a mapping. Give a dict of JSON values."
        raise ValidationError.of("metadata", given, reason)
    stored: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if not isinstance(name, str):
            raise ValidationError(f"The metadata key {short_repr(name)} must be a string.")
        if name in _IDENTITY:
            logger.warning(
                "metadata[%r] is ignored: metadata never decides who owns a memory", name
            )
        elif name == "created_at":
            stored[stored_key(name)] = parse_time(value).isoformat()
        elif name == "expiration_date":
            stored[stored_key(name)] = parse_date(value)
        else:
            stored[stored_key(name)] = to_json(value)
    try:
        check_metadata(stored)
    except InvalidRecordError as error:
        raise ValidationError(str(error)) from error
    if scope is not None:
        ids = {promoted_key("agent_id"): scope.agent_id, promoted_key("run_id"): scope.session_id}
        stored |= {name: value for name, value in ids.items() if value is not None}
    return stored


def from_stored(stored: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Split what `to_stored` wrote into the caller's metadata, or None, and what is promoted."""
    given: dict[str, Any] = {}
    promoted: dict[str, Any] = {}
    for key, value in stored.items():
        name = key.removeprefix(_PREFIX)
        if name == key or name.startswith(_PREFIX):
            given[name] = value
        elif name in PROMOTED and value is not None:
            promoted[name] = value
    return given or None, promoted


def to_json(value: Any, room: int = _DEEPEST) -> Any:
    """Convert times, UUIDs and sets inside a value to JSON.

    Args:
        room: how much deeper it may be nested; what is deeper becomes `...`, which is refused.
    """
    if not room:
        return ...
    if isinstance(value, date):  # a datetime too
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): to_json(item, room - 1) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [to_json(item, room - 1) for item in value]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items
    return value


def parse_time(value: Any) -> datetime:
    """Read a time: a datetime, an ISO text or seconds since 1970; without a zone it is in UTC."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (OSError, OverflowError, TypeError, ValueError):
        message = f"{short_repr(value)} must be a time. Give an ISO 8601 text."
        raise ValidationError(message) from None


def parse_date(value: Any) -> str | None:
    """Read an expiration date as `YYYY-MM-DD`; None stays None."""
    if value is None:
        return None
    try:
        day = value if isinstance(value, date) else date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValidationError(
            f"expiration_date must be a valid date in YYYY-MM-DD format, not {short_repr(value)}."
        ) from None
    return day.isoformat()[:10]


def expiry_of(day: str | None) -> datetime | None:
    """Return the end of a memory's last day in UTC; None, for never, without one.

    The last day of the calendar means never too.
    """
    if day is None or date.fromisoformat(day) == date.max:
        return None
    return datetime.combine(date.fromisoformat(day), time(), UTC) + timedelta(days=1)


# -- memories -----------------------------------------------------------------------------------


def to_item(record: Record, score: float | Unset | None = UNSET) -> dict[str, Any]:
    """Convert a record; without a score it has no such key."""
    metadata, promoted = from_stored(record.metadata)
    item: dict[str, Any] = {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata,
        **({} if score is UNSET else {"score": score}),
        "created_at": promoted.pop("created_at", None) or _iso(record.created_at),
        "updated_at": _iso(record.updated_at),
        **to_ids(record.scope),
    }
    promoted = {"actor_id": record.name, "role": record.role, **promoted}
    item |= {name: promoted[name] for name in PROMOTED if promoted.get(name) is not None}
    if record.valid_to is not None:
        item["superseded_at"] = _iso(record.valid_to)
    return item


def to_search_item(match: Match, *, threshold: float, explain: bool) -> dict[str, Any]:
    """Convert a match.

    The explanation has mem0's keys: what cosine, words and relations add to the logit of the score,
    that logit, and all its parts.
    """
    item = to_item(match.record, match.score)
    if explain:
        parts = {name: value for name, value in match.score_details.items() if value}
        item["score_details"] = {
            "semantic_score": sum(parts.get(name, 0.0) for name in ("cosine", "cosine_squared")),
            "bm25_score": sum(parts.get(name, 0.0) for name in ("lexical", "coverage", "codes")),
            "entity_boost": sum(parts.get(name, 0.0) for name in ("relation", "two_relations")),
            "raw_score": math.fsum(parts.values()),
            "max_possible_score": 1.0,
            "final_score": match.score,
            "threshold": threshold,
            "parts": parts,
        }
    return item


def to_add_item(change: Change, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Convert a change by `add`.

    The event of a known memory is `NONE`, or `UPDATE` if metadata or an expiry was new to it.
    """
    item = {"id": change.id, "memory": change.text, "event": change.event}
    if change.event == "UPDATE":
        item["previous_memory"] = change.previous
    return {**item, **(extra or {})}


def to_history(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """Convert every version of one memory, oldest first."""
    rows = []
    created: str | None = None
    speaker: dict[str, Any] = {}
    for version in versions:
        promoted = from_stored(version.metadata)[1]
        if version.event == "ADD":
            created = promoted.get("created_at") or _iso(version.at)
        if version.event != "DELETE":
            speaker = promoted
        rows.append(
            {
                "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{version.record_id}:{version.version}")),
                "memory_id": version.record_id,
                "old_memory": version.previous,
                "new_memory": version.text,
                "event": "ADD" if version.event == "RESTORE" else version.event,
                "created_at": created,
                "updated_at": _iso(version.at),
                "is_deleted": version.event == "DELETE",
                "actor_id": speaker.get("actor_id"),
                "role": speaker.get("role"),
            }
        )
    return rows


# -- relations ----------------------------------------------------------------------------------


def to_triples(relations: Sequence[Relation], limit: int | None = None) -> list[Triple]:
    """Convert at most `limit` relations, each once, in their order."""
    triples = dict.fromkeys(
        tuple(map(_node_name, (relation.subject, relation.predicate, relation.object)))
        for relation in relations
    )
    return [
        {"source": source, "relationship": name, "target": target, "destination": target}
        for source, name, target in triples
    ][:limit]


def relations_of(relations: Sequence[Relation], ids: Sequence[str]) -> list[Relation]:
    """Select the relations that records state, in the order of the records."""
    place = {record_id: n for n, record_id in enumerate(ids)}
    stated = [relation for relation in relations if not place.keys().isdisjoint(relation.supports)]
    return sorted(
        stated, key=lambda relation: min(place.get(id_, len(place)) for id_ in relation.supports)
    )


def superseded_ids(relations: Sequence[Relation], ids: Collection[str]) -> list[str]:
    """List the records whose relations ended when those that these records state began."""
    found: dict[str, None] = {}
    for new in relations_of(relations, list(ids)):
        for old in relations:
            same = (old.subject, old.predicate) == (new.subject, new.predicate)
            if same and new.valid_from is not None and old.valid_to == new.valid_from:
                found |= dict.fromkeys(old.supports)
    return [record_id for record_id in found if record_id not in ids]


def _node_name(name: str) -> str:
    return re.sub(r"[^\w]+", "_", name.strip().lower()).strip("_") or name


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
