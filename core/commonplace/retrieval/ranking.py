"""Ranking: fuses the signals of all candidates into one order and one score in 0..1.

Pure functions, so that it can be measured alone. Dense and lexical scores are normalised to 0..1
over the union of candidates and added; turns next to good turns and in good sessions gain. The
session's share falls as turns get longer, because a long message stands alone. Last, all scores are
scaled by the confidence that anything fits the question at all.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, pairwise

from ..model import Match, Scope, turn_key
from ..ports.stores import Expansion, Hit
from .lexical import CJK, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weight of each signal.

    Attributes:
        dense: of the cosine among short turns; terms get the rest.
        dense_long: the same among facts and long messages.
        speaker: of a speaker whom the question names.
        graph: of the record that is nearest to the question by relations.
        carried: for a record at two relations, of the score without the graph of the record that
            states the first one; its own text has no word of the entity that the question names.
        behind: the most that it gets, as a part of that record's score.
        neighbours: of the turns at distance 1 and 2, each side.
        session: of the best turn of the same session.
        mention: of a candidate's own score, the most that co-occurrence adds.
        short: words per turn up to which turns count as short.
        fade: power with which the session's share falls for longer turns.
        sure, unsure: cosines of the best candidate at which the confidence is 1 and 0.
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

EPSILON = 1e-9
# Candidates whose neighbours are read, and whose words decide the confidence.
_EXPANDED = 12
_CACHED_CHARACTERS = 2_000  # of a text whose words are kept for later searches
_EXAMINED = 5


def neighbour_turns(hits: Sequence[Hit]) -> set[str]:
    """List the turns (`Record.turn`) up to two positions away from a good hit that are not hits.

    Good are the dozen best by plain fusion: the neighbours of all hits improve nothing and take
    several times as long.
    """
    positions: dict[Scope, set[int]] = {}
    for hit in hits:
        if hit.record.position is not None:
            positions.setdefault(hit.record.scope, set()).add(hit.record.position)
    if not positions:
        return set()
    dense = normalized([hit.dense for hit in hits], DEFAULT.dense)
    lexical = normalized([hit.lexical for hit in hits], 1 - DEFAULT.dense)
    good = sorted(range(len(hits)), key=lambda i: (-dense[i] - lexical[i], hits[i].record.id))[
        :_EXPANDED
    ]
    around: dict[Scope, set[int]] = {}
    for record in (hits[i].record for i in good):
        if record.position is not None:
            near = {record.position + step for step in (-2, -1, 1, 2)}
            around.setdefault(record.scope, set()).update(near - positions[record.scope])
    return {turn_key(scope, at) for scope, near in around.items() for at in near if at >= 0}


def rank(
    question: str,
    hits: Sequence[Hit],
    neighbours: Sequence[Hit] = (),
    expansions: Sequence[Expansion] = (),
    *,
    now: datetime | None,
    limit: int | None = None,
    weights: Weights = DEFAULT,
) -> list[Match]:
    """Order candidates, best first, ties by id; a record that comes twice counts once.

    Args:
        question: the text of the search.
        hits: the union of what each signal found, each with both raw scores.
        neighbours: turns next to them, and records that relations lead to; they are ranked too.
        expansions: of the relationship graph, for some of these records.
        now: records expired by then are left out; None leaves out none.
        limit: return only that many of the best; all when None.

    Returns:
        Matches whose `score_details` sum to `score`: dense, lexical, speaker, graph, neighbour,
        session, mention.
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
    brevity = brevity_of(every, weights) if sessions else 0.0

    share = weights.dense * brevity + weights.dense_long * (1 - brevity)
    dense = normalized([hit.dense for hit in every], share, [hit.dense for hit in hits])
    lexical = normalized([hit.lexical for hit in every], 1 - share, [hit.lexical for hit in hits])
    speaker = speaker_scores(question, every, weights)
    alone = [a + b + c for a, b, c in zip(dense, lexical, speaker, strict=True)]
    graph = graph_scores(alone, every, expansions, weights)
    own = [a + b for a, b in zip(alone, graph, strict=True)]
    near = neighbour_scores(own, sessions, weights, brevity)
    smooth = [a + b for a, b in zip(own, near, strict=True)]
    session = session_scores(smooth, sessions, weights, brevity)
    fused = [a + b for a, b in zip(smooth, session, strict=True)]
    mention = cooccurrence_boost(every, fused, weights.mention * brevity)
    total = [a + b for a, b in zip(fused, mention, strict=True)]

    order = sorted(range(len(every)), key=lambda i: (-total[i], every[i].record.id))
    words = set(tokens(question))
    examined = order[:_EXAMINED]
    coverage = {i: _coverage(words, every[i]) for i in {*examined, *order[:limit]}}
    best = max(coverage[i] for i in examined)
    scale = _confidence(best, every, weights) / max(total[order[0]], EPSILON)
    graph_weights = {one.id: one.weight for one in expansions}
    matches = []
    for i in order[:limit]:
        details = {
            "dense": dense[i] * scale,
            "lexical": lexical[i] * scale,
            "speaker": speaker[i] * scale,
            "graph": graph[i] * scale,
            "neighbour": near[i] * scale,
            "session": session[i] * scale,
            "mention": mention[i] * scale,
        }
        score = min(1.0, total[i] * scale)
        graph_weight = graph_weights.get(every[i].record.id, 0.0)
        relevance = _relevance(coverage[i], every[i], graph_weight, weights)
        matches.append(
            Match(record=every[i].record, score=score, score_details=details, relevance=relevance)
        )
    return matches


