"""Sans-IO plans: generators that yield calls of a memory, run on a thread or on an event loop.

So code that decides between calls is written once. A plan yields a `Call`, or several at once as
a list, and is sent the result, or the list of results; what a call raises is raised in the plan.
"""

import asyncio
import operator
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Plan = Generator[Any, Any, T]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a method of a memory, by its blocking name."""

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]


def call(name: str, *args: Any, **options: Any) -> Call:
    """Make the call of a method by its blocking name, such as `search`, or of `admin.NAME`."""
    return Call(name, args, options)


def run_plan(plan: Plan[T], perform: Callable[[Any], Any]) -> T:
    """Run a plan on this thread.

    Args:
        perform: does what the plan yields, such as `on(memory)`.
    """
    answer: Any = None
    failure: BaseException | None = None
    while True:
        is_done, step = _advance(plan, answer, failure)
        if is_done:
            result: T = step
            return result
        answer, failure = None, None
        try:
            answer = perform(step)
        except BaseException as error:  # the plan decides what it means
            failure = error


async def arun_plan(plan: Plan[T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """Run a plan on the running loop.

    Args:
        perform: awaits what the plan yields, such as `aon(memory)`.
    """
    answer: Any = None
    failure: BaseException | None = None
    while True:
        is_done, step = _advance(plan, answer, failure)
        if is_done:
            result: T = step
            return result
        answer, failure = None, None
        try:
            answer = await perform(step)
        except BaseException as error:  # the plan decides what it means
            failure = error


def on(memory: object) -> Callable[[Any], Any]:
    """Return what performs calls on a memory; several at once are made one after the other."""

    def make(step: Call) -> Any:
        is_nested = "." in step.name
        method = operator.attrgetter(step.name)(memory) if is_nested else getattr(memory, step.name)
        return method(*step.args, **step.options)

    return lambda step: [make(one) for one in step] if isinstance(step, list) else make(step)


def aon(memory: Any) -> Callable[[Any], Awaitable[Any]]:
    """Return what awaits calls on a memory; several at once are awaited together."""

    async def perform(step: Any) -> Any:
        if isinstance(step, list):
            return await asyncio.gather(*map(perform, step))
        if step.name.startswith("admin."):
            method = operator.attrgetter(step.name)(memory)
            return await memory.admin.run(method, *step.args, **step.options)
        return await getattr(memory, f"a{step.name}")(*step.args, **step.options)

    return perform


def _advance(plan: Plan[Any], answer: Any, failure: BaseException | None) -> tuple[bool, Any]:
    """Return whether a plan is done, and its result or else its next step."""
    try:
        return False, plan.send(answer) if failure is None else plan.throw(failure)
    except StopIteration as done:
        return True, done.value
