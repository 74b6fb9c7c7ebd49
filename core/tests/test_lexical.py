"""The lexical arm: what counts as the same word, and how much it weighs."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ports.stores import Terms
from commonplace.retrieval.lexical import count_words, document_terms, query_terms, tokens


def test_forms_of_an_english_word_are_one_term() -> None:
    assert tokens("hikes") == tokens("Hiking") == tokens("hiked")


def test_question_words_are_left_out() -> None:
    assert [] == tokens("What did she do, and why?")


def test_chinese_becomes_characters_and_overlapping_pairs() -> None:
    assert ["喝", "咖", "啡", "喝咖", "咖啡"] == tokens("喝咖啡")


def test_japanese_and_korean_are_split_too() -> None:
    assert "すし" in tokens("すしが好き")
    assert "커피" in tokens("커피를")


def test_a_word_is_split_where_chinese_meets_latin() -> None:
    assert ["python", "课"] == tokens("Python课")


def test_full_width_letters_are_the_usual_ones() -> None:
    assert tokens("ABC 123") == tokens("ＡＢＣ　１２３")


def test_accents_composed_or_not_are_the_same_word() -> None:
    assert tokens("caf\u00e9") == tokens("cafe\u0301")


@pytest.mark.parametrize("text", ["", " ", "?!…", "🎉", "the of and"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert Terms() == document_terms(text) == query_terms(text)


def test_a_question_weighs_its_repetitions() -> None:
    [weight] = query_terms("tea, tea and tea").weights

    assert 3.0 == weight


def test_repetition_in_a_document_saturates() -> None:
    [once] = document_terms("tea").weights
    [often] = document_terms("tea " * 10).weights

    assert once < often < 2.5


def test_a_text_of_average_length_weighs_one() -> None:
    terms = document_terms(" ".join(f"word{number}" for number in range(32)))

    assert pytest.approx([1.0] * 32) == terms.weights


def test_terms_are_the_same_in_every_process() -> None:
    assert (969995185,) == query_terms("coffee").indices


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two  three", 3),
        ("hello — world!", 2),
        ("我喜欢喝咖啡", 4),
        ("我爱 Python", 2),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    assert words == count_words(text)


def test_threads_stem_alike() -> None:
    words = [f"{stem}ing{number}ly running flies" for number in range(40) for stem in ("a", "b")]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(tokens, words * 4))
    finally:
        sys.setswitchinterval(interval)

    assert [tokens(text) for text in words * 4] == together


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_terms_are_ascending_unique_32_bit_numbers_with_positive_weights(text: str) -> None:
    for terms in (document_terms(text), query_terms(text)):
        assert sorted(set(terms.indices)) == list(terms.indices)
        assert all(0 <= index < 2**32 for index in terms.indices)
        assert len(terms.indices) == len(terms.weights)
        assert all(weight > 0 for weight in terms.weights)
    assert count_words(text) >= 0
