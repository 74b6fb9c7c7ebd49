"""LangChain's agents with a middleware that passes all through, and with `MemoryMiddleware`."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel, Field

from commonplace import Memory, Scope
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore, MemoryMiddleware

from . import Case, Section
from .langgraph_store import index

CONFIG = {"configurable": {"thread_id": "t", "user_id": "alice"}}
ALICE = ("memories", "alice")


class Through(AgentMiddleware):
    """Every hook that ours has, without an effect."""

    def before_agent(self, state, runtime): ...

    async def abefore_agent(self, state, runtime): ...

    def wrap_model_call(self, request, handler):
        return handler(request)

    async def awrap_model_call(self, request, handler):
        return await handler(request)

    def wrap_tool_call(self, request, handler):
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        return await handler(request)

    def after_agent(self, state, runtime): ...

    async def aafter_agent(self, state, runtime): ...


class Scripted(BaseChatModel):
    """Gives its answers in turn; what it was shown is in `seen`, its tools in `bound`."""

    answers: list[Any]
    seen: list[Any] = Field(default_factory=list)
    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **more):
        self.bound[:] = sorted(one.name for one in tools)
        return self

    def _generate(self, messages, *given, **more):
        self.seen.append([[one.type, one.text] for one in messages])
        answer = self.answers.pop(0) if self.answers else AIMessage("done")
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])


@dataclass
class Parts:
    middleware: Any
    store: Any
    saver: Any
    memory: Any = None
    model: Any = None
    more: dict = field(default_factory=dict)

    def agent(self, *answers, tools=(), before=(), after=(), **more):
        self.model = Scripted(answers=[*answers])
        given = [*before, self.middleware, *after]
        return create_agent(
            self.model,
            list(tools),
            middleware=given,
            store=self.store,
            checkpointer=self.saver,
            **more,
        )


def theirs(folder, stack):
    return Parts(Through(), InMemoryStore(index=index()), InMemorySaver())


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder)))
    saver = CommonplaceSaver(memory, owner=lambda thread, run: run.get("user_id"))
    return Parts(MemoryMiddleware(memory), CommonplaceStore(memory), saver, memory)


def calls(tool_name, /, **arguments):
    return AIMessage("", tool_calls=[{"name": tool_name, "args": arguments, "id": "c"}])


def asked(text="go"):
    return {"messages": [("user", text)]}


def spoken(messages):
    return [[one.type, one.text] for one in messages]


def said(agent, text="go", config=CONFIG, **more):
    return spoken(agent.invoke(asked(text), config, **more)["messages"])


@tool
def keep(text: str, runtime: ToolRuntime) -> str:
    """Keep a text."""
    runtime.store.put(ALICE, "kept", {"text": text})
    return f"kept {len(runtime.store.search(ALICE))}"


@tool
def broken() -> str:
    """Fail."""
    raise OSError("broken")


@tool
def state_of(runtime: ToolRuntime) -> str:
    """Name who asks."""
    return str(runtime.context)


class City(BaseModel):
    name: str


def told(p):
    if p.memory is not None:
        p.memory.add("Alice drinks green tea.", Scope(user_id="alice"))
    p.agent().invoke(asked("Which green tea does Alice drink?"), CONFIG)
    return len(p.model.seen[0]), "Alice drinks green tea" in str(p.model.seen[0])


def remembered(p):
    said(p.agent(AIMessage("Noted.")), "My boat is red.")
    if p.memory is not None:
        p.memory.flush()
    items = p.store.search(ALICE)
    return [one.value.get("content") for one in items]


def streamed(mode):
    def run(p):
        chunks = [*p.agent(AIMessage("hello")).stream(asked(), CONFIG, stream_mode=mode)]
        if mode == "messages":
            return "".join(one.text for one, _ in chunks)
        return [sorted(one) for one in chunks]

    return run


async def _astreamed(p):
    found = p.agent(AIMessage("hello")).astream(asked(), CONFIG, stream_mode="messages")
    return "".join([one.text async for one, _ in found])


def twice(p):
    agent = p.agent(AIMessage("one"), AIMessage("two"))
    return said(agent, "a"), said(agent, "b")


def history(p):
    agent = p.agent(AIMessage("one"))
    said(agent)
    return len([*agent.get_state_history(CONFIG)]), agent.get_state(CONFIG).next


def kept_state(p):
    agent = p.agent(AIMessage("one"))
    said(agent)
    return sorted(agent.get_state(CONFIG).values)


def approved(order):
    def run(p):
        human = HumanInTheLoopMiddleware(interrupt_on={"keep": True})
        agent = p.agent(calls("keep", text="tea"), tools=[keep], **{order: [human]})
        waiting = "__interrupt__" in agent.invoke(asked(), CONFIG)
        resume = Command(resume={"decisions": [{"type": "approve"}]})
        return waiting, spoken(agent.invoke(resume, CONFIG)["messages"])

    return run


def summarized(p):
    summary = SummarizationMiddleware(
        Scripted(answers=[AIMessage("all so far")]), trigger=("messages", 4), keep=("messages", 1)
    )
    agent = p.agent(*map(AIMessage, "abc"), before=[summary])
    return [len(said(agent, text)) for text in ("x", "y", "z")]


def redacted(p):
    agent = p.agent(AIMessage("ok"), before=[PIIMiddleware("email")])
    shown = said(agent, "I am a@example.org")
    if p.memory is not None:
        p.memory.flush()
        assert "example.org" not in str(p.memory.list(Scope(user_id="alice")).records)
    return shown


def limited(p):
    limit = ModelCallLimitMiddleware(run_limit=1)
    return said(p.agent(calls("keep", text="tea"), tools=[keep], after=[limit]))


def failing(p):
    return said(p.agent(OSError("down")))


def retried(p):
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, on_failure="continue")
    return len(said(p.agent(calls("broken"), tools=[broken], after=[retry])))


def steps(p):
    agent = p.agent(*(calls("keep", text="tea") for _ in range(9)), tools=[keep])
    return agent.invoke(asked(), CONFIG | {"recursion_limit": 5})


CASES = [
    Case("create_agent(middleware=, store=, checkpointer=).invoke(input, config)", lambda p: said(p.agent(AIMessage("hello")))),
    Case("ainvoke(input, config)", lambda p: spoken(asyncio.run(p.agent(AIMessage("hello")).ainvoke(asked(), CONFIG))["messages"])),
    Case("invoke(...): keys of the result", lambda p: sorted(p.agent(AIMessage("hello")).invoke(asked(), CONFIG))),
    Case('stream(stream_mode="values")', streamed("values"), "a state for each hook of ours, with `commonplace_turn` in it"),
    Case('stream(stream_mode="updates")', streamed("updates"), "the nodes of our hooks are called `commonplace_memory.before_agent` and `.after_agent`"),
    Case('stream(stream_mode="messages")', streamed("messages")),
    Case('astream(stream_mode="messages")', lambda p: asyncio.run(_astreamed(p))),
    Case("invoke(...) again on the thread", twice),
    Case("get_state_history(config)", history),
    Case("get_state(config).values: keys", kept_state, "`commonplace_turn` too, None between turns; it is in no result"),
    Case("create_agent(tools=): `ToolRuntime.store` in a tool", lambda p: said(p.agent(calls("keep", text="tea"), tools=[keep]))),
    Case("create_agent(tools=): what the model is offered", lambda p: [said(p.agent(tools=[keep])), p.model.bound], "`search_memory` and `add_memory` too, as `policy=` says"),
    Case("create_agent(system_prompt=): what the model sees", lambda p: [said(p.agent(system_prompt="Be brief.")), p.model.seen], "how to use the memory tools is added, with the tools alone"),
    Case("create_agent(response_format=)", lambda p: p.agent(calls("City", name="Oslo"), response_format=ToolStrategy(City)).invoke(asked(), CONFIG)["structured_response"].name),
    Case("create_agent(context_schema=); invoke(context=)", lambda p: said(p.agent(calls("state_of"), tools=[state_of], context_schema=dict), context={"user_id": "alice"})),
    Case("create_agent(middleware=[one, the same again])", lambda p: said(p.agent(after=[p.middleware]))),
    Case("create_agent(name=)", lambda p: said(create_agent(Scripted(answers=[]), [], name="outer", middleware=[p.middleware], store=p.store, checkpointer=p.saver))),
    Case("before_agent(state, runtime), after_agent(state, runtime): nodes", lambda p: sorted(one.rpartition(".")[2] for one in p.agent().get_graph().nodes)),
    Case("wrap_model_call(request, handler): what the model sees of a known user", told, "what the memory knows is in a note before the question, in no state or checkpoint"),
    Case("wrap_tool_call(request, handler) of a tool that fails", lambda p: said(p.agent(calls("broken"), tools=[broken]))),
    Case("after_agent(state, runtime): what `store.search(namespace)` finds", remembered),
    Case("a model that fails", failing),
    Case("a run that ends at its recursion limit", steps),
    Case("a run that names no user", lambda p: said(p.agent(AIMessage("hello")), config={"configurable": {"thread_id": "t"}})),
    Case("a run that names a user by an id with a line break", lambda p: said(p.agent(AIMessage("hello")), config={"configurable": {"thread_id": "t", "user_id": "a\nb"}}), "`InvalidScopeError` before the model is called: map ids with `user_id=`"),
    Case("beside HumanInTheLoopMiddleware, before it", approved("after")),
    Case("beside HumanInTheLoopMiddleware, after it", approved("before")),
    Case("beside SummarizationMiddleware", summarized),
    Case("beside PIIMiddleware", redacted),
    Case("beside ModelCallLimitMiddleware", limited),
    Case("beside TodoListMiddleware", lambda p: said(p.agent(AIMessage("hello"), before=[TodoListMiddleware()]))),
    Case("beside ToolRetryMiddleware", retried),
]  # fmt: skip

HOOKS = ("before_agent", "after_agent", "wrap_model_call", "wrap_tool_call")
MIDDLEWARE = Section(
    name="langgraph_middleware",
    title="LangGraph: middleware of an agent",
    packages=("langchain", "langgraph"),
    columns={"an `AgentMiddleware` without an effect": (theirs, ours)},
    cases=CASES,
    interface={name: getattr(AgentMiddleware, name) for name in HOOKS},
)
SECTIONS = {MIDDLEWARE.name: MIDDLEWARE}
