"""Train the one score of the ranking on every kind of memory, and print what it reaches.

    python benchmarks/train_ranking.py --cache FOLDER [--locomo FILE] [--beam FOLDER] [--write]

Reads the sets of `ranking_sets`: made-up memories in six languages, half of LoCoMo's conversations
and BEAM's even ones, if their files are given (neither is ours to ship). Every question is asked
through the public API, and the features of its candidates are recorded: of made-up memories by a
reading of questions that has not seen their language (`train_questions.py`).

1. Order: the weights that make the answers the most likely choice among the candidates (listwise
   softmax; each kind of memory counts the same, LoCoMo twice; L2).
2. Probability: slope and constant, by kind of memory, that separate at one half what answers from
   the best of what is found for questions without an answer.

The table shows what the weights that ship reach, beside those that are trained now and, unless
`--quick`, weights that were trained without the user that they are judged on. `--write` replaces
`weights.json`, with the commit and the date. With `--keep-order`, as those that ship are made, the
features keep their weights, only the probability is fitted, and no user is left out. What replaces
what, and what a question is for, is learned from the same sentences before.
"""

import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import numpy as np
import ranking_sets
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.optimize import minimize
from train_questions import KIND as TOLD
from train_questions import Reading, left_out
from train_questions import cases as asked_cases

from commonplace import Match, Memory
from commonplace.retrieval import ranking
from commonplace.retrieval.features import (
    BACKGROUND,
    FEATURES,
    KINDS,
    LEADS,
    OF_BEST,
    CandidateArrays,
    background_of,
    kind_of,
    leads_of,
    matrix,
)

Array = NDArray[Any]
FILE = Path(ranking.__file__).with_name("weights.json")
FOLDS = 4
RIDGE = 5e-4
OF_KIND = 2.0
LEAST_SPREAD = 0.02
ROUNDS = 400
TOP = 10
WEIGHT_OF = {
    "LoCoMo": 28.0,
    TOLD: 3.0,
    "BEAM": 9.0,
    "long messages": 1.5,
    "Chinese lives": 2.0,
    "two hops": 2.0,
    "asked in vain": 3.0,
    "now": 2.0,
    "updated value": 4.0,
    "before": 3.0,
    "first": 1.5,
    "beside pasted": 3.0,
}
SHARE_OF_TOLD = 0.1  # something answers each, so they count less for the probability
# A note shows what stands in a long text, too, which is less like its question than a short one.
INSIDE, INSIDE_COUNTS = "inside a text", 4.0
WHOLE = ("LoCoMo", "BEAM", "long messages", "whole lists", "Chinese lives")
# How much a question counts when the probability is fitted; LoCoMo and BEAM as much as a part of
# all others.
ASKED = {"answer": 1.0, "foreign": 5.0, "same subject": 5.0, "nothing": 3.0}
SHARE_OF_OTHERS = 0.1
BESIDE = 0.2
DISCOUNT = 1 / np.log2(np.arange(2, 2 + TOP))


