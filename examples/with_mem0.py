"""Code that was written for mem0, on this memory: the same import, the same calls, no key.

The configuration names Qdrant and Neo4j; no server runs here, and `fallback` allows a folder then.
The chat model of the agent is scripted; AgentScope's `Mem0Middleware` is its own.

Prints:
    mem0's own calls
      推荐咖啡 → 用户每周五购买拿铁
      王总的饮品偏好 → 客户王总喜欢蓝山咖啡
      no such memory: Memory with id m1 not found. Please provide a valid 'memory_id'
      王总的饮品偏好 → 王总最近改喝低因咖啡
    AgentScope's Mem0Middleware
      the agent was shown: - I am allergic to peanuts.
"""

import asyncio
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import HintBlock, TextBlock, UserMsg
from agentscope.middleware import Mem0Middleware
from agentscope.model import ChatModelBase, ChatResponse

from commonplace_mem0 import AsyncMemory, Memory
from commonplace_mem0.exceptions import MemoryNotFoundError

CONFIG = {
    "vector_store": {"provider": "qdrant", "config": {"host": "localhost", "port": 6333}},
    "graph_store": {"provider": "neo4j", "config": {"url": "neo4j://localhost:7687"}},
    "fallback": "embedded",
}


class ScriptedModel(ChatModelBase):
    """Stands in for a chat model: always answers the same."""

    def __init__(self) -> None:
        super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
        self.formatter = OpenAIChatFormatter()

    async def _call_api(self, *_: Any, **__: Any) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text="Noted.")], is_last=True)


def show(memory: Memory, question: str, user: str) -> None:
    found = memory.search(question, user_id=user)
    print(f"  {question} → {found['results'][0]['memory']}")


def calls_of_mem0() -> None:
    m = Memory()
    m.add("用户每周五购买拿铁", user_id="tom")
    show(m, "推荐咖啡", "tom")
    m.close()

    memory = Memory.from_config(CONFIG)
    added = memory.add("客户王总喜欢蓝山咖啡", user_id="VIP001")
    show(memory, "王总的饮品偏好", "VIP001")
    try:
        memory.update(memory_id="m1", data="王总最近改喝低因咖啡")
    except MemoryNotFoundError as error:
        print(f"  no such memory: {error}")
    memory.update(memory_id=added["results"][0]["id"], data="王总最近改喝低因咖啡")
    show(memory, "王总的饮品偏好", "VIP001")
    memory.close()


async def middleware_of_agentscope() -> None:
    async with AsyncMemory() as client:
        for text in ("I am allergic to peanuts.", "Which food am I allergic to?"):
            middleware = Mem0Middleware(user_id="alice", client=client, top_k=1)
            agent = Agent("agent", "You are kind.", ScriptedModel(), middlewares=[middleware])
            await agent.reply(UserMsg("Alice", text))
            notes = [message for message in agent.state.context if message.name == "memory"]
            for block in (block for note in notes for block in note.content):
                if isinstance(block, HintBlock):
                    print(f"  the agent was shown: {str(block.hint).splitlines()[-1]}")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # that nothing answers on localhost, and AgentScope's own
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COMMONPLACE_PATH"] = str(Path(folder) / "memory")
        print("mem0's own calls")
        calls_of_mem0()
        print("AgentScope's Mem0Middleware")
        asyncio.run(middleware_of_agentscope())
