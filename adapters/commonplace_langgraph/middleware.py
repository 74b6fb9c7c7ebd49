"""Middleware for `create_agent`: recall in a turn, write after it, scope for each run.

Notes are shown to the model request by request and are in no state, stream or checkpoint. No hook
raises: a memory that fails is logged in `commonplace_langgraph`, and the turn goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langgraph.runtime import Runtime

from commonplace import Memory, Message, Policy, Scope
from commonplace.agents import render

from .convert import turn_messages, user_texts, with_instructions, with_note
from .scope import DEFAULT_POLICY, IdSource, ScopeResolver, agent_memory, user_of
from .tools import make_tools
from .turn import (
    TURN_KEY,
    LangGraphTurn,
    TurnCache,
    TurnState,
    begin_turn,
    turn_in,
    turn_query,
)

P = ParamSpec("P")
T = TypeVar("T")
Update = dict[str, Any]


class MemoryMiddleware(AgentMiddleware[TurnState, Any, Any]):
    """Long-term memory for an agent of `create_agent`; one instance serves many users at once.

    Args:
        memory: an open memory; it stays open.
        user_id: the user's id, or what reads it from a `Run`. Without it the login of a LangGraph
            server counts, else `user_id` of the context, else of `config["configurable"]`; a run
            that names nobody has no memory.
        agent_id: the agent's id, likewise; None for memories of no agent in particular.
        policy: when and how; `inject` does not matter, as a note lives as long as a request. The
            first search of all may take 10 seconds, since it may load a model.

    Raises:
        TypeError: `memory` is not a `Memory`.
        InvalidScopeError, InvalidRecordError: an id cannot be used, or the policy keeps notes.
    """

    state_schema: type[TurnState] = TurnState

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: IdSource = user_of,
        agent_id: IdSource | None = None,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        super().__init__()
        self.policy = policy
        self._memory = agent_memory(memory, policy)
        self._scopes = ScopeResolver(user_id, agent_id, self._memory.warn)
        self._turns = TurnCache()
        self.tools = make_tools(self._memory, self._scopes) if policy.has_tools else []

    @property
    def name(self) -> str:
        """A name that no other library's middleware has."""
        return "commonplace_memory"

    def before_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn: keep who asks and what."""
        scope = self._scopes.find(runtime)
        if scope is None:
            return {TURN_KEY: None}
        return {TURN_KEY: begin_turn(scope, self._read(user_texts, state["messages"]))}

    async def abefore_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn, as `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model a note, recalled when it is first called in a turn.

        By then other middlewares have taken out of the question what must not be seen.
        """
        note = None
        if resumed := self._resume(request.state, request.runtime):
            turn, scope = resumed
            note = self._turns.note(turn)
            if note is None:
                note = render(self._memory.recall(scope, turn_query(turn)), self.policy)
            self._turns.keep(turn, note)
        return handler(self._with_memory(request, note))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model a note, as `wrap_model_call`."""
        note = None
        if resumed := self._resume(request.state, request.runtime):
            turn, scope = resumed
            note = self._turns.note(turn)
            if note is None:
                note = render(await self._memory.arecall(scope, turn_query(turn)), self.policy)
            self._turns.keep(turn, note)
        return await handler(self._with_memory(request, note))

    def after_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn: write the user's texts and the answer."""
        if resumed := self._resume(state, runtime):
            turn, scope = resumed
            self._memory.write(self._end(turn, state), scope)
        return {TURN_KEY: None}

    async def aafter_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn, as `after_agent`."""
        if resumed := self._resume(state, runtime):
            turn, scope = resumed
            await self._memory.awrite(self._end(turn, state), scope)
        return {TURN_KEY: None}

    def _resume(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> tuple[LangGraphTurn, Scope] | None:
        """Resume a turn, for the user who asked; None where nothing is recalled or written."""
        turn = turn_in(state) if self.policy.is_static else None
        if turn is None or (scope := self._scopes.find(runtime, asker=turn["owner"])) is None:
            return None
        return self._turns.latest(turn, state["messages"]), scope

    def _end(self, turn: LangGraphTurn, state: TurnState) -> Sequence[Message]:
        self._turns.drop(turn)
        return self._read(turn_messages, turn["said"], state)

    def _read(self, read: Callable[P, list[T]], *args: P.args, **kwargs: P.kwargs) -> list[T]:
        """Read messages, which may be anything that anybody put into the state."""
        try:
            return read(*args, **kwargs)
        except Exception as error:
            self._memory.warn("reading", error)
            return []

    def _with_memory(self, request: ModelRequest[Any], note: str | None) -> ModelRequest[Any]:
        if note:
            request = request.override(messages=with_note(request.messages, note))
        text = self.policy.tool_instructions
        names = {getattr(one, "name", None) for one in request.tools}
        # Another middleware may have taken them away.
        if text and self.tools and names.issuperset(one.name for one in self.tools):
            system = with_instructions(request.system_message, text)
            request = request.override(system_message=system)
        return request
