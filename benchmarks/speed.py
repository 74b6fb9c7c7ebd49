"""How fast is the memory, by its public methods, with a model that costs nothing?

    python benchmarks/speed.py [--small] [--no-peer] [--folder PLACE] [--environments PLACE]
    python benchmarks/speed.py --late

Made-up sentences with a natural vocabulary, 512 dimensions as the default embedder has, a folder on
a disk. The first table has every figure beside its budget, the second what grows with the number of
records. `others.py` compares with other memories.

`--late` measures only what late interaction costs: the CPU of a search in small talk, with the
default embedder, beside the same search in a memory without token vectors.
"""

import asyncio
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import peers
import scoring
import smalltalk
import typer
from rich.console import Console
from rich.table import Table
from sentences import Sentences, Vectors
from tables import TablesFile, save

from commonplace import Fact, Memory, Message, Scope
from commonplace.models.sentence_encoder import SentenceEncoder

ALICE = Scope(user_id="alice")
SENTENCES = Sentences()
VECTORS = Vectors()
TEMPORARY = Path(tempfile.gettempdir())
STEPS = (1_000, 3_000, 10_000, 30_000, 100_000)
QUESTIONS = 100
LATE = {200: 0.6, 600: 1.5, 2_000: 1.0}  # milliseconds more, by the number of records in scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure, its unit, and the most it may be; None when nothing is promised.

    Attributes:
        at_least: the budget is the least it may be.
    """

    name: str
    value: float
    unit: str
    budget: float | None = None
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """Tell whether the figure keeps its budget."""
        if self.budget is None:
            return "-"
        over = self.value < self.budget if self.at_least else self.value > self.budget
        return "OVER" if over else "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Median milliseconds of a search and an awaited add at a number of records."""

    records: int
    search: float
    add: float


class SlowChat:
    """Answers after a while that there is nothing to remember."""

    id = "slow"

    async def complete(self, *_: object, **__: object) -> str:
        """Wait for a second, as a busy model would."""
        await asyncio.sleep(1.0)
        return '{"facts": []}'


class Stuck(Vectors):
    """Never answers, so that accepted writes stay pending."""

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Wait until the process ends."""
        threading.Event().wait()
        return super().embed(texts, purpose=purpose)


class WithoutTokens:
    """The default embedder without token vectors."""

    def __init__(self) -> None:
        self._inner = SentenceEncoder()
        self.id, self.dimensions = self._inner.id, self._inner.dimensions

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Embed texts."""
        return self._inner.embed(texts, purpose=purpose)


def user(name: str) -> Scope:
    """Name the scope of a user."""
    return Scope(user_id=name)


def sentences(first: int, count: int) -> list[str]:
    """Make up sentences whose vectors cost nothing later."""
    texts = [SENTENCES.sentence(number) for number in range(first, first + count)]
    VECTORS.prepare(texts)
    return texts


def questions() -> list[str]:
    """Ask for the first hundred sentences, with vectors that cost nothing later."""
    texts = [SENTENCES.question(number) for number in range(QUESTIONS)]
    VECTORS.prepare(texts)
    return texts


def fill(memory: Memory, scope: Scope, count: int, first: int = 0) -> None:
    """Write so many sentences, 64 at a time."""
    for at in range(first, first + count, 64):
        until = min(at + 64, first + count)
        texts = [SENTENCES.sentence(number) for number in range(at, until)]
        memory.add([Fact(text=text) for text in texts], scope)


def timed(call: Callable[[int], object], times: int) -> list[float]:
    """Call with 0, 1, 2 and so on; answers the seconds of each."""
    seconds = []
    for number in range(times):
        start = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - start)
    return seconds


def searched(memory: Memory, scope: Scope) -> tuple[float, float]:
    """Measure a hundred searches after five others; answers p50 and p95 in milliseconds."""
    asked = questions()
    timed(lambda number: memory.search(asked[-1 - number], scope), 5)
    return scoring.percentiles(timed(lambda number: memory.search(asked[number], scope), QUESTIONS))


def added(memory: Memory, scope: Scope, times: int = 100) -> float:
    """Measure awaited adds of one sentence; answers p50 in milliseconds."""
    texts = sentences(5_000_000, times)
    return scoring.percentiles(timed(lambda number: memory.add(texts[number], scope), times))[0]


