"""LangGraph's checkpointer on a commonplace memory: the state of every run, exact and durable."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from commonplace import InvalidRecordError, Memory
from commonplace.ports.checkpoints import Address

from . import states
from .addresses import address_of, config_of
from .rows import to_rows, to_writes
from .twins import Owner, Twins

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        DeltaChannelHistory,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol


class CommonplaceSaver(Twins):
    """Keeps LangGraph's checkpoints in the record of truth of a memory, never in its index.

    Safe in any thread and on any event loop; each change is one transaction, on the disk when the
    call returns. A shallow copy, as `with_allowlist` makes, shares the memory.

    Args:
        memory: an open one, which stays the caller's to close; or the folder of one, which
            `close` closes; None for the folder that the environment names.
        serde: how values become bytes. When missing, only LangGraph's own safe types are revived:
            others by `with_allowlist` or a `JsonPlusSerializer(allowed_msgpack_modules=[...])`.
            With an `EncryptedSerializer`, whatever is not encrypted is refused.
        owner: tells whose a thread is, from its id and what the run was configured with, such as
            `lambda thread, given: Scope(user_id=given["user_id"])`. `Memory.forget` then erases
            the threads of a scope too, and nobody goes on with another's thread. A thread without
            an owner is kept until it is deleted.
    """

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        serde: "SerializerProtocol | None" = None,
        owner: Owner | None = None,
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._closes = not isinstance(memory, Memory)
        self._memory = memory if isinstance(memory, Memory) else Memory.open(memory)
        self._owner = owner

    @classmethod
    def open(
        cls,
        path: str | None = None,
        *,
        serde: "SerializerProtocol | None" = None,
        owner: Owner | None = None,
    ) -> Self:
        """Open a folder, for `with` and `async with`."""
        return cls(path, serde=serde, owner=owner)

    # -- writing -------------------------------------------------------------------------------

    def put(
        self,
        config: "RunnableConfig",
        checkpoint: "Checkpoint",
        metadata: "CheckpointMetadata",
        new_versions: "ChannelVersions",
    ) -> "RunnableConfig":
        """Keep a checkpoint and the values of its new versions; answer where it is.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        row, values = to_rows(config, checkpoint, metadata, new_versions, self.serde)
        self._memory.checkpoints.put(row, values, self._owner_of(config))
        return config_of(row.address)

    def put_writes(
        self,
        config: "RunnableConfig",
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote; the checkpoint that it belongs to may come later."""
        thread, namespace, checkpoint = address_of(config)
        if checkpoint is None:
            raise InvalidRecordError(field="checkpoint_id", value=None, reason="is missing")
        rows = to_writes(writes, task_id, task_path, self.serde)
        address = Address(thread=thread, namespace=namespace, id=checkpoint)
        self._memory.checkpoints.write(address, rows, self._owner_of(config))

    # -- reading -------------------------------------------------------------------------------

    def get_tuple(self, config: "RunnableConfig") -> CheckpointTuple | None:
        """Read a checkpoint, the latest of its namespace without an id; None if there is none.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        state = self._memory.checkpoints.read(*address_of(config))
        owner = self._owner_of(config)
        return None if state is None else states.to_tuple(state, self.serde, owner)

    def list(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Walk over checkpoints, newest first, reading a page at a time as they are asked for.

        Without a config over all threads; without `checkpoint_ns` over all namespaces.

        Args:
            filter: what the metadata must have, compared whole.
            before: only what is older than the checkpoint that it names.
            limit: none for 0.
        """
        owner = self._owner_of(config)
        for page in self._pages(config, filter, before, limit):
            for one in page:
                yield states.to_tuple(one, self.serde, owner)

    def get_delta_channel_history(
        self, *, config: "RunnableConfig", channels: Sequence[str]
    ) -> "Mapping[str, DeltaChannelHistory]":
        """Read what channels of changes were given since the last whole value, oldest first.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        rows, owner = self._memory.checkpoints, self._owner_of(config)
        state = rows.read(*address_of(config))
        if state is None:
            return states.to_history([], channels, self.serde)
        states.check_owner(state, owner)
        steps = rows.steps(state.checkpoint.address, channels)
        return states.to_history(steps, channels, self.serde)

    # -- removing and copying ------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Remove all of a thread, its subgraphs and writes too."""
        self._memory.checkpoints.delete([str(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs; those that later ones take a `DeltaChannel` from stay."""
        self._memory.checkpoints.delete_runs([str(one) for one in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all of a thread, whole chains and its owner, into another."""
        self._memory.checkpoints.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace, with `delete` nothing.

        What the latest takes a `DeltaChannel` from stays. The namespace of a subgraph goes with
        the checkpoint that its task started from.

        Raises:
            InvalidRecordError: there is no such strategy.
        """
        calls = {
            "keep_latest": self._memory.checkpoints.prune,
            "delete": self._memory.checkpoints.delete,
        }
        if strategy not in calls:
            raise InvalidRecordError(
                field="strategy", value=strategy, reason="is neither 'keep_latest' nor 'delete'"
            )
        calls[strategy]([str(one) for one in thread_ids])

    # -- wiring --------------------------------------------------------------------------------

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Number a channel's next version; by chance too, so that two branches never share one."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{random.getrandbits(64):020}"
