"""Relationship graph in SQLite: reads of relations, entities, and expansion by name.

A scope sees a relation if it covers a record that asserts it, and sees only those records as its
supports.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...dedup_key import split_key
from ...ports.stores import Expansion
from ...types import Entity, Relation, Scope, fold, now
from ..shared import graph_expansion, rows
from ..shared.graph_expansion import ALIAS_PREDICATES, MAX_ALIAS_HOPS, Edge
from ..shared.names import distinct, nearest, pairs_of, spellable

# The select list of `RelationColumns`.
_READ = (
    "SELECT s.name, r.predicate, o.name, s.type, o.type, r.valid_from, r.valid_to, r.single,"
    " r.created_at, r.expired_at, r.conflict, ({supports}), r.id, r.subject, r.object, r.key"
    " FROM relation r {index} CROSS JOIN entity s ON s.id = r.subject"
    " CROSS JOIN entity o ON o.id = r.object WHERE {where} ORDER BY r.id"
)
_OF_ENTITIES = (
    "r.id IN (SELECT id FROM relation WHERE subject IN (SELECT value FROM json_each(?)) UNION"
    " SELECT id FROM relation INDEXED BY relation_by_object"
    " WHERE object IN (SELECT value FROM json_each(?)))"
)
Condition = tuple[str, list[Any]]  # SQL and its parameters


class RelationColumns(NamedTuple):
    """A relation with its two entities as a row."""

    subject: str
    predicate: str
    object: str
    subject_type: str
    object_type: str
    valid_from: int
    valid_to: int | None
    single: int
    created_at: int
    expired_at: int | None
    conflict: int
    supports: str
    id: int
    subject_id: int
    object_id: int
    key: str


def read(
    connection: Connection, scope: Scope, entity: str | None, hops: int, current: Condition
) -> list[Relation]:
    """Read the relations that the scope covers, around one entity or all, by age.

    Args:
        current: the condition when they hold, from `holding`.
    """
    if entity is None:
        return [_to_relation(row) for row in _rows(connection, scope, current)]
    reached = _with_aliases(connection, scope, _named(connection, scope, [fold(entity)]))
    found: dict[int, Relation] = {}
    for _ in range(hops):
        batch = _rows(connection, scope, current, _of_entities(reached))
        found |= {row.id: _to_relation(row) for row in batch}
        reached |= {end for row in batch for end in (row.subject_id, row.object_id)}
    return [found[one] for one in sorted(found)]


def read_asserted(
    connection: Connection, scope: Scope, records: Collection[str], current: Condition
) -> list[Relation]:
    """Read the relations that some of the scope's records assert, by age."""
    chosen = set(records)
    asserted = "SELECT relation FROM support WHERE record IN (SELECT value FROM json_each(?))"
    of_records = f"r.id IN ({asserted})", [json.dumps(sorted(chosen))]
    found = map(_to_relation, _rows(connection, scope, current, of_records))
    # What a record asserted before it was updated is not among its assertions.
    return [one for one in found if not chosen.isdisjoint(one.supports)]


def holding(
    *, include_superseded: bool, as_of: datetime | None, at: datetime | None = None
) -> Condition:
    """Build the condition that a relation `r` holds: at `as_of`, or now, or in any case."""
    if as_of is None and include_superseded:
        return "1", []
    moment = rows.to_micros(as_of or at or now())
    held = "r.expired_at IS NULL AND (r.valid_to IS NULL OR r.valid_to > ?)"
    return (held, [moment]) if as_of is None else (f"{held} AND r.valid_from <= ?", [moment] * 2)


def entities(connection: Connection, scope: Scope) -> list[Entity]:
    """Read the entities of relations that have not expired, by name; equal names are one."""
    found = _rows(connection, scope, ("r.expired_at IS NULL", []))
    return distinct(
        end
        for row in found
        for end in ((row.subject, row.subject_type), (row.object, row.object_type))
    )


def count(connection: Connection, scope: Scope) -> dict[str, int]:
    """Count the relations that the scope covers, expired ones included, and their entities."""
    found = _rows(connection, scope, ("1", []))
    ends = {end for row in found for end in (row.subject_id, row.object_id)}
    return {"relations": len(found), "entities": len(ends)}


def expand(
    connection: Connection, scope: Scope, names: Sequence[str], at: datetime
) -> list[Expansion]:
    """Find records by the entities that the names may mean, over at most two relations."""
    named = _named(connection, scope, names) or _similar(connection, scope, names)
    if not named:
        return []
    named = _with_aliases(connection, scope, named)
    return graph_expansion.expand(named, names, partial(_edges, connection, scope, at))


def _edges(
    connection: Connection, scope: Scope, at: datetime, entities: Collection[int]
) -> list[Edge]:
    supports, session = _supports(scope)
    current = holding(include_superseded=False, as_of=None, at=at)
    where, values = _all_of(_of_entities(entities), _owned(scope, "r"), current)
    sql = f"SELECT r.subject, r.key, r.object, ({supports}) FROM relation r WHERE {where}"
    return [
        Edge(subject, split_key(key)[0], object_, records)
        for subject, key, object_, ids in connection.execute(sql, (*session, *values))
        if (records := tuple(sorted(rows.from_json(ids))))
    ]


