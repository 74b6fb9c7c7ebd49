"""LangGraph's checkpointer with its states on Neo4j: all that it promises on a folder."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("langgraph", reason="pip install 'commonplace[langgraph]'")
pytest.importorskip("langgraph.checkpoint.conformance", reason="the public conformance suite")

from commonplace import Memory
from commonplace.backends.neo4j_checkpoints import Neo4jCheckpoints

from ..adapters.langgraph.saver.test_runs import RunContract
from ..adapters.langgraph.saver.test_saver import SaverContract
from .places import empty_graph

pytestmark = pytest.mark.external_service


@pytest.fixture
def on_server(memory: Memory, neo4j_place, neo4j_uri) -> Iterator[Memory]:
    """A memory whose states of runs are on an empty server."""
    empty_graph(neo4j_uri, "Saver")
    store = Neo4jCheckpoints(neo4j_place.uri, auth=neo4j_place.auth, prefix="Saver")
    engines = memory._store.engines
    memory._store.engines = memory._store.writer._engines = replace(engines, checkpoints=store)
    yield memory
    store.close()


class TestSaverOnNeo4j(SaverContract):
    @pytest.fixture
    def kept(self, on_server: Memory) -> Memory:
        return on_server


class TestRunsOnNeo4j(RunContract):
    @pytest.fixture
    def kept(self, on_server: Memory) -> Memory:
        return on_server
