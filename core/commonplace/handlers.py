"""What an agent does with memory: recall for a turn, and the two tools it may call itself.

Everything raises; an adapter catches, tells its log, and lets the agent go on without memories.
Who asks is an argument of ours, never one that a model fills in.
"""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .answers import Written
from .errors import InvalidRecord, Timeout
from .memory import Memory
from .model import Match, Scope
from .note import bullets
from .policy import MAX_FACTS, MAX_KEYWORDS, MAX_LIMIT, WRITE_PATIENCE, Policy

T = TypeVar("T")
MAX_QUERY = 2_000
MAX_PROFILE = 1_000
MAX_PROFILE_RECORDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the search tool answers: a text for the model, and the matches, best first."""

    text: str
    matches: tuple[Match, ...] = ()


async def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Read the user's profile, newest first; find what the turn calls to mind, best first.

    The profile, records of that kind, comes with every turn, up to 1,000 characters. All sessions
    of the scope are searched, and all agents when the policy says so. Of a long text the beginning
    and the end are asked: a question stands before or after what it is about.

    Raises:
        Timeout: it took longer than the policy allows.
    """
    return await within(policy.recall_timeout, "recall", _recall(memory, scope, query, policy))


async def _recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> list[Match]:
    known = await _profile(memory, _asked(scope, policy))
    held = {match.record.id for match in known}
    found = await _search(memory, scope, query, policy)
    return known + [match for match in found if match.record.id not in held]


async def _profile(memory: Memory, scope: Scope) -> list[Match]:
    page = await memory.alist(scope, kinds=("profile",), limit=MAX_PROFILE_RECORDS)
    left = MAX_PROFILE
    known = []
    for record in page.records:
        left -= len(record.text)
        if left >= 0:
            known.append(Match(record=record, score=1.0, parts={"profile": 1.0}))
    return known


async def _search(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    # A question is no record: what a store refuses is left out of it, not refused.
    text = shorten(query.replace("\x00", " ")).encode("utf-8", "replace").decode()
    if not any(char.isprintable() and not char.isspace() for char in text):
        return []
    where = _asked(scope, policy)
    return await memory.asearch(text, where, top_k=policy.top_k, threshold=policy.threshold)


def _asked(scope: Scope, policy: Policy) -> Scope:
    if not policy.scope_search_by_agent and scope.user_id is not None:
        return Scope(user_id=scope.user_id)
    return scope.owner


async def search_memory(
    memory: Memory,
    scope: Scope,
    policy: Policy,
    keywords: Sequence[str],
    limit: int | None = None,
) -> Found:
    """Search each keyword at once; a record comes once, in the order of keywords and scores.

    Raises:
        InvalidRecord: more than 10 keywords, or a limit outside 1 to 20.
    """
    limit = min(policy.top_k, MAX_LIMIT) if limit is None else limit
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRecord(field="limit", value=limit, reason=f"is not 1 to {MAX_LIMIT}")
    wanted = _texts("keywords", keywords, MAX_KEYWORDS)
    if not wanted:
        return Found(text="(no keywords supplied: nothing to search)")
    asked = replace(policy, top_k=limit)
    searches = (_search(memory, scope, word, asked) for word in wanted)
    lists = await asyncio.gather(
        *(within(policy.recall_timeout, "search_memory", one) for one in searches)
    )
    matches: dict[str, Match] = {}
    for match in (match for found in lists for match in found):
        matches.setdefault(match.record.id, match)
    lines = bullets(tuple(matches.values()))
    text = "\n".join(lines) or "(no relevant memories found)"
    return Found(text=text, matches=tuple(matches.values()))


async def add_memory(
    memory: Memory, scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> str:
    """Remember facts of the user, in no session; answer what each did, as the model reads it.

    A known fact answers `NONE` with the id it has.

    Raises:
        InvalidRecord: there is no content, or more than 20 facts.
        Timeout: the write takes longer than 10 seconds; once accepted it goes on.
    """
    facts = _texts("content", content, MAX_FACTS)
    if not facts:
        raise InvalidRecord(field="content", value=content, reason="is empty")
    adding = memory.aadd(
        facts, scope.owner, infer=False, kind="fact", wait=policy.await_write, origin="assistant"
    )
    written = await within(WRITE_PATIENCE, "add_memory", adding)
    because = f" (rationale: {thinking})" if thinking else ""
    result = json.dumps({"results": _results(facts, written)}, ensure_ascii=False)
    return f"Successfully recorded to memory{because} → {result}"


async def within(seconds: float, call: str, work: Coroutine[Any, Any, T]) -> T:
    """Await work, for so many seconds at most even if it takes no notice of a cancellation.

    Raises:
        Timeout: it is not done in time, or was cancelled by somebody else than the caller.
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
    raise Timeout(call=call, seconds=seconds)


def shorten(text: str, limit: int = MAX_QUERY) -> str:
    """Keep the beginning and the end of a text of more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[-(limit - 3 - head) :]}"


def _results(facts: Sequence[str], written: Written) -> list[dict[str, str | None]]:
    if written.pending:
        return [{"memory": fact, "event": "PENDING"} for fact in facts]
    return [{"id": one.id, "memory": one.text, "event": one.event} for one in written.changes]


def _hear(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # nobody may be left to ask for it


def _texts(field: str, values: object, most: int) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidRecord(field=field, value=values, reason="is not a list of strings")
    if len(values) > most:
        raise InvalidRecord(field=field, value=len(values), reason=f"has more than {most} texts")
    if not all(type(value) is str for value in values):
        raise InvalidRecord(field=field, value=values, reason="is not a list of strings")
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))
