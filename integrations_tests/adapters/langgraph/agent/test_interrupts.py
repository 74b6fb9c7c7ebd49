import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from commonplace.agents.note import FOOTER
from commonplace.types import Scope
from commonplace_langgraph import MemoryMiddleware

ALICE = Scope(user_id="alice")
THREAD = {"configurable": {"thread_id": "t1"}}
# What is stored of a turn that waits: what Alice said is there before the model is called.
PARKED = ["Alice takes the train to Lyon.", "book the train to Lyon"]
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})


@tool
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


def ask(text):
    return {"messages": [HumanMessage(text)]}


@pytest.fixture
def parked(memory, make, model, call, context):
    """Run a turn of Alice up to where it waits for a consent; answer agent and model."""

    def run(saver, tool_call=None):
        memory.add("Alice takes the train to Lyon.", ALICE)
        scripted = model(tool_call or call("book", city="Lyon"), "It is booked.")
        consent = HumanInTheLoopMiddleware(interrupt_on={"book": True, "add_memory": True})
        middleware = (consent, MemoryMiddleware(memory))
        agent = make(scripted, *middleware, tools=[book], checkpointer=saver)
        out = agent.invoke(ask("book the train to Lyon"), THREAD, context=context("alice"))
        assert out["__interrupt__"]
        return agent, scripted

    return run


def test_a_turn_that_waits_for_consent_is_searched_and_written_once(
    memory, parked, context, texts, monkeypatch
):
    agent, scripted = parked(InMemorySaver())
    assert texts() == PARKED

    asked, search = [], memory.search
    monkeypatch.setattr(memory, "search", lambda *a, **k: asked.append(a) or search(*a, **k))
    out = agent.invoke(APPROVE, THREAD, context=context("alice"))

    assert out["messages"][-1].text == "It is booked."
    assert scripted.shown().count(FOOTER) == 1
    assert asked == []
    assert texts()[1:] == ["book the train to Lyon", "It is booked."]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_goes_on_with_its_note_in_another_process(
    memory, make, model, parked, context, texts, is_async
):
    saver = InMemorySaver()
    parked(saver)
    scripted = model("It is booked.")
    consent = HumanInTheLoopMiddleware(interrupt_on={"book": True})
    fresh = make(scripted, consent, MemoryMiddleware(memory), tools=[book], checkpointer=saver)
    if is_async:
        await fresh.ainvoke(APPROVE, THREAD, context=context("alice"))
    else:
        fresh.invoke(APPROVE, THREAD, context=context("alice"))

    assert "Alice takes the train to Lyon." in scripted.shown()
    assert texts()[1:] == ["book the train to Lyon", "It is booked."]
    assert "takes the train" not in str([saver.blobs, saver.storage, saver.writes])


def test_somebody_else_who_consents_is_shown_and_told_nothing(
    memory, parked, context, texts, caplog
):
    agent, scripted = parked(InMemorySaver())
    memory.add("Bob takes the train to Oslo.", Scope(user_id="bob"))
    agent.invoke(APPROVE, THREAD, context=context("bob"))

    assert FOOTER not in scripted.shown()
    assert texts() == PARKED
    assert texts("bob") == ["Bob takes the train to Oslo."]
    assert "is not who asked in this turn. Resume it with the user_id of its first" in caplog.text


def test_a_tool_call_that_somebody_else_consents_to_reaches_nobodys_memory(
    memory, parked, call, context, texts
):
    adds = call("add_memory", thinking="", content=["Alice is a spy."])
    agent, _ = parked(InMemorySaver(), adds)
    out = agent.invoke(APPROVE, THREAD, context=context("bob"))

    assert texts("bob") == []
    assert texts() == PARKED
    assert "Error recording memory" in out["messages"][-2].text


def test_a_turn_that_is_left_for_another_question_does_not_disturb_it(
    memory, parked, context, texts
):
    agent, scripted = parked(InMemorySaver())
    scripted.script[:] = ["Never mind."]
    agent.invoke(ask("tell me of the train to Lyon"), THREAD, context=context("alice"))

    assert scripted.shown().count(FOOTER) == 1
    assert texts()[1:] == [
        "book the train to Lyon",
        "tell me of the train to Lyon",
        "Never mind.",
    ]


def test_an_answer_that_is_asked_for_anew_replaces_the_first(memory, make, model, context, texts):
    scripted = model("Tea.", "Coffee.")
    agent = make(scripted, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    agent.invoke(ask("what do I like?"), THREAD, context=context("alice"))
    before = next(one for one in agent.get_state_history(THREAD) if one.next == ("model",))
    agent.invoke(None, before.config, context=context("alice"))

    assert texts() == ["what do I like?", "Coffee."]


@pytest.mark.parametrize(
    "turn", [None, 7, "x", {}, {"id": 1, "owner": 2}, {"id": "a", "owner": "b", "said": [7, {}]}]
)
def test_a_turn_that_somebody_damaged_breaks_nothing(parked, context, texts, caplog, turn):
    agent, _ = parked(InMemorySaver())
    agent.update_state(
        THREAD, {"commonplace_turn": turn}, as_node="commonplace_memory.before_agent"
    )
    agent.invoke(None, THREAD, context=context("alice"))

    assert texts() == PARKED
