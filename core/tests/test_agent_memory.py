import asyncio
import logging
import threading

import pytest

from commonplace.agents import (
    AgentMemory,
    LazyMemory,
    MemoryPool,
    Policy,
    aon,
    arun_plan,
    call,
    on,
    run_plan,
)
from commonplace.errors import (
    InvalidRecordError,
    LoopRequiredError,
    MemoryTimeoutError,
    StoreUnavailableError,
)
from commonplace.memory import Memory
from commonplace.model import Message, Page, Scope, WriteResult
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")


class AsyncEmbedder(HashEmbedder):
    async def embed(self, texts, *, purpose):
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


def agent(memory, **policy):
    return AgentMemory(memory, Policy(**policy), log="tests")


# -- operations, with and without an event loop ------------------------------------------------


def test_a_caller_without_a_loop_gets_the_same_as_one_with_a_loop(memory):
    memory.add("Alice speaks Norwegian.", ALICE, kind="profile")
    mine = agent(memory, top_k=3)
    added = mine.add_memory(ALICE, "why", ["Alice likes tea."])

    assert '"event": "ADD"' in added
    assert mine.recall(ALICE, "tea?") == asyncio.run(mine.arecall(ALICE, "tea?")) != []
    assert mine.search_memory(ALICE, ["tea", "Alice"]) == asyncio.run(
        mine.asearch_memory(ALICE, ["tea", "Alice"])
    )


def test_a_blocking_caller_may_stand_on_a_loop(memory):
    async def ask():
        return agent(memory).recall(ALICE, "tea?")

    memory.add("Alice likes tea.", ALICE)

    assert [one.record.text for one in asyncio.run(ask())] == ["Alice likes tea."]


def test_a_tool_without_a_loop_cannot_search_by_an_asynchronous_model(tmp_path):
    with Memory.open(str(tmp_path / "async"), embedder=AsyncEmbedder()) as opened:
        mine = agent(opened)
        with pytest.raises(LoopRequiredError):
            mine.search_memory(ALICE, ["tea"])
        answer = mine.add_memory(ALICE, "", ["Alice likes tea."])

        assert '"event": "PENDING"' in answer
        assert asyncio.run(opened.aflush()).pending == 0
        assert [one.text for one in opened.list(ALICE.owner).records] == ["Alice likes tea."]


@pytest.mark.parametrize(("keywords", "limit"), [(["x"] * 11, 5), ("tea", 5), (["tea"], 21)])
def test_a_search_beyond_its_bounds_is_refused(memory, keywords, limit):
    with pytest.raises(InvalidRecordError):
        agent(memory).search_memory(ALICE, keywords, limit)


# -- a turn outlives its memory ----------------------------------------------------------------


class Broken(HashEmbedder):
    def embed(self, texts, *, purpose):
        raise ConnectionError("away")


def test_a_failing_memory_is_logged_once_and_the_turn_goes_on(tmp_path, caplog):
    with Memory.open(str(tmp_path / "memory"), embedder=Broken()) as opened:
        mine = agent(opened)
        with caplog.at_level(logging.WARNING, "tests"):
            assert [mine.recall(ALICE, "tea?") for _ in range(3)] == [[], [], []]
            assert asyncio.run(mine.arecall(ALICE, "tea?")) == []

    assert len(caplog.records) == 1
    assert "memory recall failed" in caplog.text


def test_a_write_that_takes_too_long_goes_on(memory, monkeypatch):
    go = threading.Event()
    real = Memory.add
    monkeypatch.setattr(Memory, "add", lambda *a, **k: (go.wait(10), real(*a, **k))[1])
    monkeypatch.setattr("commonplace.agents.session.WRITE_PATIENCE", 0.01)
    agent(memory).write([Message(text="I like tea.")], ALICE)
    go.set()
    for _ in range(500):
        if memory.list(ALICE).records:
            break
        threading.Event().wait(0.01)

    assert [one.text for one in memory.list(ALICE).records] == ["I like tea."]


