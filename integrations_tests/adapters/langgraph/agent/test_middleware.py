import asyncio
import contextlib
import logging
import re
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents.middleware import AgentMiddleware, PIIMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from commonplace.agents import agent_memory
from commonplace.agents.note import NOTE_MARK
from commonplace.agents.policy import HEADER, Policy
from commonplace.errors import InvalidRecordError, InvalidScopeError
from commonplace.memory import Memory
from commonplace.testing.contracts.adapter import (
    AdapterContract,
    PolicyContract,
    PolicyFieldsContract,
)
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Scope
from commonplace_langgraph import MemoryMiddleware
from commonplace_langgraph import turn_owner as scope_module

ALICE = Scope(user_id="alice")
STATIC = Policy(mode="static_control")


class AsyncEmbedder(HashEmbedder):
    async def embed(self, texts, *, purpose):
        return super().embed(texts, purpose=purpose)


def ask(text):
    return {"messages": [HumanMessage(text)]}


def thread(name="t1", **more):
    return {"configurable": {"thread_id": name, **more}}


class TestAsyncAgent(AdapterContract, PolicyContract, PolicyFieldsContract):
    @pytest.fixture
    def turn_with(self, memory, make, model, context):
        def turn(policy, *, agent_id=None, conversation=None):
            shared = MemoryMiddleware(memory, policy=policy, agent_id=agent_id)
            threads = InMemorySaver()

            async def run(user, text):
                scripted = model()
                agent = make(scripted, shared, checkpointer=threads)
                config = thread(conversation or uuid.uuid4().hex)
                await agent.ainvoke(ask(text), config, context=context(user))
                return scripted.shown()

            return run

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, broken, turn):
        return turn


class TestAgentInThreads(AdapterContract, PolicyContract, PolicyFieldsContract):
    @pytest.fixture
    def turn_with(self, memory, make, model, context):
        def turn(policy, *, agent_id=None, conversation=None):
            shared = MemoryMiddleware(memory, policy=policy, agent_id=agent_id)
            threads = InMemorySaver()

            async def run(user, text):
                scripted = model()
                agent = make(scripted, shared, checkpointer=threads)
                config = thread(conversation or uuid.uuid4().hex)
                await asyncio.to_thread(agent.invoke, ask(text), config, context=context(user))
                return scripted.shown()

            return run

        return turn

    @pytest.fixture
    def turn(self, turn_with):
        return turn_with(Policy())

    @pytest.fixture
    def turn_without_memory(self, broken, turn):
        return turn


def locker(messages):
    """Answer with the codes that the model was shown."""
    return " ".join(sorted(set(re.findall(r"code-user\d", str(messages)))))


def test_one_agent_serves_many_users_at_once_from_threads(memory, make, model, context):
    agent = make(model(*[locker] * 32), MemoryMiddleware(memory), checkpointer=InMemorySaver())
    users = [f"user{number}" for number in range(8)]

    def turn(user, text, name):
        out = agent.invoke(ask(text), thread(f"{name}-{user}"), context=context(user))
        return out["messages"][-1].text

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: turn(one, f"My locker is code-{one} now.", "a"), users))
        answers = list(pool.map(lambda one: turn(one, "What is my locker?", "b"), users))

    assert [f"code-{one}" for one in users] == answers


async def test_one_agent_serves_many_users_at_once_on_a_loop(memory, make, model, context):
    agent = make(model(*[locker] * 32), MemoryMiddleware(memory), checkpointer=InMemorySaver())
    users = [f"user{number}" for number in range(8)]

    async def turn(user, text, name):
        out = await agent.ainvoke(ask(text), thread(f"{name}-{user}"), context=context(user))
        return out["messages"][-1].text

    await asyncio.gather(*(turn(one, f"My locker is code-{one} now.", "a") for one in users))
    answers = await asyncio.gather(*(turn(one, "What is my locker?", "b") for one in users))

    assert [f"code-{one}" for one in users] == answers


def test_a_second_loop_recalls_what_the_first_learned(memory, make, model, context):
    scripted = model()
    agent = make(scripted, MemoryMiddleware(memory))
    for text in ("My cat is called Miso.", "How is my cat called?"):
        asyncio.run(agent.ainvoke(ask(text), context=context("alice")))

    assert "My cat is called Miso." in scripted.shown()


