import asyncio
import json
import logging
import subprocess
import sys
import uuid
from typing import Any

import pytest
from agentscope.agent import Agent, ReActConfig
from agentscope.credential import CredentialBase
from agentscope.embedding import EmbeddingModelBase, EmbeddingResponse
from agentscope.event import (
    ConfirmResult,
    HintBlockEvent,
    ReplyEndEvent,
    RequireUserConfirmEvent,
    UserConfirmResultEvent,
)
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionMode, PermissionRule
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit
from pydantic import BaseModel

from commonplace import Policy
from commonplace.agents import WRITE_PATIENCE
from commonplace.errors import InvalidRecordError, InvalidScopeError, StoreUnavailableError
from commonplace.testing.contracts.adapter import (
    AdapterContract,
    PolicyContract,
    PolicyFieldsContract,
)
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Scope
from commonplace_agentscope import AgentScopeChat, AgentScopeEmbedder, CommonplaceMiddleware
from commonplace_agentscope.convert import holds_note

ALICE = Scope(user_id="alice")


def say(text):
    return [TextBlock(text=text)]


def use(name, call_id="c1", /, **arguments: Any):
    return [ToolCallBlock(id=call_id, name=name, input=json.dumps(arguments))]


class ScriptedModel(ChatModelBase):
    """Answers from its script, then always the same; keeps what was on the wire."""

    def __init__(self, script=(), *, stream=False) -> None:
        super().__init__(
            CredentialBase(), "scripted", self.Parameters(), stream=stream, context_size=32768
        )
        self.formatter, self.script, self.seen = OpenAIChatFormatter(), list(script), []

    async def _call_api(
        self, model_name, messages, tools=None, tool_choice=None, **kwargs: Any
    ) -> Any:
        self.seen.append(await self.formatter.format(messages))
        answer = self.script.pop(0) if self.script else say("All right.")
        if callable(answer):
            answer = await answer(messages)
        if isinstance(answer, BaseException):
            raise answer
        if self.stream:
            return self._streamed(answer)
        return ChatResponse(content=answer, is_last=True)

    async def _streamed(self, blocks) -> Any:
        for block in blocks:
            if isinstance(block, TextBlock):
                half = len(block.text) // 2
                for part in (block.text[:half], block.text[half:]):
                    yield ChatResponse(
                        content=[TextBlock(id=block.id, text=part)], is_last=False, id="r"
                    )
        yield ChatResponse(content=blocks, is_last=True, id="r")

    def shown(self, call=-1):
        return "\n".join(
            part["text"] if isinstance(part, dict) else str(part)
            for message in self.seen[call]
            for part in message.get("content") or []
        )


class FakeEmbedding(EmbeddingModelBase):
    def __init__(self) -> None:
        super().__init__(CredentialBase(), "fake", 16, None, 1000, 2, 0, 0.0)

    async def _call_api(self, inputs, **kwargs: Any) -> Any:
        vectors = HashEmbedder(16).embed(inputs, purpose="document")
        return EmbeddingResponse(embeddings=vectors, source="api")


async def make(middleware, script=(), *, name="bot", stream=False, tools=(), **more: Any):
    model = ScriptedModel(script, stream=stream)
    toolkit = Toolkit(tools=[*await middleware.list_tools(), *tools])
    return Agent(name, "sys", model, toolkit=toolkit, middlewares=[middleware], **more)


def texts(memory, scope=ALICE):
    """What is stored, oldest first."""
    return [one.text for one in told(memory, scope)]


def told(memory, scope=ALICE):
    return sorted(memory.list(scope).records, key=lambda one: (one.created_at, one.position or 0))


def notes(agent):
    return [one for one in agent.state.context if holds_note(one)]


async def dangerous(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@pytest.fixture
def broken(memory, monkeypatch):
    def fail(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="down")

    for name in ("asearch", "aadd", "add"):
        monkeypatch.setattr(memory, name, fail)
    return memory


class TestAgentScope(AdapterContract, PolicyContract, PolicyFieldsContract):
    @pytest.fixture
    def turn_with(self, memory):
        def turn(policy, *, agent_id=None, conversation=None):
            shared = CommonplaceMiddleware(
                memory,
                user_id=lambda agent: agent.name.partition("@")[2],
                agent_id=agent_id,
                policy=policy,
            )
            states: dict[str, AgentState] = {}

            async def run(user, text) -> Any:
                session = conversation or uuid.uuid4().hex
                state = states.setdefault(session, AgentState(session_id=session))
                agent = await make(shared, name=f"bot@{user}", state=state)
                await agent.reply(UserMsg(user, text))
                return agent.model.shown()

            return run

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, broken, turn):
        return turn


