"""Drop-in for `strands_tools.mem0_memory`: the same tool, on a commonplace memory.

Use this module, its object `mem0_memory` or the string `"commonplace_strands.mem0_memory"` as a
tool of an agent. Identity comes from `MEM0_USER_ID` and `MEM0_AGENT_ID`, never from the model; the
location from `COMMONPLACE_PATH` and the other variables of `Memory.from_env`. The variables that
choose Mem0's models and stores, and those of its console panels, have no effect here.
"""

import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, cast

from strands.tools.tools import PythonAgentTool
from strands.types.tools import ToolResult, ToolSpec, ToolUse

from commonplace import InvalidRecordError, Memory, Record, Relation, Scope, Version
from commonplace.agents import (
    SCOPE_FIELDS,
    LazyMemory,
    MemorySource,
    acquire_memory,
    check_mapping,
    clean,
    to_query,
)

from .convert import changes_of
from .turn_owner import Id, owner_scope

TOOL_SPEC: ToolSpec = {
    "name": "mem0_memory",
    "description": (
        "Keep and find what should outlive this conversation.\n\n"
        "Actions: `store` keeps `content`; `retrieve` finds what answers `query`, best first; "
        "`list` returns everything; `get`, `delete` and `history` work on one `memory_id`.\n\n"
        "Whose memory it is was set by the operator and cannot be changed here."
    ),
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "description": "What to do.",
                    "enum": ["store", "get", "list", "retrieve", "delete", "history"],
                },
                "content": {"type": "string", "description": "What to keep, for `store`."},
                "memory_id": {
                    "type": "string",
                    "description": "Which memory, for `get`, `delete` and `history`.",
                },
                "query": {"type": "string", "description": "What to find, for `retrieve`."},
                "metadata": {
                    "type": "object",
                    "description": "What else to keep with it, for `store`.",
                },
            },
            "required": ["action"],
        }
    },
}
TENANT_FIELDS = (*SCOPE_FIELDS, "run_id", "app_id", "org_id")
TOP_K = 10
PAGE_SIZE = 1000
DENIED = "Access denied"

_IGNORED_VARIABLE = re.compile("MEM0_(API_KEY|LLM_|EMBEDDER_)|OPENSEARCH_|NEPTUNE_")
_lock = threading.Lock()


class Mem0ToolError(ValueError):
    """An error of the tool, in the words of the original tool."""


class Mem0Tool(PythonAgentTool):
    """A tool object that is also the function behind it, and has the `TOOL_SPEC` of its module."""

    def __init__(self, call: Callable[[ToolUse], ToolResult]) -> None:
        self.TOOL_SPEC: ToolSpec = TOOL_SPEC
        super().__init__(TOOL_SPEC["name"], TOOL_SPEC, self.__call__)
        self._call = call

    def __call__(self, /, *tool: ToolUse, **state: Any) -> ToolResult:
        """Run the tool, given first or as `tool`; a failure is a result too."""
        given = tool[0] if tool else state.get("tool")
        check_mapping("tool", given, "{'toolUseId': '1', 'input': {'action': 'list'}}")
        return self._call(cast("ToolUse", given))


class Mem0MemoryTool:
    """The tool for one user, or for one agent when there is no user.

    Args:
        user_id: the owner.
        agent_id: the owner when there is no user.
        config: refused; it configures another library.
        memory: see `MemoryPlugin`.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
        ValueError: there is no owner.
    """

    def __init__(
        self,
        user_id: Id | None = None,
        agent_id: Id | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        memory: MemorySource = None,
    ) -> None:
        if config is not None:
            raise InvalidRecordError(
                field="config",
                value=type(config).__name__,
                reason="configures mem0, which is not used here",
                hint="Leave it out; pass memory=Memory.open(...) with its settings.",
            )
        is_user = user_id is not None and user_id != ""
        scope = owner_scope(user_id, None) if is_user else owner_scope(None, agent_id or None)
        if scope is None:
            raise ValueError("Either user_id or agent_id must be provided.")
        given = None if memory is None else acquire_memory(self, memory)
        self.mem0_memory: Mem0Tool = Mem0Tool(
            lambda tool: _run(tool, lambda: given or _memory_from_env(), lambda: scope)
        )


mem0_memory: Mem0Tool = Mem0Tool(lambda tool: _run(tool, _memory_from_env, _scope_from_env))


def _memory_from_env() -> LazyMemory:
    """Find the memory of the environment as it is at the first call."""
    with _lock:
        return _find_memory()


@cache
def _find_memory() -> LazyMemory:
    ignored = sorted(name for name in os.environ if _IGNORED_VARIABLE.match(name))
    if ignored:
        logging.getLogger("commonplace_strands").warning(
            "%s chose something of Mem0; memories are kept where COMMONPLACE_PATH says",
            ", ".join(ignored),
        )
    return acquire_memory(mem0_memory, None)


def _scope_from_env() -> Scope:
    """Read the owner, anew for each call."""
    user_id = os.environ.get("MEM0_USER_ID") or None
    agent_id = os.environ.get("MEM0_AGENT_ID") or None
    scope = owner_scope(user_id, agent_id)
    if scope is None:
        raise Mem0ToolError(
            "Either MEM0_USER_ID or MEM0_AGENT_ID environment variable must be set."
        )
    return scope


