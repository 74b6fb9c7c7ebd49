"""A memory service of agentscope-runtime 1.0.x that outlives its process, on a commonplace memory.

It needs an environment with `agentscope-runtime<1.1`, `agentscope<2`, `a2a-sdk<1`, `mcp<2`,
`greenlet` and `tqdm`.

Prints:
    found: user: I am allergic to peanuts.
    listed: user: I am allergic to peanuts.
    listed: assistant: Noted.
    listed: user: I live in Hangzhou.
    after a session is deleted: user: I live in Hangzhou.
"""

import asyncio
import tempfile
from typing import Any

from agentscope_runtime.engine.schemas.agent_schemas import Message, TextContent

from commonplace import Policy
from commonplace_agentscope.runtime_service import MemoryService


def say(text: str, role: str = "user") -> Message:
    return Message(role=role, content=[TextContent(text=text)])


def show(title: str, messages: list[Any]) -> None:
    for message in messages:
        print(f"{title}: {message.role}: {message.content[0].text}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with MemoryService(folder) as service:
            allergy = [say("I am allergic to peanuts."), say("Noted.", "assistant")]
            await service.add_memory("alice", allergy, session_id="monday")
            await service.add_memory("alice", [say("I live in Hangzhou.")], session_id="tuesday")
        # A busy machine may load the embedder slowly, so the search has more than its 2 seconds.
        async with MemoryService(folder, policy=Policy(recall_timeout=60.0)) as service:
            question = [say("Which food am I allergic to?")]
            show("found", await service.search_memory("alice", question, {"top_k": 1}))
            show("listed", await service.list_memory("alice"))
            await service.delete_memory("alice", session_id="monday")
            show("after a session is deleted", await service.list_memory("alice"))


if __name__ == "__main__":
    asyncio.run(main())
