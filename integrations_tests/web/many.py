"""Many people for the pages: of each ten facts with a relation, and 90 turns in three sessions."""

import random
from datetime import UTC, datetime, timedelta

from commonplace import Fact, Memory, Message, Relation, Scope

BEGIN = datetime(2026, 9, 1, 9, tzinfo=UTC)
_HOW = ("owns", "likes", "made", "sold", "wants")
_WHO = ("Anna", "Bela", "Chen", "Dora", "Emil", "Hana", "Kofi", "Lena", "Olga", "Tariq")
_WHERE = ("Lyon", "Oslo", "Kyoto", "Porto", "Ghent", "Turin", "Utrecht", "成都", "青岛", "杭州")
_WHAT = ("bicycle", "piano", "greenhouse", "thesis", "kayak", "violin", "novel", "camera")
_ENGLISH = (
    "I spent the weekend repairing the {what} with {who}.", "We booked a train to {where}.",
    "My sister {who} moved to {where} last spring.", "Where did I leave the {what}?",
    "{who} asked whether I still need the {what} number {number}.", "That sounds good.",
    "The deadline for the {what} is in {number} days.", "I would start with the {what}.",
)  # fmt: skip
_CHINESE = (
    "我下周要去{where}看{who}。", "我最近在修{what}，花了{number}天。", "{who}搬到{where}了。",
    "上次的{what}放在哪里了？", "好的，{where}那边天气不错。", "听起来不错。",
)  # fmt: skip


def fill_many(memory: Memory, users: int) -> None:
    """Tell a memory of users, every tenth of whom speaks Chinese; a number always tells the same.

    Args:
        users: of each there are a hundred records.
    """
    drawn = random.Random(7)
    for number in range(users):
        user = f"user-{number:03}"
        sentences = _CHINESE if number % 10 == 0 else _ENGLISH
        things = [f"{drawn.choice(_WHAT)} {number * 10 + one}" for one in range(10)]
        facts = [
            Fact(
                text=f"{user} {how} the {thing}.",
                relations=(Relation(subject=user, predicate=how, object=thing),),
            )
            for how, thing in zip(_HOW * 2, things, strict=True)
        ]
        memory.add(facts, Scope(user_id=user), infer=False)
        for day in range(3):
            at = BEGIN + timedelta(days=day)
            turns = [
                Message(
                    text=drawn.choice(sentences).format(
                        who=drawn.choice(_WHO), where=drawn.choice(_WHERE),
                        what=drawn.choice(_WHAT), number=drawn.randrange(2, 900),
                    ),
                    role="assistant" if minute % 2 else "user", at=at + timedelta(minutes=minute),
                )
                for minute in range(30)
            ]  # fmt: skip
            memory.add(turns, session_of(user, day), infer=False)


def session_of(user: str, day: int) -> Scope:
    """Return the scope of a user's session of a day."""
    return Scope(user_id=user, agent_id="helper", session_id=f"day {day}")
