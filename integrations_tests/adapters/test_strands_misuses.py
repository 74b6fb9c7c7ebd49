"""Misuses of the Strands adapter by a newcomer."""

import re
from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest
from strands.models import BedrockModel
from strands.multiagent import MultiAgentBase
from strands.types.exceptions import SessionException, StorageError
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    MemoryClosedError,
    Message,
    Policy,
    WrongTypeError,
)
from commonplace.ports import Address, Selection
from commonplace.testing.fakes import ScriptedChat
from commonplace_strands import (
    CommonplaceMemoryStore,
    CommonplaceSessionRepository,
    CommonplaceStorage,
    MemoryPlugin,
    StrandsChat,
    memory_tools,
)
from commonplace_strands.mem0_memory import Mem0MemoryTool

from .misuses import ALICE, NAN, Row, acoroutine, check, closed, shared

__all__ = ["shared"]

MAKERS: dict[str, Callable[..., Any]] = {
    "plugin": MemoryPlugin, "tools": memory_tools, "store": CommonplaceMemoryStore,
    "sessions": lambda given: CommonplaceSessionRepository(given, user_id="bob"),
    "storage": lambda given: CommonplaceStorage(given, user_id="bob"),
    "mem0 tool": lambda given: Mem0MemoryTool("bob", memory=given),
}  # fmt: skip
NO_MEMORIES: dict[str, tuple[Any, str]] = {
    "number": (3, r"memory=3 must be an open commonplace Memory.*Memory\.open.*path of a folder"),
    "class": (Memory, "memory=the class Memory"),
    "dict": ({"path": "x"}, "memory=dict"),
    "scope": (ALICE, "memory=.*Scope"),
}


def no_memory(make: Callable[..., Any], name: str) -> Row:
    """Write what is no memory as a row for one of the makers."""
    given, words = NO_MEMORIES[name]
    return lambda _: make(given), WrongTypeError, words


def plugin(**given: Any) -> Callable[[Memory], Any]:
    """Make a plugin of a memory and these arguments."""
    return lambda memory: MemoryPlugin(memory, **given)


def tools(**given: Any) -> Callable[[Memory], Any]:
    """Make tools of a memory and these arguments."""
    return lambda memory: memory_tools(memory, **given)


def store(**given: Any) -> Callable[[Memory], Any]:
    """Make a memory store of a memory and these arguments."""
    return lambda memory: CommonplaceMemoryStore(memory, **{"user_id": "alice", **given})


def on_store(call: Callable[[CommonplaceMemoryStore], Any]) -> Callable[[Memory], Any]:
    """Call a memory store of one user."""
    return lambda memory: call(CommonplaceMemoryStore(memory, user_id="alice"))


def on_messages(content: Any, role: str = "user") -> Callable[[Memory], Any]:
    """Add a message of this content to a memory store."""
    return on_store(lambda store: store.add_messages([{"role": role, "content": content}]))


def on_sessions(call: Callable[[CommonplaceSessionRepository], Any]) -> Callable[[Memory], Any]:
    """Call a session repository of one user."""
    return lambda memory: call(CommonplaceSessionRepository(memory, user_id="alice"))


def in_session(call: Callable[[CommonplaceSessionRepository], Any]) -> Callable[[Memory], Any]:
    """Call a session repository that has a session with an agent; what was there stays."""

    def run(memory: Memory) -> None:
        sessions = CommonplaceSessionRepository(memory, user_id="alice")
        sessions.create_session(Session("s", SessionType.AGENT))
        sessions.create_agent("s", state_of({}))
        before = _rows(memory)
        try:
            call(sessions)
        finally:
            after = _rows(memory)
            sessions.delete_session("s")
            assert after == before

    return run


def _rows(memory: Memory) -> list[tuple[Address, bytes]]:
    return [
        (one.address, one.body.data)
        for one in memory.admin.checkpoints.page(Selection(), limit=100)
    ]


