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
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidVectorError, MemoryClosedError
from ...ports.stores import Query, Terms
from ...types import Record
from ..shared import rows as row_values
from ..shared.token_vectors import Tokens, best_cosines, to_tokens
from .passage_rows import PassageRows, PassageScores, join_scores, score_passages, unpack

Numbers = NDArray[np.intp]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Scores = NDArray[np.float64]

COLUMNS = (
    "change, record, agent_id, session_id, turn, words, until, terms, weights, vector, tokens,"
    " passages"
)
_ROW_BYTES = 700  # id, turn, terms and numbers of a point, beside its vector
_RECORD_BYTES = 1500  # a decoded record beside its text
_NEVER = 2**63 - 1
_DECIMALS = 6  # of a score: equal vectors must not differ by the order of additions
_BATCH = 2048  # rows read at once
_EMPTY_BYTES = 2000  # of a partition without points
_USUAL_TOKENS = 24  # of a text
_TOKENS = ("token", "tokens")
_KINDS = {
    "change": "i8", "until": "i8", "agent": "i4", "session": "i4", "words": "i4", "alive": "?",
    "token": "i8", "tokens": "i4",
}  # fmt: skip


class Wanted(NamedTuple):
    """A choice of points: those of some turns, and those with some ids."""

    turns: Collection[str]
    ids: Collection[str]


class TokenRows(NamedTuple):
    """Token vectors, and where each row of points, or each passage, has its own."""

    tokens: Tokens
    starts: NDArray[np.int64]
    counts: NDArray[np.int32]

    def among(self, rows: Numbers) -> "TokenRows":
        """Choose some rows."""
        return self._replace(starts=self.starts[rows], counts=self.counts[rows])

    def best(self, asked: Tokens) -> Floats:
        """Find the best cosine of each asked token in each row."""
        return best_cosines(asked, self.tokens, self.starts, self.counts)


class Occurrences(NamedTuple):
    """Occurrences of terms: number of the term, row or candidate that has it, and its weight."""

    terms: Numbers
    places: Numbers
    weights: Floats

    def among(self, chosen: Mask | Numbers) -> "Occurrences":
        """Choose some of them, by a mask or in an order."""
        return Occurrences(self.terms[chosen], self.places[chosen], self.weights[chosen])


@dataclass(slots=True)
class CandidatePoints:
    """Points that a query may show, in no order, and what is needed to score them.

    Attributes:
        ids: of the records, by row. rows: of each candidate.
        words, dense: of each candidate.
        number: of points that the scope covers. frequencies: how many of them have each term.
        occurrences: of the terms in candidates, by candidate.
        tokens, vectors: of the points, by row, of each the first passage; None if they are not
            loaded.
        passages: cosines of the candidates with several; None if there are none.
        further: the passages after the first; None if they are not loaded.
    """

    ids: Sequence[str]
    rows: Numbers
    words: NDArray[np.int32]
    dense: Scores
    number: int
    frequencies: Numbers
    occurrences: Occurrences
    tokens: TokenRows | None = None
    vectors: Floats | None = None
    passages: PassageScores | None = None
    further: PassageRows | None = None

    def tokens_of(self, chosen: Sequence[int]) -> tuple[TokenRows, Numbers]:
        """Gather the tokens of all passages of some candidates, and which of them each is of."""
        if self.tokens is None or self.passages is None or self.further is None:
            raise ValueError("no passages are loaded")
        first, columns = self.tokens.among(self.rows[chosen]), self.further.columns
        places = [self.passages.further_places(one) for one in chosen]
        every = np.concatenate(places)
        numbers = np.arange(len(chosen))
        owners = np.concatenate([numbers, np.repeat(numbers, list(map(len, places)))])
        starts = np.concatenate([first.starts, columns["token"][every]])
        counts = np.concatenate([first.counts, columns["tokens"][every]])
        return TokenRows(self.tokens.tokens, starts, counts), owners

    def lexical(self, terms: Terms) -> Scores:
        """Compute the weighted term product of each candidate."""
        n = self.frequencies
        weights = np.log(1 + (self.number - n + 0.5) / (n + 0.5)) * np.asarray(terms.weights)
        which, places, weight = self.occurrences
        products = weights[which] * weight
        scores = np.bincount(places, weights=products, minlength=len(self.rows))
        return np.round(scores, _DECIMALS)

    def weights(self, chosen: Sequence[int]) -> list[tuple[float, ...]]:
        """List the weight of each term in some candidates, 0 where one does not have it."""
        numbers = np.full(len(self.rows), -1, np.intp)
        numbers[chosen] = np.arange(len(chosen))
        number = numbers[self.occurrences.places]
        terms, _, weights = self.occurrences.among(number >= 0)
        table = np.zeros((len(chosen), len(self.frequencies)), np.float32)
        table[number[number >= 0], terms] = weights
        return list(map(tuple, table.tolist()))

    def best(self, scores: Scores, number: int, *, above: float = -np.inf) -> Iterator[int]:
        """Yield candidates by descending score, ties by id.

        Args:
            number: that is likely to be read; more are sorted when they are read.
            above: leave out those that do not score more than this.
        """
        below, block = np.inf, max(number, 16)
        while True:
            left = (
                scores if above == -np.inf and below == np.inf else _between(scores, above, below)
            )
            if not len(left):
                return
            least = len(left) - block
            lowest = np.partition(left, least)[least] if least > 0 else left.min()
            best = np.flatnonzero((scores >= lowest) & (scores < below))
            ids = [self.ids[row] for row in self.rows[best].tolist()]
            ordered = sorted(zip((-scores[best]).tolist(), ids, best.tolist(), strict=True))
            yield from (candidate for _, _, candidate in ordered)
            below = lowest
            block *= 4


