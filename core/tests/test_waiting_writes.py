"""Turns that cannot be accepted: they wait in memory, in order, and are written afterwards."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from commonplace.agents import AgentMemory, LazyMemory, Policy, acquire_memory
from commonplace.agents import turns as module
from commonplace.agents.turns import WaitingWrite, WaitingWrites
from commonplace.errors import MemoryClosedError, StoreUnavailableError
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Message, Scope, now

ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")
BOB = Scope(user_id="bob", agent_id="bot", session_id="today")
AWAY = StoreUnavailableError(store="x", reason="away")


class Store:
    """A folder that can be away, so that writes fail, and a memory in it."""

    def __init__(self, folder, embedder=None):
        self.folder = folder
        self.embedder = embedder or HashEmbedder()
        self.memory = self.open()

    def open(self):
        return Memory.open(str(self.folder), embedder=self.embedder)

    def leave(self):
        self.folder.rename(self.folder.with_name("elsewhere"))

    def come_back(self):
        self.folder.with_name("elsewhere").rename(self.folder)

    def texts(self, scope=ALICE):
        self.memory.flush()
        return [one.text for one in reversed(self.memory.list(scope, limit=1_000).records)]


class Writer(AgentMemory):
    """An agent's memory that keeps its events; it writes with or without an event loop."""

    def __init__(self, memory, *, is_async=False, **policy):
        self.events = []
        super().__init__(memory, Policy(**policy), log="tests", on_event=self.events.append)
        self.is_async = is_async

    def say(self, text, scope=ALICE, message_id=None):
        said = [Message(text=text, id=message_id)]
        if self.is_async:
            asyncio.run(self.awrite(said, scope))
        else:
            self.write(said, scope)

    @property
    def names(self):
        return [one.name for one in self.events]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "memory")
    yield made
    made.memory.close()


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def writer(request, store):
    return Writer(store.memory, is_async=request.param)


def wait_until(is_so):
    for _ in range(1_000):
        if is_so():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it takes more than ten seconds")


# -- an outage ---------------------------------------------------------------------------------


def test_turns_of_an_outage_are_written_with_the_next_in_their_order(store, writer, caplog):
    writer.say("I said 0.")
    for outage in (1, 2):
        store.leave()
        for n in range(3):
            writer.say(f"I said {outage}{n}.")
        assert 3 == writer.counters().waiting
        store.come_back()
        writer.say(f"I said {outage}9.")

    numbers = ["0", "10", "11", "12", "19", "20", "21", "22", "29"]
    assert [f"I said {n}." for n in numbers] == store.texts()
    assert ["written", *2 * (["waiting"] * 3 + ["written"] * 4)] == writer.names
    assert isinstance(writer.events[1].error, StoreUnavailableError)
    counted = writer.counters()
    assert (9, 0, 0, 0) == (counted.written, counted.waiting, counted.lost, counted.failed)
    told = [one.getMessage() for one in caplog.records if one.name == "tests"]
    assert 4 == len(told)
    assert told[0].startswith("memory write waits in memory and is tried again; the agent con")
    assert told[1].startswith("memory write works again, after 3 failures in ")


def test_turns_are_written_without_another_one(store, writer, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.05)
    monkeypatch.setattr(writer.lazy.waiting, "_pause", 0.05)
    store.leave()
    for n in range(3):
        writer.say(f"I said {n}.")
    store.come_back()
    wait_until(lambda: not writer.counters().waiting)

    assert [f"I said {n}." for n in range(3)] == store.texts()


def test_what_nobody_waits_for_waits_too(store):
    writer = Writer(store.memory)
    store.leave()
    writer.write_later([Message(text="I like tea.")], ALICE)
    wait_until(lambda: writer.counters().waiting)
    store.come_back()
    writer.say("I like coffee.")

    assert ["I like tea.", "I like coffee."] == store.texts()


def test_a_turn_that_waited_was_said_when_it_was_said(store, writer):
    store.leave()
    began = now()
    writer.say("I like tea.")
    ended = now()
    threading.Event().wait(0.02)
    store.come_back()
    writer.say("I like coffee.")

    store.memory.flush()
    tea = store.memory.list(ALICE).records[-1]
    assert began <= tea.occurred_at <= ended < tea.created_at


def test_what_does_not_fit_is_lost_and_told(store, caplog):
    for is_async in (False, True):
        writer = Writer(store.memory, is_async=is_async, max_waiting=2)
        store.leave()
        for n in range(5):
            writer.say(f"I said {is_async} {n}.")
        assert (2, 3) == (writer.counters().waiting, writer.counters().lost)
        store.come_back()
        writer.say(f"I said {is_async} 9.")

        assert ["waiting"] * 2 + ["lost"] * 3 + ["written"] * 3 == writer.names
        assert [f"I said {is_async} {n}." for n in (0, 1, 9)] == store.texts()[-3:]
        lost = [one for one in caplog.messages if "memory write is lost" in one]
        assert 1 == len(lost)
        caplog.clear()


