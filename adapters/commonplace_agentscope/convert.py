"""AgentScope messages as `Message`s, and recalled memories as notes in a conversation.

- `Msg.get_text_content()` → `Message.text`: text blocks joined by line breaks; more than a record
  holds becomes several messages. Thinking, data, hints and tool calls are dropped, and so is what
  AgentScope's pipelines write around a task (`<system-reminder>`, `<handover>`, `<submission>`).
- `Msg.role` of an input → `Message.role`: `user`, and `assistant` of another agent's answer that is
  handed on; a `system` message is dropped.
- `Msg.name` → `Message.name`, without what no name may hold. `Msg.created_at` → `Message.at`, as
  local time when it has no zone.
- `Msg.id` with the text, as callers reuse ids → `Message.id`: a message that is sent again after
  its reply failed is the same one.
- `Msg.structured_output` or `state.reply_context.structured_output` → `Message.text`, as JSON.
- `Msg.metadata`, `usage`, `finished_*` → dropped; a message marked as a note is dropped whole.
- the reply: `reply_id` → `Message.id`, the agent's name → `Message.name`, role `assistant`.
- `AgentState.summary` → the session's summary.
- `Match`es → an `AssistantMsg` named `memory` that holds one `HintBlock`, marked as a note.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentscope.event import HintBlockEvent
from agentscope.message import AssistantMsg, HintBlock, Msg, TextBlock, ToolResultBlock
from agentscope.state import AgentState
from agentscope.types import ReplyFinishedReason

from commonplace import Match, Message, Policy, Role
from commonplace.agents import (
    NOTE_MARK,
    Conversation,
    ShownRecords,
    clean,
    hash_id,
    is_note,
    is_visible,
    mark,
    render,
    shown,
    to_messages,
    to_time,
)

_NOTE_NAME = "memory"
_SPEAKERS = ("user", "assistant")
_BROKEN_OFF = (ReplyFinishedReason.INTERRUPTED, ReplyFinishedReason.ERROR)
_FRAMING = re.compile(
    r"<(system-reminder|handover|submission)(?: [^>]*)?>.*?(?:</\1>|\Z)", re.DOTALL
)
_SUMMARY_TAG = re.compile(r"</?system-info>")
_SUMMARY_HEAD = "Here is a summary of your previous work"
_CUT_OFF = "Some earlier messages were truncated"


def input_messages(inputs: object) -> list[Msg]:
    """List an input's messages of users and of other agents, with visible text; often none.

    Events, None, messages of the role `system`, notes, and AgentScope's own words in place of an
    answer (of a reply that was interrupted) are left out.
    """
    messages = inputs if isinstance(inputs, list) else [inputs]
    return [
        message
        for message in messages
        if isinstance(message, Msg) and message.role in _SPEAKERS and not holds_note(message)
        if message.finished_reason not in _BROKEN_OFF and is_visible(to_text(message))
    ]


def to_text(message: Msg) -> str:
    """Read what the author of a message wrote, without what a pipeline put around it."""
    if message.structured_output is not None:  # the text only says that there is one
        return clean(json.dumps(message.structured_output, ensure_ascii=False, default=str))
    text = clean(message.get_text_content() or "")
    own = _FRAMING.sub("", text)
    return text if own == text else own.strip()


def to_pending(messages: Sequence[Msg], context: Sequence[Msg], name: str) -> list[dict[str, str]]:
    """Describe the messages of an input as JSON values.

    Args:
        context: the conversation before them. What stands there without an answer and is said
            again in the same words is the same message.
        name: the agent's.
    """
    ids = {to_text(message): message.id for message in reversed(unanswered(context, name))}
    return [
        {
            "name": clean(message.name),
            "text": (text := to_text(message)),
            "at": message.created_at,
            "id": ids.get(text, message.id),
            "role": message.role,
        }
        for message in messages
    ]


def unanswered(context: Sequence[Msg], name: str) -> list[Msg]:
    """List the messages at the end of a conversation that its agent has not answered, oldest first.

    Args:
        name: the agent's; what other agents said is there because it was observed.
    """
    found: list[Msg] = []
    for message in reversed(context):
        if all(isinstance(block, HintBlock) for block in message.content):
            continue
        if message.role == "assistant" and message.name == name:
            break
        found.insert(0, message)
    return found


def to_input_turn(pending: Sequence[dict[str, str]], reply_id: str) -> list[Message]:
    """Make the messages that a turn answers: the user's, and those of other agents."""
    messages: list[Message] = []
    for position, said in enumerate(pending):
        message_id = hash_id(said.get("id") or f"{reply_id}<{position}", said["text"])
        role: Role = "assistant" if said.get("role") == "assistant" else "user"
        messages += to_messages(said["text"], role, said["name"], message_id, to_time(said["at"]))
    return messages


