"""What must not go wrong when replies overlap, break off, hang or come from a damaged state."""

import asyncio
import contextlib
import gc
import json
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from agentscope.agent import Agent, ReActConfig
from agentscope.credential import CredentialBase
from agentscope.event import (
    ConfirmResult,
    HintBlockEvent,
    ModelCallStartEvent,
    ReplyEndEvent,
    RequireUserConfirmEvent,
    UserConfirmResultEvent,
)
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.middleware import MiddlewareBase
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionRule
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

from commonplace import Memory, Scope
from commonplace.agents import NOTE_MARK, MemoryPool
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope import CommonplaceMiddleware
from commonplace_agentscope.convert import holds_note

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
INTERRUPTED = ReActConfig().interruption_message


def say(text):
    return [TextBlock(text=text)]


def use(name, /, **arguments: Any):
    return [ToolCallBlock(id="c1", name=name, input=json.dumps(arguments))]


class ScriptedModel(ChatModelBase):
    """Answers from its script, then always the same; keeps what was on the wire."""

    def __init__(self, script=()) -> None:
        super().__init__(
            CredentialBase(), "scripted", self.Parameters(), stream=False, context_size=32768
        )
        self.formatter, self.script, self.seen = OpenAIChatFormatter(), list(script), []

    async def _call_api(
        self, model_name, messages, tools=None, tool_choice=None, **kwargs: Any
    ) -> Any:
        self.seen.append(json.dumps(await self.formatter.format(messages)))
        answer = self.script.pop(0) if self.script else say("All right.")
        if callable(answer):
            answer = await answer()
        if isinstance(answer, BaseException):
            raise answer
        return ChatResponse(content=answer, is_last=True)


async def make(*middlewares, script=(), tools=(), **more: Any):
    found = [tool for one in middlewares for tool in await one.list_tools()]
    toolkit = Toolkit(tools=[*found, *tools])
    model = ScriptedModel(script)
    return Agent("bot", "sys", model, toolkit=toolkit, middlewares=[*middlewares], **more)


def texts(memory, scope=ALICE):
    found = memory.list(scope).records
    return [one.text for one in sorted(found, key=lambda one: (one.created_at, one.position or 0))]


def notes(agent):
    return [one for one in agent.state.context if holds_note(one)]


async def until(stream, kind):
    """Listen up to an event of a kind, and leave the stream open."""
    async for event in stream:
        if isinstance(event, kind):
            return event
    raise AssertionError(kind)


async def dangerous(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@pytest.fixture
def hang(memory, monkeypatch):
    """Let a method of the memory wait for ever; answer an event that tells that it was called."""
    never = asyncio.Event()

    def prepare(name):
        called = asyncio.Event()

        async def wait(*args: Any, **options: Any) -> Any:
            called.set()
            await never.wait()

        monkeypatch.setattr(memory, name, wait)
        return called

    return prepare


@pytest.fixture
def other(tmp_path):
    with Memory.open(str(tmp_path / "other"), embedder=HashEmbedder()) as opened:
        yield opened


# -- whose memory ----------------------------------------------------------------------------------


async def test_a_reply_for_nobody_gets_nothing_of_a_user_whose_reply_was_left_open(memory):
    memory.add("The secret of alice is walrus.", ALICE)
    who = {"user": "alice"}
    agent = await make(CommonplaceMiddleware(user_id=lambda agent: who["user"], client=memory))
    left_open = agent.reply_stream(UserMsg("alice", "hello"))
    await anext(left_open)
    who.clear()
    agent.model.script = [use("search_memory", keywords=["secret"])]
    await agent.reply(UserMsg("x", "tell me the secret"))

    (result,) = agent.state.context[-1].get_content_blocks("tool_result")
    assert result.state == "error"
    assert "user_id" in result.output[0].text
    assert "walrus" not in agent.model.seen[-1]
    await left_open.aclose()


@pytest.mark.parametrize("inject", ["transient", "persist"])
async def test_replies_to_two_users_at_once_on_one_agent_have_no_memory(memory, caplog, inject):
    memory.add("The secret of alice is walrus.", ALICE)
    memory.add("The secret of bob is quince.", BOB)
    who: ContextVar[str] = ContextVar("who")
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slowly() -> Any:
        asked.set()
        await answered.wait()
        return use("add_memory", thinking="", content=["alice told this in private"])

    async def at_once() -> Any:
        answered.set()
        return use("search_memory", keywords=["secret"])

    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who.get(), client=memory, inject=inject
    )
    agent = await make(middleware, script=[slowly, at_once])

    async def reply(user) -> None:
        who.set(user)
        await agent.reply(UserMsg(user, f"a secret of {user}"))

    first = asyncio.create_task(reply("alice"))
    await asked.wait()
    await asyncio.gather(first, reply("bob"))
    memory.flush()

    # Alice had said hers before Bob came.
    assert texts(memory) == ["The secret of alice is walrus.", "a secret of alice"]
    assert texts(memory, BOB) == ["The secret of bob is quince."]
    assert not any("walrus" in seen or "quince" in seen for seen in agent.model.seen[1:])
    assert notes(agent) == []
    assert "the agent answers another user in this conversation. Give each user" in caplog.text
    assert "1 to 256 characters" not in caplog.text
    assert not any(one.is_running for peers in middleware._replies._peers.values() for one in peers)


