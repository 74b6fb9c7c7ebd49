"""Operations for the journal, made of validated write requests.

Validation looks records up as they are stored, or as pending operations will leave them.
"""

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import EllipsisType
from typing import Any

from ..errors import IdempotencyConflictError, InvalidRecordError, RecordNotFoundError
from ..ports.stores import Engines, Operation, OperationKind, Put
from ..settings import Settings
from ..types import (
    ORIGINS,
    Command,
    Content,
    Delete,
    Extraction,
    Fact,
    Kind,
    Message,
    Origin,
    Record,
    Relation,
    Revise,
    Scope,
    Upsert,
    check_scope,
    now,
)
from ..validation import (
    check_choice,
    check_flag,
    check_keys,
    check_metadata,
    check_name,
    check_text,
)
from .changes import (
    DeleteBody,
    Write,
    WriteBody,
    dated_relations,
    decode_write,
    fact_put,
    message_put,
    record_ids,
)
from .redaction import Redaction

MAX_ITEMS = 1_000


class Operations:
    """Makes the operations of one open memory; each method checks what its caller gives.

    Every method raises `InvalidRecordError` for what cannot be stored.
    """

    def __init__(
        self, engines: Engines, settings: Settings, redaction: Redaction | None, *, has_chat: bool
    ) -> None:
        self._has_chat = has_chat
        self._engines = engines
        self._redaction = redaction
        self._is_single = settings.is_single_valued

    def add(
        self,
        content: Content | Sequence[Content],
        scope: Scope,
        *,
        infer: bool | Extraction | None,
        kind: Kind,
        metadata: Mapping[str, Any] | None,
        key: str | None,
        upsert: bool,
        origin: Origin,
        identity: Sequence[str] = (),
        unredacted: Sequence[str] = (),
    ) -> Write:
        """Check an addition and make its operation."""
        check_scope(scope)
        keys, how = check_keys("unredacted", unredacted), self._extraction(infer)
        if self._redaction is not None:
            content = self._redaction.content(content, keys)
            metadata = self._redaction.metadata(metadata)
            how = self._redaction.extraction(how)
        items = _items(content)
        if key is not None and (len(items) > 1 or not isinstance(items[0], str)):
            raise InvalidRecordError(
                field="key", value=key, reason="needs a single text",
                hint="A Fact has its own key, a Message its own id.",
            )  # fmt: skip
        if metadata is not None:
            check_metadata(metadata)
        check_choice("origin", origin, ORIGINS)
        check_flag("upsert", upsert)
        parts = check_keys("identity", identity)
        at = now()
        puts: list[Put] = []
        keyed: list[tuple[str, Record]] = []
        last: Message | None = None
        for item in items:
            if isinstance(item, Message):
                after, last = last, item
                if how and not how.keep_messages:
                    continue
                check_text(item.text)  # a Message may be longer than what can be stored
                put = message_put(
                    item, scope, after=after, at=at, origin=origin, metadata=metadata,
                    identity=parts,
                )  # fmt: skip
            elif isinstance(item, str | Fact):
                fact = Fact(text=item, kind=kind, key=key) if isinstance(item, str) else item
                put = fact_put(
                    fact, scope, at=at, origin=origin, is_single=self._is_single,
                    metadata=metadata, identity=parts, upsert=upsert,
                )  # fmt: skip
                if fact.key is not None:
                    keyed.append((fact.key, put.record))
            else:
                raise InvalidRecordError(
                    field="content",
                    value=item,
                    reason="must be a text, a Message or a Fact",
                    hint="Give Message(role='user', text=...) for a turn.",
                )
            puts.append(put)
        puts = _merge_repeated(puts)
        check_texts_of_keys(self._engines, keyed, upsert=upsert)
        messages = tuple(item for item in items if isinstance(item, Message)) if how else ()
        if how is not None and messages:
            messages, how = (*how.before, *messages), replace(how, before=())
        body = WriteBody(
            puts=tuple(puts), at=at, origin=origin, messages=messages, extraction=how,
            identity=parts,
        )  # fmt: skip
        return _write("add", scope, body)

    def _extraction(self, infer: bool | Extraction | None) -> Extraction | None:
        """Return how facts are extracted from messages; None if they are not."""
        if isinstance(infer, Extraction):
            if not self._has_chat and not infer.keep_messages:
                raise InvalidRecordError(
                    field="infer",
                    value=infer,
                    reason="keeps no messages, and there is no chat model to extract facts from",
                    hint="Open the memory with Memory.open(chat=...), or keep the messages.",
                )
            return infer if self._has_chat else None
        if infer is not None:
            if type(infer) is not bool:
                raise InvalidRecordError(
                    field="infer", value=infer, reason="must be True, False, None or an Extraction"
                )
            return Extraction() if infer else None
        return Extraction() if self._has_chat else None

    def update(
        self,
        record_id: str,
        text: str | None,
        scope: Scope,
        *,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = False,
        relations: Sequence[Relation] | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        expires_at: datetime | EllipsisType | None = ...,
        votes: int = 0,
    ) -> Write:
        """Check an update of a stored or pending record and make its operation."""
        check_scope(scope)
        check_flag("merge", merge)
        # An expired record may get a later end.
        record = find_record(self._engines, record_id, scope, include_expired=expires_at is not ...)
        return self._revision(
            record, text, metadata=metadata, merge=merge, relations=relations,
            importance=importance, pinned=pinned, expires_at=expires_at, votes=votes,
        )  # fmt: skip

    def delete(self, record_id: str, scope: Scope, *, spare_pinned: bool = False) -> Write:
        """Make the operation that deletes a stored or pending record."""
        check_scope(scope)
        found = find_record(self._engines, record_id, scope, include_expired=True)
        return _deletion(record_id, found.scope, spare_pinned=spare_pinned, after=found.version)

    def restore(self, record_id: str, scope: Scope) -> Write:
        """Make the operation that brings back a record whose deletion is stored or pending."""
        check_scope(scope)
        found = find_deleted(self._engines, record_id, scope)
        at = now()
        put = Put(
            record=replace(found, updated_at=at),
            relations=None,
            replace=True,
            fields=("text", "situation"),
            restores=True,
        )
        body = WriteBody(puts=(put,), at=at, origin=found.origin)
        return _write("restore", found.scope, body, after=found.version)

    def deletions(self, records: Sequence[Record], scope: Scope) -> list[Write]:
        """Make the deletions of those of these records that are still there, unless pinned."""
        found = []
        for record in records:
            with contextlib.suppress(RecordNotFoundError):  # somebody else was quicker
                found.append(self.delete(record.id, scope, spare_pinned=True))
        return found

    def commands(self, commands: Sequence[Command]) -> list[Write]:
        """Check the commands of a batch and make an operation of each, in their order."""
        if isinstance(commands, str | Mapping) or not isinstance(commands, Iterable):
            raise InvalidRecordError(
                field="commands", value=commands, reason="must be a list of commands"
            )
        return [self._command(command) for command in commands]

    def _command(self, command: Command) -> Write:
        if isinstance(command, Upsert):
            facts: object = command.facts
            if not isinstance(facts, Sequence) or not all(isinstance(fact, Fact) for fact in facts):
                raise InvalidRecordError(
                    field="facts", value=facts, reason="must be a list of Facts"
                )
            return self.add(
                list(command.facts), command.scope, infer=False, kind="fact", metadata=None,
                key=None, upsert=True, origin=command.origin, unredacted=command.unredacted,
            )  # fmt: skip
        if isinstance(command, Revise):
            if not isinstance(command.record, Record):
                raise InvalidRecordError(
                    field="record", value=command.record, reason="must be a Record that was read"
                )
            return self._revision(
                command.record,
                command.text,
                metadata=command.metadata,
                namespace=command.namespace,
                expires_at=command.expires_at,
                unredacted=command.unredacted,
            )
        if isinstance(command, Delete):
            check_scope(command.scope)
            check_name("record_id", command.record_id)
            return _deletion(command.record_id, command.scope)
        raise InvalidRecordError(
            field="command", value=command, reason="must be an Upsert, a Delete or a Revise"
        )

    def forget(self, scope: Scope) -> Write:
        """Make the operation that erases a scope."""
        check_scope(scope)
        return _write("forget", scope, None)

    def _revision(
        self,
        record: Record,
        text: str | None,
        *,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = False,
        relations: Sequence[Relation] | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        expires_at: datetime | EllipsisType | None = ...,
        votes: int = 0,
        namespace: Sequence[str] | None = None,
        unredacted: Sequence[str] = (),
    ) -> Write:
        at = now()
        keys = check_keys("unredacted", unredacted)
        if self._redaction is not None:
            text = self._redaction.text(text)
            metadata = self._redaction.metadata(metadata, keys)
            relations = self._redaction.relations(relations)
        given: dict[str, Any] = {"text": text, "metadata": metadata}
        given |= {"importance": importance, "pinned": pinned, "namespace": namespace}
        given = {name: value for name, value in given.items() if value is not None}
        given |= {} if expires_at is ... else {"expires_at": expires_at}
        fact = Fact(
            **{"text": record.text, **given},
            relations=() if relations is None else relations,  # type: ignore[arg-type]  # Fact checks it
        )
        if merge and metadata is not None:
            check_metadata({**record.metadata, **metadata})
        given |= {} if namespace is None else {"namespace": fact.namespace}
        given |= {"votes": votes} if votes else {}
        keeps_relations = relations is None and fact.text == record.text
        stated = dated_relations(
            fact, at, self._is_single, self._identity_of(record) if relations else ""
        )
        put = Put(
            record=replace(record, **{**given, "updated_at": at}),
            relations=None if keeps_relations else stated,
            replace=True,
            fields=tuple(given),
            merge=merge,
        )
        body = WriteBody(puts=(put,), at=at, origin=record.origin)
        return _write("update", record.scope, body, after=record.version)

    def _identity_of(self, record: Record) -> str:
        """Find the identity of the single-valued relations that a stored record states."""
        held = self._engines.graph.relations(
            record.scope, records=[record.id], include_superseded=True
        )
        return next((one.identity for one in held if one.identity), "")


