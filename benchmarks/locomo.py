"""Does the memory find the turns that answer a question? Recall of evidence, without a judge.

    python benchmarks/locomo.py locomo10.json
    python benchmarks/locomo.py --long

The first reads a file in LoCoMo's format (get it from its authors; its licence is CC BY-NC 4.0,
evaluation only). The second makes up conversations of long messages, where leaning on neighbouring
turns could hurt, and compares the whole recipe with plain fusion.
"""

import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import longtalk
import scoring
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from commonplace import Memory, Message, Scope

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TOP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stretch of conversation to remember."""

    scope: Scope
    messages: list[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, the scope that asks it, and the ids of the records that answer it."""

    text: str
    scope: Scope
    category: str
    gold: frozenset[str]


def read(path: Path) -> tuple[list[Session], list[Question]]:
    """Read every session and every question that has evidence."""
    sessions, questions = [], []
    for sample in json.loads(path.read_text()):
        user = sample["sample_id"]
        ids: dict[str, str] = {}
        for scope, said_at, turns in _sessions(user, sample["conversation"]):
            messages = []
            for turn in turns:
                caption = turn.get("blip_caption")
                text = f"{turn['text']} [shares {caption}]" if caption else turn["text"]
                ids[_turn(*_numbers(turn["dia_id"])[0])] = scope.record_id(
                    "episode", turn["dia_id"]
                )
                messages.append(
                    Message(text=text, name=turn["speaker"], id=turn["dia_id"], at=said_at)
                )
            sessions.append(Session(scope=scope, messages=messages))
        for asked in sample["qa"]:
            turns = {_turn(*pair) for raw in asked["evidence"] for pair in _numbers(raw)}
            gold = frozenset(ids[turn] for turn in turns if turn in ids)
            if gold:
                category = CATEGORIES[asked["category"]]
                questions.append(
                    Question(
                        text=asked["question"],
                        scope=Scope(user_id=user),
                        category=category,
                        gold=gold,
                    )
                )
    return sessions, questions


def _sessions(
    user: str, conversation: dict[str, Any]
) -> Iterator[tuple[Scope, datetime, list[dict[str, str]]]]:
    numbers = sorted(
        int(found[1]) for key in conversation if (found := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        name = f"session_{number}"
        said_at = datetime.strptime(
            conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        yield Scope(user_id=user, session_id=name), said_at, conversation[name]


def _numbers(raw: str) -> list[tuple[str, str]]:
    # Some ids in the wild have leading zeros, a stray colon, or company in one string.
    return re.findall(r"D:?(\d+):(\d+)", raw)


def _turn(session: str, number: str) -> str:
    return f"D{int(session)}:{int(number)}"


def made_up() -> tuple[list[Session], list[Question]]:
    """Turn the generated conversations into sessions and questions."""
    sessions, questions = [], []
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for user, held, asked in longtalk.conversations():
        scopes = {name: Scope(user_id=user, session_id=name) for name, _ in held}
        for name, texts in held:
            messages = [
                Message(text=text, id=str(place), at=start + timedelta(minutes=place))
                for place, text in enumerate(texts)
            ]
            sessions.append(Session(scope=scopes[name], messages=messages))
        for text, turns in asked:
            gold = frozenset(scopes[name].record_id("episode", str(place)) for name, place in turns)
            questions.append(
                Question(text=text, scope=Scope(user_id=user), category="long", gold=gold)
            )
    return sessions, questions


def ingest(memory: Memory, sessions: list[Session]) -> float:
    """Write every session verbatim; answers the seconds it took."""
    start = time.perf_counter()
    for session in track(sessions, "writing", transient=True):
        memory.add(session.messages, session.scope, infer=False)
    return time.perf_counter() - start


def measure(memory: Memory, questions: list[Question]) -> tuple[dict[str, list[Any]], list[float]]:
    """Ask every question; answers the figures by category, and the seconds of each search."""
    figures: dict[str, list[Any]] = defaultdict(list)
    seconds = []
    for asked in track(questions, "asking", transient=True):
        start = time.perf_counter()
        matches = memory.search(asked.text, asked.scope, top_k=TOP)
        seconds.append(time.perf_counter() - start)
        places = scoring.ranks([match.record.id for match in matches], asked.gold)
        strangers = sum(not asked.scope.covers(match.record.scope) for match in matches[:10])
        row = (
            *(scoring.recall(places, k) for k in (5, 10, 20)),
            scoring.gain(places, 10),
            strangers / max(1, len(matches[:10])),
        )
        figures[asked.category].append(row)
        figures["overall"].append(row)
    return figures, seconds


def report(title: str, figures: dict[str, list[Any]]) -> Table:
    """Lay the means out, a row for each category."""
    table = Table("questions", "R@5", "R@10", "R@20", "nDCG@10", "leak@10", "n", title=title)
    for category in sorted(figures, key=lambda name: (name == "overall", name)):
        rows = figures[category]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        table.add_row(category, *(f"{mean:.3f}" for mean in means), str(len(rows)))
    return table


def main(
    path: Annotated[Path | None, typer.Argument(help="A file in LoCoMo's format.")] = None,
    embedder: Annotated[str, typer.Option(help="default or hash")] = "default",
    limit: Annotated[int, typer.Option(help="Ask only that many questions; 0 for all.")] = 0,
    long: Annotated[bool, typer.Option("--long", help="Generated long messages.")] = False,
) -> None:
    """Measure how well the memory finds evidence."""
    if (path is None) != long:
        message = "Give either a file or --long."
        raise typer.BadParameter(message)
    console = Console()
    sessions, questions = made_up() if path is None else read(path)
    questions = questions[: limit or None]
    model = scoring.cached(scoring.embedder(embedder))
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=model) as memory:
        written = ingest(memory, sessions)
        start = time.perf_counter()
        embed = model.embed_tokens if isinstance(model, scoring.CachedTokens) else model.embed
        embed([asked.text for asked in questions], purpose="query")
        embedding = (time.perf_counter() - start) / len(questions)
        figures, seconds = measure(memory, questions)
        console.print(report(f"the whole recipe, {model.id}", figures))
        if long:
            with longtalk.plain_fusion():
                plain, _ = measure(memory, questions)
            console.print(report("plain fusion", plain))
    turns = sum(len(session.messages) for session in sessions)
    middle, high = scoring.percentiles(seconds)
    console.print(
        f"{turns} turns written in {written:.1f} s. A search without embedding: p50 {middle:.2f} "
        f"ms, p95 {high:.2f} ms; embedding a question in a batch: {embedding * 1e3:.2f} ms."
    )
    if long and _recall(figures) < _recall(plain):
        console.print("The whole recipe is below plain fusion.")
        sys.exit(1)


def _recall(figures: dict[str, list[Any]]) -> float:
    rows = figures["overall"]
    return float(sum(row[1] for row in rows) / len(rows))


if __name__ == "__main__":
    typer.run(main)
