"""Strands' byte storages, and agents on them: stock ones beside ours."""

import json

from strands import Agent
from strands.session import SnapshotSessionManager
from strands.storage import InMemoryStorage, LocalFileStorage, Storage

from commonplace_strands import CommonplaceStorage

from . import Awaited, Case, Section, public
from .strands_cases import Scripted, memory_in

DATA = b"\x00 Miso is a cat. \xff"


def in_memory(folder, stack):
    return Awaited(InMemoryStorage(), "")


def in_files(folder, stack):
    return Awaited(LocalFileStorage(str(folder)), "")


def ours(folder, stack):
    return Awaited(CommonplaceStorage(memory_in(folder, stack), user_id="alice"), "")


def written(s, *keys, data=DATA):
    for key in keys:
        s.write(key, data)
    return s


def replaced(s):
    written(s, "a", data=b"first")
    return [written(s, "a").read("a"), s.list("")]


def deleted(s):
    written(s, "a", "b").delete("a")
    return [s.read("a"), s.delete("a"), s.list("")]


def listed(*queries):
    def run(s):
        written(s, "b", "a/2", "a/1", "a0", "a/10")
        return [s.list(one) for one in queries]

    return run


def searched(s):
    s.write("notes/1", b"Miso is a cat.")
    s.write("notes/2", b"The desk is oak.")
    return [[one.key for one in s.search(query)] for query in ("a cat", "oak desk", "zebra")]


def wrote(key):
    return lambda s: [written(s, key).read(key), s.list("")]


def agent(s, *, name="a", session=None, **more):
    if session is not None:
        more["session_manager"] = SnapshotSessionManager(session)
    model = Scripted()
    made = Agent(model=model, agent_id=name, storage=s._of, callback_handler=None, **more)
    return made, model


def spoken(messages):
    return [[one["role"], one["content"]] for one in messages]


def restarted(s):
    for text in ("hello", "again"):
        made, model = agent(s, session="s")
        turns = (made.state.get("turns") or 0) + 1
        made.state.set("turns", turns)
        made(text)
    return spoken(model.seen[-1]), turns


def told_apart(s):
    agent(s, session="s")[0]("hello")
    other, model = agent(s, session="t")
    other("again")
    named, seen = agent(s, session="s", name="b")
    named("once more")
    return len(model.seen[-1]), len(seen.seen[-1]), sorted(s.list("session/"))


def snapshots(s):
    made, _ = agent(s, session="s")
    manager = made._session_manager
    made("hello")
    first = s.run(manager.save_snapshot(made, is_latest=False))
    made("again")
    known = s.run(manager.list_snapshot_ids(made))
    found = s.run(manager.restore_snapshot(made, snapshot_id=first))
    return known == [first], found, spoken(made.messages)


def removed(s):
    made, _ = agent(s, session="s")
    made("hello")
    agent(s, session="t")[0]("hello")
    before = len(s.list("session/s/"))
    s.run(made._session_manager.delete_session())
    return before, s.list("session/s/"), len(s.list("session/t/"))


def given_to_manager(s):
    for text in ("hello", "again"):
        model = Scripted()
        manager = SnapshotSessionManager("s", storage=s._of)
        Agent(model=model, agent_id="a", session_manager=manager, callback_handler=None)(text)
    return spoken(model.seen[-1])


def on_message(s):
    manager = SnapshotSessionManager("s", save_latest_on="message")
    made = Agent(
        model=Scripted(),
        agent_id="a",
        storage=s._of,
        session_manager=manager,
        callback_handler=None,
    )
    made("hello")
    [key] = s.list("session/")
    return sorted(json.loads(s.read(key)))


KEYS = "any text but the empty one is a key, kept as it is"
CASES = [
    Case("write(key, data); read(key)", lambda s: [written(s, "a/b.json").read("a/b.json"), s.read("no")]),
    Case("write(key, data) again", replaced),
    Case("write(key, data) of nothing, of 3 MiB", lambda s: [len(written(s, "a", data=one).read("a")) for one in (b"", bytes(3 << 20))]),
    Case("delete(key), and of what is not there", deleted),
    Case("list(query)", listed("", "a", "a/", "a/1", "x")),
    Case("search(query)", searched),
    Case("isinstance(storage, Storage)", lambda s: isinstance(s._of, Storage)),
    Case('write("", ...), read(""), delete("")', lambda s: s.write("", DATA)),
    Case('write("/a//b/", ...)', wrote("/a//b/"), KEYS),
    Case('write("a/../b", ...)', wrote("a/../b"), KEYS),
    Case('write("a\\\\b", ...)', wrote("a\\b"), KEYS),
    Case('write("a", ...); write("a/b", ...)', lambda s: written(s, "a", "a/b").list(""), "a key may be what another begins with; a file cannot be a folder"),
    Case("namespace(prefix)", lambda s: s._of.namespace("n") is not None, "not of the `Storage` interface: put the prefix into the keys, or open one with a scope of its own"),
    Case("Agent(storage=, session_manager=SnapshotSessionManager(session_id)), restarted", restarted),
    Case("Agent(storage=): sessions and agents apart", told_apart),
    Case("SnapshotSessionManager(storage=), restarted", given_to_manager),
    Case('SnapshotSessionManager(save_latest_on="message")', on_message),
    Case("save_snapshot(agent, is_latest=False), list_snapshot_ids(agent), restore_snapshot(agent, snapshot_id=)", snapshots),
    Case("delete_session()", removed),
]  # fmt: skip

STORAGE = Section(
    name="strands_storage",
    title="Strands: `Agent(storage=...)`",
    packages=("strands-agents",),
    columns={"`InMemoryStorage`": (in_memory, ours), "`LocalFileStorage`": (in_files, ours)},
    cases=CASES,
    interface=public(Storage),
)
SECTIONS = {STORAGE.name: STORAGE}
