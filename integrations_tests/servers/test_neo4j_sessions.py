"""Strands' sessions on Neo4j: all that they promise on a folder."""

import pytest

pytest.importorskip("strands", reason="pip install 'commonplace-memory[strands]'")

from commonplace import Memory

from ..adapters.strands.test_strands_sessions import SessionContract

pytestmark = pytest.mark.external_service


class TestSessionsOnNeo4j(SessionContract):
    @pytest.fixture
    def kept(self, states_on_neo4j: Memory) -> Memory:
        return states_on_neo4j
