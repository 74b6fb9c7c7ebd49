"""What a day with an agent leaves behind: each turn, and only what the user said as his own."""

import asyncio
import contextlib
import gc
import json
import threading
import time
from dataclasses import replace
from enum import StrEnum
from typing import Any
from uuid import uuid4

import pytest
from agentscope.agent import Agent, ReActConfig
from agentscope.credential import CredentialBase
from agentscope.event import (
    ConfirmResult,
    ModelCallStartEvent,
    ReplyStartEvent,
    RequireUserConfirmEvent,
    UserConfirmResultEvent,
    UserInterruptEvent,
)
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import AssistantMsg, TextBlock, ToolCallBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision, PermissionRule
from agentscope.pipeline import GoalPipeline, TeamMember, TeamPipeline
from agentscope.sop import SOP, SOPEngine, SOPStep
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

from commonplace import (
    InvalidScopeError,
    Memory,
    MemoryEvent,
    Policy,
    Record,
    SchemaMismatchError,
    Scope,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope import CommonplaceMiddleware, turn_owner
from commonplace_agentscope.convert import holds_note

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")


def say(text):
    return [TextBlock(text=text)]


def use(name, /, **arguments: Any):
    return [ToolCallBlock(id=uuid4().hex, name=name, input=json.dumps(arguments))]


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
        shown = await self.formatter.format(messages)
        self.seen.append(json.dumps(shown, ensure_ascii=False))
        answer = self.script.pop(0) if self.script else say("All right.")
        if callable(answer):
            answer = await answer()
        if isinstance(answer, BaseException):
            raise answer
        return ChatResponse(content=answer, is_last=True)


async def make(*middlewares, script=(), tools=(), name="bot", **more: Any):
    found = [tool for one in middlewares for tool in await one.list_tools()]
    toolkit = Toolkit(tools=[*found, *tools])
    return Agent(
        name, "sys", ScriptedModel(script), toolkit=toolkit, middlewares=[*middlewares], **more
    )


def told(memory, scope=ALICE) -> list[Record]:
    found = memory.list(scope).records
    return sorted(found, key=lambda one: (one.created_at, one.position or 0))


def texts(memory, scope=ALICE):
    return [one.text for one in told(memory, scope)]


def spoken(memory, scope=ALICE):
    """What is stored as the user's."""
    return [one.text for one in told(memory, scope) if one.role == "user"]


def lines(agent):
    """The lines of all notes in an agent's conversation, without their times."""
    found = [one.content[0].hint.splitlines() for one in agent.state.context if holds_note(one)]
    return [line.partition("] ")[2] for note in found for line in note if line.startswith("- ")]


async def settled(middleware, memory):
    await middleware.aclose()
    await memory.aflush()
    return texts(memory)


async def until(stream, kind):
    async for event in stream:
        if isinstance(event, kind):
            return event
    raise AssertionError(kind)


def confirm(asked):
    results = [ConfirmResult(confirmed=True, tool_call=one) for one in asked.tool_calls]
    return UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=results)


async def dangerous(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@pytest.fixture
def middleware(memory):
    return CommonplaceMiddleware(user_id="alice", client=memory)


# -- what the note holds ---------------------------------------------------------------------------


async def test_a_fact_is_in_the_note_each_time_it_is_asked_for(memory):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, top_k=1)
    await (await make(middleware)).reply(UserMsg("Alice", "My cat is called Miso."))
    noted = []
    for _ in range(9):
        agent = await make(middleware)
        await agent.reply(UserMsg("Alice", "How is my cat called?"))
        noted.append(lines(agent))

    assert noted == [["Alice: My cat is called Miso."]] * 9


@pytest.mark.parametrize("inject", ["replace", "transient", "persist"])
async def test_a_note_repeats_nothing_that_the_conversation_holds(memory, inject):
    memory.add("Alice's cat Miso is ill.", ALICE)
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, inject=inject)
    agent = await make(middleware, script=[say("Your cat Miso sleeps.")])
    noted: list[str] = []
    for text in ("My cat is called Miso.", "What does my cat Miso do?", "Is my cat Miso ill?"):
        async for _ in agent.reply_stream(UserMsg("Alice", text)):
            noted += lines(agent)

    assert {one.removeprefix("(earlier) ") for one in noted} == {"Alice's cat Miso is ill."}
    assert len(lines(agent)) == (inject != "transient")