async def test_a_search_that_ends_when_another_user_has_come_tells_nothing(memory, monkeypatch):
    memory.add("The secret of alice is walrus.", ALICE)
    who: ContextVar[str] = ContextVar("who")
    asked, answered = asyncio.Event(), asyncio.Event()
    search = memory.asearch

    async def slowly(*args: Any, **options: Any) -> Any:
        found = await search(*args, **options)
        asked.set()
        await answered.wait()
        return found

    async def at_once() -> Any:
        answered.set()
        return say("Hello bob.")

    monkeypatch.setattr(memory, "asearch", slowly)
    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who.get(), client=memory, mode="agent_control"
    )
    agent = await make(middleware, script=[use("search_memory", keywords=["secret"]), at_once])

    async def reply(user) -> None:
        who.set(user)
        await agent.reply(UserMsg(user, f"hello from {user}"))

    first = asyncio.create_task(reply("alice"))
    await asked.wait()
    await asyncio.gather(first, reply("bob"))

    assert len(agent.model.seen) == 3
    assert not any("walrus" in seen for seen in agent.model.seen)


async def test_a_user_after_another_on_one_agent_has_his_own_memory(memory):
    memory.add("alice likes tea.", ALICE)
    who = ["alice"]
    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who[0], client=memory, inject="persist"
    )
    agent = await make(middleware)
    await agent.reply(UserMsg("alice", "what tea?"))
    who[0] = "bob"
    await agent.reply(UserMsg("bob", "my tea is black"))

    assert "alice likes tea" in agent.model.seen[0]
    assert "alice likes tea" not in agent.model.seen[1]
    assert texts(memory, BOB) == ["my tea is black", "All right."]


class Summaries(MiddlewareBase):
    """Keeps what would be summarised before each model call."""

    def __init__(self) -> None:
        self.seen = []

    async def on_compress_context(self, agent, input_kwargs, next_handler) -> Any:
        self.seen.append("".join(one.model_dump_json() for one in agent.state.context))
        await next_handler(**input_kwargs)


@pytest.fixture
def secrets(memory):
    memory.add("The secret of alice is walrus.", ALICE)
    memory.add("The secret of bob is quince.", BOB)
    return memory


@pytest.mark.parametrize("is_broken_off", [False, True])
@pytest.mark.parametrize("inject", ["replace", "transient", "persist"])
async def test_a_reply_that_goes_on_after_its_end_sees_no_note_of_another_user(
    secrets, inject, is_broken_off
):
    who, summaries = ["alice"], Summaries()
    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who[0],
        client=secrets,
        mode="static_control",
        inject=inject,
        recall_timeout=60,
    )
    agent = await make(middleware, summaries)
    alice = agent.reply_stream(UserMsg("alice", "what is the secret of alice"))
    await until(alice, ReplyEndEvent)
    who[0] = "bob"
    bob = agent.reply_stream(UserMsg("bob", "what is the secret of bob"))
    await until(bob, HintBlockEvent)
    assert "quince" in agent.state.context[-1].content[0].hint
    if is_broken_off:
        await bob.aclose()
    async for _ in alice:
        pass
    async for _ in bob:
        pass

    assert "walrus" in agent.model.seen[0]
    assert len(agent.model.seen) == len(summaries.seen) == 3 - is_broken_off
    for seen in (*agent.model.seen[1:], *summaries.seen[1:]):
        assert "walrus" not in seen
        assert "quince" not in seen
    assert texts(secrets) == [
        "The secret of alice is walrus.",
        "what is the secret of alice",
        "All right.",
    ]
    assert texts(secrets, BOB) == ["The secret of bob is quince."]


