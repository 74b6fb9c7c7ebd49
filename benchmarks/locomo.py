"""Does the memory find the turns that answer a question? Recall of evidence, without a judge.

    python benchmarks/locomo.py locomo10.json
    python benchmarks/locomo.py locomo10.json --late-off
    python benchmarks/locomo.py locomo10.json --embedder minilm-tokens
    python benchmarks/locomo.py --long
    python benchmarks/locomo.py --chinese
    python benchmarks/locomo.py --lists

Each prints the product, by its public calls, beside cosine and BM25 alone and three ways to fuse
them, over the same vectors. A file is read in LoCoMo's format (get it from its authors; its licence
is CC BY-NC 4.0, evaluation only). `--late-off` leaves the token vectors out. `--long` makes up
conversations of long messages, where leaning on neighbouring turns could hurt, and fails if the
product is below a way to fuse; `--chinese` makes up Chinese facts and conversations, and fails if a
question that shares their words is answered first too seldom; `--lists` asks for all things of a
kind, where recall counts the things found, and fails as `--long` does.
"""

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import chinesetalk
import evidence
import listtalk
import longtalk
import scoring
import typer
from evidence import Question, Session
from rich.console import Console
from tables import TablesFile, save

from commonplace import Fact, Memory, Message, Scope

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
FUSIONS = ("plain fusion", "mem0's rule")
START = datetime(2026, 1, 1, tzinfo=UTC)
CHINESE = 0.95  # R@1 of questions that share the words of what answers them


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
            sessions.append(Session(scope=scope, contents=list(messages)))
        for asked in sample["qa"]:
            cited = {_turn(*pair) for raw in asked["evidence"] for pair in _numbers(raw)}
            gold = frozenset(ids[one] for one in cited if one in ids)
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


def long_messages(seed: int = 7) -> tuple[list[Session], list[Question]]:
    """Turn the generated conversations of long messages into sessions and questions."""
    sessions, questions = [], []
    for user, held, asked in longtalk.conversations(seed=seed):
        scopes = {name: Scope(user_id=user, session_id=name) for name, _ in held}
        for name, texts in held:
            sessions.append(Session(scope=scopes[name], contents=[*_messages(texts)]))
        for one in asked:
            ids = (scopes[name].record_id("episode", str(place)) for name, place in one.gold)
            category = "by name" if one.names_it else "in other words"
            questions.append(
                Question(
                    text=one.text,
                    scope=Scope(user_id=user),
                    category=category,
                    gold=frozenset(ids),
                )
            )
    return sessions, questions


def chinese(seed: int = 11) -> tuple[list[Session], list[Question]]:
    """Turn the generated Chinese lives into sessions and questions, facts and turns apart."""
    sessions, questions = [], []
    for life in chinesetalk.lives(seed=seed):
        facts = Scope(user_id=f"{life.user}, facts")
        turns = Scope(user_id=f"{life.user}, turns")
        told = [Session(scope=facts, contents=[Fact(text=text) for text in life.facts])]
        said = []
        for number, session in enumerate(life.sessions):
            names, texts = zip(*session, strict=True)
            scope = Scope(user_id=turns.user_id, session_id=f"session {number}")
            said.append(Session(scope=scope, contents=[*_messages(texts, names)]))
        for name, scope, held, about in (
            ("facts", facts, told, life.about_facts),
            ("turns", turns, said, life.about_turns),
        ):
            ids = [evidence.record_id(one.scope, each) for one in held for each in one.contents]
            sessions += held
            questions += [
                Question(
                    text=asked.text,
                    scope=scope,
                    category=f"{name}, {'other' if asked.is_free else 'shared'} words",
                    gold=frozenset([ids[asked.at]]),
                )
                for asked in about
            ]
    return sessions, questions


def lists(seed: int = 17) -> tuple[list[Session], list[Question]]:
    """Turn the generated conversations about things of a kind into sessions and questions."""
    sessions, questions = [], []
    for style in listtalk.STYLES:
        for user, held, about in listtalk.conversations(style, seed=seed):
            scopes = {name: Scope(user_id=user, session_id=name) for name, _ in held}
            sessions += [
                Session(scope=scopes[name], contents=[*_messages(texts)]) for name, texts in held
            ]
            for asked in about:
                things = tuple(
                    frozenset(scopes[name].record_id("episode", str(place)) for name, place in one)
                    for one in asked.things
                )
                questions.append(
                    Question(
                        text=asked.text,
                        scope=Scope(user_id=user),
                        category=f"{style[0]}, {'long' if style[1] else 'short'}",
                        gold=frozenset().union(*things),
                        things=things,
                    )
                )
    return sessions, questions


