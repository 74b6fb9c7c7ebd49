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
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "commonplace"
# SqliteStore needs extensions of SQLite, which not every Python is built with.
SQLITE = [] if hasattr(sqlite3.Connection, "enable_load_extension") else ["pysqlite3-binary"]
INSTALLED = {
    "mem0ai": ["mem0ai"],
    "SqliteStore": ["langgraph-checkpoint-sqlite", "numpy", *SQLITE],
    "chromadb": ["chromadb"],
}


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
    """Milliseconds of each memory, a median for each round; a memory may be missing."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """Median over the rounds."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str) -> float:
        """How many times ours a memory takes: the median of the ratios of the rounds."""
        pairs = zip(self.rounds[name], self.rounds[OURS], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)


class Child:
    """A memory in a process of its own."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        folder.mkdir()
        script = Path(__file__).with_name("peer.py")
        self._log = folder / "stderr.log"
        self._process = subprocess.Popen(
            [python, script, name, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            env=environment(ours=name == OURS) | {"HOME": str(folder)},
        )
        self.name = name
        self.versions: dict[str, str] = self._answer()

    def measure(self, work: Work, first: int) -> list[float]:
        """Make the calls of a round; answers the seconds of each."""
        asked = {"call": work.call, "user": work.user, "count": work.count, "size": work.size}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(asked | {"first": first}) + "\n")
        self._process.stdin.flush()
        seconds: list[float] = self._answer()
        return seconds

    def close(self) -> None:
        """End the process."""
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
def opened(homes: Path, folder: Path, *, alone: bool) -> Iterator[list[Child]]:
    """Start ours and every other memory that can be installed, which is said of those that cannot.

    Args:
        homes: the folder of the environments; what is there is used again.
        folder: the folder of their data.
        alone: start only ours.
    """
    with ExitStack() as stack:
        children = []
        for name in [OURS] if alone else [OURS, *INSTALLED]:
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


def compare(children: list[Child], works: list[Work], rounds: int) -> dict[str, Figure]:
    """Do every work once a round in every memory, in turns; answers figures by name."""
    figures: dict[str, Figure] = {}
    first = 0
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
