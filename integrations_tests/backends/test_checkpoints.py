"""The embedded store of checkpoints: the contract, and what only a file has."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.backends.sqlite.checkpoints import SqliteCheckpoints
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.testing.contracts.checkpoints import (
    ALICE,
    CheckpointsContract,
    RetentionContract,
    blob,
    call_everything,
    step,
    task_write,
)
from commonplace.types import Scope

from .query_plans import each_kind_of_scope, note_statements, plans_of, scans_of


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteConnection]:
    opened = SqliteConnection(str(tmp_path / "memory.db"))
    yield opened
    opened.close()


class TestSqliteCheckpoints(CheckpointsContract, RetentionContract):
    @pytest.fixture
    def checkpoints(self, file: SqliteConnection) -> SqliteCheckpoints:
        return SqliteCheckpoints(file)


@each_kind_of_scope
def test_every_statement_goes_by_an_index_and_pages_are_not_sorted(
    file: SqliteConnection, scope: Scope
):
    store = SqliteCheckpoints(file)
    asked = note_statements(file)
    call_everything(store, scope)

    plans = plans_of(file, asked)
    whole = "FROM checkpoint INDEXED BY checkpoint_by_id WHERE 1 ORDER"  # all there is, in order
    scans = scans_of(plans, whole)
    sorts = [sql for sql, plan in plans.items() if any("ORDER BY" in one for one in plan)]

    assert len(plans) > 25
    assert scans == {}
    assert sorts == []


_WRITER = """
import sys, threading
from commonplace.backends.sqlite.checkpoints import SqliteCheckpoints
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.testing.contracts.checkpoints import blob, task_write, step
store = SqliteCheckpoints(SqliteConnection(sys.argv[1]))
say = threading.Lock()
def work(thread):
    for n in range(10**6):
        one = step(f"{n:06}", thread=thread, versions={"c": str(n)})
        store.write(one.address, [task_write("task", str(n))], None)
        store.put(one, {("c", str(n)): blob(str(n))}, None)
        with say:
            print(thread, f"{n:06}", flush=True)
for thread in "abcd":
    threading.Thread(target=work, args=(thread,)).start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("lines", [1, 40])
def test_what_was_answered_is_whole_after_a_kill(tmp_path: Path, lines: int):
    path = str(tmp_path / "memory.db")
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, path], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    printed = [child.stdout.readline() for _ in range(lines)]
    child.send_signal(signal.SIGKILL)
    printed += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    file = SqliteConnection(path)
    store = SqliteCheckpoints(file)
    answered = [line.split() for line in printed if line.endswith("\n")]

    assert len(answered) >= lines
    for thread, name in answered:
        state = store.read(thread, "", name)
        assert state is not None
        assert state.values == {"c": blob(str(int(name)))}
        assert [one.value for one in state.writes] == [blob(str(int(name)))]
    store.close()


def test_erased_states_are_in_no_file(file: SqliteConnection):
    store = SqliteCheckpoints(file)
    for number in range(50):
        one = step(str(number), versions={"c": str(number)})
        store.put(one, {("c", str(number)): blob(f"CANARY-{number}")}, ALICE)
        store.write(one.address, [task_write("task", f"CANARY-{number}")], ALICE)
    store.erase(ALICE)
    folder = Path(file.path).parent

    assert [one.name for one in folder.iterdir() if b"CANARY" in one.read_bytes()] == []
