"""How likely a newer statement took the place of an older one, and what matches say of it."""

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from commonplace import Memory, Message, Scope
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.retrieval.calibration import Calibration
from commonplace.retrieval.replacement import FAR, Statement, last_of, likelihoods, pairs
from commonplace.types import LIKELY

START = datetime(2026, 1, 1, tzinfo=UTC)
PAIRS = tomllib.loads(
    (Path(__file__).parents[2] / "benchmarks/corrections.toml").read_text("utf-8")
)
REPEATS = tomllib.loads((Path(__file__).parents[2] / "benchmarks/repeats.toml").read_text("utf-8"))
USER = Scope(user_id="ada", session_id="1")


def told(*texts: str) -> list[Statement]:
    return [
        Statement(
            text=text,
            moment=START + timedelta(days=day),
            kind="episode",
            role="user",
            user="ada",
        )
        for day, text in enumerate(texts)
    ]


def likelihood(
    embedder: SentenceEncoder, older: str, newer: str, question: str, *, reads_vectors: bool = True
) -> float:
    place = Calibration().scale(question).place
    texts = np.array(embedder.embed([older, newer], purpose="document"))
    [asked] = np.array(embedder.embed([question], purpose="query"))
    nearness = np.array([[0.0, max(place(texts[0] @ texts[1]), FAR)], [0.0, 0.0]])
    read = texts if reads_vectors else None
    statement = told(older, newer).__getitem__
    found = pairs(statement, question, [0, 1], nearness, place(texts @ asked), read)
    return float(likelihoods([*found.values()]).max(initial=0.0))


@pytest.fixture(scope="module")
def embedder() -> SentenceEncoder:
    return SentenceEncoder()


@pytest.mark.parametrize("half", ["apart", "checked"])
@pytest.mark.parametrize(
    ("language", "reads_vectors", "least", "most"),
    [
        ("en", True, 0.74, 0.18),
        ("zh", True, 0.8, 0.31),
        ("en", False, 0.25, 0.10),
        ("zh", False, 0.27, 0.10),
    ],
)
def test_replaced_statements_are_told_from_those_that_hold(
    embedder: SentenceEncoder,
    half: str,
    language: str,
    reads_vectors: bool,
    least: float,
    most: float,
) -> None:
    def is_likely(pair: list[str]) -> bool:
        return likelihood(embedder, *pair, reads_vectors=reads_vectors) >= LIKELY

    sets = PAIRS[language][half]

    assert np.mean([*map(is_likely, sets["replaced"])]) >= least
    assert np.mean([*map(is_likely, sets["kept"])]) <= most


@pytest.mark.parametrize(
    ("languages", "least", "most"),
    [(("en",), 0.9, 0.3), (("zh",), 0.85, 0.3), (("de", "es", "fr", "ja", "ar"), 0.8, 0.2)],
)
def test_of_sentences_that_are_alike_those_about_another_thing_hold(
    embedder: SentenceEncoder, languages: tuple[str, ...], least: float, most: float
) -> None:
    def likely(label: str) -> float:
        pairs = [one for each in languages for one in PAIRS[each]["side_by_side_apart"][label]]
        return float(np.mean([likelihood(embedder, *pair) >= LIKELY for pair in pairs]))

    assert likely("replaced") >= least
    assert likely("kept") <= most


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Ghent.", "My cousin moved to Bruges."),
        ("I live in Lyon.", "I live in Lyon, near the river."),
        ("I spent the weekend in Ghent with Chen.", "I spent the weekend in Bruges with Anna."),
    ],
)
def test_what_another_does_what_is_said_again_or_another_event_replaces_nothing(
    embedder: SentenceEncoder, older: str, newer: str
) -> None:
    assert likelihood(embedder, older, newer, "Where do I live?") < 0.05


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("Desmond is a widower.", "Desmond drives a night bus in Bristol.", "Is Des a widower?"),
        ("The gym code is 4711.", "The locker code is 9034.", "What is the gym code?"),
        ("物业报修电话是0571-88120356。", "燃气公司的抢修电话是0571-96007。", "报修该打哪个号码？"),
    ],
)
def test_what_tells_of_another_matter_replaces_nothing(
    embedder: SentenceEncoder, older: str, newer: str, question: str
) -> None:
    assert likelihood(embedder, older, newer, question) < 0.5


def test_a_relative_may_have_another_word_in_what_replaces(embedder: SentenceEncoder) -> None:
    mother = "My mum lives in Ghent.", "My mother moved to Bruges.", "Where does my mum live?"
    father = "Mein Vater wohnt in Bonn.", "My dad moved to Kiel.", "Where does my dad live?"

    assert min(likelihood(embedder, *mother), likelihood(embedder, *father)) >= LIKELY


def test_what_is_said_again_is_told_from_what_stands_beside_it(embedder: SentenceEncoder) -> None:
    def says_again(older: str, newer: str) -> bool:
        texts = np.array(embedder.embed([older, newer], purpose="document"))
        _, again = last_of(told(older, newer), texts.tolist(), Calibration())
        return bool(again)

    lists = [one for name, one in REPEATS.items() if name != "corrections"]
    again, other = (  # every fourth is kept apart from training
        [says_again(*pair) for one in lists for pair in one[name][::4]]
        for name in ("again", "other")
    )

    assert np.mean(again) >= 0.85
    assert np.mean(other) <= 0.25


def test_only_a_newer_statement_of_the_same_speaker_counts() -> None:
    def paired(*statements: Statement, near: float = 1.0) -> list[tuple[int, int]]:
        nearness = np.full((2, 2), near)
        return [*pairs(statements.__getitem__, "Where do I live?", [0, 1], nearness, np.zeros(2))]

    one, other = told("I live in Ghent.", "I moved to Bruges.")

    assert paired(one, other) == [(0, 1)]
    assert paired(other, one) == [(1, 0)]
    assert not paired(one, replace(other, name="Bob"))
    assert not paired(one, replace(other, trust=0.5))
    assert not paired(one, other, near=0.0)


def test_a_match_names_the_newer_ones_that_may_have_taken_its_place(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        for day, text in enumerate(
            ["I live in Ghent.", "My cat is called Miso.", "I moved to Bruges."]
        ):
            memory.add(Message(text=text, at=START + timedelta(days=day)), USER)

        found = {one.text: one for one in memory.search("Where do I live?", USER.owner)}

        newer = found["I moved to Bruges."].record.id
        assert found["I live in Ghent."].replaced_by[newer] > 0.6
        assert not found["I moved to Bruges."].replaced_by
        assert found["My cat is called Miso."].replaced_by.get(newer, 0.0) < 0.2
        by_meaning = memory.search("Where do I live?", USER.owner, ranking="similarity")
        assert not any(one.replaced_by for one in by_meaning)


def test_a_long_text_takes_the_place_of_nothing(tmp_path: Path) -> None:
    report = " ".join(f"Gauge {n} stood at {n * 7 % 31} and was read twice." for n in range(20))
    with Memory.open(tmp_path) as memory:
        for day, text in enumerate(["I live in Ghent.", f"I moved to Bruges. {report}"]):
            memory.add(Message(text=text, at=START + timedelta(days=day)), USER)

        found = memory.search("Where do I live?", USER.owner)

        assert len(found) == 2
        assert not any(one.replaced_by for one in found)