def _coverage(words: set[str], hit: Hit) -> float:
    """Compute the share of the question's words that a record has, squared."""
    if not words:
        return 0.0
    return (len(words & _vocabulary(hit.record.indexed_text)) / len(words)) ** 2


def _vocabulary(text: str) -> frozenset[str]:
    return _cached_vocabulary(text) if len(text) <= _CACHED_CHARACTERS else frozenset(tokens(text))


@lru_cache(maxsize=4096)
def _cached_vocabulary(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


def _relevance(coverage: float, hit: Hit, graph_weight: float, weights: Weights) -> float:
    """Score a record by itself: its cosine, raised by shared words and by relations."""
    similarity = max(0.0, min(1.0, hit.dense))
    distance = (1 - similarity) * (1 - coverage) * (1 - weights.graph * graph_weight)
    return max(0.0, 1 - distance)


def _confidence(coverage: float, every: Sequence[Hit], weights: Weights) -> float:
    nearest = max(hit.dense for hit in every)
    certainty = (nearest - weights.unsure) / (weights.sure - weights.unsure)
    return 1 - (1 - max(0.0, min(1.0, certainty))) * (1 - coverage)


def sessions_of(hits: Sequence[Hit]) -> list[dict[int, int]]:
    """Map, for each session, the positions of its turns to their indices in `hits`."""
    found: dict[Scope, dict[int, int]] = {}
    for i, hit in enumerate(hits):
        if hit.record.position is not None:
            found.setdefault(hit.record.scope, {})[hit.record.position] = i
    return list(found.values())


def brevity_of(hits: Sequence[Hit], weights: Weights) -> float:
    """Compute how short the turns are on average, 1 down to 0: long ones need no context."""
    lengths = [hit.words for hit in hits if hit.record.position is not None]
    if not lengths:
        return 0.0
    mean = max(1.0, sum(lengths) / len(lengths))
    return float(min(1.0, weights.short / mean) ** weights.fade)


def normalized(
    values: Sequence[float], weight: float, union: Sequence[float] | None = None
) -> list[float]:
    """Scale scores linearly to 0..`weight` over `union`, or over themselves.

    A zero is always among them: without it the worse of two good candidates would score nothing,
    and so would a single one.
    """
    span = values if union is None else union
    low = min((0.0, *span))
    high = max((0.0, *span))
    factor = weight / (high - low + EPSILON)
    return [(value - low) * factor if value > low else 0.0 for value in values]


def speaker_scores(question: str, hits: Sequence[Hit], weights: Weights) -> list[float]:
    """Score turns of a speaker whom the question names."""
    folded = question.casefold()
    scores: dict[str | None, float] = {None: 0.0}
    for name in {hit.record.name for hit in hits if hit.record.name}:
        words = name.casefold().split() or [""]
        named = words[0] and re.search(rf"(?<![a-z0-9]){re.escape(words[0])}(?![a-z0-9])", folded)
        scores[name] = weights.speaker if named else 0.0
    return [scores.get(hit.record.name, 0.0) for hit in hits]


def graph_scores(
    alone: Sequence[float], hits: Sequence[Hit], expansions: Sequence[Expansion], weights: Weights
) -> list[float]:
    """Score records by the relations that lead to them, the nearest with the graph's whole weight.

    A record at two relations scores in proportion to a record that states the first one.

    Args:
        alone: scores without the graph, one per hit.
    """
    if not expansions:
        return [0.0] * len(hits)
    scores = {hit.record.id: value for hit, value in zip(hits, alone, strict=True)}
    top = max(*alone, EPSILON)
    heaviest = max(*(one.weight for one in expansions), EPSILON)
    found: dict[str, float] = {}
    for one in sorted(expansions, key=lambda one: one.hops):
        share, own = one.weight / heaviest, scores.get(one.id, 0.0)
        if not one.via:
            found[one.id] = weights.graph * share
            continue
        first, gain = max((scores.get(id_, 0.0), found.get(id_, 0.0)) for id_ in one.via)
        carried = share * (weights.graph * first / top + weights.carried * first)
        found[one.id] = max(0.0, min(carried, weights.behind * (first + gain) - own))
    return [found.get(hit.record.id, 0.0) for hit in hits]


def neighbour_scores(
    own: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, brevity: float
) -> list[float]:
    """Score turns next to good ones of the same session."""
    padded = [*own, 0.0]
    missing = len(own)  # the index of the padding
    near, far = (weight * brevity for weight in weights.neighbours)
    found = [0.0] * len(own)
    for turns in sessions:
        at = turns.get
        for position, i in turns.items():
            found[i] = near * (
                padded[at(position - 1, missing)] + padded[at(position + 1, missing)]
            ) + far * (padded[at(position - 2, missing)] + padded[at(position + 2, missing)])
    return found


def session_scores(
    smooth: Sequence[float], sessions: Sequence[dict[int, int]], weights: Weights, brevity: float
) -> list[float]:
    """Score all turns of a session by its best one.

    Each fact counts as its own session, so that turns gain nothing from having neighbours.
    """
    found = [weights.session * brevity * value for value in smooth]
    for turns in sessions:
        best = max(found[i] for i in turns.values())
        for i in turns.values():
            found[i] = best
    return found


# The best candidates are read, and the beginning of each, so that the cost has a bound.
_MAX_READ = 96
_MAX_CHARACTERS = 384
# The best of those lead: what others share with them counts.
_LEADING = 12
# How much a leading candidate's own words count for itself.
_OWN = 0.5
# A smaller share would change no order.
_MIN_SHARE = 0.01

# Six letters stand for a word: a stemmer takes five times as long and finds no more.
_ASCII = re.compile(r"([a-z0-9]{3,6})[a-z0-9]*")
_WORD = re.compile(rf"([^\W_{CJK}]{{3,6}})[^\W_{CJK}]*")
_RUN = re.compile(rf"[{CJK}]{{2,}}")


def cooccurrence_boost(hits: Sequence[Hit], total: Sequence[float], share: float) -> list[float]:
    """Compute what each candidate gains for words that it shares with the best ones.

    Args:
        hits: the candidates; their texts count, not their speakers.
        total: their scores so far, 0 or more, one per hit.
        share: the most that a candidate gains, as a part of its own score, so that a score of 0
            stays 0.

    Returns:
        One gain per hit, in their order; 0 for one that shares no word.
    """
    boosts = [0.0] * len(hits)
    order = sorted(range(len(hits)), key=lambda i: (-total[i], hits[i].record.id))[:_MAX_READ]
    if share < _MIN_SHARE or len(order) < 2 or total[order[0]] <= 0:
        return boosts
    words_of = [_words(hits[i].record.text[:_MAX_CHARACTERS].lower()) for i in order]
    leading = set(chain.from_iterable(words_of[:_LEADING]))
    shared = [leading.intersection(words) for words in words_of]
    rarity = _rarity(shared)

    pull = dict.fromkeys(leading, 0.0)
    own = [0.0] * len(order)
    for place, words in enumerate(shared[:_LEADING]):
        trust = (total[order[place]] / total[order[0]]) ** 2
        own[place] = (1 - _OWN) * trust * math.fsum(map(rarity.__getitem__, words))
        for word in words:
            pull[word] += trust * rarity[word]
    # An exact sum, because sets have no order and equal texts must gain the same.
    gains = [
        math.fsum(map(pull.__getitem__, words)) - part
        for words, part in zip(shared, own, strict=True)
    ]
    most = max(gains)
    if most > 0:
        for i, gain in zip(order, gains, strict=True):
            boosts[i] = share * total[i] * max(0.0, gain) / most
    return boosts


def _rarity(shared: Sequence[set[str]]) -> dict[str, float]:
    # The fewer texts have a word, the more it weighs; a word of one text connects nothing.
    count = len(shared)
    return {
        word: math.log1p((count - n + 0.5) / (n + 0.5)) / n if n > 1 else 0.0
        for word, n in Counter(chain.from_iterable(shared)).items()
    }


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text)
    pairs = ["".join(pair) for run in _RUN.findall(text) for pair in pairwise(run)]
    return _WORD.findall(text) + pairs
