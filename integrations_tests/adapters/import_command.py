"""Runs `commonplace import NAME` as an installed package adds it, on memories without a model."""

import contextlib
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from typer.testing import Result

from commonplace import Memory
from commonplace.cli import app, arguments
from commonplace.testing.fakes import HashEmbedder

from ..cli.populated import command


def import_command(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[..., Result]:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    where = project["project"]["entry-points"][app.GROUP][name]
    points = EntryPoints([EntryPoint(name, where, app.GROUP)])
    monkeypatch.setattr(app, "entry_points", points.select)
    monkeypatch.setattr(arguments, "opened", opened)
    return lambda *words: command(app.app, "import", name, *words)


@contextlib.contextmanager
def opened(place: str, _embedder: str = "") -> Iterator[Memory]:
    with Memory.open(place, embedder=HashEmbedder()) as found:
        yield found
