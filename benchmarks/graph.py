"""What do relations bring, are their intervals right, and what do they cost?

    python benchmarks/graph.py [hops|slots|cost ...] [--small]

`hops` asks for what only two facts together tell, in English and Chinese, with and without the
relationship graph. `slots` counts wrong values of relations that have one at a time. `cost` times a
graph of ten thousand entities. All data are made up, the same in every run.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated
from unittest import mock

import scoring
import speed
import typer
from rich.console import Console
from rich.table import Table

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.retrieval.lexical import entity_mentions
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace.types import now

ALICE = Scope(user_id="alice")
START = datetime(2020, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
console = Console(width=110)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """Names, ties between people and things said of them, in one language.

    `ties` are a type, how it is told, and what a question calls it; `traits` are a type, how it is
    told, how it is asked for, and values.
    """

    names: tuple[str, ...]
    ties: tuple[tuple[str, str, str], ...]
    traits: tuple[tuple[str, str, str, tuple[str, ...]], ...]


ENGLISH = Tongue(
    names=tuple(
        f"{given} {family}"
        for given in (
            "Alice Mei Omar Greta Pavel Lucia Hugo Ines Tariq Wanda Felix Noor Boris Clara "
            "Diego Elena Frida Goran Hanna Igor Julia Karim Leila Marek Nadia Oskar Petra Quinn"
        ).split()
        for family in (
            "Abbot Berger Castro Dietz Egan Fabre Grant Holm Ibsen Jensen Kovac Lund Mora Novak "
            "Ortiz Price Quist Rossi Silva Toth Usher Vogel Weber Xu Yates Zeman"
        ).split()
    ),
    ties=(
        ("sister_of", "{b} is the younger sister of {a}.", "sister"),
        ("boss_of", "{b} leads the team that {a} belongs to.", "boss"),
        ("neighbour_of", "{a} and {b} have neighbouring houses.", "neighbour"),
        ("roommate_of", "{a} shares a flat with {b}.", "roommate"),
        ("doctor_of", "{b} treats {a} at the clinic.", "doctor"),
        ("teacher_of", "{b} gives lessons to {a} on Mondays.", "teacher"),
        ("coach_of", "{b} trains {a} for the marathon.", "coach"),
        ("cousin_of", "{b} and {a} are cousins.", "cousin"),
        ("landlord_of", "{a} pays the rent to {b}.", "landlord"),
        ("married_to", "{a} married {b} in June.", "spouse"),
    ),
    traits=(
        ("lives_in", "{b} moved to {x} last spring.", "Where does {of} live?",
         ("Lyon", "Oslo", "Porto", "Graz", "Turku", "Ghent", "Malaga", "Split")),
        ("works_at", "{b} got a job with {x}.", "Which company does {of} work for?",
         ("Acme Tools", "Norwind", "Bluefin Labs", "Orbis Print", "Kestrel Air", "Tidal Bank")),
        ("owns", "{b} bought a {x}.", "What vehicle does {of} have?",
         ("red scooter", "cargo bike", "camper van", "sailing boat", "tandem", "tractor")),
        ("plays", "{b} practises the {x} every evening.", "Which instrument does {of} play?",
         ("cello", "oboe", "banjo", "harp", "trumpet", "accordion", "viola")),
        ("allergic_to", "{b} gets a rash from {x}.", "What is {of} allergic to?",
         ("peanuts", "shellfish", "pollen", "cats", "penicillin", "strawberries")),
        ("studies", "{b} enrolled in a course on {x}.", "Which subject is {of} learning?",
         ("botany", "law", "astronomy", "welding", "Latin", "statistics")),
        ("born_in", "{b} comes from {x}.", "In which country was {of} born?",
         ("Peru", "Latvia", "Ghana", "Nepal", "Chile", "Malta", "Samoa")),
        ("likes_to_drink", "{b} always orders {x}.", "What is the favourite drink of {of}?",
         ("mint tea", "espresso", "cider", "ginger ale", "oat milk", "cocoa")),
        ("afraid_of", "{b} panics near {x}.", "What is {of} scared of?",
         ("spiders", "lifts", "thunder", "geese", "heights", "needles")),
        ("collects", "{b} has a shelf full of {x}.", "What does {of} collect?",
         ("stamps", "fossils", "old maps", "teapots", "masks", "coins")),
    ),
)  # fmt: skip

CHINESE = Tongue(
    names=tuple(
        family + given
        for family in "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗"
        for given in (
            "伟明 秀英 建国 丽华 志强 晓燕 海涛 雪梅 文博 思远 佳宁 子轩 雨桐 浩然 静怡 俊杰 慧敏 "
            "天佑 春生 冬梅 国栋 红霞 家豪 凯文 兰芳 美玲 宁静 鹏飞 清泉 瑞雪 诗涵 婷婷 晓东"
        ).split()
    ),
    ties=(
        ("妹妹", "{b}是{a}最小的妹妹。", "妹妹"),
        ("上司", "{a}所在的团队由{b}领导。", "上司"),
        ("邻居", "{a}和{b}门对门，是多年的邻居。", "邻居"),
        ("室友", "{a}与{b}合租一套公寓。", "室友"),
        ("医生", "{b}在诊所给{a}看病。", "医生"),
        ("老师", "{b}每周一给{a}上课。", "老师"),
        ("教练", "{b}训练{a}跑马拉松。", "教练"),
        ("表弟", "{b}是{a}的表弟。", "表弟"),
        ("房东", "{a}每月向{b}交房租。", "房东"),
        ("配偶", "{a}六月和{b}结婚了。", "爱人"),
    ),
    traits=(
        ("住在", "{b}去年春天搬到了{x}。", "{of}住在哪里？",
         ("成都", "厦门", "青岛", "昆明", "苏州", "大连", "桂林")),
        ("就职于", "{b}在{x}找到了工作。", "{of}在哪家公司上班？",
         ("蓝鲸科技", "远航物流", "星海银行", "东方印务", "云杉设计")),
        ("拥有", "{b}买了一辆{x}。", "{of}有什么车？",
         ("红色摩托", "折叠单车", "房车", "三轮车", "越野车")),
        ("演奏", "{b}每天晚上练{x}。", "{of}会哪种乐器？",
         ("大提琴", "古筝", "二胡", "竖琴", "小号", "琵琶")),
        ("过敏", "{b}一碰{x}就起疹子。", "{of}对什么过敏？",
         ("花生", "海鲜", "花粉", "猫毛", "青霉素", "草莓")),
        ("学习", "{b}报名了{x}课程。", "{of}正在学什么科目？",
         ("植物学", "法律", "天文", "焊接", "拉丁语", "统计")),
        ("出生于", "{b}的老家是{x}。", "{of}出生在什么地方？",
         ("甘肃", "海南", "湖南", "山东", "贵州", "吉林")),
        ("爱喝", "{b}每次都点{x}。", "{of}最喜欢什么饮料？",
         ("薄荷茶", "咖啡", "豆浆", "酸梅汤", "可可", "姜汁")),
        ("害怕", "{b}一见{x}就慌。", "{of}怕什么？",
         ("蜘蛛", "电梯", "打雷", "大鹅", "针头", "高处")),
        ("收藏", "{b}的架子上摆满了{x}。", "{of}收集什么东西？",
         ("邮票", "化石", "旧地图", "茶壶", "面具", "硬币")),
    ),
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Story:
    """Facts that are told, and questions with the texts of the facts that answer each.

    `asked` need two facts, `simple` one that names whom the question names.
    """

    tongue: Tongue
    chance: random.Random
    facts: list[Fact] = field(default_factory=list)
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    simple: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def tie(self, a: str, b: str, number: int) -> str:
        """Tell what b is to a."""
        kind, told, _ = self.tongue.ties[number]
        return self._tell(told.format(a=a, b=b), b, kind, a)

    def trait(self, b: str, number: int) -> str:
        """Tell something of b."""
        kind, told, _, values = self.tongue.traits[number]
        value = self.chance.choice(values)
        return self._tell(told.format(b=b, x=value), b, kind, value)

    def whose(self, a: str, tie: int) -> str:
        """Name whom a calls so."""
        who = self.tongue.ties[tie][2]
        return f"{a}的{who}" if self.tongue is CHINESE else f"{a}'s {who}"

    def question(self, of: str, trait: int) -> str:
        """Ask for something of somebody."""
        return self.tongue.traits[trait][2].format(of=of)

    def _tell(self, text: str, subject: str, predicate: str, object_: str) -> str:
        edge = Relation(subject=subject, predicate=predicate, object=object_)
        self.facts.append(Fact(text=text, at=START, relations=(edge,)))
        return text


def stories(tongue: Tongue, count: int) -> Story:
    """Make up that many questions, each with ten facts beside it that do not answer it.

    Everybody has a tie or a trait of one type at most once, so no other fact answers.
    """
    chance = random.Random(11)
    story = Story(tongue=tongue, chance=chance)
    names = list(tongue.names)
    chance.shuffle(names)
    fresh = iter(names)
    for number in range(count):
        tie, trait = number % 10, (number // 10 + number) % 10
        other_tie, *other_traits = (
            (tie + chance.randint(1, 9)) % 10,
            *chance.sample([one for one in range(10) if one != trait], 4),
        )
        a, b, c, d, e, f = (next(fresh) for _ in range(6))
        first, second = story.tie(a, b, tie), story.trait(b, trait)
        whose = story.whose(a, tie)
        story.asked.append((story.question(whose, trait), (first, second)))
        who = f"{whose}是谁？" if tongue is CHINESE else f"Who is {whose}?"
        same = story.trait(a, trait)  # the same of whom the question names
        story.simple += [(who, (first,)), (story.question(a, trait), (same,))]
        story.trait(a, other_traits[0])
        story.tie(a, c, other_tie)  # of another one near him
        story.trait(c, trait)
        story.trait(b, other_traits[1])  # something else of the right one
        story.trait(b, other_traits[2])
        story.tie(b, d, tie)  # one step too far
        story.trait(d, trait)
        story.tie(e, f, tie)  # the same between others
        story.trait(f, trait)
    return story


def hops(small: bool) -> Iterator[Table]:
    """Measure how many facts that answer are among the first, with relations or without."""
    count = 20 if small else 100
    told = {"en": stories(ENGLISH, count), "zh": stories(CHINESE, count)}
    table = Table("language", "needs", "questions", "relations", "R@1", "R@5", "all@5", "R@10")
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        ids: dict[str, str] = {}
        facts = [fact for story in told.values() for fact in story.facts]
        random.Random(12).shuffle(facts)
        for start in range(0, len(facts), 200):
            done = memory.add(facts[start : start + 200], ALICE)
            ids |= {str(change.text): change.id for change in done.changes}
        for name, story in told.items():
            for needs, asked in (("two facts", story.asked), ("one fact", story.simple)):
                for arm in ("without", "with"):
                    places = [
                        scoring.ranks(_found(memory, question, arm), [ids[one] for one in wanted])
                        for question, wanted in asked
                    ]
                    shares = [_share(places, k) for k in (1, 5)]
                    whole = sum(one[-1] <= 5 for one in places) / len(places)
                    shares += [whole, _share(places, 10)]
                    figures = [f"{share:.3f}" for share in shares]
                    table.add_row(name, needs, str(len(asked)), arm, *figures)
        table.caption = f"{len(facts)} facts in one scope"
    yield table


def _share(places: Sequence[Sequence[int]], k: int) -> float:
    return sum(scoring.recall(one, k) for one in places) / len(places)


def _found(memory: Memory, question: str, arm: str) -> list[str]:
    graph = memory._runtime.engines.graph  # noqa: SLF001 -- what is left out has no other handle
    expand = graph.expand if arm == "with" else (lambda *_: [])
    with mock.patch.object(graph, "expand", expand):
        return [one.record.id for one in memory.search(question, ALICE, top_k=10)]


# -- one value at a time ---------------------------------------------------------------------------


def slots(small: bool) -> Iterator[Table]:
    """Count wrong values now and at every boundary, and what is missing of the history."""
    chance = random.Random(13)
    wanted = {
        f"person {number}": sorted(chance.sample(range(40), number % 8 + 1))
        for number in range(100 if small else 1_000)
    }
    facts = [_home(who, day) for who, days in wanted.items() for day in days]
    chance.shuffle(facts)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, embedder=HashEmbedder()) as memory,
    ):
        ids = []
        for start in range(0, len(facts), 64):
            ids += [one.id for one in memory.add(facts[start : start + 64], ALICE).changes]
        live = _wrong(memory, {who: days[-1] for who, days in wanted.items()}, None)
        past = 0
        moments = [START + day * DAY - late for day in range(41) for late in (DAY / 2, DAY * 0)]
        for at in moments:
            begun = {
                who: [d for d in days if START + d * DAY <= at] for who, days in wanted.items()
            }
            past += _wrong(memory, {who: days[-1] for who, days in begun.items() if days}, at)
        lost = sum(len(memory.history(one, ALICE)) != 1 for one in ids)
    table = Table("what", "count")
    table.add_row("slots", str(len(wanted)))
    table.add_row("values, in any order", str(len(facts)))
    table.add_row("moments asked for", str(len(moments)))
    table.add_row("wrong live values", str(live))
    table.add_row("wrong values at a moment", str(past))
    table.add_row("lost rows of history", str(lost + len(facts) - len(set(ids))))
    yield table


def _home(who: str, day: int) -> Fact:
    edge = Relation(
        subject=who, predicate="lives_in", object=f"town {day}", valid_from=START + day * DAY
    )
    return Fact(text=f"{who} lives in town {day}.", relations=(edge,))


def _wrong(memory: Memory, wanted: dict[str, int], at: datetime | None) -> int:
    """Count the people whose home differs, among the relations and among the records."""
    edges = {(one.subject, one.predicate, one.object) for one in memory.relations(ALICE, as_of=at)}
    homes = {(who, "lives_in", f"town {day}") for who, day in wanted.items()}
    texts = {one.text for one in memory.list(ALICE, limit=1_000, as_of=at).records}
    said = {f"{who} lives in town {day}." for who, day in wanted.items()}
    return len(edges ^ homes) + len(texts ^ said)


# -- what it costs ---------------------------------------------------------------------------------

TYPES = ("likes", "knows", "visits", "teaches", "helps", "reads", "calls", "paints")


def cost(small: bool) -> Iterator[Table]:
    """Time a graph in which everybody has some ten relations, and one has five hundred."""
    count = 1_000 if small else 10_000
    chance = random.Random(14)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, embedder=scoring.Cached(HashEmbedder())) as memory,
    ):
        _load(memory, count, chance)
        graph = memory._runtime.engines.graph  # noqa: SLF001 -- the store's own share of a search
        people = [f"Mira{number}" for number in chance.sample(range(1, count), 300)]
        questions = [f"Who {chance.choice(TYPES)[:-1]}ed {one} lately?" for one in people]
        hub = "Whom does Hub know?"

        def expand(text: str) -> object:
            return graph.expand(ALICE, entity_mentions(text), now())

        def tell(number: int) -> object:
            text = f"Newcomer {number} arrived."
            said = [_edge(f"Newcomer {number}", people[3 * number + i], chance) for i in range(3)]
            return memory.add(Fact(text=text, relations=tuple(said)), ALICE)

        works: list[tuple[str, Callable[[int], object], int]] = [
            ("expand, one name of some ten relations", lambda n: expand(questions[n]), 300),
            ("expand, one name of 500", lambda _: expand(hub), 50),
            ("expand, no known name", lambda n: expand(f"Who is Xavier{n} Quimby?"), 100),
            ("relations, two hops", lambda n: memory.relations(ALICE, people[n], hops=2), 200),
            ("relations, two hops from the hub",
             lambda _: memory.relations(ALICE, "Hub", hops=2), 10),
            ("search", lambda n: memory.search(questions[n], ALICE), 200),
            ("search for the hub", lambda _: memory.search(hub, ALICE), 30),
            ("add, a fact with 3 relations", tell, 100),
        ]  # fmt: skip
        table = Table("what", "p50 ms", "p95 ms")
        for name, work, times in works:
            work(0)
            middle, high = scoring.percentiles(speed.timed(work, times))
            table.add_row(name, f"{middle:.2f}", f"{high:.2f}")
        size = graph.count(ALICE)
        table.caption = ", ".join(f"{number} {name}" for name, number in size.items())
    yield table
    yield calls()


def _edge(a: str, b: str, chance: random.Random) -> Relation:
    return Relation(subject=a, predicate=chance.choice(TYPES), object=b)


def _load(memory: Memory, count: int, chance: random.Random) -> None:
    """Tell, of everybody, five things about others; of the hub five hundred."""
    facts = []
    for number in range(1, count):
        near = [f"Mira{chance.randrange(1, count)}" for _ in range(5)]
        said = tuple(_edge(f"Mira{number}", one, chance) for one in near)
        facts.append(Fact(text=f"Mira{number} met {' and '.join(near)}.", relations=said))
    for start in range(0, 500, 5):
        near = [f"Mira{one}" for one in range(start + 1, start + 6)]
        said = tuple(Relation(subject="Hub", predicate="knows", object=one) for one in near)
        facts.append(Fact(text=f"Hub knows {' and '.join(near)}.", relations=said))
    for start in range(0, len(facts), 250):
        memory.add(facts[start : start + 250], ALICE)


def calls() -> Table:
    """Count how often each method asks the chat model."""
    table = Table("what", "calls of the chat model")
    chat = ScriptedChat(['{"facts": []}'] * 10)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, embedder=HashEmbedder(), chat=chat) as memory,
    ):
        fact = Fact(text="Mei moved.", relations=(_edge("Mei", "Lyon", random.Random(1)),))
        [known] = memory.add(fact, ALICE).changes
        turns = [Message(text="Mei moved to Lyon."), Message(text="Did she?", role="assistant")]
        works: Sequence[tuple[str, Callable[[], object]]] = (
            ("add, messages", lambda: memory.add(turns, ALICE)),
            ("add, a fact with relations", lambda: memory.add("Ann met Mei.", ALICE)),
            ("search", lambda: memory.search("Where does Mei live?", ALICE)),
            ("update", lambda: memory.update(known.id, "Mei stayed.", ALICE)),
            ("delete", lambda: memory.delete(known.id, ALICE)),
            ("forget", lambda: memory.forget(ALICE)),
        )
        for name, work in works:
            before = len(chat.calls)
            work()
            table.add_row(name, str(len(chat.calls) - before))
    return table


PARTS: dict[str, Callable[[bool], Iterator[Table]]] = {"hops": hops, "slots": slots, "cost": cost}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help="Of hops, slots, cost; all.")] = None,
    small: Annotated[bool, typer.Option("--small", help="A tenth of everything.")] = False,
) -> None:
    """Print the figures of each part."""
    for part in parts or PARTS:
        for table in PARTS[part](small):
            table.title = part
            console.print(table)


if __name__ == "__main__":
    typer.run(main)
