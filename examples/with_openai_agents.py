"""Two sessions of an agent of the OpenAI Agents SDK for two users: the second recalls the first.

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
      alice: 0 items, 0 memories
      bob: 2 items, 4 memories
"""

import asyncio
import tempfile

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message

from commonplace import Memory, Policy, Scope
from commonplace_openai_agents import CommonplaceSession, MemoryHooks

TOLD = {"alice": "My sister Mei lives in Hangzhou.", "bob": "My sister Ann lives in Leeds."}


async def take_turns(memory: Memory, day: str, texts: dict[str, str]) -> None:
    hooks = MemoryHooks(memory, policy=Policy(top_k=1))
    model = ScriptedModel(
        [[assistant_message("I see.", item_id=f"{day}-{user}")] for user in texts]
    )
    agent: Agent[CommonplaceSession] = Agent(
        name="helper", model=model, instructions=hooks.instructions("Be brief.")
    )
    for user, text in texts.items():
        print(f"  {user}: {text}")
        session = CommonplaceSession(day, memory, user_id=user)
        await Runner.run(
            agent, text, session=session, context=session, hooks=hooks,
            run_config=RunConfig(tracing_disabled=True),
        )  # fmt: skip
        shown = model.last_call.system_instructions if model.last_call else None
        for line in str(shown).splitlines():
            if line.startswith("- ["):
                print(f"  the agent was shown: {line[2:]}")


async def forget(memory: Memory, user: str) -> None:
    memory.forget(Scope(user_id=user))
    for one in TOLD:
        items = await CommonplaceSession("monday", memory, user_id=one).get_items()
        records = memory.list(Scope(user_id=one)).records
        print(f"  {one}: {len(items)} items, {len(records)} memories")


with tempfile.TemporaryDirectory() as folder:
    print("monday")
    with Memory.open(folder) as memory:
        asyncio.run(take_turns(memory, "monday", TOLD))
    print("tuesday, after a restart")
    with Memory.open(folder) as memory:
        asked = dict.fromkeys(TOLD, "Where does my sister live?")
        asyncio.run(take_turns(memory, "tuesday", asked))
        print("alice is forgotten")
        asyncio.run(forget(memory, "alice"))
