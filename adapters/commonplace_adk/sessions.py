"""Session service: ADK's sessions on a memory, exact, durable and erasable.

A session is a thread of the memory's checkpoints, with a row for each event, whose values are the
session's state after it: both are one transaction. What sessions share, the state of a user and
that of an app, is in threads of their own.
"""

import json
import math
import threading
import time
import uuid
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Any

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions import State as Prefix
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

from commonplace import Scope
from commonplace.agents import MemorySource, acquire_memory, hinting_init, in_session, to_scope
from commonplace.ports import (
    Address,
    Blob,
    Checkpoint,
    Checkpoints,
    Selection,
    State,
    TaskWrite,
    iterate_checkpoints,
)

_FIRST = "0 "  # begins the name of the row that creates a session, before all others
_PREFIXES = (Prefix.USER_PREFIX, Prefix.APP_PREFIX, Prefix.TEMP_PREFIX)
_WITHOUT_EVENTS = GetSessionConfig(num_recent_events=0)
# Branches of one agent append to one object, which none of them may find stale.
_locks = [threading.Lock() for _ in range(64)]


@hinting_init
class CommonplaceSessionService(BaseSessionService):
    """Keeps the sessions of ADK beside a memory, in its record of truth, for all users and apps.

    Safe on any event loop; a change is on disk when the call returns. `Memory.forget` of a user
    erases the user's sessions with their events and state, and the `user:` state; with a session,
    that session. The `app:` state belongs to no user: `Memory.forget(Scope(agent_id=app_name))`.

    Args:
        memory: see `CommonplaceMemoryService`.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
    """

    def __init__(self, memory: MemorySource = None) -> None:
        self._memory = acquire_memory(self, memory)
        self._memory.start()  # the first call comes on an event loop

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:  # fmt: skip
        """Create a session; its id is made up unless one is given.

        Raises:
            AlreadyExistsError: there is one of this id.
            InvalidScopeError: no scope can hold the user's id or the app's name; as everywhere.
        """
        events = SessionEvents(app_name, user_id, session_id or str(uuid.uuid4()))
        return await self._memory.on_checkpoints(events.create, state or {})

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:  # fmt: skip
        """Read a session; None if there is none."""
        events = SessionEvents(app_name, user_id, session_id)
        return await self._memory.on_checkpoints(events.read, config or GetSessionConfig())

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """List sessions without their events, those of all users if none is named."""
        # "00" is above the names of first rows and below those of events.
        name = None if user_id is None else _FIRST + to_scope(user_id, app_name).key
        asked = Selection(namespace=f"sessions of {app_name}", id=name, before="00")
        sessions = await self._memory.on_checkpoints(_list, asked)
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove a session, if there is one; what it shares with others stays."""
        await self._memory.on_checkpoints(SessionEvents(app_name, user_id, session_id).delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Read what the sessions of a user share, under its keys without `user:`."""
        found = await self._memory.on_checkpoints(_read_shared, to_scope(user_id, app_name))
        return {key.removeprefix(Prefix.USER_PREFIX): value for key, value in found.items()}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event and what it changes; the last one, given again, is stored once.

        Raises:
            SessionNotFoundError: there is no such session any more.
            StaleSessionError: another writer was faster: read the session again.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        events = SessionEvents(session.app_name, session.user_id, session.id)
        await self._memory.on_checkpoints(events.append, session, event)
        if session.events[-1:] == [event]:
            return event
        return self._commit_event_to_session(session, event)


