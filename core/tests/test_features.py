"""Each feature of the ranking by itself, over a few candidates whose values are worked out here."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log, log1p, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.ports.stores import Expansion, Hit
from commonplace.retrieval.calibration import Scale
from commonplace.retrieval.features import (
    BACKGROUND,
    FEATURES,
    IMAGINED,
    KINDS,
    LEADS,
    OF_BEST,
    CandidateArrays,
    background_of,
    kind_of,
    leads_of,
    matrix,
)
from commonplace.retrieval.lexical import document_terms, query_terms
from commonplace.retrieval.personal import SURE
from commonplace.types import Record, Scope

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Scale(0.0, 1.0)  # on which a cosine is its own place
ALICE = Scope(user_id="alice")
NEVER_HEARD = "I have no information about that."


def fact(name: str, dense: float = 0.0, *, text: str = "", words: int = 8, day: int = 0) -> Hit:
    at = AT + timedelta(days=day)
    record = Record(
        id=name,
        text=text or name,
        scope=ALICE,
        created_at=AT,
        updated_at=AT,
        occurred_at=at,
    )
    return Hit(record=record, dense=dense, lexical=0.0, words=words)


def turn(
    position: int,
    dense: float = 0.0,
    *,
    text: str = "",
    words: int = 12,
    session: str = "monday",
    speaker: str | None = None,
    day: int = 0,
    late: tuple[float, ...] = (),
) -> Hit:
    scope = Scope(user_id="alice", session_id=session)
    told = fact(f"{session} {position}", dense, text=text, words=words, day=day)
    record = replace(told.record, kind="episode", scope=scope, position=position, name=speaker)
    if text == NEVER_HEARD:
        record = replace(record, role="assistant")
    return replace(told, record=record, late=late)


def candidates(
    question: str, hits: Sequence[Hit], related: Sequence[Expansion] = ()
) -> CandidateArrays:
    """Make candidates with the question's terms that their texts have."""
    asked = query_terms(question).indices
    found = []
    for one in hits:
        terms = document_terms(one.record.text)
        held = dict(zip(terms.indices, terms.weights, strict=True))
        found.append(replace(one, terms=tuple(held.get(index, 0.0) for index in asked)))
    return CandidateArrays(question, found, related, PLAIN, AT)


def values(feature: str, question: str, *hits: Hit, related: Sequence[Expansion] = ()) -> object:
    """Compute one feature of each candidate, to compare with."""
    found = FEATURES[feature](candidates(question, hits, related))
    assert found.shape == (len(hits),)
    return pytest.approx(found.tolist(), abs=1e-12)


def kinds(question: str, *hits: Hit) -> Mapping[str, float]:
    """Compute the kind of a memory and question."""
    return dict(zip(KINDS, kind_of(candidates(question, hits)).tolist(), strict=True))


def rarity(count: float, number: int) -> float:
    """Weigh a word that so many of the candidates have, before the sum is made 1."""
    return log1p((number + IMAGINED - count + 0.5) / (count + 0.5))


def said(cosine: float, coverage: float = 0.0) -> float:
    """Say how much a candidate without tokens says by itself."""
    late = 0.20 + 0.17 * cosine + 0.70 * coverage
    return 0.4 * cosine + 0.3 * coverage + 0.5 * (late - 0.3)


# -- what a candidate says by itself ------------------------------------------------------------


def test_cosines_are_placed_on_the_scale_of_the_embedder() -> None:
    hits = [fact("a", 0.1), fact("b", 0.3), fact("c", 0.0)]
    found = CandidateArrays("?", hits, (), Scale(0.1, 0.5), AT)

    assert FEATURES["cosine"](found).tolist() == pytest.approx([0, 0.5, -0.25])
    assert FEATURES["cosine_squared"](found).tolist() == pytest.approx([0, 0.25, 0])


def test_what_stands_out_is_nearer_than_the_mean() -> None:
    deviation = sqrt((0.3**2 + 0.3**2) / 3) + 0.05

    assert [-0.3 / deviation, 0, 0.3 / deviation] == values(
        "standing_out", "?", fact("a", 0.0), fact("b", 0.3), fact("c", 0.6)
    )
    assert [0.0] == values("standing_out", "?", fact("a", 0.6))


