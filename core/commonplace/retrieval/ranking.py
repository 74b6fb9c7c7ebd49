"""Ranking: fuses the signals of all candidates into one order and one score in 0..1.

Pure functions, so that it can be measured alone. Dense and lexical scores are normalised to 0..1
over the union of candidates. Among short turns a turn gains by its company: by the best of its
session, by the question's words and by words like them around it, by the question that it answers,
by its speaker and by its date. Long messages stand alone, and get none of that. Facts stand alone
too, and are compared with the best windows of turns. Last, all scores are scaled by the confidence
that anything fits the question at all.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from ..ports.stores import Expansion, Hit
from ..types import Match, Scope, now, turn_key
from .calibration import Calibration, Judge
from .dates import asked_times, time_fit
from .lexical import CJK, has_cjk, term_weight, tokens, vocabulary
from .repeats import distinct, newer_first, session_losses
from .utterance_kinds import statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weight of each signal.

    Attributes:
        dense, lexical: of the cosine and of the words, each normalised.
        lexical_long: of the words among facts and long messages.
        share: of the cosine in a candidate's own score, which session and answer are made of; the
            words have the rest.
        session: of the best turn of the same session, with its neighbours.
        coverage: of the share of the question's words, the rare ones above all, in the turns
            around.
        late: of how near the question's words, the rare ones above all, are to some in the turns
            around, by token vectors; those of the turn itself count in addition.
        speaker: of the one speaker whom the question names.
        date: of a turn in the month, or near the day, that the question names.
        question: of a turn that ends with a question.
        only_question: of one that states nothing, in addition, whatever the length of turns.
        echo: of one that states nothing, by the share of its words that the question has too.
        answer: of a turn's own score, for the one that follows it if it ends with a question.
        length: of a turn's own score, by the logarithm of its length.
        neighbours: of the own scores of the turns at distance 1 and 2, each side.
        graph: of the record that is nearest to the question by relations.
        carried: for a record at two relations, of the score without the graph of the record that
            states the first one; its own text has no word of the entity that the question names.
        behind: the most that it gets, as a part of that record's score.
        short, long: words per turn up to which turns count as short, and from which as long.
        sure, unsure: cosines of the best candidate at which the confidence is 1 and 0.
    """

    dense: float = 1.0
    lexical: float = 0.8
    lexical_long: float = 1.0
    share: float = 0.4
    session: float = 1.0
    coverage: float = 1.6
    late: float = 2.0
    speaker: float = 0.4
    date: float = 2.9
    question: float = -0.45
    only_question: float = -1.0
    echo: float = -2.0
    answer: float = 1.15
    length: float = 0.6
    neighbours: tuple[float, float] = (0.3, 0.1)
    graph: float = 0.5
    carried: float = 1.0
    behind: float = 0.95
    short: float = 30.0
    long: float = 38.0
    sure: float = 0.85
    unsure: float = 0.3


Scores = NDArray[np.float64]

DEFAULT = Weights()

