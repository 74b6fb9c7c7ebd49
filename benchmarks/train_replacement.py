"""Measure the weights of `retrieval/replacement.json`: how likely a newer statement replaces one.

    python benchmarks/train_replacement.py [--write]

Reads the pairs of `corrections.toml`, which were judged by hand, and makes unrelated ones by taking
the newer of another pair. Each set is left out in turn and judged by weights of the others; the set
`apart` is never trained on. Found is the share of replaced statements with a likelihood of .5,
wrong that of pairs which both hold, far that of unrelated ones; then what the rules alone find.
"""

import json
import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import ranking_sets
import scoring
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from commonplace.retrieval import replacement
from commonplace.retrieval.calibration import Calibration
from commonplace.retrieval.current import Statement
from commonplace.retrieval.replacement import PAIR_FEATURES

PAIRS = Path(__file__).with_name("corrections.toml")
WEIGHTS = Path(replacement.__file__).with_name("replacement.json")
APART = "apart"
SPEAKERS = (None, "Alice")
_STRANGERS = 6  # unrelated pairs for each
_FAR = 4.0  # what all unrelated pairs weigh, where all that are replaced weigh 1
_RIDGE = 5e-3
_STEPS = 60
_TOLD, _CORRECTED = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 22, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Judged:
    """Pairs of one set, as features.

    Attributes:
        rows: of `PAIR_FEATURES`, one for each.
        label: 1 replaced, 0 both hold, -1 unrelated.
    """

    rows: NDArray[Any]
    label: NDArray[Any]


def told() -> Iterator[tuple[str, list[tuple[str, str, str, int]]]]:
    """Read each set: the older text, the newer one, the question, and the label of each pair."""
    draw = random.Random(1)
    for language, halves in tomllib.loads(PAIRS.read_text("utf-8")).items():
        for half, lists in halves.items():
            found = [(*pair, 1) for pair in lists["replaced"]]
            found += [(*pair, 0) for pair in lists["kept"]]
            far = [
                (older, draw.choice(other[:2]), question, -1)
                for older, _, question, _ in found
                for other in draw.sample(found, min(_STRANGERS, len(found)))
                if other[0] != older
            ]
            yield f"{language} {half}", [*found, *far]


def judged(model: scoring.Cached, every: Sequence[tuple[str, str, str, int]]) -> Judged:
    """Compute the features of pairs, each told by a user with a name and by one without."""
    made = []
    for (older, newer, question, label), speaker in product(every, SPEAKERS):
        said = [f"{speaker}: {text}" if speaker else text for text in (older, newer)]
        texts = scoring.vectors(model, said, "document")
        [asked] = scoring.vectors(model, [question], "query")
        place = Calibration().scale(question).place
        statements = [
            Statement(text=text, moment=moment, kind="episode", role="user", name=speaker)
            for text, moment in ((older, _TOLD), (newer, _CORRECTED))
        ]
        nearness = np.maximum(place(texts @ texts.T), replacement.FAR)
        for pair in replacement.pairs(
            statements, question, nearness, place(texts @ asked)
        ).values():
            made.append((replacement.rows([pair])[0], label))
    return Judged(np.array([row for row, _ in made]), np.array([label for _, label in made]))


def trained(sets: Sequence[Judged]) -> NDArray[Any]:
    """Fit a weight for each feature, then the offset, by Newton's method with an L2 penalty."""
    rows = np.concatenate([one.rows for one in sets])
    label = np.concatenate([one.label for one in sets])
    center, width = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    table = np.column_stack([(rows - center) / width, np.ones(len(rows))])
    share = {1: 1.0, 0: 1.0, -1: _FAR}
    each = np.array([share[int(one)] / (label == one).sum() for one in label])
    each /= each.sum()
    penalty = 2 * _RIDGE * np.append(np.ones(rows.shape[1]), 0.0)
    found = np.zeros(table.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-(table @ found)))
        slope = table.T @ (each * (likely - (label == 1))) + penalty * found
        curve = (table * (each * likely * (1 - likely))[:, None]).T @ table + np.diag(
            penalty + 1e-9
        )
        found -= np.linalg.solve(curve, slope)
    weights = found[:-1] / width
    return np.append(weights, found[-1] - weights @ center)


def figures(judged: Judged, weights: NDArray[Any]) -> list[float]:
    """Compute found, wrong and far."""
    likely = 1 / (1 + np.exp(-(judged.rows @ weights[:-1] + weights[-1])))
    return [float((likely >= 0.5)[judged.label == one].mean()) for one in (1, 0, -1)]


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    write: Annotated[bool, typer.Option("--write")] = False,
) -> None:
    """Measure, print the figures of each set left out, and write the weights if wished."""
    with ranking_sets.cached_embedder(cache) as model:
        sets = {name: judged(model, every) for name, every in told()}
    known = {name: one for name, one in sets.items() if not name.endswith(APART)}
    table = Table("set", "found", "wrong", "far", "rules: found", "wrong", "far")
    rules = np.array([*(2.0 * (name == "rules") for name in PAIR_FEATURES), -1.0])
    for name, one in sets.items():
        weights = trained([other for key, other in known.items() if key != name])
        cells = [*figures(one, weights), *figures(one, rules)]
        table.add_row(name, *(f"{cell:.3f}" for cell in cells))
    Console().print(table)
    *weights, offset = (round(float(one), 4) for one in trained([*known.values()]))
    made = {"features": dict(zip(PAIR_FEATURES, weights, strict=True)), "offset": offset}
    Console().print(made)
    if write:
        WEIGHTS.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
