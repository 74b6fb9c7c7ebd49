"""Import of the sessions that Strands' `FileSessionManager` has written to a folder.

    import_sessions(memory, "~/.strands/sessions", user_id="alice")

Sessions, agents with their state, messages with their numbers and times, and the states of graphs
and swarms go through `CommonplaceSessionRepository`. The folder is only read. What is here already
is left as it is, so an interrupted import is repeated.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from strands.session.file_session_manager import (
    AGENT_PREFIX,
    MESSAGE_PREFIX,
    MULTI_AGENT_PREFIX,
    SESSION_PREFIX,
)
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from commonplace import InvalidRecordError, Memory
from commonplace.admin import ImportTally
from commonplace.agents import check_memory

from .sessions import CommonplaceSessionRepository
from .turn_owner import Id

T = TypeVar("T")
SESSIONS, AGENTS, MESSAGES, MULTI_AGENTS = "sessions", "agents", "messages", "graphs and swarms"
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, SessionException)


def import_sessions(
    memory: Memory,
    folder: str | PathLike[str],
    *,
    user_id: Id | None = None,
    agent_id: Id | None = None,
    dry_run: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ImportTally:
    """Import all sessions in a folder for one owner; after an interruption, call it again.

    Args:
        folder: the `storage_dir` of a `FileSessionManager`.
        user_id, agent_id: the owner of the sessions; at least one.
        dry_run: only count what would be imported.
        progress: is called with `sessions`, how many are done, and of how many.

    Raises:
        InvalidRecordError: the folder has no sessions.
        InvalidScopeError: the owner cannot be one.
    """
    check_memory(memory)
    sessions = CommonplaceSessionRepository(memory, user_id=user_id, agent_id=agent_id)
    places = list(_files(Path(folder).expanduser(), SESSION_PREFIX, "session.json"))
    if not places:
        raise InvalidRecordError(
            field="folder", value=str(folder), reason="must be a folder of FileSessionManager"
        )
    job = _SessionImport(sessions, dry_run)
    for number, (name, file) in enumerate(places, 1):
        job.import_session(name, file)
        if progress is not None:
            progress(SESSIONS, number, len(places))
    return job.tally


@dataclass(frozen=True, slots=True)
class _SessionImport:
    sessions: CommonplaceSessionRepository
    dry_run: bool
    tally: ImportTally = field(default_factory=ImportTally)

    def import_session(self, name: str, file: Path) -> None:
        """Import a session, then what is in it: each thing after what it belongs to."""
        sessions = self.sessions
        known = sessions.read_session(name) is not None
        if not self._take(SESSIONS, name, known, file, Session.from_dict, sessions.create_session):
            return
        for agent, place in _files(file.parent / "agents", AGENT_PREFIX, "agent.json"):
            self._import_agent(name, agent, place)
        for graph, place in _files(
            file.parent / "multi_agents", MULTI_AGENT_PREFIX, "multi_agent.json"
        ):
            self._take(
                MULTI_AGENTS,
                f"{name}/{graph}",
                sessions.read_multi_agent(name, graph) is not None,
                place,
                partial(_multi_agent, graph),
                partial(sessions.create_multi_agent, name),
            )

    def _import_agent(self, session: str, agent: str, file: Path) -> None:
        sessions, name = self.sessions, f"{session}/{agent}"
        known = sessions.read_agent(session, agent) is not None
        add_agent = partial(sessions.create_agent, session)
        if not self._take(AGENTS, name, known, file, SessionAgent.from_dict, add_agent):
            return
        here = {one.message_id for one in sessions.list_messages(session, agent)} if known else ()
        for number, place in _messages(file.parent / "messages"):
            self._take(
                MESSAGES,
                f"{name}/{number}",
                number in here,
                place,
                SessionMessage.from_dict,
                partial(sessions.create_message, session, agent),
            )

    def _take(
        self,
        kind: str,
        name: str,
        is_known: bool,
        file: Path,
        convert: Callable[[dict[str, Any]], T],
        create: Callable[[T], object],
    ) -> bool:
        """Create what a file holds, unless it is here already; False if that is not possible."""
        try:
            if file.is_symlink():  # as Strands does not follow one either
                self.tally.refuse(kind, name, "is a symbolic link")
                return False
            given = convert(json.loads(file.read_text("utf-8")))
            if not (is_known or self.dry_run):
                create(given)
        except _UNREADABLE as error:
            self.tally.refuse(kind, name, error)
            return False
        (self.tally.known if is_known else self.tally.taken)[kind] += 1
        return True


def _multi_agent(name: str, state: dict[str, Any]) -> Any:
    """Make of a state what a repository takes for a graph or swarm."""
    return SimpleNamespace(id=name, serialize_state=lambda: state)


def _files(folder: Path, prefix: str, name: str) -> Iterator[tuple[str, Path]]:
    """List the names behind a prefix of the folders in a folder, each with a file that it has."""
    for place in sorted(folder.glob(f"{prefix}*")):
        if (place / name).is_file():
            yield place.name.removeprefix(prefix), place / name


def _messages(folder: Path) -> list[tuple[int, Path]]:
    """List the messages in a folder by their numbers."""
    found = ((file.stem.removeprefix(MESSAGE_PREFIX), file) for file in folder.glob("*.json"))
    return sorted((int(number), file) for number, file in found if number.isdecimal())
