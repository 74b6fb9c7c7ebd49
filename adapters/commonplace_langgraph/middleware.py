"""The middleware for `create_agent`: recall in a turn, write after it, scope for each run.

Notes are shown to the model request by request and are in no state, stream or checkpoint. No hook
raises: a memory that fails is told to the log `commonplace_langgraph`, and the turn goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langgraph.runtime import Runtime

from commonplace import Memory, Message, Scope
from commonplace.agents.policy import Policy

from .convert import instructed, to_exchange, to_said, with_note
from .reach import DEFAULT, Reach
from .scopes import Id, user_of
from .tools import make_tools
from .turn import TURN, Turn, Turns, TurnState, begin, query, turn_in

P = ParamSpec("P")
T = TypeVar("T")
Update = dict[str, Any]


class MemoryMiddleware(AgentMiddleware[TurnState, Any, Any]):
    """Long-term memory for an agent of `create_agent`; one instance serves many users at once.

    Args:
        memory: an open memory; it stays open.
        user_id: whose memory, or what tells it of a `Run`. Without it the login of a LangGraph
            server counts, else `user_id` of the context, else of `config["configurable"]`; a run
            that names nobody has no memory.
        agent_id: which agent's, likewise; None for memories of no agent in particular.
        policy: when and how; `inject` has no say, for a note lives as long as a request. The first
            search of all may take 10 seconds, since it may load a model.

    Raises:
        TypeError: that is no `Memory`.
        InvalidScopeError, InvalidRecordError: an id cannot be used, or the policy keeps notes.
    """

    state_schema = TurnState

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: Id = user_of,
        agent_id: Id | None = None,
        policy: Policy = DEFAULT,
    ) -> None:
        super().__init__()
        self.policy = policy
        self._reach = Reach(memory, user_id, agent_id, policy)
        self._turns = Turns()
        self.tools = make_tools(self._reach) if policy.has_tools else []

    @property
    def name(self) -> str:
        """Name it apart from other libraries' middlewares."""
        return "commonplace_memory"

    def before_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn: note who asks and what."""
        scope = self._reach.owner(runtime)
        if scope is None:
            return {TURN: None}
        return {TURN: begin(scope, self._read(to_said, state["messages"]))}

    async def abefore_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn, as `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model a note, recalled when it is first called in a turn.

        By then other middlewares have taken out of the question what they want nobody to see.
        """
        note = None
        if going := self._resume(request.state, request.runtime):
            turn, scope = going
            note = self._turns.note(turn)
            if note is None:
                note = self._reach.note(scope, query(turn))
            self._turns.keep(turn, note)
        return handler(self._dress(request, note))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model a note, as `wrap_model_call`."""
        note = None
        if going := self._resume(request.state, request.runtime):
            turn, scope = going
            note = self._turns.note(turn)
            if note is None:
                note = await self._reach.anote(scope, query(turn))
            self._turns.keep(turn, note)
        return await handler(self._dress(request, note))

    def after_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn: write what was said and answered."""
        if going := self._resume(state, runtime):
            self._reach.write(self._end(going[0], state), going[1])
        return {TURN: None}

    async def aafter_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn, as `after_agent`."""
        if going := self._resume(state, runtime):
            await self._reach.awrite(self._end(going[0], state), going[1])
        return {TURN: None}

    def _resume(self, state: AgentState[Any], runtime: Runtime[Any]) -> tuple[Turn, Scope] | None:
        """Go on with a turn, for whoever asked; None where nothing is recalled or written."""
        turn = turn_in(state) if self.policy.is_static else None
        scope = None if turn is None else self._reach.owner(runtime, turn)
        if turn is None or scope is None:
            return None
        return self._turns.latest(turn, state["messages"]), scope

    def _end(self, turn: Turn, state: TurnState) -> Sequence[Message]:
        self._turns.drop(turn)
        return self._read(to_exchange, turn["said"], state)

    def _read(self, read: Callable[P, list[T]], *args: P.args, **kwargs: P.kwargs) -> list[T]:
        """Read messages, which may be anything that anybody put into the state."""
        try:
            return read(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 -- a turn outlives its memory
            self._reach.warn("reading", error)
            return []

    def _dress(self, request: ModelRequest[Any], note: str | None) -> ModelRequest[Any]:
        if note:
            request = request.override(messages=with_note(request.messages, note))
        text = self.policy.tool_instructions
        there = {getattr(one, "name", None) for one in request.tools}
        # Another middleware may have taken them away.
        if text and self.tools and there.issuperset(one.name for one in self.tools):
            system = instructed(request.system_message, text)
            request = request.override(system_message=system)
        return request