def writing(folder: str) -> list[Row]:
    """Measure adds that are awaited, adds that are only accepted, and adds in batches."""
    texts = sentences(0, 6_400)
    batches = [[Fact(text=text) for text in texts[at : at + 64]] for at in range(0, len(texts), 64)]
    with Memory.open(folder, embedder=VECTORS) as memory:
        memory.add("warm", ALICE)
        awaited = added(memory, ALICE, 300)
        accepted = timed(lambda number: memory.add(texts[number], ALICE, wait=False), 300)
        memory.flush(120)
        batched = timed(lambda number: memory.add(batches[number], user("bob")), len(batches))
    middle, high = scoring.percentiles(accepted)
    return [
        Row(name="awaited add, p50", value=awaited, unit="ms", budget=1.4),
        Row(name="accept, p50", value=middle, unit="ms", budget=0.6),
        Row(name="accept, p95", value=high, unit="ms", budget=1.5),
        Row(
            name="add, batches of 64",
            value=len(texts) / sum(batched),
            unit="/s",
            budget=4_000,
            at_least=True,
        ),
    ]


def growing(memory: Memory, scope: Scope, filled: Scope | None, total: int) -> Iterator[Growth]:
    """Measure a scope while records are added to another one, or to itself.

    Args:
        filled: whose records are added; None for users of 1,000 records each.
    """
    count = 0
    for step in (step for step in STEPS if step <= total):
        for at in range(count, step, 1_000):
            fill(memory, filled or user(f"other {at}"), min(1_000, step - at), first=at)
        count = step
        search, _ = searched(memory, scope)
        yield Growth(records=step, search=search, add=added(memory, filled or user("writer"), 50))


def searching(folder: str, total: int) -> tuple[list[Row], list[Growth]]:
    """Measure searches of users with few and with many records, 64 at once, and forgetting."""
    middle, heavy = total // 20, total // 5
    light, gone = user("light"), user("gone")
    with Memory.open(folder, embedder=VECTORS) as memory:
        fill(memory, light, 200)
        growth = list(growing(memory, light, None, total - 2 * middle - heavy))
        for name, count in (("middle", middle), ("heavy", heavy), ("gone", middle)):
            fill(memory, user(name), count)
        fill(memory, user("rest"), total - growth[-1].records - 2 * middle - heavy)
        search, high = searched(memory, light)
        growth.append(Growth(records=total, search=search, add=added(memory, user("writer"))))
        rows = [
            Row(name=f"search, 200 of {total}, p50", value=search, unit="ms", budget=0.9),
            Row(name=f"search, 200 of {total}, p95", value=high, unit="ms"),
        ]
        for name, count, budget in (("middle", middle, 2.0), ("heavy", heavy, 4.0)):
            half, high = searched(memory, user(name))
            label = f"search, {count} in scope"
            rows.append(Row(name=f"{label}, p50", value=half, unit="ms", budget=budget))
            rows.append(Row(name=f"{label}, p95", value=high, unit="ms"))
        at_once = asyncio.run(searched_at_once(memory, light)) * 1e3
        rows.append(Row(name="64 searches at once, 200", value=at_once, unit="ms", budget=100))
        [forgotten] = timed(lambda _: memory.forget(gone), 1)
    rows.append(Row(name=f"forget {middle}", value=forgotten * 1e3, unit="ms", budget=200))
    return rows, growth


async def searched_at_once(memory: Memory, scope: Scope) -> float:
    """Search 64 times at once, five times over; answers the median in seconds."""
    asked = questions()[:64]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        await asyncio.gather(*(memory.asearch(text, scope) for text in asked))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def reopening(folder: str, total: int) -> list[Row]:
    """Measure opening a store whose process was killed when all it accepted was applied.

    Args:
        folder: with that many records already.
    """
    child = (
        "import sys, speed, threading\n"
        "from commonplace import Memory\n"
        "memory = Memory.open(sys.argv[1], embedder=speed.VECTORS)\n"
        "speed.fill(memory, speed.ALICE, 1_000)\n"
        "memory.flush(120)\n"
        "print(memory.add('last', speed.ALICE).changes[0].id, flush=True)\n"
        "threading.Event().wait()\n"
    )
    seconds = []
    for _ in range(3):
        command = [sys.executable, "-c", child, folder]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=peers.environment(ours=True)
        ) as process:
            assert process.stdout
            last = process.stdout.readline().strip()
            process.kill()
        start = time.perf_counter()
        with Memory.open(folder, embedder=VECTORS) as memory:
            assert memory.get(last, ALICE)
            seconds.append(time.perf_counter() - start)
    value = statistics.median(seconds)
    return [Row(name=f"open after a crash, {total}", value=value, unit="s", budget=0.3)]


