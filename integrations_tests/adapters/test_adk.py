"""Agents of Google's ADK with a scripted model: what they recall, keep and forget."""

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from subprocess import PIPE, Popen
from typing import Any, ClassVar

import pytest

pytest.importorskip("google.adk", reason="pip install 'commonplace-memory[adk]'")

from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import load_memory, preload_memory
from google.genai.types import Content, FunctionCall, Part
from pydantic import Field

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    Policy,
    Scope,
    Settings,
    StoreUnavailableError,
)
from commonplace.testing.contracts.adapter import (
    AdapterContract,
    PolicyContract,
    PolicyFieldsContract,
)
from commonplace.testing.fakes import HashEmbedder
from commonplace_adk import CommonplaceMemoryService, CommonplaceSessionService, PreloadNoteTool

from . import adk_child

ALICE = Scope(user_id="alice")
OURS = {"app_name": "app", "user_id": "alice"}


class Scripted(BaseLlm):
    """Answers from its script, then always the same; keeps what was on the wire."""

    model: str = "scripted"
    script: list[Any] = Field(default_factory=list)
    seen: list[str] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        shown = [llm_request.config.system_instruction or ""]
        for part in (part for one in llm_request.contents for part in one.parts):
            answer = part.function_response
            shown.append(part.text or (str(answer.response) if answer else ""))
        self.seen.append("\n".join(shown))
        answer = self.script.pop(0) if self.script else "All right."
        await asyncio.sleep(0)
        part = Part(text=answer) if isinstance(answer, str) else Part(function_call=answer)
        yield LlmResponse(content=Content(role="model", parts=[part]))


async def save(callback_context, llm_request=None):
    await callback_context.add_session_to_memory()


def make(*tools, script=(), name="cook", **more):
    model = Scripted(script=[*script], seen=[])
    return LlmAgent(name=name, model=model, tools=[*tools], after_agent_callback=save, **more)


def text(said, role="user"):
    return Content(role=role, parts=[Part(text=said)])


def said(words, author="user", **more):
    return Event(author=author, content=text(words), invocation_id="i", **more)


async def run(agent, question, memories, sessions, *, app="app", user="alice", session=None):
    """Take a turn, in a new session unless one is named; return what was answered."""
    runner = Runner(agent=agent, app_name=app, session_service=sessions, memory_service=memories)
    if session is None:
        session = (await sessions.create_session(app_name=app, user_id=user)).id
    events = runner.run_async(user_id=user, session_id=session, new_message=text(question))
    answers = [one.content.parts[0].text async for one in events if one.is_final_response()]
    return answers[-1]


@pytest.fixture
def sessions(memory):
    return CommonplaceSessionService(memory)


@pytest.fixture
def service(memory):
    return CommonplaceMemoryService(memory)


class TestAdk(AdapterContract, PolicyContract, PolicyFieldsContract):
    without_effect: ClassVar[dict[str, str]] = {
        "mode": "the agent is given ADK's tools, and what is written",
        "tools": "the model's tools are ADK's",
        "tool_instructions": "the model's tools are ADK's",
    }

    @pytest.fixture
    def turn_with(self, memory, sessions):
        def turn(policy, *, agent_id=None, conversation=None):
            if agent_id is None:  # ADK always names an app
                policy = dataclasses.replace(policy, scope_search_by_agent=False)
            app = agent_id or "app"
            service = CommonplaceMemoryService(memory, policy=policy)
            tool = PreloadNoteTool(service)

            async def take(user, asked):
                agent, name = make(tool), None
                if conversation:
                    name = conversation
                    if not await sessions.get_session(app_name=app, user_id=user, session_id=name):
                        await sessions.create_session(app_name=app, user_id=user, session_id=name)
                await run(agent, asked, service, sessions, app=app, user=user, session=name)
                return agent.model.seen[-1]

            return take

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, broken):
        service = CommonplaceMemoryService(broken)

        async def take(user, asked):
            agent = make(PreloadNoteTool(service), preload_memory)
            await run(agent, asked, service, InMemorySessionService(), user=user)
            return agent.model.seen[-1]

        return take


# -- memory ----------------------------------------------------------------------------------------


@pytest.fixture(params=["ADK's", "ours"])
def services(request, memory):
    if request.param == "ours":
        return CommonplaceMemoryService(memory), CommonplaceSessionService(memory)
    return InMemoryMemoryService(), InMemorySessionService()


