"""Conversion of LangGraph's checkpoints to rows of bytes, and back.

The saver's serializer encodes every value. What stays readable beside the values:

- `thread_id`, `checkpoint_ns`, `checkpoint_id` of `configurable` ↔ `Address`.
- `Checkpoint` without `channel_values` and `id` ↔ `body`; its `channel_versions` ↔ `versions`, as
  text, and in the body, too, unless they are the same.
- `channel_values` of the channels in `new_versions` ↔ one value each; a missing one is empty.
- metadata, as `get_checkpoint_metadata` completes it ↔ `metadata`; its `run_id` also as `run`.
- `counters_since_delta_snapshot` of the metadata → its channels are `deltas`.
- `parents` of the metadata → `within`, for the namespace of a task.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import Checkpoint as GraphCheckpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from commonplace import InvalidRecordError, Scope
from commonplace.agents import check_list, check_mapping, is_sound
from commonplace.ports import Address, Blob, Checkpoint, State, Step, TaskWrite

Load = Callable[[Blob], Any]
_CONFIG = "{'configurable': {'thread_id': '...'}}"
_NAMESPACE_SEPARATOR, _TASK_SEPARATOR = "|", ":"  # between parts; in front of the task's id


# -- addresses ---------------------------------------------------------------------------------


def to_address(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Read thread, namespace and checkpoint id; the id is None for the latest checkpoint."""
    check_mapping("config", config, _CONFIG)
    configurable = config.get("configurable") or {}
    check_mapping("config['configurable']", configurable, "{'thread_id': '...'}")
    namespace = configurable.get("checkpoint_ns") or ""
    checkpoint = configurable.get("checkpoint_id") or None
    if not isinstance(checkpoint, str | None):
        raise InvalidRecordError(
            field="checkpoint_id",
            value=checkpoint,
            reason="must be a string",
            hint="Give the id of a checkpoint, or leave it out for the latest.",
        )
    return to_thread(configurable.get("thread_id")), namespace, checkpoint


def to_thread(given: object) -> str:
    """Return a thread's id as text."""
    is_id = given is not None and not isinstance(given, Mapping | list | tuple)
    if not is_id or not str(given) or not is_sound(str(given)):
        raise InvalidRecordError(
            field="thread_id",
            value=given,
            reason="must name a thread",
            hint=f"Give the config {_CONFIG}.",
        )
    return str(given)


def to_config(address: Address, *, id: str | None = None) -> RunnableConfig:
    """Make LangGraph's config of a checkpoint's address, or of another `id` beside it."""
    return {
        "configurable": {
            "thread_id": address.thread,
            "checkpoint_ns": address.namespace,
            "checkpoint_id": id or address.id,
        }
    }


# -- encoding ----------------------------------------------------------------------------------


def encode_checkpoint(
    config: RunnableConfig,
    given: GraphCheckpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    serde: SerializerProtocol,
    versions: Mapping[str, str] | None = None,
) -> tuple[Checkpoint, dict[tuple[str, str], Blob | None]]:
    """Turn a checkpoint into a row and the values of its new versions, None for emptied channels.

    Args:
        versions: by which the row finds its values; those of the checkpoint when missing.

    Raises:
        InvalidRecordError: an argument does not have the form that LangGraph gives it.
    """
    _check_checkpoint(given)
    check_mapping("metadata", metadata, "{}")
    check_mapping("new_versions", new_versions, "{}")
    thread, namespace, parent = to_address(config)
    completed = cast("dict[str, Any]", get_checkpoint_metadata(config, metadata))
    values = given["channel_values"]
    run = completed.get("run_id")
    body = {name: value for name, value in given.items() if name not in ("channel_values", "id")}
    named = given["channel_versions"]
    if versions is None:
        versions = {name: str(version) for name, version in named.items()}
    if versions == named:
        del body["channel_versions"]
    row = Checkpoint(
        address=Address(thread=thread, namespace=namespace, id=given["id"]),
        body=_dump(serde, body),
        metadata=_dump(serde, completed),
        versions=versions,
        parent=parent,
        deltas=tuple(completed.get("counters_since_delta_snapshot") or ()),
        run=None if run is None else str(run),
        within=_enclosing(namespace, completed.get("parents") or {}),
    )
    return row, {
        (name, str(version)): _dump(serde, values[name]) if name in values else None
        for name, version in new_versions.items()
    }


def _check_checkpoint(given: GraphCheckpoint) -> None:
    check_mapping("checkpoint", given, "empty_checkpoint()")
    for name in ("id", "channel_values", "channel_versions"):
        if name not in given:
            raise InvalidRecordError(
                field="checkpoint",
                value=given,
                reason=f"must have {name!r}",
                hint="Give one such as empty_checkpoint().",
            )