def beside_a_slow_model(folder: str) -> list[Row]:
    """Measure a search while 48 writes wait for a chat model."""

    async def work() -> float:
        async with Memory.open(folder, embedder=VECTORS, chat=SlowChat()) as memory:
            first, *texts = sentences(0, 49)
            await memory.aadd(first, ALICE)
            for number, text in enumerate(texts):
                message = Message(text=text)
                await memory.aadd([message], user(f"user {number}"), infer=True, wait=False)
            await memory.asearch(first, ALICE)
            start = time.perf_counter()
            await memory.asearch(first, ALICE)
            return time.perf_counter() - start

    seconds = asyncio.run(work())
    return [Row(name="search, 48 slow writes", value=seconds * 1e3, unit="ms", budget=20)]


def replaying(folder: str, count: int) -> list[Row]:
    """Measure opening a store whose process ended with accepted writes not yet applied."""
    child = (
        "import os, sys, speed\n"
        "from commonplace import Memory\n"
        "memory = Memory.open(sys.argv[1], embedder=speed.Stuck())\n"
        "for number in range(int(sys.argv[2])):\n"
        "    memory.add(speed.SENTENCES.sentence(number), speed.ALICE, wait=False)\n"
        "os._exit(0)\n"
    )
    run(sys.executable, child, folder, str(count))
    start = time.perf_counter()
    with Memory.open(folder, embedder=VECTORS) as memory:
        memory.flush(120)
        seconds = time.perf_counter() - start
    return [Row(name=f"open and apply, {count} accepted", value=seconds, unit="s", budget=10)]


def importing() -> list[Row]:
    """Measure what importing the package costs over a bare interpreter; memory on Linux only."""
    script = (
        "import os, time\n"
        "def held(): return int(open('/proc/self/statm').read().split()[1]) if "
        "os.path.exists('/proc/self/statm') else 0\n"
        "start, before = time.perf_counter(), held()\n"
        "import commonplace\n"
        "print(time.perf_counter() - start, (held() - before) * 4096 / 2**20)\n"
    )
    seconds, size = map(float, run(sys.executable, script).split())
    return [
        Row(name="import", value=seconds, unit="s", budget=0.2),
        Row(name="import, memory", value=size, unit="MB", budget=30),
    ]


def embedding(python: str, module: str) -> list[Row]:
    """Measure the CPU of the default embedder for a short question.

    Args:
        python: an interpreter that can import this module too; the rest comes from this process.
        module: imported before, for it may bring threads of its own.
    """
    script = (
        f"import statistics, time, {module}\n"
        "from commonplace.models.sentence_encoder import SentenceEncoder\n"
        "encoder, spent = SentenceEncoder(), []\n"
        "encoder.embed(['warm'], purpose='query')\n"
        "for _ in range(100):\n"
        "    start = time.process_time()\n"
        "    encoder.embed(['Where does Alice live?'], purpose='query')\n"
        "    spent.append(time.process_time() - start)\n"
        "print(statistics.median(spent))\n"
    )
    name = "default embedder, CPU" + f", beside {module}" * (module != "sys")
    return [Row(name=name, value=float(run(python, script)) * 1e3, unit="ms", budget=3)]


def beside_scikit_learn(homes: Path) -> list[Row]:
    """Measure the default embedder in a process with scikit-learn; none if it cannot be had."""
    try:
        python = peers.installed(homes / "scikit-learn", ["scikit-learn"])
    except subprocess.CalledProcessError as error:
        print(f"scikit-learn cannot be installed: {error}", file=sys.stderr)
        return []
    return embedding(python, "sklearn.linear_model")


def late_interaction(folder: str) -> Iterator[Row]:
    """Measure how much more CPU a search takes with token vectors than without."""
    asked = [one for one in map(smalltalk.turn, range(20_000, 21_000)) if one.endswith("?")]
    with (
        Memory.open(f"{folder}/with", embedder=SentenceEncoder()) as late,
        Memory.open(f"{folder}/without", embedder=WithoutTokens()) as plain,
    ):
        for size, budget in LATE.items():
            scope = user(str(size))
            for memory in (late, plain):
                talk(memory, scope, size)
            with_, without = spent((late, plain), asked[:QUESTIONS], scope)
            label = f"search, {size} in scope, CPU"
            yield Row(name=f"{label} without tokens", value=statistics.median(without), unit="ms")
            more = statistics.median(a - b for a, b in zip(with_, without, strict=True))
            yield Row(name=f"{label} more with tokens", value=more, unit="ms", budget=budget)


def spent(
    memories: Sequence[Memory], asked: Sequence[str], scope: Scope, rounds: int = 5
) -> list[list[float]]:
    """Measure the CPU of searches, in turns; answers for each memory the least of each question.

    Times are in milliseconds, after a round that is not measured.
    """
    least = [[float("inf")] * len(asked) for _ in memories]
    for turn in range(rounds + 1):
        for number, text in enumerate(asked):
            for memory, found in zip(memories, least, strict=True):
                start = time.process_time()
                memory.search(text, scope)
                if turn:
                    found[number] = min(found[number], (time.process_time() - start) * 1e3)
    return least


