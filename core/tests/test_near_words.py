"""Mistyped words: which words may be meant, and which are other words."""

from time import process_time

import pytest

from commonplace.retrieval.lexical import near_words

WORDS = "restaurant garden allergy doctor house light Berlin calendar manager the cat".split()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gardn", "garden"),
        ("gardeen", "garden"),
        ("gardan", "garden"),
        ("graden", "garden"),
        ("agrden", "garden"),
        ("resturant", "restaurant"),
        ("restuarant", "restaurant"),
        ("resturnat", "restaurant"),
        ("calender", "calendar"),
        ("manger", "manager"),
    ],
)
def test_a_mistyped_word_is_near_what_was_meant(typed: str, meant: str) -> None:
    assert {typed: (meant,)} == near_words([typed], WORDS)


@pytest.mark.parametrize(
    "word",
    ["mouse", "night", "hte", "cats", "grdn", "allerg1", "doktorr", "unknown", "rstrnt", ""],
)
def test_other_words_are_not_near(word: str) -> None:
    assert {} == near_words([word], WORDS)


def test_only_the_nearest_words_are_given() -> None:
    words = ["relation", "relations", "relative", "rotation"]

    assert {"relationn": ("relation", "relations")} == near_words(["relationn", "tea"], words)


def test_a_digit_is_no_error() -> None:
    assert {} == near_words(["model2"], ["model3", "models2"])


def test_words_without_end_take_a_bounded_time() -> None:
    words = [
        f"abcdefgh{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}" + "z" * (n % 3) for n in range(10**5)
    ]
    start = process_time()

    near_words([f"abcdefgh{letter}q" for letter in "abcdefghijklmnop"], words)

    assert process_time() - start < 5
