"""LangGraph's stores beside `CommonplaceStore`."""

import importlib
import math
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from commonplace_langgraph import CommonplaceStore
from commonplace_langgraph.testing.store_contract import DIMENSIONS, WordEmbeddings

from . import Awaited, Case, Section, public, tried

ALICE, DOCS = ("memories", "alice"), ("docs", "a", "b")
DEEP = {"n": 1}
for _ in range(200):
    DEEP = {"n": DEEP}


def index(fields=("$",)):
    fields = list(fields)
    return {"dims": DIMENSIONS, "embed": WordEmbeddings(), "fields": fields, "text_fields": fields}


def in_memory(folder, stack):
    return InMemoryStore(index=index())


def sqlite(folder, stack):
    connection = engine.connect(":memory:", check_same_thread=False, isolation_level=None)
    stack.callback(connection.close)
    store = SqliteStore(connection, index=index())
    store.setup()
    return store


def ours(**options):
    def opened(folder, stack):
        return stack.enter_context(CommonplaceStore(str(folder), index=index(), **options))

    return opened


def awaited(opened):
    return lambda folder, stack: Awaited(opened(folder, stack))


def filled(do):
    """Run on a store with three memories of alice, of bob one, and one other item."""

    def run(s):
        for n, text in enumerate(("green tea", "black tea", "a red boat")):
            s.put(ALICE, f"k{n}", {"text": text, "n": n, "of": {"kind": "xyx"[n]}})
        s.put(("memories", "bob"), "k0", {"text": "green tea", "n": 5})
        s.put(DOCS, "k0", {"text": "a map", "n": 7, "of": {"kind": "z"}})
        return do(s)

    return run


def keys(found):
    return sorted((*one.namespace, one.key) for one in found)


def order(found):
    return [one.key for one in found]


def put_again(s):
    s.put(ALICE, "k", {"text": "tea"})
    first = s.get(ALICE, "k")
    s.put(ALICE, "k", {"text": "boat"})
    then = s.get(ALICE, "k")
    return then.value, then.created_at == first.created_at


def unindexed_again(s):
    s.put(ALICE, "k", {"text": "tea"})
    s.put(ALICE, "k", {"text": "tea"}, index=False)
    return [one.score for one in s.search(ALICE, query="tea") if one.score is not None]


def indexed_by(s):
    s.put(ALICE, "k", {"text": "tea", "note": "boat"}, index=["note"])
    s.put(ALICE, "l", {"text": "boat", "note": "tea"}, index=["text", "note"])
    return keys(s.search(ALICE, query="boat"))


def kept(value):
    def run(s):
        s.put(DOCS, "k", {"v": value}, index=False)
        return s.get(DOCS, "k").value

    return run


def batch(s):
    ops = [PutOp(ALICE, "a", {"text": "tea"}), GetOp(ALICE, "a"), SearchOp(ALICE)]
    ops += [ListNamespacesOp()]
    return s.batch(ops), s.batch(ops[1:]), s.batch([])


def bad_batch(s):
    bad = PutOp(ALICE, "b", {"text": "tea"}), PutOp(("a.b",), "k", {"n": 1})
    return tried(s.batch, bad), s.get(ALICE, "b")


def scores(s):
    found = s.search(ALICE, query="green tea")
    return [(one.key, round(one.score, 3)) for one in found]


def gone(s):
    s.delete(ALICE, "k0")
    return s.get(ALICE, "k0"), keys(s.search(ALICE)), s.delete(ALICE, "no")


def emptied(s):
    s.put(("a",), "k", {"n": 1})
    s.delete(("a",), "k")
    return s.list_namespaces()


def ttl(s):
    s.put(ALICE, "k", {"text": "tea"}, ttl=5)
    return s.get(ALICE, "k", refresh_ttl=True).value, len(s.search(ALICE, refresh_ttl=True))


def swept(s):
    s.put(ALICE, "k", {"text": "tea"}, ttl=5)
    return s.sweep_ttl()


def sweeper(s):
    s.start_ttl_sweeper()
    return bool(s.stop_ttl_sweeper(timeout=5))


def found_by(condition, project=keys):
    return filled(lambda s: project(s.search((), filter=condition)))


