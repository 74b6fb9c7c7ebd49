"""How long does a move take? Embedded to embedded, and to servers and back where they are named.

    python benchmarks/moving.py [--records 10000] [--graph URL --vectors URL]

Every copy is complete or the run fails: the exports of all places are equal byte for byte.
"""

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from commonplace import Fact, Memory, Relation, Scope, admin
from commonplace.testing.fakes import HashEmbedder

OWNERS = 20


def fill(memory: Memory, records: int) -> None:
    for number in range(OWNERS):
        scope = Scope(user_id=f"user {number}")
        for start in range(0, records // OWNERS, 100):
            facts = [
                Fact(
                    text=f"{scope.user_id} noted thing number {n}",
                    relations=(
                        Relation(subject=f"Ann {n % 50}", predicate="likes", object=f"thing {n}"),
                    )
                    * (n % 4 == 0),
                )
                for n in range(start, start + 100)
            ]
            memory.add(facts, scope)


def main(
    records: Annotated[int, typer.Option()] = 10_000,
    graph: Annotated[str, typer.Option(help="An empty graph store on a server.")] = "",
    vectors: Annotated[str, typer.Option(help="An index on a server that is not there yet.")] = "",
) -> None:
    table = Table("what", "seconds", "records/s", title=f"{records} records, {OWNERS} owners")

    def timed(name: str, call: Callable[..., Any], *args: Any) -> None:
        began = time.perf_counter()
        answer = call(*args)
        seconds = time.perf_counter() - began
        table.add_row(name, f"{seconds:.1f}", f"{records / seconds:.0f}")
        if isinstance(answer, admin.CopyReport) and not answer.complete:
            raise SystemExit(f"{name} is not complete")

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        places = {"first": {"path": str(home / "first")}}
        if graph:
            places["servers"] = {
                "graph": graph,
                "vectors": vectors,
                "journal": str(home / "journal"),
            }
        places["last"] = {"path": str(home / "last")}
        with Memory.open(**places["first"], embedder=HashEmbedder()) as memory:
            timed("write", fill, memory, records)
        names = list(places)
        for source, target in itertools.pairwise(names):
            with (
                Memory.open(**places[source], embedder=HashEmbedder()) as one,
                Memory.open(**places[target], embedder=HashEmbedder()) as other,
            ):
                timed(f"copy {source} to {target}", admin.copy, one, other)
        for name, place in places.items():
            with Memory.open(**place, embedder=HashEmbedder()) as memory:
                timed(f"export {name}", admin.export, memory, home / f"{name}.jsonl")
                timed(f"doctor {name}", admin.examine, memory)
        exports = {(home / f"{name}.jsonl").read_bytes() for name in places}
        if len(exports) != 1:
            raise SystemExit("the exports differ")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