def test_lexical_scores_are_shares_of_the_best() -> None:
    hits = [replace(fact(str(one)), lexical=one) for one in (0.0, 2.0, 8.0)]

    assert [0.0, 0.25, 1.0] == values("lexical", "?", *hits)
    assert [0.0, 0.0] == values("lexical", "?", hits[0], hits[0])


def test_coverage_weighs_rare_words_more() -> None:
    tea, red = rarity(2, 3), rarity(1, 3)
    hits = [fact("red tea"), fact("a cup of tea"), fact("water")]

    assert red > tea
    assert [1.0, tea / (tea + red), 0.0] == values("coverage", "red tea", *hits)
    assert [1.0, (tea / (tea + red)) ** 2, 0.0] == values("coverage_squared", "red tea", *hits)


def test_a_question_of_signs_has_no_words() -> None:
    found = candidates("???", [fact("a"), fact("b")])

    for feature in ("coverage", "coverage_squared", "codes", "lexical"):
        assert FEATURES[feature](found).tolist() == [0, 0]


def test_particles_of_a_chinese_question_are_no_words_of_it() -> None:
    hits = [fact("a", text="这是我的。"), fact("b", text="护照明年到期。")]

    assert [0.0, 1.0] == values("coverage", "我的护照？", *hits)


def test_codes_are_words_with_digits_alone() -> None:
    hits = [fact("a", text="Room 4711."), fact("b", text="Any room."), fact("c", text="In B7.")]
    room, first, second = rarity(2, 3), rarity(1, 3), rarity(1, 3)

    assert [0.5, 0.0, 0.5] == values("codes", "Room 4711 or B7", *hits)
    assert [0.0, 0.0, 0.0] == values("codes", "Which room?", *hits)
    share = (room + first) / (room + first + second)
    assert share == pytest.approx(candidates("Room 4711 or B7", hits).coverage[0])


def test_tokens_count_by_the_rarity_of_each() -> None:
    # A cosine of .9 counts as .8 of a candidate, one of .1 not at all.
    common, rare = rarity(5 * 0.8, 6), rarity(0.8, 6)
    hits = [turn(10 * place, late=(0.9, 0.1)) for place in range(5)]

    found = values("late", "?", *hits, turn(99, late=(0.1, 0.9)))

    often = (0.9 * common + 0.1 * rare) / (common + rare)
    seldom = (0.1 * common + 0.9 * rare) / (common + rare)
    assert [often] * 5 + [seldom] == found
    assert seldom > often


def test_without_tokens_late_is_guessed() -> None:
    assert [0.20 + 0.17 * 0.4, 0.20 + 0.70] == values("late", "tea", fact("a", 0.4), fact("tea"))
    # Of the only candidate with tokens each is as rare as the other.
    hits = [turn(1, late=(0.9, 0.5)), fact("a", 0.4)]
    weights = rarity(0.8, 1), rarity(0.0, 1)
    found = (0.9 * weights[0] + 0.5 * weights[1]) / sum(weights)
    assert [found, 0.20 + 0.17 * 0.4] == values("late", "?", *hits)


@pytest.mark.parametrize(
    ("words", "length"), [(0, 0.0), (1, 0.0), (20, log(20)), (400, log(400)), (9_999, 6.0)]
)
def test_a_length_is_a_logarithm_up_to_a_bound(words: int, length: float) -> None:
    hits = [fact("a", words=words), turn(1, words=words)]

    assert [length - 3, 0.0] == values("length_fact", "?", *hits)
    assert [0.0, length - 3] == values("length_turn", "?", *hits)


# -- turns around -------------------------------------------------------------------------------


def test_tokens_are_looked_for_up_to_two_turns_away() -> None:
    hits = [turn(0, late=(0.9, 0.1)), *(turn(at, late=(0.1, 0.1)) for at in (1, 2, 3, 4, 5))]
    hits.append(turn(6, late=(0.1, 0.9)))  # so that both tokens are as rare

    gains = values("late_around", "?", *hits)

    assert [0.0, 0.4, 0.4, 0.0, 0.4, 0.4, 0.0] == gains