CASES = [
    Case("put(namespace, key, value); get(namespace, key)", lambda s: (s.put(ALICE, "k", {"text": "tea", "n": [1, {}]}), s.get(ALICE, "k"))),
    Case("get(namespace, key) of what is not there", lambda s: s.get(ALICE, "k")),
    Case("put(...) again", put_again, "`created_at` stays that of the first put; stock stores make it new"),
    Case("put(..., index=False); search(..., query=)", lambda s: (s.put(ALICE, "k", {"text": "tea"}, index=False), keys(s.search(ALICE, query="tea")), keys(s.search(ALICE))), "what is not indexed is listed, and not found by a query; there it comes last, without a score"),
    Case("put(..., index=False) over what was indexed", unindexed_again, "its old vector goes"),
    Case("put(..., index=[paths])", indexed_by),
    Case("put(..., ttl=); get, search(..., refresh_ttl=)", ttl, "times to live are kept; `InMemoryStore` refuses them"),
    Case("put((), ...)", lambda s: s.put((), "k", {})),
    Case('put(("a.b",), ...)', lambda s: s.put(("a.b",), "k", {})),
    Case('put(("",), ...)', lambda s: s.put(("",), "k", {})),
    Case("put((1,), ...)", lambda s: s.put((1,), "k", {})),
    Case('put(("langgraph",), ...)', lambda s: s.put(("langgraph", "a"), "k", {})),
    Case("put(..., value) with a list as value", lambda s: s.put(ALICE, "k", [1]), "`InvalidRecordError`, a `ValueError`, in place of a `TypeError`, before anything is stored"),
    Case("put(..., value) with a time in it", kept(datetime(2026, 1, 1, tzinfo=UTC)), "text in ISO format, as `SqliteStore` keeps it; there the object itself"),
    Case("put(..., value) with NaN in it", kept(math.nan), "JSON has none: leave the key out, or store None"),
    Case("put(..., value) with 64 bits and more", kept(2**70), ""),
    Case("put(..., value) of 2 MiB", lambda s: len(kept("x" * 2**21)(s)["v"])),
    Case("put(..., value) of 17 MiB", lambda s: len(kept("x" * 17 * 2**20)(s)["v"]), "at most 16 MiB: split it over several keys, or store a reference to a file"),
    Case("put(..., value) nested 200 deep", lambda s: bool(kept(DEEP)(s)), "at most 128 deep: store the inner part as a text of JSON"),
    Case("delete(namespace, key)", filled(gone)),
    Case("search(namespace_prefix)", filled(lambda s: (keys(s.search(ALICE)), keys(s.search(("memories",))), keys(s.search(("none",)))))),
    Case("search(())", filled(lambda s: keys(s.search(())))),
    Case("search(...) without a query: order", filled(lambda s: order(s.search(ALICE))), "newest first; there as they were put"),
    Case("search(..., query=): order", filled(lambda s: order(s.search(ALICE, query="green tea")))),
    Case("search(..., query=): scores", filled(scores), 'a probability, 0..1; `ranking="similarity"` gives the cosine'),
    Case("search((), query=)", filled(lambda s: keys(s.search((), query="tea")))),
    Case("search(..., limit=, offset=)", filled(lambda s: [len(s.search((), limit=3)), len(s.search((), limit=3, offset=3)), s.search((), offset=9)])),
    Case("search(..., query=, limit=, offset=)", filled(lambda s: [len(s.search((), query="tea", limit=2)), len(s.search((), query="tea", limit=2, offset=3))]), ""),
    Case("search(..., limit=-1)", filled(lambda s: len(s.search((), limit=-1))), "a `limit` is at least 0: pass as many as you want"),
    Case("search(..., filter={key: value})", found_by({"n": 1})),
    Case('search(..., filter={key: {"$eq": value}})', found_by({"n": {"$eq": 5}})),
    Case('search(..., filter={key: {"$ne": value}})', found_by({"n": {"$ne": 5}})),
    Case('search(..., filter={key: {"$gt": ..., "$lte": ...}})', found_by({"n": {"$gt": 0, "$lte": 5}})),
    Case('search(..., filter={key: {"$gte": ..., "$lt": ...}})', found_by({"n": {"$gte": 1, "$lt": 7}})),
    Case('search(..., filter={key: {"$gt": a text}})', found_by({"text": {"$gt": "b"}}), "texts and ISO dates are compared too; there a `ValueError`"),
    Case('search(..., filter={a missing key: {"$gt": ...}})', found_by({"none": {"$gt": 1}}), "finds nothing; there a `TypeError`"),
    Case('search(..., filter={a missing key: {"$ne": ...}})', found_by({"of": {"$ne": 1}}), ""),
    Case("search(..., filter={key: True}) of a 1", found_by({"n": True}), "`True` is not 1"),
    Case("search(..., filter={key: {nested: value}})", found_by({"of": {"kind": "y"}}), ""),
    Case('search(..., filter={"key.nested": value})', found_by({"of.kind": "y"}), "dots lead to nested values, unless a value has that very key; there never"),
    Case('search(..., filter={key: {"$in": [...]}})', found_by({"n": {"$in": [1, 5]}}), "works, as do `$nin`, `$exists` and `$threshold`; there a `ValueError`"),
    Case('search(..., filter={"$or": [...]})', found_by({"$or": [{"n": 1}, {"n": 7}]}), "works; there `$or` is a key"),
    Case('search(..., filter={key: {"$unknown": ...}})', found_by({"n": {"$unknown": 1}})),
    Case("search(..., query=, filter=)", filled(lambda s: keys(s.search(ALICE, query="tea", filter={"n": {"$gt": 0}})))),
    Case("list_namespaces()", filled(lambda s: sorted(s.list_namespaces()))),
    Case("list_namespaces(prefix=, suffix=)", filled(lambda s: [sorted(s.list_namespaces(prefix=("memories",))), s.list_namespaces(suffix=("b",)), s.list_namespaces(prefix=("*", "a"))])),
    Case("list_namespaces(max_depth=)", filled(lambda s: sorted(s.list_namespaces(max_depth=1)))),
    Case("list_namespaces(limit=, offset=)", filled(lambda s: [s.list_namespaces(limit=1), s.list_namespaces(limit=5, offset=1)])),
    Case("list_namespaces() of what was emptied", emptied, "a namespace without items is not listed"),
    Case("batch(ops)", batch, 'reads see the state before the writes of their batch, `ListNamespacesOp` too'),
    Case("batch(ops) with one that is refused", bad_batch, "all are checked before the first takes effect; there labels are checked by `put` alone"),
    Case("sweep_ttl()", swept, "as `SqliteStore` has it"),
    Case("start_ttl_sweeper(); stop_ttl_sweeper(timeout=)", sweeper, "as `SqliteStore` has it"),
]  # fmt: skip

