import asyncio
import json

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from commonplace.agents.policy import Policy, tools
from commonplace.errors import InvalidScopeError
from commonplace.model import Scope
from commonplace_langgraph import MemoryMiddleware, memory_tools

ALICE = Scope(user_id="alice")


@pytest.fixture
def graph(context):
    """Make a graph that does nothing but run tools."""

    def make(tools):
        built = StateGraph(MessagesState, context_schema=context)
        built.add_node("tools", ToolNode(tools))
        built.set_entry_point("tools")
        return built.compile()

    return make


def test_the_schemas_are_the_cores_and_name_nobody(memory):
    shown = [convert_to_openai_tool(one)["function"] for one in memory_tools(memory)]

    assert [one["parameters"]["properties"] for one in shown] == [
        one.schema["properties"] for one in tools(Policy())
    ]
    assert [one["name"] for one in shown] == ["search_memory", "add_memory"]
    for word in ("user_id", "agent_id", "session_id", "scope", "runtime", "config"):
        assert word not in json.dumps(shown)


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_tools_work_in_a_graph_of_ones_own(memory, graph, call, context, texts, is_async):
    built = graph(memory_tools(memory))

    async def run(message):
        given = {"messages": [message]}
        if is_async:
            out = await built.ainvoke(given, context=context("alice"))
        else:
            out = built.invoke(given, context=context("alice"))
        return out["messages"][-1]

    added = await run(call("add_memory", thinking="why", content=["Alice likes tea."]))
    found = await run(call("search_memory", keywords=["tea"]))

    assert '"event": "ADD"' in added.text
    assert found.text == "- Alice likes tea."
    assert texts() == ["Alice likes tea."]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"keywords": ["tea"], "user_id": "bob"},
        {"keywords": ["tea"], "limit": 100_000},
        {"keywords": "tea"},
        {},
    ],
)
async def test_a_call_that_does_not_fit_the_schema_is_an_error_for_the_model(
    memory, graph, call, context, arguments, is_async
):
    memory.add("Bob likes tea.", Scope(user_id="bob"))
    given = {"messages": [call("search_memory", **arguments)]}
    built = graph(memory_tools(memory))
    if is_async:
        out = await built.ainvoke(given, context=context("alice"))
    else:
        out = built.invoke(given, context=context("alice"))

    assert out["messages"][-1].status == "error"
    assert out["messages"][-1].text.startswith("Error retrieving memory: ")
    assert "Bob likes" not in out["messages"][-1].text


def test_a_runtime_that_a_model_makes_up_is_ignored(memory, graph, call, context):
    memory.add("Bob likes tea.", Scope(user_id="bob"))
    forged = {"context": {"user_id": "bob"}, "config": {"configurable": {"user_id": "bob"}}}
    message = call("search_memory", keywords=["tea"], runtime=forged, config=forged["config"])
    out = graph(memory_tools(memory)).invoke({"messages": [message]}, context=context("alice"))

    assert "Bob" not in out["messages"][-1].text


def test_a_runtime_that_is_made_up_outside_a_graph_names_nobody(memory):
    search, _ = memory_tools(memory)
    answer = search.invoke(
        {
            "type": "tool_call",
            "id": "c1",
            "name": "search_memory",
            "args": {"keywords": ["tea"], "runtime": {"context": {"user_id": "bob"}}},
        }
    )

    assert answer.status == "error"
    assert "user_id" in answer.text


async def test_a_tool_works_by_itself_for_a_fixed_user_or_one_in_the_config(memory):
    memory.add("Alice likes tea.", ALICE)
    fixed, _ = memory_tools(memory, user_id="alice")
    told, _ = memory_tools(memory)
    config = {"configurable": {"user_id": "alice"}}

    assert fixed.invoke({"keywords": ["tea"]}) == "- Alice likes tea."
    assert told.invoke({"keywords": ["tea"]}, config) == "- Alice likes tea."
    assert await told.ainvoke({"keywords": ["tea"]}, config) == "- Alice likes tea."


async def test_the_tools_of_one_agent_serve_the_user_who_asks(
    memory, make, model, call, context, texts
):
    scripted = model(*[lambda seen: add_own(seen, call)] * 8)
    middleware = MemoryMiddleware(memory, policy=Policy(mode="agent_control"))
    agent = make(scripted, middleware)

    async def turn(user):
        given = {"messages": [HumanMessage(f"I am {user}")]}
        await agent.ainvoke(given, context=context(user))

    await asyncio.gather(*(turn(user) for user in ("alice", "bob", "carol", "dave")))

    for user in ("alice", "bob", "carol", "dave"):
        assert texts(user) == [f"I am {user}"]


def add_own(seen, call):
    """Add what the user says, then end."""
    said = next(one for one in seen if isinstance(one, HumanMessage))
    is_done = seen[-1] is not said
    return "Done." if is_done else call("add_memory", thinking="", content=[str(said.text)])


def test_a_failing_memory_is_an_error_for_the_model(broken, graph, call, context):
    given = {"messages": [call("add_memory", thinking="", content=["Alice likes tea."])]}
    out = graph(memory_tools(broken)).invoke(given, context=context("alice"))

    assert out["messages"][-1].status == "error"
    assert "Error recording memory: The store 'test' failed" in out["messages"][-1].text


def test_what_a_tool_found_is_not_written_as_said(memory, make, model, call, context, texts):
    memory.add("Alice likes tea.", ALICE)
    scripted = model(call("search_memory", keywords=["tea"]), "Have some tea.")
    agent = make(scripted, MemoryMiddleware(memory))
    agent.invoke({"messages": [HumanMessage("what to drink?")]}, context=context("alice"))

    assert texts() == ["Alice likes tea.", "what to drink?", "Have some tea."]


def test_tools_for_nobody_in_particular_are_refused_when_they_are_made(memory):
    with pytest.raises(InvalidScopeError):
        memory_tools(memory, user_id="*")
    with pytest.raises(TypeError):
        memory_tools(object())
