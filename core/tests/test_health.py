"""Counters, events and the log of outages of an agent's memory."""

import asyncio
import logging
import threading

import pytest

from commonplace.agents import (
    AgentMemory,
    LazyMemory,
    MemoryCounters,
    MemoryEvent,
    Policy,
    ShownRecords,
    WarnOnce,
)
from commonplace.agents.health import MemoryHealth
from commonplace.errors import (
    InvalidRecordError,
    MemoryTimeoutError,
    ModelFailedError,
    ModelRefusedError,
    StoreUnavailableError,
)
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Message, Scope, now

ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")
LOG = logging.getLogger("tests")
AWAY = StoreUnavailableError(store="x", reason="away")


def event(name, operation="recall", error=None):
    return MemoryEvent(name=name, operation=operation, scope=ALICE, error=error)


def lines(caplog):
    return [one.getMessage() for one in caplog.records if one.name == "tests"]


class Moody(HashEmbedder):
    """Embeds, unless it is away or held up."""

    def __init__(self):
        super().__init__()
        self.is_away = False
        self.refusal = None
        self.go = threading.Event()
        self.go.set()

    def embed(self, texts, *, purpose):
        self.go.wait(10)
        if self.is_away:
            raise ConnectionError("away")
        if self.refusal is not None:
            raise self.refusal
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def embedder():
    return Moody()


@pytest.fixture
def memory(tmp_path, embedder):
    with Memory.open(str(tmp_path / "memory"), embedder=embedder) as opened:
        yield opened
        embedder.go.set()


class Watched(AgentMemory):
    """An agent's memory that keeps its events; its calls with or without an event loop."""

    def __init__(self, memory, *, is_async, **policy):
        self.events = []
        super().__init__(memory, Policy(**policy), log="tests", on_event=self.events.append)
        self.is_async = is_async

    def call(self, name, *args):
        if self.is_async:
            return asyncio.run(getattr(self, f"a{name}")(*args))
        return getattr(self, name)(*args)

    @property
    def names(self):
        return [(one.operation, one.name, one.count) for one in self.events]


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def mine(request, memory):
    return Watched(memory, is_async=request.param)


# -- the log -----------------------------------------------------------------------------------


def test_an_outage_is_logged_at_its_begin_and_its_end_every_time(caplog):
    health = MemoryHealth()
    for _ in range(2):
        for _ in range(3):
            health.record(event("failed", error=AWAY), LOG)
        health.record(event("empty"), LOG)
        health.record(event("recalled"), LOG)

    told = lines(caplog)
    assert 4 == len(told)
    assert f"memory recall failed; the agent continues without it: {AWAY}" == told[0] == told[2]
    assert told[1].startswith("memory recall works again, after 3 failures in 0.")
    assert told[3].startswith("memory recall works again, after 3 failures in 0.")


def test_each_kind_of_error_of_an_outage_is_logged_once(caplog):
    health, late = MemoryHealth(), MemoryTimeoutError(call="recall", seconds=2)
    for error in (AWAY, late, AWAY, late):
        health.record(event("timed_out" if error is late else "failed", error=error), LOG)
    health.record(event("recalled"), LOG)

    assert 3 == len(lines(caplog))
    assert str(late) in lines(caplog)[1]
    assert "after 4 failures" in lines(caplog)[2]


def test_operations_fail_and_recover_apart(caplog):
    health = MemoryHealth()
    health.record(event("failed", "recall", AWAY), LOG)
    health.record(event("written", "write"), LOG)
    health.record(event("failed", "search_memory", AWAY), LOG)
    health.record(event("late", "write", MemoryTimeoutError(call="write", seconds=2)), LOG)
    health.record(event("recalled", "search_memory"), LOG)

    told = lines(caplog)
    assert told[0].startswith("memory recall failed; the agent continues without it: ")
    assert told[1] == f"memory search_memory failed: {AWAY}"
    assert told[2].startswith("memory write is late; it goes on, and so does the agent: ")
    assert told[3].startswith("memory search_memory works again, after 1 failures in ")
    assert 4 == len(told)


def test_what_goes_well_is_not_logged(caplog):
    for name in ("recalled", "empty", "written"):
        MemoryHealth().record(event(name), LOG)

    assert [] == caplog.records


def test_each_kind_of_condition_is_logged_once(caplog):
    seen = set()
    for warn in (WarnOnce("tests", seen), WarnOnce("tests", seen)):
        warn("user", ValueError("none"))
        warn("user", KeyError("none"))
        warn("turn", ValueError("none"))

    assert 3 == len(lines(caplog))


