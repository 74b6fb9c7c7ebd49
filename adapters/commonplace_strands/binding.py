"""Binds an agent's turns, and the calls in their course, to whom they are for.

The hooks here never raise: the framework would end the agent's turn.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from strands import Agent, ToolContext
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookOrder,
)

from commonplace import InvalidScopeError, Memory, Scope
from commonplace.agents.session import WarnOnce

from .convert import is_parked, said_now
from .extraction import is_extracted
from .scopes import Default, scope_of
from .stamps import stamp
from .turns import MODEL_CALL, Turn, Turns, around, enter, leave, leave_all, owner_here
from .unanswered import asked, asker, remember

Event = TypeVar("Event")
ANOTHER = "goes on with a turn that is somebody else's"


def _use(event: BeforeToolCallEvent | AfterToolCallEvent) -> str:
    # Models make the ids up: an agent and one within its tools may use the same.
    return f"{id(event.agent)}:{event.tool_use['toolUseId']}"


def _quietly(hook: "Callable[[Binding, Event], None]") -> Any:
    @wraps(hook)
    def quiet(self: "Binding", event: Event) -> None:
        try:
            hook(self, event)
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self.warn(hook.__name__.strip("_"), error)

    return quiet


class Binding:
    """Knows whose turn it is, for the plugin of a name.

    Attributes:
        warn: tells the log what failed.
    """

    def __init__(self, name: str, memory: Memory, default: Default) -> None:
        self.warn = WarnOnce("commonplace_strands")
        self._name = name
        self._memory = memory
        self._default = default
        self._turns = Turns()

    def attach(self, agent: Agent) -> None:
        """Follow an agent's turns; `end` is left to the caller."""
        # After others that may redact what is said.
        agent.add_hook(self._begin, BeforeInvocationEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._before_model, BeforeModelCallEvent)
        agent.add_hook(self._after_model, AfterModelCallEvent)
        agent.add_hook(self._before_tool, BeforeToolCallEvent)
        agent.add_hook(self._after_tool, AfterToolCallEvent)

    def find(self, agent: Any, state: dict[str, Any]) -> Turn | None:
        """Find the turn that an agent runs with this very `invocation_state`."""
        return self._turns.find(agent, state)

    def end(self, event: AfterInvocationEvent) -> Turn | None:
        """Let a turn go, and answer it; None for one that never began."""
        turn = self._turns.end(event.agent, event.invocation_state)
        if turn is not None:
            leave_all(turn)
            self._close(event, turn)
        return turn

    def owner(self, _context: ToolContext) -> Scope:
        """Tell whose memory a tool call is about.

        Raises:
            InvalidScopeError: it is nobody's.
        """
        return owner_here(self._memory, self)

    def _close(self, event: AfterInvocationEvent, turn: Turn) -> None:
        is_open = event.result is None or is_parked(event.result)
        try:
            remember(event.agent, self._name, turn.asker if is_open else None)
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self.warn("end", error)

    @_quietly
    def _begin(self, event: BeforeInvocationEvent) -> None:
        given = event.messages
        if given is None:  # a call for structured output: no turn, and its end would not be known
            return
        turn = self._turn(event.agent, event.invocation_state)
        turn.said = said_now(given)
        who = asker(turn.scope)
        turn.asker = who if given else asked(event.agent, self._name) or who
        if turn.asker != who:
            # What somebody asked must not be answered into another one's memory.
            self.warn(
                "turn", InvalidScopeError(field="user_id", value=who["user_id"], reason=ANOTHER)
            )
            turn.scope = None
        self._turns.begin(event.agent, event.invocation_state, turn)
        if is_extracted(event.agent, self._memory, turn.scope):
            for message in given:
                is_said = any(message is one for one in turn.said)
                stamp(message, self._memory, turn.scope if is_said else None, turn.step())

    @_quietly
    def _before_model(self, event: BeforeModelCallEvent) -> None:
        turn = self.find(event.agent, event.invocation_state)
        if turn is not None:
            enter(turn, MODEL_CALL)

    @_quietly
    def _after_model(self, event: AfterModelCallEvent) -> None:
        leave(MODEL_CALL, self)
        turn = self.find(event.agent, event.invocation_state)
        if turn is None or event.stop_response is None:
            return
        if is_extracted(event.agent, self._memory, turn.scope):
            stamp(event.stop_response.message, self._memory, turn.scope, turn.step())

    @_quietly
    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        state = event.invocation_state
        # A call of the program's own, `agent.tool.name(..., user_id=...)`, is a turn by itself.
        turn = self.find(event.agent, state) or self._turn(event.agent, state)
        enter(turn, _use(event))

    @_quietly
    def _after_tool(self, event: AfterToolCallEvent) -> None:
        leave(_use(event), self)

    def _turn(self, agent: Any, state: dict[str, Any]) -> Turn:
        default, outer = self._default, around()
        # A plugin with a user of its own keeps him, but not while it serves the caller's turn too.
        if outer is not None and (default.user_id is None or outer.holder is self):
            user_id = None if outer.scope is None else outer.scope.user_id
            default = replace(default, user_id=user_id)
        found = None
        try:
            found = scope_of(state, default, self._turns.conversation(agent))
        except InvalidScopeError as error:
            self.warn("scope", error)
        return Turn(memory=self._memory, scope=found, holder=self)
