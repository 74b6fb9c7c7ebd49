"""Does the memory rank first what answers, in every kind of memory and language?

    python benchmarks/ranking_report.py --cache FOLDER
    python benchmarks/ranking_report.py --half apart --locomo locomo10.json --beam FOLDER

Writes the memories of `ranking_sets.py` and asks every question by the public call. The first table
has the product beside cosine and BM25 alone and two ways to fuse them, over the same vectors; the
second what a threshold of .5 keeps of what answers and shows where nothing does; the third how many
of the records with such a score answer; the last what becomes of the same question when a memory is
told one thing more.

R@k is the share of the first k that answer, of as many as there are; for lists, of the things.
Embedding takes minutes: `--cache` keeps the vectors for the next run.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import evidence
import numpy as np
import ranking_sets
import scoring
import train_questions
import typer
from ranking_cases import Case, Half, Question
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from tables import TablesFile, save

from commonplace import Memory

COLUMNS = ("R@1", "R@3", "R@10", "nDCG@10")
OTHERS = {"dense": "cosine", "BM25": "BM25", "RRF-60": "RRF-60", "mem0's rule": "mem0's"}
TOP = 20
THRESHOLD = 0.5
THRESHOLDS = (0.3, 0.5, 0.7)
# Kinds whose memories are told nothing more than those of their pairs.
PLAIN = ("never asked", "relations on 0", "foreign")

Figures = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question, and what a memory found for it.

    Attributes:
        group: name of the set.
        found: ids of records, best first. scores: of each.
        figures: `COLUMNS` of each system; none if nothing answers.
    """

    group: str
    case: Case
    asked: Question
    found: Sequence[str]
    scores: Sequence[float]
    figures: dict[str, Figures] = field(default_factory=dict)

    def is_shown(self, threshold: float = THRESHOLD) -> bool:
        """Tell whether anything reaches a threshold: of what answers, if anything does."""
        return any(
            score >= threshold and (is_answer or not self.asked.gold)
            for score, is_answer in self.answering
        )

    @property
    def answering(self) -> list[tuple[float, bool]]:
        """The score of each record, best first, and whether it answers."""
        pairs = zip(self.found, self.scores, strict=True)
        return [(score, key in self.asked.gold) for key, score in pairs]


def figures(found: Sequence[str], asked: Question) -> Figures:
    """Compute `COLUMNS` for records in order, best first."""
    if asked.things:
        places = sorted(scoring.ranks(found, thing)[0] for thing in asked.things)
    else:
        places = scoring.ranks(found, asked.gold)
    recalls = [sum(one <= k for one in places) / min(k, len(places)) for k in (1, 3, 10)]
    return *recalls, scoring.gain(places, 10)


def embed(model: scoring.Cached, cases: Sequence[Case]) -> None:
    """Embed all that is told and asked, in batches and with a bar, before anything needs it."""
    told = {one.text for case in cases for each in case.sessions for one in each.contents}
    asked = {one.text for case in cases for one in case.questions}
    for texts, purpose in ((sorted(told, key=len), "document"), (sorted(asked, key=len), "query")):
        for start in track(range(0, len(texts), 64), f"embedding, {purpose}", transient=True):
            scoring.vectors(model, texts[start : start + 64], purpose)  # type: ignore[arg-type]


def answers(
    memory: Memory, model: scoring.Cached, sets: Mapping[str, Sequence[Case]]
) -> list[Answer]:
    """Ask every question, of the memory and of the other systems."""
    found = []
    every = [(group, case) for group, cases in sets.items() for case in cases]
    for group, case in track(every, "asking", transient=True):
        systems = evidence.others(list(case.sessions), model)
        for asked in case.questions:
            matches = memory.search(asked.text, asked.scope, top_k=TOP, asked_at=asked.asked_at)
            ids = [match.record.id for match in matches]
            one = Answer(
                group=group,
                case=case,
                asked=asked,
                found=ids,
                scores=[match.score for match in matches],
            )
            if asked.gold:
                one.figures["product"] = figures(ids, asked)
                for name in OTHERS:
                    ranked = systems[name](asked)  # type: ignore[arg-type]  # has what it reads
                    one.figures[name] = figures([key for key, _ in ranked], asked)
            found.append(one)
    return found


