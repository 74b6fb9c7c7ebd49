"""Two sessions of an ADK agent for two users: the second recalls what the first was told.

The chat model is scripted, so that no key is needed; runner, agent, sessions and memory are real.

Prints:
    monday
      alice: My sister Mei lives in Hangzhou.
      bob: My sister Ann lives in Leeds.
    tuesday, after a restart
      alice: Where does my sister live?
      the agent was shown: [..., today] user: My sister Mei lives in Hangzhou.
      bob: Where does my sister live?
      the agent was shown: [..., today] user: My sister Ann lives in Leeds.
    alice is forgotten
      alice: 0 sessions, 0 memories
      bob: 2 sessions, 4 memories
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai.types import Content, Part

from commonplace import Memory, Policy, Scope
from commonplace_adk import CommonplaceMemoryService, CommonplaceSessionService, PreloadNoteTool

TOLD = {"alice": "My sister Mei lives in Hangzhou.", "bob": "My sister Ann lives in Leeds."}


class Scripted(BaseLlm):
    """Stands in for your model; keeps what it was shown."""

    model: str = "scripted"
    shown: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        self.shown = "\n".join(part.text for part in parts if part.text)
        yield LlmResponse(content=Content(role="model", parts=[Part(text="I see.")]))


async def save(callback_context: CallbackContext, llm_request: LlmRequest | None = None) -> None:
    await callback_context.add_session_to_memory()


async def take_turns(memory: Memory, texts: dict[str, str]) -> None:
    model = Scripted()
    service = CommonplaceMemoryService(memory, policy=Policy(top_k=1))
    sessions = CommonplaceSessionService(memory)
    note = PreloadNoteTool(service)
    agent = LlmAgent(
        name="helper", model=model, tools=[note],
        before_model_callback=save,  # what the user said
        after_agent_callback=save,  # the answer
    )  # fmt: skip
    runner = Runner(agent=agent, app_name="app", session_service=sessions, memory_service=service)
    for user, text in texts.items():
        print(f"  {user}: {text}")
        session = await sessions.create_session(app_name="app", user_id=user)
        message = Content(role="user", parts=[Part(text=text)])
        async for _ in runner.run_async(user_id=user, session_id=session.id, new_message=message):
            pass
        for line in model.shown.splitlines():
            if line.startswith("- "):
                print(f"  the agent was shown: {line[2:]}")


async def forget(memory: Memory, user: str) -> None:
    memory.forget(Scope(user_id=user))
    for one in TOLD:
        listed = await CommonplaceSessionService(memory).list_sessions(app_name="app", user_id=one)
        records = memory.list(Scope(user_id=one)).records
        print(f"  {one}: {len(listed.sessions)} sessions, {len(records)} memories")


with tempfile.TemporaryDirectory() as folder:
    print("monday")
    with Memory.open(folder) as memory:
        asyncio.run(take_turns(memory, TOLD))
    print("tuesday, after a restart")
    with Memory.open(folder) as memory:
        asyncio.run(take_turns(memory, dict.fromkeys(TOLD, "Where does my sister live?")))
        print("alice is forgotten")
        asyncio.run(forget(memory, "alice"))
