"""Repeats and changed statements among candidates, by the order that `rank` gives them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.ports.stores import Hit
from commonplace.retrieval.ranking import rank
from commonplace.retrieval.repeats import session_losses
from commonplace.types import Record, Role, Scope

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


@pytest.mark.parametrize("kind", ["episode", "fact"])
@pytest.mark.parametrize(
    ("question", "former", "latter"),
    [
        ("Where did I live before?", "I live in Nice", "I live in Paris now"),
        ("Who was my previous boss?", "My boss is Ann", "My new boss is Ben"),
        ("我以前住在哪里？", "我住在尼斯", "我现在住在巴黎"),
    ],
)
def test_the_older_of_two_stands_first_where_somebody_asks_what_was_before(
    question: str, former: str, latter: str, kind: str
) -> None:
    hits = (said(former, 1, 0.55, kind=kind), said(latter, 2, 0.60, kind=kind))

    matches = rank(question, hits, now=None)

    assert former == matches[0].record.text
    assert matches[0].score > matches[1].score
    assert matches[0].score_details["newer"] > 0


@pytest.mark.parametrize(
    ("question", "former"),
    [
        ("Where did I live before the war?", "I live in Nice"),  # asks for a time
        ("Where did Ann live before?", "I live in Nice"),  # is not about the one who asks
        ("Where did I live before?", "I like the trains of Nice"),  # is about something else
    ],
)
def test_the_older_does_not_stand_first_otherwise(question: str, former: str) -> None:
    hits = (said(former, 1, 0.55), said("I live in Paris now", 2, 0.60))

    assert "I live in Paris now" == rank(question, hits, now=None)[0].record.text


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


@pytest.mark.parametrize(
    "question",
    [
        "List all the instruments that I play.",
        "Name every city that I saw.",
        "In which order did I visit the cities?",
        "Summarise what I said about my pets.",
        "Give me an overview of my projects.",
        "列出我学过的所有乐器。",
        "我去过哪些城市？",
        "我按什么顺序去了这些城市？",
        "总结一下我种了什么。",
    ],
)
def test_a_list_has_other_sessions_before_more_of_the_same_one(question: str) -> None:
    records = [said(text, day).record for text, day in (("a", 1), ("b", 1), ("c", 1), ("d", 2))]

    lost = session_losses(question, records, [0, 1, 2, 3], [2.0, 1.9, 1.8, 0.5])

    assert lost == pytest.approx({0: 0, 1: 0.2, 2: 0.4, 3: 0})
    assert session_losses(question, records, [0, 1], [2.0, 0.1]) == pytest.approx({0: 0, 1: 0.1})


@pytest.mark.parametrize(
    "question", ["What books has Anna read?", "Which old friends did he meet?", "How many times?"]
)
def test_a_question_in_the_plural_has_a_little_of_that(question: str) -> None:
    records = [said(text, 1).record for text in "ab"]

    lost = session_losses(question, records, [0, 1], [2.0, 1.9])

    assert lost == pytest.approx({0: 0, 1: 0.04})


@pytest.mark.parametrize(
    "question",
    [
        "Where is my list?",
        "What was the address of the hotel?",
        "What does Anna do?",
        "Which class did I take?",
        "In order to cook, what did I buy?",
        "我的钢琴在哪里？",
    ],
)
def test_a_question_for_one_thing_loses_nothing(question: str) -> None:
    records = [said(text, 1).record for text in "ab"]

    assert {} == session_losses(question, records, [0, 1], [2.0, 1.9])


def test_facts_lose_nothing_to_each_other() -> None:
    records = [said(text, 1, kind="fact").record for text in "ab"]

    assert {} == session_losses("List all my pets.", records, [0, 1], [2.0, 1.9])


def test_a_list_is_ranked_by_what_is_left() -> None:
    hits = (said("My cat sleeps.", 1, 0.60), said("My cat eats.", 1, 0.59), said("Fish!", 2, 0.57))
    hits = (hits[0], replace(hits[1], record=replace(hits[1].record, position=1)), hits[2])
    hits = tuple(replace(hit, words=40) for hit in hits)

    plain = rank("Which pet sleeps?", hits, now=None)
    matches = rank("List all my pets.", hits, now=None)

    assert ["My cat sleeps. 1", "My cat eats. 1", "Fish! 2"] == [one.record.id for one in plain]
    assert ["My cat sleeps. 1", "Fish! 2", "My cat eats. 1"] == [one.record.id for one in matches]
    assert matches[2].score_details["same_session"] < 0
    assert sum(matches[2].score_details.values()) == pytest.approx(matches[2].score)