def ranking_table(every: Sequence[Answer]) -> Table:
    """Lay out how well each system ranks, by set, kind and language."""
    names = [f"{name} {column}" for name in OTHERS.values() for column in ("R@1", "nDCG")]
    heads = [Column(name, no_wrap=True) for name in ("set", "kind", "language")]
    table = Table(*heads, "n", *COLUMNS, *names, title="what answers, ranked first")
    answerable = [one for one in every if one.figures]
    for group, of_group in grouped(answerable, lambda one: one.group).items():
        for kind, of_kind in grouped(of_group, lambda one: one.asked.kind).items():
            by_language = grouped(of_kind, lambda one: one.case.language)
            for language, rows in by_language.items():
                _ranked(table, group, kind, language, rows)
            if len(by_language) > 1:
                _ranked(table, group, kind, "all", of_kind)
        for language, rows in grouped(of_group, lambda one: one.case.language).items():
            _ranked(table, group, "overall", language, rows)
        _ranked(table, group, "overall", "all", of_group)
        table.add_section()
    return table


def _ranked(table: Table, group: str, kind: str, language: str, rows: Sequence[Answer]) -> None:
    means = {
        name: np.mean([one.figures[name] for one in rows], axis=0) for name in ("product", *OTHERS)
    }
    cells = [*means["product"], *(means[name][i] for name in OTHERS for i in (0, -1))]
    table.add_row(group, kind, language, str(len(rows)), *(f"{one:.3f}" for one in cells))


def threshold_table(every: Sequence[Answer]) -> Table:
    """Lay out what the threshold shows, by set and language and by set and kind."""
    heads = [Column(name, no_wrap=True) for name in ("set", "language or kind")]
    columns = [
        text
        for name in (
            "kept of answerable",
            "shown of foreign",
            "shown of same subject",
            "shown of tasks",
        )
        for text in (name, "n")
    ]
    table = Table(*heads, *columns, title=f"threshold {THRESHOLD}, and others for all")
    for group, of_group in grouped(every, lambda one: one.group).items():
        for rows_by in (
            grouped(of_group, lambda one: one.case.language),
            grouped(of_group, lambda one: one.asked.kind),
            {"all": of_group},
        ):
            for name, rows in rows_by.items():
                table.add_row(group, name, *_shown(rows))
            table.add_section()
        for threshold in THRESHOLDS:
            table.add_row(group, f"all, at {threshold}", *_shown(of_group, threshold))
        table.add_section()
    return table


def _shown(rows: Sequence[Answer], threshold: float = THRESHOLD) -> list[str]:
    cells = []
    for expected in ("answer", "foreign", "same subject", "nothing"):
        shown = [one.is_shown(threshold) for one in rows if one.asked.expects == expected]
        cells += [f"{np.mean(shown):.3f}", str(len(shown))] if shown else ["", ""]
    return cells


def score_table(every: Sequence[Answer]) -> Table:
    """Lay out how many of the first records and of those behind them answer, by their scores."""
    heads = [Column(name, no_wrap=True) for name in ("set", "score")]
    columns = ("first", "answer", "behind it", "answer")
    table = Table(*heads, *columns, title="what answers, by its score")
    for group, rows in grouped(every, lambda one: one.group).items():
        ranked = [one.answering for one in rows]
        first = [pair for one in ranked for pair in one[:1]]
        behind = [pair for one in ranked for pair in one[1:]]
        for low in range(10):
            cells = [cell for pairs in (first, behind) for cell in _answering(pairs, low)]
            table.add_row(group, f".{low}", *cells)
        table.add_section()
    return table


