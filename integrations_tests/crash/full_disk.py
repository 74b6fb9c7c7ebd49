"""Full disk at every kind of write, in a process of its own: what is raised, lost and kept.

As a program, `full_disk.py FOLDER HOW SEED TIMES` prints the counts as JSON. HOW is `disk` when the
folder is the whole of a small file system, or `limit` to limit the size of a file instead, which
needs no rights: it is a disk that fails, not one that is full.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from commonplace import Memory, Scope, Settings
from commonplace.errors import CommonplaceError, StoreUnavailableError
from commonplace.ports.checkpoints import Address, Blob, Checkpoint
from commonplace.runtime import Runtime
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import EraseReceipt

ALICE = Scope(user_id="alice")
GONE = Scope(user_id="gone")
THREAD = "thread"
PAGE = 4096
ROOM = 64  # most pages that are left free
SETTINGS = Settings(retry_after=0.05)


@dataclass(slots=True)
class Counts:
    """Counts of a proof; those from `untyped` on must be zero.

    Attributes:
        runs: times that the disk was filled. refused: writes that raised `StoreUnavailableError`.
        accepted: writes that were acknowledged, before, meanwhile and afterwards.
        untyped: another error. unclear: not said to be full.
        unreadable: reads that failed meanwhile. stuck: writes that failed afterwards.
    """

    runs: int = 0
    refused: int = 0
    accepted: int = 0
    untyped: int = 0
    unclear: int = 0
    unreadable: int = 0
    stuck: int = 0
    lost: int = 0
    doubled: int = 0
    diverged: int = 0
    left: int = 0
    examples: list[str] = field(default_factory=list)

    def fault(self, name: str, example: str) -> None:
        """Count a fault."""
        setattr(self, name, getattr(self, name) + 1)
        self.examples.append(f"{name}: {example}")

    @property
    def faults(self) -> int:
        """Counts of what must not happen."""
        names = ("untyped", "unclear", "unreadable", "stuck", "lost", "doubled", "diverged", "left")
        return sum(getattr(self, name) for name in names)


class Trial:
    """Writes of every kind while there is little room, and the check afterwards."""

    def __init__(self, folder: Path, how: str, seed: int) -> None:
        self.counts = Counts()
        self._folder = folder
        self._how = how
        self._random = random.Random(seed)
        self._number = 0
        self._expected: set[str] = set()  # texts that must be there
        self._possible: set[str] = set()  # texts of refused writes
        self._votes = [0, 0]
        self._state: set[str | None] = {None}
        self._memory = Memory.open(str(folder), embedder=HashEmbedder(), settings=SETTINGS)
        self._voted = self._memory.add("the record that is voted for", ALICE).changes[0].id
        self._expected.add("the record that is voted for")
        self._kept = {kind: self._added() for kind in ("update", "update_later", "delete")}

    def run(self, times: int) -> Counts:
        """Fill the disk so often for each kind of write."""
        kinds: dict[str, Callable[[], None]] = {
            "add": self._add,
            "later": lambda: self._add(wait=False),
            "deadline": lambda: self._add(wait=5.0),
            "batch": self._batch,
            "update": lambda: self._update("update", wait=True),
            "update_later": lambda: self._update("update_later", wait=False),
            "delete": self._delete,
            "feedback": self._feedback,
            "put": self._put,
            "forget": self._forget,
        }
        for number in range(times):
            for kind, write in kinds.items():
                self._fill_and_write(kind, write, number)
        self._check()
        self._memory.close()
        for pages in range(0, times * 4, 2):
            self._open_with(pages)
        with Memory.open(str(self._folder), embedder=HashEmbedder()) as self._memory:
            self._check()
        return self.counts

    def _fill_and_write(self, kind: str, write: Callable[[], None], number: int) -> None:
        self.counts.runs += 1
        if kind == "forget":
            self._memory.add(["to be forgotten", "with another"], GONE)
        pages = self._random.choice((0, 1, number, self._random.randrange(ROOM)))
        with self._little_room(pages * PAGE):
            for _ in range(200):
                try:
                    write()
                    self.counts.accepted += 1
                except StoreUnavailableError as error:
                    self.counts.refused += 1
                    if self._how == "disk" and "full" not in str(error):
                        self.counts.fault("unclear", f"{kind}: {error}")
                    break
                except Exception as error:  # noqa: BLE001 -- what the count is about
                    self.counts.fault("untyped", f"{kind}: {type(error).__name__}: {error}")
                    break
            self._read(kind)
        for attempt in range(3):
            try:
                write()
                self.counts.accepted += 1
                break
            except CommonplaceError as error:
                if attempt == 2:
                    self.counts.fault("stuck", f"{kind}: {type(error).__name__}: {error}")
                time.sleep(0.2)

    def _open_with(self, pages: int) -> None:
        """Open it, and make another beside it, with that much room."""
        self.counts.runs += 1
        new = self._folder / "new"
        with self._little_room(pages * PAGE):
            for folder in (self._folder, new):
                try:
                    Memory.open(str(folder), embedder=HashEmbedder()).close()
                except StoreUnavailableError as error:
                    self.counts.refused += 1
                    if self._how == "disk" and "full" not in str(error):
                        self.counts.fault("unclear", f"open: {error}")
                except Exception as error:  # noqa: BLE001 -- what the count is about
                    self.counts.fault("untyped", f"open: {type(error).__name__}: {error}")
            if parts := [*new.glob("*.new*")]:
                self.counts.fault("left", f"{parts}")
        shutil.rmtree(new, ignore_errors=True)

    @contextlib.contextmanager
    def _little_room(self, room: int) -> Iterator[None]:
        if self._how == "limit":
            largest = max(one.stat().st_size for one in self._folder.glob("memory.db*"))
            log = self._folder / "memory.db-wal"
            size = log.stat().st_size if log.exists() else 0
            limit = self._random.choice((size, largest, size + PAGE // 2)) + room
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            return
        filler = self._folder / "filler"
        size = max(0, shutil.disk_usage(self._folder).free - room)
        with filler.open("wb") as file, contextlib.suppress(OSError):
            file.write(b"x" * size)
        try:
            yield
        finally:
            filler.unlink()

    def _read(self, kind: str) -> None:
        """Read in every way; nothing of it needs room."""
        text = "the record that is voted for"
        memory = self._memory
        try:
            found = memory.get(self._voted, ALICE)
            searched = {one.record.text for one in memory.search(text, ALICE, top_k=5)}
            listed = {one.text for one in memory.list(ALICE, limit=1000).records}
            memory.admin.checkpoints.read(THREAD, "")
            memory.history(self._voted, ALICE)
            if found is None or text not in searched or text not in listed:
                self.counts.fault("unreadable", f"{kind}: {found}, {searched}")
        except Exception as error:  # noqa: BLE001 -- what the count is about
            self.counts.fault("unreadable", f"{kind}: {type(error).__name__}: {error}")

    def _text(self) -> str:
        self._number += 1
        return f"note {self._number} {self._random.getrandbits(64):x} " + "z" * 600

    def _added(self) -> tuple[str, str]:
        text = self._text()
        self._expected.add(text)
        return self._memory.add(text, ALICE).changes[0].id, text

    def _add(self, *, wait: bool | float = True) -> None:
        self._write([text := self._text()], lambda: self._memory.add(text, ALICE, wait=wait))

    def _batch(self) -> None:
        texts = [self._text() for _ in range(8)]
        self._write(texts, lambda: self._memory.add(texts, ALICE))

    def _write(self, texts: list[str], call: Callable[[], object]) -> None:
        self._possible |= {*texts}
        call()
        self._expected |= {*texts}

    def _update(self, kind: str, *, wait: bool) -> None:
        record, before = self._kept[kind]
        text = self._text()
        self._possible |= {before, text}
        # Which of those it is cannot be known until one is acknowledged.
        self._expected.discard(before)
        self._kept[kind] = record, text
        self._memory.update(record, text, ALICE, wait=wait)
        self._possible -= {before}
        self._expected.add(text)

    def _delete(self) -> None:
        record, text = self._kept["delete"]
        if self._memory.get(record, ALICE) is not None:
            self._expected.discard(text)
            self._possible.add(text)
            self._memory.delete(record, ALICE)
            self._possible.discard(text)
        self._possible.add(text := self._text())
        self._kept["delete"] = self._memory.add(text, ALICE).changes[0].id, text
        self._expected.add(text)

    def _feedback(self) -> None:
        self._votes[1] += 1
        self._memory.feedback(self._voted, ALICE, helped=True)
        self._votes[0] += 1

    def _put(self) -> None:
        text = self._text()
        self._state.add(text)
        checkpoint = Checkpoint(
            address=Address(thread=THREAD, namespace="", id=f"{self._number:08}"),
            body=Blob(type="text", data=b"body"),
            metadata=Blob(type="text", data=b"{}"),
            versions={"messages": text},
        )
        values = {("messages", text): Blob(type="text", data=text.encode())}
        self._memory.admin.checkpoints.put(checkpoint, values, ALICE)
        self._state = {text}

    def _forget(self) -> None:
        receipt: Any = self._memory.forget(GONE)
        if not isinstance(receipt, EraseReceipt) or not receipt.complete:
            self.counts.fault("lost", f"a receipt {receipt}")
        if self._memory.list(GONE).records:
            self.counts.fault("lost", "forgotten and still there")

    def _check(self) -> None:
        left = self._memory.flush(60)
        self.counts.left += left.pending + left.dead
        runtime: Runtime = self._memory._runtime
        engines = runtime.engines
        graph, index = (dict(one.versions(None)) for one in (engines.graph, engines.index))
        self.counts.diverged += len(graph.items() ^ index.items())
        texts: list[str] = []
        page = self._memory.list(ALICE, limit=1000)
        texts += [one.text for one in page.records]
        while page.cursor:
            page = self._memory.list(ALICE, limit=1000, cursor=page.cursor)
            texts += [one.text for one in page.records]
        for text in self._expected - {*texts}:
            self.counts.fault("lost", text[:60])
        for text in {*texts} - self._expected - self._possible:
            self.counts.fault("lost", f"{text[:60]} should be gone")
        self.counts.doubled += len(texts) - len({*texts})
        voted = self._memory.get(self._voted, ALICE)
        if voted is None or not self._votes[0] <= voted.votes <= self._votes[1]:
            self.counts.fault("doubled", f"{voted and voted.votes} votes of {self._votes}")
        state = self._memory.admin.checkpoints.read(THREAD, "")
        text = None if state is None else state.values["messages"].data.decode()
        if text not in self._state:
            self.counts.fault("lost", f"the state {text}")
        if self._memory.list(GONE).records:
            self.counts.fault("lost", "forgotten and there again")


if __name__ == "__main__":
    folder, how, seed, times = sys.argv[1:]
    done = Trial(Path(folder), how, int(seed)).run(int(times))
    os.write(1, json.dumps({**asdict(done), "faults": done.faults}).encode())
