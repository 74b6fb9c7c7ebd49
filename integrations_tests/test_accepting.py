"""When a write is done at once, when it is accepted first, and who waits for it how long."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from commonplace import InvalidRecordError, Memory, Scope, StoreUnavailableError
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.testing.fakes import HashEmbedder

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")


class GatedEmbedder(HashEmbedder):
    """Waits, with a text that says "slow", until its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
        if any("slow" in text for text in texts):
            self.entered.set()
            self.gate.wait(20)
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def embedder() -> GatedEmbedder:
    return GatedEmbedder()


@pytest.fixture
def memory(tmp_path: Path, embedder: GatedEmbedder) -> Iterator[Memory]:
    """A memory that has seen its embedder answer quickly, on a machine under load too."""
    with Memory.open(str(tmp_path / "memory"), embedder=embedder) as opened:
        opened.add("the first", Scope(user_id="nobody"))
        opened._runtime.worker.pace.measure(embedder, 1, 0.001)
        yield opened
        embedder.gate.set()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def texts_of(memory: Memory, scope: Scope = ALICE) -> list[str]:
    return sorted(one.text for one in memory.list(scope).records)


def pending(memory: Memory) -> int:
    return memory._runtime.engines.journal.count().pending


def wait_for_pending(memory: Memory, number: int) -> float:
    """Wait until so many operations are accepted; return the seconds that it took."""
    began = time.monotonic()
    while pending(memory) != number:
        assert time.monotonic() < began + 10
        time.sleep(0.001)
    return time.monotonic() - began


def last_seq(memory: Memory) -> int:
    """Read the number of the last operation that the journal accepted."""
    connection = memory._runtime.engines.connection  # type: ignore[attr-defined]
    with connection.read() as reader:
        sql = "SELECT seq FROM sqlite_sequence WHERE name = 'op'"
        return int(reader.execute(sql).fetchone()[0])


# -- at once, or accepted first --------------------------------------------------------------------


def test_a_quick_awaited_write_is_in_no_journal(memory: Memory) -> None:
    before = last_seq(memory)
    known = memory.add("Alice rows", ALICE).changes[0].id
    memory.update(known, "Alice rows at dawn", ALICE)
    memory.feedback(known, ALICE, helped=True)
    memory.delete(known, ALICE)

    assert last_seq(memory) == before
    assert [one.event for one in memory.history(known, ALICE)] == ["ADD", *["UPDATE"] * 2, "DELETE"]


def test_what_is_not_awaited_or_not_for_ever_is_accepted_first(memory: Memory) -> None:
    before = last_seq(memory)
    memory.add("Alice rows", ALICE, wait=False)
    written = memory.add("Alice sings", ALICE, wait=10.0)

    assert (last_seq(memory), written.pending) == (before + 2, False)
    assert memory.flush().pending == 0
    assert texts_of(memory) == ["Alice rows", "Alice sings"]


def test_a_write_behind_one_of_its_owner_is_accepted_and_others_are_done_at_once(
    memory: Memory, embedder: GatedEmbedder, threads: ThreadPoolExecutor
) -> None:
    memory.add("slow Alice", ALICE, wait=False)
    embedder.entered.wait(10)
    behind = threads.submit(memory.add, "Alice rows", Scope(user_id="alice", session_id="s"))
    wait_for_pending(memory, 2)
    before = last_seq(memory)
    bobs = memory.add("Bob rows", BOB)

    assert (last_seq(memory), pending(memory), behind.done()) == (before, 2, False)
    assert (bobs.changes[0].event, texts_of(memory, BOB)) == ("ADD", ["Bob rows"])
    embedder.gate.set()
    assert behind.result(10).changes[0].event == "ADD"
    memory.flush()
    assert texts_of(memory) == ["Alice rows", "slow Alice"]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_slow_embedder_is_asked_after_the_write_is_accepted(
    tmp_path: Path, threads: ThreadPoolExecutor, *, is_known: bool
) -> None:
    embedder = GatedEmbedder()
    with Memory.open(str(tmp_path), embedder=embedder) as memory:
        if is_known:
            memory.add("the first", BOB)
        writing = threads.submit(memory.add, "slow Alice rows", ALICE)
        wait_for_pending(memory, 1)

        assert not writing.done()
        embedder.gate.set()
        assert writing.result(10).changes[0].event == "ADD"
        assert pending(memory) == 0


def test_an_embedder_that_becomes_slow_does_not_hold_up_acceptance(
    memory: Memory, embedder: GatedEmbedder, threads: ThreadPoolExecutor
) -> None:
    writing = threads.submit(memory.add, "slow Alice", ALICE)
    wait_for_pending(memory, 1)

    assert not writing.done()
    embedder.gate.set()
    assert writing.result(10).changes[0].event == "ADD"


