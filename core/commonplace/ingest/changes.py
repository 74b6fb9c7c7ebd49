"""Changes that writes ask for: bodies and plans, the puts that they hold, and their encoding.

A put stores a fact or a turn, tells a known fact again, or ends it. The journal has accepted
operations as JSON, and their plans as MessagePack. An operation keeps the time zones that its
caller gave, for the extraction shows them to a model. A plan keeps moments in UTC.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidRecordError
from ..ports.stores import Operation, Put, identity_hash, with_identity
from ..types import MAX_SOURCES, Extraction, Fact, Message, Origin, Record, Relation, Scope

T = TypeVar("T", Record, Relation, Message, Extraction)
D = TypeVar("D")
_MINUTE = timedelta(minutes=1)
_RECORD_TIMES = (
    "created_at", "updated_at", "occurred_at", "valid_to", "expires_at", "last_told_at",
)  # fmt: skip
_RELATION_TIMES = ("valid_from", "valid_to", "created_at", "expired_at")
IsSingle = Callable[[Relation], bool]

# The fields of a record that a `Fact` gives; an upsert keeps the others as stored.
_FACT_FIELDS = (
    "text", "metadata", "namespace", "origin", "trust", "occurred_at", "expires_at", "importance",
    "pinned", "situation", "outcome", "indexed", "sources",
)  # fmt: skip
# Anybody may have written the text of tools and documents.
_TRUST = {"tool": 0.3, "document": 0.3}


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


# -- puts ------------------------------------------------------------------------------------------


def fact_put(
    fact: Fact,
    scope: Scope,
    *,
    at: datetime,
    origin: Origin,
    is_single: IsSingle,
    metadata: Mapping[str, Any] | None = None,
    identity: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    upsert: bool = False,
) -> Put:
    """Make the change that adds a fact.

    Args:
        metadata: of a fact that has none.
        identity: metadata keys that take part in recognising a repetition.
        sources: ids of the turns that it was drawn from.
        upsert: replace the record of its key, if it has one.
    """
    held = dict(fact.metadata or metadata or {})
    relations = dated_relations(fact, at, is_single, identity_hash(held, identity))
    begins = _begins(fact)
    key = fact.text.strip()
    if begins and any(relation.single_valued for relation in relations):
        # The same value again at a later time is news: it may have changed in between.
        key = json.dumps([key, begins.astimezone(UTC).isoformat()])
    record = Record(
        id=scope.record_id(fact.kind, with_identity(fact.key or key, held, identity)),
        text=fact.text,
        scope=scope,
        kind=fact.kind,
        metadata=held,
        namespace=fact.namespace,
        origin=origin,
        trust=_TRUST.get(origin, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=begins or at,
        expires_at=fact.expires_at,
        importance=float(fact.importance),
        pinned=fact.pinned,
        situation=fact.situation,
        outcome=fact.outcome,
        indexed=fact.indexed,
        sources=(sources or fact.sources)[-MAX_SOURCES:],
    )
    if upsert and fact.key is not None:
        return Put(
            record=record, relations=relations, replace=True, upsert=True, fields=_FACT_FIELDS,
            identity=identity,
        )  # fmt: skip
    return Put(record=record, relations=relations, identity=identity)


def dated_relations(
    fact: Fact, at: datetime, is_single: IsSingle, identity: str = ""
) -> tuple[Relation, ...]:
    """Give each single-valued relation of a fact the moment from which it holds, to order them."""
    if not fact.relations:
        return ()
    since = _begins(fact) or at
    dated = []
    for relation in fact.relations:
        single = is_single(relation)
        begins, ends = relation.valid_from, relation.valid_to
        if fact.expires_at and (ends is None or ends > fact.expires_at):
            ends = fact.expires_at  # a relation must not hold longer than its record is shown
        if single and begins is None and (ends is None or ends > since):
            begins = since
        dated.append(
            replace(
                relation,
                single_valued=single,
                valid_from=begins,
                valid_to=ends,
                identity=identity if single else "",
            )
        )
    return tuple(dated)


def _begins(fact: Fact) -> datetime | None:
    if fact.at or not fact.relations:
        return fact.at
    return min(
        (relation.valid_from for relation in fact.relations if relation.valid_from), default=None
    )


def message_put(
    message: Message,
    scope: Scope,
    *,
    after: Message | None,
    at: datetime,
    origin: Origin,
    metadata: Mapping[str, Any] | None = None,
    identity: tuple[str, ...] = (),
) -> Put:
    """Make the change that adds a turn of a conversation, verbatim.

    Args:
        after: the message that stands before it in the same call. Together with the moment that a
            caller gives, it tells the same words in another turn from a call that is made again.
        identity: as of `fact_put`.
    """
    held = dict(metadata or {})
    speaker = speaker_origin([message], origin)
    key = message.id or _message_key(message, after)
    record = Record(
        id=scope.record_id("episode", with_identity(key, held, identity)),
        text=message.text,
        scope=scope,
        kind="episode",
        metadata=held,
        role=message.role,
        name=message.name,
        origin=speaker,
        trust=_TRUST.get(speaker, 1.0),
        created_at=at,
        updated_at=at,
        occurred_at=message.at or at,
    )
    return Put(record=record, in_session=scope.session_id is not None, identity=identity)


def speaker_origin(messages: Sequence[Message], origin: Origin) -> Origin:
    """Tell where what these messages say comes from: from the least trusted of their speakers.

    Args:
        origin: as the caller gives it; `user` leaves it to the roles. A tool's text is a tool's.
    """
    roles = {message.role for message in messages}
    if "tool" in roles or origin != "user":
        return "tool" if "tool" in roles else origin
    if "user" in roles or not roles:
        return "user"
    return "assistant" if "assistant" in roles else "system"


def _message_key(message: Message, after: Message | None) -> str:
    parts = [message.role, message.name, message.text.strip()]
    if message.at is not None:
        parts.append(message.at.astimezone(UTC).isoformat())
    if after is not None:
        parts += [after.role, after.name, after.text.strip()]
    return json.dumps(parts)


def told_again(known: Record, new: Put) -> Put:
    """Make the change that tells a known fact again.

    Args:
        new: the change that would add the fact, had it not been known.
    """
    added = new.record
    record = replace(
        known,
        metadata=added.metadata,
        namespace=added.namespace,
        created_at=added.created_at,
        updated_at=added.updated_at,
        occurred_at=added.occurred_at,
        valid_to=None,
        expires_at=added.expires_at,
        conflicts=(),
        votes=0,
        sources=added.sources,
    )
    return replace(new, record=record)


def ending(old: Record, new: Record, *, at: datetime, told: datetime) -> Put | None:
    """Make the change that ends a known fact because a new one replaces it.

    It ends where the new one begins. One that had not begun when the new one was told, or that is
    corrected to an earlier beginning, has never been true: it ends before it begins.

    Returns:
        None if it has ended by then. So too if it is what came later: the new one begins earlier,
        and is from a conversation that arrives late.
    """
    is_late = told < min(old.occurred_at, old.created_at)
    if is_late and new.occurred_at <= old.occurred_at:
        return None
    is_wrong = new.occurred_at <= old.occurred_at or told < old.occurred_at
    ends = new.occurred_at
    if is_wrong and not is_late:
        ends = min(old.occurred_at, told)
    if old.valid_to is not None and old.valid_to <= ends:
        return None
    record = replace(old, valid_to=ends, updated_at=at)
    return Put(record=record, relations=None, replace=True, fields=("valid_to",))


# -- encoding --------------------------------------------------------------------------------------


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
    """Decode the body of an add or an update."""
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
