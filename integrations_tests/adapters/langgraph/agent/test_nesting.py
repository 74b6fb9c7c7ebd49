"""Agents that call agents, and graphs of agents: only what a human wrote is the user's, once."""

import asyncio
import contextlib
import threading
from typing import Annotated

import pytest
from langchain.tools import InjectedToolCallId
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import Command, interrupt

from commonplace import Scope
from commonplace_langgraph import MemoryMiddleware, recall_hook, remember_node

ALICE = Scope(user_id="alice")
CONFIG = {"configurable": {"thread_id": "t1", "user_id": "alice"}}
OWN_THREAD = {"configurable": {"thread_id": "x", "user_id": "alice"}}
TASK = "List what Alice likes to drink"
SAID = "What shall I buy?"
ASK = {"messages": [("user", SAID)]}


async def run(graph, is_async, given=ASK, config=CONFIG):
    return await graph.ainvoke(given, config) if is_async else graph.invoke(given, config)


def as_tool(inner, config=None, in_loop=False):
    """Make an agent a tool, as an application does."""
    given = lambda task: {"messages": [HumanMessage(task)]}  # noqa: E731

    def research(task: str) -> str:
        """Give a task to another agent."""
        return str(inner.invoke(given(task), config)["messages"][-1].text)

    async def aresearch(task: str) -> str:
        """Give a task to another agent."""
        return str((await inner.ainvoke(given(task), config))["messages"][-1].text)

    return tool("research")(aresearch if in_loop else research)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "config", [None, OWN_THREAD, {**OWN_THREAD, "metadata": {"checkpoint_ns": "x"}}]
)
@pytest.mark.parametrize("saver", [None, "own"])
async def test_an_agent_that_a_tool_calls_recalls_and_writes_nothing(
    memory, make, model, call, texts, is_async, config, saver
):
    memory.add("Alice likes to drink tea.", ALICE)
    inner_model = model("She likes tea.")
    ours = MemoryMiddleware(memory)
    inner = make(
        inner_model, MemoryMiddleware(memory), checkpointer=InMemorySaver() if saver else None
    )
    outer = make(
        model(call("research", task=TASK), "Buy tea."),
        ours,
        tools=[as_tool(inner, config, is_async)],
    )
    await run(outer, is_async)

    assert "Alice likes to drink tea." in inner_model.shown()
    assert texts() == ["Alice likes to drink tea.", SAID, "Buy tea."]
    await run(inner, is_async)  # by the user, afterwards
    assert texts()[3:] == [SAID, "All right."]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("config", [None, OWN_THREAD])
@pytest.mark.parametrize("outer", ["create_agent", "create_react_agent", "graph"])
async def test_it_knows_so_where_the_calling_agent_has_no_memory(
    memory, make, model, call, texts, is_async, config, outer
):
    research = as_tool(make(model("Tea."), MemoryMiddleware(memory)), config, is_async)
    if outer == "graph":
        built = StateGraph(MessagesState)
        built.add_node("plan", lambda state: {"messages": [call("research", task=TASK)]})
        built.add_node(ToolNode([research]))
        built.set_entry_point("plan")
        built.add_edge("plan", "tools")
        agent = built.compile()
    else:
        factory = make if outer == "create_agent" else create_react_agent
        agent = factory(model(call("research", task=TASK), "Buy tea."), tools=[research])
    await run(agent, is_async)

    assert texts() == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_inner_turn_that_fails_or_waits_writes_nothing_either(
    memory, make, model, call, texts, is_async
):
    @tool
    def consent(question: str) -> str:
        """Ask the user."""
        return interrupt(question)

    inner = make(
        model(call("consent", question="Sure?"), RuntimeError("down")),
        MemoryMiddleware(memory),
        tools=[consent],
    )
    outer = make(
        model(call("research", task=TASK)),
        MemoryMiddleware(memory),
        tools=[as_tool(inner, None, is_async)],
        checkpointer=InMemorySaver(),
    )
    assert (await run(outer, is_async))["__interrupt__"]
    with pytest.raises(RuntimeError, match="down"):
        await run(outer, is_async, Command(resume="yes"))

    assert texts() == [SAID]


def test_tools_of_one_turn_that_run_in_threads_call_agents_at_once(
    memory, make, model, call, texts
):
    together = threading.Barrier(3, timeout=10)

    def wait(messages):
        together.wait()
        return "Tea."

    inner = make(model(*[wait] * 3), MemoryMiddleware(memory))
    calls = call("research", task=f"{TASK} 0")
    for number in (1, 2):
        calls.tool_calls += call("research", f"c{number}0", task=f"{TASK} {number}").tool_calls
    outer = make(model(calls, "Buy tea."), MemoryMiddleware(memory), tools=[as_tool(inner)])
    outer.invoke(ASK, CONFIG)

    assert texts() == [SAID, "Buy tea."]


