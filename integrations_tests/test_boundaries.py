"""The import contracts hold, and each one breaks when it should; modules stay small."""

import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("core", "adapters")

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# Contract, file that is spoilt, line that spoils it.
VIOLATIONS = [
    (1, "core/commonplace/testing/__init__.py", "import commonplace_agentscope"),
    (1, "adapters/commonplace_langgraph/convert.py", "import commonplace_agentscope"),
    (2, "core/commonplace/errors.py", "from . import model"),
    (2, "core/commonplace/backends/__init__.py", "from commonplace.pipeline import rank"),
    (2, "core/commonplace/stray.py", "'''A module that nobody gave a place.'''"),
    (3, "core/commonplace/pipeline/rank.py", "from . import extract"),
    (4, "adapters/commonplace_agentscope/convert.py", "import commonplace.pipeline.rank"),
    (5, "core/commonplace/model.py", "import agentscope"),
    (6, "core/commonplace/memory.py", "import sqlite3"),
    (6, "adapters/commonplace_agentscope/convert.py", "import qdrant_edge"),
]

USUAL = {"backends": 300, "testing": 600}  # a contract is a list of promises
TALL = {
    "core/commonplace/model.py": 375,  # declarations, read from top to bottom
    "core/commonplace/ports.py": 410,  # declarations too
    "core/commonplace/backends/whole_nodes.py": 320,  # its texts and both ways
    "core/commonplace/exchange.py": 235,  # and these
    "core/commonplace/reading.py": 320,  # every call twice, with its awaitable twin
    "core/commonplace/writing.py": 255,  # the same
    "core/commonplace/errors.py": 210,  # all of them
    "core/commonplace/request.py": 215,  # every question that can be asked
    "adapters/commonplace_mem0/memory.py": 210,  # mem0's whole face, with all its parameters
    "adapters/commonplace_mem0/awaiting.py": 220,  # the same, awaited
    "core/commonplace/testing/graph.py": 625,  # a contract is a list of promises
    "core/commonplace/writer.py": 370,  # the life of a write, from accepted to pruned
}


def broken_contracts(root: Path) -> tuple[int, ...]:
    """Run import-linter on a checkout; answer the numbers of the contracts that do not hold."""
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
    verdicts = re.findall(r"^(\d) .* (KEPT|BROKEN)", run.stdout, re.MULTILINE)
    assert len(verdicts) == 6, run.stdout + run.stderr
    broken = tuple(int(number) for number, verdict in verdicts if verdict == "BROKEN")
    assert bool(broken) == (run.returncode != 0)
    return broken


def test_every_contract_holds():
    assert broken_contracts(ROOT) == ()


@pytest.mark.parametrize(("contract", "file", "line"), VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(
    tmp_path: Path, contract: int, file: str, line: str
):
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "tests")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / file).open("a", encoding="utf-8") as spoilt:
        spoilt.write(f"\n{line}\n")

    assert contract in broken_contracts(tmp_path)


def modules() -> dict[Path, int]:
    found = [*(ROOT / "core" / "commonplace").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]
    return {path: len(path.read_text("utf-8").splitlines()) for path in found}


def test_the_median_module_is_short():
    lines = [number for path, number in modules().items() if path.parent.name != "testing"]

    assert statistics.median(lines) <= 120


@pytest.mark.parametrize("path", sorted(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_keeps_its_budget(path: Path):
    budget = TALL.get(path.relative_to(ROOT).as_posix(), USUAL.get(path.parent.name, 200))

    assert modules()[path] <= budget
