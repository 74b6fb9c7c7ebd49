"""Exact vector index in an SQLite file, with the points of the owners in use in memory.

A point is a row of the table `point`. Each change of one gets the next number of its partition, and
each removal is counted, so that `PointCache` knows what to load. Records are read from the table
`record` of the same file.
"""

import json
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from sqlite3 import Connection
from typing import Any, NamedTuple

import numpy as np

from ...errors import StoreUnavailableError
from ...filters import required_namespace
from ...ports.engines import check_meta, has_tokens
from ...ports.stores import Hit, Point, Query
from ...types import Record, Scope, TokenEmbedding
from ..shared import rows
from ..shared.late_interaction import asked_tokens, best_of_each, best_passages, to_late
from ..shared.rows import Tokens, pack_passages, to_tokens, to_vector, unpack_passages
from . import namespaces, record_tables
from .candidate_points import Floats, Numbers, Scores
from .connection import ConnectionHandle, SqliteConnection, create_tables, insert_many, one_of
from .filters import compile_filter
from .point_cache import PointCache, Reading, Wanted

_SCHEMA = """
CREATE TABLE IF NOT EXISTS {point} (
  record TEXT NOT NULL, partition TEXT NOT NULL, user_id TEXT, agent_id TEXT,
  session_id TEXT, version INTEGER NOT NULL, change INTEGER NOT NULL, turn TEXT, until INTEGER,
  words INTEGER NOT NULL, digest INTEGER NOT NULL, terms BLOB NOT NULL, weights BLOB NOT NULL,
  vector BLOB NOT NULL, tokens BLOB NOT NULL DEFAULT x'', passages BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS {point}_by_record ON {point} (record);
CREATE INDEX IF NOT EXISTS {point}_by_partition ON {point} (partition, change);
CREATE TABLE IF NOT EXISTS {point}_change (
  partition TEXT PRIMARY KEY, written INTEGER NOT NULL, removed INTEGER NOT NULL
) STRICT, WITHOUT ROWID
"""
_MOST_READ = 1024  # records at once
_IDS = "SELECT value FROM json_each(?)"
_READ = f"SELECT {record_tables.COLUMNS} FROM record WHERE id IN ({_IDS}) AND live = 1"
_CACHE_BYTES = 256 * 2**20
_MOST_DIMENSIONS = 2**20
_META_KEY = re.compile(r"index(?:_([1-9][0-9]{0,8}))?", re.ASCII)
_ALL_TOKENS = 750  # records of which all tokens are compared; of more, only those of the best


class _PointRow(NamedTuple):
    """A point as the columns of a row: see `_SCHEMA`.

    `vector` and `tokens` are of the first passage, `passages` has those of the others.
    """

    record: str
    partition: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    version: int
    change: int
    turn: str | None
    until: int | None
    words: int
    digest: int
    terms: bytes
    weights: bytes
    vector: bytes
    tokens: bytes
    passages: bytes


_AMENDED = _PointRow._fields[1:9]


