"""Pending lookup: records as they are stored, or as accepted operations will leave them."""

from collections.abc import Iterator, Sequence

from ..errors import IdempotencyConflictError, RecordNotFoundError
from ..model import Record, Scope
from ..ports.stores import Engines, Operation
from ..validation import check_name
from .codec import decode_write, record_ids

_EVERYTHING = 1_000_000


def find_record(
    engines: Engines, record_id: str, scope: Scope, *, include_expired: bool = False
) -> Record:
    """Find a live record that the scope covers, stored or pending.

    Args:
        include_expired: also a stored one that has expired.

    Raises:
        InvalidRecordError: the id is not a string.
        RecordNotFoundError: there is none, or its deletion is pending.
    """
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


def check_keys(
    engines: Engines, keyed: Sequence[tuple[str, Record]], *, upsert: bool = False
) -> None:
    """Refuse a key that names two texts: here, or, without `upsert`, here and in an earlier write.

    Args:
        keyed: each record of a write with its key; all are of one scope.

    Raises:
        IdempotencyConflictError: it does.
    """
    given: dict[str, str] = {}
    for key, record in keyed:
        if given.setdefault(record.id, record.text) != record.text:
            raise IdempotencyConflictError(key=key)
    if upsert or not keyed:
        return
    scope = keyed[0][1].scope
    texts = {one: {version.text for version in engines.graph.history(scope, one)} for one in given}
    for op in _pending_newest_first(engines, scope):
        if op.kind != "delete" and not record_ids(op).isdisjoint(texts):
            for put in decode_write(op).puts:
                if put.record.id in texts:
                    texts[put.record.id].add(put.record.text)
    for key, record in keyed:
        if texts[record.id] and record.text not in texts[record.id]:
            raise IdempotencyConflictError(key=key)


def _pending_newest_first(engines: Engines, scope: Scope) -> Iterator[Operation]:
    return reversed(engines.journal.pending(scope.partition, limit=_EVERYTHING))
