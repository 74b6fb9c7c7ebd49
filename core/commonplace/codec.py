"""Records and changes as JSON and back, exactly: what the journal keeps of a write."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, cast

import numpy as np

from .exchange import Put
from .model import Message, Record, Relation, Scope

_SPAN = ("valid_from", "valid_to", "created_at", "expired_at")
_TIMES = ("created_at", "updated_at", "occurred_at", "valid_to", "expires_at")


def put_to_json(put: Put) -> dict[str, Any]:
    """Write a change as JSON values; times as ISO 8601 with their zone."""
    return {
        "record": record_to_json(put.record),
        "relations": put.relations and [_relation_to_json(one) for one in put.relations],
        "replace": put.replace,
        "in_session": put.in_session,
        "fields": put.fields,
    }


def put_from_json(given: Mapping[str, Any]) -> Put:
    """Read what `put_to_json` wrote."""
    return Put(
        record=record_from_json(given["record"]),
        relations=None
        if given["relations"] is None
        else tuple(_relation_from_json(one) for one in given["relations"]),
        replace=given["replace"],
        in_session=given["in_session"],
        fields=tuple(given["fields"]),
    )


def record_to_json(record: Record) -> dict[str, Any]:
    """Write a record as JSON values."""
    out = {one.name: getattr(record, one.name) for one in fields(Record)}
    out["scope"] = asdict(record.scope)
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


def freeze(puts: Sequence[Put], vectors: Sequence[Sequence[float]]) -> bytes:
    """Write a plan: changes with one vector each, float32."""
    rows = [
        put_to_json(put)
        | {"vector": base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()}
        for put, vector in zip(puts, vectors, strict=True)
    ]
    return json.dumps(rows, ensure_ascii=False).encode()


def thaw(plan: bytes) -> "list[tuple[Put, Sequence[float]]]":
    """Read what `freeze` wrote."""
    return [
        (put_from_json(row), cast("Sequence[float]", _floats(row["vector"])))
        for row in json.loads(plan)
    ]


def _floats(encoded: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f4")


def _relation_to_json(relation: Relation) -> dict[str, Any]:
    return asdict(relation) | {name: _iso(getattr(relation, name)) for name in _SPAN}


def _relation_from_json(given: Mapping[str, Any]) -> Relation:
    times = {name: _time(given[name]) for name in _SPAN}
    return Relation(**{**given, **times, "supports": tuple(given["supports"])})


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
