"""What is found, and what does it cost, as conversations grow? Recall of evidence by size.

    python benchmarks/recall_at_size.py FOLDER --cache CACHE
    python benchmarks/recall_at_size.py FOLDER --cache CACHE --page docs/retrieval.md

The folder has conversations in BEAM's format (arXiv 2510.27246; get them from their authors), a
folder for each size: `FOLDER/100K/1/chat.json`. All conversations of a size are told to one memory
on disk, each by a user of its own, and the longest whose answers are known also to one alone. Every
question is asked once, by the public call, beside three ways to fuse the same vectors and words.

- R@10, nDCG@10: of the user's messages that answer. Questions without any known are only timed.
- CPU: of all threads for a search; every text is embedded before. A new process opens the memory
  and asks one question that is not timed; of the other users it has then read nothing.
- disk: all files of the memory. memory: what that process grows by, from before it opens the
  memory until after its last question.

Embedding takes minutes: `--cache` keeps the vectors for the next run. `--page` writes the table of
all sizes into a page, between the lines that name this script.
"""

import inspect
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import beam
import evidence
import peer
import report_page
import scoring
import typer
from beam import Conversation
from evidence import Figures
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from tables import TablesFile, save, saved

from commonplace import Memory, Scope

OURS = "commonplace"
RIVALS = ("plain fusion", "RRF-60", "mem0's rule")
COLUMNS = ("R@10", "nDCG@10")
BATCH = 64
FLUSH = 600.0  # seconds
MARKS = ("<!-- of recall_at_size.py -->", "<!-- end of recall_at_size.py -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a process that only searches found.

    Attributes:
        found: for each question, ids and scopes of records, best first.
        seconds: of CPU, of each search.
        resident: bytes that the process grew by.
    """

    found: list[list[tuple[str, Scope]]]
    seconds: list[float]
    resident: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The figures of one memory.

    Attributes:
        systems: by name; without questions whose answers are known, of no category.
        seconds: of CPU, of each search.
        written: CPU seconds of telling it everything, without embedding.
        disk, resident: bytes.
    """

    told: Sequence[Conversation]
    systems: Mapping[str, Figures]
    seconds: list[float]
    written: float
    disk: int
    resident: int

    @property
    def records(self) -> int:
        """How many messages the memory has been told."""
        return sum(one.size for one in self.told)


def prepared(model: scoring.Cached, told: Sequence[Conversation], folder: Path) -> None:
    """Embed everything that is told and not in the folder, and write it there."""
    texts = {one.text for each in told for session in each.sessions for one in session.contents}
    folder.mkdir(parents=True, exist_ok=True)
    model.load(folder)
    ordered = sorted(texts, key=len)
    for start in track(range(0, len(texts), BATCH), "embedding", transient=True):
        scoring.vectors(model, ordered[start : start + BATCH], "document")
    model.save(folder)


def measured(told: Sequence[Conversation], model: scoring.Cached, embedder: str) -> Run:
    """Tell a new memory these conversations, and ask their questions."""
    sessions = [session for one in told for session in one.sessions]
    questions = [asked for one in told for asked in one.questions]
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(folder, embedder=model) as memory:
            start = time.process_time()
            evidence.ingest(memory, sessions)
            memory.flush(FLUSH)
            written = time.process_time() - start
        disk = sum(one.stat().st_blocks * 512 for one in Path(folder).rglob("*") if one.is_file())
        apart = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=apart) as processes:
            answer = processes.submit(searched, folder, embedder, told).result()
    known = dict(zip(questions, answer.found, strict=True))
    answerable = [one for one in questions if one.gold]
    systems = {OURS: evidence.measure(known.__getitem__, answerable)[0]}
    others = evidence.others(sessions, model)
    for name in RIVALS:
        systems[name], _ = evidence.measure(others[name], answerable)
    return Run(
        told=told,
        systems=systems,
        seconds=answer.seconds,
        written=written,
        disk=disk,
        resident=answer.resident,
    )


def searched(folder: str, embedder: str, told: Sequence[Conversation]) -> Searched:
    """Ask a memory on disk every question; meant for a process of its own."""
    model = scoring.cached(scoring.embedder(embedder))
    scoring.vectors(model, [asked.text for one in told for asked in one.questions], "query")
    before = peer.resident()
    found, seconds = [], []
    with Memory.open(folder, embedder=model) as memory:
        knows_time = "asked_at" in inspect.signature(memory.search).parameters
        first = told[0].questions[0]
        memory.search(first.text, first.scope)  # reads what any first search of a process needs
        for one in told:
            more: dict[str, Any] = {"asked_at": one.asked_at} if knows_time else {}
            for asked in one.questions:
                start = time.process_time()
                matches = memory.search(asked.text, asked.scope, top_k=evidence.TOP, **more)
                seconds.append(time.process_time() - start)
                found.append([(match.record.id, match.record.scope) for match in matches])
        resident = peer.resident() - before
    return Searched(found=found, seconds=seconds, resident=resident)