async def test_a_cancelled_caller_does_not_take_its_write_along(memory, monkeypatch):
    go = asyncio.Event()
    real = Memory.aadd

    async def slow(self, *args, **options):
        await go.wait()
        return await real(self, *args, **options)

    monkeypatch.setattr(Memory, "aadd", slow)
    mine = agent(memory)
    turn = asyncio.create_task(mine.awrite([Message(text="I like tea.")], ALICE))
    await asyncio.sleep(0.01)
    turn.cancel()
    go.set()
    await mine.wait_for_writes(5)

    assert mine.lazy.is_idle
    assert [one.text for one in memory.list(ALICE).records] == ["I like tea."]


async def test_a_slow_memory_is_waited_for_less_until_it_answers(memory, monkeypatch):
    monkeypatch.setattr("commonplace.agents.session.WRITE_PATIENCE", 0.2)
    monkeypatch.setattr("commonplace.agents.session._ACCEPT_SECONDS", 0.0)
    slow = asyncio.Event()
    real = Memory.aadd

    async def waiting(self, *args, **options):
        await slow.wait()
        return await real(self, *args, **options)

    monkeypatch.setattr(Memory, "aadd", waiting)
    mine = agent(memory, recall_timeout=0.01)
    loop = asyncio.get_running_loop()
    waited = []
    for number in range(2):
        began = loop.time()
        await mine.awrite([Message(text=f"Tea {number}.")], ALICE)
        waited.append(loop.time() - began)
    slow.set()
    await mine.wait_for_writes(5)
    await memory.aflush()

    assert waited[0] >= 0.2
    assert waited[1] < 0.1
    assert len(memory.list(ALICE).records) == 2


def test_a_late_write_counts_though_its_loop_is_closed_and_recalls_are_fast(memory, monkeypatch):
    monkeypatch.setattr("commonplace.agents.session.WRITE_PATIENCE", 0.4)
    monkeypatch.setattr("commonplace.agents.session._ACCEPT_SECONDS", 0.0)
    mine, waited, writes = agent(memory, recall_timeout=0.1), [], [False, False, True, False]

    async def write(self, *args, **options):
        await asyncio.Event().wait() if not writes.pop(0) else None
        return WriteResult(operation="done")

    async def turn():
        began = asyncio.get_running_loop().time()
        await mine.awrite([Message(text="Tea.")], ALICE)
        waited.append(asyncio.get_running_loop().time() - began)

    async def find_nothing(self, *args, **options):
        return Page(records=(), cursor=None)

    monkeypatch.setattr(Memory, "alist", find_nothing)
    monkeypatch.setattr(Memory, "aadd", write)
    while writes:
        asyncio.run(mine.arecall(ALICE, ""))
        asyncio.run(turn())

    first, second, _, after_a_good_one = waited
    assert second < 0.3 < first
    assert after_a_good_one > 0.3


@pytest.mark.parametrize("is_async", [False, True])
def test_a_write_that_a_slow_model_makes_late_is_accepted_and_told_once(
    tmp_path, monkeypatch, caplog, *, is_async
):
    monkeypatch.setattr("commonplace.agents.session.WRITE_PATIENCE", 0.05)
    go = threading.Event()

    class Slow(HashEmbedder):
        def embed(self, texts, *, purpose):
            go.wait(10)
            return super().embed(texts, purpose=purpose)

    with Memory.open(str(tmp_path / "memory"), embedder=Slow()) as opened:
        mine = agent(opened)
        with caplog.at_level(logging.WARNING, "tests"):
            for text in ("I like tea.", "I like rum."):
                said = [Message(text=text)]
                asyncio.run(mine.awrite(said, ALICE)) if is_async else mine.write(said, ALICE)
        accepted = opened._runtime.engines.journal.count().pending
        go.set()
        opened.flush()

        assert accepted == 2
        assert {one.text for one in opened.list(ALICE).records} == {"I like tea.", "I like rum."}
    assert [one.getMessage() for one in caplog.records if one.name == "tests"] == [
        "memory write failed; the agent continues without it: "
        f"{MemoryTimeoutError(call='write', seconds=0.05)}"
    ]