def test_words_are_looked_for_up_to_two_turns_away() -> None:
    texts = ["Red.", "Tea.", "Yes, indeed.", "Bread.", "So.", "Rice."]
    hits = [turn(at, text=text) for at, text in enumerate(texts)]

    assert [0.5, 0.5, 1.0, 0.5, 0.0, 0.0] == values("coverage_around", "red tea", *hits)


def test_a_turn_gains_by_those_beside_it() -> None:
    hits = [turn(0, 0.5), turn(1, 0.1), turn(2, 0.3), turn(4, 0.9)]

    assert [said(0.1) / 2, (said(0.5) + said(0.3)) / 2, said(0.1) / 2, 0.0] == values(
        "beside", "?", *hits
    )


def test_a_turn_gains_by_the_best_of_its_session() -> None:
    hits = [turn(0, 0.1), turn(1, 0.8), turn(3, 0.2), turn(0, 0.9, session="tuesday")]
    best = said(0.8) + 0.3 * said(0.1) + 0.1 * said(0.2)

    assert [best - said(0.1), best - said(0.8), best - said(0.2), 0.0] == values(
        "session", "?", *hits
    )


def test_a_question_is_half_as_good_a_turn_of_its_session() -> None:
    hits = [turn(0, 0.6, text="The shed is locked. Where is its key?"), turn(9, 0.2)]

    assert [said(0.6) / 2 - said(0.6), said(0.6) / 2 - said(0.2)] == values("session", "?", *hits)


def test_an_answer_gains_by_the_question_before_it() -> None:
    asking = "Bob, where do you and your brother live these days, if I may ask?"
    hits = [turn(0, 0.6, text=asking), turn(1, 0.2), turn(2, 0.1)]

    assert [0.0, said(0.6), 0.0] == values("answered", "?", *hits)


def test_to_answer_another_question_says_nothing_against_a_turn() -> None:
    hits = [turn(0, -0.6, text="How was the ride?"), turn(1, 0.2)]

    assert said(-0.6) < 0
    assert [0.0, 0.0] == values("answered", "?", *hits)


AROUND = ("late_around", "coverage_around", "beside", "session", "answered")


@pytest.mark.parametrize("feature", AROUND)
def test_turns_gain_nothing_from_another_session(feature: str) -> None:
    good = turn(1, 0.9, text="I ordered red tea. Where is it?", late=(0.9, 0.9))
    hits = [good, turn(2, session="tuesday", late=(0.1, 0.1))]

    assert 0 == FEATURES[feature](candidates("red tea", hits))[1]


@pytest.mark.parametrize("feature", AROUND)
def test_facts_gain_nothing_from_turns(feature: str) -> None:
    good = turn(1, 0.9, text="I ordered red tea. Where is it?", late=(0.9, 0.9))

    assert 0 == FEATURES[feature](candidates("red tea", [good, fact("a")]))[1]


@pytest.mark.parametrize("feature", AROUND)
def test_long_turns_gain_nothing_and_brief_ones_less(feature: str) -> None:
    good = turn(1, 0.9, text="I ordered red tea. Where is it?", late=(0.9, 0.9))

    def gained(words: int, others: int = 20) -> float:
        beside = turn(2, words=words, late=(0.1, 0.1))
        filling = [turn(50 + 9 * n, words=others, late=(0.1, 0.1)) for n in range(8)]
        found = candidates("red tea", [replace(good, words=others), beside, *filling])
        return float(FEATURES[feature](found)[1])

    assert gained(12) > 0
    assert gained(3) == pytest.approx(gained(12) / 2)
    assert gained(60, 60) == 0


@pytest.mark.parametrize("feature", AROUND)
def test_a_turn_that_knows_nothing_gives_nothing_nor_does_what_asked_it(feature: str) -> None:
    asked = turn(1, 0.9, text="Where is the red tea?", late=(0.9, 0.9))
    ignorant = turn(2, 0.8, text=NEVER_HEARD, late=(0.8, 0.8))
    other = turn(3, 0.5, text="The weather was fine all day.", late=(0.5, 0.5))

    gained = float(FEATURES[feature](candidates("red tea", [asked, ignorant, other]))[2])
    alone = float(FEATURES[feature](candidates("red tea", [other]))[0])

    assert gained == pytest.approx(alone, abs=1e-12)


