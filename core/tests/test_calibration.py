"""The scales of an embedder: where they place its cosines, and how they are measured."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from commonplace.errors import ModelFailedError
from commonplace.retrieval.calibration import (
    DEFAULT,
    PROBES,
    SHIPPED,
    Calibration,
    Scale,
    Script,
    measured_scale,
)
from commonplace.testing.fakes import HashEmbedder

QUESTIONS: dict[Script, str] = {"latin": "When does the ferry leave?", "cjk": "渡船什么时候开？"}
SCRIPTS: tuple[Script, ...] = ("latin", "cjk")
SHIPPED_ID = f"{DEFAULT}1.0"
UNKNOWN = {script: replace(SHIPPED[DEFAULT][script], of_default=False) for script in SCRIPTS}


def test_a_scale_places_cosines_between_its_two_points() -> None:
    placed = Scale(0.2, 0.6).place(np.array([0.0, 0.2, 0.4, 0.6, 0.8]))

    assert placed.tolist() == pytest.approx([-0.5, 0.0, 0.5, 1.0, 1.5])


@pytest.mark.parametrize("related", [0.32, 0.3, 0.1])
def test_an_embedder_that_tells_nothing_apart_adds_nothing(related: float) -> None:
    assert [0.0, 0.0] == Scale(0.3, related).place(np.array([0.1, 0.9])).tolist()


def test_scales_are_measured_over_pairs_and_all_others() -> None:
    vectors = [[1.0, 0.0] if place % 4 < 2 else [0.6, 0.8] for place in range(16)]

    scale = measured_scale(vectors)
    # Of eight pairs in two directions, 24 of 56 others have the same one.
    assert scale.related == pytest.approx(1.0)
    assert scale.unrelated == pytest.approx((24 + 32 * 0.6) / 56)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scales_that_ship_tell_answers_from_other_texts(script: Script) -> None:
    scale = SHIPPED[DEFAULT][script]

    assert -1 < scale.unrelated < scale.related < 1
    assert scale == Calibration(SHIPPED_ID).scale(QUESTIONS[script])
    assert scale == Calibration().scale(QUESTIONS[script])


@pytest.mark.parametrize("script", SCRIPTS)
def test_probes_are_pairs_of_a_question_and_its_answer(script: Script) -> None:
    probes = PROBES[script]

    assert len(set(probes)) == len(probes) == 16
    assert all(one.endswith(("?", "？")) for one in probes[::2])
    assert not any(one.endswith(("?", "？")) for one in probes[1::2])


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_embedder_that_ships_is_not_measured(script: Script) -> None:
    assert Calibration(SHIPPED_ID).probes(QUESTIONS[script]) == ()


@pytest.mark.parametrize("script", SCRIPTS)
def test_another_embedder_is_measured_once_for_each_script(script: Script) -> None:
    [other] = {*SCRIPTS} - {script}
    embedder = HashEmbedder(256)
    calibration = Calibration(embedder.id)
    assert calibration.probes(QUESTIONS[script]) == PROBES[script]
    assert calibration.scale(QUESTIONS[script]) == UNKNOWN[script]
    vectors = embedder.embed(PROBES[script], purpose="document")

    calibration.learn(QUESTIONS[script], vectors)

    assert calibration.scale(QUESTIONS[script]) == measured_scale(vectors)
    assert calibration.probes("Who rows?" if script == "latin" else "谁划船？") == ()
    assert calibration.probes(QUESTIONS[other]) == PROBES[other]
    assert calibration.scale(QUESTIONS[other]) == UNKNOWN[other]


def test_what_cannot_be_measured_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    calibration = Calibration("another")
    error = ModelFailedError(model="another", reason="it is down")

    with caplog.at_level(logging.WARNING, "commonplace"):
        calibration.miss(error)
        calibration.miss(error)

    [told] = caplog.messages
    assert "another" in told
    assert "it is down" in told
    assert calibration.probes(QUESTIONS["latin"]) == PROBES["latin"]
    assert calibration.scale(QUESTIONS["latin"]) == UNKNOWN["latin"]
