"""Steady load of one adapter, and the ledger of what it must have left.

As a program, `soak_load.py FOLDER ADAPTER RATE USERS STEPS` opens a folder and makes RATE steps a
second for USERS users in turn, each of whom is forgotten after STEPS steps and followed by a new
one, so that what is stored stays as much. Each text has a token of its own, which begins with the
canary of its user. It obeys words on its input, one a line: `begin`, `sample`, `end` and `close`.
"""

import asyncio
import json
import os
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[1]))
from engines import find as find_place

from commonplace import Fact, Memory, Relation, Scope
from commonplace.agents import MemoryCounters
from commonplace.settings import Location

ADAPTERS = ("agentscope", "langgraph", "strands", "mem0")
STEPS = ("turn", "add", "search", "turn", "update", "add", "search", "turn", "delete", "search")
CANARY = re.compile(rb"xqcanary[a-z]+[0-9]+qx")
TOKEN = re.compile(r"(xqcanary[a-z]+[0-9]+qx)n[0-9]+")
TOPICS = (
    "takes the early train to work",
    "has a sister who paints houses",
    "drinks green tea in the afternoon",
    "is learning to play the cello",
    "keeps the spare key at the bakery",
    "wants a quiet room near the lift",
    "grows tomatoes on the balcony",
)


@dataclass(slots=True)
class User:
    """One user, and what must be there of him.

    Attributes:
        canary: his id, which begins every token of his.
        tokens: of the records that he must have. maybe: of those that a failed call may have left.
        said, maybe_said: likewise, of the messages of his session.
        items: token and id of the records that may be changed.
        steps: that he has made.
    """

    canary: str
    tokens: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    said: set[str] = field(default_factory=set)
    maybe_said: set[str] = field(default_factory=set)
    items: list[tuple[str, str]] = field(default_factory=list)
    steps: int = 0
    _number: int = 0

    @property
    def scope(self) -> Scope:
        return Scope(user_id=self.canary)

    def text(self) -> tuple[str, str]:
        """Make a new token, and a text with it."""
        self._number += 1
        token = f"{self.canary}n{self._number}"
        return token, f"{token} {TOPICS[self._number % len(TOPICS)]}"


class ForeignRowError(Exception):
    """A search showed what is another user's."""


class Adapter(Protocol):
    """The calls of one framework; every one raises if it has failed."""

    async def turn(self, user: User, text: str, answer: str) -> None:
        """Play a turn of an agent, whose model gives this answer."""

    async def add(self, user: User, text: str, token: str) -> str:
        """Add a record; return its id."""

    async def search(self, user: User, query: str) -> str:
        """Search; return all texts that were found."""

    async def update(self, user: User, record: str, text: str) -> None:
        """Give a record another text."""

    async def delete(self, user: User, record: str) -> None:
        """Delete a record."""

    async def forget(self, user: User) -> None:
        """Forget a user."""

    async def session(self, user: User) -> str | None:
        """Read all texts of a session; None where the framework has none."""


