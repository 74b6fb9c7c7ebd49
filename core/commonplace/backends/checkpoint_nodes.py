"""What is read of checkpoints in Neo4j: the way from nodes to what crosses the port."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from ..checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ..model import Scope
from . import checkpoint_cypher as cypher
from . import clauses, lineage, rows

_COLUMNS = {
    (True, True): ("thread", "namespace", "name"),
    (True, False): ("thread", "name", "namespace"),
}
_ALL = ("name", "thread", "namespace")
_ASKED = {
    "thread": "c.thread = $thread",
    "namespace": "c.namespace = $namespace",
    "id": "c.name = $id",
    "before": "c.name < $before",
}


def to_scope(owner: Mapping[str, Any]) -> Scope | None:
    """Read whose a thread is; None for nobody's."""
    ids = (owner.get("user_id"), owner.get("agent_id"), owner.get("session_id"))
    return rows.to_scope(*ids) if any(ids) else None


def to_checkpoint(node: Mapping[str, Any]) -> Checkpoint:
    """Turn the properties of a node into a checkpoint."""
    return Checkpoint(
        address=Address(thread=node["thread"], namespace=node["namespace"], id=node["name"]),
        parent=node.get("parent"),
        run=node.get("run"),
        within=_pair(node.get("within")),
        deltas=tuple(node["deltas"]),
        versions=json.loads(node["versions"]),
        body=Blob(type=node["body_type"], data=bytes(node["body"])),
        metadata=Blob(type=node["metadata_type"], data=bytes(node["metadata"])),
    )


def to_head(node: Mapping[str, Any]) -> lineage.Head:
    """Turn the properties of a node into a checkpoint without its bytes."""
    return lineage.Head(
        namespace=node["namespace"],
        id=node["name"],
        parent=node.get("parent"),
        run=node.get("run"),
        within=_pair(node.get("within")),
        deltas=node["deltas"],
        versions=json.loads(node["versions"]),
    )


def to_state(found: Mapping[str, Any]) -> State:
    """Turn what `STATES` answers into a state."""
    return State(
        checkpoint=to_checkpoint(found["checkpoint"]),
        values={one["channel"]: _blob(one) for one in found["values"]},
        writes=_writes(found),
        owner=to_scope(found["owners"][0]) if found["owners"] else None,
    )


def to_step(found: Mapping[str, Any], channels: Collection[str]) -> Step:
    """Turn what `STEPS` answers into a step of these channels."""
    return Step(
        values={
            one["channel"]: _blob(one) for one in found["values"] if one["channel"] in channels
        },
        writes=tuple(one for one in _writes(found) if one.channel in channels),
    )


def page(asked: Selection, after: Address | None) -> tuple[str, dict[str, Any]]:
    """Write the text that reads a page by the index that fits, with its parameters."""
    columns = _COLUMNS.get((asked.thread is not None, asked.namespace is not None), _ALL)
    given = {one: getattr(asked, one) for one in _ASKED if getattr(asked, one) is not None}
    parts = [_ASKED[one] for one in given]
    parts += [f"c.{one} IS NOT NULL" for one in columns]  # or the index would not be taken
    if after is not None:
        parts.append(cypher.BELOW)
        given |= {"name": after.id, "last": after.thread, "line": after.namespace}
    text = clauses.fill(
        cypher.PAGE,
        columns=", ".join(columns),
        asked=" AND ".join(parts),
        order=" DESC, ".join(f"c.{one}" for one in columns),
    )
    return text, given


def _writes(found: Mapping[str, Any]) -> tuple[TaskWrite, ...]:
    writes = [
        TaskWrite(
            task=one["task"],
            path=one["path"],
            index=one["number"],
            channel=one["channel"],
            value=_blob(one),
        )
        for one in found["writes"]
    ]
    return tuple(sorted(writes, key=lambda one: one.order))


def _blob(node: Mapping[str, Any]) -> Blob:
    return Blob(type=node["type"], data=bytes(node["data"]))


def _pair(value: Any) -> tuple[str, str] | None:
    return (value[0], value[1]) if value else None
