"""What once went wrong, or would at a peer: races, odd models, odd times."""

import asyncio
import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from commonplace import (
    Fact,
    IdempotencyConflictError,
    InvalidFilterError,
    InvalidRecordError,
    Memory,
    MemoryClosedError,
    Message,
    ModelFailedError,
    RecordNotFoundError,
    Relation,
    Scope,
    Settings,
    StoreUnavailableError,
)
from commonplace.ports.stores import arm_crash_points
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
    with pytest.raises(InvalidRecordError):
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
        lambda m: m.get(7, ALICE),
        lambda m: m.history(["x"], ALICE),
        lambda m: m.update({}, "x", ALICE),
        lambda m: m.delete(b"x", ALICE),
        lambda m: m.feedback("x", ALICE, helped="no"),
        lambda m: m.admin.retry([object()]),
        lambda m: m.admin.dead_letters("alice"),
        lambda m: m.search("x", ALICE, kinds=None),
        lambda m: m.list(ALICE, kinds="fact"),
        lambda m: Fact(text="x", relations=None),  # type: ignore[arg-type]
        lambda m: Fact(text="x", relations=7),  # type: ignore[arg-type]
        lambda m: Relation(subject="\u200b", predicate="b", object="c"),
        lambda m: Relation(subject="a", predicate="b", object="c", single_valued="no"),  # type: ignore[arg-type]
        lambda m: Settings(max_attempts="8"),  # type: ignore[arg-type]
        lambda m: Memory.open("x", embedder=object()),  # type: ignore[arg-type]
    ],
)
def test_odd_arguments_are_refused_by_name(memory: Memory, refused: Any) -> None:
    with pytest.raises(InvalidRecordError):
        refused(memory)


def test_a_filter_with_a_lone_surrogate_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidFilterError):
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


def test_a_model_that_ends_its_thread_does_not_end_the_partition(tmp_path: Path) -> None:
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


@contextlib.contextmanager
def applied_halfway_once() -> Iterator[list[str]]:
    """Let the next change of the stores fail after the graph has it, and before the index has."""
    failed: list[str] = []

    def hook(point: str) -> None:
        if point == "after_graph" and not failed:
            failed.append(point)
            raise StoreUnavailableError(store="index", reason="it is away")

    arm_crash_points(hook)
    try:
        yield failed
    finally:
        arm_crash_points(None)


@pytest.mark.every_engine("embedded", "folders")
def test_a_text_told_again_survives_a_replay_with_later_changes(tmp_path: Path) -> None:
    with open_memory(tmp_path, settings=QUICK) as memory, applied_halfway_once() as failed:
        first = ALICE.record_id("fact", "Alice lives in Lyon")
        memory.add("Alice lives in Lyon", ALICE, wait=False)
        memory.update(first, "Alice lives in Nice", ALICE, wait=False)
        memory.add("Alice lives in Lyon", ALICE, wait=False)
        memory.update(first, "Alice lives in Metz", ALICE, wait=False)
        left = memory.flush()

        found = {one.record.text for one in memory.search("Where does Alice live?", ALICE)}
        assert (failed, left.pending, left.dead) == (["after_graph"], 0, 0)
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
            with pytest.raises(IdempotencyConflictError):
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
        assert memory._runtime.engines.journal.rows(ALICE) == 0
        files = [one for one in tmp_path.rglob("*") if one.is_file()]
        assert [one.name for one in files if b"secret" in one.read_bytes()] == []


@pytest.mark.every_engine("embedded", "folders")
@pytest.mark.parametrize("replayed", [False, True])
def test_a_known_fact_may_come_with_the_one_that_ends_it(tmp_path: Path, *, replayed: bool) -> None:
    lyon, nice = (home(place, since) for place, since in (("Lyon", 2020), ("Nice", 2021)))
    with open_memory(tmp_path, settings=QUICK) as memory:
        memory.add(lyon, ALICE)
        for both in ([nice, lyon], [lyon, nice]):
            with applied_halfway_once() if replayed else contextlib.nullcontext():
                memory.add(both, ALICE, wait=False)
                assert memory.flush().pending == 0

        assert [one.text for one in memory.list(ALICE).records] == ["Alice lives in Nice"]
        assert [one.record.text for one in memory.search("live", ALICE)] == ["Alice lives in Nice"]


def home(place: str, since: int) -> Fact:
    said = Relation(subject="Alice", predicate="lives_in", object=place)
    at = datetime(since, 1, 1, tzinfo=UTC)
    return Fact(text=f"Alice lives in {place}", at=at, relations=(said,))


