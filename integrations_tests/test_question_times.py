"""Questions that name a time, counted from `asked_at`: what was told then is a candidate."""

from datetime import UTC, datetime, timedelta

import pytest

from commonplace import InvalidRecordError, Memory, Message, Scope

ALICE = Scope(user_id="alice")
ASKED_AT = datetime(2025, 6, 18, 12, tzinfo=UTC)  # a Wednesday


def _found(memory: Memory, question: str, **options) -> list[str]:
    matches = memory.search(question, ALICE, top_k=50, **options)
    return [match.record.text for match in matches]


def test_what_was_told_at_the_time_that_a_question_names_is_a_candidate(memory: Memory) -> None:
    crowd = [
        Message(text=f"What I did: I did thing {number} today.", at=ASKED_AT - timedelta(days=400))
        for number in range(120)
    ]
    told = Message(text="Glorious paella, far too salty.", at=ASKED_AT - timedelta(days=8))
    memory.add(crowd, Scope(user_id="alice", session_id="crowd"))
    memory.add(told, Scope(user_id="alice", session_id="told"))

    assert told.text in _found(memory, "What did I do last week?", asked_at=ASKED_AT)
    assert told.text not in _found(memory, "What did I do?", asked_at=ASKED_AT)
    others = _found(
        memory,
        "What did I do last week?",
        asked_at=ASKED_AT,
        predicate=lambda record: record.text != told.text,
    )
    assert told.text not in others


def test_yesterday_is_told_from_the_moment_of_the_question(memory: Memory) -> None:
    for days in range(4):
        at = ASKED_AT - timedelta(days=days)
        memory.add(Message(text=f"Walked for {days + 1} miles.", at=at), ALICE)

    for days in (1, 2, 3):
        asked_at = ASKED_AT - timedelta(days=days - 1)
        [first, *_] = _found(memory, "How far did I walk yesterday?", asked_at=asked_at)
        assert first == f"Walked for {days + 1} miles."


@pytest.mark.parametrize(
    "wrong",
    [
        datetime(2025, 6, 18),  # noqa: DTZ001
        "2025-06-18",
    ],
)
def test_a_moment_without_a_zone_is_refused(memory: Memory, wrong) -> None:
    with pytest.raises(InvalidRecordError, match="asked_at"):
        memory.search("What did I do yesterday?", ALICE, asked_at=wrong)


@pytest.mark.parametrize(
    "asked_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_any_moment_may_be_that_of_the_question(memory: Memory, asked_at) -> None:
    memory.add(Message(text="Walked."), ALICE)
    for question in ("Did I walk today?", "Did I walk tomorrow?", "last year?", "in May?"):
        memory.search(question, ALICE, asked_at=asked_at)
