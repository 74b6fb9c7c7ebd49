"""Supersession of single-valued relations: which value holds when, as a pure function.

The rule is Graphiti's, without a model: a later assertion ends the earlier ones. The result depends
on the assertions alone and never on the order in which they arrived, so a late one finds its place,
and retracting one reopens what it had ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Assertion:
    """A value of a single-valued relation from a moment on; moments are numbers of any unit.

    Attributes:
        ends: the end that was asserted with it; None if none was.
    """

    value: object
    begins: int
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The moment until which an assertion holds, and the assertions that contradict it.

    Attributes:
        ends: None while it still holds.
        conflicts: indexes, in the given sequence, of assertions of another value that begin at the
            same moment: nothing decides between them, so all of them hold.
    """

    ends: int | None
    conflicts: tuple[int, ...] = ()


def resolve(assertions: Sequence[Assertion]) -> list[Span]:
    """Compute until when each assertion holds, in the order given.

    An assertion holds until the next later one begins, or until its own end if that is earlier.
    """
    spans = [Span(ends=None)] * len(assertions)
    latest_first = sorted(range(len(assertions)), key=lambda index: -assertions[index].begins)
    later: int | None = None
    for begins, group in groupby(latest_first, key=lambda index: assertions[index].begins):
        indexes = sorted(group)
        for index in indexes:
            own = assertions[index]
            ends = [end for end in (own.ends, later) if end is not None]
            conflicts = tuple(other for other in indexes if assertions[other].value != own.value)
            spans[index] = Span(ends=min(ends, default=None), conflicts=conflicts)
        later = begins
    return spans
