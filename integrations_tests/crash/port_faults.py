"""Faults of the n-th call of any port during a scripted session, and the check of what is stored.

A program of `programs.py`, as `crash_matrix` is. Each step of the session has a user of its own, so
that what it left can be told apart.
"""

import asyncio
import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash_actions import Place, Rows, keeps, rows_within, steps_of, unequal_versions
from crash_matrix import Counts, Say, forked, reset_for

import commonplace.runtime
from commonplace import CommonplaceError, Memory, Scope, StoreRefusedError, StoreUnavailableError
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, TaskWrite
from commonplace.ports.engines import Transactional
from commonplace.ports.stores import Engines

KINDS = ("error", "timeout", "unknown", "refused", "cancel")
_LATE_SECONDS = 0.02
_SHORT_RUNS, _SHORT_RUNS_ON_SERVERS = 40, 20


# -- faults ----------------------------------------------------------------------------------------


@dataclass
class Faults:
    """Counts the calls of all ports, and fails one.

    Attributes:
        at: its number, from 1; 0 for none.
        kind: "error": it is not carried out. "timeout": as well, after a pause. "refused": as well,
            and to ask again would be no use. "unknown": it is carried out, and raises all the same.
            "cancel": its caller's task is cancelled meanwhile.
        calls: their names, in their order.
    """

    at: int = 0
    kind: str = "error"
    calls: list[str] = field(default_factory=list)
    is_armed: bool = False
    cancel: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, name: str, call: Callable[[], Any]) -> Any:
        """Carry out a call, or fail it."""
        with self.lock:
            self.calls += [name] if self.is_armed else []
            is_hit = self.is_armed and len(self.calls) == self.at
        if not is_hit:
            return call()
        if self.kind == "refused":
            raise StoreRefusedError(store="a store", reason="it does not know the user")
        if self.kind == "unknown":
            call()
            raise StoreUnavailableError(store="a store", reason="no answer")
        if self.kind == "cancel":
            self.cancel()
        if self.kind in ("timeout", "cancel"):
            time.sleep(_LATE_SECONDS)
        if self.kind == "cancel":
            return call()
        raise StoreUnavailableError(store="a store", reason="it is away")


class FaultyStore:
    """One store, each of whose calls may fail."""

    def __init__(self, store: Any, name: str, faults: Faults) -> None:
        self._store, self._name, self._faults = store, name, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name == "close":
            return found
        label = f"{self._name}.{name}"
        return lambda *a, **k: self._faults.call(label, lambda: found(*a, **k))


def faulty(engines: Engines, faults: Faults) -> Engines:
    """Put faults before every store."""
    names = ("index", "graph", "journal", "checkpoints")
    stores: Any = {one: FaultyStore(getattr(engines, one), one, faults) for one in names}
    if isinstance(engines, Transactional):
        return FaultyTransactions(**stores, inner=engines, faults=faults)
    return Engines(**stores)


@dataclass(frozen=True, kw_only=True)
class FaultyTransactions(Engines):
    """The same for stores in one database, whose transactions may fail too."""

    inner: Any
    faults: Faults

    def transact(self, work: Callable[[Engines], Any]) -> Any:
        """Run `work`, with faults, in a transaction that may fail."""
        within = lambda bound: work(faulty(bound, self.faults))  # noqa: E731
        return self.faults.call("transact", lambda: self.inner.transact(within))

    def finish_erasures(self, *, is_idle: bool) -> None:
        """Finish them, as maintenance does, whose calls are not counted."""
        self.inner.finish_erasures(is_idle=is_idle)

    def reclaim(self) -> bool:
        """Give space back, as maintenance does."""
        return bool(self.inner.reclaim())


# -- the session -----------------------------------------------------------------------------------

Step = Callable[[Memory, Scope], Awaitable[object]]


def _checkpoint(name: str, scope: Scope) -> Checkpoint:
    return Checkpoint(
        address=Address(thread=str(scope.user_id), namespace="", id=name),
        body=Blob(type="text", data=b"body"),
        metadata=Blob(type="text", data=b"{}"),
        versions={"messages": name},
    )