def test_what_is_told_in_one_thread_is_recalled_in_another(memory, make, model, context):
    scripted = model()
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    agent.invoke(ask("My cat is called Miso."), thread("t1"), context=context("alice"))
    agent.invoke(ask("How is my cat called?"), thread("t2"), context=context("alice"))

    assert ", today] user: My cat is called Miso." in scripted.shown()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_no_checkpoint_and_no_stream_holds_a_note(memory, make, model, call, context, durability):
    memory.add("The cat of Alice is called Miso.", ALICE)
    saver = InMemorySaver()
    scripted = model(call("weather", city="Lyon"), "Purr.")
    agent = make(scripted, MemoryMiddleware(memory), tools=[weather], checkpointer=saver)
    modes = ["values", "updates", "messages", "custom", "debug"]
    events = list(
        agent.stream(
            ask("my cat?"), thread(), context=context("alice"), stream_mode=modes,
            durability=durability,
        )
    )  # fmt: skip

    assert all("Miso" in scripted.shown(one) for one in (0, 1))
    assert "Purr." in str(events)
    assert "Miso" not in str(events)
    kept = str([saver.blobs, saver.storage, saver.writes])
    assert "my cat?" in kept
    assert "Miso" not in kept
    assert HEADER not in kept


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_streamed_turn_is_recalled_for_and_written(
    memory, make, model, context, texts, is_async
):
    memory.add("Alice likes tea.", ALICE)
    scripted = model("Have some tea.")
    agent = make(scripted, MemoryMiddleware(memory))
    given = {"context": context("alice"), "stream_mode": "messages"}
    if is_async:
        parts = [part async for part in agent.astream(ask("what does Alice like?"), **given)]
    else:
        parts = list(agent.stream(ask("what does Alice like?"), **given))

    assert "".join(str(message.text) for message, _ in parts) == "Have some tea."
    assert "Alice likes tea." in scripted.shown()
    assert texts() == ["Alice likes tea.", "what does Alice like?", "Have some tea."]


@tool
def weather(city: str) -> str:
    """Look the weather up."""
    return f"sunny in {city}"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_is_searched_for_once_however_many_tools_it_calls(
    memory, make, model, call, context, monkeypatch, is_async
):
    asked = []

    def count(name):
        real = getattr(memory, name)
        monkeypatch.setattr(memory, name, lambda *a, **k: asked.append(name) or real(*a, **k))

    count("asearch" if is_async else "search")
    scripted = model(call("weather", city="Lyon"), call("weather", "c2", city="Oslo"), "Sunny.")
    agent = make(scripted, MemoryMiddleware(memory, policy=STATIC), tools=[weather])
    memory.add("Alice likes the sun.", ALICE)
    if is_async:
        await agent.ainvoke(ask("does Alice like it?"), context=context("alice"))
    else:
        agent.invoke(ask("does Alice like it?"), context=context("alice"))

    assert len(asked) == 1
    assert [scripted.shown(one).count(HEADER) for one in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("mode", "tools", "writes", "notes"),
    [("static_control", 0, 2, 1), ("agent_control", 2, 0, 0), ("both", 2, 2, 1)],
)
def test_each_mode_does_its_part(memory, make, model, context, texts, mode, tools, writes, notes):
    memory.add("Alice likes tea.", Scope(user_id="alice", agent_id="other"))
    middleware = MemoryMiddleware(memory, policy=Policy(mode=mode))
    scripted = model()
    make(scripted, middleware).invoke(ask("I like tea"), context=context("alice"))

    assert len(middleware.tools) == tools
    assert len(texts()) == 1 + writes
    assert scripted.shown().count(HEADER) == notes
    assert ("`search_memory`" in scripted.shown()) == bool(tools)


def test_the_instructions_are_left_out_when_another_middleware_takes_the_tools_away(
    memory, make, model, context
):
    class NoTools(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[]))

    scripted = model()
    agent = make(scripted, NoTools(), MemoryMiddleware(memory), system_prompt="Be kind.")
    agent.invoke(ask("hello"), context=context("alice"))

    assert scripted.seen[0][0].text == "Be kind."


def test_a_note_stands_in_front_of_the_question_and_changes_nothing_before_it(
    memory, make, model, context
):
    memory.add("Alice likes tea.", ALICE)
    scripted = model()
    middleware = MemoryMiddleware(memory, policy=STATIC)
    agent = make(scripted, middleware, checkpointer=InMemorySaver(), system_prompt="Be kind.")
    for text in ("tea?", "green tea?"):
        agent.invoke(ask(text), thread(), context=context("alice"))

    system, first, answer, second = scripted.seen[1]
    assert (system.text, first.text, answer.text) == ("Be kind.", "tea?", "All right.")
    assert second.text.startswith(HEADER)
    assert second.text.endswith("(End of the stored notes.)\n\ngreen tea?")


