"""Ways to use memory that LangGraph's and LangChain's documents show, with the constructor swapped.

The chat model is scripted, texts and names are our own.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import after_model, before_model, dynamic_prompt
from langchain.tools import ToolRuntime
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage, trim_messages
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from commonplace_langgraph import CommonplaceSaver, CommonplaceStore

from . import Case, Section
from .langgraph_graph import Model, calls, spoken
from .langgraph_store import index

THREAD = {"configurable": {"thread_id": "1"}}
KEY = b"0123456789abcdef"
SAID = ("I am Alice.", "I grow roses.", "And what else?")


@dataclass
class Stack:
    """A store, a checkpointer, and how others of their kind are made."""

    store: Any
    saver: Any
    connect: Any
    aconnect: Any
    encrypted: Any


def theirs(folder, stack):
    return Stack(
        InMemoryStore(index=index()),
        InMemorySaver(),
        SqliteSaver.from_conn_string,
        AsyncSqliteSaver.from_conn_string,
        lambda serde: InMemorySaver(serde=serde),
    )


def ours(folder, stack):
    store = stack.enter_context(CommonplaceStore(str(folder), index=index()))
    return Stack(
        store,
        CommonplaceSaver(store.memory),
        CommonplaceSaver.from_conn_string,
        CommonplaceSaver.from_conn_string,
        lambda serde: CommonplaceSaver(store.memory, serde=serde),
    )


@dataclass
class Context:
    user_id: str


class Summed(MessagesState):
    summary: str


class Counted(TypedDict):
    n: int


def chat(saver, *nodes, state=MessagesState, store=None, context=None):
    """Compile a graph that answers with numbers, then runs other nodes."""
    answers = GenericFakeChatModel(messages=iter(map(str, range(9))))

    def call_model(state):
        return {"messages": answers.invoke(state["messages"])}

    builder = StateGraph(state, context_schema=context)
    builder.add_sequence([call_model, *nodes])
    builder.add_edge(START, "call_model")
    return builder.compile(checkpointer=saver, store=store)


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


def states(graph):
    """Say three things in a thread; return the messages of every state that is streamed."""
    found = [graph.stream(user(text), THREAD, stream_mode="values") for text in SAID]
    return [spoken(one["messages"]) for stream in found for one in stream]


def connected(s):
    with s.connect(":memory:") as saver:
        saver.setup()
        return states(chat(saver))


def aconnected(s):
    async def run():
        async with s.aconnect(":memory:") as saver:
            await saver.setup()
            graph = chat(saver)
            streams = [graph.astream(user(text), THREAD, stream_mode="values") for text in SAID]
            return [spoken(one["messages"]) for stream in streams async for one in stream]

    return asyncio.run(run())


def nested(own):
    """Run a graph in a graph twice; `own` keeps the inner one's thread."""

    def run(s):
        inner = StateGraph(Summed)
        inner.add_node("count", lambda state: {"summary": state.get("summary", "") + "x"})
        inner.add_edge(START, "count")
        within = inner.compile(checkpointer=own)
        outer = StateGraph(MessagesState)
        outer.add_node("inner", lambda state: {"messages": within.invoke(state)["summary"]})
        outer.add_edge(START, "inner")
        graph = outer.compile(checkpointer=s.saver)
        return [spoken(graph.invoke(user(text), THREAD)["messages"]) for text in SAID]

    return run


def recalled(s):
    def remember(state, runtime: Runtime[Context]):
        place = (runtime.context.user_id, "memories")
        found = runtime.store.search(place, query=state["messages"][-1].content, limit=3)
        runtime.store.put(place, str(len(found)), {"data": state["messages"][0].content})
        return {"messages": "; ".join(sorted(one.value["data"] for one in found))}

    graph = chat(s.saver, remember, store=s.store, context=Context)
    runs = [(text, who) for text in SAID for who in ("alice", "bob")]
    return [
        graph.invoke(
            user(text), {"configurable": {"thread_id": f"{n}"}}, context=Context(user_id=who)
        )["messages"][-1].content
        for n, (text, who) in enumerate(runs)
    ]


