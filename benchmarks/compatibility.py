"""Page `docs/compatibility.md`: each call of a framework on its own implementation and on ours.

    python benchmarks/compatibility.py [SECTION ...] [--check] [--verbose]

Writes the sections whose frameworks are installed, and leaves the others as they are: AgentScope
1.x, agentscope-runtime and mem0 1.x need environments of their own (`nox -l`), and `SqliteStore` an
SQLite that loads extensions. It fails when a call differs and no reason is given beside it, when a
reason is given for what is the same, and when a method or an argument of a framework's interface is
in no call.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

# Before any of them is imported: nothing is sent, fetched or stored at home.
os.environ |= {"MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "unused"}
os.environ |= {"LOGURU_LEVEL": "CRITICAL", "MEM0_DIR": tempfile.mkdtemp()}

import compatible
import typer
from rich.console import Console

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"


def main(
    sections: Annotated[list[str] | None, typer.Argument()] = None,
    check: bool = False,
    verbose: bool = False,
) -> None:
    """Run the sections that can be run here, and write the page."""
    errors = Console(stderr=True, markup=False, soft_wrap=True)
    page = compatible.split(PAGE.read_text("utf-8"))
    run, absent, failed = [], [], []
    for name in sections or compatible.MODULES:
        section = compatible.find(name)
        if section is None:
            absent.append(name)
            continue
        run.append(name)
        try:
            lines = compatible.table(section, errors.print if verbose else lambda _: None)
        except compatible.ProblemError as problem:
            errors.print(str(problem))
            failed.append(name)
            continue
        if check and rows(page.get(name, [])) != rows(lines):
            errors.print(f"{name}: the page says something else; run this without --check")
            failed.append(name)
        page[name] = lines
    if not check:
        names = ["", *(name for name in compatible.MODULES if name in page)]
        text = "\n".join(line for name in names for line in page[name])
        PAGE.write_text(text.rstrip("\n") + "\n", "utf-8")
    for label, names in (("run", run), ("not here", absent), ("failed", failed)):
        errors.print(f"{label}: {', '.join(names) or '-'}")
    sys.exit(bool(failed))


def rows(lines: list[str]) -> list[str]:
    """Leave out blank lines and the line of versions."""
    said = [line for line in lines if line]
    return said[:2] + said[3:]


if __name__ == "__main__":
    typer.run(main)
