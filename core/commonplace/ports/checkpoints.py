"""Checkpoint port: the states of runs as bytes, with the metadata needed around them.

The adapter of a framework converts its states to these and back; no engine reads the bytes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..model import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A value as a serializer wrote it, and the name by which that serializer reads it again.

    The metadata of what is no checkpoint of LangGraph has a type such as `framework/json`, so that
    who lists all threads passes over it.
    """

    type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a checkpoint is: ids are literal strings, compared whole.

    Attributes:
        thread: the conversation or job that runs.
        namespace: a line of checkpoints within it; empty for the outermost.
        id: the greatest in its namespace, by code points, is the latest.
    """

    thread: str
    namespace: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One step's state without the values of its channels, which are stored once per version.

    Attributes:
        parent: the id of the checkpoint before it, in the same namespace.
        versions: of every channel at this step.
        deltas: channels that may have no value here though they are not empty: theirs is that of
            the nearest earlier checkpoint that has one, and what tasks wrote since.
        run: the run that made it.
        within: namespace and id of the checkpoint whose task opened this namespace, when it is of
            no use without that; None for a namespace that lasts.
    """

    address: Address
    body: Blob
    metadata: Blob
    versions: Mapping[str, str]
    parent: str | None = None
    deltas: tuple[str, ...] = ()
    run: str | None = None
    within: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWrite:
    """What a task wrote to a channel, kept beside the checkpoint that it started from.

    Attributes:
        path: the task's place in its step; writes of a step are applied in the order of path,
            task and index.
        index: its number among the task's writes; below zero for a slot that is written anew.
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
        values: by channel; a channel that is empty is missing.
        writes: in the order of `TaskWrite.order`.
    """

    checkpoint: Checkpoint
    values: Mapping[str, Blob]
    writes: tuple[TaskWrite, ...]
    owner: Scope | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What some channels had and were given at a checkpoint; shaped as `State` is."""

    values: Mapping[str, Blob]
    writes: tuple[TaskWrite, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which checkpoints are asked for; None leaves open.

    Attributes:
        before: only ids below this one.
    """

    thread: str | None = None
    namespace: str | None = None
    id: str | None = None
    before: str | None = None


@runtime_checkable
class Checkpoints(Protocol):
    """Keeps the states of runs exactly as they were; never searched, never ranked.

    Every change is one transaction, durable when it returns. What is not there is ignored.
    """

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
    ) -> None:
        """Write a checkpoint, or write it anew, with the values that its channels have since.

        Args:
            values: by channel and version; None for a channel that was emptied.
            owner: to whom the thread belongs if it has no owner yet; None tells nothing.

        Raises:
            InvalidRecordError: the thread belongs to another owner; here and in `write` and `copy`.
        """

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Keep what a task wrote beside a checkpoint, which itself may come later.

        A write whose index is below zero replaces that of the same task and index; any other
        leaves the one that is there.
        """

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- its name
        """Read one state, the latest when `id` is missing; None if there is none."""

    def page(
        self, asked: Selection, *, limit: int, after: Address | None = None
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace.

        Args:
            after: the last one of the page before; None for the first page.
        """

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out what is not there."""

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Walk from a checkpoint's parent back to where each channel has a value, nearest first.

        A step has the values and writes of those channels of which no nearer step has a value.
        An empty list if the checkpoint is not there or is the first.
        """

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints that these runs made, and what only they need.

        One that a checkpoint of another run takes a channel from (`Checkpoint.deltas`) stays.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy a thread with its owner into another; what is there with an id is replaced."""

    def prune(self, threads: Collection[str]) -> None:
        """Keep of each namespace the latest checkpoint, and those that it takes channels from.

        A namespace that was opened within a checkpoint that goes is removed whole.
        """

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; answer the rows removed, by table."""

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""

    def close(self) -> None:
        """Let go of files and connections; repeating it does nothing."""
