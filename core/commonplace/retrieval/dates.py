"""Dates in questions, in English and Chinese, and how well a moment fits them.

People ask for the month in which something happened, and tell what happened in it then or in the
first days of the next one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_NUMBERS = {
    **{name: number for number, name in enumerate(_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
_NAMES = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_SEASONS = {
    "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11),
    "winter": (12, 1, 2), "春": (3, 4, 5), "夏": (6, 7, 8), "秋": (9, 10, 11), "冬": (12, 1, 2),
}  # fmt: skip
_YEARS_AGO = {"last": 1, "this": 0, "前年": 2, "去年": 1, "今年": 0}
_DIGITS = {one: number for number, one in enumerate("〇一二三四五六七八九十")}
_DAYS = 10  # around a day that is asked for; and after a month, in which people still tell of it

_ENGLISH = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{_NAMES})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?(?!\d))?(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)
_ENGLISH_SEASON = re.compile(
    r"\b(?:(?P<ago>last|this)\s+)?(?P<season>spring|summer|autumn|fall|winter)\b"
    r"(?:\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)
# Years first alone: in "5/14/2026" and "5/6/2026" the order of day and month is anyone's guess.
_ISO = re.compile(
    r"(?<![\d/-])(?P<year>(?:19|20)\d\d)(?P<sign>[-/])(?P<month>1[0-2]|0?[1-9])(?P=sign)"
    r"(?P<day>3[01]|[12]\d|0?[1-9])(?![/-]?\d)"
)
_CHINESE = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d)\s*年|(?P<ago>前年|去年|今年))?\s{0,3}(?:的)?"
    r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s*月份?"
    r"(?:\s*(?P<day>[12]\d|3[01]|0?[1-9]|二?十[一二三四五六七八九]?|三十一?|[一二三四五六七八九])\s*[日号])?"
)
_CHINESE_SEASON = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d)\s*年|(?P<ago>前年|去年|今年))(?:的)?(?P<season>[春夏秋冬])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTime:
    """A time that a question names: months, of one year if it is named, perhaps one day of them."""

    months: tuple[int, ...]
    year: int | None = None
    day: int | None = None


def asked_times(question: str, now: datetime) -> list[AskedTime]:
    """Read the months, days and seasons that a question names; empty list if there are none.

    Args:
        now: when it is asked, for "last summer".
    """
    found = []
    for one in _ENGLISH.finditer(question):
        day, year = one["before"] or one["after"], one["year"]
        if one["month"] in ("may", "march", "mar") and not day and not year:
            continue  # a verb
        found.append(_asked(_NUMBERS[one["month"].lower()], year, day))
    for one in _ISO.finditer(question):
        found.append(_asked(int(one["month"]), one["year"], one["day"]))
    for one in _CHINESE.finditer(question):
        year = one["year"] or (str(now.year - _YEARS_AGO[one["ago"]]) if one["ago"] else None)
        found.append(_asked(_number(one["month"]), year, one["day"]))
    for one in (*_ENGLISH_SEASON.finditer(question), *_CHINESE_SEASON.finditer(question)):
        ago = one["ago"].lower() if one["ago"] else None
        if one["year"] or ago:
            year = int(one["year"]) if one["year"] else now.year - _YEARS_AGO[str(ago)]
            found.append(AskedTime(months=_SEASONS[one["season"].lower()], year=year))
    return found


def time_fit(asked: Sequence[AskedTime], at: datetime) -> float:
    """Compute how well a moment fits one of these times, in 0..1.

    In a month that is asked for 1; in the first ten days of the next one a half. Around a day it
    falls by a tenth for each day between.
    """
    return max((_fit(one, at.date()) for one in asked), default=0.0)


def _fit(asked: AskedTime, at: date) -> float:
    years = (asked.year,) if asked.year else (at.year - 1, at.year, at.year + 1)
    if asked.day is not None:
        days = (_days_between(at, year, asked.months[0], asked.day) for year in years)
        return max(0.0, 1 - min(days) / _DAYS)
    best = 0.0
    for year in years:
        for month in asked.months:
            # The winter of a year ends in the next one.
            of = year + 1 if asked.months[0] == 12 and month < 12 else year
            if (at.year, at.month) == (of, month):
                return 1.0
            if (at.year, at.month) == _next(of, month) and at.day <= _DAYS:
                best = 0.5
    return best


def _next(year: int, month: int) -> tuple[int, int]:
    return (year + 1, 1) if month == 12 else (year, month + 1)


def _days_between(at: date, year: int, month: int, day: int) -> int:
    try:
        return abs((at - date(year, month, day)).days)
    except ValueError:  # there is no such day
        return _DAYS


def _asked(month: int, year: str | None, day: str | None) -> AskedTime:
    return AskedTime(
        months=(month,), year=int(year) if year else None, day=_number(day) if day else None
    )


def _number(text: str) -> int:
    """Read a number below 100 in digits or Chinese characters."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _DIGITS[text]
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)
