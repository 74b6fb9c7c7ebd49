"""How many of our files does one call pass? What a reader has to open to follow it.

Every function of ours that is called on any thread counts its file once: for a search, a write
until it is applied, an item put into LangGraph's store, and a turn of an AgentScope agent whose
model is scripted. Everything is embedded and warm; what is only imported does not count. Needs the
extras `agentscope` and `langgraph`; `--verbose` names the files.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import commonplace
from commonplace import Memory, Scope

ROOTS = tuple(
    f"{path}/"
    for folder in (Path(commonplace.__file__).parents[1], Path(__file__).parents[1] / "adapters")
    for path in folder.glob("commonplace*")
)
ALICE = Scope(user_id="alice")
ROUNDS = 3  # before the one that counts
IDLE = 1.0  # seconds, for what a write leaves to be done in idle time


class Trail:
    """The files of ours whose functions are called while it is on, on all threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_on = False

    def start(self) -> None:
        """Follow this thread and every one that starts from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Collect files while the context lasts."""
        self.files.clear()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if self.is_on and event == "call" and frame.f_code.co_name != "<module>":
            name = frame.f_code.co_filename
            if name.startswith(ROOTS):
                self.files.add(short(name))


def short(name: str) -> str:
    """Cut what stands before the package."""
    root = next(one for one in ROOTS if name.startswith(one))
    return f"{Path(root).name}/{name[len(root) :]}"


def calls_of(memory: Memory) -> dict[str, Callable[[int], object]]:
    """Make the synchronous calls that are followed; each gets the number of its round."""
    from commonplace_langgraph import CommonplaceStore

    store = CommonplaceStore(memory)
    item = ("memories", "alice")

    def add(number: int) -> None:
        memory.add(f"Alice keeps {number} bees.", ALICE, wait=False)
        memory.flush()

    return {
        "search": lambda _: memory.search("What does Alice keep?", ALICE),
        "add": add,
        "LangGraph store put": lambda number: store.put(item, f"k{number}", {"content": "Tea."}),
    }


async def turns(trail: Trail, folder: str) -> None:
    """Let an agent with a scripted model answer some times, and follow its last turn."""
    from agentscope.agent import Agent
    from agentscope.credential import CredentialBase
    from agentscope.formatter import OpenAIChatFormatter
    from agentscope.message import TextBlock, UserMsg
    from agentscope.model import ChatModelBase, ChatResponse
    from agentscope.tool import Toolkit

    from commonplace_agentscope import CommonplaceMiddleware

    class Scripted(ChatModelBase):
        """Stands in for a chat model."""

        def __init__(self) -> None:
            super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
            self.formatter = OpenAIChatFormatter()

        async def _call_api(self, *_: Any, **__: Any) -> ChatResponse:
            return ChatResponse(content=[TextBlock(text="Noted.")], is_last=True)

    memory = CommonplaceMiddleware(user_id="alice", path=folder)
    agent = Agent(
        name="agent",
        system_prompt="You are a friendly assistant.",
        model=Scripted(),
        toolkit=Toolkit(tools=await memory.list_tools()),
        middlewares=[memory],
    )
    for number in range(ROUNDS):
        await agent.reply(UserMsg("Alice", f"I keep {number} bees."))
    await asyncio.sleep(IDLE)
    with trail.following():
        await agent.reply(UserMsg("Alice", "I keep hens too."))
    await memory.aclose()


def main() -> None:
    """Print the number of files of each call."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--verbose", action="store_true", help="name the files")
    is_verbose = parser.parse_args().verbose
    trail = Trail()
    trail.start()
    passed: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(f"{folder}/memory") as memory:
            memory.add(["Alice keeps bees.", "Alice rows."], ALICE)
            for name, call in calls_of(memory).items():
                for number in range(ROUNDS):
                    call(number)
                time.sleep(IDLE)
                with trail.following():
                    call(ROUNDS)
                passed[name] = sorted(trail.files)
        asyncio.run(turns(trail, f"{folder}/agent"))
        passed["AgentScope turn"] = sorted(trail.files)
    for name, files in passed.items():
        print(f"{len(files):3} {name}")
        if is_verbose:
            print("".join(f"      {one}\n" for one in files), end="")


if __name__ == "__main__":
    main()