def _answering(pairs: Sequence[tuple[float, bool]], low: int) -> tuple[str, str]:
    inside = [is_answer for score, is_answer in pairs if min(int(score * 10), 9) == low]
    return str(len(inside)), f"{np.mean(inside):.3f}" if inside else ""


def pair_table(every: Sequence[Answer]) -> Table:
    """Lay out the same questions in a plain memory and in one that is told something more."""
    heads = [Column(name, no_wrap=True) for name in ("set", "told more")]
    pairs_of = [f"{name}{more}" for name in ("R@1", "nDCG", "kept") for more in (" plain", "")]
    columns = ("n", *pairs_of, "first no more", "first only now")
    table = Table(*heads, *columns, title="pairs")
    paired = [one for one in every if one.case.pair and one.figures]
    for group, of_group in grouped(paired, lambda one: one.group).items():
        plain = {
            (one.case.pair, one.asked.text): one for one in of_group if one.asked.kind in PLAIN
        }
        more = [one for one in of_group if one.asked.kind not in PLAIN]
        for kind, rows in grouped(more, lambda one: one.asked.kind).items():
            pairs = [(plain[one.case.pair, one.asked.text], one) for one in rows]
            before, after = (
                np.array(
                    [
                        (each.figures["product"][0], each.figures["product"][-1], each.is_shown())
                        for each in side
                    ]
                )
                for side in zip(*pairs, strict=True)
            )
            lost, won = before[:, 0] > after[:, 0], before[:, 0] < after[:, 0]
            means = [each[:, i].mean() for i in range(3) for each in (before, after)]
            cells = (f"{one:.3f}" for one in means)
            table.add_row(group, kind, str(len(rows)), *cells, str(lost.sum()), str(won.sum()))
    return table


def grouped(every: Sequence[Answer], name: Callable[[Answer], str]) -> dict[str, list[Answer]]:
    """Sort answers by a name of each, in the order in which the names come up."""
    found: dict[str, list[Answer]] = defaultdict(list)
    for one in every:
        found[name(one)].append(one)
    return found


def main(
    half: Annotated[str, typer.Option(help="develop, apart or both")] = "both",
    seed: Annotated[int, typer.Option(help="Other numbers, other memories.")] = 0,
    locomo: Annotated[Path | None, typer.Option(help="A file in LoCoMo's format.")] = None,
    beam: Annotated[Path | None, typer.Option(help="Conversations in BEAM's format.")] = None,
    embedder: Annotated[str, typer.Option(help="default, minilm-tokens or hash")] = "default",
    cache: Annotated[Path | None, typer.Option(help="Where vectors are kept.")] = None,
    file: TablesFile = None,
) -> None:
    """Measure the ranking in memories of every kind."""
    halves: list[Half] = ["develop", "apart"]
    sets = ranking_sets.union(
        seed,
        halves=[one for one in halves if half in (one, "both")],
        locomo_file=locomo,
        beam_folder=beam,
    )
    if "apart" in sets:
        sets["told and asked"] = [*train_questions.cases(of_apart=True)]
    cases = [case for each in sets.values() for case in each]
    with (
        ranking_sets.cached_embedder(cache, embedder) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        embed(model, cases)
        with Memory.open(folder, embedder=model) as memory:
            written = evidence.ingest(memory, [one for case in cases for one in case.sessions])
            every = answers(memory, model, sets)
    tables = [
        ranking_table(every),
        threshold_table(every),
        score_table(every),
        pair_table(every),
    ]
    console = Console(width=190)
    console.print(*tables)
    told = sum(len(one.contents) for case in cases for one in case.sessions)
    console.print(
        f"{len(cases)} memories, {told} records written in {written:.0f} s, {len(every)} questions."
    )
    save(file, tables)


if __name__ == "__main__":
    typer.run(main)
