"""What a user of the store relies on beyond its contract: users, other agents, expiry, models."""

import asyncio
import contextlib
import json
import random
import threading
import time
from concurrent.futures import CancelledError
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from commonplace import (
    Fact,
    InvalidFilterError,
    InvalidRecordError,
    LoopRequiredError,
    Memory,
    Message,
    Record,
    Scope,
)
from commonplace.backends.shared import rows
from commonplace.backends.shared.rows import to_record
from commonplace.retrieval.calibration import PROBES
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import CommonplaceStore
from commonplace_langgraph.testing.store_contract import WordEmbeddings

ALICE = Scope(user_id="alice")
NAN = float("nan")
HERS = ("memories", "alice")
LONG = ("memories", "{user_id}", "{agent_id}")


@pytest.fixture
def store(memory: Memory) -> CommonplaceStore:
    return CommonplaceStore(memory)


def contents(found: Any) -> list[Any]:
    return sorted(one.value.get("content") for one in found)


# -- users and other agents --------------------------------------------------------------------


def test_what_another_agent_learned_is_found_and_the_other_way_round(
    memory: Memory, store: CommonplaceStore
) -> None:
    told = Scope(user_id="alice", agent_id="planner", session_id="s1")
    memory.add(["Alice keeps bees", Fact(text="Alice rows", metadata={"n": 1})], told)
    store.put(HERS, "k", {"content": "Alice drinks green tea"})

    found = {one.value["content"]: one for one in store.search(HERS, query="bees")}
    assert set(found) == {"Alice keeps bees", "Alice rows", "Alice drinks green tea"}
    assert found["Alice rows"].value == {"content": "Alice rows", "kind": "fact", "n": 1}
    assert contents(store.search(HERS, filter={"n": 1})) == ["Alice rows"]
    assert store.search(HERS, filter={"kind": "preference"}) == []
    rows = found["Alice rows"]
    assert store.get(HERS, rows.key) is not None
    assert memory.search("green tea", ALICE)[0].record.text == "Alice drinks green tea"
    assert store.list_namespaces(prefix=HERS) == [HERS]


def test_the_turns_of_a_conversation_are_no_items(memory: Memory, store: CommonplaceStore) -> None:
    told = Scope(user_id="alice", session_id="s1")
    memory.add(
        [Message(text="Which tea do I drink?"), Message(role="assistant", text="Done.")], told
    )
    memory.add(Fact(text="They talked about tea.", kind="summary"), told)
    listed = store.list_namespaces(prefix=HERS)
    store.put(HERS, "k", {"memory": "Alice drinks green tea"})

    assert listed == []
    for found in (store.search(HERS), store.search(HERS, query="tea"), store.search(("memories",))):
        assert [one.value["memory"] for one in found] == ["Alice drinks green tea"]
    assert store.list_namespaces(prefix=HERS) == [HERS]


def test_a_correction_of_what_another_learned_is_one_record(
    memory: Memory, store: CommonplaceStore
) -> None:
    key = memory.add("Alice rows", Scope(user_id="alice", agent_id="planner")).changes[0].id
    store.put(HERS, key, {"content": "Alice sails", "since": 2020})

    assert memory.get(key, ALICE).text == "Alice sails"  # type: ignore[union-attr]
    [found] = store.search(HERS, query="sails")
    assert (found.key, found.value) == (key, {"content": "Alice sails", "since": 2020})
    assert [one.text for one in memory.history(key, ALICE)] == ["Alice rows", "Alice sails"]
    store.delete(HERS, key)
    assert store.get(HERS, key) is None
    assert memory.list(ALICE).records == ()


def test_what_another_agent_corrects_the_store_gives_as_it_is_by_now(
    memory: Memory, store: CommonplaceStore
) -> None:
    store.put(HERS, "k", {"content": "Alice drinks tea", "n": 1})
    [before] = store.search(HERS)
    memory.update(memory.list(ALICE).records[0].id, "Alice drinks coffee", ALICE)
    [found] = store.search(HERS, query="coffee", filter={"content": "Alice drinks coffee"})

    assert (found.key, found.value) == ("k", {"content": "Alice drinks coffee", "n": 1})
    assert found.updated_at > before.updated_at
    store.put(HERS, "k", {"content": "Alice drinks water"})
    assert [one.value for one in store.search(HERS)] == [{"content": "Alice drinks water"}]


def test_no_user_sees_anothers_memory(memory: Memory, store: CommonplaceStore) -> None:
    secret = memory.add("Bob has a secret", Scope(user_id="bob")).changes[0].id
    store.put(("memories", "bob"), "k", {"content": "secret too"})
    store.put(("memories", "bob", "deep"), "k", {"content": "secret three"})

    for namespace in (HERS, ("memories", "bo"), ("memories", "bob "), ("docs",), ("memories", "*")):
        assert store.search(namespace, query="secret") == store.search(namespace) == []
        assert store.get(namespace, secret) is None
        store.delete(namespace, secret)
        store.put(namespace, secret, {"content": "mine"})
    assert len(store.search(("memories", "bob"), limit=20)) == 3
    assert "mine" not in contents(store.search(("memories", "bob"), limit=20))


