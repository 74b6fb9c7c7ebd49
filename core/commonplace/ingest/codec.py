"""Records and changes as JSON and back, exactly: what the journal keeps of a write."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, cast

import numpy as np

from ..model import Message, Record, Relation, Scope
from ..ports.stores import Put
from ..validation import SCOPE_FIELDS

_SPAN = ("valid_from", "valid_to", "created_at", "expired_at")
_TIMES = ("created_at", "updated_at", "occurred_at", "valid_to", "expires_at")
_RECORD = tuple(one.name for one in fields(Record))


def put_to_json(put: Put) -> dict[str, Any]:
    """Write a change as JSON values; times as ISO 8601 with their zone."""
    return {
        "record": record_to_json(put.record),
        "relations": put.relations and [relation_to_json(one) for one in put.relations],
        "replace": put.replace,
        "upsert": put.upsert,
        "in_session": put.in_session,
        "fields": put.fields,
        "merge": put.merge,
    }


def put_from_json(given: Mapping[str, Any]) -> Put:
    """Read what `put_to_json` wrote."""
    return Put(
        record=record_from_json(given["record"]),
        relations=None
        if given["relations"] is None
        else tuple(relation_from_json(one) for one in given["relations"]),
        replace=given["replace"],
        upsert=given.get("upsert", False),  # of a journal that was written before there were any
        in_session=given["in_session"],
        fields=tuple(given["fields"]),
        merge=given.get("merge", False),  # of a journal that was written before there was any
    )


def record_to_json(record: Record) -> dict[str, Any]:
    """Write a record as JSON values."""
    out = {name: getattr(record, name) for name in _RECORD}
    out["scope"] = {name: getattr(record.scope, name) for name in SCOPE_FIELDS}
    out["metadata"] = dict(record.metadata)
    return out | {name: _iso(out[name]) for name in _TIMES}


def record_from_json(given: Mapping[str, Any]) -> Record:
    """Read what `record_to_json` wrote."""
    times = {name: _time(given[name]) for name in _TIMES}
    conflicts = tuple(given["conflicts"])
    scope = Scope(**given["scope"])
    return Record(**{**given, **times, "scope": scope, "conflicts": conflicts})


def message_to_json(message: Message) -> dict[str, Any]:
    """Write a message as JSON values."""
    return asdict(message) | {"at": _iso(message.at)}


def message_from_json(given: Mapping[str, Any]) -> Message:
    """Read what `message_to_json` wrote."""
    return Message(**{**given, "at": _time(given["at"])})


def freeze(puts: Sequence[Put], vectors: Sequence[Sequence[float] | None]) -> bytes:
    """Write a plan: changes with a vector each, float32, or None."""
    rows = [
        put_to_json(put) | {"vector": None if vector is None else _packed(vector)}
        for put, vector in zip(puts, vectors, strict=True)
    ]
    return json.dumps(rows, ensure_ascii=False).encode()


def thaw(plan: bytes) -> "list[tuple[Put, Sequence[float] | None]]":
    """Read what `freeze` wrote."""
    return [
        (put_from_json(row), row["vector"] and cast("Sequence[float]", _floats(row["vector"])))
        for row in json.loads(plan)
    ]


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def _floats(encoded: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f4")


def relation_to_json(relation: Relation) -> dict[str, Any]:
    """Write a relation as JSON values."""
    return asdict(relation) | {name: _iso(getattr(relation, name)) for name in _SPAN}


def relation_from_json(given: Mapping[str, Any]) -> Relation:
    """Read what `relation_to_json` wrote."""
    times = {name: _time(given[name]) for name in _SPAN}
    return Relation(**{**given, **times, "supports": tuple(given["supports"])})


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
