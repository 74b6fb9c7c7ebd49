"""Measures everything that `docs/benchmarks.md` tells, and writes that page and its plots.

    python benchmarks/report.py [--small] [--only PART ...] [--locomo FILE] [--environments PLACE]
    python benchmarks/report.py --from benchmarks/results.json

Each part is a benchmark of this folder in a process of its own; its output goes to a log in
`build/benchmarks`. What is measured is kept in `benchmarks/results.json` after every part, so that
`--only` measures some again, and `--from` makes the page without measuring. Other memories are
installed into environments of their own, which `--environments` keeps.
"""

import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import peers
import report_page
import report_plots
import speed
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import commonplace

HERE = Path(__file__).parent
TOP = HERE.parent
RESULTS = HERE / "results.json"
PAGE = TOP / "docs" / "benchmarks.md"
PLOTS = TOP / "docs" / "images" / "benchmarks"
LOGS = TOP / "build" / "benchmarks"
MEM0 = ["mem0ai==2.2.1", "typer", "rich"]  # the release that `drop_in.py` compares with
PACKAGES = ("numpy", "langgraph", "langgraph-checkpoint-sqlite", "agentscope", "strands-agents")
console = Console(width=110)


@dataclass(frozen=True, slots=True)
class Part:
    """Some benchmarks that are measured together.

    Attributes:
        seconds: that it takes, and takes with `--small`, on two processors that are not busy.
        commands: script and arguments; `{environments}`, `{mem0}` and `{file}` are filled in. One
            that needs the file is left out when none is given.
        small: arguments that make each command small.
    """

    seconds: tuple[int, int]
    commands: tuple[str, ...]
    small: tuple[str, ...] = ()


PARTS = {
    "others": Part((200, 40), ("others.py --environments {environments}",), ("--small",)),
    "langgraph": Part(
        (150, 20),
        ("langgraph_store.py --isolation 0", "langgraph_saver.py"),
        ("--pairs 1000 --sizes 1000", "--steps 100"),
    ),
    "frameworks": Part((40, 25), ("frameworks.py",), ("--small",)),
    "mem0": Part((150, 40), ("drop_in.py --peer {mem0}",), ("--rows 500",)),
    "speed": Part((270, 40), ("speed.py --environments {environments}",), ("--small",)),
    "recall": Part(
        (70, 50),
        ("locomo.py --long", "locomo.py --lists", "locomo.py --chinese", "locomo.py {file}"),
        ("", "", "", "--limit 100"),
    ),
    "agent_day": Part((150, 60), ("agent_day.py --users 5",), ("--quick --users 1",)),
}


def commands(part: Part, *, small: bool, given: dict[str, str]) -> Iterator[list[str]]:
    """List the commands of a part, without those that need what is not given."""
    for command, less in zip(part.commands, part.small or [""] * len(part.commands), strict=True):
        if "{file}" in command and not given["file"]:
            continue
        words = [word.format(**given) for word in command.split()]
        yield [*words, *(less.split() if small else ())]


def measure(name: str, *, small: bool, given: dict[str, str], bar: Progress) -> dict[str, Any]:
    """Run the benchmarks of a part; answers their tables, and how they were made.

    Raises:
        RuntimeError: one of them wrote no tables.
    """
    part = PARTS[name]
    todo = [*commands(part, small=small, given=given)]
    load, start, tables = os.getloadavg()[0], time.monotonic(), []
    shown = bar.add_task(name, total=part.seconds[small])
    for number, (script, *arguments) in enumerate(todo):
        log, saved = LOGS / f"{name}{number}.log", LOGS / f"{name}{number}.json"
        saved.unlink(missing_ok=True)
        call = [sys.executable, HERE / script, *arguments, "--tables", saved]
        with log.open("w") as output:
            child = subprocess.Popen(call, stdout=output, stderr=subprocess.STDOUT)
            while child.poll() is None:
                time.sleep(0.2)
                elapsed = time.monotonic() - start
                bar.update(shown, completed=min(elapsed, part.seconds[small] * 0.99))
        if not saved.exists():
            raise RuntimeError(f"{script} ended with {child.returncode}: see {log}")
        if child.returncode:
            bar.console.print(f"{script} ended with {child.returncode}: see {log}")
        made = [script, *(Path(one).name if os.sep in one else one for one in arguments)]
        tables += [one | {"command": " ".join(made)} for one in json.loads(saved.read_text())]
    bar.update(shown, completed=part.seconds[small])
    return {
        "small": small,
        "seconds": round(time.monotonic() - start),
        "load": round(load, 1),
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "tables": tables,
    }


def machine(folder: Path) -> dict[str, str]:
    """Describe the machine, and the versions of what is measured in this environment."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    versions = {"commonplace": commonplace.__version__, "Python": platform.python_version()}
    versions["SQLite"] = sqlite3.sqlite_version
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{_memory():.0f} GB" if hasattr(os, "sysconf") else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "file system": speed.file_system(folder),
        "versions": ", ".join(f"{name} {one}" for name, one in versions.items()),
    }


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def read(file: Path) -> dict[str, Any]:
    """Read results; empty ones when there is no file."""
    empty: dict[str, Any] = {"machine": {}, "parts": {}}
    return json.loads(file.read_text("utf-8")) if file.exists() else empty


def write(results: dict[str, Any]) -> None:
    """Write the page and its plots."""
    PAGE.write_text(report_page.page(results), encoding="utf-8")
    PLOTS.mkdir(parents=True, exist_ok=True)
    report_plots.draw(results, PLOTS)


def measure_all(names: list[str], given: dict[str, str], *, small: bool) -> list[str]:
    """Measure parts, and keep the results of each; answers the names of those that failed."""
    failed = []
    results = read(RESULTS)
    results["machine"] = machine(Path.cwd())
    LOGS.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        for number, name in enumerate(names):
            left = sum(PARTS[one].seconds[small] for one in names[number:])
            bar.console.print(f"{name}: {number + 1} of {len(names)}, {left / 60:.0f} min left")
            try:
                results["parts"][name] = measure(name, small=small, given=given, bar=bar)
            except RuntimeError as error:
                bar.console.print(f"{name} failed. {error}")
                failed.append(name)
            RESULTS.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return failed


def main(
    small: Annotated[bool, typer.Option("--small", help="To try it: a tenth or less.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(PARTS)}; may be repeated.")
    ] = None,
    locomo: Annotated[Path | None, typer.Option(help="A file in LoCoMo's format.")] = None,
    environments: Annotated[
        Path, typer.Option(help="Where other memories are, or will be, installed.")
    ] = LOGS / "environments",
    source: Annotated[
        Path | None, typer.Option("--from", help="Make the page from these results.")
    ] = None,
) -> None:
    """Measure, keep the results, and write the page."""
    if source is not None:
        write(read(source))
        return
    names = only or [*PARTS]
    if unknown := set(names) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}: parts are {', '.join(PARTS)}.")
    given = {"environments": str(environments), "file": str(locomo or ""), "mem0": ""}
    console.print("Preparing environments, which needs a package index where they are missing.")
    environments.mkdir(parents=True, exist_ok=True)
    if "mem0" in names:
        given["mem0"] = peers.installed(environments / "mem0", MEM0)
    if "others" in names:
        for name, packages in peers.INSTALLED.items():
            peers.installed(environments / name, packages)
    failed = measure_all(names, given, small=small)
    write(read(RESULTS))
    console.print(f"Written: {RESULTS}, {PAGE}, {PLOTS}")
    if failed:
        sys.exit(f"Not measured: {', '.join(failed)}")


if __name__ == "__main__":
    typer.run(main)
