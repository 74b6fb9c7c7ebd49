"""Conversion of LangChain's messages to ours, of notes into requests, of matches to documents.

- `HumanMessage.text` → `Message.text`, role `user`: its text blocks; images and other blocks are
  dropped. A text too long for one record becomes several messages.
- `HumanMessage.name`, `AIMessage.name` → `Message.name`, without characters that names cannot have.
- `AIMessage.text` of the last message → `Message.text`, role `assistant`; without one, the state's
  `structured_response` as JSON, after what the model wrote beside it.
- `BaseMessage.id` and the text → `Message.id`, as callers reuse an id for another text, and a turn
  that runs again has the same text with the same id.
- `SystemMessage`, `ToolMessage`, tool calls, reasoning, usage → dropped. So are summaries that a
  middleware wrote, messages marked as notes, answers that a provider refused to give, and answers
  that a middleware gave instead of the model.
- texts of `HumanMessage` and `AIMessage`, with summaries, and of `ToolMessage` before the question
  → `Conversation`.
- the text of LangChain's summary → the session's.
- `Match` → `Document`: text, record id, and score, kind, times and the record's own metadata.
"""

import dataclasses
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
from commonplace.agents import (
    Conversation,
    ShownRecords,
    clean,
    hash_id,
    is_note,
    is_visible,
    to_messages,
)

_SYNTHETIC = "lc_source"  # marks messages that LangChain's middlewares write in a user's name
_SUMMARY_HEAD = "Here is a summary of the conversation to date:"
_NO_SUMMARY = (
    "Error generating summary",
    "No previous conversation history",
    "Previous conversation was too long",
)
# A message that had no id when it came into a state; a model's answer has the id of its run.
_STATE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Keys under which providers say why a model stopped.
_STOPPED = ("stop_reason", "finish_reason", "stopReason", "finishReason")
_REFUSALS = frozenset({
    "refusal", "content_filter", "content_filtered", "guardrail_intervened", "safety", "blocklist",
    "prohibited_content", "recitation", "spii", "image_safety"
})  # fmt: skip


class UserText(TypedDict):
    """A text of the user, as a state holds it; `id` is LangChain's and may be empty."""

    text: str
    name: str
    id: str


def user_texts(messages: Sequence[BaseMessage]) -> list[UserText]:
    """Return what the user wrote since the last answer or tool call, oldest first.

    What other agents and tools wrote after it is ignored. Empty list if there is nothing.
    """
    found: list[UserText] = []
    for message in reversed(until_question(messages)):
        if _is_question(message):
            found += _user_text(message)
        elif not isinstance(message, HumanMessage | SystemMessage):
            break
    return found[::-1]


def query_of(texts: Sequence[UserText]) -> str:
    """Return the query with which to recall for these texts."""
    return "\n".join(text["text"] for text in texts)


def current_texts(texts: Sequence[UserText], messages: Sequence[BaseMessage]) -> list[UserText]:
    """Read the user's texts again, as a middleware may have removed secrets from them.

    A text that is no longer in the conversation stays as it was.
    """
    current = {
        message.id: message
        for message in messages
        if isinstance(message, HumanMessage) and message.id
    }
    found: list[UserText] = []
    for text in texts:
        found += _user_text(current[text["id"]]) if text["id"] in current else [text]
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
    """Return the messages of a state of any type; empty list if it has none."""
    found = state.get("messages") if isinstance(state, Mapping) else state
    found = found if isinstance(found, list) else getattr(found, "messages", None)
    return [message for message in found or () if isinstance(message, BaseMessage)]


def to_conversation(said: Sequence[BaseMessage], shown: ShownRecords | None = None) -> Conversation:
    """Collect what users, agents, earlier tools and summaries say in a conversation, no notes."""
    spoken: list[BaseMessage] = [one for one in said if isinstance(one, HumanMessage | AIMessage)]
    spoken += [one for one in until_question(said) if isinstance(one, ToolMessage)]
    texts = [str(one.text) for one in spoken if not is_note(one.additional_kwargs)]
    return Conversation(texts=texts, shown=shown)


