"""Strands' memory stores, session repositories and `mem0_memory`: stock ones beside ours."""

import json
import os
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import strands_tools.mem0_memory as stock_tool
from mem0_strands import Mem0MemoryStore
from mem0_strands.client import Mem0ServiceClient
from strands import Agent
from strands.memory import MemoryManager, MemoryStore
from strands.models import Model
from strands.session import FileSessionManager, RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType
from strands.vended_memory_stores import TestMemoryStore

from commonplace import Memory, Scope
from commonplace_strands import CommonplaceMemoryStore, CommonplaceSessionRepository
from commonplace_strands.mem0_memory import Mem0MemoryTool

from . import Awaited, Case, Section, public, tried
from .mem0_cases import Ours
from .mem0_cases import theirs as mem0_of

ALICE = Scope(user_id="alice")


def memory_in(folder, stack):
    return stack.enter_context(Memory.open(str(folder), embedder=Ours()))


# -- stores ----------------------------------------------------------------------------------------


def of(make):
    return lambda folder, stack: Awaited(make(folder, stack), "")


def stock_store(folder, stack):
    return TestMemoryStore(name="notes", persist=False, writable=True)


def mem0_store(folder, stack):
    client = Mem0ServiceClient(client=mem0_of("Memory")(folder, stack))
    return Mem0MemoryStore(user_id="alice", name="notes", client=client, writable=True)


def our_store(folder, stack):
    return CommonplaceMemoryStore(memory_in(folder, stack), user_id="alice", name="notes")


def said(text, role="user"):
    return {"role": role, "content": [{"text": text}]}


def kept(s):
    for text in ("likes green tea", "has a red boat"):
        s.add(text, {"source": "form"})
    return s


def found(entries):
    return [one.content for one in entries]


def added_messages(s):
    s.add_messages([said("My cat is Miso"), said("Noted.", "assistant")])
    if isinstance(s._of, CommonplaceMemoryStore):
        s._of._memory.get().flush()
    return len(s.search("Miso")) > 0


def manager(do):
    def run(s):
        return s.run(do(MemoryManager(stores=[s._of], add_tool_config=True)))

    return run


async def added_and_found(m):
    await m.add("likes green tea")
    return found(await m.search("green tea"))


async def named(m):
    return [one.tool_name for one in m.tools]


def injected(s):
    kept(s)
    model = Scripted()
    agent = Agent(
        model=model,
        memory_manager=MemoryManager(stores=[s._of], injection=True),
        callback_handler=None,
    )
    s.run(agent.invoke_async("green tea?"))
    return "likes green tea" in json.dumps(model.seen[-1]), len(agent.messages)


class Scripted(Model):
    """Says the same to everything; what it was shown is in `seen`."""

    def __init__(self):
        self.seen = []

    def update_config(self, **config): ...

    def get_config(self):
        return {"model_id": "scripted"}

    async def structured_output(self, *given, **more):
        raise NotImplementedError
        yield {}

    async def stream(self, messages, *given, **more):
        self.seen.append(json.loads(json.dumps(messages)))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "All right."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


STORE = [
    Case("add(content, metadata); search(query)", lambda s: found(kept(s).search("green tea"))[:1]),
    Case("search(query): metadata of an entry", lambda s: kept(s).search("green tea")[0].metadata["source"]),
    Case('search(query, options={"max_search_results": n})', lambda s: len(kept(s).search("tea boat", {"max_search_results": 1}))),
    Case("search(query) of an empty store", lambda s: s.search("tea")),
    Case('search("")', lambda s: found(kept(s).search("")), "nothing, as `TestMemoryStore`"),
    Case("add(content) of a known text", lambda s: len(found(kept(kept(s)).search("green tea boat"))), "is one entry, as in `TestMemoryStore`"),
    Case('add("")', lambda s: (tried(s.add, ""), s.search("tea"))[1]),
    Case("add_messages(messages, context)", added_messages, "`TestMemoryStore` has none; messages are accepted at once and found when they are applied"),
    Case("initialize()", lambda s: s.initialize()),
    Case("get_tools()", lambda s: [one.tool_name for one in s.get_tools()]),
    Case("name, description, max_search_results, writable, extraction", lambda s: [s.name, type(s.description), s.max_search_results, s.writable, s.extraction]),
    Case("MemoryManager(stores=[store]).add(content), search(query)", manager(added_and_found)),
    Case("MemoryManager(..., add_tool_config=True).tools", manager(named)),
    Case("Agent(memory_manager=MemoryManager(..., injection=True))", injected),
]  # fmt: skip


