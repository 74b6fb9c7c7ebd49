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
    "tell": {BEES, CELLO},
    "awaited": {BEES, CELLO, ROWS},
    "update": {BEES, VIOLA},
    "delete": {BEES},
    "supersede": {HENS, CELLO},
    "reopen": {BEES, CELLO},
    "forget": set(),
}
ACTIONS = [
    (engines, action)
    for engines, actions in (
        ("embedded", AFTER),
        ("edge", ("awaited", "tell", "supersede", "forget")),
        ("neo4j+folder", ("supersede", "forget")),
        ("neo4j+qdrant", ("tell", "update", "delete")),
    )
    for action in actions
]


def is_direct(engines: str, action: str) -> bool:
    """Tell whether the action is one transaction, and in no journal."""
    return engines == "embedded" and action == "awaited"


def points_of(engines: str, action: str) -> list[str]:
    """List the points that an action passes."""
    if is_direct(engines, action):
        return ["before_journal", "before_graph", "after_graph", "after_index"]
    # An erasure has nothing to plan.
    left_out = {"before_plan", "after_plan"} if action == "forget" else set()
    return [point for point in CRASH_POINTS if point not in left_out]


CRASHES = [(*one, point) for one in ACTIONS for point in points_of(*one)]
CHILD = Path(__file__).with_name("child.py")


def run(folder: Path, point: str, action: str) -> subprocess.CompletedProcess[str]:
    """Run the child to its end."""
    command = [sys.executable, str(CHILD), str(folder), point, action]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def crash(folder: Path, point: str, action: str) -> str:
    """Run the child until it stops dead; return what it said before."""
    done = run(folder, point, action)
    assert "armed" in done.stdout, done.stderr
    assert done.returncode == -9, f"{point} is not on the path of {action}: {done.stderr}"
    return done.stdout


def texts_of(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.list(ALICE, limit=1000).records)


@pytest.mark.parametrize(("engines", "action", "point"), CRASHES, indirect=["engines"])
def test_a_crash_at_any_point_leaves_every_accepted_write_once(
    tmp_path: Path, engines: str, action: str, point: str
) -> None:
    said = crash(tmp_path, point, action)
    is_accepted = point != "before_journal" and not is_direct(engines, action)
    before = {HENS, CELLO} if action == "reopen" else {BEES, CELLO}

    if action in ("awaited", "forget"):
        assert "acknowledged" not in said
    told = 2 if action == "tell" and is_accepted else 1
    check(tmp_path, AFTER[action] if is_accepted else before, told=told)


@pytest.mark.parametrize(("engines", "action"), ACTIONS, indirect=["engines"])
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, action: str) -> None:
    assert "acknowledged" in crash(tmp_path, "acknowledged", action)
    check(tmp_path, AFTER[action], told=2 if action == "tell" else 1)


def check(folder: Path, wanted: set[str], *, told: int = 1) -> None:
    """Check that all stores have these texts once, and that nothing is left to do.

    Args:
        told: how often the second text was told.
    """
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        left = memory.flush()
        found = texts_of(memory)
        matches = memory.search("Alice", ALICE, top_k=100)
        searched = sorted(one.record.text for one in matches)
        times = {one.record.times_told for one in matches if one.record.text == CELLO}
        runtime: Runtime = memory._runtime
        known = dict(runtime.engines.graph.versions(ALICE))
        indexed = dict(runtime.engines.index.versions(ALICE))

    assert (left.pending, left.dead) == (0, 0)
    assert found == sorted(wanted)
    assert searched == found
    assert times <= {told}
    assert indexed == known


@pytest.mark.every_engine
@pytest.mark.parametrize("point", CRASH_POINTS[CRASH_POINTS.index("before_plan") :])
def test_a_crash_while_recovering_changes_nothing_either(tmp_path: Path, point: str) -> None:
    crash(tmp_path, "after_graph", "update")
    assert run(tmp_path, point, "recover").returncode == -9
    check(tmp_path, {BEES, VIOLA})


@pytest.mark.every_engine
def test_a_thousand_accepted_writes_survive_a_kill_right_after(tmp_path: Path) -> None:
    done = run(tmp_path, "", "thousand")

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.flush(60)
        found = texts_of(memory)

    assert done.returncode == -9
    assert (left.pending, left.dead) == (0, 0)
    assert found == sorted(f"note number {n}" for n in range(1000))
