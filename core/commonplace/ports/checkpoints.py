"""Checkpoint port: the states of runs as bytes, with the metadata needed around them.

The adapter of a framework converts its states to these and back; no engine reads the bytes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A serialized value, and the type by which its serializer reads it again."""

    type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Key of a checkpoint: literal strings, compared whole.

    Attributes:
        thread: the conversation or job that runs.
        namespace: a sequence of checkpoints within it; empty for the outermost.
        id: the greatest in its namespace, by code points, is the latest.
    """

    thread: str
    namespace: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State of one step without the values of its channels, which are stored once per version.

    Attributes:
        metadata: of a type such as `framework/json`, by which a listing of all threads skips what
            is not LangGraph's; none by default.
        versions: of every channel at this step.
        parent: the id of the checkpoint before it, in the same namespace.
        deltas: channels that may have no value here though they are not empty: their value is that
            of the nearest earlier checkpoint that has one, plus what tasks wrote since.
        run: the run that made it.
        within: namespace and id of the checkpoint whose task opened this namespace, if it is
            useless without that; None for a namespace that lasts.
    """

    address: Address
    body: Blob
    metadata: Blob = Blob(type="commonplace/none", data=b"")
    versions: Mapping[str, str] = field(default_factory=dict)
    parent: str | None = None
    deltas: tuple[str, ...] = ()
    run: str | None = None
    within: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWrite:
    """What a task wrote to a channel, stored beside the checkpoint that the task started from.

    Attributes:
        path: position of the task in its step; writes of a step are applied in the order of path,
            task and index.
        index: its number among the task's writes; below zero for one that a later write replaces.
    """

    task: str
    path: str
    index: int
    channel: str
    value: Blob

    @property
    def order(self) -> tuple[str, str, int]:
        """Sorts the writes of a step."""
        return self.path, self.task, self.index


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A checkpoint with the values of its channels, the writes beside it, and the thread's owner.

    Attributes:
        values: by channel; an empty channel is missing.
        writes: in the order of `TaskWrite.order`.
    """

    checkpoint: Checkpoint
    values: Mapping[str, Blob]
    writes: tuple[TaskWrite, ...]
    owner: Scope | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Values and writes of some channels at a checkpoint, as in `State`."""

    values: Mapping[str, Blob]
    writes: tuple[TaskWrite, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Choice of checkpoints; None means any.

    Attributes:
        before: only ids below this one.
    """

    thread: str | None = None
    namespace: str | None = None
    id: str | None = None
    before: str | None = None


@runtime_checkable
class Checkpoints(Protocol):
    """Store of the states of runs, exactly as they were; not searched or ranked.

    Every change is one transaction, durable when it returns. Threads, runs and checkpoints that are
    not there are ignored.
    """

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
        *,
        replace: bool = True,
    ) -> bool:
        """Write or replace a checkpoint, with the values that its channels got in its step.

        Args:
            values: by channel and version; None for a channel that was emptied.
            owner: becomes the owner of the thread if it has none; None leaves it as it is.
            replace: False leaves everything as it is if there is a checkpoint at the address, so
                that of several writers at once exactly one succeeds.

        Returns:
            True if it was written.

        Raises:
            InvalidRecordError: the thread belongs to another owner; here and in `write` and `copy`.
        """

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Store what a task wrote beside a checkpoint, which itself may be stored later.

        A write with an index below zero replaces the stored one of the same task and index; any
        other is ignored if there is one already.
        """

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- its name
        """Read one state, the latest when `id` is missing; None if there is none."""

    def page(
        self,
        selection: Selection,
        *,
        limit: int,
        after: Address | None = None,
        offset: int = 0,
        is_ascending: bool = False,
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace.

        Args:
            limit: 1 to 1000.
            after: the last one of the page before, or where to begin; None for the first page.
            offset: how many to skip first, from 0; they are counted in the index, not read.
            is_ascending: smallest first instead.

        Returns:
            Empty list if there are no more.

        Raises:
            InvalidRecordError: the limit or the offset is not valid.
        """

    def states(
        self, selection: Selection, *, limit: int, after: Address | None = None
    ) -> list[State]:
        """Read the states of the checkpoints that `page` would read."""

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Read back from a checkpoint's parent to where each channel has a value, nearest first.

        A step has the values and writes of those channels of which no nearer step has a value.
        Empty list if the checkpoint is not there or is the first.
        """

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints of these runs, and what only those need.

        A checkpoint from which one of another run takes a channel (`Checkpoint.deltas`) stays.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy a thread with its owner to another, replacing checkpoints with the same id."""

    def prune(self, threads: Collection[str]) -> None:
        """Keep the latest checkpoint of each namespace, and those that it takes channels from.

        A namespace that was opened within a removed checkpoint is removed as a whole.
        """

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; return the rows removed, by table.

        A thread whose owner has no session belongs to the session that its id names. The tables
        are `threads`, `checkpoints`, `values` and `writes`.
        """

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""

    def close(self) -> None:
        """Release files and connections; repeating it does nothing."""


def iterate_checkpoints(
    checkpoints: Checkpoints,
    selection: Selection,
    *,
    page_size: int = 256,
    after: Address | None = None,
    offset: int = 0,
    is_ascending: bool = False,
) -> Iterator[Checkpoint]:
    """Iterate over checkpoints in the order of `Checkpoints.page`, reading a page when it is due.

    Args:
        page_size: how many to read at a time, 1 to 1000.
        after, offset: where to begin, as in `Checkpoints.page`.
        is_ascending: smallest first.
    """
    while page := checkpoints.page(
        selection, limit=page_size, after=after, offset=offset, is_ascending=is_ascending
    ):
        yield from page
        if len(page) < page_size:
            return
        after, offset = page[-1].address, 0
