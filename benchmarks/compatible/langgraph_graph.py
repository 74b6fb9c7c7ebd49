"""LangGraph's graphs, agents and langmem on a store and a checkpointer: LangGraph's own, and ours."""

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import InjectedStore
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from langmem import (
    create_manage_memory_tool,
    create_memory_store_manager,
    create_search_memory_tool,
)

from commonplace import Memory
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore

from . import Case, Section, plain
from .langgraph_store import index

CONFIG = {"configurable": {"thread_id": "t", "user_id": "alice", "langgraph_user_id": "alice"}}
ALICE = ("memories", "alice")


@dataclass
class Both:
    store: Any
    saver: Any


def theirs(folder, stack):
    return Both(InMemoryStore(index=index()), InMemorySaver())


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder)))
    store = CommonplaceStore(memory)
    return Both(store, CommonplaceSaver(memory, owner=lambda thread, run: run["user_id"]))


class State(TypedDict, total=False):
    n: int
    seen: list[str]


class Model(GenericFakeChatModel):
    def bind_tools(self, *given, **more):
        return self


def calls(name, **arguments):
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "c"}])


def graph(both, *nodes):
    builder = StateGraph(State)
    for n, node in enumerate(nodes):
        builder.add_node(str(n), node)
        builder.add_edge(str(n - 1) if n else START, str(n))
    return builder.compile(store=both.store, checkpointer=both.saver)


def by_argument(state, *, store: BaseStore):
    store.put(ALICE, "k", {"text": "tea"})
    return {"seen": [one.key for one in store.search(ALICE)]}


def by_runtime(state, runtime: Runtime):
    runtime.store.put(ALICE, "l", {"text": "boat"})
    return {"n": len(runtime.store.search(("memories",)))}


def by_function(state):
    return {"n": len(get_store().search(ALICE))}


def asking(state):
    return {"n": interrupt("how many?")}


@tool
def keep(text: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Keep a text."""
    store.put(ALICE, "kept", {"text": text})
    return "kept"


@tool
def count(runtime: ToolRuntime) -> str:
    """Count what is kept."""
    return str(len(runtime.store.search(ALICE)))


def agent(both, *answers, tools=(keep, count)):
    model = Model(messages=iter([*answers, AIMessage("done")]))
    made = create_agent(model, list(tools), store=both.store, checkpointer=both.saver)
    return made, made.invoke({"messages": [("user", "go")]}, CONFIG)["messages"]


def spoken(messages):
    return [[one.type, one.content] for one in messages]


def resumed(both):
    made = graph(both, asking)
    made.invoke({}, CONFIG)
    waiting = [one.value for one in made.get_state(CONFIG).interrupts]
    return waiting, made.invoke(Command(resume=3), CONFIG)["n"], made.get_state(CONFIG).next


def travelled(both):
    made = graph(both, by_argument, by_function)
    made.invoke({"n": 0}, CONFIG)
    history = list(made.get_state_history(CONFIG))
    made.update_state(history[-1].config, {"n": 7})
    return [one.metadata["step"] for one in history], made.get_state(CONFIG).values


def thread_of_agent(both):
    made, _ = agent(both, calls("keep", text="tea"))
    return spoken(made.get_state(CONFIG).values["messages"])


def langmem(both, *texts, namespace=("memories", "{langgraph_user_id}"), **more):
    found = create_manage_memory_tool(namespace=namespace, store=both.store)
    for text in texts:
        found.invoke({"content": text}, CONFIG)
    items = both.store.search(
        tuple(one.replace("{langgraph_user_id}", "alice") for one in namespace)
    )
    return found, sorted(items, key=lambda one: one.value["content"])


def managed(**change):
    def run(both):
        made, items = langmem(both, "likes tea", "has a boat")
        made.invoke({"id": items[0].key, **change}, CONFIG)
        return sorted(plain(one.value)["content"] for one in both.store.search(ALICE))

    return run


def searched(both, namespace=("memories", "{langgraph_user_id}")):
    langmem(both, "likes green tea", "has a boat", namespace=namespace)
    found = create_search_memory_tool(namespace=namespace, store=both.store)
    return len(found.invoke({"query": "tea", "limit": 1}, CONFIG)) > 2


def learned(both):
    answers = [calls("Memory", content="likes tea"), AIMessage("")]
    model = Model(messages=iter(answers))
    manager = create_memory_store_manager(
        model, namespace=("memories", "{langgraph_user_id}"), store=both.store, query_limit=1
    )
    manager.invoke({"messages": [{"role": "user", "content": "I like tea"}]}, CONFIG)
    return [one.value for one in both.store.search(ALICE)]


CASES = [
    Case("compile(store=, checkpointer=): a node's `store`", lambda b: graph(b, by_argument).invoke({}, CONFIG)),
    Case("a node's `runtime.store`", lambda b: graph(b, by_argument, by_runtime).invoke({}, CONFIG)),
    Case("get_store()", lambda b: graph(b, by_argument, by_function).invoke({}, CONFIG)),
    Case("interrupt(...), Command(resume=)", resumed),
    Case("get_state_history(config), update_state(config, values)", travelled),
    Case("create_agent(store=, checkpointer=): `InjectedStore`, `ToolRuntime.store`", lambda b: spoken(agent(b, calls("keep", text="tea"), calls("count"))[1])),
    Case("create_agent(checkpointer=): the thread of an agent", thread_of_agent),
    Case("langmem: create_manage_memory_tool, create", lambda b: [one.value for one in langmem(b, "likes tea", "has a boat")[1]]),
    Case("langmem: create_manage_memory_tool, update", managed(action="update", content="sold the boat")),
    Case("langmem: create_manage_memory_tool, delete", managed(action="delete")),
    Case("langmem: create_manage_memory_tool, no user in the namespace", lambda b: [one.value for one in langmem(b, "likes tea", namespace=("shared",))[1]]),
    Case("langmem: create_search_memory_tool", searched),
    Case("langmem: create_search_memory_tool, no user in the namespace", lambda b: searched(b, ("shared",))),
    Case("langmem: create_memory_store_manager", learned),
]  # fmt: skip

GRAPH = Section(
    name="langgraph_graph",
    title="LangGraph: graphs, agents and langmem",
    packages=("langgraph", "langchain", "langmem"),
    columns={"`InMemoryStore` and `InMemorySaver`": (theirs, ours)},
    cases=CASES,
    interface={},
)
SECTIONS = {GRAPH.name: GRAPH}
