"""Baselines that retrieval is compared with, by hand and by published figures."""

import importlib
import math
import os
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOCOMO = os.environ.get("COMMONPLACE_LOCOMO")
# R@5, R@10 and nDCG@10 of BM25 by the number of questions: five of the conversations, all ten.
PUBLISHED = {997: (None, 0.622, 0.472), 1_982: (0.524, 0.610, 0.463)}


def benchmark(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


@pytest.fixture
def baselines(monkeypatch):
    return benchmark("baselines", monkeypatch)


def test_words_lose_stop_words_and_one_suffix(baselines):
    found = baselines.tokens("Where did Anna's dogs go hiking, and the bus?")

    assert found == ["anna'", "dog", "go", "hik", "bus"]


def test_chinese_becomes_characters_and_pairs(baselines):
    assert baselines.tokens("我2024年搬家") == ["我", "2024", "年", "搬", "家", "年搬", "搬家"]


def test_bm25_is_what_the_formula_says(baselines):
    known = baselines.statistics([["red", "red", "car"], ["car"], ["sky", "sun"]])

    found = baselines.bm25(["red", "red", "none"], known)

    rarity = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    count = 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2))
    assert found == pytest.approx([2 * rarity * count, 0, 0])


def test_ties_go_to_the_older(baselines):
    assert baselines.order(np.array([0.5, 0.7, 0.5, 0.7])) == [1, 3, 0, 2]


def test_reciprocal_ranks_add_up(baselines):
    found = baselines.reciprocal_ranks(np.array([0.9, 0.1]), np.array([0.0, 0.0]))

    assert found == pytest.approx([1 / 61 + 1 / 61, 1 / 62 + 1 / 62])


def test_plain_fusion_stretches_both(baselines):
    found = baselines.plain_fusion(np.array([0.2, 0.4, 0.3]), np.array([6.0, 0.0, 3.0]))

    assert found == pytest.approx([0.5, 0.5, 0.5])


def test_plain_fusion_without_a_word_is_the_order_of_the_cosines(baselines):
    cosines = np.array([0.2, 0.4, 0.3])

    assert baselines.order(baselines.plain_fusion(cosines, np.zeros(3))) == [1, 2, 0]


@pytest.mark.parametrize(
    ("length", "middle", "slope"),
    [(3, 5, 0.7), (4, 7, 0.6), (9, 9, 0.5), (15, 10, 0.5), (16, 12, 0.5)],
)
def test_mem0_adds_a_sigmoid_by_the_length_of_the_question(baselines, length, middle, slope):
    found = baselines.mem0_rule(np.array([0.3, 0.3]), np.array([4.0, 0.0]), length)

    assert found == pytest.approx([0.3 + 1 / (1 + math.exp(-slope * (4 - middle))), 0.3])


def test_mem0_finds_nothing_by_words_that_is_far_by_cosine(baselines):
    cosines = np.linspace(0.9, 0.2, 70)
    words = np.zeros(70)
    words[60:] = 30.0

    found = baselines.mem0_rule(cosines, words, 3)

    assert np.isfinite(found[:60]).all()
    assert np.isneginf(found[60:]).all()
    assert np.isneginf(baselines.mem0_rule(np.array([0.09]), np.array([30.0]), 3)).all()


@pytest.mark.skipif(not LOCOMO, reason="COMMONPLACE_LOCOMO names no file in LoCoMo's format")
def test_bm25_has_its_published_figures(monkeypatch):
    pytest.importorskip("typer")
    locomo = benchmark("locomo", monkeypatch)
    evidence, scoring = (benchmark(one, monkeypatch) for one in ("evidence", "scoring"))
    sessions, questions = locomo.read(Path(LOCOMO or ""))
    expected = PUBLISHED[len(questions)]

    system = evidence.others(sessions, scoring.Cached(scoring.embedder("hash")))["BM25"]
    figures, _ = evidence.measure(system, questions)

    for column, value in zip(("R@5", "R@10", "nDCG@10"), expected, strict=True):
        assert value is None or evidence.mean(figures, column) == pytest.approx(value, abs=6e-4)
    assert evidence.mean(figures, "leak@10") == 0
