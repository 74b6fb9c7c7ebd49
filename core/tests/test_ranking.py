"""Ranking by itself: the order, the score and its details; `test_features.py` has the parts."""

import itertools
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ports.stores import Expansion, Hit
from commonplace.retrieval import ranking
from commonplace.retrieval.features import BACKGROUND, FEATURES, KINDS, LEADS, OF_BEST
from commonplace.retrieval.ranking import Weights, neighbour_turns, rank, shipped_weights
from commonplace.types import Match, Record, Scope, turn_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")
MONDAY = Scope(user_id="alice", session_id="monday")
AROUND = [*KINDS, *BACKGROUND, *LEADS, *OF_BEST]


def fact(
    name: str,
    dense: float = 0.0,
    lexical: float = 0.0,
    *,
    text: str = "",
    scope: Scope = ALICE,
    position: int | None = None,
    words: int = 8,
) -> Hit:
    record = Record(
        id=name,
        text=text or name,
        scope=scope,
        position=position,
        kind="fact" if position is None else "episode",
        role=None if position is None else "user",
        created_at=NOW,
        updated_at=NOW,
        occurred_at=NOW,
    )
    return Hit(record=record, dense=dense, lexical=lexical, words=words)


def turn(
    position: int, dense: float = 0.0, lexical: float = 0.0, words: int = 12, text: str = ""
) -> Hit:
    name = f"turn {position}"
    return fact(name, dense, lexical, text=text, scope=MONDAY, position=position, words=words)


def weighing(offset: float = 0.0, slope: float = 1.0, **features: float) -> Weights:
    """Make weights of a few features, in every kind of memory alike."""
    rows = np.zeros((len(FEATURES), len(KINDS)))
    for name, weight in features.items():
        rows[[*FEATURES].index(name), 0] = weight
    constant = np.zeros(len(AROUND))
    constant[0] = 1.0
    slopes = np.zeros(len(KINDS))
    slopes[0] = math.log(slope)
    return Weights(features=rows, slope=slopes, offset=offset * constant)


COSINE = weighing(cosine=4.0, offset=-2.0)


def order(question: str, *hits: Hit, neighbours: Sequence[Hit] = ()) -> list[str]:
    """Order by cosines alone."""
    return ids(rank(question, hits, neighbours, at=NOW, weights=COSINE))


def ids(matches: Sequence[Match]) -> list[str]:
    return [match.record.id for match in matches]


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


# -- order and score -----------------------------------------------------------------------------


def test_nothing_found_ranks_nothing() -> None:
    assert [] == rank("anything", [], at=NOW)


def test_the_score_is_the_logistic_of_the_weighted_features() -> None:
    scale = ranking.Scale(0.0, 0.5)
    weights = weighing(cosine=3.0, length_turn=-0.5, offset=-1.0, slope=2.0)

    matches = rank("?", [turn(1, 0.2), fact("a", 0.4)], at=NOW, scale=scale, weights=weights)

    said = -0.5 * (math.log(12) - 3)
    assert ["a", "turn 1"] == ids(matches)
    assert [one.score for one in matches] == pytest.approx(
        [logistic(2 * 3 * 0.8 - 1), logistic(2 * (3 * 0.4 + said) - 1)]
    )
    assert matches[0].score_details == pytest.approx({"cosine": 4.8, "offset": -1})
    assert matches[1].score_details == pytest.approx(
        {"cosine": 2.4, "length_turn": 2 * said, "offset": -1}
    )


def test_a_weight_has_a_part_for_each_kind_of_memory() -> None:
    weights = weighing(cosine=1.0)
    weights.features[[*FEATURES].index("cosine"), [*KINDS].index("cjk")] = 2.0

    [latin] = rank("tea?", [fact("a", 0.568)], at=NOW, weights=weights)
    [chinese] = rank("茶？", [fact("a", 0.650)], at=NOW, weights=weights)

    assert latin.score_details["cosine"] == pytest.approx(1.0)
    assert chinese.score_details["cosine"] == pytest.approx(3.0)


