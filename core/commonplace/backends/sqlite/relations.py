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
from typing import Any

from ...model import Entity, Record, Relation, Scope, fold, now
from ...ports.stores import Expansion
from ..shared import rows
from ..shared.graph_expansion import ALIASES, MOST_ALIASES, Edge, walk
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
  partition TEXT NOT NULL, pair TEXT NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (partition, pair, entity)
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
_USED = (
    "EXISTS (SELECT 1 FROM relation WHERE subject = entity.id)"
    " OR EXISTS (SELECT 1 FROM relation INDEXED BY relation_by_object WHERE object = entity.id)"
)
_RIVALS = (
    "SELECT DISTINCT t.record FROM support s CROSS JOIN relation r ON r.id = s.relation"
    " CROSS JOIN relation q ON q.subject = r.subject AND q.key = r.key AND q.object <> r.object"
    " AND q.valid_from = r.valid_from CROSS JOIN support t ON t.relation = q.id"
    " WHERE s.record = ? AND s.expired_at IS NULL AND r.single AND r.conflict AND q.single"
    " AND t.expired_at IS NULL AND t.record <> ? ORDER BY t.record"
)
Slot = tuple[int, str]


def state(connection: Connection, record: Record, said: Sequence[Relation]) -> list[Record]:
    """Make `said` all that the record states; what it stated before and not now expires.

    Answers the other records that this ended, opened or contradicted.
    """
    at = rows.to_micros(record.updated_at) or 0
    held = relation_ids_of(connection, record.id)
    kept = {relate(connection, record.scope.owner, one, at): one for one in said}
    if not held and not kept:
        return []
    slots = _slots(connection, held | kept.keys())
    connection.executemany(
        "UPDATE support SET expired_at = ? WHERE relation = ? AND record = ?"
        " AND expired_at IS NULL",
        [(at, one, record.id) for one in held - kept.keys()],
    )
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE"
        " SET single = excluded.single, valid_to = excluded.valid_to, expired_at = NULL",
        [
            (one, record.id, bool(said.single_valued), rows.to_micros(said.valid_to))
            for one, said in kept.items()
        ],
    )
    return _settle(connection, held | kept.keys(), slots, by=record.id)


def withdraw(connection: Connection, record: str) -> list[Record]:
    """Take back all that a record states or stated, and drop what nothing states any more."""
    held = relation_ids_of(connection, record)
    if not held:
        return []
    slots = _slots(connection, held)
    connection.execute("DELETE FROM support WHERE record = ?", (record,))
    drop(connection, held)
    return _settle(connection, held, slots, by=record)


def mates(connection: Connection, record: str) -> list[Record]:
    """Read the other records that state a value of the single-valued relations of this one."""
    slots = _slots(connection, relation_ids_of(connection, record))
    found = {one for slot in slots for _, owners in _claims(connection, slot) for one in owners}
    return [one for key in sorted(found - {record}) if (one := _read(connection, key))]


def claimants(connection: Connection, scope: Scope) -> list[Record]:
    """Read all records of a user, or of his agent, that state a single-valued relation."""
    agent = "" if scope.agent_id is None else " AND r.agent_id = ?"
    index = "relation_by_user" if scope.agent_id is None else "relation_by_agent"
    sql = (
        f"SELECT DISTINCT s.record FROM relation r INDEXED BY {index} CROSS JOIN support s"  # noqa: S608 -- parts are ours
        f" ON s.relation = r.id WHERE r.user_id IS ?{agent} AND r.single AND s.expired_at IS NULL"
    )
    values = [scope.user_id, *([scope.agent_id] if agent else [])]
    found = connection.execute(sql, values).fetchall()
    return [one for row in sorted(found) if (one := _read(connection, row[0]))]


def erase(
    connection: Connection, doomed: str, values: Sequence[Any]
) -> tuple[dict[str, int], list[Record]]:
    """Take back what the records that `doomed` selects state, and what hung on it.

    Answers the rows removed, and the records that this opened again.
    """
    held = {
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT relation FROM support WHERE record IN ({doomed})",  # noqa: S608 -- parts are ours
            values,
        )
    }
    slots = _slots(connection, held)
    connection.execute(f"DELETE FROM support WHERE record IN ({doomed})", values)  # noqa: S608 -- parts are ours
    relations, entities = drop(connection, held)
    touched = _settle(connection, held, slots, by=None)
    return {"relations": relations, "entities": entities}, touched


