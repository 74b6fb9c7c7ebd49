"""Storage ports (vector index, graph store, journal) and the data types that they exchange.

Storage ports are synchronous and thread-safe; each method may be called from any thread. All raise
`StoreUnavailableError` for a temporary failure, `StoreRefusedError` for one that an operator must
fix, and another `CommonplaceError` for a permanent one. A method that touches a store takes a
`Scope`, or objects that carry one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from ..dedup_key import identity_of
from ..filters import Filter
from ..types import (
    Backlog,
    Change,
    DeadLetter,
    Entity,
    Kind,
    Namespace,
    Page,
    Record,
    Relation,
    Scope,
    SessionPage,
    TokenEmbedding,
    Version,
)
from .checkpoints import Checkpoints
from .snapshot_rows import SnapshotRow

T = TypeVar("T")
OperationKind = Literal["add", "update", "delete", "restore", "forget", "extract"]
"""An `extract` is an addition of which only the facts are left to be extracted."""
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 11  # of a version, for the changes of one millisecond


def version_at(moment: datetime) -> int:
    """Compute the least version that the journal gives a change at a moment."""
    return (moment - _YEAR_2020) // timedelta(milliseconds=1) << _COUNTER_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A sparse vector: hashed terms and as many weights; indices ascending and unique.

    Attributes:
        indices: unsigned 32-bit numbers.
        weights: positive; the engine multiplies each by the term's rarity in the scope, which is
            `ln(1 + (N - n + 0.5) / (n + 0.5))` for N records of which n have the term.
    """

    indices: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record as an index stores it; its times come back as the same moments, in UTC.

    Attributes:
        vector: `dimensions` finite floats of unit length.
        terms: of the record's indexed text.
        words: length of the text in words, which lexical ranking needs.
        tokens: vectors of the text's tokens, as in `TokenEmbedding`; an index that was made without
            them ignores them.
        following: of a long text, of which `vector` and `tokens` are those of its first passage:
            the same of each further passage. An index that does not know them finds the text by
            its first one.
    """

    record: Record
    vector: Sequence[float]
    terms: Terms
    words: int
    tokens: bytes = b""
    following: tuple[TokenEmbedding, ...] = ()

    @property
    def passages(self) -> tuple[TokenEmbedding, ...]:
        """What is stored of each passage, in their order; a single one for a short text."""
        return (TokenEmbedding(vector=self.vector, tokens=self.tokens), *self.following)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search of an index.

    Attributes:
        scope: only records that it covers.
        vector: unit length. terms: weights are repetitions in the query.
        tokens: vectors of the query's tokens, as in `TokenEmbedding`.
        at: the moment for expiry; records with `expires_at <= at` are left out.
        where: records must match it, too.
        kinds: only these; empty for all.
        include_superseded, include_expired, as_of: which records hold, as in `Record.holds`.
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
    tokens: bytes = b""

    def matches(self, record: Record) -> bool:
        """Check a record; an engine whose conditions are wider than the query does this last."""
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
    """A record with its raw scores: `dense` the cosine, `lexical` the weighted term product.

    A record with several passages is one hit, with the `dense` and `vector` of the one that is
    nearest by its vector, and the `late` of the one with the greatest mean of it.

    Attributes:
        late: the best cosine of each of the query's tokens among the record's, in the order of the
            query's; empty where either has none.
        terms: the record's weight of each of the query's terms, in their order; 0 for one that it
            does not have.
        vector: of the record, in single precision; a sequence or an array, not to be changed.
        passages: the cosine of each passage, in their order; empty if it has one vector.
    """

    record: Record
    dense: float
    lexical: float
    words: int
    late: tuple[float, ...] = ()
    terms: tuple[float, ...] = ()
    vector: Sequence[float] = field(default=(), compare=False, repr=False)
    passages: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Change that adds or updates a record.

    Attributes:
        record: its `version` is the operation's; the store assigns its `position`.
        relations: that this record asserts; they replace its earlier assertions, which expire.
            None leaves those as they are.
        replace: False adds. A stored record that has expired when the new one is made is replaced,
            and the event is `ADD`. A live fact counts as repeated if it has the same text, ignoring
            leading and trailing spaces, and has not ended when the new one begins: what the new one
            adds is merged in (`Record.merged`), relations that the record does not assert yet are
            asserted, and the event is `UPDATE`, or `NONE` if there is nothing new. The repetition
            is counted (`Record.times_told`) if the new record was created later than the last one
            that was counted, so that applying the same change twice counts once; the count alone
            makes no new version. Any other live record, such as a turn, stays as it is and the
            event is `NONE`.
            True updates: without a live record the event is `NONE`, or with `upsert` the record is
            added.
        in_session: give the record the next position of its session.
        fields: of the record that an update sets; the others stay as stored. `votes` are added.
            A time for `valid_to`, without `relations`, ends the record: assertions that would hold
            longer end then, too, and those that begin then or later are retracted. It stays ended
            until an update gives it other relations or another text.
        merge: merge the metadata into the stored metadata.
        identity: metadata keys whose values must be equal, too, for a stored fact to count as
            repeated.
        restores: bring a deleted record back as `GraphStore.deleted` reads it, with the relations
            that it asserted when it was deleted, as the event `RESTORE`; only the text and the
            situation are taken from `record`. If none of this id is deleted, the event is `NONE`.
            Needs `replace`.
    """

    record: Record
    relations: tuple[Relation, ...] | None = ()
    replace: bool = False
    upsert: bool = False
    in_session: bool = False
    fields: tuple[str, ...] = ()
    merge: bool = False
    identity: tuple[str, ...] = ()
    restores: bool = False

    def is_of(self, stored: Record) -> bool:
        """Tell whether a stored record has the same values of the `identity` keys."""
        held = identity_of(stored.metadata, self.identity)
        return held == identity_of(self.record.metadata, self.identity)

    @property
    def ends(self) -> bool:
        """Whether it ends a record and its assertions."""
        has_end = "valid_to" in self.fields and self.record.valid_to is not None
        return self.replace and self.relations is None and has_end

    @property
    def needs_embedding(self) -> bool:
        """Whether its indexed text may be new to the index."""
        keeps_text = self.replace and not self.upsert and not {"text", "situation"} & {*self.fields}
        return self.record.indexed and not keeps_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Change that deletes a record which the scope covers; its history stays until an erasure.

    Attributes:
        spare_pinned: keep a record that is pinned by then.
    """

    id: str
    scope: Scope
    version: int
    at: datetime
    spare_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a `Put` or `Remove`; the same change applied again has the same result.

    Attributes:
        record: the live record afterwards, as later changes left it; None if there is none.
        touched: other records that the change ended, reopened or contradicted, in their present
            state; a repeated change may list more. Their version stays the same.
    """

    change: Change
    record: Record | None
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Result of an erasure in a graph store.

    Attributes:
        removed: numbers of rows, by table: `records`, `versions`, `relations`, `entities`.
        touched: records outside the scope that it reopened, in their present state; a repeated
            erasure may list more.
    """

    removed: Mapping[str, int]
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A record that asserts a relation of a named entity, or of an entity next to one.

    Attributes:
        hops: 1 if the relation is one of a named entity, 2 if of an entity next to it.
        weight: 0..1; the lower, the more relations the entities on the path have.
        via: ids of the records that assert the first relation of the path; empty for one hop.
        named: for each relation of the path, 0..1, how well the names fit it: its type, or both of
            its ends. 0 for one of which they name a single end.
        relations: number of relations that the named entity has now; of one that everything is
            told of, they say little.
    """

    id: str
    hops: int
    weight: float
    via: tuple[str, ...] = ()
    named: tuple[float, ...] = ()
    relations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An accepted write.

    Attributes:
        id: equal for a repeated write.
        body: the caller's input as JSON; empty before acceptance.
        seq: order of acceptance; 0 before acceptance.
        version: milliseconds since 2020, shifted by 11 bits, plus a counter; grows with `seq`;
            below 2**53. Before acceptance, a version that it must exceed.
        plan: the chat model's answer, stored because a model does not repeat itself; None before
            that, and where no chat model is asked.
        attempts: number of failed ones so far.
        elsewhere: another living process works on it.
    """

    id: str
    kind: OperationKind
    scope: Scope
    body: str = ""
    seq: int = 0
    version: int = 0
    plan: bytes | None = None
    attempts: int = 0
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskVectors:
    """Request of a planning step for vectors; the reply is a `TokenEmbedding` per text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskKnown:
    """Request of a planning step for the known facts that are nearest to a text.

    Attributes:
        text: what the user said.
        scope: of the facts to be extracted. The reply has only records that it covers, of the same
            owner (`Scope.owner`).
        at: the moment at which they must hold.
        metadata: of the facts to be extracted.
        identity: metadata keys whose values the records must have, too.
    """

    text: str
    scope: Scope
    at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    identity: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFacts:
    """Reply to `AskKnown`; empty where no chat model would read it.

    Attributes:
        records: of any kind but `episode`, nearest first.
        relations: that these records assert, those of the nearest record first.
    """

    records: tuple[Record, ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChat:
    """Request of a planning step to a chat model; the reply is its text or a `ModelFailedError`."""

    system: str
    user: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPlan:
    """Request of a planning step to store a plan in the journal before it goes on; no reply."""

    plan: bytes


@runtime_checkable
class VectorIndex(Protocol):
    """Index that finds records by vector and by terms; can be rebuilt from the graph store."""

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms.

        Where the index has tokens, and the scope is small enough for them to cost little, half as
        many that are best by the mean of `late` are added. Every hit has all scores, whichever list
        it came from. Best dense first; ties by id. Empty list if nothing matches.

        Raises:
            InvalidVectorError: the query's vector is not finite, is zero or has the wrong length;
                `score` raises it, too.
        """

    def score(self, query: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records of these turns (`Record.turn`) and those with these ids.

        Best dense first; ties by id. Only records that match the query; unknown turns and ids are
        ignored. Empty list if nothing is left.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points; one replaces the stored point of its id if its version is greater.

        An older or equal version is ignored, so repeating the call changes nothing.

        Raises:
            InvalidVectorError: a vector is not finite, is zero or has the wrong length; nothing of
                the call is written then.
        """

    def amend(self, records: Sequence[Record]) -> None:
        """Replace what is stored of these records, except their text, vectors and terms.

        A record that is not stored, or is stored with a greater version, is ignored.
        """

    def vectors(self, records: Sequence[Record]) -> dict[str, TokenEmbedding]:
        """Read the vectors of these records by id, where they are stored with the same text.

        The tokens are included where the index has any.
        """

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them; unknown ids are ignored.

        Args:
            scope: None for maintenance, to remove records that are in no graph store.
            version: keep records with a greater version; None keeps none.
        """

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove all that the scope covers; return how many records that were.

        Args:
            version: keep records with a greater version; None keeps none.
        """

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, superseded and expired ones included."""

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of every record that the scope covers, in no order.

        Args:
            scope: None for maintenance, to read those of all owners.
        """

    def flush(self) -> None:
        """Return when all earlier writes are safe from power loss."""

    def close(self) -> None:
        """Flush, and release files and connections; repeating it does nothing.

        Every other method raises `MemoryClosedError` from then on, here and in the other ports.
        """


@runtime_checkable
class GraphStore(Protocol):
    """Store of records, versions, entities and relations: the source of truth."""

    def apply(self, changes: Sequence[Put | Remove]) -> list[Outcome]:
        """Apply changes in one transaction, in order; one outcome each, in the same order.

        A change is ignored (`NONE`) when its version is not above that of the stored record, its
        tombstone, or an erasure that covers it, unless it is the very change that was stored. After
        each, supersession of every single-valued relation is resolved among the records of one
        owner (`Scope.owner`): a later assertion ends the earlier ones.
        """

    def get(
        self, scope: Scope, ids: Sequence[str], *, include_expired: bool = False
    ) -> list[Record]:
        """Read live records that the scope covers, in the order of `ids`, leaving out others.

        Args:
            include_expired: also records that have expired; the same in `page`.
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

        Each record is on one page only, even if others are written meanwhile. The last page, which
        may be empty, has no cursor.

        Args:
            limit: 1 to 1000.
            cursor: `Page.cursor` of the page before; None for the first page.
            kinds: only these; empty for all.

        Raises:
            InvalidRecordError: the limit or the cursor is not valid.
        """

    def turns(self, scope: Scope, *, limit: int, before: str | None = None) -> list[Record]:
        """Read the last turns that hold, in the order in which they were stored.

        Args:
            limit: 1 to 1000.
            before: id of a record, live or deleted, that the scope covers: only turns before it.
                One that the scope does not cover comes after nothing.

        Raises:
            InvalidRecordError: the limit is not valid; in `sessions` the limit or the cursor.
        """

    def sessions(self, scope: Scope, *, limit: int = 100, cursor: str | None = None) -> SessionPage:
        """Read the sessions that the scope covers, by their last turn, newest first, then by key.

        A session is listed from its first turn on until it is erased. One that gets another turn
        meanwhile moves to the front. Costs as many rows as it returns.

        Args:
            limit: 1 to 1000.
            cursor: `SessionPage.cursor` of the page before; None for the first page.

        Returns:
            Without their summaries.
        """

    def history(self, scope: Scope, record_id: str) -> list[Version]:
        """Read every version of a record, oldest first; empty list if there is none."""

    def deleted(self, scope: Scope, record_id: str) -> Record | None:
        """Read a deleted record as it was last live; None if none with this id is deleted.

        Its version and `updated_at` are those of the deletion, and it has no conflicts.
        """

    def scope_of(self, record_id: str) -> Scope | None:
        """Read the scope of a record, live or deleted; None if there never was one.

        For interfaces that are given only the id: their next read uses this scope.
        """

    def list_scopes(self) -> list[Scope]:
        """List every scope that has records, live or deleted, each once, in no order."""

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
        """Read relations of records that the scope covers, by age; empty list if there are none.

        Args:
            entity: only its own, and those of entities at most `hops` - 1 relations away; None
                reads all.
            records: instead, only relations that records with these ids assert; None for no
                such restriction.
            include_superseded: also relations that ended or expired.
            as_of: instead, relations that held at this moment of world time and have not expired.
        """

    def expand(self, scope: Scope, names: Sequence[str], at: datetime) -> list[Expansion]:
        """Find records by the entities that these names may mean, over at most two relations.

        Args:
            names: folded (`types.fold`), as names are compared; most of them name nothing.
            at: relations that ended before are not crossed.

        Returns:
            Each record once, at most 200, heaviest first; empty list if no entity is named.
        """

    def entities(self, scope: Scope) -> list[Entity]:
        """Read the entities of the relations that have not expired, each name once, by name."""

    def namespaces(self, scope: Scope) -> list[Namespace]:
        """List the namespaces of live records that have not expired, each once, in no order."""

    def list_namespaces(
        self, prefix: Namespace = (), *, after: Namespace = (), limit: int = 1000
    ) -> dict[Namespace, list[Scope]]:
        """List the namespaces of live records that have not expired, of all owners.

        Args:
            prefix: only this namespace and those below it; empty for all.
            after: only namespaces that come after it.
            limit: of namespaces, 1..1000.

        Returns:
            For each namespace the scopes of its records, which are in no order. Namespaces are in
            the order of tuples of strings.
        """

    def list_users(self, namespace: Namespace = ()) -> list[str]:
        """List the users who have live records, expired or not, in a namespace, in no order.

        Args:
            namespace: or below it; empty for any namespace.
        """

    def outdated_turns(
        self, scope: Scope, turns: Collection[str], at: datetime
    ) -> dict[str, datetime]:
        """Find those of these turns of which no fact that was drawn from them holds any more.

        A fact (`Record.sources`), which a summary is not, holds no more when it was superseded by
        `at`, is deleted, or when an update after the turn gave it another text.

        Args:
            turns: ids of records; others than turns that the scope covers are ignored.

        Returns:
            The latest of the moments at which a turn's facts ended. A turn from which no fact was
            drawn that the scope covers, or of which one holds, is left out.
        """

    def log_access(self, scope: Scope, ids: Collection[str], at: datetime) -> None:
        """Log an access to live records that the scope covers; the last 20 of each are kept.

        Unknown ids are ignored; logging the same moment again changes nothing.
        """

    def access_log(self, scope: Scope, ids: Collection[str]) -> dict[str, list[datetime]]:
        """Read when records that the scope covers were accessed, newest first.

        A record that never was accessed has no entry.
        """

    def erase(self, scope: Scope, version: int) -> Erased:
        """Remove all that the scope covers up to `version`, tombstones and history included.

        Later changes with a version up to `version` are refused. An engine may use several
        transactions; the first already refuses such changes, and repeating the call resumes.
        """

    def count(self, scope: Scope) -> dict[str, int]:
        """Count the rows that the scope covers, by the tables of `Erased`, tombstones included."""

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of what the index should have of the scope, in no order.

        These are the live records with `indexed`.

        Args:
            scope: None for maintenance, to read those of all owners.
        """

    def dump(self, since: str = "") -> Iterator[SnapshotRow]:
        """Read everything, for maintenance: fences, then partition by partition in their order.

        In a partition sessions come first by key, entities and relations by age, and records last:
        tombstones, then live records, by creation and id. Equal stores have equal dumps.

        Args:
            since: leave out the partitions before this one (`Scope.partition`), to resume.
        """

    def load(self, rows: Sequence[SnapshotRow]) -> None:
        """Load rows of another store's `dump` in one transaction, in the order in which they came.

        The store then answers every read, and applies every later change, as the other would.
        Repeating it changes nothing; what is newer, deleted or erased in this store stays so.
        """

    def get_meta(self, key: str) -> str | None:
        """Read a value that describes the whole store; None if it was never set."""

    def set_meta(self, key: str, value: str) -> None:
        """Write a value that describes the whole store; setting it again replaces it."""

    def close(self) -> None:
        """Release files and connections; repeating it does nothing."""


@runtime_checkable
class Journal(Protocol):
    """Write-ahead journal: keeps an accepted operation until every store has it.

    Several processes may use one journal. Each works on what it accepted itself, and on what
    processes that ended have left (`take_over`).
    """

    def append(self, operations: Sequence[Operation], *, max_pending: int) -> list[Operation]:
        """Accept operations in one transaction, durably, and give each its `seq` and `version`.

        Returns one each, in order; for an id that is already here and not dead, the stored one.

        Raises:
            BackpressureError: more than `max_pending` would be pending; nothing was accepted.
        """

    def stamp(self, operations: Sequence[Operation]) -> list[Operation]:
        """Give operations a version without storing them: their caller applies them at once.

        Each version is greater than those of all operations that were accepted or stamped before.
        """

    def plan(self, plans: Mapping[int, bytes]) -> None:
        """Store plans by `seq`, durably; a stored plan stays, an unknown `seq` is ignored."""

    def pending(self, partition: str | None = None, *, limit: int = 1000) -> list[Operation]:
        """Read operations neither applied nor dead, of one partition or all, in order of `seq`."""

    def take_over(self) -> list[Operation]:
        """Take over the pending operations of processes that are no longer alive; return them."""

    def remove(self, seqs: Collection[int]) -> int:
        """Drop pending operations that every store has; return how many there were.

        All others are ignored, such as those that an erasure dropped or another process took over.
        """

    def failed(self, seq: int) -> int:
        """Count one more failed attempt; return how many there are, 0 if it is not pending."""

    def dead_letter(self, seq: int, reason: str, left: Operation | None = None) -> None:
        """Move an operation to the dead letters; one that is not pending is ignored.

        Args:
            left: what is left to be done of it, whose kind and body replace its own; it has no plan
                then. None for all.
        """

    def dead(self, scope: Scope | None = None) -> list[DeadLetter]:
        """Read dead letters that the scope covers, oldest first; None reads those of all owners."""

    def retry(self, operations: Collection[str]) -> int:
        """Accept dead letters again, as the newest operations; return how many.

        Each gets a new `seq` and `version`, as a later change would win over it otherwise. Ids
        without a dead letter are ignored.
        """

    def erase(self, scope: Scope, before: int) -> int:
        """Drop operations of any state that the scope covers with `seq` below `before`.

        Returns:
            The number of operations dropped.
        """

    def count(self, scope: Scope | None = None) -> Backlog:
        """Count pending and dead operations, of a scope or of all."""

    def rows(self, scope: Scope, *, before: int | None = None) -> int:
        """Count operations of any state that the scope covers, below the sequence number `before`.

        Args:
            before: None counts all.
        """

    def close(self) -> None:
        """Release files; repeating it does nothing."""


Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines of one memory."""

    index: VectorIndex
    graph: GraphStore
    journal: Journal
    checkpoints: Checkpoints

    @property
    def shared(self) -> bool:
        """Other processes may write to the graph store and the index, each at its own time."""
        return not isinstance(self, Transactional)


@runtime_checkable
class Transactional(Protocol):
    """Engines in one database: what one transaction does to them is done wholly or not at all."""

    def transact(self, work: "Callable[[Engines], T]") -> T:
        """Run `work` in one write transaction; return its result when that is on the disk.

        Its engines see what it has changed before. If it raises, nothing has changed. It must be
        quick, as nothing else is written meanwhile, and must not use other engines.

        Raises:
            StoreUnavailableError: the disk is full or fails; nothing has changed.
        """

    def snapshot(self) -> "AbstractContextManager[Engines]":
        """Provide the engines as of one moment, to read from while others write."""

    def finish_erasures(self, *, is_idle: bool) -> None:
        """Remove the bytes of erased text that an erasure has left; call this from time to time.

        Args:
            is_idle: nothing else is written, so there is time to rewrite the whole database.

        Raises:
            StoreUnavailableError: there is no space for that, or the disk fails.
        """

    def reclaim(self) -> bool:
        """Give some free space back to the file system; False if there is little of it."""


CRASH_POINTS = (
    "before_journal",
    "after_journal",
    "before_plan",
    "after_plan",
    "before_graph",
    "after_graph",
    "after_index",
    "before_remove",
    "after_remove",
    # Around every transaction of a store and every write to an index, whatever it is for.
    "before_commit",
    "after_commit",
    # Around the moment at which a file that was written beside gets its name.
    "before_rename",
    "after_rename",
)

_crash_hooks: list[Callable[[str], None]] = []


def arm_crash_points(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every crash point passed from now on; None disarms."""
    _crash_hooks[:] = [] if hook is None else [hook]


def crash_point(name: str) -> None:
    """Pass a named point of the write path, at which a test may stop the process."""
    for hook in _crash_hooks:
        hook(name)
