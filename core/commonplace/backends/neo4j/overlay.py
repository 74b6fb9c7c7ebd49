"""In-memory copy of the part of a remote graph that a change may touch.

The rules of changes and assertions are written for SQLite. A server engine locks, loads the rows
that they may read into an overlay, applies them, and writes back the rows that differ; so every
graph store decides alike. Keys of nodes are hashes of what identifies a thing, so that the database
itself refuses a second one.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from types import TracebackType
from typing import Any, Self

from ...model import Record, Relation, Scope, Version, fold
from ...ports.stores import Put, Remove
from ..shared import rows
from ..shared.names import pairs_of
from ..sqlite.graph import SCHEMA

Row = dict[str, Any]
Key = tuple[Any, ...]

_SCOPE = ("user_id", "agent_id", "session_id")
_TABLES: dict[str, tuple[int, tuple[str, ...]]] = {  # how many columns are the key, and all of them
    "record": (1, (*rows.RECORD.split(", "), "live")),
    "version": (2, ("record", "version", "event", "text", "previous", "metadata", "at")),
    "session": (1, ("key", *_SCOPE, "next")),
    "erasure": (1, ("key", "version")),
    # An id that became free is given out again, so it does not tell one entity from another.
    "entity": (3, ("id", "scope", "key", *_SCOPE, "name", "type")),
    "relation": (
        1,
        (
            *("id", *_SCOPE, "subject", "key", "object", "predicate", "valid_from", "valid_to"),
            *("single", "conflict", "created_at", "expired_at"),
        ),
    ),
    "support": (2, ("relation", "record", "single", "valid_to", "expired_at")),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a table since it was loaded, in the order of its keys."""

    created: list[Row]
    changed: list[Row]
    removed: list[Row]


class Draft:
    """Tables as the embedded graph store has them, empty at first."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_empty())
        self._loaded: dict[str, dict[Key, Row]] = {table: {} for table in _TABLES}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    def load(self, table: str, given: Iterable[Mapping[str, Any]]) -> None:
        """Copy rows that the store has; a missing column is NULL, a row that is there stays."""
        _, columns = _TABLES[table]
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 -- a table of ours
            " ON CONFLICT DO NOTHING",
            [tuple(row.get(name) for name in columns) for row in given],
        )
        self._loaded[table] = self._read(table)

    def loaded(self, table: str) -> list[Row]:
        """Read the rows as they were loaded."""
        return list(self._loaded[table].values())

    def difference(self, table: str) -> Difference:
        """Compare a table with what was loaded."""
        before, after = self._loaded[table], self._read(table)
        return Difference(
            created=[row for key, row in after.items() if key not in before],
            changed=[row for key, row in after.items() if key in before and row != before[key]],
            removed=[row for key, row in before.items() if key not in after],
        )

    def _read(self, table: str) -> dict[Key, Row]:
        size, columns = _TABLES[table]
        order = ", ".join(columns[:size])
        found = self.connection.execute(
            f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"  # noqa: S608 -- a table of ours
        )
        return {row[:size]: dict(zip(columns, row, strict=True)) for row in found}


@cache
def _empty() -> bytes:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        return connection.serialize()
    finally:
        connection.close()


_COLUMNS = rows.RECORD.split(", ")
_FLAGS = ("live", "indexed", "pinned", "single", "conflict")


def digest(*parts: object) -> str:
    """Hash the parts, 32 hexadecimal digits: equal for equal parts only."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def entity_id(owner: str, key: str) -> str:
    """Name the entity that has this folded name in the graph of this owner (`Scope.key`)."""
    return digest("entity", owner, key)


def slot_id(subject: str, key: str) -> str:
    """Name the slot that a folded type of relation is of a subject."""
    return digest("slot", subject, key)


def relation_id(subject: str, key: str, object_: str, begins: int) -> str:
    """Name a relation between two entities by their names here, its folded type and beginning."""
    return digest("relation", subject, key, object_, begins)


def pair_ids(partition: str, name: str) -> list[str]:
    """Name the overlapping pairs of letters of a folded name, sorted."""
    return sorted(f"{partition}:{pair}" for pair in pairs_of(name))


