"""Mapping between Strands' messages, entries and model calls and ours.

- `text` blocks → `Message.text`, joined by line breaks; the text in `citationsContent` counts too,
  and a plain string counts as a block. More than a record holds becomes several
  messages. Tool traffic, images, documents, reasoning and cache points are dropped.
- `role` `user` and `assistant` → `Message.role`; Strands has no names and no times.
- the id of our owner tag, or what the caller gives → `Message.id`; `tracking_id` → dropped, for
  the framework itself drops it on the way to a memory store.
- `metadata` → dropped; a message marked as a note is dropped whole, and so is the record of a
  direct tool call.
- `AgentResult.structured_output` → `Message.text`, as JSON, when the answer has no text.
- `Match.record.text` → `MemoryEntry.content`; its `score`, and its id, kind, times
  and scope → `MemoryEntry.metadata`, over the record's own.
- the summary of a conversation manager or a context manager → the session's.
- recalled `Match`es → a note at the end of a model call's last user message; a tool's
  instructions → the end of its system prompt.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strands.agent import AgentResult
from strands.memory import MemoryEntry
from strands.types.content import Message as StrandsMessage

from commonplace import Match, Policy, Record, WriteResult
from commonplace.agents import clean, is_note, mark, render, shown

ModelCallContext = Any
"""The framework's context of a model call, a dataclass that has moved between its versions."""

_ANSWERED = ("end_turn", "stop_sequence", "tool_use")
_DIRECT_CALL = re.compile(r"^agent\.tool\.\S+ (?:direct tool call|was called)\.$", re.MULTILINE)
_SUMMARIZED = re.compile(r"\[Summarized: \d+ messages, [^\]\n]*\]\n+")

# -- messages ------------------------------------------------------------------------------------


def custom_metadata(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what applications keep with a message; an empty mapping if there is nothing."""
    metadata = message.get("metadata")
    custom = metadata.get("custom") if isinstance(metadata, Mapping) else None
    return custom if isinstance(custom, Mapping) else {}


def blocks_of(message: Mapping[str, Any]) -> list[Any]:
    """Return a message's content blocks; a plain string is one, as agents take it too."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"text": content}]
    return [*content] if isinstance(content, list | tuple) else []


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text; empty for a note, tool traffic and a recorded direct tool call."""
    if is_note(custom_metadata(message)):
        return ""
    texts = []
    for block in _mappings(blocks_of(message)):
        cited = block.get("citationsContent")
        parts = _mappings(blocks_of(cited)) if isinstance(cited, Mapping) else [block]
        texts += [part["text"] for part in parts if isinstance(part.get("text"), str)]
    text = clean("\n".join(texts))
    return "" if _DIRECT_CALL.search(text) else text


def summary_of(manager_state: Mapping[str, Any], messages: Sequence[StrandsMessage]) -> str:
    """Return what the framework put in the place of earlier messages; empty if nothing.

    Args:
        manager_state: of the agent's conversation manager, of which one that summarises has the
            summary; a context manager leaves its own among the messages.
    """
    kept = manager_state.get("summary_message")
    if isinstance(kept, Mapping):
        return text_of(kept)
    texts = map(text_of, messages)
    return "\n".join(text[found.end() :] for text in texts if (found := _SUMMARIZED.match(text)))


def new_user_messages(messages: Sequence[StrandsMessage]) -> list[StrandsMessage]:
    """Choose the messages with text after the last answer, often one.

    Some callers pass the whole conversation with each turn.
    """
    new: list[StrandsMessage] = []
    for message in messages:
        if message.get("role") == "assistant":
            new = []
        elif text_of(message):
            new.append(message)
    return new


def answer_of(result: AgentResult) -> str:
    """Return an answer's text; empty for one that was cut off."""
    if result.stop_reason not in _ANSWERED:
        return ""
    text = text_of(result.message)
    if text or result.structured_output is None:
        return text
    return clean(result.structured_output.model_dump_json())


def tool_results(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the tools' results in messages."""
    blocks = [block for message in messages for block in _mappings(blocks_of(message))]
    results = _mappings(block.get("toolResult") for block in blocks)
    return [text_of({"content": result.get("content")}) for result in results]


def conversation_texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return all texts that a model is shown of a conversation, without notes."""
    texts = [*map(text_of, messages), *tool_results(messages)]
    return [text for text in texts if text]


def _mappings(given: Iterable[object]) -> list[Mapping[str, Any]]:
    return [value for value in given if isinstance(value, Mapping)]


# -- entries and tool results --------------------------------------------------------------------


def to_entries(matches: Sequence[Match], store: str) -> list[MemoryEntry]:
    """Make the entries of a memory store; their metadata is JSON."""
    return [
        MemoryEntry(
            content=match.record.text,
            store_name=store,
            metadata={**match.record.metadata, **describe(match.record), "score": match.score},
        )
        for match in matches
    ]


def changes_of(written: WriteResult) -> list[dict[str, str | None]]:
    """Return what a write did to each memory, as JSON; see `Memory.add`."""
    return [
        {"id": change.id, "memory": change.text, "event": change.event}
        for change in written.changes
    ]


def describe(record: Record) -> dict[str, Any]:
    """Return a record's fields without its text, as JSON; what is unknown is left out."""
    fields = {
        "id": record.id,
        "kind": record.kind,
        "role": record.role,
        "user_id": record.scope.user_id,
        "agent_id": record.scope.agent_id,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
    }
    return {name: value for name, value in fields.items() if value is not None}


# -- model calls ---------------------------------------------------------------------------------


def add_note(call: ModelCallContext, matches: Sequence[Match], policy: Policy) -> ModelCallContext:
    """Return a call with a note after its last user message; what precedes it stays cacheable.

    The call itself if there is nothing to show, or no user message.
    """
    note = render(matches, policy)
    user_positions = [at for at, message in enumerate(call.messages) if message["role"] == "user"]
    if not note or not user_positions:
        return call
    at = user_positions[-1]
    last = call.messages[at]
    marked = {**custom_metadata(last), **mark(shown(matches, policy))}
    with_note = {
        **last,
        "content": [*blocks_of(last), {"text": f"\n\n{note}"}],
        "metadata": {**last.get("metadata", {}), "custom": marked},
    }
    messages = [*call.messages[:at], with_note, *call.messages[at + 1 :]]
    changes: dict[str, Any] = {"messages": messages}
    if hasattr(call, "dynamic_trailing_blocks") and with_note is messages[-1]:
        # What changes with each call must not be the end of a provider's cached prefix.
        changes["dynamic_trailing_blocks"] = call.dynamic_trailing_blocks + 1
    return dataclasses.replace(call, **changes)


def add_instructions(call: ModelCallContext, text: str) -> ModelCallContext:
    """Return a call with a text after its system prompt; the call itself if the text is empty."""
    prompt = call.system_prompt
    if not text:
        return call
    if isinstance(prompt, list):
        return dataclasses.replace(call, system_prompt=[*prompt, {"text": text}])
    return dataclasses.replace(call, system_prompt=f"{prompt}\n\n{text}" if prompt else text)
