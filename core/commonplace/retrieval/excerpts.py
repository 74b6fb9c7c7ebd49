"""Excerpt of a long record: the passage that fits a question best, by meaning and by words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..ports.stores import Hit
from ..types import Record, is_short, passages
from .lexical import term_indices

_WORDS = 0.6  # what all words of the question count, as a cosine
_READ = 8  # passages whose words are read; of more, those that promise most
_ENDING = 2  # characters of a longer word that its other forms may lack
_LONGER = 4


class AskedWord(NamedTuple):
    """A word of a question: the indices of its forms in `Terms`, and its weight, in sum 1."""

    indices: tuple[int, ...]
    weight: float


def excerpt(hit: Hit, words: Mapping[str, AskedWord]) -> str:
    """Choose the passage of a hit's text that fits best, the earlier one of equals.

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
    chosen: Sequence[int] = range(len(parts))
    if len(parts) > _READ:
        roots = {_root(word): one.weight for word, one in words.items()}
        promise = [
            score + _WORDS * _hint(part, roots) for score, part in zip(scores, parts, strict=True)
        ]
        chosen = sorted(chosen, key=lambda n: (-promise[n], n))[:_READ]
    fits = {n: scores[n] + _WORDS * _coverage(record, parts[n], words) for n in chosen}
    return parts[min(fits, key=lambda n: (-fits[n], n))]


def _coverage(record: Record, part: str, words: Mapping[str, AskedWord]) -> float:
    held = term_indices(record.indexed_part(part))
    return sum(one.weight for one in words.values() if not held.isdisjoint(one.indices))


def _hint(part: str, roots: Mapping[str, float]) -> float:
    """Estimate the coverage: letters are compared, which takes a hundredth of the time."""
    folded = part.casefold()
    return sum(weight for root, weight in roots.items() if root in folded)


def _root(word: str) -> str:
    return word[: max(_LONGER, len(word) - _ENDING)]
