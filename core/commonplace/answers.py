"""What `Memory` answers to writes, erasures and looks at what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from .model import Event, Record, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a write did to one record. `NONE`: it was known already."""

    id: str
    text: str | None
    event: Event
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The answer to a write.

    Attributes:
        operation: the accepted change's id in the journal.
        changes: one per record touched, in the order given; empty while `pending`.
        pending: accepted and safe, not yet searchable.
    """

    operation: str
    changes: tuple[Change, ...] = ()
    pending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure removed, store by store, and what it saw when it looked again.

    Attributes:
        removed: rows removed, by store and table, such as `{"graph.records": 12}`.
        left: rows of the scope found afterwards, by store; all zero when `complete`.
    """

    scope: Scope
    removed: Mapping[str, int]
    left: Mapping[str, int]
    at: datetime

    @property
    def complete(self) -> bool:
        """Nothing of the scope is left in any store."""
        return not any(self.left.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some records, newest first; `cursor` asks for the next page and is None on the last."""

    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An accepted change that cannot be applied, and why; `retry` replays it."""

    operation: str
    scope: Scope
    kind: str
    reason: str
    attempts: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What is left after draining: both zero when everything accepted is in every store."""

    pending: int
    dead: int

    def __add__(self, other: Self) -> "Drained":
        return Drained(pending=self.pending + other.pending, dead=self.dead + other.dead)
