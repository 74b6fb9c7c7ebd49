"""Misuses of the LangGraph adapter by a newcomer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp
from pydantic import ValidationError

from commonplace import (
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    Memory,
    MemoryClosedError,
    Policy,
    WrongTypeError,
)
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_langgraph import (
    CommonplaceSaver,
    CommonplaceStore,
    LangChainChat,
    LangChainEmbedder,
    MemoryMiddleware,
    MemoryRetriever,
    memory_tools,
    recall_hook,
    remember_node,
)

from .misuses import ALICE, NAN, Row, acoroutine, check, closed, shared

__all__ = ["shared"]

NS = ("memories", "bob")
AT: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
WRITES_AT: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": "", "checkpoint_id": "c"}}
MAKERS: dict[str, Callable[..., Any]] = {
    "middleware": MemoryMiddleware, "tools": memory_tools, "recall": recall_hook,
    "remember": remember_node,
}  # fmt: skip
# The same arguments, for all that is made of a memory: positional ones, and those by name.
SHARED: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "URL": (("https://u:secret@h/d",), {}, InvalidRecordError, "memory=.*not a URL"),
    "empty path": (("",), {}, InvalidRecordError, "memory='' must be the path of a folder"),
    "class": ((Memory,), {}, WrongTypeError, "memory=the class Memory"),
    "number": ((3,), {}, WrongTypeError, "memory=3.*the path of a folder, or nothing"),
    "scope": ((ALICE,), {}, WrongTypeError, "memory=.*Scope"),
    "positional user": ((..., "bob"), {}, TypeError, "Its parameters are memory, user_id"),
    "client=": ((), {"client": ...}, TypeError, "Did you mean 'memory'"),
    "mode=": ((...,), {"mode": "both"}, TypeError, r"Give policy=Policy\(mode=\.\.\.\)"),
    "top_k=": ((...,), {"top_k": 3}, TypeError, r"Give policy=Policy\(top_k=\.\.\.\)"),
    "policy text": ((...,), {"policy": "both"}, InvalidRecordError, r"policy='both'.*Policy\(mode="),
    "policy dict": ((...,), {"policy": {}}, InvalidRecordError, "policy={} must be a Policy"),
    "policy class": ((...,), {"policy": Policy}, InvalidRecordError, "policy=.*must be a Policy"),
    "policy persist": ((...,), {"policy": Policy(inject="persist")}, InvalidRecordError, "inject="),
    "user None": ((...,), {"user_id": None}, InvalidScopeError, "user_id=None"),
    "user newline": ((...,), {"user_id": "a\n"}, InvalidScopeError, "user_id='a"),
    "user list": ((...,), {"user_id": ["a"]}, InvalidScopeError, "user_id="),
    "user async": ((...,), {"user_id": acoroutine}, InvalidRecordError, "user_id=.*instead of `async def`"),
    "user class": ((...,), {"user_id": str}, InvalidRecordError, "user_id=.*must be a function"),
    "agent empty": ((...,), {"agent_id": ""}, InvalidScopeError, "agent_id=''"),
    "event text": ((...,), {"on_event": "print"}, InvalidRecordError, "on_event='print'"),
    "event async": ((...,), {"on_event": acoroutine}, InvalidRecordError, "on_event=.*async def"),
}  # fmt: skip


def of_memory(given: Any, memory: Memory) -> Any:
    """Put the memory where the table has `...`."""
    return memory if given is ... else given


def row_of(make: Callable[..., Any], name: str) -> Row:
    """Write a shared misuse as a row for one of the makers."""
    args, options, expected, words = SHARED[name]
    return (
        lambda m: make(
            *(of_memory(one, m) for one in args),
            **{key: of_memory(one, m) for key, one in options.items()},
        ),
        expected,
        words,
    )


def store(**given: Any) -> Callable[[Memory], Any]:
    """Make a store of a memory and these arguments."""
    return lambda memory: CommonplaceStore(memory, **given)


def on_store(call: Callable[[CommonplaceStore], Any]) -> Callable[[Memory], Any]:
    """Call a store of a memory."""
    return lambda memory: call(CommonplaceStore(memory))


def on_saver(call: Callable[[CommonplaceSaver], Any]) -> Callable[[Memory], Any]:
    """Call a saver on a memory."""
    return lambda memory: call(CommonplaceSaver(memory))


def retriever(**given: Any) -> Callable[[Memory], Any]:
    """Make a retriever of a memory and these fields."""
    return lambda memory: MemoryRetriever(**{"memory": memory, "user_id": "bob", **given})


FAKE = DeterministicFakeEmbedding(size=3)
ROWS: dict[str, Row] = {
    **{f"{kind} {name}": row_of(make, name) for kind, make in MAKERS.items() for name in SHARED},
    "middleware closed": (lambda m: MemoryMiddleware(closed(m)), MemoryClosedError, "Open it again"),
    # -- steps and the retriever
    "recall a text": (lambda m: recall_hook(m, user_id="b").invoke("hi"), InvalidRecordError, "messages='hi' must be a list"),
    "recall nothing": (lambda m: recall_hook(m, user_id="b").invoke(None), InvalidRecordError, "state with `messages`"),
    "recall a state": (lambda m: recall_hook(m, user_id="b").invoke({}), InvalidRecordError, "messages=None"),
    "remember a state": (lambda m: remember_node(m, user_id="b").invoke({"message": "x"}), InvalidRecordError, "messages=None"),
    "remember dicts": (lambda m: remember_node(m, user_id="b").invoke([{"text": "x"}]), ValueError, "'role' and 'content'"),
    "retriever URL": (retriever(memory="https://h/d"), ValidationError, "memory=.*not a URL"),
    "retriever number": (retriever(memory=3), ValidationError, "memory=3.*the path of a folder"),
    "retriever closed": (lambda m: retriever(memory=closed(m))(m), MemoryClosedError, "Open it again"),
    "retriever user": (retriever(user_id=None), ValidationError, "user_id=None"),
    "retriever async user": (retriever(user_id=acoroutine), ValidationError, "async def"),
    "retriever policy": (retriever(policy="both"), ValidationError, "Policy"),
    "retriever top_k": (retriever(top_k=3), ValidationError, "top_k"),
    "retriever search_kwargs": (retriever(search_kwargs={"k": 3}), ValidationError, "search_kwargs"),
    "retriever filter": (retriever(where={"a": {"$ne": 1}}), ValidationError, r"\$ne"),
    "retriever a dict": (lambda m: retriever()(m).invoke({"query": "x"}), InvalidRecordError, "query=.*must be a text"),
    "retriever None": (lambda m: retriever()(m).invoke(None), InvalidRecordError, "query=None"),
    # -- the store
    "store int": (lambda _: CommonplaceStore(3), WrongTypeError, "memory=3.*the path of a folder"),
    "store class": (lambda _: CommonplaceStore(Memory), WrongTypeError, "the class Memory"),
    "store url": (lambda _: CommonplaceStore("postgresql://u:secret@h/d"), InvalidRecordError, "not a URL"),
    "store closed": (lambda m: CommonplaceStore(closed(m)), MemoryClosedError, "Open it again"),
    "store positional": (lambda m: CommonplaceStore(m, {}), TypeError, "Its parameters are memory"),
    "store embed=": (store(embed=len), TypeError, "Its parameters are memory, index"),
    "index text": (store(index="text"), InvalidRecordError, "index='text' must be a dict.*fields"),
    "index list": (store(index=["text"]), InvalidRecordError, r"index=\['text'\]"),
    "index fields": (store(index={"fields": "text"}), InvalidRecordError, r"index\['fields'\]='text' must be a list"),
    "index field int": (store(index={"fields": [3]}), InvalidRecordError, r"index\['fields'\]=3"),
    "index dims": (store(index={"embed": FAKE}), InvalidRecordError, r"index\['dims'\]=None"),
    "index other": (store(index={"dims": 3, "embed": FAKE}), InvalidRecordError, "the memory's own"),
    "ttl int": (store(ttl=5), InvalidRecordError, "ttl=5 must be a dict.*default_ttl"),
    "ttl default": (store(ttl={"default_ttl": "5"}), InvalidRecordError, r"ttl\['default_ttl'\]='5'"),
    "ttl refresh": (store(ttl={"refresh_on_read": "no"}), InvalidRecordError, "refresh_on_read"),
    "ttl interval": (store(ttl={"sweep_interval_minutes": -1}), InvalidRecordError, "above zero"),
    "template text": (store(template="{user_id}"), InvalidRecordError, "template='{user_id}' must be a list"),
    "template user": (store(template=("memories",)), InvalidRecordError, "must name '{user_id}'"),
    "template int": (store(template=("a", 3)), InvalidRecordError, "template=3"),
    "template number": (store(template=5), InvalidRecordError, "template=5"),
    "store agent": (store(agent_id="a\n"), InvalidScopeError, "agent_id='a"),
    "store agent empty": (store(agent_id=""), InvalidScopeError, "agent_id=''"),
    "store ranking": (store(ranking="cosine"), InvalidRecordError, "calibrated, similarity"),
    "store threshold": (store(threshold=2), InvalidRecordError, "threshold=2 must be a number in 0"),
    "store threshold text": (store(threshold="0.5"), InvalidRecordError, "threshold='0.5'"),
    "store threshold NaN": (store(threshold=NAN), InvalidRecordError, "threshold=nan"),
    "store similarity": (store(threshold=-2, ranking="similarity"), InvalidRecordError, r"-1\.\.1"),
    "namespace text": (on_store(lambda s: s.put("memories", "k", {"a": 1})), InvalidNamespaceError, "a tuple of labels"),
    "namespace empty": (on_store(lambda s: s.put((), "k", {"a": 1})), InvalidNamespaceError, "empty"),
    "namespace int": (on_store(lambda s: s.put((1,), "k", {"a": 1})), InvalidNamespaceError, "strings"),
    "namespace dot": (on_store(lambda s: s.put(("a.b",), "k", {"a": 1})), InvalidNamespaceError, "period"),
    "namespace root": (on_store(lambda s: s.put(("langgraph",), "k", {})), InvalidNamespaceError, "langgraph"),
    "value text": (on_store(lambda s: s.put(NS, "k", "text")), InvalidRecordError, "value='text'.*dict"),
    "value NaN": (on_store(lambda s: s.put(NS, "k", {"a": NAN})), InvalidRecordError, r"value\.a=nan"),
    "value object": (on_store(lambda s: s.put(NS, "k", {"a": object()})), InvalidRecordError, r"value\.a="),
    "value key": (on_store(lambda s: s.put(NS, "k", {1: 2})), InvalidRecordError, "string as a key"),
    "put index": (on_store(lambda s: s.put(NS, "k", {"a": "x"}, index="a")), InvalidRecordError, "list of paths"),
    "put index of numbers": (on_store(lambda s: s.put(NS, "k", {"a": "x"}, index=[1])), InvalidRecordError, r"index=\[1\]"),
    "put a long number": (on_store(lambda s: s.put(NS, "k", {"a": 10**5000})), InvalidRecordError, r"value\.a=<int>"),
    "put ttl": (on_store(lambda s: s.put(NS, "k", {"a": 1}, ttl="5")), InvalidRecordError, "ttl='5'"),
    "put ttl NaN": (on_store(lambda s: s.put(NS, "k", {"a": 1}, ttl=NAN)), InvalidRecordError, "ttl=nan"),
    "get namespace": (on_store(lambda s: s.get("memories", "k")), InvalidNamespaceError, "a tuple"),
    "search query": (on_store(lambda s: s.search(NS, query=3)), InvalidRecordError, "query=3"),
    "search limit": (on_store(lambda s: s.search(NS, limit="5")), InvalidRecordError, "limit='5'"),
    "search offset": (on_store(lambda s: s.search(NS, offset=-1)), InvalidRecordError, "offset=-1"),
    "search top_k": (on_store(lambda s: s.search(NS, top_k=3)), TypeError, "top_k"),
    "search filter": (on_store(lambda s: s.search(NS, filter={"a": {"$x": 1}})), InvalidFilterError, r"\$x.*\$eq"),
    "search filter text": (on_store(lambda s: s.search(NS, filter="a")), InvalidFilterError, "mapping"),
    "search filter number": (on_store(lambda s: s.search(NS, filter={1: 2})), InvalidFilterError, "part 1 must be a field"),
    "list by tuples": (on_store(lambda s: s.batch([ListNamespacesOp(match_conditions=(("prefix", ("a",)),))])), InvalidRecordError, "must be a MatchCondition"),
    "list depth": (on_store(lambda s: s.list_namespaces(max_depth=0)), InvalidRecordError, "max_depth=0"),
    "batch of dicts": (on_store(lambda s: s.batch([{"key": "k"}])), InvalidRecordError, "an op of a store"),
    "batch of one": (on_store(lambda s: s.batch(GetOp(NS, "k"))), InvalidRecordError, "an op of a store"),
    "batch of nothing": (on_store(lambda s: s.batch(None)), InvalidRecordError, "ops=None"),
    "abatch of a number": (on_store(lambda s: s.abatch(3)), InvalidRecordError, "ops=3"),
    "sweep text": (on_store(lambda s: s.start_ttl_sweeper("5")), InvalidRecordError, "sweep_interval_minutes='5'"),
    "sweep negative": (on_store(lambda s: s.start_ttl_sweeper(-5)), InvalidRecordError, "above zero"),
    # -- the saver
    "saver int": (lambda _: CommonplaceSaver(3), WrongTypeError, "memory=3"),
    "saver dict": (lambda _: CommonplaceSaver({}), WrongTypeError, "memory=dict.*folder"),
    "saver url": (lambda _: CommonplaceSaver("postgresql://u:secret@h/d"), InvalidRecordError, "not a URL"),
    "saver empty": (lambda _: CommonplaceSaver(""), InvalidRecordError, "memory=''"),
    "saver closed": (lambda m: CommonplaceSaver(closed(m)), MemoryClosedError, "Open it again"),
    "saver conn_string": (lambda _: CommonplaceSaver(conn_string="x"), TypeError, "Its parameters"),
    "owner text": (lambda m: CommonplaceSaver(m, owner="alice"), InvalidRecordError, "owner='alice' must be a function"),
    "owner scope": (lambda m: CommonplaceSaver(m, owner=ALICE), InvalidRecordError, "owner=Scope"),
    "owner async": (lambda m: CommonplaceSaver(m, owner=acoroutine), InvalidRecordError, "async def"),
    "owner class": (lambda m: CommonplaceSaver(m, owner=str), InvalidRecordError, "owner=.*'str'"),
    "owner list": (lambda m: CommonplaceSaver(m, owner=lambda *_: ["a"]).put(AT, empty_checkpoint(), {}, {}), InvalidScopeError, "user_id="),
    "serde text": (lambda m: CommonplaceSaver(m, serde="json"), InvalidRecordError, "serde='json'"),
    "serde class": (lambda m: CommonplaceSaver(m, serde=JsonPlusSerializer), InvalidRecordError, "Give an instance"),
    "get None": (on_saver(lambda s: s.get_tuple(None)), InvalidRecordError, "config=None.*thread_id"),
    "get a text": (on_saver(lambda s: s.get_tuple("1")), InvalidRecordError, "config='1'"),
    "get nothing": (on_saver(lambda s: s.get_tuple({})), InvalidRecordError, "thread_id=None"),
    "get a dict": (on_saver(lambda s: s.get_tuple({"configurable": {"thread_id": {"a": 1}}})), InvalidRecordError, "thread_id="),
    "get an id of a dict": (on_saver(lambda s: s.get_tuple({"configurable": {"thread_id": "1", "checkpoint_id": {"a": 1}}})), InvalidRecordError, "checkpoint_id="),
    "list before a text": (on_saver(lambda s: list(s.list(None, before={"configurable": "x"}))), InvalidRecordError, "before"),
    "prune by a list": (on_saver(lambda s: s.prune(["1"], strategy=["x"])), InvalidRecordError, "strategy="),
    "put None": (on_saver(lambda s: s.put(AT, None, {}, {})), InvalidRecordError, "checkpoint=None"),
    "put a dict": (on_saver(lambda s: s.put(AT, {}, {}, {})), InvalidRecordError, "checkpoint={} must have 'id'"),
    "put metadata": (on_saver(lambda s: s.put(AT, empty_checkpoint(), None, {})), InvalidRecordError, "metadata=None"),
    "put versions": (on_saver(lambda s: s.put(AT, empty_checkpoint(), {}, ["a"])), InvalidRecordError, "new_versions="),
    "aput a dict": (on_saver(lambda s: s.aput(AT, {}, {}, {})), InvalidRecordError, "must have 'id'"),
    "writes nowhere": (on_saver(lambda s: s.put_writes(AT, [("a", 1)], "t")), InvalidRecordError, "checkpoint_id=None"),
    "writes text": (on_saver(lambda s: s.put_writes(WRITES_AT, "ab", "t")), InvalidRecordError, "writes='ab'"),
    "writes no pairs": (on_saver(lambda s: s.put_writes(WRITES_AT, [1], "t")), InvalidRecordError, "writes=1 must be a pair"),
    "writes no task": (on_saver(lambda s: s.put_writes(WRITES_AT, [("a", 1)], None)), InvalidRecordError, "task_id=None"),
    "list a text": (on_saver(lambda s: list(s.list("1"))), InvalidRecordError, "config='1'"),
    "list limit": (on_saver(lambda s: list(s.list(None, limit="1"))), InvalidRecordError, "limit='1'"),
    "list filter": (on_saver(lambda s: list(s.list(AT, filter="x"))), InvalidRecordError, "filter='x'"),
    "list before": (on_saver(lambda s: list(s.list(AT, before="x"))), InvalidRecordError, "before='x'"),
    "delete None": (on_saver(lambda s: s.delete_thread(None)), InvalidRecordError, "thread_id=None"),
    "delete a list": (on_saver(lambda s: s.delete_thread(["1"])), InvalidRecordError, "thread_id="),
    "runs text": (on_saver(lambda s: s.delete_for_runs("12")), InvalidRecordError, "run_ids='12' must be a list"),
    "prune text": (on_saver(lambda s: s.prune("12")), InvalidRecordError, "thread_ids='12' must be a list"),
    "prune strategy": (on_saver(lambda s: s.prune(["1"], strategy="all")), InvalidRecordError, "keep_latest"),
    "copy None": (on_saver(lambda s: s.copy_thread(None, "2")), InvalidRecordError, "thread_id=None"),
    # -- models
    "chat name": (lambda _: LangChainChat("gpt-4o"), WrongTypeError, "model=str must be.*BaseChatModel"),
    "chat class": (lambda _: LangChainChat(FakeListChatModel), WrongTypeError, "model=the class"),
    "chat ours": (lambda _: LangChainChat(ScriptedChat([])), WrongTypeError, "model=.*ScriptedChat"),
    "chat nothing": (lambda _: LangChainChat(), TypeError, "LangChainChat.*parameters are model"),
    "chat id": (lambda _: LangChainChat(FakeListChatModel(responses=[]), id=3), InvalidRecordError, "id=3"),
    "embedder name": (lambda _: LangChainEmbedder("minilm"), WrongTypeError, "Embeddings"),
    "embedder ours": (lambda _: LangChainEmbedder(HashEmbedder()), WrongTypeError, "HashEmbedder"),
    "embedder dims": (lambda _: LangChainEmbedder(FAKE), InvalidRecordError, "Pass dimensions="),
    "embedder text": (lambda _: LangChainEmbedder(FAKE, dimensions="3"), InvalidRecordError, "dimensions='3'"),
    "embedder no name": (lambda _: LangChainEmbedder(FAKE, dimensions=3), InvalidRecordError, "Pass id="),
    "embedder positional": (lambda _: LangChainEmbedder(FAKE, 3), TypeError, "Its parameters are model"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_misuse_is_refused_with_the_way_out(shared: Memory, name: str) -> None:
    check(ROWS[name], shared)


def test_a_thread_is_not_deleted_letter_by_letter(tmp_path: Path) -> None:
    with CommonplaceSaver(str(tmp_path / "memory")) as saver:
        for thread in "12":
            saver.put(
                {"configurable": {"thread_id": thread, "checkpoint_ns": ""}},
                empty_checkpoint(),
                {},
                {},
            )

        with pytest.raises(InvalidRecordError):
            saver.prune("12", strategy="delete")

        assert len(list(saver.list(None))) == 2
