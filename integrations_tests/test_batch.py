"""Batches of commands, records that are not indexed, and predicates."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace import (
    BackpressureError,
    Fact,
    InvalidRecordError,
    LoopRequiredError,
    Memory,
    Scope,
    Settings,
)
from commonplace.ingest.operations import Delete, Revise, Upsert
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import now

ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")


class AsyncEmbedder(HashEmbedder):
    async def embed(self, texts, *, purpose):  # type: ignore[override]
        return super().embed(texts, purpose=purpose)


def texts_of(memory: Memory, scope: Scope) -> list[str]:
    return sorted(one.text for one in memory.list(scope).records)


@pytest.mark.parametrize("is_async", [False, True])
def test_writes_of_several_users_are_done_together(memory: Memory, *, is_async: bool) -> None:
    old = memory.add("Alice keeps bees", ALICE).changes[0].id
    commands = [
        Upsert(facts=[Fact(text="Alice rows", key="a"), Fact(text="Alice runs")], scope=ALICE),
        Upsert(facts=[Fact(text="Bob sings", key="a")], scope=BOB),
        Delete(record_id=old, scope=ALICE),
        Delete(record_id=old, scope=BOB),
        Delete(record_id="unknown", scope=BOB),
    ]
    written = asyncio.run(memory.abatch(commands)) if is_async else memory.batch(commands)

    events = [[one.event for one in answer.changes] for answer in written]
    assert events == [["ADD", "ADD"], ["ADD"], ["DELETE"], ["NONE"], ["NONE"]]
    assert (texts_of(memory, ALICE), texts_of(memory, BOB)) == (
        ["Alice rows", "Alice runs"],
        ["Bob sings"],
    )
    assert memory.search("Bob sings", BOB)[0].record.text == "Bob sings"


def test_one_bad_command_keeps_all_from_being_accepted(memory: Memory) -> None:
    good = Upsert(facts=[Fact(text="Alice rows")], scope=ALICE)
    with pytest.raises(InvalidRecordError):
        memory.batch([good, Upsert(facts=[], scope=ALICE)])
    with pytest.raises(InvalidRecordError):
        memory.batch([good, "delete everything"])  # type: ignore[list-item]

    assert texts_of(memory, ALICE) == []
    assert memory.batch([]) == asyncio.run(memory.abatch([])) == []


def test_a_full_journal_takes_none_of_them(tmp_path: Path) -> None:
    class Stuck(HashEmbedder):
        def embed(self, texts, *, purpose):
            raise ConnectionError

    settings = Settings(max_pending=2, retry_after=60)
    with Memory.open(str(tmp_path), embedder=Stuck(), settings=settings) as memory:
        commands = [Upsert(facts=[Fact(text=f"{n}")], scope=ALICE) for n in range(3)]
        with pytest.raises(BackpressureError):
            memory.batch(commands, wait=False)
        assert memory.flush(0).pending == 0
        memory.batch(commands[:2], wait=False)
        assert memory.flush(0).pending == 2
        memory.close(0)


def test_what_needs_a_loop_is_written_on_one(tmp_path: Path) -> None:
    commands = [Upsert(facts=[Fact(text="Alice rows")], scope=one) for one in (ALICE, BOB)]
    with Memory.open(str(tmp_path), embedder=AsyncEmbedder()) as memory:
        with pytest.raises(LoopRequiredError):
            memory.batch(commands)
        asyncio.run(memory.abatch(commands))

        assert texts_of(memory, ALICE) == texts_of(memory, BOB) == ["Alice rows"]


def test_a_change_that_keeps_the_text_asks_no_model(memory: Memory) -> None:
    memory.add("Alice rows", ALICE)
    [record] = memory.list(ALICE).records
    asked = len(memory.embedder.calls)  # type: ignore[attr-defined]
    soon = now() + timedelta(hours=1)

    memory.batch([Revise(record=record, expires_at=soon, metadata={"boat": "red"})])
    memory.feedback(record.id, ALICE, helped=True)

    assert len(memory.embedder.calls) == asked  # type: ignore[attr-defined]
    [found] = memory.search("Alice rows", ALICE, where={"boat": "red"})
    assert (found.record.expires_at, found.record.votes) == (soon, 1)


def test_what_is_not_indexed_is_listed_and_never_found(memory: Memory) -> None:
    hidden = Fact(text="Alice rows at dawn", key="a", indexed=False)
    memory.batch([Upsert(facts=[hidden, Fact(text="Alice sings")], scope=ALICE)])

    assert all("dawn" not in text for call in memory.embedder.calls for text in call)  # type: ignore[attr-defined]
    assert texts_of(memory, ALICE) == ["Alice rows at dawn", "Alice sings"]
    assert [one.record.text for one in memory.search("dawn", ALICE)] == ["Alice sings"]


def test_a_record_leaves_the_index_and_comes_back(memory: Memory) -> None:
    for indexed in (True, False, True, False):
        fact = Fact(text="Alice rows", key="a", indexed=indexed)
        memory.add(fact, ALICE, upsert=True)

        assert bool(memory.search("rows", ALICE)) is indexed
    memory.batch(
        [
            Upsert(facts=[Fact(text="Alice rows", key="a")], scope=ALICE),
            Upsert(facts=[Fact(text="Alice rows", key="a", indexed=False)], scope=ALICE),
        ]
    )
    assert memory.search("rows", ALICE) == []


def test_many_records_are_read_at_once_and_of_one_scope_only(memory: Memory) -> None:
    mine = [one.id for one in memory.add(["Alice rows", "Alice sings"], ALICE).changes]
    other = memory.add("Bob rows", BOB).changes[0].id

    assert [one.id for one in memory.get_many([*reversed(mine), other, "unknown"], ALICE)] == mine[
        ::-1
    ]
    assert memory.get_many([], ALICE) == []


async def test_a_page_and_a_search_ask_a_judge(memory: Memory) -> None:
    await memory.aadd([Fact(text=f"Alice rows {n}", metadata={"n": n}) for n in range(8)], ALICE)
    judge = lambda record: record.metadata["n"] % 4 == 0  # noqa: E731 -- one use

    page = await memory.alist(ALICE, predicate=judge, where={"n": {"gt": 1}})
    found = await memory.asearch("rows", ALICE, predicate=judge)

    assert [one.metadata["n"] for one in page.records] == [4]
    assert {one.record.metadata["n"] for one in found} == {0, 4}


def test_what_has_expired_is_listed_on_request(memory: Memory) -> None:
    memory.add(Fact(text="Alice rows", expires_at=now() - timedelta(hours=1)), ALICE)

    assert memory.list(ALICE).records == ()
    assert [one.text for one in memory.list(ALICE, include_expired=True).records] == ["Alice rows"]
