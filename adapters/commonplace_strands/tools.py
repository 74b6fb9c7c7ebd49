"""Memory tools of an agent, for the user of its turn and never for one that a model names.

`search_memory` and `add_memory` are those of every adapter; the others list, read, correct and
delete memories, and show their history and relations. An error becomes the tool's result for the
model, and the agent goes on.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar, get_args

from strands import ToolContext, tool
from strands.types.tools import AgentTool

from commonplace import Memory, Record, RecordNotFoundError, Scope
from commonplace.agents import WRITE_PATIENCE, AgentMemory, await_within, check_choice
from commonplace.agents import tools as shared_tools

from .convert import changes_of, describe

ToolName = Literal[
    "search_memory", "add_memory", "list_memories", "get_memory", "update_memory",
    "delete_memory", "memory_history", "memory_relations",
]  # fmt: skip
ALL_TOOLS: tuple[ToolName, ...] = get_args(ToolName)
TOOLS: tuple[ToolName, ...] = ("search_memory", "add_memory")
NO_MEMORY = "memory={!r} must be a commonplace Memory. Pass Memory.open(...)."
MAX_LISTED = 100
CONSENT = frozenset({"y", "yes", "true", "ok", "approve", "approved"})
REFUSED = "The user did not allow this. Nothing was changed."

T = TypeVar("T")


class MemoryTools:
    """The bodies of the tools; most signatures and docstrings are what models read.

    Args:
        memory: an open memory.
        agent_memory: the same, as the agent uses it.
        scope: returns the scope of the turn around a call; raises `InvalidScopeError` without one.
        consent: ask the person behind the agent before a memory is changed or deleted.

    Raises:
        TypeError: `memory` is not a `Memory`.
    """

    def __init__(
        self,
        memory: Memory,
        agent_memory: AgentMemory,
        scope: Callable[[], Scope],
        *,
        consent: bool = True,
    ) -> None:
        if not isinstance(memory, Memory):
            raise TypeError(NO_MEMORY.format(memory))
        self._memory = memory
        self._agent_memory = agent_memory
        self._scope = scope
        self._consent = consent

    def select(self, names: Sequence[ToolName], prefix: str = "") -> list[AgentTool]:
        """Make the tools of these names, in the order of `ALL_TOOLS`; an empty list for no names.

        Raises:
            InvalidRecordError: there is no tool of a name.
        """
        for name in names:
            check_choice("tools", name, ALL_TOOLS)
        shared = {one.name: one for one in shared_tools(self._agent_memory.policy)}
        selected: list[AgentTool] = []
        for name in ALL_TOOLS:
            if name not in names:
                continue
            options: dict[str, Any] = {"name": prefix + name, "context": True}
            if name in shared:
                options["description"] = shared[name].description
                options["inputSchema"] = {"json": dict(shared[name].schema)}
            selected.append(tool(**options)(getattr(self, name)))
        return selected

    async def search_memory(
        self, keywords: list[str], tool_context: ToolContext, limit: int | None = None
    ) -> str:
        """Search; the model reads the description that all adapters share."""
        found = await self._agent_memory.asearch_memory(self._scope(), keywords, limit)
        return found.text

    async def add_memory(self, thinking: str, content: list[str], tool_context: ToolContext) -> str:
        """Remember; the model reads the description that all adapters share."""
        return await self._agent_memory.aadd_memory(self._scope(), thinking, content)

    async def list_memories(
        self, tool_context: ToolContext, limit: int = 20, cursor: str | None = None
    ) -> dict[str, Any]:
        """List what is remembered about this user, newest first.

        Args:
            limit: How many memories to list, 1 to 100.
            cursor: The cursor that the list before gave, to go on after it.
        """
        limit = max(1, min(limit, MAX_LISTED))
        page = await _bounded(self._memory.alist(self._owner(), limit=limit, cursor=cursor))
        return _success(memories=[_to_json(one) for one in page.records], cursor=page.cursor)

    async def get_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Read one memory of this user by its id.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        return _success(**_to_json(await self._get(memory_id)))

    async def update_memory(
        self, memory_id: str, text: str, tool_context: ToolContext
    ) -> dict[str, Any]:
        """Correct one memory of this user. Its history keeps what it said before.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
            text: What it shall say from now on, in one sentence that stands alone.
        """
        record = await self._get(memory_id)
        reason = {"action": "update", "memory": _to_json(record), "text": text}
        if not self._has_consent(tool_context, "update_memory", reason):
            return _refusal()
        written = await _bounded(self._memory.aupdate(record.id, text, record.scope))
        return _success(results=changes_of(written))

    async def delete_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Delete one memory of this user.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        record = await self._get(memory_id)
        reason = {"action": "delete", "memory": _to_json(record)}
        if not self._has_consent(tool_context, "delete_memory", reason):
            return _refusal()
        written = await _bounded(self._memory.adelete(record.id, record.scope))
        return _success(results=changes_of(written))

    async def memory_history(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """List every version of one memory of this user, oldest first, also of a deleted one.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        versions = await _bounded(self._memory.ahistory(memory_id, self._owner()))
        if not versions:
            raise RecordNotFoundError(record_id=memory_id)
        history = [
            {"event": one.event, "text": one.text, "previous": one.previous}
            | {"version": one.version, "at": one.at.isoformat()}
            for one in versions
        ]
        return _success(history=history)

    async def memory_relations(
        self, tool_context: ToolContext, entity: str | None = None, hops: int = 1
    ) -> dict[str, Any]:
        """List how people, places and things that this user spoke of are related; at most 100.

        Args:
            entity: A name, to list only what is around it.
            hops: How many relations away from the name, 1 to 3.
        """
        found = await _bounded(self._memory.arelations(self._owner(), entity, hops=hops))
        relations = [
            {"subject": one.subject, "predicate": one.predicate, "object": one.object}
            for one in found[-MAX_LISTED:]
        ]
        return _success(relations=relations)

    # -- wiring --------------------------------------------------------------------------------

    def _owner(self) -> Scope:
        return self._scope().owner

    async def _get(self, memory_id: str) -> Record:
        record = await _bounded(self._memory.aget(memory_id, self._owner()))
        if record is None:
            raise RecordNotFoundError(record_id=memory_id)
        return record

    def _has_consent(self, context: ToolContext, name: str, reason: dict[str, Any]) -> bool:
        """Interrupt the agent to ask for consent; its answer comes when the agent is resumed.

        A tool that the program itself calls, `agent.tool.delete_memory(...)`, has its consent.
        """
        is_direct = "event_loop_cycle_id" not in context.invocation_state
        if is_direct or not self._consent:
            return True
        answer = context.interrupt(f"commonplace.{name}", reason=reason)
        return answer is True or (type(answer) is str and answer.strip().lower() in CONSENT)


async def _bounded(work: Coroutine[Any, Any, T]) -> T:
    return await await_within(WRITE_PATIENCE, "the memory", work)


def _to_json(record: Record) -> dict[str, Any]:
    return {"text": record.text, **describe(record)}


def _success(**value: Any) -> dict[str, Any]:
    return {"status": "success", "content": [{"json": value}]}


def _refusal() -> dict[str, Any]:
    return {"status": "error", "content": [{"text": REFUSED}]}
