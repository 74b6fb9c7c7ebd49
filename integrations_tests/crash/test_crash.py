"""Processes die at every point of every write; nothing is lost, doubled or left, and all agrees."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

from .programs import Programs

pytestmark = pytest.mark.slow

ZERO = ("lost", "doubled", "diverged", "left", "failed")
THOUSAND = """\
import os, signal, sys
from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

memory = Memory.open(sys.argv[1], embedder=HashEmbedder())
for n in range(1000):
    memory.add(f"note number {n}", Scope(user_id="alice"), wait=False)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.every_engine("embedded", "folders", "neo4j+folder", "neo4j+qdrant")
def test_whoever_dies_at_any_point_of_an_action_loses_and_doubles_nothing(
    tmp_path: Path, engines: str, programs: Programs
) -> None:
    # `benchmarks/proofs.py crashes` asks for the long form, and for the counts.
    form = os.environ.get("CRASHES", "short")
    found = programs.run("crash_matrix", engines, form, tmp_path)
    if report := os.environ.get("CRASHES_REPORT"):
        Path(report).write_text(json.dumps(found))
    actions = found["actions"]
    examples = [one for counts in actions.values() for one in counts["examples"]]

    for name, counts in actions.items():
        assert dict.fromkeys(ZERO, 0) == {one: counts[one] for one in ZERO}, (name, examples)
    assert sum(counts["killed"] for counts in actions.values()) >= 8
    # Threads may pass a point once less than when that was counted.
    assert sum(counts["missed"] for counts in actions.values()) <= 2 * len(actions)


def test_a_thousand_accepted_writes_survive_a_kill_right_after(tmp_path: Path) -> None:
    command = [sys.executable, "-c", THOUSAND, str(tmp_path)]
    assert subprocess.run(command, timeout=120, check=False).returncode == -9

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        left = memory.flush(60)
        found = memory.list(Scope(user_id="alice"), limit=1000).records

    assert (left.pending, left.dead) == (0, 0)
    assert sorted(one.text for one in found) == sorted(f"note number {n}" for n in range(1000))
