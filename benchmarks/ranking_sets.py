"""Sets of memories that a ranking is trained and judged on.

`develop` and `apart` compose them from `benchmarks/ranking/`, of all kinds and languages; `locomo`
and `beam` read those of others from files.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import ranking_kinds as kinds
from ranking_cases import FOLDER, LANGUAGES, MIXED, Case, Half, Question, mixed, sentences
from ranking_kinds import Group, Source

__all__ = ["Case", "Question", "apart", "develop"]

Composed = Callable[[Source], Iterator[Group]]

# Each kind, and how many times the questions of the others it needs.
KINDS: Mapping[Composed, float] = {
    kinds.small_facts: 1,
    kinds.facts_beside_chat: 1,
    kinds.chat_alone: 1,
    kinds.changed: 3,
}
BOTH: tuple[Composed, ...] = (kinds.small_facts, kinds.facts_beside_chat, kinds.chat_alone)
# Questions of each kind in each language.
QUESTIONS: Mapping[Half, Mapping[str, int]] = {
    "develop": {"en": 110, "zh": 80} | dict.fromkeys(("de", "ja", "es", "ar", "mixed"), 50),
    "apart": {"en": 60, "zh": 45} | dict.fromkeys(("de", "ja", "es", "ar", "mixed"), 30),
}
_MOST = 400  # groups of a kind


def develop(seed: int = 0, folder: Path = FOLDER) -> list[Case]:
    """Compose the memories to choose weights by."""
    return _composed("develop", seed, folder)


def apart(seed: int = 0, folder: Path = FOLDER) -> list[Case]:
    """Compose the memories to judge by; they share no sentence with the others."""
    return _composed("apart", seed, folder)


def _composed(half: Half, seed: int, folder: Path) -> list[Case]:
    read = {one: found for one in LANGUAGES if (found := sentences(half, one, folder))}
    wanted = QUESTIONS[half]
    cases: list[Case] = []
    for language, one in read.items():
        source = Source(one, f"{half} {seed} {language}")
        for kind, share in KINDS.items():
            cases += _taken(kind(source), round(share * wanted[language]))
    pairs = [(one, other) for one, other in MIXED if one in read and other in read]
    for one, other in pairs:
        source = Source(mixed(read[one], read[other]), f"{half} {seed} {one} {other}")
        for kind in BOTH:
            cases += _taken(kind(source), wanted["mixed"] // len(pairs))
    return cases


def _taken(groups: Iterator[Group], number: int) -> Iterator[Case]:
    """Take groups until the first memory of each has had that many questions in all."""
    for group in islice(groups, _MOST):
        yield from group
        number -= sum(one.expects == "answer" for one in group[0].questions)
        if number <= 0:
            return
