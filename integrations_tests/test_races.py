"""Writes about one record at the same time: one of them is last, everywhere."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace import CommonplaceError, Fact, Memory, Scope, WriteResult
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
pytestmark = pytest.mark.every_engine


@pytest.fixture
def rounds(engines: str) -> int:
    return 500 if engines == "embedded" else 40


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def together(pool: ThreadPoolExecutor, *calls: Callable[[], WriteResult]) -> list[str]:
    """Begin calls at the same moment; return what each says that it did, or the error's name."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], WriteResult]) -> str:
        barrier.wait()
        try:
            return call().changes[0].event
        except CommonplaceError as error:
            return type(error).__name__

    return [one.result() for one in [pool.submit(run, call) for call in calls]]


def read_everywhere(memory: Memory, record_id: str) -> list[str | None]:
    """Read a record's text by its id, from the list and from the index."""
    record = memory.get(record_id, ALICE)
    listed = {one.id: one.text for one in memory.list(ALICE).records}
    found = {one.record.id: one.record.text for one in memory.search("bees", ALICE, top_k=50)}
    return [record and record.text, listed.get(record_id), found.get(record_id)]


def test_of_fifty_writers_of_a_key_one_makes_the_record(memory: Memory) -> None:
    fact = Fact(text="Alice keeps bees", key="bees")
    with ThreadPoolExecutor(50) as pool:
        calls = [lambda: memory.add(fact, ALICE)] * 50
        written = [one.result() for one in [pool.submit(call) for call in calls]]
        others = together(pool, *[lambda: memory.add("Alice rows", ALICE, key="bees")] * 50)

    assert {one.changes[0].id for one in written} == {ALICE.record_id("fact", "bees")}
    assert sorted(one.changes[0].event for one in written) == ["ADD"] + ["NONE"] * 49
    assert set(others) == {"IdempotencyConflictError"}
    assert read_everywhere(memory, ALICE.record_id("fact", "bees")) == ["Alice keeps bees"] * 3


def test_a_deletion_wins_against_a_change_that_comes_with_it(
    memory: Memory, pool: ThreadPoolExecutor, rounds: int
) -> None:
    for number in range(rounds):
        record_id = memory.add("Alice keeps bees", ALICE, key=f"bees {number}").changes[0].id
        update, delete = together(
            pool,
            lambda of=record_id: memory.update(of, "Alice keeps bees and wasps", ALICE),
            lambda of=record_id: memory.delete(of, ALICE),
        )

        assert delete == "DELETE"
        assert update in ("UPDATE", "NONE", "RecordNotFoundError")
        assert read_everywhere(memory, record_id) == [None] * 3
        events = [one.event for one in memory.history(record_id, ALICE)]
        assert events == ["ADD", *[update] * (update == "UPDATE"), "DELETE"]


def test_what_is_deleted_while_it_is_told_again_is_there_or_not_but_everywhere(
    memory: Memory, pool: ThreadPoolExecutor, rounds: int
) -> None:
    record_id = ALICE.record_id("fact", "Alice keeps bees")
    for _ in range(rounds):
        memory.add("Alice keeps bees", ALICE)
        done = together(
            pool,
            lambda: memory.delete(record_id, ALICE),
            lambda: memory.add("Alice keeps bees", ALICE),
        )

        assert done[0] == "DELETE"
        assert done[1] in ("ADD", "NONE")
        texts = read_everywhere(memory, record_id)
        assert texts in ([None] * 3, ["Alice keeps bees"] * 3)
    memory.add("Alice keeps bees", ALICE)
    assert read_everywhere(memory, record_id) == ["Alice keeps bees"] * 3


def test_the_last_of_racing_changes_is_the_same_everywhere_and_after_reopening(
    tmp_path: Path, pool: ThreadPoolExecutor, rounds: int
) -> None:
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        record_id = memory.add("Alice keeps bees", ALICE).changes[0].id
        told = 0
        for number in range(rounds // 8):
            texts = [f"Alice keeps {number} bees in hive {hive}" for hive in range(8)]
            changes = [lambda to=text: memory.update(record_id, to, ALICE) for text in texts]
            done = together(pool, *changes)
            assert set(done) <= {"UPDATE", "NONE"}
            told += done.count("UPDATE")

            [last] = set(read_everywhere(memory, record_id))
            assert last in texts
            assert last == memory.history(record_id, ALICE)[-1].text
        assert len(memory.history(record_id, ALICE)) == 1 + told
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        assert read_everywhere(memory, record_id) == [last] * 3
