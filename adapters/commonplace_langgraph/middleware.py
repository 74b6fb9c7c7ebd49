"""Middleware for `create_agent`: recall in a turn, write after it, scope for each run.

Notes are shown to the model request by request and are in no state, stream or checkpoint. A memory
that fails is logged in `commonplace_langgraph`, and the turn goes on.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command

from commonplace import Match, Memory, Message, Policy, Scope
from commonplace.agents import (
    Conversation,
    MemoryCounters,
    OnEvent,
    ShownRecords,
    hinting_init,
    instructions,
    render,
    shown,
)

from .convert import (
    UserText,
    to_conversation,
    turn_messages,
    user_messages,
    user_texts,
    with_instructions,
    with_note,
)
from .tools import make_tools
from .turn import (
    TURN_KEY,
    LangGraphTurn,
    TurnCache,
    TurnState,
    asker_cache,
    begin_turn,
    shown_cache,
    turn_in,
    turn_query,
)
from .turn_owner import (
    DEFAULT_POLICY,
    IdSource,
    ScopeResolver,
    agent_memory,
    is_called_by_agent,
    tool_call,
    user_of,
)

P = ParamSpec("P")
T = TypeVar("T")
Update = dict[str, Any]
ToolResult = ToolMessage | Command[Any]
_LAST_STEPS = 8  # of a run: the model may not be called again after them


@dataclass(frozen=True, slots=True)
class _Current:
    """A turn under way, and the user who asked."""

    turn: LangGraphTurn
    scope: Scope


@hinting_init
class MemoryMiddleware(AgentMiddleware[TurnState, Any, Any]):
    """Long-term memory for an agent of `create_agent`; one instance serves many users at once.

    When the model or a tool fails, or the run is cancelled or handed to another agent, what the
    user wrote is remembered alone; of a turn that ends in another way without an answer, when the
    next one begins on its checkpoint. An agent that a tool of another agent calls recalls for the
    user and writes nothing, as that tool's agent remembers the task and the answer; agents that are
    nodes of a graph write, and what the user wrote is one record.

    Args:
        memory: an open memory; it stays open.
        user_id: the user's id, or what reads it from a `Run`. Without it the login of a LangGraph
            server counts, else `user_id` of the context, else of `config["configurable"]`. A run
            that names nobody has no memory; one that names somebody by an id that cannot be used
            raises `InvalidScopeError` before the model is called.
        agent_id: the agent's id, likewise; None for memories of no agent in particular.
        policy: when and how; `inject` does not matter, as a note lives as long as a request. The
            first search of all may take 10 seconds, since it may load a model.
        on_event: is called with what becomes of each recall, write and tool call.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is not an open `Memory`.
        InvalidScopeError, InvalidRecordError: an id or another argument cannot be used, or the
            policy keeps notes.
    """

    state_schema: type[TurnState] = TurnState

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: IdSource = user_of,
        agent_id: IdSource | None = None,
        policy: Policy = DEFAULT_POLICY,
        on_event: OnEvent | None = None,
    ) -> None:
        super().__init__()
        self.policy = policy
        self._memory = agent_memory(memory, policy, on_event)
        self._scopes = ScopeResolver(user_id, agent_id, self._memory.warn)
        self._turns = TurnCache()
        self._askers = asker_cache(memory)
        self._shown = shown_cache(memory)
        self.tools = make_tools(self._memory, self._scopes, self._shown) if policy.has_tools else []

    @property
    def name(self) -> str:
        """A name that no other library's middleware has."""
        return "commonplace_memory"

    def counters(self) -> MemoryCounters:
        """Read how often each event happened since this was made, its tools' included."""
        return self._memory.counters()

    # -- hooks ---------------------------------------------------------------------------------

    def before_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn: keep who asks and what; what others left unanswered is not asked by him.

        Raises:
            InvalidScopeError: the run names somebody by an id that cannot be used.
        """
        scope = self._scopes.find(runtime)
        texts = self._read(user_texts, state["messages"])
        turn = begin_turn(scope, texts, turn_in(state), by_agent=is_called_by_agent())
        turn["said"] = self._askers.own(turn["said"], scope, self._scopes.place(runtime))
        turn["others"] += [one["id"] for one in _without(texts, turn["said"])]
        if scope is not None:
            self._end_left(state, scope, turn)
        return {TURN_KEY: turn}

    async def abefore_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn, as `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model a note, recalled when it is first called in a turn.

        By then other middlewares have taken out of the question what must not be seen.
        """
        current = self._resume(request.state, request.runtime)
        with self._saving(current):
            note = None
            if current:
                note = self._turns.note(current.turn)
                if note is None:
                    found = self._memory.recall(*self._question(current, request))
                    note = self._render(current, found)
                self._begin_call(current, note, request.state)
            return handler(self._with_memory(request, note))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model a note, as `wrap_model_call`."""
        current = self._resume(request.state, request.runtime)
        async with self._asaving(current):
            note = None
            if current:
                note = self._turns.note(current.turn)
                if note is None:
                    found = await self._memory.arecall(*self._question(current, request))
                    note = self._render(current, found)
                self._begin_call(current, note, request.state)
            return await handler(self._with_memory(request, note))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Run a tool; what it calls knows that an agent calls it."""
        current = self._resume(request.state, request.runtime)
        with self._saving(current), tool_call():
            result = handler(request)
        if _is_handoff(result) and (messages := self._unsaved(current)):
            self._memory.write(*messages)
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a tool, as `wrap_tool_call`."""
        current = self._resume(request.state, request.runtime)
        async with self._asaving(current):
            with tool_call():
                result = await handler(request)
        if _is_handoff(result) and (messages := self._unsaved(current)):
            await self._memory.awrite(*messages)
        return result

    def after_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn: write the user's texts and the answer."""
        if ended := self._end(state, runtime):
            self._memory.write(*ended)
        return {TURN_KEY: None}

    async def aafter_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn, as `after_agent`."""
        if ended := self._end(state, runtime):
            await self._memory.awrite(*ended)
        return {TURN_KEY: None}

    # -- turns ---------------------------------------------------------------------------------

    def _resume(self, state: Any, runtime: object) -> _Current | None:
        """Resume a turn, for the user who asked; None where nothing is recalled or written."""
        turn = turn_in(state) if self.policy.is_static else None
        if turn is None or (scope := self._scopes.find(runtime, asker=turn["owner"])) is None:
            return None
        return _Current(self._turns.latest(turn, state["messages"]), scope)

    def _question(
        self, current: _Current, request: ModelRequest[Any]
    ) -> tuple[Scope, str, Conversation]:
        held = self._read(_conversations, request.messages)
        return current.scope, turn_query(current.turn), held[0] if held else Conversation()

    def _render(self, current: _Current, found: Sequence[Match]) -> str:
        """Write the note, whose memories the turn's tools may change."""
        self._shown.setdefault(current.turn["id"], ShownRecords()).add(shown(found, self.policy))
        return render(found, self.policy)

    def _begin_call(self, current: _Current, note: str, state: Any) -> None:
        self._turns.keep(current.turn, note)
        left = state.get("commonplace_steps")
        # LangGraph ends a run that takes too many steps between two hooks.
        if type(left) is int and left <= _LAST_STEPS and (messages := self._unsaved(current)):
            self._memory.write_later(*messages)

    def _end(
        self, state: TurnState, runtime: Runtime[Any]
    ) -> tuple[Sequence[Message], Scope] | None:
        """Forget a turn; return what is to be written of it, and whose it is."""
        current = self._resume(state, runtime)
        if turn := turn_in(state):
            self._turns.drop(turn)
            self._shown.pop(turn["id"])
        if current is None or current.turn["by_agent"]:
            return None
        said = current.turn["said"]
        messages = self._read(turn_messages, said, state, by_model=True)
        return messages or self._read(user_messages, said), current.scope

    def _end_left(self, state: TurnState, scope: Scope, turn: LangGraphTurn) -> None:
        """End the turn before, which came to no end: write what the user wrote in it alone.

        What is in the new turn, too, is written with that; or never, if an agent wrote it.
        """
        left = turn_in(state) if self.policy.is_static else None
        if left is None or left["owner"] != scope.key:
            return
        left = self._turns.latest(left, state["messages"])
        if left["by_agent"]:
            turn["said"] = _without(turn["said"], left["said"])
        left["said"] = _without(left["said"], turn["said"])
        if messages := self._unsaved(_Current(left, scope)):
            self._memory.write_later(*messages)
        self._turns.drop(left)
        self._shown.pop(left["id"])

    # -- turns without an answer ---------------------------------------------------------------

    @contextmanager
    def _saving(self, current: _Current | None) -> Iterator[None]:
        """Write what the user wrote when the block fails; an interrupted graph does not."""
        try:
            yield
        except GraphBubbleUp:
            raise
        except Exception:
            if messages := self._unsaved(current):
                self._memory.write(*messages)
            raise
        except BaseException:  # cancelled
            if messages := self._unsaved(current):
                self._memory.write_later(*messages)
            raise

    @asynccontextmanager
    async def _asaving(self, current: _Current | None) -> AsyncIterator[None]:
        """Write what the user wrote when the block fails, as `_saving`."""
        try:
            yield
        except GraphBubbleUp:
            raise
        except Exception:
            if messages := self._unsaved(current):
                await self._memory.awrite(*messages)
            raise
        except BaseException:  # cancelled: nothing may be awaited
            if messages := self._unsaved(current):
                self._memory.write_later(*messages)
            raise

    def _unsaved(self, current: _Current | None) -> tuple[list[Message], Scope] | None:
        """Take what the user wrote, once in a turn; its end writes that again, as known."""
        if current is None or current.turn["by_agent"]:
            return None
        if not self._turns.mark_saved(current.turn):
            return None
        return self._read(user_messages, current.turn["said"]), current.scope

    # -- requests ------------------------------------------------------------------------------

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
        text = instructions(self.policy)
        names = {getattr(one, "name", None) for one in request.tools}
        # Another middleware may have taken them away.
        if text and names.issuperset(one.name for one in self.tools):
            system = with_instructions(request.system_message, text)
            request = request.override(system_message=system)
        return request


def _conversations(messages: Sequence[BaseMessage]) -> list[Conversation]:
    return [to_conversation(messages)]


def _without(texts: Sequence[UserText], others: Sequence[UserText]) -> list[UserText]:
    ids = {one["id"] for one in others}
    return [one for one in texts if one["id"] not in ids]


def _is_handoff(result: object) -> bool:
    """Return whether a tool leaves its agent for another one, so that its turn has no end."""
    results = result if isinstance(result, list) else [result]
    return any(isinstance(one, Command) and one.graph == Command.PARENT for one in results)
