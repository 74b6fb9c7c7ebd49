"""Processes that die at every named point of every action, and the check of what they leave.

A program of `programs.py`: the environment names the servers, as the fixture `engines` sets it. It
forks a process for each run, which takes some tens of milliseconds.
"""

import gc
import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
from crash_actions import ACTIONS, SETTINGS, Action, Place, Rows
from engines import find

import commonplace
import commonplace_langgraph
import commonplace_strands
from commonplace.backends import drop_index
from commonplace.ports.stores import arm_crash_points
from commonplace.settings import Location

FORMS = ("short", "long")
ACKNOWLEDGED = "acknowledged"
_RUN_SECONDS = 60  # after which a process counts as hanging
_JOURNALED = (
    "add", "tell again", "update", "delete", "restore", "supersede", "reopen", "forget",
)  # fmt: skip
_SAMPLE = 3  # of the points of these actions the short form takes every third
_SAMPLED = {
    "folders": ("awaited add", "tell again", "supersede", "forget", "promote", "reembed"),
    "neo4j+folder": ("supersede", "forget", "promote", "checkpoint put", "session append"),
    "neo4j+qdrant": ("tell again", "update", "delete", "restore", "store put", "import", "copy"),
}
_MOST_EXAMPLES = 20
Say = Callable[..., None]


class Kill(NamedTuple):
    """The end of a process: at the n-th passing of a point, from 1."""

    point: str
    hit: int


@dataclass(slots=True)
class Counts:
    """Counts of one action.

    Attributes:
        runs: with one kill or several. killed: processes.
        missed: runs that ended before they passed the point once more.
        lost: runs after which something accepted is missing. doubled: something is there that must
            not be, or twice. diverged: the index differs from the graph store. left: operations are
            still pending or dead. failed: runs that cannot be opened or repeated, or that hang.
    """

    runs: int = 0
    killed: int = 0
    missed: int = 0
    lost: int = 0
    doubled: int = 0
    diverged: int = 0
    left: int = 0
    failed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Counts of what must not happen."""
        return self.lost + self.doubled + self.diverged + self.left + self.failed

    def fault(self, name: str, example: object) -> None:
        """Count a fault."""
        setattr(self, name, getattr(self, name) + 1)
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(f"{name}: {example}")


# -- a process -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A process that has ended: what it said, and its exit code or the negative signal."""

    said: list[dict[str, Any]]
    code: int

    @property
    def passed(self) -> list[str]:
        """The points that it passed, in their order."""
        return [one["point"] for one in self.said if "point" in one]

    def find(self, name: str) -> Any:
        """Return what it said by this name; None if nothing."""
        return next((one[name] for one in self.said if name in one), None)


