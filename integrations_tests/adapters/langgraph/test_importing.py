"""What LangGraph's own saver and store wrote, brought over: it reads the same afterwards."""

import contextlib
import getpass
import operator
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Interrupt, interrupt

from commonplace import InvalidRecordError, Memory, Scope, StoreUnavailableError
from commonplace.admin import examine
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore
from commonplace_langgraph.migrate import CHECKPOINTS, ITEMS, PLAIN, WRITES, import_langgraph

from ..import_command import import_command, opened

savers = pytest.importorskip("langgraph.checkpoint.sqlite")
THREADS = int(os.environ.get("IMPORT_THREADS", "120"))
ROWS = int(os.environ.get("IMPORT_ITEMS", "2000"))
ANY_TYPE = JsonPlusSerializer(allowed_msgpack_modules=True)


@dataclass
class Trip:
    """A type of the program, which an importer does not have."""

    city: str
    nights: int


class Plan(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]
    trip: Trip | None
    raw: bytes


def graph_of(saver: Any) -> Any:
    """A graph with a subgraph, parallel tasks, an interrupt and values of many types."""
    inner = StateGraph(Plan)
    inner.add_node("look", lambda state: {"seen": ["inner"], "raw": b"\x00\xff"})
    inner.add_node("ask", lambda state: {"seen": [interrupt("how many nights?")]})
    inner.add_edge(START, "look")
    inner.add_edge("look", "ask")
    outer = StateGraph(Plan)
    outer.add_node("left", lambda state: {"seen": ["left"]})
    outer.add_node("plan", inner.compile())
    outer.add_node("book", lambda state: {"trip": Trip("Lyon", 3), "messages": [("ai", "booked")]})
    outer.add_edge(START, "left")
    outer.add_edge(START, "plan")
    outer.add_edge(["left", "plan"], "book")
    outer.add_edge("book", END)
    return outer.compile(checkpointer=saver)


def thread(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"thread {number}", "user_id": f"user{number % 7}"}}


def run_threads(saver: Any, threads: int) -> None:
    """Leave a third of the threads asking, a third done, and a third done and forked."""
    graph = graph_of(saver)
    for number in range(threads):
        config = thread(number)
        graph.invoke({"messages": [HumanMessage(f"trip {number}")], "seen": []}, config)
        if number % 3:
            graph.invoke(Command(resume=str(number)), config)
        if number % 3 == 2:
            before = list(graph.get_state_history(config))[-2].config
            graph.update_state(before, {"seen": ["forked"]})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that LangGraph's saver and store wrote."""
    found = tmp_path_factory.mktemp("langgraph") / "checkpoints.sqlite"
    with savers.SqliteSaver.from_conn_string(str(found)) as saver:
        saver.serde = ANY_TYPE
        run_threads(saver, THREADS)
    return found


@contextlib.contextmanager
def stock_saver(file: Path) -> Iterator[Any]:
    with savers.SqliteSaver.from_conn_string(str(file)) as saver:
        saver.serde = ANY_TYPE
        yield saver


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as found:
        yield found


def everything(saver: Any) -> dict[Any, Any]:
    """What a saver reads: by thread, namespace and id."""
    found = {}
    for listed in list(saver.list(None)):
        at = listed.config["configurable"]
        key = (at["thread_id"], at["checkpoint_ns"], at["checkpoint_id"])
        assert key not in found
        assert saver.get_tuple(listed.config) == listed
        found[key] = listed
    return found


