"""What becomes of every element of a model's answer, and of extractions that fail."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commonplace import Backlog, Fact, Memory, Message, Relation, Scope, Settings
from commonplace.admin import examine
from commonplace.backends.sqlite.index import SqliteIndex
from commonplace.errors import StoreUnavailableError
from commonplace.ingest.changes import decode_plan, encode_plan
from commonplace.ports.stores import arm_crash_points
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
QUICK = Settings(retry_after=0.01)
SAID = Message(text="Tea for me, and Miso wants milk.")
TEA = '{"facts": [{"text": "Alice likes tea."}]}'
FORTY = [f"Alice visited town number {n}." for n in range(40)]


def open_memory(folder: Path, chat: Any, **given: Any) -> Memory:
    given = {"embedder": HashEmbedder(), "settings": QUICK, **given}
    return Memory.open(str(folder), chat=chat, **given)


def answer(*rows: Any) -> str:
    return json.dumps({"facts": [{"text": one} if isinstance(one, str) else one for one in rows]})


def facts_of(memory: Memory, scope: Scope = ALICE) -> list[str]:
    kinds = ("fact", "preference", "profile", "procedure")
    found = memory.list(scope, kinds=kinds, limit=1000, include_superseded=False)
    return sorted(one.text for one in found.records)


def turns_of(memory: Memory) -> list[str]:
    return [one.text for one in memory.list(ALICE, kinds=["episode"]).records]


# -- every element ---------------------------------------------------------------------------------

UNFIT = [
    7, None, {"kind": "fact"}, {"text": ["a"]}, {"text": ""}, " ", {"text": "—…"},
    {"text": "x" * 40_000}, {"text": "Alice rows.", "event": "NONE"}, FORTY[0].upper(),
    {"text": "Alice owns Miso.", "relations": [{"subject": ""}, 7]},
]  # fmt: skip
COUNTED = {
    "not a text": 4, "empty": 3, "too long": 1, "no change": 1, "repeated": 1, "relation": 2,
}  # fmt: skip


@pytest.mark.every_engine
def test_forty_of_forty_facts_of_one_answer_are_stored(tmp_path: Path) -> None:
    with open_memory(tmp_path, ScriptedChat([answer(*FORTY)])) as memory:
        written = memory.add(SAID, ALICE)

        assert facts_of(memory) == sorted(FORTY)
        assert [one.text for one in written.changes] == [SAID.text, *FORTY]
        assert (written.skipped, written.extraction_error) == ({}, None)


async def test_forty_of_forty_facts_are_stored_with_an_asynchronous_model(tmp_path: Path) -> None:
    async with open_memory(tmp_path, AsyncScriptedChat([answer(*FORTY, *UNFIT)])) as memory:
        written = await memory.aadd(SAID, ALICE)

        assert facts_of(memory) == sorted([*FORTY, "Alice owns Miso."])
        assert written.skipped == COUNTED


def test_what_is_left_out_is_counted_by_its_reason(tmp_path: Path) -> None:
    many = [*FORTY, *UNFIT]
    with open_memory(tmp_path, ScriptedChat([answer(*many), answer(*FORTY)[:-20]])) as memory:
        written = memory.add(SAID, ALICE)
        cut = memory.add(Message(text="And?"), ALICE)

    left_out = {name: n for name, n in written.skipped.items() if name != "relation"}
    assert written.skipped == COUNTED
    assert len(many) == len(written.changes) - 1 + sum(left_out.values())
    assert cut.skipped == {"cut off": 1}
    assert len(cut.changes) == 40


def test_a_thousand_facts_are_stored_and_the_rest_is_counted(tmp_path: Path) -> None:
    many = [f"Alice knows the number {n}." for n in range(1_005)]
    with open_memory(tmp_path, ScriptedChat([answer(*many)])) as memory:
        written = memory.add(SAID, ALICE)

    assert (len(written.changes), written.skipped) == (1_001, {"too many": 5})


def test_the_relations_of_a_repeated_fact_are_those_of_the_first(tmp_path: Path) -> None:
    ends = {"subject": "Alice", "predicate": "likes"}
    first = {"text": "Alice likes hot drinks.", "relations": [{**ends, "object": "tea"}]}
    again = {"text": "alice likes hot drinks", "relations": [{**ends, "object": "cocoa"}]}
    with open_memory(tmp_path, ScriptedChat([answer(first, again)])) as memory:
        memory.add(SAID, ALICE)

        assert facts_of(memory) == [first["text"]]
        assert {one.object for one in memory.relations(ALICE)} == {"tea", "cocoa"}


# -- the same but for its form ---------------------------------------------------------------------

SAME = [
    ("Alice likes green tea.", "alice  likes green TEA"),
    ("Alice likes green tea", "Alice likes green tea!"),
    ("小林喜欢喝红茶。", "小林喜欢喝红茶"),
    ("小林喜欢喝红茶", " 小林喜欢喝红茶！"),
    ("Ｍiso is 3 years old.", "Miso is 3 years old"),
]
OTHER = [
    ("Alice likes green tea.", "Alice likes green tea?"),
    ("Alice likes green tea.", "Alice likes green teas."),
    ("Alice's number is 12.5.", "Alice's number is 125."),
    ("小林喜欢喝红茶。", "小林不喜欢喝红茶。"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_facts_of_one_answer_that_differ_only_in_form_are_one(
    tmp_path: Path, first: str, second: str
) -> None:
    with open_memory(tmp_path, ScriptedChat([answer(first, second)])) as memory:
        written = memory.add(SAID, ALICE)

        assert facts_of(memory) == [first.strip()]
        assert written.skipped == {"repeated": 1}


@pytest.mark.every_engine
@pytest.mark.parametrize(("first", "second"), SAME)
def test_a_stored_fact_told_in_another_form_is_told_again(
    tmp_path: Path, first: str, second: str
) -> None:
    others = [f"Alice wants milk for Miso, {n} cups." for n in range(30)]  # nearer to what is said
    with open_memory(tmp_path, ScriptedChat([answer(second)])) as memory:
        [change] = memory.add(first, ALICE).changes
        memory.add(others, ALICE)
        memory.add(SAID, ALICE)

        record = memory.get(change.id, ALICE)
        assert record is not None
        assert (record.text, record.times_told) == (first, 2)
        assert facts_of(memory) == sorted([first, *others])


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_facts_that_differ_in_more_are_two(tmp_path: Path, first: str, second: str) -> None:
    with open_memory(tmp_path, ScriptedChat([answer(second)])) as memory:
        memory.add(first, ALICE)
        memory.add(SAID, ALICE)

        assert facts_of(memory) == sorted([first, second])


@pytest.mark.parametrize(
    "stored",
    [
        (Fact(text="Alice likes tea.", kind="procedure"), ALICE),
        (Fact(text="Alice likes tea."), Scope(user_id="bob")),
        (Fact(text="Alice likes tea."), Scope(user_id="alice", agent_id="cook")),
    ],
    ids=["kind", "user", "agent"],
)
def test_another_kind_or_owner_has_its_own(tmp_path: Path, stored: tuple[Fact, Scope]) -> None:
    fact, scope = stored
    noise = [f"Alice wants milk for Miso, {n} cups." for n in range(30)]
    with open_memory(tmp_path, ScriptedChat([answer("alice likes tea")])) as memory:
        memory.add(fact, scope)
        memory.add(noise, ALICE)
        memory.add(SAID, ALICE)

        assert "alice likes tea" in facts_of(memory)
        assert [one.times_told for one in memory.list(scope).records if one.text == fact.text] == [
            1
        ]


def test_a_change_of_what_is_known_is_no_repetition_of_it(tmp_path: Path) -> None:
    lives = Relation(subject="Alice", predicate="lives_in", object="Lyon")
    row = {"text": "alice lives in lyon", "replaces": 1}
    with open_memory(tmp_path, ScriptedChat([answer(row)])) as memory:
        memory.add(Fact(text="Alice lives in Lyon.", relations=(lives,)), ALICE)
        memory.add(SAID, ALICE)

        assert facts_of(memory) == ["Alice lives in Lyon."]


def test_an_index_that_is_away_after_the_model_has_answered_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = SqliteIndex.search, list[int]()

    def search(self: SqliteIndex, query: Any, limit: int) -> Any:
        calls.append(limit)
        if len(calls) == 2:
            raise StoreUnavailableError(store="index", reason="away")
        return real(self, query, limit)

    chat = ScriptedChat([TEA])
    with open_memory(tmp_path, chat) as memory:
        monkeypatch.setattr(SqliteIndex, "search", search)
        memory.add(SAID, ALICE)

        assert facts_of(memory) == ["Alice likes tea."]
    assert (len(calls), len(chat.calls)) == (2, 1)


# -- a crash ---------------------------------------------------------------------------------------

CHILD = """\
import os, signal, sys
from commonplace import Memory, Message, Scope
from commonplace.ports.stores import arm_crash_points
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

