"""Message sanitising: a framework's texts made storable.

A framework lets any text pass and a store does not; no message is lost over a character or a
length.
"""

from datetime import datetime

from ..types import Message, Role
from ..validation import MAX_TEXT_BYTES

_BYTES_PER_CHARACTER = 4
_MAX_NAME = 256


def clean(text: str) -> str:
    """Leave out what no stored text may hold, NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def is_visible(text: str) -> bool:
    """Return whether a text has any visible character."""
    return any(char.isprintable() and not char.isspace() for char in text)


def to_messages(
    text: str, role: Role, name: str, message_id: str, at: datetime | None = None
) -> list[Message]:
    """Make messages of one turn: several of a text that one record cannot hold.

    Args:
        text: may hold anything; an empty list if there is nothing to read in it.
        name: the speaker's; what no name may hold is left out, perhaps all of it.
        message_id: of the first message; the others get a number behind it.
    """
    text = clean(text)
    size = len(text)
    if len(text.encode()) > MAX_TEXT_BYTES:
        size = MAX_TEXT_BYTES // _BYTES_PER_CHARACTER
    parts = [text[place : place + size] for place in range(0, len(text), size)] if size else []
    name = " ".join(clean(name).split())[:_MAX_NAME].strip()
    return [
        Message(
            text=part,
            role=role,
            name=name if is_visible(name) else None,
            at=at,
            id=message_id if not number else f"{message_id}#{number}",
        )
        for number, part in enumerate(parts)
        if is_visible(part)
    ]
