"""Hits of a search in an SQLite file: the candidates that match, with their records and scores."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...ports.stores import Hit, Query
from ...types import Record
from ..shared import rows
from ..shared.late_interaction import Tokens, best_of_each, to_late
from . import records
from .filters import compile_filter
from .point_cache import PointCache, Reading
from .points import Floats, Scores

MOST_READ = 1024  # records at once
IDS = "SELECT value FROM json_each(?)"


class Late:
    """The best cosines of a query's tokens in candidates.

    Args:
        asked: the query's tokens; None if there are none.
    """

    def __init__(self, reading: Reading, table: str, asked: Tokens | None) -> None:
        self._reading = reading
        self._table = table
        self._asked = asked
        self._all: Floats | None = None

    def compute_all(self) -> Floats | None:
        """Compute those of all candidates; None if the tokens are not in memory."""
        candidates = self._reading.candidates
        if self._asked is not None and candidates.tokens is not None:
            self._all = candidates.tokens.best(self._asked, candidates.rows)
        return self._all

    def of(self, chosen: Sequence[int]) -> list[tuple[float, ...]]:
        """Compute those of some candidates."""
        candidates = self._reading.candidates
        if self._asked is None or not chosen:
            return [()] * len(chosen)
        if self._all is not None:
            return to_late(self._all[chosen])
        rows_ = candidates.rows[chosen]
        if candidates.tokens is not None:
            return to_late(candidates.tokens.best(self._asked, rows_))
        ids = [candidates.ids[row] for row in rows_.tolist()]
        sql = f"SELECT record, tokens FROM {self._table} WHERE record IN ({IDS})"
        found = dict(self._reading.connection.execute(sql, (json.dumps(ids),)).fetchall())
        return best_of_each(self._asked, [found[one] for one in ids])


class HitCollector:
    """Collector of the candidates that match a query.

    Attributes:
        lexical: of each candidate.
    """

    def __init__(self, cache: PointCache, reading: Reading, query: Query, late: Late) -> None:
        self.lexical: Scores = reading.candidates.lexical(query.terms)
        self._late = late
        self._cache = cache
        self._reading = reading
        self._candidates = reading.candidates
        self._query = query
        includes = (query.include_superseded, query.include_expired)
        is_narrower = query.as_of is not None or query.where is not None or bool(query.kinds)
        # Then the selection of points has decided.
        self._is_exact = not is_narrower and (all(includes) or not any(includes))
        self._read: dict[int, Record | None] = {}
        self._taken: dict[int, Record] = {}
        self._narrow: set[str] | None = None

    def take(self, order: Iterator[int], limit: int) -> None:
        """Take the first `limit` candidates of an order that match."""
        missing, size = limit, limit
        order = self._narrowed(order)
        while part := list(islice(order, size)):
            self._read_records([one for one in part if one not in self._read])
            for candidate in part:
                if (record := self._read[candidate]) is not None:
                    self._taken[candidate] = record
                    missing -= 1
                    if not missing:
                        return
            if self._narrow is None and len(self._read) > 4 * limit + 256:
                self._narrow = self._find_narrow()
                order = self._narrowed(order)
            size = min(2 * size, MOST_READ)

    def mean_late(self) -> Scores | None:
        """Compute the mean of the best cosines of the query's tokens, of each candidate.

        Returns:
            0 for a candidate without tokens; None if there are none, or they are not in memory.
        """
        if (values := self._late.compute_all()) is None:
            return None
        means: Scores = values.mean(axis=1, dtype=np.float64)
        means[np.isnan(means)] = 0.0
        return means

    def best_dense_first(self) -> list[Hit]:
        """List what was taken; ties by id."""
        at = list(self._taken)
        numbers = (self._candidates.dense, self.lexical, self._candidates.words)
        dense, lexical, words = (array[at].tolist() for array in numbers)
        found = zip(self._taken.values(), dense, lexical, words, self._late.of(at), strict=True)
        hits = [
            Hit(record=one, dense=d, lexical=x, words=n, late=late) for one, d, x, n, late in found
        ]
        return sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))

    def _narrowed(self, order: Iterator[int]) -> Iterator[int]:
        if (narrow := self._narrow) is None:
            return order
        ids, rows_ = self._candidates.ids, self._candidates.rows
        return (one for one in order if ids[rows_[one]] in narrow)

    def _read_records(self, candidates: Sequence[int]) -> None:
        """Read records; None for one that does not match."""
        rows_ = self._candidates.rows[candidates].tolist()
        cached = self._reading.records
        found = {one: cached.get(row) for one, row in zip(candidates, rows_, strict=True)}
        if None in found.values():
            found |= self._fetch(
                {one: row for one, row in zip(candidates, rows_, strict=True) if found[one] is None}
            )
        if not self._is_exact:
            matches = self._query.matches
            found = {n: one if one and matches(one) else None for n, one in found.items()}
        self._read |= found

    def _fetch(self, missing: dict[int, int]) -> dict[int, Record]:
        """Read the records of candidates, given with their rows, from the file."""
        numbers = {self._candidates.ids[row]: one for one, row in missing.items()}
        stored = self._reading.connection.execute(_READ, (json.dumps(list(numbers)),))
        found = {numbers[row[0]]: rows.to_record(row) for row in stored}
        self._cache.keep(self._reading, {missing[n]: one for n, one in found.items()})
        return found

    def _find_narrow(self) -> set[str] | None:
        """Find the ids of the records that may match by SQL, where most others do not."""
        condition = _condition(self._query)
        if condition is None:
            return None
        clause, values = rows.covered(self._query.scope)
        source = f"record {rows.index(self._query.scope, 'record')}"
        sql = f"SELECT id FROM {source} WHERE {clause} AND live = 1 AND {condition[0]}"
        return {id_ for (id_,) in self._reading.connection.execute(sql, (*values, *condition[1]))}


_READ = f"SELECT {records.COLUMNS} FROM record WHERE id IN ({IDS}) AND live = 1"


def _condition(query: Query) -> tuple[str, list[Any]] | None:
    """Build an SQL condition on `record` that is at least as wide as a query; None for none."""
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
    return (" AND ".join(conditions), values) if conditions else None
