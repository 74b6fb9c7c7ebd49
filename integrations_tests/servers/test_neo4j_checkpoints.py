"""The store of checkpoints on Neo4j: the contract on a real server, and what only a server has."""

from collections.abc import Callable, Iterator

import pytest

from commonplace.backends.neo4j.checkpoints import Neo4jCheckpoints
from commonplace.backends.neo4j.driver import Neo4jDriver
from commonplace.testing.contracts import at_once
from commonplace.testing.contracts.checkpoints import (
    ALICE,
    CheckpointsContract,
    RetentionContract,
    blob,
    call_everything,
    step,
    task_write,
)
from commonplace.types import Scope

from .cutting_proxy import Cut
from .fixtures import empty_graph
from .query_plans import note_texts, plans_of

pytestmark = pytest.mark.external_service


@pytest.fixture
def connect(neo4j_place, neo4j_uri) -> Iterator[Callable[..., Neo4jCheckpoints]]:
    """Open stores in an empty database."""
    empty_graph(neo4j_uri)
    opened: list[Neo4jCheckpoints] = []

    def connect(uri: str = neo4j_place.uri) -> Neo4jCheckpoints:
        opened.append(Neo4jCheckpoints(Neo4jDriver(uri, auth=neo4j_place.auth, prefix="Test")))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


class TestNeo4jCheckpoints(CheckpointsContract, RetentionContract):
    @pytest.fixture
    def checkpoints(self, connect) -> Neo4jCheckpoints:
        return connect()


def test_every_text_goes_by_an_index_and_pages_are_not_sorted(
    connect, monkeypatch: pytest.MonkeyPatch
):
    store = connect()
    asked = note_texts(monkeypatch)
    call_everything(store, Scope(user_id="u", agent_id="g", session_id="s"))
    monkeypatch.undo()
    # Of a few nodes a scan would be as good.
    for number in range(100):
        one = step(str(number), thread=f"thread {number}", versions={"c": "1"}, run=str(number))
        store.put(one, {("c", "1"): blob("v")}, Scope(user_id=f"user {number}"))
        store.write(one.address, [task_write("task", "w")], None)
    plans = plans_of(store._driver, asked)
    pages = [plan for text, plan in plans.items() if "LIMIT $limit" in text]

    assert len(plans) > 15
    scans = ("NodeByLabelScan", "AllNodesScan", "DirectedRelationshipTypeScan")
    assert [text for text, plan in plans.items() if set(plan).intersection(scans)] == []
    assert [one for plan in pages for one in plan if one in ("Sort", "Top")] == []


def test_a_commit_whose_answer_is_lost_is_made_again(neo4j_place, connect):
    connect()
    with Cut(neo4j_place.uri) as cut:
        store = connect(f"bolt://127.0.0.1:{cut.port}")
        cut.arm()
        store.put(step("1", versions={"c": "1"}), {("c", "1"): blob("v")}, ALICE)

    assert cut.happened
    assert connect().count(ALICE) == {"threads": 1, "checkpoints": 1, "values": 1, "writes": 0}


def test_two_stores_see_and_keep_each_others_writes(connect):
    stores = [connect(), connect()]
    address = step("1").address

    def work(number: int) -> None:
        for turn in range(10):
            one = task_write(f"task {number}", f"{number}.{turn}", index=turn)
            stores[number % 2].write(address, [one], ALICE)

    at_once(4, work)
    stores[0].put(step("1"), {}, ALICE)
    state = stores[1].read("t", "", "1")

    assert state is not None
    assert [one.value for one in state.writes] == [
        blob(f"{number}.{turn}") for number in range(4) for turn in range(10)
    ]


def test_many_threads_of_an_owner_are_erased_whole(connect):
    store = connect()
    for number in range(205):
        store.put(step("1", thread=f"thread {number}"), {}, ALICE)

    assert store.erase(ALICE)["threads"] == 205
    assert set(store.count(ALICE).values()) == {0}
