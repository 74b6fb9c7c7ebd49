"""What a user says is accepted when a turn begins; its end adds the answer, and extracts once."""

import asyncio
import json

import pytest

from commonplace.agents import AgentMemory, Policy, ShownRecords
from commonplace.agents.turns import OpenTurns
from commonplace.errors import StoreUnavailableError
from commonplace.memory import Memory
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat
from commonplace.types import Message, Scope

ALICE = Scope(user_id="alice", session_id="today")
SAID = Message(text="I moved to Lyon.", id="m1")
ANSWER = Message(text="How is Lyon?", role="assistant", id="m2")
FACT = json.dumps({"facts": [{"text": "Alice lives in Lyon.", "kind": "fact"}]})
NAMES = ("sync", "async")


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


@pytest.fixture(params=NAMES)
def face(request):
    """Accept and write, with and without an event loop."""

    class Face(AgentMemory):
        def begin(self, *messages, **options):
            if request.param == "sync":
                self.accept(messages, ALICE, **options)
            else:
                asyncio.run(self.aaccept(messages, ALICE, **options))

        def finish(self, *messages):
            if request.param == "sync":
                self.write(messages, ALICE)
            else:
                assert asyncio.run(self.awrite(messages, ALICE))

    return lambda memory, **policy: Face(memory, Policy(**policy), log="tests")


def turns(memory):
    found = [one for one in memory.list(ALICE).records if one.kind == "episode"]
    return [(one.text, one.times_told) for one in sorted(found, key=lambda one: one.position)]


def test_the_end_of_a_turn_adds_the_answer_after_what_was_accepted(memory, face):
    mine = face(memory)
    mine.begin(SAID)
    memory.flush()
    assert turns(memory) == [(SAID.text, 1)]
    mine.finish(SAID, ANSWER)

    assert turns(memory) == [(SAID.text, 1), (ANSWER.text, 1)]
    counters = mine.counters()
    assert (counters.written, counters.failed) == (1, 0)


@pytest.mark.parametrize("chat", [ScriptedChat, AsyncScriptedChat])
def test_facts_are_extracted_once_from_what_was_accepted_and_the_answer(tmp_path, chat):
    chat = chat([FACT])
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:

        async def turn():
            mine = AgentMemory(memory, Policy(), log="tests")
            await mine.aaccept([SAID], ALICE)
            await memory.aflush()
            assert chat.calls == []
            await mine.awrite([SAID, ANSWER], ALICE)

        asyncio.run(turn())

        [call] = chat.calls
        assert f"- user: {SAID.text}\n- assistant: {ANSWER.text}" in call.user
        assert turns(memory) == [(SAID.text, 1), (ANSWER.text, 1)]
        assert "Alice lives in Lyon." in [one.text for one in memory.list(ALICE.owner).records]


def test_what_was_accepted_is_redacted_for_the_model_too(tmp_path):
    chat = ScriptedChat(['{"facts": []}'])
    redact = lambda text: text.replace("Lyon", "L.")  # noqa: E731 -- one use
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat, redact=redact) as memory:
        mine = AgentMemory(memory, Policy(), log="tests")
        mine.accept([SAID], ALICE)
        mine.write([SAID, ANSWER], ALICE)

    assert "Lyon" not in chat.calls[0].user
    assert "I moved to L." in chat.calls[0].user


@pytest.mark.parametrize("restarts", [False, True])
def test_a_standing_instruction_is_told_once_in_a_turn(memory, face, restarts):
    said = Message(text="Always answer in French.", id="m1")
    first = face(memory)
    first.begin(said)
    memory.flush()
    [instruction] = memory.list(ALICE.owner, kinds=["preference"]).records
    if restarts:  # another process knows nothing of the turn
        first.lazy.turns = OpenTurns()
    first.finish(said, ANSWER)

    [same] = memory.list(ALICE.owner, kinds=["preference"]).records
    assert (same.id, same.times_told) == (instruction.id, 1)


def test_a_turn_without_an_answer_is_told_once_though_it_is_begun_and_ended_again(memory, face):
    mine = face(memory)
    mine.begin(SAID)
    mine.begin(SAID)
    mine.finish(SAID)
    mine.begin(SAID)
    mine.finish(SAID, ANSWER)

    assert turns(memory) == [(SAID.text, 1), (ANSWER.text, 1)]


def test_a_request_to_forget_waits_for_the_end_of_the_turn(memory, face):
    said = Message(text="Please forget that I drive a Volvo.", id="m1")
    mine = face(memory)
    mine.begin(said)
    memory.flush()

    assert turns(memory) == []


def test_a_search_of_the_turn_does_not_find_what_the_user_asks(memory, face):
    memory.add("Alice's cat is called Miso.", ALICE)
    asked, shown = Message(text="How is my cat called?", id="m1"), ShownRecords()
    mine = face(memory)
    mine.begin(asked, shown=shown)
    memory.flush()

    keywords = {"keywords": ["how is my cat called"], "limit": 2}
    found = mine.call_tool("search_memory", keywords, ALICE, shown)
    assert "Miso" in found
    assert asked.text not in found
    assert asked.text in mine.call_tool("search_memory", keywords, ALICE)


def test_what_could_not_be_accepted_waits_and_is_written_before_the_end(memory, face, monkeypatch):
    real, fails = Memory.add, [True]

    def add(self, *args, **options):
        if fails.pop():
            raise StoreUnavailableError(store="test", reason="down")
        return real(self, *args, **options)

    mine = face(memory)
    monkeypatch.setattr(Memory, "add", add)
    mine.begin(SAID)
    monkeypatch.setattr(Memory, "add", real)
    mine.finish(SAID, ANSWER)

    assert turns(memory) == [(SAID.text, 1), (ANSWER.text, 1)]
    assert (mine.counters().failed, mine.counters().waiting, mine.counters().written) == (0, 0, 2)


def test_what_turned_out_to_be_part_of_another_turn_is_withdrawn(memory, face):
    mine = face(memory)
    mine.begin(SAID)
    mine.withdraw([SAID], ALICE)
    asyncio.run(mine.wait_for_writes(10))
    memory.flush()

    assert turns(memory) == []
