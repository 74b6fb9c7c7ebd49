"""Repeats among candidates: which count once, and which of them stands for all."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.retrieval.features import distinct
from commonplace.types import Kind, Record, Role, Scope

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def said(
    text: str,
    day: int = 1,
    *,
    role: Role | None = "user",
    name: str | None = None,
    kind: Kind = "episode",
    position: int | None = 0,
) -> Record:
    at = NOW + timedelta(days=day)
    return Record(
        id=f"{day} {position} {role} {text}",
        text=text,
        scope=Scope(user_id="alice", session_id=str(day)),
        kind=kind,
        role=role,
        name=name,
        position=position,
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )


def test_of_equal_turns_the_newest_stands_where_the_best_would() -> None:
    records = [
        said("The weather is fine.", 4),
        said("I live in Paris.", 1),
        said("i  live in PARIS", 3),
        said("I live in Ｐaris!", 2),
    ]

    assert [(1, 2), (0, 0)] == distinct(records, [1, 0, 2, 3])
    assert [(0, 0), (3, 2)] == distinct(records, [0, 3, 1, 2])


@pytest.mark.parametrize("end", ["", ".", "!", " …", "。", "！", "~", "  . "])
def test_final_signs_do_not_tell_turns_apart(end: str) -> None:
    assert [(0, 1)] == distinct([said("So be it", 1), said(f"so  be it{end}", 2)], [0, 1])


def test_a_question_does_not_stand_for_a_statement_of_the_same_words() -> None:
    records = [said("I live in Paris.", 1), said("I live in Paris?", 2), said("I live in Paris", 0)]

    assert [(1, 0)] == distinct(records, [1, 0, 2])
    assert [(0, 1)] == distinct([said("你在巴黎？", 1), said("你在巴黎？", 2)], [0, 1])


def test_of_turns_of_one_moment_the_later_place_stands_for_all() -> None:
    assert [(0, 1)] == distinct([said("So.", position=3), said("So!", position=4)], [0, 1])


@pytest.mark.parametrize(
    "other",
    [
        said("Yes.", 1, role="assistant"),
        said("Yes.", 1, name="Bob"),
        said("Yes, of course.", 1),
        said("Yes.", 1, role=None),
        said("Yes.", 1, kind="fact", position=None),
    ],
    ids=["role", "name", "text", "no role", "fact"],
)
def test_others_are_groups_of_their_own(other: Record) -> None:
    assert [(0, 0), (1, 1)] == distinct([said("Yes.", 1), other], [0, 1])


@pytest.mark.parametrize("kind", ["fact", "procedure"])
def test_equal_records_that_are_no_turns_are_all_there(kind: Kind) -> None:
    records = [said("Alice likes tea.", day, kind=kind, role=None) for day in (1, 2)]

    assert [(1, 1), (0, 0)] == distinct(records, [1, 0])


@pytest.mark.parametrize("length", [10, 5_000])
def test_long_texts_are_compared_as_short_ones(length: int) -> None:
    records = [said("tea " * length, 1), said("TEA " * length, 2), said("tee " * length, 3)]

    assert [(0, 1), (2, 2)] == distinct(records, [0, 1, 2])


@given(st.randoms(use_true_random=False), st.integers(0, 30))
def test_every_record_is_in_one_group_by_its_best(chance: random.Random, number: int) -> None:
    texts = ["So.", "so", "So?", "Well."]
    records = [
        replace(said(chance.choice(texts), chance.randint(1, 4)), id=str(place), kind=kind)
        for place in range(number)
        for kind in [chance.choice(("episode", "fact"))]
    ]
    order = chance.sample(range(number), number)

    groups = distinct(records, order)

    places = [order.index(best) for best, _ in groups]
    assert places == sorted(places)
    turns = {one.text.rstrip(".?").lower() for one in records if one.kind == "episode"}
    assert len(groups) == len(turns) + sum(one.kind == "fact" for one in records)
    for best, standing in groups:
        first, shown = records[best], records[standing]
        assert first.text.rstrip(".?").lower() == shown.text.rstrip(".?").lower()
        assert shown.occurred_at >= first.occurred_at or not shown.text.endswith("?")
        assert first.kind == "episode" or best == standing
