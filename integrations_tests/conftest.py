"""What every integration test may ask for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.testing.fakes import FrozenClock, HashEmbedder

from .engines import engines, pytest_generate_tests
from .servers.places import (
    neo4j_place,
    neo4j_uri,
    pytest_terminal_summary,
    qdrant_place,
    qdrant_url,
)

# Nothing is fetched from a model hub, by no library and in no child process.
os.environ |= {"HF_HUB_OFFLINE": "1", "MEM0_TELEMETRY": "False"}

__all__ = [
    "engines",
    "neo4j_place",
    "neo4j_uri",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "qdrant_place",
    "qdrant_url",
]


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
