"""Snapshot rows: the complete content of a graph store, which any other store can load unchanged.

A store's past decides as much as its present: what was deleted or erased must not come back, and
the effect of a later change depends on the times of earlier ones. So tombstones, fences, counters
and the order of entities and relations are part of a snapshot.
"""

from dataclasses import dataclass
from datetime import datetime

from ..model import Entity, Record, Relation, Scope, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRow:
    """An erasure: changes up to this version are refused in the scope whose key this is."""

    key: str
    version: int

    @property
    def partition(self) -> str:
        """Of nobody: fences come before every partition."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """The next free place of a session."""

    scope: Scope
    next: int

    @property
    def partition(self) -> str:
        """Whose it is."""
        return self.scope.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """An entity in the graph of its owner; they come by age."""

    owner: Scope
    entity: Entity

    @property
    def partition(self) -> str:
        """Whose it is."""
        return self.owner.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """A relation as it is settled, without its supports; they come by age, after the entities."""

    owner: Scope
    relation: Relation

    @property
    def partition(self) -> str:
        """Whose it is."""
        return self.owner.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record or its tombstone, after the relations that it states.

    Attributes:
        live: false for a tombstone, whose text is empty.
        versions: oldest first. recalls: newest first.
        states: relations as the record states or stated them, by age: `valid_to` is what it said,
            `expired_at` when it said so no more.
    """

    record: Record
    live: bool
    versions: tuple[Version, ...] = ()
    states: tuple[Relation, ...] = ()
    recalls: tuple[datetime, ...] = ()

    @property
    def partition(self) -> str:
        """Whose it is."""
        return self.record.scope.partition


SnapshotRow = FenceRow | SessionRow | EntityRow | RelationRow | RecordRow
