"""Bring planned changes into the graph store, then into the index; repeating it changes nothing."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from ..answers import Change
from ..codec import thaw
from ..exchange import Op, Outcome, Point, Put, Remove, Terms
from ..faults import crash_point
from ..model import Record, record_id
from ..ports import GraphStore, VectorIndex

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
    _tell_again(steps, outcomes, graph)
    crash_point("after_graph")
    _index(steps, vectors, outcomes, index, describe)
    crash_point("after_index")
    answers = iter(outcomes)
    return [
        tuple(next(answers).change for _ in ([0] if isinstance(planned, Remove) else planned))
        for _, planned in work
    ]


def _tell_again(steps: list[Put | Remove], outcomes: list[Outcome], graph: GraphStore) -> None:
    """Add texts anew that were found known, but are changed or no longer true by now."""
    for n, step in enumerate(steps):
        if isinstance(step, Remove) or step.replace:
            continue
        told = step.record
        key = told.text.strip()
        if told.id != record_id(told.scope, told.kind, key):
            continue  # the caller named it himself
        for again in itertools.count(1):
            held = outcomes[n].record
            if outcomes[n].change.event != "NONE" or held is None or _says(held, told):
                break
            # Counted, so that repeating the operation walks to the same record.
            other = record_id(told.scope, told.kind, f"{key}\x00{again}")
            if held.version > told.version and not graph.get(told.scope, [other]):
                break  # repeated after a later change; the first time it was no news
            steps[n] = replace(step, record=replace(told, id=other))
            [outcomes[n]] = graph.apply([steps[n]])


def _says(held: Record, told: Record) -> bool:
    return held.text == told.text and not (held.valid_to and held.valid_to <= told.occurred_at)


def planned(op: Op) -> Planned | Remove:
    """Read what an operation does: its frozen plan, or its removal."""
    if op.kind == "delete":
        given = json.loads(op.body)
        at = datetime.fromisoformat(given["at"])
        return Remove(id=given["id"], scope=op.scope, version=op.version, at=at)
    return thaw(op.plan or b"[]")


def target(op: Op) -> str:
    """Read the id of the record that an update or a delete is about."""
    given = json.loads(op.body)
    return str(given["id"] if op.kind == "delete" else given["puts"][0]["record"]["id"])


def _index(
    steps: Sequence[Put | Remove],
    vectors: Sequence[Sequence[float] | None],
    outcomes: Sequence[Outcome],
    index: VectorIndex,
    describe: Callable[[str], tuple[Terms, int]],
) -> None:
    points: list[Point] = []
    touched: dict[str, Record] = {}
    for step, vector, outcome in zip(steps, vectors, outcomes, strict=True):
        record = outcome.record
        touched |= {one.id: one for one in outcome.touched}
        if isinstance(step, Remove):
            if record is None:
                # Order matters: a point of this batch may be the one that is removed.
                index.upsert(points)
                points = []
                index.delete(step.scope, [step.id])
        elif vector is not None and record is not None and _is_of(step.record, record):
            terms, words = describe(record.indexed_text)
            points.append(Point(record=record, vector=vector, terms=terms, words=words))
        elif record is not None and step.replace:
            touched[record.id] = record  # its text is of another change, the rest of this one
    if points:
        index.upsert(points)
    if touched:
        index.amend(list(touched.values()))


def _is_of(told: Record, held: Record) -> bool:
    # A later change may have ended what this one told: then it is indexed as it is now.
    return held.version >= told.version and held.indexed_text == told.indexed_text