async def test_a_reply_that_goes_on_after_its_end_leaves_its_user_the_memory(secrets):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=secrets, recall_timeout=60))
    first = agent.reply_stream(UserMsg("alice", "what is the secret of alice"))
    await until(first, ReplyEndEvent)
    second = agent.reply_stream(UserMsg("alice", "tell me the secret of alice"))
    await until(second, HintBlockEvent)
    async for _ in first:
        pass
    async for _ in second:
        pass

    assert all("walrus" in seen for seen in agent.model.seen)
    assert "tell me the secret of alice" in texts(secrets)


@pytest.mark.parametrize("inject", ["replace", "transient", "persist"])
async def test_agents_that_share_a_state_show_no_note_of_the_other_ones_user(secrets, inject):
    state = AgentState()
    options: Any = {"client": secrets, "mode": "static_control", "inject": inject}
    agents = [
        await make(CommonplaceMiddleware(user_id=user, recall_timeout=60, **options), state=state)
        for user in ("alice", "bob")
    ]
    alice = agents[0].reply_stream(UserMsg("alice", "what is the secret of alice"))
    await until(alice, ModelCallStartEvent)
    bob = agents[1].reply_stream(UserMsg("bob", "what is the secret of bob"))
    await until(bob, HintBlockEvent)
    for stream in (alice, bob):
        async for _ in stream:
            pass

    assert "quince" not in agents[0].model.seen[0]
    assert "walrus" not in agents[1].model.seen[0]
    secrets.flush()
    said = "what is the secret of alice"  # before Bob came
    assert texts(secrets) == ["The secret of alice is walrus.", said]


@pytest.mark.parametrize("inject", ["replace", "persist"])
async def test_a_conversation_that_two_users_shared_keeps_the_notes_of_neither(secrets, inject):
    who = ["alice"]
    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who[0],
        client=secrets,
        mode="static_control",
        inject=inject,
        recall_timeout=60,
    )
    agent = await make(middleware)
    alice = agent.reply_stream(UserMsg("alice", "what is the secret of alice"))
    await until(alice, ModelCallStartEvent)
    who[0] = "bob"
    bob = agent.reply_stream(UserMsg("bob", "what is the secret of bob"))
    await until(bob, ModelCallStartEvent)
    [note] = notes(agent)
    assert "quince" in note.content[0].hint
    async for _ in alice:
        pass

    assert notes(agent) == []
    async for _ in bob:
        pass
    assert notes(agent) == []


async def test_a_reply_whose_agent_is_given_another_state_sees_no_note_in_it(secrets):
    who = ["bob"]
    middleware = CommonplaceMiddleware(
        user_id=lambda agent: who[0],
        client=secrets,
        mode="static_control",
        inject="persist",
        recall_timeout=60,
    )
    agent = await make(middleware)
    await agent.reply(UserMsg("bob", "what is the secret of bob"))
    state_of_bob, agent.state, who[0] = agent.state, AgentState(), "alice"
    alice = agent.reply_stream(UserMsg("alice", "what is the secret of alice"))
    await until(alice, ModelCallStartEvent)
    agent.state = state_of_bob
    async for _ in alice:
        pass

    assert "quince" in agent.model.seen[0]
    assert "quince" not in agent.model.seen[1]


async def test_a_forgotten_reply_that_goes_on_does_not_write_for_the_wrong_user(memory):
    who = ["alice"]
    agent = await make(CommonplaceMiddleware(user_id=lambda agent: who[0], client=memory))
    alice = agent.reply_stream(UserMsg("alice", "words of alice"))
    await until(alice, ModelCallStartEvent)
    who[0] = "bob"
    bob = agent.reply_stream(UserMsg("bob", "words of bob"))
    await until(bob, ModelCallStartEvent)
    for stream in (alice, bob):
        async for _ in stream:
            pass

    assert texts(memory) == texts(memory, BOB) == []


