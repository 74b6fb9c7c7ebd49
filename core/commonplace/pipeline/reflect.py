"""Bring into the index what the graph store has made of changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..exchange import Outcome, Point, Put, Remove, Terms
from ..model import Record, Scope
from ..ports import GraphStore, VectorIndex


def reflect(
    steps: Sequence[Put | Remove],
    vectors: Sequence[Sequence[float] | None],
    outcomes: Sequence[Outcome],
    index: VectorIndex,
    describe: Callable[[str], tuple[Terms, int]],
    *,
    shared: bool,
) -> list[Record]:
    """Bring the outcomes into the index; answer what may be there now, as it was written.

    Args:
        shared: another process may have put something newer there, which stays.
    """
    change = _Change(describe=describe, shared=shared)
    for step, vector, outcome in zip(steps, vectors, outcomes, strict=True):
        change.touched |= {one.id: one for one in outcome.touched}
        if not isinstance(step, Remove):
            change.put(step, vector, outcome.record)
        elif outcome.record is None:
            change.remove(step.id, step.scope, step.version)
    removals: dict[tuple[Scope, int | None], list[str]] = {}
    for one, of in change.gone.items():
        removals.setdefault(of, []).append(one)
    for (scope, version), ids in removals.items():
        index.delete(scope, ids, version)
    if change.points:
        index.upsert(list(change.points.values()))
    if change.touched:
        index.amend(list(change.touched.values()))
    return list((change.written | change.touched).values())


@dataclass(slots=True, kw_only=True)
class _Change:
    describe: Callable[[str], tuple[Terms, int]]
    shared: bool
    points: dict[str, Point] = field(default_factory=dict)
    gone: dict[str, tuple[Scope, int | None]] = field(default_factory=dict)
    touched: dict[str, Record] = field(default_factory=dict)
    written: dict[str, Record] = field(default_factory=dict)

    def remove(self, record_id: str, scope: Scope, version: int) -> None:
        self.points.pop(record_id, None)  # it may be of this very batch
        self.gone[record_id] = scope, version if self.shared else None

    def put(self, step: Put, vector: Sequence[float] | None, record: Record | None) -> None:
        self.written[step.record.id] = record or step.record
        if record is None:
            return
        if not record.indexed:
            self.remove(record.id, record.scope, record.version)
        elif vector is not None and _is_of(step.record, record):
            terms, words = self.describe(record.indexed_text)
            self.gone.pop(record.id, None)
            self.points[record.id] = Point(record=record, vector=vector, terms=terms, words=words)
        elif step.replace:
            self.touched[record.id] = record  # its text is of another change, the rest of this one


def _is_of(told: Record, held: Record) -> bool:
    # A later change may have ended what this one told: then it is indexed as it is now.
    return held.version >= told.version and held.indexed_text == told.indexed_text


def look_again(written: Sequence[Record], graph: GraphStore, index: VectorIndex) -> None:
    """Bring into the index what another process has made of records since the graph had them.

    Its erasure was perhaps here before they were. Whoever gives a record another version brings it.
    """
    while written:
        owners: dict[Scope, list[Record]] = {}
        for one in written:
            user = one.scope.user_id
            owners.setdefault(one.scope if user is None else Scope(user_id=user), []).append(one)
        changed: list[Record] = []
        for owner, records in owners.items():
            found = graph.get(owner, [one.id for one in records], expired=True)
            held = {one.id: one for one in found}
            for one in records:
                now = held.get(one.id)
                if now is None:
                    index.delete(owner, [one.id], one.version)
                elif now != one and now.version == one.version:
                    changed.append(now)
        index.amend(changed)
        written = changed
