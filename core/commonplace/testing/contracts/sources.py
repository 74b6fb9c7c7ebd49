"""Contract of the turns that facts were drawn from: inherit `SourcesContract`, provide `graph`."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ...ports.engines import GraphStore
from ...ports.snapshot_rows import RecordRow
from ...ports.stores import Put
from ...types import MAX_SOURCES, Scope
from .graph import ALICE, START, lives, put, remove, restore, update
from .repeated_facts import end, repeats, second

TALK = Scope(user_id="alice", session_id="s")
BOB = Scope(user_id="bob")
LATE = START + timedelta(days=9)


def turn(number: int, scope: Scope = TALK) -> Put:
    """Make the change that adds a turn; its number is its version."""
    return put(f"turn {number}", number, scope, in_session=True, kind="episode", role="user")


def turn_ids(*numbers: int, scope: Scope = TALK) -> tuple[str, ...]:
    """Give the ids of turns."""
    return tuple(scope.record_id("fact", f"turn {number}") for number in numbers)


def drawn(key: str, version: int, *turns: int, **given: Any) -> Put:
    """Make the change that adds a fact that was drawn from turns."""
    return put(key, version, **{"sources": turn_ids(*turns), **given})


def outdated(graph: GraphStore, scope: Scope = ALICE, **given: Any) -> dict[int, datetime]:
    """Ask about the first nine turns; return those that are outdated, by their numbers."""
    names = dict(zip(turn_ids(*range(1, 10)), range(1, 10), strict=True))
    found = graph.outdated_turns(scope, list(names), **{"at": LATE, **given})
    return {names[one]: since for one, since in found.items()}


class SourcesContract:
    """Promises about `Record.sources` and `outdated_turns`; the fixture gives an empty store."""

    @pytest.fixture
    def graph(self) -> GraphStore:
        """Give an empty store."""
        raise NotImplementedError

    def test_a_summary_is_no_fact_of_the_turns_that_it_stands_for(self, graph: GraphStore) -> None:
        graph.apply([turn(1), turn(2), drawn("a", 3, 1), drawn("s", 4, 1, 2, kind="summary")])
        graph.apply([update("s", 5, text="another", kind="summary")])
        while_it_holds = outdated(graph)
        graph.apply([remove("a", 6)])

        assert while_it_holds == {}
        assert list(outdated(graph)) == [1]

    def test_a_turn_is_outdated_when_no_fact_of_it_holds(self, graph: GraphStore) -> None:
        graph.apply([turn(1), turn(2), turn(3), turn(4)])
        graph.apply([drawn("a", 5, 1, 2), drawn("b", 6, 2), drawn("c", 7, 3)])
        none = outdated(graph)
        graph.apply([end("a", 8, START + timedelta(days=1))])
        one = outdated(graph)
        graph.apply([remove("b", 9), update("c", 10, text="corrected")])

        assert none == {}
        assert one == {1: START + timedelta(days=1)}
        assert outdated(graph) == {
            1: START + timedelta(days=1), 2: START + timedelta(days=1), 3: second(10),
        }  # fmt: skip
        assert outdated(graph, at=START) == {3: second(10)}
        assert graph.outdated_turns(ALICE, [], LATE) == {}
        assert graph.outdated_turns(ALICE, ["nobody", ALICE.record_id("fact", "a")], LATE) == {}

    def test_a_superseded_fact_holds_again_when_its_rival_is_deleted(
        self, graph: GraphStore
    ) -> None:
        later = START + timedelta(days=1)
        graph.apply([turn(1), drawn("rome", 2, 1, relations=[lives("Ann", "Rome")])])
        graph.apply([turn(3)])
        graph.apply([drawn("oslo", 4, 3, relations=[lives("Ann", "Oslo", valid_from=later)])])
        before = outdated(graph)
        graph.apply([remove("oslo", 5)])
        deleted = outdated(graph)
        graph.apply([restore("oslo", 6)])

        assert before == {1: later}
        assert deleted == {3: second(5)}
        assert outdated(graph) == {1: later}

    def test_only_a_change_after_a_turn_corrects_it(self, graph: GraphStore) -> None:
        graph.apply([turn(1), drawn("a", 2, 1), update("a", 4, text="corrected")])
        graph.apply([turn(6), drawn("a", 7, 6, text="corrected")])
        once = outdated(graph)
        graph.apply([replace(update("a", 8, text="corrected", votes=1), relations=None)])
        voted = outdated(graph)
        graph.apply([update("a", 9, text="text of a")])

        assert once == voted == {1: second(4)}
        assert outdated(graph) == {6: second(9)}, "the former text came back"

    def test_a_repetition_adds_its_turns_without_a_version(self, graph: GraphStore) -> None:
        graph.apply([turn(1), turn(2), drawn("a", 3, 1)])
        told = repeats(graph, drawn("a", 4, 2, 1))
        many = tuple(f"turn {number}" for number in range(MAX_SOURCES))
        full = repeats(graph, put("a", 5, sources=many))

        assert told.record is not None
        assert full.record is not None
        assert (told.change.event, told.record.version) == ("NONE", 3)
        assert told.record.sources == turn_ids(2, 1)
        assert full.record.sources == many
        assert graph.get(ALICE, [full.record.id]) == [full.record]
        assert len(graph.history(ALICE, full.record.id)) == 1
        graph.apply([remove("a", 6)])
        assert outdated(graph) == {}, "these turns are no longer among its sources"

    def test_nobody_else_is_told(self, graph: GraphStore) -> None:
        graph.apply([turn(1), drawn("a", 2, 1), remove("a", 3)])
        graph.apply([turn(4), put("b", 5, BOB, sources=turn_ids(4)), remove("b", 6, BOB)])

        assert outdated(graph) == {1: second(3)}
        assert outdated(graph, BOB) == {}
        assert outdated(graph, TALK) == {}, "a session does not cover the facts of its user"

    def test_nothing_of_what_was_erased_counts(self, graph: GraphStore) -> None:
        graph.apply([turn(1), drawn("a", 2, 1), remove("a", 3)])
        graph.apply([turn(4), drawn("b", 5, 4), remove("b", 6)])
        graph.erase(TALK, 7)
        erased = outdated(graph)
        graph.apply([turn(8)])
        graph.erase(ALICE, 9)

        assert erased == {}
        graph.apply([replace(one, record=replace(one.record, version=10)) for one in [turn(1)]])
        assert outdated(graph) == {}

    def test_a_snapshot_has_the_sources(self, graph: GraphStore) -> None:
        graph.apply([turn(1), drawn("a", 2, 1), drawn("b", 3, 1), remove("b", 4)])
        rows = list(graph.dump())
        graph.erase(ALICE, 4)
        fresh = [
            replace(one, record=replace(one.record, version=one.record.version + 10))
            for one in rows
            if isinstance(one, RecordRow)
        ]
        graph.load([*(one for one in rows if not isinstance(one, RecordRow)), *fresh])

        assert [one.record.sources for one in fresh] == [turn_ids(1), (), turn_ids(1)]
        assert outdated(graph) == {}
        graph.apply([remove("a", 20)])
        assert outdated(graph) == {1: second(20)}
