"""What code that was written for mem0 relies on, whichever version it was written for."""

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from commonplace import InvalidScopeError, MemoryClosedError, Scope
from commonplace import Memory as Core
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_mem0 import AsyncMemory, Memory, MemoryConfig
from commonplace_mem0.exceptions import (
    ClosedError,
    ConfigurationError,
    LLMError,
    MemoryNotFoundError,
    ValidationError,
    VectorStoreError,
)

KEYS = ["id", "memory", "hash", "metadata", "score", "created_at", "updated_at", "user_id"]
HISTORY = [
    *("id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at"),
    *("is_deleted", "actor_id", "role"),
]


def config(folder: Path, **more: Any) -> dict[str, Any]:
    store = {"provider": "qdrant", "config": {"path": str(folder / "memory")}}
    return {"vector_store": store, "embedder": HashEmbedder(), **more}


class Scripted:
    """A model of mem0's kind: gives its answers in order, then the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), []

    def generate_response(self, messages, response_format=None):
        self.asked.append(messages)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


def fact(text, *triples, since=None):
    ends = ("subject", "predicate", "object")
    return {
        "text": text,
        "since": since,
        "relations": [dict(zip(ends, one, strict=True)) for one in triples],
    }


@pytest.fixture
def m(tmp_path):
    with Memory.from_config(config(tmp_path)) as memory:
        yield memory


def texts(answer):
    return [one["memory"] for one in answer["results"]]


# -- the two call shapes ------------------------------------------------------------------------


@pytest.mark.parametrize("is_turn", [(True, False), (False, True)])
def test_a_text_and_a_turn_replace_each_other(tmp_path, is_turn):
    told = ["I live in Ghent", "I moved to Turku"]
    with Memory(core=Core.open(str(tmp_path / "memory"))) as memory:
        for text, of_turn in zip(told, is_turn, strict=True):
            memory.add([{"role": "user", "content": text}] if of_turn else text, user_id="ann")

        assert texts(memory.search("Where do I live?", user_id="ann"))[0] == told[1]


def test_ids_as_arguments_and_ids_in_filters_find_the_same(m):
    m.add("The cat is grey.", user_id="alice", infer=False)

    old = m.search("grey cat", user_id="alice", limit=5)
    new = m.search("grey cat", filters={"user_id": "alice"}, top_k=5)

    assert ["The cat is grey."] == texts(old) == texts(new)


def test_each_shape_has_its_own_defaults(m):
    m.add([f"Note {n} of the cat." for n in range(30)], user_id="alice", infer=False)
    m.add("Zebra.", user_id="alice", infer=False)

    assert 31 == len(m.search("cat", user_id="alice")["results"])
    found = m.search("cat", filters={"user_id": "alice"})["results"]
    assert 20 == len(found)
    assert all(one["score"] >= 0.1 for one in found)
    assert 31 == len(m.get_all(user_id="alice")["results"])
    assert 20 == len(m.get_all(filters={"user_id": "alice"})["results"])


def test_a_limit_is_honoured_in_either_shape_by_either_name(m):
    m.add([f"Note {n}." for n in range(9)], user_id="alice", infer=False)

    for limit in ({"limit": 3}, {"top_k": 3}, {"limit": 3, "top_k": 3}):
        assert 3 == len(m.get_all(user_id="alice", **limit)["results"])
        assert 3 == len(m.search("note", filters={"user_id": "alice"}, **limit)["results"])
    assert [] == m.search("note", user_id="alice", limit=0)["results"]
    with pytest.raises(ValidationError, match="differ"):
        m.get_all(user_id="alice", limit=3, top_k=4)


@pytest.mark.parametrize("call", ["search", "get_all"])
def test_ids_that_differ_are_refused_and_both_are_named(m, call):
    query = ["cat"] if call == "search" else []

    with pytest.raises(ValidationError, match=r"'alice'.*'bob'"):
        getattr(m, call)(*query, user_id="alice", filters={"user_id": "bob"})


@pytest.mark.parametrize(
    "given", [{}, {"filters": {"city": "Lyon"}}, {"filters": {"AND": [{"user_id": "alice"}]}}]
)
def test_a_call_that_names_nobody_is_refused(m, given):
    with pytest.raises(ValidationError) as caught:
        m.search("cat", **given)

    assert "VALIDATION_001" == caught.value.error_code
    assert isinstance(caught.value, ValueError)


def test_version_two_can_be_enforced(tmp_path):
    with Memory.from_config(config(tmp_path), compat="v2") as m:
        with pytest.raises(ValueError, match="Top-level entity parameters"):
            m.search("cat", user_id="alice")
        with pytest.raises(ValueError, match="cannot contain whitespace"):
            m.add("x", user_id="John Smith", infer=False)
        assert {"results": []} == m.search("cat", filters={"user_id": "alice"})


def test_a_misspelt_keyword_is_refused_with_what_it_resembles(m):
    with pytest.raises(TypeError, match="Did you mean 'threshold'"):
        m.search("cat", user_id="alice", treshold=0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 1.5}, "between 0 and 1"),
        ({"threshold": True}, "valid number"),
        ({"top_k": -1}, "non-negative"),
        ({"top_k": True}, "valid integer"),
        ({"top_k": "5"}, "valid integer"),
        ({"reference_date": "2026-01-01"}, "hosted"),
    ],
)
def test_numbers_out_of_range_are_refused(m, given, message):
    with pytest.raises(ValueError, match=message):
        m.search("cat", user_id="alice", **given)


# -- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["", "  ", "*", " alice ", ["alice"], {"a": 1}, True, 1.5])
def test_what_is_no_id_is_refused_everywhere_and_touches_nothing(m, user):
    m.add("kept", user_id="alice", infer=False)

    calls = [
        lambda: m.add("x", user_id=user, infer=False),
        lambda: m.search("x", user_id=user),
        lambda: m.search("x", filters={"user_id": user}),
        lambda: m.get_all(user_id=user, agent_id="bot"),
        lambda: m.delete_all(user_id=user),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="user_id"):
            call()
    assert ["kept"] == texts(m.get_all(user_id="alice"))


def test_a_number_is_the_id_that_it_reads(m):
    m.add("seven", user_id=7, infer=False)

    assert ["seven"] == texts(m.get_all(user_id="7")) == texts(m.get_all(filters={"user_id": 7}))


@pytest.mark.parametrize("name", ["user_id", "agent_id"])
def test_a_refused_id_names_itself_and_what_may_be_given(m, name):
    with pytest.raises(ValidationError) as caught:
        m.add("x", infer=False, **{name: " alice "})

    told = InvalidScopeError(
        field=name, value=" alice ", reason="must not begin or end with a space"
    )
    assert str(told) == str(caught.value)
    assert {name: "' alice '"} == caught.value.details


def test_a_run_is_trimmed_as_in_mem0(m):
    m.add("a", user_id="alice", run_id=" r1 ", infer=False)

    assert ["a"] == texts(m.get_all(user_id="alice", run_id="r1"))


def test_a_users_memories_of_every_agent_and_run_are_found_by_the_user(m):
    m.add("a", user_id="alice", agent_id="bot", infer=False)
    m.add("b", user_id="alice", run_id="r1", infer=False)

    assert {"a", "b"} == set(texts(m.get_all(user_id="alice")))
    assert ["b"] == texts(m.get_all(user_id="alice", run_id="r1"))
    assert [] == texts(m.get_all(agent_id="bot"))  # never somebody's memory without naming him


def test_metadata_comes_back_as_it_was_given_and_filters_find_it(m):
    given = {f"key {n}": n for n in range(100)} | {
        "message id": 2**63 - 1,
        "kind": "drink",
        "name": "x",
        "session_id": "s",
        "AND": "and",
        "a.b": 1,
        "城市 ": "里昂",
        "mem0_role": "mine",
        "mem0_x": 1,
        "deep": {"er": {"value": 7}},
    }
    [one] = m.add("tea", user_id="a", metadata=given, infer=False)["results"]

    assert given == m.get(one["id"])["metadata"]
    for tree in (
        {"message id": 2**63 - 1}, {"key 7": 7}, {"kind": "drink"}, {"session_id": "s"},
        {"a.b": 1}, {"城市 ": {"contains": "里"}}, {"mem0_x": {"gte": 1}}, {"mem0_role": "mine"},
        {"deep.er.value": 7},
    ):  # fmt: skip
        for answer in (
            m.get_all(filters={"user_id": "a", **tree}),
            m.search("tea", filters={"user_id": "a", **tree}, threshold=0.0),
        ):
            assert ["tea"] == texts(answer), tree
    assert [] == texts(m.get_all(filters={"user_id": "a", "message id": 2**63 - 2}))


def test_an_id_in_another_unicode_form_is_normalised_with_one_warning(m, caplog):
    decomposed, composed = "Zoe\u0301", "Zo\u00e9"
    m.add("tea", user_id=decomposed, infer=False)

    assert ["tea"] == texts(m.get_all(user_id=composed)) == texts(m.get_all(user_id=decomposed))
    assert 1 == caplog.text.count("form NFC")


def test_metadata_never_moves_a_memory(m, caplog):
    [one] = m.add("mine", user_id="alice", infer=False, metadata={"user_id": "evil"})["results"]
    m.update(one["id"], metadata={"user_id": "evil", "agent_id": "evil", "a": 1})

    assert [] == texts(m.get_all(user_id="evil"))
    assert {"a": 1} == m.get(one["id"])["metadata"]
    assert "never decides who owns" in caplog.text


# -- shapes -------------------------------------------------------------------------------------


def test_answers_have_the_keys_of_mem0_in_its_order(m):
    added = m.add(
        [{"role": "user", "content": "I like tea.", "name": "Al"}],
        user_id="alice", agent_id="bot", metadata={"topic": "tea"}, infer=False,
    )  # fmt: skip
    [one] = added["results"]
    [found] = m.search("tea", user_id="alice")["results"]
    [listed] = m.get_all(user_id="alice")["results"]
    got = m.get(one["id"])

    assert ["id", "memory", "event", "actor_id", "role"] == list(one)
    assert ("ADD", "Al", "user") == (one["event"], one["actor_id"], one["role"])
    assert [*KEYS, "agent_id", "actor_id", "role"] == list(found) == list(got)
    assert [key for key in found if key != "score"] == list(listed)
    assert got["score"] is None
    assert {"topic": "tea"} == found["metadata"]
    assert datetime.fromisoformat(found["created_at"]).utcoffset() == timedelta(0)


def test_a_memory_without_metadata_has_none(m):
    m.add("plain", user_id="alice", infer=False)

    assert m.get_all(user_id="alice")["results"][0]["metadata"] is None


def test_system_messages_are_not_remembered_and_parts_are_read(m):
    m.add(
        [
            {"role": "system", "content": "You are kind."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, "two"]},
            {"role": "assistant", "content": None, "tool_calls": []},
            "A bare text",
        ],
        user_id="alice", infer=False,
    )  # fmt: skip

    assert {"One two", "A bare text"} == set(texts(m.get_all(user_id="alice")))


class Speaker(str, Enum):  # noqa: UP042 -- `str` of its members is another text
    BOT = "assistant"


@pytest.mark.parametrize(
    ("role", "stored"),
    [
        ("narrator", "narrator"),
        ("ai", "ai"),
        (Speaker.BOT, "assistant"),
        (None, "user"),
        ("", "user"),
    ],
)
def test_any_text_is_a_role(m, role, stored):
    m.add({"role": role, "content": "Tea it is."}, user_id="alice", infer=False)

    assert [stored] == [one["role"] for one in m.get_all(user_id="alice")["results"]]


@pytest.mark.parametrize("messages", [None, 7, object(), [7]])
def test_what_is_no_message_is_refused(m, messages):
    with pytest.raises(ValidationError) as caught:
        m.add(messages, user_id="alice", infer=False)

    assert "VALIDATION_003" == caught.value.error_code


def test_history_tells_every_change_also_after_the_end(m):
    [one] = m.add("tea", user_id="alice", infer=False)["results"]
    assert {"message": "Memory updated successfully!"} == m.update(one["id"], data="coffee")
    assert {"message": "Memory deleted successfully!"} == m.delete(memory_id=one["id"])
    rows = m.history(one["id"])

    assert [HISTORY] * 3 == [list(row) for row in rows]
    assert [("ADD", None, "tea"), ("UPDATE", "tea", "coffee"), ("DELETE", "coffee", None)] == [
        (row["event"], row["old_memory"], row["new_memory"]) for row in rows
    ]
    assert [False, False, True] == [row["is_deleted"] for row in rows]
    assert 1 == len({row["created_at"] for row in rows})
    assert all(row["updated_at"] for row in rows)
    assert ["user"] * 3 == [row["role"] for row in rows]
    assert [] == m.history("nobody's")


def test_bare_lists_are_given_to_code_of_the_first_version(tmp_path):
    with Memory.from_config(config(tmp_path, version="v1.0")) as m:
        assert ["x"] == [one["memory"] for one in m.add("x", user_id="a", infer=False)]
        assert ["x"] == [one["memory"] for one in m.get_all(user_id="a")]


# -- changing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_id", ["m1", "", "*", None, "\x00", "n" * 300, ["x"], 7])
def test_an_id_of_nobody_reads_nothing_and_changes_nothing(m, memory_id):
    assert m.get(memory_id) is None
    assert [] == m.history(memory_id)
    with pytest.raises(MemoryNotFoundError, match="not found"):
        m.update(memory_id, text="x")
    with pytest.raises(ValueError, match="not found"):
        m.delete(memory_id)


def test_an_update_adds_to_metadata_and_keeps_the_rest(m):
    [one] = m.add("tea", user_id="a", metadata={"x": 1, "类别": "饮品"}, infer=False)["results"]
    m.update(one["id"], metadata={"y": 2})
    m.update(one["id"], "green tea")

    got = m.get(one["id"])
    assert ("green tea", {"x": 1, "类别": "饮品", "y": 2}) == (got["memory"], got["metadata"])
    with pytest.raises(ValueError, match="At least one of"):
        m.update(one["id"])


def test_the_same_text_again_is_known_by_the_id_it_has(m):
    [first] = m.add("tea", user_id="a", infer=False)["results"]
    [again] = m.add("tea", user_id="a", infer=False)["results"]

    assert (first["id"], "NONE") == (again["id"], again["event"])
    assert 1 == len(m.get_all(user_id="a")["results"])


def test_a_known_text_with_a_new_expiry_is_an_update(m):
    [first] = m.add("tea", user_id="a", metadata={"x": 1}, infer=False)["results"]
    [again] = m.add(
        "tea", user_id="a", metadata={"x": 1}, expiration_date="2099-01-01", infer=False
    )["results"]

    assert ["id", "memory", "event", "previous_memory", "role"] == [
        key for key in again if key != "actor_id"
    ]
    assert (first["id"], "UPDATE", "tea", "tea") == tuple(
        again[key] for key in ("id", "event", "memory", "previous_memory")
    )
    [got] = m.get_all(user_id="a")["results"]
    assert {"x": 1} == got["metadata"]
    assert "2099-01-01" == got["expiration_date"]


def test_the_same_text_with_other_metadata_is_another_memory(m):
    given = [{"project": "x"}, {"project": "y"}, {"project": "x"}, None]
    for run in (None, "r1"):
        added = [
            m.add("tea", user_id="a", run_id=run, metadata=one, infer=False)["results"][0]
            for one in given
        ]
        assert ["ADD", "ADD", "NONE", "ADD"] == [one["event"] for one in added]
        assert (added[2]["id"], 3) == (added[0]["id"], len({one["id"] for one in added}))
    for name in "xy":
        found = m.search("tea", filters={"user_id": "a", "project": name})["results"]
        assert [{"project": name}] * 2 == [one["metadata"] for one in found]


def test_the_same_text_again_is_counted(m):
    for _ in range(3):
        m.add("tea", user_id="a", infer=False)

    [record] = m.core.list(Scope(user_id="a")).records
    assert 3 == record.times_told


def test_what_was_deleted_can_be_told_again(m):
    [one] = m.add("tea", user_id="a", infer=False)["results"]
    m.delete(one["id"])
    [again] = m.add("tea", user_id="a", infer=False)["results"]

    assert "ADD" == again["event"]
    assert ["tea"] == texts(m.get_all(user_id="a"))


def test_delete_all_needs_somebody_and_takes_only_his(m):
    m.add(["a1", "a2"], user_id="alice", infer=False)
    m.add("b1", user_id="bob", infer=False)
    with pytest.raises(ValueError, match="At least one filter"):
        m.delete_all()

    assert {"message": "Memories deleted successfully!"} == m.delete_all(user_id="alice")
    assert ([], ["b1"]) == (texts(m.get_all(user_id="alice")), texts(m.get_all(user_id="bob")))
    assert {"message": "Memories deleted successfully!"} == m.delete_all(user_id="nobody")


SHARED = ({"run_id": "r1"}, {"agent_id": "bot"})


def fill_shared(m):
    for user in ("alice", "bob"):
        m.add(f"of {user}", user_id=user, agent_id="bot", run_id="r1", infer=False)
        m.add(f"elsewhere of {user}", user_id=user, run_id="r2", infer=False)
    m.add("of nobody", agent_id="bot", run_id="r1", infer=False)


@pytest.mark.parametrize("ids", SHARED)
@pytest.mark.parametrize("compat", ["v1", "v2"])
def test_an_era_acts_on_what_all_users_have_of_an_agent_or_a_run(tmp_path, compat, ids):
    with Memory.from_config(config(tmp_path), compat=compat) as m:
        fill_shared(m)
        everybody = {"of alice", "of bob", "of nobody"}
        assert everybody == set(texts(m.search("of", filters=ids, threshold=0.0)))
        assert everybody == set(texts(m.get_all(filters=ids)))
        only = {**ids, "AND": [{"user_id": "bob"}]}
        assert ["of bob"] == texts(m.get_all(filters=only))
        seen, cursor = [], None
        while len(seen) < 9:
            page = m.get_all(filters=ids, top_k=1, cursor=cursor)
            seen += texts(page)
            cursor = page.get("cursor")
            if cursor is None:
                break
        assert sorted(everybody) == sorted(seen)

        done = m.delete_all(**ids)
        assert {"message": "Memories deleted successfully!", "deleted": 3} == done
        assert [] == texts(m.get_all(filters=ids))
        assert ["elsewhere of bob"] == texts(m.get_all(filters={"user_id": "bob"}))


@pytest.mark.parametrize("ids", SHARED)
def test_a_call_without_a_user_says_what_it_was_about(m, caplog, ids):
    fill_shared(m)
    assert ["of nobody"] == texts(m.get_all(**ids))
    assert "names no user" not in caplog.text
    done = m.delete_all(**ids)

    assert 1 == done["deleted"]
    assert "successfully" not in done["message"]
    assert "2 users stay" in done["message"]
    for _ in range(2):
        assert [] == texts(m.get_all(**ids)) == texts(m.search("of", **ids))
    assert 1 == caplog.text.count("names no user")
    assert 2 == len(m.get_all(user_id="bob")["results"])


def test_a_call_without_a_user_that_leaves_nothing_says_so(m):
    m.add("of nobody", run_id="r1", infer=False)

    done = {"message": "Memories deleted successfully!", "deleted": 1}
    assert done == m.delete_all(run_id="r1")


def test_reset_erases_every_scope(m):
    m.add("a", user_id="alice", run_id="r", infer=False)
    m.add("b", agent_id="bot", infer=False)
    m.reset()

    assert [] == m.core.admin.list_scopes()


# -- time ---------------------------------------------------------------------------------------


def down(messages):
    raise TimeoutError("down")


def test_reset_also_takes_what_was_still_on_its_way(tmp_path):
    started = threading.Event()

    def answer(messages):
        started.set()
        time.sleep(0.2)
        return '{"facts": ["Alice likes tea"]}'

    with Memory.from_config(config(tmp_path, llm=answer)) as m:
        m.add("I like tea", user_id="alice", wait=False)
        started.wait(10)
        m.reset()

        assert {"pending": 0, "failed": []} == m.flush()
        assert [] == m.get_all(user_id="alice")["results"]


def test_reset_erases_what_is_pending_while_the_model_is_down(tmp_path):
    with Memory.from_config(config(tmp_path, llm=down)) as m:
        m.add("b", user_id="bob", infer=False)
        m.add("I like tea", user_id="alice", wait=False)
        m.reset()

        assert {"pending": 0, "failed": []} == m.flush(0.0)
        assert [] == m.core.admin.list_scopes()


def test_reset_tells_what_came_meanwhile(tmp_path, monkeypatch):
    with Memory.from_config(config(tmp_path, llm=down)) as m:
        drain = m.core.flush

        def flush(timeout):  # as another thread would add
            m.add("I like tea", user_id="alice", wait=False)
            return drain(0.0)

        monkeypatch.setattr(m.core, "flush", flush)
        with pytest.raises(VectorStoreError, match="is erased; 2 additions came meanwhile"):
            m.reset()
        monkeypatch.undo()
        m.reset()


def test_reset_also_takes_what_could_not_be_written(tmp_path):
    with Memory.from_config(config(tmp_path, llm=Scripted("no JSON"))) as m:
        m.add("I like tea", user_id="alice", wait=False)
        assert 1 == len(m.flush()["failed"])
        m.reset()

        assert {"pending": 0, "failed": []} == m.flush()


def test_what_has_expired_is_hidden_unless_asked_for(m):
    day = date.today() - timedelta(days=2)  # noqa: DTZ011 -- any past day
    m.add("old tea", user_id="a", infer=False, expiration_date=day)
    m.add("new tea", user_id="a", infer=False, expiration_date="2999-01-01")

    assert ["new tea"] == texts(m.search("tea", user_id="a")) == texts(m.get_all(user_id="a"))
    shown = m.get_all(filters={"user_id": "a"}, show_expired=True)["results"]
    assert {"old tea", "new tea"} == {one["memory"] for one in shown}
    assert {day.isoformat(), "2999-01-01"} == {one["expiration_date"] for one in shown}
    assert 2 == len(m.search("tea", filters={"user_id": "a"}, show_expired=True)["results"])


def test_the_last_day_of_the_calendar_is_never(m):
    m.add("tea", user_id="a", infer=False, expiration_date="9999-12-31")
    [held] = m.get_all(user_id="a")["results"]

    assert "9999-12-31" == held["expiration_date"]


def test_an_expired_memory_is_updated_and_stays_expired(m):
    [one] = m.add("tea", user_id="a", infer=False, metadata={"n": 1}, expiration_date="2001-01-01")[
        "results"
    ]

    m.update(one["id"], text="green tea")
    m.update(one["id"], metadata={"k": 2})

    held = m.get(one["id"])
    assert ("green tea", {"n": 1, "k": 2}, "2001-01-01") == (
        held["memory"],
        held["metadata"],
        held["expiration_date"],
    )
    assert ["ADD", "UPDATE", "UPDATE"] == [x["event"] for x in m.history(one["id"])]
    assert [] == m.get_all(user_id="a")["results"]
    m.delete(one["id"])
    with pytest.raises(MemoryNotFoundError):
        m.update(one["id"], text="tea")


def test_an_expiry_can_be_moved_and_taken_back(m):
    [one] = m.add("tea", user_id="a", infer=False, expiration_date="2001-01-01")["results"]
    assert [] == texts(m.get_all(user_id="a"))
    m.update(one["id"], expiration_date="2999-01-01")
    assert ["tea"] == texts(m.get_all(user_id="a"))
    m.update(one["id"], expiration_date=None)

    assert "expiration_date" not in m.get(one["id"])
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        m.update(one["id"], expiration_date="soon")


def test_a_memory_can_be_dated_back(m):
    at = "2020-05-01T10:00:00+02:00"
    [one] = m.add("tea", user_id="a", metadata={"created_at": at}, infer=False)["results"]

    assert "2020-05-01T08:00:00+00:00" == m.get(one["id"])["created_at"]
    past = {"user_id": "a", "created_at": {"lt": "2021-01-01"}}
    assert ["tea"] == texts(m.get_all(filters=past))
    assert [] == texts(m.get_all(filters={"user_id": "a", "created_at": {"gte": "2021-01-01"}}))


def test_a_timestamp_is_when_it_was_said(m):
    [one] = m.add("tea", user_id="a", timestamp=1588320000, infer=False)["results"]

    assert "2020-05-01T08:00:00+00:00" == m.get(one["id"])["created_at"]
    [record] = m.core.list(Scope(user_id="a")).records
    assert datetime(2020, 5, 1, 8, tzinfo=UTC) == record.occurred_at


def test_what_explains_a_score_has_the_keys_of_mem0(m):
    m.add(["green tea", "black coffee"], user_id="a", infer=False)
    found = m.search("which tea?", filters={"user_id": "a"}, threshold=0.05, explain=True)

    for one in found["results"]:
        details = one["score_details"]
        assert [
            *("semantic_score", "bm25_score", "entity_boost", "raw_score", "max_possible_score"),
            *("final_score", "threshold", "parts"),
        ] == list(details)
        assert (one["score"], 0.05) == (details["final_score"], details["threshold"])
        assert details["raw_score"] == pytest.approx(sum(details["parts"].values()))
    [plain, *_] = m.search("which tea?", user_id="a", explain=None)["results"]
    assert "score_details" not in plain


def test_paging_gives_everything_once(m):
    m.add([f"note {n}" for n in range(25)], user_id="a", infer=False)
    seen, cursor = [], None
    while True:
        page = m.get_all(user_id="a", limit=10, cursor=cursor)
        seen += texts(page)
        cursor = page.get("cursor")
        if cursor is None:
            break

    assert 25 == len(seen) == len(set(seen))


# -- models -------------------------------------------------------------------------------------


def test_without_a_model_texts_are_kept_and_the_log_is_told_once(m, caplog):
    m.add("one", user_id="a")
    m.add("two", user_id="a")

    assert {"one", "two"} == set(texts(m.get_all(user_id="a")))
    assert 1 == caplog.text.count("No language model")
    with pytest.raises(ConfigurationError, match="infer=True needs"):
        m.add("three", user_id="a", infer=True)


@pytest.mark.parametrize(
    "answer",
    [
        {"facts": ["Likes tea"]},
        {"facts": [{"fact": "Likes tea"}]},
        {"memory": [{"id": "0", "text": "Likes tea", "event": "ADD"}]},
        '```json\n{"facts": ["Likes tea"]}\n```',
        'Sure! Here: {"facts": [{"text": "Likes tea"}]} Anything else?',
        "<think>hm {}</think>" + '{"facts": ["Likes tea"]}',
    ],
)
def test_facts_are_read_in_every_shape_that_models_write(tmp_path, answer):
    llm = Scripted(answer)
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        added = m.add("I like tea", user_id="a", metadata={"k": 1}, expiration_date="2999-01-01")

        assert [("Likes tea", "ADD")] == [(one["memory"], one["event"]) for one in added["results"]]
        [held] = m.get_all(user_id="a")["results"]
    assert ("Likes tea", {"k": 1}, "2999-01-01") == (
        held["memory"], held["metadata"], held["expiration_date"],
    )  # fmt: skip
    assert 1 == len(llm.asked)


@pytest.mark.parametrize("graph", [False, True])
def test_an_answer_that_stays_unreadable_is_empty_and_can_be_read_again(tmp_path, caplog, graph):
    # As mem0 answers, whose callers expect no error here; the messages are not lost with it.
    llm = Scripted("no", "still no", {"facts": ["Likes tea"]})
    more = {"graph_store": {"provider": "embedded", "config": {}}} if graph else {}
    with Memory.from_config(config(tmp_path, llm=llm, **more)) as m:
        answer = m.add("I like tea", user_id="a")
        [failed] = m.flush()["failed"]

        nothing = {"deleted_entities": [], "added_entities": []}
        assert {"results": [], **({"relations": nothing} if graph else {})} == answer
        assert f"dead letter {failed['ticket']}," in caplog.text
        assert 1 == m.counters().failed
        assert isinstance(m.counters().last_error, LLMError)
        assert [] == texts(m.get_all(user_id="a"))
        m.core.admin.retry([failed["ticket"]])
        assert {"pending": 0, "failed": []} == m.flush()
        assert ["Likes tea"] == texts(m.get_all(user_id="a"))


async def test_an_answer_that_stays_unreadable_is_empty_when_awaited_too(tmp_path):
    llm = Scripted("no", "still no")
    async with AsyncMemory.from_config(config(tmp_path, llm=llm, version="v1.0")) as m:
        assert [] == await m.add("I like tea", user_id="a")
        assert 1 == len((await m.flush())["failed"])


def test_forty_of_forty_facts_of_one_answer_are_added(tmp_path):
    facts = [f"Visited town {n}" for n in range(40)]
    with Memory.from_config(config(tmp_path, llm=Scripted({"facts": facts}))) as m:
        assert facts == texts(m.add("I travelled", user_id="a"))
        assert sorted(facts) == sorted(texts(m.get_all(user_id="a", limit=100)))


def test_prompts_of_all_names_reach_the_model(tmp_path):
    llm = Scripted({"facts": []})
    prompts = {"custom_fact_extraction_prompt": "Only food.", "custom_instructions": "In French."}
    with Memory.from_config(config(tmp_path, llm=llm, **prompts)) as m:
        assert {"results": []} == m.add("hi", user_id="a")
        m.add("hi", user_id="a", prompt="Only drinks.")
        m.add("hi", "a", None, None, None, None, "Only cakes.")

    systems = [messages[0]["content"] for messages in llm.asked]
    assert "Only food." in systems[0]
    assert "In French." in systems[0]
    assert "Only drinks." in systems[1]
    assert "Only cakes." in systems[2]


def test_a_procedure_is_one_memory_of_an_agent(tmp_path):
    llm = Scripted("1. Open. 2. Close.")
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        with pytest.raises(ValidationError) as caught:
            m.add("did it", user_id="a", memory_type="procedural_memory")
        assert "VALIDATION_002" == caught.value.error_code
        m.add(
            [{"role": "user", "content": "did it"}], agent_id="bot", memory_type="procedural_memory"
        )
        [held] = m.get_all(agent_id="bot")["results"]

    assert ("1. Open. 2. Close.", {"memory_type": "procedural_memory"}) == (
        held["memory"], held["metadata"],
    )  # fmt: skip


async def test_a_model_that_fails_to_write_a_procedure_is_an_error_of_mem0(tmp_path):
    llm = Scripted(RuntimeError("no answer"))
    with (
        Memory.from_config(config(tmp_path / "1", llm=llm)) as m,
        pytest.raises(LLMError, match="no answer"),
    ):
        m.add("did it", agent_id="bot", memory_type="procedural_memory")
    async with AsyncMemory.from_config(config(tmp_path / "2", llm=llm)) as m:
        with pytest.raises(LLMError, match="no answer"):
            await m.add("did it", agent_id="bot", memory_type="procedural_memory")


def test_a_model_can_be_assigned_before_and_after_the_first_call(tmp_path):
    first, second = Scripted({"facts": ["Likes tea"]}), Scripted({"facts": ["Likes rum"]})
    with Memory.from_config(config(tmp_path)) as m:
        m.add("verbatim", user_id="a")
        m.llm = first
        m.add("I like tea", user_id="a")
        m.llm = second
        m.add("I like rum", user_id="a")
        assert m.llm is second
        m.llm = None
        m.add("verbatim too", user_id="a")

        wanted = {"verbatim", "Likes tea", "Likes rum", "verbatim too"}
        assert wanted == set(texts(m.get_all(user_id="a")))
        with pytest.raises(ConfigurationError, match="must be a model"):
            m.llm = 7


async def test_a_model_can_be_assigned_to_the_awaited_face_too(tmp_path):
    async with AsyncMemory.from_config(config(tmp_path)) as m:
        await m.add("verbatim", user_id="a")
        m.llm = Scripted({"facts": ["Likes tea"]})

        assert ["Likes tea"] == texts(await m.add("I like tea", user_id="a"))


@pytest.mark.parametrize("name", ["vector_store", "embedding_model", "graph", "db", "enable_graph"])
def test_what_is_inside_mem0_says_what_there_is_instead(m, name):
    with pytest.raises(AttributeError, match=rf"'{name}'. Here there is "):
        getattr(m, name)
    assert not hasattr(m, "no_such_thing")


def test_a_long_message_is_cut_for_the_prompt_and_not_refused(tmp_path):
    llm = Scripted({"facts": ["Likes tea"]})
    said = "I like tea. " + "咖" * 40_000 + " And rum."
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        assert ["Likes tea"] == texts(m.add(said, user_id="a"))

    prompt = llm.asked[0][-1]["content"]
    assert "I like tea." in prompt
    assert "And rum." in prompt
    assert len(prompt) < 40_000


@pytest.mark.parametrize("answer", ["{}", '{"facts": []}', '{"memory": []}'])
def test_a_model_that_finds_nothing_adds_nothing(tmp_path, answer):
    llm = Scripted(answer)
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        assert {"results": []} == m.add("Hello", user_id="a")
        assert {"pending": 0, "failed": []} == m.flush()
    assert 1 == len(llm.asked)


class UnauthorizedError(Exception):
    status_code = 401


def test_what_a_model_refuses_for_good_is_told_with_its_cause_and_not_tried_again(tmp_path):
    llm = Scripted(UnauthorizedError("wrong key"))
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        with pytest.raises(LLMError, match="wrong key") as caught:
            m.add("I like tea", user_id="a")

        causes, error = [], caught.value
        while error is not None:
            causes.append(type(error))
            error = error.__cause__
        assert UnauthorizedError is causes[-1]
        assert 1 == len(llm.asked)
        assert 0 == m.flush(0.1)["pending"]


def test_raw_line_breaks_in_the_answer_of_a_model_are_read(tmp_path):
    with Memory.from_config(config(tmp_path, llm=Scripted('{"facts": ["Likes\n\ttea"]}'))) as m:
        assert ["Likes\n\ttea"] == texts(m.add("I like tea", user_id="a"))


@pytest.mark.parametrize("change", ["update", "delete"])
def test_what_somebody_else_deletes_meanwhile_is_not_found(m, monkeypatch, change):
    [held] = m.add("tea", user_id="a", infer=False)["results"]
    delete, late = m.core.delete, getattr(m.core, change)

    def after(memory_id, *args, **options):
        delete(memory_id, Scope(user_id="a"))
        return late(memory_id, *args, **options)

    monkeypatch.setattr(m.core, change, after)
    with pytest.raises(MemoryNotFoundError, match=held["id"]):
        getattr(m, change)(held["id"], **({"text": "milk"} if change == "update" else {}))


def test_a_graph_gives_relations_in_the_shapes_of_1x(tmp_path):
    answer = {"facts": [fact("Bob lives in Rome", ("Bob", "lives_in", "New Rome"))]}
    graph = {"provider": "embedded", "config": {}}
    with Memory.from_config(config(tmp_path, llm=Scripted(answer), graph_store=graph)) as m:
        added = m.add("I am Bob and live in New Rome", user_id="a")
        found = m.search("Where does Bob live?", user_id="a")
        listed = m.get_all(user_id="a")

    triple = {
        "source": "bob",
        "relationship": "lives_in",
        "target": "new_rome",
        "destination": "new_rome",
    }
    assert {"deleted_entities": [], "added_entities": [[triple]]} == added["relations"]
    assert [triple] == found["relations"] == listed["relations"]


@pytest.mark.parametrize("provider", ["embedded", "kuzu"])
def test_a_graph_that_needs_no_configuration_needs_none(tmp_path, provider):
    with Memory.from_config(config(tmp_path, graph_store={"provider": provider})) as m:
        assert {"results": [], "relations": []} == m.get_all(user_id="a")


def test_a_reranker_decides_the_order_in_1x_and_only_when_asked_in_2x(tmp_path):
    class Backwards:
        def rerank(self, query, documents, top_k):
            return [{**one, "rerank_score": 1.0} for one in reversed(documents)][:top_k]

    with Memory.from_config(config(tmp_path, reranker=Backwards())) as m:
        m.add(["tea", "tea and milk"], user_id="a", infer=False)
        new = m.search("tea", filters={"user_id": "a"})

        assert texts(new)[::-1] == texts(m.search("tea", user_id="a"))
        assert texts(new)[::-1] == texts(m.search("tea", filters={"user_id": "a"}, rerank=True))
        assert texts(new) == texts(m.search("tea", user_id="a", rerank=False))


def test_what_replaces_a_fact_is_found_and_the_old_one_is_marked(tmp_path):
    told = [
        {"facts": [fact("Bob lives in Paris", ("Bob", "lives_in", "Paris"), since="2020-01-01")]},
        {"facts": [fact("Bob lives in Rome", ("Bob", "lives_in", "Rome"), since="2024-01-01")]},
    ]
    with Memory.from_config(config(tmp_path, llm=Scripted(*told))) as m:
        m.add("I live in Paris", user_id="a")
        m.add("I moved to Rome", user_id="a")

        assert ["Bob lives in Rome"] == texts(m.search("Where does Bob live?", user_id="a"))
        shown = m.get_all(user_id="a", show_expired=True)["results"]
    ended = {one["memory"]: one.get("superseded_at") for one in shown}
    assert {"Bob lives in Paris": "2024-01-01T00:00:00+00:00", "Bob lives in Rome": None} == ended


def test_code_of_1x_is_told_what_is_no_longer_true(tmp_path):
    told = [
        {"facts": [fact("Bob lives in Paris", ("Bob", "lives_in", "Paris"), since="2020-01-01")]},
        {"facts": [fact("Bob lives in Rome", ("Bob", "lives_in", "Rome"), since="2024-01-01")]},
    ]
    with Memory.from_config(config(tmp_path, llm=Scripted(*told)), compat="v1") as m:
        m.add("I live in Paris", user_id="a")
        answer = m.add("I moved to Rome", user_id="a")

    assert [("ADD", "Bob lives in Rome"), ("DELETE", "Bob lives in Paris")] == [
        (one["event"], one["memory"]) for one in answer["results"]
    ]


@pytest.mark.parametrize("compat", ["v1", "v2"])
def test_what_a_model_replaces_is_told_as_what_is_no_longer_true(tmp_path, compat):
    told = [
        {"facts": [fact("Bob drinks tea")]},
        {"facts": [{**fact("Bob drinks rum"), "replaces": 1}]},
    ]
    with Memory.from_config(config(tmp_path, llm=Scripted(*told)), compat=compat) as m:
        m.add("Tea for me", user_id="a")
        answer = m.add("No, rum", user_id="a")
        found = m.get_all(filters={"user_id": "a"})

    ended = [("DELETE", "Bob drinks tea")] if compat == "v1" else []
    shown = [(one["event"], one["memory"]) for one in answer["results"]]
    assert [("ADD", "Bob drinks rum"), *ended] == shown
    assert ["Bob drinks rum"] == texts(found)


def test_what_is_extracted_in_a_run_is_found_in_it(tmp_path):
    with Memory.from_config(config(tmp_path, llm=Scripted({"facts": [fact("Likes tea")]}))) as m:
        for run in "ab":
            m.add("I like tea", user_id="a", run_id=run)

        assert ["Likes tea"] == texts(m.get_all(user_id="a", run_id="a"))
        assert ["Likes tea"] == texts(m.search("tea", user_id="a", run_id="b"))


# -- life ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("awaits", [False, True])
def test_a_memory_that_is_closed_while_it_opens_is_let_go_of_too(tmp_path, monkeypatch, awaits):
    begun, goes_on, opened = threading.Event(), threading.Event(), []

    def slowly(*args, **given):
        begun.set()
        assert goes_on.wait(10)
        opened.append(open_at(*args, **given))
        return opened[-1]

    open_at = Core.open
    monkeypatch.setattr(Core, "open", slowly)
    m = (AsyncMemory if awaits else Memory)(config(tmp_path))
    opening = threading.Thread(target=lambda: m.core)
    opening.start()
    assert begun.wait(10)
    closing = threading.Thread(target=lambda: asyncio.run(close(m)) if awaits else m.close())
    closing.start()
    time.sleep(0.1)
    goes_on.set()
    opening.join()
    closing.join()

    with pytest.raises(MemoryClosedError):
        opened[0].admin.list_scopes()


async def close(memory):
    async with memory:
        pass


def test_a_memory_that_was_closed_meanwhile_is_not_opened(tmp_path, monkeypatch):
    m = Memory(config(tmp_path))
    holds = threading.Lock()
    monkeypatch.setattr(m._lazy, "_lock", holds)
    found = []

    def expand():
        try:
            found.append(m.core)
        except ClosedError as error:
            found.append(error)

    with holds:
        waiting = threading.Thread(target=expand)
        waiting.start()
        time.sleep(0.1)  # it has looked, and stands behind the one who opens
        m._is_closed = True
    waiting.join()

    assert isinstance(found[0], ClosedError)


def test_a_closed_memory_says_so_and_its_folder_opens_again(tmp_path):
    first = Memory.from_config(config(tmp_path))
    first.add("tea", user_id="a", infer=False)
    first.close()
    first.close()
    with pytest.raises(ClosedError, match="closed"):
        first.get_all(user_id="a")

    with Memory.from_config(config(tmp_path)) as again:
        assert ["tea"] == texts(again.get_all(user_id="a"))


def test_an_open_memory_of_ours_can_be_used_by_code_for_mem0(tmp_path):
    with Core.open(str(tmp_path / "m"), embedder=HashEmbedder()) as core:
        core.add("The cat is grey.", Scope(user_id="alice"))
        m = Memory(core=core)
        m.add("The dog is brown.", user_id="alice", infer=False)
        m.close()

        assert {"The cat is grey.", "The dog is brown."} == {
            one.text for one in core.list(Scope(user_id="alice")).records
        }


def test_the_model_of_a_memory_of_ours_extracts_when_that_is_said(tmp_path):
    chat = ScriptedChat([json.dumps({"facts": [fact("Likes tea")]})])
    with Core.open(str(tmp_path / "m"), embedder=HashEmbedder(), chat=chat) as core:
        m = Memory(core=core)
        m.add("I like milk", user_id="a")
        m.add("I like tea", user_id="a", infer=True)

        assert {"I like milk", "Likes tea"} == set(texts(m.get_all(user_id="a")))
        with pytest.raises(ConfigurationError, match="open already"):
            Memory({"embedder": HashEmbedder()}, core=core)


def test_writing_without_waiting_gives_a_ticket(m):
    answer = m.add("tea", user_id="a", infer=False, wait=False)

    assert [] == answer["results"]
    assert answer["ticket"]
    assert {"pending": 0, "failed": []} == m.flush()
    assert ["tea"] == texts(m.get_all(user_id="a"))


async def test_the_awaited_face_does_the_same(tmp_path):
    async with await AsyncMemory.from_config(config(tmp_path)) as m:
        added = await m.add("The cat is grey.", user_id="alice", infer=False)
        memory_id = added["results"][0]["id"]
        found = await m.search("grey cat", filters={"user_id": "alice"}, metadata_filters={})
        await m.update(memory_id, text="The cat is black.")
        got = await m.get(memory_id)
        rows = await m.history(memory_id)
        listed = await m.get_all(filters={"user_id": "alice"})
        await m.delete(memory_id)
        await m.delete_all(user_id="alice")
        await m.reset()

    assert ["The cat is grey."] == texts(found)
    assert ["The cat is black."] == texts(listed) == [got["memory"]]
    assert ["ADD", "UPDATE"] == [row["event"] for row in rows]


async def test_both_filters_of_the_awaited_search_must_hold(tmp_path):
    async with AsyncMemory.from_config(config(tmp_path)) as m:
        for kind, place in (("tea", "home"), ("tea", "work"), ("milk", "work")):
            given = {"kind": kind, "place": place}
            await m.add(f"{kind} at {place}", user_id="a", metadata=given, infer=False)
        tree = {"AND": [{"kind": "tea"}], "user_id": "a"}
        found = await m.search("tea", filters=tree, metadata_filters={"place": "work"})
        with pytest.raises(ValidationError, match="must be a mapping"):
            await m.search("tea", filters="a", metadata_filters={"place": "work"})

    assert ["tea at work"] == texts(found)


async def test_closing_can_be_awaited_and_need_not_be(tmp_path):
    first = AsyncMemory(config=config(tmp_path))
    await first.add("tea", user_id="a", infer=False)
    await first.close()
    with pytest.raises(ClosedError):
        await first.get_all(user_id="a")

    second = AsyncMemory(config=config(tmp_path))
    assert ["tea"] == texts(await second.get_all(user_id="a"))
    second.close()


async def test_a_blocking_memory_works_beside_a_running_loop(m):
    m.add("tea", user_id="a", infer=False)

    assert ["tea"] == texts(await asyncio.to_thread(m.get_all, "a"))
    assert ["tea"] == texts(m.get_all("a"))


# -- configuration ------------------------------------------------------------------------------


def test_configuration_is_never_changed(tmp_path):
    given = config(tmp_path, graph_store={"provider": "embedded", "config": {}})
    before = {key: repr(value) for key, value in given.items()}
    Memory.from_config(config_dict=given).close()

    assert before == {key: repr(value) for key, value in given.items()}


def test_what_is_not_understood_is_named_once_or_refused(tmp_path, caplog):
    Memory.from_config(config(tmp_path, vector_stroe={}, colour="red")).close()

    assert "vector_stroe, colour" in caplog.text
    with pytest.raises(ConfigurationError, match="colour"):
        Memory.from_config(config(tmp_path, colour="red", strict=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vector_store": {"provider": "pinecone", "config": {}}}, "Use 'qdrant'"),
        ({"vector_store": {"provider": "qdrant", "config": {"hots": "x"}}}, "hots"),
        ({"vector_store": {"provider": "qdrant", "config": {"api_key": "x"}}}, "api_key"),
        ({"vector_store": {"config": {}}}, "provider"),
        ({"graph_store": {"provider": "neptune", "config": {}}}, "neo4j"),
        ({"graph_store": {"provider": "neo4j", "config": {"url": "bolt://h", "username": "n"}}},
         "Give both"),
        ({"graph_store": {"provider": "neo4j", "config": {}}}, "must be a URL"),
        ({"graph_store": {"provider": "neo4j"}}, "COMMONPLACE_GRAPH"),
        ({"llm": {"provider": "nonsense", "config": {}}}, "nonsense"),
        ({"llm": 7}, "must be a model"),
        ({"fallback": "cloud"}, "embedded"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_says_what_to_write(tmp_path, wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        Memory.from_config({**config(tmp_path), **wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        '{"api_key": "sk-secret"}',
        {"llm": {"model": "m", "api_key": "sk-secret"}},
        {"llm": {"provider": "openai", "config": ["sk-secret"]}},
        {"vector_store": {"provider": "qdrant", "config": {"url": "sk-secret@host"}}},
        {"graph_store": {"provider": "neo4j", "config": {"url": "neo4j:sk-secret@host"}}},
    ],
)
def test_a_wrong_configuration_is_refused_without_what_is_secret_in_it(wrong):
    with pytest.raises(ConfigurationError) as caught:
        Memory(wrong)
    assert "sk-secret" not in str(caught.value)


def test_dimensions_are_checked_and_both_numbers_named(tmp_path):
    given = config(tmp_path)
    given["vector_store"]["config"]["embedding_model_dims"] = 1536
    with Memory.from_config(given) as m, pytest.raises(ConfigurationError, match=r"1536.*64"):
        m.get_all(user_id="a")


@pytest.mark.parametrize("collection", ["mem0", "facts"])
def test_a_folder_that_mem0_wrote_is_left_as_it_is(tmp_path, collection):
    (tmp_path / "memory" / "collection").mkdir(parents=True)
    (tmp_path / "memory" / "meta.json").write_text("{}")
    given = config(tmp_path)
    given["vector_store"]["config"]["collection_name"] = collection
    m = Memory.from_config(given)
    with pytest.raises(ConfigurationError, match="import mem0"):
        m.get_all(user_id="a")

    assert ["collection", "meta.json"] == sorted(p.name for p in (tmp_path / "memory").iterdir())


def test_a_server_that_does_not_answer_is_an_error_unless_a_folder_was_asked_for(tmp_path, caplog):
    nowhere = {"provider": "qdrant", "config": {"host": "127.0.0.1", "port": 9}}
    graph = {"provider": "neo4j", "config": {"url": "neo4j://127.0.0.1:9"}}
    given = {"vector_store": nowhere, "graph_store": graph, "embedder": HashEmbedder()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMMONPLACE_PATH", str(tmp_path / "spool"))
        with Memory.from_config(given) as strict, pytest.raises(Exception, match=r"127\.0\.0\.1:9"):
            strict.get_all(user_id="a")
        with Memory.from_config({**given, "fallback": "embedded"}) as m:
            m.add("tea", user_id="a", infer=False)
            assert ["tea"] == texts(m.get_all(user_id="a"))
    assert "No server answers" in caplog.text


@pytest.mark.parametrize("server", [{"host": "::1", "port": "9"}, {"url": "http://[::1]:9"}])
def test_a_server_may_have_an_address_of_ipv6(tmp_path, monkeypatch, server):
    pytest.importorskip("qdrant_client")
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path))
    store = {"provider": "qdrant", "config": server}
    with (
        Memory({"vector_store": store, "embedder": HashEmbedder()}) as m,
        pytest.raises(VectorStoreError, match=r"//\[::1\]:9/"),
    ):
        m.get_all(user_id="a")


def test_collections_are_apart(tmp_path):
    def of(name):
        given = config(tmp_path)
        given["vector_store"]["config"]["collection_name"] = name
        return Memory.from_config(given)

    with of("work") as work, of("home") as home:
        work.add("tea", user_id="a", infer=False)

        assert (["tea"], []) == (texts(work.get_all(user_id="a")), texts(home.get_all(user_id="a")))


@pytest.mark.parametrize("given", [None, {"llm": lambda _: "{}"}, {"embedder": None}])
def test_a_memory_without_a_place_is_where_the_environment_says(tmp_path, monkeypatch, given):
    for name in ("path", "vectors", "graph"):
        monkeypatch.setenv(f"COMMONPLACE_{name.upper()}", str(tmp_path / name))
    with Memory(given) as m, Core.from_env() as core:
        m.add("Alice likes tea.", user_id="alice", infer=False)

        assert m.core.location == core.location
        assert ["Alice likes tea."] == [
            one.text for one in core.list(Scope(user_id="alice")).records
        ]
    assert (tmp_path / "graph" / "memory.db").exists()


def test_a_place_in_the_configuration_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("COMMONPLACE_VECTORS", "qdrant://127.0.0.1:9")
    monkeypatch.setenv("COMMONPLACE_GRAPH", "neo4j://127.0.0.1:9")
    with Memory(config(tmp_path)) as m:
        assert m.core.location == str(tmp_path / "memory")


def test_a_collection_without_a_place_is_no_folder_beside_the_servers(monkeypatch):
    monkeypatch.setenv("COMMONPLACE_VECTORS", "qdrant://127.0.0.1:9")
    store = {"provider": "qdrant", "config": {"collection_name": "work"}}
    with pytest.raises(ConfigurationError, match=r"'work'.*COMMONPLACE_VECTORS"):
        Memory({"vector_store": store})


def test_our_configuration_object_is_read_like_a_dict(tmp_path):
    given = config(tmp_path)
    with Memory(MemoryConfig(**given)) as m:
        m.add("tea", user_id="a", infer=False)

        assert ["tea"] == texts(m.get_all(user_id="a"))


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.WARNING)


def test_an_argument_of_the_core_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"config\['path'\].*vector_store.*core="):
        Memory.from_config({"path": str(tmp_path)})


def test_what_holds_now_stands_before_what_it_replaces(m):
    for text in ("My phone number is 07 11.", "My phone number is 07 98 now."):
        m.add([{"role": "user", "content": text}], user_id="ann", infer=False)

    found = m.search("What is my phone number?", filters={"user_id": "ann"})["results"]

    assert [one["memory"] for one in found] == [
        "My phone number is 07 98 now.",
        "My phone number is 07 11.",
    ]
    assert found[0]["score"] >= found[1]["score"]
