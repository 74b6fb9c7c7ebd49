"""What do the memories cost that AgentScope and Strands bring themselves, beside ours?

    python benchmarks/frameworks.py [--small]

- AgentScope: a turn of an agent with its `Mem0Middleware` on mem0's local engine, with ours, and
  with none. Both memories hold the same sentences of the user with the same vectors and search
  once. Ours stores both messages; mem0 stores the one fact that its scripted model finds.
- Strands: its `FileMemoryStore` and `TestMemoryStore`, which find words, beside our store; and its
  `FileSessionManager` beside our sessions.

All scripted models answer at once. The calls are made in turns. AgentScope's
`AgenticMemoryMiddleware` is not here: whatever it finds or writes is a call of a chat model.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from agent_drivers import Script, agentscope_model
from peer import Mem0
from peers import OURS, in_turns, laid_out
from rich.console import Console
from rich.table import Table
from sentences import Sentences, Vectors
from tables import TablesFile, save

from commonplace import Fact, Memory, Scope

ALICE = Scope(user_id="alice")
SENTENCES, VECTORS = Sentences(), Vectors()
TURNS, CALLS, MESSAGES = 20, 50, 200
Run = Callable[[Awaitable[Any]], Any]


class OneFact:
    """Chat model of mem0 that finds one new fact in whatever it is sent."""

    def __init__(self) -> None:
        self._facts = iter(texts(10_000, TURNS))

    def generate_response(self, *_: object, **__: object) -> str:
        """Answer in mem0's format."""
        return json.dumps({"memory": [{"id": "0", "text": next(self._facts)}]})


def texts(first: int, count: int) -> list[str]:
    """Make up sentences, with vectors that cost nothing later."""
    made = [SENTENCES.sentence(number) for number in range(first, first + count)]
    VECTORS.prepare(made)
    return made


# -- AgentScope ----------------------------------------------------------------------------------


