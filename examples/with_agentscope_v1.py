"""An agent of AgentScope 1.x that remembers: one process learns, another recalls.

The chat model is scripted, so that no key is needed; agent and memory are real. It needs an
environment with `agentscope<2`, `mcp<2`, `greenlet` and `tqdm`.

Prints:
    first process
      user: I am allergic to peanuts.
      agent: Noted.
      user: Remember that my sister Emma lives in Lyon.
      agent: I will.
    second process
      user: Which food am I allergic to?
      the agent was shown: - [..., today] Alice: I am allergic to peanuts.
      user: Where does my sister live?
      the agent was shown: - [since ...] Alice's sister Emma lives in Lyon.
"""

import asyncio
import subprocess
import sys
import tempfile
from typing import Any

from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolUseBlock
from agentscope.model import ChatModelBase, ChatResponse

from commonplace import Policy
from commonplace_agentscope.v1 import LongTermMemory

FACT = {"thinking": "", "content": ["Alice's sister Emma lives in Lyon."]}
TOLD: dict[str, list[Any]] = {
    "I am allergic to peanuts.": [TextBlock(type="text", text="Noted.")],
    "Remember that my sister Emma lives in Lyon.": [
        ToolUseBlock(type="tool_use", id="1", name="record_to_memory", input=FACT),
        TextBlock(type="text", text="I will."),
    ],
}
PATIENCE = 60.0  # seconds: a busy machine may load the embedder slowly
ASKED = ["Which food am I allergic to?", "Where does my sister live?"]


class ScriptedModel(ChatModelBase):
    """Stands in for a chat model: gives its answers in order, and keeps what it was shown."""

    def __init__(self, answers: list[Any]) -> None:
        super().__init__("scripted", stream=False)
        self.answers = answers
        self.shown: list[str] = []

    async def __call__(self, messages: list[dict[str, Any]], **_: Any) -> ChatResponse:
        for message in messages:
            if message["role"] == "user":
                self.shown += [part["text"] for part in message["content"]]
        return ChatResponse(content=[self.answers.pop(0)])


def make_agent(memory: LongTermMemory, answers: list[Any]) -> ReActAgent:
    agent = ReActAgent(
        name="agent",
        sys_prompt="You are a friendly assistant.",
        model=ScriptedModel(answers),
        formatter=OpenAIChatFormatter(),
        long_term_memory=memory,
        long_term_memory_mode="both",
    )
    agent.set_console_output_enabled(False)
    return agent


async def learn(folder: str) -> None:
    memory = LongTermMemory(folder, user_id="alice", policy=Policy(recall_timeout=PATIENCE))
    agent = make_agent(memory, [answer for answers in TOLD.values() for answer in answers])
    for text in TOLD:
        answer = await agent(Msg("Alice", text, "user"))
        print(f"  user: {text}\n  agent: {answer.get_text_content()}")
    await memory.aclose()


async def ask(folder: str) -> None:
    policy = Policy(top_k=1, recall_timeout=PATIENCE)
    memory = LongTermMemory(folder, user_id="alice", policy=policy)
    for text in ASKED:
        agent = make_agent(memory, [TextBlock(type="text", text="I remember.")])
        print(f"  user: {text}")
        await agent(Msg("Alice", text, "user"))
        for line in "\n".join(agent.model.shown).splitlines():
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
