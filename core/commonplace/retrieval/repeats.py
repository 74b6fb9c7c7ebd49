"""Repeats among candidates: equal turns of one speaker count once, so that they fill no result."""

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from ..types import Record

_CACHED_CHARACTERS = 2_000
_END = " .,;:!?。，；：！？…~～"


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
