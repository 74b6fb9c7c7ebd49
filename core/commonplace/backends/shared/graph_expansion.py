"""Entities by name, also misspelt, and expansion from them over at most two relations to records.

The weight of a relation falls with the number of relations of its entity, so that a hub, such as
the user, does not dominate the results; a relation whose type the query names counts fully.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from ...ports.stores import Expansion
from ...types import Entity, fold

T = TypeVar("T")
Node = TypeVar("Node", int, str)

ALIAS_PREDICATES = ("also_known_as", "alias_of", "same_as", "又名", "别名")
MAX_ALIAS_HOPS = 3
MAX_EXPANSIONS = 200
_SIMILAR = 0.6  # share of equal pairs of letters from which two names are one, misspelt;
_SIMILAR_HAN = 0.5  # names in Chinese have few pairs
_MAX_MISSPELT = 64
_MAX_NEIGHBOURS = 64  # entities next to the named ones whose relations are read
_FIRST_UNNAMED = 0.4  # weight of a first relation whose type the query does not name
_SECOND = 0.9  # weight of a second relation
_SECOND_UNNAMED = 0.8  # weight of a second relation whose type the query does not name
_SHARED_VALUE = 0.3  # weight of having the same value, which does not lead from one to the other
_FEW_RELATIONS = 8  # of an entity that is not yet a hub


def pairs_of(key: str) -> set[str]:
    """List the overlapping pairs of letters of a name, which similar spellings share."""
    return {key[index : index + 2] for index in range(len(key) - 1)}


def spellable(names: Sequence[str]) -> list[str]:
    """Choose, in their order, the folded names that may be misspellings of an entity's name."""
    short = [name for name in names if name.count(" ") < 2][:_MAX_MISSPELT]
    return [name for name in short if len(pairs_of(name)) >= (3 if name.isascii() else 2)]


def nearest(name: str, candidates: Iterable[tuple[str, int, int, T]]) -> T | None:
    """Find the entity whose name shares most pairs of letters with `name`; None if all share few.

    Args:
        candidates: the folded name of each, the number of shared pairs, its age, and its key.
    """
    size = len(pairs_of(name))
    similarity, _, found = max(
        (
            (2 * shared / (size + len(pairs_of(key))), -age, entity)
            for key, shared, age, entity in candidates
        ),
        default=(0.0, 0, None),
    )
    return found if similarity >= (_SIMILAR if name.isascii() else _SIMILAR_HAN) else None


def distinct(named: Iterable[tuple[str, str]]) -> list[Entity]:
    """Merge equal names, with the first spelling and the first specific type; ordered by name."""
    found: dict[str, Entity] = {}
    for name, kind in named:
        held = found.get(fold(name))
        if held is None or held.type == "thing":
            found[fold(name)] = Entity(name=held.name if held else name, type=kind)
    return sorted(found.values(), key=lambda entity: entity.name)


# -- expansion -------------------------------------------------------------------------------------


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
    """
    words = {name for name in names if len(name) > 1}
    found: dict[str, Expansion] = {}
    neighbours: dict[int | str, _Step] = {}
    firsts = list(_steps(edges_of(named), set(named), words, _FIRST_UNNAMED))
    relations = Counter(step.entity for step in firsts)
    for step in firsts:
        is_within = step.other in named
        # Names of one entity say no more than either of them alone.
        fit = 1.0 if is_within and step.edge.key not in ALIAS_PREDICATES else step.named
        path = Expansion(
            id="", hops=1, weight=step.weight, named=(fit,), relations=relations[step.entity]
        )
        _keep_heaviest(found, step.edge.records, path)
        known = neighbours.get(step.other)
        if not is_within and (known is None or step.weight > known.weight):
            neighbours[step.other] = step
    heaviest = sorted(neighbours, key=lambda entity: (-neighbours[entity].weight, str(entity)))
    best = heaviest[:_MAX_NEIGHBOURS]
    if best:
        crossed = {entity: neighbours[entity].edge for entity in best}
        second = edges_of(best)  # type: ignore[arg-type]  # they came from `edges_of`
        for step in _steps(second, crossed, words, _SECOND_UNNAMED):
            first = neighbours[step.entity]
            path = Expansion(
                id="",
                hops=2,
                weight=first.weight * step.weight * _SECOND,
                via=first.edge.records,
                named=(first.named, step.named),
                relations=relations[first.entity],
            )
            _keep_heaviest(found, step.edge.records, path)
    order = sorted(found.values(), key=lambda record: (-record.weight, record.id))
    return order[:MAX_EXPANSIONS]


class _Step(NamedTuple):
    """A relation crossed from an entity to another: its weight, and how well the query names it."""

    edge: Edge
    entity: int | str
    other: int | str
    weight: float
    named: float


def _steps(
    edges: Sequence[Edge],
    entities: Collection[int | str] | Mapping[int | str, Edge],
    words: Collection[str],
    unnamed: float,
) -> Iterable[_Step]:
    """Cross each edge from each of its ends in `entities`.

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
        yield _Step(edge, a, b, weight, float(is_named))


def _is_named(key: str, words: Collection[str]) -> bool:
    parts = [part for part in key.replace("_", " ").split() if len(part) > 2 or not part.isascii()]
    return any(
        word == part or (len(word) > 3 and (part.startswith(word) or word.startswith(part)))
        for part in parts
        for word in words
    )


def _keep_heaviest(found: dict[str, Expansion], records: Sequence[str], path: Expansion) -> None:
    for record in records:
        held = found.get(record)
        if held is None or _rank(held) < _rank(path):
            found[record] = replace(path, id=record)


def _rank(path: Expansion) -> tuple[float, tuple[float, ...], int]:
    """Make what paths are compared by, so that the order in which edges are read is nothing."""
    return path.weight, path.named, -path.relations
