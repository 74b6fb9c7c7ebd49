"""Mapping between ADK's events, contents and memory entries and ours.

- text parts of `Event.content` → `Message.text`, joined by line breaks; thoughts, tool traffic,
  files and partial events are dropped.
- `Event.author` `user` → the role `user`; any other → `assistant`, with the author as its name.
- `Event.id` and the text → `Message.id`; `Event.timestamp` → `Message.at`.
- `MemoryEntry.content`, `custom_metadata`, `timestamp` → `Fact`; its `id` and `author` are dropped.
- `Match` → `MemoryEntry`, with `kind`, `session_id` and `score` in `custom_metadata`.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from commonplace import Fact, Match, Message, Role
from commonplace.agents import hash_id, to_messages, to_time


def text_of(content: types.Content | None) -> str:
    """Return what can be read in a content; empty if that is nothing."""
    parts = (content.parts if content is not None else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def said_at(event: Event) -> datetime:
    """Return when an event happened."""
    return datetime.fromtimestamp(event.timestamp, UTC)


def messages_of(events: Iterable[Event]) -> list[Message]:
    """Return what was said in events; several messages of a text that one record cannot hold."""
    said: list[Message] = []
    for event in events:
        text = "" if event.partial else text_of(event.content)
        name = "" if event.author == "user" else event.author
        role: Role = "assistant" if name else "user"
        said += to_messages(text, role, name, hash_id(event.id, text), said_at(event))
    return said


def to_fact(entry: MemoryEntry, metadata: Mapping[str, object]) -> Fact:
    """Make a fact of an entry, with more metadata."""
    given = {**metadata, **entry.custom_metadata}
    return Fact(text=text_of(entry.content), metadata=given, at=to_time(entry.timestamp))


def to_entry(match: Match) -> MemoryEntry:
    """Make an entry of what a search found."""
    record = match.record
    found = {"kind": record.kind, "session_id": record.scope.session_id, "score": match.score}
    role = "model" if record.role == "assistant" else "user"
    return MemoryEntry(
        id=record.id,
        content=types.Content(role=role, parts=[types.Part(text=record.text)]),
        author=record.name or record.role,
        timestamp=record.occurred_at.isoformat(),
        custom_metadata={**record.metadata, **found},
    )