# -- sessions --------------------------------------------------------------------------------------


@dataclass
class Repository:
    repository: Any
    of: Any = field(repr=False)

    def __getattr__(self, name):
        return getattr(self.repository, name)


def file_sessions(folder, stack):
    return Repository(
        FileSessionManager("other", storage_dir=str(folder)),
        lambda: FileSessionManager("chat", storage_dir=str(folder)),
    )


def our_sessions(folder, stack):
    kept = CommonplaceSessionRepository(memory_in(folder, stack), user_id="alice")
    kept.create_session(Session("other", SessionType.AGENT))
    return Repository(kept, lambda: RepositorySessionManager("chat", session_repository=kept))


def agent_of(state=1):
    return SessionAgent("a", {"n": state}, {"removed": 0})


def message(n, text=None):
    return SessionMessage.from_message(said(text or f"message {n}"), n)


def session(do, messages=3):
    def run(r):
        r.create_session(Session("s", SessionType.AGENT))
        r.create_agent("s", agent_of())
        for n in range(messages):
            r.create_message("s", "a", message(n))
        return do(r)

    return run


def read(r, n=0):
    return r.read_message("s", "a", n).to_message()


def ids(messages):
    return [one.message_id for one in messages]


class Team:
    id = "team"

    def __init__(self, state=1):
        self.state = state

    def serialize_state(self):
        return {"id": self.id, "n": self.state}


def redacted(r):
    given = message(1)
    given.redact_message = said("[redacted]")
    r.update_message("s", "a", given)
    return read(r, 1)


def changed_agent(r):
    r.update_agent("s", agent_of(2))
    return r.read_agent("s", "a").state


def team(r):
    r.create_multi_agent("s", Team())
    first = r.read_multi_agent("s", "team")
    r.update_multi_agent("s", Team(2))
    return first, r.read_multi_agent("s", "team"), r.read_multi_agent("s", "no")


def restarted(r):
    for text in ("hello", "again"):
        model = Scripted()
        agent = Agent(model=model, agent_id="a", session_manager=r.of(), callback_handler=None)
        agent.state.set("n", text)
        agent(text)
    return [[one["role"], one["content"]] for one in model.seen[-1]], agent.state.get("n")


SESSIONS = [
    Case("create_session(session); read_session(session_id)", session(lambda r: [r.read_session("s").session_type, r.read_session("no")])),
    Case("create_session(session) again", session(lambda r: r.create_session(Session("s", SessionType.AGENT)))),
    Case('create_session(Session("a/b"))', lambda r: r.create_session(Session("a/b", SessionType.AGENT)).session_id, "any name but a blank one"),
    Case("delete_session(session_id)", session(lambda r: (r.delete_session("s"), r.read_session("s")))),
    Case("delete_session(session_id) of what is not there", lambda r: r.delete_session("no")),
    Case("create_agent(session_id, session_agent); read_agent(session_id, agent_id)", session(lambda r: [r.read_agent("s", "a").state, r.read_agent("s", "no")])),
    Case("create_agent(...) without its session", lambda r: (r.create_agent("no", agent_of()), r.read_agent("no", "a") is None)[1], "`SessionException`: create the session first, as `RepositorySessionManager` does"),
    Case("update_agent(session_id, session_agent)", session(changed_agent)),
    Case("update_agent(...) of what is not there", lambda r: r.update_agent("no", agent_of())),
    Case("create_message(session_id, agent_id, session_message); read_message(session_id, agent_id, message_id)", session(lambda r: [read(r), r.read_message("s", "a", 9)])),
    Case("create_message(...) without its agent", session(lambda r: (r.create_message("s", "no", message(0)), len(r.list_messages("s", "no")))[1]), "`SessionException`: create the agent first, as `RepositorySessionManager` does"),
    Case("update_message(session_id, agent_id, session_message): redaction", session(redacted)),
    Case("update_message(...) of what is not there", session(lambda r: r.update_message("s", "a", message(9)))),
    Case("list_messages(session_id, agent_id)", session(lambda r: ids(r.list_messages("s", "a")))),
    Case("list_messages(..., limit=, offset=)", session(lambda r: [ids(r.list_messages("s", "a", limit=2)), ids(r.list_messages("s", "a", limit=2, offset=2)), ids(r.list_messages("s", "a", offset=9))], 12)),
    Case("list_messages(...) of an unknown agent", session(lambda r: r.list_messages("s", "no"))),
    Case("create_multi_agent, update_multi_agent(session_id, multi_agent); read_multi_agent(session_id, multi_agent_id)", session(team)),
    Case("update_multi_agent(...) of what is not there", session(lambda r: r.update_multi_agent("s", Team()))),
    Case("Agent(session_manager=...), restarted", restarted),
]  # fmt: skip


