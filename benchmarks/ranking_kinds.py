"""Kinds of memories, each composed at random from sentences, with the questions that they answer.

Each kind makes groups of cases for ever; those of a group are told the same but for one thing.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from ranking_cases import (
    Block,
    Case,
    Line,
    Plan,
    Sentences,
    Stated,
    Store,
    Told,
    about,
    earlier,
    moment,
    topics,
)

Group = tuple[Case, ...]
FORMS = ("facts", "mixed", "turns")
_SHORTEST, _LONGEST = 600, 32_000  # bytes of a text in which something is said
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
ASKED = 10  # questions of a memory that has answers for more
PASTED = 0.3  # share of the memories with chats in which somebody pasted a text, too
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
        for number in count():
            told = source.some(draw, 5, most)
            plan = telling(source, draw, told, form)
            if form != "facts" and source.read["pasted"] and draw.random() < PASTED:
                letter = draw.choice(source.read["pasted"])["text"].strip()
                plan = added(source, draw, plan, [Told("letter", letter, letter, ())])
            store = plan.store(source.user(kind, number))
            yield (asked_for(source, draw, store, told, kind, foreign=2, left_out=2),)

    return groups


def asked_for(
    source: Source,
    draw: random.Random,
    store: Store,
    told: Sequence[Told],
    kind: str,
    *,
    foreign: int,
    left_out: int,
) -> Case:
    """Ask for some of what was told, and for so much that was not."""
    for one in draw.sample(told, min(ASKED, len(told))):
        store.ask(kind, draw.choice(one.asks), one.label)
    for text in draw.sample(source.read["foreign"], foreign):
        store.ask_in_vain("foreign", text)
    untold = [one for one in source.topics if one not in told]
    for one in draw.sample(untold, min(left_out, len(untold))):
        store.ask_in_vain("left out", draw.choice(one.asks))
    return store.case(kind, source.language)


def few_facts(source: Source) -> Iterator[Group]:
    """Make memories of a first day: one thing told or some, as facts or in a talk of some lines."""
    kind = "few facts"
    draw = source.draw(kind)
    for number in count():
        told = source.some(draw, 1, 4)
        plan = Plan(asked_at=moment(draw))
        if number % 2:
            plan = plan.with_facts(stated(draw, told, plan.asked_at))
        else:
            blocks = [source.said(draw, Line(one.turn, one.label)) for one in told]
            plan = talking(draw, plan, [*blocks, *source.chatter(draw, 0, 3)], most=2)
        store = plan.store(source.user(kind, number))
        # As often in vain as in the other kinds.
        foreign = draw.randint(0, 1)
        yield (asked_for(source, draw, store, told, kind, foreign=foreign, left_out=1 - foreign),)


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


def added(source: Source, draw: random.Random, plan: Plan, every: Sequence[Told]) -> Plan:
    """Tell more, as the memory is told the rest."""
    for one in every:
        if plan.facts and (not plan.talks or draw.random() < 0.5):
            plan = plan.with_facts(stated(draw, [one], plan.asked_at))
        else:
            block = source.said(draw, Line(one.turn, one.label))
            plan = plan.with_block(draw.randrange(len(plan.talks)), block, draw)
    return plan


def rounds(draw: random.Random, every: Sequence[Any], least: int, most: int) -> Iterator[list[Any]]:
    """Draw some of a list again and again, all of it before any a second time."""
    left: list[Any] = []
    while every:
        if not left:
            left = draw.sample(every, len(every))
        number = draw.randint(least, most)
        yield left[:number]
        left = left[number:]


def asked_before(source: Source) -> Iterator[Group]:
    """Make memories in which the same was asked before, in vain or not, and was not.

    The question then was the same or another for the same thing.
    """
    kind = "asked before"
    draw = source.draw(kind)
    for number in count():
        told = source.some(draw, 4, 30)
        plan = telling(source, draw, told, FORMS[1 + number % 2])
        asked = draw.sample(told, min(6, len(told)))
        now = [draw.choice(one.asks) for one in asked]
        then = [
            text if draw.random() < 0.5 else _other(draw, text, one.asks)
            for text, one in zip(now, asked, strict=True)
        ]
        foreign = draw.sample(source.read["foreign"], 2)
        places = draw.random()
        yield tuple(
            _asked_arm(source, arm, f"{number}", plan, asked, now, then, foreign, places)
            for arm in ("never asked", "asked in vain", "asked with an answer")
        )


def _other(draw: random.Random, text: str, asks: Sequence[str]) -> str:
    others = [one for one in asks if one != text]
    return draw.choice(others) if others else text


def _asked_arm(
    source: Source,
    arm: str,
    number: str,
    plan: Plan,
    asked: Sequence[Told],
    now: Sequence[str],
    then: Sequence[str],
    foreign: Sequence[str],
    places: float,
) -> Case:
    draw = random.Random(places)
    unknown = source.read["unknown"]
    for place, (one, text) in enumerate(zip(asked, then, strict=True)):
        where = draw.randrange(len(plan.talks))
        reply = Line(draw.choice(unknown), role="assistant")
        if arm == "asked with an answer":
            reply = Line(one.fact, f"answer {place}", "assistant")
        if arm != "never asked":
            plan = plan.with_block(where, (Line(text), reply), draw)
    if arm == "asked in vain":
        for text in foreign:
            reply = Line(draw.choice(unknown), role="assistant")
            where = draw.randrange(len(plan.talks))
            plan = plan.with_block(where, (Line(text), reply), draw)
    store = plan.store(source.user(arm, int(number)))
    for place, (one, text, before) in enumerate(zip(asked, now, then, strict=True)):
        answered = [one.label, f"answer {place}"]
        labels = [label for label in answered if label in store.ids]
        said = "" if arm == "never asked" or text == before else ", other words"
        store.ask(f"{arm}{said}", text, *labels, either=True)
    for text in foreign:
        store.ask_in_vain("foreign asked in vain" if arm == "asked in vain" else "foreign", text)
    return store.case(arm, source.language, pair=source.user("asked before", int(number)))


def lists(source: Source) -> Iterator[Group]:
    """Make memories that are asked for all things of a kind."""
    draw = source.draw("lists")
    for number, (one,) in enumerate(rounds(draw, source.read["list"], 1, 1)):
        plan = telling(source, draw, source.some(draw, 5, 30), FORMS[number % 3])
        told = [*plain("thing", one["items"]), *plain("near", one["near"])]
        plan = added(source, draw, plan, draw.sample(told, len(told)))
        store = plan.store(source.user("lists", number))
        labels = [each.label for each in told if each.label.startswith("thing")]
        for text in one["ask"]:
            store.ask("lists", text, *labels, things=True)
        yield (store.case("lists", source.language),)


def plain(name: str, texts: Sequence[str]) -> list[Told]:
    """Tell texts as they are, for which nothing asks."""
    return [Told(f"{name} {place}", text, text, ()) for place, text in enumerate(texts)]


def exact(name: str, kind: str) -> Callable[[Source], Iterator[Group]]:
    """Make the kind of memory with exact values, or denials, each among some that are alike."""

    def groups(source: Source) -> Iterator[Group]:
        draw = source.draw(kind)
        for number, chosen in enumerate(rounds(draw, source.read[name], 2, 4)):
            plan = telling(source, draw, source.some(draw, 5, 30), FORMS[number % 3])
            told: list[Told] = []
            for i, one in enumerate(chosen):
                told.append(Told(f"{kind} {i}", one["fact"], one["turn"], one["ask"]))
                told += plain(f"near {kind} {i}", one["near"])
            plan = added(source, draw, plan, draw.sample(told, len(told)))
            store = plan.store(source.user(kind, number))
            for i, one in enumerate(chosen):
                for text in one["ask"]:
                    store.ask(kind, text, f"{kind} {i}")
                for text in one.get("reverse", ()):
                    store.ask(f"{kind}, reverse", text, f"{kind} {i}")
            yield (store.case(kind, source.language),)

    return groups


codes = exact("code", "codes")
negation = exact("negation", "negation")


def names(source: Source) -> Iterator[Group]:
    """Make memories that are asked about people by another name than they were told with."""
    draw = source.draw("names")
    people = [place for place, one in enumerate(source.read["person"]) if one["also"]]
    for number, chosen in enumerate(rounds(draw, people, 1, 4)):
        known = [one for place in chosen for one in _known(source, place)]
        topics = draw.sample(source.topics, min(draw.randint(0, 20), len(source.topics)))
        store = telling(source, draw, [*known, *topics], FORMS[number % 3]).store(
            source.user("names", number)
        )
        for one in draw.sample(known, min(ASKED, len(known))):
            person = source.read["person"][int(one.label.split()[1])]
            texts = [text for text in one.asks if person["name"] in text]
            if texts:
                other = draw.choice(person["also"])
                store.ask("names", draw.choice(texts).replace(person["name"], other), one.label)
        yield (store.case("names", source.language),)


def _known(source: Source, place: int) -> list[Told]:
    return [one for one in source.people if one.label.startswith(f"person {place} ")]


def people(source: Source) -> Iterator[Group]:
    """Make memories that are asked about people, also for one thing that was never told."""
    draw = source.draw("people")
    places = range(len(source.read["person"]))
    for number, chosen in enumerate(rounds(draw, places, 1, 3)):
        told: list[Told] = []
        untold: list[Told] = []
        for place in chosen:
            known = _known(source, place)
            untold.append(known.pop(draw.randrange(len(known))))
            told += known
        topics = draw.sample(source.topics, min(draw.randint(0, 25), len(source.topics)))
        plan = telling(source, draw, [*told, *topics], FORMS[number % 3])
        store = plan.store(source.user("people", number))
        for one in untold:
            for text in one.asks:
                store.ask_in_vain("same subject", text, "same subject")
        for one in draw.sample(told, min(2 * len(chosen), len(told))):
            store.ask("people", draw.choice(one.asks), one.label)
        yield (store.case("people", source.language),)


def typos(source: Source) -> Iterator[Group]:
    """Make memories that are asked with typing errors."""
    draw = source.draw("typos")
    for number, chosen in enumerate(rounds(draw, source.read["typo"], 3, 6)):
        wanted = [source.topics[one["topic"]] for one in chosen]
        others = [one for one in source.some(draw, 5, 40) if one not in wanted]
        plan = telling(source, draw, [*wanted, *others], FORMS[number % 3])
        store = plan.store(source.user("typos", number))
        for typo in chosen:
            for text in typo["ask"]:
                store.ask("typos", text, f"topic {typo['topic']}")
        yield (store.case("typos", source.language),)


def pasted(source: Source) -> Iterator[Group]:
    """Make memories with long texts among short ones, which are asked for as well."""
    draw = source.draw("pasted")
    for number, chosen in enumerate(rounds(draw, source.read["pasted"], 1, 2)):
        told = source.some(draw, 6, 30)
        plan = telling(source, draw, told, FORMS[number % 3])
        long = [
            Told(f"pasted {i}", one["text"].strip(), one["text"].strip(), one["ask"])
            for i, one in enumerate(chosen)
        ]
        store = added(source, draw, plan, long).store(source.user("pasted", number))
        for one in long:
            for text in one.asks:
                store.ask("pasted", text, one.label)
        for one in draw.sample(told, 4):
            store.ask("beside pasted", draw.choice(one.asks), one.label)
        yield (store.case("pasted", source.language),)


def dialogues(source: Source) -> Iterator[Group]:
    """Make memories of conversations in which the assistant asks, mostly for a brief answer."""
    draw = source.draw("dialogues")
    for number, chosen in enumerate(rounds(draw, source.read["dialogue"], 2, 8)):
        plan = telling(source, draw, source.some(draw, 4, 30), FORMS[number % 3])
        days = draw.sample(range(1, 100), len(chosen))
        for i, (one, day) in enumerate(zip(chosen, days, strict=True)):
            parts = [turn.partition(": ") for turn in one["turns"]]
            lines = [
                Line(text, f"{i} {place}", "assistant" if role == "assistant" else "user")
                for place, (role, _, text) in enumerate(parts)
            ]
            plan = plan.with_talk(earlier(draw, plan.asked_at, day, day), [tuple(lines)])
        store = plan.store(source.user("dialogues", number))
        for i, one in enumerate(chosen):
            for text, place in one["ask"]:
                store.ask("dialogues", text, f"{i} {place}")
        yield (store.case("dialogues", source.language),)


def inside(source: Source) -> Iterator[Group]:
    """Make memories with longer texts yet, each of which says one thing among much else."""
    kind = "inside a text"
    draw = source.draw(kind)
    letters = [part for one in source.read["pasted"] for part in _SENTENCE.findall(one["text"])]
    filling = [*source.read["chatter"], *source.read["replies"], *letters]
    for number in count():
        told = source.some(draw, 8, 40)
        places = min(round(20 ** draw.random()), len(told) - 2)
        long = [_among(draw, one, filling) for one in told[:places]]
        plan = telling(source, draw, [*long, *told[places:]], FORMS[number % 3])
        store = plan.store(source.user(kind, number))
        for one in long:
            store.ask(kind, draw.choice(one.asks), one.label)
        for one in draw.sample(told[places:], min(4, len(told) - places)):
            store.ask("beside a text", draw.choice(one.asks), one.label)
        store.ask_in_vain("foreign", draw.choice(source.read["foreign"]))
        yield (store.case(kind, source.language),)


def _among(draw: random.Random, one: Told, filling: Sequence[str]) -> Told:
    """Say something at any place of a long text."""
    left = _SHORTEST * (_LONGEST / _SHORTEST) ** draw.random()
    parts: list[str] = []
    while left > 0:
        parts.append(draw.choice(filling).strip() + draw.choice("    \n"))
        left -= len(parts[-1].encode())
    before, after = parts[: (place := draw.randint(0, len(parts)))], parts[place:]
    fact, turn = ("".join([*before, text + " ", *after]).strip() for text in (one.fact, one.turn))
    return one._replace(fact=fact, turn=turn)


def relations(source: Source) -> Iterator[Group]:
    """Make memories of the same facts, of which none, some or all state a relation."""
    draw = source.draw("relations")
    for number in count():
        told = source.some(draw, 40, 40)
        asked_at = moment(draw)
        facts = [
            one._replace(relation=each.relation)
            for one, each in zip(stated(draw, told, asked_at), told, strict=True)
        ]
        places = draw.sample(range(len(told)), min(ASKED, len(told)))
        texts = [draw.choice(told[place].asks) for place in places]
        order = draw.sample(range(len(told)), len(told))
        group = []
        for many in (0, 1, 5, 20, len(told)):
            name = f"relations on {'all' if many == len(told) else many}"
            having = set(order[:many])
            plan = Plan(asked_at=asked_at).with_facts(
                one if place in having else one._replace(relation=())
                for place, one in enumerate(facts)
            )
            store = plan.store(source.user(name, number))
            for place, text in zip(places, texts, strict=True):
                store.ask(name, text, told[place].label)
            pair = source.user("relations", number)
            group.append(store.case(name, source.language, pair=pair))
        yield tuple(group)
