"""Does a relevance of .5 separate what answers a question from what does not?

    python benchmarks/calibration.py [--fit] [--embedder default|minilm-tokens|hash]

Stores of made-up facts and chat turns, in English and Chinese, each with half of its topics told
among other things. `calibration_en.toml` and `calibration_zh.toml` hold the templates: the even
topics fit the constants of `commonplace.retrieval.calibration`, the odd ones, with other seeds,
are for the tables. `--fit` prints constants to write there.

- kept, or recall: share of answerable questions whose answer is above the threshold, by what they
  share with it: words, none, or all, as bare names of what is looked for do.
- shown: share of questions and names without an answer for which any record is above the threshold.
  The questions are about topics that were not told, and about the world.
- precision: share of the records above the threshold, over all questions, that answer.
"""

import random
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import scoring
import smalltalk
import typer
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

from commonplace import Fact, Memory, Message, Record, Scope
from commonplace.model_calls import embed
from commonplace.ports.models import Embedder
from commonplace.ports.stores import Hit
from commonplace.retrieval.calibration import (
    PROBES,
    Script,
    features,
    measured_scale,
    question_words,
)
from commonplace.retrieval.lexical import count_words, vocabulary

Form = Literal["facts", "chat"]
Group = Literal["words", "none", "name", "other"]
LANGUAGES: dict[str, tuple[Script, smalltalk.Parts]] = {
    "en": ("latin", smalltalk.ENGLISH),
    "zh": ("cjk", smalltalk.CHINESE),
}
FIT_SEEDS, HELD_OUT_SEEDS = range(12), range(100, 112)
THRESHOLDS = (0.3, 0.5)
_NOISE, _UNRELATED = 24, 8  # turns of small talk, and questions about the world, in a store
_AT = datetime(2025, 1, 1, tzinfo=UTC)
_ROUNDS = 12
_RIDGE = 0.05
_SHOWN = 0.1  # of the fitted questions without an answer, those for which .5 shows something


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of a store.

    Attributes:
        gold: the text that answers; None if there is none.
        group: what it shares with that one; without one, `name` or `other`.
    """

    text: str
    gold: str | None
    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """What one user told, and what is asked."""

    language: str
    form: Form
    texts: tuple[str, ...]
    questions: tuple[Asked, ...]


def make_store(language: str, form: Form, seed: int, *, held_out: bool) -> Store:
    """Make up a store of half of the topics of a part; the same seed makes the same one."""
    part = slice(int(held_out), None, 2)
    templates = _templates(language)
    chance = random.Random(f"{language} {form} {seed}")
    topics: list[dict[str, Any]] = templates["topics"][part]
    told = set(chance.sample(range(len(topics)), len(topics) // 2))
    texts, questions = [], []
    for number, topic in enumerate(topics):
        value = chance.choice(topic["values"])
        text = chance.choice(topic[form]).format(value=value) if number in told else None
        texts += [text] if text else []
        questions += [_asked(one, text) for one in (*topic["ask"], *topic["freely"])]
        questions.append(Asked(text=value, gold=text, group="name"))
    unrelated = chance.sample(templates["unrelated"][part], _UNRELATED)
    questions += [Asked(text=one, gold=None, group="other") for one in unrelated]
    if form == "facts":
        texts += templates["notes"][part]
    else:
        parts = LANGUAGES[language][1]
        numbers = chance.sample(range(10_000), _NOISE)
        texts += [*templates["chatter"][part], *(smalltalk.turn(one, parts) for one in numbers)]
    chance.shuffle(texts)
    return Store(language=language, form=form, texts=tuple(texts), questions=tuple(questions))


def _templates(language: str) -> dict[str, Any]:
    path = Path(__file__).with_name(f"calibration_{language}.toml")
    return tomllib.loads(path.read_text("utf-8"))


def _asked(question: str, gold: str | None) -> Asked:
    if gold is None:
        return Asked(text=question, gold=None, group="other")
    shares = not question_words(question).isdisjoint(vocabulary(gold))
    return Asked(text=question, gold=gold, group="words" if shares else "none")


# -- fit ----------------------------------------------------------------------------------------


def fit(embedder: Embedder) -> None:
    """Print the scales and curves that the even topics give."""
    for language, (script, _) in LANGUAGES.items():
        probes = embed(embedder, PROBES[script], purpose="document", limit=1_000)
        scale = measured_scale([one.vector for one in probes])
        print(f"{script}: Scale({scale.unrelated:.3f}, {scale.related:.3f})")
        rows = [
            row
            for form in ("facts", "chat")
            for seed in FIT_SEEDS
            for row in _rows(
                make_store(language, form, seed, held_out=False), embedder, scale.place
            )
        ]
        names = ("cosine", "words", "length", "turn", "asking", "base")
        weights = zip(names, _fitted(rows), strict=True)
        print(f"{script}: Curve({', '.join(f'{name}={value:.2f}' for name, value in weights)})")


def _rows(store: Store, embedder: Embedder, place: Any) -> Iterator[tuple[np.ndarray, int | None]]:
    """Compute, for each question, what a curve weighs of each record, and which one answers."""
    records = np.array(
        [one.vector for one in embed(embedder, store.texts, purpose="document", limit=1_000)]
    )
    asked = [one.text for one in store.questions]
    queries = embed(embedder, asked, purpose="query", limit=1_000)
    for question, query in zip(store.questions, queries, strict=True):
        words = question_words(question.text)
        cosines = records @ np.array(query.vector)
        rows = [
            (place(cosine), *features(words, _hit(text, store.form, cosine)), 1.0)
            for text, cosine in zip(store.texts, cosines, strict=True)
        ]
        yield np.array(rows), store.texts.index(question.gold) if question.gold else None


def _hit(text: str, form: Form, cosine: float) -> Hit:
    kind: Literal["fact", "episode"] = "fact" if form == "facts" else "episode"
    record = Record(
        id=text, text=text, kind=kind, scope=Scope(user_id="user"),
        created_at=_AT, updated_at=_AT, occurred_at=_AT,
    )  # fmt: skip
    return Hit(record=record, dense=cosine, lexical=0.0, words=count_words(text))


def _fitted(rows: Sequence[tuple[np.ndarray, int | None]]) -> np.ndarray:
    """Fit the curve that separates what answers from the best of what does not.

    That best one depends on the curve, so it is chosen and fitted in turns. Last, the constant is
    set by how often one of them may be above .5.
    """
    answers = [candidates[gold] for candidates, gold in rows if gold is not None]
    others = [candidates for candidates, gold in rows if gold is None]
    weights = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    for _ in range(_ROUNDS):
        best = [candidates[np.argmax(candidates @ weights)] for candidates in others]
        found = _logistic(np.array(answers), np.array(best))
        weights = (weights + found) / 2
    best_others = [float((candidates @ weights).max()) for candidates in others]
    weights[-1] -= np.quantile(best_others, 1 - _SHOWN)
    return weights


def _logistic(ones: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """Fit a logistic regression by Newton's method; both classes count the same."""
    values = np.concatenate([ones, zeros])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    mean[-1], spread[-1] = 0.0, 1.0  # the constant
    spread[spread == 0] = 1.0
    values = (values - mean) / spread
    wanted = np.repeat([1.0, 0.0], [len(ones), len(zeros)])
    shares = np.repeat([500 / len(ones), 500 / len(zeros)], [len(ones), len(zeros)])
    ridge = np.diag([_RIDGE] * values.shape[1])
    weights = np.zeros(values.shape[1])
    for _ in range(40):
        expected = 1 / (1 + np.exp(-values @ weights))
        slope = values.T @ (shares * (expected - wanted)) + ridge @ weights
        curvature = (values.T * (shares * expected * (1 - expected))) @ values + ridge
        weights -= np.linalg.solve(curvature, slope)
    weights /= spread
    weights[-1] -= weights[:-1] @ mean[:-1]
    return weights


