"""Full disk at every kind of write: typed errors, nothing lost, and writes with space again."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import full_disk, small_blocks

pytestmark = pytest.mark.slow


@pytest.fixture(params=[8])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB in memory, or of as many as the test says."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux":
        pytest.skip("only Linux has file systems in memory of any size")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting a small file system needs rights: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def disk_of_small_blocks(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB with blocks of 1 KiB."""
    if sys.platform != "linux" or shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system with small blocks needs Linux and mkfs.ext4")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * 2**20)
    make = ["mkfs.ext4", "-q", "-b", "1024", "-m", "0", str(image)]
    subprocess.run(make, check=True, capture_output=True)
    mount = ["mount", "-o", "loop", str(image), str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting a small file system needs rights: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def run(folder: Path, how: str) -> dict[str, Any]:
    """Fill the disk of a process of its own, which must live."""
    # The long form is `benchmarks/proofs.py disk`.
    command = [sys.executable, full_disk.__file__, str(folder), how, "1", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


def test_a_full_disk_loses_nothing_and_is_said_to_be_full(small_disk: Path):
    counts = run(small_disk, "disk")

    assert counts["faults"] == 0, counts["examples"][:10]
    assert counts["refused"] >= 20


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not limit the size of files")
def test_a_file_that_cannot_grow_loses_nothing(tmp_path: Path):
    counts = run(tmp_path, "limit")

    assert counts["faults"] == 0, counts["examples"][:10]
    assert counts["refused"] >= 10


def test_a_full_disk_of_small_blocks_ends_no_process(disk_of_small_blocks: Path):
    command = [sys.executable, small_blocks.__file__, str(disk_of_small_blocks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    found = json.loads(done.stdout)
    place = str(disk_of_small_blocks / "memory")
    assert all(place in told and "the disk is full" in told for told in found.values() if told)
    assert "the disk is full: 64 KiB are free, and 1,024 KiB are needed" in found["64 open"]
    assert found["2000 turn"] == ""


def take_turns(folder: Path, seconds: float, max_waiting: int) -> list[dict[str, Any]]:
    """Let agents take turns in a process of its own while the disk is full."""
    module = "integrations_tests.crash.full_disk_turns"
    command = [sys.executable, "-m", module, str(folder), str(seconds), str(max_waiting)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=root
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("small_disk", [64], indirect=True)
def test_turns_wait_while_the_disk_is_full_and_are_written_in_order(small_disk: Path):
    for found in take_turns(small_disk, 3, 200):
        assert [] == found["raised"]
        assert (30, 30, 0) == (found["waiting"], found["still"], found["lost"])
        assert [[*range(40)]] * 3 == found["users"]
        assert {"written": 120, "waiting": 30} == found["told"]
        assert 0 == found["after"]


@pytest.mark.parametrize("small_disk", [64], indirect=True)
def test_turns_that_find_no_place_to_wait_are_told_to_be_lost(small_disk: Path):
    for found in take_turns(small_disk, 0.5, 20):
        assert [] == found["raised"]
        assert (20, 20, 10) == (found["waiting"], found["still"], found["lost"])
        assert {"written": 110, "waiting": 20, "lost": 10} == found["told"]
        assert 110 == sum(len(numbers) for numbers in found["users"])
        assert all(numbers == sorted({*numbers}) for numbers in found["users"])
