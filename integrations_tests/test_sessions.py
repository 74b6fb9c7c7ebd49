"""Sessions: turns, state, the summary, what is promoted, and what an erasure leaves of them."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from commonplace import (
    Fact,
    InvalidRecordError,
    InvalidScopeError,
    LoopRequiredError,
    Memory,
    MemoryClosedError,
    Message,
    ModelFailedError,
    ModelUnreadableError,
    RecordNotFoundError,
    Relation,
    Scope,
)
from commonplace.admin import copy
from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
SECRET = "xylophone-4711"


def talk(name: str, user: str = "alice") -> Scope:
    return Scope(user_id=user, agent_id="coach", session_id=name)


MONDAY = talk("monday")


def answer(text: str) -> str:
    return json.dumps({"summary": text})


def say(memory: Memory, scope: Scope, *texts: str) -> list[str]:
    """Store turns verbatim, from the user and the assistant by turns; return their ids."""
    roles = ("user", "assistant")
    messages = [Message(text=text, role=roles[n % 2]) for n, text in enumerate(texts)]
    return list(memory.add(messages, scope, infer=False).ids)


@pytest.fixture
def memory(tmp_path: Path, engines: str) -> Iterator[Memory]:
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


def with_chat(memory: Memory, tmp_path: Path, chat: object) -> Memory:
    """Open the same memory again, with a chat model."""
    return Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder(), chat=chat)  # type: ignore[arg-type]


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_turns_are_read_from_the_end_and_page_by_page(memory: Memory) -> None:
    texts = [f"Turn {n}." for n in range(7)]
    ids = say(memory, MONDAY, *texts[:4]) + say(memory, MONDAY, *texts[4:])
    say(memory, talk("monday", "bob"), "Bob's own.")
    memory.add("A fact.", MONDAY)
    session = memory.session(MONDAY)
    last = session.messages(limit=3)
    before = session.messages(limit=3, before=last[0].id)

    assert [one.text for one in last] == texts[4:]
    assert [one.text for one in before] == texts[1:4]
    assert [one.id for one in session.messages(before=before[0].id)] == ids[:1]
    assert session.messages(before=ids[0]) == []
    for wrong in ("zz", "", 1, ids[0][:8]):
        with pytest.raises(InvalidRecordError, match="before="):
            session.messages(before=wrong)  # type: ignore[arg-type]
    assert memory.session(talk("none")).messages() == []
    assert [one.role for one in last] == ["user", "assistant", "user"]


@pytest.mark.every_engine
def test_sessions_are_listed_with_what_they_left(memory: Memory) -> None:
    for name in ("monday", "tuesday", "friday"):
        say(memory, talk(name), "Hello.", "Good day.")
    say(memory, talk("monday", "bob"), "Bob's own.")
    memory.session(MONDAY).summarize("They greeted each other.")
    first = memory.sessions(ALICE, limit=2)
    last = memory.sessions(ALICE, limit=2, cursor=first.cursor)
    found = [*first, *last]

    assert [one.scope.session_id for one in found] == ["friday", "tuesday", "monday"]
    assert [one.turns for one in found] == [2, 2, 2]
    assert [one.summary and one.summary.text for one in found] == [
        None, None, "They greeted each other.",
    ]  # fmt: skip
    assert last.cursor is None
    assert all(one.first_at <= one.last_at for one in found)
    assert asyncio.run(memory.asessions(BOB))[0].scope == talk("monday", "bob")


def least_cpu(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Measure the seconds of CPU that calls take, by turns, each as it is disturbed least."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(60):
        for name, call in calls.items():
            started = time.process_time()
            call()
            found[name].append(time.process_time() - started)
    return {name: min(seconds) for name, seconds in found.items()}


def test_reading_a_session_costs_less_than_one_list_however_many_there_are(tmp_path: Path) -> None:
    numbers = count()
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        one = memory.session(talk("7"))

        def summarize() -> None:
            one.summarize(f"Summary {next(numbers)}.")
            memory.flush()  # what is done in the background costs, too

        calls = {
            "page": lambda: memory.sessions(ALICE),
            "turns": lambda: one.messages(limit=20),
            "summary": one.summary,
            "summarize": summarize,
            "list": lambda: memory.list(ALICE),
        }
        costs = []
        for few, many in ((0, 100), (100, 1_000)):
            for n in range(few, many):
                turns = range(40 if n == 7 else 10)  # that one is read
                say(memory, talk(str(n)), *(f"Turn {turn} of session {n}." for turn in turns))
                memory.session(talk(str(n))).summarize(f"It was about {n}.")
            costs.append(least_cpu(calls))
        first, last = costs

    assert last["page"] + last["turns"] + last["summary"] < last["list"], last
    assert all(last[name] < 2 * first[name] for name in calls), costs


def test_a_session_needs_an_id_and_an_open_memory(memory: Memory) -> None:
    with pytest.raises(InvalidScopeError, match="session_id"):
        memory.session(ALICE)
    with pytest.raises(InvalidRecordError, match="must be a Scope"):
        memory.session("monday")  # type: ignore[arg-type]
    session = memory.session(MONDAY)
    for wrong in (0, 1001):
        with pytest.raises(InvalidRecordError, match="limit"):
            session.messages(limit=wrong)
    memory.close()
    for call in (session.messages, session.state, session.summary, session.promote):
        with pytest.raises(MemoryClosedError):
            call()


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_state_is_merged_key_by_key_and_erased_with_its_session(memory: Memory) -> None:
    session, other = memory.session(MONDAY), memory.session(talk("tuesday"))
    before = dict(session.state())
    session.put_state({"step": 1, "note": "é", "cart": [{"id": 1, "paid": None}]})
    other.put_state({"step": 9})
    session.put_state({"step": 2, "note": None, "unknown": None})

    assert before == {}
    assert session.state() == {"step": 2, "cart": [{"id": 1, "paid": None}]}
    receipt = memory.forget(MONDAY)
    assert receipt.complete
    assert (session.state(), other.state()) == ({}, {"step": 9})
    memory.forget(ALICE)
    assert other.state() == {}


PUTS_KEYS = """
import sys
from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder

