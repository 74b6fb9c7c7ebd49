"""Writes as data, so that `Memory.write` can accept several at once: all of them or none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Any

from .checks import check_name
from .errors import InvalidRecord
from .exchange import Op
from .model import Fact, Record, Scope
from .pipeline.puts import IsSingle
from .request import addition, check_scope, operation, revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Write facts, at most 1,000; one that has a key takes the place of what the key named.

    Two facts of one key must not differ in their text.
    """

    facts: Sequence[Fact]
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a record of this very scope; an id that it lacks is passed over."""

    record_id: str
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Change a record that was read, as `Memory.update` does; what is not given stays."""

    record: Record
    text: str | None = None
    metadata: Mapping[str, Any] | None = None
    expires_at: datetime | EllipsisType | None = ...


Command = Upsert | Delete | Revise


def to_op(command: Command, *, at: datetime, is_single: IsSingle) -> Op:
    """Check a command and make its operation.

    Raises:
        InvalidRecord: something cannot be stored, or is no command.
    """
    if isinstance(command, Upsert):
        return addition(
            list(command.facts), command.scope, at=at, infer=False, is_single=is_single, upsert=True
        )[0]
    if isinstance(command, Revise):
        return revision(
            command.record,
            command.text,
            at=at,
            is_single=is_single,
            metadata=command.metadata,
            expires_at=command.expires_at,
        )
    if isinstance(command, Delete):
        check_scope(command.scope)
        check_name("record_id", command.record_id)
        return deletion(command.record_id, command.scope, at=at)
    raise InvalidRecord(field="command", value=command, reason="is no Upsert, Delete or Revise")


def deletion(
    record_id: str, scope: Scope, *, at: datetime, spare_pinned: bool = False, after: int = 0
) -> Op:
    """Make the operation that deletes a record of this very scope, of this version if known."""
    given = {"id": record_id, "at": at.isoformat(), "spare_pinned": spare_pinned}
    return operation("delete", scope, json.dumps(given), after=after)
