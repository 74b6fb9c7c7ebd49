"""Made-up conversations of long messages, each about several things, one of them asked for later.

Each question says in other words what one message says in passing; the same topics come back in
other messages with other details, so that topic alone does not find it.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import commonplace.retrieval.search
from commonplace.retrieval.ranking import Weights, rank

TOPICS = {
    "garden": (
        [
            "I planted {x} along the fence and watered it twice a day",
            "the {x} in the back yard finally came up after the rain",
        ],
        "Which plant did I grow outside, {x} or something else?",
        ["tomatoes", "lavender", "pumpkins", "dahlias", "basil", "sunflowers", "rhubarb", "leeks"],
    ),
    "travel": (
        [
            "we took the slow train to {x} and stayed three nights near the harbour",
            "my sister wants to spend her holidays in {x} because of the food",
        ],
        "When was the journey to {x} mentioned?",
        ["Lisbon", "Trieste", "Bergen", "Porto", "Gdansk", "Bilbao", "Riga", "Split"],
    ),
    "work": (
        [
            "my manager asked me to move the {x} project to the new team before the summer",
            "the {x} release slipped again and everybody blames the tests",
        ],
        "What happened at the office with {x}?",
        ["billing", "search", "payroll", "mapping", "inventory", "login", "shipping", "archive"],
    ),
    "health": (
        [
            "the doctor told me that my {x} needs rest and cold packs for two weeks",
            "I started exercises for my {x} with a video from the library",
        ],
        "How is the trouble with my {x} being treated?",
        ["knee", "shoulder", "back", "wrist", "ankle", "neck", "elbow", "hip"],
    ),
    "music": (
        [
            "I bought a used {x} from a neighbour and practise scales before breakfast",
            "the teacher says that my {x} sounds better since I changed the strings",
        ],
        "Which instrument, maybe the {x}, am I learning?",
        ["cello", "banjo", "violin", "mandolin", "harp", "ukulele", "viola", "guitar"],
    ),
    "pets": (
        [
            "our {x} hid under the bed all night because of the fireworks",
            "the vet weighed the {x} and said that the new food works",
        ],
        "Was the {x} scared of anything or ill?",
        ["cat", "puppy", "rabbit", "parrot", "hamster", "tortoise", "ferret", "pony"],
    ),
}
FILLER = [
    "by the way the weather has been grey all week and I slept badly",
    "I also tidied the kitchen and answered a pile of letters",
    "then a friend called and we talked for an hour about nothing special",
    "later I read a few pages and fell asleep on the sofa",
    "the bus was late again so I walked home along the river",
    "could you remind me to think about all of this tomorrow",
]


def conversations(
    users: int = 3, sessions: int = 30, turns: int = 8, seed: int = 7
) -> Iterator[tuple[str, list[tuple[str, list[str]]], list[tuple[str, set[tuple[str, int]]]]]]:
    """Make up, for each user, sessions of texts of about 60 words, and questions.

    A question comes with the (session, place) of every text that answers it. A session is about
    three topics. The same seed makes the same conversations.
    """
    chance = random.Random(seed)
    for user in range(users):
        held: list[tuple[str, list[str]]] = []
        gold: dict[str, set[tuple[str, int]]] = {}
        for session in range(sessions):
            name = f"session {session}"
            theme = chance.sample(sorted(TOPICS), 3)
            texts = []
            for place in range(turns):
                parts = chance.sample(FILLER, 3)
                for topic in chance.sample(theme, 2):
                    sentences, question, things = TOPICS[topic]
                    thing = chance.choice(things)
                    parts.append(chance.choice(sentences).format(x=thing))
                    gold.setdefault(question.format(x=thing), set()).add((name, place))
                chance.shuffle(parts)
                texts.append(". ".join(parts) + ".")
            held.append((name, texts))
        yield f"user {user}", held, sorted(gold.items())


@contextmanager
def plain_fusion() -> Iterator[None]:
    """Rank by vectors and words alone while the context lasts."""
    alone = Weights(lexical=1.0, short=-1.0, long=0.0, length=0.0)
    commonplace.retrieval.search.rank = partial(rank, weights=alone)
    try:
        yield
    finally:
        commonplace.retrieval.search.rank = rank
