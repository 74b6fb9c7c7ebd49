import asyncio
import uuid
from typing import ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent

from commonplace.agents.note import FOOTER
from commonplace.agents.policy import HEADER
from commonplace.testing.contracts.adapter import PolicyFieldsContract
from commonplace.types import Scope
from commonplace_langgraph import memory_tools, recall_hook, remember_node

ALICE = Scope(user_id="alice")


def config(thread="t1", user="alice"):
    return {"configurable": {"thread_id": thread, "user_id": user}}


@pytest.fixture
def graph(memory, context):
    """Make a graph of a model with memory in front and behind."""

    def make(model, saver=None, **given):
        chain = recall_hook(memory, **given) | model

        def chat(state):
            return {"messages": [chain.invoke(state["messages"])]}

        async def achat(state):
            return {"messages": [await chain.ainvoke(state["messages"])]}

        built = StateGraph(MessagesState, context_schema=context)
        built.add_node("chat", RunnableLambda(chat, achat))
        built.add_node("remember", remember_node(memory, **given))
        built.set_entry_point("chat")
        built.add_edge("chat", "remember")
        return built.compile(checkpointer=saver)

    return make


class TestNodes(PolicyFieldsContract):
    without_effect: ClassVar = {
        "mode": "whoever builds the graph decides which nodes it has",
        "tools": "`memory_tools` makes them, which have a test of their own",
        "tool_instructions": "whoever builds the graph writes its prompt",
    }

    @pytest.fixture
    def turn_with(self, graph, model):
        def turn(policy, *, agent_id=None, conversation=None):
            scripted = model()
            built = graph(scripted, InMemorySaver(), policy=policy, agent_id=agent_id)

            async def run(user, text):
                where = config(conversation or uuid.uuid4().hex, user)
                await built.ainvoke({"messages": [("user", text)]}, where)
                return scripted.shown()

            return run

        return turn


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("by", ["context", "config"])
async def test_a_graph_of_ones_own_recalls_what_it_was_told(
    graph, model, context, texts, is_async, by
):
    scripted, saver = model(), InMemorySaver()
    built = graph(scripted, saver)
    for thread, text in (("t1", "My cat is called Miso."), ("t2", "How is my cat called?")):
        given = {"messages": [("user", text)]}
        who = {"context": context("alice")} if by == "context" else {}
        where = config(thread, "alice" if by == "config" else None)
        if is_async:
            out = await built.ainvoke(given, where, **who)
        else:
            out = built.invoke(given, where, **who)

    assert ", today] user: My cat is called Miso." in scripted.shown()
    assert [one.text for one in out["messages"]] == ["How is my cat called?", "All right."]
    assert HEADER not in str([saver.blobs, saver.storage, saver.writes])
    assert len(texts()) == 4


def test_users_do_not_mix(memory, graph, model):
    scripted = model()
    built = graph(scripted)
    memory.add("The cat of Alice is called Miso.", ALICE)
    built.invoke({"messages": [("user", "How is my cat called?")]}, config(user="bob"))

    assert "Miso" not in scripted.shown()


def test_a_second_loop_goes_on(graph, model):
    scripted = model()
    built = graph(scripted)
    for text in ("My cat is called Miso.", "How is my cat called?"):
        asyncio.run(built.ainvoke({"messages": [("user", text)]}, config()))

    assert ", today] user: My cat is called Miso." in scripted.shown()


def test_a_turn_that_is_remembered_twice_is_known(memory, texts):
    remember = remember_node(memory)
    turn = [HumanMessage("I like tea", id="1"), AIMessage("Noted.", id="2")]
    for _ in range(2):
        assert remember.invoke({"messages": turn}, config()) == {}

    assert texts() == ["I like tea", "Noted."]


def test_a_node_that_remembers_in_the_middle_of_a_turn_writes_the_question_once(
    memory, call, texts
):
    remember = remember_node(memory)
    turn = [
        HumanMessage("weather?", id="1"),
        call("weather"),
        ToolMessage("rain", tool_call_id="c1"),
    ]
    remember.invoke({"messages": turn[:2]}, config())
    remember.invoke({"messages": [*turn, AIMessage("It rains.", id="2")]}, config())

    assert texts() == ["weather?", "It rains."]


