"""Changes that tell a known fact again or end it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from commonplace import Fact, Relation, Scope
from commonplace.ingest.changes import ending, fact_put, told_again
from commonplace.types import Record

AT = datetime(2026, 5, 1, tzinfo=UTC)
OWNER = Scope(user_id="alice", agent_id="cook")


def day(number: int) -> datetime:
    return AT + timedelta(days=number)


def known(occurred_at: datetime, **given: object) -> Record:
    put = fact_put(
        Fact(text="Alice likes tea.", at=occurred_at, importance=0.9, metadata={"a": 1}),
        Scope(user_id="alice", agent_id="cook", session_id="s"),
        at=day(-9),
        origin="document",
        is_single=lambda _: False,
    )
    return replace(put.record, version=7, votes=3, **given)  # type: ignore[arg-type]


def test_what_is_told_again_has_the_identity_of_the_known_fact():
    edge = Relation(subject="Alice", predicate="likes", object="tea")
    fact = Fact(text="She likes tea.", kind="preference", metadata={"b": 2}, at=day(-1),
                expires_at=day(9), relations=(edge,))  # fmt: skip
    new = fact_put(fact, OWNER, at=AT, origin="user", is_single=lambda _: False)
    old = known(day(-8))

    put = told_again(old, new)
    wanted = replace(old, metadata={"b": 2}, created_at=AT, updated_at=AT, occurred_at=day(-1),
                     expires_at=day(9), votes=0)  # fmt: skip

    assert (put.record, put.relations, put.replace) == (wanted, new.relations, False)


@pytest.mark.parametrize(
    ("old", "new", "told", "ends"),
    [
        pytest.param(day(-5), day(-1), day(0), day(-1), id="changed"),
        pytest.param(day(-5), day(3), day(0), day(3), id="will change"),
        pytest.param(day(-5), day(-5), day(0), day(-5), id="corrected at once"),
        pytest.param(day(-5), day(-7), day(0), day(-5), id="corrected to an earlier date"),
        pytest.param(day(5), day(7), day(0), day(0), id="a plan, put off"),
        pytest.param(day(5), day(3), day(0), day(0), id="a plan, brought forward"),
        pytest.param(day(-5), day(-20), day(-20), None, id="arrives late"),
        pytest.param(day(-5), day(-3), day(-20), day(-3), id="arrives late, of a later time"),
    ],
)
def test_a_replaced_fact_ends_when_it_is_no_longer_true(old, new, told, ends):
    record = known(old)
    added = replace(record, id="new", occurred_at=new)

    put = ending(record, added, at=AT, told=told)

    assert ends == (put and put.record.valid_to)
    assert put is None or (put.replace, put.fields, put.relations) == (True, ("valid_to",), None)


def test_a_fact_that_ends_earlier_is_not_ended_again():
    record = known(day(-5), valid_to=day(-1))

    assert ending(record, replace(record, occurred_at=day(0)), at=AT, told=AT) is None
    assert ending(record, replace(record, occurred_at=day(-2)), at=AT, told=AT) is not None
