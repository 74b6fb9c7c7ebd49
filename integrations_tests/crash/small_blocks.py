"""Full disk of small blocks, in a process of its own, which SQLite's shared memory could end.

As a program, `small_blocks.py FOLDER` prints as JSON what became of opening and writing with each
amount of free space. The folder is the whole of a small file system.
"""

import json
import os
import sys
from pathlib import Path

from commonplace import Memory, Message, Scope
from commonplace.errors import StoreUnavailableError
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice")
ROOMS = (0, 4, 8, 16, 32, 64, 96, 128, 512, 1_100, 1_300, 2_000)  # KiB


def fill(folder: Path, room: int) -> Path:
    """Leave so many bytes free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 1_024):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                os.fsync(file)
        file.truncate(max(0, file.tell() - room))
        os.fsync(file)
    return filler


def run(folder: Path) -> dict[str, str]:
    """Open, write a turn and write many, with each amount of free space."""
    place, found = str(folder / "memory"), dict[str, str]()
    with Memory.open(place, embedder=HashEmbedder()) as memory:
        memory.add("I like tea.", ALICE)
    for room in ROOMS:
        filler = fill(folder, room * 1024)
        try:
            with Memory.open(place, embedder=HashEmbedder()) as memory:
                found[f"{room} turn"] = _write(memory, 1)
                found[f"{room} many"] = _write(memory, 1_000)
                texts = [one.text for one in memory.list(ALICE, limit=1_000).records]
                assert "I like tea." in texts
        except StoreUnavailableError as error:
            found[f"{room} open"] = str(error)
        filler.unlink()
    return found


def _write(memory: Memory, number: int) -> str:
    said = [Message(text=f"{number} {n} {'z' * 3_000}") for n in range(number)]
    try:
        memory.add(said, ALICE)
    except StoreUnavailableError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    os.write(1, json.dumps(run(Path(sys.argv[1]))).encode())
