"""Events that tell what became of calls: those of an agent, and those of a memory itself."""

import functools
import inspect
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from .telemetry import OPERATIONS, bound_arguments, listed
from .types import Delete, EraseReceipt, Record, Revise, Scope, Upsert, WriteResult

P = ParamSpec("P")
T = TypeVar("T")
EventName = Literal[
    "recalled",
    "empty",
    "timed_out",
    "written",
    "late",
    "waiting",
    "lost",
    "failed",
    "retracted",
    "not_retracted",
]
_READS = "get", "list", "search"  # how the names of their operations begin
_CALLED = "_commonplace_called"
_log = logging.getLogger("commonplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvent:
    """What became of one recall, write or tool call of an agent, or of one call of a `Memory`.

    Attributes:
        name: `recalled` if it found something, `empty` if not, `timed_out` if the agent went on
            without it; `written` if what was said is stored, or accepted where nobody waits for
            more, `late` if it was not in time and goes on; `waiting` if it could not be accepted
            and waits in memory, then `written` or `lost`; `failed` with an error; `retracted` if
            what the user asked to forget is deleted, `not_retracted` if it is not clear which
            memory is meant, and nothing is. A call of a `Memory` is `recalled`, `empty`, `written`,
            `late` or `failed`.
        operation: `recall`, `write`, `forget` for what a turn asks to forget, or the name of what
            was called: a tool, or a method, without the `a` of its async version.
        scope: whose memory.
        count: memories found or deleted, or messages to write.
        seconds: that the agent waited, or the call took.
        error: None unless it failed or took too long.
    """

    name: EventName
    operation: str
    scope: Scope
    count: int = 0
    seconds: float = 0.0
    error: Exception | None = None


class OnEvent(Protocol):
    """Hook called with each event, in the thread or on the loop of the turn or the call.

    It should return at once. What it raises is logged and has no effect.
    """

    def __call__(self, event: MemoryEvent) -> None:
        """Take an event."""


def report_calls(memory: Any, on_event: OnEvent) -> None:
    """Call a hook after each call of a method of one memory that `OPERATIONS` names.

    A call about several scopes is an event of each, and one without a scope is none.
    """
    reporter = _Reporter(on_event)
    for operation in OPERATIONS:
        for name in (operation, f"a{operation}"):
            setattr(memory, name, reporter.wrap(getattr(memory, name), operation))


def unreported(call: Callable[P, T]) -> Callable[P, T]:
    """Return what a reported method calls, for a call that is a part of a reported one."""
    found: Callable[P, T] = getattr(call, _CALLED, call)
    return found


class _Reporter:
    """Makes events of calls; logs each kind of failure of its hook once."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._failures: set[type[Exception]] = set()

    def wrap(self, method: Callable[..., Any], operation: str) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def acall(*args: Any, **kwargs: Any) -> Any:
                with self._watch(method, operation, args, kwargs) as results:
                    results.append(await method(*args, **kwargs))
                return results[0]

            return acall

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._watch(method, operation, args, kwargs) as results:
                results.append(method(*args, **kwargs))
            return results[0]

        setattr(call, _CALLED, method)
        return call

    @contextmanager
    def _watch(
        self,
        method: Callable[..., Any],
        operation: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Iterator[list[Any]]:
        """Report a call, whose result is put into the list."""
        began = time.monotonic()
        results: list[Any] = []
        try:
            yield results
        except Exception as error:
            self._report(operation, began, bound_arguments(method, args, kwargs), error)
            raise
        self._report(operation, began, bound_arguments(method, args, kwargs), results[0])

    def _report(self, operation: str, began: float, given: Mapping[str, Any], result: Any) -> None:
        seconds = time.monotonic() - began
        error = result if isinstance(result, Exception) else None
        is_read = OPERATIONS[operation].startswith(_READS)
        for scope, written in _scopes(given).items():
            count = 0 if error else _found(result) if is_read else written
            if isinstance(result, EraseReceipt):
                count = result.removed.get("graph.records", 0)
            event = MemoryEvent(
                name=_name(given, result, count, is_read=is_read), operation=operation,
                scope=scope, count=count, seconds=seconds, error=error,
            )  # fmt: skip
            try:
                self._on_event(event)
            except Exception as failure:  # noqa: BLE001 -- it is the user's, and must not fail a call
                if type(failure) not in self._failures:
                    self._failures.add(type(failure))
                    _log.warning("memory on_event failed: %r", failure)


def _scopes(given: Mapping[str, Any]) -> Counter[Scope]:
    """Count what a call writes, by scope; 1 for a call that writes nothing."""
    number = len(listed(given["content"])) if "content" in given else 1
    found = Counter[Scope]()
    for one in listed(given.get("commands")):
        if isinstance(one, Upsert):
            found[one.scope] += len(one.facts)
        elif isinstance(one, Delete | Revise):
            found[one.scope if isinstance(one, Delete) else one.record.scope] += 1
    found.update({one: number for one in listed(given.get("scope")) if isinstance(one, Scope)})
    return found


def _found(result: object) -> int:
    return len(result) if isinstance(result, Sized) else int(isinstance(result, Record))


def _name(given: Mapping[str, Any], result: object, count: int, *, is_read: bool) -> EventName:
    if isinstance(result, Exception):
        return "failed"
    if is_read:
        return "recalled" if count else "empty"
    is_pending = any(one.pending for one in listed(result) if isinstance(one, WriteResult))
    return "late" if is_pending and given.get("wait", True) is not False else "written"
