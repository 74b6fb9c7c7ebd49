"""What only a folder has: it lasts, and several processes may use it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.checkpoint.base import empty_checkpoint

from commonplace import InvalidRecordError, Memory, MemoryClosedError
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore

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


THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


INDEX: Any = {"dims": 64, "embed": DeterministicFakeEmbedding(size=64), "fields": ["text"]}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    """The directory of temporary folders."""
    found = tmp_path / "temporary"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_program_for_stock_savers_and_stores_needs_only_other_names(
    tmp_path: Path, temporary: Path, is_kept: bool
):
    folder, ttl = str(tmp_path / "checkpoints.sqlite"), {"default_ttl": 60}
    with CommonplaceSaver.from_conn_string(folder if is_kept else ":memory:") as saver:
        saver.put(THREAD, empty_checkpoint(), {"step": 1}, {})
        assert saver.get_tuple(THREAD) is not None
        assert len(os.listdir(temporary)) == (not is_kept)
    with CommonplaceSaver.from_conn_string(folder if is_kept else ":memory:") as saver:
        assert (saver.get_tuple(THREAD) is not None) is is_kept
    place = str(tmp_path / "store") if is_kept else ":memory:"
    with CommonplaceStore.from_conn_string(place, index=INDEX, ttl=ttl) as store:
        store.setup()
        store.put(("docs",), "k", {"text": "tea"})
        assert store.search(("docs",), query="tea")[0].key == "k"
        assert (store.memory.embedder.dimensions, store.ttl_config["default_ttl"]) == (64, 60)

    assert os.listdir(temporary) == []


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_program_for_async_stock_classes_uses_the_same_names(
    tmp_path: Path, temporary: Path, is_kept: bool
):
    async with CommonplaceSaver.from_conn_string(str(tmp_path) if is_kept else ":memory:") as saver:
        await saver.aput(THREAD, empty_checkpoint(), {"step": 1}, {})
        assert await saver.aget_tuple(THREAD) is not None
    place = str(tmp_path / "store") if is_kept else ":memory:"
    async with CommonplaceStore.from_conn_string(place, index=INDEX) as store:
        await store.setup()
        await store.aput(("docs",), "k", {"text": "tea"})
        assert await store.aget(("docs",), "k") is not None

    assert os.listdir(temporary) == []


def test_a_url_names_the_graph_store_or_with_another_all_servers(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))
    opened: list[dict] = []
    monkeypatch.setattr(Memory, "open", lambda *folder, **given: opened.append(given))
    for text in ("neo4j://host:7687", "graph=neo4j://host:7687,vectors=qdrant://host:6333"):
        CommonplaceSaver.from_conn_string(text)._lazy.get()
    alone, both = opened

    assert alone["graph"] == both["graph"] == "neo4j://host:7687"
    assert (alone.get("vectors"), both["vectors"]) == (None, "qdrant://host:6333")


@pytest.mark.parametrize("given", [None, 1, "", "host:6333", "graph=a", "graph=a,vectors=b,x=c"])
def test_a_connection_string_that_names_nothing_is_refused(given, tmp_path: Path):
    file = tmp_path / "checkpoints.sqlite"
    file.touch()
    for kind in (CommonplaceSaver, CommonplaceStore):
        with pytest.raises(InvalidRecordError, match="conn_string"):
            kind.from_conn_string(given)
        with pytest.raises(InvalidRecordError, match="commonplace import langgraph"):
            kind.from_conn_string(str(file))