async def test_two_replies_to_one_user_at_once_keep_their_own_answers(memory):
    second = asyncio.Event()

    async def slowly() -> Any:
        await second.wait()
        return say("first answer")

    async def at_once() -> Any:
        second.set()
        return say("second answer")

    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory), script=[slowly, at_once]
    )
    await asyncio.gather(agent.reply(UserMsg("a", "first")), agent.reply(UserMsg("a", "second")))

    assert sorted(texts(memory)) == ["first", "first answer", "second", "second answer"]


async def test_a_reply_to_the_same_user_that_goes_on_keeps_its_answer_out_of_the_newer_one(memory):
    script = [say("first answer"), say("second answer")]
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory), script=script)
    first = agent.reply_stream(UserMsg("alice", "first"))
    await anext(first)
    second = agent.reply_stream(UserMsg("alice", "second"))
    await until(second, ModelCallStartEvent)
    for stream in (first, second):
        async for _ in stream:
            pass

    assert sorted(texts(memory)) == ["first", "first answer", "second", "second answer"]


async def test_a_reply_is_its_users_whichever_task_takes_the_next_event(memory):
    who: ContextVar[str | None] = ContextVar("who", default=None)
    script = [use("add_memory", thinking="", content=["alice is here."])]
    agent = await make(
        CommonplaceMiddleware(user_id=lambda agent: who.get(), client=memory), script=script
    )
    who.set("alice")
    stream = agent.reply_stream(UserMsg("alice", "hello"))
    await anext(stream)
    who.set("bob")
    with contextlib.suppress(StopAsyncIteration):
        while True:
            await asyncio.create_task(anext(stream))  # type: ignore[arg-type]

    assert texts(memory) == ["hello", "alice is here.", "All right."]
    assert texts(memory, BOB) == []


@pytest.mark.parametrize("mode", ["both", "agent_control"])
async def test_a_call_that_another_user_confirms_is_not_made_in_his_memory(memory, mode):
    who = ["alice"]
    middleware = CommonplaceMiddleware(user_id=lambda agent: who[0], client=memory, mode=mode)
    script = [use("add_memory", thinking="", content=["alice told this in private"])]
    agent = await make(middleware, script=script)
    rule = PermissionRule(
        tool_name="add_memory", rule_content=None, behavior=PermissionBehavior.ASK, source="user"
    )
    agent.state.permission_context.ask_rules["add_memory"] = [rule]
    asked = await until(agent.reply_stream(UserMsg("alice", "keep it")), RequireUserConfirmEvent)
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    agent = await make(middleware, state=state)
    who[0] = "bob"
    confirmed = [ConfirmResult(confirmed=True, tool_call=one) for one in asked.tool_calls]
    await agent.reply(UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=confirmed))
    await middleware.aclose()
    await memory.aflush()

    assert "alice told this in private" not in texts(memory)
    assert texts(memory, BOB) == []


async def test_two_memories_of_one_user_both_learn_from_a_reply(memory, other):
    outer = CommonplaceMiddleware(user_id="alice", client=memory)
    inner = CommonplaceMiddleware(user_id="alice", client=other, tool_prefix="team_")
    agent = await make(outer, inner)
    await agent.reply(UserMsg("alice", "I like tea"))

    assert texts(memory) == texts(other) == ["I like tea", "All right."]


@pytest.mark.parametrize("session_id", ["", "*", "x" * 300, "a\nb", " "])
async def test_a_session_id_that_no_scope_can_hold_costs_no_memory(memory, session_id):
    memory.add("Alice likes tea.", ALICE)
    agent = await make(
        CommonplaceMiddleware(user_id="alice", client=memory),
        state=AgentState(session_id=session_id),
    )
    await agent.reply(UserMsg("alice", "which tea?"))

    assert "Alice likes tea." in agent.model.seen[0]
    assert set(texts(memory)) == {"Alice likes tea.", "which tea?", "All right."}


# -- bounded waits ---------------------------------------------------------------------------------