class SessionEvents:
    """The rows of one session in a store: one that creates it, and one for each event."""

    def __init__(self, app_name: str, user_id: str, session_id: str) -> None:
        self._ids: dict[str, Any] = {"app_name": app_name, "user_id": user_id, "id": session_id}
        self._owner = to_scope(user_id, app_name)
        self._scope = in_session(self._owner, session_id)
        self._thread, self._table = f"adk/{self._scope.key}", f"sessions of {app_name}"
        self._shared = {
            Prefix.USER_PREFIX: self._owner,
            Prefix.APP_PREFIX: Scope(agent_id=app_name),
        }

    def create(self, store: Checkpoints, state: Mapping[str, Any]) -> Session:
        """Create the session, or raise `AlreadyExistsError`."""
        row = self._put(store, None, _encode({"timestamp": time.time()}), state)
        if row is None:
            raise AlreadyExistsError(f"Session with id {self._ids['id']} already exists.")
        self._share(store, state)
        return self._session(store, row, _WITHOUT_EVENTS)

    def read(self, store: Checkpoints, config: GetSessionConfig) -> Session | None:
        """Read the session; None if there is none."""
        last = store.read(self._thread, self._table)
        return None if last is None else self._session(store, last, config)

    def append(self, store: Checkpoints, session: Session, event: Event) -> None:
        """Write the row of an event, unless it is the last one; raises as `append_event`."""
        body = _encode(event.model_dump(mode="json", exclude_none=True))
        with _locks[hash(self._thread) % len(_locks)]:
            last = store.read(self._thread, self._table)
            if last is None:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            if last.checkpoint.body != body:
                is_stale = _is_stale(session, last.checkpoint)
                last = None if is_stale else self._put(store, last, body, event.actions.state_delta)
            if last is None:
                raise StaleSessionError(f"Session {session.id} has newer events: read it again.")
            self._share(store, event.actions.state_delta)
            _mark(session, last.checkpoint)

    def delete(self, store: Checkpoints) -> None:
        """Remove the session."""
        store.delete([self._thread])

    def _put(
        self, store: Checkpoints, last: State | None, body: Blob, state: Mapping[str, Any]
    ) -> State | None:
        """Write the first row, or that after `last`, with its state; None if one is there."""
        name = _FIRST + self._owner.key if last is None else _next(last.checkpoint)
        versions, former = (last.checkpoint.versions, last.values) if last else ({}, {})
        own = {key: _encode(one) for key, one in state.items() if not key.startswith(_PREFIXES)}
        row = Checkpoint(
            address=Address(thread=self._thread, namespace=self._table, id=name),
            body=body,
            metadata=_encode([*self._ids.values()]),
            versions={**versions, **dict.fromkeys(own, name)},
        )
        values = {(key, name): value for key, value in own.items()}
        if not store.put(row, values, self._scope, replace=False):
            return None
        return State(checkpoint=row, values={**former, **own}, writes=(), owner=self._scope)

    def _share(self, store: Checkpoints, state: Mapping[str, Any]) -> None:
        """Change what sessions share, by key, so that no change undoes that of another key."""
        for prefix, owner in self._shared.items():
            at = Address(thread=f"adk-state/{owner.key}", namespace="", id="state")
            writes = [
                TaskWrite(task=key, path="", index=-1, channel="state", value=_encode(value))
                for key, value in state.items()
                if key.startswith(prefix)
            ]
            if writes:
                row = Checkpoint(address=at, body=_encode({}))
                store.put(row, {}, owner, replace=False)
                store.write(at, writes, owner)

    def _session(self, store: Checkpoints, last: State, config: GetSessionConfig) -> Session:
        most, since = config.num_recent_events, config.after_timestamp or -math.inf
        asked = Selection(thread=self._thread, namespace=self._table, before=_next(last.checkpoint))
        rows = iterate_checkpoints(store, asked, page_size=min(most or 256, 256))
        bodies = (_decode(row.body) for row in rows if not row.address.id.startswith(_FIRST))
        new = takewhile(lambda body: body["timestamp"] >= since, bodies)
        session = Session(
            **self._ids,
            state={key: _decode(value) for key, value in last.values.items()},
            events=[Event.model_validate(body) for body in islice(new, most)][::-1],
        )
        for owner in self._shared.values():
            session.state |= _read_shared(store, owner)
        _mark(session, last.checkpoint)
        return session


def _list(store: Checkpoints, asked: Selection) -> list[Session]:
    """Read the sessions of these first rows, latest changed last."""
    rows = [SessionEvents(*_decode(row.metadata)) for row in iterate_checkpoints(store, asked)]
    found = [session for one in rows if (session := one.read(store, _WITHOUT_EVENTS))]
    return sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id))


def _read_shared(store: Checkpoints, owner: Scope) -> dict[str, Any]:
    """Read what the sessions of a user or of an app share."""
    found = store.read(f"adk-state/{owner.key}", "")
    return {one.task: _decode(one.value) for one in found.writes} if found else {}


def _is_stale(session: Session, last: Checkpoint) -> bool:
    """Tell whether somebody else has appended since a session was read or last appended to."""
    marker = session._storage_update_marker  # noqa: SLF001 -- ADK's place for it
    if marker is None:  # it was not read here
        newest = session.events[-1].id if session.events else None
        return bool(newest != _decode(last.body).get("id"))
    return marker != _revision(last)


def _mark(session: Session, last: Checkpoint) -> None:
    session.last_update_time = _decode(last.body)["timestamp"]
    session._storage_update_marker = _revision(last)  # noqa: SLF001 -- ADK's place for it


def _revision(last: Checkpoint) -> str:
    return f"{last.address.id} {_decode(last.body)['timestamp']}"


def _next(row: Checkpoint) -> str:
    """Name the row after one: names have the order of events."""
    return f"{int(row.address.id.split()[0]) + 1:020}"


def _encode(value: Any) -> Blob:
    text = json.dumps(to_jsonable_python(value, serialize_unknown=True))
    return Blob(type="adk/json", data=text.encode())


def _decode(blob: Blob) -> Any:
    return json.loads(blob.data)
