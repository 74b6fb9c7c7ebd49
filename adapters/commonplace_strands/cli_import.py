"""Command `commonplace import strands`; apart because it needs the packages of the command line."""

from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli import SENTENCE, EmbedderName, PlaceName, importing, progress, show_tally

from .migrate import import_sessions


def command(
    folder: Annotated[Path, typer.Argument(help="The storage_dir of a FileSessionManager.")],
    place: PlaceName,
    user: Annotated[str | None, typer.Option(help="The user whose sessions they are.")] = None,
    agent: Annotated[str | None, typer.Option(help="The agent whose sessions they are.")] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
) -> None:
    """Import the sessions of Strands' agents from a folder; run it again to go on."""
    with importing(place, embedder, dry_run=dry_run) as memory, progress() as show:
        tally = import_sessions(
            memory, folder, user_id=user, agent_id=agent, dry_run=dry_run, progress=show
        )
    show_tally(tally, dry_run=dry_run)
