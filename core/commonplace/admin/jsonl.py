"""Export of a memory, or of one user in it, to a file of JSON lines, and its restoration.

The first line names the format. The last one has the number of rows by table, and the SHA-256 of
all bytes before it, so that a file that was cut or changed is noticed before any of it is stored.
"""

import contextlib
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec

from ..blocking_session import SESSION_STATES, state_values
from ..errors import CannotMoveError, InvalidRecordError
from ..memory import Memory
from ..ports.engines import GraphStore
from ..ports.snapshot_rows import (
    EntityRow,
    FenceRow,
    RecordRow,
    RelationRow,
    SessionRow,
    SnapshotRow,
)
from ..types import Scope
from .backfill import BATCH, Progress, count_records, is_indexed, reported
from .copy import CopyReport, SnapshotDigest, copy_rows, digest, finish_writes, read_states
from .database_files import drafted
from .serialization import TABLES, StateRow, from_line, table_of, to_line

FORMAT = 4
_WAY_OUT = "Export it again, or take another copy of the file. Nothing was stored."


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    commonplace: int


class _Totals(msgspec.Struct, forbid_unknown_fields=True):
    rows: dict[str, int]
    sha256: str


class _End(msgspec.Struct, forbid_unknown_fields=True):
    end: _Totals


_HEADER = msgspec.json.encode(_Header(FORMAT)) + b"\n"


def export(
    memory: Memory, file: Path, *, user: str | None = None, progress: Progress | None = None
) -> int:
    """Write all rows of a memory to a file; equal memories give equal files.

    The states of sessions stand last; vectors and checkpoints of runs are left out. The file
    appears when it is complete, readable for its owner only.

    Args:
        user: the id of the user whose rows alone are written, without the marks of erasures; None
            for those of everybody.

    Returns:
        The number of rows.

    Raises:
        CannotMoveError: writes are not finished.
    """
    finish_writes(memory)
    graph = memory._runtime.engines.graph
    counts, sha = dict.fromkeys(TABLES, 0), hashlib.sha256(_HEADER)
    total = count_records(graph) if progress and user is None else None
    rows = graph.dump() if user is None else _rows_of(graph, user)
    with drafted(file) as draft, draft.open("wb") as lines:
        lines.write(_HEADER)
        found = reported(rows, progress, "export", total, is_indexed)
        for row in itertools.chain(found, _states_of(memory, user)):
            line = f"{to_line(row)}\n".encode()
            lines.write(line)
            sha.update(line)
            _count(counts, row)
        end = _End(_Totals(rows=counts, sha256=sha.hexdigest()))
        lines.write(msgspec.json.encode(end) + b"\n")
    return sum(counts.values())


def _rows_of(graph: GraphStore, user: str) -> Iterator[SnapshotRow]:
    """Read the rows of a user, whose partition others may share."""
    partition = Scope(user_id=user).partition
    for row in graph.dump(partition):
        if row.partition > partition:
            return
        if not isinstance(row, FenceRow) and _owner_of(row).user_id == user:
            yield row


def _states_of(memory: Memory, user: str | None = None) -> Iterator[StateRow]:
    """Read the states of the sessions of a user, or of everybody."""
    for state in read_states(memory._runtime.engines.checkpoints, SESSION_STATES):
        scope, values = state.owner, state_values(state)
        if scope and values and user in (None, scope.user_id):
            yield StateRow(scope=scope, values=values)


def _count(counts: dict[str, int], row: SnapshotRow | StateRow) -> None:
    # Without states there is no count of them, as in the files of former releases.
    table = table_of(row)
    counts[table] = counts.get(table, 0) + 1


