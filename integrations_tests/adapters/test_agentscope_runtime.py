"""Memory service of agentscope-runtime; `nox -s agentscope_runtime` runs it on the released one."""

import asyncio
import inspect
import logging
import warnings
from typing import Any

import pytest

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Policy,
    SchemaMismatchError,
    Scope,
    StoreUnavailableError,
)
from commonplace.testing.fakes import HashEmbedder

pytest.importorskip(
    "agentscope_runtime", reason="needs agentscope-runtime 1.0: nox -s agentscope_runtime"
)

with warnings.catch_warnings(action="ignore"):  # what it imports is deprecated, and itself too
    from agentscope.message import Msg
    from agentscope_runtime.adapters.agentscope.long_term_memory import AgentScopeLongTermMemory
    from agentscope_runtime.engine.schemas.agent_schemas import Message, TextContent
    from agentscope_runtime.engine.services.memory import InMemoryMemoryService
    from agentscope_runtime.engine.services.memory import MemoryService as Base

    from commonplace_agentscope.runtime_service import MemoryService

from ..isolation.asking import Asker, ask, check

ALICE = Scope(user_id="alice")


def say(text, role="user", **more: Any):
    return Message(role=role, content=[TextContent(text=text)], **more)


def texts(messages):
    return [one.content[0].text for one in messages]


@pytest.fixture
async def service(memory):
    async with MemoryService(client=memory) as started:
        yield started


@pytest.mark.parametrize("name", ["add_memory", "search_memory", "list_memory", "delete_memory"])
def test_a_method_takes_what_the_runtimes_takes(name):
    assert [*inspect.signature(getattr(MemoryService, name)).parameters] == [
        *inspect.signature(getattr(InMemoryMemoryService, name)).parameters
    ]
    assert issubclass(MemoryService, Base)


@pytest.mark.parametrize("kind", [InMemoryMemoryService, MemoryService])
async def test_what_both_services_do_alike(memory, kind):
    given = {"client": memory} if kind is MemoryService else {}
    async with kind(**given) as service:
        cats, dogs = say("My cat is called Miso."), say("My dog is called Rex.")
        await service.add_memory("alice", [cats], "b")
        await service.add_memory("alice", [dogs], "a")
        await service.add_memory("alice", [say("I like tea.")])
        await service.add_memory("alice", [])
        await service.add_memory("bob", [say("My cat is called Momo.")])

        found = await service.search_memory("alice", [say("Miso")], {"top_k": 1})
        assert texts(found) == ["My cat is called Miso."]
        assert found[0].role == "user"
        assert await service.search_memory("nobody", [say("cat")]) == []
        assert await service.search_memory("alice", []) == []
        assert await service.search_memory("alice", [say("")]) == []
        call = Message(type="plugin_call", role="assistant", content=[TextContent(text="cat")])
        assert await service.search_memory("alice", [call]) == []

        listed = ["My dog is called Rex.", "My cat is called Miso.", "I like tea."]
        assert texts(await service.list_memory("alice")) == listed
        page = {"page_num": 2, "page_size": 2}
        assert texts(await service.list_memory("alice", page)) == listed[2:]
        assert await service.list_memory("nobody") == []

        await service.delete_memory("alice", "b")
        await service.delete_memory("alice", "unknown")
        await service.delete_memory("nobody")
        assert texts(await service.list_memory("alice")) == [listed[0], listed[2]]
        await service.delete_memory("alice")
        assert await service.list_memory("alice") == []
        assert texts(await service.list_memory("bob")) == ["My cat is called Momo."]
        assert await service.health() is True
    assert await service.health() is False


@pytest.mark.parametrize("kind", [InMemoryMemoryService, MemoryService])
async def test_a_service_that_is_not_started_says_so(memory, kind):
    service = kind(**{"client": memory} if kind is MemoryService else {})

    assert await service.health() is False
    for call in (
        service.add_memory("alice", [say("tea")]),
        service.search_memory("alice", [say("tea")]),
        service.list_memory("alice"),
        service.delete_memory("alice"),
    ):
        with pytest.raises(RuntimeError, match="not started"):
            await call