def _put(memory: Memory, scope: Scope, name: str) -> None:
    values = {("messages", name): Blob(type="text", data=name.encode())}
    memory.admin.checkpoints.put(_checkpoint(name, scope), values, scope)


def _write(memory: Memory, scope: Scope) -> None:
    written = Blob(type="text", data=b"written")
    one = TaskWrite(task="task", path="", index=0, channel="messages", value=written)
    memory.admin.checkpoints.write(_checkpoint("1", scope).address, [one], scope)


async def _id(memory: Memory, scope: Scope) -> str:
    return memory._runtime.engines.graph._store.page(scope).records[0].id  # type: ignore[attr-defined,no-any-return]  # of the proxy; not a call of the session


async def _update(memory: Memory, scope: Scope, *, wait: bool = True) -> None:
    await memory.aupdate(await _id(memory, scope), "Alice plays the viola", scope, wait=wait)


async def _delete(memory: Memory, scope: Scope) -> None:
    await memory.adelete(await _id(memory, scope), scope)


async def _vote(memory: Memory, scope: Scope) -> None:
    await memory.afeedback(await _id(memory, scope), scope, helped=True)


CELLO = "Alice plays the cello"
STEPS: Mapping[str, Step] = {
    "add": lambda m, s: m.aadd("Alice rows", s),
    "add later": lambda m, s: m.aadd("Alice rows", s, wait=False),
    "batch": lambda m, s: m.aadd(["Alice rows", "Alice sings", "Alice swims"], s),
    "tell again": lambda m, s: m.aadd(CELLO, s),
    "tell later": lambda m, s: m.aadd(CELLO, s, wait=False),
    "update": _update,
    "update later": lambda m, s: _update(m, s, wait=False),
    "supersede": lambda m, s: m.aadd(keeps("Alice keeps hens"), s),
    "vote": _vote,
    "search": lambda m, s: m.asearch("Alice", s),
    "list": lambda m, s: m.alist(s),
    "delete": _delete,
    "forget": lambda m, s: m.aforget(s),
    "checkpoint put": lambda m, s: asyncio.to_thread(_put, m, s, "2"),
    "checkpoint write": lambda m, s: asyncio.to_thread(_write, m, s),
}


def prepare(place: Place) -> None:
    """Store what the steps change."""
    with place.open() as memory:
        for name in STEPS:
            scope = Scope(user_id=name)
            memory.add(CELLO, scope)
            if name == "supersede":
                memory.add(keeps("Alice keeps bees"), scope)
            _put(memory, scope, "1")


def states_of(memory: Memory) -> dict[str, list[str]]:
    """Read what each step's user has."""
    found: dict[str, Rows] = {
        name: rows_within(memory, Scope(user_id=name)) + steps_of(memory, [name]) for name in STEPS
    }
    return {
        name: sorted(f"{number} {row!r}" for row, number in rows.items())
        for name, rows in found.items()
    }


async def play(memory: Memory, faults: Faults) -> dict[str, str]:
    """Play the session; return how each step that failed did: the type of its error."""
    loop = asyncio.get_running_loop()
    failed: dict[str, str] = {}
    for name, step in STEPS.items():
        task = asyncio.ensure_future(step(memory, Scope(user_id=name)))
        faults.cancel = lambda task=task: loop.call_soon_threadsafe(task.cancel)  # type: ignore[misc]
        try:
            await task
        except asyncio.CancelledError:
            failed[name] = "cancelled"
        except CommonplaceError as error:
            failed[name] = type(error).__name__
        except Exception as error:  # noqa: BLE001 -- counted as a fault
            failed[name] = f"not ours: {type(error).__name__}: {error}"
    return failed


def session(place: Place, faults: Faults, say: Say) -> None:
    """Open the memory, play the session with faults, and say what is left."""
    opened = commonplace.runtime.open_engines
    commonplace.runtime.open_engines = lambda *given: faulty(opened(*given), faults)
    with place.open() as memory:
        memory._runtime.worker.pace.measure(memory.embedder, 1, 0.001)
        faults.is_armed = True
        failed = asyncio.run(play(memory, faults))
        faults.cancel = lambda: None  # there is no task any more
        with contextlib.suppress(CommonplaceError):  # of the fault, as of the steps
            memory.flush(30)
        faults.is_armed = False
        left = memory.flush(30)
        say(failed=failed, calls=faults.calls)
        say(
            left=left.pending + left.dead,
            unequal=unequal_versions(memory),
            states=states_of(memory),
        )


