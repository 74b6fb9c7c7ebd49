"""Relationship graph in Neo4j: reads of relations, entities, and expansion by name.

A scope sees a relation if it covers a record that asserts it, and sees only those records as its
supports.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ...ports.stores import Expansion
from ...types import Entity, Relation, Scope, fold, split_key
from ..shared import graph_expansion, rows
from ..shared.entity_names import distinct, nearest, spellable
from ..shared.graph_expansion import ALIAS_PREDICATES, MAX_ALIAS_HOPS, Edge
from . import overlay, queries
from .driver import RunQuery


def read(
    run: RunQuery, scope: Scope, entity: str | None, hops: int, moment: Mapping[str, Any]
) -> list[Relation]:
    """Read the relations that the scope covers, around one entity or all, by age."""
    if entity is None:
        return [_to_relation(row) for row in _rows(run, scope, moment)]
    reached = _with_aliases(run, scope, _named(run, scope, [fold(entity)]))
    found: dict[int, Relation] = {}
    for _ in range(hops):
        batch = _rows(run, scope, moment, reached)
        found |= {row["relation"]["seq"]: _to_relation(row) for row in batch}
        reached |= {row[end]["id"] for row in batch for end in ("subject", "object")}
    return [found[seq] for seq in sorted(found)]


def read_asserted(
    run: RunQuery, scope: Scope, records: Collection[str], moment: Mapping[str, Any]
) -> list[Relation]:
    """Read the relations that some of the scope's records assert, by age."""
    chosen = set(records)
    text = queries.relations(scope, queries.RELATION_COLUMNS, queries.OF_RECORDS)
    parameters = {**moment, **queries.scope_parameters(scope)}
    found = map(_to_relation, run(text, ids=sorted(chosen), **parameters))
    # What a record asserted before it was updated is not among its assertions.
    return [relation for relation in found if not chosen.isdisjoint(relation.supports)]


def entities(run: RunQuery, scope: Scope) -> list[Entity]:
    """Read the entities of relations that have not expired, by name; equal names are one."""
    found = _rows(run, scope, queries.moment(include_superseded=True))
    lasting = (row for row in found if row["relation"].get("expired_at") is None)
    ends = (row[end] for row in lasting for end in ("subject", "object"))
    return distinct((end["name"], end["type"]) for end in ends)


def expand(run: RunQuery, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
    """Find records by the entities that the names may mean, over at most two relations."""
    named = _named(run, scope, names) or _similar(run, scope, names)
    if not named:
        return []
    named = _with_aliases(run, scope, named)
    edges_of = partial(_edges, run, scope, queries.moment(at=at))
    return graph_expansion.expand(named, names, edges_of)


def _edges(
    run: RunQuery, scope: Scope, moment: Mapping[str, Any], entities: Collection[str]
) -> list[Edge]:
    found = _rows(run, scope, moment, entities, columns=queries.EDGE_COLUMNS)
    return [
        Edge(row["subject"], split_key(row["key"])[0], row["object"], tuple(row["supports"]))
        for row in found
    ]


def _rows(
    run: RunQuery,
    scope: Scope,
    moment: Mapping[str, Any],
    entities: Collection[str] | None = None,
    *,
    columns: str = queries.RELATION_COLUMNS,
) -> list[dict[str, Any]]:
    """Read the relations of these entities, or of all, by age."""
    of_all = queries.OF_ALL if scope.session_id is None else queries.OF_SESSION
    source = of_all if entities is None else queries.OF_ENTITIES
    text = queries.relations(scope, columns, source)
    parameters = {**moment, **queries.scope_parameters(scope)}
    return run(text, ids=sorted(entities or ()), **parameters)


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