EPSILON = 1e-9
# Candidates whose neighbours are read, and whose words decide the confidence.
_EXPANDED = 12
_EXAMINED = 5
_ASKED = 0.5  # share of a question's score that its session is judged by
_ALONE = 0.3  # share of the late score that a turn gets again for itself, without those around
_AROUND = 2  # places on each side of a turn in which the question's tokens are looked for
_PLACES = 32  # bits of a place, in a number that has the session's in front
_BRIEF = 6  # words up to which a turn, such as "Good to know.", gains less by those around it
# Turns among the candidates up to which nearly each is near a good one, and from which few are.
_FEW, _MANY = 20, 60
_USUAL_LENGTH = 3.0  # logarithm of the words of a turn
_SURE_TERMS = 1.75  # rare terms of the question that the best has, from which words count in full
_SURE_TERMS_CJK = 4.5  # a word of two characters makes three terms
_READ = 384  # characters of a text in which the question's words are looked for
_ASKING = 60  # last characters of a turn in which it asks


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
    dense = normalized([hit.dense for hit in hits], DEFAULT.share)
    lexical = normalized([hit.lexical for hit in hits], 1 - DEFAULT.share)
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
    judge: Judge | None = None,
    now: datetime | None,
    limit: int | None = None,
    weights: Weights = DEFAULT,
) -> list[Match]:
    """Order candidates, best first, ties by id; equal turns and records that come twice count once.

    The newest of equal turns stands for all.

    Args:
        question: the text of the search.
        hits: the union of what each signal found, each with both raw scores.
        neighbours: turns next to them, and records that relations lead to; they are ranked too.
        expansions: of the relationship graph, for some of these records.
        judge: computes the relevance of each; by the default embedder's scales when None.
        now: records expired by then are left out; None leaves out none.
        limit: return only that many of the best; all when None.

    Returns:
        Matches whose `score_details` sum to `score`: dense, lexical, graph, session, coverage,
        late, speaker, date, question, answer, length, same_session, newer. Those
        that count against a record are negative.
    """
    seen: dict[str, Hit] = {}
    for hit in (*hits, *neighbours):
        expires = hit.record.expires_at
        if now is None or expires is None or expires > now:
            seen.setdefault(hit.record.id, hit)
    if not seen:
        return []
    every = list(seen.values())
    signals = _Signals(question, every, hits, expansions, weights).weighted(now)
    total = [max(0.0, sum(parts)) for parts in zip(*signals.values(), strict=True)]

    order = _without_repeats(question, every, signals, total)
    words = set(tokens(question))
    examined = order[:_EXAMINED]
    best = max(_coverage(words, every[i]) for i in examined)
    scale = _confidence(best, every, weights) / max(total[order[0]], EPSILON)
    graph_weights = {expansion.id: expansion.weight for expansion in expansions}
    judge = judge or Calibration().judge(question)
    matches = []
    for i in order[:limit]:
        # One whose signals count against it more than for it has no score, and so no parts.
        factor = scale if total[i] else 0.0
        details = {name: parts[i] * factor for name, parts in signals.items()}
        relevance = judge(every[i], graph_weights.get(every[i].record.id, 0.0))
        score = min(1.0, total[i] * scale)
        matches.append(
            Match(record=every[i].record, score=score, score_details=details, relevance=relevance)
        )
    return matches


def _without_repeats(
    question: str, every: Sequence[Hit], signals: dict[str, list[float]], total: list[float]
) -> list[int]:
    """Order candidates without repeats, newer statements first; change their signals and totals.

    Of a question for several things, each further turn of a session has less.

    What stands for several equal turns, the newest or the one of the day that is asked for, has the
    signals of the best of them.
    """
    records = [hit.record for hit in every]
    order = sorted(range(len(every)), key=lambda i: (-total[i], records[i].id))
    dates = signals["date"]
    standing = []
    for best, newest in distinct(records, order):
        is_dated = dates[best] > dates[newest]  # it is of the day that is asked for
        if newest != best and not is_dated:
            total[newest] = total[best]
            for parts in signals.values():
                parts[newest] = parts[best]
        standing.append(best if is_dated else newest)
    order = standing
    lost = session_losses(question, records, order, total)
    signals["same_session"] = [-lost.get(i, 0.0) for i in range(len(every))]
    for i, less in lost.items():
        total[i] -= less
    if lost:
        order.sort(key=lambda i: (-total[i], records[i].id))
    order, gained = newer_first(question, records, order, total)
    signals["newer"] = [gained.get(i, 0.0) for i in range(len(every))]
    for i, more in gained.items():
        total[i] += more
    return order