@pytest.mark.parametrize("stream", [False, True])
async def test_twenty_turns_with_one_model_for_agent_and_memory_lose_nothing(tmp_path, stream):
    async def extracted(messages) -> Any:
        return say(json.dumps({"facts": []}))

    shared = ScriptedModel(stream=stream)
    middleware = CommonplaceMiddleware(
        user_id="alice",
        path=str(tmp_path),
        chat_model=shared,
        embedding_model=FakeEmbedding(),
    )
    agent = Agent("bot", "sys", shared, middlewares=[middleware])
    for number in range(20):
        shared.script = [say(f"answer {number}"), extracted]
        await agent.reply(UserMsg("alice", f"question {number}"))
        assert not shared.script
    memory = await middleware._memory.lazy.aget()

    stored = [one for one in memory.list(ALICE).records if one.kind == "episode"]
    expected = {f"{word} {number}" for word in ("question", "answer") for number in range(20)}
    assert len(stored) == 40
    assert {one.text for one in stored} == expected
    assert notes(agent) == []  # the conversation holds it all
    await middleware.aclose()


async def test_names_ids_and_session_of_a_turn_are_kept(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory, agent_id="helper"))
    answer = await agent.reply(UserMsg("Alice B", "I like tea"))

    said, answered = told(memory)
    assert (said.role, said.name, said.kind) == ("user", "Alice B", "episode")
    assert (answered.role, answered.name) == ("assistant", "bot")
    assert answered.text == answer.get_text_content()
    assert said.scope == Scope(
        user_id="alice", agent_id="helper", session_id=agent.state.session_id
    )


def test_a_second_loop_recalls_what_the_first_learned(tmp_path):
    middleware = CommonplaceMiddleware(
        user_id="alice", path=str(tmp_path), embedding_model=HashEmbedder()
    )

    async def run(text) -> Any:
        agent = await make(middleware)
        await agent.reply(UserMsg("alice", text))
        return agent.model.shown()

    asyncio.run(run("My cat is called Miso"))
    shown = asyncio.run(run("How is my cat called?"))
    asyncio.run(middleware.aclose())

    assert "Miso" in shown


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("inject", ["replace", "transient"])
async def test_a_parked_reply_is_written_once_when_it_is_answered(memory, restart, inject):
    tool = FunctionTool(dangerous)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, inject=inject)
    memory.add("Alice takes a trip to Lyon by train.", ALICE)
    agent = await make(middleware, [use("dangerous", city="Lyon")], tools=[tool])
    events = [
        one async for one in agent.reply_stream(UserMsg("alice", "book the trip to Lyon for Alice"))
    ]
    (asked,) = [one for one in events if isinstance(one, RequireUserConfirmEvent)]

    memory.flush()
    said = ["Alice takes a trip to Lyon by train.", "book the trip to Lyon for Alice"]
    assert texts(memory) == said
    assert len(notes(agent)) == 1
    if restart:
        state = AgentState.model_validate_json(agent.state.model_dump_json())
        middleware = CommonplaceMiddleware(user_id="alice", client=memory, inject=inject)
        agent = await make(middleware, tools=[tool], state=state)
    agent.model.script = [say("It is booked.")]
    length = len(agent.state.context)
    confirmed = [ConfirmResult(confirmed=True, tool_call=one) for one in asked.tool_calls]
    await agent.reply(UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=confirmed))

    assert texts(memory) == [*said, "It is booked."]
    assert len(agent.state.context) <= length
    assert "Alice takes a trip to Lyon by train." in agent.model.shown()
    assert len(notes(agent)) == (inject == "replace")


async def test_another_user_who_resumes_does_not_get_the_question(memory):
    who = ["alice"]
    middleware = CommonplaceMiddleware(user_id=lambda agent: who[0], client=memory)
    agent = await make(middleware, [use("dangerous", city="X")], tools=[FunctionTool(dangerous)])
    events = [one async for one in agent.reply_stream(UserMsg("alice", "book it"))]
    (asked,) = [one for one in events if isinstance(one, RequireUserConfirmEvent)]
    who[0] = "bob"
    confirmed = [ConfirmResult(confirmed=True, tool_call=one) for one in asked.tool_calls]
    await agent.reply(UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=confirmed))

    assert texts(memory) == texts(memory, Scope(user_id="bob")) == []


