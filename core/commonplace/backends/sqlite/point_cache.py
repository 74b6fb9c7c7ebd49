"""Points of an SQLite file in memory, by partition: a matrix of vectors, and postings of terms.

A row is never used for another point: what replaces a point gets a new row, and the old one is
dead. Whoever has selected rows may therefore go on with them while others are added.

Writes do not touch the cache, except that an erasure drops what was erased. A search brings a
partition up to date by the counters of its changes, as they are in the transaction that it reads
in, so the cache is right after changes of other processes and after a rollback, too.
"""

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidVectorError, MemoryClosedError
from ...ports.stores import Query
from ...types import Record, Scope
from ..shared import rows as row_values
from ..shared.rows import Tokens, to_tokens, unpack_passages
from .candidate_points import (
    DECIMALS,
    CandidatePoints,
    Floats,
    Mask,
    Numbers,
    PassageRows,
    Postings,
    RefinedScores,
    Scores,
    TokenRows,
    join,
    multiply,
    shrink,
    with_room,
)

COLUMNS = (
    "change, record, agent_id, session_id, turn, words, until, terms, weights, vector, tokens,"
    " passages"
)
_ROW_BYTES = 700  # id, turn, terms and numbers of a point, beside its vector
_RECORD_BYTES = 1500  # a decoded record beside its text
_JSON_BYTES = 4  # of decoded metadata for each character of its JSON
_NEVER = 2**63 - 1
_BATCH = 2048  # rows read at once
_EMPTY_BYTES = 2000  # of a partition without points
_USUAL_TOKENS = 24  # of a text
_TOKENS = ("token", "tokens")
_KINDS = {
    "change": "i8", "until": "i8", "agent": "i4", "session": "i4", "words": "i4", "alive": "?",
    "token": "i8", "tokens": "i4", "scale": "f4",
}  # fmt: skip


class Wanted(NamedTuple):
    """A choice of points: those of some turns, and those with some ids."""

    turns: Collection[str]
    ids: Collection[str]


