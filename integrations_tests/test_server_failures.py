"""Stores that refuse us or are unreachable: nothing is lost, and no caller waits for ever."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commonplace import (
    InvalidRecordError,
    Memory,
    Scope,
    Settings,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.backends.sqlite.index import SqliteIndex
from commonplace.ports.engines import GraphStore
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import EraseReceipt

# Engines that change one after the other, as those on servers do.
pytestmark = pytest.mark.every_engine("folders")
ALICE = Scope(user_id="alice")
REFUSED = StoreRefusedError(store="neo4j://host", reason="it does not know the user")
AWAY = StoreUnavailableError(store="neo4j://host", reason="no answer")
BROKEN = RuntimeError("what nobody thought of")
REJECTED = InvalidRecordError(
    field="request", value="delete", reason="was refused by qdrant://host"
)


class Door:
    """Fails calls of a store while it has an error, and counts them."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.calls = 0

    def guard(self, call: Callable) -> Callable:
        def guarded(*args, **given):
            self.calls += 1
            if self.error is not None:
                raise self.error
            return call(*args, **given)

        return guarded


@pytest.fixture
def memory(tmp_path: Path, engines: str) -> Iterator[Memory]:
    assert engines == "folders"
    settings = Settings(retry_after=0.001, max_attempts=2)
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), settings=settings) as opened:
        yield opened


def shut(memory: Memory, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Door:
    door = Door(error)
    graph: GraphStore = memory._runtime.engines.graph
    for name in ("apply", "erase"):
        monkeypatch.setattr(graph, name, door.guard(getattr(graph, name)))
    return door


def test_a_write_that_a_store_refuses_says_so_and_waits_in_the_journal(memory, monkeypatch):
    door = shut(memory, monkeypatch, REFUSED)
    with pytest.raises(StoreRefusedError, match="password"):
        memory.add("Alice drinks tea", ALICE)
    left = memory.flush(10)

    assert (left.pending, left.dead) == (1, 0)
    assert door.calls == 2  # the write, and the drain
    door.error = None
    assert memory.flush(10).pending == 0
    assert [one.text for one in memory.list(ALICE).records] == ["Alice drinks tea"]


def test_the_next_write_brings_what_a_refusal_left(memory, monkeypatch):
    door = shut(memory, monkeypatch, REFUSED)
    for n in range(5):
        memory.add(f"fact {n}", ALICE, wait=False)
    memory.flush(10)
    door.error = None
    memory.add("fact 5", ALICE)

    assert len(memory.list(ALICE).records) == 6
    assert memory.admin.dead_letters() == []


def test_an_index_that_refuses_loses_nothing_either(memory, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(memory._runtime.engines.index, "upsert", Door(REFUSED).guard(lambda _: None))
        with pytest.raises(PermissionError):
            memory.add("Alice drinks tea", ALICE)
    memory.flush(10)

    assert [one.record.text for one in memory.search("tea", ALICE)] == ["Alice drinks tea"]
    assert memory.flush(10).pending == 0


def test_the_next_open_goes_on_with_what_was_refused(memory, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        shut(memory, patch, REFUSED)
        memory.add("Alice drinks tea", ALICE, wait=False)
        memory.close()

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as again:
        again.flush(10)
        assert [one.text for one in again.list(ALICE).records] == ["Alice drinks tea"]


@pytest.mark.parametrize("error", [REFUSED, AWAY], ids=["refused", "away"])
def test_an_erasure_that_a_store_fails_says_so_and_is_done_later(memory, monkeypatch, error):
    memory.add("Alice drinks tea", ALICE)
    door = shut(memory, monkeypatch, error)
    with pytest.raises(type(error)):
        memory.forget(ALICE)
    door.error = None
    left = memory.flush(10)

    assert (left.pending, left.dead) == (0, 0)
    assert memory.list(ALICE).records == ()
    assert isinstance(memory.forget(ALICE), EraseReceipt)


async def test_who_waits_behind_a_write_that_a_store_fails_is_told(memory, monkeypatch):
    door = shut(memory, monkeypatch, AWAY)
    with pytest.raises(StoreUnavailableError):
        await memory.aadd("Alice drinks tea", ALICE)
    for behind in (memory.aforget(ALICE), memory.aadd("Alice rows", ALICE)):
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(behind, 10)
    door.error = None
    left = await memory.aflush(10)

    assert (left.pending, left.dead) == (0, 0)
    assert [one.text for one in memory.list(ALICE).records] == ["Alice rows"]


@pytest.mark.parametrize("error", [BROKEN, REJECTED], ids=["broken", "rejected"])
def test_an_erasure_that_cannot_be_done_says_so_and_can_be_tried_again(memory, monkeypatch, error):
    memory.add("Alice drinks tea", ALICE)
    door = shut(memory, monkeypatch, error)
    with pytest.raises(type(error)):
        memory.forget(ALICE)
    [letter] = memory.admin.dead_letters(ALICE)
    door.error = None
    memory.admin.retry([letter.operation])
    left = memory.flush(10)

    assert (left.pending, left.dead) == (0, 0)
    assert memory.list(ALICE).records == ()


def test_a_store_that_refuses_at_the_opening_is_told_at_once(tmp_path, monkeypatch):
    def refuse(*args, **given):
        raise REFUSED

    with monkeypatch.context() as patch:
        patch.setattr(SqliteIndex, "__init__", refuse)
        with pytest.raises(StoreRefusedError):
            Memory.open(str(tmp_path), embedder=HashEmbedder())
    Memory.open(str(tmp_path), embedder=HashEmbedder()).close()