async def test_a_folder_outlives_its_service(tmp_path):
    def new():
        return MemoryService(path=str(tmp_path), embedding_model=HashEmbedder())

    first = new()
    for _ in range(2):  # it can be started again
        async with first as service:
            await service.add_memory("alice", [say("My cat is called Miso.", id="m1")])
    async with new() as service:
        assert texts(await service.list_memory("alice")) == ["My cat is called Miso."]


async def test_other_agents_share_what_a_service_learned(memory, service):
    await service.add_memory("alice", [say("My cat is called Miso.")], "s1")
    memory.add("Alice has a dog called Rex.", ALICE)

    (turn,) = memory.list(Scope(user_id="alice", session_id="s1")).records
    assert (turn.kind, turn.role, turn.text) == ("episode", "user", "My cat is called Miso.")
    (found,) = await service.search_memory("alice", [say("dog called Rex")], {"top_k": 1})
    assert (texts([found]), found.role) == (["Alice has a dog called Rex."], None)


async def test_a_message_is_stored_once_and_its_session_again(service):
    message = say("I like tea.")
    for session in ("a", "a", "b"):
        await service.add_memory("alice", [message], session)

    assert len(await service.list_memory("alice")) == 2


async def test_messages_may_be_dicts_and_calls_have_no_text(service):
    call = {"type": "plugin_call", "role": "assistant", "content": [{"type": "data", "data": {}}]}
    told = {"role": "user", "content": [{"type": "text", "text": "I like tea."}]}
    await service.add_memory("alice", [call, told, {"role": "user", "content": "And cocoa."}])

    assert sorted(texts(await service.list_memory("alice"))) == ["And cocoa.", "I like tea."]


async def test_more_messages_than_one_write_takes(service):
    await service.add_memory("alice", [say(f"Number {number}.") for number in range(1_100)])
    last = await service.list_memory("alice", {"page_num": 11, "page_size": 100})

    assert texts(last) == [f"Number {number}." for number in range(1_000, 1_100)]


async def test_the_runtimes_long_term_memory_runs_on_it(memory, service):
    memory.add("Alice likes green tea.", ALICE)
    long_term = AgentScopeLongTermMemory(service, "alice", "s1")
    asked = Msg("Alice", "Which tea do I like?", "user")
    note = await long_term.retrieve(asked, limit=1)
    hint = Msg("long_term_memory", f"<long_term_memory>{note}</long_term_memory>", "user")
    answer = Msg("bot", "Green tea.", "assistant")
    for _ in range(2):  # it hands over its whole history each time
        await long_term.record([asked, hint, answer])

    assert "Alice likes green tea." in note
    assert texts(await service.list_memory("alice")) == [
        "Alice likes green tea.",
        "Which tea do I like?",
        "Green tea.",
    ]


async def test_an_agents_part_of_the_scope_is_its_own(memory):
    async with MemoryService(client=memory, agent_id="helper") as service:
        await service.add_memory("alice", [say("I like tea.")])
    async with MemoryService(client=memory, agent_id="other") as service:
        assert await service.list_memory("alice") == []

    assert [one.scope.agent_id for one in memory.list(ALICE).records] == ["helper"]


@pytest.mark.parametrize("filters", [{"page_num": 0}, {"page_size": -1}, {"page_size": "ten"}])
async def test_a_page_that_cannot_be_is_refused(service, filters):
    with pytest.raises(InvalidRecordError):
        await service.list_memory("alice", filters)


async def test_an_id_that_no_scope_can_hold_is_refused(service):
    for call in (
        service.add_memory("*", [say("tea")]),
        service.search_memory("*", [say("tea")]),
        service.list_memory("*"),
        service.delete_memory("*"),
    ):
        with pytest.raises(InvalidScopeError):
            await call


