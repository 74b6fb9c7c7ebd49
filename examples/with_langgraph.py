"""A LangGraph agent that remembers: one process learns, in two languages, another recalls.

One memory is all there is: what the middleware recalls, the store that a node of the graph may ask,
and the checkpoints of the threads. Each question is asked in a thread of its own, so that only the
memory can know; at last the first thread goes on where it was. The chat model is scripted, so that
no key is needed; everything else is real.

Prints:
    first process
      alice: I am allergic to peanuts.
      agent: Noted.
      alice: 我住在杭州，最喜欢龙井茶。
      agent: 好的。
    second process
      alice: Which food am I allergic to?
      the model was shown: [..., today] user: I am allergic to peanuts.
      alice: 我最喜欢什么茶？
      the model was shown: [...,今天] user: 我住在杭州，最喜欢龙井茶。
      bob: Which food am I allergic to?
      the model was shown: nothing
      the store, asked for alice: Alice's cat is called Miso.
      the first thread goes on after: I am allergic to peanuts. | Noted.
      its owner is forgotten, and it is gone: True
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel

from commonplace import Memory, Policy, Scope
from commonplace_langgraph import CommonplaceSaver, CommonplaceStore, MemoryMiddleware
from commonplace_langgraph.testing import ScriptedModel

TOLD = {"I am allergic to peanuts.": "Noted.", "我住在杭州，最喜欢龙井茶。": "好的。"}
ASKED = [
    ("alice", "Which food am I allergic to?"),
    ("alice", "我最喜欢什么茶？"),
    ("bob", "Which food am I allergic to?"),
]


@dataclass
class Asker:
    """Who asks; an application knows it from its login."""

    user_id: str


def make_agent(memory: Memory, model: BaseChatModel) -> Any:
    return create_agent(
        model,
        middleware=[MemoryMiddleware(memory, policy=Policy(top_k=1))],
        context_schema=Asker,
        store=CommonplaceStore(memory),
        checkpointer=CommonplaceSaver(memory, owner=lambda _, run: Scope(user_id=run["user_id"])),
    )


def thread_of(user: str, thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "user_id": user}}


def turn(agent: Any, user: str, text: str, thread: str) -> str:
    out = agent.invoke(
        {"messages": [("user", text)]},
        thread_of(user, thread),
        context=Asker(user),
    )
    return str(out["messages"][-1].text)


def learn(memory: Memory) -> None:
    agent = make_agent(memory, ScriptedModel(*TOLD.values()))
    for number, text in enumerate(TOLD):
        print(f"  alice: {text}\n  agent: {turn(agent, 'alice', text, f'learn {number}')}")


def ask(memory: Memory) -> None:
    model = ScriptedModel()
    agent = make_agent(memory, model)
    for number, (user, text) in enumerate(ASKED):
        turn(agent, user, text, f"ask {number}")
        print(
            f"  {user}: {text}\n  the model was shown: {'; '.join(model.remembered) or 'nothing'}"
        )
    agent.store.put(("memories", "alice"), "cat", {"memory": "Alice's cat is called Miso."})
    [best] = agent.store.search(("memories", "alice"), query="Which pets are there?")
    print(f"  the store, asked for alice: {best.value['memory']}")
    first = thread_of("alice", "learn 0")
    held = agent.get_state(first).values["messages"]
    print(f"  the first thread goes on after: {' | '.join(message.text for message in held)}")
    memory.forget(Scope(user_id="alice"))
    print(f"  its owner is forgotten, and it is gone: {not agent.get_state(first).values}")


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
        with Memory.open(sys.argv[2]) as opened:
            {"learn": learn, "ask": ask}[sys.argv[1]](opened)
