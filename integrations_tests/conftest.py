"""What every integration test may ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.testing.fakes import FrozenClock, HashEmbedder


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
