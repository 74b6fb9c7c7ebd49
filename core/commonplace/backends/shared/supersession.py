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
    """That a slot had a value from a moment on; moments are numbers of any unit.

    Attributes:
        ends: when whoever claimed it said that it ended; None if he did not.
    """

    value: object
    begins: int
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Until when a claim holds (None: it still does), and the claims that contradict it.

    Attributes:
        rivals: places, in the given sequence, of claims of another value that begin at the same
            moment: nothing tells which of them is right, so all stay.
    """

    ends: int | None
    rivals: tuple[int, ...] = ()


def resolve(claims: Sequence[Assertion]) -> list[Span]:
    """Tell until when each claim holds, in the order given.

    A claim holds until the next later one begins, or until its own end if that is earlier.
    """
    spans = [Span(ends=None)] * len(claims)
    latest_first = sorted(range(len(claims)), key=lambda place: -claims[place].begins)
    later: int | None = None
    for begins, group in groupby(latest_first, key=lambda place: claims[place].begins):
        places = sorted(group)
        for place in places:
            own = claims[place]
            ends = [end for end in (own.ends, later) if end is not None]
            rivals = tuple(other for other in places if claims[other].value != own.value)
            spans[place] = Span(ends=min(ends, default=None), rivals=rivals)
        later = begins
    return spans
