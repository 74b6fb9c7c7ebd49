"""What an agent asks of a memory and is answered, but for the asking itself: plain functions.

`handlers` and `blocking` ask, with an event loop and without one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InvalidRecordError
from ..model import Match, Page, Scope, WriteResult
from .messages import is_visible
from .policy import MAX_FACTS, MAX_KEYWORDS, MAX_LIMIT, Policy
from .prompt import bullets

MAX_QUERY = 2_000
MAX_PROFILE = 1_000
PROFILE: dict[str, Any] = {"kinds": ("profile",), "limit": 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the search tool answers: a text for the model, and the matches, best first."""

    text: str
    matches: tuple[Match, ...] = ()


def asked(scope: Scope, policy: Policy) -> Scope:
    """Widen a turn's scope to what is searched: all its sessions, and as the policy says agents."""
    if not policy.scope_search_by_agent and scope.user_id is not None:
        return Scope(user_id=scope.user_id)
    return scope.owner


def question(text: str) -> str:
    """Make a text one that can be searched for; empty if nothing in it can be read.

    A question is no record: what a store refuses is left out of it, not refused.
    """
    text = shorten(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return text if is_visible(text) else ""


def shorten(text: str, limit: int = MAX_QUERY) -> str:
    """Keep the beginning and the end of a text of more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[-(limit - 3 - head) :]}"


def with_profile(page: Page, matches: Sequence[Match]) -> list[Match]:
    """Put a user's profile in front of what was found, up to 1,000 characters of it."""
    left = MAX_PROFILE
    known = []
    for record in page.records:
        left -= len(record.text)
        if left >= 0:
            known.append(Match(record=record, score=1.0, score_details={"profile": 1.0}))
    held = {match.record.id for match in known}
    return known + [match for match in matches if match.record.id not in held]


def searches(
    keywords: Sequence[str], limit: int | None, policy: Policy
) -> tuple[list[str], Policy]:
    """Read the search tool's arguments: what to search for, and the policy with the limit.

    Raises:
        InvalidRecordError: more than 10 keywords, or a limit outside 1 to 20.
    """
    limit = min(policy.top_k, MAX_LIMIT) if limit is None else limit
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRecordError(field="limit", value=limit, reason=f"is not 1 to {MAX_LIMIT}")
    return _texts("keywords", keywords, MAX_KEYWORDS), replace(policy, top_k=limit)


def found(wanted: Sequence[str], lists: Sequence[Sequence[Match]]) -> Found:
    """Answer the search tool: a record comes once, in the order of keywords and scores."""
    if not wanted:
        return Found(text="(no keywords supplied: nothing to search)")
    matches: dict[str, Match] = {}
    for match in (match for one in lists for match in one):
        matches.setdefault(match.record.id, match)
    lines = bullets(tuple(matches.values()))
    text = "\n".join(lines) or "(no relevant memories found)"
    return Found(text=text, matches=tuple(matches.values()))


def additions(content: Sequence[str]) -> list[str]:
    """Read the add tool's facts.

    Raises:
        InvalidRecordError: there is no content, or more than 20 facts.
    """
    facts = _texts("content", content, MAX_FACTS)
    if not facts:
        raise InvalidRecordError(field="content", value=content, reason="is empty")
    return facts


def as_told(policy: Policy) -> dict[str, Any]:
    """Say how the add tool writes: facts as they are, on the assistant's word."""
    return {"infer": False, "kind": "fact", "origin": "assistant", "wait": policy.await_write}


def recorded(facts: Sequence[str], written: WriteResult, thinking: str) -> str:
    """Answer the add tool: what each fact did."""
    because = f" (rationale: {thinking})" if thinking else ""
    result = json.dumps({"results": _results(facts, written)}, ensure_ascii=False)
    return f"Successfully recorded to memory{because} → {result}"


def _results(facts: Sequence[str], written: WriteResult) -> list[dict[str, str | None]]:
    if written.pending:
        return [{"memory": fact, "event": "PENDING"} for fact in facts]
    return [{"id": one.id, "memory": one.text, "event": one.event} for one in written.changes]


def _texts(field: str, values: object, most: int) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidRecordError(field=field, value=values, reason="is not a list of strings")
    if len(values) > most:
        raise InvalidRecordError(
            field=field, value=len(values), reason=f"has more than {most} texts"
        )
    if not all(type(value) is str for value in values):
        raise InvalidRecordError(field=field, value=values, reason="is not a list of strings")
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))