def state_of(state: Any, agent_id: Any = "cook") -> SessionAgent:
    """Make an agent of a session, of this state."""
    return SessionAgent(agent_id, state, {})


class Crew(MultiAgentBase):
    """Several agents, whose state no store can keep."""

    def __init__(self, name: Any) -> None:
        self.id = name

    async def invoke_async(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def serialize_state(self) -> dict[str, Any]:
        return {"agents": object()}


def on_storage(call: Callable[[CommonplaceStorage], Any]) -> Callable[[Memory], Any]:
    """Call a storage of one user."""
    return lambda memory: call(CommonplaceStorage(memory, user_id="alice"))


HI: Any = {"role": "user", "content": [{"text": "hi"}]}
CIRCLE: dict[str, Any] = {}
CIRCLE["a"] = CIRCLE
NO_NAMES: list[Any] = [None, 3, "", "\ud800", "a\0", ["a"], "a" * 300]
OF_AGENTS: dict[str, Callable[[CommonplaceSessionRepository, Any], Any]] = {
    "create": lambda sessions, name: sessions.create_agent("s", state_of({}, name)),
    "read": lambda sessions, name: sessions.read_agent("s", name),
    "update": lambda sessions, name: sessions.update_agent("s", state_of({}, name)),
    "create message": lambda sessions, name: sessions.create_message("s", name, SessionMessage(HI, 0)),
    "read message": lambda sessions, name: sessions.read_message("s", name, 0),
    "update message": lambda sessions, name: sessions.update_message("s", name, SessionMessage(HI, 0)),
    "list messages": lambda sessions, name: sessions.list_messages("s", name),
}  # fmt: skip
MESSAGE = "must be a message of Strands.*'content': "
ROWS: dict[str, Row] = {
    **{f"{kind} {name}": no_memory(make, name) for kind, make in MAKERS.items() for name in NO_MEMORIES},
    **{f"{kind} closed": (lambda m, make=make: make(closed(m)), MemoryClosedError, "Open it again") for kind, make in MAKERS.items()},
    # -- the plugin and the tools
    "plugin positional": (lambda m: MemoryPlugin(m, "bob"), TypeError, "Its parameters are memory, user_id, agent_id"),
    "plugin mode=": (plugin(mode="both"), TypeError, r"Give policy=Policy\(mode="),
    "plugin client=": (lambda m: MemoryPlugin(client=m), TypeError, "Did you mean 'memory'"),
    "plugin policy": (plugin(policy="both"), InvalidRecordError, r"policy='both' must be a Policy.*Policy\(mode="),
    "plugin policy persist": (plugin(policy=Policy(inject="persist")), InvalidRecordError, "inject='persist' cannot be done"),
    "plugin tools=": (plugin(tools=["search_memory"]), TypeError, r"Give policy=Policy\(tools="),
    "plugin policy dict": (plugin(policy={}), InvalidRecordError, "policy={} must be a Policy"),
    "plugin policy class": (plugin(policy=Policy), InvalidRecordError, "policy=.*must be a Policy"),
    "plugin user": (plugin(user_id="a\n"), InvalidScopeError, "user_id='a"),
    "plugin user empty": (plugin(user_id=""), InvalidScopeError, "user_id=''"),
    "plugin user list": (plugin(user_id=["a"]), InvalidScopeError, "user_id="),
    "plugin user function": (plugin(user_id=acoroutine), InvalidRecordError, "user_id=.*plain function"),
    "plugin agent": (plugin(agent_id=1.5), InvalidScopeError, "agent_id=1.5"),
    "plugin tools": (plugin(extra_tools="get_memory"), InvalidRecordError, "tools='get_memory' must be a list"),
    "plugin tools int": (plugin(extra_tools=3), InvalidRecordError, "tools=3 must be a list"),
    "plugin tools dict": (plugin(extra_tools={"get_memory": 1}), InvalidRecordError, "must be a list"),
    "plugin tools unknown": (plugin(extra_tools=["search"]), InvalidRecordError, "tools='search'.*get_memory"),
    "plugin prefix": (plugin(tool_prefix=None), InvalidRecordError, "tool_prefix=None.*'work_'"),
    "plugin prefix space": (plugin(tool_prefix="a b"), InvalidRecordError, "letters, digits"),
    "plugin consent": (plugin(consent="no"), InvalidRecordError, "consent='no' must be True or False"),
    "plugin event": (plugin(on_event="print"), InvalidRecordError, "on_event='print'"),
    "plugin event async": (plugin(on_event=acoroutine), InvalidRecordError, "on_event=.*async def"),
    "tools positional": (lambda m: memory_tools(m, "bob"), TypeError, "Its parameters are memory, user_id"),
    "tools user": (tools(user_id="a\n"), InvalidScopeError, "user_id='a"),
    "tools scope": (tools(user_id=ALICE), InvalidScopeError, "user_id=Scope"),
    "tools policy": (tools(policy="both"), InvalidRecordError, "policy='both'"),
    "tools names": (tools(extra_tools="list_memories"), InvalidRecordError, "tools='list_memories'"),
    "tools prefix": (tools(tool_prefix=3), InvalidRecordError, "tool_prefix=3"),
    "tools consent": (tools(consent=None), InvalidRecordError, "consent=None"),
    # -- the memory store
    "store positional": (lambda m: CommonplaceMemoryStore(m, ALICE), TypeError, "Its parameters are memory, user_id"),
    "store top_k=": (store(top_k=3), TypeError, r"Give policy=Policy\(top_k="),
    "store scope": (store(user_id=ALICE), InvalidScopeError, "user_id=Scope"),
    "store session": (store(session_id="*"), InvalidScopeError, r"session_id='\*'"),
    "store name": (store(name=None), InvalidRecordError, "name=None"),
    "store name empty": (store(name=""), InvalidRecordError, "name=''"),
    "store name of tools": (store(name="a b", extra_tools=["get_memory"]), InvalidRecordError, "name='a b_'"),
    "store description": (store(description=3), InvalidRecordError, "description=3"),
    "store policy": (store(policy={"kinds": ["fact"]}), InvalidRecordError, "must be a Policy"),
    "store results twice": (store(policy=Policy(), max_search_results=3), InvalidRecordError, r"max_search_results=3 must not be given beside policy.*Policy\(top_k="),
    "store threshold": (lambda m: store(policy=Policy(threshold=NAN))(m), InvalidRecordError, "threshold=nan"),
    "store where=": (store(where={"a": 1}), TypeError, r"Give policy=Policy\(where="),
    "store results": (store(max_search_results="5"), InvalidRecordError, "'5' must be an integer"),
    "store writable": (store(writable="no"), InvalidRecordError, "writable='no'"),
    "store extraction": (store(extraction="always"), InvalidRecordError, "extraction='always' must be a dict"),
    "store extraction key": (store(extraction={"model": 1}), InvalidRecordError, "extraction='model'.*extractor"),
    "store trigger": (store(extraction={"trigger": "always"}), WrongTypeError, "trigger=str.*instance"),
    "store extractor": (store(extraction={"extractor": 3}), WrongTypeError, "extractor=3"),
    "store tools": (store(extra_tools="get_memory"), InvalidRecordError, "tools='get_memory'"),
    "store tools None": (store(extra_tools=None), InvalidRecordError, "tools=None must be a list"),
    "search int": (on_store(lambda s: s.search(3)), InvalidRecordError, "query=3 must be a text"),
    "search None": (on_store(lambda s: s.search(None)), InvalidRecordError, "query=None"),
    "search list": (on_store(lambda s: s.search(["tea"])), InvalidRecordError, "query="),
    "search options": (on_store(lambda s: s.search("tea", 5)), InvalidRecordError, "options=5.*max_search_results"),
    "search results": (on_store(lambda s: s.search("tea", {"max_search_results": "5"})), InvalidRecordError, "='5' must be a whole"),
    "add int": (on_store(lambda s: s.add(3)), InvalidRecordError, "text=3"),
    "add empty": (on_store(lambda s: s.add("")), InvalidRecordError, "visible"),
    "add a message": (on_store(lambda s: s.add({"role": "user"})), InvalidRecordError, "text="),
    "add metadata": (on_store(lambda s: s.add("x", "y")), InvalidRecordError, "metadata='y' must be a dict"),
    "add NUL": (on_store(lambda s: s.add("a\0")), InvalidRecordError, "NUL"),
    "messages None": (on_store(lambda s: s.add_messages(None)), InvalidRecordError, "messages=None must be a list"),
    "messages text": (on_store(lambda s: s.add_messages("hi")), InvalidRecordError, "messages='hi'"),
    "messages texts": (on_store(lambda s: s.add_messages(["hi"])), InvalidRecordError, f"message='hi' {MESSAGE}"),
    "message of no content": (on_messages(None), InvalidRecordError, MESSAGE),
    "message of bytes": (on_messages(b"hi"), InvalidRecordError, f"b'hi'.*{MESSAGE}"),
    "message of texts": (on_messages(["hi", "you"]), InvalidRecordError, "content='hi' must be a content block.*'content': "),
    "message of a block": (on_messages([{"text": "hi"}, 3]), InvalidRecordError, "content=3 must be a content block"),
    "message of an int": (on_messages([{"text": 3}]), InvalidRecordError, "text=3 must be a string.*'content': "),
    "message of None": (on_messages([{"text": None}]), InvalidRecordError, "text=None must be a string"),
    "message of a list": (on_messages([{"type": "text", "text": ["hi"]}]), InvalidRecordError, r"text=\['hi'\]"),
    "message of a developer": (on_messages("hi", role="developer"), InvalidRecordError, "role='developer'"),
    "second message": (on_store(lambda s: s.add_messages([HI, {"role": "user"}])), InvalidRecordError, MESSAGE),
    "messages without a role": (on_store(lambda s: s.add_messages([{"content": [{"text": "hi"}]}])), InvalidRecordError, MESSAGE),
    "one message": (on_store(lambda s: s.add_messages({"role": "user"})), InvalidRecordError, "must be a list"),
    "our message": (on_store(lambda s: s.add_messages([Message(text="hi")])), InvalidRecordError, MESSAGE),
    # -- sessions
    "sessions positional": (lambda m: CommonplaceSessionRepository(m, "alice"), TypeError, "Its parameters are memory, user_id"),
    "sessions of nobody": (CommonplaceSessionRepository, InvalidScopeError, "user_id=None is missing: give user_id= or agent_id="),
    "sessions scope": (lambda m: CommonplaceSessionRepository(m, user_id=ALICE), InvalidScopeError, "user_id=Scope"),
    "sessions of one": (lambda m: CommonplaceSessionRepository(m, user_id="a", session_id="s"), TypeError, "Its parameters are memory, user_id, agent_id"),
    "create a text": (on_sessions(lambda s: s.create_session("s")), WrongTypeError, "session=str must be a Session"),
    "create a dict": (on_sessions(lambda s: s.create_session({})), WrongTypeError, "session=dict.*RepositorySessionManager"),
    "create unnamed": (on_sessions(lambda s: s.create_session(Session(session_id="", session_type="AGENT"))), InvalidScopeError, "session_id=''"),
    "read None": (on_sessions(lambda s: s.read_session(None)), InvalidScopeError, "session_id=None must name"),
    "read list": (on_sessions(lambda s: s.read_session(["s"])), InvalidScopeError, "session_id="),
    "delete unknown": (on_sessions(lambda s: s.delete_session("zz")), SessionException, "zz does not exist"),
    "delete None": (on_sessions(lambda s: s.delete_session(None)), InvalidScopeError, "session_id=None"),
    "agent text": (on_sessions(lambda s: s.create_agent("s", "agent")), WrongTypeError, "a SessionAgent"),
    "message text": (on_sessions(lambda s: s.create_message("s", "a", "hi")), WrongTypeError, "a SessionMessage"),
    "message dict": (on_sessions(lambda s: s.update_message("s", "a", {})), WrongTypeError, "session_message=dict"),
    "message number": (on_sessions(lambda s: s.read_message("s", "a", "1")), InvalidRecordError, "message_id='1'"),
    "message number too large": (on_sessions(lambda s: s.read_message("s", "a", 2**63)), InvalidRecordError, "message_id=9223372036854775808 must be an integer"),
    "message number of text": (on_sessions(lambda s: s.create_message("s", "a", SessionMessage(HI, "1"))), InvalidRecordError, "message_id='1'"),
    "message of another kind": (on_sessions(lambda s: s.create_message("s", "a", SessionMessage("hi", 0))), InvalidRecordError, "message='hi' must be a dict.*'content': "),
    "message redacted": (on_sessions(lambda s: s.update_message("s", "a", SessionMessage(HI, 0, "no"))), InvalidRecordError, "redact_message='no' must be a dict"),
    "message of a set": (in_session(lambda s: s.create_message("s", "cook", SessionMessage({"role": {1}}, 0))), InvalidRecordError, r"session_message=\{1\} cannot be kept as JSON.*texts, numbers"),
    **{f"{method} of agent {name!r:.10}": (on_sessions(lambda s, call=call, name=name: call(s, name)), InvalidRecordError, f"agent_id={re.escape(repr(name)[:10])}.* must ") for method, call in OF_AGENTS.items() for name in NO_NAMES},
    "state text": (in_session(lambda s: s.create_agent("s", state_of("x"))), InvalidRecordError, "state='x' must be a dict"),
    "state of a set": (in_session(lambda s: s.create_agent("s", state_of({"a": [{1}]}))), InvalidRecordError, r"session_agent=\{1\} cannot be kept as JSON.*texts, numbers"),
    "state of an object": (in_session(lambda s: s.update_agent("s", state_of({"a": object()}))), InvalidRecordError, "cannot be kept as JSON"),
    "state of a lock": (in_session(lambda s: s.update_agent("s", state_of({"a": Lock()}))), InvalidRecordError, "session_agent=.*cannot be kept as JSON .*lock"),
    "state of other keys": (in_session(lambda s: s.update_agent("s", state_of({(1, 2): 3}))), InvalidRecordError, "cannot be kept as JSON .*keys"),
    "state in itself": (in_session(lambda s: s.update_agent("s", state_of(CIRCLE))), InvalidRecordError, "cannot be kept as JSON .*recursion"),
    "session of an object": (on_sessions(lambda s: s.create_session(Session("new", object()))), InvalidRecordError, "cannot be kept as JSON"),
    "graph text": (on_sessions(lambda s: s.create_multi_agent("s", "x")), WrongTypeError, "multi_agent=str must be a MultiAgentBase of Strands.*graph or swarm"),
    "graph None": (on_sessions(lambda s: s.update_multi_agent("s", None)), WrongTypeError, "multi_agent=None"),
    "graph class": (on_sessions(lambda s: s.create_multi_agent("s", Crew)), WrongTypeError, "multi_agent=the class Crew"),
    "graph of None": (on_sessions(lambda s: s.create_multi_agent("s", Crew(None))), InvalidRecordError, "multi_agent_id=None"),
    "graph of an object": (in_session(lambda s: s.create_multi_agent("s", Crew("crew"))), InvalidRecordError, "multi_agent=.*object.* cannot be kept as JSON"),
    "graph name": (on_sessions(lambda s: s.read_multi_agent("s", ["x"])), InvalidRecordError, r"multi_agent_id=\['x'\]"),
    "messages offset too large": (on_sessions(lambda s: s.list_messages("s", "a", offset=2**63)), InvalidRecordError, "offset="),
    "messages limit": (on_sessions(lambda s: s.list_messages("s", "a", limit="3")), InvalidRecordError, "limit='3'"),
    "messages offset": (on_sessions(lambda s: s.list_messages("s", "a", offset=-1)), InvalidRecordError, "offset=-1"),
    # -- storage
    "storage positional": (lambda m: CommonplaceStorage(m, "alice"), TypeError, "Its parameters are memory, user_id"),
    "storage of nobody": (CommonplaceStorage, InvalidScopeError, "user_id=None is missing"),
    "storage session": (lambda m: CommonplaceStorage(m, user_id="a", session_id=""), InvalidScopeError, "session_id=''"),
    "write a text": (on_storage(lambda s: s.write("k", "text")), StorageError, "must be bytes, not str"),
    "write a number": (on_storage(lambda s: s.write("k", 5)), StorageError, "must be bytes, not int"),
    "write None": (on_storage(lambda s: s.write("k", None)), StorageError, "not NoneType"),
    "write no key": (on_storage(lambda s: s.write("", b"x")), StorageError, "must not be empty"),
    "write key int": (on_storage(lambda s: s.write(3, b"x")), StorageError, "key 3 must be a text"),
    "write key surrogate": (on_storage(lambda s: s.write("\ud800", b"x")), StorageError, "not Unicode"),
    "read key None": (on_storage(lambda s: s.read(None)), StorageError, "key None"),
    "delete key int": (on_storage(lambda s: s.delete(3)), StorageError, "key 3"),
    "list key int": (on_storage(lambda s: s.list(3)), StorageError, "key 3"),
    "search key int": (on_storage(lambda s: s.search(3)), StorageError, "key 3"),
    # -- the model, and the tool of mem0's name
    "chat name": (lambda _: StrandsChat("claude"), WrongTypeError, r"model=str must be a strands\.models\.Model"),
    "chat class": (lambda _: StrandsChat(BedrockModel), WrongTypeError, "model=the class BedrockModel"),
    "chat ours": (lambda _: StrandsChat(ScriptedChat([])), WrongTypeError, "model=.*ScriptedChat"),
    "mem0 nobody": (lambda m: Mem0MemoryTool(memory=m), ValueError, "Either user_id or agent_id"),
    "mem0 user": (lambda m: Mem0MemoryTool("a\n", memory=m), InvalidScopeError, "user_id='a"),
    "mem0 config": (lambda m: Mem0MemoryTool("a", config={}, memory=m), InvalidRecordError, "config=.*memory=Memory.open"),
    "mem0 text": (lambda m: Mem0MemoryTool("a", memory=m).mem0_memory("list"), InvalidRecordError, "tool='list' must be a dict"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_misuse_is_refused_with_the_way_out(shared: Memory, name: str) -> None:
    check(ROWS[name], shared)


MEM0_INPUTS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "action parameter is required"),
    "text": ("list", "input='list' must be a dict"),
    "unknown": ({"action": "search"}, "Invalid action: search"),
    "no content": ({"action": "store"}, "content is required"),
    "content": ({"action": "store", "content": {"role": "user"}}, "content="),
    "metadata": ({"action": "store", "content": "x", "metadata": "y"}, "metadata='y'"),
    "query": ({"action": "retrieve", "query": 3}, "query=3 must be a text"),
    "id": ({"action": "get", "memory_id": ["x"]}, "record_id="),
    "foreign id": ({"action": "delete", "memory_id": "zz"}, "Access denied"),
}


@pytest.mark.parametrize("name", MEM0_INPUTS)
def test_a_wrong_input_of_a_model_is_a_result_that_it_can_read(shared: Memory, name: str) -> None:
    given, words = MEM0_INPUTS[name]
    before = shared.admin.list_scopes()

    result = Mem0MemoryTool("alice", memory=shared).mem0_memory({"toolUseId": "1", "input": given})

    assert result["status"] == "error"
    assert words in result["content"][0]["text"]
    assert shared.admin.list_scopes() == before
