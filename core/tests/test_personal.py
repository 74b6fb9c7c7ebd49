"""What asks for something that was told, and what needs no memory, by the default embedder."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from commonplace import Memory, Scope
from commonplace.agents import AgentMemory, Policy
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.retrieval.personal import LONGEST, SURE, asks_memory

ALICE = Scope(user_id="alice")
MESSAGES = tomllib.loads(
    (Path(__file__).parents[2] / "benchmarks" / "asking.toml").read_text("utf-8")
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
