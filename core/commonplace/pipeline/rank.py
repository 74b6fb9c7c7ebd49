"""From raw scores to an order and one score in 0..1; pure, so that it can be measured alone.

Both signals are stretched to 0..1 over the union of candidates and added; turns next to good turns
and in good sessions gain. What the session adds fades as turns get longer, because a long message
stands alone. Last, the order is scaled by how sure it is that anything answers at all.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from ..model import Match, Scope, turn_key
from ..ports import Hit, Reached
from .lexical import tokens
from .weights import DEFAULT, Weights

_EPSILON = 1e-9
# Candidates whose neighbours are looked at, and whose words are compared with the question's.
_EXPANDED = 12
_EXAMINED = 5


def neighbour_turns(hits: Sequence[Hit]) -> set[str]:
    """Name the places (`Record.turn`) up to two turns away from a good hit that are no hits.

    Good are the dozen best by plain fusion: to look around all of them finds no more and takes
    several times as long.
    """
    places: dict[Scope, set[int]] = {}
    for hit in hits:
        if hit.record.position is not None:
            places.setdefault(hit.record.scope, set()).add(hit.record.position)
    if not places:
        return set()
    dense = _stretch([hit.dense for hit in hits], DEFAULT.dense)
    lexical = _stretch([hit.lexical for hit in hits], 1 - DEFAULT.dense)
    good = sorted(range(len(hits)), key=lambda i: (-dense[i] - lexical[i], hits[i].record.id))[
        :_EXPANDED
    ]
    around: dict[Scope, set[int]] = {}
    for record in (hits[i].record for i in good):
        if record.position is not None:
            near = {record.position + step for step in (-2, -1, 1, 2)}
            around.setdefault(record.scope, set()).update(near - places[record.scope])
    return {turn_key(scope, at) for scope, near in around.items() for at in near if at >= 0}


def rank(
    question: str,
    hits: Sequence[Hit],
    neighbours: Sequence[Hit] = (),
    reached: Sequence[Reached] = (),
    *,
    now: datetime,
    limit: int | None = None,
    weights: Weights = DEFAULT,
) -> list[Match]:
    """Order candidates, best first, ties by id; a record that comes twice counts once.

    Args:
        question: as it was asked.
        hits: the union of what each signal found, each with both raw scores.
        neighbours: turns next to them, and records that relations lead to; they are ranked too.
        reached: how near the relationship graph is to the question for some of them.
        now: records expired by then are left out.
        limit: answer only that many of the best; all when None.

    Returns:
        Matches whose `parts` sum to `score`: dense, lexical, speaker, graph, neighbour, session.
    """
    seen: dict[str, Hit] = {}
    for hit in (*hits, *neighbours):
        expires = hit.record.expires_at
        if expires is None or expires > now:
            seen.setdefault(hit.record.id, hit)
    if not seen:
        return []
    every = list(seen.values())
    sessions = _sessions(every)
    fade = _fade(every, weights) if sessions else 0.0

    share = weights.dense * fade + weights.dense_long * (1 - fade)
    dense = _stretch([hit.dense for hit in every], share, [hit.dense for hit in hits])
    lexical = _stretch([hit.lexical for hit in every], 1 - share, [hit.lexical for hit in hits])
    speaker = _speakers(question, every, weights)
    alone = [a + b + c for a, b, c in zip(dense, lexical, speaker, strict=True)]
    graph = _related(alone, every, reached, weights)
    own = [a + b for a, b in zip(alone, graph, strict=True)]
    near = _near(own, sessions, weights, fade)
    smooth = [a + b for a, b in zip(own, near, strict=True)]
    session = _shared(smooth, sessions, weights, fade)
    total = [a + b for a, b in zip(smooth, session, strict=True)]

    order = sorted(range(len(every)), key=lambda i: (-total[i], every[i].record.id))
    best = [every[i] for i in order[:_EXAMINED]]
    scale = _confidence(question, best, every, weights) / max(total[order[0]], _EPSILON)
    matches = []
    for i in order[:limit]:
        parts = {
            "dense": dense[i] * scale,
            "lexical": lexical[i] * scale,
            "speaker": speaker[i] * scale,
            "graph": graph[i] * scale,
            "neighbour": near[i] * scale,
            "session": session[i] * scale,
        }
        score = min(1.0, total[i] * scale)
        matches.append(Match(record=every[i].record, score=score, parts=parts))
    return matches


def _sessions(hits: Sequence[Hit]) -> list[dict[int, int]]:
    # For each session, where in `hits` the turn at a position is.
    found: dict[Scope, dict[int, int]] = {}
    for i, hit in enumerate(hits):
        if hit.record.position is not None:
            found.setdefault(hit.record.scope, {})[hit.record.position] = i
    return list(found.values())


def _fade(hits: Sequence[Hit], weights: Weights) -> float:
    lengths = [hit.words for hit in hits if hit.record.position is not None]
    if not lengths:
        return 0.0
    mean = max(1.0, sum(lengths) / len(lengths))
    return float(min(1.0, weights.short / mean) ** weights.fade)


def _stretch(
    values: Sequence[float], weight: float, union: Sequence[float] | None = None
) -> list[float]:
    # The zero stands for a record that says nothing: without it the worst of two good
    # candidates would score nothing, and so would a single one.
    span = values if union is None else union
    low = min((0.0, *span))
    high = max((0.0, *span))
    factor = weight / (high - low + _EPSILON)
    return [(value - low) * factor if value > low else 0.0 for value in values]


def _speakers(question: str, hits: Sequence[Hit], weights: Weights) -> list[float]:
    asked = question.casefold()
    known: dict[str | None, float] = {None: 0.0}
    for name in {hit.record.name for hit in hits if hit.record.name}:
        words = name.casefold().split() or [""]
        named = words[0] and re.search(rf"(?<![a-z0-9]){re.escape(words[0])}(?![a-z0-9])", asked)
        known[name] = weights.speaker if named else 0.0
    return [known.get(hit.record.name, 0.0) for hit in hits]


def _related(
    alone: Sequence[float], hits: Sequence[Hit], reached: Sequence[Reached], weights: Weights
) -> list[float]:
    # The second relation counts as far as a record that states the first one fits the question.
    if not reached:
        return [0.0] * len(hits)
    fits = {hit.record.id: value for hit, value in zip(hits, alone, strict=True)}
    top = max(*alone, _EPSILON)
    found = {
        one.id: one.weight * max((fits.get(record, 0.0) for record in one.via), default=top) / top
        for one in reached
    }
    most = max(*found.values(), _EPSILON)
    return [weights.graph * found.get(hit.record.id, 0.0) / most for hit in hits]


def _near(
    own: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, fade: float
) -> list[float]:
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


def _shared(
    smooth: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, fade: float
) -> list[float]:
    # A fact is a session of its own, so that turns do not pass it for having company.
    found = [weights.session * fade * value for value in smooth]
    for held in sessions:
        best = max(found[i] for i in held.values())
        for i in held.values():
            found[i] = best
    return found


def _confidence(
    question: str, best: Sequence[Hit], every: Sequence[Hit], weights: Weights
) -> float:
    near = max(hit.dense for hit in every)
    alike = (near - weights.unsure) / (weights.sure - weights.unsure)
    asked = set(tokens(question))
    said = max(len(asked.intersection(tokens(hit.record.indexed_text))) for hit in best)
    covered = (said / len(asked)) ** 2 if asked else 0.0
    return 1 - (1 - max(0.0, min(1.0, alike))) * (1 - covered)
