"""Time expressions of questions, as intervals, in seven languages.

People ask for the day, week, month, season or year in which something happened, and tell what
happened in it then or in the days after. A text is split into words, each word becomes one sign by
the tables in `time_words`, and patterns are looked for in the signs, so that the languages share
them. All of this takes time in proportion to the text.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from ..patterns import lazy_pattern
from .time_disambiguation import is_ahead, is_counted, is_offset, is_time
from .time_words import (
    ARABIC,
    EASTERN,
    ENGLISH,
    FOLDED,
    FRENCH,
    FRENCH_CUES,
    GERMAN,
    GERMAN_CUES,
    NUMERALS,
    SPANISH,
    TIME_WORD,
    Words,
    eastern_number,
)

Grain = Literal["day", "week", "month", "season", "year"]
Span = tuple[int, int]
_MAX_CHARACTERS = 8 * 1024
_MOST_WORDS = 1_000
_MOST = 50  # times of one kind or language that are read from a text
_DAYS = 10  # around a day that is asked for; and after a month, in which people still tell of it


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time that a question names, from its first to its last day."""

    start: date
    end: date
    grain: Grain


def asked_times(question: str, at: datetime) -> list[AskedTime]:
    """Read the times that a question names; empty list if there are none.

    A date without a year is the nearest one that is not after the moment of the question.

    Args:
        at: when it is asked, in the zone whose days are meant.
    """
    return list(dict.fromkeys(found for _, found in resolved_days(question, at)))


def resolved_days(text: str, at: datetime) -> Sequence[tuple[Span, AskedTime]]:
    """Read the times that a question names, each with its place, in their order."""
    return _resolved_days(text[:_MAX_CHARACTERS], at.date())


@lru_cache(maxsize=16)
def _resolved_days(text: str, today: date) -> Sequence[tuple[Span, AskedTime]]:
    """Resolve as `resolved_days`; cached, as one search reads its question more than once."""
    found = [*_numeric(text, today)] if _DIGIT.search(text) else []
    for span, rule, values in _readings(text):
        read = _read(rule, values, today)
        if read is not None:
            found.append((span, read))
    return _apart(found)


def counted_days(text: str, at: datetime) -> list[tuple[Span, AskedTime]]:
    """Read the times that a statement counts from its moment, each with its place, in their order.

    Such as "tomorrow", "two weeks ago" and 下周三. Left out are dates and weekdays by themselves,
    what is counted from another moment ("the next week") or from one of two ("next Friday" on a
    Monday), and "in two days" where it may tell how long something took.

    Args:
        at: when it is said, in the zone whose days are meant.
    """
    today, found = at.date(), []
    for span, rule, values in _readings(text[:_MAX_CHARACTERS]):
        steps = values.one("LTXr")
        if (rule in _OPEN and steps is None) or rule not in _COUNTED or "Y" in values:
            continue
        is_told = is_ahead if rule is _read_ahead else is_counted
        if is_offset(text, *span) or (rule is not _read_day and not is_told(text, *span)):
            continue
        read = _read(rule, values, today)
        if read is None:
            continue
        week = _unit("w", steps, today) if rule is _read_weekday else read
        if week.start <= read.start <= week.end:
            found.append((span, read))
    return _apart(found)


def _read(rule: "Rule", values: "_Values", today: date) -> AskedTime | None:
    try:
        return rule(values, today)
    except (ValueError, OverflowError):  # there is no such day
        return None


def _apart(found: list[tuple[Span, AskedTime]]) -> list[tuple[Span, AskedTime]]:
    """Put times in the order of their places, and keep the longest of those that overlap."""
    found.sort(key=lambda one: (one[0][0], -one[0][1]))
    kept: list[tuple[Span, AskedTime]] = []
    for span, read in found:
        if not kept or span[0] >= kept[-1][0][1]:
            kept.append((span, read))
    return kept


def without_time_words(question: str) -> str:
    """Leave out what a question says about time: times, and adverbs such as "before" and "now".

    "Before" stays where it begins something ("before bed"), and "first" in "first language".
    """
    spans = [span for span, _ in resolved_days(question, datetime(2000, 1, 1, tzinfo=UTC))]
    spans += [one.span() for one in TIME_WORD.finditer(question)]
    rest, end = [], 0
    for first, last in sorted(spans):
        if first >= end:
            rest.append(question[end:first].rstrip())
            end = last
    if not spans:
        return question
    return " ".join(part for part in (*rest, question[end:].strip()) if part)


