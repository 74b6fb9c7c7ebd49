"""What do the same calls cost in other memories?

    python benchmarks/others.py [--small] [--folder PLACE] [--environments PLACE] [--only NAME ...]

commonplace, mem0ai, LangGraph's SqliteStore and chromadb hold the same made-up sentences with the
same vectors of 512 dimensions, each in an environment and a process of its own, and are called in
turns, round by round. No language model and no embedder is timed.

- import: of the module by a new interpreter; then it opens a memory that holds all records, and
  searches once, as some open late.
- disk, memory: files and resident memory when all records are there and were searched.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import peers
import speed
import typer
from peers import Child, Figure, Work
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

SIZES = (1_000, 3_000, 10_000)
REOPENINGS = 3


def compared(homes: Path, folder: Path, share: int, only: Sequence[str] = ()) -> list[Table]:
    """Compare writes, searches, forgetting, opening and sizes.

    Args:
        homes: the folder of the environments; what is there is used again.
        share: of the records, one in so many.
        only: names of memories beside ours; all when empty.
    """
    rounds, middle = (5, 5_000) if share == 1 else (3, 5_000 // share)
    works = [
        Work("add", "add", "writer", 20),
        Work("add, batches of 64, each", "add", "batches", 4, 64),
        Work("search, 200 in scope", "search", "light", 20),
        Work(f"search, {middle:,} in scope", "search", "middle", 20),
    ]
    total = 200 + middle + SIZES[-1] // share
    filling = [Work("", "fill", "light", 4, 50), Work("", "fill", "middle", middle // 50, 50)]
    with peers.opened(homes, folder, only=only) as children:
        grown: dict[str, Figure] = {}
        count = 0
        for size in (one // share for one in SIZES):
            more = [Work("", "fill", "grown", (size - count) // 20, 20)]
            peers.compare(children, more, 1, first=count)
            grown |= peers.compare(children, [Work(f"{size:,}", "search", "grown", 20)], 3)
            count = size
        peers.compare(children, filling, 1)
        figures = peers.compare(children, works, rounds)
        figures |= peers.compare(children, [Work(f"forget {middle:,}", "forget", "middle")], 1)
        figures["memory, MB"] = held(children)
        figures["disk, MB"] = used(children)
        figures |= reopened(children)
        names = [child.name for child in children]
        releases = {
            name: one for child in children for name, one in child.start["versions"].items()
        }
    caption = ", ".join(f"{name} {release}" for name, release in releases.items())
    return [
        peers.laid_out(figures, names, f"Calls, {total:,} records", caption=caption + "."),
        peers.laid_out(grown, names, "A search, by the records in its scope"),
    ]


def held(children: list[Child]) -> Figure:
    """Read the resident memory of each process, in MB."""
    sizes = {child.name: child.measure(Work("", "resident", ""), 0) for child in children}
    return Figure({name: [one / 1e6 for one in found] for name, found in sizes.items() if found})


def used(children: list[Child]) -> Figure:
    """Sum up the files of each memory, in MB."""
    figure = Figure()
    for child in children:
        files = (one for one in child.folder.rglob("*") if one.is_file() and one.suffix != ".log")
        figure.rounds[child.name] = [sum(one.stat().st_size for one in files) / 1e6]
    return figure


def reopened(children: list[Child]) -> dict[str, Figure]:
    """End every process and start it again some times; answers what it took until an answer."""
    figures = {
        name: Figure() for name in ("import", "import, memory, MB", "import, open, search once")
    }
    for child in children:
        child.close()
    for _ in range(REOPENINGS):
        for child in children:
            again = Child(child.python, child.name, child.folder)
            [searched] = again.measure(Work("", "search", "light"), 0)
            again.close()
            start = again.start
            for figure, value in zip(
                figures.values(),
                (
                    start["imported"] * 1e3,
                    start["size"] / 1e6,
                    (start["imported"] + start["opened"] + searched) * 1e3,
                ),
                strict=True,
            ):
                figure.rounds.setdefault(child.name, []).append(value)
    return figures


def main(
    small: Annotated[bool, typer.Option("--small", help="A tenth of the records.")] = False,
    folder: Annotated[Path, typer.Option(help="On a disk.")] = speed.TEMPORARY,
    environments: Annotated[
        Path | None, typer.Option(help="Where other memories stay installed.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Beside ours; may be repeated.")] = None,
    file: TablesFile = None,
) -> None:
    """Print what the same calls cost; fail when a memory is missing."""
    console = Console(width=120)
    speed.check_disk(console, folder)
    names = only or list(peers.INSTALLED)
    with speed.empty(folder) as place, tempfile.TemporaryDirectory() as temporary:
        homes = environments or Path(temporary)
        tables = compared(homes, Path(place), 10 if small else 1, names)
    console.print(*tables)
    save(file, tables)
    missing = set(names) - {str(column.header) for column in tables[0].columns}
    if missing:
        sys.exit(f"Not measured: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    typer.run(main)
