"""The filter language: what matches, and what is refused."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import InvalidFilterError
from commonplace.filters import parse_filter, required_namespace
from commonplace.types import Record, Scope

AT = datetime(2026, 3, 1, tzinfo=UTC)
RECORD = Record(
    id="1",
    text="t",
    scope=Scope(user_id="alice"),
    kind="preference",
    name="Alice",
    namespace=("memories", "alice"),
    metadata={
        "namespace": "their own",
        "city": "Lyon",
        "year": 2020,
        "share": 0.5,
        "done": True,
        "tags": ["red", "blue"],
        "none": None,
        "deep": {"a": 1, "b": {"c": 2**60 + 1}, "x.y": 3},
        "deep.d": "literal",
        "a b": "odd",
        "$id": 2**60 + 1,
        "kind": "mine",
        "user_id": "theirs",
        "metadata.x": 5,
        "_": -(2**63),
    },
    created_at=AT,
    updated_at=AT,
    occurred_at=AT,
)


@pytest.mark.parametrize(
    "where",
    [
        {"city": "Lyon"},
        {"city": {"eq": "Lyon"}},
        {"city": ["Nice", "Lyon"]},
        {"city": {"nin": ["Nice"]}},
        {"city": {"ne": "Nice"}},
        {"city": {"contains": "yo"}},
        {"city": {"icontains": "LY"}},
        {"city": {"gte": "Lyon", "lt": "M"}},
        {"year": 2020},
        {"year": 2020.0},
        {"year": {"gt": 2019, "lte": 2020}},
        {"share": {"lt": 1}},
        {"done": True},
        {"tags": "red"},
        {"tags": ["green", "blue"]},
        {"tags": {"contains": "lu"}},
        {"kind": "preference", "name": "Alice"},
        {"created_at": {"gte": "2026-03-01T00:00:00+00:00"}},
        {"created_at": {"lt": datetime(2026, 3, 2, tzinfo=UTC)}},
        {"OR": [{"city": "Nice"}, {"year": 2020}]},
        {"NOT": [{"city": "Nice"}, {"year": 1999}]},
        {"AND": [{"city": "Lyon"}, {"OR": [{"done": True}, {"done": False}]}]},
        {"deep.a": 1},
        {"deep.b.c": 2**60 + 1},
        {"deep.d": "literal"},
        {"metadata.deep.a": 1},
        {"a b": "odd", "$id": {"gt": 2**60}, "_": -(2**63)},
        {"metadata.kind": "mine", "kind": "preference"},
        {"metadata.user_id": "theirs"},
        {"metadata.metadata.x": 5},
        {"year": {"gt": float("-inf"), "lt": float("inf")}},
        {"namespace": ["memories"]},
        {"namespace": ("memories", "alice"), "metadata.namespace": "their own"},
        {"namespace": []},
        {"NOT": [{"namespace": ["alice"]}, {"namespace": ["memories", "alice", "x"]}]},
    ],
)
def test_a_filter_that_holds_matches(where: dict[str, Any]) -> None:
    condition = parse_filter(where)

    assert condition is not None
    assert condition.matches(RECORD)


@pytest.mark.parametrize(
    "where",
    [
        {"city": "lyon"},
        {"city": "Lyon", "year": 1999},
        {"city": {"ne": "Lyon"}},
        {"city": {"nin": ["Nice", "Lyon"]}},
        {"city": {"gt": 1}},
        {"year": "2020"},
        {"year": {"gt": "2019"}},
        {"year": {"gt": 2020}},
        {"done": 1},
        {"year": True},
        {"done": {"ne": True}},
        {"missing": "x"},
        {"missing": {"ne": "x"}},
        {"missing": {"nin": ["x"]}},
        {"none": {"ne": "x"}},
        {"tags": {"ne": "red"}},
        {"tags": ["green"]},
        {"role": "user"},
        {"created_at": {"gt": "2026-03-01T00:00:00+00:00"}},
        {"OR": [{"city": "Nice"}, {"year": 1}]},
        {"NOT": [{"city": "Nice"}, {"year": 2020}]},
        {"deep.x.y": 3},
        {"deep.b.c.d": 1},
        {"$id": 2**60},
        {"$id": float(2**60)},
        {"metadata.kind": "preference"},
        {"metadata.x": 5},
        {"year": {"gt": float("inf")}},
        {"namespace": ["alice"]},
        {"namespace": ["memories", "alice", "x"]},
        {"namespace": ["memories"], "metadata.namespace": "memories"},
        {"NOT": [{"namespace": []}]},
    ],
)
def test_a_filter_that_does_not_hold_does_not_match(where: dict[str, Any]) -> None:
    condition = parse_filter(where)

    assert condition is not None
    assert not condition.matches(RECORD)


@pytest.mark.parametrize("where", [None, {}])
def test_nothing_to_filter_is_no_filter(where: dict[str, Any] | None) -> None:
    assert parse_filter(where) is None


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        where = {"NOT": [where]}
    return where


@pytest.mark.parametrize(
    "where",
    [
        [],
        "city",
        {"AND": []},
        {"OR": {}},
        {"OR": [{}]},
        {"OR": "city"},
        {"NOT": [1]},
        {"city": {}},
        {"city": {"like": "L%"}},
        {"city": {"eq": "Lyon", "$where": "1"}},
        {"city": []},
        {"city": {"in": "Lyon"}},
        {"city": None},
        {"city": object()},
        {"city": [["Lyon"]]},
        {"": 1},
        {"metadata.": 1},
        {"\ud800": 1},
        {1: 1},
        {"user_id": "bob"},
        {"OR": [{"session_id": "s"}]},
        {"share": float("nan")},
        {"done": {"gt": True}},
        {"city": {"contains": 1}},
        {"created_at": {"gt": "yesterday"}},
        {"created_at": {"gt": "2026-03-01"}},
        {"created_at": {"gt": datetime(2026, 3, 1)}},  # noqa: DTZ001 -- refused for that
        {"a": list(range(65))},
        nested(9),
        {"namespace": "memories"},
        {"namespace": {"eq": "memories"}},
        {"namespace": ["memories", ""]},
        {"namespace": [1]},
        {"AND": [{"namespace": []}] * 65},
    ],
)
def test_a_filter_that_could_be_misread_is_refused(where: Any) -> None:
    with pytest.raises(InvalidFilterError):
        parse_filter(where)


def test_a_filter_names_the_namespace_that_all_which_matches_is_in() -> None:
    inner = {"AND": [{"year": 2020}, {"namespace": []}, {"namespace": ["a", "b"]}]}
    for where, expected in [
        ({"namespace": ["a"]}, ("a",)),
        ({"AND": [{"year": 1}, inner]}, ("a", "b")),
        ({"namespace": []}, None),
        ({"OR": [{"namespace": ["a"]}]}, None),
        ({"NOT": [{"namespace": ["a"]}]}, None),
        ({"year": 1}, None),
    ]:
        assert required_namespace(parse_filter(where)) == expected


def test_filters_nest_up_to_the_limit() -> None:
    assert parse_filter(nested(7)) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["city", "year", "AND", "OR", "NOT", "gt", "in", "eq", "created_at", "namespace"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON)
def test_whatever_comes_is_a_filter_or_refused(given_filter: Any) -> None:
    try:
        condition = parse_filter(given_filter)
    except InvalidFilterError:
        return
    assert condition is None or isinstance(condition.matches(RECORD), bool)
