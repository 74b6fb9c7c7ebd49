"""Measure what tells of its speaker, what asks for it and what answers, for `personal.py`.

    python benchmarks/train_personal.py [--write]

Reads the sentences of `personal.toml`, which were judged by hand, with and without a speaker's
name in front, and the turns of `corrections.toml`, which all state something; then the messages of
`asking.toml`, and the questions of `questions.toml`, which all ask for something that was told;
then the replies of `replies.toml`, and those turns again. Every fourth of each list is kept apart
from training, and the sets that others keep apart. The offset is then chosen so that of the first
kept apart one in a hundred is lost at most, and one in ten of the replies, many of which are very
like the others. Lost is how many of what is looked for count as something else, wrong how many
others count as it.

Whether a question is for what holds no longer is learned from those of `asked_for.toml`, of made-up
memories and of `questions.toml`. Printed is, in sets that nothing is trained on, how many of those
for what held before or at first are found, and how many others count as such: by the weights, and
by the usual words alone.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import ranking_sets
import scoring
import train_replacement
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit, softmax

from commonplace.model_calls import Purpose
from commonplace.retrieval import personal

SENTENCES = Path(__file__).with_name("personal.toml")
REPLIES = Path(__file__).with_name("replies.toml")
ASKED_FOR = Path(__file__).with_name("asked_for.toml")
FOLDER = Path(personal.__file__).parent
_QUESTION = re.compile("[?？؟]")
_NAMES = (None, "Alice")
_UNITS = 16
_SUM_RIDGE = 1e-3  # L2 penalty of the weights of the units' sum
_STEPS = 200
_FORMER_COUNTS = 1.5  # as much as other questions
_FORMER_RIDGE = 1e-4  # L2 penalty, of features of unit spread
_IN_WORDS = 1.5  # added to the logit of what the usual words ask for

Told = tuple[str | None, str, bool, bool]
"""A speaker, what he says, whether it is what is looked for and whether it is kept apart."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Texts of a set: what is read of each, whether it is what is looked for and kept apart."""

    rows: NDArray[Any]
    is_one: NDArray[Any]
    apart: NDArray[Any]


def own(file: Path, names: Sequence[str | None]) -> Iterator[tuple[str, list[Told]]]:
    """Read the texts of each language, as told by each of these."""
    for language, lists in tomllib.loads(file.read_text("utf-8")).items():
        told = [
            (name, text, label != "other", place % ranking_sets.EVERY_APART == 0)
            for name in names
            for label, texts in lists.items()
            for place, text in enumerate(texts)
        ]
        yield language, told


def of_corrections() -> list[Told]:
    """Read the turns of corrections that ask nothing."""
    turns = {
        text: name.endswith(train_replacement.APART)
        for name, pairs in train_replacement.told()
        for *pair, _, label in pairs
        for text in pair
        if label >= 0 and not text.startswith("fact: ") and not _QUESTION.search(text)
    }
    return [(None, text, True, is_apart) for text, is_apart in turns.items()]


def of_questions() -> list[Told]:
    """Read the questions for what was told."""
    return [
        (None, question, True, name.endswith(train_replacement.APART))
        for sets in tomllib.loads(train_replacement.QUESTIONS.read_text("utf-8")).values()
        for name, lists in sets.items()
        for group in lists["groups"]
        for _, question in group
    ]


def replies(model: scoring.Cached) -> tuple[dict[str, Judged], Judged]:
    """Read the replies of each language; and the turns of corrections, which all tell something."""
    texts = tomllib.loads(REPLIES.read_text("utf-8"))
    questions = cycle([asked for lists in texts.values() for asked, _ in lists["answers"]])
    sets = {}
    for language, lists in texts.items():
        told = [
            (asked, reply, label != "other", place % ranking_sets.EVERY_APART == 0)
            for label, pairs in lists.items()
            for place, (asked, reply) in enumerate(pairs)
        ]
        sets[language] = _judged_replies(model, told)
    turns = [(next(questions), *one) for _, *one in of_corrections()]
    return sets, _judged_replies(model, turns)


def _judged_replies(model: scoring.Cached, told: Sequence[tuple[str, str, bool, bool]]) -> Judged:
    questions, texts, is_one, apart = zip(*told, strict=True)
    asked = scoring.vectors(model, questions, "query")
    vectors = scoring.vectors(model, texts, "document")
    rows = [*map(personal.reply_row, texts, vectors, asked)]
    return Judged(np.array(rows), np.array(is_one), np.array(apart))