async def test_a_summary_and_a_tools_result_are_part_of_the_conversation(memory, middleware):
    memory.add(["Alice's cat is called Miso.", "Alice's cat eats fish."], ALICE)
    agent = await make(middleware, script=[use("search_memory", keywords=["cat eats"])])
    agent.state.summary = "They spoke of pets: Alice's cat is called Miso."
    await agent.reply(UserMsg("Alice", "hello"))
    await agent.reply(UserMsg("Alice", "Tell me about the cat of Alice: what it eats, its name"))

    assert "Alice's cat eats fish." in agent.model.seen[1]
    assert lines(agent) == []


@pytest.mark.parametrize("text", ["hello", "thanks!", "好的，谢谢"])
async def test_a_greeting_gets_no_note(memory, middleware, text):
    memory.add("Alice said hello and thanks to Bob.", ALICE)
    agent = await make(middleware)
    await agent.reply(UserMsg("Alice", text))

    assert lines(agent) == []


# -- the user's words survive ----------------------------------------------------------------------


async def test_of_a_reply_whose_model_fails_the_users_words_are_kept_once(memory, middleware):
    agent = await make(middleware, script=[RuntimeError("refused")] * 4)
    with pytest.raises(RuntimeError):
        await agent.reply(UserMsg("Alice", "I like tea"))
    assert await settled(middleware, memory) == ["I like tea"]

    agent.model.script = []
    await agent.reply(UserMsg("Alice", "I like tea"))  # another message with the same words
    assert texts(memory) == ["I like tea", "All right."]


async def test_a_message_that_is_sent_again_is_the_same_one(memory, middleware):
    message = UserMsg("Alice", "I like tea")
    agent = await make(middleware, script=[asyncio.CancelledError()])
    await agent.reply(message)
    assert await settled(middleware, memory) == ["I like tea"]

    state = AgentState(session_id=agent.state.session_id)
    await (await make(middleware, state=state)).reply(message)
    assert texts(memory) == ["I like tea", "All right."]


async def test_a_failed_reply_that_is_continued_is_one_turn(memory, middleware):
    agent = await make(middleware, script=[RuntimeError("refused")] * 4)
    with pytest.raises(RuntimeError):
        await agent.reply(UserMsg("Alice", "I like tea"))
    agent.model.script = []
    await agent.reply()

    assert texts(memory) == ["I like tea", "All right."]


async def test_what_an_agent_observed_before_it_replies_is_recalled_for_and_kept(
    memory, middleware
):
    memory.add("Alice likes green tea.", ALICE)
    agent = await make(middleware)
    await agent.observe(UserMsg("Alice", "Which tea is it that Alice likes?"))
    await agent.reply()
    await agent.reply()

    assert "Alice likes green tea." in agent.model.seen[0]
    assert texts(memory)[1:] == ["Which tea is it that Alice likes?", "All right."]


async def test_words_said_twice_to_an_agent_that_answers_are_two(memory, middleware):
    agent = await make(middleware)
    for _ in range(2):
        await agent.reply(UserMsg("Alice", "I like tea"))

    assert spoken(memory) == ["I like tea"] * 2


@pytest.mark.parametrize("raises", [False, True])
async def test_a_reply_cancelled_in_the_model_keeps_the_users_words(memory, middleware, raises):
    asked = asyncio.Event()

    async def hang() -> Any:
        asked.set()
        await asyncio.Event().wait()

    config = ReActConfig(interruption_raise_cancelled_error=raises)
    agent = await make(middleware, script=[hang], react_config=config)
    reply = asyncio.create_task(agent.reply(UserMsg("Alice", "I like tea")))
    await asked.wait()
    reply.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reply

    assert await settled(middleware, memory) == ["I like tea"]


async def test_a_reply_cancelled_while_it_recalls_keeps_the_users_words(
    memory, middleware, monkeypatch
):
    recalling = asyncio.Event()

    async def hang(*args: Any, **options: Any) -> Any:
        recalling.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(memory, "asearch", hang)
    agent = await make(middleware)
    reply = asyncio.create_task(agent.reply(UserMsg("Alice", "I like tea")))
    await recalling.wait()
    reply.cancel()
    answer = await reply

    assert answer.get_text_content() == agent.react_config.interruption_message
    assert await settled(middleware, memory) == ["I like tea"]


