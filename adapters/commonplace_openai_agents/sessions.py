"""Session: the SDK's conversations on a memory, exact, durable and erasable.

What one call adds is one row of JSON in the memory's checkpoints, behind all that are there.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from enum import Enum
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import Session, SessionSettings

from commonplace.agents import (
    MemorySource,
    acquire_memory,
    check_list,
    check_name,
    hash_id,
    hinting_init,
    in_session,
    to_scope,
)
from commonplace.ports import Address, Blob, Checkpoint, Checkpoints, Selection, iterate_checkpoints

from .convert import user_texts

Id = str | int | Enum
"""An id as an application gives it; `to_scope` makes it text."""

_BLOB_TYPE = "openai-agents/json"
_DIGITS = 20
_PAGE_SIZE = 256
_popping = threading.Lock()


@hinting_init
class CommonplaceSession(Session):
    """Keeps a conversation of one user beside a memory, in its record of truth.

    For `Runner.run(..., session=...)`, in place of `SQLiteSession`. A change is on disk when its
    call returns; several writers lose nothing of each other. Two users may each have a session of
    one name. `Memory.forget` erases those of the scope it gets. As the `context=` of a run it names
    user and session to `MemoryHooks`.

    Args:
        session_id: the name of the conversation.
        memory: see `MemoryHooks`.
        user_id: the owner.
        agent_id: of an agent with sessions of its own.
        session_settings: how many items a run reads; by default all.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
        InvalidScopeError, InvalidRecordError: an id cannot be used.
    """

    def __init__(
        self,
        session_id: str,
        memory: MemorySource = None,
        *,
        user_id: Id,
        agent_id: Id | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        check_name("session_id", session_id)
        self._scope = in_session(to_scope(user_id, agent_id), session_id)
        self._thread = f"openai-agents/{self._scope.key}"
        self._memory = acquire_memory(self, memory)
        self.session_id: str = session_id
        self.user_id: Id = user_id
        self._seen: list[tuple[TResponseInputItem, str]] = []  # with the names of their rows
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest items, oldest first: `limit`, or as many as the settings say."""
        settings = self.session_settings
        most = settings.limit if limit is None and settings is not None else limit
        self._seen = await self._memory.on_checkpoints(self._read, most)
        return [item for item, _ in self._seen]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all or none; a `TypeError` if JSON cannot hold one."""
        check_list("items", items, "input items")
        if items:
            data, at = _encode(items), time.time_ns()
            name = await self._memory.on_checkpoints(self._append, data, at)
            self._seen += [(item, name) for item in items]

    def message_ids(self) -> dict[str, str]:
        """Return the id of each text that the user said since the last answer.

        It is the same to all who read the session, in any process.
        """
        texts = user_texts(item for item, _ in self._seen)
        return {text: hash_id(self._seen[position][1], text) for position, text in texts.items()}

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; None if there is none."""
        return await self._memory.on_checkpoints(self._pop)

    async def clear_session(self) -> None:
        """Remove all items."""
        await self._memory.on_checkpoints(lambda checkpoints: checkpoints.delete([self._thread]))

    def _rows(self, checkpoints: Checkpoints, size: int) -> Iterator[Checkpoint]:
        """Iterate over the rows, latest first, reading `size` at a time."""
        return iterate_checkpoints(checkpoints, Selection(thread=self._thread), page_size=size)

    def _read(
        self, checkpoints: Checkpoints, limit: int | None
    ) -> list[tuple[TResponseInputItem, str]]:
        """Read the latest items, oldest first, with the names of their rows."""
        items: list[tuple[TResponseInputItem, str]] = []
        for row in self._rows(checkpoints, min(limit or _PAGE_SIZE, _PAGE_SIZE)):
            if limit is not None and len(items) >= limit:
                break
            items[:0] = [(item, row.address.id) for item in json.loads(row.body.data)]
        return items if limit is None else items[max(0, len(items) - limit) :]

    def _append(self, checkpoints: Checkpoints, data: bytes, at: int) -> str:
        """Write a row behind all others; return its name."""
        latest = next(self._rows(checkpoints, 1), None)
        # Clocks differ: what was there before comes before.
        number = max(at, int(latest.address.id[:_DIGITS]) + 1) if latest else at
        name = f"{number:0{_DIGITS}}-{uuid.uuid4().hex}"
        self._put(checkpoints, name, data)
        return name

    def _pop(self, checkpoints: Checkpoints) -> TResponseInputItem | None:
        with _popping:
            row = next(self._rows(checkpoints, 1), None)
            if row is None:
                return None
            *left, last = json.loads(row.body.data)
            if left:
                self._put(checkpoints, row.address.id, _encode(left))
            else:
                checkpoints.delete_runs([row.address.id])
            found: TResponseInputItem = last
            return found

    def _put(self, checkpoints: Checkpoints, name: str, data: bytes) -> None:
        row = Checkpoint(
            address=Address(thread=self._thread, namespace="items", id=name),
            body=Blob(type=_BLOB_TYPE, data=data),
            run=name,
        )
        checkpoints.put(row, {}, self._scope)


def _encode(items: list[TResponseInputItem]) -> bytes:
    # A text may hold lone surrogates.
    return json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass")
