"""How fast is the memory, by its public methods, with a model that costs nothing?

    python benchmarks/speed.py [--no-peer] [--small]

Every figure stands beside its budget, and beside mem0's for the same work in the same run. mem0 is
installed into an environment of its own and runs as a child process: its own local engine, no
telemetry, no language model, the same kind of hash embedder.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import scoring
import typer
from rich.console import Console
from rich.table import Table

from commonplace import Fact, Memory, Message, Scope
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
WORDS = "tea garden train doctor violin rabbit harbour letter winter kitchen bridge market".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure, its unit, and the most it may be (the least, for rates)."""

    name: str
    value: float
    unit: str
    budget: float

    @property
    def is_rate(self) -> bool:
        """More is better."""
        return self.unit.endswith("/s")


class SlowChat:
    """Answers after a while that there is nothing to remember."""

    id = "slow"

    async def complete(self, *_: object, **__: object) -> str:
        """Wait for a second, as a busy model would."""
        await asyncio.sleep(1.0)
        return '{"facts": []}'


class Stuck(HashEmbedder):
    """Never answers, so that accepted writes stay pending."""

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[list[float]]:
        """Wait until the process ends."""
        threading.Event().wait()
        return super().embed(texts, purpose=purpose)


def text(number: int) -> str:
    """Make up the text of a number; no two are equal."""
    return " ".join(WORDS[number // step % len(WORDS)] for step in (1, 7, 31)) + f" {number}"


def fill(memory: Memory, scope: Scope, count: int, first: int = 0) -> float:
    """Write that many facts, 64 at a time; answers records per second."""
    start = time.perf_counter()
    for at in range(first, first + count, 64):
        until = min(at + 64, first + count)
        memory.add([Fact(text=text(number)) for number in range(at, until)], scope)
    return count / (time.perf_counter() - start)


def timed(call: Callable[[int], object], times: int) -> list[float]:
    """Call with 0, 1, 2 and so on; answers the seconds of each."""
    seconds = []
    for number in range(times):
        start = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - start)
    return seconds


def accepting(folder: str) -> list[Row]:
    """Measure accepting a write that nobody waits for."""
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        memory.add("warm", ALICE)
        seconds = timed(lambda number: memory.add(text(number), ALICE, wait=False), 300)
    middle, high = scoring.percentiles(seconds)
    return [
        Row(name="accept p50", value=middle, unit="ms", budget=1),
        Row(name="accept p95", value=high, unit="ms", budget=2),
    ]


def searching(folder: str, heavy: int, total: int, erased: int) -> list[Row]:
    """Measure searches of a user with many records, of one with 200, and 64 at once; forget."""
    light, gone = Scope(user_id="light"), Scope(user_id="gone")
    model = scoring.Cached(HashEmbedder())
    with Memory.open(folder, embedder=model) as memory:
        rate = fill(memory, ALICE, heavy)
        fill(memory, light, 200)
        fill(memory, gone, erased)
        others = max(0, total - heavy - 200 - erased)
        for user in range(10):
            fill(memory, Scope(user_id=f"other {user}"), others // 10, first=user * 100_000)
        asked = [text(number * 37) for number in range(100)]
        model.embed(asked, purpose="query")
        timed(lambda number: memory.search(asked[number], ALICE), 5)
        many = scoring.percentiles(timed(lambda number: memory.search(asked[number], ALICE), 100))
        few = scoring.percentiles(timed(lambda number: memory.search(asked[number], light), 100))

        async def together() -> float:
            start = time.perf_counter()
            await asyncio.gather(*(memory.asearch(one, light) for one in asked[:64]))
            return time.perf_counter() - start

        at_once = asyncio.run(together())
        start = time.perf_counter()
        memory.forget(gone)
        forgotten = time.perf_counter() - start
    return [
        Row(name="add, batches of 64", value=rate, unit="records/s", budget=2_000),
        Row(name=f"search, {heavy} in scope, p50", value=many[0], unit="ms", budget=4),
        Row(name=f"search, {heavy} in scope, p95", value=many[1], unit="ms", budget=10),
        Row(name=f"search, 200 of {total}, p50", value=few[0], unit="ms", budget=1.5),
        Row(name="64 searches at once", value=at_once * 1e3, unit="ms", budget=300),
        Row(name=f"forget {erased}", value=forgotten * 1e3, unit="ms", budget=200),
    ]


def beside_a_slow_model(folder: str) -> list[Row]:
    """Measure a search while 48 writes wait for a chat model."""

    async def run() -> float:
        async with Memory.open(folder, embedder=HashEmbedder(), chat=SlowChat()) as memory:
            await memory.aadd(text(1), ALICE)
            for number in range(48):
                user = Scope(user_id=f"user {number}")
                await memory.aadd([Message(text=text(number))], user, infer=True, wait=False)
            await memory.asearch(text(1), ALICE)
            start = time.perf_counter()
            await memory.asearch(text(1), ALICE)
            return time.perf_counter() - start

    seconds = asyncio.run(run())
    return [Row(name="search, 48 slow writes", value=seconds * 1e3, unit="ms", budget=20)]


def replaying(folder: str, count: int) -> list[Row]:
    """Measure opening a store whose process ended with accepted writes not yet applied."""
    child = (
        "import os, sys, speed\n"
        "from commonplace import Memory\n"
        "memory = Memory.open(sys.argv[1], embedder=speed.Stuck())\n"
        "for number in range(int(sys.argv[2])):\n"
        "    memory.add(speed.text(number), speed.ALICE, wait=False)\n"
        "os._exit(0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", child, folder, str(count)], check=True, env=_environment()
    )
    start = time.perf_counter()
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        memory.flush(120)
        seconds = time.perf_counter() - start
    return [Row(name=f"open and replay, {count} accepted", value=seconds, unit="s", budget=10)]


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
    answer = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env=_environment(),
    )
    seconds, size = map(float, answer.stdout.split())
    return [
        Row(name="import", value=seconds, unit="s", budget=0.2),
        Row(name="import, memory", value=size, unit="MB", budget=30),
    ]