def forked(work: Callable[[Say], object], seconds: int = _RUN_SECONDS) -> Ended:
    """Run `work` in a process of its own, which is ended after some seconds, but for 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(seconds)  # which ends it

        def say(**what: Any) -> None:
            os.write(writing, f"{json.dumps(what)}\n".encode())

        code = 1
        try:
            work(say)
            code = 0
        except BaseException:  # noqa: BLE001 -- told to the parent
            say(error=traceback.format_exc()[-3000:])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = [json.loads(one) for one in lines if one.endswith("\n")]
    return Ended(said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def armed(say: Say, kill: Kill | None) -> Callable[[], None]:
    """Return what arms the points: each is told when it is passed, and one is the end."""
    lock, passed = threading.Lock(), Counter[str]()

    def reach(point: str) -> None:
        with lock:
            say(point=point)
            passed[point] += 1
            if kill == (point, passed[point]):
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: arm_crash_points(reach)


# -- runs ------------------------------------------------------------------------------------------


class Matrix:
    """All runs of an action on some engines.

    Args:
        reset: empties the servers, if there are any; called in a process of its own.
    """

    def __init__(self, action: str, home: Path, reset: Callable[[], None] | None) -> None:
        self.name = action
        self.counts = Counts()
        self._action: Action = ACTIONS[action]
        self._home = home
        self._reset = reset
        self._number = 0
        self._template = Place(home / f"{action} before".replace(" ", "_"))
        self._before: list[list[Any]] = []
        self._after: list[list[Any]] = []
        self.hits: Counter[str] = Counter()

    def prepare(self) -> None:
        """Learn what there is before and after, and the points that are passed."""
        place = self._place()
        self._before = self._checked(place)["rows"]
        ended = self._act(place, None)
        if ended.code:
            raise RuntimeError(ended.find("error"))
        self.hits = Counter(ended.passed)
        self._after = self._checked(place)["rows"]
        self._drop(place)

    def run(self, *kills: Kill) -> None:
        """Let a process die in the action, then others in the recovery; check what is left."""
        self.counts.runs += 1
        place = self._place()
        ended = self._act(place, kills[0])
        self._count_end(ended, kills[0])
        for number, kill in enumerate(kills[1:]):
            recovered = self._recover(place, kill)
            if recovered.code or number == 0:  # a third may find all done
                self._count_end(recovered, kill)
        is_accepted = ended.find(ACKNOWLEDGED) is not None or "after_journal" in ended.passed
        where = f"{self.name} {' '.join(f'{one.point}#{one.hit}' for one in kills)}"
        self._check(place, where, is_accepted=is_accepted, is_whole=self._action.is_atomic)
        if self._action.repeats:
            again = self._act(place, None)
            if again.code:
                self.counts.fault("failed", f"{where}: again: {again.find('error')}")
            else:
                self._check(place, f"{where}, again", is_accepted=True, is_whole=True)
        self._drop(place)

    def recovery_hits(self, kill: Kill) -> Counter[str]:
        """Learn the points that are passed by the recovery from a crash."""
        place = self._place()
        self._act(place, kill)
        passed = Counter(self._recover(place, None).passed)
        self._drop(place)
        return passed

    def _count_end(self, ended: Ended, kill: Kill) -> None:
        if ended.code == -signal.SIGKILL:
            self.counts.killed += 1
        elif ended.code:
            self.counts.fault("failed", f"{self.name} {kill}: {ended.code} {ended.find('error')}")
        else:
            self.counts.missed += 1

    def _act(self, place: Place, kill: Kill | None) -> Ended:
        def work(say: Say) -> None:
            def acknowledged() -> None:
                say(acknowledged=True)
                if kill is not None and kill.point == ACKNOWLEDGED:
                    os.kill(os.getpid(), signal.SIGKILL)

            self._action.act(place, armed(say, kill), acknowledged)

        return forked(work)

    def _recover(self, place: Place, kill: Kill | None) -> Ended:
        def work(say: Say) -> None:
            armed(say, kill)()
            with place.open_any() as memory:
                memory.flush(30)

        return forked(work)

    def _check(self, place: Place, where: str, *, is_accepted: bool, is_whole: bool) -> None:
        found = self._checked(place)
        if "error" in found:
            self.counts.fault("failed", f"{where}: {found['error']}")
            return
        if found["left"]:
            self.counts.fault("left", where)
        if not is_whole:
            return
        if found["unequal"]:
            self.counts.fault("diverged", where)
        allowed = [self._after] if is_accepted else [self._before, self._after]
        if found["rows"] not in allowed:
            there, wanted = _counted(found["rows"]), _counted(allowed[0])
            if missing := wanted - there:
                self.counts.fault("lost", f"{where}: {sorted(missing)[:3]}")
            if extra := there - wanted:
                self.counts.fault("doubled", f"{where}: {sorted(extra)[:3]}")

    def _checked(self, place: Place) -> dict[str, Any]:
        def work(say: Say) -> None:
            rows, unequal, left = self._action.state(place)
            say(state={"rows": _listed(rows), "unequal": unequal, "left": left})

        ended = forked(work)
        found: dict[str, Any] | None = ended.find("state")
        return found or {"error": ended.find("error") or f"ended with {ended.code}"}

    def _place(self) -> Place:
        """Make what there is before the action."""
        self._number += 1
        root = self._home / f"{self._template.root.name}_{self._number}"
        place = Place(root)
        reset, action = self._reset, self._action
        if reset is not None:
            root.mkdir()
            _done(forked(lambda _: (reset(), action.prepare(place))))
            return place
        if not self._template.root.exists():
            self._template.root.mkdir()
            _done(forked(lambda _: action.prepare(self._template)))
        shutil.copytree(self._template.root, root)
        return place

    def _drop(self, place: Place) -> None:
        if self.counts.faults == 0:  # else somebody will want to look
            shutil.rmtree(place.root)


def _done(ended: Ended) -> None:
    if ended.code:
        raise RuntimeError(ended.find("error") or f"ended with {ended.code}")


def _listed(rows: Rows) -> list[list[Any]]:
    return sorted([repr(row), number] for row, number in rows.items())


def _counted(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    return Counter(dict(rows))


# -- which runs ------------------------------------------------------------------------------------


def kills_of(hits: Counter[str], form: str) -> Iterator[Kill]:
    """Choose the passings of the points at which to end: the first, or middle and last as well."""
    yield Kill(ACKNOWLEDGED, 1)
    for point, number in hits.items():
        chosen = {1, (number + 1) // 2, number} if form == "long" else {1}
        yield from (Kill(point, hit) for hit in sorted(chosen))


def run(engines: str, form: str, home: Path) -> dict[str, Counts]:
    """Run the matrix on some engines; return the counts by action."""
    reset = reset_for(engines)
    matrices: dict[str, Matrix] = {}
    number = 0
    chosen = _SAMPLED.get(engines, ACTIONS) if form == "short" else ACTIONS
    for name in chosen:
        action = ACTIONS[name]
        if action.engines and engines not in action.engines:
            continue
        matrix = matrices[name] = Matrix(name, home, reset)
        matrix.prepare()
        for kill in kills_of(matrix.hits, form):
            number += 1
            if form == "long" or engines == "embedded" or number % _SAMPLE == 0:
                matrix.run(kill)
        _say_progress(engines, matrix)
    for name in _JOURNALED:
        if name in matrices:
            _run_recoveries(matrices[name], engines, form)
            _say_progress(f"{engines}, recovery", matrices[name])
    return {name: matrix.counts for name, matrix in matrices.items()}


def _say_progress(where: str, matrix: Matrix) -> None:
    """Tell whoever waits for a long form, or ends it before its time, what there is so far."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {where}: {matrix.name}: {matrix.counts}\n")


