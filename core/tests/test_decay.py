"""Decay never prefers the staler or the less recalled, and stays inside its bounds."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from commonplace.errors import InvalidRecordError
from commonplace.retrieval.decay import (
    MAX_FACTOR,
    MIN_FACTOR,
    RetentionLimits,
    decayed,
    over_limits,
    strength,
)
from commonplace.types import Match, Record, Scope

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAYS = some.floats(0, 4000)
HALF_LIFE = some.floats(0.1, 1000)
SHARE = some.floats(0, 1)


def remembered(days: float = 0.0, *, name: str = "a", **given: object) -> Record:
    at = NOW - timedelta(days=days)
    return replace(
        Record(
            id=name, text=name, scope=Scope(user_id="u"), created_at=at, updated_at=at,
            occurred_at=at,
        ),
        **given,
    )  # fmt: skip


def ago(*days: float) -> list[datetime]:
    return [NOW - timedelta(days=one) for one in days]


@given(DAYS, some.lists(DAYS, max_size=8), DAYS, HALF_LIFE, SHARE)
def test_one_more_recall_never_weakens(
    written: float, recalls: list[float], more: float, half_life: float, importance: float
) -> None:
    record = remembered(written, importance=importance)

    before = strength(record, ago(*recalls), NOW, half_life)
    after = strength(record, ago(*recalls, more), NOW, half_life)
    assert 0 <= before <= after <= 1


@given(DAYS, DAYS, some.lists(DAYS, max_size=8), HALF_LIFE)
def test_fresher_is_never_weaker(
    one: float, other: float, recalls: list[float], half_life: float
) -> None:
    fresh, stale = sorted((one, other))

    assert strength(remembered(fresh), ago(*recalls), NOW, half_life) >= strength(
        remembered(stale), ago(*recalls), NOW, half_life
    )
    assert strength(remembered(9), ago(*recalls, fresh), NOW, half_life) >= strength(
        remembered(9), ago(*recalls, stale), NOW, half_life
    )


@given(DAYS, SHARE, SHARE, HALF_LIFE)
def test_more_important_is_never_weaker(
    days: float, one: float, other: float, half_life: float
) -> None:
    low, high = sorted((one, other))

    assert strength(remembered(days, importance=high), [], NOW, half_life) >= strength(
        remembered(days, importance=low), [], NOW, half_life
    )


def test_a_touch_of_one_half_life_counts_half() -> None:
    assert 0.5 == pytest.approx(strength(remembered(30), [], NOW, 30))
    assert 0.75 == pytest.approx(strength(remembered(30), ago(30), NOW, 30))
    assert 1.0 == strength(remembered(0), [], NOW, 30)


@given(
    some.lists(some.tuples(DAYS, SHARE, some.booleans()), min_size=1, max_size=9, unique=True),
    HALF_LIFE,
)
def test_a_score_changes_inside_its_bounds_and_none_is_lost(
    given: list[tuple[float, float, bool]], half_life: float
) -> None:
    matches = [
        Match(
            record=remembered(days, name=str(n), pinned=pinned),
            score=score,
            score_details={"dense": score},
        )
        for n, (days, score, pinned) in enumerate(given)
    ]
    found = decayed(matches, {}, NOW, half_life)
    former = {match.record.id: match.score for match in matches}

    assert {match.record.id for match in found} == former.keys()
    for match in found:
        held = former[match.record.id]
        odds = match.score * (1 - held)
        assert odds >= MIN_FACTOR * held * (1 - match.score) - 1e-9
        assert odds <= MAX_FACTOR * held * (1 - match.score) + 1e-9
        assert 0 <= match.score <= 1
        assert not match.record.pinned or match.score >= held - 1e-9
        factor = math.exp(match.score_details["decay"])
        assert odds == pytest.approx(factor * held * (1 - match.score))


def test_between_equal_scores_the_fresher_comes_first() -> None:
    matches = [Match(record=remembered(days, name=name), score=0.5) for days, name in
               ((90, "a"), (1, "b"), (10, "c"))]  # fmt: skip

    assert ["b", "c", "a"] == [match.record.id for match in decayed(matches, {}, NOW, 30)]
    recalled = {"a": ago(0)}
    assert "a" == decayed(matches, recalled, NOW, 30)[0].record.id


def test_what_exceeds_the_limits_goes_weakest_first_and_never_what_is_pinned() -> None:
    records = [remembered(days, name=f"{days}") for days in (1, 20, 300, 40)]
    records.append(remembered(900, name="pinned", pinned=True))
    recalls = {"300": ago(2)}

    def chosen(**limits: object) -> list[str]:
        found = over_limits(records, recalls, RetentionLimits(**limits), NOW, 30)  # type: ignore[arg-type]
        return [record.id for record in found]

    with pytest.raises(InvalidRecordError):
        chosen()
    assert ["40", "20"] == chosen(keep=3)
    assert ["40", "20", "300", "1"] == chosen(keep=0)
    assert ["40", "300"] == chosen(older_than=timedelta(days=30))
    assert ["40"] == chosen(older_than=timedelta(days=30), unused_for=timedelta(days=9))