async def test_of_an_interrupted_reply_only_the_users_words_are_written(memory):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(middleware, [asyncio.CancelledError()])
    await agent.reply(UserMsg("alice", "tell me a lot"))
    await middleware.aclose()
    await memory.aflush()

    assert texts(memory) == ["tell me a lot"]
    await agent.reply(UserMsg("alice", "tell me less"))
    assert texts(memory) == ["tell me a lot", "tell me less", "All right."]


async def test_a_structured_answer_is_written_as_its_json(memory):
    class City(BaseModel):
        name: str

    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory),
        [use("GenerateStructuredOutput", name="Zürich")],
    )
    answer = await agent.reply(UserMsg("alice", "which city?"), structured_schema=City)

    assert answer.structured_output == {"name": "Zürich"}
    assert texts(memory) == ["which city?", '{"name": "Zürich"}']


@pytest.mark.parametrize(
    ("last", "stored"),
    [
        (say("All I know."), ["q", "All I know."]),
        (use("search_memory", "c2", keywords=["x"]), ["q"]),
    ],
)
async def test_of_a_reply_of_too_many_steps_no_canned_answer_is_written(memory, last, stored):
    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory),
        [[*say("Let me see."), *use("search_memory", keywords=["x"])], last],
        react_config=ReActConfig(max_iters=1),
    )
    await agent.reply(UserMsg("alice", "q"))

    assert texts(memory) == stored


async def test_only_the_text_after_the_last_tool_result_is_written(memory):
    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory),
        [[*say("Let me see."), *use("search_memory", keywords=["x"])], say("Final answer.")],
    )
    await agent.reply(UserMsg("alice", "q"))

    assert texts(memory) == ["q", "Final answer."]


async def test_a_listener_that_stops_at_the_last_event_still_records(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    async for event in agent.reply_stream(UserMsg("alice", "I like tea")):
        if isinstance(event, ReplyEndEvent):
            break

    assert texts(memory) == ["I like tea", "All right."]


async def test_a_cancelled_caller_does_not_cancel_the_write(memory, monkeypatch):
    began, go, add = asyncio.Event(), asyncio.Event(), memory.aadd

    async def slow(*args: Any, **options: Any) -> Any:
        began.set()
        await go.wait()
        return await add(*args, **options)

    monkeypatch.setattr(memory, "aadd", slow)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(middleware)
    task = asyncio.create_task(agent.reply(UserMsg("alice", "I like tea")))
    await began.wait()
    task.cancel()
    answer = await task
    go.set()
    await middleware.aclose()

    assert answer.get_text_content() == "All right."
    assert texts(memory) == ["I like tea", "All right."]


async def test_the_tools_of_one_instance_serve_the_user_who_asks(memory):
    shared = CommonplaceMiddleware(
        user_id=lambda agent: agent.name, client=memory, mode="agent_control"
    )
    both = asyncio.Barrier(2)

    async def together(fact) -> Any:
        await both.wait()
        return use("add_memory", thinking="", content=[fact])

    async def run(user) -> Any:
        script = [lambda messages: together(f"{user} is here."), say("Done.")]
        await (await make(shared, script, name=user)).reply(UserMsg(user, "hello"))

    await asyncio.gather(run("alice"), run("bob"))

    assert texts(memory) == ["alice is here."]
    assert texts(memory, Scope(user_id="bob")) == ["bob is here."]
    assert not any(one.is_running for peers in shared._replies._peers.values() for one in peers)


async def test_a_tool_outside_a_reply_refuses_to_guess_whose_memory_it_is(memory):
    shared = CommonplaceMiddleware(user_id=lambda agent: agent.name, client=memory)
    search, _ = await shared.list_tools()
    chunk = await search(keywords=["tea"], _agent_state=AgentState())

    assert chunk.state == "error"
    assert "user_id" in chunk.content[0].text


def fail(agent):
    raise LookupError("nobody is logged in")


@pytest.mark.parametrize("find_user", [lambda agent: None, fail])
async def test_a_callable_that_names_nobody_reaches_no_memory(memory, find_user, caplog):
    agent = await make(CommonplaceMiddleware(user_id=find_user, client=memory))
    for _ in range(2):
        answer = await agent.reply(UserMsg("alice", "I like tea"))

    assert answer.get_text_content() == "All right."
    memory.flush(10)
    assert texts(memory) == []
    assert len([one for one in caplog.records if "scope" in one.message]) == 1


async def test_a_failing_memory_is_logged_once_a_kind_and_the_reply_comes(broken, caplog):
    caplog.set_level(logging.WARNING, "commonplace_agentscope")
    agent = await make(CommonplaceMiddleware(user_id="alice", client=broken))
    for _ in range(3):
        answer = await agent.reply(UserMsg("alice", "hello"))

    ours = [one.message for one in caplog.records if one.name == "commonplace_agentscope"]
    assert answer.get_text_content() == "All right."
    assert sorted(one.split()[1] for one in ours) == ["recall", "write"]


async def test_a_hung_memory_is_left_behind(memory, monkeypatch, caplog):
    never = asyncio.Event()

    async def hang(*args: Any, **options: Any) -> Any:
        await never.wait()

    monkeypatch.setattr(memory, "asearch", hang)
    monkeypatch.setattr(memory, "aadd", hang)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, recall_timeout=0.02)
    middleware._memory._first_recall_timeout = None
    agent = await make(middleware)
    async with asyncio.timeout(WRITE_PATIENCE / 2):
        answer = await agent.reply(UserMsg("alice", "hello"))

    assert answer.get_text_content() == "All right."
    never.set()