folder, point, *answers = sys.argv[1:]
memory = Memory.open(folder, embedder=HashEmbedder(), chat=ScriptedChat(answers))
memory.add("Alice rows.", Scope(user_id="alice"))
memory.flush()
arm_crash_points(lambda at: os.kill(os.getpid(), signal.SIGKILL) if at == point else None)
memory.add(Message(text="Tea for me, and Miso wants milk."), Scope(user_id="alice"), wait=False)
memory.flush()
memory.close()
"""
KEPT = ["after_plan", "before_graph", "after_graph", "after_index", "before_remove"]


def crash(folder: Path, point: str, *answers: str) -> None:
    command = [sys.executable, "-c", CHILD, str(folder), point, *answers]
    assert subprocess.run(command, check=False).returncode < 0


@pytest.mark.parametrize("point", KEPT)
def test_a_replay_gives_the_same_facts_and_asks_no_model(tmp_path: Path, point: str) -> None:
    # Badly formed, with a fact in another form, and cut off.
    crash(tmp_path, point, answer(*FORTY, *UNFIT, "alice rows!")[:-2] + ", {'text': 'Alice")
    chat = ScriptedChat([])
    with open_memory(tmp_path, chat) as memory:
        assert memory.flush(20) == Backlog(pending=0, dead=0)

        assert facts_of(memory) == sorted([*FORTY, "Alice owns Miso.", "Alice rows."])
        assert turns_of(memory) == [SAID.text]
    assert chat.calls == []


@pytest.mark.parametrize("point", KEPT)
def test_what_was_left_out_is_told_though_the_write_is_tried_again(
    tmp_path: Path, point: str
) -> None:
    stops = [RuntimeError("stopped")]

    def stop(reached: str) -> None:
        if reached == point and stops:
            raise stops.pop()

    with open_memory(tmp_path, ScriptedChat([answer(*FORTY, *UNFIT)])) as memory:
        arm_crash_points(stop)
        try:
            written = memory.add(SAID, ALICE)
        finally:
            arm_crash_points(None)

    assert not stops
    assert written.skipped == COUNTED


def test_a_plan_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    import msgspec

    with open_memory(tmp_path, ScriptedChat([TEA])) as memory:
        plans: list[bytes] = []
        journal = memory._runtime.engines.journal
        keep = journal.plan
        journal.plan = lambda given: (plans.extend(given.values()), keep(given))[1]
        memory.add(SAID, ALICE)

    [plan] = plans
    assert isinstance(msgspec.msgpack.decode(plan), list)
    assert encode_plan(decode_plan(plan)) == plan


# -- extractions that fail -------------------------------------------------------------------------

FAILURES = {
    "unreadable": ["no", "still no"],
    "away": [ConnectionError("away")],
    "unfit": [answer(7), answer({"text": "x" * 40_000})],
}


def failing(kind: str, *more: str, is_async: bool = False) -> Any:
    return (AsyncScriptedChat if is_async else ScriptedChat)([*FAILURES[kind], *more])


@pytest.mark.every_engine
@pytest.mark.parametrize("kind", FAILURES)
def test_a_failed_extraction_is_a_dead_letter_that_is_extracted_again(
    tmp_path: Path, kind: str
) -> None:
    with open_memory(tmp_path, failing(kind, TEA)) as memory:
        written = memory.add([SAID, Fact(text="Alice rows.")], ALICE)
        [letter] = memory.admin.dead_letters(ALICE)
        found = examine(memory)

        assert [one.text for one in written.changes] == [SAID.text, "Alice rows."]
        assert written.extraction_error == letter.reason
        assert (letter.operation, letter.kind) == (written.operation, "extract")
        assert (found.dead, found.is_consistent, found.is_healthy) == ([letter], True, False)
        assert [one.text for one in memory.search("Miso wants milk", ALICE, top_k=1)] == [SAID.text]

        assert memory.admin.retry([letter.operation]) == 1
        assert memory.flush(20) == Backlog(pending=0, dead=0)
        assert facts_of(memory) == ["Alice likes tea.", "Alice rows."]
        assert turns_of(memory) == [SAID.text]
        [fact] = [one for one in memory.list(ALICE).records if one.text == "Alice likes tea."]
        assert fact.created_at <= letter.at


async def test_a_failed_extraction_is_retried_with_an_asynchronous_model(tmp_path: Path) -> None:
    async with open_memory(tmp_path, failing("unreadable", TEA, is_async=True)) as memory:
        await memory.aadd(SAID, ALICE)
        [letter] = memory.admin.dead_letters()
        assert await memory.admin.run(memory.admin.retry, [letter.operation]) == 1
        assert await memory.aflush(20) == Backlog(pending=0, dead=0)

        assert facts_of(memory) == ["Alice likes tea."]
        assert turns_of(memory) == [SAID.text]


def test_a_retry_that_fails_leaves_the_dead_letter(tmp_path: Path) -> None:
    with open_memory(tmp_path, ScriptedChat(["no"] * 4 + [TEA])) as memory:
        memory.add(SAID, ALICE)
        for expected in (1, 0):
            [letter] = memory.admin.dead_letters()
            memory.admin.retry([letter.operation])
            assert memory.flush(20) == Backlog(pending=0, dead=expected)

        assert (facts_of(memory), turns_of(memory)) == (["Alice likes tea."], [SAID.text])


def test_a_retry_in_another_process_and_with_its_model(tmp_path: Path) -> None:
    with open_memory(tmp_path, failing("away")) as memory:
        memory.add(SAID, ALICE)
    with open_memory(tmp_path, ScriptedChat([TEA])) as memory:
        memory.admin.retry([one.operation for one in memory.admin.dead_letters()])
        assert memory.flush(20) == Backlog(pending=0, dead=0)

        assert facts_of(memory) == ["Alice likes tea."]


def test_a_retry_brings_no_deleted_message_back(tmp_path: Path) -> None:
    with open_memory(tmp_path, failing("unreadable", TEA)) as memory:
        [change] = memory.add(SAID, ALICE).changes
        memory.delete(change.id, ALICE)
        memory.admin.retry([one.operation for one in memory.admin.dead_letters()])
        memory.flush(20)

        assert (facts_of(memory), turns_of(memory)) == (["Alice likes tea."], [])


@pytest.mark.parametrize("point", ["before_plan", *KEPT])
def test_a_crash_neither_loses_nor_doubles_a_failed_extraction(tmp_path: Path, point: str) -> None:
    crash(tmp_path, point, "no", "no")
    chat = ScriptedChat(["no", "no"] if point == "before_plan" else [])
    with open_memory(tmp_path, chat) as memory:
        assert memory.flush(20) == Backlog(pending=0, dead=1)
        assert turns_of(memory) == [SAID.text]
    with open_memory(tmp_path, ScriptedChat([TEA])) as memory:
        memory.admin.retry([one.operation for one in memory.admin.dead_letters()])
        assert memory.flush(20) == Backlog(pending=0, dead=0)
        assert facts_of(memory) == ["Alice likes tea.", "Alice rows."]
        assert turns_of(memory) == [SAID.text]


@pytest.mark.every_engine
def test_an_erasure_takes_a_failed_extraction_with_it(tmp_path: Path) -> None:
    with open_memory(tmp_path, failing("unreadable")) as memory:
        memory.add(SAID, ALICE)
        receipt = memory.forget(ALICE)

        assert receipt.complete
        assert receipt.removed["journal.rows"] == 1
        assert memory.flush() == Backlog(pending=0, dead=0)


def test_an_erasure_behind_a_failing_extraction_takes_it_too(tmp_path: Path) -> None:
    async def write() -> Sequence[Any]:
        class Forgets(AsyncScriptedChat):
            async def complete(self, system: str, user: str, *, schema: Any) -> str:
                if not self.calls:
                    erasures.append(asyncio.create_task(memory.aforget(ALICE)))
                    await asyncio.sleep(0.05)  # in which it is accepted
                return await super().complete(system, user, schema=schema)

        erasures: list[Any] = []
        memory = open_memory(tmp_path, Forgets(["no", "no"]))
        await memory.aadd(SAID, ALICE, wait=False)
        await memory.aflush(20)
        await asyncio.gather(*erasures)
        left = [*memory.admin.dead_letters(), *memory.list(ALICE).records]
        await memory.aclose()
        return left

    assert asyncio.run(write()) == []
