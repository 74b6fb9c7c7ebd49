"""Sets of memories that a ranking is trained and judged on.

`develop` and `apart` compose them from `benchmarks/ranking/`, of all kinds and languages; `locomo`
and `beam` read those of others from files. `union` gives all of them by the names of their sets.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import ranking_kinds as kinds
import scoring
from ranking_cases import FOLDER, LANGUAGES, MIXED, Case, Half, Question, mixed, sentences
from ranking_days import journals
from ranking_files import beam, conversations, locomo
from ranking_hops import hops
from ranking_kinds import Group, Source

__all__ = [
    "Case",
    "Question",
    "apart",
    "beam",
    "cached_embedder",
    "conversations",
    "develop",
    "locomo",
    "union",
]

Composed = Callable[[Source], Iterator[Group]]

# Each kind, and how many times the questions of the others it needs.
KINDS: Mapping[Composed, float] = {
    kinds.few_facts: 1,
    kinds.small_facts: 1,
    kinds.facts_beside_chat: 1,
    kinds.chat_alone: 1,
    kinds.asked_before: 1,
    kinds.changed: 5,
    kinds.lists: 1.5,
    kinds.codes: 1.5,
    kinds.negation: 1.3,
    kinds.names: 1,
    kinds.people: 1,
    kinds.typos: 0.6,
    kinds.pasted: 1.5,
    kinds.inside: 1.5,
    kinds.dialogues: 1.5,
    kinds.relations: 0.4,
    journals: 2,
    hops: 1.5,
}
BOTH: tuple[Composed, ...] = (
    kinds.few_facts,
    kinds.small_facts,
    kinds.facts_beside_chat,
    kinds.chat_alone,
    kinds.asked_before,
    kinds.codes,
)
# Questions of each kind in each language.
QUESTIONS: Mapping[Half, Mapping[str, int]] = {
    "develop": {"en": 200, "zh": 140, "mixed": 40} | dict.fromkeys(("de", "ja", "es", "ar"), 80),
    "apart": {"en": 100, "zh": 60, "mixed": 22} | dict.fromkeys(("de", "ja", "es", "ar"), 30),
}
_MOST = 400  # groups of a kind
MESSAGES = Path(__file__).with_name("asking.toml")
EVERY_APART = 4  # every how many of its messages are kept apart


def develop(seed: int = 0, folder: Path = FOLDER) -> list[Case]:
    """Compose the memories to choose weights by."""
    return _composed("develop", seed, folder)


def apart(seed: int = 0, folder: Path = FOLDER) -> list[Case]:
    """Compose the memories to judge by; they share no sentence with the others."""
    return _composed("apart", seed, folder)


def union(
    seed: int = 0,
    *,
    halves: Sequence[Half] = ("develop", "apart"),
    locomo_file: Path | None = None,
    beam_folder: Path | None = None,
) -> dict[str, list[Case]]:
    """Give the cases of every set, by its name; files that are not given are left out."""
    composed = {"develop": develop, "apart": apart}
    sets: dict[str, list[Case]] = {half: composed[half](seed) for half in halves}
    if locomo_file:
        read = {half: locomo(locomo_file, half) for half in halves}
        sets |= {f"LoCoMo, {half}": cases for half, cases in read.items() if cases}
    if beam_folder:
        sets["BEAM"] = beam(beam_folder)
    return sets


@contextmanager
def cached_embedder(folder: Path | None, name: str = "default") -> Iterator[scoring.Cached]:
    """Make an embedder that embeds a text once, and keeps vectors for the next run in a folder."""
    model = scoring.cached(scoring.embedder(name))
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        model.load(folder)
    yield model
    if folder:
        model.save(folder)


def _composed(half: Half, seed: int, folder: Path) -> list[Case]:
    read = {one: found for one in LANGUAGES if (found := sentences(half, one, folder))}
    wanted = QUESTIONS[half]
    cases: list[Case] = []
    for language, known in read.items():
        source = Source(known, f"{half} {seed} {language}")
        for kind, share in KINDS.items():
            cases += _taken(kind(source), round(share * wanted[language]))
    cases = [*_with_tasks(cases, half)]
    pairs = [(one, other) for one, other in MIXED if one in read and other in read]
    for one, other in pairs:
        source = Source(mixed(read[one], read[other]), f"{half} {seed} {one} {other}")
        for kind in BOTH:
            cases += _taken(kind(source), wanted["mixed"] // len(pairs))
    return cases


def _with_tasks(cases: Sequence[Case], half: Half) -> Iterator[Case]:
    """Say something that needs none to every memory.

    Every fourth of each language is for the half apart, as `train_personal.py` keeps them.
    """
    said = {
        language: cycle(
            [
                text
                for place, text in enumerate(lists["other"])
                if (place % EVERY_APART == 0) == (half == "apart")
            ]
        )
        for language, lists in tomllib.loads(MESSAGES.read_text("utf-8")).items()
    }
    for case in cases:
        if case.pair:  # one of several memories that are asked the same
            yield case
            continue
        asked = case.questions[0]
        task = Question(
            kind="tasks",
            text=next(said[case.language]),
            scope=asked.scope,
            gold=frozenset(),
            asked_at=asked.asked_at,
            expects="nothing",
        )
        yield replace(case, questions=(*case.questions, task))


def _taken(groups: Iterator[Group], number: int) -> Iterator[Case]:
    """Take groups until the first memory of each has had that many questions in all."""
    for group in islice(groups, _MOST):
        yield from group
        number -= sum(one.expects == "answer" for one in group[0].questions)
        if number <= 0:
            return
