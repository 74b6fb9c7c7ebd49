"""Turns that never end: what the user said is there, once, whatever became of the agent.

As a program, `python -m integrations_tests.adapters.test_unended_turns FOLDER KILLS`, it kills
processes while the models of their agents think, and closes an event loop then.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, Runner
from agents.testing import ModelStep, assistant_message
from agentscope.event import ModelCallStartEvent, RequireUserConfirmEvent
from agentscope.message import UserMsg
from agentscope.tool import FunctionTool
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from strands import Agent
from strands.multiagent import GraphBuilder

from commonplace import Memory, Policy, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope import CommonplaceMiddleware
from commonplace_langgraph import MemoryMiddleware, recall_hook, remember_node
from commonplace_openai_agents import MemoryHooks
from commonplace_strands import MemoryPlugin

from .langgraph.agent.conftest import Scripted
from .strands.conftest import ScriptedModel
from .test_agentscope import dangerous, make, use
from .test_openai_agents import agent_of
from .test_user_ids import DRIVERS

ALICE = Scope(user_id="alice")
SAID = "My cat number {} is called Miso."
ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "3"))

Answer = Callable[[], Any]
"""What a model does when it is called."""


def scripted(answer: Answer) -> Scripted:
    return Scripted(script=[lambda _messages: answer()], seen=[], tools=[])


# -- agents, each with one turn ------------------------------------------------------------------


async def agentscope(memory: Memory, text: str, answer: Answer) -> None:
    async def model(_messages: Any) -> Any:
        answer()
        await asyncio.sleep(60)

    agent = await make(CommonplaceMiddleware(user_id="alice", client=memory), script=[model])
    await agent.reply(UserMsg("alice", text))


async def langgraph(memory: Memory, text: str, answer: Answer) -> None:
    middleware = MemoryMiddleware(memory, user_id="alice")
    agent = create_agent(scripted(answer), middleware=[middleware])
    await agent.ainvoke({"messages": [HumanMessage(text)]})


async def langgraph_threads(memory: Memory, text: str, answer: Answer) -> None:
    middleware = MemoryMiddleware(memory, user_id="alice")
    create_agent(scripted(answer), middleware=[middleware]).invoke(
        {"messages": [HumanMessage(text)]}
    )


async def langgraph_nodes(memory: Memory, text: str, answer: Answer) -> None:
    model = recall_hook(memory, user_id="alice") | scripted(answer)
    built = StateGraph(MessagesState)
    built.add_node("model", lambda state: {"messages": [model.invoke(state)]})
    built.add_node("remember", remember_node(memory, user_id="alice"))
    built.add_edge(START, "model")
    built.add_edge("model", "remember")
    await built.compile().ainvoke({"messages": [HumanMessage(text)]})


async def openai_agents(memory: Memory, text: str, answer: Answer) -> None:
    hooks = MemoryHooks(memory, user_id="alice")
    step = ModelStep.respond(lambda _call: [assistant_message(answer())])
    quiet = RunConfig(tracing_disabled=True)
    await Runner.run(agent_of(hooks, step), text, hooks=hooks, run_config=quiet)


def strands_agent(memory: Memory, answer: Answer) -> Agent:
    model = ScriptedModel([lambda _messages: answer()])
    plugin = MemoryPlugin(memory, user_id="alice")
    return Agent(model=model, plugins=[plugin], callback_handler=None)


async def strands(memory: Memory, text: str, answer: Answer) -> None:
    await strands_agent(memory, answer).invoke_async(text)


async def strands_graph(memory: Memory, text: str, answer: Answer) -> None:
    builder = GraphBuilder()
    builder.add_node(strands_agent(memory, answer), "one")
    await builder.build().invoke_async(text)


AGENTS: dict[str, Callable[[Memory, str, Answer], Awaitable[None]]] = {
    one.__name__: one
    for one in (
        agentscope,
        langgraph,
        langgraph_threads,
        langgraph_nodes,
        openai_agents,
        strands,
        strands_graph,
    )
}
every_agent = pytest.mark.parametrize("agent", AGENTS)


def kept(folder: Path) -> list[str]:
    """List what a memory holds when it is opened again."""
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        left = memory.flush(60)
        assert (left.pending, left.dead) == (0, 0)
        return sorted(one.text for one in memory.list(ALICE, limit=100).records)


# -- played in a process that forks, as to import all frameworks takes seconds --------------------


def in_child(play: Callable[[], object]) -> int:
    """Run a function in a child, which ends with it; return the child's id."""
    if child := os.fork():
        return child
    try:
        play()
    finally:
        os._exit(0)