def test_a_graph_of_ones_own_in_a_tool_recalls_and_writes_nothing(memory, make, model, call, texts):
    memory.add("Alice likes to drink tea.", ALICE)
    inner_model = model("Tea.")
    chain = recall_hook(memory) | inner_model
    built = StateGraph(MessagesState)
    built.add_node("chat", lambda state: {"messages": [chain.invoke(state["messages"])]})
    built.add_node("remember", remember_node(memory))
    built.set_entry_point("chat")
    built.add_edge("chat", "remember")
    outer = make(model(call("research", task=TASK)), tools=[as_tool(built.compile())])
    outer.invoke(ASK, CONFIG)

    assert "Alice likes to drink tea." in inner_model.shown()
    assert texts() == ["Alice likes to drink tea."]


@pytest.mark.parametrize("is_async", [False, True])
async def test_agents_that_are_nodes_write_what_the_user_said_once(
    memory, make, model, told, is_async
):
    built = StateGraph(MessagesState)
    for name in ("first", "second"):
        built.add_node(name, make(model(f"The {name} answer."), MemoryMiddleware(memory)))
    built.add_node("remember", remember_node(memory))
    built.set_entry_point("first")
    built.add_edge("first", "second")
    built.add_edge("second", "remember")
    await run(built.compile(checkpointer=InMemorySaver()), is_async)

    assert [(one.text, one.role, one.scope.session_id) for one in told()] == [
        (SAID, "user", "t1"),
        ("The first answer.", "assistant", "t1"),
        ("The second answer.", "assistant", "t1"),
    ]


def handoff(name):
    """Make a tool that gives the conversation to another agent of the graph."""

    @tool(f"to_{name}")
    def transfer(call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand the conversation over."""
        done = ToolMessage(f"Transferred to {name}", tool_call_id=call_id)
        return Command(goto=name, graph=Command.PARENT, update={"messages": [done]})

    return transfer


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("has_second", [False, True])
async def test_a_conversation_that_is_handed_over_is_kept_once(
    memory, make, model, call, texts, is_async, has_second
):
    memory.add("Alice wants to buy tea.", ALICE)
    first = make(model(call("to_expert")), MemoryMiddleware(memory), tools=[handoff("expert")])
    expert_model = model("Buy tea.")
    expert = make(expert_model, *([MemoryMiddleware(memory)] if has_second else []))
    built = StateGraph(MessagesState)
    built.add_node("first", first)
    built.add_node("expert", expert)
    built.set_entry_point("first")
    given = {"messages": [("user", "What does Alice want to buy?")]}
    await run(built.compile(checkpointer=InMemorySaver()), is_async, given)

    assert ("wants to buy tea" in expert_model.shown()) is has_second
    assert texts()[1:] == ["What does Alice want to buy?", *(["Buy tea."] if has_second else [])]


async def test_an_agent_that_a_task_in_the_background_calls_writes_nothing(
    memory, make, model, call, texts
):
    inner = make(model("Tea."), MemoryMiddleware(memory))
    begun = []

    @tool
    async def start(task: str) -> str:
        """Start another agent."""
        given = {"messages": [HumanMessage(task)]}
        begun.append(asyncio.create_task(inner.ainvoke(given, CONFIG)))
        return "started"

    outer = make(model(call("start", task=TASK), "Done."), MemoryMiddleware(memory), tools=[start])
    await outer.ainvoke(ASK, CONFIG)
    await begun[0]

    assert texts() == [SAID, "Done."]


def test_an_agent_in_a_nodes_own_code_writes_as_usual(memory, make, model, texts):
    agent = make(model("Tea."), MemoryMiddleware(memory))
    built = StateGraph(MessagesState)
    built.add_node("work", lambda state: {"messages": agent.invoke(state)["messages"][-1:]})
    built.set_entry_point("work")
    built.compile().invoke(ASK, CONFIG)

    assert texts() == [SAID, "Tea."]


def test_a_task_of_an_agent_that_failed_is_never_the_users(memory, make, model, call, texts):
    config = {"configurable": {"thread_id": "own", "user_id": "alice"}}
    inner_model = model(RuntimeError("down"), "Hello.")
    inner = make(inner_model, MemoryMiddleware(memory), checkpointer=InMemorySaver())
    outer = make(
        model(call("research", task=TASK)), MemoryMiddleware(memory), tools=[as_tool(inner, config)]
    )
    with pytest.raises(RuntimeError):
        outer.invoke(ASK, CONFIG)
    inner.invoke({"messages": [("user", "Are you there?")]}, config)
    memory.flush()

    assert texts() == [SAID, "Are you there?", "Hello."]


def test_a_task_of_an_agent_that_the_user_consents_to_stays_the_agents(
    memory, make, model, call, texts
):
    @tool
    def consent(question: str) -> str:
        """Ask the user."""
        return interrupt(question)

    config = {"configurable": {"thread_id": "own", "user_id": "alice"}}
    inner = make(
        model(call("consent", question="Sure?"), "Tea."),
        MemoryMiddleware(memory),
        tools=[consent],
        checkpointer=InMemorySaver(),
    )
    outer = make(model(call("research", task=TASK)), tools=[as_tool(inner, config)])
    with contextlib.suppress(Exception):
        outer.invoke(ASK, CONFIG)
    inner.invoke(Command(resume="yes"), config)

    assert inner.get_state(config).values["messages"][-1].text == "Tea."
    assert texts() == []
