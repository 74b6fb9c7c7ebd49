"""What a graph store keeps as lines of JSON, one to each piece, and back, exactly."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ..errors import InvalidRecordError
from ..ingest.codec import record_from_json, record_to_json, relation_from_json, relation_to_json
from ..model import Entity, Scope, Version
from ..ports.snapshot import EntityRow, FenceRow, RecordRow, RelationRow, SessionRow, SnapshotRow

TABLES = ("fence", "session", "entity", "relation", "record")


def table_of(one: SnapshotRow) -> str:
    """Name the table that a piece belongs to, one of `TABLES`."""
    return type(one).__name__.removesuffix("Row").lower()


def to_line(one: SnapshotRow) -> str:
    """Write a piece as JSON on one line, equal for equal pieces."""
    return json.dumps({table_of(one): _values(one)}, ensure_ascii=False, separators=(",", ":"))


def from_line(line: str) -> SnapshotRow:
    """Read what `to_line` wrote.

    Raises:
        InvalidRecordError: it is no such line.
    """
    try:
        [(table, given)] = json.loads(line).items()
        return _piece(table, given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = "Give a file that `commonplace export` wrote."
        raise InvalidRecordError(
            field="line", value=line, reason=f"is of no export ({error})", hint=hint
        ) from error


def _values(one: SnapshotRow) -> dict[str, Any]:
    match one:
        case FenceRow():
            return {"key": one.key, "version": one.version}
        case SessionRow():
            return {"scope": asdict(one.scope), "next": one.next}
        case EntityRow():
            return {"owner": asdict(one.owner), "entity": asdict(one.entity)}
        case RelationRow():
            return {"owner": asdict(one.owner), "relation": relation_to_json(one.relation)}
        case RecordRow():
            return {
                "record": record_to_json(one.record),
                "live": one.live,
                "versions": [asdict(v) | {"at": v.at.isoformat()} for v in one.versions],
                "states": [relation_to_json(said) for said in one.states],
                "recalls": [at.isoformat() for at in one.recalls],
            }


def _piece(table: str, given: Mapping[str, Any]) -> SnapshotRow:
    match table:
        case "fence":
            return FenceRow(key=given["key"], version=given["version"])
        case "session":
            return SessionRow(scope=Scope(**given["scope"]), next=given["next"])
        case "entity":
            return EntityRow(owner=Scope(**given["owner"]), entity=Entity(**given["entity"]))
        case "relation":
            relation = relation_from_json(given["relation"])
            return RelationRow(owner=Scope(**given["owner"]), relation=relation)
        case "record":
            return RecordRow(
                record=record_from_json(given["record"]),
                live=given["live"],
                versions=tuple(map(_version, given["versions"])),
                states=tuple(map(relation_from_json, given["states"])),
                recalls=tuple(map(datetime.fromisoformat, given["recalls"])),
            )
    raise KeyError(table)


def _version(given: Mapping[str, Any]) -> Version:
    return Version(**{**given, "at": datetime.fromisoformat(given["at"])})
