"""A command line whose embedders cost nothing."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from commonplace.cli import arguments
from commonplace.cli.app import app

from .populated import command, embedder_of, live, opened


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run a command in this process and folder."""
    monkeypatch.setattr(arguments, "embedder_of", embedder_of)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMMONPLACE_EMBEDDER", raising=False)
    return lambda *words: command(app, *words)


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Make a memory with a past, of so many records and owners, once for all tests."""

    @functools.cache
    def make(records: int, owners: int) -> Path:
        place = tmp_path_factory.mktemp("past")
        with opened(place) as memory:
            live(memory, records, owners)
        return place

    return make


@pytest.fixture
def lived(past: Callable[[int, int], Path], tmp_path: Path) -> Path:
    """The folder of a memory with a past, closed."""
    return shutil.copytree(past(60, 5), tmp_path / "lived")
