"""What once went wrong, or would at a peer: races, odd models, odd times."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from commonplace import (
    Fact,
    IdempotencyConflict,
    InvalidFilter,
    InvalidRecord,
    Memory,
    MemoryClosed,
    Message,
    ModelFailed,
    Scope,
    Settings,
)
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
TURN = Message(text="I moved to Lyon in March", name="Alice", id="1")
QUICK = Settings(retry_after=0.01, max_attempts=3)


class SlowEmbedder(HashEmbedder):
    """Awaits a moment before it answers."""

    seconds = 0.05

    async def embed(self, texts: Sequence[str], *, purpose: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(self.seconds)
        return super().embed(texts, purpose=purpose)  # type: ignore[arg-type]


def open_memory(folder: Path, **given: Any) -> Memory:
    return Memory.open(str(folder), **{"embedder": HashEmbedder(), **given})


def memory_is_open(memory: Memory) -> bool:
    return not memory._closed


def count(memory: Memory) -> int:
    return sum(len(memory.list(Scope(user_id=f"user {n}"), limit=1000).records) for n in range(24))


def test_many_threads_of_many_users_lose_no_answer(memory: Memory) -> None:
    def write(n: int) -> None:
        for k in range(40):
            memory.add(f"note {n} {k}", Scope(user_id=f"user {n}"))

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(write, range(24)))

    assert count(memory) == 24 * 40


def test_many_slow_plans_on_one_loop_lose_no_answer(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_memory(tmp_path, embedder=SlowEmbedder()) as memory:
            await asyncio.gather(
                *[memory.aadd(f"note {k}", Scope(user_id=f"user {k % 24}")) for k in range(960)]
            )
            assert await memory._run(count, memory) == 960

    asyncio.run(asyncio.wait_for(write(), 60))


@pytest.mark.parametrize("answer", ["[" * 100_000, '{"facts": 7}', "null", "7", '{"facts": [7]}'])
def test_a_chat_model_that_answers_nonsense_costs_only_its_facts(
    tmp_path: Path, answer: str
) -> None:
    with open_memory(tmp_path, chat=ScriptedChat([answer, answer])) as memory:
        assert len(memory.add(TURN, ALICE).changes) == 1


async def test_an_asynchronous_chat_model_that_answers_no_text_costs_only_its_facts(
    tmp_path: Path,
) -> None:
    class Wrong(AsyncScriptedChat):
        async def complete(self, system: str, user: str, *, schema: Any) -> Any:
            return {"facts": []}

    async with open_memory(tmp_path, chat=Wrong([])) as memory:
        written = await asyncio.wait_for(memory.aadd(TURN, ALICE), 10)

        assert len(written.changes) == 1


def test_a_model_that_raises_a_cancellation_is_retried(tmp_path: Path) -> None:
    class Cancels(HashEmbedder):
        left = 1

        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if self.left:
                self.left -= 1
                raise asyncio.CancelledError
            return super().embed(texts, purpose=purpose)

    with open_memory(tmp_path, embedder=Cancels(), settings=QUICK) as memory:
        assert memory.add("Alice keeps bees", ALICE).changes[0].event == "ADD"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fact(
            text="far", at=datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
        ),
        lambda: Fact(text="early", at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))),
        lambda: Fact(text="x", relations=("a",)),  # type: ignore[arg-type]
        lambda: Message(text="hi", name=123),  # type: ignore[arg-type]
        lambda: Message(text="hi", name="\ud800"),
        lambda: Message(text="hi", role="bogus"),  # type: ignore[arg-type]
        lambda: Message(text="hi", id=7),  # type: ignore[arg-type]
    ],
)
def test_what_could_not_be_read_back_is_refused(make: Any) -> None:
    with pytest.raises(InvalidRecord):
        make()


def test_an_extracted_date_outside_the_calendar_is_dropped(tmp_path: Path) -> None:
    answer = (
        '{"facts": [{"text": "Alice is old", "kind": "fact",'
        ' "since": "0001-01-01T00:00:00+02:00", "relations": []}]}'
    )
    with open_memory(tmp_path, chat=ScriptedChat([answer])) as memory:
        memory.add(TURN, ALICE)

        assert len(memory.list(ALICE).records) == 2


@pytest.mark.parametrize(
    "refused",
    [
        lambda m: m.add("x", ALICE, origin="nobody"),
        lambda m: m.add(None, ALICE),
        lambda m: m.relations(ALICE, ""),
        lambda m: m.relations(ALICE, "\ud800"),
        lambda m: m.add("x", ALICE, metadata=[]),
    ],
)
def test_odd_arguments_are_refused_by_name(memory: Memory, refused: Any) -> None:
    with pytest.raises(InvalidRecord):
        refused(memory)


def test_a_filter_with_a_lone_surrogate_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidFilter):
        memory.search("x", ALICE, where={"city": "\ud800"})


def test_metadata_may_be_any_mapping(memory: Memory) -> None:
    memory.add("Alice keeps bees", ALICE, metadata=MappingProxyType({"hives": 3}))

    assert memory.list(ALICE).records[0].metadata == {"hives": 3}


def test_changing_what_a_search_gave_changes_nothing_else(memory: Memory) -> None:
    memory.add("Alice keeps bees", ALICE, metadata={"hives": [3]})
    for _ in range(2):
        [match] = memory.search("bees", ALICE)
        assert match.record.metadata == {"hives": [3]}
        match.record.metadata["hives"].append(4)


def test_a_model_that_ends_its_thread_does_not_end_the_lane(tmp_path: Path) -> None:
    class Exits(HashEmbedder):
        left = 1

        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if self.left:
                self.left -= 1
                raise SystemExit
            return super().embed(texts, purpose=purpose)

    with open_memory(tmp_path, embedder=Exits(), settings=QUICK) as memory:
        assert memory.add("Alice keeps bees", ALICE).changes[0].event == "ADD"


def test_one_folder_that_closes_slowly_does_not_keep_another_from_opening(tmp_path: Path) -> None:
    release = threading.Event()

    class Stuck(HashEmbedder):
        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            release.wait(20)
            return super().embed(texts, purpose=purpose)

    slow = open_memory(tmp_path / "slow", embedder=Stuck())
    slow.add("Alice keeps bees", ALICE, wait=False)
    closing = threading.Thread(target=slow.close)
    closing.start()
    while memory_is_open(slow):
        pass
    with open_memory(tmp_path / "other") as other:
        other.add("Alice rows", ALICE)
        assert closing.is_alive()
    release.set()
    closing.join(20)


# -- one record, several writes --------------------------------------------------------------------


def test_a_text_told_again_after_its_record_was_changed_is_kept(memory: Memory) -> None:
    first = memory.add("Alice lives in Lyon", ALICE).changes[0]
    memory.update(first.id, "Alice lives in Nice", ALICE)
    events = [memory.add("Alice lives in Lyon", ALICE).changes[0].event for _ in range(2)]

    assert events == ["ADD", "NONE"]
    assert {one.text for one in memory.list(ALICE).records} == {
        "Alice lives in Lyon",
        "Alice lives in Nice",
    }


def test_a_text_told_again_survives_a_replay_after_later_changes(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        first = memory.add("Alice lives in Lyon", ALICE).changes[0]
        memory.update(first.id, "Alice lives in Nice", ALICE)
        memory.add("Alice lives in Lyon", ALICE)
        memory.update(first.id, "Alice lives in Metz", ALICE)
        memory.drain()
        memory._store.engines.index.erase(ALICE)  # as if the process had died before the index
        memory._store.writer.recover()

        found = {one.record.text for one in memory.search("Where does Alice live?", ALICE)}
        assert found == {"Alice lives in Lyon", "Alice lives in Metz"}
        assert len(memory.list(ALICE).records) == 2


def test_an_expired_text_told_again_is_remembered_again(memory: Memory) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    memory.add(Fact(text="Alice is on holiday", expires_at=soon), ALICE)
    while memory.list(ALICE).records:
        pass
    written = memory.add("Alice is on holiday", ALICE)

    assert written.changes[0].event == "ADD"
    assert [one.record.text for one in memory.search("holiday", ALICE)] == ["Alice is on holiday"]


def test_an_update_keeps_metadata_that_a_write_before_it_brings(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        known = memory.add("Alice keeps bees", ALICE, metadata={"n": 1}).changes[0].id
        memory.update(known, "Alice keeps many bees", ALICE, metadata={"n": 2}, wait=False)
        memory.update(known, "Alice keeps few bees", ALICE)

        assert memory.get(known, ALICE).metadata == {"n": 2}  # type: ignore[union-attr]


def test_a_key_on_its_way_is_not_given_to_another_text(tmp_path: Path) -> None:
    embedder = SlowEmbedder()

    async def write() -> None:
        async with open_memory(tmp_path, embedder=embedder) as memory:
            await memory.aadd("one", ALICE, key="k", wait=False)
            with pytest.raises(IdempotencyConflict):
                await memory.aadd("two", ALICE, key="k", wait=False)

    asyncio.run(write())


def test_forgetting_a_session_leaves_no_row_of_a_change_made_from_above(tmp_path: Path) -> None:
    session = Scope(user_id="alice", session_id="s")
    with open_memory(tmp_path) as memory:
        known = memory.add("a secret of the session", session).changes[0].id
        memory.update(known, "another secret of the session", ALICE)
        receipt = memory.forget(session)

        assert receipt.complete
        assert receipt.left["journal.rows"] == 0
        assert memory._store.engines.journal.unflushed() == []


# -- loops -----------------------------------------------------------------------------------------


async def test_draining_for_a_moment_takes_no_write_from_its_caller(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.seconds = 0.3
    async with open_memory(tmp_path, embedder=embedder) as memory:
        writing = asyncio.ensure_future(memory.aadd("Alice keeps bees", ALICE))
        await asyncio.sleep(0.1)
        left = await memory.adrain(0.05)
        written = await asyncio.wait_for(writing, 10)

        assert left.pending == 1
        assert written.changes[0].event == "ADD"


async def test_draining_and_closing_mind_only_the_writes_of_their_own_loop(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=SlowEmbedder())
    await memory.aadd("Alice rows", ALICE, wait=False)
    await asyncio.to_thread(asyncio.run, memory.aadd("Alice keeps bees", ALICE))

    left = await asyncio.to_thread(asyncio.run, memory.adrain())
    await memory.aclose()

    assert left.pending == 0


def test_draining_in_a_thread_waits_for_what_a_loop_is_planning(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=SlowEmbedder())

    async def write() -> int:
        await memory.aadd("Alice keeps bees", ALICE, wait=False)
        return (await asyncio.to_thread(memory.drain, 10)).pending

    assert asyncio.run(write()) == 0
    asyncio.run(memory.aclose())


def test_a_retried_dead_letter_of_an_asynchronous_model_runs_at_the_next_loop(
    tmp_path: Path,
) -> None:
    class Healing(SlowEmbedder):
        ill = True

        async def embed(self, texts: Sequence[str], *, purpose: str) -> Any:  # type: ignore[override]
            if self.ill:
                raise ConnectionError("down")
            return await super().embed(texts, purpose=purpose)

    embedder = Healing()
    settings = Settings(max_attempts=1)
    memory = open_memory(tmp_path, embedder=embedder, settings=settings)
    with pytest.raises(ModelFailed):
        asyncio.run(memory.aadd("Alice keeps bees", ALICE))
    embedder.ill = False

    assert memory.retry([letter.operation for letter in memory.dead_letters()]) == 1
    assert asyncio.run(memory.adrain()).pending == 0
    assert len(memory.list(ALICE).records) == 1
    memory.close()


async def test_closing_over_an_unfinished_write_tells_its_caller_so(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.seconds = 1.0
    memory = open_memory(tmp_path, embedder=embedder)
    writing = asyncio.ensure_future(memory.aadd("Alice keeps bees", ALICE))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(memory.close, 0.1)

    with pytest.raises(MemoryClosed):
        await asyncio.wait_for(writing, 10)
    for task in memory._tasks:
        task.cancel()
    await asyncio.gather(*memory._tasks, return_exceptions=True)

    embedder.seconds = 0.0
    async with open_memory(tmp_path, embedder=embedder) as again:
        assert (await again.adrain()).pending == 0
        assert len(again.list(ALICE).records) == 1
