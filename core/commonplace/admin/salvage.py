"""Salvage of a damaged memory: all that can be read of it, in a new folder."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import CannotMoveError
from .backfill import Progress
from .database_files import DATABASE, drafted


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
def _made(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, which goes again if nothing comes into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # it has something else in it
            folder.rmdir()
        raise
