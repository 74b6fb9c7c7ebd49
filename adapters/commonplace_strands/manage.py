"""Tools to look after what is remembered: list, read, correct, delete, and what is behind it."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from strands import ToolContext

from commonplace import Record, RecordNotFoundError, Scope
from commonplace.agents.handlers import within
from commonplace.agents.policy import WRITE_PATIENCE

from .access import Access
from .convert import changes_of, describe

T = TypeVar("T")
MOST_LISTED = 100
REFUSED = "The user did not allow this. Nothing was changed."


class Manage:
    """The tools' bodies; their signatures and docstrings are what models are told."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._memory = access.memory

    async def list_memories(
        self, tool_context: ToolContext, limit: int = 20, cursor: str | None = None
    ) -> dict[str, Any]:
        """List what is remembered about this user, newest first.

        Args:
            limit: How many memories to list, 1 to 100.
            cursor: The cursor that the list before gave, to go on after it.
        """
        scope = self._owner(tool_context)
        limit = max(1, min(limit, MOST_LISTED))
        page = await _soon(self._memory.alist(scope, limit=limit, cursor=cursor))
        return _json(memories=[_told(one) for one in page.records], cursor=page.cursor)

    async def get_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Read one memory of this user by its id.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        return _json(**_told(await self._read(memory_id, tool_context)))

    async def update_memory(
        self, memory_id: str, text: str, tool_context: ToolContext
    ) -> dict[str, Any]:
        """Correct one memory of this user. Its history keeps what it said before.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
            text: What it shall say from now on, in one sentence that stands alone.
        """
        record = await self._read(memory_id, tool_context)
        asked = {"action": "update", "memory": _told(record), "text": text}
        if not self._access.may(tool_context, "update_memory", asked):
            return _refused()
        written = await _soon(self._memory.aupdate(record.id, text, record.scope))
        return _json(results=changes_of(written))

    async def delete_memory(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Delete one memory of this user.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        record = await self._read(memory_id, tool_context)
        asked = {"action": "delete", "memory": _told(record)}
        if not self._access.may(tool_context, "delete_memory", asked):
            return _refused()
        written = await _soon(self._memory.adelete(record.id, record.scope))
        return _json(results=changes_of(written))

    async def memory_history(self, memory_id: str, tool_context: ToolContext) -> dict[str, Any]:
        """Tell every version of one memory of this user, oldest first, also of a deleted one.

        Args:
            memory_id: The id, as a search, a list or a write gave it.
        """
        versions = await _soon(self._memory.ahistory(memory_id, self._owner(tool_context)))
        if not versions:
            raise RecordNotFoundError(record_id=memory_id)
        told = [
            {"event": one.event, "text": one.text, "previous": one.previous}
            | {"version": one.version, "at": one.at.isoformat()}
            for one in versions
        ]
        return _json(history=told)

    async def memory_relations(
        self, tool_context: ToolContext, entity: str | None = None, hops: int = 1
    ) -> dict[str, Any]:
        """Tell how people, places and things that this user spoke of are related; at most 100.

        Args:
            entity: A name, to tell only what is around it.
            hops: How many relations away from the name, 1 to 3.
        """
        scope = self._owner(tool_context)
        found = await _soon(self._memory.arelations(scope, entity, hops=hops))
        told = [
            {"subject": one.subject, "predicate": one.predicate, "object": one.object}
            for one in found[-MOST_LISTED:]
        ]
        return _json(relations=told)

    def _owner(self, context: ToolContext) -> Scope:
        return self._access.owner(context).owner

    async def _read(self, memory_id: str, context: ToolContext) -> Record:
        record = await _soon(self._memory.aget(memory_id, self._owner(context)))
        if record is None:
            raise RecordNotFoundError(record_id=memory_id)
        return record


async def _soon(work: Coroutine[Any, Any, T]) -> T:
    return await within(WRITE_PATIENCE, "the memory", work)


def _told(record: Record) -> dict[str, Any]:
    return {"text": record.text, **describe(record)}


def _json(**value: Any) -> dict[str, Any]:
    return {"status": "success", "content": [{"json": value}]}


def _refused() -> dict[str, Any]:
    return {"status": "error", "content": [{"text": REFUSED}]}