def test_slope_and_constant_depend_on_what_was_searched() -> None:
    weights = weighing(cosine=1.0)
    weights.slope[list(KINDS).index("cjk")] = math.log(3)
    weights.offset[AROUND.index("most_cosine")] = -1.0
    weights.offset[AROUND.index("lead")] = 2.0
    scale = ranking.Scale(0.0, 1.0)

    hits = [fact("a", 0.4), fact("b", 0.8)]
    first, second = rank("茶？", hits, at=NOW, weights=weights, scale=scale)

    slope, offset = 3.0, 2 * (0.8 - 0.4) - 0.8
    assert first.score_details == pytest.approx({"cosine": 0.8 * slope, "offset": offset})
    assert second.score_details == pytest.approx({"cosine": 0.4 * slope, "offset": offset})


def test_ties_are_broken_by_id() -> None:
    assert ["a", "b", "c"] == order("?", fact("c", 0.4), fact("a", 0.4), fact("b", 0.4))


def test_a_record_that_comes_twice_counts_once() -> None:
    assert ["a"] == order("?", fact("a", 0.4), fact("a", 0.4), neighbours=(fact("a", 0.4),))


def test_an_expired_record_is_left_out() -> None:
    hit = fact("a", 0.9)
    expired = replace(hit, record=replace(hit.record, expires_at=NOW))
    later = replace(hit, record=replace(hit.record, expires_at=NOW + timedelta(seconds=1)))

    assert [] == rank("a", [expired], at=NOW, now=NOW)
    assert 1 == len(rank("a", [later], at=NOW, now=NOW))
    assert 1 == len(rank("a", [expired], at=NOW, now=None))


def test_what_has_expired_gives_nothing_to_those_around() -> None:
    good = turn(3, 0.9, 4.0)
    expired = replace(good, record=replace(good.record, expires_at=NOW))

    with_it = rank("?", [turn(4, 0.3), expired], at=NOW, now=NOW)
    assert with_it == rank("?", [turn(4, 0.3)], at=NOW, now=NOW)


def test_neighbours_and_what_relations_lead_to_are_ranked_too() -> None:
    related = [Expansion(id="b", hops=2, weight=0.5, via=("turn 3",))]
    weights = weighing(cosine=4.0, two_relations=20.0)

    beside = [turn(4, 0.1, text="So they say."), fact("b")]
    found = rank("?", [turn(3, 0.8)], beside, related, at=NOW, weights=weights)

    assert ["turn 3", "b", "turn 4"] == ids(found)
    assert found[1].score_details["two_relations"] == pytest.approx(20 * 0.5 / 2)


def test_a_repeat_stands_where_its_best_would_with_the_score_of_that() -> None:
    first = fact("turn 1", 0.9, text="I live in Nice.", scope=MONDAY, position=1)
    again = fact("turn 9", 0.1, text="I live in Nice.", scope=MONDAY, position=9)
    hits = [first, again, fact("a", 0.5)]

    matches = rank("?", hits, at=NOW, weights=COSINE)

    assert ["turn 9", "a"] == ids(matches)
    alone = rank("?", [first, fact("a", 0.5)], at=NOW, weights=COSINE)
    assert [one.score for one in matches] == [one.score for one in alone]


def test_a_repeat_of_the_day_that_is_asked_for_stands_for_later_ones() -> None:
    def said(position: int, at: datetime) -> Hit:
        hit = fact(f"turn {position}", 0.5, text="I ran.", scope=MONDAY, position=position)
        return replace(hit, record=replace(hit.record, occurred_at=at))

    hits = [said(1, datetime(2025, 5, 3, tzinfo=UTC)), said(2, datetime(2025, 9, 3, tzinfo=UTC))]
    weights = weighing(cosine=1.0, date=1.0)

    assert ["turn 1"] == ids(rank("Where did I run in May 2025?", hits, at=NOW, weights=weights))
    assert ["turn 2"] == ids(rank("Where did I run?", hits, at=NOW, weights=weights))


# -- weights that ship ---------------------------------------------------------------------------


