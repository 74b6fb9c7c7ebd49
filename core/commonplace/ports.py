"""Every interface between the pipeline, the engines and the caller's models.

Storage ports are synchronous and thread-safe; each method may be called from any thread. All raise
`StoreUnavailable` for what may pass, `StoreRefused` for what an operator must mend, and other
`CommonplaceError`s for what nobody can. A method that touches a store takes a `Scope`, or things
that carry one.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from .answers import DeadLetter, Page
from .checkpoints import Address, Blob, Checkpoint, Selection, State, Step, TaskWrite
from .exchange import Backlog, Erased, Hit, Op, Outcome, Point, Probe, Put, Reached, Remove
from .filters import Filter
from .kept import Kept
from .model import Entity, Kind, Record, Relation, Scope, Version


@runtime_checkable
class VectorIndex(Protocol):
    """Finds. Derived from the graph store, can be rebuilt from it."""

    def search(self, probe: Probe, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms.

        Every hit has both scores, whichever list it came from. Best dense first; ties by id.
        Empty list if nothing matches.
        """

    def score(self, probe: Probe, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records at these places of their sessions (`Record.turn`), or with these ids.

        What the probe's scope, filter or time hides is left out; the unknown is ignored.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points; one with an id that is there replaces it if its version is greater.

        An older or equal version is ignored.

        Raises:
            InvalidVector: a vector is not finite, is zero or has the wrong length; nothing of
                the call is written then.
        """

    def amend(self, records: Sequence[Record]) -> None:
        """Replace what is held of these records, but for their text, vectors and terms.

        A record that is not there, or is there with a greater version, is ignored.
        """

    def vectors(self, records: Sequence[Record]) -> "dict[str, Sequence[float]]":
        """Read the vectors of these records, where they are held with the same text."""

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these where the scope covers them, those above `version` excepted, if any.

        No scope is an operator's, for records that no store knows to be somebody's.
        """

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove what the scope covers, what is above `version` excepted; count what went."""

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, hidden ones included."""

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of every record that the scope covers, in no order.

        None is an operator's, for all.
        """

    def flush(self) -> None:
        """Return when everything written before survives a power loss."""

    def close(self) -> None:
        """Flush and let go of files and connections; repeating it does nothing."""


@runtime_checkable
class GraphStore(Protocol):
    """Knows: records, versions, entities, relations. The record of truth."""

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each.

        A change is ignored (`NONE`) when its version is not above that of the stored record, its
        tombstone, or an erasure that covers it, unless it is the very change that was stored.
        After each, the claims of every single-valued relation are settled (`slots.settle`) among
        the records of one owner (`Scope.owner`).
        """

    def get(self, scope: Scope, ids: Sequence[str], *, expired: bool = False) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others.

        What has expired is left out, here and in `page`, unless it is asked for.
        """

    def page(
        self,
        scope: Scope,
        *,
        where: Filter | None = None,
        limit: int = 100,
        cursor: str | None = None,
        kinds: Collection[Kind] = (),
        latest_only: bool = False,
        as_of: datetime | None = None,
        expired: bool = False,
    ) -> Page:
        """Read live records, newest first (creation, then id); see `Record.holds`.

        Args:
            kinds: only these; empty for all.
        """

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""

    def owner(self, record_id: str) -> Scope | None:
        """Tell whose record an id is, live or deleted; None if there never was one.

        For interfaces that know nothing but the id: what they read next takes this scope.
        """

    def scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""

    def relations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        latest_only: bool = True,
        as_of: datetime | None = None,
    ) -> list[Relation]:
        """Read relations of records that the scope covers, by age.

        Args:
            entity: only its own, and those of entities at most `hops` - 1 relations away; of all
                when None.
            records: instead, only what records with these ids state; None asks for no such.
            latest_only: leave out those that ended or expired.
            as_of: instead, those that held at this moment of world time and have not expired.
        """

    def reach(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Reached]:
        """Find records by the entities that these names may mean, over at most two relations.

        Args:
            names: in the form in which names are compared (`model.fold`); most are no names.
            at: relations that ended before are not crossed.

        Returns:
            Each record once, at most 200, heaviest first; an empty list if nothing is named.
        """

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""

    def recalled(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Remember that live records which the scope covers were recalled; the last 20 times."""

    def recalls(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were recalled, newest first; never is missing."""

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history too.

        Later changes with a version up to `version` are refused. An engine may take several
        transactions; the first already refuses them, and repeating the call goes on.
        """

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the same tables, tombstones included."""

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Walk over the (id, version) of what the index should have of the scope, in no order.

        That is every live record, unless it is not to be `indexed`. None is an operator's, for all.
        """

    def dump(self, since: str = "") -> Iterator[Kept]:
        """Read everything, an operator's look: fences, then lane by lane in their order.

        In a lane sessions come first by key, entities and relations by age, and records last:
        tombstones, then the live, by creation and id. Equal stores are read alike.

        Args:
            since: leave out the lanes before this one (`Scope.lane`), so as to go on.
        """

    def load(self, kept: Sequence[Kept]) -> None:
        """Take over in one transaction what another store kept, in the order in which it came.

        The store then answers every read, and meets every later change, as the other would.
        Repeating it changes nothing; what is newer here, is deleted or was erased stays so.
        """

    def get_meta(self, key: str) -> str | None:
        """Read what was noted about the whole store; None when it never was."""

    def set_meta(self, key: str, value: str) -> None:
        """Note something about the whole store; noting it again replaces it."""

    def close(self) -> None:
        """Let go of files and connections; repeating it does nothing."""


@runtime_checkable
class Journal(Protocol):
    """Never forgets an accepted change until every store has it."""

    def append(self, ops: Sequence[Op], *, max_pending: int) -> list[Op]:
        """Accept changes in one transaction, durably, giving each its `seq` and `version`.

        One whose id is pending already is answered with the row that is there.

        Raises:
            Backpressure: more than `max_pending` would wait; nothing was accepted.
        """

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Freeze plans by `seq`, durably; one that is frozen already stays."""

    def pending(self, lane: str | None = None, *, limit: int = 1000) -> list[Op]:
        """Read changes not yet applied nor dead, of one lane or all, in order of `seq`."""

    def unflushed(self) -> list[Op]:
        """Read applied changes that are not yet pruned, in order of `seq`."""

    def done(self, seqs: Collection[int]) -> None:
        """Mark changes as applied to every store."""

    def prune(self, seqs: Collection[int]) -> int:
        """Drop those of these changes that are marked as applied; answer how many."""

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; answer how many there are."""

    def bury(self, seq: int, reason: str) -> None:
        """Move a change to the dead letters."""

    def dead(self, scope: Scope | None = None) -> list[DeadLetter]:
        """Read dead letters, oldest first, that the scope covers; None for an operator's look."""

    def revive(self, operations: Collection[str]) -> int:
        """Accept dead letters anew, as the newest changes; answer how many.

        Each gets a new `seq` and `version`, or a change since then would stand before it.
        """

    def erase(self, scope: Scope, before: int) -> int:
        """Drop rows of any state that the scope covers with `seq` below `before`."""

    def count(self, scope: Scope | None = None) -> Backlog:
        """Count what waits and what is dead, of a scope or of all."""

    def rows(self, scope: Scope, *, before: int | None = None) -> int:
        """Count rows of any state that the scope covers, with `seq` below `before` if given."""

    def close(self) -> None:
        """Let go of files; repeating it does nothing."""


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
            InvalidRecord: the thread belongs to another owner; here and in `write` and `copy`.
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


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; texts are never empty.

    `id` names the model and what else decides its space; a store remembers it and refuses another.
    """

    @property
    def id(self) -> str:
        """The model's name, with its revision."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> "Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]":
        """Embed texts, one vector each, in their order; write it `async def` if the model is."""


@runtime_checkable
class ChatModel(Protocol):
    """Answers a prompt; used for extraction only."""

    @property
    def id(self) -> str:
        """The model's name."""

    def complete(
        self, system: str, user: str, *, schema: Mapping[str, Any]
    ) -> "str | Awaitable[str]":
        """Answer with JSON text that should fit `schema`; write it `async def` if the model is."""


Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines that one memory stands on; `shared` when others write to both meanwhile."""

    index: VectorIndex
    graph: GraphStore
    journal: Journal
    checkpoints: Checkpoints
    shared: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