def test_nothing_waits_where_nothing_may(store, writer):
    writer.policy = Policy(max_waiting=0)
    store.leave()
    writer.say("I like tea.")
    store.come_back()

    assert (["lost"], 0) == (writer.names, writer.counters().waiting)


def test_a_turn_that_is_given_again_waits_once(store, writer):
    store.leave()
    for _ in range(3):
        writer.say("I like tea.", message_id="m1")
    assert 1 == writer.counters().waiting
    store.come_back()
    writer.say("I like tea.", message_id="m1")

    assert ["I like tea."] == store.texts()


def test_a_memory_that_cannot_be_opened_yet_gets_its_turns(tmp_path):
    for is_async in (False, True):
        store = Store(tmp_path / f"memory {is_async}")
        is_away = threading.Event()
        is_away.set()

        def open_memory(store=store, is_away=is_away):
            if is_away.is_set():
                raise AWAY
            return store.open()

        writer = Writer(LazyMemory(open_memory), is_async=is_async)
        for n in range(3):
            writer.say(f"I said {n}.")
        assert 3 == writer.counters().waiting
        is_away.clear()
        writer.say("I said 9.")

        assert [f"I said {n}." for n in (0, 1, 2, 9)] == store.texts()
        writer.lazy.close()
        store.memory.close()


def test_who_shares_a_memory_keeps_the_order(store):
    one, two = Writer(store.memory), Writer(store.memory, is_async=True)
    store.leave()
    one.say("I said 0.")
    two.say("I said 1.")
    store.come_back()
    two.say("I said 2.")

    assert (0, 0) == (one.counters().waiting, two.counters().waiting)
    assert [f"I said {n}." for n in range(3)] == store.texts()
    assert (["waiting", "written"], ["waiting", "written", "written"]) == (one.names, two.names)


