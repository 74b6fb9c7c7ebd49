"""Memory plugin: recall before a turn, write after it, tools in between, each turn for its user.

No hook raises: the framework would end the agent's turn, or lose its answer. What fails is logged
to `commonplace_strands`, and the agent goes on without memory.
"""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

from strands import Agent
from strands.agent import AgentResult
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookOrder,
)
from strands.plugins import Plugin
from strands.types.tools import AgentTool

from commonplace import InvalidScopeError, Match, Memory, MemoryTimeoutError, Policy, Scope
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    await_until_warm,
    instructions,
    start_warming,
)

from .convert import (
    ModelCallContext,
    add_instructions,
    add_note,
    is_interrupted,
    new_user_messages,
    text_of,
    turn_messages,
)
from .extraction import is_extracted
from .scope import check_ids, resolve_scope, tag_message
from .tools import TOOLS, MemoryTools, ToolName
from .turn import (
    MODEL_CALL,
    StrandsTurn,
    TurnRegistry,
    active_call,
    active_scope,
    asker_of,
    calling_turn,
    enter_call,
    exit_call,
    exit_turn,
    load_asker,
    save_asker,
)

try:
    from strands.middleware.stages import InvokeModelStage
except ImportError:  # it was private before it was public, and did the same
    from strands._middleware.stages import (  # type: ignore[import-not-found, no-redef]
        InvokeModelStage,
    )

NAME = "commonplace"
OTHER_OWNER = "must be the user who asked: the turn it resumes belongs to another one"

AnyEvent = TypeVar("AnyEvent")


def _never_raises(hook: "Callable[[MemoryPlugin, AnyEvent], None]") -> Any:
    @wraps(hook)
    def logged(self: "MemoryPlugin", event: AnyEvent) -> None:
        try:
            hook(self, event)
        except Exception as error:
            self._agent_memory.warn(hook.__name__.strip("_"), error)

    return logged