@pytest.mark.parametrize("kind", [ReplyStartEvent, ModelCallStartEvent])
@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_consumer_that_stops_leaves_the_users_words(memory, middleware, kind, is_closed):
    agent = await make(middleware)
    stream = agent.reply_stream(UserMsg("Alice", "I like tea"))
    await until(stream, kind)
    if is_closed:
        await stream.aclose()
    del stream
    for _ in range(10):
        gc.collect()
        await asyncio.sleep(0)

    assert await settled(middleware, memory) == ["I like tea"]


def test_a_consumer_that_stops_with_its_loop_leaves_the_users_words(tmp_path):
    place, embedder = str(tmp_path / "place"), HashEmbedder()
    middleware = CommonplaceMiddleware(user_id="alice", path=place, embedding_model=embedder)

    async def run() -> None:
        stream = (await make(middleware)).reply_stream(UserMsg("Alice", "I like tea"))
        await until(stream, ModelCallStartEvent)

    asyncio.run(run())
    asyncio.run(middleware.aclose())
    with Memory.open(place, embedder=embedder) as memory:
        memory.flush()
        assert texts(memory) == ["I like tea"]


async def test_a_parked_reply_is_not_failed_and_its_interruption_keeps_the_words(
    memory, middleware
):
    script = [use("dangerous", city="Lyon")]
    agent = await make(middleware, script=script, tools=[FunctionTool(dangerous)])
    stream = agent.reply_stream(UserMsg("Alice", "book Lyon"))
    asked = await until(stream, RequireUserConfirmEvent)
    await stream.aclose()
    with pytest.raises(ValueError, match="waiting"):
        await agent.reply(UserMsg("Alice", "I like tea"))
    assert await settled(middleware, memory) == ["book Lyon", "I like tea"]

    await agent.reply(UserInterruptEvent(reply_id=asked.reply_id))
    assert await settled(middleware, memory) == ["book Lyon", "I like tea"]


async def test_a_parked_reply_that_fails_when_it_goes_on_keeps_the_words(memory, middleware):
    script = [use("dangerous", city="Lyon"), *[RuntimeError("down")] * 4]
    agent = await make(middleware, script=script, tools=[FunctionTool(dangerous)])
    asked = await until(agent.reply_stream(UserMsg("Alice", "book Lyon")), RequireUserConfirmEvent)
    with pytest.raises(RuntimeError):
        await agent.reply(confirm(asked))

    assert await settled(middleware, memory) == ["book Lyon"]
    assert agent.state.middle_context == {}


# -- only what a human said ------------------------------------------------------------------------


def ask(inner, wrap=None):
    """Make a tool with which an agent asks another one."""

    async def consult(task: str) -> str:
        """Ask a colleague."""
        call = inner.reply(UserMsg("user", task))
        return (await (wrap(call) if callable(wrap) else call)).get_text_content()

    async def in_a_thread(task: str) -> str:
        """Ask a colleague."""
        return await asyncio.to_thread(lambda: asyncio.run(consult(task)))

    function = in_a_thread if wrap == "thread" else consult
    function.__name__ = "consult"
    return FunctionTool(function, permission=ALLOWED)


async def as_task(work):
    return await asyncio.create_task(work)


@pytest.mark.parametrize("wrap", [None, as_task, "thread"])
async def test_what_an_outer_agent_asks_an_inner_one_is_not_the_users(memory, middleware, wrap):
    memory.add("Alice books trips to Lyon by train.", ALICE)
    inner_memory = CommonplaceMiddleware(user_id="alice", client=memory)
    inner = await make(inner_memory, name="inner")
    script = [use("consult", task="How does Alice book trips to Lyon?"), say("By train.")]
    outer = await make(middleware, script=script, tools=[ask(inner, wrap)], name="outer")
    await outer.reply(UserMsg("Alice", "Book Lyon for me"))

    assert "by train" in inner.model.seen[0]
    assert texts(memory)[1:] == ["Book Lyon for me", "By train."]


async def test_the_users_words_of_an_outer_agent_without_memory_are_not_made_up(memory, middleware):
    inner = await make(middleware, name="inner")
    outer = await make(
        script=[use("consult", task="You are a planner. Plan it.")], tools=[ask(inner)], name="o"
    )
    await outer.reply(UserMsg("Alice", "Book Lyon for me"))

    assert len(inner.model.seen) == 1
    memory.flush(10)
    assert texts(memory) == []