def time_fit(asked: Sequence[AskedTime], moment: datetime) -> float:
    """Compute how well a moment fits one of these times, in 0..1.

    Within it 1. Around a day or a week it falls by a tenth for each day between; in the ten days
    after a month or a season it is a half.
    """
    return max((_fit(one, moment.date()) for one in asked), default=0.0)


def names_time(text: str, said: datetime, asked: Sequence[AskedTime]) -> bool:
    """Tell whether a statement names a time within one of these.

    A date, a month or a season without a year may be the one before it was said or the one after.
    Weekdays and days of a month alone are left out, as they may be either, too.
    """
    text, today = text[:_MAX_CHARACTERS], said.date()
    years = {int(one) for one in _YEAR.findall(text)}
    if any(one.grain == "year" and one.start.year in years for one in asked):
        return True
    later = today.replace(year=min(today.year + 1, date.max.year), day=min(today.day, 28))
    told = []
    for _, rule, values in _readings(text):
        if rule in _YEARLY:
            told += [_read(rule, values, day) for day in (today, later)]
        elif rule not in _OPEN or values.one("LTXrY") is not None:
            told.append(_read(rule, values, today))
    if years:
        told += [AskedTime(day, day, "day") for _, day in _full_dates(text)]
    return any(
        read is not None and one.start <= read.start and read.end <= one.end
        for one in asked
        for read in told
    )


def _fit(asked: AskedTime, day: date) -> float:
    after = (day - asked.end).days
    away = max(after, (asked.start - day).days, 0)
    if away == 0:
        return 1.0
    if asked.grain in ("day", "week"):
        return max(0.0, 1 - away / _DAYS)
    return 0.5 if asked.grain != "year" and 0 < after <= _DAYS else 0.0


# -- dates in digits ---------------------------------------------------------------------------

# Years first, or the day before the month with dots. In "5/6/2026" the order is anyone's guess,
# except in a language that has one.
_ISO = lazy_pattern(
    r"(?<![\d/.-])(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>1[0-2]|0?[1-9])(?P=sign)"
    r"(?P<day>3[01]|[12]\d|0?[1-9])(?![/.-]?\d)"
)
_DOTTED = lazy_pattern(
    r"(?<![\d.])(?P<day>3[01]|[12]\d|0?[1-9])\.(?P<month>1[0-2]|0?[1-9])\."
    r"(?P<year>(?:19|20)\d\d)(?!\.?\d)"
)
_SLASHED = lazy_pattern(
    r"(?<![\d/-])(?P<first>\d\d?)(?P<sign>[/-])(?P<second>\d\d?)(?P=sign)"
    r"(?P<year>(?:19|20)\d\d)(?![/-]?\d)"
)
_DAY_FIRST = lazy_pattern(
    r"[¿¡]|\b(?:el|del|qué|que|en|le|du|quoi|jour|vom|beim|der|ich|wir|wurde|habe)\b", re.IGNORECASE
)


# A day of the month alone: "on the 15th", "am 15.", "el día 15", "le 15", 15号, 15日に.
_DAY_OF_MONTH = lazy_pattern(
    r"\b(?:on\sthe\s|am\s|el\s(?:d[ií]a\s)?|le\s)(?P<west>3[01]|[12]\d|[1-9])"
    r"(?:st|nd|rd|th|er)?(?=\s?(?:$|[?!,;]|\.(?:$|[\s?])))"
    r"|(?<![\d第月年/.-])(?P<east>3[01]|[12]\d|[1-9])[号號日](?=$|[我你他她咱那早晚上下に、はの，？?。])",
    re.IGNORECASE,
)


def _numeric(text: str, today: date) -> Iterator[tuple[Span, AskedTime]]:
    for one in islice(_DAY_OF_MONTH.finditer(text), _MOST):
        number = int(one["west"] or one["east"])
        for first in (today.replace(day=1), _month(today.year, today.month - 1).start):
            if number <= monthrange(first.year, first.month)[1]:
                day = first.replace(day=number)
                if day <= today:
                    yield one.span("west" if one["west"] else "east"), _days(day)
                    break
    if _YEAR.search(text):
        yield from ((span, _days(day)) for span, day in _full_dates(text))


