"""Cases called at random, as often as asked; what was handed out is counted."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

from commonplace import Memory, Settings
from commonplace.testing.fakes import HashEmbedder

from .agent_calls import AgentCalls
from .calls import EchoChat
from .memory_calls import KEPT, MemoryCalls
from .owners import Sightings, logged

OPENING = ("open", "from_env", "close")
SETTINGS = Settings(max_attempts=1, retry_after=0.05)
# How often a function is called; 10 when it is not here.
_WEIGHTS = {
    "search": 15, "get": 35, "get_many": 25, "get_excerpts": 25, "list": 10, "history": 35,
    "relations": 10, "entities": 5, "namespaces": 15, "diagram": 5, "update": 10, "delete": 10,
    "feedback": 10,
    "add": 2, "batch": 1.5, "forget": 0.2, "prune": 1, "dead_letters": 3, "retry": 0.2, "flush": 1,
    "follow": 0.2, "list_scopes": 0.2, "list_users": 3, "list_namespaces": 3, "scope_of": 20,
    "run": 5, "checkpoints": 2, "location": 1, "embedder": 1, "open": 0.02, "from_env": 0.02,
    "close": 0.02, "before_close": 0.1,
    "agent_recall": 1, "agent_write": 0.2, "agent_write_later": 0.2, "agent_call_tool": 0.5,
    "agent_counters": 1, "agent_report": 1, "agent_wait_for_writes": 0.5,
    "agent_raise_misconfiguration": 1,
}  # fmt: skip


class AllCalls(MemoryCalls, AgentCalls):
    """The cases of a memory, and of what agents do with it."""


def functions(face: type) -> set[str]:
    """List the public functions and properties of a class; an async one as what it is a twin of."""
    return {
        name[1:] if name[:1] == "a" and hasattr(face, name[1:]) else name
        for name, _ in inspect.getmembers(face)
        if not name.startswith("_")
    }


@cache
def cases() -> dict[str, Callable[[AllCalls], None]]:
    """List the cases by the names of their functions."""
    found = inspect.getmembers(AllCalls, inspect.isfunction)
    return {name[3:]: case for name, case in found if name.startswith("do_")}


def play(
    folder: Path, operations: int, seed: int = 1, *, awaited: float = 0.05, is_alone: bool = True
) -> Sightings:
    """Call each function, and then some at random until there are so many operations.

    Args:
        folder: an empty one.
        operations: calls, and commands of a batch.
        seed: of all choices.
        awaited: share of the calls that are of the async functions.
        is_alone: another folder is another memory, as it is not on servers.
    """
    random, sightings = Random(seed), Sightings()
    with (
        logged() as lines,
        Memory.open(
            str(folder / "memory"),
            embedder=HashEmbedder(),
            chat=EchoChat(sightings),
            settings=SETTINGS,
        ) as memory,
    ):
        calls = AllCalls(memory, random, sightings, folder)
        try:
            for _ in range(4):
                calls.do_batch()
            for name in _names(operations, random, calls, awaited, is_alone=is_alone):
                cases()[name](calls)
                for line in lines.take():
                    sightings.report(f"logged by {name}: {line}")
            calls.check_whole()
        finally:
            calls.close()
    return sightings


def _names(
    operations: int, random: Random, calls: AllCalls, awaited: float, *, is_alone: bool
) -> Iterator[str]:
    """Choose what is called next: each function and its twin, then as the weights say."""
    names = [name for name in sorted(cases()) if is_alone or name not in OPENING]
    for calls.is_awaited in (False, True):
        yield from names
    weights = [_WEIGHTS.get(name, 10) for name in names]
    while calls.done < operations:
        calls.is_awaited = random.random() < awaited
        is_full = len(calls.live) > KEPT
        yield "forget" if is_full else random.choices(names, weights)[0]
