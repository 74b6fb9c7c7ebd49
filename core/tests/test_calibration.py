"""The scales of an embedder, and how relevant a record is by itself."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from commonplace import Record, Scope
from commonplace.ports.stores import Hit
from commonplace.retrieval.calibration import (
    PROBES,
    SHIPPED,
    Calibration,
    Scale,
    measured_scale,
)
from commonplace.testing.fakes import HashEmbedder

AT = datetime(2025, 1, 1, tzinfo=UTC)
SHIPPED_ID = "use-multilingual-3/1.0"


def hit(text: str, dense: float, *, is_turn: bool = False, words: int = 8) -> Hit:
    record = Record(
        id="a", text=text, kind="episode" if is_turn else "fact", scope=Scope(user_id="u"),
        created_at=AT, updated_at=AT, occurred_at=AT,
    )  # fmt: skip
    return Hit(record=record, dense=dense, lexical=0.0, words=words)


def test_a_scale_places_a_cosine_between_its_two_points() -> None:
    assert pytest.approx((-0.5, 0.0, 0.5, 1.0)) == tuple(
        Scale(0.2, 0.6).place(cosine) for cosine in (0.0, 0.2, 0.4, 0.6)
    )


def test_an_embedder_that_tells_nothing_apart_adds_nothing() -> None:
    assert [0.0, 0.0] == [Scale(0.3, 0.32).place(cosine) for cosine in (0.1, 0.9)]


def test_scales_are_measured_over_pairs_and_all_others() -> None:
    vectors = [[1.0, 0.0] if place % 4 < 2 else [0.6, 0.8] for place in range(16)]

    scale = measured_scale(vectors)
    # Of eight pairs in two directions, 24 of 56 others have the same one.
    assert scale.related == pytest.approx(1.0)
    assert scale.unrelated == pytest.approx((24 + 32 * 0.6) / 56)


def test_only_an_embedder_that_does_not_ship_is_measured_and_once() -> None:
    english, chinese = "When does the ferry leave?", "渡船什么时候开？"
    assert Calibration(SHIPPED_ID).probes(english) == ()
    embedder = HashEmbedder(256)
    calibration = Calibration(embedder.id)
    assert calibration.probes(english) == PROBES["latin"]

    calibration.learn(english, embedder.embed(PROBES["latin"], purpose="query"))
    assert calibration.probes(english) == ()
    assert calibration.probes(chinese) == PROBES["cjk"]


@pytest.mark.parametrize("script", ["latin", "cjk"])
def test_the_same_place_on_another_scale_is_as_relevant(script: str) -> None:
    question = "When does the ferry leave?" if script == "latin" else "渡船什么时候开？"
    shipped = SHIPPED["use-multilingual-3/"][script]  # type: ignore[index]
    other = Calibration("another")
    vectors = HashEmbedder(256).embed(PROBES[script], purpose="query")  # type: ignore[index]
    other.learn(question, vectors)
    scale = measured_scale(vectors)

    for place in (0.0, 0.5, 1.0):
        cosines = [
            one.unrelated + place * (one.related - one.unrelated) for one in (shipped, scale)
        ]
        found = [
            calibration.judge(question)(hit("Rex fears thunder.", cosine), 0.0)
            for calibration, cosine in zip((Calibration(SHIPPED_ID), other), cosines, strict=True)
        ]
        assert found[0] == pytest.approx(found[1])


def test_cosine_words_and_relations_raise_the_relevance() -> None:
    judge = Calibration().judge("Who feeds the grey cat?")
    plain = hit("Nothing about that.", 0.2)

    assert judge(plain, 0.0) < judge(replace(plain, dense=0.4), 0.0) < 1
    assert judge(plain, 0.0) < judge(hit("A grey cat.", 0.2), 0.0)
    assert judge(plain, 0.0) < judge(plain, 0.5) < judge(plain, 1.0) < 1


def test_a_turn_that_asks_answers_less_than_one_that_tells() -> None:
    judge = Calibration().judge("Where is the spare key?")
    asks, tells = (hit(f"The spare key is here{end}", 0.5, is_turn=True) for end in "?.")

    assert judge(asks, 0.0) < judge(tells, 0.0)


def test_particles_of_a_chinese_question_are_no_shared_words() -> None:
    judge = Calibration().judge("我的护照什么时候到期？")

    assert judge(hit("这是什么时候的？", 0.2), 0.0) < judge(hit("护照明年到期。", 0.2), 0.0)


def test_a_long_text_gains_no_more_than_one_of_twenty_words() -> None:
    judge = Calibration().judge("Where is the spare key?")
    short, medium, long = (judge(hit("?", 0.3, words=words), 0.0) for words in (5, 20, 900))

    assert short < medium == long
