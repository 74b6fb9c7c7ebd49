"""Repeats and changes among candidates: equal turns count once, near-ties go to the newer one.

Where a question asks for several things, the further turns of a session stand back: they mostly
tell of the same thing again.

What somebody said twice must not fill a result, and what somebody said anew, such as another place
to live, must not stand behind what it replaces only because that was put in fewer words. Where
somebody asks what was before, the replaced one goes first.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ..types import Record, Scope
from .lexical import vocabulary
from .utterance_kinds import statements

_EXAMINED = 10  # candidates among which newer ones go first
_TIE = 0.95  # least score of a newer statement, as a share of the older one's, to stand before it
_CHANGE = 0.75  # the same for one that says itself that something has changed
_COMMON = 0.5  # of the question's words that one of two statements has, the share that both have
_ASKED = 0.67  # of all of the question's words, the share that both have
_OWN = 0.0  # the same where somebody asks about himself, in whatever words
_ALL = 0.1  # share of the best score that each further turn of a session loses to a list
_SEVERAL = 0.02  # the same where the question is in the plural
_CACHED_CHARACTERS = 2_000
_ABOVE = 1 + 1e-9  # so that what stands before scores more

_END = " .,;:!?。，；：！？…~～"
_SELF = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我咱]", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:now|nowadays|these days|currently|new|newly|instead|no longer|any ?more|from now on"
    r"|as of|correction|gave up"
    r"|(?:has|have|had|just|we|i) (?:changed|moved|switched|swapped|replaced|sold))\b"
    r"|现在|如今|目前|新|改|换|不再|更正|搬|从今|变了|\w起，?",
    re.IGNORECASE,
)
_PAST_QUESTION = re.compile(
    r"\b(?:did(?! i (?:tell|say|mention))|was|were|had|before|ago|former(?:ly)?|previous(?:ly)?"
    r"|used to|(?<!how )old|earlier|original(?:ly)?|my first|in the past|back then)\b"
    r"|以前|之前|原来|曾经|当时|过去|最初",
    re.IGNORECASE,
)
_FORMER_QUESTION = re.compile(
    r"\b(?:previous(?:ly)?|former(?:ly)?|used? to)\b|\bbefore\W*$"
    r"|(?:^|[我咱]们?)(?:以前|之前|原来|从前|最初|曾经)",
    re.IGNORECASE,
)
_PAST_STATEMENT = re.compile(
    r"\b(?:used to|back then|when i was|years ago)\b|曾经|小时候|当年", re.IGNORECASE
)

_ASKS_FOR_ALL = re.compile(
    r"\b(?:list|enumerate|name) (?:me )?(?:all|every|each|the|some|several|my|our)\b"
    r"|\b(?:what|which) (?:chronological )?order\b|\bchronological"
    r"|\bsummar(?:y|i[sz]e)\b|\boverview\b|\brecap\b"
    r"|列出|列举|所有|全部|哪些|都有(?:什么|谁)|分别|顺序|总结|概括|归纳|回顾",
    re.IGNORECASE,
)
_ASKS_FOR_SEVERAL = re.compile(
    r"\bhow many (?:times|different)\b"
    r"|\b(?:what|which)(?: [\w-]+){0,2} \w{2,}(?<![sui])s"
    r" (?:has|have|had|do|does|did|are|were|can|could|might|would)\b",
    re.IGNORECASE,
)


def distinct(records: Sequence[Record], order: Sequence[int]) -> list[tuple[int, int]]:
    """Group equal turns of one speaker, so that each counts once.

    Equal are texts but for case, spaces, final punctuation and Unicode form. Other records are
    groups of their own: what a caller stored under two keys is meant to be there twice.

    Args:
        order: indices of records, best first.

    Returns:
        For each group, in the order of its best, the index of the best and of the one that stands
        for all: the newest, but of those that end with a question mark only if all do.
    """
    groups: dict[object, list[int]] = {}
    for i in order:
        record = records[i]
        key: object = i
        if record.kind == "episode" and record.role is not None:
            key = record.role, record.name, _plain(record.text)
        groups.setdefault(key, []).append(i)
    return [
        (group[0], max(group, key=lambda i: _standing(records[i])) if group[1:] else group[0])
        for group in groups.values()
    ]


def session_losses(
    question: str, records: Sequence[Record], order: Sequence[int], totals: Sequence[float]
) -> dict[int, float]:
    """Compute what turns lose for better ones of the same session.

    Args:
        order: indices of records, best first.
        totals: the score of each record.

    Returns:
        The losses by index; none where the question does not ask for several things.
    """
    if _ASKS_FOR_ALL.search(question):
        share = _ALL
    elif _ASKS_FOR_SEVERAL.search(question):
        share = _SEVERAL
    else:
        return {}
    lost: dict[int, float] = {}
    before: Counter[Scope] = Counter()
    for i in order:
        if records[i].position is not None:
            scope = records[i].scope
            lost[i] = min(totals[i], share * before[scope] * totals[order[0]])
            before[scope] += 1
    return lost


def newer_first(
    question: str, records: Sequence[Record], order: Sequence[int], totals: Sequence[float]
) -> tuple[list[int], dict[int, float]]:
    """Put newer statements before older ones on the same matter that score hardly more.

    Two statements of one speaker are on the same matter when they share most of the question's
    words. Of those who ask about themselves one word is enough, as their own matters are few; to
    their questions for what was before ("where did I live before?") the older goes first. Nothing
    else changes for a question about the past.

    Args:
        order: indices of records, best first.
        totals: the score of each record.

    Returns:
        The new order, and by how much the scores of those grow that went up.
    """
    is_former = bool(_SELF.search(question) and _FORMER_QUESTION.search(question))
    if not is_former and _PAST_QUESTION.search(question):
        return list(order), {}
    asked = vocabulary(question)
    needed = (_OWN if _SELF.search(question) else _ASKED) * len(asked)
    statements_: list[_Statement | None] = []
    places: list[int] = []
    for i in order[:_EXAMINED]:
        one = _statement(records[i], asked, totals[i])
        ahead = (
            at
            for at, other in enumerate(statements_)
            if one is not None and other is not None and one.precedes(other, needed, is_former)
        )
        place = next(ahead, len(places))
        statements_.insert(place, one)
        places.insert(place, i)
    gained: dict[int, float] = {}
    least = 0.0
    for i in reversed(places):
        if totals[i] < least:
            gained[i] = least - totals[i]
        least = max(totals[i], least) * _ABOVE
    return [*places, *order[_EXAMINED:]], gained


@dataclass(frozen=True, slots=True)
class _Statement:
    """A record that states something, its score, and those of the question's words it has."""

    record: Record
    words: frozenset[str]
    total: float

    def precedes(self, other: "_Statement", needed: float, is_former: bool) -> bool:
        """Tell whether it scores hardly less than another one on the same matter and is newer.

        Args:
            is_former: tell whether it is older instead.
        """
        mine, others = self.record, other.record
        common = len(self.words & other.words)
        if not common or common < max(needed, _COMMON * len(self.words | other.words)):
            return False
        if (mine.kind, mine.role, mine.name) != (others.kind, others.role, others.name):
            return False
        if is_former:
            return _time(mine) < _time(others) and self.total >= _CHANGE * other.total
        if _time(mine) <= _time(others) or _PAST_STATEMENT.search(mine.text):
            return False
        least = _CHANGE if _CHANGED.search(mine.text) else _TIE
        return self.total >= least * other.total


def _statement(record: Record, asked: frozenset[str], total: float) -> _Statement | None:
    words = asked & vocabulary(record.text)
    if not words or not total or (record.kind == "episode" and not statements(record.text)):
        return None
    return _Statement(record, words, total)


def _plain(text: str) -> str:
    return _cached_plain(text) if len(text) <= _CACHED_CHARACTERS else _folded(text)


def _folded(text: str) -> str:
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(folded.casefold().split()).rstrip(_END)


_cached_plain = lru_cache(maxsize=4_096)(_folded)


def _time(record: Record) -> tuple[datetime, int, datetime]:
    place = -1 if record.position is None else record.position
    return record.occurred_at, place, record.created_at


def _standing(record: Record) -> tuple[bool, tuple[datetime, int, datetime], str]:
    return not record.text.rstrip().endswith(("?", "？")), _time(record), record.id
