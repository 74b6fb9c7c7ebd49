"""Measure what tells of its speaker: the weights in `retrieval/personal.npz`.

    python benchmarks/train_personal.py [--write]

Reads the sentences of `personal.toml`, which were judged by hand, with and without a speaker's
name in front, and the turns of `corrections.toml`, which all state something. Every fourth of each
list is kept apart from training, and what `train_replacement.py` keeps apart. The offset is then
chosen so that of the sentences kept apart one statement in a hundred is lost at most. Lost is how
many statements count as something else, wrong how many others count as statements.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
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
WEIGHTS = Path(personal.__file__).with_name("personal.npz")
_QUESTION = re.compile("[?？؟]")
_NAMES = (None, "Alice")
_APART = 4  # every how many are kept apart
_LOST = 0.01  # of the statements kept apart at most
_CORRECTIONS = 0.6  # what they weigh of all statements
_UNITS = 16
_RIDGE, _SUM_RIDGE = 1e-2, 1e-3  # L2 penalties of the units' weights and of those of their sum
_STEPS = 200

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


def trained(own: Sequence[Judged], corrections: Judged) -> dict[str, NDArray[Any]]:
    """Fit the network on what is not kept apart, and its last offset on what is."""
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
    weights = _fitted((table - center) / width, states, each)
    weights["units"] /= width[:, None]
    weights["unit_offsets"] -= center @ weights["units"]
    weights = {name: one.astype(np.float16) for name, one in weights.items()}
    rows = np.concatenate([one.rows[one.states & one.apart] for one in own])
    least = np.sort(personal.logits(rows, weights))[int(_LOST * len(rows))]
    return {**weights, "offset": np.float32(weights["offset"] - least)}


def _fitted(
    table: NDArray[Any], states: NDArray[Any], each: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Fit the network on a table.

    Args:
        states: which rows are statements, 0 or 1.
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
        value = each @ np.logaddexp(0.0, np.where(states == 1, -logits, logits))
        value += _RIDGE * (units**2).sum() + _SUM_RIDGE * (total**2).sum()
        missed = each * (expit(logits) - states)
        inward = np.outer(missed, total) * (1 - active**2)
        down = [
            (table.T @ inward + 2 * _RIDGE * units).ravel(),
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


def figures(one: Judged, weights: Mapping[str, NDArray[Any]], is_apart: bool) -> list[str]:
    """Count the statements that are lost, and the others that count as statements."""
    stating = personal.logits(one.rows, weights) >= 0
    part = one.apart == is_apart
    counted = (~stating[part & one.states], stating[part & ~one.states])
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
        np.savez_compressed(WEIGHTS, **weights)


if __name__ == "__main__":
    typer.run(main)
