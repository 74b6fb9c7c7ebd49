"""Dates in questions, and how well a moment fits them."""

import time
from datetime import UTC, datetime

import pytest

from commonplace.retrieval.dates import asked_times, time_fit

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Bob do in May 2023?", [((5,), 2023, None)]),
        ("Who came on 5 March?", [((3,), None, 5)]),
        ("Who came on May 5th, 2024?", [((5,), 2024, 5)]),
        ("What happened last summer?", [((6, 7, 8), 2025, None)]),
        ("What happened in the winter of 2024?", [((12, 1, 2), 2024, None)]),
        ("From January to Sept. 2020?", [((1,), None, None), ((9,), 2020, None)]),
        ("May I march on?", [((5,), None, None)]),
        ("may I march on?", []),
        ("5月1号做了什么？", [((5,), None, 1)]),
        ("2023年十二月二十五日发生了什么？", [((12,), 2023, 25)]),
        ("What did I do on 2026-05-14?", [((5,), 2026, 14)]),
        ("What did I do on 2026/5/14?", [((5,), 2026, 14)]),
        ("2026/5/14做了什么？", [((5,), 2026, 14)]),
        ("2026年5月14日做了什么？", [((5,), 2026, 14)]),
        ("2026年05月04日做了什么？", [((5,), 2026, 4)]),
        ("From 2025-12-31 to 2026-01-02?", [((12,), 2025, 31), ((1,), 2026, 2)]),
        ("Who came on 5/14/2026?", []),
        ("Who came on 14-5-2026?", []),
        ("Is 2026-05-14-3 the order's number?", []),
        ("What happened on 2026-13-14?", []),
        ("去年五月", [((5,), 2025, None)]),
        ("去年夏天去了哪里？", [((6, 7, 8), 2025, None)]),
        ("三个月以前", []),
        ("Where does Bob live?", []),
    ],
)
def test_months_days_and_seasons_are_read(question, expected) -> None:
    found = [(one.months, one.year, one.day) for one in asked_times(question, NOW)]

    assert expected == found


@pytest.mark.parametrize(
    ("question", "day", "fit"),
    [
        ("in May 2023", (2023, 5, 31), 1.0),
        ("in May 2023", (2023, 6, 10), 0.5),
        ("in May 2023", (2023, 6, 11), 0.0),
        ("in May 2023", (2024, 5, 5), 0.0),
        ("in May 2023", (2023, 4, 30), 0.0),
        ("in December 2023", (2024, 1, 3), 0.5),
        ("in December", (2024, 1, 3), 0.5),
        ("on 5 March", (2021, 3, 8), 0.7),
        ("on 31 December", (2021, 1, 2), 0.8),
        ("on 30 February", (2021, 2, 28), 0.0),
        ("winter of 2024", (2025, 2, 1), 1.0),
        ("去年夏天", (2025, 7, 1), 1.0),
        ("去年夏天", (2024, 7, 1), 0.0),
    ],
)
def test_a_moment_fits(question, day, fit) -> None:
    asked = asked_times(question, NOW)

    assert pytest.approx(fit) == time_fit(asked, datetime(*day, tzinfo=UTC))


def test_nothing_asked_is_no_fit() -> None:
    assert time_fit([], NOW) == 0.0


def test_a_question_of_blanks_is_read_in_time():
    started = time.process_time()
    assert asked_times(" " * 32 * 1024 + "x", datetime.now(UTC)) == []
    assert time.process_time() - started < 0.5
