"""Every example prints what its docstring promises."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .docs.pages import blocks_of, is_as_promised
from .servers.fixtures import empty_graph, empty_index

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What goes with none of the other frameworks, by example; a session of nox has each.
ALONE = {
    "with_agentscope_v1": "agentscope.memory",
    "with_agentscope_runtime": "agentscope_runtime",
}


def printed(script: Path, folder: Path, **environment: str) -> list[str]:
    """Run a script inside a folder; answer its lines."""
    run = subprocess.run(
        [sys.executable, "-X", "utf8", script],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def promises(example: Path) -> list[str]:
    """List the lines that an example says it prints."""
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    return trimmed(docstring.partition("Prints:\n")[2].splitlines())


def trimmed(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_promises(example: Path, tmp_path: Path):
    package = ALONE.get(example.stem)
    if package is not None and not is_installed(package):
        pytest.skip(f"needs {package}: nox -s {example.stem.removeprefix('with_')}")
    promised = promises(example)

    assert promised, f"{example.name} promises nothing"
    lines = trimmed(printed(example, tmp_path))
    assert is_as_promised(promised, lines), lines


def test_one_memory_is_on_servers_when_they_are_named(neo4j_uri: str, qdrant_url: str, tmp_path):
    example = ROOT / "examples" / "one_memory.py"
    with empty_index(qdrant_url) as vectors:
        servers = {"COMMONPLACE_GRAPH": empty_graph(neo4j_uri), "COMMONPLACE_VECTORS": vectors}
        lines = printed(example, tmp_path, **servers)

    assert is_as_promised(promises(example), trimmed(lines)), lines


def test_the_readme_shows_the_heart_of_the_quickstart():
    quickstart = (ROOT / "examples" / "quickstart.py").read_text("utf-8").splitlines()
    readme = (ROOT / "README.md").read_text("utf-8")
    first = next(block for block in blocks_of(readme) if block.runs)
    # The example's folder is a temporary one; what is printed stands elsewhere in the example.
    shown = [
        line
        for line in trimmed(first.code.splitlines())
        if not line.startswith(("with Memory.open", "#>"))
    ]

    assert [line for line in shown if line not in trimmed(quickstart)] == []
