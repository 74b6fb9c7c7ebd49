"""Any call of any store fails, in any way: the caller gets our error, and nothing is lost."""

import json
import os
from pathlib import Path

import pytest

from .programs import Programs

pytestmark = pytest.mark.slow

ZERO = ("lost", "doubled", "diverged", "left", "failed")


@pytest.mark.every_engine("embedded", "folders", "neo4j+folder", "neo4j+qdrant")
def test_a_call_of_a_store_that_fails_loses_and_doubles_nothing(
    tmp_path: Path, engines: str, programs: Programs
) -> None:
    # `benchmarks/proofs.py faults` asks for the long form, and for the counts.
    form = os.environ.get("PORT_FAULTS", "short")
    found = programs.run("port_faults", engines, form, tmp_path)
    if report := os.environ.get("PORT_FAULTS_REPORT"):
        Path(report).write_text(json.dumps(found))

    for kind, counts in found["actions"].items():
        assert dict.fromkeys(ZERO, 0) == {one: counts[one] for one in ZERO}, (kind, counts)
        assert counts["runs"] >= 1
