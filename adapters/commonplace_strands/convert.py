"""Strands' messages as ours, and our matches as Strands' entries.

- `text` blocks → `Message.text`, joined by line breaks; the text in `citationsContent` counts too.
  More than a record holds becomes several messages. Tool traffic, images, documents, reasoning and
  cache points are dropped.
- `role` `user` and `assistant` → `Message.role`; Strands has no names and no times.
- our stamp's id, or what the caller gives → `Message.id`; `tracking_id` → dropped, for the
  framework itself drops it on the way to a memory store.
- `metadata` → dropped; a message marked as a note is dropped whole, and so is the record of a
  direct tool call.
- `AgentResult.structured_output` → `Message.text`, as JSON, when the answer has no text.
- `Match.record.text` → `MemoryEntry.content`; its id, score, kind, times and scope →
  `MemoryEntry.metadata`, over the record's own.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from strands.agent import AgentResult
from strands.memory import MemoryEntry
from strands.types.content import Message as StrandsMessage

from commonplace import Match, Record, WriteResult
from commonplace.agents.messages import clean
from commonplace.agents.prompt import is_note

_ANSWERED = re.compile("end_turn|stop_sequence|tool_use|limit_.+")
_DIRECT = re.compile(r"^agent\.tool\.\S+ (?:direct tool call|was called)\.$", re.MULTILINE)


def custom(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read what others keep with a message; an empty mapping if that is nothing."""
    metadata = message.get("metadata")
    held = metadata.get("custom") if isinstance(metadata, Mapping) else None
    return held if isinstance(held, Mapping) else {}


def text_of(message: Mapping[str, Any]) -> str:
    """Read what was said; empty for a note, tool traffic and the record of a direct tool call."""
    if is_note(custom(message)):
        return ""
    texts = []
    for block in message.get("content") or ():
        cited = block.get("citationsContent")
        parts = cited.get("content") or () if isinstance(cited, Mapping) else (block,)
        texts += [part["text"] for part in parts if type(part.get("text")) is str]
    text = clean("\n".join(texts))
    return "" if _DIRECT.search(text) else text


def said_now(messages: Sequence[StrandsMessage]) -> list[StrandsMessage]:
    """Choose what the user says in this turn: all after the last answer, often one message.

    Whoever hands the whole conversation in each time has said the rest before.
    """
    said: list[StrandsMessage] = []
    for message in messages:
        if message.get("role") == "assistant":
            said = []
        elif text_of(message):
            said.append(message)
    return said


def is_parked(result: AgentResult) -> bool:
    """Tell whether a turn waits, and goes on in another one."""
    return result.stop_reason in ("interrupt", "checkpoint")


def answer_of(result: AgentResult) -> str:
    """Read the agent's last words in a turn; empty if it was cut off or had none."""
    if not _ANSWERED.fullmatch(result.stop_reason):
        return ""
    text = text_of(result.message)
    if text or result.structured_output is None:
        return text
    return clean(result.structured_output.model_dump_json())


def to_entry(match: Match, store: str) -> MemoryEntry:
    """Make the entry of a memory store; its metadata is JSON."""
    told = {**match.record.metadata, **describe(match.record), "score": match.score}
    return MemoryEntry(content=match.record.text, store_name=store, metadata=told)


def changes_of(written: WriteResult) -> list[dict[str, str | None]]:
    """Tell what a write did to each memory, as JSON; `NONE` says that it was known."""
    return [{"id": one.id, "memory": one.text, "event": one.event} for one in written.changes]


def describe(record: Record) -> dict[str, Any]:
    """Tell what a record is, but for its text, as JSON; what is unknown is left out."""
    told = {
        "id": record.id,
        "kind": record.kind,
        "role": record.role,
        "user_id": record.scope.user_id,
        "agent_id": record.scope.agent_id,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
    }
    return {name: value for name, value in told.items() if value is not None}
