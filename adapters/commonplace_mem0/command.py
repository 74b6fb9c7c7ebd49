"""`commonplace import mem0`: what the command line asks for, and what it shows."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli.app import SENTENCE, EmbedderName, PlaceName
from commonplace.cli.arguments import embedder_of, opened
from commonplace.cli.output import answer, progress, say

from .importing import Imported, import_mem0
from .sources import Source

_SHOWN = 20


def command(
    place: PlaceName,
    folder: Annotated[str | None, typer.Option(help="mem0's local Qdrant folder.")] = None,
    url: Annotated[str | None, typer.Option(help="mem0's Qdrant server.")] = None,
    api_key: Annotated[str | None, typer.Option(envvar="QDRANT_API_KEY")] = None,
    collection: Annotated[str, typer.Option(help="mem0's collection_name.")] = "mem0",
    history: Annotated[str | None, typer.Option(help="mem0's history.db.")] = None,
    graph: Annotated[str | None, typer.Option(help="The Neo4j of mem0 1.x, as a URL.")] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else only tell.")] = False,
) -> None:
    """Bring the memories of a mem0 over, with their ids, times and past; cut, it goes on."""
    source = Source(
        folder=folder, url=url, api_key=api_key, collection=collection, history=history, graph=graph
    )
    with (
        _where(place, apply=apply) as where,
        opened(where, embedder_of(embedder)) as memory,
        progress() as tell,
    ):
        done = import_mem0(
            memory, source, dry_run=not apply, progress=lambda some, _: tell("memories", some)
        )
    _show(done, apply=apply)


@contextmanager
def _where(place: str, *, apply: bool) -> Iterator[str]:
    """Name the place; to tell what would come, a folder that is not there yet is not made."""
    if apply or "=" in place or Path(place).expanduser().exists():
        yield place
        return
    with tempfile.TemporaryDirectory() as empty:
        yield empty


def _show(done: Imported, *, apply: bool) -> None:
    would = "are here now" if apply else "would come, run again with --apply"
    answer(
        f"{done.added} memories of {len(done.scopes)} owners {would}; {done.known} were here, "
        f"{done.refused} cannot come, {done.ownerless} deleted ones have no owner any more."
    )
    for number, (memory_id, reason) in enumerate(done.reasons.items()):
        if number == _SHOWN:
            say(f"and {len(done.reasons) - _SHOWN} more")
            break
        say(f"{memory_id}: {reason}")
