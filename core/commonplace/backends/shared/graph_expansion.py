"""Expansion from named entities over at most two relations to records; engine-neutral.

The weight of a relation falls with the number of relations of its entity, so that a hub, such as
the user, does not dominate the results; a relation whose type the query names counts fully.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...ports.stores import Expansion

Node = TypeVar("Node", int, str)

ALIAS_PREDICATES = ("also_known_as", "alias_of", "same_as", "又名", "别名")
MAX_ALIAS_HOPS = 3
MAX_EXPANSIONS = 200
_MAX_NEIGHBOURS = 64  # entities next to the named ones whose relations are read
_FIRST_UNNAMED = 0.4  # weight of a first relation whose type the query does not name
_SECOND = 0.9  # weight of a second relation
_SECOND_UNNAMED = 0.8  # weight of a second relation whose type the query does not name
_SHARED_VALUE = 0.3  # weight of having the same value, which does not lead from one to the other
_FEW_RELATIONS = 8  # of an entity that is not yet a hub


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation for expansion: its two ends, its folded type, the records that assert it."""

    subject: int | str
    key: str
    object: int | str
    records: tuple[str, ...]


def expand(
    named: Collection[Node],
    names: Sequence[str],
    edges_of: Callable[[Collection[Node]], list[Edge]],
) -> list[Expansion]:
    """Expand the entities `named` over at most two relations.

    Args:
        names: words of the query, folded, among them those that name a type of relation.
        edges_of: reads the relations that some entities have now; equal for equal calls.

    Returns:
        As `GraphStore.expand`.
    """
    words = {name for name in names if len(name) > 1}
    found: dict[str, Expansion] = {}
    neighbours: dict[int | str, tuple[float, Edge]] = {}
    for edge, _, other, weight in _weighted(edges_of(named), set(named), words, _FIRST_UNNAMED):
        _keep_heaviest(found, edge.records, 1, weight, ())
        if other not in named and (other not in neighbours or weight > neighbours[other][0]):
            neighbours[other] = weight, edge
    heaviest = sorted(neighbours, key=lambda entity: (-neighbours[entity][0], str(entity)))
    best = heaviest[:_MAX_NEIGHBOURS]
    if best:
        crossed = {entity: neighbours[entity][1] for entity in best}
        second = edges_of(best)  # type: ignore[arg-type]  # they came from `edges_of`
        for edge, entity, _, weight in _weighted(second, crossed, words, _SECOND_UNNAMED):
            first_weight, via = neighbours[entity]
            _keep_heaviest(found, edge.records, 2, first_weight * weight * _SECOND, via.records)
    order = sorted(found.values(), key=lambda record: (-record.weight, record.id))
    return order[:MAX_EXPANSIONS]


def _weighted(
    edges: Sequence[Edge],
    entities: Collection[int | str] | Mapping[int | str, Edge],
    words: Collection[str],
    unnamed: float,
) -> Iterable[tuple[Edge, int | str, int | str, float]]:
    """Yield each edge from each of its ends in `entities`, the other end, and its weight.

    Args:
        entities: with the relation that led to each, if one did. Its type, named once, is not
            counted as named again; and sharing a value with another entity leads nowhere.
        unnamed: the weight of a relation whose type the query does not name.
    """
    crossed = entities if isinstance(entities, Mapping) else {}
    ends = [
        (
            edge,
            a,
            b,
            _is_named(edge.key, words) and not (a in crossed and crossed[a].key == edge.key),
        )
        for edge in edges
        for a, b in ((edge.subject, edge.object), (edge.object, edge.subject))
        if a in entities
    ]
    degree = Counter((a, is_named) for _, a, _, is_named in ends)
    for edge, a, b, is_named in ends:
        excess = math.log2(max(1.0, degree[a, is_named] / _FEW_RELATIONS))
        weight = (1.0 if is_named else unnamed) / (1 + excess)
        first = crossed.get(a)
        if first and first.key == edge.key and (first.object == a) == (edge.object == a):
            weight *= _SHARED_VALUE
        yield edge, a, b, weight


def _is_named(key: str, words: Collection[str]) -> bool:
    parts = [part for part in key.replace("_", " ").split() if len(part) > 2 or not part.isascii()]
    return any(
        word == part or (len(word) > 3 and (part.startswith(word) or word.startswith(part)))
        for part in parts
        for word in words
    )


def _keep_heaviest(
    found: dict[str, Expansion],
    records: Sequence[str],
    hops: int,
    weight: float,
    via: tuple[str, ...],
) -> None:
    for record in records:
        held = found.get(record)
        if held is None or held.weight < weight:
            found[record] = Expansion(id=record, hops=hops, weight=weight, via=via)
