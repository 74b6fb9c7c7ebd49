"""Codec of the journal: accepted operations as JSON, their plans as MessagePack.

An operation keeps the time zones that its caller gave, for the extraction shows them to a model. A
plan keeps moments in UTC.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidRecordError
from ..ports.stores import Operation, Put
from ..types import Extraction, Message, Origin, Record, Relation

T = TypeVar("T", Record, Relation, Message, Extraction)
D = TypeVar("D")
_MINUTE = timedelta(minutes=1)
_RECORD_TIMES = (
    "created_at", "updated_at", "occurred_at", "valid_to", "expires_at", "last_told_at",
)  # fmt: skip
_RELATION_TIMES = ("valid_from", "valid_to", "created_at", "expired_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBody:
    """An accepted add or update.

    Attributes:
        puts: changes that need no chat model.
        messages: to extract facts from, in the order in which they were said.
        extraction: how; None for the defaults.
        identity: as of a `Put`, for the facts that are extracted.
    """

    puts: tuple[Put, ...]
    at: datetime
    origin: Origin
    messages: tuple[Message, ...] = ()
    extraction: Extraction | None = None
    identity: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteBody:
    """An accepted deletion."""

    id: str
    at: datetime
    spare_pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A validated operation that is not encoded yet; the body of an erasure is None."""

    operation: Operation
    body: WriteBody | DeleteBody | None

    def encoded(self) -> Operation:
        """Encode the body into the operation, for the journal."""
        body = "{}" if self.body is None else encode_body(self.body)
        return replace(self.operation, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """Changes of a write, with what a chat model has had a part in.

    Attributes:
        skipped: as in `WriteResult`.
        failure: why nothing could be extracted; the changes keep the messages. None if it could.
    """

    puts: Sequence[Put]
    skipped: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None


class _Identified(msgspec.Struct):
    id: str


class _PutOutline(msgspec.Struct):
    record: _Identified


class _Outline(msgspec.Struct):
    """The few fields of any body that are read often; the rest is skipped unread."""

    id: str | None = None
    puts: tuple[_PutOutline, ...] = ()
    messages: tuple[msgspec.Raw, ...] = ()


def to_plain(value: Any) -> Any:
    """Turn what msgspec does not encode by itself into what it does."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime):  # of a subclass, as the string below
        return datetime.fromisoformat(value.isoformat())
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(type(value).__name__)


_json = msgspec.json.Encoder(enc_hook=to_plain)
_msgpack = msgspec.msgpack.Encoder(enc_hook=to_plain)
_outline = msgspec.json.Decoder(_Outline)
_write = msgspec.json.Decoder(WriteBody)
_delete = msgspec.json.Decoder(DeleteBody)
_plan = msgspec.msgpack.Decoder(list[Put] | WritePlan)


def encode_body(body: WriteBody | DeleteBody) -> str:
    """Encode what was accepted."""
    if isinstance(body, WriteBody):
        how = body.extraction
        body = replace(
            body,
            puts=tuple(map(_in_whole_minutes, body.puts)),
            messages=tuple(_zoned(message, ("at",)) for message in body.messages),
            extraction=how and _zoned(how, ("expires_at",)),
        )
    return _json.encode(body).decode()


def decode_write(op: Operation) -> WriteBody:
    """Decode the body of an add or an update.

    Raises:
        InvalidRecordError: it holds what no record can; so in the other functions.
    """
    return _decoded(_write.decode, op.body, op.id)


def decode_delete(op: Operation) -> DeleteBody:
    """Decode the body of a deletion."""
    return _decoded(_delete.decode, op.body, op.id)


def decode_plan(plan: bytes) -> WritePlan:
    """Decode what `encode_plan` encoded."""
    found = _decoded(_plan.decode, plan, "its plan")
    return found if isinstance(found, WritePlan) else WritePlan(puts=found)


def record_ids(op: Operation) -> set[str]:
    """Decode the ids of the records that an operation names; none if it cannot be decoded."""
    try:
        outline = _outline.decode(op.body)
    except msgspec.MsgspecError:
        return set()
    named = {put.record.id for put in outline.puts}
    return named if outline.id is None else named | {outline.id}


def has_messages(op: Operation) -> bool:
    """Tell whether planning an operation extracts facts from messages."""
    try:
        return bool(_outline.decode(op.body).messages)
    except msgspec.MsgspecError:
        return False


def _decoded(decode: Callable[[Any], D], given: str | bytes, shown: str) -> D:
    try:
        return decode(given)
    except msgspec.MsgspecError as error:
        raise InvalidRecordError(
            field="operation", value=shown, reason=f"must be decodable: {error}"
        ) from error


def encode_plan(plan: WritePlan) -> bytes:
    """Encode changes that a chat model has had a part in; as a list if there is nothing else."""
    return _msgpack.encode(plan if plan.skipped or plan.failure else plan.puts)


def left_to_extract(op: Operation) -> Operation:
    """Make of an addition whose messages are stored the operation that extracts their facts."""
    body = decode_write(op)
    how = replace(body.extraction or Extraction(), keep_messages=False)
    body = replace(body, puts=(), extraction=how)
    return replace(op, kind="extract", body=encode_body(body), plan=None)


def _in_whole_minutes(put: Put) -> Put:
    record = _zoned(put.record, _RECORD_TIMES)
    relations = put.relations and tuple(
        _zoned(relation, _RELATION_TIMES) for relation in put.relations
    )
    return replace(put, record=record, relations=relations)


def _zoned(value: T, times: Sequence[str]) -> T:
    """Bring a time into UTC if its zone is not whole minutes away: JSON has no such zones."""
    odd = {
        name: at.astimezone(UTC)
        for name in times
        if (at := getattr(value, name)) is not None
        and at.tzinfo is not UTC
        and at.utcoffset() % _MINUTE
    }
    return replace(value, **odd) if odd else value
