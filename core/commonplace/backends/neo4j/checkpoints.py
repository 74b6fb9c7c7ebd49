"""Checkpoint store on a Neo4j server, which many processes and hosts may share.

A change locks its thread and is one transaction; a state is read in one round trip.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from ...ports.checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ...types import Scope
from ..shared import rows
from ..shared.checkpoint_retention import (
    ChannelVersion,
    CheckpointHeader,
    Choose,
    latest,
    referenced,
    resolve_owner,
    without_runs,
)
from . import checkpoint_queries, queries
from .driver import Neo4jDriver, RunQuery

_BATCH = 100
# The columns of the index for a page, by whether thread and namespace are given.
_PAGE_COLUMNS = {
    (True, True): ("thread", "namespace", "name"),
    (True, False): ("thread", "name", "namespace"),
}
_ALL_COLUMNS = ("name", "thread", "namespace")
_CONDITIONS = {
    "thread": "c.thread = $thread",
    "namespace": "c.namespace = $namespace",
    "id": "c.name = $id",
    "before": "c.name < $before",
}


class Neo4jCheckpoints:
    """A `Checkpoints` in a database of a Neo4j server; closing it closes the driver."""

    def __init__(self, driver: Neo4jDriver) -> None:
        self._driver = driver

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
        *,
        replace: bool = True,
    ) -> bool:
        """Write or replace a checkpoint, with the values that its channels got in its step."""
        at = checkpoint.address
        emptied = [key for key, blob in values.items() if blob is None]
        parameters: dict[str, Any] = {
            "row": _to_node(checkpoint),
            "before": checkpoint.parent and _node_id(at.thread, at.namespace, checkpoint.parent),
            "filled": [_value_node(at, key, blob) for key, blob in values.items() if blob],
            "emptied": [_node_id(at.thread, at.namespace, *key) for key in emptied],
        }

        def work(run: RunQuery) -> bool:
            if not replace:
                _run_as(run, checkpoint_queries.HOLD, at.thread, owner, {})
                if run(checkpoint_queries.STATES, ids=[parameters["row"]["id"]]):
                    return False
            _run_as(run, checkpoint_queries.PUT, at.thread, owner, parameters)
            return True

        return self._driver.write(work)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Store what a task wrote beside a checkpoint, which itself may be stored later."""
        if not writes:
            return
        nodes = [_write_node(address, write) for write in writes]
        parameters = {
            "replaced": [node for node in nodes if node["number"] < 0],
            "added": [node for node in nodes if node["number"] >= 0],
        }
        self._driver.write(
            lambda run: _run_as(run, checkpoint_queries.WRITE, address.thread, owner, parameters)
        )

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        if id is not None:
            states = self._states([_node_id(thread, namespace, id)])
            return states[0] if states else None
        parameters = {"thread": thread, "namespace": namespace}
        found = self._driver.read(lambda run: run(checkpoint_queries.LATEST, **parameters))
        return _to_state(found[0]) if found else None

    def page(
        self,
        selection: Selection,
        *,
        limit: int,
        after: Address | None = None,
        offset: int = 0,
        is_ascending: bool = False,
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace."""
        return self._read_page(_page(selection, after, is_ascending=is_ascending), limit, offset)

    def states(
        self, selection: Selection, *, limit: int, after: Address | None = None
    ) -> list[State]:
        """Read the states of the checkpoints that `page` would read."""
        found = self._read_page(_page(selection, after, is_ascending=False), limit, 0)
        places = [one.address for one in found]
        return self._states([_node_id(at.thread, at.namespace, at.id) for at in places])

    def _read_page(
        self, asked: tuple[str, Mapping[str, Any]], limit: int, offset: int
    ) -> list[Checkpoint]:
        rows.check_page(limit, offset)
        text, parameters = asked
        found = self._driver.read(lambda run: run(text, limit=limit, offset=offset, **parameters))
        return [_to_checkpoint(row["checkpoint"]) for row in found]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Read back from a checkpoint's parent to where each channel has a value."""
        at = _node_id(address.thread, address.namespace, address.id)
        return self._driver.read(lambda run: _steps(run, at, set(channels)))

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""
        if threads:
            self._driver.write(
                lambda run: run(checkpoint_queries.REMOVE, threads=sorted(set(threads)))
            )

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints of these runs, and what only those need."""

        def work(run: RunQuery) -> None:
            found = run(checkpoint_queries.OF_RUNS, runs=sorted(set(runs)))
            for thread in sorted(row["thread"] for row in found):
                _keep(run, thread, partial(without_runs, runs=runs))

        if runs:
            self._driver.write(work)

    def copy(self, source: str, target: str) -> None:
        """Copy a whole thread to another, with its owner."""

        def work(run: RunQuery) -> None:
            found = run(checkpoint_queries.LOCK_EXISTING, thread=source)
            if found and source != target:
                owner = _owner_of(found[0]["owner"])
                parameters = {
                    "source": source,
                    "source_prefix": _id_prefix(source),
                    "prefix": _id_prefix(target),
                }
                _run_as(run, checkpoint_queries.COPY, target, owner, parameters)

        self._driver.write(work)

    def prune(self, threads: Collection[str]) -> None:
        """Keep the latest checkpoint of each namespace, and those that it takes channels from."""

        def work(run: RunQuery) -> None:
            for thread in sorted(set(threads)):
                _keep(run, thread, latest)

        self._driver.write(work)

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; return the rows removed, by table.

        Many threads take several transactions.
        """
        owned = queries.fill(checkpoint_queries.OWNED, covered=_covered(scope))
        parameters = queries.scope_parameters(scope)

        def work(run: RunQuery) -> dict[str, int]:
            found = [row["id"] for row in run(owned, limit=_BATCH, **parameters)]
            return dict(run(checkpoint_queries.REMOVE, threads=found)[0])

        removed: Counter[str] = Counter()
        while True:
            batch = self._driver.write(work)
            removed.update(batch)
            if batch["threads"] < _BATCH:
                return dict(removed)

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""
        text = queries.fill(checkpoint_queries.COUNT, covered=_covered(scope))
        parameters = queries.scope_parameters(scope)
        return dict(self._driver.read(lambda run: run(text, **parameters))[0])

    def close(self) -> None:
        """Close the driver; repeating it does nothing."""
        self._driver.close()

    def _states(self, ids: Sequence[str]) -> list[State]:
        """Read the states with these ids, in their order, leaving out missing ones."""
        if not ids:
            return []
        found = self._driver.read(lambda run: run(checkpoint_queries.STATES, ids=ids))
        by_id = {row["checkpoint"]["id"]: _to_state(row) for row in found}
        return [by_id[id_] for id_ in ids if id_ in by_id]


def _run_as(
    run: RunQuery, text: str, thread: str, owner: Scope | None, parameters: Mapping[str, Any]
) -> None:
    """Change a thread; raise, which rolls that back, if it belongs to another owner."""
    properties = {} if owner is None else _owner_properties(owner)
    [found] = run(text, thread=thread, owner=properties, **parameters)
    resolve_owner(thread, _owner_of(found["owner"]), owner)


def _steps(run: RunQuery, at: str, missing: set[str]) -> list[Step]:
    text = queries.fill(checkpoint_queries.STEPS, limit=str(_BATCH))
    found: list[Step] = []
    batch: list[dict[str, Any]] = [{"id": at}]
    seen = {at}  # parents are user data: they might form a cycle
    while missing and batch:
        batch = run(text, id=batch[-1]["id"], channels=sorted(missing))
        for row in batch:
            if not missing or row["id"] in seen:
                return found
            seen.add(row["id"])
            step = _to_step(row, missing)
            found.append(step)
            missing = missing - set(step.values)
    return found


def _keep(run: RunQuery, thread: str, choose: Choose) -> None:
    """Remove the checkpoints that are not chosen, and the thread if nothing is left of it."""
    run(checkpoint_queries.LOCK_EXISTING, thread=thread)
    [found] = run(checkpoint_queries.LOAD, thread=thread)
    headers = list(map(_to_header, found["headers"]))
    values: set[ChannelVersion] = {
        (space, name, version) for space, name, version in found["values"]
    }
    kept = choose(headers, values)
    run(
        checkpoint_queries.KEEP,
        removed=[_node_id(thread, *header.key) for header in headers if header.key not in kept],
        unused=[_node_id(thread, *key) for key in sorted(values - referenced(headers, kept))],
    )
    run(checkpoint_queries.DROP_EMPTY, thread=thread)


def _covered(scope: Scope) -> str:
    covered = queries.covered(scope, "t")
    if scope.owner == scope:
        return covered
    # A thread whose owner is in no session is the session that its id names.
    of_owner = queries.covered(scope.owner, "t")
    return f"({covered}) OR ({of_owner} AND t.session_id IS NULL AND t.id = $session_id)"


def _owner_of(owner: Mapping[str, Any]) -> Scope | None:
    """Read the owner of a thread; None if it has none."""
    ids = (owner.get("user_id"), owner.get("agent_id"), owner.get("session_id"))
    return rows.to_scope(*ids) if any(ids) else None


def _to_checkpoint(node: Mapping[str, Any]) -> Checkpoint:
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


def _to_header(node: Mapping[str, Any]) -> CheckpointHeader:
    return CheckpointHeader(
        namespace=node["namespace"],
        id=node["name"],
        parent=node.get("parent"),
        run=node.get("run"),
        within=_pair(node.get("within")),
        deltas=node["deltas"],
        versions=json.loads(node["versions"]),
    )


def _to_state(found: Mapping[str, Any]) -> State:
    """Convert a row of `STATES`."""
    return State(
        checkpoint=_to_checkpoint(found["checkpoint"]),
        values={node["channel"]: _blob(node) for node in found["values"]},
        writes=_writes(found),
        owner=_owner_of(found["owners"][0]) if found["owners"] else None,
    )


def _to_step(found: Mapping[str, Any], channels: Collection[str]) -> Step:
    """Convert a row of `STEPS` to a step of these channels."""
    return Step(
        values={
            node["channel"]: _blob(node) for node in found["values"] if node["channel"] in channels
        },
        writes=tuple(write for write in _writes(found) if write.channel in channels),
    )


def _page(
    selection: Selection, after: Address | None, *, is_ascending: bool
) -> tuple[str, dict[str, Any]]:
    """Build the text that reads a page by the index that fits, with its parameters."""
    is_given = (selection.thread is not None, selection.namespace is not None)
    columns = _PAGE_COLUMNS.get(is_given, _ALL_COLUMNS)
    given = {name: getattr(selection, name) for name in _CONDITIONS}
    parameters = {name: value for name, value in given.items() if value is not None}
    conditions = [_CONDITIONS[name] for name in parameters]
    # Or the index would not be used.
    conditions += [f"c.{column} IS NOT NULL" for column in columns]
    if after is not None:
        above, below = checkpoint_queries.ABOVE, checkpoint_queries.BELOW
        conditions.append(above if is_ascending else below)
        parameters |= {f"after_{name}": value for name, value in asdict(after).items()}
    text = queries.fill(
        checkpoint_queries.PAGE,
        columns=", ".join(columns),
        conditions=" AND ".join(conditions),
        order=", ".join(f"c.{column} {'ASC' if is_ascending else 'DESC'}" for column in columns),
    )
    return text, parameters


def _writes(found: Mapping[str, Any]) -> tuple[TaskWrite, ...]:
    writes = [
        TaskWrite(
            task=node["task"],
            path=node["path"],
            index=node["number"],
            channel=node["channel"],
            value=_blob(node),
        )
        for node in found["writes"]
    ]
    return tuple(sorted(writes, key=lambda write: write.order))


def _blob(node: Mapping[str, Any]) -> Blob:
    return Blob(type=node["type"], data=bytes(node["data"]))


def _pair(value: Any) -> tuple[str, str] | None:
    return (value[0], value[1]) if value else None


def _id_prefix(thread: str) -> str:
    """Build the prefix of the ids of all nodes of a thread; plain ASCII."""
    return f"{json.dumps(thread)}/"


def _node_id(thread: str, *rest: str) -> str:
    """Build the unique id of a node of a thread."""
    return _id_prefix(thread) + json.dumps(rest)


def _to_node(checkpoint: Checkpoint) -> dict[str, Any]:
    thread, namespace = checkpoint.address.thread, checkpoint.address.namespace
    return {
        "id": _node_id(thread, namespace, checkpoint.address.id),
        "thread": thread,
        "namespace": namespace,
        "name": checkpoint.address.id,
        "parent": checkpoint.parent,
        "run": checkpoint.run,
        "within": list(checkpoint.within) if checkpoint.within else None,
        "deltas": list(checkpoint.deltas),
        "versions": rows.to_json(checkpoint.versions),
        "values": [_node_id(thread, namespace, *pair) for pair in checkpoint.versions.items()],
        "body_type": checkpoint.body.type,
        "body": checkpoint.body.data,
        "metadata_type": checkpoint.metadata.type,
        "metadata": checkpoint.metadata.data,
    }


def _value_node(at: Address, name: tuple[str, str], blob: Blob) -> dict[str, Any]:
    channel, version = name
    return {
        "id": _node_id(at.thread, at.namespace, *name),
        "thread": at.thread,
        "namespace": at.namespace,
        "channel": channel,
        "version": version,
        "type": blob.type,
        "data": blob.data,
    }


def _write_node(at: Address, write: TaskWrite) -> dict[str, Any]:
    return {
        "id": _node_id(at.thread, at.namespace, at.id, write.task, str(write.index)),
        "thread": at.thread,
        "checkpoint": _node_id(at.thread, at.namespace, at.id),
        "task": write.task,
        "path": write.path,
        "number": write.index,
        "channel": write.channel,
        "type": write.value.type,
        "data": write.value.data,
    }


def _owner_properties(owner: Scope) -> dict[str, Any]:
    ids = {"user_id": owner.user_id, "agent_id": owner.agent_id, "session_id": owner.session_id}
    return {"partition": owner.partition, **ids}
