"""The filter compiler of SQLite: never narrower than the filter, and narrow where it can be."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.filters import compile_filter
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.filters import Group, Predicate, Where, parse_filter
from commonplace.ports.stores import Put
from commonplace.testing.contracts.graph import ALICE, START, put

KEYS = ("a", "b-c", "_d", "namespace", "a.b", 'q"\n=', "kind", "metadata.a", "a.a.b")
ASKED = (
    *(f"metadata.{one}" for one in KEYS),
    *(one for one in KEYS if one != "namespace"),
    "a.a",
    "b-c.b",
    "metadata.x",
    "x",
)
TEXTS = [
    "",
    "x",
    "X",
    "ß",
    "SS",
    "ss",
    "é",
    "e\u0301",
    "1",
    "true",
    '"',
    "a\\b",
    "\n",
    "*",
    "?",
    "[x]",
    "[",
    "\U0001f9e0",
]
NUMBERS = [
    0,
    1,
    -1,
    2,
    2020,
    2**53 - 1,
    2**53 + 1,
    2.0**60,
    2**60 + 1,
    2**63 - 1,
    -(2**63),
    0.1,
    0.1 + 0.2,
    0.3,
    1.0,
    -0.0,
    1e300,
    5e-324,
    2019.9999999,
]
TIMES = [START + timedelta(seconds=n, microseconds=n % 3) for n in range(-2, 3)]
TIMES += [datetime(1, 1, 2, 0, 0, 0, 1, tzinfo=UTC), datetime(9999, 12, 30, 1, 2, 3, 4, tzinfo=UTC)]

floats = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63), 2**63 - 1)
scalars = st.sampled_from([*TEXTS, *NUMBERS, True, False]) | st.text("xX1", max_size=2)
values = (
    scalars | whole | floats | st.none() | st.dictionaries(st.sampled_from("ab"), scalars)
    | st.dictionaries(st.sampled_from("ab"), st.dictionaries(st.sampled_from("ab"), scalars))
    | st.lists(scalars | floats | st.none() | st.just({"a": 1}), max_size=3)
)  # fmt: skip
namespaces = st.lists(st.sampled_from([*filter(None, TEXTS), '"a", "b"']), max_size=3).map(tuple)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)


def conditions() -> st.SearchStrategy[Any]:
    """Make filters as a caller writes them."""
    operand = scalars | whole | floats | st.just(2**70) | st.just(-(10**400))
    number_or_text = operand.filter(lambda one: type(one) is not bool)
    some = st.lists(operand, min_size=1, max_size=3)
    operators = (
        st.tuples(st.sampled_from(["eq", "ne"]), operand)
        | st.tuples(st.sampled_from(["in", "nin"]), some)
        | st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), number_or_text)
        | st.tuples(st.sampled_from(["contains", "icontains"]), st.sampled_from(TEXTS))
    )
    moments = st.sampled_from(TIMES) | st.sampled_from([one.timestamp() for one in TIMES])
    time_operators = st.tuples(
        st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), moments | st.just(1e300)
    )
    leaf = (
        st.tuples(st.sampled_from([*ASKED, "role", "name", "kind", "origin"]), operators)
        | st.tuples(st.sampled_from(["created_at", "occurred_at"]), time_operators)
    ).map(lambda one: {one[0]: {one[1][0]: one[1][1]}})
    leaf |= namespaces.map(lambda one: {"namespace": one})
    return st.recursive(
        leaf,
        lambda inner: st.tuples(
            st.sampled_from(["AND", "OR", "NOT"]), st.lists(inner, min_size=1, max_size=3)
        ).map(lambda one: {one[0]: one[1]}),
        max_leaves=5,
    )


changes = st.builds(
    lambda held, namespace, at, begins, role, name: {
        "namespace": namespace,
        "metadata": held,
        "created_at": at,
        "occurred_at": begins,
        "role": role,
        "name": name,
    },
    metadata,
    namespaces,
    st.sampled_from(TIMES),
    st.sampled_from(TIMES),
    st.sampled_from([None, "user", "tool"]),
    st.none() | st.sampled_from([one for one in TEXTS if one.strip()]),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteConnection]:
    opened = SqliteConnection(str(tmp_path_factory.mktemp("filters") / "memory.db"))
    yield opened
    opened.close()


@given(records=st.lists(changes, min_size=1, max_size=6), wheres=st.lists(conditions(), max_size=6))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_record_that_matches_is_lost(
    file: SqliteConnection, records: list[dict[str, Any]], wheres: list[Any]
):
    graph = SqliteGraph(file)
    version = int(graph.get_meta("round") or 0) + 1
    graph.set_meta("round", str(version))
    puts = [put(f"k{n}", version, **one) for n, one in enumerate(records)]
    graph.erase(ALICE, version - 1)
    graph.apply(puts)

    everything = graph.page(ALICE).records
    assert {one.id for one in everything} == {one.record.id for one in puts}
    for where in wheres:
        parsed = parse_filter(where)
        assert parsed is not None
        expected = [one for one in everything if parsed.matches(one)]
        assert list(graph.page(ALICE, where=parsed).records) == expected, where


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"n": 3}, {3}),
        ({"n": {"gt": 3, "lte": 5}}, {4, 5}),
        ({"n": [1, 2.0]}, {1, 2}),
        ({"NOT": [{"n": {"lt": 6}}]}, {6, 7}),
        ({"odd": True}, {1, 3, 5, 7}),
        ({"NOT": [{"odd": True}]}, {0, 2, 4, 6}),
        ({"tags": "t2"}, {1, 2}),
        ({"tags": {"contains": "t7"}}, {6, 7}),
        ({"tags": {"nin": ["t2", "t3"]}}, {0, 4, 5, 6, 7}),
        ({"OR": [{"n": 1}, {"n": 2, "odd": True}]}, {1}),
        ({"role": "tool"}, {7}),
        ({"role": {"ne": "user"}}, {7}),
        ({"missing": {"icontains": "x"}}, set()),
        ({"missing": {"ne": 1}}, set()),
        ({"created_at": {"gte": START + timedelta(seconds=6)}}, {6, 7}),
        ({"in.n": 3}, {3}),
        ({"x y": 2**60 + 3}, {3}),
    ],
)
def test_what_cannot_match_is_not_parsed(
    file: SqliteConnection, where: dict[str, Any], expected: set[int]
):
    graph = SqliteGraph(file)
    version = int(graph.get_meta("round") or 0) + 1
    graph.set_meta("round", str(version))
    graph.erase(ALICE, version - 1)
    graph.apply([_numbered(n, version) for n in range(8)])
    asked: set[int] = set()

    def note(record: Any) -> bool:
        asked.add(record.metadata["n"])
        return False

    condition = parse_filter(where)
    assert condition is not None
    graph.page(ALICE, where=Group("AND", (Predicate(note), condition)))

    assert asked == expected


def _numbered(n: int, version: int) -> Put:
    held = {
        "n": n,
        "in": {"n": n},
        "x y": 2**60 + n,
        "odd": n % 2 == 1,
        "tags": [f"t{n}", f"t{n + 1}"],
    }
    change = put(f"n{n}", version, metadata=held, role="tool" if n == 7 else None)
    return replace(change, record=replace(change.record, created_at=START + timedelta(seconds=n)))


@pytest.mark.parametrize(
    "where",
    [
        Predicate(lambda _: True),
        Where("name", "icontains", ("x",)),
        Group("NOT", (Predicate(lambda _: True),)),
    ],
)
def test_what_sql_cannot_say_narrows_nothing(file: SqliteConnection, where: Any):
    sql, values = compile_filter(where, "r")

    with file.read() as connection:
        assert connection.execute(f"SELECT {sql}", values).fetchone() == (1,)
