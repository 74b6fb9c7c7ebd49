import contextvars
import threading

import pytest

from commonplace.agents import blocking, handlers
from commonplace.agents.policy import Policy
from commonplace.errors import InvalidRecordError, LoopRequiredError, MemoryTimeoutError
from commonplace.memory import Memory
from commonplace.model import Scope
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")


class AsyncEmbedder(HashEmbedder):
    async def embed(self, texts, *, purpose):
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


def test_a_caller_without_a_loop_is_answered_like_one_with_a_loop(memory):
    import asyncio

    memory.add("Alice speaks Norwegian.", ALICE, kind="profile")
    told = blocking.add_memory(memory, ALICE, Policy(), "why", ["Alice likes tea."])
    policy = Policy(top_k=3)

    assert '"event": "ADD"' in told
    assert blocking.recall(memory, ALICE, "tea?", policy) == asyncio.run(
        handlers.recall(memory, ALICE, "tea?", policy)
    )
    assert blocking.search_memory(memory, ALICE, policy, ["tea", "Alice"]) == asyncio.run(
        handlers.search_memory(memory, ALICE, policy, ["tea", "Alice"])
    )


def test_a_caller_without_a_loop_may_stand_on_one(memory):
    import asyncio

    async def ask():
        return blocking.recall(memory, ALICE, "tea?", Policy())

    memory.add("Alice likes tea.", ALICE)

    assert [one.record.text for one in asyncio.run(ask())] == ["Alice likes tea."]


def test_an_asynchronous_model_is_refused(tmp_path):
    with Memory.open(str(tmp_path / "async"), embedder=AsyncEmbedder()) as opened:
        with pytest.raises(LoopRequiredError):
            blocking.recall(opened, ALICE, "tea?", Policy())
        with pytest.raises(LoopRequiredError):
            blocking.add_memory(opened, ALICE, Policy(), "", ["Alice likes tea."])


@pytest.mark.parametrize(("keywords", "limit"), [(["x"] * 11, 5), ("tea", 5), (["tea"], 21)])
def test_a_search_beyond_its_bounds_is_refused(memory, keywords, limit):
    with pytest.raises(InvalidRecordError):
        blocking.search_memory(memory, ALICE, Policy(), keywords, limit)


def test_work_that_takes_too_long_is_left_behind_and_goes_on():
    go, gone = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        gone.set()

    with pytest.raises(MemoryTimeoutError, match="work took longer"):
        blocking.within(0.01, "work", work)
    go.set()

    assert gone.wait(5)


def test_work_that_fails_by_itself_tells_its_own_error():
    def work() -> None:
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match="my own"):
        blocking.within(5, "work", work)


def test_work_sees_the_context_of_its_caller():
    who = contextvars.ContextVar("who", default="nobody")
    who.set("alice")

    assert blocking.within(5, "work", who.get) == "alice"


def test_threads_that_hang_do_not_pile_up():
    go = threading.Event()
    for _ in range(blocking.MOST_THREADS):
        with pytest.raises(MemoryTimeoutError):
            blocking.within(0.0001, "hang", go.wait)
    before = threading.active_count()
    with pytest.raises(MemoryTimeoutError):
        blocking.within(0.0001, "one more", go.wait)
    after = threading.active_count()
    go.set()

    assert after <= before
    assert blocking.within(5, "again", lambda: "free") == "free"
