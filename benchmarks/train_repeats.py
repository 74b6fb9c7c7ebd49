"""Measure how likely a newer statement says an older one again: `repeats.json` and `repeats.npy`.

    python benchmarks/train_repeats.py [--write]

Reads the pairs of `repeats.toml` and `corrections.toml`, which were judged by hand. Every fourth of
each list is kept apart from training, and the sets that `train_replacement.py` keeps apart. Found
is the share of what is said again with a likelihood of .5, wrong that of pairs which both hold, and
of those of which the newer one replaces the older one.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import ranking_sets
import train_replacement
import typer
from rich.console import Console
from rich.table import Table

from commonplace.retrieval import replacement

PAIRS = Path(__file__).with_name("repeats.toml")
FILE = Path(replacement.__file__).with_name("repeats.json")
AGAIN, HOLDS, REPLACED = 1, 0, -1
SHARE = {AGAIN: 1.0, HOLDS: 1.0, REPLACED: 1.0}  # what all pairs of a label weigh
_VECTOR_RIDGES = 5e-2, 1e-4  # L2 penalties of a part of a vector, and of a product of two parts
_ROUNDS, _RATE = 80, 5e-3  # over all pairs, which are few; rate of the first step
_APART = 4  # every how many are kept apart
_JUDGED = 0.85  # nearness of those that were judged, of the pairs of which both hold
_TOLD_BY = ((None, False), (train_replacement.NAMES, False))  # nothing is asked

Told = tuple[str, str, str, int]
"""The older text, the newer one, no question, and the label."""


def told() -> Iterator[tuple[bool, list[Told]]]:
    """Read pairs, and whether they are kept apart from training."""
    lists = tomllib.loads(PAIRS.read_text("utf-8"))
    judged = lists.pop("corrections")
    for each in lists.values():
        for label, name in ((AGAIN, "again"), (HOLDS, "other")):
            pairs = [(older, newer, "", label) for older, newer in each[name]]
            yield True, pairs[::_APART]
            yield False, [one for place, one in enumerate(pairs) if place % _APART]
    again, doubtful = ({tuple(pair) for pair in judged[name]} for name in ("again", "doubtful"))
    labels = {1: REPLACED, 0: HOLDS}
    for name, pairs in train_replacement.told():
        found = [
            (
                *(text.removeprefix("fact: ") for text in pair),
                "",
                AGAIN if is_again else labels[label],
            )
            for *pair, _, label in pairs
            if label in labels and tuple(pair) not in doubtful
            for is_again in [tuple(pair) in again]
        ]
        yield name.endswith(train_replacement.APART), found


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    write: Annotated[bool, typer.Option("--write")] = False,
) -> None:
    """Measure, print the figures of both parts, and write the weights if wished."""
    table = Table("part", "found", "wrong: hold", "replaced")
    with ranking_sets.cached_embedder(cache) as model:
        parts: dict[bool, list[train_replacement.Judged]] = {False: [], True: []}
        for is_apart, pairs in told():
            one = train_replacement.judged(model, pairs, _TOLD_BY, with_repeats=True)
            is_judged = (one.label != HOLDS) | (one.rows[:, 0] >= _JUDGED)
            parts[is_apart].append(one.part(is_judged))
    weights = train_replacement.trained(
        parts[False], True, SHARE, _VECTOR_RIDGES, None, rounds=_ROUNDS, rate=_RATE
    )
    for is_apart, sets in parts.items():
        likely = np.concatenate([weights.logits(one) for one in sets]) >= 0
        label = np.concatenate([one.label for one in sets])
        cells = (
            f"{likely[label == one].sum()}/{(label == one).sum()}"
            for one in (AGAIN, HOLDS, REPLACED)
        )
        table.add_row("apart" if is_apart else "trained", *cells)
    Console().print(table)
    if write:
        train_replacement.write_weights(FILE, {"with_vectors": weights})


if __name__ == "__main__":
    typer.run(main)
