"""From raw scores to an order and one score in 0..1; pure, so that it can be measured alone.

Both signals are stretched to 0..1 over the union of candidates and added; turns next to good turns
and in good sessions gain. What the session adds fades as turns get longer, because a long message
stands alone. Last, the order is scaled by how sure it is that anything answers at all.
"""

from collections.abc import Sequence
from datetime import datetime

from ..exchange import Hit, Reached
from ..model import Match, Scope, turn_key
from .lexical import tokens
from .signals import (
    EPSILON,
    fade_of,
    named_speakers,
    nearby,
    of_session,
    related,
    sessions_of,
    stretched,
)
from .spread import spread
from .weights import DEFAULT, Weights

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
    dense = stretched([hit.dense for hit in hits], DEFAULT.dense)
    lexical = stretched([hit.lexical for hit in hits], 1 - DEFAULT.dense)
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
        Matches whose `parts` sum to `score`: dense, lexical, speaker, graph, neighbour, session,
        mention.
    """
    seen: dict[str, Hit] = {}
    for hit in (*hits, *neighbours):
        expires = hit.record.expires_at
        if expires is None or expires > now:
            seen.setdefault(hit.record.id, hit)
    if not seen:
        return []
    every = list(seen.values())
    sessions = sessions_of(every)
    fade = fade_of(every, weights) if sessions else 0.0

    share = weights.dense * fade + weights.dense_long * (1 - fade)
    dense = stretched([hit.dense for hit in every], share, [hit.dense for hit in hits])
    lexical = stretched([hit.lexical for hit in every], 1 - share, [hit.lexical for hit in hits])
    speaker = named_speakers(question, every, weights)
    alone = [a + b + c for a, b, c in zip(dense, lexical, speaker, strict=True)]
    graph = related(alone, every, reached, weights)
    own = [a + b for a, b in zip(alone, graph, strict=True)]
    near = nearby(own, sessions, weights, fade)
    smooth = [a + b for a, b in zip(own, near, strict=True)]
    session = of_session(smooth, sessions, weights, fade)
    apart = [a + b for a, b in zip(smooth, session, strict=True)]
    mention = spread(every, apart, weights.mention * fade)
    total = [a + b for a, b in zip(apart, mention, strict=True)]

    order = sorted(range(len(every)), key=lambda i: (-total[i], every[i].record.id))
    asked = set(tokens(question))
    examined = order[:_EXAMINED]
    covered = {i: _covered(asked, every[i]) for i in {*examined, *order[:limit]}}
    said = max(covered[i] for i in examined)
    scale = _confidence(said, every, weights) / max(total[order[0]], EPSILON)
    led = {one.id: one.weight for one in reached}
    matches = []
    for i in order[:limit]:
        parts = {
            "dense": dense[i] * scale,
            "lexical": lexical[i] * scale,
            "speaker": speaker[i] * scale,
            "graph": graph[i] * scale,
            "neighbour": near[i] * scale,
            "session": session[i] * scale,
            "mention": mention[i] * scale,
        }
        score = min(1.0, total[i] * scale)
        fit = _fit(covered[i], every[i], led.get(every[i].record.id, 0.0), weights)
        matches.append(Match(record=every[i].record, score=score, parts=parts, fit=fit))
    return matches


def _covered(asked: set[str], hit: Hit) -> float:
    """Tell how much of what is asked a record says: the share of its words, squared."""
    if not asked:
        return 0.0
    return (len(asked.intersection(tokens(hit.record.indexed_text))) / len(asked)) ** 2


def _fit(covered: float, hit: Hit, led: float, weights: Weights) -> float:
    """Judge a record alone: its cosine, raised by shared words and by how relations lead to it."""
    apart = (1 - max(0.0, min(1.0, hit.dense))) * (1 - covered) * (1 - weights.graph * led)
    return max(0.0, 1 - apart)


def _confidence(covered: float, every: Sequence[Hit], weights: Weights) -> float:
    near = max(hit.dense for hit in every)
    alike = (near - weights.unsure) / (weights.sure - weights.unsure)
    return 1 - (1 - max(0.0, min(1.0, alike))) * (1 - covered)
