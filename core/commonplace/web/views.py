"""What each page shows: data that its template writes, and that its `.json` gives."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from starlette.exceptions import HTTPException

from ..admin import count_by_hour, count_rows, describe_engines, examine, export, file_sizes
from ..agents import Policy
from ..agents.about import about as about_plan
from ..agents.explanation import Explanation, explain
from ..agents.note_log import LoggedNote, explain_logged, logged_notes
from ..agents.recall import search_scope
from ..errors import InvalidRecordError
from ..memory import Memory
from ..sans_io import aon, arun_plan, on, run_plan
from ..types import KINDS, Kind, Match, Record, Relation, Scope, now, passages
from .drawing import draw_graph
from .security import Login

PAGE = 50
RULES = (
    "superseded", "retracted", "expired", "held", "repeat", "room", "threshold", "floor",
    "asks_only", "small_talk",
)  # fmt: skip
"""The rules that leave a match out, in the order of the page."""
MAX_ROWS = 200
TURN_LENGTH = 1_500  # characters of a turn in a conversation
_TURNS = 100
_TURNS_BYTES = 120_000  # of their texts on a page
_BY_TIME = 1_000  # owners up to which they are put in the order of their last moment
_DATES = 12
_NOTES = 30
_HOURS = 24
_COUNT_SECONDS = 0.1
_OF_USER = Policy(scope_search_by_agent=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request of a page.

    Attributes:
        given: the parameters of the address, or the fields of a form.
    """

    memory: Memory
    login: Login
    given: Mapping[str, str]
    policy: Policy

    def text(self, name: str) -> str | None:
        """Read a parameter without the space that a phone's keyboard adds; None for no text."""
        return self.given.get(name, "").strip() or None

    def number(self, name: str, default: int, most: int) -> int:
        """Read a number, 1 to `most`."""
        try:
            return min(max(int(self.given.get(name) or default), 1), most)
        except ValueError:
            raise HTTPException(400) from None

    def scope(self) -> Scope:
        """Read whose memory is meant."""
        found = self.find_scope()
        if found is None:
            raise HTTPException(404)
        return found

    def find_scope(self) -> Scope | None:
        """Read whose memory is meant; None if that is not given."""
        user, users = self.text("user"), self.login.users
        if users is not None:
            user = next(iter(users)) if user is None and len(users) == 1 else user
            if user is None:
                return None
            if user not in users:
                raise HTTPException(403)
        agent, session = self.text("agent"), self.text("session")
        if user is None and agent is None and session is None:
            return None
        return Scope(user_id=user, agent_id=agent, session_id=session)

    async def run(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Await a blocking call on a thread of the memory."""
        return await self.memory.admin.run(call, *args, **options)


Shown = dict[str, Any]
"""The data of a page, which its template writes and its `.json` gives."""
View = Callable[[Ask], Awaitable[Shown]]


async def why(ask: Ask) -> Shown:
    """Show the note for a question, or one that was logged, and what was left out of it."""
    scope, question, note_id = ask.find_scope(), ask.text("q"), ask.text("note")
    top_k = ask.number("top_k", ask.policy.top_k, 20)
    data: dict[str, Any] = {
        "question": question or "", "scope": scope, "top_k": top_k, "opened": None, "logged": [],
    }  # fmt: skip
    if note_id is not None:
        note = next(iter(await _logged(ask, scope, note_id)), None)
        if note is None:
            raise HTTPException(404)
        found: Explanation = await arun_plan(explain_logged(note, ask.policy), aon(ask.memory))
        missing = len(note.shown) + len(note.left_out) - len(found.lines) - len(found.left_out)
        data |= _explained(found) | {
            "question": note.question or "", "scope": note.scope,
            "opened": _row_of_note(note) | {"missing": missing},
        }  # fmt: skip
    elif question is None:
        data["logged"] = [_row_of_note(one) for one in await _logged(ask, scope)][:_NOTES]
    elif scope is not None:
        policy = replace(ask.policy, top_k=top_k)
        data |= _explained(await arun_plan(explain(scope, question, policy), aon(ask.memory)))
    return data


def _explained(found: Explanation) -> dict[str, Any]:
    return {
        "note": found.note,
        "head": found.head,
        "lines": [
            _scored(line.match)
            | {"line": line.text, "earlier": line.is_earlier, "always": line.is_always}
            for line in found.lines
        ],
        "foot": found.foot,
        "left_out": [
            _scored(one.match) | {"rule": one.rule}
            for one in sorted(found.left_out, key=lambda one: RULES.index(one.rule))
        ],
    }


async def _logged(ask: Ask, scope: Scope | None, note_id: str | None = None) -> list[LoggedNote]:
    """Read the logged notes of a scope, or of all that a login may see; the latest first."""
    users, checkpoints = ask.login.users, ask.memory.admin.checkpoints
    notes: list[LoggedNote] = await ask.run(logged_notes, checkpoints, note_id)
    return [
        one
        for one in notes
        if (users is None or one.scope.user_id in users)
        and (scope is None or scope.covers(one.scope))
    ]


def _row_of_note(note: LoggedNote) -> dict[str, Any]:
    return {
        "id": note.id, "at": note.at, "scope": note.scope, "question": note.question,
        "shown": len(note.shown), "left_out": len(note.left_out),
    }  # fmt: skip


async def people(ask: Ask) -> Shown:
    """List the users, and the agents and sessions that belong to no user; the latest first."""
    scopes: Sequence[Scope] = await ask.run(ask.memory.admin.list_scopes)
    users = ask.login.users
    owners: dict[Scope, list[Scope]] = {}
    for one in scopes:
        if users is None or one.user_id in users:
            owner = Scope(user_id=one.user_id) if one.user_id else one.owner
            owners.setdefault(owner, []).append(one)
    wanted = (ask.text("q") or "").casefold()
    found = sorted((one for one in owners if wanted in _names(one).casefold()), key=_names)
    at = ask.number("page", 1, 1_000_000)

    def rows() -> list[dict[str, Any]]:
        if len(found) <= _BY_TIME:
            found.sort(key=lambda one: _last(ask.memory, one), reverse=True)
        return [_row(ask.memory, one, owners[one]) for one in found[(at - 1) * PAGE : at * PAGE]]

    return {
        "q": wanted, "rows": await ask.run(rows), "total": len(found), "page": at,
        "next_page": at + 1 if len(found) > at * PAGE else None,
    }  # fmt: skip


async def person(ask: Ask) -> Shown:
    """List the agents and the sessions of one user, the latest session first."""
    scope = ask.scope()
    scopes: Sequence[Scope] = await ask.run(ask.memory.admin.list_scopes)
    agents = {one.agent_id for one in scopes if scope.covers(one) and one.agent_id}
    page = await ask.memory.asessions(scope, limit=PAGE, cursor=ask.text("cursor"))
    return {
        "scope": scope, "agents": sorted(agents), "sessions": page.sessions, "cursor": page.cursor,
    }  # fmt: skip


def _row(memory: Memory, scope: Scope, parts: Sequence[Scope]) -> dict[str, Any]:
    last = _last(memory, scope)
    return {
        "scope": scope,
        "agents": len({one.agent_id for one in parts if one.agent_id}),
        "sessions": len({one for one in parts if one.session_id}),
        "records": count_rows(memory, scope)["graph.records"],
        "last": None if last == _LONG_AGO else last,
    }


async def records(ask: Ask) -> Shown:
    """List records, newest first."""
    scope, kind, ended = ask.scope(), ask.text("kind"), ask.text("ended") == "1"
    kinds = cast(tuple[Kind, ...], (kind,) if kind else ())
    page = await ask.memory.alist(
        scope, kinds=kinds, limit=PAGE, cursor=ask.text("cursor"),
        include_superseded=ended, include_expired=ended,
    )  # fmt: skip
    return {
        "scope": scope, "kind": kind, "ended": ended, "kinds": KINDS, "records": page.records,
        "cursor": page.cursor,
    }  # fmt: skip


async def conversation(ask: Ask) -> Shown:
    """Show the turns of a session in their order, the last ones first, and its summary."""
    scope = ask.scope()
    if scope.session_id is None:
        raise HTTPException(400, "session")
    session = ask.memory.session(scope)
    found = await session.amessages(limit=_TURNS, before=ask.text("before"))
    sizes = accumulate(len(one.text[:TURN_LENGTH].encode()) for one in reversed(found))
    fitting = max(1, sum(size <= _TURNS_BYTES for size in sizes))
    turns = found[-fitting:]
    return {
        "scope": scope,
        "summary": await session.asummary(),
        "turns": turns,
        "before": turns[0].id if fitting < len(found) or len(found) == _TURNS else None,
    }


async def record(ask: Ask) -> Shown:
    """Show one record with its history, relations, and what it was drawn from."""
    scope, record_id = ask.scope(), ask.text("id")
    if record_id is None:
        raise HTTPException(404)
    found = await ask.memory.aget(record_id, scope, include_expired=True)
    history = await ask.memory.ahistory(record_id, scope)
    if found is None and not history:
        raise HTTPException(404)
    data: dict[str, Any] = {
        "scope": scope, "id": record_id, "record": found, "history": history,
        "done": ask.text("done"),
    }  # fmt: skip
    if found is not None:
        data |= {
            "relations": await ask.memory.arelations(
                scope, records=[record_id], include_superseded=True
            ),
            "sources": await ask.memory.aget_many(found.sources, scope),
            "conflicts": await ask.memory.aget_many(found.conflicts, scope),
            "passages": passages(found.text),
            "recalled": [
                _row_of_note(one)
                for one in await _logged(ask, search_scope(scope, _OF_USER))
                if any(match.id == record_id for match in one.shown)
            ],
        }
    return data


async def about(ask: Ask) -> Shown:
    """List what is known of a person."""
    scope = ask.scope()
    known = await ask.run(lambda: run_plan(about_plan(scope), on(ask.memory)))
    return {"scope": scope, "known": known}


async def graph(ask: Ask) -> Shown:
    """Draw the relations of a scope, at a day, or around a name."""
    scope, entity, as_of = ask.scope(), ask.text("entity"), ask.text("as_of")
    every = await ask.memory.arelations(scope, entity, hops=2 if entity else 1,
                                        include_superseded=True)  # fmt: skip
    at = _end_of(as_of) if as_of else None
    shown = await ask.memory.arelations(scope, entity, hops=2 if entity else 1, as_of=at)
    days = {str(end.date()) for one in every for end in (one.valid_from, one.valid_to) if end}
    return {
        "scope": scope, "entity": entity, "as_of": as_of,
        "dates": sorted(days, reverse=True)[:_DATES],
        "drawing": draw_graph(shown),
        "relations": sorted(every, key=_timeline)[:MAX_ROWS],
    }  # fmt: skip


async def forget(ask: Ask) -> Shown:
    """Count what an erasure would remove."""
    scope = ask.scope()
    counts = await ask.run(count_rows, ask.memory, scope)
    return {"scope": scope, "counts": counts, "confirm": confirmation(scope), "receipt": None}


LAW: Sequence[Mapping[str, str]] = (
    {"right": "see", "gdpr": "15", "pipl": "44, 45"},
    {"right": "correct", "gdpr": "16", "pipl": "46"},
    {"right": "take", "gdpr": "20", "pipl": "45"},
    {"right": "erase", "gdpr": "17", "pipl": "47"},
)
"""The articles of the General Data Protection Regulation and of China's Personal Information
Protection Law that give each right."""


async def rights(ask: Ask) -> Shown:
    """Tell a person what is stored, what may be asked for, and where it is done."""
    scope = Scope(user_id=_person(ask))
    counts = await ask.run(count_rows, ask.memory, scope)
    return {"scope": scope, "counts": counts, "law": LAW}


async def export_person(ask: Ask) -> bytes:
    """Write all that is stored of a user as the file of `commonplace export`."""
    user = _person(ask)

    def written() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "export.jsonl"
            export(ask.memory, file, user=user)
            return file.read_bytes()

    return cast(bytes, await ask.run(written))


def _person(ask: Ask) -> str:
    user = ask.scope().user_id
    if user is None:
        raise HTTPException(404)
    return user


async def operation(ask: Ask) -> Shown:
    """Show what waits, what failed and how large it all is; with `check=1` compare the stores."""
    if ask.login.users is not None:
        raise HTTPException(403)
    memory = ask.memory
    backlog = await memory.aflush(0.0)
    scopes: Sequence[Scope] = await ask.run(memory.admin.list_scopes)
    dead = await ask.run(memory.admin.dead_letters)
    data: dict[str, Any] = await ask.run(_by_hour, memory, is_whole=ask.text("check") == "1")
    data |= {
        "location": memory.location,
        "embedder": memory.embedder.id,
        "engines": await ask.run(describe_engines, memory),
        "pending": backlog.pending,
        "dead": dead[:MAX_ROWS],
        "dead_total": len(dead),
        "users": len({one.user_id for one in scopes if one.user_id}),
        "agents": len({one.agent_id for one in scopes if one.agent_id}),
        "sessions": len({one for one in scopes if one.session_id}),
        "files": {str(path): size for path, size in (await ask.run(file_sizes, memory)).items()},
        "retried": ask.text("retried"),
        "health": None,
    }
    if ask.text("check") == "1":
        found = await ask.run(examine, memory, tables=False)
        faults = {name: len(getattr(found, name)) for name in ("missing", "outdated", "orphans")}
        data["health"] = {
            "healthy": found.is_healthy, "consistent": found.is_consistent,
            "counts": found.counts, "indexed": found.indexed, **faults,
        }  # fmt: skip
    return data


def _by_hour(memory: Memory, *, is_whole: bool) -> dict[str, Any]:
    """Count records and logged notes by hour; records only if that is quick, or wanted."""
    since = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    counted = count_by_hour(memory, since, timeout=None if is_whole else _COUNT_SECONDS)
    notes = [one.at for one in logged_notes(memory.admin.checkpoints)]
    asked = [0] * _HOURS
    for at in notes:
        if at >= since:
            asked[min(int((at - since) / timedelta(hours=1)), _HOURS - 1)] += 1
    return {
        "records": counted[0] if counted else None,
        "since": since,
        "writes": counted[1] if counted else None,
        "notes": asked,
        "notes_from": min(notes, default=None),
    }


def confirmation(scope: Scope) -> str:
    """Return the id that must be typed before a scope is erased: its narrowest."""
    return scope.session_id or scope.agent_id or scope.user_id or ""


def _scored(match: Match) -> dict[str, Any]:
    record: Record = match.record
    return {
        "id": record.id,
        "text": match.excerpt,
        "kind": record.kind,
        "role": record.role,
        "at": record.occurred_at,
        "scope": record.scope,
        "score": match.score,
        "parts": dict(match.score_details),
        "logit": sum(match.score_details.values()),
    }


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _last(memory: Memory, scope: Scope) -> datetime:
    page = memory.list(scope, limit=1, include_superseded=True, include_expired=True)
    return page[0].created_at if page.records else _LONG_AGO


def _names(scope: Scope) -> str:
    return "\x1f".join(one or "" for one in (scope.user_id, scope.agent_id, scope.session_id))


def _end_of(day: str) -> datetime:
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), time.max, UTC)
    except ValueError:
        raise InvalidRecordError(
            field="as_of", value=day, reason="must be a day", hint="Such as 2026-05-04."
        ) from None


def _timeline(one: Relation) -> tuple[str, str, datetime]:
    return one.subject.casefold(), one.predicate, one.valid_from or _LONG_AGO


PAGES: Mapping[str, View] = {
    "why": why,
    "people": people,
    "person": person,
    "records": records,
    "conversation": conversation,
    "record": record,
    "about": about,
    "graph": graph,
    "forget": forget,
    "rights": rights,
    "operation": operation,
}