def impatient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let writes, and the first recall, wait no longer than so many seconds."""
    for module in ("commonplace.agents.agent_memory", "commonplace_agentscope.middleware"):
        monkeypatch.setattr(f"{module}.WRITE_PATIENCE", seconds)


@pytest.mark.parametrize(
    ("method", "name", "arguments"),
    [
        ("aadd", "add_memory", {"thinking": "", "content": ["tea"]}),
        ("asearch", "search_memory", {"keywords": ["tea"]}),
    ],
)
async def test_a_tool_of_a_hung_memory_answers_with_an_error(
    memory, hang, monkeypatch, method, name, arguments
):
    hang(method)
    impatient(monkeypatch, 0.02)
    middleware = CommonplaceMiddleware(
        user_id="alice", client=memory, mode="agent_control", recall_timeout=0.02
    )
    agent = await make(middleware, script=[use(name, **arguments)])
    await agent.reply(UserMsg("alice", "remember tea"))

    (result,) = agent.state.context[-1].get_content_blocks("tool_result")
    assert result.state == "error"
    assert "took longer" in result.output[0].text


async def test_a_reply_does_not_wait_for_a_memory_that_opens_slowly(tmp_path, monkeypatch):
    go, opened = threading.Event(), Memory.open

    def slowly(*args: Any, **options: Any) -> Any:
        go.wait()
        return opened(*args, **options)

    monkeypatch.setattr(Memory, "open", slowly)
    impatient(monkeypatch, 0.02)
    middleware = CommonplaceMiddleware(
        user_id="alice",
        path=str(tmp_path),
        embedding_model=HashEmbedder(),
        mode="static_control",
        recall_timeout=0.02,
    )
    agent = Agent("bot", "sys", ScriptedModel(), middlewares=[middleware])
    answer = await agent.reply(UserMsg("alice", "I like tea"))
    go.set()
    await middleware._memory.wait_for_writes(timeout=30)
    memory = await middleware._memory.lazy.aget()

    assert answer.get_text_content() == "All right."
    assert texts(memory) == ["I like tea", "All right."]
    await middleware.aclose()


async def test_an_opened_memory_is_there_when_the_tools_are_listed(tmp_path):
    middleware = CommonplaceMiddleware(
        user_id="alice", path=str(tmp_path), embedding_model=HashEmbedder()
    )
    await middleware.list_tools()

    assert middleware._memory.lazy.start().done()
    await middleware.aclose()


@pytest.mark.parametrize("await_write", [True, False])
async def test_a_hung_write_holds_up_one_reply_and_not_the_next(
    memory, hang, monkeypatch, await_write
):
    hang("aadd")
    waited = []
    middleware = CommonplaceMiddleware(
        user_id="alice", client=memory, recall_timeout=0.03, await_write=await_write
    )
    write_seconds = middleware._memory._write_seconds

    def record() -> float:
        waited.append(write_seconds())
        return waited[-1]

    monkeypatch.setattr(middleware._memory, "_write_seconds", record)
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.05)
    monkeypatch.setattr("commonplace.agents.agent_memory.ACCEPT_PATIENCE", 0.04)
    monkeypatch.setattr(memory, "asearch", no_matches)
    agent = await make(middleware)
    for _ in range(2):
        await agent.reply(UserMsg("alice", "I like tea"))

    assert waited == [0.05 if await_write else 0.04, 0.03]


async def no_matches(*args: Any, **options: Any) -> Any:
    return []


class GatedEmbedder(HashEmbedder):
    """Embeds documents when its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def embed(self, texts, *, purpose):
        if purpose == "document":
            assert self.gate.wait(60)
        return super().embed(texts, purpose=purpose)


async def test_what_is_said_to_a_memory_whose_model_hangs_is_accepted(
    tmp_path, monkeypatch, caplog
):
    impatient(monkeypatch, 0.05)
    embedder = GatedEmbedder()
    with Memory.open(str(tmp_path / "gated"), embedder=embedder) as memory:
        middleware = CommonplaceMiddleware(user_id="alice", client=memory, recall_timeout=0.05)
        agent = await make(middleware)
        for number in range(4):
            await agent.reply(UserMsg("alice", f"number {number}"))
        waiting, accepted = set(middleware._memory.lazy.writes), memory.flush(0.0).pending
        embedder.gate.set()
        left = memory.flush()

        assert (waiting, accepted) == (set(), 8)  # each turn in two: the question, the answer
        assert caplog.text.count("memory write is late") == 1
        assert (left.pending, left.dead) == (0, 0)
        assert [one for one in texts(memory) if one != "All right."] == [
            f"number {number}" for number in range(4)
        ]


# -- cancellation ----------------------------------------------------------------------------------