def test_an_id_that_is_used_again_for_another_text_loses_nothing(memory, texts):
    remember = remember_node(memory)
    for text in ("I like tea", "I like coffee"):
        turn = [HumanMessage(text, id="1"), AIMessage("Noted.", id="2")]
        remember.invoke({"messages": turn}, config())

    assert texts() == ["I like tea", "Noted.", "I like coffee"]


def test_the_question_of_a_turn_counts_in_the_middle_of_its_tool_calls(memory, call):
    memory.add("Alice likes the sun.", ALICE)
    turn = [
        HumanMessage("the sun?"),
        call("weather", city="Lyon"),
        ToolMessage("rain", tool_call_id="c1"),
    ]
    shown = recall_hook(memory).invoke(turn, config())

    assert "Alice likes the sun." in shown[0].text
    assert shown[1:] == turn[1:]
    assert turn[0].text == "the sun?"


def test_the_hook_takes_prompts_states_and_messages(memory):
    memory.add("Alice likes tea.", ALICE)
    hook = recall_hook(memory, user_id="alice")
    prompt = ChatPromptTemplate([("system", "Be kind."), ("user", "{text}")])
    by_prompt = (prompt | hook).invoke({"text": "tea?"})
    by_state = hook.invoke({"messages": [("system", "Be kind."), ("user", "tea?")]})
    by_list = hook.invoke([("system", "Be kind."), ("user", "tea?")])

    assert [one.text for one in by_prompt] == [one.text for one in by_state]
    assert [one.text for one in by_prompt] == [one.text for one in by_list]
    assert by_prompt[1].text.count(FOOTER) == 1


def test_the_hook_is_a_prompt_for_the_prebuilt_agent_too(memory, model, call):
    memory.add("Alice likes tea.", ALICE)
    scripted, saver = model(call("search_memory", keywords=["tea"]), "Tea."), InMemorySaver()
    with pytest.warns(DeprecationWarning, match="create_react_agent"):
        agent = create_react_agent(
            scripted, memory_tools(memory), prompt=recall_hook(memory), checkpointer=saver
        )
    out = agent.invoke({"messages": [("user", "tea?")]}, config())

    assert [scripted.shown(one).count(FOOTER) for one in (0, 1)] == [1, 1]
    assert out["messages"][0].text == "tea?"
    assert HEADER not in str([saver.blobs, saver.storage, saver.writes])


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failing_memory_fails_no_graph(broken, graph, model, is_async, caplog):
    given = {"messages": [("user", "hello")]}
    built = graph(model())
    out = await built.ainvoke(given, config()) if is_async else built.invoke(given, config())

    assert out["messages"][-1].text == "All right."
    assert [one.message.split()[1] for one in caplog.records] == ["recall", "write"]


def test_nothing_said_is_nothing_written(memory, texts):
    remember_node(memory, user_id="alice").invoke({"messages": []})
    remember_node(memory, user_id="alice").invoke({"messages": [AIMessage("Hello?")]})

    assert texts() == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_question_is_there_while_the_model_thinks_if_a_node_remembers(
    memory, graph, model, texts, is_async
):
    kept = []
    scripted = model(lambda _messages: kept.append(texts()) or "So do I.")
    built, given = graph(scripted), {"messages": [HumanMessage("I like tea")]}
    if is_async:
        await built.ainvoke(given, config())
    else:
        built.invoke(given, config())

    assert kept == [["I like tea"]]
    assert texts() == ["I like tea", "So do I."]


def test_a_hook_stores_nothing_where_no_node_remembers_for_the_same_ids(memory, model, texts):
    node = remember_node(memory, agent_id="another")
    (recall_hook(memory) | model()).invoke([HumanMessage("I like tea")], config())

    assert texts() == []
    assert node.counters().written == 0