def open_and_take(agent: str, folder: Path, text: str, answer: Answer) -> None:
    memory = Memory.open(str(folder), embedder=HashEmbedder())
    asyncio.run(AGENTS[agent](memory, text, answer))  # type: ignore[arg-type]


def kill_while_it_thinks(agent: str, folder: Path, text: str) -> None:
    called, call = os.pipe()

    def think() -> None:
        os.write(call, b"called")
        time.sleep(60)

    child = in_child(lambda: open_and_take(agent, folder, text, think))
    os.close(call)
    assert os.read(called, 6) == b"called"
    os.close(called)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def close_while_it_thinks(agent: str, folder: Path, text: str) -> None:
    """Take a turn on an event loop that is closed when the model is called."""
    memory, loop = Memory.open(str(folder), embedder=HashEmbedder()), asyncio.new_event_loop()

    def answer() -> str:
        loop.call_soon_threadsafe(loop.stop)
        return "All right."

    turn = loop.create_task(AGENTS[agent](memory, text, answer))  # type: ignore[arg-type]
    with contextlib.suppress(RuntimeError):  # it is stopped before the turn is over
        loop.run_until_complete(turn)
    loop.close()
    memory.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """Take all turns; the environment asks for the long form, 20 kills of each agent."""
    folder = tmp_path_factory.mktemp("played")
    module = "integrations_tests.adapters.test_unended_turns"
    command = [sys.executable, "-m", module, str(folder), str(KILLS)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600, capture_output=True)
    return folder


@every_agent
def test_a_process_that_is_killed_while_the_model_thinks_loses_no_message(played, agent):
    assert kept(played / agent / "killed") == sorted(SAID.format(n) for n in range(KILLS))


@every_agent
def test_a_loop_that_is_closed_while_the_model_thinks_loses_no_message(played, agent):
    assert SAID.format(0) in kept(played / agent / "closed")


# -- left ----------------------------------------------------------------------------------------


async def test_a_stream_that_nobody_takes_on_loses_no_message(tmp_path):
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        agent = await make(CommonplaceMiddleware(user_id="alice", client=memory))
        stream = agent.reply_stream(UserMsg("alice", SAID.format(0)))
        async for event in stream:
            if isinstance(event, ModelCallStartEvent):
                break
        # Neither taken further nor closed.
        assert memory.flush().pending == 0
        assert [one.text for one in memory.list(ALICE).records] == [SAID.format(0)]
        await stream.aclose()

    assert kept(tmp_path) == [SAID.format(0)]


async def test_an_approval_that_is_never_given_loses_no_message(tmp_path):
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        middleware = CommonplaceMiddleware(user_id="alice", client=memory)
        script = [use("dangerous", city="Lyon")]
        agent = await make(middleware, script=script, tools=[FunctionTool(dangerous)])
        events = [one async for one in agent.reply_stream(UserMsg("alice", SAID.format(0)))]

        assert isinstance(events[-1], RequireUserConfirmEvent)
    assert kept(tmp_path) == [SAID.format(0)]


def test_an_interrupt_that_is_never_resumed_loses_no_message(tmp_path):
    @tool
    def consent(question: str) -> str:
        """Ask the user."""
        return interrupt(question)

    asking = AIMessage("", tool_calls=[{"name": "consent", "args": {"question": "?"}, "id": "c1"}])
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        middleware = MemoryMiddleware(memory, user_id="alice")
        agent = create_agent(
            scripted(lambda: asking),
            [consent],
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "t"}}
        out = agent.invoke({"messages": [HumanMessage(SAID.format(0))]}, thread)

        assert out["__interrupt__"]
    assert kept(tmp_path) == [SAID.format(0)]


# -- not accepted --------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda one: one.__name__)
async def test_nothing_is_accepted_where_the_agent_decides_what_to_keep(tmp_path, driver):
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        agent = driver(memory, user_id="alice", policy=Policy(mode="agent_control"))
        await agent.turn(SAID.format(0))

        assert agent.calls == 1
    assert kept(tmp_path) == []


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda one: one.__name__)
async def test_nothing_is_accepted_of_nobody(tmp_path, driver):
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        await driver(memory).turn(SAID.format(0))
        memory.flush()

        assert memory.admin.list_scopes() == []


if __name__ == "__main__":
    for name in AGENTS:
        place = Path(sys.argv[1]) / name
        place.mkdir()
        for number in range(int(sys.argv[2])):
            kill_while_it_thinks(name, place / "killed", SAID.format(number))
        closed = partial(close_while_it_thinks, name, place / "closed", SAID.format(0))
        os.waitpid(in_child(closed), 0)
