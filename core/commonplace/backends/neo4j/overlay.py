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
from operator import itemgetter
from typing import Any

from ...ports.stores import Put, Remove
from ...types import Record, Relation, Scope, Version, fold
from ..shared import rows
from ..shared.graph_expansion import pairs_of
from ..sqlite.graph import SCHEMA

Properties = dict[str, Any]  # of a node, or a row by column
RowKey = tuple[Any, ...]

_SCOPE = ("user_id", "agent_id", "session_id")
_FLAGS = ("live", "indexed", "pinned", "single", "conflict")
_TABLES: dict[str, tuple[int, tuple[str, ...]]] = {  # how many columns are the key, and all of them
    "record": (1, rows.RecordColumns._fields),
    "recall": (2, ("record", "at")),
    "version": (2, rows.VERSION),
    "session": (1, ("key", *_SCOPE, "next", "first_at", "last_at")),
    "erasure": (1, ("key", "version")),
    # A free id is assigned again, so it does not identify an entity alone.
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
    """Changes of a table since it was loaded, in the order of its keys."""

    created: list[Properties]
    changed: list[Properties]
    removed: list[Properties]


class Overlay:
    """In-memory database with the tables of the embedded graph store, empty at first."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_empty())
        self._loaded: dict[str, dict[RowKey, Properties]] = {table: {} for table in _TABLES}

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()

    def load(self, table: str, given: Iterable[Mapping[str, Any]]) -> None:
        """Copy rows of the store; a missing column is NULL, a row that is loaded already stays."""
        _, columns = _TABLES[table]
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING",
            [tuple(row.get(name) for name in columns) for row in given],
        )
        self._loaded[table] = self._read(table)

    def loaded(self, table: str) -> list[Properties]:
        """List the rows as they were loaded."""
        return list(self._loaded[table].values())

    def difference(self, table: str) -> Difference:
        """Compare a table with what was loaded."""
        before, after = self._loaded[table], self._read(table)
        return Difference(
            created=[row for key, row in after.items() if key not in before],
            changed=[row for key, row in after.items() if key in before and row != before[key]],
            removed=[row for key, row in before.items() if key not in after],
        )

    def accesses(self, record: str) -> list[int]:
        """Read when a record was accessed, newest first."""
        sql = "SELECT at FROM recall WHERE record = ? ORDER BY at DESC"
        return [at for (at,) in self.connection.execute(sql, (record,))]

    def _read(self, table: str) -> dict[RowKey, Properties]:
        size, columns = _TABLES[table]
        order = ", ".join(columns[:size])
        found = self.connection.execute(
            f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"
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


def digest(*parts: object) -> str:
    """Hash the parts to 32 hexadecimal digits, equal for equal parts only."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def entity_id(owner: str, key: str) -> str:
    """Build the id of the entity with this folded name in the graph of this owner (`Scope.key`)."""
    return digest("entity", owner, key)


def slot_id(subject: str, key: str) -> str:
    """Build the id of the slot of a subject and a folded type of relation."""
    return digest("slot", subject, key)


def relation_id(subject: str, key: str, object_: str, begins: int) -> str:
    """Build the id of a relation from the ids of its entities, its folded type and beginning."""
    return digest("relation", subject, key, object_, begins)


def relation_ids(owner: str, relation: Relation) -> tuple[str, str, str]:
    """Build the ids of a relation, its subject and its object in the graph of this owner."""
    subject, object_ = (
        entity_id(owner, fold(name)) for name in (relation.subject, relation.object)
    )
    begins = rows.to_beginning(relation.valid_from)
    return relation_id(subject, relation.key, object_, begins), subject, object_


def pair_ids(partition: str, name: str) -> list[str]:
    """Build the ids of the overlapping pairs of letters of a folded name, sorted."""
    return sorted(f"{partition}:{pair}" for pair in pairs_of(name))


def load_parameters(changes: Sequence[Put | Remove]) -> dict[str, list[Any]]:
    """Build the parameters of `LOAD`: what the changes lock and read, sorted."""
    puts = [change for change in changes if isinstance(change, Put)]
    scopes = {put.record.scope for put in puts}
    removals = {change.scope for change in changes if isinstance(change, Remove)}
    return {
        "partitions": sorted({scope.partition for scope in scopes | removals}),
        "ids": sorted(
            {change.record.id if isinstance(change, Put) else change.id for change in changes}
        ),
        "fences": fence_keys(scopes),
        "sessions": sorted({put.record.scope.key for put in puts if put.in_session}),
        "restored": sorted({put.record.id for put in puts if put.restores}),
    }


def owners_of_repeated_removals(
    changes: Sequence[Put | Remove], records: Sequence[Mapping[str, Any]]
) -> list[Scope]:
    """List the owners of records that are removed again: their outcome has all that they assert.

    Args:
        records: those of the changes that the store has, tombstones included.
    """
    removals = [change for change in changes if isinstance(change, Remove)]
    done = Counter((removal.id, removal.version) for removal in removals)
    done.update((record["id"], record["version"]) for record in records if not record["live"])
    found = (removal.scope.owner for removal in removals if done[removal.id, removal.version] > 1)
    return list(dict.fromkeys(found))


def fence_keys(scopes: Iterable[Scope]) -> list[str]:
    """List the keys of all scopes whose erasure covers one of these scopes, sorted."""
    return sorted({cover.key for scope in scopes for cover in scope.covering()})


def assertion_parameters(
    changes: Sequence[Put | Remove], records: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Build the parameters of `ASSERTIONS`: entities, relations and slots of the changes.

    Args:
        records: those of the changes that the store has: each belongs to its own owner, whose scope
            may be narrower than that of a change.
    """
    puts = [change for change in changes if isinstance(change, Put)]
    owners = {(record["id"], scope_of(record).owner.key) for record in records}
    owners |= {(put.record.id, put.record.scope.owner.key) for put in puts}
    asserted: dict[str, list[Relation]] = {}
    retracted = {record["id"]: record.get("retracted") for record in records}
    for put in puts:
        stated = put.relations or ()
        if put.restores:
            stated = rows.from_retracted(retracted.get(put.record.id))
        asserted.setdefault(put.record.id, []).extend(stated)
    entities, relations, slots = set(), set(), set()
    for record, owner in owners:
        for relation in asserted.get(record, ()):
            id_, subject, object_ = relation_ids(owner, relation)
            entities |= {subject, object_}
            relations.add(id_)
            if relation.single_valued:
                slots.add(slot_id(subject, relation.key))
    return {
        "entities": sorted(entities),
        "relations": sorted(relations),
        "slots": sorted(slots),
    }


def load_records(overlay: Overlay, found: Mapping[str, Any]) -> None:
    """Copy a row of `LOAD` to an overlay."""
    overlay.load("record", found["records"])
    accesses = ((node["id"], at) for node in found["records"] for at in node.get("recalls") or ())
    overlay.load("recall", ({"record": id_, "at": at} for id_, at in accesses))
    overlay.load("version", (*found["versions"], *found["former"]))
    overlay.load("erasure", ({**fence, "key": fence["id"]} for fence in found["fences"]))
    overlay.load("session", ({**session, "key": session["id"]} for session in found["sessions"]))


def load_assertions(overlay: Overlay, found: Mapping[str, Any]) -> None:
    """Copy a row of `ASSERTIONS` to an overlay, with entities and relations numbered by age."""
    overlay.load("record", found["records"])
    ends = {end["id"]: end for row in found["relations"] for end in row["ends"]}
    ends |= {entity["id"]: entity for entity in found["entities"]}
    entities = sorted(ends.values(), key=itemgetter("seq", "id"))
    relations = sorted(found["relations"], key=itemgetter("seq", "id"))
    numbers = {entity["id"]: number for number, entity in enumerate(entities, start=1)}
    overlay.load("entity", ({**entity, "id": numbers[entity["id"]]} for entity in entities))
    overlay.load(
        "relation",
        (
            {
                **relation,
                "id": n,
                "subject": numbers[relation["subject"]],
                "object": numbers[relation["object"]],
            }
            for n, relation in enumerate(relations, start=1)
        ),
    )
    overlay.load(
        "support",
        (
            {**support, "relation": n}
            for n, relation in enumerate(relations, start=1)
            for support in relation["supports"]
        ),
    )


def to_record(node: Mapping[str, Any]) -> Record:
    """Convert a node to a record."""
    return rows.to_record([node.get(name) for name in rows.RecordColumns._fields])


def to_version(node: Mapping[str, Any]) -> Version:
    """Convert a node to a version."""
    return rows.to_version([node.get(name) for name in rows.VERSION])


def scope_of(node: Mapping[str, Any]) -> Scope:
    """Read the scope of a node."""
    return rows.to_scope(node.get("user_id"), node.get("agent_id"), node.get("session_id"))


def save_parameters(
    overlay: Overlay, partitions: Sequence[Mapping[str, Any]]
) -> dict[str, list[Properties]]:
    """Build the parameters of the `SAVE` texts from an overlay; each may be empty.

    Args:
        partitions: that are locked, with the next sequence number of each.
    """
    records, sessions = overlay.difference("record"), overlay.difference("session")
    versions, accesses = overlay.difference("version"), overlay.difference("recall")
    return {
        "records": [_to_node(row) for row in records.created],
        "records_changed": [_to_node(row) for row in records.changed],
        "accesses": [
            {"id": id_, "recalls": overlay.accesses(id_) or None}
            for id_ in sorted({row["record"] for row in (*accesses.created, *accesses.removed)})
        ],
        "versions": versions.created,
        "sessions": [
            _to_node(row, id=row["key"], key=None) for row in (*sessions.created, *sessions.changed)
        ],
        **_relation_parameters(overlay, partitions),
    }


def _relation_parameters(
    overlay: Overlay, partitions: Sequence[Mapping[str, Any]]
) -> dict[str, list[Properties]]:
    entities, relations = overlay.difference("entity"), overlay.difference("relation")
    supports = overlay.difference("support")
    before = _entity_ids(overlay.loaded("entity"))
    after = before | _entity_ids(entities.created)
    by_number = {row["id"]: _relation(row, before) for row in overlay.loaded("relation")}
    by_number |= {row["id"]: _relation(row, after) for row in relations.created}
    nodes = {
        row["id"]: _to_node(row, id=after[row["id"]], word=digest(row["key"]))
        for row in (*entities.created, *entities.changed)
    }
    created = [
        *(nodes[row["id"]] for row in entities.created),
        *(by_number[row["id"]]["own"] for row in relations.created),
    ]
    numbers = {partition["id"]: count(partition["next"]) for partition in partitions}
    for own in created:
        own["seq"] = next(numbers[own["partition"]])
    used = sorted({own["partition"] for own in created})
    return {
        "partitions": [{"id": partition, "next": next(numbers[partition])} for partition in used],
        "supports_removed": [_support(row, by_number) for row in supports.removed],
        "relations_removed": [
            {"id": by_number[row["id"]]["own"]["id"]} for row in relations.removed
        ],
        "entities": list(nodes.values()),
        "pairs": [
            {"entity": after[row["id"]], "pairs": pair_ids(_partition(row), row["key"])}
            for row in entities.created
        ],
        "relations": [by_number[row["id"]] for row in relations.created],
        "relations_changed": [_relation(row, after) for row in relations.changed],
        "supports": [_support(row, by_number) for row in (*supports.created, *supports.changed)],
        "entities_removed": [{"id": before[row["id"]]} for row in entities.removed],
    }


def _entity_ids(entities: Iterable[Properties]) -> dict[int, str]:
    return {entity["id"]: entity_id(entity["scope"], entity["key"]) for entity in entities}


def _relation(row: Properties, entity_ids: Mapping[int, str]) -> Properties:
    subject, object_ = entity_ids[row["subject"]], entity_ids[row["object"]]
    id_ = relation_id(subject, row["key"], object_, row["valid_from"])
    own = _to_node(row, id=id_, slot=slot_id(subject, row["key"]))
    del own["subject"], own["object"]
    return {"own": own, "subject": subject, "object": object_}


def _support(row: Properties, relations: Mapping[int, Properties]) -> Properties:
    return {**row, "relation": relations[row["relation"]]["own"]["id"]}


def _to_node(row: Mapping[str, Any], **more: Any) -> Properties:
    """Convert a row to a node in the partition of its owner."""
    plain = {name: bool(value) if name in _FLAGS else value for name, value in row.items()}
    return {**plain, "partition": _partition(row), **more}


def _partition(row: Mapping[str, Any]) -> str:
    return scope_of(row).partition
