"""Vector index in one JSON file: small, exact, and for one process."""

import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import numpy as np

from commonplace import InvalidVectorError, MemoryClosedError, Record, Scope, Settings
from commonplace.ports import Hit, IndexSpec, Point, Query, TokenEmbedding, check_meta


class Shelf(msgspec.Struct):
    """What the file holds: what the vectors depend on, and the points by record id."""

    meta: dict[str, str]
    points: dict[str, Point]


class ShelfIndex:
    """A `VectorIndex` that compares a query with every point of its scope."""

    def __init__(self, file: Path, *, dimensions: int, meta: Mapping[str, str]) -> None:
        wanted = {**meta, "dimensions": str(dimensions)}
        self._file = file
        self._dimensions = dimensions
        self._lock = threading.RLock()
        self._is_closed = False
        self._shelf = Shelf(meta=wanted, points={})
        if file.exists():
            self._shelf = msgspec.json.decode(file.read_bytes(), type=Shelf)
            check_meta(self._shelf.meta, wanted)

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Unite the `limit` best by vector and the `limit` best by terms; best dense first."""
        hits = self._hits(query, lambda _: limit > 0)
        by_terms = sorted(filter(lambda hit: hit.lexical, hits), key=lambda hit: -hit.lexical)
        best = {hit.record.id for hit in [*hits[:limit], *by_terms[:limit]]}
        return [hit for hit in hits if hit.record.id in best]

    def score(self, query: Query, turns: Collection[str], ids: Collection[str] = ()) -> list[Hit]:
        """Score the records of these turns and those with these ids; best dense first."""
        return self._hits(query, lambda record: record.turn in turns or record.id in ids)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points; one replaces the stored point of its id if its version is greater."""
        for point in points:
            for one in point.passages:
                self._check_vector(one.vector)
        with self._changing() as stored:
            for point in points:
                known = stored.get(point.record.id)
                if known is None or known.record.version < point.record.version:
                    first, *following = (
                        TokenEmbedding(vector=[float(number) for number in one.vector])
                        for one in point.passages
                    )
                    stored[point.record.id] = replace(
                        point,
                        record=_in_utc(point.record),
                        vector=first.vector,
                        following=tuple(following),
                    )

    def amend(self, records: Sequence[Record]) -> None:
        """Replace records that are stored and not newer; vectors and terms stay."""
        with self._changing() as stored:
            for record in records:
                known = stored.get(record.id)
                if known is not None and known.record.version <= record.version:
                    stored[record.id] = replace(known, record=_in_utc(record))

    def vectors(self, records: Sequence[Record]) -> dict[str, TokenEmbedding]:
        """Read the vectors of these records by id, where they are stored with the same text."""
        stored = self._points()
        return {
            record.id: TokenEmbedding(
                vector=stored[record.id].vector, following=stored[record.id].following
            )
            for record in records
            if record.id in stored and stored[record.id].record.indexed_text == record.indexed_text
        }

    def delete(self, scope: Scope | None, ids: Collection[str], version: int | None = None) -> None:
        """Remove these records where the scope covers them, except newer ones."""
        self._remove(scope, version, lambda record: record.id in ids)

    def erase(self, scope: Scope, version: int | None = None) -> int:
        """Remove all that the scope covers, except newer ones; return how many that were."""
        return self._remove(scope, version, lambda _: True)

    def count(self, scope: Scope) -> int:
        """Count the records that the scope covers."""
        return sum(scope.covers(point.record.scope) for point in self._points().values())

    def versions(self, scope: Scope | None) -> Iterator[tuple[str, int]]:
        """Iterate over (id, version) of every record that the scope covers, in no order."""
        records = [point.record for point in self._points().values()]
        return iter([(r.id, r.version) for r in records if scope is None or scope.covers(r.scope)])

    def flush(self) -> None:
        """Do nothing: a write returns when it is on the disk."""
        self._points()

    def close(self) -> None:
        """Refuse all calls from now on; repeating it does nothing."""
        self._is_closed = True

    def _points(self) -> dict[str, Point]:
        """Copy the points by id, for a call that reads."""
        if self._is_closed:
            raise MemoryClosedError
        with self._lock:
            return dict(self._shelf.points)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Point]]:
        """Change a copy of the points, and write it before anybody sees it."""
        with self._lock:
            changed = Shelf(meta=self._shelf.meta, points=self._points())
            yield changed.points
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft = self._file.with_suffix(".new")
            with draft.open("wb") as written:
                written.write(msgspec.json.encode(changed))
                written.flush()
                os.fsync(written.fileno())
            draft.replace(self._file)
            self._shelf = changed

    def _remove(
        self, scope: Scope | None, version: int | None, chosen: Callable[[Record], bool]
    ) -> int:
        with self._changing() as stored:
            gone = [
                key
                for key, point in stored.items()
                if (scope is None or scope.covers(point.record.scope))
                and (version is None or point.record.version <= version)
                and chosen(point.record)
            ]
            for key in gone:
                del stored[key]
            return len(gone)

    def _hits(self, query: Query, chosen: Callable[[Record], bool]) -> list[Hit]:
        """Score the records that match the query and are chosen; best dense first, ties by id."""
        self._check_vector(query.vector)
        covered = [p for p in self._points().values() if query.scope.covers(p.record.scope)]
        # The rarity of a term is counted in the scope, among all records that it covers.
        total = len(covered) + 0.5
        holders = Counter(index for point in covered for index in point.terms.indices)
        asked = {
            index: weight * math.log1p((total - holders[index]) / (holders[index] + 0.5))
            for index, weight in zip(query.terms.indices, query.terms.weights, strict=True)
        }
        hits = []
        for point in covered:
            if query.matches(point.record) and chosen(point.record):
                held = dict(zip(point.terms.indices, point.terms.weights, strict=True))
                # The nearest passage of a long text counts.
                vectors = [one.vector for one in point.passages]
                cosines = [float(np.dot(query.vector, vector)) for vector in vectors]
                best = cosines.index(max(cosines))
                hit = Hit(
                    record=point.record,
                    dense=cosines[best],
                    lexical=sum(asked[index] * held.get(index, 0.0) for index in asked),
                    words=point.words,
                    terms=tuple(held.get(index, 0.0) for index in asked),
                    vector=vectors[best],
                    passages=tuple(cosines) if point.following else (),
                )
                hits.append(hit)
        return sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))

    def _check_vector(self, vector: Sequence[float]) -> None:
        expected, got = self._dimensions, len(vector)
        if got != expected:
            raise InvalidVectorError(reason="has the wrong length", expected=expected, got=got)
        length = np.linalg.norm(vector)
        if not np.isfinite(length):
            raise InvalidVectorError(reason="is not finite", expected=expected, got=got)
        if length < 1e-6:
            raise InvalidVectorError(reason="is zero", expected=expected, got=got)


class ShelfEngine:
    """An `IndexEngine`: `shelf:///folder` is a file in that folder."""

    def open_index(self, url: str, spec: IndexSpec, settings: Settings) -> ShelfIndex:
        """Open or create an index."""
        file = _file(url, spec.generation)
        return ShelfIndex(file, dimensions=spec.dimensions, meta=spec.meta)

    def drop_index(self, url: str, generation: int, settings: Settings) -> None:
        """Remove the file of a generation; a missing one is ignored."""
        _file(url, generation).unlink(missing_ok=True)


def _file(url: str, generation: int) -> Path:
    return Path(unquote(urlsplit(url).path)) / f"shelf-{generation}.json"


def _in_utc(record: Record) -> Record:
    held = {field.name: getattr(record, field.name) for field in fields(record)}
    times: dict[str, Any] = {
        name: value.astimezone(UTC) for name, value in held.items() if isinstance(value, datetime)
    }
    return replace(record, **times)
