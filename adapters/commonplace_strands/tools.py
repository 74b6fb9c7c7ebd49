"""Memory tools of an agent, for the user of its turn and never for one that a model names.

Those of the policy are the same in every adapter; the others list and read memories, and show their
history and relations. An error becomes the tool's result for the model, and the agent goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

from strands import ToolContext, tool
from strands.types.tools import AgentTool

from commonplace import InvalidScopeError, Policy, Record, RecordNotFoundError, Scope
from commonplace.agents import (
    WRITE_PATIENCE,
    AgentMemory,
    LazyMemory,
    MemorySource,
    OnEvent,
    Tool,
    call,
    check_choice,
    check_flag,
    check_list,
    check_prefix,
    fold_policy,
    hinting_call,
    search_scope,
)
from commonplace.agents import tools as shared_tools

from .convert import describe, text_of
from .turn import TurnRecords, active_call, own_turn
from .turn_owner import Id, owner_scope, resolve_scope

ExtraTool = Literal["list_memories", "get_memory", "memory_history", "memory_relations"]
MAX_LISTED = 100
CONSENT = frozenset({"y", "yes", "true", "ok", "approve", "approved"})
ACTIONS = {"update_memory": "update", "forget_memory": "forget", "drop_instruction": "drop"}
NO_OWNER = (
    "is unknown: pass invocation_state={'user_id': ...} to the agent, or user_id= to memory_tools"
)
REFUSED = "The user did not allow this. Nothing was changed."


@hinting_call
def memory_tools(
    memory: MemorySource = None,
    *,
    user_id: Id | None = None,
    agent_id: Id | None = None,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
    extra_tools: Sequence[ExtraTool] = (),
    tool_prefix: str = "",
    consent: bool = True,
) -> list[AgentTool]:
    """Make memory tools for `Agent(tools=...)`, with or without a `MemoryPlugin` on the agent.

    No argument that a model fills in names a user. A call without a user is an error that the model
    reads. `update_memory` and `forget_memory` take what these tools showed the same user since the
    last message with a text.

    Args:
        memory: see `MemoryPlugin`.
        user_id, agent_id: whose memory, whoever calls. When both are missing, that of the user whom
            `invocation_state` names, or of the plugin's turn; of a direct call,
            `agent.tool.search_memory(..., user_id=...)`.
        policy: which tools there are, and how they search and write; its mode and what it says of
            notes do not matter.
        on_event: is called with each call of a tool.
        extra_tools: tools beside the policy's.
        tool_prefix: goes in front of their names.
        consent: see `MemoryPlugin`.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
    """
    owner = owner_scope(user_id, agent_id)
    check_prefix("tool_prefix", tool_prefix)
    policy = replace(fold_policy(policy, {}), mode="agent_control")
    agent_memory = AgentMemory(memory, policy, log="commonplace_strands", on_event=on_event)
    shown = ShownSinceQuestion(agent_memory.lazy)

    def turn(context: ToolContext) -> tuple[Scope, TurnRecords]:
        scope = owner or resolve_scope(context.invocation_state)
        if scope is None and (call := active_call(agent_memory.lazy)) is not None:
            scope = call.turn.scope
        if scope is None:
            raise InvalidScopeError(field="user_id", value=None, reason=NO_OWNER)
        return scope, shown.of(context, scope)

    return MemoryTools(agent_memory, turn, consent=consent).select(extra_tools, tool_prefix)


class ShownSinceQuestion:
    """What tools showed of a memory since the user's last message, or a plugin's turn showed."""

    def __init__(self, memory: LazyMemory) -> None:
        self._memory = memory
        self._shown: WeakKeyDictionary[Any, tuple[Any, Scope, TurnRecords]] = WeakKeyDictionary()

    def of(self, context: ToolContext, scope: Scope) -> TurnRecords:
        """Return what the model of a tool call was shown of this owner."""
        if (turn := own_turn(self._memory, scope)) is not None:
            return turn.shown
        # Without a plugin a turn is known by what the user said last.
        said = (one for one in context.agent.messages[::-1] if one["role"] == "user")
        asked = next(filter(text_of, said), None)
        last = self._shown.get(context.agent)
        if last is not None and last[0] is asked and last[1] == scope.owner:
            return last[2]
        shown = TurnRecords()
        self._shown[context.agent] = asked, scope.owner, shown
        return shown


class MemoryTools:
    """The bodies of the tools; most signatures and docstrings are what models read.

    Args:
        memory: as the agent uses it; its policy says which of the shared tools there are.
        turn: returns the scope of the turn around a call, and what its model was shown; raises
            `InvalidScopeError` without an owner.
        consent: ask the person behind the agent before a memory is changed or deleted.

    Raises:
        InvalidRecordError: `consent` is neither True nor False.
    """

    def __init__(
        self,
        memory: AgentMemory,
        turn: Callable[[ToolContext], tuple[Scope, TurnRecords]],
        *,
        consent: bool = True,
    ) -> None:
        check_flag("consent", consent)
        self._memory = memory
        self._turn = turn
        self._consent = consent

    def select(self, extra: Sequence[ExtraTool], prefix: str = "") -> list[AgentTool]:
        """Make the policy's tools and those of these names, in a fixed order; often none."""
        check_list("extra_tools", extra, "names of tools")
        for name in extra:
            check_choice("extra_tools", name, get_args(ExtraTool))
        policy = self._memory.policy
        if policy.mode == "static_control":
            return []
        shared = [self._shared(described, prefix) for described in shared_tools(policy)]
        own = [
            tool(name=prefix + name, context=True)(getattr(self, name))
            for name in get_args(ExtraTool)
            if name in extra
        ]
        return [*shared, *own]

    def _shared(self, described: Tool, prefix: str) -> AgentTool:
        """Make a tool that all adapters have, with the arguments as the model gave them."""

        async def run(tool_context: ToolContext) -> Any:
            return await self._run(described, tool_context)

        made: AgentTool = tool(
            name=prefix + described.name,
            description=described.description,
            inputSchema={"json": dict(described.schema)},
            context=True,
        )(run)
        return made

    async def _run(self, described: Tool, context: ToolContext) -> Any:
        scope, shown = self._turn(context)
        arguments: dict[str, Any] = dict(context.tool_use["input"] or {})
        if _is_direct(context):
            # What names the user is in the arguments of a direct call too.
            known = described.schema["properties"]
            arguments = {name: value for name, value in arguments.items() if name in known}
        if described.name == "search_memory":
            await self._memory.lazy.await_open(WRITE_PATIENCE)
        if described.name in ACTIONS:
            record = await self._shown_record(scope, shown, arguments.get("memory_id"), context)
            is_complete = all(name in arguments for name in described.schema["required"])
            if record is not None and is_complete:
                reason = {"action": ACTIONS[described.name], "memory": _to_json(record)}
                reason |= {"text": arguments["text"]} if "text" in arguments else {}
                if not self._has_consent(context, described.name, reason):
                    return {"status": "error", "content": [{"text": REFUSED}]}
        return await self._memory.acall_tool(described.name, arguments, scope, shown)

    async def _shown_record(
        self, scope: Scope, shown: TurnRecords, memory_id: object, context: ToolContext
    ) -> Record | None:
        """Find what a tool may change: for a model, only what it was shown in this turn."""
        if type(memory_id) is not str:
            return None
        where = search_scope(scope, self._memory.policy)
        if ids := shown.take_restored():
            shown.add_records(await self._memory.acall(call("get_many", ids, where)))
        if _is_direct(context):
            record = await self._memory.acall(call("get", memory_id, where))
            if record is not None:
                shown.add_records([record])
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
        policy = self._memory.policy
        kept = {"kinds": policy.kinds, "where": policy.where}
        page = await self._memory.acall(
            call("list", scope.owner, limit=limit, cursor=cursor, **kept)
        )
        shown.add_records(page.records)
        return _success(memories=[*map(_to_json, page.records)], cursor=page.cursor)

    async def get_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Read one memory of this user by its id.

        Args:
            memory_id: The id, as a note, a search, a list or a write gave it.
        """
        scope, shown = self._turn(tool_context)
        record_id = _full_id(shown, memory_id)
        record = await self._memory.acall(call("get", record_id, scope.owner))
        if record is None:
            raise RecordNotFoundError(record_id=memory_id)
        shown.add_records([record])
        return _success(**_to_json(record))

    async def memory_history(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """List every version of one memory of this user, oldest first, also of a deleted one.

        Args:
            memory_id: The id, as a note, a search, a list or a write gave it.
        """
        scope, shown = self._turn(tool_context)
        record_id = _full_id(shown, memory_id)
        versions = await self._memory.acall(call("history", record_id, scope.owner))
        if not versions:
            raise RecordNotFoundError(record_id=memory_id)
        history = [
            {"event": version.event, "text": version.text, "previous": version.previous}
            | {"version": version.version, "at": version.at.isoformat()}
            for version in versions
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
        found = await self._memory.acall(call("relations", scope.owner, entity, hops=hops))
        relations = [
            {"subject": edge.subject, "predicate": edge.predicate, "object": edge.object}
            for edge in found[-MAX_LISTED:]
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


def _is_direct(context: ToolContext) -> bool:
    return "event_loop_cycle_id" not in context.invocation_state


def _full_id(shown: TurnRecords, memory_id: str) -> str:
    record = shown.find(memory_id)
    return memory_id if record is None else record.id


def _to_json(record: Record) -> dict[str, Any]:
    return {"text": record.text, **describe(record)}


def _success(**value: Any) -> dict[str, Any]:
    return {"status": "success", "content": [{"json": value}]}