def _full_dates(text: str) -> Iterator[tuple[Span, date]]:
    for pattern in (_ISO, _DOTTED, _SLASHED):
        for one in islice(pattern.finditer(text), _MOST):
            parts = one.groupdict()
            if "first" in parts:
                one_way, other = int(parts["first"]), int(parts["second"])
                if max(one_way, other) <= 12 and one_way != other and not _DAY_FIRST.search(text):
                    continue
                is_day_first = one_way > 12 or other <= 12
                days, month = (one_way, other) if is_day_first else (other, one_way)
                parts |= {"month": str(month), "day": str(days)}
            try:
                day = date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
            except ValueError:
                continue
            yield one.span(), day


# -- intervals ---------------------------------------------------------------------------------


def _days(start: date, end: date | None = None, grain: Grain = "day") -> AskedTime:
    return AskedTime(start, end or start, grain)


def _month(year: int, month: int, part: int | None = None) -> AskedTime:
    """Make a month, or a third of it; months above 12 and below 1 are of the years around."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    last = monthrange(year, month)[1]
    if part is None:
        return AskedTime(date(year, month, 1), date(year, month, last), "month")
    first = 1 + 10 * part
    return AskedTime(
        date(year, month, first), date(year, month, last if part == 2 else first + 9), "week"
    )


def _season(year: int, first: int) -> AskedTime:
    return AskedTime(_month(year, first).start, _month(year, first + 2).end, "season")


def _unit(unit: str, steps: int, today: date, part: int | None = None) -> AskedTime:
    """Make the week, weekend, month or year that is some steps away from that of today."""
    monday = today - timedelta(days=today.weekday())
    if unit == "w":
        first = monday + timedelta(weeks=steps)
        return _days(first, first + timedelta(days=6), "week")
    if unit == "k":
        first = monday + timedelta(weeks=steps, days=5)
        return _days(first, first + timedelta(days=1), "week")
    if unit in "nc":
        return _month(today.year, today.month + steps, part)
    year = today.year + steps
    if part is not None:
        return AskedTime(_month(year, 4 * part + 1).start, _month(year, 4 * part + 4).end, "season")
    return AskedTime(date(year, 1, 1), date(year, 12, 31), "year")


def _away(unit: str, number: int, today: date) -> AskedTime:
    """Make the time that is a number of units away; who counts weeks is a few days off."""
    if unit in "dh":
        return _days(today + timedelta(days=number))
    if unit == "w":
        day, around = today + timedelta(weeks=number), timedelta(days=3)
        return _days(day - around, day + around, "week")
    return _unit(unit, number, today)


def _lasting(unit: str, number: int, today: date) -> AskedTime:
    """Make the last number of units, up to today."""
    if unit in "ncy":
        first = _month(today.year, today.month - number * (12 if unit == "y" else 1)).start
        day = min(today.day, monthrange(first.year, first.month)[1])
        return _days(first.replace(day=day), today, "month")
    days = number * (7 if unit in "wk" else 1)
    return _days(today - timedelta(days=days), today, "week" if unit in "wk" else "day")


def _weekday(weekday: int, steps: int | None, today: date) -> AskedTime:
    """Make the weekday before today, or the next one after it; that of this week at 0."""
    if steps == 0:
        return _days(today - timedelta(days=today.weekday() - weekday))
    if steps is None or steps < 0:
        return _days(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1))
    return _days(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _latest(today: date, make: Callable[[int], AskedTime]) -> AskedTime:
    """Make a time in the latest year in which it has begun."""
    read = make(today.year)
    return read if read.start <= today else make(today.year - 1)


# -- what patterns mean ------------------------------------------------------------------------


class _Values(dict[str, list[Any]]):
    """The values of an expression's signs, by sign, in their order."""

    def one(self, signs: str) -> Any:
        """Return the first value of these signs; None if there is none."""
        return next((self[sign][0] for sign in signs if sign in self), None)

    def unit(self, units: str = "dwnykch") -> str:
        """Return the first unit of an expression."""
        return next(sign for sign in self if sign in units)


Rule = Callable[[_Values, date], AskedTime | None]


def _year_of(values: _Values, today: date) -> int | None:
    if "Y" in values:
        return int(values["Y"][0])
    if "r" in values:
        return today.year + int(values["r"][0])
    steps = values.one("LTX") if "y" in values else None
    return None if steps is None else today.year + int(steps)


def _read_date(values: _Values, today: date) -> AskedTime | None:
    # In Chinese and Japanese the month is a number as well.
    month, day = values.one("Mm") or values["N"][0], values["N"][-1]
    year = _year_of(values, today)
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    if year is not None:
        return _days(date(year, month, day))
    return _latest(today, lambda year: _days(date(year, month, day)))


