"""How likely a newer statement took the place of an older one, when something is asked.

The likelihood is logistic, as the score is: a weighted sum of the features of a pair and, with the
default embedder, of what is alike in their vectors: that somebody tells of a change can be seen in
a vector whatever the words. `benchmarks/train_replacement.py` measures the weights on pairs that
were judged by hand, and writes `replacement.json` and `replacement.npy`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .current import (
    KIN,
    SELF,
    Statement,
    difference,
    matter_words,
    may_be_replaced_by,
    names_of,
    replaces,
    sentences,
)

FAR = 0.2
"""Least nearness of two statements on one matter: of those replaced, 99 of 100 are nearer."""
_LEAST = -2.5
"""Least logit without what the words add: of those replaced, 99 of 100 have more."""
_ADDS = re.compile(
    r"\b(?:also|too|as well|another|second|other|both|either|besides|auch|zweite\w*|también)\b"
    r"|又|也|还(?!给|清)|另|二|も"
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class _Told:
    """What the sentences of a statement tell together.

    Attributes:
        small: its text in small letters.
        owners: whom its sentences are about; "" for the user.
        slots: what they fill, and whether they say that it changed.
        words: that tell its matter.
        values: names, numbers and addresses in it. names: of these, names.
        longest: the words of its longest sentence.
        closes: it says that something is over. goes_on: that something is another way now.
        adds: it tells of one more. has_digits: there is a number in it.
    """

    small: str
    owners: frozenset[str]
    slots: Mapping[tuple[str, str], bool]
    words: frozenset[str]
    values: frozenset[str]
    names: frozenset[str]
    longest: tuple[str, ...]
    closes: bool
    goes_on: bool
    adds: bool
    has_digits: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """A newer statement and an older one, for a question.

    Attributes:
        nearness: of their vectors, on the embedder's own scale: 0 unrelated, 1 alike.
        gain: by how much the newer one is nearer to the question.
        asked: words of the question that tell its matter.
        is_named: both are turns of a named speaker.
        is_replaced: what the rules of `current` say.
        shared: words of both that tell their matter.
        beginning: share of the words of the longest sentences that begin both. matching: that
            begin or end both. differs_twice: some match again between two differences.
    """

    newer: _Told
    older: _Told
    nearness: float
    gain: float
    asked: frozenset[str]
    is_named: bool
    is_replaced: bool
    shared: frozenset[str]
    beginning: float
    matching: float
    differs_twice: bool
    of_vectors: float | None = None


PAIR_FEATURES: Mapping[str, Callable[[Pair], float]] = {
    "nearness": lambda p: p.nearness,
    "gain": lambda p: p.gain,
    # A speaker's name is embedded with each turn, which makes them nearer.
    "named": lambda p: p.is_named,
    "rules": lambda p: p.is_replaced,
    # About whom and what: another owner, one slot, one that changed, the same words.
    "other_owner": lambda p: p.newer.owners.isdisjoint(p.older.owners),
    "owner_is_named": lambda p: any(one and one in p.older.small for one in p.newer.owners),
    "slot": lambda p: not p.newer.slots.keys().isdisjoint(p.older.slots),
    "slot_changes": lambda p: any(p.newer.slots.get(one) for one in p.older.slots),
    "shares": lambda p: bool(p.shared),
    "shared_words": lambda p: len(p.shared) / max(1, len(p.older.words)),
    "asked_words": lambda p: len(p.asked & p.newer.words) / max(1, len(p.asked)),
    # "My gym code is 1" and "My gate code is 2" are alike but for what the question names.
    "begins_alike": lambda p: p.beginning,
    "differs_twice": lambda p: p.differs_twice,
    "loses_asked": lambda p: (
        p.matching * len(p.asked & p.older.words - p.newer.words) / max(1, len(p.asked))
    ),
    # A name that is not taken up, a number for a number.
    "no_name": lambda p: p.newer.names < p.older.names,
    "numbers": lambda p: p.newer.has_digits and p.older.has_digits,
    # What the newer one says of the change.
    "closes": lambda p: p.newer.closes,
    "goes_on": lambda p: p.newer.goes_on,
    "adds": lambda p: p.newer.adds,
}
"""The features of a pair, by name."""


def likelihoods(pairs: Sequence[Pair]) -> NDArray[Any]:
    """Compute for each pair how likely the newer statement took the older one's place, in 0..1.

    Args:
        pairs: of one search; all or none have what their vectors add.
    """
    of_vectors = [one.of_vectors for one in pairs if one.of_vectors is not None]
    weights, offset = _weights("with_vectors" if of_vectors else "without_vectors")
    logits = rows(pairs) @ weights + offset + (np.array(of_vectors) if of_vectors else 0.0)
    found: NDArray[Any] = 1 / (1 + np.exp(-logits))
    return found


def rows(pairs: Sequence[Pair]) -> NDArray[Any]:
    """Compute the features: a row for each pair, a column for each of `PAIR_FEATURES`."""
    made = [[compute(one) for compute in PAIR_FEATURES.values()] for one in pairs]
    return np.array(made, float).reshape(len(pairs), len(PAIR_FEATURES))


def pairs(
    statement: Callable[[int], Statement],
    question: str,
    older: Sequence[int],
    nearness: NDArray[Any],
    fit: NDArray[Any],
    vectors: NDArray[Any] | None = None,
) -> dict[tuple[int, int], Pair]:
    """Pair statements with the newer ones near them that may replace them, by their indices.

    Args:
        statement: returns one by its index; called only for those that are paired.
        older: the indices of those of which newer ones are looked for, above all among themselves.
        nearness: of each of these (row) to each statement, on the embedder's own scale; 0 to one
            that is not newer.
        fit: how near each statement is to the question, as above.
        vectors: of the default embedder, a row for each statement; None of another.

    Returns:
        By the indices of the older and of the newer one.
    """
    asked = matter_words(question.lower())
    gain = fit - fit[older][:, None]
    added = None if vectors is None else _added(vectors[older], vectors)
    statement = cache(statement)
    found = {}
    for row, new in zip(*np.nonzero(_may(older, nearness, gain, added)), strict=True):
        earlier, later = statement(older[row]), statement(int(new))
        if not may_be_replaced_by(earlier, later):
            continue
        names = names_of(earlier) | names_of(later)
        one, other = _told(later.text, names), _told(earlier.text, names)
        is_replaced = replaces(later.text, earlier.text, names)
        if not is_replaced and (_is_of_another(one, other) or _says_again(one, other)):
            continue
        frame, mine, others, matching = difference(one.longest, other.longest)
        most = max(1, len(one.longest), len(other.longest))
        found[int(older[row]), int(new)] = Pair(
            newer=one,
            older=other,
            nearness=float(nearness[row, new]),
            gain=float(gain[row, new]),
            asked=asked,
            is_named=earlier.name is not None and later.name is not None,
            is_replaced=is_replaced,
            shared=one.words & other.words,
            beginning=len(frame) / most,
            matching=matching / most,
            differs_twice=not set(mine).isdisjoint(others),
            of_vectors=None if added is None else float(added[row, new]),
        )
    return found


def _may(
    older: Sequence[int],
    nearness: NDArray[Any],
    gain: NDArray[Any],
    added: NDArray[Any] | None,
) -> NDArray[Any]:
    """Tell which pairs are worth reading: near ones of which the newer one is of `older`, too.

    With vectors, for each older one the newer one that is likeliest by its numbers alone as well.
    """
    near: NDArray[Any] = nearness >= FAR
    worth = np.zeros_like(near)
    worth[:, older] = True
    if added is not None:
        weights, offset = _weights("with_vectors")
        of_near, of_gain = (weights[[*PAIR_FEATURES].index(name)] for name in ("nearness", "gain"))
        logits = np.where(near, added + of_near * nearness + of_gain * gain + offset, -np.inf)
        worth |= logits >= np.maximum(_LEAST, logits.max(axis=1, keepdims=True))
    found: NDArray[Any] = near & worth
    return found


def _is_of_another(newer: _Told, older: _Told) -> bool:
    """Tell whether the newer one is about a relative or friend whom the older one does not name."""
    return any(one in KIN and one not in older.small for one in newer.owners)


def _says_again(newer: _Told, older: _Told) -> bool:
    """Tell whether the newer one has all words and values of the older one, and tells no change."""
    if not older.values or newer.closes or newer.goes_on:
        return False
    return older.words | older.values <= newer.words | newer.values


@lru_cache(maxsize=4_096)
def _told(text: str, names: frozenset[str]) -> _Told:
    read = sentences(text, names)
    slots: dict[tuple[str, str], bool] = {}
    for one in read:
        for slot, changes in one.slots.items():
            slots[slot] = slots.get(slot, False) or changes
    values = frozenset().union(*(one.values for one in read))
    small = text.lower()
    return _Told(
        small=small,
        owners=frozenset("" if one.owner in SELF else one.owner for one in read),
        slots=slots,
        words=frozenset().union(*(one.shared for one in read)),
        values=values,
        names=frozenset(one for one in values if not _DIGIT.search(one) and "@" not in one),
        longest=max((one.words for one in read), key=len, default=()),
        closes=any(one.closes for one in read),
        goes_on=any(one.goes_on for one in read),
        adds=_ADDS.search(small) is not None,
        has_digits=_DIGIT.search(small) is not None,
    )


def vector_rows(older: NDArray[Any], newer: NDArray[Any]) -> NDArray[Any]:
    """Return what is read of two vectors, and has a weight each: both, and their product."""
    return np.concatenate([newer, older, newer * older], axis=-1)


def _added(older: NDArray[Any], newer: NDArray[Any]) -> NDArray[Any]:
    """Compute what the vectors of each older (row) and newer one (column) add to the logit."""
    of_newer, of_older, of_both = _vector_weights()
    found: NDArray[Any] = (older * of_both) @ newer.T
    found += newer @ of_newer
    found += (older @ of_older)[:, None]
    return found


@cache
def _weights(name: str) -> tuple[NDArray[Any], float]:
    made = json.loads(files(__package__).joinpath("replacement.json").read_text("utf-8"))[name]
    return np.array([made["features"][name] for name in PAIR_FEATURES]), made["offset"]


@cache
def _vector_weights() -> NDArray[Any]:
    found: NDArray[Any] = np.load(str(files(__package__).joinpath("replacement.npy")))
    return found
