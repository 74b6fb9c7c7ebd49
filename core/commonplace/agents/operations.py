"""Agent operations: recall for a turn, and the tools that an agent calls itself.

Each is a sans-IO plan, so it is written once for callers with and without an event loop. The
scope is set by the adapter, never by a model.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidRecordError
from ..model import Match, Page, Scope, WriteResult
from .messages import is_visible
from .policy import MAX_FACTS, MAX_KEYWORDS, MAX_LIMIT, WRITE_PATIENCE, Policy
from .prompt import bullets
from .sansio import Call, Plan, call

MAX_QUERY = 2_000
MAX_PROFILE = 1_000
_PROFILE_RECORDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The answer of the search tool: a text for the model, and the matches, best first."""

    text: str
    matches: tuple[Match, ...] = ()


def recall(scope: Scope, query: str, policy: Policy) -> Plan[list[Match]]:
    """Read the user's profile, newest first, and what the query recalls, best first.

    The profile, records of that kind, comes with every turn, up to 1,000 characters. All sessions
    of the scope are searched, and all agents when the policy says so. Of a long query the beginning
    and the end are searched for: a question stands before or after what it is about.
    """
    where = search_scope(scope, policy)
    page: Page = yield call("list", where, kinds=("profile",), limit=_PROFILE_RECORDS)
    text = to_query(query)
    matches: Sequence[Match] = (yield _search(where, text, policy, policy.top_k)) if text else ()
    return _with_profile(page, matches)


def search_memory(
    scope: Scope, policy: Policy, keywords: Sequence[str], limit: int | None = None
) -> Plan[SearchAnswer]:
    """Search for each keyword; a record comes once, in the order of keywords and scores.

    Raises:
        InvalidRecordError: more than 10 keywords, or a limit outside 1..20.
    """
    most = min(policy.top_k, MAX_LIMIT) if limit is None else limit
    if type(most) is not int or not 1 <= most <= MAX_LIMIT:
        raise InvalidRecordError(field="limit", value=most, reason=f"must be in 1..{MAX_LIMIT}")
    wanted = _texts("keywords", keywords, MAX_KEYWORDS)
    if not wanted:
        return SearchAnswer(text="(no keywords supplied: nothing to search)")
    where = search_scope(scope, policy)
    texts = [text for text in map(to_query, wanted) if text]
    found: list[Sequence[Match]] = yield [_search(where, text, policy, most) for text in texts]
    matches: dict[str, Match] = {}
    for match in (match for one in found for match in one):
        matches.setdefault(match.record.id, match)
    text = "\n".join(bullets(tuple(matches.values()))) or "(no relevant memories found)"
    return SearchAnswer(text=text, matches=tuple(matches.values()))


def add_memory(scope: Scope, policy: Policy, thinking: str, content: Sequence[str]) -> Plan[str]:
    """Remember facts of the user, in no session; return what each did, for the model.

    A known fact answers `NONE` with the id it has; one that is not stored in 10 seconds, or not
    waited for, is accepted and answers `PENDING`.

    Raises:
        InvalidRecordError: there is no content, or more than 20 facts.
    """
    facts = _texts("content", content, MAX_FACTS)
    if not facts:
        raise InvalidRecordError(field="content", value=content, reason="must not be empty")
    wait = WRITE_PATIENCE if policy.await_write else False
    written: WriteResult = yield call(
        "add", facts, scope.owner, infer=False, origin="assistant", wait=wait
    )
    because = f" (rationale: {thinking})" if thinking else ""
    result = json.dumps({"results": _results(facts, written)}, ensure_ascii=False)
    return f"Successfully recorded to memory{because} → {result}"


def search_scope(scope: Scope, policy: Policy) -> Scope:
    """Widen a turn's scope to what is searched: all sessions, and as the policy says all agents."""
    if not policy.scope_search_by_agent and scope.user_id is not None:
        return Scope(user_id=scope.user_id)
    return scope.owner


def to_query(text: str) -> str:
    """Make a text searchable; empty if nothing in it is visible.

    A query is not stored: what a store refuses is left out of it, not refused.
    """
    text = shorten(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return text if is_visible(text) else ""


def shorten(text: str, limit: int = MAX_QUERY) -> str:
    """Keep the beginning and the end of a text of more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 3) // 2
    return f"{text[:head]} … {text[-(limit - 3 - head) :]}"


def _search(where: Scope, text: str, policy: Policy, top_k: int) -> Call:
    return call("search", text, where, top_k=top_k, threshold=policy.threshold)


def _with_profile(page: Page, matches: Sequence[Match]) -> list[Match]:
    """Put a user's profile in front of what was found, up to 1,000 characters of it."""
    left = MAX_PROFILE
    known = []
    for record in page.records:
        left -= len(record.text)
        if left >= 0:
            known.append(Match(record=record, score=1.0, score_details={"profile": 1.0}))
    held = {match.record.id for match in known}
    return known + [match for match in matches if match.record.id not in held]


def _results(facts: Sequence[str], written: WriteResult) -> list[dict[str, str | None]]:
    if written.pending:
        return [{"memory": fact, "event": "PENDING"} for fact in facts]
    return [{"id": one.id, "memory": one.text, "event": one.event} for one in written.changes]


def _texts(field: str, values: Any, most: int) -> list[str]:
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if is_list and len(values) > most:
        raise InvalidRecordError(
            field=field, value=len(values), reason=f"must hold at most {most} texts"
        )
    if not is_list or not all(type(value) is str for value in values):
        raise InvalidRecordError(field=field, value=values, reason="must be a list of strings")
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))
