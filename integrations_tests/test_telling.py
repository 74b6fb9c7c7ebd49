"""A fact told again is one record that knows how often and when, on every set of engines."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from commonplace import (
    Change,
    Fact,
    IdempotencyConflictError,
    Memory,
    Message,
    Record,
    Relation,
    Scope,
    StoreUnavailableError,
    Upsert,
    WriteResult,
)
from commonplace.ingest.applying import apply_to
from commonplace.ingest.changes import Write, WriteBody
from commonplace.ports.stores import Operation, Put, arm_crash_points
from commonplace.testing.contracts import at_once
from commonplace.testing.fakes import FrozenClock, HashEmbedder
from commonplace.types import now

pytestmark = pytest.mark.every_engine
ALICE = Scope(user_id="alice")
TEA = "Alice likes green tea"
NEVER = datetime(2999, 1, 1, tzinfo=UTC)
CHILD = """
import sys
sys.path.append(sys.argv[2])
from engines import find
from commonplace import Fact, Memory, Scope
from commonplace.settings import Location
from commonplace.testing.fakes import HashEmbedder
Location.find = find
with Memory.open(sys.argv[1], embedder=HashEmbedder()) as memory:
    for given in ({}, {"from": "child"}):
        fact = Fact(text="Alice likes green tea", metadata=given)
        print(memory.add(fact, Scope(user_id="alice")).changes[0].event)
