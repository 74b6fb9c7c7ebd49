"""What a store knows of a record: what is stored, and what is accepted and on its way."""

import json
from collections.abc import Iterator
from typing import Any

from .codec import put_from_json
from .errors import IdempotencyConflict, RecordNotFound
from .model import Record, Scope
from .ports import Engines

_EVERYTHING = 1_000_000


def find_known(engines: Engines, record_id: str, scope: Scope) -> Record:
    """Find a live record that the scope covers, stored or on its way.

    Raises:
        RecordNotFound: there is none, or it is about to be deleted.
    """
    for record in engines.graph.get(scope, [record_id]):
        return record
    for accepted in _accepted(engines, scope):
        if accepted.get("id") == record_id:
            break
        for put in map(put_from_json, accepted.get("puts", [])):
            if put.record.id == record_id and scope.covers(put.record.scope):
                return put.record
    raise RecordNotFound(record_id=record_id)


def check_key(engines: Engines, record: Record, key: str) -> None:
    """Refuse a key that was used for another text, stored or on its way.

    Raises:
        IdempotencyConflict: it was.
    """
    texts = {version.text for version in engines.graph.history(record.scope, record.id)}
    for accepted in _accepted(engines, record.scope):
        puts = map(put_from_json, accepted.get("puts", []))
        texts |= {put.record.text for put in puts if put.record.id == record.id}
    if texts and record.text not in texts:
        raise IdempotencyConflict(key=key)


def _accepted(engines: Engines, scope: Scope) -> Iterator[dict[str, Any]]:
    """Read what the scope's lane has accepted, newest first."""
    for op in reversed(engines.journal.pending(scope.lane, limit=_EVERYTHING)):
        yield json.loads(op.body)
