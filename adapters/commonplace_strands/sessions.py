"""Session repository: Strands' conversations on a memory, exact, durable and erasable.

Sessions are rows of JSON in the memory's checkpoints, one thread for each session.
"""

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from commonplace import InvalidRecordError, InvalidScopeError, Scope, WrongTypeError
from commonplace.agents import (
    MemorySource,
    acquire_memory,
    check_integer,
    check_mapping,
    check_name,
    hinting_init,
    in_session,
)
from commonplace.ports import Address, Blob, Checkpoint, Checkpoints, Selection, iterate_checkpoints

from .turn_owner import Id, required_scope

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

_SESSION = "session", "session"  # the one row of its table
_DIGITS = 20
_BLOB_TYPE = "strands/json"
_PAGE_SIZE = 256
_MOST = 2**63 - 1
_MESSAGE = "{'role': 'user', 'content': [{'text': '...'}]}"


@hinting_init
class CommonplaceSessionRepository(SessionRepository):
    """Keeps the sessions of one user or agent beside a memory, in its record of truth.

    For `RepositorySessionManager(session_id=..., session_repository=...)`. Safe in any thread; a
    change is on disk when the call returns. Two users may each have a session of one name: neither
    sees the other's. `Memory.forget` erases the sessions of the scope it gets, and a single one
    with `Scope(user_id=..., session_id=...)`.

    Args:
        memory: see `MemoryPlugin`.
        user_id, agent_id: the owner of the sessions; at least one.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
        InvalidScopeError, InvalidRecordError: an argument cannot be used.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        user_id: Id | None = None,
        agent_id: Id | None = None,
    ) -> None:
        self._scope = required_scope(user_id, agent_id)
        self._memory = acquire_memory(self, memory)
        self._memory.start()  # the first read may come on an event loop

    # -- sessions ------------------------------------------------------------------------------

    def create_session(self, session: Session, **_: Any) -> Session:
        """Keep a new session.

        Raises:
            SessionException: there is one of this name.
        """
        _check_type("session", session, Session)
        rows = self._rows(session.session_id)
        if rows.find(*_SESSION) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        rows.put(*_SESSION, "session", session)
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
        rows = self._agent_rows(session_id, session_agent)
        rows.get(*_SESSION)
        rows.put("agents", session_agent.agent_id, "session_agent", session_agent)

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> SessionAgent | None:
        """Read an agent; None if the session has none of this name."""
        row = self._rows(session_id, agent_id=agent_id).find("agents", agent_id)
        return None if row is None else SessionAgent.from_dict(row)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: Any) -> None:
        """Replace an agent; its creation time stays.

        Raises:
            SessionException: there is no such agent.
        """
        rows = self._agent_rows(session_id, session_agent)
        session_agent.created_at = rows.get("agents", session_agent.agent_id)["created_at"]
        rows.put("agents", session_agent.agent_id, "session_agent", session_agent)

    # -- messages ------------------------------------------------------------------------------

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Keep a message of an agent.

        Raises:
            SessionException: there is no such agent.
        """
        number = _number_of(session_message)
        rows = self._rows(session_id, agent_id=agent_id)
        rows.get("agents", agent_id)
        rows.put(_messages(agent_id), number, "session_message", session_message)

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: Any
    ) -> SessionMessage | None:
        """Read a message; None if the agent has none of this number."""
        rows = self._rows(session_id, agent_id=agent_id)
        row = rows.find(_messages(agent_id), _number(message_id))
        return None if row is None else SessionMessage.from_dict(row)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: Any
    ) -> None:
        """Replace a message, as after a redaction; its creation time stays.

        Raises:
            SessionException: there is no such message.
        """
        number = _number_of(session_message)
        rows = self._rows(session_id, agent_id=agent_id)
        session_message.created_at = rows.get(_messages(agent_id), number)["created_at"]
        rows.put(_messages(agent_id), number, "session_message", session_message)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_: Any
    ) -> list[SessionMessage]:
        """List messages in the order of their numbers: `limit` of them, after the first `offset`.

        Raises:
            SessionException: there is no such agent.
        """
        check_integer("offset", offset, 0, _MOST)
        if limit is not None:
            check_integer("limit", limit, 0, _MOST)
        rows = self._rows(session_id, agent_id=agent_id)
        rows.get("agents", agent_id)
        found = rows.list(_messages(agent_id), offset=offset, limit=limit)
        return [*map(SessionMessage.from_dict, found)]

    # -- several agents ------------------------------------------------------------------------

    def create_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **_: Any) -> None:
        """Keep the state of a new graph or swarm.

        Raises:
            SessionException: there is no such session.
        """
        rows = self._multi_agent_rows(session_id, multi_agent)
        rows.get(*_SESSION)
        rows.put("multi_agents", multi_agent.id, "multi_agent", multi_agent)

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **_: Any
    ) -> dict[str, Any] | None:
        """Read the state of a graph or swarm; None if the session has none of this name."""
        rows = self._rows(session_id, multi_agent_id=multi_agent_id)
        return rows.find("multi_agents", multi_agent_id)

    def update_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **_: Any) -> None:
        """Replace the state of a graph or swarm.

        Raises:
            SessionException: there is none of this name.
        """
        rows = self._multi_agent_rows(session_id, multi_agent)
        rows.get("multi_agents", multi_agent.id)
        rows.put("multi_agents", multi_agent.id, "multi_agent", multi_agent)

    # -- wiring --------------------------------------------------------------------------------

    def _agent_rows(self, session_id: str, agent: SessionAgent) -> "SessionRows":
        _check_type("session_agent", agent, SessionAgent)
        check_mapping("state", agent.state, "{'turns': 1}")
        return self._rows(session_id, agent_id=agent.agent_id)

    def _multi_agent_rows(self, session_id: str, multi_agent: "MultiAgentBase") -> "SessionRows":
        if not hasattr(multi_agent, "id") or not hasattr(multi_agent, "serialize_state"):
            raise WrongTypeError(
                field="multi_agent",
                value=multi_agent,
                takes="a MultiAgentBase of Strands",
                hint="Pass the graph or swarm itself.",
            )
        return self._rows(session_id, multi_agent_id=multi_agent.id)

    def _rows(self, session_id: str, **names: object) -> "SessionRows":
        """Return the rows of a session."""
        for field, name in names.items():
            check_name(field, name)
        if type(session_id) is not str or not session_id:
            raise InvalidScopeError(
                field="session_id", value=session_id, reason="must name a session"
            )
        return SessionRows(
            self._memory.get().admin.checkpoints, in_session(self._scope, session_id)
        )


