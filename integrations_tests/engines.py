"""Engines of a test: the embedded ones, or servers in their place, also in child processes."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from commonplace.settings import Location

ENGINES = ("embedded", "neo4j+edge", "neo4j+qdrant")
_GRAPH, _VECTORS = "TEST_GRAPH", "TEST_VECTORS"
_find: Callable[..., Location] = Location.find


@pytest.fixture
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put the engines that a folder alone does not name on empty servers."""
    graph, _, vectors = request.param.partition("+")
    with ExitStack() as stack:
        if graph == "neo4j":
            from .servers.fixtures import empty_graph

            uri = request.getfixturevalue("neo4j_uri")
            monkeypatch.setenv(_GRAPH, empty_graph(uri))
        if vectors == "qdrant":
            from .servers.fixtures import empty_index

            url = request.getfixturevalue("qdrant_url")
            monkeypatch.setenv(_VECTORS, stack.enter_context(empty_index(url)))
        monkeypatch.setattr(Location, "find", find)
        yield request.param


def find(*args: object, **given: object) -> Location:
    """Find a place as ever, and put what is in a folder where the environment says."""
    place = _find(*args, **given)
    changed = {}
    if _GRAPH in os.environ and not place.shares_graph:
        changed["graph"] = os.environ[_GRAPH]
    if _VECTORS in os.environ and not place.shares_vectors:
        changed["vectors"] = os.environ[_VECTORS]
    return replace(place, **changed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is marked `every_engine` on each of them, or on those that it names."""
    marker = metafunc.definition.get_closest_marker("every_engine")
    if marker is not None:
        metafunc.fixturenames.insert(0, "engines")
        metafunc.parametrize("engines", marker.args or ENGINES, indirect=True)