def test_the_weights_that_ship_are_those_of_the_features_and_kinds() -> None:
    made = json.loads(files(ranking.__package__).joinpath("weights.json").read_text("utf-8"))

    assert {"made", "features", "slope", "offset"} == set(made)
    assert list(FEATURES) == list(made["features"])
    assert all(list(KINDS) == list(row) for row in made["features"].values())
    assert list(KINDS) == list(made["slope"])
    assert AROUND == list(made["offset"])
    weights = shipped_weights()
    assert weights.features.shape == (len(FEATURES), len(KINDS))
    assert weights.slope.shape == (len(KINDS),)
    assert weights.offset.shape == (len(AROUND),)
    for one in (weights.features, weights.slope, weights.offset):
        assert np.isfinite(one).all()


def test_the_only_record_scores_by_what_it_says() -> None:
    [exact] = rank("Rex fears thunder", [fact("a", 0.95, text="Rex fears thunder")], at=NOW)
    [other] = rank("tax rates in Norway", [fact("a", 0.02, text="Rex fears thunder")], at=NOW)

    assert exact.score > other.score


@pytest.mark.parametrize("words", [8, 34, 36, 60])
@pytest.mark.parametrize("number", [1, 3, 50])
@pytest.mark.parametrize("question", ["Where is the red tea now?", "红茶在哪里？"])
def test_the_weights_that_ship_never_turn_the_order_round(
    question: str, number: int, words: int
) -> None:
    hits = [turn(9 * place, 0.1 + 0.5 * place / number, words=words) for place in range(number)]
    turned = replace(shipped_weights(), slope=weighing().slope)

    matches = rank(question, hits, at=NOW)

    assert ids(matches) == ids(rank(question, hits, at=NOW, weights=turned))


# -- turns around the hits -----------------------------------------------------------------------


def test_neighbour_turns_are_two_on_each_side_without_the_hits() -> None:
    found = neighbour_turns([turn(4), turn(5), fact("a")])

    assert {turn_key(MONDAY, at) for at in (2, 3, 6, 7)} == found


def test_no_turn_lies_before_the_first() -> None:
    assert {turn_key(MONDAY, 1), turn_key(MONDAY, 2)} == neighbour_turns([turn(0)])


def test_facts_have_no_neighbours() -> None:
    assert set() == neighbour_turns([fact("a"), fact("b")])
    assert set() == neighbour_turns([])


def test_the_neighbours_of_the_dozen_best_are_read() -> None:
    hits = [turn(10 * place, 0.1 * place, 0.0) for place in range(1, 10)]
    hits += [turn(10 * place, 0.0, 1.0 * place) for place in range(10, 20)]
    best = {*range(60, 100, 10), *range(120, 200, 10)}  # four by vector from .6, eight by words

    found = neighbour_turns(hits)

    assert found == {turn_key(MONDAY, at + step) for at in best for step in (-2, -1, 1, 2)}


# -- any candidates ------------------------------------------------------------------------------

DAY = timedelta(days=1)
TEXTS = ("red tea", "I have no idea, sorry.", "Where is the red tea?", "蓝天", "Room 4711.")
QUESTIONS = ("Where is the red tea now?", "蓝天？", "What was in May 2025?", "?")


def some_hits(chance: random.Random, number: int) -> list[Hit]:
    """Make candidates, some of which are alike, repeats of others or over."""
    hits = [
        fact(
            f"{place:03}",
            chance.choice([0.25, chance.uniform(-1, 1)]),
            chance.choice([0.0, chance.uniform(0, 9)]),
            text=chance.choice(TEXTS),
            scope=MONDAY,
            position=chance.choice([None, place]),
            words=chance.randint(0, 80),
        )
        for place in range(number)
    ]
    over = [
        replace(one, record=replace(one.record, expires_at=NOW + chance.choice([-1, 1]) * DAY))
        for one in hits[:3]
    ]
    return [*over, *hits[3:]]


def some_weights(chance: random.Random) -> Weights:
    """Make weights as they could have been trained."""
    numbers = np.random.default_rng(chance.randrange(2**32))
    size = len(AROUND)
    return Weights(
        features=numbers.normal(size=(len(FEATURES), len(KINDS))),
        slope=numbers.uniform(-0.5, 0.5, size=len(KINDS)),
        offset=numbers.normal(size=size),
    )


def by_weights(chance: random.Random) -> Weights | None:
    return chance.choice([None, some_weights(chance)])


