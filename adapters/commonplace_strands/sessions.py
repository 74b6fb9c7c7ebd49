"""Session repository: Strands' conversations on a memory, exact, durable and erasable.

Sessions are rows of JSON in the memory's checkpoints, one thread for each session.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from commonplace import InvalidRecordError, InvalidScopeError, Memory, Scope, WrongTypeError
from commonplace.agents import check_memory, check_scope, hinting_init, in_session
from commonplace.ports import Address, Blob, Checkpoint, Selection

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

_SESSION = "session", "session"  # the one row of its table
_DIGITS = 20
_BLOB_TYPE = "strands/json"
_PAGE_SIZE = 256


@hinting_init
class CommonplaceSessionRepository(SessionRepository):
    """Keeps the sessions of one user or agent beside a memory, in its record of truth.

    For `RepositorySessionManager(session_id=..., session_repository=...)`. Safe in any thread; a
    change is on disk when the call returns. Two users may each have a session of one name: neither
    sees the other's. `Memory.forget` erases the sessions of the scope it gets, also a single one:
    `Scope(user_id=..., session_id=...)`.

    Args:
        memory: an open memory; the repository does not close it.
        scope: the owner of the sessions.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is not an open `Memory`.
        InvalidRecordError: `scope` is not a `Scope`.
        InvalidScopeError: the scope names a session; each call names its own.
    """

    def __init__(self, memory: Memory, scope: Scope) -> None:
        check_memory(memory)
        check_scope(scope)
        if scope.session_id is not None:
            raise InvalidScopeError(
                field="session_id", value=scope.session_id, reason="is named by each call"
            )
        self._memory = memory
        self._scope = scope

    # -- sessions ------------------------------------------------------------------------------

    def create_session(self, session: Session, **_: Any) -> Session:
        """Keep a new session.

        Raises:
            SessionException: there is one of this name.
        """
        _check_type("session", session, Session)
        rows = self._rows(session.session_id)
        if rows.find(*_SESSION) is not None:
            message = f"Session {session.session_id} already exists"
            raise SessionException(message)
        rows.put(*_SESSION, session.to_dict())
        return session

    def read_session(self, session_id: str, **_: Any) -> Session | None:
        """Read a session; None if there is none of this name."""
        row = self._rows(session_id).find(*_SESSION)
        return None if row is None else Session.from_dict(row)

    def delete_session(self, session_id: str, **_: Any) -> None:
        """Remove a session with its agents and messages.

        Raises:
            SessionException: there is none of this name.
        """
        rows = self._rows(session_id)
        rows.get(*_SESSION)
        rows.delete()

    # -- agents --------------------------------------------------------------------------------

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Keep a new agent.

        Raises:
            SessionException: there is no such session.
        """
        _check_type("session_agent", session_agent, SessionAgent)
        rows = self._rows(session_id)
        rows.get(*_SESSION)
        rows.put("agents", session_agent.agent_id, session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:
        """Read an agent; None if the session has none of this name."""
        row = self._rows(session_id).find("agents", agent_id)
        return None if row is None else SessionAgent.from_dict(row)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Replace an agent; its creation time stays.

        Raises:
            SessionException: there is no such agent.
        """
        _check_type("session_agent", session_agent, SessionAgent)
        rows, name = self._rows(session_id), session_agent.agent_id
        session_agent.created_at = rows.get("agents", name)["created_at"]
        rows.put("agents", name, session_agent.to_dict())

    # -- messages ------------------------------------------------------------------------------

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Keep a message of an agent.

        Raises:
            SessionException: there is no such agent.
        """
        _check_type("session_message", session_message, SessionMessage)
        rows, number = self._rows(session_id), _number(session_message.message_id)
        rows.get("agents", agent_id)
        rows.put(_messages(agent_id), number, session_message.to_dict())

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: Any
    ) -> SessionMessage | None:
        """Read a message; None if the agent has none of this number."""
        row = self._rows(session_id).find(_messages(agent_id), _number(message_id))
        return None if row is None else SessionMessage.from_dict(row)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Replace a message, as after a redaction; its creation time stays.

        Raises:
            SessionException: there is no such message.
        """
        _check_type("session_message", session_message, SessionMessage)
        rows, number = self._rows(session_id), _number(session_message.message_id)
        session_message.created_at = rows.get(_messages(agent_id), number)["created_at"]
        rows.put(_messages(agent_id), number, session_message.to_dict())

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_: Any
    ) -> list[SessionMessage]:
        """List messages in the order of their numbers: `limit` of them, after the first `offset`.

        Raises:
            SessionException: there is no such agent.
        """
        for name, value in (("limit", limit), ("offset", offset)):
            if value is not None and (type(value) is not int or value < 0):
                raise InvalidRecordError(
                    field=name, value=value, reason="must be a whole number from 0"
                )
        rows = self._rows(session_id)
        rows.get("agents", agent_id)
        found = rows.list(_messages(agent_id), offset=offset, limit=limit)
        return [SessionMessage.from_dict(one) for one in found]

    # -- several agents ------------------------------------------------------------------------

    def create_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **_: Any) -> None:
        """Keep the state of a new graph or swarm.

        Raises:
            SessionException: there is no such session.
        """
        rows = self._rows(session_id)
        rows.get(*_SESSION)
        rows.put("multi_agents", multi_agent.id, multi_agent.serialize_state())

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **_: Any
    ) -> dict[str, Any] | None:
        """Read the state of a graph or swarm; None if the session has none of this name."""
        return self._rows(session_id).find("multi_agents", multi_agent_id)

    def update_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **_: Any) -> None:
        """Replace the state of a graph or swarm.

        Raises:
            SessionException: there is none of this name.
        """
        rows = self._rows(session_id)
        rows.get("multi_agents", multi_agent.id)
        rows.put("multi_agents", multi_agent.id, multi_agent.serialize_state())

    # -- wiring --------------------------------------------------------------------------------

    def _rows(self, session_id: str) -> "SessionRows":
        if type(session_id) is not str or not session_id:
            raise InvalidScopeError(
                field="session_id", value=session_id, reason="must name a session"
            )
        return SessionRows(self._memory, in_session(self._scope, session_id))


def _check_type(field: str, given: object, wanted: type) -> None:
    if not isinstance(given, wanted):
        raise WrongTypeError(
            field=field,
            value=given,
            takes=f"a {wanted.__name__} of Strands",
            hint="RepositorySessionManager(session_id=..., session_repository=...) makes it.",
        )


def _messages(agent_id: str) -> str:
    return f"messages of {agent_id}"


def _number(message_id: object) -> str:
    """Write a number so that texts have the order of numbers."""
    if type(message_id) is not int or message_id < 0:
        raise InvalidRecordError(
            field="message_id", value=message_id, reason="must be a whole number from 0"
        )
    return f"{message_id:0{_DIGITS}}"


class SessionRows:
    """The rows of one session, each addressed by its table and name.

    Args:
        memory: an open memory.
        scope: the owner with the session.
    """

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._checkpoints = memory.checkpoints
        self._scope = scope
        self._thread = f"strands/{scope.key}"

    def put(self, table: str, name: str, row: Mapping[str, Any]) -> None:
        """Write or replace a row, durably."""
        # A message may hold lone surrogates.
        data = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
        checkpoint = Checkpoint(
            address=Address(thread=self._thread, namespace=table, id=name),
            body=Blob(type=_BLOB_TYPE, data=data),
            metadata=Blob(type=_BLOB_TYPE, data=b"{}"),
            versions={},
        )
        self._checkpoints.put(checkpoint, {}, self._scope)

    def find(self, table: str, name: str) -> dict[str, Any] | None:
        """Read a row; None if there is none."""
        state = self._checkpoints.read(self._thread, table, name)
        return None if state is None else _decode(state.checkpoint)

    def get(self, table: str, name: str) -> dict[str, Any]:
        """Read a row.

        Raises:
            SessionException: there is none.
        """
        row = self.find(table, name)
        if row is None:
            session = self._scope.session_id
            message = f"Session {session} does not exist, or has no {name!r} in its {table}"
            raise SessionException(message)
        return row

    def list(
        self, table: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the rows of a table, smallest name first; `limit` of them, or all."""
        selection = Selection(thread=self._thread, namespace=table)
        after: Address | None = None
        while limit is None or limit > 0:
            size = _PAGE_SIZE if limit is None else min(limit, _PAGE_SIZE)
            page = self._checkpoints.page(
                selection, limit=size, after=after, offset=offset, is_ascending=True
            )
            yield from map(_decode, page)
            if len(page) < size:
                return
            after, offset = page[-1].address, 0
            limit = None if limit is None else limit - size

    def delete(self) -> None:
        """Remove all rows of the session."""
        self._checkpoints.delete([self._thread])


def _decode(checkpoint: Checkpoint) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(checkpoint.body.data)
    return row
