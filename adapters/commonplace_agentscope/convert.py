"""AgentScope's messages as ours.

- `Msg.get_text_content()` → `Message.text`: text blocks joined by line breaks; more than a record
  holds becomes several messages. Thinking, data, hints and tool calls are dropped.
- `Msg.role` `user` → `Message.role` `user`; other roles of an input are dropped.
- `Msg.name` → `Message.name`. `Msg.id` → `Message.id`. `Msg.created_at` → `Message.at`, as local
  time when it has no zone.
- `Msg.structured_output` or `state.reply_context.structured_output` → `Message.text`, as JSON.
- `Msg.metadata`, `usage`, `finished_*` → dropped; a message marked as a note is dropped whole.
- the reply: `reply_id` → `Message.id`, the agent's name → `Message.name`, role `assistant`.
- `Match`es → an `AssistantMsg` named `memory` that holds one `HintBlock`, marked as a note.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agentscope.message import AssistantMsg, HintBlock, Msg, TextBlock, ToolResultBlock
from agentscope.state import AgentState

from commonplace.checks import MAX_TEXT_BYTES
from commonplace.model import Match, Message, Role
from commonplace.note import NOTE_MARK, is_note, mark, render
from commonplace.policy import Policy

_NOTE_NAME = "memory"
_BYTES_PER_CHARACTER = 4


def to_pending(inputs: object) -> list[dict[str, str]]:
    """Describe the user's messages of an input so that JSON can hold them; often an empty list.

    Events, None, other roles, notes and messages without text give nothing.
    """
    given = inputs if isinstance(inputs, list) else [inputs]
    return [
        {"id": one.id, "name": one.name, "text": text, "at": one.created_at}
        for one in given
        if isinstance(one, Msg) and one.role == "user" and not is_note(one.metadata)
        if (text := one.get_text_content()) and text.strip()
    ]


def to_exchange(
    pending: Sequence[dict[str, str]], answer: str, reply_id: str, name: str
) -> list[Message]:
    """Make the messages of a turn: what the user said, then the agent's answer."""
    messages = []
    for one in pending:
        messages += _messages(one["text"], "user", one["name"], one["id"], _time(one["at"]))
    return messages + _messages(answer, "assistant", name, reply_id, None)


def to_note(matches: Sequence[Match], policy: Policy, reply_id: str) -> Msg | None:
    """Make the message that shows recalled memories to the model; None if there are none."""
    text = render(matches, policy)
    if not text:
        return None
    hint = HintBlock(hint=text, source=NOTE_MARK)
    return AssistantMsg(name=_NOTE_NAME, content=[hint], metadata=mark(matches, reply_id))


def holds_note(message: Msg) -> bool:
    """Tell whether a message of the context is a note of ours, by its mark, not by its name."""
    return is_note(message.metadata) or any(
        isinstance(block, HintBlock) and is_note(None, block.source) for block in message.content
    )


def noted(context: Sequence[Msg]) -> set[str]:
    """Collect the ids of the records that notes in the context show."""
    marks = (one.metadata[NOTE_MARK] for one in context if NOTE_MARK in one.metadata)
    return {record["id"] for one in marks for record in one["records"]}


def note_turn(message: Msg) -> str | None:
    """Name the reply that a note was made for; None if the message is no note or does not say."""
    held = message.metadata.get(NOTE_MARK)
    return held["turn"] if isinstance(held, dict) else None


def final_text(state: AgentState, streamed: str) -> str:
    """Read what the agent answered at the end of a reply; empty if it only used tools.

    A reply's blocks pile up in one message, so only text after the last tool result counts.
    `streamed` serves when a compression has folded that message away.
    """
    structured = state.reply_context.structured_output
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    own = [one for one in state.context if one.id == state.reply_id and one.role == "assistant"]
    if not own:
        return streamed
    texts: list[str] = []
    for block in (block for one in own for block in one.content):
        if isinstance(block, ToolResultBlock):
            texts = []
        elif isinstance(block, TextBlock) and block.text:
            texts.append(block.text)
    return "\n".join(texts)


def _messages(
    text: str, role: Role, name: str, message_id: str, at: datetime | None
) -> list[Message]:
    # NUL and lone surrogates are in no stored text; the rest of what was said still counts.
    text = text.replace("\x00", "").encode("utf-8", "replace").decode()
    size = (
        len(text)
        if len(text.encode()) <= MAX_TEXT_BYTES
        else (MAX_TEXT_BYTES // _BYTES_PER_CHARACTER)
    )
    parts = [text[at : at + size] for at in range(0, len(text), size)] if size else []
    given: dict[str, Any] = {"role": role, "name": name or None, "at": at}
    return [
        Message(text=part, id=message_id if not number else f"{message_id}#{number}", **given)
        for number, part in enumerate(parts)
        if any(char.isprintable() and not char.isspace() for char in part)
    ]


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (TypeError, ValueError):
        return None
