"""Backup of a memory in a folder to one file, while others write to it."""

from functools import partial
from pathlib import Path

from ..errors import CannotMoveError
from ..settings import Location
from .backfill import Progress
from .database_files import DATABASE, drafted, require_memory


def backup(
    location: Location, file: Path, *, replace: bool = False, progress: Progress | None = None
) -> int:
    """Write one state of a whole memory to a file; it holds all that was accepted before.

    Put as `memory.db` into a folder of its own, the file is a memory. It appears when it is
    complete, checked and on the disk, readable for its owner only.

    Args:
        replace: replace a file that is there.

    Returns:
        The size of the file in bytes.

    Raises:
        CannotMoveError: there is no memory, it is damaged, it is not all in one folder, or there is
            such a file.
        OSError: the file cannot be written.
    """
    from ..backends.sqlite import integrity

    if {location.graph, location.vectors, location.journal} != {location.graph}:
        raise CannotMoveError(
            store=str(location),
            reason="is not all in one folder, so that no file holds all of it",
            hint="Use `commonplace copy` into an empty folder, or `commonplace export`.",
        )
    require_memory(location)
    source = Path(location.graph) / DATABASE
    if file.is_dir() or (file.exists() and (not replace or file.samefile(source))):
        hint = "Give the name of a new file."
        if file.is_file() and not file.samefile(source):
            hint = "Give the name of a new file, or --replace (replace=True) to replace this one."
        raise CannotMoveError(store=str(file), reason="is there already", hint=hint)
    with drafted(file) as draft:
        integrity.backup(source, draft, partial(progress, "backup") if progress else None)
    return file.stat().st_size
