"""Commands that are killed: run again, they resume and end as if nothing had happened."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .populated import SMALL, opened, reads
from .test_reindex import generations

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("child.py")


def kill(stage: str, number: int, *words: object) -> None:
    """Run a command until it has come so far, and kill it."""
    done = subprocess.run(
        [sys.executable, str(CHILD), stage, str(number), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -9, done.stdout + done.stderr


@pytest.fixture
def lived(past, tmp_path: Path) -> Path:
    """A memory of several hundred records, whose partitions are larger than a batch."""
    return shutil.copytree(past(900, 3), tmp_path / "lived")


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("graph", 1),
        ("graph", 500),
        ("graph", 900),
        ("vectors", 64),
        ("vectors", 800),
        ("check source", 1),
    ],
)
def test_a_copy_killed_anywhere_goes_on(run, lived: Path, tmp_path: Path, stage: str, number: int):
    kill(stage, number, "copy", lived, tmp_path / "copy")
    done = run("copy", lived, tmp_path / "copy")

    assert done.exit_code == 0, done.output
    assert " reused, 0 embedded" in done.stdout
    for place in ("lived", "copy"):
        run("export", tmp_path / place, f"{place}.jsonl")
    assert Path("copy.jsonl").read_bytes() == Path("lived.jsonl").read_bytes()
    assert run("doctor", tmp_path / "copy").exit_code == 0
    with opened(lived) as one, opened(tmp_path / "copy") as other:
        assert reads(other, owners=3) == reads(one, owners=3)


def test_a_copy_killed_half_way_is_open_to_its_source_alone(run, past, lived: Path, tmp_path: Path):
    second = tmp_path / "second"
    shutil.copytree(past(60, 5), second)
    kill("graph", 500, "copy", lived, tmp_path / "copy")
    done = run("copy", second, tmp_path / "copy")

    assert done.exit_code == 1
    assert f"holds the copy of {lived}" in done.stderr


@pytest.mark.parametrize("number", [64, 700])
def test_a_reembedding_killed_anywhere_goes_on_and_reads_work_meanwhile(
    run, lived: Path, number: int
):
    with opened(lived) as memory:
        before = reads(memory, owners=3)
    kill("vectors", number, "reembed", lived, "--embedder", SMALL)
    with opened(lived) as memory:
        assert reads(memory, owners=3) == before
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.exit_code == 0, done.output
    anew = int(done.stdout.partition(" ")[0])
    assert 0 < anew <= 906 - number + 64
    assert run("doctor", lived, "--embedder", SMALL).exit_code == 0
    assert list(generations(lived)) == ["point_2"]


def test_a_reembedding_killed_after_the_switch_only_drops_the_former(
    run, lived: Path, monkeypatch: pytest.MonkeyPatch
):
    rebuilding = importlib.import_module("commonplace.admin.reindex")

    drop = rebuilding.drop_index
    monkeypatch.setattr(rebuilding, "drop_index", lambda *_: 1 / 0)
    run("reembed", lived, "--embedder", SMALL)
    monkeypatch.setattr(rebuilding, "drop_index", drop)
    done = run("reembed", lived, "--embedder", SMALL)

    assert done.stdout == "0 records embedded. The new index is in use.\n"
    assert list(generations(lived)) == ["point_2"]
    assert run("doctor", lived, "--embedder", SMALL).exit_code == 0


def test_an_import_killed_half_way_goes_on(run, lived: Path, tmp_path: Path):
    run("export", lived, "all.jsonl")
    kill("graph", 500, "import", "file", "all.jsonl", tmp_path / "back")
    done = run("import", "file", "all.jsonl", tmp_path / "back")
    run("export", tmp_path / "back", "back.jsonl")

    assert done.exit_code == 0, done.output
    assert Path("back.jsonl").read_bytes() == Path("all.jsonl").read_bytes()


def test_an_export_killed_half_way_leaves_no_file_of_its_name(run, lived: Path):
    run("export", lived, "all.jsonl")
    whole = Path("all.jsonl").read_bytes()
    kill("export", 500, "export", lived, "all.jsonl")
    kill("export", 500, "export", lived, "new.jsonl")

    assert Path("all.jsonl").read_bytes() == whole
    assert not Path("new.jsonl").exists()
