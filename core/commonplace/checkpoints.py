"""The states of runs as they cross the `Checkpoints` port: bytes, with what is needed around them.

A framework's adapter turns its states into these and back; no engine looks into the bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .model import Scope


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
