"""Baselines of retrieval: cosine alone, BM25 alone, and three rules that fuse the two.

Pure functions that share nothing with the product but the vectors they are given. All documents of
one conversation are scored, one number each, in the order in which they were told.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

STOP_WORDS = frozenset(
    "a an the and or of to in on at for is are was were be been do does did what when where who "
    "which how why with his her their its it he she they i we you my your that this".split()
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_PARTS = re.compile(rf"(?P<cjk>[{_CJK}]+)|(?:(?![{_CJK}])[^\W_]|')+")
_SUFFIXES = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3
_RANK_CONSTANT = 60
_MEM0_CANDIDATES = 60
_MEM0_LOWEST = 0.1
# Words of the question up to which a sigmoid holds, its midpoint and its steepness.
_MEM0_SIGMOIDS = ((3, 5, 0.7), (6, 7, 0.6), (9, 9, 0.5), (15, 10, 0.5), (math.inf, 12, 0.5))


def tokens(text: str) -> list[str]:
    """Split a text into words without stop words and suffixes, repetitions kept.

    Runs of Chinese, Japanese and Korean become single characters and overlapping pairs.
    """
    found: list[str] = []
    for match in _PARTS.finditer(text.lower()):
        part = match[0]
        if match["cjk"]:
            found += [*part, *map("".join, pairwise(part))]
        elif part not in STOP_WORDS:
            found.append(_stem(part))
    return found


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Term counts of a conversation.

    Attributes:
        counts: for each word, the documents that have it and how often.
        lengths: of the documents, in tokens.
    """

    counts: Mapping[str, Mapping[int, int]]
    lengths: Scores


def statistics(documents: Sequence[Sequence[str]]) -> Statistics:
    """Count the words of tokenised documents."""
    counts: dict[str, dict[int, int]] = {}
    for place, document in enumerate(documents):
        for word, count in Counter(document).items():
            counts.setdefault(word, {})[place] = count
    return Statistics(counts=counts, lengths=np.array([len(one) for one in documents], float))


def bm25(question: Sequence[str], known: Statistics, *, k1: float = 1.5, b: float = 0.75) -> Scores:
    """Score documents with Okapi's BM25; each repetition of a word in the question counts."""
    number = len(known.lengths)
    scores = np.zeros(number)
    size = 1 - b + b * known.lengths / max(known.lengths.mean(), 1e-9)
    for word in question:
        having = known.counts.get(word)
        if having:
            rarity = math.log1p((number - len(having) + 0.5) / (len(having) + 0.5))
            at = np.fromiter(having, int)
            count = np.fromiter(having.values(), float)
            scores[at] += rarity * count * (k1 + 1) / (count + k1 * size[at])
    return scores


def order(scores: Scores) -> list[int]:
    """Sort documents, best first, ties by the older one."""
    places: list[int] = np.argsort(-scores, kind="stable").tolist()
    return places


def stretched(scores: Scores) -> Scores:
    """Scale scores linearly to 0..1; all 0 where they are equal."""
    low = scores.min()
    scaled: Scores = (scores - low) / (scores.max() - low + 1e-9)
    return scaled


def reciprocal_ranks(*lists: Scores, constant: float = _RANK_CONSTANT) -> Scores:
    """Fuse by the sum of 1 / (constant + rank) over whole lists, ranks from 1."""
    total = np.zeros(len(lists[0]))
    for scores in lists:
        total[order(scores)] += 1 / (constant + np.arange(1, len(scores) + 1))
    return total


def plain_fusion(cosines: Scores, words: Scores, *, share: float = 0.5) -> Scores:
    """Fuse by the weighted mean of both, each stretched; the cosine has `share`."""
    return share * stretched(cosines) + (1 - share) * stretched(words)


def mem0_rule(cosines: Scores, words: Scores, length: int) -> Scores:
    """Fuse as mem0 2 does without entities: the cosine and a sigmoid of BM25.

    Only the 60 best by cosine of at least 0.1 are candidates; all others score minus infinity.

    Args:
        length: of the question, in tokens.
    """
    middle, slope = next((m, s) for most, m, s in _MEM0_SIGMOIDS if length <= most)
    matched = np.where(words > 0, 1 / (1 + np.exp(-slope * (words - middle))), 0)
    scores = np.full(len(cosines), -math.inf)
    nearest = [i for i in order(cosines)[:_MEM0_CANDIDATES] if cosines[i] >= _MEM0_LOWEST]
    scores[nearest] = cosines[nearest] + matched[nearest]
    return scores


# From cosines, BM25 and the length of the question in tokens.
Rule = Callable[[Scores, Scores, int], Scores]

RULES: dict[str, Rule] = {
    "dense": lambda cosines, _words, _length: cosines,
    "BM25": lambda _cosines, words, _length: words,
    "RRF-60": lambda cosines, words, _length: reciprocal_ranks(cosines, words),
    "plain fusion": lambda cosines, words, _length: plain_fusion(cosines, words),
    "mem0's rule": mem0_rule,
}
