"""Tests of the Neo4j graph store: the contract on a real server, and what only a server has."""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from commonplace import Fact, Memory
from commonplace.backends.neo4j import graph_writes, queries
from commonplace.backends.neo4j.driver import SCHEMA, check_server
from commonplace.backends.neo4j.graph import Neo4jGraph
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.errors import (
    InvalidRecordError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.ports.engines import GraphStore
from commonplace.ports.stores import Erased, Put, Remove
from commonplace.testing.contracts import at_once
from commonplace.testing.contracts.graph import (
    ALICE,
    START,
    GraphStoreContract,
    likes,
    lives,
    put,
    remove,
    restore,
    update,
)
from commonplace.testing.contracts.relations import MONDAY, TUESDAY, RelationContract, moved
from commonplace.testing.contracts.repeated_facts import TellingContract
from commonplace.testing.contracts.sessions import SessionsContract
from commonplace.testing.contracts.snapshot import SnapshotContract
from commonplace.testing.contracts.sources import SourcesContract
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Relation, Scope

from .cutting_proxy import Cut
from .fixtures import empty_graph
from .processes import kill_among, open_together
from .query_plans import note_texts, plans_of

pytestmark = pytest.mark.external_service


@pytest.fixture
def connect(neo4j_place, neo4j_uri) -> Iterator[Callable[..., Neo4jGraph]]:
    """Open stores in an empty database."""
    empty_graph(neo4j_uri)
    opened: list[Neo4jGraph] = []

    def connect(uri: str = neo4j_place.uri, prefix: str = "Test") -> Neo4jGraph:
        opened.append(Neo4jGraph(uri, auth=neo4j_place.auth, prefix=prefix))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def drop_schema(graph: Neo4jGraph, prefix: str) -> None:
    """Leave nothing of a store but the nodes that have been deleted before."""
    for kind, kinds in (("CONSTRAINT", "CONSTRAINTS"), ("INDEX", "INDEXES")):
        text = f"SHOW {kinds} YIELD name WHERE name STARTS WITH '{prefix}_' RETURN name"
        for row in graph.driver.read(lambda ask, text=text: ask(text)):
            drop = f"DROP {kind} {row['name']}"
            graph.driver.write(lambda ask, drop=drop: ask(drop))


@pytest.fixture
def graph(connect) -> Neo4jGraph:
    return connect()


class TestNeo4jGraph(
    GraphStoreContract, RelationContract, TellingContract, SourcesContract, SessionsContract
):
    @pytest.fixture
    def graph(self, connect) -> Neo4jGraph:
        return connect()


class TestNeo4jSnapshot(SnapshotContract):
    """Snapshots of a server in a file, and of a file on a server."""

    @pytest.fixture(params=["from a server", "to a server"])
    def stores(
        self, request: pytest.FixtureRequest, connect, tmp_path: Path
    ) -> Iterator[list[GraphStore]]:
        with contextlib.closing(SqliteConnection(str(tmp_path / "memory.db"))) as file:
            stores: list[GraphStore] = [connect(), SqliteGraph(file)]
            yield stores if request.param == "from a server" else stores[::-1]

    @pytest.fixture
    def graph(self, stores: list[GraphStore]) -> GraphStore:
        return stores[0]

    @pytest.fixture
    def other(self, stores: list[GraphStore]) -> GraphStore:
        return stores[1]


def test_a_store_without_the_moments_of_sessions_gets_them(connect):
    first = connect()
    talk = Scope(user_id="alice", session_id="s")
    first.apply([put(f"{n}", n, talk, in_session=True) for n in (1, 2, 3)])
    listed = first.sessions(ALICE)
    first.driver.write(lambda ask: ask("MATCH (s:Session) REMOVE s.first_at, s.last_at"))
    without = first.sessions(ALICE)
    first.driver.write(lambda ask: ask("DROP INDEX Test_session_by_last"))

    assert len(without) == 0
    assert connect().sessions(ALICE) == listed
    assert (listed[0].last_at - listed[0].first_at).seconds == 2


# -- many at once ----------------------------------------------------------------------------------


def test_eight_threads_that_name_the_same_entities_make_each_once(connect):
    names = [f"entity {n}" for n in range(1000)]
    asserted = [likes(*names[n : n + 2]) for n in range(0, 1000, 2)]

    def work(thread: int) -> None:
        graph = connect() if thread % 2 else first
        mine = random.Random(thread).sample(asserted, len(asserted))
        for n in range(0, len(mine), 100):
            graph.apply([put(f"{thread}.{n}", 1, relations=mine[n : n + 100])])

    first = connect()
    at_once(8, work)

    assert first.count(ALICE) == {
        "records": 40,
        "versions": 40,
        "relations": 500,
        "entities": 1000,
    }
    assert {len(one.supports) for one in first.relations(ALICE)} == {8}


def test_changes_of_one_owner_wait_for_each_other(connect, monkeypatch):
    stores = [connect() for _ in range(3)]
    # Making its partition, or looking for a fence that is not there, would lock something too.
    stores[0].erase(ALICE, 1)
    stores[0].apply([put("first", 2)])
    save, at_work, most = graph_writes.save, [], []

    def slowly(run, parameters):
        at_work.append(run)
        most.append(len(at_work))
        time.sleep(0.3)
        at_work.remove(run)
        return save(run, parameters)

    monkeypatch.setattr(graph_writes, "save", slowly)
    at_once(3, lambda thread: stores[thread].apply([put(f"of {thread}", 3)]))

    assert most == [1, 1, 1]


def test_two_stores_on_one_database_see_each_others_writes(connect):
    one, two = connect(), connect()
    one.apply([put("a", 1, relations=[lives("Ann", "Rome")])])
    later = lives("Ann", "Oslo", valid_from=START + timedelta(1))
    [outcome] = two.apply([put("b", 2, relations=[later])])

    assert [record.text for record in outcome.touched] == ["text of a"]
    assert [relation.object for relation in one.relations(ALICE)] == ["Oslo"]


def test_stores_of_another_prefix_are_apart(connect):
    one, two = connect(), connect(prefix="TestOther")
    one.apply([put("a", 1)])

    assert two.page(ALICE).records == ()
    assert [outcome.change.event for outcome in two.apply([put("a", 1)])] == ["ADD"]


# -- as the embedded store -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_have_the_outcomes_that_they_have_in_sqlite(
    graph: Neo4jGraph, tmp_path: Path, seed: int
):
    chance = random.Random(seed)
    agent = Scope(user_id="alice", agent_id="g")
    scopes = [ALICE, Scope(user_id="alice", session_id="s"), agent, Scope(session_id="s")]
    names = ["Ann", "ann", "Bob", "Cem", "Rome", "Oslo", "Katharina"]
    done: list[Put | Remove] = []

    def relation() -> Relation:
        subject, object_ = chance.sample(names, 2)
        if chance.random() < 0.3:
            return likes(subject, object_, object_type=chance.choice(["thing", "city"]))
        if chance.random() < 0.1:
            return Relation(subject=subject, predicate="also_known_as", object=object_)
        return lives(subject, object_, valid_from=START + timedelta(chance.randint(0, 3)))

    def change(version: int) -> Put | Remove:
        key, scope, sort = chance.choice("abcd"), chance.choice(scopes), chance.random()
        given_scope = chance.choice([None, None, ALICE, agent])
        asserted = [relation() for _ in range(chance.choice([0, 1, 3]))]
        if done and sort < 0.15:
            return chance.choice(done)
        if sort < 0.3:
            return remove(key, version, scope, by=given_scope)
        if sort < 0.4:
            return restore(key, version, scope, given_scope=given_scope)
        if sort < 0.6:
            changed = update(
                key, version, scope, relations=asserted, given_scope=given_scope, votes=1
            )
            return replace(changed, relations=None) if sort < 0.45 else changed
        expires = START + timedelta(seconds=version + 3) if sort < 0.7 else None
        given = {"relations": asserted, "given_scope": given_scope, "expires_at": expires}
        return put(key, version, scope, in_session=True, **given)

    embedded = SqliteGraph(SqliteConnection(str(tmp_path / "memory.db")))
    for version in range(1, 75, 3):
        if chance.random() < 0.1:
            scope = chance.choice(scopes)
            expected, got = (one.erase(scope, version - 2) for one in (embedded, graph))
            assert dict(got.removed) == dict(expected.removed)
            assert got.touched == expected.touched
        batch = [change(version + n) for n in range(chance.choice([1, 3]))]
        done += batch
        assert graph.apply(batch) == embedded.apply(batch)
    for scope in scopes:
        at = START + timedelta(2)
        for shown in ({}, {"include_superseded": True}, {"as_of": at}):
            assert graph.page(scope, **shown) == embedded.page(scope, **shown)
            for name in (None, "ann"):
                expected = embedded.relations(scope, name, hops=2, **shown)
                assert graph.relations(scope, name, hops=2, **shown) == expected
        for words in (["ann"], ["lives", "oslo"], ["kathrina"]):
            found = [
                {
                    (one.id, one.hops, round(one.weight, 9), one.named, one.relations)
                    for one in store.expand(scope, words, at)
                }
                for store in (graph, embedded)
            ]
            assert found[0] == found[1]
        assert graph.entities(scope) == embedded.entities(scope)
        assert graph.count(scope) == embedded.count(scope)
    embedded.close()


