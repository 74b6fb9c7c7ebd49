"""What every adapter is built on: policy, the note, tools, and a memory that never fails an agent.

An adapter imports from here and from `commonplace`, `commonplace.ports`, `commonplace.filters` and
`commonplace.admin`, and from nothing deeper.
"""

from ..concurrency import await_within, call_within, start_call
from ..model import check_kinds, check_scope
from ..validation import SCOPE_FIELDS, check_choice, is_sound
from .lazy import (
    LazyMemory,
    MemoryPool,
    await_until_warm,
    start_warming,
    warm,
)
from .messages import clean, in_session, is_visible, to_messages
from .operations import (
    SearchAnswer,
    add_memory,
    recall,
    search_memory,
    search_scope,
    shorten,
    to_query,
)
from .policy import (
    HEADER,
    INTRO,
    TOOL_INSTRUCTIONS,
    WRITE_PATIENCE,
    Inject,
    Mode,
    Policy,
    Tool,
    instructions,
    tools,
)
from .prompt import NOTE_MARK, is_note, mark, render, shown
from .sansio import Call, Plan, aon, arun_plan, call, on, run_plan
from .session import AgentMemory, WarnOnce

__all__ = [
    "HEADER",
    "INTRO",
    "NOTE_MARK",
    "SCOPE_FIELDS",
    "TOOL_INSTRUCTIONS",
    "WRITE_PATIENCE",
    "AgentMemory",
    "Call",
    "Inject",
    "LazyMemory",
    "MemoryPool",
    "Mode",
    "Plan",
    "Policy",
    "SearchAnswer",
    "Tool",
    "WarnOnce",
    "add_memory",
    "aon",
    "arun_plan",
    "await_until_warm",
    "await_within",
    "call",
    "call_within",
    "check_choice",
    "check_kinds",
    "check_scope",
    "clean",
    "in_session",
    "instructions",
    "is_note",
    "is_sound",
    "is_visible",
    "mark",
    "on",
    "recall",
    "render",
    "run_plan",
    "search_memory",
    "search_scope",
    "shorten",
    "shown",
    "start_call",
    "start_warming",
    "to_messages",
    "to_query",
    "tools",
    "warm",
]
