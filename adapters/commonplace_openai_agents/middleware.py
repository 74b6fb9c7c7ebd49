"""Hooks of a run: recall before a turn, write after it, tools in between, each turn for its user.

The note is part of an agent's instructions, which no session and no server keeps. What fails is
logged to `commonplace_openai_agents`, and the agent goes on without memory.
"""

import inspect
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from agents import Agent, FunctionTool, ModelResponse, RunContextWrapper, RunHooks
from agents.tool_context import ToolContext

from commonplace import InvalidScopeError, Message, Policy, Scope
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    Conversation,
    LRUCache,
    MemoryCounters,
    MemorySource,
    OnEvent,
    ShownRecords,
    Tool,
    check_id_source,
    field_of,
    hinting_init,
    in_session,
    instructions,
    render,
    shown,
    to_messages,
    to_scope,
    tools,
)

from .convert import answer_of, text_of, user_texts
from .sessions import CommonplaceSession, Id

IdSource = Id | Callable[[Any], Id | None]
"""An id, or a function that reads it from a run's context and returns None if that has none."""

Run = RunContextWrapper[Any]
Instructions = str | Callable[[Run, Agent[Any]], Any] | None
_UNANSWERED = 10_000  # texts


class NoUserError(InvalidScopeError):
    """A run that names nobody has no memory."""


@dataclass(kw_only=True, eq=False)
class OpenAITurn:
    """One run, or both parts of one that an approval has cut in two.

    Attributes:
        asked: what the user said, by its key among what is not answered; nothing if a model did.
        note: what the model is shown; None before the recall.
        answer: what the model said last.
    """

    scope: Scope
    asked: dict[tuple[str, int, str], list[Message]] = field(default_factory=dict)
    note: str | None = None
    shown: ShownRecords = field(default_factory=ShownRecords)
    answer: str = ""
    is_over: bool = False

    @property
    def messages(self) -> list[Message]:
        """What the user said."""
        return [message for messages in self.asked.values() for message in messages]


