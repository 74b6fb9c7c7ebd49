"""What is written to Neo4j of checkpoints: the properties of nodes, and their keys."""

import json
from typing import Any

from ..checkpoints import Address, Blob, Checkpoint, TaskWrite
from ..model import Scope
from . import rows


def beginning(thread: str) -> str:
    """Give what the keys of all nodes of a thread begin with; plain ASCII."""
    return f"{json.dumps(thread)}/"


def key(thread: str, *rest: str) -> str:
    """Name a node of a thread, unlike any other."""
    return beginning(thread) + json.dumps(rest)


def to_node(one: Checkpoint) -> dict[str, Any]:
    """Turn a checkpoint into the properties of its node."""
    thread, namespace = one.address.thread, one.address.namespace
    return {
        "id": key(thread, namespace, one.address.id),
        "thread": thread,
        "namespace": namespace,
        "name": one.address.id,
        "parent": one.parent,
        "run": one.run,
        "within": list(one.within) if one.within else None,
        "deltas": list(one.deltas),
        "versions": rows.to_json(one.versions),
        "values": [key(thread, namespace, *pair) for pair in one.versions.items()],
        "body_type": one.body.type,
        "body": one.body.data,
        "metadata_type": one.metadata.type,
        "metadata": one.metadata.data,
    }


def value_node(at: Address, name: tuple[str, str], blob: Blob) -> dict[str, Any]:
    """Turn the value of a channel's version into the properties of its node."""
    return {
        "id": key(at.thread, at.namespace, *name),
        "thread": at.thread,
        "namespace": at.namespace,
        "channel": name[0],
        "version": name[1],
        "type": blob.type,
        "data": blob.data,
    }


def write_node(at: Address, one: TaskWrite) -> dict[str, Any]:
    """Turn what a task wrote into the properties of its node."""
    return {
        "id": key(at.thread, at.namespace, at.id, one.task, str(one.index)),
        "thread": at.thread,
        "checkpoint": key(at.thread, at.namespace, at.id),
        "task": one.task,
        "path": one.path,
        "number": one.index,
        "channel": one.channel,
        "type": one.value.type,
        "data": one.value.data,
    }


def owner_properties(owner: Scope) -> dict[str, Any]:
    """Give the properties of a thread's node that say whose it is."""
    ids = {"user_id": owner.user_id, "agent_id": owner.agent_id, "session_id": owner.session_id}
    return {"lane": owner.lane, **ids}
