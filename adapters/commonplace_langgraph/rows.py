"""The way from LangGraph's checkpoints to rows of bytes.

Every value goes through the saver's serializer; what stays readable beside it is named here:

- `thread_id`, `checkpoint_ns`, `checkpoint_id` of `configurable`: `Address`.
- `Checkpoint` without `channel_values`: `body`; its `channel_versions` also as `versions`, as text.
- `channel_values` of the channels in `new_versions`: one value each; one that is missing is empty.
- metadata, as `get_checkpoint_metadata` completes it: `metadata`; its `run_id` also as `run`.
- `counters_since_delta_snapshot` of the metadata: its channels are `deltas`.
- `parents` of the metadata: `within`, for the namespace of a task.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, get_checkpoint_metadata

from commonplace.ports.checkpoints import Address, Blob, Checkpoint, TaskWrite

from .addresses import address_of
from .blobs import dump

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, CheckpointMetadata
    from langgraph.checkpoint.base import Checkpoint as Given
    from langgraph.checkpoint.serde.base import SerializerProtocol

_NEXT, _TASK = "|", ":"  # between the parts of a namespace; before the task's id


def to_rows(
    config: "RunnableConfig",
    given: "Given",
    metadata: "CheckpointMetadata",
    new_versions: "ChannelVersions",
    serde: "SerializerProtocol",
) -> tuple[Checkpoint, dict[tuple[str, str], Blob | None]]:
    """Turn a checkpoint into a row and the values of its new versions, None for emptied ones."""
    thread, namespace, parent = address_of(config)
    whole = cast("dict[str, Any]", get_checkpoint_metadata(config, metadata))
    values = given["channel_values"]
    run = whole.get("run_id")
    row = Checkpoint(
        address=Address(thread=thread, namespace=namespace, id=given["id"]),
        body=dump(serde, {name: one for name, one in given.items() if name != "channel_values"}),
        metadata=dump(serde, whole),
        versions={name: str(one) for name, one in given["channel_versions"].items()},
        parent=parent,
        deltas=tuple(whole.get("counters_since_delta_snapshot") or ()),
        run=None if run is None else str(run),
        within=_enclosing(namespace, whole.get("parents") or {}),
    )
    return row, {
        (name, str(version)): dump(serde, values[name]) if name in values else None
        for name, version in new_versions.items()
    }


def to_writes(
    writes: Sequence[tuple[str, Any]], task: str, path: str, serde: "SerializerProtocol"
) -> list[TaskWrite]:
    """Turn what a task wrote into rows, in their order; errors and the like have own slots."""
    return [
        TaskWrite(
            task=task,
            path=path,
            index=WRITES_IDX_MAP.get(channel, number),
            channel=channel,
            value=dump(serde, value),
        )
        for number, (channel, value) in enumerate(writes)
    ]


def _enclosing(namespace: str, parents: Mapping[str, str]) -> tuple[str, str] | None:
    """Find the checkpoint whose task opened a namespace such as `outer:1|inner:2`."""
    parts = namespace.split(_NEXT)
    while parts and parts[-1].isdigit():  # the second subgraph of a task, and those after it
        parts.pop()
    if not parts or _TASK not in parts.pop():
        return None  # a namespace without a task's id goes on from run to run
    outer = _NEXT.join(parts)
    return (outer, parents[outer]) if outer in parents else None
