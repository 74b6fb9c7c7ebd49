"""An engine of somebody else keeps the contract, and is opened by its own scheme."""

import sys
import tomllib
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from commonplace import (
    InvalidRecordError,
    Memory,
    SchemaMismatchError,
    Scope,
    Settings,
    VectorIndex,
)
from commonplace.admin import reindex
from commonplace.ports import GraphStore, IndexEngine
from commonplace.settings import Location
from commonplace.testing.contracts.index import DIMENSIONS, VectorIndexContract
from commonplace.testing.fakes import HashEmbedder

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "how-to" / "write_an_engine.md"
ALICE = Scope(user_id="alice")


def block(language: str, number: int = 0) -> str:
    """Read a block of code of the page."""
    return PAGE.read_text("utf-8").split(f"```{language}\n")[1 + number].split("```")[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The engine's package as pip installs it: its module, and the entry point of the page."""
    project = tomllib.loads(block("toml"))["project"]
    info = tmp_path / "site" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = ConfigParser()
    points.read_dict(project["entry-points"])
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(HERE)
    yield import_module("shelf_engine")
    sys.modules.pop("shelf_engine")


class TestShelfIndex(VectorIndexContract):
    """The shipped contract."""

    @pytest.fixture
    def index(self, installed: ModuleType, tmp_path: Path):
        opened = installed.ShelfIndex(tmp_path / "shelf.json", dimensions=DIMENSIONS, meta={})
        yield opened
        opened.close()

    @pytest.fixture
    def token_index(self):
        pytest.skip("it keeps no tokens")


def test_the_page_has_the_code_of_the_engine():
    assert block("python") == (HERE / "shelf_engine.py").read_text("utf-8")


def test_its_scheme_opens_it(installed: ModuleType, tmp_path: Path):
    assert isinstance(installed.ShelfEngine(), IndexEngine)
    place = {"path": str(tmp_path / "memory"), "vectors": f"shelf://{tmp_path}/shelf"}
    with Memory.open(**place, embedder=HashEmbedder()) as memory:
        memory.add(["Alice keeps bees", "Alice rows at dawn"], ALICE)
    with Memory.open(**place, embedder=HashEmbedder()) as memory:
        [found] = memory.search("Who keeps bees?", ALICE, top_k=1)
        receipt = memory.forget(ALICE)

    assert found.record.text == "Alice keeps bees"
    assert receipt.complete
    assert b"bees" not in (tmp_path / "shelf" / "shelf-1.json").read_bytes()
    with pytest.raises(SchemaMismatchError, match="embedder"):
        Memory.open(**place, embedder=HashEmbedder(32))


def test_its_index_is_rebuilt_beside_the_one_in_use(installed: ModuleType, tmp_path: Path):
    place = {"path": str(tmp_path / "memory"), "vectors": f"shelf://{tmp_path}/shelf"}
    with Memory.open(**place, embedder=HashEmbedder()) as memory:
        memory.add("Alice keeps bees", ALICE)
    location = Location.find(place["path"], Settings(), vectors=place["vectors"])
    done = reindex(location, Settings(), HashEmbedder())

    assert done.embedded == 1
    assert [file.name for file in (tmp_path / "shelf").iterdir()] == ["shelf-2.json"]
    with Memory.open(**place, embedder=HashEmbedder()) as memory:
        assert len(memory.search("bees", ALICE)) == 1


def test_a_folder_is_opened_without_a_look_for_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def look(**_group: str) -> None:
        raise AssertionError("nobody asked for an engine of a URL")

    monkeypatch.setattr("commonplace.backends.entry_points", look)
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        assert memory.search("bees", ALICE) == []


def test_a_scheme_of_several_engines_is_refused(
    installed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("one", "other"):
        info = tmp_path / "more" / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[commonplace.engines]\ntwice = {name}:Engine\n")
    monkeypatch.syspath_prepend(tmp_path / "more")

    with pytest.raises(InvalidRecordError, match="one:Engine, other:Engine"):
        Memory.open(str(tmp_path / "memory"), vectors="twice://x", embedder=HashEmbedder())


def test_a_scheme_that_nobody_has_names_those_that_are_installed(
    installed: ModuleType, tmp_path: Path
):
    with pytest.raises(InvalidRecordError, match=r"http://, https://, qdrant://, shelf://\."):
        Memory.open(str(tmp_path / "memory"), vectors="shelve://x", embedder=HashEmbedder())


# -- engines that the caller has opened ------------------------------------------------------------


@pytest.fixture
def index(installed: ModuleType, tmp_path: Path):
    dimensions = HashEmbedder().dimensions
    opened = installed.ShelfIndex(tmp_path / "shelf.json", dimensions=dimensions, meta={})
    yield opened
    opened.close()


def test_an_open_index_is_used_and_stays_open(index: VectorIndex, tmp_path: Path):
    with Memory.open(str(tmp_path / "memory"), vectors=index, embedder=HashEmbedder()) as memory:
        memory.add("Alice keeps bees", ALICE)
        assert "ShelfIndex" in memory.location
        with Memory.open(str(tmp_path / "memory"), vectors=index, embedder=HashEmbedder()) as same:
            assert same._runtime is memory._runtime

    assert index.count(ALICE) == 1
    with Memory.open(str(tmp_path / "memory"), vectors=index, embedder=HashEmbedder()) as memory:
        assert [match.text for match in memory.search("bees", ALICE)] == ["Alice keeps bees"]


def test_two_indexes_of_one_class_are_two_locations(
    installed: ModuleType, index: VectorIndex, tmp_path: Path
):
    dimensions = HashEmbedder().dimensions
    other = installed.ShelfIndex(tmp_path / "other.json", dimensions=dimensions, meta={})
    first = Memory.open(str(tmp_path / "memory"), vectors=index, embedder=HashEmbedder())
    second = Memory.open(str(tmp_path / "other"), vectors=other, embedder=HashEmbedder())
    with first, second:
        first.add("Alice keeps bees", ALICE)

        assert (index.count(ALICE), other.count(ALICE)) == (1, 0)


def test_an_open_index_takes_only_the_embedder_that_filled_it(index: VectorIndex, tmp_path: Path):
    class Other(HashEmbedder):
        id = "other"

    with Memory.open(str(tmp_path / "memory"), vectors=index, embedder=Other()):
        pass  # while it is empty, it takes any
    with Memory.open(str(tmp_path / "memory"), vectors=index, embedder=HashEmbedder()) as memory:
        memory.add("Alice keeps bees", ALICE)

    with pytest.raises(SchemaMismatchError, match="the index's embedder 'hash-64', now 'other'"):
        Memory.open(str(tmp_path / "memory"), vectors=index, embedder=Other())


def test_an_open_graph_store_is_used_and_stays_open(tmp_path: Path):
    from commonplace.backends.sqlite.connection import SqliteConnection
    from commonplace.backends.sqlite.graph import SqliteGraph

    connection = SqliteConnection(str(tmp_path / "graph.db"))
    graph = SqliteGraph(connection)
    with Memory.open(str(tmp_path / "memory"), graph=graph, embedder=HashEmbedder()) as memory:
        memory.add("Alice keeps bees", ALICE)
        assert [match.text for match in memory.search("bees", ALICE)] == ["Alice keeps bees"]
        assert memory.admin.checkpoints is not None

    assert isinstance(graph, GraphStore)
    assert graph.count(ALICE)["records"] == 1
    graph.close()
    connection.close()


def test_an_object_without_the_methods_of_the_port_is_refused(index: VectorIndex, tmp_path: Path):
    class Half:
        search = upsert = score = amend = vectors = delete = erase = flush = close = print

    for given, expected in (
        ({"vectors": Half()}, "must be a string or a VectorIndex. It lacks count, versions"),
        ({"vectors": type(index)}, "an open VectorIndex"),
        ({"graph": index}, "must be a string or a GraphStore"),
    ):
        with pytest.raises(InvalidRecordError, match=expected):
            Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder(), **given)
    assert not (tmp_path / "memory").exists()
