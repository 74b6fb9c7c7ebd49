"""Contract of graph store snapshots: inherit `SnapshotContract`, provide `graph` and `other`."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ...ports.engines import GraphStore
from ...ports.snapshot_rows import FenceRow, RecordRow, SnapshotRow
from ...ports.stores import Put, Remove
from ...types import Relation, Scope
from .graph import ALICE, START, likes, lives, put, remove, restore, update

BOB = Scope(user_id="bob")
TALK = Scope(user_id="alice", agent_id="a", session_id="s")
NOBODY = Scope(agent_id="a")
ERASED = Scope(user_id="alice", agent_id="erased")
SCOPES = (ALICE, BOB, TALK, NOBODY, ERASED, Scope(user_id="alice", agent_id="a"))
LATE = START + timedelta(days=9)


def past() -> list[Put | Remove]:
    """List changes after which a store has something of everything."""
    lived = START + timedelta(days=1)
    return [
        put("rome", 1, relations=[lives("Ann", "Rome")]),
        put("oslo", 2, relations=[lives("Ann", "Oslo", valid_from=lived, subject_type="person")]),
        put("paris", 3, relations=[lives("Ann", "Paris", valid_from=lived)]),
        put("tea", 4, relations=[likes("Ann", "tea"), likes("Bo", "Ann", valid_to=lived)]),
        put("too", 5, relations=[likes("ANN", "Tea")]),
        update("tea", 6, text="coffee", relations=[likes("Ann", "coffee")]),
        replace(update("too", 7, text="yet tea", metadata={"n": [1, None, "é"]}), relations=None),
        put("gone", 8, relations=[likes("Cy", "cake"), lives("Ann", "Bern")]),
        remove("gone", 9),
        put("turn 0", 10, TALK, in_session=True, kind="episode", role="user", name="Ann"),
        put("turn 1", 11, TALK, in_session=True, kind="episode", relations=[likes("Ann", "jam")]),
        put("bob", 12, BOB, relations=[likes("Ann", "tea")], expires_at=START, pinned=True),
        put("own", 21, relations=[lives("Ann", "Rome", valid_from=LATE, identity="x")]),
        put("doc", 13, NOBODY, kind="procedure", situation="when asked", outcome="well", votes=3),
        put("secret", 14, ERASED, relations=[likes("Ann", "secrets")]),
        put("ended", 15, valid_to=LATE, indexed=False, trust=0.25, origin="tool"),
        put("again", 16, relations=[likes("Cy", "tea", single_valued=True)]),
        put("again", 17),
        put("again", 18, metadata={"n": 2}, relations=[likes("Cy", "jam")]),
        put("over", 19, relations=[likes("Ann", "rain"), likes("Ann", "snow", valid_from=LATE)]),
        replace(put("over", 20, valid_to=LATE), replace=True, relations=None, fields=("valid_to",)),
    ]


def fill(graph: GraphStore) -> None:
    """Apply `past`, an erasure and accesses."""
    for change in past():
        graph.apply([change])
    graph.erase(ERASED, 14)
    ids = [ALICE.record_id("fact", key) for key in ("tea", "too")]
    for day in range(3):
        graph.log_access(ALICE, ids[: day + 1], START + timedelta(days=day))


def read_all(graph: GraphStore) -> list[Any]:
    """Read everything that a store can return."""
    seen: list[Any] = []
    for scope in SCOPES:
        page = graph.page(scope, limit=1000, include_expired=True)
        ids = [record.id for record in page.records]
        gone = ALICE.record_id("fact", "gone")
        seen += [
            page,
            graph.sessions(scope),
            graph.turns(scope, limit=9),
            graph.get(scope, ids),
            graph.access_log(scope, ids),
            graph.count(scope),
        ]
        seen += [graph.history(scope, one) for one in [*ids, gone]]
        seen += [sorted(graph.versions(scope)), graph.entities(scope)]
        seen += [graph.page(scope, as_of=LATE, include_superseded=False)]
        for more in _QUESTIONS:
            seen += [graph.relations(scope, **more), graph.relations(scope, "ann", hops=2, **more)]
        seen += [graph.expand(scope, names, LATE) for names in (["ann"], ["anne", "tee"], ["oslo"])]
    return seen


_QUESTIONS: Sequence[dict[str, Any]] = (
    {},
    {"include_superseded": True},
    {"as_of": START},
    {"as_of": LATE},
)


def later_changes() -> list[Put | Remove]:
    """Make changes to what `fill` stored, and additions to it."""
    return [
        put("turn 2", 21, TALK, in_session=True),
        put("lima", 22, relations=[lives("Ann", "Lima", valid_from=LATE)]),
        remove("paris", 23),
        update("tea", 24, text="tea again", relations=[likes("Ann", "tea")]),
        update("too", 25, votes=1),
        remove("again", 26),
        put("new", 27, BOB, relations=[likes("Ann", "tea"), likes("Zoe", "Ann")]),
    ]


def _copy(rows: Sequence[SnapshotRow], graph: GraphStore, size: int = 5) -> None:
    for start in range(0, len(rows), size):
        graph.load(rows[start : start + size])


class SnapshotContract:
    """What `dump`, `load`, `get_meta` and `set_meta` promise.

    The fixtures give an empty store each, of one engine or of two.
    """

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give the store that is dumped."""
        raise NotImplementedError

    @pytest.fixture
    def other(self) -> GraphStore:
        """Give the store that loads the snapshot."""
        raise NotImplementedError

    def test_an_empty_store_has_an_empty_dump(self, graph: GraphStore) -> None:
        assert list(graph.dump()) == []

    def test_every_read_returns_the_same(self, graph: GraphStore, other: GraphStore) -> None:
        fill(graph)
        _copy(list(graph.dump()), other)

        assert read_all(other) == read_all(graph)
        assert list(other.dump()) == list(graph.dump())

    def test_fences_come_first_and_partitions_in_order(self, graph: GraphStore) -> None:
        fill(graph)
        kept = list(graph.dump())
        partitions = [one.partition for one in kept]

        assert isinstance(kept[0], FenceRow)
        assert partitions == sorted(partitions)
        assert set(partitions) == {"", ALICE.partition, BOB.partition, NOBODY.partition}

    def test_a_dump_resumes_at_a_partition(self, graph: GraphStore) -> None:
        fill(graph)
        kept = list(graph.dump())
        for since in {one.partition for one in kept}:
            wanted = [one for one in kept if isinstance(one, FenceRow) or one.partition >= since]

            assert list(graph.dump(since)) == wanted

    def test_a_load_that_was_cut_anywhere_resumes_at_its_partition(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        fill(graph)
        kept = list(graph.dump())
        for cut in range(9, len(kept), 19):
            other.load(kept[:cut])
            _copy(list(graph.dump(kept[cut - 1].partition)), other)

        assert list(other.dump()) == kept
        assert read_all(other) == read_all(graph)

    def test_a_load_in_one_call_is_the_same(self, graph: GraphStore, other: GraphStore) -> None:
        fill(graph)
        other.load(list(graph.dump()))
        other.load(list(graph.dump()))
        other.load([])

        assert read_all(other) == read_all(graph)

    def test_later_changes_do_the_same(self, graph: GraphStore, other: GraphStore) -> None:
        fill(graph)
        _copy(list(graph.dump()), other)
        for change in [*later_changes(), restore("gone", 28), restore("paris", 29)]:
            assert other.apply([change]) == graph.apply([change])
        assert read_all(other) == read_all(graph)
        assert other.erase(ALICE, 40) == graph.erase(ALICE, 40)
        assert list(other.dump()) == list(graph.dump())

    def test_a_repeated_load_brings_what_has_changed_since(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        fill(graph)
        removed, changed = (ALICE.record_id("fact", key) for key in ("paris", "tea"))
        graph.log_access(ALICE, [removed], START)
        _copy(list(graph.dump()), other)
        graph.apply(later_changes())
        graph.log_access(ALICE, [changed], LATE)
        _copy(list(graph.dump()), other)

        assert list(other.dump()) == list(graph.dump())
        assert read_all(other) == read_all(graph)

    def test_changes_that_come_late_are_refused_as_before(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        fill(graph)
        _copy(list(graph.dump()), other)
        late = [put("gone", 8), put("secret", 14, ERASED), update("tea", 5), past()[0]]

        assert [other.apply([one]) for one in late] == [graph.apply([one]) for one in late]
        assert read_all(other) == read_all(graph)

    def test_what_is_deleted_or_newer_here_stays_so(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea")]), put("b", 2)])
        other.apply([put("a", 1), remove("a", 3), put("b", 2), update("b", 4, text="newer")])
        _copy(list(graph.dump()), other)

        assert [record.text for record in other.page(ALICE).records] == ["newer"]
        assert other.relations(ALICE) == []

    def test_what_was_erased_here_does_not_come_back(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        graph.apply([put("a", 1, TALK), put("b", 9, TALK), put("c", 1)])
        other.erase(Scope(user_id="alice", agent_id="a"), 5)
        _copy(list(graph.dump()), other)

        assert sorted(record.text for record in other.page(ALICE).records) == [
            "text of b",
            "text of c",
        ]
        assert other.history(ALICE, TALK.record_id("fact", "a")) == []

    def test_an_id_of_another_owner_stays_his(self, graph: GraphStore, other: GraphStore) -> None:
        graph.apply([put("a", 2)])
        stolen = put("a", 1, given_scope=BOB)
        other.apply([stolen])
        _copy(list(graph.dump()), other)

        assert other.page(ALICE).records == ()
        assert other.page(BOB).records == (stolen.record,)

    def test_many_records_of_many_owners_come_whole(
        self, graph: GraphStore, other: GraphStore
    ) -> None:
        owners = [Scope(user_id=f"user {n}") for n in range(5)]
        for n, owner in enumerate(itertools.islice(itertools.cycle(owners), 60)):
            asserted = [likes(f"name {n % 7}", f"thing {n % 11}")]
            graph.apply([put(f"{n}", n + 1, owner, relations=asserted)])
        _copy(list(graph.dump()), other, size=16)
        records = [one for one in other.dump() if isinstance(one, RecordRow)]

        assert 60 == len(records)
        assert list(other.dump()) == list(graph.dump())
        for owner in owners:
            assert other.relations(owner) == graph.relations(owner)

    def test_versions_of_all_owners_are_read_without_a_scope(self, graph: GraphStore) -> None:
        fill(graph)
        live = {
            one.record.id: one.record.version
            for one in graph.dump()
            if isinstance(one, RecordRow) and one.live and one.record.indexed
        }

        assert dict(graph.versions(None)) == live

    def test_metadata_of_the_whole_store_is_kept(self, graph: GraphStore) -> None:
        assert graph.get_meta("generation") is None
        graph.set_meta("generation", "1")
        graph.set_meta("generation", "2")

        assert graph.get_meta("generation") == "2"
        assert list(graph.dump()) == []

    def test_an_assertion_comes_as_it_was_made(self, graph: GraphStore) -> None:
        asserted = [lives("Ann", "Rome"), likes("Ann", "tea", valid_to=LATE)]
        graph.apply([put("a", 1, relations=asserted)])
        graph.apply([update("a", 2, relations=[asserted[0]])])
        [kept] = [one for one in graph.dump() if isinstance(one, RecordRow)]

        assert [_as_asserted(state) for state in kept.states] == [
            (asserted[0], None),
            (asserted[1], START + timedelta(seconds=2)),
        ]


def _as_asserted(one: Relation) -> tuple[Relation, datetime | None]:
    plain = Relation(
        subject=one.subject,
        predicate=one.predicate,
        object=one.object,
        valid_from=one.valid_from,
        valid_to=one.valid_to,
        single_valued=one.single_valued or None,
    )
    return plain, one.expired_at
