"""ADK's sessions on Neo4j: all that they promise on a folder."""

import pytest

pytest.importorskip("google.adk", reason="pip install 'commonplace-memory[adk]'")

from commonplace import Memory

from ..adapters.test_adk import SessionContract, service

pytestmark = pytest.mark.external_service
__all__ = ["service"]


class TestAdkSessionsOnNeo4j(SessionContract):
    @pytest.fixture
    def kept(self, states_on_neo4j: Memory) -> Memory:
        return states_on_neo4j