class MemoryPlugin(Plugin):
    """Long-term memory for Strands agents; one instance serves many agents and users at once.

    The caller of the agent names the owner of the memory with each turn:
    `agent(prompt, invocation_state={"user_id": ...})`, with `agent_id` and `session_id` if you
    like. A turn without an owner has no memory.

    With a `MemoryManager` on the same agent, its stores without a scope of their own follow the
    turn's user. What the manager extracts into this memory the plugin does not write, what the
    plugin shows the manager's stores do not find again, and a tool whose name is taken is left out.

    Args:
        memory: an open memory; the plugin does not close it.
        policy: how agents use it. Notes are never kept, so `inject` makes no difference.
        user_id: owner of a turn whose caller names none.
        agent_id: agent of a turn whose caller names none.
        tools: those that the agent gets, unless the policy keeps them from it.
        tool_prefix: goes in front of their names, and distinguishes several plugins of one agent.
        consent: ask the person behind the agent, by an interrupt, before a tool changes or deletes
            a memory.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        TypeError: `memory` is not a `Memory`.
    """

    name: str = NAME

    def __init__(
        self,
        memory: Memory,
        *,
        policy: Policy | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        tools: Sequence[ToolName] = TOOLS,
        tool_prefix: str = "",
        consent: bool = True,
    ) -> None:
        self.name = f"{NAME}:{tool_prefix}" if tool_prefix else NAME
        super().__init__()
        check_ids(user_id, agent_id)
        self.policy: Policy = policy or Policy()
        self._memory = memory
        self._user_id = user_id
        self._agent_id = agent_id
        self._turns = TurnRegistry()
        self._agent_memory = AgentMemory(memory, self.policy, log="commonplace_strands")
        wanted = tools if self.policy.has_tools else ()
        scope = partial(active_scope, memory, self)
        made = MemoryTools(memory, self._agent_memory, scope, consent=consent)
        self._agent_tools = made.select(wanted, tool_prefix)
        has_both = set(TOOLS) <= set(wanted)
        self._instructions = instructions(self.policy, tool_prefix) if has_both else ""

    def init_agent(self, agent: Agent) -> None:
        """Serve an agent from its next turn on; the memory warms up meanwhile."""
        start_warming(self._memory)
        # After others that may redact what the user said.
        agent.add_hook(self._before_invocation, BeforeInvocationEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._before_model_call, BeforeModelCallEvent)
        agent.add_hook(self._after_model_call, AfterModelCallEvent)
        agent.add_hook(self._before_tool_call, BeforeToolCallEvent)
        agent.add_hook(self._after_tool_call, AfterToolCallEvent)
        # Before others that may fail and take the end of the turn with them.
        agent.add_hook(self._after_invocation, AfterInvocationEvent, order=HookOrder.SDK_FIRST)
        _add_middleware(agent, self._show_note)
        taken = agent.tool_names
        fresh: list[AgentTool] = [one for one in self._agent_tools if one.tool_name not in taken]
        if fresh:
            agent.tool_registry.process_tools(list(fresh))

    # -- turns ---------------------------------------------------------------------------------

    @_never_raises
    def _before_invocation(self, event: BeforeInvocationEvent) -> None:
        given = event.messages
        if given is None:  # a call for structured output: no turn, and its end would not be known
            return
        turn = self._new_turn(event.agent, event.invocation_state)
        turn.asked = new_user_messages(given)
        owner = asker_of(turn.scope)
        turn.asker = owner if given else load_asker(event.agent, self.name) or owner
        if turn.asker != owner:
            # What somebody asked must not be answered into another one's memory.
            error = InvalidScopeError(field="user_id", value=owner["user_id"], reason=OTHER_OWNER)
            self._agent_memory.warn("turn", error)
            turn.scope = None
        self._turns.begin(event.agent, event.invocation_state, turn)
        if is_extracted(event.agent, self._memory, turn.scope):
            for message in given:
                is_new = any(message is one for one in turn.asked)
                scope = turn.scope if is_new else None
                tag_message(message, self._memory, scope, turn.next_id())

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        turn = self._turns.end(event.agent, event.invocation_state)
        if turn is None:
            return
        exit_turn(turn)
        try:
            is_open = event.result is None or is_interrupted(event.result)
            save_asker(event.agent, self.name, turn.asker if is_open else None)
        except Exception as error:
            self._agent_memory.warn("after_invocation", error)
        if turn.scope is None or event.result is None or not self.policy.is_static:
            return
        if not is_extracted(event.agent, self._memory, turn.scope):
            await self._write(turn, turn.scope, event.result)

    def _new_turn(self, agent: Any, state: dict[str, Any]) -> StrandsTurn:
        user_id, caller = self._user_id, calling_turn()
        # A plugin with a user of its own keeps it, but not while it serves the caller's turn too.
        if caller is not None and (user_id is None or caller.plugin is self):
            user_id = None if caller.scope is None else caller.scope.user_id
        scope = None
        try:
            scope = resolve_scope(
                state,
                user_id=user_id,
                agent_id=self._agent_id,
                session_id=self._turns.conversation_id(agent),
            )
        except InvalidScopeError as error:
            self._agent_memory.warn("scope", error)
        return StrandsTurn(memory=self._memory, scope=scope, plugin=self)

    async def _write(self, turn: StrandsTurn, scope: Scope, result: AgentResult) -> None:
        try:
            messages = turn_messages(turn.asked, result, turn.next_id)
        except Exception as error:
            self._agent_memory.warn("write", error)
            return
        await self._agent_memory.awrite(messages, scope)

    # -- calls of models and tools -------------------------------------------------------------

    @_never_raises
    def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        turn = self._turns.find(event.agent, event.invocation_state)
        if turn is not None:
            enter_call(turn, MODEL_CALL)

    @_never_raises
    def _after_model_call(self, event: AfterModelCallEvent) -> None:
        exit_call(MODEL_CALL, self)
        turn = self._turns.find(event.agent, event.invocation_state)
        if turn is None or event.stop_response is None:
            return
        if is_extracted(event.agent, self._memory, turn.scope):
            answer = event.stop_response.message
            tag_message(answer, self._memory, turn.scope, turn.next_id())

    @_never_raises
    def _before_tool_call(self, event: BeforeToolCallEvent) -> None:
        state = event.invocation_state
        # A direct call of the program, `agent.tool.name(..., user_id=...)`, is a turn by itself.
        turn = self._turns.find(event.agent, state) or self._new_turn(event.agent, state)
        enter_call(turn, _tool_call_key(event))

    @_never_raises
    def _after_tool_call(self, event: AfterToolCallEvent) -> None:
        exit_call(_tool_call_key(event), self)

    async def _show_note(self, call: ModelCallContext) -> ModelCallContext:
        try:
            call = add_instructions(call, self._instructions)
            turn = self._turns.find(call.agent, call.invocation_state)
            if turn is None or turn.scope is None or not self.policy.is_static:
                return call
            matches = await self._recall(turn, turn.scope)
            active = active_call(self._memory, self)
            if active is not None:
                matches = [one for one in matches if one.record.id not in active.shown_ids]
                active.shown_ids.update(one.record.id for one in matches)
                active.has_note = bool(matches)
            return add_note(call, matches, self.policy)
        except Exception as error:
            self._agent_memory.warn("note", error)
            return call

    async def _recall(self, turn: StrandsTurn, scope: Scope) -> list[Match]:
        """Recall once for a turn; the first also waits for the embedder, 10 seconds at most."""
        if turn.matches is not None:
            return turn.matches
        turn.matches = []
        query = "\n".join(text_of(one) for one in turn.asked)
        if query:
            try:
                await await_until_warm(self._memory, WRITE_PATIENCE)
            except MemoryTimeoutError as error:
                self._agent_memory.warn("recall", error)
            else:
                turn.matches = await self._agent_memory.arecall(scope, query)
        return turn.matches


def _tool_call_key(event: BeforeToolCallEvent | AfterToolCallEvent) -> str:
    # Models make the ids up: an agent and one within its tools may use the same.
    return f"{id(event.agent)}:{event.tool_use['toolUseId']}"


def _add_middleware(agent: Agent, change: Callable[[ModelCallContext], Any]) -> None:
    """Change each model call of an agent: the one place to show a model more than is kept.

    The framework's own history, its sessions and its listeners never see what is added there.
    """
    registry: Any = agent if hasattr(agent, "add_middleware") else agent._middleware_registry  # noqa: SLF001 -- as above
    registry.add_middleware(InvokeModelStage.Input, change)
