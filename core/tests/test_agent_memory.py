import asyncio
import logging
import threading
from dataclasses import replace

import pytest

from commonplace.agents import (
    AgentMemory,
    LazyMemory,
    MemoryPool,
    Policy,
    ShownRecords,
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
    SchemaMismatchError,
    StoreUnavailableError,
)
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Match, Message, Page, Scope, WriteResult

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


def stored(memory, count):
    """Wait until so many turns are stored; list their texts, oldest first."""
    for _ in range(500):
        if len(memory.list(ALICE).records) >= count:
            break
        threading.Event().wait(0.01)
    return [one.text for one in reversed(memory.list(ALICE).records)]


# -- a part of a memory ------------------------------------------------------------------------


def test_tools_and_turns_of_two_projects_keep_the_same_words_apart(memory):
    projects = {name: {"project": name} for name in "xy"}
    agents = {name: agent(memory, where=one, metadata=one) for name, one in projects.items()}
    fact = {"thinking": "", "content": ["Alice likes tea."]}
    said = "Always answer in French. I like tea."
    for number, name in enumerate("xyx"):
        agents[name].call_tool("add_memory", fact, ALICE)
        agents[name].write([Message(text=said, id=f"m{number}")], ALICE)

    for name, where in projects.items():
        records = memory.list(ALICE.owner, where=where).records
        counts = {one.text: one.times_told for one in records}
        times = 2 if name == "x" else 1
        assert counts == {
            "Alice likes tea.": times,
            "Always answer in French.": times,
            said: 1,
        }
        found = agents[name].call_tool("search_memory", {"keywords": ["tea"]}, ALICE)
        assert "Alice likes tea." in found


def test_a_correction_of_a_turn_stays_in_its_project(memory):
    project = {"project": "x"}
    mine = agent(
        memory,
        where=project,
        metadata=project,
        tools=("search_memory", "add_memory", "update_memory"),
    )
    memory.add("I like tea.", ALICE.owner, metadata={"project": "y"}, identity=["project"])
    mine.write([Message(text="I like coffee.")], ALICE)
    shown = ShownRecords()
    mine.call_tool("search_memory", {"keywords": ["coffee"]}, ALICE, shown)
    [record] = memory.list(ALICE, where=project).records
    mine.call_tool("update_memory", {"memory_id": record.id, "text": "I like tea."}, ALICE, shown)

    for name in "xy":
        assert [one.text for one in memory.list(ALICE.owner, where={"project": name}).records] == [
            "I like tea."
        ]


# -- operations, with and without an event loop ------------------------------------------------


def test_a_caller_without_a_loop_gets_the_same_as_one_with_a_loop(memory):
    memory.add("Alice speaks Norwegian.", ALICE, kind="profile")
    mine = agent(memory, top_k=3, times=False)
    facts = {"thinking": "why", "content": ["Alice likes tea."]}
    words = {"keywords": ["tea", "Alice"]}
    added = mine.call_tool("add_memory", facts, ALICE)

    assert '"event": "ADD"' in added
    assert mine.recall(ALICE, "tea?") == asyncio.run(mine.arecall(ALICE, "tea?")) != []
    assert (
        "- Alice likes tea.\n- Alice speaks Norwegian."
        == mine.call_tool("search_memory", words, ALICE)
        == asyncio.run(mine.acall_tool("search_memory", words, ALICE))
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
            mine.call_tool("search_memory", {"keywords": ["tea"]}, ALICE)
        facts = {"thinking": "", "content": ["Alice likes tea."]}
        answer = mine.call_tool("add_memory", facts, ALICE)

        assert '"event": "PENDING"' in answer
        assert asyncio.run(opened.aflush()).pending == 0
        assert [one.text for one in opened.list(ALICE.owner).records] == ["Alice likes tea."]


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
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.01)
    agent(memory).write([Message(text="I like tea.")], ALICE)
    go.set()

    assert ["I like tea."] == stored(memory, 1)


