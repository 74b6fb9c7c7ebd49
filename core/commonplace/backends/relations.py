"""The edges of the embedded graph: who is related to whom, and which records say so.

A relation lives as long as a record supports it, an entity as long as a relation names it.
"""

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from ..model import Entity, Relation, Scope
from . import rows

SCHEMA = """
CREATE TABLE IF NOT EXISTS entity (
  id INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT, scope TEXT NOT NULL,
  key TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, UNIQUE (scope, key)
) STRICT;
CREATE INDEX IF NOT EXISTS entity_by_user ON entity (user_id, key);
CREATE INDEX IF NOT EXISTS entity_by_agent ON entity (user_id, agent_id, key);
CREATE INDEX IF NOT EXISTS entity_by_session ON entity (user_id, session_id, key);
CREATE TABLE IF NOT EXISTS relation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT, agent_id TEXT, session_id TEXT,
  subject INTEGER NOT NULL, key TEXT NOT NULL, object INTEGER NOT NULL, predicate TEXT NOT NULL,
  valid_from INTEGER NOT NULL, valid_to INTEGER, UNIQUE (subject, key, object, valid_from)
) STRICT;
CREATE INDEX IF NOT EXISTS relation_by_user ON relation (user_id);
CREATE INDEX IF NOT EXISTS relation_by_agent ON relation (user_id, agent_id);
CREATE INDEX IF NOT EXISTS relation_by_session ON relation (user_id, session_id);
CREATE INDEX IF NOT EXISTS relation_by_object ON relation (object);
CREATE TABLE IF NOT EXISTS support (
  relation INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (relation, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS support_by_record ON support (record)
"""
# NULLs never equal each other in a UNIQUE constraint, so an unknown beginning is a number too.
_UNKNOWN = -(2**62)
_USED = (
    "EXISTS (SELECT 1 FROM relation WHERE subject = entity.id)"
    " OR EXISTS (SELECT 1 FROM relation INDEXED BY relation_by_object WHERE object = entity.id)"
)
_READ = (
    "SELECT s.name, r.predicate, o.name, r.valid_from, r.valid_to,"
    " (SELECT json_group_array(record) FROM support WHERE relation = r.id)"
    " FROM relation r {index} CROSS JOIN entity s ON s.id = r.subject"
    " CROSS JOIN entity o ON o.id = r.object WHERE {where} ORDER BY r.id"
)


def support(connection: Connection, scope: Scope, record: str, said: Sequence[Relation]) -> None:
    """Make `said` all that the record supports, and drop what nothing supports any more."""
    held = {
        row[0]
        for row in connection.execute("SELECT relation FROM support WHERE record = ?", (record,))
    }
    if not held and not said:
        return
    kept = {_relate(connection, scope, one) for one in said}
    connection.executemany(
        "DELETE FROM support WHERE relation = ? AND record = ?",
        [(one, record) for one in held - kept],
    )
    connection.executemany(
        "INSERT INTO support VALUES (?, ?)", [(one, record) for one in kept - held]
    )
    for one in held - kept:
        _drop(connection, one)


def read(connection: Connection, scope: Scope, entity: str | None) -> list[Relation]:
    """Read the relations that the scope covers, of one entity or of all, by age."""
    where, values = rows.covered(scope, "r")
    index = rows.index(scope, "relation")
    if entity is not None:
        clause, inner = rows.covered(scope)
        found = f"SELECT id FROM entity {rows.index(scope, 'entity')} WHERE {clause} AND key = ?"  # noqa: S608 -- parts are ours
        where = (
            "r.id IN (SELECT id FROM relation WHERE subject IN"  # noqa: S608 -- parts are ours
            f" ({found}) UNION SELECT id FROM relation INDEXED BY relation_by_object"
            f" WHERE object IN ({found})) AND {where}"
        )
        values = [*inner, rows.fold(entity), *inner, rows.fold(entity), *values]
        index = ""
    return [
        _relation(row) for row in connection.execute(_READ.format(index=index, where=where), values)
    ]


