"""A whole memory written to a file of lines, and read from it."""

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from ..errors import InvalidRecordError
from ..memory import Memory
from ..ports.snapshot import SnapshotRow
from .backfill import Progress
from .copy import BATCH, Copied, settle, take_over
from .serialization import from_line, to_line

HEADER = '{"commonplace":1}'


def export(memory: Memory, file: Path, *, progress: Progress | None = None) -> int:
    """Write all that a memory keeps to a file of lines; equal memories give equal files.

    Vectors are not among it. The file appears when it is complete, for its owner alone.

    Returns:
        The number of pieces.

    Raises:
        CannotMoveError: writes are not finished.
    """
    settle(memory)
    done = 0
    draft = file.with_name(f"{file.name}.part")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    with draft.open("w", encoding="utf-8", newline="\n") as lines:
        lines.write(f"{HEADER}\n")
        for one in memory._runtime.engines.graph.dump():  # noqa: SLF001 -- the operator's way in
            lines.write(f"{to_line(one)}\n")
            done += 1
            if progress and done % BATCH == 0:
                progress("export", done)
    draft.replace(file)
    return done


def restore(file: Path, target: Memory, *, progress: Progress | None = None) -> Copied:
    """Read what `export` wrote into an empty place, or go on with what was cut.

    Raises:
        CannotMoveError: the target holds something else.
        InvalidRecordError: a line is of no export.
    """
    with file.open(encoding="utf-8") as lines:
        if next(lines, "").rstrip("\n") != HEADER:
            hint = "Give a file that `commonplace export` wrote."
            raise InvalidRecordError(
                field="file", value=str(file), reason="is no export", hint=hint
            )

    def read(since: str = "") -> Iterator[SnapshotRow]:
        with file.open(encoding="utf-8") as lines:
            for line in itertools.islice(lines, 1, None):
                one = from_line(line)
                if not one.partition or one.partition >= since:
                    yield one

    with file.open("rb") as whole:
        name = hashlib.file_digest(whole, "sha256").hexdigest()
    return take_over(f"the file {name}", read, target, progress=progress)