# -- opened on first use, and shared -----------------------------------------------------------


def test_a_lazy_memory_is_opened_once_for_all_its_users(tmp_path):
    opened = []

    def open_memory():
        opened.append(Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()))
        return opened[-1]

    lazy = LazyMemory(open_memory)
    threads = [threading.Thread(target=lazy.get) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    lazy.close()

    assert len(opened) == 1
    assert lazy.get() is not opened[0]
    lazy.close()


def test_an_opening_that_failed_is_tried_again(tmp_path):
    errors = [StoreUnavailableError(store="x", reason="away")]

    def open_memory():
        if errors:
            raise errors.pop()
        return Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder())

    lazy = LazyMemory(open_memory)
    with pytest.raises(StoreUnavailableError):
        lazy.get()

    assert lazy.get().list(ALICE).records == ()
    lazy.close()


def test_a_memory_that_was_given_open_stays_open(memory):
    lazy = LazyMemory(memory)
    lazy.close()

    assert lazy.get().list(ALICE).records == ()


class Holder:
    pass


def test_a_pool_shares_by_key_and_closes_what_was_idle_longest(tmp_path):
    pool = MemoryPool()

    def opening(name):
        return lambda: Memory.open(str(tmp_path / name), embedder=HashEmbedder())

    holder = Holder()
    first = pool.acquire(holder, "0", opening("0"))
    first.get()

    assert pool.acquire(Holder(), "0", opening("0")) is first
    for number in range(1, 12):
        pool.acquire(Holder(), str(number), opening(str(number)))
    assert pool.acquire(holder, "0", opening("0")) is first  # held all the time
    assert first.get().list(ALICE).records == ()
    first.close()


async def test_a_pool_closes_no_memory_that_is_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr("commonplace.agents.lazy.MAX_IDLE", 1)
    monkeypatch.setattr("commonplace.agents.session.WRITE_PATIENCE", 0.01)
    pool, go = MemoryPool(), asyncio.Event()

    def acquire(name):
        return pool.acquire(Holder(), name, lambda: Memory.open(str(tmp_path / name)))

    mine = AgentMemory(acquire("0"), Policy(), log="tests")
    await mine.awrite_with(go.wait())
    for name in "123":
        acquire(name)

    assert list(pool._memories) == ["0", "2", "3"]
    go.set()
    await mine.wait_for_writes(5)
    acquire("4")
    assert list(pool._memories) == ["3", "4"]


def test_a_pool_shares_what_was_given_open_and_lets_it_go(memory):
    pool, holders = MemoryPool(), [Holder(), Holder()]
    first, second = (pool.acquire(one, None, memory) for one in holders)

    assert first is second
    assert first.get() is memory
    assert pool._memories == {}


async def test_only_the_first_caller_waits_for_a_memory_that_hangs_while_it_opens(tmp_path):
    go = threading.Event()
    lazy = LazyMemory(lambda: (go.wait(10), Memory.open(str(tmp_path), embedder=HashEmbedder()))[1])
    with pytest.raises(MemoryTimeoutError):
        await lazy.await_open(0.01)
    await lazy.await_open(10)
    go.set()
    await lazy.aget()
    await lazy.aclose()


# -- plans -------------------------------------------------------------------------------------


def test_a_plan_gets_results_in_order_and_errors_where_it_made_the_call(memory):
    def plan():
        yield call("add", "Alice likes tea.", ALICE)
        one, two = yield [call("search", "tea", ALICE), call("list", ALICE)]
        try:
            yield call("get", "", ALICE)
        except InvalidRecordError as error:
            return one[0].record, two.records[0], error.field
        return None

    blocking = run_plan(plan(), on(memory))

    assert blocking == asyncio.run(arun_plan(plan(), aon(memory)))
    assert blocking[0] == blocking[1]
    assert blocking[2] == "record_id"