def _read_month(values: _Values, today: date) -> AskedTime | None:
    month, year, part = values.one("MmN"), _year_of(values, today), values.one("E")
    if not 1 <= month <= 12:
        return None
    steps = values.one("LTX")
    if year is None and steps is not None and steps >= 0:
        year = today.year + (steps > 0 and month <= today.month)
    if year is None:
        latest = today.replace(day=1) - timedelta(days=1) if steps else today
        return _latest(latest, lambda year: _month(year, month, part))
    return _month(year, month, part)


def _read_season(values: _Values, today: date) -> AskedTime | None:
    first, year, steps = values["S"][0], _year_of(values, today), values.one("LTX")
    if year is not None:
        return _season(year, first)
    nearest = _latest(today, lambda year: _season(year, first))
    if steps < 0 and nearest.end >= today:
        return _season(nearest.start.year - 1, first)
    if steps > 0 or (steps == 0 and nearest.end < today):
        return _season(nearest.start.year + 1, first)
    return nearest


def _read_day(values: _Values, today: date) -> AskedTime | None:
    steps = values.one("Dg")
    if "B" in values:
        steps -= 1
    elif "R" in values or "L" in values:  # "day after tomorrow", "pasado mañana"
        steps += 1
    elif "T" in values:  # "esta mañana"
        steps = 0
    return _days(today + timedelta(days=steps))


def _read_ago(values: _Values, today: date) -> AskedTime | None:
    if "H" in values:
        return _unit("n", -6, today)
    unit = values.unit()
    return _away(unit, -(values.one("N") or 1) * values[unit][0], today)


def _read_ahead(values: _Values, today: date) -> AskedTime | None:
    return _away(values.unit(), values.one("N") or 1, today)


def _read_part_of_day(values: _Values, today: date) -> AskedTime | None:
    return _days(today + timedelta(days=values.one("LT")))


def _read_past(values: _Values, today: date) -> AskedTime | None:
    if "k" in values:
        return _unit("k", -1, today)
    return _weekday(values["W"][0], None, today)


def _read_lasting(values: _Values, today: date) -> AskedTime | None:
    number = values.one("N") or 1
    if "T" in values:
        number -= 1
    return _lasting(values.unit(), number, today)


def _read_unit(values: _Values, today: date) -> AskedTime | None:
    steps = values.one("LTX")
    if "B" in values:
        steps -= 1
    return _unit(values.unit("wnykc"), steps or 0, today, values.one("E"))


def _read_weekday(values: _Values, today: date) -> AskedTime | None:
    return _weekday(values["W"][0], values.one("LTX"), today)


def _read_weekday_of_week(values: _Values, today: date) -> AskedTime | None:
    weekday = values.one("W")
    if weekday is None:  # the seventh has no number
        weekday = values["N"][-1] - 1 if "N" in values else 6
    if not 0 <= weekday <= 6:
        return None
    steps = values.one("LTX")
    if steps is None:
        return _weekday(weekday, None, today)
    return _days(_unit("w", steps, today).start + timedelta(days=weekday))


def _read_weekend(values: _Values, today: date) -> AskedTime | None:
    return _unit("k", 0 if today.weekday() >= 5 else -1, today)


def _read_year(values: _Values, today: date) -> AskedTime | None:
    year = _year_of(values, today)
    return None if year is None else AskedTime(date(year, 1, 1), date(year, 12, 31), "year")


# What comes once a year, if it does not tell which.
_YEARLY = {_read_date, _read_month, _read_season}
# What does not tell its year or its week by itself, and what else is counted from a moment.
_OPEN = {_read_date, _read_month, _read_season, _read_weekday, _read_weekday_of_week, _read_year}
_COUNTED = _OPEN | {_read_day, _read_ago, _read_ahead, _read_part_of_day, _read_unit}


# -- patterns ----------------------------------------------------------------------------------

