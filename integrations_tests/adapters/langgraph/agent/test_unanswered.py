"""What is kept of a turn that no model answered: what the user wrote, once, and nothing else."""

import asyncio
import contextlib

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
    hook_config,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, interrupt

from commonplace import Scope
from commonplace_langgraph import MemoryMiddleware, remember_node

ASK = {"messages": [("user", "I moved to Lyon. Is it warm?")]}
SAID = "I moved to Lyon. Is it warm?"
THREAD = {"configurable": {"thread_id": "t1"}}


@tool
def weather(city: str) -> str:
    """Look the weather up."""
    return f"sunny in {city}"


@tool
def broken_weather(city: str) -> str:
    """Fail to look the weather up."""
    raise ConnectionError(city)


async def run(agent, context, is_async, given=ASK, config=THREAD):
    if is_async:
        return await agent.ainvoke(given, config, context=context("alice"))
    return agent.invoke(given, config, context=context("alice"))


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_model_that_fails_leaves_what_the_user_wrote(
    memory, make, model, context, told, is_async
):
    agent = make(model(RuntimeError("down")), MemoryMiddleware(memory))
    with pytest.raises(RuntimeError, match="down"):
        await run(agent, context, is_async)

    assert [(one.text, one.role, one.scope.session_id) for one in told()] == [(SAID, "user", "t1")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_fails_leaves_what_the_user_wrote(
    memory, make, model, call, context, texts, is_async
):
    agent = make(
        model(call("broken_weather", city="Lyon")), MemoryMiddleware(memory), tools=[broken_weather]
    )
    with pytest.raises(ConnectionError):
        await run(agent, context, is_async)

    assert texts() == [SAID]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_outside", [False, True])
async def test_a_call_that_succeeds_at_last_is_kept_once(
    memory, make, model, context, texts, is_outside, is_async
):
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0)
    ours = MemoryMiddleware(memory)
    scripted = model(RuntimeError("down"), RuntimeError("down"), "It is warm.")
    agent = make(scripted, *((retry, ours) if is_outside else (ours, retry)))
    await run(agent, context, is_async)

    assert texts() == [SAID, "It is warm."]
    assert ours.counters().written == 1


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_turn_that_is_tried_again_on_its_checkpoint_is_kept_once(
    memory, make, model, context, texts, is_restarted
):
    scripted, saver = model(RuntimeError("down"), "It is warm."), InMemorySaver()
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=saver)
    with pytest.raises(RuntimeError):
        agent.invoke(ASK, THREAD, context=context("alice"))
    if is_restarted:
        agent = make(scripted, MemoryMiddleware(memory), checkpointer=saver)
    agent.invoke(None, THREAD, context=context("alice"))

    assert texts() == [SAID, "It is warm."]


def test_a_message_that_is_sent_again_after_a_failure_is_kept_once(
    memory, make, model, context, texts
):
    agent = make(model(RuntimeError("down"), "It is warm."), MemoryMiddleware(memory))
    asked = {"messages": [HumanMessage(SAID, id="m1")]}
    with pytest.raises(RuntimeError):
        agent.invoke(asked, context=context("alice"))
    agent.invoke(asked, context=context("alice"))

    assert texts() == [SAID, "It is warm."]


EDITED = HumanMessage("I moved to Nice. Is it warm?", id="m1")


@pytest.mark.parametrize("is_answered", [False, True])
def test_an_edited_message_replaces_what_it_was_before_the_turn_recalls(
    memory, make, model, context, texts, is_answered
):
    scripted = model("Lyon is warm." if is_answered else RuntimeError("down"), "Nice is warm.")
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    asked = {"messages": [HumanMessage(SAID, id="m1")]}
    with contextlib.nullcontext() if is_answered else pytest.raises(RuntimeError):
        agent.invoke(asked, THREAD, context=context("alice"))
    memory.flush(10)
    [old, *_] = [one for one in memory.list(Scope(user_id="alice")) if one.role == "user"]
    config = THREAD
    if is_answered:
        past = agent.get_state_history(THREAD)
        config = next(one.config for one in past if not one.values.get("messages"))
    config = agent.update_state(config, {"messages": [EDITED]}, as_node="__start__")
    agent.invoke(None, config, context=context("alice"))

    assert "Lyon" not in scripted.shown()
    assert texts() == [EDITED.text, "Nice is warm."]
    assert [one.event for one in memory.history(old.id, old.scope)] == ["ADD", "DELETE"]


