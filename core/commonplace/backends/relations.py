"""Reading the relationship graph: relations, entities, and what lies near a name.

A relation is shown to a scope that covers a record that states it, and with those records only.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from sqlite3 import Connection
from typing import Any

from ..exchange import Reached
from ..model import Entity, Relation, Scope, fold, now
from ..walk import ALIASES, MOST_ALIASES, Edge, walk
from . import rows
from .names import distinct, nearest, pairs_of, spellable

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


def holding(*, latest_only: bool, as_of: datetime | None, at: datetime | None = None) -> Part:
    """Write the condition that a relation `r` holds: at `as_of`, or now, or in any case."""
    if as_of is None and not latest_only:
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


def reach(
    connection: Connection, scope: Scope, names: Sequence[str], at: datetime
) -> list[Reached]:
    """Find records by the entities that the names may mean, over at most two relations."""
    named = _named(connection, scope, names) or _alike(connection, scope, names)
    if not named:
        return []
    named = _with_aliases(connection, scope, named)
    return walk(named, names, partial(_edges, connection, scope, at))


def _edges(connection: Connection, scope: Scope, at: datetime, near: Collection[int]) -> list[Edge]:
    stated, session = _stated(scope)
    parts = [_around(near), _owned(scope, "r"), holding(latest_only=True, as_of=None, at=at)]
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
    some = "SELECT 1 FROM pair WHERE lane = ? LIMIT 1"
    if connection.execute(some, (scope.lane,)).fetchone() is None:
        return set()
    clause, values = _owned(scope, "e")
    sql = (
        "SELECT e.key, count(*), e.id, e.id FROM pair p CROSS JOIN entity e ON e.id = p.entity"  # noqa: S608 -- parts are ours
        f" WHERE p.lane = ? AND p.pair IN (SELECT value FROM json_each(?)) AND {clause}"
        " GROUP BY e.id ORDER BY count(*) DESC, e.id LIMIT 8"
    )
    asked = {name: json.dumps(sorted(pairs_of(name))) for name in spellable(names)}
    found = {
        nearest(name, connection.execute(sql, (scope.lane, pairs, *values)))
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
