"""Sans-IO plans: generators that yield calls of a memory, run on a thread or on an event loop.

So code that decides between calls is written once. A plan yields a `Call`, or several at once as
a list, and is sent the result, or the list of results; what a call raises is raised in the plan.
"""

import asyncio
import operator
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Plan = Generator[Any, Any, T]


class Call(NamedTuple):
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
    try:
        step = next(plan)
        while True:
            try:
                answer = perform(step)
            except BaseException as error:  # the plan decides what it means
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def arun_plan(plan: Plan[T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """Run a plan on the running loop.

    Args:
        perform: awaits what the plan yields, such as `aon(memory)`.
    """
    resume: Callable[[Any], Any] = plan.send
    given: Any = None
    while True:
        try:
            step = resume(given)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            resume, given = plan.send, await perform(step)
        except BaseException as error:  # the plan decides what it means
            resume, given = plan.throw, error


def on(memory: object) -> Callable[[Any], Any]:
    """Return what performs calls on a memory; several at once are made one after the other."""
    return partial(_perform, memory)


def _perform(memory: object, step: Call | list[Call]) -> Any:
    if isinstance(step, list):
        return [_perform(memory, one) for one in step]
    name, args, options = step
    method = operator.attrgetter(name)(memory) if "." in name else getattr(memory, name)
    return method(*args, **options)


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
