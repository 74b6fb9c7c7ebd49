"""The memory's tools as AgentScope tools: always allowed, for the user whom the reply answers."""

from collections.abc import Callable
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import ToolBase, ToolChunk

from commonplace import Scope
from commonplace.agents import WRITE_PATIENCE, AgentMemory, Tool, await_within, tools


class _MemoryTool(ToolBase):
    is_state_injected = True
    failure = "The memory failed"

    def __init__(
        self,
        tool: Tool,
        memory: AgentMemory,
        require_scope: Callable[[AgentState | None], Scope],
        prefix: str,
    ) -> None:
        super().__init__()
        self.name: str = f"{prefix}{tool.name}"
        self.description: str = tool.description
        self.input_schema: dict[str, Any] = dict(tool.schema)
        self.is_read_only: bool = tool.is_read_only
        self.is_concurrency_safe: bool = tool.is_read_only
        self._memory = memory
        self._require_scope = require_scope

    async def check_permissions(self, *_args: object, **_kwargs: object) -> PermissionDecision:
        return PermissionDecision(
            behavior=PermissionBehavior.ALLOW, message="The agent's own memory needs no consent."
        )

    async def call(self, *_args: Any, **arguments: Any) -> ToolChunk:
        state: AgentState | None = arguments.pop("_agent_state", None)
        try:
            scope = self._require_scope(state)
            text = await await_within(WRITE_PATIENCE, self.name, self._run(scope, arguments))
            # Another user's reply may have taken over the conversation in the meantime.
            self._require_scope(state)
        except Exception as error:  # the model reads it; the reply goes on
            return _chunk(f"{self.failure}: {error}", ToolResultState.ERROR)
        return _chunk(text, ToolResultState.RUNNING)

    async def _run(self, scope: Scope, arguments: dict[str, Any]) -> str:
        raise NotImplementedError


class SearchMemory(_MemoryTool):
    """Searches the memories of the user whom the agent answers."""

    failure = "Error retrieving memory"

    async def _run(self, scope: Scope, arguments: dict[str, Any]) -> str:
        await self._memory.lazy.aget()  # opening may take longer than a search
        return (await self._memory.asearch_memory(scope, **arguments)).text


class AddMemory(_MemoryTool):
    """Remembers facts of the user whom the agent answers."""

    failure = "Error recording memory"

    async def _run(self, scope: Scope, arguments: dict[str, Any]) -> str:
        return await self._memory.aadd_memory(scope, **arguments)


def memory_tools(
    memory: AgentMemory, require_scope: Callable[[AgentState | None], Scope], prefix: str = ""
) -> list[ToolBase]:
    """Make both tools, search first; empty list if the policy has none.

    Args:
        require_scope: called with the state of the agent that calls a tool; returns the scope of
            the user whom it answers, or raises.
    """
    if not memory.policy.has_tools:
        return []
    search, add = tools(memory.policy)
    return [
        SearchMemory(search, memory, require_scope, prefix),
        AddMemory(add, memory, require_scope, prefix),
    ]


def _chunk(text: str, state: ToolResultState) -> ToolChunk:
    return ToolChunk(content=[TextBlock(text=text)], state=state)