def test_what_only_asks_gives_to_its_answer_alone() -> None:
    before = turn(0, 0.2, text="The water is boiling already.")
    asked = turn(1, 0.9, text="Where is the red tea?")
    answer = turn(2, 0.1, text="It stands in the cupboard by the window.")

    answered = values("answered", "red tea", before, asked, answer)
    beside = values("beside", "red tea", before, asked, answer)

    assert answered == [0.0, 0.0, said(0.9, 1.0)]
    assert beside == [0.0, (said(0.2) + said(0.1)) / 2, 0.0]


def test_a_question_that_was_asked_before_changes_nothing_of_what_others_say() -> None:
    told = [fact("a", 0.4, text="Red tea stands in the cupboard."), fact("b", 0.1, text="I ski.")]
    asked = replace(turn(1, 0.99, text="Where is the red tea?"), lexical=9.0)
    again = replace(asked, record=replace(asked.record, id="again", position=7))

    plain = candidates("Where is the red tea?", told)
    found = candidates("Where is the red tea?", [*told, asked, again])

    assert matrix(found)[:2].tolist() == matrix(plain).tolist()
    assert background_of(found)[-5:].tolist() == background_of(plain)[-5:].tolist()


def test_what_states_nothing_says_no_more_than_what_states_most() -> None:
    told = [fact("a", 0.4, text="Red tea stands in the cupboard."), fact("b", 0.1, text="I ski.")]
    asked = replace(turn(1, 0.99, text="Where is the red tea?"), lexical=9.0)

    rows = matrix(candidates("Where is the red tea?", [*told, asked]))

    for name in ("cosine", "cosine_squared", "standing_out", "late", "lexical", "coverage"):
        column = rows[:, [*FEATURES].index(name)]
        assert column[2] <= column[:2].max(), name


# -- what a turn states -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "asks", "empty"),
    [
        ("Where do you live?", 4, 1, 1),
        ("你住在哪里？", 4, 1, 1),
        ("I moved to Lyon. And where do you live?", 9, 0, 0),
        ("Thank you!", 2, 0, 1),
        ("好的。", 1, 0, 1),
        ("I live in Lyon.", 4, 0, 0),
        (NEVER_HEARD, 6, 0, 1),
    ],
)
def test_turns_that_ask_or_state_nothing(text: str, words: int, asks: int, empty: int) -> None:
    hits = [turn(1, text=text, words=words), fact("a", text=text, words=words)]

    assert [asks, 0] == values("asks", "?", *hits)
    assert [empty, 0] == values("empty", "?", *hits)


def test_a_long_turn_without_a_question_is_not_empty() -> None:
    assert [0] == values("empty", "?", turn(1, text="Thank you, " * 9, words=18))


# -- who, when, what kind -----------------------------------------------------------------------


@pytest.mark.parametrize("question", ["What did Alice say?", "Alice's dog", "ALICE", "Did Ali go?"])
def test_the_speaker_whom_a_question_names(question: str) -> None:
    hits = [turn(1, speaker="Bob"), turn(2, speaker="Alice Smith"), turn(3), fact("a")]

    assert [0, 1, 0, 0] == values("speaker", question, *hits)


@pytest.mark.parametrize(
    "question", ["What did Bob tell Alice?", "a malice aforethought", "Who fears thunder?"]
)
def test_several_speakers_or_none_are_no_sign(question: str) -> None:
    texts = ["Do you know?", "You know that."]
    hits = [turn(1, text=texts[0], speaker="Bob"), turn(2, text=texts[1], speaker="Alice")]

    assert [0, 0] == values("speaker", question, *hits)
    assert [0, 0] == values("addresses", question, *hits)


@pytest.mark.parametrize("text", ["Is that yours?", "So you did.", "你知道。"])
def test_others_address_the_speaker_whom_a_question_names(text: str) -> None:
    hits = [
        turn(1, text=text, speaker="Bob"),
        turn(2, text=text, speaker="Alice"),
        turn(3, text="That is mine.", speaker="Bob"),
        turn(4, text=text),
    ]

    assert [1, 0, 0, 0] == values("addresses", "What did Alice say?", *hits)


