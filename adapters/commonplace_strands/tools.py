"""The memory's tools as Strands runs them: for whomever the turn is, never for whom a model names.

An error is told to the model, and the agent goes on.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from strands import ToolContext, tool
from strands.types.tools import AgentTool

from commonplace.agents.handlers import add_memory, search_memory, within
from commonplace.agents.policy import WRITE_PATIENCE
from commonplace.agents.policy import tools as policy_tools
from commonplace.validation import check_choice

from .access import Access
from .manage import Manage

ToolName = Literal[
    "search_memory", "add_memory", "list_memories", "get_memory", "update_memory",
    "delete_memory", "memory_history", "memory_relations",
]  # fmt: skip
ALL_TOOLS: tuple[ToolName, ...] = get_args(ToolName)
TOOLS: tuple[ToolName, ...] = ("search_memory", "add_memory")


def memory_tools(access: Access, names: Sequence[ToolName], prefix: str = "") -> list[AgentTool]:
    """Make tools, in the order of `ALL_TOOLS`; an empty list for no names.

    Raises:
        InvalidRecordError: there is no tool of a name.
    """
    for name in names:
        check_choice("tools", name, ALL_TOOLS)
    bodies = _Bodies(access)
    told = {one.name: one for one in policy_tools(access.policy)}
    made: list[AgentTool] = []
    for name in ALL_TOOLS:
        if name not in names:
            continue
        given: dict[str, Any] = {"name": prefix + name, "context": True}
        if name in told:
            given["description"] = told[name].description
            given["inputSchema"] = {"json": dict(told[name].schema)}
        made.append(tool(**given)(getattr(bodies, name)))
    return made


class _Bodies(Manage):
    async def search_memory(
        self, keywords: list[str], tool_context: ToolContext, limit: int | None = None
    ) -> str:
        """Search, as the core describes it."""
        scope = self._access.owner(tool_context)
        found = await search_memory(self._memory, scope, self._access.policy, keywords, limit)
        return found.text

    async def add_memory(self, thinking: str, content: list[str], tool_context: ToolContext) -> str:
        """Remember, as the core describes it."""
        scope = self._access.owner(tool_context)
        adding = add_memory(self._memory, scope, self._access.policy, thinking, content)
        return await within(WRITE_PATIENCE, "add_memory", adding)
