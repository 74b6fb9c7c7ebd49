"""Command `commonplace import mem0`; apart because it needs the packages of the command line."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli import (
    SENTENCE,
    EmbedderName,
    PlaceName,
    answer,
    importing,
    progress,
    show_refused,
)

from .migrate import Mem0ImportReport, Source, import_mem0


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
    with importing(place, embedder, dry_run=not apply) as memory, progress() as show:
        found = import_mem0(memory, source, dry_run=not apply, progress=partial(show, "memories"))
    if report is not None:
        refused = {"refused": found.by_reason(), "ownerless": list(found.ownerless)}
        report.write_text(json.dumps(refused, ensure_ascii=False, indent=1), "utf-8")
    _print(found, apply=apply)


def _print(report: Mem0ImportReport, *, apply: bool) -> None:
    outcome = "are here now" if apply else "would come, run again with --apply"
    answer(
        f"{report.added} memories of {len(report.scopes)} owners {outcome}; {report.known} were "
        f"here, {report.refused} cannot come, {len(report.ownerless)} deleted ones have no owner "
        "any more."
    )
    show_refused(report.by_reason())