def _messages(texts: Sequence[str], names: Sequence[str | None] = ()) -> Iterator[Message]:
    for place, text in enumerate(texts):
        name = names[place] if names else None
        yield Message(text=text, name=name, id=str(place), at=START + timedelta(minutes=place))


def verdicts(
    systems: Mapping[str, evidence.Figures], rivals: Sequence[str]
) -> tuple[list[str], bool]:
    """Say what the product had to reach, one line each, and whether it reached all of it.

    Args:
        rivals: names of systems that it must not be below.
    """
    product = systems["product"]
    found: list[tuple[str, bool]] = []
    for other in rivals:
        for column in ("R@10", "nDCG@10"):
            # As printed: one turn among thousands is no difference.
            ours = round(evidence.mean(product, column), 3)
            theirs = round(evidence.mean(systems[other], column), 3)
            found.append((f"{column} {ours:.3f}, {other} {theirs:.3f}", ours >= theirs))
    for category in sorted(product):
        if category.endswith("shared words"):
            ours = evidence.mean(product, "R@1", category)
            found.append((f"{category}: R@1 {ours:.3f}, target {CHINESE}", ours >= CHINESE))
    lines = [f"{'not below' if is_met else 'BELOW'}: {line}" for line, is_met in found]
    return lines, all(is_met for _, is_met in found)


def main(
    path: Annotated[Path | None, typer.Argument(help="A file in LoCoMo's format.")] = None,
    embedder: Annotated[str, typer.Option(help="default, minilm-tokens or hash")] = "default",
    limit: Annotated[int, typer.Option(help="Ask only that many questions; 0 for all.")] = 0,
    long: Annotated[bool, typer.Option("--long", help="Generated long messages.")] = False,
    in_chinese: Annotated[bool, typer.Option("--chinese", help="Generated Chinese.")] = False,
    in_lists: Annotated[bool, typer.Option("--lists", help="Questions for several.")] = False,
    late_off: Annotated[bool, typer.Option("--late-off", help="Without token vectors.")] = False,
    file: TablesFile = None,
) -> None:
    """Measure how well the memory finds evidence."""
    made = {long_messages: long, chinese: in_chinese, lists: in_lists}
    chosen = [make for make, is_chosen in made.items() if is_chosen]
    if len(chosen) + (path is not None) != 1:
        message = "Give either a file, --long, --chinese or --lists."
        raise typer.BadParameter(message)
    console = Console(width=110)
    sessions, questions = read(path) if path else chosen[0]()
    questions = questions[: limit or None]
    inner = scoring.embedder(embedder)
    model = scoring.Cached(inner) if late_off else scoring.cached(inner)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=model) as memory:
        written = evidence.ingest(memory, sessions)
        embedding = embedding_time(model, questions)
        product = evidence.product(memory)
        systems = {}
        systems["product"], seconds = evidence.measure(product, questions)
        for name, system in evidence.others(sessions, model).items():
            systems[name], _ = evidence.measure(system, questions)
    late = model.token_space if isinstance(model, scoring.CachedTokens) else "none"
    table = evidence.table(f"{model.id}, token vectors: {late}", systems)
    console.print(table)
    save(file, [table])
    turns = sum(len(session.contents) for session in sessions)
    middle, high = scoring.percentiles(seconds)
    console.print(
        f"{turns} records written in {written:.1f} s. A search without embedding: p50 {middle:.2f} "
        f"ms, p95 {high:.2f} ms; embedding a question in a batch: {embedding * 1e3:.2f} ms."
    )
    rivals = FUSIONS if long or in_lists else ()
    lines, is_met = verdicts(systems, rivals)
    for line in lines:
        console.print(line)
    sys.exit(not is_met)


def embedding_time(model: scoring.Cached, questions: list[Question]) -> float:
    """Embed the questions, which are then known; answers the seconds for one."""
    start = time.perf_counter()
    scoring.vectors(model, [asked.text for asked in questions], "query")
    return (time.perf_counter() - start) / len(questions)


if __name__ == "__main__":
    typer.run(main)
