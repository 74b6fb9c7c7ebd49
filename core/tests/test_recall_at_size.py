"""Recall by the size of conversations: how they are read, and that the command measures them."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def benchmark(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


def said(role, text, number, day=None):
    return {"role": role, "content": text, "id": number, "time_anchor": day}


def exchange(text, number, *more):
    """Two messages and what follows within the turn, numbered from `number`."""
    texts = [text, "Noted.", *more]
    day = "May-02-2026" if number == 0 else None
    return [
        said(("user", "assistant")[place % 2], each, number + place, day)
        for place, each in enumerate(texts)
    ]


CHAT = [
    {
        "batch_number": 1,
        "turns": [
            exchange("The kiln is booked for Thursday. ->-> 1,1", 0, "And for Friday.", "Fine."),
            exchange("My glaze cracked again. ->-> 1,N/A", 4),
        ],
    },
    {"batch_number": 2, "turns": [exchange("Ida lent me her wheel. ->-> 2,3, 4", 6)]},
]
OPENINGS = [
    {
        "batch": 1,
        "time_anchor": "June-01-2026",
        "messages": [
            {"role": "user", "content": "The ferry leaves at six. ->-> 1,2"},
            {"role": "user", "content": "I packed the blue tent."},
        ],
    }
]
QUESTIONS = {
    "abstention": [{"question": "Who fires the kiln?"}],
    "knowledge_update": [
        {"question": "When is the kiln mine?", "source_chat_ids": {"was": [0], "is": [2]}}
    ],
    "event_ordering": [{"question": "What broke, who helped?", "source_chat_ids": [[4, 5], 6]}],
    "summarization": [{"question": "What did you advise?", "source_chat_ids": [1]}],
}


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def sizes(tmp_path):
    """Two sizes: one of a whole conversation and of one without numbers, one of plans."""
    folder = tmp_path / "sizes"
    write(folder / "10K" / "2", chat=CHAT, probing_questions=QUESTIONS)
    write(folder / "10K" / "10", user_messages=OPENINGS, probing_questions=QUESTIONS)
    for plan, files in enumerate(({"chat": CHAT}, {"user_messages": OPENINGS}, {"chat": CHAT})):
        write(folder / "1M" / "1" / f"plan-{plan}", **files)
    later = {"temporal_reasoning": [{"question": "And then?", "source_chat_ids": [0, 8]}]}
    write(folder / "1M" / "1" / "probing_questions", probing_questions=QUESTIONS | later)
    return folder


def answers(beam, conversation):
    """The texts that answer each question."""
    texts = {
        beam.evidence.record_id(one.scope, each): each.text
        for one in conversation.sessions
        for each in one.contents
    }
    return [sorted(texts[key] for key in one.gold) for one in conversation.questions]


KNOWN = [
    [],
    ["And for Friday.", "The kiln is booked for Thursday."],
    ["Ida lent me her wheel.", "My glaze cracked again."],
    [],
]


def test_the_users_messages_are_told_and_answer(sizes, monkeypatch):
    beam = benchmark("beam", monkeypatch)

    whole, unnumbered = beam.conversations(sizes / "10K")

    assert (whole.size, unnumbered.size) == (4, 2)
    assert answers(beam, whole) == KNOWN
    assert [str(one.sessions[0].contents[0].at.date()) for one in (whole, unnumbered)] == [
        "2026-05-02",
        "2026-06-01",
    ]


def test_messages_without_numbers_answer_nothing(sizes, monkeypatch):
    beam = benchmark("beam", monkeypatch)

    _, unnumbered = beam.conversations(sizes / "10K")

    assert not unnumbered.is_numbered
    assert not any(one.gold for one in unnumbered.questions)
    assert len(unnumbered.questions) == 4


def test_numbers_go_on_through_plans_until_one_is_not_known(sizes, monkeypatch):
    beam = benchmark("beam", monkeypatch)

    [plans] = beam.conversations(sizes / "1M")

    assert plans.size == 10
    assert answers(beam, plans) == [*KNOWN, []]


def test_the_command_measures_every_size_and_fills_a_page(sizes, tmp_path, monkeypatch):
    recall_at_size = benchmark("recall_at_size", monkeypatch)
    page, tables = tmp_path / "page.md", tmp_path / "tables.json"
    page.write_text("\n".join(["# Found", *recall_at_size.MARKS, "The end."]), encoding="utf-8")

    recall_at_size.main(sizes, embedder="hash", cache=tmp_path / "kept", page=page, file=tables)

    *kinds, by_size = json.loads(tables.read_text("utf-8"))
    assert [one["rows"][-1][:2] for one in kinds] == [["overall", "2"], ["overall", "2"]]
    assert [row[:4] for row in by_size["rows"]] == [
        ["10K", "2", "6", "2"],
        ["10K", "1", "4", "2"],
        ["1M", "1", "10", "2"],
    ]
    assert by_size["rows"][1][4].startswith("1.000")
    found = page.read_text("utf-8").splitlines()
    assert found[0] == "# Found"
    assert found[-1] == "The end."
    assert sum(line.startswith("| 10K") for line in found) == 2
