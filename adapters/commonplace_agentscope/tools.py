"""The memory's tools as AgentScope runs them: allowed by themselves, for whoever the reply is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import ToolBase, ToolChunk

from commonplace import Memory, Scope
from commonplace.agents.handlers import add_memory, search_memory, within
from commonplace.agents.policy import WRITE_PATIENCE, Policy, Tool, instructions, tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How a tool comes by the memory, and by whose it is in the reply that runs on a state."""

    owner: Callable[[AgentState | None], Scope]
    memory: Callable[[], Awaitable[Memory]]


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
            scope = self._reach.owner(state)
            text = await within(WRITE_PATIENCE, self.name, self._call(scope, arguments))
            # Another user's reply may have taken the conversation over in the meantime.
            self._reach.owner(state)
        except Exception as error:  # noqa: BLE001 -- the model reads it; the reply goes on
            return _chunk(f"{self.failure}: {error}", ToolResultState.ERROR)
        return _chunk(text, ToolResultState.RUNNING)

    async def _call(self, scope: Scope, arguments: dict[str, Any]) -> str:
        return await self._answer(await self._reach.memory(), scope, arguments)

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
    """Make both tools; search first."""
    search, add = tools(policy)
    return [SearchMemory(search, policy, reach, prefix), AddMemory(add, policy, reach, prefix)]


def instruct(prompt: str, policy: Policy, prefix: str) -> str:
    """Add the tools' instructions to a system prompt, unless the agent has no tools."""
    text = instructions(policy, prefix)
    return f"{prompt}\n\n{text}" if text else prompt


def _chunk(text: str, state: ToolResultState) -> ToolChunk:
    return ToolChunk(content=[TextBlock(text=text)], state=state)