@pytest.mark.parametrize("question", ["What was in May 2025?", "2025年5月发生了什么？"])
def test_moments_fit_the_time_that_a_question_names(question: str) -> None:
    hits = [fact("a", day=-240), turn(1, day=-210), turn(2, day=0)]  # 6 May, 5 June, 1 January

    assert [1.0, 0.5, 0.0] == values("date", question, *hits)
    assert [0.0, 0.0, 0.0] == values("date", "What was that?", *hits)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("The fair is on 12 May.", 1.0),
        ("The fair was in May 2025.", 1.0),
        ("2025年5月12日开了集市。", 1.0),
        ("The fair was in May 2024.", 0.0),
        ("The fair was in 2025.", 0.0),
        ("I may go to the fair.", 0.0),
        ("The fair is on Friday.", 0.0),
    ],
)
def test_a_text_fits_a_time_by_what_it_names(text: str, fit: float) -> None:
    assert [fit] == values("on_date", "What was in May 2025?", fact("a", text=text, day=0))


def test_a_text_fits_a_year_that_it_names() -> None:
    texts = ["The 2019 election was close.", "Flat 2024 is ours.", "Order 120195 has come."]
    hits = [fact(text, text=text) for text in texts]

    assert [1.0, 0.0, 0.0] == values("on_date", "Who won in 2019?", *hits)


def test_texts_have_an_answer_of_the_type_that_is_asked_for() -> None:
    hits = [fact("a", text="It is on 4 May."), fact("b", text="He likes tea."), fact("c", text="x")]

    assert [1.0, -1.0, 0.0] == values("type", "When is the party?", *hits)
    assert [0.0, 0.0, 0.0] == values("type", "What about the party?", *hits)


# -- what holds now, or was before --------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "direction"),
    [
        ("Where do I live now?", 1),
        ("我现在住在哪里？", 1),
        ("Where did I live before?", -1),
        ("Who was my previous boss?", -1),
        ("我以前住在哪里？", -1),
        ("Where do I live?", 1),
        ("What did I eat in Lyon?", 0),
    ],
)
def test_what_has_changed_counts_by_what_is_asked_for(question: str, direction: int) -> None:
    texts = ["I moved to Lyon.", "我搬到里昂了。", "A town by the river."]
    hits = [fact(text, 0.5) for text in texts]
    own = candidates(question, hits).own

    assert [direction * own[0], direction * own[1], 0.0] == values("change", question, *hits)
    assert min(own) > 0


def test_those_that_fit_about_as_well_stand_in_the_order_of_time() -> None:
    good = [fact("a", 0.5, day=3), fact("b", 0.5, day=1), fact("c", 0.5, day=2)]
    others = [fact("far", 0.2, day=9), turn(1, 0.5, text="Do I?", words=2, day=9)]

    assert [1.0, -1.0, 0.0, 0.0, 0.0] == values("newer_asked", "Where now?", *good, *others)
    assert [-1.0, 1.0, 0.0, 0.0, 0.0] == values("newer_asked", "Where before?", *good, *others)
    assert [0.0] * 5 == values("newer_asked", "Where?", *good, *others)


def test_turns_of_one_moment_are_in_the_order_of_their_places() -> None:
    assert [1.0, -1.0] == values("newer_asked", "Now?", turn(4, 0.5), turn(3, 0.5))


@pytest.mark.parametrize(
    "hits",
    [
        (fact("a", 0.5),),
        (fact("a", 0.5), fact("b", 0.5)),
        (fact("a", 0.0, day=1), fact("b", 0.0, day=2)),
    ],
    ids=["one", "one moment", "nothing alike"],
)
def test_nothing_is_newer(hits: tuple[Hit, ...]) -> None:
    assert [0.0] * len(hits) == values("newer_asked", "Now?", *hits)


# -- relations ----------------------------------------------------------------------------------


def test_a_relation_counts_that_the_question_names() -> None:
    hits = [fact("a"), fact("b"), fact("c")]
    related = [
        Expansion(id="a", hops=1, weight=1.0, named=(1.0,), relations=1),
        Expansion(id="b", hops=1, weight=1.0, named=(0.0,), relations=1),
        Expansion(id="c", hops=2, weight=1.0, named=(1.0, 1.0), relations=1),
    ]

    assert [1.0, 0.0, 0.0] == values("relation", "?", *hits, related=related)
    assert [0.0, 0.0, 0.0] == values("relation", "?", *hits)


