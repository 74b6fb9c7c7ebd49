"""Byte storage of Strands' agents on a memory: snapshots of sessions, and what is offloaded.

Values are checkpoints of the memory, one thread per session, and one for what belongs to none.
"""

import builtins
import json
import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any, TypeVar

from strands.types.exceptions import StorageError

from commonplace import CommonplaceError, Scope
from commonplace.agents import MemorySource, acquire_memory, hinting_init, in_session
from commonplace.ports import Address, Blob, Checkpoint, Checkpoints, Selection, iterate_checkpoints

from .turn_owner import Id, required_scope

_NAMESPACE = "strands-storage"
_BLOB_TYPE = "strands/bytes"
_CHANNEL = "data"
_OF_SESSION = re.compile(r"(?:^|/)([^/]+)/scopes/(?:agent|multiAgent)/")

T = TypeVar("T")


@hinting_init
class CommonplaceStorage:
    """Keeps what Strands stores of one user or agent beside a memory, in its record of truth.

    For `Agent(storage=...)`, `SnapshotSessionManager(storage=...)` and whatever else takes a
    `strands.storage.Storage`. Safe in any thread and on any loop; a change is on disk when it
    returns. Keys are literal, and two users' are apart. `Memory.forget` erases what the scope it
    gets covers; what Strands stores of a session, by a key with `<session>/scopes/`, belongs to
    that session: `Scope(user_id=..., session_id=...)`.

    Args:
        memory: see `MemoryPlugin`.
        user_id, agent_id: the owner; at least one.
        session_id: the session that everything belongs to.

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
        session_id: str | int | None = None,
    ) -> None:
        self._scope = required_scope(user_id, agent_id, session_id)
        self._memory = acquire_memory(self, memory)
        self._namespace = f"{_NAMESPACE}/{self._scope.key}"

    async def write(self, key: str, data: bytes) -> None:
        """Store a value, in place of what the key had.

        Raises:
            StorageError: the key is empty or no Unicode text, the value is no bytes, or the memory
                fails.
        """
        given: object = data
        if not isinstance(given, bytes | bytearray | memoryview):  # an int would be as many zeros
            kind = type(given).__name__
            raise StorageError(f"A stored value must be bytes, not {kind}. Encode it first.")
        scope, address = self._locate(key)
        checkpoint = Checkpoint(
            address=address,
            body=Blob(type=_BLOB_TYPE, data=b""),  # a listing reads the body
            versions={_CHANNEL: key},  # a value is stored once for each version
            run=_run_of(address),
        )
        values = {(_CHANNEL, key): Blob(type=_BLOB_TYPE, data=bytes(data))}
        await self._run(lambda checkpoints: checkpoints.put(checkpoint, values, scope))

    async def read(self, key: str) -> bytes | None:
        """Read a value; None if there is none.

        Raises:
            StorageError: as `write`.
        """
        at = self._locate(key)[1]
        state = await self._run(
            lambda checkpoints: checkpoints.read(at.thread, at.namespace, at.id)
        )
        blob = None if state is None else state.values.get(_CHANNEL)
        return None if blob is None else blob.data

    async def delete(self, key: str) -> None:
        """Remove a value; nothing if there is none.

        Raises:
            StorageError: as `write`.
        """
        run = _run_of(self._locate(key)[1])
        await self._run(lambda checkpoints: checkpoints.delete_runs([run]))

    async def list(self, query: str = "") -> builtins.list[str]:
        """List the keys that begin with a text, sorted; all if it is empty.

        Raises:
            StorageError: the memory fails.
        """
        _check(query)
        return await self._run(lambda checkpoints: self._list(checkpoints, query))

    async def search(self, query: str) -> builtins.list[Any]:
        """Search the values by keywords, best first, as Strands' own storages do.

        Raises:
            StorageError: the memory fails.
        """
        _check(query)
        from strands.storage.search.keyword import (  # Strands 1.52 has no search
            KeywordSearchStrategy,
        )

        found: builtins.list[Any] = await KeywordSearchStrategy().search(self, query)
        return found

    # -- wiring --------------------------------------------------------------------------------

    async def _run(self, work: Callable[[Checkpoints], T]) -> T:
        try:
            return await self._memory.on_checkpoints(work)
        except CommonplaceError as error:
            raise StorageError(str(error)) from error

    def _locate(self, key: str) -> tuple[Scope, Address]:
        """Return whose a value is, and where it is kept."""
        _check(key)
        if not key:
            raise StorageError("A storage key must not be empty.")
        scope, named = self._scope, _OF_SESSION.search(key)
        if named is not None and scope.session_id is None:
            scope = in_session(scope, named[1])
        thread = f"{_NAMESPACE}/{scope.key}"
        return scope, Address(thread=thread, namespace=self._namespace, id=key)

    def _list(self, checkpoints: Checkpoints, prefix: str) -> builtins.list[str]:
        rows = iterate_checkpoints(
            checkpoints,
            Selection(namespace=self._namespace),
            after=Address(thread="", namespace="", id=prefix),
            is_ascending=True,
        )
        keys = (row.address.id for row in rows)
        return sorted(set(takewhile(lambda key: key.startswith(prefix), keys)))


def _check(key: object) -> None:
    if not isinstance(key, str):
        raise StorageError(f"The storage key {key!r} must be a text. Give a string.")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise StorageError(f"The storage key {key!r} is not Unicode text.") from error


def _run_of(address: Address) -> str:
    # Checkpoints are removed by the run that made them, so each value has one of its own.
    return json.dumps([address.thread, address.namespace, address.id])
