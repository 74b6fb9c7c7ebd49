"""Strands' storage on a memory: exact bytes, one owner's alone, gone when forgotten."""

import asyncio
import os

import pytest
from strands import Agent
from strands.storage import Storage
from strands.types.exceptions import StorageError

from commonplace import InvalidScopeError, Memory, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import CommonplaceStorage

ALICE = Scope(user_id="alice")
LATEST = "session/{}/scopes/agent/cook/snapshots/snapshot_latest.json"


@pytest.fixture
def storage(memory: Memory) -> CommonplaceStorage:
    return CommonplaceStorage(memory, user_id="alice")


async def test_it_is_a_storage_of_strands(storage):
    assert isinstance(storage, Storage)


@pytest.mark.parametrize("data", [b"", b"\x00\xff", os.urandom(3_000_000)])
@pytest.mark.parametrize("key", ["a", "a/b.json", "/a//b", LATEST.format("s"), "猫 \U0001f63c"])
async def test_bytes_come_back_until_they_are_replaced_or_deleted(storage, key, data):
    await storage.write(key, b"before")
    await storage.write("other", b"stays")
    await storage.write(key, data)

    assert await storage.read(key) == data
    assert await storage.list(key) == [key]
    for _ in range(2):
        await storage.delete(key)
    assert await storage.read(key) is None
    assert await storage.list(key) == []
    assert await storage.read("other") == b"stays"


async def test_a_listing_has_the_keys_with_its_prefix_sorted(storage, memory):
    keys = [
        "a", "a/b", "a/b/1", "a/b/2", "a/c", "a0", "b", "a\uffff", "a\U0010ffff", "a\U0010ffffb",
        *(LATEST.format(name) for name in ("s", "s2", "t")),
    ]  # fmt: skip
    for key in reversed(keys):
        await storage.write(key, key.encode())
        await CommonplaceStorage(memory, user_id="bob").write(f"{key}/bob", b"")

    for prefix in ["", "a", "a/", "a/b", "a/b/", "session/s/", "a\U0010ffff", "a\uffff", "x"]:
        assert await storage.list(prefix) == sorted(one for one in keys if one.startswith(prefix))


async def test_more_keys_than_a_page_are_listed(storage):
    keys = [f"k/{number:05}" for number in range(1_005)]
    for key in keys:
        await storage.write(key, b"")

    assert await storage.list("k/") == keys
    assert await storage.list("k/000") == keys[:100]


async def test_owners_are_apart(storage, memory):
    others = [{"user_id": "bob"}, {"agent_id": "alice"}, {"user_id": "alice", "agent_id": "g"}]
    others.append({"user_id": "alice", "session_id": "s"})
    for key in ("a", LATEST.format("s")):
        await storage.write(key, b"alice's")
        for owner in others:
            other = CommonplaceStorage(memory, **owner)
            assert await other.read(key) is None
            assert await other.list() == []
            await other.write(key, b"x")
            await other.delete(key)

        assert await storage.read(key) == b"alice's"


async def test_forgetting_erases_what_it_covers(storage, memory):
    keys = [LATEST.format("s"), LATEST.format("t"), "context/s/scopes/agent/cook/1", "notes/1"]
    for key in keys:
        await storage.write(key, b"x")
    of_session = CommonplaceStorage(memory, user_id="alice", session_id="s")
    await of_session.write("notes/1", b"x")
    await CommonplaceStorage(memory, user_id="bob").write(keys[0], b"bob's")
    memory.forget(Scope(user_id="alice", session_id="s"))

    assert await storage.list() == sorted([keys[1], keys[3]])
    assert await of_session.list() == []
    memory.forget(ALICE)
    assert await storage.list() == []
    assert set(memory.admin.checkpoints.count(ALICE).values()) == {0}
    assert await CommonplaceStorage(memory, user_id="bob").read(keys[0]) == b"bob's"


async def test_what_cannot_be_done_is_told(storage, memory):
    for key in ("", "\ud800"):
        for call in (storage.read(key), storage.write(key, b""), storage.delete(key)):
            with pytest.raises(StorageError):
                await call
    with pytest.raises(InvalidScopeError):
        CommonplaceStorage(memory)
    memory.close()
    with pytest.raises(StorageError, match="closed"):
        await storage.write("a", b"")


async def test_values_are_found_by_keywords(storage):
    pytest.importorskip("strands.storage.search", reason="newer than the oldest that is served")
    await storage.write("notes/1", b"Miso is a cat.")
    await storage.write("notes/2", b"The desk is oak.")

    assert [one.key for one in await storage.search("which cat?")] == ["notes/1"]


def test_an_agent_goes_on_from_its_snapshot_after_a_restart(model, tmp_path):
    session = pytest.importorskip("strands.session")
    if not hasattr(session, "SnapshotSessionManager"):
        pytest.skip("newer than the oldest that is served")
    for turn in range(2):
        with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
            agent = Agent(
                model=(scripted := model()), agent_id="cook", callback_handler=None,
                storage=CommonplaceStorage(memory, user_id="alice"),
                session_manager=(manager := session.SnapshotSessionManager("s")),
            )  # fmt: skip
            assert agent.state.get("turns") == (turn or None)
            agent.state.set("turns", turn + 1)
            agent(f"This is turn {turn}.")
            saved = asyncio.run(manager.save_snapshot(agent, is_latest=False))
            assert saved in asyncio.run(manager.list_snapshot_ids(agent))

    assert "turn 0" in scripted.shown()
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        assert (
            memory.admin.checkpoints.count(Scope(user_id="alice", session_id="s"))["checkpoints"]
            == 3
        )
        session.SnapshotSessionManager("s", storage=CommonplaceStorage(memory, user_id="alice"))
        memory.forget(Scope(user_id="alice", session_id="s"))
        assert asyncio.run(CommonplaceStorage(memory, user_id="alice").list()) == []


async def test_a_deleted_session_leaves_nothing(storage, memory, model):
    session = pytest.importorskip("strands.session")
    if not hasattr(session, "SnapshotSessionManager"):
        pytest.skip("newer than the oldest that is served")
    manager = session.SnapshotSessionManager("s", storage=storage)
    agent = Agent(model=model(), callback_handler=None, session_manager=manager)
    await agent.invoke_async("Hello.")
    assert await storage.list() != []
    await manager.delete_session()

    assert await storage.list() == []
    assert set(memory.admin.checkpoints.count(ALICE).values()) == {0}