def rows(file: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def check_same(file: Path, memory: Memory) -> None:
    """Compare two savers by LangGraph's own reading."""
    ours = CommonplaceSaver(memory, serde=ANY_TYPE)
    with stock_saver(file) as stock:
        expected = everything(stock)
        assert everything(ours) == expected
        there, here = graph_of(stock), graph_of(ours)
        for number in range(THREADS):
            config = thread(number)
            assert ours.get_tuple(config) == stock.get_tuple(config)
            states = list(here.get_state_history(config))
            assert states == list(there.get_state_history(config))
            assert len(states) > 1


def test_all_checkpoints_and_pending_writes_come_over(file: Path, memory: Memory) -> None:
    before = file.read_bytes()
    tally = import_langgraph(memory, file)

    assert file.read_bytes() == before
    assert tally.reasons == {}
    assert tally.taken == {CHECKPOINTS: rows(file, "checkpoints"), WRITES: rows(file, "writes")}
    check_same(file, memory)


def test_an_imported_thread_goes_on(file: Path, memory: Memory) -> None:
    import_langgraph(memory, file)
    graph = graph_of(CommonplaceSaver(memory, serde=ANY_TYPE))
    assert isinstance(graph.get_state(thread(0)).interrupts[0], Interrupt)
    graph.invoke(Command(resume="5"), thread(0))
    state = graph.get_state(thread(0))

    assert state.next == ()
    assert state.values["seen"] == ["left", "inner", "5"]
    assert state.values["trip"] == Trip("Lyon", 3)


def test_an_interrupted_import_goes_on_and_doubles_nothing(file: Path, memory: Memory) -> None:
    done: list[int] = []

    def stop(kind: str, number: int, total: int) -> None:
        done.append(number)
        if number > total // 2:
            raise KeyboardInterrupt

    assert import_langgraph(memory, file, dry_run=True).taken[CHECKPOINTS] == rows(
        file, "checkpoints"
    )
    assert everything(CommonplaceSaver(memory)) == {}
    with pytest.raises(KeyboardInterrupt):
        import_langgraph(memory, file, progress=stop)
    rest, again = import_langgraph(memory, file), import_langgraph(memory, file)

    assert rest.known[CHECKPOINTS] == done[-1]
    assert rest.taken[CHECKPOINTS] == rows(file, "checkpoints") - done[-1]
    assert again.known == {CHECKPOINTS: rows(file, "checkpoints"), WRITES: rows(file, "writes")}
    assert again.taken.total() == 0
    check_same(file, memory)


def test_what_was_run_on_here_since_stays_when_the_import_is_repeated(
    file: Path, memory: Memory
) -> None:
    import_langgraph(memory, file)
    saver = CommonplaceSaver(memory, serde=ANY_TYPE)
    graph_of(saver).invoke(Command(resume="5"), thread(0))
    before = everything(saver)
    import_langgraph(memory, file)

    assert everything(saver) == before


def test_a_thread_may_belong_to_the_user_of_its_metadata(file: Path, memory: Memory) -> None:
    import_langgraph(memory, file, owner="user_id")
    receipt = memory.forget(Scope(user_id="user3"))

    assert receipt.complete
    left = {key[0] for key in everything(CommonplaceSaver(memory, serde=ANY_TYPE))}
    assert left == {f"thread {number}" for number in range(THREADS) if number % 7 != 3}


@pytest.fixture
def copy(file: Path, tmp_path: Path) -> Path:
    """A copy of the file, to be changed."""
    found = tmp_path / "copy.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", (str(found),))
    return found


