"""Values of texts: names, numbers, and words that few texts have where there are no capitals.

A newer statement that names the value of an older one tells what became of it: after "We drive a
Golf", "The Golf was scrapped".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from .lexical import has_cjk, vocabulary
from .statement_words import WEAK_CHINESE, WEAK_PAIRS

_MOST = 3  # texts that have a value; what more of them have is what they are about
_LEAST = 4  # letters of a word in a script without capitals
_READ = 400  # characters of a text
_WORDS = re.compile(r"[^\W_]+")
_HIRAGANA = re.compile("[\u3040-\u309f]")
# A word with a capital that begins no sentence, and a number of two digits or more.
_NAMES = re.compile(r"(?<=[^.!?:]\s)[\"'“(]?([A-ZÀ-Þ][^\W_]+)|(?<![\w.,:/-])(\d[\w.,:/-]*\d)\b")
_USER = frozenset("user nutzer nutzers nutzerin usuario usuaria المستخدم للمستخدم".split())


def rare_values(texts: Sequence[str], rows: Sequence[int], question: str) -> Iterator[set[str]]:
    """Read the values of some texts, in their order, that few texts have and a question has not.

    Args:
        rows: indices of the texts whose values are wanted.
    """
    asked = words_of(question) | vocabulary(question)
    named = [_values(texts[row]) - asked for row in rows]
    every = frozenset[str]().union(*named)
    counts = Counter(word for text in texts for word in every & words_of(text))
    for values in named:
        yield {one for one in values if 1 < counts[one] <= _MOST}


@lru_cache(maxsize=4_096)
def words_of(text: str) -> frozenset[str]:
    """Read the words that a text begins with, in small letters; of Chinese, the telling pairs."""
    part = text[:_READ]
    if not has_cjk(part):
        return frozenset(_WORDS.findall(part.casefold()))
    return frozenset(one for one in vocabulary(part) if _tells(one))


def _tells(term: str) -> bool:
    is_weak = not WEAK_CHINESE.isdisjoint(term) or term in WEAK_PAIRS
    return len(term) > 1 and not is_weak and not _HIRAGANA.search(term)


@lru_cache(maxsize=4_096)
def _values(text: str) -> frozenset[str]:
    words = words_of(text)
    if has_cjk(text[:_READ]):
        return words
    named = {one.casefold() for found in _NAMES.findall(text[:_READ]) for one in found if one}
    named |= {one for one in words if len(one) >= _LEAST and one == one.upper() and one.isalpha()}
    return frozenset(named - _USER)