def _rows(
    connection: Connection, scope: Scope, current: Condition, chosen: Condition | None = None
) -> list[RelationColumns]:
    supports, session = _supports(scope)
    index = ""
    if chosen is None and scope.session_id is not None:
        chosen = _in_session(scope)
    elif chosen is None:
        index = rows.index(scope, "relation")
    conditions = [current, _owned(scope, "r"), *([chosen] if chosen else [])]
    where, values = _all_of(*conditions)
    sql = _READ.format(supports=supports, index=index, where=where)
    found = map(RelationColumns._make, connection.execute(sql, (*session, *values)))
    return [row for row in found if row.supports != "[]"]


def _all_of(*conditions: Condition) -> Condition:
    clauses = [clause for clause, _ in conditions]
    return " AND ".join(clauses), [value for _, values in conditions for value in values]


def _of_entities(entities: Collection[int]) -> Condition:
    chosen = json.dumps(sorted(entities))
    return _OF_ENTITIES, [chosen, chosen]


def _owned(scope: Scope, table: str) -> Condition:
    """Build the condition that a row belongs to an owner whose records the scope may cover."""
    clauses, values = [f"{table}.user_id IS ?"], [scope.user_id]
    if scope.agent_id is not None:
        clauses.append(f"{table}.agent_id = ?")
        values.append(scope.agent_id)
    return " AND ".join(clauses), values


def _in_session(scope: Scope) -> Condition:
    clause, values = rows.covered(scope, "x")
    records = "record x INDEXED BY record_by_session CROSS JOIN support y ON y.record = x.id"
    return f"r.id IN (SELECT y.relation FROM {records} WHERE {clause})", values


def _supports(scope: Scope) -> Condition:
    """Select the covered records that assert a relation, or that did if it has expired."""
    sql = (
        "SELECT json_group_array(t.record) FROM support t WHERE t.relation = r.id"
        " AND (t.expired_at IS NULL OR r.expired_at IS NOT NULL)"
    )
    if scope.session_id is None:
        return sql, []
    clause, values = rows.covered(scope, "x")
    return f"{sql} AND EXISTS (SELECT 1 FROM record x WHERE x.id = t.record AND {clause})", values


def _named(connection: Connection, scope: Scope, keys: Sequence[str]) -> set[int]:
    """Find the entities with one of these folded names."""
    clause, values = _owned(scope, "e")
    index = "entity_by_user" if scope.agent_id is None else "entity_by_agent"
    sql = (
        f"SELECT e.id FROM entity e INDEXED BY {index} WHERE {clause}"
        " AND e.key IN (SELECT value FROM json_each(?))"
    )
    return {id_ for (id_,) in connection.execute(sql, (*values, json.dumps(list(keys))))}


def _similar(connection: Connection, scope: Scope, names: Sequence[str]) -> set[int]:
    """Find, for each name, the entity whose name shares most pairs of letters with it."""
    some = "SELECT 1 FROM pair WHERE partition = ? LIMIT 1"
    if connection.execute(some, (scope.partition,)).fetchone() is None:
        return set()
    clause, values = _owned(scope, "e")
    sql = (
        "SELECT e.key, count(*), e.id, e.id FROM pair p CROSS JOIN entity e ON e.id = p.entity"
        f" WHERE p.partition = ? AND p.pair IN (SELECT value FROM json_each(?)) AND {clause}"
        " GROUP BY e.id ORDER BY count(*) DESC, e.id LIMIT 8"
    )
    asked = {name: json.dumps(sorted(pairs_of(name))) for name in spellable(names)}
    found = {
        nearest(name, connection.execute(sql, (scope.partition, pairs, *values)))
        for name, pairs in asked.items()
    }
    return {one for one in found if one is not None}


def _with_aliases(connection: Connection, scope: Scope, named: set[int]) -> set[int]:
    clause, values = _owned(scope, "r")
    marks = ", ".join("?" * len(ALIAS_PREDICATES))
    sql = (
        f"SELECT r.subject, r.object FROM relation r WHERE {_OF_ENTITIES} AND r.key IN ({marks})"
        f" AND r.expired_at IS NULL AND {clause}"
    )
    found = set(named)
    for _ in range(MAX_ALIAS_HOPS):
        _, chosen = _of_entities(found)
        pairs = connection.execute(sql, (*chosen, *ALIAS_PREDICATES, *values)).fetchall()
        more = {end for pair in pairs for end in pair} - found
        if not more:
            break
        found |= more
    return found


def _to_relation(row: RelationColumns) -> Relation:
    return Relation(
        subject=row.subject,
        predicate=row.predicate,
        object=row.object,
        subject_type=row.subject_type,
        object_type=row.object_type,
        valid_from=rows.from_beginning(row.valid_from),
        valid_to=rows.from_micros(row.valid_to),
        single_valued=bool(row.single),
        created_at=rows.from_micros(row.created_at),
        expired_at=rows.from_micros(row.expired_at),
        conflict=bool(row.conflict),
        supports=tuple(sorted(rows.from_json(row.supports))),
        identity=split_key(row.key)[1],
    )
