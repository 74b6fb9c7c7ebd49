"""Excerpt of a long record: the passage that fits a question best, by meaning and by words."""

import math
from collections.abc import Sequence

from ..ports.stores import Hit
from ..types import is_short, passages
from .answer_types import asked_type, fits
from .lexical import query_words, term_indices

_WORDS = 0.45  # what all words of the question count, as a cosine
_ANSWER = 0.05  # the same of an answer of the type that is asked for
_IMAGINED = 10  # passages without any of the words, so that few are not all common
_READ = 8  # passages whose words are read; of more, those that promise most
_ENDING = 2  # characters of a longer word that its other forms may lack
_LONGER = 4


def excerpt(hit: Hit, question: str, weights: Sequence[float] = ()) -> str:
    """Choose the passage of a hit's text that fits best, the earlier one of equals.

    A word counts for less the more passages have it: "have" and "tell" are in a question whatever
    it asks for, and in any text.

    Args:
        weights: of the question's words, in sum 1; all the same if empty.

    Returns:
        The whole text if it is short.
    """
    record = hit.record
    if is_short(record.text):
        return record.text
    parts = passages(record.text)
    # Those of a procedure are of its situation.
    cosines = () if record.situation else hit.passages[: len(parts)]
    unknown = min(cosines, default=0.0)
    scores = [*cosines, *[unknown] * (len(parts) - len(cosines))]
    words, asked = query_words(question), asked_type(question)
    counts: dict[tuple[int, ...], float] = {}
    promise, folded = scores, [part.casefold() for part in parts]
    every = weights or [1 / max(1, len(words))] * len(words)
    for (word, forms), share in zip(words.items(), every, strict=True):
        root = word[: max(_LONGER, len(word) - _ENDING)]
        # Letters are compared, which takes a hundredth of the time.
        having = [root in part for part in folded]
        rarity = 1 - math.log(max(1, sum(having))) / math.log(len(parts) + _IMAGINED)
        counts[forms] = weight = _WORDS * share * rarity**2
        promise = [score + weight * has for score, has in zip(promise, having, strict=True)]

    def fit(n: int) -> float:
        held = term_indices(record.indexed_part(parts[n]))
        told = sum(weight for forms, weight in counts.items() if not held.isdisjoint(forms))
        return scores[n] + told + _ANSWER * (fits(parts[n], asked) if asked else 0.0)

    chosen = sorted(range(len(parts)), key=lambda n: (-promise[n], n))[:_READ]
    return parts[min(chosen, key=lambda n: (-fit(n), n))]