async def test_a_reply_cancelled_while_it_recalls_is_interrupted_as_agentscope_does(memory, hang):
    recalling = hang("asearch")
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory, recall_timeout=60))
    reply = asyncio.create_task(agent.reply(UserMsg("alice", "hello")))
    await recalling.wait()
    reply.cancel()
    answer = await reply

    assert answer.get_text_content() == INTERRUPTED
    assert agent.model.seen == []


async def test_whoever_wants_cancellations_raised_gets_them(memory, hang):
    for name in ("asearch", "aadd"):
        called = hang(name)
        middleware = CommonplaceMiddleware(user_id="alice", client=memory, recall_timeout=60)
        config = ReActConfig(interruption_raise_cancelled_error=True)
        agent = await make(middleware, react_config=config)
        reply = asyncio.create_task(agent.reply(UserMsg("alice", "hello")))
        if name == "aadd":
            memory.asearch = no_matches
        await called.wait()
        reply.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reply


async def test_a_finished_answer_is_not_lost_to_a_late_cancellation(memory, hang):
    writing = hang("aadd")
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    reply = asyncio.create_task(agent.reply(UserMsg("alice", "hello")))
    await writing.wait()
    reply.cancel()

    assert (await reply).get_text_content() == "All right."


# -- notes -----------------------------------------------------------------------------------------


async def test_transient_notes_of_replies_that_broke_off_do_not_stay(memory):
    memory.add("Alice likes tea.", ALICE)
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory, inject="transient"))
    streams = [agent.reply_stream(UserMsg("alice", f"tea {number}?")) for number in range(3)]
    for stream in streams:
        await until(stream, HintBlockEvent)

    assert len(notes(agent)) == 1
    for stream in streams:
        await stream.aclose()
    del stream, streams
    gc.collect()
    await agent.reply(UserMsg("alice", "tea at last?"))
    assert notes(agent) == []


async def test_a_reply_that_closes_late_leaves_the_note_of_a_newer_one(memory):
    memory.add("Alice likes green tea.", ALICE)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, inject="transient")
    agent = await make(middleware)
    older = middleware.on_reply(agent, {"inputs": UserMsg("a", "tea?")}, agent._reply_impl)
    await until(older, HintBlockEvent)

    async def close_the_older() -> Any:
        await older.aclose()
        return use("search_memory", keywords=["tea"])

    agent.model.script = [close_the_older]
    await agent.reply(UserMsg("alice", "and which tea does Alice like?"))

    assert [seen.count("## Relevant memories") for seen in agent.model.seen] == [1, 1]
    assert notes(agent) == []


async def test_persistent_notes_show_later_what_had_no_room_before(memory):
    told = [f"tea fact {number} " + "and so on " * 50 for number in range(12)]
    memory.add(told, ALICE)
    middleware = CommonplaceMiddleware(
        user_id="alice", client=memory, inject="persist", top_k=40, mode="static_control"
    )
    agent = await make(middleware)
    for _ in range(3):
        await agent.reply(UserMsg("alice", "tea fact"))

    lines = [line for note in notes(agent) for line in note.content[0].hint.splitlines()]
    facts = [line for line in lines if "] tea fact" in line]
    assert len(facts) == len(set(facts)) == 12


@pytest.mark.parametrize("inject", ["replace", "transient"])
async def test_a_memory_leaves_the_notes_of_another_alone(memory, other, inject):
    memory.add("Alice likes green tea.", ALICE)
    other.add("The team likes black tea.", Scope(user_id="team"))
    keeps = CommonplaceMiddleware(user_id="alice", client=memory, inject="persist", agent_id=None)
    drops = CommonplaceMiddleware(user_id="team", client=other, inject=inject, tool_prefix="team_")
    agent = await make(keeps, drops)
    await agent.reply(UserMsg("alice", "tea?"))
    await agent.reply(UserMsg("alice", "what tea does the team like, and Alice?"))

    shown = " ".join(note.content[0].hint for note in notes(agent))
    assert "Alice likes green tea." in shown
    assert shown.count("The team likes black tea.") == (inject == "replace")


# -- what is in the state --------------------------------------------------------------------------

DAMAGED = [
    {},
    [],
    "x",
    {"turn": 1, "memory": 2, "records": 3},
    {"records": [{"id": []}, 7]},
    {"turn": None, "owner": [], "records": {}},
]