_OF_YEAR = "(?:[,.]?F{0,2}(?:Y|[LTX]y|yq?[LTX]))"
_WESTERN: Sequence[tuple[str, Rule]] = (
    ("ZF?[WdwnykSMmgt]", lambda values, today: None),
    (rf"NO?[.]?F{{0,2}}[Mm][.]?{_OF_YEAR}?", _read_date),
    (rf"(?:EF?-?F{{0,2}})[LTX]?[Mm][.]?{_OF_YEAR}?", _read_month),
    (rf"[Mm][.]?{_OF_YEAR}", _read_month),
    ("[LTX][Mm]|[Mm]q?[LX]", _read_month),
    ("(?<=[IP])F?m|M", _read_month),
    (r"[LTX]S|Sq?[LTX]|S(?:F{0,2}(?:Y|[LTX]y|yq?[LTX]))", _read_season),
    ("BF?-?F?D|-?dBD|dRD|R-?D|Lg|Tg", _read_day),
    ("Dg|DD", _read_day),
    ("D?(?:V|jA)[NA][dwny]", _read_ago),
    ("VHy|HyG", _read_ago),
    ("[NA]F?[dwny]G", _read_ago),
    ("T?p[kW]", _read_past),
    ("(?<!F)Lt|(?<=F)tq?L|Tt", _read_part_of_day),
    ("IF?N[dwny]", _read_ahead),
    ("LNF?[dwnyk]|pN?F?[dwny]|NL[dwny]|LF?N[dwny]", _read_lasting),
    ("[wnyk]BL", _read_unit),
    ("WF{0,3}(?:[LTX]w|wq?[LTX])", _read_weekday_of_week),
    ("E-?F{0,2}(?:[LTX][wny]|[wny]q?[LTX])", _read_unit),
    ("[LTX][wnyk]|[wnyk]q?[LTX]", _read_unit),
    ("[LTX]W|Wq?[LTX]|W", _read_weekday),
    ("(?<=[IPF])k", _read_weekend),
    ("[IP]y?Y(?![-/.:]N)", _read_year),
)
_LANGUAGES: Mapping[str, tuple[Words, Sequence[tuple[str, Rule]]]] = {
    "en": (
        ENGLISH,
        ((r"(?<!I)[Mm][.]?F?NO?(?![:.]?N)(?:,?Y)?", _read_date), *_WESTERN, ("D", _read_day)),
    ),
    "de": (
        GERMAN,
        (
            *_WESTERN,
            ("IA[dwny]", _read_ahead),
            ("D|(?<!F)g", _read_day),
            ("(?<![-/.:N])Y(?![-/.:]?N)", _read_year),
        ),
    ),
    "es": (SPANISH, (*_WESTERN, ("IF?A[dwny]", _read_ahead), ("[Dg]", _read_day))),
    "ar": (
        ARABIC,
        (("V[dwny]", _read_ago), ("tL", _read_part_of_day), *_WESTERN, ("D", _read_day)),
    ),
    "fr": (FRENCH, (*_WESTERN, ("IA[dwny]", _read_ahead), ("D", _read_day))),
}
_EASTERN: Sequence[tuple[str, Rule]] = (
    (
        "ZN?(?:w[Nhd]|[wncydhkW])(?:F?(?:Nn(?:F?Nh)?|[SWk]|N[hd]))?",
        lambda values, today: None,
    ),
    ("(?:YyF?|rF?)?NnF?Nh", _read_date),
    ("N[dwcyh]间?G|HyG", _read_ago),
    ("N[dwcyh]R", _read_ahead),
    ("(?:YyF?|rF?)?NnE?", _read_month),
    ("(?:YyF?|rF?|[LTX])S", _read_season),
    ("[LTX]wF?W|(?:[LTX]|(?<![NZ]))w[Nhd]", _read_weekday_of_week),
    ("pF?N[dwcyh]|TN[dwcyh]", _read_lasting),
    ("[LTX]k", _read_unit),
    ("[LTX]cE?|[LTX]nE?|[LTX]w|[LTX]yE?", _read_unit),
    ("LW|TW|XW|W", _read_weekday),
    ("k", _read_weekend),
    ("Yy|r", _read_year),
    ("D", _read_day),
)


class _Patterns:
    """The patterns of a language as one, with what each means."""

    def __init__(self, rows: Sequence[tuple[str, Rule]], language: str = "") -> None:
        self._language = language
        self._rules = [rule for _, rule in rows]
        self._pattern = lazy_pattern(
            "(?![x.,:/O])(?:"
            + "|".join(f"(?P<r{number}>{row})" for number, (row, _) in enumerate(rows))
            + ")"
        )

    def read(
        self, text: str, words: Sequence[str], spans: Sequence[Span], entries: Words
    ) -> Iterator[tuple[Span, Rule, _Values]]:
        """Find the first expressions of a text, from left to right.

        Args:
            words: in their order, each with its place in `spans`.
            entries: sign and value of each distinct word.
        """
        signs = "".join([entries[word][0] for word in words])
        for one in islice(self._pattern.finditer(signs), _MOST):
            values = _Values()
            for word in words[one.start() : one.end()]:
                sign, value = entries[word]
                values.setdefault(sign, []).append(value)
            first, last = spans[one.start()][0], spans[one.end() - 1][1]
            if is_time(text, first, last, one.group(), self._language):
                yield (first, last), self._rules[int(str(one.lastgroup)[1:])], values