def _owner_of(row: SessionRow | EntityRow | RelationRow | RecordRow) -> Scope:
    if isinstance(row, RecordRow):
        return row.record.scope
    return row.scope if isinstance(row, SessionRow) else row.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFile:
    """A file that `export` wrote, complete and unchanged.

    Attributes:
        rows: by table.
        records: of the rows, the records that the index should have.
        sha256: of all but its last line; equal exports have the same.
    """

    path: Path
    rows: Mapping[str, int]
    records: int
    sha256: str

    @classmethod
    def check(cls, path: Path, *, progress: Progress | None = None) -> Self:
        """Read a file once, line by line, and check all of it.

        Raises:
            InvalidRecordError: the file is no export, or one of another format; it is cut short or
                was changed; or it is none that can be read again, such as a pipe.
            CannotMoveError: there is no such file.
            OSError: it cannot be read.
        """
        if str(path) == "-" or (path.exists() and not path.is_file()):
            hint = "Save what it gives to a file, and give that."
            raise _invalid(path, "must be a file on a disk, which is read more than once", hint)
        if not path.exists():
            hint = "Give a file that `commonplace export` wrote."
            raise CannotMoveError(store=str(path), reason="is not there", hint=hint)
        with path.open("rb") as content:
            _check_header(path, content.readline(len(_HEADER) + 64))
            return cls._check(path, content, progress)

    @classmethod
    def _check(cls, path: Path, lines: Iterator[bytes], progress: Progress | None) -> Self:
        counts, sha = dict.fromkeys(TABLES, 0), hashlib.sha256(_HEADER)
        size, done, records = path.stat().st_size, 0, 0
        broken: InvalidRecordError | None = None
        line = next(lines, b"")
        for number, following in enumerate(lines, start=1):
            sha.update(line)
            done += len(line)
            try:
                row = from_line(line)
                _count(counts, row)
                records += is_indexed(row)
            except InvalidRecordError as error:
                broken = broken or error
            if progress and number % BATCH == 0:
                progress("verify", done, size)
            line = following
        if progress:
            progress("verify", size, size)
        totals = _end_of(path, line)
        if totals.sha256 != sha.hexdigest():
            reason = "was damaged or changed after it was written: its checksum differs"
            if totals.rows != counts:
                found, told = sum(counts.values()), sum(totals.rows.values())
                reason = f"has {found} readable rows, and its last line tells of {told}"
            raise _invalid(path, reason, _WAY_OUT)
        if broken:
            raise broken
        if totals.rows != counts:
            raise _invalid(path, "has other rows than its last line tells of", _WAY_OUT)
        return cls(path=path, rows=counts, records=records, sha256=totals.sha256)

    def read(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read the rows from a partition on, and those that belong to none."""
        for row in self._read():
            if not isinstance(row, StateRow) and (not row.partition or row.partition >= since):
                yield row

    def read_states(self) -> Iterator[StateRow]:
        """Read the states of sessions."""
        return (row for row in self._read() if isinstance(row, StateRow))

    def _read(self) -> Iterator[SnapshotRow | StateRow]:
        with self.path.open("rb") as lines:
            yield from map(from_line, itertools.islice(lines, 1, 1 + sum(self.rows.values())))


def restore(
    file: Path | ExportFile, target: Memory, *, progress: Progress | None = None
) -> CopyReport:
    """Read what `export` wrote into an empty location, or go on with such a restoration.

    Args:
        file: a path is checked first.

    Raises:
        CannotMoveError: the target holds something else.
        InvalidRecordError: as `ExportFile.check`; nothing is stored.
    """
    checked = file if isinstance(file, ExportFile) else ExportFile.check(file, progress=progress)
    report = copy_rows(
        f"the file {checked.sha256}",
        checked.read,
        target,
        total=checked.records,
        progress=progress,
    )
    for state in checked.read_states():
        target.session(state.scope).put_state(state.values)
    return replace(
        report,
        source=_with_states(report.source, checked.read_states()),
        target=_with_states(report.target, _states_of(target)),
    )


def _with_states(rows: SnapshotDigest, states: Iterator[StateRow]) -> SnapshotDigest:
    found = digest(states, ["state"])
    return SnapshotDigest(
        counts={**rows.counts, **found.counts}, hashes={**rows.hashes, **found.hashes}
    )


def _check_header(path: Path, line: bytes) -> None:
    if line == _HEADER:
        return
    stored = None
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        stored = msgspec.json.decode(line, type=_Header).commonplace
    if stored not in (None, FORMAT):
        reason = f"has format {stored}, and this version reads format {FORMAT}"
        hint = "Export the memory again with this version, or read the file with the one it is of."
        raise _invalid(path, reason, hint)
    raise _invalid(path, "must be an export", "Give a file that `commonplace export` wrote.")


def _end_of(path: Path, line: bytes) -> _Totals:
    """Decode the last line."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        if line.endswith(b"\n"):
            return msgspec.json.decode(line, type=_End).end
    reason = "is cut short or damaged: its last line, with the number of rows, is missing"
    raise _invalid(path, reason, _WAY_OUT)


def _invalid(path: Path, reason: str, hint: str) -> InvalidRecordError:
    return InvalidRecordError(field="file", value=str(path), reason=reason, hint=hint)