def test_a_change_that_rests_is_not_overtaken_by_what_ends_its_record(tmp_path: Path) -> None:
    class Flaky(HashEmbedder):
        left = 0

        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if self.left and "Alice lives in Nice" not in texts:
                self.left -= 1
                raise ConnectionError("away")
            return super().embed(texts, purpose=purpose)

    embedder = Flaky()
    with open_memory(tmp_path, embedder=embedder, settings=Settings(retry_after=0.3)) as memory:
        known = memory.add(home("Lyon", 2020), ALICE).changes[0].id
        embedder.left = 1
        memory.update(known, "changed", ALICE, metadata={"n": 1}, relations=None, wait=False)
        while embedder.left:
            time.sleep(0.001)
        memory.add(home("Nice", 2021), ALICE)
        memory.feedback(known, ALICE, helped=True)  # though it needs no model, it waits its turn
        record = memory.get(known, ALICE)

        assert record is not None
        assert (record.text, record.votes) == ("changed", 1)
        assert memory.flush().pending == 0


async def test_writes_about_one_record_keep_their_order_whatever_plans_them(
    tmp_path: Path,
) -> None:
    async with open_memory(tmp_path, embedder=SlowEmbedder()) as memory:
        known = (await memory.aadd("Alice rows", ALICE)).changes[0].id
        await memory.aupdate(known, "Alice rows at dawn", ALICE, wait=False)
        await memory.adelete(known, ALICE, wait=False)
        await memory.aadd("Alice rows", ALICE, wait=False)
        assert (await memory.aflush()).pending == 0

        assert [one.text for one in (await memory.alist(ALICE)).records] == ["Alice rows"]


def test_a_key_of_a_fact_is_not_given_to_another_text(memory: Memory) -> None:
    memory.add(Fact(text="one", key="k"), ALICE)
    memory.add(Fact(text="one", key="k"), ALICE)
    for again in (Fact(text="two", key="k"), [Fact(text=text, key="q") for text in "ab"]):
        with pytest.raises(IdempotencyConflictError):
            memory.add(again, ALICE)

    assert len(memory.list(ALICE).records) == 1


def test_a_retried_dead_letter_is_not_overtaken_by_what_came_since(tmp_path: Path) -> None:
    class Ill(HashEmbedder):
        ill = False

        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if self.ill and purpose == "document":
                raise ConnectionError("away")
            return super().embed(texts, purpose=purpose)

    embedder = Ill()
    settings = Settings(retry_after=0.01, max_attempts=1)
    with open_memory(tmp_path, embedder=embedder, settings=settings) as memory:
        known = memory.add("Alice rows", ALICE).changes[0].id
        embedder.ill = True
        with pytest.raises(ModelFailedError):
            memory.update(known, "Alice rows at dawn", ALICE)
        embedder.ill = False
        memory.feedback(known, ALICE, helped=True)
        assert memory.admin.retry([one.operation for one in memory.admin.dead_letters(ALICE)]) == 1
        memory.flush()
        record = memory.get(known, ALICE)

        assert record is not None
        assert (record.text, record.votes) == ("Alice rows at dawn", 1)


def test_relations_may_be_any_iterable(memory: Memory) -> None:
    said = (Relation(subject="Alice", predicate="likes", object=name) for name in ("tea", "rum"))
    memory.add(Fact(text="x", relations=said), ALICE)  # type: ignore[arg-type]

    assert [one.object for one in memory.relations(ALICE)] == ["tea", "rum"]


def test_what_has_expired_is_related_to_nothing_and_can_be_removed(memory: Memory) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    said = Relation(subject="Alice", predicate="likes", object="tea")
    kept, gone = (
        memory.add(Fact(text=text, expires_at=soon, relations=(said,)), ALICE).changes[0].id
        for text in ("one", "two")
    )
    while memory.list(ALICE).records:
        pass

    assert memory.relations(ALICE) == []
    assert memory.delete(gone, ALICE).changes[0].event == "DELETE"
    assert [one.id for one in memory.admin.prune(ALICE, keep=100, dry_run=False)] == [kept]
    assert memory._runtime.engines.graph.page(ALICE, include_expired=True).records == ()


def test_what_is_about_to_be_deleted_is_not_found(tmp_path: Path) -> None:
    embedder = SlowEmbedder()

    async def write() -> None:
        async with open_memory(tmp_path, embedder=embedder) as memory:
            one, two = (await memory.aadd(["one", "two"], ALICE)).changes
            await memory.aupdate(one.id, "first", ALICE, wait=False)
            await memory.adelete(one.id, ALICE, wait=False)
            with pytest.raises(RecordNotFoundError):
                await memory.aupdate(one.id, "second", ALICE)
            with pytest.raises(RecordNotFoundError):
                await memory.adelete(one.id, ALICE)
            await memory.aupdate(two.id, "pinned", ALICE, pinned=True, wait=False)
            await memory.admin.run(memory.admin.prune, ALICE, keep=0, dry_run=False)
            await memory.aflush()
            assert [r.text for r in (await memory.alist(ALICE)).records] == ["pinned"]

    asyncio.run(write())


def test_a_chat_model_that_hangs_costs_only_its_facts(tmp_path: Path) -> None:
    release = threading.Event()

    class Hangs(ScriptedChat):
        def complete(self, system: str, user: str, *, schema: Any) -> Any:
            release.wait(30)
            return '{"facts": []}'

    settings = Settings(model_timeout=0.2)
    with open_memory(tmp_path, chat=Hangs([]), settings=settings) as memory:
        assert len(memory.add(TURN, ALICE).changes) == 1
    release.set()


