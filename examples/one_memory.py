"""One memory under four frameworks: each in a process of its own, over one folder or two servers.

    python examples/one_memory.py
    COMMONPLACE_GRAPH=neo4j://… COMMONPLACE_VECTORS=qdrant://… python examples/one_memory.py

The chat models are scripted, so that no key is needed; everything else is real.

Prints:
    AgentScope learns
      Alice: My sister Mei lives in Leeds.
      Bob: My sister Ann lives in Bath.
    LangGraph recalls
      Alice: Where does my sister live?
      the model was shown: [since ...] Alice's sister Mei lives in Leeds.
      Bob: Where does my sister live?
      the model was shown: [since ...] Bob's sister Ann lives in Bath.
    Strands corrects
      Alice's sister Mei lives in Leeds. -> Alice's sister Mei lives in Lyon.
    mem0 reads the history
      ADD: Alice's sister Mei lives in Leeds.
      UPDATE: Alice's sister Mei lives in Lyon.
    Alice is forgotten
      everything of hers is gone: True
      Alice: nothing
      Bob: Bob's sister Ann lives in Bath.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from commonplace import Memory, Policy, Scope

ALICE = Scope(user_id="alice")
TOLD = {"Alice": "My sister Mei lives in Leeds.", "Bob": "My sister Ann lives in Bath."}
LEARNED = {"Alice": "Alice's sister Mei lives in Leeds.", "Bob": "Bob's sister Ann lives in Bath."}
ASKED = "Where does my sister live?"
CORRECTED = "Alice's sister Mei lives in Lyon."


async def agentscope() -> None:
    from agentscope.agent import Agent
    from agentscope.message import UserMsg

    from commonplace_agentscope import CommonplaceMiddleware
    from commonplace_agentscope.testing import ScriptedModel

    for user, text in TOLD.items():
        print(f"  {user}: {text}")
        extracting = ScriptedModel(json.dumps({"facts": [{"text": LEARNED[user]}]}))
        memory = CommonplaceMiddleware(user_id=user.lower(), chat_model=extracting)
        agent = Agent("agent", "You are kind.", ScriptedModel("Noted."), middlewares=[memory])
        await agent.reply(UserMsg(user, text))
        await memory.aclose(timeout=60)  # the facts are there then


def langgraph(memory: Memory) -> None:
    from langchain.agents import create_agent

    from commonplace_langgraph import MemoryMiddleware
    from commonplace_langgraph.testing import ScriptedModel

    for user in TOLD:
        model = ScriptedModel()
        policy = Policy(kinds=("fact",), top_k=1, recall_timeout=60)
        recall = MemoryMiddleware(memory, user_id=user.lower(), policy=policy)
        agent: Any = create_agent(model, middleware=[recall])
        agent.invoke({"messages": ASKED})
        print(f"  {user}: {ASKED}\n  the model was shown: {', '.join(model.remembered)}")


def strands(memory: Memory) -> None:
    from strands import Agent

    from commonplace_strands import memory_tools
    from commonplace_strands.testing import ScriptedModel

    [learned] = memory.list(ALICE, kinds=["fact"]).records
    tools = memory_tools(memory, policy=Policy(tools=("update_memory",)))
    agent = Agent(model=ScriptedModel(), tools=[*tools])
    agent.tool.update_memory(memory_id=learned.id, text=CORRECTED, user_id="alice")
    print(f"  {learned.text} -> {memory.get_many([learned.id], ALICE)[0].text}")


def mem0() -> None:
    from commonplace_mem0 import Memory as Mem0Memory

    with Mem0Memory() as m:
        [found] = m.search("In which city is Mei?", user_id="alice", limit=1)["results"]
        for change in m.history(found["id"]):
            print(f"  {change['event']}: {change['new_memory']}")


def forget(memory: Memory) -> None:
    print(f"  everything of hers is gone: {memory.forget(ALICE).complete}")
    for user in TOLD:
        left = memory.list(Scope(user_id=user.lower()), kinds=["fact"]).records
        print(f"  {user}: {', '.join(one.text for one in left) or 'nothing'}")


STEPS = {
    "agentscope": "AgentScope learns",
    "langgraph": "LangGraph recalls",
    "strands": "Strands corrects",
    "mem0": "mem0 reads the history",
    "forget": "Alice is forgotten",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for step, title in STEPS.items():
            print(title, flush=True)
            command = [sys.executable, "-X", "utf8", __file__, step]
            subprocess.run(command, env={"COMMONPLACE_PATH": folder, **os.environ}, check=True)


def run(step: str) -> None:
    if step == "agentscope":
        asyncio.run(agentscope())
    elif step == "mem0":
        mem0()
    else:
        with Memory.from_env() as memory:
            memory.flush()  # what another process accepted and had no time to finish
            {"langgraph": langgraph, "strands": strands, "forget": forget}[step](memory)


if __name__ == "__main__":
    run(sys.argv[1]) if sys.argv[1:] else main()
