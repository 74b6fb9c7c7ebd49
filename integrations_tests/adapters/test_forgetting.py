"""Forgetting by words, and instructions that end, in a turn of every framework."""

from dataclasses import replace

import pytest

from commonplace import Memory, Message, Scope

from .test_user_ids import AGENTS

ALICE = Scope(user_id="alice")
every_agent = pytest.mark.parametrize("agent", AGENTS, ids=lambda one: one.__name__)


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory")) as opened:
        yield opened


def of_the_user(memory):
    records = memory.list(ALICE, limit=100).records
    return sorted(one.text for one in records if one.role != "assistant")


@every_agent
async def test_a_turn_that_forgets_and_states_is_stored_without_its_request(memory, agent):
    events = []
    driver = agent(memory, user_id="alice", on_event=events.append)

    await driver.turn("My old phone number was 07 11.")
    await driver.turn("I collect stamps.")
    await driver.turn("Forget my old phone number. My new one is 07 98.")
    await memory.aflush(60)

    assert ["I collect stamps.", "My new phone number is 07 98."] == of_the_user(memory)
    assert [1] == [one.count for one in events if one.name == "retracted"]
    shown = await driver.turn("What is my new phone number?")
    assert "07 98" in shown
    assert "07 11" not in shown


@every_agent
async def test_what_was_forgotten_is_in_no_answer_of_another_session(memory, agent):
    driver = agent(memory, user_id="alice")

    await driver.turn("My dentist is called Dr Ferreira.")
    await memory.aflush(60)
    scope = replace(memory.list(ALICE).records[0].scope, session_id="another")
    answer = Message(text="Your dentist is Dr Ferreira on Rua das Flores.", role="assistant")
    memory.add([Message(text="Who is my dentist?"), answer], scope, infer=False)
    await driver.turn("Forget the name of my dentist, please.")
    await memory.aflush(60)

    assert "Ferreira" not in await driver.turn("What is the name of my dentist?")


@every_agent
async def test_a_turn_that_asks_to_forget_everything_deletes_nothing(memory, agent):
    events = []
    driver = agent(memory, user_id="alice", on_event=events.append)

    await driver.turn("I collect stamps.")
    await driver.turn("Please forget everything.")
    await memory.aflush(60)

    assert ["I collect stamps."] == of_the_user(memory)
    assert ["not_retracted"] == [one.name for one in events if one.operation == "forget"]


@every_agent
async def test_an_instruction_that_is_ended_is_shown_no_more(memory, agent):
    driver = agent(memory, user_id="alice")

    await driver.turn("Never use emojis.")
    assert "Never use emojis" in await driver.turn("Hello, what is new?")

    await driver.turn("You can use emojis again.")
    assert "emojis" not in await driver.turn("Hello, what is new?")
