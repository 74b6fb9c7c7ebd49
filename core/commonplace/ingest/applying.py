"""Application of planned operations: to the graph store, then to the index; and erasure from both.

Applying an operation again changes nothing, so that whatever a crash cut off is simply repeated.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..ports.engines import GraphStore, VectorIndex
from ..ports.stores import (
    Engines,
    Operation,
    Outcome,
    Point,
    Put,
    Remove,
    Terms,
    crash_point,
    with_identity,
)
from ..types import EraseReceipt, Record, Scope, TokenEmbedding, WriteResult
from .planning import PlannedChanges

Describe = Callable[[str], tuple[Terms, int]]
Planned = list[tuple[Operation, PlannedChanges]]


def apply_to(engines: Engines, planned: Planned, describe: Describe) -> list[WriteResult]:
    """Apply operations in order: the graph, in one transaction if possible, then the index.

    Args:
        planned: each operation with its version, and its changes.
        describe: gives a text's terms and its length in words.

    Returns:
        A result each, in their order.
    """
    graph, index = engines.graph, engines.index
    # Another process may change both stores meanwhile; `isinstance` takes far longer.
    shared = not hasattr(engines, "transact")
    changes = [_stamped(change, op.version) for op, plan in planned for change, _ in plan.changes]
    vectors = [vector for _, plan in planned for _, vector in plan.changes]
    crash_point("before_graph")
    outcomes: list[Outcome] = []
    for part in _parts(changes):
        done = graph.apply(part)
        _add_revived_texts(part, done, graph)
        changes[len(outcomes) : len(outcomes) + len(part)] = part
        outcomes += done
    crash_point("after_graph")
    written = _sync_index(changes, vectors, outcomes, index, describe, shared=shared)
    if shared:
        _verify_index(written, graph, index)
    crash_point("after_index")
    remaining = iter(outcomes)
    return [
        WriteResult(
            operation=op.id,
            changes=tuple(next(remaining).change for _ in plan.changes),
            skipped=plan.skipped,
            extraction_error=plan.failure,
        )
        for op, plan in planned
    ]


def described(planned: Sequence[PlannedChanges], describe: Describe) -> Describe:
    """Describe texts before a transaction begins, during which nobody else can write."""
    texts = (
        change.record.indexed_text  # type: ignore[union-attr]  # only a Put has a vector
        for some in planned
        for change, vector in some.changes
        if vector is not None
    )
    known: Mapping[str, tuple[Terms, int]] = {one: describe(one) for one in texts}
    return lambda text: known.get(text) or describe(text)


def _stamped(change: Put | Remove, version: int) -> Put | Remove:
    """Give a change the version of its operation, in place: nobody else has it yet."""
    has_version = change if isinstance(change, Remove) else change.record
    object.__setattr__(has_version, "version", version)  # copies of all would take far longer
    return change


def _parts(changes: Sequence[Put | Remove]) -> Iterator[list[Put | Remove]]:
    """Split before each change of a record that is added in the same part.

    Whether a text must be added again is decided after its part: nothing may have changed its
    record in between, also when a crash delays the decision.
    """
    part: list[Put | Remove] = []
    added: set[str] = set()
    for change in changes:
        record_id = change.id if isinstance(change, Remove) else change.record.id
        if record_id in added:
            yield part
            part, added = [], set()
        part.append(change)
        if isinstance(change, Put) and not change.replace:
            added.add(record_id)
    if part:
        yield part


def _add_revived_texts(
    changes: list[Put | Remove], outcomes: list[Outcome], graph: GraphStore
) -> None:
    """Add under a new id each text whose record exists, but was changed or has ended since."""
    for n, change in enumerate(changes):
        if isinstance(change, Remove) or change.replace or outcomes[n].change.event != "NONE":
            continue
        added = change.record
        key = with_identity(added.text.strip(), added.metadata, change.identity)
        if added.id != added.scope.record_id(added.kind, key):
            continue  # the caller chose its key
        for attempt in itertools.count(1):
            stored = outcomes[n].record
            if (
                outcomes[n].change.event != "NONE"
                or stored is None
                or _still_states(stored, change)
            ):
                break
            # Counted, so that repeating the operation arrives at the same record.
            other = added.scope.record_id(added.kind, f"{key}\x00{attempt}")
            if stored.version > added.version and not graph.get(added.scope, [other]):
                break  # repeated after a later change; the first time it was stored already
            changes[n] = replace(change, record=replace(added, id=other))
            [outcomes[n]] = graph.apply([changes[n]])


def _still_states(stored: Record, change: Put) -> bool:
    added = change.record
    has_ended = stored.valid_to is not None and stored.valid_to <= added.occurred_at
    return stored.text.strip() == added.text.strip() and not has_ended and change.is_of(stored)


def _sync_index(
    changes: Sequence[Put | Remove],
    vectors: Sequence[TokenEmbedding | None],
    outcomes: Sequence[Outcome],
    index: VectorIndex,
    describe: Describe,
    *,
    shared: bool,
) -> list[Record]:
    """Write the graph's outcomes to the index; return the records that it may hold now."""
    batch = _IndexBatch(describe=describe, shared=shared)
    for change, vector, outcome in zip(changes, vectors, outcomes, strict=True):
        if outcome.touched:
            batch.amended |= {one.id: one for one in outcome.touched}
        if not isinstance(change, Remove):
            batch.put(change, vector, outcome.record)
        elif outcome.record is None:
            batch.remove(change.id, change.scope, change.version)
    batch.write(index)
    return list((batch.written | batch.amended).values())


