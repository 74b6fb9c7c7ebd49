"""What a question may name: runs of words, and in scripts without spaces runs of characters."""

import re

from ..model import fold
from .lexical import CJK, STOP_WORDS

_PARTS = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])[^\W_])+(?:['’.&-](?:(?![{CJK}])[^\W_])+)*")
_OWNING = re.compile(r"['’]s$")
_MOST_WORDS = 4
_MOST_CHARACTERS = 8
_MOST_NAMES = 600


def names_in(text: str) -> list[str]:
    """List every run of a text that may be a name, in the form of `model.fold`; at most 600.

    Up to four words, or up to eight characters of Chinese, Japanese or Korean. Runs that begin or
    end with a stop word are left out.
    """
    found: dict[str, None] = {}
    words: list[str] = []
    for part in [*_PARTS.findall(fold(text)), ""]:
        if part and not re.match(rf"[{CJK}]", part):
            words.append(_OWNING.sub("", part))
            continue
        found |= dict.fromkeys(" ".join(run) for run in _runs(words, _MOST_WORDS) if _is_name(run))
        found |= dict.fromkeys("".join(run) for run in _runs(list(part), _MOST_CHARACTERS))
        words = []
    return list(found)[:_MOST_NAMES]


def _runs(parts: list[str], most: int) -> list[list[str]]:
    return [
        parts[start : start + length]
        for length in range(1, most + 1)
        for start in range(len(parts) - length + 1)
    ]


def _is_name(run: list[str]) -> bool:
    return run[0] not in STOP_WORDS and run[-1] not in STOP_WORDS