@pytest.mark.parametrize(
    ("inject", "kept", "during"), [("replace", 1, 1), ("transient", 0, 1), ("persist", 4, 4)]
)
async def test_notes_do_not_pile_up_unless_wanted(memory, inject, kept, during):
    middleware = CommonplaceMiddleware(
        user_id="alice", client=memory, inject=inject, top_k=1, mode="static_control"
    )
    memory.add([f"Alice likes {kind} tea." for kind in ("green", "black", "mint", "ice")], ALICE)
    agent = await make(middleware)
    for number in range(4):
        await agent.reply(UserMsg("alice", f"which tea does Alice like in week {number}?"))

    assert agent.model.shown().count("## Relevant memories") == during
    assert len(notes(agent)) == kept
    assert len(notes(AgentWithState(agent))) == kept
    assert "Relevant memories" not in " ".join(texts(memory))


class AgentWithState:
    def __init__(self, agent) -> None:
        self.state = AgentState.model_validate_json(agent.state.model_dump_json())


async def test_a_note_follows_the_question_and_is_announced(memory):
    memory.add("Alice likes tea.", ALICE)
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    events = [one async for one in agent.reply_stream(UserMsg("alice", "tea?"))]

    (event,) = [one for one in events if isinstance(one, HintBlockEvent) if "tea" in one.hint]
    assert event.source == "commonplace.note"
    assert agent.state.context[0].role == "user"
    assert agent.state.context[1].content[0].id == event.block_id


async def test_an_agent_named_memory_keeps_its_answers(memory):
    memory.add("Alice likes green tea.", ALICE)
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory), name="memory")
    for text in ("what does Alice like?", "which tea does Alice like?"):
        await agent.reply(UserMsg("alice", text))

    assert len([one for one in agent.state.context if one.name == "memory"]) == 3
    assert len(texts(memory)) == 5


@pytest.mark.parametrize(
    ("mode", "tools", "writes", "prompt"),
    [("static_control", 0, 2, False), ("agent_control", 2, 0, True), ("both", 2, 2, True)],
)
async def test_each_mode_does_its_part(memory, mode, tools, writes, prompt):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, mode=mode, tool_prefix="my_")
    agent = await make(middleware)
    await agent.reply(UserMsg("alice", "I like tea"))

    assert len(await middleware.list_tools()) == tools
    assert len(texts(memory)) == writes
    assert ("`my_search_memory`" in agent.model.shown()) == prompt


@pytest.mark.parametrize(
    ("mode", "stored"), [(PermissionMode.DEFAULT, 1), (PermissionMode.EXPLORE, 0)]
)
async def test_adding_needs_no_consent_but_explore_denies_it(memory, mode, stored):
    script = [use("add_memory", thinking="", content=["Alice likes tea."]), say("Done.")]
    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory, mode="agent_control"), script
    )
    agent.state.permission_context.mode = mode
    await agent.reply(UserMsg("alice", "remember"))

    assert len(texts(memory)) == stored


