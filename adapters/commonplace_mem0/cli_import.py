"""Command `commonplace import mem0`; apart because it needs the packages of the command line."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli import (
    SENTENCE,
    EmbedderName,
    PlaceName,
    answer,
    embedder_of,
    opened,
    progress,
    say,
)

from .migrate import Mem0ImportReport, Source, import_mem0

_MAX_IDS = 5


def command(
    place: PlaceName,
    folder: Annotated[str | None, typer.Option(help="mem0's local Qdrant folder.")] = None,
    url: Annotated[str | None, typer.Option(help="mem0's Qdrant server.")] = None,
    api_key: Annotated[str | None, typer.Option(envvar="QDRANT_API_KEY")] = None,
    collection: Annotated[str, typer.Option(help="mem0's collection_name.")] = "mem0",
    history: Annotated[str | None, typer.Option(help="mem0's history.db.")] = None,
    graph: Annotated[str | None, typer.Option(help="The Neo4j of mem0 1.x, as a URL.")] = None,
    embedder: EmbedderName = SENTENCE,
    report: Annotated[
        Path | None, typer.Option(help="Write what cannot be imported to this file, by reason.")
    ] = None,
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Import; without it, only report.")
    ] = False,
) -> None:
    """Import the memories of a mem0, with their ids, times and history; safe to run again."""
    source = Source(
        folder=folder, url=url, api_key=api_key, collection=collection, history=history, graph=graph
    )
    with (
        _location(place, apply=apply) as location,
        opened(location, embedder_of(embedder)) as memory,
        progress() as show,
    ):
        found = import_mem0(memory, source, dry_run=not apply, progress=partial(show, "memories"))
    if report is not None:
        refused = {"refused": found.by_reason(), "ownerless": list(found.ownerless)}
        report.write_text(json.dumps(refused, ensure_ascii=False, indent=1), "utf-8")
    _print(found, apply=apply)


@contextmanager
def _location(place: str, *, apply: bool) -> Iterator[str]:
    """Name the location; a dry run does not make a folder that is not there yet."""
    if apply or "=" in place or Path(place).expanduser().exists():
        yield place
        return
    with tempfile.TemporaryDirectory() as empty:
        yield empty


def _print(report: Mem0ImportReport, *, apply: bool) -> None:
    outcome = "are here now" if apply else "would come, run again with --apply"
    answer(
        f"{report.added} memories of {len(report.scopes)} owners {outcome}; {report.known} were "
        f"here, {report.refused} cannot come, {len(report.ownerless)} deleted ones have no owner "
        "any more."
    )
    for reason, ids in report.by_reason().items():
        shown = ", ".join(ids[:_MAX_IDS]) + (", …" if len(ids) > _MAX_IDS else "")
        say(f"{len(ids)} × {reason}: {shown}")