def encode_writes(
    writes: Sequence[tuple[str, Any]], task: str, path: str, serde: SerializerProtocol
) -> list[TaskWrite]:
    """Turn a task's writes into rows, in their order; errors and interrupts have fixed indices."""
    check_list("writes", writes, "pairs of a channel and a value")
    for pair in writes:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or type(pair[0]) is not str:
            raise InvalidRecordError(
                field="writes", value=pair, reason="must be a pair of a channel and a value"
            )
    if type(task) is not str:
        raise InvalidRecordError(field="task_id", value=task, reason="must be a string")
    return [
        TaskWrite(
            task=task,
            path=path,
            index=WRITES_IDX_MAP.get(channel, number),
            channel=channel,
            value=_dump(serde, value),
        )
        for number, (channel, value) in enumerate(writes)
    ]


# -- decoding ----------------------------------------------------------------------------------


def decode_state(state: State, load: Load, owner: Scope | None) -> CheckpointTuple:
    """Turn a state into LangGraph's tuple, with the writes in `writes_sort_key` order."""
    check_owner(state, owner)
    row = state.checkpoint
    address = row.address
    checkpoint = {
        "channel_versions": dict(row.versions),
        **load(row.body),
        "id": address.id,
        "channel_values": {name: load(value) for name, value in state.values.items()},
    }
    return CheckpointTuple(
        config=to_config(address),
        checkpoint=cast("GraphCheckpoint", checkpoint),
        metadata=load(row.metadata),
        parent_config=to_config(address, id=row.parent) if row.parent else None,
        pending_writes=[(write.task, write.channel, load(write.value)) for write in state.writes],
    )


def decode_history(
    steps: Sequence[Step], channels: Iterable[str], serde: SerializerProtocol
) -> dict[str, DeltaChannelHistory]:
    """Turn steps, latest first, into each channel's seed, if any, and the writes since."""
    load = to_loader(serde)
    history: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        history[channel] = {
            "writes": [
                (write.task, channel, load(write.value))
                for step in reversed(steps)
                for write in step.writes
                if write.channel == channel
            ]
        }
        for step in steps:
            if channel in step.values:
                history[channel]["seed"] = load(step.values[channel])
    return history


def is_of_graph(row: Checkpoint) -> bool:
    """Return whether a checkpoint is LangGraph's: a slash marks what another framework stores."""
    return "/" not in row.metadata.type


def has_metadata(row: Checkpoint, expected: Mapping[str, Any], load: Load) -> bool:
    """Return whether a checkpoint is LangGraph's, and its metadata has all the expected values."""
    if not is_of_graph(row):
        return False
    metadata = load(row.metadata)
    return all(metadata.get(name) == value for name, value in expected.items())


def check_owner(state: State, owner: Scope | None) -> None:
    """Check that a state belongs to an owner, or to nobody."""
    if owner is not None and state.owner not in (None, owner):
        raise InvalidRecordError(
            field="thread_id",
            value=state.checkpoint.address.thread,
            reason="belongs to another owner",
            hint="Use separate threads for each user.",
        )


# -- values ------------------------------------------------------------------------------------


def _dump(serde: SerializerProtocol, value: object) -> Blob:
    kind, data = serde.dumps_typed(value)
    return Blob(type=kind, data=bytes(data))


def to_loader(serde: SerializerProtocol) -> Load:
    """Return the function that decodes values.

    With an encrypting serializer it raises `InvalidRecordError` for a value in plain text, which
    somebody without the key has written.
    """
    loads = serde.loads_typed

    def load(blob: Blob) -> Any:
        return loads((blob.type, blob.data))

    def decrypt(blob: Blob) -> Any:
        if "+" not in blob.type:
            raise InvalidRecordError(
                field="type",
                value=blob.type,
                reason="is not encrypted, and this saver reads only encrypted values",
                hint="Open the thread without encryption, or delete it.",
            )
        return load(blob)

    # `isinstance` would go through the members of the protocol, which takes longer than the rest.
    return decrypt if issubclass(type(serde), EncryptedSerializer) else load


def _enclosing(namespace: str, parents: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the checkpoint whose task opened a namespace such as `outer:1|inner:2`."""
    parts = namespace.split(_NAMESPACE_SEPARATOR)
    while parts and parts[-1].isdigit():  # the second subgraph of a task, and those after it
        parts.pop()
    if not parts or _TASK_SEPARATOR not in parts.pop():
        return None  # a namespace without a task's id goes on from run to run
    outer = _NAMESPACE_SEPARATOR.join(parts)
    return (outer, parents[outer]) if outer in parents else None