async def test_the_example_of_adk_runs_on_both(services):
    """What ADK's pages show: one agent is told, another looks it up in a later session."""
    memories, sessions = services
    capture = LlmAgent(name="InfoCaptureAgent", model=Scripted(seen=[]))
    await sessions.create_session(**OURS, session_id="info")
    await run(capture, "My favourite project is Alpha.", memories, sessions, session="info")
    done = await sessions.get_session(**OURS, session_id="info")
    await memories.add_session_to_memory(done)

    search = FunctionCall(name="load_memory", args={"query": "favourite project"})
    model = Scripted(script=[search, "It is Alpha."], seen=[])
    recall = LlmAgent(name="MemoryRecallAgent", model=model, tools=[load_memory])
    answer = await run(recall, "What is my favourite project?", memories, sessions)

    assert answer == "It is Alpha."
    assert "My favourite project is Alpha." in model.seen[-1]
    assert "Alpha" not in model.seen[0]
    for other in ({"user_id": "bob"}, {"app_name": "other"}):
        found = await memories.search_memory(**{**OURS, **other}, query="favourite project")
        assert found.memories == []
    found = await memories.search_memory(**OURS, query="favourite project")
    [entry] = [one for one in found.memories if "Alpha" in one.content.parts[0].text]
    assert (entry.author, entry.content.role) == ("user", "user")
    await memories.delete_memory(**OURS, memory_id="of nothing")
    await memories.delete_memory(**OURS, memory_id=entry.id)
    found = await memories.search_memory(**OURS, query="favourite project")
    assert "Alpha" not in str(found)
    await memories.add_session_to_memory(done)
    assert "Alpha" not in str(await memories.search_memory(**OURS, query="favourite project"))


async def test_adks_own_tool_shows_what_was_told(service, sessions):
    await run(make(), "My cat is called Miso.", service, sessions)
    agent = make(preload_memory)
    await run(agent, "What is my cat called?", service, sessions)

    assert "user: My cat is called Miso." in agent.model.seen[-1]


async def test_a_session_that_grows_is_added_as_often_as_one_likes(service, sessions, memory):
    session = (await sessions.create_session(**OURS)).id
    agent = make(script=["One.", "Two.", "Three."])
    for number in range(3):
        await run(agent, f"I have {number} cats.", service, sessions, session=session)
    told = await sessions.get_session(**OURS, session_id=session)
    await CommonplaceMemoryService(memory).add_session_to_memory(told)  # as after a restart
    await service.add_events_to_memory(**OURS, events=told.events[-2:], session_id=session)

    stored = memory.session(Scope(user_id="alice", agent_id="app", session_id=session)).messages()
    expected = ["I have 0 cats.", "One.", "I have 1 cats.", "Two.", "I have 2 cats.", "Three."]
    assert [one.text for one in stored] == expected
    assert {one.name for one in stored} == {None, "cook"}


async def test_what_was_removed_does_not_come_back_with_its_session(service, memory):
    session = Session(id="s", **OURS, events=[said("Miso is a cat."), said("Rex is a dog.")])
    await service.add_session_to_memory(session)
    [dog] = [one for one in memory.list(ALICE).records if "Rex" in one.text]
    await service.delete_memory(**OURS, memory_id=dog.id)
    again = CommonplaceMemoryService(memory)  # as after a restart
    await again.add_session_to_memory(session)
    assert [one.text for one in memory.list(ALICE).records] == ["Miso is a cat."]

    assert memory.forget(ALICE).complete
    session.events.append(said("Momo is a hamster."))
    for one in (service, again):
        await one.add_session_to_memory(session)
        await one.add_events_to_memory(**OURS, events=session.events, session_id="s")
    assert [one.text for one in memory.list(ALICE).records] == ["Momo is a hamster."]


async def test_what_nobody_said_is_not_remembered(service, memory):
    parts = [Part(text="I think.", thought=True), Part(text="So be it.")]
    events = [
        said("Half of", "cook", partial=True),
        Event(author="cook", content=Content(role="model", parts=parts)),
        Event(author="cook"),
        Event(author="cook", content=Content(role="model")),
    ]
    await service.add_events_to_memory(**OURS, events=events, custom_metadata={"x": 1})

    [record] = memory.list(ALICE).records
    assert (record.text, record.role, record.metadata) == ("So be it.", "assistant", {"x": 1})
    assert record.scope == Scope(user_id="alice", agent_id="app")


