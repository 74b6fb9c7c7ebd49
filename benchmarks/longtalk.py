"""Made-up conversations of long messages, each about several things, one of them asked for later.

Each question asks for what some messages say in passing, by its name or in other words; the same
topics come back in other messages with other details, so that topic alone does not find it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

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
# What is asked for where the question does not name it.
OTHER_WORDS = {
    "tomatoes": "How is my crop of red fruit for pasta sauce doing?",
    "lavender": "How is the purple scented shrub from Provence doing?",
    "pumpkins": "What about the big orange squash for Halloween?",
    "dahlias": "What about the showy flowers grown from tubers?",
    "basil": "How is the herb for pesto doing?",
    "sunflowers": "How are the tall yellow blossoms that turn with the light?",
    "rhubarb": "What about the sour stalks for pie?",
    "leeks": "What about the long vegetable like an onion?",
    "Lisbon": "What was said about the capital of Portugal?",
    "Trieste": "What was said about the Italian port on the Adriatic?",
    "Bergen": "What was said about the Norwegian town of the fjords?",
    "Porto": "What was said about the Portuguese city on the Douro?",
    "Gdansk": "What was said about the Polish city on the Baltic?",
    "Bilbao": "What was said about the Basque city with the Guggenheim museum?",
    "Riga": "What was said about the capital of Latvia?",
    "Split": "What was said about the Croatian city with the palace of Diocletian?",
    "billing": "How does the software for invoices get on?",
    "search": "How does the engine that finds documents get on?",
    "payroll": "How does the system for salaries get on?",
    "mapping": "How does the software for geography get on?",
    "inventory": "How does the count of goods in stock get on?",
    "login": "How does the sign-in with passwords get on?",
    "shipping": "How does the delivery of parcels get on?",
    "archive": "How does the storage of old files get on?",
    "knee": "What about the joint in the middle of my leg?",
    "shoulder": "What about the joint at the top of my arm?",
    "back": "What about the pain along my spine?",
    "wrist": "What about the joint between my arm and my hand?",
    "ankle": "What about the joint above my foot?",
    "neck": "What about the stiffness under my head?",
    "elbow": "What about the joint in the middle of my arm?",
    "hip": "What about the joint between my leg and my pelvis?",
    "cello": "How do I get on with the large instrument held between the legs?",
    "banjo": "How do I get on with the bluegrass instrument?",
    "violin": "How do I get on with the fiddle?",
    "mandolin": "How do I get on with the small Italian lute?",
    "harp": "How do I get on with what angels play?",
    "ukulele": "How do I get on with the little Hawaiian instrument?",
    "viola": "How do I get on with the alto of a string quartet?",
    "guitar": "How do I get on with what rock bands play with six of?",
    "cat": "How is the animal that purrs and meows?",
    "puppy": "How is our young dog?",
    "rabbit": "How is our bunny?",
    "parrot": "How is the colourful bird that talks?",
    "hamster": "How is the little rodent with the wheel?",
    "tortoise": "How is the slow reptile with a shell?",
    "ferret": "How is the slender animal like a weasel?",
    "pony": "How is our little horse?",
}
FILLER = [
    "by the way the weather has been grey all week and I slept badly",
    "I also tidied the kitchen and answered a pile of letters",
    "then a friend called and we talked for an hour about nothing special",
    "later I read a few pages and fell asleep on the sofa",
    "the bus was late again so I walked home along the river",
    "could you remind me to think about all of this tomorrow",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the (session, place) of every text that answers it."""

    text: str
    names_it: bool
    gold: frozenset[tuple[str, int]]


def conversations(
    users: int = 3, sessions: int = 30, turns: int = 8, seed: int = 7
) -> Iterator[tuple[str, list[tuple[str, list[str]]], list[Asked]]]:
    """Make up, for each user, sessions of texts of about 60 words, and questions.

    A session is about three topics. The same seed makes the same conversations.
    """
    chance = random.Random(seed)
    for user in range(users):
        held: list[tuple[str, list[str]]] = []
        gold: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for session in range(sessions):
            name = f"session {session}"
            theme = chance.sample(sorted(TOPICS), 3)
            texts = []
            for place in range(turns):
                parts = chance.sample(FILLER, 3)
                for topic in chance.sample(theme, 2):
                    sentences, _, things = TOPICS[topic]
                    thing = chance.choice(things)
                    parts.append(chance.choice(sentences).format(x=thing))
                    gold.setdefault((topic, thing), set()).add((name, place))
                chance.shuffle(parts)
                texts.append(". ".join(parts) + ".")
            held.append((name, texts))
        asked = []
        for (topic, thing), places in sorted(gold.items()):
            named = TOPICS[topic][1].format(x=thing)
            for text, names_it in ((named, True), (OTHER_WORDS[thing], False)):
                asked.append(Asked(text=text, names_it=names_it, gold=frozenset(places)))
        yield f"user {user}", held, asked