def test_threads_lose_and_double_nothing(store):
    writers = [Writer(store.memory, is_async=bool(n % 2)) for n in range(6)]
    store.leave()

    def work(writer, number):
        for n in range(10):
            if number == 0 and n == 5:
                store.come_back()
            writer.say(f"I said {n}.", Scope(user_id=f"user{number}"))

    threads = [
        threading.Thread(target=work, args=one) for one in zip(writers, range(6), strict=True)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    writers[0].say("I said 10.", Scope(user_id="user0"))

    assert 0 == writers[0].counters().waiting
    for number in range(6):
        texts = store.texts(Scope(user_id=f"user{number}"))
        assert [f"I said {n}." for n in range(11 if number == 0 else 10)] == texts


def test_what_waits_for_an_asynchronous_model_is_stored_on_the_next_loop(tmp_path):
    class AsyncEmbedder(HashEmbedder):
        async def embed(self, texts, *, purpose):
            return super().embed(texts, purpose=purpose)

    store = Store(tmp_path / "memory", AsyncEmbedder())
    writer = Writer(store.memory, is_async=True)

    async def talk():
        store.leave()
        await writer.awrite([Message(text="I like tea.")], ALICE)
        assert 1 == writer.counters().waiting
        store.come_back()
        assert await writer.awrite([Message(text="I like coffee.")], ALICE)
        await store.memory.aflush(60)
        return await store.memory.asearch("What tea do I like?", ALICE)

    found = asyncio.run(talk())

    assert {"I like tea.", "I like coffee."} == {one.text for one in found}
    assert ["waiting", "written", "written"] == writer.names
    store.memory.close()


# -- erasure -----------------------------------------------------------------------------------


@pytest.mark.parametrize("forgotten", [Scope(user_id="alice"), ALICE])
def test_a_turn_of_who_is_forgotten_meanwhile_is_not_written(store, writer, forgotten):
    store.leave()
    writer.say("I like tea.")
    writer.say("I like coffee.", BOB)
    store.come_back()
    store.memory.forget(forgotten)
    writer.say("I am new here.")

    assert ["I am new here."] == store.texts()
    assert ["I like coffee."] == store.texts(BOB)
    assert 0 == writer.counters().waiting
    assert ["waiting", "waiting", "written", "written"] == writer.names


def test_an_erasure_before_a_turn_does_not_forget_it(store, writer):
    writer.say("I like milk.")
    store.memory.forget(Scope(user_id="alice"))
    threading.Event().wait(0.002)
    store.leave()
    writer.say("I like tea.")
    store.come_back()
    writer.say("I like coffee.")

    assert ["I like tea.", "I like coffee."] == store.texts()


def test_an_erasure_is_known_by_its_moment_and_scope(store):
    before = now() - timedelta(milliseconds=1)
    store.memory.add("I like tea.", ALICE)
    store.memory.forget(Scope(user_id="alice", agent_id="bot"))
    threading.Event().wait(0.002)
    known = store.memory.admin.was_forgotten

    assert known(ALICE, since=before)
    assert not known(ALICE, since=now())
    assert not known(BOB, since=before)
    assert not known(Scope(user_id="alice"), since=before)


# -- the end -----------------------------------------------------------------------------------


def test_a_memory_that_is_closed_gets_its_turns_first(store, writer):
    store.leave()
    writer.say("I like tea.")
    store.come_back()
    store.memory.close()
    store.memory = store.open()

    assert ["I like tea."] == store.texts()
    assert ["waiting", "written"] == writer.names


def test_what_is_left_when_the_memory_is_closed_is_lost_and_told(store, writer, caplog):
    store.leave()
    writer.say("I like tea.")
    writer.say("I like coffee.")
    with contextlib.suppress(StoreUnavailableError):  # of the folder that is away
        store.memory.close()
    store.come_back()

    assert ["waiting", "waiting", "lost", "lost"] == writer.names
    assert (2, 0) == (writer.counters().lost, writer.counters().waiting)
    assert any("memory write is lost" in one for one in caplog.messages)


def test_who_closes_tries_once_more(tmp_path):
    for is_back in (True, False):
        store = Store(tmp_path / f"memory {is_back}")
        lazy = acquire_memory(store, str(store.folder), embedder=HashEmbedder())
        writer = Writer(lazy)
        writer.say("I said 0.")
        store.leave()
        writer.say("I said 1.")
        if is_back:
            store.come_back()
        with contextlib.suppress(StoreUnavailableError):
            asyncio.run(writer.aclose(store, 5))
        if not is_back:
            store.come_back()

        assert ["written", "waiting", "written" if is_back else "lost"] == writer.names
        assert ["I said 0.", "I said 1."][: 1 + is_back] == store.texts()
        store.memory.close()


def test_a_memory_that_was_given_open_keeps_what_waits(store, writer):
    store.leave()
    writer.say("I like tea.")
    asyncio.run(writer.aclose(writer, 5))
    assert 1 == writer.counters().waiting
    store.come_back()
    asyncio.run(writer.aclose(writer, 5))

    assert (0, ["I like tea."]) == (writer.counters().waiting, store.texts())


def test_the_end_of_a_process_waits_for_nothing_and_tries_once_more(tmp_path):
    program = """
import sys
from pathlib import Path
from commonplace import Memory, Message, Scope
from commonplace.agents import AgentMemory, Policy
from commonplace.testing.fakes import HashEmbedder
folder, is_back = Path(sys.argv[1]), sys.argv[2] == "True"
memory = Memory.open(str(folder), embedder=HashEmbedder())
mine = AgentMemory(memory, Policy(), log="tests", on_event=lambda one: print(one.name))
folder.rename(folder.with_name("elsewhere"))
mine.write([Message(text="I like tea.")], Scope(user_id="alice"))
if is_back:
    folder.with_name("elsewhere").rename(folder)
"""
    for is_back in (True, False):
        folder = tmp_path / str(is_back) / "memory"
        command = [sys.executable, "-c", program, str(folder), str(is_back)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

        assert ["waiting", "written" if is_back else "lost"] == done.stdout.split(), done.stderr
        assert 0 == done.returncode
    with Memory.open(str(tmp_path / "True" / "memory"), embedder=HashEmbedder()) as memory:
        assert ["I like tea."] == [one.text for one in memory.list(Scope(user_id="alice")).records]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_leaves_what_waits_to_its_parent(store):
    writer = Writer(store.memory)
    store.leave()
    writer.say("I like tea.")
    child = os.fork()
    if not child:
        os._exit(len(writer.lazy.waiting))
    _, status = os.waitpid(child, 0)
    store.come_back()
    writer.say("I like coffee.")

    assert 0 == os.waitstatus_to_exitcode(status)
    assert ["I like tea.", "I like coffee."] == store.texts()


# -- the queue ---------------------------------------------------------------------------------


def waiting(write, text="I like tea."):
    ended = []
    made = WaitingWrite(
        messages=[Message(text=text)], scope=ALICE, write=write, end=lambda *one: ended.append(one)
    )
    return made, ended


def test_the_pause_doubles_up_to_a_minute_and_starts_over(monkeypatch):
    pauses, wake = [], []
    is_away = True

    def call_later(seconds, call):
        pauses.append(seconds)
        wake.append(call)
        return module.Timer(call)

    def start_call(name, call):
        call()

    def write(_):
        if is_away:
            raise AWAY
        return True

    monkeypatch.setattr(module, "call_later", call_later)
    monkeypatch.setattr(module, "start_call", start_call)
    queue = WaitingWrites()
    assert queue.put(waiting(write)[0], 5)
    for _ in range(8):
        wake.pop()()
    is_away = False
    wake.pop()()
    is_away = True
    queue.put(waiting(write)[0], 5)

    assert [1, 2, 4, 8, 16, 32, 60, 60, 60, 1] == pauses
    queue.close()


def test_what_can_never_be_written_is_lost_and_holds_nothing_up():
    queue = WaitingWrites()
    errors = [MemoryClosedError(), ValueError("no"), AWAY.as_retried()]

    def fail(error):
        raise error

    ends = []
    for error in errors:
        made, ended = waiting(lambda _, error=error: fail(error))
        queue.put(made, 5)
        ends.append(ended)
    made, ended = waiting(lambda _: True)
    queue.put(made, 5)
    queue.write()

    assert [[("lost", error)] for error in errors] == ends
    assert ([("written", None)], 0) == (ended, len(queue))
