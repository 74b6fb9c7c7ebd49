"""What mem0 itself wrote, brought over: nothing is different afterwards."""

import contextlib
import json
import os
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace import Scope
from commonplace.errors import CommonplaceError
from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import Memory
from commonplace_mem0.exceptions import ConfigurationError, ValidationError
from commonplace_mem0.migrate import Mem0Point, Source, convert_points, import_mem0

from .test_mem0 import config

ROWS = int(os.environ.get("MEM0_ROWS", "300"))
CHILD = Path(__file__).with_name("mem0_store.py")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A folder that mem0 filled in a process of its own, and what it answers about it."""
    return filled(tmp_path_factory.mktemp("mem0"))


@pytest.fixture(scope="module")
def odd_store(tmp_path_factory):
    """A folder that mem0 filled with what is unusual, and what it answers about it."""
    return filled(tmp_path_factory.mktemp("odd"), "odd")


def filled(folder, *how):
    pytest.importorskip("mem0", reason="pip install mem0ai")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "utf8", CHILD, str(folder), str(ROWS), *how],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=580,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return folder, json.loads((folder / "answers.json").read_text("utf-8"))


def bytes_of(folder):
    return {one: one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def source_of(folder, **more):
    return Source(folder=str(folder / "qdrant"), history=str(folder / "history.db"), **more)


def ours_of(m, answers):
    """Ask our memory what mem0 was asked."""
    found = {}
    for user in answers["users"]:
        try:
            listed = m.get_all(user_id=user, limit=100_000, show_expired=True)
        except ValidationError:
            continue  # no id of ours
        found |= {one["id"]: one for one in listed["results"]}
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_store_of_mem0_comes_over_without_a_difference(store, tmp_path):
    folder, answers = store
    source = source_of(folder)
    told = []
    with Memory(config(tmp_path)) as m:
        dry = import_mem0(m.core, source)
        assert [] == m.core.admin.list_scopes()
        done = import_mem0(
            m.core, source, dry_run=False, progress=lambda some, number: told.append((some, number))
        )
        again = import_mem0(m.core, source, dry_run=False)
        found = ours_of(m, answers)
        rows = {memory_id: m.history(memory_id) for memory_id in found}

    theirs = {one["id"]: one for one in answers["memories"]}
    number = len(theirs)
    assert (number, number, 0) == (dry.added, done.added, done.refused)
    assert (0, number) == (again.added, again.known)
    assert (number, number) == told[-1]
    assert answers["deleted"] == len(done.ownerless)
    assert theirs.keys() == found.keys()
    assert [] == [key for key in theirs if theirs[key] != found[key]]
    for memory_id, before in answers["history"].items():
        wanted = [(one["event"], one["old_memory"], one["new_memory"]) for one in before]
        assert wanted == [
            (one["event"], one["old_memory"], one["new_memory"]) for one in rows[memory_id]
        ]
        times = [(one["created_at"], one["updated_at"]) for one in before]
        assert times == [(one["created_at"], one["updated_at"]) for one in rows[memory_id]]


REASONS = (
    "visible character", "NUL character", "32768 bytes", "nested deeper", "not empty", "64 bits",
    "wildcard", "1 to 256 characters",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_every_difference_of_an_odd_memory_of_mem0_is_explained(odd_store, tmp_path):
    folder, answers = odd_store
    with Memory(config(tmp_path)) as m:
        done = import_mem0(m.core, source_of(folder), dry_run=False)
        found = ours_of(m, answers)

    theirs = {one["id"]: as_imported(one) for one in answers["memories"]}
    assert theirs.keys() - found.keys() == set(done.reasons)
    assert found.keys() <= theirs.keys()
    for reason in done.reasons.values():
        assert any(known in reason for known in REASONS), reason
    assert {} == {
        key: (theirs[key], found[key]) for key in found if theirs[key] != as_imported(found[key])
    }


def as_imported(one):
    """Write a memory of mem0 as it is after its import: ids in NFC, times in UTC.

    mem0 stores metadata named `id` and never shows it; here it is shown.
    """
    metadata = {name: value for name, value in (one["metadata"] or {}).items() if name != "id"}
    times = {name: datetime.fromisoformat(one[name]) for name in ("created_at", "updated_at")}
    one = {**one, "metadata": metadata or None}
    return {**one, **times, "user_id": unicodedata.normalize("NFC", one["user_id"])}


@pytest.mark.filterwarnings("ignore")
def test_an_import_that_was_interrupted_goes_on(store, tmp_path):
    folder, answers = store

    class Interrupt(Exception):
        pass

    def stop(some, number):
        if some > number // 2:
            raise Interrupt

    with Memory(config(tmp_path)) as m:
        with pytest.raises(Interrupt):
            import_mem0(m.core, source_of(folder), dry_run=False, progress=stop)
        rest = import_mem0(m.core, source_of(folder), dry_run=False)

        assert 0 < rest.known < len(answers["memories"])
        assert len(answers["memories"]) == rest.known + rest.added
        assert len(answers["memories"]) == len(ours_of(m, answers))


def test_what_an_import_that_failed_had_not_indexed_is_found_after_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("commonplace_mem0.migrate.read_points", lambda _: iter([held(1)]))
    with Memory(config(tmp_path)) as m:
        with monkeypatch.context() as patch:
            patch.setattr(HashEmbedder, "embed", lambda *_, **__: 1 / 0)
            with pytest.raises(CommonplaceError):
                import_mem0(m.core, Source(folder="x"), dry_run=False)
        done = import_mem0(m.core, Source(folder="x"), dry_run=False)

        assert (0, 1) == (done.added, done.known)
        [found] = m.search("text 1", user_id="alice")["results"]
    assert "text 1" == found["memory"]


def test_a_dry_run_tells_what_the_import_then_does(tmp_path, monkeypatch):
    here = [held(1), held(2, expiration_date="2020-01-01"), held(3, data="")]
    monkeypatch.setattr("commonplace_mem0.migrate.read_points", lambda _: iter(here))
    with Memory(config(tmp_path)) as m:
        for _ in range(2):
            dry = import_mem0(m.core, Source(folder="x"))
            assert dry == import_mem0(m.core, Source(folder="x"), dry_run=False)
            m.update(here[0].id, text="changed here since")

        assert (2, 1) == (dry.known, dry.refused)
        assert "changed here since" == m.get(here[0].id)["memory"]


@pytest.mark.filterwarnings("ignore")
def test_the_command_tells_first_and_brings_when_that_is_said(store, tmp_path):
    typer = pytest.importorskip("typer", reason="pip install 'commonplace-memory[cli]'")
    from typer.testing import CliRunner

    from commonplace_mem0.cli_import import command

    folder, answers = store
    app = typer.Typer()
    app.command()(command)
    given = [str(tmp_path / "m"), "--folder", str(folder / "qdrant")]
    given += ["--history", str(folder / "history.db")]
    before = bytes_of(folder)
    runs = [CliRunner().invoke(app, given)]
    assert not (tmp_path / "m").exists()
    runs += [CliRunner().invoke(app, given + more) for more in (["--apply"], [])]
    assert before == bytes_of(folder)

    assert [0, 0, 0] == [run.exit_code for run in runs], runs[-1].output
    number = len(answers["memories"])
    assert f"{number} memories of 7 owners would come" in runs[0].output
    assert f"{number} memories of 7 owners are here now" in runs[1].output
    assert f"0 memories of 7 owners would come, run again with --apply; {number}" in runs[2].output


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_store_of_mem0_is_told(store, tmp_path):
    folder, _ = store
    with Memory(config(tmp_path)) as m:
        with pytest.raises(ValueError, match="no memories of mem0"):
            import_mem0(m.core, Source(folder=str(tmp_path)))
        with pytest.raises(ValueError, match="There are"):
            import_mem0(m.core, source_of(folder, collection="other"))
        with pytest.raises(ValueError, match="no history"):
            import_mem0(m.core, Source(folder=str(folder / "qdrant"), history="/nowhere.db"))
    with pytest.raises(ValueError, match="a folder or a url"):
        Source()


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path):
    local = pytest.importorskip("qdrant_client").QdrantClient(path=str(tmp_path / "qdrant"))
    sources = [
        ("history", {"folder": "unused", "history": str(tmp_path / "history.db")}),
        ("folder", {"folder": str(tmp_path / "qdrant")}),
        ("server", {"url": "http://127.0.0.1:9"}),
    ]
    (tmp_path / "history.db").write_bytes(b"SQLite format 3\x00, and then it ends")
    with contextlib.closing(local), Memory(config(tmp_path)) as m:
        for name, where in sources:
            with pytest.raises(ConfigurationError, match=f"{name}.* cannot be read"):
                import_mem0(m.core, Source(**where))


def held(number, **payload):
    known = {"data": f"text {number}", "user_id": "alice"}
    return Mem0Point(id=f"00000000-0000-4000-8000-{number:012}", payload={**known, **payload})


def test_times_of_any_zone_become_utc_and_reserved_keys_stay_where_they_are_read():
    one = held(1, created_at="2024-05-01T10:00:00-07:00", role="user", actor_id="Al", 城市="里昂")
    [told], reasons = convert_points(iter([one]), {})

    assert {} == reasons
    assert datetime(2024, 5, 1, 17, tzinfo=UTC) == told.record.created_at
    assert "Al" == told.record.metadata["mem0_actor_id"]
    assert "里昂" in told.record.metadata.values()


def test_a_memory_that_cannot_be_kept_is_told_with_the_reason_and_the_rest_goes_on():
    bad = [held(1, data=""), held(2, user_id="*"), held(3, user_id=None), held(4, x=float("nan"))]
    bad += [
        Mem0Point(id="7", payload={"data": "text", "user_id": "alice"}),
        held(6, created_at="noon"),
    ]
    told, reasons = convert_points(iter([*bad, held(5)]), {})

    assert ["text 5"] == [one.record.text for one in told]
    assert [one.id for one in bad] == list(reasons)


def test_a_report_groups_what_cannot_be_kept_by_reason(tmp_path, monkeypatch):
    typer = pytest.importorskip("typer", reason="pip install 'commonplace-memory[cli]'")
    from typer.testing import CliRunner

    from commonplace_mem0.cli_import import command

    here = [held(1, data=""), held(2, data=" "), held(3, user_id="*"), held(4), held(5, n=2**64)]
    here += [held(6, created_at="noon"), held(7, created_at="late")]
    monkeypatch.setattr("commonplace_mem0.migrate.read_points", lambda _: iter(here))
    app = typer.Typer()
    app.command()(command)
    report = tmp_path / "report.json"
    run = CliRunner().invoke(app, [str(tmp_path / "m"), "--folder", "x", "--report", str(report)])

    assert 0 == run.exit_code, run.output
    told = json.loads(report.read_text("utf-8"))
    assert [2, 2, 1, 1] == [len(ids) for ids in told["refused"].values()]
    assert {one.id for one in here} - {held(4).id} == {
        one for ids in told["refused"].values() for one in ids
    }
    assert any("visible character" in reason for reason in told["refused"])
    assert not any("noon" in reason or "2**" in reason for reason in told["refused"])
    assert [] == told["ownerless"]


def test_a_history_of_older_columns_becomes_the_past():
    rows = [
        {"event": "ADD", "new_memory": "tea", "created_at": "2024-05-01T00:00:00-07:00"},
        {"event": "UPDATE", "new_memory": "text 1", "updated_at": "2024-05-02T00:00:00-07:00"},
    ]
    one = held(1, created_at="2024-05-01T00:00:00-07:00", updated_at="2024-05-02T00:00:00-07:00")
    [told], _ = convert_points(iter([one]), {one.id: rows})

    assert (("tea", datetime(2024, 5, 1, 7, tzinfo=UTC)),) == told.past


def test_relations_of_1x_go_to_a_memory_that_names_both_ends_or_become_facts():
    edges = [
        {"source": "alice", "relationship": "lives_in", "target": "paris", "user_id": "alice"},
        {"source": "alice", "relationship": "likes", "target": "green_tea", "user_id": "alice"},
        {"source": "bob", "relationship": "knows", "target": "eve", "user_id": "bob",
         "valid": False, "invalidated_at": "2024-01-01T00:00:00Z"},
    ]  # fmt: skip
    told, _ = convert_points(iter([held(1, data="Alice lives in Paris.")]), {}, edges)

    [paris] = told[0].relations
    assert ("alice", "lives_in", "paris") == (paris.subject, paris.predicate, paris.object)
    assert ["alice likes green tea", "bob knows eve"] == [one.record.text for one in told[1:]]
    assert Scope(user_id="bob") == told[2].record.scope
    assert datetime(2024, 1, 1, tzinfo=UTC) == told[2].relations[0].valid_to


def test_times_of_relations_are_milliseconds_or_times_of_neo4j():
    edges = [
        {"source": "a", "relationship": "knows", "target": one, "user_id": "a", "created_at": at}
        for one, at in [
            ("b", 1714557600000),
            ("c", "2024-05-01T10:00:00Z"),
            ("d", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ]
    ]
    told, reasons = convert_points(iter([]), {}, edges)

    assert {} == reasons
    assert {datetime(2024, 5, 1, 10, tzinfo=UTC)} == {one.relations[0].valid_from for one in told}
    assert {datetime(2024, 5, 1, 10, tzinfo=UTC)} == {one.record.created_at for one in told}


def test_relations_of_1x_are_found_afterwards(tmp_path, monkeypatch):
    edges = [{"source": "alice", "relationship": "likes", "target": "tea", "user_id": "alice"}]
    monkeypatch.setattr("commonplace_mem0.migrate.read_points", lambda _: iter([held(1)]))
    monkeypatch.setattr("commonplace_mem0.migrate.read_relations", lambda _: edges)
    graph = {"provider": "embedded", "config": {}}
    with Memory(config(tmp_path, graph_store=graph, embedder=HashEmbedder())) as m:
        import_mem0(m.core, Source(folder="x"), dry_run=False)

        [triple] = m.get_all(user_id="alice")["relations"]
    assert ("alice", "likes", "tea") == (
        triple["source"], triple["relationship"], triple["target"],
    )  # fmt: skip
