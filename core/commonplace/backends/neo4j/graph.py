"""Graph store on a Neo4j server, which many processes and hosts may share.

A change locks the partition of its owner, applies the rules of the embedded store to an overlay of
what it may touch, and saves the differences: one transaction of few round trips.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ...filters import Filter, Within
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
    spellable,
)
from . import graph_snapshot, graph_writes, overlay, queries
from .driver import Neo4jDriver, RunQuery

_TABLES = ("records", "versions", "relations", "entities")
_BATCH = 1000


class Neo4jGraph:
    """A `GraphStore` in a database of a Neo4j server, 5.23 or newer.

    Args:
        uri: as the driver takes it, such as `neo4j://host:7687`.
        auth: user and password; None for a server without authentication.
        database: None for the user's default.
        prefix: of every label, so that one database can have several stores.
        options: of the driver, such as `encrypted` and `trusted_certificates`.

    Raises:
        MissingExtraError: the driver is not installed.
        InvalidRecordError: the URI, an option or the prefix is not valid, or the server is too old.
        SchemaMismatchError: the nodes were made by a schema that this version does not know.
        StoreRefusedError: the server does not know the user, or the user lacks a permission.
        StoreUnavailableError: the server does not answer.
    """

    def __init__(
        self,
        uri: str,
        *,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        prefix: str = "Commonplace",
        **options: Any,
    ) -> None:
        self.driver = Neo4jDriver(uri, auth=auth, database=database, prefix=prefix, options=options)

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each."""
        if not changes:
            return []
        return self.driver.write(lambda run: graph_writes.apply(run, changes))

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others."""
        found = self._read(queries.GET, scope, _valid(ids))
        records = (overlay.to_record(row["record"]) for row in found)
        visible = {
            record.id: record
            for record in rows.visible(scope, records, include_expired=include_expired)
        }
        return [visible[id_] for id_ in ids if id_ in visible]

    def excerpts(self, scope: Scope, ids: Sequence[str]) -> list[Excerpt]:
        """Read of live records what `Excerpt` holds, otherwise as `get`."""
        return list(map(Excerpt.of, self.get(scope, ids)))

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
        """Read live records, newest first, as `GraphStore` does; filters row by row."""
        rows.check_page(limit)
        after = (2**63 - 1, -1, "") if cursor is None else rows.from_cursor(cursor)
        parameters = {
            "kinds": list(kinds),
            "now": None if include_expired else rows.to_micros(now()),
            **queries.moment(include_superseded=include_superseded, as_of=as_of),
        }
        size = limit + 1 if where is None else _BATCH
        found = self._scan(queries.page(scope, kinds), scope, after, size, **parameters)
        records = (overlay.to_record(row["record"]) for row in found)
        visible = rows.visible(
            scope,
            records,
            include_superseded=include_superseded,
            as_of=as_of,
            include_expired=include_expired,
        )
        return rows.to_page(visible, where, limit)

    def turns(self, scope: Scope, *, limit: int, before: str | None = None) -> list[Record]:
        """Read the last turns that hold, in the order in which they were stored."""
        rows.check_page(limit)
        end = {"created_at": 2**63 - 1, "position": 0, "id": ""}
        if before is not None:
            found = self._read(queries.TURN, scope, _valid([before]))
            if not found:
                return []
            end = {name: found[0]["record"].get(name) for name in end}
        parameters = {**end, **queries.scope_parameters(scope), "now": rows.to_micros(now())}
        text = queries.turns(scope)
        read = self.driver.read(lambda run: run(text, limit=limit, **parameters))
        records = (overlay.to_record(row["record"]) for row in read)
        return list(rows.visible(scope, records))[::-1]

    def sessions(self, scope: Scope, *, limit: int = 100, cursor: str | None = None) -> SessionPage:
        """Read the sessions that the scope covers, by their last turn, newest first."""
        rows.check_page(limit)
        last_at, _, id_ = (2**63 - 1, -1, "") if cursor is None else rows.from_cursor(cursor)
        parameters = {"last_at": last_at, "id": id_, **queries.scope_parameters(scope)}
        text = queries.sessions(scope)
        found = self.driver.read(lambda run: run(text, limit=limit + 1, **parameters))
        nodes = (row["session"] for row in found)
        fields = rows.SessionColumns._fields
        sessions = [rows.SessionColumns(*map(node.get, fields)) for node in nodes]
        return rows.to_session_page(sessions, limit)

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""
        found = self._read(queries.HISTORY, scope, _valid([record_id]))
        return [overlay.to_version(row["version"]) for row in found]

    def deleted(self, scope: Scope, record_id: str) -> Record | None:
        """Read a deleted record as it was last live; None if none with this id is deleted."""
        found = self._read(queries.DELETED, scope, _valid([record_id]))
        return overlay.to_record(found[0]["record"]) if found else None

    def scope_of(self, record_id: str) -> Scope | None:
        """Read the scope of a record, live or deleted; None if there never was one."""
        ids = _valid([record_id])
        found = self.driver.read(lambda run: run(queries.SCOPE_OF, ids=ids))
        return Scope(**found[0]) if found else None

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""
        return [Scope(**ids) for ids in self.driver.read(lambda run: run(queries.LIST_SCOPES))]

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
        moment = queries.moment(include_superseded=include_superseded, as_of=as_of)
        if records is not None:
            chosen = set(_valid(records))
            found = self.driver.read(
                lambda run: _rows(run, scope, moment, queries.OF_RECORDS, chosen)
            )
            # What a record asserted before it was updated is not among its assertions.
            asserted = map(_to_relation, found)
            return [one for one in asserted if not chosen.isdisjoint(one.supports)]
        if entity is None:
            return list(map(_to_relation, self.driver.read(lambda run: _rows(run, scope, moment))))
        return self.driver.read(lambda run: _around(run, scope, entity, hops, moment))

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations."""

        def work(run: RunQuery) -> list[Expansion]:
            named = _named(run, scope, names) or _similar(run, scope, names)
            if not named:
                return []
            edges_of = partial(_edges, run, scope, queries.moment(at=at))
            return graph_expansion.expand(_with_aliases(run, scope, named), names, edges_of)

        return self.driver.read(work)

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""
        moment = queries.moment(include_superseded=True)
        found = self.driver.read(lambda run: _rows(run, scope, moment))
        lasting = (row for row in found if row["relation"].get("expired_at") is None)
        ends = (row[end] for row in lasting for end in ("subject", "object"))
        return distinct((end["name"], end["type"]) for end in ends)

    def namespaces(self, scope: Scope) -> list[Namespace]:
        """List the namespaces of live records, each once, in no order; reads every record."""
        return list({record.namespace: None for record in self._in_namespaces(scope)})

    def list_namespaces(
        self, prefix: Namespace = (), *, after: Namespace = (), limit: int = 1000
    ) -> dict[Namespace, list[Scope]]:
        """List the namespaces at and below one in their order, each with its records' scopes.

        Reads every record.
        """
        rows.check_page(limit)
        found: dict[Namespace, dict[Scope, None]] = {}
        for scope in dict.fromkeys(map(_user_scope, self.list_scopes())):
            for record in self._in_namespaces(scope, prefix):
                if record.namespace > after:
                    found.setdefault(record.namespace, {})[record.scope] = None
        return {namespace: list(found[namespace]) for namespace in sorted(found)[:limit]}

    def list_users(self, namespace: Namespace = ()) -> list[str]:
        """List the users who have live records in or below a namespace; in any if it is empty.

        Reads until it finds one record of each user.
        """
        where = Within(tuple(namespace))
        users = {scope.user_id: _user_scope(scope) for scope in self.list_scopes()}
        return [
            user
            for user, scope in users.items()
            if user and self.page(scope, where=where, limit=1, include_expired=True).records
        ]

    def outdated_turns(
        self, scope: Scope, turns: Collection[str], at: datetime
    ) -> dict[str, datetime]:
        """Find those of these turns of which no fact that was drawn from them holds any more.

        Reads every fact of the user that was drawn from a turn.
        """
        covered, covered_t = (queries.covered(scope, name) for name in "rt")
        text = queries.fill(queries.OUTDATED, covered=covered, covered_t=covered_t)
        given = {"ids": _valid(turns), "at": rows.to_micros(at), **queries.scope_parameters(scope)}
        found = self.driver.read(lambda run: run(text, **given))
        return rows.latest_ends((row["id"], row["end"]) for row in found)

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Log an access to live records that the scope covers; the last 20 of each are kept."""
        text = queries.fill(queries.LOG_ACCESS, covered=queries.covered(scope, "r"))
        parameters = {"ids": sorted(_valid(ids)), "at": rows.to_micros(at)}
        parameters |= queries.scope_parameters(scope)
        self.driver.write(lambda run: run(text, **parameters))

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were accessed, newest first."""
        found = self._read(queries.ACCESS_LOG, scope, _valid(ids))
        return {row["id"]: [rows.from_micros(at) for at in row["accesses"]] for row in found}

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history too.

        A large scope takes several transactions; the first already refuses older changes.
        """
        removed: Counter[str] = Counter(dict.fromkeys(_TABLES, 0))
        touched: dict[str, Record] = {}
        repeated = False
        for turn in itertools.count():
            step = self.driver.write(lambda run, n=turn: graph_writes.erase(run, scope, version, n))  # type: ignore[misc]  # bound for the loop
            removed.update(step.removed)
            touched |= {record.id: record for record in step.touched}
            for id_ in step.ids:
                touched.pop(id_, None)
            repeated = repeated or step.repeated
            if len(step.ids) < graph_writes.BATCH:
                break
        if repeated or not removed["records"]:
            # The index may not have what an earlier run reopened.
            asserting = self.driver.read(lambda run: graph_writes.asserting_records(run, scope))
            touched |= {record.id: record for record in asserting}
        return Erased(removed=dict(removed), touched=tuple(touched.values()))

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""
        covered = queries.covered(scope, "r")

        def work(run: RunQuery) -> dict[str, int]:
            found: dict[str, int] = {}
            for text in (queries.COUNT, queries.COUNT_RELATIONS):
                full = queries.fill(text, covered=covered)
                found |= run(full, **queries.scope_parameters(scope))[0]
            return found

        return self.driver.read(work)

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of what the index should have of the scope, in no order."""
        if scope is None:
            return graph_snapshot.versions(self.driver.read)
        found = self._scan(queries.scan(scope), scope, (-(2**63), -1, ""), _BATCH)
        records = (row["record"] for row in found)
        return ((node["id"], node["version"]) for node in records if node["indexed"])

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything, page by page: fences, then partition by partition from `since` on."""
        return graph_snapshot.dump(self.driver.read, since)

    def load(self, rows: Sequence[SnapshotRow]) -> None:
        """Load the snapshot of another store in one transaction; what is newer here stays."""
        if rows:
            self.driver.write(lambda run: graph_snapshot.load(run, rows))

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None if it was never set."""
        found = self.driver.read(lambda run: run(queries.GET_META, id=f"note:{key}"))
        return found[0]["value"] if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""
        self.driver.write(lambda run: run(queries.SET_META, id=f"note:{key}", value=value))

    def describe(self) -> dict[str, str | int]:
        """Return the version and the edition of the server."""
        found = self.driver.read(lambda run: run(queries.COMPONENTS))
        return {str(row["name"]): str(row["version"]) for row in found}

    def close(self) -> None:
        """Close the driver; repeating it does nothing."""
        self.driver.close()

    def _read(self, text: str, scope: Scope, ids: list[str]) -> list[dict[str, Any]]:
        """Read what a text finds of these records where the scope covers them."""
        full = queries.fill(text, covered=queries.covered(scope, "r"))
        parameters = queries.scope_parameters(scope)
        return self.driver.read(lambda run: run(full, ids=ids, **parameters))

    def _in_namespaces(self, scope: Scope, prefix: Namespace = ()) -> Iterator[Record]:
        """Read the live records of a scope that are in or below a namespace."""
        cursor = None
        while True:
            page = self.page(scope, where=Within(tuple(prefix)), limit=_BATCH, cursor=cursor)
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return

    def _scan(
        self, text: str, scope: Scope, after: tuple[int, int, str], size: int, **parameters: Any
    ) -> Iterator[dict[str, Any]]:
        """Read records batch by batch after a creation time, position and id."""
        parameters |= queries.scope_parameters(scope)
        while True:
            batch = dict(zip(("created_at", "position", "id"), after, strict=True), limit=size)
            found = self.driver.read(lambda run, b=batch: run(text, **b, **parameters))  # type: ignore[misc]  # bound for the loop
            yield from found
            if len(found) < size:
                return
            last = found[-1]["record"]
            after = (last["created_at"], last.get("position", -1), last["id"])


