"""Code for mem0 on a Qdrant and a Neo4j, as its configuration names them."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from commonplace import Fact, Relation, Scope
from commonplace import Memory as Core
from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import Memory
from commonplace_mem0.migrate import Mem0Point, Source, import_mem0

from .counting_proxy import BOLT, HTTP, Tally, http_only
from .fixtures import empty_graph, empty_index

USER = "VIP001"


class Model:
    """Takes every text as one fact about somebody's taste."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, messages):
        self.asked += 1
        relation = {"subject": "Wang", "predicate": "likes", "object": "Coffee"}
        text = messages[-1]["content"].rpartition("user: ")[2]
        return json.dumps({"facts": [{"text": text, "relations": [relation]}]})


@pytest.fixture
def tallied(neo4j_uri, qdrant_url) -> Iterator[tuple[Tally, Tally]]:
    graph = empty_graph(neo4j_uri)
    with (
        empty_index(qdrant_url) as vectors,
        Tally(graph, BOLT) as bolt,
        Tally(http_only(vectors), HTTP) as http,
    ):
        yield bolt, http


def config(bolt, http, folder, monkeypatch):
    monkeypatch.setenv("COMMONPLACE_PATH", str(folder))
    index = urlsplit(http.url)
    place = {
        "host": index.hostname,
        "port": index.port,
        "collection_name": index.path.strip("/"),
    }
    if index.username:
        place["api_key"] = index.username
    return {
        "vector_store": {"provider": "qdrant", "config": place},
        "graph_store": {"provider": "neo4j", "config": {"url": bolt.url}},
        "embedder": HashEmbedder(),
    }


def test_the_calls_of_code_for_mem0_work_on_both_servers(tallied, tmp_path, monkeypatch):
    given = config(*tallied, tmp_path, monkeypatch)
    with Memory.from_config(given) as memory:
        [added] = memory.add("客户王总喜欢蓝山咖啡", user_id=USER)["results"]
        found = memory.search("王总的饮品偏好", user_id=USER)
        with pytest.raises(ValueError, match="m1 not found"):
            memory.update(memory_id="m1", data="王总最近改喝低因咖啡")
        memory.update(memory_id=added["id"], data="王总最近改喝低因咖啡")
        again = memory.search("王总的饮品偏好", filters={"user_id": USER}, threshold=0.0)
        rows = memory.history(added["id"])
        memory.add("bob's", user_id="bob", infer=False)
        memory.delete_all(user_id=USER)

        assert ["客户王总喜欢蓝山咖啡"] == [one["memory"] for one in found["results"]]
        assert ["王总最近改喝低因咖啡"] == [one["memory"] for one in again["results"]]
        assert ["ADD", "UPDATE"] == [row["event"] for row in rows]
        assert [] == memory.get_all(user_id=USER)["results"]
        memory.reset()
        assert [] == memory.get_all(user_id="bob")["results"]


def test_a_memory_without_a_configuration_is_on_the_servers_of_the_environment(
    tallied, tmp_path, monkeypatch
):
    bolt, http = tallied
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_VECTORS", http.url)
    monkeypatch.setenv("COMMONPLACE_GRAPH", bolt.url)
    with Memory({"embedder": HashEmbedder()}) as memory:
        memory.add("客户王总喜欢蓝山咖啡", user_id=USER, infer=False)
    with Core.open(embedder=HashEmbedder()) as core:
        [found] = core.search("蓝山咖啡", Scope(user_id=USER))

    assert "客户王总喜欢蓝山咖啡" == found.record.text
    assert bolt.take()["transactions"]
    assert http.take()["requests"]


# As mem0 1.0.11 writes them, and as versions before 1.0.8 did on some of their ways.
EDGES = """
CREATE (a:`person`:`__Entity__` {name: 'alice', user_id: $user, created: timestamp(), mentions: 1})
CREATE (b:`person` {name: 'bob', user_id: $user, agent_id: 'bot', created: timestamp()})
CREATE (p:`city` {name: 'paris', user_id: $user}), (t:`drink` {name: 'green_tea', user_id: $user})
CREATE (e:`person` {name: 'eve', user_id: $user, agent_id: 'bot'})
CREATE (a)-[:lives_in {created_at: 1714557600000, updated_at: 1714557600001, mentions: 1,
  valid: true}]->(p)
CREATE (a)-[:likes {created: 1714557600000, mentions: 2}]->(t)
CREATE (b)-[:knows {created_at: 1714557600000, updated_at: 1714557600000, mentions: 1,
  valid: false, invalidated_at: datetime('2024-06-01T00:00:00Z')}]->(e)
"""


def test_relations_that_1x_wrote_are_imported_with_their_times(neo4j_uri, tmp_path, monkeypatch):
    neo4j = pytest.importorskip("neo4j", reason="pip install 'commonplace-memory[neo4j]'")
    user = f"u{uuid.uuid4().hex}"
    parts = urlsplit(neo4j_uri)
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    auth = (parts.username, parts.password) if parts.username else None
    point = Mem0Point(
        id=str(uuid.uuid4()), payload={"data": "Alice lives in Paris.", "user_id": user}
    )
    monkeypatch.setattr("commonplace_mem0.migrate.read_points", lambda _: iter([point]))
    with neo4j.GraphDatabase.driver(url, auth=auth) as driver:
        driver.execute_query(EDGES, user=user)
        with Core.open(
            str(tmp_path / "o"), graph=empty_graph(neo4j_uri), embedder=HashEmbedder()
        ) as o:
            ours = Relation(subject="Zoe", predicate="likes", object="rum")
            o.add(Fact(text="Zoe likes rum", relations=(ours,)), Scope(user_id=user))
        with Core.open(str(tmp_path / "m"), embedder=HashEmbedder()) as core:
            report = import_mem0(core, Source(folder="x", graph=neo4j_uri), dry_run=False)
            found = core.relations(Scope(user_id=user), include_superseded=True)
        driver.execute_query("MATCH (n {user_id: $user}) DETACH DELETE n", user=user)

    since, until = datetime(2024, 5, 1, 10, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    assert 0 == report.refused
    assert {} == report.reasons
    assert {
        ("alice", "lives_in", "paris", since, None),
        ("alice", "likes", "green tea", since, None),
        ("bob", "knows", "eve", since, until),
    } == {(one.subject, one.predicate, one.object, one.valid_from, one.valid_to) for one in found}


def test_an_addition_is_one_call_of_the_model_and_one_transaction(tallied, tmp_path, monkeypatch):
    bolt, http = tallied
    model = Model()
    given = {**config(bolt, http, tmp_path, monkeypatch), "llm": model}
    with Memory.from_config(given) as memory:
        memory.add("warm", user_id=USER)
        bolt.take(), http.take()
        added = memory.add("Wang likes Blue Mountain", user_id=USER)
        # One that looks up what is known, one that writes, one that looks at what others did
        # meanwhile, and one for its relations; the index is searched for what is known too, and
        # for what says the same as each fact.
        assert {"transactions": 4, "requests": 3} == bolt.take() | http.take()
        found = memory.search("Blue Mountain", user_id=USER)
        assert bolt.take()["transactions"] <= 2, "what relations lead to, and those of the answer"

        triple = {
            "source": "wang",
            "relationship": "likes",
            "target": "coffee",
            "destination": "coffee",
        }
        assert [[triple]] == added["relations"]["added_entities"]
        assert [triple] == found["relations"]
        memory.delete_all(user_id=USER)
        assert [] == memory.get_all(user_id=USER)["relations"]
    assert 2 == model.asked