def test_a_question_with_a_picture_keeps_it_and_gets_a_note(memory, make, model, context, texts):
    memory.add("Alice likes tea.", ALICE)
    scripted = model()
    picture = {"type": "image", "url": "https://example.org/tea.png"}
    content = [{"type": "text", "text": "which tea is this?"}, picture]
    make(scripted, MemoryMiddleware(memory)).invoke(
        {"messages": [HumanMessage(content)]}, context=context("alice")
    )

    note, question, last = scripted.seen[0][-1].content
    assert note["text"].startswith(HEADER)
    assert (question["text"], last) == ("which tea is this?", picture)
    assert texts() == ["Alice likes tea.", "which tea is this?", "All right."]


def lines_of(text):
    """List the memories of the note in what a model was shown, without their times."""
    note = text.partition(HEADER)[2].partition("(End of")[0]
    lines = [one for one in note.splitlines() if one.startswith("- ")]
    return [re.sub(r"^- \[[^]]*\d{4}-\d\d-\d\d[^]]*\]", "-", one) for one in lines]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_note_repeats_nothing_that_the_conversation_holds(
    memory, make, model, context, is_async
):
    memory.add("Alice likes green tea.", ALICE)
    scripted = model("Alice, you like black tea.")
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    for text in ("Alice drinks tea at nine.", "Which tea does Alice like?", "And at nine, Alice?"):
        if is_async:
            await agent.ainvoke(ask(text), thread(), context=context("alice"))
        else:
            agent.invoke(ask(text), thread(), context=context("alice"))
    assert lines_of(scripted.shown(1)) == ["- Alice likes green tea."]

    agent.invoke(ask("Which tea does Alice like at nine?"), thread("t2"), context=context("alice"))
    shown = lines_of(scripted.shown())
    assert "- user: Alice drinks tea at nine." in shown
    assert not any("?" in one for one in shown)


def test_what_a_summary_says_is_held_and_what_it_left_out_is_not(memory, make, model, context):
    for text in ("Alice likes green tea.", "Alice likes black tea."):
        memory.add(text, ALICE)
    summary = SummarizationMiddleware(
        model(*["So far: Alice likes green tea."] * 9),
        trigger=("messages", 3),
        keep=("messages", 1),
    )
    scripted = model("Hello to you.")
    agent = make(scripted, MemoryMiddleware(memory), summary, checkpointer=InMemorySaver())
    for text in ("Hello there", "Which tea does Alice like?"):
        agent.invoke(ask(text), thread(), context=context("alice"))

    assert "So far: Alice likes green tea." in scripted.shown()
    assert "- Alice likes black tea." in lines_of(scripted.shown())
    assert "- Alice likes green tea." not in lines_of(scripted.shown())


@pytest.mark.parametrize("text", ["Hello!", "thanks a lot", "谢谢你"])
def test_small_talk_gets_no_note(memory, make, model, context, text):
    memory.add("Hello kitty is the cat of Alice, thanks to Bob 谢谢.", ALICE)
    scripted = model()
    make(scripted, MemoryMiddleware(memory)).invoke(ask(text), context=context("alice"))

    assert HEADER not in scripted.shown()


def test_names_and_thread_of_a_turn_are_kept(memory, make, model, context, told):
    agent = make(
        model(), MemoryMiddleware(memory, agent_id=lambda run: run.context.agent_id), name="bot"
    )
    said = HumanMessage("I like tea", name="Alice B")
    agent.invoke({"messages": [said]}, thread("t 1"), context=context("alice"))

    question, answer = told()
    assert (question.role, question.name, question.kind) == ("user", "Alice B", "episode")
    assert (answer.role, answer.name, answer.text) == ("assistant", "bot", "All right.")
    assert question.scope == Scope(user_id="alice", agent_id="helper", session_id="t 1")


def test_a_whole_conversation_given_at_once_is_written_from_its_last_question_on(
    memory, make, model, context, texts
):
    given = [("user", "old"), ("ai", "known"), ("user", "one"), ("user", "two")]
    make(model(), MemoryMiddleware(memory)).invoke(
        {"messages": given}, thread(), context=context("alice")
    )

    assert texts() == ["one", "two", "All right."]