class SessionRows:
    """The rows of one session, each addressed by its table and name."""

    def __init__(self, checkpoints: Checkpoints, scope: Scope) -> None:
        self._checkpoints = checkpoints
        self._scope = scope
        self._thread = f"strands/{scope.key}"

    def put(self, table: str, name: str, field: str, given: Any) -> None:
        """Write or replace a row, durably.

        Args:
            field: the parameter that `given` was passed as, for the error.
            given: what Strands makes a dict of.

        Raises:
            InvalidRecordError: JSON cannot hold it.
        """
        checkpoint = Checkpoint(
            address=Address(thread=self._thread, namespace=table, id=name),
            body=Blob(type=_BLOB_TYPE, data=_encode(field, given)),
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
            raise SessionException(
                f"Session {session} does not exist, or has no {name!r} in its {table}"
            )
        return row

    def list(
        self, table: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the rows of a table, smallest name first; `limit` of them, or all."""
        rows = iterate_checkpoints(
            self._checkpoints,
            Selection(thread=self._thread, namespace=table),
            page_size=min(limit or _PAGE_SIZE, _PAGE_SIZE),
            offset=offset,
            is_ascending=True,
        )
        return map(_decode, islice(rows, limit))

    def delete(self) -> None:
        """Remove all rows of the session."""
        self._checkpoints.delete([self._thread])


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


def _number_of(given: SessionMessage) -> str:
    _check_type("session_message", given, SessionMessage)
    check_mapping("message", given.message, _MESSAGE)
    if given.redact_message is not None:
        check_mapping("redact_message", given.redact_message, _MESSAGE)
    return _number(given.message_id)


def _number(message_id: int) -> str:
    """Write a number so that texts have the order of numbers."""
    check_integer("message_id", message_id, 0, _MOST)
    return f"{message_id:0{_DIGITS}}"


def _encode(field: str, given: Any) -> bytes:
    try:
        row = given.to_dict() if hasattr(given, "to_dict") else given.serialize_state()
        # A message may hold lone surrogates.
        text = json.dumps(row, ensure_ascii=False, default=partial(_refuse, field))
        return text.encode("utf-8", "surrogatepass")
    except InvalidRecordError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        _refuse(field, given, f" ({error})")


def _decode(checkpoint: Checkpoint) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(checkpoint.body.data)
    return row


def _refuse(field: str, value: object, why: str = "") -> NoReturn:
    raise InvalidRecordError(
        field=field,
        value=value,
        reason=f"cannot be kept as JSON{why}",
        hint="Keep texts, numbers, bytes, lists and dicts of them.",
    )
