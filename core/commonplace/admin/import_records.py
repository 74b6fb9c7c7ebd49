"""Memories of another system, with their own ids, times and past, brought into a store of ours.

They go through the rules of every write, as the changes that they once were, so that relations
settle, and what was changed or forgotten here since stays so.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ..errors import InvalidRecordError
from ..ingest.changes import dated
from ..memory import Memory
from ..model import Fact, Record, Relation, Scope, now
from ..ports.stores import Outcome, Put, Remove
from ..settings import Settings
from ..validation import check_text, check_time
from .backfill import batches, points_of

_BATCH = 64
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 11  # as the journal counts, so that an old change is older than an erasure


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory of another system.

    Attributes:
        record: as it is now, or was before it was deleted. Its `id` is a UUID; `created_at` and
            `updated_at` are when it was first written and when it got this text; `version` and
            `position` are given out by the store.
        past: the texts that it had before, oldest first, each with the moment it was written.
        relations: that it states; those of one value hold from `occurred_at` on if they do not
            say since when.
        deleted_at: when it was deleted; None while it lives.

    Raises:
        InvalidRecordError: something of it cannot be stored.
    """

    record: Record
    past: tuple[tuple[str, datetime], ...] = ()
    relations: tuple[Relation, ...] = ()
    deleted_at: datetime | None = None

    def __post_init__(self) -> None:
        try:
            uuid.UUID(self.record.id)
        except (AttributeError, TypeError, ValueError):
            raise InvalidRecordError(
                field="id", value=self.record.id, reason="is no UUID"
            ) from None
        self.fact()
        for text, at in self.past:
            check_text(text)
            check_time("at", at)
        for name in ("created_at", "updated_at", "occurred_at"):
            check_time(name, getattr(self.record, name))
        check_time("deleted_at", self.deleted_at)

    def fact(self) -> Fact:
        """Say it as a caller would, by the rules for what may be said."""
        one = self.record
        return Fact(
            text=one.text,
            kind=one.kind,
            metadata=one.metadata,
            at=one.occurred_at,
            expires_at=one.expires_at,
            importance=one.importance,
            pinned=one.pinned,
            situation=one.situation,
            outcome=one.outcome,
            relations=self.relations,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What became of the memories, each counted once.

    Attributes:
        added: new here, and live.
        known: live here already, as they were or as they were changed since.
        deleted: only their history is kept.
        refused: were deleted or erased here since, or their id is another owner's.
    """

    added: int = 0
    known: int = 0
    deleted: int = 0
    refused: int = 0


def load(
    memory: Memory, told: Iterable[Told], *, progress: Callable[[int], None] | None = None
) -> Loaded:
    """Bring memories of another system into an open memory, 64 at a time.

    They do not pass through the journal: what was interrupted is simply loaded again, which
    changes nothing of what is there.

    Args:
        told: in the order in which they take their places in sessions.
        progress: is told after each batch how many are done.

    Raises:
        LoopRequiredError: the memory's embedder is asynchronous.
        ModelFailedError: the embedder failed; earlier batches are there.
    """
    counts: Counter[str] = Counter()
    for batch in batches(iter(told), _BATCH):
        counts.update(_bring(memory, batch))
        if progress:
            progress(counts.total())
    memory._runtime.engines.index.flush()  # noqa: SLF001 -- the operator's way in
    return Loaded(**counts)


def known(memory: Memory, told: Iterable[Told]) -> set[str]:
    """Tell which memories of another system are live here, expired or not, by id."""
    graph = memory._runtime.engines.graph  # noqa: SLF001 -- the operator's way in
    found: set[str] = set()
    for batch in batches(iter(told), _BATCH):
        by_scope: dict[Scope, list[str]] = {}
        for one in batch:
            by_scope.setdefault(one.record.scope, []).append(one.record.id)
        for scope, ids in by_scope.items():
            found.update(record.id for record in graph.get(scope, ids, include_expired=True))
    return found


def _bring(memory: Memory, batch: Sequence[Told]) -> list[str]:
    """Apply a batch, the graph first; answer what became of each."""
    engines = memory._runtime.engines  # noqa: SLF001 -- the operator's way in
    before = known(memory, batch)
    steps = [_changes(one, memory._settings) for one in batch]  # noqa: SLF001 -- as above
    answers = iter(engines.graph.apply([step for some in steps for step in some]))
    outcomes = [[next(answers) for _ in some] for some in steps]
    ends = [some[-1] for some in outcomes]
    fresh = [
        end.record
        for one, end in zip(batch, ends, strict=True)
        if end.record is not None and end.record.indexed_text == one.record.indexed_text
    ]
    limit = memory._settings.max_embed_chars  # noqa: SLF001 -- as above
    vectors = engines.index.vectors(fresh)  # of an earlier load
    engines.index.upsert(points_of(fresh, memory.embedder, limit=limit, known=vectors))
    touched = {one.id: one for some in outcomes for end in some for one in end.touched}
    engines.index.amend(list(touched.values()))
    for one, end in zip(batch, ends, strict=True):
        if end.record is None:
            engines.index.delete(one.record.scope, [one.record.id])
    return [_verdict(*pair, before) for pair in zip(batch, ends, strict=True)]


def _verdict(one: Told, end: Outcome, before: Collection[str]) -> str:
    if end.change.event == "DELETE":
        return "deleted"
    if end.record is None:
        return "refused"
    return "known" if one.record.id in before else "added"


def _changes(one: Told, settings: Settings) -> list[Put | Remove]:
    """Say a memory as the changes that led to it, each with the version of its moment."""
    record = one.record
    texts = [text for text, _ in one.past] + [record.text]
    moments = [at for _, at in one.past] + [record.updated_at]
    moments[0] = record.created_at
    versions: list[int] = []
    for at in moments + ([one.deleted_at] if one.deleted_at else []):
        versions.append(max(_version(at), versions[-1] + 1 if versions else 1))
    said = dated(one.fact(), record.created_at, settings.is_single_valued)
    turns = record.kind == "episode" and record.scope.session_id is not None
    puts = [
        Put(
            record=replace(record, text=text, version=version, updated_at=at, position=None),
            relations=None if n else said,
            replace=n > 0,
            in_session=turns and not n,
            fields=("text",) if n else (),
        )
        for n, (text, version, at) in enumerate(zip(texts, versions, moments, strict=False))
    ]
    if one.deleted_at is None:
        return [*puts]
    gone = Remove(id=record.id, scope=record.scope, version=versions[-1], at=one.deleted_at)
    return [*puts, gone]


def _version(at: datetime) -> int:
    """Count as the journal does, never past the present: a change after this one must win."""
    return max(1, (min(at, now()) - _YEAR_2020) // timedelta(milliseconds=1) << _COUNTER_BITS)
