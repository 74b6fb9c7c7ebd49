"""Weighted, hashed terms of texts, and entity mentions in questions.

Apart because every index must agree on the terms. Words are reduced to stems, so that "hikes" finds
"hiking"; Chinese, Japanese and Korean runs, which have no spaces, become single characters and
overlapping pairs.

A word of a text in another language than English has several forms, each of which is a term: its
stem in that language, without accents, and what English makes of it. A short text may not tell its
language, and then it has the English form only, which the others have, too.
"""

import functools
import itertools
import re
import unicodedata
import zlib
from collections import Counter

from ..models.stop_words import STOP_WORDS
from ..ports.stores import Terms
from ..types import fold
from .languages import (
    ENGLISH,
    Languages,
    is_stop_word,
    languages_of,
    plain,
    script_language,
    script_stem,
    stem,
    without_marks,
)

VERSION = "words-2"
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
_ASCII_WORD = re.compile("[a-z0-9]+")
_CJK_CHARACTER = re.compile(rf"[{CJK}]")
_SPACES = re.compile(rf"[{CJK}]|\s+")


def has_cjk(text: str) -> bool:
    """Tell whether a text has a Chinese, Japanese or Korean character."""
    return _CJK_CHARACTER.search(text) is not None


def tokens(text: str) -> list[str]:
    """Split a text into stems, characters and pairs, in order, repetitions kept.

    Empty list for a text of stop words or signs only.
    """
    return [forms[0] for forms in _forms(text)]


def _forms(text: str, *, is_question: bool = False) -> list[tuple[str, ...]]:
    """List the forms of each word of a text; the first is its stem in the text's language."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).lower()
    if is_ascii := folded.isascii():
        words = _ASCII_WORD.findall(folded)
    else:
        words = _PARTS.findall(without_marks(folded))
    languages = languages_of(words, is_ascii=is_ascii)
    if is_ascii and not languages.names:
        return [_english(word) for word in words if word not in STOP_WORDS]
    if not is_question:
        languages = languages._replace(names=languages.names[:1])
    return [forms for word in words for forms in _word_forms(word, languages)]


def _word_forms(word: str, languages: Languages) -> list[tuple[str, ...]]:
    if _CJK_CHARACTER.match(word):
        return [(one,) for one in (*word, *map("".join, itertools.pairwise(word)))]
    if (script := script_language(word)) is not None:
        found = script_stem(word[:MAX_WORD], script)
        return [] if found is None else [(found,)]
    if is_stop_word(word, languages.names[0] if languages.is_sure else ENGLISH):
        return []
    if not languages.names:
        return [_english(word)]
    word = word[:MAX_WORD]
    stems = [plain(stem(word, language)) for language in languages.names]
    return [tuple(dict.fromkeys([*stems, *_english(word), *_english(plain(word))]))]


def _english(word: str) -> tuple[str]:
    word = word[:MAX_WORD]
    if not "a" <= word[-1] <= "z":
        return (word,)  # no English suffix; numbers would drive words from the cache
    return (stem(word, ENGLISH),)


def vocabulary(text: str) -> frozenset[str]:
    """Read the distinct tokens of a text; those of the texts read last are kept, unless long."""
    is_short = len(text) <= _CACHED_CHARACTERS
    return _cached_vocabulary(text) if is_short else frozenset(tokens(text))


@functools.lru_cache(maxsize=4_096)
def _cached_vocabulary(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


@functools.lru_cache(maxsize=4_096)
def term_indices(text: str) -> frozenset[int]:
    """Read the indices of the terms of a text, which must be short, as it is kept."""
    return frozenset(document_terms(text).indices)


def document_terms(text: str) -> Terms:
    """Weigh the terms of a stored text: repetition saturates, long texts count a little less."""
    words = _forms(text)
    counts = Counter(itertools.chain.from_iterable(words))
    return _terms({form: term_weight(count, len(words)) for form, count in counts.items()})


def term_weight(count: int, length: int) -> float:
    """Weigh a term that occurs `count` times in a text of `length` words (BM25)."""
    share = 1 - LENGTH_SHARE + LENGTH_SHARE * length / AVERAGE_LENGTH
    return count * (SATURATION + 1) / (count + SATURATION * share)


def query_terms(text: str) -> Terms:
    """Weigh the terms of a question by their occurrences, each shared among the word's forms."""
    weights: dict[str, float] = {}
    for forms in _forms(text, is_question=True):
        for form in forms:
            weights[form] = weights.get(form, 0.0) + 1 / len(forms)
    return _terms(weights)


def query_words(text: str) -> dict[str, tuple[int, ...]]:
    """Map each distinct word of a question to the indices, in `Terms`, of its forms."""
    found: dict[str, dict[int, None]] = {}
    for forms in _forms(text, is_question=True):
        found.setdefault(forms[0], {}).update(dict.fromkeys(map(_index, forms)))
    return {word: tuple(indices) for word, indices in found.items()}


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