class SqliteIndex:
    """A `VectorIndex` on a connection that engines share; closing it releases only its part.

    A copy with another `_handle` writes in the transaction of that; its searches do not see what is
    not committed.

    Args:
        dimensions, meta, token_dimensions: as in `IndexSpec`.
        generation: from 1; each has tables of its own.
        keeps_records: no graph store writes the records to this file, so the index does.
        cache_bytes: of loaded points and records; beyond it the owners used least recently are
            dropped. The points of an owner who has more are read from the file by each search.

    Raises:
        SchemaMismatchError: the generation was made with other `meta`; nothing was changed.
        StoreUnavailableError: its stored `meta` is damaged.
    """

    def __init__(
        self,
        connection: SqliteConnection,
        *,
        dimensions: int,
        meta: Mapping[str, str],
        token_dimensions: int = 0,
        generation: int = 1,
        keeps_records: bool = False,
        cache_bytes: int = _CACHE_BYTES,
    ) -> None:
        self._dimensions = dimensions
        self._keeps_records = keeps_records
        self._table = table = table_name(generation)
        wanted = {**meta, "dimensions": str(dimensions)}
        stored = connection.write(
            lambda c: _create(c, generation, wanted, keeps_records=keeps_records)
        )
        self._token_dimensions = token_dimensions if has_tokens(stored, wanted) else 0
        fields = _PointRow._fields
        updates = ", ".join(f"{field} = excluded.{field}" for field in fields[1:])
        self._replace = f" ON CONFLICT (record) DO UPDATE SET {updates}"
        amended = ", ".join(f"{field} = ?" for field in _AMENDED)
        self._amend = f"UPDATE {table} SET {amended} WHERE record = ?"
        self._handle = ConnectionHandle(connection)
        # With the handle of the file: what a transaction has not committed must not be loaded.
        self._cache = PointCache(
            self._handle.read,
            table,
            dimensions=dimensions,
            token_dimensions=self._token_dimensions,
            limit=cache_bytes,
        )

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector, by terms and by tokens; best dense first."""
        vector: Floats = to_vector(query.vector, self._dimensions)
        if limit < 1:
            return []
        with self._cache.select(query, vector, partial(self._in_namespace, query)) as reading:
            candidates = reading.candidates
            found = self._hits(reading, query)
            found.take(candidates.best(candidates.dense, limit), limit)
            if query.terms.indices:
                found.take(candidates.best(found.lexical, limit, above=0.0), limit)
            half = (limit + 1) // 2  # all would find hardly more, and ranking takes time
            if len(candidates.rows) <= _ALL_TOKENS and (scores := found.mean_late()) is not None:
                found.take(candidates.best(scores, half, above=0.0), half)
            return found.best_dense_first()

    def _hits(self, reading: Reading, query: Query) -> "_HitCollector":
        asked = asked_tokens(query, self._token_dimensions)
        return _HitCollector(self._cache, reading, query, self._table, asked)

    def _in_namespace(self, query: Query, connection: Connection) -> Wanted | None:
        """Choose the records of a small namespace, if a query asks for no others; None for all."""
        namespace = None if query.where is None else required_namespace(query.where)
        if namespace is None or self._keeps_records:
            return None
        ids = namespaces.records_in(connection, query.scope, namespace, _MOST_READ)
        return None if ids is None else Wanted((), ids)

    def score(self, query: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records of these turns, or with these ids, in all ways; best dense first."""
        vector: Floats = to_vector(query.vector, self._dimensions)
        if not turns and not ids:
            return []
        with self._cache.select(query, vector, lambda _: Wanted(turns, ids)) as reading:
            found = self._hits(reading, query)
            number = len(reading.candidates.rows)
            found.take(iter(range(number)), max(number, 1))
            return found.best_dense_first()

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points in one transaction; a version that is not greater is ignored."""
        if not points:
            return
        newest: dict[str, tuple[Point, list[Floats]]] = {}
        for point in points:
            record = point.record
            given = [point.vector, *(one.vector for one in point.following)]
            vectors = [to_vector(vector, self._dimensions) for vector in given]
            if record.id not in newest or record.version > newest[record.id][0].record.version:
                newest[record.id] = point, vectors

        def write(connection: Connection) -> None:
            stored = self._stored(connection, newest)
            changes = _Changes(connection, self._table)
            written: list[_PointRow] = []
            for point, vectors in newest.values():
                record, before = point.record, stored.get(point.record.id)
                if before is None or record.version > before[0]:
                    change = changes.write(record.scope.partition, before and before[1])
                    written.append(_to_row(point, vectors, self._token_dimensions, change))
            insert_many(connection, self._table, _PointRow._fields, written, self._replace)
            changes.save()
            self._put_records(connection, [newest[row.record][0].record for row in written])

        self._handle.write(write)

    def amend(self, records: Sequence[Record]) -> None:
        """Replace what is stored of records that are there and not newer, except their text."""
        if not records:
            return

        def write(connection: Connection) -> None:
            stored = self._stored(connection, [record.id for record in records])
            changes = _Changes(connection, self._table)
            written = []
            for record in records:
                before = stored.get(record.id)
                if before is None or record.version < before[0]:
                    continue
                partition = record.scope.partition
                change = changes.write(partition, before[1])
                connection.execute(self._amend, (*_amended(record, change), record.id))
                stored[record.id] = (record.version, partition)
                written.append(record)
            changes.save()
            self._put_records(connection, written)

        self._handle.write(write)

    def vectors(self, records: Sequence[Record]) -> dict[str, TokenEmbedding]:
        """Read the vectors of these records, where they are stored with the same text."""
        if not records:
            return {}
        asked = {record.id: record for record in records}
        fields = "record, digest, vector, tokens, passages"
        sql = f"SELECT {fields} FROM {self._table} WHERE record IN ({_IDS})"
        with self._handle.read() as connection:
            found = connection.execute(sql, (json.dumps(list(asked)),)).fetchall()
        return {
            id_: TokenEmbedding(
                vector=np.frombuffer(vector, "<f4").tolist(),
                tokens=tokens if self._token_dimensions else b"",
                following=rows.to_embeddings(passages, has_tokens=self._token_dimensions > 0),
            )
            for id_, digest, vector, tokens, passages in found
            if digest == _digest(asked[id_])
        }

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, those that are newer excepted."""
        if ids:
            source = f"{self._table} INDEXED BY {self._table}_by_record WHERE record IN ({_IDS})"
            self._remove(source, [json.dumps(list(ids))], scope, version)

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove every record that the scope covers, newer ones excepted; return how many."""
        source = f"{self._table} INDEXED BY {self._table}_by_partition WHERE TRUE"
        removed = self._remove(source, [], scope, version)
        self._cache.drop(scope.partition)
        return removed

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers, superseded and expired ones included."""
        clause, values = rows.covered(scope, by_partition=True)
        source = f"{self._table} INDEXED BY {self._table}_by_partition"
        with self._handle.read() as connection:
            sql = f"SELECT count(*) FROM {source} WHERE {clause}"
            return int(connection.execute(sql, values).fetchone()[0])

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of every record that the scope covers, in no order."""
        values: list[Any] = []
        source = f"{self._table} INDEXED BY {self._table}_by_record WHERE record > ''"
        if scope is not None:
            clause, values = rows.covered(scope, by_partition=True)
            source = f"{self._table} INDEXED BY {self._table}_by_partition WHERE {clause}"
        with self._handle.read() as connection:
            yield from connection.execute(f"SELECT record, version FROM {source}", values)

    def flush(self) -> None:
        """Return: every write is on the disk when it returns."""
        with self._handle.read():
            pass

    def close(self) -> None:
        """Release the connection and what is loaded; repeating it does nothing."""
        self._handle.close()
        self._cache.clear()

    def _stored(self, connection: Connection, ids: Iterable[str]) -> dict[str, tuple[int, str]]:
        """Read version and partition of the points of these records."""
        condition, asked = one_of("record", list(ids))
        sql = f"SELECT record, version, partition FROM {self._table} WHERE {condition}"
        found = connection.execute(sql, (asked,))
        return {record: (version, partition) for record, version, partition in found}

    def _put_records(self, connection: Connection, written: Sequence[Record]) -> None:
        if self._keeps_records:
            for record in written:
                record_tables.write(connection, record)

    def _remove(
        self, source: str, given: Sequence[Any], scope: Scope | None, version: int | None
    ) -> int:
        conditions, values = [source], list(given)
        if scope is not None:
            clause, more = rows.covered(scope, by_partition=True)
            conditions.append(clause)
            values += more
        if version is not None:
            conditions.append("version <= ?")
            values.append(version)
        sql = f"DELETE FROM {' AND '.join(conditions)} RETURNING record, partition"

        def write(connection: Connection) -> int:
            gone = connection.execute(sql, values).fetchall()
            changes = _Changes(connection, self._table)
            for _, partition in gone:
                changes.remove(partition)
            changes.save()
            if self._keeps_records:
                ids = json.dumps([record for record, _ in gone])
                connection.execute(f"DELETE FROM record WHERE id IN ({_IDS})", (ids,))
            return len(gone)

        return self._handle.write(write)


class _HitCollector:
    """Collector of the candidates that match a query.

    Attributes:
        lexical: of each candidate.
    """

    def __init__(
        self, cache: PointCache, reading: Reading, query: Query, table: str, asked: Tokens | None
    ) -> None:
        self.lexical: Scores = reading.candidates.lexical(query.terms)
        self._cache = cache
        self._reading = reading
        self._candidates = reading.candidates
        self._query = query
        self._table = table
        self._asked = asked
        self._cosines: Floats | None = None  # of the query's tokens, in all candidates
        includes = (query.include_superseded, query.include_expired)
        is_narrower = query.as_of is not None or query.where is not None or bool(query.kinds)
        # Then the selection of points has decided.
        self._is_exact = not is_narrower and (all(includes) or not any(includes))
        self._read: dict[int, Record | None] = {}
        self._taken: dict[int, Record] = {}
        self._narrow: set[str] | None = None

    def take(self, order: Iterator[int], limit: int) -> None:
        """Take the first `limit` candidates of an order that match."""
        if len(self._taken) == len(self._candidates.rows):
            return  # none is left
        missing, size = limit, limit
        order = self._narrowed(order)
        while part := list(islice(order, size)):
            self._read_records([candidate for candidate in part if candidate not in self._read])
            for candidate in part:
                if (record := self._read[candidate]) is not None:
                    self._taken[candidate] = record
                    missing -= 1
                    if not missing:
                        return
            if self._narrow is None and len(self._read) > 4 * limit + 256:
                self._narrow = self._find_narrow()
                order = self._narrowed(order)
            size = min(2 * size, _MOST_READ)

    def mean_late(self) -> Scores | None:
        """Compute the mean of the best cosines of the query's tokens, for each candidate.

        Of a candidate with several passages, in the first one: in all it would take long.

        Returns:
            0 for a candidate without tokens; None if the query has none, or they are not in memory.
        """
        candidates = self._candidates
        if self._asked is None or candidates.tokens is None:
            return None
        self._cosines = candidates.tokens.among(candidates.rows).best(self._asked)
        means: Scores = self._cosines.mean(axis=1, dtype=np.float64)
        means[np.isnan(means)] = 0.0
        return means

    def best_dense_first(self) -> list[Hit]:
        """List what was taken; ties by id."""
        candidates, taken = self._candidates, self._taken
        at = candidates.best_first(np.fromiter(taken, np.intp, len(taken)))
        chosen = np.array(at, np.intp)
        numbers = (candidates.dense, self.lexical, candidates.words)
        dense, lexical, words = (array[chosen].tolist() for array in numbers)
        late, terms = self._late(chosen), candidates.weights(chosen)
        scored = candidates.passages
        passages = [scored.cosines(one) for one in at] if scored else [()] * len(at)
        records = [taken[one] for one in at]
        columns = (records, dense, lexical, words, late, terms, self._vectors(chosen))
        return [
            Hit(
                record=record, dense=cosine, lexical=product, words=length, late=best,
                terms=weights, vector=vector, passages=parts,
            )
            for record, cosine, product, length, best, weights, vector, parts in zip(
                *columns, passages, strict=True
            )
        ]  # fmt: skip

    def _late(self, chosen: Numbers) -> list[tuple[float, ...]]:
        """Compute the best cosines of the query's tokens in some candidates."""
        candidates = self._candidates
        if self._asked is None or not len(chosen):
            return [()] * len(chosen)
        if candidates.tokens is None:
            stored = [[tokens for _, tokens in parts] for parts in self._stored(chosen)]
            return best_of_each(self._asked, stored)
        if candidates.passages is not None:
            tokens, owners = candidates.tokens_of(chosen)
            return to_late(best_passages(tokens.best(self._asked), owners))
        if self._cosines is not None:
            return to_late(self._cosines[chosen])
        return to_late(candidates.tokens.among(candidates.rows[chosen]).best(self._asked))

    def _vectors(self, chosen: Numbers) -> Sequence[Floats]:
        """Read the vectors of some candidates."""
        candidates = self._candidates
        if candidates.vectors is None:
            numbers = candidates.passages.number if candidates.passages else lambda _: 0
            best = zip(chosen.tolist(), self._stored(chosen), strict=True)
            return [np.frombuffer(parts[numbers(one)][0], "<f4") for one, parts in best]
        vectors = list(candidates.vectors[candidates.rows[chosen]])
        if candidates.passages is not None and candidates.further is not None:
            for n, one in enumerate(chosen.tolist()):
                if number := candidates.passages.number(one):
                    place = candidates.passages.further_places(one)[number - 1]
                    vectors[n] = candidates.further.vectors[place]
        return vectors

    def _stored(self, chosen: Numbers) -> list[list[tuple[bytes, bytes]]]:
        """Read vector and tokens of each passage of some candidates from the file."""
        candidates = self._candidates
        ids = [candidates.ids[row] for row in candidates.rows[chosen].tolist()]
        fields = "record, vector, tokens, passages"
        sql = f"SELECT {fields} FROM {self._table} WHERE record IN ({_IDS})"
        stored = {
            record: [(vector, tokens), *unpack_passages(passages)]
            for record, vector, tokens, passages in self._reading.connection.execute(
                sql, (json.dumps(ids),)
            )
        }
        return [stored[record] for record in ids]

    def _narrowed(self, order: Iterator[int]) -> Iterator[int]:
        if (narrow := self._narrow) is None:
            return order
        ids, point_rows = self._candidates.ids, self._candidates.rows
        return (candidate for candidate in order if ids[point_rows[candidate]] in narrow)

    def _read_records(self, candidates: Sequence[int]) -> None:
        """Read records; None for one that does not match."""
        point_rows = self._candidates.rows[candidates].tolist()
        cached = self._reading.records
        row_of = dict(zip(candidates, point_rows, strict=True))
        found = {candidate: cached.get(row) for candidate, row in row_of.items()}
        if missing := {n: row for n, row in row_of.items() if found[n] is None}:
            found |= self._fetch(missing)
        if not self._is_exact:
            matches = self._query.matches
            found = {n: one if one and matches(one) else None for n, one in found.items()}
        self._read |= found

    def _fetch(self, missing: dict[int, int]) -> dict[int, Record]:
        """Read the records of candidates, given with their rows, from the file."""
        numbers = {self._candidates.ids[row]: candidate for candidate, row in missing.items()}
        stored = self._reading.connection.execute(_READ, (json.dumps(list(numbers)),))
        found = {numbers[row[0]]: rows.to_record(row) for row in stored}
        self._cache.keep(self._reading, {missing[n]: record for n, record in found.items()})
        return found

    def _find_narrow(self) -> set[str] | None:
        """Find the ids of the records that may match by SQL, where most others do not."""
        query = self._query
        conditions: list[str] = []
        values: list[Any] = []
        if query.kinds:
            conditions.append(f"kind IN ({', '.join('?' * len(query.kinds))})")
            values += query.kinds
        if query.as_of is not None:
            conditions.append("occurred_at <= ? AND (valid_to IS NULL OR valid_to > ?)")
            values += [rows.to_micros(query.as_of)] * 2
        if query.where is not None:
            sql, operands = compile_filter(query.where)
            conditions += [] if sql == "1" else [f"({sql})"]
            values += operands
        if not conditions:
            return None
        clause, covered = rows.covered(query.scope)
        source = f"record {rows.index(query.scope, 'record')}"
        where = " AND ".join([clause, "live = 1", *conditions])
        sql = f"SELECT id FROM {source} WHERE {where}"
        return {id_ for (id_,) in self._reading.connection.execute(sql, (*covered, *values))}


