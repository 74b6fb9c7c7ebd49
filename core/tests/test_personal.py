"""What asks for something that was told, what needs no memory, and what answers."""

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from commonplace import Memory, Message, Scope
from commonplace.agents import AgentMemory, Policy
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.retrieval.personal import LONGEST, SURE, answers, asks_former, asks_memory

ALICE = Scope(user_id="alice")
START = datetime(2026, 3, 1, tzinfo=UTC)
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MESSAGES, REPLIES, ASKED_FOR = (
    tomllib.loads((BENCHMARKS / name).read_text("utf-8"))
    for name in ("asking.toml", "replies.toml", "asked_for.toml")
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


@pytest.mark.parametrize(
    ("languages", "found", "wrong"),
    [(("en",), 0.7, 0.05), (("zh",), 0.55, 0.05), (("de", "es", "ja", "ar", "fr"), 0.6, 0.06)],
)
def test_questions_for_what_no_longer_holds_are_told_from_others(
    languages: tuple[str, ...], found: float, wrong: float
) -> None:
    def share(*labels: str) -> float:
        lists = (ASKED_FOR[f"{one}_apart"][label] for one in languages for label in labels)
        texts = [text for some in lists for text in some]
        vectors = SentenceEncoder().embed(texts, purpose="query")
        return float(np.mean([asks_former(*one) != "" for one in zip(texts, vectors, strict=True)]))

    assert share("before", "first") >= found
    assert share("now", "other") <= wrong


def test_without_a_vector_the_usual_words_tell_what_a_question_is_for() -> None:
    asked = {
        "Where did I live before?": "before",
        "Where did I live at first?": "first",
        "Which bank did I leave?": "",
    }

    assert asked == {text: asks_former(text, ()) for text in asked}


def test_what_no_longer_holds_comes_first_where_it_is_asked_for(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        for day, text in enumerate(["We pay 54 euros for the gym.", "The gym costs 61 euros now."]):
            memory.add(Message(text=text, at=START + timedelta(days=day)), ALICE)
        agent = AgentMemory(memory, Policy(), log="tests")

        def noted(question: str) -> list[str]:
            return [one.record.text for one in agent.recall(ALICE, question)]

        assert noted("What did the gym cost till the rise?")[0] == "We pay 54 euros for the gym."
        assert noted("What does the gym cost?")[0] == "The gym costs 61 euros now."


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
