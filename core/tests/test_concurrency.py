import asyncio
import contextlib
import contextvars
import threading

import pytest

from commonplace.concurrency import (
    MAX_THREADS,
    BoundedExecutor,
    LRUCache,
    await_within,
    call_later,
    call_within,
    end_idle_threads,
    start_call,
)
from commonplace.errors import MemoryTimeoutError


def test_a_call_that_takes_too_long_is_abandoned_and_goes_on():
    go, gone = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        gone.set()

    with pytest.raises(MemoryTimeoutError, match="work took longer"):
        call_within(0.01, "work", work)
    go.set()

    assert gone.wait(60)


def test_a_call_that_fails_by_itself_raises_its_own_error():
    def work() -> None:
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match="my own"):
        call_within(5, "work", work)


def test_a_call_sees_the_context_of_its_caller():
    who = contextvars.ContextVar("who", default="nobody")
    who.set("alice")

    assert call_within(5, "work", who.get) == "alice"


def test_calls_one_after_the_other_share_threads_but_no_context():
    who = contextvars.ContextVar("who", default="nobody")
    seen = set()
    for n in range(50):
        with pytest.raises(KeyError) if n % 5 == 0 else contextlib.nullcontext():
            call_within(5, f"call {n}", lambda n=n: {}[n] if n % 5 == 0 else who.set("alice"))
        name, ident, told = call_within(
            5, "ask", lambda: (threading.current_thread().name, threading.get_ident(), who.get())
        )
        seen.add(ident)
        assert (name, told) == ("commonplace-ask", "nobody")

    assert len(seen) <= 8


def test_a_call_whose_caller_is_cancelled_goes_on_and_so_does_its_thread():
    go = threading.Event()
    done = start_call("write", go.wait)
    assert not done.cancel()
    go.set()

    assert done.result(60)
    assert call_within(5, "again", lambda: "free") == "free"


@pytest.mark.parametrize("idle_seconds", [0.0, 0.001])
def test_a_thread_that_ends_takes_no_call_with_it(monkeypatch, idle_seconds):
    monkeypatch.setattr("commonplace.concurrency._IDLE_SECONDS", idle_seconds)

    assert [call_within(5, "work", lambda n=n: n) for n in range(500)] == [*range(500)]


def test_threads_that_hang_do_not_pile_up():
    go = threading.Event()
    for _ in range(MAX_THREADS):
        with pytest.raises(MemoryTimeoutError):
            call_within(0.0001, "hang", go.wait)
    before = threading.active_count()
    with pytest.raises(MemoryTimeoutError):
        call_within(0.0001, "one more", go.wait)
    after = threading.active_count()
    go.set()

    assert after <= before
    assert call_within(5, "again", lambda: "free") == "free"


def test_an_executor_runs_no_more_calls_at_once_than_its_limit_in_their_order():
    executor, go = BoundedExecutor("work", 2), threading.Event()
    begun = []
    waiting = [executor.submit(lambda n=n: (begun.append(n), go.wait(60))) for n in range(4)]
    others = BoundedExecutor("other", 1).submit(lambda: "free").result(60)
    cancelled = waiting[3].cancel()
    go.set()
    done = [one.result(60) for one in waiting[:3]]

    assert (others, cancelled, len(done), sorted(begun[:2]), begun[2:]) == (
        "free", True, 3, [0, 1], [2],
    )  # fmt: skip


def test_an_executor_passes_errors_on_and_goes_on():
    executor = BoundedExecutor("work", 1)
    failing = executor.submit(lambda: {}["missing"])
    fine = executor.submit(lambda: "fine")

    assert isinstance(failing.exception(5), KeyError)
    assert fine.result(60) == "fine"


def test_an_executor_that_is_shut_down_waits_for_its_calls_and_takes_no_more():
    executor, go = BoundedExecutor("work", 1), threading.Event()
    running = executor.submit(go.wait)
    queued = executor.submit(lambda: "never")
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    executor.shutdown()

    assert running.done()
    assert queued.cancelled()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(lambda: None)


def test_calls_of_an_executor_see_no_context_of_who_submits_them():
    who = contextvars.ContextVar("who", default="nobody")
    who.set("alice")

    assert BoundedExecutor("work", 1).submit(who.get).result(60) == "nobody"


def test_timers_share_a_thread_and_run_when_they_are_due():
    made, done = [], threading.Event()
    end_idle_threads()
    before = threading.active_count()
    call_later(0.04, lambda: (made.append("late"), done.set()))
    call_later(0.02, lambda: made.append(1 // 0))
    call_later(0.01, lambda: made.append("early"))
    cancelled = call_later(0.03, lambda: made.append("cancelled"))
    many = [call_later(60, lambda: None) for _ in range(100)]
    cancelled.cancel()
    during = threading.active_count()
    assert done.wait(60)
    for one in many:
        one.cancel()

    assert made == ["early", "late"]
    assert during <= before + 1


def test_idle_threads_can_be_ended():
    name = "commonplace-short"
    call_within(5, "short", lambda: None)
    before = [thread.name for thread in threading.enumerate()]
    end_idle_threads()

    assert name in before
    assert name not in [thread.name for thread in threading.enumerate()]


async def test_awaited_work_that_ignores_its_cancellation_is_left_in_time():
    ended = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            ended.set()

    with pytest.raises(MemoryTimeoutError, match="work took longer"):
        await await_within(0.01, "work", stubborn())
    assert not ended.is_set()
    await asyncio.wait_for(ended.wait(), 5)


async def test_awaited_work_that_somebody_else_cancels_is_a_timeout():
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(MemoryTimeoutError):
        await await_within(5, "work", cancelled())


def test_a_cache_keeps_what_was_used_last():
    cache: LRUCache[str, int] = LRUCache(2)
    cache["a"], cache["b"] = 1, 2
    used = cache.get("a")
    first = cache.setdefault("c", 3), cache.setdefault("c", 4)

    assert (used, first) == (1, (3, 3))
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert (cache.pop("a"), cache.pop("a"), cache.get("a")) == (1, None, None)
