"""Test contract of what code that was written for LangGraph's own stores relies on.

Apart from `StoreContract`, which is on what a store must not lose, leak or mix up.
"""

import json
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp

from .store_contract import DOCS, Make, StoreContract, WordEmbeddings, fill, keys

__all__ = ["StockStoreContract"]

# Of a user by the usual templates, of nobody, and of both.
PLACES = (
    ("memories",),
    ("memories", "alice"),
    ("memories", "alice", "prefs"),
    ("memories", "bob"),
    ("memories", "bob", "prefs"),
    ("users", "alice", "prefs"),
    ("alice", "memories"),
    ("docs",),
    ("docs", "a"),
)
PREFIXES = ((), *PLACES, ("users",), ("users", "alice"), ("alice",), ("nobody",))


class _Color(Enum):
    RED = "red"


class _Size(StrEnum):
    SMALL = "small"


@dataclass
class _Point:
    x: int
    at: datetime


def _spread(store: BaseStore) -> None:
    ops = [
        PutOp(place, f"k{n}", {"text": f"green tea {n} {number}", "n": n})
        for n in range(2)
        for number, place in enumerate(PLACES)
    ]
    store.batch(ops)


def _cosine(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


class StockStoreContract(StoreContract):
    """Inherit it as `TestMyStore` and define `make`, as for `StoreContract`."""

    # -- prefixes ------------------------------------------------------------------------------

    @pytest.mark.parametrize("prefix", PREFIXES, ids="/".join)
    def test_an_item_is_found_under_every_prefix(
        self, store: BaseStore, prefix: tuple[str, ...]
    ) -> None:
        _spread(store)
        fitting = sorted(
            (place, f"k{n}") for place in PLACES for n in range(2) if place[: len(prefix)] == prefix
        )

        for query in (None, "green tea"):
            found = store.search(prefix, query=query, limit=50)
            assert sorted((one.namespace, one.key) for one in found) == fitting
            some = store.search(prefix, query=query, filter={"n": 1}, limit=50)
            assert sorted((one.namespace, one.key) for one in some) == [
                one for one in fitting if one[1] == "k1"
            ]
            pages = [store.search(prefix, query=query, limit=4, offset=n) for n in range(0, 20, 4)]
            paged = [(one.namespace, one.key) for page in pages for one in page]
            assert sorted(paged) == fitting

    def test_the_nearest_under_all_prefixes_comes_first(self, store: BaseStore) -> None:
        _spread(store)
        store.put(("memories", "bob", "deep"), "best", {"text": "rowing boats"})

        assert keys(store.search((), query="rowing boats", limit=1)) == ["best"]
        assert keys(store.search(("memories",), query="rowing boats", limit=1)) == ["best"]

    def test_all_namespaces_are_listed_without_a_condition(self, store: BaseStore) -> None:
        _spread(store)

        assert sorted(store.list_namespaces()) == sorted(PLACES)
        assert sorted(store.list_namespaces(max_depth=1)) == [
            ("alice",), ("docs",), ("memories",), ("users",)
        ]  # fmt: skip
        assert sorted(store.list_namespaces(max_depth=2)) == sorted({one[:2] for one in PLACES})
        pages = [store.list_namespaces(limit=4, offset=n) for n in (0, 4, 8)]
        assert sorted(one for page in pages for one in page) == sorted(PLACES)

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"suffix": ("prefs",)}, (2, 4, 5)),
            ({"suffix": ("alice", "prefs")}, (2, 5)),
            ({"suffix": ("alice", "*")}, (2, 5, 6)),
            ({"prefix": ("memories",)}, (0, 1, 2, 3, 4)),
            ({"prefix": ("memories", "*")}, (1, 2, 3, 4)),
            ({"prefix": ("*", "alice")}, (1, 2, 5)),
            ({"prefix": ("memories", "alice")}, (1, 2)),
            ({"prefix": ("memories",), "suffix": ("prefs",)}, (2, 4)),
            ({"prefix": ("nobody",)}, ()),
        ],
    )
    def test_namespaces_are_listed_by_what_they_begin_and_end_with(
        self, store: BaseStore, given: Any, expected: tuple[int, ...]
    ) -> None:
        _spread(store)
        fitting = sorted(PLACES[n] for n in expected)

        assert sorted(store.list_namespaces(**given)) == fitting

    async def test_all_is_found_by_async_calls_too(self, store: BaseStore) -> None:
        _spread(store)

        found = await store.asearch((), query="green tea", limit=50)
        assert sorted(one.namespace for one in found) == sorted((*PLACES, *PLACES))
        assert len(await store.asearch(("memories",), limit=50)) == 10
        assert sorted(await store.alist_namespaces()) == sorted(PLACES)

    # -- values --------------------------------------------------------------------------------

    def test_what_json_has_no_word_for_is_kept_as_text(self, store: BaseStore) -> None:
        number = uuid.UUID(int=7)
        moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
        given = {
            "moment": moment,
            "naive": datetime(2026, 1, 2),  # noqa: DTZ001 -- people store such
            "day": date(2026, 1, 2),
            "id": number,
            "color": _Color.RED,
            "size": _Size.SMALL,
            "point": _Point(1, moment),
            "list": (1, [number]),
        }
        store.put(DOCS, "k", given, index=["size"])
        found = store.get(DOCS, "k")

        assert found is not None
        assert found.value == {
            "moment": "2026-01-02T03:04:05.000006+00:00",
            "naive": "2026-01-02T00:00:00",
            "day": "2026-01-02",
            "id": str(number),
            "color": "red",
            "size": "small",
            "point": {"x": 1, "at": "2026-01-02T03:04:05.000006+00:00"},
            "list": [1, [str(number)]],
        }
        assert keys(store.search(DOCS, filter={"id": str(number)})) == ["k"]

    def test_a_file_of_several_megabytes_is_kept(self, store: BaseStore) -> None:
        text = "a line of a file, ü\n" * 150_000
        store.put(DOCS, "file", {"name": "log", "content": text}, index=["name", "content"])
        found = store.get(DOCS, "file")

        assert found is not None
        assert found.value == {"name": "log", "content": text}
        assert keys(store.search(DOCS, query="log")) == ["file"]

    def test_a_filter_reaches_nested_values_by_dots(self, store: BaseStore) -> None:
        fill(store, a={"of": {"in": {"n": 1}}}, b={"of": {"in": {"n": 2}}}, c={"of": 1})

        assert keys(store.search(DOCS, filter={"of.in.n": 1})) == ["a"]
        assert keys(store.search(DOCS, filter={"of.in.n": {"$gt": 1}}, query="of")) == ["b"]

    def test_a_bound_may_be_infinite(self, store: BaseStore) -> None:
        fill(store, a={"n": 1}, b={"n": 2})

        for query in (None, "n"):
            within = {"n": {"$gt": -math.inf, "$lt": math.inf}}
            assert sorted(keys(store.search(DOCS, filter=within, query=query))) == ["a", "b"]
            assert store.search(DOCS, filter={"n": {"$gt": math.inf}}, query=query) == []

    # -- limits --------------------------------------------------------------------------------

    @pytest.mark.parametrize("query", [None, "tea 7"])
    def test_a_page_may_begin_beyond_a_thousand(self, store: BaseStore, query: str | None) -> None:
        ops = [PutOp(DOCS, f"k{n}", {"text": f"tea {n}"}) for n in range(1_250)]
        for start in range(0, len(ops), 250):
            store.batch(ops[start : start + 250])

        first = store.search(DOCS, query=query, limit=1_000)
        last = store.search(DOCS, query=query, limit=1_000, offset=1_000)
        assert (len(first), len(last)) == (1_000, 250)
        assert len({*keys(first), *keys(last)}) == 1_250

    # -- scores --------------------------------------------------------------------------------

    def test_a_score_is_the_cosine_and_orders(self, make: Make) -> None:
        model = WordEmbeddings()
        store = make(embeddings=model, fields=["text"])
        texts = ["green tea", "tea", "rowing boats", "bees in the garden", "green boats"]
        fill(store, **{f"k{n}": {"text": text} for n, text in enumerate(texts)})
        asked = model.embed_query("green tea in the garden")
        held = zip(texts, model.embed_documents(texts), strict=True)
        expected = sorted(((_cosine(asked, one), text) for text, one in held), reverse=True)

        found = store.search(DOCS, query="green tea in the garden")
        assert [one.value["text"] for one in found] == [text for _, text in expected]
        assert [one.score for one in found] == pytest.approx([one for one, _ in expected], abs=1e-3)

    def test_an_item_of_several_texts_has_the_score_of_its_nearest(self, make: Make) -> None:
        model = WordEmbeddings()
        store = make(embeddings=model, fields=["title", "body"])
        fill(store, a={"title": "green tea", "body": "rowing boats"}, b={"title": "green boats"})
        asked = model.embed_query("green tea")
        near = model.embed_documents(["green tea", "green boats"])

        found = store.search(DOCS, query="green tea")
        assert keys(found) == ["a", "b"]
        expected = [_cosine(asked, one) for one in near]
        assert [one.score for one in found] == pytest.approx(expected, abs=1e-3)

    # -- expiry --------------------------------------------------------------------------------

    def test_a_sweep_deletes_what_has_expired(self, make: Make) -> None:
        store: Any = make()
        if not store.supports_ttl:
            pytest.skip("this store has no expiry")
        for place in PLACES:
            store.put(place, "brief", {"text": "tea"}, ttl=1e-6)
            store.put(place, "long", {"text": "tea"}, ttl=60)

        assert store.sweep_ttl() == len(PLACES)
        assert store.sweep_ttl() == 0
        assert sorted(keys(store.search((), limit=50))) == ["long"] * len(PLACES)

    def test_an_item_is_plain_json(self, store: BaseStore) -> None:
        fill(store, a={"text": "tea"})
        found = store.get(DOCS, "a")

        assert found is not None
        assert json.loads(json.dumps(found.dict()))["value"] == {"text": "tea"}
