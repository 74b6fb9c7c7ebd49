"""Location of a memory, as a caller or the environment names it."""

import math
from pathlib import Path
from typing import Any

import pytest

from commonplace import InvalidRecordError, Memory, Settings
from commonplace.settings import Location, parse_server_url
from commonplace.testing.fakes import HashEmbedder

SERVERS = Settings(vectors="qdrant://q:6333", graph="neo4j://n:7687")


def test_a_folder_holds_every_engine_that_has_no_place_of_its_own(tmp_path: Path) -> None:
    place = Location.find(str(tmp_path), Settings())
    assert place == Location(vectors=str(tmp_path), graph=str(tmp_path), journal=str(tmp_path))
    assert not place.shares_graph
    mixed = Location.find(
        str(tmp_path), Settings(), graph="neo4j://n:7687", journal=f"{tmp_path}/j"
    )
    assert (mixed.vectors, mixed.journal) == (str(tmp_path), f"{tmp_path}/j")


def test_what_is_given_stands_before_what_is_set(tmp_path: Path) -> None:
    place = Location.find(str(tmp_path), SERVERS, graph="bolt://m:7687")
    assert (place.vectors, place.graph) == ("qdrant://q:6333", "bolt://m:7687")
    assert place.shares_vectors


def test_the_same_folder_is_the_same_place_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.find("./a/../a", Settings()) == Location.find(str(tmp_path / "a"), Settings())


@pytest.mark.parametrize(
    ("name", "given", "takes"),
    [
        ("DECAY", "yes", "true or false, or 1 or 0"),
        ("MAX_PENDING", "many", "an integer"),
        ("RETRY_AFTER", "1 s", "a number"),
    ],
)
def test_a_setting_that_cannot_be_read_says_what_it_takes(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str, takes: str
) -> None:
    monkeypatch.setenv(f"COMMONPLACE_{name}", given)

    with pytest.raises(InvalidRecordError, match=f"COMMONPLACE_{name}='{given}' must be {takes}"):
        Settings.from_env()


def test_a_path_that_is_set_to_nothing_is_not_set() -> None:
    assert Location.find(None, Settings(path="")) == Location.find(None, Settings())


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e10])
def test_a_time_that_no_clock_can_wait_is_refused(value: float) -> None:
    with pytest.raises(InvalidRecordError, match="model_timeout"):
        Settings(model_timeout=value)


def test_a_password_is_in_no_name() -> None:
    place = Location.find(None, SERVERS, graph="neo4j://me:pass@n:7687", vectors="https://key@q/c")
    assert str(place) == "neo4j://n:7687 + https://q/c"


@pytest.mark.parametrize(
    "given",
    [{"vectors": "neo4j://n"}, {"graph": "qdrant://q"}, {"graph": "postgres://me:secret@p/d"}],
)
def test_a_url_of_no_engine_is_refused_without_its_password(
    tmp_path: Path, given: dict[str, str]
) -> None:
    with pytest.raises(
        InvalidRecordError, match="must be the URL of an installed engine"
    ) as caught:
        Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder(), **given)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "memory").exists()


def test_a_url_of_qdrant_edge_says_what_became_of_its_index() -> None:
    with pytest.raises(InvalidRecordError, match=r"0\.1\.0 .* `vectors` out"):
        Memory.open(embedder=HashEmbedder(), vectors="edge:///memory")


def test_a_url_says_as_whom_to_ask_and_how() -> None:
    known = {"shards": int, "quantize": bool}
    server = parse_server_url(
        "vectors", "qdrant://:k%40y@host:6333/notes?shards=2&quantize=true", known
    )
    assert (server.url, server.password, server.name) == ("qdrant://host:6333", "k@y", "notes")
    assert server.options == {"shards": 2, "quantize": True}


@pytest.mark.parametrize("query", ["shard=2", "shards=0", "shards=many", "quantize=yes"])
def test_an_option_that_is_none_is_refused(query: str) -> None:
    with pytest.raises(InvalidRecordError):
        parse_server_url("vectors", f"qdrant://host?{query}", {"shards": int, "quantize": bool})


@pytest.mark.parametrize(
    "url",
    [
        "neo4j://me:sec/ret@n:7687",
        "neo4j://me:sec#ret@n:7687",
        "neo4j://me:sec?ret@n:7687",
        "neo4j://me:sec[ret@n:7687",
        "neo4j://me:secret@n:many",
        "neo4j://me:secret@n:65536",
        "neo4j://me:secret@[::1",
        "neo4j://me:secret@",
        "neo4j://",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidRecordError, match="must be a URL") as caught:
        Location.find(None, Settings(graph=url))
    assert "sec" not in str(caught.value)
    assert "ret" not in str(caught.value)


def test_a_password_is_shown_by_no_object() -> None:
    given = Settings(graph="neo4j://me:secret@n:7687", vectors="qdrant://secret@q/c")
    assert "secret" not in f"{given!r} {Location.find(None, given)!r} {Location.find(None, given)}"


def test_an_address_of_version_6_is_one() -> None:
    place = Location.find(None, Settings(), graph="bolt://me:a%2Fb@[::1]:7687/db?prefix=Mine")
    assert str(place).startswith("bolt://[::1]:7687/db")


@pytest.mark.parametrize("path", ["qdrant://host:6333", "neo4j://x", "  ", "a\0b", 5, b"bytes"])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(InvalidRecordError, match="path="):
        Location.find(path, Settings())


def test_what_stands_beside_a_graph_store_is_in_its_folder(tmp_path: Path) -> None:
    found = Location.find(None, Settings(), graph=str(tmp_path), vectors=str(tmp_path))

    assert {found.graph, found.vectors, found.journal} == {str(tmp_path)}


def test_a_variable_that_no_setting_has_is_told_once_with_the_closest_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("commonplace.settings._warned_of", set())
    for name in ("PTH", "MAX_PENDNG", "UNHEARD_OF", "PATH", "EMBEDDER"):
        monkeypatch.setenv(f"COMMONPLACE_{name}", "7")
    monkeypatch.delenv("COMMONPLACE_LOCOMO", raising=False)
    for _ in range(2):
        assert Settings.from_env().path == "7"

    assert [record.getMessage() for record in caplog.records] == [
        "COMMONPLACE_MAX_PENDNG is ignored, as no setting has that name. "
        "Did you mean COMMONPLACE_MAX_PENDING?",
        "COMMONPLACE_PTH is ignored, as no setting has that name. Did you mean COMMONPLACE_PATH?",
        "COMMONPLACE_UNHEARD_OF is ignored, as no setting has that name.",
    ]
