"""What an agent does with memory: recall for a turn, and the two tools it may call itself.

Everything raises; an adapter catches, tells its log, and lets the agent go on without memories.
Who asks is an argument of ours, never one that a model fills in.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .errors import InvalidRecord, Timeout
from .memory import Memory
from .model import Match, Scope, Written
from .note import bullets
from .policy import Policy

MAX_QUERY = 2_000
MAX_KEYWORDS = 10
MAX_KEYWORD = 500
MAX_LIMIT = 20
MAX_FACTS = 20
MAX_FACT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as every framework describes one; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]
    is_read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the search tool answers: a text for the model, and the matches, best first."""

    text: str
    matches: tuple[Match, ...] = ()


def tools(policy: Policy) -> tuple[Tool, Tool]:
    """Describe `search_memory` and `add_memory`; the default limit is the policy's `top_k`."""
    keywords = {
        "type": "array",
        "items": {"type": "string", "maxLength": MAX_KEYWORD},
        "minItems": 1,
        "maxItems": MAX_KEYWORDS,
        "description": "Short phrases to look for: a name, a place, a date, a topic. Each is "
        "searched on its own.",
    }
    limit = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": min(policy.top_k, MAX_LIMIT),
        "description": "How many memories to return for each phrase at most.",
    }
    thinking = {
        "type": "string",
        "maxLength": MAX_FACT,
        "description": "Why this is worth remembering. It is not stored.",
    }
    content = {
        "type": "array",
        "items": {"type": "string", "maxLength": MAX_FACT},
        "maxItems": MAX_FACTS,
        "description": "What to remember: each one sentence that is clear without this "
        "conversation.",
    }
    return (
        Tool(
            name="search_memory",
            description="Search what is remembered from earlier conversations with this user.",
            schema=_schema(["keywords"], keywords=keywords, limit=limit),
            is_read_only=True,
        ),
        Tool(
            name="add_memory",
            description="Remember lasting facts for later conversations. Leave out what "
            "search_memory returned: it is remembered already.",
            schema=_schema(["thinking", "content"], thinking=thinking, content=content),
            is_read_only=False,
        ),
    )


async def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Find what the turn's text calls to mind, best first; empty for a text without words.

    All sessions of the scope are searched, and all agents when the policy says so. Of a long
    text the beginning and the end are asked: a question stands before or after what it is about.

    Raises:
        Timeout: it took longer than the policy allows.
    """
    # A question is no record: what a store refuses is left out of it, not refused.
    text = shorten(query.replace("\x00", " ")).encode("utf-8", "replace").decode()
    if not any(char.isprintable() and not char.isspace() for char in text):
        return []
    agent_id = scope.agent_id
    if not policy.scope_search_by_agent and scope.user_id is not None:
        agent_id = None
    where = Scope(user_id=scope.user_id, agent_id=agent_id) if scope.user_id or agent_id else scope
    try:
        async with asyncio.timeout(policy.recall_timeout):
            return await memory.asearch(text, where, top_k=policy.top_k, threshold=policy.threshold)
    except TimeoutError as error:
        if isinstance(error, Timeout):
            raise
        raise Timeout(call="recall", seconds=policy.recall_timeout) from error


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
    lists = await asyncio.gather(*(recall(memory, scope, word, asked) for word in wanted))
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
    """
    facts = _texts("content", content, MAX_FACTS)
    if not facts:
        raise InvalidRecord(field="content", value=content, reason="is empty")
    owner = scope
    if scope.user_id or scope.agent_id:
        owner = Scope(user_id=scope.user_id, agent_id=scope.agent_id)
    written = await memory.aadd(
        facts, owner, infer=False, kind="fact", wait=policy.await_write, origin="assistant"
    )
    because = f" (rationale: {thinking})" if thinking else ""
    result = json.dumps({"results": _results(facts, written)}, ensure_ascii=False)
    return f"Successfully recorded to memory{because} → {result}"


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


def _texts(field: str, values: object, most: int) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidRecord(field=field, value=values, reason="is not a list of strings")
    if len(values) > most:
        raise InvalidRecord(field=field, value=len(values), reason=f"has more than {most} texts")
    if not all(type(value) is str for value in values):
        raise InvalidRecord(field=field, value=values, reason="is not a list of strings")
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))


def _schema(required: list[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