@contextlib.contextmanager
def changing(file: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        yield connection


@pytest.mark.parametrize("gone", ["deleted", "pruned", "forgotten"])
def test_what_was_removed_here_since_stays_so_when_the_import_is_repeated(
    copy: Path, memory: Memory, gone: str
) -> None:
    import_langgraph(memory, copy, owner="user_id")
    saver = CommonplaceSaver(memory, serde=ANY_TYPE)
    before = everything(saver)
    if gone == "forgotten":
        memory.forget(Scope(user_id="user3"))
    else:
        strategy = "delete" if gone == "deleted" else "keep_latest"
        saver.prune(["thread 1", "thread 2"], strategy=strategy)
    left = everything(saver)
    with stock_saver(copy) as stock:
        graph_of(stock).update_state(thread(3), {"seen": ["later"]})
        graph_of(stock).update_state(thread(4), {"seen": ["later"]})
    trial = import_langgraph(memory, copy, owner="user_id", dry_run=True)
    again = import_langgraph(memory, copy, owner="user_id")
    found = everything(saver)

    later = {key for key in found if key not in before}
    assert {key for key in found if key in before} == left.keys()
    assert {key[0] for key in later} == {"thread 4"} | (
        set() if gone == "forgotten" else {"thread 3"}
    )
    assert again.reasons.keys() == trial.reasons.keys() == {CHECKPOINTS}
    number = len(before) - len(left) + 2 - len(later)
    assert [*again.reasons[CHECKPOINTS]] == ["deleted here since"]
    assert len(again.reasons[CHECKPOINTS]["deleted here since"]) == number
    state = graph_of(saver).get_state(thread(4))
    assert state.values["seen"][-1] == "later"
    assert len(state.values["messages"]) > 1


def test_a_pruned_thread_takes_what_its_source_has_added_since(copy: Path, memory: Memory) -> None:
    import_langgraph(memory, copy)
    saver = CommonplaceSaver(memory, serde=ANY_TYPE)
    saver.prune(["thread 4"])
    kept = len(everything(saver))
    with stock_saver(copy) as stock:
        graph_of(stock).update_state(thread(4), {"seen": ["later"]})
        expected = graph_of(stock).get_state(thread(4)).values
    import_langgraph(memory, copy)

    assert len(everything(saver)) == kept + 1
    assert graph_of(saver).get_state(thread(4)).values == expected


def test_what_cannot_be_taken_over_is_told_and_stops_nothing(copy: Path, memory: Memory) -> None:
    total = rows(copy, "checkpoints")
    first = (
        "(SELECT min(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '')"
    )
    spoil = f"UPDATE checkpoints SET %s WHERE thread_id = ? AND checkpoint_id = {first}"
    with changing(copy) as connection:
        for change, name in (
            ("type = 'pickle'", "thread 0"),
            ("checkpoint = x'c1'", "thread 1"),
            ("metadata = '{'", "thread 2"),
        ):
            connection.execute(spoil % change, (name, name))
        connection.execute("UPDATE checkpoints SET thread_id = '' WHERE thread_id = 'thread 3'")
        moved = connection.execute("SELECT count(*) FROM checkpoints WHERE thread_id = ''")
        [nameless] = moved.fetchone()
    tally = import_langgraph(memory, copy)

    assert tally.refused(CHECKPOINTS) == 3 + nameless
    assert tally.taken[CHECKPOINTS] == total - 3 - nameless
    assert {name.split("/")[0] for ids in tally.reasons[CHECKPOINTS].values() for name in ids} == {
        "thread 0", "thread 1", "thread 2", "",
    }  # fmt: skip


def test_two_values_in_one_version_are_refused_and_not_mixed_up(copy: Path, memory: Memory) -> None:
    with changing(copy) as connection:
        for kind, data, *at in connection.execute(
            "SELECT type, checkpoint, thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
            " WHERE thread_id = 'thread 2' AND checkpoint_ns = ''"
            " ORDER BY checkpoint_id DESC LIMIT 1"
        ).fetchall():
            state = PLAIN.loads_typed((kind, data))
            state["channel_values"]["messages"] = ["another"]
            connection.execute(
                "UPDATE checkpoints SET checkpoint = ?"
                " WHERE (thread_id, checkpoint_ns, checkpoint_id) = (?, ?, ?)",
                (PLAIN.dumps_typed(state)[1], *at),
            )
        connection.execute("DELETE FROM checkpoints WHERE thread_id != 'thread 2'")
    tally = import_langgraph(memory, copy)
    with stock_saver(copy) as stock:
        expected = everything(stock)

    [(reason, names)] = tally.reasons[CHECKPOINTS].items()
    assert "two values in one version" in reason
    for name in names:
        del expected[tuple(name.split("/"))]
    assert everything(CommonplaceSaver(memory, serde=ANY_TYPE)) == expected


def test_a_file_of_an_older_release_and_writes_without_a_checkpoint(
    copy: Path, memory: Memory
) -> None:
    with changing(copy) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        connection.execute("INSERT INTO writes VALUES ('lone', '', 'c', 't', 0, 'x', 'null', NULL)")
    tally = import_langgraph(memory, copy)
    saver = CommonplaceSaver(memory)
    config = {"configurable": {"thread_id": "lone", "checkpoint_ns": ""}}
    saver.put(config, empty_checkpoint() | {"id": "c"}, {}, {})

    assert tally.taken[WRITES] == rows(copy, "writes")
    assert saver.get_tuple(config).pending_writes == [("t", "x", None)]


def test_encrypted_checkpoints_are_taken_over_encrypted(tmp_path: Path, memory: Memory) -> None:
    pytest.importorskip("Crypto", reason="pip install pycryptodome")
    key, place = b"0123456789abcdef", tmp_path / "encrypted.sqlite"
    secret = EncryptedSerializer.from_pycryptodome_aes(serde=ANY_TYPE, key=key)
    with savers.SqliteSaver.from_conn_string(str(place)) as stock:
        stock.serde = secret
        run_threads(stock, 3)
        expected = everything(stock)
    plain = import_langgraph(memory, place, dry_run=True)
    import_langgraph(
        memory, place, serde=EncryptedSerializer.from_pycryptodome_aes(serde=PLAIN, key=key)
    )

    assert plain.refused(CHECKPOINTS) == len(expected)
    assert everything(CommonplaceSaver(memory, serde=secret)) == expected


def test_a_file_that_is_none_of_theirs_is_refused(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "text.sqlite").write_text("no database" * 100, "utf-8")
    with changing(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE other (a)")
    for name in ("text.sqlite", "other.sqlite", "missing.sqlite"):
        with pytest.raises(InvalidRecordError, match="source="):
            import_langgraph(memory, tmp_path / name)
    with pytest.raises(InvalidRecordError, match="mysql://host/db") as refused:
        import_langgraph(memory, "mysql://me:secret@host/db")
    assert "secret" not in str(refused.value)


def test_a_channel_of_changes_has_its_values_where_it_had_them(
    tmp_path: Path, memory: Memory
) -> None:
    class Log(TypedDict):
        lines: Annotated[list[str], DeltaChannel(extend, list, snapshot_frequency=3)]

    def logging(saver: Any) -> Any:
        graph = StateGraph(Log)
        graph.add_node("a", lambda state: {"lines": [f"line {len(state['lines'])}"]})
        graph.add_node("b", lambda state: {})
        graph.add_edge(START, "a")
        graph.add_edge("a", "b")
        return graph.compile(checkpointer=saver)

    config: Any = {"configurable": {"thread_id": "t"}}
    with stock_saver(tmp_path / "log.sqlite") as stock:
        for number in range(7):
            logging(stock).invoke({"lines": [str(number)]}, config)
        earlier = list(logging(stock).get_state_history(config))[5].config
        logging(stock).update_state(earlier, {"lines": ["forked"]})
        import_langgraph(memory, tmp_path / "log.sqlite")
        ours = CommonplaceSaver(memory)
        assert everything(ours) == everything(stock)
        logged = logging(stock).get_state(config).values
    ours.prune(["t"])

    assert logging(ours).get_state(config).values == logged
    assert logging(ours).invoke({"lines": ["on"]}, config)["lines"][:-2] == logged["lines"]


def extend(lines: list[str], writes: list[list[str]]) -> list[str]:
    return [*(lines or []), *(line for written in writes for line in written)]


# -- items -------------------------------------------------------------------------------------

PLACES = (("memories", "alice"), ("memories", "bob", "trips"), ("docs",), ("文档", "a b"))


def fill(store: Any, items: int) -> None:
    for number in range(items):
        value = {"text": f"note {number} on tea", "n": number, "deep": {"er": [number, None, "ß"]}}
        store.put(
            PLACES[number % len(PLACES)],
            f"key {number}",
            value,
            index=False if number % 10 == 2 else None,
            ttl=60 if number % 10 == 4 else None,
        )
    store.put(("docs",), "two", {"text": ["rowing boats", "green tea"], "n": -1})
    store.put(("docs",), "past", {"text": "over"}, ttl=1e-4)
    time.sleep(0.05)  # until that is over


@pytest.fixture(scope="module")
def store_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that LangGraph's store wrote, with vectors."""
    found = tmp_path_factory.mktemp("langgraph") / "store.sqlite"
    with stock_store(found) as store:
        fill(store, ROWS)
    return found


@contextlib.contextmanager
def stock_store(file: Path) -> Iterator[Any]:
    sqlite = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        sqlite = pytest.importorskip("pysqlite3")
    stores = pytest.importorskip("langgraph.store.sqlite")
    embed = DeterministicFakeEmbedding(size=16)
    index = {"dims": 16, "embed": embed, "fields": ["text[*]"], "text_fields": ["text", "text[*]"]}
    with contextlib.closing(sqlite.connect(str(file), isolation_level=None)) as connection:
        store = stores.SqliteStore(connection, index=index)
        store.setup()
        yield store


def items_of(store: Any) -> dict[Any, Any]:
    """What a store reads: by namespace and key."""
    found = {}
    for item in store.search((), limit=20_000):
        one = store.get(item.namespace, item.key, refresh_ttl=False)
        times = [
            at if at.tzinfo else at.replace(tzinfo=UTC) for at in (one.created_at, one.updated_at)
        ]
        found[(item.namespace, item.key)] = (one.value, item.value, *times)
    return found


@pytest.mark.filterwarnings("ignore:The default datetime adapter is deprecated:DeprecationWarning")
def test_all_items_come_over_with_their_times(store_file: Path, memory: Memory) -> None:
    tally = import_langgraph(memory, store_file)
    ours = CommonplaceStore(memory)
    with stock_store(store_file) as stock:
        expected = items_of(stock)
        del expected[(("docs",), "past")]
        assert items_of(ours) == expected
        assert ours.list_namespaces() == sorted(stock.list_namespaces())
        for place in PLACES:
            mine, theirs = (store.search(place, limit=20_000) for store in (ours, stock))
            assert {item.key for item in mine} == {item.key for item in theirs} - {"past"}

    assert (tally.taken[ITEMS], tally.refused(ITEMS)) == (len(expected), 1)
    assert ours.search(("docs",), query="rowing boats")[0].key == "two"
    assert ours.search(("docs",), query="green tea")[0].key == "two"
    unindexed = next(n for n in range(ROWS) if n % 10 == 2 and n % len(PLACES) == 2)
    keys = {item.key for item in ours.search(("docs",), query="note", limit=20_000)}
    assert f"key {unindexed}" not in keys
    ends = [one.expires_at for one in memory.list(Scope(user_id="alice"), limit=1000)]
    soon = datetime.now(UTC) + timedelta(minutes=61)
    assert 0 < sum(end is not None and end < soon for end in ends) < len(ends)
    assert examine(memory).is_healthy


@pytest.mark.filterwarnings("ignore:The default datetime adapter is deprecated:DeprecationWarning")
def test_a_repeated_import_of_items_brings_only_what_is_newer_there(
    store_file: Path, memory: Memory, tmp_path: Path
) -> None:
    place = tmp_path / "changing.sqlite"
    with stock_store(place) as stock:
        fill(stock, 20)
    ours = CommonplaceStore(memory)

    def stop(_kind: str, number: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_langgraph(memory, place, progress=stop)
    ours.put(("docs",), "key 2", {"text": "changed here"})
    ours.delete(("docs",), "key 6")
    with changing(place) as connection:
        connection.execute(
            "UPDATE store SET value = ?, updated_at = datetime('now', '+1 hour') WHERE key = ?",
            (b'{"text": "changed there"}', "key 1"),
        )
    for _ in range(2):
        tally = import_langgraph(memory, place)

        assert ours.get(("docs",), "key 2").value == {"text": "changed here"}
        assert ours.get(("docs",), "key 6") is None
        assert ours.get(("memories", "bob", "trips"), "key 1").value == {"text": "changed there"}
        assert tally.reasons[ITEMS]["deleted here since"] == ["docs/key 6"]
        assert tally.taken[ITEMS] + tally.known[ITEMS] == 20


# -- PostgreSQL --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL of Debian, which listens in a folder alone."""
    pytest.importorskip("psycopg", reason="pip install 'commonplace-memory[postgres]'")
    pytest.importorskip("langgraph.checkpoint.postgres")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not found:
        pytest.skip("apt-get install postgresql")
    place = Path(tempfile.mkdtemp(prefix="pg"))  # a short path, as that of a socket must be
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()  # it does not run as root
    become = ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []
    shutil.chown(place, user)

    def control(*words: str) -> None:
        line = [*become, str(found[-1]), "-D", str(place / "data"), *words]
        subprocess.run(line, check=True, capture_output=True, cwd=place)

    control("initdb", "-o", "--auth=trust --encoding=UTF8")
    options = f"-c listen_addresses='' -k {place} -F"
    control("start", "-w", "-o", options, "-l", str(place / "log"))
    yield f"postgresql:///postgres?host={place}&user={user}"
    control("stop", "-m", "immediate")
    shutil.rmtree(place)


def test_the_tables_of_a_postgresql_come_over_whole(postgres: str, memory: Memory) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore

    with PostgresSaver.from_conn_string(postgres) as stock:
        stock.serde = ANY_TYPE
        stock.setup()
        run_threads(stock, 12)
        expected = everything(stock)
        histories = [list(graph_of(stock).get_state_history(thread(n))) for n in range(12)]
    with PostgresStore.from_conn_string(postgres) as store:
        store.setup()
        fill(store, 100)
        items = items_of(store)
        del items[(("docs",), "past")]
    tally, again = import_langgraph(memory, postgres), import_langgraph(memory, postgres)
    ours = CommonplaceSaver(memory, serde=ANY_TYPE)

    assert everything(ours) == expected
    assert [list(graph_of(ours).get_state_history(thread(n))) for n in range(12)] == histories
    assert items_of(CommonplaceStore(memory)) == items
    assert (tally.taken[CHECKPOINTS], tally.taken[ITEMS]) == (len(expected), 101)
    assert tally.refused(CHECKPOINTS) == 0
    assert again.taken.total() == 0
    with pytest.raises(StoreUnavailableError):
        import_langgraph(memory, "postgresql:///none?host=/nowhere")


# -- the command -------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    return import_command(monkeypatch, "langgraph")


def test_the_command_counts_then_imports_and_tells_what_it_refused(
    run: Any, copy: Path, tmp_path: Path
) -> None:
    with changing(copy) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle' WHERE thread_id = 'thread 0'")
    total, writes = rows(copy, "checkpoints"), rows(copy, "writes")
    counted = run(copy, "memory", "--dry-run")
    assert counted.exit_code == 0, counted.output
    assert not (tmp_path / "memory").exists()

    done = run(copy, "memory", "--owner", "user_id")
    assert counted.stdout == done.stdout.replace("taken", "would be taken")
    [header, checkpoints, pending] = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["taken", "here already", "refused", "what"]
    assert int(checkpoints[0]) + int(checkpoints[2]) == total
    assert checkpoints[1:] == ["0", checkpoints[2], "checkpoints"]
    assert "× Unknown serialization type: pickle: thread 0/" in done.stderr
    again = run(copy, "memory")
    assert again.stdout.splitlines()[1].split("\t") == ["0", checkpoints[0], *checkpoints[2:]]
    assert again.stdout.splitlines()[2].split("\t") == ["0", pending[0], "0", "pending writes"]
    assert int(pending[0]) < writes
    with opened("memory") as memory:
        memory.forget(Scope(user_id="user1"))
        left = {key[0] for key in everything(CommonplaceSaver(memory, serde=ANY_TYPE))}
        assert "thread 1" not in left
        assert "thread 2" in left
    assert run("missing.sqlite", "memory").exit_code == 2
