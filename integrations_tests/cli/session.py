"""Recorded terminal session of docs/cli.md: `python integrations_tests/cli/session.py` renews it.

The page says what is typed: its first block of Python, and then the lines with a `$`. All of it is
run, with the default embedder, in an empty folder that the page calls /home/you.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from commonplace.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SESSION = re.compile(r"(?<=<!-- recorded -->\n```text\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
SEED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COLUMNS = 88
# A terminal without colours.
TERMINAL = {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": str(COLUMNS), "LINES": "50"}


def recorded(page: str) -> str:
    """Find the session in the text of the page."""
    found = SESSION.search(page)
    assert found, "the page has no recorded session"
    return found[1]


def record(page: str, folder: Path) -> str:
    """Run what the session types, in this process; `folder` is the working folder, and empty."""
    seed = SEED.search(page)
    assert seed, "the page has no block of Python"
    subprocess.run([sys.executable, "-c", seed[1]], cwd=folder, check=True, capture_output=True)
    parts = []
    for line in recorded(page).splitlines():
        if line.startswith("$ "):
            words = shlex.split(line.removeprefix("$ commonplace "))
            done = CliRunner().invoke(app, words, env=TERMINAL)
            output = done.output.replace(str(folder.resolve()), "/home/you")
            parts.append("\n".join([line, *(one.rstrip() for one in output.splitlines()), ""]))
    return "\n".join(parts)


def main() -> None:
    """Write the page anew."""
    page = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        session = record(page, Path(folder))
        os.chdir("/")
    PAGE.write_text(SESSION.sub(lambda _: session, page), "utf-8")


if __name__ == "__main__":
    main()