# -- in the database -------------------------------------------------------------------------------


def test_every_text_goes_by_an_index(connect, monkeypatch: pytest.MonkeyPatch):
    graph = connect()
    asked = note_texts(monkeypatch)
    full = Scope(user_id="u", agent_id="g", session_id="s")
    for n, scope in enumerate((Scope(agent_id="g"), full)):
        at = 10 * n
        graph.apply([put("a", at + 1, scope, relations=[likes("Ann", "tea")], in_session=True)])
        graph.apply([update("a", at + 2, scope), remove("a", at + 3, scope)])
        graph.deleted(scope, scope.record_id("fact", "a"))
        graph.outdated_turns(scope, ["a turn"], START)
        graph.apply([put("b", at + 4, scope, relations=[lives("Ann", "Rome")])])
        graph.apply([put("c", at + 5, scope, relations=[lives("Ann", "Oslo")])])
        [record, _] = graph.page(scope).records
        graph.apply([restore("a", at + 6, scope), remove("a", at + 7, scope)])
        graph.page(scope, kinds=("fact",))
        graph.get(scope, [record.id])
        graph.history(scope, record.id)
        graph.log_access(scope, [record.id], START)
        graph.access_log(scope, [record.id])
        graph.relations(scope)
        graph.relations(scope, "Ann")
        graph.relations(scope, records=[record.id])
        graph.expand(scope, ["ann"], START)
        graph.expand(scope, ["romme"], START)
        graph.count(scope)
        list(graph.versions(scope))
        graph.erase(scope, at + 9)
    monkeypatch.undo()
    # Of a few nodes a scan would be as good.
    others = [Scope(user_id=f"user {n}", session_id="s") for n in range(200)]
    asserted = [lives("Ann", "Rome"), likes("Ann", "tea")]
    graph.apply([put("a", 1, one, relations=asserted, in_session=True) for one in others])
    plans = plans_of(graph.driver, asked)
    scans = [text for text, plan in plans.items() if any("Scan" in one for one in plan)]
    pages = [plan for text, plan in plans.items() if "LIMIT $limit" in text]

    assert len(plans) > 30
    assert scans == []
    assert [one for plan in pages for one in plan if one in ("Sort", "Top")] == []