def talk(memory: Memory, scope: Scope, count: int) -> None:
    """Write so many turns of small talk, 20 a session."""
    for first in range(0, count, 20):
        turns = [
            Message(text=smalltalk.turn(number), name=("Anna", "Ben")[number % 2])
            for number in range(first, first + 20)
        ]
        session = Scope(user_id=scope.user_id, session_id=f"session {first}")
        memory.add(turns, session, infer=False)


def budgeted(rows: list[Row]) -> Table:
    """Lay figures out beside their budgets."""
    table = Table("what", "unit", "budget", "figure", "kept", title="Budgets")
    for row in rows:
        budget = "none" if row.budget is None else f"{'≥' if row.at_least else '≤'} {row.budget:g}"
        table.add_row(row.name, row.unit, budget, f"{row.value:.3g}", row.verdict)
    return table


def grown(others: list[Growth], same: list[Growth]) -> Table:
    """Lay out what grows with the records of others, and with those of the same scope."""
    table = Table(
        "records", "search, 200", "add", "search, all", "add to all", title="Growth: p50 in ms"
    )
    alone = {growth.records: growth for growth in same}
    for growth in others:
        mate = alone.get(growth.records)
        cells = (growth.search, growth.add, *((mate.search, mate.add) if mate else ()))
        table.add_row(f"{growth.records:,}", *(f"{cell:.3g}" for cell in cells))
    return table


def run(python: str, script: str, *arguments: str) -> str:
    """Run a script in a child process that sees the modules of this one; answers its output."""
    return subprocess.run(
        [python, "-c", script, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=peers.environment(ours=True),
    ).stdout


def file_system(folder: Path) -> str:
    """Name the type of the file system of a folder; `unknown` where the system does not tell."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return "unknown"
    found = (line.split()[1:3] for line in mounts.read_text().splitlines())
    above = [(place, kind) for place, kind in found if folder.resolve().is_relative_to(place)]
    return max(above, key=lambda mount: len(mount[0]))[1]


def described(folder: Path) -> str:
    """Describe machine, versions and file system."""
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    kind = file_system(folder)
    about = f"{machine}; {versions}, SQLite {sqlite3.sqlite_version}; {folder} on {kind}"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = f"\nThe machine is busy (load {load:.1f}): every figure is too high."
    return about + busy * (load > 0.5)


def check_disk(console: Console, folder: Path) -> None:
    """End the program when a folder is in memory, where commits cost nothing."""
    if file_system(folder) in {"tmpfs", "ramfs"}:
        console.print(
            f"{folder} is in memory, where commits cost nothing: name a --folder on disk."
        )
        raise typer.Exit(2)


@contextmanager
def empty(folder: Path) -> Iterator[str]:
    """Make an empty folder, and remove it at the end."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="speed-") as place:
        yield place


def main(
    no_peer: Annotated[bool, typer.Option("--no-peer", help="Not beside scikit-learn.")] = False,
    small: Annotated[bool, typer.Option("--small", help="A tenth of everything.")] = False,
    folder: Annotated[Path, typer.Option(help="On a disk.")] = TEMPORARY,
    environments: Annotated[
        Path | None, typer.Option(help="Where scikit-learn stays installed.")
    ] = None,
    late: Annotated[bool, typer.Option("--late", help="Only late interaction.")] = False,
    file: TablesFile = None,
) -> None:
    """Print every figure with its budget, and what grows."""
    console = Console(width=110)
    check_disk(console, folder)
    console.print(described(folder))
    if late:
        with empty(folder) as place:
            console.print(budgeted([*late_interaction(place)]))
        return
    share = 10 if small else 1
    total = 100_000 // share
    rows = importing() + embedding(sys.executable, "sys")
    for measure in (writing, beside_a_slow_model, lambda one: replaying(one, 10_000 // share)):
        with empty(folder) as place:
            rows += measure(place)
    with empty(folder) as place:
        found, others = searching(place, total)
        rows += found + reopening(place, total)
    with empty(folder) as place, Memory.open(place, embedder=VECTORS) as memory:
        same = list(growing(memory, ALICE, ALICE, total))
    if not no_peer:
        with empty(folder) as temporary:
            rows += beside_scikit_learn(environments or Path(temporary))
    tables = [budgeted(rows), grown(others, same)]
    console.print(*tables)
    save(file, tables)


if __name__ == "__main__":
    typer.run(main)
