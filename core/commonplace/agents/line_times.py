"""Times of a note's lines: what day it is, and when each line was said, or since or until it holds.

The words around a date are Chinese beside a Chinese text and else English; dates are written as
`2026-05-04`, in the zone of the moment at which the note is read.
"""

import re
from datetime import date, datetime

from ..retrieval.current import tells_state
from ..retrieval.times import AskedTime, counted_days
from ..types import Record
from .standing_instructions import MARK

_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile(r"[^\W\d_\u3040-\u9fff]+")
_DATED = re.compile(r"\s*[\[(（]\s*(?:\w+\s){0,2}\d{4}\b")
_WEEKS, _MONTHS, _YEARS = 14, 60, 24  # days, days and months from which on ages are told in these
_WEEKDAYS = "一二三四五六日"


def local(now: datetime | None) -> datetime:
    """Return a moment with a zone: the present one in the process's own if there is none."""
    now = now or datetime.now().astimezone()
    return now if now.tzinfo else now.astimezone()


def day_line(now: datetime, heading: str) -> str:
    """Write which day it is, in the language of the note's heading."""
    if is_chinese(heading):
        return f"今天是{now.date()}，星期{_WEEKDAYS[now.weekday()]}。"
    return f"Today is {_DAY_NAMES[now.weekday()]}, {now.date()}."


def time_of(record: Record, now: datetime) -> str:
    """Write when a record was said, or since or until when it holds, in brackets.

    Empty for a standing instruction, which holds.
    """
    if record.metadata.get(MARK) is True:
        return ""
    chinese = is_chinese(record.text)
    if record.valid_to is not None:
        day = _local_to(now, record.valid_to).date()
        return f"[至{day}]" if chinese else f"[until {day}]"
    day = _local_to(now, record.occurred_at).date()
    if record.kind in ("profile", "preference") or (
        record.kind == "fact" and tells_state(record.text)
    ):
        return f"[{day}起]" if chinese else f"[since {day}]"
    age = _age(day, now.date(), chinese)
    return f"[{day},{age}]" if chinese else f"[{day}, {age}]"


def with_days(record: Record, text: str, now: datetime) -> str:
    """Write a record's text with the days that it counts from its moment behind their words.

    What somebody else wrote, as in a document, is left as it is: its moment is not known.

    Args:
        text: the part of it that is shown.
    """
    if record.origin in ("tool", "document"):
        return text
    said = _local_to(now, record.occurred_at)
    parts, end = [], 0
    for (_, last), found in counted_days(text, said):
        if found.start == found.end == said.date() or _DATED.match(text, last):
            continue
        space = "" if _HAN.match(text[last - 1]) else " "
        parts.append(f"{text[end:last]}{space}[{_span(found, is_chinese(text))}]")
        end = last
    return "".join([*parts, text[end:]])


def earlier(text: str) -> str:
    """Write that a newer line replaces one with this text."""
    return "(较早)" if is_chinese(text) else "(earlier)"


def is_chinese(text: str) -> bool:
    """Tell whether the words of a text are mostly Chinese characters."""
    characters = len(_HAN.findall(text))
    return characters > 2 * len(_LATIN.findall(text)) and not _KANA.search(text)


def _local_to(now: datetime, moment: datetime) -> datetime:
    try:
        return moment.astimezone(now.tzinfo)
    except OverflowError:  # on the first or the last day that there is
        return moment


def _age(day: date, today: date, chinese: bool) -> str:
    """Write how long ago a day was, or how far ahead it is."""
    days = (today - day).days
    if abs(days) < 2:
        names = ("明天", "今天", "昨天") if chinese else ("tomorrow", "today", "yesterday")
        return names[days + 1]
    far = abs(days)
    if far < _WEEKS:
        number, unit, word = far, "days", "天"
    elif far < _MONTHS:
        number, unit, word = far // 7, "weeks", "周"
    elif (number := _months(*sorted((day, today)))) < _YEARS:
        unit, word = "months", "个月"
    else:
        number, unit, word = number // 12, "years", "年"
    if chinese:
        return f"{number}{word}{'前' if days > 0 else '后'}"
    return f"{number} {unit} ago" if days > 0 else f"in {number} {unit}"


def _months(first: date, last: date) -> int:
    """Count the whole months from one day to a later one."""
    return 12 * (last.year - first.year) + last.month - first.month - (last.day < first.day)


def _span(found: AskedTime, chinese: bool) -> str:
    first, last = str(found.start), str(found.end)
    if found.grain in ("month", "season"):
        first, last = first[:7], last[:7]
    elif found.grain == "year":
        first, last = first[:4], last[:4]
    return first if first == last else f"{first}{'至' if chinese else ' to '}{last}"


_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