async def test_an_agent_asked_between_the_events_of_another_hears_the_user(memory, middleware):
    outer = await make(CommonplaceMiddleware(user_id="bob", client=memory), name="outer")
    agent = await make(middleware)
    stream = outer.reply_stream(UserMsg("Bob", "hello there Bob"))
    await until(stream, ModelCallStartEvent)
    await agent.reply(UserMsg("Alice", "I like tea"))
    await stream.aclose()

    assert texts(memory) == ["I like tea", "All right."]


async def test_a_task_that_outlives_the_reply_that_made_it_serves_users(memory, middleware):
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    agent = await make(middleware)

    async def serve() -> None:
        await agent.reply(await inbox.get())

    async def start_serving() -> Any:
        servers.append(asyncio.create_task(serve()))
        return say("Serving.")

    servers: list[asyncio.Task[None]] = []
    outer = await make(
        CommonplaceMiddleware(user_id="bob", client=memory), script=[start_serving], name="outer"
    )
    await outer.reply(UserMsg("Bob", "serve"))
    inbox.put_nowait(UserMsg("Alice", "I like tea"))
    await servers[0]

    assert texts(memory) == ["I like tea", "All right."]


@pytest.mark.parametrize("name", ["writer", "user"])
async def test_an_answer_handed_on_in_the_users_name_is_not_his(memory, name):
    answer = "Alice wants a trip to Lyon in May, by train, for three."
    makers = [CommonplaceMiddleware(user_id="alice", client=memory) for _ in range(2)]
    writer = await make(makers[0], script=[say(answer)], name="writer")
    checker = await make(makers[1], name="checker")
    given = await writer.reply(UserMsg("Alice", "Book Lyon for me"))
    await checker.reply(UserMsg(name, given.get_text_content()))
    await checker.reply(UserMsg("Alice", "Thank you, take the earlier one"))

    assert spoken(memory) == ["Book Lyon for me", "Thank you, take the earlier one"]


async def test_what_a_person_says_who_is_called_like_an_agent_is_his(memory, middleware):
    for name in ("helper", "bot"):
        await (await make(middleware, name=name)).reply(UserMsg("helper", f"I am not {name}"))

    assert spoken(memory) == ["I am not helper", "I am not bot"]


@pytest.mark.parametrize("has_leaders", [True, False])
async def test_a_team_stores_the_users_task_once(memory, has_leaders):
    def new():
        return CommonplaceMiddleware(user_id="alice", client=memory)

    script = [use("TeamAssign", member="m", prompt="You are to find a train to Lyon")]
    leader = await make(*[new()] * has_leaders, script=[*script, say("Booked.")], name="leader")
    member = await make(new(), script=[say("Train 6607.")], name="m")
    team = TeamPipeline(leader, [TeamMember(agent=member, description="finds trains")])
    async for _ in team.reply_stream(UserMsg("Alice", "Book Lyon for me")):
        pass

    assert len(member.model.seen) == 1
    assert texts(memory) == (["Book Lyon for me", "Booked."] if has_leaders else [])


async def test_a_goal_and_a_procedure_store_the_users_task_once(memory):
    def new():
        return CommonplaceMiddleware(user_id="alice", client=memory)

    def output(**given: Any):
        return use("GenerateStructuredOutput", **given)

    tries = [output(report="A plan."), output(report="A better plan.")]
    verdicts = [output(result="fail", message="Poor."), output(result="pass", message="Good.")]
    pipeline = GoalPipeline(
        await make(new(), script=tries, name="doer"),
        await make(new(), script=verdicts, name="judge"),
    )
    async for _ in pipeline.reply_stream(UserMsg("Alice", "Plan a trip to Lyon")):
        pass
    assert spoken(memory) == ["Plan a trip to Lyon"]

    steps = [
        SOPStep(
            "draft",
            "Write it down.",
            await make(new(), script=[output(handover="A draft.")], name="drafter"),
            await make(new(), script=[output(passed=True, message="Good.")], name="judge"),
        ),
        SOPStep(
            "print",
            "Print the draft.",
            await make(new(), script=[output(handover="On paper.")], name="printer"),
        ),
    ]
    engine = SOPEngine(SOP("letter", list(steps)))
    async for _ in engine.reply_stream(UserMsg("Alice", "A letter to my aunt")):
        pass
    assert spoken(memory) == ["Plan a trip to Lyon", "A letter to my aunt"]


