"""What does a search cost as the store grows, and as the scope grows? Records are made up.

    python benchmarks/scale.py [--records 1000000] [--vectors qdrant://localhost:6333]

The index is loaded by its port with random vectors and words, so that neither a model nor the
graph store is timed. Without a URL it is the embedded one, in a temporary folder.
"""

import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import scoring
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from commonplace import Record, Scope, Settings
from commonplace.backends import open_engines
from commonplace.ports.engines import VectorIndex
from commonplace.ports.stores import Point, Query, Terms
from commonplace.settings import Location, without_secret
from commonplace.testing.fakes import HashEmbedder

SCOPES = (200, 5_000, 20_000)
OTHERS = 1_000  # records of each other user
WORDS = 12
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_random = np.random.default_rng(7)


def points(scope: Scope, count: int, dimensions: int) -> Iterator[list[Point]]:
    """Make up records of a scope, 64 at a time."""
    for start in range(0, count, 64):
        size = min(64, count - start)
        vectors = _unit(_random.standard_normal((size, dimensions), dtype=np.float32))
        yield [
            Point(
                record=Record(
                    id=scope.record_id("fact", str(number)),
                    text=f"{scope.user_id} said something of no great length, number {number}",
                    scope=scope,
                    metadata={"topic": f"topic {number % 50}"},
                    created_at=NOW,
                    updated_at=NOW,
                    occurred_at=NOW,
                    version=1,
                ),
                vector=vector,
                terms=_terms(),
                words=WORDS,
            )
            for number, vector in enumerate(vectors.tolist(), start)
        ]


def probe(scope: Scope, dimensions: int) -> Query:
    """Make up a question."""
    vector = _unit(_random.standard_normal((1, dimensions), dtype=np.float32))[0]
    return Query(scope=scope, vector=vector.tolist(), terms=_terms(), at=NOW)


def _unit(rows: "np.ndarray[tuple[int, int], np.dtype[np.float32]]") -> "np.ndarray":
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _terms() -> Terms:
    # As words are: few that everybody uses, many that are rare.
    found = np.unique(_random.zipf(1.3, WORDS).clip(1, 200_000))
    return Terms(indices=tuple(found.tolist()), weights=(1.0,) * len(found))


def search(index: VectorIndex, scope: Scope, dimensions: int) -> tuple[float, float]:
    """Time questions of a scope; answers p50 and p95 in milliseconds."""
    seconds = []
    for _ in range(40):
        asked = probe(scope, dimensions)
        start = time.perf_counter()
        index.search(asked, 50)
        seconds.append(time.perf_counter() - start)
    return scoring.percentiles(seconds[5:])


def main(
    records: Annotated[int, typer.Option(min=50_000)] = 1_000_000,
    dimensions: int = 384,
    vectors: Annotated[str, typer.Option(help="A server's URL; its collection is filled.")] = "",
) -> None:
    """Fill an index and print what searches cost on the way."""
    console = Console()
    table = Table("records", *(f"search, {one:,} in scope (p50 / p95 ms)" for one in SCOPES))
    for name in ("load, records/s", "memory MB", "disk MB"):
        table.add_column(name, justify="right")
    sizes = [one for one in (30_000, 100_000, 300_000, 1_000_000, 3_000_000) if one < records]
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        place = Location.find(folder, Settings(), vectors=vectors or None)
        index = open_engines(place, Settings(), HashEmbedder(dimensions), "made up").index
        bar = progress.add_task("records", total=records)
        mine = [Scope(user_id=f"user of {one}") for one in SCOPES]
        todo = [*zip(mine, SCOPES, strict=True)]
        held, other = 0, 0
        for goal in [*sizes, records]:
            start, before = time.perf_counter(), held
            while held < goal:
                if not todo:
                    todo = [(Scope(user_id=f"other {other}"), OTHERS)]
                    other += 1
                scope, count = todo.pop()
                for batch in points(scope, count, dimensions):
                    index.upsert(batch)
                    held += len(batch)
                    progress.update(bar, completed=held)
            index.flush()
            rate = (held - before) / (time.perf_counter() - start)
            cells = [search(index, scope, dimensions) for scope in mine]
            used = sum(one.stat().st_blocks * 512 for one in Path(folder).rglob("*")) / 1e6
            table.add_row(
                f"{held:,}",
                *(f"{middle:.1f} / {high:.1f}" for middle, high in cells),
                f"{rate:,.0f}",
                "-" if vectors else f"{_resident():,.0f}",
                "-" if vectors else f"{used:,.0f}",
            )
        index.close()
    console.print(f"{without_secret(place.vectors) if vectors else 'embedded'}, {dimensions}-d")
    console.print(table)


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    typer.run(main)