def entities(connection: Connection, scope: Scope) -> list[Entity]:
    """Read the entities that the scope covers, by name; one that several owners have is one."""
    where, values = rows.covered(scope)
    sql = f"SELECT key, name, type FROM entity {rows.index(scope, 'entity')} WHERE {where}"  # noqa: S608 -- parts are ours
    found: dict[str, Entity] = {}
    for key, name, kind in connection.execute(f"{sql} ORDER BY id", values):
        found.setdefault(key, Entity(name=name, type=kind))
    return sorted(found.values(), key=lambda one: one.name)


def count(connection: Connection, scope: Scope) -> dict[str, int]:
    """Count the rows that the scope covers, by table."""
    where, values = rows.covered(scope)
    return {
        name: connection.execute(
            f"SELECT count(*) FROM {table} {rows.index(scope, table)} WHERE {where}",  # noqa: S608 -- parts are ours
            values,
        ).fetchone()[0]
        for name, table in (("relations", "relation"), ("entities", "entity"))
    }


def erase(
    connection: Connection, scope: Scope, doomed: str, doomed_values: Sequence[Any]
) -> dict[str, int]:
    """Take away the support of the records that `doomed` selects, and what hung on it."""
    connection.execute(f"DELETE FROM support WHERE record IN ({doomed})", doomed_values)  # noqa: S608 -- parts are ours
    where, values = rows.covered(scope)
    relations = connection.execute(
        f"DELETE FROM relation {rows.index(scope, 'relation')} WHERE {where}"  # noqa: S608 -- parts are ours
        " AND NOT EXISTS (SELECT 1 FROM support WHERE relation = relation.id)",
        values,
    ).rowcount
    gone = connection.execute(
        f"DELETE FROM entity {rows.index(scope, 'entity')} WHERE {where} AND NOT ({_USED})",  # noqa: S608 -- parts are ours
        values,
    ).rowcount
    return {"relations": relations, "entities": gone}


def _relate(connection: Connection, scope: Scope, one: Relation) -> int:
    subject, object_ = (_entity(connection, scope, name) for name in (one.subject, one.object))
    begins = rows.to_micros(one.valid_from)
    row = connection.execute(
        "INSERT INTO relation (user_id, agent_id, session_id, subject, key, object, predicate,"
        " valid_from, valid_to) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT"
        " (subject, key, object, valid_from) DO UPDATE SET valid_to = excluded.valid_to"
        " RETURNING id",
        (
            scope.user_id,
            scope.agent_id,
            scope.session_id,
            subject,
            rows.fold(one.predicate),
            object_,
            one.predicate,
            _UNKNOWN if begins is None else begins,
            rows.to_micros(one.valid_to),
        ),
    ).fetchone()
    return int(row[0])


def _entity(connection: Connection, scope: Scope, name: str) -> int:
    key = scope.key, rows.fold(name)
    row = connection.execute("SELECT id FROM entity WHERE scope = ? AND key = ?", key).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO entity (user_id, agent_id, session_id, scope, key, name, type)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (scope.user_id, scope.agent_id, scope.session_id, *key, name, Entity(name=name).type),
        ).fetchone()
    return int(row[0])


def _drop(connection: Connection, relation: int) -> None:
    row = connection.execute(
        "DELETE FROM relation WHERE id = ? AND NOT EXISTS"
        " (SELECT 1 FROM support WHERE relation = relation.id) RETURNING subject, object",
        (relation,),
    ).fetchall()
    for ends in row:
        connection.executemany(
            f"DELETE FROM entity WHERE id = ? AND NOT ({_USED})",  # noqa: S608 -- a constant
            [(end,) for end in ends],
        )


def _relation(row: Sequence[Any]) -> Relation:
    return Relation(
        subject=row[0],
        predicate=row[1],
        object=row[2],
        valid_from=None if row[3] == _UNKNOWN else rows.at_micros(row[3]),
        valid_to=rows.from_micros(row[4]),
        supports=tuple(sorted(json.loads(row[5]))),
    )