async def test_a_rule_to_ask_beats_the_tools_own_consent(memory):
    script = [use("add_memory", thinking="", content=["Alice likes tea."])]
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory), script)
    rule = PermissionRule(
        tool_name="add_memory", rule_content=None, behavior=PermissionBehavior.ASK, source="user"
    )
    agent.state.permission_context.ask_rules["add_memory"] = [rule]
    events = [one async for one in agent.reply_stream(UserMsg("alice", "remember"))]

    assert any(isinstance(one, RequireUserConfirmEvent) for one in events)
    memory.flush(10)
    assert texts(memory) == ["remember"]  # the user's own word, and not the fact


async def test_a_tool_call_beyond_its_bounds_is_an_error_for_the_model(memory):
    script = [use("search_memory", keywords=["x"], limit=100_000), say("Done.")]
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory), script)
    await agent.reply(UserMsg("alice", "q"))

    (result,) = agent.state.context[-1].get_content_blocks("tool_result")
    assert result.state == "error"


async def test_a_huge_question_is_recalled_for_and_kept_whole(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    await agent.reply(UserMsg("alice", "é" * 40_000 + "\x00"))

    kept = [one.text for one in memory.list(ALICE).records if one.role == "user"]
    assert sum(len(one) for one in kept) == 40_000


async def test_each_of_several_messages_of_an_input_is_kept(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    await agent.reply([UserMsg("a", "one"), UserMsg("b", "two")])

    assert texts(memory) == ["one", "two", "All right."]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"user_id": None}, InvalidScopeError),
        ({"user_id": " "}, InvalidScopeError),
        ({"mode": "auto"}, InvalidRecordError),
        ({"top_k": -1}, InvalidRecordError),
        ({"mem0_config": {}}, InvalidRecordError),
        ({"client": object()}, TypeError),
        ({"chat_model": object()}, TypeError),
        ({"embedding_model": object()}, InvalidRecordError),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(given, error):
    with pytest.raises(error):
        CommonplaceMiddleware(**{"user_id": "alice", **given})


def test_a_client_of_another_library_is_refused_with_what_to_pass():
    with pytest.raises(InvalidRecordError, match=r"object.* commonplace Memory.*the path of"):
        CommonplaceMiddleware(user_id="alice", client=object())


def test_making_a_middleware_opens_nothing(tmp_path):
    CommonplaceMiddleware(user_id="alice", path=str(tmp_path / "none"))

    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_model_answers_with_its_text(stream):
    chat = AgentScopeChat(ScriptedModel([say('```json\n{"facts": []}\n```')], stream=stream))

    assert json.loads(await chat.complete("system", "user", schema={})) == {"facts": []}
    assert chat.id == "ScriptedModel:scripted"


async def test_an_embedding_model_embeds_in_order():
    embedder = AgentScopeEmbedder(FakeEmbedding())
    words = ["a", "b", "c", "d", "e"]

    assert (embedder.id, embedder.dimensions) == ("FakeEmbedding:fake", 16)
    assert await embedder.embed(words, purpose="query") == HashEmbedder(16).embed(
        words, purpose="query"
    )


async def test_a_write_that_is_not_awaited_is_safe(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory, await_write=False))
    await agent.reply(UserMsg("alice", "I like tea"))

    assert (await memory.aflush()).pending == 0
    assert texts(memory) == ["I like tea", "All right."]


def test_without_agentscope_the_import_says_what_to_install():
    code = "import sys; sys.modules['agentscope'] = None; import commonplace_agentscope"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )

    assert run.returncode == 1
    assert "MissingExtraError" in run.stderr
    assert "pip install 'commonplace-memory[agentscope]'" in run.stderr


async def test_a_search_for_several_keywords_lists_each_memory_once(memory):
    memory.add(["Alice likes tea.", "Alice has a cat."], ALICE)
    search, _ = await CommonplaceMiddleware(user_id="alice", client=memory).list_tools()
    chunk = await search(keywords=["tea", "cat", "tea cat"], limit=2)

    assert sorted(line.partition("] ")[2] for line in chunk.content[0].text.splitlines()) == [
        "Alice has a cat.",
        "Alice likes tea.",
    ]
