"""What speaks for a candidate, signal by signal: one number for each hit, in their order."""

import re
from collections.abc import Sequence

from ..exchange import Hit, Reached
from ..model import Scope
from .weights import Weights

EPSILON = 1e-9


def sessions_of(hits: Sequence[Hit]) -> list[dict[int, int]]:
    """Tell, for each session, where in `hits` the turn at a position is."""
    found: dict[Scope, dict[int, int]] = {}
    for i, hit in enumerate(hits):
        if hit.record.position is not None:
            found.setdefault(hit.record.scope, {})[hit.record.position] = i
    return list(found.values())


def fade_of(hits: Sequence[Hit], weights: Weights) -> float:
    """Tell how short the turns are, 1 down to 0: long ones need no company."""
    lengths = [hit.words for hit in hits if hit.record.position is not None]
    if not lengths:
        return 0.0
    mean = max(1.0, sum(lengths) / len(lengths))
    return float(min(1.0, weights.short / mean) ** weights.fade)


def stretched(
    values: Sequence[float], weight: float, union: Sequence[float] | None = None
) -> list[float]:
    """Stretch scores to 0..`weight` over `union`, or over themselves.

    A zero is among them, for a record that says nothing: without it the worst of two good
    candidates would score nothing, and so would a single one.
    """
    span = values if union is None else union
    low = min((0.0, *span))
    high = max((0.0, *span))
    factor = weight / (high - low + EPSILON)
    return [(value - low) * factor if value > low else 0.0 for value in values]


def named_speakers(question: str, hits: Sequence[Hit], weights: Weights) -> list[float]:
    """Favour what was said by somebody whom the question names."""
    asked = question.casefold()
    known: dict[str | None, float] = {None: 0.0}
    for name in {hit.record.name for hit in hits if hit.record.name}:
        words = name.casefold().split() or [""]
        named = words[0] and re.search(rf"(?<![a-z0-9]){re.escape(words[0])}(?![a-z0-9])", asked)
        known[name] = weights.speaker if named else 0.0
    return [known.get(hit.record.name, 0.0) for hit in hits]


def related(
    alone: Sequence[float], hits: Sequence[Hit], reached: Sequence[Reached], weights: Weights
) -> list[float]:
    """Favour what relations lead to, the nearest with the graph's whole weight.

    What lies behind two relations counts as far as a record that states the first one fits the
    question; `alone` is how far each does.
    """
    if not reached:
        return [0.0] * len(hits)
    fits = {hit.record.id: value for hit, value in zip(hits, alone, strict=True)}
    top = max(*alone, EPSILON)
    most = max(*(one.weight for one in reached), EPSILON)
    found: dict[str, float] = {}
    for one in sorted(reached, key=lambda one: one.hops):
        share, own = one.weight / most, fits.get(one.id, 0.0)
        if not one.via:
            found[one.id] = weights.graph * share
            continue
        fit, stands = max((fits.get(record, 0.0), found.get(record, 0.0)) for record in one.via)
        led = share * (weights.graph * fit / top + weights.carried * fit)
        found[one.id] = max(0.0, min(led, weights.behind * (fit + stands) - own))
    return [found.get(hit.record.id, 0.0) for hit in hits]


def nearby(
    own: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, fade: float
) -> list[float]:
    """Favour turns beside good ones of the same session."""
    # The last place of `padded` is nobody's.
    padded = [*own, 0.0]
    nobody = len(own)
    close, far = (weight * fade for weight in weights.neighbours)
    found = [0.0] * len(own)
    for held in sessions:
        at = held.get
        for place, i in held.items():
            found[i] = close * (
                padded[at(place - 1, nobody)] + padded[at(place + 1, nobody)]
            ) + far * (padded[at(place - 2, nobody)] + padded[at(place + 2, nobody)])
    return found


def of_session(
    smooth: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, fade: float
) -> list[float]:
    """Favour all turns of a session by its best one.

    A fact is a session of its own, so that turns do not pass it for having company.
    """
    found = [weights.session * fade * value for value in smooth]
    for held in sessions:
        best = max(found[i] for i in held.values())
        for i in held.values():
            found[i] = best
    return found
