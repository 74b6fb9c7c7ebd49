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
      the agent was shown: - [..., today] Alice: I am allergic to peanuts.
      user: 我最喜欢什么茶？
      the agent was shown: - [...,今天] Alice: 我住在杭州，最喜欢龙井茶。
"""

import asyncio
import subprocess
import sys
import tempfile

from agentscope.agent import Agent
from agentscope.event import HintBlockEvent
from agentscope.message import UserMsg
from agentscope.tool import Toolkit

from commonplace import Policy
from commonplace_agentscope import CommonplaceMiddleware
from commonplace_agentscope.testing import ScriptedModel

TOLD = {"I am allergic to peanuts.": "Noted.", "我住在杭州，最喜欢龙井茶。": "好的。"}
ASKED = ["Which food am I allergic to?", "我最喜欢什么茶？"]


async def make_agent(memory: CommonplaceMiddleware, answers: list[str]) -> Agent:
    return Agent(
        name="agent",
        system_prompt="You are a friendly assistant.",
        model=ScriptedModel(*answers),
        toolkit=Toolkit(tools=await memory.list_tools()),
        middlewares=[memory],
    )


async def learn(folder: str) -> None:
    memory = CommonplaceMiddleware(folder, user_id="alice")
    agent = await make_agent(memory, list(TOLD.values()))
    for text in TOLD:
        answer = await agent.reply(UserMsg("Alice", text))
        print(f"  user: {text}\n  agent: {answer.get_text_content()}")
    await memory.aclose()


async def ask(folder: str) -> None:
    memory = CommonplaceMiddleware(folder, user_id="alice", policy=Policy(top_k=1))
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
