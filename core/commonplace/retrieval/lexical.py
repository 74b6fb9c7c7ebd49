"""Weighted, hashed terms of texts, and entity mentions in questions.

Apart because every index must agree on the terms. Words are reduced to stems, so that "hikes" finds
"hiking"; Chinese, Japanese and Korean runs, which have no spaces, become single characters and
overlapping pairs.
"""

import functools
import itertools
import re
import threading
import unicodedata
import zlib
from collections import Counter

from ..models.stop_words import STOP_WORDS
from ..ports.stores import Terms
from ..types import fold

VERSION = "words-1"
# Term weights are stored, so texts are compared with a constant length and not with the mean.
AVERAGE_LENGTH = 32
SATURATION = 1.5
LENGTH_SHARE = 0.4
MAX_CHARACTERS = 32 * 1024
MAX_WORD = 64
_CACHED_CHARACTERS = 2_000

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
# A combining mark belongs to its letter, an apostrophe does not.
_MARKS = "\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff"
_PARTS = re.compile(rf"[{CJK}]+|(?![{CJK}])[^\W_](?:(?![{CJK}])(?:[^\W_]|[{_MARKS}]))*")
_CJK_CHARACTER = re.compile(rf"[{CJK}]")
_SPACES = re.compile(rf"[{CJK}]|\s+")
_thread = threading.local()


def has_cjk(text: str) -> bool:
    """Tell whether a text has a Chinese, Japanese or Korean character."""
    return _CJK_CHARACTER.search(text) is not None


def tokens(text: str) -> list[str]:
    """Split a text into stems, characters and pairs, in order, repetitions kept.

    Empty list for a text of stop words or signs only.
    """
    found: list[str] = []
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).lower()
    for part in _PARTS.findall(folded):
        if _CJK_CHARACTER.match(part):
            found.extend(part)
            found.extend(map("".join, itertools.pairwise(part)))
        elif part not in STOP_WORDS:
            found.append(_stem(part[:MAX_WORD]))
    return found


def vocabulary(text: str) -> frozenset[str]:
    """Read the distinct tokens of a text; those of the texts read last are kept, unless long."""
    is_short = len(text) <= _CACHED_CHARACTERS
    return _cached_vocabulary(text) if is_short else frozenset(tokens(text))


@functools.lru_cache(maxsize=4_096)
def _cached_vocabulary(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


def document_terms(text: str) -> Terms:
    """Weigh the terms of a stored text: repetition saturates, long texts count a little less."""
    words = tokens(text)
    size = len(words)
    return _terms({word: term_weight(count, size) for word, count in Counter(words).items()})


def term_weight(count: int, length: int) -> float:
    """Weigh a term that occurs `count` times in a text of `length` words (BM25)."""
    share = 1 - LENGTH_SHARE + LENGTH_SHARE * length / AVERAGE_LENGTH
    return count * (SATURATION + 1) / (count + SATURATION * share)


def query_terms(text: str) -> Terms:
    """Weigh the terms of a question by their number of occurrences."""
    return _terms({word: float(count) for word, count in Counter(tokens(text)).items()})


def query_words(text: str) -> dict[str, tuple[int, ...]]:
    """Map each distinct word of a question to the indices, in `Terms`, of its forms."""
    return {word: (_index(word),) for word in tokens(text)}


def describe(text: str) -> tuple[Terms, int]:
    """Return the terms of a stored text and its length in words."""
    return document_terms(text), count_words(text)


def count_words(text: str) -> int:
    """Count words between spaces; three characters of Chinese, Japanese, Korean count as two."""
    characters = len(_CJK_CHARACTER.findall(text))
    spaced = sum(1 for part in _SPACES.split(text) if any(c.isalnum() for c in part))
    return spaced + round(characters / 1.5)


def _terms(weights: dict[str, float]) -> Terms:
    hashed: dict[int, float] = {}
    for word, weight in weights.items():
        index = _index(word)
        hashed[index] = hashed.get(index, 0.0) + weight
    pairs = sorted(hashed.items())
    return Terms(
        indices=tuple(index for index, _ in pairs), weights=tuple(weight for _, weight in pairs)
    )


def _index(word: str) -> int:
    return zlib.crc32(word.encode())


def _stem(word: str) -> str:
    if not "a" <= word[-1] <= "z":
        return word  # no English suffix; numbers would drive words from the cache
    return _english_stem(word)


@functools.lru_cache(maxsize=32_768)
def _english_stem(word: str) -> str:
    # A stemmer is not thread-safe, so each thread has its own.
    if not hasattr(_thread, "stemmer"):
        import snowballstemmer  # it brings the stemmers of all languages, which takes long

        _thread.stemmer = snowballstemmer.stemmer("english")
    stem: str = _thread.stemmer.stemWord(word)
    return stem


_NAME_PARTS = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])[^\W_])+(?:['’.&-](?:(?![{CJK}])[^\W_])+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_MAX_MENTION_WORDS = 4
_MAX_MENTION_CHARACTERS = 8
_MAX_MENTIONS = 600


def entity_mentions(text: str) -> list[str]:
    """List every run of a text that may be a name, in the form of `model.fold`; at most 600.

    Up to four words, or up to eight characters of Chinese, Japanese or Korean. Runs that begin or
    end with a stop word are left out.
    """
    found: dict[str, None] = {}
    words: list[str] = []
    for part in [*_NAME_PARTS.findall(fold(text)), ""]:
        if part and not re.match(rf"[{CJK}]", part):
            words.append(_POSSESSIVE.sub("", part))
            continue
        runs = _runs(words, _MAX_MENTION_WORDS)
        found |= dict.fromkeys(" ".join(run) for run in runs if _may_be_name(run))
        found |= dict.fromkeys("".join(run) for run in _runs(list(part), _MAX_MENTION_CHARACTERS))
        words = []
    return list(found)[:_MAX_MENTIONS]


def _runs(parts: list[str], longest: int) -> list[list[str]]:
    return [
        parts[start : start + length]
        for length in range(1, longest + 1)
        for start in range(len(parts) - length + 1)
    ]


def _may_be_name(run: list[str]) -> bool:
    return run[0] not in STOP_WORDS and run[-1] not in STOP_WORDS
