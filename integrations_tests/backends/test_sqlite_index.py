"""The index in the SQLite file keeps its contract, and what is loaded is always what is stored."""

import contextlib
import copy
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pytest

from commonplace.backends.shared import rows
from commonplace.backends.sqlite import point_cache
from commonplace.backends.sqlite.connection import SqliteConnection, TransactionHandle
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.backends.sqlite.index import SqliteIndex, drop_points
from commonplace.backends.sqlite.point_cache import _ROW_BYTES, PointCache, Points
from commonplace.errors import InvalidVectorError, SchemaMismatchError, StoreUnavailableError
from commonplace.filters import parse_filter
from commonplace.ports.stores import Hit, Point, Put, Query, Terms
from commonplace.testing.contracts.index import (
    DIMENSIONS,
    NOW,
    TOKEN_DIMENSIONS,
    VectorIndexContract,
    make_point,
    make_query,
    make_tokens,
)
from commonplace.types import Record, Scope

from .query_plans import each_kind_of_scope, note_statements, plans_of, scans_of

ANNA = Scope(user_id="anna")
BEN = Scope(user_id="ben")
META = {"schema": "1", "embedder": "test@1"}
HOUR = timedelta(hours=1)


def opened(folder: Path, **options: Any) -> SqliteIndex:
    connection = SqliteConnection(str(folder / "memory.db"))
    options = {"dimensions": DIMENSIONS, "meta": META, "keeps_records": True, **options}
    return SqliteIndex(connection, **options)


def texts(index: SqliteIndex, query: Query) -> set[str]:
    return {hit.record.text for hit in index.search(query, 100)}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    made = opened(tmp_path)
    yield made
    made.close()


TOKENS = {"token_dimensions": TOKEN_DIMENSIONS, "meta": {**META, "tokens": "test@1/tokens"}}


@pytest.fixture
def token_index(tmp_path: Path) -> Iterator[SqliteIndex]:
    made = opened(tmp_path, **TOKENS)
    yield made
    made.close()


class TestSqliteIndex(VectorIndexContract):
    """The shipped contract, with all points in memory."""


class TestSqliteIndexInBlocks(VectorIndexContract):
    """The shipped contract, with no points in memory."""

    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        made = opened(tmp_path, cache_bytes=0)
        yield made
        made.close()

    @pytest.fixture
    def token_index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        made = opened(tmp_path, cache_bytes=0, **TOKENS)
        yield made
        made.close()