def test_messages_with_the_same_id_are_both_kept(memory, make, model, context, texts):
    agent = make(model(), MemoryMiddleware(memory, policy=STATIC))
    for text in ("I like tea", "I like coffee"):
        agent.invoke({"messages": [HumanMessage(text, id="1")]}, context=context("alice"))

    assert [one for one in texts() if one != "All right."] == ["I like tea", "I like coffee"]


@pytest.mark.parametrize("mark", [NOTE_MARK, "lc_source"])
def test_a_note_and_a_summary_in_the_users_name_are_not_written(
    memory, make, model, context, texts, mark
):
    made_up = HumanMessage("They spoke of Miso.", additional_kwargs={mark: {}})
    given = {"messages": [made_up, HumanMessage("hello")]}
    make(model(), MemoryMiddleware(memory)).invoke(given, context=context("alice"))

    assert texts() == ["hello", "All right."]


def test_twenty_turns_lose_nothing_and_remember_no_note(memory, make, model, context, texts):
    memory.add("Alice likes tea.", ALICE)
    scripted = model(*[f"answer {number}" for number in range(20)])
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    questions = [f"What does Alice like at {number} o'clock?" for number in range(20)]
    for question in questions:
        agent.invoke(ask(question), thread(), context=context("alice"))

    assert texts()[1::2] == questions
    assert texts()[2::2] == [f"answer {number}" for number in range(20)]
    assert HEADER in scripted.shown(0)


def test_a_structured_answer_is_written_as_its_json(memory, make, model, call, context, texts):
    class City(BaseModel):
        name: str

    agent = make(
        model(call("City", name="Zürich")),
        MemoryMiddleware(memory),
        response_format=ToolStrategy(City),
    )
    out = agent.invoke(ask("which city?"), context=context("alice"))

    assert out["structured_response"] == City(name="Zürich")
    assert texts() == ["which city?", '{"name":"Zürich"}']


@pytest.mark.parametrize(
    "words", ["Zürich, as you asked for lakes.", [{"type": "text", "text": "Zürich, for lakes."}]]
)
def test_what_is_written_beside_a_structured_answer_is_written_too(
    memory, make, model, call, context, texts, words
):
    class City(BaseModel):
        name: str

    answer = call("City", name="Zürich").model_copy(update={"content": words})
    earlier = call("weather", city="Bern").model_copy(update={"content": "I look it up."})
    agent = make(
        model(earlier, answer),
        MemoryMiddleware(memory),
        tools=[weather],
        response_format=ToolStrategy(City),
    )
    agent.invoke(ask("which city?"), context=context("alice"))

    assert texts() == ["which city?", answer.text + '\n\n{"name":"Zürich"}']


def test_an_answer_that_cannot_be_read_costs_its_own_memory_and_nothing_else(
    memory, make, model, call, context, texts, caplog
):
    class Opaque(BaseModel):
        name: str

        def model_dump_json(self, **kwargs):
            raise ValueError("no JSON")

    agent = make(
        model(call("Opaque", name="x")),
        MemoryMiddleware(memory),
        response_format=ToolStrategy(Opaque),
    )
    out = agent.invoke(ask("what is it?"), context=context("alice"))

    assert out["structured_response"].name == "x"
    assert "memory reading failed" in caplog.text
    assert texts() == ["what is it?"]


def test_a_tool_that_answers_directly_leaves_the_question_to_be_remembered(
    memory, make, model, call, context, texts
):
    direct = weather.model_copy(update={"return_direct": True})
    agent = make(model(call("weather", city="Lyon")), MemoryMiddleware(memory), tools=[direct])
    agent.invoke(ask("I live in Lyon. Weather?"), context=context("alice"))

    assert texts() == ["I live in Lyon. Weather?"]


def test_a_question_that_is_summarised_away_is_still_written(
    memory, make, model, call, context, texts
):
    memory.add("Alice likes Lyon.", ALICE)
    summary = SummarizationMiddleware(
        model("They spoke of the weather."), trigger=("messages", 3), keep=("messages", 1)
    )
    scripted = model(call("weather", city="Lyon"), "Sunny.", "Still sunny.")
    agent = make(
        scripted, MemoryMiddleware(memory), summary, tools=[weather], checkpointer=InMemorySaver()
    )
    agent.invoke(ask("Weather in Lyon?"), thread(), context=context("alice"))
    agent.invoke(ask("And now?"), thread(), context=context("alice"))

    assert "They spoke of the weather." in scripted.shown(1)
    assert "Weather in Lyon?" not in scripted.shown(1).partition("(End of")[2]
    assert "Alice likes Lyon." in scripted.shown(1)
    assert texts()[1:] == ["Weather in Lyon?", "Sunny.", "And now?", "Still sunny."]


