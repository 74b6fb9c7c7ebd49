"""Weights of the ranking, chosen on all conversations but one and judged on that one.

The signals of each search are recorded as the product weighs them, so a factor of 1 for every
signal is the product itself. A coordinate search changes one factor at a time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from evidence import TOP, Question
from numpy.typing import NDArray
from rich.progress import track
from rich.table import Table

import commonplace.retrieval.search
from commonplace import Match, Memory
from commonplace.retrieval.ranking import DEFAULT, _Signals, rank

FACTORS = (0.0, 0.5, 0.75, 1.25, 1.5, 2.0)
ROUNDS = 2
LEAST_GAIN = 1e-4
DISCOUNT = 1 / np.log2(np.arange(2, 12))
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Signals of the candidates of many searches.

    Attributes:
        names: of the signals.
        signals: (search, candidate, signal), weighted by the default weights; candidates by id.
        exists: (search, candidate); False pads the shorter lists.
        gold: (search, candidate). number: of the gold records of each search, found or not.
        users: of each search.
    """

    names: list[str]
    signals: Array
    exists: Array
    gold: Array
    number: Array
    users: Array

    def used(self) -> list[int]:
        """List the signals that say anything: without relations the graph's does not."""
        return [i for i, values in enumerate(self.signals.T) if values.any()]

    def part(self, chosen: Array) -> "Recorded":
        """Keep only some of the searches."""
        arrays = (self.signals, self.exists, self.gold, self.number, self.users)
        signals, exists, gold, number, users = (one[chosen] for one in arrays)
        return Recorded(
            names=self.names, signals=signals, exists=exists, gold=gold, number=number, users=users
        )


def record(memory: Memory, questions: Sequence[Question]) -> Recorded:
    """Ask every question and record its signals."""
    names: list[str] = []
    rows: list[tuple[Array, Array]] = []
    for asked in track(questions, "recording", transient=True):
        with _signals() as caught:
            memory.search(asked.text, asked.scope, top_k=TOP)
        ids, weighted = caught[-1]
        names = list(weighted)
        by_id = np.argsort(ids)
        values = np.array(list(weighted.values())).T[by_id]
        rows.append((values, np.array([ids[i] in asked.gold for i in by_id])))
    size = max(len(gold) for _, gold in rows)
    padded = [
        (
            np.pad(values, ((0, size - len(values)), (0, 0))),
            np.arange(size) < len(values),
            np.pad(gold, (0, size - len(gold))),
        )
        for values, gold in rows
    ]
    signals, exists, gold = (np.array(one) for one in zip(*padded, strict=True))
    return Recorded(
        names=names,
        signals=signals,
        exists=exists,
        gold=gold,
        number=np.array([len(asked.gold) for asked in questions]),
        users=np.array([asked.scope.user_id for asked in questions]),
    )


@contextmanager
def _signals() -> Iterator[list[tuple[list[str], dict[str, list[float]]]]]:
    """Catch the ids and the weighted signals of the candidates of each search inside."""
    caught = []

    def recording(
        question: str, hits: Any, more: Any, related: Any, *, now: datetime | None, **others: Any
    ) -> list[Match]:
        every = list({hit.record.id: hit for hit in (*more, *hits)}.values())
        weighted = _Signals(question, every, hits, related, DEFAULT).weighted(now)
        caught.append(([hit.record.id for hit in every], weighted))
        return rank(question, hits, more, related, now=now, **others)

    commonplace.retrieval.search.rank = recording
    try:
        yield caught
    finally:
        commonplace.retrieval.search.rank = rank


def figures(recorded: Recorded, factors: Array) -> Array:
    """Compute R@5, R@10 and nDCG@10 with each signal multiplied by its factor."""
    total = np.where(recorded.exists, recorded.signals @ factors, -np.inf)
    first = np.argsort(-total, axis=1, kind="stable")[:, : len(DISCOUNT)]
    hits = np.take_along_axis(recorded.gold, first, axis=1)
    ideal = DISCOUNT.cumsum()[np.minimum(recorded.number, len(DISCOUNT)) - 1]
    rows = (
        hits[:, :5].sum(axis=1) / recorded.number,
        hits.sum(axis=1) / recorded.number,
        hits @ DISCOUNT / ideal,
    )
    means: Array = np.mean(rows, axis=1)
    return means


def fitted(recorded: Recorded) -> Array:
    """Search for the factors with the highest sum of R@10 and nDCG@10, one after the other."""
    factors = np.ones(len(recorded.names))
    best = figures(recorded, factors)[1:].sum()
    for _ in range(ROUNDS):
        for signal in recorded.used():
            before = factors[signal]
            for factor in FACTORS:
                tried = factors.copy()
                tried[signal] = before * factor
                value = figures(recorded, tried)[1:].sum()
                if value > best + LEAST_GAIN:
                    best, factors = value, tried
    return factors


def report(recorded: Recorded) -> tuple[Table, Table]:
    """Lay out the figures of each conversation with weights fitted to all others, and the weights.

    Below the folds their mean, over questions, and the same for weights fitted to all
    conversations, which have seen what they are judged by.
    """
    neutral = np.ones(len(recorded.names))
    total = np.zeros((2, 3))
    found: dict[str, Array] = {}
    judged = Table(
        "left out", "n", "R@5", "R@10", "nDCG@10", title="default → fitted to the others"
    )
    for user in track(sorted(set(recorded.users.tolist())), "fitting", transient=True):
        outside = recorded.part(recorded.users == user)
        found[user] = fitted(recorded.part(recorded.users != user))
        pair = np.array([figures(outside, neutral), figures(outside, found[user])])
        total += pair * len(outside.users)
        judged.add_row(user, str(len(outside.users)), *_cells(pair))
    judged.add_section()
    number = len(recorded.users)
    judged.add_row("each in turn", str(number), *_cells(total / number))
    found["none"] = fitted(recorded)
    pair = np.array([figures(recorded, neutral), figures(recorded, found["none"])])
    judged.add_row("none", str(number), *_cells(pair))
    weights = Table("signal", "default", *found, title="weights, by what was left out")
    for i in recorded.used():
        name = recorded.names[i]
        default = getattr(DEFAULT, name)
        values = (f"{default * factors[i]:.2f}" for factors in found.values())
        weights.add_row(name, f"{default:.2f}", *values)
    return judged, weights


def _cells(pair: Array) -> list[str]:
    return [f"{before:.3f} → {after:.3f}" for before, after in pair.T]
