"""Ranking by itself: the order, the score and its details."""

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ports.stores import Hit
from commonplace.retrieval.calibration import CURVES, DEFAULT, SHIPPED
from commonplace.retrieval.ranking import (
    _ALONE,
    Weights,
    _Signals,
    lexical_certainty,
    neighbour_turns,
    rank,
)
from commonplace.types import Record, Scope, turn_key

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
        kind="fact" if position is None and speaker is None else "episode",
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


def test_a_session_with_good_turns_side_by_side_rises() -> None:
    tuesday = Scope(user_id="alice", session_id="tuesday")
    apart = [
        fact("apart", 0.8, 3.0, scope=tuesday, position=1),
        fact("apart, other", 0.8, 3.0, scope=tuesday, position=9),
    ]
    hits = (turn(3, 0.8, 3.0), turn(4, 0.8, 3.0), *apart)

    assert ["turn 3", "turn 4"] == order("?", *hits)[:2]


@pytest.mark.parametrize(
    ("question", "asking", "answering", "other"),
    [
        ("Where does Bob live?", "Bob, where do you live now?", "In Lyon, by the river.", "Sure."),
        ("鲍勃住在哪里？", "鲍勃，你现在住在哪里？", "在里昂，河边。", "好的。"),
    ],
)
def test_an_answer_rises_over_its_question(question, asking, answering, other) -> None:
    hits = [
        replace(turn(3, 0.7, 4.0), record=replace(turn(3).record, text=asking)),
        replace(turn(4, 0.3, 0.0), record=replace(turn(4).record, text=answering)),
        replace(turn(5, 0.3, 0.0), record=replace(turn(5).record, text=other)),
    ]

    matches = {one.record.id: one for one in rank(question, hits, now=NOW)}

    assert order(question, *hits).index("turn 4") < order(question, *hits).index("turn 5")
    assert matches["turn 3"].score_details["question"] < 0
    assert (
        matches["turn 4"].score_details["answer"] > 0 == matches["turn 5"].score_details["answer"]
    )


def test_words_around_a_turn_count_for_it() -> None:
    beside = replace(turn(3, 0.1), record=replace(turn(3).record, text="The cello lesson."))
    hits = (beside, turn(4, 0.4), turn(9, 0.4))

    assert ["turn 4", "turn 9"] == [one for one in order("cello lesson", *hits) if one != "turn 3"]


def test_a_turn_in_the_month_that_is_asked_for_rises() -> None:
    may = replace(
        turn(9, 0.2), record=replace(turn(9).record, occurred_at=datetime(2025, 5, 3, tzinfo=UTC))
    )

    assert "turn 9" == order("What was in May 2025?", turn(3, 0.5), may)[0]
    assert "turn 9" == order("2025年5月发生了什么？", turn(3, 0.5), may)[0]
    assert "turn 3" == order("What was in May 2024?", turn(3, 0.5), may)[0]


def test_several_named_speakers_are_no_sign() -> None:
    hits = (fact("a", 0.4, speaker="Bob"), fact("b", 0.4, speaker="Alice"))

    matches = rank("What did Bob tell Alice?", hits, now=NOW)

    assert [0.0, 0.0] == [one.score_details["speaker"] for one in matches]


def test_neighbours_are_ranked_too() -> None:
    found = order("?", turn(3, 0.8, 3.0), neighbours=(turn(4, 0.1),))

    assert ["turn 3", "turn 4"] == found


def test_neighbours_do_not_stretch_the_scores() -> None:
    hits = [fact("a", 0.2, 1.0), fact("b", 0.4, 2.0)]
    far = turn(4, -0.9, words=10_000)

    alone = [match.score for match in rank("?", hits, now=NOW)]
    assert pytest.approx(alone) == [match.score for match in rank("?", hits, [far], now=NOW)][:2]


def late_parts(*hits: Hit) -> dict[str, float]:
    weight = Weights().late
    found = _Signals("?", hits, hits, (), Weights()).weighted(NOW)["late"]
    return {hit.record.id: part / weight for hit, part in zip(hits, found, strict=True)}


def test_a_turn_gains_by_the_tokens_of_the_turns_around_it() -> None:
    # Each of two tokens is as rare as the other, so that the mean of both is what counts.
    hits = [
        replace(turn(place), late=late)
        for place, late in enumerate([(0.9, 0.1), (0.1, 0.9), (0.1, 0.1), (0.3, 0.1), (0.1, 0.1)])
    ]

    parts = late_parts(*hits, replace(turn(9), late=(0.1, 0.1)))

    alone = {name: parts[name] - whole for name, whole in (("turn 0", 1), ("turn 1", 1))}
    assert alone == pytest.approx({"turn 0": _ALONE, "turn 1": _ALONE})
    assert 1 == pytest.approx(parts["turn 2"])
    assert (0.6 - 0.1) / (0.9 - 0.1) + _ALONE * (0.2 - 0.1) / (0.5 - 0.1) == pytest.approx(
        parts["turn 3"]
    )
    assert (0.2 - 0.1) / (0.9 - 0.1) == pytest.approx(parts["turn 4"])
    assert 0 == parts["turn 9"]


def test_a_token_that_many_turns_have_counts_less_than_a_rare_one() -> None:
    common = [replace(turn(10 * place), late=(0.9, 0.1)) for place in range(1, 6)]

    parts = late_parts(replace(turn(0), late=(0.1, 0.9)), *common)

    assert 1 + _ALONE == pytest.approx(parts["turn 0"])
    assert all(parts[hit.record.id] == 0 for hit in common)


