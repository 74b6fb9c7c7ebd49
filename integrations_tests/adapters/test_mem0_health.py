"""What becomes of the calls of code for mem0, as counters, events and lines of the log."""

import pytest

from commonplace import Memory as Core
from commonplace import MemoryEvent, StoreUnavailableError
from commonplace.agents import MemoryCounters
from commonplace.errors import MemoryTimeoutError
from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import AsyncMemory, Memory
from commonplace_mem0.exceptions import (
    ClosedError,
    EmbeddingError,
    ValidationError,
    VectorStoreError,
)

from .test_mem0 import Scripted, config


class Moody(HashEmbedder):
    """Embeds, unless it is away."""

    is_away = False

    def embed(self, texts, *, purpose):
        if self.is_away:
            raise ConnectionError("away")
        return super().embed(texts, purpose=purpose)


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def mem0(request, tmp_path):
    """A memory, its events, and a call of it, awaited or not."""
    events: list[MemoryEvent] = []
    embedder = Moody()
    face = AsyncMemory if request.param else Memory
    memory = face({**config(tmp_path), "embedder": embedder}, on_event=events.append)

    async def call(name, *args, **options):
        answer = getattr(memory, name)(*args, **options)
        return await answer if request.param else answer

    memory.embedder, memory.events, memory.call = embedder, events, call
    yield memory
    memory.core.close(0.1)  # what failed stays accepted


def told(caplog):
    return [one.getMessage() for one in caplog.records if one.name == "commonplace_mem0"]


def what(events):
    return [(one.operation, one.name, one.count) for one in events]


async def test_each_search_and_addition_is_counted_and_told(mem0):
    await mem0.call("search", "tea", user_id="alice")
    await mem0.call("add", ["I like tea.", "I like rum."], user_id="alice", infer=False)
    await mem0.call("search", "tea", filters={"user_id": "alice"}, threshold=0.0)
    await mem0.call("add", "I like rye.", user_id="alice", infer=False, wait=False)
    await mem0.call("flush")

    assert [
        ("search", "empty", 0),
        ("add", "written", 2),
        ("search", "recalled", 2),
        ("add", "late", 1),
    ] == what(mem0.events)
    assert {"alice"} == {one.scope.user_id for one in mem0.events}
    assert all(0 < one.seconds < 60 for one in mem0.events)
    assert MemoryCounters(recalled=1, empty=1, written=1, late=1) == mem0.counters()


async def test_what_is_refused_as_a_mistake_is_not_counted(mem0):
    for options in ({}, {"user_id": " alice "}, {"user_id": "alice", "threshold": 2}):
        with pytest.raises(ValidationError):
            await mem0.call("search", "tea", **options)
    with pytest.raises(ValidationError):
        await mem0.call("add", "x" * 40_000, user_id="alice", infer=False)
    await mem0.call("add", " ", user_id="alice", infer=False)
    await mem0.call("add", [{"role": "system", "content": "Be kind."}], user_id="alice")

    assert [] == mem0.events
    assert MemoryCounters() == mem0.counters()


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends_every_time(mem0, caplog):
    await mem0.call("add", "I like tea.", user_id="alice", infer=False)
    for _ in range(2):
        mem0.embedder.is_away = True
        for _ in range(3):
            with pytest.raises(EmbeddingError):
                await mem0.call("search", "tea?", user_id="alice")
        mem0.embedder.is_away = False
        for _ in range(2):
            await mem0.call("search", "tea?", user_id="alice")

    lines = told(caplog)
    assert 4 == len(lines)
    assert lines[0].startswith("memory search failed: ")
    assert lines[0] == lines[2]
    assert lines[1].startswith("memory search works again, after 3 failures in ")
    assert lines[3].startswith("memory search works again, after 3 failures in ")
    counted = mem0.counters()
    assert (6, 4, 1) == (counted.failed, counted.recalled, counted.written)
    assert isinstance(counted.last_error, EmbeddingError)
    assert counted.last_error is mem0.events[-3].error
    assert counted.last_error_at is not None


async def test_a_failed_addition_is_counted_and_raises_as_ever(mem0, caplog):
    mem0.embedder.is_away = True
    with pytest.raises(EmbeddingError):
        await mem0.call("add", "I like tea.", user_id="alice", infer=False)

    assert [("add", "failed", 1)] == what(mem0.events)
    assert 1 == mem0.counters().failed
    assert 1 == len(told(caplog))


def test_a_model_whose_answers_cannot_be_read_is_a_failure(tmp_path):
    events = []
    llm = Scripted("no JSON", "none again")
    with Memory(config(tmp_path, llm=llm), on_event=events.append) as m:
        m.add("I like tea.", user_id="alice")  # answers as mem0 does, with nothing

    assert [("add", "failed", 1)] == what(events)


@pytest.mark.parametrize(
    ("error", "name", "raised"),
    [
        (MemoryTimeoutError(call="search", seconds=2), "timed_out", MemoryTimeoutError),
        (StoreUnavailableError(store="x", reason="away"), "failed", VectorStoreError),
    ],
)
def test_a_search_that_takes_too_long_is_told_apart(tmp_path, monkeypatch, error, name, raised):
    def fail(self, *args, **options):
        raise error

    monkeypatch.setattr(Core, "search", fail)
    with Memory(config(tmp_path)) as m:
        with pytest.raises(raised):
            m.search("tea", user_id="alice")

        assert 1 == getattr(m.counters(), name)
        assert isinstance(m.counters().last_error, raised)


def test_a_hook_that_raises_fails_no_call_and_is_logged_once(tmp_path, caplog):
    def hook(event):
        raise RuntimeError("mine")

    with Memory.from_config(config(tmp_path), on_event=hook) as m:
        m.add("I like tea.", user_id="alice", infer=False)
        found = m.search("tea", user_id="alice")

        assert ["I like tea."] == [one["memory"] for one in found["results"]]
        assert MemoryCounters(recalled=1, written=1) == m.counters()
    assert ["memory on_event failed; the agent continues without it: mine"] == told(caplog)


def test_bare_lists_are_counted_too(tmp_path):
    with Memory(config(tmp_path, version="v1.0")) as m:
        m.add("I like tea.", user_id="alice", infer=False)
        m.search("tea", user_id="alice")

        assert MemoryCounters(recalled=1, written=1) == m.counters()


def test_a_closed_memory_still_tells_what_it_did(tmp_path):
    with Memory(config(tmp_path)) as m:
        m.add("I like tea.", user_id="alice", infer=False)
    with pytest.raises(ClosedError):
        m.search("tea", user_id="alice")

    assert MemoryCounters(written=1) == m.counters()


def test_what_two_memories_did_is_counted_apart_also_on_one_core(tmp_path):
    with Core.open(str(tmp_path / "core"), embedder=HashEmbedder()) as core:
        one, two = Memory(core=core), Memory(core=core)
        one.add("I like tea.", user_id="alice", infer=False)

        assert (1, 0) == (one.counters().written, two.counters().written)
