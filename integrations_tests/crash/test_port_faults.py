"""Any call of any store fails, in any way: the caller gets our error, and nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("port_faults.py")
ZERO = ("lost", "doubled", "diverged", "left", "failed")


@pytest.mark.every_engine("embedded", "folders", "neo4j+folder", "neo4j+qdrant")
def test_a_call_of_a_store_that_fails_loses_and_doubles_nothing(
    tmp_path: Path, engines: str
) -> None:
    # `benchmarks/proofs.py faults` asks for the long form, and for the counts.
    form = os.environ.get("PORT_FAULTS", "short")
    command = [sys.executable, str(PROGRAM), engines, form, str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    if report := os.environ.get("PORT_FAULTS_REPORT"):
        Path(report).write_text(done.stdout)

    for kind, counts in json.loads(done.stdout)["actions"].items():
        assert dict.fromkeys(ZERO, 0) == {one: counts[one] for one in ZERO}, (kind, counts)
        assert counts["runs"] >= 1