def summary_in(messages: Sequence[BaseMessage]) -> str:
    """Return what LangChain's summarization put in the place of earlier messages; empty if nothing.

    Empty, too, for a summary that its model failed at, which says so.
    """
    for message in reversed(messages):
        if message.additional_kwargs.get(_SYNTHETIC) == "summarization":
            text = str(message.text).removeprefix(_SUMMARY_HEAD).strip()
            return "" if text.startswith(_NO_SUMMARY) else text
    return ""


def user_messages(texts: Sequence[UserText]) -> list[Message]:
    """Make the messages of a turn without an answer.

    A text that is there again, as where a model failed and is asked again, is the same message.
    """
    said: dict[tuple[str, str], UserText] = {}
    for text in texts:
        said.setdefault((text["text"], text["name"]), text)
    return [
        message
        for text in said.values()
        for message in to_messages(
            text["text"], "user", text["name"], hash_id(text["id"], text["text"])
        )
    ]


def turn_messages(
    texts: Sequence[UserText], state: Mapping[str, Any], *, by_model: bool = False
) -> list[Message]:
    """Make the messages of a turn: the user's texts, then the answer at the end of the state.

    Empty list if the user wrote nothing. The answer is left out if only a tool gave one, or if the
    model's provider refused.

    Args:
        by_model: leaves out an answer that no chat model gave, too.
    """
    messages = user_messages(texts)
    last = state["messages"][-1] if messages else None
    if last is None or _is_refused(last) or (by_model and _is_canned(last)):
        return messages
    text = _answer(last, state)
    return messages + to_messages(text, "assistant", last.name or "", hash_id(last.id or "", text))


def with_note(messages: Sequence[AnyMessage], note: str) -> list[AnyMessage]:
    """Copy a conversation, with a note at the start of the user's last message.

    The note is part of that message, as some models accept no two messages of one role in a row.
    The messages before it stay unchanged, so that prompt caches still hit.
    """
    copy = list(messages)
    for place in range(len(copy) - 1, -1, -1):
        if isinstance(copy[place], HumanMessage):
            message = copy[place]
            if isinstance(message.content, str):
                content: Any = f"{note}\n\n{message.content}"
            else:
                content = [{"type": "text", "text": note}, *message.content]
            copy[place] = message.model_copy(update={"content": content})
            return copy
    return [*copy, HumanMessage(note)]


def with_instructions(message: SystemMessage | None, text: str) -> SystemMessage:
    """Copy a system message with a text appended; without a message, make one of the text."""
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        content: Any = f"{message.content}\n\n{text}" if message.content else text
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def to_document(match: Match) -> Document:
    """Make a document of a match, without the metadata that the store keeps about its items."""
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


def _is_question(message: BaseMessage) -> bool:
    """Return whether the user wrote a message, and not a middleware in the user's name."""
    given = message.additional_kwargs
    return isinstance(message, HumanMessage) and _SYNTHETIC not in given and not is_note(given)


def _is_refused(message: BaseMessage) -> bool:
    """Return whether a model's provider withheld an answer, or replaced it by its own."""
    given = message.response_metadata
    reasons = {str(given[key]).lower() for key in _STOPPED if given.get(key)}
    blocks = message.content if isinstance(message.content, list) else ()
    return (
        not _REFUSALS.isdisjoint(reasons)
        or bool(message.additional_kwargs.get("refusal"))
        or any(isinstance(block, dict) and _is_refusal(block) for block in blocks)
    )


def _is_refusal(block: Mapping[str, Any]) -> bool:
    value = block.get("value")
    return block.get("type") == "refusal" or (isinstance(value, dict) and _is_refusal(value))


def _is_canned(message: BaseMessage) -> bool:
    """Return whether a middleware wrote an answer, such as one about a limit.

    A model's answer has the id of its run, or its provider's metadata, or both.
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


def _answer(last: BaseMessage, state: Mapping[str, Any]) -> str:
    if isinstance(last, AIMessage):
        return str(last.text)
    given = state.get("structured_response")
    if given is None or not isinstance(last, ToolMessage):
        return ""
    asked = (message for message in state["messages"] if isinstance(message, AIMessage))
    calls = {call["id"]: message for message in asked for call in message.tool_calls}
    caller = calls.get(last.tool_call_id)
    words = str(caller.text).strip() if caller is not None else ""
    return "\n\n".join(filter(None, (words, _as_json(given))))


def _as_json(value: object) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)
