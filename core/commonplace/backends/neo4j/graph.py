"""Graph store on a Neo4j server, which many processes and hosts may share.

A change locks the partition of its owner, applies the rules of the embedded store to an overlay of
what it may touch, and saves the differences: one transaction of few round trips.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from ...filters import Filter
from ...model import Entity, Kind, Page, Record, Relation, Scope, Version, now
from ...ports.snapshot import SnapshotRow
from ...ports.stores import Erased, Expansion, Outcome, Put, Remove
from ..shared import rows
from . import overlay, queries, relations, snapshot, transactions
from .driver import Ask, Neo4jDriver

_TABLES = ("records", "versions", "relations", "entities")
_BATCH = 1000


class Neo4jGraph:
    """A `GraphStore` in a database of a Neo4j server, 5.23 or newer.

    Args:
        uri: as the driver takes it, such as `neo4j://host:7687`.
        auth: user and password; None for a server that asks for none.
        database: None for the user's own.
        prefix: of every label, so that several stores fit into one database.
        options: of the driver, such as `encrypted` and `trusted_certificates`.

    Raises:
        MissingExtraError: the driver is not installed.
        InvalidRecordError: the URI, an option or the prefix is none, or the server is too old.
        SchemaMismatchError: the nodes were made by a schema that this version does not know.
        StoreRefusedError: the server does not know the user, or does not let him do what is needed.
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
        self.bolt = Neo4jDriver(uri, auth=auth, database=database, prefix=prefix, options=options)

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each."""
        if not changes:
            return []
        return self.bolt.write(lambda ask: transactions.apply(ask, changes))

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others."""
        text = queries.fill(queries.GET, covered=queries.covered(scope, "r"))
        given = {"ids": _sound(ids), **queries.owner(scope)}
        found = self.bolt.read(lambda ask: ask(text, **given))
        records = (overlay.to_record(one["record"]) for one in found)
        visible = {
            one.id: one for one in rows.visible(scope, records, include_expired=include_expired)
        }
        return [visible[one] for one in ids if one in visible]

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
        """Read live records, newest first (creation, then id); the filter is judged row by row."""
        rows.check_limit(limit)
        after = (2**63 - 1, "") if cursor is None else rows.from_cursor(cursor)
        given = {
            "kinds": list(kinds),
            "now": None if include_expired else rows.to_micros(now()),
            **queries.moment(include_superseded=include_superseded, as_of=as_of),
        }
        size = limit + 1 if where is None else _BATCH
        found = self._walk(queries.page(scope, kinds), scope, after, size, **given)
        records = (overlay.to_record(one["record"]) for one in found)
        shown = rows.visible(
            scope,
            records,
            include_superseded=include_superseded,
            as_of=as_of,
            include_expired=include_expired,
        )
        return rows.to_page(shown, where, limit)

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""
        text = queries.fill(queries.HISTORY, covered=queries.covered(scope, "r"))
        given = {"ids": _sound([record_id]), **queries.owner(scope)}
        found = self.bolt.read(lambda ask: ask(text, **given))
        return [overlay.to_version(one["version"]) for one in found]

    def scope_of(self, record_id: str) -> Scope | None:
        """Tell whose record an id is, live or deleted; None if there never was one."""
        found = self.bolt.read(lambda ask: ask(queries.OWNER, ids=_sound([record_id])))
        return Scope(**found[0]) if found else None

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""
        return [Scope(**one) for one in self.bolt.read(lambda ask: ask(queries.SCOPES))]

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
            ids = _sound(records)
            return self.bolt.read(lambda ask: relations.stated_by(ask, scope, ids, moment))
        return self.bolt.read(lambda ask: relations.read(ask, scope, entity, hops, moment))

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations."""
        return self.bolt.read(lambda ask: relations.expand(ask, scope, names, at))

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""
        return self.bolt.read(lambda ask: relations.entities(ask, scope))

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Remember that live records which the scope covers were recalled; the last 20 times."""
        text = queries.fill(queries.RECALLED, covered=queries.covered(scope, "r"))
        given = {"ids": sorted(_sound(ids)), "at": rows.to_micros(at), **queries.owner(scope)}
        self.bolt.write(lambda ask: ask(text, **given))

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were recalled, newest first."""
        text = queries.fill(queries.RECALLS, covered=queries.covered(scope, "r"))
        given = {"ids": _sound(ids), **queries.owner(scope)}
        found = self.bolt.read(lambda ask: ask(text, **given))
        return {one["id"]: [rows.at_micros(at) for at in one["recalls"]] for one in found}

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history too.

        A large scope takes several transactions; the first already refuses what is older.
        """
        removed: Counter[str] = Counter(dict.fromkeys(_TABLES, 0))
        touched: dict[str, Record] = {}
        repeated = False
        for turn in itertools.count():
            step = self.bolt.write(lambda ask, n=turn: transactions.erase(ask, scope, version, n))  # type: ignore[misc]  # bound for the loop
            removed.update(step.removed)
            touched |= {one.id: one for one in step.touched}
            for one in step.ids:
                touched.pop(one, None)
            repeated = repeated or step.repeated
            if len(step.ids) < transactions.BATCH:
                break
        if repeated or not removed["records"]:
            # What it opened before may not be in the index yet.
            stating = self.bolt.read(lambda ask: transactions.claimants(ask, scope))
            touched |= {one.id: one for one in stating}
        return Erased(removed=dict(removed), touched=tuple(touched.values()))

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""
        covered = queries.covered(scope, "r")

        def work(ask: Ask) -> dict[str, int]:
            found: dict[str, int] = {}
            for text in (queries.COUNT, queries.COUNT_RELATIONS):
                found |= ask(queries.fill(text, covered=covered), **queries.owner(scope))[0]
            return found

        return self.bolt.read(work)

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of what the index should have of the scope, in no order."""
        if scope is None:
            return snapshot.versions(self.bolt.read)
        found = self._walk(queries.walk(scope), scope, (-(2**63), ""), _BATCH)
        records = (one["record"] for one in found)
        return ((one["id"], one["version"]) for one in records if one["indexed"])

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything, page by page: fences, then partition by partition from `since` on."""
        return snapshot.dump(self.bolt.read, since)

    def load(self, kept: Sequence[SnapshotRow]) -> None:
        """Take over, in one transaction, what another store kept; what is newer here stays."""
        if kept:
            self.bolt.write(lambda ask: snapshot.load(ask, kept))

    def get_meta(self, key: str) -> str | None:
        """Read what was noted about the whole store; None when it never was."""
        found = self.bolt.read(lambda ask: ask(queries.NOTED, id=f"note:{key}"))
        return found[0]["value"] if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Note something about the whole store; noting it again replaces it."""
        self.bolt.write(lambda ask: ask(queries.NOTE, id=f"note:{key}", value=value))

    def close(self) -> None:
        """Let go of all connections; repeating it does nothing."""
        self.bolt.close()

    def _walk(
        self, text: str, scope: Scope, after: tuple[int, str], size: int, **given: Any
    ) -> Iterator[dict[str, Any]]:
        """Read batch by batch what comes after a place, by creation and id."""
        given |= queries.owner(scope)
        while True:
            place = {"created_at": after[0], "id": after[1], "limit": size}
            found = self.bolt.read(lambda ask, p=place: ask(text, **p, **given))  # type: ignore[misc]  # bound for the loop
            yield from found
            if len(found) < size:
                return
            last = found[-1]["record"]
            after = (last["created_at"], last["id"])


def _sound(ids: Iterable[object]) -> list[str]:
    """Leave out what no record can be named: the driver could not even ask for it."""
    return [one for one in ids if isinstance(one, str) and one.isprintable()]