async def test_a_fact_is_added_and_read_and_deleted_by_its_user_alone(service, memory):
    entry = MemoryEntry(
        content=text("Alice is allergic to nuts."),
        custom_metadata={"source": "form"},
        timestamp="2026-05-04T10:00:00+00:00",
    )
    await service.add_memory(**OURS, memories=[entry], custom_metadata={"by": "import"})
    [found] = (await service.search_memory(**OURS, query="allergic to nuts")).memories

    assert found.content.parts[0].text == "Alice is allergic to nuts."
    assert found.timestamp == "2026-05-04T10:00:00+00:00"
    assert {
        "source": "form",
        "by": "import",
        "kind": "fact",
    }.items() <= found.custom_metadata.items()
    await service.delete_memory(app_name="app", user_id="bob", memory_id=found.id)
    assert len(memory.list(ALICE).records) == 1
    await service.delete_memory(**OURS, memory_id=found.id)
    assert len(memory.list(ALICE).records) == 0
    with pytest.raises(InvalidRecordError):
        await service.add_memory(**OURS, memories=[MemoryEntry(content=Content())])


async def test_what_is_said_while_the_memory_fails_is_written_later(memory, monkeypatch, caplog):
    def fail(*_given: Any, **_options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="down")

    events, sessions = [], InMemorySessionService()
    service = CommonplaceMemoryService(memory, on_event=events.append)
    entry = MemoryEntry(content=text("Alice is allergic to nuts."))
    with monkeypatch.context() as broken:
        for name in ("add", "aadd", "search", "asearch", "list", "alist", "session"):
            broken.setattr(memory, name, fail)
        for number in range(2):
            agent = make(preload_memory, PreloadNoteTool(service))
            assert await run(agent, f"I have {number} cats.", service, sessions) == "All right."
        with pytest.raises(StoreUnavailableError):
            await service.add_memory(**OURS, memories=[entry])
    assert {"failed", "waiting"} <= {one.name for one in events}
    assert len([one for one in caplog.records if one.name == "commonplace_adk"]) == 2

    await run(make(), "I have 2 cats.", service, sessions)
    memory.flush()
    stored = {one.text for one in memory.list(ALICE).records}
    assert {f"I have {number} cats." for number in range(3)} <= stored


async def test_what_is_accepted_while_the_model_fails_is_not_written_again(tmp_path):
    class Failing(HashEmbedder):
        def embed(self, texts, *, purpose):
            if fails:
                raise ConnectionError("the embedder is away")
            return super().embed(texts, purpose=purpose)

    fails, events = True, []
    session = Session(id="s", app_name="app", user_id="alice", events=[])
    settings = Settings(retry_after=0.05)
    with Memory.open(str(tmp_path), embedder=Failing(), settings=settings) as memory:
        service = CommonplaceMemoryService(memory, on_event=events.append)
        for turn in range(2):
            for words, author in ((f"I have {turn} cats.", "user"), ("I see.", "cook")):
                session.events.append(said(words, author))
                await service.add_session_to_memory(session)
        assert [(one.name, one.count) for one in events] == [("failed", 1)] * 4
        fails = False
        memory.flush()
        told = [one.text for one in memory.list(ALICE)]
    assert told == ["I see.", "I have 1 cats.", "I see.", "I have 0 cats."]


async def test_a_turn_without_an_end_keeps_what_was_said_before_the_model(
    service, sessions, memory
):
    async def fail(callback_context, llm_request):
        await save(callback_context)
        raise RuntimeError("overloaded")

    failing = make(before_model_callback=fail)
    runner = Runner(
        agent=failing, app_name="app", session_service=sessions, memory_service=service,
        auto_create_session=True,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="overloaded"):
        async for _ in runner.run_async(
            user_id="alice", session_id="s", new_message=text("I keep bees.")
        ):
            pass
    agent = make(PreloadNoteTool(service), before_model_callback=save)
    for _ in range(2):
        await run(agent, "How many bees do I keep?", service, sessions)

    assert "user: I keep bees." in agent.model.seen[0]
    told = sorted((one.role, one.text) for one in memory.list(ALICE).records)
    asked = [("assistant", "All right."), ("user", "How many bees do I keep?")] * 2
    assert told == sorted([("user", "I keep bees."), *asked])


