"""Co-occurrence boost: what stands beside the best candidates gains, within its share."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from commonplace.model import Record, Scope
from commonplace.ports.stores import Hit
from commonplace.retrieval.ranking import cooccurrence_boost

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hit(n: int, text: str) -> Hit:
    record = Record(
        id=f"{n:03}", text=text, scope=Scope(user_id="u"), created_at=NOW, updated_at=NOW,
        occurred_at=NOW,
    )  # fmt: skip
    return Hit(record=record, dense=0.0, lexical=0.0, words=5)


@pytest.mark.parametrize(
    ("best", "friend", "other"),
    [
        ("my cello lesson is today", "the cello arrived", "the parcel arrived"),
        ("我今天上大提琴课", "大提琴送到了", "包裹送到了"),
    ],
)
def test_sharing_a_rare_word_with_the_best_is_a_gain(best: str, friend: str, other: str) -> None:
    hits = [hit(0, best), hit(1, friend), hit(2, other)]

    gains = cooccurrence_boost(hits, [1.0, 0.3, 0.3], 0.2)

    assert gains[1] > gains[2]


def test_what_everybody_says_or_only_one_is_no_gain() -> None:
    hits = [hit(n, f"hello alone{n}") for n in range(9)]

    assert len(set(cooccurrence_boost(hits, [0.5] * 9, 0.2))) == 1


def test_nothing_gains_without_a_share_or_a_score() -> None:
    hits = [hit(0, "cello lesson"), hit(1, "cello lesson")]

    assert [0.0, 0.0] == cooccurrence_boost(hits, [1.0, 0.5], 0.0)
    assert [0.0, 0.0] == cooccurrence_boost(hits, [0.0, 0.0], 0.2)
    assert [] == cooccurrence_boost([], [], 0.2)


@given(some.lists(some.tuples(some.text(max_size=30), some.floats(0, 1)), min_size=1, max_size=40))
def test_no_gain_exceeds_its_share(given: list[tuple[str, float]]) -> None:
    hits = [hit(n, text) for n, (text, _) in enumerate(given)]
    total = [score for _, score in given]

    for gain, score in zip(cooccurrence_boost(hits, total, 0.2), total, strict=True):
        assert 0.0 <= gain <= 0.2 * score + 1e-12
