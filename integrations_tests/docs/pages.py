"""Code blocks of a Markdown page, and the script that a reader gets by pasting them in order."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
RUN = {"python", "sh"}
NEVER_RUN = {"text", "json", "mermaid", "toml", "yaml", "dockerfile"}
# Indented fences too, those in lists and in tabs. A longer fence may hold a shorter one.
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>\S.*?) -->\n+(?:^ *<!-- .* -->\n)*)?"
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>[^\s`]*)[^\n`]*\n"
    r"(?P<code>(?:.*\n)*?)(?P=indent)(?P=fence) *$",
    re.MULTILINE,
)
NEEDS = re.compile(r"^<!-- needs: (.+?) -->$", re.MULTILINE)
PROMISE = re.compile(r"^ *#>(?: (.*))?$", re.MULTILINE)
NEXT_BLOCK = "\x1e"  # printed before each block; no page prints it


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line counts from 1, and is that after the fence."""

    language: str
    code: str
    line: int
    reason: str | None = None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.reason is None

    @property
    def promised(self) -> list[str] | None:
        """List the lines that it says it prints; None if any are right.

        Python that says nothing prints nothing. Commands may also show their progress, so those
        that say nothing may print what they like.
        """
        lines = [line.rstrip() for line in PROMISE.findall(self.code)]
        return lines if lines or self.language == "python" else None


def pages() -> list[list[Path]]:
    """List what users read: the README in every language and the pages of the site.

    Pages stand together if they run the same code, but for comments, and promise the same.
    """
    found: dict[str, list[Path]] = {}
    for page in sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]):
        text = page.read_text("utf-8")
        key = str(page)
        with suppress(SyntaxError):  # which the page's own test names
            run = [(_uncommented(one), one.promised) for one in blocks_of(text) if one.runs]
            key = repr((NEEDS.findall(text), run)) if run else key
        found.setdefault(key, []).append(page)
    return [*found.values()]


def _uncommented(block: Block) -> str:
    return ast.dump(syntax_of(block)) if block.language == "python" else block.code


def syntax_of(block: Block) -> ast.Module:
    """Parse a block of Python; a `SyntaxError` names the line of the page."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: ast.Module = compile("\n" * (block.line - 1) + block.code, "page", "exec", flags)
    return tree


def blocks_of(text: str) -> list[Block]:
    """Read the blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        code = "".join(line[indent:] or "\n" for line in match["code"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("code")) + 1
        found.append(Block(match["language"], code, line, match["reason"]))
    return found


def missing_extras(text: str) -> list[str]:
    """Name what a page says it needs and is not installed: extras, or packages of our groups."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    packages: dict[str, list[str]] = {}  # each group may have a version of its own; one will do
    for group in project["dependency-groups"].values():
        for one in group:
            packages.setdefault(Requirement(one).name, []).append(one)
    named = [name.strip() for match in NEEDS.findall(text) for name in match.split(",")]
    return [
        name
        for name in named
        if not (
            all(map(_is_installed, extras[name]))
            if name in extras
            else any(map(_is_installed, packages[name]))
        )
    ]


def _is_installed(requirement: str) -> bool:
    wanted = Requirement(requirement)
    try:
        return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


# An agent waits 2 seconds for its memories and then answers without; a machine that runs many tests
# at once may take longer to load a model.
PATIENCE = """
import dataclasses
from commonplace.agents import AgentMemory, Policy

def patient(self, memory, policy, *args, begin=AgentMemory.__init__, **given):
    policy = dataclasses.replace(policy or Policy(), recall_timeout=60.0)
    begin(self, memory, policy, *args, **given)

AgentMemory.__init__ = patient
"""


def script_of(blocks: list[Block]) -> str:
    """Write the blocks that run as one script, each line where it stands in the page.

    So a traceback names the page's own lines.
    """
    lines: list[str] = [f"exec({PATIENCE!r}, {{}})"]
    for block in blocks:
        if not block.runs:
            continue
        lines += [""] * (block.line - 2 - len(lines))  # up to the fence, which tells of the block
        announced = f"print({NEXT_BLOCK!r})"
        if block.language == "sh":
            command = ["bash", "-e", "-c", block.code]
            lines.append(f"{announced}; __import__('subprocess').run({command!r}, check=True)")
        else:
            lines += [announced, *block.code.splitlines()]
    return "\n".join(lines) + "\n"


def printed_by(blocks: list[Block], folder: Path) -> list[list[str]]:
    """Run the blocks in one new process; answer the lines that each block printed.

    Their working folder and their home are empty folders inside the one that is given.

    Raises:
        AssertionError: with what the page wrote to stderr, if a block failed.
    """
    script, work, home = folder / "page.py", folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    paths = [str(work), os.environ.get("PYTHONPATH", "")]  # a reader imports files of the folder
    there = {"HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    script.write_text(script_of(blocks), "utf-8")
    kept = {name: value for name, value in os.environ.items() if "COMMONPLACE" not in name}
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-u", script],
        cwd=work,
        env=kept | there | {"PATH": tools, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    return [part.splitlines()[1:] for part in run.stdout.split(NEXT_BLOCK)[1:]]


def is_as_promised(promised: list[str] | None, printed: list[str]) -> bool:
    """Compare line by line: `...` stands for any text in a line, alone for any lines."""
    if promised is None:
        return True
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in promised
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)) is not None