async def test_what_adk_compacts_is_the_summary_of_the_session(service, memory):
    told, later = said("Miso is ill."), said("Miso is well.")
    session = Session(id="s", app_name="app", user_id="alice", events=[told, later])
    compaction = EventCompaction(
        start_timestamp=0,
        end_timestamp=told.timestamp,
        compacted_content=text("Miso was ill.", "model"),
    )
    session.events.append(Event(author="user", actions=EventActions(compaction=compaction)))
    await service.add_session_to_memory(session)

    scope = Scope(user_id="alice", agent_id="app", session_id="s")
    summary = memory.session(scope).summary()
    assert summary.text == "Miso was ill."
    assert [one.text for one in memory.get_many(summary.sources, scope)] == ["Miso is ill."]
    memory.forget(ALICE)
    assert memory.session(scope).summary() is None


async def test_ids_that_no_scope_can_hold_are_refused_by_all(service, sessions):
    for ids in ({"user_id": "*"}, {"user_id": " alice"}, {"app_name": "a\nb"}, {"user_id": ""}):
        named = {**OURS, **ids}
        session = Session(id="s", **named)
        for call in (
            service.search_memory(**named, query="x"),
            service.add_session_to_memory(session.model_copy(update={"events": [said("x")]})),
            service.add_memory(**named, memories=[]),
            sessions.create_session(**named),
            sessions.get_session(**named, session_id="s"),
            sessions.list_sessions(**named),
            sessions.append_event(session, said("x")),
        ):
            with pytest.raises(InvalidScopeError):
                await call


def test_notes_that_stay_are_refused(memory):
    with pytest.raises(InvalidRecordError, match="inject"):
        CommonplaceMemoryService(memory, policy=Policy(inject="persist"))


async def test_the_path_of_a_memory_is_enough(tmp_path):
    for _ in range(2):
        service, sessions = CommonplaceMemoryService(tmp_path), CommonplaceSessionService(tmp_path)
        await run(make(), "My cat is called Miso.", service, sessions)

    assert service.counters().written >= 1
    assert len((await sessions.list_sessions(**OURS)).sessions) == 2


# -- sessions --------------------------------------------------------------------------------------


def changes(**state):
    return said("x", actions=EventActions(state_delta=state))


def own(session):
    return {key: value for key, value in session.state.items() if ":" not in key}


