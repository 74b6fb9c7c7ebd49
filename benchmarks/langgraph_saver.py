"""How fast are LangGraph's checkpoints here, beside its own SQLite saver in the same run?

    python benchmarks/langgraph_saver.py [--steps 500]

Both savers write to the same disk and are asked in turns, call by call, so that a busy machine is
busy for both.
The state is a conversation of 50 messages, which every step changes. Needs
langgraph-checkpoint-sqlite.
"""

import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.console import Console
from rich.table import Table

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


def main(
    steps: Annotated[int, typer.Option(help="calls of each kind")] = 500,
) -> None:
    """Measure both savers in turns and print a table."""
    seconds: dict[tuple[str, str], list[float]] = {}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        opened = ExitStack()
        places = {"LangGraph": Path(folder) / "theirs.db", "commonplace": Path(folder) / "ours"}
        theirs = opened.enter_context(SqliteSaver.from_conn_string(str(places["LangGraph"])))
        memory = opened.enter_context(
            Memory.open(str(places["commonplace"]), embedder=HashEmbedder())
        )
        savers: dict[str, Saver] = {"LangGraph": theirs, "commonplace": CommonplaceSaver(memory)}
        threads = {name: Thread(saver, "thread") for name, saver in savers.items()}
        for kind, work, times in (
            ("put", Thread.put, steps),
            ("get_tuple", Thread.read, steps),
            ("list of 100", Thread.walk, steps // 50),
            ("put_writes", Thread.write, steps),
        ):
            for turn in range(times):
                for name in sorted(savers, reverse=bool(turn % 2)):
                    began = time.perf_counter()
                    work(threads[name])
                    seconds.setdefault((kind, name), []).append(time.perf_counter() - began)
        opened.close()
        for name, place in places.items():
            files = [place] if place.is_file() else sorted(place.rglob("memory.db*"))
            sizes[name] = sum(one.stat().st_size for one in files) // steps
    table = Table("call", *(f"{name} {what}" for name in savers for what in ("/s", "p50 ms")))
    for kind in dict.fromkeys(kind for kind, _ in seconds):
        cells = []
        for name in savers:
            found = seconds[kind, name]
            cells += [f"{1 / statistics.mean(found):,.0f}", f"{statistics.median(found) * 1e3:.2f}"]
        table.add_row(kind, *cells)
    table.add_row(
        "bytes a checkpoint", *(one for name in savers for one in (f"{sizes[name]:,}", ""))
    )
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
