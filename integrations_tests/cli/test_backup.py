"""A backup is one file with all that was accepted before, whoever writes meanwhile."""

import itertools
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from commonplace import Scope
from commonplace.admin import backup
from commonplace.cli import arguments

from .populated import opened, reads

ALICE = Scope(user_id="alice")


def restored(file: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(file, folder / "memory.db")
    return folder


def test_a_backup_put_into_a_folder_is_the_memory(run, lived: Path, tmp_path: Path):
    done = run("backup", lived, "all.db")

    assert done.exit_code == 0, done.output
    assert f"{Path('all.db').stat().st_size} bytes are in all.db." in done.stdout
    assert Path("all.db").stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.db", "lived"]
    place = restored(Path("all.db"), tmp_path / "back")
    assert run("reindex", place).exit_code == 0
    assert run("doctor", place).exit_code == 0
    with opened(lived) as one, opened(place) as other:
        assert reads(other) == reads(one)


def test_the_help_tells_how_a_backup_is_opened(run):
    assert "memory.db" in run("backup", "--help").stdout


def test_backups_while_others_write_hold_all_that_was_accepted_before(lived: Path, tmp_path: Path):
    written: list[str] = []
    stop = threading.Event()
    with opened(lived) as memory:

        def write() -> None:
            for number in itertools.count():
                if stop.is_set():
                    return
                written.append(memory.add(f"thing {number}", ALICE).changes[0].id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(8):
                while len(written) < number * 10:
                    assert writer.is_alive()
                before = list(written)
                file = tmp_path / f"{number}.db"
                backup(arguments.find(str(lived)), file)
                with closing(sqlite3.connect(file)) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                    found = {one for (one,) in connection.execute("SELECT id FROM record")}
                assert found >= set(before)
        finally:
            stop.set()
            writer.join()
    assert len(written) > 70


def test_a_backup_is_made_from_another_process(lived: Path, tmp_path: Path):
    with opened(lived) as memory:
        memory.add("just now", ALICE)
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", "backup", str(lived), str(tmp_path / "a.db")],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        memory.add("and then", ALICE)

    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        sql = "SELECT text FROM record WHERE user_id = 'alice'"
        assert connection.execute(sql).fetchall() == [("just now",)]


def test_a_file_that_is_there_is_replaced_only_when_asked(run, lived: Path):
    Path("all.db").write_text("precious")
    done = run("backup", lived, "all.db")

    assert done.exit_code == 1
    assert "is there already. Give the name of a new file, or --replace" in done.stderr
    assert Path("all.db").read_text() == "precious"
    assert run("backup", lived, "all.db", "--replace").exit_code == 0
    own = run("backup", lived, lived / "memory.db", "--replace")
    assert (own.exit_code, "--replace" in own.stderr) == (1, False)


def test_a_damaged_memory_is_not_backed_up(run, lived: Path):
    content = bytearray((lived / "memory.db").read_bytes())
    content[4096 * 3 :] = bytes(len(content) - 4096 * 3)
    (lived / "memory.db").write_bytes(content)
    done = run("backup", lived, "all.db")

    assert done.exit_code == 1
    assert "is damaged" in done.stderr
    assert "`commonplace salvage`" in done.stderr
    assert not list(Path().glob("all.db*"))


@pytest.mark.parametrize(
    "place",
    [
        "graph=neo4j://localhost:1,vectors=qdrant://localhost:1,journal=j",
        "graph=lived,vectors=qdrant://localhost:1",
        "graph=lived,vectors=elsewhere,journal=lived",
    ],
)
def test_a_memory_that_is_not_one_file_is_refused_with_the_ways_to_move_it(
    run, lived: Path, place: str
):
    done = run("backup", place, "all.db")

    assert done.exit_code == 1
    assert "`commonplace copy`" in done.stderr
    assert "`commonplace export`" in done.stderr
    assert not Path("all.db").exists()


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "journal.db"])
def test_no_file_of_a_memory_is_replaced(run, lived: Path, tmp_path: Path, name: str):
    other = tmp_path / "other" / name
    other.parent.mkdir()
    other.write_bytes(b"of another memory")

    for words in (("backup", lived, other, "--replace"), ("export", lived, other)):
        done = run(*words)

        assert done.exit_code == 1
        assert "is a file of a memory, and is not replaced" in " ".join(done.stderr.split())
        assert other.read_bytes() == b"of another memory"