class _Signals:
    """The signals of all candidates of one search: a list of each, one value per candidate."""

    def __init__(
        self,
        question: str,
        every: Sequence[Hit],
        hits: Sequence[Hit],
        expansions: Sequence[Expansion],
        weights: Weights,
    ) -> None:
        self._question = question
        self._every = every
        self._weights = weights
        self._sessions = sessions_of(every)
        self._company = company_of(every, weights)
        dense = [hit.dense for hit in every]
        lexical = [hit.lexical for hit in every]
        self._dense = normalized(dense, 1.0, [hit.dense for hit in hits])
        self._lexical = normalized(
            lexical, lexical_certainty(question, hits), [hit.lexical for hit in hits]
        )
        share = weights.share if self._company else 0.5
        alone = [
            share * a + (1 - share) * b for a, b in zip(self._dense, self._lexical, strict=True)
        ]
        self._graph = graph_scores(alone, every, expansions, weights)
        self._own = [a + b for a, b in zip(alone, self._graph, strict=True)]
        self._are_facts = [hit.record.kind != "episode" for hit in every]

    def weighted(self, at: datetime | None) -> dict[str, list[float]]:
        """Compute every signal, each multiplied by its weight."""
        weights, company = self._weights, self._company
        lexical = company * weights.lexical + (1 - company) * weights.lexical_long
        found = {
            "dense": _scaled(self._dense, weights.dense),
            "lexical": _scaled(self._lexical, lexical),
            "graph": _scaled(self._graph, weights.dense + lexical),
            "length": _scaled(self._lengths(), weights.length),
        }
        signals = {
            "session": (self._session_bests, weights.session),
            "coverage": (self._coverages, weights.coverage),
            "late": (self._lates, weights.late),
            "speaker": (self._speakers, weights.speaker),
            "date": (lambda: self._dates(at or now()), weights.date),
            "question": (lambda: [float(one) for one in self._asks], weights.question),
            "answer": (self._answers, weights.answer),
        }
        for name, (compute, weight) in signals.items():
            is_used = company * weight != 0
            values = compute() if is_used else [0.0] * len(self._every)
            found[name] = _scaled(values, company * weight) if is_used else values
        for i, counted in self._only_asking().items():
            found["question"][i] += counted
        return found

    def _lengths(self) -> list[float]:
        """Score turns by how much they say; a fact says all that it has to say."""
        return [
            (math.log(max(1, hit.words)) - _USUAL_LENGTH) * own
            if hit.record.kind == "episode"
            else 0.0
            for hit, own in zip(self._every, self._own, strict=True)
        ]

    def _session_bests(self) -> list[float]:
        """Score all turns of a session by its best one with its neighbours.

        Each fact counts as its own session, so that turns gain nothing from having neighbours. A
        question counts half: what was asked before is like what is asked now in every session.
        """
        own = [
            _ASKED * one if asks else one for one, asks in zip(self._own, self._asks, strict=True)
        ]
        own.append(0.0)
        missing = len(own) - 1  # the index of the padding
        near, far = self._weights.neighbours
        found = list(self._own)
        for turns in self._sessions:
            at = turns.get
            best = max(
                own[i]
                + near * (own[at(place - 1, missing)] + own[at(place + 1, missing)])
                + far * (own[at(place - 2, missing)] + own[at(place + 2, missing)])
                for place, i in turns.items()
            )
            for i in turns.values():
                found[i] = best
        return self._with_company(self._own, found) if self._is_company_bounded else found

    def _coverages(self) -> list[float]:
        """Score candidates by the question's words in the turns up to two places away."""
        asked = set(_words(self._question.lower()))
        words_of = [
            asked.intersection(_words(hit.record.text[:_READ].lower())) for hit in self._every
        ]
        weights = _rarity(asked, words_of)
        whole = max(math.fsum(weights.values()), EPSILON)
        around = list(words_of)
        for turns in self._sessions:
            for place, i in turns.items():
                near = (turns.get(place + step) for step in (-2, -1, 1, 2))
                around[i] = words_of[i].union(*(words_of[j] for j in near if j is not None))

        def share(words: set[str]) -> float:
            # An exact sum, because sets have no order and equal texts must gain the same.
            return math.fsum(map(weights.__getitem__, words)) / whole

        shares = list(map(share, around))
        if not self._is_company_bounded:
            return shares
        return self._with_company(list(map(share, words_of)), shares)

    def _lates(self) -> list[float]:
        """Score candidates by the question's tokens in the turns up to two places away.

        The mean of the best cosine of each, the rare ones weighing more, stretched to 0..1 over the
        candidates. A share of the same for the turn alone comes on top: it tells the turn that has
        the words from its neighbours.
        """
        lates = [hit.late for hit in self._every]
        size = max(map(len, lates))
        if not size:
            return [0.0] * len(lates)
        none = (-1.0,) * size
        values = chain.from_iterable([late or none for late in lates])
        best = np.fromiter(values, np.float64, size * len(lates)).reshape(-1, size)
        there = np.array(list(map(bool, lates)))
        rarity = _token_rarity(best[there])
        alone, window = best @ rarity, self._best_around(best) @ rarity
        around = _stretched(window, window[there])
        if self._is_company_bounded:
            own = _stretched(alone, window[there])
            around = np.array(self._with_company(own.tolist(), around.tolist()))
        whole = around + _ALONE * _stretched(alone, alone[there])
        found: list[float] = whole.tolist()
        return found

    def _with_company(self, alone: Sequence[float], around: Sequence[float]) -> list[float]:
        """Add to what candidates score alone a part of what those around them add.

        A fact has nobody around. So that it is compared with whole windows of turns, the best
        candidate alone counts as the best window does.

        Args:
            around: what each scores with those around it; what it scores alone if it is a fact.
        """
        scale = max(1.0, max(around) / max(*alone, EPSILON))
        parts = zip(alone, around, self._are_facts, self._company_shares, strict=True)
        return [
            own * scale if is_fact else own + (gained - own) * share
            for own, gained, is_fact, share in parts
        ]

    @cached_property
    def _is_company_bounded(self) -> bool:
        return any(self._are_facts) or min(self._company_shares) < 1

    @cached_property
    def _company_shares(self) -> list[float]:
        """Compute the share of what those around a turn add that counts, in 0..1.

        A few words cannot say what the turns around are about. Where there are few turns, being
        near a good one says the less, the better a fact fits by itself.
        """
        shares = [min(1.0, hit.words / _BRIEF) for hit in self._every]
        turns = self._are_facts.count(False)
        is_small = max(0.0, min(1.0, (_MANY - turns) / (_MANY - _FEW)))
        facts = (own for own, is_fact in zip(self._own, self._are_facts, strict=True) if is_fact)
        rest = 1 - is_small * max(facts, default=0.0) / max(*self._own, EPSILON)
        return [share * rest for share in shares]

    def _best_around(self, best: Scores) -> Scores:
        """Find the best of each column in the rows of the turns up to two places away."""
        sessions = enumerate(self._sessions)
        turns = {number << _PLACES | at: i for number, one in sessions for at, i in one.items()}
        ordered = sorted(turns)
        places = np.fromiter(ordered, np.int64, len(turns))
        rows = np.fromiter(map(turns.__getitem__, ordered), np.intp, len(turns))
        found = best.copy()
        for step in range(1, _AROUND + 1):  # no two turns are at one place
            near = (places[step:] - places[:-step] <= _AROUND).nonzero()[0]
            before, after = rows[near], rows[near + step]
            found[before] = np.maximum(found[before], best[after])
            found[after] = np.maximum(found[after], best[before])
        return found

    def _speakers(self) -> list[float]:
        """Score turns of a speaker whom the question names, unless it names several."""
        spoken = set(_LETTERS.findall(self._question.casefold()))
        names = {hit.record.name for hit in self._every if hit.record.name}
        named = {name for name in names if _is_named(name, spoken)}
        return [float(len(named) == 1 and hit.record.name in named) for hit in self._every]

    def _dates(self, at: datetime) -> list[float]:
        """Score records by how well the moment when they were told fits the question's dates."""
        asked = asked_times(self._question, at)
        if not asked:
            return [0.0] * len(self._every)
        return [time_fit(asked, hit.record.occurred_at) for hit in self._every]

    @cached_property
    def _asks(self) -> list[bool]:
        """Tell which turns end with a question."""
        return [
            hit.record.kind == "episode"
            and _QUESTION_MARK.search(hit.record.text[-_ASKING:]) is not None
            for hit in self._every
        ]

    def _only_asking(self) -> dict[int, float]:
        """Count against the turns that end with a question and state nothing, by their index."""
        asked = vocabulary(self._question)
        found = {}
        for i, (hit, asks) in enumerate(zip(self._every, self._asks, strict=True)):
            if asks and not statements(hit.record.text):
                words = vocabulary(hit.record.text)
                echo = (len(words & asked) / max(1, len(words))) ** 2
                found[i] = self._weights.only_question + self._weights.echo * echo
        return found

    def _answers(self) -> list[float]:
        """Score a turn that follows a question by how well that question fits."""
        found = [0.0] * len(self._every)
        for turns in self._sessions:
            for place, i in turns.items():
                before = turns.get(place - 1)
                if before is not None and self._asks[before]:
                    found[i] = self._own[before]
        return found


