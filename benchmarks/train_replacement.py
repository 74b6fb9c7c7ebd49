"""Measure how likely a newer statement replaces one: `retrieval/replacement.json` and `.npy`.

    python benchmarks/train_replacement.py [--write]

Reads the pairs of `corrections.toml`, which were judged by hand, and those that the sentences in
`ranking/` make. Others tell of two matters: the newer one is of another pair, or another
text on the same thing (`questions.toml`), or what is nearest in a memory in which nothing changes.
The sets are left out in five parts, each judged by weights of the others; those that end with
`apart` or `checked` are never trained on. Found is the share of replaced statements with a
likelihood of .5, wrong that of pairs which both hold, far that of those on two matters: with the
vectors of the default embedder, and without vectors.
"""

import json
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import chain, combinations, islice, pairwise, permutations, product
from pathlib import Path
from typing import Annotated, Any, get_args

import evidence
import numpy as np
import ranking_sets
import scoring
import typer
from descent import descended
from numpy.typing import NDArray
from ranking_cases import LANGUAGES, Case, Half, sentences
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from commonplace.retrieval import replacement
from commonplace.retrieval.calibration import Calibration
from commonplace.retrieval.replacement import PAIR_FEATURES, Statement
from commonplace.types import is_short

Array = NDArray[Any]

