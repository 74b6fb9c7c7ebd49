"""Conversion of the SDK's input items to texts.

- `content` of a message or `output` of a tool, a text or a list of parts with a `text` → text
- user items since the last item of another kind → what the user said
- a response that calls no tool → what is answered
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agents import ModelResponse

from commonplace.agents import clean, is_visible


def text_of(item: Mapping[str, Any]) -> str:
    """Return an item's text; empty if it has none, such as a call of a tool."""
    content = item.get("content", item.get("output"))
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return clean("\n".join(text for text in texts if isinstance(text, str)))


def user_texts(items: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return what the user said since the last answer, by the positions of its items.

    A text that is there again, as where a turn failed and is tried again, counts once.
    """
    texts: dict[int, str] = {}
    for position, item in enumerate(items):
        if item.get("role") == "user":
            text = text_of(item)
            if text not in texts.values():
                texts[position] = text
        elif item.get("role") not in ("system", "developer"):
            texts.clear()
    return {position: text for position, text in texts.items() if is_visible(text)}


def answer_of(response: ModelResponse) -> str:
    """Return the text of a response; empty if it calls a tool, and so is not the last one."""
    items: list[Any] = list(response.to_input_items())
    if any(item.get("type") == "function_call" for item in items):
        return ""
    return "\n".join(text_of(item) for item in items if item.get("role") == "assistant")
