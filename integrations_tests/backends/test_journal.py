"""The embedded journal: the contract, and what only a file has."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.ports.stores import Backlog
from commonplace.testing.contracts.journal import ALICE, MANY, JournalContract, SetClock, accept, op

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
    journal.done([b.seq])
    journal.dead_letter(c.seq, "why")
    journal.close()
    second = SqliteConnection(path)
    journal = SqliteJournal(second)

    assert [(one.id, one.plan) for one in journal.pending()] == [("a", b"plan")]
    assert [one.id for one in journal.unflushed()] == ["b"]
    assert [one.reason for one in journal.dead()] == ["why"]
    assert journal.count() == Backlog(pending=1, dead=1)
    journal.close()


def test_erased_bodies_are_in_no_file(file: SqliteConnection):
    journal = SqliteJournal(file)
    journal.append([op(f"CANARY-{n}") for n in range(300)], max_pending=MANY)
    journal.erase(ALICE, MANY)
    folder = Path(file.path).parent

    assert [one.name for one in folder.iterdir() if b"CANARY" in one.read_bytes()] == []