def _valid(ids: Iterable[object]) -> list[str]:
    """Choose what may be the id of a record: the driver cannot send every other value."""
    return [id_ for id_ in ids if isinstance(id_, str) and id_.isprintable()]


def _user_scope(scope: Scope) -> Scope:
    return scope if scope.user_id is None else Scope(user_id=scope.user_id)


# -- relations -------------------------------------------------------------------------------------
# A scope sees a relation if it covers a record that asserts it, and sees only those records as its
# supports.


def _around(
    run: RunQuery, scope: Scope, entity: str, hops: int, moment: Mapping[str, Any]
) -> list[Relation]:
    """Read the relations of an entity, and of those that they lead to, by age."""
    reached = _with_aliases(run, scope, _named(run, scope, [fold(entity)]))
    found: dict[int, Relation] = {}
    for _ in range(hops):
        batch = _rows(run, scope, moment, queries.OF_ENTITIES, reached)
        found |= {row["relation"]["seq"]: _to_relation(row) for row in batch}
        reached |= {row[end]["id"] for row in batch for end in ("subject", "object")}
    return [found[seq] for seq in sorted(found)]


def _edges(
    run: RunQuery, scope: Scope, moment: Mapping[str, Any], entities: Collection[str]
) -> list[Edge]:
    columns = queries.EDGE_COLUMNS
    found = _rows(run, scope, moment, queries.OF_ENTITIES, entities, columns=columns)
    return [
        Edge(row["subject"], split_key(row["key"])[0], row["object"], tuple(row["supports"]))
        for row in found
    ]


