"""Many processes on shared servers: what one call costs, and what one writes another recalls."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commonplace import Fact, Memory, Message, Relation, SchemaMismatchError, Scope, Settings
from commonplace.ports.stores import arm_crash_points
from commonplace.testing.fakes import HashEmbedder

from .counting_proxy import BOLT, HTTP, Tally, http_only
from .fixtures import empty_graph, empty_index

ALICE = Scope(user_id="alice")
MONDAY = Scope(user_id="alice", session_id="monday")
OTHER = """
import json, sys, time
from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder
vectors, graph, journal = sys.argv[1:]
alice = Scope(user_id="alice")
with Memory.open(vectors=vectors, graph=graph, journal=journal, embedder=HashEmbedder()) as memory:
    print("open", flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        if "add" in said:
            memory.add(said["add"], alice)
            print(json.dumps(time.time()), flush=True)
        else:
            found = memory.search(said["search"], alice, top_k=1)
            print(json.dumps([one.record.text for one in found]), flush=True)
"""


@pytest.fixture
def graph(neo4j_uri: str) -> str:
    return empty_graph(neo4j_uri)


@pytest.fixture
def vectors(qdrant_url: str) -> Iterator[str]:
    with empty_index(qdrant_url) as url:
        yield url


def test_a_call_asks_each_server_once(graph: str, vectors: str, tmp_path: Path) -> None:
    with (
        Tally(graph, BOLT) as bolt,
        Tally(http_only(vectors), HTTP) as http,
        Memory.open(
            vectors=http.url, graph=bolt.url, journal=str(tmp_path), embedder=HashEmbedder()
        ) as memory,
    ):

        def asked() -> dict[str, int]:
            return bolt.take() | http.take()

        said = Relation(subject="Alice", predicate="keeps", object="bees")
        memory.add(Fact(text="Alice keeps bees", relations=(said,)), ALICE)
        memory.add([Message(text=f"turn {n}") for n in range(3)], MONDAY)
        once = {"transactions": 1, "requests": 1}
        looked_again = {"transactions": 2, "requests": 1}
        asked()
        memory.add("Alice rows at dawn", ALICE)
        assert asked() == looked_again
        memory.add([f"note {n}" for n in range(64)], ALICE)
        assert asked() == looked_again
        assert memory.search("!", Scope(user_id="nobody")) == []
        assert asked() == {"requests": 1}
        memory.search("rows at dawn", ALICE, kinds=["fact"])
        assert asked() == once, "one look into the graph"
        memory.search("turn", MONDAY)
        assert asked() == {"transactions": 1, "requests": 2}, "and one for neighbour turns"
        memory.get(memory.list(ALICE).records[0].id, ALICE)
        assert asked() == {"transactions": 2}


def test_what_one_process_writes_another_recalls_within_a_second(
    graph: str, vectors: str, tmp_path: Path
) -> None:
    hosts = [
        subprocess.Popen(
            [sys.executable, "-c", OTHER, vectors, graph, str(tmp_path / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]

    def ask(host: "subprocess.Popen[str]", **said: str) -> object:
        assert host.stdin
        assert host.stdout
        host.stdin.write(json.dumps(said) + "\n")
        host.stdin.flush()
        return json.loads(host.stdout.readline())

    try:
        for host in hosts:
            assert host.stdout
            assert host.stdout.readline() == "open\n"
        taken = []
        for writer, reader, text in (
            (*hosts, "Alice rows at dawn"),
            (*reversed(hosts), "Alice plays the cello"),
            (*hosts, "Alice keeps bees"),
        ):
            written = ask(writer, add=text)
            assert ask(reader, search=text) == [text]
            taken.append(time.time() - float(str(written)))
        assert min(taken) < 1.0  # a machine under load may be late once
    finally:
        for host in hosts:
            host.communicate(timeout=60)
    assert [host.returncode for host in hosts] == [0, 0]


def test_a_write_is_in_every_store_before_the_journal_lets_go_of_it(
    graph: str, vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"vectors": vectors, "graph": graph, "journal": str(tmp_path)}
    with Memory.open(embedder=HashEmbedder(), **given) as memory:
        engines, steps = memory._runtime.engines, list[str]()
        memory.add("Alice rows at dawn", ALICE)
        for engine, name in (
            (engines.journal, "append"),
            (engines.graph, "apply"),
            (engines.index, "upsert"),
            (engines.index, "flush"),
            (engines.journal, "remove"),
        ):
            monkeypatch.setattr(engine, name, noted(steps, name, getattr(engine, name)))
        memory.add("Alice plays the cello", ALICE)

    assert steps == ["append", "apply", "upsert", "flush", "remove"]


def noted(steps: list[str], name: str, call: Callable[..., object]) -> Callable[..., object]:
    """Note a call when it is done."""

    def made(*args: object, **more: object) -> object:
        done = call(*args, **more)
        steps.append(name)
        return done

    return made


def test_the_graph_is_asked_while_the_index_searches(
    graph: str, vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"vectors": vectors, "graph": graph, "journal": str(tmp_path)}
    with Memory.open(embedder=HashEmbedder(), **given) as memory:
        memory.add("Alice rows at dawn", ALICE)
        engines, both = memory._runtime.engines, threading.Barrier(2)
        for engine, name in ((engines.graph, "expand"), (engines.index, "search")):
            monkeypatch.setattr(engine, name, meeting(both, getattr(engine, name)))

        assert [one.record.text for one in memory.search("rows", ALICE)] == ["Alice rows at dawn"]


def meeting(both: threading.Barrier, call: Callable[..., object]) -> Callable[..., object]:
    """Wait for the other call before this one."""

    def made(*args: object, **more: object) -> object:
        both.wait(10)
        return call(*args, **more)

    return made


@pytest.fixture
def hosts(graph: str, vectors: str, tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """Two writers on the same servers, as two processes are."""
    given = {"vectors": vectors, "graph": graph, "embedder": HashEmbedder()}
    with (
        Memory.open(journal=str(tmp_path / "one"), **given) as one,
        Memory.open(journal=str(tmp_path / "two"), **given) as two,
    ):
        yield one, two
    arm_crash_points(None)


def between(act: Callable[[], object]) -> None:
    """Act once, when the next change is in the graph store and not yet in the index."""

    def hook(name: str) -> None:
        if name == "after_graph":
            arm_crash_points(None)
            act()

    arm_crash_points(hook)


def texts(memory: Memory, text: str) -> list[str]:
    return sorted(one.record.text for one in memory.search(text, ALICE))


def test_what_another_process_forgets_during_a_write_is_not_found(
    hosts: tuple[Memory, Memory],
) -> None:
    one, two = hosts
    between(lambda: one.forget(ALICE))
    two.add("Alice keeps bees", ALICE)

    assert texts(one, "bees") == []
    assert one.list(ALICE).records == ()


def test_what_another_process_deletes_during_an_update_is_not_found(
    hosts: tuple[Memory, Memory],
) -> None:
    one, two = hosts
    [told] = one.add("Alice keeps bees", ALICE).changes
    between(lambda: one.delete(told.id, ALICE))
    two.update(told.id, "Alice keeps goats", ALICE)

    assert texts(one, "goats") == []


def test_a_removal_takes_nothing_that_another_process_told_since(
    hosts: tuple[Memory, Memory],
) -> None:
    one, two = hosts
    [told] = one.add("Alice keeps bees", ALICE).changes
    between(lambda: two.add("Alice keeps bees", ALICE))
    one.delete(told.id, ALICE)
    assert texts(one, "bees") == ["Alice keeps bees"]

    between(lambda: two.add("Alice rows", ALICE))
    one.forget(ALICE)
    assert texts(one, "rows") == ["Alice rows"]


def test_what_another_process_opens_again_during_a_write_is_found(
    hosts: tuple[Memory, Memory],
) -> None:
    one, two = hosts
    rome, oslo = (
        Fact(
            text=f"Alice lives in {city}",
            key=city,
            relations=(Relation(subject="Alice", predicate="lives_in", object=city),),
        )
        for city in ("Rome", "Oslo")
    )
    one.add(rome, ALICE)

    def take_back() -> None:
        [moved] = one.list(ALICE, where={"kind": "fact"}, limit=1).records
        one.delete(moved.id, ALICE)

    between(take_back)
    two.add(oslo, ALICE)

    assert texts(one, "Where does Alice live?") == ["Alice lives in Rome"]


def test_a_slow_clock_does_not_keep_a_host_from_correcting_another(
    hosts: tuple[Memory, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = hosts
    ahead = timedelta(seconds=5)
    monkeypatch.setattr(two._runtime.engines.journal, "_clock", lambda: datetime.now(UTC) + ahead)
    [told] = two.add("Alice keeps bees", ALICE).changes
    one.update(told.id, "Alice keeps goats", ALICE)
    assert texts(two, "keeps") == ["Alice keeps goats"]

    one.delete(told.id, ALICE)
    assert texts(two, "keeps") == []


class Mute(HashEmbedder):
    """Cannot embed what is to be stored."""

    def embed(self, texts: Sequence[str], *, purpose: Any) -> list[list[float]]:
        if purpose == "document":
            raise OSError("the model is away")
        return super().embed(texts, purpose=purpose)


def test_a_journal_takes_writes_for_one_set_of_servers_only(graph: str, tmp_path: Path) -> None:
    folder, slow = str(tmp_path / "spool"), Settings(retry_after=60)
    first = {"path": str(tmp_path / "a"), "graph": graph, "journal": folder, "settings": slow}
    memory = Memory.open(**first, embedder=Mute())
    memory.add("Alice keeps bees", ALICE, wait=False)
    memory.close(0.2)

    with pytest.raises(SchemaMismatchError, match="a journal of writes for"):
        Memory.open(str(tmp_path / "b"), journal=folder, embedder=HashEmbedder())
    with Memory.open(**first, embedder=HashEmbedder()) as memory:
        memory.flush()
        assert [one.text for one in memory.list(ALICE).records] == ["Alice keeps bees"]
    with Memory.open(str(tmp_path / "b"), journal=folder, embedder=HashEmbedder()) as memory:
        assert memory.list(ALICE).records == (), "nothing waits for the servers any more"


def test_a_shared_index_beside_a_local_graph_is_told(
    vectors: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(str(tmp_path), vectors=vectors, embedder=HashEmbedder()) as memory:
        memory.add("Alice rows", ALICE)
        assert [one.record.text for one in memory.search("rows", ALICE)] == ["Alice rows"]
    assert "other hosts will see what it finds" in caplog.text
