"""Records, versions and changes in mem0's shapes, keys in mem0's order.

    id, memory, hash, metadata, score, created_at, updated_at,
    user_id, agent_id, run_id, actor_id, role, attributed_to, expiration_date (those there are),
    superseded_at (of what is no longer true), score_details

Times are ISO 8601 in UTC; `hash` is the MD5 of the text.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace import Change, Match, Record, Version

from .metadata import from_stored
from .scopes import to_ids

NO_SCORE = object()
_LAST = ("actor_id", "role", "attributed_to", "expiration_date")


def to_item(record: Record, score: object = NO_SCORE) -> dict[str, Any]:
    """Write a record; without a score the key is left out."""
    metadata, promoted = from_stored(record.metadata)
    found: dict[str, Any] = {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata,
        **({} if score is NO_SCORE else {"score": score}),
        "created_at": promoted.get("created_at") or _iso(record.created_at),
        "updated_at": _iso(record.updated_at),
        **to_ids(record.scope),
    }
    promoted = {"actor_id": record.name, "role": record.role, **promoted}
    found |= {name: promoted[name] for name in _LAST if promoted.get(name) is not None}
    if record.valid_to is not None:
        found["superseded_at"] = _iso(record.valid_to)
    return found


def to_found(match: Match, *, explain: bool) -> dict[str, Any]:
    """Write a match; its score is how far it answers by itself, rounded like its parts."""
    found = to_item(match.record, match.relevance)
    if explain:
        parts = {name: value for name, value in match.score_details.items() if value}
        found["score_details"] = {
            "score": match.relevance,
            "rank": match.score,
            "rank_parts": parts,
        }
    return found


def to_added(change: Change, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write what an addition did to one memory; `NONE` says that it was known."""
    return {"id": change.id, "memory": change.text, "event": change.event, **(extra or {})}


def to_history(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """Write every change of one memory, oldest first."""
    rows = []
    created: str | None = None
    said: dict[str, Any] = {}
    for one in versions:
        promoted = from_stored(one.metadata)[1]
        if one.event == "ADD":
            created = promoted.get("created_at") or _iso(one.at)
        if one.event != "DELETE":
            said = promoted
        rows.append(
            {
                "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{one.record_id}:{one.version}")),
                "memory_id": one.record_id,
                "old_memory": one.previous,
                "new_memory": one.text,
                "event": one.event,
                "created_at": created,
                "updated_at": _iso(one.at),
                "is_deleted": one.event == "DELETE",
                "actor_id": said.get("actor_id"),
                "role": said.get("role"),
            }
        )
    return rows


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
