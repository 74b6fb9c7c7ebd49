"""The way from rows of bytes back to LangGraph's checkpoints."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import CheckpointTuple

from commonplace import InvalidRecordError, Scope
from commonplace.ports.checkpoints import Address, Checkpoint, State, Step

from .addresses import config_of
from .blobs import loader

if TYPE_CHECKING:
    from langgraph.checkpoint.base import Checkpoint as Given
    from langgraph.checkpoint.base import DeltaChannelHistory
    from langgraph.checkpoint.serde.base import SerializerProtocol


def to_tuple(state: State, serde: "SerializerProtocol", owner: Scope | None) -> CheckpointTuple:
    """Turn a state into what LangGraph reads; its writes are in `writes_sort_key` order.

    Args:
        owner: who asks; None when nobody said.

    Raises:
        InvalidRecordError: the thread belongs to another owner.
    """
    check_owner(state, owner)
    row = state.checkpoint
    address = row.address
    load = loader(serde)
    body: Any = load(row.body)
    values = {name: load(one) for name, one in state.values.items()}
    parent = None
    if row.parent is not None:
        parent = config_of(
            Address(thread=address.thread, namespace=address.namespace, id=row.parent)
        )
    return CheckpointTuple(
        config=config_of(address),
        checkpoint=cast("Given", {**body, "channel_values": values}),
        metadata=load(row.metadata),
        parent_config=parent,
        pending_writes=[(one.task, one.channel, load(one.value)) for one in state.writes],
    )


def check_owner(state: State, owner: Scope | None) -> None:
    """Refuse a state of somebody else.

    Raises:
        InvalidRecordError: the thread belongs to another owner.
    """
    if owner is not None and state.owner not in (None, owner):
        raise InvalidRecordError(
            field="thread_id",
            value=state.checkpoint.address.thread,
            reason="belongs to another owner",
            hint="Give every user threads of their own.",
        )


def to_history(
    steps: Sequence[Step], channels: Iterable[str], serde: "SerializerProtocol"
) -> "dict[str, DeltaChannelHistory]":
    """Turn steps, nearest first, into each channel's seed, if it has one, and writes since."""
    load = loader(serde)
    found: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        found[channel] = {
            "writes": [
                (one.task, channel, load(one.value))
                for step in reversed(steps)
                for one in step.writes
                if one.channel == channel
            ]
        }
        for step in steps:
            if channel in step.values:
                found[channel]["seed"] = load(step.values[channel])
    return found


def has(row: Checkpoint, wanted: Mapping[str, Any] | None, serde: "SerializerProtocol") -> bool:
    """Tell whether a checkpoint's metadata has all that is wanted, compared as Python does."""
    if not wanted:
        return True
    metadata = loader(serde)(row.metadata)
    return all(metadata.get(name) == value for name, value in wanted.items())
