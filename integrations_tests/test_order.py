"""Order of what a search finds in any memory, and that the index in which it is has no part in it.

Each example is a user of its own, in one memory with SQLite's index and one with Qdrant's.
"""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace import Fact, Match, Memory, Message, Relation, Scope
from commonplace.ports.engines import TOKENS
from commonplace.retrieval.features import FEATURES
from commonplace.testing.fakes import HashTokenEmbedder

STARTS = datetime(2025, 5, 1, 9, tzinfo=UTC)
SUBJECTS = ("Mei", "Bob", "my sister", "the red boat", "小梅", "房子")
SAYINGS = (
    "{} is in Lyon now.", "Where is {}?", "I have no information about {}.", "Thanks!",
    "We sold {} in May, for 4711 pounds.", "{}以前在里昂。", "{} {}", "It rained.",
)  # fmt: skip
QUESTIONS = (
    "Where is {} now?", "Where was {} before?", "What was sold in May 2025?", "{}现在在哪里？",
    "What does Mei's brother do?", "4711", "???",
)  # fmt: skip
# No deadline: it would measure the machine. The memories are one for all examples on purpose.
ANY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    """A memory with the index of a file, and one with the driver's imitation of Qdrant."""
    index = pytest.importorskip("commonplace.backends.qdrant.index")
    embedder = HashTokenEmbedder()
    folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("file", "qdrant")]
    with Memory.open(str(folders[0]), embedder=embedder) as first:
        spec = {"dimensions": embedder.dimensions, "token_dimensions": embedder.token_dimensions}
        other = index.QdrantIndex(":memory:", meta={TOKENS: embedder.token_space}, **spec)
        with Memory.open(str(folders[1]), vectors=other, embedder=embedder) as second:
            yield first, second
        other.close()


def some_text(chance: random.Random, templates: tuple[str, ...]) -> str:
    return chance.choice(templates).format(*chance.sample(SUBJECTS, 2))


def fill(memory: Memory, user: Scope, chance: random.Random) -> None:
    """Write sessions of turns, and facts with relations."""
    for number in range(chance.randint(0, 3)):
        at = STARTS + timedelta(days=20 * number)
        turns = [
            Message(
                text=some_text(chance, SAYINGS),
                role=chance.choice(("user", "assistant")),
                name=chance.choice((None, "Mei", "Bob")),
                at=at + timedelta(minutes=place),
            )
            for place in range(chance.randint(1, 8))
        ]
        session = Scope(user_id=user.user_id, session_id=str(number))
        memory.add(turns, session, infer=False)
    facts = [
        Fact(
            text=some_text(chance, SAYINGS),
            key=str(number),
            at=STARTS + timedelta(days=chance.randint(0, 60)),
            relations=chance.choice(
                [
                    (),
                    (Relation(subject="Mei", predicate="sister_of", object="Bob"),),
                    (Relation(subject="Bob", predicate="works_in", object=f"Lyon {number}"),),
                ]
            ),
        )
        for number in range(chance.randint(1, 12))
    ]
    memory.add(facts, user)


def ids(matches: list[Match]) -> list[str]:
    return [one.record.id for one in matches]


@ANY
@given(seed=st.integers(0, 2**63))
def test_matches_are_in_the_order_of_their_scores(
    memories: tuple[Memory, Memory], seed: int
) -> None:
    chance = random.Random(seed)
    memory, user = memories[0], Scope(user_id=f"order {seed}")
    fill(memory, user, chance)
    question = some_text(chance, QUESTIONS)
    at = STARTS + timedelta(days=90)

    every = list(memory.search(question, user, top_k=50, asked_at=at))

    scores = [one.score for one in every]
    assert every
    assert scores == sorted(scores, reverse=True)
    for one in every:
        logit = math.fsum(one.score_details.values())
        assert one.score == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-8)
        assert set(one.score_details) <= {*FEATURES, "offset"}
    assert len(set(ids(every))) == len(every)
    number = chance.randint(1, len(every))
    assert every[:number] == memory.search(question, user, top_k=number, asked_at=at)
    least = chance.choice([chance.random(), *scores])
    found = memory.search(question, user, top_k=50, threshold=least, asked_at=at)
    assert found == [one for one in every if one.score >= least]


@ANY
@given(seed=st.integers(0, 2**63))
def test_another_index_scores_alike(memories: tuple[Memory, Memory], seed: int) -> None:
    user, found = Scope(user_id=f"index {seed}"), []
    for memory in memories:
        chance = random.Random(seed)
        fill(memory, user, chance)
        question = some_text(chance, QUESTIONS)
        at = STARTS + timedelta(days=90)
        found.append(list(memory.search(question, user, top_k=50, asked_at=at)))

    first, second = ({one.record.id: one for one in matches} for matches in found)
    assert first.keys() == second.keys()
    for id_, one in first.items():
        assert one.text == second[id_].text
        # Cosines of single precision differ by 5e-7, of which a weight makes about ten times that.
        assert one.score == pytest.approx(second[id_].score, abs=1e-5)
