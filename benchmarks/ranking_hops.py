"""Memories whose answers need two facts: what somebody is to another, and something about them.

A tie leads from the person whom a question names to the one it asks about; what it asks for is a
fact of `benchmarks/ranking/`. All state their relations. The halves share no tie and no name.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ranking_cases import Case, Plan, Told, moment
from ranking_kinds import Group, Source, rounds, stated

VAIN = "same subject"
_ASKED = 4  # questions about each person
_BARE = 0.2  # share of the memories that are told nothing about the user


class Tie(NamedTuple):
    """What `b` is to `a`: a type of relation, how a fact tells it, what a question calls `b`.

    Of some of them the type is the word that a question has.
    """

    predicate: str
    told: str
    called: str


class Ties(NamedTuple):
    """Ties of a half in a language, and names of those from whom they lead."""

    ties: Sequence[Tie]
    names: Sequence[str]
    whose: str
    asked: str


TIES: Mapping[str, Ties] = {
    "develop en": Ties(
        ties=(
            Tie("cousin_of", "{a} and {b} share a grandfather, so they are cousins.", "cousin"),
            Tie("manages", "{b} is the manager whom {a} reports to.", "boss"),
            Tie("best_friend_of", "{b} has been {a}'s closest friend since school.", "best friend"),
            Tie("lives_next_to", "{b} lives in the house next to {a}.", "neighbour"),
            Tie("lawyer_of", "{b} represents {a} in court.", "lawyer"),
            Tie("shares_office_with", "{a} sits across the desk from {b}.", "office mate"),
            Tie("godparent_of", "At the christening {b} became godparent to {a}.", "godparent"),
            Tie("cuts_hair_of", "{b} has cut {a}'s hair for years.", "hairdresser"),
            Tie("tutor_of", "Twice a week {b} tutors {a}.", "tutor"),
            Tie("engaged_to", "{a} got engaged to {b} on the ferry.", "fiancé"),
        ),
        names=(
            *("Wilhelmina", "Ezra", "Odalys", "Piotr", "Yasmin", "Callum", "Beatrix", "Ikenna"),
            *("Henrike", "Matteo", "Zuzana", "Harvey", "Thandiwe", "Lorcan", "Mireille", "Dashell"),
        ),
        whose="{a}'s {called}",
        asked="Who is {whose}?",
    ),
    "apart en": Ties(
        ties=(
            Tie("sibling_of", "{b} is {a}'s only sibling.", "sibling"),
            Tie("rents_flat_to", "{a} rents a flat that belongs to {b}.", "landlord"),
            Tie("dentist_of", "{b} looks after {a}'s teeth.", "dentist"),
            Tie("mentors", "On the trainee scheme {b} guides {a}.", "mentor"),
            Tie("business_partner_of", "{a} founded the shop with {b}.", "business partner"),
            Tie("plays_doubles_with", "{b} is on court with {a} every weekend.", "tennis partner"),
            Tie("babysitter_of", "When {a} was small, {b} used to babysit.", "babysitter"),
            Tie("in_law_of", "{b}'s brother is married to {a}.", "in-law"),
        ),
        names=(
            *("Quentin", "Saoirse", "Ludmila", "Okoro", "Anneke", "Fergus", "Paloma", "Ignatius"),
            *("Tamsin", "Viktor", "Leocadia", "Barnaby"),
        ),
        whose="{a}'s {called}",
        asked="Who is {whose}?",
    ),
    "develop zh": Ties(
        ties=(
            Tie("表姐", "{b}是{a}姑姑家的孩子，比{a}大，是表姐。", "表姐"),
            Tie("领导", "{a}的周报都交给{b}审批。", "主管"),
            Tie("闺蜜", "{a}和{b}从初中起就是闺蜜。", "闺蜜"),
            Tie("住对门", "{b}就住在{a}家对面。", "邻居"),
            Tie("律师", "打官司时{b}替{a}出庭。", "律师"),
            Tie("同桌", "上学那几年{a}一直和{b}同桌。", "同桌"),
            Tie("指导", "{b}带{a}写毕业论文。", "导师"),
            Tie("理发师", "{a}的头发向来由{b}来剪。", "理发师"),
            Tie("合伙人", "{b}和{a}一起出钱开了店。", "合伙人"),
            Tie("订婚", "{a}上个月跟{b}订了婚。", "对象"),
        ),
        names=(
            *("邵云帆", "贺知秋", "尤佳怡", "詹明远", "柳如烟", "戚建军", "岑小满", "霍去非"),
            *("施雅琴", "耿大勇", "骆冰清", "滕书豪"),
        ),
        whose="{a}的{called}",
        asked="{whose}是谁？",
    ),
    "apart zh": Ties(
        ties=(
            Tie("堂哥", "{b}的爸爸是{a}的大伯，两人是堂兄弟。", "堂哥"),
            Tie("出租房屋给", "{a}租的房子是{b}的。", "房东"),
            Tie("牙医", "{a}看牙一直找{b}。", "牙医"),
            Tie("师父", "{a}进厂时拜{b}为师。", "师父"),
            Tie("搭档", "混双比赛{a}总是和{b}配对。", "搭档"),
            Tie("合租", "{a}跟{b}合住一套两居室。", "室友"),
            Tie("保姆", "{b}照看{a}家的孩子三年了。", "保姆"),
            Tie("干妈", "{a}满月那天认了{b}。", "干妈"),
        ),
        names=(
            *("温如玉", "闵思齐", "翟小川", "祁连山", "裴秀兰"),
            *("荀一鸣", "栾晓彤", "乔木森", "阎立新", "葛青青"),
        ),
        whose="{a}的{called}",
        asked="{whose}是谁？",
    ),
}  # fmt: skip


def hops(source: Source) -> Iterator[Group]:
    """Make memories that are asked about somebody whom only a tie to another names.

    Some questions ask for what was never told, of the one or of the other.
    """
    half = source.name.split()[0]
    known = TIES.get(f"{half} {source.language}")
    draw = source.draw("two hops")
    places = range(len(source.read["person"])) if known else ()
    for number, chosen in enumerate(rounds(draw, places, 2, 3)):
        if known:
            yield (_memory(source, draw, known, chosen, number),)


def _memory(
    source: Source, draw: random.Random, known: Ties, chosen: Sequence[int], number: int
) -> Case:
    """Make a memory that is asked about some people, each by a tie from a person of its own."""
    others = [one for one in source.people if int(one.label.split()[1]) not in chosen]
    spare = iter(draw.sample(others, len(others)))
    names = iter(draw.sample(known.names, len(known.names)))
    ties = draw.sample(known.ties, len(chosen) + 1)
    told: list[Told] = []
    asked: list[tuple[str, str, tuple[str, ...]]] = []

    def facts_of(name: str, many: int) -> list[Told]:
        return [_renamed(source, one, name) for one in islice(spare, many)]

    def tie(a: str, b: str, kind: Tie) -> str:
        text = kind.told.format(a=a, b=b)
        label = f"tie {len(told)}"
        told.append(Told(label, text, text, (), (b, kind.predicate, a)))
        return label

    for place, kind in zip(chosen, ties, strict=False):
        person = source.read["person"][place]["name"]
        first, near, far = next(names), next(names), next(names)
        label = tie(first, person, kind)
        tie(first, near, ties[-1])  # another tie of whom the question names
        tie(person, far, kind)  # one step too far
        whose = known.whose.format(a=first, called=kind.called)
        asked.append(("one hop", known.asked.format(whose=whose), (label,)))
        mine = [one for one in source.people if one.label.startswith(f"person {place} ")]
        for i, one in enumerate(draw.sample(mine, len(mine))):
            text = draw.choice(one.asks).replace(person, whose)
            if i:
                told.append(one)
            if whose in text and i <= _ASKED:
                asked.append(("two hops", text, (label, one.label)) if i else (VAIN, text, ()))
        for i, one in enumerate(facts_of(first, 4)):
            if i:
                told.append(one)
            asked.append(("one hop", one.asks[0], (one.label,)) if i else (VAIN, one.asks[0], ()))
        told += [*facts_of(near, 3), *facts_of(far, 2)]
    more = draw.sample(source.topics, draw.randint(0, 25))
    plan = Plan(asked_at=moment(draw))
    every = [*told, *([] if draw.random() < _BARE else more)]
    facts = stated(draw, every, plan.asked_at)
    facts = [one._replace(relation=each.relation) for one, each in zip(facts, every, strict=True)]
    store = plan.with_facts(facts).store(source.user("two hops", number))
    for name, text, labels in asked:
        if labels:
            store.ask(name, text, *labels)
        else:
            store.ask_in_vain(name, text, "same subject")
    return store.case("two hops", source.language)


def _renamed(source: Source, one: Told, name: str) -> Told:
    """Tell the same of somebody else."""
    person = source.read["person"][int(one.label.split()[1])]["name"]
    return Told(
        one.label,
        one.fact.replace(person, name),
        one.turn.replace(person, name),
        [text.replace(person, name) for text in one.asks if person in text] or one.asks,
        [end.replace(person, name) for end in one.relation],
    )