# -- mem0_memory -----------------------------------------------------------------------------------


def stock_mem0_tool(folder, stack):
    stack.enter_context(patch.dict(os.environ, BYPASS_TOOL_CONSENT="true"))
    client = mem0_of("Memory")(folder, stack)
    made = patch.object(stock_tool.Mem0ServiceClient, "_initialize_client", lambda *_: client)
    stack.enter_context(made)
    stock_tool.console.quiet = True
    return stock_tool.Mem0MemoryTool(user_id="alice").mem0_memory


def our_mem0_tool(folder, stack):
    return Mem0MemoryTool(user_id="alice", memory=memory_in(folder, stack)).mem0_memory


def use(tool, action=None, **given):
    asked = {"action": action, **given} if action else given
    call = tool if callable(tool) and not hasattr(tool, "_tool_func") else tool._tool_func
    answer = call({"toolUseId": "t", "name": "mem0_memory", "input": asked})
    text = answer["content"][0]["text"]
    return [answer["status"], json.loads(text) if text[:1] in "[{" else text]


def stored(do):
    def run(tool):
        _, rows = use(tool, "store", content="likes tea", metadata={"n": 1})
        return do(tool, rows[0]["id"])

    return run


def texts(answer):
    status, rows = answer
    return status, [one["memory"] for one in rows] if status == "success" else rows


OLD = "works; the stock tool calls mem0 1.x, and fails on 2.x"
TOOL = [
    Case('{"action": "store", "content": ..., "metadata": ...}', lambda t: [one["event"] for one in use(t, "store", content="likes tea", metadata={"n": 1})[1]]),
    Case('{"action": "get", "memory_id": ...}', stored(lambda t, i: sorted(use(t, "get", memory_id=i)[1]))),
    Case('{"action": "get"} of what is not there', lambda t: use(t, "get", memory_id="6f9619ff-8b86-4d01-b42d-00cf4fc964ff")[0]),
    Case('{"action": "list"}', stored(lambda t, _: texts(use(t, "list"))), OLD),
    Case('{"action": "retrieve", "query": ...}', stored(lambda t, _: texts(use(t, "retrieve", query="tea"))), OLD),
    Case('{"action": "history", "memory_id": ...}', stored(lambda t, i: [sorted(one) for one in use(t, "history", memory_id=i)[1]])),
    Case('{"action": "delete", "memory_id": ...}', stored(lambda t, i: [use(t, "delete", memory_id=i), use(t, "get", memory_id=i)[0]])),
    Case('{"action": "store"} without content', lambda t: use(t, "store")),
    Case('{"action": "retrieve"} without query', lambda t: use(t, "retrieve")),
    Case('{"action": anything else}', lambda t: use(t, "no")),
    Case("{} without an action", lambda t: use(t)),
]  # fmt: skip


def section(name, title, packages, columns, cases, interface):
    return Section(
        name=name, title=title, packages=packages, columns=columns, cases=cases, interface=interface
    )


SECTIONS = {
    one.name: one
    for one in (
        section(
            "strands_store", "Strands: memory store", ("strands-agents", "mem0-strands"),
            {
                "`TestMemoryStore`": (of(stock_store), of(our_store)),
                "`Mem0MemoryStore`": (of(mem0_store), of(our_store)),
            },
            STORE, public(MemoryStore),
        ),
        section(
            "strands_sessions", "Strands: sessions", ("strands-agents",),
            {"`FileSessionManager`": (file_sessions, our_sessions)}, SESSIONS,
            public(SessionRepository),
        ),
        section(
            "strands_tool", "Strands: `strands_tools.mem0_memory`", ("strands-agents-tools", "mem0ai"),
            {"`mem0_memory`": (stock_mem0_tool, our_mem0_tool)}, TOOL, {},
        ),
    )
}  # fmt: skip
