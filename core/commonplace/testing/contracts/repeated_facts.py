"""Contract of facts told again, and of records that are ended: inherit `TellingContract`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ...ports.engines import GraphStore
from ...ports.stores import Outcome, Put
from ...types import Record, Relation, Scope
from ...validation import MAX_METADATA_BYTES
from .graph import ALICE, START, likes, lives, put, remove, update
from .relations import DAY, homes, live, moved

A = ALICE.record_id("fact", "a")


def second(number: int) -> datetime:
    """Give the time at which `put` makes the record of this version."""
    return START + timedelta(seconds=number)


def end(key: str, version: int, until: datetime, scope: Scope = ALICE) -> Put:
    """Make the change that ends the record under `key`."""
    change = put(key, version, scope, valid_to=until)
    return replace(change, replace=True, relations=None, fields=("valid_to",))


def told(graph: GraphStore, *changes: Put) -> tuple[list[str], Record]:
    """Apply changes one by one; return their events, and the record that the last one left."""
    outcomes = [graph.apply([change])[0] for change in changes]
    record = outcomes[-1].record
    assert record is not None
    assert graph.get(record.scope, [record.id]) == [record]
    return [outcome.change.event for outcome in outcomes], record


def repeats(graph: GraphStore, change: Put) -> Outcome:
    """Apply a change twice, and check that the second time changes nothing."""
    [first] = graph.apply([change])
    before = list(graph.dump())
    [again] = graph.apply([change])
    assert (again.change, again.record) == (first.change, first.record)
    assert {one.id for one in again.touched} >= {one.id for one in first.touched}
    assert list(graph.dump()) == before
    return first


def stated(graph: GraphStore, **given: Any) -> list[tuple[str, datetime | None, datetime | None]]:
    """Read the relations of the record under `a`: object, beginning and end."""
    found = graph.relations(ALICE, records=[A], **{"include_superseded": True, **given})
    return [(one.object, one.valid_from, one.valid_to) for one in found]


class TellingContract:
    """Promises about facts told again and records ended; the fixture gives an empty store."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give an empty store."""
        raise NotImplementedError

    # -- told again ------------------------------------------------------------------------------

    def test_what_is_told_again_is_counted_and_no_version(self, graph: GraphStore) -> None:
        first = put("a", 1, metadata={"n": 1}, importance=0.9, expires_at=second(2**33))
        again = put("a", 4, text=" text of a\n", importance=0.1)
        events, record = told(graph, first, put("a", 2), put("a", 3), again)

        assert events == ["ADD", "NONE", "NONE", "NONE"]
        assert record == replace(first.record, times_told=4, last_told_at=second(4))
        assert len(graph.history(ALICE, A)) == 1
        assert dict(graph.versions(ALICE)) == {A: 1}

    def test_what_is_new_in_it_is_merged(self, graph: GraphStore) -> None:
        first = put("a", 1, metadata={"city": "Lyon", "year": 2020}, expires_at=second(2**32))
        given = {"year": 2021, "done": True}
        later = second(2**33)
        again = put("a", 2, text="text of a ", metadata=given, expires_at=later, pinned=True)
        events, record = told(graph, first, again)
        history = graph.history(ALICE, A)

        assert events == ["ADD", "UPDATE"]
        assert record == replace(
            first.record,
            metadata={"city": "Lyon", **given},
            expires_at=later,
            pinned=True,
            version=2,
            updated_at=second(2),
            times_told=2,
            last_told_at=second(2),
        )
        assert [(one.event, one.text, one.previous) for one in history] == [
            ("ADD", "text of a", None),
            ("UPDATE", "text of a", "text of a"),
        ]
        assert history[-1].metadata == record.metadata

    @pytest.mark.parametrize(
        "given",
        [
            {"metadata": {"n": True}},
            {"expires_at": second(2**33)},
            {"importance": 0.75},
            {"pinned": True},
            {"relations": [likes("Ann", "tea")]},
        ],
        ids=lambda given: next(iter(given)),
    )
    def test_any_of_it_is_an_update_and_repeating_it_changes_nothing(
        self, graph: GraphStore, given: dict[str, Any]
    ) -> None:
        graph.apply([put("a", 1, metadata={"n": 1})])
        outcome = repeats(graph, put("a", 2, **given))
        known = repeats(graph, put("a", 3, **given))

        assert (outcome.change.event, known.change.event) == ("UPDATE", "NONE")
        assert outcome.record is not None
        assert known.record == replace(outcome.record, times_told=3, last_told_at=second(3))

    def test_repeating_a_count_changes_nothing(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1)])
        outcome = repeats(graph, put("a", 2))
        graph.apply([moved("Rome", 1, 3)])
        again = repeats(graph, put("a", 2))

        assert again == outcome
        assert outcome.record is not None
        assert outcome.record.times_told == 2

    def test_an_older_telling_is_merged_and_not_counted(self, graph: GraphStore) -> None:
        early = put("a", 3, created_at=second(1), metadata={"n": 1})
        same = put("a", 4, created_at=second(2))
        events, record = told(graph, put("a", 2), early, same)

        assert events == ["ADD", "UPDATE", "NONE"]
        assert (record.metadata, record.times_told, record.last_told_at) == ({"n": 1}, 1, None)

    def test_a_late_telling_changes_nothing(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), update("a", 5, metadata={})])
        _, record = told(graph, put("a", 4, metadata={"n": 1}))

        assert (record.metadata, record.times_told, record.version) == ({}, 1, 5)

    def test_turns_and_other_texts_are_not_told_again(self, graph: GraphStore) -> None:
        scope = Scope(user_id="alice", session_id="s")
        turn = put("turn", 1, scope, kind="episode", in_session=True)
        graph.apply([turn, put("a", 1), put("b", 1), put("c", 1)])
        changed: dict[str, Any] = {"metadata": {"n": 1}, "pinned": True}
        outcomes = graph.apply(
            [
                put("turn", 2, scope, kind="episode", in_session=True, **changed),
                put("a", 2, text="Text of a", **changed),
                put("b", 2, given_scope=Scope(user_id="bob"), **changed),
            ]
        )

        assert [outcome.change.event for outcome in outcomes] == ["NONE"] * 3
        assert outcomes[2].record is None
        records = graph.page(ALICE).records
        assert {(record.times_told, record.version, record.pinned) for record in records} == {
            (1, 1, False)
        }

    def test_what_has_ended_is_not_told_again_from_then_on(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), end("a", 2, second(4))])
        events, record = told(graph, put("a", 3), put("a", 4))

        assert events == ["NONE", "NONE"]
        assert (record.times_told, record.valid_to) == (2, second(4))

    def test_what_comes_back_is_told_once(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1), put("a", 2), put("b", 1, expires_at=second(4)), put("b", 2)])
        graph.apply([remove("a", 3)])
        kept = [one.record for one in graph.dump() if getattr(one, "live", True) is False]  # type: ignore[union-attr]
        outcomes = graph.apply([put("a", 5), put("b", 5)])

        # For a restoration, which brings back the count, too.
        assert [(one.times_told, one.last_told_at) for one in kept] == [(2, second(2))]
        assert [outcome.change.event for outcome in outcomes] == ["ADD", "ADD"]
        assert [outcome.record for outcome in outcomes] == [put("a", 5).record, put("b", 5).record]

    def test_a_fact_that_is_told_again_moves_to_the_new_namespace(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, namespace=("old",)), put("a", 2, namespace=("new", "x"))])
        graph.apply([put("a", 3)])

        assert graph.namespaces(ALICE) == [("new", "x")]

    def test_metadata_beyond_the_limits_stay_as_they_were(self, graph: GraphStore) -> None:
        many = {"file": "x" * (MAX_METADATA_BYTES - 100), "m1": 1}
        graph.apply([put("a", 1, metadata=many)])
        events, record = told(graph, put("a", 2, metadata={"more": "y" * 100, "m1": 5}))

        assert (events, record.metadata, record.times_told) == (["NONE"], many, 2)

    # -- what it states --------------------------------------------------------------------------

    def test_relations_are_added_to_those_that_it_states(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea")])])
        again = put("a", 2, relations=[likes("ANN", " Tea "), likes("Ann", "jam")])
        outcome = repeats(graph, again)
        known = repeats(graph, replace(put("a", 3), relations=again.relations))

        assert (outcome.change.event, known.change.event) == ("UPDATE", "NONE")
        assert stated(graph, include_superseded=False) == [
            ("tea", None, None),
            ("jam", None, None),
        ]
        assert [len(relation.supports) for relation in graph.relations(ALICE)] == [1, 1]

    def test_a_telling_without_relations_keeps_them(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), put("Ann Rome 1", 2, pinned=True, occurred_at=START)])

        assert (homes(graph), live(graph)) == (["Rome"], ["text of Ann Rome 1"])

    def test_the_same_value_from_a_later_moment_is_known(self, graph: GraphStore) -> None:
        later = lives("Ann", "Rome", valid_from=second(9))
        graph.apply([put("a", 1, relations=[lives("Ann", "Rome", valid_from=second(1))])])
        outcome = repeats(graph, put("a", 9, relations=[later]))

        assert outcome.change.event == "NONE"
        assert stated(graph) == [("Rome", second(1), None)]

    def test_an_earlier_value_or_one_that_ended_is_new(self, graph: GraphStore) -> None:
        both = [lives(who, "Rome", valid_from=START + DAY) for who in ("Ann", "Bob")]
        graph.apply([put("a", 1, relations=both), moved("Oslo", 3, 2)])
        back = [lives(who, "Rome", valid_from=START + 5 * DAY) for who in ("Ann", "Bob")]
        outcome = repeats(graph, put("a", 5, relations=back, occurred_at=START + 5 * DAY))
        early = repeats(graph, put("a", 6, relations=[lives("Bob", "Rome")]))

        assert [outcome.change.event, early.change.event] == ["UPDATE", "UPDATE"]
        assert [one.text for one in outcome.touched] == ["text of Ann Oslo 3"]
        assert homes(graph) == ["Rome", "Rome"]
        assert stated(graph) == [
            ("Rome", START + DAY, START + 3 * DAY),
            ("Rome", START + DAY, None),
            ("Rome", START + 5 * DAY, None),
            ("Rome", START, START + DAY),
        ]

    def test_a_new_end_is_new_and_a_missing_one_is_not(self, graph: GraphStore) -> None:
        def telling(version: int, until: datetime | None) -> Put:
            given = [likes("Ann", "tea", valid_to=until), lives("Ann", "Rome", valid_to=until)]
            return put("a", version, relations=given)

        changes = [telling(1, None), telling(2, START + DAY), telling(3, None)]
        events, record = told(graph, *changes, telling(4, START + 2 * DAY))

        assert events == ["ADD", "UPDATE", "NONE", "UPDATE"]
        assert {until for _, _, until in stated(graph)} == {START + 2 * DAY}
        assert record.valid_to == START + 2 * DAY

    def test_no_relation_holds_longer_than_its_record_is_shown(self, graph: GraphStore) -> None:
        shown = second(2**33)
        graph.apply([put("a", 1, expires_at=shown)])
        given = [likes("Ann", "tea"), likes("Ann", "jam", valid_from=shown)]
        graph.apply([put("a", 2, relations=given)])

        assert stated(graph) == [("tea", None, shown)]

    def test_what_an_update_dropped_can_be_told_again(self, graph: GraphStore) -> None:
        given = [likes("Ann", "tea")]
        dropped = replace(update("a", 2), relations=())
        graph.apply([put("a", 1, relations=given), dropped])
        before = graph.relations(ALICE)
        outcome = repeats(graph, put("a", 3, relations=given))

        assert before == []
        assert outcome.change.event == "UPDATE"
        assert stated(graph, include_superseded=False) == [("tea", None, None)]

    # -- ending ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("given", [[], [likes("Ann", "Oslo")], [lives("Ann", "Oslo")]])
    def test_an_ended_record_and_what_it_states_are_over(
        self, graph: GraphStore, given: Sequence[Relation]
    ) -> None:
        ended = START + 5 * DAY
        graph.apply([put("a", 1, relations=given)])
        outcome = repeats(graph, end("a", 2, ended))
        before = START + 4 * DAY

        assert outcome.record is not None
        assert (outcome.change.event, outcome.record.valid_to) == ("UPDATE", ended)
        assert (live(graph), live(graph, as_of=ended)) == ([], [])
        assert live(graph, as_of=before) == ["text of a"]
        assert [one.event for one in graph.history(ALICE, A)] == ["ADD", "UPDATE"]
        assert graph.relations(ALICE) == []
        assert graph.expand(ALICE, ["ann"], ended) == []
        assert homes(graph, as_of=before) == [one.object for one in given]
        assert [until for _, _, until in stated(graph)] == [ended] * len(given)

    def test_what_ended_earlier_stays_so(self, graph: GraphStore) -> None:
        early, late = START + DAY, START + 9 * DAY
        given = [likes("Ann", "tea", valid_to=early), likes("Ann", "jam", valid_to=late)]
        graph.apply([put("a", 1, relations=given), end("a", 2, START + 5 * DAY)])

        assert [until for _, _, until in stated(graph)] == [early, START + 5 * DAY]

    def test_what_it_had_ended_stays_so(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 3, 2)])
        graph.apply([end("Ann Oslo 3", 3, START + 5 * DAY)])

        assert homes(graph) == live(graph) == []
        assert [homes(graph, as_of=START + n * DAY) for n in (2, 4, 5)] == [["Rome"], ["Oslo"], []]

    def test_what_never_held_is_retracted(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 3, 2), moved("Bonn", 3, 3)])
        outcome = repeats(graph, end("Ann Oslo 3", 4, START + 3 * DAY))
        last = repeats(graph, end("Ann Bonn 3", 5, START + DAY))

        assert outcome.record is not None
        assert (outcome.record.valid_to, outcome.record.conflicts) == (START + 3 * DAY, ())
        assert [(one.text, one.conflicts) for one in outcome.touched] == [
            ("text of Ann Bonn 3", ())
        ]
        assert [(one.text, one.valid_to) for one in last.touched] == [("text of Ann Rome 1", None)]
        assert (homes(graph), live(graph)) == (["Rome"], ["text of Ann Rome 1"])

    def test_nothing_that_others_state_reopens_it(self, graph: GraphStore) -> None:
        loose = [likes("Ann", "tea")]
        single = likes("Ann", "tea", single_valued=True)
        graph.apply([put("a", 1, relations=loose), end("a", 2, START + 5 * DAY)])
        graph.apply([moved("Rome", 1, 3), end("Ann Rome 1", 4, START + 5 * DAY)])
        graph.apply([put("b", 5, relations=[single]), moved("Oslo", 3, 6)])
        graph.apply([remove("b", 7), remove("Ann Oslo 3", 8), moved("Bern", 0, 9)])
        graph.apply([put("a", 10, occurred_at=START)])
        ends = {record.text: record.valid_to for record in graph.page(ALICE).records}

        assert ends["text of a"] == ends["text of Ann Rome 1"] == START + 5 * DAY
        assert (homes(graph), live(graph)) == ([], [])

    def test_new_relations_or_another_text_reopen_it(self, graph: GraphStore) -> None:
        for key in "ab":
            graph.apply([put(key, 1, relations=[lives("Ann", "Rome")]), end(key, 2, START + DAY)])
        kept = replace(update("a", 3, pinned=True), relations=None)
        [same] = graph.apply([kept])
        graph.apply([update("a", 4, relations=[lives("Ann", "Oslo", valid_from=START + DAY)])])
        graph.apply([replace(update("b", 5, text="new"), relations=())])

        assert same.record is not None
        assert same.record.valid_to == START + DAY
        assert live(graph) == ["new", "text of a"]
        assert homes(graph) == ["Oslo"]

    def test_an_end_that_comes_late_or_for_nothing_is_ignored(self, graph: GraphStore) -> None:
        graph.apply([put("a", 5), put("b", 1), remove("b", 2)])
        outcomes = graph.apply([end(key, 4, START + DAY) for key in "abc"])

        assert [outcome.change.event for outcome in outcomes] == ["NONE"] * 3
        assert live(graph) == ["text of a"]
