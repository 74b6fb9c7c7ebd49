"""Kinds of memories, each composed at random from sentences, with the questions that they answer.

Each kind makes groups of cases for ever; those of a group are told the same but for one thing.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from ranking_cases import (
    Block,
    Case,
    Line,
    Plan,
    Sentences,
    Stated,
    Told,
    about,
    earlier,
    moment,
    topics,
)

Group = tuple[Case, ...]
ASKED = 10  # questions of a memory that has answers for more
MENTIONS_NOW = re.compile(
    r"\b(now(adays)?|current(ly)?|today|these days|at the moment|at present|still|latest"
    r"|jetzt|aktuell\w*|derzeit\w*|momentan\w*|inzwischen|zurzeit|heute|gerade|mittlerweile"
    r"|ahora|actual(mente|es)?|hoy( en día)?|en este momento)\b"
    r"|现在|目前|如今|当前|眼下|最新|今は|現在|いま|今の|今、|最近|今|الآن|حالي|اليوم|هذه الأيام",
    re.IGNORECASE,
)


class Source:
    """Sentences of a language, and chance: the same name always gives the same memories."""

    def __init__(self, read: Sentences, name: str) -> None:
        self.read = read
        self.language = read["language"]
        self.name = name
        self.topics = topics(read)
        self.people = [
            told for place, person in enumerate(read["person"]) for told in about(person, place)
        ]

    def draw(self, kind: str) -> random.Random:
        """Make the chance of a kind."""
        return random.Random(f"{self.name} {kind}")

    def user(self, kind: str, number: int) -> str:
        """Name the user of a memory."""
        return f"{self.name}, {kind} {number}"

    def some(self, draw: random.Random, least: int, most: int) -> list[Told]:
        """Draw what a memory is told; more often few than many."""
        every = [*self.topics, *self.people]
        number = round(least * (most / least) ** draw.random())
        return draw.sample(every, min(number, len(every)))

    def said(self, draw: random.Random, *lines: Line) -> Block:
        """Say something, to which the assistant mostly has a short reply."""
        if draw.random() < 0.6:
            return (*lines, Line(draw.choice(self.read["replies"]), role="assistant"))
        return lines

    def chatter(self, draw: random.Random, least: int, most: int) -> list[Block]:
        """Draw small talk."""
        every = self.read["chatter"]
        number = min(draw.randint(least, most), len(every))
        return [self.said(draw, Line(text)) for text in draw.sample(every, number)]


def stated(draw: random.Random, every: Sequence[Told], asked_at: datetime) -> list[Stated]:
    """State all of it at times of its own."""
    return [Stated(one.label, one.fact, earlier(draw, asked_at)) for one in every]


def talking(draw: random.Random, plan: Plan, blocks: Sequence[Block], most: int = 4) -> Plan:
    """Say all of it in one conversation or in some, on other days."""
    blocks = draw.sample(blocks, len(blocks))
    number = min(draw.randint(1, most), len(blocks))
    days = draw.sample(range(1, 100), number)
    for place, day in enumerate(days):
        plan = plan.with_talk(earlier(draw, plan.asked_at, day, day), blocks[place::number])
    return plan


def telling(source: Source, draw: random.Random, told: Sequence[Told], form: str) -> Plan:
    """Plan a memory that is told this as facts, as turns among small talk, or both."""
    plan = Plan(asked_at=moment(draw))
    share = {"facts": 1.0, "mixed": 0.6, "turns": 0.0}[form]
    facts = [one for one in told if draw.random() < share]
    turns = [one for one in told if one not in facts]
    plan = plan.with_facts(stated(draw, facts, plan.asked_at))
    if form == "facts":
        return plan
    blocks = [source.said(draw, Line(one.turn, one.label)) for one in turns]
    return talking(draw, plan, [*blocks, *source.chatter(draw, 8, 40)])


def ordinary(kind: str, form: str, most: int) -> Callable[[Source], Iterator[Group]]:
    """Make the kind of memory that is told things and asked for some of them, and for others."""

    def groups(source: Source) -> Iterator[Group]:
        draw = source.draw(kind)
        number = 0
        while True:
            number += 1
            told = source.some(draw, 5, most)
            store = telling(source, draw, told, form).store(source.user(kind, number))
            for one in draw.sample(told, min(ASKED, len(told))):
                store.ask(kind, draw.choice(one.asks), one.label)
            for text in draw.sample(source.read["foreign"], 2):
                store.ask_in_vain("foreign", text)
            untold = [one for one in source.topics if one not in told]
            for one in draw.sample(untold, min(2, len(untold))):
                store.ask_in_vain("left out", draw.choice(one.asks))
            yield (store.case(kind, source.language),)

    return groups


small_facts = ordinary("small facts", "facts", 60)
facts_beside_chat = ordinary("facts beside chat", "mixed", 40)
chat_alone = ordinary("chat alone", "turns", 30)


def changed(source: Source) -> Iterator[Group]:
    """Make memories in which one thing changed."""
    kind = "corrections"
    draw = source.draw(kind)
    number = 0
    while source.read["change"]:
        for change in draw.sample(source.read["change"], len(source.read["change"])):
            for form in ("facts", "turns"):
                number += 1
                plan = telling(source, draw, source.some(draw, 8, 40), form)
                at = earlier(draw, plan.asked_at, 1, 30)
                places = range(len(change["steps"]))
                for i in reversed(places):
                    fact, turn = change["facts"][i], change["steps"][i]
                    if form == "facts":
                        plan = plan.with_facts([Stated(f"step {i}", fact, at)])
                    else:
                        blocks = source.chatter(draw, 2, 6)
                        blocks.insert(
                            draw.randint(0, len(blocks)),
                            source.said(draw, Line(turn, f"step {i}")),
                        )
                        plan = plan.with_talk(at, blocks)
                    at = earlier(draw, at, 1, 60)
                store = plan.store(source.user(kind, number))
                for text in change["now"]:
                    name = "now" if MENTIONS_NOW.search(text) else "updated value"
                    store.ask(name, text, f"step {places[-1]}")
                for text in change["before"]:
                    store.ask("before", text, f"step {places[-2]}")
                for text in change.get("first", ()):
                    store.ask("first", text, "step 0")
                yield (store.case(kind, source.language),)