_OF_SEARCHES = ("number", "kinds", "backgrounds", "sets", "users", "expects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Features of the candidates of many searches.

    Attributes:
        rows: a row for each candidate of each search. starts: the first row of each search.
        stating: as `CandidateArrays.stating`, by row.
        gold: whether each row answers. number: of the answers of each search, found or not.
        kinds: of each search, as `features.KINDS`. backgrounds: as `features.background_of`.
        ids: of the records, by row, which break ties.
        sets: name of the set of each search. users: whose memory it was.
        expects: of each search, as `Question.expects`.
        things: for a question for several things, the thing that each row tells; else -1.
    """

    rows: Array
    starts: Array
    stating: Array
    gold: Array
    number: Array
    kinds: Array
    backgrounds: Array
    sets: Array
    users: Array
    expects: Array
    things: Array

    @property
    def searches(self) -> Array:
        """The search of each row."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @property
    def sizes(self) -> Array:
        """The number of rows of each search."""
        return np.diff(np.append(self.starts, len(self.rows)))

    def scores(self, order: Array) -> Array:
        """The weighted sum of each row."""
        found: Array = ((self.rows @ order) * self.kinds[self.searches]).sum(axis=1)
        return found

    def whole_backgrounds(self, scores: Array) -> Array:
        """What slope and constant of each search depend on, given the weighted sums."""
        parts = (np.split(one, self.starts[1:]) for one in (scores, self.rows, self.stating))
        leads = [leads_of(sums[some], rows[some]) for sums, rows, some in zip(*parts, strict=True)]
        return np.concatenate([self.backgrounds, leads], axis=1)

    def part(self, chosen: Array) -> "Recorded":
        """Keep only some of the searches."""
        rows = chosen[self.searches]
        sizes = self.sizes[chosen]
        return Recorded(
            rows=self.rows[rows],
            starts=np.cumsum(sizes) - sizes,
            stating=self.stating[rows],
            gold=self.gold[rows],
            things=self.things[rows],
            **{name: getattr(self, name)[chosen] for name in _OF_SEARCHES},
        )


def record(
    memory: Memory, cases: Sequence[ranking_sets.Case], readings: Mapping[str, Reading]
) -> Recorded:
    """Write every memory, ask every question and record the features of the candidates.

    Args:
        readings: by `pair` or language, how the questions of made-up memories are read.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    for case in track(cases, "recording", transient=True):
        for session in case.sessions:
            memory.add(list(session.contents), session.scope, infer=False)
        known = None if case.kind in WHOLE else readings.get(case.language)
        reading = readings.get(case.pair, known)
        for asked in case.questions:
            with _caught() as caught, reading.used() if reading else nullcontext():
                memory.search(asked.text, asked.scope, top_k=TOP, asked_at=asked.asked_at)
            if not caught:
                continue
            [found] = caught
            order = np.argsort([one.id for one in found.records])
            ids = [found.records[i].id for i in order]
            columns["rows"].append(matrix(found)[order].astype(np.float32))
            columns["stating"].append(found.stating[order])
            columns["gold"].append([id_ in asked.gold for id_ in ids])
            columns["things"].append([_thing(id_, asked.things) for id_ in ids])
            columns["number"].append(len(asked.things) or len(asked.gold))
            columns["kinds"].append(kind_of(found))
            columns["backgrounds"].append(background_of(found))
            columns["sets"].append(_name(case, asked))
            columns["users"].append(asked.scope.user_id)
            columns["expects"].append(asked.expects)
    sizes = np.array([len(one) for one in columns["rows"]])
    return Recorded(
        rows=np.concatenate(columns["rows"]),
        starts=np.cumsum(sizes) - sizes,
        stating=np.concatenate(columns["stating"]),
        gold=np.concatenate(columns["gold"]).astype(bool),
        things=np.concatenate(columns["things"]),
        **{name: np.array(columns[name]) for name in _OF_SEARCHES},
    )


def _name(case: ranking_sets.Case, asked: ranking_sets.Question) -> str:
    kind = case.kind if case.kind in WHOLE else asked.kind
    return f"{kind}, {case.language}"


def _thing(id_: str, things: Sequence[frozenset[str]]) -> int:
    return next((place for place, ids in enumerate(things) if id_ in ids), -1)


@contextmanager
def _caught() -> Iterator[list[CandidateArrays]]:
    """Catch the candidates of each search inside."""
    caught: list[CandidateArrays] = []

    def recording(
        question: str,
        hits: Any,
        more: Any,
        related: Any,
        *,
        at: datetime,
        scale: Any,
        vector: Any,
        **others: Any,
    ) -> list[Match]:
        if every := ranking.candidates(hits, more, others["now"]):
            caught.append(CandidateArrays(question, every, related, scale, at, vector))
        return []

    with mock.patch("commonplace.retrieval.search.rank", recording):
        yield caught


# -- order --------------------------------------------------------------------------------------


def fitted_order(recorded: Recorded) -> Array:
    """Find the weights that make the answers the most likely choice."""
    recorded = recorded.part(np.add.reduceat(recorded.gold, recorded.starts) > 0)
    rows = recorded.rows
    searches = recorded.searches
    found = np.add.reduceat(recorded.gold, recorded.starts)
    share = _shares(recorded) / found
    gold, others = recorded.gold, ~recorded.gold

    kinds = recorded.kinds[searches]
    shape = rows.shape[1], kinds.shape[1]
    # As of unit spread, so that the penalty is the same for all and the steps are even.
    spread = np.stack([(rows * kind[:, None]).std(axis=0) for kind in kinds.T], axis=1)
    spread = np.maximum(spread, LEAST_SPREAD)
    # What holds for all kinds costs less than what holds for one.
    ridge = RIDGE * np.broadcast_to([1.0, *[OF_KIND] * (shape[1] - 1)], shape)

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape) / spread
        scores = ((rows @ weights.astype(np.float32)) * kinds).sum(axis=1)
        low = np.where(others, scores, -np.inf)
        most = np.maximum.reduceat(low, recorded.starts)
        most = np.where(np.isfinite(most), most, -1e3)
        weighed = np.where(others, np.exp(np.minimum(low - most[searches], 0)), 0.0)
        total = np.add.reduceat(weighed, recorded.starts)
        rest = most + np.log(total + 1e-300)
        margin = rest[searches[gold]] - scores[gold]
        each = share[searches[gold]]
        value = float(each @ np.logaddexp(0, margin))
        pull = each / (1 + np.exp(-margin))
        slopes = np.zeros(len(scores))
        slopes[gold] = -pull
        pulls = np.zeros(len(found))
        np.add.at(pulls, searches[gold], pull)
        slopes += weighed / (total + 1e-300)[searches] * pulls[searches]
        gradient = (rows.T @ (slopes[:, None] * kinds).astype(np.float32)).astype(float) / spread
        gradient += 2 * ridge * weights * spread
        return value + float((ridge * (weights * spread) ** 2).sum()), gradient.ravel()

    start = np.zeros(shape[0] * shape[1])
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    weights: Array = result.x.reshape(shape) / spread
    return weights


def _shares(recorded: Recorded) -> Array:
    """Weigh the searches so that every set counts the same, but for `WEIGHT_OF`."""
    names, places, counts = np.unique(recorded.sets, return_inverse=True, return_counts=True)
    kinds = np.array([str(name).split(",")[0] for name in names])
    languages = {kind: int((kinds == kind).sum()) for kind in kinds}
    # A kind that comes in six languages counts as two, not as six.
    each = np.array(
        [WEIGHT_OF.get(kind, 1.0) * min(1.0, 2 / languages[kind]) for kind in kinds.tolist()]
    )
    shares: Array = (each / counts)[places]
    return shares / shares.sum()


# -- probability --------------------------------------------------------------------------------


def fitted_probability(recorded: Recorded, order: Array) -> tuple[Array, Array]:
    """Find slope and constant, by kind of memory, that separate answers from what is none."""
    scores = recorded.scores(order)
    backgrounds = recorded.whole_backgrounds(scores)
    top = np.maximum.reduceat(scores, recorded.starts)
    best = np.maximum.reduceat(np.where(recorded.gold, scores, -np.inf), recorded.starts)
    is_answer = (recorded.expects == "answer") & np.isfinite(best)
    is_foreign = recorded.expects != "answer"
    # Beside the answers stand records that are none: the best of them, and a usual one.
    others = [
        np.sort(np.where(some_gold, -np.inf, some))[::-1]
        for some, some_gold in zip(
            np.split(scores, recorded.starts[1:]),
            np.split(recorded.gold, recorded.starts[1:]),
            strict=True,
        )
    ]
    wrong = [np.array([one[min(place, len(one) - 1)] for one in others]) for place in (0, 5)]
    parts = [
        (best, is_answer, 1.0, 1.0),
        (top, is_foreign, 0.0, 1.0),
        *((one, is_answer & np.isfinite(one), 0.0, BESIDE) for one in wrong),
    ]
    # As often as they are asked, but that conversations of others count as much as a part of ours.
    counted = np.array([ASKED[one] for one in recorded.expects.tolist()])
    counted[np.char.startswith(recorded.sets, TOLD)] *= SHARE_OF_TOLD
    counted[np.char.startswith(recorded.sets, INSIDE)] *= INSIDE_COUNTS
    for kind in WHOLE:
        chosen = np.char.startswith(recorded.sets, kind)
        counted[chosen] *= SHARE_OF_OTHERS * counted.sum() / max(1.0, counted[chosen].sum())
    values = np.concatenate([one[chosen] for one, chosen, _, _ in parts])
    kinds = np.concatenate([backgrounds[chosen] for _, chosen, _, _ in parts])
    wanted = np.concatenate([np.full(int(chosen.sum()), one) for _, chosen, one, _ in parts])
    shares = np.concatenate([counted[chosen] * each for _, chosen, _, each in parts])
    shares /= shares.sum()
    size = len(KINDS)

    def loss(parameters: Array) -> tuple[float, Array]:
        # The slope is an exponential, so that it never turns the order around.
        slope, offset = np.exp(kinds[:, :size] @ parameters[:size]), kinds @ parameters[size:]
        logits = values * slope + offset
        sign = np.where(wanted > 0, 1.0, -1.0)
        value = float(shares @ np.logaddexp(0, -sign * logits))
        pull = -sign * shares / (1 + np.exp(sign * logits))
        gradient = np.concatenate([kinds[:, :size].T @ (pull * values * slope), kinds.T @ pull])
        ridge = np.full(len(parameters), 1e-4)
        ridge[:size] = 1e-3
        return value + float(ridge @ parameters**2), gradient + 2 * ridge * parameters

    start = np.zeros(size + kinds.shape[1])
    start[0] = -0.5
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return result.x[:size], result.x[size:]


# -- figures ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of features, and of the kinds of memory in slope and constant."""

    order: Array
    slope: Array
    offset: Array

    @staticmethod
    def shipped() -> "Weights":
        """Read those that the package brings."""
        made = ranking.shipped_weights()
        return Weights(order=made.features, slope=made.slope, offset=made.offset)

    @staticmethod
    def trained(recorded: Recorded, *, keep_order: bool = False) -> "Weights":
        """Train them; of those that ship, the order may be kept."""
        order = Weights.shipped().order if keep_order else fitted_order(recorded)
        slope, offset = fitted_probability(recorded, order)
        return Weights(order=order, slope=slope, offset=offset)


Row = tuple[float, float, float, float, float, float]


def judged(recorded: Recorded, weights: Weights) -> Array:
    """Compute R@1, R@3, R@10, nDCG@10, the score of the best answer, that of the best record."""
    scores = recorded.scores(weights.order)
    backgrounds = recorded.whole_backgrounds(scores)
    found = []
    for search, (start, size) in enumerate(zip(recorded.starts, recorded.sizes, strict=True)):
        some = slice(start, start + size)
        slope = np.exp(recorded.kinds[search] @ weights.slope)
        offset = backgrounds[search] @ weights.offset
        order = np.argsort(-np.round(scores[some], 9), kind="stable")
        found.append(_figures(recorded, search, some, order, scores[some] * slope + offset))
    return np.array(found)


def _figures(recorded: Recorded, search: int, some: slice, order: Array, logits: Array) -> Row:
    gold, number = recorded.gold[some][order], int(recorded.number[search])
    chances = 1 / (1 + np.exp(-logits[order]))
    best = float(chances[gold].max()) if gold.any() else 0.0
    if not number:
        return (np.nan,) * 4 + (np.nan, float(chances[0]))
    things = recorded.things[some][order]
    if (things >= 0).any():  # of each thing its first record alone
        first = np.zeros(len(gold), bool)
        seen = np.unique(np.where(gold, things, -1), return_index=True)[1]
        first[seen] = True
        gold = gold & first
    ideal = DISCOUNT[:number].sum()
    hits = gold[:TOP]
    r1, r3, r10 = (float(gold[:k].sum()) / number for k in (1, 3, 10))
    gain = float(hits @ DISCOUNT[: len(hits)]) / float(ideal)
    return r1, r3, r10, gain, best, float(chances[0])


def crossed(recorded: Recorded) -> Array:
    """Judge each search by weights that were trained without its user, in so many folds."""
    users = sorted(set(recorded.users.tolist()))
    fold = {user: place % FOLDS for place, user in enumerate(users)}
    folds = np.array([fold[user] for user in recorded.users.tolist()])
    found = np.empty((len(recorded.starts), 6))
    for number in track(range(FOLDS), "training", transient=True):
        weights = Weights.trained(recorded.part(folds != number))
        found[folds == number] = judged(recorded.part(folds == number), weights)
    return found


def laid_out(recorded: Recorded, systems: dict[str, Array], *, whole: bool) -> Table:
    """Lay out a row for each kind and system, and with `whole` for each language of it.

    Kept: share of the answers that score at least one half; foreign, same, tasks: share of the
    questions without an answer, about something else or the same subject, and of what needs no
    memory, for which any record does.
    """
    table = Table(title=f"{len(recorded.starts):,} searches")
    table.add_column("set", no_wrap=True)
    table.add_column("weights", no_wrap=True)
    for name in ("R@1", "R@3", "R@10", "nDCG@10", "kept", "foreign", "same", "tasks", "n"):
        table.add_column(name, justify="right")
    names = recorded.sets.tolist()
    kinds = np.array([name.split(",")[0] for name in names])
    every = sorted({*names, *kinds.tolist()}) if whole else sorted(set(kinds.tolist()))
    for name in every:
        chosen = (recorded.sets == name) | (kinds == name)
        for place, (system, figures) in enumerate(systems.items()):
            table.add_row(name if not place else "", system, *_cells(recorded, figures, chosen))
    return table


def _cells(recorded: Recorded, figures: Array, chosen: Array) -> list[str]:
    expects = recorded.expects
    answered = chosen & (recorded.number > 0)
    cells = [f"{one:.3f}" for one in figures[answered][:, :4].mean(axis=0)]
    cells = cells if answered.any() else ["-"] * 4
    cells.append(f"{(figures[answered, 4] >= 0.5).mean():.2f}" if answered.any() else "-")
    for kind in ("foreign", "same subject", "nothing"):
        shown = figures[chosen & (expects == kind), 5] >= 0.5
        cells.append(f"{shown.mean():.2f}" if len(shown) else "-")
    return [*cells, str(int(chosen.sum()))]


def written(weights: Weights) -> dict[str, Any]:
    """Make what `weights.json` holds."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        "made": {"commit": commit, "date": datetime.now(UTC).date().isoformat()},
        "features": {
            name: _named(KINDS, row) for name, row in zip(FEATURES, weights.order, strict=True)
        },
        "slope": _named(KINDS, weights.slope),
        "offset": _named([*KINDS, *BACKGROUND, *LEADS, *OF_BEST], weights.offset),
    }


def _named(names: Any, values: Array) -> dict[str, float]:
    return {name: round(float(one), 4) for name, one in zip(names, values, strict=True)}


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    locomo: Annotated[Path | None, typer.Option(help="A file in LoCoMo's format.")] = None,
    beam: Annotated[Path | None, typer.Option(help="A folder of BEAM's conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Of the made-up memories.")] = 1,
    apart: Annotated[bool, typer.Option("--apart", help="Judge on the sets kept apart.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="A row for each language.")] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Fit only the probability.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Without leaving users out.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Replace weights.json.")] = False,
) -> None:
    """Train the weights; print what they reach on each kind of memory."""
    console = Console(width=130)
    cases = ranking_sets.apart(seed) if apart else ranking_sets.develop(seed)
    cases = [*cases, *(() if apart else (*asked_cases(), *ranking_sets.conversations(seed)))]
    cases = [*cases, *(ranking_sets.locomo(locomo) if locomo else ())]
    cases = [*cases, *(ranking_sets.beam(beam) if beam else ())]
    with (
        ranking_sets.cached_embedder(cache) as model,
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, embedder=model) as memory,
    ):
        recorded = record(memory, cases, {} if apart else left_out())
    systems = {"shipped": judged(recorded, Weights.shipped())}
    if not apart:
        if not (quick or keep_order):
            systems["without it"] = crossed(recorded)
        weights = Weights.trained(recorded, keep_order=keep_order)
        systems["trained"] = judged(recorded, weights)
        if write:
            FILE.write_text(json.dumps(written(weights), indent=1) + "\n", "utf-8")
    console.print(laid_out(recorded, systems, whole=whole))


if __name__ == "__main__":
    typer.run(main)
