"""AgentScope 1.x messages as `Message`s, and a history as what was said in it.

- the text blocks of `Msg.content`, joined by line breaks → `Message.text`; more than a record holds
  becomes several messages. Thinking, images, tool calls and results are dropped, and so is what
  AgentScope writes around a task (`<system-hint>`, `<retrieved_knowledge>` and the like).
- `Msg.role` `user` and `assistant` → `Message.role`; `system` is dropped, as are tool results.
- `Msg.name` → `Message.name`. `Msg.timestamp` → `Message.at`, as local time.
- `Msg.id` with the text, as callers reuse ids → `Message.id`: an agent hands over its whole history
  after each reply, and a message in it is the same one each time.
- `Msg.metadata`, `invocation_id` → dropped.
- dropped whole: notes (by their name `long_term_memory`), the summary of a compressed history, what
  an agent said between its tool calls, and what it said in a reply that was interrupted.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from agentscope.message import Msg

from commonplace import Message
from commonplace.agents import clean, hash_id, is_visible, to_messages, to_time

NOTE_NAME = "long_term_memory"
_SPEAKERS = ("user", "assistant")
_FRAMING = re.compile(
    r"<(system-hint|system-info|system-reminder|retrieved_knowledge|long_term_memory)(?: [^>]*)?>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)


def to_query(messages: Iterable[Any]) -> str:
    """Join the texts of messages to recall for, whoever said them; often empty."""
    return "\n".join(to_text(message) for message in messages if _is_said(message))


def to_text(message: Any) -> str:
    """Read what the author of a message wrote, without what AgentScope put around it."""
    content = message.content
    blocks = [content] if isinstance(content, str) else _texts(content)
    text = clean("\n".join(blocks))
    own = _FRAMING.sub("", text)
    return text if own == text else own.strip()


def to_history(messages: Sequence[Any], summary: str = "") -> list[Message]:
    """Make the messages of a history that are worth keeping, in its order.

    Args:
        summary: of what the agent has compressed, which stands in front as if a user had said it.
    """
    found: list[Message] = []
    for turn in _turns(messages, summary):
        for message in turn:
            text = to_text(message)
            found += to_messages(
                text,
                "user" if message.role == "user" else "assistant",
                clean(str(message.name)),
                hash_id(message.id, text),
                to_time(message.timestamp),
            )
    return found


def to_shown(messages: Sequence[Any]) -> list[str]:
    """List the texts of a history that a model is shown: notes and tool results included."""
    return [
        text
        for message in messages
        if isinstance(message, Msg)
        for text in _all_texts(message.content)
    ]


def _turns(messages: Sequence[Any], summary: str) -> list[list[Any]]:
    """Split a history at the users' messages, and leave out of each part what is no answer."""
    turns: list[list[Any]] = [[]]
    # Before 1.0.12 an agent hands over its input in front of the history that ends with it.
    places = {
        (message.id, to_text(message)): place
        for place, message in enumerate(messages)
        if isinstance(message, Msg)
    }
    for message in (messages[place] for place in sorted(places.values())):
        if summary and message.role == "user" and message.content == summary:
            continue
        if (message.metadata or {}).get("_is_interrupted"):
            turns[-1] = [said for said in turns[-1] if said.name != message.name]
        elif _is_said(message):
            if message.role == "user":
                turns.append([])
            turns[-1].append(message)
    return [_without_steps(turn) for turn in turns]


def _without_steps(turn: list[Any]) -> list[Any]:
    """Leave out what agents said while they called tools, unless it is their last word."""
    last = {message.name: message for message in turn}
    return [
        message
        for message in turn
        if not message.has_content_blocks("tool_use") or last[message.name] is message
    ]


def _is_said(message: Any) -> bool:
    return (
        isinstance(message, Msg)
        and message.role in _SPEAKERS
        and message.name != NOTE_NAME
        and is_visible(to_text(message))
    )


def _texts(blocks: Iterable[Any]) -> list[str]:
    found = (
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    )
    return [text for text in found if isinstance(text, str)]


def _all_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    results = (block.get("output") for block in content if block.get("type") == "tool_result")
    return _texts(content) + [text for output in results for text in _all_texts(output or [])]
