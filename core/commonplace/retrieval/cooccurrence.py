"""Co-occurrence boost: candidates gain for rare words that they share with the best ones.

Apart because it reads texts where ranking reads numbers. No index is asked: rarity is counted among
the candidates, where the question's own words are common and so weigh little.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

from ..ports.stores import Hit
from .lexical import CJK

# The best candidates are read, and the beginning of each, so that the cost has a bound.
_MAX_READ = 96
_MAX_CHARACTERS = 384
# The best of those lead: what others share with them counts.
_LEADING = 12
# How much a leading candidate's own words count for itself.
_OWN = 0.5
# A smaller share would change no order.
_MIN_SHARE = 0.01

# Six letters stand for a word: a stemmer takes five times as long and finds no more.
_ASCII = re.compile(r"([a-z0-9]{3,6})[a-z0-9]*")
_WORD = re.compile(rf"([^\W_{CJK}]{{3,6}})[^\W_{CJK}]*")
_RUN = re.compile(rf"[{CJK}]{{2,}}")


def cooccurrence_boost(hits: Sequence[Hit], total: Sequence[float], share: float) -> list[float]:
    """Compute what each candidate gains for words that it shares with the best ones.

    Args:
        hits: the candidates; their texts count, not their speakers.
        total: their scores so far, 0 or more, one per hit.
        share: the most that a candidate gains, as a part of its own score, so that a score of 0
            stays 0.

    Returns:
        One gain per hit, in their order; 0 for one that shares no word.
    """
    boosts = [0.0] * len(hits)
    order = sorted(range(len(hits)), key=lambda i: (-total[i], hits[i].record.id))[:_MAX_READ]
    if share < _MIN_SHARE or len(order) < 2 or total[order[0]] <= 0:
        return boosts
    words_of = [_words(hits[i].record.text[:_MAX_CHARACTERS].lower()) for i in order]
    leading = set(chain.from_iterable(words_of[:_LEADING]))
    shared = [leading.intersection(words) for words in words_of]
    rarity = _rarity(shared)

    pull = dict.fromkeys(leading, 0.0)
    own = [0.0] * len(order)
    for place, words in enumerate(shared[:_LEADING]):
        trust = (total[order[place]] / total[order[0]]) ** 2
        own[place] = (1 - _OWN) * trust * math.fsum(map(rarity.__getitem__, words))
        for word in words:
            pull[word] += trust * rarity[word]
    # An exact sum, because sets have no order and equal texts must gain the same.
    gains = [
        math.fsum(map(pull.__getitem__, words)) - part
        for words, part in zip(shared, own, strict=True)
    ]
    most = max(gains)
    if most > 0:
        for i, gain in zip(order, gains, strict=True):
            boosts[i] = share * total[i] * max(0.0, gain) / most
    return boosts


def _rarity(shared: Sequence[set[str]]) -> dict[str, float]:
    # The fewer texts have a word, the more it weighs; a word of one text connects nothing.
    count = len(shared)
    return {
        word: math.log1p((count - n + 0.5) / (n + 0.5)) / n if n > 1 else 0.0
        for word, n in Counter(chain.from_iterable(shared)).items()
    }


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text)
    pairs = ["".join(pair) for run in _RUN.findall(text) for pair in pairwise(run)]
    return _WORD.findall(text) + pairs