def test_a_dump_goes_by_an_index(graph: Neo4jGraph, monkeypatch: pytest.MonkeyPatch):
    others = [Scope(user_id=f"user {n}", session_id="s") for n in range(200)]
    asserted = [lives("Ann", "Rome"), likes("Ann", "tea")]
    graph.apply([put("a", 1, others[0], relations=asserted, in_session=True)])
    asked = note_texts(monkeypatch)
    list(graph.dump())
    monkeypatch.undo()
    graph.apply([put("a", 1, one, relations=asserted, in_session=True) for one in others])
    plans = plans_of(graph.driver, asked)

    assert len(plans) > 5
    assert [text for text, plan in plans.items() if any("Scan" in one for one in plan)] == []


def test_a_scope_of_many_records_is_erased_whole(graph: Neo4jGraph):
    asserted = [likes("Ann", "tea")]
    session = Scope(user_id="alice", session_id="s")
    for n in (0, 550):
        graph.apply([put(f"k{one}", one + 1, relations=asserted) for one in range(n, n + 550)])
    graph.apply([put("kept", 9000, session, relations=asserted), put("late", 9001)])
    erased = graph.erase(ALICE, 3000)

    assert erased.removed == {"records": 1100, "versions": 1100, "relations": 0, "entities": 0}
    assert graph.count(ALICE) == {"records": 2, "versions": 2, "relations": 1, "entities": 2}
    assert [one.change.event for one in graph.apply([put("k1", 2999)])] == ["NONE"]