def test_a_search_that_names_no_user_finds_items_alone(
    memory: Memory, store: CommonplaceStore
) -> None:
    for name in ("alice", "bob"):
        memory.add(f"{name} drinks tea", Scope(user_id=name))
        store.put(("memories", name, "x"), "k", {"content": f"{name} likes tea"})
    memory.add("carol drinks tea", Scope(user_id="carol"))
    memory.add(Fact(text="tea", namespace=("sports",)), Scope(user_id="carol"))
    memory.add("nobody drinks tea", Scope(agent_id="langgraph"))
    memory.add(Fact(text="tea", namespace=("docs",), metadata={"langgraph": {}}), ALICE)
    store.put(("docs",), "k", {"content": "on tea"})
    store.put(("memories",), "k", {"content": "all drink tea"})
    items = ["alice likes tea", "all drink tea", "bob likes tea"]

    for query in (None, "tea"):
        assert contents(store.search(("memories",), query=query)) == items
        assert contents(store.search((), query=query)) == [*items, "on tea"]
        assert contents(store.search(("memories", "bob"), query=query)) == [
            "bob drinks tea",
            "bob likes tea",
        ]
        pages = [store.search((), query=query, limit=2, offset=n) for n in (0, 2, 4)]
        assert [len(one) for one in pages] == [2, 2, 0]
        assert len({one.namespace for page in pages for one in page}) == 4
    ours = [("docs",), ("memories",), ("memories", "alice", "x"), ("memories", "bob", "x")]
    assert store.list_namespaces() == ours
    assert store.list_namespaces(suffix=("x",)) == ours[2:]
    assert store.list_namespaces(prefix=("memories", "*", "x")) == ours[2:]
    assert store.list_namespaces(max_depth=1) == ours[:2]
    assert store.list_namespaces(prefix=("memories", "bob")) == [("memories", "bob"), ours[3]]


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_items_of_many_users_are_listed_newest_first(store: CommonplaceStore, limit: int) -> None:
    chosen = random.Random(limit)
    put: list[str] = []
    for n in range(40):
        place = chosen.choice([("docs",), ("memories", "a"), ("memories", "b"), ("memories", "c")])
        store.put(place, f"k{n}", {"n": n})
        put.insert(0, f"k{n}")
    pages = [store.search((), limit=limit, offset=n) for n in range(0, 40, limit)]

    assert [one.key for page in pages for one in page] == put
    even = store.search((), limit=limit, filter={"n": {"$in": [*range(0, 40, 2)]}})
    assert [one.key for one in even] == put[1::2][:limit]


def test_what_was_put_is_found_above_it_until_it_is_forgotten(
    memory: Memory, store: CommonplaceStore
) -> None:
    store.put(HERS, "k", {"content": "Alice rows"})
    store.put(("memories", "bob"), "k", {"content": "Bob rows"})
    memory.forget(ALICE)

    assert contents(store.search(())) == contents(store.search((), query="rows")) == ["Bob rows"]
    assert store.list_namespaces() == [("memories", "bob")]


@pytest.mark.parametrize(
    "template", [("{user_id}",), ("{user_id}", "m"), ("{agent_id}", "{user_id}"), None]
)
def test_items_are_found_above_them_under_every_template(memory: Memory, template: Any) -> None:
    store = CommonplaceStore(memory, template=template)
    places = [("cook", "alice"), ("cook", "bob"), ("cook",), ("alice", "m"), ("alice", "m", "x")]
    for place in places:
        store.put(place, "k", {"content": "tea"})

    for prefix in ((), ("cook",), ("alice",), ("alice", "m")):
        fitting = sorted(one for one in places if one[: len(prefix)] == prefix)
        assert sorted(one.namespace for one in store.search(prefix)) == fitting
        assert sorted(one.namespace for one in store.search(prefix, query="tea")) == fitting
        assert store.list_namespaces(prefix=prefix) == fitting