def _merge_repeated(puts: Sequence[Put]) -> list[Put]:
    """Merge what a write says of a fact twice into the first, as it is told once."""
    merged: list[Put] = []
    first: dict[str, int] = {}
    for n, put in enumerate(puts):
        merged.append(put)
        place = first.setdefault(put.record.id, n)
        if place < n and not put.replace and put.record.kind != "episode":
            former = merged[place]
            relations = (*(former.relations or ()), *(put.relations or ()))
            record = former.record.merged(put.record)
            merged[place] = replace(former, record=record, relations=relations)
    return merged


def _items(content: Content | Sequence[Content]) -> list[Content]:
    if isinstance(content, str | bytes | Message | Fact) or not isinstance(content, Sequence):
        items: list[Content] = [content]
    else:
        items = list(content)
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InvalidRecordError(
            field="content",
            value=items if not items else f"a list of {len(items)}",
            reason=f"must hold 1 to {MAX_ITEMS} items",
        )
    return items


def _deletion(record_id: str, scope: Scope, *, spare_pinned: bool = False, after: int = 0) -> Write:
    body = DeleteBody(id=record_id, at=now(), spare_pinned=spare_pinned)
    return _write("delete", scope, body, after=after)


def _write(
    kind: OperationKind, scope: Scope, body: WriteBody | DeleteBody | None, *, after: int = 0
) -> Write:
    """Make an operation with a new id.

    Args:
        after: the version of the record that it changes; another host's clock may be ahead.
    """
    operation = Operation(id=str(uuid.uuid4()), kind=kind, scope=scope, version=after)
    return Write(operation=operation, body=body)


