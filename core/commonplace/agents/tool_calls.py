"""Tools of an agent: what a model's call of each does to the memory.

Each is a sans-IO plan, so it is written once for callers with and without an event loop. The
scope is set by the adapter, never by a model.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InvalidRecordError, MemoryTimeoutError, RecordNotFoundError
from ..sans_io import Plan, call
from ..types import Match, Record, Scope, WriteResult
from ..validation import check_integer
from .note import ShownRecords, bullets
from .policy import (
    MAX_FACT,
    MAX_FACTS,
    MAX_KEYWORDS,
    MAX_LIMIT,
    WRITE_PATIENCE,
    Policy,
    Tool,
    tools,
)
from .recall import LEAST_FETCHED, newest_first, search_call, search_scope, to_query
from .retraction import delete_summaries, repetitions, take_out
from .standing_instructions import MARK


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a tool returned: a text for the model, and how many memories it found or changed."""

    text: str
    count: int


def run_tool(
    name: str,
    arguments: Mapping[str, Any],
    scope: Scope,
    policy: Policy,
    shown: ShownRecords,
) -> Plan[ToolAnswer]:
    """Carry out a tool that a model calls.

    Args:
        name: of one of the policy's tools, without a prefix.
        arguments: as the model gave them.
        shown: in this turn; a search adds what it returns.

    Raises:
        InvalidRecordError: an argument is outside what the tool's schema allows, or is not one of
            its parameters.
        RecordNotFoundError: the memory is not, or no longer, of this scope.
    """
    described = next((tool for tool in tools(policy) if tool.name == name), None)
    if described is None:
        raise InvalidRecordError(
            field="tool", value=name, reason=f"must be one of {', '.join(policy.tools)}"
        )
    _check_parameters(described, arguments)
    if name == "search_memory":
        return (yield from _search_memory(scope, policy, shown, **arguments))
    if name == "add_memory":
        return (yield from _add_memory(scope, policy, **arguments))
    done: WriteResult
    where = search_scope(scope, policy)
    record = _shown_record(shown, arguments["memory_id"])
    if not where.covers(record.scope):  # a correction of an episode is written beside it
        raise RecordNotFoundError(record_id=record.id)
    if name == "update_memory":
        [text] = _texts("text", [arguments["text"]], 1) or [""]
        done = yield from correct(record, text, where, policy)
        return _changed(f"Updated: {text}", done)
    if name == "drop_instruction" and MARK not in record.metadata:
        raise InvalidRecordError(
            field="memory_id",
            value=arguments["memory_id"],
            reason="is not the id of a standing instruction",
            hint="Those that the note shows first are; other memories stay.",
        )
    is_memory = name == "forget_memory"
    again = (yield from repetitions(record, where, policy)) if is_memory else []
    done = yield call("delete", record.id, where, wait=WRITE_PATIENCE)
    if not is_memory:
        return _changed("Dropped.", done)
    for one, rest in again:
        if one.id not in shown.own_ids:
            yield from take_out(one, rest, where)
    yield from delete_summaries([record, *(one for one, _ in again)], where)
    return _changed("Forgotten.", done)


def correct(record: Record, text: str, where: Scope, policy: Policy) -> Plan[WriteResult]:
    """Change what a memory says, and wait 10 seconds at most until that is stored.

    What somebody said stays what he said: an episode is deleted, and its correction is a new fact.

    Raises:
        InvalidRecordError: the text does not have 1 to 2,000 characters.
    """
    if not text or len(text) > MAX_FACT:
        raise InvalidRecordError(
            field="text", value=text, reason=f"must have 1 to {MAX_FACT} characters"
        )
    done: WriteResult
    if record.kind != "episode":
        done = yield call("update", record.id, text, where, wait=WRITE_PATIENCE)
        return done
    added: WriteResult = yield call(
        "add", [text], record.scope.owner, infer=False, metadata=policy.metadata,
        identity=policy.identity, origin="assistant", wait=WRITE_PATIENCE,
    )  # fmt: skip
    done = yield call("delete", record.id, where, wait=WRITE_PATIENCE)
    return replace(added, pending=added.pending or done.pending)