def test_namespaces_are_listed_without_reading_items(
    memory: Memory, store: CommonplaceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        store.put(("docs", f"d{n % 3}"), f"k{n}", {"content": f"{n}"})
        store.put((*HERS, f"d{n % 3}"), f"k{n}", {"content": f"{n}"})
    parsed: list[object] = []

    def note(row: Any) -> Record:
        parsed.append(row)
        return to_record(row)

    monkeypatch.setattr(rows, "to_record", note)
    assert store.list_namespaces(prefix=("docs",)) == [("docs", f"d{n}") for n in range(3)]
    assert store.list_namespaces(prefix=HERS) == [(*HERS, f"d{n}") for n in range(3)]
    assert parsed == []
    memory.add(Fact(text="Alice rows", namespace=("sports", "water")), ALICE)
    memory.add(Fact(text="Alice sails", namespace=("memories", "bob")), ALICE)
    assert store.list_namespaces(prefix=HERS) == [HERS, *((*HERS, f"d{n}") for n in range(3))]
    assert len(parsed) < 10


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_namespaces_are_one_list_without_gaps(store: CommonplaceStore, limit: int) -> None:
    places = [
        (root, *rest)
        for root in ("docs", "memories", "docs ", "ärger", 'a"', "a", "a]")
        for rest in ((), ("bob",), ("bob", "x"), ("bob", "x", "y"), ("bobby", "x"), ("*",))
    ]
    for place in places:
        store.put(place, "k", {"content": "tea"}, index=False)
    store.put(("docs", "gone"), "k", {"content": "tea"}, index=False)
    store.delete(("docs", "gone"), "k")

    def pages(**given: Any) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        while page := store.list_namespaces(limit=limit, offset=len(found), **given):
            assert len(page) <= limit
            found += page
        return found

    assert sorted(pages()) == sorted(places)
    assert pages(prefix=("docs",)) == sorted(one for one in places if one[0] == "docs")
    assert sorted(pages(suffix=("x",))) == sorted(one for one in places if one[-1] == "x")
    for depth in (1, 2, 3):
        assert sorted(pages(max_depth=depth)) == sorted({one[:depth] for one in places})
    under = pages(prefix=("*", "bob"), max_depth=2)
    assert sorted(under) == sorted({one[:2] for one in places if one[1:2] == ("bob",)})


def test_a_template_may_name_the_agent(memory: Memory) -> None:
    store = CommonplaceStore(memory, template=LONG)
    for agent in ("planner", "cook"):
        memory.add(f"{agent} knows", Scope(user_id="alice", agent_id=agent))
        store.put(("memories", "alice", agent, "deep"), "k", {"content": f"{agent} wrote"})
    memory.add("nobody knows", ALICE)

    assert contents(store.search(("memories", "alice", "cook"))) == ["cook knows", "cook wrote"]
    assert len(store.search(HERS)) == 5
    assert store.list_namespaces(prefix=HERS) == [
        HERS,
        ("memories", "alice", "cook"),
        ("memories", "alice", "cook", "deep"),
        ("memories", "alice", "planner"),
        ("memories", "alice", "planner", "deep"),
    ]
    cooks = Scope(user_id="alice", agent_id="cook")
    assert sorted(one.text for one in memory.list(cooks).records) == ["cook knows", "cook wrote"]


def test_an_agent_of_the_store_owns_what_it_writes(memory: Memory) -> None:
    store = CommonplaceStore(memory, agent_id="cook")
    memory.add("planner knows", Scope(user_id="alice", agent_id="planner"))
    store.put(HERS, "k", {"content": "cook wrote"})

    assert contents(store.search(HERS)) == ["cook wrote"]
    assert [one.scope.agent_id for one in memory.list(ALICE).records] == ["cook", "planner"]


def test_forgetting_a_user_forgets_his_items(memory: Memory, store: CommonplaceStore) -> None:
    store.put((*HERS, "deep"), "k", {"content": "Alice rows"})
    store.put(("docs",), "k", {"content": "tea"})
    receipt = memory.forget(ALICE)

    assert receipt.complete
    assert store.search(HERS) == []
    assert contents(store.search(("docs",))) == ["tea"]


@pytest.mark.parametrize("template", [(), ("memories",), ("{user_id}", "{user_id}")])
def test_a_template_without_one_user_is_refused(memory: Memory, template: Any) -> None:
    with pytest.raises(InvalidRecordError, match="user_id"):
        CommonplaceStore(memory, template=template)


# -- more than the framework asks --------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": {"$in": [1, 3]}}, "ac"),
        ({"n": {"$nin": [1, 3]}}, "bd"),
        ({"n": {"$exists": True}}, "abc"),
        ({"n": {"$exists": False}}, "d"),
        ({"$or": [{"n": 1}, {"w": {"$eq": "x"}}]}, "ad"),
        ({"$or": [{"n": {"$gt": 1}}, {"n": 1}], "w": {"$exists": False}}, "abc"),
        ({"n": {"$in": []}}, ""),
    ],
)
def test_more_operators(store: CommonplaceStore, given: Any, expected: str) -> None:
    values: dict[str, Any] = {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}, "d": {"w": "x"}}
    store.batch([PutOp(("docs",), key, one) for key, one in values.items()])

    assert "".join(sorted(one.key for one in store.search(("docs",), filter=given))) == expected