def _rows(
    run: RunQuery,
    scope: Scope,
    moment: Mapping[str, Any],
    source: str | None = None,
    ids: Collection[str] = (),
    *,
    columns: str = queries.RELATION_COLUMNS,
) -> list[dict[str, Any]]:
    """Read relations by age: all of the scope, or those that a text of `OF_*` finds by ids."""
    of_all = queries.OF_ALL if scope.session_id is None else queries.OF_SESSION
    text = queries.relations(scope, columns, source or of_all)
    return run(text, ids=sorted(ids), **moment, **queries.scope_parameters(scope))


def _ids(found: Iterable[Mapping[str, Any]]) -> set[str]:
    return {row["id"] for row in found}


def _named(run: RunQuery, scope: Scope, names: Sequence[str]) -> set[str]:
    text = queries.fill(queries.NAMED, owned=queries.owned(scope, "e"))
    words = [overlay.digest(name) for name in names]
    return _ids(run(text, words=words, **queries.scope_parameters(scope)))


def _similar(run: RunQuery, scope: Scope, names: Sequence[str]) -> set[str]:
    """Find, for each name, the entity whose name shares most pairs of letters with it."""
    asked = [
        {"name": name, "pairs": overlay.pair_ids(scope.partition, name)}
        for name in spellable(names)
    ]
    if not asked:
        return set()
    text = queries.fill(queries.SIMILAR, owned=queries.owned(scope, "e"))
    similar = run(text, names=asked, **queries.scope_parameters(scope))
    found = {nearest(row["name"], row["candidates"]) for row in similar}
    return {entity for entity in found if entity is not None}


def _with_aliases(run: RunQuery, scope: Scope, named: set[str]) -> set[str]:
    text = queries.fill(queries.ALIASES, owned=queries.owned(scope, "q"))
    found, new = set(named), set(named)
    for _ in range(MAX_ALIAS_HOPS):
        if not new:
            break
        parameters = {"aliases": list(ALIAS_PREDICATES), **queries.scope_parameters(scope)}
        new = _ids(run(text, ids=sorted(new), **parameters)) - found
        found |= new
    return found


def _to_relation(row: Mapping[str, Any]) -> Relation:
    subject, object_ = row["subject"], row["object"]
    node = {**row["relation"], "subject": subject["name"], "object": object_["name"]}
    return rows.to_relation(
        node,
        subject_type=subject["type"],
        object_type=object_["type"],
        supports=tuple(row["supports"]),
    )
