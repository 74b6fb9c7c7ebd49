import asyncio
import json
import re
from dataclasses import replace

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import Command

from commonplace.agents.policy import Policy, tools
from commonplace.errors import InvalidScopeError, StoreUnavailableError
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Scope
from commonplace_langgraph import MemoryMiddleware, memory_tools, recall_hook, remember_node

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
    assert found.text.endswith(", today] Alice likes tea.")
    assert texts() == ["Alice likes tea."]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"keywords": ["tea"], "user_id": "bob"}, "They are keywords, limit."),
        ({"keywords": ["tea"], "topk": 3}, "'topk' is not one of its parameters"),
        ({"keywords": ["tea"], "config": {}}, "They are keywords, limit."),
        ({"keywords": ["tea"], "run_manager": 1}, "They are keywords, limit."),
        ({"keywords": ["tea"], "self": 1}, "They are keywords, limit."),
        ({"keywords": ["tea"], "args": 1}, "They are keywords, limit."),
        ({"keywords": ["tea"], "limit": 100_000}, "limit="),
        ({"keywords": "tea"}, "keywords="),
        ({}, "Its parameters are keywords, limit."),
    ],
)
async def test_a_call_that_does_not_fit_the_schema_is_an_error_for_the_model(
    memory, graph, call, context, arguments, said, is_async
):
    memory.add("Bob likes tea.", Scope(user_id="bob"))
    message = call("search_memory")
    message.tool_calls[0]["args"] = arguments
    given = {"messages": [message]}
    built = graph(memory_tools(memory))
    if is_async:
        out = await built.ainvoke(given, context=context("alice"))
    else:
        out = built.invoke(given, context=context("alice"))

    assert out["messages"][-1].status == "error"
    assert out["messages"][-1].text.startswith("Error retrieving memory: ")
    assert said in out["messages"][-1].text
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

    answers = [
        fixed.invoke({"keywords": ["tea"]}),
        told.invoke({"keywords": ["tea"]}, config),
        await told.ainvoke({"keywords": ["tea"]}, config),
    ]
    assert all(one.endswith(", today] Alice likes tea.") for one in answers)


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


ALL = Policy(tools=("search_memory", "add_memory", "update_memory", "forget_memory"))


def id_of(text, word):
    """Read the id that a model is shown in front of the memory with a word."""
    return re.search(rf"^- \[(\w+)\].*{word}", text, re.MULTILINE)[1]