# -- counters ----------------------------------------------------------------------------------


def test_counters_are_nothing_at_first_and_keep_the_latest_error():
    health = MemoryHealth()
    assert MemoryCounters() == health.counters()

    began, last = now(), ValueError("last")
    health.record(event("failed", error=AWAY), LOG)
    health.record(event("failed", "write", last), LOG)
    health.record(event("recalled"), LOG)
    counted = health.counters()

    assert (2, 1) == (counted.failed, counted.recalled)
    assert last is counted.last_error
    assert began <= counted.last_error_at <= now()


def test_threads_lose_no_count(caplog):
    health = MemoryHealth()

    def work():
        for _ in range(500):
            health.record(event("recalled"), LOG)
            health.record(event("failed", "write", AWAY), LOG)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert (4_000, 4_000) == (health.counters().recalled, health.counters().failed)
    assert 1 == len(lines(caplog))


# -- what an agent's memory does ---------------------------------------------------------------


def test_every_recall_write_and_tool_call_is_an_event(mine):
    mine.call("recall", ALICE, "Which tea?")
    mine.call("write", [Message(text="I like tea."), Message(text="Noted.")], ALICE)
    mine.call("recall", ALICE, "Which tea?")
    mine.call("call_tool", "search_memory", {"keywords": ["tea"]}, ALICE)
    mine.call("call_tool", "add_memory", {"thinking": "", "content": ["Tea."]}, ALICE)

    assert [
        ("recall", "empty", 0),
        ("write", "written", 2),
        ("recall", "recalled", 1),
        ("search_memory", "recalled", 2),
        ("add_memory", "written", 1),
    ] == mine.names
    assert {ALICE} == {one.scope for one in mine.events}
    assert all(0 < one.seconds < 10 and one.error is None for one in mine.events)
    assert MemoryCounters(recalled=2, empty=1, written=2) == mine.counters()


def test_a_search_tool_that_finds_nothing_is_empty(mine):
    mine.call("call_tool", "search_memory", {"keywords": ["tea"]}, ALICE)

    assert [("search_memory", "empty", 0)] == mine.names


def test_a_failing_memory_is_told_and_its_end_too_every_time(mine, embedder, caplog):
    mine.call("write", [Message(text="I like tea.")], ALICE)
    for _ in range(2):
        embedder.is_away = True
        assert [[], []] == [mine.call("recall", ALICE, f"Which tea {n}?") for n in range(2)]
        embedder.is_away = False
        assert [] != mine.call("recall", ALICE, "Which tea?")

    assert [("recall", "failed", 0)] * 2 + [("recall", "recalled", 1)] == mine.names[1:4]
    assert 4 == len(lines(caplog))
    assert "works again, after 2 failures" in lines(caplog)[3]
    assert (4, 2) == (mine.counters().failed, mine.counters().recalled)
    assert isinstance(mine.counters().last_error, ModelFailedError)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_write_that_nobody_waits_for_and_that_is_refused_has_failed(memory, embedder, is_async):
    mine = Watched(memory, is_async=is_async, await_write=False)
    refused = PermissionError("no")
    refused.status_code = 401
    embedder.refusal = refused

    mine.call("write", [Message(text="I like tea.")], ALICE)
    memory.flush(60)

    assert ("write", "failed", 1) == mine.names[-1]
    assert isinstance(mine.events[-1].error, ModelRefusedError)
    assert refused is mine.counters().last_error.__cause__
    assert (0, 1) == (memory.flush(0).pending, len(memory.admin.dead_letters()))


def test_a_recall_that_is_given_up_has_timed_out(memory, embedder, caplog):
    for is_async in (False, True):
        mine = Watched(memory, is_async=is_async, recall_timeout=0.01)
        embedder.go.clear()
        mine.call("recall", ALICE, f"Which tea {is_async}?")
        embedder.go.set()

        assert [("recall", "timed_out", 0)] == mine.names
        assert isinstance(mine.events[0].error, MemoryTimeoutError)
        assert 1 == mine.counters().timed_out
    assert 2 == len(lines(caplog))


def test_a_late_write_is_told_once_and_goes_on(memory, mine, embedder, monkeypatch, caplog):
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.05)
    embedder.go.clear()
    mine.call("write", [Message(text="I like tea.")], ALICE)
    embedder.go.set()
    memory.flush()

    assert [("write", "late", 1)] == mine.names
    assert 1 == mine.counters().late
    assert 1 == len(lines(caplog))
    assert "memory write is late; it goes on" in lines(caplog)[0]
    assert ["I like tea."] == [one.text for one in memory.list(ALICE).records]


