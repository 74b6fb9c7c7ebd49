"""What is known of a person: statements alone, each matter once, what holds now first."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from commonplace import Memory, Message, Scope
from commonplace.agents import run_plan
from commonplace.agents.about import about
from commonplace.agents.standing_instructions import instruction_facts
from commonplace.sans_io import on
from commonplace.testing.fakes import HashEmbedder

BEGIN = datetime(2026, 11, 1, 9, tzinfo=UTC)
TURNS = [
    "Hi there!", "I live in Rome.", "Which food am I allergic to?", "I'm allergic to peanuts.",
    "Can you translate this: good night", "I moved to Lyon last week.", "I have a cat.",
    "I have a cat allergy medicine for my son.", "I'm allergic to peanuts!", "Thanks",
    "Do I like tea? By the way, my brother lives in Oslo.", "What is 3+4?", "I don't like jazz.",
    "My favourite colour is blue.", "My favourite colour is green now.", "我对花生过敏吗？",
]  # fmt: skip


def test_each_matter_once_and_what_holds_now(tmp_path: Path):
    with Memory.open(str(tmp_path)) as memory:
        session = Scope(user_id="alice", session_id="s")
        for day, text in enumerate(TURNS):
            at = BEGIN + timedelta(days=day)
            answer = Message(text="Noted.", role="assistant", at=at)
            memory.add([Message(text=text, at=at), answer], session, infer=False)
        memory.add("Alice is allergic to peanuts.", Scope(user_id="alice"))

        known = run_plan(about(Scope(user_id="alice")), on(memory))

    assert [(one.text, [old.text for old in one.earlier]) for one in known] == [
        ("Alice is allergic to peanuts.", []),
        ("My favourite colour is green now.", ["My favourite colour is blue."]),
        ("I don't like jazz.", []),
        ("By the way, my brother lives in Oslo.", []),
        ("I have a cat allergy medicine for my son.", []),
        ("I have a cat.", []),
        ("I moved to Lyon last week.", ["I live in Rome."]),
    ]


def test_a_revoked_instruction_does_not_hold(tmp_path: Path):
    turns = [
        "Please always answer in French.", "From now on, never use emojis.",
        "You can stop answering in French.", "I keep bees.",
    ]  # fmt: skip
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        for day, text in enumerate(turns):
            turn = Message(text=text, at=BEGIN + timedelta(days=day))
            memory.add(
                [turn, *instruction_facts([turn])],
                Scope(user_id="alice", session_id="s"),
                infer=False,
            )

        known = run_plan(about(Scope(user_id="alice")), on(memory))

    assert sorted(one.text for one in known) == sorted(turns[1:])