def to_look_at(changes: Sequence[Put | Remove]) -> dict[str, list[Any]]:
    """List what the changes may touch and what they must hold the lock of, in order."""
    puts = [one for one in changes if isinstance(one, Put)]
    scopes = {one.record.scope for one in puts}
    removals = {one.scope for one in changes if isinstance(one, Remove)}
    return {
        "partitions": sorted({one.partition for one in scopes | removals}),
        "ids": sorted({one.record.id if isinstance(one, Put) else one.id for one in changes}),
        "fences": fences(scopes),
        "sessions": sorted({one.record.scope.key for one in puts if one.in_session}),
    }


def repeats(changes: Sequence[Put | Remove], records: Sequence[Mapping[str, Any]]) -> list[Scope]:
    """List the owners of what is removed again: the answer is all that they claim.

    Args:
        records: that the store has, tombstones included, of those that the changes name.
    """
    removals = [one for one in changes if isinstance(one, Remove)]
    done = Counter((one.id, one.version) for one in removals)
    done.update((one["id"], one["version"]) for one in records if not one["live"])
    found = (one.scope.owner for one in removals if done[one.id, one.version] > 1)
    return list(dict.fromkeys(found))


def fences(scopes: Iterable[Scope]) -> list[str]:
    """List the keys of all scopes whose erasure these scopes fall under, sorted."""
    return sorted({cover.key for one in scopes for cover in one.covering()})


