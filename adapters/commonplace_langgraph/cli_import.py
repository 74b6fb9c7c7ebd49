"""Command `commonplace import langgraph`; apart, as it needs the packages of the command line."""

import os
from typing import Annotated

import typer
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from commonplace.cli import (
    SENTENCE,
    EmbedderName,
    PlaceName,
    importing,
    progress,
    show_tally,
)

from .migrate import PLAIN, import_langgraph


def command(
    source: Annotated[
        str, typer.Argument(help="A file of SqliteSaver or SqliteStore, or postgresql://….")
    ],
    place: PlaceName,
    owner: Annotated[
        str | None,
        typer.Option(help="Key of the metadata that names a thread's user, such as user_id."),
    ] = None,
    template: Annotated[
        str, typer.Option(help="Labels of the namespaces that are a user's memory; empty for none.")
    ] = "memories/{user_id}",
    embedder: EmbedderName = SENTENCE,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
) -> None:
    """Import LangGraph's checkpoints, pending writes and items; run it again to go on.

    Encrypted checkpoints are read and written with the key in LANGGRAPH_AES_KEY.
    """
    is_encrypted = bool(os.environ.get("LANGGRAPH_AES_KEY"))
    serde = EncryptedSerializer.from_pycryptodome_aes(serde=PLAIN) if is_encrypted else PLAIN
    with importing(place, embedder, dry_run=dry_run) as memory, progress() as show:
        tally = import_langgraph(
            memory,
            source,
            owner=owner,
            template=template.split("/") if template else None,
            serde=serde,
            dry_run=dry_run,
            progress=show,
        )
    show_tally(tally, dry_run=dry_run)