def change(name, call, word, **more):
    """Make a model call a tool with the id that stands in what it is shown."""
    return lambda seen: call(
        name, memory_id=id_of("\n".join(str(one.text) for one in seen), word), **more
    )


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("shown_by", ["note", "search"])
async def test_an_agent_changes_what_it_was_shown_in_this_turn(
    memory, make, model, call, context, is_async, shown_by
):
    for text in ("Alice likes black tea.", "Alice likes a green bike."):
        memory.add(text, ALICE)
    search = [call("search_memory", keywords=["tea", "bike"])] if shown_by == "search" else []
    scripted = model(
        *search,
        change("update_memory", call, "black tea", text="Alice likes white tea."),
        change("forget_memory", call, "bike"),
        "Done.",
    )
    policy = ALL if shown_by == "note" else replace(ALL, mode="agent_control")
    agent = make(scripted, MemoryMiddleware(memory, policy=policy))
    given = {"messages": [HumanMessage("What does Alice like?")]}
    if is_async:
        await agent.ainvoke(given, context=context("alice"))
    else:
        agent.invoke(given, context=context("alice"))

    assert "Updated: Alice likes white tea." in scripted.shown()
    facts = [one.text for one in memory.list(ALICE).records if one.kind == "fact"]
    assert facts == ["Alice likes white tea."]


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_what_a_tool_told_earlier_is_not_noted_again_and_can_be_forgotten(
    memory, make, model, call, context, user
):
    record = memory.add("Alice's dentist is called Sutton.", ALICE).changes[0].id
    search, forget = call("search_memory", keywords=["dentist"]), change("forget_memory", call, "S")
    scripted = model(search, "Sutton.", forget, "Done.")
    agent = make(scripted, MemoryMiddleware(memory, policy=ALL), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t1"}}
    asked = "Who takes care of my teeth?"
    agent.invoke({"messages": [HumanMessage(asked)]}, config, context=context("alice"))
    asked = "What is my dentist called? Delete the name."
    agent.invoke({"messages": [HumanMessage(asked)]}, config, context=context(user))

    assert scripted.shown().count(f"[{record[:8]}]") == 1
    assert (memory.get(record, ALICE) is None) == (user == "alice")


def test_an_id_of_an_earlier_turn_or_another_user_is_refused(memory, make, model, call, context):
    record = memory.add("Alice likes black tea.", ALICE).changes[0].id
    scripted = model("Yes.", call("forget_memory", memory_id=record), "No.")
    agent = make(scripted, MemoryMiddleware(memory, policy=ALL), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t1"}}
    for text in ("Which tea does Alice like?", "Hello!"):
        agent.invoke({"messages": [HumanMessage(text)]}, config, context=context("alice"))
    assert record[:8] in scripted.shown(0)
    assert "Error forgetting memory: memory_id=" in scripted.shown()
    assert "Search for the memory first" in scripted.shown()

    scripted.script[:] = [call("forget_memory", memory_id=record)]
    config = {"configurable": {"thread_id": "t2"}}
    agent.invoke(
        {"messages": [HumanMessage("Which tea does Alice like?")]}, config, context=context("bob")
    )
    assert "Search for the memory first" in scripted.shown()
    assert memory.get(record, ALICE).text == "Alice likes black tea."


def test_a_turn_that_goes_on_in_another_process_has_shown_nothing(
    tmp_path, memory, make, model, call, context
):
    memory.add("Alice likes black tea.", ALICE)
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t1"}}
    approve = Command(resume={"decisions": [{"type": "approve"}]})

    def agent(opened, scripted):
        consent = HumanInTheLoopMiddleware(interrupt_on={"forget_memory": True})
        return make(scripted, consent, MemoryMiddleware(opened, policy=ALL), checkpointer=saver)

    first = model(change("forget_memory", call, "black tea"))
    given = {"messages": [HumanMessage("Which tea does Alice like?")]}
    agent(memory, first).invoke(given, config, context=context("alice"))
    second = model(change("forget_memory", call, "black tea"), "Done.")
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        later = agent(opened, second)
        for _ in range(2):
            later.invoke(approve, config, context=context("alice"))

    assert "Search for the memory first" in second.shown(0)
    assert "Forgotten." in second.shown(1)
    assert "fact" not in {one.kind for one in memory.list(ALICE).records}


def test_tools_that_run_in_threads_share_what_the_turn_was_shown(
    memory, make, model, call, context
):
    for number in range(4):
        memory.add(f"Alice has a cat{number}.", ALICE)

    def forget_each(seen):
        made = [
            change("forget_memory", lambda name, **more: more, f"cat{number}")(seen)
            for number in range(4)
        ]
        message = call("forget_memory", "c0", **made[0])
        for number in range(1, 4):
            message.tool_calls += call("forget_memory", f"c{number}", **made[number]).tool_calls
        return message

    keywords = call("search_memory", "s", keywords=[f"cat{number}" for number in range(4)])
    agent = make(model(keywords, forget_each), MemoryMiddleware(memory, policy=ALL))
    agent.invoke({"messages": [HumanMessage("Forget my cats")]}, context=context("alice"))

    # The request to forget them is not kept either.
    assert memory.list(ALICE).records == ()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("shown_by", ["note", "search"])
def test_tools_without_the_middleware_change_what_was_shown_since_the_last_question(
    memory, model, call, shown_by
):
    record = memory.add("Alice likes black tea.", ALICE).changes[0].id
    search = [call("search_memory", keywords=["tea"])] if shown_by == "search" else []
    scripted = model(
        *search,
        change("update_memory", call, "black tea", text="Alice likes white tea."),
        "Done.",
        call("forget_memory", memory_id=record),
        "No.",
    )
    hook = {"prompt": recall_hook(memory, policy=ALL)} if shown_by == "note" else {}
    agent = create_react_agent(
        scripted, memory_tools(memory, policy=ALL), checkpointer=InMemorySaver(), **hook
    )
    config = {"configurable": {"user_id": "alice", "thread_id": "t1"}}
    agent.invoke({"messages": [HumanMessage("Which tea does Alice like?")]}, config)
    assert memory.get(record, ALICE).text == "Alice likes white tea."
    out = agent.invoke({"messages": [HumanMessage("Thanks!")]}, config)

    assert "Search for the memory first" in out["messages"][-2].text


def test_tools_by_themselves_change_what_they_showed_the_user_in_the_same_thread(memory):
    record = memory.add("Alice likes black tea.", ALICE).changes[0].id
    made = {one.name: one for one in memory_tools(memory, policy=ALL)}
    hers, other, bobs = (
        {"configurable": {"user_id": user, "thread_id": thread}}
        for user, thread in (("alice", "1"), ("alice", "2"), ("bob", "1"))
    )
    assert record[:8] in made["search_memory"].invoke({"keywords": ["tea"]}, hers)
    for config in (other, bobs):
        given = {"memory_id": record}
        assert "Search for" in made["forget_memory"].invoke(given, config)
    assert made["forget_memory"].invoke({"memory_id": record[:8]}, hers) == "Forgotten."


def test_what_happens_is_counted_and_told(memory, make, model, call, context):
    events = []
    middleware = MemoryMiddleware(memory, on_event=events.append)
    agent = make(model(call("add_memory", thinking="", content=["Alice likes tea."])), middleware)
    agent.invoke({"messages": [HumanMessage("I like tea")]}, context=context("alice"))
    agent.invoke({"messages": [HumanMessage("What does Alice like?")]}, context=context("alice"))

    assert [(one.name, one.operation, one.scope) for one in events] == [
        ("empty", "recall", ALICE),
        ("written", "add_memory", ALICE),
        ("written", "write", ALICE),
        ("recalled", "recall", ALICE),
        ("written", "write", ALICE),
    ]
    counters = middleware.counters()
    assert (counters.empty, counters.recalled, counters.written) == (1, 1, 3)
    assert counters.last_error is None


@pytest.mark.parametrize("is_async", [False, True])
async def test_every_part_counts_and_tells_what_it_does(broken, model, is_async):
    events = []
    parts = [
        part(broken, user_id="alice", on_event=events.append)
        for part in (recall_hook, remember_node)
    ]
    question = {"messages": [HumanMessage("I like tea")]}
    add = memory_tools(broken, user_id="alice", on_event=events.append)[1]
    for work, given in (
        *((part, question) for part in parts),
        (add, {"thinking": "", "content": ["tea"]}),
    ):
        await work.ainvoke(given) if is_async else work.invoke(given)

    assert [(one.name, one.operation) for one in events] == [
        ("failed", "recall"),
        ("waiting", "write"),
        ("failed", "add_memory"),
    ]
    for part in (*parts, add):
        # The hook, which accepts what was said, tells that it waits.
        assert part.counters().failed == (part is not parts[1])
        assert part.counters().waiting == 1, "they use one memory"
        is_told = isinstance(part.counters().last_error, StoreUnavailableError)
        assert is_told == (part is not parts[1])


def test_tools_for_nobody_in_particular_are_refused_when_they_are_made(memory):
    with pytest.raises(InvalidScopeError):
        memory_tools(memory, user_id="*")
    with pytest.raises(TypeError):
        memory_tools(object())
