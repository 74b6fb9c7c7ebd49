"""Rank of the right record in small memories: a dozen turns and a few terse facts, made up."""

import math
import random
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace import Fact, Memory, Message, Scope
from commonplace.models.sentence_encoder import SentenceEncoder

TEMPLATES = tomllib.loads(Path(__file__).with_name("small_lives.toml").read_text("utf-8"))
LIVES = 6  # of each language
STARTS = datetime(2026, 2, 1, 9, tzinfo=UTC)
TARGET = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a life.

    Attributes:
        form: how the answer was told: as a fact, in a turn, both, or `before` something newer.
        right: texts of the records that answer; they stand before all others.
    """

    text: str
    user: Scope
    form: str
    right: frozenset[str]


def tell(memory: Memory, language: str, seed: int) -> list[Asked]:
    """Make up a life and tell it: 12 or 14 turns in two sessions, and 3 to 8 facts."""
    parts: dict[str, Any] = TEMPLATES[language]
    chance = random.Random(f"{language} {seed}")
    user = Scope(user_id=f"{language} {seed}")
    facts: list[Fact] = []
    sessions: tuple[list[list[str]], list[list[str]]] = ([], [])
    asked = []

    def say(text: str, number: int) -> None:
        sessions[number].append([text, chance.choice(parts["replies"])])

    topics = chance.sample(parts["topics"], chance.randint(4, 9))
    for topic, form in zip(topics, ["turn", "both", *["fact"] * len(topics)], strict=False):
        x = chance.choice(topic["values"])
        told = [topic[one].format(x=x) for one in ("turn", "fact") if form in {one, "both"}]
        if form != "fact":
            say(told[0], chance.randrange(2))
        if form != "turn":
            facts.append(Fact(text=told[-1]))
        asked.append(Asked(text=topic["ask"], user=user, form=form, right=frozenset(told)))
    for topic in topics[2:4]:  # two of those that are told as facts
        say(topic["near"], chance.randrange(2))
    change = chance.choice(parts["changes"])
    old, new = (
        change[name].format(x=x)
        for name, x in zip(("old", "new"), chance.sample(change["values"], 2), strict=True)
    )
    say(old, 0)
    say(new, 1)
    asked.append(Asked(text=change["ask"], user=user, form="before", right=frozenset([old])))
    if chance.random() < 0.5:
        chance.choice(sessions).append(chance.choice(parts["chatter"]))
    _add(memory, user, facts, [chance.sample(one, len(one)) for one in sessions])
    return asked


def _add(memory: Memory, user: Scope, facts: list[Fact], sessions: list[list[list[str]]]) -> None:
    for number, exchanges in enumerate(sessions):
        at = STARTS + timedelta(days=10 * number)
        turns = [
            Message(text=text, role=role, at=at + timedelta(minutes=place))
            for place, exchange in enumerate(exchanges)
            for role, text in zip(("user", "assistant"), exchange, strict=True)
        ]
        memory.add(turns, Scope(user_id=user.user_id, session_id=str(number)), infer=False)
    memory.add(facts, user)


@pytest.mark.parametrize("language", sorted(TEMPLATES))
def test_the_records_that_answer_stand_first_in_a_small_memory(
    tmp_path: Path, language: str
) -> None:
    with Memory.open(str(tmp_path), embedder=SentenceEncoder()) as memory:
        asked = [one for seed in range(LIVES) for one in tell(memory, language, seed)]
        found = [memory.search(one.text, one.user, top_k=5) for one in asked]

    missed = []
    for one, matches in zip(asked, found, strict=True):
        first = [match.record.text for match in matches[: len(one.right)]]
        if set(first) != one.right:
            missed.append((one.form, one.text, first))
    assert 1 - len(missed) / len(asked) >= TARGET, missed
    for matches in found:
        scores = [match.score for match in matches]
        assert scores == sorted(scores, reverse=True)
        logits = np.array([math.fsum(match.score_details.values()) for match in matches])
        assert (1 / (1 + np.exp(-logits))).tolist() == pytest.approx(scores)


def test_what_changed_on_another_matter_is_not_lifted(tmp_path: Path) -> None:
    user = Scope(user_id="bob", session_id="1")
    with Memory.open(tmp_path) as memory:
        for text in (
            "My sister Tess lives in Bergen.",
            "I am allergic to shellfish.",
            "I work at Siemens as an engineer.",
            "I drive an old Saab.",
            "My sister moved to Tromsø last week.",
            "I quit Siemens and started at Bosch.",
            "I sold the Saab and bought a Kia.",
        ):
            memory.add(Message(text=text, role="user"), user)

        found = {
            question: [one.record.text for one in memory.search(question, user)]
            for question in ("Where do I work?", "Where does my sister live?")
        }

    assert found["Where do I work?"][0] == "I quit Siemens and started at Bosch."
    work = found["Where do I work?"]
    assert work.index("I work at Siemens as an engineer.") < work.index(
        "I sold the Saab and bought a Kia."
    )
    assert found["Where does my sister live?"][0] == "My sister moved to Tromsø last week."
