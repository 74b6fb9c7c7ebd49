"""What every adapter takes: one policy or the parameters it replaces, one memory or where it is."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from commonplace import InvalidRecordError, Memory, Policy, Scope, WrongTypeError
from commonplace.agents import UNSET, AgentMemory, acquire_memory, fold_policy, given_once
from commonplace.testing.fakes import HashEmbedder

NAMES = {"memory_section_header": "header"}


class Holder:
    """An adapter's object."""


def test_parameters_of_a_drop_in_become_a_policy() -> None:
    given = {"top_k": 3, "memory_section_header": "Notes", "threshold": UNSET}

    assert fold_policy(None, given, NAMES) == Policy(top_k=3, header="Notes")


def test_a_parameter_may_be_none_where_none_means_something() -> None:
    assert fold_policy(None, {"threshold": None}) == Policy(threshold=None)


def test_a_policy_is_taken_as_it_is() -> None:
    policy = Policy(kinds=("fact",))

    assert fold_policy(policy, {"top_k": UNSET}) is policy


def test_a_policy_and_a_parameter_at_once_are_an_error_that_says_where_it_goes() -> None:
    with pytest.raises(InvalidRecordError, match=r"memory_section_header.*Policy\(header=\.\.\.\)"):
        fold_policy(Policy(), {"memory_section_header": "Notes"}, NAMES)


def test_a_value_under_two_names_is_an_error() -> None:
    assert given_once("memory", None, client="here", path=None) == "here"
    assert given_once("memory", None, client=None) is None
    with pytest.raises(InvalidRecordError, match="client='there' must not be given beside memory"):
        given_once("memory", "here", client="there")


def test_a_path_is_opened_once_for_all_who_name_it(tmp_path: Path) -> None:
    embedder, first, second = HashEmbedder(), Holder(), Holder()

    one = acquire_memory(first, tmp_path / "memory", embedder=embedder)
    other = acquire_memory(second, str(tmp_path / "memory"), embedder=embedder)

    assert one is other
    assert str(tmp_path) in one.get().location
    one.close()


async def test_a_path_is_open_before_its_embedder_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, search = threading.Event(), Memory.search

    def load(self: Memory, text: str, *rest: Any, **more: Any) -> Any:
        assert loads.wait(10)
        return search(self, text, *rest, **more)

    monkeypatch.setattr(Memory, "search", load)
    monkeypatch.setattr("commonplace.models.sentence_encoder.SentenceEncoder", HashEmbedder)
    holder = Holder()
    lazy = acquire_memory(holder, tmp_path)
    assert (await lazy.aget()).list(Scope(user_id="alice")).records == ()

    waiting = asyncio.create_task(lazy.await_open(10))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    loads.set()
    await waiting
    lazy.close()


def test_nothing_is_the_location_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = Holder(), Holder()
    memories = []
    for holder, name in zip(holders, "ab", strict=True):
        monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / name))
        memories.append(acquire_memory(holder, None, embedder=HashEmbedder()))

    assert [Path(lazy.get().location).name for lazy in memories] == ["a", "b"]
    for lazy in memories:
        lazy.close()


def test_an_open_memory_stays_open(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        lazy = acquire_memory(Holder(), memory)
        lazy.close()

        assert lazy.get() is memory
        assert memory.flush().pending == 0


def test_a_model_beside_an_open_memory_is_refused(tmp_path: Path) -> None:
    with (
        Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory,
        pytest.raises(WrongTypeError, match="has its own models"),
    ):
        acquire_memory(Holder(), memory, embedder=HashEmbedder())


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(WrongTypeError, match="the path of a folder, or nothing"):
        acquire_memory(Holder(), 42)  # type: ignore[arg-type]  # wrong on purpose


def test_agents_on_one_memory_count_apart_unless_they_are_given_the_same_lazy_one(
    tmp_path: Path,
) -> None:
    alice = Scope(user_id="alice")
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        first, second = (AgentMemory(memory, Policy(), log="tests") for _ in range(2))
        shared = [AgentMemory(first.lazy, Policy(), log="tests") for _ in range(2)]
        first.recall(alice, "tea")
        shared[0].recall(alice, "tea")

    assert first.lazy is second.lazy
    assert [one.counters().empty for one in (first, second, *shared)] == [1, 0, 1, 1]