@pytest.mark.parametrize(
    "given",
    [{"$and": []}, {"$or": []}, {"$or": [1]}, {"a": {"$in": 1}}, {"$threshold": 2},
     {"a": {"$gt": {}}}, {"a": {"$eq": 1, "b": 2}}, {"a": b""}],
)  # fmt: skip
def test_a_filter_that_says_nothing_is_refused(store: CommonplaceStore, given: Any) -> None:
    with pytest.raises(InvalidFilterError, match="exists"):
        store.search(("docs",), filter=given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(NAN, ""), ({"$eq": NAN}, ""), ({"$gt": NAN}, ""), ({"$lte": NAN}, ""), ({"$in": [NAN]}, ""),
     ({"$in": [1, NAN]}, "a"), ({"$ne": NAN}, "abc"), ({"$nin": [NAN]}, "abc"), ([NAN], "")],
)  # fmt: skip
def test_nan_in_a_filter_equals_nothing(store: CommonplaceStore, given: Any, expected: str) -> None:
    for key, value in {"a": 1, "b": 2.5, "c": "x"}.items():
        store.put(("docs",), key, {"n": value})

    for query in (None, "x"):
        found = store.search(("docs",), filter={"n": given}, query=query)
        assert "".join(sorted(item.key for item in found)) == expected
    if not isinstance(given, dict):
        stock = InMemoryStore()
        stock.put(("docs",), "a", {"n": 1})
        assert stock.search(("docs",), filter={"n": given}) == []


def test_a_filter_reaches_values_of_many_fields(store: CommonplaceStore) -> None:
    for n in range(3):
        store.put(("docs",), f"k{n}", {f"f{i}": i + n for i in range(60)})

    assert [one.key for one in store.search(("docs",), filter={"f59": 60}, query="f1")] == ["k1"]


def test_a_threshold_leaves_out_what_says_little(memory: Memory) -> None:
    store = CommonplaceStore(memory, threshold=0.5)
    store.put(("docs",), "a", {"content": "green tea"})
    store.put(("docs",), "b", {"content": "rowing boats"})

    assert [one.key for one in store.search(("docs",), query="green tea")] == ["a"]
    everything = store.search(("docs",), query="green tea", filter={"$threshold": 0.0})
    assert [one.key for one in everything] == ["a", "b"]
    tea, boats = [one.score for one in everything]
    assert tea >= 0.5 > boats


@pytest.mark.parametrize("ranking", ["calibrated", "similarity"])
def test_each_limit_up_to_fifty_is_one_search(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, ranking: Any
) -> None:
    store = CommonplaceStore(memory, ranking=ranking)
    store.batch([PutOp(("docs",), f"k{n}", {"t": f"tea {n}"}) for n in range(120)])
    asked: list[int] = []
    real = Memory.search

    def search(self: Memory, *args: Any, **given: Any) -> Any:
        asked.append(given["top_k"])
        return real(self, *args, **given)

    monkeypatch.setattr(Memory, "search", search)
    for number, limit in enumerate((5, 10, 11, 50), 1):
        assert len(store.search(("docs",), query="tea", limit=limit)) == limit
        assert len(asked) == number


def test_a_large_value_and_a_long_question_are_taken(store: CommonplaceStore) -> None:
    lines = [f"line {n} ü" for n in range(20_000)]
    store.put(("docs",), "file", {"lines": lines})
    with pytest.raises(InvalidRecordError, match=r"value=.* is too large") as raised:
        store.put(("docs",), "file", {"lines": lines * 100})
    assert raised.value.field == "value"

    [found] = store.search(("docs",), query="line 7 " * 5000)
    assert found.value == {"lines": lines}


def test_half_characters_come_back(store: CommonplaceStore) -> None:
    value = {"a": "\ud800", "b\udfff": ["\x00"], "n": 2**70}
    store.put(("docs", "\ud800"), "\udfff\x00", value)

    [found] = store.search(("docs", "\ud800"))
    assert (found.key, found.value) == ("\udfff\x00", value)


def test_a_text_of_a_write_that_was_overtaken_finds_nothing(memory: Memory) -> None:
    store = CommonplaceStore(memory)
    place = ("docs",)
    value = {"a": "green tea", "b": "rowing boats"}
    store.put(place, "k", value, index=["a", "b"])
    plain = Scope(agent_id="langgraph")
    [late] = memory.search("rowing boats", plain, where={"namespace": ["docs"]}, top_k=1)
    store.put(place, "k", {"a": "green tea"}, index=["a"])
    # As if two processes had written the item at once, and the other's second text came last.
    fact = Fact(text=late.record.text, key="late", metadata=late.record.metadata)
    memory.add(fact, plain, upsert=True)

    found = store.search(place, query="rowing boats")
    assert [one.value for one in found] == [{"a": "green tea"}]
    assert [one.value for one in store.search(place)] == [{"a": "green tea"}]