_EVERYTHING = 1_000_000


def find_record(
    engines: Engines, record_id: str, scope: Scope, *, include_expired: bool = False
) -> Record:
    """Find a live record that the scope covers, stored or pending."""
    check_name("record_id", record_id)
    for op in _pending_newest_first(engines, scope):
        if op.kind == "forget" and op.scope.covers(scope):
            break
        if record_id not in record_ids(op):
            continue
        if op.kind == "delete":
            break
        for put in decode_write(op).puts:
            if put.record.id == record_id and scope.covers(put.record.scope):
                return put.record
    else:
        for record in engines.graph.get(scope, [record_id], include_expired=include_expired):
            return record
    raise RecordNotFoundError(record_id=record_id)


def find_deleted(engines: Engines, record_id: str, scope: Scope) -> Record:
    """Find a record that the scope covers and whose deletion is stored or pending."""
    check_name("record_id", record_id)
    is_deleted, found = False, None
    for op in _pending_newest_first(engines, scope):
        if op.kind == "forget" and op.scope.covers(scope):
            raise RecordNotFoundError(record_id=record_id)
        if record_id not in record_ids(op):
            continue
        if op.kind == "delete":
            is_deleted = True
            continue
        records = (put.record for put in decode_write(op).puts)
        mine = (one for one in records if one.id == record_id and scope.covers(one.scope))
        if found := next(mine, None):
            break
    found = found or next(iter(engines.graph.get(scope, [record_id], include_expired=True)), None)
    if found is not None and not is_deleted:
        raise InvalidRecordError(
            field="record_id",
            value=record_id,
            reason="names a record that is not deleted",
            hint="update() changes it, and may give it a former text: history() has them.",
        )
    found = found or engines.graph.deleted(scope, record_id)
    if found is None:
        raise RecordNotFoundError(record_id=record_id)
    return found


def check_texts_of_keys(
    engines: Engines, keyed: Sequence[tuple[str, Record]], *, upsert: bool = False
) -> None:
    """Refuse a key that names two texts: here, or, without `upsert`, here and in an earlier write.

    Args:
        keyed: each record of a write with its key; all are of one scope. Outer spaces of their
            texts do not count.
    """
    given: dict[str, str] = {}
    for key, record in keyed:
        text = record.text.strip()
        if given.setdefault(record.id, text) != text:
            raise IdempotencyConflictError(key=key)
    if upsert or not keyed:
        return
    scope = keyed[0][1].scope
    texts = {
        one: {(version.text or "").strip() for version in engines.graph.history(scope, one)}
        for one in given
    }
    for op in _pending_newest_first(engines, scope):
        if op.kind != "delete" and not record_ids(op).isdisjoint(texts):
            for put in decode_write(op).puts:
                if put.record.id in texts:
                    texts[put.record.id].add(put.record.text.strip())
    for key, record in keyed:
        if texts[record.id] and record.text.strip() not in texts[record.id]:
            raise IdempotencyConflictError(key=key)


def _pending_newest_first(engines: Engines, scope: Scope) -> Iterator[Operation]:
    return reversed(engines.journal.pending(scope.partition, limit=_EVERYTHING))
