"""What `add` takes as messages, as turns: role, text and the speaker's name.

- a text is one turn of the user; a dict is one message; a list may mix both.
- content in parts is reduced to its texts, joined by a space; an image is told to the log once.
- a message without text, such as a tool call, is left out.
- roles by other names are those of chat models: `human`, `ai`, `function`, `developer`.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from commonplace import Message, Role

from .exceptions import NO_MESSAGES, ValidationError

logger = logging.getLogger("commonplace_mem0")
_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}
_told: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message; `role` is as it was given."""

    text: str
    role: str
    name: str | None = None

    @property
    def speaker(self) -> str:
        """The role as a chat model knows it."""
        role = _ROLES.get(self.role.lower(), self.role.lower())
        return role if role in get_args(Role) else "user"

    def to_message(self, at: datetime | None) -> Message:
        """Write it as a message of ours."""
        name = self.name.strip()[:256] if self.name and self.name.strip() else None
        return Message(text=self.text, role=self.speaker, name=name, at=at)  # type: ignore[arg-type]  # one of Role


def to_turns(messages: object) -> list[Turn]:
    """Read messages, in order, those with a text; the caller's objects are left alone.

    Raises:
        ValidationError: they are none (`VALIDATION_003`).
    """
    if isinstance(messages, str | Mapping):
        messages = [messages]
    if not isinstance(messages, list | tuple):
        raise ValidationError(
            f"messages must be str, dict, or list[dict], not {type(messages).__name__}",
            NO_MESSAGES,
            {"provided_type": type(messages).__name__, "valid_types": ["str", "dict", "list"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )
    return [turn for one in messages if (turn := _turn(one)) is not None]


def _turn(given: object) -> Turn | None:
    if isinstance(given, str):
        return Turn(text=given, role="user") if given.strip() else None
    if not isinstance(given, Mapping):
        raise ValidationError(
            f"The message {given!r} is neither a text nor a dict with role and content.",
            NO_MESSAGES,
        )
    text = _text(given.get("content"))
    role, name = given.get("role") or "user", given.get("name")
    if not text.strip():
        return None
    return Turn(text=text, role=str(role), name=None if name is None else str(name))


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        raise ValidationError(f"The content {content!r} is no text and no list.", NO_MESSAGES)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = str(part.get("type")) if isinstance(part, Mapping) else type(part).__name__
            if kind not in _told:
                _told.add(kind)
                logger.warning("Parts of messages that are no text are left out, here %r", kind)
    return " ".join(texts)
