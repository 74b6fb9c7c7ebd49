"""Damage is told and survived: files that were cut, flipped bytes, pages that cannot be read."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from commonplace import Scope
from commonplace.admin import ExportFile, check_files, salvage
from commonplace.cli import arguments
from commonplace.errors import CannotMoveError, InvalidRecordError
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, TaskWrite
from commonplace.testing.fakes import HashEmbedder

from .populated import GONE, opened, reads, users
from .test_commands import ALICE, engines, hold

PAGE = 4096
BLOB = Blob(type="bytes", data=b"state")


def tree(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


# -- exports ---------------------------------------------------------------------------------------


@pytest.fixture
def exported(run, lived: Path, tmp_path: Path) -> Path:
    """A file with all of a memory."""
    assert run("export", lived, tmp_path / "all.jsonl").exit_code == 0
    return tmp_path / "all.jsonl"


def test_an_export_cut_anywhere_is_refused_and_nothing_is_stored(exported: Path):
    whole = exported.read_bytes()
    ends = [n + 1 for n, byte in enumerate(whole) if byte == ord("\n")]
    cuts = {*ends[:-1], *(end - 1 for end in ends), *(end + 7 for end in ends[:-1]), 0, 1, 10}
    for cut in sorted(cuts):
        exported.write_bytes(whole[:cut])
        with pytest.raises(InvalidRecordError, match=r"is cut short|must be an export"):
            ExportFile.check(exported)


def test_an_import_of_half_a_file_makes_no_memory(run, exported: Path, tmp_path: Path):
    lines = exported.read_bytes().splitlines(keepends=True)
    exported.write_bytes(b"".join(lines[: len(lines) // 2]))
    done = run("import", "file", exported, tmp_path / "back")

    assert done.exit_code == 2
    assert "its last line, with the number of rows, is missing" in done.stderr
    assert "Export it again" in done.stderr
    assert not (tmp_path / "back").exists()


def test_an_export_with_any_byte_flipped_is_refused(exported: Path):
    whole = bytearray(exported.read_bytes())
    dice = random.Random(7)
    for place in [*range(30), *(dice.randrange(len(whole)) for _ in range(200))]:
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << dice.randrange(8)
        exported.write_bytes(spoilt)
        with pytest.raises(InvalidRecordError):
            ExportFile.check(exported)


@pytest.mark.parametrize("change", ["without one", "one twice", "swapped"])
def test_an_export_with_other_lines_is_refused(exported: Path, change: str):
    lines = exported.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    if change == "without one":
        del lines[middle]
    elif change == "one twice":
        lines.insert(middle, lines[middle])
    else:
        lines[middle], lines[middle + 1] = lines[middle + 1], lines[middle]
    exported.write_bytes(b"".join(lines))
    with pytest.raises(InvalidRecordError, match=r"readable rows|checksum differs"):
        ExportFile.check(exported)


@pytest.mark.parametrize("saved", ["with a BOM", "with CRLF"])
def test_an_export_that_an_editor_saved_is_refused(exported: Path, saved: str):
    whole = exported.read_bytes()
    exported.write_bytes(
        b"\xef\xbb\xbf" + whole if saved == "with a BOM" else whole.replace(b"\n", b"\r\n")
    )
    with pytest.raises(InvalidRecordError, match="must be an export"):
        ExportFile.check(exported)


def test_what_cannot_be_read_twice_is_no_file_to_import(run, tmp_path: Path):
    for name in ("-", "/dev/stdin"):
        done = run("import", "file", name, tmp_path / "back")

        assert done.exit_code == 2
        assert "must be a file on a disk" in done.stderr
    assert not (tmp_path / "back").exists()


# -- places that are not there ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "memry"),
        ("export", "memry", "x.jsonl"),
        ("copy", "memry", "target"),
        ("backup", "memry", "x.db"),
        ("salvage", "memry", "target"),
        ("salvage", "memry/memory.db", "target"),
        ("retry", "memry"),
        ("reindex", "memry"),
        ("reembed", "memry", "--embedder", "sentence-encoder"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("empty", [False, True])
def test_a_place_without_a_memory_is_named_and_nothing_is_made(
    run, tmp_path: Path, words: tuple[str, ...], empty: bool
):
    if empty:
        (tmp_path / "memry").mkdir()
    before = tree(tmp_path)
    done = run(*words)

    assert done.exit_code == 1
    assert "memry" in done.stderr
    assert "has no memory" in done.stderr or "is not there" in done.stderr
    assert tree(tmp_path) == before


def test_an_emptied_file_is_told_and_stays(run, lived: Path):
    (lived / "memory.db").write_bytes(b"")
    for words in (("doctor", lived), ("salvage", lived, "target")):
        done = run(*words)

        assert done.exit_code == 1
        assert "is empty" in done.stderr
        assert "backup" in done.stderr
    assert not (lived / "memory.db").stat().st_size
    assert not Path("target").exists()


def test_a_part_that_no_place_has_is_refused_with_those_that_it_may_have(run, tmp_path: Path):
    for place in ("path=memory", "graph=a,vectors=b,jornal=c"):
        before = tree(tmp_path)
        done = run("doctor", place)

        assert done.exit_code == 2
        assert "none of graph, vectors, journal" in done.stderr
        assert tree(tmp_path) == before


def test_a_folder_whose_name_has_an_equals_sign_is_a_place(lived: Path, tmp_path: Path):
    lived.rename(tmp_path / "a=b")

    assert arguments.find(str(tmp_path / "a=b")).graph == str(tmp_path / "a=b")


# -- doctor ----------------------------------------------------------------------------------------


def test_doctor_names_the_sound_file_and_leaves_nothing_beside_it(run, lived: Path):
    before = tree(lived)

    assert check_files(arguments.find(str(lived))) == {lived / "memory.db": []}
    assert tree(lived) == before
    assert "memory.db: sound" in run("doctor", lived).stdout


def test_doctor_tells_of_damage_and_does_not_write_to_it(run, lived: Path):
    spoil(lived / "memory.db", [leaf_of(lived / "memory.db", "record")])
    before = (lived / "memory.db").read_bytes()
    done = run("doctor", lived)

    assert done.exit_code == 1
    assert "damaged: " in done.stdout
    assert "`commonplace salvage`" in done.stderr
    assert (lived / "memory.db").read_bytes() == before


def test_doctor_tells_of_a_file_that_is_no_database(run, lived: Path):
    (lived / "memory.db").write_bytes(b"something else" * 1000)
    done = run("doctor", lived)

    assert done.exit_code == 1
    assert "damaged: file is not a database" in done.stdout


# -- salvage ---------------------------------------------------------------------------------------


def root_of(file: Path, table: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return connection.execute(sql, (table,)).fetchone()[0]


def leaf_of(file: Path, table: str, number: int = 1) -> int:
    """Find the leaf with this number, by the pointers in the root of a table of two levels."""
    page = file.read_bytes()[(root_of(file, table) - 1) * PAGE :][:PAGE]
    assert page[0] in (2, 5), "a table of one page"
    cell = int.from_bytes(page[12 + 2 * number :][:2])
    return int.from_bytes(page[cell : cell + 4])


def spoil(file: Path, pages: list[int]) -> None:
    """Make pages of a file unreadable."""
    with file.open("r+b") as content:
        for page in pages:
            content.seek((page - 1) * PAGE)
            content.write(bytes(PAGE))


def rows_of(file: Path) -> dict[str, set[tuple]]:
    with closing(sqlite3.connect(file)) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        names = [name for (name,) in connection.execute(sql)]
        return {one: set(connection.execute(f"SELECT * FROM {one}")) for one in names}


@pytest.fixture
def large(past, tmp_path: Path) -> Path:
    """The folder of a memory whose tables have many pages, with the states of runs."""
    folder = shutil.copytree(past(900, 3), tmp_path / "large")
    with opened(folder) as memory:
        for number in range(300):
            at = Address(thread=f"thread {number % 7}", namespace="", id=f"{number:04}")
            step = Checkpoint(address=at, body=BLOB, metadata=BLOB, versions={"a": str(number)})
            memory.admin.checkpoints.put(step, {("a", str(number)): BLOB}, users(1)[0])
            write = TaskWrite(task="t", path="p", index=0, channel="a", value=BLOB)
            memory.admin.checkpoints.write(at, [write], users(1)[0])
    return folder


def test_of_a_sound_memory_all_is_salvaged(run, lived: Path, tmp_path: Path):
    before = rows_of(lived / "memory.db")
    done = run("salvage", lived, tmp_path / "new")

    assert done.exit_code == 0, done.output
    assert "memories, deleted ones included: 90, all" in done.stdout
    assert rows_of(tmp_path / "new" / "memory.db") == before
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["memory.db"]
    assert (tmp_path / "new" / "memory.db").stat().st_mode & 0o777 == 0o600
    assert run("doctor", tmp_path / "new").exit_code == 0
    with opened(lived) as one, opened(tmp_path / "new") as other:
        assert reads(other) == reads(one)


@pytest.mark.parametrize("leaves", [[1], [1, 2], [1, 3], [0, 2, 5]], ids=str)
def test_a_bad_page_loses_its_own_rows_alone(run, large: Path, tmp_path: Path, leaves: list[int]):
    file = large / "memory.db"
    before = rows_of(file)
    spoil(file, [leaf_of(file, "record", one) for one in leaves])
    spoilt = file.read_bytes()
    done = run("salvage", file, tmp_path / "new")

    assert done.exit_code == 1
    assert "lost" in done.stdout
    assert file.read_bytes() == spoilt
    after = rows_of(tmp_path / "new" / "memory.db")
    lost = before["record"] - after["record"]
    assert len(leaves) <= len(lost) <= 40 * len(leaves)
    assert all(after[table] <= before[table] for table in after)
    ids = {row[1] for row in after["record"]}
    assert after["version"] == {row for row in before["version"] if row[0] in ids}
    assert after["checkpoint"] == before["checkpoint"]
    assert after["point"] == {row for row in before["point"] if row[0] in ids}
    assert run("doctor", tmp_path / "new").exit_code == 0


@pytest.mark.parametrize("table", ["version", "task_write", "channel_value", "checkpoint", "point"])
def test_tables_without_a_bad_page_are_complete(large: Path, tmp_path: Path, table: str):
    file = large / "memory.db"
    before = rows_of(file)
    spoil(file, [leaf_of(file, table)])
    report = salvage(file, tmp_path / "new")

    after = rows_of(tmp_path / "new" / "memory.db")
    assert set(report.lost) == {table}
    assert 0 < len(before[table] - after[table]) < len(before[table]) / 2
    assert {one: after[one] for one in after if one != table} == {
        one: before[one] for one in after if one != table
    }


def test_a_loss_that_cannot_be_counted_is_not_told_as_the_part_of_it_that_can(
    run, large: Path, tmp_path: Path
):
    file = large / "memory.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT OR IGNORE INTO recall SELECT id, created_at FROM record")
    before = rows_of(file)
    leaves = (("record", 1), ("version", 3), ("recall", 3))
    spoil(file, [leaf_of(file, table, number) for table, number in leaves])
    done = run("salvage", file, tmp_path / "new")

    after = rows_of(tmp_path / "new" / "memory.db")
    for name, table in (
        ("memories, deleted ones included", "record"),
        ("versions of memories", "version"),
        ("vectors", "point"),
    ):
        lost = len(before[table] - after[table])
        assert f"{name}: {len(after[table])}, {lost} lost" in done.stdout
    assert f"recalls of memories: {len(after['recall'])}, an unknown number lost" in done.stdout


def test_points_that_are_lost_are_told_by_doctor_and_mended_by_reindex(
    run, large: Path, tmp_path: Path
):
    with opened(large) as memory:
        before = reads(memory, owners=3)
    spoil(large / "memory.db", [leaf_of(large / "memory.db", "point", 2)])
    done = run("salvage", large, "new")
    ill = run("doctor", "new")

    assert (done.exit_code, ill.exit_code) == (1, 1)
    assert "`commonplace doctor new`" in done.stdout
    assert "missing in the index: " in ill.stdout
    assert "`commonplace reindex`" in ill.stderr
    assert run("reindex", "new").exit_code == 0
    assert run("doctor", "new").exit_code == 0
    with opened(Path("new")) as memory:
        assert reads(memory, owners=3) == before


def test_a_memory_without_its_points_says_how_to_mend_it(
    run, lived: Path, caplog: pytest.LogCaptureFixture
):
    with opened(lived) as memory:
        before = reads(memory)
    with closing(sqlite3.connect(lived / "memory.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = '{' WHERE key = 'index'")
    done = run("salvage", lived, "new")
    assert done.exit_code == 1
    assert "vectors: 0, 85 lost\n" in done.stdout
    with opened(Path("new")) as memory:
        assert memory.search("where does Ann live", users(1)[0]) == []

    assert "has records and an empty index: run `commonplace reindex`" in caplog.text
    assert run("reindex", "new").exit_code == 0
    with opened(Path("new")) as memory:
        assert reads(memory) == before


def test_what_is_written_after_a_salvage_without_counters_is_found(lived: Path, tmp_path: Path):
    with closing(sqlite3.connect(lived / "memory.db")) as connection, connection:
        connection.execute("DELETE FROM point_change")
    salvage(lived, tmp_path / "new")
    user = users(1)[0]
    with opened(tmp_path / "new") as memory:
        assert memory.search("where does Ann live", user)
        memory.add("Ann moved to Riga", user)

        assert memory.search("Riga", user)[0].record.text == "Ann moved to Riga"
        stores = engines(memory)
        assert dict(stores.index.versions(user)) == dict(stores.graph.versions(user))


@pytest.mark.parametrize(
    "change",
    [
        "vector = substr(vector, 5)",
        "vector = zeroblob(length(vector))",
        "vector = CAST(x'0000a07f' || substr(vector, 5) AS BLOB)",  # a signalling NaN
        "terms = x'00'",
        "words = 1 << 40",
        "partition = (SELECT partition FROM point WHERE user_id = 'user 1')",
    ],
)
def test_a_point_that_no_search_could_read_is_lost_alone(run, lived: Path, change: str):
    with closing(sqlite3.connect(lived / "memory.db")) as connection, connection:
        sql = f"UPDATE point SET {change} WHERE rowid ="
        connection.execute(f"{sql} (SELECT min(rowid) FROM point WHERE user_id = 'user 0')")
    done = run("salvage", lived, "new")

    assert "vectors: 84, 1 lost" in done.stdout
    with opened(Path("new")) as memory:
        for user in users(2):
            assert {one.record.scope.user_id for one in memory.search("thing", user)} == {
                user.user_id
            }


def test_what_waits_and_what_was_forgotten_is_salvaged(lived: Path, tmp_path: Path):
    hold(lived)
    before = rows_of(lived / "memory.db")
    salvage(lived, tmp_path / "new")
    after = rows_of(tmp_path / "new" / "memory.db")

    assert len(before["op"]) == len(before["erasure"]) == 1
    assert (after["op"], after["erasure"]) == (before["op"], before["erasure"])
    with opened(tmp_path / "new") as memory:
        memory.flush()
        assert [one.text for one in memory.list(ALICE).records] == ["waits"]
        assert memory.list(GONE).records == ()


def test_what_is_only_in_the_log_is_salvaged(lived: Path, tmp_path: Path):
    with opened(lived) as memory:
        memory.add("in the log", Scope(user_id="late"))
        crashed = shutil.copytree(lived, tmp_path / "crashed")
    assert (crashed / "memory.db-wal").stat().st_size
    salvage(crashed, tmp_path / "new")

    assert any("in the log" in row for row in rows_of(tmp_path / "new" / "memory.db")["record"])


@pytest.mark.parametrize("kind", ["zeros", "noise", "block", "bit"])
def test_damage_at_random_places_never_fails_and_makes_nothing_up(
    large: Path, tmp_path: Path, kind: str
):
    file = large / "memory.db"
    whole, before = file.read_bytes(), rows_of(file)
    ids = {row[1] for row in before["record"]}
    dice = random.Random(kind)
    for attempt in range(15):
        spoilt = bytearray(whole)
        places = dice.choice((1, 2, 5, 12))
        for _ in range(places):
            page = dice.randrange(1, len(whole) // PAGE) * PAGE
            place = dice.randrange(PAGE, len(whole) - PAGE)
            if kind == "bit":
                spoilt[place] ^= 1 << dice.randrange(8)
            elif kind == "block":
                spoilt[place : place + 512] = dice.randbytes(512)
            else:
                spoilt[page : page + PAGE] = (
                    bytes(PAGE) if kind == "zeros" else dice.randbytes(PAGE)
                )
        file.write_bytes(spoilt)
        target = tmp_path / f"new {attempt}"
        try:
            report = salvage(file, target)
        except CannotMoveError:  # the page that names the tables
            assert not target.exists()
            continue
        after = rows_of(target / "memory.db")
        read = {name: len(after.get(name, ())) for name in report.read}
        # How often a partition changed is counted anew where it cannot be read and has points.
        changes = read.pop("point_change")
        assert report.read["point_change"] <= changes <= len(before["point_change"])
        assert read.pop("fence") == 1  # that of a new file, where it cannot be read
        assert read == {name: number for name, number in report.read.items() if name in read}
        if kind != "bit":  # a changed character is still a character
            # Each end of a block may lie within a number, and a changed one is still a number.
            most = 2 * places if kind == "block" else 0
            made_up = {one: found - before[one] for one, found in after.items() if one in read}
            assert sum(map(len, made_up.values())) <= most, report
            assert bool(report.lost) == any(after.get(one) != before[one] for one in report.read)
        with opened(target) as memory:
            for user in users(3):
                for record in memory.list(user, limit=1000).records:
                    assert record.id in ids or kind == "bit"
                    memory.history(record.id, user)
                memory.relations(user, include_superseded=True)
                found = memory.search("where does Ann live", user)
                assert {one.record.scope.user_id for one in found} <= {user.user_id}


@pytest.mark.parametrize("header", [b"", bytes(100)], ids=["as it was", "zeroed"])
def test_a_file_without_its_end_or_its_header_is_salvaged(
    large: Path, tmp_path: Path, header: bytes
):
    source = tmp_path / "damaged"
    shutil.copytree(large, source)
    file = source / "memory.db"
    whole = file.read_bytes()
    spoilt = header + whole[len(header) :]
    file.write_bytes(spoilt if header else spoilt[: -10 * PAGE + 17])

    before = file.read_bytes()
    report = salvage(source, tmp_path / "new")
    assert report.read["record"] > 0
    assert report.is_complete == bool(header)
    assert file.read_bytes() == before


def test_without_its_tables_a_file_is_refused_and_no_memory_is_made(run, lived: Path):
    (lived / "memory.db").write_bytes(b"something else" * 1000)
    done = run("salvage", lived, "new")

    assert done.exit_code == 1
    assert "cannot be read at all" in done.stderr
    assert not Path("new").exists()


def test_a_memory_is_not_salvaged_into_another(run, lived: Path, past):
    target = shutil.copytree(past(60, 5), Path("other"))
    before = (target / "memory.db").read_bytes()
    done = run("salvage", lived, target)

    assert done.exit_code == 1
    assert "has a memory already" in done.stderr
    assert (target / "memory.db").read_bytes() == before


def test_the_embedder_is_not_asked_by_a_salvage(lived: Path, tmp_path: Path):
    embedder = HashEmbedder()
    salvage(lived, tmp_path / "new")

    assert not embedder.calls
