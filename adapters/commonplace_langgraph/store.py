"""`CommonplaceStore`: a memory as LangGraph's long-term store."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import (
    BaseStore,
    IndexConfig,
    Op,
    Result,
    TTLConfig,
)

from commonplace import Memory

from .batches import plan
from .calls import adrive, drive
from .embedding import check_same, embedder_of
from .namespaces import Template, Users
from .ops import Asked, check
from .sweep import Sweeper, expired


class CommonplaceStore(BaseStore):
    """A LangGraph store on a memory: other agents recall what is put here, and the other way round.

    Safe in any thread and on any event loop; `batch` and `abatch` are both native. All ops of a
    batch are checked before the first takes effect, reads see what was there before its writes,
    and its writes are accepted together or not at all.

    Beside the framework's filters there are `$in`, `$nin`, `$exists`, `$or` and `$threshold`
    (`conditions`). A query finds by meaning and by words; `score` is in 0..1. Expired items are
    never shown, whatever `omit_expired` says.

    Args:
        memory: an open memory, which the caller closes, or the folder of one to open.
        index: `fields` to embed, `["$"]` (the whole value) when missing. `dims` and `embed` say
            which model a memory that is opened here has; without them it has its own.
        ttl: as the framework's stores take it, in minutes.
        template: the labels of namespaces that are a user's memory, such as `("memories",
            "{user_id}", "{agent_id}")`: what others know of that user is found there. Everything
            else is the store's alone. None makes every namespace such.
        agent_id: of what is put and found under the template, when that does not name it.
        users: whom a search or listing above the template may cross; without it that is refused.
        threshold: leave out what a query finds with a lower score, 0..1.

    Raises:
        InvalidRecordError: `index` is not what the given memory has, or the template names no user.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | str | PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        template: Sequence[str] | None = ("memories", "{user_id}"),
        agent_id: str | None = None,
        users: Users | None = None,
        threshold: float | None = None,
    ) -> None:
        self.template = Template(template, agent_id)
        self.ttl_config = ttl
        self.index_config = index
        self._is_own = not isinstance(memory, Memory)
        if isinstance(memory, Memory):
            check_same(index, memory)
            self.memory = memory
        else:
            self.memory = Memory.open(fspath(memory), embedder=embedder_of(index))
        self._asked = Asked(
            template=self.template,
            users=users,
            fields=tuple((index or {}).get("fields") or ("$",)),
            threshold=threshold,
            refreshes=(ttl or {}).get("refresh_on_read", True),
        )
        self._sweeper = Sweeper(self.sweep_ttl, (ttl or {}).get("sweep_interval_minutes"))

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Self:
        """Open a store in a folder; leave it with `with` or `async with`, or `close` it."""
        return cls(path, **options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out ops; one result each, in their order.

        Raises:
            ValueError: an op cannot be as it is; none had an effect.
        """
        checked = check(ops, self._asked)
        return drive(self.memory, plan(checked, self._asked))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out ops, as `batch`, on the running loop."""
        checked = check(ops, self._asked)
        # Half a batch must not be left behind by a caller who stops waiting.
        work = asyncio.ensure_future(adrive(self.memory, plan(checked, self._asked)))
        return await asyncio.shield(work)

    # -- expiry --------------------------------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Delete what has expired; answer how many items.

        Looks at plain namespaces, at the users that the store was given, and at those who had an
        item with an end put or read here.
        """
        return drive(self.memory, expired(self._asked, datetime.now(UTC)))

    async def asweep_ttl(self) -> int:
        """Delete what has expired, as `sweep_ttl`."""
        return await adrive(self.memory, expired(self._asked, datetime.now(UTC)))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        """Sweep every so many minutes, 5 by default, on a thread; cancel the future to stop."""
        return self._sweeper.start(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; False if a sweep was still at it after `timeout` seconds."""
        return self._sweeper.stop(timeout)

    # -- life ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the sweeper and close the memory, unless it was given."""
        self._sweeper.stop(10.0)
        if self._is_own:
            self.memory.close()

    async def aclose(self) -> None:
        """Close, as `close`."""
        await asyncio.get_running_loop().run_in_executor(None, self._sweeper.stop, 10.0)
        if self._is_own:
            await self.memory.aclose()

    def __enter__(self) -> Self:
        """Take part."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Take part."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.aclose()
