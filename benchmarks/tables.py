"""Tables of a benchmark as JSON, for the page that `report.py` makes of them.

A script that prints tables can also save them: their texts, cell by cell, so that the page says
what the script said.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

import typer
from rich.table import Table
from rich.text import Text

TablesFile = Annotated[Path | None, typer.Option("--tables", help="Also write the tables there.")]


class Saved(TypedDict):
    """A table: its title, its names of columns, its rows from the top, and what is said below."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    caption: str


def saved(table: Table) -> Saved:
    """Read the texts of a table; lines are joined by spaces."""
    cells = [[_plain(cell) for cell in column.cells] for column in table.columns]
    return Saved(
        title=_plain(table.title),
        columns=[_plain(column.header) for column in table.columns],
        rows=[list(row) for row in zip(*cells, strict=True)],
        caption=_plain(table.caption),
    )


def save(file: Path | None, tables: Sequence[Table]) -> None:
    """Write tables; without a file nothing."""
    if file is not None:
        found = [saved(table) for table in tables]
        file.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")


def _plain(given: object) -> str:
    text = given.plain if isinstance(given, Text) else str(given or "")
    return " ".join(text.split())
