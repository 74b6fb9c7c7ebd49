"""What a note shows and why the rest is not in it, each with the rule that left it out."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.agents import Conversation, Policy, choose, recall, render, run_plan
from commonplace.agents.explanation import Explanation, explain
from commonplace.agents.recall import Rule
from commonplace.sans_io import on

from .test_selection import fact, turn

ALICE = Scope(user_id="alice")
QUESTION = "Where do I live?"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("explained")
    with Memory.open(str(folder)) as opened:
        old = datetime.now(UTC) - timedelta(days=400)
        for city, at in (("Rome", old), ("Lyon", old + timedelta(days=300))):
            lives = Relation(subject="Alice", predicate="lives_in", object=city)
            opened.add(Fact(text=f"Alice lives in {city}.", relations=(lives,), at=at), ALICE)
        over = datetime.now(UTC) + timedelta(seconds=0.2)
        opened.add(Fact(text="Alice lives in a hotel this week.", expires_at=over), ALICE)
        opened.add([Message(text="Where do I live?"), Message(text="I live near the park.")], ALICE)
        opened.add(Fact(text="Her language is French.", kind="profile"), ALICE)
        time.sleep(max(0.0, (over - datetime.now(UTC)).total_seconds()))
        yield opened


def explained(memory: Memory, query: str = QUESTION, **policy: object) -> Explanation:
    return run_plan(explain(ALICE, query, Policy(**policy)), on(memory))


def rules(found: Explanation) -> dict[str, str]:
    return {one.match.record.text: one.rule for one in found.left_out}


def test_the_note_is_the_one_that_a_model_is_shown(memory):
    now = datetime.now().astimezone()
    policy = Policy(top_k=3)

    found = run_plan(explain(ALICE, QUESTION, policy, now), on(memory))

    assert found.note == render(run_plan(recall(ALICE, QUESTION, policy), on(memory)), policy, now)
    assert found.note.splitlines()[len(found.head) : -1] == [line.text for line in found.lines]
    assert [line.is_always for line in found.lines if "French" in line.text] == [True]


def test_what_is_left_out_is_told_with_the_rule(memory):
    left = rules(explained(memory))

    assert left["Where do I live?"] == "asks_only"
    assert left["Alice lives in Rome."] == "superseded"
    assert left["Alice lives in a hotel this week."] == "expired"
    assert "Alice lives in Lyon." not in left


def test_what_scores_below_the_threshold_is_told(memory):
    scores = [line.match.score for line in explained(memory).lines if not line.is_always]

    left = rules(explained(memory, threshold=min(1.0, max(scores) + 0.001)))

    assert left["Alice lives in Lyon."] == "threshold"


def test_a_question_that_needs_no_memory_says_so(memory):
    found = explained(memory, "Good morning!")

    assert [line.is_always for line in found.lines] == [True]
    assert {one.rule for one in found.left_out} <= {"small_talk", "superseded", "expired"}
    assert "small_talk" in rules(found).values()


def test_every_rule_of_the_selection():
    told = [
        fact("I own a cat.", 0.9, id="best"),
        turn("I OWN A CAT", 0.8, id="repeat"),
        turn("Do I own a cat?", 0.7, id="asks"),
        fact("I drink tea.", 0.6, id="held"),
        fact("My cat is called Tom.", 0.5, id="second"),
        fact("I fed the cat twice.", 0.5, id="room"),
        fact("It rained.", 0.01, id="floor"),
    ]
    found: dict[str, Rule] = {}

    shown = choose(
        told, "Which pet is mine?", top_k=2, held=Conversation(ids=["held"]), rules=found
    )

    assert [one.record.id for one in shown] == ["best", "second"]
    assert found == {
        "repeat": "repeat", "asks": "asks_only", "held": "held", "room": "room", "floor": "floor",
    }  # fmt: skip
