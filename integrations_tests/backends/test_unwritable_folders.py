"""A folder that this process may no longer write to, or not even look into."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
# Makes root obey the modes of files, from the next program on.
_OBEY = """
import ctypes, os, sys
drop_capability, dac_override, dac_read_search = 24, 1, 2
for capability in (dac_override, dac_read_search):
    ctypes.CDLL(None).prctl(drop_capability, capability)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
_USE = """
import asyncio, sys
from pathlib import Path
from commonplace import CommonplaceError, Memory, Scope
from commonplace.testing.fakes import HashEmbedder
folder, mode, closing = Path(sys.argv[1]), int(sys.argv[2], 8), sys.argv[3]
scope = Scope(user_id="alice")
memory = Memory.open(folder, embedder=HashEmbedder())
tea = memory.add("Alice likes tea", scope).changes[0].id
folder.chmod(mode)
calls = [
    lambda: memory.add("Alice likes rye", scope),
    lambda: memory.add("Alice likes oats", scope, wait=False),
    lambda: memory.update(tea, "Alice likes green tea", scope),
    lambda: memory.search("tea", scope),
    lambda: memory.list(scope),
    lambda: memory.flush(),
    lambda: asyncio.run(memory.aclose()) if closing == "aclose" else memory.close(),
]
for call in calls:
    try:
        call()
        print("done")
    except CommonplaceError as error:
        print(type(error).__name__, error)
folder.chmod(0o700)
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a user whom the modes of files bind."""
    return subprocess.run(
        [sys.executable, "-c", _OBEY, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def use(folder: Path, mode: int, closing: str) -> list[str]:
    """Use a folder whose mode changes after the first write; return what each call said."""
    done = run("-c", _USE, str(folder), f"{mode:o}", closing)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def texts(folder: Path) -> set[str]:
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        memory.flush()
        return {record.text for record in memory.list(ALICE).records}


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="modes bind root on Linux alone")


@pytest.mark.parametrize("closing", ["close", "aclose"])
def test_a_folder_that_became_read_only_is_closed_and_has_everything(tmp_path: Path, closing: str):
    said = use(tmp_path / "memory", 0o500, closing)

    assert said == ["done"] * 7
    assert texts(tmp_path / "memory") == {
        "Alice likes green tea",
        "Alice likes rye",
        "Alice likes oats",
    }
    assert [file.name for file in (tmp_path / "memory").glob("*.*.*.lock")] == []


@pytest.mark.parametrize("closing", ["close", "aclose"])
def test_a_folder_that_may_not_be_entered_any_more_is_refused_with_the_way_out(
    tmp_path: Path, closing: str
):
    *calls, closed = use(tmp_path / "memory", 0, closing)

    for said in calls if closing == "close" else [*calls, closed]:
        assert said.startswith("StoreRefusedError The store ")
        assert "let this process read and write that folder, or give another, then open" in said
    assert texts(tmp_path / "memory") == {"Alice likes tea"}


def test_a_read_only_folder_is_not_opened_and_says_what_to_do(tmp_path: Path):
    with Memory.open(tmp_path / "memory", embedder=HashEmbedder()) as memory:
        memory.add("Alice likes tea", ALICE)
    os.chmod(tmp_path / "memory", 0o500)
    done = run("-m", "commonplace", "list", str(tmp_path / "memory"), "--user", "alice")
    os.chmod(tmp_path / "memory", 0o700)

    assert (done.returncode, done.stdout) == (1, "")
    assert "let this process read and write that folder" in done.stderr
    assert "Traceback" not in done.stderr
