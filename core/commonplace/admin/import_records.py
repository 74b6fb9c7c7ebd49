"""Import of another system's memories with their own ids, times and history, and its tally.

They pass the rules of every write, as the changes that they once were, so that relations are
resolved, and what was changed or erased here since stays so.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import get_args

from ..ingest.changes import dated_relations
from ..ingest.redaction import Redaction
from ..memory import Memory
from ..ports.stores import Outcome, Put, Remove, version_at
from ..settings import Settings
from ..types import ORIGINS, Fact, Record, Relation, Role, Scope, now
from ..validation import check_choice, check_text, check_time, check_uuid
from .backfill import batches, points_of

_BATCH = 64
_VALUE = re.compile(r"=.*? (?=(?:must|has|is|cannot|belongs)\b)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRecord:
    """A memory of another system.

    Attributes:
        record: as it is now, or was before its deletion. Its `id` is a UUID; `created_at` and
            `updated_at` are when it was first written and when it got this text; the store sets
            `version` and `position`.
        past: its earlier texts, oldest first, each with the time of its writing.
        relations: that it states; single-valued ones hold from `occurred_at` on if they have no
            `valid_from`.
        deleted_at: time of its deletion; None while it is live.

    Raises:
        InvalidRecordError: a part of it cannot be stored.
    """

    record: Record
    past: tuple[tuple[str, datetime], ...] = ()
    relations: tuple[Relation, ...] = ()
    deleted_at: datetime | None = None

    def __post_init__(self) -> None:
        check_uuid("id", self.record.id)
        self.to_fact()
        check_choice("origin", self.record.origin, ORIGINS)
        check_choice("role", self.record.role, (*get_args(Role), None))
        for text, at in self.past:
            check_text(text)
            check_time("at", at)
        for name in ("created_at", "updated_at", "occurred_at"):
            check_time(name, getattr(self.record, name))
        check_time("deleted_at", self.deleted_at)

    def to_fact(self) -> Fact:
        """Convert it to the fact that a caller would state, which validates it."""
        record = self.record
        return Fact(
            text=record.text,
            kind=record.kind,
            metadata=record.metadata,
            namespace=record.namespace,
            at=record.occurred_at,
            expires_at=record.expires_at,
            importance=record.importance,
            pinned=record.pinned,
            situation=record.situation,
            outcome=record.outcome,
            relations=self.relations,
        )


@dataclass(slots=True)
class ImportTally:
    """What became of the things of another system, each counted once, by the kind of thing.

    Attributes:
        taken: by kind, in the plural; what would be taken, in a dry run.
        known: what was here already, and stays as it is.
        reasons: by kind and by reason, the ids of what was refused.
    """

    taken: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """The kinds of what was found, in the order of the first of each."""
        return list(dict.fromkeys((*self.taken, *self.known, *self.reasons)))

    def refused(self, kind: str) -> int:
        """Count what was refused of a kind."""
        return sum(map(len, self.reasons.get(kind, {}).values()))

    def refuse(self, kind: str, name: str, why: Exception | str) -> None:
        """Count one that cannot be taken over, by its id; a reason is kept without its value."""
        reason = _VALUE.sub(" ", str(why)) or type(why).__name__
        self.reasons.setdefault(kind, {}).setdefault(reason, []).append(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of the imported records, each counted once.

    Attributes:
        added: new here, and live.
        existing: live here before, unchanged or changed since.
        deleted: only their history is stored.
        refused: deleted or erased here since, or their id belongs to another owner.
    """

    added: int = 0
    existing: int = 0
    deleted: int = 0
    refused: int = 0


