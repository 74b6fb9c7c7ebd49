"""Comparison of entity names: similar spelling and equality; shared by every graph store."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ...types import Entity, fold

T = TypeVar("T")

_SIMILAR = 0.6  # share of equal pairs of letters from which two names are one, misspelt;
_SIMILAR_HAN = 0.5  # names in Chinese have few pairs
_MAX_MISSPELT = 64


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
