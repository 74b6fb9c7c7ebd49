"""Conversion of LangChain's messages to ours, of notes into requests, of matches to documents.

- `HumanMessage.text` → `Message.text`, role `user`: its text blocks; images and the like are
  dropped. More than a record holds becomes several messages.
- `HumanMessage.name`, `AIMessage.name` → `Message.name`, without what no name may hold.
- `AIMessage.text` of the last message → `Message.text`, role `assistant`; where there is none,
  `structured_response` of the state, as JSON.
- `BaseMessage.id` together with the text → `Message.id`: callers use an id again for another text,
  and a turn that runs again says the same with the same id.
- `SystemMessage`, `ToolMessage`, tool calls, reasoning, usage → dropped. A summary that a
  middleware wrote, and a message marked as a note, are dropped whole; so is an answer that a
  provider refused to give, or that a middleware gave instead of the model.
- texts of `HumanMessage` and `AIMessage`, summaries included → `Conversation`.
- `Match` → `Document`: text, record id, and score, kind, times and the record's own metadata.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel

from commonplace import Match, Message
from commonplace.agents import Conversation, clean, is_note, is_visible, to_messages

_SYNTHETIC = "lc_source"  # of messages that langchain's middlewares write in a user's name
# Of a message that had no id when it came into a state; a model's answer has that of its run.
_STATE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Why a model stopped, in the words of the providers.
_STOPPED = ("stop_reason", "finish_reason", "stopReason", "finishReason")
_REFUSALS = frozenset({
    "refusal", "content_filter", "content_filtered", "guardrail_intervened", "safety", "blocklist",
    "prohibited_content", "recitation", "spii", "image_safety",
})  # fmt: skip


class UserText(TypedDict):
    """A text of the user, as a state holds it; `id` is LangChain's, perhaps empty."""

    text: str
    name: str
    id: str


def user_texts(messages: Sequence[BaseMessage]) -> list[UserText]:
    """Read what the user wrote last, oldest first: up to an answer or a call of a tool.

    What other agents and tools wrote since then does not matter. Empty list if there is nothing.
    """
    found: list[UserText] = []
    for one in reversed(until_question(messages)):
        if _is_question(one):
            found += _user_text(one)
        elif not isinstance(one, HumanMessage | SystemMessage):
            break
    return found[::-1]


def current_texts(texts: Sequence[UserText], messages: Sequence[BaseMessage]) -> list[UserText]:
    """Read the user's texts again, as a middleware may have taken secrets out of them.

    One that is no longer in the conversation stays as it was read.
    """
    current = {one.id: one for one in messages if isinstance(one, HumanMessage) and one.id}
    found: list[UserText] = []
    for one in texts:
        found += _user_text(current[one["id"]]) if one["id"] in current else [one]
    return found


