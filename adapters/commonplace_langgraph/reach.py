"""A memory as an agent reaches it: in time, and without ever failing the agent."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.runnables import RunnableConfig

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    LoopRequiredError,
    Match,
    Memory,
    MemoryTimeoutError,
    Message,
    Scope,
)
from commonplace.agents import blocking, handlers
from commonplace.agents.policy import WRITE_PATIENCE, Policy
from commonplace.agents.prompt import render
from commonplace.agents.session import WarnOnce

from .scopes import Id, check_ids, scope_of, this_run
from .turn import Turn

NO_MEMORY = "memory={!r} is no commonplace Memory. Pass Memory.open(...)."
DEFAULT = Policy()
MOST_WRITES = 1_000


class Reach:
    """The memory of whoever runs an agent; any number of runs at once, in threads and on loops.

    Attributes:
        is_warm: it was searched before.

    Raises:
        TypeError: that is no `Memory`.
        InvalidScopeError: a fixed id cannot be used.
        InvalidRecordError: the policy is to keep notes in the conversation.
    """

    def __init__(self, memory: Memory, user_id: Id, agent_id: Id | None, policy: Policy) -> None:
        if not isinstance(memory, Memory):
            raise TypeError(NO_MEMORY.format(memory))
        if policy.inject == "persist":
            raise InvalidRecordError(
                field="inject",
                value=policy.inject,
                reason="would put notes into checkpoints",
                hint="A note here lives for one request; leave `inject` as it is.",
            )
        check_ids(user_id, agent_id)
        self.memory = memory
        self.warn = WarnOnce("commonplace_langgraph")
        self._user_id = user_id
        self._agent_id = agent_id
        self._policy = policy
        self.is_warm = False
        self._is_slow = False
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def policy(self) -> Policy:
        """How memory is used; until it was searched once, with more time to do so.

        An embedding model may be loaded by its first search.
        """
        if self.is_warm:
            return self._policy
        patience = max(self._policy.recall_timeout, WRITE_PATIENCE)
        return replace(self._policy, recall_timeout=patience)

    def whose(
        self,
        runtime: object = None,
        turn: Turn | None = None,
        config: RunnableConfig | None = None,
    ) -> Scope:
        """Tell whose memory the run is about in whose course this is called.

        Args:
            turn: that is going on; it is nobody's if somebody else asked.
            config: where it cannot be told from the surroundings.

        Raises:
            InvalidScopeError: that cannot be told.
        """
        scope = scope_of(this_run(runtime, config), self._user_id, self._agent_id)
        if turn is not None and turn["owner"] != scope.key:
            raise InvalidScopeError(
                field="user_id", value=None, reason="is not who asked in this turn"
            )
        return scope

    def owner(self, runtime: object = None, turn: Turn | None = None) -> Scope | None:
        """Tell the same; None, and a line in the log, if it cannot be told."""
        try:
            return self.whose(runtime, turn)
        except Exception as error:  # noqa: BLE001 -- nobody's memory is better than a lost turn
            self.warn("scope", error)
            return None

    def note(self, scope: Scope, query: str) -> str:
        """Recall for a turn and write the note; empty if there is none or the memory fails."""
        try:
            return self._show(blocking.recall(self.memory, scope, query, self.policy))
        except Exception as error:  # noqa: BLE001 -- a turn outlives its memory
            return self._miss(error)
        finally:
            self.is_warm = True

    async def anote(self, scope: Scope, query: str) -> str:
        """Recall for a turn, as `note`."""
        try:
            return self._show(await handlers.recall(self.memory, scope, query, self.policy))
        except Exception as error:  # noqa: BLE001 -- a turn outlives its memory
            return self._miss(error)
        finally:
            self.is_warm = True

    def write(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said, within 10 seconds; what takes longer goes on without us."""
        if not messages:
            return
        adding = partial(self.memory.add, list(messages), scope)
        patience = self._patience
        try:
            try:
                blocking.within(patience, "write", partial(adding, wait=self._policy.await_write))
            except LoopRequiredError:
                # Accepted is safe; it is searchable once a loop with the model comes by.
                blocking.within(patience, "write", partial(adding, wait=False))
        except Exception as error:  # noqa: BLE001 -- a turn outlives its memory
            self._miss(error, "write")

    async def awrite(self, messages: Sequence[Message], scope: Scope) -> None:
        """Remember what was said, as `write`; it goes on, too, when the caller is cancelled."""
        if not messages:
            return
        if len(self._writes) >= MOST_WRITES:
            dead = [one for one in tuple(self._writes) if one.get_loop().is_closed()]
            self._writes.difference_update(dead)
        if len(self._writes) >= MOST_WRITES:
            self.warn("write", BlockingIOError(f"{MOST_WRITES} writes before it are late"))
            return
        task = asyncio.create_task(self._awrite(messages, scope))
        self._writes.add(task)  # a loop keeps no task alive
        task.add_done_callback(self._writes.discard)
        patience = self._patience
        # `wait` leaves the task running, whatever happens to its caller.
        _, late = await asyncio.wait({task}, timeout=patience)
        if late:
            self._miss(MemoryTimeoutError(call="write", seconds=patience), "write")

    async def _awrite(self, messages: Sequence[Message], scope: Scope) -> None:
        try:
            await self.memory.aadd(list(messages), scope, wait=self._policy.await_write)
        except Exception as error:  # noqa: BLE001 -- a turn outlives its memory
            self._miss(error, "write")

    @property
    def _patience(self) -> float:
        return min(WRITE_PATIENCE, self._policy.recall_timeout) if self._is_slow else WRITE_PATIENCE

    def _show(self, matches: Sequence[Match]) -> str:
        self._is_slow = False
        return render(matches, self._policy)

    def _miss(self, error: Exception, what: str = "recall") -> str:
        self._is_slow = isinstance(error, TimeoutError)
        self.warn(what, error)
        return ""
