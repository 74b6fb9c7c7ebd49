"""Import of records from another system: ids, times and history stay, nothing is undone."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace import InvalidRecordError, Memory, Record, Relation, Scope
from commonplace.admin import ImportedRecord, ImportReport, find_existing, import_records
from commonplace.testing.fakes import HashEmbedder

MAY = datetime(2025, 5, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")


def imported(key: str, text: str, *, at: datetime = MAY, **given) -> ImportedRecord:
    record = Record(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, key)),
        text=text,
        scope=given.pop("scope", ALICE),
        metadata={"from": "elsewhere"},
        origin="import",
        created_at=at,
        updated_at=given.pop("updated_at", at),
        occurred_at=at,
    )
    return ImportedRecord(record=record, **given)


def test_a_memory_comes_with_its_id_its_times_and_its_past(memory: Memory):
    june = MAY + timedelta(days=31)
    one = imported("a", "likes green tea", updated_at=june, past=(("likes tea", MAY),))
    done = import_records(memory, [one])

    assert done == ImportReport(added=1)
    held = memory.get(one.record.id, ALICE)
    assert replace(held, version=0) == one.record
    assert [(v.event, v.text, v.at) for v in memory.history(one.record.id, ALICE)] == [
        ("ADD", "likes tea", MAY),
        ("UPDATE", "likes green tea", june),
    ]
    assert [m.record.id for m in memory.search("green tea", ALICE)] == [one.record.id]


def test_one_that_was_deleted_leaves_its_history_only(memory: Memory):
    one = imported("a", "likes tea", deleted_at=MAY + timedelta(days=1))

    assert import_records(memory, [one]) == ImportReport(deleted=1)
    assert memory.list(ALICE).records == ()
    assert [v.event for v in memory.history(one.record.id, ALICE)] == ["ADD", "DELETE"]
    assert memory.search("tea", ALICE) == []


def test_what_is_live_here_is_found_before_the_import(memory: Memory):
    bobs = Scope(user_id="bob")
    some = [
        imported("a", "likes tea"),
        imported("b", "likes tea", scope=bobs),
        imported("c", "likes milk"),
    ]
    some[1] = replace(some[1], record=replace(some[1].record, expires_at=MAY))
    import_records(memory, some[:2])

    assert find_existing(memory, some) == {some[0].record.id, some[1].record.id}
    elsewhere = [replace(one, record=replace(one.record, scope=bobs)) for one in some[::2]]
    assert find_existing(memory, elsewhere) == set()


def test_relations_are_resolved_among_what_is_there(memory: Memory):
    def lives(where: str) -> Relation:
        return Relation(subject="Ann", predicate="lives_in", object=where)

    june = MAY + timedelta(days=31)
    rome = imported("rome", "Ann lives in Rome", relations=(lives("Rome"),))
    oslo = imported("oslo", "Ann lives in Oslo", at=june, relations=(lives("Oslo"),))
    import_records(memory, [oslo, rome])

    assert [one.object for one in memory.relations(ALICE)] == ["Oslo"]
    assert [one.object for one in memory.relations(ALICE, as_of=MAY)] == ["Rome"]
    assert [m.record.text for m in memory.search("where Ann lives", ALICE)] == ["Ann lives in Oslo"]


def test_turns_take_their_places_in_the_order_given(memory: Memory):
    scope = Scope(user_id="alice", session_id="s")
    turns = [imported(str(n), f"turn {n}", scope=scope) for n in range(3)]
    import_records(
        memory, [replace(one, record=replace(one.record, kind="episode")) for one in turns]
    )

    held = [memory.get(one.record.id, scope) for one in turns]
    assert [one.position for one in held] == [0, 1, 2]


def test_importing_again_changes_nothing_and_undoes_nothing(memory: Memory):
    kept, changed, deleted = (imported(key, f"text of {key}") for key in "abc")
    some = [kept, changed, deleted]
    import_records(memory, some)
    memory.update(changed.record.id, "better", ALICE)
    memory.delete(deleted.record.id, ALICE)
    before = memory.list(ALICE)

    assert import_records(memory, some) == ImportReport(existing=2, refused=1)
    assert memory.list(ALICE) == before
    assert sorted(m.record.text for m in memory.search("text", ALICE)) == ["better", "text of a"]


def test_importing_again_asks_the_embedder_for_nothing(tmp_path: Path):
    embedder = HashEmbedder()
    some = [imported(key, f"text of {key}") for key in "abc"]
    with Memory.open(str(tmp_path), embedder=embedder) as memory:
        import_records(memory, some)
        asked = list(embedder.calls)
        import_records(memory, some)

        assert embedder.calls == asked == [tuple(one.record.text for one in some)]


def test_what_was_forgotten_here_since_stays_forgotten(memory: Memory):
    import_records(memory, [imported("a", "likes tea")])
    memory.forget(ALICE)

    assert import_records(memory, [imported("a", "likes tea")]) == ImportReport(refused=1)
    assert memory.list(ALICE).records == ()
    assert memory.search("tea", ALICE) == []


def test_an_id_of_another_owner_is_refused(memory: Memory):
    import_records(memory, [imported("a", "of Alice")])

    assert import_records(
        memory, [imported("a", "of Bob", scope=Scope(user_id="bob"))]
    ) == ImportReport(refused=1)
    assert [one.text for one in memory.list(ALICE).records] == ["of Alice"]


def test_a_change_here_wins_over_one_that_claims_to_come_from_the_future(memory: Memory):
    one = imported("a", "likes tea", at=datetime(2150, 1, 1, tzinfo=UTC))
    import_records(memory, [one])
    memory.update(one.record.id, "likes coffee", ALICE)

    assert [one.text for one in memory.list(ALICE).records] == ["likes coffee"]


def test_forgetting_takes_what_claims_to_come_from_the_future(memory: Memory):
    import_records(memory, [imported("a", "likes tea", at=datetime(2150, 1, 1, tzinfo=UTC))])
    receipt = memory.forget(ALICE)

    assert sum(receipt.left.values()) == 0
    assert memory.list(ALICE).records == ()
    assert memory.search("tea", ALICE) == []


def test_what_claims_to_come_from_the_future_stays_forgotten_too(memory: Memory):
    one = imported("a", "likes tea", at=datetime(2150, 1, 1, tzinfo=UTC))
    assert import_records(memory, [one]) == ImportReport(added=1)
    assert import_records(memory, [one]) == ImportReport(existing=1)
    memory.forget(ALICE)

    assert import_records(memory, [one]) == ImportReport(refused=1)
    assert memory.list(ALICE).records == ()


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda: imported("a", " "),
        lambda: imported("a", "x", past=(("", MAY),)),
        lambda: imported("a", "x", at=datetime(2025, 1, 1)),  # noqa: DTZ001 -- the point of it
        lambda: ImportedRecord(record=replace(imported("a", "x").record, id="7")),
        lambda: ImportedRecord(record=replace(imported("a", "x").record, origin="mem0")),
        lambda: ImportedRecord(record=replace(imported("a", "x").record, role="bot")),
    ],
    ids=["text", "past", "time", "id", "origin", "role"],
)
def test_what_cannot_be_stored_is_refused_where_it_is_made(spoilt):
    with pytest.raises(InvalidRecordError):
        spoilt()


def test_progress_is_reported_after_each_batch(memory: Memory):
    seen: list[int] = []
    import_records(memory, [imported(str(n), f"text {n}") for n in range(70)], progress=seen.append)

    assert seen == [64, 70]