def test_a_write_that_fails_is_told_with_its_error(mine, monkeypatch):
    broken = RuntimeError("broken")  # what may pass is tried again (`test_waiting_writes.py`)

    async def afail(self, *args, **options):
        raise broken

    def fail(self, *args, **options):
        raise broken

    monkeypatch.setattr(Memory, "add", fail)
    monkeypatch.setattr(Memory, "aadd", afail)
    mine.call("write", [Message(text="I like tea.")], ALICE)

    assert [("write", "failed", 1)] == mine.names
    assert broken is mine.events[0].error is mine.counters().last_error


def test_what_nobody_waits_for_is_written_when_it_is_accepted(memory, embedder):
    for is_async in (False, True):
        mine = Watched(memory, is_async=is_async, await_write=False)
        embedder.go.clear()
        mine.call("write", [Message(text=f"I like tea {is_async}.")], ALICE)
        assert [("write", "written", 1)] == mine.names
        embedder.go.set()
    memory.flush()


def test_nothing_to_write_is_no_event(mine):
    mine.call("write", [], ALICE)
    mine.write_later([], ALICE)

    assert [] == mine.events


def test_what_is_written_later_is_an_event_too(memory):
    told = threading.Event()
    mine = AgentMemory(memory, Policy(), log="tests", on_event=lambda _: told.set())
    mine.write_later([Message(text="I like tea.")], ALICE)

    assert told.wait(10)
    memory.flush()
    assert 1 == mine.counters().written


def test_what_is_written_later_is_accepted_when_the_caller_goes_on(tmp_path):
    texts = [f"I like tea number {number}." for number in range(20)]
    for text in texts:
        memory = Memory.open(str(tmp_path), embedder=HashEmbedder())
        AgentMemory(memory, Policy(), log="tests").write_later([Message(text=text)], ALICE)
        memory.close()

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        assert sorted(texts) == sorted(one.text for one in memory.list(ALICE).records)


@pytest.mark.parametrize("given", [lambda: 1, lambda one, two: 1, 3, "f"])
def test_what_takes_no_event_is_no_function_of_events(memory, given):
    with pytest.raises(InvalidRecordError, match="on_event="):
        AgentMemory(memory, Policy(), log="tests", on_event=given)


def test_a_model_that_calls_a_tool_wrongly_is_no_failure_of_the_memory(mine, caplog):
    for arguments in ({}, {"keywords": "tea"}, {"words": ["tea"]}):
        with pytest.raises(InvalidRecordError):
            mine.call("call_tool", "search_memory", arguments, ALICE, ShownRecords())

    assert MemoryCounters() == mine.counters()
    assert [] == lines(caplog)


def test_a_tool_that_fails_is_told_and_raises(mine, embedder, caplog):
    embedder.is_away = True
    with pytest.raises(ModelFailedError):
        mine.call("call_tool", "search_memory", {"keywords": ["tea"]}, ALICE)

    assert [("search_memory", "failed", 0)] == mine.names
    assert lines(caplog)[0].startswith("memory search_memory failed: ")


# -- the hook ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_a_hook_that_raises_fails_no_turn_and_is_logged_once(memory, caplog, is_async):
    def hook(told):
        raise RuntimeError(told.name)

    mine = AgentMemory(memory, Policy(), log="tests", on_event=hook)
    said = [Message(text="I like tea.")]
    for _ in range(2):
        if is_async:
            asyncio.run(mine.awrite(said, ALICE))
            found = asyncio.run(mine.arecall(ALICE, "Which tea?"))
        else:
            mine.write(said, ALICE)
            found = mine.recall(ALICE, "Which tea?")

    assert ["I like tea."] == [one.record.text for one in found]
    assert (2, 2) == (mine.counters().written, mine.counters().recalled)
    assert 1 == len(lines(caplog))
    assert "memory on_event failed" in lines(caplog)[0]


def test_those_who_share_a_memory_share_its_counters_and_not_their_hooks(memory):
    lazy, events = LazyMemory(memory), []
    one = AgentMemory(lazy, Policy(), log="tests", on_event=events.append)
    two = AgentMemory(lazy, Policy(), log="tests")
    one.recall(ALICE, "Which tea?")
    two.recall(ALICE, "Which tea?")

    assert 2 == one.counters().empty == two.counters().empty
    assert 1 == len(events)
