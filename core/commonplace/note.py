"""Recalled memories as a text that a model reads as data.

A memory may hold anything that anybody ever said, also text made to look like an instruction, a
heading or the end of the note. Each becomes one harmless line here, whatever it holds.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from .model import Match
from .policy import Policy

NOTE_MARK = "commonplace.note"
MAX_MEMORY = 500
MAX_NOTE = 4_000

# Letters and marks that show nothing: they hide text from people, not from models.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›", "`": "'"})
_RULES = re.compile(r"([#=~*_+-])\1{2,}|(##)")
_TOKENS = re.compile(r"\[(\s*/?\s*(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL)\s*)\]", re.IGNORECASE)
_LEADING = re.compile(r"^(?:[#>|=~*+-]+\s+)+")


def escape(text: str, limit: int = MAX_MEMORY) -> str:
    """Make one line of at most `limit` characters that opens, closes and fakes nothing.

    Line breaks and other control characters become spaces, invisible ones go, angle brackets and
    backticks become look-alikes, runs of markdown characters shrink to one.
    """
    # Nothing beyond this can be shown: a huge memory costs no more than a large one.
    text = "".join(_visible(char) for char in text[: limit * 8])
    text = _UNSEEN.sub("", text).translate(_ANGLES)
    text = _TOKENS.sub(r"(\1)", text)
    text = _RULES.sub(lambda run: run[0][0], text)
    text = _LEADING.sub("", " ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def bullets(matches: Sequence[Match], budget: int = MAX_NOTE) -> list[str]:
    """Write a line `- memory` for each match, best first, until `budget` characters are used.

    The same text comes once. What was said in a conversation tells who said it.
    """
    lines: dict[str, None] = {}
    for match in matches:
        record = match.record
        speaker = (record.name or record.role) if record.kind == "episode" else None
        text = escape(f"{speaker}: {record.text}" if speaker else record.text)
        line = f"- {text}"
        if not text or line in lines:
            continue
        budget -= len(line) + 1
        if budget < 0:
            break
        lines[line] = None
    return list(lines)


def render(matches: Sequence[Match], policy: Policy) -> str:
    """Write the note: header, intro and one line for each memory; at most 4,000 characters.

    Empty text if there is nothing to show.
    """
    head = f"{policy.header}\n{policy.intro}"
    lines = bullets(matches, MAX_NOTE - len(head))
    return "\n".join([head, *lines]) if lines else ""


def mark(matches: Sequence[Match], turn: str = "") -> dict[str, dict[str, object]]:
    """Describe a note in the metadata of its message: for which turn, and which records it shows.

    `is_note` recognises a message by it; its name or text never decides.
    """
    records = [{"id": one.record.id, "score": one.score} for one in matches]
    return {NOTE_MARK: {"turn": turn, "records": records}}


def is_note(metadata: Mapping[str, object] | None, source: str | None = None) -> bool:
    """Tell whether a message or block with this metadata or source is a note of ours.

    Such a message is recalled text and is never written back.
    """
    return source == NOTE_MARK or (metadata is not None and NOTE_MARK in metadata)


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category in {"Cc", "Zl", "Zp", "Zs"}:
        return " "
    return "" if category[0] == "C" else char
