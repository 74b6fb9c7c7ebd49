"""What every adapter is built on: policy, the note, tools, and a memory that never fails an agent.

An adapter imports from here and from `commonplace`, `commonplace.ports`, `commonplace.filters` and
`commonplace.admin`, and from nothing deeper.
"""

from ..concurrency import LRUCache, await_within, call_within, start_call
from ..errors import short_repr
from ..plans import Call, Plan, aon, arun_plan, call, on, run_plan
from ..retrieval.utterances import is_small_talk
from ..settings import to_folder
from ..types import check_kinds, check_scope
from ..validation import (
    SCOPE_FIELDS,
    check_choice,
    check_flag,
    check_metadata,
    check_name,
    check_share,
    hinting_call,
    hinting_init,
    is_sound,
)
from .agent_memory import AgentMemory
from .arguments import (
    UNSET,
    Unset,
    check_function,
    check_id_source,
    check_list,
    check_mapping,
    check_memory,
    check_prefix,
    given_once,
)
from .call_stack import StackFrame, StackRule, UnknownCallerError, read_stack
from .framework_values import clean, in_session, is_visible, to_id, to_messages, to_scope
from .health import EventName, MemoryCounters, MemoryEvent, OnEvent, WarnOnce
from .lazy import (
    LazyMemory,
    MemoryPool,
    MemorySource,
    acquire_memory,
    await_until_warm,
    start_warming,
    warm,
)
from .note import NOTE_MARK, Conversation, ShownRecords, choose, is_note, mark, render, shown
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
    check_policy,
    fold_policy,
    instructions,
    tools,
)
from .standing_instructions import find_instructions

__all__ = [
    "DEFAULT_TOOLS",
    "HEADER",
    "INTRO",
    "NOTE_MARK",
    "SCOPE_FIELDS",
    "TOOL_INSTRUCTIONS",
    "UNSET",
    "WRITE_PATIENCE",
    "AgentMemory",
    "Call",
    "Conversation",
    "EventName",
    "Inject",
    "LRUCache",
    "LazyMemory",
    "MemoryCounters",
    "MemoryEvent",
    "MemoryPool",
    "MemorySource",
    "Mode",
    "OnEvent",
    "Plan",
    "Policy",
    "ShownRecords",
    "StackFrame",
    "StackRule",
    "Tool",
    "ToolName",
    "UnknownCallerError",
    "Unset",
    "WarnOnce",
    "acquire_memory",
    "aon",
    "arun_plan",
    "await_until_warm",
    "await_within",
    "call",
    "call_within",
    "check_choice",
    "check_flag",
    "check_function",
    "check_id_source",
    "check_kinds",
    "check_list",
    "check_mapping",
    "check_memory",
    "check_metadata",
    "check_name",
    "check_policy",
    "check_prefix",
    "check_scope",
    "check_share",
    "choose",
    "clean",
    "find_instructions",
    "fold_policy",
    "given_once",
    "hinting_call",
    "hinting_init",
    "in_session",
    "instructions",
    "is_note",
    "is_small_talk",
    "is_sound",
    "is_visible",
    "mark",
    "on",
    "read_stack",
    "recall",
    "render",
    "run_plan",
    "run_tool",
    "search_scope",
    "short_repr",
    "shorten",
    "shown",
    "start_call",
    "start_warming",
    "to_folder",
    "to_id",
    "to_messages",
    "to_query",
    "to_scope",
    "tools",
    "warm",
]
