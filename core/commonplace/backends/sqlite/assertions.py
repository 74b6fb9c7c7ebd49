"""Assertions of relations by records in SQLite, and the supersession of single values.

A relation lives as long as a record asserts it, or asserted it before an update; an entity lives as
long as a relation names it. All of it belongs to one owner: a user and agent, over all their
sessions.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from sqlite3 import Connection
from typing import Any, NamedTuple

from ...types import Record, Relation, Scope, fold
from ..shared import rows
from ..shared.graph_expansion import pairs_of

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
# When a record was ended itself: then nothing that it asserts holds longer.
_OWN_END = (
    "SELECT valid_to FROM record WHERE id = ? AND NOT EXISTS (SELECT 1 FROM support s"
    " WHERE s.record = record.id AND s.expired_at IS NULL"
    " AND (s.valid_to IS NULL OR s.valid_to > record.valid_to))"
)
_CONFLICTS = (
    "SELECT DISTINCT t.record FROM support s CROSS JOIN relation r ON r.id = s.relation"
    " CROSS JOIN relation q ON q.subject = r.subject AND q.key = r.key AND q.object <> r.object"
    " AND q.valid_from = r.valid_from CROSS JOIN support t ON t.relation = q.id"
    " WHERE s.record = ? AND s.expired_at IS NULL AND r.single AND r.conflict AND q.single"
    " AND t.expired_at IS NULL AND t.record <> ? ORDER BY t.record"
)
Slot = tuple[int, str]  # the entity and folded type that a single-valued relation has one value for
_OF_SLOT = (
    "FROM relation r CROSS JOIN support s ON s.relation = r.id"
    " WHERE r.subject = ? AND r.key = ? AND r.single AND s.expired_at IS NULL"
)
_ASSERTING = f"SELECT s.record {_OF_SLOT} ORDER BY r.id"
# The rule is Graphiti's, without a model: a value holds until the next later one begins, or until
# the end that was asserted with it if that is earlier. Between values that begin at the same moment
# nothing decides, so all of them hold. That depends on the assertions alone and never on the order
# in which they arrived: a late one finds its place, and retracting one reopens what it had ended.
_SUPERSEDE = f"""
WITH value AS (
  SELECT r.id, r.valid_from AS begins, min(s.valid_to) AS ends {_OF_SLOT} GROUP BY r.id
), followed AS (
  SELECT id, ends, count(*) OVER (PARTITION BY begins) > 1 AS conflict, min(begins)
    OVER (ORDER BY begins RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next FROM value
)
UPDATE relation SET conflict = f.conflict, valid_to = coalesce(min(f.ends, f.next), f.ends, f.next)
FROM followed f WHERE relation.id = f.id
"""

_ASSERTED = (
    "SELECT a.key, r.key, b.key, r.valid_from, r.valid_to, r.single, s.valid_to FROM support s"
    " CROSS JOIN relation r ON r.id = s.relation CROSS JOIN entity a ON a.id = r.subject"
    " CROSS JOIN entity b ON b.id = r.object WHERE s.record = ? AND s.expired_at IS NULL"
)
_STATED_NAMES = ("subject", "predicate", "object", "key", "valid_from", "valid_to", "single")
_STATED = (
    "SELECT a.type, b.type, a.name, r.predicate, b.name, r.key, r.valid_from, s.valid_to, s.single"
    " FROM support s CROSS JOIN relation r ON r.id = s.relation"
    " CROSS JOIN entity a ON a.id = r.subject CROSS JOIN entity b ON b.id = r.object"
    " WHERE s.record = ? AND s.expired_at IS NULL ORDER BY r.id"
)


class _Asserted(NamedTuple):
    """A relation that a record asserts.

    Attributes:
        begins, until: of the relation, as it was resolved. ends: as the record asserts it.
    """

    subject: str
    key: str
    object: str
    begins: int
    until: int | None
    single: int
    ends: int | None

    @property
    def name(self) -> tuple[str, str, str]:
        """The folded names of the subject, the predicate and the object."""
        return self.subject, self.key, self.object

    def covers(self, stated: Relation, begins: int) -> bool:
        """Tell whether a relation of the same name that begins at this moment adds nothing."""
        if self.begins == begins:
            return True
        holds = self.begins < begins and (self.until is None or begins < self.until)
        return holds and bool(stated.single_valued and self.single)


def assert_all(
    connection: Connection,
    record: Record,
    asserted: Sequence[Relation],
    *,
    keeps_others: bool = False,
) -> list[Record]:
    """Make `asserted` the relations that a record asserts; its other assertions expire.

    Returns:
        The other records that this ended, reopened or contradicted.
    """
    at = rows.to_micros(record.updated_at)
    before = relation_ids_of(connection, record.id)
    owner = record.scope.owner
    after = {put_relation(connection, owner, relation, at): relation for relation in asserted}
    if not before and not after:
        return []
    slots = _slots(connection, before | after.keys())
    dropped = set() if keeps_others else before - after.keys()
    connection.executemany(
        "UPDATE support SET expired_at = ? WHERE relation = ? AND record = ?"
        " AND expired_at IS NULL",
        [(at, id_, record.id) for id_ in dropped],
    )
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE"
        " SET single = excluded.single, valid_to = excluded.valid_to, expired_at = NULL",
        [
            (id_, record.id, bool(relation.single_valued), rows.to_micros(relation.valid_to))
            for id_, relation in after.items()
        ],
    )
    return _resolve(connection, before | after.keys(), slots, by=record.id)


def unstated(
    connection: Connection, record: Record, stated: Sequence[Relation]
) -> Iterator[Relation]:
    """Yield those relations that a record does not assert yet, or whose end is new.

    A single-valued relation that it asserts, and that holds when the stated one begins, counts as
    the same. Relations that begin after the record expires are left out.
    """
    asserted = [_Asserted(*row) for row in connection.execute(_ASSERTED, (record.id,))]
    for relation in stated:
        name = (fold(relation.subject), relation.key, fold(relation.object))
        begins, ends = rows.to_beginning(relation.valid_from), rows.to_micros(relation.valid_to)
        same = [one for one in asserted if one.name == name and one.covers(relation, begins)]
        same.sort(key=lambda known: known.begins != begins)
        if any(ends in (None, known.ends) for known in same):
            continue
        if same:
            yield replace(relation, valid_from=rows.from_beginning(same[0].begins))
        elif record.expires_at is None:
            yield relation
        elif relation.valid_from is None or relation.valid_from < record.expires_at:
            until = min(relation.valid_to or record.expires_at, record.expires_at)
            yield replace(relation, valid_to=until)


def end_all(connection: Connection, record: Record) -> list[Record]:
    """End the assertions of a record when it ends; those that begin then or later are retracted.

    Returns:
        The other records that this ended, reopened, or no longer contradicts.
    """
    asserted = relation_ids_of(connection, record.id)
    if not asserted:
        return []
    slots = _slots(connection, asserted)
    ends = rows.to_micros(record.valid_to)
    current = "WHERE record = ? AND expired_at IS NULL"
    connection.execute(
        f"UPDATE support SET expired_at = ? {current}"
        " AND (SELECT valid_from FROM relation WHERE id = support.relation) >= ?",
        (rows.to_micros(record.updated_at), record.id, ends),
    )
    connection.execute(
        f"UPDATE support SET valid_to = ? {current} AND (valid_to IS NULL OR valid_to > ?)",
        (ends, record.id, ends),
    )
    return _resolve(connection, asserted, slots, by=record.id)


def asserted_by(connection: Connection, record: str) -> list[Relation]:
    """Read the relations that a record asserts, by age, with the ends that it stated."""
    return [
        rows.to_relation(
            dict(zip(_STATED_NAMES, row[2:], strict=True)),
            subject_type=row[0],
            object_type=row[1],
        )
        for row in connection.execute(_STATED, (record,))
    ]


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
    found = {id_ for slot in slots for id_ in _asserting(connection, slot)}
    return _read_live(connection, sorted(found - {record}))


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
    return _read_live(connection, sorted(id_ for (id_,) in found))


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


def put_relation(connection: Connection, owner: Scope, relation: Relation, at: int) -> int:
    """Find a relation, or make it with the creation time `at`; return its id."""
    subject = put_entity(connection, owner, relation.subject, relation.subject_type)
    object_ = put_entity(connection, owner, relation.object, relation.object_type)
    (id_,) = connection.execute(
        "INSERT INTO relation (user_id, agent_id, session_id, subject, key, object, predicate,"
        " valid_from, single, conflict, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?)"
        " ON CONFLICT (subject, key, object, valid_from) DO UPDATE SET key = excluded.key"
        " RETURNING id",
        (
            *(owner.user_id, owner.agent_id, owner.session_id, subject, relation.key, object_),
            *(relation.predicate, rows.to_beginning(relation.valid_from), at),
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
    dropped = connection.execute(
        f"DELETE FROM entity WHERE id IN (SELECT value FROM json_each(?)) AND NOT ({_USED})"
        " RETURNING id",
        (json.dumps(sorted(set(entities))),),
    ).fetchall()
    connection.executemany("DELETE FROM pair WHERE entity = ?", dropped)
    return len(dropped)


def _slots(connection: Connection, relations: Collection[int]) -> set[Slot]:
    sql = "SELECT subject, key FROM relation WHERE id = ? AND single"
    found = (connection.execute(sql, (id_,)).fetchone() for id_ in relations)
    return {(subject, key) for subject, key in filter(None, found)}


def _resolve(
    connection: Connection, relations: Collection[int], slots: Collection[Slot], *, by: str | None
) -> list[Record]:
    """Update relations and others of their slots, then the records that assert them; return these.

    Args:
        slots: those that the relations had before.
        by: the record that is written; it is not returned.
    """
    connection.executemany(
        "UPDATE relation SET conflict = 0,"
        " valid_to = (SELECT min(valid_to) FROM support WHERE relation = id"
        " AND expired_at IS NULL), single = coalesce((SELECT max(single) FROM support"
        " WHERE relation = id AND expired_at IS NULL), single), expired_at = CASE WHEN EXISTS"
        " (SELECT 1 FROM support WHERE relation = id AND expired_at IS NULL) THEN NULL"
        " ELSE (SELECT max(expired_at) FROM support WHERE relation = id) END WHERE id = ?",
        [(id_,) for id_ in relations],
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
        connection.execute(_SUPERSEDE, slot)
        affected |= dict.fromkeys(_asserting(connection, slot))
    changed = [id_ for id_ in affected if _update_record(connection, id_) and id_ != by]
    return _read_live(connection, changed)


def _asserting(connection: Connection, slot: Slot) -> Iterator[str]:
    """Read the ids of the records that assert a value of a slot, by the age of its relations."""
    return (id_ for (id_,) in connection.execute(_ASSERTING, slot))


def _update_record(connection: Connection, record: str) -> bool:
    """Set until when a record is true and what contradicts it; return whether that changed."""
    asserted, ended, ends = connection.execute(
        "SELECT count(*), count(r.valid_to), max(r.valid_to) FROM support s CROSS JOIN relation r"
        " ON r.id = s.relation WHERE s.record = ? AND s.expired_at IS NULL AND r.single",
        (record,),
    ).fetchone()
    if asserted:
        valid_to = ends if asserted == ended else None
    else:
        (valid_to,) = connection.execute(_OWN_END, (record,)).fetchone() or (None,)
    conflicts = rows.to_json([id_ for (id_,) in connection.execute(_CONFLICTS, (record, record))])
    changed = connection.execute(
        "UPDATE record SET valid_to = ?, conflicts = ?"
        " WHERE id = ? AND live = 1 AND (valid_to IS NOT ? OR conflicts <> ?)",
        (valid_to, conflicts, record, valid_to, conflicts),
    )
    return changed.rowcount > 0


def _read_live(connection: Connection, ids: Iterable[str]) -> list[Record]:
    """Read the live records with these ids, in their order."""
    found = (connection.execute(_LIVE, (id_,)).fetchone() for id_ in ids)
    return [rows.to_record(row) for row in found if row]
