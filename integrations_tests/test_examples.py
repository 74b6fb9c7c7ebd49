"""Every example prints what its docstring promises, and so does the code in documents."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What goes with none of the other frameworks, by example; a session of nox has each.
ALONE = {
    "with_agentscope_v1": "agentscope.memory",
    "with_agentscope_runtime": "agentscope_runtime",
}
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "agents.md"]
BLOCKS = [
    block
    for document in DOCUMENTS
    for block in re.findall(r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S)
]


def printed(script: Path, folder: Path) -> list[str]:
    """Run a script inside a folder; answer its lines."""
    run = subprocess.run(
        [sys.executable, "-X", "utf8", script],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def trimmed(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_promises(example: Path, tmp_path: Path):
    package = ALONE.get(example.stem)
    if package is not None and not is_installed(package):
        pytest.skip(f"needs {package}: nox -s {example.stem.removeprefix('with_')}")
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    promised = docstring.partition("Prints:\n")[2]

    assert promised, f"{example.name} promises nothing"
    assert trimmed(promised.splitlines()) == trimmed(printed(example, tmp_path))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_code_of_a_document_prints_what_its_comments_promise(number: int, tmp_path: Path):
    script = tmp_path / "document.py"
    script.write_text(BLOCKS[number], "utf-8")
    promised = re.findall(r"^ *#> ?(.*)$", BLOCKS[number], re.MULTILINE)

    assert promised, "a block that promises nothing"
    assert trimmed(promised) == trimmed(printed(script, tmp_path))


def test_the_readme_shows_the_heart_of_the_quickstart():
    quickstart = (ROOT / "examples" / "quickstart.py").read_text("utf-8").splitlines()
    # The example's folder is a temporary one; what is printed stands elsewhere in the example.
    shown = [
        line
        for line in trimmed(BLOCKS[0].splitlines())
        if not line.startswith(("with Memory.open", "#>"))
    ]

    assert [line for line in shown if line not in trimmed(quickstart)] == []