def test_a_relation_counts_by_how_few_its_entity_has() -> None:
    hits = [fact(name) for name in "abcd"]
    related = [
        Expansion(id=name, hops=1, weight=1.0, named=(1.0,), relations=count)
        for name, count in (("a", 2), ("b", 4), ("c", 900))
    ]
    once = rarity(1, 4)

    assert [rarity(2, 4) / once, rarity(4, 4) / once, rarity(4, 4) / once, 0.0] == values(
        "relation", "?", *hits, related=related
    )


def test_two_relations_count_by_the_first() -> None:
    related = [
        Expansion(id="a", hops=1, weight=0.5),
        Expansion(id="b", hops=1, weight=0.5),
        Expansion(id="named", hops=2, weight=0.8, via=("b", "unknown"), named=(1.0, 0.0)),
        Expansion(id="said", hops=2, weight=0.6, via=("a", "b"), named=(0.0, 1.0)),
        Expansion(id="less", hops=2, weight=0.6, via=("b",), named=(0.0, 1.0)),
        Expansion(id="unknown", hops=1, weight=1.0),
    ]
    hits = [fact(one, cosine) for one, cosine in (("a", 0.6), ("b", 0.5))]
    hits += [fact("named"), fact("said"), fact("less"), fact("other", 0.9)]
    less = 0.6 * (said(0.5) / said(0.6)) ** 8 / 2

    assert [0.0, 0.0, 0.8, 0.3, less, 0.0] == values("two_relations", "?", *hits, related=related)
    assert [0.0] * 6 == values("two_relations", "?", *hits)


def test_two_relations_take_nothing_by_a_first_one_that_says_nothing() -> None:
    related = [Expansion(id="b", hops=2, weight=0.8, via=("a",), named=(0.0, 1.0))]

    assert [0.0, 0.0] == values("two_relations", "?", fact("a", -0.9), fact("b"), related=related)


# -- kinds of memory and background -------------------------------------------------------------


def test_kinds_of_memory() -> None:
    short, medium = [turn(0, words=30), fact("a", words=999)], [turn(0, words=34)]

    assert kinds("?", fact("a")) == {"always": 1, "long": 0, "many": 0, "cjk": 0}
    assert kinds("?", *short) == {"always": 1, "long": 0, "many": 0, "cjk": 0}
    assert kinds("?", *medium) == {"always": 1, "long": 0.5, "many": 0, "cjk": 0}
    assert kinds("茶？", turn(0, words=38)) == {"always": 1, "long": 1, "many": 0, "cjk": 1}


@pytest.mark.parametrize(("number", "many"), [(20, 0.0), (40, 0.5), (60, 1.0), (99, 1.0)])
def test_many_turns_are_a_long_conversation(number: int, many: float) -> None:
    hits = [turn(at) for at in range(number)]

    assert many == kinds("?", *hits)["many"]
    assert many / 2 == kinds("?", *(replace(one, words=34) for one in hits))["many"]
    assert 0.0 == kinds("?", *(fact(str(n)) for n in range(number)))["many"]


