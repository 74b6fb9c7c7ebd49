"""What only a folder has: it lasts, and several processes may use it."""

import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, MemoryClosedError
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceSaver

_CHILD = """
import sys, os, signal
from typing import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from commonplace import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceSaver

class State(TypedDict):
    word: str

graph = StateGraph(State)
graph.add_node("ask", lambda state: {"word": state["word"] + interrupt("?")})
graph.add_edge(START, "ask")
memory = Memory.open(sys.argv[1], embedder=HashEmbedder())
compiled = graph.compile(checkpointer=CommonplaceSaver(memory))
given = {"word": "asked "} if sys.argv[2] == "ask" else Command(resume="answered")
answer = compiled.invoke(given, {"configurable": {"thread_id": "t"}}, durability="sync")
print(answer["word"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def run(folder: Path, what: str) -> str:
    """Run a process that dies without closing anything."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(folder), what],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_one_process_asked_before_it_was_killed_another_answers(tmp_path: Path):
    assert run(tmp_path, "ask") == "asked"
    assert run(tmp_path, "answer") == "asked answered"


def test_a_folder_is_opened_and_closed_with_its_saver(tmp_path: Path):
    config = {"configurable": {"thread_id": "t"}}
    with CommonplaceSaver.open(str(tmp_path)) as saver:
        assert saver.get_tuple(config) is None
        clone = saver.with_allowlist([("a", "B")])

    for one in (saver, clone):
        with pytest.raises(MemoryClosedError):
            one.get_tuple(config)
        one.close()
    with CommonplaceSaver(str(tmp_path)) as saver:
        assert saver.get_tuple(config) is None


async def test_a_folder_may_be_opened_for_a_while_by_async_with(tmp_path: Path):
    async with CommonplaceSaver.open(str(tmp_path)) as saver:
        assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is None

    with pytest.raises(MemoryClosedError):
        await saver.aget_tuple({"configurable": {"thread_id": "t"}})


def test_a_given_memory_stays_its_owners_to_close(memory: Memory):
    with CommonplaceSaver(memory):
        pass

    assert CommonplaceSaver(memory).get_tuple({"configurable": {"thread_id": "t"}}) is None


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_another_process_does_meanwhile_is_seen(tmp_path: Path):
    config = {"configurable": {"thread_id": "t"}}
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        saver = CommonplaceSaver(memory)
        assert saver.get_tuple(config) is None
        assert run(tmp_path, "ask") == "asked"
        asked = saver.get_tuple(config)
        assert run(tmp_path, "answer") == "asked answered"
        answered = saver.get_tuple(config)

    assert asked is not None
    assert asked.checkpoint["channel_values"]["word"] == "asked "
    assert answered is not None
    assert answered.checkpoint["channel_values"]["word"] == "asked answered"