path, name, user, agent, session = sys.argv[1:]
with Memory.open(path, embedder=HashEmbedder()) as memory:
    monday = memory.session(Scope(user_id=user, agent_id=agent, session_id=session))
    for n in range(20):
        monday.put_state({f"{name}{n}": n, "both": name})
"""


def test_two_processes_lose_no_key_of_each_other(memory: Memory, tmp_path: Path) -> None:
    scope = [str(one) for one in (MONDAY.user_id, MONDAY.agent_id, MONDAY.session_id)]
    given = [sys.executable, "-c", PUTS_KEYS, str(tmp_path / "memory")]
    workers = [subprocess.Popen([*given, name, *scope]) for name in "ab"]
    codes = [one.wait(60) for one in workers]
    state = memory.session(MONDAY).state()

    assert codes == [0, 0]
    assert {key: state[key] for key in state if key != "both"} == {
        f"{name}{n}": n for name in "ab" for n in range(20)
    }


def test_what_is_no_state_is_refused_and_changes_nothing(memory: Memory) -> None:
    session = memory.session(MONDAY)
    session.put_state({"a": "x" * 600_000})
    for wrong, why in (
        ({"b": "x" * 600_000}, "1048576"),
        ({"": 1}, "not empty"),
        ({"b": {1, 2}}, "b"),
        (["b"], r"state=\['b'\] must be a mapping"),
        ({"b": [float("nan")]}, r"state\['b'\]\[0\]=nan"),
    ):
        with pytest.raises(InvalidRecordError, match=why):
            session.put_state(wrong)  # type: ignore[arg-type]

    assert list(session.state()) == ["a"]
    session.put_state({"a": None, "b": "x" * 600_000})  # the former value has gone
    assert list(session.state()) == ["b"]


# -- the summary -----------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_a_summary_is_one_record_with_a_history_that_no_search_finds(memory: Memory) -> None:
    ids = say(memory, MONDAY, "I plan a trip to Oslo.", "Noted.", "In May.", "Fine.")
    session = memory.session(MONDAY)
    first = session.summarize("A trip to Oslo is planned.", covers=ids[:2])
    second = session.summarize("A trip to Oslo is planned for May.")
    assert first is not None
    assert second is not None
    history = memory.history(second.id, ALICE)

    assert (second.kind, second.scope, second.origin) == ("summary", MONDAY, "assistant")
    assert (first.sources, second.sources) == (tuple(ids[:2]), tuple(ids[2:]))
    assert session.summary() == second == memory.get(first.id, MONDAY)
    assert [one.text for one in history] == [first.text, second.text]
    assert all(one.record.kind == "episode" for one in memory.search("trip to Oslo", ALICE))
    assert [one.id for one in session.messages()] == ids
    assert memory.session(talk("tuesday")).summary() is None
    with pytest.raises(RecordNotFoundError):
        session.summarize("Another.", covers=[ids[0], "unknown"])
    with pytest.raises(InvalidRecordError, match="chat model"):
        session.summarize()
    assert session.summary() == second


def test_the_chat_model_writes_it_from_the_last_one_and_what_is_new(
    memory: Memory, tmp_path: Path
) -> None:
    chat = ScriptedChat([answer("About Oslo."), f"Here: {answer('Oslo in May.')}"])
    say(memory, MONDAY, "I plan a trip to Oslo.", "Noted.")
    with with_chat(memory, tmp_path, chat) as talking:
        session = talking.session(MONDAY)
        first = session.summarize()
        again = session.summarize()  # nothing is new
        ids = say(memory, MONDAY, "In May. " + "x" * 9_000)
        last = session.summarize()
    assert first is not None
    assert last is not None

    assert first == again
    assert (first.text, last.text) == ("About Oslo.", "Oslo in May.")
    assert last.sources == tuple(ids)
    assert "I plan a trip to Oslo." in chat.calls[0].user
    assert "Oslo." not in chat.calls[1].user.replace("About Oslo.", "")
    assert "In May." in chat.calls[1].user
    assert len(chat.calls[1].user) < 3_000


@pytest.mark.parametrize("failure", [RuntimeError("down"), "no JSON", answer(" "), '{"facts": []}'])
def test_a_model_that_fails_changes_nothing(
    memory: Memory, tmp_path: Path, failure: str | Exception
) -> None:
    ids = say(memory, MONDAY, "I plan a trip to Oslo.", "Noted.")
    kept = memory.session(MONDAY).summarize("As it was.", covers=ids[:1])
    memory.add("Alice likes tea.", MONDAY)
    with with_chat(memory, tmp_path, ScriptedChat([failure])) as talking:
        wanted = ModelFailedError if isinstance(failure, Exception) else ModelUnreadableError
        with pytest.raises(wanted):
            talking.session(MONDAY).close(expire_after=timedelta(days=1))

    assert memory.session(MONDAY).summary() == kept
    assert [one.expires_at for one in memory.session(MONDAY).messages()] == [None, None]
    assert len(memory.list(MONDAY, kinds=["fact"])) == 1


def test_an_asynchronous_model_writes_it_on_the_loop(memory: Memory, tmp_path: Path) -> None:
    chat = AsyncScriptedChat([answer("About Oslo.")])
    say(memory, MONDAY, "I plan a trip to Oslo.")
    with with_chat(memory, tmp_path, chat) as talking:
        session = talking.session(MONDAY)
        with pytest.raises(LoopRequiredError, match="asummarize"):
            session.summarize()

        async def close() -> tuple[object, ...]:
            await session.aput_state({"a": 1})
            closed = await session.aclose(expire_after=timedelta(days=1))
            turns = await session.amessages()
            return closed and closed.text, await session.astate(), turns[0].expires_at is not None

        assert asyncio.run(close()) == ("About Oslo.", {"a": 1}, True)


# -- what lasts ------------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_what_is_told_in_three_sessions_becomes_one_record_of_the_owner(memory: Memory) -> None:
    lives = Relation(subject="Alice", predicate="works_at", object="Arla")
    drawn = Fact(text="Alice works at Arla.", relations=(lives,), metadata={"n": 1})
    scopes = [talk(name) for name in ("monday", "tuesday", "friday")]
    turns = [say(memory, scope, "I work at Arla.")[0] for scope in scopes]
    for scope, turn in zip(scopes, turns, strict=True):
        memory.add(replace(drawn, sources=(turn,)), scope)
    memory.add("Alice is tired.", MONDAY)
    [made] = memory.session(scopes[2]).promote()
    again = [memory.session(scope).promote() for scope in scopes for _ in range(3)]
    facts = memory.list(ALICE, kinds=["fact"]).records

    assert (made.text, made.scope, made.metadata) == (drawn.text, MONDAY.owner, {"n": 1})
    assert made.sources == tuple(turns)
    assert sorted(one.text for one in facts) == ["Alice is tired.", made.text]
    assert all(one == [] for one in again)
    assert memory.get(made.id, ALICE) == made
    assert [one.supports for one in memory.relations(ALICE)] == [(made.id,)]
    assert len(memory.session(MONDAY).messages()) == 1
    assert memory.list(BOB).records == ()


def test_what_the_owner_deleted_and_what_has_a_namespace_is_not_promoted(memory: Memory) -> None:
    memory.add([Fact(text="Alice is tired."), Fact(text="An item.", namespace=("items",))], MONDAY)
    [made] = memory.session(MONDAY).promote(min_recalls=0)
    memory.delete(made.id, ALICE)
    memory.add("Alice is tired.", talk("tuesday"))

    assert memory.session(talk("tuesday")).promote(min_recalls=0) == []
    assert [one.text for one in memory.list(ALICE)] == ["An item."]
    for wrong in (-1, "2"):
        with pytest.raises(InvalidRecordError, match="min_recalls"):
            memory.session(MONDAY).promote(min_recalls=wrong)  # type: ignore[arg-type]


def test_what_is_recalled_often_is_promoted_and_so_are_turns_that_are_asked_for(
    memory: Memory,
) -> None:
    say(memory, MONDAY, "The key is under the mat.", "Thank you.")
    memory.add("The alarm code is 99.", MONDAY, origin="tool")
    before = memory.session(MONDAY).promote()
    for _ in range(2):
        memory.search("Where is the key? What is the alarm code?", ALICE, decay=True, top_k=9)
    [fact] = memory.session(MONDAY).promote()
    [turn] = memory.session(MONDAY).promote(kinds=["episode"])
    again = memory.session(MONDAY).promote(kinds=["episode"])

    assert (before, again) == ([], [])
    assert (fact.text, fact.origin, fact.trust) == ("The alarm code is 99.", "tool", 0.3)
    assert (turn.text, turn.kind, turn.scope) == ("The key is under the mat.", "fact", MONDAY.owner)
    assert len(memory.session(MONDAY).messages()) == 2


def test_closing_gives_turns_an_end_and_keeps_the_rest(memory: Memory) -> None:
    texts = [f"Turn {n}." for n in range(9)]
    say(memory, MONDAY, *texts)
    session = memory.session(MONDAY)
    kept = session.summarize("Nine turns.")
    for wrong in (timedelta(0), 5):
        with pytest.raises(InvalidRecordError, match="expire_after"):
            session.close(expire_after=wrong)  # type: ignore[arg-type]
    plain = session.close()
    untouched = [one.expires_at for one in session.messages()]
    session.close(expire_after=timedelta(days=2))
    ends = {one.expires_at for one in session.messages()}
    session.close(expire_after=timedelta(days=9))

    assert plain == kept == session.summary()
    assert untouched == [None] * 9
    assert len(ends) == 1
    assert {one.expires_at for one in session.messages()} == ends
    [listed] = memory.sessions(ALICE)
    assert (listed.turns, listed.summary) == (9, kept)


# -- erasure and copies ----------------------------------------------------------------------------


def test_an_erasure_leaves_no_byte_of_summary_and_state(memory: Memory, tmp_path: Path) -> None:
    session = memory.session(MONDAY)
    say(memory, MONDAY, "Hello.")
    session.summarize(f"The first was {SECRET}.")
    session.summarize(f"It is {SECRET}.")
    session.put_state({"code": SECRET, SECRET: 1})
    receipt = memory.forget(MONDAY)
    memory.close()
    files = [one for one in tmp_path.rglob("*") if one.is_file()]

    assert receipt.complete
    assert files
    assert not [one.name for one in files if SECRET.encode() in one.read_bytes()]


def test_a_copy_has_all_of_a_session(memory: Memory, tmp_path: Path) -> None:
    say(memory, MONDAY, "Hello.", "Good day.")
    session = memory.session(MONDAY)
    session.summarize("They greeted each other.")
    session.put_state({"step": 2})
    with Memory.open(str(tmp_path / "copy"), embedder=HashEmbedder()) as copied:
        copy(memory, copied)
        other = copied.session(MONDAY)

        assert copied.sessions(ALICE) == memory.sessions(ALICE)
        assert other.messages() == session.messages()
        assert (other.state(), other.summary()) == (session.state(), session.summary())
