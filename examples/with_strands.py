"""One Strands agent remembers for several users: one process learns, another recalls.

The chat model is scripted, so that no key is needed; agent, plugin and memory are real.

Prints:
    first process
      alice: My sister Mei lives in Hangzhou.
      bob: My sister Ann lives in Leeds.
    second process
      alice: Where does my sister live?
      the agent was shown: [..., today] user: My sister Mei lives in Hangzhou.
      bob: Where does my sister live?
      the agent was shown: [..., today] user: My sister Ann lives in Leeds.
      carol: Where does my sister live?
      the agent was shown nothing
"""

import subprocess
import sys
import tempfile

from strands import Agent

from commonplace import Memory, Policy
from commonplace_strands import MemoryPlugin
from commonplace_strands.testing import ScriptedModel

TOLD = {"alice": "My sister Mei lives in Hangzhou.", "bob": "My sister Ann lives in Leeds."}
ASKED = "Where does my sister live?"


def learn(folder: str) -> None:
    with Memory.open(folder) as memory:
        plugin = MemoryPlugin(memory)
        agent = Agent(model=ScriptedModel(), plugins=[plugin], callback_handler=None)
        for user, text in TOLD.items():
            print(f"  {user}: {text}")
            agent(text, invocation_state={"user_id": user})


def ask(folder: str) -> None:
    with Memory.open(folder) as memory:
        model = ScriptedModel()
        plugin = MemoryPlugin(memory, policy=Policy(top_k=1))
        agent = Agent(model=model, plugins=[plugin], callback_handler=None)
        for user in ("alice", "bob", "carol"):
            print(f"  {user}: {ASKED}")
            agent(ASKED, invocation_state={"user_id": user})
            for line in model.remembered:
                print(f"  the agent was shown: {line}")
            if not model.remembered:
                print("  the agent was shown nothing")


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
        {"learn": learn, "ask": ask}[sys.argv[1]](sys.argv[2])
