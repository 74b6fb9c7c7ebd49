"""Does a search put the newer of two statements first, and what lies beside it where it belongs?

    python benchmarks/retellings.py

Made-up pairs in English and Chinese: a user states something, later something else of the same
kind, among other statements and the questions that were asked before. `new first` is the share of
questions whose first match is the newer statement; `kept` that of questions on what was said once,
before and after other statements, whose first match is that.
"""

import itertools
import tempfile
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import scoring
from rich.console import Console
from rich.table import Table

from commonplace import Memory, Message, Scope


class Matter(NamedTuple):
    """What a user may state with one of two values, and how he asks for it."""

    former: str
    latter: str
    values: tuple[str, str]
    questions: tuple[str, ...]


MATTERS = {
    "en": (
        Matter(
            "I live in {}.",
            "I live in {} now.",
            ("Nice", "Oslo"),
            ("Where do I live?", "Which town do I live in?"),
        ),
        Matter(
            "I work for {}.",
            "I work for {} these days.",
            ("Acme", "Initech"),
            ("Who do I work for?", "Which company do I work for?"),
        ),
        Matter(
            "My favourite colour is {}.",
            "My favourite colour is {}.",
            ("green", "violet"),
            ("What is my favourite colour?", "Which colour is my favourite?"),
        ),
        Matter(
            "My phone is a {}.",
            "My phone is a {} since yesterday.",
            ("Pixel", "Fairphone"),
            ("What phone do I have?", "Which model is my phone?"),
        ),
        Matter(
            "Our cat is called {}.",
            "We have another cat, it is called {}.",
            ("Minka", "Tiger"),
            ("What is our cat called?", "How is the cat called?"),
        ),
        Matter(
            "I go to the gym on {}.",
            "I go to the gym on {} instead.",
            ("Mondays", "Fridays"),
            ("On which day do I go to the gym?", "When do I go to the gym?"),
        ),
        Matter(
            "My doctor is {}.",
            "My new doctor is {}.",
            ("Dr Brandt", "Dr Okafor"),
            ("Who is my doctor?", "What is the name of my doctor?"),
        ),
        Matter(
            "I study {} at the university.",
            "I switched, I study {} at the university.",
            ("physics", "law"),
            ("What do I study?", "What do I study at the university?"),
        ),
        Matter(
            "The meeting is in room {}.",
            "The meeting moved to room {}.",
            ("four", "nine"),
            ("In which room is the meeting?", "Which room is the meeting in?"),
        ),
        Matter(
            "My shoe size is {}.",
            "Correction: my shoe size is {}.",
            ("41", "43"),
            ("What is my shoe size?", "Which size of shoe do I need?"),
        ),
    ),
    "zh": (
        Matter(
            "我住在{}。", "我现在住在{}。", ("杭州", "成都"), ("我住在哪里？", "我住在哪座城市？")
        ),
        Matter(
            "我在{}上班。",
            "我换工作了，在{}上班。",
            ("银行", "医院"),
            ("我在哪里上班？", "我在什么地方上班？"),
        ),
        Matter(
            "我最喜欢的颜色是{}。",
            "我最喜欢的颜色是{}。",
            ("绿色", "紫色"),
            ("我最喜欢的颜色是什么？", "我喜欢什么颜色？"),
        ),
        Matter(
            "我的手机是{}。",
            "我的手机换成{}了。",
            ("小米", "华为"),
            ("我的手机是什么牌子？", "我用什么手机？"),
        ),
        Matter(
            "我家的猫叫{}。",
            "我家又养了一只猫，叫{}。",
            ("咪咪", "阿福"),
            ("我家的猫叫什么？", "猫的名字是什么？"),
        ),
        Matter(
            "我每{}去健身房。",
            "我改成每{}去健身房。",
            ("周一", "周五"),
            ("我每周哪天去健身房？", "我什么时候去健身房？"),
        ),
        Matter(
            "我的医生是{}。",
            "我的新医生是{}。",
            ("王大夫", "李大夫"),
            ("我的医生是谁？", "我的医生叫什么？"),
        ),
        Matter(
            "我在大学学{}。",
            "我转专业了，在大学学{}。",
            ("物理", "法律"),
            ("我在大学学什么？", "我学的是什么专业？"),
        ),
        Matter(
            "会议在{}会议室。",
            "会议改到{}会议室。",
            ("四号", "九号"),
            ("会议在哪个会议室？", "会议室是几号？"),
        ),
        Matter(
            "我的鞋码是{}。",
            "更正一下，我的鞋码是{}。",
            ("四十一", "四十三"),
            ("我的鞋码是多少？", "我穿多大的鞋码？"),
        ),
    ),
}
START = datetime(2026, 1, 1, 9, tzinfo=UTC)


def measure(memory: Memory, language: str) -> tuple[float, float]:
    """Return `new first` and `kept`."""
    first: list[bool] = []
    kept: list[bool] = []
    matters = MATTERS[language]
    for number, changed in enumerate(matters):
        user = f"{language} {number}"
        texts = [one.former.format(one.values[0]) for one in matters]
        texts += [question for one in matters for question in one.questions[1:]]
        texts.append(changed.latter.format(changed.values[1]))
        for day, text in enumerate(texts):
            scope = Scope(user_id=user, session_id=str(day))
            memory.add(Message(text=text, at=START + timedelta(days=day)), scope, infer=False)
        for one, question in itertools.chain.from_iterable(
            ((one, question) for question in one.questions) for one in matters
        ):
            found = memory.search(question, Scope(user_id=user), top_k=1)[0].record.text
            value = one.values[1] if one is changed else one.values[0]
            (first if one is changed else kept).append(value in found)
    return sum(first) / len(first), sum(kept) / len(kept)


def main() -> None:
    """Measure both languages and print the shares."""
    table = Table(title="statements that were told anew")
    for name in ("language", "new first", "kept", "n"):
        table.add_column(name)
    embedder = scoring.cached(scoring.embedder("default"))
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=embedder) as memory:
        for language, matters in MATTERS.items():
            first, kept = measure(memory, language)
            questions = sum(len(one.questions) for one in matters)
            table.add_row(language, f"{first:.3f}", f"{kept:.3f}", str(questions))
    Console().print(table)


if __name__ == "__main__":
    main()