@dataclass(slots=True, kw_only=True)
class _IndexBatch:
    """What a batch of changes does to the index; a later change of a record replaces an earlier."""

    describe: Describe
    shared: bool
    points: dict[str, Point] = field(default_factory=dict)
    removed: dict[str, tuple[Scope, int | None]] = field(default_factory=dict)
    amended: dict[str, Record] = field(default_factory=dict)
    written: dict[str, Record] = field(default_factory=dict)

    def remove(self, record_id: str, scope: Scope, version: int) -> None:
        self.points.pop(record_id, None)
        self.removed[record_id] = scope, version if self.shared else None

    def put(self, put: Put, embedding: TokenEmbedding | None, record: Record | None) -> None:
        self.written[put.record.id] = record or put.record
        if record is None:
            return
        if not record.indexed:
            self.remove(record.id, record.scope, record.version)
        elif embedding is not None and _has_text_of(put.record, record):
            terms, words = self.describe(record.indexed_text)
            self.removed.pop(record.id, None)
            self.points[record.id] = Point(
                record=record,
                vector=embedding.vector,
                terms=terms,
                words=words,
                tokens=embedding.tokens,
                following=embedding.following,
            )
        elif put.replace or record.kind != "episode":
            # Its text is of another change, the rest of this one: it may be a repetition.
            self.amended[record.id] = record

    def write(self, index: VectorIndex) -> None:
        ids: dict[tuple[Scope, int | None], list[str]] = {}
        for record_id, limits in self.removed.items():
            ids.setdefault(limits, []).append(record_id)
        for (scope, version), some in ids.items():
            index.delete(scope, some, version)
        if self.points:
            index.upsert(list(self.points.values()))
        if self.amended:
            index.amend(list(self.amended.values()))


def _has_text_of(added: Record, stored: Record) -> bool:
    # A later change may have ended what this one states: then it is indexed as it is now.
    if stored is added:
        return True
    return stored.version >= added.version and stored.indexed_text == added.indexed_text


def _verify_index(written: Sequence[Record], graph: GraphStore, index: VectorIndex) -> None:
    """Correct the index where another process has changed records since the graph wrote them.

    Its erasure may have reached the index before they did. A record with another version is left
    to the process that gave it this version.
    """
    while written:
        by_owner: dict[Scope, list[Record]] = {}
        for one in written:
            user = one.scope.user_id
            by_owner.setdefault(one.scope if user is None else Scope(user_id=user), []).append(one)
        changed: list[Record] = []
        for owner, records in by_owner.items():
            found = graph.get(owner, [record.id for record in records], include_expired=True)
            stored = {one.id: one for one in found}
            for record in records:
                current = stored.get(record.id)
                if current is None:
                    index.delete(owner, [record.id], record.version)
                elif current != record and current.version == record.version:
                    changed.append(current)
        index.amend(changed)
        written = changed


def erase(op: Operation, engines: Engines, at: datetime) -> EraseReceipt:
    """Carry out an accepted erasure, its own row in the journal included.

    Writes accepted after it stay and are not counted as left.
    """
    scope, journal = op.scope, engines.journal
    crash_point("before_graph")
    erased = engines.graph.erase(scope, op.version)
    removed = {f"graph.{name}": n for name, n in erased.removed.items()}
    crash_point("after_graph")
    for name, n in engines.checkpoints.erase(scope).items():
        removed[f"checkpoints.{name}"] = n
    engines.index.amend(erased.touched)
    removed["index.points"] = engines.index.erase(scope, op.version)
    engines.index.flush()
    crash_point("after_index")
    removed["journal.rows"] = journal.erase(scope, op.seq)
    left = count_rows(engines, scope, before=op.seq)
    crash_point("before_remove")
    journal.erase(scope, op.seq + 1)
    return EraseReceipt(scope=scope, removed=removed, left=left, at=at)


def count_rows(engines: Engines, scope: Scope, *, before: int | None = None) -> dict[str, int]:
    """Count the rows of a scope, by store and table, as an `EraseReceipt` names them.

    Args:
        before: do not count the journal's rows from this number on.
    """
    found = {f"graph.{name}": n for name, n in engines.graph.count(scope).items()}
    found |= {f"checkpoints.{name}": n for name, n in engines.checkpoints.count(scope).items()}
    found["index.points"] = engines.index.count(scope)
    found["journal.rows"] = engines.journal.rows(scope, before=before)
    return found
