"""Export of a whole memory to a file of JSON lines, and its restoration."""

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from ..errors import InvalidRecordError
from ..memory import Memory
from ..ports.snapshot import SnapshotRow
from .backfill import Progress
from .copy import BATCH, CopyReport, copy_rows, finish_writes
from .serialization import from_line, to_line

HEADER = '{"commonplace":1}'


def export(memory: Memory, file: Path, *, progress: Progress | None = None) -> int:
    """Write all rows of a memory to a file; equal memories give equal files.

    Vectors are left out. The file appears when it is complete, readable for its owner only.

    Returns:
        The number of rows.

    Raises:
        CannotMoveError: writes are not finished.
    """
    finish_writes(memory)
    done = 0
    draft = file.with_name(f"{file.name}.part")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    with draft.open("w", encoding="utf-8", newline="\n") as lines:
        lines.write(f"{HEADER}\n")
        for row in memory._runtime.engines.graph.dump():
            lines.write(f"{to_line(row)}\n")
            done += 1
            if progress and done % BATCH == 0:
                progress("export", done)
    draft.replace(file)
    return done


def restore(file: Path, target: Memory, *, progress: Progress | None = None) -> CopyReport:
    """Read what `export` wrote into an empty location, or go on with such a restoration.

    Raises:
        CannotMoveError: the target holds something else.
        InvalidRecordError: the file is not an export.
    """
    with file.open(encoding="utf-8") as lines:
        if next(lines, "").rstrip("\n") != HEADER:
            hint = "Give a file that `commonplace export` wrote."
            raise InvalidRecordError(
                field="file", value=str(file), reason="must be an export", hint=hint
            )

    def read(since: str = "") -> Iterator[SnapshotRow]:
        with file.open(encoding="utf-8") as lines:
            for line in itertools.islice(lines, 1, None):
                row = from_line(line)
                if not row.partition or row.partition >= since:
                    yield row

    with file.open("rb") as content:
        name = hashlib.file_digest(content, "sha256").hexdigest()
    return copy_rows(f"the file {name}", read, target, progress=progress)
