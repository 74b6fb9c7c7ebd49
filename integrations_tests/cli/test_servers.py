"""Memories move from a folder to servers and back, and nobody can tell."""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.cli import arguments

from ..servers.fixtures import empty_graph, empty_index
from .populated import SMALL, embedder_of, opened, reads, users
from .test_interruptions import kill

pytestmark = pytest.mark.external_service


@pytest.fixture
def servers(neo4j_uri: str, qdrant_url: str, tmp_path: Path) -> Iterator[str]:
    """A place on a Neo4j and a Qdrant, with nothing in it."""
    graph = empty_graph(neo4j_uri)
    with empty_index(qdrant_url) as vectors:
        yield f"graph={graph},vectors={vectors},journal={tmp_path / 'journal'}"


@contextlib.contextmanager
def on(place: str, embedder: str = "sentence-encoder"):
    with arguments.opened(place, embedder_of(embedder)) as memory:
        yield memory


def test_to_servers_and_back_every_export_and_every_read_is_equal(
    run, lived: Path, tmp_path: Path, servers: str
):
    there = run("copy", lived, servers)
    back = run("copy", servers, tmp_path / "back")

    assert (there.exit_code, back.exit_code) == (0, 0), there.output + back.output
    assert "85 reused, 0 embedded" in there.stdout
    assert "85 reused, 0 embedded" in back.stdout
    for name, place in (("a", lived), ("b", servers), ("c", tmp_path / "back")):
        assert run("doctor", place).exit_code == 0
        run("export", place, f"{name}.jsonl")
    exports = [Path(f"{name}.jsonl").read_bytes() for name in "abc"]
    assert exports == [exports[0]] * 3
    with opened(lived) as one, on(servers) as two, opened(tmp_path / "back") as three:
        assert reads(three) == reads(one)
        assert reads(two, scores=False) == reads(one, scores=False)
        assert [m.record.text for m in two.search("where does Ann live", users(1)[0], top_k=1)] == [
            "Ann lives in Bern"
        ]


def test_a_copy_to_servers_killed_half_way_goes_on(run, lived: Path, servers: str):
    kill("vectors", 64, "copy", lived, servers)
    done = run("copy", lived, servers)

    assert done.exit_code == 0, done.output
    assert "21 reused, 0 embedded" in done.stdout
    assert run("doctor", servers).exit_code == 0


def test_on_servers_who_reads_reads_on_while_vectors_are_made_anew(
    run, lived: Path, servers: str, monkeypatch: pytest.MonkeyPatch
):
    rebuilding = importlib.import_module("commonplace.admin.reindex")

    run("copy", lived, servers)
    other = servers.partition(",journal=")[0] + f",journal={lived.parent / 'other'}"
    whole = rebuilding.backfill
    with on(servers) as memory:
        seen = reads(memory)

        def watched(*args, **kwargs):
            filled = whole(*args, **kwargs)
            assert reads(memory) == seen
            return filled

        monkeypatch.setattr(rebuilding, "backfill", watched)
        done = run("reembed", other, "--embedder", SMALL, "--keep")
        assert reads(memory) == seen
    monkeypatch.setattr(rebuilding, "backfill", whole)

    assert done.exit_code == 0, done.output
    assert run("doctor", other, "--embedder", SMALL).exit_code == 0
    assert run("reindex", other, "--embedder", SMALL).exit_code == 0
    assert run("reembed", other, "--embedder", "sentence-encoder").exit_code == 0
    with on(other) as memory:
        assert reads(memory) == seen


def test_what_is_written_while_vectors_are_made_is_caught_up_with(
    run, lived: Path, servers: str, monkeypatch: pytest.MonkeyPatch
):
    rebuilding = importlib.import_module("commonplace.admin.reindex")

    run("copy", lived, servers)
    other = servers.partition(",journal=")[0] + f",journal={lived.parent / 'other'}"
    whole, rounds = rebuilding.backfill, []
    with on(servers) as memory:

        def disturbed(*args, **kwargs):
            filled = whole(*args, **kwargs)
            if not rounds:
                memory.add("written meanwhile", users(1)[0])
            rounds.append(filled)
            return filled

        monkeypatch.setattr(rebuilding, "backfill", disturbed)
        done = run("reembed", other, "--embedder", SMALL)

    assert done.exit_code == 0, done.output
    assert [one.embedded for one in rounds] == [85, 1]
    assert run("doctor", other, "--embedder", SMALL).exit_code == 0
