"""Command `commonplace import agentscope`; apart, as it needs the packages of the command line."""

from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli import SENTENCE, EmbedderName, PlaceName, importing, progress, show_tally


def command(
    files: Annotated[list[Path], typer.Argument(help="Files of a JSONSession, all of one user.")],
    place: PlaceName,
    user: Annotated[str, typer.Option(help="The user whose conversations they are.")],
    agent: Annotated[str | None, typer.Option(help="The agent that answered in them.")] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
) -> None:
    """Import conversations that AgentScope 1.x has saved, where it is installed."""
    from .v1.migrate import import_sessions

    with importing(place, embedder, dry_run=dry_run) as memory, progress() as show:
        tally = import_sessions(
            memory, files, user_id=user, agent_id=agent, dry_run=dry_run, progress=show
        )
    show_tally(tally, dry_run=dry_run)
