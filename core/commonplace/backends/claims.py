"""What records state: written, taken back, and settled where only one value can hold.

A relation lives as long as a record states it or did before it was changed, an entity as long as a
relation names it. Everything is counted per owner: the user and agent, over all their sessions.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from ..model import Record, Relation, Scope, fold
from ..slots import Claim, settle
from . import rows
from .names import pairs_of

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
    held = stated_by(connection, record.id)
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
    held = stated_by(connection, record)
    if not held:
        return []
    slots = _slots(connection, held)
    connection.execute("DELETE FROM support WHERE record = ?", (record,))
    drop(connection, held)
    return _settle(connection, held, slots, by=record)


def mates(connection: Connection, record: str) -> list[Record]:
    """Read the other records that state a value of the single-valued relations of this one."""
    slots = _slots(connection, stated_by(connection, record))
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


def stated_by(connection: Connection, record: str) -> set[int]:
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
            [(owner.lane, pair, row[0]) for pair in pairs_of(key)],
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
        spans = settle([claim for claim, _ in found])
        for (claim, owners), span in zip(found, spans, strict=True):
            connection.execute(
                "UPDATE relation SET valid_to = ?, conflict = ? WHERE subject = ? AND key = ?"
                " AND object = ? AND valid_from = ?",
                (span.ends, bool(span.rivals), *slot, claim.value, claim.begins),
            )
            affected |= dict.fromkeys(owners)
    marked = [one for one in affected if _mark(connection, one) and one != by]
    return [one for key in marked if (one := _read(connection, key))]


def _claims(connection: Connection, slot: Slot) -> list[tuple[Claim, list[str]]]:
    sql = (
        "SELECT r.object, r.valid_from, min(s.valid_to), json_group_array(s.record)"
        " FROM relation r CROSS JOIN support s ON s.relation = r.id"
        " WHERE r.subject = ? AND r.key = ? AND r.single AND s.expired_at IS NULL"
        " GROUP BY r.id ORDER BY r.id"
    )
    return [
        (Claim(row[0], row[1], row[2]), json.loads(row[3]))
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
