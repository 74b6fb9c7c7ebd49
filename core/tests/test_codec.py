"""The journal's codec: what is accepted comes back exactly, whatever a caller's types are."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from zoneinfo import ZoneInfo

import pytest

from commonplace import InvalidRecordError, Message, Record, Relation, Scope
from commonplace.ingest.changes import (
    DeleteBody,
    WriteBody,
    WritePlan,
    decode_delete,
    decode_plan,
    decode_write,
    encode_body,
    encode_plan,
    has_messages,
    record_ids,
)
from commonplace.ports.stores import Operation, Put

ALICE = Scope(user_id="alice", session_id="s1")
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class Stamp(datetime):
    """As some libraries make of times."""


class Word(str):
    __slots__ = ()


def record(**given) -> Record:
    return Record(
        **{
            "id": "1",
            "text": "Zoë ☕",
            "scope": ALICE,
            "created_at": AT,
            "updated_at": AT,
            "occurred_at": AT,
            **given,
        }
    )


def operation(body: WriteBody | DeleteBody) -> Operation:
    return Operation(id="op", kind="add", scope=ALICE, body=encode_body(body))


def write(*puts: Put, messages: tuple[Message, ...] = ()) -> Operation:
    return operation(WriteBody(puts=puts, at=AT, origin="user", messages=messages))


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(1890, 1, 1, tzinfo=ZoneInfo("Europe/Paris")),  # 9 minutes and 21 seconds
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(microseconds=7))),
        datetime(2025, 10, 26, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris")),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        Stamp(2026, 1, 2, tzinfo=timezone(timedelta(hours=-3))),
        Stamp(1890, 1, 1, tzinfo=ZoneInfo("Europe/Paris")),
    ],
)
def test_a_time_comes_back_as_the_same_moment(at: datetime):
    relation = Relation(subject="a", predicate="b", object="c", valid_from=at)
    put = Put(record=record(occurred_at=at), relations=(relation,))
    body = decode_write(write(put, messages=(Message(text="hi", at=at),)))
    [planned] = decode_plan(encode_plan(WritePlan(puts=body.puts))).puts

    times = [body.messages[0].at]
    for found in (body.puts[0], planned):
        times += [found.record.occurred_at, found.relations[0].valid_from]
    # Not `==`, which is never true between zones of a time that a clock shows twice.
    assert [one - at for one in times] == [timedelta(0)] * 5


def test_a_message_keeps_the_zone_that_a_model_is_shown():
    at = datetime(2026, 1, 2, 9, 30, tzinfo=ZoneInfo("Asia/Kolkata"))
    [message] = decode_write(write(messages=(Message(text="hi", at=at),))).messages

    assert f"{message.at:%H:%M %z}" == "09:30 +0530"


def test_a_write_comes_back_whatever_types_the_caller_used():
    nested = {"a": [1, 2.0, None, True, (1, "x")], "b": {"c": "ü\u2028"}}
    put = Put(record=record(metadata=MappingProxyType(nested), role=Word("user")), relations=None)
    [found] = decode_write(write(put)).puts

    nested["a"][-1] = [1, "x"]
    assert (dict(found.record.metadata), found.record.role) == (nested, "user")
    assert found.relations is None


def test_an_operation_names_its_records_and_whether_it_has_messages():
    added = write(Put(record=record()), messages=(Message(text="hi"),))
    deleted = operation(DeleteBody(id="2", at=AT, spare_pinned=True))

    assert (record_ids(added), has_messages(added)) == ({"1"}, True)
    assert (record_ids(deleted), has_messages(deleted)) == ({"2"}, False)
    assert decode_delete(deleted) == DeleteBody(id="2", at=AT, spare_pinned=True)


def test_a_write_of_an_earlier_version_has_no_identity():
    written = write(Put(record=record(), identity=("a",)))
    body = json.loads(written.body)
    del body["identity"], body["puts"][0]["identity"]
    found = decode_write(replace(written, body=json.dumps(body)))

    assert (found.identity, found.puts[0].identity) == ((), ())
    assert decode_write(written).puts[0].identity == ("a",)


def test_a_body_that_holds_no_record_is_refused():
    with pytest.raises(InvalidRecordError, match="origin"):
        decode_write(write(Put(record=record(origin="nobody"))))
