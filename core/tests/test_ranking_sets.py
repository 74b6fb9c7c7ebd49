"""Memories that the ranking is trained and judged on: what they are told, and what answers."""

import importlib
from datetime import date
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TODAY = date(2026, 7, 9)  # a Thursday


def benchmark(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


@pytest.fixture
def sets(monkeypatch):
    return benchmark("ranking_sets", monkeypatch)


@pytest.fixture
def cases(sets):
    return sets.apart(3)


def ids(case, monkeypatch):
    record_id = benchmark("evidence", monkeypatch).record_id
    return [record_id(one.scope, each) for one in case.sessions for each in one.contents]


def test_every_answer_is_told_once_and_before_the_question(cases, monkeypatch):
    for case in cases:
        told = ids(case, monkeypatch)
        assert len(told) == len(set(told))
        times = [each.at for one in case.sessions for each in one.contents]
        for asked in case.questions:
            assert asked.gold <= set(told)
            assert max(times) <= asked.asked_at
            assert bool(asked.gold) == (asked.expects == "answer")
            assert asked.gold == frozenset().union(*asked.things) or not asked.things


def test_each_memory_has_a_user_of_its_own(cases):
    users = [{one.scope.user_id for one in case.sessions} for case in cases]

    assert all(len(each) == 1 for each in users)
    assert len(set().union(*users)) == len(cases)


def test_a_seed_gives_the_same_memories(sets, cases):
    assert sets.apart(3) == cases
    assert sets.apart(4) != cases


def test_a_pair_asks_the_same(cases):
    pairs = {}
    for case in cases:
        pairs.setdefault(case.pair, []).append([one.text for one in case.questions])
    del pairs[""]

    assert all(len(each) > 1 for each in pairs.values())
    assert all(each[0] == other for each in pairs.values() for other in each)


@pytest.mark.parametrize(
    ("relative", "first", "last"),
    [
        (["", 1, 1], "2026-07-08", "2026-07-08"),
        (["", 0, 2], "2026-07-07", "2026-07-09"),
        (["", 0, 0, "this_week"], "2026-07-06", "2026-07-09"),
        (["", 0, 0, "last_week"], "2026-06-29", "2026-07-05"),
        (["", 0, 0, "last_weekend"], "2026-07-04", "2026-07-05"),
        (["", 0, 0, "last_month"], "2026-06-01", "2026-06-30"),
        (["", 0, 0, "last_year"], "2025-01-01", "2025-12-31"),
        (["", 0, 0, "thursday"], "2026-07-02", "2026-07-02"),
        (["", 0, 0, "wednesday"], "2026-07-08", "2026-07-08"),
    ],
)
def test_relative_dates_mean_days(relative, first, last, monkeypatch):
    days = benchmark("ranking_days", monkeypatch).days

    assert days(relative, TODAY) == (date.fromisoformat(first), date.fromisoformat(last))
