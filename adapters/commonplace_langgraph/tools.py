"""The memory's tools, `search_memory` and `add_memory`, as LangChain runs them."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt.tool_node import ToolRuntime

from commonplace import Memory, Policy, Scope
from commonplace.agents import AgentMemory, Tool, tools

from .scope import DEFAULT_POLICY, IdSource, ScopeResolver, agent_memory, user_of
from .turn import turn_in

FAILURES = {"search_memory": "Error retrieving memory", "add_memory": "Error recording memory"}


def memory_tools(
    memory: Memory,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> list[BaseTool]:
    """Make `search_memory` and `add_memory`, for `create_agent`, a `ToolNode` or by themselves.

    The arguments are those of `MemoryMiddleware`, which has the tools already; the policy's mode
    does not matter. No argument that a model fills in names a user.

    Raises:
        TypeError: `memory` is not a `Memory`.
        InvalidScopeError: a fixed id cannot be used.
        InvalidRecordError: the policy keeps notes in the conversation.
    """
    agent = agent_memory(memory, policy)
    return make_tools(agent, ScopeResolver(user_id, agent_id, agent.warn))


def make_tools(agent: AgentMemory, scopes: ScopeResolver) -> list[BaseTool]:
    """Make both tools on a wrapped memory; search first."""

    def search(scope: Scope, **arguments: Any) -> str:
        return agent.search_memory(scope, **arguments).text

    async def asearch(scope: Scope, **arguments: Any) -> str:
        return (await agent.asearch_memory(scope, **arguments)).text

    search_tool, add_tool = tools(agent.policy)
    return [
        _make(search_tool, scopes, search, asearch),
        _make(add_tool, scopes, agent.add_memory, agent.aadd_memory),
    ]


def _make(
    tool: Tool,
    scopes: ScopeResolver,
    work: Callable[..., str],
    awork: Callable[..., Awaitable[str]],
) -> BaseTool:
    def resolve(runtime: ToolRuntime | None) -> Scope:
        # A model may write anything into its call; only the graph makes one of these.
        trusted = runtime if isinstance(runtime, ToolRuntime) else None
        turn = turn_in(trusted.state if trusted else None)
        return scopes.resolve(trusted, asker=turn["owner"] if turn else None)

    def call(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        try:
            return work(resolve(runtime), **arguments)
        except Exception as error:
            raise _failure(tool, error) from error

    async def acall(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        try:
            return await awork(resolve(runtime), **arguments)
        except Exception as error:
            raise _failure(tool, error) from error

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.schema),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
    )


def _failure(tool: Tool, error: Exception) -> ToolException:
    """Word a failure for the model; the turn goes on."""
    return ToolException(f"{FAILURES[tool.name]}: {error}")
