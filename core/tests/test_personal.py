"""What asks for something that was told, what needs no memory, and what answers."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from commonplace import Memory, Message, Scope
from commonplace.agents import AgentMemory, Policy
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.retrieval.personal import LONGEST, SURE, answers, asks_memory

ALICE = Scope(user_id="alice")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MESSAGES, REPLIES = (
    tomllib.loads((BENCHMARKS / name).read_text("utf-8"))
    for name in ("asking.toml", "replies.toml")
)


@pytest.mark.parametrize(
    ("language", "asking", "other"), [("en", 0.98, 0.28), ("zh", 0.96, 0.27), ("de", 0.98, 0.17)]
)
def test_questions_are_told_from_tasks(language: str, asking: float, other: float) -> None:
    def share(texts: list[str]) -> float:
        vectors = SentenceEncoder().embed(texts, purpose="query")
        return float(np.mean([asks_memory(*one) >= 0 for one in zip(texts, vectors, strict=True)]))

    kept_apart = {name: texts[::4] for name, texts in MESSAGES[language].items()}

    assert share(kept_apart["asks"]) >= asking
    assert share(kept_apart["other"]) <= other


def test_in_doubt_a_text_asks() -> None:
    [vector] = SentenceEncoder().embed(["shorter, please"], purpose="query")

    assert asks_memory("shorter, please", vector) < 0
    assert asks_memory("shorter, please", ()) == SURE
    assert asks_memory("shorter, please" * LONGEST, vector) == SURE


@pytest.mark.parametrize(
    "said",
    ["less stiff", "and in the past tense?", "write a haiku about autumn", "说重点", "换一首"],
)
def test_a_note_says_nothing_to_what_needs_no_memory(tmp_path: Path, said: str) -> None:
    told = [
        "I live in Ghent.",
        "My sister Ilse teaches maths.",
        "我对芒果过敏。",
        "I bake on Sundays.",
    ]
    with Memory.open(tmp_path) as memory:
        for text in told:
            memory.add(text, ALICE)
        agent = AgentMemory(memory, Policy(), log="tests")

        assert agent.recall(ALICE, said) == []
        assert agent.recall(ALICE, "What does Ilse teach?")[0].record.text == told[1]


def test_replies_that_tell_something_are_told_from_those_that_know_nothing() -> None:
    def share(label: str) -> float:
        pairs = [pair for lists in REPLIES.values() for pair in lists[label][::4]]  # kept apart
        questions, replies = zip(*pairs, strict=True)
        asked = SentenceEncoder().embed(questions, purpose="query")
        told = SentenceEncoder().embed(replies, purpose="document")
        return float(np.mean([answers(*one) for one in zip(replies, told, asked, strict=True)]))

    assert share("answers") >= 0.85
    assert share("other") <= 0.25


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        (
            "Who took my ladder?",
            "There is no note about a ladder.",
            "Olga had the ladder in her shed.",
        ),
        ("谁拿走了我的梯子？", "这里没有关于梯子的记录。", "梯子在老周家的车库里。"),
    ],
)
def test_a_reply_that_knows_nothing_is_not_before_a_later_answer(
    tmp_path: Path, question: str, reply: str, answer: str
) -> None:
    with Memory.open(tmp_path) as memory:
        for session, said in (("1", (question, reply)), ("2", (answer, "Good."))):
            messages = [
                Message(text=text, role=role)
                for role, text in zip(("user", "assistant"), said, strict=True)
            ]
            memory.add(messages, Scope(user_id="alice", session_id=session))

        assert memory.search(question, ALICE)[0].record.text == answer
