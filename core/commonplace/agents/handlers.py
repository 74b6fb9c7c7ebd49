"""What an agent does with memory: recall for a turn, and the two tools it may call itself.

Everything raises; an adapter catches, tells its log, and lets the agent go on without memories.
Who asks is an argument of ours, never one that a model fills in. For callers without an event loop
`blocking` does the same.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ..errors import MemoryTimeoutError
from ..memory import Memory
from ..model import Match, Scope
from .operations import (
    PROFILE,
    Found,
    additions,
    as_told,
    asked,
    found,
    question,
    recorded,
    searches,
    with_profile,
)
from .policy import WRITE_PATIENCE, Policy

T = TypeVar("T")


async def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Read the user's profile, newest first; find what the turn calls to mind, best first.

    The profile, records of that kind, comes with every turn, up to 1,000 characters. All sessions
    of the scope are searched, and all agents when the policy says so. Of a long text the beginning
    and the end are asked: a question stands before or after what it is about.

    Raises:
        MemoryTimeoutError: it took longer than the policy allows.
    """
    return await within(policy.recall_timeout, "recall", _recall(memory, scope, query, policy))


async def _recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> list[Match]:
    page = await memory.alist(asked(scope, policy), **PROFILE)
    return with_profile(page, await _search(memory, scope, query, policy))


async def _search(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    text = question(query)
    if not text:
        return []
    where = asked(scope, policy)
    return await memory.asearch(text, where, top_k=policy.top_k, threshold=policy.threshold)


async def search_memory(
    memory: Memory,
    scope: Scope,
    policy: Policy,
    keywords: Sequence[str],
    limit: int | None = None,
) -> Found:
    """Search each keyword at once; a record comes once, in the order of keywords and scores.

    Raises:
        InvalidRecordError: more than 10 keywords, or a limit outside 1 to 20.
        MemoryTimeoutError: it took longer than the policy allows.
    """
    wanted, policy = searches(keywords, limit, policy)
    works = (_search(memory, scope, word, policy) for word in wanted)
    timeout = policy.recall_timeout
    lists = await asyncio.gather(*(within(timeout, "search_memory", one) for one in works))
    return found(wanted, lists)


async def add_memory(
    memory: Memory, scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> str:
    """Remember facts of the user, in no session; answer what each did, as the model reads it.

    A known fact answers `NONE` with the id it has.

    Raises:
        InvalidRecordError: there is no content, or more than 20 facts.
        MemoryTimeoutError: the write takes longer than 10 seconds; once accepted it goes on.
    """
    facts = additions(content)
    adding = memory.aadd(facts, scope.owner, **as_told(policy))
    return recorded(facts, await within(WRITE_PATIENCE, "add_memory", adding), thinking)


async def within(seconds: float, call: str, work: Coroutine[Any, Any, T]) -> T:
    """Await work, for so many seconds at most even if it takes no notice of a cancellation.

    Raises:
        MemoryTimeoutError: it is not done in time, or was cancelled by somebody else than the caller.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(_hear)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        is_done = task.done()
        task.cancel()
    if is_done and not task.cancelled():
        return task.result()
    raise MemoryTimeoutError(call=call, seconds=seconds)


def _hear(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # nobody may be left to ask for it