def asearched(s):
    async def run():
        await s.store.aput(("alice", "memories"), "1", {"text": "I grow roses"})
        found = await s.store.asearch(("alice", "memories"), query="roses", limit=1)
        return [one.value for one in found], await s.store.aget(("alice", "memories"), "2")

    return asyncio.run(run())


def searched(s):
    place = ("alice", "memories")
    for key, text in enumerate(("green tea", "a red boat")):
        s.store.put(place, str(key), {"text": text, "of": "day"})
    s.store.put(place, "unindexed", {"text": "green tea"}, index=False)
    s.store.put(place, "field", {"text": "a blue car", "of": "green tea"}, index=["text"])
    best = s.store.search(place, query="red boat", limit=1)[0]
    listed = {one.key: one.dict()["value"] for one in s.store.search(("alice",))}
    filtered = [one.key for one in s.store.search(place, filter={"of": "day"}, query="tea")]
    return best.value, listed, filtered, s.store.list_namespaces(), sorted(best.dict())


def trimmed(s):
    seen = []

    def trim(state):
        left = trim_messages(
            state["messages"], strategy="last", token_counter=len, max_tokens=3, start_on="human"
        )
        seen.append(spoken(left))
        return {}

    states(chat(s.saver, trim))
    return seen


def deleted(s):
    def delete(state):
        old = state["messages"][:-2]
        return {"messages": [RemoveMessage(id=one.id) for one in old]}

    return states(chat(s.saver, delete))


