"""The memory's tools as AgentScope tools: always allowed, for the user whom the reply answers."""

from collections.abc import Callable
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import ToolBase, ToolChunk

from commonplace import Scope
from commonplace.agents import TOOL_FAILURES, AgentMemory, ShownRecords, Tool, tools

FindReply = Callable[[AgentState | None], tuple[Scope, ShownRecords]]


class AgentScopeTool(ToolBase):
    """One tool of a memory; what goes wrong is an error that the model reads."""

    is_state_injected = True

    def __init__(self, tool: Tool, memory: AgentMemory, find_reply: FindReply, prefix: str) -> None:
        super().__init__()
        self.name: str = f"{prefix}{tool.name}"
        self.description: str = tool.description
        # AgentScope's own refusal of an unknown argument would not say which ones are known.
        self.input_schema: dict[str, Any] = {
            key: value for key, value in tool.schema.items() if key != "additionalProperties"
        }
        self.is_read_only: bool = tool.is_read_only
        self.is_concurrency_safe: bool = tool.is_read_only
        self._tool = tool.name
        self._memory = memory
        self._find_reply = find_reply

    async def check_permissions(self, *_args: object, **_kwargs: object) -> PermissionDecision:
        """Allow every call; what a user or an operator denies comes before."""
        return PermissionDecision(
            behavior=PermissionBehavior.ALLOW, message="The agent's own memory needs no consent."
        )

    async def call(self, /, *_args: Any, **arguments: Any) -> ToolChunk:
        """Carry out a call with the arguments of the model."""
        state: AgentState | None = arguments.pop("_agent_state", None)
        try:
            scope, shown = self._find_reply(state)
            text = await self._memory.acall_tool(self._tool, arguments, scope, shown)
            # Another user's reply may have taken over the conversation in the meantime.
            self._find_reply(state)
        except Exception as error:  # the model reads it; the reply goes on
            return _chunk(f"{TOOL_FAILURES[self._tool]}: {error}", ToolResultState.ERROR)
        return _chunk(text, ToolResultState.RUNNING)


def memory_tools(memory: AgentMemory, find_reply: FindReply, prefix: str = "") -> list[ToolBase]:
    """Make the policy's tools, in its order; empty list if it has none.

    Args:
        find_reply: called with the state of the agent that calls a tool; returns the scope of the
            user whom it answers and what it was shown in this reply, or raises.
    """
    described = tools(memory.policy) if memory.policy.has_tools else ()
    return [AgentScopeTool(tool, memory, find_reply, prefix) for tool in described]


def _chunk(text: str, state: ToolResultState) -> ToolChunk:
    return ToolChunk(content=[TextBlock(text=text)], state=state)
