"""Recall of evidence: sessions, questions with known answers, systems that rank, their figures."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import baselines
import numpy as np
import scoring
from rich.progress import track
from rich.table import Column, Table

from commonplace import Fact, Memory, Message, Scope

TOP = 20
COLUMNS = ("R@1", "R@5", "R@10", "nDCG@10", "leak@10")
# Rows of figures, one per question, by category and under `overall`.
Figures = Mapping[str, list[tuple[float, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stretch of conversation, or facts, to remember; each has an id or a key."""

    scope: Scope
    contents: list[Message | Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, the scope that asks it, and the ids of the records that answer it.

    Of each set in `things` one record is enough; with those, recall is the share of the things.
    """

    text: str
    scope: Scope
    category: str
    gold: frozenset[str]
    things: tuple[frozenset[str], ...] = ()


# Answers ids and scopes of records, best first.
System = Callable[[Question], Sequence[tuple[str, Scope]]]


def day_after(sessions: Sequence[Session]) -> datetime:
    """Name the moment a day after the last turn of some sessions."""
    turns = (one for session in sessions for one in session.contents if isinstance(one, Message))
    return max(one.at for one in turns if one.at is not None) + timedelta(days=1)


def record_id(scope: Scope, content: Message | Fact) -> str:
    """Derive the id of the record that remembers this."""
    if isinstance(content, Fact):
        return scope.record_id(content.kind, content.key or content.text)
    return scope.record_id("episode", content.id or content.text)


def ingest(memory: Memory, sessions: list[Session]) -> float:
    """Write every session verbatim; answers the seconds it took."""
    start = time.perf_counter()
    for session in track(sessions, "writing", transient=True):
        memory.add(session.contents, session.scope, infer=False)
    return time.perf_counter() - start


def product(memory: Memory) -> System:
    """Search by the public call."""

    def found(asked: Question) -> list[tuple[str, Scope]]:
        matches = memory.search(asked.text, asked.scope, top_k=TOP)
        return [(match.record.id, match.record.scope) for match in matches]

    return found


def others(sessions: list[Session], model: scoring.Cached) -> dict[str, System]:
    """Make the baselines, by name; each ranks all that one user told, with the model's vectors."""
    told: dict[str, list[tuple[str, Scope, str]]] = defaultdict(list)
    for session in sessions:
        for content in session.contents:
            name = content.name if isinstance(content, Message) else None
            text = f"{name}: {content.text}" if name else content.text
            key = record_id(session.scope, content)
            told[session.scope.user_id or ""].append((key, session.scope, text))
    matrices, counted = {}, {}
    for user, rows in told.items():
        texts = [text for _, _, text in rows]
        matrices[user] = scoring.vectors(model, texts, "document")
        counted[user] = baselines.statistics([baselines.tokens(text) for text in texts])

    def system(rule: baselines.Rule) -> System:
        def found(asked: Question) -> list[tuple[str, Scope]]:
            user = asked.scope.user_id or ""
            words = baselines.tokens(asked.text)
            cosines = matrices[user] @ scoring.vectors(model, [asked.text], "query")[0]
            scores = rule(cosines, baselines.bm25(words, counted[user]), len(words))
            return [told[user][i][:2] for i in baselines.order(scores)[:TOP]]

        return found

    return {name: system(rule) for name, rule in baselines.RULES.items()}


def measure(system: System, questions: list[Question]) -> tuple[Figures, list[float]]:
    """Ask every question; answers the figures, and the seconds of each search."""
    figures: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    seconds = []
    for asked in track(questions, "asking", transient=True):
        start = time.perf_counter()
        found = system(asked)
        seconds.append(time.perf_counter() - start)
        places = _places([one for one, _ in found], asked)
        strangers = [not asked.scope.covers(scope) for _, scope in found[:10]]
        row = (
            *(scoring.recall(places, k) for k in (1, 5, 10)),
            scoring.gain(places, 10),
            sum(strangers) / max(1, len(strangers)),
        )
        figures[asked.category].append(row)
        figures["overall"].append(row)
    return figures, seconds


def _places(found: Sequence[str], asked: Question) -> list[int]:
    if not asked.things:
        return scoring.ranks(found, asked.gold)
    return sorted(scoring.ranks(found, thing)[0] for thing in asked.things)


def mean(figures: Figures, column: str, category: str = "overall") -> float:
    """Average a column over the questions of a category."""
    return float(np.mean([row[COLUMNS.index(column)] for row in figures[category]]))


def table(title: str, systems: Mapping[str, Figures]) -> Table:
    """Lay the means out: for each category a row for each system."""
    names = (Column(name, no_wrap=True) for name in ("questions", "system"))
    laid = Table(*names, *COLUMNS, "n", title=title)
    categories = next(iter(systems.values()))
    for category in sorted(categories, key=lambda name: (name == "overall", name)):
        laid.add_section()
        for number, (name, figures) in enumerate(systems.items()):
            means = (f"{mean(figures, column, category):.3f}" for column in COLUMNS)
            first = "" if number else category
            laid.add_row(first, name, *means, "" if number else str(len(figures[category])))
    return laid