def logits(matches: Sequence[Match]) -> list[float]:
    return [math.fsum(one.score_details.values()) for one in matches]


@settings(max_examples=100)
@given(st.randoms(use_true_random=False), st.integers(1, 40), st.sampled_from(QUESTIONS))
def test_matches_are_in_the_order_of_their_scores(
    chance: random.Random, size: int, question: str
) -> None:
    hits, weights = some_hits(chance, size), by_weights(chance)
    cut = chance.randint(0, size)

    matches = rank(question, hits[cut:], hits[:cut], at=NOW, now=NOW, weights=weights)

    scores = [one.score for one in matches]
    assert scores == sorted(scores, reverse=True)
    for one, logit in zip(matches, logits(matches), strict=True):
        assert 0 <= one.score <= 1
        assert one.score == pytest.approx(logistic(logit), abs=1e-6)
        assert set(one.score_details) <= {*FEATURES, "offset"}
    records = [one.record for one in matches]
    assert len({one.id for one in records}) == len(records)
    assert all(one.expires_at is None or one.expires_at > NOW for one in records)
    turns = [one.text for one in records if one.kind == "episode"]
    assert len(set(turns)) == len(turns)
    left = {one.record.text for one in hits if one.record.expires_at != NOW - DAY}
    assert {one.text for one in records} == left
    facts = [one for one in hits if one.record.kind == "fact"]
    there = {one.record.id for one in facts if one.record.expires_at != NOW - DAY}
    assert {one.id for one in records if one.kind == "fact"} == there


@given(st.randoms(use_true_random=False), st.integers(1, 30), st.sampled_from(QUESTIONS))
def test_equal_scores_are_in_the_order_of_ids(
    chance: random.Random, size: int, question: str
) -> None:
    hits = [replace(one, record=replace(one.record, role=None)) for one in some_hits(chance, size)]
    twins = [replace(one, record=replace(one.record, id=f"{one.record.id} b")) for one in hits]
    facts = [one for one in (*hits, *twins) if one.record.kind == "fact"]
    chance.shuffle(facts)

    matches = rank(question, facts, at=NOW, weights=by_weights(chance))

    assert len(matches) == len(facts)
    scores = {one.record.id: one.score for one in matches}
    for one in facts:
        twin = one.record.id.removesuffix(" b") + " b"
        assert scores[one.record.id] == pytest.approx(scores[twin], abs=1e-8)
    found = zip(logits(matches), ids(matches), strict=True)
    for (logit, id_), (after, other) in itertools.pairwise(found):
        assert logit > after + 1e-8 or (logit == pytest.approx(after, abs=1e-8) and id_ < other)


@given(st.randoms(use_true_random=False), st.integers(1, 30), st.sampled_from(QUESTIONS))
def test_a_threshold_and_a_limit_keep_the_first(
    chance: random.Random, size: int, question: str
) -> None:
    hits, weights = some_hits(chance, size), by_weights(chance)

    every = rank(question, hits, at=NOW, weights=weights)

    limit = chance.randint(1, size)
    assert rank(question, hits, at=NOW, weights=weights, limit=limit) == every[:limit]
    threshold = chance.choice([chance.random(), every[-1].score, chance.choice(every).score])
    kept = rank(question, hits, at=NOW, weights=weights, threshold=threshold)
    assert kept == [one for one in every if one.score >= threshold]
    assert kept == every[: len(kept)]


@given(st.randoms(use_true_random=False), st.integers(1, 30), st.sampled_from(QUESTIONS))
def test_the_order_in_which_candidates_come_does_not_matter(
    chance: random.Random, size: int, question: str
) -> None:
    hits, weights = some_hits(chance, size), by_weights(chance)
    shuffled = chance.sample(hits, size)
    cut = chance.randint(0, size)

    matches = rank(question, hits, at=NOW, weights=weights)
    others = rank(question, shuffled[cut:], shuffled[:cut], at=NOW, weights=weights)

    assert ids(matches) == ids(others)
    for one, other in zip(matches, others, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-8)
        assert one.score_details == pytest.approx(other.score_details, abs=1e-8)
