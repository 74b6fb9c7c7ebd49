"""Log of notes: what it keeps of a recall, for how long, and that no turn depends on it."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest

from commonplace import Memory, Scope
from commonplace.admin import copy
from commonplace.agents import AgentMemory, Policy, on, render, run_plan
from commonplace.agents.note_log import KEPT, LoggedNote, explain_logged, logged_notes
from commonplace.ports import Address, Blob, Checkpoint
from commonplace.testing.fakes import HashEmbedder

ALICE = Scope(user_id="alice", agent_id="helper", session_id="monday")
TUESDAY = Scope(user_id="alice", agent_id="helper", session_id="tuesday")
BOB = Scope(user_id="bob")
ASKED = "Where does Alice live?"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(
        str(tmp_path / "memory"),
        embedder=HashEmbedder(),
        redact=lambda text: text.replace("4711", "…"),
    ) as opened:
        opened.add(["Alice lives in Rome.", "Alice likes tea.", ASKED], ALICE.owner)
        yield opened


def agent(memory: Memory, note_log: str) -> AgentMemory:
    return AgentMemory(memory, Policy(note_log=note_log, top_k=1), log="tests")


def logged(mine: AgentMemory) -> list[LoggedNote]:
    for writing in list(mine.lazy.accepting):
        writing.result(10)
    return logged_notes(mine.lazy.get().admin.checkpoints)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_log_has_what_was_shown_and_left_out_and_the_question_if_it_may(memory, is_async):
    notes = []
    for kept in ("off", "ids", "questions"):
        mine = agent(memory, kept)
        asked = f"{ASKED} 4711"
        found = asyncio.run(mine.arecall(ALICE, asked)) if is_async else mine.recall(ALICE, asked)
        notes.append(logged(mine))

    assert [len(one) for one in notes] == [0, 1, 2]
    latest, first = notes[-1]
    assert (latest.scope, latest.question, first.question) == (ALICE, f"{ASKED} …", None)
    assert [one.id for one in latest.shown] == [match.record.id for match in found]
    assert sum(latest.shown[0].parts.values()) == pytest.approx(
        sum(found[0].score_details.values()), abs=0.01
    )
    told = {one.text: one.id for one in memory.list(ALICE.owner)}
    assert {one.id: one.rule for one in latest.left_out}[told["Alice likes tea."]] is not None
    text = memory.admin.checkpoints.read(f"commonplace-notes/{ALICE.key}", "").checkpoint.body.data
    assert b"Rome" not in text


@pytest.mark.every_engine
def test_a_logged_note_is_explained_with_its_records_as_they_are_now(memory):
    mine = agent(memory, "questions")
    found = mine.recall(ALICE, ASKED)
    [note] = logged(mine)
    policy = Policy(top_k=1)

    explained = run_plan(explain_logged(note, policy), on(memory))
    assert explained.note == render(found, policy)
    assert {one.match.record.id: one.rule for one in explained.left_out} == {
        one.id: one.rule for one in note.left_out
    }
    memory.delete(found[0].record.id, ALICE.owner)
    assert run_plan(explain_logged(note, policy), on(memory)).lines == ()


@pytest.mark.every_engine
def test_the_last_two_hundred_of_a_memory_are_kept_and_other_states_stay(memory):
    blob = Blob(type="other/json", data=b"{}")
    others = [
        Address(thread="run", namespace="", id=id_) for id_ in ("1ef", "note-9", "note", "state")
    ]
    for address in others:
        memory.admin.checkpoints.put(
            Checkpoint(address=address, body=blob, metadata=blob, versions={}, run="run"), {}, None
        )
    mine = agent(memory, "questions")
    for number in range(KEPT + 30):
        mine.recall((ALICE, TUESDAY, BOB)[number % 3], f"What is number {number}?")
        if number % 50 == 0:
            logged(mine)

    notes = logged(mine)
    assert {f"What is number {n}?" for n in range(KEPT + 30)} >= {one.question for one in notes}
    assert notes[0].question == f"What is number {KEPT + 29}?"
    assert len(notes) == KEPT - 1  # one of the others comes first in their order
    for address in others:
        assert memory.admin.checkpoints.read("run", "", address.id) is not None


@pytest.mark.every_engine
def test_an_erasure_removes_the_notes_of_its_scope_also_those_that_are_written_after_it(memory):
    mine = agent(memory, "questions")
    for scope in (ALICE, TUESDAY, BOB):
        mine.recall(scope, ASKED)
    assert len(logged(mine)) == 3

    gone = memory.forget(Scope(user_id="alice", session_id="monday"))
    assert gone.complete
    assert gone.removed["checkpoints.checkpoints"] == 1
    assert {one.scope for one in logged(mine)} == {TUESDAY, BOB}

    may_write, write = threading.Event(), mine._note_log._write
    mine._note_log._write = lambda: may_write.wait(10) and write()
    mine.recall(TUESDAY, ASKED)
    memory.forget(Scope(user_id="alice"))
    may_write.set()
    assert {one.scope for one in logged(mine)} == {BOB}
    assert memory.admin.checkpoints.count(Scope(user_id="alice"))["threads"] == 0


def test_a_copy_has_the_log(memory, tmp_path):
    mine = agent(memory, "ids")
    mine.recall(ALICE, ASKED)
    notes = logged(mine)
    with Memory.open(str(tmp_path / "copy"), embedder=HashEmbedder()) as target:
        assert copy(memory, target).complete
        assert logged_notes(target.admin.checkpoints) == notes
        assert target.forget(Scope(user_id="alice")).complete
        assert logged_notes(target.admin.checkpoints) == []


def test_no_turn_waits_for_the_log_or_fails_by_it(memory, caplog):
    mine = agent(memory, "ids")
    may_write = threading.Event()

    def fail(*_: object, **__: object) -> None:
        may_write.wait(10)
        raise OSError("the disk is full")

    checkpoints = memory.admin.checkpoints
    put, checkpoints.put = checkpoints.put, fail
    began = datetime.now(UTC)
    for _ in range(3):
        assert mine.recall(ALICE, ASKED)
    assert datetime.now(UTC) - began < timedelta(seconds=5)
    may_write.set()
    assert logged(mine) == []
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert "note log" in caplog.text
    checkpoints.put = put
    with mock.patch(
        "commonplace.agents.note_log.start_call", side_effect=RuntimeError("no thread")
    ):
        assert mine.recall(ALICE, ASKED)
    mine.recall(ALICE, ASKED)
    assert len(logged(mine)) == 2  # with the one that waited
