"""AgentScope's messages as ours.

- `Msg.get_text_content()` → `Message.text`: text blocks joined by line breaks; more than a record
  holds becomes several messages. Thinking, data, hints and tool calls are dropped.
- `Msg.role` `user` → `Message.role` `user`; other roles of an input are dropped.
- `Msg.name` → `Message.name`, without what no name may hold. `Msg.created_at` → `Message.at`, as
  local time when it has no zone.
- `Msg.id` → dropped: callers use one again. The reply and the place in it → `Message.id`.
- `Msg.structured_output` or `state.reply_context.structured_output` → `Message.text`, as JSON.
- `Msg.metadata`, `usage`, `finished_*` → dropped; a message marked as a note is dropped whole.
- the reply: `reply_id` → `Message.id`, the agent's name → `Message.name`, role `assistant`.
- `Match`es → an `AssistantMsg` named `memory` that holds one `HintBlock`, marked as a note.
"""

import json
from collections.abc import Sequence
from datetime import datetime

from agentscope.event import HintBlockEvent
from agentscope.message import AssistantMsg, HintBlock, Msg, TextBlock, ToolResultBlock
from agentscope.state import AgentState

from commonplace import Match, Message
from commonplace.agents.messages import clean, is_visible, to_messages
from commonplace.agents.policy import Policy
from commonplace.agents.prompt import NOTE_MARK, is_note, mark, render, shown

_NOTE_NAME = "memory"


def to_pending(inputs: object) -> list[dict[str, str]]:
    """Describe the user's messages of an input so that JSON can hold them; often an empty list.

    Events, None, other roles, notes and messages without visible text give nothing.
    """
    given = inputs if isinstance(inputs, list) else [inputs]
    return [
        {"name": clean(one.name), "text": text, "at": one.created_at}
        for one in given
        if isinstance(one, Msg) and one.role == "user" and not is_note(one.metadata)
        if is_visible(text := clean(one.get_text_content() or ""))
    ]


def to_exchange(
    pending: Sequence[dict[str, str]], answer: str, reply_id: str, name: str, number: int = 1
) -> list[Message]:
    """Make the messages of a turn: what the user said, then the agent's answer.

    `number` counts the answers of a reply from 1.
    """
    messages = []
    for place, one in enumerate(pending):
        at = _time(one["at"])
        messages += to_messages(one["text"], "user", one["name"], f"{reply_id}<{place}", at)
    answer_id = reply_id if number == 1 else f"{reply_id}>{number}"
    return messages + to_messages(answer, "assistant", name, answer_id)


def to_note(
    matches: Sequence[Match], policy: Policy, reply_id: str, memory: str, owner: str
) -> Msg | None:
    """Make the message that shows recalled memories to the model; None if there are none."""
    text = render(matches, policy)
    if not text:
        return None
    marked = mark(shown(matches, policy), reply_id, memory=memory, owner=owner)
    hint = HintBlock(hint=text, source=NOTE_MARK)
    return AssistantMsg(name=_NOTE_NAME, content=[hint], metadata=marked)


def to_event(note: Msg, reply_id: str) -> HintBlockEvent:
    """Announce a note to whoever listens to the reply."""
    (hint,) = note.get_content_blocks("hint")
    return HintBlockEvent(reply_id=reply_id, block_id=hint.id, source=hint.source, hint=hint.hint)


def final_text(state: AgentState, reply_id: str, streamed: str) -> str:
    """Read what the agent answered at the end of a reply; empty if it only used tools.

    A reply's blocks pile up in one message, so only text after the last tool result counts.
    `streamed` serves when a compression has folded that message away, or when another reply has
    taken the state over.
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


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (TypeError, ValueError):
        return None
