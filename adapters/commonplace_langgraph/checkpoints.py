"""`CommonplaceSaver`: LangGraph's checkpointer on a memory's record of truth.

The awaitable methods are in `async_checkpoints`, generated from the blocking ones.
"""

import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import Enum
from os import PathLike
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from commonplace import InvalidRecordError, Scope
from commonplace.agents import (
    MemorySource,
    check_choice,
    check_function,
    check_list,
    check_mapping,
    field_of,
    hinting_init,
    to_scope,
)
from commonplace.ports import Address, Checkpoints, Selection

from .async_checkpoints import AwaitedCheckpoints
from .checkpoint_codec import (
    check_owner,
    decode_history,
    decode_state,
    encode_checkpoint,
    encode_writes,
    has_metadata,
    is_of_graph,
    to_address,
    to_config,
    to_loader,
    to_thread,
)
from .turn_owner import ConnString, OpenedMemory, open_lazily

ThreadOwner = Callable[[str, Mapping[str, Any]], Scope | str | int | Enum | None]
_PAGE_SIZE = 64
_log = logging.getLogger("commonplace_langgraph")
_RUNTIME = "__pregel_runtime"  # where LangGraph's config has a run's context


@hinting_init
class CommonplaceSaver(OpenedMemory, AwaitedCheckpoints):
    """Keeps LangGraph's checkpoints in the record of truth of a memory, never in its index.

    Safe in any thread and on any event loop. Each change is one transaction and on disk when the
    call returns. A shallow copy, such as `with_allowlist` makes, shares the memory.

    Args:
        memory: an open memory, which the caller closes; the path of its folder, opened on first use
            and closed by `close`; or None for the location that the environment names, `./memory`
            by default.
        serde: how values become bytes. By default only LangGraph's own safe types are restored;
            allow others with `with_allowlist` or
            `JsonPlusSerializer(allowed_msgpack_modules=[...])`. With an `EncryptedSerializer`,
            values that are not encrypted are refused.
        owner: returns the owner of a thread, a user's id or a scope, from the thread's id and what
            the run has in its context or config, such as `lambda thread, run: run["user_id"]`. An
            id that cannot be used raises `InvalidScopeError`. `Memory.forget` then erases a user's
            threads too, or the thread of a session, and nobody can continue somebody else's
            thread. A call without what the function looks for, such as `get_state` with only a
            thread id, counts as the program's own and may read any thread. A thread without an
            owner is kept until it is deleted.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is neither open nor a path.
        InvalidRecordError: the serializer or the function cannot be used.
    """

    def __init__(
        self,
        memory: MemorySource = None,
        *,
        serde: SerializerProtocol | None = None,
        owner: ThreadOwner | None = None,
    ) -> None:
        if serde is not None:
            _check_serde(serde)
        if owner is not None:
            check_function("owner", owner, arguments=2)
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._lazy = open_lazily(memory)
        self._owner = owner
        self._is_nobody_told = False

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        serde: SerializerProtocol | None = None,
        owner: ThreadOwner | None = None,
    ) -> Self:
        """Make a saver on the memory of a folder, for `with` and `async with`."""
        return cls(path, serde=serde, owner=owner)

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:
        """Make a saver by a connection string, for `with` and `async with`.

        Args:
            conn_string: the path of a folder, the URL of a graph store, such as
                `neo4j://host:7687`, `graph=URL,vectors=URL` with the URLs of `Memory.open`, or
                `:memory:` for a folder that is deleted when the saver is closed.

        Raises:
            InvalidRecordError: it cannot be used.
        """
        return cls(ConnString(conn_string))

    # -- writing -------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and the values of its new versions; return its config.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        row, values = encode_checkpoint(config, checkpoint, metadata, new_versions, self.serde)
        owner = self._owner_of(config)
        self._checkpoints.put(row, values, owner)
        if owner is None:
            self._warn_of_nobody(row.address)
        return to_config(row.address)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote, even before its checkpoint is stored.

        Raises:
            InvalidRecordError: the config names no checkpoint, or the thread belongs to another
                owner.
        """
        thread, namespace, checkpoint = to_address(config)
        if checkpoint is None:
            raise InvalidRecordError(
                field="checkpoint_id", value=None, reason="must name a checkpoint"
            )
        rows = encode_writes(writes, task_id, task_path, self.serde)
        address = Address(thread=thread, namespace=namespace, id=checkpoint)
        self._checkpoints.write(address, rows, self._owner_of(config))

    # -- reading -------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, without an id the latest of the namespace; None if there is none.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        state = self._checkpoints.read(*to_address(config))
        owner = self._owner_of(config)
        return None if state is None else decode_state(state, to_loader(self.serde), owner)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; each page is read when it is needed.

        Lists all threads without a config, and all namespaces without `checkpoint_ns`.

        Args:
            filter: top-level keys of the metadata and the values they must equal.
            before: lists only checkpoints older than the one it names.
            limit: how many at most; 0 lists none.
        """
        _check_listing(filter, limit)
        for page in self._pages(config, filter, before, limit):
            yield from page

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, see `list`."""
        _check_listing(filter, limit)
        pages = self._pages(config, filter, before, limit)
        memory = await self._lazy.aget()
        while (page := await memory.admin.run(_next_page, pages)) is not None:
            for found in page:
                yield found

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes to delta channels since their last full value, oldest first.

        Raises:
            InvalidRecordError: the thread belongs to another owner.
        """
        checkpoints, owner = self._checkpoints, self._owner_of(config)
        state = checkpoints.read(*to_address(config))
        if state is None:
            return decode_history([], channels, self.serde)
        check_owner(state, owner)
        steps = checkpoints.steps(state.checkpoint.address, channels)
        return decode_history(steps, channels, self.serde)

    # -- removing and copying ------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with its subgraphs and writes."""
        self._checkpoints.delete([to_thread(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, except those that a later `DeltaChannel` builds on."""
        check_list("run_ids", run_ids, "ids of runs")
        self._checkpoints.delete_runs([str(run_id) for run_id in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints and its owner to another id."""
        self._checkpoints.copy(to_thread(source_thread_id), to_thread(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the latest checkpoint of each namespace, or with `delete` none.

        Checkpoints that the latest one's `DeltaChannel` builds on stay. The namespace of a subgraph
        is deleted with the checkpoint from which its task started.

        Raises:
            InvalidRecordError: the strategy is unknown, or the ids are not a list.
        """
        calls = {"keep_latest": self._checkpoints.prune, "delete": self._checkpoints.delete}
        check_choice("strategy", strategy, [*calls])
        check_list("thread_ids", thread_ids, "ids of threads")
        calls[strategy]([to_thread(thread_id) for thread_id in thread_ids])

    # -- wiring --------------------------------------------------------------------------------

    @property
    def _checkpoints(self) -> Checkpoints:
        return self._lazy.get().admin.checkpoints

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a channel's next version, partly random so that two branches never share one."""
        number, _, _ = ("0" * 10 if current is None else str(current)).partition(".")
        width = max(10, len(number))  # versions are compared as text
        return f"{int(number) + 1:0{width}}.{random.getrandbits(64):016x}"

    def _pages(
        self,
        config: RunnableConfig | None,
        expected: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[Iterator[CheckpointTuple]]:
        """Read page by page; nothing is locked between pages.

        Args:
            expected: what the metadata must have. Compared here, and not by the engine, as the
                metadata may be encrypted.
        """
        selection, store = _to_selection(config, before), self._checkpoints
        owner, load = self._owner_of(config), to_loader(self.serde)
        after: Address | None = None
        while limit is None or limit > 0:
            size = _PAGE_SIZE if limit is None or expected else min(limit, _PAGE_SIZE)
            if expected:
                rows = store.page(selection, limit=size, after=after)
                found = [row.address for row in rows if has_metadata(row, expected, load)]
                read = (store.read(at.thread, at.namespace, at.id) for at in found[:limit])
                states = [state for state in read if state is not None]  # not removed since
            else:
                page = store.states(selection, limit=size, after=after)
                rows = [state.checkpoint for state in page]
                states = [state for state in page if is_of_graph(state.checkpoint)]
            limit = None if limit is None else limit - len(states)
            yield (decode_state(state, load, owner) for state in states)
            if len(rows) < size:
                return
            after = rows[-1].address

    def _warn_of_nobody(self, at: Address) -> None:
        """Log once that a thread is stored without an owner, which may be a mistake, if it is."""
        if self._owner is None or self._is_nobody_told:
            return
        state = self._checkpoints.read(at.thread, at.namespace, at.id)
        if state is not None and state.owner is None:
            self._is_nobody_told = True
            _log.warning(
                "The thread %r is stored without an owner, as `owner` found none in this run: it "
                "is not erased with a user, and any user can continue it. Give the run what "
                "`owner` reads.",
                at.thread,
            )

    def _owner_of(self, config: RunnableConfig | None) -> Scope | None:
        if self._owner is None or config is None:
            return None
        try:
            owner = self._owner(to_address(config)[0], _Given(config))
        except _NotGivenError:
            return None
        return owner if owner is None or isinstance(owner, Scope) else to_scope(owner)


def _next_page(pages: Iterator[Iterator[CheckpointTuple]]) -> list[CheckpointTuple] | None:
    """Decode the next page, on a thread; None after the last."""
    page = next(pages, None)
    return None if page is None else [*page]


def _check_serde(serde: object) -> None:
    is_serializer = hasattr(serde, "loads_typed") or hasattr(serde, "loads")
    if isinstance(serde, type) or not is_serializer:
        raise InvalidRecordError(
            field="serde",
            value=serde,
            reason="must be a serializer",
            hint="Give an instance, such as JsonPlusSerializer().",
        )


def _check_listing(expected: object, limit: object) -> None:
    if expected is not None:
        check_mapping("filter", expected, "{'source': 'loop'}")
    if limit is not None and type(limit) is not int:
        raise InvalidRecordError(field="limit", value=limit, reason="must be a whole number")


class _NotGivenError(KeyError):
    """A call's config lacks what `owner` reads."""


class _Given(Mapping[str, Any]):
    """A run's context, then its config, as one mapping; see `user_of`.

    A missing key raises `_NotGivenError`, so that it differs from other errors of `owner`.
    """

    def __init__(self, config: RunnableConfig) -> None:
        self._context = getattr(config["configurable"].get(_RUNTIME), "context", None)
        self._configured = {**(config.get("metadata") or {}), **config["configurable"]}

    def __getitem__(self, key: str) -> Any:
        found = field_of(self._context, key)
        if found is None and key not in self._configured:
            raise _NotGivenError(key)
        return self._configured[key] if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured)

    def __len__(self) -> int:
        return len(self._configured)


def _to_selection(config: RunnableConfig | None, before: RunnableConfig | None) -> Selection:
    """Make the selection of a listing; without a namespace it covers all of them."""
    check_mapping("before", before or {}, "{'configurable': {'checkpoint_id': '...'}}")
    place = (before or {}).get("configurable") or {}
    check_mapping("before['configurable']", place, "{'checkpoint_id': '...'}")
    below = place.get("checkpoint_id") or None
    if config is None:
        return Selection(before=below)
    thread, namespace, checkpoint = to_address(config)
    is_open = config["configurable"].get("checkpoint_ns") is None
    return Selection(
        thread=thread, namespace=None if is_open else namespace, id=checkpoint, before=below
    )
