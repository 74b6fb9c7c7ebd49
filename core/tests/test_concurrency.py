import asyncio
import contextlib
import contextvars
import threading

import pytest

from commonplace.concurrency import MAX_THREADS, await_within, call_within, start_call
from commonplace.errors import MemoryTimeoutError


def test_a_call_that_takes_too_long_is_abandoned_and_goes_on():
    go, gone = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        gone.set()

    with pytest.raises(MemoryTimeoutError, match="work took longer"):
        call_within(0.01, "work", work)
    go.set()

    assert gone.wait(5)


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

    assert done.result(5)
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
