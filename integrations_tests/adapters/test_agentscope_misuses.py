"""Misuses of the AgentScope adapter by a newcomer."""

from collections.abc import Callable
from typing import Any

import pytest

from commonplace import (
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    MemoryClosedError,
    Policy,
    WrongTypeError,
)
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_agentscope import AgentScopeChat, AgentScopeEmbedder, CommonplaceMiddleware

from .misuses import ALICE, NAN, Row, acoroutine, check, closed, shared

__all__ = ["shared"]


def made(**given: Any) -> Callable[[Memory], Any]:
    """Make a middleware of a memory and these arguments."""
    return lambda memory: CommonplaceMiddleware(**{"user_id": "bob", "client": memory, **given})


def alone(**given: Any) -> Callable[[Memory], Any]:
    """Make a middleware without a memory."""
    return lambda _: CommonplaceMiddleware(**{"user_id": "bob", **given})


ROWS: dict[str, Row] = {
    "positional memory": (lambda m: CommonplaceMiddleware(m), TypeError, "argument: 'user_id'"),
    "positional user": (lambda _: CommonplaceMiddleware("./memory", "bob"), TypeError, "positional.*user_id"),
    "nobody": (lambda m: CommonplaceMiddleware(client=m), TypeError, "user_id"),
    "user of nobody": (made(user_id=lambda: "bob"), InvalidRecordError, "user_id=.*must take 1 argument"),
    "event of nobody": (made(on_event=lambda: 1), InvalidRecordError, "on_event=.*must take 1 argument"),
    "memory and client": (lambda m: made(memory=m)(m), InvalidRecordError, "client=.* beside memory"),
    "client and path": (made(path="./memory"), InvalidRecordError, "path=.* beside client"),
    "policy and mode": (made(policy=Policy(), mode="both"), InvalidRecordError, r"mode='both' .* beside policy.*Policy\(mode=\.\.\.\)"),
    "policy and header": (made(policy=Policy(), memory_section_header="x"), InvalidRecordError, r"Policy\(header=\.\.\.\)"),
    "policy text": (made(policy="both"), InvalidRecordError, "policy='both' must be a Policy"),
    "tools=": (made(tools=("search_memory",)), TypeError, r"'tools'. Give policy=Policy\(tools="),
    "where=": (made(where={"a": 1}), TypeError, r"'where'. Give policy=Policy\(where="),
    "memory and model": (made(chat_model=ScriptedChat([])), WrongTypeError, r"memory=.*models to Memory\.open"),
    "limit=": (made(limit=3), TypeError, "Did you mean 'top_k'"),
    "memory class": (alone(memory=Memory), WrongTypeError, "memory=the class Memory"),
    "memory dict": (alone(memory={"path": "x"}), WrongTypeError, "memory=dict.*the path of a folder"),
    "client scope": (alone(client=ALICE), WrongTypeError, "memory=.*Scope"),
    "client closed": (lambda m: made(client=closed(m))(m), MemoryClosedError, "Open it again"),
    "path int": (alone(path=3), WrongTypeError, "memory=3 must be .* the path of a folder"),
    "path bytes": (alone(path=b"x"), WrongTypeError, "memory=bytes"),
    "path url": (alone(path="http://localhost:6333"), InvalidRecordError, "not a URL.*vectors=URL"),
    "path secret": (alone(path="neo4j://u:secret@h"), InvalidRecordError, "memory='neo4j://h'"),
    "path host": (alone(path="localhost:6333"), InvalidRecordError, "not a host and its port"),
    "path empty": (alone(memory=""), InvalidRecordError, "memory='' must be the path"),
    "path nul": (alone(path="a\0b"), InvalidRecordError, "must be the path of a folder"),
    "path surrogate": (alone(path="\ud800"), InvalidRecordError, "must be the path of a folder"),
    "user None": (made(user_id=None), InvalidScopeError, "user_id=None must be a string"),
    "user empty": (made(user_id=""), InvalidScopeError, "user_id='' must have 1 to 256"),
    "user newline": (made(user_id="bob\n"), InvalidScopeError, "must not begin or end with"),
    "user float": (made(user_id=1.5), InvalidScopeError, "user_id=1.5"),
    "user list": (made(user_id=["bob"]), InvalidScopeError, r"user_id=\['bob'\]"),
    "user scope": (made(user_id=ALICE), InvalidScopeError, "user_id=Scope"),
    "user wildcard": (made(user_id="*"), InvalidScopeError, "must not be a wildcard"),
    "user class": (made(user_id=str), InvalidRecordError, "user_id=.*'str'.*must be a function"),
    "agent empty": (made(agent_id=""), InvalidScopeError, "agent_id=''"),
    "agent function": (made(agent_id=acoroutine), InvalidScopeError, "agent_id="),
    "chat name": (made(chat_model="gpt-4o"), WrongTypeError, "chat_model=str.*ChatModelBase"),
    "chat class": (made(chat_model=ScriptedChat), WrongTypeError, "chat_model=the class.*instance"),
    "chat embedder": (made(chat_model=HashEmbedder()), WrongTypeError, "chat_model=.*HashEmbedder"),
    "embedder name": (made(embedding_model="minilm"), WrongTypeError, "embedding_model=str"),
    "embedder class": (made(embedding_model=HashEmbedder), WrongTypeError, "the class HashEmbedder"),
    "mem0 config": (made(mem0_config={}), InvalidRecordError, "mem0_config.*memory="),
    "mode": (made(mode="auto"), InvalidRecordError, "mode='auto' must be one of static_control"),
    "top_k text": (made(top_k="5"), InvalidRecordError, "top_k='5' must be an integer in 1..100"),
    "top_k huge": (made(top_k=10**9), InvalidRecordError, "1..100"),
    "threshold 2": (made(threshold=2), InvalidRecordError, r"threshold=2 must be in 0\.\.1"),
    "threshold NaN": (made(threshold=NAN), InvalidRecordError, "threshold=nan"),
    "inject": (made(inject="always"), InvalidRecordError, "inject='always'.*transient"),
    "timeout 0": (made(recall_timeout=0), InvalidRecordError, "recall_timeout=0 must be above"),
    "timeout NaN": (made(recall_timeout=NAN), InvalidRecordError, "recall_timeout=nan"),
    "prefix int": (made(tool_prefix=3), InvalidRecordError, "tool_prefix=3 must be.*letters"),
    "prefix space": (made(tool_prefix="a b"), InvalidRecordError, "tool_prefix='a b'.*'work_'"),
    "prefix None": (made(tool_prefix=None), InvalidRecordError, "tool_prefix=None"),
    "event text": (made(on_event="print"), InvalidRecordError, "on_event='print' must be a function"),
    "event async": (made(on_event=acoroutine), InvalidRecordError, "on_event=.*instead of `async def`"),
    "flag text": (made(await_write="no"), InvalidRecordError, "await_write='no' must be True"),
    "header None": (made(memory_section_header=None), InvalidRecordError, "header=None"),
    "chat of a name": (lambda _: AgentScopeChat("gpt-4o"), WrongTypeError, "chat_model=str"),
    "chat of nothing": (lambda _: AgentScopeChat(), TypeError, "Its parameters are model"),
    "embedder of a name": (lambda _: AgentScopeEmbedder("x"), WrongTypeError, "embedding_model=str"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_misuse_is_refused_with_the_way_out(shared: Memory, name: str) -> None:
    check(ROWS[name], shared)
