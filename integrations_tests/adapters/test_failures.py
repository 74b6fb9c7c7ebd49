"""What an agent meets when its memory fails: the reply, the log, the counters, and what is kept.

As a program, `test_failures FOLDER AGENT ...`, it plays a full disk in a process of its own, for
one agent after the other, and prints as JSON what happened.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from agentscope.message import UserMsg

from commonplace import (
    InvalidRecordError,
    Memory,
    Policy,
    SchemaMismatchError,
    Scope,
    Settings,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.agents import MemoryCounters, MemoryEvent
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope import CommonplaceMiddleware

from ..servers.cutting_proxy import Cut
from ..servers.fixtures import empty_graph
from .test_agentscope import make
from .test_user_ids import AGENTS, FACT, AgentScope, Driver, LangGraphThreads

ALICE = Scope(user_id="alice")
QUESTION = "What is the name of my cat, on day {}?"
NAMES = ("recalled", "empty", "timed_out", "written", "late", "lost", "failed")
WORDS = {
    "late": "is late; it goes on, and so does the agent",
    "timed_out": "failed; the",
    "failed": "failed; the",
    "waiting": "waits in memory and is tried again; the",
}
ROUNDS = 2  # of an outage and its end
SETTINGS = Settings(retry_after=0.05)
every_adapter = pytest.mark.parametrize("agent", AGENTS, ids=lambda one: one.__name__)
BOTH_FACES = [*AGENTS, LangGraphThreads]
every_agent = pytest.mark.parametrize("agent", BOTH_FACES, ids=lambda one: one.__name__)


class Embedder(HashEmbedder):
    """Embeds, unless it `fails`, or hangs while it is not open."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.fails = False
        self.is_open = threading.Event()
        self.is_open.set()

    def embed(self, texts, *, purpose):
        if self.fails:
            raise ConnectionError("the embedder is away")
        self.is_open.wait()
        return super().embed(texts, purpose=purpose)


# -- outages, and what is expected of each -----------------------------------------------------


class Outage:
    """What a memory goes through, between `begin` and `end`."""

    events: tuple[str, ...]  # of each turn: operation, name, and the error if there is one
    reason: str  # in the log
    turns = 2
    recall_timeout = 5.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder = Embedder()

    def open(self) -> Memory:
        return Memory.open(str(self.folder), embedder=self.embedder, settings=SETTINGS)


class FolderMoved(Outage):
    events = ("recall failed StoreUnavailableError", "write waiting StoreUnavailableError")
    reason = "memory.db"

    def begin(self) -> None:
        self.folder.rename(self.folder.with_name("elsewhere"))

    def end(self) -> None:
        self.folder.with_name("elsewhere").rename(self.folder)


