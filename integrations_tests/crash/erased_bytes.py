"""Bytes of a forgotten user in the files of a memory that several processes have open.

As a program, `erased_bytes.py FOLDER` is another process that has the folder open. It obeys words
on its input, one a line: `read` begins to read and does not end it, `end` ends that, `search`
searches. With `die` behind the folder it forgets and is killed at once.
"""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from commonplace import Fact, Memory, Message, Relation, Scope, Settings
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, TaskWrite
from commonplace.ports.stores import Operation
from commonplace.runtime import Runtime
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

CANARY = "xqcanaryqx"
GONE = Scope(user_id=f"user {CANARY}", agent_id=f"agent {CANARY}", session_id=f"run {CANARY}")
USER = Scope(user_id=GONE.user_id)
OTHER = Scope(user_id="other", agent_id="agent", session_id="run")
SETTINGS = Settings(max_attempts=1, retry_after=0.05)


def fill(folder: Path, records: int) -> Memory:
    """Open a memory and put the canary wherever it can be, between the rows of somebody else.

    The records are as many that pages are split, and rows move from one page to another.
    """
    chat = ScriptedChat(["no JSON"] * 6)
    memory = Memory.open(str(folder), embedder=HashEmbedder(), chat=chat, settings=SETTINGS)
    for number in range(records):
        for scope, word in ((GONE, CANARY), (OTHER, "nothing")):
            said = Relation(
                subject=f"{word} {number}", predicate=f"likes {word}", object=f"{word} {number % 9}"
            )
            fact = Fact(
                text=f"{word} text {number} " + f"{word} " * (number * 7 % 90),
                key=f"key {word} {number}",
                metadata={word: word, "folders": [f"in {word}"]},
                relations=(said,),
            )
            memory.add(fact, scope, wait=number % 2 == 0)
        if number % 10 == 9:
            _change(memory, number)
    for scope, word in ((GONE, CANARY), (OTHER, "nothing")):
        _checkpoints(memory, scope, word)
        memory.add(Message(role="user", text=f"{word} said", name=word), scope, infer=False)
        memory.add(Message(role="user", text=f"{word} told " * 99, name=word), scope)  # unreadable
    memory.search(CANARY, GONE, decay=True)
    memory.flush(60)
    _pending_and_dead(memory)
    return memory


def _change(memory: Memory, number: int) -> None:
    memory.flush(60)
    first, second, *_ = memory.list(GONE, limit=3).records
    memory.update(first.id, f"changed to {CANARY} {number}", GONE)
    memory.feedback(first.id, GONE, helped=True)
    memory.delete(second.id, GONE)


def _checkpoints(memory: Memory, scope: Scope, word: str) -> None:
    for number in range(20):
        blob = Blob(type="text", data=f"{word} {number} ".encode() * (number * 40))
        address = Address(thread=f"thread {word}", namespace=word, id=f"{word} {number:03}")
        checkpoint = Checkpoint(
            address=address, body=blob, metadata=blob, versions={word: str(number)}, run=word
        )
        memory.admin.checkpoints.put(checkpoint, {(word, str(number)): blob}, scope)
        write = TaskWrite(task=word, path=word, index=number, channel=word, value=blob)
        memory.admin.checkpoints.write(address, [write], scope)


def _pending_and_dead(memory: Memory) -> None:
    """Leave an operation that waits, and one that is dead."""
    runtime: Runtime = memory._runtime
    journal = runtime.engines.journal
    # As a memory with an asynchronous model leaves it that nobody awaits.
    ops = [
        Operation(id=f"{name} {CANARY}", kind="add", scope=GONE, body=f'["{CANARY}"]')
        for name in ("waits", "dead")
    ]
    waits, dead = journal.append(ops, max_pending=100)
    journal.plan({waits.seq: CANARY.encode(), dead.seq: CANARY.encode()})
    journal.dead_letter(dead.seq, f"because of {CANARY}")


def found_in(folder: Path, needle: str = CANARY) -> list[str]:
    """List the files with the canary, in any spelling that SQLite may give it."""
    spellings = (needle.encode(), needle.encode("utf-16-le"))
    return sorted(
        f"{one.name}: {data.count(needle.encode())}"
        for one in folder.rglob("*")
        if one.is_file() and any(spelling in (data := one.read_bytes()) for spelling in spellings)
    )


def found_in_backup(folder: Path) -> list[str]:
    """List where the canary is in a copy that SQLite makes while the memory is open."""
    copy = folder.parent / f"{folder.name} copied"
    copy.mkdir(exist_ok=True)
    file = copy / "copy.db"
    file.unlink(missing_ok=True)
    with (
        contextlib.closing(sqlite3.connect(folder / "memory.db")) as source,
        contextlib.closing(sqlite3.connect(file)) as target,
    ):
        source.backup(target)
    return found_in(copy)


def wait_until_gone(folder: Path, seconds: float) -> list[str]:
    """Wait until no file has the canary; list those that still have it when the time is over."""
    until = time.monotonic() + seconds
    while (found := found_in(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def forget_and_die(folder: Path) -> int:
    """Forget in a process that is killed after the commit; return how it ended."""
    return subprocess.run([sys.executable, __file__, str(folder), "die"], check=False).returncode


class Other:
    """Another process that has the folder open, in a `with` block."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def tell(self, word: str) -> None:
        """Tell it what to do and wait until it is done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        assert self._process.stdout.readline().strip() == word

    def __enter__(self) -> "Other":
        self.tell("search")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._process.communicate()


def die(folder: str) -> None:
    """Forget, and be killed when that is committed and the log has it still."""
    memory = fill(Path(folder), 30)
    SqliteConnection.truncate_log = (  # type: ignore[method-assign]
        lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,return-value]
    )
    memory.forget(USER)


def main(folder: str, what: str = "") -> None:
    """Obey."""
    if what == "die":
        die(folder)
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        runtime: Runtime = memory._runtime
        reading: Iterator[object] | None = None
        with contextlib.ExitStack() as stack:
            for line in sys.stdin:
                word = line.strip()
                if word == "search":
                    memory.search(CANARY, GONE)
                    memory.list(GONE)
                elif word == "read":
                    connection = stack.enter_context(runtime.engines.connection.read())
                    reading = connection.execute("SELECT id FROM record")
                    next(reading)
                else:
                    reading = None
                    stack.close()
                os.write(1, f"{word}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
