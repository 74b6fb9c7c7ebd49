"""mem0's class `Memory`, with the calls of every version of mem0.

`async_memory.py` is generated from this module by `nox -s twins`.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from commonplace.agents import UNSET, Unset, hinting_methods

from . import operations
from .arguments import (
    add_request,
    clean_query,
    erase_scope,
    merge_filters,
    read_request,
)
from .base import BlockingBase
from .operations import counted


@hinting_methods
class Mem0Memory(BlockingBase):
    """Remembers for users, agents and runs; blocks until each call is done.

    Calls written for mem0 0.1, 1.x and 2.x mean the same here: see `arguments` for how they are
    told apart, `filters` for the filter language, `convert` for the answers.
    """

    def add(
        self,
        messages: Any,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        infer: bool | str | Unset = UNSET,
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        timestamp: Any = None,
        expiration_date: Any = None,
        llm: Any = None,
        wait: bool = True,
    ) -> Any:
        """Remember messages, or the facts in them if a model is configured, with one call of it.

        The event of a known fact is `NONE`, or `UPDATE` if metadata or an expiry is new, with the
        id it has. Without `wait` the answer has a `ticket`, and comes as soon as nothing can be
        lost any more.

        Args:
            llm: a model for `memory_type="procedural_memory"` instead of the configured one.
        """
        request = add_request(
            messages,
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id},
            filters,
            compat=self._settings.compat,
            metadata=metadata,
            infer=infer,
            prompt=prompt,
            memory_type=memory_type,
            timestamp=timestamp,
            expiration_date=expiration_date,
            wait=wait,
        )
        plan = operations.add(self._settings, request, llm)
        return self._run(counted(self._health, request, plan))

    def search(
        self,
        query: str,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
        *,
        top_k: int | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        metadata_filters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Find memories that answer a query, best first, none below the threshold."""
        request = read_request(
            "search",
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id},
            merge_filters(filters, metadata_filters),
            compat=self._settings.compat,
            limit=limit,
            top_k=top_k,
            threshold=threshold,
            rerank=rerank,
            explain=explain,
            reference_date=reference_date,
            show_expired=show_expired,
        )
        plan = operations.search(self._settings, clean_query(query), request)
        return self._run(counted(self._health, request, plan))

    def get(self, memory_id: str | uuid.UUID) -> dict[str, Any] | None:
        """Read one memory; None if there is none with this id."""
        return self._run(operations.get(memory_id))

    def get_all(
        self,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        limit: int | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        cursor: str | None = None,
    ) -> Any:
        """List memories, newest first; a `cursor` in the answer is for the next page."""
        request = read_request(
            "get_all",
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id},
            filters,
            compat=self._settings.compat,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
        )
        return self._run(operations.get_all(self._settings, request, cursor))

    def update(
        self,
        memory_id: str | uuid.UUID,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory's text, add to its metadata, or set when it expires.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        plan = operations.update(self._settings, memory_id, text, metadata, expiration_date, data)
        return self._run(plan)

    def delete(self, memory_id: str | uuid.UUID) -> dict[str, str]:
        """Delete a memory.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        return self._run(operations.delete(memory_id))

    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
    ) -> dict[str, Any]:
        """Erase all memories of a user, agent or run, with their history and relations.

        Without a user only memories of no user are erased; with a `compat`, those of every user.
        The answer then says how many memories were `deleted`.
        """
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        scope = erase_scope(ids, compat=self._settings.compat)
        return self._run(operations.delete_all(self._settings, scope))

    def history(self, memory_id: str | uuid.UUID) -> list[dict[str, Any]]:
        """Read every change of a memory, oldest first."""
        return self._run(operations.history(memory_id))

    def reset(self) -> None:
        """Erase everything in this store, and nothing else."""
        self._run(operations.reset())

    def flush(self, timeout: float = 30.0) -> dict[str, Any]:
        """Wait for pending additions; return how many are left, and which failed and why.

        Args:
            timeout: seconds.
        """
        return self._run(operations.flush(timeout))

    def chat(self, query: str) -> None:
        """Do nothing, as in mem0.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Chat function not implemented yet.")
