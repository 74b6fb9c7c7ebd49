"""A fact told under other metadata is another record where the metadata belong to its identity.

On every set of engines.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commonplace import (
    Change,
    Extraction,
    Fact,
    IdempotencyConflictError,
    InvalidRecordError,
    Memory,
    Message,
    Record,
    Relation,
    Scope,
)
from commonplace.admin import copy
from commonplace.ingest.applying import apply_to
from commonplace.ports.stores import identity_of
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
FRIDAY = "The release is on Friday"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
ROME = "Alice lives in Rome"
X, Y = {"project": "x"}, {"project": "y"}
PROJECT = ("project",)


def tell(memory: Memory, content: Any, metadata: Mapping[str, Any], **more: Any) -> Change:
    """Tell one thing for a project."""
    given = {"identity": PROJECT, "infer": False, **more}
    [change] = memory.add(content, ALICE, metadata=metadata, **given).changes
    return change


def found(memory: Memory, metadata: Mapping[str, Any], scope: Scope = ALICE) -> list[Record]:
    """Read what a project has, by a search and by a list, which agree."""
    listed = memory.list(scope, where=metadata).records
    matches = memory.search("the release", scope, top_k=100, where=metadata)
    assert sorted(one.record.id for one in matches) == sorted(one.id for one in listed)
    return list(listed)


@pytest.mark.every_engine
def test_each_project_has_its_own_record_of_the_same_fact(memory: Memory) -> None:
    changes = [tell(memory, FRIDAY, given) for given in (X, Y, X, X)]

    assert [one.event for one in changes] == ["ADD", "ADD", "NONE", "NONE"]
    assert [one.times_told for one in found(memory, X)] == [3]
    assert [one.times_told for one in found(memory, Y)] == [1]
    assert found(memory, {"project": "z"}) == []


@pytest.mark.every_engine
def test_an_update_or_a_deletion_changes_one_project_and_an_erasure_all(memory: Memory) -> None:
    first, second = tell(memory, FRIDAY, X), tell(memory, FRIDAY, Y)
    memory.update(first.id, "The release is on Monday", ALICE)

    assert [one.text for one in found(memory, Y)] == [FRIDAY]
    assert tell(memory, FRIDAY, Y).event == "NONE"
    again = tell(memory, FRIDAY, X)
    assert (again.event, again.id in (first.id, second.id)) == ("ADD", False)
    assert tell(memory, FRIDAY, X).id == again.id
    memory.delete(again.id, ALICE)
    assert [one.id for one in found(memory, Y)] == [second.id]
    assert [one.text for one in found(memory, X)] == ["The release is on Monday"]
    assert memory.forget(ALICE).complete
    assert memory.list(ALICE).records == ()
    assert tell(memory, FRIDAY, Y).event == "ADD"


@pytest.mark.every_engine
def test_a_record_that_an_update_gave_to_another_project_is_not_told_again(memory: Memory) -> None:
    first = tell(memory, FRIDAY, X)
    memory.update(first.id, None, ALICE, metadata=Y)
    again = tell(memory, FRIDAY, X)

    assert (again.event, again.id == first.id) == ("ADD", False)
    assert [one.id for one in found(memory, Y)] == [first.id]
    assert [one.id for one in found(memory, X)] == [again.id]


@pytest.mark.every_engine
def test_other_metadata_than_those_of_its_identity_are_merged(memory: Memory) -> None:
    first = tell(memory, FRIDAY, {**X, "source": "mail"})
    again = tell(memory, FRIDAY, {**X, "source": "chat"})

    assert (again.id, again.event) == (first.id, "UPDATE")
    assert [dict(one.metadata) for one in found(memory, X)] == [{**X, "source": "chat"}]


@pytest.mark.every_engine
def test_a_turn_of_two_projects_is_two_records(memory: Memory) -> None:
    turn = Message(text=FRIDAY, id="m1")
    changes = [tell(memory, turn, given) for given in (X, Y, X)]

    assert [one.event for one in changes] == ["ADD", "ADD", "NONE"]
    assert [len(found(memory, given)) for given in (X, Y)] == [1, 1]


def lives_in(city: str, when: datetime) -> Fact:
    """State where Alice lives, which has one value at a time."""
    relation = Relation(subject="Alice", predicate="lives_in", object=city, valid_from=when)
    return Fact(text=f"Alice lives in {city}", relations=(relation,))


@pytest.mark.every_engine
def test_a_single_value_ends_that_of_its_project_alone(memory: Memory) -> None:
    for given in (X, Y):
        tell(memory, lives_in("Lyon", MONDAY), given)
    assert [len(texts(memory, given)) for given in (X, Y)] == [1, 1]
    tell(memory, lives_in("Rome", MONDAY + timedelta(1)), Y)
    memory.add(lives_in("Oslo", MONDAY + timedelta(2)), ALICE)  # of no project

    assert [texts(memory, given) for given in (X, Y)] == [["Alice lives in Lyon"], [ROME]]
    assert [one.object for one in memory.relations(ALICE, "Alice")] == ["Lyon", "Rome", "Oslo"]
    assert {one.conflicts for one in memory.list(ALICE).records} == {()}

    [first] = memory.list(ALICE, where=X).records
    moved = lives_in("Nice", MONDAY + timedelta(3))
    memory.update(first.id, moved.text, ALICE, relations=moved.relations)
    assert [texts(memory, given) for given in (X, Y)] == [[moved.text], [ROME]]
    tell(memory, lives_in("Bonn", MONDAY + timedelta(4)), X)
    assert [texts(memory, given) for given in (X, Y)] == [["Alice lives in Bonn"], [ROME]]
    assert texts(memory) == ["Alice lives in Bonn", "Alice lives in Oslo", ROME]


def texts(memory: Memory, metadata: Mapping[str, Any] | None = None) -> list[str]:
    """Read what a project has, or all of them, in order of the text."""
    return sorted(one.text for one in memory.list(ALICE, where=metadata).records)


@pytest.mark.every_engine
def test_what_is_accepted_first_and_applied_later_is_the_same(memory: Memory) -> None:
    for given in (X, Y, X):
        memory.add(FRIDAY, ALICE, metadata=given, identity=PROJECT, wait=False)
    assert memory.flush().pending == 0

    assert [[one.times_told for one in found(memory, given)] for given in (X, Y)] == [[2], [1]]
    assert tell(memory, FRIDAY, Y).event == "NONE"


def test_a_repeated_application_of_a_revived_text_is_one_record(memory: Memory) -> None:
    first = tell(memory, FRIDAY, X)
    memory.update(first.id, "The release is on Monday", ALICE)

    def twice(*args: Any, **more: Any) -> Any:
        done, again = [apply_to(*args, **more) for _ in range(2)]
        assert again == done
        return again

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("commonplace.ingest.submission.apply_to", twice)
        tell(memory, FRIDAY, X)

    assert sorted(one.text for one in found(memory, X)) == [FRIDAY, "The release is on Monday"]


def test_without_an_identity_it_is_one_record_with_the_newest_metadata(memory: Memory) -> None:
    for given in (X, Y):
        memory.add(FRIDAY, ALICE, metadata=given)
    [record] = found(memory, Y)

    assert (found(memory, X), record.times_told) == ([], 2)
    assert record.id == ALICE.record_id("fact", FRIDAY)  # as stores have it


def test_what_lacks_the_key_is_the_record_that_it_was(memory: Memory) -> None:
    plain = memory.add(FRIDAY, ALICE).changes[0]

    assert tell(memory, FRIDAY, {}).id == plain.id
    assert tell(memory, FRIDAY, {"project": None}).id == plain.id
    assert tell(memory, FRIDAY, X).id != plain.id


def test_one_write_with_facts_of_two_projects_has_both(memory: Memory) -> None:
    facts = [Fact(text=FRIDAY, metadata=one) for one in (X, Y, X)]
    result = memory.add(facts, ALICE, identity=PROJECT)

    assert len({one.id for one in result.changes}) == 2
    assert [len(found(memory, given)) for given in (X, Y)] == [1, 1]


def test_a_key_names_one_text_for_each_project(memory: Memory) -> None:
    for given, text in ((X, FRIDAY), (Y, "The release is late")):
        tell(memory, text, given, key="release")

    with pytest.raises(IdempotencyConflictError):
        tell(memory, "No release", X, key="release")
    tell(memory, "No release", X, key="release", upsert=True)
    assert [one.text for one in found(memory, X)] == ["No release"]
    assert [one.text for one in found(memory, Y)] == ["The release is late"]


async def test_the_asynchronous_call_does_the_same(memory: Memory) -> None:
    for _ in range(2):  # of two tellings at once the one that is stored last may be the earlier
        writes = (memory.aadd(FRIDAY, ALICE, metadata=given, identity=PROJECT) for given in (X, Y))
        await asyncio.gather(*writes)

    assert [[one.times_told for one in found(memory, given)] for given in (X, Y)] == [[2], [2]]


def test_a_copy_is_told_again(memory: Memory, tmp_path: Path) -> None:
    first = [tell(memory, FRIDAY, one) for one in (X, Y)]
    with Memory.open(str(tmp_path / "other"), embedder=HashEmbedder()) as other:
        copy(memory, other)

        again = [tell(other, FRIDAY, one) for one in (X, Y)]
        assert [(one.id, one.event) for one in again] == [(one.id, "NONE") for one in first]
        assert [[one.times_told for one in found(other, given)] for given in (X, Y)] == [[2], [2]]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": ("x", "y")}, {"a": ["x", "y"]}, True),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, True),
        ({"a": "x", "b": "y"}, {"b": "y", "a": "x"}, True),
        ({"a": "x"}, {"b": "x"}, False),
        ({"a": None}, {}, True),
        ({"a": "é"}, {"a": "e\u0301"}, False),
        ({"a": "x", "c": "x"}, {"a": "x", "c": "y"}, True),
    ],
)
def test_values_are_the_same_by_what_they_say(one: Any, other: Any, is_same: bool) -> None:
    assert (identity_of(one, ("a", "b")) == identity_of(other, ("b", "a"))) is is_same


@pytest.mark.parametrize("identity", ["project", 3, None, [""], [1], ["a\x00"], [["a"]]])
def test_an_identity_that_names_no_keys_is_refused(memory: Memory, identity: Any) -> None:
    with pytest.raises(InvalidRecordError, match="identity"):
        memory.add(FRIDAY, ALICE, metadata=X, identity=identity)
    assert memory.list(ALICE).records == ()


# -- facts that a model extracts -------------------------------------------------------------------


def converse(memory: Memory, text: str, metadata: Mapping[str, Any], number: int) -> None:
    """Tell a project something in a session of its own."""
    scope = Scope(user_id="alice", session_id=f"s{number}")
    extraction = Extraction(metadata=metadata)
    message = Message(text=text, id=f"m{number}")
    memory.add(message, scope, infer=extraction, metadata=metadata, identity=PROJECT)


@pytest.mark.every_engine
def test_a_model_is_shown_what_the_project_knows_and_changes_nothing_else(tmp_path: Path) -> None:
    later = "The release is on Monday"
    chat = ScriptedChat(
        [
            answer(FRIDAY, None, None),
            answer(FRIDAY, None, None),
            answer("Release: Friday", 1, None),  # told again in other words
            answer(later, None, 1),  # replaces what is known
            answer(FRIDAY, None, None),  # an equal text
        ]
    )
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
        for number, given in enumerate((X, Y, Y, X, Y)):
            converse(memory, f"When is the release? {number}", given, number)
        prompts = [one.user.partition("Conversation:")[0] for one in chat.calls]
        known = [[text for text in (FRIDAY, later) if text in prompt] for prompt in prompts]
        facts = {
            name: [
                (one.text, one.times_told)
                for one in memory.list(ALICE, where={"project": name}, kinds=["fact"]).records
            ]
            for name in "xy"
        }

    assert known == [[], [], [FRIDAY], [FRIDAY], [FRIDAY]]
    assert facts == {"x": [(later, 1)], "y": [(FRIDAY, 3)]}


def test_a_model_is_shown_nothing_of_another_owner_or_project(tmp_path: Path) -> None:
    chat = ScriptedChat(['{"facts": []}'] * 2)
    cooks, first = "The release of the cook", "The release of project 1"
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
        cook = Scope(user_id="alice", agent_id="cook")
        memory.add(cooks, cook, metadata=X, identity=PROJECT, infer=False)
        tell(memory, first, {"project": 1})
        converse(memory, "When is the release?", X, 1)
        converse(memory, "And when is the other release?", {"project": 2}, 2)
    prompts = [one.user for one in chat.calls]

    assert len(prompts) == 2
    assert [text for text in (cooks, first) for one in prompts if text in one] == []


def test_what_is_known_without_an_identity_is_shown_to_who_gives_none(tmp_path: Path) -> None:
    chat = ScriptedChat([answer("Release: Friday", 1, None)])
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
        tell(memory, FRIDAY, X)
        memory.add(Message(text="When is the release?"), ALICE)

        [record] = memory.list(ALICE, kinds=["fact"]).records
        assert (record.text, record.times_told, dict(record.metadata)) == (FRIDAY, 2, X)


def answer(text: str, same_as: int | None, replaces: int | None) -> str:
    """Write the answer of a model that found one fact."""
    given = {"kind": "fact", "since": None, "relations": []}
    return json.dumps(
        {"facts": [{"text": text, "same_as": same_as, "replaces": replaces, **given}]}
    )
