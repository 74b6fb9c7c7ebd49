"""Test contract of a LangGraph `BaseStore`: inherit from it and define a `make` fixture.

Where shipped stores disagree, it demands what loses, leaks and surprises least.
"""

import asyncio
import copy
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

__all__ = ["Make", "StoreContract", "WordEmbeddings"]

Make = Callable[..., BaseStore]
DIMENSIONS = 64
DOCS = ("docs",)
BAD_OPS: dict[str, Any] = {
    "a label with a period": PutOp(("docs", "a.b"), "k", {"a": 1}),
    "an empty label": PutOp(("docs", ""), "k", {"a": 1}),
    "a label that is no text": PutOp(("docs", 1), "k", {"a": 1}),  # type: ignore[arg-type]
    "no label at all": PutOp((), "k", {"a": 1}),
    "the reserved root": PutOp(("langgraph", "a"), "k", {"a": 1}),
    "a value with a set": PutOp(DOCS, "k", {"a": {1}}),
    "a value that is no number": PutOp(DOCS, "k", {"a": math.nan}),
    "a value that is no mapping": PutOp(DOCS, "k", ["a"]),  # type: ignore[arg-type]
    "an unknown operator": SearchOp(DOCS, filter={"a": {"$regex": "x"}}),
    "a negative limit": SearchOp(DOCS, limit=-1),
    "a negative offset": SearchOp(DOCS, offset=-1),
    "a prefix with a period": SearchOp(("a.b",)),
    "a path with a period": ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
}
VALUE: dict[str, Any] = {
    "text": "Ünal trinkt 茶 ☕\n",
    "numbers": [0, -1, 2**53 + 1, 0.1 + 0.2, 1e-300, True, None],
    "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": []}}}}}}}}},
    "key with a space": {"a.b": {}},
    "$dollar": "",
}