OLD = turn_owner._CALLERS


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        (replace(OLD, modules=("agentscope.orchestration",)), "no module agentscope.orchestration"),
        (replace(OLD, caller="agentscope.agents."), "no function of agentscope.agents. calls"),
    ],
)
async def test_with_an_agentscope_that_has_changed_nothing_is_taken_for_the_users(
    memory, middleware, monkeypatch, caplog, rule, missing
):
    monkeypatch.setattr(turn_owner, "_CALLERS", rule)
    memory.add("Alice likes green tea.", ALICE)
    agent = await make(middleware)
    for text in ("Which tea do I like?", "I like coffee, too"):
        await agent.reply(UserMsg("Alice", text))

    assert "green tea" in agent.model.seen[0]
    assert spoken(memory) == []
    assert caplog.text.count(missing) == 1
    assert "Install a release that was tested: agentscope 2.0.10 to" in caplog.text


async def test_what_a_pipeline_that_is_not_known_tells_is_not_taken_for_the_users(
    memory, middleware, monkeypatch, caplog
):
    monkeypatch.setattr(turn_owner, "_FIRST", {"TeamPipeline": "leader"})
    report = use("GenerateStructuredOutput", report="A plan.")
    verdict = use("GenerateStructuredOutput", result="pass", message="Good.")
    doer = await make(middleware, script=[report], name="doer")
    pipeline = GoalPipeline(doer, await make(script=[verdict], name="judge"))
    async for _ in pipeline.reply_stream(UserMsg("Alice", "Plan a trip to Lyon")):
        pass

    assert spoken(memory) == []
    assert caplog.text.count("GoalPipeline is no pipeline that is known") == 1


# -- ids -------------------------------------------------------------------------------------------


class Customer(StrEnum):
    ALICE = "alice"


GOOD = [(42, "42"), ("alice@example.org", "alice@example.org"), (Customer.ALICE, "alice")]
BAD = [" alice ", "e\u0301", "*", "x" * 300, "a\nb", "", True, ["alice"]]


@pytest.mark.parametrize(("given", "stored"), GOOD)
@pytest.mark.parametrize("is_callable", [True, False])
async def test_an_id_of_a_framework_is_one_persons(memory, given, stored, is_callable):
    user_id = (lambda agent: given) if is_callable else given
    agent = await make(CommonplaceMiddleware(user_id=user_id, client=memory))
    await agent.reply(UserMsg("Alice", "I like tea"))

    assert texts(memory, Scope(user_id=stored)) == ["I like tea", "All right."]


@pytest.mark.parametrize(
    ("given", "stored"), [("alice", ["I like tea", "All right."]), (None, []), (LookupError(), [])]
)
async def test_a_user_may_be_looked_up_asynchronously(memory, given, stored):
    async def find(agent):
        await asyncio.sleep(0)
        if isinstance(given, Exception):
            raise given
        return given

    await (await make(CommonplaceMiddleware(user_id=find, client=memory))).reply(
        UserMsg("Alice", "I like tea")
    )

    assert texts(memory) == stored


async def test_an_id_from_an_asynchronous_function_is_checked(memory):
    async def find(agent):
        return "*"

    agent = await make(CommonplaceMiddleware(user_id=find, client=memory))
    with pytest.raises(InvalidScopeError):
        await agent.reply(UserMsg("Alice", "I like tea"))

    assert agent.model.seen == []


@pytest.mark.parametrize("given", BAD)
async def test_an_id_that_no_scope_can_hold_is_refused_where_it_is_given(memory, given):
    with pytest.raises(InvalidScopeError):
        CommonplaceMiddleware(user_id=given, client=memory)
    middleware = CommonplaceMiddleware(user_id=lambda agent: given, client=memory)
    agent = await make(middleware)
    with pytest.raises(InvalidScopeError):
        await agent.reply(UserMsg("Alice", "I like tea"))

    assert (agent.model.seen, agent.state.context) == ([], [])