def drop_points(connection: SqliteConnection, generation: int) -> None:
    """Remove one generation of the index of a file; a missing one is ignored."""
    table = table_name(generation)

    def drop(connection: Connection) -> None:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"DROP TABLE IF EXISTS {table}_change")
        connection.execute("DELETE FROM meta WHERE key = ?", (_meta_key(generation),))

    connection.write(drop)


class _Changes:
    """Numbers of the changes of each partition within a transaction."""

    def __init__(self, connection: Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self._counters: dict[str, list[int]] = {}

    def write(self, partition: str, former: str | None) -> int:
        """Count a point that is written, and its removal from another partition; number it."""
        if former is not None and former != partition:
            self.remove(former)
        counters = self._of(partition)
        counters[0] += 1
        return counters[0]

    def remove(self, partition: str) -> None:
        """Count a point that is removed."""
        self._of(partition)[1] += 1

    def save(self) -> None:
        """Store the numbers."""
        sql = f"INSERT OR REPLACE INTO {self._table}_change VALUES (?, ?, ?)"
        values = [(partition, *counters) for partition, counters in self._counters.items()]
        self._connection.executemany(sql, values)

    def _of(self, partition: str) -> list[int]:
        if (counters := self._counters.get(partition)) is None:
            sql = f"SELECT written, removed FROM {self._table}_change WHERE partition = ?"
            row = self._connection.execute(sql, (partition,)).fetchone()
            counters = self._counters[partition] = list(row or (0, 0))
        return counters


def table_name(generation: int) -> str:
    """Name the table of the points of a generation; `{table}_change` has the counters."""
    return "point" if generation == 1 else f"point_{generation}"


def parse_meta(key: str, value: str) -> tuple[int, dict[str, str]] | None:
    """Parse a row of the table `meta`: the number of a generation, and what it was made with.

    Returns:
        None if it is another row, or one that is damaged.
    """
    found = _META_KEY.fullmatch(key)
    if found is None:
        return None
    try:
        meta = json.loads(value)
        is_sound = all(isinstance(text, str) for text in meta.values())
        is_sound = is_sound and 0 < int(meta["dimensions"]) <= _MOST_DIMENSIONS
    except (ValueError, AttributeError, KeyError):
        return None
    return (int(found[1] or 1), meta) if is_sound else None


def _meta_key(generation: int) -> str:
    return "index" if generation == 1 else f"index_{generation}"


def _create(
    connection: Connection, generation: int, wanted: Mapping[str, str], *, keeps_records: bool
) -> Mapping[str, str]:
    """Create what is missing; return what the points were made with."""
    key, table = _meta_key(generation), table_name(generation)
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    create_tables(connection, _SCHEMA.format(point=table))
    columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
    for name in [one for one in ("tokens", "passages") if one not in columns]:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} BLOB NOT NULL DEFAULT x''")
    made = wanted
    if row is None:  # points of an unknown embedder, in a damaged file, cannot be used
        connection.execute(f"DELETE FROM {table}")
        connection.execute("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(wanted)))
    elif (stored := parse_meta(key, row[0])) is None:
        reason = "what its vectors were made with cannot be read; run `commonplace reindex`"
        raise StoreUnavailableError(store="the index", reason=reason)
    else:
        made = stored[1]
        check_meta(made, wanted)
    if keeps_records:
        record_tables.create(connection)
    return made


def _digest(record: Record) -> int:
    """Digest of the text that the vector is of: the stored record may have a newer text."""
    text = record.indexed_text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def _until(record: Record) -> int | None:
    if record.expires_at is None and record.valid_to is None:
        return None
    ends = [rows.to_micros(at) for at in (record.expires_at, record.valid_to) if at is not None]
    return min(ends, default=None)


def _to_row(
    point: Point, vectors: Sequence[Floats], token_dimensions: int, change: int
) -> _PointRow:
    """Convert a point; `vectors` are those of its passages, checked."""
    record, terms = point.record, point.terms
    tokens = [b""] * len(vectors)
    if token_dimensions:
        tokens = [to_tokens(one.tokens, token_dimensions).tobytes() for one in point.passages]
    columns = (
        record.id,
        *_amended(record, change),
        point.words,
        _digest(record),
        struct.pack(f"<{len(terms.indices)}I", *terms.indices),
        struct.pack(f"<{len(terms.weights)}f", *terms.weights),
        vectors[0].astype("<f4", copy=False).tobytes(),
        tokens[0],
        pack_passages(vectors[1:], tokens[1:]),
    )
    return _PointRow._make(columns)


def _amended(record: Record, change: int) -> tuple[Any, ...]:
    """List the values of `_AMENDED`."""
    scope = record.scope
    ids = (scope.partition, scope.user_id, scope.agent_id, scope.session_id)
    return (*ids, record.version, change, record.turn, _until(record))