# -- all of them -----------------------------------------------------------------------------------


class Sessions:
    """Sessions with a fault each, and the counts of what they left, by kind of fault.

    `Counts.killed` are those in which a step failed, or was cancelled.
    """

    def __init__(self, engines: str, home: Path) -> None:
        self.counts: dict[str, Counts] = {kind: Counts() for kind in KINDS}
        self._home = home
        self._reset = reset_for(engines)
        self._template = Place(home / "before")
        self._template.root.mkdir()
        self._run(lambda _: self._prepare(self._template))
        before = self._run(self._read_states)
        done = self._session(Faults())
        assert done["failed"] == {}, done
        self.calls: Sequence[str] = done["calls"]
        self._allowed = before["states"], done["states"]

    def run(self, at: int, kind: str) -> None:
        """Play one session, and compare what it left."""
        counts, where = self.counts[kind], f"{kind} at {at}, {self.calls[at - 1]}"
        counts.runs += 1
        found = self._session(Faults(at=at, kind=kind))
        if "error" in found:
            counts.fault("failed", f"{where}: {found['error']}")
            return
        counts.killed += bool(found["failed"])
        if found["left"]:
            counts.fault("left", where)
        if found["unequal"]:
            counts.fault("diverged", where)
        for name, error in found["failed"].items():
            if error.startswith("not ours"):
                counts.fault("failed", f"{where}, {name}: {error}")
        before, after = self._allowed
        for name, there in found["states"].items():
            allowed = [after[name]] + ([before[name]] if name in found["failed"] else [])
            if there not in allowed:
                missing = Counter(after[name]) - Counter(there)
                extra = Counter(there) - Counter(after[name])
                what = "lost" if missing else "doubled"
                error = found["failed"].get(name)
                counts.fault(what, f"{where}, {name} ({error}): -{missing} +{extra}")

    def _session(self, faults: Faults) -> dict[str, Any]:
        place = Place(self._home / "run")
        if self._reset is None:
            command = ["cp", "-a", "--sparse=always", self._template.root, place.root]
            subprocess.run(command, check=True)
        else:
            place.root.mkdir()
            self._run(lambda _: self._prepare(place))
        found = self._run(lambda say: session(place, faults, say), is_checked=False)
        shutil.rmtree(place.root)
        return found

    def _prepare(self, place: Place) -> None:
        if self._reset is not None:
            self._reset()
        prepare(place)

    def _read_states(self, say: Say) -> None:
        with self._template.open() as memory:
            say(states=states_of(memory))

    def _run(self, work: Callable[[Say], object], *, is_checked: bool = True) -> dict[str, Any]:
        ended = forked(work)
        found = {name: one for said in ended.said for name, one in said.items()}
        if ended.code:
            found.setdefault("error", f"ended with {ended.code}")
        if is_checked and "error" in found:
            raise RuntimeError(found["error"])
        return found


def run(engines: str, form: str, home: Path) -> dict[str, Counts]:
    """Run them on some engines; return the counts by kind of fault."""
    sessions = Sessions(engines, home)
    pairs = [(at, kind) for at in range(1, len(sessions.calls) + 1) for kind in KINDS]
    fewest = _SHORT_RUNS_ON_SERVERS if "+" in engines else _SHORT_RUNS
    step = 1 if form == "long" else max(1, len(pairs) // fewest)
    if step % len(KINDS) == 0:
        step += 1  # else all would be of one kind
    chosen = pairs[::step]
    for number, (at, kind) in enumerate(chosen, 1):
        sessions.run(at, kind)
        if number % _SHORT_RUNS == 0:
            faults = sum(one.faults for one in sessions.counts.values())
            progress = f"{engines}: {number} of {len(chosen)}, {faults} faults"
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {progress}\n")
    return sessions.counts