def test_a_write_that_the_disk_refuses_leaves_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqliteGraph.apply

    def apply(self: SqliteGraph, changes: Any) -> Any:
        real(self, changes)
        raise StoreUnavailableError(store="memory.db", reason="the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteGraph, "apply", apply)
        with pytest.raises(StoreUnavailableError, match="full"):
            memory.add("Alice rows", ALICE)
    assert (texts_of(memory), pending(memory)) == ([], 0)

    assert memory.add("Alice rows", ALICE).changes[0].event == "ADD"


# -- who waits -------------------------------------------------------------------------------------


def test_a_caller_waits_no_longer_than_it_says(memory: Memory) -> None:
    written = memory.add("slow Alice", ALICE, wait=0.05)
    later = asyncio.run(memory.aadd("slow Alice again", ALICE, wait=0.05))

    assert [(one.pending, one.changes) for one in (written, later)] == [(True, ())] * 2
    assert pending(memory) == 2


@pytest.mark.parametrize("wait", [0, -1.0, float("nan"), float("inf"), 1e10, "1", None])
def test_a_time_that_nobody_can_wait_is_refused(memory: Memory, wait: Any) -> None:
    with pytest.raises(InvalidRecordError, match="wait"):
        memory.add("Alice rows", ALICE, wait=wait)
    with pytest.raises(InvalidRecordError, match="wait"):
        asyncio.run(memory.aadd("Alice rows", ALICE, wait=wait))

    assert (texts_of(memory), memory.flush(1).pending) == ([], 0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for its embedder before it is accepted."""
    monkeypatch.setattr("commonplace.ingest.submission._QUICK_SECONDS", 20.0)


@pytest.mark.usefixtures("patient")
def test_flushing_counts_and_waits_for_what_is_not_accepted_yet(
    memory: Memory, embedder: GatedEmbedder, threads: ThreadPoolExecutor
) -> None:
    writing = threads.submit(memory.add, "slow Alice", ALICE)
    embedder.entered.wait(10)
    left = memory.flush(0.05)

    assert (left.pending, pending(memory)) == (1, 0)
    threading.Timer(0.1, embedder.gate.set).start()
    assert memory.flush(10).pending == 0
    assert texts_of(memory) == ["slow Alice"]
    assert writing.result(10).changes[0].event == "ADD"


@pytest.mark.usefixtures("patient")
def test_closing_waits_for_what_is_not_accepted_yet(
    tmp_path: Path, memory: Memory, embedder: GatedEmbedder, threads: ThreadPoolExecutor
) -> None:
    writing = threads.submit(memory.add, "slow Alice", ALICE)
    embedder.entered.wait(10)
    threading.Timer(0.1, embedder.gate.set).start()
    memory.close()

    assert writing.result(10).changes[0].event == "ADD"
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as again:
        assert texts_of(again) == ["slow Alice"]


@pytest.mark.parametrize("text", ["Alice rows", "slow Alice"])
@pytest.mark.parametrize("loop_ends", [False, True])
def test_a_write_whose_caller_is_cancelled_is_stored(
    memory: Memory, embedder: GatedEmbedder, text: str, *, loop_ends: bool
) -> None:
    async def write() -> None:
        writing = asyncio.create_task(memory.aadd(text, ALICE))
        await asyncio.sleep(0)
        if not loop_ends:  # which cancels it, too
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing

    asyncio.run(write())
    embedder.gate.set()

    assert memory.flush().pending == 0
    assert texts_of(memory) == [text]


def test_a_write_that_is_not_accepted_does_not_claim_to_be_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise StoreUnavailableError(store="memory.db", reason="the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteGraph, "apply", fail)
        with pytest.raises(StoreUnavailableError) as refused:
            memory.add("at once", ALICE)
    assert "kept" not in str(refused.value)


def test_closing_keeps_its_time_beside_a_slow_embedder(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    memory = Memory.open(str(tmp_path / "memory"), embedder=embedder)
    memory.add("slow", ALICE, wait=False)
    assert embedder.entered.wait(60)
    began = time.monotonic()
    memory.close(0.2)
    took = time.monotonic() - began
    embedder.gate.set()

    assert took < 15  # the gate is shut for 20
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as again:
        again.flush()
        assert texts_of(again) == ["slow"]


@pytest.mark.parametrize("timeout", ["x", None, -1, float("nan")])
def test_a_time_that_is_none_is_refused(memory: Memory, timeout: Any) -> None:
    with pytest.raises(InvalidRecordError, match="timeout"):
        memory.flush(timeout)
