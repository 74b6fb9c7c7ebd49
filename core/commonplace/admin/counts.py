"""Numbers of what a memory holds: of a whole location by user and kind, and of one scope."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ..backends import opened_stores
from ..ingest import applying
from ..memory import Memory
from ..ports.engines import SelfDescribing
from ..ports.stores import version_at
from ..settings import Location, Settings
from ..types import Kind, Scope
from .backfill import Progress, count_records, live_records, reported
from .database_files import database_files, require_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Numbers of what a location holds.

    Attributes:
        records: live ones by user and kind, superseded and expired ones included, by user id; the
            records of no user are under None.
        files: the files of this host by path, with their sizes in bytes; a log counts with its
            file. Empty if all stores are servers.
        pending: accepted writes that are not applied. dead: those that cannot be.
    """

    records: Mapping[str | None, Mapping[Kind, int]]
    files: Mapping[Path, int]
    pending: int
    dead: int


def contents(
    location: Location, settings: Settings, *, progress: Progress | None = None
) -> Contents:
    """Count what a location holds, of all users; for operators. No embedder is needed.

    Raises:
        CannotMoveError: there is no memory.
        StoreUnavailableError: a server does not answer, or a file cannot be read.
    """
    require_memory(location)
    found: dict[str | None, Counter[Kind]] = {}
    apart = location.journal != location.graph  # this host may have no journal yet
    with opened_stores(location, settings, create=apart) as stores:
        total = count_records(stores.graph) if progress else None
        for record in reported(live_records(stores.graph), progress, "count", total):
            found.setdefault(record.scope.user_id, Counter())[record.kind] += 1
        backlog = stores.journal.count()
    records = dict(sorted(found.items(), key=lambda item: item[0] or ""))
    return Contents(
        records=records, files=_files(location), pending=backlog.pending, dead=backlog.dead
    )


def count_rows(memory: Memory, scope: Scope) -> dict[str, int]:
    """Count the rows that `Memory.forget` would remove, by store and table as in its receipt."""
    return applying.count_rows(memory._runtime.engines, scope)


def file_sizes(memory: Memory) -> dict[Path, int]:
    """Measure the files of a memory on this host, as `Contents.files`."""
    return _files(memory._runtime.location)


def describe_engines(memory: Memory) -> dict[str, Mapping[str, str | int]]:
    """Ask the graph store and the index what they are; one that does not tell is left out."""
    engines = memory._runtime.engines
    each = {"graph": engines.graph, "index": engines.index}
    return {n: one.describe() for n, one in each.items() if isinstance(one, SelfDescribing)}


def count_by_hour(
    memory: Memory, since: datetime, *, timeout: float | None = None
) -> tuple[int, list[int]] | None:
    """Count the live records, and those that were last written in each hour from `since` on.

    Args:
        timeout: seconds after which it gives up; None to count however many there are.

    Returns:
        Both, with 24 hours; None if it gave up.
    """
    begin, number, hours = version_at(since), 0, [0] * 24
    hour = version_at(since + timedelta(hours=1)) - begin
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    for _, version in memory._runtime.engines.graph.versions(None):
        number += 1
        if version >= begin:
            hours[min((version - begin) // hour, 23)] += 1
        if number % 1_000 == 0 and time.monotonic() > end:
            return None
    return number, hours


def _files(location: Location) -> dict[Path, int]:
    found: dict[Path, int] = {}
    for file in database_files(location):
        log = file.with_name(f"{file.name}-wal")
        found[file] = file.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return found
