"""Several processes that use one memory at the same time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork and no SIGSTOP")
ALICE = Scope(user_id="alice")
ROWS = ALICE.record_id("fact", "Alice rows")

_BEGIN = """
import os, signal, sys, time
from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder
ALICE = Scope(user_id="alice")
class Gated(HashEmbedder):
    def embed(self, texts, *, purpose):
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        return super().embed(texts, purpose=purpose)
"""
_ACCEPT = (
    _BEGIN
    + """
memory = Memory.open(sys.argv[1], embedder=Gated())
memory.add("Alice rows", ALICE, wait=False)
print("accepted", flush=True)
memory.flush(60)
print("applied", flush=True)
sys.stdin.read()
"""
)
_FORGET = (
    _BEGIN
    + """
with Memory.open(sys.argv[1], embedder=HashEmbedder()) as memory:
    print(memory.forget(ALICE).complete)
"""
)
_ANSWER = (
    _BEGIN
    + """
with Memory.open(sys.argv[1], embedder=HashEmbedder()) as memory:
    for line in sys.stdin:
        memory.add(f"child {line.strip()}", ALICE)
        found = {one.record.text for one in memory.search("parent child", ALICE, top_k=100)}
        print(sorted(found), flush=True)
"""
)
_FORK = (
    _BEGIN
    + """
memory = Memory.open(sys.argv[1], embedder=HashEmbedder())
memory.add("before", ALICE)
memory.add("accepted", ALICE, wait=False)
child = os.fork()
signal.alarm(50)  # neither outlives the test
name = "parent" if child else "child"
for n in range(10):
    memory.add(f"{name} {n}", ALICE)
    memory.add(f"{name} {n} later", ALICE, wait=False)
left = memory.flush().pending
mine = {one.record.text for one in memory.search("parent child before", ALICE, top_k=100)}
wanted = {"before"} | {f"{name} {n}" for n in range(10)} | {f"{name} {n} later" for n in range(10)}
assert wanted <= mine, wanted - mine
memory.close()
if not child:
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
with Memory.open(sys.argv[1], embedder=HashEmbedder()) as memory:
    memory.flush()
    print(len(memory.list(ALICE).records))
"""
)


class StuckEmbedder(HashEmbedder):
    """Waits until its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
        self.entered.set()
        self.gate.wait(20)
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "memory")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file without which a child's embedder does not answer."""
    return tmp_path / "gate"


@contextmanager
def child(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the code, until it is killed here at the latest."""
    command = [sys.executable, "-c", code, *map(str, args)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """Read the next line that a child prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def texts_of(memory: Memory) -> list[str]:
    return sorted(one.text for one in memory.list(ALICE).records)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 15
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_process_finds_at_once_what_another_was_told_is_stored(
    folder: str, gate: Path
) -> None:
    wanted = []
    with Memory.open(folder, embedder=HashEmbedder()) as memory, child(_ANSWER, folder) as other:
        for n in range(5):
            memory.add(f"parent {n}", ALICE)
            assert other.stdin is not None
            print(n, file=other.stdin, flush=True)
            wanted += [f"parent {n}", f"child {n}"]
            assert told(other) == str(sorted(wanted))
            found = memory.search("parent child", ALICE, top_k=100)
            assert sorted(one.record.text for one in found) == sorted(wanted)


def test_an_update_waits_for_the_process_that_has_yet_to_store_its_record(
    folder: str, gate: Path
) -> None:
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        with child(_ACCEPT, folder, gate) as other:
            assert told(other) == "accepted"
            update = memory.update(ROWS, "Alice rows at dawn", ALICE, wait=0.5)
            memory.add("Alice sings", ALICE)  # which names another record, and waits for nobody
            before = texts_of(memory)
            gate.touch()
            assert told(other) == "applied"
            left = memory.flush(10)

        assert (update.pending, before, left.pending) == (True, ["Alice sings"], 0)
        assert texts_of(memory) == ["Alice rows at dawn", "Alice sings"]
        assert [one.event for one in memory.history(ROWS, ALICE)] == ["ADD", "UPDATE"]


def test_an_update_goes_on_when_the_process_that_it_waits_for_dies(
    folder: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.ingest.worker._MAINTENANCE_SECONDS", 0.05)
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        with child(_ACCEPT, folder, gate) as other:
            assert told(other) == "accepted"
            update = memory.update(ROWS, "Alice rows at dawn", ALICE, wait=0.3)
        wait_until(lambda: texts_of(memory) == ["Alice rows at dawn"])

        assert update.pending
        assert memory.flush().pending == 0


def test_writes_are_taken_over_from_the_dead_and_not_from_the_living(
    folder: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.ingest.worker._MAINTENANCE_SECONDS", 0.02)
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        with child(_ACCEPT, folder, gate) as other:
            assert told(other) == "accepted"
            time.sleep(0.2)
            while_alive = texts_of(memory)
            other.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            while_stopped = texts_of(memory)
            [operation] = memory._runtime.engines.journal.pending()
        wait_until(lambda: texts_of(memory) == ["Alice rows"])

        assert (while_alive, while_stopped, operation.elsewhere) == ([], [], True)
        assert memory.flush().pending == 0


def test_an_erasure_of_one_process_resolves_the_waiting_writes_of_another(
    folder: str, gate: Path
) -> None:
    embedder = StuckEmbedder()
    with Memory.open(folder, embedder=embedder) as memory, ThreadPoolExecutor(2) as threads:
        writing = [threads.submit(memory.add, f"Alice rows {n}", ALICE) for n in range(2)]
        embedder.entered.wait(10)
        wait_until(lambda: memory._runtime.engines.journal.count().pending == 2)
        with child(_FORGET, folder) as other:
            erased = told(other)
        embedder.gate.set()
        written = [one.result(10) for one in writing]

        assert erased == "True"
        assert [(one.changes, one.pending) for one in written] == [((), False)] * 2
        assert (texts_of(memory), memory.flush().pending) == ([], 0)
        assert memory.search("Alice rows", ALICE) == []


def test_an_erasure_that_another_process_has_overtaken_tells_what_is_left(folder: str) -> None:
    embedder = StuckEmbedder()
    with Memory.open(folder, embedder=embedder) as memory, ThreadPoolExecutor(2) as threads:
        journal = memory._runtime.engines.journal
        threads.submit(memory.add, "Alice rows", ALICE)
        embedder.entered.wait(10)
        erasing = threads.submit(memory.forget, ALICE)
        wait_until(lambda: journal.count().pending == 2)
        with child(_FORGET, folder) as other:
            erased = told(other)
        embedder.gate.set()
        receipt = erasing.result(10)

        assert erased == "True"
        assert (receipt.scope, receipt.complete, dict(receipt.removed)) == (ALICE, True, {})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_and_its_parent_both_write_and_read(folder: str) -> None:
    with child(_FORK, folder) as other:
        told_in_time, _ = other.communicate(timeout=60)

    assert (told_in_time, other.returncode) == ("42\n", 0)
