"""The memory's tools, as LangChain runs them."""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt.tool_node import ToolRuntime
from pydantic import PrivateAttr

from commonplace import InvalidScopeError, Policy
from commonplace.agents import (
    TOOL_FAILURES,
    AgentMemory,
    MemoryCounters,
    MemorySource,
    OnEvent,
    Plan,
    Tool,
    aon,
    arun_plan,
    call,
    hinting_call,
    on,
    run_plan,
    tools,
)

from .turn import turn_cache, turn_in, turn_key
from .turn_owner import (
    IdSource,
    MissingIdError,
    OtherUserError,
    ScopeResolver,
    agent_memory,
    user_of,
)


class MemoryTool(StructuredTool):
    """A memory's tool, which tells the model about arguments that are not in its schema."""

    _agent: AgentMemory = PrivateAttr()

    def __init__(self, agent: AgentMemory, **given: Any) -> None:
        super().__init__(**given)
        self._agent = agent

    def counters(self) -> MemoryCounters:
        """Return how often each event has happened, for all tools that were made together."""
        return self._agent.counters()

    # StructuredTool's own methods take some of a model's arguments for themselves.
    def _run(self, /, **arguments: Any) -> Any:  # type: ignore[override]
        assert self.func is not None  # noqa: S101 -- it is given when it is made
        return self.func(**arguments)

    async def _arun(self, /, **arguments: Any) -> Any:  # type: ignore[override]
        assert self.coroutine is not None  # noqa: S101 -- it is given when it is made
        return await self.coroutine(**arguments)


@hinting_call
def memory_tools(
    memory: MemorySource = None,
    *,
    user_id: IdSource = user_of,
    agent_id: IdSource | None = None,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> list[BaseTool]:
    """Make the policy's tools, for `create_agent`, a `ToolNode` or on their own.

    The arguments are those of `MemoryMiddleware`, which has the tools already; the policy's mode
    makes no difference. No argument that a model fills in names a user. `update_memory` and
    `forget_memory` accept what these tools, or a note of `recall_hook`, showed the same user since
    the user's last message in the state; without a state, what they showed in the same thread.
    Each tool's `counters()` counts for all tools that were made together.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is neither open nor a path.
        InvalidScopeError: a fixed id cannot be used; a run's id raises it when a tool is called.
        InvalidRecordError: `policy` is not a `Policy`, or keeps notes in the conversation.
    """
    agent = agent_memory(memory, policy, on_event)
    return make_tools(agent, ScopeResolver(user_id, agent_id, agent.warn))


def make_tools(agent: AgentMemory, scopes: ScopeResolver) -> list[BaseTool]:
    """Make the policy's tools on a wrapped memory."""
    return [_make(tool, agent, scopes) for tool in tools(agent.policy)]


def _make(tool: Tool, agent: AgentMemory, scopes: ScopeResolver) -> MemoryTool:
    turns = turn_cache(agent)

    def carry_out(runtime: ToolRuntime | None, arguments: dict[str, Any]) -> Plan[str]:
        # A model can put anything into its call, but only the graph makes a ToolRuntime.
        trusted = runtime if isinstance(runtime, ToolRuntime) else None
        state = trusted.state if trusted else None
        turn = turn_in(state)
        try:
            scope = scopes.resolve(trusted, asker=(turn["owner"] or None) if turn else None)
            shown = turns.of(turn_key(state, scope)).shown
            answer: str = yield call("call_tool", tool.name, arguments, scope, shown)
        except Exception as error:
            is_nobody = isinstance(error, MissingIdError | OtherUserError)
            if isinstance(error, InvalidScopeError) and not is_nobody:
                raise  # the application, not the model, must mend an id that is unusable
            raise ToolException(f"{TOOL_FAILURES[tool.name]}: {error}") from error
        return answer

    def use(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        return run_plan(carry_out(runtime, arguments), on(agent))

    async def ause(runtime: ToolRuntime | None = None, **arguments: Any) -> str:
        return await arun_plan(carry_out(runtime, arguments), aon(agent))

    return MemoryTool(
        agent,
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.schema),
        func=use,
        coroutine=ause,
        handle_tool_error=True,
    )
