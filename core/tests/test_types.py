"""The model: scopes fail closed, and what is stored is checked where it is made."""

import uuid
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, InvalidRecordError, InvalidScopeError
from commonplace.ports.stores import Put, altered
from commonplace.types import (
    Backlog,
    Change,
    EraseReceipt,
    Fact,
    Match,
    Message,
    Page,
    Record,
    Relation,
    Scope,
    WriteResult,
    turn_key,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
IDS = st.none() | st.sampled_from(["a", "b", "a:b", "null", '"a"'])


class Sneaky(str):
    """A string that says that it equals everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "value",
    [
        "",
        "*",
        " a",
        "a ",
        "a\nb",
        "a\x00",
        "a\u200b",
        "a\u202e",
        "\ud800",
        "x" * 257,
        7,
        True,
        b"a",
        ["a"],
        Sneaky("a"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("field", ["user_id", "agent_id", "session_id"])
def test_an_id_that_could_be_misread_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidScopeError) as caught:
        Scope(**{field: value})

    assert field == caught.value.field


def test_a_scope_that_names_nobody_is_refused() -> None:
    with pytest.raises(InvalidScopeError):
        Scope()


def test_a_refusal_counts_the_characters_of_an_id_that_is_too_long() -> None:
    with pytest.raises(InvalidScopeError, match=r"\(257 characters\)"):
        Scope(user_id="u" * 257)


def test_an_id_may_have_any_script_and_inner_spaces() -> None:
    assert "Anna Müller 王" == Scope(user_id="Anna Müller 王").user_id


def test_a_scope_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Scope(user_id="a").user_id = "b"  # type: ignore[misc]  # the point of the test


def test_a_question_without_a_user_sees_no_users_records() -> None:
    asked = Scope(agent_id="helper")

    assert not asked.covers(Scope(user_id="alice", agent_id="helper"))
    assert asked.covers(Scope(agent_id="helper", session_id="s"))


def test_a_user_covers_his_sessions_and_agents_and_nobody_else() -> None:
    alice = Scope(user_id="alice")

    assert alice.covers(Scope(user_id="alice", agent_id="helper", session_id="s"))
    assert not alice.covers(Scope(user_id="bob"))
    assert not alice.covers(Scope(session_id="s"))
    assert not Scope(user_id="alice", session_id="s").covers(alice)


@settings(max_examples=150)
@given(st.tuples(IDS, IDS, IDS), st.tuples(IDS, IDS, IDS))
def test_cover_key_and_lane_agree(
    first: tuple[str | None, ...], second: tuple[str | None, ...]
) -> None:
    if not any(first) or not any(second):
        return
    one = Scope(user_id=first[0], agent_id=first[1], session_id=first[2])
    two = Scope(user_id=second[0], agent_id=second[1], session_id=second[2])

    assert (one == two) == (one.key == two.key)
    assert one.covers(two) == (one in two.covering())
    assert not one.covers(two) or one.partition == two.partition


def test_covering_lists_the_scope_first_and_never_nobody() -> None:
    whole = Scope(user_id="u", agent_id="a", session_id="s")
    session = Scope(session_id="s")

    assert whole == whole.covering()[0]
    assert 4 == len(whole.covering())
    assert (session,) == session.covering()


def test_keys_do_not_collide_where_ids_are_joined() -> None:
    ids = [None, "a", "b", "a:b", "a,b"]
    scopes = [
        Scope(user_id=user, agent_id=agent, session_id=session)
        for user, agent, session in product(ids, repeat=3)
        if user or agent or session
    ]

    assert len(scopes) == len({scope.key for scope in scopes})
    assert len(scopes) == len({scope.record_id("fact", "k") for scope in scopes})


def test_a_record_id_is_a_stable_uuid() -> None:
    scope = Scope(user_id="alice")

    assert scope.record_id("fact", "k") == Scope(user_id="alice").record_id("fact", "k")
    assert scope.record_id("fact", "k") != scope.record_id("episode", "k")
    assert 5 == uuid.UUID(scope.record_id("fact", "k")).version


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\u200b", "a\x00b", "\ud800", "x" * 32_769, "é" * 16_385, None, 7, b"a"],
    ids=lambda text: repr(text)[:12],
)
def test_a_text_that_cannot_be_kept_is_refused(text: Any) -> None:
    with pytest.raises(InvalidRecordError):
        Fact(text=text)
    if type(text) is not str or len(text) < 16_000:
        with pytest.raises(InvalidRecordError):
            Message(text=text)


@pytest.mark.parametrize("text", ["x" * 32_768, "🎉", "我", "a\nb"], ids=lambda text: text[:3])
def test_a_text_in_any_script_is_kept(text: str) -> None:
    assert text == Message(text=text).text


@pytest.mark.parametrize(
    "metadata",
    [
        {"": 1},
        {1: 1},
        {"a": float("inf")},
        {"a": 2**63},
        {"a": {"b": -(2**63) - 1}},
        {"\ud800": 1},
        {"a\x00": 1},
        {"a": object()},
        {"a": "\x00"},
        {"a": {"b": {1: 2}}},
        {"a": [[[[[[[[[[1]]]]]]]]]]},
        {"a": "x" * (16 * 2**20)},
        [],
    ],
    ids=lambda metadata: repr(metadata)[:20],
)
def test_metadata_that_json_or_an_engine_cannot_hold_is_refused(metadata: Any) -> None:
    with pytest.raises(InvalidRecordError):
        Fact(text="t", metadata=metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        {"user_id": "bob", "kind": 1, "a b": 2, "$x.y": 3, "_": 4, "日": {"": 5}, "k" * 999: 6},
        {"a": 2**63 - 1, "b": -(2**63), "c": [2**53 + 1]},
        {f"k{n}": n for n in range(20_000)},
        {"file": "x" * (5 * 2**20)},
    ],
    ids=["keys", "integers", "many", "large"],
)
def test_metadata_of_any_keys_is_kept(metadata: dict[str, Any]) -> None:
    assert metadata == Fact(text="t", metadata=metadata).metadata


def test_a_time_without_a_zone_is_refused() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 -- the point of the test
    with pytest.raises(InvalidRecordError):
        Message(text="t", at=naive)
    with pytest.raises(InvalidRecordError):
        Fact(text="t", expires_at=naive)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidRecordError):
        Fact(text="t", kind="rumour")  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("name", ["", " ", "x" * 257, None])
def test_a_relation_needs_three_names(name: Any) -> None:
    for field in ("subject", "predicate", "object"):
        names = {"subject": "a", "predicate": "b", "object": "c", field: name}
        with pytest.raises(InvalidRecordError):
            Relation(**names)


def test_every_refusal_is_caught_at_the_root_and_as_a_builtin() -> None:
    for kind in (CommonplaceError, ValueError):
        with pytest.raises(kind):
            Scope(user_id="*")


def test_a_speaker_is_part_of_the_searched_text() -> None:
    scope = Scope(user_id="alice", session_id="s")
    said = Record(
        id="1",
        text="hi",
        scope=scope,
        name="Alice",
        position=3,
        created_at=AT,
        updated_at=AT,
        occurred_at=AT,
    )

    assert "Alice: hi" == said.indexed_text
    assert turn_key(scope, 3) == said.turn


def test_a_receipt_is_complete_only_when_nothing_is_left() -> None:
    scope = Scope(user_id="alice")

    assert EraseReceipt(scope=scope, removed={"index": 3}, left={"index": 0}, at=AT).complete
    assert not EraseReceipt(scope=scope, removed={}, left={"index": 1}, at=AT).complete


def test_what_is_left_after_draining_adds_up() -> None:
    assert Backlog(pending=3, dead=1) == Backlog(pending=1, dead=1) + Backlog(pending=2, dead=0)


def test_a_page_is_a_sequence_of_its_records() -> None:
    scope = Scope(user_id="alice")
    records = tuple(
        Record(id=str(n), text="t", scope=scope, created_at=AT, updated_at=AT, occurred_at=AT)
        for n in range(3)
    )
    page = Page(records=records, cursor="more")

    assert (len(page), [*page], page[-1], page[1:]) == (3, [*records], records[2], records[1:])
    assert not Page(records=(), cursor=None)
    with pytest.raises(IndexError):
        page[3]


def test_a_match_has_the_text_of_its_record() -> None:
    record = Record(
        id="1", text="tea", scope=Scope(user_id="alice"), created_at=AT, updated_at=AT,
        occurred_at=AT,
    )  # fmt: skip

    assert Match(record=record, score=0.5).text == "tea"


def test_a_write_result_lists_the_ids_of_its_changes_in_order() -> None:
    changes = tuple(Change(id=name, text="t", event="ADD") for name in "ba")

    assert WriteResult(operation="1", changes=changes).ids == ("b", "a")
    assert WriteResult(operation="1", pending=True).ids == ()


def test_an_altered_copy_is_what_replace_makes_and_leaves_the_original() -> None:
    record = Record(
        id="r", text="tea", scope=Scope(user_id="a"), namespace=("x",), metadata={"n": 1},
        created_at=AT, updated_at=AT, occurred_at=AT, sources=("s",), votes=3,
    )  # fmt: skip
    put, match = Put(record=record, fields=("text",)), Match(record=record, score=0.5)
    for one, changes in ((record, {"version": 7}), (put, {"upsert": True}), (match, {"score": 1})):
        before = replace(one)
        assert altered(one, **changes) == replace(one, **changes) != one
        assert one == before
    with pytest.raises(AttributeError, match="Fact has no nonsense"):
        altered(Fact(text="a"), nonsense=1)