def test_the_background_of_a_score() -> None:
    found = candidates("tea", [fact("tea", 0.2), turn(1, 0.6, words=34)])

    background = dict(zip([*KINDS, *BACKGROUND], background_of(found).tolist(), strict=True))

    assert background == pytest.approx(
        {
            "always": 1, "long": 0.5, "many": 0, "cjk": 0, "company": 0.5,
            "most_cosine": 0.6, "mean_cosine": 0.4, "most_late": 0.20 + 0.17 * 0.2 + 0.70,
            "most_coverage": 1, "number": log(2), "asks_memory": SURE,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sums", "lead", "above_mean"),
    [
        ([1.0, 3.0, -1.0], 2.0, 2.0),
        ([2.0, 2.0], 0.0, 0.0),
        ([2.0], 2.0, 0.0),
        ([1.0, -4.0], 1.0, 2.5),
        ([9.0, 1.0], 3.0, 4.0),
    ],
)
def test_the_lead_of_the_best(sums: list[float], lead: float, above_mean: float) -> None:
    rows = np.zeros((len(sums), len(FEATURES)))

    found = dict(zip([*LEADS, *OF_BEST], leads_of(np.array(sums), rows).tolist(), strict=True))

    assert found == pytest.approx(
        dict.fromkeys(OF_BEST, 0.0) | {"lead": lead, "above_mean": above_mean}
    )


def test_the_features_of_the_best_are_those_of_the_greatest_sum_equal_ones_in_the_mean() -> None:
    rows = np.arange(3 * len(FEATURES), dtype=float).reshape(3, -1)

    of_second = leads_of(np.array([1.0, 3.0, 2.0]), rows)[len(LEADS) :]
    of_both = leads_of(np.array([3.0, 3.0, 2.0]), rows)[len(LEADS) :]

    assert of_second == pytest.approx(rows[1])
    assert of_both == pytest.approx((rows[0] + rows[1]) / 2)


@pytest.mark.parametrize(
    ("question", "text", "about"),
    [
        ("What is my library card number?", "My daughter's library card is 4471.", -1),
        ("What is my library card number?", "The user's library card is 3391.", 1),
        ("What is my library card number?", "Has the library card 3391.", 1),
        ("What does Omar do?", "Omar has two cats.", 1),
        ("What does Omar do?", "I have two cats.", -1),
        ("Is it raining?", "I have two cats.", 0),
        ("我妹妹住在哪里？", "我妹妹住在苏州。", 1),
        ("我妹妹住在哪里？", "我住在北京。", -1),
    ],
)
def test_whom_a_text_is_about(question: str, text: str, about: float) -> None:
    found = candidates(question, [fact("a", text=text)])

    assert [about] == found.about.tolist()


@pytest.mark.parametrize(
    ("question", "about"),
    [("Where do I live?", 1), ("Where does Bob live?", 1), ("Ann's flat?", -1)],
)
def test_a_speaker_means_himself(question: str, about: float) -> None:
    found = candidates(question, [turn(0, text="I live in Oslo.", speaker="Bob")])

    assert [about] == found.about.tolist()


# -- all together -------------------------------------------------------------------------------

QUESTIONS = ("Where is the red tea now?", "What did Bob say in May 2025?", "我的红茶在哪里？", "?")
TEXTS = ("The red tea is at Bob's.", "你好吗？", "So you moved?", NEVER_HEARD, "红茶", "Room 4711.")


def some(chance: random.Random, number: int) -> list[Hit]:
    """Make hits with all that a candidate may have."""
    with_tokens = chance.random() < 0.5
    hits = []
    for place in range(number):
        text, dense = chance.choice(TEXTS), chance.uniform(-1, 1)
        words = chance.randint(0, 60)
        late = (chance.random(), chance.random()) if with_tokens and chance.random() < 0.8 else ()
        hit = replace(fact(f"fact {place}", dense, text=text, words=words), late=late)
        if chance.random() < 0.7:
            session = chance.choice("ab")
            speaker = chance.choice([None, "Bob", "Ann"])
            hit = turn(place, dense, text=text, words=words, session=session, speaker=speaker)
            hit = replace(hit, late=late)
        hits.append(replace(hit, lexical=chance.choice([0.0, chance.uniform(0, 9)])))
    return hits


@given(st.randoms(use_true_random=False), st.integers(1, 30), st.sampled_from(QUESTIONS))
def test_features_are_finite_and_do_not_depend_on_the_order_of_the_candidates(
    chance: random.Random, number: int, question: str
) -> None:
    hits = some(chance, number)
    related = [
        Expansion(id=one.record.id, hops=hops, weight=chance.random(), via=(hits[0].record.id,))
        for one, hops in zip(hits, (1, 2, 2), strict=False)
    ]
    order = chance.sample(range(number), number)

    found = candidates(question, hits, related)
    shuffled = candidates(question, [hits[place] for place in order], related)

    assert matrix(found).shape == (number, len(FEATURES))
    assert np.isfinite(matrix(found)).all()
    assert np.allclose(matrix(found)[order], matrix(shuffled), rtol=0, atol=1e-12)
    assert np.allclose(background_of(found), background_of(shuffled), rtol=0, atol=1e-12)
    assert ((kind_of(found) >= 0) & (kind_of(found) <= 1)).all()