def _coverage(words: set[str], hit: Hit) -> float:
    """Compute the share of the question's words that a record has, squared."""
    if not words:
        return 0.0
    return (len(words & vocabulary(hit.record.indexed_text)) / len(words)) ** 2


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


def company_of(hits: Sequence[Hit], weights: Weights) -> float:
    """Compute how much turns gain by their company, in 0..1: short ones all, long ones nothing."""
    lengths = [hit.words for hit in hits if hit.record.kind == "episode"]
    if not lengths:
        return 0.0
    mean = sum(lengths) / len(lengths)
    return max(0.0, min(1.0, (weights.long - mean) / (weights.long - weights.short)))


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


def lexical_certainty(question: str, hits: Sequence[Hit]) -> float:
    """Compute how much words say, in 0..1: less where the best candidate has no rare one.

    The raw score of a rare word grows with the number of records, so it is compared with that of a
    word that one of these candidates has. That a word weighs less in a long text does not count:
    the text has it all the same.
    """
    rare = math.log1p((len(hits) - 0.5) / 1.5)
    needed = rare * (_SURE_TERMS_CJK if has_cjk(question) else _SURE_TERMS)
    best = max((hit.lexical / min(1.0, term_weight(1, hit.words)) for hit in hits), default=0.0)
    return min(1.0, max(0.0, best) / max(needed, EPSILON))


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
    heaviest = max(*(expansion.weight for expansion in expansions), EPSILON)
    found: dict[str, float] = {}
    for expansion in sorted(expansions, key=lambda expansion: expansion.hops):
        share, own = expansion.weight / heaviest, scores.get(expansion.id, 0.0)
        if not expansion.via:
            found[expansion.id] = weights.graph * share
            continue
        first, gain = max((scores.get(id_, 0.0), found.get(id_, 0.0)) for id_ in expansion.via)
        carried = share * (weights.graph * first / top + weights.carried * first)
        found[expansion.id] = max(0.0, min(carried, weights.behind * (first + gain) - own))
    return [found.get(hit.record.id, 0.0) for hit in hits]