async def test_forgetting_a_session_leaves_the_other(memory, middleware):
    agents = [await make(middleware, state=AgentState(session_id=name)) for name in ("s1", "s2")]
    for number, agent in enumerate(agents):
        await agent.reply(UserMsg("Alice", f"session {number}"))
    receipt = memory.forget(Scope(user_id="alice", session_id="s1"))

    assert receipt.complete
    assert spoken(memory) == ["session 1"]


# -- health ----------------------------------------------------------------------------------------


async def test_each_recall_write_and_tool_call_is_counted_and_told(memory):
    events: list[MemoryEvent] = []
    middleware = CommonplaceMiddleware(user_id="alice", client=memory, on_event=events.append)
    script = [use("add_memory", thinking="", content=["Alice's cat is Miso."]), say("Done.")]
    await (await make(middleware, script=script)).reply(UserMsg("Alice", "My dog is Rex."))
    await (await make(middleware)).reply(UserMsg("Alice", "What is my dog called?"))

    seen = [(one.name, one.operation, one.scope.user_id) for one in events]
    assert seen == [
        ("empty", "recall", "alice"),
        ("written", "add_memory", "alice"),
        ("written", "write", "alice"),
        ("recalled", "recall", "alice"),
        ("written", "write", "alice"),
    ]
    counted = middleware.counters()
    assert (counted.recalled, counted.empty, counted.written, counted.failed) == (1, 1, 3, 0)


async def test_a_hook_that_fails_costs_no_reply(memory):
    def fail(event):
        raise RuntimeError("the hook is broken")

    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory, on_event=fail))
    answer = await agent.reply(UserMsg("Alice", "I like tea"))

    assert answer.get_text_content() == "All right."
    assert texts(memory) == ["I like tea", "All right."]


@pytest.mark.parametrize("lists_tools", [True, False])
@pytest.mark.parametrize("mode", ["static_control", "agent_control"])
async def test_a_folder_of_another_embedder_is_raised_by_the_first_reply(
    tmp_path, mode, lists_tools
):
    place = str(tmp_path / "place")
    Memory.open(place, embedder=HashEmbedder()).close()
    middleware = CommonplaceMiddleware(
        user_id="alice", path=place, embedding_model=HashEmbedder(16), mode=mode
    )
    agent = (
        await make(middleware)
        if lists_tools
        else Agent("bot", "sys", ScriptedModel(), middlewares=[middleware])
    )
    if mode == "agent_control" and not lists_tools:
        return  # nothing opens the memory
    for _ in range(2):
        with pytest.raises(SchemaMismatchError):
            await agent.reply(UserMsg("Alice", "which tea do I like?"))

    assert agent.model.seen == []


