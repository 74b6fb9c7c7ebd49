"""LangGraph's checkpointer with its states on Neo4j: all that it promises on a folder."""

import pytest

pytest.importorskip("langgraph", reason="pip install 'commonplace-memory[langgraph]'")
pytest.importorskip("langgraph.checkpoint.conformance", reason="the public conformance suite")

from commonplace import Memory

from ..adapters.langgraph.saver.test_runs import RunContract
from ..adapters.langgraph.saver.test_saver import SaverContract

pytestmark = pytest.mark.external_service


class TestSaverOnNeo4j(SaverContract):
    @pytest.fixture
    def kept(self, states_on_neo4j: Memory) -> Memory:
        return states_on_neo4j


class TestRunsOnNeo4j(RunContract):
    @pytest.fixture
    def kept(self, states_on_neo4j: Memory) -> Memory:
        return states_on_neo4j