STORE = Section(
    name="langgraph_store",
    title="LangGraph: store",
    packages=("langgraph-checkpoint",),
    columns={
        "`InMemoryStore`": (in_memory, ours()),
        "its awaitable methods": (awaited(in_memory), awaited(ours())),
        'with `ranking="similarity"`': (in_memory, ours(ranking="similarity")),
    },
    cases=CASES,
    interface=public(BaseStore, but=("supports_ttl", "ttl_config")),
)
SECTIONS = {STORE.name: STORE}
SQLITE = {
    "put(..., index=False) over what was indexed": "its old vector goes",
    "put(..., value) with a list as value": "`InvalidRecordError`, a `ValueError`, in place of a `TypeError`",
    "put(..., value) with NaN in it": "JSON has none, and there it becomes None: store None",
    "put(..., value) with 64 bits and more": "is kept",
    "put(..., value) of 17 MiB": "at most 16 MiB: split it over several keys, or store a reference to a file",
    "put(..., value) nested 200 deep": "at most 128 deep: store the inner part as a text of JSON",
    "search(...) without a query: order": "newest first; there by last change, within a second as they were put",
    "search(..., query=): scores": 'a probability, 0..1; `ranking="similarity"` gives the cosine',
    "search(..., query=, limit=, offset=)": "a page is full; there the limit is cut before the offset",
    "search(..., limit=-1)": "a `limit` is at least 0: pass as many as you want",
    'search(..., filter={a missing key: {"$ne": ...}})': "finds items without the key too, as `InMemoryStore`",
    "search(..., filter={key: True}) of a 1": "`True` is not 1",
    "search(..., filter={key: {nested: value}})": "finds it, as `InMemoryStore`; there a `ValueError`",
    'search(..., filter={key: {"$in": [...]}})': "works; there a `ValueError`",
    'search(..., filter={"$or": [...]})': "works; there a `ValueError`",
}
try:  # it needs an SQLite that loads extensions
    loads = hasattr(sqlite3.Connection, "enable_load_extension")
    engine = sqlite3 if loads else importlib.import_module("pysqlite3")
    from langgraph.store.sqlite import SqliteStore
except ImportError:
    pass
else:
    SECTIONS["langgraph_sqlite"] = replace(
        STORE,
        name="langgraph_sqlite",
        title="LangGraph: store, beside SqliteStore",
        packages=("langgraph-checkpoint-sqlite",),
        columns={"`SqliteStore`": (sqlite, ours())},
        cases=[replace(case, why=SQLITE.get(case.call, "")) for case in CASES],
    )