_WORD = lazy_pattern(
    r"[^\W\d_](?:(?<=[Aa])ujourd['’]hui|(?<=[Ww])eek-?end|(?<=[Ff])in de semana|(?<=[Ll])a mañana"
    r"|[^\W\d_]*)|\d+|[^\w\s'’]+"
)
_PATTERNS = {name: _Patterns(rows, name) for name, (_, rows) in _LANGUAGES.items()}
_EASTERN_PATTERNS = _Patterns(_EASTERN)
_WEEKENDS = frozenset(("weekend", "week-end", "fin de semana"))
_TRIGGERS = {
    name: _WEEKENDS.union(word for word, (sign, _) in words.items() if sign in "DgdwnykWMmSt")
    for name, (words, _) in _LANGUAGES.items()
}
_YEAR_TRIGGERS = {
    name: _TRIGGERS[name].union(word for word, (sign, _) in words.items() if sign in "IP")
    for name, (words, _) in _LANGUAGES.items()
}
_YEAR_TRIGGERS["de"] |= GERMAN_CUES
_YEAR = lazy_pattern(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_DIGIT = lazy_pattern(r"\d")
_IDEOGRAPH = lazy_pattern("[年月日周週星礼禮号號天初底春夏秋冬曜昨明今あきお]")
_EASTERN_WORD = lazy_pattern(
    "|".join(sorted(EASTERN, key=len, reverse=True)) + rf"|\d+|[{NUMERALS}]+|\S"
)


@lru_cache(maxsize=16)
def _readings(text: str) -> Sequence[tuple[Span, Rule, _Values]]:
    """Find the time expressions of a text in every language that it has words of.

    Cached, as one search resolves those of its question for more than one day.
    """
    found = [*_eastern_readings(text)] if _IDEOGRAPH.search(text) else []
    matches = list(islice(_WORD.finditer(text), _MOST_WORDS))
    told = [one.group() for one in matches]
    plain = {word: _plain(word) for word in told}
    distinct = set(plain.values())
    triggers = _YEAR_TRIGGERS if _YEAR.search(text) else _TRIGGERS
    spoken = [name for name, known in triggers.items() if not known.isdisjoint(distinct)]
    if not spoken:
        return found
    spans = [one.span() for one in matches]
    words = [plain[word] for word in told]
    if words[0] == "Morgen":
        words[0] = "morgen"
        distinct.add("morgen")
    others = {word: _other_entry(word) for word in distinct}
    for name in spoken:
        table = _LANGUAGES[name][0]
        entries = others | {word: table[word] for word in distinct & table.keys()}
        if "hier" in entries and FRENCH_CUES.isdisjoint(distinct):
            entries["hier"] = ("x", 0)
        found.extend(_PATTERNS[name].read(text, words, spans, entries))
    return found


def _eastern_readings(text: str) -> Iterator[tuple[Span, Rule, _Values]]:
    folded = text.translate(FOLDED)
    spans = [one.span() for one in islice(_EASTERN_WORD.finditer(folded), _MOST_WORDS)]
    words = [folded[first:last] for first, last in spans]
    entries = {word: EASTERN.get(word) or _eastern_entry(word) for word in set(words)}
    return _EASTERN_PATTERNS.read(text, words, spans, entries)


def _plain(word: str) -> str:
    # The noun, as in "am Morgen", is another word than "morgen".
    return word if word == "Morgen" else word.lower().replace("’", "'")


def _other_entry(word: str) -> tuple[str, Any]:
    if word.isdecimal():
        if len(word) == 4 and _YEAR.fullmatch(word):
            return "Y", int(word)
        return ("N", int(word)) if len(word) <= 2 else ("x", 0)
    if word in _WEEKENDS:
        return "k", 1
    return (word if word in ".,-:/" else "x"), 0


def _eastern_entry(word: str) -> tuple[str, Any]:
    if not word.isdecimal() and word[0] not in NUMERALS:
        return "x", 0
    number = eastern_number(word)
    return ("Y" if 1900 <= number < 2100 else "N" if 0 < number < 100 else "x"), number