@pytest.mark.parametrize("value", [{"a": "gamma"}, None])
def test_a_text_of_a_write_that_was_overtaken_is_recalled_by_nobody(
    memory: Memory, store: CommonplaceStore, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    store.put(HERS, "k", {"a": "first"})
    real = Memory.batch

    def meanwhile(self: Memory, commands: Any, **given: Any) -> Any:
        monkeypatch.setattr(Memory, "batch", real)
        CommonplaceStore(memory).put(HERS, "k", {"a": "alpha", "b": "beta"}, index=["a", "b"])
        return real(self, commands, **given)

    monkeypatch.setattr(Memory, "batch", meanwhile)
    store.batch([PutOp(HERS, "k", value)])

    assert [one.record.text for one in memory.search("beta", ALICE)] == ["gamma"] * bool(value)
    assert store.list_namespaces(prefix=HERS) == [HERS] * bool(value)


def test_words_of_ours_in_other_hands_are_just_metadata(
    memory: Memory, store: CommonplaceStore
) -> None:
    entry = {"value": "{}", "key": '"k"', "at": 0, "told": ""}
    said = (1, {}, {"value": "{}"}, {**entry, "key": "k"}, {**entry, "at": 2**62}, entry)
    for n, one in enumerate(said):
        fact = Fact(text=f"Alice rows {n}", namespace=HERS, metadata={"langgraph": one})
        memory.add(fact, ALICE)
    bobs = ("memories", "bob")
    memory.add(Fact(text="Alice forges", namespace=bobs, metadata={"langgraph": entry}), ALICE)

    assert len(store.search(HERS, query="rows")) == len(store.search(HERS)) == 7
    assert store.get(("memories", "bob"), "k") is None
    assert store.search(("memories", "bob")) == []


def test_what_others_put_into_a_namespace_is_found_there(
    memory: Memory, store: CommonplaceStore
) -> None:
    trips = (*HERS, "trips")
    [record_id] = memory.add(Fact(text="Alice sailed", namespace=trips), ALICE).ids
    memory.add("Alice rows", ALICE)

    for query in (None, "sailed"):
        assert contents(store.search(trips, query=query)) == ["Alice sailed"]
        assert "Alice sailed" in contents(store.search((), query=query))
    assert store.list_namespaces() == [trips]
    assert store.list_namespaces(prefix=HERS) == [HERS, trips]
    store.put(trips, record_id, {"content": "Alice sailed twice"})
    item = store.get(trips, record_id)
    assert item is not None
    assert item.value == {"content": "Alice sailed twice"}
    assert [record.text for record in memory.list(ALICE, where={"namespace": trips})] == [
        "Alice sailed twice"
    ]


def test_a_key_like_an_id_is_any_key(store: CommonplaceStore) -> None:
    for key in ("\x00" * 36, "x" * 36, "0" * 36, "5f3a1c52-0b0e-5a5c-9a0b-7d2f6c1e4b11"):
        assert store.get(HERS, key) is None
        store.put(HERS, key, {"n": 1})
        assert store.get(HERS, key) is not None


# -- expiry ------------------------------------------------------------------------------------


def ends(memory: Memory) -> list[datetime | None]:
    page = memory.list(Scope(agent_id="langgraph"), include_expired=True)
    return [one.expires_at for one in page.records]


def test_a_read_lets_an_item_live_on(memory: Memory) -> None:
    store = CommonplaceStore(memory, ttl={"default_ttl": 60, "refresh_on_read": True})
    store.put(("docs",), "k", {"t": "tea"})
    [record] = memory.list(Scope(agent_id="langgraph")).records
    soon = datetime.now(UTC) + timedelta(minutes=5)

    reads: list[tuple[Any, bool]] = [
        (lambda: store.get(("docs",), "k", refresh_ttl=False), False),
        (lambda: store.search(("docs",), query="tea", refresh_ttl=False), False),
        (lambda: store.get(("docs",), "k"), True),
        (lambda: store.search(("docs",)), True),
        (lambda: asyncio.run(store.asearch(("docs",), query="tea")), True),
    ]
    updated = store.get(("docs",), "k").updated_at  # type: ignore[union-attr]
    for read, refreshes in reads:
        memory.update(record.id, None, record.scope, expires_at=soon)
        read()
        memory.flush()
        [end] = ends(memory)
        assert end is not None
        assert (end > soon) is refreshes
    assert store.get(("docs",), "k").updated_at == updated  # type: ignore[union-attr]


REFRESHES: list[tuple[Any, bool]] = [
    (None, False),
    ({"default_ttl": 60}, False),
    ({"refresh_on_read": False}, False),
    ({"refresh_on_read": True}, True),
]


@pytest.mark.parametrize(("ttl", "refreshes"), REFRESHES)
def test_a_read_extends_a_time_to_live_where_the_config_or_the_call_says_so(
    memory: Memory, ttl: Any, refreshes: bool
) -> None:
    store = CommonplaceStore(memory, ttl=ttl)
    store.put(("docs",), "k", {"t": "tea"}, ttl=60)
    [record] = memory.list(Scope(agent_id="langgraph")).records
    soon = datetime.now(UTC) + timedelta(minutes=5)
    memory.update(record.id, None, record.scope, expires_at=soon)
    store.get(("docs",), "k")
    store.search(("docs",))
    memory.flush()
    assert (ends(memory) != [soon]) is refreshes

    store.get(("docs",), "k", refresh_ttl=True)
    memory.flush()
    assert ends(memory) != [soon]


@pytest.mark.filterwarnings("ignore:The default datetime adapter is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("ttl", "refreshes"), REFRESHES)
def test_stock_stores_extend_times_to_live_likewise(ttl: Any, refreshes: bool) -> None:
    sqlite: Any = pytest.importorskip("pysqlite3")
    stores = pytest.importorskip("langgraph.store.sqlite")
    with contextlib.closing(sqlite.connect(":memory:", isolation_level=None)) as file:
        store = stores.SqliteStore(file, ttl=ttl)
        store.setup()
        store.put(("docs",), "k", {"t": "tea"}, ttl=60)
        file.execute("UPDATE store SET expires_at = 'soon'")
        store.get(("docs",), "k")
        store.search(("docs",))
        assert (file.execute("SELECT expires_at FROM store").fetchone()[0] != "soon") is refreshes


def test_a_read_lets_all_texts_of_an_item_live_on(memory: Memory) -> None:
    store = CommonplaceStore(
        memory,
        index={"fields": ["a", "b"]},  # type: ignore[typeddict-item]
        ttl={"refresh_on_read": True},
    )
    store.put(("docs",), "k", {"a": "green tea", "b": "rowing boats"}, ttl=60)
    soon = datetime.now(UTC) + timedelta(minutes=5)
    for one in memory.list(Scope(agent_id="langgraph")).records:
        memory.update(one.id, None, one.scope, expires_at=soon)
    store.search(("docs",), query="rowing boats")
    memory.flush()

    assert all(one is not None and one > soon for one in ends(memory))
    assert len(ends(memory)) == 2


def test_a_sweep_deletes_what_has_expired_and_nothing_else(memory: Memory) -> None:
    store = CommonplaceStore(memory, ttl={})
    over = datetime.now(UTC)
    memory.add(Fact(text="not ours", expires_at=over), ALICE)
    # What others have under the key of items is none, in a namespace or not.
    for text, namespace in (("of others", ()), ("in a namespace", ("docs",))):
        metadata = {"langgraph": "x"}
        others = Fact(text=text, expires_at=over, metadata=metadata, namespace=namespace)
        memory.add(others, ALICE)
    for place in (("docs",), HERS):
        store.put(place, "brief", {"a": "tea", "b": "milk"}, index=["a", "b"], ttl=1e-6)
        store.put(place, "long", {"t": "tea"}, ttl=60)
        store.put(place, "ever", {"t": "tea"})

    assert store.sweep_ttl() == 2
    assert asyncio.run(store.asweep_ttl()) == 0
    left = [one.text for one in memory.list(ALICE, include_expired=True).records]
    assert sorted(left) == ["in a namespace", "not ours", "of others", "tea", "tea"]
    assert len(ends(memory)) == 2


def test_a_sweeper_starts_and_stops(memory: Memory) -> None:
    store = CommonplaceStore(memory, ttl={"sweep_interval_minutes": 60})
    running = store.start_ttl_sweeper()
    assert store.stop_ttl_sweeper(10)
    assert running.result(10) is None
    assert store.stop_ttl_sweeper()

    swept = threading.Event()
    store.put(("docs",), "brief", {"t": "tea"}, ttl=1e-6)
    store._sweeper._sweep = lambda: (store.sweep_ttl(), swept.set())[0]  # type: ignore[func-returns-value]
    running = store.start_ttl_sweeper(0.0001)
    assert swept.wait(10)
    assert ends(memory) == []
    assert running.cancel()
    with pytest.raises(CancelledError):
        running.result()
    assert store.stop_ttl_sweeper(10)


class SlowEmbedder(HashEmbedder):
    """Takes its time with documents."""

    def embed(self, texts: Any, *, purpose: Any) -> list[list[float]]:
        if purpose == "document":
            time.sleep(1.0)
        return super().embed(texts, purpose=purpose)


@pytest.mark.parametrize("key", ["k", "5f3a1c52-0b0e-5a5c-9a0b-7d2f6c1e4b11"])
def test_a_time_to_live_counts_from_when_the_item_is_stored(tmp_path: Path, key: str) -> None:
    with Memory.open(str(tmp_path), embedder=SlowEmbedder()) as memory:
        store = CommonplaceStore(memory)
        value = {"a": "green tea", "b": "rowing boats"}
        store.put(HERS, key, value, index=["a", "b"], ttl=0.8 / 60)
        stored = datetime.now(UTC)

        found = store.get(HERS, key, refresh_ttl=False)
        records = memory.list(ALICE, include_expired=True).records
        ends = [one.expires_at for one in records if one.expires_at]
        assert found is not None
        assert len(ends) == 2
        assert all(abs((one - stored).total_seconds() - 0.8) < 0.4 for one in ends)


async def test_a_sweep_and_a_sweeper_can_be_awaited(memory: Memory) -> None:
    store = CommonplaceStore(memory)
    await store.setup()
    await store.aput(("docs",), "brief", {"t": "tea"}, ttl=1e-6)
    assert await store.sweep_ttl() == 1
    running = await store.start_ttl_sweeper(60)
    assert not running.done()
    assert await store.stop_ttl_sweeper(10)


# -- models and opening ------------------------------------------------------------------------


async def test_a_store_opens_its_own_memory_with_the_models_of_its_index(tmp_path: Path) -> None:
    model = WordEmbeddings()
    index: Any = {"dims": 64, "embed": model}
    with CommonplaceStore.open(tmp_path, index=index) as store:
        store.put(("docs",), "k", {"t": "tea"})
    async with CommonplaceStore.open(tmp_path, index=index) as store:
        assert [one.key for one in await store.asearch(("docs",), query="tea")] == ["k"]
    # Besides, the first search measures how this embedder's cosines are spread.
    assert [one for one in model.documents if one not in PROBES["latin"]] == ["tea"]


async def test_an_async_function_embeds_on_the_loop_that_calls(tmp_path: Path) -> None:
    loops = []

    async def embed(texts: Any) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return WordEmbeddings().embed_documents(list(texts))

    index: Any = {"dims": 64, "embed": embed}
    async with CommonplaceStore.open(tmp_path, index=index) as store:
        await store.aput(("docs",), "k", {"t": "tea"})
        assert [one.key for one in await store.asearch(("docs",), query="tea")] == ["k"]
        with pytest.raises(LoopRequiredError, match="asearch"):
            store.search(("docs",), query="tea")
        assert store.get(("docs",), "k") is not None
    assert {id(one) for one in loops} == {id(asyncio.get_running_loop())}


def test_an_index_of_another_model_than_the_memorys_is_refused(memory: Memory) -> None:
    index: Any
    for index in ({"dims": 64, "embed": WordEmbeddings()}, {"dims": 3}):
        with pytest.raises(InvalidRecordError, match="Leave 'embed' and 'dims' out"):
            CommonplaceStore(memory, index=index)
    with pytest.raises(InvalidRecordError, match="dims"):
        CommonplaceStore(memory, index={"embed": WordEmbeddings()})  # type: ignore[typeddict-item]
    CommonplaceStore(memory, index={"dims": 64, "fields": ["t"]})  # type: ignore[typeddict-item]


def test_a_model_that_fails_is_told_to_the_caller(tmp_path: Path) -> None:
    class Broken(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            raise ConnectionError(text)

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError

    with (
        CommonplaceStore.open(tmp_path, index={"dims": 8, "embed": Broken()}) as store,  # type: ignore[typeddict-item]
        pytest.raises(RuntimeError, match="ConnectionError"),
    ):
        store.search(("docs",), query="tea")


# -- many at once ------------------------------------------------------------------------------


def test_threads_and_loops_put_at_once_and_nothing_is_lost_or_mixed(
    store: CommonplaceStore,
) -> None:
    async def on_a_loop(me: str) -> None:
        puts = (store.aput(("docs", me), f"k{n}", {"me": me, "n": n}) for n in range(25))
        await asyncio.gather(*puts)

    def on_a_thread(me: str) -> None:
        for n in range(25):
            store.put(("docs", me), f"k{n}", {"me": me, "n": n})

    names = [f"t{n}" for n in range(8)]
    work = [threading.Thread(target=on_a_thread, args=(me,)) for me in names]
    loops = ["l0", "l1"]
    work += [threading.Thread(target=lambda me=me: asyncio.run(on_a_loop(me))) for me in loops]
    for one in work:
        one.start()
    for one in work:
        one.join()

    for me in (*names, *loops):
        found = store.search(("docs", me), limit=100)
        assert sorted(one.value["n"] for one in found) == list(range(25))
        assert {one.value["me"] for one in found} == {me}


async def test_a_caller_who_stops_waiting_leaves_no_half_batch(store: CommonplaceStore) -> None:
    puts = [PutOp(("docs",), f"k{n}", {"n": n}) for n in range(20)]
    task = asyncio.ensure_future(store.abatch(puts))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.memory.aflush()

    assert len(await store.asearch(("docs",), limit=100)) in (0, 20)


def test_random_operations_answer_as_a_dictionary_does(store: CommonplaceStore) -> None:
    labels = [
        "foo",
        "foobar",
        "FOO",
        "fo",
        "*",
        "foo\x1fbar",
        '"',
        'foo","bar',
        "foo%",
        "fo\u0308o",
    ]
    chosen = random.Random(11)
    model: dict[tuple[tuple[str, ...], str], Any] = {}
    for step in range(60):
        ops: list[Any] = []
        for _ in range(20):
            place = tuple(chosen.choice(labels) for _ in range(chosen.randint(1, 3)))
            key = f"k{chosen.randint(0, 1)}"
            kind = chosen.random()
            if kind < 0.5:
                value = {"t": "tea", "at": list(place), "step": step}
                ops.append(PutOp(place, key, value if kind < 0.4 else None))
            elif kind < 0.75:
                ops.append(GetOp(place, key))
            else:
                ops.append(SearchOp(place, query=chosen.choice([None, "tea"]), limit=500))
        for op, answer in zip(ops, store.batch(ops), strict=True):
            if isinstance(op, GetOp):
                assert (answer and answer.value) == model.get((op.namespace, op.key))  # type: ignore[union-attr]
            elif isinstance(op, SearchOp):
                size = len(op.namespace_prefix)
                expected = {k: v for k, v in model.items() if k[0][:size] == op.namespace_prefix}
                assert {(one.namespace, one.key): one.value for one in answer} == expected  # type: ignore[union-attr]
        for op in ops:
            if isinstance(op, PutOp):
                model[op.namespace, op.key] = op.value
        model = {place: value for place, value in model.items() if value is not None}


# -- langmem -----------------------------------------------------------------------------------


class Scripted(BaseChatModel):
    """Answers with tool calls, one list a turn; then with words."""

    turns: list[list[dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> "Scripted":
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Any:
        calls = self.turns.pop(0) if self.turns else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done", tool_calls=calls))])


langmem_warns = pytest.mark.filterwarnings("default")


@langmem_warns
def test_langmems_tools_work_on_the_store(memory: Memory, store: CommonplaceStore) -> None:
    langmem = pytest.importorskip("langmem")
    place = ("memories", "{user}")
    manage = langmem.create_manage_memory_tool(place, store=store)
    search = langmem.create_search_memory_tool(place, store=store)
    config: Any = {"configurable": {"user": "alice"}}

    answer = manage.invoke({"content": "Alice drinks green tea", "action": "create"}, config)
    key = answer.split()[-1]
    manage.invoke({"content": "Alice drinks black tea", "action": "update", "id": key}, config)
    learned = memory.add("Alice keeps bees", Scope(user_id="alice", agent_id="planner"))
    found = json.loads(search.invoke({"query": "tea"}, config))

    assert {one["value"]["content"] for one in found} == {
        "Alice drinks black tea",
        "Alice keeps bees",
    }
    bees = learned.changes[0].id
    manage.invoke({"content": "Alice keeps wasps", "action": "update", "id": bees}, config)
    manage.invoke({"action": "delete", "id": key}, config)
    assert [one.text for one in memory.list(ALICE).records] == ["Alice keeps wasps"]
    assert json.loads(search.invoke({"query": "tea"}, {"configurable": {"user": "bob"}})) == []


@langmem_warns
@pytest.mark.parametrize("place", [("memories",), ("docs", "shared"), ("{user}", "memories")])
def test_langmems_tools_work_where_no_user_is_named(store: CommonplaceStore, place: Any) -> None:
    langmem = pytest.importorskip("langmem")
    manage = langmem.create_manage_memory_tool(place, store=store)
    search = langmem.create_search_memory_tool(place, store=store)
    config: Any = {"configurable": {"user": "alice"}}
    store.put(("memories", "bob"), "k", {"content": "Bob drinks milk"})

    answer = manage.invoke({"content": "Tea is served at five", "action": "create"}, config)
    key = answer.split()[-1]
    given = {"content": "Tea is served at six", "action": "update", "id": key}
    manage.invoke(given, config)
    found = [one["value"]["content"] for one in json.loads(search.invoke({"query": "tea"}, config))]
    bobs = ["Bob drinks milk"] if place == ("memories",) else []
    assert sorted(found) == sorted(["Tea is served at six", *bobs])
    manage.invoke({"action": "delete", "id": key}, config)
    left = json.loads(search.invoke({"query": "tea"}, config))
    assert [one["value"]["content"] for one in left] == bobs


@langmem_warns
async def test_langmems_manager_works_where_no_user_is_named(store: CommonplaceStore) -> None:
    langmem = pytest.importorskip("langmem")
    await store.aput(
        ("memories",), "old", {"kind": "Memory", "content": {"content": "Tea at five"}}
    )
    insert = {"name": "Memory", "args": {"content": "Tea is served at six"}, "id": "1"}
    model = Scripted(turns=[[insert]])
    manager = langmem.create_memory_store_manager(
        model, namespace=("memories",), store=store, query_limit=8
    )
    await manager.ainvoke({"messages": [{"role": "user", "content": "Tea is at six"}]}, {})

    values = [one.value["content"]["content"] for one in await store.asearch((), query="tea")]
    assert sorted(values) == ["Tea at five", "Tea is served at six"]


@langmem_warns
async def test_langmems_manager_works_on_the_store(memory: Memory, store: CommonplaceStore) -> None:
    langmem = pytest.importorskip("langmem")
    memory.add("Alice keeps bees", ALICE)
    insert = {"name": "Memory", "args": {"content": "Alice drinks green tea"}, "id": "1"}
    model = Scripted(turns=[[insert]])
    manager = langmem.create_memory_store_manager(
        model, namespace=("memories", "{langgraph_user_id}"), store=store, query_limit=8
    )
    config: Any = {"configurable": {"langgraph_user_id": "alice"}}
    await manager.ainvoke({"messages": [{"role": "user", "content": "I drink green tea"}]}, config)

    values = [one.value for one in await store.asearch(HERS, query="green tea")]
    assert {"kind": "Memory", "content": {"content": "Alice drinks green tea"}} in values
    assert "green tea" in memory.search("green tea", ALICE)[0].record.text


def test_the_embedder_of_a_memory_serves_its_store(memory: Memory, store: CommonplaceStore) -> None:
    store.put(("docs",), "k", {"t": "tea"})

    assert isinstance(memory.embedder, HashEmbedder)
    assert ("tea",) in memory.embedder.calls
