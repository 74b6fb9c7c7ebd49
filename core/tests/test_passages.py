"""Passages: what a long text is divided into, and which of them is shown for a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from commonplace.agents.note import bullets
from commonplace.ports.stores import Hit
from commonplace.retrieval.excerpts import excerpt
from commonplace.types import Match, Record, Scope, is_short, now, passages

PIECES = [
    "a",
    "Hello there. ",
    "Is it 3.5 m? ",
    "好。",
    "他说：“走！”",
    "\n",
    "\t",
    "  ",
    "x" * 90,
    "中" * 50,
    "😀",
]


def record(text, **fields):
    at = now()
    scope = Scope(user_id="anna")
    times = {"created_at": at, "updated_at": at, "occurred_at": at}
    return Record(id="r" * 36, text=text, scope=scope, version=1, **{**times, **fields})


@given(some.lists(some.sampled_from(PIECES), max_size=120).map("".join))
def test_passages_are_the_text_in_order_without_the_spaces_between(text):
    parts = passages(text)

    assert "".join("".join(parts).split()) == "".join(text.split())
    assert parts == passages(str(text))
    if len(parts) > 1:
        assert all(part == part.strip() and part in text for part in parts)
        assert all(len(part) <= 240 and is_short(part) for part in parts)


@pytest.mark.parametrize("text", ["x", " two  spaces ", "word " * 79, "很短。" * 44, "\n"])
def test_a_short_text_is_one_passage_as_it_is(text):
    assert passages(text) == [text]


@pytest.mark.parametrize("text", ["x" * 401, "word " * 82, "很短。" * 50, "# a\n" * 120])
def test_a_long_text_is_several(text):
    assert len(passages(text)) > 1


def test_passages_end_where_sentences_or_lines_do():
    english = [
        "The ferry leaves at nine, and the pier is a mile away!",
        'He said "no".',
        "Version 2.5 is out.",
    ]
    parts = passages(" ".join(english * 9))
    assert all(
        part[-1] in '.!"' and part.split(" ")[0] in ("The", "He", "Version") for part in parts
    )

    chinese = ["渡轮九点出发，码头离这里有一公里！", "他说：“不行。”", "新版本是2.5；", "谁去？"]
    parts = passages("".join(chinese * 9))
    assert all(part.endswith(("！", "”", "；", "？")) for part in parts)

    lines = passages("\n".join(f"row {n} | value {n * n} | some cell" for n in range(90)))
    assert all(part.startswith("row") and part.endswith("cell") for part in lines)


def test_what_has_no_sentences_is_divided_at_spaces():
    parts = passages(" ".join(f"token{n}" for n in range(300)))

    assert " ".join(parts).split() == [f"token{n}" for n in range(300)]
    assert min(map(len, parts[:-1])) > 200


def test_a_speaker_stands_in_front_of_each_passage():
    long = record("The sky was clear that day. " * 40, name="Alice")

    assert len(long.indexed_passages) > 3
    assert all(part.startswith("Alice: The sky") for part in long.indexed_passages)
    assert record("Hi.", name="Alice").indexed_passages == [
        record("Hi.", name="Alice").indexed_text
    ]


def test_a_note_shows_the_excerpt_and_marks_what_it_left_out():
    parts = ["A first sentence stands here.", "The code is 4711.", "A last one ends it all."]
    text = " ".join([parts[0] * 20, parts[1], parts[2] * 20])

    def shown(excerpt, of=text):
        return bullets([Match(record=record(of), score=0.5, excerpt=excerpt)], times=False)

    assert shown(parts[1]) == ["- … The code is 4711. …"]
    assert shown(parts[0]) == ["- A first sentence stands here. …"]
    assert shown(parts[2] * 20)[0].startswith("- … A last one")
    assert shown("", "Short.") == ["- Short."]
    assert Match(record=record("Short."), score=0.5).excerpt == "Short."


def chosen(parts, question, cosines=()):
    """Choose among the passages of a text, equally near if nothing else is said."""
    text = "\n".join(parts)
    assert parts == list(passages(text))
    near = tuple(cosines or [0.3] * len(parts))
    hit = Hit(record=record(text), dense=0.3, lexical=1.0, words=150, passages=near)
    return parts.index(excerpt(hit, question))


STAIRS = [
    f"We have to tell you to go to room {n} by the stairs, and wait there. " * 3 for n in range(9)
]
STAIRS = [part.strip() for part in STAIRS]


def test_a_word_that_many_passages_have_hardly_chooses_one():
    plumber = f"The plumber wants ninety euros for the drain{', and more' * 16}."
    parts = [*STAIRS[:4], plumber, *STAIRS[4:]]
    question = "What do we have to tell the plumber by then, and where do they go?"

    assert 4 == chosen(parts, question)
    assert 4 == chosen(parts, question, cosines=[0.32] * 4 + [0.3] + [0.32] * 5)
    assert 6 == chosen(parts, question, cosines=[0.3] * 6 + [0.5] + [0.3] * 3)


def test_a_passage_with_the_answer_that_is_asked_for_is_chosen_among_equals():
    until = f"The door stays open up to 9 June{', and no longer' * 12}."
    parts = [*STAIRS[:7], until, *STAIRS[7:]]

    assert 0 == chosen(parts, "Is it so?")
    assert 7 == chosen(parts, "When is it?")


def test_what_the_first_passage_names_counts_for_one_that_tells_more():
    greeting = f"Dear Ms Holm, thank you for your order with Tallis{', as ever' * 17}."
    code = f"Your booking reference is MK-204, so please note it{', and keep it' * 11}."
    parts = [greeting, *STAIRS[:6], code, *STAIRS[6:]]
    cosines = [0.5] + [0.3] * 6 + [0.33] + [0.3] * 3

    assert 7 == chosen(parts, "What is the booking reference with Tallis?", cosines)
    assert 0 == chosen(parts, "Who has an order with Tallis?", cosines)
    assert 0 == chosen(parts, "What is a greeting?", cosines)
