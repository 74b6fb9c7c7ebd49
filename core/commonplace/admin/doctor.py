"""Health check of a memory: its files, backlog and dead letters, and whether its stores agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..memory import Memory
from ..settings import Location
from ..types import DeadLetter
from .database_files import database_files, require_memory
from .serialization import TABLES, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """State of a memory.

    Attributes:
        pending: accepted writes that are not applied. dead: those that cannot be, oldest first.
        counts: rows in the graph store by table; `live` counts the records without tombstones.
        indexed: records in the index.
        missing, outdated, orphans: ids of records that the index lacks, has in another version,
            or has without the graph store; sorted.
    """

    pending: int
    dead: Sequence[DeadLetter]
    counts: Mapping[str, int]
    indexed: int
    missing: Sequence[str]
    outdated: Sequence[str]
    orphans: Sequence[str]

    @property
    def is_consistent(self) -> bool:
        """The index holds exactly the live records of the graph store."""
        return not (self.missing or self.outdated or self.orphans)

    @property
    def is_healthy(self) -> bool:
        """The stores agree, nothing is pending and nothing is dead."""
        return self.is_consistent and not self.pending and not self.dead


def check_files(location: Location) -> dict[Path, list[str]]:
    """Check the SQLite files of a location, which others may use meanwhile; nothing is opened.

    Returns:
        What SQLite finds wrong with each, as it words it; an empty list for a sound file.

    Raises:
        CannotMoveError: there is no memory.
    """
    from ..backends.sqlite import integrity

    require_memory(location)
    return {file: integrity.check(file) for file in database_files(location)}


def examine(memory: Memory, *, timeout: float = 10.0) -> Health:
    """Examine all that a memory holds, over all scopes; of its files, see `check_files`.

    Args:
        timeout: seconds to wait for accepted writes before.
    """
    left = memory.flush(timeout)
    engines = memory._runtime.engines
    counts: Counter[str] = Counter(dict.fromkeys((*TABLES, "live"), 0))
    counts.update(map(table_of, engines.graph.dump()))
    live, indexed = dict(engines.graph.versions(None)), dict(engines.index.versions(None))
    counts["live"] = len(live)
    return Health(
        pending=left.pending,
        dead=memory.dead_letters(),
        counts=counts,
        indexed=len(indexed),
        missing=sorted(live.keys() - indexed.keys()),
        outdated=sorted(one for one in live.keys() & indexed.keys() if live[one] != indexed[one]),
        orphans=sorted(indexed.keys() - live.keys()),
    )
