"""Storage ports (vector index, graph store, journal) and the data types that they exchange.

Storage ports are synchronous and thread-safe; each method may be called from any thread. All raise
`StoreUnavailableError` for a temporary failure, `StoreRefusedError` for one that an operator must
fix, and other `CommonplaceError`s for a permanent one. A method that touches a store takes a
`Scope`, or things that carry one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from ..filters import Filter
from ..model import (
    Backlog,
    Change,
    DeadLetter,
    Entity,
    Kind,
    Page,
    Record,
    Relation,
    Scope,
    Version,
)
from .checkpoints import Checkpoints
from .snapshot import SnapshotRow

OperationKind = Literal["add", "update", "delete", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A sparse vector: hashed terms with their weights, equally long, indices ascending and unique.

    Attributes:
        indices: unsigned 32-bit numbers.
        weights: positive; the engine multiplies each with the term's rarity in the scope, which
            is `ln(1 + (N - n + 0.5) / (n + 0.5))` for N records of which n have the term.
    """

    indices: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record as an index holds it; its times come back as the same moments, in UTC.

    Attributes:
        vector: `dimensions` finite floats of unit length.
        terms: of the record's indexed text.
        words: the text's length in words, for the weights of conversational reading.
    """

    record: Record
    vector: Sequence[float]
    terms: Terms
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search as an index reads it.

    Attributes:
        scope: only records that it covers.
        vector: unit length. terms: weights are repetitions in the question.
        at: the moment for which expiry is judged; records with `expires_at <= at` are hidden.
        where: AND-ed with the scope.
        kinds: only these; empty for all.
        include_superseded, include_expired, as_of: what is hidden because it is not true, as
            `Record.holds` says.
    """

    scope: Scope
    vector: Sequence[float]
    terms: Terms
    at: datetime
    where: Filter | None = None
    kinds: tuple[Kind, ...] = ()
    include_superseded: bool = False
    include_expired: bool = False
    as_of: datetime | None = None

    def shows(self, record: Record) -> bool:
        """Judge a record; engines that ask more generously ask this at the end."""
        return (
            self.scope.covers(record.scope)
            and record.holds(
                self.at,
                as_of=self.as_of,
                include_superseded=self.include_superseded,
                include_expired=self.include_expired,
            )
            and (not self.kinds or record.kind in self.kinds)
            and (self.where is None or self.where.matches(record))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A record with both raw scores: `dense` the cosine, `lexical` the weighted term product."""

    record: Record
    dense: float
    lexical: float
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write a record.

    Attributes:
        record: its `version` is the operation's; `position` is given out by the store.
        relations: that this record states; they replace those that it stated before, which
            expire. None leaves them as they are.
        replace: False adds: a live record with this id stays as it is and the change is `NONE`;
            one that has expired when the new one is made is replaced and the change is `ADD`.
            True updates: what is not live stays dead and is `NONE`, or with `upsert` is added.
        in_session: give the record the next position of its session.
        fields: of the record that an update sets; the others stay as stored. `votes` are added.
        merge: the metadata is added to what is stored.
    """

    record: Record
    relations: tuple[Relation, ...] | None = ()
    replace: bool = False
    upsert: bool = False
    in_session: bool = False
    fields: tuple[str, ...] = ()
    merge: bool = False

    @property
    def is_told(self) -> bool:
        """Its text may be new to the index."""
        keeps = self.replace and not self.upsert and not {"text", "situation"} & {*self.fields}
        return self.record.indexed and not keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete a record that the scope covers; its history stays until the scope is erased.

    Attributes:
        spare_pinned: leave one that is pinned by then.
    """

    id: str
    scope: Scope
    version: int
    at: datetime
    spare_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a `Put` or `Remove` did.

    Applying the same change again answers as the first time did, but for later changes.

    Attributes:
        record: the live state afterwards, None when there is none.
        touched: other records that the change ended, opened again or contradicted, as they are
            now; of a repeated change there may be more. Their version stays.
    """

    change: Change
    record: Record | None
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure did in a graph store.

    Attributes:
        removed: rows, by table: `records`, `versions`, `relations`, `entities`.
        touched: records outside the scope that it opened again, as they are now; of a repeated
            erasure there may be more.
    """

    removed: Mapping[str, int]
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A record that states a relation near what a question names.

    Attributes:
        hops: 1 when the relation is one of a named entity, 2 when of one next to it.
        weight: 0..1; less the more relations the entities on the way have.
        via: ids of the records that state the relation crossed before; empty for the first hop.
    """

    id: str
    hops: int
    weight: float
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An accepted change.

    Attributes:
        id: equal for a repeated write.
        body: what the caller gave, JSON.
        seq: the order of acceptance; 0 before.
        version: the fence, milliseconds since 2020 shifted by 11 bits plus a counter; grows with
            `seq`; below 2**53. Before acceptance, what it must exceed.
        plan: frozen results of the models, None before planning.
        attempts: failed ones so far.
    """

    id: str
    kind: OperationKind
    scope: Scope
    body: str
    seq: int = 0
    version: int = 0
    plan: bytes | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AskVectors:
    """A planning step wants vectors for these texts; the answer is one per text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChat:
    """A planning step wants a chat model's answer; the answer is text, or None if it failed."""

    system: str
    user: str
    schema: Mapping[str, Any]


Ask = AskVectors | AskChat


@runtime_checkable
class VectorIndex(Protocol):
    """Finds. Derived from the graph store, can be rebuilt from it."""

    def search(self, probe: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms.

        Every hit has both scores, whichever list it came from. Best dense first; ties by id.
        Empty list if nothing matches.
        """

    def score(self, probe: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records at these places of their sessions (`Record.turn`), or with these ids.

        What the probe's scope, filter or time hides is left out; the unknown is ignored.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points; one with an id that is there replaces it if its version is greater.

        An older or equal version is ignored.

        Raises:
            InvalidVectorError: a vector is not finite, is zero or has the wrong length; nothing of
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

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
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
        include_superseded: bool = True,
        as_of: datetime | None = None,
        include_expired: bool = False,
    ) -> Page:
        """Read live records, newest first (creation, then id); see `Record.holds`.

        Args:
            kinds: only these; empty for all.
        """

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""

    def scope_of(self, record_id: str) -> Scope | None:
        """Tell whose record an id is, live or deleted; None if there never was one.

        For interfaces that know nothing but the id: what they read next takes this scope.
        """

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, in no order."""

    def relations(
        self,
        scope: Scope,
        entity: str | None = None,
        *,
        hops: int = 1,
        records: Collection[str] | None = None,
        include_superseded: bool = False,
        as_of: datetime | None = None,
    ) -> list[Relation]:
        """Read relations of records that the scope covers, by age.

        Args:
            entity: only its own, and those of entities at most `hops` - 1 relations away; of all
                when None.
            records: instead, only what records with these ids state; None asks for no such.
            include_superseded: also those that ended or expired.
            as_of: instead, those that held at this moment of world time and have not expired.
        """

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations.

        Args:
            names: in the form in which names are compared (`model.fold`); most are no names.
            at: relations that ended before are not crossed.

        Returns:
            Each record once, at most 200, heaviest first; an empty list if nothing is named.
        """

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities that those relations name, by name."""

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Remember that live records which the scope covers were recalled; the last 20 times."""

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
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

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything, an operator's look: fences, then partition by partition in their order.

        In a partition sessions come first by key, entities and relations by age, and records last:
        tombstones, then the live, by creation and id. Equal stores are read alike.

        Args:
            since: leave out the partitions before this one (`Scope.partition`), so as to go on.
        """

    def load(self, kept: Sequence[SnapshotRow]) -> None:
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

    def append(self, ops: Sequence[Operation], *, max_pending: int) -> list[Operation]:
        """Accept changes in one transaction, durably, giving each its `seq` and `version`.

        One whose id is pending already is answered with the row that is there.

        Raises:
            BackpressureError: more than `max_pending` would wait; nothing was accepted.
        """

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Freeze plans by `seq`, durably; one that is frozen already stays."""

    def pending(self, partition: str | None = None, *, limit: int = 1000) -> list[Operation]:
        """Read changes not yet applied nor dead, of one partition or all, in order of `seq`."""

    def unflushed(self) -> list[Operation]:
        """Read applied changes that are not yet pruned, in order of `seq`."""

    def done(self, seqs: Collection[int]) -> None:
        """Mark changes as applied to every store."""

    def prune(self, seqs: Collection[int]) -> int:
        """Drop those of these changes that are marked as applied; answer how many."""

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; answer how many there are."""

    def dead_letter(self, seq: int, reason: str) -> None:
        """Move a change to the dead letters."""

    def dead(self, scope: Scope | None = None) -> list[DeadLetter]:
        """Read dead letters, oldest first, that the scope covers; None for an operator's look."""

    def retry(self, operations: Collection[str]) -> int:
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


Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines that one memory stands on; `shared` when others write to both meanwhile."""

    index: VectorIndex
    graph: GraphStore
    journal: Journal
    checkpoints: Checkpoints
    shared: bool = False


CRASH_POINTS = (
    "before_journal",
    "after_journal",
    "before_plan",
    "after_plan",
    "before_graph",
    "after_graph",
    "after_index",
    "after_done",
    "before_flush",
    "after_flush",
    "after_prune",
)

_crash_hooks: list[Callable[[str], None]] = []


def arm_crash_points(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every crash point passed from now on; None disarms."""
    _crash_hooks[:] = [] if hook is None else [hook]


def crash_point(name: str) -> None:
    """Pass a named point of the write path, at which a test may stop the process."""
    for hook in _crash_hooks:
        hook(name)
