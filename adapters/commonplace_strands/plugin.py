"""Memory plugin: recall before a turn, write after it, tools in between, each turn for its user.

No hook raises: the framework would end the agent's turn, or lose its answer. What fails is logged
to `commonplace_strands`, and the agent goes on without memory. An id that cannot be used is the one
exception: it ends the turn before the model is called.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

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
from strands.plugins import Plugin

from commonplace import InvalidScopeError, Match, Policy, Scope
from commonplace.agents import (
    DEFAULT_TOOLS,
    WRITE_PATIENCE,
    AgentMemory,
    Conversation,
    EventName,
    LazyMemory,
    MemoryCounters,
    MemorySource,
    OnEvent,
    check_id_source,
    check_prefix,
    hinting_init,
    instructions,
    render,
    shown,
)

from .convert import (
    ModelCallContext,
    add_instructions,
    add_note,
    conversation_texts,
    new_user_messages,
    summary_of,
    text_of,
)
from .extraction import is_extracted
from .multiagent_turns import Caller, caller_of, run_of
from .tools import ExtraTool, MemoryTools
from .turn import (
    MODEL_CALL,
    StrandsTurn,
    TurnRecords,
    TurnRegistry,
    active_call,
    asker_of,
    calling_turn,
    conversation_id,
    digest_of,
    enter_call,
    exit_call,
    exit_turn,
    is_torn_down,
    load_open_turn,
    save_open_turn,
)
from .turn_owner import NO_OWNER, IdSource, owner_scope, resolve_scope, tag_message

try:
    from strands.middleware.stages import InvokeModelStage
except ImportError:  # it was private before it was public, and did the same
    from strands._middleware.stages import (  # type: ignore[import-not-found, no-redef]
        InvokeModelStage,
    )

NAME = "commonplace"
OTHER_OWNER = "must be the user who asked: the turn it resumes belongs to another one"

AnyEvent = TypeVar("AnyEvent")

_served: WeakKeyDictionary[Agent, WeakSet[LazyMemory]] = WeakKeyDictionary()
_followed: WeakKeyDictionary[Agent, WeakSet[LazyMemory]] = WeakKeyDictionary()


def _never_raises(hook: "Callable[[MemoryPlugin, AnyEvent], None]") -> Any:
    @wraps(hook)
    def logged(self: "MemoryPlugin", event: AnyEvent) -> None:
        try:
            hook(self, event)
        except InvalidScopeError:  # an id of the turn's caller, who must hear of it
            raise
        except Exception as error:
            self._agent_memory.warn(hook.__name__.strip("_"), error)

    return logged


@hinting_init
class MemoryPlugin(Plugin):
    """Long-term memory for Strands agents; one instance serves many agents and users at once.

    The caller of the agent names the owner of the memory with each turn:
    `agent(prompt, invocation_state={"user_id": ...})`, with `agent_id` and `session_id` if you
    like. A turn without an owner has no memory; an id that cannot be used raises
    `InvalidScopeError` out of the agent's call, before its model is called.

    An agent that another agent, a graph or a swarm calls recalls for the same user and writes
    nothing: what it is asked was not said by the user.

    What the framework writes when it shortens a conversation, a `SummarizingConversationManager` or
    a context manager, is kept as the summary of the session (`Session.summary`), and stands in the
    first note of the user's next one.

    With a `MemoryManager` on the same agent, its stores without a scope of their own follow the
    turn's user. What the manager extracts into this memory the plugin does not write, what the
    plugin shows the manager's stores do not find again, and a tool whose name is taken is left out.

    Args:
        memory: an open memory, the path of its folder, or None for the environment's location,
            which is `./memory` by default. The plugin does not close it.
        user_id: owner of a turn whose caller names none; or a function that reads it from the
            `invocation_state`, and answers None for nobody.
        agent_id: agent of a turn whose caller names none, likewise.
        policy: how agents use the memory. A note is shown to one call of the model, so that
            `inject="persist"` is refused.
        on_event: is called with each recall, write and tool call.
        extra_tools: tools that the agent gets beside the policy's, in the modes that have tools.
        tool_prefix: goes in front of the tools' names, and distinguishes several plugins of one
            agent.
        consent: ask the person behind the agent, by an interrupt, before a tool changes or deletes
            a memory.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
    """

    name: str = NAME

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: IdSource | None = None,
        agent_id: IdSource | None = None,
        policy: Policy | None = None,
        on_event: OnEvent | None = None,
        extra_tools: Sequence[ExtraTool] = (),
        tool_prefix: str = "",
        consent: bool = True,
    ) -> None:
        check_prefix("tool_prefix", tool_prefix)
        self.name = f"{NAME}:{tool_prefix}" if tool_prefix else NAME
        super().__init__()
        ids = (("user_id", user_id), ("agent_id", agent_id))
        owner_scope(*(None if check_id_source(name, source) else source for name, source in ids))
        self._agent_memory = AgentMemory(
            memory,
            policy,
            log="commonplace_strands",
            keeps_notes=False,
            on_event=on_event,
        )
        self.policy: Policy = self._agent_memory.policy
        self._memory = self._agent_memory.lazy
        self._user_id = user_id
        self._agent_id = agent_id
        self._turns = TurnRegistry()
        made = MemoryTools(self._agent_memory, self._tool_turn, consent=consent)
        self._agent_tools = made.select(extra_tools, tool_prefix)
        has_both = set(DEFAULT_TOOLS) <= set(self.policy.tools)
        self._instructions = instructions(self.policy, tool_prefix) if has_both else ""

    def init_agent(self, agent: Agent) -> None:
        """Serve an agent from its next turn on; the memory warms up meanwhile."""
        _served.setdefault(agent, WeakSet()).add(self._memory)
        self._memory.prepare()
        self._attach(agent)

    def _attach(self, agent: Agent) -> None:
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
        fresh: list[Any] = [tool for tool in self._agent_tools if tool.tool_name not in taken]
        if fresh:
            agent.tool_registry.process_tools(fresh)

    def counters(self) -> MemoryCounters:
        """Read how often each event happened."""
        return self._agent_memory.counters()

    # -- turns ---------------------------------------------------------------------------------

    @_never_raises
    def _before_invocation(self, event: BeforeInvocationEvent) -> None:
        given, agent = event.messages, event.agent
        if given is None:  # a call for structured output: no turn, and its end would not be known
            return
        caller = caller_of(agent, event.invocation_state)
        turn = self._new_turn(caller.orchestrator or agent, event.invocation_state)
        self._resume(turn, load_open_turn(agent, self.name), given)
        self._turns.begin(agent, event.invocation_state, turn)
        asked = new_user_messages(given)
        turn.query = "\n".join(map(text_of, asked))
        turn.is_inner = bool(caller)
        save_open_turn(agent, self.name, turn)  # a session stores it with the user's message
        if turn.is_inner:
            self._join_run(turn, caller)
            return
        turn.asked = asked
        if is_extracted(agent, self._memory, turn.scope):
            self._tag(turn, given)

    def _resume(
        self, turn: StrandsTurn, opened: Mapping[str, Any] | None, given: Sequence[Any]
    ) -> None:
        """Go on with the turn that an interrupt or a failure left open, if this is the same."""
        owner = turn.asker = asker_of(turn.scope)
        turn.asked_digest = digest_of(new_user_messages(given))
        if opened is None:
            return
        is_same = all(opened.get(name) == value for name, value in owner.items())
        if is_same and (not given or opened.get("asked") == turn.asked_digest):
            turn.asked_id = str(opened.get("asked_id") or turn.asked_id)
        if given:
            return
        turn.asker = {name: opened.get(name) for name in owner}
        turn.asked_digest = str(opened.get("asked"))
        restored = opened.get("shown")
        turn.shown = TurnRecords(restored if isinstance(restored, list) else ())
        if not is_same:
            # What somebody asked must not be answered into another one's memory.
            error = InvalidScopeError(
                field="user_id",
                value=owner["user_id"],
                reason=OTHER_OWNER,
                hint="Resume it as that user, or give each user an agent of their own.",
            )
            self._agent_memory.warn("turn", error)
            turn.scope = None

    def _join_run(self, turn: StrandsTurn, caller: Caller) -> None:
        """Have the run of a graph or swarm remembered when it ends, instead of this turn."""
        if caller.orchestrator is None:
            return
        run = run_of(caller.orchestrator, turn.asked_id)
        if run is not None:
            turn.run, turn.asked_id = run, run.run_id
            turn.query = run.take_task(turn.query) or turn.query
            if turn.scope is not None and self.policy.is_static:
                run.join(self._agent_memory, turn.scope)

    def _tag(self, turn: StrandsTurn, given: Sequence[Any]) -> None:
        """Tag the messages that a memory manager extracts."""
        ids = iter(turn.message_ids())
        for message in given:
            is_new = any(message is asked for asked in turn.asked)
            message_id = next(ids) if is_new else ""
            tag_message(message, self._memory, turn.scope if is_new else None, message_id)

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        turn = self._turns.end(event.agent, event.invocation_state)
        if turn is None:
            return
        exit_turn(turn)
        try:
            answer = turn.answer(event.result, event.agent.messages)
            save_open_turn(event.agent, self.name, None if answer else turn)
            if turn.run is not None:
                turn.run.answers[id(event.agent)] = answer
            messages = [] if turn.is_inner else turn.messages(answer)
        except Exception as error:
            self._agent_memory.warn("after_invocation", error)
            return
        if turn.scope is None or not self.policy.is_static:
            return
        if is_extracted(event.agent, self._memory, turn.scope):
            return
        if is_torn_down():
            self._agent_memory.write_later(messages, turn.scope)
        else:
            await self._agent_memory.awrite(messages, turn.scope)
            if not turn.is_inner:
                await self._keep_summary(event.agent, turn.scope)

    async def _keep_summary(self, agent: Agent, scope: Scope) -> None:
        """Keep what the framework made of older messages as the summary of the session."""
        with self._agent_memory.warn.catch("summary"):
            text = summary_of(agent.conversation_manager.get_state(), agent.messages)
            held = Conversation(texts=conversation_texts(agent.messages))
            await self._agent_memory.asummarize(text, scope, held)

    def _new_turn(self, conversation: Any, state: dict[str, Any]) -> StrandsTurn:
        """Make the turn of an invocation."""
        user_id, caller = self._user_id, calling_turn()
        # A plugin with a user of its own keeps it, but not while it serves the caller's turn too.
        if caller is not None and (user_id is None or caller.plugin is self):
            user_id = None if caller.scope is None else caller.scope.user_id
        scope = resolve_scope(
            state,
            user_id=user_id,
            agent_id=self._agent_id,
            session_id=conversation_id(conversation),
        )
        if scope is None:
            self._warn_of_nobody()
        return StrandsTurn(memory=self._memory, scope=scope, plugin=self)

    def _warn_of_nobody(self) -> None:
        missing = InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
        self._agent_memory.warn("scope", missing)

    def _tool_turn(self, _context: ToolContext) -> tuple[Scope, TurnRecords]:
        call = active_call(self._memory, self)
        if call is None or call.turn.scope is None:
            raise InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
        return call.turn.scope, call.turn.shown

    # -- calls of models and tools -------------------------------------------------------------

    @_never_raises
    def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        turn = self._turns.find(event.agent, event.invocation_state)
        if turn is not None:
            turn.is_model_called = False
            enter_call(turn, event.agent, MODEL_CALL)

    @_never_raises
    def _after_model_call(self, event: AfterModelCallEvent) -> None:
        exit_call(MODEL_CALL, self)
        turn = self._turns.find(event.agent, event.invocation_state)
        # A hook that denies a call has an answer of its own, which no model wrote.
        if turn is None or event.stop_response is None or not turn.is_model_called:
            return
        turn.spoken = event.stop_response.message
        if not turn.is_inner and is_extracted(event.agent, self._memory, turn.scope):
            tag_message(turn.spoken, self._memory, turn.scope, turn.next_id())

    @_never_raises
    def _before_tool_call(self, event: BeforeToolCallEvent) -> None:
        state = event.invocation_state
        # A direct call of the program, `agent.tool.name(..., user_id=...)`, is a turn by itself.
        turn = self._turns.find(event.agent, state) or self._new_turn(event.agent, state)
        enter_call(turn, event.agent, _tool_call_key(event))

    @_never_raises
    def _after_tool_call(self, event: AfterToolCallEvent) -> None:
        exit_call(_tool_call_key(event), self)

    async def _show_note(self, call: ModelCallContext) -> ModelCallContext:
        with self._agent_memory.warn.catch("note"):
            call = add_instructions(call, self._instructions)
            turn = self._turns.find(call.agent, call.invocation_state)
            if turn is not None:
                turn.is_model_called = True
                if turn.scope is not None and self.policy.is_static:
                    call = await self._add_note(call, turn, turn.scope)
                elif self._memory.opened is None:
                    await self._memory.await_open(WRITE_PATIENCE)
        self._agent_memory.raise_misconfiguration()
        return call

    async def _add_note(
        self, call: ModelCallContext, turn: StrandsTurn, scope: Scope
    ) -> ModelCallContext:
        active = active_call(self._memory, self)
        shown_ids = active.shown_ids if active else set()
        said = conversation_texts(call.messages)
        held = Conversation(texts=said, ids=shown_ids, shown=turn.shown)
        if turn.matches is None:
            turn.matches = []  # a turn recalls once
            try:
                if turn.query:
                    turn.matches = await self._recall(scope, turn.query, held)
            finally:  # also when it is cancelled meanwhile
                await self._accept(call.agent, turn, scope)
        matches = [match for match in turn.matches if match.record.id not in shown_ids]
        if active is not None:
            active.shown_ids.update(match.record.id for match in matches)
            active.note = render(matches, self.policy)
        turn.shown.add(shown(matches, self.policy))
        return add_note(call, matches, self.policy)

    async def _accept(self, agent: Any, turn: StrandsTurn, scope: Scope) -> None:
        """Accept what the user said, unless a memory manager extracts it."""
        if turn.run is not None:
            await turn.run.accept(self._agent_memory)
        elif turn.asked and not is_extracted(agent, self._memory, scope):
            await self._agent_memory.aaccept(turn.messages(""), scope, turn.shown)

    async def _recall(self, scope: Scope, query: str, held: Conversation) -> list[Match]:
        """Recall; the first time wait for the memory to open, 10 seconds at most."""
        start = time.monotonic()
        try:
            await self._memory.await_open(WRITE_PATIENCE)
        except Exception as error:
            is_late = isinstance(error, TimeoutError)
            name: EventName = "timed_out" if is_late else "failed"
            self._agent_memory.report(name, "recall", scope, start, error=error)
            return []
        return await self._agent_memory.arecall(scope, query, held)


class TurnFollower(MemoryPlugin):
    """The scope of an agent's turns for memory stores, where no plugin of the memory has it.

    Recalls, shows and writes nothing. A plugin that the agent gets later takes its place.
    """

    def __init__(self, memory: LazyMemory) -> None:
        super().__init__(cast("Any", memory), policy=Policy(mode="agent_control", tools=()))
        self.name = f"{NAME}:turns"

    def init_agent(self, agent: Agent) -> None:
        """Follow an agent's turns; nothing if they are followed already."""
        followed = _followed.setdefault(agent, WeakSet())
        if self._memory not in followed:
            followed.add(self._memory)
            self._attach(agent)

    def _before_invocation(self, event: BeforeInvocationEvent) -> None:
        if self._is_needed(event.agent):
            super()._before_invocation(event)

    def _before_tool_call(self, event: BeforeToolCallEvent) -> None:
        if self._is_needed(event.agent):
            super()._before_tool_call(event)

    def _warn_of_nobody(self) -> None:
        """Leave it to the stores, which know whether a user is missing."""

    def _is_needed(self, agent: Agent) -> bool:
        return self._memory not in _served.get(agent, ())


def _tool_call_key(event: BeforeToolCallEvent | AfterToolCallEvent) -> str:
    # Models make the ids up: an agent and one within its tools may use the same.
    return f"{id(event.agent)}:{event.tool_use['toolUseId']}"


def _add_middleware(agent: Agent, change: Callable[[ModelCallContext], Any]) -> None:
    """Change each model call of an agent: the one place to show a model more than is kept.

    The framework's own history, its sessions and its listeners never see what is added there.
    """
    registry: Any = agent if hasattr(agent, "add_middleware") else agent._middleware_registry  # noqa: SLF001 -- as above
    registry.add_middleware(InvokeModelStage.Input, change)