# -- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a search gave.

    Attributes:
        relevance: of the record that answers; 0 if there is none.
        others: relevance of all others.
    """

    asked: Asked
    relevance: float
    others: tuple[float, ...]


def answers(memory: Memory, store: Store, scope: Scope) -> list[Answer]:
    """Tell a store and ask all of its questions."""
    if store.form == "facts":
        memory.add([Fact(text=text) for text in store.texts], scope)
    else:
        turns = [Message(text=text, role="user") for text in store.texts]
        memory.add(turns, Scope(user_id=scope.user_id, session_id="chat"), infer=False)
    found = []
    for asked in store.questions:
        matches = memory.search(asked.text, scope, top_k=len(store.texts))
        gold = next((one for one in matches if one.record.text == asked.gold), None)
        others = tuple(one.relevance for one in matches if one is not gold)
        found.append(Answer(asked=asked, relevance=gold.relevance if gold else 0.0, others=others))
    return found


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "-"


def laid_out(found: dict[tuple[str, Form], list[Answer]], threshold: float) -> Table:
    """Lay out one line for each language and form."""
    table = Table(title=f"threshold {threshold}")
    table.add_column("stored")
    for name in (
        "kept: all", "shares words", "shares none", "names", "shown: all", "questions", "names",
        "precision",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    for (language, form), every in found.items():
        golden = [one for one in every if one.asked.gold]
        empty = [one for one in every if not one.asked.gold]
        kept = [
            [one.relevance >= threshold for one in golden if one.asked.group in groups]
            for groups in (("words", "none", "name"), ("words",), ("none",), ("name",))
        ]
        shown = [
            [max(one.others) >= threshold for one in empty if one.asked.group in groups]
            for groups in (("other", "name"), ("other",), ("name",))
        ]
        right = sum(kept[0])
        wrong = sum(value >= threshold for one in every for value in one.others)
        precision = f"{right / max(1, right + wrong):.2f}"
        table.add_row(f"{language} {form}", *map(_share, [*kept, *shown]), precision)
    return table


def main(
    fits: Annotated[bool, typer.Option("--fit", help="Print constants to ship.")] = False,
    embedder: Annotated[str, typer.Option(help="default, minilm-tokens or hash.")] = "default",
    file: TablesFile = None,
) -> None:
    """Print the constants that the even topics give, or the tables of the odd ones."""
    model = scoring.cached(scoring.embedder(embedder))
    if fits:
        fit(model)
        return
    found: dict[tuple[str, Form], list[Answer]] = {}
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=model) as memory:
        for language in LANGUAGES:
            for form in ("facts", "chat"):
                rows = found[language, form] = []
                for seed in HELD_OUT_SEEDS:
                    store = make_store(language, form, seed, held_out=True)
                    scope = Scope(user_id=f"{language} {form} {seed}")
                    rows += answers(memory, store, scope)
    tables = [laid_out(found, threshold) for threshold in THRESHOLDS]
    Console(width=120).print(*tables)
    save(file, tables)


if __name__ == "__main__":
    typer.run(main)