class Points:
    """Loaded points of one partition. Its methods need a lock against each other.

    Attributes:
        records: decoded, by row; filled and read without a lock.
        size: number of rows, dead ones included. alive: number of the others.
        error: by how much a cosine of small vectors may be wrong.
    """

    def __init__(
        self,
        dimensions: int,
        capacity: int = 0,
        *,
        token_dimensions: int = 0,
        is_small: bool = False,
    ) -> None:
        self.records: dict[int, Record] = {}
        self.size = 0
        self.alive = 0
        self.error = 0.0
        self.is_small = is_small
        self._dimensions = dimensions
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._turns: dict[str, list[int]] = {}
        self._codes: dict[str | None, int] = {None: 0}
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(capacity, kind) for name, kind in _KINDS.items()
        }
        kind = np.int8 if is_small else np.float32
        self._vectors: NDArray[Any] = np.empty((capacity, dimensions), kind)
        self._tokens: Tokens = np.empty((0, token_dimensions), "i1")
        self._token_number = 0
        self._passages = PassageRows(dimensions)
        self._postings = Postings()
        self._record_bytes = 0

    @property
    def bytes(self) -> int:
        """Their size in memory, roughly."""
        size = self.size * (self._vectors.itemsize * self._dimensions + _ROW_BYTES)
        return size + self._tokens.nbytes + self._passages.bytes + self._record_bytes

    def add(self, loaded: Sequence[tuple[Any, ...]]) -> None:
        """Add rows of `COLUMNS`, in ascending order of `change`; each replaces its former row."""
        (
            *(change, ids, agents, sessions, turns, words, until, terms, weights, vectors, tokens),
            passages,
        ) = zip(*loaded, strict=True)
        start, end = self.size, self.size + len(loaded)
        table: NDArray[Any] = np.frombuffer(b"".join(vectors), "<f4")
        table, scales = table.reshape(-1, self._dimensions), np.ones(1, "f4")
        if self.is_small:
            table, scales, error = shrink(table)
            self.error = max(self.error, error)
        values: dict[str, Any] = {
            "change": change,
            "until": [_NEVER if one is None else one for one in until],
            "agent": [self._codes.setdefault(agent, len(self._codes)) for agent in agents],
            "session": [self._codes.setdefault(session, len(self._codes)) for session in sessions],
            "words": words,
            "alive": True,
            "scale": scales,
            **self._add_tokens(tokens),
        }
        for name, column in self._columns.items():
            self._columns[name] = with_room(column, start, end)
            self._columns[name][start:end] = values[name]
        self._vectors = with_room(self._vectors, start, end)
        self._vectors[start:end] = table
        if any(passages):
            self._add_passages(start, passages)
        self._postings.add(start, terms, weights)
        for row, (record_id, turn) in enumerate(zip(ids, turns, strict=True), start):
            self._bury(self._row_of.get(record_id))
            self._row_of[record_id] = row
            if turn is not None:
                self._turns.setdefault(turn, []).append(row)
        self._ids += ids
        self.size = end
        self.alive += len(loaded)

    def _add_passages(self, start: int, loaded: Sequence[Any]) -> None:
        """Add the passages of successive rows from `start` on."""
        found = [
            (row, *one) for row, raw in enumerate(loaded, start) for one in unpack_passages(raw)
        ]
        rows, vectors, tokens = zip(*found, strict=True)
        table = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, self._dimensions)
        self._passages.add(table, {"row": rows, **self._add_tokens(tokens)})

    def _add_tokens(self, loaded: Sequence[Any]) -> dict[str, Any]:
        """Add the tokens of successive rows; return where they are."""
        size = self._tokens.shape[1]
        if not size:
            return {"token": 0, "tokens": 0}
        lengths = np.array([len(raw) for raw in loaded])
        if (lengths % size).any():  # those of the rows after it would be shifted
            raise InvalidVectorError(reason="has a damaged token", expected=size, got=0)
        added = to_tokens(b"".join(loaded), size)
        start, end = self._token_number, self._token_number + len(added)
        self._tokens = with_room(self._tokens, start, end)
        self._tokens[start:end] = added
        self._token_number = end
        counts = lengths // size
        return {"token": start + np.cumsum(counts) - counts, "tokens": counts}

    def retain(self, changes: NDArray[np.int64]) -> None:
        """Drop the points that none of these changes has written last."""
        gone = np.flatnonzero(self._column("alive") & ~np.isin(self._column("change"), changes))
        for row in gone.tolist():
            self._bury(row)
            del self._row_of[self._ids[row]]

    def compact(self) -> "Points":
        """Return the points without dead rows, as new points."""
        kept = np.flatnonzero(self._column("alive"))
        size = self._tokens.shape[1]
        made = Points(self._dimensions, len(kept), token_dimensions=size, is_small=self.is_small)
        made.error = self.error
        moved = np.full(self.size, -1, np.intp)
        moved[kept] = np.arange(len(kept))
        made.size = made.alive = len(kept)
        made._columns = {name: column[kept] for name, column in self._columns.items()}
        np.take(self._vectors, kept, axis=0, out=made._vectors)
        made._passages = self._passages.moved(moved)
        parts = made._columns, made._passages.columns
        starts, counts = (np.concatenate([one[name] for one in parts]) for name in _TOKENS)
        tokens = [self._tokens[a : a + n] for a, n in zip(starts, counts, strict=True)]
        made._tokens = np.concatenate([self._tokens[:0], *tokens])
        made._token_number = len(made._tokens)
        places = np.cumsum(counts, dtype="i8") - counts
        made._columns["token"] = places[: len(kept)]
        made._passages.place_tokens(places[len(kept) :])
        made._ids = [self._ids[row] for row in kept.tolist()]
        made._row_of = {id_: row for row, id_ in enumerate(made._ids)}
        for turn, rows in self._turns.items():
            if left := [row for row in moved[rows].tolist() if row >= 0]:
                made._turns[turn] = left
        made._codes = self._codes
        made._postings = self._postings.renumbered(moved)
        records = self.records.copy()  # as another thread may add or drop some
        made.keep_records(
            {int(moved[row]): record for row, record in records.items() if moved[row] >= 0}
        )
        return made

    def select(self, query: Query, wanted: Wanted | None) -> CandidatePoints:
        """Select what a query may show; where `until` does not decide, the record has to."""
        every = slice(self.size)
        some = every if wanted is None else self._rows_of(wanted)
        visible = covered = self._covered(query.scope, some)
        if not (query.include_superseded or query.include_expired or query.as_of):
            until = self._columns["until"][some]
            visible = covered & (until > row_values.to_micros(query.at))
        chosen = np.flatnonzero(visible) if isinstance(some, slice) else some[visible]
        found, frequencies = self._postings.find(query.terms.indices)
        if len(frequencies) and wanted is not None:
            covered = self._covered(query.scope, every)
        if len(frequencies) and len(chosen) < self.size:  # else every row is a candidate
            inside = found.terms[covered[found.places]]
            frequencies = np.bincount(inside, minlength=len(frequencies))
            shown: Mask = np.zeros(self.size, np.bool_)
            shown[chosen] = True
            found = found.among(shown[found.places])
            found = found._replace(places=np.searchsorted(chosen, found.places))
        starts, counts = self._column("token"), self._column("tokens")
        return CandidatePoints(
            ids=self._ids,
            rows=chosen,
            words=self._column("words")[chosen],
            number=int(np.count_nonzero(covered)),
            frequencies=frequencies,
            occurrences=found,
            tokens=None if self.is_small else TokenRows(self._tokens, starts, counts),
            vectors=self._vectors[: self.size],
            scales=self._column("scale") if self.is_small else None,
            further=self._passages.snapshot(),
        )

    def keep_records(self, records: dict[int, Record]) -> None:
        """Keep decoded records by row, for later searches."""
        self._record_bytes += sum(
            _size(record) for row, record in records.items() if row not in self.records
        )
        self.records |= records

    def drop_records(self) -> None:
        """Drop the decoded records."""
        self.records = {}
        self._record_bytes = 0

    def _covered(self, scope: Scope, rows: slice | Numbers) -> Mask:
        covered: Mask = self._columns["alive"][rows].copy()
        for column, name in (("agent", scope.agent_id), ("session", scope.session_id)):
            if name is not None:
                covered &= self._columns[column][rows] == self._codes.get(name, -1)
        return covered

    def _rows_of(self, wanted: Wanted) -> Numbers:
        rows = {row for turn in wanted.turns for row in self._turns.get(turn, ())}
        rows |= {self._row_of[id_] for id_ in wanted.ids if id_ in self._row_of}
        return np.array(sorted(rows), np.intp)

    def _bury(self, row: int | None) -> None:
        if row is None:
            return
        self._columns["alive"][row] = False
        self.alive -= 1
        if (record := self.records.pop(row, None)) is not None:
            self._record_bytes -= _size(record)

    def _column(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.size]


