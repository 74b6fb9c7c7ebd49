"""The store of checkpoints on a Neo4j server, which many processes and hosts may share.

A change locks its thread and is one transaction; a state is read in one round trip.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from ..model import Scope
from . import checkpoint_cypher as cypher
from . import checkpoint_nodes as nodes
from . import checkpoint_properties as properties
from . import clauses, lineage, rows
from .bolt import Ask, Bolt

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
        bolt: Bolt | None = None,
        **options: Any,
    ) -> None:
        self._bolt = bolt or Bolt(uri, auth=auth, database=database, prefix=prefix, options=options)

    def put(
        self,
        checkpoint: Checkpoint,
        values: Mapping[tuple[str, str], Blob | None],
        owner: Scope | None,
    ) -> None:
        """Write a checkpoint, or write it anew, with the values that its channels have since."""
        at = checkpoint.address
        given = {
            "row": properties.to_node(checkpoint),
            "before": checkpoint.parent
            and properties.key(at.thread, at.namespace, checkpoint.parent),
            "kept": [properties.value_node(at, key, one) for key, one in values.items() if one],
            "gone": [
                properties.key(at.thread, at.namespace, *key)
                for key, one in values.items()
                if one is None
            ],
        }
        self._own(cypher.PUT, at.thread, owner, given)

    def write(self, address: Address, writes: Sequence[TaskWrite], owner: Scope | None) -> None:
        """Keep what a task wrote beside a checkpoint, which itself may come later."""
        if not writes:
            return
        given = [properties.write_node(address, one) for one in writes]
        parts = {
            "slots": [one for one in given if one["number"] < 0],
            "rows": [one for one in given if one["number"] >= 0],
        }
        self._own(cypher.WRITE, address.thread, owner, parts)

    def read(self, thread: str, namespace: str, id: str | None = None) -> State | None:  # noqa: A002 -- as the port
        """Read one state, the latest when `id` is missing; None if there is none."""
        if id is not None:
            return next(
                iter(self.states([Address(thread=thread, namespace=namespace, id=id)])), None
            )
        given = {"thread": thread, "namespace": namespace}
        found = self._bolt.read(lambda ask: ask(cypher.LATEST, **given))
        return nodes.to_state(found[0]) if found else None

    def page(
        self, asked: Selection, *, limit: int, after: Address | None = None
    ) -> list[Checkpoint]:
        """Read checkpoints, greatest id first, then greatest thread and namespace."""
        rows.check_limit(limit)
        text, given = nodes.page(asked, after)
        found = self._bolt.read(lambda ask: ask(text, limit=limit, **given))
        return [nodes.to_checkpoint(one["checkpoint"]) for one in found]

    def states(self, addresses: Sequence[Address]) -> list[State]:
        """Read the states at these addresses, in their order, leaving out what is not there."""
        ids = [properties.key(one.thread, one.namespace, one.id) for one in addresses]
        found = self._bolt.read(lambda ask: ask(cypher.STATES, ids=ids)) if ids else []
        by_id = {one["checkpoint"]["id"]: nodes.to_state(one) for one in found}
        return [by_id[one] for one in ids if one in by_id]

    def steps(self, address: Address, channels: Collection[str]) -> list[Step]:
        """Walk from a checkpoint's parent back to where each channel has a value."""
        at = properties.key(address.thread, address.namespace, address.id)
        return self._bolt.read(lambda ask: _steps(ask, at, set(channels)))

    def delete(self, threads: Collection[str]) -> None:
        """Remove whole threads."""
        if threads:
            self._bolt.write(lambda ask: ask(cypher.REMOVE, threads=sorted(set(threads))))

    def delete_runs(self, runs: Collection[str]) -> None:
        """Remove the checkpoints that these runs made, and what only they need."""

        def work(ask: Ask) -> None:
            found = ask(cypher.OF_RUNS, runs=sorted(set(runs)))
            for thread in sorted(one["thread"] for one in found):
                heads, values = _load(ask, thread)
                _keep(ask, thread, heads, values, lineage.without(heads, values, runs))

        if runs:
            self._bolt.write(work)

    def copy(self, source: str, target: str) -> None:
        """Copy all of a thread into another, with its owner."""

        def work(ask: Ask) -> None:
            found = ask(cypher.LOCK_THERE, thread=source)
            if found and source != target:
                owner = nodes.to_scope(found[0]["owner"])
                given = {
                    "source": source,
                    "from": properties.beginning(source),
                    "to": properties.beginning(target),
                }
                _ask_as(ask, cypher.COPY, target, owner, given)

        self._bolt.write(work)

    def prune(self, threads: Collection[str]) -> None:
        """Keep of each namespace the latest checkpoint, and those that it takes channels from."""

        def work(ask: Ask) -> None:
            for thread in sorted(set(threads)):
                heads, values = _load(ask, thread)
                _keep(ask, thread, heads, values, lineage.latest(heads, values))

        self._bolt.write(work)

    def erase(self, scope: Scope) -> dict[str, int]:
        """Remove every thread whose owner the scope covers; answer the rows removed, by table.

        Many threads take several transactions.
        """
        owned = clauses.fill(cypher.OWNED, covered=clauses.covered(scope, "t"))
        given = clauses.owner(scope)

        def work(ask: Ask) -> dict[str, int]:
            found = [one["id"] for one in ask(owned, limit=_BATCH, **given)]
            return dict(ask(cypher.REMOVE, threads=found)[0])

        removed: Counter[str] = Counter(dict.fromkeys(_TABLES, 0))
        while True:
            gone = self._bolt.write(work)
            removed.update(gone)
            if gone["threads"] < _BATCH:
                return dict(removed)

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows of the threads whose owner the scope covers, by the same tables."""
        text = clauses.fill(cypher.COUNT, covered=clauses.covered(scope, "t"))
        return dict(self._bolt.read(lambda ask: ask(text, **clauses.owner(scope)))[0])

    def close(self) -> None:
        """Let go of all connections; repeating it does nothing."""
        self._bolt.close()

    def _own(self, text: str, thread: str, owner: Scope | None, given: Mapping[str, Any]) -> None:
        self._bolt.write(lambda ask: _ask_as(ask, text, thread, owner, given))


def _ask_as(
    ask: Ask, text: str, thread: str, owner: Scope | None, given: Mapping[str, Any]
) -> None:
    """Change a thread, and undo that by raising when it belongs to somebody else."""
    parts = {} if owner is None else properties.owner_properties(owner)
    [found] = ask(text, thread=thread, owner=parts, **given)
    lineage.settle_owner(thread, nodes.to_scope(found["owner"]), owner)


def _steps(ask: Ask, at: str, lacking: set[str]) -> list[Step]:
    text = clauses.fill(cypher.STEPS, most=str(_BATCH))
    found: list[Step] = []
    batch: list[dict[str, Any]] = [{"id": at}]
    seen = {at}  # the parents come from outside: they might go in a circle
    while lacking and batch:
        batch = ask(text, id=batch[-1]["id"], channels=sorted(lacking))
        for one in batch:
            if not lacking or one["id"] in seen:
                return found
            seen.add(one["id"])
            step = nodes.to_step(one, lacking)
            found.append(step)
            lacking = lacking - set(step.values)
    return found


def _load(ask: Ask, thread: str) -> tuple[list[lineage.Head], set[lineage.Kept]]:
    """Lock a thread and read its checkpoints without their bytes, and the versions with a value."""
    ask(cypher.LOCK_THERE, thread=thread)
    [found] = ask(cypher.LOAD, thread=thread)
    return [nodes.to_head(one) for one in found["heads"]], {
        (namespace, channel, version) for namespace, channel, version in found["values"]
    }


def _keep(
    ask: Ask,
    thread: str,
    heads: Iterable[lineage.Head],
    values: Collection[lineage.Kept],
    kept: Collection[lineage.Key],
) -> None:
    """Remove what is not kept, and a thread that has nothing left."""
    unused = set(values) - lineage.referenced(heads, kept)
    ask(
        cypher.KEEP,
        gone=[properties.key(thread, *one.key) for one in heads if one.key not in kept],
        unused=[properties.key(thread, *one) for one in sorted(unused)],
    )
    ask(cypher.DROP_EMPTY, thread=thread)