@pytest.mark.parametrize(
    "given", [{"client": object()}, {"chat_model": object()}, {"embedding_model": object()}]
)
def test_what_is_of_another_library_is_refused(given):
    with pytest.raises(TypeError):
        MemoryService(**given)


async def test_a_failing_memory_fails_a_write_and_no_search(memory, service, monkeypatch, caplog):
    async def fail(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="down")

    caplog.set_level(logging.WARNING, "commonplace_agentscope")
    for name in ("asearch", "aadd", "alist"):
        monkeypatch.setattr(memory, name, fail)

    with pytest.raises(StoreUnavailableError):
        await service.add_memory("alice", [say("I like tea.")])
    for _ in range(2):
        assert await service.search_memory("alice", [say("tea")]) == []
    assert await service.health() is False
    assert (service.counters().failed, service.counters().written) == (3, 0)
    logged = [one.message.split(";")[0].split(" failed")[0] for one in caplog.records]
    assert logged == ["memory add_memory", "memory search_memory", "memory health"]


async def test_a_hung_search_is_left_behind(memory, monkeypatch):
    async def hang(*args: Any, **options: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(memory, "asearch", hang)
    async with MemoryService(memory, policy=Policy(recall_timeout=0.1)) as service:
        assert await service.search_memory("alice", [say("tea")]) == []
        assert service.counters().timed_out == 1


async def test_a_policy_says_what_is_found_and_stored(memory):
    project = Policy(where={"project": "x"}, metadata={"project": "x"}, kinds=("episode",), top_k=1)
    cats = [say("My cat is called Miso."), say("My other cat is called Momo.")]
    async with MemoryService(memory, agent_id="bot") as service:
        await service.add_memory("alice", cats)
        assert len(await service.search_memory("alice", [say("cat")])) == 2
    async with MemoryService(memory, agent_id="bot", policy=project) as service:
        assert await service.search_memory("alice", [say("cat")]) == []
        await service.add_memory("alice", cats, "x")
        assert len(await service.search_memory("alice", [say("cat")])) == 1
        assert len(await service.search_memory("alice", [say("cat")], {"top_k": 9})) == 2
    for is_narrow in (True, False):
        policy = Policy(scope_search_by_agent=is_narrow, threshold=0.0, top_k=9)
        async with MemoryService(memory, agent_id="other", policy=policy) as service:
            found = await service.search_memory("alice", [say("cat")])
            assert bool(found) is not is_narrow


async def test_a_folder_of_another_embedder_does_not_start(tmp_path):
    Memory.open(str(tmp_path), embedder=HashEmbedder()).close()
    service = MemoryService(path=str(tmp_path), embedding_model=HashEmbedder(16))
    with pytest.raises(SchemaMismatchError):
        await service.start()

    assert await service.health() is False


def test_no_call_hands_out_what_is_of_another_user(memory):
    service = MemoryService(client=memory)
    sessions = ("s", "s1", None)

    async def add_memory(asker: Asker) -> Any:
        await service.add_memory(asker.user, [say(asker.text)], asker.random.choice(sessions))

    async def search_memory(asker: Asker) -> Any:
        found = await service.search_memory(asker.user, [say(asker.query)])
        return [*map(repr, found)]

    async def list_memory(asker: Asker) -> Any:
        return [*map(repr, await service.list_memory(asker.user))]

    async def delete_memory(asker: Asker) -> Any:
        if asker.number % 5 == 0:
            await service.delete_memory(asker.user, asker.random.choice(sessions))

    cases = [add_memory, search_memory, list_memory, delete_memory]
    with asyncio.Runner() as runner:
        runner.run(service.start())
        seen = ask({one.__name__: one for one in cases}, 400)
        runner.run(service.stop())

    check(seen, "add_memory", "delete_memory")
