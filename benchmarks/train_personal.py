"""Measure what tells of its speaker: the weights in `retrieval/personal.npy`.

    python benchmarks/train_personal.py [--write]

Reads the sentences of `personal.toml`, which were judged by hand, with and without a speaker's
name in front, and the turns of `corrections.toml`, which all state something. Every fourth of each
list is kept apart from training, and what `train_replacement.py` keeps apart. The offset is then
chosen so that of the sentences kept apart one statement in a hundred is lost at most. Lost is how
many statements count as something else, wrong how many others count as statements.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from scipy.special import expit

from commonplace.retrieval import personal

SENTENCES = Path(__file__).with_name("personal.toml")
WEIGHTS = Path(personal.__file__).with_name("personal.npy")
_QUESTION = re.compile("[?？؟]")
_NAMES = (None, "Alice")
_APART = 4  # every how many are kept apart
_LOST = 0.01  # of the statements kept apart at most
_CORRECTIONS = 0.6  # what they weigh of all statements
_RIDGE = 3e-3  # L2 penalty
_STEPS = 500

Told = tuple[str | None, str, bool, bool]
"""A speaker, what he says, whether it is a statement and whether it is kept apart."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Sentences of a set: what is read of each, whether it is a statement and kept apart."""

    rows: NDArray[Any]
    states: NDArray[Any]
    apart: NDArray[Any]


def own() -> Iterator[tuple[str, list[Told]]]:
    """Read the sentences of each language."""
    for language, lists in tomllib.loads(SENTENCES.read_text("utf-8")).items():
        told = [
            (name, text, label == "states", place % _APART == 0)
            for name in _NAMES
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


def judged(model: scoring.Cached, told: Sequence[Told]) -> Judged:
    """Compute what is read of sentences."""
    names, texts, states, apart = zip(*told, strict=True)
    said = [f"{name}: {text}" if name else text for name, text in zip(names, texts, strict=True)]
    vectors = scoring.vectors(model, said, "document")
    rows = [*map(personal.row, texts, vectors)]
    return Judged(np.array(rows), np.array(states), np.array(apart))


def trained(own: Sequence[Judged], corrections: Judged) -> NDArray[Any]:
    """Fit a weight for each column on what is not kept apart, and the offset on what is."""
    parts = (
        (1, 1 - _CORRECTIONS, [one.rows[one.states & ~one.apart] for one in own]),
        (1, _CORRECTIONS, [corrections.rows[~corrections.apart]]),
        (0, 1.0, [one.rows[~one.states & ~one.apart] for one in own]),
    )
    tables = [np.concatenate(rows) for *_, rows in parts]
    sizes = [*map(len, tables)]
    table = np.concatenate(tables)
    states = np.repeat([state for state, *_ in parts], sizes)
    each = np.repeat([part[1] / 2 / size for part, size in zip(parts, sizes, strict=True)], sizes)
    center, width = table.mean(axis=0), table.std(axis=0) + 1e-6
    table = (table - center) / width

    def loss(found: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        weights, logits = found[:-1], table @ found[:-1] + found[-1]
        value = each @ np.logaddexp(0.0, np.where(states == 1, -logits, logits))
        missed = each * (expit(logits) - states)
        down = missed @ table + 2 * _RIDGE * weights
        return float(value + _RIDGE * weights @ weights), np.append(down, missed.sum())

    start = np.zeros(table.shape[1] + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    weights = found[:-1] / width
    logits = np.sort(np.concatenate([one.rows[one.states & one.apart] for one in own]) @ weights)
    return np.append(weights, -logits[int(_LOST * len(logits))])


def figures(one: Judged, weights: NDArray[Any], is_apart: bool) -> list[str]:
    """Count the statements that are lost, and the others that count as statements."""
    personal = one.rows @ weights[:-1] + weights[-1] >= 0
    part = one.apart == is_apart
    counted = (~personal[part & one.states], personal[part & ~one.states])
    return [f"{each.sum()}/{len(each)}" for each in counted]


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    write: Annotated[bool, typer.Option("--write")] = False,
) -> None:
    """Measure, print the figures of each language, and write the weights if wished."""
    with ranking_sets.cached_embedder(cache) as model:
        sets = {language: judged(model, told) for language, told in own()}
        corrections = judged(model, of_corrections())
    weights = trained([*sets.values()], corrections)
    table = Table("set", "lost", "wrong", "apart: lost", "wrong")
    for name, one in {**sets, "corrections": corrections}.items():
        table.add_row(name, *figures(one, weights, False), *figures(one, weights, True))
    Console().print(table)
    if write:
        np.save(WEIGHTS, weights.astype(np.float32))


if __name__ == "__main__":
    typer.run(main)