def _between(scores: Scores, above: float, below: float) -> Scores:
    return scores[(scores > above) & (scores < below)]


class PointSelection(NamedTuple):
    """Rows of loaded points that a query may show; scoring them needs no lock."""

    candidates: CandidatePoints
    vectors: Floats
    passages: PassageRows

    def score(self, vector: Floats) -> CandidatePoints:
        """Add the cosine of each candidate with a vector of unit length."""
        rows = self.candidates.rows
        is_most = 2 * len(rows) >= len(self.vectors)
        vectors = self.vectors if is_most else self.vectors[rows]
        # As one product per row: BLAS spreads a matrix-vector product over all cores, and searches
        # at once then wait for each other.
        scores = np.matmul(vectors[:, None, :], vector[:, None])[:, 0, 0]
        dense = np.round((scores[rows] if is_most else scores).astype(np.float64), _DECIMALS)
        self.candidates.dense = dense
        if self.passages.size:
            size = len(self.vectors)
            scored = score_passages(self.passages, rows, size, vector, dense)
            self.candidates.passages, self.candidates.further = scored, self.passages
        return self.candidates


def join(parts: Sequence[CandidatePoints], terms: Terms) -> CandidatePoints:
    """Join candidates of several blocks of points; their rows get new numbers."""
    starts = np.cumsum([0, *(len(part.rows) for part in parts)])
    found = [
        part.occurrences._replace(places=part.occurrences.places + start)
        for part, start in zip(parts, starts, strict=False)
    ]
    return CandidatePoints(
        ids=[part.ids[row] for part in parts for row in part.rows.tolist()],
        rows=np.arange(starts[-1]),
        words=_joined([part.words for part in parts], "i4"),
        dense=_joined([part.dense for part in parts], "f8"),
        number=sum(part.number for part in parts),
        frequencies=sum((p.frequencies for p in parts), np.zeros(len(terms.indices), np.intp)),
        occurrences=_concatenated(_NONE_FOUND, *found),
        passages=join_scores([part.passages for part in parts], starts[:-1].tolist())
        if any(part.passages for part in parts)
        else None,
    )


