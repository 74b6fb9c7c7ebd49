"""The embedded journal: the contract, and what only a file has."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.ports.stores import Operation
from commonplace.testing.contracts.journal import ALICE, MANY, JournalContract, SetClock, accept, op
from commonplace.types import Backlog

_WRITER = """
import sys, threading
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.testing.contracts.journal import MANY, op
journal = SqliteJournal(SqliteConnection(sys.argv[1]))
say = threading.Lock()
def work(thread):
    n = 0
    while True:
        [one] = journal.append([op(f"{thread}.{n}")], max_pending=MANY)
        with say:
            print(one.id, one.seq, one.version, flush=True)
        n += 1
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteConnection]:
    opened = SqliteConnection(str(tmp_path / "memory.db"))
    yield opened
    opened.close()


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def journal(self, file: SqliteConnection, clock: SetClock) -> SqliteJournal:
        return SqliteJournal(file, clock=clock)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("lines", [1, 40, 150])
def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path, lines: int):
    path = str(tmp_path / "memory.db")
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, path], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(lines)]
    os.kill(child.pid, signal.SIGKILL)
    said += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    file = SqliteConnection(path)
    rows = SqliteJournal(file).pending(limit=MANY)
    kept = {(one.id, str(one.seq), str(one.version)) for one in rows}
    acknowledged = {tuple(line.split()) for line in said if line.endswith("\n")}

    assert len(acknowledged) >= lines
    assert acknowledged - kept == set()
    assert SqliteJournal(file).count() == Backlog(pending=len(rows), dead=0)
    assert file.write(lambda c: c.execute("PRAGMA integrity_check").fetchone()) == ("ok",)
    file.close()


# -- several processes -----------------------------------------------------------------------------

_HOLDER = """
import sys, time
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.testing.contracts.journal import accept
journal = SqliteJournal(SqliteConnection(sys.argv[1]))
accept(journal, sys.argv[2])
print("accepted", flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def holder(path: str, names: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has accepted operations and lives until it is killed, here at the latest."""
    command = [sys.executable, "-c", _HOLDER, path, names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "accepted\n"
            yield child
        finally:
            child.kill()


def locks_beside(path: str) -> int:
    """Count the lock files of journals."""
    return len(list(Path(path).parent.glob("memory.db.*.lock")))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL and no SIGSTOP")
def test_operations_are_taken_over_when_their_process_is_dead_and_not_before(
    file: SqliteConnection,
):
    journal = SqliteJournal(file)
    accept(journal, "m")
    with holder(file.path, "ab") as child, holder(file.path, "x") as living:
        assert [(one.id, one.elsewhere) for one in journal.pending()] == [
            ("m", False), ("a", True), ("b", True), ("x", True),
        ]  # fmt: skip
        theirs = [one.seq for one in journal.pending() if one.elsewhere]
        assert (journal.take_over(), journal.remove(theirs)) == ([], 0)
        child.send_signal(signal.SIGSTOP)
        assert journal.take_over() == []
        child.kill()
        child.wait()
        taken = journal.take_over()
        again = journal.take_over()
        left = journal.pending()
        living.kill()
        living.wait()
        last = journal.take_over()

    assert [(one.id, one.elsewhere) for one in taken] == [("a", False), ("b", False)]
    assert again == []
    assert [(one.id, one.elsewhere) for one in left] == [
        ("m", False), ("a", False), ("b", False), ("x", True),
    ]  # fmt: skip
    assert [one.id for one in last] == ["x"]
    assert journal.remove([one.seq for one in journal.pending()]) == 4
    assert locks_beside(file.path) == 1
    journal.close()
    assert locks_beside(file.path) == 0


def test_of_several_that_take_over_one_gets_each_operation(file: SqliteConnection):
    with holder(file.path, "abc") as child:
        child.kill()
        child.wait()
    journals = [SqliteJournal(SqliteConnection(file.path)) for _ in range(6)]
    start = threading.Barrier(len(journals))

    def take(journal: SqliteJournal) -> list[Operation]:
        start.wait(10)
        return journal.take_over()

    with ThreadPoolExecutor(len(journals)) as pool:
        taken = [one for found in pool.map(take, journals) for one in found]
    taken += journals[0].take_over()  # one that found the lock held has left it
    for journal in journals:
        journal.close()

    assert sorted(one.id for one in taken) == ["a", "b", "c"]


def test_the_lock_of_a_process_that_left_nothing_is_removed(file: SqliteConnection):
    with holder(file.path, "a") as child:
        child.kill()
        child.wait()
    first = SqliteJournal(file)
    first.erase(ALICE, MANY)
    assert locks_beside(file.path) == 1

    assert first.take_over() == []
    assert locks_beside(file.path) == 0


def test_versions_go_on_growing_after_a_restart_with_the_clock_set_back(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    clock = SetClock()
    first = SqliteConnection(path)
    [before] = accept(SqliteJournal(first, clock=clock), "a")
    SqliteJournal(first).erase(ALICE, MANY)
    first.close()
    clock.at = clock.at.replace(year=2021)
    second = SqliteConnection(path)
    [after] = accept(SqliteJournal(second, clock=clock), "b")
    second.close()

    assert after.version == before.version + 1
    assert after.seq == before.seq + 1


def test_everything_is_there_after_a_restart(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    first = SqliteConnection(path)
    journal = SqliteJournal(first)
    a, b, c = accept(journal, "abc")
    journal.plan({a.seq: b"plan"})
    journal.remove([b.seq])
    journal.dead_letter(c.seq, "why")
    journal.close()
    second = SqliteConnection(path)
    journal = SqliteJournal(second)

    left = [(one.id, one.plan, one.elsewhere) for one in journal.pending()]
    assert left == [("a", b"plan", True)]
    assert [one.id for one in journal.take_over()] == ["a"]
    assert [one.elsewhere for one in journal.pending()] == [False]
    assert [one.reason for one in journal.dead()] == ["why"]
    assert journal.count() == Backlog(pending=1, dead=1)
    journal.close()


def test_erased_bodies_are_in_no_file(file: SqliteConnection):
    journal = SqliteJournal(file)
    journal.append([op(f"CANARY-{n}") for n in range(300)], max_pending=MANY)
    journal.erase(ALICE, MANY)
    folder = Path(file.path).parent

    assert [one.name for one in folder.iterdir() if b"CANARY" in one.read_bytes()] == []