@pytest.mark.parametrize("inject", ["replace", "transient", "persist"])
@pytest.mark.parametrize("damage", DAMAGED)
async def test_a_damaged_mark_of_a_note_harms_no_reply(memory, inject, damage):
    memory.add("Alice likes tea.", ALICE)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, inject=inject)
    agent = await make(middleware)
    if isinstance(damage, dict) and "records" in damage:
        damage = {**damage, "memory": await middleware.get_middleware_key()}
    marked = UserMsg("alice", "hello")
    marked.metadata = {NOTE_MARK: damage}
    await agent.reply(marked)
    answer = await agent.reply(UserMsg("alice", "which tea?"))

    assert answer.get_text_content() == "All right."
    assert "Alice likes tea." in agent.model.seen[-1]
    assert "which tea?" in texts(memory)


@pytest.mark.parametrize("damage", [[], "x", 5, {ALICE.key: 5}, {ALICE.key: {"said": [{}]}}])
async def test_a_damaged_question_in_the_state_harms_no_reply(memory, damage):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(middleware)
    agent.state.middle_context[await middleware.get_middleware_key()] = damage
    await agent.reply(UserMsg("alice", "hello"))

    assert texts(memory) == ["hello", "All right."]
    assert agent.state.middle_context == {}


@pytest.mark.parametrize("said", [None, "x", [7, {}, {"name": 1, "text": "x", "at": ""}]])
async def test_a_damaged_question_of_a_parked_reply_harms_no_resumption(memory, said):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    script = [use("dangerous", city="Lyon")]
    agent = await make(middleware, script=script, tools=[FunctionTool(dangerous)])
    asked = await until(agent.reply_stream(UserMsg("a", "book it")), RequireUserConfirmEvent)
    held = agent.state.middle_context[await middleware.get_middleware_key()]
    for entry in held.values():
        entry["said"] = said
    confirmed = [ConfirmResult(confirmed=True, tool_call=one) for one in asked.tool_calls]
    answer = await agent.reply(
        UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=confirmed)
    )

    assert answer.get_text_content() == "All right."
    memory.flush(10)  # what was said before the pause is accepted, and perhaps not yet applied
    assert texts(memory) == ["book it"]


async def test_the_question_of_a_failed_reply_does_not_stay_in_the_state(memory):
    who = ["u0"]
    state = AgentState()
    for number in range(3):
        who[0] = f"u{number}"
        agent = await make(
            CommonplaceMiddleware(user_id=lambda agent: who[0], client=memory),
            script=[RuntimeError("the model is down")] * 9,
            state=state,
        )
        with pytest.raises(RuntimeError):
            await agent.reply(UserMsg(who[0], f"private words of {who[0]}"))

    (askers,) = state.middle_context.values()  # by whom each message in the context is
    assert {*askers} <= {one.id for one in state.context}
    assert "private words" not in str(state.middle_context)


async def test_a_question_that_a_dead_process_left_goes_with_the_next_reply(memory):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(middleware)
    left = {BOB.key: {"reply_id": "dead", "said": []}}
    agent.state.middle_context[await middleware.get_middleware_key()] = left
    await until(agent.reply_stream(UserMsg("alice", "hello")), ModelCallStartEvent)

    (kept,) = agent.state.middle_context.values()
    assert [entry["reply_id"] for entry in kept.values()] == [agent.state.reply_id]


# -- what is said ----------------------------------------------------------------------------------


async def test_two_messages_with_one_id_are_both_remembered(memory):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    first, second = UserMsg("alice", "first text"), UserMsg("alice", "second text")
    second.id = first.id
    for message in (first, second):
        await agent.reply(message)

    assert texts(memory) == ["first text", "All right.", "second text", "All right."]


@pytest.mark.parametrize("name", ["a\ud800", "a\x00b", "", " ", "x" * 5000, "\u200b", "a\nb"])
async def test_a_strange_name_costs_no_turn(memory, name):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    message = UserMsg("alice", "hello")
    message.name = name
    stream = agent.reply_stream(message)
    with contextlib.suppress(UnicodeEncodeError):  # a scripted model's wire takes no surrogate
        async for event in stream:
            if isinstance(event, ReplyEndEvent):
                break

    assert texts(memory) == ["hello", "All right."]


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\x00"])
async def test_a_question_without_visible_text_leaves_no_orphan_answer(memory, text):
    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
    await agent.reply(UserMsg("alice", text))

    assert texts(memory) == []