def judged(model: scoring.Cached, told: Sequence[Told], purpose: Purpose) -> Judged:
    """Compute what is read of texts."""
    names, texts, is_one, apart = zip(*told, strict=True)
    said = [f"{name}: {text}" if name else text for name, text in zip(names, texts, strict=True)]
    vectors = scoring.vectors(model, said, purpose)
    rows = [*map(personal.row, texts, vectors)]
    return Judged(np.array(rows), np.array(is_one), np.array(apart))


def trained(
    own: Sequence[Judged], more: Judged, share: float, ridge: float, lost: float
) -> dict[str, NDArray[Any]]:
    """Fit the network on what is not kept apart, and its last offset on what is.

    Args:
        more: texts that are all looked for.
        share: what they weigh of those that are.
        ridge: L2 penalty of the units' weights.
        lost: share of what is looked for and kept apart that counts as something else.
    """
    parts = (
        (1, 1 - share, [one.rows[one.is_one & ~one.apart] for one in own]),
        (1, share, [more.rows[~more.apart]]),
        (0, 1.0, [one.rows[~one.is_one & ~one.apart] for one in own]),
    )
    tables = [np.concatenate(rows) for *_, rows in parts]
    sizes = [*map(len, tables)]
    table = np.concatenate(tables)
    is_one = np.repeat([label for label, *_ in parts], sizes)
    each = np.repeat([part[1] / 2 / size for part, size in zip(parts, sizes, strict=True)], sizes)
    center, width = table.mean(axis=0), table.std(axis=0) + 1e-6
    weights = _fitted((table - center) / width, is_one, each, ridge)
    weights["units"] /= width[:, None]
    weights["unit_offsets"] -= center @ weights["units"]
    weights = {name: one.astype(np.float16) for name, one in weights.items()}
    rows = np.concatenate([one.rows[one.is_one & one.apart] for one in own])
    least = np.sort(personal.logits(rows, weights))[int(lost * len(rows))]
    return {**weights, "offset": np.float32(weights["offset"] - least)}


