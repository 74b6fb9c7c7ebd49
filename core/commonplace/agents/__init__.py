"""What every adapter is built on: policy, the note, tools, and a memory that never fails an agent.

An adapter imports from here and from `commonplace`, `commonplace.ports`, `commonplace.filters` and
`commonplace.admin`, and from nothing deeper.
"""

from ..concurrency import await_within, call_within, start_call
from ..model import check_kinds, check_scope
from ..retrieval.utterances import is_small_talk
from ..validation import SCOPE_FIELDS, check_choice, is_sound
from .health import EventName, MemoryCounters, MemoryEvent, OnEvent, WarnOnce
from .lazy import (
    LazyMemory,
    MemoryPool,
    await_until_warm,
    start_warming,
    warm,
)
from .messages import clean, is_visible, to_messages
from .operations import recall, run_tool, search_scope, shorten, to_query
from .policy import (
    DEFAULT_TOOLS,
    HEADER,
    INTRO,
    TOOL_INSTRUCTIONS,
    WRITE_PATIENCE,
    Inject,
    Mode,
    Policy,
    Tool,
    ToolName,
    instructions,
    tools,
)
from .prompt import NOTE_MARK, ShownRecords, is_note, mark, render, shown
from .sansio import Call, Plan, aon, arun_plan, call, on, run_plan
from .scope import in_session, to_id, to_scope
from .selection import Conversation, choose
from .session import AgentMemory
from .standing_instructions import find_instructions

__all__ = [
    "DEFAULT_TOOLS",
    "HEADER",
    "INTRO",
    "NOTE_MARK",
    "SCOPE_FIELDS",
    "TOOL_INSTRUCTIONS",
    "WRITE_PATIENCE",
    "AgentMemory",
    "Call",
    "Conversation",
    "EventName",
    "Inject",
    "LazyMemory",
    "MemoryCounters",
    "MemoryEvent",
    "MemoryPool",
    "Mode",
    "OnEvent",
    "Plan",
    "Policy",
    "ShownRecords",
    "Tool",
    "ToolName",
    "WarnOnce",
    "aon",
    "arun_plan",
    "await_until_warm",
    "await_within",
    "call",
    "call_within",
    "check_choice",
    "check_kinds",
    "check_scope",
    "choose",
    "clean",
    "find_instructions",
    "in_session",
    "instructions",
    "is_note",
    "is_small_talk",
    "is_sound",
    "is_visible",
    "mark",
    "on",
    "recall",
    "render",
    "run_plan",
    "run_tool",
    "search_scope",
    "shorten",
    "shown",
    "start_call",
    "start_warming",
    "to_id",
    "to_messages",
    "to_query",
    "to_scope",
    "tools",
    "warm",
]
