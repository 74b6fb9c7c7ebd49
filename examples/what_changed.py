"""What is true now, what was true then, and what relations lead to.

Run it with `python examples/what_changed.py`.

Prints:
    Recommend a coffee -> 用户现在只喝低因咖啡, 用户每周五购买拿铁
    Last year -> 用户喜欢喝蓝山咖啡
    Where does Alice's sister live? -> Mei is Alice's sister, Mei moved to Lyon
    user prefers_coffee 蓝山 (since 2025-03-01, until 2026-02-01)
    user prefers_coffee 低因咖啡 (since 2026-02-01)
    Mei sister_of Alice
    Mei lives_in Lyon (since 2026-03-05)
"""

import tempfile
from datetime import UTC, datetime

from commonplace import Fact, Memory, Relation, Scope

alice = Scope(user_id="alice")


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def coffee(text: str, name: str, since: datetime) -> Fact:
    said = Relation(subject="user", predicate="prefers_coffee", object=name)
    return Fact(text=text, kind="preference", at=since, relations=(said,))


def text_of(matches: object) -> str:
    return ", ".join(match.record.text for match in matches)  # type: ignore[attr-defined]


with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
    memory.add("用户每周五购买拿铁", alice)  # The user buys a latte every Friday,
    memory.add(coffee("用户喜欢喝蓝山咖啡", "蓝山", day(2025, 3, 1)), alice)  # liked Blue Mountain
    memory.add(
        coffee("用户现在只喝低因咖啡", "低因咖啡", day(2026, 2, 1)), alice
    )  # now decaf only.

    print("Recommend a coffee ->", text_of(memory.search("推荐咖啡", alice)))
    print("Last year ->", text_of(memory.search("推荐咖啡", alice, as_of=day(2025, 6, 1))))

    sister = Relation(subject="Mei", predicate="sister_of", object="Alice")
    home = Relation(subject="Mei", predicate="lives_in", object="Lyon", valid_from=day(2026, 3, 5))
    memory.add(Fact(text="Mei is Alice's sister", relations=(sister,)), alice)
    memory.add(Fact(text="Mei moved to Lyon", relations=(home,)), alice)

    question = "Where does Alice's sister live?"
    print(question, "->", text_of(memory.search(question, alice, top_k=2)))
    print(memory.diagram(alice, include_superseded=True))