def test_what_was_accepted_is_applied_before_a_program_ends(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from commonplace import Memory, Scope\n"
        "from commonplace.testing.fakes import HashEmbedder\n"
        "memory = Memory.open(sys.argv[1], embedder=HashEmbedder())\n"
        "memory.add('Alice rows', Scope(user_id='alice'), wait=False)\n"
    )
    place = str(tmp_path / "left")
    subprocess.run([sys.executable, "-c", script, place], timeout=60, check=True)
    embedder = HashEmbedder()

    with Memory.open(place, embedder=embedder) as memory:
        memory.flush()
        assert [one.text for one in memory.list(ALICE).records] == ["Alice rows"]
        assert embedder.calls == []  # whatever is embedded now had been left to do


def test_a_write_of_a_loop_that_was_closed_goes_on_at_the_next(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.seconds = 5.0
    memory = open_memory(tmp_path, embedder=embedder)
    first = asyncio.new_event_loop()
    first.run_until_complete(memory.aadd("Alice rows", ALICE, wait=False))
    pending = asyncio.all_tasks(first)
    first.close()
    embedder.seconds = 0.0

    async def go_on() -> int:
        await memory.aadd("Alice keeps bees", ALICE)
        return (await memory.aflush(60)).pending

    assert asyncio.run(go_on()) == 0
    assert len(memory.list(ALICE).records) == 2
    for task in pending:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        task.get_coro().close()  # type: ignore[union-attr]
    memory.close()


# -- loops -----------------------------------------------------------------------------------------


async def test_draining_for_a_moment_takes_no_write_from_its_caller(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.seconds = 0.3
    async with open_memory(tmp_path, embedder=embedder) as memory:
        writing = asyncio.ensure_future(memory.aadd("Alice keeps bees", ALICE))
        await asyncio.sleep(0.1)
        left = await memory.aflush(0.05)
        written = await asyncio.wait_for(writing, 10)

        assert left.pending == 1
        assert written.changes[0].event == "ADD"


async def test_draining_and_closing_mind_only_the_writes_of_their_own_loop(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=SlowEmbedder())
    await memory.aadd("Alice rows", ALICE, wait=False)
    await asyncio.to_thread(asyncio.run, memory.aadd("Alice keeps bees", ALICE))

    left = await asyncio.to_thread(asyncio.run, memory.aflush())
    await memory.aclose()

    assert left.pending == 0


def test_draining_in_a_thread_waits_for_what_a_loop_is_planning(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=SlowEmbedder())

    async def write() -> int:
        await memory.aadd("Alice keeps bees", ALICE, wait=False)
        return (await asyncio.to_thread(memory.flush, 10)).pending

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
    with pytest.raises(ModelFailedError):
        asyncio.run(memory.aadd("Alice keeps bees", ALICE))
    embedder.ill = False

    assert memory.admin.retry([letter.operation for letter in memory.admin.dead_letters()]) == 1
    assert asyncio.run(memory.aflush()).pending == 0
    assert len(memory.list(ALICE).records) == 1
    memory.close()


async def test_closing_over_an_unfinished_write_tells_its_caller_so(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.seconds = 1.0
    memory = open_memory(tmp_path, embedder=embedder)
    writing = asyncio.ensure_future(memory.aadd("Alice keeps bees", ALICE))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(memory.close, 0.1)

    with pytest.raises(MemoryClosedError):
        await asyncio.wait_for(writing, 10)
    for task in memory._submission._tasks:
        task.cancel()
    await asyncio.gather(*memory._submission._tasks, return_exceptions=True)

    embedder.seconds = 0.0
    async with open_memory(tmp_path, embedder=embedder) as again:
        assert (await again.aflush()).pending == 0
        assert len(again.list(ALICE).records) == 1


def test_an_index_that_was_lost_is_told_with_the_way_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = {"path": str(tmp_path / "memory"), "vectors": str(tmp_path / "index")}
    with Memory.open(**place, embedder=HashEmbedder()) as memory:
        memory.add("Alice rows", Scope(user_id="alice"))
    assert "reindex" not in caplog.text
    shutil.rmtree(tmp_path / "index")
    with Memory.open(**place, embedder=HashEmbedder()):
        assert "run `commonplace reindex`" in caplog.text


async def test_a_memory_whose_folder_was_deleted_is_closed_and_opened_anew(tmp_path: Path) -> None:
    memory = open_memory(tmp_path)
    await memory.aadd("Alice keeps bees", ALICE)
    shutil.rmtree(tmp_path)

    with pytest.raises(StoreUnavailableError, match="deleted or replaced"):
        await memory.aadd("Alice rows", ALICE)
    with pytest.raises(StoreUnavailableError, match="deleted or replaced"):
        await memory.aclose()
    async with open_memory(tmp_path) as again:
        await again.aadd("Alice rows", ALICE)
        assert [one.text for one in again.list(ALICE).records] == ["Alice rows"]
