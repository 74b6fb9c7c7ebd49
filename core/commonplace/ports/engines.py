"""Ports of storage engines (vector index, graph store, journal), and of what opens them by a URL.

Storage ports are synchronous and thread-safe; each method may be called from any thread. All raise
`StoreUnavailableError` for a temporary failure, `StoreRefusedError` for one that an operator must
fix, and another `CommonplaceError` for a permanent one. A method that touches a store takes a
`Scope`, or objects that carry one.

An entry point of `commonplace.engines` provides an engine that a URL names.
An entry point's name is the scheme of the URLs; its value is called without arguments when such a
URL is opened, and returns an `IndexEngine`, a `GraphEngine`, or an object that is both:

    [project.entry-points."commonplace.engines"]
    shelf = "shelf_engine:ShelfEngine"

Importing it must be cheap: a driver is imported when something is opened, and one that is missing
is a `MissingExtraError` or another error that says what to install.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..errors import SchemaMismatchError
from ..filters import Filter
from ..settings import Settings
from ..types import (
    Backlog,
    DeadLetter,
    Entity,
    Excerpt,
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
from .stores import Engines, Erased, Expansion, Hit, Operation, Outcome, Point, Put, Query, Remove

T = TypeVar("T")
TOKENS = "tokens"  # what the token vectors of an index depend on, in its meta


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

    def excerpts(self, scope: Scope, ids: Sequence[str]) -> list[Excerpt]:
        """Read of live records what `Excerpt` holds, otherwise as `get`."""

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
        """Read live records, newest first (creation, position, then id); see `Record.holds`.

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


@runtime_checkable
class Transactional(Protocol):
    """Engines in one database: what one transaction does to them is done wholly or not at all."""

    def transact(self, work: Callable[[Engines], T]) -> T:
        """Run `work` in one write transaction; return its result when that is on the disk.

        Its engines see what it has changed before. If it raises, nothing has changed. It must be
        quick, as nothing else is written meanwhile, and must not use other engines.

        Raises:
            StoreUnavailableError: the disk is full or fails; nothing has changed.
        """

    def snapshot(self) -> AbstractContextManager[Engines]:
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


@runtime_checkable
class SelfDescribing(Protocol):
    """An engine that tells operators of itself."""

    def describe(self) -> Mapping[str, str | int]:
        """Return what it is, such as its version and its state, by names of its own."""


# -- engines that a URL names ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """What an index is opened for.

    Attributes:
        dimensions: length of every vector.
        token_dimensions: length of every token's vector; 0 if the embedder gives none. An engine
            that keeps no tokens ignores it.
        meta: what the vectors depend on, such as the embedder; to be stored when the index is made
            and compared at every later opening, by `check_meta`.
        generation: number of the index, from 1. `commonplace reindex` fills the next one while the
            present one serves searches, so each needs a place of its own.
    """

    dimensions: int
    token_dimensions: int = 0
    meta: Mapping[str, str]
    generation: int = 1


@runtime_checkable
class IndexEngine(Protocol):
    """An engine that opens vector indexes."""

    def open_index(self, url: str, spec: IndexSpec, settings: Settings) -> VectorIndex:
        """Open or create an index; the memory that asks for it closes it.

        Args:
            url: as the user gave it, with user, password and options.
            settings: with secrets that are not in the URL.

        Raises:
            InvalidRecordError: the URL cannot be used.
            MissingExtraError: the driver is not installed.
            SchemaMismatchError: the index was made with other `meta` or dimensions.
            StoreUnavailableError, StoreRefusedError: see the other ports.
        """

    def drop_index(self, url: str, generation: int, settings: Settings) -> None:
        """Remove a generation of an index and all its bytes; a missing one is ignored."""


@runtime_checkable
class GraphEngine(Protocol):
    """An engine that opens graph stores."""

    def open_graph(self, url: str, settings: Settings) -> tuple[GraphStore, Checkpoints | None]:
        """Open or create a graph store, and the checkpoints beside it; raises as `open_index`.

        The memory that asks for them closes them. Where there are no checkpoints, they are kept in
        SQLite, beside the journal.
        """


def check_meta(stored: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    """Compare what the vectors of an index depend on with what is wanted now.

    Other token vectors, or none, are no reason to refuse it: it is used without (`has_tokens`).

    Raises:
        SchemaMismatchError: they differ; names the first difference by key.
    """
    for key in sorted({*stored, *wanted} - {TOKENS}, key=lambda key: (key != "embedder", key)):
        if stored.get(key) != wanted.get(key):
            raise SchemaMismatchError(what=key, stored=stored.get(key), wanted=wanted.get(key))


def has_tokens(stored: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Tell whether the token vectors of an index are those that are wanted now."""
    return TOKENS in wanted and stored.get(TOKENS) == wanted[TOKENS]