class SessionContract:
    """What the session service promises, on any store; `kept` is a memory."""

    @pytest.fixture
    def sessions(self, kept):
        return CommonplaceSessionService(kept)

    async def test_state_is_of_the_session_the_user_and_the_app(self, sessions, kept):
        state = {"a": 1, "user:b": 2, "app:c": 3, "temp:d": 4}
        one = await sessions.create_session(**OURS, session_id="s", state=state)
        delta = {"a": None, "user:e": [5], "app:c": {"x": "猫"}, "temp:f": 6}
        await sessions.append_event(one, said("x", actions=EventActions(state_delta=delta)))
        assert one.state["temp:f"] == 6

        kept = {"a": None, "user:b": 2, "user:e": [5], "app:c": {"x": "猫"}}
        again = await sessions.get_session(**OURS, session_id="s")
        assert again.state == kept
        assert again.events[0].actions.state_delta == {
            key: delta[key] for key in delta if key[0] != "t"
        }
        other = await sessions.create_session(**OURS)
        assert other.state == {key: kept[key] for key in kept if key != "a"}
        assert await sessions.get_user_state(**OURS) == {"b": 2, "e": [5]}
        bob = await sessions.create_session(app_name="app", user_id="bob")
        assert bob.state == {"app:c": {"x": "猫"}}
        elsewhere = await sessions.create_session(app_name="other", user_id="alice")
        assert elsewhere.state == {}

    async def test_forgetting_a_user_leaves_nothing_of_the_user(self, service, sessions, kept):
        session = await sessions.create_session(
            **OURS, session_id="s", state={"x": "Miso", "user:y": "Miso", "app:z": "theirs"}
        )
        await run(make(), "My cat is called Miso.", service, sessions, session="s")
        await sessions.create_session(**OURS, session_id="t")
        await sessions.create_session(app_name="app", user_id="bob", session_id="s")

        assert kept.forget(Scope(user_id="alice", session_id="s")).complete
        assert await sessions.get_session(**OURS, session_id="s") is None
        assert await sessions.get_session(**OURS, session_id="t") is not None
        assert await sessions.get_user_state(**OURS) == {"y": "Miso"}
        assert kept.forget(ALICE).complete
        assert set(kept.admin.checkpoints.count(ALICE).values()) == {0}
        assert kept.list(ALICE).records == ()
        assert await sessions.get_user_state(**OURS) == {}
        assert (await sessions.list_sessions(**OURS)).sessions == []
        [bob] = (await sessions.list_sessions(app_name="app")).sessions
        assert (bob.user_id, bob.state) == ("bob", {"app:z": "theirs"})
        with pytest.raises(SessionNotFoundError):
            await sessions.append_event(session, said("late"))
        assert set(kept.admin.checkpoints.count(ALICE).values()) == {0}

    async def test_one_object_may_be_appended_to_at_once(self, sessions):
        session = await sessions.create_session(**OURS, session_id="s")
        await asyncio.gather(*(sessions.append_event(session, said(str(one))) for one in range(9)))

        done = await sessions.get_session(**OURS, session_id="s")
        assert sorted(one.content.parts[0].text for one in done.events) == [*"012345678"]
        assert len(session.events) == 9

    async def test_a_session_that_was_not_read_here_is_told_by_its_events(self, sessions):
        first = await sessions.create_session(**OURS, session_id="s")
        await sessions.append_event(first, said("one", timestamp=first.last_update_time + 1))
        made = Session(id="s", **OURS, events=first.events)
        await sessions.append_event(made, said("two", timestamp=first.last_update_time + 1))
        with pytest.raises(StaleSessionError, match="read it again"):
            await sessions.append_event(Session(id="s", **OURS), said("three"))
        with pytest.raises(StaleSessionError):
            await sessions.append_event(first, said("three"))
        await sessions.delete_session(**OURS, session_id="s")
        anew = await sessions.create_session(**OURS, session_id="s")
        for gone in (first, made):
            with pytest.raises(StaleSessionError):
                await sessions.append_event(gone, said("three"))
        assert (await sessions.get_session(**OURS, session_id="s")).events == anew.events == []

    async def test_an_event_that_is_given_again_is_stored_once(self, sessions):
        session = await sessions.create_session(**OURS, session_id="s")
        event = said("x")
        for _ in range(2):
            assert await sessions.append_event(session, event) is event
        session.events.clear()  # as after a call that was cancelled
        await sessions.append_event(session, event)
        partial = await sessions.append_event(session, said("half", partial=True))

        assert partial.partial
        assert session.events == [event]
        assert (await sessions.get_session(**OURS, session_id="s")).events == [event]

    async def test_an_event_whose_shared_state_failed_is_completed_when_given_again(
        self, sessions, kept, monkeypatch
    ):
        def fail(*_given):
            raise StoreUnavailableError(store="test", reason="down")

        session = await sessions.create_session(**OURS, session_id="s")
        event = changes(own=1, **{"user:a": 1, "app:b": 2})
        with monkeypatch.context() as broken:
            broken.setattr(kept.admin.checkpoints, "write", fail)
            with pytest.raises(StoreUnavailableError):
                await sessions.append_event(session, event)
        await sessions.append_event(session, event)

        done = await sessions.get_session(**OURS, session_id="s")
        assert (len(done.events), done.state) == (1, {"own": 1, "user:a": 1, "app:b": 2})
        assert session.state == done.state

    async def test_events_are_read_in_part(self, sessions):
        session = await sessions.create_session(**OURS, session_id="s")
        for number in range(6):
            await sessions.append_event(session, said(str(number), timestamp=100.0 + number))

        async def read(**asked):
            config = GetSessionConfig(**asked)
            found = await sessions.get_session(**OURS, session_id="s", config=config)
            return [one.content.parts[0].text for one in found.events]

        assert await read() == [*"012345"]
        assert await read(num_recent_events=2) == [*"45"]
        assert await read(num_recent_events=0) == []
        assert await read(after_timestamp=103.0) == [*"345"]
        assert await read(after_timestamp=103.0, num_recent_events=2) == [*"45"]
        assert await read(after_timestamp=106.0) == []
        recent = await sessions.get_session(
            **OURS, session_id="s", config=GetSessionConfig(num_recent_events=1)
        )
        await sessions.append_event(recent, said("6", timestamp=106.0))
        assert await read() == [*"0123456"]

    async def test_any_event_comes_back_as_it_was(self, sessions):
        session = await sessions.create_session(**OURS, session_id="s", state={"t": {1, 2}})
        assert sorted(session.state["t"]) == [1, 2]
        image = Part.from_bytes(data=b"\x00\xff", mime_type="image/png")
        parts = [
            Part(text="猫 \ud800 \x00"),
            image,
            Part(function_call=FunctionCall(name="f", args={"x": None})),
        ]
        event = Event(author="cook", content=Content(role="model", parts=parts), invocation_id="i")
        event.actions.state_delta = {"when": len, "n": None}
        await sessions.append_event(session, event)

        shorter = EventCompaction(
            start_timestamp=0, end_timestamp=1, compacted_content=text("Miso.", "model")
        )
        compacted = Event(author="user", actions=EventActions(compaction=shorter))
        await sessions.append_event(session, compacted)

        [held, second] = (await sessions.get_session(**OURS, session_id="s")).events
        assert second == compacted
        assert held.content == event.content
        assert held.id == event.id
        assert held.actions.state_delta["n"] is None

    async def test_sessions_are_listed_and_their_names_are_literal(self, sessions):
        names = ["s", " s", "S", "a/b", "é", "e\u0301", "x" * 300, "*"]
        for name in names:
            await sessions.create_session(**OURS, session_id=name, state={"name": name})
        with pytest.raises(AlreadyExistsError, match="already exists"):
            await sessions.create_session(**OURS, session_id="s", state={"name": "other"})
        first = await sessions.get_session(**OURS, session_id="s")
        await sessions.append_event(first, said("x"))
        await sessions.create_session(app_name="app", user_id="bob", session_id="s")
        await sessions.create_session(app_name="other", user_id="alice", session_id="s")

        listed = (await sessions.list_sessions(**OURS)).sessions
        assert [one.id for one in listed] == [*names[1:], "s"]
        assert [own(one) for one in listed] == [{"name": one.id} for one in listed]
        assert [one.events for one in listed] == [[]] * len(names)
        everybody = (await sessions.list_sessions(app_name="app")).sessions
        assert {one.user_id for one in everybody} == {"alice", "bob"}
        await sessions.delete_session(**OURS, session_id="s")
        await sessions.delete_session(**OURS, session_id="s")
        assert len((await sessions.list_sessions(**OURS)).sessions) == len(names) - 1


