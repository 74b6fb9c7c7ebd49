import pytest

from commonplace.agents import in_session, to_messages
from commonplace.types import Scope
from commonplace.validation import MAX_TEXT_BYTES


def test_a_text_is_one_message_with_its_speaker():
    (message,) = to_messages("I like tea", "user", " Alice\nB ", "m1")

    assert (message.text, message.role, message.name, message.id) == (
        "I like tea", "user", "Alice B", "m1",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n", "\x00", "\u200b"])
def test_nothing_to_read_is_no_message(text):
    assert to_messages(text, "user", "alice", "m1") == []


def test_a_text_too_long_for_one_record_is_kept_whole_in_several():
    text = "é" * MAX_TEXT_BYTES
    messages = to_messages(text, "user", "", "m1")

    assert "".join(one.text for one in messages) == text
    assert [one.id for one in messages[:2]] == ["m1", "m1#1"]
    assert len({one.id for one in messages}) == len(messages)


def test_what_no_store_takes_is_left_out():
    (message,) = to_messages("a\x00b\ud800c", "assistant", "\x00", "m1")

    assert (message.text, message.name) == ("ab?c", None)


@pytest.mark.parametrize("agent", ["bot", None])
def test_a_session_that_no_scope_holds_is_still_one_of_its_own(agent):
    owner = Scope(user_id="alice", agent_id=agent)
    odd = ["x" * 300, " a ", "*", "a\ud800", "a\nb"]
    found = [in_session(owner, one) for one in ["today", *odd]]

    assert "today" == found[0].session_id
    assert [owner] * len(found) == [one.owner for one in found]
    assert len(found) == len({one.session_id for one in found})
    assert found[1] == in_session(owner, odd[0])


@pytest.mark.parametrize("session", [None, "", 7])
def test_what_names_no_session_leaves_the_owner(session):
    assert Scope(user_id="alice") == in_session(Scope(user_id="alice"), session)
