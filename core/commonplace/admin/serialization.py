"""Rows of a graph store's snapshot, and states of sessions, as lines of JSON, exactly."""

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from ..errors import InvalidRecordError
from ..ingest.changes import to_plain
from ..ports.snapshot_rows import (
    EntityRow,
    FenceRow,
    RecordRow,
    RelationRow,
    SessionRow,
    SnapshotRow,
)
from ..types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """The state of a session, as `Session.put_state` left it; of an export alone."""

    scope: Scope
    values: dict[str, Any]


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One row, under the name of its table."""

    fence: FenceRow | None = None
    session: SessionRow | None = None
    entity: EntityRow | None = None
    relation: RelationRow | None = None
    record: RecordRow | None = None
    state: StateRow | None = None


TABLES = _Line.__struct_fields__[:-1]  # of a graph store
_encoder = msgspec.json.Encoder(enc_hook=to_plain)
_decoder = msgspec.json.Decoder(_Line)


def table_of(row: SnapshotRow | StateRow) -> str:
    """Name the table that a row belongs to, one of `TABLES` or `state`."""
    return type(row).__name__.removesuffix("Row").lower()


def to_line(row: SnapshotRow | StateRow) -> str:
    """Encode a row as JSON on one line; equal rows give equal lines."""
    return _encoder.encode({table_of(row): row}).decode()


def from_line(line: str | bytes) -> SnapshotRow | StateRow:
    """Decode what `to_line` encoded.

    Raises:
        InvalidRecordError: it is not such a line.
    """
    reason = "must be a line of an export"
    hint = "Give a file that `commonplace export` wrote."
    try:
        decoded = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRecordError(
            field="line", value=line, reason=f"{reason} ({error})", hint=hint
        ) from error
    rows = [row for name in _Line.__struct_fields__ if (row := getattr(decoded, name))]
    if len(rows) != 1:
        raise InvalidRecordError(field="line", value=line, reason=reason, hint=hint)
    return cast("SnapshotRow | StateRow", rows[0])
