"""Cache of the points of an SQLite file in memory, by partition.

Writes do not touch it, except that an erasure drops what it is about. A search brings a partition
up to date by the counters of its changes, as they are in the transaction that it reads in: so the
cache is right after changes of other processes and after those that were rolled back.
"""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np

from ...errors import MemoryClosedError
from ...ports.stores import Query
from ...types import Record
from ..shared.rows import UnreadableRowError
from .points import COLUMNS, ROW_BYTES, Candidates, Floats, Points, Wanted, join

_BATCH = 2048  # rows read at once
_EMPTY_BYTES = 2000  # of a partition without points
_USUAL_TOKENS = 24  # of a text


@dataclass(slots=True, eq=False)
class _Partition:
    """Loaded points of a partition, with the counters of the last changes that they include.

    Attributes:
        lock: for its points and counters.
        points: None if they are not loaded.
        bytes: as counted in the cache.
    """

    key: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    points: Points | None = None
    written: int = 0
    removed: int = 0
    bytes: int = 0


class Reading(NamedTuple):
    """A transaction that reads, and the candidates of a query in it.

    Attributes:
        points: loaded, of which the candidates' rows are; None if they are not kept.
    """

    connection: Connection
    candidates: Candidates
    points: Points | None

    @property
    def records(self) -> Mapping[int, Record]:
        """Records in memory, by row."""
        return {} if self.points is None else self.points.records


class PointCache:
    """Points of the partitions that were searched last.

    Args:
        read: opens a transaction that sees what is committed.
        table: of the points; `{table}_change` has the counters.
        token_dimensions: 0 if tokens are not to be loaded.
        limit: in bytes. A partition above it is read anew by each search, in blocks.
    """

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Connection]],
        table: str,
        *,
        dimensions: int,
        token_dimensions: int,
        limit: int,
    ) -> None:
        self._read = read
        self._pid = os.getpid()
        self._dimensions = dimensions
        self._token_dimensions = token_dimensions
        self._limit = limit
        self._lock = threading.Lock()
        self._partitions: OrderedDict[str, _Partition] = OrderedDict()
        self._bytes = 0
        self._counters = f"SELECT written, removed FROM {table}_change WHERE partition = ?"
        index = f"{table} INDEXED BY {table}_by_partition WHERE partition = ?"
        self._count = f"SELECT count(*) FROM {index}"
        # As one value, which takes a third of the time of as many rows.
        self._changes = f"SELECT json_group_array(change) FROM {index}"
        self._load = f"SELECT {COLUMNS} FROM {index} AND change > ? ORDER BY change"

    @contextmanager
    def select(
        self, query: Query, vector: Floats, wanted: Wanted | None = None
    ) -> Iterator[Reading]:
        """Score what a query may show, and keep the transaction open to read the records."""
        if os.getpid() != self._pid:
            raise MemoryClosedError  # a fork, in which the locks may be held for ever
        partition = self._partition(query.scope.partition)
        with ExitStack() as stack:
            with partition.lock:
                # Begun under the lock, it sees all that was loaded before.
                connection = stack.enter_context(self._read())
                points = self._refresh(partition, connection)
                selection = None if points is None else points.select(query, wanted)
            if selection is not None:
                candidates = selection.score(vector)
            else:
                blocks = self._blocks(connection, partition.key)
                parts = [one.select(query, wanted).score(vector) for one in blocks]
                candidates = join(parts, query.terms)
            yield Reading(connection, candidates, points)
        self._account(partition)

    def keep(self, reading: Reading, records: dict[int, Record]) -> None:
        """Keep decoded records, by row, until their points change."""
        if reading.points is not None:
            with self._lock:
                reading.points.keep_records(records)

    def drop(self, key: str) -> None:
        """Drop what is loaded of a partition: what was erased is in memory no longer."""
        if os.getpid() == self._pid:
            with self._lock:
                if (found := self._partitions.pop(key, None)) is not None:
                    self._bytes -= found.bytes

    def clear(self) -> None:
        """Drop all that is loaded."""
        if os.getpid() == self._pid:
            with self._lock:
                self._partitions.clear()
                self._bytes = 0

    def _partition(self, key: str) -> _Partition:
        with self._lock:
            found = self._partitions.get(key)
            if found is None:
                found = self._partitions[key] = _Partition(key)
            self._partitions.move_to_end(key)
            return found

    def _refresh(self, partition: _Partition, connection: Connection) -> Points | None:
        """Bring points up to what the transaction sees; None if they are not to be loaded."""
        key = partition.key
        written, removed = connection.execute(self._counters, (key,)).fetchone() or (0, 0)
        points = partition.points
        if points is None:
            (count,) = connection.execute(self._count, (key,)).fetchone()
            tokens = _USUAL_TOKENS * self._token_dimensions
            if count * (4 * self._dimensions + tokens + ROW_BYTES) > self._limit:
                return None
            points = self._new_points(count)
        elif (written, removed) == (partition.written, partition.removed):
            return points
        elif written < partition.written or removed < partition.removed:
            return None  # an earlier state than the one that is loaded
        # Loaded anew if this fails halfway, as when the disk does.
        former, partition.points = partition.points, None
        since, partition.written = partition.written, 0
        cursor = connection.execute(self._load, (key, since))
        while loaded := cursor.fetchmany(_BATCH):
            _add(points, loaded)
        if former is not None and removed > partition.removed:
            (left,) = connection.execute(self._changes, (key,)).fetchone()
            points.retain(np.array(json.loads(left), np.int64))
        if points.size > 2 * points.alive:
            points = points.compact()
        partition.points, partition.written, partition.removed = points, written, removed
        return points

    def _blocks(self, connection: Connection, key: str) -> Iterator[Points]:
        cursor = connection.execute(self._load, (key, 0))
        while loaded := cursor.fetchmany(_BATCH):
            block = self._new_points(len(loaded))
            _add(block, loaded)
            yield block

    def _new_points(self, capacity: int) -> Points:
        return Points(self._dimensions, capacity, token_dimensions=self._token_dimensions)

    def _account(self, partition: _Partition) -> None:
        """Count the bytes of a partition, and drop the ones used least recently."""
        points = partition.points
        size = _EMPTY_BYTES + (0 if points is None else points.bytes)
        if size == partition.bytes:
            return
        with self._lock:
            if self._partitions.get(partition.key) is not partition:
                return  # it was dropped meanwhile
            self._bytes += size - partition.bytes
            partition.bytes = size
            while self._bytes > self._limit and len(self._partitions) > 1:
                key = next(iter(self._partitions))
                if key == partition.key:
                    self._partitions.move_to_end(key)
                    continue
                self._bytes -= self._partitions.pop(key).bytes
            if self._bytes > self._limit and points is not None:
                points.drop_records()
                if points.bytes > self._limit:
                    del self._partitions[partition.key]
                    self._bytes = 0


def _add(points: Points, loaded: Sequence[tuple[Any, ...]]) -> None:
    try:
        points.add(loaded)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnreadableRowError(error) from error
