"""What a user of `Memory` relies on, on the real embedded engines."""

import asyncio
import gc
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import commonplace.runtime
from commonplace import (
    BackpressureError,
    Extraction,
    Fact,
    IdempotencyConflictError,
    InvalidRecordError,
    InvalidScopeError,
    InvalidVectorError,
    LoopRequiredError,
    Memory,
    MemoryClosedError,
    Message,
    Record,
    RecordNotFoundError,
    Relation,
    SchemaMismatchError,
    Scope,
    Settings,
)
from commonplace.ports.stores import Hit
from commonplace.retrieval.calibration import PROBES
from commonplace.testing.fakes import (
    AsyncScriptedChat,
    HashEmbedder,
    HashTokenEmbedder,
    ScriptedChat,
)
from commonplace.types import TokenEmbedding, now

from .found_hits import found_hits

ALICE = Scope(user_id="alice")
SESSION = Scope(user_id="alice", session_id="s1")
QUICK = Settings(retry_after=0.01, max_attempts=4)


def open_memory(folder: Path, **given: Any) -> Memory:
    return Memory.open(str(folder), **{"embedder": HashEmbedder(), **given})


def texts_of(memory: Memory, scope: Scope = ALICE) -> list[str]:
    found, cursor = [], None
    while True:
        page = memory.list(scope, limit=500, cursor=cursor)
        found += [record.text for record in page.records]
        cursor = page.cursor
        if cursor is None:
            return found


