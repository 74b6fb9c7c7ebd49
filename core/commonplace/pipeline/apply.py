"""Bring planned changes into the graph store, then into the index; repeating it changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from ..faults import crash_point
from ..model import Change
from ..ports import GraphStore, Op, Outcome, Point, Put, Remove, Terms, VectorIndex

Planned = Sequence[tuple[Put, Sequence[float]]]


def apply(
    work: Sequence[tuple[Op, Planned | Remove]],
    *,
    graph: GraphStore,
    index: VectorIndex,
    describe: Callable[[str], tuple[Terms, int]],
) -> list[tuple[Change, ...]]:
    """Apply operations in order: one graph transaction, then the index.

    Args:
        work: an operation with its planned changes, each with its vector, or its removal.
        describe: gives a text's terms and its length in words.

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
    outcomes = graph.apply(steps)
    crash_point("after_graph")
    _index(steps, vectors, outcomes, index, describe)
    crash_point("after_index")
    answers = iter(outcomes)
    return [
        tuple(next(answers).change for _ in ([0] if isinstance(planned, Remove) else planned))
        for _, planned in work
    ]


def removal(op: Op, record_id: str, at: datetime) -> Remove:
    """Turn an accepted delete into the change of the graph store."""
    return Remove(id=record_id, scope=op.scope, version=op.version, at=at)


def _index(
    steps: Sequence[Put | Remove],
    vectors: Sequence[Sequence[float] | None],
    outcomes: Sequence[Outcome],
    index: VectorIndex,
    describe: Callable[[str], tuple[Terms, int]],
) -> None:
    points: list[Point] = []
    for step, vector, outcome in zip(steps, vectors, outcomes, strict=True):
        record = outcome.record
        if isinstance(step, Remove):
            if record is None:
                # Order matters: a point of this batch may be the one that is removed.
                index.upsert(points)
                points = []
                index.delete(step.scope, [step.id])
        elif vector is not None and record is not None and record.version == step.record.version:
            terms, words = describe(record.indexed_text)
            points.append(Point(record=record, vector=vector, terms=terms, words=words))
    if points:
        index.upsert(points)
