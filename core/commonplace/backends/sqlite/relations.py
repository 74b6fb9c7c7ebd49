"""Relationship graph in SQLite: assertions of records, supersession, and reads by name.

A relation lives as long as a record asserts it, or asserted it before an update; an entity lives as
long as a relation names it. All of it belongs to one owner: a user and agent, over all their
sessions. A scope sees a relation if it covers a record that asserts it, and sees only those records
as its supports.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...model import Entity, Record, Relation, Scope, fold, now
from ...ports.stores import Expansion
from ..shared import graph_expansion, rows
from ..shared.graph_expansion import ALIAS_PREDICATES, MAX_ALIAS_HOPS, Edge
from ..shared.names import distinct, nearest, pairs_of, spellable
from ..shared.supersession import Assertion, resolve

SCHEMA = """
CREATE TABLE IF NOT EXISTS entity (
  id INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT, scope TEXT NOT NULL,
  key TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, UNIQUE (scope, key)
) STRICT;
CREATE INDEX IF NOT EXISTS entity_by_user ON entity (user_id, key);
CREATE INDEX IF NOT EXISTS entity_by_agent ON entity (user_id, agent_id, key);
CREATE TABLE IF NOT EXISTS pair (
  partition TEXT NOT NULL, pair TEXT NOT NULL, entity INTEGER NOT NULL,
  PRIMARY KEY (partition, pair, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pair_by_entity ON pair (entity);
CREATE TABLE IF NOT EXISTS relation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT, agent_id TEXT, session_id TEXT,
  subject INTEGER NOT NULL, key TEXT NOT NULL, object INTEGER NOT NULL, predicate TEXT NOT NULL,
  valid_from INTEGER NOT NULL, valid_to INTEGER, single INTEGER NOT NULL, conflict INTEGER NOT NULL,
  created_at INTEGER NOT NULL, expired_at INTEGER, UNIQUE (subject, key, object, valid_from)
) STRICT;
CREATE INDEX IF NOT EXISTS relation_by_user ON relation (user_id);
CREATE INDEX IF NOT EXISTS relation_by_agent ON relation (user_id, agent_id);
CREATE INDEX IF NOT EXISTS relation_by_object ON relation (object);
CREATE TABLE IF NOT EXISTS support (
  relation INTEGER NOT NULL, record TEXT NOT NULL, single INTEGER NOT NULL, valid_to INTEGER,
  expired_at INTEGER, PRIMARY KEY (relation, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS support_by_record ON support (record)
"""
_LIVE = f"SELECT {', '.join(rows.RecordColumns._fields)} FROM record WHERE id = ? AND live = 1"
_USED = (
    "EXISTS (SELECT 1 FROM relation WHERE subject = entity.id)"
    " OR EXISTS (SELECT 1 FROM relation INDEXED BY relation_by_object WHERE object = entity.id)"
)
_CONFLICTS = (
    "SELECT DISTINCT t.record FROM support s CROSS JOIN relation r ON r.id = s.relation"
    " CROSS JOIN relation q ON q.subject = r.subject AND q.key = r.key AND q.object <> r.object"
    " AND q.valid_from = r.valid_from CROSS JOIN support t ON t.relation = q.id"
    " WHERE s.record = ? AND s.expired_at IS NULL AND r.single AND r.conflict AND q.single"
    " AND t.expired_at IS NULL AND t.record <> ? ORDER BY t.record"
)
# The select list of `RelationColumns`.
_READ = (
    "SELECT s.name, r.predicate, o.name, s.type, o.type, r.valid_from, r.valid_to, r.single,"
    " r.created_at, r.expired_at, r.conflict, ({supports}), r.id, r.subject, r.object"
    " FROM relation r {index} CROSS JOIN entity s ON s.id = r.subject"
    " CROSS JOIN entity o ON o.id = r.object WHERE {where} ORDER BY r.id"
)
_OF_ENTITIES = (
    "r.id IN (SELECT id FROM relation WHERE subject IN (SELECT value FROM json_each(?)) UNION"
    " SELECT id FROM relation INDEXED BY relation_by_object"
    " WHERE object IN (SELECT value FROM json_each(?)))"
)
Condition = tuple[str, list[Any]]  # SQL and its parameters
Slot = tuple[int, str]  # the entity and folded type that a single-valued relation has one value for


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


# -- assertions ------------------------------------------------------------------------------------


def assert_all(
    connection: Connection, record: Record, asserted: Sequence[Relation]
) -> list[Record]:
    """Make `asserted` the relations that a record asserts; its other earlier assertions expire.

    Returns:
        The other records that this ended, reopened or contradicted.
    """
    at = rows.to_micros(record.updated_at)
    before = relation_ids_of(connection, record.id)
    owner = record.scope.owner
    after = {put_relation(connection, owner, one, at): one for one in asserted}
    if not before and not after:
        return []
    slots = _slots(connection, before | after.keys())
    connection.executemany(
        "UPDATE support SET expired_at = ? WHERE relation = ? AND record = ?"
        " AND expired_at IS NULL",
        [(at, one, record.id) for one in before - after.keys()],
    )
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE"
        " SET single = excluded.single, valid_to = excluded.valid_to, expired_at = NULL",
        [
            (id_, record.id, bool(one.single_valued), rows.to_micros(one.valid_to))
            for id_, one in after.items()
        ],
    )
    return _resolve(connection, before | after.keys(), slots, by=record.id)


def retract_all(connection: Connection, record: str) -> list[Record]:
    """Retract all that a record asserts or asserted, and drop relations without any assertion.

    Returns:
        The other records that this reopened, or no longer contradicts.
    """
    retracted = relation_ids_of(connection, record)
    if not retracted:
        return []
    slots = _slots(connection, retracted)
    connection.execute("DELETE FROM support WHERE record = ?", (record,))
    drop_unsupported(connection, retracted)
    return _resolve(connection, retracted, slots, by=record)


def competing_records(connection: Connection, record: str) -> list[Record]:
    """Read the other records that assert a value of the single-valued relations of this one."""
    slots = _slots(connection, relation_ids_of(connection, record))
    found = {one for slot in slots for _, ids in _assertions(connection, slot) for one in ids}
    return [one for id_ in sorted(found - {record}) if (one := _read_live(connection, id_))]


def asserting_records(connection: Connection, scope: Scope) -> list[Record]:
    """Read all records of a user, or of one agent of that user, that assert a single value."""
    agent = "" if scope.agent_id is None else " AND r.agent_id = ?"
    index = "relation_by_user" if scope.agent_id is None else "relation_by_agent"
    sql = (
        f"SELECT DISTINCT s.record FROM relation r INDEXED BY {index} CROSS JOIN support s"
        f" ON s.relation = r.id WHERE r.user_id IS ?{agent} AND r.single AND s.expired_at IS NULL"
    )
    values = [scope.user_id, *([scope.agent_id] if agent else [])]
    found = connection.execute(sql, values).fetchall()
    return [one for (id_,) in sorted(found) if (one := _read_live(connection, id_))]


def erase(
    connection: Connection, erased: str, values: Sequence[Any]
) -> tuple[dict[str, int], list[Record]]:
    """Retract all assertions of the records that the query `erased` selects.

    Returns:
        The numbers of relations and entities removed, and the records that this reopened.
    """
    sql = f"SELECT DISTINCT relation FROM support WHERE record IN ({erased})"
    retracted = {id_ for (id_,) in connection.execute(sql, values)}
    slots = _slots(connection, retracted)
    connection.execute(f"DELETE FROM support WHERE record IN ({erased})", values)
    relations, entities = drop_unsupported(connection, retracted)
    reopened = _resolve(connection, retracted, slots, by=None)
    return {"relations": relations, "entities": entities}, reopened


def relation_ids_of(connection: Connection, record: str) -> set[int]:
    """Read the ids of the relations that a record asserts or asserted."""
    sql = "SELECT relation FROM support WHERE record = ?"
    return {id_ for (id_,) in connection.execute(sql, (record,))}


def put_relation(connection: Connection, owner: Scope, one: Relation, at: int) -> int:
    """Find a relation, or make it with the creation time `at`; return its id."""
    subject = put_entity(connection, owner, one.subject, one.subject_type)
    object_ = put_entity(connection, owner, one.object, one.object_type)
    (id_,) = connection.execute(
        "INSERT INTO relation (user_id, agent_id, session_id, subject, key, object, predicate,"
        " valid_from, single, conflict, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?)"
        " ON CONFLICT (subject, key, object, valid_from) DO UPDATE SET key = excluded.key"
        " RETURNING id",
        (
            owner.user_id,
            owner.agent_id,
            owner.session_id,
            subject,
            fold(one.predicate),
            object_,
            one.predicate,
            rows.to_beginning(one.valid_from),
            at,
        ),
    ).fetchone()
    return int(id_)


def put_entity(connection: Connection, owner: Scope, name: str, kind: str) -> int:
    """Find or make an entity; return its id."""
    key = fold(name)
    sql = "SELECT id, type FROM entity WHERE scope = ? AND key = ?"
    row = connection.execute(sql, (owner.key, key)).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO entity (user_id, agent_id, session_id, scope, key, name, type)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id, type",
            (owner.user_id, owner.agent_id, owner.session_id, owner.key, key, name, kind),
        ).fetchone()
        connection.executemany(
            "INSERT INTO pair VALUES (?, ?, ?)",
            [(owner.partition, pair, row[0]) for pair in pairs_of(key)],
        )
    id_, stored_kind = row
    if stored_kind == "thing" != kind:
        connection.execute("UPDATE entity SET type = ? WHERE id = ?", (kind, id_))
    return int(id_)


def drop_unsupported(connection: Connection, relations: Collection[int]) -> tuple[int, int]:
    """Drop those relations that no record asserts or asserted, and entities without a relation.

    Returns:
        The numbers of relations and entities that were dropped.
    """
    dropped = connection.execute(
        "DELETE FROM relation WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM support WHERE relation = relation.id)"
        " RETURNING subject, object",
        (json.dumps(sorted(relations)),),
    ).fetchall()
    return len(dropped), _drop_unused(connection, (end for row in dropped for end in row))


def _drop_unused(connection: Connection, entities: Iterable[int]) -> int:
    chosen = json.dumps(sorted(set(entities)))
    dropped = connection.execute(
        f"DELETE FROM entity WHERE id IN (SELECT value FROM json_each(?)) AND NOT ({_USED})"
        " RETURNING id",
        (chosen,),
    ).fetchall()
    connection.executemany("DELETE FROM pair WHERE entity = ?", dropped)
    return len(dropped)


def _slots(connection: Connection, relations: Collection[int]) -> set[Slot]:
    sql = "SELECT subject, key FROM relation WHERE id = ? AND single"
    found = (connection.execute(sql, (one,)).fetchone() for one in relations)
    return {(subject, key) for subject, key in filter(None, found)}


def _resolve(
    connection: Connection, relations: Collection[int], slots: Collection[Slot], *, by: str | None
) -> list[Record]:
    """Update relations and the other relations of their slots, then the records that assert them.

    Args:
        slots: those that the relations had before.
        by: the record that is written; it is not returned.

    Returns:
        The records that changed.
    """
    connection.executemany(
        "UPDATE relation SET conflict = 0,"
        " valid_to = (SELECT min(valid_to) FROM support WHERE relation = id"
        " AND expired_at IS NULL), single = coalesce((SELECT max(single) FROM support"
        " WHERE relation = id AND expired_at IS NULL), single), expired_at = CASE WHEN EXISTS"
        " (SELECT 1 FROM support WHERE relation = id AND expired_at IS NULL) THEN NULL"
        " ELSE (SELECT max(expired_at) FROM support WHERE relation = id) END WHERE id = ?",
        [(one,) for one in relations],
    )
    slots = {*slots, *_slots(connection, relations)}
    if not slots:
        return []
    sql = (
        "SELECT DISTINCT record FROM support WHERE relation IN (SELECT value FROM json_each(?))"
        " AND expired_at IS NULL"
    )
    asserting = connection.execute(sql, (json.dumps(sorted(relations)),)).fetchall()
    affected = dict.fromkeys([*([by] if by else []), *(id_ for (id_,) in asserting)])
    for slot in sorted(slots):
        found = _assertions(connection, slot)
        spans = resolve([assertion for assertion, _ in found])
        for (assertion, records), span in zip(found, spans, strict=True):
            connection.execute(
                "UPDATE relation SET valid_to = ?, conflict = ? WHERE subject = ? AND key = ?"
                " AND object = ? AND valid_from = ?",
                (span.ends, bool(span.conflicts), *slot, assertion.value, assertion.begins),
            )
            affected |= dict.fromkeys(records)
    changed = [one for one in affected if _update_record(connection, one) and one != by]
    return [one for id_ in changed if (one := _read_live(connection, id_))]


def _assertions(connection: Connection, slot: Slot) -> list[tuple[Assertion, list[str]]]:
    sql = (
        "SELECT r.object, r.valid_from, min(s.valid_to), json_group_array(s.record)"
        " FROM relation r CROSS JOIN support s ON s.relation = r.id"
        " WHERE r.subject = ? AND r.key = ? AND r.single AND s.expired_at IS NULL"
        " GROUP BY r.id ORDER BY r.id"
    )
    return [
        (Assertion(value, begins, ends), rows.from_json(records))
        for value, begins, ends, records in connection.execute(sql, slot).fetchall()
    ]


def _update_record(connection: Connection, record: str) -> bool:
    """Set until when a record is true and what contradicts it; return whether that changed."""
    asserted, ended, ends = connection.execute(
        "SELECT count(*), count(r.valid_to), max(r.valid_to) FROM support s CROSS JOIN relation r"
        " ON r.id = s.relation WHERE s.record = ? AND s.expired_at IS NULL AND r.single",
        (record,),
    ).fetchone()
    valid_to = ends if asserted and asserted == ended else None
    conflicts = json.dumps([id_ for (id_,) in connection.execute(_CONFLICTS, (record, record))])
    changed = connection.execute(
        "UPDATE record SET valid_to = ?, conflicts = ?"
        " WHERE id = ? AND live = 1 AND (valid_to IS NOT ? OR conflicts <> ?)",
        (valid_to, conflicts, record, valid_to, conflicts),
    )
    return changed.rowcount > 0


def _read_live(connection: Connection, record: str) -> Record | None:
    row = connection.execute(_LIVE, (record,)).fetchone()
    return rows.to_record(row) if row else None


# -- reads -----------------------------------------------------------------------------------------


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
        Edge(subject, key, object_, records)
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
    )
