"""Train how the default embedder reads a question, so that it is near to what answers it.

    python benchmarks/train_questions.py [--write]

A sentence encoder puts a question beside other questions. Two affine maps move it to its answers:
one its vector (`question_map.npy`), one the vectors of its words (`question_projection.npy`). Texts
stay where they are, and so what is stored stays valid. Both maps learn from the memories of
`ranking_sets.py` and the sentences of `corrections.toml` and `questions.toml` that the text which
answers is the nearest of its memory (InfoNCE, arXiv 1807.03748). Printed is the share of questions
for which it is, before and after, also for the sets that end with `apart` or `checked`, which
nothing is trained on.
"""

import random
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import evidence
import numpy as np
import ranking_sets
import typer
from descent import descended
from evidence import Session
from numpy.typing import NDArray
from ranking_cases import Case, Question
from rich.console import Console
from rich.table import Table
from train_replacement import APART, NAMES

from commonplace import Fact, Message, Scope
from commonplace.models import sentence_encoder
from commonplace.models.sentence_encoder import SentenceEncoder, load_projection
from commonplace.types import is_short

Array = NDArray[Any]

HERE = Path(__file__).parent
SEEDS = (0, 1)
DATED = ("exact date", "relative date")  # asked for by the day, of which a text says nothing
FOLDS = (("en", "mixed"), ("zh",), ("de", "es"), ("ja", "ar"))
KIND = "told and asked"  # of memories made of `questions.toml`
WAYS = ("facts", "turns", "named", "asking")  # as turns of a named speaker; that ask, too
_AT = datetime(2026, 3, 1, tzinfo=UTC)
TOGETHER = 24  # groups of sentences that make a memory
# How much a question counts for the map of vectors and for that of words: made-up memories have the
# most, and are the least varied.
WEIGHTS = {"memories": (1.0, 1.0), "corrections": (1.5, 0.6), "questions": (4.0, 6.0)}
RANK = 96  # of the map of vectors
SHARPNESS, TOKEN_SHARPNESS = 12.5, 20.0  # by which a cosine is multiplied
RIDGE, TOKEN_RIDGE = 7e-4, 2e-4  # L2 penalties
CONSTANT = 0.3  # beside the vector of a question, for what is added to all
BATCH = 16  # memories of a step
ROUNDS, TOKEN_ROUNDS = 6, 12  # over all memories
RATE, TOKEN_RATE = 1e-3, 3e-3  # of the first step


class Asked(NamedTuple):
    """A question in one memory, and the places there of the texts that answer it."""

    text: str
    answers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Told:
    """The texts of one memory, and what is asked of it."""

    source: str
    name: str
    texts: Sequence[str]
    asked: Sequence[Asked]

    @property
    def is_apart(self) -> bool:
        """Tell whether nothing is trained on it."""
        return self.name.split(",")[0].endswith(APART)


def memories() -> Iterator[Told]:
    """Read all that is told and asked."""
    for seed in SEEDS:
        yield from _composed(ranking_sets.develop(seed), "memories")
    yield from _composed(ranking_sets.apart(SEEDS[0]), APART[0])
    for language, sets in _read("corrections.toml"):
        for name, lists in sets.items():
            of_newer = (*lists["replaced"], *lists.get("added", ()))
            groups = [[(new, asked), (old, "")] for old, new, asked in of_newer]
            groups += [[(old, asked), (new, "")] for old, new, asked in lists["kept"]]
            yield from _together(groups, "corrections", f"{language} {name}")
    for language, sets in _read("questions.toml"):
        for name, lists in sets.items():
            yield from _together(lists["groups"], "questions", f"{language} {name}")


