"""What a reply leaves in its agent's state: notes, and the question until it is answered.

The state is saved, loaded and edited by others, so it is read with suspicion: what is damaged or of
another memory is left alone and counts as not there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agentscope.message import HintBlock, Msg
from agentscope.state import AgentState

from commonplace import Scope
from commonplace.agents.prompt import NOTE_MARK, is_note

_PARTS = ("name", "text", "at")


def holds_note(message: Msg) -> bool:
    """Tell whether a message of the context is a note of any memory, by its mark, not its name."""
    return is_note(message.metadata) or any(
        isinstance(block, HintBlock) and is_note(None, block.source) for block in message.content
    )


def without_notes(
    messages: Sequence[Msg], memory: str, is_meant: Callable[[str, str], bool]
) -> list[Msg]:
    """Copy a conversation but for notes of one memory; `is_meant` judges reply id and owner."""
    meant = {
        id(message)
        for message, held in _notes(messages, memory)
        if is_meant(str(held.get("turn")), str(held.get("owner")))
    }
    return [one for one in messages if id(one) not in meant]


def drop_notes(state: AgentState, memory: str, is_meant: Callable[[str, str], bool]) -> None:
    """Take notes of one memory out of a state's conversation; `is_meant` judges as above."""
    kept = without_notes(state.context, memory, is_meant)
    if len(kept) < len(state.context):
        state.context[:] = kept


def noted(state: AgentState, memory: str) -> set[str]:
    """Collect the ids of the records that notes of one memory in the conversation show."""
    found: set[str] = set()
    for _, held in _notes(state.context, memory):
        records = held.get("records")
        for record in records if isinstance(records, list) else []:
            if isinstance(record, dict) and type(record.get("id")) is str:
                found.add(record["id"])
    return found


def keep_question(
    state: AgentState, memory: str, owner: Scope | None, said: list[dict[str, str]]
) -> None:
    """Keep what was said until the state's own reply is answered; forget what others left."""
    kept = {key: _entries(state, memory)[key] for key in asked_by(state, memory)}
    if owner is not None:
        kept[owner.key] = {"reply_id": state.reply_id, "said": said}
    _put(state, memory, kept)


def asked_by(state: AgentState, memory: str) -> list[str]:
    """List the keys of those whom the state's own reply answers."""
    return [
        key
        for key, entry in _entries(state, memory).items()
        if isinstance(entry, dict) and entry.get("reply_id") == state.reply_id
    ]


def kept_question(state: AgentState, memory: str, owner: Scope) -> list[dict[str, str]]:
    """Read what the owner said in the state's own reply; empty list if that is not known."""
    if owner.key not in asked_by(state, memory):
        return []
    said = _entries(state, memory)[owner.key].get("said")
    return [
        one
        for one in (said if isinstance(said, list) else [])
        if isinstance(one, dict) and all(type(one.get(part)) is str for part in _PARTS)
    ]


def drop_question(state: AgentState, memory: str, owner: Scope, reply_id: str) -> None:
    """Forget what the owner said in a reply that is over."""
    entries = _entries(state, memory)
    entry = entries.get(owner.key)
    if not isinstance(entry, dict) or entry.get("reply_id") == reply_id:
        _put(state, memory, {key: one for key, one in entries.items() if key != owner.key})


def _notes(messages: Sequence[Msg], memory: str) -> Iterator[tuple[Msg, dict[str, Any]]]:
    for message in messages:
        marks: object = message.metadata
        held = marks.get(NOTE_MARK) if isinstance(marks, dict) else None
        if isinstance(held, dict) and held.get("memory") == memory:
            yield message, held


def _entries(state: AgentState, memory: str) -> dict[str, Any]:
    entries = state.middle_context.get(memory)
    return entries if isinstance(entries, dict) else {}


def _put(state: AgentState, memory: str, entries: dict[str, Any]) -> None:
    if entries:
        state.middle_context[memory] = entries
    else:
        state.middle_context.pop(memory, None)
