"""Shared parts of the importers of adapters: the memory they import into, and their report."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..admin import ImportTally
from .arguments import opened
from .output import answer, say, table

if TYPE_CHECKING:
    from ..memory import Memory

_MAX_IDS = 5


@contextlib.contextmanager
def importing(place: str, embedder: str, *, dry_run: bool) -> Iterator["Memory"]:
    """Open a memory to import into; a dry run does not make a folder that is not there yet."""
    with contextlib.ExitStack() as stack:
        if dry_run and "=" not in place and not Path(place).expanduser().exists():
            place = stack.enter_context(tempfile.TemporaryDirectory())
        yield stack.enter_context(opened(place, embedder))


def show_tally(tally: ImportTally, *, dry_run: bool) -> None:
    """Print what became of each kind of thing as a table, and why some were refused."""
    taken = "would be taken" if dry_run else "taken"
    rows: list[Sequence[str]] = []
    for kind in tally.kinds:
        counts = (tally.taken[kind], tally.known[kind], tally.refused(kind))
        rows.append((*map(str, counts), kind))
    if not rows:
        answer("There is nothing to import.")
        return
    table((taken, "here already", "refused", "what"), rows)
    for reasons in tally.reasons.values():
        show_refused(reasons)


def show_refused(reasons: dict[str, list[str]]) -> None:
    """Print each reason with how many were refused for it, and the first ids."""
    for reason, ids in reasons.items():
        shown = ", ".join(ids[:_MAX_IDS]) + (", …" if len(ids) > _MAX_IDS else "")
        say(f"{len(ids)} × {reason}: {shown}")
