"""Calls of a memory that a plan yields, so that it serves a thread and an event loop alike."""

from collections.abc import Generator
from typing import Any, TypeVar

from commonplace import Memory

T = TypeVar("T")


class Ask:
    """One call of a method of `Memory`, by its synchronous name."""

    __slots__ = ("args", "name", "options")

    def __init__(self, name: str, *args: Any, **options: Any) -> None:
        self.name = name
        self.args = args
        self.options = options


Plan = Generator[Ask, Any, T]


def drive(memory: Memory, plan: Plan[T]) -> T:
    """Carry out a plan here."""
    answer: Any = None
    while True:
        try:
            ask = plan.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        answer = getattr(memory, ask.name)(*ask.args, **ask.options)


async def adrive(memory: Memory, plan: Plan[T]) -> T:
    """Carry out a plan on the running loop."""
    answer: Any = None
    while True:
        try:
            ask = plan.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        answer = await getattr(memory, f"a{ask.name}")(*ask.args, **ask.options)
