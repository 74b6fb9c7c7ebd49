"""Files of a memory: whether they are there, their backup and salvage, and how new ones appear."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import CannotMoveError
from ..ports.stores import crash_point
from ..settings import Location, is_url
from .backfill import Progress

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SalvageReport:
    """What a salvage brought.

    Attributes:
        read: rows in the new memory, by table.
        lost: rows that are not, by table, as far as they can be counted; tables without a loss are
            left out. A table whose loss cannot be counted has 0.
    """

    read: Mapping[str, int]
    lost: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Nothing was lost."""
        return not self.lost


def salvage(source: Path, target: Path, *, progress: Progress | None = None) -> SalvageReport:
    """Bring what can be read of a damaged memory into a new folder; the source stays as it is.

    Afterwards `examine` the new memory: `reindex` it if its index lacks what was lost.

    Args:
        source: a `memory.db`, or a folder with one.
        target: a folder without a memory, made if missing.

    Raises:
        CannotMoveError: there is no such file, nothing can be read of it, or the target has a
            memory.
        SchemaMismatchError: another version of this library wrote the file.
        OSError: the target cannot be written.
    """
    from ..backends.sqlite import salvage as sqlite

    file = source / DATABASE if source.is_dir() else source
    if not file.is_file():
        reason = "has no memory (no memory.db)" if source.is_dir() else "is not there"
        hint = "Give the damaged file, or its folder."
        raise CannotMoveError(store=str(source), reason=reason, hint=hint)
    if not file.stat().st_size:
        hint = "Put a backup in its place."
        raise CannotMoveError(store=str(file), reason="is empty", hint=hint)
    if (target / DATABASE).exists():
        hint = "Give a new folder."
        raise CannotMoveError(store=str(target), reason="has a memory already", hint=hint)
    with _made(target), drafted(target / DATABASE) as draft:
        draft.unlink()  # which the engine makes
        try:
            tables = sqlite.salvage(file, draft, progress)
        finally:
            draft.with_name(f"{draft.name}.lock").unlink(missing_ok=True)
    return SalvageReport(
        read={table.table: table.read for table in tables},
        lost={table.table: table.lost for table in tables if not table.complete},
    )


@contextlib.contextmanager
def drafted(file: Path) -> Iterator[Path]:
    """Provide a file that gets its name `file` at the end, when all of it is on the disk.

    It is readable for its owner only. One of an earlier attempt is replaced.

    Raises:
        CannotMoveError: there is a folder of that name, or no folder for it, or the file is a part
            of a memory.
    """
    wrong = partial(CannotMoveError, store=str(file))
    if file.exists() and _OF_A_MEMORY.fullmatch(file.name):
        hint = "Give the name of a new file."
        raise wrong(reason="is a file of a memory, and is not replaced", hint=hint)
    if file.is_dir():
        raise wrong(reason="is a folder", hint="Give the name of a file.")
    if not file.parent.is_dir():
        reason = f"cannot be written, as there is no folder {str(file.parent)!r}"
        raise wrong(reason=reason, hint="Make the folder first, or give another one.")
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


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, which goes again if nothing comes into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # it has something else in it
            folder.rmdir()
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
