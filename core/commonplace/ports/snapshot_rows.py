"""Snapshot rows: the complete content of a graph store, which any other store can load unchanged.

A store's past decides as much as its present: what was deleted or erased must not come back, and
the effect of a later change depends on the times of earlier ones. So tombstones, fences, counters
and the order of entities and relations are part of a snapshot. The names of fields are keys in the
format of `commonplace export`.
"""

from dataclasses import dataclass
from datetime import datetime

from ..types import Entity, Record, Relation, Scope, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRow:
    """An erasure: changes up to this version are refused in the scope with this key."""

    key: str
    version: int

    @property
    def partition(self) -> str:
        """Empty: fences come before every partition."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """The next position that a session gives out.

    Attributes:
        first_at, last_at: when its first and last turn were said; None if that is unknown, as in
            what a former pre-release exported.
    """

    scope: Scope
    next: int
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def partition(self) -> str:
        """The partition that it belongs to."""
        return self.scope.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """An entity in the graph of its owner; ordered by age."""

    owner: Scope
    entity: Entity

    @property
    def partition(self) -> str:
        """The partition that it belongs to."""
        return self.owner.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """A relation as supersession resolved it, without its supports; by age, after the entities."""

    owner: Scope
    relation: Relation

    @property
    def partition(self) -> str:
        """The partition that it belongs to."""
        return self.owner.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record or its tombstone, after the relations that it asserts.

    Attributes:
        live: false for a tombstone, whose text and metadata are only in its versions.
        versions: oldest first. recalls: times from the access log, newest first.
        states: relations that the record asserts or asserted, by age: `valid_to` is the end that
            it stated, `expired_at` the time of the update that dropped the assertion. Of a
            tombstone, those that it asserted when it was deleted.
    """

    record: Record
    live: bool
    versions: tuple[Version, ...] = ()
    states: tuple[Relation, ...] = ()
    recalls: tuple[datetime, ...] = ()

    @property
    def asserted(self) -> tuple[Relation, ...]:
        """Those of `states` that are in the graph: a tombstone asserts nothing."""
        return self.states if self.live else ()

    @property
    def partition(self) -> str:
        """The partition that it belongs to."""
        return self.record.scope.partition


SnapshotRow = FenceRow | SessionRow | EntityRow | RelationRow | RecordRow
