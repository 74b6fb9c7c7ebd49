"""AgentScope messages as `Message`s, and recalled memories as notes in a conversation.

- `Msg.get_text_content()` → `Message.text`: text blocks joined by line breaks; more than a record
  holds becomes several messages. Thinking, data, hints and tool calls are dropped.
- `Msg.role` `user` → `Message.role` `user`; other roles of an input are dropped.
- `Msg.name` → `Message.name`, without what no name may hold. `Msg.created_at` → `Message.at`, as
  local time when it has no zone.
- `Msg.id` → dropped: callers reuse it. The reply and the position in it → `Message.id`.
- `Msg.structured_output` or `state.reply_context.structured_output` → `Message.text`, as JSON.
- `Msg.metadata`, `usage`, `finished_*` → dropped; a message marked as a note is dropped whole.
- the reply: `reply_id` → `Message.id`, the agent's name → `Message.name`, role `assistant`.
- `Match`es → an `AssistantMsg` named `memory` that holds one `HintBlock`, marked as a note.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from agentscope.event import HintBlockEvent
from agentscope.message import AssistantMsg, HintBlock, Msg, TextBlock, ToolResultBlock
from agentscope.state import AgentState

from commonplace import Match, Message, Policy
from commonplace.agents import (
    NOTE_MARK,
    clean,
    is_note,
    is_visible,
    mark,
    render,
    shown,
    to_messages,
)

_NOTE_NAME = "memory"


def to_pending(inputs: object) -> list[dict[str, str]]:
    """Describe the user's messages of an input as JSON values; often an empty list.

    Events, None, other roles, notes and messages without visible text are left out.
    """
    messages = inputs if isinstance(inputs, list) else [inputs]
    return [
        {"name": clean(one.name), "text": text, "at": one.created_at}
        for one in messages
        if isinstance(one, Msg) and one.role == "user" and not is_note(one.metadata)
        if is_visible(text := clean(one.get_text_content() or ""))
    ]


def to_turn(
    pending: Sequence[dict[str, str]], answer: str, reply_id: str, name: str, number: int = 1
) -> list[Message]:
    """Make the messages of a turn: the user's, then the agent's answer.

    `number` counts the answers of a reply from 1.
    """
    messages = []
    for position, one in enumerate(pending):
        at = _time(one["at"])
        messages += to_messages(one["text"], "user", one["name"], f"{reply_id}<{position}", at)
    answer_id = reply_id if number == 1 else f"{reply_id}>{number}"
    return messages + to_messages(answer, "assistant", name, answer_id)


def final_text(state: AgentState, reply_id: str, streamed: str) -> str:
    """Read the agent's answer at the end of a reply; empty if it only used tools.

    The blocks of all steps are in one message, so only text after the last tool result counts.

    Args:
        streamed: the answer if a compression has folded that message away, or if another reply has
            taken over the state.
    """
    if state.reply_id != reply_id:
        return streamed
    structured = state.reply_context.structured_output
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False, default=str)
    own = [one for one in state.context if one.id == reply_id and one.role == "assistant"]
    if not own:
        return streamed
    texts: list[str] = []
    for block in (block for one in own for block in one.content):
        if isinstance(block, ToolResultBlock):
            texts = []
        elif isinstance(block, TextBlock) and block.text:
            texts.append(block.text)
    return "\n".join(texts)


# -- notes ---------------------------------------------------------------------------------------


def to_note(
    matches: Sequence[Match], policy: Policy, reply_id: str, memory: str, owner: str
) -> Msg | None:
    """Make the message that shows recalled memories to the model; None if there are none.

    Args:
        memory: the middleware's key; with `owner` it distinguishes the notes in one conversation.
        owner: the partition of the owner.
    """
    text = render(matches, policy)
    if not text:
        return None
    metadata = mark(shown(matches, policy), reply_id, memory=memory, owner=owner)
    hint = HintBlock(hint=text, source=NOTE_MARK)
    return AssistantMsg(name=_NOTE_NAME, content=[hint], metadata=metadata)


def to_event(note: Msg, reply_id: str) -> HintBlockEvent:
    """Make the event that announces a note to the consumer of a reply."""
    (hint,) = note.get_content_blocks("hint")
    return HintBlockEvent(reply_id=reply_id, block_id=hint.id, source=hint.source, hint=hint.hint)


def holds_note(message: Msg) -> bool:
    """Return whether a message is a note of any memory, by its mark, not its name."""
    return is_note(message.metadata) or any(
        isinstance(block, HintBlock) and is_note(None, block.source) for block in message.content
    )


def without_notes(
    messages: Sequence[Msg], memory: str, is_dropped: Callable[[str, str], bool]
) -> list[Msg]:
    """Copy a conversation without some notes of one memory.

    Args:
        is_dropped: called with the reply id and the owner's partition of each note.
    """
    dropped = {
        id(message)
        for message, note in _notes(messages, memory)
        if is_dropped(str(note.get("turn")), str(note.get("owner")))
    }
    return [one for one in messages if id(one) not in dropped]


def drop_notes(state: AgentState, memory: str, is_dropped: Callable[[str, str], bool]) -> None:
    """Remove some notes of one memory from a state's conversation, as `without_notes`."""
    kept = without_notes(state.context, memory, is_dropped)
    if len(kept) < len(state.context):
        state.context[:] = kept


def noted_ids(state: AgentState, memory: str) -> set[str]:
    """Collect the ids of the records that notes of one memory in the conversation show."""
    found: set[str] = set()
    for _, note in _notes(state.context, memory):
        records = note.get("records")
        for record in records if isinstance(records, list) else []:
            if isinstance(record, dict) and type(record.get("id")) is str:
                found.add(record["id"])
    return found


def _notes(messages: Sequence[Msg], memory: str) -> Iterator[tuple[Msg, dict[str, Any]]]:
    # States are saved, loaded and edited by others: a damaged mark is no note.
    for message in messages:
        metadata: object = message.metadata
        note = metadata.get(NOTE_MARK) if isinstance(metadata, dict) else None
        if isinstance(note, dict) and note.get("memory") == memory:
            yield message, note


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (TypeError, ValueError):
        return None