class CoreCalls:
    """The calls of frameworks that have none of their own."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._added = 0

    async def add(self, user: User, text: str, token: str) -> str:
        self._added += 1
        said = Relation(subject=user.canary, predicate=f"says {user.canary}", object=token)
        fact = Fact(text=text, key=token, metadata={user.canary: token}, relations=(said,))
        await self._memory.aadd(fact, user.scope, wait=self._added % 2 == 0)
        return user.scope.record_id("fact", token)

    async def search(self, user: User, query: str) -> str:
        return "\n".join(one.record.text for one in await self._memory.asearch(query, user.scope))

    async def update(self, user: User, record: str, text: str) -> None:
        await self._memory.aupdate(record, text, user.scope)

    async def delete(self, user: User, record: str) -> None:
        await self._memory.adelete(record, user.scope)

    async def forget(self, user: User) -> None:
        receipt = await self._memory.aforget(user.scope)
        if not receipt.complete:
            message = f"something is left: {receipt.left}"
            raise RuntimeError(message)

    async def session(self, user: User) -> str | None:
        return None


def _failures(counters: MemoryCounters) -> int:
    return counters.failed + counters.waiting + counters.lost


class AgentScopeCalls(CoreCalls):
    """An agent for each user, with one middleware for all."""

    def __init__(self, memory: Memory) -> None:
        from commonplace_agentscope import CommonplaceMiddleware

        super().__init__(memory)
        self._agents: dict[str, Any] = {}
        self._middleware = CommonplaceMiddleware(
            user_id=lambda agent: agent.name.partition(" ")[2], client=memory
        )

    async def turn(self, user: User, text: str, answer: str) -> None:
        from agentscope.message import UserMsg

        before = _failures(self._middleware.counters())
        agent = self._agents.get(user.canary) or await self._begin(user)
        agent.model._answers[:] = [answer]
        await agent.reply(UserMsg(user.canary, text))
        counters = self._middleware.counters()
        if _failures(counters) > before:
            raise counters.last_error or RuntimeError("a call of the middleware failed")

    async def _begin(self, user: User) -> Any:
        from agentscope.agent import Agent
        from agentscope.tool import Toolkit

        from commonplace_agentscope.testing import ScriptedModel

        made = self._agents[user.canary] = Agent(
            name=f"helper {user.canary}",
            system_prompt="You are a friendly assistant.",
            model=ScriptedModel(),
            toolkit=Toolkit(tools=await self._middleware.list_tools()),
            middlewares=[self._middleware],
        )
        return made

    async def forget(self, user: User) -> None:
        self._agents.pop(user.canary, None)
        await super().forget(user)


class LangGraphCalls(CoreCalls):
    """One agent for all, with a store and a checkpointer; a thread for each user."""

    def __init__(self, memory: Memory) -> None:
        from langchain.agents import create_agent

        from commonplace_langgraph import CommonplaceSaver, CommonplaceStore, MemoryMiddleware
        from commonplace_langgraph.testing import ScriptedModel

        super().__init__(memory)
        self._model = ScriptedModel()
        self._store = CommonplaceStore(memory)
        self._middleware = MemoryMiddleware(memory)
        self._agent: Any = create_agent(
            self._model,
            middleware=[self._middleware],
            store=self._store,
            checkpointer=CommonplaceSaver(memory, owner=lambda _, run: run["user_id"]),
        )

    async def turn(self, user: User, text: str, answer: str) -> None:
        before = _failures(self._middleware.counters())
        self._model.answers[:] = [answer]
        await self._agent.ainvoke({"messages": [("user", text)]}, self._run_of(user))
        counters = self._middleware.counters()
        if _failures(counters) > before:
            raise counters.last_error or RuntimeError("a call of the middleware failed")

    async def add(self, user: User, text: str, token: str) -> str:
        await self.update(user, token, text)
        return token

    async def search(self, user: User, query: str) -> str:
        found = await self._store.asearch(("memories", user.canary), query=query, limit=10)
        return "\n".join(str(one.value) for one in found)

    async def update(self, user: User, record: str, text: str) -> None:
        value = {"content": text, "tag": user.canary}
        await self._store.aput(self._namespace(user), record, value)

    async def delete(self, user: User, record: str) -> None:
        await self._store.adelete(self._namespace(user), record)

    async def session(self, user: User) -> str | None:
        state = await self._agent.aget_state(self._run_of(user))
        return "\n".join(str(one.text) for one in state.values.get("messages", ()))

    @staticmethod
    def _namespace(user: User) -> tuple[str, ...]:
        return "memories", user.canary, f"folder {user.canary}"

    @staticmethod
    def _run_of(user: User) -> Any:
        thread = f"thread {user.canary}"
        return {"configurable": {"thread_id": thread, "user_id": user.canary}}


class StrandsCalls(CoreCalls):
    """An agent for each user, with one plugin for all; a store and a session for each user."""

    def __init__(self, memory: Memory) -> None:
        from commonplace_strands import MemoryPlugin

        super().__init__(memory)
        self._plugin = MemoryPlugin(memory)
        self._agents: dict[str, Any] = {}

    async def turn(self, user: User, text: str, answer: str) -> None:
        before = _failures(self._plugin.counters())
        agent = self._agents.get(user.canary) or self._begin(user)
        agent.model._answers[:] = [answer]
        await agent.invoke_async(text, invocation_state={"user_id": user.canary})
        counters = self._plugin.counters()
        if _failures(counters) > before:
            raise counters.last_error or RuntimeError("a call of the plugin failed")

    def _begin(self, user: User) -> Any:
        from strands import Agent
        from strands.session.repository_session_manager import RepositorySessionManager

        from commonplace_strands import CommonplaceSessionRepository
        from commonplace_strands.testing import ScriptedModel

        manager = RepositorySessionManager(
            session_id=f"session {user.canary}",
            session_repository=CommonplaceSessionRepository(
                self._memory, user_id=user.scope.user_id
            ),
        )
        made = self._agents[user.canary] = Agent(
            model=ScriptedModel(), agent_id="helper", plugins=[self._plugin],
            session_manager=manager, callback_handler=None,
        )  # fmt: skip
        return made

    async def add(self, user: User, text: str, token: str) -> str:
        [added] = await self._store(user).add(text, {"tag": user.canary})
        return str(added["id"])

    async def search(self, user: User, query: str) -> str:
        return "\n".join(one.content for one in await self._store(user).search(query))

    def _store(self, user: User) -> Any:
        from commonplace_strands import CommonplaceMemoryStore

        return CommonplaceMemoryStore(self._memory, user_id=user.scope.user_id)

    async def forget(self, user: User) -> None:
        self._agents.pop(user.canary, None)
        await super().forget(user)

    async def session(self, user: User) -> str | None:
        from commonplace_strands import CommonplaceSessionRepository

        if user.canary not in self._agents:
            return ""
        sessions = CommonplaceSessionRepository(self._memory, user_id=user.scope.user_id)
        found = sessions.list_messages(f"session {user.canary}", "helper")
        return json.dumps([one.message for one in found])


class Mem0Calls:
    """The calls of mem0's asynchronous memory."""

    def __init__(self, memory: Memory) -> None:
        from commonplace_mem0 import AsyncMemory

        self._memory = AsyncMemory(core=memory)

    async def turn(self, user: User, text: str, answer: str) -> None:
        await self.search(user, text)
        said = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        await self._memory.add(said, user_id=user.canary, run_id=f"run {user.canary}")

    async def add(self, user: User, text: str, token: str) -> str:
        given = {"tag": user.canary, "token": token}
        added = await self._memory.add(text, user_id=user.canary, metadata=given, infer=False)
        return str(added["results"][0]["id"])

    async def search(self, user: User, query: str) -> str:
        found = await self._memory.search(query, filters={"user_id": user.canary})
        return "\n".join(one["memory"] for one in found["results"])

    async def update(self, user: User, record: str, text: str) -> None:
        await self._memory.update(record, text)

    async def delete(self, user: User, record: str) -> None:
        await self._memory.delete(record)

    async def forget(self, user: User) -> None:
        await self._memory.delete_all(user_id=user.canary)

    async def session(self, user: User) -> str | None:
        return None


