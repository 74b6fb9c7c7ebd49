"""Journals: what happened on the days of a year, asked for by exact and by relative dates."""

import random
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import count
from typing import Any

from ranking_cases import Dates, Line, Plan, Stated, Store, earlier, moment
from ranking_kinds import Group, Source

Days = tuple[date, date]
EACH = 5  # questions of a journal, with exact dates and with relative ones
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def journals(source: Source) -> Iterator[Group]:
    """Make journals, of facts and of turns, with other things told on other days."""
    kind = "journal"
    draw = source.draw(kind)
    dates = source.read["dates"]
    if not dates or not source.read["event"]:
        return
    for number in count():
        asked_at = moment(draw)
        # On a weekend, "last weekend" would be this one or the one before.
        asked_at -= timedelta(days=max(0, asked_at.weekday() - 4))
        known = source.read["event"]
        events = draw.sample(known, draw.randint(min(12, len(known)), len(known)))
        asking = min(EACH, len(events), len(dates["relative"]))
        relative = draw.sample(dates["relative"], asking)
        asked = [(one[0], days(one, asked_at.date())) for one in relative]
        when = _when(draw, asked_at, [each for _, each in asked], len(events))
        is_facts = number % 2 == 0
        told = [
            Stated(f"event {place}", one["fact"] if is_facts else one["text"], at)
            for place, (one, at) in enumerate(zip(events, when, strict=True))
        ]
        exact = _exact(draw, dates, asked_at, told)
        taken = [each for _, each in (*asked, *exact)]
        store = _planned(source, draw, asked_at, told, taken, is_facts=is_facts).store(
            source.user(kind, number)
        )
        _ask(store, "exact date", exact, told)
        _ask(store, "relative date", asked, told)
        yield (store.case(kind, source.language),)


def days(relative: Sequence[Any], today: date) -> Days:
    """Find the first and the last day that a relative date means; none is after today."""
    _, first, last, *names = relative
    name = names[0] if names else ""
    monday = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    if not name:
        low, high = sorted((today - timedelta(days=first), today - timedelta(days=last)))
        return low, high
    if name in _WEEKDAYS:
        back = (today.weekday() - _WEEKDAYS.index(name) - 1) % 7 + 1
        return today - timedelta(days=back), today - timedelta(days=back)
    before = month - timedelta(days=1)
    ranges = {
        "this_week": (monday, today),
        "last_week": (monday - timedelta(days=7), monday - timedelta(days=1)),
        "last_weekend": (monday - timedelta(days=2), monday - timedelta(days=1)),
        "this_month": (month, today),
        "last_month": (before.replace(day=1), before),
        "this_year": (month.replace(month=1), today),
        "last_year": (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)),
    }
    return ranges[name]


def _when(
    draw: random.Random, asked_at: datetime, ranges: Sequence[Days], number: int
) -> list[datetime]:
    """Draw the times of events, one in each range, some on the day of another, in order."""
    span = draw.randint(60, 400)
    back = []
    for first, last in ranges:
        day = first + timedelta(days=draw.randint(0, (last - first).days))
        back.append((asked_at.date() - day).days)
    while len(back) < number:
        again = draw.random() < 0.15
        back.append(draw.choice(back) if again else draw.randint(1, span))
    times = [
        earlier(draw, asked_at, one, one) if one else asked_at - timedelta(minutes=30)
        for one in back
    ]
    draw.shuffle(times)
    return times


def _is_plain(written: str, at: datetime, asked_at: datetime) -> bool:
    """Tell whether this way of writing a date has one meaning, and is how people write it."""
    if "{y" not in written and (asked_at - at).days > 300:
        return False
    if "{d}th" in written:
        return not (at.day % 10 in (1, 2, 3) and at.day not in (11, 12, 13))
    # Americans and the British disagree about 3/4.
    return not written.startswith(("{d}/", "{m}/", "{dd}/", "{mm}/")) or at.day > 12


def _exact(
    draw: random.Random, dates: Dates, asked_at: datetime, told: Sequence[Stated]
) -> list[tuple[str, Days]]:
    """Ask for days of events by their dates, as far as it is plain which day is meant."""
    found = []
    months = dates.get("months") or [str(number) for number in range(1, 13)]
    for one in draw.sample(told, min(EACH, len(told))):
        written = draw.choice(dates["formats"])
        at = one.at
        if not _is_plain(written, at, asked_at):
            continue
        fields = {
            "d": at.day,
            "dd": f"{at.day:02}",
            "m": at.month,
            "mm": f"{at.month:02}",
            "y": at.year,
            "month": months[at.month - 1],
        }
        text = draw.choice(dates["day"]).format(date=written.format(**fields))
        found.append((text, (at.date(), at.date())))
    return found


def _planned(
    source: Source,
    draw: random.Random,
    asked_at: datetime,
    told: Sequence[Stated],
    taken: Sequence[Days],
    *,
    is_facts: bool,
) -> Plan:
    """Tell the events, and up to 15 other things on days that nobody asks for."""
    others = []
    for one in draw.sample(source.topics, min(draw.randint(0, 15), len(source.topics))):
        at = earlier(draw, asked_at, 1, 400)
        if not any(first <= at.date() <= last for first, last in taken):
            others.append(Stated("", one.fact if is_facts else one.turn, at))
    plan = Plan(asked_at=asked_at)
    if is_facts:
        named = (one._replace(label=one.label or one.text) for one in (*told, *others))
        return plan.with_facts(named)
    for one in (*told, *others):
        plan = plan.with_talk(one.at, [source.said(draw, Line(one.text, one.label))])
    return plan


def _ask(
    store: Store, kind: str, asked: Sequence[tuple[str, Days]], told: Sequence[Stated]
) -> None:
    for text, (first, last) in dict(asked).items():
        labels = [one.label for one in told if first <= one.at.date() <= last]
        store.ask(kind, text, *labels)
