"""Actions that a process may die in, and what is stored before and after each."""

import contextlib
import importlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from langgraph.checkpoint.base import empty_checkpoint
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from commonplace import Fact, Memory, Relation, SchemaMismatchError, Scope, Settings
from commonplace.admin import ImportedRecord, backup, copy, import_records, reembed
from commonplace.ingest import submission
from commonplace.ports.checkpoints import Selection
from commonplace.runtime import Runtime
from commonplace.settings import Location
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Record
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore
from commonplace_strands import CommonplaceSessionRepository

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
BEES, CELLO, VIOLA = "Alice keeps bees", "Alice plays the cello", "Alice plays the viola"
ROWS, HENS = "Alice rows at dawn", "Alice keeps hens"
TALKS = [Scope(user_id="alice", agent_id="a", session_id=name) for name in "xyz"]
THEN = datetime(2024, 5, 6, tzinfo=UTC)
SETTINGS = Settings(retry_after=0.02)
STORED = ("memories", "alice")
SERVERS = ("TEST_GRAPH", "TEST_VECTORS", "TEST_INDEX_FOLDER")  # as the fixture `engines` names them
SESSION, AGENT = "session", "agent"
STRANDS = f"strands/{Scope(user_id='alice', session_id=SESSION).key}"
Rows = Counter[tuple[Any, ...]]
Arm = Callable[[], None]


@dataclass(frozen=True)
class Place:
    """Where a run keeps everything: a folder, and the servers that the environment names."""

    root: Path

    @property
    def folder(self) -> str:
        """The folder of the memory in question."""
        return str(self.root / "memory")

    @property
    def file(self) -> Path:
        """The file of a backup."""
        return self.root / "backup.db"

    def open(self, dimensions: int = 64) -> Memory:
        """Open the memory in question."""
        return Memory.open(self.folder, embedder=HashEmbedder(dimensions), settings=SETTINGS)

    def open_any(self) -> Memory:
        """Open it with the embedder that it has, before or after it was embedded anew."""
        try:
            return self.open()
        except SchemaMismatchError:
            return self.open(32)

    @contextlib.contextmanager
    def source(self) -> Iterator[Memory]:
        """Open another memory, which is in one file on all engines."""
        kept = {name: os.environ.pop(name) for name in SERVERS if name in os.environ}
        folder = str(self.root / "source")
        try:
            memory = Memory.open(folder, embedder=HashEmbedder(), settings=SETTINGS)
        finally:
            os.environ |= kept
        with memory:
            yield memory


# -- what is stored --------------------------------------------------------------------------------


def rows_of(memory: Memory) -> Rows:
    """List what a memory holds, without times and versions, each as often as it is there."""
    runtime: Runtime = memory._runtime
    scopes = runtime.engines.graph.list_scopes()
    return sum((rows_within(memory, one) for one in scopes), steps_of(memory))


def rows_within(memory: Memory, scope: Scope) -> Rows:
    """List what a memory holds of a scope, without its checkpoints."""
    rows: Rows = Counter()
    found = memory.list(scope, limit=1000, include_superseded=True, include_expired=True)
    for one in found.records:
        state = one.times_told, one.votes, one.valid_to is not None, one.indexed
        extra = json.dumps(_timeless(one.metadata), sort_keys=True)
        rows["record", scope.key, one.id, one.text, extra, *state] += 1
        for version in memory.history(one.id, scope):
            rows["version", one.id, version.event, version.text, version.previous] += 1
    for said in memory.relations(scope, include_superseded=True):
        what = said.subject, said.predicate, said.object, said.valid_to is not None
        rows["relation", scope.key, *what] += 1
    for match in memory.search("Alice", scope, top_k=100):
        rows["found", scope.key, match.record.id, match.record.text] += 1
    return rows


def steps_of(memory: Memory, threads: Sequence[str | None] = (None, STRANDS)) -> Rows:
    """List the checkpoints of threads; None stands for all that a listing of all shows."""
    rows: Rows = Counter()
    store = memory.admin.checkpoints
    pages = (store.states(Selection(thread=one), limit=1000) for one in threads)
    for step in chain.from_iterable(pages):
        values = sorted((name, blob.data) for name, blob in step.values.items())
        writes = [(one.order, one.channel, one.value.data) for one in step.writes]
        body = step.checkpoint.body.data
        rows["checkpoint", step.checkpoint.address, body, repr(values), repr(writes)] += 1
    return rows


