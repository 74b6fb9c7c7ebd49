"""Relations in the shapes of mem0 1.x: lower case, underscores, source, relationship, target.

Its `search` says `destination` where its `add` and `get_all` say `target`; every triple here has
both, so that code for either reads it.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

from commonplace import Relation

Triple = dict[str, str]


def to_triple(relation: Relation) -> Triple:
    """Write a relation."""
    end = _name(relation.object)
    return {
        "source": _name(relation.subject),
        "relationship": _name(relation.predicate),
        "target": end,
        "destination": end,
    }


def to_triples(relations: Sequence[Relation], limit: int) -> list[Triple]:
    """Write at most so many relations, each once, oldest first."""
    triples = (to_triple(one) for one in relations)
    return list({tuple(one.values()): one for one in triples}.values())[:limit]


def of_records(relations: Sequence[Relation], ids: Sequence[str]) -> list[Relation]:
    """Pick the relations that records state, in the order of the records."""
    place = {one: n for n, one in enumerate(ids)}
    stated = [
        (min(place[one] for one in relation.supports if one in place), relation)
        for relation in relations
        if not place.keys().isdisjoint(relation.supports)
    ]
    return [relation for _, relation in sorted(stated, key=lambda one: one[0])]


def to_added(relations: Sequence[Relation], ids: Collection[str]) -> dict[str, Any]:
    """Write what added records state: one list a triple, none of them empty."""
    stated = of_records(relations, list(ids))
    return {"deleted_entities": [], "added_entities": [[to_triple(one)] for one in stated]}


def superseded(relations: Sequence[Relation], ids: Collection[str]) -> list[str]:
    """List the records that said another value until what these records say began."""
    found: dict[str, None] = {}
    for new in (one for one in relations if not set(ids).isdisjoint(one.supports)):
        for old in relations:
            same = (old.subject, old.predicate) == (new.subject, new.predicate)
            if same and new.valid_from is not None and old.valid_to == new.valid_from:
                found |= dict.fromkeys(one for one in old.supports if one not in ids)
    return list(found)


def _name(name: str) -> str:
    return re.sub(r"[^\w]+", "_", name.strip().lower()).strip("_") or name
