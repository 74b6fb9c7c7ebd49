"""What a saver does around its work: awaiting it, and ending.

Each awaitable method runs its blocking twin on the memory's threads, so it is written once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from commonplace import Memory, Scope
from commonplace.ports.checkpoints import State

from .addresses import address_of
from .pages import selection, walk
from .states import to_tuple

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        DeltaChannelHistory,
    )

Owner = Callable[[str, Mapping[str, Any]], Scope | None]


class Twins(BaseCheckpointSaver[str]):
    """The awaitable half of a saver: bound to no loop, and none of its calls blocks one."""

    _memory: Memory
    _closes: bool
    _owner: Owner | None

    async def aput(
        self,
        config: "RunnableConfig",
        checkpoint: "Checkpoint",
        metadata: "CheckpointMetadata",
        new_versions: "ChannelVersions",
    ) -> "RunnableConfig":
        """Keep a checkpoint, as `put`."""
        return await self._memory.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: "RunnableConfig",
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote, as `put_writes`."""
        await self._memory.run(self.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: "RunnableConfig") -> CheckpointTuple | None:
        """Read a checkpoint, as `get_tuple`."""
        return await self._memory.run(self.get_tuple, config)

    async def alist(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Walk over checkpoints, as `list`."""
        pages, owner = self._pages(config, filter, before, limit), self._owner_of(config)
        while (page := await self._memory.run(self._next, pages, owner)) is not None:
            for one in page:
                yield one

    async def aget_delta_channel_history(
        self, *, config: "RunnableConfig", channels: Sequence[str]
    ) -> "Mapping[str, DeltaChannelHistory]":
        """Read what channels of changes were given, as `get_delta_channel_history`."""
        read = self.get_delta_channel_history
        return await self._memory.run(read, config=config, channels=channels)

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all of a thread, as `delete_thread`."""
        await self._memory.run(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, as `delete_for_runs`."""
        await self._memory.run(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all of a thread, as `copy_thread`."""
        await self._memory.run(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace, as `prune`."""
        await self._memory.run(self.prune, thread_ids, strategy=strategy)

    def close(self) -> None:
        """Close the memory if this saver, or the one that it is a copy of, has opened it."""
        if self._closes:
            self._memory.close()

    def __enter__(self) -> Self:
        """Take part."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Take part."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        await asyncio.to_thread(self.close)

    def _pages(
        self,
        config: "RunnableConfig | None",
        wanted: Mapping[str, Any] | None,
        before: "RunnableConfig | None",
        limit: int | None,
    ) -> Iterator[list[State]]:
        asked = selection(config, before)
        return walk(self._memory, asked, wanted=wanted, limit=limit, serde=self.serde)

    def _next(
        self, pages: Iterator[list[State]], owner: Scope | None
    ) -> list[CheckpointTuple] | None:
        """Read the next page, away from the loop; None after the last."""
        page = next(pages, None)
        return None if page is None else [to_tuple(one, self.serde, owner) for one in page]

    def _owner_of(self, config: "RunnableConfig | None") -> Scope | None:
        if self._owner is None or config is None:
            return None
        given = {**(config.get("metadata") or {}), **config["configurable"]}
        return self._owner(address_of(config)[0], given)