def relation_ids_of(connection: Connection, record: str) -> set[int]:
    """Read the relations that a record states or stated."""
    sql = "SELECT relation FROM support WHERE record = ?"
    return {row[0] for row in connection.execute(sql, (record,))}


def relate(connection: Connection, owner: Scope, one: Relation, at: int) -> int:
    """Find or make a relation, first said at `at`; answer its number."""
    subject = entity(connection, owner, one.subject, one.subject_type)
    object_ = entity(connection, owner, one.object, one.object_type)
    row = connection.execute(
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
    return int(row[0])


def entity(connection: Connection, owner: Scope, name: str, kind: str) -> int:
    """Find or make an entity; answer its number."""
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
    elif row[1] == "thing" != kind:
        connection.execute("UPDATE entity SET type = ? WHERE id = ?", (kind, row[0]))
    return int(row[0])


def drop(connection: Connection, relations: Collection[int]) -> tuple[int, int]:
    """Drop what nothing states any more; answer how many relations and entities that were."""
    gone = connection.execute(
        "DELETE FROM relation WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM support WHERE relation = relation.id)"
        " RETURNING subject, object",
        (json.dumps(sorted(relations)),),
    ).fetchall()
    return len(gone), _forget_unused(connection, (end for row in gone for end in row))


def _forget_unused(connection: Connection, entities: Iterable[int]) -> int:
    chosen = json.dumps(sorted(set(entities)))
    gone = connection.execute(
        f"DELETE FROM entity WHERE id IN (SELECT value FROM json_each(?)) AND NOT ({_USED})"  # noqa: S608 -- a constant
        " RETURNING id",
        (chosen,),
    ).fetchall()
    connection.executemany("DELETE FROM pair WHERE entity = ?", gone)
    return len(gone)


# -- settling --------------------------------------------------------------------------------------


def _slots(connection: Connection, relations: Collection[int]) -> set[Slot]:
    sql = "SELECT subject, key FROM relation WHERE id = ? AND single"
    found = (connection.execute(sql, (one,)).fetchone() for one in relations)
    return {(row[0], row[1]) for row in found if row}


def _settle(
    connection: Connection, relations: Collection[int], slots: Collection[Slot], *, by: str | None
) -> list[Record]:
    """Bring relations and their slots up to date, then the records that state them.

    Args:
        slots: those that the relations had before.
        by: the record that is written; it is not among those that are answered.
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
    stating = connection.execute(sql, (json.dumps(sorted(relations)),)).fetchall()
    affected = dict.fromkeys([*([by] if by else []), *(row[0] for row in stating)])
    for slot in sorted(slots):
        found = _claims(connection, slot)
        spans = resolve([claim for claim, _ in found])
        for (claim, owners), span in zip(found, spans, strict=True):
            connection.execute(
                "UPDATE relation SET valid_to = ?, conflict = ? WHERE subject = ? AND key = ?"
                " AND object = ? AND valid_from = ?",
                (span.ends, bool(span.rivals), *slot, claim.value, claim.begins),
            )
            affected |= dict.fromkeys(owners)
    marked = [one for one in affected if _mark(connection, one) and one != by]
    return [one for key in marked if (one := _read(connection, key))]


def _claims(connection: Connection, slot: Slot) -> list[tuple[Assertion, list[str]]]:
    sql = (
        "SELECT r.object, r.valid_from, min(s.valid_to), json_group_array(s.record)"
        " FROM relation r CROSS JOIN support s ON s.relation = r.id"
        " WHERE r.subject = ? AND r.key = ? AND r.single AND s.expired_at IS NULL"
        " GROUP BY r.id ORDER BY r.id"
    )
    return [
        (Assertion(row[0], row[1], row[2]), json.loads(row[3]))
        for row in connection.execute(sql, slot).fetchall()
    ]


def _mark(connection: Connection, record: str) -> bool:
    """Write until when a record is true and what contradicts it; tell whether that is new."""
    claims, ended, ends = connection.execute(
        "SELECT count(*), count(r.valid_to), max(r.valid_to) FROM support s CROSS JOIN relation r"
        " ON r.id = s.relation WHERE s.record = ? AND s.expired_at IS NULL AND r.single",
        (record,),
    ).fetchone()
    valid_to = ends if claims and claims == ended else None
    conflicts = json.dumps([row[0] for row in connection.execute(_RIVALS, (record, record))])
    changed = connection.execute(
        "UPDATE record SET valid_to = ?, conflicts = ?"
        " WHERE id = ? AND live = 1 AND (valid_to IS NOT ? OR conflicts <> ?)",
        (valid_to, conflicts, record, valid_to, conflicts),
    )
    return changed.rowcount > 0


def _read(connection: Connection, record: str) -> Record | None:
    sql = f"SELECT {rows.RECORD} FROM record WHERE id = ? AND live = 1"  # noqa: S608 -- a constant
    row = connection.execute(sql, (record,)).fetchone()
    return rows.from_row(row) if row else None


_READ = (
    "SELECT s.name, r.predicate, o.name, s.type, o.type, r.valid_from, r.valid_to, r.single,"
    " r.created_at, r.expired_at, r.conflict, ({stated}), r.id, r.subject, r.object"
    " FROM relation r {index} CROSS JOIN entity s ON s.id = r.subject"
    " CROSS JOIN entity o ON o.id = r.object WHERE {where} ORDER BY r.id"
)
_AROUND = (
    "r.id IN (SELECT id FROM relation WHERE subject IN (SELECT value FROM json_each(?)) UNION"
    " SELECT id FROM relation INDEXED BY relation_by_object"
    " WHERE object IN (SELECT value FROM json_each(?)))"
)
Part = tuple[str, list[Any]]  # of a condition, with its parameters


def read(
    connection: Connection, scope: Scope, entity: str | None, hops: int, current: Part
) -> list[Relation]:
    """Read the relations that the scope covers, around one entity or all, by age.

    Args:
        current: the condition of when they hold, as `holding` writes it.
    """
    if entity is None:
        return [_relation(row) for row in _rows(connection, scope, current)]
    near = _with_aliases(connection, scope, _named(connection, scope, [fold(entity)]))
    found: dict[int, Relation] = {}
    for _ in range(hops):
        around = _rows(connection, scope, current, _around(near))
        found |= {row[12]: _relation(row) for row in around}
        near |= {end for row in around for end in row[13:15]}
    return [found[one] for one in sorted(found)]


def stated_by(
    connection: Connection, scope: Scope, records: Collection[str], current: Part
) -> list[Relation]:
    """Read the relations that some of the scope's records state, by age."""
    chosen = set(records)
    stated = "SELECT relation FROM support WHERE record IN (SELECT value FROM json_each(?))"
    around = f"r.id IN ({stated})", [json.dumps(sorted(chosen))]
    found = map(_relation, _rows(connection, scope, current, around))
    # What a record has stated before it was changed is not what it states.
    return [one for one in found if not chosen.isdisjoint(one.supports)]


def holding(
    *, include_superseded: bool, as_of: datetime | None, at: datetime | None = None
) -> Part:
    """Write the condition that a relation `r` holds: at `as_of`, or now, or in any case."""
    if as_of is None and include_superseded:
        return "1", []
    moment = rows.to_micros(as_of or at or now())
    held = "r.expired_at IS NULL AND (r.valid_to IS NULL OR r.valid_to > ?)"
    return (held, [moment]) if as_of is None else (f"{held} AND r.valid_from <= ?", [moment] * 2)


def entities(connection: Connection, scope: Scope) -> list[Entity]:
    """Read the entities of relations that have not expired, by name; alike names are one."""
    found = _rows(connection, scope, ("r.expired_at IS NULL", []))
    return distinct(end for row in found for end in ((row[0], row[3]), (row[2], row[4])))


def count(connection: Connection, scope: Scope) -> dict[str, int]:
    """Count the relations that the scope covers, the expired too, and the entities they name."""
    found = _rows(connection, scope, ("1", []))
    return {"relations": len(found), "entities": len({end for row in found for end in row[13:15]})}


def expand(
    connection: Connection, scope: Scope, names: Sequence[str], at: datetime
) -> list[Expansion]:
    """Find records by the entities that the names may mean, over at most two relations."""
    named = _named(connection, scope, names) or _alike(connection, scope, names)
    if not named:
        return []
    named = _with_aliases(connection, scope, named)
    return walk(named, names, partial(_edges, connection, scope, at))


def _edges(connection: Connection, scope: Scope, at: datetime, near: Collection[int]) -> list[Edge]:
    stated, session = _stated(scope)
    parts = [
        _around(near),
        _owned(scope, "r"),
        holding(include_superseded=False, as_of=None, at=at),
    ]
    where = " AND ".join(clause for clause, _ in parts)
    sql = f"SELECT r.subject, r.key, r.object, ({stated}) FROM relation r WHERE {where}"  # noqa: S608 -- parts are ours
    values = [value for _, some in parts for value in some]
    return [
        Edge(row[0], row[1], row[2], records)
        for row in connection.execute(sql, (*session, *values))
        if (records := tuple(sorted(json.loads(row[3]))))
    ]


def _rows(
    connection: Connection, scope: Scope, current: Part, around: Part | None = None
) -> list[tuple[Any, ...]]:
    stated, session = _stated(scope)
    parts = [current, _owned(scope, "r")]
    index = ""
    if around is not None:
        parts.append(around)
    elif scope.session_id is not None:
        parts.append(_in_session(scope))
    else:
        index = rows.index(scope, "relation")
    where = " AND ".join(clause for clause, _ in parts)
    values = [value for _, some in parts for value in some]
    sql = _READ.format(stated=stated, index=index, where=where)
    found = connection.execute(sql, (*session, *values)).fetchall()
    return [row for row in found if row[11] != "[]"]


def _around(near: Collection[int]) -> Part:
    chosen = json.dumps(sorted(near))
    return _AROUND, [chosen, chosen]


def _owned(scope: Scope, table: str) -> Part:
    """Ask for what belongs to an owner whose records the scope may cover."""
    parts, values = [f"{table}.user_id IS ?"], [scope.user_id]
    if scope.agent_id is not None:
        parts.append(f"{table}.agent_id = ?")
        values.append(scope.agent_id)
    return " AND ".join(parts), values


def _in_session(scope: Scope) -> Part:
    clause, values = rows.covered(scope, "x")
    records = "record x INDEXED BY record_by_session CROSS JOIN support y ON y.record = x.id"
    return f"r.id IN (SELECT y.relation FROM {records} WHERE {clause})", values  # noqa: S608 -- parts are ours


def _stated(scope: Scope) -> Part:
    """Read the covered records that state a relation, or that did if it has expired."""
    sql = (
        "SELECT json_group_array(t.record) FROM support t WHERE t.relation = r.id"
        " AND (t.expired_at IS NULL OR r.expired_at IS NOT NULL)"
    )
    if scope.session_id is None:
        return sql, []
    clause, values = rows.covered(scope, "x")
    return f"{sql} AND EXISTS (SELECT 1 FROM record x WHERE x.id = t.record AND {clause})", values  # noqa: S608 -- parts are ours


# -- names -----------------------------------------------------------------------------------------


def _named(connection: Connection, scope: Scope, keys: Sequence[str]) -> set[int]:
    clause, values = _owned(scope, "e")
    index = "entity_by_user" if scope.agent_id is None else "entity_by_agent"
    sql = (
        f"SELECT e.id FROM entity e INDEXED BY {index} WHERE {clause}"  # noqa: S608 -- parts are ours
        " AND e.key IN (SELECT value FROM json_each(?))"
    )
    return {row[0] for row in connection.execute(sql, (*values, json.dumps(list(keys))))}


def _alike(connection: Connection, scope: Scope, names: Sequence[str]) -> set[int]:
    """Find, for each name, the entity whose name shares most pairs of letters with it."""
    some = "SELECT 1 FROM pair WHERE partition = ? LIMIT 1"
    if connection.execute(some, (scope.partition,)).fetchone() is None:
        return set()
    clause, values = _owned(scope, "e")
    sql = (
        "SELECT e.key, count(*), e.id, e.id FROM pair p CROSS JOIN entity e ON e.id = p.entity"  # noqa: S608 -- parts are ours
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
    marks = ", ".join("?" * len(ALIASES))
    sql = (
        f"SELECT r.subject, r.object FROM relation r WHERE {_AROUND} AND r.key IN ({marks})"  # noqa: S608 -- parts are ours
        f" AND r.expired_at IS NULL AND {clause}"
    )
    found = set(named)
    for _ in range(MOST_ALIASES):
        around = _around(found)[1]
        pairs = connection.execute(sql, (*around, *ALIASES, *values)).fetchall()
        more = {end for pair in pairs for end in pair} - found
        if not more:
            break
        found |= more
    return found


def _relation(row: Sequence[Any]) -> Relation:
    return Relation(
        subject=row[0],
        predicate=row[1],
        object=row[2],
        subject_type=row[3],
        object_type=row[4],
        valid_from=rows.from_beginning(row[5]),
        valid_to=rows.from_micros(row[6]),
        single_valued=bool(row[7]),
        created_at=rows.at_micros(row[8]),
        expired_at=rows.from_micros(row[9]),
        conflict=bool(row[10]),
        supports=tuple(sorted(json.loads(row[11]))),
    )