def _read(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from tomllib.loads((HERE / name).read_text("utf-8")).items()


def _composed(cases: Sequence[Case], source: str) -> Iterator[Told]:
    for case in cases:
        spoken = {
            evidence.record_id(session.scope, one): one.text
            for session in case.sessions
            for one in session.contents
            if is_short(one.text)
        }
        texts = [*dict.fromkeys(spoken.values())]
        asked = [
            Asked(one.text, [texts.index(text) for text in {spoken[id_] for id_ in gold}])
            for one in case.questions
            if one.kind not in DATED and (gold := one.gold & spoken.keys()) and gold < spoken.keys()
        ]
        if asked:
            yield Told(source, f"{source}, {case.language}", texts, asked)


def _together(groups: Sequence[Sequence[Sequence[str]]], source: str, name: str) -> Iterator[Told]:
    """Make memories of groups of texts, each with its question or none."""
    mixed = random.Random(1).sample(groups, len(groups))
    for start in range(0, len(mixed), TOGETHER):
        pairs = [pair for group in mixed[start : start + TOGETHER] for pair in group]
        texts = [text.removeprefix("fact: ") for text, _ in pairs]
        yield Told(
            source, name, texts, [Asked(asked, [i]) for i, (_, asked) in enumerate(pairs) if asked]
        )


# -- as vectors ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Encoded:
    """One memory as arrays.

    Attributes:
        texts: their vectors. questions: theirs, before any map.
        tokens: of the texts, one after the other, of unit length. of_text: where each text begins.
        words: of the questions, one after the other, before any projection.
        of_question: where each question begins.
        answers: which text (column) answers which question (row), in sum 1 for each question.
        weights: of each question, in `WEIGHTS`.
    """

    told: Told
    texts: Array
    questions: Array
    tokens: Array
    of_text: Array
    words: Array
    of_question: Array
    answers: Array
    weights: tuple[float, float]


def encoded(every: Sequence[Told]) -> list[Encoded]:
    """Encode all texts and questions, each once."""
    backend = sentence_encoder.loaded_backend()
    weights, bias = backend.model.cnn_W, backend.model.cnn_b
    spoken = sorted({text for told in every for text in told.texts}, key=len)
    vectors, tokens = {}, {}
    for text, found in zip(spoken, backend.embed_tokens(spoken, is_question=False), strict=True):
        vectors[text] = np.array(found.vector, np.float32)
        raw = np.frombuffer(found.tokens, "i1").reshape(-1, SentenceEncoder.token_dimensions)
        tokens[text] = raw / np.float32(127)
    asked = sorted({one.text for told in every for one in told.asked}, key=len)
    questions, words = {}, {}
    for text, (vector, features) in zip(asked, backend.telling(asked), strict=True):
        questions[text], words[text] = vector, features @ weights + bias
    found = []
    for told in every:
        answers = np.zeros((len(told.asked), len(told.texts)), np.float32)
        for row, one in enumerate(told.asked):
            answers[row, one.answers] = 1 / len(one.answers)
        table, starts = _stacked([tokens[text] for text in told.texts])
        said, begins = _stacked([words[one.text] for one in told.asked])
        found.append(
            Encoded(
                told=told,
                texts=np.stack([vectors[text] for text in told.texts]),
                questions=np.stack([questions[one.text] for one in told.asked]),
                tokens=table,
                of_text=starts,
                words=said,
                of_question=begins,
                answers=answers,
                weights=WEIGHTS.get(told.source, (1.0, 1.0)),
            )
        )
    return found


def _stacked(parts: Sequence[Array]) -> tuple[Array, Array]:
    sizes = np.array([len(one) for one in parts])
    return np.concatenate(parts), np.cumsum(sizes) - sizes


# -- what is learned -----------------------------------------------------------------------------


def missed(scores: Array, answers: Array) -> Array:
    """Compute the slopes of the loss of each answer against all that does not answer."""
    others = np.where(answers > 0, -np.inf, scores)
    most = others.max(axis=1, keepdims=True)
    shares = np.exp(others - most)
    total = shares.sum(axis=1, keepdims=True)
    pull = answers / (1 + np.exp(scores - most - np.log(total)))
    slopes: Array = shares / total * pull.sum(axis=1, keepdims=True) - pull
    return slopes


def fitted_map(every: Sequence[Encoded]) -> Array:
    """Find what is added to the vector of a question: two factors of `RANK` rows, and a row."""
    shares = _shares(every, 0, SHARPNESS)
    size = every[0].questions.shape[1]

    def slopes(weights: Array, some: Array) -> Array:
        found = np.zeros_like(weights)
        for one in some.tolist():
            told = every[one]
            asked = _with_constant(told.questions)
            moved = told.questions + asked @ weights
            pull = missed(SHARPNESS * (moved @ told.texts.T), told.answers)
            found += asked.T @ (shares[one] * pull @ told.texts)
        return found + 2 * RIDGE * len(some) / len(every) * weights

    start = np.zeros((size + 1, size), np.float32)
    fitted = descended(slopes, start, len(every), batch=BATCH, rounds=ROUNDS, rate=RATE)
    *found, added = fitted
    left, spread, right = np.linalg.svd(found)
    factors = (left * np.sqrt(spread)).T[:RANK], (np.sqrt(spread) * right.T).T[:RANK]
    return np.concatenate([*factors, CONSTANT * added[None]])


def _with_constant(questions: Array) -> Array:
    constant = np.full((len(questions), 1), CONSTANT, np.float32)
    return np.concatenate([questions, constant], axis=1)


def fitted_projection(every: Sequence[Encoded], start: Array) -> Array:
    """Find the projection of the words of a question, which begins as that of a text's."""
    shares = _shares(every, 1, TOKEN_SHARPNESS)

    def slopes(weights: Array, some: Array) -> Array:
        found = np.zeros_like(weights)
        for one in some.tolist():
            told = every[one]
            projected = told.words @ weights[:-1] - weights[-1]
            length = np.linalg.norm(projected, axis=1, keepdims=True)
            unit = projected / length
            cosines, best, scores = _late(told, unit)
            pull = missed(TOKEN_SHARPNESS * scores, told.answers)
            sizes = np.diff(np.append(told.of_question, len(unit)))
            each = shares[one] * pull / sizes[:, None]
            each = np.repeat(each.astype(np.float32), sizes, axis=0)
            # The slope of a best cosine is the token that has it.
            width = np.diff(np.append(told.of_text, len(told.tokens)))
            is_best = cosines >= np.repeat(best, width, axis=1)
            down = (is_best * np.repeat(each, width, axis=1)) @ told.tokens
            down -= unit * np.einsum("wd,wd->w", unit, down)[:, None]
            down /= length
            found += np.vstack([told.words.T @ down, -down.sum(axis=0)])
        return found + 2 * TOKEN_RIDGE * len(some) / len(every) * (weights - start)

    return descended(slopes, start, len(every), batch=BATCH, rounds=TOKEN_ROUNDS, rate=TOKEN_RATE)


def _shares(every: Sequence[Encoded], place: int, sharpness: float) -> Array:
    """Compute what the slopes of each memory count, in sum over its questions."""
    weights = np.array([one.weights[place] for one in every], np.float32)
    return sharpness * weights / (weights @ [len(one.questions) for one in every])


def _late(one: Encoded, words: Array) -> tuple[Array, Array, Array]:
    """Compute how near the words of each question, unit vectors, are to those of each text.

    Returns:
        The cosine of each word (row) and token, the best of each word and text, and their mean
        over the words of each question (row).
    """
    cosines = words @ one.tokens.T
    best = np.maximum.reduceat(cosines, one.of_text, axis=1)
    number = np.diff(np.append(one.of_question, len(words)))
    return cosines, best, np.add.reduceat(best, one.of_question) / number[:, None]


class Reading(NamedTuple):
    """How questions are read: what `QUESTION_MAP` and `QUESTION_PROJECTION` have."""

    map: Array
    projection: Array

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let every default embedder of this process read questions so."""
        backend = sentence_encoder.loaded_backend()
        backend.read_questions(self.map, self.projection[:-1], self.projection[-1])
        try:
            yield
        finally:
            backend.read_questions(*sentence_encoder.shipped_reading())


def trained(every: Sequence[Encoded], fold: int | None = None) -> Reading:
    """Train on all that is not kept apart, nor left out in one of `FOLDS`."""
    known = [one for one in every if not one.told.is_apart]
    if fold is not None:
        out = {f"memories, {language}" for language in FOLDS[fold]}
        asked = [place for place, one in enumerate(known) if one.told.source == "questions"]
        held = {*asked[fold :: len(FOLDS)]}
        known = [
            one for place, one in enumerate(known) if place not in held and one.told.name not in out
        ]
    start = np.vstack(load_projection(sentence_encoder.PROJECTION))
    return Reading(fitted_map(known), fitted_projection(known, start))


def left_out() -> dict[str, Reading]:
    """Train for each of `FOLDS` a reading that has not seen it.

    What weighs the features of a search must not see questions that the reading learned from.

    Returns:
        By the language of made-up memories, and by the fold, which is the `pair` of `cases`.
    """
    every = encoded([*memories()])
    readings = [trained(every, fold) for fold in range(len(FOLDS))]
    found = {one: readings[fold] for fold, languages in enumerate(FOLDS) for one in languages}
    return found | {str(fold): one for fold, one in enumerate(readings)}


def cases(*, of_apart: bool = False) -> Iterator[Case]:
    """Give the memories of `questions.toml`, in turn in each of `WAYS`.

    Args:
        of_apart: give those that nothing is trained on, in all of them.
    """
    known = (one for one in memories() if one.source == "questions" and one.is_apart == of_apart)
    for number, told in enumerate(known):
        for way in WAYS if of_apart else [WAYS[number % len(WAYS)]]:
            yield _case(told, number, way)


def _case(told: Told, number: int, way: str) -> Case:
    speaker = NAMES[number % len(NAMES)]
    scope = Scope(user_id=f"{speaker} {number} {way}", session_id="all")
    name = speaker if way == "named" else None
    texts = _with_questions(told) if way == "asking" else told.texts
    said = [
        Fact(text=text) if way == "facts" else Message(text=text, at=_AT, id=f"{place}", name=name)
        for place, text in enumerate(texts)
    ]
    ids = [evidence.record_id(scope, one) for one in said]
    return Case(
        kind=KIND,
        language=told.name.split()[0],
        form="facts" if way == "facts" else "turns",
        sessions=(Session(scope=scope, contents=said),),
        questions=tuple(
            Question(
                kind=f"{KIND}, {way}" if way in WAYS[2:] else KIND,
                text=one.text,
                scope=scope,
                gold=frozenset(ids[place] for place in one.answers),
                asked_at=_AT + timedelta(days=30),
            )
            for one in told.asked
        ),
        pair="" if told.is_apart else str(number % len(FOLDS)),
    )


def _with_questions(told: Told) -> list[str]:
    """Let every second text ask, too, what another one of its group answers."""
    questions = [one.text for one in told.asked]
    return [
        text if place % 2 else f"{text} {questions[place + 1]}"
        for place, text in enumerate(told.texts)
    ]


# -- what is shown -------------------------------------------------------------------------------


def table(every: Sequence[Encoded], reading: Reading, before: Array) -> Table:
    """Lay out for how many questions of each set the nearest text answers."""
    found: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for one in every:
        down, up = np.split(reading.map[:-1], 2)
        moved = one.questions + one.questions @ down.T @ up + reading.map[-1]
        scores = [one.questions @ one.texts.T, moved @ one.texts.T]
        for weights in (before, reading.projection):
            words = one.words @ weights[:-1] - weights[-1]
            words /= np.linalg.norm(words, axis=1, keepdims=True)
            scores.append(_late(one, words)[-1])
        best = [each.argmax(axis=1) for each in scores]
        for row, answers in enumerate(one.answers > 0):
            found[one.told.name].append(tuple(bool(answers[each[row]]) for each in best))
    shown = Table("set", "n", "vector", "moved", "words", "moved", title="nearest text answers")
    for name, rows in found.items():
        shown.add_row(name, str(len(rows)), *(f"{one:.3f}" for one in np.mean(rows, axis=0)))
    return shown


def main(write: Annotated[bool, typer.Option("--write")] = False) -> None:
    """Train both maps, print what they change, and write them if wished."""
    every = encoded([*memories()])
    found = trained(every)
    before = np.vstack(load_projection(sentence_encoder.PROJECTION))
    Console().print(table(every, found, before))
    if write:
        np.save(str(sentence_encoder.QUESTION_MAP), found.map.astype(np.float16))
        np.save(str(sentence_encoder.QUESTION_PROJECTION), found.projection.astype(np.float16))


if __name__ == "__main__":
    typer.run(main)
