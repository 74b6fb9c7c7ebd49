"""Other memories beside ours: environments, child processes, and calls in turns.

In every round each memory makes the same calls, so that whatever else the machine does hits all
alike; a ratio is the median over the rounds.
"""

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from peer import Start
from rich.table import Table

OURS = "commonplace"
# SqliteStore needs extensions of SQLite, which not every Python is built with.
SQLITE = [] if hasattr(sqlite3.Connection, "enable_load_extension") else ["pysqlite3-binary"]
INSTALLED = {
    "mem0ai": ["mem0ai"],
    "SqliteStore": ["langgraph-checkpoint-sqlite", "numpy", *SQLITE],
    "chromadb": ["chromadb"],
}
Side = TypeVar("Side")
NO_CALL = "no such call"


@dataclass(frozen=True, slots=True)
class Work:
    """Calls of one kind that every memory makes in a round.

    Attributes:
        name: of the figure; empty for what is not measured.
        call: `add`, `fill`, `search` or `forget`, of `peer.py`.
        size: texts of each call.
    """

    name: str
    call: str
    user: str
    count: int = 1
    size: int = 1


@dataclass(slots=True)
class Figure:
    """A figure of each memory for each round, in milliseconds; a memory may be missing."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """Median over the rounds."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str) -> float:
        """How many times ours a memory takes: the median of the ratios of the rounds."""
        pairs = zip(self.rounds[name], self.rounds[OURS], strict=True)
        return statistics.median(theirs / max(ours, 1e-9) for theirs, ours in pairs)


class Child:
    """A memory in a process of its own."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        script = Path(__file__).with_name("peer.py")
        self._log = folder / "stderr.log"
        self._process = subprocess.Popen(
            [python, script, name, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("a"),
            text=True,
            env=environment(ours=name == OURS) | {"HOME": str(folder)},
        )
        self.name, self.python, self.folder = name, python, folder
        self.start: Start = self._answer()

    def measure(self, work: Work, first: int) -> list[float]:
        """Make the calls of a round; answers the seconds of each."""
        asked = {"call": work.call, "user": work.user, "count": work.count, "size": work.size}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(asked | {"first": first}) + "\n")
        self._process.stdin.flush()
        seconds: list[float] = self._answer()
        return seconds

    def close(self) -> None:
        """End the process, unless it has ended."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise ChildProcessError(f"ended with {status}: {self._log.read_text()[-500:]}")
        return json.loads(line)


def environment(*, ours: bool) -> dict[str, str]:
    """Make the environment of a child process, with or without the modules of this one."""
    if ours:
        places = [str(Path(__file__).parent), *filter(None, sys.path)]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def installed(home: Path, packages: list[str]) -> str:
    """Make an environment with packages, unless it is there; answers its interpreter.

    Raises:
        CalledProcessError: they cannot be installed.
    """
    python = str(home / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    done = home / "installed"
    if not done.exists():
        venv.create(home, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        subprocess.run(command, check=True, env=environment(ours=False))
        done.touch()
    return python


@contextmanager
def opened(homes: Path, folder: Path, *, only: Sequence[str] = ()) -> Iterator[list[Child]]:
    """Start ours and every other memory that can be installed, which is said of those that cannot.

    Args:
        homes: the folder of the environments; what is there is used again.
        folder: the folder of their data.
        only: names of those beside ours; all when empty.
    """
    with ExitStack() as stack:
        children = []
        for name in [OURS, *(only or INSTALLED)]:
            try:
                python = sys.executable
                if name != OURS:
                    python = installed(homes / name, INSTALLED[name])
                child = Child(python, name, folder / name)
            except (subprocess.CalledProcessError, ChildProcessError) as error:
                print(f"{name} does not run: {error}", file=sys.stderr)
                continue
            stack.callback(child.close)
            children.append(child)
        yield children


def compare(
    children: list[Child], works: list[Work], rounds: int, first: int = 0
) -> dict[str, Figure]:
    """Do every work once a round in every memory, in turns; answers figures by name.

    Args:
        first: number of the first text; each call has texts of its own.
    """
    figures: dict[str, Figure] = {}
    for turn in range(rounds):
        for work in works:
            # Who begins changes, so that nobody always follows the same neighbour.
            for child in children[turn % len(children) :] + children[: turn % len(children)]:
                seconds = child.measure(work, first)
                if seconds and work.name:
                    figure = figures.setdefault(work.name, Figure())
                    each = statistics.median(seconds) * 1e3 / work.size
                    figure.rounds.setdefault(child.name, []).append(each)
            first += work.count * work.size
    return figures


def in_turns(
    sides: Mapping[str, Side],
    calls: Mapping[str, tuple[int, Callable[[Side, int], object]]],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Figure]:
    """Make each call on every side of this process, in turns; answers figures by call.

    Args:
        calls: how often each is made, and the call by its side and its number.
    """
    figures: dict[str, Figure] = {}
    for name, (times, call) in calls.items():
        rounds = figures.setdefault(name, Figure()).rounds
        for number in range(times):
            for side in list(sides)[:: -1 if number % 2 else 1]:
                start = clock()
                call(sides[side], number)
                rounds.setdefault(side, []).append((clock() - start) * 1e3)
    return figures


def laid_out(
    figures: Mapping[str, Figure], names: Sequence[str], title: str, *, caption: str = ""
) -> Table:
    """Lay out the figures of every memory, with the median of its ratios to ours."""
    table = Table("p50 in ms (times ours)", *names, title=title, caption=caption)
    for what, figure in figures.items():
        cells = (
            NO_CALL if name not in figure.rounds
            else short(figure.value(name)) if name == OURS
            else f"{short(figure.value(name))} ({figure.ratio(name):.2f})"
            for name in names
        )  # fmt: skip
        table.add_row(what, *cells)
    return table


def short(value: float) -> str:
    """Write three digits that count, and no exponent."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