def emptied(s):
    return states(
        chat(s.saver, lambda state: {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    )


def summarized(s):
    def summarize(state):
        old = state["messages"][:-2]
        text = " ".join([state.get("summary", ""), *(one.content for one in old)])
        return {"summary": text, "messages": [RemoveMessage(id=one.id) for one in old]}

    graph = chat(s.saver, summarize, state=Summed)
    return [graph.invoke(user(text), THREAD)["summary"] for text in SAID], states(graph)


def viewed(s):
    graph = chat(s.saver)
    states(graph)
    history = list(graph.get_state_history(THREAD))
    state, early = graph.get_state(THREAD), graph.get_state(history[3].config)
    listed = [one.metadata["step"] for one in s.saver.list(THREAD)]
    kept = s.saver.get_tuple(THREAD)
    heads = [(one.metadata["source"], one.metadata["step"], one.next) for one in history]
    values = spoken(state.values["messages"]), spoken(early.values["messages"])
    return heads, listed, values, state.tasks, sorted(kept.checkpoint), sorted(kept.metadata)


def replayed(s):
    graph = chat(s.saver)
    states(graph)
    first = next(one for one in graph.get_state_history(THREAD) if one.next == ("call_model",))
    again = graph.invoke(None, first.config)
    fork = graph.update_state(first.config, user("Or what?"))
    return spoken(again["messages"]), spoken(graph.invoke(None, fork)["messages"])


def thread_deleted(s):
    graph = chat(s.saver)
    states(graph)
    s.saver.delete_thread("1")
    return graph.get_state(THREAD).values, list(s.saver.list(THREAD))


def encrypted(s):
    saver = s.encrypted(EncryptedSerializer.from_pycryptodome_aes(key=KEY))
    return states(chat(saver))


def durable(s):
    graph = chat(s.saver)
    graph.invoke(user(SAID[0]), THREAD, durability="exit")
    return [one.metadata["step"] for one in graph.get_state_history(THREAD)]


def functional(s):
    @task
    def double(n):
        return 2 * n

    @entrypoint(checkpointer=s.saver, store=s.store)
    def flow(n: int, *, previous: Any = None, store: BaseStore):
        store.put(("runs",), str(n), {"n": n})
        total = double(n).result() + (previous or 0)
        return entrypoint.final(value=total, save=total + 1)

    found = [flow.invoke(n, THREAD) for n in (1, 2, 3)]
    return found, len(s.store.search(("runs",))), flow.get_state(THREAD).values


@tool
def look_up(runtime: ToolRuntime[Context]) -> str:
    """Look up who asks."""
    found = runtime.store.get(("users",), runtime.context.user_id)
    return found.value["name"] if found else "unknown"


@tool
def rename(new: str, runtime: ToolRuntime[Context]) -> str:
    """Keep the user's name."""
    runtime.store.put(("users",), runtime.context.user_id, {"name": new})
    return "kept"


def agent(s, answers, texts=("Hi!",), **more):
    made = create_agent(
        Model(messages=iter(answers)), checkpointer=s.saver, store=s.store,
        context_schema=Context, **more,
    )  # fmt: skip
    alice = Context(user_id="alice")
    return [made.invoke(user(text), THREAD, context=alice) for text in texts]


def tools_of_store(s):
    s.store.put(("users",), "alice", {"name": "Al"})
    answers = [calls("look_up"), calls("rename", new="Alice"), calls("look_up"), AIMessage("ok")]
    [found] = agent(s, answers, tools=[look_up, rename])
    return spoken(found["messages"]), s.store.get(("users",), "alice").value


class Named(AgentState):
    name: str


@tool
def take_name(new: str, runtime: ToolRuntime[Context, Named]) -> Command:
    """Take a name into the state."""
    said = ToolMessage(f"was {runtime.state.get('name')}", tool_call_id=runtime.tool_call_id)
    return Command(update={"name": new, "messages": [said]})


def tools_of_state(s):
    @dynamic_prompt
    def prompt(request):
        return f"You speak to {request.state.get('name')}."

    answers = [
        calls("take_name", new="Al"), AIMessage("1"), calls("take_name", new="B"), AIMessage("2"),
    ]  # fmt: skip
    found = agent(s, answers, SAID[:2], tools=[take_name], middleware=[prompt], state_schema=Named)
    return [(one["name"], spoken(one["messages"])) for one in found]


def trimmed_agent(s):
    @before_model
    def keep_last(state, runtime):
        kept = state["messages"][-3:]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}

    @after_model
    def censor(state, runtime):
        last = state["messages"][-1]
        return {"messages": [RemoveMessage(id=last.id)]} if last.content == "1" else None

    answers = [AIMessage(str(n)) for n in range(3)]
    found = agent(s, answers, SAID, tools=[], middleware=[keep_last, censor])
    return [spoken(one["messages"]) for one in found]


CASES = [
    Case("Memory: short-term memory of a thread", lambda s: states(chat(s.saver))),
    Case("Memory: `with from_conn_string(...) as checkpointer`, `setup()`", connected),
    Case("Memory: `async with from_conn_string(...)`, `await setup()`", aconnected),
    Case("Memory: subgraphs", nested(None)),
    Case("Memory: subgraphs, `compile(checkpointer=True)`", nested(own=True)),
    Case("Memory: long-term memory in a node, of the context's user", recalled),
    Case("Memory: long-term memory, `aput`, `asearch`", asearched),
    Case("Memory: trim messages", trimmed),
    Case("Memory: delete messages", deleted),
    Case("Memory: delete all messages", emptied),
    Case("Memory: summarize messages", summarized),
    Case("Memory: view the thread's state and its history", viewed),
    Case("Memory: delete a thread's checkpoints", thread_deleted),
    Case("Stores: semantic search, `index=False`, `index=[...]`, `filter=`", searched),
    Case("Persistence: replay and fork from a checkpoint", replayed),
    Case("Persistence: `EncryptedSerializer.from_pycryptodome_aes(key=)`", encrypted),
    Case('Persistence: `durability="exit"`', durable),
    Case("Functional API: `previous`, `entrypoint.final(value=, save=)`", functional),
    Case("LangChain, long-term memory: tools that read and write the store", tools_of_store),
    Case("LangChain, short-term memory: tools that read and write the state", tools_of_state),
    Case("LangChain, short-term memory: `before_model`, `after_model`", trimmed_agent),
]

DOCUMENTS = Section(
    name="langgraph_documents",
    title="LangGraph: what its documents show of memory",
    packages=("langgraph", "langchain", "langgraph-checkpoint-sqlite"),
    columns={"`InMemoryStore`, `InMemorySaver` and `SqliteSaver`": (theirs, ours)},
    cases=CASES,
    interface={},
)
SECTIONS = {DOCUMENTS.name: DOCUMENTS}
