"""Engines of a test: the embedded ones, or servers in their place, also in child processes."""

import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from commonplace.settings import Location

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
_WITH_PORT = {
    port: [name for name, one in PROJECT["tool"]["commonplace"]["engines"].items()
           if port in one["ports"]]
    for port in ("GraphStore", "VectorIndex")
}  # fmt: skip
# All in one file, and every graph store with every index on servers.
ENGINES = ("embedded", *map("+".join, product(_WITH_PORT["GraphStore"], _WITH_PORT["VectorIndex"])))
# By name only: "neo4j+folder", and "folders", where graph and index have a file each.
_GRAPH, _VECTORS, _FOLDERS = "TEST_GRAPH", "TEST_VECTORS", "TEST_INDEX_FOLDER"
_find: Callable[..., Location] = Location.find


# For every test: what no test asks for by name would be left out, whatever its parameters.
@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put the engines that a folder alone does not name beside it, or on empty servers."""
    named = getattr(request, "param", "embedded")
    graph, _, vectors = named.partition("+")
    with ExitStack() as stack:
        if graph == "folders":
            monkeypatch.setenv(_FOLDERS, "1")
        if graph == "neo4j":
            from .servers.fixtures import empty_graph

            uri = request.getfixturevalue("neo4j_uri")
            monkeypatch.setenv(_GRAPH, empty_graph(uri))
        if vectors == "qdrant":
            from .servers.fixtures import empty_index

            url = request.getfixturevalue("qdrant_url")
            monkeypatch.setenv(_VECTORS, stack.enter_context(empty_index(url)))
        if named != "embedded":
            monkeypatch.setattr(Location, "find", find)
        yield named


def find(*args: object, **given: object) -> Location:
    """Find a place as ever, and put what is in a folder where the environment says."""
    place = _find(*args, **given)
    changed = {}
    if _GRAPH in os.environ and not place.shares_graph:
        changed["graph"] = os.environ[_GRAPH]
    if _VECTORS in os.environ and not place.shares_vectors:
        changed["vectors"] = os.environ[_VECTORS]
    if _FOLDERS in os.environ and place.vectors == place.graph:
        changed["vectors"] = os.path.join(place.graph, "index")
    return replace(place, **changed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is marked `every_engine` on each of them, or on those that it names."""
    marker = metafunc.definition.get_closest_marker("every_engine")
    if marker is not None:
        metafunc.parametrize("engines", marker.args or ENGINES, indirect=True)
