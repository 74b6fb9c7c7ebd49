"""Times of the lines of notes and of the search tool's answers, and what holds now before the rest.

In English and in Chinese.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from time import process_time
from typing import Any

import pytest

from commonplace.agents import AgentMemory, Conversation, Policy, choose, render, shown
from commonplace.agents.note import FOOTER, MAX_NOTE, bullets
from commonplace.agents.standing_instructions import MARK
from commonplace.memory import Memory
from commonplace.types import Match, Message, Record, Scope

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)  # a Wednesday
ALICE = Scope(user_id="alice", session_id="today")
PARIS, LYON = "I live in Paris.", "I moved to Lyon."


def record(text: str, days: int = 0, **more: Any) -> Match:
    """Make a match of a record from so many days before now."""
    at = NOW - timedelta(days=days)
    score = more.pop("score", 0.6)
    made = Record(
        id=more.pop("id", f"{abs(hash((text, days))):016x}"), text=text, scope=ALICE,
        created_at=at, updated_at=at, occurred_at=at, **more,
    )  # fmt: skip
    return Match(record=made, score=score)


def turn(text: str, days: int = 0, role: Any = "user", **more: Any) -> Match:
    return record(text, days, kind="episode", role=role, **more)


def line(match: Match, now: datetime = NOW, **more: Any) -> str:
    [only] = bullets([match], now=now, **more)
    return only


# -- when a line was said ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "english", "chinese"),
    [
        (0, "2026-11-25, today", "2026-11-25,今天"),
        (1, "2026-11-24, yesterday", "2026-11-24,昨天"),
        (2, "2026-11-23, 2 days ago", "2026-11-23,2天前"),
        (13, "2026-11-12, 13 days ago", "2026-11-12,13天前"),
        (14, "2026-11-11, 2 weeks ago", "2026-11-11,2周前"),
        (59, "2026-09-27, 8 weeks ago", "2026-09-27,8周前"),
        (92, "2026-08-25, 3 months ago", "2026-08-25,3个月前"),
        (365, "2025-11-25, 12 months ago", "2025-11-25,12个月前"),
        (364, "2025-11-26, 11 months ago", "2025-11-26,11个月前"),
        (800, "2024-09-16, 2 years ago", "2024-09-16,2年前"),
        (-1, "2026-11-26, tomorrow", "2026-11-26,明天"),
        (-20, "2026-12-15, in 2 weeks", "2026-12-15,2周后"),
    ],
)
def test_a_line_tells_when_it_was_said(days, english, chinese) -> None:
    assert f"- [{english}] Al: I like tea." == line(turn("I like tea.", days, name="Al"))
    assert f"- [{chinese}] user: 我喜欢喝茶。" == line(turn("我喜欢喝茶。", days))


def test_days_are_those_of_the_zone_in_which_the_note_is_read() -> None:
    late = record("Alice ate soup.").record
    match = Match(record=late, score=0.5)
    east = timezone(timedelta(hours=13))

    assert "2026-11-25, today" in line(match)
    assert "2026-11-26, today" in line(match, NOW.astimezone(east))
    assert "Today is Thursday, 2026-11-26." in render([match], Policy(), NOW.astimezone(east))


@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_first_and_the_last_moment_have_a_day(day) -> None:
    at = datetime.combine(day, time.min if day == date.min else time.max, UTC)
    far = Match(record=replace(record("Alice ate soup.").record, occurred_at=at), score=0.5)
    for hours in (-12, 13):
        zone = timezone(timedelta(hours=hours))
        assert str(day) in line(far, NOW.astimezone(zone))


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (record("Alice lives in Lyon.", 3), "- [since 2026-11-22] Alice lives in Lyon."),
        (record("用户住在里昂。", 3), "- [2026-11-22起] 用户住在里昂。"),
        (record("Alice went to Rome.", 3), "- [2026-11-22, 3 days ago] Alice went to Rome."),
        (record("Likes tea.", 3, kind="preference"), "- [since 2026-11-22] Likes tea."),
        (record("A nurse.", 3, kind="profile"), "- [since 2026-11-22] A nurse."),
        (record("是护士。", 3, kind="profile"), "- [2026-11-22起] 是护士。"),
        (
            record("Alice lives in Rome.", 9, valid_to=NOW - timedelta(days=3)),
            "- [until 2026-11-22] Alice lives in Rome.",
        ),
        (
            record("用户住在罗马。", 9, valid_to=NOW - timedelta(days=3)),
            "- [至2026-11-22] 用户住在罗马。",
        ),
        (
            record("Always answer in French.", 3, kind="preference", metadata={MARK: True}),
            "- Always answer in French.",
        ),
        (
            record("Tea is hot.", 1, origin="document"),
            "- [2026-11-24, yesterday] (from a document) Tea is hot.",
        ),
        (turn("Mein Hund heißt Rex.", 1), "- [2026-11-24, yesterday] user: Mein Hund heißt Rex."),
        (turn("我写代码用Vim。", 1), "- [2026-11-24,昨天] user: 我写代码用Vim。"),
        (turn("My boss is 王芳.", 1), "- [2026-11-24, yesterday] user: My boss is 王芳."),
    ],
)
def test_a_line_tells_since_and_until_when_it_holds(match, expected) -> None:
    assert expected == line(match)


def test_a_note_begins_with_the_day() -> None:
    note = render([turn("I like tea.", 1)], Policy(), NOW)

    assert note.splitlines()[1] == "Today is Wednesday, 2026-11-25."
    assert note.splitlines()[3] == "- [2026-11-24, yesterday] user: I like tea."
    chinese = Policy(header="## 记忆", intro="以下是关于用户的记忆，仅供参考。")
    assert (
        render([turn("I like tea.")], chinese, NOW).splitlines()[1] == "今天是2026-11-25，星期三。"
    )


def test_a_label_stands_before_the_time() -> None:
    changing = Policy(tools=["search_memory", "update_memory"])
    note = render([turn("I like tea.", 1, id="1a2b3c4d5e")], changing, NOW)

    assert "- [1a2b3c4d] [2026-11-24, yesterday] user: I like tea." in note


def test_without_times_a_note_has_no_days_and_no_marks() -> None:
    matches = choose(replaced(turn(PARIS, 9), turn(LYON, 1)), "Where do I live?", top_k=5)
    plain = Policy(times=False)

    assert render(matches, plain, NOW).splitlines() == [
        plain.header, plain.intro, "- user: I moved to Lyon.", "- user: I live in Paris.", FOOTER,
    ]  # fmt: skip


def test_one_text_of_two_days_comes_once() -> None:
    matches = [turn("I like tea.", 1), turn("I like tea.", 5)]

    assert ["- [2026-11-24, yesterday] user: I like tea."] == bullets(matches, now=NOW)


def test_a_note_with_times_keeps_its_size() -> None:
    matches = [turn(f"{n} is due tomorrow, " + "é" * 300, n) for n in range(40)]
    note = render(matches, Policy(), NOW)

    assert len(note) <= MAX_NOTE
    assert len(shown(matches, Policy(), NOW)) == note.count("\n- ") > 5


# -- days that a line counts from its moment ---------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My exam is tomorrow at 9.", "My exam is tomorrow [2026-11-22] at 9."),
        ("We went bowling last night!", "We went bowling last night [2026-11-20]!"),
        ("We meet next week.", "We meet next week [2026-11-23 to 2026-11-29]."),
        ("I marry next year.", "I marry next year [2027]."),
        ("I marry next month.", "I marry next month [2026-12]."),
        ("I came back from Rome today.", "I came back from Rome today."),
        ("The exam is tomorrow (2026-11-22).", "The exam is tomorrow (2026-11-22)."),
        ("I swim on Fridays.", "I swim on Fridays."),
        ("我明天有考试。", "我明天[2026-11-22]有考试。"),
        ("我下周三看牙医。", "我下周三[2026-11-25]看牙医。"),
        ("我下周搬家。", "我下周[2026-11-23至2026-11-29]搬家。"),
        ("她上个月结婚了。", "她上个月[2026-10]结婚了。"),
        ("我们今天去了动物园。", "我们今天去了动物园。"),
    ],
)
def test_days_counted_from_a_line_stand_behind_their_words(said, expected) -> None:
    assert line(turn(said, 4)).endswith(f"user: {expected}")  # said on a Saturday


def test_days_of_a_document_are_left_as_they_are() -> None:
    assert line(record("The sale ends tomorrow.", 4, origin="document")).endswith("tomorrow.")


# -- what holds now comes first ----------------------------------------------------------------


def chosen(query: str, *matches: Match, top_k: int = 5, **held: Any) -> list[str]:
    found = choose(matches, query, top_k=top_k, held=Conversation(**held))
    return [one.partition("] ")[2].replace("user: ", "") for one in bullets(found, now=NOW)]


def replaced(old: Match, *newer: Match, odds: float = 0.9) -> tuple[Match, ...]:
    """Return matches of which the others likely took the place of the first, as a search tells."""
    return (replace(old, replaced_by={one.record.id: odds for one in newer}), *newer)


def junk(number: int) -> list[Match]:
    return [turn(f"Note {'x' * n} of day {n}.", n, score=0.5) for n in range(1, number + 1)]


def test_the_newest_of_one_matter_stands_first_and_the_older_is_marked() -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2, score=0.2))

    assert ["I moved to Lyon.", "(earlier) I live in Paris."] == chosen(
        "Where do I live?", old, new
    )
    old, new = replaced(turn("我住在北京。", 9, score=0.9), turn("我搬到上海了。", 2, score=0.2))
    assert ["我搬到上海了。", "(较早) 我住在北京。"] == chosen("我住在哪里？", old, new)


@pytest.mark.parametrize("others", [0, 12, 28])
def test_the_newest_stands_first_however_much_lies_between(others) -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2, score=0.01))
    lines = chosen("Where do I live?", old, *junk(others), new)

    assert lines[0] == "I moved to Lyon."
    assert (PARIS in "".join(lines)) == (others == 0)


@pytest.mark.parametrize(
    ("odds", "lines"),
    [
        (0.05, ["I live in Paris.", "I moved to Lyon."]),
        (0.3, ["I moved to Lyon.", "I live in Paris."]),
        (0.7, ["I moved to Lyon.", "(earlier) I live in Paris."]),
    ],
)
def test_what_may_hold_now_stands_first_and_what_likely_does_not_is_marked(odds, lines) -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2, score=0.3), odds=odds)

    assert lines == chosen("Where do I live?", old, new)


def test_of_two_that_may_hold_the_one_that_fits_the_question_stands_first() -> None:
    old, lyon, party = turn(PARIS, 9, score=0.8), turn(LYON, 2, score=0.6), turn("A party.", 1)
    party = replace(party, score=0.01)
    old = replace(old, replaced_by={lyon.record.id: 0.2, party.record.id: 0.25})

    assert ["I moved to Lyon.", PARIS] == chosen("Where do I live?", old, lyon, party)


def test_what_likely_holds_instead_of_another_stands_in_front_of_that_one_alone() -> None:
    kia = turn("I sold the Saab and bought a Kia.", 1, score=0.2)
    saab = replace(turn("I drive a Saab.", 8, score=0.1), replaced_by={kia.record.id: 0.9})
    work = replace(turn("I joined Bosch.", 2, score=0.7), replaced_by={kia.record.id: 0.3})

    lines = chosen("Where do I work?", work, kia, saab)

    assert ["I joined Bosch.", kia.record.text] == lines[:2]


def test_what_was_told_twice_stands_behind_what_likely_replaced_it() -> None:
    kia = turn("I sold the Saab and bought a Kia.", 1, score=0.2)
    once = replace(turn("I drive a Saab.", 8, score=0.1), replaced_by={kia.record.id: 0.9})
    again = replace(turn("A Saab, as ever.", 6, score=0.4), replaced_by={kia.record.id: 0.46})

    lines = chosen("Which car do I drive?", again, kia, once)

    assert [kia.record.text, "A Saab, as ever."] == lines[:2]


def test_what_may_not_hold_is_left_out_for_nothing_doubtful() -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2, score=0.3), odds=0.3)

    assert [PARIS] == chosen("Where do I live?", old, new, top_k=1)


def test_an_older_line_takes_no_place_of_one_that_holds() -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2))
    full, roomy = (
        chosen("Where do I live?", old, new, *junk(number), top_k=3) for number in (2, 1)
    )

    assert len(full) == 3
    assert not any("Paris" in one for one in full)
    assert roomy[:2] == ["I moved to Lyon.", "(earlier) I live in Paris."]


def test_a_question_for_what_held_before_shows_it_in_its_place() -> None:
    old, new = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 2))
    lines = chosen("Where did I live before?", old, new, *junk(9), top_k=2)

    assert ["(earlier) I live in Paris.", "I moved to Lyon."] == lines


def test_what_the_conversation_tells_replaces_an_older_line() -> None:
    old, held = replaced(turn(PARIS, 9, score=0.9), turn(LYON, 0, id="held"))

    lines = chosen("What is worth seeing where I live?", old, held, ids={"held"})

    assert ["(earlier) I live in Paris."] == lines


def test_who_goes_back_holds_what_held_at_first() -> None:
    first, last = turn(PARIS, 20, score=0.9), turn(PARIS, 2, score=0.4)
    middle = replace(turn(LYON, 9, score=0.5), replaced_by={last.record.id: 0.9})
    first = replace(first, replaced_by={middle.record.id: 0.9})

    lines = chosen("Where do I live?", first, middle, last)

    assert ["I live in Paris.", "(earlier) I moved to Lyon."] == lines


def test_of_a_chain_of_values_the_newest_stands_first() -> None:
    last = turn("It is 695.", 2, score=0.4)
    middle = replace(turn("It is 720.", 5, score=0.8), replaced_by={last.record.id: 0.3})
    first = replace(turn("It is 940.", 9, score=0.9), replaced_by={middle.record.id: 0.3})

    lines = chosen("What is the rent?", first, middle, last)

    assert ["It is 695.", "It is 720.", "It is 940."] == lines


@pytest.mark.parametrize("others", [0, 12])
def test_the_search_tool_shows_what_holds_first(tmp_path, others) -> None:
    chess = [(f"I play chess on day {number}.", number) for number in range(others)]
    with Memory.open(str(tmp_path)) as memory:
        for text, days in ((PARIS, 9), (LYON, 2), *chess):
            scope = Scope(user_id="alice", session_id=str(days))
            memory.add(Message(text=text, at=NOW - timedelta(days=days)), scope)
        mine = AgentMemory(memory, Policy(), log="tests")
        words = {"keywords": ["Where do I live?"], "limit": 2}
        lines = mine.call_tool("search_memory", words, ALICE).splitlines()

    assert len(lines) == 2
    assert lines[0].endswith("] user: I moved to Lyon.")


def test_a_note_is_ordered_in_a_moment() -> None:
    texts = [
        "I live in Paris.", "I moved to Rome.", "My boss is Ann.", "I use Vim.", "I like tea.",
    ]  # fmt: skip
    matches = [turn(f"{text} Day {n}.", n) for n in range(6) for text in texts]
    choose(matches[:2], "Where do I live?", top_k=5)  # the first one builds tables
    start = process_time()
    choose(matches, "Where do I live?", top_k=5)

    assert process_time() - start < 0.1  # several times what it takes
