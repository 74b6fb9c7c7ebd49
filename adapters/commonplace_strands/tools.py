"""Memory tools of an agent, for the user of its turn and never for one that a model names.

Those of the policy are the same in every adapter; the others list and read memories, and show their
history and relations. An error becomes the tool's result for the model, and the agent goes on.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakKeyDictionary

from strands import ToolContext, tool
from strands.types.content import Message as StrandsMessage
from strands.types.tools import AgentTool

from commonplace import InvalidScopeError, Memory, Policy, Record, RecordNotFoundError, Scope
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    OnEvent,
    Tool,
    await_until_warm,
    await_within,
    check_choice,
    check_flag,
    check_list,
    check_memory,
    check_policy,
    check_prefix,
    check_scope,
    hinting_call,
    search_scope,
)
from commonplace.agents import ToolName as SharedToolName
from commonplace.agents import tools as shared_tools

from .convert import describe, text_of
from .turn import TurnRecords, active_call
from .turn_owner import resolve_scope

ToolName = Literal[
    "search_memory", "add_memory", "update_memory", "forget_memory", "list_memories", "get_memory",
    "memory_history", "memory_relations",
]  # fmt: skip
ALL_TOOLS: tuple[ToolName, ...] = get_args(ToolName)
SHARED_TOOLS: tuple[SharedToolName, ...] = get_args(SharedToolName)
MAX_LISTED = 100
CONSENT = frozenset({"y", "yes", "true", "ok", "approve", "approved"})
ACTIONS = {"update_memory": "update", "forget_memory": "forget"}
NO_OWNER = (
    "is unknown: pass invocation_state={'user_id': ...} to the agent, or scope= to memory_tools"
)
REFUSED = "The user did not allow this. Nothing was changed."

T = TypeVar("T")


@hinting_call
def memory_tools(
    memory: Memory,
    *,
    scope: Scope | None = None,
    policy: Policy | None = None,
    tools: Sequence[ToolName] | None = None,
    tool_prefix: str = "",
    consent: bool = True,
    on_event: OnEvent | None = None,
) -> list[AgentTool]:
    """Make memory tools for `Agent(tools=...)`, with or without a `MemoryPlugin` on the agent.

    No argument that a model fills in names a user. A call without a user is an error that the model
    reads. `update_memory` and `forget_memory` take what these tools showed the same user since the
    last message with a text.

    Args:
        memory: an open memory; the tools do not close it.
        scope: whose memory. When missing, that of the user whom `invocation_state` names, or of the
            plugin's turn; of a direct call, `agent.tool.search_memory(..., user_id=...)`.
        policy: how the tools search and write; its mode and its note do not matter.
        tools: their names; the policy's when missing.
        tool_prefix: goes in front of their names.
        consent: as of `MemoryPlugin`.
        on_event: is called with each call of a tool.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        WrongTypeError, MemoryClosedError: `memory` is not an open `Memory`.
    """
    if scope is not None:
        check_scope(scope)
    given = Policy() if policy is None else policy
    check_policy(given)
    check_prefix("tool_prefix", tool_prefix)
    wanted: Sequence[ToolName] = given.tools if tools is None else tools
    check_tools(wanted)
    given = replace(given, mode="agent_control", tools=policy_tools(wanted))
    check_memory(memory)
    agent_memory = AgentMemory(memory, given, log="commonplace_strands", on_event=on_event)
    shown = ShownSinceQuestion(memory)

    def turn(context: ToolContext) -> tuple[Scope, TurnRecords]:
        state = context.invocation_state
        named = scope or resolve_scope(state, user_id=None, agent_id=None, session_id=None)
        if named is None and (call := active_call(memory)) is not None:
            named = call.turn.scope
        if named is None:
            raise InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
        return named, shown.of(context, named)

    return MemoryTools(memory, agent_memory, turn, consent=consent).select(wanted, tool_prefix)


class ShownSinceQuestion:
    """What tools showed of a memory since the user's last message, or a plugin's turn showed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._shown: WeakKeyDictionary[Any, tuple[Any, Scope, TurnRecords]] = WeakKeyDictionary()

    def of(self, context: ToolContext, scope: Scope) -> TurnRecords:
        """Return what the model of a tool call was shown of this owner."""
        call = active_call(self._memory)
        turn_scope = None if call is None else call.turn.scope
        if call is not None and turn_scope is not None and turn_scope.owner == scope.owner:
            return call.turn.shown
        # Without a plugin a turn is known by what the user said last.
        asked = next((one for one in reversed(context.agent.messages) if _is_question(one)), None)
        last = self._shown.get(context.agent)
        if last is not None and last[0] is asked and last[1] == scope.owner:
            return last[2]
        shown = TurnRecords()
        self._shown[context.agent] = asked, scope.owner, shown
        return shown