class WordEmbeddings(Embeddings):
    """Embeds a text as the sum of its words' directions: texts that share words are near.

    Attributes:
        queries, documents: every text embedded as such, oldest first.
    """

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.documents: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        self.queries.append(text)
        return _vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts, one unit vector each."""
        self.documents.extend(texts)
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()) or [text]:
        for byte in hashlib.blake2b(word.encode(), digest_size=4).digest():
            vector[byte % DIMENSIONS] += 1.0 if byte & 64 else -1.0
    vector[0] += 0.01
    length = math.sqrt(sum(one * one for one in vector))
    return [one / length for one in vector]


def keys(found: Sequence[Any]) -> list[str]:
    """Read the keys of items, in their order."""
    return [one.key for one in found]


def fill(store: BaseStore, **values: Any) -> None:
    """Put values into `DOCS` by key, in one batch."""
    store.batch([PutOp(DOCS, key, value) for key, value in values.items()])


class StoreContract:
    """Inherit it as `TestMyStore` and define `make`; namespaces all begin with `docs` or `notes`.

    `make(embeddings=..., fields=[...], **more)` opens an empty store that embeds these fields of
    values; without arguments it embeds whole values with `WordEmbeddings`.
    """

    @pytest.fixture
    def make(self) -> Make:
        """Open empty stores."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, make: Make) -> BaseStore:
        """Open one that embeds whole values."""
        return make()

    # -- items ---------------------------------------------------------------------------------

    def test_an_item_comes_back_exactly_as_put(self, store: BaseStore) -> None:
        store.put(("docs", "a b", "ü*"), "a/b c", VALUE)
        found = store.get(("docs", "a b", "ü*"), "a/b c")

        assert found is not None
        assert (found.namespace, found.key) == (("docs", "a b", "ü*"), "a/b c")
        assert found.value == VALUE
        assert [type(one) for one in found.value["numbers"]] == [
            type(one) for one in VALUE["numbers"]
        ]
        assert store.get(("docs", "a b"), "a/b c") is None
        assert store.get(("docs", "a b", "ü*"), "a/b") is None

    def test_a_key_may_be_anything_that_has_a_text(self, store: BaseStore) -> None:
        names = ["1", " ", "*", "a.b", "x" * 1000, "é", "e\u0301", "'; DROP TABLE store; --"]
        for name in names:
            store.put(DOCS, name, {"name": name})
        store.put(DOCS, 7, {"name": "7"})  # type: ignore[arg-type]

        for name in [*names, "7"]:
            found = store.get(DOCS, name)
            assert found is not None
            assert found.value == {"name": name}

    def test_a_put_replaces_the_value_and_keeps_when_it_was_made(self, store: BaseStore) -> None:
        before = datetime.now(UTC)
        store.put(DOCS, "k", {"a": 1, "b": 1})
        first = store.get(DOCS, "k")
        store.put(DOCS, "k", {"a": 2})
        second = store.get(DOCS, "k")

        assert first is not None
        assert second is not None
        assert second.value == {"a": 2}
        assert before <= first.created_at == second.created_at
        assert first.updated_at < second.updated_at <= datetime.now(UTC)

    def test_a_deleted_item_is_gone_from_everywhere(self, store: BaseStore) -> None:
        fill(store, k={"text": "green tea"})
        store.delete(DOCS, "k")
        store.delete(DOCS, "k")
        store.delete(DOCS, "never there")

        assert store.get(DOCS, "k") is None
        assert store.search(DOCS) == store.search(DOCS, query="green tea") == []
        assert store.list_namespaces(prefix=DOCS) == []

    def test_what_is_put_again_after_a_deletion_is_new(self, store: BaseStore) -> None:
        fill(store, k={"text": "green tea"})
        store.delete(DOCS, "k")
        deleted = datetime.now(UTC)
        store.put(DOCS, "k", {"text": "rowing boats"})

        [found] = store.search(DOCS, query="rowing boats")
        assert found.value == {"text": "rowing boats"}
        assert found.created_at >= deleted

    def test_no_value_is_shared_with_the_store(self, store: BaseStore) -> None:
        given = copy.deepcopy(VALUE)
        store.put(DOCS, "k", given)
        given["deep"].clear()
        reads: list[Callable[[], Any]] = [
            lambda: store.get(DOCS, "k"),
            lambda: store.search(DOCS)[0],
            lambda: store.search(DOCS, query="tea")[0],
        ]
        for read in reads:
            found = read()
            assert found.value == VALUE
            found.value["deep"].clear()

        found = store.get(DOCS, "k")
        assert found is not None
        assert found.value == VALUE

    # -- batches -------------------------------------------------------------------------------

    def test_results_line_up_with_ops_and_reads_come_before_writes(self, store: BaseStore) -> None:
        fill(store, a={"n": 1})
        results = store.batch(
            [
                PutOp(DOCS, "a", {"n": 2}),
                GetOp(DOCS, "a"),
                PutOp(("notes",), "b", {"n": 3}),
                SearchOp(("notes",)),
                PutOp(DOCS, "a", {"n": 4}),
                ListNamespacesOp((MatchCondition("prefix", ("notes",)),)),
                GetOp(DOCS, "missing"),
            ]
        )

        assert [type(one) for one in results[:3]] == [type(None), type(results[1]), type(None)]
        assert results[1].value == {"n": 1}  # type: ignore[union-attr]
        assert results[2:] == [None, [], None, [], None]
        found = store.get(DOCS, "a")
        assert found is not None
        assert found.value == {"n": 4}

    def test_a_put_and_a_deletion_in_one_batch_leave_what_came_last(self, store: BaseStore) -> None:
        fill(store, a={"n": 1}, b={"n": 1})
        store.batch([PutOp(DOCS, "a", None), PutOp(DOCS, "a", {"n": 2})])
        store.batch([PutOp(DOCS, "b", {"n": 2}), PutOp(DOCS, "b", None)])

        assert [one.value for one in store.search(DOCS)] == [{"n": 2}]

    @pytest.mark.parametrize("bad", BAD_OPS)
    def test_a_bad_op_leaves_no_trace_of_its_batch(self, store: BaseStore, bad: str) -> None:
        fill(store, old={"n": 1})
        with pytest.raises((ValueError, TypeError)):
            store.batch([PutOp(DOCS, "new", {"n": 2}), PutOp(DOCS, "old", None), BAD_OPS[bad]])

        assert keys(store.search(DOCS)) == ["old"]

    @pytest.mark.parametrize("bad", BAD_OPS)
    async def test_a_bad_op_fails_nobody_else(self, store: BaseStore, bad: str) -> None:
        puts = [store.aput(DOCS, f"k{n}", {"n": n}) for n in range(3)]
        answers = await asyncio.gather(
            *puts[:2], store.abatch([BAD_OPS[bad]]), puts[2], return_exceptions=True
        )

        assert [isinstance(one, ValueError | TypeError) for one in answers] == [0, 0, 1, 0]
        assert sorted(keys(await store.asearch(DOCS))) == ["k0", "k1", "k2"]

    def test_nothing_asked_is_nothing_done(self, store: BaseStore) -> None:
        assert store.batch([]) == asyncio.run(store.abatch([])) == []

    # -- namespaces ----------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "other",
        ["foobar", "FOO", "fo", "foo ", "foo\x1f", "foo%", "foo_", "foo*", "*", "foo/bar", '"',
         "föö", "foo,bar", "foo\\", "foo\u200b", "fo\u0301o"],
    )  # fmt: skip
    def test_no_label_reaches_into_another(self, store: BaseStore, other: str) -> None:
        for namespace in (
            ("docs", "foo"),
            ("docs", "foo", "bar"),
            ("docs", other),
            ("docs", other, "bar"),
        ):
            store.put(namespace, "k", {"in": list(namespace), "text": "tea"})

        for label, rest in (("foo", other), (other, "foo")):
            for query in (None, "tea"):
                found = store.search(("docs", label), query=query)
                assert {one.namespace for one in found} == {("docs", label), ("docs", label, "bar")}
                assert all(one.value["in"] == list(one.namespace) for one in found)
            store.delete(("docs", rest), "missing")
        store.delete(("docs", other), "k")
        assert store.get(("docs", "foo"), "k") is not None

    def test_a_search_finds_what_is_below_and_not_above(self, store: BaseStore) -> None:
        for namespace in (("docs",), ("docs", "a"), ("docs", "a", "b"), ("docs", "b")):
            store.put(namespace, "k", {"text": "tea"})

        found = store.search(("docs", "a"))
        assert {one.namespace for one in found} == {("docs", "a"), ("docs", "a", "b")}
        assert len(store.search(("docs",))) == 4
        assert store.search(("docs", "a", "b", "c")) == []

    def test_namespaces_are_listed_while_something_is_in_them(self, store: BaseStore) -> None:
        for namespace in (("docs", "a", "x"), ("docs", "b", "x"), ("docs", "b", "y")):
            store.put(namespace, "k", {"a": 1})
        store.get(("docs", "ghost"), "k")
        store.search(("docs", "ghost"))
        store.delete(("docs", "a", "x"), "k")

        assert store.list_namespaces(prefix=("docs",)) == [("docs", "b", "x"), ("docs", "b", "y")]

    def test_namespaces_are_matched_label_by_label(self, store: BaseStore) -> None:
        every = [
            ("docs",), ("docs", "a"), ("docs", "a", "x"), ("docs", "ab", "x"), ("docs", "*", "x"),
            ("docs", "a", "b", "x"),
        ]  # fmt: skip
        for namespace in every:
            store.put(namespace, "k", {"a": 1})

        def listed(**given: Any) -> set[tuple[str, ...]]:
            return {*store.list_namespaces(**{"prefix": ("docs",), **given})}

        assert listed() == {*every}
        assert listed(prefix=["docs", "a"]) == {
            every[1],
            every[2],
            every[5],
        }  # any sequence will do
        assert listed(prefix=("docs", "*", "x")) == {every[2], every[3], every[4]}
        assert listed(suffix=("a", "x")) == {every[2]}
        assert listed(suffix=("*", "x")) == {*every[2:]}
        assert listed(max_depth=2) == {every[0], every[1], ("docs", "ab"), ("docs", "*")}
        assert listed(max_depth=1) == {("docs",)}
        pages = [store.list_namespaces(prefix=("docs",), limit=4, offset=n) for n in (0, 4, 8)]
        assert [len(one) for one in pages] == [4, 2, 0]
        assert {*pages[0], *pages[1]} == {*every}

    # -- filters -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"n": 1}, "a"),
            ({"n": {"$eq": 1}}, "a"),
            ({"n": {"$ne": 1}}, "bcdefg"),
            ({"n": {"$gt": 1}}, "bc"),
            ({"n": {"$gte": 1, "$lt": 10}}, "ab"),
            ({"n": {"$lte": 1}}, "a"),
            ({"n": 2, "word": "two"}, "b"),
            ({"n": True}, "d"),
            ({"word": {"$gt": "p"}}, "b"),
            ({"when": {"$gte": "2026-02-01"}}, "f"),
            ({"when": {"$lt": "2026-02-01T00:00:00+00:00"}}, "e"),
            ({"nested": {"x": 1}}, "g"),
            ({"nested": {"x": {"$gte": 1}}}, "g"),
            ({"nested": {}}, "g"),
            ({"nested": {"x": 1, "z": 1}}, ""),
            ({"list": [1, {"k": "v"}]}, "g"),
            ({"list": [1]}, ""),
            ({"a b": "spaced"}, "a"),
            ({"a.b": "dotted"}, "a"),
            ({"nested.x": 1}, "g"),
            ({"unknown": {"$lt": 5}}, ""),
            ({"unknown": 5}, ""),
            ({}, "abcdefg"),
        ],
    )
    def test_a_filter_says_exactly_what_is_found(
        self, store: BaseStore, given: dict[str, Any], expected: str
    ) -> None:
        fill(
            store,
            a={"n": 1, "word": "one", "a b": "spaced", "a.b": "dotted", "t": "tea"},
            b={"n": 2, "word": "two", "t": "tea"},
            c={"n": 10, "t": "tea"},
            d={"n": True, "t": "tea"},
            e={"when": "2026-01-31T23:00:00Z", "t": "tea"},
            f={"when": "2026-02-01T01:00:00+00:00", "t": "tea"},
            g={"nested": {"x": 1, "y": 2}, "list": [1, {"k": "v"}], "t": "tea"},
        )

        for query in (None, "tea"):
            found = store.search(DOCS, filter=given, query=query, limit=20)
            assert "".join(sorted(keys(found))) == expected

    def test_a_filter_narrows_before_the_limit_is_cut(self, store: BaseStore) -> None:
        store.batch([PutOp(DOCS, f"k{n}", {"n": n, "t": "tea"}) for n in range(40)])

        for query in (None, "tea"):
            found = store.search(DOCS, filter={"n": {"$gte": 37}}, query=query, limit=3)
            assert sorted(keys(found)) == ["k37", "k38", "k39"]

    def test_an_unknown_operator_is_refused_by_an_empty_store(self, store: BaseStore) -> None:
        for given in ({"a": {"$regex": "x"}}, {"a": {"b": {"$near": 1}}}):
            with pytest.raises(ValueError, match="operator"):
                store.search(DOCS, filter=given)

    # -- pages ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("query", [None, "tea", "tea and boats 7"])
    def test_pages_together_are_all_items_once(self, store: BaseStore, query: str | None) -> None:
        words = ["tea", "boats", "tea tea", "bees"]
        store.batch([PutOp(DOCS, f"k{n}", {"t": f"{words[n % 4]} {n % 9}"}) for n in range(60)])

        pages = [store.search(DOCS, query=query, limit=7, offset=n) for n in range(0, 70, 7)]

        assert [len(one) for one in pages] == [7] * 8 + [4, 0]
        assert len({*keys([one for page in pages for one in page])}) == 60
        whole = store.search(DOCS, query=query, limit=60)
        assert keys([one for page in pages for one in page]) == keys(whole)

    def test_items_that_are_equally_near_fill_a_page(self, store: BaseStore) -> None:
        store.batch([PutOp(DOCS, f"k{n}", {"t": "the same tea"}) for n in range(10)])

        first, second = (store.search(DOCS, query="tea", limit=5, offset=n) for n in (0, 5))
        assert sorted(keys(first) + keys(second)) == [f"k{n}" for n in range(10)]

    def test_a_limit_of_none_finds_nothing(self, store: BaseStore) -> None:
        fill(store, k={"t": "tea"})

        assert store.search(DOCS, limit=0) == store.search(DOCS, query="tea", limit=0) == []

    # -- queries -------------------------------------------------------------------------------

    def test_the_nearest_comes_first_with_the_highest_score(self, store: BaseStore) -> None:
        fill(store, a={"t": "bees in the garden"}, b={"t": "green tea"}, c={"t": "green boats"})

        found = store.search(DOCS, query="green tea")
        scores = [one.score for one in found]
        assert keys(found)[:2] == ["b", "c"]
        assert all(one is not None and -1.0 <= one <= 1.0 for one in scores)
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
        assert found[0].value == {"t": "green tea"}

    def test_without_a_query_there_is_no_score(self, store: BaseStore) -> None:
        fill(store, a={"t": "green tea"})

        for query in (None, ""):
            assert [one.score for one in store.search(DOCS, query=query)] == [None]

    def test_a_question_is_embedded_as_one(self, make: Make) -> None:
        model = WordEmbeddings()
        store = make(embeddings=model)
        fill(store, a={"t": "green tea"})
        store.search(DOCS, query="which tea")

        assert model.queries == ["which tea"]
        assert "which tea" not in model.documents

    def test_an_item_that_is_not_indexed_is_only_listed(self, store: BaseStore) -> None:
        fill(store, a={"t": "green tea"})
        store.put(DOCS, "b", {"t": "green tea too"}, index=False)

        assert keys(store.search(DOCS, query="green tea")) == ["a"]
        assert sorted(keys(store.search(DOCS))) == ["a", "b"]
        assert sorted(keys(store.search(DOCS, filter={"t": {"$ne": 1}}))) == ["a", "b"]

    def test_an_item_that_is_put_unindexed_leaves_no_vector(self, store: BaseStore) -> None:
        fill(store, a={"t": "green tea"})
        store.put(DOCS, "a", {"t": "boats"}, index=False)
        assert store.search(DOCS, query="green tea") == []

        store.put(DOCS, "a", {"t": "boats"})
        assert keys(store.search(DOCS, query="boats")) == ["a"]

    def test_only_the_named_fields_are_embedded(self, make: Make) -> None:
        model = WordEmbeddings()
        store = make(embeddings=model, fields=["title", "meta.by", "lines[*].t"])
        value = {
            "title": "tea",
            "meta": {"by": "ann"},
            "lines": [{"t": "x"}, {"t": "y"}],
            "z": "no",
        }
        store.put(DOCS, "a", value)
        store.put(DOCS, "b", {"title": "boats", "z": "only"}, index=["z"])

        assert sorted(model.documents) == ["ann", "only", "tea", "x", "y"]

    def test_an_item_of_several_texts_is_found_once_by_its_best(self, make: Make) -> None:
        store = make(fields=["title", "body"])
        fill(
            store,
            a={"title": "green tea", "body": "rowing boats on the lake"},
            b={"title": "bees", "body": "green gardens"},
        )
        for query in ("green tea", "rowing boats on the lake"):
            found = store.search(DOCS, query=query)
            assert keys(found)[0] == "a"
            assert sorted(keys(found)) == ["a", "b"]

        assert sorted(keys(store.search(DOCS))) == ["a", "b"]

    def test_a_text_that_an_item_no_longer_has_does_not_find_it(self, make: Make) -> None:
        store = make(fields=["title", "body"])
        fill(store, a={"title": "green tea", "body": "rowing boats"}, b={"title": "rowing"})
        fill(store, a={"title": "green tea"})

        assert keys(store.search(DOCS, query="rowing boats"))[0] == "b"
        store.delete(DOCS, "b")
        [found] = store.search(DOCS, query="green tea")
        assert found.value == {"title": "green tea"}

    def test_one_text_may_come_twice_in_a_batch(self, make: Make) -> None:
        store = make(fields=["title", "body"])
        fill(store, a={"title": "tea", "body": "tea"}, b={"title": "tea"})

        assert sorted(keys(store.search(DOCS, query="tea"))) == ["a", "b"]

    def test_a_value_without_the_fields_is_only_listed(self, make: Make) -> None:
        store = make(fields=["title"])
        fill(store, a={"body": "tea"}, b={"title": "  "}, c={})

        assert sorted(keys(store.search(DOCS))) == ["a", "b", "c"]
        assert store.get(DOCS, "c") is not None

    # -- expiry --------------------------------------------------------------------------------

    def test_what_has_expired_is_not_read(self, make: Make) -> None:
        store = make(ttl={"omit_expired": True}) if make().supports_ttl else make()
        if not store.supports_ttl:
            pytest.skip("this store has no expiry")
        store.put(DOCS, "brief", {"t": "tea"}, ttl=1e-6)
        store.put(("docs", "brief"), "k", {"t": "tea"}, ttl=1e-6)
        store.put(DOCS, "long", {"t": "tea"}, ttl=60)
        store.put(DOCS, "ever", {"t": "tea"}, ttl=None)

        assert store.get(DOCS, "brief") is None
        for query in (None, "tea"):
            assert sorted(keys(store.search(DOCS, query=query))) == ["ever", "long"]
        assert store.list_namespaces(prefix=DOCS) == [DOCS]
        store.put(DOCS, "brief", {"t": "milk"})
        assert store.get(DOCS, "brief") is not None

    def test_a_put_without_an_end_takes_the_end_away(self, make: Make) -> None:
        store = make()
        if not store.supports_ttl:
            pytest.skip("this store has no expiry")
        store.put(DOCS, "k", {"t": "tea"}, ttl=1e-6)
        store.put(DOCS, "k", {"t": "tea"}, ttl=None)

        assert store.get(DOCS, "k") is not None

    # -- threads and loops ---------------------------------------------------------------------

    def test_threads_do_not_disturb_each_other(self, store: BaseStore) -> None:
        def work(me: int) -> list[Any]:
            seen: list[Any] = []
            for n in range(12):
                namespace = ("docs", f"t{me}")
                store.put(namespace, f"k{n}", {"me": me, "t": f"tea {n}"})
                seen += store.search(namespace, query="tea", limit=20) + store.search(namespace)
                seen += [store.get(namespace, f"k{n}")]
                store.list_namespaces(prefix=("docs",))
            return seen

        with ThreadPoolExecutor(8) as pool:
            for me, seen in enumerate(pool.map(work, range(8))):
                assert {one and one.value["me"] for one in seen} == {me}

        assert len(store.search(DOCS, limit=1000)) == 96

    def test_one_store_serves_one_loop_after_another(self, store: BaseStore) -> None:
        async def work(name: str) -> list[str]:
            await asyncio.gather(*(store.aput(DOCS, f"{name}{n}", {"t": "tea"}) for n in range(5)))
            return sorted(keys(await store.asearch(DOCS, query="tea", limit=20)))

        assert asyncio.run(work("a")) == [f"a{n}" for n in range(5)]
        assert asyncio.run(work("b")) == [f"{name}{n}" for name in "ab" for n in range(5)]
        assert len(store.search(DOCS, limit=20)) == 10

    async def test_async_calls_do_what_sync_ones_do(self, store: BaseStore) -> None:
        await store.aput(DOCS, "a", {"t": "green tea"})
        await store.aput(("docs", "b"), "b", {"t": "boats"}, index=False)
        got = await store.aget(DOCS, "a")
        found = await store.asearch(DOCS, query="tea", filter={"t": "green tea"})
        names = await store.alist_namespaces(prefix=DOCS)
        await store.adelete(DOCS, "a")

        assert got is not None
        assert (got.value, keys(found)) == ({"t": "green tea"}, ["a"])
        assert names == [DOCS, ("docs", "b")]
        assert keys(await store.asearch(DOCS)) == ["b"]