def _fitted(
    table: NDArray[Any], is_one: NDArray[Any], each: NDArray[Any], ridge: float
) -> dict[str, NDArray[Any]]:
    """Fit the network on a table.

    Args:
        is_one: which rows are what is looked for, 0 or 1.
        each: what a row weighs.
    """
    width = table.shape[1]
    ends = np.cumsum([width * _UNITS, _UNITS, _UNITS])

    def named(found: NDArray[Any]) -> dict[str, NDArray[Any]]:
        units, unit_offsets, total, offset = np.split(found, ends)
        return {
            "units": units.reshape(width, _UNITS),
            "unit_offsets": unit_offsets,
            "sum": total,
            "offset": offset[0],
        }

    def loss(found: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        weights = named(found)
        units, total = weights["units"], weights["sum"]
        active = np.tanh(table @ units + weights["unit_offsets"])
        logits = active @ total + weights["offset"]
        value = each @ np.logaddexp(0.0, np.where(is_one == 1, -logits, logits))
        value += ridge * (units**2).sum() + _SUM_RIDGE * (total**2).sum()
        missed = each * (expit(logits) - is_one)
        inward = np.outer(missed, total) * (1 - active**2)
        down = [
            (table.T @ inward + 2 * ridge * units).ravel(),
            inward.sum(axis=0),
            missed @ active + 2 * _SUM_RIDGE * total,
            [missed.sum()],
        ]
        return float(value), np.concatenate(down)

    draw = np.random.default_rng(1)
    start = np.concatenate([
        draw.normal(0, 0.05, ends[0]), np.zeros(_UNITS), draw.normal(0, 0.3, _UNITS), [0.0],
    ])  # fmt: skip
    return named(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x)


def asked_for() -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Read questions with their places in `personal.FORMER`: to train with, and sets to judge."""
    sets: dict[str, dict[str, int]] = defaultdict(dict)
    for name, lists in tomllib.loads(ASKED_FOR.read_text("utf-8")).items():
        for label, texts in lists.items():
            sets[name] |= dict.fromkeys(texts, _place(label))
    for name, cases in (
        ("memories", ranking_sets.develop(0)),
        ("memories_apart", ranking_sets.apart(0)),
    ):
        for one in (question for case in cases for question in case.questions):
            sets[name][one.text] = _place(one.kind)
    for _, question, _, is_apart in of_questions():
        sets["told_apart" if is_apart else "told"][question] = 0
    apart = {name: one for name, one in sets.items() if name.endswith("apart")}
    held = set().union(*apart.values())
    known = [one for name, one in sets.items() if name not in apart]
    return {text: place for one in known for text, place in one.items() if text not in held}, apart


def _place(label: str) -> int:
    return personal.FORMER.index(label) if label in personal.FORMER else 0


def former_rows(model: scoring.Cached, texts: Iterable[str]) -> NDArray[Any]:
    """Compute what is read of questions."""
    asked = [*texts]
    vectors = scoring.vectors(model, asked, "query")
    return np.array([*map(personal.former_row, asked, vectors)])


def fitted_kinds(rows: NDArray[Any], wanted: NDArray[Any], each: NDArray[Any]) -> NDArray[Any]:
    """Fit the logits of what a question is for: a row for each feature, a column for each.

    Args:
        wanted: which of them is right, 0 or 1. each: what a question weighs.
    """
    width = rows.std(axis=0)
    width[-1] = 1.0  # of the constant
    table = rows / width
    shape = table.shape[1], wanted.shape[1]

    def loss(found: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        weights = found.reshape(shape)
        chances = softmax(table @ weights, axis=1)
        down = table.T @ (each[:, None] * (chances - wanted)) + 2 * _FORMER_RIDGE * weights
        value = -(each @ np.log((chances * wanted).sum(axis=1) + 1e-300))
        return float(value + _FORMER_RIDGE * (weights**2).sum()), down.ravel()

    start = np.zeros(shape[0] * shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    weights: NDArray[Any] = found.reshape(shape) / width[:, None]
    return weights


def train_former(model: scoring.Cached, write: bool) -> None:
    """Train and judge what tells that a question is for what holds no longer."""
    known, apart = asked_for()
    places = np.array([*known.values()])
    each = np.where(places > 0, _FORMER_COUNTS, 1.0)
    wanted = np.eye(len(personal.FORMER))[places]
    weights = fitted_kinds(former_rows(model, known), wanted, each / each.sum())
    for place, label in enumerate(("before", "first")):
        weights[place, _place(label)] += _IN_WORDS
    weights = weights.astype(np.float16)
    table = Table("former", "found", "wrong", "in words: found", "wrong")
    for name, sets in apart.items():
        is_former = np.array([*sets.values()]) > 0
        found = (former_rows(model, sets) @ weights).argmax(axis=1) > 0
        in_words = np.array([personal.asks_former(text, ()) != "" for text in sets])
        counted = [each[of] for each in (found, in_words) for of in (is_former, ~is_former)]
        table.add_row(name, *(f"{one.sum()}/{len(one)}" for one in counted))
    Console().print(table)
    if write:
        np.savez_compressed(FOLDER / "former.npz", kinds=weights)


def figures(one: Judged, weights: Mapping[str, NDArray[Any]], is_apart: bool) -> list[str]:
    """Count those that are lost, and the others that count as them."""
    found = personal.logits(one.rows, weights) >= 0
    part = one.apart == is_apart
    counted = (~found[part & one.is_one], found[part & ~one.is_one])
    return [f"{each.sum()}/{len(each)}" for each in counted]


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    write: Annotated[bool, typer.Option("--write")] = False,
) -> None:
    """Measure, print the figures of each language, and write the weights if wished."""
    with ranking_sets.cached_embedder(cache) as model:
        for name, file, names, purpose, more, share, ridge in (
            ("personal", SENTENCES, _NAMES, "document", of_corrections(), 0.6, 1e-2),
            ("asking", ranking_sets.MESSAGES, (None,), "query", of_questions(), 0.3, 3e-2),
        ):
            sets = {one: judged(model, told, purpose) for one, told in own(file, names)}
            further = judged(model, more, purpose)
            weights = trained([*sets.values()], further, share, ridge, 0.01)
            report(name, {**sets, "more": further}, weights, write)
        sets, further = replies(model)
        weights = trained([*sets.values()], further, 0.3, 1e-1, 0.1)
        report("answers", {**sets, "more": further}, weights, write)
        train_former(model, write)


def report(
    name: str, sets: Mapping[str, Judged], weights: Mapping[str, NDArray[Any]], write: bool
) -> None:
    """Print the figures of each set, and write the weights if wished."""
    table = Table(name, "lost", "wrong", "apart: lost", "wrong")
    for key, one in sets.items():
        table.add_row(key, *figures(one, weights, False), *figures(one, weights, True))
    Console().print(table)
    if write:
        np.savez_compressed(FOLDER / f"{name}.npz", **weights)


if __name__ == "__main__":
    typer.run(main)
