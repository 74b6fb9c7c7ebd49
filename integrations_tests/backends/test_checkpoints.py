"""The embedded store of checkpoints: the contract, and what only a file has."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.backends.sqlite.checkpoints import SqliteCheckpoints
from commonplace.backends.sqlite.connection import SqliteConnection, create_tables
from commonplace.backends.sqlite.salvage import salvage
from commonplace.ports.checkpoints import Selection, iterate_checkpoints
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

    @pytest.mark.parametrize("is_ascending", [False, True])
    def test_checkpoints_are_iterated_over_in_pages_of_any_size(
        self, checkpoints: SqliteCheckpoints, is_ascending: bool
    ):
        for name in "12345":
            checkpoints.put(step(name), {}, ALICE)
        whole = checkpoints.page(Selection(), limit=9, is_ascending=is_ascending)
        for size in (1, 2, 5, 9):
            for after, rest in ((None, whole), (whole[1].address, whole[2:])):
                rows = iterate_checkpoints(
                    checkpoints, Selection(), page_size=size, after=after, is_ascending=is_ascending
                )
                assert [*rows] == rest


@each_kind_of_scope
def test_every_statement_goes_by_an_index_and_pages_are_not_sorted(
    file: SqliteConnection, scope: Scope
):
    store = SqliteCheckpoints(file)
    asked = note_statements(file)
    call_everything(store, scope)

    plans = plans_of(file, asked)
    whole = "checkpoint_by_id LEFT JOIN thread t ON t.id = c.thread WHERE 1 ORDER"  # all, in order
    scans = scans_of(plans, whole)
    sorts = [sql for sql, plan in plans.items() if any("ORDER BY" in one for one in plan)]

    assert len(plans) > 25
    assert scans == {}
    assert sorts == []


_EARLIER = """
CREATE TABLE thread (
  id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, session_id TEXT
) STRICT;
CREATE INDEX thread_by_agent ON thread (user_id, agent_id);
CREATE TABLE checkpoint (
  thread TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT,
  within TEXT, deltas TEXT NOT NULL, versions TEXT NOT NULL, body_type TEXT NOT NULL,
  body BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (thread, namespace, id)
) STRICT, WITHOUT ROWID
"""


class TestFileOfAnEarlierRelease(TestSqliteCheckpoints):
    @pytest.fixture
    def checkpoints(self, file: SqliteConnection) -> SqliteCheckpoints:
        file.write(lambda connection: create_tables(connection, _EARLIER))
        return SqliteCheckpoints(file)

    def test_its_checkpoints_are_salvaged(
        self, file: SqliteConnection, checkpoints: SqliteCheckpoints, tmp_path: Path
    ) -> None:
        for number in range(200):
            one = step(f"{number:03}", versions={"c": "1"})
            checkpoints.put(one, {("c", "1"): blob("long " * 500)}, ALICE)
        salvage(Path(file.path), tmp_path / "new.db")
        copy = SqliteConnection(str(tmp_path / "new.db"))

        assert SqliteCheckpoints(copy).states(Selection(), limit=999) == checkpoints.states(
            Selection(), limit=999
        )
        copy.close()


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
