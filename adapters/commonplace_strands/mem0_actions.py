"""The actions of `mem0_memory`, with the results and errors that its callers know."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from strands.types.tools import ToolResult, ToolUse

from commonplace import Memory, Record, Relation, Scope, Version
from commonplace.agents import to_query as question
from commonplace.agents.messages import clean
from commonplace.validation import SCOPE_FIELDS

from .convert import changes_of

ACTIONS = ("store", "get", "list", "retrieve", "delete", "history")
NEEDS = {
    "store": "content", "get": "memory_id", "retrieve": "query",
    "delete": "memory_id", "history": "memory_id",
}  # fmt: skip
TENANTS = (*SCOPE_FIELDS, "run_id", "app_id", "org_id")
NOBODY = "Either MEM0_USER_ID or MEM0_AGENT_ID environment variable must be set."
DENIED = "Access denied"
NO_ACTION = "action parameter is required"
UNKNOWN = "Invalid action: {}"
MISSING = "{} is required for {} action"
PAGE = 1000
FOUND = 10
_UNUSED = re.compile("MEM0_(API_KEY|LLM_|EMBEDDER_)|OPENSEARCH_|NEPTUNE_")


class Refused(ValueError):
    """What a caller of the tool is told, in the words that he knows."""


def scope_from_env() -> Scope:
    """Read whose memory it is, anew for each call.

    Raises:
        Refused: the environment names nobody.
        InvalidScopeError: an id cannot be used.
    """
    user_id = os.environ.get("MEM0_USER_ID") or None
    agent_id = os.environ.get("MEM0_AGENT_ID") or None
    if user_id is None and agent_id is None:
        raise Refused(NOBODY)
    return Scope(user_id=user_id, agent_id=agent_id)


def unused_in_env() -> list[str]:
    """List the variables that are set and chose a store or model of Mem0, by name."""
    return sorted(name for name in os.environ if _UNUSED.match(name))


def take(tool: ToolUse, memory: Callable[[], Memory], owner: Callable[[], Scope]) -> ToolResult:
    """Take an action; what fails is a result too."""
    use_id = tool.get("toolUseId", "default_id")
    try:
        asked = tool.get("input") or {}
        action = _action(asked)
        scope = owner()
        text = _ACTIONS[action](memory(), scope, asked)
    except Exception as error:  # noqa: BLE001 -- the model reads it; the agent goes on
        told = clean(f"Error: {error}")  # what a provider cannot encode would end the turn
        return {"toolUseId": use_id, "status": "error", "content": [{"text": told}]}
    return {"toolUseId": use_id, "status": "success", "content": [{"text": text}]}


def _action(asked: dict[str, Any]) -> str:
    action = asked.get("action")
    if not action:
        raise Refused(NO_ACTION)
    if action not in ACTIONS:
        raise Refused(UNKNOWN.format(action))
    needed = NEEDS.get(action)
    if needed is not None and not asked.get(needed):
        raise Refused(MISSING.format(needed, action))
    return str(action)


def _store(memory: Memory, scope: Scope, asked: dict[str, Any]) -> str:
    told = asked.get("metadata") or {}
    if isinstance(told, dict):  # what is none, the memory refuses
        told = {name: one for name, one in told.items() if name not in TENANTS}
    written = memory.add(asked["content"], scope, infer=False, metadata=told, origin="assistant")
    return _text(changes_of(written))


def _get(memory: Memory, scope: Scope, asked: dict[str, Any]) -> str:
    return _text({**_told(_own(memory, scope, asked["memory_id"])), "score": None})


def _list(memory: Memory, scope: Scope, _asked: dict[str, Any]) -> str:
    records: list[Record] = []
    cursor: str | None = None
    while True:
        page = memory.list(scope, limit=PAGE, cursor=cursor)
        records += page.records
        cursor = page.cursor
        if cursor is None:
            edges = [_edge(one, "target") for one in memory.relations(scope)]
            return _text([*map(_told, records), *edges])


def _retrieve(memory: Memory, scope: Scope, asked: dict[str, Any]) -> str:
    matches = memory.search(question(asked["query"]), scope, top_k=FOUND)
    found = [one.record.id for one in matches]
    said = memory.relations(scope, records=found) if found else ()
    edges = [_edge(one, "destination") for one in said]
    return _text([*({**_told(one.record), "score": one.score} for one in matches), *edges])


def _delete(memory: Memory, scope: Scope, asked: dict[str, Any]) -> str:
    record = _own(memory, scope, asked["memory_id"])
    memory.delete(record.id, record.scope)
    return f"Memory {record.id} deleted successfully"


def _history(memory: Memory, scope: Scope, asked: dict[str, Any]) -> str:
    versions = memory.history(asked["memory_id"], scope)
    if not versions:
        raise Refused(DENIED)
    created = versions[0].at
    return _text([_version(one, created.isoformat()) for one in versions])


_ACTIONS: dict[str, Callable[[Memory, Scope, dict[str, Any]], str]] = {
    "store": _store, "get": _get, "list": _list,
    "retrieve": _retrieve, "delete": _delete, "history": _history,
}  # fmt: skip


def _own(memory: Memory, scope: Scope, memory_id: str) -> Record:
    record = memory.get(memory_id, scope)
    if record is None:  # whether another scope has it is not told
        raise Refused(DENIED)
    return record


def _told(record: Record) -> dict[str, Any]:
    owners = {
        "user_id": record.scope.user_id,
        "agent_id": record.scope.agent_id,
        "run_id": record.scope.session_id,
    }
    return {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": dict(record.metadata) or None,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        **{name: one for name, one in owners.items() if one is not None},
    }


def _edge(one: Relation, end: str) -> dict[str, Any]:
    return {"source": one.subject, "relationship": one.predicate, end: one.object}


def _version(one: Version, created_at: str) -> dict[str, Any]:
    return {
        "id": f"{one.record_id}:{one.version}",
        "memory_id": one.record_id,
        "old_memory": one.previous,
        "new_memory": one.text,
        "event": one.event,
        "created_at": created_at,
        "updated_at": one.at.isoformat(),
        "is_deleted": one.event == "DELETE",
        "actor_id": None,
        "role": None,
    }


def _text(value: "dict[str, Any] | Iterable[Any]") -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
