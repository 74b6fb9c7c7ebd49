"""From raw scores to an order and one score in 0..1; pure, so that it can be measured alone.

Both signals are stretched to 0..1 over the union of candidates and added; turns next to good turns
and in good sessions gain. What the session adds fades as turns get longer, because a long message
stands alone. Last, the order is scaled by how sure it is that anything answers at all.


MERGED FROM commonplace.pipeline.signals: What speaks for a candidate, signal by signal: one number for each hit, in their order.

MERGED FROM commonplace.pipeline.weights: How much each signal counts; apart so that a benchmark can vary it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model import Match, Scope, turn_key
from ..ports.stores import Expansion, Hit
from .cooccurrence import spread
from .lexical import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What counts how much.

    Attributes:
        dense: of the cosine among short turns; terms get the rest.
        dense_long: the same among facts and long messages.
        speaker: for a speaker whom the question names.
        graph: of the record that is nearest to the question by relations.
        carried: of how far the record that states the first relation fits the question, for what
            lies behind it, which has none of the words that name where to begin.
        behind: of that record's own score, the most that what lies behind it gets.
        neighbours: of the turns at distance 1 and 2, each side.
        session: of the best turn of the same session.
        mention: of a candidate's own score that it gains at most for what it shares with the best.
        short: words per turn up to which turns count as short.
        fade: how steeply the session's share falls beyond, as a power.
        sure, unsure: cosines of the best candidate that say "answers" and "says nothing".
    """

    dense: float = 0.4
    dense_long: float = 0.5
    speaker: float = 0.1
    graph: float = 0.5
    carried: float = 1.0
    behind: float = 0.95
    neighbours: tuple[float, float] = (0.3, 0.1)
    session: float = 0.5
    mention: float = 0.2
    short: float = 30.0
    fade: float = 4.0
    sure: float = 0.85
    unsure: float = 0.3


DEFAULT = Weights()

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
    reached: Sequence[Expansion] = (),
    *,
    now: datetime | None,
    limit: int | None = None,
    weights: Weights = DEFAULT,
) -> list[Match]:
    """Order candidates, best first, ties by id; a record that comes twice counts once.

    Args:
        question: as it was asked.
        hits: the union of what each signal found, each with both raw scores.
        neighbours: turns next to them, and records that relations lead to; they are ranked too.
        reached: how near the relationship graph is to the question for some of them.
        now: records expired by then are left out; None leaves out none.
        limit: answer only that many of the best; all when None.

    Returns:
        Matches whose `score_details` sum to `score`: dense, lexical, speaker, graph, neighbour, session,
        mention.
    """
    seen: dict[str, Hit] = {}
    for hit in (*hits, *neighbours):
        expires = hit.record.expires_at
        if now is None or expires is None or expires > now:
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
        relevance = _relevance(covered[i], every[i], led.get(every[i].record.id, 0.0), weights)
        matches.append(
            Match(record=every[i].record, score=score, score_details=parts, relevance=relevance)
        )
    return matches


def _covered(asked: set[str], hit: Hit) -> float:
    """Tell how much of what is asked a record says: the share of its words, squared."""
    if not asked:
        return 0.0
    return (len(asked.intersection(tokens(hit.record.indexed_text))) / len(asked)) ** 2


def _relevance(covered: float, hit: Hit, led: float, weights: Weights) -> float:
    """Judge a record alone: its cosine, raised by shared words and by how relations lead to it."""
    apart = (1 - max(0.0, min(1.0, hit.dense))) * (1 - covered) * (1 - weights.graph * led)
    return max(0.0, 1 - apart)


def _confidence(covered: float, every: Sequence[Hit], weights: Weights) -> float:
    near = max(hit.dense for hit in every)
    alike = (near - weights.unsure) / (weights.sure - weights.unsure)
    return 1 - (1 - max(0.0, min(1.0, alike))) * (1 - covered)


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
    alone: Sequence[float], hits: Sequence[Hit], reached: Sequence[Expansion], weights: Weights
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