def until_question(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Cut a conversation after the user's last message; empty if there is none."""
    end = len(messages)
    while end and not _is_question(messages[end - 1]):
        end -= 1
    return messages[:end]


def last_question_id(messages: Sequence[BaseMessage]) -> str:
    """Return the id of the user's last message; empty if there is none."""
    question = until_question(messages)
    return (question[-1].id or "") if question else ""


def messages_in(state: object) -> list[BaseMessage]:
    """Read the messages of a state of any form; empty list if it has none."""
    found = state.get("messages") if isinstance(state, Mapping) else state
    found = found if isinstance(found, list) else getattr(found, "messages", None)
    return [one for one in found or () if isinstance(one, BaseMessage)]


def to_conversation(messages: Sequence[BaseMessage]) -> Conversation:
    """Collect what users, agents and summaries say in a conversation; notes are left out."""
    return Conversation(
        texts=[
            str(one.text)
            for one in messages
            if isinstance(one, HumanMessage | AIMessage) and not is_note(one.additional_kwargs)
        ]
    )


def user_messages(texts: Sequence[UserText]) -> list[Message]:
    """Make the messages of a turn that has no answer."""
    return [
        message
        for one in texts
        for message in to_messages(
            one["text"], "user", one["name"], _message_id(one["id"], one["text"])
        )
    ]


def turn_messages(
    texts: Sequence[UserText], state: Mapping[str, Any], *, by_model: bool = False
) -> list[Message]:
    """Make the messages of a turn: the user's texts, then the answer at the end of the state.

    Empty list if the user wrote nothing. The answer is missing where only a tool gave one, or the
    model's provider refused to.

    Args:
        by_model: the answer is missing, too, if no chat model gave it.
    """
    messages = user_messages(texts)
    last = state["messages"][-1] if messages else None
    if last is None or _is_refused(last) or (by_model and _is_canned(last)):
        return messages
    text = _answer(last, state)
    return messages + to_messages(
        text, "assistant", last.name or "", _message_id(last.id or "", text)
    )


def with_note(messages: Sequence[AnyMessage], note: str) -> list[AnyMessage]:
    """Copy a conversation, with a note in front of the user's last message.

    It is part of that message, as some models accept no two messages of one role in a row, and
    what stands before it stays as it was, for the sake of their caches.
    """
    copy = list(messages)
    for place in range(len(copy) - 1, -1, -1):
        if isinstance(copy[place], HumanMessage):
            copy[place] = _prepend(copy[place], note)
            return copy
    return [*copy, HumanMessage(note)]


def with_instructions(message: SystemMessage | None, text: str) -> SystemMessage:
    """Copy a system message, with a text appended; make one if there is none."""
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        content: Any = f"{message.content}\n\n{text}" if message.content else text
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def to_document(match: Match) -> Document:
    """Make a document of a match; what the store keeps about its items is left out."""
    record = match.record
    entry = record.metadata.get("langgraph")
    internal = ("langgraph",) if isinstance(entry, Mapping) and "told" in entry else ()
    metadata = {
        **{key: value for key, value in record.metadata.items() if key not in internal},
        "score": match.score,
        "kind": record.kind,
        "created_at": record.created_at.isoformat(),
        "occurred_at": record.occurred_at.isoformat(),
    }
    return Document(page_content=record.text, id=record.id, metadata=metadata)


def _prepend(message: AnyMessage, note: str) -> AnyMessage:
    if isinstance(message.content, str):
        content: Any = f"{note}\n\n{message.content}"
    else:
        content = [{"type": "text", "text": note}, *message.content]
    return message.model_copy(update={"content": content})


def _is_question(message: BaseMessage) -> bool:
    """Return whether a message is the user's, and not what a middleware wrote in his name."""
    given = message.additional_kwargs
    return isinstance(message, HumanMessage) and _SYNTHETIC not in given and not is_note(given)


def _is_refused(message: BaseMessage) -> bool:
    """Return whether a model's provider kept an answer back, or answered in the model's place."""
    given = message.response_metadata
    reasons = {str(given[one]).lower() for one in _STOPPED if given.get(one)}
    blocks = message.content if isinstance(message.content, list) else ()
    return (
        not _REFUSALS.isdisjoint(reasons)
        or bool(message.additional_kwargs.get("refusal"))
        or any(isinstance(one, dict) and _is_refusal(one) for one in blocks)
    )


def _is_refusal(block: Mapping[str, Any]) -> bool:
    value = block.get("value")
    return block.get("type") == "refusal" or (isinstance(value, dict) and _is_refusal(value))


def _is_canned(message: BaseMessage) -> bool:
    """Return whether a middleware wrote an answer, such as that a limit is reached.

    What a model answers has the id of its run, or its provider's metadata, or both.
    """
    return (
        isinstance(message, AIMessage)
        and not message.response_metadata
        and not message.usage_metadata
        and (message.id is None or bool(_STATE_ID.fullmatch(message.id)))
    )


def _user_text(message: BaseMessage) -> list[UserText]:
    text = clean(str(message.text))
    found = UserText(text=text, name=message.name or "", id=message.id or "")
    return [found] if is_visible(text) else []


def _message_id(message_id: str, text: str) -> str:
    return hashlib.sha256(json.dumps([message_id, text]).encode()).hexdigest()[:32]


def _answer(last: BaseMessage, state: Mapping[str, Any]) -> str:
    if isinstance(last, AIMessage):
        return str(last.text)
    given = state.get("structured_response") if isinstance(last, ToolMessage) else None
    return "" if given is None else _as_json(given)


def _as_json(value: object) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)
