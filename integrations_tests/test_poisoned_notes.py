"""Notes of hostile memories: one block, one harmless line for each, whatever they say."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import Match, Policy, Record, Scope
from commonplace.agents import render

from .isolation.poison import TEXTS, check_note

AT = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy()


def match(text: str, number: int = 0, name: str | None = None) -> Match:
    record = Record(
        id=f"{number:08}", text=text, scope=Scope(user_id="alice"), created_at=AT, updated_at=AT,
        occurred_at=AT, name=name, kind="fact" if name is None else "episode",
        role=None if name is None else "user",
    )  # fmt: skip
    return Match(record=record, score=0.5)


def test_there_are_many_hostile_texts() -> None:
    assert len(set(TEXTS)) >= 100


@pytest.mark.parametrize("number", range(0, len(TEXTS), 8))
def test_a_note_of_hostile_texts_is_one_block(number: int) -> None:
    matches = [match(text, at) for at, text in enumerate(TEXTS[number : number + 8])]
    note = render(matches, POLICY)

    check_note(note, POLICY)
    assert note.count("\n- ") == len(matches)
    for at in range(number, number + len(matches)):
        assert f"zebra{at}x" in note


def test_a_hostile_name_of_a_speaker_closes_nothing() -> None:
    for number, text in enumerate(TEXTS):
        check_note(render([match("I like tea", number, name=text[:80])], POLICY), POLICY, "tea")


PIECES = st.one_of(
    st.sampled_from(TEXTS),
    st.text(max_size=40),
    st.sampled_from(
        ["<", ">", "|", "[", "]", "`" * 3, "system", "INST", ":", "：", "\n", "\u2028", "\u202e",
         "\u200b", "&lt;", "(", ")", "End of the stored notes", ".", " ", "-", "#", "*", "\\"]
    ),
)  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(PIECES, min_size=1, max_size=12), st.booleans())
def test_no_text_ends_a_note_or_begins_another(pieces: list[str], is_turn: bool) -> None:
    text = "".join(pieces)
    poisoned = match(text, 1, name="Al" if is_turn else None)
    note = render([match("first"), poisoned, match("last", 2)], POLICY)

    check_note(note, POLICY, "] last\n")
