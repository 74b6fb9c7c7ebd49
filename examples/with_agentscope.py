"""An AgentScope agent that remembers: one process learns, in two languages, another recalls.

The chat model is scripted, so that no key is needed; agent, middleware and memory are real.

Prints:
    first process
      user: I am allergic to peanuts.
      agent: Noted.
      user: 我住在杭州，最喜欢龙井茶。
      agent: 好的。
    second process
      user: Which food am I allergic to?
      the agent was shown: - Alice: I am allergic to peanuts.
      user: 我最喜欢什么茶？
      the agent was shown: - Alice: 我住在杭州，最喜欢龙井茶。
"""

import asyncio
import subprocess
import sys
import tempfile
from typing import Any

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.event import HintBlockEvent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.tool import Toolkit

from commonplace_agentscope import CommonplaceMiddleware

TOLD = {"I am allergic to peanuts.": "Noted.", "我住在杭州，最喜欢龙井茶。": "好的。"}
ASKED = ["Which food am I allergic to?", "我最喜欢什么茶？"]


class ScriptedModel(ChatModelBase):
    """Stands in for a chat model: gives its answers in order."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
        self.formatter = OpenAIChatFormatter()
        self.answers = answers

    async def _call_api(self, *_: Any, **__: Any) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text=self.answers.pop(0))], is_last=True)


async def make_agent(memory: CommonplaceMiddleware, answers: list[str]) -> Agent:
    return Agent(
        name="agent",
        system_prompt="You are a friendly assistant.",
        model=ScriptedModel(answers),
        toolkit=Toolkit(tools=await memory.list_tools()),
        middlewares=[memory],
    )


async def learn(folder: str) -> None:
    memory = CommonplaceMiddleware(user_id="alice", path=folder)
    agent = await make_agent(memory, list(TOLD.values()))
    for text in TOLD:
        answer = await agent.reply(UserMsg("Alice", text))
        print(f"  user: {text}\n  agent: {answer.get_text_content()}")
    await memory.aclose()


async def ask(folder: str) -> None:
    memory = CommonplaceMiddleware(user_id="alice", path=folder, top_k=1)
    for text in ASKED:
        agent = await make_agent(memory, ["I remember."])
        print(f"  user: {text}")
        async for event in agent.reply_stream(UserMsg("Alice", text)):
            if isinstance(event, HintBlockEvent) and isinstance(event.hint, str):
                for line in event.hint.splitlines():
                    if line.startswith("- "):
                        print(f"  the agent was shown: {line}")
    await memory.aclose()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for title, part in (("first process", "learn"), ("second process", "ask")):
            print(title, flush=True)
            command = [sys.executable, "-X", "utf8", __file__, part, folder]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        asyncio.run({"learn": learn, "ask": ask}[sys.argv[1]](sys.argv[2]))
