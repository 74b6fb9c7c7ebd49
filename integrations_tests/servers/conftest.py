"""Fixtures for tests of frameworks on a server."""

from collections.abc import Iterator

import pytest

from commonplace import Memory
from commonplace.ports.stores import Engines

from .fixtures import empty_graph


@pytest.fixture
def states_on_neo4j(memory: Memory, neo4j_place, neo4j_uri) -> Iterator[Memory]:
    """A memory whose states of runs are on an empty server."""
    from commonplace.backends.neo4j.checkpoints import Neo4jCheckpoints
    from commonplace.backends.neo4j.driver import Neo4jDriver

    empty_graph(neo4j_uri)
    driver = Neo4jDriver(neo4j_place.uri, auth=neo4j_place.auth, prefix="Test")
    store = Neo4jCheckpoints(driver)
    local = memory._runtime.engines
    engines = Engines(  # in no common transaction
        index=local.index, graph=local.graph, journal=local.journal, checkpoints=store
    )
    memory._runtime.engines = memory._runtime.worker.engines = engines
    yield memory
    store.close()
