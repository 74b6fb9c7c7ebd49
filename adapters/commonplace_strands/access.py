"""How a tool comes by the memory, by whose it is, and by the consent of the person behind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strands import ToolContext

from commonplace import Memory, Scope
from commonplace.agents.policy import Policy

YES = frozenset({"y", "yes", "true", "ok", "approve", "approved"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What tools are made with.

    Attributes:
        owner: tells whose memory a call is about; raises `InvalidScopeError` if it is nobody's.
        asks: the person behind the agent is asked before a memory is changed or deleted.
    """

    memory: Memory
    policy: Policy
    owner: Callable[[ToolContext], Scope]
    asks: bool = True

    def may(self, context: ToolContext, name: str, asked: dict[str, Any]) -> bool:
        """Interrupt the agent to ask for consent; its answer comes when the agent is resumed.

        A tool that the program itself calls, `agent.tool.delete_memory(...)`, has its consent.
        """
        is_direct = "event_loop_cycle_id" not in context.invocation_state
        if is_direct or not self.asks:
            return True
        answer = context.interrupt(f"commonplace.{name}", reason=asked)
        return answer is True or (type(answer) is str and answer.strip().lower() in YES)