def to_turn(
    pending: Sequence[dict[str, str]], answer: str, reply_id: str, name: str, number: int = 1
) -> list[Message]:
    """Make the messages of a turn: what it answers, then the agent's answer.

    `number` counts the answers of a reply from 1.
    """
    answer_id = reply_id if number == 1 else f"{reply_id}>{number}"
    answered = to_messages(answer, "assistant", name, answer_id)
    return to_input_turn(pending, reply_id) + answered


def to_conversation(state: AgentState, key: str, shown: ShownRecords | None = None) -> Conversation:
    """Describe what the model is shown of a conversation: texts, tool results, summary.

    Args:
        key: of the memory whose notes in it count; those of others are left out.
    """
    texts = _texts(state.summary)
    for message in state.context:
        for block in () if holds_note(message) else message.content:
            texts += _texts(block.output if isinstance(block, ToolResultBlock) else [block])
    return Conversation(texts=texts, ids=noted_ids(state, key), shown=shown)


def _texts(content: str | Sequence[object]) -> list[str]:
    blocks = [content] if isinstance(content, str) else content
    texts = (block.text if isinstance(block, TextBlock) else block for block in blocks)
    return [text for text in texts if isinstance(text, str)]


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
    own = [
        message
        for message in state.context
        if message.id == reply_id and message.role == "assistant"
    ]
    if not own:
        return streamed
    texts: list[str] = []
    for block in (block for message in own for block in message.content):
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
    return [message for message in messages if id(message) not in dropped]


def drop_notes(state: AgentState, memory: str, is_dropped: Callable[[str, str], bool]) -> None:
    """Remove some notes of one memory from a state's conversation, as `without_notes`."""
    kept = without_notes(state.context, memory, is_dropped)
    if len(kept) < len(state.context):
        state.context[:] = kept


@contextmanager
def question_last(state: AgentState, memory: str) -> Iterator[None]:
    """Let a compression keep the question before the reply's note, which stays where it was.

    Meanwhile the note is the first message: it counts, but the last ones are kept.
    """
    notes = _notes(state.context, memory)
    note = next((one for one, about in notes if about.get("turn") == state.reply_id), None)
    if note is None:
        yield
        return
    place = next(at for at, one in enumerate(state.context) if one is note)
    before = {one.id for one in state.context[:place]}
    state.context.insert(0, state.context.pop(place))
    try:
        yield
    finally:
        kept = [one for one in state.context if one.id != note.id]
        place = sum(one.id in before for one in kept)
        state.context[:] = [*kept[:place], note, *kept[place:]]


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


def to_summary(summary: str | Sequence[object]) -> str:
    """Return what an agent's `state.summary` tells, without what frames it.

    Empty if nothing was summarised, as where the summary failed and messages were cut off.
    """
    blocks = [summary] if isinstance(summary, str) else summary
    texts = [one if isinstance(one, str) else getattr(one, "text", "") for one in blocks]
    text = _SUMMARY_TAG.sub("", _FRAMING.sub("", "\n".join(texts)))
    text = text.strip().removeprefix(_SUMMARY_HEAD).strip()
    return "" if text.startswith(_CUT_OFF) else text