PAIRS = Path(__file__).with_name("corrections.toml")
QUESTIONS = PAIRS.with_name("questions.toml")
FILE = Path(replacement.__file__).with_name("replacement.json")
APART = ("apart", "checked")
PLAIN = ("plain", "simple", "short", "brief", "facts", "terse")  # as most statements are told
# What a pair counts where others count 1; those side by side differ in a thing and its value alone.
_PLAIN_COUNTS, _SIDE_BY_SIDE_COUNTS = 2.0, 3.0
NAMES = (
    "Alice Aylin Ben Carlos carol Chiara Dmitri dora Elif Émile Farid Fatima frank Giulia Greta"
    " hank Hiroshi Ingrid ivan Jack Jasmine Kofi Lars lea Léa Linh Luca Mariana Mateo Mei mia Mina"
    " Nadia Naoki Nils Olga Omar Pablo paul Priya Rahul Rosa Sam Sofia tom Valentina Wei Yuki Zoë"
    " zara 王芳 张伟 小美 陈静 佐藤 健太 محمد ليلى user Human customer u1 user_42 Dr.Klein"
).split()
# How two things are told at once: as two sentences, or in one.
_JOINTS = (
    lambda one, other: f"{one} {other}",
    lambda one, other: f"{one.rstrip('.。!！')}, {other}",
)
_JOINED_COUNTS, _COMPOSED_COUNTS = 0.1, 0.8  # as much as other pairs
# A user with or without a name tells a pair; without a question, as where all is listed.
TOLD_BY = ((None, True), (NAMES, True), (None, False))
_STRANGERS = 3  # of other pairs for each, as its newer statement and as its older one
_NEAREST = 2  # in a memory, for each question
# What all pairs of a label weigh, with vectors and without.
SHARE, WORDS_SHARE = {1: 3.0, 0: 2.6, -1: 4.5}, {1: 1.3, 0: 1.3, -1: 4.5}
_RIDGE = 5e-3  # L2 penalty of a feature
_VECTOR_RIDGES = 2e-2, 1.2e-3  # of a part of a vector, and of a product of two parts
RANK = 128
_BATCH, _ROUNDS, _RATE = 512, 8, 2e-3  # pairs of a step; rounds over all; rate of the first step
_PARTS = 5
_TOLD, _CORRECTED = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 22, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Judged:
    """Pairs of one set, as features.

    Attributes:
        rows: of `PAIR_FEATURES`, one for each.
        older, newer: their vectors.
        label: 1 replaced, 0 both hold, -1 on two matters.
    """

    rows: Array
    older: Array
    newer: Array
    label: Array

    def part(self, chosen: Array) -> "Judged":
        """Keep only some of the pairs."""
        return Judged(*(getattr(self, one.name)[chosen] for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the logit: of `PAIR_FEATURES`, then the offset, and of the vectors or None."""

    features: Array
    vectors: Array | None = None

    def logits(self, judged: Judged) -> Array:
        """Compute the logit of each pair."""
        found: Array = judged.rows @ self.features[:-1] + self.features[-1]
        if self.vectors is None:
            return found
        older, newer = judged.older.astype(np.float32), judged.newer.astype(np.float32)
        return found + replacement.added(self.vectors, older, newer)


Pair = tuple[str, str, str, int]
"""The older text, the newer one, the question, and the label."""
Named = tuple[str, list[Pair]]


def told() -> Iterator[Named]:
    """Read the pairs of each set."""
    draw = random.Random(1)
    for language, halves in tomllib.loads(PAIRS.read_text("utf-8")).items():
        for half, lists in halves.items():
            found = [(*pair, 1) for pair in lists["replaced"]]
            found += [(*pair, 0) for name in ("kept", "added") for pair in lists.get(name, ())]
            yield f"{language} {half}", [*found, *_far(found, draw)]


def composed() -> Iterator[Named]:
    """Pair the sentences of made-up memories, as `told`.

    The steps of a change replace each other; the things of a list, and a value or a denial and what
    is near to it, hold together.
    """
    draw = random.Random(3)
    for half, language in product(get_args(Half), LANGUAGES):
        read = sentences(half, language)
        if read is None:
            continue
        found = [
            (older, newer, draw.choice(one["now"]), 1)
            for one in read["change"]
            for steps in (one["steps"], one["facts"])
            for older, newer in combinations(steps, 2)
        ]
        for thing in read["list"]:
            items = draw.sample(thing["items"], len(thing["items"]))
            found += [(*pair, draw.choice(thing["ask"]), 0) for pair in pairwise(items)]
        for value in (*read["code"], *read["negation"]):
            for near in value["near"]:
                both = draw.sample((value[draw.choice(("fact", "turn"))], near), 2)
                found.append((*both, draw.choice(value["ask"]), 0))
        yield f"{language} composed, {half}", [*found, *_far(found, draw)]


def _far(found: Sequence[Pair], draw: random.Random) -> Iterator[Pair]:
    """Pair the texts of each pair with those of others."""
    for older, newer, question, _ in found:
        for other in draw.sample(found, min(_STRANGERS, len(found))):
            if other[0] != older:
                yield older, draw.choice(other[:2]), question, -1
                yield draw.choice(other[:2]), newer, question, -1


def joined() -> Iterator[Named]:
    """Join each older text of a set with another, as who tells two things at once.

    The newer text replaces one of them: what the pair's question asks for, not what the other's
    does.
    """
    draw = random.Random(2)
    for language, halves in tomllib.loads(PAIRS.read_text("utf-8")).items():
        for half, lists in halves.items():
            every = [*lists["replaced"], *lists["kept"]]
            found = []
            for place, (older, newer, question) in enumerate(every):
                other, _, asked = draw.choice(every)
                if other == older:
                    continue
                both = _JOINTS[place % 2](*draw.sample((older, other), 2))
                found.append((both, newer, question, int(place < len(lists["replaced"]))))
                found.append((both, newer, asked, 0))
            yield f"{language} joined, {half}", found


def on_one_thing() -> Iterator[Named]:
    """Pair the texts of each group of `questions.toml`, as `told`; they tell two matters each.

    Only in sets of changes, the third text of a group takes the first one's place.
    """
    for language, sets in tomllib.loads(QUESTIONS.read_text("utf-8")).items():
        for name, lists in sets.items():
            yield (
                f"{language} one thing, {name}",
                [
                    pair
                    for group in lists["groups"]
                    for pair in _of_group(group, is_changed=name == "changes")
                ],
            )


def _of_group(group: Sequence[tuple[str, str]], *, is_changed: bool) -> Iterator[Pair]:
    for (i, (older, question)), (j, (newer, other)) in permutations(enumerate(group), 2):
        if not (is_changed and {i, j} == {0, 2}):
            yield older, newer, question, -1
        elif i < j:
            yield older, newer, other, 1


def beside(model: scoring.Cached, cases: Sequence[Case]) -> Iterator[Pair]:
    """Pair what answers a question with what is nearest to it in a memory in which all holds."""
    for case in cases:
        if case.kind == "corrections":
            continue
        texts = {
            evidence.record_id(session.scope, one): one.text
            for session in case.sessions
            for one in session.contents
            if is_short(one.text)
        }
        ids, vectors = [*texts], scoring.vectors(model, [*texts.values()], "document")
        for question in case.questions:
            gold = next((one for one in ids if one in question.gold), None)
            if gold is not None:
                near = (ids[i] for i in np.argsort(-vectors @ vectors[ids.index(gold)]))
                others = (one for one in near if one not in question.gold)
                for other in islice(others, _NEAREST):
                    yield texts[gold], texts[other], question.text, -1


def judged(
    model: scoring.Cached,
    every: Sequence[Pair],
    told_by: Sequence[tuple[Sequence[str] | None, bool]] = TOLD_BY,
    *,
    with_repeats: bool = False,
) -> Judged:
    """Compute the features of pairs, each as often as `told_by` says."""
    made, draw = [], random.Random(1)
    for (older, newer, asked_for, label), (names, is_asked) in product(every, told_by):
        speaker = draw.choice(names) if names else None
        question = asked_for if is_asked else ""
        said = [f"{speaker}: {text}" if speaker else text for text in (older, newer)]
        texts = scoring.vectors(model, said, "document")
        [asked] = scoring.vectors(model, [question], "query")
        place = Calibration().scale(question or older).place
        fit = place(texts @ asked) if question else np.zeros(2)
        statements = [
            Statement(text=text, moment=moment, kind="episode", role="user", name=speaker)
            for text, moment in ((older, _TOLD), (newer, _CORRECTED))
        ]
        nearness = np.array([[0.0, max(place(texts[0] @ texts[1]), replacement.FAR)], [0.0, 0.0]])
        found = replacement.pairs(
            statements.__getitem__, question, [0, 1], nearness, fit, with_repeats=with_repeats
        )
        for pair in found.values():
            made.append((replacement.rows([pair])[0], *texts.astype(np.float16), label))
    return Judged(*map(np.array, zip(*made, strict=True)))


def trained(
    sets: Sequence[Judged],
    with_vectors: bool,
    share: Mapping[int, float] = SHARE,
    ridges: tuple[float, float] = _VECTOR_RIDGES,
    rank: int | None = RANK,
    counts: Sequence[float] = (),
    rounds: int = _ROUNDS,
    rate: float = _RATE,
) -> Weights:
    """Fit the weights, with an L2 penalty.

    Args:
        share: what all pairs of a label weigh.
        ridges: the penalties of a part of a vector, and of a product of two parts.
        rank: of the bilinear form; None for a diagonal one.
        counts: how much a pair of each set weighs; empty for all alike.
        rounds: over all pairs. rate: of the first step.
    """
    every = Judged(
        *(np.concatenate([getattr(one, field.name) for one in sets]) for field in fields(Judged))
    )
    center, width = every.rows.mean(axis=0), every.rows.std(axis=0) + 1e-6
    table = ((every.rows - center) / width).astype(np.float32)
    each = np.repeat(counts or [1.0] * len(sets), [len(one.label) for one in sets])
    for one in share:
        each[every.label == one] *= share[one] / each[every.label == one].sum()
    each = (each / each.sum()).astype(np.float32)
    is_one = every.label == 1
    size = every.older.shape[1] if with_vectors else 0
    sizes = [table.shape[1], size, size, size if rank is None else size * size, 1]
    ends = np.cumsum(sizes)[:-1]
    penalty = np.repeat([_RIDGE, ridges[0], *ridges, 0.0], sizes).astype(np.float32)
    spread = np.float32(size**0.5)  # of a unit vector's parts, which are counted as of spread one

    def slopes(found: Array, some: Array) -> Array:
        weights = np.split(found, ends)
        products = weights[3] if rank is None else weights[3].reshape(size, size)
        logits = table[some] @ weights[0] + weights[4]
        if size:
            older, newer = (spread**0.5 * one[some] for one in (every.older, every.newer))
            logits += spread**0.5 * (newer @ weights[1] + older @ weights[2])
            moved = older * products if rank is None else older @ products
            logits += np.einsum("ij,ij->i", moved, newer)
        missed = each[some] * (expit(logits) - is_one[some])
        down = [missed @ table[some]]
        if size:
            down += [spread**0.5 * (missed @ newer), spread**0.5 * (missed @ older)]
            if rank is None:
                down.append(missed @ (older * newer))
            else:
                down.append((older.T @ (newer * missed[:, None])).ravel())
        else:
            down += [np.zeros(0)] * 3
        down.append(missed.sum(keepdims=True))
        return np.concatenate(down) + 2 * len(some) / len(table) * penalty * found

    start = np.zeros(sum(sizes), np.float32)
    found = descended(slopes, start, len(table), batch=_BATCH, rounds=rounds, rate=rate)
    found = found.astype(float)
    of_features, *of_vectors, products, offset = np.split(found, ends)
    of_features /= width
    features = np.append(of_features, offset - of_features @ center)
    if not size:
        return Weights(features)
    if rank is None:
        of_both = [spread * products[None]]
    else:
        left, strength, right = np.linalg.svd(spread * products.reshape(size, size))
        of_both = [(strength**0.5 * left).T[:rank], (strength**0.5 * right.T).T[:rank]]
    vectors = np.concatenate([spread * np.stack(of_vectors), *of_both])
    return Weights(features, vectors.astype(np.float16).astype(np.float32))


def _trained(sets: Mapping[str, Judged], with_vectors: bool) -> Weights:
    """Train on sets; of those made of sentences, words alone tell too little."""
    known = {name: one for name, one in sets.items() if with_vectors or not _is_composed(name)}
    share = SHARE if with_vectors else WORDS_SHARE
    return trained([*known.values()], with_vectors, share, counts=[*map(_counts, known)])


def _counts(name: str) -> float:
    if _is_composed(name):
        return _COMPOSED_COUNTS
    if "joined" in name:
        return _JOINED_COUNTS
    if "side_by_side" in name:
        return _SIDE_BY_SIDE_COUNTS
    return _PLAIN_COUNTS if name.split()[1] in PLAIN else 1.0


def _is_composed(name: str) -> bool:
    return "composed" in name


def figures(judged: Judged, weights: Weights) -> list[float]:
    """Compute found, wrong and far."""
    is_likely = weights.logits(judged) >= 0
    parts = (is_likely[judged.label == one] for one in (1, 0, -1))
    return [float(part.mean()) if len(part) else np.nan for part in parts]


def write_weights(file: Path, every: Mapping[str, Weights]) -> None:
    """Write weights as `replacement` reads them, by their names."""
    made = {}
    for name, weights in every.items():
        rounded = [round(float(one), 4) for one in weights.features]
        features = dict(zip(PAIR_FEATURES, rounded, strict=False))
        made[name] = {"features": features, "offset": rounded[-1]}
        if weights.vectors is not None:
            np.save(file.with_suffix(".npy"), weights.vectors.astype(np.float16))
    file.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


def main(
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps vectors.")] = None,
    write: Annotated[bool, typer.Option("--write")] = False,
) -> None:
    """Measure, print the figures of each set left out, and write the weights if wished."""
    with ranking_sets.cached_embedder(cache) as model:
        plain = chain(told(), composed(), on_one_thing())
        sets = {name: judged(model, every) for name, every in plain}
        asking = [one for one in TOLD_BY if one[1]]  # without a question, half of it holds
        sets |= {name: judged(model, every, asking) for name, every in joined()}
        for name, cases in (
            ("develop", ranking_sets.develop(1)),
            (APART[0], ranking_sets.apart(1)),
        ):
            sets[f"memories {name}"] = judged(model, [*beside(model, cases)])
    known = {name: one for name, one in sets.items() if not name.endswith(APART)}
    heads = ["found", "wrong", "far"]
    table = Table("set", *heads, "without: found", *heads[1:])
    for part in range(_PARTS):
        left_out = [*sets][part::_PARTS]
        others = {name: one for name, one in known.items() if name not in left_out}
        each = [_trained(others, with_vectors) for with_vectors in (True, False)]
        for name in left_out:
            cells = [cell for weights in each for cell in figures(sets[name], weights)]
            table.add_row(name, *(f"{cell:.3f}" for cell in cells))
    Console().print(table)
    if write:
        names = {"with_vectors": True, "without_vectors": False}
        every = {name: _trained(known, one) for name, one in names.items()}
        write_weights(FILE, every)


if __name__ == "__main__":
    typer.run(main)
