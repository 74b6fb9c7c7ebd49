"""Checkpoint store on a Neo4j server, which many processes and hosts may share.

A change locks its thread and is one transaction; a state is read in one round trip.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...model import Scope
from ...ports.checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ..shared import retention, rows
from . import checkpoint_queries, queries
from .driver import Ask, Neo4jDriver

_BATCH = 100
_TABLES = ("threads", "checkpoints", "values", "writes")


class Neo4jCheckpoints:
    """A `Checkpoints` in a database of a Neo4j server; made and named as `Neo4jGraph` is.

    Args:
        bolt: an open connection instead of one of its own, closed with it.
    """

    def __init__(
        self,
        uri: str,
        *,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        prefix: str = "Commonplace",
        bolt: Neo4jDriver | None = None,
        **options: Any,
    ) -> None:
        self._bolt = bolt or Neo4jDriver(
            uri, auth=auth, database=database, prefix=prefix, options=options
        )

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
    ) -> None:
        """Write a checkpoint, or write it anew, with the values that its channels have since."""
        at = checkpoint.address
        given = {
            "row": to_node(checkpoint),
            "before": checkpoint.parent and node_id(at.thread, at.namespace, checkpoint.parent),
            "kept": [value_node(at, key, one) for key, one in values.items() if one],
            "gone": [
                node_id(at.thread, at.namespace, *key) for key, one in values.items() if one is None
            ],
        }
        self._own(checkpoint_queries.PUT, at.thread, owner, given)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Keep what a task wrote beside a checkpoint, which itself may come later."""
        if not writes:
            return
        given = [write_node(address, one) for one in writes]
        parts = {
            "slots": [one for one in given if one["number"] < 0],
            "rows": [one for one in given if one["number"] >= 0],
        }
        self._own(checkpoint_queries.WRITE, address.thread, owner, parts)

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        if id is not None:
            return next(
                iter(self.states([Address(thread=thread, namespace=namespace, id=id)])), None
            )
        given = {"thread": thread, "namespace": namespace}
        found = self._bolt.read(lambda ask: ask(checkpoint_queries.LATEST, **given))
        return to_state(found[0]) if found else None

    def page(
        self, asked: Selection, *, limit: int, after: Address | None = None
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace."""
        rows.check_limit(limit)
        text, given = page(asked, after)
        found = self._bolt.read(lambda ask: ask(text, limit=limit, **given))
        return [to_checkpoint(one["checkpoint"]) for one in found]

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out what is not there."""
        ids = [node_id(one.thread, one.namespace, one.id) for one in addresses]
        found = self._bolt.read(lambda ask: ask(checkpoint_queries.STATES, ids=ids)) if ids else []
        by_id = {one["checkpoint"]["id"]: to_state(one) for one in found}
        return [by_id[one] for one in ids if one in by_id]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Walk from a checkpoint's parent back to where each channel has a value."""
        at = node_id(address.thread, address.namespace, address.id)
        return self._bolt.read(lambda ask: _steps(ask, at, set(channels)))

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""
        if threads:
            self._bolt.write(
                lambda ask: ask(checkpoint_queries.REMOVE, threads=sorted(set(threads)))
            )

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints that these runs made, and what only they need."""

        def work(ask: Ask) -> None:
            found = ask(checkpoint_queries.OF_RUNS, runs=sorted(set(runs)))
            for thread in sorted(one["thread"] for one in found):
                heads, values = _load(ask, thread)
                _keep(ask, thread, heads, values, retention.without(heads, values, runs))

        if runs:
            self._bolt.write(work)

    def copy(self, source: str, target: str) -> None:
        """Copy all of a thread into another, with its owner."""

        def work(ask: Ask) -> None:
            found = ask(checkpoint_queries.LOCK_THERE, thread=source)
            if found and source != target:
                owner = to_scope(found[0]["owner"])
                given = {
                    "source": source,
                    "from": beginning(source),
                    "to": beginning(target),
                }
                _ask_as(ask, checkpoint_queries.COPY, target, owner, given)

        self._bolt.write(work)

    def prune(self, threads: Collection[str]) -> None:
        """Keep of each namespace the latest checkpoint, and those that it takes channels from."""

        def work(ask: Ask) -> None:
            for thread in sorted(set(threads)):
                heads, values = _load(ask, thread)
                _keep(ask, thread, heads, values, retention.latest(heads, values))

        self._bolt.write(work)

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; answer the rows removed, by table.

        Many threads take several transactions.
        """
        owned = queries.fill(checkpoint_queries.OWNED, covered=queries.covered(scope, "t"))
        given = queries.owner(scope)

        def work(ask: Ask) -> dict[str, int]:
            found = [one["id"] for one in ask(owned, limit=_BATCH, **given)]
            return dict(ask(checkpoint_queries.REMOVE, threads=found)[0])

        removed: Counter[str] = Counter(dict.fromkeys(_TABLES, 0))
        while True:
            gone = self._bolt.write(work)
            removed.update(gone)
            if gone["threads"] < _BATCH:
                return dict(removed)

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""
        text = queries.fill(checkpoint_queries.COUNT, covered=queries.covered(scope, "t"))
        return dict(self._bolt.read(lambda ask: ask(text, **queries.owner(scope)))[0])

    def close(self) -> None:
        """Let go of all connections; repeating it does nothing."""
        self._bolt.close()

    def _own(self, text: str, thread: str, owner: Scope | None, given: Mapping[str, Any]) -> None:
        self._bolt.write(lambda ask: _ask_as(ask, text, thread, owner, given))


def _ask_as(
    ask: Ask, text: str, thread: str, owner: Scope | None, given: Mapping[str, Any]
) -> None:
    """Change a thread, and undo that by raising when it belongs to somebody else."""
    parts = {} if owner is None else owner_properties(owner)
    [found] = ask(text, thread=thread, owner=parts, **given)
    retention.settle_owner(thread, to_scope(found["owner"]), owner)


def _steps(ask: Ask, at: str, lacking: set[str]) -> list[Step]:
    text = queries.fill(checkpoint_queries.STEPS, most=str(_BATCH))
    found: list[Step] = []
    batch: list[dict[str, Any]] = [{"id": at}]
    seen = {at}  # the parents come from outside: they might go in a circle
    while lacking and batch:
        batch = ask(text, id=batch[-1]["id"], channels=sorted(lacking))
        for one in batch:
            if not lacking or one["id"] in seen:
                return found
            seen.add(one["id"])
            step = to_step(one, lacking)
            found.append(step)
            lacking = lacking - set(step.values)
    return found


def _load(ask: Ask, thread: str) -> tuple[list[retention.Head], set[retention.Kept]]:
    """Lock a thread and read its checkpoints without their bytes, and the versions with a value."""
    ask(checkpoint_queries.LOCK_THERE, thread=thread)
    [found] = ask(checkpoint_queries.LOAD, thread=thread)
    return [to_head(one) for one in found["heads"]], {
        (namespace, channel, version) for namespace, channel, version in found["values"]
    }


def _keep(
    ask: Ask,
    thread: str,
    heads: Iterable[retention.Head],
    values: Collection[retention.Kept],
    kept: Collection[retention.Key],
) -> None:
    """Remove what is not kept, and a thread that has nothing left."""
    unused = set(values) - retention.referenced(heads, kept)
    ask(
        checkpoint_queries.KEEP,
        gone=[node_id(thread, *one.key) for one in heads if one.key not in kept],
        unused=[node_id(thread, *one) for one in sorted(unused)],
    )
    ask(checkpoint_queries.DROP_EMPTY, thread=thread)


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


def to_head(node: Mapping[str, Any]) -> retention.Head:
    """Turn the properties of a node into a checkpoint without its bytes."""
    return retention.Head(
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
        parts.append(checkpoint_queries.BELOW)
        given |= {"name": after.id, "last": after.thread, "line": after.namespace}
    text = queries.fill(
        checkpoint_queries.PAGE,
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


def beginning(thread: str) -> str:
    """Give what the keys of all nodes of a thread begin with; plain ASCII."""
    return f"{json.dumps(thread)}/"


def node_id(thread: str, *rest: str) -> str:
    """Name a node of a thread, unlike any other."""
    return beginning(thread) + json.dumps(rest)


def to_node(one: Checkpoint) -> dict[str, Any]:
    """Turn a checkpoint into the properties of its node."""
    thread, namespace = one.address.thread, one.address.namespace
    return {
        "id": node_id(thread, namespace, one.address.id),
        "thread": thread,
        "namespace": namespace,
        "name": one.address.id,
        "parent": one.parent,
        "run": one.run,
        "within": list(one.within) if one.within else None,
        "deltas": list(one.deltas),
        "versions": rows.to_json(one.versions),
        "values": [node_id(thread, namespace, *pair) for pair in one.versions.items()],
        "body_type": one.body.type,
        "body": one.body.data,
        "metadata_type": one.metadata.type,
        "metadata": one.metadata.data,
    }


def value_node(at: Address, name: tuple[str, str], blob: Blob) -> dict[str, Any]:
    """Turn the value of a channel's version into the properties of its node."""
    return {
        "id": node_id(at.thread, at.namespace, *name),
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
        "id": node_id(at.thread, at.namespace, at.id, one.task, str(one.index)),
        "thread": at.thread,
        "checkpoint": node_id(at.thread, at.namespace, at.id),
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
    return {"partition": owner.partition, **ids}