@pytest.fixture
def moves(graph: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three who moved, asserted on two days; an erasure takes two records in a transaction."""
    monkeypatch.setattr(graph_writes, "BATCH", 2)
    names = ["Ann", "Bob", "Cem"]
    graph.apply([moved("Rome", 1, n, MONDAY, who=who) for n, who in enumerate(names, 1)])
    graph.apply([moved("Oslo", 5, n, TUESDAY, who=who) for n, who in enumerate(names, 4)])
    return [f"text of {who} Rome 1" for who in names]


def opened(erased: Erased) -> list[str]:
    assert {one.valid_to for one in erased.touched} <= {None}
    return sorted(one.text for one in erased.touched)


def test_an_erasure_of_several_steps_returns_all_that_it_reopened(
    graph: Neo4jGraph, moves: list[str]
):
    erased = graph.erase(TUESDAY, 9)

    assert erased.removed == {"records": 3, "versions": 3, "relations": 3, "entities": 1}
    assert opened(erased) == moves


def test_what_a_later_step_removes_is_not_returned(graph: Neo4jGraph, moves: list[str]):
    assert graph.erase(ALICE, 9).touched == ()
    assert graph.count(ALICE)["records"] == 0


def test_an_erasure_that_was_broken_off_returns_all_that_it_reopened(
    graph: Neo4jGraph, moves: list[str], monkeypatch: pytest.MonkeyPatch
):
    write, done = graph.driver.write, []

    def once(work):
        if done:
            raise StoreUnavailableError(store="here", reason="it went away")
        done.append(write(work))
        return done[0]

    with monkeypatch.context() as patch:
        patch.setattr(graph.driver, "write", once)
        with pytest.raises(StoreUnavailableError):
            graph.erase(TUESDAY, 9)
    left = graph.count(TUESDAY)["records"]
    late = graph.apply([moved("Lyon", 7, 8, TUESDAY)])
    erased = graph.erase(TUESDAY, 9)

    assert left == 1
    assert [one.change.event for one in late] == ["NONE"]
    assert erased.removed["records"] == 1
    assert opened(erased) == moves


def test_an_erasure_whose_answer_is_lost_returns_all_that_it_reopened(
    neo4j_place, connect, moves: list[str]
):
    with Cut(neo4j_place.uri) as cut:
        graph = connect(f"bolt://127.0.0.1:{cut.port}")
        cut.arm()
        erased = graph.erase(TUESDAY, 9)

    assert cut.happened
    assert opened(erased) == moves


def test_stores_that_open_at_once_make_the_same_schema(neo4j_place, connect):
    drop_schema(connect(), "TestRace")
    at_once(4, lambda _: connect(prefix="TestRace").page(ALICE))
    text = "SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'TestRace_' RETURN name, state"
    made = connect().driver.read(lambda ask: ask(text))

    assert len(made) == len(queries.schema("TestRace"))
    assert {one["state"] for one in made} == {"ONLINE"}


def test_only_what_is_missing_of_a_schema_is_made(graph: Neo4jGraph, connect, monkeypatch):
    asked = note_texts(monkeypatch)
    connect()
    graph.driver.write(lambda ask: ask("DROP INDEX Test_record_by_partition"))
    connect()

    made = [text for text, _ in asked if text.startswith("CREATE")]
    missed = queries.schema("Test")["Test_record_by_partition"]
    assert made == [queries.labelled(missed, "Test")]


def test_processes_that_make_the_same_store_at_once_share_it(neo4j_place, connect):
    drop_schema(connect(), "TestTogether")
    given = {"uri": neo4j_place.uri, "auth": neo4j_place.auth, "prefix": "TestTogether"}
    open_together("neo4j", 3, **given)

    counts = {"records": 3, "versions": 3, "relations": 1, "entities": 2}
    assert connect(prefix="TestTogether").count(ALICE) == counts


def test_erased_text_is_nowhere_in_the_database(graph: Neo4jGraph):
    session = Scope(user_id="alice", session_id="CANARY session")
    asserted = [likes("CANARY", "tea"), likes("Bob", "tea")]
    graph.apply(
        [
            put("a", 1, session, text="CANARY text", relations=asserted, in_session=True),
            put("b", 2, text="CANARY text", metadata={"k": "CANARY"}),
            update("b", 3, text="CANARY again"),
            remove("b", 4),
        ]
    )
    graph.erase(ALICE, 4)

    ours = "MATCH (n) WHERE any(one IN labels(n) WHERE one STARTS WITH 'Test')"
    left = graph.driver.read(lambda ask: ask(f"{ours} RETURN labels(n) AS labels, n{{.*}} AS node"))
    assert "CANARY" not in str(left)
    labels = {label for one in left for label in one["labels"] if not label.endswith("Meta")}
    assert labels == {"TestPartition", "TestErasure"}


def test_what_users_write_is_never_part_of_a_text(graph: Neo4jGraph):
    nasty = "x`}) DETACH DELETE n // '\" $partition {covered} :Record"
    asserted = Relation(subject=nasty, predicate=nasty, object=f"{nasty} 2")
    graph.apply([put("a", 1, text=nasty, relations=[asserted])])

    assert [one.predicate for one in graph.relations(ALICE, nasty)] == [nasty]
    assert [one.text for one in graph.page(ALICE).records] == [nasty]
    assert graph.get(ALICE, [nasty, "\ud800", "\x00"]) == []


def test_another_schema_is_refused(graph: Neo4jGraph, connect):
    change = "MATCH (m:Meta {id: 'schema'}) SET m.value = $value"
    graph.driver.write(lambda ask: ask(change, value="99"))
    try:
        with pytest.raises(SchemaMismatchError, match="99"):
            connect()
    finally:
        graph.driver.write(lambda ask: ask(change, value=SCHEMA))


# -- when it fails ---------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_made_again(neo4j_place, connect):
    connect()
    with Cut(neo4j_place.uri) as cut:
        graph = connect(f"bolt://127.0.0.1:{cut.port}")
        cut.arm()
        [outcome] = graph.apply([put("a", 1, relations=[likes("Ann", "tea")])])

    assert cut.happened
    assert outcome.change.event == "ADD"
    assert connect().count(ALICE) == {"records": 1, "versions": 1, "relations": 1, "entities": 2}


def test_a_killed_server_has_lost_nothing_and_a_retry_doubles_nothing(killable_neo4j, connect):
    graph = connect()
    changes = [
        put(f"k{n}", n + 1, relations=[likes("Ann", f"thing {n}"), likes(f"thing {n}", "tea")])
        for n in range(200)
    ]
    ids = [one.record.id for one in changes]
    writes = [partial(graph.apply, [one]) for one in changes]
    acknowledged = kill_among(killable_neo4j, writes, after=30)
    found = {one.id for one in graph.get(ALICE, ids)}
    graph.apply(changes)

    assert found >= set(ids[:acknowledged])
    counts = {"records": 200, "versions": 200, "relations": 400, "entities": 202}
    assert graph.count(ALICE) == counts


def test_of_1000_writes_none_is_lost_or_doubled_when_the_server_is_killed_among_them(
    killable_neo4j, neo4j_uri, connect, tmp_path: Path
):
    graph = connect()
    server = empty_graph(neo4j_uri)
    with Memory.open(str(tmp_path), graph=server, embedder=HashEmbedder()) as memory:
        for n in range(1000):
            met = Relation(subject="Ann", predicate="met", object=f"person {n}")
            memory.add(Fact(text=f"Ann met person {n}", relations=(met,)), ALICE, wait=False)
            if n == 500:
                while graph.count(ALICE)["records"] < 100:
                    memory.flush(0.1)
                killable_neo4j.kill()
        waiting = memory.flush(0.1)
        killable_neo4j.start()
        left = memory.flush(200)
        found = memory._runtime.engines.index.versions(ALICE)

        assert waiting.pending >= 499
        assert (left.pending, left.dead) == (0, 0)
        counts = {"records": 1000, "versions": 1000, "relations": 1000, "entities": 1001}
        assert graph.count(ALICE) == counts
        assert sorted(found) == sorted(graph.versions(ALICE))


@pytest.mark.parametrize("auth", [None, ("neo4j", "wrong"), ("nobody", "wrong")])
def test_a_refused_user_is_reported_at_once(neo4j_place, auth):
    if neo4j_place.auth is None:
        pytest.skip("the server asks for no password")
    started = time.monotonic()
    with pytest.raises(StoreRefusedError, match=neo4j_place.uri) as caught:
        Neo4jGraph(neo4j_place.uri, auth=auth, max_transaction_retry_time=60.0)

    assert time.monotonic() - started < 30  # it is not tried again
    assert "wrong" not in str(caught.value)


def test_a_server_that_is_not_there_is_reported_at_once():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        uri = f"bolt://127.0.0.1:{one.getsockname()[1]}"
    started = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=uri):
        Neo4jGraph(uri, max_transaction_retry_time=60.0)

    assert time.monotonic() - started < 30  # it is not tried again


@pytest.mark.parametrize("uri", ["http://host", "host:7687", "", "bolt+x://me:secret@host"])
def test_an_invalid_uri_is_refused(uri: str):
    with pytest.raises(InvalidRecordError) as caught:
        Neo4jGraph(uri)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request" + bytes(30), b""])
def test_a_server_that_is_not_neo4j_is_reported(answer: bytes):
    with socket.create_server(("127.0.0.1", 0)) as door:
        uri = f"bolt://127.0.0.1:{door.getsockname()[1]}"

        def serve() -> None:
            with door.accept()[0] as one:
                one.recv(999)
                one.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(StoreUnavailableError, match=uri):
            Neo4jGraph(uri)


def test_a_server_that_is_too_old_is_refused():
    with pytest.raises(InvalidRecordError, match=r"Use Neo4j 5\.23"):
        check_server("Neo4j/4.4.0")

    for agent in ("Neo4j/5.23.0", "Neo4j/2026.01.0", "Another/1.0"):
        check_server(agent)


@pytest.mark.parametrize("prefix", ["", "lower", "A B", "X`", "Ä", "A\n"])
def test_a_prefix_that_is_no_label_is_refused(prefix: str):
    with pytest.raises(InvalidRecordError):
        Neo4jGraph("bolt://127.0.0.1:1", prefix=prefix)


def test_only_labels_get_the_prefix():
    text = "MATCH (a:Record {id: $id})-[:STATES]->(:Entity) RETURN a.kind"
    assert queries.labelled(text, "P") == (
        "MATCH (a:PRecord {id: $id})-[:STATES]->(:PEntity) RETURN a.kind"
    )


def test_ids_of_a_page_are_those_that_were_written(graph: Neo4jGraph):
    graph.apply([put(f"k{n}", n + 1, created_at=START) for n in range(30)])
    ids: list[str] = []
    cursor = None
    while True:
        page = graph.page(ALICE, limit=7, cursor=cursor)
        ids += [one.id for one in page.records]
        cursor = page.cursor
        if cursor is None:
            break

    wanted = sorted((ALICE.record_id("fact", f"k{n}") for n in range(30)), reverse=True)
    assert ids == wanted
