"""Middleware for `create_agent` that recalls before a turn and stores it afterwards.

Notes are part of single requests, never of a state, stream or checkpoint. If the memory fails, that
is logged as `commonplace_langgraph` and the turn continues.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from commonplace import Message, Policy, Scope
from commonplace.agents import (
    Call,
    Conversation,
    MemoryCounters,
    MemorySource,
    OnEvent,
    Plan,
    aon,
    arun_plan,
    call,
    hinting_init,
    instructions,
    on,
    render,
    run_plan,
    shown,
)

from .convert import (
    UserText,
    query_of,
    summary_in,
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
    StoredTurn,
    TurnState,
    begin_turn,
    turn_cache,
    turn_in,
)
from .turn_owner import (
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
Asked = tuple[LangGraphTurn, Scope]
"""The current turn, and the scope of the user who asked."""


@hinting_init
class MemoryMiddleware(AgentMiddleware[TurnState, Any, Any]):
    """Long-term memory for an agent of `create_agent`; one instance serves many users at once.

    What the user wrote is accepted before the model is called, and is stored whatever becomes of
    the turn; its end adds the answer. Of a turn that ends before that, it is stored when the next
    turn begins on the same checkpoint. An agent that another agent's tool calls recalls for the
    user and stores nothing, as the calling agent stores task and answer. Agents that are nodes of a
    graph store what they answer, and the user's message once.

    What LangChain's `SummarizationMiddleware` writes is kept as the summary of the session, which
    is the thread (`Session.summary`), and stands in the first note of the user's next one.

    Args:
        memory: an open memory, which stays open; the path of its folder, opened on first use; or
            None for the location that the environment names, `./memory` by default.
        user_id: the user's id, or a function that reads it from a `Run`. By default the login of a
            LangGraph server, else `user_id` of the context, else of `config["configurable"]`. A run
            that names nobody has no memory; an id that cannot be used raises `InvalidScopeError`
            before the model is called.
        agent_id: the agent's id, or such a function; None for memories of no particular agent.
        policy: how the agent uses memory; `Policy()` by default. Notes last for one request, so
            `inject` may not be `persist`. The first search may take 10 seconds, as it may load a
            model.
        on_event: called after each recall, write and tool call.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is none of those, or closed.
        InvalidScopeError, InvalidRecordError: an id or another argument cannot be used.
    """

    state_schema: type[TurnState] = TurnState

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: IdSource = user_of,
        agent_id: IdSource | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        super().__init__()
        self._memory = agent_memory(memory, policy, on_event)
        self.policy: Policy = self._memory.policy
        self._scopes = ScopeResolver(user_id, agent_id, self._memory.warn)
        self._turns = turn_cache(self._memory)
        self.tools = make_tools(self._memory, self._scopes) if self.policy.has_tools else []

    @property
    def name(self) -> str:
        """Name of the middleware, unique to this library."""
        return "commonplace_memory"

    def counters(self) -> MemoryCounters:
        """Return how often each event has happened, with those of the tools."""
        return self._memory.counters()

    # -- hooks ---------------------------------------------------------------------------------

    def before_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn: keep who asks, and what, without what others left unanswered.

        Raises:
            InvalidScopeError: the run has an id that cannot be used.
        """
        scope = self._scopes.find(runtime)
        texts = self._read([], user_texts, state["messages"])
        turn = begin_turn(scope, texts, turn_in(state), by_agent=is_called_by_agent())
        turn["said"] = self._turns.own(turn["said"], scope, self._scopes.place(runtime))
        turn["others"] += [text["id"] for text in _without(texts, turn["said"])]
        if scope is not None:
            self._end_left(state, scope, turn)
        return {TURN_KEY: turn}

    async def abefore_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """Begin a turn, see `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model a note; its first call in a turn recalls, and accepts the question.

        By then other middlewares have removed secrets from it.
        """
        return run_plan(self._model_call(request), _performing(on(self._memory), handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Show the model a note, see `wrap_model_call`."""
        return await arun_plan(self._model_call(request), _performing(aon(self._memory), handler))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Run a tool, marking what it calls as called by an agent."""
        return run_plan(self._tool_call(request), _performing(on(self._memory), handler))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a tool, see `wrap_tool_call`."""
        return await arun_plan(self._tool_call(request), _performing(aon(self._memory), handler))

    def after_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn: store the user's texts and the answer."""
        return run_plan(self._end(state, runtime), on(self._memory))

    async def aafter_agent(self, state: TurnState, runtime: Runtime[Any]) -> Update:
        """End a turn, see `after_agent`."""
        return await arun_plan(self._end(state, runtime), aon(self._memory))

    # -- plans, which yield calls of the memory and the request for the handler ----------------

    def _model_call(self, request: ModelRequest[Any]) -> Plan[ModelResponse[Any]]:
        note, asked = None, self._resume(request.state, request.runtime)
        if asked is not None:
            turn, scope = asked
            known = self._turns.of(turn["id"])
            if known.note is None:
                known.note = yield from self._begin(turn, scope, request)
            note, known.said = known.note, turn["said"]
        answer: ModelResponse[Any] = yield self._with_memory(request, note)
        return answer

    def _begin(self, turn: LangGraphTurn, scope: Scope, request: ModelRequest[Any]) -> Plan[str]:
        """Recall for a turn, then accept what the user wrote; return the note."""
        known, said = self._turns.of(turn["id"]), self._said(turn)
        stale = self._replace(turn, scope, request.runtime, request.messages)
        held = self._read(Conversation(), to_conversation, request.messages, known.shown)
        held = replace(held, ids=stale)
        known.shown.own_ids.update(stale)
        try:
            found = yield call("recall", scope, query_of(turn["said"]), held)
        except BaseException:  # cancelled: nothing may be awaited
            self._memory.accept(said, scope)
            raise
        self._memory.raise_misconfiguration()
        known.accepted = said
        yield call("accept", said, scope, known.shown)
        known.shown.add(shown(found, self.policy))
        return render(found, self.policy)

    def _tool_call(self, request: ToolCallRequest) -> Plan[ToolResult]:
        with tool_call():
            result: ToolResult = yield request
        return result

    def _end(self, state: TurnState, runtime: Runtime[Any]) -> Plan[Update]:
        asked = self._resume(state, runtime)
        accepted: Sequence[Message] = ()
        if open_turn := turn_in(state):
            accepted = self._turns.of(open_turn["id"]).accepted
            self._turns.drop(open_turn)
        if asked is not None and not asked[0]["by_agent"]:
            turn, scope = asked
            messages = self._read([], turn_messages, turn["said"], state, by_model=True)
            messages = messages or self._read([], user_messages, turn["said"])
            ids = {message.id for message in messages}
            # What another middleware has changed since is withdrawn: it may have removed a secret.
            if changed := [message for message in accepted if message.id not in ids]:
                self._memory.withdraw(changed, scope)
            self._replace(turn, scope, runtime, state["messages"], messages)
            yield call("write", messages, scope)
            summary = self._read("", summary_in, state["messages"])
            held = self._read(Conversation(), to_conversation, state["messages"])
            yield call("summarize", summary, scope, held)
        return {TURN_KEY: None}

    # -- turns ---------------------------------------------------------------------------------

    def _resume(self, state: Any, runtime: object) -> Asked | None:
        """Return the turn in a state, for the user who asked; None to recall and store nothing."""
        turn = turn_in(state) if self.policy.is_static else None
        if turn is None or (scope := self._scopes.find(runtime, asker=turn["owner"])) is None:
            return None
        return self._turns.latest(turn, state["messages"]), scope

    def _replace(
        self,
        turn: LangGraphTurn,
        scope: Scope,
        runtime: object,
        held: Sequence[AnyMessage],
        stored: Sequence[Message] | None = None,
    ) -> list[str]:
        """Withdraw what a turn replaces: an edited message, an answer that was given up.

        Args:
            stored: messages of the turn if it ends.

        Returns:
            The ids of the records.
        """
        branch = self._scopes.branch(scope, runtime)
        if branch is None or turn["by_agent"]:
            return []
        answer = [one for one in stored or () if one.role == "assistant"]
        answer_id = held[-1].id if answer else None
        gone: list[Message] = []
        for text in turn["said"]:
            if text["id"]:
                is_last = text is turn["said"][-1]
                said = self._read([], user_messages, [text])
                new = StoredTurn(said, answer, answer_id) if is_last else StoredTurn(said)
                key = (*branch, text["id"])
                gone += self._turns.replace(key, new, () if answer else held)
        return self._memory.withdraw(gone, scope) if gone else []

    def _end_left(self, state: TurnState, scope: Scope, turn: LangGraphTurn) -> None:
        """End the previous turn, if it did not end: store only what the user wrote in it.

        What is in the new turn too is stored with that, or never if an agent wrote it.
        """
        left = turn_in(state) if self.policy.is_static else None
        if left is None or left["owner"] != scope.key:
            return
        left = self._turns.latest(left, state["messages"])
        if left["by_agent"]:
            turn["said"] = _without(turn["said"], left["said"])
        left["said"] = _without(left["said"], turn["said"])
        self._memory.write_later(self._said(left), scope)
        self._turns.drop(left)

    def _said(self, turn: LangGraphTurn) -> list[Message]:
        """Make messages of what the user wrote in a turn; none if another agent wrote it."""
        return [] if turn["by_agent"] else self._read([], user_messages, turn["said"])

    # -- requests ------------------------------------------------------------------------------

    def _read(self, none: T, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read messages of a state, which may hold anything; `none` if that fails."""
        try:
            return read(*args, **kwargs)
        except Exception as error:
            self._memory.warn("reading", error)
            return none

    def _with_memory(self, request: ModelRequest[Any], note: str | None) -> ModelRequest[Any]:
        if note:
            request = request.override(messages=with_note(request.messages, note))
        text = instructions(self.policy)
        names = {getattr(tool, "name", None) for tool in request.tools}
        # Another middleware may have removed them.
        if text and names.issuperset(tool.name for tool in self.tools):
            system = with_instructions(request.system_message, text)
            request = request.override(system_message=system)
        return request


def _performing(perform: Callable[[Any], T], handler: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return what performs calls of the memory, and gives requests to the handler."""
    return lambda step: perform(step) if isinstance(step, Call) else handler(step)


def _without(texts: Sequence[UserText], others: Sequence[UserText]) -> list[UserText]:
    ids = {text["id"] for text in others}
    return [text for text in texts if text["id"] not in ids]
