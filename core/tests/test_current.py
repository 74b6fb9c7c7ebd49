"""Statements that newer ones replace, and questions for what holds now or held before."""

import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace.retrieval.current import (
    Statement,
    superseded,
)
from commonplace.retrieval.statement_words import (
    asks_before,
    asks_first,
    asks_now,
    change_words,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
PAIRS = tomllib.loads((Path(__file__).parent / "current_statements.toml").read_text("utf-8"))
CORRECTIONS = tomllib.loads(
    (Path(__file__).parents[2] / "benchmarks/corrections.toml").read_text("utf-8")
)
FACTS = ("The user", "Alice", "Bob", "Maria", "用户")


def said(*texts: str) -> list[Statement]:
    return [
        Statement(text=text, moment=START + timedelta(days=day), kind="episode", role="user")
        for day, text in enumerate(texts)
    ]


def known(*texts: str) -> list[Statement]:
    return [
        Statement(text=text, moment=START + timedelta(days=day)) for day, text in enumerate(texts)
    ]


def is_replaced(older: str, newer: str) -> bool:
    pair = known(older, newer) if older.startswith(FACTS) else said(older, newer)
    return superseded(pair) == {0: 1}


@pytest.mark.parametrize(
    ("language", "half", "least", "most"),
    [
        ("en", "develop", 0.95, 0.0),
        ("zh", "develop", 0.95, 0.0),
        ("en", "judge", 0.8, 0.06),
        ("zh", "judge", 0.8, 0.06),
        ("de", "develop", 1.0, 0.0),
        ("es", "develop", 1.0, 0.0),
        ("ja", "develop", 1.0, 0.0),
    ],
)
def test_newer_statements_replace_older_ones_on_one_matter(language, half, least, most) -> None:
    pairs = PAIRS[language][half]
    found = sum(is_replaced(*pair) for pair in pairs["replaced"]) / len(pairs["replaced"])
    wrong = sum(is_replaced(*pair) for pair in pairs["kept"]) / len(pairs["kept"])

    assert least <= found
    assert most >= wrong


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_correction_in_ones_own_words_is_found_among_facts_and_turns(language) -> None:
    pairs = CORRECTIONS[language]["develop"]

    assert [one for one in pairs["replaced"] if not is_corrected(*one[:2])] == []
    assert [one for one in pairs["kept"] if is_corrected(*one[:2])] == []


def is_corrected(*texts: str) -> bool:
    told = [
        Statement(
            text=text.removeprefix("fact: "),
            moment=START + timedelta(days=day),
            kind="fact" if text.startswith("fact: ") else "episode",
            role=None if text.startswith("fact: ") else "user",
            user="alice",
        )
        for day, text in enumerate(texts)
    ]
    return superseded(told) == {0: 1}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My first parrot is called Rio.", "My second parrot is called Kiwi."),
        ("My brother lives in Bergen.", "My brother Nils lives in Turku."),
        ("My work laptop is a Dell.", "My home laptop is a Lenovo."),
        ("我的车是银色的。", "我的自行车是绿色的。"),
    ],
)
def test_two_of_a_kind_both_hold(older, newer) -> None:
    assert superseded(said(older, newer)) == {}


def test_the_newest_of_several_takes_the_place_of_all() -> None:
    lives = said("I live in Paris.", "I moved to Rome.", "I like jazz.", "I moved to Oslo.")

    assert {0: 3, 1: 3} == superseded(lives)


def test_the_order_of_the_sequence_does_not_matter() -> None:
    assert {1: 0} == superseded(said("I live in Paris.", "I moved to Rome.")[::-1])


def test_nothing_replaces_what_was_said_at_the_same_moment() -> None:
    one, other = said("I live in Paris.", "I moved to Rome.")
    at_once = [
        one,
        Statement(text=other.text, moment=one.moment, kind=other.kind, role=other.role),
    ]

    assert {} == superseded(at_once)


