"""Expansion from named entities over at most two relations to records; engine-neutral.

The weight of a relation falls with the number of relations of its entity, so that a hub, such as
the user, does not drown the rest; a relation whose type the query names counts fully.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...ports.stores import Expansion

Node = TypeVar("Node", int, str)

ALIASES = ("also_known_as", "alias_of", "same_as", "又名", "别名")
MOST_ALIASES = 3  # of an entity that are followed, one after the other
MAX_REACHED = 200
_CROSSED = 64  # entities next to the named ones from which the second relation is looked for
_UNNAMED = 0.4  # of a relation whose type the question does not name
_SECOND = 0.9  # of the second relation
_BEHIND = 0.8  # of a second relation whose type the question does not name
_ALIKE = 0.3  # of having the same value, which is no step from one to the next
_FEW = 8  # relations of an entity that are not yet many


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation as a walk sees it: its two ends, its folded type, the records that state it."""

    subject: int | str
    key: str
    object: int | str
    records: tuple[str, ...]


def walk(
    named: Collection[Node], names: Sequence[str], around: Callable[[Collection[Node]], list[Edge]]
) -> list[Expansion]:
    """Walk from the entities `named`.

    Args:
        names: words of the question, folded, among them those that name a type of relation.
        around: reads the relations that hold of some entities; equal for equal calls.

    Returns:
        As `GraphStore.reach`.
    """
    words = {one for one in names if len(one) > 1}
    first = around(named)
    found: dict[str, Expansion] = {}
    next_to: dict[int | str, tuple[float, Edge]] = {}
    for edge, _, far, weight in _weighed(first, set(named), words, _UNNAMED):
        _keep(found, edge.records, 1, weight, ())
        if far not in named and (far not in next_to or weight > next_to[far][0]):
            next_to[far] = weight, edge
    best = sorted(next_to, key=lambda one: (-next_to[one][0], str(one)))[:_CROSSED]
    if best:
        crossed = {one: next_to[one][1] for one in best}
        for edge, near, _, weight in _weighed(around(best), crossed, words, _BEHIND):  # type: ignore[arg-type]  # they came from `around`
            so_far, via = next_to[near]
            _keep(found, edge.records, 2, so_far * weight * _SECOND, via.records)
    order = sorted(found.values(), key=lambda one: (-one.weight, one.id))
    return order[:MAX_REACHED]


def _weighed(
    edges: Sequence[Edge],
    near: Collection[int | str] | Mapping[int | str, Edge],
    words: Collection[str],
    unnamed: float,
) -> Iterable[tuple[Edge, int | str, int | str, float]]:
    """Yield each edge from each of its ends that is near, the other end, and its weight.

    Args:
        near: entities, with the relation over which each was reached if one was. Its type, named
            once, is not named again; and to share a value with somebody leads nowhere.
        unnamed: what a relation counts whose type the question does not name.
    """
    came = near if isinstance(near, Mapping) else {}
    ends = [
        (edge, a, b, _is_named(edge.key, words) and not (a in came and came[a].key == edge.key))
        for edge in edges
        for a, b in _both(edge)
        if a in near
    ]
    degree = Counter((a, is_named) for _, a, _, is_named in ends)
    for edge, a, b, is_named in ends:
        many = math.log2(max(1.0, degree[a, is_named] / _FEW))
        weight = (1.0 if is_named else unnamed) / (1 + many)
        if a in came and came[a].key == edge.key and (came[a].object == a) == (edge.object == a):
            weight *= _ALIKE
        yield edge, a, b, weight


def _both(edge: Edge) -> tuple[tuple[int | str, int | str], ...]:
    return ((edge.subject, edge.object), (edge.object, edge.subject))


def _is_named(key: str, words: Collection[str]) -> bool:
    parts = [part for part in key.replace("_", " ").split() if len(part) > 2 or not part.isascii()]
    return any(
        word == part or (len(word) > 3 and (part.startswith(word) or word.startswith(part)))
        for part in parts
        for word in words
    )


def _keep(
    found: dict[str, Expansion],
    records: Sequence[str],
    hops: int,
    weight: float,
    via: tuple[str, ...],
) -> None:
    for one in records:
        held = found.get(one)
        if held is None or held.weight < weight:
            found[one] = Expansion(id=one, hops=hops, weight=weight, via=via)
