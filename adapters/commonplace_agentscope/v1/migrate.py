"""Import of the conversations that `JSONSession` of AgentScope 1.x has written to files.

    import_sessions(memory, ["sessions/alice_monday.json"], user_id="alice")

A file has the states of agents and memories, under names that the application chose. The messages
of every `InMemoryMemory` in it become the turns of one session, with the ids that
`LongTermMemory.record` gives them, and the summary of what an agent compressed becomes its own.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from agentscope.message import Msg

from commonplace import Memory, Scope
from commonplace.admin import ImportTally
from commonplace.agents import check_memory, in_session, to_scope

from .convert import to_history

SESSIONS, MESSAGES, SUMMARIES = "sessions", "messages", "summaries"
_BATCH = 500  # messages of a write
_COMPRESSED = "compressed"  # the mark of what a summary stands for
_MESSAGE: Any = Msg  # of 1.x, whatever release the types are of
_SUMMARY_FRAME = re.compile(r"</?system-info>|Here is a summary of your previous work\n")


def import_sessions(
    memory: Memory,
    files: Sequence[str | PathLike[str]],
    *,
    user_id: str,
    agent_id: str | None = None,
    dry_run: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ImportTally:
    """Import saved conversations of one user; after an interruption, call it again.

    What was deleted here since stays deleted, and a session that has had a summary keeps its own.

    Args:
        files: those of a `JSONSession`, all of this user's. Each is a session, called as the file
            is, without `USER_` in front.
        user_id, agent_id: whose conversations they are.
        dry_run: only count what would be imported.
        progress: is called with `sessions`, how many are done, and of how many.

    Raises:
        InvalidScopeError: an id cannot be used.
        OSError: a file cannot be read.
    """
    check_memory(memory)
    owner, tally = to_scope(user_id, agent_id), ImportTally()
    for number, file in enumerate(map(Path, files), 1):
        name = file.stem.removeprefix(f"{user_id}_")
        try:
            states = list(_memories(json.loads(file.read_bytes().decode("utf-8", "surrogatepass"))))
            if not states:
                raise ValueError("it holds no memory of AgentScope 1.x")
            _import_session(memory, states, in_session(owner, name), tally, dry_run=dry_run)
        except (ValueError, TypeError, KeyError, AssertionError) as error:
            tally.refuse(SESSIONS, name, error)
        if progress is not None:
            progress(SESSIONS, number, len(files))
    return tally


def _import_session(
    memory: Memory, states: Sequence[dict[str, Any]], scope: Scope, tally: ImportTally, *,
    dry_run: bool,
) -> None:  # fmt: skip
    """Store the turns that are not here yet, then the summary."""
    saved = [_item(one) for state in states for one in state["content"]]
    saved.sort(key=lambda one: str(one[0].timestamp))  # of several agents
    messages = to_history([one for one, _ in saved])
    ids = {_record_id(scope, message.id): message for message in messages}
    known = {one.id for one in memory.get_many(list(ids), scope)}
    for deleted in [one for one in ids if one not in known and memory.history(one, scope)]:
        tally.refuse(MESSAGES, deleted, "deleted here since")
        del ids[deleted]
    new = [message for record_id, message in ids.items() if record_id not in known]
    for start in range(0, 0 if dry_run else len(new), _BATCH):
        memory.add(new[start : start + _BATCH], scope, infer=False)
    tally.known[MESSAGES] += len(known)
    tally.taken[MESSAGES] += len(new)
    summaries = (_SUMMARY_FRAME.sub("", state.get("_compressed_summary", "")) for state in states)
    text = "\n\n".join(filter(None, map(str.strip, summaries)))
    if text:
        is_known = bool(memory.history(scope.summary_id, scope))
        gone = to_history([one for one, marks in saved if _COMPRESSED in marks])
        covers = {_record_id(scope, message.id) for message in gone}
        if not (is_known or dry_run):
            memory.session(scope).summarize(text, [one for one in ids if one in covers])
        (tally.known if is_known else tally.taken)[SUMMARIES] += 1
    (tally.taken if new or not known else tally.known)[SESSIONS] += 1


def _record_id(scope: Scope, message_id: str | None) -> str:
    return scope.record_id("episode", str(message_id))


def _memories(state: object) -> Iterator[dict[str, Any]]:
    """List the states of memories in that of a session, however deep they are."""
    if isinstance(state, dict):
        if isinstance(state.get("content"), list):
            yield state
        else:
            for value in state.values():
                yield from _memories(value)


def _item(saved: Any) -> tuple[Any, Sequence[str]]:
    """Read a message and its marks; former releases saved none."""
    message, marks = (saved, ()) if isinstance(saved, dict) else saved
    return _MESSAGE.from_dict(message), marks
