"""The import contracts hold, and each one breaks when it should."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("core", "adapters")

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# First words of the contract, file that is spoilt, line that spoils it.
VIOLATIONS = [
    ("adapters", "core/commonplace/testing/__init__.py", "import commonplace_agentscope"),
    ("adapters", "adapters/commonplace_langgraph/convert.py", "import commonplace_agentscope"),
    ("inside", "core/commonplace/errors.py", "from . import model"),
    ("inside", "core/commonplace/backends/__init__.py", "from ..retrieval import ranking"),
    ("inside", "core/commonplace/ingest/codec.py", "from ..backends.shared import rows"),
    ("inside", "core/commonplace/stray.py", '"""A module that no layer lists."""'),
    ("the core", "core/commonplace/model.py", "import agentscope"),
    ("a driver", "core/commonplace/memory.py", "import sqlite3"),
    ("a driver", "core/commonplace/backends/qdrant/index.py", "import neo4j"),
    ("a driver", "adapters/commonplace_agentscope/convert.py", "import qdrant_edge"),
]


def broken_contracts(root: Path) -> tuple[str, ...]:
    """Run import-linter on a checkout and return the names of the broken contracts."""
    paths = os.pathsep.join(str(root / name) for name in SOURCES)
    run = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--config", str(root / "pyproject.toml")],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    verdicts = re.findall(r"^(.*) (KEPT|BROKEN)", run.stdout, re.MULTILINE)
    assert len(verdicts) == 4, run.stdout + run.stderr
    broken = tuple(name for name, verdict in verdicts if verdict == "BROKEN")
    assert bool(broken) == (run.returncode != 0)
    return broken


def test_every_contract_holds():
    assert broken_contracts(ROOT) == ()


@pytest.mark.parametrize(("contract", "file", "line"), VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(
    tmp_path: Path, contract: str, file: str, line: str
):
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "tests")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / file).open("a", encoding="utf-8") as spoilt:
        spoilt.write(f"\n{line}\n")

    broken = broken_contracts(tmp_path)

    assert any(name.startswith(contract) for name in broken)