async def test_a_folder_that_cannot_be_made_is_raised_until_somebody_mends_it(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    place = tmp_path / "file" / "place"
    middleware = CommonplaceMiddleware(
        user_id="alice", path=str(place), embedding_model=HashEmbedder()
    )
    agent = await make(middleware)
    for _ in range(2):
        with pytest.raises(StoreRefusedError):
            await agent.reply(UserMsg("Alice", "I like tea"))
    (tmp_path / "file").unlink()
    await agent.reply(UserMsg("Alice", "I like coffee"))
    memory = await middleware._memory.lazy.aget()

    assert "I like coffee" in texts(memory)
    await middleware.aclose()


async def test_an_outage_raises_nothing_and_its_begin_and_end_are_logged(
    memory, middleware, monkeypatch, caplog
):
    real = memory.asearch

    async def fail(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError(store="test", reason="away")

    agent = await make(middleware)
    monkeypatch.setattr(memory, "asearch", fail)
    for number in range(3):
        await agent.reply(UserMsg("Alice", f"what tea in week {number}?"))
    monkeypatch.setattr(memory, "asearch", real)
    await agent.reply(UserMsg("Alice", "what tea at last?"))

    logged = [one.message for one in caplog.records if one.name == "commonplace_agentscope"]
    assert [one.split(";")[0].split(",")[0] for one in logged] == [
        "memory recall failed",
        "memory recall works again",
    ]
    assert middleware.counters().failed == 3


# -- no turn is lost -------------------------------------------------------------------------------


class SlowEmbedder(HashEmbedder):
    def embed(self, texts, *, purpose):
        time.sleep(0.2)
        return super().embed(texts, purpose=purpose)


@pytest.mark.parametrize("await_write", [True, False])
def test_a_slow_embedder_loses_no_turn_of_any_thread(tmp_path, await_write):
    with Memory.open(str(tmp_path / "slow"), embedder=SlowEmbedder()) as memory:
        shared = CommonplaceMiddleware(
            user_id=lambda agent: agent.name,
            client=memory,
            recall_timeout=0.05,
            await_write=await_write,
        )

        async def talk(user) -> None:
            agent = await make(shared, name=user)
            for number in range(3):
                await agent.reply(UserMsg(user, f"number {number}"))
            reply = asyncio.create_task(agent.reply(UserMsg(user, "number 3")))
            await asyncio.sleep(0.1)
            reply.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reply
            await shared._memory.wait_for_writes(5)

        users = ("alice", "bob")
        threads = [threading.Thread(target=asyncio.run, args=(talk(one),)) for one in users]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = memory.flush()

        assert (left.pending, left.dead) == (0, 0)
        for user in users:
            assert sorted(spoken(memory, Scope(user_id=user))) == [
                f"number {number}" for number in range(4)
            ]


# -- tools -----------------------------------------------------------------------------------------

CHANGES = ("search_memory", "update_memory", "forget_memory")


def label(memory, scope=ALICE):
    (record,) = memory.list(scope, kinds=("fact",)).records
    return record.id[:8]


async def test_an_agent_changes_what_its_note_shows(memory):
    memory.add("Alice's cat is called Miso.", ALICE)
    middleware = CommonplaceMiddleware(
        memory, user_id="alice", policy=Policy(tools=("update_memory", "forget_memory"))
    )
    text = "Alice's cat is called Momo."
    script = [use("update_memory", memory_id=label(memory), text=text), say("Done.")]
    agent = await make(middleware, script=script)
    await agent.reply(UserMsg("Alice", "My cat has another name, it is called Momo"))

    assert [one.name for one in await middleware.list_tools()] == [
        "update_memory",
        "forget_memory",
    ]
    assert [one.text for one in memory.list(ALICE, kinds=("fact",)).records] == [text]


async def test_an_agent_changes_only_what_it_was_shown_in_this_reply(memory):
    who = ["alice"]
    memory.add("Alice's cat is called Miso.", ALICE)
    middleware = CommonplaceMiddleware(
        memory,
        user_id=lambda agent: who[0],
        policy=Policy(tools=CHANGES, mode="agent_control"),
    )
    wanted = label(memory)

    async def search() -> Any:
        return use("search_memory", keywords=["cat"])

    async def forget() -> Any:
        return use("forget_memory", memory_id=wanted)

    agent = await make(middleware, script=[forget, say("No."), search, say("Miso."), forget])
    for text in ("forget the cat", "which cat?", "forget it"):
        await agent.reply(UserMsg("Alice", text))
    who[0] = "bob"
    agent.model.script = [forget]
    await agent.reply(UserMsg("Bob", "forget the cat"))
    assert len(memory.list(ALICE).records) == 1

    who[0] = "alice"
    agent.model.script = [search, forget]
    await agent.reply(UserMsg("Alice", "forget the cat"))
    assert not memory.list(ALICE).records


async def test_an_agent_forgets_by_an_id_that_the_conversation_still_shows(memory):
    memory.add("Alice's dentist is called Sutton.", ALICE)
    middleware = CommonplaceMiddleware(memory, user_id="alice", policy=Policy(tools=CHANGES))
    script = [use("search_memory", keywords=["dentist"]), say("Sutton.")]
    script += [use("forget_memory", memory_id=label(memory)), say("Done.")]
    agent = await make(middleware, script=script)
    await agent.reply(UserMsg("Alice", "Who takes care of my teeth?"))
    await agent.reply(UserMsg("Alice", "What is my dentist called? Delete the name."))

    assert lines(agent) == []
    assert not memory.list(ALICE, kinds=("fact",)).records


@pytest.mark.parametrize("restart", [True, False])
async def test_a_change_that_was_confirmed_is_made(memory, restart):
    def new():
        return CommonplaceMiddleware(memory, user_id="alice", policy=Policy(tools=CHANGES))

    memory.add("Alice's cat is called Miso.", ALICE)
    middleware = new()
    agent = await make(middleware, script=[use("forget_memory", memory_id=label(memory))])
    rule = PermissionRule(
        tool_name="forget_memory",
        rule_content=None,
        behavior=PermissionBehavior.ASK,
        source="user",
    )
    agent.state.permission_context.ask_rules["forget_memory"] = [rule]
    question = UserMsg("Alice", "Forget how my cat is called")
    asked = await until(agent.reply_stream(question), RequireUserConfirmEvent)
    for _ in range(3):
        gc.collect()
        await asyncio.sleep(0)
    if restart:
        state = AgentState.model_validate_json(agent.state.model_dump_json())
        agent = await make(new(), state=state)
    await agent.reply(confirm(asked))

    assert not memory.list(ALICE, kinds=("fact",)).records


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"keywords": ["x"], "query": "x"}, "keywords, limit"), ({"query": "x"}, "keywords")],
)
async def test_a_wrong_argument_gets_an_error_with_the_tools_parameters(
    middleware, arguments, named
):
    agent = await make(middleware, script=[use("search_memory", **arguments), say("Done.")])
    await agent.reply(UserMsg("Alice", "what tea?"))

    (result,) = agent.state.context[-1].get_content_blocks("tool_result")
    output = result.output if isinstance(result.output, str) else result.output[0].text
    assert result.state == "error"
    assert named in output
    assert "_search" not in output


