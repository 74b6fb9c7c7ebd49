"""A drop-in for `strands_tools.mem0_memory`: the same tool, on a memory of ours.

Use this module, its object `mem0_memory` or the string `"commonplace_strands.mem0_memory"` as a
tool of an agent. Identity comes from `MEM0_USER_ID` and `MEM0_AGENT_ID`, never from the model; the
place from `COMMONPLACE_PATH` and its kin. The variables that choose Mem0's models and stores, and
those of its console panels, have nothing to choose here.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from strands.tools.tools import PythonAgentTool
from strands.types.tools import ToolResult, ToolSpec, ToolUse

from commonplace import InvalidRecordError, Memory, Scope

from .mem0_actions import ACTIONS, scope_from_env, take, unused_in_env

TOOL_SPEC: ToolSpec = {
    "name": "mem0_memory",
    "description": (
        "Keep and find what should outlive this conversation.\n\n"
        "Actions: `store` keeps `content`; `retrieve` finds what answers `query`, best first; "
        "`list` tells everything; `get`, `delete` and `history` work on one `memory_id`.\n\n"
        "Whose memory it is was set by the operator and cannot be changed here."
    ),
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "description": "What to do.",
                    "enum": list(ACTIONS),
                },
                "content": {"type": "string", "description": "What to keep, for `store`."},
                "memory_id": {
                    "type": "string",
                    "description": "Which memory, for `get`, `delete` and `history`.",
                },
                "query": {"type": "string", "description": "What to find, for `retrieve`."},
                "metadata": {
                    "type": "object",
                    "description": "What else to keep with it, for `store`.",
                },
            },
            "required": ["action"],
        }
    },
}
NO_CONFIG = "Leave it out; pass memory=Memory.open(...) with its settings."

NO_SAY = "%s chose something of Mem0; memories are kept where COMMONPLACE_PATH says"

_lock = threading.Lock()
_opened: dict[int, Memory] = {}  # by process: a forked child has none of its parent's


class Mem0Tool(PythonAgentTool):
    """A tool object that is also the function behind it."""

    def __init__(self, call: Callable[[ToolUse], ToolResult]) -> None:
        super().__init__(TOOL_SPEC["name"], TOOL_SPEC, self.__call__)
        self._call = call

    def __call__(self, /, *tool: ToolUse, **state: Any) -> ToolResult:
        """Run the tool, given first or as `tool`; what fails is told in the result."""
        return self._call(tool[0] if tool else state["tool"])


class Mem0MemoryTool:
    """The tool for one user, or for one agent when there is no user.

    Args:
        user_id, agent_id: whose memory; the user's if both are given.
        config: refused; it configures another library.
        memory: an open memory; that of the environment when missing, opened on first use.

    Raises:
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
        ValueError: nobody is named.
    """

    def __init__(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        memory: Memory | None = None,
    ) -> None:
        if config is not None:
            raise InvalidRecordError(
                field="config",
                value=type(config).__name__,
                reason="configures mem0, which has no part here",
                hint=NO_CONFIG,
            )
        if not user_id and not agent_id:
            raise ValueError("Either user_id or agent_id must be provided.")  # noqa: TRY003 -- as the tool says it
        scope = Scope(user_id=user_id) if user_id else Scope(agent_id=agent_id)
        self.mem0_memory = Mem0Tool(
            lambda tool: take(tool, lambda: memory or _from_env(), lambda: scope)
        )


mem0_memory = Mem0Tool(lambda tool: take(tool, _from_env, scope_from_env))


def _from_env() -> Memory:
    """Open what the environment says, once; it is closed when the program ends."""
    with _lock:
        process = os.getpid()
        if process not in _opened:
            if unused := unused_in_env():
                logging.getLogger("commonplace_strands").warning(NO_SAY, ", ".join(unused))
            _opened[process] = Memory.from_env()
        return _opened[process]
