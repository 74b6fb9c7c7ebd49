"""Health check of a memory: its files, backlog and dead letters, and whether its stores agree."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..memory import Memory
from ..ports.engines import Transactional
from ..ports.stores import Engines
from ..settings import Location
from ..types import DeadLetter
from .database_files import database_files, require_memory
from .serialization import TABLES, table_of

_SETTLE_SECONDS = 1.0  # for writes that one store has and the other does not have yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """State of a memory.

    Attributes:
        pending: accepted writes that keep waiting; 0 while each is applied soon.
        dead: writes that cannot be applied, oldest first.
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


def examine(memory: Memory, *, timeout: float = 10.0, tables: bool = True) -> Health:
    """Examine all that a memory holds, over all scopes; of its files, see `check_files`.

    Other processes may write meanwhile: stores in one database are read at one moment, and records
    that differ are looked at again a second later, before they are reported.

    Args:
        timeout: seconds to wait for accepted writes first.
        tables: False counts the live records alone, in a fifth of the time.
    """
    engines = memory._runtime.engines
    waiting = {operation.id for operation in engines.journal.pending()}
    left = memory.flush(timeout)
    are_applied = waiting.isdisjoint(operation.id for operation in engines.journal.pending())
    counts: Counter[str] = Counter(dict.fromkeys(TABLES, 0) if tables else {})
    with _at_one_moment(engines) as stores:
        counts.update(map(table_of, stores.graph.dump()) if tables else ())
        live, indexed = dict(stores.graph.versions(None)), dict(stores.index.versions(None))
    counts["live"] = len(live)
    differing = _differing(live, indexed)
    if differing:
        time.sleep(_SETTLE_SECONDS)
        with _at_one_moment(engines) as stores:
            again = _differing(dict(stores.graph.versions(None)), dict(stores.index.versions(None)))
        differing &= again
    return Health(
        pending=0 if are_applied else left.pending,
        dead=memory.admin.dead_letters(),
        counts=counts,
        indexed=len(indexed),
        missing=sorted(id_ for id_, _, found in differing if found is None),
        outdated=sorted(id_ for id_, wanted, found in differing if None not in (wanted, found)),
        orphans=sorted(id_ for id_, wanted, _ in differing if wanted is None),
    )


def _at_one_moment(engines: Engines) -> AbstractContextManager[Engines]:
    """Provide the stores as of one moment where they can be read so, else as they are."""
    return engines.snapshot() if isinstance(engines, Transactional) else nullcontext(engines)


def _differing(
    live: Mapping[str, int], indexed: Mapping[str, int]
) -> set[tuple[str, int | None, int | None]]:
    """List the ids of records with different versions in graph store and index, and these."""
    return {
        (id_, live.get(id_), indexed.get(id_))
        for id_ in live.keys() | indexed.keys()
        if live.get(id_) != indexed.get(id_)
    }
