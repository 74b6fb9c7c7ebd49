"""Comparison of entity names: similar spelling and equality; shared by every graph store."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ...model import Entity, fold

T = TypeVar("T")

_SIMILAR = 0.6  # of the pairs of letters of two names that are one, misspelt;
_SIMILAR_HAN = 0.5  # names in Chinese have few
_MOST_MISSPELT = 64


def pairs_of(key: str) -> set[str]:
    """List the overlapping pairs of letters of a name, by which misspelt ones are found."""
    return {key[place : place + 2] for place in range(len(key) - 1)}


def spellable(names: Sequence[str]) -> list[str]:
    """List the folded names, in their order, for which others that are spelt alike may stand."""
    short = [one for one in names if one.count(" ") < 2][:_MOST_MISSPELT]
    return [one for one in short if len(pairs_of(one)) >= (3 if one.isascii() else 2)]


def nearest(name: str, close: Iterable[tuple[str, int, int, T]]) -> T | None:
    """Choose the entity whose name shares most pairs of letters with this one; the oldest of those.

    Args:
        close: the folded name of each, how many pairs it shares, its age, and what stands for it.

    Returns:
        None when none is near enough.
    """
    size = len(pairs_of(name))
    likeness, _, found = max(
        ((2 * shared / (size + len(pairs_of(key))), -age, one) for key, shared, age, one in close),
        default=(0.0, 0, None),
    )
    return found if likeness >= (_SIMILAR if name.isascii() else _SIMILAR_HAN) else None


def distinct(named: Iterable[tuple[str, str]]) -> list[Entity]:
    """Make alike names one entity, spelt as first and of the first type that says something.

    Args:
        named: names with their types.

    Returns:
        By name.
    """
    found: dict[str, Entity] = {}
    for name, kind in named:
        held = found.get(fold(name))
        if held is None or held.type == "thing":
            found[fold(name)] = Entity(name=held.name if held else name, type=kind)
    return sorted(found.values(), key=lambda one: one.name)
