"""Relationship graph in Neo4j: reads of relations, entities, and expansion by name.

A scope sees a relation if it covers a record that asserts it, and sees only those records as its
supports.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ...model import Entity, Relation, Scope, fold
from ...ports.stores import Expansion
from ..shared import rows
from ..shared.graph_expansion import ALIASES, MOST_ALIASES, Edge, walk
from ..shared.names import distinct, nearest, spellable
from . import overlay, queries
from .driver import Ask


def read(
    ask: Ask, scope: Scope, entity: str | None, hops: int, moment: Mapping[str, Any]
) -> list[Relation]:
    """Read the relations that the scope covers, around one entity or all, by age."""
    if entity is None:
        return [_relation(row) for row in _rows(ask, scope, moment)]
    near = _with_aliases(ask, scope, _named(ask, scope, [fold(entity)]))
    found: dict[int, Relation] = {}
    for _ in range(hops):
        around = _rows(ask, scope, moment, near)
        found |= {row["relation"]["seq"]: _relation(row) for row in around}
        near |= {row[end]["id"] for row in around for end in ("subject", "object")}
    return [found[one] for one in sorted(found)]


def stated_by(
    ask: Ask, scope: Scope, records: Collection[str], moment: Mapping[str, Any]
) -> list[Relation]:
    """Read the relations that some of the scope's records state, by age."""
    chosen = set(records)
    text = queries.relations(scope, queries.WHOLE, queries.OF_RECORDS)
    found = map(_relation, ask(text, near=sorted(chosen), **moment, **queries.owner(scope)))
    # What a record has stated before it was changed is not what it states.
    return [one for one in found if not chosen.isdisjoint(one.supports)]


def entities(ask: Ask, scope: Scope) -> list[Entity]:
    """Read the entities of relations that have not expired, by name; alike names are one."""
    found = _rows(ask, scope, queries.moment(include_superseded=True))
    lasting = (row for row in found if row["relation"].get("expired_at") is None)
    ends = (row[end] for row in lasting for end in ("subject", "object"))
    return distinct((end["name"], end["type"]) for end in ends)


def expand(ask: Ask, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
    """Find records by the entities that the names may mean, over at most two relations."""
    named = _named(ask, scope, names) or _alike(ask, scope, names)
    if not named:
        return []
    named = _with_aliases(ask, scope, named)
    return walk(named, names, partial(_edges, ask, scope, queries.moment(at=at)))


def _edges(ask: Ask, scope: Scope, moment: Mapping[str, Any], near: Collection[str]) -> list[Edge]:
    found = _ask(ask, scope, queries.EDGE, moment, near)
    return [Edge(one["subject"], one["key"], one["object"], tuple(one["stated"])) for one in found]


def _rows(
    ask: Ask, scope: Scope, moment: Mapping[str, Any], near: Collection[str] | None = None
) -> list[dict[str, Any]]:
    return _ask(ask, scope, queries.WHOLE, moment, near)


def _ask(
    ask: Ask,
    scope: Scope,
    answer: str,
    moment: Mapping[str, Any],
    near: Collection[str] | None,
) -> list[dict[str, Any]]:
    of_all = queries.OF_ALL if scope.session_id is None else queries.OF_SESSION
    text = queries.relations(scope, answer, of_all if near is None else queries.OF_SOME)
    return ask(text, near=sorted(near or ()), **moment, **queries.owner(scope))


# -- names -----------------------------------------------------------------------------------------


def _ids(found: Iterable[Mapping[str, Any]]) -> set[str]:
    return {one["id"] for one in found}


def _named(ask: Ask, scope: Scope, names: Sequence[str]) -> set[str]:
    text = queries.fill(queries.NAMED, owned=queries.owned(scope, "e"))
    words = [overlay.digest(one) for one in names]
    return _ids(ask(text, words=words, **queries.owner(scope)))


def _alike(ask: Ask, scope: Scope, names: Sequence[str]) -> set[str]:
    """Find, for each name, the entity whose name shares most pairs of letters with it."""
    asked = [
        {"name": one, "pairs": overlay.pair_ids(scope.partition, one)} for one in spellable(names)
    ]
    if not asked:
        return set()
    text = queries.fill(queries.ALIKE, owned=queries.owned(scope, "e"))
    answers = ask(text, names=asked, **queries.owner(scope))
    found = {nearest(row["name"], row["close"]) for row in answers}
    return {one for one in found if one is not None}


def _with_aliases(ask: Ask, scope: Scope, named: set[str]) -> set[str]:
    text = queries.fill(queries.ALIASES, owned=queries.owned(scope, "q"))
    found, new = set(named), set(named)
    for _ in range(MOST_ALIASES):
        if not new:
            break
        given = {"near": sorted(new), "aliases": list(ALIASES), **queries.owner(scope)}
        new = _ids(ask(text, **given)) - found
        found |= new
    return found


def _relation(row: Mapping[str, Any]) -> Relation:
    own, subject, object_ = row["relation"], row["subject"], row["object"]
    return Relation(
        subject=subject["name"],
        predicate=own["predicate"],
        object=object_["name"],
        subject_type=subject["type"],
        object_type=object_["type"],
        valid_from=rows.from_beginning(own["valid_from"]),
        valid_to=rows.from_micros(own.get("valid_to")),
        single_valued=own["single"],
        created_at=rows.at_micros(own["created_at"]),
        expired_at=rows.from_micros(own.get("expired_at")),
        conflict=own["conflict"],
        supports=tuple(row["stated"]),
    )
