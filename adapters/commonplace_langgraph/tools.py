"""The memory's tools as LangChain runs them, for whoever the run is about."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt.tool_node import ToolRuntime

from commonplace import Memory, Scope
from commonplace.agents import blocking, handlers
from commonplace.agents.policy import Policy, Tool, tools

from .reach import DEFAULT, Reach
from .scopes import Id, user_of
from .turn import turn_in

FAILURES = {"search_memory": "Error retrieving memory", "add_memory": "Error recording memory"}


def memory_tools(
    memory: Memory,
    *,
    user_id: Id = user_of,
    agent_id: Id | None = None,
    policy: Policy = DEFAULT,
) -> list[BaseTool]:
    """Make `search_memory` and `add_memory`, for `create_agent`, a `ToolNode` or by themselves.

    The arguments are those of `MemoryMiddleware`, which brings the tools along; the policy's mode
    has no say. What a model calls takes no id of anybody.

    Raises:
        TypeError: that is no `Memory`.
        InvalidScopeError: a fixed id cannot be used.
    """
    return make_tools(Reach(memory, user_id, agent_id, policy))


def make_tools(reach: Reach) -> list[BaseTool]:
    """Make both tools on a memory that is reached already; search first."""
    search, add = tools(reach.policy)
    return [
        _make(search, reach, _search, _asearch),
        _make(add, reach, blocking.add_memory, handlers.add_memory),
    ]


def _search(memory: Memory, scope: Scope, policy: Policy, **arguments: Any) -> str:
    return blocking.search_memory(memory, scope, policy, **arguments).text


async def _asearch(memory: Memory, scope: Scope, policy: Policy, **arguments: Any) -> str:
    return (await handlers.search_memory(memory, scope, policy, **arguments)).text


def _make(
    tool: Tool,
    reach: Reach,
    work: Callable[..., str],
    awork: Callable[..., Awaitable[str]],
) -> BaseTool:
    def whose(runtime: ToolRuntime | None) -> Scope:
        # A model may write anything into its call; only the graph makes one of these.
        known = runtime if isinstance(runtime, ToolRuntime) else None
        return reach.whose(known, turn_in(known.state if known else None))

    def call(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        try:
            return work(reach.memory, whose(runtime), reach.policy, **arguments)
        except Exception as error:
            raise _told(tool, error) from error
        finally:
            reach.is_warm = True

    async def acall(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        try:
            return await awork(reach.memory, whose(runtime), reach.policy, **arguments)
        except Exception as error:
            raise _told(tool, error) from error
        finally:
            reach.is_warm = True

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.schema),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
    )


def _told(tool: Tool, error: Exception) -> ToolException:
    """Word a failure for the model; the turn goes on."""
    return ToolException(f"{FAILURES[tool.name]}: {error}")
