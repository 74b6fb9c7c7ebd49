"""Are standing instructions told from ordinary sentences? Precision and recall of their forms.

    python benchmarks/instructions.py [--misses]

The sentences are in `instructions.toml`. A figure on those that were written with the patterns at
hand flatters them; the ones kept apart say what to expect.
"""

import tomllib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from commonplace.agents import find_instructions


def main(
    *, misses: Annotated[bool, typer.Option(help="Print the sentences that went wrong.")] = False
) -> None:
    """Print precision and recall of each set."""
    sets = tomllib.loads(Path(__file__).with_name("instructions.toml").read_text(encoding="utf-8"))
    table = Table(title="standing instructions")
    for name in ("language", "sentences", "precision", "recall", "standing", "ordinary"):
        table.add_column(name)
    wrong: list[str] = []
    for language, parts in sets.items():
        for part, texts in parts.items():
            missed = [one for one in texts["standing"] if not find_instructions(one)]
            taken = [one for one in texts["ordinary"] if find_instructions(one)]
            found = len(texts["standing"]) - len(missed)
            table.add_row(
                language,
                part,
                f"{found / max(1, found + len(taken)):.3f}",
                f"{found / len(texts['standing']):.3f}",
                str(len(texts["standing"])),
                str(len(texts["ordinary"])),
            )
            wrong += [f"missed: {one}" for one in missed] + [f"taken: {one}" for one in taken]
    Console().print(table)
    if misses:
        Console().print("\n".join(wrong))


if __name__ == "__main__":
    typer.run(main)
