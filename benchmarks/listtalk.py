"""Made-up conversations in which things of a kind are told one by one, and questions for all.

Each session goes on about one thing of some kinds, in several messages that are alike, so that one
session could fill a result. English and Chinese, short turns of a chat and long messages.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import longtalk

Style = tuple[str, bool]  # language, and whether messages are long
STYLES: tuple[Style, ...] = (("en", False), ("en", True), ("zh", False), ("zh", True))


class Kind(NamedTuple):
    """Things of a kind, what is told about one in the same session, and questions for all."""

    things: Sequence[str]
    told: Sequence[str]
    asked: Sequence[str]


def _things(topic: str) -> Sequence[str]:
    return longtalk.TOPICS[topic][2]


ENGLISH = (
    Kind(
        _things("garden"),
        [
            "I planted {x} in the garden this morning",
            "the {x} in the garden need a lot of water",
            "I hope that the {x} grow as well as the plants of my neighbour",
        ],
        [
            "List all the plants that I grew in the garden.",
            "In which order did I plant things in the garden?",
            "Summarise what I planted.",
        ],
    ),
    Kind(
        _things("travel"),
        [
            "we took the train to {x} for a holiday",
            "the hotel in {x} was near the harbour",
            "the food in {x} was the best of the whole journey",
        ],
        [
            "List all the cities where I spent a holiday.",
            "In what order did I travel to the cities?",
            "Give me a summary of my journeys.",
        ],
    ),
    Kind(
        _things("work"),
        [
            "my manager gave me the {x} project",
            "the release of the {x} project slipped again",
            "everybody at the office blames the tests of {x}",
        ],
        [
            "List every project that I had at the office.",
            "In which order did I work on the projects?",
            "Summarize my projects at work.",
        ],
    ),
    Kind(
        _things("health"),
        [
            "the doctor told me that my {x} is inflamed",
            "my {x} hurts when I get up",
            "I do exercises for my {x} with a video",
        ],
        [
            "List all the parts of my body that hurt.",
            "In what order did I have trouble with my health?",
            "Summarise all of my pains.",
        ],
    ),
    Kind(
        _things("music"),
        [
            "I bought a used {x} and started lessons",
            "the teacher says that my {x} sounds better now",
            "I practise scales on the {x} before breakfast",
        ],
        [
            "List all the instruments that I learned to play.",
            "In which order did I start the instruments?",
            "Give me an overview of my music lessons.",
        ],
    ),
    Kind(
        _things("pets"),
        [
            "our {x} came home from the shelter",
            "the vet weighed the {x}",
            "the {x} hid under the bed because of the fireworks",
        ],
        [
            "Name all the animals that we took in.",
            "In which order did our pets arrive?",
            "Summarise what I said about our pets.",
        ],
    ),
)
CHINESE = (
    Kind(
        "番茄 薰衣草 南瓜 罗勒 向日葵 韭菜".split(),
        ["今天早上我在院子里种了{x}", "院子里的{x}要浇很多水", "希望{x}长得像邻居家的植物一样好"],
        ["列出我在院子里种过的所有植物。", "我种东西的先后顺序是什么？", "总结一下我种了什么。"],
    ),
    Kind(
        "成都 厦门 哈尔滨 西安 昆明 青岛".split(),
        ["我们坐火车去{x}度假", "{x}的酒店离车站很近", "{x}的小吃是这次旅行里最好的"],
        ["列出我度假去过的所有城市。", "我按什么顺序去了这些城市？", "概括一下我的旅行。"],
    ),
    Kind(
        "账单 搜索 工资 地图 库存 登录".split(),
        ["经理把{x}项目交给了我", "{x}项目的发布又推迟了", "办公室里大家都怪{x}的测试"],
        ["列出我做过的全部项目。", "我按什么顺序做了这些项目？", "总结我在办公室的工作。"],
    ),
    Kind(
        "钢琴 二胡 吉他 古筝 小提琴 琵琶".split(),
        ["我买了一把旧{x}，开始上课", "老师说我的{x}进步了", "早饭前我练{x}的音阶"],
        ["列出我学过的所有乐器。", "我学乐器的先后顺序是什么？", "归纳一下我的音乐课。"],
    ),
)
CHINESE_FILLER = (
    "这个星期天一直阴着，我睡得不好",
    "我还收拾了厨房，回了一堆信",
    "后来有个朋友打电话来，我们东拉西扯说了一个小时",
    "晚上翻了几页书，就在沙发上睡着了",
    "公交车又晚点了，我沿着河走回了家",
)
KINDS = {"en": ENGLISH, "zh": CHINESE}
FILLER = {"en": tuple(longtalk.FILLER), "zh": CHINESE_FILLER}
ENDS = {"en": (". ", "."), "zh": ("，", "。")}
KINDS_A_SESSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and for each thing the (session, place) of every text that tells of it."""

    text: str
    things: tuple[frozenset[tuple[str, int]], ...]


def conversations(
    style: Style, users: int = 3, seed: int = 17
) -> Iterator[tuple[str, list[tuple[str, list[str]]], list[Asked]]]:
    """Make up, for each user, sessions of texts and questions; the same seed makes the same."""
    language, is_long = style
    chance = random.Random(seed)
    kinds, filler, (between, end) = KINDS[language], FILLER[language], ENDS[language]
    for user in range(users):
        left = [chance.sample([*kind.things], len(kind.things)) for kind in kinds]
        places: dict[tuple[int, str], set[tuple[str, int]]] = {}
        held: list[tuple[str, list[str]]] = []
        while any(left):
            name = f"session {len(held)}"
            there = sorted(range(len(kinds)), key=lambda one: (-len(left[one]), chance.random()))
            chosen = [one for one in there[:KINDS_A_SESSION] if left[one]]
            said = [(one, left[one][-1], text) for one in chosen for text in kinds[one].told]
            for one in chosen:
                left[one].pop()
            chance.shuffle(said)
            texts = []
            for place, (kind, thing, text) in enumerate(said):
                parts = [text.format(x=thing)]
                if is_long:
                    parts += chance.sample(filler, 4)
                    chance.shuffle(parts)
                places.setdefault((kind, thing), set()).add((name, place))
                texts.append(between.join(parts) + end)
            held.append((name, [*texts, chance.choice(filler) + end]))
        asked = [
            Asked(
                text=text,
                things=tuple(frozenset(places[number, thing]) for thing in kind.things),
            )
            for number, kind in enumerate(kinds)
            for text in kind.asked
        ]
        yield f"user {user}, {language}, {'long' if is_long else 'short'}", held, asked