async def test_a_cancelled_caller_does_not_take_its_write_along(memory, monkeypatch):
    go = asyncio.Event()
    real = Memory.aadd

    async def slow(self, *args, **options):
        await go.wait()
        return await real(self, *args, **options)

    monkeypatch.setattr(Memory, "aadd", slow)
    mine = agent(LazyMemory(memory))
    turn = asyncio.create_task(mine.awrite([Message(text="I like tea.")], ALICE))
    await asyncio.sleep(0.01)
    turn.cancel()
    go.set()
    await mine.wait_for_writes(5)

    assert mine.lazy.is_idle
    assert [one.text for one in memory.list(ALICE).records] == ["I like tea."]


def test_what_is_written_later_is_stored_though_nobody_waits(memory):
    agent(memory).write_later([Message(text="I like tea."), Message(text="Noted.")], ALICE)

    assert {"I like tea.", "Noted."} == set(stored(memory, 2))


async def test_a_turn_that_is_torn_down_writes_later(memory):
    mine = agent(memory)

    async def turn():
        try:
            await asyncio.Event().wait()
        finally:
            mine.write_later([Message(text="I like tea.")], ALICE)

    task = asyncio.create_task(turn())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["I like tea."] == stored(memory, 1)


def test_a_turn_of_a_loop_that_ends_writes_later(tmp_path):
    lazy = LazyMemory(lambda: Memory.open(str(tmp_path), embedder=AsyncEmbedder()))

    async def turn():
        agent(lazy).write_later([Message(text="I like tea.")], ALICE)

    asyncio.run(turn())
    opened = lazy.get()
    for _ in range(500):
        if opened._runtime.engines.journal.count().pending:
            break
        threading.Event().wait(0.01)
    assert asyncio.run(opened.aflush()).pending == 0

    assert ["I like tea."] == stored(opened, 1)
    lazy.close()


async def test_a_slow_memory_is_waited_for_less_until_it_answers(memory, monkeypatch):
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.2)
    monkeypatch.setattr("commonplace.agents.agent_memory._ACCEPT_SECONDS", 0.0)
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
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.4)
    monkeypatch.setattr("commonplace.agents.agent_memory._ACCEPT_SECONDS", 0.0)
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
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.05)
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
        "memory write is late; it goes on, and so does the agent: "
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


def test_what_an_operator_must_mend_is_raised_and_an_outage_is_not(tmp_path):
    path, errors = str(tmp_path), [StoreUnavailableError(store="x", reason="away")]
    Memory.open(path, embedder=HashEmbedder(32)).close()

    def open_memory():
        if errors:
            raise errors.pop()
        return Memory.open(path, embedder=HashEmbedder(64))

    mine = agent(LazyMemory(open_memory))
    mine.raise_misconfiguration()  # it has not been opened
    assert [] == mine.recall(ALICE, "Which tea?")
    mine.raise_misconfiguration()  # the server may come back
    assert [] == mine.recall(ALICE, "Which tea?")
    with pytest.raises(SchemaMismatchError):
        mine.raise_misconfiguration()


def test_an_open_memory_is_configured_well(memory):
    mine = agent(memory)
    mine.recall(ALICE, "Which tea?")
    mine.raise_misconfiguration()


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
    monkeypatch.setattr("commonplace.agents.lazy_memory.MAX_IDLE", 1)
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.01)
    pool, go, real = MemoryPool(), asyncio.Event(), Memory.aadd

    async def slow(self, *args, **options):
        await go.wait()
        return await real(self, *args, **options)

    def acquire(name):
        path = str(tmp_path / name)
        return pool.acquire(Holder(), name, lambda: Memory.open(path, embedder=HashEmbedder()))

    monkeypatch.setattr(Memory, "aadd", slow)
    mine = AgentMemory(acquire("0"), Policy(), log="tests")
    await mine.lazy.aget()
    await mine.awrite([Message(text="I like tea.")], ALICE)
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


async def test_nobody_waits_again_for_a_memory_that_hangs_while_it_opens(tmp_path):
    go = threading.Event()
    lazy = LazyMemory(lambda: (go.wait(10), Memory.open(str(tmp_path), embedder=HashEmbedder()))[1])
    with pytest.raises(MemoryTimeoutError):
        await lazy.await_open(0.01)
    await lazy.await_open(10)
    go.set()
    await lazy.aget()
    await lazy.aclose()


# -- plans -------------------------------------------------------------------------------------


