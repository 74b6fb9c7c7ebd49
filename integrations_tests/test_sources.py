"""Turns that facts were extracted from: known to the facts, and not recalled when they are over."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commonplace import Extraction, Memory, Message, Policy, Scope
from commonplace.admin import copy
from commonplace.agents import AgentMemory
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

from .test_extraction import facts, linking, row

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
MONDAY = Scope(user_id="alice", agent_id="coach", session_id="monday")
FRIDAY = Scope(user_id="alice", agent_id="coach", session_id="friday")
COACH = Scope(user_id="alice", agent_id="coach")
MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
POLICY = Policy(recall_timeout=30)
ROME, OSLO = "Alice lives in Rome.", "Alice lives in Oslo."


def lives(text: str) -> str:
    said = {"subject": "Alice", "subject_type": "person", "predicate": "lives_in"}
    town = {"object": text.rsplit(maxsplit=1)[-1].strip("."), "object_type": "place"}
    return facts(row(text, relations=[said | town]))


def say(memory: Memory, text: str, scope: Scope = MONDAY, at: datetime = MAY) -> tuple[str, str]:
    """Tell a turn from which one fact is extracted; return the ids of both."""
    turn, fact, *_ = memory.add(Message(text=text, at=at), scope).ids
    return turn, fact


def recalled(memory: Memory, query: str) -> set[str]:
    agent = AgentMemory(memory, POLICY, log="commonplace")
    return {match.record.text for match in agent.recall(FRIDAY, query)}


@pytest.fixture
def open_with(tmp_path: Path, engines: str) -> Callable[..., Memory]:
    def opened(*answers: Any, folder: str = "memory") -> Memory:
        chat = ScriptedChat(answers)
        return Memory.open(str(tmp_path / folder), embedder=HashEmbedder(), chat=chat)

    return opened


@pytest.mark.every_engine
def test_a_fact_knows_the_turns_of_its_write(open_with: Callable[..., Memory]) -> None:
    with open_with(lives(ROME), lives(OSLO)) as memory:
        [*turns, fact] = memory.add(
            [Message(text="I live in Rome", at=MAY), Message(text="Nice!", role="assistant")],
            MONDAY,
        ).ids
        hidden = memory.add(
            Message(text="I live in Oslo"), BOB, infer=Extraction(keep_messages=False)
        ).ids
        [stated] = memory.add("Alice rows", ALICE).ids

        found = memory.get(fact, ALICE)
        assert found is not None
        assert found.sources == tuple(turns)
        [match] = memory.search(ROME, ALICE, kinds=["fact"], top_k=1)
        assert match.record.sources == tuple(turns)
        for one, scope in ((*hidden, BOB), (stated, ALICE), (turns[0], ALICE)):
            record = memory.get(one, scope)
            assert record is not None
            assert record.sources == ()


@pytest.mark.every_engine
def test_a_turn_follows_its_fact(open_with: Callable[..., Memory]) -> None:
    with open_with(lives(ROME), lives(OSLO)) as memory:
        old, _ = say(memory, "I live in Rome since I was born")
        assert recalled(memory, "Where does Alice live?") >= {ROME}
        assert memory.admin.outdated_turns(COACH, [old]) == {}
        new, oslo = say(memory, "I live in Oslo now, at last", FRIDAY, JUNE)
        assert memory.admin.outdated_turns(COACH, [old, new]) == {old: JUNE}

        shown = recalled(memory, "Do I live in Rome since I was born, or in Oslo now, at last?")
        assert "I live in Rome since I was born" not in shown
        assert "I live in Oslo now, at last" in shown
        assert {one.record.id for one in memory.search("live in Rome", COACH)} >= {old, new}

        memory.delete(oslo, COACH)
        assert set(memory.admin.outdated_turns(COACH, [old, new])) == {new}
        memory.restore(oslo, COACH)
        assert memory.admin.outdated_turns(COACH, [old, new]) == {old: JUNE}
        memory.update(oslo, "Alice lives in Bergen.", COACH)
        # It states where she lives no more, and so ends nothing either.
        assert set(memory.admin.outdated_turns(COACH, [old, new])) == {new}
        assert memory.admin.outdated_turns(BOB, [old, new]) == {}


def test_a_turn_stays_as_long_as_one_of_its_facts_holds(open_with: Callable[..., Memory]) -> None:
    both = facts(row("Alice has a dog."), row("Alice rows at dawn."))
    with open_with(both) as memory:
        said = "I have a dog and I row at dawn with it"
        turn, dog, rows = memory.add(Message(text=said, at=MAY), MONDAY).ids
        memory.delete(dog, COACH)
        assert said in recalled(memory, "Who rows at dawn with a dog?")
        memory.delete(rows, COACH)
        assert said not in recalled(memory, "Who rows at dawn with a dog?")
        assert list(memory.admin.outdated_turns(COACH, [turn])) == [turn]


def test_what_is_told_again_has_both_turns(open_with: Callable[..., Memory]) -> None:
    again = linking("Alice has a dog.", same_as="Alice has a dog.")
    replaced = linking("Alice has a cat.", replaces="Alice has a dog.")
    with open_with(facts("Alice has a dog."), again, replaced) as memory:
        first, dog = say(memory, "I have a dog")
        second, same = say(memory, "My dog is called Miso", at=MAY + timedelta(days=1))
        assert dog == same
        found = memory.get(dog, COACH)
        assert found is not None
        assert (found.sources, found.times_told) == ((first, second), 2)
        third, _ = say(memory, "I gave my dog away, I have a cat", FRIDAY, JUNE)
        turns = [first, second, third]
        assert memory.admin.outdated_turns(COACH, turns) == {first: JUNE, second: JUNE}


def test_it_is_awaited_too(tmp_path: Path) -> None:
    async def run() -> tuple[set[str], tuple[str, ...]]:
        chat = AsyncScriptedChat([facts("Alice has a dog.")])
        opening = Memory.aopen(str(tmp_path), embedder=HashEmbedder(), chat=chat)
        async with opening as memory:
            turn, dog = (await memory.aadd(Message(text="I have a dog", at=MAY), MONDAY)).ids
            found = await memory.aget(dog, COACH)
            assert found is not None
            await memory.adelete(dog, COACH)
            agent = AgentMemory(memory, POLICY, log="commonplace")
            shown = {one.record.text for one in await agent.arecall(FRIDAY, "Who has a dog?")}
            assert found.sources == (turn,)
            return shown, found.sources

    shown, _ = asyncio.run(run())
    assert shown == set()


def test_copies_and_exports_have_the_sources(open_with: Callable[..., Memory]) -> None:
    with open_with(facts("Alice has a dog.")) as memory, open_with(folder="other") as other:
        turn, dog = say(memory, "I have a dog")
        assert copy(memory, other).complete
        assert other.get(dog, COACH) == memory.get(dog, COACH)
        other.delete(dog, COACH)
        assert list(other.admin.outdated_turns(COACH, [turn])) == [turn]


def test_a_folder_of_a_former_pre_release_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        [record_id] = memory.add("Alice rows", ALICE).ids
    connection = sqlite3.connect(folder / "memory.db")
    for name in ("source_moves", "source_goes"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("DROP TABLE source")
    for name in ("sources", "retracted"):
        connection.execute(f"ALTER TABLE record DROP COLUMN {name}")
    connection.commit()
    connection.close()
    chat = ScriptedChat([facts("Alice has a dog.")])
    with Memory.open(str(folder), embedder=HashEmbedder(), chat=chat) as memory:
        assert [one.id for one in memory.list(ALICE).records] == [record_id]
        turn, dog = say(memory, "I have a dog")
        memory.delete(dog, COACH)
        assert list(memory.admin.outdated_turns(COACH, [turn])) == [turn]
        memory.forget(ALICE)
        assert memory.admin.outdated_turns(COACH, [turn]) == {}
    with sqlite3.connect(folder / "memory.db") as connection:
        assert connection.execute("SELECT count(*) FROM source").fetchone() == (0,)