def to_look_up(
    changes: Sequence[Put | Remove], records: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """List the entities, relations and slots that the changes speak of.

    Args:
        records: that the store has of those that the changes name: each belongs to its own owner,
            whose scope may be narrower than that of a change.
    """
    puts = [one for one in changes if isinstance(one, Put)]
    owners = {(one["id"], owner(one).owner.key) for one in records}
    owners |= {(one.record.id, one.record.scope.owner.key) for one in puts}
    told: dict[str, list[Relation]] = {}
    for one in puts:
        told.setdefault(one.record.id, []).extend(one.relations or ())
    entities, relations, slots = set(), set(), set()
    for name, graph in owners:
        for said in told.get(name, ()):
            subject, object_ = (entity_id(graph, fold(end)) for end in (said.subject, said.object))
            begins = rows.to_beginning(said.valid_from)
            key = fold(said.predicate)
            entities |= {subject, object_}
            relations.add(relation_id(subject, key, object_, begins))
            if said.single_valued:
                slots.add(slot_id(subject, key))
    return {
        "entities": sorted(entities),
        "relations": sorted(relations),
        "slots": sorted(slots),
    }


def load(draft: Draft, found: Mapping[str, Any]) -> None:
    """Copy what `LOAD` found into a draft."""
    draft.load("record", found["records"])
    draft.load("version", found["versions"])
    draft.load("erasure", ({**one, "key": one["id"]} for one in found["fences"]))
    draft.load("session", ({**one, "key": one["id"]} for one in found["sessions"]))


def load_claims(draft: Draft, found: Mapping[str, Any]) -> None:
    """Copy what `CLAIMS` found into a draft, relations numbered by age."""
    draft.load("record", found["records"])
    ends = {one["id"]: one for row in found["relations"] for one in row["ends"]}
    ends |= {one["id"]: one for one in found["entities"]}
    known = sorted(ends.values(), key=_age)
    by_age = sorted(found["relations"], key=_age)
    places = {one["id"]: place for place, one in enumerate(known, start=1)}
    draft.load("entity", ({**one, "id": places[one["id"]]} for one in known))
    draft.load(
        "relation",
        (
            {**one, "id": n, "subject": places[one["subject"]], "object": places[one["object"]]}
            for n, one in enumerate(by_age, start=1)
        ),
    )
    draft.load(
        "support",
        ({**said, "relation": n} for n, one in enumerate(by_age, 1) for said in one["supports"]),
    )


def _age(node: Mapping[str, Any]) -> tuple[int, str]:
    return node["seq"], node["id"]


def to_record(node: Mapping[str, Any]) -> Record:
    """Read a record back."""
    return rows.from_row([node.get(name) for name in _COLUMNS])


def owner(node: Mapping[str, Any]) -> Scope:
    """Read whose record it is."""
    return rows.to_scope(node.get("user_id"), node.get("agent_id"), node.get("session_id"))


def to_version(node: Mapping[str, Any]) -> Version:
    """Read a version back."""
    return Version(
        record_id=node["record"],
        version=node["version"],
        event=node["event"],
        text=node.get("text"),
        previous=node.get("previous"),
        metadata=json.loads(node["metadata"]),
        at=rows.at_micros(node["at"]),
    )


def to_save(draft: Draft, partitions: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """List what to save of a draft, by the parts of `cypher.SAVE`; parts may be empty.

    Args:
        partitions: that were locked, with the next number for a relation of each.
    """
    records, sessions = draft.difference("record"), draft.difference("session")
    versions = draft.difference("version")
    return {
        "records": [owned(one) for one in records.created],
        "records_changed": [_changed(one) for one in records.changed],
        "versions": versions.created,
        "sessions": [
            owned(one, id=one["key"], key=None) for one in (*sessions.created, *sessions.changed)
        ],
        **_claims(draft, partitions),
    }


def _claims(draft: Draft, partitions: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    entities, relations = draft.difference("entity"), draft.difference("relation")
    supports = draft.difference("support")
    before = _names(draft.loaded("entity"))
    after = before | _names(entities.created)
    stated = {one["id"]: _relation(one, before) for one in draft.loaded("relation")}
    stated |= {one["id"]: _relation(one, after) for one in relations.created}
    named = {
        one["id"]: owned(one, id=after[one["id"]], word=digest(one["key"]))
        for one in (*entities.created, *entities.changed)
    }
    born = [
        *(named[one["id"]] for one in entities.created),
        *(stated[one["id"]]["own"] for one in relations.created),
    ]
    numbers = {one["id"]: count(one["next"]) for one in partitions}
    for own in born:
        own["seq"] = next(numbers[own["partition"]])
    used = sorted({own["partition"] for own in born})
    return {
        "partitions": [{"id": one, "next": next(numbers[one])} for one in used],
        "supports_gone": [_support(one, stated) for one in supports.removed],
        "relations_gone": [{"id": stated[one["id"]]["own"]["id"]} for one in relations.removed],
        "entities": list(named.values()),
        "pairs": [
            {"entity": after[one["id"]], "pairs": pair_ids(_partition(one), one["key"])}
            for one in entities.created
        ],
        "relations": [stated[one["id"]] for one in relations.created],
        "relations_changed": [_relation(one, after) for one in relations.changed],
        "supports": [_support(one, stated) for one in (*supports.created, *supports.changed)],
        "entities_gone": [{"id": before[one["id"]]} for one in entities.removed],
    }


def _names(entities: Iterable[Row]) -> dict[int, str]:
    return {one["id"]: entity_id(one["scope"], one["key"]) for one in entities}


def _relation(row: Row, names: Mapping[int, str]) -> Row:
    subject, object_ = names[row["subject"]], names[row["object"]]
    name = relation_id(subject, row["key"], object_, row["valid_from"])
    own = owned(row, id=name, slot=slot_id(subject, row["key"]))
    del own["subject"], own["object"]
    return {"own": own, "subject": subject, "object": object_}


def _support(row: Row, stated: Mapping[int, Row]) -> Row:
    return {**row, "relation": stated[row["relation"]]["own"]["id"]}


def _changed(row: Row) -> Row:
    # The times of its recalls go with what is deleted.
    return owned(row) if row["live"] else owned(row, recalls=None)


def owned(row: Mapping[str, Any], **more: Any) -> Row:
    """Write a row as a node of its owner's partition."""
    plain = {name: bool(value) if name in _FLAGS else value for name, value in row.items()}
    return {**plain, "partition": _partition(row), **more}


def _partition(row: Mapping[str, Any]) -> str:
    return owner(row).partition