def _run_recoveries(matrix: Matrix, engines: str, form: str) -> None:
    """End the recovery too, once and twice."""
    if form == "short" and (engines != "embedded" or matrix.name not in ("update", "forget")):
        return
    firsts = [Kill(point, 1) for point in matrix.hits]
    for first in firsts if form == "long" else [Kill("after_graph", 1)]:
        passed = matrix.recovery_hits(first)
        for second in kills_of(passed, form):
            if second.point != ACKNOWLEDGED:
                matrix.run(first, second)
                matrix.run(first, second, second)


def reset_for(engines: str) -> Callable[[], None] | None:
    """Return what empties the servers; None where all is in a folder."""
    if engines == "folders":
        os.environ["TEST_INDEX_FOLDER"] = "1"
    return _reset if "+" in engines else None


def _reset() -> None:
    """Empty the servers that the environment names."""
    from servers.fixtures import empty_graph

    empty_graph(os.environ["TEST_GRAPH"].partition("?")[0])
    location = Location.find("memory", SETTINGS)
    if location.shares_vectors:
        for generation in (1, 2):
            drop_index(None, location, SETTINGS, generation)  # type: ignore[arg-type]  # unused


def warm_up() -> None:
    """Import what is imported on first use, for all processes that are forked.

    In these, memories are on the servers of the environment.
    """
    for package in (commonplace, commonplace_langgraph, commonplace_strands):
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "testing" not in one.name and not one.name.endswith("__main__"):
                importlib.import_module(one.name)
    Location.find = find  # type: ignore[method-assign,assignment]
    gc.freeze()  # a collection in a forked process would copy the pages of all that
