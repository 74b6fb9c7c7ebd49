"""Contract of every graph store: inherit `GraphStoreContract` and provide `graph`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ...errors import InvalidRecordError, MemoryClosedError
from ...filters import parse_filter
from ...ports.engines import GraphStore
from ...ports.snapshot_rows import RecordRow
from ...ports.stores import Outcome, Put, Remove
from ...types import Excerpt, Kind, Record, Relation, Scope
from . import at_once

START = datetime(2026, 1, 1, tzinfo=UTC)
MAY = datetime(2026, 5, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")
NASTY = (
    "1",
    "10",
    "1.0",
    "a",
    "a.b",
    "a%",
    "a_b",
    "A",
    "user:1",
    "user",
    "caf\u00e9",
    "caf\uff45",
    "it's",
    '"quoted"',
    "`tick`",
    "x') OR 1=1 --",
    "\U0001f9e0",
    "n" * 255,
    "n" * 256,
    "null",
)


def put(
    key: str,
    version: int,
    scope: Scope = ALICE,
    *,
    relations: Sequence[Relation] = (),
    in_session: bool = False,
    given_scope: Scope | None = None,
    **changed: Any,
) -> Put:
    """Make the change that adds a record under `key`; `version` is its age in seconds too.

    `given_scope` is the scope of the change, for a record whose id belongs to `scope`.
    """
    at = START + timedelta(seconds=version)
    record = Record(
        id=scope.record_id("fact", key),
        text=f"text of {key}",
        scope=given_scope or scope,
        created_at=at,
        updated_at=at,
        occurred_at=at,
        version=version,
    )
    return Put(record=replace(record, **changed), relations=tuple(relations), in_session=in_session)


def update(key: str, version: int, scope: Scope = ALICE, **given: Any) -> Put:
    """Make the change that updates the record under `key`."""
    fields = ("text", *(name for name in given if name not in ("relations", "given_scope")))
    return replace(put(key, version, scope, **given), replace=True, fields=fields)


def remove(key: str, version: int, scope: Scope = ALICE, *, by: Scope | None = None) -> Remove:
    """Make the change that deletes the record under `key`."""
    at = START + timedelta(seconds=version)
    return Remove(id=scope.record_id("fact", key), scope=by or scope, version=version, at=at)


def restore(key: str, version: int, scope: Scope = ALICE, **given: Any) -> Put:
    """Make the change that brings the deleted record under `key` back."""
    change = update(key, version, scope, **given)
    return replace(change, relations=None, fields=("text", "situation"), restores=True)


def likes(subject: str, object_: str, **given: Any) -> Relation:
    """Make a relation."""
    return Relation(subject=subject, predicate="likes", object=object_, **given)


def lives(who: str, where: str, **given: Any) -> Relation:
    """Make a relation that has one value at a time, from the start on if nothing else is given."""
    known: dict[str, Any] = {"valid_from": START, "single_valued": True}
    return Relation(subject=who, predicate="lives_in", object=where, **{**known, **given})


def _texts(graph: GraphStore, scope: Scope = ALICE) -> list[str]:
    return [record.text for record in graph.page(scope).records]


def _events(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.change.event for outcome in outcomes]


class GraphStoreContract:
    """Every promise of `GraphStore`; the fixture gives an empty store for each test."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give an empty store."""
        raise NotImplementedError

    def test_a_record_comes_back_as_it_was_written(self, graph: GraphStore) -> None:
        written = put(
            "a",
            1,
            Scope(user_id="u", agent_id="g", session_id="s"),
            kind="episode",
            role="tool",
            name="Ann",
            metadata={"deep": {"list": [1, 2.5, True, None, "é"]}},
            origin="tool",
            trust=0.25,
            valid_to=START,
            expires_at=datetime(9000, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
            sources=("a turn", "b"),
        )
        [outcome] = graph.apply([written])

        assert outcome.record == written.record
        assert graph.get(written.record.scope, [written.record.id]) == [written.record]

    def test_an_excerpt_is_a_part_of_a_live_record(self, graph: GraphStore) -> None:
        names = [f"a{n}" for n in range(10)]
        records = [put(name, 1, namespace=("n", name), metadata={"é": [1]}) for name in names]
        others = [put("of Bob", 1, Scope(user_id="bob")), put("expired", 1, expires_at=START)]
        graph.apply([*records, *others, put("deleted", 1), remove("deleted", 2)])
        ids = [one.record.id for one in (*records, *others, put("deleted", 1))][::-1]

        found = graph.excerpts(ALICE, ids)

        assert found == [Excerpt.of(one.record) for one in records[::-1]]
        assert [one for id_ in ids for one in graph.excerpts(ALICE, [id_])] == found
        assert graph.excerpts(ALICE, ["\ud800", "none"]) == graph.excerpts(ALICE, ["\ud800"]) == []

    def test_metadata_of_some_mebibytes_come_back_as_written(self, graph: GraphStore) -> None:
        metadata = {"file": 'a "line" of 日本\n' * (5 * 2**16), "id": 2**63 - 1, "$a b": {"": 1}}
        graph.apply([put("k", 1, metadata=metadata)])

        (record,) = graph.page(ALICE).records
        (version,) = graph.history(ALICE, record.id)

        assert metadata == record.metadata == version.metadata

    def test_times_of_any_zone_and_age_are_the_same_moment(self, graph: GraphStore) -> None:
        old = datetime(1875, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)
        graph.apply([put("a", 1, occurred_at=old)])

        assert graph.page(ALICE).records[0].occurred_at == old

    def test_outcomes_come_in_the_order_of_the_changes(self, graph: GraphStore) -> None:
        outcomes = graph.apply(
            [put("a", 1), update("a", 2, text="new"), remove("a", 3), put("b", 4)]
        )

        assert _events(outcomes) == ["ADD", "UPDATE", "DELETE", "ADD"]
        assert [outcome.change.previous for outcome in outcomes] == [None, "text of a", "new", None]
        assert [outcome.change.text for outcome in outcomes] == [
            "text of a",
            "new",
            None,
            "text of b",
        ]
        assert [outcome.record is None for outcome in outcomes] == [False, False, True, False]
        assert graph.apply([]) == []

    def test_many_changes_at_once_have_the_outcomes_of_one_by_one(self, graph: GraphStore) -> None:
        bob = Scope(user_id="bob")
        graph.apply(
            [put("kept", 1), put("gone", 1), put("Oslo", 1, relations=[lives("Al", "Oslo")])]
        )
        graph.apply([remove("gone", 2)])
        graph.erase(bob, 9)
        new = [put(f"new {n}", 10, namespace=("docs", f"n{n % 2}")) for n in range(8)]
        changes: list[Put | Remove] = [
            *new,
            put("kept", 10, text="other"),
            put("gone", 10),
            put("twice", 10),
            put("twice", 11, text="other"),
            put("ended", 10),
            remove("ended", 11),
            put("Rome", 10, relations=[lives("Al", "Rome", valid_from=MAY)]),
            put("late", 9, bob),
            update("absent", 10),
            replace(update("upserted", 10), upsert=True),
        ]

        assert _events(graph.apply(changes)) == [
            *["ADD"] * 8, "NONE", "ADD", "ADD", "NONE", "ADD", "DELETE", "ADD", "NONE", "NONE",
            "ADD",
        ]  # fmt: skip
        [oslo] = graph.get(ALICE, [put("Oslo", 1).record.id])
        assert oslo.valid_to == MAY
        ids = [change.record.id for change in changes if isinstance(change, Put)]
        stored = {one.id: one for one in graph.get(ALICE, ids)}
        assert [stored[id_] for id_ in ids[:8]] == [one.record for one in new]
        assert [version.event for version in graph.history(ALICE, ids[0])] == ["ADD"]
        inside = graph.page(ALICE, where=parse_filter({"namespace": ["docs", "n1"]}))
        assert {one.id for one in inside.records} == set(ids[1:8:2])
        assert sorted(graph.namespaces(ALICE)) == [("docs", "n0"), ("docs", "n1")]
        again = graph.apply(changes)
        assert _events(again)[:8] == ["ADD"] * 8  # as before, with nothing written
        assert len(graph.history(ALICE, ids[0])) == 1

    def test_adding_what_is_live_changes_nothing(self, graph: GraphStore) -> None:
        [first] = graph.apply([put("a", 1)])
        [second] = graph.apply([put("a", 2, text="other")])

        assert second.change.event == "NONE"
        assert second.record == first.record
        assert _texts(graph) == ["text of a"]

    def test_what_has_expired_is_not_read(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, expires_at=START + timedelta(days=1)), put("b", 2)])

        assert _texts(graph) == ["text of b"]
        assert graph.get(ALICE, [put("a", 1).record.id]) == []

    def test_adding_over_what_has_expired_adds(self, graph: GraphStore) -> None:
        change = put("a", 5, text="again", relations=[likes("Ann", "tea")])
        graph.apply([put("a", 1, expires_at=START + timedelta(seconds=2))])
        [second] = graph.apply([change])
        [repeated] = graph.apply([change])

        assert (second.change.event, second.record) == ("ADD", change.record)
        assert repeated == second
        assert _texts(graph) == ["again"]

    def test_an_update_sets_only_the_fields_that_it_names(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, metadata={"n": 1}), update("a", 2, metadata={"n": 2})])
        change = replace(update("a", 3, text="new", metadata={"n": 1}), fields=("text",))
        [outcome] = graph.apply([change])

        assert outcome.record is not None
        assert (outcome.record.text, outcome.record.metadata) == ("new", {"n": 2})

    def test_an_update_may_add_to_the_metadata(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, metadata={"city": "Lyon", "year": 2020})])
        change = update("a", 2, metadata={"year": 2021, "done": True})
        [outcome] = graph.apply([replace(change, merge=True)])

        assert outcome.record is not None
        assert {"city": "Lyon", "year": 2021, "done": True} == outcome.record.metadata

    def test_an_update_keeps_creation_position_and_owner(self, graph: GraphStore) -> None:
        owner = Scope(user_id="alice", session_id="s")
        [first] = graph.apply([put("a", 1, owner, in_session=True)])
        change = update("a", 2, owner, text="new", given_scope=ALICE, metadata={"n": 1})
        [second] = graph.apply([change])

        assert first.record is not None
        assert second.record is not None
        assert second.record.text == "new"
        assert second.record.metadata == {"n": 1}
        assert second.record.version == 2
        assert second.record.created_at == first.record.created_at
        assert second.record.position == 0
        assert second.record.scope == owner

    def test_an_update_of_what_is_not_live_changes_nothing(self, graph: GraphStore) -> None:
        unknown = graph.apply([update("a", 1)])
        graph.apply([put("a", 2), remove("a", 3)])
        dead = graph.apply([update("a", 4)])

        assert _events([*unknown, *dead]) == ["NONE", "NONE"]
        assert [one.record for one in [*unknown, *dead]] == [None, None]
        assert _texts(graph) == []

    def test_an_upsert_adds_or_updates_whatever_is_there(self, graph: GraphStore) -> None:
        def upsert(version: int, **given: Any) -> Outcome:
            change = replace(update("a", version, expires_at=None, **given), upsert=True)
            return graph.apply([change])[0]

        assert _events([upsert(1, text="one"), upsert(2, text="two")]) == ["ADD", "UPDATE"]
        [kept] = graph.page(ALICE).records
        assert (kept.text, kept.created_at) == ("two", START + timedelta(seconds=1))
        graph.apply([update("a", 3, expires_at=START + timedelta(seconds=4))])
        assert _events([upsert(5)]) == ["ADD"], "what has expired makes room"
        graph.apply([remove("a", 6)])
        assert _events([upsert(7), upsert(4)]) == ["ADD", "NONE"], "a fence holds for it too"

    def test_an_older_change_is_ignored(self, graph: GraphStore) -> None:
        graph.apply([put("a", 5)])
        outcomes = graph.apply([update("a", 4, text="late"), remove("a", 3)])

        assert _events(outcomes) == ["NONE", "NONE"]
        assert [outcome.record.version for outcome in outcomes if outcome.record] == [5, 5]
        assert _texts(graph) == ["text of a"]

    def test_an_older_write_does_not_resurrect(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), remove("a", 5)])
        outcomes = graph.apply([put("a", 4), update("a", 3), remove("a", 4), put("a", 5)])

        assert _events(outcomes) == ["NONE"] * 4
        assert _texts(graph) == []

    def test_a_newer_write_after_a_delete_adds_again(self, graph: GraphStore) -> None:
        outcomes = graph.apply([put("a", 1), remove("a", 2), put("a", 3, text="again")])

        assert _events(outcomes) == ["ADD", "DELETE", "ADD"]
        assert _texts(graph) == ["again"]

    @pytest.mark.parametrize(
        "changes",
        [
            [put("a", 1)],
            [put("a", 1, relations=[likes("Ann", "tea")])],
            [put("a", 1), update("a", 2, text="new")],
            [put("a", 1), remove("a", 2)],
            [put("a", 1), remove("a", 2), put("a", 3)],
            [put("a", 1, relations=[likes("Ann", "tea")]), remove("a", 2), restore("a", 3)],
            [put("a", 1, Scope(user_id="u", session_id="s"), in_session=True)],
        ],
        ids=["add", "relations", "update", "delete", "again", "restore", "session"],
    )
    def test_the_same_change_again_has_the_same_outcome(
        self, graph: GraphStore, changes: list[Put | Remove]
    ) -> None:
        first = [graph.apply([change])[0] for change in changes]
        scope = changes[0].record.scope if isinstance(changes[0], Put) else ALICE
        rows = graph.count(scope)
        again = graph.apply(changes[-1:])

        assert again == first[-1:]
        assert graph.count(scope) == rows

    @pytest.mark.parametrize("at_once", [True, False])
    def test_a_restored_record_is_as_it_was_with_its_relations(
        self, graph: GraphStore, at_once: bool
    ) -> None:
        talk = Scope(user_id="alice", session_id="s")
        has = [lives("Ann", "Rome", subject_type="person"), likes("Ann", "tea", valid_to=MAY)]
        given: dict[str, Any] = {
            "kind": "procedure", "role": "tool", "name": "Ann", "namespace": ("a", "b"),
            "origin": "tool", "trust": 0.25, "occurred_at": START - timedelta(days=9),
            "expires_at": datetime(9000, 1, 1, tzinfo=UTC), "importance": 0.75, "pinned": True,
            "situation": "when asked", "outcome": "well", "votes": 3,
        }  # fmt: skip
        graph.apply([put("0", 1, talk, in_session=True)])
        graph.apply([put("a", 2, talk, in_session=True, relations=[likes("Ann", "jam")], **given)])
        changed = update("a", 3, talk, text="new", metadata={"n": [1]}, relations=has)
        [before] = graph.apply([changed])
        stated = graph.relations(talk)
        changes: list[Put | Remove] = [
            remove("a", 4, talk),
            restore("a", 5, talk, text="new", situation="when asked"),
        ]
        *_, after = graph.apply(changes) if at_once else [graph.apply([one])[0] for one in changes]

        assert before.record is not None
        at = START + timedelta(seconds=5)
        assert after.record == replace(before.record, version=5, updated_at=at)
        assert after.record.position == 1
        assert graph.page(talk, limit=1).records == (after.record,)
        assert ("a", "b") in graph.namespaces(talk)
        assert graph.relations(talk) == [replace(one, created_at=at) for one in stated]
        assert [one.event for one in graph.history(talk, after.record.id)][2:] == [
            "DELETE",
            "RESTORE",
        ]
        last = graph.history(talk, after.record.id)[-1]
        assert (last.text, last.previous, last.metadata) == ("new", None, {"n": [1]})

    def test_a_deleted_record_can_be_read_as_it_was(self, graph: GraphStore) -> None:
        [added] = graph.apply([put("a", 1, metadata={"n": 1}, name="Ann")])
        graph.apply([put("b", 2), remove("a", 3)])
        ids = [ALICE.record_id("fact", key) for key in "ab"]
        at = START + timedelta(seconds=3)

        assert added.record is not None
        assert graph.deleted(ALICE, ids[0]) == replace(added.record, version=3, updated_at=at)
        assert graph.deleted(ALICE, ids[1]) is None
        assert graph.deleted(ALICE, "nobody") is None
        assert graph.deleted(Scope(user_id="bob"), ids[0]) is None
        assert graph.deleted(Scope(user_id="alice", agent_id="x"), ids[0]) is None

    def test_only_what_is_deleted_is_restored(self, graph: GraphStore) -> None:
        bob = Scope(user_id="bob")
        graph.apply([put("a", 1), put("b", 2), remove("b", 5)])
        unknown, live = graph.apply([restore("nobody", 6), restore("a", 6, text="other")])
        foreign, late = graph.apply([restore("b", 6, given_scope=bob), restore("b", 4)])
        graph.erase(ALICE, 7)
        erased = graph.apply([restore("a", 8), restore("b", 8)])
        graph.apply([put("c", 9), remove("c", 10)])
        graph.erase(Scope(user_id="alice", agent_id="x"), 20)
        graph.erase(ALICE, 8)
        [kept] = graph.apply([restore("c", 11)])

        assert _events([unknown, live, foreign, late, *erased]) == ["NONE"] * 6
        assert [one.record for one in (unknown, foreign, late, *erased)] == [None] * 5
        assert live.record is not None
        assert live.record.text == "text of a"
        assert kept.change.event == "RESTORE"
        assert _texts(graph) == ["text of c"]

    def test_what_an_erasure_covers_is_not_restored_by_an_older_change(
        self, graph: GraphStore
    ) -> None:
        graph.apply([put("a", 1), remove("a", 9)])
        graph.erase(ALICE, 8)
        [outcome] = graph.apply([restore("a", 10)])

        assert outcome.change.event == "NONE"
        assert graph.deleted(ALICE, ALICE.record_id("fact", "a")) is None
        assert _texts(graph) == []

    def test_a_restored_value_takes_its_place_among_the_others(self, graph: GraphStore) -> None:
        day = timedelta(days=1)
        graph.apply([put("rome", 1, relations=[lives("Ann", "Rome")]), remove("rome", 2)])
        graph.apply([put("oslo", 3, relations=[lives("Ann", "Oslo", valid_from=START + day)])])
        [rome] = graph.apply([restore("rome", 4, text="text of rome")])
        graph.apply([put("bern", 5, relations=[lives("Ann", "Bern", valid_from=START + 2 * day)])])
        graph.apply([remove("bern", 6)])
        [bern] = graph.apply([restore("bern", 7, text="text of bern")])

        assert rome.record is not None
        assert rome.record.valid_to == START + day
        assert [one.text for one in bern.touched] == ["text of oslo"]
        ends = {one.object: one.valid_to for one in graph.relations(ALICE, include_superseded=True)}
        assert ends == {"Rome": START + day, "Oslo": START + 2 * day, "Bern": None}

    def test_a_record_that_was_ended_comes_back_ended(self, graph: GraphStore) -> None:
        end = START + timedelta(days=1)
        ending = replace(put("a", 2, valid_to=end), replace=True, relations=None)
        graph.apply([put("a", 1, relations=[likes("Ann", "tea")])])
        graph.apply([replace(ending, fields=("valid_to",)), remove("a", 3)])
        [outcome] = graph.apply([restore("a", 4)])

        assert outcome.record is not None
        assert outcome.record.valid_to == end
        [likes_tea] = graph.relations(ALICE, include_superseded=True)
        assert likes_tea.valid_to == end

    def test_a_delete_of_the_unknown_changes_nothing(self, graph: GraphStore) -> None:
        outcomes = graph.apply([remove("a", 1)])

        assert _events(outcomes) == ["NONE"]
        assert not any(graph.count(ALICE).values())

    def test_a_delete_that_spares_what_is_pinned_changes_nothing_of_it(
        self, graph: GraphStore
    ) -> None:
        graph.apply([put("a", 1, pinned=True), put("b", 2)])
        outcomes = graph.apply(
            [replace(remove(key, 3), spare_pinned=True) for key in ("a", "b")] + [remove("a", 2)]
        )

        assert _events(outcomes) == ["NONE", "DELETE", "DELETE"]
        assert len(graph.history(ALICE, ALICE.record_id("fact", "a"))) == 2

    def test_a_delete_from_a_scope_that_does_not_cover_changes_nothing(
        self, graph: GraphStore
    ) -> None:
        graph.apply([put("a", 1)])
        [outcome] = graph.apply([remove("a", 2, by=Scope(user_id="bob"))])

        assert outcome == replace(outcome, record=None)
        assert outcome.change.text is None
        assert outcome.change.event == "NONE"
        assert _texts(graph) == ["text of a"]

    def test_a_write_to_another_owners_record_changes_nothing(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1)])
        bob = Scope(user_id="bob")
        outcomes = graph.apply(
            [
                update("a", 2, given_scope=bob, text="mine now"),
                put("a", 3, given_scope=bob, text="mine now"),
            ]
        )

        assert [
            (outcome.change.event, outcome.change.text, outcome.record) for outcome in outcomes
        ] == [("NONE", None, None)] * 2
        assert _texts(graph) == ["text of a"]

    def test_a_deleted_record_leaves_no_text_but_its_history(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, metadata={"n": 1}), update("a", 2, text="new"), remove("a", 3)])
        history = graph.history(ALICE, ALICE.record_id("fact", "a"))
        [tombstone] = [one.record for one in graph.dump() if isinstance(one, RecordRow)]

        assert graph.get(ALICE, [ALICE.record_id("fact", "a")]) == []
        assert (tombstone.text, tombstone.metadata) == ("", {})
        assert [(one.version, one.event, one.text, one.previous) for one in history] == [
            (1, "ADD", "text of a", None),
            (2, "UPDATE", "new", "text of a"),
            (3, "DELETE", None, "new"),
        ]
        assert [one.metadata for one in history] == [{"n": 1}, {"n": 1}, {}]
        assert [one.at for one in history] == [START + timedelta(seconds=n) for n in (1, 2, 3)]

    def test_history_of_the_unknown_and_of_others_is_empty(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1)])

        assert graph.history(ALICE, "nobody") == []
        assert graph.history(Scope(user_id="bob"), ALICE.record_id("fact", "a")) == []

    def test_get_returns_records_in_the_order_asked_and_leaves_out_others(
        self, graph: GraphStore
    ) -> None:
        graph.apply([put("a", 1), put("b", 2), put("c", 3), remove("c", 4)])
        graph.apply([put("d", 5, Scope(user_id="bob"))])
        ids = [ALICE.record_id("fact", key) for key in ("b", "nothing", "c", "a")]
        ids.append(Scope(user_id="bob").record_id("fact", "d"))

        assert [one.text for one in graph.get(ALICE, ids)] == ["text of b", "text of a"]
        assert graph.get(ALICE, []) == []

    def test_turns_are_numbered_per_exact_session(self, graph: GraphStore) -> None:
        one, two = (Scope(user_id="u", session_id=name) for name in ("1", "2"))
        agent = Scope(user_id="u", agent_id="g", session_id="1")
        outcomes = graph.apply(
            [
                put(f"m{n}", n, scope, in_session=True)
                for n, scope in enumerate((one, one, two, agent, one), start=1)
            ]
            + [put("x", 6, one), put("y", 7, Scope(user_id="u"), in_session=True)]
        )

        assert [o.record.position for o in outcomes if o.record] == [0, 1, 0, 0, 2, None, None]

    def test_pages_go_newest_first_and_hold_everything_once(self, graph: GraphStore) -> None:
        graph.apply([put(f"k{n}", n + 1, created_at=START + timedelta(n // 3)) for n in range(10)])
        seen: list[Record] = []
        cursor = None
        for _ in range(4):
            page = graph.page(ALICE, limit=3, cursor=cursor)
            seen += page.records
            cursor = page.cursor

        assert cursor is None
        keys = [(one.created_at, one.id) for one in seen]
        assert keys == sorted(keys, reverse=True)
        assert len(set(keys)) == 10

    @pytest.mark.parametrize("given", [{}, {"kinds": ["fact"]}, {"where": {"namespace": ["n"]}}])
    def test_turns_of_one_moment_are_paged_by_their_position(
        self, graph: GraphStore, given: dict[str, Any]
    ) -> None:
        scope = Scope(user_id="alice", session_id="s")
        fact, *turns = (put(f"k{n}", n + 1, scope, namespace=("n",)) for n in range(9))
        changes = [fact, *(replace(one, in_session=True) for one in turns)]
        graph.apply([replace(one, record=replace(one.record, created_at=START)) for one in changes])
        if "where" in given:
            given = {"where": parse_filter(given["where"])}
        seen: list[Record] = []
        cursor = None
        for _ in range(3):
            page = graph.page(ALICE, limit=3, cursor=cursor, **given)
            seen += page.records
            cursor = page.cursor

        assert cursor is None
        assert [one.position for one in seen] == [7, 6, 5, 4, 3, 2, 1, 0, None]

    def test_a_page_that_is_just_full_has_no_cursor(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), put("b", 2)])

        assert graph.page(ALICE, limit=2).cursor is None
        assert graph.page(Scope(user_id="bob")).records == ()

    def test_a_cursor_stays_right_while_records_come_and_go(self, graph: GraphStore) -> None:
        graph.apply([put(f"k{n}", n) for n in range(1, 7)])
        page = graph.page(ALICE, limit=2)
        graph.apply([put("new", 10), remove("k6", 11), remove("k5", 12), remove("k3", 13)])

        rest = graph.page(ALICE, limit=10, cursor=page.cursor)
        assert [record.text for record in rest.records] == [
            "text of k4",
            "text of k2",
            "text of k1",
        ]

    @pytest.mark.parametrize("limit", [0, -1, 1001, True, "10", 2.0, None])
    def test_a_page_size_out_of_bounds_is_refused(self, graph: GraphStore, limit: Any) -> None:
        with pytest.raises(InvalidRecordError):
            graph.page(ALICE, limit=limit)

    @pytest.mark.parametrize("cursor", ["", "x", "bm90IGpzb24=", "é", "WzEsMl0=", "W10=", "\ud800"])
    def test_a_made_up_cursor_is_refused(self, graph: GraphStore, cursor: str) -> None:
        with pytest.raises(InvalidRecordError):
            graph.page(ALICE, cursor=cursor)

    def test_a_predicate_decides_on_every_row(self, graph: GraphStore) -> None:
        graph.apply([put(f"r{n}", n + 1, metadata={"n": n}) for n in range(7)])
        where = parse_filter({"n": {"gt": 0}}, lambda record: record.metadata["n"] % 3 == 0)

        page = graph.page(ALICE, where=where)

        assert {one.metadata["n"] for one in page.records} == {3, 6}

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ({"n": 1}, [1]),
            ({"n": {"gte": 3}}, [5, 4, 3]),
            ({"n": [2, 4]}, [4, 2]),
            ({"odd": True}, [5, 3, 1]),
            ({"NOT": [{"odd": True}]}, [4, 2]),
            ({"tags": "t2"}, [3, 2]),
            ({"missing": {"ne": 1}}, []),
            ({"word": {"icontains": "É4"}}, [4]),
            ({"OR": [{"n": 1}, {"AND": [{"n": {"gt": 3}}, {"odd": True}]}]}, [5, 1]),
            ({"created_at": {"lt": "2026-01-01T00:00:03+00:00"}}, [2, 1]),
            ({"n": "1"}, []),
            ({"n": True}, []),
            ({"a b.$c": 3}, [3]),
            ({"metadata.kind": {"gte": 4}}, [5, 4]),
            ({"id": 2**62 + 1}, [1]),
            ({"id": {"gt": 2**62 + 3}}, [5, 4]),
            ({"id": float(2**62)}, []),
        ],
    )
    def test_a_filter_is_applied_to_every_page(
        self, graph: GraphStore, where: dict[str, Any], expected: list[int]
    ) -> None:
        for n in range(1, 6):
            metadata = {"n": n, "odd": n % 2 == 1, "tags": [f"t{n}", f"t{n - 1}"], "word": f"é{n}"}
            metadata |= {"a b": {"$c": n}, "kind": n, "id": 2**62 + n}
            graph.apply([put(f"k{n}", n, metadata=metadata)])
        found: list[int] = []
        cursor = None
        for _ in range(6):
            page = graph.page(ALICE, where=parse_filter(where), limit=1, cursor=cursor)
            found += [record.metadata["n"] for record in page.records]
            cursor = page.cursor
            if cursor is None:
                break

        assert found == expected

    def test_namespaces_are_those_that_live_records_are_in(self, graph: GraphStore) -> None:
        bot, session = Scope(user_id="alice", agent_id="b"), Scope(user_id="alice", session_id="s")
        ended = START + timedelta(seconds=20)
        graph.apply(
            [
                put("a", 1, namespace=("x", "y")),
                put("b", 2, bot, namespace=("x", "z")),
                put("c", 3, session, namespace=("x",)),
                put("d", 4, namespace=("gone",), expires_at=ended),
                put("e", 5, namespace=("v",), valid_to=ended),
                put("f", 6, metadata={"namespace": ["w"], "under": ["w"]}),
                put("g", 7, metadata={"other": "w"}),
                put("h", 8, Scope(user_id="bob"), namespace=("bob's",)),
                put("i", 9, Scope(agent_id="b"), namespace=("x", "y")),
                put("j", 10, namespace=("x", "y")),
            ]
        )

        assert sorted(graph.namespaces(ALICE)) == [("v",), ("x",), ("x", "y"), ("x", "z")]
        assert graph.namespaces(bot) == [("x", "z")]
        assert graph.namespaces(session) == [("x",)]
        assert graph.namespaces(Scope(agent_id="b")) == [("x", "y")]
        assert graph.namespaces(Scope(user_id="carol")) == []
        listed = graph.list_namespaces()
        assert {namespace: {*scopes} for namespace, scopes in listed.items()} == {
            ("bob's",): {Scope(user_id="bob")},
            ("v",): {ALICE},
            ("x",): {session},
            ("x", "y"): {ALICE, Scope(agent_id="b")},
            ("x", "z"): {bot},
        }
        assert sorted(listed) == [*listed]
        assert sorted(graph.list_users()) == ["alice", "bob"]
        assert graph.list_users(("x",)) == ["alice"]
        assert graph.list_users(("x", "y")) == ["alice"]
        assert graph.list_users(("w",)) == graph.list_users(("x", "y", "z")) == []
        graph.erase(ALICE, 10)
        assert graph.list_users(("x",)) == []

    def test_namespaces_are_listed_in_their_order_and_in_pages(self, graph: GraphStore) -> None:
        labels = ["\x01", "a", 'a"', "a]", "ab", "z", "zé", "\U0010ffff"]
        paths: list[tuple[str, ...]] = [("a", "a", "b"), *((label,) for label in labels)]
        paths = sorted([*paths, *(("a", label) for label in labels)])
        scopes = [ALICE, Scope(user_id="bob"), Scope(agent_id="b")]
        graph.apply(
            [
                put(f"{n}{scope.user_id}", 1 + n, scope, namespace=path)
                for n, path in enumerate(paths)
                for scope in (scopes if n % 2 else scopes[:1])
            ]
        )

        for prefix in ((), ("z",), ("a",), ("a", "a"), ("a", "a", "b"), ("\U0010ffff",), ("none",)):
            fitting = [path for path in paths if path[: len(prefix)] == prefix]
            assert [*graph.list_namespaces(prefix)] == fitting
            paged: list[tuple[str, ...]] = []
            while page := graph.list_namespaces(prefix, after=paged[-1] if paged else (), limit=2):
                assert len(page) <= 2
                paged += page
            assert paged == fitting
        listed = graph.list_namespaces()
        assert {*map(len, listed.values())} == {1, 3}
        with pytest.raises(InvalidRecordError, match="limit"):
            graph.list_namespaces(limit=0)

    def test_namespaces_follow_every_change_of_their_records(self, graph: GraphStore) -> None:
        def found() -> list[str]:
            return sorted(path[-1] for path in graph.namespaces(ALICE))

        ended = START + timedelta(seconds=20)
        later = datetime(9000, 1, 1, tzinfo=UTC)
        graph.apply([put(key, 1, namespace=("x", key)) for key in "abcd"])
        graph.apply([update("a", 2, namespace=("x", "e")), update("b", 2, text="new")])
        assert found() == ["b", "c", "d", "e"]
        graph.apply([update("a", 3, namespace=()), update("b", 3, expires_at=ended)])
        assert found() == ["c", "d"]
        graph.apply([update("b", 4, expires_at=later), remove("c", 4)])
        assert found() == ["b", "d"]
        graph.apply([put("c", 5, namespace=("x",)), update("d", 0, namespace=())])
        assert found() == ["b", "d", "x"]
        graph.erase(ALICE, 4)
        assert found() == ["x"]
        graph.erase(ALICE, 5)
        assert found() == []

    def test_a_page_of_a_namespace_has_what_is_in_it_at_any_depth(self, graph: GraphStore) -> None:
        bot, bob = Scope(user_id="alice", agent_id="b"), Scope(user_id="bob")
        graph.apply(
            [put(f"k{n}", n, namespace=("x", f"{n % 2}"), metadata={"n": n}) for n in range(1, 8)]
        )
        graph.apply([put("bot", 8, bot, namespace=("x",)), put("bob", 9, bob)])
        graph.apply([update("k3", 10, namespace=("y",)), remove("k5", 11)])
        graph.apply([put("other", 12, bob, namespace=("x",)), put("none", 13)])
        graph.apply([put("again", 14, kind="profile", namespace=("x", "x"))])
        graph.apply([put("near", 15, namespace=('x", "1',))])

        def texts(scope: Scope, where: dict[str, Any], **given: Any) -> list[str]:
            found: list[str] = []
            cursor = None
            while True:
                page = graph.page(scope, where=parse_filter(where), limit=2, cursor=cursor, **given)
                found += [record.text.removeprefix("text of ") for record in page.records]
                cursor = page.cursor
                if cursor is None:
                    return found

        x = {"namespace": ["x"]}
        assert texts(ALICE, x) == ["again", "bot", "k7", "k6", "k4", "k2", "k1"]
        assert texts(ALICE, {"namespace": ["x", "1"]}) == ["k7", "k1"]
        assert texts(ALICE, {**x, "n": {"lt": 5}}) == ["k4", "k2", "k1"]
        assert texts(ALICE, {"AND": [{"n": 7}, x]}) == ["k7"]
        assert texts(ALICE, {"AND": [x, {"namespace": ["x", "1"]}]}) == ["k7", "k1"]
        assert texts(ALICE, x, kinds=["profile"]) == ["again"]
        assert texts(bot, x) == ["bot"]
        assert texts(bob, x) == ["other"]
        assert texts(ALICE, {"OR": [{"namespace": ["y"]}, {"namespace": ["x", "x"]}]}) == [
            "again",
            "k3",
        ]
        assert texts(ALICE, {"NOT": [x]}) == ["near", "none", "k3"]
        assert texts(ALICE, {"NOT": [{"namespace": []}]}) == ["none"]
        assert texts(bob, {"namespace": []}) == ["other"]

    def test_kinds_narrow_a_page(self, graph: GraphStore) -> None:
        kinds: tuple[Kind, ...] = ("fact", "profile", "episode")
        graph.apply([put(kind, n + 1, kind=kind) for n, kind in enumerate(kinds)])
        page = graph.page(ALICE, kinds=["profile"])
        both = graph.page(ALICE, kinds=["profile", "fact"], limit=1)

        assert [record.text for record in page.records] == ["text of profile"]
        assert both.cursor is not None
        assert len(graph.page(ALICE, kinds=["profile", "fact"], cursor=both.cursor).records) == 1

    def test_the_last_accesses_are_kept_and_removed_with_their_record(
        self, graph: GraphStore
    ) -> None:
        session = Scope(user_id="alice", session_id="s")
        outcomes = graph.apply([put("a", 1), put("b", 2, session), put("c", 3)])
        a, b, c = (outcome.change.id for outcome in outcomes)
        for n in range(25):
            graph.log_access(ALICE, [a, b, "unknown"], START + timedelta(seconds=n))
        graph.log_access(Scope(user_id="bob"), [c], START)
        graph.log_access(session, [c], START)
        found = graph.access_log(ALICE, [c, b, a, "unknown"])
        graph.apply([remove("a", 4)])
        graph.erase(session, 5)

        assert {one: len(times) for one, times in found.items()} == {a: 20, b: 20}
        assert found[a] == sorted(found[a], reverse=True)
        assert found[a][0] == START + timedelta(seconds=24)
        assert list(graph.access_log(session, [a, b])) == []
        assert graph.access_log(ALICE, [a, b, c]) == {}

    def test_accesses_do_not_come_back_with_a_record_that_was_erased(
        self, graph: GraphStore
    ) -> None:
        id_ = ALICE.record_id("fact", "a")
        graph.apply([put("a", 1)])
        graph.log_access(ALICE, [id_], START)
        graph.erase(ALICE, 2)
        graph.apply([put("a", 3)])

        assert len(graph.get(ALICE, [id_])) == 1
        assert graph.access_log(ALICE, [id_]) == {}

    def test_no_owner_sees_another_however_alike_their_ids(self, graph: GraphStore) -> None:
        scopes = [Scope(user_id=one) for one in NASTY]
        scopes += [Scope(agent_id=one) for one in NASTY]
        scopes += [Scope(session_id=one) for one in NASTY]
        changes = [
            put("k", 1, one, text=f"canary {n}", relations=[likes(f"canary {n}", "tea")])
            for n, one in enumerate(scopes)
        ]
        graph.apply(changes)
        ids = [change.record.id for change in changes]
        for n, one in enumerate(scopes):
            assert _texts(graph, one) == [f"canary {n}"]
            assert [found.text for found in graph.get(one, ids)] == [f"canary {n}"]
            assert [found.subject for found in graph.relations(one)] == [f"canary {n}"]
            assert [found.subject for found in graph.relations(one, "tea")] == [f"canary {n}"]
            assert [found.name for found in graph.entities(one)] == [f"canary {n}", "tea"]
            assert list(graph.versions(one)) == [(ids[n], 1)]
            assert graph.count(one) == {"records": 1, "versions": 1, "relations": 1, "entities": 2}
        graph.erase(scopes[0], 9)
        assert [_texts(graph, scope) == [] for scope in scopes] == [True] + [False] * (
            len(scopes) - 1
        )

    def test_agents_and_sessions_of_one_user_read_only_what_they_cover(
        self, graph: GraphStore
    ) -> None:
        held = [
            Scope(user_id="u", agent_id=agent, session_id=session)
            for agent in ("cook", "nurse")
            for session in (None, "s1", "s2")
        ]
        changes = [
            put("k", 1, one, relations=[likes(f"friend {n}", "tea")]) for n, one in enumerate(held)
        ]
        graph.apply(changes)
        ids = [change.record.id for change in changes]
        for one in held:
            graph.log_access(one, ids, START)

        for asked in (*held, Scope(user_id="u"), Scope(user_id="v")):
            seen = [n for n, one in enumerate(held) if asked.covers(one)]
            friends = [f"friend {n}" for n in seen]
            assert [one.id for one in graph.get(asked, ids)] == [ids[n] for n in seen]
            assert [n for n, one in enumerate(ids) if graph.history(asked, one)] == seen
            assert sorted(graph.access_log(asked, ids)) == sorted(ids[n] for n in seen)
            for found in (
                graph.relations(asked),
                graph.relations(asked, "tea"),
                graph.relations(asked, records=ids),
            ):
                assert [one.subject for one in found] == friends

    def test_a_scope_covers_its_agents_and_sessions_and_never_users(
        self, graph: GraphStore
    ) -> None:
        full = Scope(user_id="u", agent_id="g", session_id="s")
        nobody = Scope(agent_id="g", session_id="s")
        graph.apply([put("a", 1, full), put("b", 2, nobody)])

        assert [_texts(graph, one) for one in full.covering()] == [["text of a"]] * 4
        assert [_texts(graph, one) for one in nobody.covering()] == [["text of b"]] * 3
        assert _texts(graph, Scope(user_id="u", agent_id="s")) == []

    def test_an_ignored_change_leaves_relations_alone(self, graph: GraphStore) -> None:
        graph.apply([put("a", 5, relations=[likes("Ann", "tea")])])
        graph.apply([put("a", 6), update("a", 4, relations=[likes("Ann", "rum")]), remove("a", 3)])

        assert [relation.object for relation in graph.relations(ALICE)] == ["tea"]

    def test_erasure_removes_everything_and_counts_it(self, graph: GraphStore) -> None:
        session = Scope(user_id="alice", agent_id="g", session_id="s")
        graph.apply(
            [
                put("a", 1, session, in_session=True, relations=[likes("Ann", "tea")]),
                put("b", 2, relations=[likes("Ann", "tea")]),
                update("b", 3),
                remove("b", 4),
            ]
        )
        before = graph.count(ALICE)
        removed = graph.erase(ALICE, 4).removed

        assert before == {"records": 2, "versions": 4, "relations": 1, "entities": 2}
        assert removed == before
        assert not any(graph.count(ALICE).values())
        assert graph.history(ALICE, ALICE.record_id("fact", "b")) == []
        assert not any(graph.erase(ALICE, 4).removed.values())

    def test_an_erased_session_counts_from_zero_again(self, graph: GraphStore) -> None:
        scope = Scope(user_id="u", session_id="s")
        graph.apply([put("a", 1, scope, in_session=True), put("b", 2, scope, in_session=True)])
        graph.erase(Scope(user_id="u"), 2)
        [outcome] = graph.apply([put("c", 3, scope, in_session=True)])

        assert outcome.record is not None
        assert outcome.record.position == 0

    def test_erasure_takes_only_what_its_scope_covers(self, graph: GraphStore) -> None:
        mine, other = (Scope(user_id="alice", session_id=name) for name in "so")
        for n, scope in enumerate((mine, other, ALICE), start=1):
            graph.apply([put("a", n, scope, relations=[likes("Ann", "tea")])])
        removed = graph.erase(mine, 9).removed

        assert removed == {"records": 1, "versions": 1, "relations": 0, "entities": 0}
        assert graph.count(ALICE) == {"records": 2, "versions": 2, "relations": 1, "entities": 2}
        assert [entity.name for entity in graph.entities(ALICE)] == ["Ann", "tea"]

    def test_what_came_after_the_erasure_was_accepted_stays(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), put("b", 6, relations=[likes("Ann", "tea")])])
        removed = graph.erase(ALICE, 5).removed

        assert removed == {"records": 1, "versions": 1, "relations": 0, "entities": 0}
        assert _texts(graph) == ["text of b"]
        assert len(graph.relations(ALICE)) == 1

    def test_an_erasure_refuses_what_was_accepted_before_it(self, graph: GraphStore) -> None:
        session = Scope(user_id="alice", session_id="s")
        graph.erase(ALICE, 5)
        graph.erase(ALICE, 3)
        early = graph.apply([put("a", 4), put("b", 5, session)])
        late = graph.apply([put("a", 6), put("b", 7, session), put("c", 1, Scope(user_id="bob"))])

        assert _events(early) == ["NONE", "NONE"]
        assert [one.record for one in early] == [None, None]
        assert _events(late) == ["ADD", "ADD", "ADD"]

    def test_versions_iterate_over_every_live_record(self, graph: GraphStore) -> None:
        graph.apply([put(f"k{n}", n, created_at=START) for n in range(1, 1503)])
        graph.apply([remove("k1", 2000), update("k2", 2001)])
        found = dict(graph.versions(ALICE))

        assert len(found) == 1501
        assert found[ALICE.record_id("fact", "k2")] == 2001
        assert ALICE.record_id("fact", "k1") not in found

    def test_versions_leave_out_what_the_index_should_not_have(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, indexed=False), put("b", 2), put("c", 3), put("d", 4)])
        unindexed = put("c", 5, indexed=False)
        graph.apply([replace(unindexed, replace=True, upsert=True, fields=("text", "indexed"))])
        graph.apply([update("a", 6, text="new")])
        wanted = {ALICE.record_id("fact", key): n for key, n in (("b", 2), ("d", 4))}

        assert dict(graph.versions(ALICE)) == dict(graph.versions(None)) == wanted
        kept = [one.record for one in graph.dump() if isinstance(one, RecordRow)]
        assert [one.indexed for one in kept] == [False, True, False, True]

    def test_eight_threads_lose_nothing_and_share_relations(self, graph: GraphStore) -> None:
        scope = Scope(user_id="alice", session_id="s")

        def work(thread: int) -> None:
            for n in range(10):
                asserted = [likes("Ann", f"thing {n}")]
                graph.apply([put(f"{thread}.{n}", 1, scope, in_session=True, relations=asserted)])
                graph.page(scope, limit=5)
                graph.relations(scope, "Ann")

        at_once(8, work)

        assert graph.count(scope) == {
            "records": 80,
            "versions": 80,
            "relations": 10,
            "entities": 11,
        }
        records = graph.page(scope, limit=1000).records
        assert sorted(record.position or 0 for record in records) == list(range(80))
        assert [len(relation.supports) for relation in graph.relations(scope)] == [8] * 10

    def test_an_id_has_a_scope_also_when_it_was_deleted(self, graph: GraphStore) -> None:
        here = Scope(user_id="alice", agent_id="bot", session_id="s1")
        first, second = put("a", 1, here), put("b", 2, Scope(agent_id="bot"))
        graph.apply([first, second, remove("a", 3, here)])

        assert [here, Scope(agent_id="bot"), None] == [
            graph.scope_of(one) for one in (first.record.id, second.record.id, "nobody's")
        ]
        assert {here, Scope(agent_id="bot")} == set(graph.list_scopes())

    def test_a_closed_store_says_so(self, graph: GraphStore) -> None:
        graph.close()
        graph.close()

        with pytest.raises(MemoryClosedError):
            graph.apply([put("a", 1)])
        with pytest.raises(MemoryClosedError):
            graph.page(ALICE)

    def test_it_fits_the_port(self, graph: GraphStore) -> None:
        assert isinstance(graph, GraphStore)
