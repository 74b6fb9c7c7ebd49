"""Misuses of the core by a newcomer: each a typed error that names the value, and nothing stored.

Every parameter of every public method and type is given every value of the wrong type; the tables
name what is not found in this way.
"""

import asyncio
import copy
import inspect
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace import (
    CommonplaceError,
    Delete,
    Extraction,
    Fact,
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    LoopRequiredError,
    Memory,
    MemoryAdmin,
    MemoryClosedError,
    Message,
    ModelRefusedError,
    Policy,
    Relation,
    Revise,
    Scope,
    Settings,
    StoreRefusedError,
    Upsert,
    WriteResult,
)
from commonplace.models.openai import OpenAIChat, OpenAIEmbedder
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
CYCLE: dict[str, Any] = {}
CYCLE["a"] = CYCLE
DEEP: dict[str, Any] = {}
for _ in range(1_000):
    DEEP = {"a": DEEP}


class TrickyText(str):
    """A text that may compare as it likes."""

    __slots__ = ()


NOW = datetime.now(UTC)
ODD: dict[str, Any] = {
    "none": None, "zero": 0, "minus": -1, "true": True, "huge": 10**30, "fraction": 1.5,
    "nan": float("nan"), "infinite": float("inf"), "empty": "", "spaces": "  ", "word": "x",
    "number": "10", "false": "false", "surrogate": "\ud800", "nul": "a\0b", "5MB": "x" * 5_000_000,
    "bytes": b"x", "list": [], "words": ["x"], "nones": [None], "dicts": [{}], "tuple": (),
    "dict": {}, "turn": {"role": "user", "content": "hi"},
    "turns": [{"role": "user", "content": "hi"}], "nan in a dict": {"a": float("nan")},
    "cycle": CYCLE, "deep": DEEP, "number as key": {1: 2}, "bytes in a dict": {"a": b"x"},
    "set in a dict": {"a": {1, 2}}, "date in a dict": {"a": NOW}, "too large": {"a": 2**63},
    "set": {"x"}, "no zone": datetime(2020, 1, 1), "date": "2020-01-01",  # noqa: DTZ001 -- the misuse
    "span": timedelta(-1), "class": object, "object": object(), "function": lambda *_: True,
    "tricky": TrickyText("x"), "embedder": HashEmbedder(), "scope": Scope(user_id="zed"),
    "iterator": iter(["x"]), "...": ..., "range": range(3), "now": NOW,
}  # fmt: skip
TEXTS = {"word", "number", "false", "date"}
NAMES = {*TEXTS, "none"}
TIMES = {"none", "now"}
MAPPINGS = {"none", "dict", "turn"}
EMPTY = {"list", "tuple", "set", "iterator", "dict", "empty"}
FINE: dict[str, set[str]] = {
    "content": {*TEXTS, "words"}, "scope": {"scope"}, "infer": {"none", "true"}, "kind": set(),
    "metadata": MAPPINGS, "key": NAMES, "upsert": {"true"}, "origin": set(),
    "identity": {"list", "words", "tuple", "set"}, "wait": {"true", "fraction"},
    "text": {*NAMES}, "merge": {"true"}, "relations": EMPTY | {"none"}, "importance": {"none", "zero"},  # noqa: E501 -- a table
    "pinned": {"none", "true"}, "expires_at": {*TIMES, "..."}, "helped": {"true"}, "commands": EMPTY - {"empty", "dict"},  # noqa: E501 -- a table
    "keep": {"zero", "huge"}, "older_than": {"none"}, "unused_for": {"none"}, "dry_run": {"true"},
    "kinds": {"list", "tuple"}, "top_k": set(), "threshold": {"none", "zero"},
    "where": {*MAPPINGS, "set in a dict", "too large"}, "predicate": {"none", "function", "class"},
    "include_superseded": {"true"}, "include_expired": {"true"}, "as_of": TIMES, "asked_at": TIMES,
    "since": TIMES, "decay": {"none", "true"}, "ranking": set(), "record_id": TEXTS,
    "record_ids": {"list", "words", "tuple", "set"}, "operations": {"list", "words", "tuple", "set"},  # noqa: E501 -- a table
    "limit": set(), "cursor": {"none"}, "entity": NAMES, "hops": set(),
    "records": {"none", "list", "words", "tuple", "set"}, "form": set(),
    "namespace": {"list", "words", "tuple"}, "prefix": {"list", "words", "tuple"},
    "after": {"list", "words", "tuple"}, "unredacted": {"list", "words", "tuple", "set"},
    "timeout": {"zero", "fraction"}, "write": set(), "max_waiting": {"zero"},
    "value": set(ODD), "on_failed": {"function", "class"}, "call": {"function", "class"},
}  # fmt: skip
# What one method takes otherwise than the others do.
ELSEWHERE: dict[str, set[str]] = {
    "search.text": TEXTS, "dead_letters.scope": {"none", "scope"}, "Message.text": {*TEXTS, "5MB"},
    "Fact.text": TEXTS, "Fact.metadata": MAPPINGS - {"none"}, "Fact.key": NAMES,
    "Fact.at": TIMES, "Fact.relations": EMPTY, "Fact.importance": {"zero"}, "Fact.pinned": {"true"},
    "Fact.expires_at": TIMES, "Fact.situation": {"none"}, "Fact.outcome": {"none"},
    "Fact.indexed": {"true"}, "Message.role": set(), "Message.name": NAMES, "Message.id": NAMES,
    "Message.at": TIMES, "Relation.subject": TEXTS, "Relation.object": TEXTS,
    "Relation.predicate": TEXTS, "Relation.subject_type": TEXTS, "Relation.object_type": TEXTS,
    "Relation.single_valued": {"none", "true"}, "Relation.valid_from": TIMES,
    "Relation.valid_to": TIMES, "Extraction.instructions": NAMES, "Extraction.in_session": {"true"},
    "Extraction.metadata": MAPPINGS - {"none"}, "Extraction.expires_at": TIMES,
    "Extraction.keep_messages": {"true"}, "Extraction.before": {"list", "tuple"},
    "Scope.user_id": TEXTS, "Scope.agent_id": NAMES,
    "Scope.session_id": NAMES, "Upsert.facts": set(), "Upsert.scope": {"scope"},
    "Delete.record_id": TEXTS, "Delete.scope": {"scope"}, "Revise.record": set(),
    "Revise.expires_at": {*TIMES, "..."}, "Revise.text": NAMES, "Revise.metadata": MAPPINGS,
    "Revise.namespace": {"none", "list", "words", "tuple"},
    "Policy.mode": set(), "Policy.threshold": {"none", "zero"}, "Policy.kinds": {"list", "tuple", "set"},  # noqa: E501 -- a table
    "Policy.metadata": MAPPINGS - {"none"}, "Policy.scope_search_by_agent": {"true"},
    "Policy.summaries": {"true"}, "Policy.note_tokens": {"none", "huge"},
    "Policy.count_tokens": {"none", "function", "class"}, "Policy.note_log": set(),
    "Fact.sources": {"list", "words", "tuple", "set"},
    "Policy.await_write": {"true"}, "Policy.times": {"true"}, "Policy.recall_timeout": {"fraction"},
    "Policy.instructions": {"true"}, "Policy.inject": set(),
    "Policy.header": {*TEXTS, "empty", "spaces"}, "Policy.intro": {*TEXTS, "empty", "spaces"},
    "Policy.tools": {"list", "tuple"}, "Policy.tool_instructions": {*TEXTS, "empty", "spaces", "5MB"},  # noqa: E501 -- a table
    "prune.kinds": {"list", "tuple", "set"}, "search.kinds": {"list", "tuple", "set"},
    "list.kinds": {"list", "tuple", "set"},
}  # fmt: skip
BY_THE_STORE = {"created_at", "expired_at", "conflict", "supports", "identity"}
PASSED_ON = {"args", "kwargs"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory whose one record no misuse may change."""
    folder = tmp_path_factory.mktemp("misused")
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        memory.add("Alice likes tea.", ALICE, key="tea")
        yield memory


def calls_of(memory: Memory, name: str) -> dict[str, Any]:
    """Make the arguments of a call that is right."""
    record_id = ALICE.record_id("fact", "tea")
    about = {"record_id": record_id, "scope": ALICE}
    return {
        "add": {"content": "Alice likes tea.", "scope": ALICE},
        "update": {**about, "text": "Alice likes tea."},
        "delete": about, "restore": about,
        "feedback": {**about, "helped": True}, "batch": {"commands": []},
        "prune": {"scope": ALICE, "keep": 5}, "forget": {"scope": Scope(user_id="nobody")},
        "search": {"text": "tea", "scope": ALICE}, "get": about,
        "get_many": {"record_ids": [record_id], "scope": ALICE}, "history": about,
        "get_excerpts": {"record_ids": [record_id], "scope": ALICE},
        "outdated_turns": {"record_ids": [record_id], "scope": ALICE},
        "statements": {"records": []},
        "list_users": {"namespace": ["x"]}, "scope_of": {"record_id": record_id},
        "follow": {"write": WriteResult(operation="x", pending=True), "on_failed": print},
        "before_close": {"call": print}, "was_forgotten": {"scope": ALICE, "since": NOW},
        "retry": {"operations": []}, "run": {"call": print}, "list_namespaces": {}, "flush": {},
        "dead_letters": {}, "list_scopes": {},
    }.get(name, {"scope": ALICE})  # fmt: skip


METHODS = {
    name: method
    for face in (MemoryAdmin, Memory)
    for name, method in inspect.getmembers(face, inspect.isfunction)
    if name[0] != "_" and name not in ("close", "aclose")
}
PAIRS = [
    (name, parameter)
    for name, method in sorted(METHODS.items())
    for parameter in list(inspect.signature(method).parameters)[1:]
    if parameter not in PASSED_ON
]
TYPES: dict[type, Mapping[str, Any]] = {
    Scope: {"user_id": "a"}, Message: {"text": "x"}, Fact: {"text": "x"},
    Relation: {"subject": "a", "predicate": "b", "object": "c"}, Extraction: {}, Policy: {},
    Upsert: {"facts": [], "scope": ALICE}, Delete: {"record_id": "x", "scope": ALICE},
    Revise: {},
}  # fmt: skip
FIELDS = [
    (made, field)
    for made in TYPES
    for field in inspect.signature(made).parameters
    if field not in BY_THE_STORE
]


def refuse(call: Callable[[], Any], what: str) -> None:
    """Require a typed error that names something, in a second."""
    started = time.process_time()
    with pytest.raises(CommonplaceError) as caught:
        call()
    assert isinstance(caught.value, ValueError), what
    assert len(str(caught.value)) < 1_000, what
    assert time.process_time() - started < 1, what


@pytest.mark.parametrize(("name", "parameter"), PAIRS, ids=str)
def test_a_value_of_a_wrong_type_is_refused(shared: Memory, name: str, parameter: str) -> None:
    plain = name.removeprefix("a") if name not in ("add",) else name
    fine = ELSEWHERE.get(f"{plain}.{parameter}", FINE.get(parameter))
    assert fine is not None, f"{parameter} is new: say which values are fine"
    before = shared.get(ALICE.record_id("fact", "tea"), ALICE)
    method = getattr(shared if hasattr(Memory, name) else shared.admin, name)

    async def wait(given: Mapping[str, Any]) -> None:
        await method(**given)

    # An asynchronous method makes the checks of its twin: that it makes them is seen by a few.
    values = list(ODD.items())[:: 5 if inspect.iscoroutinefunction(method) else 1]
    for odd, value in values:
        if odd in fine:
            continue
        given = {**calls_of(shared, plain), parameter: value}
        if inspect.iscoroutinefunction(method):
            refuse(lambda given=given: asyncio.run(wait(given)), odd)
        else:
            refuse(lambda given=given: method(**given), odd)

    assert shared.get(ALICE.record_id("fact", "tea"), ALICE) == before
    assert shared.admin.list_scopes() == [ALICE]
    assert (backlog := shared.flush()).pending == backlog.dead == 0


@pytest.mark.parametrize(("made", "field"), FIELDS, ids=lambda one: getattr(one, "__name__", one))
def test_a_field_of_a_wrong_type_is_refused(shared: Memory, made: type, field: str) -> None:
    fine = ELSEWHERE.get(f"{made.__name__}.{field}", FINE.get(field))
    assert fine is not None, f"{field} is new: say which values are fine"
    given = dict(TYPES[made])
    if made is Revise:
        given["record"] = shared.get(ALICE.record_id("fact", "tea"), ALICE)

    for odd, value in ODD.items():
        if odd in fine:
            continue

        def call(value: Any = value) -> None:
            found = made(**{**given, field: value})
            if made in (Upsert, Delete, Revise):
                shared.batch([found])

        refuse(call, odd)

    assert shared.admin.list_scopes() == [ALICE]


class Answering:
    """An embedder with whatever attributes and answer a test gives it."""

    id: Any = "answering"
    dimensions: Any = 3

    def __init__(self, answer: Any = None, **attributes: Any) -> None:
        self.answer = answer
        self.__dict__.update(attributes)

    def embed(self, texts: Any, *, purpose: str) -> Any:
        """Return the answer."""
        return self.answer


class AsyncAnswering(Answering):
    """The same, asynchronous."""

    async def embed(self, texts: Any, *, purpose: str) -> Any:
        """Return the answer."""
        return [[1, 0, 0] for _ in texts]


OPENINGS: dict[str, tuple[dict[str, Any], str]] = {
    "int": ({"path": 3}, "path=3 must be the path"),
    "line end": ({"path": "memory\n"}, r"path='memory\\n' must be the path"),
    "in RAM": ({"path": ":memory:"}, "every memory is on disk.*TemporaryDirectory"),
    "variable": ({"path": "$HOME/memory"}, "not of a variable.*expandvars"),
    "bytes": ({"path": b"x"}, "must be the path"),
    "config": ({"path": {"path": "x"}}, "must be the path"),
    "url": ({"path": "http://localhost:6333"}, "vectors=URL"),
    "secret": ({"path": "neo4j://u:secret@h"}, "path='neo4j://h' must be the path"),
    "sqlite": ({"path": "sqlite:///x.db"}, "not a URL"),
    "host": ({"path": "localhost:6333"}, "not a host and its port"),
    "nul": ({"path": "a\0b"}, "must be the path"),
    "surrogate": ({"path": "/tmp/\ud800"}, "must be the path"),
    "vectors int": ({"vectors": 6333}, "vectors=6333 must be a string"),
    "vectors host": ({"vectors": "localhost:6333"}, "qdrant://"),
    "vectors graph": ({"vectors": "neo4j://x"}, "qdrant://"),
    "vectors ftp": ({"vectors": "ftp://x"}, "qdrant://"),
    "vectors client": ({"vectors": object()}, "must be a string"),
    "vectors path": ({"vectors": Path("x")}, r"str\(path\)"),
    "graph vectors": ({"graph": "qdrant://x"}, "neo4j://"),
    "graph host": ({"graph": "localhost:7687"}, "neo4j://"),
    "graph http": ({"graph": "http://x:7474"}, "neo4j://"),
    "graph config": ({"graph": {"url": "x"}}, "must be a string"),
    "graph nul": ({"graph": "a\0"}, "graph="),
    "journal url": ({"journal": "http://x"}, "journal="),
    "journal int": ({"journal": 3}, "journal=3"),
    "settings dict": ({"settings": {"half_life": 3}}, "must be a Settings"),
    "settings none": ({"settings": {}}, "must be a Settings"),
    "settings class": ({"settings": Settings}, "must be a Settings"),
    "embedder name": ({"embedder": "minilm"}, "commonplace.models"),
    "embedder class": ({"embedder": HashEmbedder}, "must be an object with id"),
    "embedder class 2": ({"embedder": OpenAIEmbedder}, "must be an object with id"),
    "embedder chat": ({"embedder": ScriptedChat([])}, "must be an object with id"),
    "embedder function": ({"embedder": len}, "must be an object with id"),
    "embedder false": ({"embedder": False}, "must be an object with id"),
    "embedder config": ({"embedder": {"provider": "openai"}}, "must be an object with id"),
    "embedder text": ({"embedder": Answering(dimensions="384")}, "embedder.dimensions='384'"),
    "embedder 0": ({"embedder": Answering(dimensions=0)}, "embedder.dimensions=0"),
    "embedder -1": ({"embedder": Answering(dimensions=-1)}, "embedder.dimensions=-1"),
    "embedder none": ({"embedder": Answering(dimensions=None)}, "embedder.dimensions=None"),
    "embedder 3.0": ({"embedder": Answering(dimensions=3.0)}, "embedder.dimensions=3.0"),
    "embedder 10^9": ({"embedder": Answering(dimensions=10**9)}, "embedder.dimensions="),
    "embedder no id": ({"embedder": Answering(id=None)}, "embedder.id=None"),
    "embedder id": ({"embedder": Answering(id=3)}, "embedder.id=3"),
    "embedder empty id": ({"embedder": Answering(id="")}, "embedder.id=''"),
    "embedder embed": ({"embedder": Answering(embed=[1])}, "embedder.embed="),
    "chat name": ({"chat": "gpt-4o"}, "OpenAIChat"),
    "chat class": ({"chat": OpenAIChat}, "OpenAIChat"),
    "chat class 2": ({"chat": ScriptedChat}, "OpenAIChat"),
    "chat embedder": ({"chat": HashEmbedder()}, "OpenAIChat"),
    "chat function": ({"chat": len}, "OpenAIChat"),
    "chat true": ({"chat": True}, "OpenAIChat"),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_memory_is_not_opened_with_what_does_not_fit(tmp_path: Path, name: str) -> None:
    given, expected = OPENINGS[name]
    folder = {} if {"path"} & given.keys() else {"path": str(tmp_path / "memory")}

    with pytest.raises(InvalidRecordError, match=expected) as caught:
        Memory.open(**{"embedder": HashEmbedder(), **folder, **given})

    assert "secret" not in str(caught.value)
    assert not (tmp_path / "memory").exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    for where in ({"path": "file"}, {"journal": "file"}, {"vectors": "file"}):
        named = {
            name: place.replace("file", str(tmp_path / "file")) for name, place in where.items()
        }
        with pytest.raises(InvalidRecordError, match="is a file and not a folder"):
            Memory.open(embedder=HashEmbedder(), **named)

    assert (tmp_path / "file").read_text() == "x"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_of_a_folder_that_cannot_be_made_the_error_speaks_of_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreRefusedError, match=r"Not a directory.* that folder, or give another"):
        Memory.open(str(tmp_path / "file" / "memory"), embedder=HashEmbedder())


def test_of_the_file_in_a_memory_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Memory.open(str(tmp_path), embedder=HashEmbedder()).close()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidRecordError) as caught:
        Memory.open("memory.db", embedder=HashEmbedder())

    assert str(caught.value) == (
        "path='memory.db' is a file and not a folder. It is inside a memory: give the folder "
        f"{str(tmp_path)!r}."
    )


def test_facts_alone_are_not_asked_of_a_memory_without_a_chat_model(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        with pytest.raises(InvalidRecordError, match=r"infer=.*Open .* Memory.open\(chat="):
            memory.add(Message(text="hi"), ALICE, infer=Extraction(keep_messages=False))

        assert memory.flush().pending == 0
        assert memory.list(ALICE).records == ()


def test_an_extraction_without_a_chat_model_says_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.add(Message(text="hi"), ALICE, infer=True)

    assert "there is none; open the memory with Memory.open(chat=...)" in caplog.text


CALLS: dict[str, tuple[Callable[[Memory], Any], str]] = {
    "positional message": (lambda m: Message("hi"), r"by name, not 'hi' .*Message\(text="),  # type: ignore[misc]
    "message as a dict": (lambda m: Message({"role": "user"}), "by name"),  # type: ignore[misc]
    "positional fact": (lambda m: Fact("x"), r"Fact\(text=...\)"),  # type: ignore[misc]
    "positional scope": (lambda m: Scope("alice"), r"Scope\(user_id=...\)"),  # type: ignore[misc]
    "positional relation": (lambda m: Relation("a", "b", "c"), r"Relation\(subject="),  # type: ignore[misc]
    "positional settings": (lambda m: Settings("./x"), r"Settings\(path="),  # type: ignore[misc]
    "positional policy": (lambda m: Policy("both"), r"Policy\(mode="),  # type: ignore[misc]
    "content": (lambda m: Message(content="hi"), "Did you mean 'text'"),  # type: ignore[call-arg]
    "no text": (lambda m: Message(), "Its parameters are text, role"),  # type: ignore[call-arg]
    "misspelt": (lambda m: Fact(txt="x"), "Did you mean 'text'"),  # type: ignore[call-arg]
    "user": (lambda m: Scope(user="x"), "Did you mean 'user_id'"),  # type: ignore[call-arg]
    "no scope": (lambda m: m.add("x"), "scope=Scope"),  # type: ignore[call-arg]
    "user_id": (lambda m: m.add("x", user_id="a"), "scope=Scope"),  # type: ignore[call-arg]
    "limit": (lambda m: m.search("x", ALICE, limit=3), "Did you mean 'top_k'"),  # type: ignore[call-arg]
    "filters": (lambda m: m.search("x", ALICE, filters={}), "Did you mean 'where'"),  # type: ignore[call-arg]
    "topk": (lambda m: m.search("x", ALICE, topk=3), "Did you mean 'top_k'"),  # type: ignore[call-arg]
    "memory_id": (lambda m: m.get(memory_id="x", scope=ALICE), "Did you mean 'record_id'"),  # type: ignore[call-arg]
    "llm": (lambda m: Memory.open("x", llm=1), "Did you mean 'chat'"),  # type: ignore[call-arg]
    "embeder": (lambda m: Memory.open("x", embeder=1), "Did you mean 'embedder'"),  # type: ignore[call-arg]
    "positional embedder": (lambda m: Memory.open("x", HashEmbedder()), "embedder"),  # type: ignore[misc]
    "constructor": (lambda m: Memory("./x"), r"Memory.open\('./memory'\)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_says_how_it_would(shared: Memory, name: str) -> None:
    call, expected = CALLS[name]

    with pytest.raises(TypeError, match=expected):
        call(shared)


REQUESTS: dict[str, tuple[Callable[[Memory], Any], type[Exception], str]] = {
    "scope as a text": (lambda m: m.add("x", "alice"), InvalidRecordError, "Scope"),
    "arguments swapped": (lambda m: m.add(ALICE, "x"), InvalidRecordError, "Scope"),
    "scopes with a text": (lambda m: m.search("x", [ALICE, "a"]), InvalidRecordError, "Scope"),
    "no scopes": (lambda m: m.search("x", []), InvalidRecordError, "Scope"),
    "record as id": (lambda m: m.delete(m.list(ALICE).records[0], ALICE), InvalidRecordError, "record_id"),  # noqa: E501 -- a table
    "generator": (lambda m: m.add((x for x in "ab"), ALICE), InvalidRecordError, "content"),
    "bytes": (lambda m: m.add(b"abc", ALICE), InvalidRecordError, "content=b'abc'"),
    "too many": (lambda m: m.add(["x"] * 1001, ALICE), InvalidRecordError, "1000"),
    "one command": (lambda m: m.batch(Delete(record_id="x", scope=ALICE)), InvalidRecordError, "list of commands"),  # noqa: E501 -- a table
    "text as facts": (lambda m: m.batch([Upsert(facts="tea", scope=ALICE)]), InvalidRecordError, "list of Facts"),  # noqa: E501 -- a table
    "filter of Mongo": (lambda m: m.search("x", ALICE, where={"a": {"$ne": 1}}), InvalidFilterError, r"\$ne"),  # noqa: E501 -- a table
    "user in the filter": (lambda m: m.search("x", ALICE, where={"user_id": "b"}), InvalidFilterError, "scope"),  # noqa: E501 -- a table
    "None in the filter": (lambda m: m.list(ALICE, where={"a": None}), InvalidFilterError, "None"),
    "day in the filter": (lambda m: m.list(ALICE, where={"created_at": {"gt": "yesterday"}}), InvalidFilterError, "ISO"),  # noqa: E501 -- a table
    "no zone in the filter": (lambda m: m.list(ALICE, where={"created_at": {"gt": "2020-01-01"}}), InvalidFilterError, "zone"),  # noqa: E501 -- a table
    "10,000 keys": (lambda m: m.list(ALICE, where={f"k{n}": n for n in range(10_000)}), InvalidFilterError, "64"),  # noqa: E501 -- a table
    "id with a newline": (lambda m: Scope(user_id="a\n"), InvalidScopeError, "space"),
    "id with a tab": (lambda m: Scope(user_id="a\tb"), InvalidScopeError, "control"),
    "id that turns": (lambda m: Scope(user_id="a\u202eb"), InvalidScopeError, "invisible"),
    "id of Mongo": (lambda m: Scope(user_id={"$ne": None}), InvalidScopeError, "must be a string"),
    "id of 257": (lambda m: Scope(user_id="a" * 257), InvalidScopeError, "256"),
    "id of a million": (lambda m: Scope(user_id="a" * 10**6), InvalidScopeError, "256"),
    "id not composed": (lambda m: Scope(user_id="e\u0301"), InvalidScopeError, "NFC"),
    "wildcard": (lambda m: Scope(user_id="*"), InvalidScopeError, "wildcard"),
    "no id": (lambda m: Scope(), InvalidScopeError, "must have an id"),
    "32 KiB and 1": (lambda m: m.add("x" * (32 * 1024 + 1), ALICE), InvalidRecordError, "32768"),
    "invisible": (lambda m: m.add("\u200d" * 10**6, ALICE), InvalidRecordError, "visible"),
    "invisible tail": (lambda m: m.add("a" + "\u200d" * 10**6, ALICE), InvalidRecordError, "bytes"),
    "query of 1 MB": (lambda m: m.search("x" * 10**6, ALICE), InvalidRecordError, "bytes"),
    "kind misspelt": (lambda m: Fact(text="x", kind="facts"), InvalidRecordError, "preference"),
    "mode auto": (lambda m: Policy(mode="auto"), InvalidRecordError, "static_control"),
    "role bot": (lambda m: Message(text="x", role="bot"), InvalidRecordError, "assistant"),
    "key of a list": (lambda m: m.add(["a", "b"], ALICE, key="k"), InvalidRecordError, "single text"),  # noqa: E501 -- a table
    "path of metadata": (lambda m: m.add("x", ALICE, metadata={"a": [{"b": {1}}]}), InvalidRecordError, r"\['a'\]\[0\]\['b'\]"),  # noqa: E501 -- a table
    "whole number": (lambda m: Settings(max_pending=1.5), InvalidRecordError, "max_pending"),
    "prefixes": (lambda m: Settings(single_valued=("a", 1)), InvalidRecordError, "single_valued"),
    "too deep": (lambda m: m.relations(ALICE, hops=4), InvalidRecordError, "1..3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_be_met_names_the_value(shared: Memory, name: str) -> None:
    call, expected, words = REQUESTS[name]

    with pytest.raises(expected, match=words) as caught:
        call(shared)

    assert isinstance(caught.value, ValueError)
    assert shared.admin.list_scopes() == [ALICE]


ANSWERS: dict[str, Any] = {
    "short": [[1.0, 2.0]], "nan": [[float("nan"), 0, 0]], "infinite": [[float("inf"), 0, 0]],
    "zero": [[0, 0, 0]], "text": "abc", "texts": [["1", "2", "3"]], "two": [[1, 2, 3]] * 2,
    "none": None, "generator": iter([[1, 2, 3]]), "dict": {"data": []}, "ragged": [[1], [1, 2]],
    "flat": [1, 2, 3], "huge": [[10**400, 0, 0]], "booleans": [[True, False, True]],
    "complex": [[1j, 0, 0]], "empty": [],
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_no_vector_is_never_stored(tmp_path: Path, name: str) -> None:
    embedder = Answering(ANSWERS[name])
    with Memory.open(str(tmp_path), embedder=embedder) as memory:
        with pytest.raises(InvalidRecordError, match="Check the embedder"):
            memory.add("hello", ALICE, wait=5)

        [dead] = memory.admin.dead_letters(ALICE)
        assert "vector" in dead.reason
        assert memory.list(ALICE).records == ()


def test_an_embedder_with_another_signature_is_refused(tmp_path: Path) -> None:
    embedder = Answering(embed=lambda texts: [[1, 0, 0]])
    with (
        Memory.open(str(tmp_path), embedder=embedder) as memory,
        pytest.raises(ModelRefusedError, match=r"'answering'.*purpose"),
    ):
        memory.add("hello", ALICE, wait=5)


def test_an_asynchronous_model_is_awaited_in_an_asynchronous_call_only(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path / "1"), embedder=AsyncAnswering()) as memory:
        for call in (lambda: memory.add("x", ALICE), lambda: memory.search("x", ALICE)):
            with pytest.raises(LoopRequiredError, match="Await a"):
                call()
        assert memory.list(ALICE).records == ()
    chat = AsyncScriptedChat([])
    with (
        Memory.open(str(tmp_path / "2"), embedder=HashEmbedder(), chat=chat) as memory,
        pytest.raises(LoopRequiredError, match="Await aadd"),
    ):
        memory.add(Message(text="hi"), ALICE)


@pytest.mark.parametrize("name", METHODS)
def test_a_closed_memory_says_so(tmp_path: Path, name: str) -> None:
    memory = Memory.open(str(tmp_path), embedder=HashEmbedder())
    given = calls_of(memory, name if name == "add" else name.removeprefix("a"))
    admin = memory.admin
    memory.close()

    async def call() -> None:
        found = getattr(memory if hasattr(Memory, name) else admin, name)(**given)
        if inspect.iscoroutine(found):
            await found

    with pytest.raises(MemoryClosedError, match="Open it again"):
        asyncio.run(call())


async def test_a_blocking_call_works_in_a_running_loop(shared: Memory) -> None:
    assert shared.search("tea", ALICE)
    with pytest.raises(TypeError, match="await"):
        await shared.search("tea", ALICE)  # type: ignore[misc]


def test_an_open_memory_is_neither_pickled_nor_copied(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="Open it again in each process"):
                call(memory)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_memory_is_used_without_a_word(tmp_path: Path) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.add("Alice likes tea.", ALICE)
        child = os.fork()
        if not child:
            code = 1
            try:
                memory.add("Alice has a cat.", ALICE)
                code = 0 if len(memory.list(ALICE).records) == 2 else 2
            finally:
                os._exit(code)
        watch = threading.Timer(20, os.kill, (child, 9))
        watch.start()
        status = os.waitpid(child, 0)[1]
        watch.cancel()

        assert os.waitstatus_to_exitcode(status) == 0
        assert len(memory.list(ALICE).records) == 2


def test_an_unreadable_answer_names_the_model(tmp_path: Path) -> None:
    chat = ScriptedChat(["no", "no"])
    with (
        Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory,
        pytest.raises(commonplace.ModelUnreadableError, match="'scripted'"),
    ):
        memory.add(Message(text="hi"), ALICE, infer=Extraction(keep_messages=False))
