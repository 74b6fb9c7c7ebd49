"""What records state: written, taken back, and settled where only one value can hold.

A relation lives as long as a record states it or did before it was changed, an entity as long as a
relation names it. Everything is counted per owner: the user and agent, over all their sessions.
"""

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from ..model import Record, Relation, Scope, fold
from . import rows
from .settling import claims_on, read_live, settle_all, slots_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS entity (
  id INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT, scope TEXT NOT NULL,
  key TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, UNIQUE (scope, key)
) STRICT;
CREATE INDEX IF NOT EXISTS entity_by_user ON entity (user_id, key);
CREATE INDEX IF NOT EXISTS entity_by_agent ON entity (user_id, agent_id, key);
CREATE TABLE IF NOT EXISTS pair (
  lane TEXT NOT NULL, pair TEXT NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY (lane, pair, entity)
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
  relation INTEGER NOT NULL, record TEXT NOT NULL, subject_type TEXT NOT NULL,
  object_type TEXT NOT NULL, single INTEGER NOT NULL, valid_to INTEGER, expired_at INTEGER,
  PRIMARY KEY (relation, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS support_by_record ON support (record)
"""
# NULLs never equal each other in a UNIQUE constraint, so an unknown beginning is a number too.
UNKNOWN = -(2**62)
_USED = (
    "EXISTS (SELECT 1 FROM relation WHERE subject = entity.id)"
    " OR EXISTS (SELECT 1 FROM relation INDEXED BY relation_by_object WHERE object = entity.id)"
)


def state(connection: Connection, record: Record, said: Sequence[Relation]) -> list[Record]:
    """Make `said` all that the record states; what it stated before and not now expires.

    Answers the other records that this ended, opened or contradicted.
    """
    at = rows.to_micros(record.updated_at) or 0
    held = set(_held(connection, record.id))
    kept = {_relate(connection, record, one, at): one for one in said}
    if not held and not kept:
        return []
    slots = slots_of(connection, held | kept.keys())
    connection.executemany(
        "UPDATE support SET expired_at = ? WHERE relation = ? AND record = ?"
        " AND expired_at IS NULL",
        [(at, one, record.id) for one in held - kept.keys()],
    )
    connection.executemany(
        "INSERT INTO support VALUES (?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE SET"
        " subject_type = excluded.subject_type, object_type = excluded.object_type,"
        " single = excluded.single, valid_to = excluded.valid_to, expired_at = NULL",
        [
            (
                relation,
                record.id,
                one.subject_type,
                one.object_type,
                bool(one.single_valued),
                rows.to_micros(one.valid_to),
            )
            for relation, one in kept.items()
        ],
    )
    return settle_all(connection, held | kept.keys(), slots, by=record.id)


def withdraw(connection: Connection, record: str) -> list[Record]:
    """Take back all that a record states or stated, and drop what nothing states any more."""
    held = set(_held(connection, record))
    if not held:
        return []
    slots = slots_of(connection, held)
    typed = _typed(connection, "s.record = ?", (record,))
    connection.execute("DELETE FROM support WHERE record = ?", (record,))
    for one in held:
        _drop(connection, one)
    _type_again(connection, typed)
    return settle_all(connection, held, slots, by=record)


def mates(connection: Connection, record: str) -> list[Record]:
    """Read the other records that state a value of the single-valued relations of this one."""
    slots = slots_of(connection, set(_held(connection, record)))
    found = {one for slot in slots for _, owners in claims_on(connection, slot) for one in owners}
    return [one for key in sorted(found - {record}) if (one := read_live(connection, key))]


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
    return [one for row in sorted(found) if (one := read_live(connection, row[0]))]


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
    slots = slots_of(connection, held)
    typed = _typed(connection, f"s.record IN ({doomed})", values)
    connection.execute(f"DELETE FROM support WHERE record IN ({doomed})", values)  # noqa: S608 -- parts are ours
    chosen = json.dumps(sorted(held))
    gone = connection.execute(
        "DELETE FROM relation WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM support WHERE relation = relation.id)"
        " RETURNING subject, object",
        (chosen,),
    ).fetchall()
    entities = _forget_unused(connection, (end for row in gone for end in row))
    _type_again(connection, typed)
    touched = settle_all(connection, held, slots, by=None)
    return {"relations": len(gone), "entities": entities}, touched


def _held(connection: Connection, record: str) -> Iterable[int]:
    sql = "SELECT relation FROM support WHERE record = ?"
    return (row[0] for row in connection.execute(sql, (record,)).fetchall())


def _relate(connection: Connection, record: Record, one: Relation, at: int) -> int:
    owner = record.scope.owner
    subject = _entity(connection, owner, one.subject, one.subject_type)
    object_ = _entity(connection, owner, one.object, one.object_type)
    begins = rows.to_micros(one.valid_from)
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
            UNKNOWN if begins is None else begins,
            at,
        ),
    ).fetchone()
    return int(row[0])


def _entity(connection: Connection, owner: Scope, name: str, kind: str) -> int:
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
            [(owner.lane, pair, row[0]) for pair in pairs_of(key)],
        )
    elif row[1] == "thing" != kind:
        connection.execute("UPDATE entity SET type = ? WHERE id = ?", (kind, row[0]))
    return int(row[0])


def _typed(connection: Connection, doomed: str, values: Sequence[Any]) -> set[int]:
    """Find the entities to which the records that are about to go give a type."""
    sql = " UNION ".join(
        f"SELECT r.{end} FROM support s CROSS JOIN relation r ON r.id = s.relation"  # noqa: S608 -- parts are ours
        f" WHERE {doomed} AND s.{end}_type <> 'thing'"
        for end in ("subject", "object")
    )
    return {row[0] for row in connection.execute(sql, (*values, *values))}


def _type_again(connection: Connection, entities: Iterable[int]) -> None:
    """Give entities the first type that somebody still says."""
    first = " UNION ALL ".join(
        f"SELECT s.{end}_type AS type, r.id AS id FROM relation r {index} CROSS JOIN support s"  # noqa: S608 -- parts are ours
        f" ON s.relation = r.id WHERE r.{end} = ?1 AND s.{end}_type <> 'thing'"
        for end, index in (("subject", ""), ("object", "INDEXED BY relation_by_object"))
    )
    connection.executemany(
        f"UPDATE entity SET type = coalesce((SELECT type FROM ({first}) ORDER BY id LIMIT 1),"  # noqa: S608 -- parts are ours
        " 'thing') WHERE id = ?1",
        [(one,) for one in entities],
    )


def pairs_of(key: str) -> set[str]:
    """List the overlapping pairs of letters of a name, by which misspelt ones are found."""
    return {key[place : place + 2] for place in range(len(key) - 1)}


def _drop(connection: Connection, relation: int) -> None:
    gone = connection.execute(
        "DELETE FROM relation WHERE id = ? AND NOT EXISTS"
        " (SELECT 1 FROM support WHERE relation = relation.id) RETURNING subject, object",
        (relation,),
    ).fetchall()
    for ends in gone:
        _forget_unused(connection, ends)


def _forget_unused(connection: Connection, entities: Iterable[int]) -> int:
    chosen = json.dumps(sorted(set(entities)))
    gone = connection.execute(
        f"DELETE FROM entity WHERE id IN (SELECT value FROM json_each(?)) AND NOT ({_USED})"  # noqa: S608 -- a constant
        " RETURNING id",
        (chosen,),
    ).fetchall()
    connection.executemany("DELETE FROM pair WHERE entity = ?", gone)
    return len(gone)