def kinds_table(size: str, run: Run) -> Table:
    """Lay out what was found, by kind of question."""
    table = Table(Column("questions", no_wrap=True), "n", *run.systems, title=_title(size, run))
    kinds = run.systems[OURS]
    for kind in sorted(kinds, key=lambda name: (name == "overall", name)):
        if kind == "overall":
            table.add_section()
        table.add_row(kind, str(len(kinds[kind])), *_found(run, kind))
    numbered = sum(one.is_numbered for one in run.told)
    unanswerable = [
        one.category == beam.UNANSWERABLE for each in run.told for one in each.questions
    ]
    unknown = len(unanswerable) - sum(unanswerable) - len(kinds.get("overall", ()))
    table.caption = (
        f"Messages are numbered in {numbered} of {len(run.told)} conversations. Only timed: "
        f"{sum(unanswerable)} questions that nothing answers, {unknown} that cite nothing of the "
        "user or numbers that are not known."
    )
    return table


def _title(size: str, run: Run) -> str:
    return f"{size}: {len(run.told)} users, {run.records:,} messages. R@10 (nDCG@10)"


def _found(run: Run, kind: str) -> list[str]:
    if kind not in run.systems[OURS]:
        return ["-"] * len(run.systems)
    means = [
        [evidence.mean(figures, column, kind) for column in COLUMNS]
        for figures in run.systems.values()
    ]
    return [f"{recall:.3f} ({gain:.3f})" for recall, gain in means]


def sizes_table(runs: Mapping[str, Sequence[Run]]) -> Table:
    """Lay out what was found over all questions, and what it cost, by size."""
    found = (OURS, *RIVALS)
    costs = ("search, CPU ms p50 / p95", "write, CPU ms", "disk MB", "memory MB")
    names = (Column(name, no_wrap=True) for name in ("size", "users", "messages", "n"))
    table = Table(*names, *found, *costs, title="by size, R@10 (nDCG@10)")
    for size, each in runs.items():
        for run in each:
            middle, high = scoring.percentiles(run.seconds)
            table.add_row(
                size,
                str(len(run.told)),
                f"{run.records:,}",
                str(len(run.systems[OURS].get("overall", ()))),
                *_found(run, "overall"),
                f"{middle:.1f} / {high:.1f}",
                f"{run.written / run.records * 1e3:.2f}",
                f"{run.disk / 1e6:.1f}",
                f"{run.resident / 1e6:.0f}",
            )
    return table


def write_page(file: Path, table: Table) -> None:
    """Replace the table between the marks of a page."""
    made = saved(table)
    lines = report_page.markdown("", made["columns"], made["rows"])
    before, mark, rest = file.read_text("utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (mark and end):
        message = f"{file} lacks the lines {MARKS[0]} and {MARKS[1]}."
        raise typer.BadParameter(message)
    text = "\n".join([before + mark, *lines, end + after])
    file.write_text(text, encoding="utf-8")


def _sizes(folder: Path) -> list[str]:
    """List the sizes in a folder, the smallest first: 500K is less than 1M."""
    units = {"": 1, "K": 10**3, "M": 10**6}
    found = {
        one.name: int(match[1]) * units[match[2]]
        for one in folder.iterdir()
        if (match := re.fullmatch(r"(\d+)([KM]?)", one.name))
    }
    return sorted(found, key=lambda name: found[name])


def main(
    folder: Annotated[Path, typer.Argument(help="Conversations in BEAM's format.")],
    size: Annotated[list[str] | None, typer.Option(help="Only it; may be repeated.")] = None,
    embedder: Annotated[str, typer.Option(help="default, minilm-tokens or hash")] = "default",
    cache: Annotated[Path | None, typer.Option(help="Where vectors are kept.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also write the last table there.")] = None,
    file: TablesFile = None,
) -> None:
    """Measure what is found in conversations of each size, and what it costs."""
    console = Console(width=160)
    runs: dict[str, list[Run]] = {}
    tables: list[Table] = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in size or _sizes(folder):
            told = beam.conversations(folder / name)
            model = scoring.cached(scoring.embedder(embedder))
            prepared(model, told, (cache or Path(temporary)) / name)
            runs[name] = [measured(told, model, embedder)]
            tables.append(kinds_table(name, runs[name][0]))
            console.print(tables[-1])
            longest = max(told, key=lambda one: (one.is_numbered, one.size))
            if len(told) > 1:
                runs[name].append(measured([longest], model, embedder))
            save(file, [*tables, sizes_table(runs)])
    tables.append(sizes_table(runs))
    console.print(tables[-1])
    console.print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end.")
    if page is not None:
        write_page(page, tables[-1])


if __name__ == "__main__":
    typer.run(main)
