"""`Memory`: mem0's class of every era, on our memory."""

import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import changing, reading
from .calls import UNSET, Unset, asked, clean_query, refuse_unknown
from .faces import SEARCHED, Face, addition, owner_of, refuse_hosted, text_of_update
from .steps import run

if TYPE_CHECKING:
    from commonplace import Memory as Core


class Memory(Face):
    """Remembers for users, agents and runs; blocks until each call is done.

    Calls written for mem0 0.1, 1.x and 2.x mean what they meant there: see `calls` for how the
    two shapes are told apart, `filters` for the filter language, `results` for the answers.
    """

    _awaits = False

    def add(
        self,
        messages: Any,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        infer: bool | str | Unset = UNSET,  # noqa: FBT001 -- mem0 0.1's seventh place
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        timestamp: Any = None,
        expiration_date: Any = None,
        wait: bool = True,
    ) -> Any:
        """Remember messages, or the facts in them when a model is configured; one call of it.

        A known fact answers `NONE` with the id it has. Without `wait` the answer has a `ticket`
        and comes once nothing can be lost any more.
        """
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        step = addition(
            self._setup, messages, ids, filters, metadata=metadata, infer=infer, prompt=prompt,
            memory_type=memory_type, timestamp=timestamp, expiration_date=expiration_date,
            wait=wait,
        )  # fmt: skip
        return self._setup.shaped(run(step, self._core))

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
        threshold: float | Unset | None = UNSET,
        rerank: bool | None = None,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **unknown: Any,
    ) -> Any:
        """Find memories that answer a question, best first, none below the threshold."""
        refuse_unknown("search", unknown, SEARCHED)
        refuse_hosted("reference_date", reference_date)
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        what = asked(
            "search", ids, filters, compat=self._setup.compat, limit=limit, top_k=top_k,
            threshold=threshold, rerank=rerank,
        )  # fmt: skip
        step = reading.search(
            self._setup, clean_query(query), what, explain=explain, hidden=show_expired
        )
        return self._setup.shaped(run(step, self._core))

    def get(self, memory_id: str | uuid.UUID) -> dict[str, Any] | None:
        """Read one memory; None if there is none with this id."""
        return run(reading.get(memory_id), self._core)

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
        **unknown: Any,
    ) -> Any:
        """List memories, newest first; a `cursor` in the answer asks for the next ones."""
        refuse_unknown("get_all", unknown, SEARCHED)
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        what = asked("get_all", ids, filters, compat=self._setup.compat, limit=limit, top_k=top_k)
        step = reading.get_all(self._setup, what, hidden=show_expired, cursor=cursor)
        return self._setup.shaped(run(step, self._core))

    def update(
        self,
        memory_id: str | uuid.UUID,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory's text, add to its metadata, or set when it ends.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        said = text_of_update(self._setup, text, data)
        return run(changing.update(memory_id, said, metadata, expiration_date), self._core)

    def delete(self, memory_id: str | uuid.UUID) -> dict[str, str]:
        """Delete a memory.

        Raises:
            MemoryNotFoundError: there is none with this id.
        """
        return run(changing.delete(memory_id), self._core)

    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
    ) -> dict[str, str]:
        """Erase all memories of a user, agent or run, with their history and relations."""
        scope = owner_of(self._setup, user_id, agent_id, run_id)
        return run(changing.delete_all(scope), self._core)

    def history(self, memory_id: str | uuid.UUID) -> list[dict[str, Any]]:
        """Read every change of a memory, oldest first."""
        return run(reading.history(memory_id), self._core)

    def reset(self) -> None:
        """Erase everything in this store, and nothing else."""
        run(changing.reset(), self._core)

    def flush(self, timeout: float = 30.0) -> dict[str, Any]:
        """Wait for what was added without waiting; tell what is pending and what failed, and why.

        Args:
            timeout: seconds.
        """
        return run(changing.flush(timeout), self._core)

    def chat(self, query: str) -> None:
        """Do nothing, as in mem0.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Chat function not implemented yet.")

    def close(self) -> None:
        """Finish what is on its way and let go; repeating it does nothing."""
        self._opening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def _core(self) -> "Core":
        return self._opening.get()