async def test_instructions_are_for_agents_that_have_the_tools(memory, middleware):
    agent = Agent("bot", "sys", ScriptedModel(), middlewares=[middleware])
    await agent.reply(UserMsg("Alice", "I like tea"))

    assert "search_memory" not in agent.model.seen[0]


async def test_instructions_need_every_tool_that_they_name(memory, middleware):
    search, _ = await middleware.list_tools()
    agent = Agent(
        "bot", "sys", ScriptedModel(), toolkit=Toolkit(tools=[search]), middlewares=[middleware]
    )
    await agent.reply(UserMsg("Alice", "I like tea"))

    assert "add_memory" not in agent.model.seen[0]


# -- what other agents say -------------------------------------------------------------------------

PLAN = "Alice takes the train to Lyon in May, with two friends."


def authors(memory):
    return [(one.role, one.name, one.text) for one in told(memory)]


@pytest.mark.parametrize("is_observed", [False, True])
async def test_an_answer_handed_on_is_recalled_for_and_kept_as_its_authors(memory, is_observed):
    memory.add("The train to Lyon is full in May.", ALICE)
    makers = [CommonplaceMiddleware(user_id="alice", client=memory) for _ in range(2)]
    planner = await make(makers[0], script=[say(PLAN)], name="planner")
    checker = await make(makers[1], script=[say("Take the bus.")], name="checker")
    plan = await planner.reply(UserMsg("Alice", "Plan my trip"))
    if is_observed:
        await checker.observe(plan)
        await checker.reply()
    else:
        await checker.reply(plan)

    assert "The train to Lyon is full in May." in checker.model.seen[0]
    assert authors(memory)[1:] == [
        ("user", "Alice", "Plan my trip"),
        ("assistant", "planner", PLAN),
        ("assistant", "planner", PLAN),  # a turn of the other agent's session too
        ("assistant", "checker", "Take the bus."),
    ]


async def test_an_answer_handed_on_survives_a_pause_as_its_authors(memory, middleware):
    script = [use("dangerous", city="Lyon")]
    agent = await make(middleware, script=script, tools=[FunctionTool(dangerous)])
    given = agent.reply_stream(AssistantMsg("planner", PLAN))
    asked = await until(given, RequireUserConfirmEvent)
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    again = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(again, tools=[FunctionTool(dangerous)], state=state)
    await agent.reply(confirm(asked))

    assert authors(memory) == [
        ("assistant", "planner", PLAN),
        ("assistant", "bot", "All right."),
    ]


async def test_of_a_structured_answer_handed_on_the_payload_is_kept(memory, middleware):
    given = AssistantMsg("planner", "The output is generated.")
    given.structured_output = {"city": "Lyon"}
    await (await make(middleware)).reply(given)

    assert authors(memory)[0] == ("assistant", "planner", '{"city": "Lyon"}')


async def test_an_interrupted_answer_handed_on_is_not_kept(memory, middleware):
    planner = await make(script=[asyncio.CancelledError()], name="planner")
    await (await make(middleware)).reply(await planner.reply(UserMsg("Alice", "Plan my trip")))

    memory.flush(10)
    assert texts(memory) == []
