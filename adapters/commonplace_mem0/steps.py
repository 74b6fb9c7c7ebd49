"""The one way in which both faces do their work: generators that say what they need next.

A step yields calls of the core and of models and is sent their results, or is thrown what they
raise; `Memory` carries them out, `AsyncMemory` awaits them. So every method is written once.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .exceptions import as_mem0

if TYPE_CHECKING:
    from commonplace import Memory as Core

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A method of the core with its arguments; its awaitable twin begins with `a`."""

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Think:
    """A call of a model: blocking, or a coroutine function."""

    call: Callable[..., Any]
    args: tuple[Any, ...]


Step = Generator[Call | Think, Any, T]


def core(name: str, *args: Any, **options: Any) -> Call:
    """Ask for a call of the core."""
    return Call(name, args, options)


def think(call: Callable[..., Any], *args: Any) -> Think:
    """Ask for a call of a model."""
    return Think(call, args)


def run(step: Step[T], open_core: "Callable[[], Core]") -> T:
    """Carry a step out on this thread."""
    with as_mem0():
        go_on: Callable[[], Call | Think] = partial(next, step)
        while True:
            try:
                asked = go_on()
            except StopIteration as done:
                return cast("T", done.value)
            try:
                answer = _call(asked, open_core)
            except Exception as error:  # noqa: BLE001 -- the step decides what it means
                go_on = partial(step.throw, error)
            else:
                go_on = partial(step.send, answer)


async def arun(step: Step[T], open_core: "Callable[[], Awaitable[Core]]") -> T:
    """Carry a step out on the running loop."""
    with as_mem0():
        go_on: Callable[[], Call | Think] = partial(next, step)
        while True:
            try:
                asked = go_on()
            except StopIteration as done:
                return cast("T", done.value)
            try:
                answer = await _acall(asked, open_core)
            except Exception as error:  # noqa: BLE001 -- the step decides what it means
                go_on = partial(step.throw, error)
            else:
                go_on = partial(step.send, answer)


def _call(asked: Call | Think, open_core: "Callable[[], Core]") -> Any:
    if isinstance(asked, Call):
        return getattr(open_core(), asked.name)(*asked.args, **asked.options)
    return asked.call(*asked.args)  # `build` refuses an asynchronous model here


async def _acall(asked: Call | Think, open_core: "Callable[[], Awaitable[Core]]") -> Any:
    if isinstance(asked, Think):
        if inspect.iscoroutinefunction(asked.call):
            return await asked.call(*asked.args)
        return await asyncio.to_thread(asked.call, *asked.args)
    memory = await open_core()
    awaited = getattr(memory, f"a{asked.name}", None)
    if awaited is not None:
        return await awaited(*asked.args, **asked.options)
    return await asyncio.to_thread(getattr(memory, asked.name), *asked.args, **asked.options)