def agentscope(run: Run, folder: Path, size: int) -> Table:
    """Compare turns of agents whose memories hold that many sentences of their user."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
    # mem0ai alone does not bring it; where it is, mem0 loads a model by the network.
    sys.modules["fastembed"] = None  # type: ignore[assignment]
    from agentscope.agent import Agent
    from agentscope.message import UserMsg
    from agentscope.middleware import Mem0Middleware
    from agentscope.tool import Toolkit
    from mem0 import AsyncMemory

    from commonplace_agentscope import CommonplaceMiddleware

    theirs = AsyncMemory.from_config(Mem0.config(str(folder)))
    theirs.embedding_model, theirs.llm = _ForMem0(), OneFact()
    with Memory.open(str(folder / "ours"), embedder=VECTORS) as memory:
        told = texts(0, size)
        for at in range(0, size, 50):
            memory.add([Fact(text=text) for text in told[at : at + 50]], ALICE)
        for text in told:
            run(theirs.add(text, user_id="alice", infer=False))
        ours = CommonplaceMiddleware(user_id="alice", client=memory)
        middlewares = {
            OURS: [ours],
            "Mem0Middleware": [Mem0Middleware(user_id="alice", client=theirs)],
            "no memory": [],
        }
        asked = [SENTENCES.question(number) for number in range(TURNS)]
        VECTORS.prepare(asked)

        def turn(middlewares: list[Any], number: int) -> None:
            async def reply() -> None:
                script = Script(answer=f"I see, {number}.")
                model = agentscope_model()(script)
                agent = Agent(
                    "helper", "Be friendly.", model, toolkit=Toolkit(), middlewares=middlewares
                )
                await agent.reply(UserMsg("alice", asked[number]))

            run(reply())

        figures = in_turns(middlewares, {"first turn of a conversation": (TURNS, turn)})
        run(ours.aclose())
        held = run(theirs.get_all(filters={"user_id": "alice"}, top_k=2 * size))["results"]
        assert len(held) == size + TURNS, "mem0 did not store what its model found"
        theirs.close()
    return laid_out(figures, [*middlewares], f"AgentScope: a turn of a user with {size:,} memories")


class _ForMem0:
    """The vectors of the sentences, as mem0 asks for them."""

    def embed(self, text: str, *_: object) -> list[float]:
        return VECTORS([text])[0]

    def embed_batch(self, texts: list[str], *_: object) -> list[list[float]]:
        return VECTORS(texts)


# -- Strands -------------------------------------------------------------------------------------


def strands_stores(run: Run, folder: Path, size: int) -> Table:
    """Compare memory stores that hold that many sentences."""
    from strands.storage import LocalFileStorage
    from strands.vended_memory_stores.file_memory_store import FileMemoryStore
    from strands.vended_memory_stores.test_memory_store import TestMemoryStore

    from commonplace_strands import CommonplaceMemoryStore

    with Memory.open(str(folder / "ours"), embedder=VECTORS) as memory:
        stores: dict[str, Any] = {
            OURS: CommonplaceMemoryStore(memory, user_id="alice"),
            "FileMemoryStore": FileMemoryStore(
                name="theirs", storage=LocalFileStorage(str(folder / "files"))
            ),
            "TestMemoryStore": TestMemoryStore(name="theirs", path=str(folder / "theirs.json")),
        }
        for text in texts(0, size):
            for store in stores.values():
                run(store.add(text))
        more = texts(size, CALLS)
        asked = [SENTENCES.question(number) for number in range(CALLS)]
        VECTORS.prepare(asked)
        figures = in_turns(
            stores,
            {
                "add": (CALLS, lambda store, n: run(store.add(more[n]))),
                "search": (CALLS, lambda store, n: run(store.search(asked[n]))),
            },
        )
    return laid_out(figures, [*stores], f"Strands' memory stores: {size:,} memories")


def strands_sessions(folder: Path, size: int) -> Table:
    """Compare session repositories, in a conversation of that many messages."""
    from strands.session.file_session_manager import FileSessionManager
    from strands.types.content import Message
    from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

    from commonplace_strands import CommonplaceSessionRepository

    def message(number: int) -> SessionMessage:
        said: Message = {"role": "user", "content": [{"text": SENTENCES.sentence(number)}]}
        return SessionMessage.from_message(said, number)

    with Memory.open(str(folder / "ours"), embedder=VECTORS) as memory:
        sides: dict[str, Any] = {
            OURS: CommonplaceSessionRepository(memory, user_id="alice"),
            "FileSessionManager": FileSessionManager("s0", storage_dir=str(folder / "sessions")),
        }
        agent = SessionAgent(agent_id="a", state={}, conversation_manager_state={})
        for side in sides.values():
            if side.read_session("s") is None:
                side.create_session(Session(session_id="s", session_type=SessionType.AGENT))
            side.create_agent("s", agent)
        figures = in_turns(
            sides,
            {
                "create_message": (size, lambda side, n: side.create_message("s", "a", message(n))),
                "read_message": (size, lambda side, n: side.read_message("s", "a", n)),
                "list_messages, all": (20, lambda side, _: side.list_messages("s", "a")),
                "update_agent": (size, lambda side, _: side.update_agent("s", agent)),
                "read_agent": (size, lambda side, _: side.read_agent("s", "a")),
            },
        )
    return laid_out(figures, [*sides], f"Strands' sessions: a conversation of {size:,} messages")


def main(
    small: Annotated[bool, typer.Option("--small", help="A tenth of the memories.")] = False,
    file: TablesFile = None,
) -> None:
    """Print what the same calls cost."""
    logging.disable(logging.WARNING)  # mem0 and AgentScope tell of each turn
    share = 10 if small else 1
    loop = asyncio.new_event_loop()
    tables = []
    for make in (
        lambda folder: agentscope(loop.run_until_complete, folder, 2_000 // share),
        lambda folder: strands_stores(loop.run_until_complete, folder, 1_000 // share),
        lambda folder: strands_sessions(folder, MESSAGES),
    ):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            tables.append(make(Path(folder)))
            Console(width=110).print(tables[-1])
    loop.close()
    save(file, tables)


if __name__ == "__main__":
    typer.run(main)
