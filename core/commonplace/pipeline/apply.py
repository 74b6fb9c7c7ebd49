"""Bring planned changes into the graph store, then into the index; repeating it changes nothing."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ..answers import Change
from ..codec import thaw
from ..exchange import Op, Outcome, Put, Remove, Terms
from ..faults import crash_point
from ..model import Record, record_id
from ..ports import GraphStore, VectorIndex
from .reflect import look_again, reflect

Planned = Sequence[tuple[Put, Sequence[float] | None]]


def apply(
    work: Sequence[tuple[Op, Planned | Remove]],
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
        spare = given["spare_pinned"]
        return Remove(id=given["id"], scope=op.scope, version=op.version, at=at, spare_pinned=spare)
    return thaw(op.plan or b"[]")


def targets(op: Op) -> set[str]:
    """Read the ids of the records that an accepted operation names."""
    given = json.loads(op.body)
    named = {put["record"]["id"] for put in given.get("puts", ())}
    return named | ({given["id"]} if "id" in given else set())
