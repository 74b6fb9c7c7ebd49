"""The import contracts, each broken on purpose, and the rules of the tree that they cannot say."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("core", "adapters")
ADAPTERS = sorted((ROOT / "adapters").glob("commonplace_*"))
_PUBLIC = ("agents", "ports", "filters", "admin", "models.openai")
PUBLIC = ("commonplace", *(f"commonplace.{one}" for one in _PUBLIC))

# One word for one job in all adapters, and what only one of them has.
EVERYWHERE = (
    "convert turn_owner models middleware tools turn store checkpoints sessions migrate cli_import"
    " testing".split()
)
OWN = {
    "agentscope": "shared_models runtime_service v1 offloader",
    "langgraph": "nodes store_items store_queries store_writes checkpoint_codec async_checkpoints "
    "import_sources",
    "mem0": "memory async_memory base config arguments operations filters exceptions install "
    "scope_ids",
    "strands": "plugin extraction mem0_memory multiagent_turns byte_storage",
}

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# First words of the contract, file that is spoilt, line that spoils it.
VIOLATIONS = [
    ("adapters", "core/commonplace/testing/__init__.py", "import commonplace_agentscope"),
    ("adapters", "adapters/commonplace_langgraph/convert.py", "import commonplace_agentscope"),
    ("inside", "core/commonplace/errors.py", "from . import types"),
    ("inside", "core/commonplace/backends/__init__.py", "from ..retrieval import ranking"),
    ("inside", "core/commonplace/ingest/changes.py", "from ..backends.shared import rows"),
    ("inside", "core/commonplace/stray.py", '"""A module that no layer lists."""'),
    ("the core", "core/commonplace/types.py", "import agentscope"),
    ("a driver", "core/commonplace/blocking_memory.py", "import sqlite3"),
    ("a driver", "core/commonplace/backends/qdrant/index.py", "import neo4j"),
    ("a driver", "adapters/commonplace_agentscope/convert.py", "import qdrant_client"),
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


def imported(tree: ast.AST) -> Iterator[str]:
    """Name every module that is imported by its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def name_of(adapter: Path) -> str:
    return adapter.name.removeprefix("commonplace_")


@pytest.mark.parametrize("adapter", ADAPTERS, ids=name_of)
def test_an_adapter_imports_only_public_packages_of_the_core(adapter: Path) -> None:
    deeper = {
        (str(path.relative_to(adapter)), name)
        for path in adapter.rglob("*.py")
        if "testing" not in path.parts
        for name in imported(ast.parse(path.read_text("utf-8")))
        if name.partition(".")[0] == "commonplace" and name not in PUBLIC
    }
    # A subcommand of `commonplace import` stands on the command line that loads it.
    deeper.discard(("cli_import.py", "commonplace.cli"))

    assert sorted(deeper) == []


@pytest.mark.parametrize("adapter", ADAPTERS, ids=name_of)
def test_the_files_of_an_adapter_are_named_by_their_jobs(adapter: Path) -> None:
    found = {path.stem for path in adapter.iterdir() if not path.stem.startswith("__")}
    named = {*EVERYWHERE, *OWN.get(name_of(adapter), "").split(), "py"}

    assert sorted(found - named) == []


def test_the_call_stack_is_read_in_one_module() -> None:
    names = ("_getframe", "currentframe", "f_locals", "f_back", "cr_frame", "all_tasks")
    readers = {
        str(path.relative_to(ROOT))
        for source in SOURCES
        for path in (ROOT / source).glob("commonplace*/**/*.py")
        if any(name in path.read_text("utf-8") for name in names)
    }

    assert readers == {"core/commonplace/agents/caller_detection.py"}


def test_each_release_that_a_rule_of_the_call_stack_names_is_tested() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "adapters").glob("*/**/*.py"))
    named = re.findall(r'checked_with="([\w-]+) ([\d.]+) to ([\d.]+)"', text)
    noxfile = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    [releases] = [
        ast.literal_eval(node.value)
        for node in noxfile.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CALLERS"
    ]
    tested = {(name.split()[0], found[0], found[-1]) for name, (found, *_) in releases.items()}

    assert len(named) == text.count("StackRule(")
    assert {(name, *map(_three_parts, ends)) for name, *ends in named} == tested


def _three_parts(release: str) -> str:
    return release if release.count(".") == 2 else f"{release}.0"


def test_no_class_is_defined_twice() -> None:
    names = Counter(
        node.name
        for source in SOURCES
        for path in (ROOT / source).glob("commonplace*/**/*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    )

    twice = {name for name, times in names.items() if times > 1}
    assert twice == {"ScriptedModel"}  # the same in the `testing` of each framework with agents


def test_what_a_method_of_memory_takes_or_gives_can_be_imported() -> None:
    tree = ast.parse((ROOT / "core" / "commonplace" / "blocking_memory.py").read_text("utf-8"))
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level > 0
        for alias in node.names
    } | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    memory = next(one for one in tree.body if getattr(one, "name", "") == "BlockingMemory")
    methods = [
        one
        for one in memory.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_")
    ]
    named = {name for one in methods for name in names_in_signature(one)}

    hidden = {
        name
        for name in named & ours
        if not any(hasattr(importlib.import_module(package), name) for package in PUBLIC)
    }

    assert len(methods) > 20
    assert {"Scope", "Match", "WriteResult"} <= named & ours
    assert sorted(hidden) == []


def names_in_signature(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Name every type in the annotations of a method."""
    given = method.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    for annotation in [method.returns, *(one.annotation for one in parameters if one)]:
        for node in ast.walk(annotation) if annotation else ():
            if isinstance(node, ast.Name):
                yield node.id
