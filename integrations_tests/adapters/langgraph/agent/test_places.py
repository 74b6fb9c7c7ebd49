"""What memory an adapter's object uses: an open one, that of a path, or the environment's."""

import asyncio
import threading
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from commonplace import Memory, SchemaMismatchError, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import (
    CommonplaceSaver,
    CommonplaceStore,
    MemoryMiddleware,
    MemoryRetriever,
    memory_tools,
    recall_hook,
    remember_node,
)

ALICE = Scope(user_id="alice")
TOLD = {"messages": [HumanMessage("My cat is called Miso.")]}


@pytest.fixture
def hashed(monkeypatch):
    """Let memories that are opened by a path embed without the model, which takes a second."""
    monkeypatch.setattr("commonplace.models.sentence_encoder.SentenceEncoder", HashEmbedder)


@pytest.fixture(params=["open", "text", "path", "environment", "default"])
def given(request, tmp_path, monkeypatch, hashed):
    """What an object is given, where the memory is `tmp_path / "memory"`."""
    place = tmp_path / "memory"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMMONPLACE_PATH", raising=False)
    if request.param == "open":
        with Memory.open(str(place)) as memory:
            yield [memory]
        return
    if request.param == "environment":
        monkeypatch.setenv("COMMONPLACE_PATH", str(place))
        monkeypatch.chdir("/")
    yield {"text": ["memory"], "path": [place]}.get(request.param, [])


@pytest.mark.parametrize("is_async", [False, True])
async def test_all_parts_take_a_memory_a_path_or_nothing(
    given, tmp_path, make, model, context, is_async
):
    chat, recalling = model(), model()
    agent = make(
        chat,
        MemoryMiddleware(*given),
        store=CommonplaceStore(*given),
        checkpointer=CommonplaceSaver(*given),
    )
    config = {"configurable": {"thread_id": "t", "user_id": "alice"}}
    chain = recall_hook(*given) | recalling
    remember = remember_node(*given)
    [search, _] = memory_tools(*given, user_id="alice")
    retriever = MemoryRetriever(**({"memory": given[0]} if given else {}))
    question = [HumanMessage("How is my cat called?")]
    if is_async:
        await agent.ainvoke(TOLD, config, context=context("alice"))
        await remember.ainvoke([HumanMessage("My dog is called Rex.")], config)
        await chain.ainvoke(question, config)
        found = await retriever.ainvoke("cat", config)
        answer = await search.ainvoke({"keywords": ["cat"]})
    else:
        agent.invoke(TOLD, config, context=context("alice"))
        remember.invoke([HumanMessage("My dog is called Rex.")], config)
        chain.invoke(question, config)
        found = retriever.invoke("cat", config)
        answer = search.invoke({"keywords": ["cat"]})

    assert "My cat is called Miso." in recalling.shown()
    assert "My cat is called Miso." in answer
    assert "My cat is called Miso." in [document.page_content for document in found]
    assert len(agent.get_state(config).values["messages"]) == 2
    agent.store.put(("memories", "alice"), "bird", {"content": "Alice has a parrot."})
    assert [one.key for one in agent.store.search(("memories", "alice"), query="cat")] == ["bird"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory"]
    with Memory.open(str(tmp_path / "memory")) as memory:
        told = [record.text for record in memory.list(ALICE).records]
    assert {"My cat is called Miso.", "My dog is called Rex.", "Alice has a parrot."} < set(told)


async def test_a_memory_is_opened_away_from_the_event_loop(
    tmp_path, make, model, context, monkeypatch, hashed
):
    place, opened_in, open_memory = str(tmp_path), [], Memory.open

    def note_thread(*args, **options):
        opened_in.append(threading.current_thread())
        return open_memory(*args, **options)

    monkeypatch.setattr(Memory, "open", note_thread)
    saver, store = CommonplaceSaver(place), CommonplaceStore(place)
    agent = make(model(), MemoryMiddleware(place), checkpointer=saver, store=store)
    config = {"configurable": {"thread_id": "t"}}
    await agent.ainvoke(TOLD, config, context=context("alice"))
    assert await store.asearch(("memories", "alice")) == []

    assert len(opened_in) == 3
    assert threading.current_thread() not in opened_in
    await store.aclose()
    await asyncio.to_thread(saver.close)


def test_objects_that_are_made_for_each_turn_share_the_memory_of_a_path(
    tmp_path: Path, make, model, context, hashed
):
    middlewares = [MemoryMiddleware(tmp_path) for _ in range(3)]
    for middleware in middlewares:
        make(model(), middleware).invoke(TOLD, context=context("alice"))

    memories = {middleware._memory.lazy.get() for middleware in middlewares}
    assert len(memories) == 1
    assert [middleware.counters().written for middleware in middlewares] == [1, 1, 1]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_memory_that_cannot_be_opened_as_configured_fails_the_run(
    tmp_path, make, model, hashed, is_async
):
    with Memory.open(str(tmp_path), embedder=HashEmbedder(dimensions=32)):
        pass
    agent = make(model(), MemoryMiddleware(tmp_path, user_id="alice"))

    with pytest.raises(SchemaMismatchError):
        await agent.ainvoke(TOLD) if is_async else agent.invoke(TOLD)