def import_records(
    memory: Memory,
    records: Iterable[ImportedRecord],
    *,
    progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Import records of another system into an open memory, 64 at a time.

    They do not pass through the journal: an interrupted import is repeated, which changes nothing
    of what is there. Their texts are redacted as those of every write.

    Args:
        records: in the order of their positions in sessions.
        progress: is called after each batch with the number of records that are done.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        ModelFailedError: the embedder failed; earlier batches are stored.
    """
    counts: Counter[str] = Counter()
    for batch in batches(iter(records), _BATCH):
        counts.update(_import_batch(memory, batch))
        if progress:
            progress(counts.total())
    memory._runtime.engines.index.flush()
    return ImportReport(**counts)


def find_existing(memory: Memory, records: Iterable[ImportedRecord]) -> set[str]:
    """Find the ids of those records that are live here, expired or not."""
    graph = memory._runtime.engines.graph
    found: set[str] = set()
    for batch in batches(iter(records), _BATCH):
        by_scope: dict[Scope, list[str]] = {}
        for imported in batch:
            by_scope.setdefault(imported.record.scope, []).append(imported.record.id)
        for scope, ids in by_scope.items():
            found.update(record.id for record in graph.get(scope, ids, include_expired=True))
    return found


def _import_batch(memory: Memory, batch: Sequence[ImportedRecord]) -> list[str]:
    """Apply a batch, the graph first; return each record's counter in `ImportReport`."""
    engines = memory._runtime.engines
    if memory._redaction is not None:
        batch = [_redacted(imported, memory._redaction) for imported in batch]
    existing = find_existing(memory, batch)
    changes = [_changes(imported, memory._settings) for imported in batch]
    remaining = iter(engines.graph.apply([change for some in changes for change in some]))
    outcomes = [[next(remaining) for _ in some] for some in changes]
    last = [some[-1] for some in outcomes]
    indexed = [
        end.record
        for imported, end in zip(batch, last, strict=True)
        if end.record is not None
        and end.record.indexed
        and end.record.indexed_text == imported.record.indexed_text
    ]
    limit = memory._settings.max_embed_chars
    vectors = engines.index.vectors(indexed)  # of an earlier import
    engines.index.upsert(points_of(indexed, memory.embedder, limit=limit, vectors=vectors))
    touched = {record.id: record for some in outcomes for end in some for record in end.touched}
    engines.index.amend(list(touched.values()))
    for imported, end in zip(batch, last, strict=True):
        if end.record is None:
            engines.index.delete(imported.record.scope, [imported.record.id])
    return [_counter_of(*pair, existing) for pair in zip(batch, last, strict=True)]


def _redacted(imported: ImportedRecord, redaction: Redaction) -> ImportedRecord:
    return replace(
        imported,
        record=redaction.record(imported.record),
        past=tuple((redaction.text(text), at) for text, at in imported.past),
        relations=redaction.relations(imported.relations),
    )


def _counter_of(imported: ImportedRecord, last: Outcome, existing: Collection[str]) -> str:
    if last.change.event == "DELETE":
        return "deleted"
    if last.record is None:
        return "refused"
    return "existing" if imported.record.id in existing else "added"


def _changes(imported: ImportedRecord, settings: Settings) -> list[Put | Remove]:
    """List the changes that led to a record, each with the version of its time."""
    record = imported.record
    texts = [text for text, _ in imported.past] + [record.text]
    times = [at for _, at in imported.past] + [record.updated_at]
    times[0] = record.created_at
    versions: list[int] = []
    for at in times + ([imported.deleted_at] if imported.deleted_at else []):
        versions.append(max(_version(at), versions[-1] + 1 if versions else 1))
    relations = dated_relations(imported.to_fact(), record.created_at, settings.is_single_valued)
    is_turn = record.kind == "episode" and record.scope.session_id is not None
    puts = [
        Put(
            record=replace(record, text=text, version=version, updated_at=at, position=None),
            relations=None if n else relations,
            replace=n > 0,
            in_session=is_turn and not n,
            fields=("text",) if n else (),
        )
        for n, (text, version, at) in enumerate(zip(texts, versions, times, strict=False))
    ]
    if imported.deleted_at is None:
        return [*puts]
    removal = Remove(id=record.id, scope=record.scope, version=versions[-1], at=imported.deleted_at)
    return [*puts, removal]


def _version(at: datetime) -> int:
    """Compute the journal's version of a time; 1 for a future one, so that later changes win."""
    if at > now():
        return 1
    return max(1, version_at(at))  # so that an old change is older than an erasure
