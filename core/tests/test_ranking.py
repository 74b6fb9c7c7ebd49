"""Ranking by itself: the order, the score and its details."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.model import Record, Scope, turn_key
from commonplace.ports.stores import Hit
from commonplace.retrieval.ranking import neighbour_turns, rank

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")
MONDAY = Scope(user_id="alice", session_id="monday")


def fact(
    name: str,
    dense: float = 0.0,
    lexical: float = 0.0,
    *,
    text: str = "",
    scope: Scope = ALICE,
    position: int | None = None,
    speaker: str | None = None,
    words: int = 8,
) -> Hit:
    record = Record(
        id=name,
        text=text or name,
        scope=scope,
        position=position,
        name=speaker,
        kind="fact" if position is None else "episode",
        created_at=NOW,
        updated_at=NOW,
        occurred_at=NOW,
    )
    return Hit(record=record, dense=dense, lexical=lexical, words=words)


def turn(position: int, dense: float = 0.0, lexical: float = 0.0, words: int = 12) -> Hit:
    return fact(f"turn {position}", dense, lexical, scope=MONDAY, position=position, words=words)


def order(question: str, *hits: Hit, neighbours: tuple[Hit, ...] = ()) -> list[str]:
    return [match.record.id for match in rank(question, hits, neighbours, now=NOW)]


def test_nothing_found_ranks_nothing() -> None:
    assert [] == rank("anything", [], now=NOW)


def test_without_lexical_hits_the_order_is_that_of_the_vectors() -> None:
    assert ["b", "c", "a"] == order("?", fact("a", 0.1), fact("b", 0.5), fact("c", 0.3))


def test_both_signals_beat_one() -> None:
    hits = (fact("vector", 0.6, 0.0), fact("both", 0.5, 3.0), fact("terms", 0.0, 3.5))

    assert "both" == order("question", *hits)[0]


def test_ties_are_broken_by_id() -> None:
    assert ["a", "b", "c"] == order("?", fact("c", 0.4), fact("a", 0.4), fact("b", 0.4))


def test_a_record_that_comes_twice_counts_once() -> None:
    assert ["a"] == order("?", fact("a", 0.4), fact("a", 0.4), neighbours=(fact("a", 0.4),))


def test_an_expired_record_is_left_out() -> None:
    hit = fact("a", 0.9)
    expired = replace(hit, record=replace(hit.record, expires_at=NOW))
    later = replace(hit, record=replace(hit.record, expires_at=NOW + timedelta(seconds=1)))

    assert [] == rank("a", [expired], now=NOW)
    assert 1 == len(rank("a", [later], now=NOW))


def test_a_limit_keeps_the_best() -> None:
    hits = [fact("a", 0.1), fact("b", 0.5), fact("c", 0.3)]

    assert rank("?", hits, now=NOW)[:2] == rank("?", hits, now=NOW, limit=2)


def test_the_only_record_scores_by_what_it_says() -> None:
    [exact] = rank("Rex fears thunder", [fact("a", 1.0, 4.0, text="Rex fears thunder")], now=NOW)
    [other] = rank("tax rates in Norway", [fact("a", 0.05, 0.0, text="Rex fears thunder")], now=NOW)

    assert exact.score > 0.8
    assert other.score < 0.2


def test_nothing_alike_scores_zero() -> None:
    matches = rank("the", [fact("a"), fact("b", -0.2)], now=NOW)

    assert [0.0, 0.0] == [match.score for match in matches]


def test_a_question_of_signs_only_is_ranked_by_vectors() -> None:
    assert ["b", "a"] == order("???", fact("a", 0.1), fact("b", 0.2))


def test_a_turn_between_good_turns_rises() -> None:
    hits = (turn(3, 0.8, 3.0), turn(4, 0.1), turn(5, 0.8, 3.0), turn(9, 0.12))

    assert order("?", *hits).index("turn 4") < order("?", *hits).index("turn 9")


def test_neighbours_are_ranked_too() -> None:
    found = order("?", turn(3, 0.8, 3.0), neighbours=(turn(4, 0.1),))

    assert ["turn 3", "turn 4"] == found


def test_neighbours_do_not_stretch_the_scores() -> None:
    hits = [fact("a", 0.2, 1.0), fact("b", 0.4, 2.0)]
    far = turn(4, -0.9, words=10_000)

    alone = [match.score for match in rank("?", hits, now=NOW)]
    assert pytest.approx(alone) == [match.score for match in rank("?", hits, [far], now=NOW)][:2]


def test_long_turns_gain_nothing_from_their_session() -> None:
    [_, second] = rank("?", [turn(1, 0.9, 2.0, words=400), turn(2, 0.4, words=400)], now=NOW)

    assert second.score_details["neighbour"] + second.score_details["session"] < 0.01 * second.score


def test_turns_of_another_session_are_no_neighbours() -> None:
    tuesday = Scope(user_id="alice", session_id="tuesday")
    hits = (turn(1, 0.9, 2.0), fact("x", 0.1, scope=tuesday, position=2))

    matches = {match.record.id: match for match in rank("?", hits, now=NOW)}
    assert 0.0 == matches["x"].score_details["neighbour"]


def test_a_fact_does_not_lose_to_an_equal_turn_for_having_no_session() -> None:
    assert ["fact", "turn 1"] == order("?", turn(1, 0.5, 1.0), fact("fact", 0.5, 1.0))


@pytest.mark.parametrize("question", ["What did Alice say?", "Alice's dog", "ALICE"])
def test_the_named_speaker_gains(question: str) -> None:
    hits = (fact("a", 0.4, speaker="Bob"), fact("b", 0.4, speaker="Alice Smith"))

    assert ["b", "a"] == order(question, *hits)


def test_a_name_inside_another_word_is_not_named() -> None:
    [match] = rank("a malice aforethought", [fact("a", 0.4, speaker="Alice")], now=NOW)

    assert 0.0 == match.score_details["speaker"]


def test_neighbour_turns_are_two_on_each_side_without_the_hits() -> None:
    found = neighbour_turns([turn(4), turn(5), fact("a")])

    assert {turn_key(MONDAY, at) for at in (2, 3, 6, 7)} == found


def test_no_turn_lies_before_the_first() -> None:
    assert {turn_key(MONDAY, 1), turn_key(MONDAY, 2)} == neighbour_turns([turn(0)])


@settings(max_examples=80)
@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_parts_sum_to_a_score_between_0_and_1_and_order_is_stable(
    chance: random.Random, size: int
) -> None:
    hits = [
        fact(
            f"{i:03}",
            chance.uniform(-1, 1),
            chance.choice([0.0, chance.uniform(0, 9)]),
            text=chance.choice(["red tea", "green cup", "blue sky"]),
            scope=MONDAY,
            position=chance.choice([None, i]),
            words=chance.randint(1, 80),
        )
        for i in range(size)
    ]
    cut = chance.randint(0, size)

    matches = rank("green tea", hits[cut:], hits[:cut], now=NOW)

    for match in matches:
        assert 0.0 <= match.score <= 1.0
        assert pytest.approx(match.score, abs=1e-9) == sum(match.score_details.values())
        assert all(part >= 0 for part in match.score_details.values())
    assert sorted((match.score for match in matches), reverse=True) == [
        match.score for match in matches
    ]
    chance.shuffle(hits)
    assert {"dense", "lexical", "speaker", "graph", "neighbour", "session", "mention"} == set(
        matches[0].score_details
    )
    assert rank("green tea", hits, now=NOW) == rank("green tea", hits[::-1], now=NOW)


def test_a_fit_is_the_same_whatever_else_is_there() -> None:
    hit = fact("a", 0.6, 1.0, text="Miso is a grey cat.")
    others = [fact(f"other {n}", n / 10, float(n), text="cat " * n) for n in range(1, 10)]

    [alone] = rank("Which cat is grey and old?", [hit], now=NOW)
    among = next(
        one
        for one in rank("Which cat is grey and old?", [hit, *others], now=NOW)
        if one.record.id == "a"
    )

    assert 0 < alone.relevance == among.relevance < 1


def test_words_alone_make_a_fit_and_nothing_makes_none() -> None:
    named, strange = rank(
        "Miso", [fact("a", 0.0, 1.0, text="Miso sleeps."), fact("b", -0.1)], now=NOW
    )

    assert (1.0, 0.0) == (named.relevance, strange.relevance)
