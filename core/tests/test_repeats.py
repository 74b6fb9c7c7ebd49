"""Repeats and changed statements among candidates, by the order that `rank` gives them."""

from datetime import UTC, datetime, timedelta

import pytest

from commonplace.model import Record, Role, Scope
from commonplace.ports.stores import Hit
from commonplace.retrieval.ranking import rank

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def said(
    text: str,
    day: int,
    dense: float = 0.5,
    *,
    role: Role = "user",
    kind: str = "episode",
) -> Hit:
    at = NOW + timedelta(days=day)
    record = Record(
        id=f"{text} {day}" if role == "user" else f"{text} {role}",
        text=text,
        scope=Scope(user_id="alice", session_id=str(day)),
        kind=kind,  # type: ignore[arg-type]  # one of the kinds
        role=role if kind == "episode" else None,
        position=0 if kind == "episode" else None,
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )
    return Hit(record=record, dense=dense, lexical=0.0, words=6)


def order(question: str, *hits: Hit) -> list[str]:
    return [match.record.id for match in rank(question, hits, now=None)]


def test_of_equal_turns_the_newest_stands_where_the_best_would() -> None:
    hits = (
        said("I live in Paris.", 1, 0.9),
        said("i  live in PARIS", 3, 0.4),
        said("I live in Ｐaris!", 2, 0.3),
        said("The weather is fine.", 4, 0.6),
    )

    assert ["i  live in PARIS 3", "The weather is fine. 4"] == order("anything", *hits)


def test_a_question_does_not_stand_for_a_statement_of_the_same_words() -> None:
    assert ["I live in Paris. 1"] == order(
        "anything", said("I live in Paris.", 1), said("I live in Paris?", 2)
    )


def test_equal_turns_of_two_speakers_are_both_there() -> None:
    assert 2 == len(order("anything", said("Yes.", 1), said("Yes.", 1, 0.4, role="assistant")))


def test_equal_facts_are_both_there() -> None:
    hits = (said("Alice likes tea.", 1, kind="fact"), said("Alice likes tea.", 2, kind="fact"))

    assert 2 == len(order("anything", *hits))


@pytest.mark.parametrize("kind", ["episode", "fact"])
@pytest.mark.parametrize(
    ("question", "former", "latter"),
    [
        ("Where do I live?", "I live in Nice", "I live in Paris now"),
        ("我住在哪里？", "我住在尼斯", "我现在住在巴黎"),
    ],
)
def test_the_newer_of_two_statements_on_one_matter_stands_first(
    question: str, former: str, latter: str, kind: str
) -> None:
    hits = (said(former, 1, 0.60, kind=kind), said(latter, 2, 0.55, kind=kind))

    matches = rank(question, hits, now=None)

    assert latter == matches[0].record.text
    assert matches[0].score > matches[1].score
    assert matches[0].score_details["newer"] > 0


@pytest.mark.parametrize(
    ("question", "latter"),
    [
        ("Where did I live at first, in the past?", "I live in Paris now"),  # asks for the past
        ("Where do I live?", "I like the trains of Paris now"),  # is about something else
        ("Where do I live?", "Do I live in Paris now?"),  # asks
    ],
)
def test_the_better_statement_stands_first_otherwise(question: str, latter: str) -> None:
    assert (
        "I live in Nice 1"
        == order(question, said("I live in Nice", 1, 0.60), said(latter, 2, 0.59))[0]
    )


def test_a_turn_that_only_asks_stands_behind_what_answers_it() -> None:
    hits = (said("What is my dog called?", 2, 0.99), said("Rex is my dog.", 1, 0.4))

    assert "Rex is my dog. 1" == order("What is my dog called?", *hits)[0]