@hinting_init
class MemoryHooks(RunHooks[Any]):
    """Long-term memory for agents of the SDK; one instance serves many agents and users at once.

    `Agent(instructions=memory.instructions("..."), tools=memory.tools)` shows an agent the note and
    gives it the tools; `Runner.run(..., hooks=memory)` stores what the user says, before the first
    call of a model, and the answer. A run without these hooks stores nothing, nor does an agent
    that another one calls as a tool, though it recalls for the same user.

    Args:
        memory: an open memory, which stays open; the path of its folder, opened on first use; or
            None for the location that the environment names, `./memory` by default.
        user_id: the user's id, or a function that reads it from the `context=` of a run; by default
            its `user_id`. A run that names nobody has no memory; an id that cannot be used raises
            `InvalidScopeError` before the model is called. A `session_id` in the context is the
            session of the turn.
        agent_id: the agent's id, or such a function; None for memories of no particular agent.
        policy: how agents use the memory; a note is shown in one run, so `inject` may not be
            `persist`. The first search may take 10 seconds, as it may load a model.
        on_event: called after each recall, write and tool call.

    Attributes:
        tools: those of the policy, for `Agent(tools=...)`.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is none of those, or closed.
        InvalidScopeError, InvalidRecordError: an id or another argument cannot be used.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: IdSource | None = None,
        agent_id: IdSource | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        is_read = user_id is None or check_id_source("user_id", user_id)
        to_scope("-" if is_read else user_id, None if callable(agent_id) else agent_id)
        self._ids = user_id, agent_id
        self._memory = AgentMemory(
            memory,
            policy,
            log="commonplace_openai_agents",
            keeps_notes=False,
            first_recall_timeout=WRITE_PATIENCE,
            on_event=on_event,
        )
        self.policy: Policy = self._memory.policy
        self._turns: WeakKeyDictionary[Run, OpenAITurn] = WeakKeyDictionary()
        # By what hooks and tools are told of a run: its usage, and the agent.
        self._running: WeakValueDictionary[tuple[int, int], OpenAITurn] = WeakValueDictionary()
        self._unanswered = LRUCache[tuple[str, int, str], str](_UNANSWERED)
        given = tools(self.policy) if self.policy.has_tools else ()
        self.tools: list[FunctionTool] = [*map(self._to_tool, given)]

    def instructions(self, given: Instructions = None) -> Callable[[Run, Agent[Any]], Any]:
        """Make an agent's instructions: given ones, those of the tools if it has them, the note."""

        async def with_memory(context: Run, agent: Agent[Any]) -> str:
            own = given(context, agent) if callable(given) else given
            parts = [await own if inspect.isawaitable(own) else own]
            if {tool.name for tool in self.tools} <= {tool.name for tool in agent.tools}:
                parts.append(instructions(self.policy))
            parts.append(await self._note(context, agent))
            return "\n\n".join(part for part in parts if part)

        return with_memory

    def counters(self) -> MemoryCounters:
        """Return how often each event has happened, with those of the tools."""
        return self._memory.counters()

    async def on_llm_start(self, context: Run, agent: Agent[Any], *_: Any, **__: Any) -> None:
        """Accept what the user said, before the model is called."""
        turn = self._turn(context, agent)
        if turn is not None and self.policy.is_static:
            await self._memory.aaccept(turn.messages, turn.scope, turn.shown)

    async def on_llm_end(self, context: Run, agent: Agent[Any], response: ModelResponse) -> None:
        """Note what the model said."""
        turn = self._turn(context, agent)
        if turn is not None:
            turn.answer = answer_of(response)

    async def on_agent_end(self, context: Run, agent: Agent[Any], output: Any) -> None:
        """End a turn: store what the user said, and the answer of the model."""
        turn = self._running.pop((id(context.usage), id(agent)), None)
        if turn is None or not turn.asked or not self.policy.is_static:
            return
        turn.is_over = True
        for key in turn.asked:
            self._unanswered.pop(key)
        answer = to_messages(turn.answer, "assistant", "", uuid.uuid4().hex)
        await self._memory.awrite([*turn.messages, *answer], turn.scope)

    def _turn(self, context: Run, agent: Agent[Any]) -> OpenAITurn | None:
        """Find or begin the turn of a run; None, logged once, for nobody."""
        try:
            scope = self._scope_of(context.context)
        except NoUserError as error:
            self._memory.warn("scope", error)
            return None
        turn = self._turns.get(context)
        if turn is None or turn.is_over or turn.scope != scope:
            turn = self._turns[context] = OpenAITurn(scope=scope)
            # What a model asks an agent that is a tool, no user said.
            said = {} if isinstance(context, ToolContext) else user_texts(context.turn_input)
            given = context.context
            ids = given.message_ids() if isinstance(given, CommonplaceSession) else {}
            for position, text in said.items():
                key = (scope.key, position, text)
                # What failed and is said again is the same message.
                new_id = ids.get(text) or uuid.uuid4().hex
                message_id = self._unanswered.setdefault(key, new_id)
                turn.asked[key] = to_messages(text, "user", "", message_id)
        self._running[id(context.usage), id(agent)] = turn
        return turn

    async def _note(self, context: Run, agent: Agent[Any]) -> str:
        turn = self._turn(context, agent)
        if turn is None or not self.policy.is_static:
            return ""
        if turn.note is None:
            query = "\n".join(user_texts(context.turn_input).values())
            held = Conversation(texts=[*map(text_of, context.turn_input)], shown=turn.shown)
            found = await self._memory.arecall(turn.scope, query, held)
            self._memory.raise_misconfiguration()
            turn.shown.add(shown(found, self.policy))
            turn.note = render(found, self.policy)
        return turn.note

    def _tool_turn(self, context: ToolContext[Any]) -> tuple[Scope, ShownRecords]:
        turn = self._running.get((id(context.usage), id(context.agent)))
        if turn is not None:
            return turn.scope, turn.shown
        return self._scope_of(context.context), ShownRecords()

    def _scope_of(self, context: object) -> Scope:
        """Make the scope of a run, in the session that its context names."""
        user_id, agent_id = self._ids
        user_id = field_of(context, "user_id") if user_id is None else user_id
        try:
            user, agent = (one(context) if callable(one) else one for one in (user_id, agent_id))
        except Exception as error:
            raise NoUserError(
                field="user_id", value=None, reason=f"cannot be read ({error})"
            ) from error
        if user is None:
            reason = "is unknown: give the run context={'user_id': ...}"
            raise NoUserError(field="user_id", value=None, reason=reason)
        return in_session(to_scope(user, agent), field_of(context, "session_id"))

    def _to_tool(self, tool: Tool) -> FunctionTool:
        """Make a tool as the SDK runs it; what fails becomes a text that the model reads."""

        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            try:
                given = json.loads(arguments or "{}")
                return await self._memory.acall_tool(tool.name, given, *self._tool_turn(context))
            except Exception as error:
                return f"Error in {tool.name}: {error}"

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=dict(tool.schema),
            on_invoke_tool=invoke,
            strict_json_schema=False,  # it has optional arguments
        )