def check_tools(names: Sequence[ToolName]) -> None:
    """Check names of tools.

    Raises:
        InvalidRecordError: they are no list, or there is no tool of a name.
    """
    check_list("tools", names, "names of tools")
    for name in names:
        check_choice("tools", name, ALL_TOOLS)


def policy_tools(names: Sequence[ToolName]) -> tuple[SharedToolName, ...]:
    """Choose the names of tools that a policy may have."""
    return tuple(name for name in SHARED_TOOLS if name in names)


class MemoryTools:
    """The bodies of the tools; most signatures and docstrings are what models read.

    Args:
        memory: an open memory.
        agent_memory: the same, as the agent uses it; its policy has the shared ones of the tools.
        turn: returns the scope of the turn around a call, and what its model was shown; raises
            `InvalidScopeError` without an owner.
        consent: ask the person behind the agent before a memory is changed or deleted.

    Raises:
        InvalidRecordError: `consent` is neither True nor False.
    """

    def __init__(
        self,
        memory: Memory,
        agent_memory: AgentMemory,
        turn: Callable[[ToolContext], tuple[Scope, TurnRecords]],
        *,
        consent: bool = True,
    ) -> None:
        check_flag("consent", consent)
        self._memory = memory
        self._agent_memory = agent_memory
        self._turn = turn
        self._consent = consent

    def select(self, names: Sequence[ToolName], prefix: str = "") -> list[AgentTool]:
        """Make the tools of these names, in the order of `ALL_TOOLS`; often none."""
        shared = {one.name: one for one in shared_tools(self._agent_memory.policy)}
        selected: list[AgentTool] = []
        for name in ALL_TOOLS:
            if name in names and name in shared:
                selected.append(self._shared(shared[name], prefix))
            elif name in names:
                selected.append(tool(name=prefix + name, context=True)(getattr(self, name)))
        return selected

    def _shared(self, described: Tool, prefix: str) -> AgentTool:
        """Make a tool that all adapters have, with the arguments as the model gave them."""

        async def call(tool_context: ToolContext) -> Any:
            return await self._call(described, tool_context)

        made: AgentTool = tool(
            name=prefix + described.name,
            description=described.description,
            inputSchema={"json": dict(described.schema)},
            context=True,
        )(call)
        return made

    async def _call(self, described: Tool, context: ToolContext) -> Any:
        scope, shown = self._turn(context)
        arguments: dict[str, Any] = dict(context.tool_use["input"] or {})
        if _is_direct(context):
            # What names the user is in the arguments of a direct call too.
            known = described.schema["properties"]
            arguments = {name: one for name, one in arguments.items() if name in known}
        if described.name == "search_memory":
            await await_until_warm(self._memory, WRITE_PATIENCE)
        if described.name in ACTIONS:
            record = await self._shown_record(scope, shown, arguments.get("memory_id"), context)
            is_complete = all(name in arguments for name in described.schema["required"])
            if record is not None and is_complete:
                reason = {"action": ACTIONS[described.name], "memory": _to_json(record)}
                reason |= {"text": arguments["text"]} if "text" in arguments else {}
                if not self._has_consent(context, described.name, reason):
                    return _refusal()
        return await self._agent_memory.acall_tool(described.name, arguments, scope, shown)

    async def _shown_record(
        self, scope: Scope, shown: TurnRecords, memory_id: object, context: ToolContext
    ) -> Record | None:
        """Find what a tool may change: for a model, only what it was shown in this turn."""
        if type(memory_id) is not str:
            return None
        where = search_scope(scope, self._agent_memory.policy)
        await _bounded(shown.restore(self._memory, where))
        if _is_direct(context) and (record := await _bounded(self._memory.aget(memory_id, where))):
            shown.add_record(record)
        return shown.find(memory_id)

    async def list_memories(
        self, tool_context: ToolContext, limit: int = 20, cursor: str | None = None
    ) -> dict[str, Any]:
        """List what is remembered about this user, newest first.

        Args:
            limit: How many memories to list, 1 to 100.
            cursor: The cursor that the list before gave, to go on after it.
        """
        scope, shown = self._turn(tool_context)
        limit = max(1, min(limit, MAX_LISTED))
        policy = self._agent_memory.policy
        listing = self._memory.alist(
            scope.owner, kinds=policy.kinds, where=policy.where, limit=limit, cursor=cursor
        )
        page = await _bounded(listing)
        for record in page.records:
            shown.add_record(record)
        return _success(memories=[_to_json(one) for one in page.records], cursor=page.cursor)

    async def get_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Read one memory of this user by its id.

        Args:
            memory_id: The id, as a note, a search, a list or a write gave it.
        """
        scope, shown = self._turn(tool_context)
        record_id = _full_id(shown, memory_id)
        record = await _bounded(self._memory.aget(record_id, scope.owner))
        if record is None:
            raise RecordNotFoundError(record_id=memory_id)
        shown.add_record(record)
        return _success(**_to_json(record))

    async def memory_history(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """List every version of one memory of this user, oldest first, also of a deleted one.

        Args:
            memory_id: The id, as a note, a search, a list or a write gave it.
        """
        scope, shown = self._turn(tool_context)
        record_id = _full_id(shown, memory_id)
        versions = await _bounded(self._memory.ahistory(record_id, scope.owner))
        if not versions:
            raise RecordNotFoundError(record_id=memory_id)
        history = [
            {"event": one.event, "text": one.text, "previous": one.previous}
            | {"version": one.version, "at": one.at.isoformat()}
            for one in versions
        ]
        return _success(history=history)

    async def memory_relations(
        self, tool_context: ToolContext, entity: str | None = None, hops: int = 1
    ) -> dict[str, Any]:
        """List how people, places and things that this user spoke of are related; at most 100.

        Args:
            entity: A name, to list only what is around it.
            hops: How many relations away from the name, 1 to 3.
        """
        scope, _ = self._turn(tool_context)
        found = await _bounded(self._memory.arelations(scope.owner, entity, hops=hops))
        relations = [
            {"subject": one.subject, "predicate": one.predicate, "object": one.object}
            for one in found[-MAX_LISTED:]
        ]
        return _success(relations=relations)

    # -- wiring --------------------------------------------------------------------------------

    def _has_consent(self, context: ToolContext, name: str, reason: dict[str, Any]) -> bool:
        """Interrupt the agent to ask for consent; its answer comes when the agent is resumed.

        A tool that the program itself calls, `agent.tool.forget_memory(...)`, has its consent.
        """
        if _is_direct(context) or not self._consent:
            return True
        answer = context.interrupt(f"commonplace.{name}", reason=reason)
        return answer is True or (type(answer) is str and answer.strip().lower() in CONSENT)


def _is_question(message: StrandsMessage) -> bool:
    return message["role"] == "user" and bool(text_of(message))


def _is_direct(context: ToolContext) -> bool:
    return "event_loop_cycle_id" not in context.invocation_state


def _full_id(shown: TurnRecords, memory_id: str) -> str:
    record = shown.find(memory_id)
    return memory_id if record is None else record.id


async def _bounded(work: Coroutine[Any, Any, T]) -> T:
    return await await_within(WRITE_PATIENCE, "the memory", work)


def _to_json(record: Record) -> dict[str, Any]:
    return {"text": record.text, **describe(record)}


def _success(**value: Any) -> dict[str, Any]:
    return {"status": "success", "content": [{"json": value}]}


def _refusal() -> dict[str, Any]:
    return {"status": "error", "content": [{"text": REFUSED}]}