def _timeless(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out when an item of LangGraph was put."""
    item = metadata.get("langgraph", {})
    return {**metadata, "langgraph": {name: one for name, one in item.items() if name != "at"}}


def unequal_versions(memory: Memory) -> int:
    """Count records whose version in the index is not that of the graph store."""
    engines = memory._runtime.engines
    graph, index = (dict(one.versions(None)) for one in (engines.graph, engines.index))
    return len({one for one, _ in graph.items() ^ index.items()})


def _memory_state(place: Place) -> tuple[Rows, int, int]:
    """Read what is stored, after what was accepted is done: rows, unequal, left."""
    with place.open_any() as memory:
        left = memory.flush(30)
        rows = rows_of(memory)
        rows["embedder", memory.embedder.id] += 1
        return rows, unequal_versions(memory), left.pending + left.dead


def _copy_state(place: Place) -> tuple[Rows, int, int]:
    rows, unequal, left = _memory_state(place)
    with place.source() as source:
        rows += Counter({("source", *row): n for row, n in rows_of(source).items()})
    return rows, unequal, left


def _backup_state(place: Place) -> tuple[Rows, int, int]:
    rows, unequal, left = _memory_state(place)
    if place.file.exists():
        folder = place.root / "restored"
        folder.mkdir(exist_ok=True)
        shutil.copy(place.file, folder / "memory.db")
        with Memory.open(str(folder), embedder=HashEmbedder()) as restored:
            rows += Counter({("backup", *row): n for row, n in rows_of(restored).items()})
    return rows, unequal, left


# -- before an action ------------------------------------------------------------------------------


def keeps(text: str) -> Fact:
    """State what Alice keeps, of which there is one at a time."""
    animal = text.rsplit(maxsplit=1)[-1]
    said = Relation(subject="Alice", predicate="keeps", object=animal, single_valued=True)
    return Fact(text=text, relations=(said,))


def _fill(memory: Memory) -> None:
    memory.add([keeps(BEES), CELLO], ALICE)
    memory.add(["Bob bakes bread", "Bob boxes"], BOB)
    CommonplaceStore(memory).put(STORED, "old", {"text": "Alice swims"})
    _put_checkpoint(memory, "1")
    repository = CommonplaceSessionRepository(memory, user_id="alice")
    times = {"created_at": THEN.isoformat(), "updated_at": THEN.isoformat()}
    repository.create_session(Session(session_id=SESSION, session_type=SessionType.AGENT, **times))
    agent = SessionAgent(agent_id=AGENT, state={}, conversation_manager_state={}, **times)
    repository.create_agent(SESSION, agent)
    _append(memory, 0)
    memory.flush(30)


def _prepare(place: Place) -> None:
    with place.open() as memory:
        _fill(memory)


def _prepare_ended(place: Place) -> None:
    with place.open() as memory:
        _fill(memory)
        memory.add(keeps(HENS), ALICE)


def _prepare_deleted(place: Place) -> None:
    with place.open() as memory:
        _fill(memory)
        memory.delete(_id_of(memory, BEES), ALICE)


def _prepare_sessions(place: Place) -> None:
    with place.open() as memory:
        _fill(memory)
        for scope in TALKS:
            memory.add([CELLO, keeps(HENS)], scope)
            memory.session(scope).summarize("They talked.")


def _prepare_copy(place: Place) -> None:
    with place.source() as source:
        _fill(source)
        source.delete(_id_of(source, CELLO), ALICE)
    place.open().close()


def _put_checkpoint(memory: Memory, name: str) -> None:
    given = empty_checkpoint()
    given |= {"id": name, "ts": THEN.isoformat(), "channel_values": {"messages": [f"hi {name}"]}}
    given["channel_versions"] = {"messages": name}
    saver = CommonplaceSaver(memory)
    config: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    after = saver.put(config, given, {}, {"messages": name})
    saver.put_writes(after, [("messages", f"ho {name}")], "task")


def _append(memory: Memory, number: int) -> None:
    message: Any = {"role": "user", "content": [{"text": f"message {number}"}]}
    times = {"created_at": THEN.isoformat(), "updated_at": THEN.isoformat()}
    one = SessionMessage(message=message, message_id=number, **times)
    CommonplaceSessionRepository(memory, user_id="alice").create_message(SESSION, AGENT, one)


def _id_of(memory: Memory, text: str) -> str:
    return next(one.id for one in memory.list(ALICE).records if one.text == text)


# -- actions ---------------------------------------------------------------------------------------


def _on(
    act: Callable[[Memory], object], *, is_direct: bool = False
) -> Callable[[Place, Arm, Arm], None]:
    """Act on an open memory, whose closing belongs to the action.

    Args:
        is_direct: write in one transaction where the engines can, as with an embedder that was
            quick before, on a machine that is not busy.
    """

    def on_memory(place: Place, arm: Arm, done: Arm) -> None:
        with place.open() as memory:
            if is_direct:
                submission._QUICK_SECONDS = 30.0
                memory._runtime.worker.pace.measure(memory.embedder, 1, 0.001)
            arm()
            act(memory)
            done()
            memory.flush(30)

    return on_memory


def _imported() -> Iterator[ImportedRecord]:
    for n in range(10):
        at = THEN + timedelta(days=n)
        record = Record(
            id=str(uuid5(UUID(int=0), str(n))),
            text=f"Alice visited town {n}",
            scope=ALICE,
            created_at=at,
            updated_at=at + timedelta(hours=1),
            occurred_at=at,
        )
        yield ImportedRecord(
            record=record,
            past=((f"Alice visited village {n}", at),),
            deleted_at=at + timedelta(hours=2) if n == 3 else None,
        )


def _import(place: Place, arm: Arm, done: Arm) -> None:
    _use_small_batches()
    with place.open() as memory:
        arm()
        import_records(memory, _imported())
        done()


def _copy(place: Place, arm: Arm, done: Arm) -> None:
    _use_small_batches()
    with place.source() as source, place.open() as target:
        arm()
        report = copy(source, target)
        assert report.complete, report
        done()


def _reembed(place: Place, arm: Arm, done: Arm) -> None:
    _use_small_batches()
    arm()
    reembed(Location.find(place.folder, SETTINGS), SETTINGS, HashEmbedder(32))
    done()


def _backup(place: Place, arm: Arm, done: Arm) -> None:
    with place.open():
        arm()
        backup(Location.find(place.folder, SETTINGS), place.file, replace=True)
        done()


def _use_small_batches() -> None:
    """Let the few records of a run be several batches."""
    for name in ("backfill", "import_records"):
        vars(importlib.import_module(f"commonplace.admin.{name}"))["_BATCH"] = 3
    vars(importlib.import_module("commonplace.admin.copy"))["BATCH"] = 3


@dataclass(frozen=True, kw_only=True)
class Action:
    """Something that a process does, and may die in.

    Attributes:
        prepare: makes what is there before.
        act: does it; calls its second argument when the preparations of it are over, and its third
            when it is acknowledged.
        state: reads what is stored: rows, records whose index differs, operations that are left.
        is_atomic: done wholly or not at all, also where it is not repeated.
        repeats: can be repeated, which then completes it.
        engines: that have it; all if empty.
    """

    act: Callable[[Place, Arm, Arm], None]
    prepare: Callable[[Place], None] = _prepare
    state: Callable[[Place], tuple[Rows, int, int]] = _memory_state
    is_atomic: bool = True
    repeats: bool = False
    engines: tuple[str, ...] = ()


ACTIONS = {
    "add": Action(act=_on(lambda m: m.add(ROWS, ALICE, wait=False))),
    "awaited add": Action(act=_on(lambda m: m.add(ROWS, ALICE), is_direct=True)),
    "tell again": Action(act=_on(lambda m: m.add(CELLO, ALICE, wait=False))),
    "update": Action(act=_on(lambda m: m.update(_id_of(m, CELLO), VIOLA, ALICE, wait=False))),
    "delete": Action(act=_on(lambda m: m.delete(_id_of(m, CELLO), ALICE, wait=False))),
    "restore": Action(
        prepare=_prepare_deleted,
        act=_on(lambda m: m.restore(ALICE.record_id("fact", BEES), ALICE, wait=False)),
    ),
    "supersede": Action(act=_on(lambda m: m.add(keeps(HENS), ALICE, wait=False))),
    "reopen": Action(
        prepare=_prepare_ended,
        act=_on(lambda m: m.delete(_id_of(m, HENS), ALICE, wait=False)),
    ),
    "forget": Action(act=_on(lambda m: m.forget(ALICE))),
    "promote": Action(
        prepare=_prepare_sessions, act=_on(lambda m: m.session(TALKS[0]).promote()), repeats=True
    ),
    "summarize": Action(
        prepare=_prepare_sessions,
        act=_on(lambda m: m.session(TALKS[0]).summarize("They talked of hens.")),
        repeats=True,
    ),
    "checkpoint put": Action(
        act=_on(lambda m: _put_checkpoint(m, "2")), is_atomic=False, repeats=True
    ),
    "store put": Action(
        act=_on(
            lambda m: CommonplaceStore(m).put(STORED, "new", {"text": "Alice sings"}),
            is_direct=True,
        )
    ),
    "store delete": Action(
        act=_on(lambda m: CommonplaceStore(m).delete(STORED, "old")), repeats=True
    ),
    "session append": Action(act=_on(lambda m: _append(m, 1)), repeats=True),
    "import": Action(act=_import, is_atomic=False, repeats=True),
    "copy": Action(
        prepare=_prepare_copy, act=_copy, state=_copy_state, is_atomic=False, repeats=True
    ),
    "reembed": Action(act=_reembed, repeats=True),
    "backup": Action(act=_backup, state=_backup_state, repeats=True, engines=("embedded",)),
}