@pytest.mark.parametrize("is_summarised", [False, True])
def test_what_another_middleware_takes_out_of_a_turn_is_neither_asked_nor_written(
    tmp_path, make, model, call, context, is_summarised
):
    embedder = HashEmbedder()
    with Memory.open(str(tmp_path / "private"), embedder=embedder) as memory:
        private = PIIMiddleware("email", apply_to_input=True, apply_to_output=True)
        summary = SummarizationMiddleware(
            model("Mail was spoken of."),
            trigger=("messages", 3 if is_summarised else 99),
            keep=("messages", 1),
        )
        scripted = model(call("weather", city="Lyon"), "I write to b@example.org.")
        agent = make(scripted, MemoryMiddleware(memory), private, summary, tools=[weather])
        agent.invoke(ask("I am a@example.org"), thread(), context=context("alice"))
        stored = [one.text for one in memory.list(ALICE, kinds=["episode"]).records]

    assert sorted(stored) == ["I am [REDACTED_EMAIL]", "I write to [REDACTED_EMAIL]."]
    assert "example.org" not in str(embedder.calls)


def test_a_question_that_a_model_failed_at_is_kept_and_stays_in_the_next_turn(
    memory, make, model, context, texts
):
    agent = make(
        model(RuntimeError("down"), "Back."), MemoryMiddleware(memory), checkpointer=InMemorySaver()
    )
    with pytest.raises(RuntimeError):
        agent.invoke(ask("I like tea"), thread(), context=context("alice"))
    assert texts() == ["I like tea"]
    agent.invoke(ask("are you there?"), thread(), context=context("alice"))

    assert texts() == ["I like tea", "are you there?", "Back."]