class LoopBoundEmbedder(HashEmbedder):
    """Fails, as an HTTP client does, on another loop than the one that it first met."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: set[int] = set()

    async def embed(self, texts: Sequence[str], *, purpose: str) -> Any:  # type: ignore[override]
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return super().embed(texts, purpose=purpose)  # type: ignore[arg-type]


class AsyncTokenEmbedder(HashTokenEmbedder):
    """Gives tokens on the loop of its caller."""

    async def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:  # type: ignore[override]
        raise AssertionError("its tokens were not asked for")

    async def embed_tokens(  # type: ignore[override]
        self, texts: Sequence[str], *, purpose: Any
    ) -> Any:
        vectors = [self._embed(text) for text in texts]
        given = HashTokenEmbedder().embed_tokens(texts, purpose=purpose)
        return [replace(one, vector=row) for one, row in zip(given, vectors, strict=True)]


class FlakyEmbedder(HashEmbedder):
    """Answers nonsense, or raises, so many times."""

    def __init__(self, answers: list[Any]) -> None:
        super().__init__()
        self.answers = answers

    def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
        if self.answers and purpose == "document":
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return [answer] * len(texts)
        return super().embed(texts, purpose=purpose)


# -- tokens ----------------------------------------------------------------------------------------


def has_train(hits: Sequence[Hit]) -> dict[str, bool]:
    """Tell of each hit whether it has the one token of "Which train?" that counts."""
    return {one.record.text: one.late[0] > 0.99 for one in hits}


@pytest.mark.parametrize("wait", [True, False])
def test_tokens_are_stored_and_compared_on_every_way_to_write(tmp_path: Path, wait: bool) -> None:
    turns = [Message(text=f"The {word} was late") for word in ("train", "bus", "letter")]
    with open_memory(tmp_path, embedder=HashTokenEmbedder()) as memory:
        memory.add("warm", ALICE)  # from now on the embedder is known as quick
        for n, turn in enumerate(turns):
            memory.add([turn], Scope(user_id="alice", session_id=f"{n}"), infer=False, wait=wait)
        memory.flush()
        with found_hits() as hits:
            memory.search("Which train?", ALICE)

    texts = ["warm", *(one.text for one in turns)]
    assert has_train(hits) == {text: "train" in text for text in texts}


async def test_an_asynchronous_embedder_may_give_tokens(tmp_path: Path) -> None:
    with open_memory(tmp_path, embedder=AsyncTokenEmbedder()) as memory:
        for n, text in enumerate(("The train was late", "The bus was blue")):
            scope = Scope(user_id="alice", session_id=f"{n}")
            await memory.aadd([Message(text=text)], scope, infer=False)
        with found_hits() as hits:
            await memory.asearch("Which train?", ALICE)

    assert has_train(hits) == {"The train was late": True, "The bus was blue": False}


@pytest.mark.parametrize(
    "answer", [[[1.0, 2.0]], [None], [TokenEmbedding(vector=[1.0] * 64, tokens=b"x")]]
)
def test_an_embedder_that_gives_no_tokens_where_it_should_is_refused(
    tmp_path: Path, answer: Any
) -> None:
    class Broken(HashTokenEmbedder):
        def embed_tokens(self, texts: Sequence[str], *, purpose: Any) -> Any:
            return answer

    with (
        open_memory(tmp_path, embedder=Broken()) as memory,
        pytest.raises(InvalidVectorError),
    ):
        memory.search("Which train?", ALICE)


# -- writing ---------------------------------------------------------------------------------------


def test_the_same_fact_is_one_record_however_often_and_concurrently_it_is_added(
    memory: Memory,
) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: memory.add("Alice keeps bees", ALICE), range(10)))

    assert texts_of(memory) == ["Alice keeps bees"]
    assert sorted(answer.changes[0].event for answer in answers) == ["ADD"] + ["NONE"] * 9
    assert len({answer.changes[0].id for answer in answers}) == 1


def test_a_key_names_one_text_for_ever(memory: Memory) -> None:
    memory.add("Alice keeps bees", ALICE, key="k")
    again = memory.add("Alice keeps bees", ALICE, key="k")

    with pytest.raises(IdempotencyConflictError):
        memory.add("Alice keeps wasps", ALICE, key="k")
    assert again.changes[0].event == "NONE"
    assert texts_of(memory) == ["Alice keeps bees"]


def test_an_upsert_gives_a_key_another_text(memory: Memory) -> None:
    for text in ("Alice drinks tea", "Alice drinks rum"):
        fact = Fact(text=text, key="drink", metadata={"text": text})
        written = memory.add([fact, "Alice rows"], ALICE, upsert=True)
    assert [one.event for one in written.changes] == ["UPDATE", "NONE"]
    [found] = memory.search("what does Alice drink", ALICE, top_k=1)
    assert (found.record.text, found.record.metadata) == (
        "Alice drinks rum",
        {"text": "Alice drinks rum"},
    )
    texts = [one.text for one in memory.history(found.record.id, ALICE)]
    assert texts == ["Alice drinks tea", "Alice drinks rum"]


def test_a_records_end_can_be_set_and_taken_back(memory: Memory) -> None:
    record = memory.add("Alice rows", ALICE).changes[0].id
    soon = now() + timedelta(hours=1)
    memory.update(record, None, ALICE, expires_at=soon)
    assert [one.expires_at for one in memory.list(ALICE).records] == [soon]
    memory.update(record, None, ALICE, importance=1.0)
    assert [one.expires_at for one in memory.list(ALICE).records] == [soon]
    memory.update(record, None, ALICE, expires_at=None)
    assert [one.expires_at for one in memory.list(ALICE).records] == [None]
    memory.update(record, None, ALICE, expires_at=now())
    assert texts_of(memory) == []


def test_a_record_has_a_history_of_all_its_texts(memory: Memory) -> None:
    record_id = memory.add("Alice lives in Lyon", ALICE).changes[0].id
    memory.update(record_id, "Alice lives in Paris", ALICE, metadata={"since": 2026})
    memory.delete(record_id, ALICE)

    assert [(v.event, v.text, v.previous) for v in memory.history(record_id, ALICE)] == [
        ("ADD", "Alice lives in Lyon", None),
        ("UPDATE", "Alice lives in Paris", "Alice lives in Lyon"),
        ("DELETE", None, "Alice lives in Paris"),
    ]
    assert memory.get(record_id, ALICE) is None
    assert memory.search("Paris", ALICE) == []


def test_a_write_that_is_still_on_its_way_can_be_changed(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add([f"note {n}" for n in range(200)], ALICE, wait=False)
        memory.add("Alice keeps bees", ALICE, wait=False)

        bees = ALICE.record_id("fact", "Alice keeps bees")
        memory.update(bees, "Alice keeps wasps", ALICE)

        assert memory.get(bees, ALICE).text == "Alice keeps wasps"  # type: ignore[union-attr]


def test_what_another_agent_has_on_its_way_looks_unknown(tmp_path: Path) -> None:
    cook, nurse = (Scope(user_id="alice", agent_id=one) for one in ("cook", "nurse"))
    with open_memory(tmp_path, embedder=LoopBoundEmbedder()) as memory:
        memory.add("the cook keeps bees", cook, wait=False)
        bees = cook.record_id("fact", "the cook keeps bees")

        with pytest.raises(RecordNotFoundError):
            memory.update(bees, "the nurse keeps bees", nurse, wait=False)
        with pytest.raises(RecordNotFoundError):
            memory.delete(bees, nurse, wait=False)
        asyncio.run(memory.aflush())

        assert texts_of(memory, cook) == ["the cook keeps bees"]


def test_an_unknown_record_cannot_be_changed_and_a_foreign_one_looks_unknown(
    memory: Memory,
) -> None:
    bobs = memory.add("Bob keeps bees", Scope(user_id="bob")).changes[0].id

    for record_id in (bobs, "no-such-id"):
        with pytest.raises(RecordNotFoundError, match="No record"):
            memory.update(record_id, "mine", ALICE)
        with pytest.raises(RecordNotFoundError, match="No record"):
            memory.delete(record_id, ALICE)
    assert memory.history(bobs, ALICE) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.add("", ALICE),
        lambda memory: memory.add("\ud800", ALICE),
        lambda memory: memory.add("x" * 40_000, ALICE),
        lambda memory: memory.add([], ALICE),
        lambda memory: memory.add(["fine", 7], ALICE),
        lambda memory: memory.add("fine", ALICE, kind="gossip"),
        lambda memory: memory.add("fine", ALICE, metadata={"": "bob"}),
        lambda memory: memory.add("fine", ALICE, metadata={"n": float("nan")}),
        lambda memory: memory.add("fine", "alice"),
        lambda memory: memory.search("fine", ALICE, top_k=0),
        lambda memory: memory.search("fine", ALICE, top_k=True),
        lambda memory: memory.search("fine", ALICE, threshold=1.1),
        lambda memory: memory.search(" ", ALICE),
        lambda memory: memory.list(ALICE, limit=0),
        lambda memory: memory.list(ALICE, cursor="nonsense"),
    ],
)
def test_bad_input_is_refused_before_anything_is_stored(memory: Memory, call: Any) -> None:
    with pytest.raises(InvalidRecordError):
        call(memory)
    assert texts_of(memory) == []


def test_a_scope_is_never_guessed() -> None:
    for given in ({}, {"user_id": ""}, {"user_id": "*"}, {"user_id": 7}, {"user_id": "a\n"}):
        with pytest.raises(InvalidScopeError):
            Scope(**given)  # type: ignore[arg-type]


# -- models ----------------------------------------------------------------------------------------

FACTS = json.dumps(
    {
        "facts": [
            {
                "text": "Alice lives in Lyon",
                "kind": "fact",
                "since": "2026-03-01",
                "relations": [{"subject": "Alice", "predicate": "lives_in", "object": "Lyon"}],
            }
        ]
    }
)
TURN = Message(text="I moved to Lyon in March", name="Alice", id="1")


@pytest.mark.parametrize(
    ("answers", "calls", "facts"),
    [
        ([FACTS], 1, ["Alice lives in Lyon"]),
        (["no json", FACTS], 2, ["Alice lives in Lyon"]),
        (["no json", "none either"], 2, []),
        (['{"facts": []}'], 1, []),
        ([RuntimeError("down")], 1, []),
    ],
)
def test_extraction_asks_once_repairs_once_and_always_keeps_the_turn(
    tmp_path: Path, answers: list[Any], calls: int, facts: list[str]
) -> None:
    chat = ScriptedChat(answers)
    with open_memory(tmp_path, chat=chat) as memory:
        memory.add(TURN, SESSION)

        assert len(chat.calls) == calls
        assert sorted(texts_of(memory)) == sorted([*facts, TURN.text])
        assert [r.object for r in memory.relations(ALICE)] == (["Lyon"] if facts else [])


async def test_an_asynchronous_chat_model_is_awaited_on_the_callers_loop(tmp_path: Path) -> None:
    chat = AsyncScriptedChat([FACTS])
    async with open_memory(tmp_path, chat=chat) as memory:
        await memory.aadd(TURN, SESSION)

        assert len(chat.calls) == 1
        assert len(texts_of(memory)) == 2


def test_an_asynchronous_model_is_refused_where_no_loop_is(tmp_path: Path) -> None:
    with open_memory(tmp_path, embedder=LoopBoundEmbedder()) as memory:
        with pytest.raises(LoopRequiredError, match="aadd"):
            memory.add("Alice keeps bees", ALICE)
        with pytest.raises(LoopRequiredError, match="asearch"):
            memory.search("bees", ALICE)


def test_a_write_left_by_a_dead_loop_goes_on_at_the_next_one(tmp_path: Path) -> None:
    embedder = LoopBoundEmbedder()
    memory = open_memory(tmp_path, embedder=embedder)
    memory.add("Alice keeps bees", ALICE, wait=False)
    asyncio.run(memory.aadd("Alice rows at dawn", ALICE, wait=False))

    left = asyncio.run(memory.aflush())

    assert (left.pending, left.dead) == (0, 0)
    assert sorted(texts_of(memory)) == ["Alice keeps bees", "Alice rows at dawn"]
    asyncio.run(memory.aclose())


def test_a_read_or_write_on_a_new_loop_takes_up_what_a_dead_loop_left(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, embedder=LoopBoundEmbedder())

    async def until_planned(text: str) -> None:
        await asyncio.gather(*memory._submission._tasks)
        await memory._run(memory.flush, 10)
        assert text in texts_of(memory)

    async def read() -> None:
        await memory.asearch("bees", ALICE)
        await until_planned("Alice keeps bees")

    async def write() -> None:
        await memory.aadd("Alice sings", ALICE)
        await until_planned("Alice rows at dawn")

    memory.add("Alice keeps bees", ALICE, wait=False)
    asyncio.run(asyncio.wait_for(read(), 20))
    memory.add("Alice rows at dawn", ALICE, wait=False)
    asyncio.run(asyncio.wait_for(write(), 20))
    asyncio.run(memory.aclose())


def test_a_transient_model_failure_is_retried(tmp_path: Path) -> None:
    embedder = FlakyEmbedder([ConnectionError("down"), ConnectionError("down")])
    with open_memory(tmp_path, embedder=embedder, settings=QUICK) as memory:
        memory.add("Alice keeps bees", ALICE)

        assert texts_of(memory) == ["Alice keeps bees"]


def test_a_write_that_cannot_succeed_is_a_dead_letter_and_can_be_retried(tmp_path: Path) -> None:
    embedder = FlakyEmbedder([[float("nan")] * 64])
    with open_memory(tmp_path, embedder=embedder, settings=QUICK) as memory:
        with pytest.raises(InvalidVectorError):
            memory.add("Alice keeps bees", ALICE)
        [letter] = memory.admin.dead_letters(ALICE)

        assert "must be finite" in letter.reason
        assert memory.admin.dead_letters(Scope(user_id="bob")) == []
        assert memory.admin.retry([letter.operation]) == 1
        memory.flush()
        assert texts_of(memory) == ["Alice keeps bees"]
        assert memory.admin.dead_letters() == []


def test_a_poisoned_text_does_not_take_its_neighbours_with_it(tmp_path: Path) -> None:
    class Poisoned(HashEmbedder):
        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if any("poison" in text for text in texts):
                raise ValueError("cannot embed this")
            return super().embed(texts, purpose=purpose)

    with open_memory(tmp_path, embedder=Poisoned(), settings=QUICK) as memory:
        for n in range(20):
            memory.add(f"poison {n}" if n % 10 == 3 else f"note {n}", ALICE, wait=False)
        left = memory.flush()

        assert (left.pending, left.dead) == (0, 2)
        assert len(texts_of(memory)) == 18


def test_too_many_waiting_writes_push_back_and_nothing_is_accepted(tmp_path: Path) -> None:
    embedder = LoopBoundEmbedder()
    with open_memory(tmp_path, embedder=embedder, settings=Settings(max_pending=2)) as memory:
        memory.add("one", ALICE, wait=False)
        memory.add("two", ALICE, wait=False)
        with pytest.raises(BackpressureError, match="Nothing was accepted"):
            memory.add("three", ALICE, wait=False)

        assert asyncio.run(memory.aflush()).pending == 0
        assert sorted(texts_of(memory)) == ["one", "two"]


def test_a_store_takes_no_other_embedder(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("Alice keeps bees", ALICE)
        with pytest.raises(SchemaMismatchError):
            open_memory(tmp_path, embedder=HashEmbedder(dimensions=32))
    with pytest.raises(SchemaMismatchError):
        open_memory(tmp_path, embedder=HashEmbedder(dimensions=32))


# -- loops and threads -----------------------------------------------------------------------------


def test_one_memory_serves_two_loops_ten_threads_and_a_synchronous_caller(memory: Memory) -> None:
    async def write(name: str) -> None:
        await asyncio.gather(*[memory.aadd(f"{name} {n}", ALICE) for n in range(20)])
        assert await memory.asearch(name, ALICE)

    def thread(number: int) -> None:
        if number % 2:
            asyncio.run(write(f"loop {number}"))
        else:
            for n in range(20):
                memory.add(f"thread {number} {n}", ALICE)

    asyncio.run(write("first"))
    asyncio.run(write("second"))
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(thread, range(10)))

    assert len(set(texts_of(memory))) == 240


def test_a_thousand_concurrent_writes_are_all_there_now_and_after_reopening(
    tmp_path: Path,
) -> None:
    expected = sorted(f"note {n}" for n in range(1000))

    async def write(memory: Memory) -> None:
        await asyncio.gather(*[memory.aadd(text, ALICE) for text in expected])

    with open_memory(tmp_path) as memory:
        asyncio.run(write(memory))
        assert sorted(texts_of(memory)) == expected
    with open_memory(tmp_path) as memory:
        assert sorted(texts_of(memory)) == expected
        assert memory._runtime.engines.index.count(ALICE) == 1000


async def test_a_cancelled_caller_leaves_the_write_whole(memory: Memory) -> None:
    task = asyncio.ensure_future(memory.aadd("Alice keeps bees", ALICE))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await memory.aflush()

    assert texts_of(memory) == ["Alice keeps bees"]
    assert memory._runtime.engines.journal.count().pending == 0


def test_opening_a_folder_twice_shares_it_and_the_last_one_closes_it(tmp_path: Path) -> None:
    first, second = open_memory(tmp_path), open_memory(tmp_path)
    first.add("Alice keeps bees", ALICE)
    first.close()
    first.close()

    assert texts_of(second) == ["Alice keeps bees"]
    second.close()
    with pytest.raises(MemoryClosedError):
        second.get("any", ALICE)
    with pytest.raises(MemoryClosedError):
        first.add("x", ALICE)


def test_a_closed_memory_says_so_in_an_async_call_too(tmp_path: Path) -> None:
    memory = open_memory(tmp_path)
    memory.close()

    async def ask() -> None:
        await memory.asearch("bees", ALICE)

    with pytest.raises(MemoryClosedError):
        asyncio.run(ask())


# -- forgetting ------------------------------------------------------------------------------------


def test_forgetting_removes_everything_of_a_scope_and_nothing_else(memory: Memory) -> None:
    bob = Scope(user_id="bob")
    edge = (Relation(subject="Alice", predicate="keeps", object="bees"),)
    for scope in (ALICE, SESSION, bob):
        memory.add(Fact(text="somebody keeps bees", relations=edge), scope)
        record_id = memory.add("somebody rows", scope).changes[0].id
        memory.update(record_id, "somebody sails", scope)

    receipt = memory.forget(ALICE)

    assert receipt.complete
    assert receipt.removed["graph.records"] == 4
    assert receipt.removed["index.points"] == 4
    engines = memory._runtime.engines
    assert not any(engines.graph.count(ALICE).values())
    assert engines.index.count(ALICE) == 0
    assert engines.journal.rows(ALICE) == 0
    assert memory.history(record_id, bob) != []
    assert len(texts_of(memory, bob)) == 2
    assert len(memory.relations(bob)) == 1


def test_what_is_forgotten_is_in_no_file_once_that_is_answered(tmp_path: Path) -> None:
    """Neither in the log nor in what is unused of the file, without closing or waiting."""

    def names_of_files() -> list[str]:
        files = (one for one in tmp_path.rglob("*") if one.is_file())
        return [one.name for one in files if b"canary" in one.read_bytes()]

    with open_memory(tmp_path) as memory:
        facts = [Fact(text=f"Alice has canary {number}") for number in range(30)]
        ids = [one.id for one in memory.add(facts, ALICE).changes]
        memory.update(ids[0], "Alice has no canary", ALICE)
        memory.delete(ids[1], ALICE)
        memory.add("Bob rows", Scope(user_id="bob"))
        before = names_of_files()
        receipt = memory.forget(ALICE)
        after = names_of_files()

    assert before
    assert receipt.complete
    assert after == []


def test_what_is_forgotten_is_in_the_memory_of_the_process_no_longer(memory: Memory) -> None:
    def loaded() -> list[str]:
        records = [one for one in gc.get_objects() if type(one) is Record]
        return [one.text for one in records if "canary" in one.text]

    for user in ("alice", "bob"):
        memory.add([f"{user} has canary {n}" for n in range(9)], Scope(user_id=user))
        memory.search("who has a canary?", Scope(user_id=user))
    gc.collect()
    assert len(loaded()) >= 18
    memory.forget(ALICE)
    gc.collect()

    assert {one.split()[0] for one in loaded()} == {"bob"}
    assert memory.search("who has a canary?", ALICE) == []


def test_a_receipt_tells_what_an_engine_has_left(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add(["Alice rows", "Alice sails"], ALICE)
    index = type(memory._runtime.engines.index)
    with monkeypatch.context() as patched:
        patched.setattr(index, "erase", lambda *_: 0)
        first = memory.forget(ALICE)
    second = memory.forget(ALICE)

    assert (first.complete, first.left["index.points"]) == (False, 2)
    assert (second.complete, second.removed["index.points"]) == (True, 2)


def test_forgetting_wins_against_writes_that_are_on_their_way(tmp_path: Path) -> None:
    embedder = LoopBoundEmbedder()
    with open_memory(tmp_path, embedder=embedder) as memory:
        memory.add("Alice keeps bees", ALICE, wait=False)
        receipt = memory.forget(ALICE)
        memory.add("Alice rows", ALICE, wait=False)
        asyncio.run(memory.aflush())

        assert receipt.complete
        assert texts_of(memory) == ["Alice rows"]


def test_a_forgotten_fact_can_be_told_again(memory: Memory) -> None:
    memory.add("Alice keeps bees", ALICE)
    memory.forget(ALICE)
    memory.add("Alice keeps bees", ALICE)

    assert texts_of(memory) == ["Alice keeps bees"]
    assert [m.record.text for m in memory.search("bees", ALICE)] == ["Alice keeps bees"]


def test_no_thread_of_ours_is_left_after_closing(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    memory = open_memory(tmp_path)
    memory.add("Alice keeps bees", ALICE)
    memory.search("bees", ALICE)
    memory.close()

    left = [
        t for t in threading.enumerate() if t not in before and t.name.startswith("commonplace")
    ]
    assert left == []


async def test_an_open_memory_keeps_few_threads_however_it_is_used(tmp_path: Path) -> None:
    before = threading.active_count()
    async with Memory.open(str(tmp_path)) as memory:
        for number in range(10):
            written = await memory.aadd(f"Alice keeps {number} bees", ALICE)
            await memory.asearch("bees", ALICE)
            await memory.aget(written.changes[0].id, ALICE)
        for _ in range(2):
            await asyncio.gather(
                *(memory.asearch("bees", ALICE) for _ in range(16)),
                *(memory.aadd(f"Alice has hen {number}", ALICE) for number in range(16)),
                *(memory.alist(ALICE) for _ in range(16)),
            )
        await memory.aadd("Alice rows", ALICE, wait=False)
        await memory.aflush()
        during = threading.active_count()

    assert during - before <= 8


def test_a_threshold_is_compared_with_the_score_of_all_that_is_found(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add([f"Tea number {n} is green." for n in range(20)], ALICE)
        memory.add("The ferry leaves at nine.", ALICE)

        every = memory.search("When does the ferry leave?", ALICE, top_k=30)
        least = sorted(one.score for one in every)[-3]
        found = memory.search("When does the ferry leave?", ALICE, top_k=30, threshold=least)
        best = memory.search("When does the ferry leave?", ALICE, top_k=1, threshold=least)

    assert 21 == len(every)
    assert [one for one in every if one.score >= least] == list(found)
    assert list(found[:1]) == list(best)
    assert found[0].record.text == "The ferry leaves at nine."


def test_a_threshold_and_a_number_keep_the_first_of_what_is_found(tmp_path: Path) -> None:
    question = "When does the ferry leave?"
    said = [Message(text=question, id="1"), Message(text="The ferry leaves at nine.", id="2")]
    with open_memory(tmp_path) as memory:
        memory.add(said, SESSION, infer=False)
        memory.add(["The ferry is old and green.", "At nine the ferry leaves."], ALICE)
        every = memory.search(question, ALICE)
        for number in range(1, 5):
            least = every[number - 1].score
            assert every[:number] == memory.search(question, ALICE, threshold=least)
            assert every[:number] == memory.search(question, ALICE, top_k=number)
            assert every[:1] == memory.search(question, ALICE, top_k=1, threshold=least)

    assert len({one.score for one in every}) == 4


def test_an_unknown_embedder_is_measured_by_the_first_search_alone(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("The ferry leaves at nine.", ALICE)
        embedder: Any = memory.embedder
        embedder.calls.clear()
        first = memory.search("When does the ferry leave?", ALICE)
        again = memory.search("When does the ferry leave?", ALICE)

    asked = ("When does the ferry leave?",)
    assert [asked, PROBES["latin"], asked] == embedder.calls
    assert first == again


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("answers", [False, True])
async def test_an_embedder_that_takes_few_texts_at_once_is_searched_all_the_same(
    tmp_path: Path, is_async: bool, answers: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Narrow(HashEmbedder):
        def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
            if len(texts) > 4 and answers:
                texts = texts[:1]
            if len(texts) > 4:
                raise ValueError("at most 4 texts")
            return super().embed(texts, purpose=purpose)

    class AsyncNarrow(Narrow):
        async def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:  # type: ignore[override]
            return super().embed(texts, purpose=purpose)

    with open_memory(tmp_path, embedder=AsyncNarrow() if is_async else Narrow()) as memory:
        await memory.aadd("The ferry leaves at nine.", ALICE)
        for _ in range(2):
            [found] = await memory.asearch("When does the ferry leave?", ALICE)

    assert found.record.text == "The ferry leaves at nine."
    assert [one.levelname for one in caplog.records if "calibrated" in one.message] == ["WARNING"]


# -- turns -----------------------------------------------------------------------------------------


def test_the_same_words_in_another_turn_are_another_turn(tmp_path: Path) -> None:
    scope = replace(ALICE, session_id="monday")

    def turn(asked: str) -> list[Message]:
        return [Message(text=asked, role="assistant"), Message(text="Yes.")]

    with open_memory(tmp_path) as memory:
        first = memory.add(turn("Do you like tea?"), scope)
        other = memory.add(turn("Do you smoke?"), scope)
        again = memory.add(turn("Do you smoke?"), scope)
        days = [
            memory.add(Message(text="Yes.", at=datetime(2026, 5, day, tzinfo=UTC)), scope)
            for day in (1, 2, 2)
        ]

    assert ["ADD", "ADD"] == [one.event for one in first.changes]
    assert ["ADD", "ADD"] == [one.event for one in other.changes]
    assert ["NONE", "NONE"] == [one.event for one in again.changes]
    assert ["ADD", "ADD", "NONE"] == [one.changes[0].event for one in days]


def test_of_equal_turns_the_one_of_the_day_asked_for_is_found(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        for month, session in ((5, "a"), (9, "b")):
            said = Message(text="I went running.", at=datetime(2026, month, 1, tzinfo=UTC))
            memory.add(said, replace(ALICE, session_id=session))
        [dated] = memory.search("Did I go running on 1 May 2026?", ALICE)
        [newest] = memory.search("Do I go running?", ALICE)

    assert (dated.record.occurred_at.month, newest.record.occurred_at.month) == (5, 9)


def test_an_extraction_is_ignored_without_a_chat_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_memory(tmp_path) as memory:
        how = Extraction(metadata={"project": "x"})
        written = memory.add([Message(text="My cat is called Miso.")], ALICE, infer=how)

    assert ["ADD"] == [one.event for one in written.changes]
    assert caplog.records == []


@pytest.mark.parametrize("is_from_env", [False, True])
def test_an_opening_is_awaited_or_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_from_env: bool
) -> None:
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))

    def opening() -> Any:
        return Memory.afrom_env() if is_from_env else Memory.aopen(str(tmp_path))

    async def use() -> list[Memory]:
        memory = await opening()
        async with opening() as entered:
            await entered.aadd("Alice likes tea", ALICE)
        with pytest.raises(ZeroDivisionError):
            async with opening() as failed:
                raise ZeroDivisionError
        async with await opening() as awaited:
            assert texts_of(awaited) == ["Alice likes tea"]
        tasks = await asyncio.gather(opening(), asyncio.create_task(opening()))
        for each in (memory, *tasks):
            await each.aclose()
        return [memory, entered, failed, awaited, *tasks]

    for memory in [*asyncio.run(use()), run_and_close(opening())]:
        with pytest.raises(MemoryClosedError):
            memory.list(ALICE)


def run_and_close(opening: Any) -> Memory:
    memory: Memory = asyncio.run(opening)
    memory.close()
    return memory


async def test_an_opening_that_fails_raises_where_it_is_entered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRecordError, match="is a file and not a folder"):
        async with Memory.aopen(str(tmp_path / "file")):
            pass


async def test_a_memory_whose_opening_is_cancelled_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, open_engines = threading.Event(), threading.Event(), commonplace.runtime.open_engines

    def open_slowly(*given: Any) -> Any:
        began.set()
        go.wait(10)
        return open_engines(*given)

    def is_open() -> bool:
        return any(str(tmp_path) in str(location) for location in commonplace.runtime._open)

    monkeypatch.setattr(commonplace.runtime, "open_engines", open_slowly)
    opening = asyncio.create_task(Memory.aopen(str(tmp_path), embedder=HashEmbedder()))
    await asyncio.to_thread(began.wait, 10)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go.set()
    await asyncio.sleep(0.2)
    for _ in range(100):
        if not is_open():
            break
        await asyncio.sleep(0.05)

    assert not is_open()
