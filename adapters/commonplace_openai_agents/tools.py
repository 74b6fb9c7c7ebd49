"""The memory's tools, as the SDK runs them; what fails becomes a text that the model reads."""

import json
from collections.abc import Callable
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from commonplace import Scope
from commonplace.agents import AgentMemory, ShownRecords, Tool

FindTurn = Callable[[ToolContext[Any]], tuple[Scope, ShownRecords]]


def make_tool(tool: Tool, memory: AgentMemory, find_turn: FindTurn) -> FunctionTool:
    """Make a tool on a wrapped memory; no argument that a model fills in names a user.

    Args:
        find_turn: returns the scope of the turn around a call, and what its model was shown.
    """

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
            return await memory.acall_tool(tool.name, given, *find_turn(context))
        except Exception as error:
            return f"Error in {tool.name}: {error}"

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # it has optional arguments
    )
