"""Other people's clients of mem0 on our classes, as they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace_mem0 import AsyncMemory, Memory

from .test_mem0 import Scripted, config, fact, texts

pytestmark = pytest.mark.filterwarnings("ignore")
ANSWER = {"facts": [fact("Alice likes tea.", ("Alice", "likes", "tea"))]}


@pytest.fixture(scope="module", autouse=True)
def _silent(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        yield


# -- AgentScope ---------------------------------------------------------------------------------


class Agent:
    """What the middleware looks at of an agent."""

    def __init__(self) -> None:
        from agentscope.state import AgentState

        self.state = AgentState()
        self.name = "bot"


async def test_agentscopes_own_middleware_writes_and_recalls(tmp_path):
    pytest.importorskip("agentscope", reason="pip install agentscope")
    from agentscope.event import ReplyStartEvent
    from agentscope.message import AssistantMsg, UserMsg
    from agentscope.middleware import Mem0Middleware

    async def reply(**_):
        yield ReplyStartEvent(session_id="s", reply_id="r", name="bot")
        yield AssistantMsg(name="bot", content="Noted.")

    async with AsyncMemory(config(tmp_path, llm=Scripted(ANSWER))) as client:
        middleware = Mem0Middleware(user_id="alice", client=client, agent_id="bot")
        agent = Agent()
        asked = UserMsg("Alice", "I like tea.")
        said = [one async for one in middleware.on_reply(agent, {"inputs": asked}, reply)]
        found = await middleware._async_search("tea", user_id="alice", agent_id="bot")

        again = Agent()
        question = UserMsg("Alice", "What tea do I like?")
        async for _ in middleware.on_reply(again, {"inputs": question}, reply):
            pass
        tools = {tool.name: tool for tool in await middleware.list_tools()}
        listed = await client.get_all(user_id="alice")

    assert 2 == len(said)
    assert ["Alice likes tea."] == found
    assert "Alice likes tea." in str(again.state.context)
    assert {"search_memory", "add_memory"} == set(tools)
    assert ["Alice likes tea."] == texts(listed)


async def test_agentscopes_fallback_stores_nothing_twice(tmp_path):
    pytest.importorskip("agentscope", reason="pip install agentscope")
    from agentscope.middleware import Mem0Middleware

    async with AsyncMemory(config(tmp_path, llm=Scripted(ANSWER))) as client:
        middleware = Mem0Middleware(user_id="alice", client=client)
        for _ in range(2):
            await middleware._async_add_with_fallback("I like tea.", user_id="alice", agent_id=None)

        assert ["Alice likes tea."] == texts(await client.get_all(user_id="alice"))


def test_agentscope_refuses_the_blocking_face(tmp_path):
    pytest.importorskip("agentscope", reason="pip install agentscope")
    from agentscope.middleware import Mem0Middleware

    with pytest.raises(TypeError, match="async"):
        Mem0Middleware(user_id="alice", client=Memory(config(tmp_path)))


def test_agentscopes_own_middleware_finds_ours_where_it_imports_mem0(tmp_path):
    for package in ("agentscope", "mem0"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    child = Path(__file__).with_name("mem0_agentscope.py")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", child],
        env={**os.environ, "COMMONPLACE_PATH": str(tmp_path / "m"), "MEM0_DIR": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert [True, ["Alice likes tea"], 1] == json.loads(run.stdout.splitlines()[-1])


# -- mem0_strands -------------------------------------------------------------------------------


async def test_the_strands_store_of_mem0_adds_extracts_and_finds(tmp_path):
    pytest.importorskip("mem0_strands", reason="pip install mem0-strands")
    from mem0_strands import Mem0MemoryStore, Mem0ServiceClient

    with Memory(config(tmp_path, llm=Scripted(ANSWER))) as memory:
        store = Mem0MemoryStore(
            user_id="alice", client=Mem0ServiceClient(client=memory), metadata={"app": "x"}
        )
        await store.add("Alice plays chess.")
        await store.add_messages([{"role": "user", "content": [{"text": "I like tea."}]}])
        found = await store.search("chess")
        held = {
            one["memory"]: one["metadata"] for one in memory.get_all(user_id="alice")["results"]
        }

    assert "Alice plays chess." in [one.content for one in found]
    assert {"Alice plays chess.", "Alice likes tea."} == set(held)
    assert {"app": "x"} == held["Alice plays chess."]


def test_the_strands_store_of_mem0_refuses_the_awaited_face(tmp_path):
    pytest.importorskip("mem0_strands", reason="pip install mem0-strands")
    from mem0_strands import Mem0ServiceClient

    with pytest.raises(ValueError, match="Async"):
        Mem0ServiceClient(client=AsyncMemory(config(tmp_path)))


# -- strands_tools ------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", ["plain", "graph"])
def test_every_action_of_the_strands_tool_works(tmp_path, graph):
    for package in ("strands_tools", "mem0", "faiss", "boto3"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    child = Path(__file__).with_name("mem0_child.py")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "utf8", child, str(tmp_path / "m"), graph],
        env={**os.environ, "MEM0_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout.splitlines()[-1])

    assert {"success"} == {status for status, _ in answers.values()}
    assert "Alice likes tea." == answers["store"][1][0]["memory"]
    listed, retrieved = answers["list"][1], answers["retrieve"][1]
    if graph == "graph":
        triple = {"source": "alice", "relationship": "likes", "target": "tea", "destination": "tea"}
        assert [triple] == answers["store"][1][1]
        assert [triple, triple] == [listed.pop(), retrieved.pop()]
    assert ["Alice likes tea."] == [one["memory"] for one in listed]
    assert ["Alice likes tea."] == [one["memory"] for one in retrieved]
    assert {"k": 1} == answers["get"][1]["metadata"]
    assert ["ADD"] == [one["event"] for one in answers["history"][1]]
    assert [] == [one for one in answers["left"][1] if "memory" in one]


def test_standing_in_for_mem0_is_refused_when_it_is_imported_already():
    code = (
        "import sys, types; sys.modules['mem0'] = types.ModuleType('mem0');"
        "from commonplace_mem0 import install_as_mem0; install_as_mem0()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "imported already" in run.stderr


def test_the_class_that_code_imports_as_mem0_is_ours():
    code = (
        "from commonplace_mem0 import install_as_mem0, Memory; install_as_mem0();"
        "import mem0.memory.main, mem0.configs.base; from mem0 import MemoryClient;"
        "from mem0.exceptions import ValidationError;"
        "assert mem0.Memory is Memory and issubclass(ValidationError, ValueError);"
        "assert mem0.memory.main.Memory is Memory and mem0.configs.base.MemoryConfig\n"
        "try:\n    MemoryClient()\nexcept ValueError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "hosted client" in run.stdout, run.stderr