def _search_memory(
    scope: Scope,
    policy: Policy,
    shown: ShownRecords,
    keywords: Sequence[str],
    limit: int | None = None,
) -> Plan[ToolAnswer]:
    """Search for each keyword; a record comes once, in the order of keywords and scores."""
    most = min(policy.top_k, MAX_LIMIT) if limit is None else limit
    check_integer("limit", most, 1, MAX_LIMIT)
    wanted = _texts("keywords", keywords, MAX_KEYWORDS)
    if not wanted:
        return ToolAnswer(text="(no keywords supplied: nothing to search)", count=0)
    matches = yield from find(scope, policy, wanted, most, shown.own_ids)
    shown.add(matches)
    lines = bullets(matches, with_ids=policy.shows_ids, times=policy.times)
    text = "\n".join(lines) or "(no relevant memories found)"
    return ToolAnswer(text=text, count=len(lines))


def find(
    scope: Scope,
    policy: Policy,
    keywords: Sequence[str],
    most: int,
    without: Collection[str] = (),
) -> Plan[tuple[Match, ...]]:
    """Search for each keyword; of a changing value the newest comes first.

    Args:
        most: matches of a keyword at most.
        without: ids of records that are left out, such as what the model is asked now.
    """
    where = search_scope(scope, policy)
    texts = [text for text in map(to_query, keywords) if text]
    fetched = max(most, LEAST_FETCHED) + len(without)  # what replaces an older one is among them
    asked: list[Sequence[Match]] = yield [
        search_call(where, text, policy, fetched) for text in texts
    ]
    found = [[match for match in one if match.record.id not in without] for one in asked]
    every = {match.record.id: match for one in found for match in one}
    matches: dict[str, Match] = {}
    for one in found:
        for match in newest_first(one[:most], tuple(every.values())):
            matches.setdefault(match.record.id, match)
    return tuple(matches.values())


def _add_memory(
    scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> Plan[ToolAnswer]:
    """Remember facts of the user, in no session; return what each did, for the model.

    A known fact answers `NONE` or `UPDATE` with the id it has; one that is not stored in 10
    seconds, or not waited for, is accepted and answers `PENDING`.
    """
    facts = _texts("content", content, MAX_FACTS)
    if not facts:
        raise InvalidRecordError(field="content", value=content, reason="must not be empty")
    if type(thinking) is not str:
        raise InvalidRecordError(field="thinking", value=thinking, reason="must be a string")
    wait = WRITE_PATIENCE if policy.await_write else False
    written: WriteResult = yield call(
        "add", facts, scope.owner, infer=False, metadata=policy.metadata, identity=policy.identity,
        origin="assistant", wait=wait,
    )  # fmt: skip
    because = f" (rationale: {thinking})" if thinking else ""
    result = json.dumps({"results": _results(facts, written)}, ensure_ascii=False)
    text = f"Successfully recorded to memory{because} → {result}"
    return ToolAnswer(text=text, count=len(facts))


def _check_parameters(tool: Tool, arguments: Mapping[str, Any]) -> None:
    known = tool.schema["properties"]
    for one in arguments:
        if one not in known:
            raise InvalidRecordError(
                field=f"argument of {tool.name}",
                value=one,
                reason="is not one of its parameters",
                hint=f"They are {', '.join(known)}.",
            )
    for one in tool.schema["required"]:
        if one not in arguments:
            raise InvalidRecordError(
                field=f"argument of {tool.name}",
                value=one,
                reason="is missing",
                hint=f"Its parameters are {', '.join(known)}.",
            )


def _shown_record(shown: ShownRecords, memory_id: object) -> Record:
    record = shown.find(memory_id) if type(memory_id) is str else None
    if record is None:
        raise InvalidRecordError(
            field="memory_id",
            value=memory_id,
            reason="is not the id of a memory that was shown in this turn",
            hint="Search for the memory first, and give the id in brackets in front of it.",
        )
    return record


def _changed(text: str, written: WriteResult) -> ToolAnswer:
    if not written.pending:
        return ToolAnswer(text=text, count=1)
    raise MemoryTimeoutError(call="write", seconds=WRITE_PATIENCE)


def _results(facts: Sequence[str], written: WriteResult) -> list[dict[str, str | None]]:
    if written.pending:
        return [{"memory": fact, "event": "PENDING"} for fact in facts]
    return [
        {"id": change.id, "memory": change.text, "event": change.event}
        for change in written.changes
    ]


def _texts(field: str, values: Any, most: int) -> list[str]:
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if is_list and len(values) > most:
        raise InvalidRecordError(
            field=field, value=len(values), reason=f"must hold at most {most} texts"
        )
    if not is_list or not all(type(value) is str for value in values):
        raise InvalidRecordError(field=field, value=values, reason="must be a list of strings")
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))
