"""A process is killed at every point of the write path; nothing is lost and nothing is twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.faults import POINTS
from commonplace.store import Store
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
BEES, CELLO, VIOLA = "Alice keeps bees", "Alice plays the cello", "Alice plays the viola"
ROWS, HENS = "Alice rows at dawn", "Alice keeps hens"
AFTER = {
    "add": {BEES, CELLO, ROWS},
    "update": {BEES, VIOLA},
    "delete": {BEES},
    "supersede": {HENS, CELLO},
    "reopen": {BEES, CELLO},
    "forget": set(),
}
CHILD = Path(__file__).with_name("child.py")


def crash(folder: Path, point: str, action: str) -> None:
    """Run the child until it stops dead."""
    done = subprocess.run(
        [sys.executable, str(CHILD), str(folder), point, action],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "armed" in done.stdout, done.stderr
    assert done.returncode == -9, f"{point} is not on the path of {action}: {done.stderr}"


def texts_of(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.list(ALICE).records)


@pytest.mark.parametrize("action", AFTER)
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_leaves_every_accepted_write_once(
    tmp_path: Path, point: str, action: str
) -> None:
    if action == "forget" and point in ("before_plan", "after_plan"):
        pytest.skip("an erasure has nothing to plan")
    crash(tmp_path, point, action)

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.drain()
        found = texts_of(memory)
        searched = sorted(m.record.text for m in memory.search("Alice", ALICE, top_k=100))
        store: Store = memory._store
        known = dict(store.engines.graph.versions(ALICE))
        indexed = dict(store.engines.index.versions(ALICE))

    assert (left.pending, left.dead) == (0, 0)
    before = {HENS, CELLO} if action == "reopen" else {BEES, CELLO}
    assert found == sorted(before if point == "before_journal" else AFTER[action])
    assert searched == found
    assert indexed == known


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_while_recovering_changes_nothing_either(tmp_path: Path, point: str) -> None:
    crash(tmp_path, "after_graph", "update")
    again = (
        "import os, signal, sys\n"
        "from commonplace import Memory, faults\n"
        "from commonplace.testing.fakes import HashEmbedder\n"
        f"faults.arm(lambda p: os.kill(os.getpid(), signal.SIGKILL) if p == {point!r} else None)\n"
        "memory = Memory.open(sys.argv[1], embedder=HashEmbedder())\n"
        "memory.drain()\n"
        "memory.close()\n"
    )
    subprocess.run([sys.executable, "-c", again, str(tmp_path)], timeout=60, check=False)

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.drain()
        store: Store = memory._store

        assert texts_of(memory) == [BEES, VIOLA]
        assert dict(store.engines.graph.versions(ALICE)) == dict(
            store.engines.index.versions(ALICE)
        )


def test_a_thousand_accepted_writes_survive_a_kill_right_after(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from commonplace import Memory, Scope\n"
        "from commonplace.testing.fakes import HashEmbedder\n"
        "memory = Memory.open(sys.argv[1], embedder=HashEmbedder())\n"
        "for n in range(1000):\n"
        "    memory.add(f'note number {n}', Scope(user_id='alice'), wait=False)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], timeout=120, check=False)

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.drain(60)
        found = texts_of_all(memory)

    assert done.returncode == -9
    assert (left.pending, left.dead) == (0, 0)
    assert sorted(found) == sorted(f"note number {n}" for n in range(1000))


def texts_of_all(memory: Memory) -> list[str]:
    return [record.text for record in memory.list(ALICE, limit=1000).records]
