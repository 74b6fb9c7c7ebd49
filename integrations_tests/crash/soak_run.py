"""A soak: four adapters in four processes on one folder, what grew meanwhile, and what is left."""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
import soak_load
from many_processes import list_all

from commonplace import Memory
from commonplace.admin import backup
from commonplace.runtime import Runtime
from commonplace.settings import Location, Settings

LIMIT = 1.10  # times as much at the end as in the beginning
PERCENTILES = (50, 95, 99)
_BEYOND = 20  # operations above a percentile, without which it says nothing
_POLL_SECONDS = 0.5  # a sample is the most of what was seen since the one before
_FEW = 20  # pending writes: what four processes have on its way at any time
_AFTER_OUTAGE = 15.0  # seconds until a server that answers again has all that it needs
_OPEN_SECONDS = 180.0  # for four processes that import a framework each
_GONE_SECONDS = 30.0  # until no file has what was forgotten


@dataclass(slots=True)
class Counts:
    """Counts of a soak; from `lost` on they must be zero.

    Attributes:
        steps: calls that were made. forgotten: users. records, messages: that are there at the end.
        outages: of a server; what fails in one is counted in `unavailable`.
        lost, doubled, foreign: records and messages. diverged: records whose index differs.
        left: operations that stayed pending or dead. failed: calls that raised an error.
        canaries: of forgotten users, that are in a file of the folder, open or closed, or a backup.
    """

    steps: int = 0
    forgotten: int = 0
    records: int = 0
    messages: int = 0
    outages: int = 0
    unavailable: int = 0
    lost: int = 0
    doubled: int = 0
    foreign: int = 0
    diverged: int = 0
    left: int = 0
    failed: int = 0
    canaries: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Counts of what must not happen."""
        names = ("lost", "doubled", "foreign", "diverged", "left", "failed", "canaries")
        return sum(int(getattr(self, name)) for name in names)

    def fault(self, name: str, example: str, number: int = 1) -> None:
        """Count faults of a kind, with an example."""
        setattr(self, name, getattr(self, name) + number)
        self.examples.append(f"{name}: {example}")


@dataclass(frozen=True, slots=True)
class Growth:
    """One figure at the beginning and at the end.

    Attributes:
        first, last: of the first and of the last sixth of the time after the warm-up.
        is_judged: there is enough of it in both to tell.
    """

    name: str
    unit: str
    first: float
    last: float
    is_judged: bool = True

    @property
    def ratio(self) -> float:
        if self.first == self.last:
            return 1.0
        return self.last / self.first if self.first else float("inf")

    @property
    def is_beyond(self) -> bool:
        """It grew more than it may."""
        return self.is_judged and self.ratio > LIMIT


@dataclass(frozen=True, slots=True)
class Plan:
    """What a soak does.

    Attributes:
        seconds: of load. warm_up: of these, before anything is compared.
        rate: steps a second and process. users: at a time and process. steps: of a user's life.
        sample_every: seconds.
        outage: makes an outage of a server and returns when it is over; None for none.
        outage_every: seconds from one to the next.
    """

    seconds: float
    warm_up: float
    rate: float = 4.0
    users: int = 5
    steps: int = 40
    sample_every: float = 10.0
    outage: Callable[[], None] | None = None
    outage_every: float = 240.0


@dataclass(slots=True)
class Report:
    """What a soak measured and counted.

    Attributes:
        samples: `t`, seconds since the beginning, and the most since the sample before of each
            figure: `strands rss` in MB, `strands threads`, `strands files`, `memory.db` in MB,
            `memory.db-wal` likewise, `files of the folder`, `pending` of one process.
        steps: seconds since the beginning, kind such as `strands turn`, milliseconds.
        outages: when each began, and when the last call can have begun that failed by it.
    """

    plan: Plan
    counts: Counts = field(default_factory=Counts)
    samples: list[dict[str, float]] = field(default_factory=list)
    steps: list[tuple[float, str, float]] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)

    def growth(self) -> list[Growth]:
        """Compare the first sixth of the time after the warm-up with the last."""
        sixth = (self.plan.seconds - self.plan.warm_up) / 6
        spans = (
            (self.plan.warm_up, self.plan.warm_up + sixth),
            (self.plan.seconds - sixth, self.plan.seconds),
        )
        found: list[Growth] = []
        names = dict.fromkeys(name for one in self.samples for name in one if name != "t")
        for name in names:
            values = [
                [one[name] for one in self.samples if begin <= one["t"] < end and name in one]
                for begin, end in spans
            ]
            if all(values):
                first, last = map(statistics.mean, values)
                is_judged = name != "pending" or last > _FEW
                found.append(Growth(name, _unit(name), first, last, is_judged))
        for kind in sorted({kind for _, kind, _ in self.steps}):
            times = [
                sorted(ms for at, one, ms in self.steps if one == kind and begin <= at < end)
                for begin, end in spans
            ]
            if not all(times):
                continue
            for percent in PERCENTILES:
                first, last = (percentile(one, percent) for one in times)
                is_enough = min(map(len, times)) * (100 - percent) / 100 >= _BEYOND
                is_judged = is_enough and not self.counts.outages
                found.append(Growth(f"{kind} p{percent}", "ms", first, last, is_judged))
        return found


def percentile(ordered: list[float], percent: float) -> float:
    """Take a percentile of numbers in ascending order."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def _unit(name: str) -> str:
    return "MB" if name.endswith("rss") or ".db" in name else ""