# Six letters stand for a word: a stemmer takes five times as long and finds no more.
_ASCII = re.compile(r"([a-z0-9]{3,6})[a-z0-9]*")
_WORD = re.compile(rf"([^\W_{CJK}]{{3,6}})[^\W_{CJK}]*")
_RUN = re.compile(rf"[{CJK}]{{2,}}")
_LETTERS = re.compile(r"[^\W_]+")
_QUESTION_MARK = re.compile("[?？]")


def _rarity(asked: set[str], words_of: Sequence[set[str]]) -> dict[str, float]:
    """Weigh the question's words: the fewer candidates have one, the more it weighs."""
    counts = Counter(chain.from_iterable(words_of))
    most = len(words_of)
    return {one: math.log1p((most - counts[one] + 0.5) / (counts[one] + 0.5)) for one in asked}


def _token_rarity(best: Scores) -> Scores:
    """Weigh the question's tokens, in sum 1: the fewer candidates come near one, the more.

    Args:
        best: a row for each candidate with its best cosine of each token; from .5 on it is counted
            in part, and at 1 in full.
    """
    counts = np.minimum(np.maximum(2 * best - 1, 0), 1).sum(axis=0)  # quicker than np.clip
    weights = np.log1p((len(best) - counts + 0.5) / (counts + 0.5))
    rarity: Scores = weights / weights.sum()
    return rarity


def _stretched(values: Scores, span: Scores) -> Scores:
    """Scale scores so that the least and the greatest of `span` get 0 and 1; those below get 0."""
    low = span.min()
    scaled: Scores = np.maximum((values - low) / (span.max() - low + EPSILON), 0)
    return scaled


def _is_named(name: str, spoken: set[str]) -> bool:
    """Tell whether a question has somebody's first name, or what is left of it when shortened."""
    first = _LETTERS.match(name.casefold())
    return first is not None and (first[0] in spoken or first[0][:3] in spoken)


def _scaled(values: Sequence[float], weight: float) -> list[float]:
    return [weight * value for value in values]


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text)
    pairs = ["".join(pair) for run in _RUN.findall(text) for pair in pairwise(run)]
    return _WORD.findall(text) + pairs
