"""Events of a memory's own calls, told to a function."""

import threading

import pytest

from commonplace import Delete, Fact, InvalidRecordError, Memory, Message, Scope, Upsert
from commonplace.testing.fakes import HashEmbedder

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")

RAIN = [
    Upsert(facts=[Fact(text="It rains."), Fact(text="It is wet.")], scope=ALICE),
    Upsert(facts=[Fact(text="It rains.")], scope=BOB),
]


async def live(memory, *, is_async):
    async def do(name, *args, **kwargs):
        if is_async:
            return await getattr(memory, f"a{name}")(*args, **kwargs)
        return getattr(memory, name)(*args, **kwargs)

    done = await do("add", ["Alice skis.", Message(text="Hello.")], ALICE)
    await do("add", "Alice sings.", ALICE, wait=False)
    await do("flush")
    assert await do("search", "What does Alice do?", ALICE, top_k=1)
    await do("search", "What does Bob do?", [BOB])
    with pytest.raises(InvalidRecordError):
        await do("search", "", ALICE)
    await do("get", done.ids[0], ALICE)
    await do("get", done.ids[0], scope=BOB)
    await do("update", done.ids[0], "Alice skates.", ALICE)
    await do("history", done.ids[0], ALICE)
    await do("batch", RAIN)
    await do("batch", [Delete(record_id=done.ids[0], scope=ALICE)])
    await do("diagram", ALICE)
    await do("forget", ALICE)
    with pytest.raises(InvalidRecordError):
        await do("search", "Whose?", "alice")


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_call_is_an_event_of_its_scope(tmp_path, is_async):
    events = []
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), on_event=events.append) as memory:
        await live(memory, is_async=is_async)

    told = [f"{one.operation} {one.name} {one.scope.user_id} {one.count}" for one in events]
    assert told == [
        "add written alice 2", "add written alice 1", "search recalled alice 1",
        "search empty bob 0", "search failed alice 0", "get recalled alice 1", "get empty bob 0",
        "update written alice 1", "history recalled alice 2", "batch written alice 2",
        "batch written bob 1", "batch written alice 1", "relations empty alice 0",
        "forget written alice 5",  # with the one that is deleted
    ]  # fmt: skip
    assert [type(one.error) for one in events if one.error] == [InvalidRecordError]
    assert all(0 <= one.seconds < 60 for one in events)


def test_a_write_that_is_not_in_time_is_late(tmp_path):
    class Slow(HashEmbedder):
        def embed(self, texts, *, purpose):
            started.wait(10)
            return super().embed(texts, purpose=purpose)

    started, events = threading.Event(), []
    with Memory.open(str(tmp_path), embedder=Slow(), on_event=events.append) as memory:
        memory.add("Alice skis.", ALICE, wait=0.05)
        started.set()
    assert [(one.operation, one.name) for one in events] == [("add", "late")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_that_fails_changes_nothing_and_is_logged_once(tmp_path, caplog, is_async):
    def fail(event):
        raise ValueError(event.name)

    opening = Memory.aopen(str(tmp_path), embedder=HashEmbedder(), on_event=fail)
    async with opening as memory:
        await live(memory, is_async=is_async)

    assert [one.getMessage() for one in caplog.records] == [
        "memory on_event failed: ValueError('written')"
    ]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_memory_that_the_environment_names_has_events_too(tmp_path, monkeypatch, is_async):
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))
    events = []
    if is_async:
        async with Memory.afrom_env(on_event=events.append) as memory:
            await memory.alist(ALICE)
    else:
        with Memory.from_env(on_event=events.append) as memory:
            memory.list(ALICE)
    assert [(one.operation, one.name) for one in events] == [("list", "empty")]


@pytest.mark.parametrize("given", [lambda: 1, 3])
def test_what_takes_no_event_is_refused(tmp_path, given):
    with pytest.raises(InvalidRecordError, match="on_event="):
        Memory.open(str(tmp_path), embedder=HashEmbedder(), on_event=given)
