"""Made-up sentences with the word frequencies of a natural language, and a cheap embedder for them.

Needs no more than numpy, for it runs in the environments of other memories too. A number always
gives the same sentence: about 12 words, common words often and rare ones seldom (Zipf's law), a
name and often a place.
"""

import random
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Literal

import numpy as np

DIMENSIONS = 512
WORDS, NAMES, PLACES = 4_000, 300, 200
FUNCTION_WORDS = (
    "the of and to a in that it is was for on with as he she at by had not be from they which or"
    " have were all when there been one so would who what will more if out about up into than them"
    " can only other time new some could these two may then do first any my now such like our over"
    " even most me after also did many before must"
).split()
ONSETS = "b br c ch cl d dr f fl g gl gr h j k l m n p pl pr qu r s sh st t th tr v w".split()
VOWELS = "a ai e ea ee i o oa oo ou u".split()
CODAS = ["", "b", "ck", "d", "g", "l", "ll", "m", "n", "nd", "p", "r", "rn", "s", "st", "t", "x"]
ENDINGS = ["", "", "", "ed", "er", "ing", "ly", "ness", "s"]


class Sentences:
    """Sentences and questions by number; equal seeds give equal words."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        chosen = random.Random(seed)
        made = _distinct(chosen, WORDS + NAMES + PLACES, set(FUNCTION_WORDS))
        content = [word + chosen.choice(ENDINGS) for word in made[:WORDS]]
        self._words = FUNCTION_WORDS + content
        self._names = [word.title() for word in made[WORDS : WORDS + NAMES]]
        self._places = [word.title() for word in made[WORDS + NAMES :]]
        # Zipf and Mandelbrot: the second word is not half as frequent as the first.
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))

    def sentence(self, number: int) -> str:
        """Make up a sentence of 8 to 16 words."""
        return " ".join(self._parts(number)) + "."

    def question(self, number: int) -> str:
        """Ask for the sentence of that number, by its name and its three rarest words."""
        parts = self._parts(number)
        ranks = {word: rank for rank, word in enumerate(self._words)}
        rare = sorted(set(parts[1:]), key=lambda word: -ranks.get(word, 0))[:3]
        return f"What did {parts[0]} say about {' '.join(rare)}?"

    def _parts(self, number: int) -> list[str]:
        chosen = random.Random(self._seed * 1_000_003 + number)
        words = chosen.choices(self._words, cum_weights=self._weights, k=chosen.randint(7, 13))
        where = ["in", chosen.choice(self._places)] if chosen.random() < 0.5 else []
        return [chosen.choice(self._names), *words, *where]


class Vectors:
    """Embedder: the sum of one random direction for each word, of unit length.

    Texts that are prepared cost a few microseconds, so that a timed call does not time the model.
    """

    id, dimensions = "words", DIMENSIONS

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed texts now and remember them."""
        self._known.update((text, _embed(text)) for text in texts)

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts as a call does; the purpose makes no difference."""
        return self(texts)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts, one vector of 512 dimensions each, in their order."""
        known = self._known
        return [(known[text] if text in known else _embed(text)).tolist() for text in texts]


def _embed(text: str) -> Any:
    total = sum(_direction(word) for word in text.lower().rstrip(".?").split())
    return total / np.sqrt(np.square(total).sum())


@cache
def _direction(word: str) -> Any:
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSIONS, np.float32)


def _distinct(chosen: random.Random, count: int, known: set[str]) -> list[str]:
    """Make up words of one to three syllables that are not known yet."""
    made: dict[str, None] = {}
    while len(made) < count:
        syllables = chosen.choices((1, 2, 3), weights=(2, 5, 2))[0]
        word = "".join(chosen.choice(ONSETS) + chosen.choice(VOWELS) for _ in range(syllables))
        word += chosen.choice(CODAS)
        if word not in known and 2 < len(word) < 13:
            made[word] = None
    return list(made)
