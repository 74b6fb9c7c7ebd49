"""Records, versions, changes and relations in mem0's shapes, keys in mem0's order.

    id, memory, hash, metadata, score, created_at, updated_at,
    user_id, agent_id, run_id, actor_id, role, attributed_to, expiration_date (those there are),
    superseded_at (of what is no longer true), score_details

Times are ISO 8601 in UTC; `hash` is the MD5 of the text. A relation is lower case with underscores,
as in 1.x: its `search` has `destination` where its `add` and `get_all` have `target`; every triple
here has both, so that code for either reads it.
"""

import hashlib
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace import Change, Match, Record, Relation, Version

from .metadata import from_stored
from .scope import to_ids

NO_SCORE = object()
Triple = dict[str, str]
_LAST = ("actor_id", "role", "attributed_to", "expiration_date")


def to_item(record: Record, score: object = NO_SCORE) -> dict[str, Any]:
    """Write a record; without a score the key is left out."""
    metadata, promoted = from_stored(record.metadata)
    item: dict[str, Any] = {
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
    item |= {name: promoted[name] for name in _LAST if promoted.get(name) is not None}
    if record.valid_to is not None:
        item["superseded_at"] = _iso(record.valid_to)
    return item


def to_search_item(match: Match, *, explain: bool) -> dict[str, Any]:
    """Write a match; its score is its relevance, which no other record changes."""
    item = to_item(match.record, match.relevance)
    if explain:
        parts = {name: value for name, value in match.score_details.items() if value}
        item["score_details"] = {
            "score": match.relevance,
            "rank": match.score,
            "rank_parts": parts,
        }
    return item


def to_add_item(change: Change, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write what an addition did to one memory.

    Its event is `NONE` if it was known, `UPDATE` if metadata or an expiry was new to it.
    """
    item = {"id": change.id, "memory": change.text, "event": change.event}
    if change.event == "UPDATE":
        item["previous_memory"] = change.previous
    return {**item, **(extra or {})}


def to_history(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """Write every change of one memory, oldest first."""
    rows = []
    created: str | None = None
    speaker: dict[str, Any] = {}
    for one in versions:
        promoted = from_stored(one.metadata)[1]
        if one.event == "ADD":
            created = promoted.get("created_at") or _iso(one.at)
        if one.event != "DELETE":
            speaker = promoted
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
                "actor_id": speaker.get("actor_id"),
                "role": speaker.get("role"),
            }
        )
    return rows


def to_triple(relation: Relation) -> Triple:
    """Write a relation."""
    target = _node_name(relation.object)
    return {
        "source": _node_name(relation.subject),
        "relationship": _node_name(relation.predicate),
        "target": target,
        "destination": target,
    }


def to_triples(relations: Sequence[Relation], limit: int) -> list[Triple]:
    """Write at most `limit` relations, each once, in their order."""
    triples = (to_triple(one) for one in relations)
    return list({tuple(one.values()): one for one in triples}.values())[:limit]


def to_added_relations(relations: Sequence[Relation], ids: Collection[str]) -> dict[str, Any]:
    """Write the relations that added records state: one list a triple, none of them empty."""
    stated = relations_of(relations, list(ids))
    return {"deleted_entities": [], "added_entities": [[to_triple(one)] for one in stated]}


def relations_of(relations: Sequence[Relation], ids: Sequence[str]) -> list[Relation]:
    """Pick the relations that records state, in the order of the records."""
    place = {one: n for n, one in enumerate(ids)}
    stated = [
        (min(place[one] for one in relation.supports if one in place), relation)
        for relation in relations
        if not place.keys().isdisjoint(relation.supports)
    ]
    return [relation for _, relation in sorted(stated, key=lambda one: one[0])]


def superseded_ids(relations: Sequence[Relation], ids: Collection[str]) -> list[str]:
    """List the records whose value held until the value that these records state began."""
    found: dict[str, None] = {}
    for new in (one for one in relations if not set(ids).isdisjoint(one.supports)):
        for old in relations:
            same = (old.subject, old.predicate) == (new.subject, new.predicate)
            if same and new.valid_from is not None and old.valid_to == new.valid_from:
                found |= dict.fromkeys(one for one in old.supports if one not in ids)
    return list(found)


def _node_name(name: str) -> str:
    return re.sub(r"[^\w]+", "_", name.strip().lower()).strip("_") or name


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
