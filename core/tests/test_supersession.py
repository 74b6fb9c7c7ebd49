"""Which value holds when does not depend on the order in which the values arrived."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as some

from commonplace.backends.shared.rows import to_record
from commonplace.backends.sqlite import record_tables
from commonplace.backends.sqlite.graph import SCHEMA
from commonplace.ports import Put
from commonplace.types import Record, Relation, Scope

START = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")


class Assertion(NamedTuple):
    """A value from a day on; `ends` was asserted with it."""

    value: str
    begins: int
    ends: int | None = None


class Span(NamedTuple):
    """The day until which an assertion holds, and the places of those that contradict it."""

    ends: int | None
    conflicts: tuple[int, ...] = ()


def resolve(assertions: Sequence[Assertion]) -> list[Span]:
    """Store a record of each assertion, in their order, and read what became of them."""
    ids = [ALICE.record_id("fact", str(place)) for place in range(len(assertions))]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        for version, (id_, assertion) in enumerate(zip(ids, assertions, strict=True), 1):
            record_tables.apply(connection, [_put(id_, version, assertion)])
        stored = list(map(to_record, record_tables.read_many(connection, ids)))
    return [
        Span(
            ends=None if one.valid_to is None else (one.valid_to - START).days,
            conflicts=tuple(sorted(map(ids.index, one.conflicts))),
        )
        for one in stored
    ]


def _put(id_: str, version: int, assertion: Assertion) -> Put:
    begins, ends = (day and START + timedelta(days=day) for day in assertion[1:])
    record = Record(
        id=id_,
        text=id_,
        scope=ALICE,
        version=version,
        created_at=START,
        updated_at=START,
        occurred_at=START,
    )
    relation = Relation(
        subject="Ann",
        predicate="lives_in",
        object=assertion.value,
        valid_from=begins or START,
        valid_to=ends or None,
        single_valued=True,
    )
    return Put(record=record, relations=(relation,))


ASSERTIONS = some.lists(
    some.builds(
        Assertion,
        some.sampled_from("abc"),
        some.integers(0, 9),
        some.none() | some.integers(10, 20),
    ),
    max_size=8,
)


def test_no_assertion_resolves_to_nothing() -> None:
    assert [] == resolve([])


def test_a_later_value_ends_the_earlier_and_the_last_holds() -> None:
    spans = resolve([Assertion("c", 7), Assertion("a", 1), Assertion("b", 3)])

    assert [Span(None), Span(3), Span(7)] == spans


def test_values_from_the_same_moment_conflict_until_another_follows() -> None:
    spans = resolve([Assertion("a", 1), Assertion("b", 1), Assertion("a", 1), Assertion("c", 2)])

    assert [Span(2, (1,)), Span(2, (0, 2)), Span(2, (1,)), Span(None)] == spans


def test_an_earlier_end_that_was_asserted_holds() -> None:
    assert [Span(2), Span(None)] == resolve([Assertion("a", 1, 2), Assertion("b", 5)])
    assert [Span(5), Span(None)] == resolve([Assertion("a", 1, 9), Assertion("b", 5)])


@given(ASSERTIONS, some.randoms())
def test_any_order_resolves_alike(assertions: list[Assertion], chance: object) -> None:
    order = list(range(len(assertions)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    spans = resolve(assertions)
    shuffled = resolve([assertions[place] for place in order])

    assert [spans[place].ends for place in order] == [span.ends for span in shuffled]
    conflicts = [{assertions[p] for p in spans[place].conflicts} for place in order]
    assert conflicts == [{assertions[order[p]] for p in span.conflicts} for span in shuffled]


@given(ASSERTIONS)
def test_at_any_moment_one_value_holds_or_all_that_do_conflict(assertions: list[Assertion]) -> None:
    spans = resolve(assertions)
    for moment in range(22):
        holding = [
            (assertion, span)
            for assertion, span in zip(assertions, spans, strict=True)
            if assertion.begins <= moment and (span.ends is None or moment < span.ends)
        ]
        values = {assertion.value for assertion, _ in holding}
        assert len(values) <= 1 or all(span.conflicts for _, span in holding)
        for assertion, span in holding:
            assert span.ends is None or span.ends > assertion.begins
