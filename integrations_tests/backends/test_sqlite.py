"""The embedded graph store: the contract, and what only a file has."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.backends.sqlite.journal import SqliteJournal
from commonplace.errors import (
    MemoryClosedError,
    SchemaMismatchError,
    StoreLockedError,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.filters import parse_filter
from commonplace.ports.stores import Operation
from commonplace.testing.contracts.graph import (
    ALICE,
    START,
    GraphStoreContract,
    likes,
    lives,
    put,
    remove,
    update,
)
from commonplace.testing.contracts.relations import DAY, RelationContract
from commonplace.testing.contracts.repeated_facts import TellingContract, end
from commonplace.testing.contracts.sessions import SessionsContract
from commonplace.testing.contracts.snapshot import SnapshotContract
from commonplace.testing.contracts.sources import SourcesContract
from commonplace.types import Scope

from .query_plans import each_kind_of_scope, note_statements, plans_of, scans_of


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteConnection]:
    opened = SqliteConnection(str(tmp_path / "store" / "memory.db"))
    yield opened
    opened.close()


class TestSqliteGraph(
    GraphStoreContract, RelationContract, TellingContract, SourcesContract, SessionsContract
):
    @pytest.fixture
    def graph(self, file: SqliteConnection) -> SqliteGraph:
        return SqliteGraph(file)


class TestSqliteSnapshot(SnapshotContract):
    @pytest.fixture
    def graph(self, file: SqliteConnection) -> SqliteGraph:
        return SqliteGraph(file)

    @pytest.fixture
    def other(self, tmp_path: Path) -> Iterator[SqliteGraph]:
        opened = SqliteConnection(str(tmp_path / "other" / "memory.db"))
        yield SqliteGraph(opened)
        opened.close()


_FORMER_TABLES = """
DROP TABLE version;
CREATE TABLE version (
  record TEXT NOT NULL, version INTEGER NOT NULL, event TEXT NOT NULL, text TEXT, previous TEXT,
  metadata TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (record, version)
) STRICT, WITHOUT ROWID;
DROP INDEX record_by_agent;
DROP INDEX record_by_session;
CREATE INDEX record_by_agent ON record (user_id, agent_id, live, created_at, id);
CREATE INDEX record_by_session ON record (user_id, session_id, live, created_at, id)
"""


def test_a_file_of_a_former_pre_release_has_other_tables_and_works_the_same(file: SqliteConnection):
    SqliteGraph(file)
    file.write(lambda c: [c.execute(sql) for sql in _FORMER_TABLES.split(";")] and None)
    graph, scope = SqliteGraph(file), Scope(user_id="alice", agent_id="a", session_id="s")
    graph.apply([put(f"n{n}", n, scope, in_session=n == 9) for n in range(1, 10)])
    graph.apply([update("n1", 10, scope, text="other"), remove("n2", 11, scope)])
    first, second = (put(name, 0, scope).record.id for name in ("n1", "n2"))
    assert [one.event for one in graph.history(scope, first)] == ["ADD", "UPDATE"]
    assert [one.event for one in graph.history(scope, second)] == ["ADD", "DELETE"]
    assert len(graph.page(scope).records) == 8
    assert graph.erase(scope, 12).removed["versions"] == 11
    assert graph.history(scope, first) == []


@each_kind_of_scope
def test_every_statement_goes_by_an_index(file: SqliteConnection, scope: Scope):
    graph, journal = SqliteGraph(file), SqliteJournal(file)
    asked = note_statements(file)
    graph.apply([put("a", 1, scope, relations=[likes("Ann", "tea")], in_session=True)])
    graph.apply([update("a", 2, scope), remove("a", 3, scope), put("b", 4, scope)])
    first = graph.page(scope, limit=1)
    graph.apply([put("c", 5, scope, relations=[lives("Ann", "Rome"), likes("Ann", "Annet")])])
    graph.apply([put("d", 6, scope, relations=[lives("Ann", "Oslo")])])
    graph.page(scope, limit=1, cursor=graph.page(scope, limit=1).cursor)
    graph.apply([put(key, 7, scope, namespace=("x",), metadata={"n": 1}) for key in "ef"])
    graph.apply([update("e", 8, scope, namespace=("y",))])
    in_x = parse_filter({"namespace": ["x"], "n": {"lt": 2}})
    graph.page(scope, where=in_x, limit=1, cursor=graph.page(scope, where=in_x, limit=1).cursor)
    graph.page(scope, where=parse_filter({"NOT": [{"n": {"gt": 2}}, {"role": "user"}]}))
    graph.namespaces(scope)
    graph.get(scope, [first.records[0].id])
    graph.history(scope, first.records[0].id)
    graph.relations(scope)
    graph.relations(scope, "Ann")
    graph.relations(scope, records=["r"])
    graph.entities(scope)
    _ = graph.sessions(scope), graph.turns(scope, limit=1, before=first.records[0].id)
    graph.page(scope, kinds=("fact",))
    graph.log_access(scope, [first.records[0].id], START)
    graph.access_log(scope, [first.records[0].id])
    graph.relations(scope, hops=2, as_of=START)
    graph.expand(scope, ["ann"], START)
    graph.expand(scope, ["annette"], START)
    graph.count(scope)
    list(graph.versions(scope))
    graph.erase(scope, 9)
    [op, dead] = journal.append(
        [Operation(id=name, kind="add", scope=scope, body="{}") for name in "ab"], max_pending=9
    )
    journal.plan({op.seq: b"p"})
    journal.pending()
    journal.pending(scope.partition)
    journal.failed(dead.seq)
    journal.dead_letter(dead.seq, "why")
    _ = journal.dead(), journal.dead(scope)
    journal.count(scope)
    journal.rows(scope)
    journal.retry(["b"])
    journal.stamp([op])
    file.write(lambda c: c.execute("UPDATE op SET holder = 'dead' WHERE id = 'a'").rowcount)
    [op] = journal.take_over()
    journal.remove([op.seq])
    journal.erase(scope, 99)

    plans = plans_of(file, asked)
    sorts = {
        sql
        for sql, plan in plans.items()
        if "live = 1" in sql
        # The last terms order the turns of one moment only.
        and any(re.search("TEMP B-TREE FOR (?!LAST|RIGHT)", step) for step in plan)
    }

    assert len(plans) > 40
    assert scans_of(plans, "FROM (tally|fence)|UPDATE fence") == {}
    assert sorts == set()


@each_kind_of_scope
def test_telling_again_and_ending_go_by_an_index(file: SqliteConnection, scope: Scope):
    graph, asked = SqliteGraph(file), note_statements(file)
    loose, single = (likes("Ann", "tea", single_valued=one) for one in (False, True))
    rome = lives("Ann", "Rome")
    graph.apply([put("a", 1, scope), put("a", 2, scope), put("a", 3, scope, relations=[rome])])
    graph.apply([end("a", 4, START + DAY, scope), put("b", 4, scope, relations=[loose])])
    graph.apply([end("b", 5, START + DAY, scope), put("c", 6, scope, relations=[single])])
    graph.apply([remove("c", 7, scope)])
    plans = plans_of(file, asked)

    assert len(plans) > 20
    assert any("s.valid_to > record.valid_to" in sql for sql in plans)
    assert scans_of(plans, "^$") == {}


def test_a_page_reads_by_the_index_of_its_scope(file: SqliteConnection):
    graph = SqliteGraph(file)
    for scope, name in (
        (ALICE, "user"),
        (Scope(user_id="u", agent_id="g"), "agent"),
        (Scope(user_id="u", session_id="s"), "session"),
    ):
        asked: list[str] = []
        with file.read() as reader:
            reader.set_trace_callback(asked.append)
        graph.page(scope)
        with file.read() as reader:
            [sql] = [one for one in asked if one.startswith("SELECT r.id")]
            plan, *_ = reader.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()

        assert f"SEARCH r USING INDEX record_by_{name} (user_id=" in plan[3]


def test_erased_and_deleted_text_is_in_no_file(file: SqliteConnection):
    graph = SqliteGraph(file)
    graph.apply(
        [
            put(f"k{n}", n, text=f"CANARY-{n}", relations=[likes("CANARY", "tea")])
            for n in range(1, 300)
        ]
    )
    graph.erase(ALICE, 999)
    files = list(Path(file.path).parent.iterdir())

    assert [one.name for one in files if b"CANARY" in one.read_bytes()] == []
    assert [one.name for one in files if b"alice" in one.read_bytes()] == []


def test_only_the_owner_may_read(file: SqliteConnection):
    SqliteGraph(file).apply([put("a", 1)])
    folder = Path(file.path).parent
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}


_OPEN = """
import sys
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.errors import StoreLockedError
for exclusive in (False, True):
    try:
        opened = SqliteConnection(sys.argv[1], exclusive=exclusive)
        opened.set_meta("written", str(exclusive))
        opened.close()
        print("opened")
    except StoreLockedError as error:
        print(error)
