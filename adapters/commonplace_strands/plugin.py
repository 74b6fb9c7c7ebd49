"""`MemoryPlugin`: recall before a turn, write after it, tools in between, each turn for its user.

No hook raises: the framework would end the agent's turn, or lose its answer. A memory that fails is
told to the log `commonplace_strands`, and the agent goes on without it.
"""

from collections.abc import Sequence

from strands import Agent
from strands.hooks import AfterInvocationEvent, HookOrder
from strands.plugins import Plugin
from strands.types.tools import AgentTool

from commonplace import Memory
from commonplace.agents.policy import Policy, instructions

from .access import Access
from .binding import Binding
from .extraction import is_extracted
from .recall import Recall
from .record import Record
from .scopes import Default
from .stage import Call, before_model_calls, with_hint, with_note
from .store import NO_MEMORY
from .tools import TOOLS, ToolName, memory_tools
from .turns import visit_to
from .warm import warm

NAME = "commonplace"


class MemoryPlugin(Plugin):
    """Long-term memory for Strands agents; one instance serves many agents and users at once.

    Whose memory a turn is about is said by whoever calls the agent:
    `agent(prompt, invocation_state={"user_id": ...})`, with `agent_id` and `session_id` if you
    like. A turn of nobody has no memory.

    With a `MemoryManager` on the same agent, its stores without a scope of their own follow the
    turn's user. What the manager extracts into this memory the plugin does not write, what the
    plugin shows the manager's stores do not find again, and a tool whose name is taken is left out.

    Args:
        memory: an open memory; the plugin does not close it.
        policy: how agents use it. Notes are never kept, so `inject` makes no difference.
        user_id, agent_id: whose memory a turn is about when its caller does not say.
        tools: those that the agent gets, unless the policy keeps them from it.
        tool_prefix: goes in front of their names, and tells several plugins of an agent apart.
        consent: ask the person behind the agent, by an interrupt, before a tool changes or deletes
            a memory.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        TypeError: the memory is none.
    """

    name = NAME

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
        if not isinstance(memory, Memory):
            raise TypeError(NO_MEMORY.format(memory))
        self.name = f"{NAME}:{tool_prefix}" if tool_prefix else NAME
        super().__init__()
        self.policy = policy or Policy()
        self._memory = memory
        self._binding = Binding(self.name, memory, Default(user_id=user_id, agent_id=agent_id))
        self._recall = Recall(memory, self.policy, self._binding.warn)
        self._record = Record(memory, self.policy, self._binding.warn)
        access = Access(memory=memory, policy=self.policy, owner=self._binding.owner, asks=consent)
        wanted = tools if self.policy.has_tools else ()
        self._made = memory_tools(access, wanted, tool_prefix)
        self._hint = instructions(self.policy, tool_prefix) if set(TOOLS) <= set(wanted) else ""

    def init_agent(self, agent: Agent) -> None:
        """Serve an agent from its next turn on; the memory warms up meanwhile."""
        warm(self._memory)
        self._binding.attach(agent)
        # Before others that may fail and take the end of the turn with them.
        agent.add_hook(self._end, AfterInvocationEvent, order=HookOrder.SDK_FIRST)
        before_model_calls(agent, self._show)
        taken = agent.tool_names
        fresh: list[AgentTool] = [one for one in self._made if one.tool_name not in taken]
        if fresh:
            agent.tool_registry.process_tools(list(fresh))

    async def _end(self, event: AfterInvocationEvent) -> None:
        turn = self._binding.end(event)
        if turn is None or turn.scope is None or event.result is None:
            return
        if self.policy.is_static and not is_extracted(event.agent, self._memory, turn.scope):
            await self._record.write(turn, event.result)

    async def _show(self, call: Call) -> Call:
        try:
            call = with_hint(call, self._hint)
            turn = self._binding.find(call.agent, call.invocation_state)
            if turn is None or turn.scope is None or not self.policy.is_static:
                return call
            matches = await self._recall.of(turn)
            visit = visit_to(self._memory, self._binding)
            if visit is not None:
                matches = tuple(one for one in matches if one.record.id not in visit.shown)
                visit.shown.update(one.record.id for one in matches)
                visit.has_note = bool(matches)
            return with_note(call, matches, self.policy)
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self._binding.warn("note", error)
            return call
