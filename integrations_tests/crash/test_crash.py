"""A process is killed at every point of the write path; nothing is lost and nothing is twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.ports.stores import CRASH_POINTS
from commonplace.runtime import Runtime
from commonplace.testing.fakes import HashEmbedder

pytestmark = pytest.mark.slow

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
CRASHES = [
    (engines, action, point)
    for engines, actions in (
        ("embedded", AFTER),
        ("neo4j+edge", ("supersede", "forget")),
        ("neo4j+qdrant", ("update", "delete")),
    )
    for action in actions
    for point in CRASH_POINTS
    # An erasure has nothing to plan.
    if not (action == "forget" and point in ("before_plan", "after_plan"))
]
CHILD = Path(__file__).with_name("child.py")


def run(folder: Path, point: str, action: str) -> subprocess.CompletedProcess[str]:
    """Run the child to its end."""
    command = [sys.executable, str(CHILD), str(folder), point, action]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def crash(folder: Path, point: str, action: str) -> None:
    """Run the child until it stops dead."""
    done = run(folder, point, action)
    assert "armed" in done.stdout, done.stderr
    assert done.returncode == -9, f"{point} is not on the path of {action}: {done.stderr}"


def texts_of(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.list(ALICE, limit=1000).records)


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize(("engines", "action", "point"), CRASHES, indirect=["engines"])
def test_a_crash_at_any_point_leaves_every_accepted_write_once(
    tmp_path: Path, action: str, point: str
) -> None:
    crash(tmp_path, point, action)

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.flush()
        found = texts_of(memory)
        searched = sorted(m.record.text for m in memory.search("Alice", ALICE, top_k=100))
        runtime: Runtime = memory._runtime
        known = dict(runtime.engines.graph.versions(ALICE))
        indexed = dict(runtime.engines.index.versions(ALICE))

    assert (left.pending, left.dead) == (0, 0)
    before = {HENS, CELLO} if action == "reopen" else {BEES, CELLO}
    assert found == sorted(before if point == "before_journal" else AFTER[action])
    assert searched == found
    assert indexed == known


@pytest.mark.every_engine("embedded", "neo4j+qdrant")
@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_crash_while_recovering_changes_nothing_either(tmp_path: Path, point: str) -> None:
    crash(tmp_path, "after_graph", "update")
    run(tmp_path, point, "recover")

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.flush()
        runtime: Runtime = memory._runtime

        assert texts_of(memory) == [BEES, VIOLA]
        assert dict(runtime.engines.graph.versions(ALICE)) == dict(
            runtime.engines.index.versions(ALICE)
        )


@pytest.mark.every_engine
def test_a_thousand_accepted_writes_survive_a_kill_right_after(tmp_path: Path) -> None:
    done = run(tmp_path, "", "thousand")

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.flush(60)
        found = texts_of(memory)

    assert done.returncode == -9
    assert (left.pending, left.dead) == (0, 0)
    assert found == sorted(f"note number {n}" for n in range(1000))
