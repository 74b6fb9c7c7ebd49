"""Excerpt of a long record: the passage that fits a question best, by meaning and by words."""

import math
from collections.abc import Sequence

from ..ports.stores import Hit
from ..types import is_short, passages
from .answer_types import asked_type, fits
from .lexical import has_cjk, query_words, term_indices

_WORDS = 0.45  # what all words of the question count, as a cosine
_ANSWER = 0.05  # the same of an answer of the type that is asked for
_IMAGINED = 10  # passages without any of the words, so that few are not all common
_READ = 8  # passages whose words are read; of more, those that promise most
_ENDING = 2  # characters of a longer word that its other forms may lack
_LONGER = 4


def excerpt(hit: Hit, question: str, weights: Sequence[float] = ()) -> str:
    """Choose the passage of a hit's text that fits best, the earlier one of equals.

    A word counts for less the more passages have it: "have" and "tell" are in a question whatever
    it asks for, and in any text. What the first passage names is known in all: it counts for one
    that lacks it as much as that tells besides. A letter's sender stands at its head alone.

    Args:
        weights: of the question's words, in sum 1; all the same if empty.
    """
    record = hit.record
    if is_short(record.text):
        return record.text
    parts = passages(record.text)
    # Those of a procedure are of its situation.
    cosines = () if record.situation else hit.passages[: len(parts)]
    scores = [*cosines, *[min(cosines, default=0.0)] * (len(parts) - len(cosines))]
    words, asked = query_words(question), asked_type(question)
    counts: dict[tuple[int, ...], float] = {}
    promise, plain = scores, [f" {part.casefold()}".replace("\n", " ") for part in parts]
    every = weights or [1 / max(1, len(words))] * len(words)
    for (word, forms), share in zip(words.items(), every, strict=True):
        # Letters are compared, which takes a hundredth of the time.
        root = ("" if has_cjk(word) else " ") + word[: max(_LONGER, len(word) - _ENDING)]
        having = [root in part for part in plain]
        rarity = 1 - math.log(max(1, sum(having))) / math.log(len(parts) + _IMAGINED)
        counts[forms] = weight = _WORDS * share * rarity**2
        promise = [score + weight * has for score, has in zip(promise, having, strict=True)]

    def told(n: int) -> dict[tuple[int, ...], float]:
        held = term_indices(record.indexed_part(parts[n]))
        return {forms: counts[forms] for forms in counts if not held.isdisjoint(forms)}

    def fit(n: int) -> float:
        here = told(n)
        own, shared = sum(here.values()), sum(here[forms] for forms in here.keys() & head.keys())
        known = min(sum(head.values()), own) - shared
        return scores[n] + own + known + _ANSWER * (fits(parts[n], asked) if asked else 0.0)

    head = told(0)
    chosen = sorted(range(len(parts)), key=lambda n: (-promise[n], n))[:_READ]
    return parts[min(chosen, key=lambda n: (-fit(n), n))]