def test_of_one_moment_the_later_position_is_newer() -> None:
    turns = [
        Statement(text=text, moment=START, position=at, kind="episode", role="user")
        for at, text in enumerate(("I live in Paris.", "I moved to Rome."))
    ]

    assert {0: 1} == superseded(turns)


@pytest.mark.parametrize("changed", [{"role": "assistant"}, {"name": "Bob"}, {"kind": "fact"}])
def test_statements_of_two_speakers_do_not_replace_each_other(changed) -> None:
    [one] = said("I live in Paris.")
    given = {"kind": "episode", "role": "user", **changed}
    other = Statement(text="I moved to Rome.", moment=START + timedelta(days=1), **given)

    assert {} == superseded([one, other])


def test_one_of_many_sentences_does_not_make_a_text_obsolete() -> None:
    told = "I live in Paris. My cat is called Miso. I play the cello on Sundays."

    assert {} == superseded(said(told, "I moved to Rome."))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved to Lyon.", True),
        ("I started at Bosch on Monday.", True),
        ("We switched to MySQL.", True),
        ("I'm no longer vegan.", True),
        ("我搬到上海了。", True),
        ("项目换成Go了。", True),
        ("Ich trinke keinen Kaffee mehr, inzwischen nur Tee.", True),
        ("Ya no uso el coche, voy en tren.", True),
        ("会社を辞めて、パン屋を始めました。", True),
        ("لم أعد أعمل في البنك.", True),
        ("انتقلت إلى طنجة في الربيع.", True),
        ("أسكن في فاس.", False),
        ("Ich wohne in Ulm.", False),
        ("I live in Lyon.", False),
        ("I like olives.", False),
        ("我喜欢吃辣。", False),
    ],
)
def test_words_of_change_are_found(text, expected) -> None:
    assert expected == change_words(text)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where do I live?", "now"),
        ("What is my phone number now?", "now"),
        ("Who is my boss?", "now"),
        ("我现在住在哪里？", "now"),
        ("Where did I live before?", "before"),
        ("What was my former job?", "before"),
        ("Where did I use to work?", "before"),
        ("我以前住在哪里？", "before"),
        ("我原来的电话是多少？", "before"),
        ("Wo wohne ich?", "now"),
        ("¿Dónde trabajo actualmente?", "now"),
        ("أين أسكن الآن؟", "now"),
        ("أين كنت أسكن سابقا؟", "before"),
        ("أين عملت في البداية؟", "first"),
        ("ماذا اشتريت في فاس؟", None),
        ("Was habe ich in Ulm gekauft?", None),
        ("Where did I live originally?", "first"),
        ("What did I study at first?", "first"),
        ("我最初在哪里工作？", "first"),
        ("When did I go to Rome?", None),
        ("What did Anna say about the film?", None),
    ],
)
def test_questions_ask_for_what_holds_or_held(question, expected) -> None:
    asked = {"now": asks_now, "before": asks_before, "first": asks_first}

    assert [expected] * bool(expected) == [name for name, asks in asked.items() if asks(question)]


def test_ten_statements_take_a_moment() -> None:
    texts = [pair[0] for pair in PAIRS["en"]["develop"]["replaced"]][:10]
    statements = said(*texts)
    superseded(statements)
    start = time.process_time()
    for _ in range(20):
        superseded(statements)

    assert (time.process_time() - start) / 20 < 0.005  # several times what it takes


@pytest.mark.parametrize("part", ["a ", "my ", "I moved to ", "1", "一", "我的", "is ", ",", " "])
def test_a_long_text_is_left_alone_quickly(part) -> None:
    short, long = (part * 400)[:400], (part * 32_768)[:32_768]
    start = time.process_time()
    superseded(said(short, long, short + "b"))
    for ask in (asks_now, asks_before, asks_first, change_words):
        ask(long)

    assert time.process_time() - start < 0.1
