"""Hooks of coding agents that tell of their sessions as Claude Code does: JSON in, JSON out.

The person at the keyboard is the user, and the project is the agent. What is said is kept as turns,
and what fits a prompt is shown with it.
"""

import getpass
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..types import Match, Message, Role, Scope
from .agent_memory import AgentMemory
from .framework_values import hash_id, in_session, to_messages
from .note import render
from .policy import TOOL_NAMES, Policy
from .recall import Conversation, shorten
from .turns import turn_record_ids

if TYPE_CHECKING:
    from ..memory import Memory

POLICY = Policy(tools=TOOL_NAMES, top_k=8)
_NEWEST = 10  # facts that are shown when a session begins
_MOST = 400  # last turns of a transcript that are read
_MOST_BYTES = 8_000_000  # of a transcript that are read, at its end
_MAX_TURN = 8_000  # characters of a turn that are kept: its beginning and its end
_FIRST_SECONDS = 8.0  # for a recall that loads the embedder
# A command to the program, not to the agent, or what the program wrote itself.
_OF_PROGRAM = re.compile(
    r"\s*(?:/[\w:-]+(?:\s|$)|<(?:command-|local-command-|bash-|system-reminder|task-notification)"
    r"|\[Request interrupted by user[^]]*\]\s*$)"
)


def project_scope(user_id: str | None = None) -> Scope:
    """Make the scope of the project at hand: `CLAUDE_PROJECT_DIR`, else the working folder.

    Args:
        user_id: who is at the keyboard; the name of the account when None.
    """
    project = str(Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd()).resolve())
    is_long = len(project) > 256
    return Scope(
        user_id=user_id or getpass.getuser(),
        agent_id=hash_id("project", project) if is_long else project,
    )


def run_hook(event: Mapping[str, Any], memory: "Memory", owner: Scope) -> dict[str, Any]:
    """Do what belongs to an event of a session, and return what the agent is told.

    Args:
        event: as it is documented: `hook_event_name`, `session_id` and what the event adds, such as
            `prompt` or `transcript_path`. An unknown event does nothing.
        owner: the user and the project.

    Returns:
        For `SessionStart` and `UserPromptSubmit` the note, of at most 4,000 characters, as
        `additionalContext`; else, or if there is nothing to show, an empty object.
    """
    agent = AgentMemory(memory, POLICY, log="commonplace", first_recall_timeout=_FIRST_SECONDS)
    name, scope = event.get("hook_event_name"), in_session(owner, event.get("session_id"))
    prompt = _text(event.get("prompt"))
    if name == "SessionStart":
        newest = memory.list(owner, kinds=("fact", "procedure"), limit=_NEWEST)
        known = [Match(record=record, score=1.0) for record in newest]
        return _shown(name, [*agent.recall(scope, ""), *known])
    if name == "UserPromptSubmit" and not _OF_PROGRAM.match(prompt):
        held = [one.text for one in _transcript(event.get("transcript_path"), is_held=True)]
        found = agent.recall(scope, prompt, Conversation(texts=held))
        turn = _turn("user", prompt, times := Counter[str]())
        while turn and memory.get_many(turn_record_ids(turn[:1], scope, POLICY), scope):
            turn = _turn("user", prompt, times)
        agent.write(turn, scope)
        return _shown(name, found)
    if name in ("Stop", "PreCompact"):
        answer = _text(event.get("last_assistant_message"))
        said = _transcript(event.get("transcript_path"), answer)
        if name == "Stop":
            starts = [at for at, one in enumerate(said) if one.role == "user"]
            said = said[starts[-1] :] if starts else said
        agent.write(said, scope)
    return {}


def _shown(name: str, matches: list[Match]) -> dict[str, Any]:
    note = render(matches, POLICY)
    said = {"hookEventName": name, "additionalContext": note}
    return {"hookSpecificOutput": said} if note else {}


def _turn(role: Role, text: str, times: Counter[str]) -> list[Message]:
    """Make the messages of a turn; its id tells how often it was said, which `times` counts."""
    if role == "user" and _OF_PROGRAM.match(text):
        return []
    times[role + text] += 1
    again = times[role + text]
    message_id = hash_id(role if again == 1 else f"{role} {again}", text)
    return to_messages(shorten(text, _MAX_TURN), role, "", message_id)


def _transcript(path: object, answer: str = "", *, is_held: bool = False) -> list[Message]:
    """Read what user and assistant said to each other, with an answer that it may not have yet.

    What other programs and helpers of the agent said is left out, and with `is_held` what was
    compacted too.
    """
    lines: list[str] = []
    if isinstance(path, str) and (file := Path(path).expanduser()).is_file():
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - _MOST_BYTES))
            lines = opened.read().decode("utf-8", "replace").splitlines()
    said, times, last = list[Message](), Counter[str](), ("", "")
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:  # begun before what is read, or half written
            continue
        if isinstance(entry, dict) and not (entry.get("isMeta") or entry.get("isSidechain")):
            role, held = entry.get("type"), entry.get("message")
            if entry.get("isCompactSummary"):
                said = [] if is_held else said
            elif role in ("user", "assistant"):
                text = _text(held.get("content") if isinstance(held, dict) else None)
                said += (turn := _turn(role, text, times))
                last = (role, text) if turn else last
    said += [] if last == ("assistant", answer) else _turn("assistant", answer, times)
    return said[-_MOST:]


def _text(content: object) -> str:
    """Read the text of a message, whose content is one or a list of blocks."""
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list) else []
    texts = [one.get("text") for one in blocks if isinstance(one, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()