class Process:
    """One adapter's process, and what it has told."""

    def __init__(self, folder: Path, adapter: str, plan: Plan, report: Report) -> None:
        self.adapter = adapter
        self.pending = 0
        self.forgotten: list[str] = []
        self.ledgers: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        self.has_told = threading.Event()
        self.begun = 0.0
        self._report = report
        arguments = [str(folder), adapter, str(plan.rate), str(plan.users), str(plan.steps)]
        self._process = subprocess.Popen(
            [sys.executable, soak_load.__file__, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                getattr(self, f"_on_{said.pop('at')}")(**said)
        self.is_open.set()
        self.has_told.set()

    def _on_open(self) -> None:
        self.is_open.set()

    def _on_step(self, kind: str, ms: float) -> None:
        self._report.counts.steps += 1
        self._report.steps.append((time.monotonic() - self.begun, f"{self.adapter} {kind}", ms))

    def _on_forgot(self, user: str) -> None:
        self._report.counts.forgotten += 1
        self.forgotten.append(user)

    def _on_failed(self, kind: str, took: float, error: str) -> None:
        now = time.monotonic()
        if any(begin <= now and now - took <= end for begin, end in self._report.outages):
            self._report.counts.unavailable += 1
        else:
            self._report.counts.fault("failed", f"{self.adapter} {kind}: {error}")

    def _on_foreign(self, text: str) -> None:
        self._report.counts.fault("foreign", f"{self.adapter}: {text}")

    def _on_sample(self, pending: int) -> None:
        self.pending = pending

    def _on_flushed(self, pending: int, dead: int) -> None:
        if pending or dead:
            example = f"{self.adapter}: {pending} pending, {dead} dead"
            self._report.counts.fault("left", example, pending + dead)

    def _on_ledger(self, **ledger: Any) -> None:
        self.ledgers.append(ledger)

    def _on_told(self) -> None:
        self.has_told.set()

    def tell(self, word: str) -> None:
        """Give it a word; one that has ended gets none."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(f"{word}\n")

    def figures(self) -> dict[str, float]:
        """Measure it: resident memory in MB, threads, open files."""
        place = Path(f"/proc/{self._process.pid}")
        try:
            status = (place / "status").read_text()
            files = len(os.listdir(place / "fd"))
        except OSError:  # it has ended, which `close` tells
            return {}
        numbers = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
        if "VmRSS" not in numbers:
            return {}
        return {
            f"{self.adapter} rss": int(numbers["VmRSS"]) / 1024,
            f"{self.adapter} threads": int(numbers["Threads"]),
            f"{self.adapter} files": files,
        }

    def close(self) -> None:
        """Let it close its memory, and wait for its end."""
        assert self._process.stdin is not None
        self.tell("close")
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if code := self._process.wait(60):
            self._report.counts.fault("failed", f"{self.adapter} ended with {code}")
        self._reader.join(60)


def run(folder: Path, plan: Plan, *, told: Callable[[float], None] | None = None) -> Report:
    """Play the load, sample it, and check what is left.

    Args:
        told: is called with the seconds that have passed, at every sample.
    """
    report = Report(plan)
    folder.mkdir(parents=True, exist_ok=True)
    processes = [Process(folder, name, plan, report) for name in soak_load.ADAPTERS]
    try:
        for one in processes:
            if not one.is_open.wait(_OPEN_SECONDS):
                report.counts.fault("failed", f"{one.adapter} did not open")
        begun = time.monotonic()
        for one in processes:
            one.begun = begun
            one.tell("begin")
        _watch(folder, plan, processes, report, begun, told)
        for one in processes:
            one.tell("end")
        for one in processes:
            if not one.has_told.wait(180):
                report.counts.fault("failed", f"{one.adapter} did not end")
        users = {ledger["user"] for one in processes for ledger in one.ledgers}
        _look_for_canaries(folder, users, plan, report.counts)
    finally:
        for one in processes:
            one.close()
    if canaries := _canaries(folder) - users:
        example = f"in a closed folder {sorted(canaries)[:5]}"
        report.counts.fault("canaries", example, len(canaries))
    check_ledgers(folder, [ledger for one in processes for ledger in one.ledgers], report.counts)
    return report


def _watch(
    folder: Path, plan: Plan, processes: list[Process], report: Report, begun: float,
    told: Callable[[float], None] | None,
) -> None:  # fmt: skip
    """Sample until the time is over, with outages between."""
    sample_at, outage_at = begun + plan.sample_every, begun + plan.outage_every / 2
    outage: threading.Thread | None = None
    most: dict[str, float] = {}
    while (now := time.monotonic()) < begun + plan.seconds:
        ends_in_time = now + plan.outage_every / 2 < begun + plan.seconds
        if plan.outage and outage is None and now >= outage_at and ends_in_time:
            outage_at = now + plan.outage_every
            report.counts.outages += 1
            outage = threading.Thread(target=_be_out, args=(plan.outage, report))
            outage.start()
        if outage is not None and not outage.is_alive():
            outage = None
        for name, value in _figures(folder, processes).items():
            most[name] = max(value, most.get(name, 0.0))
        if now >= sample_at:
            report.samples.append({"t": round(now - begun, 1), **most})
            sample_at, most = sample_at + plan.sample_every, {}
            for one in processes:
                one.tell("sample")
            if told:
                told(now - begun)
        time.sleep(_POLL_SECONDS)
    if outage is not None:
        outage.join()


def _figures(folder: Path, processes: list[Process]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in processes:
        found |= one.figures()
    for name in ("memory.db", "memory.db-wal"):
        with contextlib.suppress(FileNotFoundError):  # the log is made and removed
            found[name] = (folder / name).stat().st_size / 2**20
    found["files of the folder"] = len(os.listdir(folder))
    found["pending"] = max(one.pending for one in processes)
    return found


def _be_out(outage: Callable[[], None], report: Report) -> None:
    begun = time.monotonic()
    report.outages.append((begun, float("inf")))
    outage()
    report.outages[-1] = begun, time.monotonic() + _AFTER_OUTAGE


def _canaries(folder: Path) -> set[str]:
    """Find all canaries in the files of a folder."""
    found: set[str] = set()
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a log, which SQLite removes
            if file.is_file():
                found |= {one.decode() for one in soak_load.CANARY.findall(file.read_bytes())}
    return found


def _look_for_canaries(folder: Path, users: set[str], plan: Plan, counts: Counts) -> None:
    """Look for users who were forgotten, while all processes have the folder open."""
    until = time.monotonic() + _GONE_SECONDS
    while (left := _canaries(folder) - users) and time.monotonic() < until:
        time.sleep(0.2)
    if left:
        counts.fault("canaries", f"in the open folder {sorted(left)[:5]}", len(left))
    if plan.outage is None:  # with servers, no file holds it all
        copies = folder.parent / f"{folder.name} backup"
        copies.mkdir(exist_ok=True)
        backup(Location.find(str(folder), Settings()), copies / "backup.db", replace=True)
        if left := _canaries(copies) - users:
            counts.fault("canaries", f"in a backup {sorted(left)[:5]}", len(left))


def check_ledgers(folder: Path, ledgers: Iterable[Mapping[str, Any]], counts: Counts) -> None:
    """Compare the ledgers with what is listed and what is in the index, and with nothing else."""
    ledgers = {one["user"]: one for one in ledgers}
    with Memory.open(str(folder)) as memory:
        left = memory.flush(60)
        if left.pending or left.dead:
            counts.fault("left", f"{left}", left.pending + left.dead)
        runtime: Runtime = memory._runtime
        index = dict(runtime.engines.index.versions(None))
        graph = dict(runtime.engines.graph.versions(None))
        for record, _ in index.items() ^ graph.items():
            counts.fault("diverged", record)
        listed: set[str] = set()
        for scope in {one.owner for one in memory.admin.list_scopes()}:
            if scope.user_id not in ledgers:
                counts.fault("foreign", f"{scope} should not be there")
        for user, ledger in ledgers.items():
            found: Counter[str] = Counter()
            for record in list_all(memory, soak_load.User(user).scope):
                listed.add(record.id)
                tokens = {one[0] for one in soak_load.TOKEN.finditer(record.text)}
                found.update(tokens or {f"{record.id} without a token"})
            _compare(user, ledger, found, counts)
        for record in graph.keys() ^ listed:
            counts.fault("diverged", f"{record} is listed or in the stores, and not both")


def _compare(user: str, ledger: Mapping[str, Any], found: Counter[str], counts: Counts) -> None:
    counts.records += found.total()
    counts.messages += ledger["said"]
    for token in set(ledger["tokens"]) - set(found):
        counts.fault("lost", token)
    for token, times in found.items():
        if times > 1:
            counts.fault("doubled", f"{token} {times} times")
        if token not in {*ledger["tokens"], *ledger["maybe"]}:
            counts.fault("foreign", f"{token} of {user}")
    for name, tokens in ledger["wrong"].items():
        if tokens:
            counts.fault(name, f"in the session {tokens[:5]}", len(tokens))


def by_kind(steps: Iterable[tuple[float, str, float]], every: float) -> dict[str, Any]:
    """Summarise latencies over time: for each kind, rows of `t`, p50, p95 and p99."""
    spans: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for at, kind, ms in steps:
        spans[kind][int(at // every)].append(ms)
    return {
        kind: [
            [number * every, *(round(percentile(sorted(times), p), 3) for p in PERCENTILES)]
            for number, times in sorted(found.items())
        ]
        for kind, found in sorted(spans.items())
    }


def long_form(seconds: float, outage: Callable[[], None] | None = None) -> Plan:
    """Plan a long soak."""
    return Plan(seconds=seconds, warm_up=min(300.0, seconds / 6), outage=outage)


def save(report: Report, file: Path) -> None:
    """Write a report as JSON: samples, latencies over time, what was compared and counted."""
    every = max(report.plan.sample_every, report.plan.seconds / 60)
    found = {
        "seconds": report.plan.seconds,
        "warm_up": report.plan.warm_up,
        "faults": report.counts.faults,
        "counts": asdict(report.counts),
        "growth": [
            {**asdict(one), "ratio": one.ratio, "is_beyond": one.is_beyond}
            for one in report.growth()
        ],
        "samples": report.samples,
        "latencies": by_kind(report.steps, every),
    }
    file.write_text(json.dumps(found, indent=1))