class Points:
    """Loaded points of one partition. Its methods need a lock against each other.

    Attributes:
        records: decoded, by row; filled and read without a lock.
        size: number of rows, dead ones included. alive: number of the others.
    """

    def __init__(self, dimensions: int, capacity: int = 0, *, token_dimensions: int = 0) -> None:
        self.records: dict[int, Record] = {}
        self.size = 0
        self.alive = 0
        self._dimensions = dimensions
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._turns: dict[str, list[int]] = {}
        self._codes: dict[str | None, int] = {None: 0}
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(capacity, kind) for name, kind in _KINDS.items()
        }
        self._vectors: Floats = np.empty((capacity, dimensions), "f4")
        self._tokens: Tokens = np.empty((0, token_dimensions), "i1")
        self._token_number = 0
        self._passages = PassageRows(dimensions)
        self._postings = _Postings()
        self._record_bytes = 0

    @property
    def bytes(self) -> int:
        """Their size in memory, roughly."""
        size = self.size * (4 * self._dimensions + _ROW_BYTES)
        return size + self._tokens.nbytes + self._passages.bytes + self._record_bytes

    def add(self, loaded: Sequence[tuple[Any, ...]]) -> None:
        """Add rows of `COLUMNS`, in ascending order of `change`; each replaces its former row."""
        (
            *(change, ids, agents, sessions, turns, words, until, terms, weights, vectors, tokens),
            passages,
        ) = zip(*loaded, strict=True)
        start, end = self.size, self.size + len(loaded)
        self._reserve(end)
        values: dict[str, Any] = {
            "change": change,
            "until": [_NEVER if one is None else one for one in until],
            "agent": [self._codes.setdefault(agent, len(self._codes)) for agent in agents],
            "session": [self._codes.setdefault(session, len(self._codes)) for session in sessions],
            "words": words,
            "alive": True,
            **self._add_tokens(tokens),
        }
        for name, column in self._columns.items():
            column[start:end] = values[name]
        table = np.frombuffer(b"".join(vectors), "<f4")
        self._vectors[start:end] = table.reshape(-1, self._dimensions)
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
        found = [(row, *one) for row, raw in enumerate(loaded, start) for one in unpack(raw)]
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
        if end > len(self._tokens):
            grown = np.empty((end if start == 0 else end + end // 4, size), "i1")
            grown[:start] = self._tokens[:start]
            self._tokens = grown
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
        made = Points(self._dimensions, len(kept), token_dimensions=size)
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

    def select(self, query: Query, wanted: Wanted | None) -> PointSelection:
        """Select what a query may show; where `until` does not decide, the record has to."""
        scope = query.scope
        covered: Mask = self._column("alive").copy()
        for column, name in (("agent", scope.agent_id), ("session", scope.session_id)):
            if name is not None:
                covered &= self._column(column) == self._codes.get(name, -1)
        visible = covered
        if not (query.include_superseded or query.include_expired or query.as_of):
            visible = covered & (self._column("until") > row_values.to_micros(query.at))
        if wanted is not None:
            visible = visible & self._mask(wanted)
        chosen = np.flatnonzero(visible)
        found, frequencies = self._postings.find(query.terms.indices)
        if len(chosen) < self.size:  # else every row is a candidate
            inside = found.terms[covered[found.places]]
            frequencies = np.bincount(inside, minlength=len(frequencies))
            found = found.among(visible[found.places])
            found = found._replace(places=(np.cumsum(visible) - 1)[found.places])
        candidates = CandidatePoints(
            ids=self._ids,
            rows=chosen,
            words=self._column("words")[chosen],
            dense=np.zeros(0),
            number=int(np.count_nonzero(covered)),
            frequencies=frequencies,
            occurrences=found,
            tokens=TokenRows(self._tokens, self._column("token"), self._column("tokens")),
            vectors=self._vectors[: self.size],
        )
        return PointSelection(candidates, self._vectors[: self.size], self._passages.snapshot())

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

    def _mask(self, wanted: Wanted) -> Mask:
        rows = {row for turn in wanted.turns for row in self._turns.get(turn, ())}
        rows |= {self._row_of[id_] for id_ in wanted.ids if id_ in self._row_of}
        mask: Mask = np.zeros(self.size, np.bool_)
        mask[list(rows)] = True
        return mask

    def _bury(self, row: int | None) -> None:
        if row is None:
            return
        self._columns["alive"][row] = False
        self.alive -= 1
        if (record := self.records.pop(row, None)) is not None:
            self._record_bytes -= _size(record)

    def _column(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.size]

    def _reserve(self, size: int) -> None:
        if size <= len(self._vectors):
            return
        capacity = size if self.size == 0 else max(size, self.size + self.size // 4 + 16)
        more = capacity - self.size
        for name, kind in _KINDS.items():
            self._columns[name] = np.concatenate([self._column(name), np.zeros(more, kind)])
        vectors = self._vectors
        self._vectors = np.empty((capacity, self._dimensions), "f4")
        self._vectors[: self.size] = vectors[: self.size]


class _Postings:
    """Occurrences of terms by row, sorted by term: most of them, and those added since."""

    def __init__(self) -> None:
        self._sorted = _by_term(_NOTHING)
        self._added = self._sorted

    def add(self, start: int, terms: Sequence[bytes], weights: Sequence[bytes]) -> None:
        """Add the terms of successive rows from `start` on."""
        lengths = [len(raw) // 4 for raw in terms]
        new = Occurrences(
            np.frombuffer(b"".join(terms), "<u4"),
            np.repeat(np.arange(start, start + len(terms)), lengths),
            np.frombuffer(b"".join(weights), "<f4"),
        )
        self._added = _by_term(self._added, new)
        if len(self._added.terms) > len(self._sorted.terms) // 16 + 4096:
            self._sorted, self._added = _by_term(self._sorted, self._added), _by_term(_NOTHING)

    def find(self, indices: Sequence[int]) -> tuple[Occurrences, Numbers]:
        """Find the rows that have these terms, dead ones too, and how many rows have each.

        In the result `terms` are places in `indices`.
        """
        asked = np.array(indices, np.uint32)
        if not len(self._added.terms):
            return _find(self._sorted, asked)
        added, numbers = _find(self._added, asked)
        if not len(self._sorted.terms):
            return added, numbers
        found, others = _find(self._sorted, asked)
        return _concatenated(found, added), numbers + others

    def renumbered(self, moved: Numbers) -> "_Postings":
        """Return postings with new row numbers; rows with a negative one are left out."""
        every = _by_term(self._sorted, self._added)
        every = every._replace(places=moved[every.places])
        made = _Postings()
        made._sorted = every.among(every.places >= 0)
        return made


_NONE_FOUND = Occurrences(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.float32))
_NOTHING = Occurrences(np.zeros(0, np.uint32), np.zeros(0, np.intp), np.zeros(0, np.float32))


def _concatenated(*parts: Occurrences) -> Occurrences:
    return Occurrences(
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def _by_term(*parts: Occurrences) -> Occurrences:
    every = _concatenated(*parts)
    order = np.argsort(every.terms, kind="stable")
    return every.among(order)


def _find(postings: Occurrences, asked: NDArray[np.uint32]) -> tuple[Occurrences, Numbers]:
    starts = np.searchsorted(postings.terms, asked, side="left")
    ends = np.searchsorted(postings.terms, asked, side="right")
    slices = [slice(*ends_) for ends_ in zip(starts.tolist(), ends.tolist(), strict=True)]
    found = Occurrences(
        np.repeat(np.arange(len(asked)), ends - starts),
        np.concatenate([_NONE_FOUND.places, *(postings.places[part] for part in slices)]),
        np.concatenate([_NONE_FOUND.weights, *(postings.weights[part] for part in slices)]),
    )
    return found, ends - starts


def _joined(arrays: Sequence[NDArray[Any]], kind: str) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *arrays])


def _size(record: Record) -> int:
    return _RECORD_BYTES + 2 * len(record.text) + _json_size(record.metadata)


def _json_size(value: object) -> int:
    if isinstance(value, str):
        return 2 * len(value)
    if isinstance(value, Mapping):
        return sum(100 + 2 * len(key) + _json_size(item) for key, item in value.items())
    return 50 * len(value) + sum(map(_json_size, value)) if isinstance(value, list | tuple) else 0


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
        limit: in bytes. A larger partition is read again by each search, in blocks.
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
                parts = [block.select(query, wanted).score(vector) for block in blocks]
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
            if count * (4 * self._dimensions + tokens + _ROW_BYTES) + passages > self._limit:
                return None
            points = self._new_points(count)
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

    def _new_points(self, capacity: int) -> Points:
        return Points(self._dimensions, capacity, token_dimensions=self._token_dimensions)

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
