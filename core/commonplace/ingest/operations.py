"""What a caller asks, checked before anything is stored or searched.

MERGED FROM commonplace.commands: Writes as data, so that `Memory.write` can accept several at once: all of them or none."""

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import EllipsisType
from typing import Any

from ..errors import InvalidRecordError
from ..filters import Filter, parse_filter
from ..model import KINDS, ORIGINS, Fact, Kind, Message, Origin, Record, Relation, Scope
from ..options import Extraction
from ..ports.stores import Operation, OperationKind, Put
from ..validation import (
    check_choice,
    check_metadata,
    check_name,
    check_share,
    check_text,
    check_time,
)
from .changes import IsSingle, dated, fact_put, message_put
from .planning import body

Content = str | Message | Fact
MAX_ITEMS = 1_000
MAX_TOP_K = 1_000
MAX_QUESTION_BYTES = 8 * 1024
# What a `Fact` says of a record; the rest of it stays when another takes its place.
_STATED = (
    "text", "metadata", "origin", "trust", "occurred_at", "expires_at", "importance", "pinned",
    "situation", "outcome", "indexed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A checked search."""

    text: str
    scope: Scope
    top_k: int
    threshold: float
    where: Filter | None
    kinds: tuple[Kind, ...]
    latest_only: bool
    as_of: datetime | None
    decay: bool | None
    hidden: bool


def question(
    text: str,
    scope: Scope,
    *,
    top_k: int = 10,
    threshold: float | None = None,
    where: Mapping[str, Any] | None = None,
    judge: Callable[[Record], bool] | None = None,
    kinds: Sequence[Kind] = (),
    latest_only: bool = True,
    as_of: datetime | None = None,
    decay: bool | None = None,
    hidden: bool = False,
) -> Question:
    """Check a search.

    Raises:
        InvalidRecordError: an argument is out of its range, or the text is empty or above 8 KiB.
        InvalidFilterError: the filter is not in the language.
    """
    check_scope(scope)
    check_text(text)
    if len(text.encode()) > MAX_QUESTION_BYTES:
        raise InvalidRecordError(
            field="text", value=text, reason=f"exceeds {MAX_QUESTION_BYTES} bytes"
        )
    if type(top_k) is not int or not 1 <= top_k <= MAX_TOP_K:
        raise InvalidRecordError(field="top_k", value=top_k, reason=f"is not in 1..{MAX_TOP_K}")
    low = 0.0 if threshold is None else threshold
    check_share("threshold", low)
    check_time("as_of", as_of)
    check_kinds(kinds)
    return Question(
        text=text,
        scope=scope,
        top_k=top_k,
        threshold=low,
        where=parse_filter(where, judge),
        kinds=tuple(kinds),
        latest_only=bool(latest_only) and not hidden,
        as_of=as_of,
        decay=decay,
        hidden=bool(hidden),
    )


def addition(
    content: Content | Sequence[Content],
    scope: Scope,
    *,
    at: datetime,
    infer: bool | Extraction,
    is_single: IsSingle,
    kind: Kind = "fact",
    metadata: Mapping[str, Any] | None = None,
    key: str | None = None,
    upsert: bool = False,
    origin: Origin = "user",
) -> tuple[Operation, list[tuple[str, Record]]]:
    """Check an addition; make its operation, and name the records that have keys.

    Raises:
        InvalidRecordError: something cannot be stored.
    """
    check_scope(scope)
    if isinstance(content, str | Message | Fact) or not isinstance(content, Sequence):
        items: list[Content] = [content]
    else:
        items = list(content)
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InvalidRecordError(
            field="content", value=len(items), reason=f"is not 1 to {MAX_ITEMS} things to remember"
        )
    if key is not None and (len(items) > 1 or not isinstance(items[0], str)):
        raise InvalidRecordError(
            field="key", value=key, reason="needs a single text",
            hint="A Fact has its own key, a Message its own id.",
        )  # fmt: skip
    if metadata is not None:
        check_metadata(metadata)
    check_choice("origin", origin, ORIGINS)
    check_choice("upsert", upsert, (True, False))
    how = infer if isinstance(infer, Extraction) else None
    puts = []
    keyed = []
    for item in _kept(items, how):
        if isinstance(item, str):
            item = Fact(text=item, kind=kind, key=key)  # noqa: PLW2901 -- the same thing, stated
        if isinstance(item, Fact):
            put = fact_put(item, scope, at=at, origin=origin, is_single=is_single)
            if item.key is not None:
                keyed.append((item.key, put.record))
                given = {"replace": True, "upsert": True, "fields": _STATED} if upsert else {}
                put = replace(put, **given)  # type: ignore[arg-type]  # as written above
        elif isinstance(item, Message):
            put = message_put(item, scope, at=at, origin=origin)
        else:
            raise InvalidRecordError(
                field="content", value=item, reason="is no text, Message or Fact"
            )
        if metadata and not put.record.metadata:
            put = replace(put, record=replace(put.record, metadata=dict(metadata)))
        puts.append(put)
    spoken = [item for item in items if isinstance(item, Message)] if infer else []
    accepted = body(puts, at=at, origin=origin, extract=spoken, how=how)
    return operation("add", scope, accepted), keyed


def _kept(items: Sequence[Content], how: Extraction | None) -> Sequence[Content]:
    if how is None or how.keep_messages:
        return items
    return [item for item in items if not isinstance(item, Message)]


def revision(
    record: Record,
    text: str | None,
    *,
    at: datetime,
    is_single: IsSingle,
    votes: int = 0,
    metadata: Mapping[str, Any] | None = None,
    merge: bool = False,
    relations: Sequence[Relation] | None = None,
    importance: float | None = None,
    pinned: bool | None = None,
    expires_at: datetime | EllipsisType | None = ...,
) -> Operation:
    """Check an update of a stored or pending record and make its operation."""
    given: dict[str, Any] = {"text": text, "metadata": metadata}
    given |= {"importance": importance, "pinned": pinned}
    given = {name: value for name, value in given.items() if value is not None}
    given |= {} if expires_at is ... else {"expires_at": expires_at}
    said = Fact(**{"text": record.text, **given}, relations=() if relations is None else relations)  # type: ignore[arg-type]  # Fact checks it
    if merge and metadata is not None:
        check_metadata({**record.metadata, **metadata})
    given |= {"votes": votes} if votes else {}
    says_as_before = relations is None and said.text == record.text
    put = Put(
        record=replace(record, **{**given, "updated_at": at}),
        relations=None if says_as_before else dated(said, at, is_single),
        replace=True,
        fields=tuple(given),
        merge=merge,
    )
    accepted = body([put], at=at, origin=record.origin)
    return operation("update", record.scope, accepted, after=record.version)


def operation(kind: OperationKind, scope: Scope, accepted: str, *, after: int = 0) -> Operation:
    """Make an operation with a new id.

    Args:
        after: the version of the record that it changes, as another host's clock may have made it.
    """
    return Operation(id=str(uuid.uuid4()), kind=kind, scope=scope, body=accepted, version=after)


def check_kinds(kinds: object) -> None:
    """Refuse what is no list of kinds."""
    if isinstance(kinds, str) or not isinstance(kinds, Collection):
        raise InvalidRecordError(field="kinds", value=kinds, reason="is no list of kinds")
    for kind in kinds:
        check_choice("kind", kind, KINDS)


def check_scope(scope: object) -> None:
    """Refuse what is no `Scope`."""
    if type(scope) is not Scope:
        raise InvalidRecordError(
            field="scope", value=scope, reason="is no Scope", hint="Give Scope(user_id=...)."
        )


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


def to_op(command: Command, *, at: datetime, is_single: IsSingle) -> Operation:
    """Check a command and make its operation.

    Raises:
        InvalidRecordError: something cannot be stored, or is no command.
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
    raise InvalidRecordError(
        field="command", value=command, reason="is no Upsert, Delete or Revise"
    )


def deletion(
    record_id: str, scope: Scope, *, at: datetime, spare_pinned: bool = False, after: int = 0
) -> Operation:
    """Make the operation that deletes a record of this very scope, of this version if known."""
    given = {"id": record_id, "at": at.isoformat(), "spare_pinned": spare_pinned}
    return operation("delete", scope, json.dumps(given), after=after)
