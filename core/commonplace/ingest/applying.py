"""Bring planned changes into the graph store, then into the index; repeating it changes nothing.

MERGED FROM commonplace.pipeline.reflect: Bring into the index what the graph store has made of changes."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..model import Change, Record, Scope
from ..ports.stores import GraphStore, Operation, Outcome, Point, Put, Remove, Terms, VectorIndex
from .codec import PlannedPuts, decode_delete, decode_plan
from .crash_points import crash_point


def apply(
    work: Sequence[tuple[Operation, PlannedPuts | Remove]],
    *,
    graph: GraphStore,
    index: VectorIndex,
    describe: Callable[[str], tuple[Terms, int]],
    shared: bool = False,
) -> list[tuple[Change, ...]]:
    """Apply operations in order: the graph, in one transaction where it can be, then the index.

    Args:
        work: an operation with its planned changes, each with its vector if its text is told, or
            its removal.
        describe: gives a text's terms and its length in words.
        shared: another process may change both stores meanwhile.

    Returns:
        The changes of each operation, in order.
    """
    steps: list[Put | Remove] = []
    vectors: list[Sequence[float] | None] = []
    for op, planned in work:
        if isinstance(planned, Remove):
            steps.append(planned)
            vectors.append(None)
            continue
        for put, vector in planned:
            steps.append(replace(put, record=replace(put.record, version=op.version)))
            vectors.append(vector)
    crash_point("before_graph")
    outcomes: list[Outcome] = []
    for part in _parts(steps):
        done = graph.apply(part)
        _tell_again(part, done, graph)
        steps[len(outcomes) : len(outcomes) + len(part)] = part
        outcomes += done
    crash_point("after_graph")
    written = reflect(steps, vectors, outcomes, index, describe, shared=shared)
    if shared:
        look_again(written, graph, index)
    crash_point("after_index")
    answers = iter(outcomes)
    return [
        tuple(next(answers).change for _ in ([0] if isinstance(planned, Remove) else planned))
        for _, planned in work
    ]


def _parts(steps: Sequence[Put | Remove]) -> Iterator[list[Put | Remove]]:
    """Cut before each change of a record that is added in the same part.

    Whether a text must be told again is judged after its part: nothing may have changed its record
    in between, also when a crash makes the judgement late.
    """
    part: list[Put | Remove] = []
    added: set[str] = set()
    for step in steps:
        one = step.id if isinstance(step, Remove) else step.record.id
        if one in added:
            yield part
            part, added = [], set()
        part.append(step)
        if isinstance(step, Put) and not step.replace:
            added.add(one)
    if part:
        yield part


def _tell_again(steps: list[Put | Remove], outcomes: list[Outcome], graph: GraphStore) -> None:
    """Add texts anew that were found known, but are changed or no longer true by now."""
    for n, step in enumerate(steps):
        if isinstance(step, Remove) or step.replace:
            continue
        told = step.record
        key = told.text.strip()
        if told.id != told.scope.record_id(told.kind, key):
            continue  # the caller named it himself
        for again in itertools.count(1):
            held = outcomes[n].record
            if outcomes[n].change.event != "NONE" or held is None or _says(held, told):
                break
            # Counted, so that repeating the operation walks to the same record.
            other = told.scope.record_id(told.kind, f"{key}\x00{again}")
            if held.version > told.version and not graph.get(told.scope, [other]):
                break  # repeated after a later change; the first time it was no news
            steps[n] = replace(step, record=replace(told, id=other))
            [outcomes[n]] = graph.apply([steps[n]])


def _says(held: Record, told: Record) -> bool:
    return held.text == told.text and not (held.valid_to and held.valid_to <= told.occurred_at)


def planned(op: Operation) -> PlannedPuts | Remove:
    """Read what an operation does: its frozen plan, or its removal."""
    if op.kind == "delete":
        body = decode_delete(op)
        return Remove(
            id=body.id,
            scope=op.scope,
            version=op.version,
            at=body.at,
            spare_pinned=body.spare_pinned,
        )
    return decode_plan(op.plan) if op.plan else []


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
            found = graph.get(owner, [one.id for one in records], include_expired=True)
            held = {one.id: one for one in found}
            for one in records:
                now = held.get(one.id)
                if now is None:
                    index.delete(owner, [one.id], one.version)
                elif now != one and now.version == one.version:
                    changed.append(now)
        index.amend(changed)
        written = changed