def test_a_turn_without_tokens_gains_nothing_by_them() -> None:
    assert {"turn 1": 0, "turn 5": 0} == late_parts(turn(1), turn(5))
    parts = late_parts(turn(1), replace(turn(5), late=(0.9,)), replace(turn(9), late=(0.1,)))
    assert {"turn 1": 0, "turn 5": 1 + _ALONE, "turn 9": 0} == pytest.approx(parts)


def test_long_turns_gain_nothing_from_their_session() -> None:
    hits = [turn(1, 0.9, 2.0, words=38), replace(turn(2, 0.4, words=38), late=(1.0,))]
    [_, second] = rank("?", hits, now=NOW)

    company = ("session", "coverage", "late", "speaker", "date", "question", "answer")
    assert not any(second.score_details[one] for one in company)


def test_a_turn_gains_nothing_from_another_session() -> None:
    tuesday = Scope(user_id="alice", session_id="tuesday")
    hits = (turn(1, 0.9, 2.0), turn(2, 0.1), fact("x", 0.1, scope=tuesday, position=2))

    matches = {match.record.id: match.score_details for match in rank("?", hits, now=NOW)}
    assert matches["x"]["session"] < matches["turn 2"]["session"]


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


def test_a_fact_that_fits_stands_before_what_only_surrounds_a_good_turn_in_a_small_memory() -> None:
    turns = [turn(at) for at in range(12)]
    said = "What name should my new tortoise have? I must find a name."
    turns[5] = fact("turn 5", 0.6, 4.0, text=said, scope=MONDAY, position=5, words=12)
    answer = fact("answer", 0.4, 1.5, text="Has a tortoise called Agatha.", words=5)

    assert ["turn 5", "answer"] == order("What name has my tortoise?", *turns, answer)[:2]


def test_facts_that_do_not_fit_leave_the_turns_as_they_are() -> None:
    turns = [turn(at) for at in range(12)]
    turns[5] = turn(5, 0.6, 3.0)
    others = [fact(f"other {number}") for number in range(4)]

    alone = order("question", *turns)
    assert alone == [one for one in order("question", *turns, *others) if one.startswith("turn")]


def test_facts_do_not_weaken_the_company_of_turns_in_a_large_memory() -> None:
    turns = [turn(at) for at in range(80)]
    turns[5] = turn(5, 0.6, 3.0)

    def gained(*more: Hit) -> float:
        matches = rank("question", [*turns, *more], now=NOW)
        found = {match.record.id: match.score_details["session"] for match in matches}
        return found["turn 4"] / found["turn 5"]

    assert gained() == pytest.approx(1)
    assert gained(fact("answer", 0.6, 2.5)) == pytest.approx(1)


def test_a_turn_of_few_words_gains_less_by_those_around_it() -> None:
    good = turn(5, 0.6, 3.0)

    [_, full, brief] = rank("question", [good, turn(4, words=2), turn(6)], now=NOW)

    assert ["turn 6", "turn 4"] == [full.record.id, brief.record.id]
    assert brief.score_details["session"] == pytest.approx(full.score_details["session"] / 3)


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

    question = chance.choice(["green tea", "List all green teas"])

    matches = rank(question, hits[cut:], hits[:cut], now=NOW)

    for match in matches:
        assert 0.0 <= match.score <= 1.0
        assert pytest.approx(match.score, abs=1e-9) == sum(match.score_details.values())
        negative = {one for one, part in match.score_details.items() if part < 0}
        assert negative <= {"question", "length", "same_session"}
    assert sorted((match.score for match in matches), reverse=True) == [
        match.score for match in matches
    ]
    chance.shuffle(hits)
    assert {
        "dense", "lexical", "graph", "session", "coverage", "late", "speaker", "date",
        "question", "answer", "length", "same_session", "newer",
    } == set(matches[0].score_details)  # fmt: skip
    assert rank(question, hits, now=NOW) == rank(question, hits[::-1], now=NOW)


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


def test_relevance_comes_of_the_curve_by_words_without_a_cosine_and_by_nothing() -> None:
    curve, scale = CURVES["latin"], SHIPPED[DEFAULT]["latin"]
    always = curve.base + curve.length * math.log(8)  # a fact of eight words

    named, strange = rank(
        "Miso", [fact("a", 0.0, 1.0, text="Miso sleeps."), fact("b", -0.1)], now=NOW
    )

    assert named.relevance == pytest.approx(
        logistic(always + curve.cosine * scale.place(0.0) + curve.words)
    )
    assert strange.relevance == pytest.approx(logistic(always + curve.cosine * scale.place(-0.1)))


def logistic(exponent: float) -> float:
    return 1 / (1 + math.exp(-exponent))


def test_words_count_in_full_from_a_sure_number_of_rare_ones() -> None:
    rare = math.log(1 + (10 - 1 + 0.5) / (1 + 0.5))  # the weight of a word that one of ten has
    others = [fact(f"other {n}") for n in range(9)]

    def certainty(question: str, lexical: float) -> float:
        return lexical_certainty(question, [fact("a", 0.5, lexical), *others])

    assert [certainty("?", share * 1.75 * rare) for share in (0, 0.5, 1, 2)] == pytest.approx(
        [0, 0.5, 1, 1]
    )
    assert certainty("鲍勃", 0.5 * 4.5 * rare) == pytest.approx(0.5)
    assert lexical_certainty("?", []) == 0


def test_a_common_word_does_not_outweigh_the_vector() -> None:
    hits = [fact(f"other {n}", 0.1) for n in range(20)]
    hits += [fact("near", 0.6), fact("has the word", 0.45, 0.8)]

    assert ["near", "has the word"] == order("question", *hits)[:2]
    hits[-1] = replace(hits[-1], lexical=5.0)
    assert ["has the word", "near"] == order("question", *hits)[:2]