class TestSessions(SessionContract):
    @pytest.fixture
    def kept(self, memory):
        return memory


def test_two_processes_that_append_at_once_lose_no_event(tmp_path, memory, sessions):
    asyncio.run(sessions.create_session(**OURS, session_id="s"))
    command = [sys.executable, adk_child.__file__, str(tmp_path / "memory")]
    writers = [Popen([*command, name], stdin=PIPE, stdout=PIPE, text=True) for name in "ab"]
    assert [one.stdout.readline() for one in writers] == ["ready\n"] * 2
    for one in writers:  # they begin together
        one.stdin.write("go\n")
        one.stdin.flush()
    stale = [int(one.communicate(timeout=120)[0]) for one in writers]
    done = asyncio.run(sessions.get_session(**OURS, session_id="s"))

    assert sum(stale) > 0
    assert len({one.id for one in done.events}) == len(done.events) == 2 * adk_child.EVENTS
    assert len(own(done)) == 2 * adk_child.EVENTS
    assert len(done.state) == 6 * adk_child.EVENTS


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated")
async def test_branches_of_one_agent_append_to_one_session(service, sessions):
    branches = [
        LlmAgent(name=f"b{one}", model=Scripted(seen=[]), output_key=f"k{one}") for one in range(5)
    ]
    agent = ParallelAgent(name="all", sub_agents=branches)
    await sessions.create_session(**OURS, session_id="s")
    await run(agent, "go", service, sessions, session="s")

    done = await sessions.get_session(**OURS, session_id="s")
    assert done.state == {f"k{one}": "All right." for one in range(5)}
    assert len(done.events) == 6


async def test_a_conversation_goes_on_after_a_restart(tmp_path):
    for turn in range(2):
        with Memory.open(tmp_path, embedder=HashEmbedder()) as memory:
            sessions, agent = CommonplaceSessionService(memory), make(output_key="last")
            if not turn:
                await sessions.create_session(**OURS, session_id="s")
            await run(
                agent, f"turn {turn}", CommonplaceMemoryService(memory), sessions, session="s"
            )
    assert "turn 0" in agent.model.seen[-1]
