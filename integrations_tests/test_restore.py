"""Restoration of deleted records: what comes back, for whom, and what never does."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace import (
    Fact,
    InvalidRecordError,
    LoopRequiredError,
    Memory,
    Message,
    RecordNotFoundError,
    Relation,
    Scope,
    Settings,
)
from commonplace.testing.fakes import HashEmbedder

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
TALK = Scope(user_id="alice", agent_id="coach", session_id="monday")
MAY = datetime(2024, 5, 1, tzinfo=UTC)
LYON = Fact(
    text="Alice lives in Lyon.",
    metadata={"source": {"page": 7}},
    namespace=("people", "alice"),
    at=MAY,
    importance=0.9,
    pinned=True,
    relations=(Relation(subject="Alice", predicate="lives_in", object="Lyon"),),
)
OSLO = Relation(subject="Alice", predicate="lives_in", object="Oslo")


class AsyncEmbedder(HashEmbedder):
    async def embed(self, texts, *, purpose):  # type: ignore[override]
        return super().embed(texts, purpose=purpose)


@pytest.fixture
def memory(tmp_path: Path, engines: str) -> Iterator[Memory]:
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


def events(memory: Memory, record_id: str, scope: Scope = ALICE) -> list[str]:
    return [one.event for one in memory.history(record_id, scope)]


@pytest.mark.every_engine
def test_a_deleted_fact_comes_back_with_all_that_it_had(memory: Memory) -> None:
    [record_id] = memory.add(LYON, ALICE).ids
    memory.update(record_id, None, ALICE, metadata={"n": 2}, merge=True)
    before = memory.get(record_id, ALICE)
    memory.delete(record_id, ALICE)
    gone = memory.search("Alice lives in Lyon", ALICE), memory.relations(ALICE)
    [change] = memory.restore(record_id, ALICE).changes

    after = memory.get(record_id, ALICE)
    assert gone == ([], [])
    assert (change.id, change.event, change.text) == (record_id, "RESTORE", LYON.text)
    assert before is not None
    assert after is not None
    assert after.version > before.version
    assert {name for name in before.__slots__ if getattr(before, name) != getattr(after, name)} == {
        "version", "updated_at",
    }  # fmt: skip
    assert memory.search("Alice lives in Lyon", ALICE)[0].record == after
    [lives] = memory.relations(ALICE)
    assert (lives.object, lives.valid_from, lives.supports) == ("Lyon", MAY, (record_id,))
    assert events(memory, record_id) == ["ADD", "UPDATE", "DELETE", "RESTORE"]
    assert memory.history(record_id, ALICE)[-1].metadata == {"source": {"page": 7}, "n": 2}


@pytest.mark.every_engine
def test_a_deleted_turn_comes_back_to_its_place(memory: Memory) -> None:
    texts = ("I ride bikes.", "My kayak is green.", "Chess bores me.")
    said = [Message(text=text, name="Ann", at=MAY) for text in texts]
    ids = memory.add(said, TALK, infer=False).ids
    memory.delete(ids[1], TALK)
    memory.add(Message(text="And a boat."), TALK, infer=False)
    memory.restore(ids[1], ALICE)

    turn = memory.get(ids[1], TALK)
    assert turn is not None
    assert (turn.position, turn.role, turn.name, turn.occurred_at) == (1, "user", "Ann", MAY)
    assert sorted(one.position or 0 for one in memory.list(TALK).records) == [0, 1, 2, 3]
    assert (
        memory.search("Which colour has my kayak?", TALK, kinds=["episode"])[0].record.id == ids[1]
    )


@pytest.mark.every_engine
def test_only_who_may_see_it_restores_it(memory: Memory) -> None:
    [record_id] = memory.add("Alice keeps bees", TALK).ids
    memory.delete(record_id, TALK)
    others = [
        BOB,
        Scope(agent_id="coach"),
        Scope(user_id="alice", agent_id="other"),
        Scope(user_id="alice", session_id="tuesday"),
    ]
    for scope in others:
        with pytest.raises(RecordNotFoundError):
            memory.restore(record_id, scope)
    assert events(memory, record_id) == ["ADD", "DELETE"]

    memory.restore(record_id, Scope(user_id="alice", session_id="monday"))
    assert [one.text for one in memory.list(TALK).records] == ["Alice keeps bees"]


@pytest.mark.every_engine
def test_what_is_not_deleted_is_an_error_with_the_way_out(memory: Memory) -> None:
    [record_id] = memory.add("Alice keeps bees", ALICE).ids
    with pytest.raises(InvalidRecordError, match=r"not deleted\. update\(\) changes it"):
        memory.restore(record_id, ALICE)
    with pytest.raises(RecordNotFoundError):
        memory.restore("unknown", ALICE)
    with pytest.raises(InvalidRecordError):
        memory.restore(7, ALICE)  # type: ignore[arg-type]
    with pytest.raises(RecordNotFoundError):
        memory.restore(record_id, BOB)  # nor does an error tell that somebody else has it
    memory.delete(record_id, ALICE)
    memory.restore(record_id, ALICE)
    with pytest.raises(InvalidRecordError, match="not deleted"):
        memory.restore(record_id, ALICE)
    assert events(memory, record_id) == ["ADD", "DELETE", "RESTORE"]


@pytest.mark.every_engine
def test_nothing_comes_back_after_an_erasure(memory: Memory) -> None:
    [record_id, other] = memory.add(["Alice keeps bees", "Alice rows"], ALICE).ids
    memory.delete(record_id, ALICE)
    assert memory.forget(ALICE).complete
    for one in (record_id, other):
        with pytest.raises(RecordNotFoundError):
            memory.restore(one, ALICE)
    assert memory.admin.list_scopes() == []


@pytest.mark.every_engine
def test_a_restored_value_does_not_displace_a_newer_one(memory: Memory) -> None:
    [lyon] = memory.add(LYON, ALICE).ids
    memory.delete(lyon, ALICE)
    [oslo] = memory.add(Fact(text="Alice lives in Oslo.", relations=(OSLO,)), ALICE).ids
    memory.restore(lyon, ALICE)

    former, newer = memory.get(lyon, ALICE), memory.get(oslo, ALICE)
    assert former is not None
    assert newer is not None
    assert (former.valid_to, newer.valid_to) == (newer.occurred_at, None)
    assert [one.text for one in memory.list(ALICE).records] == ["Alice lives in Oslo."]
    memory.delete(oslo, ALICE)
    assert [one.text for one in memory.list(ALICE).records] == [LYON.text]


@pytest.mark.every_engine
def test_pending_writes_are_seen_in_their_order(memory: Memory) -> None:
    [record_id] = memory.add("Alice keeps bees", ALICE).ids
    memory.update(record_id, "Alice keeps hens", ALICE, metadata={"n": 1}, wait=False)
    memory.delete(record_id, ALICE, wait=False)
    written = memory.restore(record_id, ALICE, wait=False)
    memory.update(record_id, None, ALICE, metadata={"m": 1}, merge=True, wait=False)
    memory.delete(record_id, ALICE, wait=False)
    memory.restore(record_id, ALICE, wait=False)
    memory.flush()

    assert written.pending
    [found] = memory.search("Alice keeps hens", ALICE)
    assert (found.text, found.record.metadata) == ("Alice keeps hens", {"n": 1, "m": 1})
    changed = ["UPDATE", "DELETE", "RESTORE"]
    assert events(memory, record_id) == ["ADD", *changed, *changed]


def test_a_pending_erasure_leaves_nothing_to_restore(tmp_path: Path) -> None:
    class Stuck(HashEmbedder):
        def embed(self, texts, *, purpose):
            raise ConnectionError

    folder, settings = str(tmp_path), Settings(retry_after=60)
    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        [record_id] = memory.add("Alice keeps bees", ALICE).ids
        memory.delete(record_id, ALICE)
    with Memory.open(folder, embedder=Stuck(), settings=settings) as memory:
        written = memory.restore(record_id, ALICE, wait=False)
        with pytest.raises(InvalidRecordError, match="not deleted"):
            memory.restore(record_id, ALICE)
        assert written.pending
        assert memory.get(record_id, ALICE) is None
        assert memory.forget(ALICE).complete
        assert memory.flush().pending == 0
        with pytest.raises(RecordNotFoundError):
            memory.restore(record_id, ALICE)
        assert memory.history(record_id, ALICE) == []


def test_it_goes_on_where_a_process_stopped(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        [record_id] = memory.add("Alice keeps bees", ALICE).ids
        memory.delete(record_id, ALICE)
    with Memory.open(str(tmp_path), embedder=AsyncEmbedder()) as memory:
        with pytest.raises(LoopRequiredError, match=r"^restore\(\) .* Await arestore\(\) "):
            memory.restore(record_id, ALICE)
        memory.restore(record_id, ALICE, wait=False)
        memory.close(0)
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        assert memory.flush().pending == 0
        assert [one.text for one in memory.search("bees", ALICE)] == ["Alice keeps bees"]
        assert events(memory, record_id) == ["ADD", "DELETE", "RESTORE"]


def test_it_can_be_awaited(memory: Memory) -> None:
    async def run() -> str:
        [record_id] = (await memory.aadd("Alice keeps bees", ALICE)).ids
        await memory.adelete(record_id, ALICE)
        return (await memory.arestore(record_id, ALICE)).changes[0].event

    assert asyncio.run(run()) == "RESTORE"


@pytest.mark.every_engine
def test_what_is_hidden_or_pruned_comes_back_as_it_was(memory: Memory) -> None:
    kept, hidden = memory.add(
        [Fact(text="Alice rows"), Fact(text="Alice runs", indexed=False)], ALICE
    ).ids
    pruned = memory.admin.prune(ALICE, keep=0, dry_run=False)
    for one in (kept, hidden):
        memory.restore(one, ALICE)

    assert {one.id for one in pruned} == {kept, hidden}
    assert {one.id: one.indexed for one in memory.list(ALICE).records} == {
        kept: True,
        hidden: False,
    }
    assert [one.record.id for one in memory.search("Alice", ALICE)] == [kept]


def test_a_record_of_a_former_pre_release_has_its_text_and_metadata(tmp_path: Path) -> None:
    import sqlite3

    folder = tmp_path / "memory"
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        [record_id] = memory.add(LYON, ALICE).ids
        memory.delete(record_id, ALICE)
    wiped = "role = NULL, name = NULL, namespace = '[]', situation = NULL, position = NULL"
    connection = sqlite3.connect(folder / "memory.db")
    connection.execute(f"UPDATE record SET {wiped}, times_told = 1, last_told_at = NULL")
    connection.execute("ALTER TABLE record DROP COLUMN retracted")
    connection.commit()
    connection.close()
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        memory.restore(record_id, ALICE)
        [found] = memory.search("Alice lives in Lyon", ALICE)
        assert (found.text, found.record.metadata) == (LYON.text, LYON.metadata)
        assert memory.relations(ALICE) == []