LETTER = "\n".join(
    ["Dear tenants,", *["The lift stands still on Friday, for an hour."] * 20, "Yours"]
)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (f"Summarise this letter.\n\n{LETTER}", "Summarise this letter."),
        (f"{LETTER}\n\nSo it goes. When am I away?", "When am I away?"),
        (f"这是物业的信。我哪天不在？\n{LETTER}", "我哪天不在？"),
        (LETTER, "Dear tenants, The lift stands still on Friday, for an hour. Yours"),
        ("I like tea. When am I away? Tell me.", "I like tea. When am I away? Tell me."),
    ],
)
def test_what_asks_around_a_long_text_is_searched_for(memory, monkeypatch, query, asked):
    searched = []
    monkeypatch.setattr(memory, "search", lambda text, *_, **__: searched.append(text) or [])
    AgentMemory(memory, Policy(), log="tests").recall(Scope(user_id="a"), query)

    assert searched == [asked]


def test_a_plan_gets_results_in_order_and_errors_where_it_made_the_call(memory):
    def plan():
        yield call("add", "Alice likes tea.", ALICE)
        one, two = yield [call("search", "tea", ALICE), call("list", ALICE)]
        try:
            yield call("get", "", ALICE)
        except InvalidRecordError as error:
            return one[0].record.id, two.records[0].id, error.field
        return None

    blocking = run_plan(plan(), on(memory))

    assert blocking == asyncio.run(arun_plan(plan(), aon(memory)))
    assert blocking[0] == blocking[1]
    assert blocking[2] == "record_id"


# -- forgetting and correcting -----------------------------------------------------------------


def shown_in(memory, scope):
    shown = ShownRecords()
    records = memory.list(scope.owner).records
    shown.add([Match(record=one, score=1.0) for one in records])
    return shown, records


def test_a_request_to_forget_is_not_kept_once_it_is_carried_out(memory):
    mine = agent(memory, tools=("forget_memory",))
    memory.add("Alice drives a Volvo.", ALICE.owner)
    shown, [record] = shown_in(memory, ALICE)
    said = [
        Message(text="Please forget that I drive a Volvo."),
        Message(text="I live in Lyon now."),
        Message(text="I forgot that you drive a Volvo.", role="assistant"),
    ]

    mine.call_tool("forget_memory", {"memory_id": record.id}, ALICE, shown)
    mine.write(said, ALICE)
    assert ["I live in Lyon now."] == [one.text for one in memory.list(ALICE.owner).records]

    # Neither the request nor its answer is stored in a turn that carries nothing out.
    mine.write(said, replace(ALICE, session_id="tomorrow"))
    assert {"I live in Lyon now."} == {one.text for one in memory.list(ALICE.owner).records}
    assert 2 == len(memory.list(ALICE.owner).records)


def test_a_model_ends_a_standing_instruction_and_nothing_else(memory):
    mine = agent(memory, tools=("drop_instruction",))
    mine.write([Message(text="Always answer in French. I live in Lyon.", id="1")], ALICE)
    shown = ShownRecords()
    noted = mine.recall(ALICE, "What is new?")
    shown.add(noted)
    [instruction] = [one.record for one in noted if one.record.kind == "preference"]
    [turn] = [one for one in memory.list(ALICE.owner).records if one.kind == "episode"]
    shown.add([Match(record=turn, score=1.0)])

    with pytest.raises(InvalidRecordError, match="not the id of a standing instruction"):
        mine.call_tool("drop_instruction", {"memory_id": turn.id}, ALICE, shown)
    answer = mine.call_tool("drop_instruction", {"memory_id": instruction.id}, ALICE, shown)

    assert answer == "Dropped."
    assert [turn.id] == [one.id for one in memory.list(ALICE.owner).records]


def test_a_correction_of_a_turn_is_a_fact_and_not_what_somebody_said(memory):
    mine = agent(memory, tools=("update_memory",))
    mine.write([Message(text="My birthday is on 3 May.")], ALICE)
    shown, [turn] = shown_in(memory, ALICE)

    arguments = {"memory_id": turn.id, "text": "Alice's birthday is on 5 May."}
    assert "5 May" in mine.call_tool("update_memory", arguments, ALICE, shown)

    [fact] = memory.list(ALICE.owner).records
    assert (fact.text, fact.kind, fact.role) == ("Alice's birthday is on 5 May.", "fact", None)
    assert fact.scope == ALICE.owner