"""


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    arm_crash_points(None)


def told(memory: Memory, content: str | Fact, scope: Scope = ALICE) -> Change:
    """Tell one thing."""
    [change] = memory.add(content, scope).changes
    return change


def only(memory: Memory, scope: Scope = ALICE, **given: object) -> Record:
    """Read the only record, by a search and by a list, which agree."""
    [match] = memory.search("green tea", scope, top_k=10, **given)  # type: ignore[arg-type]
    assert memory.list(scope).records == (match.record,)
    assert memory.get(match.record.id, scope) == match.record
    return match.record


def twice(*args: object, **more: object) -> list[WriteResult]:
    """Apply operations, and apply them again as after a crash."""
    first, again = [apply_to(*args, **more) for _ in range(2)]  # type: ignore[arg-type]
    assert again == first
    return again


# -- what a telling does ---------------------------------------------------------------------------


def test_nothing_new_is_counted(memory: Memory) -> None:
    first = told(memory, TEA)
    before = now()
    again = told(memory, TEA)
    record = only(memory)

    assert again == replace(first, event="NONE")
    assert record.times_told == 2
    assert record.last_told_at is not None
    assert record.created_at < before <= record.last_told_at <= now()
    assert record.updated_at == record.created_at
    assert [one.event for one in memory.history(first.id, ALICE)] == ["ADD"]


def test_what_is_new_is_merged_and_found(memory: Memory) -> None:
    first = told(memory, Fact(text=TEA, metadata={"topic": "drinks", "year": 2020}))
    given = {"year": 2021, "place": "Kyoto", "tags": ["trips"]}
    again = told(memory, Fact(text=TEA, metadata=given, expires_at=NEVER, pinned=True))
    merged = {"topic": "drinks", **given}

    assert again == replace(first, event="UPDATE", previous=TEA)
    for where in ({"place": "Kyoto"}, {"year": {"gte": 2021}}, {"topic": "drinks"}):
        record = only(memory, where=where)
        assert (record.metadata, record.expires_at, record.pinned) == (merged, NEVER, True)
    assert only(memory, where={"tags": "trips"}).times_told == 2
    assert memory.search("tea", ALICE, where={"year": 2020}) == []
    assert [one.metadata for one in memory.history(first.id, ALICE)][1] == merged


def test_a_new_expiry_hides_it(memory: Memory) -> None:
    told(memory, TEA)
    told(memory, Fact(text=TEA, expires_at=now() + timedelta(seconds=0.2)))
    time.sleep(0.25)

    assert memory.search("tea", ALICE) == []
    assert told(memory, TEA).event == "ADD"
    assert (only(memory).times_told, only(memory).last_told_at) == (1, None)


def test_outer_spaces_are_no_part_of_a_text(memory: Memory) -> None:
    first = told(memory, TEA)
    again = told(memory, f"\n {TEA}\u3000")

    assert (again.id, again.event, again.text) == (first.id, "NONE", TEA)
    assert only(memory).times_told == 2
    keyed = told(memory, Fact(text="Alice rows", key="k"))
    assert told(memory, Fact(text=" Alice rows", key="k")).id == keyed.id
    with pytest.raises(IdempotencyConflictError):
        told(memory, Fact(text="Alice rows at dawn", key="k"))


def test_after_a_deletion_it_is_told_once(memory: Memory) -> None:
    first = told(memory, TEA)
    told(memory, TEA)
    memory.delete(first.id, ALICE)

    assert told(memory, TEA) == first
    assert (only(memory).times_told, only(memory).last_told_at) == (1, None)


def test_after_an_update_it_is_another_record(memory: Memory) -> None:
    first = told(memory, TEA)
    memory.update(first.id, "Alice likes black tea", ALICE)
    [second, third] = [told(memory, one) for one in (TEA, f"{TEA} ")]
    records = {one.text: one for one in memory.list(ALICE).records}

    assert (second.event, third.event) == ("ADD", "NONE")
    assert second.id == third.id != first.id
    assert {text: one.times_told for text, one in records.items()} == {
        TEA: 2,
        "Alice likes black tea": 1,
    }


def test_one_write_tells_a_text_once(memory: Memory) -> None:
    twice = [
        Fact(text=TEA, metadata={"a": 1}, importance=0.9),
        Fact(text=f"{TEA} ", metadata={"b": 2}, expires_at=NEVER),
    ]
    first = memory.add(twice, ALICE).changes
    again = memory.add(twice, ALICE).changes
    record = only(memory)

    assert len({one.id for one in (*first, *again)}) == 1
    assert (record.metadata, record.expires_at) == ({"a": 1, "b": 2}, NEVER)
    assert (record.importance, record.times_told) == (0.9, 2)
    assert [one.event for one in again] == ["NONE", "NONE"]


def test_each_command_of_a_batch_tells(memory: Memory) -> None:
    facts = [Fact(text=TEA, metadata={"n": n}) for n in range(3)]
    memory.batch([Upsert(facts=[one], scope=ALICE) for one in facts])

    assert (only(memory).times_told, only(memory).metadata) == (3, {"n": 2})


def test_a_turn_is_told_once(memory: Memory) -> None:
    turn = Message(text=TEA, id="1")
    memory.add(turn, ALICE)
    [change] = memory.add(replace(turn, text="Alice likes"), ALICE, metadata={"n": 1}).changes

    assert change.event == "NONE"
    assert (only(memory).times_told, only(memory).metadata) == (1, {})


def test_relations_are_added(memory: Memory) -> None:
    likes, lives = (
        Relation(subject="Alice", predicate=predicate, object=object_)
        for predicate, object_ in (("likes", "tea"), ("lives_in", "Rome"))
    )
    told(memory, Fact(text=TEA, relations=(likes,)))
    events = [told(memory, Fact(text=TEA, relations=(likes, lives))).event for _ in range(2)]

    assert events == ["UPDATE", "NONE"]
    assert [one.object for one in memory.relations(ALICE)] == ["tea", "Rome"]
    assert only(memory).times_told == 3


# -- who tells, and when ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"place": "Kyoto"}], ids=["count", "metadata"])
def test_a_write_that_is_applied_again_counts_once(
    memory: Memory, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(memory, TEA)
    for module in ("submission", "worker"):
        monkeypatch.setattr(f"commonplace.ingest.{module}.apply_to", twice)
    memory.add(Fact(text=TEA, metadata=given), ALICE)
    memory.add(Fact(text=TEA, metadata=given), ALICE, wait=False)
    memory.flush()

    assert (only(memory).times_told, only(memory).metadata) == (3, given)


def test_a_write_that_is_replayed_from_the_journal_counts_once(memory: Memory) -> None:
    passed: list[str] = []

    def fail(point: str) -> None:
        passed.append(point)
        if point == "after_graph" and passed.count(point) == 1:
            raise StoreUnavailableError(store="the index", reason="it is away")

    told(memory, TEA)
    arm_crash_points(fail)
    memory.add(Fact(text=TEA, metadata={"n": 1}), ALICE, wait=False)
    memory.add(TEA, ALICE, wait=False)
    deadline = time.monotonic() + 20
    while memory.flush(1).pending:
        assert time.monotonic() < deadline
    record = only(memory, where={"n": 1})

    assert passed.count("before_graph") > passed.count("after_index")
    assert record.times_told == 3


def test_memories_of_one_process_tell_the_same_record(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as other:
        events = [told(one, TEA).event for one in (memory, other, memory, other)]

        assert events == ["ADD", "NONE", "NONE", "NONE"]
        assert only(memory) == only(other)
        assert only(memory).times_told == 4


def test_threads_lose_no_metadata(memory: Memory) -> None:
    told(memory, TEA)
    at_once(8, lambda n: memory.add(Fact(text=TEA, metadata={f"t{n}": n}), ALICE))

    assert only(memory).metadata == {f"t{n}": n for n in range(8)}
    # What was created earlier and stored later is merged and not counted.
    assert 2 <= only(memory).times_told <= 9


def test_one_moment_is_one_telling(memory: Memory, clock: FrozenClock) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("commonplace.ingest.operations.now", clock)
        events = [told(memory, TEA).event for _ in range(2)]
        clock.advance(seconds=1)
        events.append(told(memory, TEA).event)

    assert events == ["ADD", "NONE", "NONE"]
    assert (only(memory).times_told, only(memory).last_told_at) == (2, clock())


@pytest.mark.every_engine("embedded", "neo4j+folder", "neo4j+qdrant")
def test_another_process_tells_it_again(memory: Memory, tmp_path: Path) -> None:
    told(memory, Fact(text=TEA, metadata={"from": "parent"}))
    only(memory)  # what is read is kept in memory
    command = [sys.executable, "-c", CHILD, str(tmp_path / "memory"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told(memory, TEA)

    assert done.stdout.split() == ["NONE", "UPDATE"], done.stderr
    assert (only(memory).times_told, only(memory).metadata) == (4, {"from": "child"})


# -- ending ----------------------------------------------------------------------------------------


def test_an_ended_record_leaves_the_search_and_stays_in_the_past(memory: Memory) -> None:
    likes = Relation(subject="Alice", predicate="likes", object="tea")
    first = told(memory, Fact(text=TEA, relations=(likes,)))
    record, ended = only(memory), now()
    for applied in (apply_to, twice):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("commonplace.ingest.submission.apply_to", applied)
            patch.setattr("commonplace.ingest.worker.apply_to", applied)
            memory._write(partial(ending, record, ended), wait=True)

        assert memory.search("tea", ALICE) == []
        assert memory.relations(ALICE) == []
        [match] = memory.search("tea", ALICE, as_of=record.created_at)
        assert match.record.valid_to == ended
    events = [one.event for one in memory.history(first.id, ALICE)]
    again = told(memory, TEA)

    assert events == ["ADD", "UPDATE", "UPDATE"]

    assert (again.event, again.id != first.id) == ("ADD", True)
    assert [one.record.id for one in memory.search("tea", ALICE)] == [again.id]


def ending(record: Record, at: datetime) -> Write:
    """Make the operation that ends a record."""
    record = replace(record, valid_to=at, updated_at=at)
    put = Put(record=record, relations=None, replace=True, fields=("valid_to",))
    operation = Operation(id=str(uuid.uuid4()), kind="update", scope=ALICE, version=record.version)
    return Write(operation=operation, body=WriteBody(puts=(put,), at=at, origin="user"))
