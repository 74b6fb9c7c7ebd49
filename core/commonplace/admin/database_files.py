"""Files of a memory and beside it: whether they are there, and how new ones appear."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import CannotMoveError
from ..ports.stores import crash_point
from ..settings import Location, is_url

DATABASE = "memory.db"
_OF_A_MEMORY = re.compile(r"(memory|journal|vectors(-\d+)?)\.db(-wal|-shm)?")


def require_memory(location: Location) -> None:
    """Check that there is a memory, before it is opened to be read: opening makes what is missing.

    Only folders are looked into; a server answers for itself.

    Raises:
        CannotMoveError: a folder of the location holds no memory.
    """
    if not is_url(location.vectors) and location.vectors != location.graph:
        folder = Path(location.vectors)
        if not any(folder.glob("vectors*.db")):
            raise CannotMoveError(
                store=location.vectors,
                reason="has no vectors (no vectors.db)",
                hint="Give the folder of an index, or none where it is that of the graph store.",
            )
    if is_url(location.graph):
        return
    file = Path(location.graph) / DATABASE
    if not file.is_file():
        raise CannotMoveError(
            store=location.graph,
            reason=f"has no memory (no {DATABASE})",
            hint="Give the folder of a memory.",
        )
    if not file.stat().st_size:
        raise CannotMoveError(
            store=str(file),
            reason="is empty: somebody has emptied it",
            hint="Put a backup in its place.",
        )


def database_files(location: Location) -> list[Path]:
    """List the SQLite files of a location that are there, the one with the records first."""
    places = (
        (location.graph, DATABASE),
        (location.journal, "journal.db"),
        (location.vectors, "vectors*.db"),  # each generation of an index has its own
    )
    return [
        file
        for folder, name in places
        if not is_url(folder)
        for file in sorted(Path(folder).glob(name))
        if file.is_file()
    ]


@contextlib.contextmanager
def drafted(file: Path) -> Iterator[Path]:
    """Provide a file that gets its name `file` at the end, when all of it is on the disk.

    It is readable for its owner only. One of an earlier attempt is replaced.

    Raises:
        CannotMoveError: there is a folder of that name, or no folder for it, or the file is a part
            of a memory.
    """
    if file.exists() and _OF_A_MEMORY.fullmatch(file.name):
        raise CannotMoveError(
            store=str(file),
            reason="is a file of a memory, and is not replaced",
            hint="Give the name of a new file.",
        )
    if file.is_dir():
        raise CannotMoveError(
            store=str(file), reason="is a folder", hint="Give the name of a file."
        )
    if not file.parent.is_dir():
        raise CannotMoveError(
            store=str(file),
            reason=f"cannot be written, as there is no folder {str(file.parent)!r}",
            hint="Make the folder first, or give another one.",
        )
    draft = file.with_name(f"{file.name}.part")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    try:
        yield draft
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync(draft)
    crash_point("before_rename")
    draft.replace(file)
    crash_point("after_rename")
    if os.name != "nt":  # folders cannot be opened there
        _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