# -- actions -------------------------------------------------------------------------------------


def _run(tool: ToolUse, memory: Callable[[], LazyMemory], scope: Callable[[], Scope]) -> ToolResult:
    """Run an action; a failure is a result too."""
    use_id = tool.get("toolUseId", "default_id")
    try:
        arguments = tool.get("input") or {}
        check_mapping("input", arguments, "{'action': 'list'}")
        action = _find_action(arguments)
        owner = scope()
        text = action(memory().get(), owner, arguments)
    except Exception as error:  # the model reads it; the agent goes on
        text = clean(f"Error: {error}")  # what a provider cannot encode would end the turn
        return {"toolUseId": use_id, "status": "error", "content": [{"text": text}]}
    return {"toolUseId": use_id, "status": "success", "content": [{"text": text}]}


def _find_action(arguments: Mapping[str, Any]) -> "_Action":
    name = arguments.get("action")
    if not name:
        raise Mem0ToolError("action parameter is required")
    if not isinstance(name, str) or name not in _ACTIONS:
        raise Mem0ToolError(f"Invalid action: {name}")
    action, required = _ACTIONS[name]
    if required and not arguments.get(required):
        raise Mem0ToolError(f"{required} is required for {name} action")
    return action


def _store(memory: Memory, scope: Scope, arguments: Mapping[str, Any]) -> str:
    metadata = arguments.get("metadata") or {}
    identity: tuple[str, ...] = ()
    if isinstance(metadata, dict):  # the memory refuses anything else
        metadata = {key: value for key, value in metadata.items() if key not in TENANT_FIELDS}
        identity = tuple(metadata)
    written = memory.add(
        arguments["content"], scope, infer=False, metadata=metadata, identity=identity,
        origin="assistant",
    )  # fmt: skip
    return _to_text(changes_of(written))


def _get(memory: Memory, scope: Scope, arguments: Mapping[str, Any]) -> str:
    record = _own_record(memory, scope, arguments["memory_id"])
    return _to_text({**_record_item(record), "score": None})


def _list(memory: Memory, scope: Scope, _arguments: Mapping[str, Any]) -> str:
    records: list[Record] = []
    cursor: str | None = None
    while True:
        page = memory.list(scope, limit=PAGE_SIZE, cursor=cursor)
        records += page.records
        cursor = page.cursor
        if cursor is None:
            relations = [_relation_item(edge, "target") for edge in memory.relations(scope)]
            return _to_text([*map(_record_item, records), *relations])


def _retrieve(memory: Memory, scope: Scope, arguments: Mapping[str, Any]) -> str:
    matches = memory.search(to_query(arguments["query"]), scope, top_k=TOP_K)
    ids = [match.record.id for match in matches]
    found = memory.relations(scope, records=ids) if ids else ()
    relations = [_relation_item(edge, "destination") for edge in found]
    items = [{**_record_item(match.record), "score": match.score} for match in matches]
    return _to_text([*items, *relations])


def _delete(memory: Memory, scope: Scope, arguments: Mapping[str, Any]) -> str:
    record = _own_record(memory, scope, arguments["memory_id"])
    memory.delete(record.id, record.scope)
    return f"Memory {record.id} deleted successfully"


def _history(memory: Memory, scope: Scope, arguments: Mapping[str, Any]) -> str:
    versions = memory.history(arguments["memory_id"], scope)
    if not versions:
        raise Mem0ToolError(DENIED)
    created_at = versions[0].at.isoformat()
    return _to_text([_version_item(version, created_at) for version in versions])


_Action = Callable[[Memory, Scope, Mapping[str, Any]], str]
_ACTIONS: dict[str, tuple[_Action, str]] = {  # with the argument that each needs
    "store": (_store, "content"),
    "get": (_get, "memory_id"),
    "list": (_list, ""),
    "retrieve": (_retrieve, "query"),
    "delete": (_delete, "memory_id"),
    "history": (_history, "memory_id"),
}


def _own_record(memory: Memory, scope: Scope, memory_id: str) -> Record:
    record = memory.get(memory_id, scope)
    if record is None:  # whether another scope has it is not revealed
        raise Mem0ToolError(DENIED)
    return record


# -- results -------------------------------------------------------------------------------------


def _record_item(record: Record) -> dict[str, Any]:
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
        **{name: owner for name, owner in owners.items() if owner is not None},
    }


def _relation_item(relation: Relation, end: str) -> dict[str, Any]:
    return {
        "source": relation.subject, "relationship": relation.predicate, end: relation.object,
    }  # fmt: skip


def _version_item(version: Version, created_at: str) -> dict[str, Any]:
    return {
        "id": f"{version.record_id}:{version.version}",
        "memory_id": version.record_id,
        "old_memory": version.previous,
        "new_memory": version.text,
        "event": "ADD" if version.event == "RESTORE" else version.event,
        "created_at": created_at,
        "updated_at": version.at.isoformat(),
        "is_deleted": version.event == "DELETE",
        "actor_id": None,
        "role": None,
    }


def _to_text(value: dict[str, Any] | Iterable[Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