def test_a_question_that_is_asked_again_after_its_model_failed_is_stored_once(
    memory, make, model, context, texts
):
    script = RuntimeError("down"), RuntimeError("down"), "Back.", "Again."
    agent = make(model(*script), MemoryMiddleware(memory), checkpointer=InMemorySaver())
    for said in ("I like tea", "I like tea", "I like tea", "I like tea"):
        with contextlib.suppress(RuntimeError):
            agent.invoke(ask(said), thread(), context=context("alice"))

    assert texts() == ["I like tea", "Back.", "I like tea", "Again."]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failing_memory_is_logged_once_a_kind_and_the_answer_comes(
    broken, make, model, context, caplog, is_async
):
    caplog.set_level(logging.WARNING, "commonplace_langgraph")
    agent = make(model(), MemoryMiddleware(broken))
    for _ in range(3):
        if is_async:
            out = await agent.ainvoke(ask("hello"), context=context("alice"))
        else:
            out = agent.invoke(ask("hello"), context=context("alice"))

    ours = [one.message for one in caplog.records if one.name == "commonplace_langgraph"]
    assert out["messages"][-1].text == "All right."
    assert sorted(one.split()[1] for one in ours) == ["recall", "write"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_hung_memory_is_left_behind(
    memory, make, model, context, monkeypatch, is_async, caplog
):
    never, go = asyncio.Event(), threading.Event()

    async def ahang(*args, **options):
        await never.wait()

    for name in ("search", "add"):
        monkeypatch.setattr(memory, name, lambda *a, **k: go.wait())
        monkeypatch.setattr(memory, f"a{name}", ahang)
    for module in (scope_module, agent_memory):
        monkeypatch.setattr(module, "WRITE_PATIENCE", 0.05)
    agent = make(model(), MemoryMiddleware(memory, policy=Policy(recall_timeout=0.02)))
    if is_async:
        out = await agent.ainvoke(ask("hello"), context=context("alice"))
    else:
        out = agent.invoke(ask("hello"), context=context("alice"))
    go.set()
    never.set()

    assert out["messages"][-1].text == "All right."
    assert ["recall", "write"] == [one.message.split()[1] for one in caplog.records]


async def test_a_cancelled_caller_does_not_cancel_the_write(
    memory, make, model, context, monkeypatch, texts
):
    began, go, add = asyncio.Event(), asyncio.Event(), memory.aadd

    async def slow(*args, **options):
        began.set()
        await go.wait()
        return await add(*args, **options)

    monkeypatch.setattr(memory, "aadd", slow)
    middleware = MemoryMiddleware(memory)
    running = asyncio.create_task(
        make(model(), middleware).ainvoke(ask("I like tea"), context=context("alice"))
    )
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go.set()
    await asyncio.wait(middleware._memory.lazy.writes)

    assert texts() == ["I like tea", "All right."]


class SlowEmbedder(HashEmbedder):
    def embed(self, texts, *, purpose):
        time.sleep(0.2)
        return super().embed(texts, purpose=purpose)


@pytest.mark.parametrize("end", ["answered", "failed", "cancelled"])
@pytest.mark.parametrize("await_write", [True, False])
def test_a_slow_memory_loses_no_turn_of_threads_and_loops(
    tmp_path, make, model, context, end, await_write
):
    policy = Policy(await_write=await_write, recall_timeout=0.1)
    failure = {
        "answered": "Noted.",
        "failed": RuntimeError("down"),
        "cancelled": KeyboardInterrupt(),
    }
    with Memory.open(str(tmp_path / "slow"), embedder=SlowEmbedder()) as memory:
        agent = make(model(*[failure[end]] * 6), MemoryMiddleware(memory, policy=policy))

        def in_thread(number):
            given, config = ask(f"I have {number} cats"), thread(f"t{number}")
            with contextlib.suppress(RuntimeError, KeyboardInterrupt):
                agent.invoke(given, config, context=context("alice"))

        def on_loop(number):
            given, config = ask(f"I have {number} cats"), thread(f"t{number}")
            with contextlib.suppress(RuntimeError, KeyboardInterrupt):
                asyncio.run(agent.ainvoke(given, config, context=context("alice")))

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(in_thread, range(3)))
            list(pool.map(on_loop, range(3, 6)))
        assert memory.flush(timeout=30).pending == 0
        texts = {one.text for one in memory.list(ALICE, limit=100).records}

    assert {f"I have {number} cats" for number in range(6)} <= texts
    assert ("Noted." in texts) is (end == "answered")


async def test_a_write_that_is_not_awaited_is_safe(memory, make, model, context, texts):
    agent = make(model(), MemoryMiddleware(memory, policy=Policy(await_write=False)))
    await agent.ainvoke(ask("I like tea"), context=context("alice"))
    agent.invoke(ask("I like coffee"), context=context("alice"))

    assert (await memory.aflush()).pending == 0
    assert len(texts()) == 4


def test_a_model_that_needs_a_loop_gets_what_was_told_without_one(
    tmp_path, make, model, context, caplog
):
    with Memory.open(str(tmp_path / "async"), embedder=AsyncEmbedder()) as memory:
        scripted = model()
        agent = make(scripted, MemoryMiddleware(memory))
        agent.invoke(ask("My cat is called Miso."), context=context("alice"))
        asyncio.run(memory.aflush())
        asyncio.run(agent.ainvoke(ask("How is my cat called?"), context=context("alice")))

    assert "recall failed" in caplog.text
    assert "write failed" not in caplog.text
    assert "My cat is called Miso." in scripted.shown()


@pytest.mark.parametrize("by", ["hook", "tool"])
def test_only_the_first_search_is_given_time_to_load_its_model(
    memory, make, model, call, context, by
):
    policy = Policy(recall_timeout=1.5, mode="both" if by == "hook" else "agent_control")
    middleware = MemoryMiddleware(memory, policy=policy)
    before = middleware._memory._recall_seconds()
    agent = make(model(call("search_memory", keywords=["tea"]), "Tea."), middleware)
    agent.invoke(ask("tea?"), context=context("alice"))

    assert (before, middleware._memory._recall_seconds()) == (10.0, 1.5)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"user_id": None}, InvalidScopeError),
        ({"user_id": True}, InvalidScopeError),
        ({"user_id": "*"}, InvalidScopeError),
        ({"agent_id": " "}, InvalidScopeError),
        ({"policy": Policy(inject="persist")}, InvalidRecordError),
        ({"memory": object()}, TypeError),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(memory, given, error):
    with pytest.raises(error):
        MemoryMiddleware(**{"memory": memory, **given})
