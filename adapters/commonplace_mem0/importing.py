"""Bring the memories of a mem0 over: their ids, owners, texts, metadata, times and past.

    import_mem0(memory, Source(folder="/tmp/qdrant", history="~/.mem0/history.db"))  # only tells
    import_mem0(memory, source, dry_run=False)

- `data` is the text; `user_id`, `agent_id`, `run_id` the scope; `created_at` and `updated_at` the
  times, in UTC whatever zone they were written in; `expiration_date` when it ends.
- `role`, `actor_id` and every other key stay where the shim reads them.
- the history's rows are the texts it had before; of what was deleted nobody knows the owner any
  more, so it is counted and left.
- a relation of 1.x goes to a memory of its owner that names both ends, else to a fact of its own.
- `hash`, `text_lemmatized` and the collection of entities are dropped: they are computed here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from commonplace import CommonplaceError, Memory, Record, Scope
from commonplace.admin import Told, known, load

from .edges import Edges, to_time
from .metadata import own, to_day, to_end, to_stored
from .scopes import IDS, to_scope
from .sources import Held, Source, read_edges, read_history, read_points

_DROPPED = ("data", "hash", "text_lemmatized", "created_at", "updated_at", *IDS)
_OWN = ("role", "actor_id", "attributed_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did, or would do.

    Attributes:
        scopes: how many memories each owner has, in the order of reading.
        added, known, refused: how many are new here, were here, could not be brought.
        reasons: why memories were refused, by id.
        ownerless: histories of deleted memories, which name no owner.
    """

    scopes: Mapping[Scope, int] = field(default_factory=dict)
    added: int = 0
    known: int = 0
    refused: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)
    ownerless: int = 0


def import_mem0(
    memory: Memory,
    source: Source,
    *,
    dry_run: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Bring memories over, owner by owner; what was interrupted is simply called again.

    Args:
        dry_run: only tell what there is; True by default.
        progress: is told how many are done, of how many.
    """
    history = read_history(source)
    told, reasons = to_told(read_points(source), history, read_edges(source))
    told.sort(key=_by_owner)
    scopes = Counter(one.record.scope for one in told)
    deleted = set(history) - {one.record.id for one in told} - set(reasons)
    counts: Counter[str] = Counter(refused=len(reasons))
    done = 0
    for _, group in groupby(told, key=lambda one: one.record.scope):
        some = list(group)
        if dry_run:
            here = len(known(memory, some))
            counts.update(added=len(some) - here, known=here)
        else:  # also what is here already: what was cut may have left it out of the index
            did = load(memory, some, progress=_of_all(progress, done, len(told)))
            counts.update(added=did.added, known=did.known, refused=did.refused)
        done += len(some)
        if progress is not None:
            progress(done, len(told))
    return Imported(scopes=scopes, reasons=reasons, ownerless=len(deleted), **counts)


def to_told(
    held: Iterator[Held],
    history: Mapping[str, Sequence[Mapping[str, Any]]],
    edges: Sequence[Mapping[str, Any]] = (),
) -> tuple[list[Told], dict[str, str]]:
    """Write what mem0 held as memories of ours; what cannot be is told by id, with the reason."""
    told: list[Told] = []
    reasons: dict[str, str] = {}
    for one in held:
        try:
            told.append(_told(one, history.get(one.id, ())))
        except CommonplaceError as error:
            reasons[one.id] = str(error)
    stated = Edges(told)
    for number, edge in enumerate(edges):
        try:
            stated.attach(edge)
        except CommonplaceError as error:
            reasons[f"relation {number}"] = str(error)
    return told, reasons


def _told(held: Held, history: Sequence[Mapping[str, Any]]) -> Told:
    payload = held.payload
    scope = to_scope(payload)
    created = (
        to_time(payload.get("created_at"))
        or to_time(payload.get("updated_at"))
        or datetime.now(UTC)
    )
    updated = max(created, to_time(payload.get("updated_at")) or created)
    metadata = {name: value for name, value in payload.items() if name not in (*_DROPPED, *_OWN)}
    stored = to_stored(metadata, scope=scope)
    stored |= {own(name): payload[name] for name in _OWN if payload.get(name) is not None}
    record = Record(
        id=held.id,
        text=str(payload.get("data") or ""),
        scope=scope,
        kind="procedure" if payload.get("memory_type") == "procedural_memory" else "fact",
        metadata=stored,
        origin="import",
        created_at=created,
        updated_at=updated,
        occurred_at=created,
        expires_at=to_end(to_day(payload.get("expiration_date"))),
    )
    return Told(record=record, past=_past(history, created))


def _past(
    history: Sequence[Mapping[str, Any]], created: datetime
) -> tuple[tuple[str, datetime], ...]:
    """List the texts that a memory had before its present one."""
    said = [one for one in history if one["event"] in ("ADD", "UPDATE") and one["new_memory"]]
    moments = [
        created if one["event"] == "ADD" else to_time(one.get("updated_at")) or created
        for one in said
    ]
    texts = [(str(one["new_memory"]), at) for one, at in zip(said, moments, strict=True)]
    return tuple(sorted(texts, key=lambda one: one[1])[:-1])


def _by_owner(one: Told) -> tuple[str, ...]:
    ids = one.record.scope
    return (*(name or "" for name in (ids.user_id, ids.agent_id, ids.session_id)), one.record.id)


def _of_all(
    progress: Callable[[int, int], None] | None, done: int, number: int
) -> Callable[[int], None] | None:
    return None if progress is None else lambda some: progress(done + some, number)
