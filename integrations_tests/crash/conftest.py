"""Fixture of the programs that fork."""

from collections.abc import Iterator

import pytest

from .programs import Programs


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    """A process that has imported everything."""
    process = Programs()
    yield process
    process.close()
