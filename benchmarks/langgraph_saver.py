"""How fast are LangGraph's checkpoints here, beside its own SQLite saver in the same run?

    python benchmarks/langgraph_saver.py [--steps 500] [--threads 1000] [--cpu]

Both savers write to the same disk and are asked in turns, call by call, so that a busy machine is
busy for both.
The states are a conversation of 50 messages that every step changes, and conversations of two
messages in many threads. Needs langgraph-checkpoint-sqlite.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from peers import OURS, Figure, in_turns, laid_out
from rich.console import Console
from tables import TablesFile, save

from commonplace import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceSaver

MESSAGES = [
    (HumanMessage if number % 2 else AIMessage)(f"{number}: " + "some words " * 20, id=str(number))
    for number in range(50)
]
NAMES = (OURS, "SqliteSaver")
SHORT = 2  # messages of a short conversation
Saver = BaseCheckpointSaver[Any]
Calls = dict[str, tuple[int, Callable[[Any, int], object]]]


class Thread:
    """A thread of a saver that grows by a step at a time.

    Args:
        length: how many messages its state has.
    """

    def __init__(self, saver: Saver, name: str, length: int = len(MESSAGES)) -> None:
        self.saver = saver
        self.messages = MESSAGES[:length]
        self.latest: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self.all: Any = self.latest
        self.version: Any = None
        self.number = 0

    def put(self) -> None:
        """Put a checkpoint whose messages are new."""
        self.number += 1
        self.version = self.saver.get_next_version(self.version, None)
        given = empty_checkpoint()
        given["id"] = str(uuid6(clock_seq=self.number))
        given["channel_values"] = {"messages": self.messages}
        given["channel_versions"] = {"messages": self.version}
        metadata: Any = {"source": "loop", "step": self.number, "parents": {}}
        self.latest = self.saver.put(self.latest, given, metadata, {"messages": self.version})

    def write(self) -> None:
        """Keep one message that a task wrote."""
        self.saver.put_writes(self.latest, [("messages", MESSAGES[0])], str(uuid6()), "~path")

    def read(self) -> None:
        """Read the latest state."""
        assert self.saver.get_tuple(self.all) is not None  # what is not there is quick

    def walk(self) -> None:
        """List the latest 100."""
        for _ in self.saver.list(self.all, limit=100):
            pass


@contextmanager
def opened() -> Iterator[tuple[dict[str, Saver], dict[str, list[float]]]]:
    """Open both savers on empty files, whose sizes in kB are known at the end."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ours, theirs = places = [Path(folder) / "ours", Path(folder) / "theirs.db"]
        memory = stack.enter_context(Memory.open(str(ours), embedder=HashEmbedder()))
        saver = stack.enter_context(SqliteSaver.from_conn_string(str(theirs)))
        sizes: dict[str, list[float]] = {}
        yield dict(zip(NAMES, (CommonplaceSaver(memory), saver), strict=True)), sizes
        stack.close()
        for name, place in zip(NAMES, places, strict=True):
            files = [place] if place.is_file() else place.rglob("memory.db*")
            sizes[name] = [sum(one.stat().st_size for one in files) / 1e3]


def one_thread(steps: int, clock: Callable[[], float]) -> dict[str, Figure]:
    """Measure a long conversation."""
    calls: Calls = {
        "put": (steps, lambda thread, _: thread.put()),
        "get_tuple": (steps, lambda thread, _: thread.read()),
        "list of 100": (max(1, steps // 50), lambda thread, _: thread.walk()),
        "put_writes": (steps, lambda thread, _: thread.write()),
    }
    with opened() as (savers, sizes):
        figures = in_turns({n: Thread(one, "thread") for n, one in savers.items()}, calls, clock)
    return figures | {"disk, kB": Figure(sizes)}


def many_threads(number: int, clock: Callable[[], float]) -> dict[str, Figure]:
    """Measure short conversations, of which each is new."""

    def put(saver: Saver, number: int) -> None:
        Thread(saver, str(uuid6(clock_seq=number)), SHORT).put()

    calls: Calls = {
        "put": (number, put),
        "list of all": (10, lambda saver, _: sum(1 for _ in saver.list(None))),
    }
    with opened() as (savers, sizes):
        figures = in_turns(savers, calls, clock)
    return figures | {"disk, kB": Figure(sizes)}


def main(
    steps: Annotated[int, typer.Option(help="calls of each kind")] = 500,
    threads: Annotated[int, typer.Option(help="short conversations")] = 1000,
    cpu: Annotated[bool, typer.Option("--cpu", help="CPU time instead of wall clock")] = False,
    file: TablesFile = None,
) -> None:
    """Measure both savers in turns and print the tables."""
    clock = time.process_time if cpu else time.perf_counter
    title = "LangGraph's saver: "
    tables = [
        laid_out(one_thread(steps, clock), NAMES, f"{title}a conversation of 50 messages"),
        laid_out(many_threads(threads, clock), NAMES, f"{title}many conversations of two messages"),
    ]
    for table in tables:
        Console(width=100).print(table)
    save(file, tables)


if __name__ == "__main__":
    typer.run(main)
