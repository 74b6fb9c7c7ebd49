"""Fixtures of every integration test."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, Scope, StoreUnavailableError
from commonplace.testing.fakes import FrozenClock, HashEmbedder

from .engines import engines, pytest_generate_tests
from .servers.fixtures import (
    killable_neo4j,
    neo4j_place,
    neo4j_uri,
    pytest_terminal_summary,
    qdrant_place,
    qdrant_url,
)

# Nothing is fetched from a model hub, by no library and in no child process.
os.environ |= {"HF_HUB_OFFLINE": "1", "MEM0_TELEMETRY": "False"}
gc.disable()  # until all tests are imported, and the frameworks with them

__all__ = [
    "engines",
    "killable_neo4j",
    "neo4j_place",
    "neo4j_uri",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "qdrant_place",
    "qdrant_url",
]
SERVERS = {"neo4j_place", "neo4j_uri", "qdrant_place", "qdrant_url"}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs a server as such, and put these and slow ones where they go well.

    Of several processes, each of which begins with an equal share of the tests, the first has those
    of servers, so that not each starts all servers; the second begins with the slow ones, so that
    none is left with these when the others have ended.
    """
    for item in items:
        engines = item.callspec.params.get("engines", "") if hasattr(item, "callspec") else ""
        if "+" in engines or SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.external_service)
    of_servers, slow, rest = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("external_service"):
            of_servers.append(item)
        else:
            (slow if _is_long(item) else rest).append(item)
    # First those that kill it: a server that has begun anew plans all texts anew.
    of_servers.sort(key=lambda one: ("killable_neo4j" not in one.fixturenames, not _is_long(one)))
    share = len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    left = max(0, share - len(of_servers))
    items[:] = [*of_servers, *rest[:left], *slow, *rest[left:]]


def _is_long(item: pytest.Item) -> bool:
    """Return whether a test is slow, or may take a time of its own."""
    return any(map(item.get_closest_marker, ("slow", "timeout")))


def pytest_collection_finish() -> None:
    """Keep the garbage collector off the million objects of the frameworks, which all stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def scope() -> Scope:
    """Alice, and nobody else."""
    return Scope(user_id="alice")


@pytest.fixture
def clock() -> FrozenClock:
    """A time that stands still until it is told to go on."""
    return FrozenClock()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory on real engines, closed afterwards."""
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


@pytest.fixture
def broken(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory that fails at every call."""

    def fail(*_args: Any, **_options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="down")

    async def afail(*_args: Any, **_options: Any) -> Any:
        fail()

    for name in ("search", "add", "list", "get", "update", "delete", "history", "relations"):
        monkeypatch.setattr(memory, name, fail)
        monkeypatch.setattr(memory, f"a{name}", afail)
    return memory
