"""Embedded graph store: records, versions and relations in one SQLite file.

A scope sees a relation if it covers a record that asserts it, and sees only those records as its
supports. Every read names its index, because the choice of SQLite's planner changes with the data.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from functools import partial
from sqlite3 import Connection, sqlite_version
from typing import Any, NamedTuple

from ...filters import Filter, required_namespace
from ...ports.snapshot_rows import SnapshotRow
from ...ports.stores import Erased, Expansion, Outcome, Put, Remove
from ...types import (
    Entity,
    Excerpt,
    Kind,
    Namespace,
    Page,
    Record,
    Relation,
    Scope,
    SessionPage,
    Version,
    fold,
    now,
    split_key,
)
from ..shared import graph_expansion, rows
from ..shared.graph_expansion import (
    ALIAS_PREDICATES,
    MAX_ALIAS_HOPS,
    Edge,
    distinct,
    nearest,
    pairs_of,
    spellable,
)
from . import assertions, graph_snapshot, namespaces, record_tables
from .connection import (
    ConnectionHandle,
    SqliteConnection,
    create_tables,
    read_meta,
    write_meta,
)
from .filters import Condition, compile_filter

SCHEMA = (
    record_tables.SCHEMA
    + """
CREATE TABLE IF NOT EXISTS recall (
  record TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (record, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS version (
  record TEXT NOT NULL, version INTEGER NOT NULL, event TEXT NOT NULL, text TEXT, previous TEXT,
  metadata TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (record, version)
) STRICT;
CREATE TABLE IF NOT EXISTS session (
  key TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT NOT NULL,
  next INTEGER NOT NULL, first_at INTEGER, last_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS session_by_user ON session (user_id, session_id);
CREATE TABLE IF NOT EXISTS erasure (key TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
"""
    + assertions.SCHEMA
    + ";"
    + namespaces.SCHEMA
)
# The select list of `_RelationColumns`.
_READ_RELATIONS = (
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
_SCOPES = "SELECT DISTINCT user_id, agent_id, session_id FROM record"
_COLUMNS = ", ".join(f"r.{column}" for column in rows.RecordColumns._fields)
# Each fact of some turns, and when it ended: deleted, given another text, or superseded.
_OUTDATED = (
    "SELECT s.turn, CASE WHEN NOT r.live THEN r.updated_at ELSE coalesce("
    "(SELECT CASE WHEN v.previous <> r.text THEN v.at END FROM version v WHERE v.record = r.id"
    " AND v.event = 'UPDATE' AND v.text <> v.previous AND v.at > t.created_at"
    " ORDER BY v.version LIMIT 1), CASE WHEN r.valid_to <= ? THEN r.valid_to END) END"
    " FROM source s CROSS JOIN record t ON t.id = s.turn CROSS JOIN record r ON r.id = s.record"
    " WHERE s.turn IN (SELECT value FROM json_each(?)) AND r.kind <> 'summary'"
    " AND {of_turn} AND {of_fact}"
)
_KEEP_LAST_20 = (
    "DELETE FROM recall WHERE record = ? AND at <="
    " (SELECT at FROM recall WHERE record = ? ORDER BY at DESC LIMIT 1 OFFSET 20)"
)


class SqliteGraph:
    """A `GraphStore` on a connection that engines share; closing it releases only its part."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._handle = ConnectionHandle(connection)
        self._handle.write(_create)

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each."""
        if not changes:
            return []
        return self._handle.write(lambda c: record_tables.apply(c, changes))

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others."""
        with self._handle.read(begin=len(ids) > 1) as connection:
            found = record_tables.read_many(connection, ids)
            live = (rows.to_record(row) for row in found if row.live)
            return list(rows.visible(scope, live, include_expired=include_expired))

    def excerpts(self, scope: Scope, ids: Sequence[str]) -> list[Excerpt]:
        """Read of live records what `Excerpt` holds, otherwise as `get`."""
        with self._handle.read(begin=len(ids) > 1) as connection:
            found = record_tables.read_excerpts(connection, ids, now())
        return [one for one in found if scope.covers(one.scope)]

    def page(
        self,
        scope: Scope,
        *,
        where: Filter | None = None,
        limit: int = 100,
        cursor: str | None = None,
        kinds: Collection[Kind] = (),
        include_superseded: bool = True,
        as_of: datetime | None = None,
        include_expired: bool = False,
    ) -> Page:
        """Read live records, newest first, as `GraphStore` does; parses only what may match."""
        rows.check_page(limit)
        after = None if cursor is None else rows.from_cursor(cursor)
        source, values = _source(scope, required_namespace(where), kinds, after)
        held, moments = _holding(include_superseded, include_expired, as_of)
        matching, operands = ("1", []) if where is None else compile_filter(where, "r")
        # SQLite tests a row in this order, and the filter leaves the fewest.
        sql = source.format(columns=_COLUMNS, condition=f"({matching}) AND {held}")
        with self._handle.read() as connection:
            found = connection.execute(sql, (*values, *operands, *moments, *kinds))
            visible = rows.visible(
                scope,
                map(rows.to_record, found),
                include_superseded=include_superseded,
                as_of=as_of,
                include_expired=include_expired,
            )
            page = rows.to_page(visible, where, limit)
            found.close()
        return page

    def turns(self, scope: Scope, *, limit: int, before: str | None = None) -> list[Record]:
        """Read the last turns that hold, in the order in which they were stored."""
        rows.check_page(limit)
        with self._handle.read() as connection:
            return record_tables.session_turns(connection, scope, limit, before)

    def sessions(self, scope: Scope, *, limit: int = 100, cursor: str | None = None) -> SessionPage:
        """Read the sessions that the scope covers, by their last turn, newest first."""
        rows.check_page(limit)
        after = None if cursor is None else rows.from_cursor(cursor)[::2]
        with self._handle.read() as connection:
            found = record_tables.session_page(connection, scope, limit, after)
        return rows.to_session_page(found, limit)

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""
        with self._handle.read() as connection:
            row = record_tables.read(connection, record_id)
            if row is None or not scope.covers(rows.scope_of(row)):
                return []
            return graph_snapshot.versions(connection, record_id)

    def deleted(self, scope: Scope, record_id: str) -> Record | None:
        """Read a deleted record as it was last live; None if none with this id is deleted."""
        with self._handle.read() as connection:
            row = record_tables.read(connection, record_id)
            if row is not None and scope.covers(rows.scope_of(row)):
                return record_tables.read_deleted(connection, row)
        return None

    def scope_of(self, record_id: str) -> Scope | None:
        """Read the scope of a record, live or deleted; None if there never was one."""
        with self._handle.read() as connection:
            row = record_tables.read(connection, record_id)
            return None if row is None else rows.scope_of(row)

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""
        with self._handle.read() as connection:
            return [rows.to_scope(*ids) for ids in connection.execute(_SCOPES)]

    def relations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> list[Relation]:
        """Read relations of records that the scope covers, or of some of them, by age."""
        current = _relation_holding(include_superseded=include_superseded, as_of=as_of)
        with self._handle.read() as connection:
            if records is not None:
                return _asserted_relations(connection, scope, set(records), current)
            if entity is None:
                return [_to_relation(row) for row in _rows(connection, scope, current)]
            entities = _with_aliases(connection, scope, _named(connection, scope, [fold(entity)]))
            found: dict[int, Relation] = {}
            for _ in range(hops):
                batch = _rows(connection, scope, current, _of_entities(entities))
                found |= {row.id: _to_relation(row) for row in batch}
                entities |= {end for row in batch for end in (row.subject_id, row.object_id)}
        return [found[id_] for id_ in sorted(found)]

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations."""
        with self._handle.read() as connection:
            named = _named(connection, scope, names) or _similar(connection, scope, names)
            if not named:
                return []
            named = _with_aliases(connection, scope, named)
            return graph_expansion.expand(named, names, partial(_edges, connection, scope, at))

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities of relations that have not expired, by name; equal names are one."""
        with self._handle.read() as connection:
            found = _rows(connection, scope, ("r.expired_at IS NULL", []))
        return distinct(
            end
            for row in found
            for end in ((row.subject, row.subject_type), (row.object, row.object_type))
        )

    def namespaces(self, scope: Scope) -> list[Namespace]:
        """List the namespaces of live records, each once, in no order."""
        with self._handle.read() as connection:
            return namespaces.of_scope(connection, scope, now())

    def list_namespaces(
        self, prefix: Namespace = (), *, after: Namespace = (), limit: int = 1000
    ) -> dict[Namespace, list[Scope]]:
        """List the namespaces at and below one in their order, each with its records' scopes."""
        rows.check_page(limit)
        with self._handle.read() as connection:
            return namespaces.with_scopes(connection, prefix, after, limit, now())

    def list_users(self, namespace: Namespace = ()) -> list[str]:
        """List the users who have live records in or below a namespace; in any if it is empty."""
        with self._handle.read() as connection:
            return namespaces.users(connection, namespace)

    def outdated_turns(
        self, scope: Scope, turns: Collection[str], at: datetime
    ) -> dict[str, datetime]:
        """Find those of these turns of which no fact that was drawn from them holds any more."""
        (of_turn, values), (of_fact, more) = rows.covered(scope, "t"), rows.covered(scope, "r")
        sql = _OUTDATED.format(of_turn=of_turn, of_fact=of_fact)
        given = (rows.to_micros(at), json.dumps(list(turns)), *values, *more)
        with self._handle.read() as connection:
            return rows.latest_ends(connection.execute(sql, given))

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Log an access to live records that the scope covers; the last 20 of each are kept."""
        moment = rows.to_micros(at)

        def write(connection: Connection) -> None:
            for id_ in ids:
                row = record_tables.read(connection, id_)
                if row and row.live and scope.covers(rows.scope_of(row)):
                    connection.execute("INSERT OR IGNORE INTO recall VALUES (?, ?)", (id_, moment))
                    connection.execute(_KEEP_LAST_20, (id_, id_))

        self._handle.write(write)

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were accessed, newest first."""
        clause, values = rows.covered(scope, "x")
        sql = (
            "SELECT c.record, c.at FROM recall c WHERE c.record IN (SELECT value FROM json_each(?))"
            f" AND EXISTS (SELECT 1 FROM record x WHERE x.id = c.record AND {clause})"
            " ORDER BY c.record, c.at DESC"
        )
        found: dict[str, list[datetime]] = {}
        with self._handle.read() as connection:
            for id_, at in connection.execute(sql, (json.dumps(list(ids)), *values)):
                found.setdefault(id_, []).append(rows.from_micros(at))
        return found

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history too."""
        erased = self._handle.write(lambda c: record_tables.erase(c, scope, version))
        if any(erased.removed.values()):
            self._handle.truncate_log()
        return erased

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""
        clause, values = rows.covered(scope)
        source = f"record {rows.index(scope, 'record')} WHERE {clause}"
        with self._handle.read() as connection:
            found = _rows(connection, scope, ("1", []))  # expired relations, too
            return {
                "records": _number(connection, f"SELECT count(*) FROM {source}", values),
                "versions": _number(
                    connection,
                    f"SELECT count(*) FROM version WHERE record IN (SELECT id FROM {source})",
                    values,
                ),
                "relations": len(found),
                "entities": len({end for row in found for end in (row.subject_id, row.object_id)}),
            }

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of what the index should have of the scope, in no order."""
        where, values = "live = 1 AND indexed = 1", list[Any]()
        if scope is not None:
            clause, values = rows.covered(scope)
            where = f"{clause} AND {where}"
        index = "" if scope is None else rows.index(scope, "record")
        with self._handle.read() as connection:
            sql = f"SELECT id, version FROM record {index} WHERE {where}"
            yield from connection.execute(sql, values)

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything as it is now: fences, then partition by partition from `since` on."""
        with self._handle.read() as connection:
            yield from graph_snapshot.dump(connection, since)

    def load(self, rows: Sequence[SnapshotRow]) -> None:
        """Load the snapshot of another store in one transaction; what is newer here stays."""
        self._handle.write(lambda c: graph_snapshot.load(c, rows))

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None when it was never set."""
        with self._handle.read() as connection:
            return read_meta(connection, key)

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        self._handle.write(lambda c: write_meta(c, key, value))

    def describe(self) -> dict[str, str | int]:
        """Return the version of SQLite, and the pages of the file."""
        names = ("journal_mode", "page_size", "page_count", "freelist_count")
        with self._handle.read() as connection:
            found = {one: connection.execute(f"PRAGMA {one}").fetchone()[0] for one in names}
        return {"sqlite": sqlite_version, **found}

    def close(self) -> None:
        """Release the connection; repeating it does nothing."""
        self._handle.close()


def _create(connection: Connection) -> None:
    record_tables.create(connection)
    create_tables(connection, SCHEMA)
    record_tables.create_sessions(connection)


def _number(connection: Connection, sql: str, values: Sequence[Any]) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def _source(
    scope: Scope,
    namespace: Namespace | None,
    kinds: Collection[Kind],
    after: tuple[int, int, str] | None,
) -> Condition:
    """Build the statement that reads records `r` in the order of a page, and its first parameters.

    Those of the condition that is put in come next, and then the kinds.

    Args:
        namespace: only records in or below it; None for all.
        kinds: only these; empty for all.
        after: where the last record of the page before stands; None for the first page.
    """
    of_kinds = f" AND r.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    if namespace is None:
        order = ("r.created_at", rows.POSITION, "r.id")
        clause, values = rows.covered(scope, "r")
        index = rows.index(scope, "record")
        index = "INDEXED BY record_by_kind" if len(kinds) == 1 else index
        source = f"record r {index} WHERE {clause}"
    else:
        order = ("n.created_at", rows.POSITION, "n.record")
        clause, values = rows.covered(scope, "n", by_partition=True)
        values.append(namespaces.to_path(namespace))
        source = f"namespace n CROSS JOIN record r ON r.seq = n.seq WHERE {clause} AND n.path = ?"
    if after is not None:
        source += f" AND ({', '.join(order)}) < (?, ?, ?)"
        values = [*values, *after]
    return (
        f"SELECT {{columns}} FROM {source} AND {{condition}} AND r.live = 1{of_kinds}"
        f" ORDER BY {' DESC, '.join(order)} DESC"
    ), values


def _holding(include_superseded: bool, include_expired: bool, as_of: datetime | None) -> Condition:
    """Build the condition that a record `r` is visible now, as `Record.holds`."""
    at = rows.to_micros(now())
    parts: list[str] = []
    values: list[Any] = []
    if not include_expired:
        parts.append("(r.expires_at IS NULL OR r.expires_at > ?)")
        values.append(at)
    if as_of is not None:
        moment = rows.to_micros(as_of)
        parts.append("r.occurred_at <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)")
        values += [moment, moment]
    elif not include_superseded:
        parts.append("(r.valid_to IS NULL OR r.valid_to > ?)")
        values.append(at)
    return " AND ".join(parts) or "1", values


# -- relations --------------------------------------------------------------------------------


class _RelationColumns(NamedTuple):
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


def _asserted_relations(
    connection: Connection, scope: Scope, chosen: Collection[str], current: Condition
) -> list[Relation]:
    """Read the relations that some of the scope's records assert, by age."""
    asserted = "SELECT relation FROM support WHERE record IN (SELECT value FROM json_each(?))"
    of_records = f"r.id IN ({asserted})", [json.dumps(sorted(chosen))]
    found = map(_to_relation, _rows(connection, scope, current, of_records))
    # What a record asserted before it was updated is not among its assertions.
    return [relation for relation in found if not set(chosen).isdisjoint(relation.supports)]


def _relation_holding(
    *, include_superseded: bool, as_of: datetime | None, at: datetime | None = None
) -> Condition:
    """Build the condition that a relation `r` holds: at `as_of`, or now, or in any case."""
    if as_of is None and include_superseded:
        return "1", []
    moment = rows.to_micros(as_of or at or now())
    held = "r.expired_at IS NULL AND (r.valid_to IS NULL OR r.valid_to > ?)"
    return (held, [moment]) if as_of is None else (f"{held} AND r.valid_from <= ?", [moment] * 2)


def _edges(
    connection: Connection, scope: Scope, at: datetime, entities: Collection[int]
) -> list[Edge]:
    supports, session = _supports(scope)
    current = _relation_holding(include_superseded=False, as_of=None, at=at)
    where, values = _all_of(_of_entities(entities), _owned(scope, "r"), current)
    sql = f"SELECT r.subject, r.key, r.object, ({supports}) FROM relation r WHERE {where}"
    return [
        Edge(subject, split_key(key)[0], object_, records)
        for subject, key, object_, ids in connection.execute(sql, (*session, *values))
        if (records := tuple(sorted(rows.from_json(ids))))
    ]


def _rows(
    connection: Connection, scope: Scope, current: Condition, chosen: Condition | None = None
) -> list[_RelationColumns]:
    supports, session = _supports(scope)
    index = ""
    if chosen is None and scope.session_id is not None:
        chosen = _in_session(scope)
    elif chosen is None:
        index = rows.index(scope, "relation")
    conditions = [current, _owned(scope, "r"), *([chosen] if chosen else [])]
    where, values = _all_of(*conditions)
    sql = _READ_RELATIONS.format(supports=supports, index=index, where=where)
    found = map(_RelationColumns._make, connection.execute(sql, (*session, *values)))
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
    sql = f"SELECT e.id FROM entity e INDEXED BY {index} WHERE {clause}"
    if connection.execute(f"{sql} LIMIT 1", values).fetchone() is None:
        return set()
    sql += " AND e.key IN (SELECT value FROM json_each(?))"
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
    return {entity for entity in found if entity is not None}


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


def _to_relation(row: _RelationColumns) -> Relation:
    return rows.to_relation(
        row._asdict(),
        subject_type=row.subject_type,
        object_type=row.object_type,
        supports=tuple(sorted(rows.from_json(row.supports))),
    )