class OnceMore(MiddlewareBase):
    """Sends a reply that is finished into a second round."""

    def __init__(self) -> None:
        self.left = 1

    async def on_reply(self, agent, input_kwargs, next_handler) -> Any:
        async for event in next_handler(**input_kwargs):
            if isinstance(event, ReplyEndEvent) and self.left:
                self.left -= 1
            else:
                yield event


async def test_a_reply_of_two_rounds_is_remembered_with_the_answer_of_each(memory):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, mode="static_control")
    model = ScriptedModel([say("one"), say("two")])
    agent = Agent("bot", "sys", model, middlewares=[OnceMore(), middleware])
    await agent.reply(UserMsg("alice", "hello"))

    assert texts(memory) == ["hello", "one", "two"]


@pytest.mark.parametrize("prefix", ["team_", "team-"])
async def test_a_prefix_is_not_put_in_front_of_a_name_that_has_it(memory, prefix):
    middleware = CommonplaceMiddleware(
        user_id="alice",
        client=memory,
        tool_prefix=prefix,
        tool_instructions=f"Call {prefix}search_memory or `add_memory`.",
    )

    told = await middleware.on_system_prompt(await make(middleware), "Be kind.")
    assert told == f"Be kind.\n\nCall {prefix}search_memory or `{prefix}add_memory`."


# -- one middleware a turn -------------------------------------------------------------------------


async def test_a_middleware_for_every_turn_opens_the_folder_once(tmp_path):
    embedder = HashEmbedder()
    opened = []
    for number in range(4):
        middleware = CommonplaceMiddleware(
            user_id="alice", path=str(tmp_path), embedding_model=embedder
        )
        agent = await make(middleware)
        await agent.reply(UserMsg("alice", f"question {number}"))
        opened.append(await middleware._memory.lazy.aget())

    assert len({id(one) for one in opened}) == 1
    assert len(texts(opened[0])) == 8
    del agent
    gc.collect()
    await middleware.aclose()
    assert opened[0]._closed


async def test_a_late_write_of_one_middleware_counts_for_the_next(
    memory, hang, monkeypatch, caplog
):
    hang("aadd")
    monkeypatch.setattr("commonplace.agents.agent_memory.WRITE_PATIENCE", 0.05)
    middlewares = [
        CommonplaceMiddleware(user_id="alice", client=memory, recall_timeout=seconds)
        for seconds in (60, 0.03)
    ]
    monkeypatch.setattr(memory, "asearch", no_matches)
    for middleware in middlewares:
        await (await make(middleware)).reply(UserMsg("alice", "I like tea"))

    assert middlewares[1]._memory._write_seconds() == 0.03
    assert len(middlewares[0]._memory.lazy.writes) == 2
    assert caplog.text.count("memory write is late") == 1


async def test_the_key_in_saved_states_stays(memory):
    key = await CommonplaceMiddleware(user_id="alice", client=memory).get_middleware_key()

    assert key.startswith("MemoryMiddleware:")


async def test_a_folder_stays_open_while_another_middleware_uses_it(tmp_path):
    embedder = HashEmbedder()
    first, second = (
        CommonplaceMiddleware(user_id="alice", path=str(tmp_path), embedding_model=embedder)
        for _ in range(2)
    )
    memory = await first._memory.lazy.aget()
    await first.aclose()

    assert not memory._closed
    await second.aclose()
    assert memory._closed


async def test_openings_that_nobody_uses_are_few(tmp_path, monkeypatch):
    pool = MemoryPool()
    monkeypatch.setattr("commonplace.agents.lazy_memory._pool", pool)
    monkeypatch.setattr("commonplace.agents.lazy_memory.MAX_IDLE", 2)
    closed = threading.Semaphore(0)
    close = Memory.close
    monkeypatch.setattr(Memory, "close", lambda self, *rest: (close(self, *rest), closed.release()))
    for number in range(5):
        middleware = CommonplaceMiddleware(
            user_id="alice", path=str(tmp_path / str(number)), embedding_model=HashEmbedder()
        )
        await middleware._memory.lazy.aget()
        del middleware
        gc.collect()

    assert len(pool._memories) == 3
    assert await asyncio.to_thread(closed.acquire, timeout=30)
    for lazy in pool._memories.values():
        await lazy.aclose()