"""


def opened_elsewhere(path: str) -> list[str]:
    """Open a file in another process, first beside others, then alone; return what it says."""
    command = [sys.executable, "-c", _OPEN, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_others_may_open_the_file_but_not_alone(file: SqliteConnection):
    beside, alone = opened_elsewhere(file.path)
    second = SqliteConnection(file.path)
    second.close()
    with pytest.raises(StoreLockedError):
        SqliteConnection(file.path, exclusive=True)

    assert (beside, file.get_meta("written")) == ("opened", "False")
    assert file.path in alone
    assert "cannot be shared now" in alone


_HOLD = """
import sys
from commonplace.backends.sqlite.connection import SqliteConnection
SqliteConnection(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_a_file_that_others_have_open_names_their_processes(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    words = [sys.executable, "-c", _HOLD, path, "--key=secret"]
    with contextlib.ExitStack() as stack:
        holders = [
            stack.enter_context(
                subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(4)
        ]
        assert [holder.stdout.readline() for holder in holders] == [b"open\n"] * 4
        with pytest.raises(StoreLockedError) as refused:
            SqliteConnection(path, exclusive=True)
        for holder in holders:
            holder.communicate()

    told = str(refused.value)
    named = [f"process {holder.pid} ('{sys.executable} -c " in told for holder in holders]
    assert (named.count(True), " and 1 more, and cannot be shared now" in told) == (3, True)
    assert "secret" not in told


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_a_file_that_this_process_has_open_says_so(file: SqliteConnection):
    with pytest.raises(StoreLockedError, match="is in use by this process, and cannot be shared"):
        SqliteConnection(file.path, exclusive=True)


def test_a_lock_whose_holder_is_unknown_is_told_all_the_same(
    file: SqliteConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    locks = "commonplace.backends.sqlite.file_lock._LOCKS"
    of_another_container = tmp_path / "locks"
    number = Path(f"{file.path}.lock").stat().st_ino
    of_another_container.write_text(f"1: FLOCK  ADVISORY  READ 0 00:00:{number} 0 EOF\n")
    for known in (tmp_path / "none", of_another_container):
        monkeypatch.setattr(locks, known)
        with pytest.raises(StoreLockedError, match="is in use by another process, and"):
            SqliteConnection(file.path, exclusive=True)


def test_a_file_that_is_open_alone_is_opened_by_nobody_else(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    alone = SqliteConnection(path, exclusive=True)
    said = opened_elsewhere(path)
    alone.close()

    holder = f"process {os.getpid()} ('" if sys.platform == "linux" else "another process"
    assert [f"{path}' is in use by {holder}" in line for line in said] == [True] * 2
    assert opened_elsewhere(path) == ["opened", "opened"]


def test_every_process_sees_what_was_committed_before_it_asked(file: SqliteConnection):
    second = SqliteConnection(file.path)
    for n in range(20):
        writer, reader = (file, second) if n % 2 else (second, file)
        writer.set_meta("n", str(n))
        assert reader.get_meta("n") == str(n)
    second.close()


def test_a_missing_file_is_made_only_where_that_is_wanted(tmp_path: Path):
    folder = tmp_path / "none"
    with pytest.raises(StoreUnavailableError, match="there is no such file"):
        SqliteConnection(str(folder / "memory.db"), create=False)

    assert not folder.exists()
    SqliteConnection(str(folder / "memory.db")).close()
    SqliteConnection(str(folder / "memory.db"), create=False).close()


def test_an_emptied_file_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "memory.db"
    SqliteConnection(str(path)).close()
    path.write_bytes(b"")
    for create in (True, False):
        with pytest.raises(StoreUnavailableError, match="somebody has emptied it"):
            SqliteConnection(str(path), create=create)

    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("kind", "is_refused"), [("nfs4", True), ("fuse.sshfs", True), ("ext4", False)]
)
def test_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, is_refused: bool
):
    share = tmp_path / "my share"
    share.mkdir()
    escaped = str(share.resolve()).replace(" ", "\\040")  # as the kernel writes it
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"36 22 0:40 / {escaped} rw,relatime shared:9 master:2 - {kind} host:/export rw\n"
    )
    monkeypatch.setattr("commonplace.backends.sqlite.file_lock._MOUNTS", mounts)
    inside, beside = (str(folder / "m" / "memory.db") for folder in (share, tmp_path))
    SqliteConnection(beside).close()

    if is_refused:
        with pytest.raises(StoreUnavailableError, match=rf"network file system \({kind}\)"):
            SqliteConnection(inside)
        assert list(share.rglob("*.*")) == []
    else:
        SqliteConnection(inside).close()


def test_it_opens_again_with_everything_after_a_close(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    first = SqliteConnection(path)
    SqliteGraph(first).apply([put("a", 1)])
    first.set_meta("embedder", "one")
    first.close()
    second = SqliteConnection(path)

    assert [one.text for one in SqliteGraph(second).page(ALICE).records] == ["text of a"]
    assert second.get_meta("embedder") == "one"
    assert second.get_meta("unknown") is None
    second.close()


def test_another_schema_is_refused_and_left_alone(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    file = SqliteConnection(path)
    file.set_meta("schema", "99")
    file.close()

    for _ in range(2):
        with pytest.raises(SchemaMismatchError, match="99"):
            SqliteConnection(path)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path):
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()

    with pytest.raises(StoreUnavailableError):
        SqliteConnection(str(path))


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    path = tmp_path / "memory.db"
    path.write_bytes(b"nonsense" * 1000)

    with pytest.raises(StoreUnavailableError, match=re.escape(str(path))):
        SqliteConnection(str(path))
    assert path.read_bytes() == b"nonsense" * 1000


def test_one_failing_change_does_not_touch_its_neighbours(file: SqliteConnection):
    first, go = threading.Event(), threading.Event()

    def wait(_: sqlite3.Connection) -> None:
        first.set()
        go.wait(10)

    def insert(key: str, *, fail: bool) -> Callable[[sqlite3.Connection], str]:
        def run(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT INTO meta VALUES (?, 'x')", (key,))
            if fail:
                raise LookupError(key)
            return key

        return run

    statements: list[str] = []
    file.write(lambda c: c.set_trace_callback(statements.append))
    held = file.submit(wait)
    first.wait(10)
    futures = [file.submit(insert(f"k{n}", fail=n % 2 == 1)) for n in range(6)]
    go.set()
    held.result()
    failures = [type(one.exception()) for one in futures]

    assert failures == [type(None), LookupError] * 3
    assert [file.get_meta(f"k{n}") for n in range(6)] == ["x", None] * 3
    assert statements.count("COMMIT") == 3  # the one that set the trace, the one held, the six


def test_a_write_waits_for_another_thread_only_while_the_writer_is_busy(file: SqliteConnection):
    first, go = threading.Event(), threading.Event()
    alone = file.write(lambda _: threading.current_thread())
    held = file.submit(lambda _: (first.set(), go.wait(10)))
    first.wait(10)
    others: list[threading.Thread] = []
    waiting = threading.Thread(
        target=lambda: others.append(file.write(lambda _: threading.current_thread()))
    )
    waiting.start()
    go.set()
    held.result()
    waiting.join()

    assert alone is threading.current_thread()
    assert threading.current_thread() not in others
    assert len(others) == 1


def test_a_write_that_fails_at_once_undoes_itself_and_harms_nobody(file: SqliteConnection):
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('half', 'x')")
        raise LookupError

    with pytest.raises(LookupError):
        file.write(fail)
    file.set_meta("whole", "x")

    assert (file.get_meta("half"), file.get_meta("whole")) == (None, "x")


def test_a_cancelled_change_is_not_run_and_harms_nobody(file: SqliteConnection):
    first, go = threading.Event(), threading.Event()
    held = file.submit(lambda _: (first.set(), go.wait(10)))
    first.wait(10)
    dropped = file.submit(lambda c: c.execute("INSERT INTO meta VALUES ('dropped', 'x')"))
    kept = file.submit(lambda c: c.execute("INSERT INTO meta VALUES ('kept', 'x')").rowcount)
    dropped.cancel()
    go.set()
    held.result()

    assert kept.result() == 1
    assert file.get_meta("dropped") is None


def test_a_full_disk_accepts_nothing_and_recovers(file: SqliteConnection):
    graph = SqliteGraph(file)
    pages = file.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall())
    with pytest.raises(StoreUnavailableError, match="full"):
        graph.apply([put(f"k{n}", n + 1, text="x" * 9000) for n in range(20)])
    empty = graph.count(ALICE)
    file.write(lambda c: c.execute("PRAGMA max_page_count = 100000").fetchall())
    graph.apply([put("a", 1)])

    assert not any(empty.values())
    assert graph.count(ALICE)["records"] == 1


class FailingCommit:
    """A connection whose disk fails when a transaction is to be committed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        if sql == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._connection.execute(sql, *values)


def test_a_commit_that_fails_acknowledges_no_write(file: SqliteConnection, monkeypatch):
    """Neither a write alone nor those that share a transaction."""

    def insert(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO meta VALUES (hex(randomblob(8)), 'lost')").rowcount

    first, go = threading.Event(), threading.Event()
    held = file.submit(lambda _: (first.set(), go.wait(10)))
    first.wait(10)
    with monkeypatch.context() as patched:
        patched.setattr(file, "_writer", FailingCommit(file._writer))
        group = [held, *(file.submit(insert) for _ in range(3))]
        go.set()
        failures = [type(one.exception(10)) for one in group]
        failures.append(type(file.submit(insert).exception(10)))
    stored = file.write(lambda c: c.execute("SELECT value FROM meta").fetchall())

    assert failures == [StoreUnavailableError] * 5
    assert ("lost",) not in stored


def test_a_write_is_on_the_disk_when_it_returns_and_what_is_deleted_is_overwritten(
    file: SqliteConnection,
):
    full, on = 2, 1

    def read(name: str) -> int:
        return file.write(lambda c: c.execute(f"PRAGMA {name}").fetchone()[0])

    assert read("synchronous") == full
    assert read("secure_delete") == on
    assert read("journal_mode") == "wal"


def test_the_file_closes_with_its_last_user(file: SqliteConnection):
    graph, journal = SqliteGraph(file), SqliteJournal(file)
    graph.close()
    journal.append([Operation(id="a", kind="add", scope=ALICE, body="{}")], max_pending=9)
    journal.close()

    with pytest.raises(MemoryClosedError):
        file.write(lambda _: None)
    SqliteConnection(file.path).close()


def test_a_reader_cannot_write(file: SqliteConnection):
    with pytest.raises(StoreRefusedError), file.read() as connection:
        connection.execute("DELETE FROM meta")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_refused_and_does_not_keep_the_lock(file: SqliteConnection):
    started, stop = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            file.write(lambda _: None)
        except MemoryClosedError:
            os.write(started[1], b"refused")
        os.read(stop[0], 1)
        os._exit(0)
    said = os.read(started[0], 7)
    file.close()
    SqliteConnection(file.path, exclusive=True).close()
    os.write(stop[1], b"x")
    os.waitpid(child, 0)

    assert said == b"refused"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_what_a_forked_child_writes_outlives_its_parents_close(file: SqliteConnection):
    file.set_meta("parent", "x")
    written, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        own = SqliteConnection(file.path)
        own.set_meta("before", "x")
        os.write(written[1], b"x")
        os.read(go_on[0], 1)
        own.set_meta("after", "x")
        os.kill(os.getpid(), signal.SIGKILL)
    os.read(written[0], 1)
    file.set_meta("beside", "x")
    file.close()
    os.write(go_on[1], b"x")
    os.waitpid(child, 0)
    again = SqliteConnection(file.path)
    found = [again.get_meta(key) for key in ("parent", "before", "beside", "after")]
    again.close()

    assert found == ["x"] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_a_read_is_refused_and_its_parent_goes_on(
    file: SqliteConnection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("commonplace.backends.sqlite.connection._FORK_SECONDS", 0.05)
    said = os.pipe()
    with file.read() as reader:
        child = os.fork()
        if child == 0:
            try:
                SqliteConnection(file.path)
            except StoreUnavailableError as error:
                os.write(said[1], str(error).encode())
            os._exit(0)
        reader.execute("SELECT * FROM meta").fetchall()
    os.waitpid(child, 0)
    file.set_meta("parent", "x")

    assert b"forked while another thread was in the middle" in os.read(said[0], 1000)
    assert file.get_meta("parent") == "x"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_file_that_cannot_be_opened_after_a_fork_is_written_to_when_it_can(
    file: SqliteConnection,
):
    path = Path(file.path)
    path.parent.rename(away := path.parent.with_name("away"))
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreUnavailableError):
        file.set_meta("parent", "x")
    away.rename(path.parent)
    file.set_meta("parent", "y")

    assert file.get_meta("parent") == "y"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_reads_and_writes_of_other_threads_go_on_after_a_fork(file: SqliteConnection):
    stop = threading.Event()

    def work(name: str) -> None:
        for n in itertools.count():
            if stop.is_set():
                return
            file.set_meta(name, str(n))
            assert file.get_meta(name) == str(n)

    with ThreadPoolExecutor(3) as threads:
        working = [threads.submit(work, f"thread {n}") for n in range(3)]
        for _ in range(10):
            child = os.fork()
            if child == 0:
                own = SqliteConnection(file.path)
                own.set_meta("child", "x")
                own.close()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for one in working:
            one.result()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_neither_read_nor_written(tmp_path, is_replaced):
    path = tmp_path / "memory" / "memory.db"
    file = SqliteConnection(str(path))
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.rmtree(path.parent)
    if is_replaced:
        path.parent.mkdir()
        shutil.copy(copy, path)

    with pytest.raises(StoreUnavailableError, match="deleted or replaced"):
        file.set_meta("a", "b")
    with pytest.raises(StoreUnavailableError, match="deleted or replaced"):
        file.get_meta("a")

    file.close()


def test_a_file_without_the_moments_of_sessions_gets_them(file: SqliteConnection):
    graph = SqliteGraph(file)
    scopes = [Scope(user_id="alice", session_id=name) for name in "ab"]
    for version, scope in enumerate([*scopes, scopes[0]], 1):
        graph.apply([put(f"{version}", version, scope, in_session=True)])
    listed = graph.sessions(ALICE)

    def make_old(connection: sqlite3.Connection) -> None:
        for index in ("session_by_last", "session_by_agent"):
            connection.execute(f"DROP INDEX {index}")
        for column in ("first_at", "last_at"):
            connection.execute(f"ALTER TABLE session DROP COLUMN {column}")

    file.write(make_old)

    assert SqliteGraph(file).sessions(ALICE) == listed
    assert [one.scope for one in listed] == scopes