def test_a_message_that_is_edited_back_is_kept_again(memory, make, model, context, texts):
    saver, down = InMemorySaver(), RuntimeError("down")
    agent = make(model(down, down, "Yes."), MemoryMiddleware(memory), checkpointer=saver)
    for text in (SAID, EDITED.text, SAID):
        with contextlib.suppress(RuntimeError):
            said = HumanMessage(text, id="m1")
            agent.invoke({"messages": [said]}, THREAD, context=context("alice"))
        memory.flush(10)

    assert texts() == [SAID, "Yes."]


def test_a_regenerated_answer_replaces_the_first(memory, make, model, context, texts):
    scripted = model("Lyon is cold in May.", "Lyon is warm in May.")
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    agent.invoke(ASK, THREAD, context=context("alice"))
    first = agent.get_state(THREAD).values["messages"][-1]
    given_up = {"messages": [RemoveMessage(first.id)]}
    agent.update_state(THREAD, given_up, as_node="__start__")
    agent.invoke(None, THREAD, context=context("alice"))

    assert "cold" not in scripted.shown()
    assert texts() == [SAID, "Lyon is warm in May."]


def test_one_id_for_all_messages_replaces_nothing_without_a_checkpointer(
    memory, make, model, context, texts
):
    agent = make(model("Yes.", "No."), MemoryMiddleware(memory))
    for said in (HumanMessage(SAID, id="m1"), EDITED):
        agent.invoke({"messages": [said]}, THREAD, context=context("alice"))

    assert texts() == [SAID, "Yes.", EDITED.text, "No."]


@pytest.mark.parametrize("during", ["model", "tool", "recall"])
async def test_a_cancelled_run_leaves_what_the_user_wrote(
    memory, make, model, call, context, texts, monkeypatch, during
):
    began, never = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await never.wait()
        return ""

    async def hang(*args, **options):
        await wait.coroutine()

    scripted = model(call("wait"))
    if during == "model":
        monkeypatch.setattr(type(scripted), "_agenerate", hang, raising=False)
    if during == "recall":
        monkeypatch.setattr(memory, "asearch", hang)
    agent = make(scripted, MemoryMiddleware(memory), tools=[wait])
    running = asyncio.create_task(run(agent, context, is_async=True))
    await asyncio.wait_for(began.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0.2)

    assert (await memory.aflush()).pending == 0
    assert texts() == [SAID]


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("I can't help.", response_metadata={"stop_reason": "refusal"}),
        AIMessage("", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("Blocked.", response_metadata={"finish_reason": "SAFETY"}),
        AIMessage("Sorry.", response_metadata={"stopReason": "guardrail_intervened"}),
        AIMessage("No.", additional_kwargs={"refusal": "No."}),
        AIMessage([{"type": "refusal", "refusal": "No."}]),
        AIMessage([{"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}}]),
    ],
)
def test_a_refusal_is_not_kept(memory, make, model, context, texts, answer):
    make(model(answer), MemoryMiddleware(memory)).invoke(ASK, THREAD, context=context("alice"))
    question = HumanMessage("I also have a cat", id="2")
    remember_node(memory, user_id="alice").invoke({"messages": [question, answer]})

    assert texts() == [SAID, "I also have a cat"]


@hook_config(can_jump_to=["end"])
def refuse(self, state, runtime):
    return {"messages": [{"role": "assistant", "content": "Please rephrase."}], "jump_to": "end"}


class Guard(AgentMiddleware):
    before_model = refuse


@pytest.mark.parametrize(
    "limit",
    [
        ModelCallLimitMiddleware(run_limit=1),
        ToolCallLimitMiddleware(run_limit=1, exit_behavior="end"),
        Guard(),
    ],
    ids=["models", "tools", "guard"],
)
@pytest.mark.parametrize("is_outside", [False, True])
def test_what_a_middleware_says_instead_of_the_model_is_not_kept(
    memory, make, model, call, context, texts, limit, is_outside
):
    ours = MemoryMiddleware(memory)
    scripted = model(call("weather", city="Lyon"), call("weather", "c2", city="Oslo"))
    agent = make(scripted, *((limit, ours) if is_outside else (ours, limit)), tools=[weather])
    out = agent.invoke(ASK, THREAD, context=context("alice"))

    assert isinstance(out["messages"][-1], AIMessage)
    assert out["messages"][-1].text
    assert texts() == [SAID]


def test_what_a_retry_says_when_it_gives_up_is_not_kept(memory, make, model, context, texts):
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0.0)
    agent = make(model(*[RuntimeError("down")] * 2), MemoryMiddleware(memory), retry)
    out = agent.invoke(ASK, THREAD, context=context("alice"))

    assert "failed after 2 attempts" in out["messages"][-1].text
    assert texts() == [SAID]


def test_a_run_of_too_many_steps_leaves_what_the_user_wrote(
    memory, make, model, call, context, texts
):
    scripted = model(*[call("weather", f"c{number}", city="Lyon") for number in range(40)])
    agent = make(scripted, MemoryMiddleware(memory), tools=[weather])
    with pytest.raises(GraphRecursionError):
        agent.invoke(ASK, {**THREAD, "recursion_limit": 30}, context=context("alice"))
    memory.flush()

    assert texts() == [SAID]


def test_a_turn_that_another_middleware_ended_is_kept_when_the_next_begins(
    memory, make, model, call, context, texts
):
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="error")
    saver, scripted = InMemorySaver(), model(*[call("weather", city="Lyon")] * 2)
    agent = make(scripted, MemoryMiddleware(memory), limit, tools=[weather], checkpointer=saver)
    with pytest.raises(Exception, match="limit"):
        agent.invoke(ASK, THREAD, context=context("alice"))
    assert texts() == [SAID]
    # Another process, without the limit.
    later = make(model("Hello."), MemoryMiddleware(memory), checkpointer=saver)
    later.invoke({"messages": [("user", "still there?")]}, THREAD, context=context("alice"))
    memory.flush()

    assert sorted(texts()) == sorted([SAID, "still there?", "Hello."])


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_interrupt_is_no_failure(memory, make, model, call, context, texts, is_async):
    @tool
    def consent(question: str) -> str:
        """Ask the user."""
        return interrupt(question)

    scripted = model(call("consent", question="Sure?"), "It is warm.")
    ours = MemoryMiddleware(memory)
    agent = make(scripted, ours, tools=[consent], checkpointer=InMemorySaver())
    out = await run(agent, context, is_async)
    assert out["__interrupt__"]
    assert texts() == [SAID]
    await run(agent, context, is_async, Command(resume="yes"))

    assert texts() == [SAID, "It is warm."]
    assert ours.counters().written == 1


