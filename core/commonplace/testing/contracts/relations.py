"""Contract of relations and supersession in every graph store: inherit `RelationContract`."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ...ports.engines import GraphStore
from ...ports.stores import Put
from ...types import Record, Relation, Scope
from .graph import ALICE, START, likes, lives, put, remove, update

DAY = timedelta(days=1)
MONDAY = Scope(user_id="alice", session_id="monday")
TUESDAY = Scope(user_id="alice", session_id="tuesday")


def moved(where: str, day: int, version: int, scope: Scope = ALICE, *, who: str = "Ann") -> Put:
    """Make the change that adds where somebody lives from a day on."""
    at = START + day * DAY
    asserted = lives(who, where, valid_from=at)
    change = put(f"{who} {where} {day}", version, scope, relations=[asserted])
    return replace(change, record=replace(change.record, occurred_at=at))


def homes(graph: GraphStore, scope: Scope = ALICE, **given: Any) -> list[str]:
    """Read where people live, by name."""
    return sorted(relation.object for relation in graph.relations(scope, **given))


def live(graph: GraphStore, scope: Scope = ALICE, **given: Any) -> list[str]:
    """Read the texts of records that are true."""
    page = graph.page(scope, limit=1000, **{"include_superseded": False, **given})
    return sorted(record.text for record in page.records)


def ends(records: Sequence[Record]) -> list[tuple[str, datetime | None]]:
    """Read until when records are true, by text."""
    return sorted((record.text, record.valid_to) for record in records)


class RelationContract:
    """Promises about relations, supersession and expansion; the fixture gives an empty store."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give an empty store."""
        raise NotImplementedError

    # -- assertions ----------------------------------------------------------------------------

    def test_relations_come_by_age_with_all_who_support_them(self, graph: GraphStore) -> None:
        first = likes("Ann", "tea")
        second = likes("Bob", "Ann", valid_from=START, valid_to=START + timedelta(1))
        graph.apply([put("a", 1, relations=[first, second])])
        graph.apply([put("b", 2, relations=[likes(" ANN", "T\uff45a")])])
        a, b = (ALICE.record_id("fact", key) for key in "ab")

        asserted: dict[str, Any] = {
            "single_valued": False,
            "created_at": START + timedelta(seconds=1),
        }
        assert graph.relations(ALICE, include_superseded=True) == [
            replace(first, **asserted, supports=tuple(sorted((a, b)))),
            replace(second, **asserted, supports=(a,)),
        ]
        assert [entity.name for entity in graph.entities(ALICE)] == ["Ann", "Bob", "tea"]

    def test_relations_of_one_entity_are_found_by_either_end(self, graph: GraphStore) -> None:
        asserted = [likes("Ann", "tea"), likes("Bob", "Ann"), likes("Bob", "tea")]
        graph.apply([put("a", 1, relations=asserted)])

        found = graph.relations(ALICE, "aNN")
        assert [(one.subject, one.object) for one in found] == [("Ann", "tea"), ("Bob", "Ann")]
        assert graph.relations(ALICE, "An") == []

    def test_relations_of_records_are_those_that_they_assert(self, graph: GraphStore) -> None:
        bob, session = Scope(user_id="bob"), Scope(user_id="alice", session_id="s")
        graph.apply([put("a", 1, relations=[likes("Ann", "tea"), likes("Bob", "tea")])])
        graph.apply([put("b", 2, relations=[likes("Ann", "tea"), likes("Cem", "tea")])])
        graph.apply([put("c", 3, bob, relations=[likes("Dan", "tea")])])
        graph.apply([update("a", 4, relations=[likes("Bob", "tea")])])
        a, b = (ALICE.record_id("fact", key) for key in "ab")
        c = bob.record_id("fact", "c")

        def subjects(*ids: str, scope: Scope = ALICE, **more: Any) -> list[tuple[str, int]]:
            found = graph.relations(scope, records=ids, **more)
            return [(one.subject, len(one.supports)) for one in found]

        assert subjects(a) == subjects(a, include_superseded=True) == [("Bob", 1)]
        assert subjects(b) == subjects(b, c, "no id") == [("Ann", 1), ("Cem", 1)]
        assert subjects(a, b) == [("Ann", 1), ("Bob", 1), ("Cem", 1)]
        assert subjects() == subjects(c) == subjects(b, scope=session) == []

    def test_a_relation_of_another_beginning_is_another(self, graph: GraphStore) -> None:
        asserted = [likes("Ann", "tea"), likes("Ann", "tea", valid_from=START)]
        graph.apply([put("a", 1, relations=[*asserted, *asserted])])

        assert [relation.valid_from for relation in graph.relations(ALICE)] == [None, START]

    def test_saying_when_a_relation_ended_ends_it(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea")])])
        graph.apply([update("a", 2, relations=[likes("Ann", "tea", valid_to=START)])])

        assert graph.relations(ALICE) == []
        assert [
            relation.valid_to for relation in graph.relations(ALICE, include_superseded=True)
        ] == [START]

    def test_an_update_replaces_what_the_record_supports(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea"), likes("Ann", "milk")])])
        graph.apply([update("a", 2, relations=[likes("Ann", "milk"), likes("Ann", "rum")])])

        assert [relation.object for relation in graph.relations(ALICE)] == ["milk", "rum"]
        assert [entity.name for entity in graph.entities(ALICE)] == ["Ann", "milk", "rum"]

    def test_no_orphan_outlives_its_last_support(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea"), likes("Ann", "Ann")])])
        graph.apply([put("b", 2, relations=[likes("Ann", "tea")])])
        graph.apply([remove("a", 3)])
        left = graph.relations(ALICE)
        graph.apply([remove("b", 4)])

        assert [(one.object, len(one.supports)) for one in left] == [("tea", 1)]
        assert graph.count(ALICE) == {"records": 2, "versions": 4, "relations": 0, "entities": 0}

    def test_what_a_changed_record_asserted_expires_and_is_removed_with_it(
        self, graph: GraphStore
    ) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "tea")]), update("a", 2)])
        kept = graph.relations(ALICE, include_superseded=True)
        shown = graph.relations(ALICE), graph.relations(ALICE, as_of=START), graph.entities(ALICE)
        graph.apply([remove("a", 3)])

        assert [one.expired_at for one in kept] == [START + timedelta(seconds=2)]
        assert shown == ([], [], [])
        assert graph.count(ALICE) == {"records": 1, "versions": 3, "relations": 0, "entities": 0}

    # -- one value at a time -------------------------------------------------------------------

    def test_a_later_value_ends_the_earlier(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1)])
        [outcome] = graph.apply([moved("Oslo", 5, 2)])

        assert homes(graph) == ["Oslo"]
        assert live(graph) == ["text of Ann Oslo 5"]
        assert ends(outcome.touched) == [("text of Ann Rome 1", START + 5 * DAY)]
        assert [one.version for one in outcome.touched] == [1]
        assert len(graph.history(ALICE, outcome.touched[0].id)) == 1
        assert len(graph.page(ALICE).records) == 2

    def test_a_late_one_finds_its_place(self, graph: GraphStore) -> None:
        graph.apply([moved("Oslo", 5, 1)])
        [outcome] = graph.apply([moved("Rome", 1, 2)])

        assert outcome.record is not None
        assert outcome.record.valid_to == START + 5 * DAY
        assert outcome.touched == ()
        assert (homes(graph), live(graph)) == (["Oslo"], ["text of Ann Oslo 5"])
        assert [homes(graph, as_of=START + n * DAY) for n in (0, 1, 4, 5)] == [
            [],
            ["Rome"],
            ["Rome"],
            ["Oslo"],
        ]

    def test_any_order_of_arrival_gives_the_same_intervals(self, graph: GraphStore) -> None:
        chance = random.Random(7)
        wanted: dict[str, list[int]] = {}
        changes: list[Put] = []
        for slot in range(40):
            days = chance.sample(range(100), chance.randint(1, 6))
            wanted[f"p{slot}"] = sorted(days)
            changes += [moved(f"home {day}", day, 0, who=f"p{slot}") for day in days]
        chance.shuffle(changes)
        for version, change in enumerate(changes, start=1):
            graph.apply([replace(change, record=replace(change.record, version=version))])

        assert live(graph) == sorted(
            f"text of {who} home {days[-1]} {days[-1]}" for who, days in wanted.items()
        )
        for day in range(0, 101, 9):
            at = START + day * DAY
            known = {who: [d for d in days if d <= day] for who, days in wanted.items()}
            found = {
                relation.subject: relation.object for relation in graph.relations(ALICE, as_of=at)
            }
            assert found == {who: f"home {days[-1]}" for who, days in known.items() if days}
            assert live(graph, as_of=at) == sorted(
                f"text of {who} home {days[-1]} {days[-1]}" for who, days in known.items() if days
            )
        assert len(graph.page(ALICE, limit=1000).records) == len(changes)

    def test_values_from_the_same_moment_contradict_each_other(self, graph: GraphStore) -> None:
        [rome, oslo] = graph.apply([moved("Rome", 1, 1), moved("Oslo", 1, 2)])
        records = {record.text: record for record in graph.page(ALICE).records}
        relations = graph.relations(ALICE)
        graph.apply([moved("Lyon", 2, 3)])

        assert [relation.conflict for relation in relations] == [True, True]
        assert records["text of Ann Rome 1"].conflicts == (oslo.change.id,)
        assert records["text of Ann Oslo 1"].conflicts == (rome.change.id,)
        assert [one.conflicts for one in oslo.touched] == [(oslo.change.id,)]
        assert homes(graph) == ["Lyon"]

    def test_an_end_that_was_asserted_holds(self, graph: GraphStore) -> None:
        asserted = lives("Ann", "Rome", valid_from=START, valid_to=START + 2 * DAY)
        graph.apply([put("a", 1, relations=[asserted]), moved("Oslo", 5, 2)])

        assert homes(graph, as_of=START + DAY) == ["Rome"]
        assert homes(graph, as_of=START + 3 * DAY) == []

    def test_a_retracted_value_reopens_what_it_had_ended(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 5, 2)])
        [outcome] = graph.apply([remove("Ann Oslo 5", 3)])
        [repeated] = graph.apply([remove("Ann Oslo 5", 3)])

        assert ends(outcome.touched) == [("text of Ann Rome 1", None)]
        assert repeated.touched == outcome.touched
        assert (homes(graph), live(graph)) == (["Rome"], ["text of Ann Rome 1"])

    def test_a_changed_record_asserts_only_what_it_says_now(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 5, 2)])
        asserted = lives("Ann", "Bonn", valid_from=START + 3 * DAY)
        [outcome] = graph.apply([update("Ann Oslo 5", 3, text="new", relations=[asserted])])

        assert ends(outcome.touched) == [("text of Ann Rome 1", START + 3 * DAY)]
        assert homes(graph) == ["Bonn"]
        assert [
            relation.object for relation in graph.relations(ALICE, include_superseded=True)
        ] == [
            "Rome",
            "Oslo",
            "Bonn",
        ]

    def test_an_update_without_relations_leaves_them(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 5, 2)])
        change = replace(update("Ann Rome 1", 3, votes=2, pinned=True), relations=None)
        [outcome] = graph.apply([change])

        assert outcome.record is not None
        assert outcome.record.valid_to == START + 5 * DAY
        assert (outcome.record.votes, outcome.record.pinned) == (2, True)
        assert homes(graph) == ["Oslo"]

    def test_the_same_change_again_returns_what_it_touched(self, graph: GraphStore) -> None:
        changes = [moved("Rome", 1, 1), moved("Oslo", 5, 2)]
        first = graph.apply(changes)
        again = graph.apply(changes)

        assert again[1] == first[1]
        assert again[0].record == first[1].touched[0]

    def test_a_record_ends_when_all_it_asserts_has_ended(self, graph: GraphStore) -> None:
        at = START + DAY
        asserted = [lives("Ann", "Rome", valid_from=at), lives("Bob", "Rome", valid_from=at)]
        graph.apply(
            [put("both", 1, relations=[*asserted, likes("Ann", "tea")]), moved("Oslo", 5, 2)]
        )
        before = live(graph)
        graph.apply([moved("Bonn", 7, 3, who="Bob")])

        assert before == ["text of Ann Oslo 5", "text of both"]
        assert "text of both" not in live(graph)

    def test_one_assertion_as_single_valued_resolves_it_for_all(self, graph: GraphStore) -> None:
        loose = lives("Ann", "Oslo", valid_from=START + 5 * DAY, single_valued=False)
        changes = [moved("Rome", 1, 1), moved("Oslo", 5, 2), put("loose", 3, relations=[loose])]
        graph.apply(changes)
        before = homes(graph)
        [outcome] = graph.apply([remove("Ann Oslo 5", 4)])

        assert before == ["Oslo"]
        assert homes(graph) == ["Oslo", "Rome"]
        assert ends(outcome.touched) == [("text of Ann Rome 1", None)]

    def test_single_values_end_those_of_their_identity_alone(self, graph: GraphStore) -> None:
        at = START + 5 * DAY
        for version, (where, identity, given) in enumerate(
            [
                ("Rome", "x", {}),
                ("Rome", "y", {}),
                ("Rome", "", {}),
                ("Oslo", "y", {"valid_from": at}),
                ("Bonn", "x", {}),  # from the same moment on as Rome
            ],
            start=1,
        ):
            asserted = lives("Ann", where, identity=identity, **given)
            graph.apply([put(f"{where} {identity}", version, relations=[asserted])])
        shown = {
            (relation.object, relation.identity): relation.conflict
            for relation in graph.relations(ALICE)
        }
        supports = [
            relation.supports for relation in graph.relations(ALICE, include_superseded=True)
        ]

        assert shown == {
            ("Rome", "x"): True,
            ("Rome", ""): False,
            ("Oslo", "y"): False,
            ("Bonn", "x"): True,
        }
        assert [len(support) for support in supports] == [1] * 5
        assert live(graph) == [f"text of {one}" for one in ("Bonn x", "Oslo y", "Rome ", "Rome x")]
        [outcome] = graph.apply([remove("Oslo y", 6)])
        assert ends(outcome.touched) == [("text of Rome y", None)]
        found = graph.expand(ALICE, ["ann"], START + 9 * DAY)
        assert len(found) == 4  # "lives_in" of each identity is named alike

    def test_sessions_of_an_owner_share_single_values(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1, MONDAY), moved("Oslo", 5, 2, TUESDAY)])
        shown = [homes(graph, one, include_superseded=True) for one in (ALICE, MONDAY, TUESDAY)]
        erased = graph.erase(TUESDAY, 3)
        again = graph.erase(TUESDAY, 3)

        assert shown == [["Oslo", "Rome"], ["Rome"], ["Oslo"]]
        assert ends(erased.touched) == [("text of Ann Rome 1", None)]
        assert again.touched == erased.touched
        assert homes(graph, MONDAY) == ["Rome"]

    def test_an_update_from_a_wider_scope_resolves_among_the_records_own(
        self, graph: GraphStore
    ) -> None:
        narrow = Scope(user_id="alice", agent_id="a")
        later = lives("Ann", "Oslo", valid_from=START + 5 * DAY)
        graph.apply([moved("Rome", 1, 1, narrow), moved("Lyon", 1, 2), put("x", 3, narrow)])
        [outcome] = graph.apply([update("x", 4, narrow, given_scope=ALICE, relations=[later])])

        assert ends(outcome.touched) == [("text of Ann Rome 1", START + 5 * DAY)]
        assert homes(graph, narrow) == ["Oslo"]
        assert homes(graph) == ["Lyon", "Oslo"]

    def test_no_owner_ends_what_another_asserted(self, graph: GraphStore) -> None:
        owners = [
            ALICE,
            Scope(user_id="bob"),
            Scope(user_id="alice", agent_id="a"),
            Scope(agent_id="a"),
            Scope(session_id="s"),
        ]
        for n, owner in enumerate(owners):
            graph.apply([moved(f"home {n}", n, n + 1, owner)])

        for n, owner in enumerate(owners):
            assert f"home {n}" in homes(graph, owner)
        assert homes(graph, Scope(user_id="bob")) == ["home 1"]
        assert homes(graph, Scope(session_id="s")) == ["home 4"]

    # -- around a name -------------------------------------------------------------------------

    def test_relations_further_away_are_found_hop_by_hop(self, graph: GraphStore) -> None:
        asserted = [likes("Ann", "Bob"), likes("Bob", "Cem"), likes("Cem", "Dee")]
        graph.apply([put("a", 1, relations=asserted)])

        assert [len(graph.relations(ALICE, "ann", hops=hops)) for hops in (1, 2, 3)] == [1, 2, 3]

    def test_another_name_of_an_entity_finds_it(self, graph: GraphStore) -> None:
        same = Relation(subject="Robert", predicate="also_known_as", object="Bob")
        graph.apply([put("a", 1, relations=[same, likes("Robert", "tea")])])

        assert "tea" in [relation.object for relation in graph.relations(ALICE, "bob")]
        assert ALICE.record_id("fact", "a") in [
            one.id for one in graph.expand(ALICE, ["bob"], START)
        ]

    def test_the_first_type_that_says_something_stays(self, graph: GraphStore) -> None:
        graph.apply([put("a", 1, relations=[likes("Ann", "Rex")])])
        graph.apply([put("b", 2, relations=[likes("Ann", "Rex", object_type="dog")])])
        graph.apply([put("c", 3, relations=[likes("Ann", "Rex", object_type="cat")])])

        assert [(entity.name, entity.type) for entity in graph.entities(ALICE)] == [
            ("Ann", "thing"),
            ("Rex", "dog"),
        ]

    def test_two_relations_lead_to_what_the_question_does_not_name(self, graph: GraphStore) -> None:
        sister = Relation(subject="Mei", predicate="sister_of", object="Alice")
        graph.apply([put("sister", 1, relations=[sister]), moved("Lyon", 1, 2, who="Mei")])
        graph.apply([put("far", 3, relations=[likes("Lyon", "fog")]), put("none", 4)])
        [first, second] = graph.expand(ALICE, ["sister", "alice", "where"], START + 9 * DAY)

        assert (first.id, first.hops, first.via) == (ALICE.record_id("fact", "sister"), 1, ())
        assert (second.id, second.hops) == (ALICE.record_id("fact", "Mei Lyon 1"), 2)
        assert second.via == (first.id,)
        assert 1 >= first.weight > second.weight > 0
        assert (first.named, first.relations) == ((1.0,), 1)
        assert (second.named, second.relations) == ((1.0, 0.0), 1)
        assert graph.expand(ALICE, ["nobody at all"], START) == []
        assert graph.expand(Scope(user_id="bob"), ["alice"], START) == []

    def test_an_entity_of_many_relations_leads_less_far(self, graph: GraphStore) -> None:
        many = [likes("hub", f"thing {n}") for n in range(50)]
        graph.apply([put("many", 1, relations=many), put("one", 2, relations=[likes("Ann", "x")])])
        weights = {one.id: one.weight for one in graph.expand(ALICE, ["hub", "ann"], START)}

        assert weights[ALICE.record_id("fact", "one")] > weights[ALICE.record_id("fact", "many")]

    @pytest.mark.parametrize(("name", "asked"), [("Katharina", "kathrina"), ("爱丽丝", "爱丽斯")])
    def test_a_misspelt_name_is_found_when_nothing_else_is(
        self, graph: GraphStore, name: str, asked: str
    ) -> None:
        graph.apply([put("a", 1, relations=[likes(name, "tea"), likes("Bob", "tee")])])

        found = [one.id for one in graph.expand(ALICE, ["where", asked], START)]
        assert found == [ALICE.record_id("fact", "a")]
        assert graph.expand(ALICE, ["where", "xylophone"], START) == []

    def test_an_ended_relation_is_not_expanded(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1), moved("Oslo", 5, 2)])

        assert [one.id for one in graph.expand(ALICE, ["ann"], START + 9 * DAY)] == [
            ALICE.record_id("fact", "Ann Oslo 5")
        ]

    def test_a_session_expands_only_its_own(self, graph: GraphStore) -> None:
        graph.apply([moved("Rome", 1, 1, MONDAY), moved("Oslo", 1, 2, TUESDAY, who="Bob")])
        graph.apply([put("a", 3, TUESDAY, relations=[likes("Ann", "Bob")])])

        found = [one.id for one in graph.expand(MONDAY, ["ann", "bob"], START + 9 * DAY)]
        assert found == [MONDAY.record_id("fact", "Ann Rome 1")]