def _size(record: Record) -> int:
    metadata = row_values.to_json(record.metadata) if record.metadata else ""
    return _RECORD_BYTES + 2 * len(record.text) + _JSON_BYTES * len(metadata)


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
    candidates: CandidatePoints
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
        limit: in bytes. Of a larger partition, small vectors are loaded, and no tokens; if that is
            too large, too, it is read again by each search, in blocks.
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
        self._partitions: dict[str, _Partition] = {}  # the one used last at the end
        self._bytes = 0
        self._counters = f"SELECT written, removed FROM {table}_change WHERE partition = ?"
        index = f"{table} INDEXED BY {table}_by_partition WHERE partition = ?"
        self._count = f"SELECT count(*), total(length(passages)) FROM {index}"
        # As one value, which takes a third of the time of as many rows.
        self._changes = f"SELECT json_group_array(change) FROM {index}"
        self._load = f"SELECT {COLUMNS} FROM {index} AND change > ? ORDER BY change"
        ids = "SELECT value FROM json_each(?)"
        self._vectors = f"SELECT record, vector FROM {table} WHERE record IN ({ids})"

    @contextmanager
    def select(
        self, query: Query, vector: Floats, choose: Callable[[Connection], Wanted | None]
    ) -> Iterator[Reading]:
        """Score what a query may show of what is chosen, with the records still to be read."""
        if os.getpid() != self._pid:
            raise MemoryClosedError  # a fork, in which the locks may be held for ever
        partition = self._partition(query.scope.partition)
        with ExitStack() as stack:
            with partition.lock:
                # Begun under the lock, it sees all that was loaded before.
                connection = stack.enter_context(self._read())
                wanted = choose(connection)
                points = self._refresh(partition, connection)
                candidates = None if points is None else points.select(query, wanted)
            if points is not None and candidates is not None:
                candidates.score(vector)
                if points.is_small:
                    candidates.vectors = None  # exact ones are read from the file
                    exact = partial(self._exact, connection, candidates, vector)
                    candidates.refined = RefinedScores(candidates.cosines, points.error, exact)
            else:
                parts = []
                for block in self._blocks(connection, partition.key):
                    part = block.select(query, wanted)
                    part.score(vector)
                    # Else all blocks would be in memory at once.
                    part.vectors = part.tokens = part.further = None
                    parts.append(part)
                candidates = join(parts, query.terms)
            yield Reading(connection, candidates, points)
        self._account(partition)

    def keep(self, reading: Reading, records: dict[int, Record]) -> None:
        """Keep decoded records, by row, until their points change."""
        if reading.points is not None:
            with self._lock:
                reading.points.keep_records(records)

    def drop(self, key: str) -> None:
        """Drop what is loaded of a partition, so that erased text is no longer in memory."""
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
            found = self._partitions.pop(key, None) or _Partition(key)
            self._partitions[key] = found
            return found

    def _refresh(self, partition: _Partition, connection: Connection) -> Points | None:
        """Bring points up to what the transaction sees; None if they are not to be loaded."""
        key = partition.key
        written, removed = connection.execute(self._counters, (key,)).fetchone() or (0, 0)
        points = partition.points
        if points is None:
            count, passages = connection.execute(self._count, (key,)).fetchone()
            tokens = _USUAL_TOKENS * self._token_dimensions
            fixed, size = count * _ROW_BYTES + passages, count * self._dimensions
            is_small = fixed + 4 * size + count * tokens > self._limit
            if is_small and fixed + size > self._limit:
                return None
            points = self._new_points(count, is_small=is_small)
        elif (written, removed) == (partition.written, partition.removed):
            return points
        elif written < partition.written or removed < partition.removed:
            return None  # an earlier state than the one that is loaded
        # Everything is loaded again if this fails halfway.
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

    def _new_points(self, capacity: int, *, is_small: bool = False) -> Points:
        tokens = 0 if is_small else self._token_dimensions
        return Points(self._dimensions, capacity, token_dimensions=tokens, is_small=is_small)

    def _exact(
        self, connection: Connection, candidates: CandidatePoints, vector: Floats, chosen: Numbers
    ) -> Scores:
        """Compute the exact cosines of some candidates from their vectors in the file."""
        ids = [candidates.ids[row] for row in candidates.rows[chosen].tolist()]
        stored = dict(connection.execute(self._vectors, (json.dumps(ids),)))
        table = np.frombuffer(b"".join(stored[one] for one in ids), "<f4")
        products = multiply(table.reshape(-1, self._dimensions), vector).astype(np.float64)
        scores: Scores = np.round(products, DECIMALS)
        if candidates.passages is not None:
            candidates.passages.refine(chosen, scores)
        return scores

    def _account(self, partition: _Partition) -> None:
        """Count the bytes of a partition, and drop the partitions used least recently."""
        points = partition.points
        size = _EMPTY_BYTES + (0 if points is None else points.bytes)
        if size == partition.bytes:
            return
        with self._lock:
            if self._partitions.get(partition.key) is not partition:
                return  # it was dropped in between
            self._bytes += size - partition.bytes
            partition.bytes = size
            while self._bytes > self._limit and len(self._partitions) > 1:
                oldest = next(key for key in self._partitions if key != partition.key)
                self._bytes -= self._partitions.pop(oldest).bytes
            if self._bytes > self._limit and points is not None:
                points.drop_records()
                if points.bytes > self._limit:
                    del self._partitions[partition.key]
                    self._bytes = 0


def _add(points: Points, loaded: Sequence[tuple[Any, ...]]) -> None:
    try:
        points.add(loaded)
    except (ValueError, TypeError, OverflowError) as error:
        raise row_values.UnreadableRowError(error) from error