def test_a_refused_consent_costs_nothing(memory, make, model, call, context, texts):
    consent = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    scripted = model(call("weather", city="Lyon"), "Then not.")
    agent = make(
        scripted, consent, MemoryMiddleware(memory), tools=[weather], checkpointer=InMemorySaver()
    )
    agent.invoke(ASK, THREAD, context=context("alice"))
    refusal = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})
    agent.invoke(refusal, THREAD, context=context("alice"))

    assert texts() == [SAID, "Then not."]


def test_somebody_elses_failed_turn_is_not_written_for_the_next_user(
    memory, make, model, context, texts
):
    saver = InMemorySaver()
    limit = ModelCallLimitMiddleware(run_limit=0, exit_behavior="error")
    with pytest.raises(Exception, match="limit"):
        make(model(), MemoryMiddleware(memory), limit, checkpointer=saver).invoke(
            ASK, THREAD, context=context("alice")
        )
    after = make(model(), MemoryMiddleware(memory), checkpointer=saver)
    after.invoke({"messages": [("ai", "Hm."), ("user", "hello")]}, THREAD, context=context("bob"))
    memory.flush()

    assert texts("bob") == ["hello", "All right."]
    assert memory.list(Scope(user_id="alice")).records == ()


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_redacted_after_the_model_was_called_is_kept_in_its_last_form(
    memory, make, model, context, texts, is_async
):
    class Redacting(AgentMiddleware):
        def after_model(self, state, runtime):
            question = state["messages"][0]
            return {"messages": [HumanMessage("I moved to [removed].", id=question.id)]}

    agent = make(model("It is warm."), MemoryMiddleware(memory), Redacting())
    await run(agent, context, is_async)
    await memory.aflush()

    assert texts() == ["I moved to [removed].", "It is warm."]
