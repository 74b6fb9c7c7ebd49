"""The memory's tools as AgentScope runs them: allowed by themselves, for whoever the reply is."""

from collections.abc import Awaitable, Callable
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import ToolBase, ToolChunk

from commonplace.handlers import Tool, add_memory, search_memory, tools
from commonplace.memory import Memory
from commonplace.model import Scope
from commonplace.policy import Policy

Reach = Callable[[AgentState | None], Awaitable[tuple[Memory, Scope]]]


class _MemoryTool(ToolBase):
    is_state_injected = True
    failure = "The memory did not answer"

    def __init__(self, tool: Tool, policy: Policy, reach: Reach, prefix: str) -> None:
        super().__init__()
        self.name = f"{prefix}{tool.name}"
        self.description = tool.description
        self.input_schema = dict(tool.schema)
        self.is_read_only = self.is_concurrency_safe = tool.is_read_only
        self._policy = policy
        self._reach = reach

    async def check_permissions(self, *_args: object, **_kwargs: object) -> PermissionDecision:
        return PermissionDecision(
            behavior=PermissionBehavior.ALLOW, message="The agent's own memory needs no consent."
        )

    async def call(self, *_args: Any, **arguments: Any) -> ToolChunk:
        state: AgentState | None = arguments.pop("_agent_state", None)
        try:
            memory, scope = await self._reach(state)
            text = await self._answer(memory, scope, arguments)
        except Exception as error:  # noqa: BLE001 -- the model reads it; the reply goes on
            return _chunk(f"{self.failure}: {error}", ToolResultState.ERROR)
        return _chunk(text, ToolResultState.RUNNING)

    async def _answer(self, memory: Memory, scope: Scope, arguments: dict[str, Any]) -> str:
        raise NotImplementedError


class SearchMemory(_MemoryTool):
    """Searches the memories of the user whom the agent replies to."""

    failure = "Error retrieving memory"

    async def _answer(self, memory: Memory, scope: Scope, arguments: dict[str, Any]) -> str:
        found = await search_memory(memory, scope, self._policy, **arguments)
        return found.text


class AddMemory(_MemoryTool):
    """Remembers facts of the user whom the agent replies to."""

    failure = "Error recording memory"

    async def _answer(self, memory: Memory, scope: Scope, arguments: dict[str, Any]) -> str:
        return await add_memory(memory, scope, self._policy, **arguments)


def memory_tools(policy: Policy, reach: Reach, prefix: str = "") -> list[ToolBase]:
    """Make both tools; `reach` finds the memory and whose it is for the state of a reply."""
    search, add = tools(policy)
    return [SearchMemory(search, policy, reach, prefix), AddMemory(add, policy, reach, prefix)]


def _chunk(text: str, state: ToolResultState) -> ToolChunk:
    return ToolChunk(content=[TextBlock(text=text)], state=state)
