"""How fast are LangGraph's checkpoints here, beside its own SQLite saver in the same run?

    python benchmarks/langgraph_saver.py [--steps 500]

Both savers write to the same disk and are asked in turns, call by call, so that a busy machine is
busy for both.
The state is a conversation of 50 messages, which every step changes. Needs
langgraph-checkpoint-sqlite.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
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
Saver = BaseCheckpointSaver[Any]


class Thread:
    """A thread of a saver that grows by a step at a time."""

    def __init__(self, saver: Saver, name: str) -> None:
        self.saver = saver
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
        given["channel_values"] = {"messages": MESSAGES}
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


def size(place: Path) -> float:
    """Sum up the files of a saver, in bytes."""
    files = [place] if place.is_file() else place.rglob("memory.db*")
    return float(sum(one.stat().st_size for one in files))


def main(
    steps: Annotated[int, typer.Option(help="calls of each kind")] = 500,
    file: TablesFile = None,
) -> None:
    """Measure both savers in turns and print a table."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        places = {OURS: Path(folder) / "ours", "SqliteSaver": Path(folder) / "theirs.db"}
        memory = opened.enter_context(Memory.open(str(places[OURS]), embedder=HashEmbedder()))
        theirs = opened.enter_context(SqliteSaver.from_conn_string(str(places["SqliteSaver"])))
        threads = {
            OURS: Thread(CommonplaceSaver(memory), "thread"),
            "SqliteSaver": Thread(theirs, "thread"),
        }
        calls: dict[str, tuple[int, Callable[[Thread, int], object]]] = {
            "put": (steps, lambda thread, _: thread.put()),
            "get_tuple": (steps, lambda thread, _: thread.read()),
            "list of 100": (max(1, steps // 50), lambda thread, _: thread.walk()),
            "put_writes": (steps, lambda thread, _: thread.write()),
        }
        figures = in_turns(threads, calls)
        opened.close()
        sizes = {name: [size(place) / steps / 1e3] for name, place in places.items()}
    figures["disk, kB a checkpoint"] = Figure(sizes)
    table = laid_out(figures, [*threads], "LangGraph's saver: a conversation of 50 messages")
    Console(width=100).print(table)
    save(file, [table])


if __name__ == "__main__":
    typer.run(main)