class DiskFull(Outage):
    """A file that cannot grow, for the whole process."""

    events = ("recall recalled", "write waiting StoreUnavailableError")
    reason = "disk"

    def begin(self) -> None:
        log = self.folder / "memory.db-wal"
        self._limit(log.stat().st_size if log.exists() else 0)

    def end(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


class EmbedderFails(Outage):
    events = ("recall failed ModelFailedError", "write failed ModelFailedError")
    reason = "the embedder is away"

    def begin(self) -> None:
        self.embedder.fails = True

    def end(self) -> None:
        self.embedder.fails = False


class EmbedderHangs(Outage):
    events = ("recall timed_out MemoryTimeoutError", "write late MemoryTimeoutError")
    reason = "took longer than"
    recall_timeout = 0.75

    def begin(self) -> None:
        self.embedder.is_open.clear()

    def end(self) -> None:
        self.embedder.is_open.set()


class ServerAway(EmbedderHangs):
    turns = 1
    recall_timeout = 3.0

    def __init__(self, folder: Path, cut: Cut) -> None:
        super().__init__(folder)
        self._cut = cut

    def open(self) -> Memory:
        graph, folder = empty_graph(self._cut.url), str(self.folder)
        memory = Memory.open(folder, graph=graph, embedder=self.embedder, settings=SETTINGS)
        memory.add("a server has to plan what it is asked first", Scope(user_id="bob"))
        memory.list(ALICE)
        return memory

    def begin(self) -> None:
        self._cut.drop()

    def end(self) -> None:
        self._cut.is_away = False


# -- playing one -------------------------------------------------------------------------------


@dataclass
class Turn:
    """What one turn left behind."""

    text: str
    answered: bool  # the model was called, and the agent's caller got its answer
    knew: bool  # the model was shown the fact
    events: list[str]  # as in `Outage`
    lines: list[str]  # of the adapter's log


@dataclass
class Played:
    """What all turns, in their order, left behind."""

    turns: list[Turn]
    counted: dict[str, Any]  # by the counters: how often each event happened, and the last error
    told: dict[str, Any]  # the same by the hook
    kept: list[str]  # texts of the records
    left: int  # writes that are pending or dead


@contextlib.contextmanager
def logged(name: str) -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger(name).addHandler(handler)
    yield lines
    logging.getLogger(name).removeHandler(handler)


def make_driver(agent: type[Driver], memory: Memory, events: list[MemoryEvent], timeout=5.0):
    options: dict[str, Any] = {"policy": Policy(recall_timeout=timeout)}
    if agent is AgentScope:
        options = {"recall_timeout": timeout}
    return agent(memory, user_id="alice", on_event=events.append, **options)


def counters(driver: Any) -> MemoryCounters:
    return (getattr(driver, "middleware", None) or driver.plugin).counters()


def describe(event: MemoryEvent) -> str:
    error = "" if event.error is None else f" {type(event.error).__name__}"
    return f"{event.operation} {event.name}{error}"


async def play(agent: type[Driver], outage: Any) -> Played:
    """Tell a fact, then ask for it in and after each outage."""
    turns, events = list[Turn](), list[MemoryEvent]()
    began = datetime.now(UTC)
    # What waits is written with the next turn here, not between two turns.
    by_turns = patch("commonplace.agents.turns._FIRST_PAUSE", 60.0)
    with by_turns, outage.open() as memory, logged(agent.log) as lines:
        driver = make_driver(agent, memory, events, outage.recall_timeout)

        async def take(text: str) -> None:
            calls, before = driver.calls, len(events)
            lines.clear()
            knew = "Miso" in await driver.turn(text)
            done = [describe(one) for one in events[before:]]
            turns.append(Turn(text, driver.calls == calls + 1, knew, done, list(lines)))

        await take(FACT)
        for number in range(ROUNDS):
            outage.begin()
            for one in range(outage.turns):
                await take(QUESTION.format(10 * number + one))
            outage.end()
            await memory.aflush(60)
            await take(QUESTION.format(10 * number + 9))
        left = await memory.aflush(60)
        kept = [one.text for one in memory.list(ALICE, limit=100).records]
        count = counters(driver)
    counted = {name: getattr(count, name) for name in NAMES}
    counted["error"] = repr(count.last_error) if began <= count.last_error_at else "of old"
    assert count.waiting == 0
    told: dict[str, Any] = dict.fromkeys(NAMES, 0) | Counter(one.name for one in events)
    told.pop("waiting", None)  # no count of events, but of what waits
    told["error"] = [repr(one.error) for one in events if one.error is not None][-1]
    return Played(turns, counted, told, kept, left.pending + left.dead)


def check(played: Played, outage: type[Outage]) -> None:
    """Check all that an agent's user and operator meet."""
    assert all(one.answered for one in played.turns)
    rest = iter(played.turns[1:])
    for _ in range(ROUNDS):
        check_outage([next(rest) for _ in range(outage.turns)], next(rest), outage)
    assert played.counted == played.told
    said = [one.text for one in played.turns]
    assert sorted(one for one in played.kept if one != "All right.") == sorted(said)
    assert played.left == 0


def check_outage(during: list[Turn], after: Turn, outage: type[Outage]) -> None:
    for turn in during:
        assert turn.events == list(outage.events)
        assert turn.knew == ("recall recalled" in turn.events)
    waited = sum("waiting" in one for turn in during for one in turn.events)
    assert after.events == ["recall recalled", *["write written"] * (waited + 1)]
    assert after.knew
    failing = [one.split() for one in outage.events if "Error" in one]
    for line, (operation, name, _) in zip(during[0].lines, failing, strict=True):
        assert line.startswith(f"memory {operation} {WORDS[name]}")
        assert outage.reason in line
    assert not any(one.lines for one in during[1:])
    for line, (operation, *_) in zip(after.lines, failing, strict=True):
        again = f"memory {operation} works again, after {outage.turns} failures in "
        assert line.startswith(again)


# -- what may pass -----------------------------------------------------------------------------

OUTAGES = [FolderMoved, EmbedderFails, EmbedderHangs]


@every_agent
@pytest.mark.parametrize("outage", OUTAGES, ids=lambda one: one.__name__)
async def test_an_outage_is_told_counted_and_over_every_time(tmp_path, agent, outage):
    check(await play(agent, outage(tmp_path / "memory")), outage)


@pytest.fixture(scope="module")
def on_full_disks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened to each agent on a full disk, all in one process that is not this one."""
    names = [one.__name__ for one in AGENTS]
    command = [sys.executable, "-m", "integrations_tests.adapters.test_failures"]
    command += [str(tmp_path_factory.mktemp("disks")), *names]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False, cwd=root)
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@every_adapter
def test_a_full_disk_stops_no_reply(on_full_disks, agent):
    told = on_full_disks[agent.__name__]
    turns = [Turn(**one) for one in told.pop("turns")]
    check(Played(turns=turns, **told), DiskFull)


# A session of the Neo4j driver whose server goes while it closes is never closed.
@pytest.mark.filterwarnings("ignore:.*Workspace.__del__:pytest.PytestUnraisableExceptionWarning")
@every_adapter
async def test_a_server_that_is_away_loses_nothing(tmp_path, neo4j_uri, agent):
    with Cut(neo4j_uri) as cut:
        check(await play(agent, ServerAway(tmp_path / "memory", cut)), ServerAway)
    gc.collect()  # here, where the warning is expected, and not in whichever test comes next


@every_adapter
async def test_what_an_embedder_fails_too_often_is_kept_for_a_retry(tmp_path, agent, caplog):
    embedder, events = Embedder(), list[MemoryEvent]()
    settings = Settings(retry_after=0.001, max_attempts=2)
    with Memory.open(str(tmp_path), embedder=embedder, settings=settings) as memory:
        driver = make_driver(agent, memory, events)
        embedder.fails = True
        await driver.turn(FACT)
        letters = await memory.admin.run(memory.admin.dead_letters, ALICE)
        embedder.fails = False
        memory.admin.retry([one.operation for one in letters])
        memory.flush(60)

        assert len(letters) == 2  # what the user said, and the answer
        assert [one.name for one in events] == ["failed", "failed"]
        assert "A write is now a dead letter" in caplog.text
        assert FACT in [one.text for one in memory.list(ALICE).records]


# -- what somebody must mend -------------------------------------------------------------------


@every_agent
async def test_a_deleted_folder_stops_no_reply_and_a_new_memory_begins_empty(tmp_path, agent):
    folder, events = tmp_path / "memory", list[MemoryEvent]()
    memory = Memory.open(str(folder), embedder=Embedder())
    driver = make_driver(agent, memory, events)
    await driver.turn(FACT)
    shutil.rmtree(folder)
    with logged(agent.log) as lines:
        for number in range(3):
            await driver.turn(QUESTION.format(number))
    count = counters(driver)
    with contextlib.suppress(StoreUnavailableError):  # nothing can be finished
        memory.close()

    assert driver.calls == 4
    assert (count.written, count.failed, count.waiting) == (1, 3, 3)
    assert counters(driver).lost == 3
    assert [one[:18] for one in lines] == ["memory recall fail", "memory write waits"]
    assert not folder.exists()
    with Memory.open(str(folder), embedder=Embedder()) as again:
        await make_driver(agent, again, events).turn(QUESTION)
        texts = {one.text for one in again.list(ALICE).records}
    assert texts == {QUESTION, "All right."}


def of_another_embedder(folder: Path) -> str:
    Memory.open(str(folder), embedder=Embedder(32)).close()
    return str(folder)


def inside_a_file(folder: Path) -> str:
    folder.write_text("a file")
    return str(folder / "x")


@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        (of_another_embedder, SchemaMismatchError),
        (inside_a_file, StoreRefusedError),
    ],
)
async def test_a_folder_that_cannot_be_used_raises_at_once(tmp_path, prepare, error):
    place = prepare(tmp_path / "memory")
    with pytest.raises(error):
        Memory.open(place, embedder=Embedder())
    await check_first_reply(error, path=place)


def test_the_file_of_a_memory_is_refused_for_its_folder(tmp_path):
    Memory.open(str(tmp_path), embedder=Embedder()).close()
    with pytest.raises(InvalidRecordError, match="give the folder"):
        CommonplaceMiddleware(user_id="alice", path=str(tmp_path / "memory.db"))


async def test_refused_credentials_raise_at_once(tmp_path, neo4j_place, monkeypatch):
    if neo4j_place.auth is None:
        pytest.skip("the server asks for no password")
    graph = neo4j_place.uri.replace("://", f"://{neo4j_place.auth[0]}:wrong@")
    with pytest.raises(StoreRefusedError, match="refuses access"):
        Memory.open(str(tmp_path), graph=graph, embedder=Embedder())
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_GRAPH", graph)
    await check_first_reply(StoreRefusedError)


async def check_first_reply(error: type[Exception], **place: str) -> None:
    """Check that an agent of AgentScope, which opens its memory itself, does not begin."""
    middleware = CommonplaceMiddleware(user_id="alice", embedding_model=Embedder(), **place)
    agent = await make(middleware)
    with pytest.raises(error):
        await agent.reply(UserMsg("user", FACT))
    assert agent.model.seen == []
    await middleware.aclose()


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    agents = {one.__name__: one for one in AGENTS}
    result = {
        name: asdict(asyncio.run(play(agents[name], DiskFull(Path(folder) / name))))
        for name in names
    }
    os.write(1, json.dumps(result).encode())