CALLS: dict[str, Callable[[Memory], Adapter]] = {
    "agentscope": AgentScopeCalls,
    "langgraph": LangGraphCalls,
    "strands": StrandsCalls,
    "mem0": Mem0Calls,
}


class Load:
    """Steps of one process for its users, each told to the parent with its time."""

    def __init__(self, name: str, adapter: Adapter, users: int, steps: int) -> None:
        self._name = name
        self._adapter = adapter
        self._steps = steps
        self._begun = 0
        # They begin at different ages, so that one is forgotten at a time.
        self.users = [self._new(steps * number // users) for number in range(users)]
        self._at = 0

    def _new(self, age: int = 0) -> User:
        self._begun += 1
        return User(f"xqcanary{self._name}{self._begun}qx", steps=age)

    async def step(self) -> None:
        """Make the next step of the next user."""
        self._at = (self._at + 1) % len(self.users)
        user = self.users[self._at]
        kind = "forget" if user.steps >= self._steps else STEPS[user.steps % len(STEPS)]
        if kind in ("update", "delete") and not user.items:
            kind = "add"
        begun = time.monotonic()
        try:
            await getattr(self, f"_{kind}")(user)
        except ForeignRowError as error:
            say(at="foreign", text=str(error))
        except Exception as error:  # noqa: BLE001 -- told to the parent, which counts it
            took = time.monotonic() - begun
            say(at="failed", kind=kind, took=took, error=f"{type(error).__name__}: {error}"[:500])
            return
        user.steps += 1
        say(at="step", kind=kind, ms=(time.monotonic() - begun) * 1000)

    async def _turn(self, user: User) -> None:
        (asked, text), (answered, answer) = user.text(), user.text()
        both = {asked, answered}
        user.maybe |= both
        user.maybe_said |= both
        await self._adapter.turn(user, text, answer)
        user.tokens |= both
        user.said |= both

    async def _add(self, user: User) -> None:
        token, text = user.text()
        user.maybe.add(token)
        user.items.append((token, await self._adapter.add(user, text, token)))
        user.tokens.add(token)

    async def _search(self, user: User) -> None:
        found = await self._adapter.search(user, TOPICS[user.steps % len(TOPICS)])
        if foreign := {one[1] for one in TOKEN.finditer(found)} - {user.canary}:
            message = f"{user.canary} was shown {foreign}"
            raise ForeignRowError(message)

    async def _update(self, user: User) -> None:
        (old, record), (token, text) = user.items.pop(0), user.text()
        user.tokens.discard(old)
        user.maybe |= {old, token}
        await self._adapter.update(user, record, text)
        user.maybe.discard(old)
        user.tokens.add(token)
        user.items.append((token, record))

    async def _delete(self, user: User) -> None:
        token, record = user.items.pop(0)
        user.tokens.discard(token)
        await self._adapter.delete(user, record)
        user.maybe.discard(token)

    async def _forget(self, user: User) -> None:
        await self._adapter.forget(user)
        self.users[self._at] = self._new()
        say(at="forgot", user=user.canary)

    async def tell(self) -> None:
        """Tell what there must be of each user, and what is wrong with their sessions."""
        for user in self.users:
            found = await self._adapter.session(user)
            said = [one[0] for one in TOKEN.finditer(found or "")]
            wrong: dict[str, Iterable[str]] = {}
            if found is not None:
                wrong = {
                    "lost": user.said - set(said),
                    "doubled": {one for one in said if said.count(one) > 1},
                    "foreign": set(said) - user.maybe_said,
                }
            say(
                at="ledger", user=user.canary, tokens=sorted(user.tokens),
                maybe=sorted(user.maybe), said=len(said),
                wrong={name: sorted(tokens) for name, tokens in wrong.items()},
            )  # fmt: skip


_OUTPUT = os.dup(1)  # what frameworks print does not come between


def say(**what: Any) -> None:
    """Write one line."""
    os.write(_OUTPUT, f"{json.dumps(what)}\n".encode())


def listen() -> "SimpleQueue[str]":
    """Read the words of the parent in a thread."""
    words: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            words.put(line.strip())
        for word in ("begin", "end", "close"):  # without a parent it ends
            words.put(word)

    threading.Thread(target=read, daemon=True).start()
    return words


async def play(memory: Memory, load: Load, rate: float, words: "SimpleQueue[str]") -> None:
    """Make steps at a rate until the word `end`; what was late is not made up for."""
    due = time.monotonic()
    while True:
        try:
            word = words.get_nowait()
        except Empty:
            word = ""
        if word == "end":
            break
        if word == "sample":
            say(at="sample", pending=(await memory.aflush(0.0)).pending)
        await load.step()
        due = max(due + 1 / rate, time.monotonic())
        await asyncio.sleep(due - time.monotonic())
    left = await memory.aflush(120.0)
    say(at="flushed", pending=left.pending, dead=left.dead)
    await load.tell()
    say(at="told")


async def wait_for(words: "SimpleQueue[str]", word: str) -> None:
    """Wait for a word, and do meanwhile what an idle process does."""
    get: Callable[[], Awaitable[str]] = lambda: asyncio.to_thread(words.get)  # noqa: E731
    while await get() != word:
        pass


async def main(folder: str, name: str, rate: str, users: str, steps: str) -> None:
    """Play the load of one adapter."""
    os.dup2(2, 1)
    Location.find = find_place  # type: ignore[method-assign,assignment]  # on the parent's servers
    words = listen()
    memory = Memory.open(folder)
    load = Load(name, CALLS[name](memory), int(users), int(steps))
    memory.embedder.embed(["warm"], purpose="query")
    say(at="open")
    await wait_for(words, "begin")
    await play(memory, load, float(rate), words)
    await wait_for(words, "close")
    await memory.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
