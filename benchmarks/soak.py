"""Does anything grow, or get lost, in a memory that four processes use for an hour?

    python benchmarks/soak.py [--seconds 3600] [--servers]
    python benchmarks/soak.py --from build/soak.json

Four adapters, each in a process of its own, work on one folder: turns of agents, adds, searches,
updates, deletes, sessions and checkpoints, and users who come and are forgotten, as many in every
minute. Compared is the first sixth of the time after the warm-up with the last; what grew by more
than 10 % is too much, and so is anything that is lost, doubled, another user's, or a byte of who
was forgotten. Ends with 1 then. It needs Linux, and a machine that does nothing else.

With `--servers` the vectors are in Qdrant and the rest in Neo4j, one of which is killed and started
again every four minutes, Qdrant where it is on the PATH; latencies are not compared then.

Samples and latencies are written to `build/soak.json`; without servers, the plot is drawn as
`docs/images/soak.svg`, for which matplotlib is needed. `--from` draws and tells without measuring.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1] / "integrations_tests"))
sys.path.append(str(Path(__file__).parents[1] / "integrations_tests" / "crash"))
import soak_load
import soak_run

TOP = Path(__file__).parents[1]
RESULT = TOP / "build" / "soak.json"
PLOT = TOP / "docs" / "images" / "soak.svg"
PYTEST = (sys.executable, "-m", "pytest", "-q", "--timeout=0", "-p", "no:cacheprovider")
console = Console()


def main(
    seconds: Annotated[float, typer.Option(min=60.0, help="Of load.")] = 3600.0,
    servers: Annotated[bool, typer.Option(help="On Qdrant and Neo4j, which are killed.")] = False,
    result: Annotated[Path, typer.Option(help="Where the samples are written.")] = RESULT,
    plot: Annotated[Path, typer.Option(help="Where the plot is drawn.")] = PLOT,
    given: Annotated[Path | None, typer.Option("--from", help="Samples to tell of.")] = None,
) -> None:
    """Play the load, and tell what grew and what is wrong."""
    result.parent.mkdir(parents=True, exist_ok=True)
    if given is not None:
        result = given
    elif servers:
        result.unlink(missing_ok=True)
        run_on_servers(seconds, result)
    else:
        with Progress(console=console) as bar, tempfile.TemporaryDirectory() as home:
            task = bar.add_task("soak", total=seconds)
            report = soak_run.run(
                Path(home) / "memory",
                soak_run.long_form(seconds),
                told=lambda passed: bar.update(task, completed=passed),
            )
            bar.update(task, completed=seconds)
        soak_run.save(report, result)
    found = json.loads(result.read_text())
    if not servers and importlib.util.find_spec("matplotlib"):
        draw(found, plot)
    elif not servers:
        console.print(f"No plot: install matplotlib, and call this with --from {result}.")
    show(found)


def run_on_servers(seconds: float, result: Path) -> None:
    """Run the test on servers, which it starts, in its long form."""
    subprocess.run(
        [*PYTEST, "integrations_tests/crash/test_soak.py", "-k", "servers", "-m", ""],
        env={**os.environ, "SOAK_SECONDS": str(seconds), "SOAK_REPORT": str(result)},
        cwd=TOP,
        check=False,
    )
    if not result.exists():
        console.print("It did not get to its end: see what pytest says above.")
        raise typer.Exit(1)


def show(found: dict[str, Any]) -> None:
    """Print what was compared and what was counted; end with 1 if anything is wrong."""
    table = Table("", "", "first", "last", "ratio", title="First and last sixth after the warm-up")
    for one in found["growth"]:
        ratio = f"{one['ratio']:.2f}" if one["is_judged"] else f"({one['ratio']:.2f})"
        style = "red" if one["is_beyond"] else None
        figures = (f"{one[name]:,.2f}" for name in ("first", "last"))
        table.add_row(one["name"], one["unit"], *figures, ratio, style=style)
    console.print(table)
    console.print("In brackets: too few to tell, or not compared beside an outage.")
    counts = found["counts"]
    counted = Table("count", "number")
    for name, value in counts.items():
        if isinstance(value, int):
            counted.add_row(name, f"{value:,}")
    console.print(counted)
    for example in counts["examples"][:20]:
        console.print(example, markup=False)
    if found["faults"] or any(one["is_beyond"] for one in found["growth"]):
        raise typer.Exit(1)


def draw(found: dict[str, Any], file: Path) -> None:
    """Draw memory, threads and open files, the database and latencies over the time."""
    from matplotlib import pyplot as plt
    from report_plots import COLOURS, STYLE

    samples = found["samples"]
    minutes = [one["t"] / 60 for one in samples]
    with plt.rc_context(STYLE):
        figure, [[rss, held], [disk, times]] = plt.subplots(
            2, 2, figsize=(10.0, 6.4), layout="constrained", sharex=True
        )
        for colour, name in zip(COLOURS, soak_load.ADAPTERS, strict=False):
            for axes, figures in ((rss, ("rss",)), (held, ("threads", "files"))):
                for figure_name, line in zip(figures, ("-", ":"), strict=False):
                    values = [one.get(f"{name} {figure_name}") for one in samples]
                    axes.plot(minutes, values, line, color=colour, label=name)
            rows = found["latencies"].get(f"{name} turn", [])
            for column, line in ((1, "-"), (2, ":")):
                at = [row[0] / 60 for row in rows]
                times.plot(at, [row[column] for row in rows], line, color=colour)
        for colour, name in zip(COLOURS, ("memory.db", "memory.db-wal"), strict=False):
            disk.plot(minutes, [one.get(name) for one in samples], color=colour, label=name)
        rss.set(title="resident memory, MB")
        held.set(title="threads; dotted: open files")
        disk.set(title="file size, MB", xlabel="minutes")
        times.set(title="a turn of an agent, ms: p50; dotted: p95", xlabel="minutes")
        for axes in (rss, held, disk, times):
            axes.set_ylim(bottom=0)
        rss.legend(frameon=False, ncols=2)
        disk.legend(frameon=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None, "Creator": None})
        plt.close(figure)
    # Trailing spaces, which the library writes, are no part of a picture.
    lines = (line.rstrip() for line in file.read_text("utf-8").splitlines())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