def peer(small: bool) -> dict[str, float]:
    """Measure mem0 in an environment of its own; empty when it cannot be installed."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "peer")
        venv.create(home, with_pip=True)
        python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
        try:
            subprocess.run([python, "-m", "pip", "install", "-q", "mem0ai"], check=True)
            script = Path(__file__).with_name("peer.py")
            answer = subprocess.run(
                [python, script, folder, "small" if small else "full"],
                check=True,
                capture_output=True,
                text=True,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": folder,
                    "MEM0_TELEMETRY": "False",
                    "MEM0_DIR": folder,
                },
            )
        except subprocess.CalledProcessError as error:
            print(f"The peer did not run: {error}\n{error.stderr or ''}", file=sys.stderr)
            return {}
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _environment() -> dict[str, str]:
    places = [str(Path(__file__).parent), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


def main(
    no_peer: Annotated[bool, typer.Option("--no-peer", help="Only ours.")] = False,
    small: Annotated[bool, typer.Option("--small", help="A tenth of everything.")] = False,
) -> None:
    """Print every figure with its budget and the peer's."""
    share = 10 if small else 1
    rows = importing()
    for measure in (
        accepting,
        beside_a_slow_model,
        lambda folder: searching(folder, 20_000 // share, 100_000 // share, 5_000 // share),
        lambda folder: replaying(folder, 10_000 // share),
    ):
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(folder)
    theirs = {} if no_peer else peer(small)
    table = Table("what", "unit", "budget", "ours", "within", "mem0", "ours is faster by")
    for row in rows:
        within = row.value >= row.budget if row.is_rate else row.value <= row.budget
        other = theirs.get(row.name)
        faster = (row.value / other if row.is_rate else other / row.value) if other else 0.0
        table.add_row(
            row.name,
            row.unit,
            f"{row.budget:g}",
            f"{row.value:.4g}",
            "yes" if within else "NO",
            f"{other:.4g}" if other else "",
            f"{faster:.3g}" if other else "",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    typer.run(main)
