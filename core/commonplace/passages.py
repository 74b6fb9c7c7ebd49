"""Passages of long texts: the parts, cut where sentences end, that are embedded one by one.

The same text always has the same passages, so that a passage is known by its number.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_SHORT = 400  # characters of a text that is one passage
_PART = 240  # of a passage of a longer one; in larger ones a single fact is lost among others
_WIDE_SIZE = 3  # of a Chinese, Japanese or Korean character, which says as much as three letters

# Where a sentence ends, behind closing quotes and spaces. A line is a sentence, too.
_ENDS = re.compile(r"[.!?][\"'”’»)\]]{0,3}\s+|[。！？；…][\"'”’」』）】]{0,3}\s*|\n\s*")
_WIDE = re.compile("[\u2e80-\uffff\U00020000-\U0003ffff]+")


def passages(text: str) -> Sequence[str]:
    """Split a text into passages of whole sentences, in order, up to some 240 characters each.

    A longer sentence is divided at spaces, or anywhere if it has none. Spaces at the ends of
    passages are left out; nothing else is. A short text is one passage, as it is.
    """
    return [text] if is_short(text) else _divided(text)


@lru_cache(maxsize=256)  # more than the candidates of a search
def _divided(text: str) -> Sequence[str]:
    found: list[str] = []
    start = end = size = 0
    for border in _borders(text):
        part = text[end:border]
        if size + _size(part.rstrip()) > _PART:
            found.append(text[start:end].strip())
            start, size = end, 0
        size += _size(part)
        end = border
    found.append(text[start:].strip())
    return tuple(part for part in found if part) or (text,)


def is_short(text: str) -> bool:
    """Tell whether a text is one passage: up to 400 letters, or 133 Chinese characters."""
    length = len(text)
    return length * _WIDE_SIZE <= _SHORT or (length <= _SHORT and _size(text) <= _SHORT)


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + (_WIDE_SIZE - 1) * sum(map(len, _WIDE.findall(text)))


def _borders(text: str) -> Iterator[int]:
    """Yield the ends of the parts that are not divided, each small enough for a passage."""
    start = 0
    for end in (*(found.end() for found in _ENDS.finditer(text)), len(text)):
        while end - start > _PART // _WIDE_SIZE and _size(text[start:end].strip()) > _PART:
            start = cut = end - len(text[start:end].lstrip())
            cut += _fitting(text[start : start + _PART])
            space = text.rfind(" ", start, cut + 1)
            start = cut if space <= start else space
            yield start
        if end > start:
            yield end
            start = end


def _fitting(text: str) -> int:
    """Count the characters of the longest beginning that is small enough."""
    length = len(text)
    while (excess := _size(text[:length]) - _PART) > 0:
        length -= -(-excess // _WIDE_SIZE)
    return length