@pytest.fixture
def small_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load small vectors of every partition, as of one that would be too large otherwise."""
    make = PointCache._new_points
    monkeypatch.setattr(
        PointCache, "_new_points", lambda *given, is_small=True: make(*given, is_small=is_small)
    )


@pytest.mark.usefixtures("small_vectors")
class TestSqliteIndexOfSmallVectors(VectorIndexContract):
    """The shipped contract, with small vectors in memory."""

    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        made = opened(tmp_path)
        yield made
        made.close()

    @pytest.fixture
    def token_index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        made = opened(tmp_path, **TOKENS)
        yield made
        made.close()


def direction(number: int) -> tuple[float, float]:
    """Make the token that tells a point: its first coordinate, from 0 to 1, is of its number."""
    first = number % 101 / 100
    return first, (1 - first * first) ** 0.5


def near_by_tokens(number: int) -> list[Point]:
    """Make points of which the last is far by vector, has no terms, and is nearest by tokens."""
    others = [
        make_point(f"p{n}", ANNA, 1.0, n / 1000, terms={1: 1.0}, tokens=make_tokens((0, 1)))
        for n in range(number - 1)
    ]
    return [*others, make_point("last", ANNA, 0.0, 1.0, tokens=make_tokens((0, 1), (1, 0)))]


@pytest.mark.parametrize(("number", "is_found"), [(750, True), (751, False)])
def test_tokens_find_records_by_themselves_in_a_small_scope(
    token_index: SqliteIndex, number: int, is_found: bool
) -> None:
    token_index.upsert(near_by_tokens(number))
    asked = make_query(terms=(1,), tokens=make_tokens((1, 0)))

    found = token_index.search(asked, 1)

    assert is_found == ("last" in {hit.record.text for hit in found})
    assert all(hit.late for hit in found)


def test_tokens_stay_with_their_points_when_others_are_removed(token_index: SqliteIndex) -> None:
    # In three blocks of records, some with more tokens than others.
    told = [(n, BEN if n % 5 == 4 else ANNA) for n in range(1200)]
    token_index.upsert(
        [
            make_point(f"p{n}", scope, tokens=make_tokens(*[(0, 1)] * (n % 3), direction(n)))
            for n, scope in told
        ]
    )
    asked = make_query(tokens=make_tokens((1, 0)))
    for gone in (set[int](), {n for n, _ in told if n % 7 == 0}):
        ids = [ANNA.record_id("fact", f"p{n}") for n in gone]
        token_index.delete(None, ids)
        left = {f"p{n}": n for n, scope in told if scope == ANNA and n not in gone}
        chosen = [ANNA.record_id("fact", one) for one in left]
        found = {hit.record.text: hit.late for hit in token_index.score(asked, (), chosen)}
        assert found.keys() == left.keys()
        for text, (cosine,) in found.items():
            assert cosine == pytest.approx(direction(left[text])[0], abs=0.01)


@pytest.mark.parametrize("space", [None, "test@1/other tokens"])
def test_points_with_other_tokens_are_searched_without(tmp_path: Path, space: str | None) -> None:
    meta = META if space is None else {**META, "tokens": space}
    with contextlib.closing(opened(tmp_path, meta=meta, token_dimensions=2)) as made:
        made.upsert([make_point("old", tokens=make_tokens((1, 0)))])

    with contextlib.closing(opened(tmp_path, **TOKENS)) as index:
        index.upsert([make_point("new", tokens=make_tokens((1, 0)))])
        found = index.search(make_query(tokens=make_tokens((1, 0))), 5)

    assert {("old", ()), ("new", ())} == {(hit.record.text, hit.late) for hit in found}


def test_a_file_from_before_tokens_takes_the_column(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path)) as made:
        made.upsert([make_point("old")])
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    connection.write(lambda c: c.execute("ALTER TABLE point DROP COLUMN tokens"))
    connection.close()

    with contextlib.closing(opened(tmp_path, **TOKENS)) as index:
        index.upsert([make_point("new", tokens=make_tokens((1, 0)))])

        assert {"old", "new"} == texts(index, make_query(tokens=make_tokens((1, 0))))


def test_tokens_of_a_wrong_length_are_refused(token_index: SqliteIndex) -> None:
    with pytest.raises(InvalidVectorError):
        token_index.upsert([make_point("good"), make_point("bad", tokens=b"123")])
    with pytest.raises(InvalidVectorError):
        token_index.search(make_query(tokens=b"12345"), 5)

    assert 0 == token_index.count(ANNA)


def test_damaged_tokens_are_told_and_not_shifted(tmp_path: Path) -> None:
    with contextlib.closing(opened(tmp_path, **TOKENS)) as made:
        made.upsert([make_point(f"p{n}", tokens=make_tokens((1, 0))) for n in range(2)])
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    connection.write(lambda c: c.execute("UPDATE point SET tokens = substr(tokens, 1, 2)"))
    connection.close()

    with (
        contextlib.closing(opened(tmp_path, **TOKENS)) as index,
        pytest.raises(StoreUnavailableError),
    ):
        index.search(make_query(tokens=make_tokens((1, 0))), 5)


def test_loaded_tokens_count_in_the_cache(token_index: SqliteIndex) -> None:
    token_index.upsert([make_point(f"p{n}", tokens=make_tokens(*[(0, 1)] * 50)) for n in range(9)])
    bare = make_query()
    token_index.search(bare, 5)
    full = token_index._cache._bytes

    token_index.upsert(
        [make_point(f"p{n}", version=2, tokens=make_tokens((0, 1))) for n in range(9)]
    )
    token_index.search(bare, 5)
    token_index.upsert([make_point("p0", version=3)])  # more dead rows than others
    token_index.search(bare, 5)

    assert full - token_index._cache._bytes > 9 * 40 * TOKEN_DIMENSIONS


def exact(points: Sequence[Point], query: Query, limit: int) -> list[tuple[Record, float, float]]:
    """Search by looking at every point, one number at a time."""
    covered = [one for one in points if query.scope.covers(one.record.scope)]
    rarity = {}
    for term in query.terms.indices:
        n = sum(term in one.terms.indices for one in covered)
        rarity[term] = np.log(1 + (len(covered) - n + 0.5) / (n + 0.5))
    found = []
    for one in covered:
        weights = dict(zip(one.terms.indices, one.terms.weights, strict=True))
        asked = zip(query.terms.indices, query.terms.weights, strict=True)
        lexical = sum(w * rarity[term] * weights[term] for term, w in asked if term in weights)
        dense = sum(a * b for a, b in zip(one.vector, query.vector, strict=True))
        if query.matches(one.record):
            found.append((one.record, round(float(dense), 6), round(float(lexical), 6)))
    nearest = sorted(found, key=lambda one: (-one[1], one[0].id))[:limit]
    words = sorted(found, key=lambda one: (-one[2], one[0].id))[:limit]
    both = {one[0].id: one for one in [*nearest, *(one for one in words if one[2] > 0)]}
    return sorted(both.values(), key=lambda one: (-one[1], one[0].id))


def assert_exact(hits: Sequence[Hit], points: Sequence[Point], query: Query, limit: int) -> None:
    wanted = exact(points, query, limit)
    assert [one[0] for one in wanted] == [hit.record for hit in hits]
    assert [one[1] for one in wanted] == pytest.approx([hit.dense for hit in hits], abs=2e-6)
    assert [one[2] for one in wanted] == pytest.approx([hit.lexical for hit in hits], abs=2e-5)


class History:
    """Random changes of an index and the points that it should have after each."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.points: dict[str, Point] = {}
        self.version = 0

    def choose(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def scope(self) -> Scope:
        return Scope(
            user_id=self.choose("anna", "anna", "ben"),
            agent_id=self.choose(None, "one", "two"),
            session_id=self.choose(None, "mon", "tue"),
        )

    def moment(self) -> Any:
        return self.choose(None, None, NOW - HOUR, NOW, NOW + HOUR)

    def point(self, n: int) -> Point:
        self.version += 1
        scope = Scope(user_id="ben" if n % 3 == 0 else "anna", agent_id=("one", None, "two")[n % 3])
        if n % 2:
            scope = replace(scope, session_id=("mon", "tue")[n % 4 // 2])
        terms = {int(one): float(self.rng.integers(1, 4)) for one in self.rng.zipf(1.5, 6) % 40}
        point = make_point(
            f"text {n}", scope, *self.rng.standard_normal(DIMENSIONS), terms=terms,
            version=self.version, kind=("fact", "episode")[n % 5 == 0], expires_at=self.moment(),
            valid_to=self.moment(), metadata={"n": self.version},
            position=n % 7 if scope.session_id else None,
        )  # fmt: skip
        vector = np.asarray(point.vector, np.float32).tolist()  # as it is stored
        return replace(point, vector=vector)

    def change(self, index: SqliteIndex) -> None:
        kind = self.rng.integers(10)
        known = sorted(self.points)
        some = [one for one in known if self.rng.random() < 0.1]
        if kind < 6:
            new = [self.point(int(n)) for n in self.rng.integers(0, 150, self.rng.integers(1, 30))]
            index.upsert(new)
            self.points |= {one.record.id: one for one in new}
        elif kind < 8:
            ended = [
                replace(self.points[one].record, valid_to=self.moment(), metadata={"end": one})
                for one in some
            ]
            index.amend(ended)
            for one in ended:
                self.points[one.id] = replace(self.points[one.id], record=one)
        elif kind < 9:
            index.delete(None, some)
            self.points = {id_: one for id_, one in self.points.items() if id_ not in some}
        else:
            scope = self.scope()
            gone = {id_ for id_, one in self.points.items() if scope.covers(one.record.scope)}
            assert len(gone) == index.erase(scope)
            self.points = {id_: one for id_, one in self.points.items() if id_ not in gone}

    def query(self) -> Query:
        return make_query(
            self.choose(ANNA, BEN, self.scope()),
            *self.rng.standard_normal(DIMENSIONS),
            terms=tuple({int(one) for one in self.rng.zipf(1.5, 3) % 40}),
            kinds=self.choose((), (), ("episode",)),
            where=parse_filter(self.choose(None, None, {"n": {"gte": self.version // 2}})),
            include_superseded=self.choose(False, True),
            include_expired=self.choose(False, True),
            as_of=self.choose(None, None, NOW - HOUR / 2),
        )


@pytest.mark.parametrize("cache_bytes", [0, 60_000, 2**20, "small"])
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_see_what_either_committed(
    tmp_path: Path, seed: int, cache_bytes: int | str, request: pytest.FixtureRequest
):
    if cache_bytes == "small":
        request.getfixturevalue("small_vectors")
        cache_bytes = 2**20
    history = History(seed)
    both = [opened(tmp_path, cache_bytes=cache_bytes) for _ in range(2)]
    for _ in range(60):
        history.change(history.choose(*both))
        for index in both:
            query, limit = history.query(), history.choose(1, 5, 300)
            points = list(history.points.values())

            assert_exact(index.search(query, limit), points, query, limit)

            turns = {one.record.turn for one in points[:9] if one.record.turn}
            ids = [one.record.id for one in points[10:14]]
            some = [one for one in points if one.record.turn in turns or one.record.id in ids]
            wanted = {one.record.id for one in some if query.matches(one.record)}
            assert wanted == {hit.record.id for hit in index.score(query, turns, ids)}
    for scope in (ANNA, BEN, None):
        stored = {p.record.id: p.record.version for p in history.points.values()
                  if scope is None or scope.covers(p.record.scope)}  # fmt: skip
        assert all(dict(index.versions(scope)) == stored for index in both)
    for index in both:
        index.close()


def test_blocks_find_what_the_memory_finds(tmp_path: Path):
    history = History(1)
    large, small = opened(tmp_path), opened(tmp_path, cache_bytes=100_000)
    points = {one.record.id: one for one in map(history.point, range(5000))}
    large.upsert(list(points.values()))
    for _ in range(10):
        query = history.query()

        assert large.search(query, 40) == small.search(query, 40)
    assert_exact(small.search(query, 40), list(points.values()), query, 40)
    assert large._cache._bytes > 5000 * DIMENSIONS * 4
    assert small._cache._bytes < 100_000
    large.close()
    small.close()


def test_one_block_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = opened(tmp_path, cache_bytes=0)
    index.upsert([make_point(f"text {n}") for n in range(7)])
    blocks: list[ReferenceType[Any]] = []
    alive: list[int] = []

    def new_vectors(*given: Any, **how: Any) -> Points:
        alive.append(sum(one() is not None for one in blocks))
        made = make(*given, **how)
        blocks.append(ref(made._vectors))
        return made

    make = PointCache._new_points
    monkeypatch.setattr(PointCache, "_new_points", new_vectors)
    monkeypatch.setattr(point_cache, "_BATCH", 1)

    assert len(index.search(make_query(), 7)) == 7
    assert len(blocks) == 7
    assert max(alive) <= 1  # that of the block before, until its name is taken
    index.close()


def test_small_vectors_find_what_exact_ones_find_in_the_same_order(tmp_path: Path):
    size, number = 64, 3000
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((number, size))
    vectors[number // 2 :] = vectors[0] + rng.standard_normal((number // 2, size)) / 50  # all near
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    room = number * (_ROW_BYTES + 2 * size)
    large, small = (opened(tmp_path, dimensions=size, **o) for o in ({}, {"cache_bytes": room}))
    texts = [f"text {n}" for n in range(number)]
    terms = [{int(n): 1.0} for n in rng.integers(0, 40, number)]
    points = [
        replace(make_point(text, terms=some), vector=vector.tolist())
        for text, some, vector in zip(texts, terms, vectors, strict=True)
    ]
    large.upsert(points)
    for n in (0, 1, number // 2, number - 1):
        asked = replace(make_query(terms=(n % 40, 1)), vector=vectors[n].tolist())
        for limit in (1, 40, 900, 2 * number):
            assert small.search(asked, limit) == large.search(asked, limit)
        ids = [point.record.id for point in points[n : n + 50]]
        assert small.score(asked, (), ids) == large.score(asked, (), ids)
    (one,), (other,) = (index._cache._partitions.values() for index in (small, large))
    assert one.points is not None
    assert one.points.is_small
    assert one.bytes < other.bytes - 2 * size * number
    large.close()
    small.close()


def test_the_partitions_used_least_recently_are_dropped(tmp_path: Path):
    index = opened(tmp_path, cache_bytes=150_000)
    scopes = [Scope(user_id=f"user {n}") for n in range(5)]
    for scope in scopes:
        index.upsert([make_point(f"{n}", scope) for n in range(20)])
    for scope in [*scopes, scopes[3]]:
        assert len(index.search(make_query(scope), 50)) == 20
        assert index._cache._bytes <= 150_000

    loaded = list(index._cache._partitions)
    assert loaded[-2:] == [scopes[4].partition, scopes[3].partition]
    assert index._cache._bytes == sum(one.bytes for one in index._cache._partitions.values())
    assert len(loaded) < 5
    index.close()


def traced(index: SqliteIndex) -> list[str]:
    """List the statements that the next searches run."""
    statements: list[str] = []
    (reader,) = index._handle._connection._idle
    reader.set_trace_callback(statements.append)
    return statements


def test_a_repeated_search_reads_only_the_counters(index: SqliteIndex):
    index.upsert([make_point(f"{n}", terms={n: 1.0}) for n in range(100)])
    query = make_query(terms=(3, 4))
    found = index.search(query, 20)
    statements = traced(index)

    assert found == index.search(query, 20)
    assert ["BEGIN", "ROLLBACK"] == [statements[0], statements[-1]]
    assert len(statements) == 3
    assert "FROM point_change" in statements[1]


def test_only_what_changed_is_loaded(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch):
    points = [make_point(f"{n}") for n in range(100)]
    index.upsert(points)
    index.search(make_query(), 100)
    read: list[Any] = []
    to_record = rows.to_record
    monkeypatch.setattr(rows, "to_record", lambda row: read.append(row[0]) or to_record(row))
    index.upsert([make_point("new")])
    index.amend([replace(points[0].record, metadata={"a": 1}, version=2)])
    index.delete(ANNA, [points[1].record.id])
    statements = traced(index)

    found = {hit.record.id: hit.record.metadata for hit in index.search(make_query(), 200)}

    assert len(found) == 100
    assert found[points[0].record.id] == {"a": 1}
    assert {make_point("new").record.id, points[0].record.id} == set(read)
    [load] = [one for one in statements if "vector" in one]
    assert "change > 100" in load


def test_points_that_were_replaced_do_not_pile_up(index: SqliteIndex):
    points = [make_point(f"{n}", terms={n: 1.0}) for n in range(50)]
    for version in range(1, 12):
        index.upsert([replace(one, record=replace(one.record, version=version)) for one in points])
        hits = index.search(make_query(terms=(7,)), 60)
        assert {version} == {hit.record.version for hit in hits}
        assert ["7"] == [hit.record.text for hit in hits if hit.lexical]
    loaded = index._cache._partitions[ANNA.partition].points
    assert loaded.alive == 50
    assert loaded.size <= 100
    assert len(loaded.records) <= 100


class RollbackError(Exception):
    pass


def bound(index: SqliteIndex, connection: Connection) -> SqliteIndex:
    """Copy the index to work in a transaction, as `SqliteEngines` does."""
    made = copy.copy(index)
    made._handle = TransactionHandle(connection)
    return made


def test_what_is_rolled_back_was_never_there(index: SqliteIndex):
    kept, gone = make_point("kept", terms={1: 1.0}), make_point("gone")
    index.upsert([kept])
    index.search(make_query(), 5)

    def change(connection: Connection) -> None:
        inside = bound(index, connection)
        inside.upsert([gone, make_point("his", BEN)])
        inside.amend([replace(kept.record, metadata={"a": 1}, version=5)])
        assert inside.count(ANNA) == 2
        assert dict(inside.versions(ANNA)) == {kept.record.id: 5, gone.record.id: 1}
        assert set(inside.vectors([gone.record])) == {gone.record.id}
        assert [hit.record for hit in inside.search(make_query(), 5)] == [kept.record]
        inside.delete(ANNA, [kept.record.id])
        assert inside.erase(BEN) == 1
        assert [hit.record for hit in index.search(make_query(), 5)] == [kept.record]
        raise RollbackError

    with pytest.raises(RollbackError):
        index._handle.write(change)
    assert [hit.record for hit in index.search(make_query(), 5)] == [kept.record]

    other = make_point("other")  # takes the number that the rolled back change had
    index.upsert([other])
    found = {hit.record.id for hit in index.search(make_query(), 5)}
    assert found == {kept.record.id, other.record.id}


def test_what_another_engine_commits_is_found(index: SqliteIndex):
    index.search(make_query(), 5)

    index._handle.write(lambda c: bound(index, c).upsert([make_point("x")]))

    assert [hit.record.text for hit in index.search(make_query(), 5)] == ["x"]


def test_an_earlier_state_is_neither_mixed_with_a_later_one_nor_kept(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
):
    index.upsert([make_point("old"), make_point("gone")])
    with index._handle.read() as earlier:
        earlier.execute("SELECT 1 FROM point").fetchall()  # its state is fixed from now on
        index.upsert([make_point("new")])
        index.delete(ANNA, [make_point("gone").record.id])
        assert texts(index, make_query()) == {"old", "new"}
        with monkeypatch.context() as patch:
            patch.setattr(index._cache, "_read", lambda: contextlib.nullcontext(earlier))
            assert texts(index, make_query()) == {"old", "gone"}

    assert texts(index, make_query()) == {"old", "new"}


def test_a_failure_while_loading_leaves_nothing_behind(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
):
    points = [make_point(f"{n}", terms={1: 1.0}) for n in range(20)]
    index.upsert(points[:10])
    query = make_query(terms=(1,))
    assert len(index.search(query, 50)) == 10
    index.upsert(points[10:])

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(np, "frombuffer", fail)
        with pytest.raises(MemoryError):
            index.search(query, 50)

    assert_exact(index.search(query, 50), points, query, 50)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_does_not_wait_for_a_lock_that_nobody_releases(index: SqliteIndex):
    index.upsert([make_point("x")])
    index.search(make_query(), 5)
    with index._cache._partition(ANNA.partition).lock, index._cache._lock:
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                index.search(make_query(), 5)
            index.close()
            os._exit(7)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert len(index.search(make_query(), 5)) == 1


def test_a_record_that_changes_its_owner_is_removed_from_the_former(index: SqliteIndex):
    point = make_point("x")
    index.upsert([point, make_point("hers")])
    assert len(index.search(make_query(), 5)) == 2
    moved = replace(point.record, scope=BEN, version=2)
    index.upsert([replace(point, record=moved)])

    assert [hit.record.text for hit in index.search(make_query(), 5)] == ["hers"]
    assert [hit.record for hit in index.search(make_query(BEN), 5)] == [moved]


def schema(index: SqliteIndex) -> list[Any]:
    with index._handle.read() as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master").fetchall()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"meta": META | {"embedder": "other"}}, "embedder"),
        ({"meta": {"schema": "1"}}, "embedder"),
        ({"dimensions": DIMENSIONS + 1}, "dimensions"),
    ],
)
def test_another_maker_is_refused_before_anything_is_touched(
    tmp_path: Path, index: SqliteIndex, options: dict[str, Any], what: str
):
    index.upsert([make_point("x")])
    before = schema(index)
    connection = SqliteConnection(str(tmp_path / "memory.db"))

    with pytest.raises(SchemaMismatchError, match=what):
        SqliteIndex(connection, **{"dimensions": DIMENSIONS, "meta": META, **options})

    assert before == schema(index)
    second = SqliteIndex(connection, dimensions=3, meta={}, generation=2)
    assert index.count(ANNA) == 1
    assert second.count(ANNA) == 0
    second.close()


def test_a_generation_is_removed_whole_and_alone(tmp_path: Path, index: SqliteIndex):
    index.upsert([make_point("x")])
    before = schema(index)
    second = opened(tmp_path, generation=2, meta={"schema": "2"})
    second.upsert([make_point("y")])
    second.close()
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    drop_points(connection, 2)
    drop_points(connection, 3)

    assert before == schema(index)
    assert connection.get_meta("index_2") is None
    assert [hit.record.text for hit in index.search(make_query(), 5)] == ["x"]
    connection.close()


def test_equal_scores_go_by_id_however_many_there_are(index: SqliteIndex):
    points = [make_point(f"same {n}", terms={1: 1.0}) for n in range(700)]
    index.upsert(points)
    ids = sorted(one.record.id for one in points)

    for limit in (1, 30, 300, 900):
        hits = index.search(make_query(terms=(1,)), limit)
        assert ids[:limit] == [hit.record.id for hit in hits]


def test_a_selective_kind_does_not_read_every_record(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
):
    points = [make_point(f"{n}", ANNA, 1, n / 5000) for n in range(5000)]
    rare = [make_point(f"rare {n}", ANNA, 0, 1, 1, kind="profile") for n in range(3)]
    index.upsert([*points, *rare])
    read: list[Any] = []
    to_record = rows.to_record
    monkeypatch.setattr(rows, "to_record", lambda row: read.append(row[0]) or to_record(row))

    found = index.search(make_query(kinds=("profile",)), 5)

    assert {hit.record.id for hit in found} == {one.record.id for one in rare}
    assert len(read) < 1000


def test_the_text_of_a_vector_is_not_that_of_a_newer_record(tmp_path: Path):
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    graph = SqliteGraph(connection)
    index = SqliteIndex(connection, dimensions=DIMENSIONS, meta=META)
    old = make_point("old", terms={1: 1.0})
    graph.apply([Put(record=old.record)])
    index.upsert([old])
    new = replace(old.record, text="new", version=2)
    [outcome] = graph.apply([Put(record=new, replace=True, fields=("text",))])

    assert outcome.record is not None
    assert outcome.record.text == "new"
    assert index.vectors([outcome.record]) == {}
    assert set(index.vectors([old.record])) == {old.record.id}
    graph.close()
    index.close()


def test_records_come_from_the_graph_store_of_the_file(tmp_path: Path):
    connection = SqliteConnection(str(tmp_path / "memory.db"))
    graph = SqliteGraph(connection)
    index = SqliteIndex(connection, dimensions=DIMENSIONS, meta=META)
    points = [make_point("stored"), make_point("not stored")]
    graph.apply([Put(record=points[0].record)])
    index.upsert(points)

    assert [hit.record for hit in index.search(make_query(), 5)] == [points[0].record]
    index.delete(ANNA, [points[0].record.id])
    assert graph.get(ANNA, [points[0].record.id]) == [points[0].record]
    graph.close()
    index.close()


@each_kind_of_scope
def test_every_statement_goes_by_an_index(index: SqliteIndex, scope: Scope):
    points = [make_point(f"{n}", scope, kind="episode") for n in range(600)]
    index.upsert(points)
    statements = note_statements(index._handle._connection)
    ids = [one.record.id for one in points]
    index.search(make_query(scope, terms=(1,)), 5)
    index.search(make_query(scope, kinds=("fact",)), 5)
    index.amend([points[0].record])
    index.upsert([points[0], make_point("new", scope)])
    index.vectors([points[0].record])
    index.count(scope)
    assert len([*index.versions(scope), *index.versions(None)]) == 1202
    index.delete(scope, ids[:5])
    index.delete(None, ids[5:9], 7)
    index.search(make_query(scope), 5)
    index.erase(scope, 3)

    plans = plans_of(index._handle._connection, statements)

    assert len(plans) > 15
    assert scans_of(plans, "FROM json_each|SELECT value FROM meta") == {}
    by_record = [plan for sql, plan in plans.items() if re.search("WHERE record (IN|=)", sql)]
    assert len(by_record) > 4
    assert [one for one in by_record if "point_by_record" not in str(one)] == []


def test_loading_one_owner_does_not_keep_another_waiting(index: SqliteIndex):
    index.upsert([make_point("hers"), make_point("his", BEN)])

    with index._cache._partition(ANNA.partition).lock:  # as while it is loaded
        assert len(index.search(make_query(BEN), 5)) == 1


def test_a_predicate_may_search(index: SqliteIndex):
    index.upsert([make_point("a"), make_point("b")])
    found: list[int] = []

    def predicate(record: Record) -> bool:
        found.append(len(index.search(make_query(), 5)))
        return record.text == "a"

    hits = index.search(make_query(where=parse_filter(None, predicate)), 5)

    assert [hit.record.text for hit in hits] == ["a"]
    assert found == [2, 2]


@pytest.mark.parametrize("cache_bytes", [0, 30_000, 2**20])
def test_a_search_sees_one_committed_state_while_others_write(tmp_path: Path, cache_bytes: int):
    searched, written = (opened(tmp_path, cache_bytes=cache_bytes) for _ in range(2))
    users = [ANNA, BEN]
    failures: list[str] = []
    committed = [0]
    done = threading.Event()

    def write(epoch: int) -> None:
        # Each state has as many records as the remainder says, all of one version.
        for scope in users:
            texts = [f"{n}" for n in range(10 + epoch % 7)]
            points = [make_point(one, scope, version=epoch, terms={1: 1.0}) for one in texts]
            gone = [make_point(f"{n}", scope).record.id for n in range(len(texts), 17)]

            def change(connection: Connection, points: Any = points, gone: Any = gone) -> None:
                inside = bound(written, connection)
                inside.upsert(points)
                inside.delete(None, gone)

            written._handle.write(change)
        committed[0] = epoch

    def search(number: int) -> None:
        last = 0
        while not done.is_set():
            before = committed[0]
            hits = searched.search(make_query(users[number % 2], terms=(1,)), 50)
            versions = {hit.record.version for hit in hits}
            epoch = min(versions, default=0)
            size = 10 + epoch % 7
            if len(versions) != 1 or len(hits) != size or epoch < max(last, before):
                failures.append(f"{sorted(versions)}, {len(hits)} hits, after {last}, {before}")
                return
            last = epoch

    write(1)
    threads = [threading.Thread(target=search, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for epoch in range(2, 80):
        write(epoch)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    searched.close()
    written.close()


def test_a_words_rarity_is_that_of_its_agent_and_not_of_the_user(index: SqliteIndex):
    one, two = (replace(ANNA, agent_id=name) for name in ("one", "two"))
    mine = [make_point(f"mine {n}", one, terms={1: 1.0} if n == 0 else {2: 1.0}) for n in range(6)]
    index.upsert([*mine, *[make_point(f"hers {n}", two, terms={1: 1.0}) for n in range(40)]])

    scores = [hit.lexical for hit in index.search(make_query(one, terms=(1,)), 10)]

    assert max(scores) == pytest.approx(np.log(1 + 5.5 / 1.5), rel=1e-4)


def test_no_terms_are_no_words_in_common(index: SqliteIndex):
    index.upsert([replace(make_point("bare"), terms=Terms())])

    [hit] = index.search(make_query(terms=(5,)), 5)

    assert hit.lexical == 0.0
